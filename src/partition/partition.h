/* A program as one shard_map over its whole mesh: what the partitioner makes, taken apart. */
#ifndef AX_PARTITION_PARTITION_H
#define AX_PARTITION_PARTITION_H

#include "axle/stages.h"
#include "axle/transform.h"
#include "ir/program.h"
#include "plan/passes.h"

/* ax_program_partition for those who run no kernels: what has an equal program without (ax_prim.plain) is a call of that. */
AX_MUST_USE ax_status ax_program_partition_plain(const ax_program *program, ax_program **out);
/* Of what ax_program_partition gave: the same without groups. The mesh may have more axes, in the order of the devices, which
   groups are then those along (regroup.c); other groups are dissolved into collectives over all members (collectives/ungroup.c). */
AX_MUST_USE ax_status ax_program_ungroup(const ax_program *program, ax_program **out);

/* The per-device program of a partitioned program, and how its inputs and results are laid over the mesh. All borrowed. */
typedef struct ax_partitioned {
  ax_program *body;
  const ax_mesh *mesh; /* its axes' `unchecked` is false */
  const ax_spec *in_specs, *out_specs; /* by input and result; NULL: a program without shard_maps, on one device */
} ax_partitioned;
/* Of what ax_program_partition gave. */
ax_partitioned ax_partitioned_of(ax_program *program);

/* What it costs (cost.c), by its body, which may be simplified since. *out is to be released. */
AX_MUST_USE ax_status ax_partitioned_cost(const ax_partitioned *partitioned, ax_cost *out);
/* What an equation of one device computes, as that counts it. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_equation_flops(const ax_program *program, const ax_eqn *eqn, double *out);
/* Its plan (lower.c). */
AX_MUST_USE ax_status ax_partitioned_plan(const ax_partitioned *partitioned, const ax_plan_options *options, ax_plan **out);

#endif
