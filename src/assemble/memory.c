/* Places each buffer in a space.

     constants, inputs, outputs   spaces of their own; equal constants share one place
     pointers                     to the parts that devices see of what goes by pointer (assemble/pointers.c), which is in memory of
                                  one of the other kinds
     shared                       allocations that another activation accesses; reused by lifetime too, which may need waits
                                  (assemble/reuse.c)
     kept                         allocations of one activation that are alive while it may be parked: one part for each coordinate,
                                  reused by lifetime
     scratch                      allocations of one activation between two parkings: a block of the thread that runs it, reused by
                                  lifetime

   Kept and scratch allocations may also be where a result will be, before anything of it is written (lodge.c).

   So a program whose devices never wait in the middle needs scratch for as many devices as run at once, not for all. */
#include <math.h>
#include <string.h>

#include "assemble/assembly.h"
#include "assemble/lodge.h"
#include "assemble/pack.h"
#include "base/shared.h"
#include "code/split.h"
#include "code/tiles.h"
#include "plan/panels.h"

typedef struct room { /* for the work of a GEMM or ROWS */
  uint32_t space;
  int64_t offset, bytes;
} room;

typedef struct placer {
  ax_assembly *a;
  ax_compiled *c;
  uint32_t *alike; /* by allocation: of a constant, the first one with the same data */
  ax_lifetime *lives;    /* by allocation */
  uint32_t *space;       /* by allocation */
  int64_t *offset;       /* by allocation */
  uint32_t *parking_before; /* number of parking waits before each position */
  ax_hosts hosts;
  bool *lodges;            /* by allocation: it is in the memory of a host */
  room *rooms;             /* by position; of 0 bytes: none */
  const uint32_t *devices; /* each device's own number */
  const ax_point *tables[8]; /* the latest POINTs whose table `next` was made */
  uint32_t table_count;
  uint32_t space_capacity;
  uint32_t *kept;        /* all kept spaces */
  uint32_t kept_count, kept_capacity;
} placer;

static int64_t round64(int64_t bytes) { return (bytes + 63) & ~(int64_t)63; }

/* More than any machine has, and small enough that sums of such sizes do not overflow. The second is for devices of many machines. */
static const int64_t most_bytes = (int64_t)1 << 46, most_counted = (int64_t)1 << 57;

static uint32_t allocation_count(const placer *p) { return p->a->plan->buffer_count; }

static ax_status check_sizes(const placer *p) {
  for (uint32_t i = 0; i < allocation_count(p); i++) {
    const ax_buffer *buffer = &p->a->plan->buffers[i];
    const int64_t bytes = ax_buffer_bytes(buffer);
    if (bytes > most_bytes)
      return ax_error(AX_OUT_OF_MEMORY, "out of memory: %s takes %lld bytes", ax_type_string(&buffer->type, NULL),
                      (long long)bytes);
  }
  return AX_OK;
}

/* Computes the bytes of each space, and the places of its parts in a run's table, once the size of one part is known. */
static ax_status close_spaces(const ax_assembly *a) {
  ax_compiled *c = a->compiled;
  const size_t most = (size_t)(a->counted ? most_counted : most_bytes);
  for (uint32_t s = 0; s < c->space_count; s++) {
    ax_part_space *space = &c->spaces[s];
    bool fits = ax_mul_size((size_t)space->bytes, c->sets[space->set].size, &space->total);
    if (!fits || space->total > most) return ax_out_of_memory(fits ? space->total : SIZE_MAX);
    uint32_t parts = space->kind == AX_SPACE_SCRATCH ? c->devices : c->sets[space->set].size;
    if (parts > UINT32_MAX - c->part_count) return ax_out_of_memory(SIZE_MAX);
    space->first = c->part_count;
    c->part_count += parts;
  }
  return AX_OK;
}

static ax_status new_space(placer *p, ax_space_kind kind, uint32_t index, ax_axis_set axes, int64_t bytes, uint32_t *out) {
  ax_compiled *c = p->c;
  if (c->space_count == p->space_capacity) {
    p->space_capacity = p->space_capacity < 8 ? 8 : p->space_capacity * 2;
    ax_part_space *spaces = ax_arena_alloc(&p->a->plan->arena, p->space_capacity * sizeof spaces[0]);
    if (spaces == NULL) return ax_out_of_memory(p->space_capacity * sizeof spaces[0]);
    if (c->space_count > 0) memcpy(spaces, c->spaces, c->space_count * sizeof spaces[0]);
    c->spaces = spaces;
  }
  ax_part_space *space = &c->spaces[c->space_count];
  *space = (ax_part_space){.kind = kind, .index = index, .bytes = round64(bytes)};
  AX_TRY(ax_set_of(c, axes, &space->set));
  *out = c->space_count++;
  return AX_OK;
}

/* --- Lifetimes --- */

static ax_status find_lifetimes(placer *p) {
  const ax_assembly *a = p->a;
  AX_TRY(ax_find_lifetimes(p->a, &p->lives));
  p->parking_before = ax_arena_alloc(&p->a->scratch, (a->instr_count + 1) * sizeof p->parking_before[0]);
  if (p->parking_before == NULL) return ax_out_of_memory(a->instr_count * sizeof p->parking_before[0]);
  for (uint32_t i = 0; i < a->instr_count; i++)
    p->parking_before[i + 1] = p->parking_before[i] + ax_instr_parks(&a->instrs[i]);
  return AX_OK;
}

static bool crosses_parking_wait(const placer *p, const ax_lifetime *life) {
  return p->parking_before[life->last + 1] != p->parking_before[life->first];
}

/* --- Packing --- */

/* A host is full for the lists of other spaces, which know nothing of who is in it. */
static uint32_t take_host(placer *p, uint32_t host) {
  p->hosts.place[host].until = 0;
  return p->space[p->hosts.allocation[host]];
}

static void lodge(placer *p, uint32_t allocation, uint32_t host) {
  p->space[allocation] = take_host(p, host);
  p->lodges[allocation] = true;
}

/* A thread has less from the heap, each time the same memory, which its cache still holds. */
enum { least_room = 64 << 10 }; /* bytes */

/* Products and groups of rows of one device work in scratch memory, or where a result will be. On several devices a thread that makes
   one alone takes memory for itself, since scratch memory is there for each device that runs. */
static int64_t room_bytes(const ax_assembly *a, uint32_t position) {
  const ax_op *op = a->ops[position];
  if (a->instrs[position].kind == AX_INSTR_GEMM) {
    const int64_t bytes = (int64_t)ax_gemm_room_bytes(op->gemm, a->threads);
    return bytes < least_room ? 0 : bytes;
  }
  if (a->instrs[position].kind != AX_INSTR_ROWS) return 0;
  return round64(op->rows->block_bytes) * (op->rows->parts > 1 && a->threads > 1 ? a->threads : 1);
}

static ax_status list_rooms(placer *p) {
  const ax_assembly *a = p->a;
  p->rooms = ax_arena_alloc(&p->a->scratch, (a->instr_count + (size_t)1) * sizeof p->rooms[0]);
  if (p->rooms == NULL) return ax_out_of_memory(a->instr_count * sizeof p->rooms[0]);
  if (p->c->devices != 1 || a->results_elsewhere || a->elsewhere) return AX_OK;
  for (uint32_t i = 0; i < a->instr_count; i++) p->rooms[i].bytes = round64(room_bytes(a, i));
  return AX_OK;
}

/* Places the allocations of a list, which begins with `allocation` and is linked by `next`; *bytes: the bytes needed.
   Allocations of one activation come first, packed by lifetime. Behind them come shared ones, whose offsets were decided before
   synchronisation (assemble/reuse.c). */
static ax_status pack(placer *p, uint32_t space, uint32_t allocation, const uint32_t *next, int64_t *bytes) {
  const ax_plan *plan = p->a->plan;
  uint32_t count = 0, rooms = space == p->c->scratch_space ? p->a->instr_count : 0;
  int64_t mine;
  for (uint32_t i = allocation; i != AX_NONE; i = next[i]) count += !p->a->shared[i];
  for (uint32_t i = 0; i < rooms; i++) count += p->rooms[i].bytes > 0;
  ax_packed *items = ax_arena_alloc(&p->a->scratch, count * sizeof items[0]);
  if (items == NULL) return ax_out_of_memory(count * sizeof items[0]);
  count = 0;
  for (uint32_t i = allocation; i != AX_NONE; i = next[i])
    if (!p->a->shared[i])
      items[count++] = (ax_packed){.first = p->lives[i].first,
                                   .last = p->lives[i].last,
                                   .bytes = round64(ax_buffer_bytes(&plan->buffers[i])),
                                   .apart = plan->buffers[i].axes != ax_all_axes(&plan->mesh)};
  for (uint32_t i = 0; i < rooms; i++)
    if (p->rooms[i].bytes > 0) items[count++] = (ax_packed){.first = i, .last = i, .bytes = p->rooms[i].bytes};
  AX_TRY(ax_pack_into(items, count, p->hosts.place, p->hosts.count, &mine));
  for (uint32_t i = allocation; i != AX_NONE; i = next[i])
    if (p->a->shared[i]) mine = ax_pack_aligned(mine, ax_buffer_bytes(&plan->buffers[i]));
  *bytes = mine;
  count = 0;
  for (uint32_t i = allocation; i != AX_NONE; i = next[i]) {
    const ax_packed *item = p->a->shared[i] ? NULL : &items[count++];
    p->offset[i] = item != NULL ? item->offset : mine + p->a->shared_offset[i];
    if (item != NULL && item->place != AX_NONE) {
      lodge(p, i, item->place);
      continue;
    }
    int64_t end = p->offset[i] + round64(ax_buffer_bytes(&plan->buffers[i]));
    if (end > *bytes) *bytes = end;
  }
  for (uint32_t i = 0; i < rooms; i++) {
    if (p->rooms[i].bytes == 0) continue;
    const ax_packed *item = &items[count++];
    p->rooms[i].offset = item->offset;
    p->rooms[i].space = item->place != AX_NONE ? take_host(p, item->place) : space;
  }
  *bytes = ax_pack_aligned(*bytes, *bytes); /* parts follow one another, each aligned as what lies in it */
  return AX_OK;
}

/* --- Spaces --- */

static bool is_constant(const ax_plan *plan, uint32_t i) {
  return plan->buffers[i].kind == AX_BUFFER_CONST && plan->buffers[i].allocation == i;
}
/* Says whether a run holds this constant. It need not if all its readers have a packed copy. */
static bool is_held(const placer *p, uint32_t i) { return is_constant(p->a->plan, i) && p->lives[i].first <= p->lives[i].last; }

static bool same_constant(const ax_buffer *a, const ax_buffer *b) {
  if (a->data != b->data || ax_buffer_bytes(a) != ax_buffer_bytes(b) || (a->panels == NULL) != (b->panels == NULL)) return false;
  return a->panels == NULL || ax_panels_equal(a->panels, b->panels);
}

/* Returns the first constant with the same data; all calls of a body share theirs. seen: a hash table of 1 + allocation, with
   free entries left. */
static uint32_t first_alike(const ax_plan *plan, uint32_t *seen, size_t size, uint32_t allocation) {
  const ax_buffer *buffer = &plan->buffers[allocation];
  size_t at = ax_hash_word(AX_HASH_SEED, (uintptr_t)buffer->data) & (size - 1);
  for (; seen[at] != 0; at = (at + 1) & (size - 1)) {
    const ax_buffer *other = &plan->buffers[seen[at] - 1];
    if (same_constant(other, buffer)) return seen[at] - 1;
  }
  seen[at] = allocation + 1;
  return allocation;
}

/* A large constant that is not packed stays in the memory of its owner, as a space of its own. */
enum { least_lent = 1 << 16 }; /* bytes */

static bool is_lent(const ax_buffer *buffer) {
  return buffer->owner != NULL && buffer->panels == NULL && ax_buffer_bytes(buffer) >= least_lent;
}

static ax_status find_constants(placer *p, int64_t *bytes) {
  const ax_plan *plan = p->a->plan;
  size_t count = 0, size = 16;
  for (uint32_t i = 0; i < allocation_count(p); i++) count += is_constant(plan, i);
  while (size < 2 * count) size *= 2;
  uint32_t *seen = ax_arena_alloc(&p->a->scratch, size * sizeof seen[0]);
  p->alike = ax_arena_alloc(&p->a->scratch, allocation_count(p) * sizeof p->alike[0]);
  if (seen == NULL || p->alike == NULL) return ax_out_of_memory(size * sizeof seen[0]);
  for (uint32_t i = 0; i < allocation_count(p); i++) {
    if (!is_held(p, i)) continue;
    uint32_t first = p->alike[i] = first_alike(plan, seen, size, i);
    if (is_lent(&plan->buffers[i])) continue;
    const int64_t own = ax_buffer_bytes(&plan->buffers[i]);
    p->offset[i] = first == i ? ax_pack_aligned(*bytes, own) : p->offset[first];
    if (first == i) *bytes = p->offset[i] + round64(own);
  }
  return AX_OK;
}

static ax_status put_constant(const ax_buffer *buffer, unsigned char *to) {
  void *const memory[] = {(void *)(uintptr_t)buffer->data, to};
  if (buffer->panels == NULL) memcpy(to, buffer->data, (size_t)ax_buffer_bytes(buffer));
  for (uint32_t part = 0; buffer->panels != NULL && part < ax_panels_parts(buffer->panels); part++)
    AX_TRY(ax_panels_pack(buffer->panels, memory, part));
  return AX_OK;
}

static ax_status lend_constants(placer *p) {
  const ax_plan *plan = p->a->plan;
  ax_compiled *c = p->c;
  uint32_t count = 0;
  for (uint32_t i = 0; i < allocation_count(p); i++) count += is_held(p, i) && is_lent(&plan->buffers[i]) && p->alike[i] == i;
  c->lent = ax_arena_alloc(&p->a->plan->arena, count * sizeof c->lent[0]);
  if (c->lent == NULL) return ax_out_of_memory(count * sizeof c->lent[0]);
  for (uint32_t i = 0; i < allocation_count(p); i++) {
    const ax_buffer *buffer = &plan->buffers[i];
    if (!is_held(p, i) || !is_lent(buffer)) continue;
    p->offset[i] = 0;
    p->space[i] = p->space[p->alike[i]]; /* the first comes first */
    if (p->alike[i] != i) continue;
    c->lent[c->lent_count++] = (ax_lent_constant){buffer->data, ax_shared_retain(buffer->owner)};
    AX_TRY(new_space(p, AX_SPACE_CONST, c->lent_count, 0, ax_buffer_bytes(buffer), &p->space[i]));
  }
  return AX_OK;
}

static ax_status place_constants(placer *p) {
  ax_plan *plan = p->a->plan;
  int64_t bytes = 0, copied = 0; /* consecutive ones lie in order */
  AX_TRY(find_constants(p, &bytes));
  AX_TRY(new_space(p, AX_SPACE_CONST, 0, 0, bytes, &p->c->const_space));
  p->c->constants = ax_alloc_array((size_t)bytes + 64);
  if (p->c->constants == NULL) return ax_out_of_memory((size_t)bytes);
  memset(p->c->constants, 0, (size_t)bytes + 64);
  for (uint32_t i = 0; i < allocation_count(p); i++) {
    const ax_buffer *buffer = &plan->buffers[i];
    if (!is_held(p, i) || is_lent(buffer)) continue;
    p->space[i] = p->c->const_space;
    if (ax_buffer_bytes(buffer) == 0 || p->offset[i] < copied) continue;
    AX_TRY(put_constant(buffer, p->c->constants + p->offset[i]));
    copied = p->offset[i] + ax_buffer_bytes(buffer);
  }
  return lend_constants(p);
}

/* Says in which part of its space each block of result k is, if there are fewer parts than blocks. */
static ax_status share_parts(placer *p, uint32_t k) {
  const ax_plan *plan = p->a->plan;
  ax_result *result = &p->c->results[k];
  const ax_axis_set stored = plan->buffers[plan->buffers[plan->out[k]].allocation].axes;
  uint32_t blocks, parts;
  if (plan->out_axes[k] == stored) return AX_OK;
  AX_TRY(ax_set_of(p->c, plan->out_axes[k], &blocks));
  AX_TRY(ax_set_of(p->c, stored, &parts));
  uint32_t *part = ax_arena_alloc(&p->a->plan->arena, p->c->sets[blocks].size * sizeof part[0]);
  if (part == NULL) return ax_out_of_memory(p->c->sets[blocks].size * sizeof part[0]);
  for (uint32_t d = 0; d < p->c->devices; d++) part[p->c->sets[blocks].index[d]] = p->c->sets[parts].index[d];
  result->part = part;
  result->part_count = p->c->sets[parts].size;
  return AX_OK;
}

/* An image has no memory, and needs that of its source as long as it can be read. */
static ax_status place_pointers(placer *p) {
  ax_assembly *a = p->a;
  for (uint32_t i = 0; a->pointed != NULL && i < allocation_count(p); i++) {
    ax_pointed *one = &a->pointed[i];
    if (!one->has_pointers) continue;
    AX_TRY(new_space(p, AX_SPACE_POINTERS, i, ax_all_axes(&a->plan->mesh), 0, &one->space));
    if (one->memory == i) continue;
    p->space[i] = one->space;
    p->lives[i] = p->lives[one->memory];
  }
  return AX_OK;
}

static ax_status place_result(placer *p, uint32_t k) {
  const ax_plan *plan = p->a->plan;
  const uint32_t allocation = plan->buffers[plan->out[k]].allocation, memory = ax_memory_of_allocation(p->a, allocation);
  const ax_buffer *buffer = &plan->buffers[memory];
  ax_result *result = &p->c->results[k];
  *result = (ax_result){.donated = AX_NONE, .lent = AX_NONE, .pointers = AX_NONE};
  if (p->a->pointed != NULL) result->pointers = p->a->pointed[allocation].space;
  AX_TRY(ax_set_of(p->c, plan->out_axes[k], &result->blocks));
  AX_TRY(share_parts(p, k));
  if (buffer->kind == AX_BUFFER_INPUT) {
    *(memory == allocation ? &result->donated : &result->lent) = buffer->index;
    result->space = p->space[allocation];
    return AX_OK;
  }
  AX_TRY(new_space(p, AX_SPACE_OUTPUT, k, buffer->axes, ax_buffer_bytes(buffer), &p->space[memory]));
  result->space = p->space[memory];
  return AX_OK;
}

static ax_status place_arguments(placer *p) {
  ax_plan *plan = p->a->plan;
  p->c->results = ax_arena_alloc(&plan->arena, plan->out_count * sizeof p->c->results[0]);
  if (p->c->results == NULL) return ax_out_of_memory(plan->out_count * sizeof p->c->results[0]);
  for (uint32_t i = 0; i < plan->in_count; i++) {
    const ax_buffer *buffer = &plan->buffers[plan->in[i]];
    AX_TRY(new_space(p, AX_SPACE_INPUT, i, buffer->axes, ax_buffer_bytes(buffer), &p->space[plan->in[i]]));
  }
  AX_TRY(place_pointers(p));
  for (uint32_t k = 0; k < plan->out_count; k++) AX_TRY(place_result(p, k));
  return AX_OK;
}

/* Gives the kept space for an axis set, which is made when first needed. */
static ax_status kept_space(placer *p, ax_axis_set axes, uint32_t *out) {
  for (uint32_t i = 0; i < p->kept_count; i++)
    if (p->c->sets[p->c->spaces[p->kept[i]].set].axes == axes) {
      *out = p->kept[i];
      return AX_OK;
    }
  AX_TRY(ax_grow(&p->kept, sizeof p->kept[0], p->kept_count, 1, &p->kept_capacity));
  AX_TRY(new_space(p, AX_SPACE_KEPT, 0, axes, 0, out));
  p->kept[p->kept_count++] = *out;
  return AX_OK;
}

static ax_status choose_spaces(placer *p) {
  const ax_plan *plan = p->a->plan;
  AX_TRY(new_space(p, AX_SPACE_SCRATCH, 0, 0, 0, &p->c->scratch_space));
  for (uint32_t i = 0; i < allocation_count(p); i++) {
    const ax_buffer *buffer = &plan->buffers[i];
    if (buffer->kind != AX_BUFFER_TEMP || buffer->allocation != i || p->space[i] != AX_NONE || p->lives[i].first > p->lives[i].last)
      continue;
    if (!p->a->shared[i] && !crosses_parking_wait(p, &p->lives[i]))
      p->space[i] = p->c->scratch_space;
    else
      AX_TRY(kept_space(p, buffer->axes, &p->space[i]));
  }
  return AX_OK;
}

/* If no later instruction needs the contents of scratch memory, an activation that must wait gives its block to another. */
static ax_status park_where_free(placer *p) {
  ax_assembly *a = p->a;
  int64_t alive = 0, *change = ax_arena_alloc(&a->scratch, (a->instr_count + (size_t)1) * sizeof change[0]);
  if (change == NULL) return ax_out_of_memory(a->instr_count * sizeof change[0]);
  for (uint32_t i = 0; i < allocation_count(p); i++) {
    if (p->space[i] != p->c->scratch_space) continue;
    change[p->lives[i].first]++;
    change[p->lives[i].last]--;
  }
  for (uint32_t i = 0; i < a->instr_count; i++) {
    if (a->instrs[i].kind == AX_INSTR_WAIT && alive == 0) a->instrs[i].sync.parks = true;
    alive += change[i]; /* a wait touches no memory: all that began before it and has not ended is alive across it */
  }
  return AX_OK;
}

static ax_status place_temporaries(placer *p) {
  ax_compiled *c = p->c;
  AX_TRY(choose_spaces(p));
  AX_TRY(park_where_free(p));
  AX_TRY(list_rooms(p));
  AX_TRY(ax_list_hosts(p->a, &p->a->scratch, p->lives, &p->hosts));
  uint32_t *first = ax_arena_alloc(&p->a->scratch, c->space_count * sizeof first[0]); /* allocations, by space */
  uint32_t *next = ax_arena_alloc(&p->a->scratch, allocation_count(p) * sizeof next[0]);
  if (first == NULL || next == NULL) return ax_out_of_memory(allocation_count(p) * sizeof next[0]);
  memset(first, 0xff, c->space_count * sizeof first[0]);
  for (uint32_t i = allocation_count(p); i-- > 0;) {
    if (p->space[i] == AX_NONE) continue;
    next[i] = first[p->space[i]];
    first[p->space[i]] = i;
  }
  for (uint32_t s = 0; s < c->space_count; s++)
    if (c->spaces[s].kind == AX_SPACE_KEPT || c->spaces[s].kind == AX_SPACE_SCRATCH)
      AX_TRY(pack(p, s, first[s], next, &c->spaces[s].bytes));
  return AX_OK;
}

/* --- Operands --- */

static ax_ref ref_of(const placer *p, uint32_t buffer) {
  const ax_buffer *b = &p->a->plan->buffers[buffer];
  const ax_pointed *pointed = p->a->pointed != NULL ? &p->a->pointed[b->allocation] : NULL;
  const uint32_t memory = ax_memory_of_allocation(p->a, b->allocation);
  ax_ref ref = {.space = pointed != NULL && pointed->has_pointers ? pointed->space : p->space[memory],
                .offset = p->offset[memory] + b->offset};
  assert(ref.space != AX_NONE);
  const ax_part_space *space = &p->c->spaces[ref.space];
  ref.first = space->first;
  ref.place = space->kind == AX_SPACE_SCRATCH ? p->devices : p->c->sets[space->set].index;
  if (b->loop != AX_NONE) {
    ref.loop = b->loop;
    ref.step = b->step;
  }
  return ref;
}

static ax_status set_refs(placer *p, ax_instr *instr, const uint32_t *buffers, uint32_t count) {
  instr->refs = ax_arena_alloc(&p->a->plan->arena, count * sizeof instr->refs[0]);
  if (instr->refs == NULL) return ax_out_of_memory(count * sizeof instr->refs[0]);
  instr->ref_count = count;
  for (uint32_t i = 0; i < count; i++) instr->refs[i] = ref_of(p, buffers[i]);
  return AX_OK;
}

/* Slots of local allocations are in no space; their offset is within the block of rows. */
static ax_status rows_refs(placer *p, ax_instr *instr, const ax_rows *rows) {
  uint32_t at = 0;
  instr->refs = ax_arena_alloc(&p->a->plan->arena, rows->slot_count * sizeof instr->refs[0]);
  if (instr->refs == NULL) return ax_out_of_memory(rows->slot_count * sizeof instr->refs[0]);
  instr->ref_count = rows->slot_count;
  if (p->c->rows_bytes < (size_t)rows->block_bytes) p->c->rows_bytes = (size_t)rows->block_bytes;
  for (uint32_t k = 0; k < rows->count; k++)
    for (uint32_t i = 0; i < ax_op_slots(&rows->members[k]); i++, at++) {
      uint32_t buffer = ax_op_slot(&rows->members[k], i).buffer;
      instr->refs[at] = rows->slots[at].row_bytes == 0 ? ref_of(p, buffer)
                                                       : (ax_ref){.space = AX_NONE, .offset = p->a->plan->buffers[buffer].offset};
    }
  return AX_OK;
}

static ax_status eval_refs(placer *p, ax_instr *instr, const ax_op *op) {
  uint32_t count = op->eqn->in_count + op->eqn->out_count;
  uint32_t *buffers = ax_arena_alloc(&p->a->scratch, count * sizeof buffers[0]);
  if (buffers == NULL) return ax_out_of_memory(count * sizeof buffers[0]);
  memcpy(buffers, op->eval.in, op->eqn->in_count * sizeof buffers[0]);
  memcpy(buffers + op->eqn->in_count, op->eval.out, op->eqn->out_count * sizeof buffers[0]);
  return set_refs(p, instr, buffers, count);
}

static ax_status ragged_refs(placer *p, ax_instr *instr, const ax_op *op) {
  ax_ragged_buffer list[AX_RAGGED_MOST];
  uint32_t buffers[AX_RAGGED_MOST], count = ax_ragged_buffers(op->ragged, op->step, list);
  for (uint32_t k = 0; k < count; k++) buffers[k] = list[k].buffer;
  return set_refs(p, instr, buffers, count);
}

static ax_status cores_refs(placer *p, ax_instr *instr, const ax_op *op) {
  uint32_t count = ax_cores_buffer_count(op->cores, op->cores_step);
  uint32_t *buffers = ax_arena_alloc(&p->a->scratch, count * sizeof buffers[0]);
  if (buffers == NULL) return ax_out_of_memory(count * sizeof buffers[0]);
  for (uint32_t k = 0; k < count; k++) buffers[k] = ax_cores_buffer_at(op->cores, op->cores_step, k).buffer;
  return set_refs(p, instr, buffers, count);
}

/* Gives the part that a device sees after the exchange, by that which it has seen before. The tables of equal exchanges are one. */
static ax_status make_next(placer *p, ax_point *point) {
  const ax_mesh *mesh = &p->a->plan->mesh;
  const ax_exchange *x = point->exchange;
  if (x == NULL) return AX_OK;
  for (uint32_t i = 0; i < AX_COUNT(p->tables); i++)
    if (p->tables[i] != NULL && p->tables[i]->place == point->place && ax_compare_pairs(p->tables[i]->exchange, x) == 0) {
      point->next = p->tables[i]->next;
      return AX_OK;
    }
  const size_t members = x->pairs->count;
  uint32_t *next = ax_arena_alloc(&p->a->plan->arena, point->parts * sizeof next[0]);
  int64_t *source = ax_arena_alloc(&p->a->scratch, members * sizeof source[0]);
  if (next == NULL || source == NULL) return ax_out_of_memory(point->parts * sizeof next[0]);
  for (size_t i = 0; i < members; i++) source[x->pairs->v[i][1]] = x->pairs->v[i][0];
  for (uint32_t d = 0; d < p->c->devices; d++) {
    const uint32_t from = (uint32_t)ax_axes_device(&x->names, mesh, d, source[ax_axes_index(&x->names, mesh, d)]);
    next[point->place[d]] = point->place[from];
  }
  point->next = next;
  p->tables[p->table_count++ % AX_COUNT(p->tables)] = point;
  return AX_OK;
}

static uint32_t pointers_of(const placer *p, uint32_t allocation) {
  if (allocation == AX_NONE || !p->a->pointed[allocation].has_pointers) return AX_NONE;
  return p->c->spaces[p->a->pointed[allocation].space].first;
}

/* All devices have pointers, also those that share a part. */
static ax_status encode_point(placer *p, ax_instr *instr, const ax_op *op) {
  ax_point *point = instr->point;
  const ax_part_space *space = &p->c->spaces[p->space[point->memory]];
  if (op != NULL) {
    instr->eqn = op->eqn;
    instr->program = op->program;
  }
  instr->skip = 0;
  p->c->points = true;
  point->from_pointers = pointers_of(p, point->from);
  point->to_pointers = pointers_of(p, point->to);
  point->first = space->first;
  point->parts = p->c->sets[space->set].size;
  point->place = p->c->sets[space->set].index;
  return make_next(p, point);
}

static ax_status exchange_refs(placer *p, ax_instr *instr, const ax_exchange *exchange) {
  uint32_t buffers[AX_EXCHANGE_BUFFERS];
  const uint32_t count = ax_exchange_buffers(p->a, exchange, buffers);
  const ax_gemm *product = ax_contributed_to(p->a, exchange);
  if (product != NULL) instr->parts = ax_gemm_parts(product);
  return set_refs(p, instr, buffers, count);
}

static double nanoseconds_of(const ax_assembly *a, const ax_op *op) {
  const ax_gemm *product = op->kind == AX_OP_START ? ax_contributed_to(a, op->exchange) : NULL;
  return ax_op_time(a->plan, op) + (product != NULL ? ax_gemm_time(product) : 0);
}

static ax_status encode_room(placer *p, ax_instr *instr, const room *room) {
  instr->room = NULL;
  if (room->bytes == 0) return AX_OK;
  const ax_part_space *space = &p->c->spaces[room->space];
  ax_work_room *made = ax_arena_alloc(&p->a->plan->arena, sizeof *made);
  if (made == NULL) return ax_out_of_memory(sizeof *made);
  made->ref = (ax_ref){.space = room->space,
                       .offset = room->offset,
                       .first = space->first,
                       .place = space->kind == AX_SPACE_SCRATCH ? p->devices : p->c->sets[space->set].index};
  made->bytes = (size_t)room->bytes;
  instr->room = made;
  return AX_OK;
}

static ax_status encode(placer *p, uint32_t position) {
  ax_instr *instr = &p->a->instrs[position];
  const ax_op *op = p->a->ops[position];
  if (instr->kind == AX_INSTR_POINT) return encode_point(p, instr, op);
  if (op == NULL) return AX_OK;
  instr->eqn = op->eqn;
  instr->program = op->program;
  bool control = instr->kind == AX_INSTR_LOOP || instr->kind == AX_INSTR_TEST || instr->kind == AX_INSTR_BRANCH;
  instr->skip = control ? 0 : ax_all_axes(&p->a->plan->mesh) & ~op->axes;
  switch (instr->kind) {
    case AX_INSTR_KERNEL: {
      const ax_loop_kernel *kernel = op->kernel.kernel;
      instr->kernel.extent = ax_kernel_extent(kernel);
      instr->kernel.later = NULL;
      instr->kernel.given = NULL;
      instr->parts = kernel->parts;
      return set_refs(p, instr, op->kernel.buffers, kernel->slot_count);
    }
    case AX_INSTR_ROWS:
      instr->parts = op->rows->parts;
      AX_TRY(encode_room(p, instr, &p->rooms[position]));
      return rows_refs(p, instr, op->rows);
    case AX_INSTR_GEMM: {
      uint32_t buffers[] = {op->gemm->a, op->gemm->b, op->gemm->c};
      instr->gemm = op->gemm;
      instr->parts = ax_gemm_parts(op->gemm);
      AX_TRY(encode_room(p, instr, &p->rooms[position]));
      return set_refs(p, instr, buffers, 3);
    }
    case AX_INSTR_CALL: /* activations without a call of their own count the calls that others make */
      instr->skip = 0;
      /* fall through */
    case AX_INSTR_EVAL: instr->call.callback = op->eval.callback; return eval_refs(p, instr, op);
    case AX_INSTR_ROUTINE:
      instr->routine = op->routine;
      instr->parts = op->routine->parts;
      return set_refs(p, instr, op->routine->buffers, op->routine->in_count + op->routine->out_count);
    case AX_INSTR_CHECK:
      instr->parts = ax_check_parts(instr->check);
      return set_refs(p, instr, op->check.buffers, op->check.count);
    case AX_INSTR_RAGGED: return ragged_refs(p, instr, op);
    case AX_INSTR_CORES:
      instr->parts = op->cores->came == AX_NONE ? op->cores->core_count : 1;
      return cores_refs(p, instr, op);
    case AX_INSTR_PUSH:
    case AX_INSTR_CLEAR: return exchange_refs(p, instr, op->exchange);
    case AX_INSTR_SEND:
    case AX_INSTR_RECEIVE: return set_refs(p, instr, &op->message->buffer, 1);
    case AX_INSTR_TEST: return set_refs(p, instr, &op->loop.condition, 1);
    case AX_INSTR_BRANCH: return set_refs(p, instr, &op->branch.index, 1);
    default: return AX_OK;
  }
}

/* Notes in the assembly the space, offset and lifetime of each allocation. */
static ax_status note_residents(placer *p) {
  ax_assembly *a = p->a;
  a->residents = ax_arena_alloc(&a->scratch, allocation_count(p) * sizeof a->residents[0]);
  if (a->residents == NULL) return ax_out_of_memory(allocation_count(p) * sizeof a->residents[0]);
  for (uint32_t i = 0; i < allocation_count(p); i++) a->residents[i] = (ax_resident){p->space[i], p->offset[i], p->lives[i], p->lodges[i]};
  return AX_OK;
}

static ax_status place(placer *p) {
  ax_assembly *a = p->a;
  p->space = ax_arena_alloc(&a->scratch, allocation_count(p) * sizeof p->space[0]);
  p->offset = ax_arena_alloc(&a->scratch, allocation_count(p) * sizeof p->offset[0]);
  p->lodges = ax_arena_alloc(&a->scratch, allocation_count(p) * sizeof p->lodges[0]);
  if (p->space == NULL || p->offset == NULL || p->lodges == NULL) return ax_out_of_memory(0);
  memset(p->space, 0xff, allocation_count(p) * sizeof p->space[0]);
  AX_TRY(check_sizes(p));
  AX_TRY(find_lifetimes(p));
  AX_TRY(place_constants(p));
  AX_TRY(place_arguments(p));
  AX_TRY(place_temporaries(p));
  AX_TRY(close_spaces(a));
  uint32_t all;
  AX_TRY(ax_set_of(p->c, ax_all_axes(&a->plan->mesh), &all));
  p->devices = p->c->sets[all].index;
  for (uint32_t i = 0; i < a->instr_count; i++) {
    ax_instr *instr = &a->instrs[i];
    AX_TRY(encode(p, i));
    if (instr->parts > 1) instr->microseconds = (uint16_t)fmin(nanoseconds_of(a, a->ops[i]) / 1000, UINT16_MAX);
  }
  return note_residents(p);
}

ax_status ax_instrs_memory(ax_assembly *a) {
  placer p = {.a = a, .c = a->compiled};
  ax_status status = place(&p);
  ax_free(p.kept);
  return status;
}
