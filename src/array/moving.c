#include "array/moving.h"

#include <string.h>

#include "array/joint.h"
#include "array/packets.h"
#include "array/runtime.h"
#include "mesh/sharding.h"
#include "processes/talk.h"

/* --- Pieces --- */

/* A box of the whole array. */
typedef struct box {
  ax_type type;
  int64_t offset[AX_MAX_RANK];
} box;

static box box_of(const ax_layout *layout, uint32_t block) {
  box b = {.type = layout->block};
  ax_layout_offset(layout, block, b.offset);
  return b;
}

/* What two boxes have in common, which is not nothing. */
static box common(const box *a, const box *b) {
  box piece = *a;
  for (uint32_t d = 0; d < a->type.rank; d++) {
    const int64_t a_end = a->offset[d] + a->type.dims[d], b_end = b->offset[d] + b->type.dims[d];
    piece.offset[d] = a->offset[d] > b->offset[d] ? a->offset[d] : b->offset[d];
    piece.type.dims[d] = (a_end < b_end ? a_end : b_end) - piece.offset[d];
  }
  return piece;
}

static size_t bytes_of(const ax_type *type) { return (size_t)ax_type_elems(type) * ax_dtype_bytes(type->dtype); }

/* How many numbers further the block is that is one further along dimension d. 0: that depends on where it is, since the axes that cut
   the dimension do not follow each other in the mesh. */
static int64_t stride_along(const ax_layout *layout, uint32_t d) {
  const ax_spec *spec = &layout->spec;
  const ax_mesh *mesh = &layout->mesh;
  int64_t first = 0, wanted = 0;
  for (uint32_t i = d < spec->rank ? spec->count[d] : 0; i-- > 0;) { /* from the minor axis on */
    const uint32_t axis = spec->axis[d][i];
    int64_t stride = 1;
    for (uint32_t a = axis + 1; a < mesh->count; a++) stride *= (layout->named >> a & 1) ? mesh->axis[a].size : 1;
    if (first == 0) first = wanted = stride;
    if (stride != wanted) return 0;
    wanted *= mesh->axis[axis].size;
  }
  return first;
}

/* The blocks of a layout that a box overlaps, one after the other. */
typedef struct overlaps {
  const ax_layout *layout;
  int64_t first[AX_MAX_RANK], last[AX_MAX_RANK], part[AX_MAX_RANK];
  int64_t stride[AX_MAX_RANK]; /* of numbers */
  bool linear;                 /* the number of a block is the sum of its parts times their strides */
  bool more;
  box box; /* the one that was found */
} overlaps;

static void overlaps_of(overlaps *o, const ax_layout *layout, const box *b) {
  o->layout = layout;
  o->linear = true;
  o->box.type = layout->block;
  o->more = ax_type_elems(&b->type) > 0;
  for (uint32_t d = 0; d < b->type.rank && o->more; d++) {
    o->first[d] = o->part[d] = b->offset[d] / layout->block.dims[d];
    o->last[d] = (b->offset[d] + b->type.dims[d] - 1) / layout->block.dims[d];
    o->stride[d] = stride_along(layout, d);
    o->linear = o->linear && (o->stride[d] > 0 || o->last[d] == 0);
  }
}

static uint32_t number_of(const overlaps *o) {
  int64_t number = 0;
  if (!o->linear) return (uint32_t)ax_shard_number(&o->layout->spec, &o->layout->mesh, o->part);
  for (uint32_t d = 0; d < o->layout->block.rank; d++) number += o->part[d] * o->stride[d];
  return (uint32_t)number;
}

static bool next_overlap(overlaps *o, uint32_t *block) {
  const ax_type *type = &o->layout->block;
  if (!o->more) return false;
  *block = number_of(o);
  for (uint32_t d = 0; d < type->rank; d++) o->box.offset[d] = o->part[d] * type->dims[d];
  o->more = false;
  for (uint32_t d = type->rank; d-- > 0 && !o->more;) {
    o->more = o->part[d] < o->last[d];
    o->part[d] = o->more ? o->part[d] + 1 : o->first[d];
  }
  return true;
}

/* --- Who sends what to whom --- */

typedef struct transfer {
  uint32_t from, to, old, new; /* two processes, two blocks */
} transfer;

typedef struct plan {
  const ax_layout *old, *new; /* new NULL: the whole, for process `root`, or all */
  uint32_t root, processes;
  bool slabs; /* a slab for each process instead */
} plan;

typedef struct each { /* transfers, one after the other */
  const plan *plan;
  uint32_t own;           /* only those from this process or to it; AX_NONE: all */
  uint32_t new, receiver; /* receiver: its index among those that have the new block */
  box box;                /* the new block */
  overlaps old;
  bool begun;
} each;

static box slab_of(const ax_type *whole, uint32_t slab, uint32_t count) {
  box b = {.type = *whole};
  uint32_t d = 0;
  while (d + 1 < whole->rank && whole->dims[d] == 1) d++;
  if (whole->rank == 0 && slab > 0) b.type = ax_array_type(whole->dtype, AX_LIST(1, &(int64_t){0}));
  if (whole->rank == 0) return b;
  const int64_t each = whole->dims[d] / count, more = whole->dims[d] % count; /* the first `more` have one index more */
  b.offset[d] = each * slab + (slab < more ? slab : more);
  b.type.dims[d] = each + (slab < more);
  return b;
}

static box new_box(const plan *p, uint32_t new) {
  if (p->slabs) return slab_of(&p->old->type, new, p->processes);
  if (p->new != NULL) return box_of(p->new, new);
  return (box){.type = p->old->type};
}
static uint32_t new_count(const plan *p) { return p->slabs ? p->processes : p->new != NULL ? p->new->blocks : 1; }
static bool by_holders(const plan *p) { return p->new != NULL && p->new->map != NULL; }

static uint32_t receiver_count(const plan *p, uint32_t new) {
  if (p->slabs) return 1;
  if (by_holders(p)) return p->new->first_holder[new + 1] - p->new->first_holder[new];
  return p->root != AX_NONE ? 1 : p->processes;
}

static uint32_t receiver_of(const plan *p, uint32_t new, uint32_t index) {
  if (p->slabs) return new;
  if (by_holders(p)) return p->new->holder[p->new->first_holder[new] + index];
  return p->root != AX_NONE ? p->root : index;
}

static bool next_receiver(each *e) {
  const bool same = e->begun && ++e->receiver < receiver_count(e->plan, e->new);
  if (!same) {
    e->receiver = 0;
    if (e->begun && ++e->new == new_count(e->plan)) return false;
    e->box = new_box(e->plan, e->new);
  }
  e->begun = true;
  overlaps_of(&e->old, e->plan->old, &e->box);
  return true;
}

static bool next_transfer(each *e, transfer *out) {
  const ax_layout *old = e->plan->old;
  for (;;) {
    uint32_t block;
    const uint32_t to = e->begun ? receiver_of(e->plan, e->new, e->receiver) : AX_NONE;
    while (e->begun && next_overlap(&e->old, &block)) {
      const uint32_t from = old->holder[old->first_holder[block]];
      if ((e->own != AX_NONE && e->own != from && e->own != to) || ax_layout_held_by(old, to, block)) continue;
      *out = (transfer){from, to, block, e->new};
      return true;
    }
    if (!next_receiver(e)) return false;
  }
}

static bool moves_anything(const plan *p) {
  each e = {.plan = p, .own = AX_NONE};
  transfer t;
  return p->old->map != NULL && p->old->block_bytes > 0 && next_transfer(&e, &t);
}

static plan plan_of(const ax_layout *old, const ax_layout *new, uint32_t root) {
  return (plan){old, new, root, old->map != NULL ? old->map->processes : 1, false};
}

bool ax_moving_needed(const ax_layout *old, const ax_layout *to) {
  const plan p = plan_of(old, to, AX_NONE);
  return old != to && moves_anything(&p);
}

/* --- Moving --- */

typedef struct piece { /* what an old block and a new one have in common */
  uint32_t old, new;
} piece;

/* What goes to another process, and comes from it: pieces in the order of transfers. */
typedef struct peer {
  ax_packet packet;
  piece *expected;
  uint32_t expected_count, capacity;
} peer;

typedef struct moving {
  const plan *plan;
  uint32_t own; /* process */
  const ax_parts *from;
  unsigned char *const *into; /* by new block; of slabs, this process's alone */
  peer *peers;                /* by process */
  uint64_t missing;           /* pieces that have not come */
} moving;

static ax_status pack(ax_together *together, moving *m, const transfer *t, const each *e) {
  const box *old = &e->old.box, both = common(&e->box, old);
  void *to;
  AX_TRY(ax_packet_add(&m->peers[t->to].packet, together, t->to, bytes_of(&both.type), &to));
  ax_shard_copy(&old->type, old->offset, m->from->part[t->old], &both.type, both.offset, to);
  return AX_OK;
}

static ax_status expect(moving *m, const transfer *t) {
  peer *from = &m->peers[t->from];
  AX_TRY(ax_grow(&from->expected, sizeof from->expected[0], from->expected_count, 1, &from->capacity));
  from->expected[from->expected_count++] = (piece){t->old, t->new};
  m->missing++;
  return AX_OK;
}

static ax_status begin(ax_together *together, void *context) {
  moving *m = context;
  each e = {.plan = m->plan, .own = m->own};
  m->peers = ax_calloc(m->plan->processes, sizeof m->peers[0]);
  if (m->peers == NULL) return ax_out_of_memory(m->plan->processes * sizeof m->peers[0]);
  for (transfer t; next_transfer(&e, &t);) AX_TRY(t.to == m->own ? expect(m, &t) : pack(together, m, &t, &e));
  for (uint32_t p = 0; p < m->plan->processes; p++) AX_TRY(ax_packet_send(&m->peers[p].packet, together, p));
  return AX_OK;
}

static void end(moving *m) {
  for (uint32_t p = 0; m->peers != NULL && p < m->plan->processes; p++) {
    ax_packet_deinit(&m->peers[p].packet);
    ax_free(m->peers[p].expected);
  }
  ax_free(m->peers);
}

/* Puts a piece into its new block, and returns its bytes. Of these there are `most` at most, or it is refused with 0. */
static size_t unpack(const moving *m, const piece *one, const box *new, const char *data, size_t most) {
  const box old = box_of(m->plan->old, one->old), both = common(new, &old);
  const size_t bytes = bytes_of(&both.type);
  if (bytes > most) return 0;
  ax_shard_copy(&both.type, both.offset, data, &new->type, new->offset, m->into[m->plan->slabs ? 0 : one->new]);
  return bytes;
}

/* Puts the pieces of a message into their new blocks. */
static ax_status place(ax_together *together, void *context, const ax_delivery *delivery) {
  (void)together;
  moving *m = context;
  const peer *from = &m->peers[delivery->from];
  const char *data = delivery->payload;
  size_t left = delivery->envelope.bytes;
  uint32_t new = AX_NONE;
  box box;
  for (uint64_t i = delivery->envelope.words[0]; left > 0; i++, m->missing--) {
    const piece *one = i < from->expected_count ? &from->expected[i] : NULL;
    if (one != NULL && one->new != new) box = new_box(m->plan, new = one->new);
    const size_t bytes = one != NULL ? unpack(m, one, &box, data, left) : 0;
    if (bytes == 0) return ax_error(AX_INTERNAL, "process %u sends pieces of an array that are not known here", delivery->from);
    data += bytes;
    left -= bytes;
  }
  return AX_OK;
}

static bool is_done(const ax_together *together, const void *context) {
  (void)together;
  return ((const moving *)context)->missing == 0;
}

static ax_status lacks(const void *context) {
  return ax_error(AX_DEADLOCK, "%llu pieces of an array have not come",
                  (unsigned long long)((const moving *)context)->missing);
}

static void describe(const void *context, ax_text *text) {
  const plan *p = context;
  ax_text_add(text, p->new != NULL ? "lays out " : p->slabs ? "cuts into slabs " : "gathers ");
  ax_layout_text(text, p->old);
  if (p->new == NULL && p->root != AX_NONE) ax_text_add(text, " to process %u", p->root);
  if (p->new == NULL) return;
  ax_text_add(text, " as ");
  ax_layout_text(text, p->new);
}

static ax_status move_all(ax_status status, const plan *p, const ax_parts *from, unsigned char *const *into) {
  static const ax_talk talk = {begin, place, is_done, lacks};
  ax_processes *processes = p->old->runtime->executor.processes;
  const uint64_t to = p->new != NULL ? p->new->hash : p->slabs ? (uint64_t)AX_NONE + 1 : p->root;
  const ax_doing doing = {ax_hash_word(ax_hash_word(1, p->old->hash), to) | 1, describe, p,
                          p->new != NULL ? "the laying out of an array" : p->slabs ? "ax_array_write_npy" : "ax_array_gather"};
  moving m = {.plan = p, .own = processes->rule.process, .from = from, .into = into};
  status = ax_talk_hold(&talk, processes, &doing, status, &m);
  end(&m);
  return status;
}

/* What is here of a box. */
static void fill_box(const ax_layout *old, const ax_parts *from, const box *to, void *data) {
  overlaps o;
  overlaps_of(&o, old, to);
  for (uint32_t block; next_overlap(&o, &block);)
    if (ax_layout_has(old, block)) ax_shard_copy(&old->block, o.box.offset, from->part[block], &to->type, to->offset, data);
}

void ax_moving_fill(const ax_layout *old, const ax_parts *from, const ax_layout *to, uint32_t b, void *data) {
  const box new = box_of(to, b);
  fill_box(old, from, &new, data);
}

ax_status ax_moving_do(ax_status status, const ax_layout *old, const ax_parts *from, const ax_layout *to, ax_parts *parts) {
  const plan p = plan_of(old, to, AX_NONE);
  return move_all(status, &p, from, parts != NULL ? parts->part : NULL);
}

/* --- Whole arrays and slabs --- */

ax_status ax_moving_gather(ax_status status, const ax_layout *old, const ax_parts *from, uint32_t root, void *data) {
  const plan p = plan_of(old, NULL, root);
  unsigned char *whole = data;
  const box all = {.type = old->type};
  if (status == AX_OK && data != NULL && old->block_bytes > 0) fill_box(old, from, &all, data);
  return moves_anything(&p) ? move_all(status, &p, from, &whole) : status;
}

void ax_moving_slab(const ax_type *whole, uint32_t slab, uint32_t count, ax_type *type, int64_t *start) {
  const box b = slab_of(whole, slab, count);
  *type = b.type;
  memcpy(start, b.offset, sizeof b.offset);
}

void ax_moving_fill_slab(const ax_layout *old, const ax_parts *from, uint32_t slab, uint32_t count, void *data) {
  const box to = slab_of(&old->type, slab, count);
  fill_box(old, from, &to, data);
}

ax_status ax_moving_slabs(ax_status status, const ax_layout *old, const ax_parts *from, void *data) {
  plan p = plan_of(old, NULL, AX_NONE);
  p.slabs = true;
  unsigned char *own = data;
  if (status == AX_OK) ax_moving_fill_slab(old, from, old->map->process, p.processes, data);
  return moves_anything(&p) ? move_all(status, &p, from, &own) : status;
}
