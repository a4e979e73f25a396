/* Shardings: which device, by its id, has which block of an array. Objects, made once, that do not change, as those of
   jax.sharding; docs/sharding.md has an example of each kind.

   Whatever it was made from, a sharding is a mesh, a spec over it, and the ids of the devices that stand at the mesh's places, in
   order:

     named         mesh and spec are given                                           jax.sharding.NamedSharding
     single        a mesh of one device                                              SingleDeviceSharding
     replicated    all devices have all                                              GSPMDSharding.get_replicated
     tiled         XLA's text: {devices=[4,1,2]<=[8] last_tile_dim_replicate}        GSPMDSharding, PositionalSharding
     pmap          of cuts and replicas (axle/pmap.h)                                PmapSharding

   Devices are all alike and share one memory. The order of the ids therefore decides only under which id a block is found. It
   changes no result, no cost and no collective, whose peers are places on the mesh.

   Every function may be called from any thread. */
#ifndef AXLE_SHARDING_H
#define AXLE_SHARDING_H

#include "axle/exec.h"
#include "axle/pmap.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

/* Reference-counted. */
typedef struct ax_sharding ax_sharding;

/* {0}: devices 0, 1, .. in order, as many as there are places. */
typedef struct ax_sharding_options {
  ax_dim_list devices;     /* the ids of devices, {AX_DIMS(0, 2, 1, 3)}, in the order of the places, as many as there are; {0}: 0
                              and on */
  uint32_t device_count;   /* as many as there are places; 0: not said */
  const char *memory_kind; /* NULL or "device": there is no other memory */
} ax_sharding_options;

/* Each of these: `*out` is owned by the caller, NULL on failure. options may be NULL: {0}. AX_INVALID_ARGUMENT: ids below 0, above
   2^31 - 1 or twice; another number of them than there are places; a device_count that is another; what the function says.
   AX_ABSENT: a memory kind other than "device". AX_OUT_OF_MEMORY. */
/* mesh NULL: one device. AX_INVALID_ARGUMENT: an unsound mesh; a spec that ax_spec_parse refuses. */
AX_MUST_USE ax_status ax_sharding_named(const ax_mesh *mesh, const char *spec, const ax_sharding_options *options,
                                        ax_sharding **out);
/* All of an array on one device. AX_INVALID_ARGUMENT: an id below 0 or above 2^31 - 1. */
AX_MUST_USE ax_status ax_sharding_single(int64_t device, ax_sharding **out);
/* All of an array on each of options->devices, or else on as many as options->device_count says; 0: one. */
AX_MUST_USE ax_status ax_sharding_replicated(const ax_sharding_options *options, ax_sharding **out);
/* From XLA's text: "{devices=[2,2]0,2,1,3}", "{devices=[2,2]<=[2,2]T(1,0)}", with " last_tile_dim_replicate" or "
   last_tile_dims={replicated}" when the last tile dimension is of devices with the same block; "{replicated}" and "{maximal
   device=3}". The numbers are places in options->devices, or ids without these; device_count is asked for by "{replicated}" (0: one
   device), and checked against the others, which need no count. Where a mesh in the order of the numbers has these blocks, that and
   a spec over its axes "t0", "t1" and on are the sharding's; else the mesh is the tile dimensions and the numbers its devices' ids.
   A tiled sharding is of arrays with as many dimensions as there are tile dimensions without the last of replicas.
   AX_INVALID_ARGUMENT: other text, the message says where it stops making sense; a number twice, or beyond the devices; more than
   AX_MAX_RANK tiled dimensions, or more than AX_MAX_AXES axes. AX_ABSENT: manual, unreduced and unknown shardings, tuples. */
AX_MUST_USE ax_status ax_sharding_tiled(const char *text, const ax_sharding_options *options, ax_sharding **out);
/* From a pmap's sharding. An unstacked dimension is one of size 1 in the block here. AX_INVALID_ARGUMENT: an unsound struct. */
AX_MUST_USE ax_status ax_sharding_pmap(const ax_pmap_sharding *sharding, const ax_sharding_options *options, ax_sharding **out);
ax_sharding *ax_sharding_retain(ax_sharding *sharding);
void ax_sharding_release(ax_sharding *sharding);

/* Borrowed. The mesh numbers places, which are not ids where others stand there (ax_sharding_device). */
const ax_mesh *ax_sharding_mesh(const ax_sharding *sharding);
const ax_spec *ax_sharding_spec(const ax_sharding *sharding);
int64_t ax_sharding_device_count(const ax_sharding *sharding);
/* The id of the device at a place; -1: there is no such place. */
int64_t ax_sharding_device(const ax_sharding *sharding, int64_t place);
/* The place of a device, by its id; -1: it is none of the sharding's. */
int64_t ax_sharding_place(const ax_sharding *sharding, int64_t device);
/* The number of different blocks of an array; and whether there is one only: is_fully_replicated. */
int64_t ax_sharding_block_count(const ax_sharding *sharding);
bool ax_sharding_is_replicated(const ax_sharding *sharding);
/* The same devices have the same blocks, of arrays of every shape that both can lay out, whatever axes are called and however the
   sharding was made: is_equivalent_to. Time grows with the devices where these are in another order or the meshes differ. */
bool ax_sharding_equal(const ax_sharding *a, const ax_sharding *b);

/* The type of a block of an array of type `whole`, whose axis sets are not looked at: shard_shape. AX_INVALID_ARGUMENT: an unsound
   type; more entries in the spec than there are dimensions; another rank than a tiled sharding's; a dimension that is not divided
   evenly. */
AX_MUST_USE ax_status ax_sharding_block(const ax_sharding *sharding, const ax_type *whole, ax_type *block);
/* The first element of a device's block, the device by its id: `start` has whole->rank entries. AX_INVALID_ARGUMENT: as
   ax_sharding_block; a device that is none of the sharding's. */
AX_MUST_USE ax_status ax_sharding_start(const ax_sharding *sharding, const ax_type *whole, int64_t device, int64_t *start);
/* The same of all devices, in the order of their places: `starts` has ax_sharding_device_count times whole->rank entries.
   devices_indices_map. */
AX_MUST_USE ax_status ax_sharding_starts(const ax_sharding *sharding, const ax_type *whole, int64_t *starts);

/* A mesh whose places are the ids, 0 and on, and a spec over it with the same blocks on the same devices: the sharding's own when
   its devices are in order. AX_ABSENT: there is none, as for devices 1, 0, 3, 2 with a block each: the ids are no reshaped and
   transposed 0, 1, .. */
AX_MUST_USE ax_status ax_sharding_in_order(const ax_sharding *sharding, ax_mesh *mesh, ax_spec *spec);
/* As text. `*out`: ax_string_free. print: "P(data, _) over (data=4, model=2)", and the ids where they are others. tiles: XLA's text
   for arrays of `rank` dimensions, of the ids, in the shortest form there is; "{maximal device=3}" of one device, "{replicated}"
   where all have all. picture: as ax_array_picture, of an array of type `whole`, as jax.debug.visualize_sharding.
   AX_INVALID_ARGUMENT: a rank or type that the sharding cannot lay out.
   AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_sharding_print(const ax_sharding *sharding, char **out);
AX_MUST_USE ax_status ax_sharding_tiles(const ax_sharding *sharding, uint32_t rank, char **out);
AX_MUST_USE ax_status ax_sharding_picture(const ax_sharding *sharding, const ax_type *whole, char **out);

/* --- Arrays --- */

/* Each of these that makes an array: `*out` is owned by the caller, NULL on failure, and lies over the sharding's mesh as its spec
   says; its devices are those of the sharding. Errors as ax_sharding_block; AX_INVALID_ARGUMENT: a device beyond
   ax_runtime_device_count; NULL in place of an array, a donated array; AX_OUT_OF_MEMORY; or what the array's run failed with, since
   they wait until an array is ready. Tokens and futures are no arrays and lie nowhere; no program that is run takes any. */
/* Copies host data, which is borrowed for the call, onto the devices: jax.device_put of a NumPy array. Large copies are shared out
   to the runtime's threads, as in all that follows. AX_INVALID_ARGUMENT: no data where there are elements. */
AX_MUST_USE ax_status ax_device_put_as(ax_runtime *runtime, const ax_sharding *sharding, const ax_host_array *host, ax_array **out);
/* As many of them as there are shardings; all or none: `out` is all NULL on failure, and the message says which could not be
   put. */
AX_MUST_USE ax_status ax_device_put_many(ax_runtime *runtime, uint32_t count, const ax_sharding *const *shardings,
                                         uint32_t host_count, const ax_host_array *hosts, uint32_t out_count, ax_array **out);
/* The elements of an array laid out anew: jax.device_put of an array. If all blocks lie in place already, each whole or as a dense
   piece of one of the array's blocks, they are shared with it and not copied. The two arrays are used and released independently; a
   run that is given memory that both have (donated) makes a copy of it. */
AX_MUST_USE ax_status ax_array_reshard(const ax_array *array, const ax_sharding *sharding, ax_array **out);
/* `count` of them; all or none. */
AX_MUST_USE ax_status ax_array_reshard_many(uint32_t count, ax_array *const *arrays, uint32_t sharding_count,
                                            const ax_sharding *const *shardings, uint32_t out_count, ax_array **out);
/* The same in memory of its own, also where blocks lie in place: jax.device_put with may_alias=False. For callers that donate both
   arrays. */
AX_MUST_USE ax_status ax_array_copy_to(const ax_array *array, const ax_sharding *sharding, ax_array **out);

/* An array of parts that lie where they are, as ax_array_from_parts, but one for each device, in the order of the sharding's
   places. Of devices that have the same block the first one's part is kept; the others' are given back at once, each by its
   release, and not looked at. */
AX_MUST_USE ax_status ax_array_from_device_parts(ax_runtime *runtime, const ax_sharding *sharding, const ax_type *type,
                                                 uint32_t count, const ax_part *parts, ax_array **out);
/* Makes an array from one array for each device, in the order of the sharding's places: jax.make_array_from_single_device_arrays.
   Each lies on the one device at its place, and has a block's type. Nothing is copied; memory is shared as in ax_array_reshard.
   AX_INVALID_ARGUMENT: another number of arrays than devices; one of another type, device, or runtime, or of several devices. */
AX_MUST_USE ax_status ax_array_from_device_arrays(ax_runtime *runtime, const ax_sharding *sharding, const ax_type *type,
                                                  uint32_t count, ax_array *const *arrays, ax_array **out);
/* The block of one device, by its id, as an array of that device alone: x.addressable_shards[i].data. Nothing is copied, as in
   ax_array_reshard.
   AX_INVALID_ARGUMENT: a device that the array is not on. */
AX_MUST_USE ax_status ax_array_on_device(const ax_array *array, int64_t device, ax_array **out);
/* Copies the box of sizes[d] elements from start[d] on along each dimension d, dense and row-major, to `data` of `bytes` bytes, out
   of the blocks that have some of it and without the whole. AX_INVALID_ARGUMENT: a box that leaves the array; wrong bytes; a
   donated array. Or what its run failed with. */
AX_MUST_USE ax_status ax_array_read_slice(const ax_array *array, uint32_t start_count, const int64_t *start, uint32_t size_count,
                                          const int64_t *sizes, ax_dtype element, void *data,
                                          size_t bytes);

/* Whether the caller said where it lies (by a mesh, a sharding, an executable that has a mesh), or a run made it that has a mesh or
   committed arguments. JAX's _committed. A run executes where its committed arguments are, also those that it only passes on to a
   result. They must all be on the same devices in the same order, as many as its mesh has; a program without a mesh runs on any.
   Its results lie there too. Arguments that are not committed are brought there. False for NULL. */
bool ax_array_is_committed(const ax_array *array);
/* How an array lies, as a sharding that is owned by the caller. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_array_sharding(const ax_array *array, ax_sharding **out);
/* Whether its blocks lie on the devices that the sharding says, whatever names axes have: ax_array_reshard would copy nothing. */
bool ax_array_is_laid_as(const ax_array *array, const ax_sharding *sharding);

/* --- Devices --- */

/* A plain value. Which process has a device depends on the mesh: ax_runtime_process_of (axle/processes.h). */
typedef struct ax_device {
  int64_t id;
  uint32_t process;            /* this one: ax_process_index */
  const char *platform;        /* "cpu"; static */
  const char *memory_kind;     /* "device"; static */
  size_t memory_now, memory_peak; /* of the runtime: ax_runtime_memory */
} ax_device;
/* How many there may be: ax_runtime_options.max_devices. */
int64_t ax_runtime_device_count(const ax_runtime *runtime);
/* AX_INVALID_ARGUMENT: an id below 0, or not below ax_runtime_device_count. */
AX_MUST_USE ax_status ax_runtime_device(const ax_runtime *runtime, int64_t id, ax_device *out);

#pragma GCC visibility pop

#ifndef __cplusplus /* lists, with their counts (axle/type.h) */
#define ax_device_put_many(runtime, shardings, hosts, out)                                                              \
  AX_LINED_STATUS(device_put_many, runtime, AX_EXACTLY(shardings), AX_COUNTED(ax_host_array, hosts), AX_COUNTED(ax_array *, out))
#define ax_array_reshard_many(arrays, shardings, out)                                                          \
  AX_LINED_STATUS(array_reshard_many, AX_EXACTLY(arrays), AX_COUNTED(const ax_sharding *, shardings), \
                  AX_COUNTED(ax_array *, out))
#define ax_array_from_device_parts(runtime, sharding, type, parts, out) \
  AX_LINED_STATUS(array_from_device_parts, runtime, sharding, type, AX_COUNTED(ax_part, parts), out)
#define ax_array_from_device_arrays(runtime, sharding, type, arrays, out) \
  AX_LINED_STATUS(array_from_device_arrays, runtime, sharding, type, AX_COUNTED(ax_array *, arrays), out)
#define ax_array_read_slice(array, start, sizes, data, bytes)                                                 \
  AX_LINED_STATUS(array_read_slice, array, AX_COUNTED(int64_t, start), AX_COUNTED(int64_t, sizes), AX_ELEMENT(data), data, \
                  AX_WITHIN(data, bytes))
#endif

#ifndef AXLE_NO_LINES /* axle/line.h */
#define ax_sharding_named(...) AX_LINED_STATUS(sharding_named, __VA_ARGS__)
#define ax_sharding_single(...) AX_LINED_STATUS(sharding_single, __VA_ARGS__)
#define ax_sharding_replicated(...) AX_LINED_STATUS(sharding_replicated, __VA_ARGS__)
#define ax_sharding_tiled(...) AX_LINED_STATUS(sharding_tiled, __VA_ARGS__)
#define ax_sharding_pmap(...) AX_LINED_STATUS(sharding_pmap, __VA_ARGS__)
#define ax_sharding_block(...) AX_LINED_STATUS(sharding_block, __VA_ARGS__)
#define ax_sharding_start(...) AX_LINED_STATUS(sharding_start, __VA_ARGS__)
#define ax_sharding_starts(...) AX_LINED_STATUS(sharding_starts, __VA_ARGS__)
#define ax_sharding_in_order(...) AX_LINED_STATUS(sharding_in_order, __VA_ARGS__)
#define ax_sharding_print(...) AX_LINED_STATUS(sharding_print, __VA_ARGS__)
#define ax_sharding_tiles(...) AX_LINED_STATUS(sharding_tiles, __VA_ARGS__)
#define ax_sharding_picture(...) AX_LINED_STATUS(sharding_picture, __VA_ARGS__)
#define ax_device_put_as(...) AX_LINED_STATUS(device_put_as, __VA_ARGS__)
#define ax_array_reshard(...) AX_LINED_STATUS(array_reshard, __VA_ARGS__)
#define ax_array_copy_to(...) AX_LINED_STATUS(array_copy_to, __VA_ARGS__)
#define ax_array_on_device(...) AX_LINED_STATUS(array_on_device, __VA_ARGS__)
#define ax_array_sharding(...) AX_LINED_STATUS(array_sharding, __VA_ARGS__)
#define ax_runtime_device(...) AX_LINED_STATUS(runtime_device, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
