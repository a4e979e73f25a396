#include "array/moving.h"

#include <string.h>

#include "array/joint.h"
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

/* The blocks of a layout that a box overlaps, one after the other. */
typedef struct overlaps {
  const ax_layout *layout;
  int64_t first[AX_MAX_RANK], last[AX_MAX_RANK], part[AX_MAX_RANK];
  bool more;
} overlaps;

static overlaps overlaps_of(const ax_layout *layout, const box *b) {
  overlaps o = {.layout = layout, .more = ax_type_elems(&b->type) > 0};
  if (!o.more) return o;
  for (uint32_t d = 0; d < b->type.rank; d++) {
    o.first[d] = o.part[d] = b->offset[d] / layout->block.dims[d];
    o.last[d] = (b->offset[d] + b->type.dims[d] - 1) / layout->block.dims[d];
  }
  return o;
}

static bool next_overlap(overlaps *o, uint32_t *block) {
  if (!o->more) return false;
  *block = (uint32_t)ax_shard_number(&o->layout->spec, &o->layout->mesh, o->part);
  o->more = false;
  for (uint32_t d = o->layout->block.rank; d-- > 0 && !o->more;) {
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

typedef struct each { /* all transfers, one after the other */
  const plan *plan;
  uint32_t new, receiver; /* receiver: its index among those that have the new block */
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

/* A process that has the block on several places counts once: as the first of them. AX_NONE: it is another. */
static uint32_t receiver_of(const plan *p, uint32_t new, uint32_t index) {
  if (p->slabs) return new;
  if (!by_holders(p)) return p->root != AX_NONE ? p->root : index;
  const uint32_t *holder = &p->new->holder[p->new->first_holder[new]];
  for (uint32_t i = 0; i < index; i++)
    if (holder[i] == holder[index]) return AX_NONE;
  return holder[index];
}

static bool next_receiver(each *e) {
  if (e->begun && ++e->receiver == receiver_count(e->plan, e->new)) {
    e->receiver = 0;
    if (++e->new == new_count(e->plan)) return false;
  }
  e->begun = true;
  const box b = new_box(e->plan, e->new);
  e->old = overlaps_of(e->plan->old, &b);
  return true;
}

static bool next_transfer(each *e, transfer *out) {
  const ax_layout *old = e->plan->old;
  for (;;) {
    uint32_t block;
    const uint32_t to = e->begun ? receiver_of(e->plan, e->new, e->receiver) : AX_NONE;
    while (to != AX_NONE && next_overlap(&e->old, &block)) {
      if (ax_layout_held_by(old, to, block)) continue;
      *out = (transfer){old->holder[old->first_holder[block]], to, block, e->new};
      return true;
    }
    if (!next_receiver(e)) return false;
  }
}

static bool moves_anything(const plan *p) {
  each e = {.plan = p};
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

typedef struct moving {
  const plan *plan;
  uint32_t own; /* process */
  const ax_parts *from;
  unsigned char *const *into; /* by new block; of slabs, this process's alone */
  uint32_t missing;           /* pieces that have not come */
} moving;

static ax_status send_piece(ax_together *together, const moving *m, const transfer *t) {
  const box new = new_box(m->plan, t->new), old = box_of(m->plan->old, t->old), piece = common(&new, &old);
  ax_envelope envelope = {.kind = AX_MESSAGE_PART, .bytes = bytes_of(&piece.type), .words = {t->new, t->old}};
  void *payload = ax_alloc(envelope.bytes);
  if (payload == NULL) return ax_out_of_memory(envelope.bytes);
  ax_shard_copy(&old.type, old.offset, m->from->part[t->old], &piece.type, piece.offset, payload);
  return ax_together_send_owned(together, t->to, &envelope, payload);
}

static ax_status send_all(ax_together *together, const moving *m) {
  each e = {.plan = m->plan};
  for (transfer t; next_transfer(&e, &t);)
    if (t.from == m->own) AX_TRY(send_piece(together, m, &t));
  return AX_OK;
}

static uint32_t count_missing(const plan *p, uint32_t own) {
  each e = {.plan = p};
  uint32_t count = 0;
  for (transfer t; next_transfer(&e, &t);) count += t.to == own;
  return count;
}

static ax_status begin(ax_together *together, void *context) {
  moving *m = context;
  m->missing = count_missing(m->plan, m->own);
  return send_all(together, m);
}

/* Puts a piece into its new block. */
static ax_status place(ax_together *together, void *context, const ax_delivery *delivery) {
  (void)together;
  moving *m = context;
  const uint64_t *words = delivery->envelope.words;
  const box new = new_box(m->plan, (uint32_t)words[0]), old = box_of(m->plan->old, (uint32_t)words[1]);
  const box piece = common(&new, &old);
  ax_shard_copy(&piece.type, piece.offset, delivery->payload, &new.type, new.offset, m->into[m->plan->slabs ? 0 : words[0]]);
  m->missing--;
  return AX_OK;
}

static bool is_done(const ax_together *together, const void *context) {
  (void)together;
  return ((const moving *)context)->missing == 0;
}

static ax_status lacks(const void *context) {
  return ax_error(AX_DEADLOCK, "%u pieces of an array have not come", ((const moving *)context)->missing);
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
  moving m = {p, processes->rule.process, from, into, 0};
  return ax_talk_hold(&talk, processes, &doing, status, &m);
}

/* What is here of a box. */
static void fill_box(const ax_layout *old, const ax_parts *from, const box *to, void *data) {
  overlaps o = overlaps_of(old, to);
  for (uint32_t block; next_overlap(&o, &block);) {
    const box piece = box_of(old, block);
    if (ax_layout_has(old, block)) ax_shard_copy(&piece.type, piece.offset, from->part[block], &to->type, to->offset, data);
  }
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
