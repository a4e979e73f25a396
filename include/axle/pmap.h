/* pmap: a function run on as many devices as a dimension of its operands is long, each on one slice. As jax.pmap; docs/sharding.md
   has an example.

   It is built on shard_map (axle/collectives.h): a pmap is an unchecked shard_map over a mesh of one axis, whose blocks lose the
   dimension of size 1 that they have along it. So it may stand wherever operations do, in bodies of loops and conditionals, in
   another pmap, and is differentiated, batched and pruned as shard_maps are; programs show it as one. */
#ifndef AXLE_PMAP_H
#define AXLE_PMAP_H

#include "axle/exec.h"
#include "axle/transform.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

/* {0}: all operands and results are mapped along dimension 0. */
typedef struct ax_pmap_options {
  const char *axis_name; /* of the mapped axis, for collectives over it; NULL: an unused name ("pmap", "pmap_1", ..) */
  ax_dim_list in_axes;   /* the mapped dimension of each operand; {0}: all 0; AX_NOT_MAPPED: none, each device gets all of it */
  ax_dim_list out_axes;  /* where each result gets it; {0}: all 0; AX_NOT_MAPPED: nowhere, the result is the first device's */
  int64_t axis_size;     /* the mapped operands' size; 0: taken from them. Without a mapped operand it must be given */
  ax_dim_list devices;   /* the ids of devices, as many as the axis is long; {0}: the first there are */
} ax_pmap_options;

/* Runs `f` on axis_size devices; device i gets slice i of each mapped operand. in: f.in_count values, out: f.out_count.
     in[k]: T[.., n, ..] mapped along in_axes[k]  ->  f's operand T[.., ..]   f's result R[..]  ->  out[k]: R[.., n, ..]
   options may be NULL: {0}. The axis is unchecked: a result with AX_NOT_MAPPED that devices differ in is taken from the first of
   them, and derivatives are those of ax_shard_map_unchecked and of jax.pmap: the transpose of psum is psum, a mapped result's
   cotangent goes to its device, the cotangent of a result with AX_NOT_MAPPED is shared out equally among the devices, and that of
   such an operand is the sum of theirs. A value of the enclosing trace that `f` uses is an operand with AX_NOT_MAPPED. Static
   arguments are f.context.
   A pmap in a pmap takes axis_size devices for each of those around it: a program needs the product (ax_program_devices). All
   devices of a runtime are alike, and are numbered by their place on the mesh. Their choice and order change no result, so
   `devices` is only checked. Only the outermost pmap may give it.
   Errors (kept by the trace): an axis_name that is no name or is in use around this one; in_axes of another number than there are
   operands, out_axes than results; an axis outside the rank of its operand or result; no mapped operand and no axis_size; sizes of
   mapped dimensions that do not agree with each other (all are listed), with axis_size or with the number of devices; a size of 0;
   device ids below 0 or twice, or where axes are in scope already; more than AX_MAX_AXES axes; the function's own. When compiled:
   more devices than the runtime allows
   (ax_runtime_options.max_devices). */
void ax_pmap(ax_fn f, uint32_t in_count, const ax_value *in, uint32_t out_count, ax_value *out, const ax_pmap_options *options);

/* ax_pmap as a function to be passed on:
     ax_jit(runtime, AX_PMAPPED(&options, AX_FN(step, 2, 1)), types, NULL, &executable)
   It is good as long as the block it stands in. ax_call_pmapped is that function, an ax_pmapped its context. */
typedef struct ax_pmapped {
  const ax_pmap_options *options; /* may be NULL */
  ax_fn body;
  const char *call; /* where it was made (axle/line.h), as errors and equations say it; NULL: nowhere */
} ax_pmapped;
void ax_call_pmapped(const ax_value *in, ax_value *out, void *pmapped);
static inline ax_fn ax_pmapped_function(ax_pmapped *pmapped) {
  ax_fn function = pmapped->body;
  function.function = ax_call_pmapped;
  function.context = pmapped;
  return function;
}
#ifdef AXLE_NO_LINES
#define AX_PMAPPED_AT NULL
#else
#define AX_PMAPPED_AT AX_CALL("pmap")
#endif
#ifndef __cplusplus
#define AX_PMAPPED(options_, ...) ax_pmapped_function(&(ax_pmapped){.options = (options_), .body = __VA_ARGS__, .call = AX_PMAPPED_AT})
#endif

/* A shard_map on one device: runs `f` on the blocks that the specs cut, with mesh and specs as ax_shard_map's. Each axis of the
   mesh becomes a vmapped dimension, and collectives over it stay within an array. As vtile_by_mesh of JAX's xmap: a function
   written for a mesh can be tried, or used, without one. Types and derivatives are those of ax_vmap.
   Errors (kept by the trace): those of ax_shard_map, except that a result is refused where it depends on an operand that is split
   over an axis that the result's spec does not name; those of ax_vmap; an array that has more than AX_MAX_RANK dimensions with the
   axes that it is split over. */
void ax_vtile(const ax_mesh *mesh, const char *specs, ax_fn f, uint32_t in_count, const ax_value *in, uint32_t out_count,
              ax_value *out);

/* The number of devices a program needs: those of the meshes of its shard_maps, constraints and pmaps. Nested ones are multiplied;
   of those beside one another the largest counts. 1 where there are none, and for NULL. A compiled program may take more: all that
   are nested equally deep are then over one mesh (ax_program_partition). INT64_MAX where there are more than that, or no memory to
   count them. */
int64_t ax_program_devices(const ax_program *program);

/* As jax.device_put_replicated: host T[d..] becomes T[n, d..] with each [i] the host array, n being the devices along the axes that
   `spec` names, over which dimension 0 is split ("i", "i+j"; "": n is 1); devices along other axes hold the same. So it is a mapped
   operand of a pmap over these axes whose slices are all alike. The elements are copied once, and all parts are that copy; a run
   that the array is donated to makes its own copy. host is borrowed for the call; `*out` is owned by the caller. Any thread.
   AX_INVALID_ARGUMENT: as ax_device_put; a spec of more than one entry; AX_MAX_RANK dimensions already. */
AX_MUST_USE ax_status ax_replicate(ax_runtime *runtime, const ax_mesh *mesh, const char *spec, const ax_host_array *host,
                                   ax_array **out);

/* --- The shardings of jax.pmap's arrays, as text and as meshes and specs --- */

/* How an array lies over devices: a mesh, a spec (an entry for each dimension), and the dimensions that a device's part lacks,
   since the device has one index of them. A plain value. */
typedef struct ax_pmap_sharding {
  ax_mesh mesh;
  ax_spec spec;       /* rank is the array's */
  uint32_t unstacked; /* bit d: dimension d is cut over one axis, of its own size, and parts do not have it */
} ax_pmap_sharding;
/* Reads JAX's text: "ShardingSpec((Unstacked(4), NoSharding(), Chunked(2,3)), (ShardedAxis(axis=0), Replicated(replicas=2),
   ShardedAxis(axis=1), ShardedAxis(axis=2)))". The first list has an entry for each dimension, of which Unstacked is one cut and
   Chunked one for each number, major first; the second says what the devices, in order, go along: a cut, by its number, each once,
   or replicas. The mesh has an axis for each of these, "s2" for cut 2, "r0" and on for replicas. AX_INVALID_ARGUMENT: other text,
   at what it says; cuts that are not there, twice or left out; more than AX_MAX_RANK dimensions, AX_MAX_AXES cuts or axes, 2^31
   devices. `*out` is all 0 on failure. Any thread, as all here. */
AX_MUST_USE ax_status ax_pmap_sharding_parse(const char *text, ax_pmap_sharding *out);
/* Writes it; an unstacked dimension without a bit is Chunked. `*out`: ax_string_free. AX_INVALID_ARGUMENT: an unsound struct.
   AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_pmap_sharding_print(const ax_pmap_sharding *sharding, char **out);
/* The sharding of a pmap's operand or result of `rank` dimensions, among them the mapped one, `axis` (below 0: from the end);
   AX_NOT_MAPPED: no dimension is mapped. devices: the number that the pmap and those inside it take, a multiple of axis_size.
   AX_INVALID_ARGUMENT: devices that are no multiple of it; an axis outside the rank; more than 2^31 devices. */
AX_MUST_USE ax_status ax_pmap_sharding_of(int64_t devices, int64_t axis_size, uint32_t rank, int axis, ax_pmap_sharding *out);
/* Gives the part of an array of type `whole` (axis sets are ignored) that `device`, by its number, holds: *part is its type,
   without the unstacked dimensions, and `start` its first element (an index for each dimension of the whole). AX_INVALID_ARGUMENT:
   an unsound struct or type; another rank; an unstacked dimension of another size; a dimension that its cuts do not divide; no such
   device. */
AX_MUST_USE ax_status ax_pmap_sharding_part(const ax_pmap_sharding *sharding, const ax_type *whole, int64_t device, ax_type *part,
                                            int64_t *start);

#pragma GCC visibility pop

#ifndef __cplusplus /* lists, with their counts (axle/type.h) */
#define ax_pmap(f, in, out, ...) AX_LINED_VOID(pmap, f, AX_COUNTED(ax_value, in), AX_COUNTED(ax_value, out), __VA_ARGS__)
#define ax_vtile(mesh, specs, f, in, out) AX_LINED_VOID(vtile, mesh, specs, f, AX_COUNTED(ax_value, in), AX_COUNTED(ax_value, out))
#endif

#ifndef AXLE_NO_LINES /* axle/line.h */
#define ax_pmap_sharding_parse(...) AX_LINED_STATUS(pmap_sharding_parse, __VA_ARGS__)
#define ax_pmap_sharding_print(...) AX_LINED_STATUS(pmap_sharding_print, __VA_ARGS__)
#define ax_pmap_sharding_of(...) AX_LINED_STATUS(pmap_sharding_of, __VA_ARGS__)
#define ax_pmap_sharding_part(...) AX_LINED_STATUS(pmap_sharding_part, __VA_ARGS__)
#define ax_replicate(...) AX_LINED_STATUS(replicate, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
