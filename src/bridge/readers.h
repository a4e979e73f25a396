/* Readers of StableHLO operations that are no primitives: functions made of primitives, and operations of the module's own. */
#ifndef AX_BRIDGE_READERS_H
#define AX_BRIDGE_READERS_H

#include "hlo/read.h"

/* readers_custom.c: a custom call of a target that is registered. *found: it is; else nothing is done. */
AX_MUST_USE ax_status ax_hlo_read_custom(const ax_hlo_read_args *args, ax_hlo_slice target, bool *found);
/* AX_ABSENT: the target is not known; the message lists those that are. */
AX_MUST_USE ax_status ax_hlo_refuse_target(const ax_hlo_read_args *args, ax_hlo_slice target);
extern const ax_hlo_reader ax_hlo_window_readers[]; /* readers_windows.c */
extern const ax_hlo_reader ax_hlo_chlo_readers[];   /* readers_chlo.c */
extern const ax_hlo_reader ax_hlo_host_readers[];   /* readers_host.c */
extern const ax_hlo_reader ax_hlo_rng_readers[];    /* readers_rng.c */
extern const ax_hlo_reader ax_hlo_bits_readers[];   /* readers_bits.c */
extern const ax_hlo_reader ax_hlo_check_readers[];  /* checks.c */
extern const ax_hlo_reader ax_hlo_parallel_readers[]; /* run_parallel.c */
extern const ax_hlo_reader ax_hlo_probe_readers[];    /* probes.c */
/* infeed, outfeed, send and recv in functions that run_parallel runs, whose host the test is. *done: it was read so. */
AX_MUST_USE ax_status ax_hlo_parallel_host(const ax_hlo_read_args *args, bool *done);
extern const ax_hlo_reader ax_hlo_sharding_readers[]; /* readers_sharding.c */
extern const ax_hlo_reader ax_hlo_shape_readers[];  /* readers_shapes.c; .. */
extern const ax_hlo_reader ax_hlo_shape_targets[];  /* .. by the targets of custom calls */
/* So many of an operation's last operands say shapes: the reader asks for their elements (ax_hlo_known), and their values may be
   poison. */
uint32_t ax_hlo_shape_operands(ax_hlo_slice op);
/* Takes the last operands of a custom call, which indices_of_shape_operands names, as the shapes of its results: `op`, a copy of
   args->op, is left without them, and `types` says the results. */
AX_MUST_USE ax_status ax_hlo_take_shapes(const ax_hlo_read_args *args, ax_hlo_operation *op, ax_type *types);
/* A check of StableHLO's tests; and reading one, by its name, which custom calls have as their target. */
bool ax_hlo_is_check(ax_hlo_slice name);
AX_MUST_USE ax_status ax_hlo_read_check(const ax_hlo_read_args *args, ax_hlo_slice name);
/* AX_ABSENT: no operation of the name is read; of StableHLO's and CHLO's, that there is none, with those that are spelled most like it. */
AX_MUST_USE ax_status ax_hlo_refuse_operation(const ax_hlo_import *import, ax_hlo_slice name);
/* Each list ends in an entry without a name. */
extern const ax_hlo_reader *const ax_hlo_reader_lists[];
extern const uint32_t ax_hlo_reader_list_count;

#endif
