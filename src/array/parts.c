/* Parts: the addresses of an array's blocks, the owner of their memory, and changes of layout. A change of layout copies from
   block to block the elements that new blocks share with old ones. A new block that is a dense piece of an old one stays in place,
   and keeps the old parts alive. */
#include <string.h>
#include <unistd.h>

#include "array/copying.h"
#include "array/moving.h"
#include "array/runtime.h"
#include "client/client.h"
#include "mesh/assignment.h"
#include "mesh/sharding.h"

/* --- Layouts --- */

/* Computes the sizes. False: more bytes than can be addressed. */
static bool measure(ax_layout *layout) {
  layout->blocks = (uint32_t)ax_shard_count(&layout->spec, &layout->mesh);
  layout->block_bytes = (size_t)ax_type_elems(&layout->block) * ax_dtype_bytes(layout->block.dtype); /* see ax_type_check */
  layout->stride = (layout->block_bytes + 63) & ~(size_t)63;
  return ax_mul_size(layout->stride, layout->blocks, &layout->bytes);
}

/* The process of each place, by block. count: by block, how many places have it. */
static void sort_by_block(ax_layout *layout, uint32_t *count) {
  for (uint32_t b = 0, next = 0; b < layout->blocks; b++) {
    layout->first_holder[b] = next;
    next += count[b];
    count[b] = 0;
  }
  for (uint32_t d = 0; d < layout->map->devices; d++) {
    const uint32_t b = ax_layout_block_at(layout, d);
    layout->holder[layout->first_holder[b] + count[b]++] = layout->map->of[d];
    layout->here[b] = layout->here[b] || ax_device_is_here(layout->map, d);
  }
}

/* The processes that have each block, without repetition, in order of places. seen: by process, 0. */
static void note_holders(ax_layout *layout, uint32_t *count, uint32_t *seen) {
  uint32_t next = 0;
  sort_by_block(layout, count);
  for (uint32_t b = 0; b < layout->blocks; b++) {
    const uint32_t *places = &layout->holder[layout->first_holder[b]];
    layout->first_holder[b] = next;
    for (uint32_t i = 0; i < count[b]; i++) {
      const uint32_t process = places[i];
      if (seen[process] == b + 1) continue;
      seen[process] = b + 1;
      layout->holder[next++] = process;
    }
  }
  layout->first_holder[layout->blocks] = next;
}

/* Finds the blocks that devices of each process have. An array without a mesh is whole in each process. */
static ax_status find_here(ax_layout *layout) {
  const ax_processes *processes = layout->runtime->executor.processes;
  layout->here_count = layout->blocks;
  if (processes == NULL || processes->rule.processes == 1 || layout->devices <= 1) return AX_OK;
  AX_TRY(ax_process_map_create(&processes->rule, (uint32_t)layout->devices, &layout->map));
  const size_t entries = (size_t)layout->devices + 2 * (size_t)layout->blocks + 1 + layout->map->processes;
  layout->holder = ax_calloc(entries, sizeof layout->holder[0]);
  layout->here = ax_calloc(layout->blocks, sizeof layout->here[0]);
  if (layout->holder == NULL || layout->here == NULL) return ax_out_of_memory(entries * sizeof layout->holder[0]);
  layout->first_holder = layout->holder + layout->devices;
  uint32_t *count = layout->first_holder + layout->blocks + 1;
  for (uint32_t d = 0; d < layout->map->devices; d++) count[ax_layout_block_at(layout, d)]++;
  note_holders(layout, count, count + layout->blocks);
  layout->here_count = 0;
  for (uint32_t b = 0; b < layout->blocks; b++) layout->here_count += layout->here[b];
  layout->bytes = layout->here_count * layout->stride;
  return AX_OK;
}

static void free_layout(ax_layout *layout) {
  ax_free(layout->map);
  ax_free(layout->here);
  ax_free(layout->holder);
  ax_free(layout);
}

bool ax_layout_held_by(const ax_layout *layout, uint32_t process, uint32_t block) {
  if (layout->map == NULL) return true;
  uint32_t at = layout->first_holder[block];
  while (at < layout->first_holder[block + 1] && layout->holder[at] != process) at++;
  return at < layout->first_holder[block + 1];
}

int64_t ax_layout_own_place(const ax_layout *layout, uint32_t block) {
  int64_t place = ax_shard_device(&layout->spec, &layout->mesh, block);
  while (layout->map != NULL && place + 1 < layout->devices &&
         !(ax_device_is_here(layout->map, (uint32_t)place) && ax_layout_block_at(layout, place) == block))
    place++;
  return place;
}

static ax_status make(const ax_layout *like, ax_layout **out) {
  ax_layout *layout = *out = ax_calloc(1, sizeof *layout);
  if (layout == NULL) return ax_out_of_memory(sizeof *layout);
  *layout = *like;
  atomic_init(&layout->references, 1);
  ax_status status = ax_shard_type(&layout->type, &layout->spec, &layout->mesh, &layout->block);
  if (status == AX_OK && !measure(layout)) status = ax_out_of_memory(SIZE_MAX);
  if (status == AX_OK) status = find_here(layout);
  if (status == AX_OK) {
    ax_runtime_hold(layout->runtime);
    ax_sharding_retain(layout->sharding);
    return AX_OK;
  }
  free_layout(layout);
  *out = NULL;
  return status;
}

static uint64_t mix(uint64_t hash, uint64_t number) { return (hash ^ number) * 0x9e3779b97f4a7c15u; }

/* Names and ids are compared for equality, but are not hashed. Processes compare hashes of arguments (array/call.c). */
static uint64_t hash_of(const ax_layout *layout) {
  uint64_t hash = mix((uint64_t)layout->type.dtype, layout->committed);
  for (uint32_t d = 0; d < layout->type.rank; d++) hash = mix(hash, (uint64_t)layout->type.dims[d]);
  for (uint32_t d = 0; d < layout->spec.rank; d++)
    for (uint32_t i = 0; i < layout->spec.count[d]; i++) hash = mix(hash, 64 * d + layout->spec.axis[d][i]);
  for (uint32_t a = 0; a < layout->mesh.count; a++) hash = mix(hash, (uint64_t)layout->mesh.axis[a].size);
  return mix(hash, (uint64_t)layout->devices) >> 32;
}

static bool equal(const ax_layout *a, const ax_layout *b) {
  if (a->hash != b->hash || a->committed != b->committed || a->type.dtype != b->type.dtype || !ax_same_shape(&a->type, &b->type))
    return false;
  if (!ax_mesh_equal(&a->mesh, &b->mesh, true) || a->spec.rank != b->spec.rank || !ax_spec_equal(&a->spec, &b->spec)) return false;
  return a->sharding == b->sharding ||
         (a->sharding != NULL && b->sharding != NULL && a->sharding->rank == b->sharding->rank &&
          memcmp(a->sharding->ids, b->sharding->ids, (size_t)a->devices * sizeof a->sharding->ids[0]) == 0);
}

/* A layout without references stays in the table until the thread that dropped the last one has taken it out. It must not be
   used again. */
static bool still_there(ax_layout *layout) {
  uint32_t references = atomic_load(&layout->references);
  while (references > 0)
    if (atomic_compare_exchange_weak(&layout->references, &references, references + 1)) return true;
  return false;
}

static ax_layout **place_of(ax_runtime *runtime, uint64_t hash) { return &runtime->layouts[hash % AX_COUNT(runtime->layouts)]; }

ax_status ax_layout_create(ax_runtime *runtime, const ax_type *type, const ax_mesh *mesh, const ax_spec *spec,
                           const ax_sharding *devices, bool committed, ax_layout **out) {
  *out = NULL;
  if (devices != NULL && devices->ids != NULL && runtime->client != NULL)
    return ax_error(AX_ABSENT, "arrays and programs of a plugin are on its first devices, in the order of their numbers");
  ax_layout like = {.runtime = runtime,
                    .mesh = *mesh,
                    .spec = *spec,
                    .committed = committed,
                    .named = ax_spec_set(spec),
                    .devices = ax_mesh_devices(mesh)};
  ax_status status = AX_OK;
  if (devices != NULL && devices->ids != NULL)
    like.sharding = (ax_sharding *)devices; /* the cast: counting references does not change the sharding */
  like.type = ax_array_type(type->dtype, AX_LIST(type->rank, type->dims));
  like.hash = hash_of(&like);
  ax_layout **place = place_of(runtime, like.hash), *found;
  pthread_mutex_lock(&runtime->layouts_lock);
  for (found = *place; found != NULL; found = found->next)
    if (equal(found, &like) && still_there(found)) break;
  if (found != NULL) {
    runtime->layouts_found++;
  } else {
    like.next = *place;
    status = make(&like, &found);
    if (status == AX_OK) *place = found;
    runtime->layouts_made += status == AX_OK;
  }
  pthread_mutex_unlock(&runtime->layouts_lock);
  *out = found;
  return status;
}

ax_layout *ax_layout_retain(ax_layout *layout) {
  atomic_fetch_add_explicit(&layout->references, 1, memory_order_relaxed);
  return layout;
}

/* In a forked process another thread may have held the lock for ever. No layouts are made there, so the table is left as it is.
   */
static void take_out(ax_layout *layout) {
  ax_runtime *runtime = layout->runtime;
  if (getpid() != runtime->process) return;
  pthread_mutex_lock(&runtime->layouts_lock);
  ax_layout **link = place_of(runtime, layout->hash);
  while (*link != layout) link = &(*link)->next;
  *link = layout->next;
  pthread_mutex_unlock(&runtime->layouts_lock);
}

void ax_layout_release(ax_layout *layout) {
  if (layout == NULL || atomic_fetch_sub(&layout->references, 1) != 1) return;
  take_out(layout);
  ax_sharding_release(layout->sharding);
  ax_runtime_drop(layout->runtime);
  free_layout(layout);
}

void ax_layout_offset(const ax_layout *layout, uint32_t b, int64_t *offset) {
  ax_shard_offset(&layout->block, &layout->spec, &layout->mesh, ax_shard_device(&layout->spec, &layout->mesh, b), offset);
}

ax_status ax_layout_place(const ax_layout *layout, int64_t device, int64_t *place) {
  const int64_t devices = ax_mesh_devices(&layout->mesh);
  *place = layout->sharding != NULL ? ax_sharding_place(layout->sharding, device) : device;
  if (*place >= 0 && *place < devices) return AX_OK;
  if (layout->sharding != NULL)
    return ax_error(AX_INVALID_ARGUMENT, "device %lld is none of the array's %lld", (long long)device, (long long)devices);
  return ax_error(AX_INVALID_ARGUMENT, "device %lld of a mesh of %lld", (long long)device, (long long)devices);
}

uint32_t ax_layout_block_at(const ax_layout *layout, int64_t place) {
  uint32_t number = 0;
  for (uint32_t axis = 0; axis < layout->mesh.count; axis++)
    if (layout->named >> axis & 1)
      number = number * (uint32_t)layout->mesh.axis[axis].size + (uint32_t)ax_mesh_coordinate(&layout->mesh, place, axis);
  return number;
}

ax_status ax_layout_check_here(const ax_layout *layout, const ax_type *box, const int64_t *start) {
  const ax_type *block = &layout->block;
  for (uint32_t b = 0; b < layout->blocks; b++) {
    int64_t offset[AX_MAX_RANK];
    bool overlaps = !ax_layout_has(layout, b);
    if (overlaps) ax_layout_offset(layout, b, offset);
    for (uint32_t d = 0; overlaps && d < box->rank; d++)
      overlaps = offset[d] < start[d] + box->dims[d] && start[d] < offset[d] + block->dims[d];
    if (overlaps)
      return ax_error(AX_INVALID_ARGUMENT,
                      "the array %s is not whole in this process: it has %u of %u blocks, and block %u is elsewhere",
                      ax_type_string(&layout->type, NULL), layout->here_count, layout->blocks, b);
  }
  return AX_OK;
}

bool ax_layout_same(const ax_layout *a, const ax_layout *b) {
  if (a == b) return true;
  if (a->named == 0 && b->named == 0) return true; /* one block, whatever the mesh */
  return ax_mesh_equal(&a->mesh, &b->mesh, false) && ax_spec_equal(&a->spec, &b->spec);
}

/* --- Lifetime --- */

static size_t bytes_for(uint32_t count) { return sizeof(ax_parts) + count * sizeof(unsigned char *); }

/* Makes parts without memory. */
static ax_status start(ax_runtime *runtime, const ax_layout *layout, ax_parts **out) {
  void *memory;
  *out = NULL;
  AX_TRY(ax_pool_alloc(&runtime->executor.pool, bytes_for(layout->blocks), &memory));
  ax_parts *parts = *out = memory;
  *parts = (ax_parts){.count = layout->blocks};
  atomic_init(&parts->references, 1);
  parts->runtime = runtime;
  return AX_OK;
}

static ax_status allocate(ax_parts *parts, size_t bytes) {
  parts->bytes = bytes;
  return ax_pool_alloc(&parts->runtime->executor.pool, bytes, &parts->memory);
}

/* Frees parts that were begun and could not be completed. */
static ax_status give_up(ax_parts **parts, ax_status status) {
  ax_parts_release(*parts);
  *parts = NULL;
  return status;
}

ax_status ax_parts_create(ax_runtime *runtime, const ax_layout *layout, ax_parts **out) {
  AX_TRY(start(runtime, layout, out));
  ax_parts *parts = *out;
  ax_status status = allocate(parts, layout->bytes);
  if (status != AX_OK) return give_up(out, status);
  unsigned char *next = parts->memory;
  for (uint32_t b = 0; b < parts->count; b++) {
    parts->part[b] = ax_layout_has(layout, b) ? next : NULL;
    if (ax_layout_has(layout, b)) next += layout->stride;
  }
  return AX_OK;
}

ax_status ax_parts_lend(ax_runtime *runtime, const ax_layout *layout, const ax_part *given, ax_parts **out) {
  AX_TRY(start(runtime, layout, out));
  ax_parts *parts = *out;
  ax_part *lent = ax_alloc_plain(layout->blocks * sizeof lent[0]);
  if (lent == NULL) return give_up(out, ax_out_of_memory(layout->blocks * sizeof lent[0]));
  memcpy(lent, given, layout->blocks * sizeof lent[0]);
  parts->lent = lent;
  for (uint32_t b = 0; b < parts->count; b++) {
    parts->part[b] = ax_layout_has(layout, b) ? lent[b].data : NULL;
    parts->read_only = parts->read_only || lent[b].read_only;
  }
  return AX_OK;
}

void ax_parts_return(ax_parts *parts) {
  ax_free(parts->lent);
  parts->lent = NULL;
  ax_parts_release(parts);
}

ax_parts *ax_parts_retain(ax_parts *parts) {
  atomic_fetch_add_explicit(&parts->references, 1, memory_order_relaxed);
  return parts;
}

void ax_parts_release(ax_parts *parts) {
  if (parts == NULL || atomic_fetch_sub(&parts->references, 1) != 1) return;
  for (uint32_t b = 0; parts->lent != NULL && b < parts->count; b++)
    if (parts->lent[b].release != NULL) parts->lent[b].release(parts->lent[b].context);
  ax_pool_free(&parts->runtime->executor.pool, parts->memory, parts->bytes);
  ax_parts_release(parts->source);
  ax_free(parts->lent);
  if (parts->buffers != NULL && parts->runtime->process == getpid()) /* a forked process has none of the plugin's threads */
    ax_buffers_release(parts->buffers);
  ax_pool_free(&parts->runtime->executor.pool, parts, bytes_for(parts->count));
}

ax_status ax_parts_create_away(ax_runtime *runtime, const ax_layout *layout, ax_buffers *buffers, ax_parts **out) {
  AX_TRY(start(runtime, layout, out));
  for (uint32_t b = 0; b < layout->blocks; b++) (*out)->part[b] = NULL;
  (*out)->buffers = buffers;
  atomic_store(&(*out)->away, true);
  return AX_OK;
}

/* --- Another layout --- */

typedef struct move {
  const ax_parts *from;
  const ax_layout *old, *to;
} move;

/* The address of new block b if it lies in place: inside one old block, with nothing between its elements. NULL: it does not. */
static unsigned char *in_place(const move *m, uint32_t b) {
  const ax_type *whole = &m->old->block, *piece = &m->to->block;
  int64_t offset[AX_MAX_RANK], part[AX_MAX_RANK], at = 0;
  if (m->to->block_bytes == 0) return NULL;
  ax_layout_offset(m->to, b, offset);
  bool cut = false; /* an earlier dimension has more than one element here */
  for (uint32_t d = 0; d < whole->rank; d++) {
    int64_t inside = offset[d] % whole->dims[d];
    if (inside + piece->dims[d] > whole->dims[d] || (cut && piece->dims[d] != whole->dims[d])) return NULL;
    cut = cut || piece->dims[d] > 1;
    part[d] = offset[d] / whole->dims[d];
    at = at * whole->dims[d] + inside;
  }
  const uint32_t block = (uint32_t)ax_shard_number(&m->old->spec, &m->old->mesh, part);
  return ax_layout_has(m->old, block) ? m->from->part[block] + (size_t)at * ax_dtype_bytes(whole->dtype) : NULL;
}

/* Fills new block b from the old blocks that it overlaps. */
static void fill(const move *m, uint32_t b, void *data) {
  int64_t offset[AX_MAX_RANK];
  ax_layout_offset(m->to, b, offset);
  ax_blocks_copy(m->from->runtime, &(ax_blocks){&m->old->block, &m->old->spec, &m->old->mesh, m->from->part}, &m->to->block, offset,
                 data);
}

/* Sets the addresses of new blocks that lie in place; returns the number of the others. */
static size_t find_in_place(const move *m, ax_parts *parts) {
  size_t moved = 0;
  for (uint32_t b = 0; b < parts->count; b++)
    if (ax_layout_has(m->to, b) && (parts->part[b] = in_place(m, b)) == NULL) moved++;
  return moved;
}

/* The parts that own the memory. Parts in place keep the owner alive and not each other, so that no chain of them grows from run
   to run. */
static ax_parts *owner_of(ax_parts *parts) { return parts->source != NULL ? parts->source : parts; }

/* Says whether another array has these parts, or other parts lie in their memory. */
static bool shared(ax_parts *parts) { return atomic_load(&parts->references) > 1 || atomic_load(&owner_of(parts)->references) > 1; }

ax_status ax_parts_share(ax_runtime *runtime, const ax_layout *layout, const uint32_t *place, uint32_t count, ax_parts *in,
                         ax_parts **out) {
  AX_TRY(start(runtime, layout, out));
  ax_parts *parts = *out;
  uint32_t *slot = ax_calloc(count, sizeof slot[0]), slots = 0; /* by place: 1 + where it is in memory; 0: not here */
  ax_status status = slot == NULL ? ax_out_of_memory(count * sizeof slot[0]) : AX_OK;
  for (uint32_t b = 0; b < parts->count && status == AX_OK; b++) {
    uint32_t *mine = &slot[place != NULL ? place[b] : 0];
    if (ax_layout_has(layout, b) && *mine == 0) *mine = ++slots;
  }
  if (status == AX_OK && in == NULL) status = allocate(parts, slots * layout->stride);
  if (in != NULL) parts->source = ax_parts_retain(owner_of(in));
  for (uint32_t b = 0; b < parts->count && status == AX_OK; b++) {
    const uint32_t at = place != NULL ? place[b] : 0;
    parts->part[b] = in != NULL ? in->part[at] : (unsigned char *)parts->memory + (slot[at] - 1) * layout->stride;
    if (!ax_layout_has(layout, b)) parts->part[b] = NULL;
  }
  parts->read_only = true;
  ax_free(slot);
  return status == AX_OK ? AX_OK : give_up(out, status);
}

ax_status ax_parts_in(const ax_layout *layout, ax_parts *in, ax_parts **out) {
  AX_TRY(start(in->runtime, layout, out));
  (*out)->source = ax_parts_retain(owner_of(in));
  (*out)->read_only = in->read_only;
  return AX_OK;
}

bool ax_parts_may_hold(const ax_parts *parts) {
  const ax_parts *owner = parts->source != NULL ? parts->source : parts;
  return owner->lent == NULL && (parts->memory == NULL || parts->source == NULL);
}

ax_status ax_parts_own(const ax_parts *from, const ax_layout *layout, ax_parts **out) {
  AX_TRY(ax_parts_create(from->runtime, layout, out));
  const move m = {from, layout, layout};
  for (uint32_t b = 0; b < (*out)->count; b++)
    if (ax_layout_has(layout, b)) fill(&m, b, (*out)->part[b]);
  return AX_OK;
}

ax_status ax_parts_of_block(ax_parts *from, const ax_layout *to, uint32_t block, ax_parts **out) {
  if (from->part[block] == NULL && to->block_bytes > 0)
    return ax_error(AX_INVALID_ARGUMENT, "block %u is in another process", block);
  AX_TRY(start(from->runtime, to, out));
  ax_parts *parts = *out;
  parts->part[0] = from->part[block];
  parts->source = ax_parts_retain(owner_of(from));
  parts->read_only = from->read_only;
  return AX_OK;
}

/* Makes the new parts: those that lie in place, and memory for the others. */
static ax_status make_room(const move *m, ax_parts *from, bool copied, ax_laying laying, ax_parts **out) {
  const ax_layout *to = m->to;
  AX_TRY(start(from->runtime, to, out));
  ax_parts *parts = *out;
  memset(parts->part, 0, parts->count * sizeof parts->part[0]);
  size_t moved = copied ? to->here_count : find_in_place(m, parts);
  if (copied || (laying != AX_LAY_READ && moved > 0)) { /* parts that outlive the run have one memory, or all their owner's */
    memset(parts->part, 0, parts->count * sizeof parts->part[0]);
    moved = to->here_count;
  }
  if (moved < to->here_count) {
    parts->source = ax_parts_retain(owner_of(from));
    parts->read_only = from->read_only;
  }
  ax_status status = moved > 0 ? allocate(parts, moved * to->stride) : AX_OK;
  return status == AX_OK ? AX_OK : give_up(out, status);
}

/* Gives addresses to the parts that do not lie in place, and copies into each what is here. moving: what is not comes by messages.
   */
static void fill_all(const move *m, ax_parts *parts, bool moving) {
  unsigned char *next = parts->memory;
  for (uint32_t b = 0; b < parts->count; b++) {
    if (parts->part[b] != NULL || !ax_layout_has(m->to, b)) continue;
    parts->part[b] = next;
    if (moving) ax_moving_fill(m->old, m->from, m->to, b, next);
    else fill(m, b, next);
    next += m->to->stride;
  }
}

ax_status ax_parts_lay_out(ax_parts *from, const ax_layout *old, const ax_layout *to, ax_laying laying, ax_parts **out) {
  *out = NULL;
  const bool copied = laying == AX_LAY_COPIED || (laying == AX_LAY_WRITTEN && (from->read_only || shared(from)));
  const bool moving = ax_moving_needed(old, to);
  if (ax_layout_same(old, to) && !moving && !copied) {
    *out = ax_parts_retain(from);
    return AX_OK;
  }
  AX_TRY(ax_parts_bring(from, old));
  const move m = {from, old, to};
  ax_status status = make_room(&m, from, copied, laying, out);
  if (status == AX_OK) fill_all(&m, *out, moving);
  if (moving) status = ax_moving_do(status, old, from, to, *out);
  return status == AX_OK || *out == NULL ? status : give_up(out, status);
}
