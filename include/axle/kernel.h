/* Kernels: programs for the cores of a device, over memory that they read and write, with semaphores, barriers and copies that go
   on by themselves. As jax.experimental.pallas; docs/kernels.md has pictures.

   A kernel's body is a C function traced as all others (axle/program.h), whose operands are refs: memory of a dtype and a shape in
   a memory space. All operations of axle/ops.h work on values; the functions below read refs into values, write values into refs,
   make views of refs, copy between refs, and signal and wait. cond, while, fori and scan may stand in a body, with refs of the
   trace around used inside.

     static AX_BODY(add_kernel) { ax_ref_store(in[2], ax_add(ax_ref_load(in[0]), ax_ref_load(in[1]))); }
     ..
     ax_kernel_call((&(ax_kernel){.grid = {AX_DIMS(8)}, .in_specs = {..}, .out_specs = {..}, .outs = {AX_TYPES(..)}}),
                    AX_FN(add_kernel, 3, 0), in, out);

   Threads and time. Each core, each warpgroup and each copy under way goes on by itself. Only semaphores, barriers and the start of
   a copy order what two of them do. Two accesses of the same bytes that are not ordered, one of them a write, are a race, and the
   result is undefined; ax_check (axle/check.h) proves that there is no race, or shows one. Undefined are also the bytes of a result
   that no body writes, and memory that is read before it is written: they hold whatever was there before, which may differ from run
   to run. A run does not check that semaphores are 0 at the end; ax_check does.

   Errors of all functions here are the trace's, as of other operations. */
#ifndef AXLE_KERNEL_H
#define AXLE_KERNEL_H

#include "axle/program.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

/* --- Types --- */
/* A ref of this dtype, shape and space; {0}-like (AX_NO_DTYPE) for what ax_array_type refuses. */
ax_type ax_ref_type(ax_space space, ax_dtype dtype, uint32_t rank, const int64_t *dims);
ax_type ax_semaphore_type(uint32_t rank, const int64_t *dims);     /* counts; cores signal them and wait for them */
ax_type ax_dma_semaphore_type(uint32_t rank, const int64_t *dims); /* counts of bytes; copies signal them */
ax_type ax_barrier_type(uint32_t rank, const int64_t *dims);       /* phases; their scratch says how many arrivals complete one */
#ifndef __cplusplus /* axle::vmem, smem and hbm there */
#define AX_VMEM(...) ax_listed_ref_type(AX_SPACE_VMEM, (uint32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})
#define AX_SMEM(...) ax_listed_ref_type(AX_SPACE_SMEM, (uint32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})
#define AX_HBM(...) ax_listed_ref_type(AX_SPACE_HBM, (uint32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})
static inline ax_type ax_listed_ref_type(ax_space space, uint32_t count, const int64_t *dtype_and_dims) {
  return ax_ref_type(space, (ax_dtype)dtype_and_dims[0], count - 1, dtype_and_dims + 1);
}
#endif

/* --- Targets: the capacity and alignment of each memory space of a machine --- */
typedef struct ax_target_space {
  char called[16];    /* the machine's name for it: "SMEM" */
  int64_t bytes;      /* capacity of a core; HBM: of a device; -1: no limit. Semaphores: bytes of one */
  int64_t align;      /* each ref begins at a multiple, and is rounded up to one */
  int64_t count;      /* of semaphores and barriers; -1: no limit */
  ax_space within;    /* it is part of that space's memory; AX_SPACE_NONE: memory of its own */
  bool indirect;      /* cores cannot load and store there: copies alone */
} ax_target_space;
typedef struct ax_target { /* a plain value */
  ax_target_space space[AX_SPACE_COUNT]; /* space[AX_SPACE_NONE]: semaphores and barriers */
} ax_target;
/* Reads a target: a name, "tpu-like" (a core of a TPU: 64 MiB VMEM) or "h200" (a block of an H200: 227 KiB SMEM), or entries
   separated by `;` or line ends, such as
     vmem called=VMEM bytes=16MiB align=4096; hbm direct=no; smem within=vmem; semaphores count=2048 bytes=8
   KiB, MiB, GiB and KB, MB, GB are units; a field that is not given has no limit. AX_INVALID_ARGUMENT: an unknown or malformed
   entry, which the message names. */
AX_MUST_USE ax_status ax_target_parse(const char *text, ax_target *out);

/* --- Views: other refs of the same memory. Also of semaphores and barriers. --- */
/* ref: T[d..] -> T[sizes..], from `starts` on (scalars of s32, or numbers: one a dimension). A start that is known and leaves the
   ref is an error; one that is not is found when it runs. As ref.at[pl.ds(start, size), ..]. */
ax_value ax_ref_slice(ax_value ref, uint32_t start_count, const ax_value *starts, uint32_t size_count, const int64_t *sizes);
/* The same with every strides[d]-th element: sizes are those of the result. */
ax_value ax_ref_strided_slice(ax_value ref, uint32_t start_count, const ax_value *starts, uint32_t size_count,
                              const int64_t *sizes, uint32_t stride_count, const int64_t *strides);
/* ref: T[n,d..] -> T[d..], the one at `index` of the first dimension. As ref.at[index]. */
ax_value ax_ref_at(ax_value ref, ax_value index);
ax_value ax_ref_transpose(ax_value ref, uint32_t rank, const int64_t *permutation);
ax_value ax_ref_reshape(ax_value ref, uint32_t rank, const int64_t *dims); /* only of dense memory: a dimension that is split or
                                                                              joined must lie in one piece */

/* --- Reading and writing: by the core itself, before it goes on. Refs in HBM or ANY are refused on targets whose cores cannot
   access them (ax_check says so). --- */
ax_value ax_ref_load(ax_value ref);
void ax_ref_store(ax_value ref, ax_value value); /* value: a number, a scalar (broadcast), or of the ref's shape */
ax_value ax_ref_swap(ax_value ref, ax_value value); /* gives the value that was there before */
void ax_ref_add(ax_value ref, ax_value value); /* as ref[...] += value, which is not atomic; jax's addupdate */
/* mask: bool of the ref's shape. Where it is false nothing is read and `other` (a number, a scalar or of the shape) is given;
   nothing is written. */
ax_value ax_ref_load_masked(ax_value ref, ax_value mask, ax_value other);
void ax_ref_store_masked(ax_value ref, ax_value mask, ax_value value);
ax_value ax_ref_swap_masked(ax_value ref, ax_value mask, ax_value value, ax_value other);

/* --- The target of an operation or a copy: the own core, or another --- */
/* {0}: the own core of the own device. `axes` names axes of devices and of cores ("x", "x,core"), `coordinates` has a scalar of s32
   or a number for each, {AX_VALUES(i, core)}; another number of them is an error. Along all others it is the own one. `device`,
   where `axes` is NULL and `logical` is set, is the number of a device, row-major over all axes of devices in scope (jax's
   DeviceIdType.LOGICAL; the other way is its MESH). */
typedef struct ax_target_core {
  const char *axes;
  ax_value_list coordinates;
  bool logical;
  ax_value device;
} ax_target_core;

/* --- Semaphores --- */
void ax_semaphore_signal(ax_value semaphore, ax_value amount, const ax_target_core *to); /* adds; to NULL: the own. amount: s32 or a
                                                                                            number, >= 0 */
void ax_semaphore_wait(ax_value semaphore, ax_value amount); /* waits until the count is at least `amount`, and subtracts it */
ax_value ax_semaphore_read(ax_value semaphore);              /* s32[]: the count now. It orders nothing: only a wait makes the
                                                                writes before a signal visible */
/* The semaphore of this device that all kernels with one collective_id share. Devices use it to meet before they touch each other's
   memory. */
ax_value ax_barrier_semaphore(void);

/* --- Barriers: phases of a fixed number of arrivals (mbarrier) --- */
void ax_barrier_arrive(ax_value barrier);
void ax_barrier_wait(ax_value barrier); /* a core's n-th wait: until the n-th phase is complete */

/* --- Copies: they go on by themselves. Source and destination have one dtype and shape. --- */
typedef struct ax_copy_options {
  const ax_value *received; /* DMA semaphore on the destination's core that is increased by the copy's bytes when all is written;
                               NULL: none */
  const ax_value *sent;   /* the same on this core, when all is read; NULL: none */
  const ax_value *barrier; /* barrier of this core at which the copy arrives once when all is written (GMEM -> SMEM); NULL: none */
  const ax_value *predicate; /* bool[]: false: there is no copy, and nothing is signalled; NULL: true */
  const ax_target_core *to; /* the core that `destination` (and `received`) belongs to; NULL: the own */
  bool grouped;       /* it belongs to the copies that ax_copy_commit_group makes a group of (SMEM -> GMEM) */
} ax_copy_options;
void ax_copy_start(ax_value source, ax_value destination, const ax_copy_options *options);
/* Waits until `semaphore` has as many bytes as `ref` has, and takes them off: as wait, wait_send, wait_recv of jax's async
   copies. */
void ax_copy_wait(ax_value semaphore, ax_value ref);
/* The whole of it: pltpu.sync_copy. Needs no semaphore. */
void ax_copy(ax_value source, ax_value destination);
void ax_copy_commit_group(void);
/* Waits until at most `pending` of the groups that this core committed are under way; read_only: until their sources have been
   read. */
void ax_copy_wait_groups(int64_t pending, bool read_only);
/* Makes this core's stores to VMEM (SMEM on GPUs) visible to the copies that it starts after this call. */
void ax_commit_smem(void);

/* --- The place of this core in the grid --- */
ax_value ax_program_id(uint32_t dimension);     /* s32[]: of the grid; in a pipeline's body, of the pipeline's */
ax_value ax_num_programs(uint32_t dimension);   /* s32[] */
/* A coordinate of the core, as of the device: ax_axis_index("core"). */
void ax_set_max_registers(int64_t count, bool increase); /* a hint */
void ax_kernel_trace_begin(const char *name); /* a named span; the findings of ax_check name the spans that they are in. Spans
                                                 nest */
void ax_kernel_trace_end(void);

/* --- Scratch --- */
/* Memory, semaphores or barriers that a kernel or a scope has beside its operands. */
typedef struct ax_scratch {
  ax_type type;      /* ax_ref_type, ax_semaphore_type, .. */
  int64_t arrivals;  /* of barriers: arrivals that complete a phase */
  const char *core;  /* of a kernel over several core meshes: the core mesh that owns it; NULL: each has its own, but HBM is one for
                        the whole device */
  bool shared;       /* one for all cores of a device (jax's VMEM_SHARED) */
} ax_scratch;
typedef struct ax_scratch_list { /* {AX_SCRATCH({.type = AX_VMEM(AX_F32, 8)})}, {AX_SCRATCH(sum, done)} */
  uint32_t count;
  const ax_scratch *v;
} ax_scratch_list;
#ifndef __cplusplus
#define AX_SCRATCH(...) (uint32_t)(sizeof((ax_scratch[]){__VA_ARGS__}) / sizeof(ax_scratch)), ((const ax_scratch[]){__VA_ARGS__})
#endif
/* Runs `body` on refs that are made for it and gone after it: body: (one ref for each scratch) -> results, which are values.
   `along` names core axes whose cores come here together and get one scratch for all ("wg"); NULL: each core its own. As
   pl.run_scoped, collective_axes. */
void ax_run_scoped(uint32_t count, const ax_scratch *scratch, const char *along, ax_fn body, uint32_t out_count, ax_value *out);

/* --- Block specs --- */
/* How an operand or result of a kernel over a grid is cut into blocks. {0}: the whole of it, in the mesh's default space. */
typedef struct ax_block_spec {
  ax_function index_map; /* (program ids: s32[] each) -> (index of the block in each dimension: s32[]); NULL: always 0, the first. It may
                            read values of the trace around, as a body does: tables of a grouped product, pages of a cache; scalar
                            prefetch, pltpu.PrefetchScalarGridSpec */
  void *context;         /* index_map's */
  ax_dim_list block;     /* shape of a block, {AX_DIMS(8, 128)}, with an entry for each dimension of the operand; {0}: the whole.
                            An entry of 0: the dimension is squeezed, of size 1 and not there in the ref */
  ax_space space;        /* AX_SPACE_NONE: VMEM; ANY, HBM: pinned there, the whole of it is what the body gets */
  int64_t delay_release; /* of pipelines: -1 + own, 0: the pipeline's (ax_pipeline_options) */
} ax_block_spec;
typedef struct ax_block_spec_list { /* {AX_BLOCK_SPECS({.block = {AX_DIMS(8)}}, {.space = AX_SPACE_ANY})}, {AX_BLOCK_SPECS(x, y)} */
  uint32_t count;
  const ax_block_spec *v;
} ax_block_spec_list;
#ifndef __cplusplus
#define AX_BLOCK_SPECS(...) \
  (uint32_t)(sizeof((ax_block_spec[]){__VA_ARGS__}) / sizeof(ax_block_spec)), ((const ax_block_spec[]){__VA_ARGS__})
#endif

/* --- Kernels --- */
typedef enum ax_semantics { AX_ARBITRARY, AX_PARALLEL } ax_semantics; /* of a grid's dimension: in order; or in any, by several
                                                                         cores */
typedef struct ax_semantics_list { /* {AX_SEMANTICS(AX_PARALLEL, AX_ARBITRARY)} */
  uint32_t count;
  const ax_semantics *v;
} ax_semantics_list;
#ifndef __cplusplus
#define AX_SEMANTICS(...) \
  (uint32_t)(sizeof((ax_semantics[]){__VA_ARGS__}) / sizeof(ax_semantics)), ((const ax_semantics[]){__VA_ARGS__})
#endif

typedef struct ax_alias_list { /* {AX_ALIASES({0, 1})}: of operand 0 and result 1 */
  uint32_t count;
  const uint32_t (*v)[2];
} ax_alias_list;
typedef struct ax_type_list { /* {AX_TYPES(AX_TYPE(AX_F32, 8))} */
  uint32_t count;
  const ax_type *v;
} ax_type_list;
#ifndef __cplusplus
#define AX_ALIASES(...) (uint32_t)(sizeof((uint32_t[][2]){__VA_ARGS__}) / sizeof(uint32_t[2])), ((const uint32_t[][2]){__VA_ARGS__})
#endif

/* Options of both kinds of kernels: over a grid, and over core meshes. */
typedef struct ax_kernel_options {
  const char *name;      /* NULL: "kernel" */
  ax_scratch_list scratch;
  ax_alias_list aliases; /* (operand, result): both are one memory; the operand is consumed */
  const char *target;    /* of capacities and alignment: "tpu-like", "h200", or the text of one (ax_target_parse); NULL: no
                            limits */
  bool interpret;        /* run as a plain program: cores one after the other, each copy complete as soon as it is started, and no
                            wait waits (ax_check finds those that would never end). AX_INVALID_ARGUMENT where one core waits for
                            another */
  bool debug;            /* the kernel's text is printed when it is compiled, by ax_runtime_options.print */
  double flops, bytes, transcendentals; /* cost estimate; 0: counted */
  const char *metadata;  /* "key=value, .."; carried along */
  const char *compiler_params; /* likewise */
  int64_t collective_id; /* selects the barrier semaphore; 0 by default */
} ax_kernel_options;

/* A kernel over a grid: the body is run once for each of the grid's points, in row-major order along AX_ARBITRARY dimensions. */
typedef struct ax_kernel {
  ax_dim_list grid;                       /* its sizes; {0}: one point */
  ax_semantics_list semantics;            /* of each dimension of the grid; {0}: all AX_ARBITRARY */
  ax_block_spec_list in_specs, out_specs; /* of each operand, and of each result; {0}: all {0} */
  ax_type_list outs;                      /* arrays: dtype and shape of the results */
  ax_kernel_options options; /* {0}: the defaults */
} ax_kernel;
/* body: (refs of the blocks of operands, of results, of scratch) -> (). in: in_count arrays; out: kernel->outs.count. As
   pl.pallas_call.
   body.in_count must be the number of operands, results and scratch together. A kernel that is written out in the call stands in
   parentheses, because macros split arguments at the commas of braces: ax_kernel_call((&(ax_kernel){..}), ..). Errors besides:
   semantics of another number than the grid has dimensions, specs than there are operands or results, sizes of a block than its
   operand has dimensions. */
void ax_kernel_call(const ax_kernel *kernel, ax_fn body, uint32_t in_count, const ax_value *in, uint32_t out_count, ax_value *out);

/* A mesh of cores of a device. */
typedef struct ax_core_mesh {
  const char *core;   /* the type: "tensorcore", "scalar_subcore", "vector_subcore", "warpgroup", or any other word */
  ax_mesh mesh;       /* named axes of cores; none: one core */
  const char *threads; /* axes of them whose cores are threads of one: they have VMEM, SMEM and semaphores together ("wg"); NULL:
                          none */
  ax_space space;     /* where operands and results are; AX_SPACE_NONE: AX_SPACE_ANY */
} ax_core_mesh;
/* Several functions, each on its core mesh, at once on each device, over the same operands, results and scratch: bodies[i]: (refs
   of the whole operands, of the results, of scratch) -> (). outs: arrays; or refs, in whose space bodies have these results. As
   jax's mpmd_map: docs/mpmd.md. */
void ax_mpmd_map(uint32_t mesh_count, const ax_core_mesh *meshes, uint32_t body_count, const ax_fn *bodies,
                 const ax_kernel_options *options, uint32_t in_count, const ax_value *in, uint32_t type_count, const ax_type *outs,
                 uint32_t out_count, ax_value *out);

/* --- Pipelines, within a kernel: written with the above (src/kernel/pipeline.c) --- */
typedef struct ax_pipeline_options {
  ax_dim_list grid;
  uint32_t in_count, out_count;
  ax_block_spec_list in_specs, out_specs; /* in_count and out_count of them; {0}: all {0} */
  int64_t max_concurrent_steps; /* 0: 1, or 2 of the warp-specialised one */
  int64_t delay_release;        /* steps to wait before a slot is used again */
} ax_pipeline_options;
/* refs: in_count + out_count refs in HBM. body: (refs of the slots of operands, results) -> (), once a step. As emit_pipeline of
   jax's pallas.mosaic_gpu. */
void ax_emit_pipeline(const ax_pipeline_options *options, ax_fn body, const ax_value *refs);

typedef struct ax_warp_pipeline_options {
  ax_pipeline_options pipeline;
  int64_t memory_registers;
  const char *wg_axis;
  int64_t compute_wgs;
  int64_t memory_thread; /* index along wg_axis; -1: the last */
  bool manual_consumed_barriers; /* the body gets one barrier an operand, after the refs, and arrives at it itself */
  uint32_t carry_count; /* values that the body takes last and gives; carry_init makes the first ones, and carry_final gets the last
                           ones */
  ax_fn carry_init;     /* () -> (carry..) */
  ax_fn carry_final;    /* (carry..) -> () */
} ax_warp_pipeline_options;
void ax_emit_pipeline_warp_specialized(const ax_warp_pipeline_options *options, ax_fn body, const ax_value *refs);

#pragma GCC visibility pop

#ifndef __cplusplus /* lists, with their counts (axle/type.h) */
#define ax_ref_type(space, dtype, dims) (ax_ref_type)(space, dtype, AX_EXACTLY(dims))
#define ax_semaphore_type(dims) (ax_semaphore_type)(AX_EXACTLY(dims))
#define ax_dma_semaphore_type(dims) (ax_dma_semaphore_type)(AX_EXACTLY(dims))
#define ax_barrier_type(dims) (ax_barrier_type)(AX_EXACTLY(dims))
#define ax_ref_transpose(ref, permutation) AX_LINED(ref_transpose, ref, AX_COUNTED(int64_t, permutation))
#define ax_ref_reshape(ref, dims) AX_LINED(ref_reshape, ref, AX_EXACTLY(dims))
#define ax_run_scoped(scratch, along, body, out) \
  AX_LINED_VOID(run_scoped, AX_COUNTED(ax_scratch, scratch), along, body, AX_COUNTED(ax_value, out))
#define ax_kernel_call(kernel, body, in, out) \
  AX_LINED_VOID(kernel_call, kernel, body, AX_COUNTED(ax_value, in), AX_COUNTED(ax_value, out))
#define ax_mpmd_map(meshes, bodies, options, in, outs, out)                                                               \
  AX_LINED_VOID(mpmd_map, AX_EXACTLY(meshes), AX_COUNTED(ax_fn, bodies), options, AX_COUNTED(ax_value, in), \
                AX_EXACTLY(outs), AX_COUNTED(ax_value, out))
#define ax_ref_slice(ref, starts, sizes) AX_LINED(ref_slice, ref, AX_COUNTED(ax_value, starts), AX_COUNTED(int64_t, sizes))
#define ax_ref_strided_slice(ref, starts, sizes, strides) \
  AX_LINED(ref_strided_slice, ref, AX_COUNTED(ax_value, starts), AX_COUNTED(int64_t, sizes), AX_COUNTED(int64_t, strides))
#endif

#ifndef AXLE_NO_LINES /* axle/line.h */
#define ax_target_parse(...) AX_LINED_STATUS(target_parse, __VA_ARGS__)
#define ax_ref_at(ref, index) AX_LINED(ref_at, ref, AX_X(index))
#define ax_ref_load(...) AX_LINED(ref_load, __VA_ARGS__)
#define ax_ref_store(ref, value) AX_LINED_VOID(ref_store, ref, AX_X(value))
#define ax_ref_swap(ref, value) AX_LINED(ref_swap, ref, AX_X(value))
#define ax_ref_add(ref, value) AX_LINED_VOID(ref_add, ref, AX_X(value))
#define ax_ref_load_masked(ref, mask, other) AX_LINED(ref_load_masked, ref, mask, AX_X(other))
#define ax_ref_store_masked(ref, mask, value) AX_LINED_VOID(ref_store_masked, ref, mask, AX_X(value))
#define ax_ref_swap_masked(ref, mask, value, other) AX_LINED(ref_swap_masked, ref, mask, AX_X(value), AX_X(other))
#define ax_semaphore_signal(semaphore, amount, ...) AX_LINED_VOID(semaphore_signal, semaphore, AX_X(amount), __VA_ARGS__)
#define ax_semaphore_wait(semaphore, amount) AX_LINED_VOID(semaphore_wait, semaphore, AX_X(amount))
#define ax_semaphore_read(...) AX_LINED(semaphore_read, __VA_ARGS__)
#define ax_barrier_semaphore() ax_lined_value((ax_barrier_semaphore)(), AX_CALL("barrier_semaphore"))
#define ax_barrier_arrive(...) AX_LINED_VOID(barrier_arrive, __VA_ARGS__)
#define ax_barrier_wait(...) AX_LINED_VOID(barrier_wait, __VA_ARGS__)
#define ax_copy_start(...) AX_LINED_VOID(copy_start, __VA_ARGS__)
#define ax_copy_wait(...) AX_LINED_VOID(copy_wait, __VA_ARGS__)
#define ax_copy(...) AX_LINED_VOID(copy, __VA_ARGS__)
#define ax_copy_commit_group() ((ax_copy_commit_group)(), ax_stamp(AX_CALL("copy_commit_group")))
#define ax_copy_wait_groups(...) AX_LINED_VOID(copy_wait_groups, __VA_ARGS__)
#define ax_commit_smem() ((ax_commit_smem)(), ax_stamp(AX_CALL("commit_smem")))
#define ax_program_id(...) AX_LINED(program_id, __VA_ARGS__)
#define ax_num_programs(...) AX_LINED(num_programs, __VA_ARGS__)
#define ax_set_max_registers(...) AX_LINED_VOID(set_max_registers, __VA_ARGS__)
#define ax_kernel_trace_begin(...) AX_LINED_VOID(kernel_trace_begin, __VA_ARGS__)
#define ax_kernel_trace_end() ((ax_kernel_trace_end)(), ax_stamp(AX_CALL("kernel_trace_end")))
#define ax_emit_pipeline(...) AX_LINED_VOID(emit_pipeline, __VA_ARGS__)
#define ax_emit_pipeline_warp_specialized(...) AX_LINED_VOID(emit_pipeline_warp_specialized, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
