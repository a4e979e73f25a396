#include "kernels/ring.h"

#include <string.h>

#include "collectives/collective.h"

/* --- What is known before --- */

static bool take_axes(ax_ring *ring) {
  ax_axes names;
  if (!ax_ungrouped_names(ring->function, ring->axes != NULL ? ring->axes : "", &names)) return false;
  const ax_mesh *mesh = &ax_builder_current()->axes;
  ring->axis_count = names.count;
  ring->members = 1;
  for (uint32_t i = 0; i < names.count; i++) {
    ring->sizes[i] = mesh->axis[ax_mesh_find(mesh, names.name[i])].size;
    ring->members *= ring->sizes[i];
  }
  return true;
}

static bool check_table(const ax_ring *ring, const ax_rings *rings) {
  const char *type = ax_type_string(&rings->type, NULL);
  if (rings->type.form != AX_ARRAY || rings->type.rank != 2)
    ax_reject_as(ring->function, "rings is %s; it is a table of two dimensions: rings, and the devices of each", type);
  else if (rings->type.dtype != AX_S32)
    ax_reject_as(ring->function, "rings is %s; ids are s32", type);
  else if (rings->ids == NULL || ax_type_elems(&rings->type) == 0)
    ax_reject_as(ring->function, "rings is %s, and has no ids", type);
  else
    return true;
  return false;
}

/* Fills tables by member of what a row says of its devices. */
static bool take_row(ax_ring *ring, const int32_t *row, int32_t *position, int32_t *const neighbour[2]) {
  int64_t length = ring->length;
  for (int64_t i = 0; i < length; i++) {
    int32_t id = row[i];
    if (id < 0 || id >= ring->members) {
      ax_reject_as(ring->function, "rings has the id %d; there are %lld members along \"%s\"", id, (long long)ring->members,
                   ring->axes);
      return false;
    }
    if (position[id] >= 0) {
      ax_reject_as(ring->function, "rings has the id %d twice", id);
      return false;
    }
    position[id] = (int32_t)i;
    neighbour[AX_LEFT][id] = row[i > 0 ? i - 1 : length - 1];
    neighbour[AX_RIGHT][id] = row[i + 1 < length ? i + 1 : 0];
  }
  return true;
}

static bool take_table(ax_ring *ring, const ax_rings *rings) {
  if (!check_table(ring, rings)) return false;
  size_t bytes = (size_t)ring->members * sizeof(int32_t);
  int32_t *position = ax_trace_alloc(bytes), *const neighbour[] = {ax_trace_alloc(bytes), ax_trace_alloc(bytes)};
  if (ax_failed()) return false;
  for (int64_t i = 0; i < ring->members; i++) position[i] = -1, neighbour[AX_LEFT][i] = neighbour[AX_RIGHT][i] = 0;
  ring->length = rings->type.dims[1];
  for (int64_t r = 0; r < rings->type.dims[0]; r++)
    if (!take_row(ring, rings->ids + r * ring->length, position, neighbour)) return false;
  ring->position = position;
  for (int side = AX_LEFT; side <= AX_RIGHT; side++) ring->neighbour[side] = neighbour[side];
  ring->everybody = ax_type_elems(&rings->type) == ring->members;
  return true;
}

bool ax_ring_init(ax_ring *ring, const char *function, const char *axes, const ax_rings *rings, int64_t buffering) {
  *ring = (ax_ring){.function = function, .axes = axes, .everybody = true};
  if (ax_failed() || !take_axes(ring)) return false;
  if (buffering < 0) {
    ax_reject_as(function, "buffering is %lld; it is the number of slots, or 0", (long long)buffering);
    return false;
  }
  ring->length = ring->members;
  if (rings != NULL && !take_table(ring, rings)) return false;
  ring->arrivals[AX_LEFT] = ring->length / 2;
  ring->arrivals[AX_RIGHT] = (ring->length - 1) / 2;
  for (int side = AX_LEFT; side <= AX_RIGHT; side++) {
    int64_t wanted = buffering < 2 ? 2 : buffering;
    ring->slots[side] = wanted < ring->arrivals[side] ? wanted : ring->arrivals[side];
  }
  return true;
}

uint32_t ax_ring_scratch(const ax_ring *ring, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_scratch *scratch) {
  uint32_t count = 0;
  int64_t slots[AX_MAX_RANK];
  memcpy(slots + 1, dims, rank * sizeof dims[0]);
  for (int side = AX_LEFT; side <= AX_RIGHT; side++) {
    if (ring->arrivals[side] == 0) continue;
    slots[0] = ring->slots[side];
    scratch[count++].type = ax_ref_type(AX_SPACE_VMEM, dtype, AX_LIST(rank + 1, slots));
    scratch[count++].type = ax_semaphore_type(AX_DIMS());
    scratch[count++].type = ax_dma_semaphore_type(AX_DIMS());
    scratch[count++].type = ax_dma_semaphore_type(AX_LIST(1, slots));
  }
  return count;
}

/* --- Where a device is --- */

ax_value ax_ring_number(int64_t number) { return ax_full_i64(AX_S32, AX_DIMS(), number); }

static ax_value look_up(const ax_ring *ring, const int32_t *table, ax_value member) {
  const ax_type type = ax_array_type(AX_S32, AX_LIST(1, &ring->members));
  return ax_dynamic_at(ax_constant(&type, table), member, 0);
}

/* number mod size, for number >= 0. */
static ax_value remainder_of(ax_value number, int64_t size) {
  return ax_sub(number, ax_mul(ax_div(number, ax_integer(size)), ax_integer(size)));
}

static void coordinates_of(const ax_ring *ring, ax_value member, ax_value *out) {
  for (uint32_t i = ring->axis_count; i-- > 0;) {
    out[i] = i > 0 ? remainder_of(member, ring->sizes[i]) : member;
    if (i > 0) member = ax_div(member, ax_integer(ring->sizes[i]));
  }
}

void ax_ring_find(const ax_ring *ring, ax_ring_walk *walk) {
  *walk = (ax_ring_walk){.ring = ring};
  ax_value member = ax_axis_index(ring->axes);
  walk->position = ring->position != NULL ? look_up(ring, ring->position, member) : member;
  for (int side = AX_LEFT; side <= AX_RIGHT; side++) {
    ax_value neighbour = ring->position != NULL ? look_up(ring, ring->neighbour[side], member)
                                                : ax_ring_position(walk, ax_ring_number(side == AX_LEFT ? -1 : 1));
    coordinates_of(ring, neighbour, walk->coordinates[side]);
    walk->core[side] = (ax_target_core){.axes = ring->axes, .coordinates = {ring->axis_count, walk->coordinates[side]}};
  }
}

void ax_ring_choose(const ax_ring_walk *walk, ax_fn on_ring, ax_fn off) {
  if (walk->ring->everybody)
    on_ring.function(NULL, NULL, on_ring.context);
  else
    ax_if(ax_ge(walk->position, ax_integer(0)), on_ring, off, NULL, NULL);
}

ax_value ax_ring_position(const ax_ring_walk *walk, ax_value ahead) {
  int64_t length = walk->ring->length;
  return remainder_of(ax_add(ax_add(walk->position, ahead), ax_integer(length)), length);
}

/* --- Beginning and end --- */

static const char *const span_names[2][4] = {{"Capacity left", "Send left", "Recv left", "Final barrier left"},
                                             {"Capacity right", "Send right", "Recv right", "Final barrier right"}};
enum { CAPACITY, SEND, RECEIVE, FINAL };

static void meet_neighbours(const ax_ring_walk *walk) {
  ax_value barrier = ax_barrier_semaphore();
  ax_kernel_trace_begin("Init barrier");
  for (int side = AX_LEFT; side <= AX_RIGHT; side++) ax_semaphore_signal(barrier, ax_integer(1), &walk->core[side]);
  ax_semaphore_wait(barrier, ax_integer(2));
  ax_kernel_trace_end();
}

void ax_ring_enter(ax_ring_walk *walk, const ax_value *scratch) {
  if (walk->ring->length == 1) return;
  for (int side = AX_LEFT; side <= AX_RIGHT; side++) {
    if (walk->ring->arrivals[side] == 0) continue;
    walk->stream[side] = (ax_ring_stream){scratch[0],
                                          scratch[1],
                                          scratch[2],
                                          scratch[3],
                                          walk->ring->arrivals[side],
                                          walk->ring->slots[side],
                                          &walk->core[side],
                                          &walk->core[1 - side],
                                          span_names[side]};
    scratch += 4;
    ax_semaphore_signal(walk->stream[side].capacity, ax_integer(walk->ring->slots[side]), NULL);
  }
  meet_neighbours(walk);
}

void ax_ring_leave(const ax_ring_walk *walk) {
  for (int side = AX_LEFT; side <= AX_RIGHT; side++) {
    const ax_ring_stream *stream = &walk->stream[side];
    if (stream->slot_count < 2) continue;
    ax_kernel_trace_begin(stream->names[FINAL]);
    ax_semaphore_wait(stream->capacity, ax_integer(stream->slot_count - 1));
    ax_kernel_trace_end();
  }
}

/* --- Streams --- */

static ax_value slot_of(const ax_ring_stream *stream, ax_value a) {
  return stream->slot_count > 1 ? remainder_of(a, stream->slot_count) : ax_ring_number(0);
}

static void send(const ax_ring_stream *stream, ax_value slot, ax_value part) {
  ax_value to = ax_ref_at(stream->slots, slot), received = ax_ref_at(stream->received, slot), sent = stream->sent;
  ax_kernel_trace_begin(stream->names[CAPACITY]);
  ax_semaphore_wait(stream->capacity, ax_integer(1));
  ax_kernel_trace_end();
  ax_copy_start(part, to, &(ax_copy_options){.received = &received, .sent = &sent, .to = stream->to});
}

void ax_stream_inject(const ax_ring_stream *stream, ax_value part) { send(stream, ax_ring_number(0), part); }

void ax_stream_forward(const ax_ring_stream *stream, ax_value a, ax_value part) {
  send(stream, slot_of(stream, ax_add(a, ax_integer(1))), part);
}

ax_value ax_stream_receive(const ax_ring_stream *stream, ax_value a) {
  ax_value slot = slot_of(stream, a), part = ax_ref_at(stream->slots, slot);
  ax_kernel_trace_begin(stream->names[RECEIVE]);
  ax_copy_wait(ax_ref_at(stream->received, slot), part);
  ax_kernel_trace_end();
  return part;
}

void ax_stream_sent(const ax_ring_stream *stream, ax_value part) {
  ax_kernel_trace_begin(stream->names[SEND]);
  ax_copy_wait(stream->sent, part);
  ax_kernel_trace_end();
}

void ax_stream_free(const ax_ring_stream *stream) { ax_semaphore_signal(stream->capacity, ax_integer(1), stream->from); }
