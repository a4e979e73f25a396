/* Shardings: which device, by its id, has which block of an array. Objects, made once, that do not change, as those of jax.sharding;
   docs/sharding.md has an example of each kind.

   Whatever it was made from, a sharding is a mesh, a spec over it, and the ids of the devices that stand at the mesh's places, in order:

     named         mesh and spec are given                                           jax.sharding.NamedSharding
     single        a mesh of one device                                              SingleDeviceSharding
     replicated    all devices have all                                              GSPMDSharding.get_replicated
     tiled         XLA's text: {devices=[4,1,2]<=[8] last_tile_dim_replicate}        GSPMDSharding, PositionalSharding
     pmap          of cuts and replicas (axle/pmap.h)                                PmapSharding

   Devices are all alike and share one memory. What stands at which place therefore changes which id is asked for to find a block, and nothing
   else: no result, no cost, and no collective, whose peers are places on the mesh.

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
  const int64_t *devices;  /* the ids of device_count devices, in the order of the places; NULL: 0 and on */
  uint32_t device_count;   /* as many as there are places, or 0 without `devices` */
  const char *memory_kind; /* NULL or "device": there is no other memory */
} ax_sharding_options;

/* Each of these: `*out` is owned by the caller, NULL on failure. options may be NULL: {0}. AX_INVALID_ARGUMENT: ids below 0, above 2^31 - 1 or
   twice; another number of them than there are places, or a number without ids that is another; what the function says. AX_ABSENT: a memory kind
   other than "device". AX_OUT_OF_MEMORY. */
/* mesh NULL: one device. AX_INVALID_ARGUMENT: an unsound mesh; a spec that ax_spec_parse refuses. */
AX_MUST_USE ax_status ax_sharding_named(const ax_mesh *mesh, const char *spec, const ax_sharding_options *options, ax_sharding **out);
/* All of an array on one device. AX_INVALID_ARGUMENT: an id below 0 or above 2^31 - 1. */
AX_MUST_USE ax_status ax_sharding_single(int64_t device, ax_sharding **out);
/* All of an array on each of options->device_count devices; 0: one. */
AX_MUST_USE ax_status ax_sharding_replicated(const ax_sharding_options *options, ax_sharding **out);
/* Of XLA's text: "{devices=[2,2]0,2,1,3}", "{devices=[2,2]<=[2,2]T(1,0)}", with " last_tile_dim_replicate" or " last_tile_dims={replicated}" when the
   last tile dimension is of devices with the same block; "{replicated}" and "{maximal device=3}". The numbers are places in options->devices, or ids
   without these; device_count is asked for by "{replicated}" (0: one device), and checked against the others, which need no count. Where a mesh in
   the order of the numbers has these blocks, that and a spec over its axes "t0", "t1" and on are the sharding's; else the mesh is the tile dimensions and
   the numbers its devices' ids. A tiled sharding is of arrays with as many dimensions as there are tile dimensions without the last of replicas.
   AX_INVALID_ARGUMENT: other text, named where it ends to make sense; a number twice, or beyond the devices; more than AX_MAX_RANK tiled dimensions, or
   more than AX_MAX_AXES axes. AX_ABSENT: manual, unreduced and unknown shardings, tuples. */
AX_MUST_USE ax_status ax_sharding_tiled(const char *text, const ax_sharding_options *options, ax_sharding **out);
/* Of a pmap's array; what is unstacked there is a dimension of size 1 of the block here. AX_INVALID_ARGUMENT: an unsound struct. */
AX_MUST_USE ax_status ax_sharding_pmap(const ax_pmap_sharding *sharding, const ax_sharding_options *options, ax_sharding **out);
ax_sharding *ax_sharding_retain(ax_sharding *sharding);
void ax_sharding_release(ax_sharding *sharding);

/* Borrowed. The mesh numbers places, which are not ids where others stand there (ax_sharding_device). */
const ax_mesh *ax_sharding_get_mesh(const ax_sharding *sharding);
const ax_spec *ax_sharding_get_spec(const ax_sharding *sharding);
int64_t ax_sharding_device_count(const ax_sharding *sharding);
/* The id of the device at a place; -1: there is no such place. */
int64_t ax_sharding_device(const ax_sharding *sharding, int64_t place);
/* The place of a device, by its id; -1: it is none of the sharding's. */
int64_t ax_sharding_place(const ax_sharding *sharding, int64_t device);
/* How many different blocks an array has; that it is one: is_fully_replicated. */
int64_t ax_sharding_block_count(const ax_sharding *sharding);
bool ax_sharding_is_replicated(const ax_sharding *sharding);
/* The same devices have the same blocks, of arrays of every shape that both can lay out, whatever axes are called and however the sharding
   was made: is_equivalent_to. Time grows with the devices where these are in another order or the meshes differ. */
bool ax_sharding_equal(const ax_sharding *a, const ax_sharding *b);

/* The type of a block of an array of type `whole`, whose axis sets are not looked at: shard_shape. AX_INVALID_ARGUMENT: an unsound type; more
   entries in the spec than there are dimensions; another rank than a tiled sharding's; a dimension that is not divided evenly. */
AX_MUST_USE ax_status ax_sharding_block(const ax_sharding *sharding, const ax_type *whole, ax_type *block);
/* Where the block of a device, by its id, begins: `start` has whole->rank entries. AX_INVALID_ARGUMENT: as ax_sharding_block; a device that is none
   of the sharding's. */
AX_MUST_USE ax_status ax_sharding_start(const ax_sharding *sharding, const ax_type *whole, int64_t device, int64_t *start);
/* The same of all devices, in the order of their places: `starts` has ax_sharding_device_count times whole->rank entries. devices_indices_map. */
AX_MUST_USE ax_status ax_sharding_starts(const ax_sharding *sharding, const ax_type *whole, int64_t *starts);

/* A mesh whose places are the ids, 0 and on, and a spec over it with the same blocks on the same devices: the sharding's own when its devices are
   in order. AX_ABSENT: there is none, as for devices 1, 0, 3, 2 with a block each: the ids are no reshaped and transposed 0, 1, .. */
AX_MUST_USE ax_status ax_sharding_in_order(const ax_sharding *sharding, ax_mesh *mesh, ax_spec *spec);
/* As text. `*out`: ax_string_free. print: "P(data, _) over (data=4, model=2)", and the ids where they are others. tiles: XLA's text for arrays of
   `rank` dimensions, of the ids, in the shortest form there is; "{maximal device=3}" of one device, "{replicated}" where all have all. picture: as
   ax_array_picture, of an array of type `whole`, as jax.debug.visualize_sharding. AX_INVALID_ARGUMENT: a rank or type that the sharding cannot lay out.
   AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_sharding_print(const ax_sharding *sharding, char **out);
AX_MUST_USE ax_status ax_sharding_tiles(const ax_sharding *sharding, uint32_t rank, char **out);
AX_MUST_USE ax_status ax_sharding_picture(const ax_sharding *sharding, const ax_type *whole, char **out);

#pragma GCC visibility pop

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
#endif

#ifdef __cplusplus
}
#endif
#endif
