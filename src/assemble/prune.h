/* The inputs and results of a program that remain when all that a run does not need is left out. */
#ifndef AX_ASSEMBLE_PRUNE_H
#define AX_ASSEMBLE_PRUNE_H

#include "partition/partition.h"

/* The source of a result of the program: it is computed, or it is an unchanged input. */
typedef struct ax_returned {
  uint32_t made, input; /* one of the two has its number in the pruned program or plan; the other is AX_NONE */
} ax_returned;

/* Zero-initialise to start; _deinit to end. */
typedef struct ax_pruning {
  uint32_t in_count, out_count; /* of the program before pruning */
  uint32_t *place;              /* by input: its number after pruning; AX_NONE: no result or effect depends on it */
  ax_returned *returned;        /* by result; its `input` is numbered as before pruning */
} ax_pruning;
/* Prunes a program. laid: the layouts of a per-device program's inputs and results; NULL: layouts are ignored, so a result that
   is an input is that array. keep_unused: all inputs stay. *out: the pruned program, owned by the caller. */
AX_MUST_USE ax_status ax_pruning_make(ax_pruning *pruning, const ax_program *program, const ax_partitioned *laid, bool keep_unused,
                                      ax_program **out);
void ax_pruning_deinit(ax_pruning *pruning);
/* Drops the specs of pruned inputs and results; the lists that remain are in `arena`. */
AX_MUST_USE ax_status ax_pruning_specs(const ax_pruning *pruning, ax_partitioned *laid, ax_arena *arena);

#endif
