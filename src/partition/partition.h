/* A whole program as one shard_map over its mesh, and what can be asked of that: its parts, its cost, its plan. */
#ifndef AX_PARTITION_PARTITION_H
#define AX_PARTITION_PARTITION_H

#include "axle/stages.h"
#include "axle/transform.h"
#include "ir/program.h"
#include "plan/passes.h"

/* As ax_program_partition, for evaluators that run no kernels: an equation whose primitive has a rule `plain` (ir/prim.h)
   becomes a call of the equal program that this rule gives. */
AX_MUST_USE ax_status ax_program_partition_plain(const ax_program *program, ax_program **out);
/* Removes the groups from a program that ax_program_partition gave. Groups become axes if they lie along the axes of a finer
   mesh (regroup.c): *out may have more axes, and its devices keep their order. All other groups are dissolved into collectives
   over all members (collectives/ungroup.c). */
AX_MUST_USE ax_status ax_program_ungroup(const ax_program *program, ax_program **out);

/* The per-device program of a partitioned program, and how its inputs and results are laid over the mesh. All borrowed. */
typedef struct ax_partitioned {
  ax_program *body;
  const ax_mesh *mesh; /* its axes' `unchecked` is false */
  const ax_spec *in_specs, *out_specs; /* by input, and by result; NULL: the program has no shard_map, and runs on one device */
} ax_partitioned;
/* Takes apart a program that ax_program_partition gave. */
ax_partitioned ax_partitioned_of(ax_program *program);

/* The program of one device in which sums over devices that are added to a carry in each iteration of a loop are made behind the loop
   (sums.c). `*out` is owned by the caller, and may be `body` once more. Not in unchecked programs. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_sums_leave_loops(ax_program *body, ax_program **out);
/* Counts the cost of one run of the body (cost.c), which the caller may have simplified. processes NULL: one. Release *out with
   ax_cost_release. */
AX_MUST_USE ax_status ax_partitioned_cost(const ax_partitioned *partitioned, const ax_process_layout *processes, ax_cost *out);
/* Counts the operations of one equation of a per-device program, as ax_partitioned_cost does. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_equation_flops(const ax_program *program, const ax_eqn *eqn, double *out);
/* Makes the plan of the partitioned program (lower.c). */
AX_MUST_USE ax_status ax_partitioned_plan(const ax_partitioned *partitioned, const ax_plan_options *options, ax_plan **out);

#endif
