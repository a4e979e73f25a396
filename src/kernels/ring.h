/* Parts that go round a ring of devices, both ways at once, for the kernels of collective_matmul_gather.c and _scatter.c. Written
   with the public functions of axle/kernel.h alone.

   A *stream* carries parts one way: LEFT to the previous device in the order of the ring, RIGHT to the next one. On each device
   `arrivals` parts come in by it. The first part that a device sends is its own (inject); then it sends on each part that has come
   (forward), except the last. So a stream sends as many parts as it receives.

     LEFT   own --> slot 0 of the left neighbour --> slot 1 of its left neighbour --> slot 2 .. 0, 1, 2, ..

   Arrival a stands in slot a mod slots. Each stream has, on each device,

     slots     memory for arrivals, in VMEM
     capacity  a semaphore: the number of free slots downstream. A device subtracts one to send a part; a device that has finished
               with a slot, and has sent its part on, signals the device upstream
     sent      a DMA semaphore: the part that was sent last has been read
     received  a DMA semaphore for each slot: its part has arrived. One for all slots would not do: copies overtake each other, so
               the bytes of one could release a device that waits for another

   The own part stays where it is and takes no slot. With one slot a ring in which more than one part arrives would stand still: all
   slots are full, and each device would wait for the next to send its part on. So there are two at least then, and never more than
   arrivals.

   All arrivals but the last are signalled, as no part is sent after it. At the end the count is slots - 1; the device subtracts
   these, so that semaphores are 0 where a kernel ends. The neighbour downstream has then finished with all parts it was sent but
   the last.

   Before anything is sent a device meets both neighbours at the barrier semaphore: their memory is there, and so are their
   semaphores. Later kernels of the same neighbours may use the same one: a neighbour that has left this kernel has received this
   device's part, so this device has passed the barrier. */
#ifndef AX_KERNELS_RING_H
#define AX_KERNELS_RING_H

#include "axle/axle.h"
#include "base/base.h"

enum { AX_LEFT, AX_RIGHT };

typedef struct ax_ring { /* known before tracing begins */
  const char *function;  /* in whose name errors are */
  const char *axes;
  int64_t sizes[AX_MAX_AXES], members, length;
  uint32_t axis_count;
  const int32_t *position; /* of each member on its ring; -1: it is on none. NULL: members in their order are the one ring */
  const int32_t *neighbour[2];
  bool everybody; /* every device is on a ring */
  int64_t arrivals[2], slots[2];
} ax_ring;
/* False: the trace has failed. rings NULL: one of all members. */
bool ax_ring_init(ax_ring *ring, const char *function, const char *axes, const ax_rings *rings, int64_t buffering);

/* Writes the scratch that the streams need for parts of this dtype and shape into `scratch`. Returns its count, at most
   AX_RING_SCRATCH. */
enum { AX_RING_SCRATCH = 8 };
uint32_t ax_ring_scratch(const ax_ring *ring, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_scratch *scratch);

typedef struct ax_ring_stream {
  ax_value slots, capacity, sent, received;
  int64_t arrivals, slot_count;
  const ax_target_core *to, *from;
  const char *const *names; /* of trace spans */
} ax_ring_stream;
typedef struct ax_ring_walk { /* one device's, while a body is traced */
  const ax_ring *ring;
  ax_value position; /* s32[] */
  ax_value coordinates[2][AX_MAX_AXES];
  ax_target_core core[2]; /* the neighbours */
  ax_ring_stream stream[2];
} ax_ring_walk;
/* Finds the place of this device on its ring. */
void ax_ring_find(const ax_ring *ring, ax_ring_walk *walk);
/* Traces `on_ring` where this device is on a ring, and `off` where it is on none, if there are such. */
void ax_ring_choose(const ax_ring_walk *walk, ax_fn on_ring, ax_fn off);
/* The beginning: capacities, and the meeting of neighbours. scratch: the refs of ax_ring_scratch. */
void ax_ring_enter(ax_ring_walk *walk, const ax_value *scratch);
void ax_ring_leave(const ax_ring_walk *walk);

void ax_stream_inject(const ax_ring_stream *stream, ax_value part);
/* Waits for arrival number a (s32[]); a ref of it. */
ax_value ax_stream_receive(const ax_ring_stream *stream, ax_value a);
void ax_stream_forward(const ax_ring_stream *stream, ax_value a, ax_value part);
/* The part that was sent last, of the shape of `part`, has been read. */
void ax_stream_sent(const ax_ring_stream *stream, ax_value part);
void ax_stream_free(const ax_ring_stream *stream); /* the slot of an arrival that is none of the last */

/* The position `ahead` (s32[], from -length to length) further on the ring. */
ax_value ax_ring_position(const ax_ring_walk *walk, ax_value ahead);
ax_value ax_ring_number(int64_t number); /* as s32[] */

#endif
