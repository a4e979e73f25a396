/* Arrays: a layout, parts, and users.

     layout   the type, the mesh and the spec, which cut the array into n blocks, numbered as in mesh/sharding.h. All results
              of an executable share its layouts
     parts    the n blocks in memory: an address for each, and the owner of the memory. The owner is this set of parts (one block
              of memory from the pool), another set of parts (after a change of layout that left some in place), or the user
              (ax_array_from_parts)

   A replicated array has one part, however many devices the mesh has. The address of a part says nothing about its neighbour's.

   Any number of users may read an array, until it is given to the one run that it was donated to. That run begins when the last
   user has left, and no new user is admitted. An array may be the result of a run that is not over; it gets its parts when the run
   is. */
#ifndef AX_ARRAY_ARRAY_H
#define AX_ARRAY_ARRAY_H

#include "axle/sharding.h"
#include "ir/program.h"
#include "processes/map.h"
#include "run/parts.h"

typedef struct ax_layout {
  ax_runtime *runtime; /* retained */
  ax_type type, block; /* of the whole array; of a part */
  ax_mesh mesh;
  ax_spec spec;
  ax_sharding *sharding; /* retained: gives the devices at the mesh's places; NULL: each place has the device of its number */
  ax_axis_set named; /* axes that the spec names */
  bool committed;    /* the caller said where the array lies, or it was computed from such arrays: calls must run there */
  int64_t devices;   /* in the mesh */
  uint32_t blocks;
  ax_process_map *map;  /* which process has which place; NULL: the array is whole in each process, and so are the next three */
  bool *here;           /* by block: some device of this process has it; NULL: all blocks are here */
  uint32_t *holder, *first_holder; /* the processes that have each block, in order of places; by block, and one more: its first */
  uint32_t here_count;  /* blocks that are here */
  size_t block_bytes;   /* of the elements of one part */
  size_t stride, bytes; /* between parts allocated together, a multiple of 64; of all these that are here */
  uint64_t hash;
  struct ax_layout *next; /* in the list of one hash; guarded by the runtime's lock of layouts */
  _Alignas(64) atomic_uint references; /* by arrays and executables; on a cache line of its own, apart from what every run reads */
} ax_layout;

/* A runtime has one layout of each kind as long as it is referenced, so that equal layouts have equal addresses. Axis sets of
   `type` are ignored. devices: retained if places have other devices than their own numbers; may be NULL. AX_INVALID_ARGUMENT: see
   ax_shard_type. AX_OUT_OF_MEMORY: also if the array has too many bytes to be addressed. */
AX_MUST_USE ax_status ax_layout_create(ax_runtime *runtime, const ax_type *type, const ax_mesh *mesh, const ax_spec *spec,
                                       const ax_sharding *devices, bool committed, ax_layout **out);
/* Checks the caller's description of an array, and gives its layout. mesh NULL: one device. `who` begins messages.
   AX_INVALID_ARGUMENT: see ax_device_put_data. */
AX_MUST_USE ax_status ax_layout_describe(const char *who, ax_runtime *runtime, const ax_mesh *mesh, const char *spec,
                                         const ax_type *type, ax_layout **out);
ax_layout *ax_layout_retain(ax_layout *layout);
void ax_layout_release(ax_layout *layout);
/* Sets offset[d] to the first index of block b along each dimension of the whole. */
void ax_layout_offset(const ax_layout *layout, uint32_t b, int64_t *offset);
static inline bool ax_layout_has(const ax_layout *layout, uint32_t block) { return layout->here == NULL || layout->here[block]; }
bool ax_layout_held_by(const ax_layout *layout, uint32_t process, uint32_t block);
/* The first place of this process that has a block, which is here. */
int64_t ax_layout_own_place(const ax_layout *layout, uint32_t block);
/* AX_INVALID_ARGUMENT: part of this box of the whole array, which begins at `start`, is in blocks of other processes. */
AX_MUST_USE ax_status ax_layout_check_here(const ax_layout *layout, const ax_type *box, const int64_t *start);
/* Finds the place of a device by its id. AX_INVALID_ARGUMENT: the array is not on it. */
AX_MUST_USE ax_status ax_layout_place(const ax_layout *layout, int64_t device, int64_t *place);
/* Says whether both have the same elements in the same parts, with the same numbers. */
bool ax_layout_same(const ax_layout *a, const ax_layout *b);
/* Says whether their places have the same devices, by id. */
bool ax_layout_same_devices(const ax_layout *a, const ax_layout *b); /* array/devices.c */
/* The number of the block at a place. */
uint32_t ax_layout_block_at(const ax_layout *layout, int64_t place);

AX_MUST_USE ax_status ax_parts_create(ax_runtime *runtime, const ax_layout *layout, ax_parts **out); /* all in one allocation */
/* Makes parts of which several are the same memory: part b is block place[b] of `count`; place NULL: of one. The blocks are new, or
   those of `in`, which then stays until these parts are released. The run that makes them writes each block once. */
AX_MUST_USE ax_status ax_parts_share(ax_runtime *runtime, const ax_layout *layout, const uint32_t *place, uint32_t count,
                                     ax_parts *in, ax_parts **out);
/* Makes parts that will lie in those of `in`, which then stay until these parts are released. The run that makes them says where
   each is: before, they have no addresses. */
AX_MUST_USE ax_status ax_parts_in(const ax_layout *layout, ax_parts *in, ax_parts **out);
/* Says whether other parts may stay in the memory of these for long: it is not the user's, and has one owner. */
bool ax_parts_may_hold(const ax_parts *parts);
/* Gives each part memory of its own, with the same elements. */
AX_MUST_USE ax_status ax_parts_own(const ax_parts *from, const ax_layout *layout, ax_parts **out);
/* Makes parts of the user's memory. On failure nothing is released. */
AX_MUST_USE ax_status ax_parts_lend(ax_runtime *runtime, const ax_layout *layout, const ax_part *parts, ax_parts **out);
void ax_parts_return(ax_parts *parts); /* lent parts that no other array holds go back to the caller, not released */
/* The purpose of a change of layout. */
typedef enum ax_laying {
  AX_LAY_READ,    /* a run reads the parts: those that are in place stay there, even if other arrays share them */
  AX_LAY_WRITTEN, /* a run may overwrite them: all stay in place or none; none if they are read-only or shared */
  AX_LAY_SHARED,  /* another array shares them: all stay in place or none */
  AX_LAY_COPIED   /* no part stays in place */
} ax_laying;
/* Gives the same elements in the layout `to`: `from` itself, retained, if it has that layout. If blocks have to come from other
   processes (array/moving.h), all must call it. */
AX_MUST_USE ax_status ax_parts_lay_out(ax_parts *from, const ax_layout *old, const ax_layout *to, ax_laying laying, ax_parts **out);
/* Gives one block alone, without moving it. */
AX_MUST_USE ax_status ax_parts_of_block(ax_parts *from, const ax_layout *to, uint32_t block, ax_parts **out);
/* Makes parts that only a plugin's devices have. Consumes the buffers unless it fails. */
AX_MUST_USE ax_status ax_parts_create_away(ax_runtime *runtime, const ax_layout *layout, struct ax_buffers *buffers, ax_parts **out);
/* Gives parts that are away memory here, with the elements. Waits for the devices. */
AX_MUST_USE ax_status ax_parts_bring(ax_parts *parts, const ax_layout *layout);
/* Gives the buffers of all places of the layout, which are made if there are none. Retained. */
AX_MUST_USE ax_status ax_parts_send(ax_parts *parts, const ax_layout *layout, struct ax_buffers **out);
/* Sends parts that nothing else has, and frees their memory. */
AX_MUST_USE ax_status ax_parts_send_away(ax_parts *parts, const ax_layout *layout);
ax_parts *ax_parts_retain(ax_parts *parts);
void ax_parts_release(ax_parts *parts);

#define AX_ARRAY_GIVEN (1u << 31)
#define AX_ARRAY_UNHELD (1u << 30)

struct ax_array {
  atomic_uint references;
  atomic_uint users; /* number of current readers; with AX_ARRAY_GIVEN: given to a run, for good or until that run is over; with
                        AX_ARRAY_UNHELD: no reference is left, and the last reader destroys the array */
  ax_layout *layout;        /* retained, and so holds the runtime */
  ax_parts
      *parts; /* for users, and for the run they were given to; NULL once donated, and before the run that makes them is over */
  struct ax_pending *maker; /* retained: the run that makes the array, if it was not over when it was started; NULL */
  struct ax_pending *taker; /* the run that waits for the users to leave. maker and taker are guarded by the runtime's order lock */
  uint64_t donated_to;      /* number of the pending run it is donated to, while that run checks that it takes it only once */
};

/* Retains the layout; consumes the parts unless it fails. parts NULL: they come later. */
AX_MUST_USE ax_status ax_array_create(ax_layout *layout, ax_parts *parts, ax_array **out);
/* Makes an array of dense row-major data. Retains the layout. AX_INVALID_ARGUMENT: data is NULL though there are elements. */
AX_MUST_USE ax_status ax_array_of_data(ax_runtime *runtime, ax_layout *layout, const void *data, ax_array **out);
/* Makes an array of the user's parts, one for each block. Retains the layout; on failure nothing is released.
   AX_INVALID_ARGUMENT: see ax_array_from_parts. */
AX_MUST_USE ax_status ax_array_lend(const char *who, ax_runtime *runtime, ax_layout *layout, const ax_part *parts, uint32_t count,
                                    ax_array **out);
/* Waits until the array is ready and becomes a reader of it, which ax_array_close ends. A callback may release the caller's
   reference meanwhile. AX_INVALID_ARGUMENT: it was donated. Other statuses: the run that makes it has failed. */
AX_MUST_USE ax_status ax_array_open(const ax_array *array);
void ax_array_close(const ax_array *array);
AX_MUST_USE ax_status ax_array_refuse_donated(const ax_array *array); /* always the error */
/* Copies a box of the whole array, which begins at `start`. AX_INVALID_ARGUMENT: wrong number of bytes. Otherwise as
   ax_array_open. */
AX_MUST_USE ax_status ax_array_read_box(const ax_array *array, const ax_type *box, const int64_t *start, void *data, size_t bytes);
/* Begins and ends the reading of its parts. False: they were given to a run. A reader holds the array: its last reference may be
   released meanwhile. */
bool ax_array_use(ax_array *array);
void ax_array_leave(ax_array *array);
/* Gives the parts to one run, which is their only reader while it goes on. False: they were given already, or have readers. */
bool ax_array_take(ax_array *array);
/* Ends that run, which keeps the parts for good if it began. */
void ax_array_end_taking(ax_array *array, bool began);
static inline bool ax_array_gone(ax_array *array) { return (atomic_load(&array->users) & AX_ARRAY_GIVEN) != 0; }

#endif
