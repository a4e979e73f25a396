/* Arrays: a layout, parts, and who uses them.

     layout   what lies where: the type, the mesh, the spec; n blocks, numbered as in mesh/sharding.h. Shared: all results of an
              executable
              have its layouts
     parts    where the n blocks are: an address each, and whom the memory belongs to: this one's own block from the pool, other
              parts (after a change of layout that left some in place), or somebody outside (ax_array_from_parts)

   A replicated array is one part, however many devices the mesh has. Nothing may be said of where a part lies from where its
   neighbour does. An array has any number of users that read it, until it is given to the one run it was donated to: that run
   begins when the last of them has left, and nobody can become one from then on. An array may be the result of a run that is not
   over: its parts are there when that is. */
#ifndef AX_EXEC_ARRAY_H
#define AX_EXEC_ARRAY_H

#include <stdatomic.h>

#include "axle/sharding.h"
#include "ir/program.h"

typedef struct ax_layout {
  ax_runtime *runtime; /* retained */
  ax_type type, block; /* of the whole; of a part */
  ax_mesh mesh;
  ax_spec spec;
  ax_sharding *sharding; /* retained: whose devices are not the mesh's places; NULL: they are */
  ax_axis_set named; /* by the spec */
  bool committed;    /* put there by somebody who said where, or made of what was: a call is to run there */
  int64_t devices;   /* of the mesh */
  uint32_t blocks;
  size_t block_bytes;   /* of a part's elements */
  size_t stride, bytes; /* between parts that are allocated together, a multiple of 64; of all of them */
  uint64_t hash;
  struct ax_layout *next; /* of those with a like hash, guarded by the runtime's lock of layouts */
  _Alignas(64) atomic_uint references; /* of arrays and executables: apart from what every run reads */
} ax_layout;

/* There is one of each kind in a runtime while anybody holds it, so that those who meet it again know it by its address. Axis sets
   of `type` are not looked at. devices: retained if there are others than places; may be NULL. AX_INVALID_ARGUMENT: see
   ax_shard_type. AX_OUT_OF_MEMORY: also more bytes than there can be. */
AX_MUST_USE ax_status ax_layout_create(ax_runtime *runtime, const ax_type *type, const ax_mesh *mesh, const ax_spec *spec,
                                       const ax_sharding *devices, bool committed, ax_layout **out);
/* What a caller says of an array, checked. mesh NULL: one device. `who` begins messages. AX_INVALID_ARGUMENT: see ax_device_put. */
AX_MUST_USE ax_status ax_layout_describe(const char *who, ax_runtime *runtime, const ax_mesh *mesh, const char *spec,
                                         const ax_type *type, ax_layout **out);
ax_layout *ax_layout_retain(ax_layout *layout);
void ax_layout_release(ax_layout *layout);
/* Where block b begins in the whole. */
void ax_layout_offset(const ax_layout *layout, uint32_t b, int64_t *offset);
/* The place of a device, by its id. AX_INVALID_ARGUMENT: the array is not on it. */
AX_MUST_USE ax_status ax_layout_place(const ax_layout *layout, int64_t device, int64_t *place);
/* The same elements are in the same parts, numbered alike. */
bool ax_layout_same(const ax_layout *a, const ax_layout *b);
/* Their places have the same devices, by their ids. */
bool ax_layout_same_devices(const ax_layout *a, const ax_layout *b); /* exec/devices.c */
/* The number of the block that the device at a place has. */
uint32_t ax_layout_block_at(const ax_layout *layout, int64_t place);

typedef struct ax_parts {
  atomic_uint references;
  ax_runtime *runtime;     /* `memory` is from its pool; arrays and runs that hold the parts hold it */
  void *memory;            /* of those that were allocated together; NULL: there are none */
  size_t bytes;            /* of `memory` */
  struct ax_parts *source; /* retained: other parts lie in its memory; NULL */
  ax_part *lent;           /* by part, when somebody outside owns them; NULL */
  bool read_only;          /* nothing may be written into them, whoever has the array */
  uint32_t count;
  unsigned char *part[]; /* by block */
} ax_parts;

AX_MUST_USE ax_status ax_parts_create(ax_runtime *runtime, const ax_layout *layout, ax_parts **out); /* all allocated together */
/* One block allocated, which all parts are: nothing may be written into it afterwards but here, before anybody reads. */
AX_MUST_USE ax_status ax_parts_share(ax_runtime *runtime, const ax_layout *layout, ax_parts **out);
/* Of memory that is lent; on failure nothing is released. */
AX_MUST_USE ax_status ax_parts_lend(ax_runtime *runtime, const ax_layout *layout, const ax_part *parts, ax_parts **out);
void ax_parts_return(ax_parts *parts); /* lent ones that nobody else holds, as if they had never been lent: nothing is released */
/* What the elements are laid out anew for. */
typedef enum ax_laying {
  AX_LAY_READ,    /* a run reads them: parts that are in place stay where they are, whatever others do */
  AX_LAY_WRITTEN, /* a run is given them: all stay where they are, or none; none when they may not be written, or somebody else has
                     them too */
  AX_LAY_SHARED,  /* another array has them too: all stay where they are, or none */
  AX_LAY_COPIED   /* nothing stays where it is */
} ax_laying;
/* The same elements laid out as `to` says: retained when they lie so already. */
AX_MUST_USE ax_status ax_parts_lay_out(ax_parts *from, const ax_layout *old, const ax_layout *to, ax_laying laying, ax_parts **out);
/* One block alone, where it is. */
AX_MUST_USE ax_status ax_parts_of_block(ax_parts *from, const ax_layout *to, uint32_t block, ax_parts **out);
ax_parts *ax_parts_retain(ax_parts *parts);
void ax_parts_release(ax_parts *parts);

#define AX_ARRAY_GIVEN (1u << 31)

struct ax_array {
  atomic_uint references;
  atomic_uint users; /* who read the parts now; AX_ARRAY_GIVEN with that: to a run, for good or until that run is over */
  ax_layout *layout;        /* retained, and with it the runtime */
  ax_parts *parts; /* for users and the run they were given to; NULL once donated, and until the run that makes them is over */
  struct ax_pending *maker; /* retained: that run, if it was not over when it was started; NULL */
  struct ax_pending *taker; /* waits for the users to leave. These two are guarded by the runtime's order lock */
  uint64_t donated_to;      /* by number, the pending run that it is donated to, while that run looks whether it takes it twice */
};

/* Retains the layout; consumes the parts, unless it fails. parts NULL: they come later. */
AX_MUST_USE ax_status ax_array_create(ax_layout *layout, ax_parts *parts, ax_array **out);
/* Of dense row-major data. Retains the layout. AX_INVALID_ARGUMENT: no data where there are elements. */
AX_MUST_USE ax_status ax_array_of_data(ax_runtime *runtime, ax_layout *layout, const void *data, ax_array **out);
/* Of parts that are lent, one for each block. Retains the layout; on failure nothing is released. AX_INVALID_ARGUMENT: see
   ax_array_from_parts. */
AX_MUST_USE ax_status ax_array_lend(const char *who, ax_runtime *runtime, ax_layout *layout, const ax_part *parts, uint32_t count,
                                    ax_array **out);
/* Waits until it is ready, and uses it: ax_array_leave. AX_INVALID_ARGUMENT: it was donated. Or what its run failed with. */
AX_MUST_USE ax_status ax_array_open(const ax_array *array);
AX_MUST_USE ax_status ax_array_refuse_donated(const ax_array *array); /* the error */
/* Copies a box of the whole, which begins at `start`. AX_INVALID_ARGUMENT: wrong bytes. Or as ax_array_open. */
AX_MUST_USE ax_status ax_array_read_box(const ax_array *array, const ax_type *box, const int64_t *start, void *data, size_t bytes);
/* Before its parts are read, and after. False: they were given to a run. */
bool ax_array_use(ax_array *array);
void ax_array_leave(ax_array *array);
/* Gives the parts to one run. False: they were given already, or someone uses them. */
bool ax_array_take(ax_array *array);
void ax_array_give_back(ax_array *array);
static inline bool ax_array_gone(ax_array *array) { return (atomic_load(&array->users) & AX_ARRAY_GIVEN) != 0; }

#endif
