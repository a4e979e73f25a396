/* Loops of which no step needs another's results are maps: they become one dimension more of the kernels in them, so that vectors and threads
   go over the steps, too.

     loop 0, 100 times
       kernel of b0 b1, for i0<33      b1[t] = exp(b0[t])        ->        kernel of b0 b1, for i0<100 i1<33
       kernel of b2                    t = t + 1

   Of what the body touches, an allocation is
     - read only: it is the same in each step, or each step has a part of it;
     - a counter, which the body adds a constant to at its end, and nothing else knows of; likewise what is computed of it alone;
     - a temporary of each step, which the body fills before it reads it: it gets room for all steps;
     - rows, of which each step reads and writes its own;
     - a sum, to which each step adds and of which it reads nothing else: the steps' shares are temporaries, which are added up,
       or added by a loop of that alone (step_sums.h).
   A loop that carries anything else stays. It runs after fusion, when bodies are few kernels and hold few temporaries, and what it made is
   fused again: the steps' temporaries mostly go then. */
#include <string.h>

#include "ir/number.h"
#include "machine/caches.h"
#include "plan/index_map.h"
#include "plan/kernel_order.h"
#include "plan/over_steps.h"
#include "plan/op.h"
#include "plan/passes.h"
#include "plan/step_sums.h"

enum {
  most_ops = 16,
  most_made = 24,
  most_allocations = 48,
  most_temporaries = 1 << 18,
  most_shares = 1 << 22 /* bytes, of all steps */
};
enum { reach = 1024 }; /* operations before a loop that are looked at */

typedef enum role { READ, COUNTER, SUM, TEMPORARY, ROWS } role;

typedef struct touched {              /* an allocation that the body touches */
  uint32_t allocation, reads, writes; /* in the body */
  role role;
  bool known; /* a scalar that is a number or a constant by its step, as `number` says, from here on in the body */
  ax_step_slot number;
  uint32_t wide; /* TEMPORARY, SUM: an allocation for all steps; AX_NONE: none yet */
  bool varies;   /* what the body stores is not the same in each step */
  ax_step_sum sum;
  /* ROWS: how the body goes through them, so far: */
  bool seen, own[AX_MAX_RANK]; /* by dimension: each step has indices of its own there */
  uint32_t like;               /* a buffer of this shape, at this place */
  int64_t each[AX_MAX_RANK], low[AX_MAX_RANK], high[AX_MAX_RANK];
} touched;

typedef struct mapper {
  ax_plan *plan;
  uint32_t *reads, *writes; /* ax_plan_count's; of what there was when the pass began */
  uint32_t counted;
  const ax_op **changed; /* the lists of the blocks that were, to be fused again */
  uint32_t changed_count, changed_capacity;
  /* of the loop at hand: */
  const ax_block *around;
  uint32_t at;
  ax_op *loop;
  touched all[most_allocations];
  uint32_t count;
  bool too_many;
  ax_op made[most_made];
  uint32_t made_count;
} mapper;

static const ax_buffer *buffer_of(const mapper *m, uint32_t buffer) { return &m->plan->buffers[buffer]; }

static touched *find(mapper *m, uint32_t allocation) {
  for (uint32_t i = 0; i < m->count; i++)
    if (m->all[i].allocation == allocation) return &m->all[i];
  m->too_many = m->too_many || m->count == most_allocations;
  if (m->too_many) return NULL;
  m->all[m->count] = (touched){.allocation = allocation, .wide = AX_NONE};
  return &m->all[m->count++];
}

static touched *touched_by(mapper *m, const ax_op *op, uint32_t slot) {
  return find(m, buffer_of(m, op->kernel.buffers[slot])->allocation);
}

static void count_one(void *context, uint32_t buffer, bool writes) {
  mapper *m = context;
  touched *t = find(m, buffer_of(m, buffer)->allocation);
  if (t != NULL) *(writes ? &t->writes : &t->reads) += 1;
}

/* --- Roles --- */

static uint32_t first_looked_at(const mapper *m) { return m->at > reach ? m->at - reach : 0; }

static const ax_store *store_to(const mapper *m, const ax_bound *kernel, uint32_t allocation) {
  for (uint32_t s = 0; s < kernel->kernel->store_count; s++)
    if (buffer_of(m, kernel->buffers[kernel->kernel->stores[s].slot])->allocation == allocation) return &kernel->kernel->stores[s];
  return NULL;
}

/* The last kernel before the loop that stores to the allocation, and the store; NULL: none that is looked at. */
static const ax_store *stored_before(const mapper *m, uint32_t allocation, const ax_bound **kernel) {
  for (uint32_t i = m->at, last = first_looked_at(m); i-- > last;) {
    const ax_op *op = &m->around->ops[i];
    const ax_store *store = op->kind == AX_OP_KERNEL ? store_to(m, &op->kernel, allocation) : NULL;
    *kernel = &op->kernel;
    if (store != NULL) return store;
  }
  return NULL;
}

/* The constant that the allocation begins the loop with, if it is one. */
static bool begins_with(const mapper *m, uint32_t allocation, int64_t *first) {
  const ax_bound *kernel;
  const ax_store *store = stored_before(m, allocation, &kernel);
  if (store == NULL || kernel->kernel->reduce_rank > 0) return false;
  const ax_expr *value = &kernel->kernel->exprs[store->expr];
  *first = ax_number_load(value->dtype, &value->imm, 0).i;
  return value->op == AX_LEAF_CONST && value->dtype == buffer_of(m, allocation)->type.dtype;
}

/* Whether the node, of operation `op` of the body, is the counter and a constant: *more. It may be a copy of what an operation before made. */
static bool adds_to(mapper *m, uint32_t op, ax_ex node, uint32_t counter, uint32_t deepest, int64_t *more) {
  const ax_bound *k = &m->loop->loop.body.ops[op].kernel;
  const ax_expr *expr = &k->kernel->exprs[node];
  if (deepest == 0 || k->kernel->reduce_rank > 0 || (expr->dtype != AX_S32 && expr->dtype != AX_S64)) return false;
  if (expr->op == AX_SCALAR_ADD) {
    const bool first = k->kernel->exprs[expr->arg[0]].op == AX_LEAF_CONST;
    const ax_expr *constant = &k->kernel->exprs[expr->arg[first ? 0 : 1]];
    if (constant->op != AX_LEAF_CONST || !adds_to(m, op, expr->arg[first ? 1 : 0], counter, deepest - 1, more)) return false;
    *more += ax_number_load(constant->dtype, &constant->imm, 0).i;
    return true;
  }
  if (expr->op != AX_LEAF_LOAD || k->kernel->slots[expr->slot].rank > 0) return false;
  const uint32_t from = buffer_of(m, k->buffers[expr->slot])->allocation;
  *more = 0;
  if (buffer_of(m, from)->type.dtype != expr->dtype) return false;
  if (from == counter) return true;
  if (find(m, from)->writes != 1) return false;
  for (uint32_t before = 0; before < op; before++) {
    const ax_store *store = store_to(m, &m->loop->loop.body.ops[before].kernel, from);
    if (store != NULL) return adds_to(m, before, store->expr, counter, deepest - 1, more);
  }
  return false;
}

/* The body adds the same to the scalar each time, and nobody reads it after. */
static bool counts_steps(mapper *m, touched *t) {
  enum { deepest = 4 };
  const ax_buffer *b = buffer_of(m, t->allocation);
  if (b->type.rank != 0 || t->writes != 1 || m->writes[t->allocation] != 2 || m->reads[t->allocation] != t->reads) return false;
  t->number = (ax_step_slot){.use = AX_STEP_NUMBER};
  for (uint32_t i = 0; i < m->loop->loop.body.count; i++) {
    const ax_store *store = store_to(m, &m->loop->loop.body.ops[i].kernel, t->allocation);
    if (store == NULL) continue;
    return adds_to(m, i, store->expr, t->allocation, deepest, &t->number.each) && begins_with(m, t->allocation, &t->number.first);
  }
  return false;
}

/* The store makes every element of its array, once, in the order of the kernel's dimensions; a reduction may. */
static bool fills(const ax_loop_kernel *kernel, const ax_store *store) {
  const ax_slot *array = &kernel->slots[store->slot];
  const uint32_t rank = kernel->running || store->reduce == AX_SCALAR_NONE ? kernel->rank : kernel->rank - kernel->reduce_rank;
  if (array->rank != rank) return false;
  for (uint32_t d = 0; d < rank; d++)
    if (store->at[d].dim != (int)d || store->at[d].coef != 1 || store->at[d].offset != 0 || store->at[d].dynamic != AX_NONE ||
        array->dims[d] != kernel->dims[d])
      return false;
  return true;
}

/* The first operation of the body that touches it fills it without a look. */
static bool is_filled_first(const mapper *m, uint32_t allocation) {
  for (uint32_t i = 0; i < m->loop->loop.body.count; i++) {
    const ax_bound *k = &m->loop->loop.body.ops[i].kernel;
    for (uint32_t e = 0; e < k->kernel->expr_count; e++)
      if (k->kernel->exprs[e].op == AX_LEAF_LOAD && buffer_of(m, k->buffers[k->kernel->exprs[e].slot])->allocation == allocation)
        return false;
    for (uint32_t s = 0; s < k->kernel->store_count; s++)
      if (buffer_of(m, k->buffers[k->kernel->stores[s].slot])->allocation == allocation)
        return fills(k->kernel, &k->kernel->stores[s]);
  }
  return false;
}

static bool is_temporary(const mapper *m, const touched *t) {
  if (buffer_of(m, t->allocation)->kind != AX_BUFFER_TEMP || buffer_of(m, t->allocation)->loop != AX_NONE) return false;
  if (m->reads[t->allocation] != t->reads || m->writes[t->allocation] != t->writes) return false;
  for (uint32_t i = 0; i < m->loop->loop.body.count; i++) {
    const ax_bound *k = &m->loop->loop.body.ops[i].kernel;
    for (uint32_t slot = 0; slot < k->kernel->slot_count; slot++)
      if (buffer_of(m, k->buffers[slot])->allocation == t->allocation && !ax_is_all(m->plan, k->buffers[slot])) return false;
  }
  return is_filled_first(m, t->allocation);
}

/* Bytes that a step of the loop stores to the allocation. */
static int64_t stored_bytes(const mapper *m, uint32_t allocation) {
  int64_t bytes = 0;
  for (uint32_t i = 0; i < m->loop->loop.body.count; i++) {
    const ax_bound *k = &m->loop->loop.body.ops[i].kernel;
    for (uint32_t s = 0; s < k->kernel->store_count; s++) {
      const ax_store *store = &k->kernel->stores[s];
      const uint32_t rank = k->kernel->rank - (store->reduce != AX_SCALAR_NONE && !k->kernel->running ? k->kernel->reduce_rank : 0);
      if (buffer_of(m, k->buffers[store->slot])->allocation != allocation) continue;
      bytes += ax_dims_elems(rank, k->kernel->dims) * (int64_t)ax_dtype_bytes(k->kernel->slots[store->slot].dtype);
    }
  }
  return bytes;
}

static bool is_sum(const mapper *m, touched *t) {
  const ax_buffer *b = buffer_of(m, t->allocation);
  const ax_block *body = &m->loop->loop.body;
  return b->kind == AX_BUFFER_TEMP && b->loop == AX_NONE && t->writes == 1 &&
         ax_step_sum_find(m->plan, body, t->allocation, m->reads, m->writes, &t->sum) &&
         ax_step_sum_is_worth(m->plan, body, m->loop->loop.trips, t->allocation, &t->sum);
}

/* Of a step. */
static int64_t read_bytes(const ax_block *body) {
  double bytes = 0;
  for (uint32_t i = 0; i < body->count; i++) bytes += ax_kernel_amount(body->ops[i].kernel.kernel).read;
  return (int64_t)bytes;
}

typedef struct held { /* bytes for each step */
  int64_t temporaries, shares, rows;
} held;

/* Temporaries may be as large as the rows that are stored, or small in all. Shares may be more, as they mostly are numbers; and
   what a loop that sums reads for them is many times as much, or they would be no sums. */
static bool holds_little(const mapper *m, const held *each) {
  const int64_t trips = m->loop->loop.trips, all = each->temporaries + each->shares;
  if (each->shares > 0 && all <= read_bytes(&m->loop->loop.body) / 4) return all <= most_shares / trips;
  return each->temporaries <= most_temporaries / trips + 2 * each->rows && each->shares <= most_shares / trips &&
         (each->shares <= AX_LINE_BYTES || each->shares <= most_temporaries / trips);
}

/* Finds what each allocation is to the loop. False: the loop carries something, or holds much. */
static bool find_roles(mapper *m) {
  held each = {0};
  for (uint32_t i = 0; i < m->count; i++) {
    touched *t = &m->all[i];
    const int64_t bytes = ax_buffer_bytes(buffer_of(m, t->allocation));
    if (t->allocation >= m->counted) return false; /* made by this pass, in a loop inside: its touches were not counted */
    if (t->writes == 0) t->role = READ;
    else if (counts_steps(m, t)) t->role = COUNTER, t->known = true;
    else if (is_sum(m, t))
      t->role = SUM, each.shares += bytes;
    else if (is_temporary(m, t))
      t->role = TEMPORARY, each.temporaries += bytes;
    else if (buffer_of(m, t->allocation)->kind == AX_BUFFER_TEMP)
      t->role = ROWS, each.rows += stored_bytes(m, t->allocation);
    else return false;
  }
  for (uint32_t i = 0; i < m->count; i++) /* the shares are in a temporary */
    if (m->all[i].role == SUM && m->all[i].sum.through != m->all[i].allocation)
      each.temporaries -= ax_buffer_bytes(buffer_of(m, m->all[i].allocation));
  return holds_little(m, &each);
}

/* --- Slots --- */

/* Of a scalar that the loop goes through: what it is in each step, if a kernel before the loop counted in the array. */
static bool counted_before(const mapper *m, const ax_buffer *view, ax_step_slot *out) {
  const int64_t bytes = (int64_t)ax_dtype_bytes(view->type.dtype), from = view->offset / bytes, each = view->step / bytes;
  ax_affine number;
  if (m->writes[view->allocation] != 1 || view->type.rank != 0 || view->type.dtype != buffer_of(m, view->allocation)->type.dtype) return false;
  const ax_bound *kernel;
  const ax_store *store = stored_before(m, view->allocation, &kernel);
  if (store == NULL || kernel->kernel->rank != 1 || !ax_is_all(m->plan, kernel->buffers[store->slot]) ||
      !fills(kernel->kernel, store))
    return false;
  if (!ax_affine_node(kernel->kernel, store->expr, &number)) return false;
  *out = (ax_step_slot){.use = AX_STEP_NUMBER, .first = number.offset + number.coef[0] * from, .each = number.coef[0] * each};
  return true;
}

/* A buffer with room for a value of that type in each step, without its dimensions of one element. */
static ax_status add_view(const mapper *m, const ax_buffer *like, uint32_t allocation, int64_t offset, const ax_type *of_step,
                          uint32_t *out) {
  ax_buffer view = *like;
  view.type = (ax_type){.dtype = of_step->dtype, .rank = 1, .dims = {m->loop->loop.trips}};
  for (uint32_t d = 0; d < of_step->rank; d++)
    if (of_step->dims[d] != 1) view.type.dims[view.type.rank++] = of_step->dims[d];
  view.allocation = allocation, view.offset = offset, view.loop = AX_NONE, view.step = 0;
  return ax_plan_add_buffer(m->plan, &view, out);
}

/* The temporaries of all steps, one after the other. */
static ax_status add_wide(mapper *m, touched *t) {
  ax_buffer all = *buffer_of(m, t->allocation);
  const ax_type flat = ax_array_type(all.type.dtype, AX_LIST(1, ((const int64_t[]){ax_type_elems(&all.type)})));
  return t->wide != AX_NONE ? AX_OK : add_view(m, &all, AX_NONE, 0, &flat, &t->wide);
}

/* What the slot of the operation is. *possible: there is an answer. */
static ax_status find_slot(mapper *m, const ax_op *op, uint32_t slot, ax_step_slot *out, bool *possible) {
  const ax_buffer b = *buffer_of(m, op->kernel.buffers[slot]);
  touched *t = touched_by(m, op, slot);
  const int64_t bytes = ax_buffer_bytes(&b), steps = m->loop->loop.trips;
  *out = (ax_step_slot){.use = AX_STEP_SAME};
  *possible = t->role == READ || t->role == ROWS || b.type.dtype == buffer_of(m, b.allocation)->type.dtype; /* not its bits as another's */
  if (!*possible) return AX_OK;
  if (t->known) *out = t->number;
  if (t->known || (b.type.rank == AX_MAX_RANK &&
                   (t->role == TEMPORARY || t->role == SUM || b.loop == m->loop->loop.id))) { /* no room for one more */
    *possible = t->known;
    return AX_OK;
  }
  if (t->role == TEMPORARY || t->role == SUM) {
    AX_TRY(add_wide(m, t));
    out->use = AX_STEP_OWN;
    return add_view(m, &b, t->wide, 0, &b.type, &out->buffer);
  }
  if (b.loop != m->loop->loop.id || counted_before(m, &b, out)) return AX_OK;
  *possible = bytes > 0 && (b.step == bytes || b.step == -bytes);
  if (!*possible) return AX_OK;
  out->use = b.step > 0 ? AX_STEP_OWN : AX_STEP_OWN_BACK;
  return add_view(m, &b, b.allocation, b.step > 0 ? b.offset : b.offset - (steps - 1) * bytes, &b.type, &out->buffer);
}

static uint32_t make_view(void *context, uint32_t buffer, uint32_t rank, const int64_t *dims) {
  mapper *m = context;
  ax_buffer view = *buffer_of(m, buffer);
  view.type = ax_array_type(view.type.dtype, AX_LIST(rank, dims));
  return ax_plan_add_buffer(m->plan, &view, &buffer) == AX_OK ? buffer : AX_NONE;
}

/* --- Rows --- */

/* Notes where a kernel over all steps touches rows. */
static void note_rows(mapper *m, const ax_bound *made, uint32_t slot, const ax_position *at) {
  const ax_buffer *b = buffer_of(m, made->buffers[slot]);
  touched *t = find(m, b->allocation);
  if (t == NULL || t->role != ROWS) return;
  const bool first = !t->seen;
  if (first) t->seen = true, t->like = made->buffers[slot];
  const ax_buffer *like = buffer_of(m, t->like);
  const bool alike = ax_same_shape(&like->type, &b->type) && like->type.dtype == b->type.dtype && like->offset == b->offset &&
                     like->loop == b->loop && like->step == b->step;
  for (uint32_t d = 0; d < like->type.rank; d++) {
    const bool own = alike && at[d].dim == 0 && at[d].coef != 0 && at[d].dynamic == AX_NONE;
    t->own[d] = own && (first || (t->own[d] && t->each[d] == at[d].coef));
    if (!own) continue;
    t->each[d] = at[d].coef;
    if (first || at[d].offset < t->low[d]) t->low[d] = at[d].offset;
    if (first || at[d].offset > t->high[d]) t->high[d] = at[d].offset;
  }
}

static void note_all_rows(mapper *m, const ax_bound *made) {
  for (uint32_t i = 0; i < made->kernel->expr_count; i++)
    if (made->kernel->exprs[i].op == AX_LEAF_LOAD) note_rows(m, made, made->kernel->exprs[i].slot, made->kernel->exprs[i].at);
  for (uint32_t s = 0; s < made->kernel->store_count; s++)
    note_rows(m, made, made->kernel->stores[s].slot, made->kernel->stores[s].at);
}

static bool has_own_rows(const mapper *m, const touched *t) {
  for (uint32_t d = 0; d < buffer_of(m, t->like)->type.rank; d++)
    if (t->own[d] && t->high[d] - t->low[d] < (t->each[d] > 0 ? t->each[d] : -t->each[d])) return true;
  return false;
}

/* --- Operations --- */

/* From here on, what the operation made of the steps' numbers alone is known. */
static void note_known(mapper *m, const ax_op *op, const ax_bound *made, const bool *dropped) {
  uint32_t at = 0;
  for (uint32_t s = 0; s < op->kernel.kernel->store_count; s++) {
    touched *t = touched_by(m, op, op->kernel.kernel->stores[s].slot);
    if (t->role == COUNTER) t->number.first += t->number.each;
    if (dropped[s]) continue;
    const bool scalar = t->role == TEMPORARY && buffer_of(m, t->allocation)->type.rank == 0 && t->writes == 1;
    if (scalar && made->kernel->reduce_rank == 0)
      t->known = ax_over_steps_known(made->kernel, made->kernel->stores[at].expr, &t->number);
    at++;
  }
}

/* The operation of the body with the steps' shares in place of the sums, and the copies of sums that go. */
static ax_status without_sums(mapper *m, uint32_t at, ax_op *op, bool *dropped) {
  for (uint32_t i = 0; i < m->count; i++) {
    const ax_step_sum *sum = &m->all[i].sum;
    if (m->all[i].role != SUM) continue;
    if (sum->copy == at) dropped[sum->copy_store] = true;
    if (sum->op == at && sum->made_before)
      dropped[sum->store] = true;
    else if (sum->op == at)
      AX_TRY(ax_step_sum_share(&m->plan->arena, &op->kernel, sum));
  }
  return AX_OK;
}

static bool is_the_same(const mapper *m, uint32_t buffer) {
  for (uint32_t i = 0; i < m->count; i++)
    if (m->all[i].wide != AX_NONE && buffer_of(m, buffer)->allocation == buffer_of(m, m->all[i].wide)->allocation)
      return !m->all[i].varies;
  return false;
}

static bool varies(const mapper *m, const ax_bound *made, const ax_expr *expr, const bool *known) {
  bool found = (expr->op == AX_LEAF_INDEX && expr->imm == 0) || (expr->op == AX_LEAF_INSIDE && expr->at->dim == 0);
  for (int k = 0; k < 3; k++) found = found || (expr->arg[k] != AX_NONE && known[expr->arg[k]]);
  for (uint32_t d = 0; expr->op == AX_LEAF_LOAD && d < ax_expr_positions(made->kernel, expr); d++) {
    found = found || (expr->at[d].dim == 0 && !is_the_same(m, made->buffers[expr->slot]));
    found = found || (expr->at[d].dynamic != AX_NONE && known[expr->at[d].dynamic]);
  }
  return found;
}

/* Notes which of what the operation stores depends on the step, its first dimension. */
static void note_varying(mapper *m, const ax_op *op, const ax_bound *made, const bool *dropped) {
  bool known[AX_MOST_EXPRS];
  uint32_t at = 0;
  for (ax_ex e = 0; e < made->kernel->expr_count; e++) known[e] = varies(m, made, &made->kernel->exprs[e], known);
  for (uint32_t s = 0; s < op->kernel.kernel->store_count; s++)
    if (!dropped[s]) touched_by(m, op, op->kernel.kernel->stores[s].slot)->varies |= known[made->kernel->stores[at++].expr];
}

static ax_status map_op(mapper *m, uint32_t number, bool *possible) {
  ax_op shares = m->loop->loop.body.ops[number];
  const ax_op *op = &shares;
  const ax_views views = {make_view, m};
  ax_step_slot slots[AX_MOST_SLOTS];
  bool dropped[AX_MOST_SLOTS] = {0};
  uint32_t kept = 0;
  ax_bound made, pruned;
  *possible = op->kernel.kernel->slot_count <= AX_MOST_SLOTS && op->kernel.kernel->store_count <= AX_MOST_SLOTS;
  if (!*possible) return AX_OK;
  AX_TRY(without_sums(m, number, &shares, dropped));
  const ax_loop_kernel *kernel = op->kernel.kernel;
  for (uint32_t s = 0; s < kernel->slot_count && *possible; s++) AX_TRY(find_slot(m, op, s, &slots[s], possible));
  if (!*possible) return AX_OK;
  for (uint32_t s = 0; s < kernel->store_count; s++) {
    dropped[s] = dropped[s] || touched_by(m, op, kernel->stores[s].slot)->role == COUNTER;
    kept += !dropped[s];
  }
  if (kept > 0) {
    AX_TRY(ax_kernel_over_steps(&m->plan->arena, &op->kernel, m->loop->loop.trips, slots, dropped, &views, &made));
    *possible = made.kernel != NULL;
    if (!*possible) return AX_OK;
    note_all_rows(m, &made);
    note_varying(m, op, &made, dropped);
    AX_TRY(ax_kernel_prune(&m->plan->arena, &made, NULL, &pruned));
    *possible = pruned.kernel != NULL;
    if (!*possible) return AX_OK;
    pruned.kernel = ax_kernel_in_memory_order(&m->plan->arena, pruned.kernel);
    if (pruned.kernel == NULL) return ax_out_of_memory(0);
    m->made[m->made_count] = *op;
    m->made[m->made_count].kernel = pruned;
    m->made[m->made_count++].diverging = m->loop->diverging;
  }
  note_known(m, op, &made, dropped);
  return AX_OK;
}

/* The shares of all steps, steps x (the sum's dimensions). */
static ax_status find_shares(mapper *m, const touched *t, uint32_t *out, bool *possible) {
  const ax_buffer all = *buffer_of(m, t->allocation);
  const touched *through = find(m, t->sum.through);
  *possible = through->wide != AX_NONE && through->varies; /* others are made once, before the loop (hoist.c) */
  return *possible ? add_view(m, &all, through->wide, 0, &all.type, out) : AX_OK;
}

/* Behind the operations over all steps: the shares added up. */
static ax_status add_reduced(mapper *m, const touched *t, bool *possible) {
  ax_op like = m->loop->loop.body.ops[t->sum.op];
  uint32_t shares, count;
  like.diverging = m->loop->diverging;
  AX_TRY(find_shares(m, t, &shares, possible));
  *possible = *possible && m->made_count + AX_STEP_SUM_OPS < most_made;
  if (!*possible) return AX_OK;
  AX_TRY(ax_step_sum_reduce(m->plan, &t->sum, &like, t->allocation, shares, &m->made[m->made_count], &count));
  m->made_count += count;
  return AX_OK;
}

static ax_status add_in_order(mapper *m, const touched *t, ax_block *body, bool *possible) {
  uint32_t shares;
  AX_TRY(find_shares(m, t, &shares, possible));
  if (!*possible) return AX_OK;
  ax_op *adds = &body->ops[body->count++];
  *adds = m->loop->loop.body.ops[t->sum.op];
  return ax_step_sum_step(m->plan, &t->sum, t->allocation, shares, m->loop->loop.id, &adds->kernel);
}

/* Those that are reduced by kernels of their own, and a loop for the others. */
static ax_status add_sums(mapper *m, bool *possible) {
  ax_op loop = *m->loop;
  loop.loop.body =
      (ax_block){.ops = ax_arena_alloc(&m->plan->arena, m->count * sizeof loop.loop.body.ops[0]), .capacity = m->count};
  if (loop.loop.body.ops == NULL) return ax_out_of_memory(m->count * sizeof loop.loop.body.ops[0]);
  for (uint32_t i = 0; i < m->count && *possible; i++) {
    if (m->all[i].role != SUM) continue;
    if (m->all[i].sum.reduce != AX_SCALAR_NONE)
      AX_TRY(add_reduced(m, &m->all[i], possible));
    else
      AX_TRY(add_in_order(m, &m->all[i], &loop.loop.body, possible));
  }
  if (*possible && loop.loop.body.count > 0) m->made[m->made_count++] = loop;
  return AX_OK;
}

static bool may_map(const ax_op *op) {
  if (op->kind != AX_OP_LOOP || op->loop.trips < 2 || op->loop.body.count > most_ops || op->loop.test.count > 0) return false;
  for (uint32_t i = 0; i < op->loop.body.count; i++) {
    const ax_op *one = &op->loop.body.ops[i];
    if (one->kind != AX_OP_KERNEL || ax_op_is_ordered(one) || one->kernel.kernel->parts != 1 ||
        one->axes != op->loop.body.ops[0].axes)
      return false;
  }
  return op->loop.body.count > 0;
}

/* Makes the operations over all steps. *possible: there are such. */
static ax_status map_loop(mapper *m, bool *possible) {
  const ax_block *body = &m->loop->loop.body;
  const uint32_t buffers = m->plan->buffer_count;
  m->count = m->made_count = 0;
  m->too_many = false;
  for (uint32_t i = 0; i < body->count; i++) ax_op_visit(&body->ops[i], count_one, m);
  *possible = !m->too_many && find_roles(m);
  for (uint32_t i = 0; i < body->count && *possible; i++) AX_TRY(map_op(m, i, possible));
  for (uint32_t i = 0; i < m->count && *possible; i++)
    if (m->all[i].role == ROWS) *possible = m->all[i].seen && has_own_rows(m, &m->all[i]);
  if (*possible) AX_TRY(add_sums(m, possible));
  *possible = *possible && !m->too_many && m->made_count > 0;
  if (!*possible) m->plan->buffer_count = buffers; /* nothing has those that were added */
  return AX_OK;
}

typedef struct in_place { /* of an operation of a block: those that take its place; ops NULL: it stays */
  ax_op *ops;
  uint32_t count;
} in_place;

static ax_status keep_made(mapper *m, uint32_t block_count, in_place **all) {
  if (*all == NULL) *all = ax_calloc(block_count, sizeof (*all)[0]);
  if (*all == NULL) return ax_out_of_memory(block_count * sizeof (*all)[0]);
  in_place *made = &(*all)[m->at];
  made->count = m->made_count;
  made->ops = ax_arena_copy(&m->plan->arena, m->made, m->made_count * sizeof m->made[0]);
  return made->ops != NULL ? AX_OK : ax_out_of_memory(m->made_count * sizeof m->made[0]);
}

/* Puts what was made in the places of loops. */
static ax_status put(mapper *m, ax_block *block, const in_place *made) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < block->count; i++) count += made[i].ops != NULL ? made[i].count : 1;
  ax_op *ops = ax_arena_alloc(&m->plan->arena, count * sizeof ops[0]), *next = ops;
  if (ops == NULL) return ax_out_of_memory(count * sizeof ops[0]);
  for (uint32_t i = 0; i < block->count; i++) {
    if (made[i].ops != NULL) memcpy(next, made[i].ops, made[i].count * sizeof ops[0]);
    else *next = block->ops[i];
    next += made[i].ops != NULL ? made[i].count : 1;
  }
  block->ops = ops;
  block->count = block->capacity = count;
  AX_TRY(ax_grow(&m->changed, sizeof m->changed[0], m->changed_count, 1, &m->changed_capacity));
  m->changed[m->changed_count++] = ops;
  return AX_OK;
}

static ax_status map_block(void *context, ax_block *block, bool is_body) {
  mapper *m = context;
  in_place *made = NULL;
  ax_status status = AX_OK;
  (void)is_body;
  for (uint32_t i = 0; i < block->count && status == AX_OK; i++) {
    bool possible = false;
    if (!may_map(&block->ops[i])) continue;
    m->around = block;
    m->at = i;
    m->loop = &block->ops[i];
    status = map_loop(m, &possible);
    if (status == AX_OK && possible) status = keep_made(m, block->count, &made);
  }
  if (status == AX_OK && made != NULL) status = put(m, block, made);
  ax_free(made);
  return status;
}

ax_status ax_plan_maps(ax_plan *plan) {
  ax_arena tables = {0};
  mapper *m = ax_arena_alloc(&tables, sizeof *m);
  if (m == NULL) return ax_out_of_memory(sizeof *m);
  *m = (mapper){.plan = plan, .counted = plan->buffer_count};
  m->reads = ax_arena_alloc(&tables, (plan->buffer_count + 1) * sizeof m->reads[0]);
  m->writes = ax_arena_alloc(&tables, (plan->buffer_count + 1) * sizeof m->writes[0]);
  ax_status status = m->reads != NULL && m->writes != NULL ? AX_OK : ax_out_of_memory(plan->buffer_count * sizeof m->reads[0]);
  if (status == AX_OK) {
    ax_plan_count(plan, m->reads, m->writes);
    status = ax_blocks_visit(&plan->block, map_block, m);
  }
  if (status == AX_OK && m->changed_count > 0) status = ax_plan_fuse_again(plan, m->changed, m->changed_count);
  ax_free(m->changed);
  ax_arena_deinit(&tables);
  return status;
}
