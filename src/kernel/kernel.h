/* The primitives of kernels: their parameters, as the machine (machine.c), discharge and the pipelines read them. All but
   kernel_call stand in bodies of kernel_call alone.

   Axes. The environment of a body is that of the kernel_call, all axes unchecked, with the axes of its core mesh behind: the first
   ones are of devices, the last ones of cores. */
#ifndef AX_KERNEL_KERNEL_H
#define AX_KERNEL_KERNEL_H

#include "axle/kernel.h"
#include "ir/program.h"

/* ref_slice: ref, start: s32[] for each dimension -> ref[sizes..]            ref_transpose: ref -> ref
   ref_reshape: ref -> ref[dims..]                                            of semaphores and barriers too */
typedef struct ax_ref_slice_params {
  ax_dims sizes, strides; /* strides.count 0: all 1 */
} ax_ref_slice_params;
typedef struct ax_ref_dims_params { /* ref_transpose: the permutation; ref_reshape: the new shape */
  ax_dims dims;
} ax_ref_dims_params;

/* ref_load: ref, [mask, other] -> value       ref_store: ref, value, [mask] -> ()
   ref_swap: ref, value, [mask, other] -> value    ref_add: ref, value -> () */
typedef struct ax_ref_masked_params {
  bool masked;
} ax_ref_masked_params;

/* The core that an operation is for: `axes` names axes of devices and cores; the last operands are the coordinates, s32[] each.
   logical: axes is empty, and the one operand is a device's number, row-major over all axes of devices. Without either: the own
   core. */
typedef struct ax_core_params {
  ax_axes axes;
  bool logical;
} ax_core_params;
static inline uint32_t ax_core_operands(const ax_core_params *to) { return to->logical ? 1 : to->axes.count; }

/* semaphore_signal: semaphore[], amount: s32[], coordinates.. -> ()      params: ax_core_params
   semaphore_wait: semaphore[], amount: s32[] -> ()    semaphore_read: semaphore[] -> s32[]    barrier_semaphore: -> semaphore[]
   barrier_arrive: barrier[] -> ()                     barrier_wait: barrier[] -> () */

/* copy_start: source, destination, [received], [sent], [barrier], [predicate: bool[]], coordinates.. -> ()
   copy_wait: dma_semaphore[], ref -> ()
   copy_commit: -> ()      copy_wait_groups[pending, read_only]: -> ()      commit_smem: -> ()
   All operands that are there, in this order. */
typedef struct ax_copy_params {
  ax_core_params to; /* the first member, as in all params that have one */
  bool received, sent, barrier, predicate, grouped;
} ax_copy_params;
typedef struct ax_copy_groups_params {
  int64_t pending;
  bool read_only;
} ax_copy_groups_params;

/* program_id: -> s32[]   of the grid of the kernel_call it stands in. */
typedef struct ax_program_id_params {
  int64_t dimension;
} ax_program_id_params;
/* set_max_registers: -> () */
typedef struct ax_registers_params {
  int64_t count;
  bool increase;
} ax_registers_params;
/* trace_begin, trace_end: -> () */
typedef struct ax_trace_params {
  const char *name; /* "" of trace_end */
} ax_trace_params;

/* run_scoped: T.. -> R..     body: (T.., a ref for each of scratch) -> (R..) */
typedef struct ax_run_scoped_params {
  ax_types scratch;
  ax_pairs arrivals; /* (number of a scratch that is barriers, arrivals that complete a phase), ascending */
  ax_axes along;    /* core axes along which cores share the scratch; names alone */
  ax_program *body;
} ax_run_scoped_params;

/* grid_point: i: s32[] x grid, T.. -> ()     body: (T..) -> (), in which program_id says i */
typedef struct ax_grid_point_params {
  ax_dims grid;
  ax_program *body;
} ax_grid_point_params;

/* kernel_call: consts.., T.. -> R..     bodies[i]: (consts.., refs of operands, of results, of scratch) -> ()
   Several bodies: mpmd, each on its core mesh; blocks and grid are of one body alone. */
typedef struct ax_kernel_params {
  const char *name;
  int64_t consts; /* number of leading operands that are values which the bodies captured; these are no refs in the bodies */
  ax_axes cores;   /* the core type of each body; names alone */
  ax_dims core_axes; /* for each body, the number of core axes, which are the last of its environment */
  ax_axes threads;  /* the core axes whose cores share VMEM, SMEM and semaphores */
  ax_dims grid;
  ax_dims semantics; /* ax_semantics of each dimension; none: all AX_ARBITRARY */
  ax_types blocks; /* the refs that bodies get, of operands (without consts) then results: ax_ref_type of the block or the whole */
  ax_pairs blocked;  /* (number of an operand or result that is cut into blocks, number of its index map), ascending by the first */
  ax_programs
      index_maps; /* (s32[] x grid) or (s32[] x grid, consts..) -> (s32[] x rank): index of the block; a map that uses none of the
                     grid's numbers gives the same block for all points */
  ax_types block_shapes;  /* for each of `blocked`: the shape of its blocks, squeezed dimensions as 1 */
  ax_types outs, scratch;
  ax_pairs arrivals;      /* as of run_scoped */
  ax_axes scratch_cores;  /* of each scratch: its core type, "each" or "device"; none at all: all "each" */
  ax_pairs aliases;       /* (operand without consts, result) */
  const char *target, *metadata, *compiler_params;
  bool interpret, debug;
  int64_t collective_id;
  int64_t flops, bytes, transcendentals; /* 0: counted */
  ax_programs bodies;
} ax_kernel_params;

/* The names that scratch_cores may have beside those of core types: each core has its own; there is one for all cores of the
   device. */
#define AX_SCRATCH_EACH "each"
#define AX_SCRATCH_DEVICE "device"

/* The result that is one memory with this operand (without consts), and the operand that is with this result; AX_NONE: none. */
static inline uint32_t ax_alias_of_operand(const ax_kernel_params *params, uint32_t operand) {
  for (uint32_t a = 0; a < params->aliases.count; a++)
    if (params->aliases.v[a][0] == operand) return (uint32_t)params->aliases.v[a][1];
  return AX_NONE;
}
static inline uint32_t ax_alias_of_result(const ax_kernel_params *params, uint32_t result) {
  for (uint32_t a = 0; a < params->aliases.count; a++)
    if (params->aliases.v[a][1] == result) return (uint32_t)params->aliases.v[a][0];
  return AX_NONE;
}

/* What a block has where it sticks out of its operand: NaN, or the lowest integer; 0 of other dtypes, those of floats without NaN
   among them. (content.c) */
double ax_lowest(ax_dtype dtype);

/* The types of the operands that a kernel_call is evaluated on, the caller's to free. (kernel_transform.c) */
AX_MUST_USE ax_status ax_kernel_operand_types(const ax_eval_args *args, ax_type **out);
/* kernel_call's eval rule, a REGION's. (eval.c) */
ax_status ax_kernel_eval(const ax_eval_args *args);
/* Whether it has a grid, or blocks, and its body as one without (expand.c): (consts.., refs of the whole operands, of the results,
   of scratch) -> (). in: the types of the equation's operands. The caller's. */
/* Whether an index map takes the consts. */
static inline bool ax_map_takes_consts(const ax_kernel_params *params, const ax_program *map) {
  return map->in_count > params->grid.count;
}
bool ax_kernel_has_grid(const ax_kernel_params *params);
AX_MUST_USE ax_status ax_kernel_expand(const ax_kernel_params *params, uint32_t in_count, const ax_type *in, ax_program **out);
/* The axes of devices over which bodies signal or copy. */
ax_axis_set ax_kernel_exchanges(const ax_kernel_params *params);

#endif
