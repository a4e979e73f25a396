/* Takes values that are put together from parts apart again. If an array is written part by part (a concatenation, a padding
   along one dimension) and only kernels read it, each reader becomes one kernel for each part, and the array is not made:

     c[0 .. 32] = f(i);  c[32 .. 64] = g(i);  y = h(c)
     becomes       c0 = f;  c1 = g;  y[0 .. 32] = h(c0);  y[32 .. 64] = h(c1)

   After fusion this costs fewer passes over memory: a part is computed where it is read, and nothing is chosen element by
   element. A reader's result is then written part by part itself. This goes on down to readers that need the whole array:
   products, collectives, reductions, results, carries.

   If one part is nearly all of the array, or readers cannot be cut, and the parts are copies, one kernel makes the whole array
   instead. It loads each element from its part, by guarded loads (plan/kernel.h), and any reader can take that kernel in.

     c[0] = x[9];  c[1 .. 10] = x[0 .. 9];  y = c + x      becomes      y[i] = (i < 1 ? x[i + 9] : x[i - 1]) + x[i]

   Readers must step along the parts by one element or a few at a time. A piece's innermost runs must not get short, as kernels
   work on vectors; but a piece may be a column, which vectors go along: x, y and z of points that lie [4096, 3]. Small arrays are
   left alone if taking them apart would make more kernels. */
#include <string.h>

#include "plan/kernel_rewrite.h"
#include "plan/passes.h"
#include "plan/pieces.h"

enum { most_parts = 16, most_chosen = 4, least_run = 16, small_elems = 4096, nearly_all = 8 };

typedef struct node { /* an operation of the block, in a list */
  ax_op op;
  uint32_t next, order;
} node;

typedef struct touch { /* by a kernel */
  uint32_t node, next;
} touch;

typedef struct cutter {
  ax_plan *plan;
  uint32_t allocation_capacity;      /* of the tables by allocation: those there are, and the parts of each */
  uint32_t *reads, *writes;    /* by allocation: see ax_plan_count */
  uint32_t change;             /* 1 or -1 (wraps): added to the counts of reads and writes */
  bool donates;                /* some argument's memory may be overwritten */
  bool *kept;                  /* by allocation: a result, updated, or seen as something else than itself */
  uint32_t *first[2];          /* [writes][allocation]: the latest touch in this block; AX_NONE */
  touch *touches;
  uint32_t touch_count, touch_capacity;
  node *nodes;                 /* of the block at work */
  uint32_t node_count, node_capacity, noting;
  bool changed;                /* some operation of the block was replaced */
  ax_status status;            /* of a visit */
} cutter;

/* A part of an array: a kernel's store to all of it but for one dimension. */
typedef struct part {
  uint32_t node, store, buffer; /* buffer: its own, in the end */
  int64_t begin, extent;
} part;

typedef struct parts {
  uint32_t allocation, dim, count;
  part part[most_parts];
} parts;

static uint32_t allocation_of(const cutter *c, uint32_t buffer) { return c->plan->buffers[buffer].allocation; }

/* --- Who touches what --- */

static void note_touch(void *context, uint32_t buffer, bool writes) {
  cutter *c = context;
  uint32_t allocation = allocation_of(c, buffer), *first = &c->first[writes][allocation];
  if (*first != AX_NONE && c->touches[*first].node == c->noting) return;
  if (c->status == AX_OK) c->status = ax_grow(&c->touches, sizeof c->touches[0], c->touch_count, 1, &c->touch_capacity);
  if (c->status != AX_OK) return;
  c->touches[c->touch_count] = (touch){c->noting, *first};
  *first = c->touch_count++;
}

static void count_one(void *context, uint32_t buffer, bool writes) {
  cutter *c = context;
  (writes ? c->writes : c->reads)[allocation_of(c, buffer)] += c->change;
}

static ax_status add_node(cutter *c, const ax_op *op, uint32_t order, uint32_t *out) {
  AX_TRY(ax_grow(&c->nodes, sizeof c->nodes[0], c->node_count, 1, &c->node_capacity));
  *out = c->noting = c->node_count++;
  c->nodes[*out] = (node){*op, AX_NONE, order};
  ax_op_visit_all(&c->nodes[*out].op, note_touch, c);
  return c->status;
}

static void forget(void *context, uint32_t buffer, bool writes) {
  cutter *c = context;
  c->first[writes][allocation_of(c, buffer)] = AX_NONE;
}

/* --- Parts --- */

static bool find_part(const cutter *c, uint32_t at, uint32_t allocation, uint32_t *dim, part *out) {
  const ax_op *op = &c->nodes[at].op;
  if (op->kind != AX_OP_KERNEL || op->kernel.kernel->reduce_rank != 0) return false;
  const ax_loop_kernel *kernel = op->kernel.kernel;
  uint32_t store = 0, cut = AX_NONE;
  while (store < kernel->store_count && op->kernel.buffers[kernel->stores[store].slot] != allocation) store++;
  if (store == kernel->store_count) return false;
  const ax_slot *slot = &kernel->slots[kernel->stores[store].slot];
  const ax_position *to = kernel->stores[store].at;
  if (slot->rank != kernel->rank) return false;
  for (uint32_t d = 0; d < slot->rank; d++) {
    if (to[d].dim != (int)d || to[d].coef != 1 || to[d].dynamic != AX_NONE) return false;
    if (to[d].offset == 0 && kernel->dims[d] == slot->dims[d]) continue;
    if (cut != AX_NONE) return false;
    cut = d;
  }
  if (cut == AX_NONE || (*dim != AX_NONE && *dim != cut)) return false;
  *dim = cut;
  *out = (part){.node = at, .store = store, .begin = to[cut].offset, .extent = kernel->dims[cut]};
  return true;
}

/* The parts of an allocation: its writers, if each writes a part and the parts are all of it. */
static bool find_parts(const cutter *c, uint32_t allocation, parts *out) {
  *out = (parts){.allocation = allocation, .dim = AX_NONE};
  int64_t end = 0;
  for (uint32_t t = c->first[1][allocation]; t != AX_NONE; t = c->touches[t].next) {
    part one;
    uint32_t i;
    if (c->nodes[c->touches[t].node].op.kind == AX_OP_NONE) continue;
    if (out->count == most_parts || !find_part(c, c->touches[t].node, allocation, &out->dim, &one)) return false;
    for (i = out->count++; i > 0 && out->part[i - 1].begin > one.begin; i--) out->part[i] = out->part[i - 1];
    out->part[i] = one;
  }
  for (uint32_t i = 0; i < out->count; i++) {
    if (out->part[i].begin != end || out->part[i].extent == 0) return false;
    end += out->part[i].extent;
  }
  return out->count == c->writes[allocation] && out->count > 1 && end == c->plan->buffers[allocation].type.dims[out->dim];
}

/* --- Readers --- */

/* How a reader steps along the parts: position = coef * i[dim] + offset. */
typedef struct stride {
  uint32_t dim;
  int64_t coef, offset, begin[most_parts + 1]; /* begin: the reader's first step in each part */
} stride;

/* A result that is computed whole may be given a donated argument's memory; in parts it could not. */
static bool writes_result(const cutter *c, const ax_op *op) {
  for (uint32_t i = 0; i < op->kernel.kernel->store_count && c->donates; i++)
    if (c->kept[allocation_of(c, op->kernel.buffers[op->kernel.kernel->stores[i].slot])]) return true;
  return false;
}

static bool find_stride(const cutter *c, const ax_op *op, const parts *p, stride *out, uint32_t *loads) {
  const ax_loop_kernel *kernel = op->kernel.kernel;
  bool any = false;
  for (uint32_t i = 0; i < kernel->expr_count; i++) {
    const ax_expr *load = &kernel->exprs[i];
    if (load->op != AX_LEAF_LOAD || allocation_of(c, op->kernel.buffers[load->slot]) != p->allocation) continue;
    const ax_position *at = &load->at[p->dim];
    ++*loads;
    if (load->arg[0] != AX_NONE || op->kernel.buffers[load->slot] != p->allocation || at->dim < 0 || at->coef < 1 ||
        at->dynamic != AX_NONE)
      return false;
    if (any && ((uint32_t)at->dim != out->dim || at->coef != out->coef || at->offset != out->offset)) return false;
    *out = (stride){.dim = (uint32_t)at->dim, .coef = at->coef, .offset = at->offset};
    any = true;
  }
  return any;
}

/* Whether a reader can be cut into pieces, one for each part; finds where. */
static bool can_cut(const cutter *c, uint32_t at, const parts *p, stride *out, uint32_t *loads) {
  const ax_op *op = &c->nodes[at].op;
  uint32_t to, from;
  if (op->kind != AX_OP_KERNEL || ax_op_is_ordered(op) || ax_op_copies_all(op, &to, &from)) return false;
  const ax_loop_kernel *kernel = op->kernel.kernel;
  if (kernel->reduce_rank != 0 || kernel->rank > AX_MAX_RANK || writes_result(c, op)) return false;
  if (!find_stride(c, op, p, out, loads)) return false;
  int64_t run = 1, extent = kernel->dims[out->dim];
  const int64_t column = ax_dims_elems(out->dim, kernel->dims); /* vectors go along a piece that is one column */
  for (uint32_t d = out->dim + 1; d < kernel->rank; d++) run *= kernel->dims[d];
  for (uint32_t i = 0; i < p->count; i++) {
    int64_t steps = p->part[i].begin - out->offset;
    out->begin[i] = steps <= 0 ? 0 : (steps + out->coef - 1) / out->coef;
    if (out->begin[i] > extent) out->begin[i] = extent;
    if (c->nodes[p->part[i].node].order >= c->nodes[at].order) return false;
  }
  out->begin[p->count] = extent;
  for (uint32_t i = 0; i < p->count; i++) {
    int64_t steps = out->begin[i + 1] - out->begin[i];
    if (steps > 0 && steps < extent && steps * run < least_run && !(steps * run == 1 && column >= least_run)) return false;
  }
  return true;
}

/* A reader that takes elements at places along the parts that are known, and so each of one part: as a sum over the array of which
   few steps go along the parts, once its steps are spelled out. `out`: the kernel, of its own, still of the whole array. NULL: it
   is no such reader. */
static ax_status can_read(const cutter *c, uint32_t at, const parts *p, ax_bound *out, uint32_t *loads) {
  enum { most_steps = 16 };
  const ax_op *op = &c->nodes[at].op;
  const ax_loop_kernel *kernel = op->kernel.kernel;
  uint32_t to, from;
  *out = (ax_bound){NULL, NULL};
  if (op->kind != AX_OP_KERNEL || ax_op_is_ordered(op) || ax_op_copies_all(op, &to, &from)) return AX_OK;
  const uint32_t kept = kernel->rank - kernel->reduce_rank;
  for (ax_ex i = 0; i < kernel->expr_count; i++) {
    const ax_expr *load = &kernel->exprs[i];
    if (load->op != AX_LEAF_LOAD || allocation_of(c, op->kernel.buffers[load->slot]) != p->allocation) continue;
    const ax_position *place = &load->at[p->dim];
    ++*loads;
    if (op->kernel.buffers[load->slot] != p->allocation || place->dynamic != AX_NONE || (place->dim >= 0 && place->dim < (int)kept))
      return AX_OK;
  }
  for (uint32_t i = 0; i < p->count; i++)
    if (c->nodes[p->part[i].node].order >= c->nodes[at].order) return AX_OK;
  ax_loop_kernel *fresh;
  if (kernel->reduce_rank > 0)
    AX_TRY(ax_kernel_unroll(&c->plan->drafts, kernel, kept, most_steps, &fresh));
  else if ((fresh = ax_kernel_copy(&c->plan->drafts, kernel)) == NULL)
    return ax_out_of_memory(sizeof *fresh);
  if (fresh == NULL || fresh->slot_count + p->count > AX_MOST_SLOTS) return AX_OK;
  uint32_t *buffers = ax_arena_alloc(&c->plan->drafts, AX_MOST_SLOTS * sizeof buffers[0]);
  if (buffers == NULL) return ax_out_of_memory(AX_MOST_SLOTS * sizeof buffers[0]);
  memcpy(buffers, op->kernel.buffers, kernel->slot_count * sizeof buffers[0]);
  *out = (ax_bound){fresh, buffers};
  return AX_OK;
}

/* --- Cutting --- */

/* Makes the allocation's slots of a fresh kernel slots of one part. */
static ax_status use_part(cutter *c, ax_bound *kernel, const parts *p, const part *one) {
  ax_loop_kernel *k = kernel->kernel;
  for (uint32_t s = 0; s < k->slot_count; s++) {
    if (kernel->buffers[s] != p->allocation) continue;
    k->slots[s].dims[p->dim] = one->extent;
    kernel->buffers[s] = one->buffer;
    for (uint32_t i = 0; i < k->expr_count + k->store_count; i++) {
      bool is_store = i >= k->expr_count;
      if (is_store ? k->stores[i - k->expr_count].slot != s : k->exprs[i].op != AX_LEAF_LOAD || k->exprs[i].slot != s) continue;
      const ax_position **at = is_store ? &k->stores[i - k->expr_count].at : &k->exprs[i].at;
      ax_position *moved = ax_arena_copy(&c->plan->drafts, *at, k->slots[s].rank * sizeof moved[0]);
      if (moved == NULL) return ax_out_of_memory(k->slots[s].rank * sizeof moved[0]);
      moved[p->dim].offset -= one->begin;
      *at = moved;
    }
  }
  return AX_OK;
}

static ax_status make_part_buffers(cutter *c, parts *p) {
  for (uint32_t i = 0; i < p->count; i++) {
    ax_buffer buffer = c->plan->buffers[p->allocation];
    buffer.type.dims[p->dim] = p->part[i].extent;
    buffer.allocation = AX_NONE;
    AX_TRY(ax_plan_add_buffer(c->plan, &buffer, &p->part[i].buffer));
  }
  return AX_OK;
}

/* The writer of a part stores to a buffer of its own. */
static ax_status move_writer(cutter *c, const parts *p, const part *one) {
  ax_op *op = &c->nodes[one->node].op;
  ax_bound fresh = {ax_kernel_copy(&c->plan->drafts, op->kernel.kernel), NULL};
  fresh.buffers = ax_arena_copy(&c->plan->drafts, op->kernel.buffers, op->kernel.kernel->slot_count * sizeof fresh.buffers[0]);
  if (fresh.kernel == NULL || fresh.buffers == NULL) return ax_out_of_memory(sizeof *fresh.kernel);
  AX_TRY(use_part(c, &fresh, p, one));
  c->change = (uint32_t)-1;
  ax_op_visit(op, count_one, c);
  op->kernel = fresh;
  c->change = 1;
  ax_op_visit(op, count_one, c);
  c->noting = one->node;
  note_touch(c, one->buffer, true);
  return c->status;
}

/* `made`: a kernel for each part. */
static ax_status replace_reader(cutter *c, uint32_t at, const parts *p, const ax_bound *made) {
  ax_op whole = c->nodes[at].op;
  uint32_t last = at, order = c->nodes[at].order, added;
  c->change = (uint32_t)-1;
  ax_op_visit(&whole, count_one, c);
  c->nodes[at].op.kind = AX_OP_NONE;
  c->change = 1;
  for (uint32_t i = 0; i < p->count; i++) {
    if (made[i].kernel == NULL) continue;
    whole.kernel = made[i];
    AX_TRY(use_part(c, &whole.kernel, p, &p->part[i]));
    AX_TRY(add_node(c, &whole, order, &added));
    ax_op_visit(&whole, count_one, c);
    c->nodes[added].next = c->nodes[last].next;
    c->nodes[last].next = added;
    last = added;
  }
  return AX_OK;
}

static const part *part_at(const parts *p, int64_t place) {
  const part *one = p->part;
  while (one + 1 < p->part + p->count && place >= one[1].begin) one++;
  return one;
}

/* A reader as can_read has made it reads the parts. */
static ax_status read_parts(cutter *c, uint32_t at, const parts *p, const ax_bound *made) {
  ax_op *op = &c->nodes[at].op;
  ax_loop_kernel *k = made->kernel;
  for (ax_ex i = 0; i < k->expr_count; i++) {
    if (k->exprs[i].op != AX_LEAF_LOAD || made->buffers[k->exprs[i].slot] != p->allocation) continue;
    const ax_slot *whole = &k->slots[k->exprs[i].slot];
    const part *one = part_at(p, k->exprs[i].at[p->dim].offset);
    ax_position *moved = ax_arena_copy(&c->plan->drafts, k->exprs[i].at, whole->rank * sizeof moved[0]);
    if (moved == NULL) return ax_out_of_memory(whole->rank * sizeof moved[0]);
    moved[p->dim].offset -= one->begin;
    uint32_t slot = 0;
    while (slot < k->slot_count && made->buffers[slot] != one->buffer) slot++;
    if (slot == k->slot_count) {
      int64_t dims[AX_MAX_RANK];
      memcpy(dims, whole->dims, whole->rank * sizeof dims[0]);
      dims[p->dim] = one->extent;
      ax_kernel_slot(k, whole->dtype, whole->rank, dims);
      if (k->failed) return ax_out_of_memory(sizeof *whole);
      made->buffers[slot] = one->buffer;
    }
    k->exprs[i].slot = slot;
    k->exprs[i].at = moved;
  }
  c->change = (uint32_t)-1;
  ax_op_visit(op, count_one, c);
  AX_TRY(ax_kernel_prune(&c->plan->drafts, made, NULL, &op->kernel));
  c->change = 1;
  ax_op_visit(op, count_one, c);
  c->noting = at;
  ax_op_visit_all(op, note_touch, c);
  return c->status;
}

/* The readers' pieces, before anything is changed. *possible: all could be made. */
static ax_status make_pieces(cutter *c, const uint32_t *readers, const stride *strides, const ax_bound *reads, uint32_t count,
                             const parts *p, ax_bound *made, bool *possible) {
  *possible = true;
  for (uint32_t r = 0; r < count; r++)
    for (uint32_t i = 0; i < p->count && *possible && reads[r].kernel == NULL; i++) {
      int64_t begin = strides[r].begin[i], extent = strides[r].begin[i + 1] - begin;
      if (extent == 0) continue;
      AX_TRY(ax_kernel_piece(&c->plan->drafts, &c->nodes[readers[r]].op.kernel, strides[r].dim, begin, extent,
                             &made[r * most_parts + i]));
      *possible = made[r * most_parts + i].kernel != NULL;
    }
  return AX_OK;
}

/* --- Choosing --- */

/* The part's writer copies, element by element, and does nothing else. */
static const ax_expr *copied(const cutter *c, const part *one) {
  const ax_op *op = &c->nodes[one->node].op;
  const ax_loop_kernel *kernel = op->kernel.kernel;
  if (ax_op_is_ordered(op) || kernel->store_count != 1 || kernel->expr_count != 1 || kernel->exprs[0].op != AX_LEAF_LOAD)
    return NULL;
  return kernel->exprs[0].arg[0] == AX_NONE ? &kernel->exprs[0] : NULL;
}

/* Nothing writes the allocation from the first of the parts on until after the last. */
static bool is_still(const cutter *c, uint32_t allocation, uint32_t first, uint32_t last) {
  for (uint32_t t = c->first[1][allocation]; t != AX_NONE; t = c->touches[t].next) {
    const node *n = &c->nodes[c->touches[t].node];
    if (n->op.kind != AX_OP_NONE && n->order > first && n->order < last) return false;
  }
  return true;
}

/* `*at`: the part that is written last. */
static bool can_choose(const cutter *c, const parts *p, uint32_t *at) {
  uint32_t first = p->part[0].node, last = first;
  if (p->count > most_chosen) return false; /* a condition for each would take longer than the array */
  for (uint32_t i = 1; i < p->count; i++) {
    if (c->nodes[p->part[i].node].order < c->nodes[first].order) first = p->part[i].node;
    if (c->nodes[p->part[i].node].order > c->nodes[last].order) last = p->part[i].node;
  }
  for (uint32_t i = 0; i < p->count; i++) {
    const ax_op *op = &c->nodes[p->part[i].node].op;
    const ax_expr *load = copied(c, &p->part[i]);
    if (load == NULL || op->axes != c->nodes[last].op.axes) return false;
    if (!is_still(c, allocation_of(c, op->kernel.buffers[load->slot]), c->nodes[first].order, c->nodes[last].order)) return false;
  }
  *at = last;
  return true;
}

static bool is_mostly_one(const cutter *c, const parts *p) {
  int64_t all = c->plan->buffers[p->allocation].type.dims[p->dim];
  for (uint32_t i = 0; i < p->count; i++)
    if ((all - p->part[i].extent) * nearly_all <= all) return true;
  return false;
}

/* Whether a part is a copy of what a kernel reads from the end to the beginning. */
static bool is_turned(const cutter *c, const part *one) {
  const ax_expr *load = copied(c, one);
  if (load == NULL) return false;
  const uint32_t from = allocation_of(c, c->nodes[one->node].op.kernel.buffers[load->slot]);
  for (uint32_t t = c->first[1][from]; t != AX_NONE; t = c->touches[t].next) {
    const ax_op *op = &c->nodes[c->touches[t].node].op;
    for (uint32_t i = 0; op->kind == AX_OP_KERNEL && i < op->kernel.kernel->expr_count; i++) {
      const ax_expr *expr = &op->kernel.kernel->exprs[i];
      for (uint32_t d = 0; expr->op == AX_LEAF_LOAD && d < op->kernel.kernel->slots[expr->slot].rank; d++)
        if (expr->at[d].coef < 0) return true;
    }
  }
  return false;
}

/* Whether a part is turned along a dimension behind which lies so little, as the colours of a picture behind its columns, that a
   kernel which chooses at each element would work on vectors of as few: others go through both dimensions as one. Large arrays of
   such are written part by part. */
static bool turns_short_rows(const cutter *c, const parts *p) {
  const ax_type *type = &c->plan->buffers[p->allocation].type;
  const int64_t row = ax_dims_elems(type->rank - p->dim - 1, type->dims + p->dim + 1);
  bool any = false;
  for (uint32_t i = 0; i < p->count; i++) any = any || is_turned(c, &p->part[i]);
  return any && row > 1 && row < least_run && ax_type_elems(type) >= small_elems;
}

/* Every reader is a kernel of this block that comes after the parts. */
static bool are_readers_kernels(const cutter *c, uint32_t allocation, uint32_t last) {
  uint32_t loads = 0;
  for (uint32_t t = c->first[0][allocation]; t != AX_NONE; t = c->touches[t].next) {
    const node *n = &c->nodes[c->touches[t].node];
    uint32_t to, from;
    if (n->op.kind == AX_OP_NONE) continue;
    if (n->op.kind != AX_OP_KERNEL || ax_op_is_ordered(&n->op) || n->order <= c->nodes[last].order ||
        ax_op_copies_all(&n->op, &to, &from))
      return false;
    const ax_loop_kernel *kernel = n->op.kernel.kernel;
    for (uint32_t i = 0; i < kernel->expr_count; i++)
      loads += kernel->exprs[i].op == AX_LEAF_LOAD && allocation_of(c, n->op.kernel.buffers[kernel->exprs[i].slot]) == allocation;
  }
  return loads > 0 && loads == c->reads[allocation];
}

/* Loads the part's value at the kernel's steps. *guard: whether a step lies in the part. */
static ax_ex load_part(cutter *c, ax_bound *to, const parts *p, const part *one, ax_ex *guard) {
  const ax_bound *from = &c->nodes[one->node].op.kernel;
  const ax_expr *load = &from->kernel->exprs[0];
  const ax_slot *slot = &from->kernel->slots[load->slot];
  ax_position at[AX_MAX_RANK];
  uint32_t s = 0;
  for (uint32_t d = 0; d < slot->rank; d++) {
    at[d] = load->at[d];
    if (at[d].dim == (int)p->dim) at[d].offset -= at[d].coef * one->begin;
  }
  while (s < to->kernel->slot_count && to->buffers[s] != from->buffers[load->slot]) s++;
  if (s == to->kernel->slot_count) {
    ax_kernel_slot(to->kernel, slot->dtype, slot->rank, slot->dims);
    to->buffers[s] = from->buffers[load->slot];
  }
  *guard = ax_kernel_inside(to->kernel, (int)p->dim, 1, -one->begin, one->extent);
  return ax_kernel_load_where(to->kernel, s, at, *guard);
}

/* The operation at `last` makes all of the array. */
static ax_status choose_parts(cutter *c, const parts *p, uint32_t last) {
  const ax_type *type = &c->plan->buffers[p->allocation].type;
  ax_arena *arena = &c->plan->drafts;
  ax_bound made = {ax_kernel_create(arena, type->rank, 0, type->dims),
                   ax_arena_alloc(arena, (most_chosen + 1) * sizeof made.buffers[0])};
  ax_position at[AX_MAX_RANK];
  ax_ex guard, chosen = AX_NONE;
  if (made.kernel == NULL || made.buffers == NULL) return ax_out_of_memory(sizeof *made.kernel);
  for (uint32_t i = p->count; i-- > 0 && !made.kernel->failed;) {
    ax_ex value = load_part(c, &made, p, &p->part[i], &guard);
    chosen = chosen == AX_NONE ? value : ax_kernel_op(made.kernel, AX_SCALAR_SELECT, type->dtype, guard, value, chosen);
  }
  made.buffers[made.kernel->slot_count] = p->allocation;
  ax_at_identity(at, type->rank);
  ax_kernel_store(made.kernel, ax_kernel_slot(made.kernel, type->dtype, type->rank, type->dims), at, chosen, AX_SCALAR_NONE);
  if (made.kernel->failed) return ax_out_of_memory(sizeof *made.kernel);
  for (uint32_t i = 0; i < p->count; i++) {
    node *n = &c->nodes[p->part[i].node];
    c->change = (uint32_t)-1;
    ax_op_visit(&n->op, count_one, c);
    if (p->part[i].node != last) n->op.kind = AX_OP_NONE;
  }
  node *n = &c->nodes[last];
  n->op.kernel = made;
  c->change = 1;
  ax_op_visit(&n->op, count_one, c);
  c->noting = last;
  ax_op_visit_all(&n->op, note_touch, c);
  c->changed = true;
  return c->status;
}

/* --- Which of both --- */

enum { most_readers = 8 };

/* Whether parts are a stack's: each is one step along its dimension. Kernels over them mostly become one. */
static bool are_stacked(const parts *p) {
  for (uint32_t i = 0; i < p->count; i++)
    if (p->part[i].extent != 1) return false;
  return true;
}

/* Whether that many more kernels would take longer than the array. What is one kernel for a stack has a store for each part, which is
   fast for columns, that fill memory together (jit/emit/woven.c), and not for many rows. */
static bool are_too_many(const parts *p, const ax_type *type, uint32_t cuts) {
  enum { most_unlike = 4, small_stack = 256 };
  if (p->count > most_unlike && (!are_stacked(p) || (cuts > 0 && p->dim + 1 < type->rank))) return true;
  return p->count * cuts > p->count + cuts && ax_type_elems(type) < (are_stacked(p) ? small_stack : small_elems);
}

static ax_status cut_readers(cutter *c, parts *whole, bool *done) {
  parts p = *whole;
  const uint32_t allocation = p.allocation;
  uint32_t readers[most_readers], count = 0, cuts = 0, loads = 0;
  stride strides[most_readers];
  ax_bound made[most_readers * most_parts] = {{NULL, NULL}}, reads[most_readers];
  bool possible;
  for (uint32_t t = c->first[0][allocation]; t != AX_NONE; t = c->touches[t].next) {
    uint32_t at = c->touches[t].node, before = loads;
    if (c->nodes[at].op.kind == AX_OP_NONE) continue;
    if (count == most_readers) return AX_OK;
    reads[count] = (ax_bound){NULL, NULL};
    if (can_cut(c, at, &p, &strides[count], &loads)) {
      cuts++;
    } else {
      loads = before;
      AX_TRY(can_read(c, at, &p, &reads[count], &loads));
      if (reads[count].kernel == NULL) return AX_OK;
    }
    readers[count++] = at;
  }
  if (count == 0 || loads != c->reads[allocation]) return AX_OK; /* others read it, outside of this block */
  if (are_too_many(&p, &c->plan->buffers[allocation].type, cuts)) return AX_OK;
  if (p.count > c->allocation_capacity - c->plan->buffer_count)
    return AX_OK; /* the tables have room for the parts of arrays and not for parts of those */
  AX_TRY(make_pieces(c, readers, strides, reads, count, &p, made, &possible));
  if (!possible) return AX_OK;
  AX_TRY(make_part_buffers(c, &p));
  for (uint32_t i = 0; i < p.count; i++) AX_TRY(move_writer(c, &p, &p.part[i]));
  for (uint32_t r = 0; r < count; r++)
    AX_TRY(reads[r].kernel != NULL ? read_parts(c, readers[r], &p, &reads[r])
                                   : replace_reader(c, readers[r], &p, made + r * most_parts));
  c->changed = true;
  *done = true;
  return AX_OK;
}

static ax_status take_apart(cutter *c, uint32_t allocation) {
  parts p;
  uint32_t last = AX_NONE;
  bool done = false;
  if (c->writes[allocation] < 2 || c->writes[allocation] > most_parts || c->kept[allocation] ||
      c->plan->buffers[allocation].kind != AX_BUFFER_TEMP)
    return AX_OK;
  if (!find_parts(c, allocation, &p)) return AX_OK;
  const bool choice = !turns_short_rows(c, &p) && can_choose(c, &p, &last) && are_readers_kernels(c, allocation, last);
  if (!choice || !is_mostly_one(c, &p)) AX_TRY(cut_readers(c, &p, &done));
  return choice && !done ? choose_parts(c, &p, last) : AX_OK;
}

/* --- The pass --- */

/* Takes apart what each operation stores. Operations that are added on the way stand later in the list, so it comes to them too. */
static ax_status go_through(cutter *c) {
  for (uint32_t at = c->node_count > 0 ? 0 : AX_NONE; at != AX_NONE; at = c->nodes[at].next)
    for (uint32_t i = 0; c->nodes[at].op.kind == AX_OP_KERNEL && i < c->nodes[at].op.kernel.kernel->store_count; i++) {
      const ax_op *op = &c->nodes[at].op;
      AX_TRY(take_apart(c, allocation_of(c, op->kernel.buffers[op->kernel.kernel->stores[i].slot])));
    }
  return AX_OK;
}

static ax_status write_back(cutter *c, ax_block *block) {
  uint32_t count = 0;
  ax_op *ops = ax_arena_alloc(&c->plan->drafts, c->node_count * sizeof ops[0]);
  if (ops == NULL) return ax_out_of_memory(c->node_count * sizeof ops[0]);
  for (uint32_t at = c->node_count > 0 ? 0 : AX_NONE; at != AX_NONE; at = c->nodes[at].next)
    if (c->nodes[at].op.kind != AX_OP_NONE) ops[count++] = c->nodes[at].op;
  *block = (ax_block){.ops = ops, .count = count, .capacity = count};
  return AX_OK;
}

static ax_status cut_block(void *context, ax_block *block, bool is_body) {
  cutter *c = context;
  uint32_t at, count = block->count;
  (void)is_body;
  c->node_count = c->touch_count = 0;
  c->changed = false;
  for (uint32_t i = 0; i < count; i++) {
    AX_TRY(add_node(c, &block->ops[i], i, &at));
    if (i > 0) c->nodes[i - 1].next = i;
  }
  AX_TRY(go_through(c));
  for (uint32_t i = 0; i < c->node_count; i++) ax_op_visit_all(&c->nodes[i].op, forget, c);
  for (uint32_t i = 0; i < count; i++) ax_op_visit_all(&block->ops[i], forget, c); /* the operations that were replaced, too */
  return c->node_count > count || c->changed ? write_back(c, block) : AX_OK;
}

static void keep_view(void *context, uint32_t buffer, bool writes) {
  const cutter *c = context;
  (void)writes;
  if (allocation_of(c, buffer) != buffer) c->kept[allocation_of(c, buffer)] = true;
}

static void keep_seen(void *context, ax_op *op) { ax_op_visit(op, keep_view, context); }

static ax_status make_tables(cutter *c, ax_arena *tables) {
  const ax_plan *plan = c->plan;
  size_t count = c->allocation_capacity = (1 + most_parts) * plan->buffer_count;
  uint32_t **by_allocation[] = {&c->reads, &c->writes, &c->first[0], &c->first[1]};
  for (size_t i = 0; i < AX_COUNT(by_allocation); i++)
    if ((*by_allocation[i] = ax_arena_alloc(tables, count * sizeof(uint32_t))) == NULL)
      return ax_out_of_memory(count * sizeof(uint32_t));
  c->kept = ax_arena_alloc(tables, count);
  if (c->kept == NULL) return ax_out_of_memory(count);
  for (int k = 0; k < 2 && count > 0; k++) memset(c->first[k], 0xff, count * sizeof c->first[k][0]);
  for (uint32_t i = 0; i < plan->buffer_count; i++)
    if (plan->buffers[i].updated || plan->buffers[i].loop != AX_NONE) c->kept[plan->buffers[i].allocation] = true;
  ax_block_walk(&plan->block, keep_seen, c);
  for (uint32_t k = 0; k < plan->out_count; k++) c->kept[plan->buffers[plan->out[k]].allocation] = true;
  for (uint32_t i = 0; i < plan->in_count && plan->donate != NULL; i++) c->donates = c->donates || plan->donate[i];
  ax_plan_count(plan, c->reads, c->writes);
  return AX_OK;
}

/* Whether anything may be put together from parts, and from few. In most plans there is nothing, and the pass ends here. */
static ax_status find_any(const ax_plan *plan, ax_arena *scratch, bool *few, bool *any) {
  size_t bytes = plan->buffer_count * sizeof(uint32_t);
  uint32_t *reads = ax_arena_alloc(scratch, bytes), *writes = ax_arena_alloc(scratch, bytes);
  if (reads == NULL || writes == NULL) return ax_out_of_memory(bytes);
  ax_plan_count(plan, reads, writes);
  *any = *few = false;
  for (uint32_t i = 0; i < plan->buffer_count && !*few; i++) {
    if (writes[i] < 2 || plan->buffers[i].kind != AX_BUFFER_TEMP || plan->buffers[i].updated) continue;
    *any = true;
    *few = writes[i] <= most_parts;
  }
  return AX_OK;
}

ax_status ax_plan_pieces(ax_plan *plan) {
  ax_arena tables = {0};
  cutter c = {.plan = plan};
  bool few = false, any = false;
  ax_status status = find_any(plan, &tables, &few, &any);
  if (any && status == AX_OK) status = ax_pieces_by_views(plan);
  if (status == AX_OK) status = ax_pieces_by_slices(plan);
  if (few && status == AX_OK) status = make_tables(&c, &tables);
  if (few && status == AX_OK) status = ax_blocks_visit(&plan->block, cut_block, &c);
  ax_free(c.touches);
  ax_free(c.nodes);
  ax_arena_deinit(&tables);
  return status;
}
