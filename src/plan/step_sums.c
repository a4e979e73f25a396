/* See step_sums.h. */
#include "plan/step_sums.h"

#include <string.h>

#include "ir/dtype.h"
#include "machine/caches.h"

/* --- Finding --- */

static uint32_t allocation_of(const ax_plan *plan, const ax_bound *k, uint32_t slot) {
  return plan->buffers[k->buffers[slot]].allocation;
}

/* The body's one store to the allocation. */
static bool find_one_store(const ax_plan *plan, const ax_block *body, uint32_t allocation, uint32_t *op, uint32_t *store) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < body->count; i++) {
    const ax_bound *k = &body->ops[i].kernel;
    for (uint32_t s = 0; s < k->kernel->store_count; s++)
      if (allocation_of(plan, k, k->kernel->stores[s].slot) == allocation) *op = i, *store = s, found++;
  }
  return found == 1;
}

/* Likewise, and it makes all of it element by element. */
static bool find_store(const ax_plan *plan, const ax_block *body, uint32_t allocation, uint32_t *op, uint32_t *store) {
  if (!find_one_store(plan, body, allocation, op, store)) return false;
  const ax_bound *k = &body->ops[*op].kernel;
  const ax_store *one = &k->kernel->stores[*store];
  return k->kernel->reduce_rank == 0 && k->kernel->rank == k->kernel->slots[one->slot].rank &&
         ax_is_all(plan, k->buffers[one->slot]) && ax_kernel_covers(k->kernel, one->slot, one->at) &&
         ax_at_is_identity(one->at, k->kernel->rank);
}

/* The one node in the body that loads of the allocation; AX_NONE: none, or several. */
static ax_ex find_load(const ax_plan *plan, const ax_block *body, uint32_t allocation, uint32_t *op) {
  ax_ex load = AX_NONE;
  for (uint32_t i = 0; i < body->count; i++) {
    const ax_bound *k = &body->ops[i].kernel;
    for (ax_ex e = 0; e < k->kernel->expr_count; e++) {
      if (k->kernel->exprs[e].op != AX_LEAF_LOAD || allocation_of(plan, k, k->kernel->exprs[e].slot) != allocation) continue;
      if (load != AX_NONE) return AX_NONE;
      load = e, *op = i;
    }
  }
  return load;
}

/* The node loads the element of all of the allocation that the step of the kernel is at. */
static bool loads_own(const ax_plan *plan, const ax_bound *k, ax_ex node, uint32_t allocation) {
  const ax_expr *e = &k->kernel->exprs[node];
  return e->op == AX_LEAF_LOAD && allocation_of(plan, k, e->slot) == allocation && ax_is_all(plan, k->buffers[e->slot]) &&
         e->arg[0] == AX_NONE && k->kernel->slots[e->slot].rank == k->kernel->rank && ax_at_is_identity(e->at, k->kernel->rank);
}

static uint32_t uses_of(const ax_loop_kernel *kernel, ax_ex node) {
  uint32_t uses = 0;
  for (ax_ex e = 0; e < kernel->expr_count; e++) {
    const ax_expr *expr = &kernel->exprs[e];
    for (int a = 0; a < 3; a++) uses += expr->arg[a] == node;
    for (uint32_t p = 0; p < ax_expr_positions(kernel, expr); p++) uses += expr->at[p].dynamic == node;
  }
  for (uint32_t s = 0; s < kernel->store_count; s++) uses += kernel->stores[s].expr == node;
  return uses;
}

/* Whether values are joined one after the other; and whether any order gives the same. */
static bool is_join(ax_scalar op, ax_dtype dtype, bool *any_order) {
  const bool exact = ax_is_exact(dtype);
  *any_order = exact;
  switch (op) {
    case AX_SCALAR_ADD:
    case AX_SCALAR_SUB:
    case AX_SCALAR_MUL:
      return true;
    case AX_SCALAR_AND:
    case AX_SCALAR_OR:
    case AX_SCALAR_XOR:
      return exact;
    case AX_SCALAR_MAX:
    case AX_SCALAR_MIN:
      *any_order = true;
      return true;
    default:
      return false;
  }
}

/* Whether the node joins the load with something else, which then is the share. */
static bool joins(const ax_loop_kernel *kernel, ax_ex node, ax_ex load, ax_step_sum *out) {
  const ax_expr *e = &kernel->exprs[node];
  const int share = e->arg[0] == load ? 1 : 0;
  bool any_order;
  if (!is_join(e->op, e->dtype, &any_order) || e->imm != 0 || (e->arg[0] != load && e->arg[1] != load)) return false;
  if (e->op == AX_SCALAR_SUB && share == 0) return false; /* the signs change by turns */
  out->share = e->arg[share], out->join = e->op;
  out->reduce = !any_order ? AX_SCALAR_NONE : e->op == AX_SCALAR_SUB ? AX_SCALAR_ADD : e->op;
  return true;
}

/* Likewise, or keeps what there was where a condition says so; not of floats, of which no addition changes nothing: not of
   subnormals, nor of all NaNs. Nothing else may use the load, nor what the store stores. */
static bool only_joins(const ax_loop_kernel *kernel, ax_ex node, ax_ex load, ax_step_sum *out) {
  const ax_expr *e = &kernel->exprs[node];
  out->where = AX_NONE;
  if (uses_of(kernel, node) != 1) return false;
  if (e->op != AX_SCALAR_SELECT) return uses_of(kernel, load) == 1 && joins(kernel, node, load, out);
  const ax_ex joined = e->arg[1] == load ? e->arg[2] : e->arg[1];
  out->where = node;
  return (e->arg[1] == load || e->arg[2] == load) && uses_of(kernel, load) == 2 && uses_of(kernel, joined) == 1 &&
         joins(kernel, joined, load, out) && out->reduce == AX_SCALAR_ADD;
}

bool ax_step_sum_find(const ax_plan *plan, const ax_block *body, uint32_t allocation, const uint32_t *reads, const uint32_t *writes,
                      ax_step_sum *out) {
  uint32_t at, maker_op, maker_store;
  *out = (ax_step_sum){.through = allocation, .copy = AX_NONE, .copy_store = AX_NONE};
  const ax_ex load = find_load(plan, body, allocation, &at);
  if (load == AX_NONE || !find_store(plan, body, allocation, &out->op, &out->store)) return false;
  const ax_bound *k = &body->ops[out->op].kernel;
  const ax_expr *stored = &k->kernel->exprs[k->kernel->stores[out->store].expr];
  if (stored->op == AX_LEAF_LOAD && out->op > at) { /* through a temporary */
    const uint32_t temporary = allocation_of(plan, k, stored->slot);
    if (!ax_is_passed_on(plan, reads, writes, k->buffers[stored->slot]) ||
        !loads_own(plan, k, k->kernel->stores[out->store].expr, temporary))
      return false;
    out->through = temporary, out->copy = out->op, out->copy_store = out->store;
    if (!find_store(plan, body, temporary, &out->op, &out->store)) return false;
    k = &body->ops[out->op].kernel;
  }
  if (out->op != at || !loads_own(plan, k, load, allocation) ||
      !only_joins(k->kernel, k->kernel->stores[out->store].expr, load, out))
    return false;
  const ax_expr *share = &k->kernel->exprs[out->share];
  const uint32_t maker = share->op == AX_LEAF_LOAD ? allocation_of(plan, k, share->slot) : AX_NONE;
  out->made_before = maker != AX_NONE && out->where == AX_NONE && ax_is_passed_on(plan, reads, writes, k->buffers[share->slot]) &&
                     loads_own(plan, k, out->share, maker) && find_one_store(plan, body, maker, &maker_op, &maker_store);
  if (out->made_before) out->through = maker;
  return true;
}

/* How many operations it does on an element. *slowly: one of them takes longer than others. */
static uint32_t computed_by(const ax_loop_kernel *kernel, bool *slowly) {
  enum { rounds = 20 }; /* of threefry, each of some operations */
  uint32_t computed = 0;
  for (ax_ex e = 0; e < kernel->expr_count; e++) {
    const ax_scalar op = kernel->exprs[e].op;
    *slowly = *slowly || ax_scalar_is_function(op) || op == AX_SCALAR_DIV || op == AX_SCALAR_REM;
    computed += op == AX_SCALAR_THREEFRY ? 3 * rounds : ax_scalar_arity(op) > 0;
  }
  return computed;
}

typedef struct step {    /* of the body */
  double time;           /* nanoseconds */
  uint32_t computed;     /* operations on an element */
  bool reduces, columns; /* it reduces; across rows, so that results fill vectors */
  int64_t results;       /* the most that one of its reductions has */
} step;

/* An array's neighbours are added up. */
static bool goes_along_rows(const ax_loop_kernel *kernel) {
  for (ax_ex e = 0; e < kernel->expr_count; e++) {
    const ax_expr *load = &kernel->exprs[e];
    const uint32_t rank = load->op == AX_LEAF_LOAD ? kernel->slots[load->slot].rank : 0;
    if (rank > 0 && load->at[rank - 1].dim == (int)kernel->rank - 1) return true;
  }
  return false;
}

static step look_at(const ax_block *body) {
  step s = {0};
  bool slowly = false;
  for (uint32_t i = 0; i < body->count; i++) {
    const ax_loop_kernel *kernel = body->ops[i].kernel.kernel;
    s.time += ax_kernel_time(kernel);
    s.computed += computed_by(kernel, &slowly);
    if (kernel->reduce_rank == 0) continue;
    const int64_t results = ax_dims_elems(kernel->rank - kernel->reduce_rank, kernel->dims);
    s.reduces = true;
    s.columns = s.columns || (results > 1 && !goes_along_rows(kernel));
    if (results > s.results) s.results = results;
  }
  return s;
}

/* A step fills vectors by itself: of the sum's elements all of some vectors, and more than one. */
static bool fills_vectors(int64_t bytes) {
  return bytes > AX_LINE_BYTES && (bytes % AX_LINE_BYTES == 0 || bytes > 4 * AX_LINE_BYTES);
}

/* Short steps in short loops take less than the operations that would be made of them. Where a step reduces, its own loops have
   vectors: only several reductions for few results, or many operations on an element, are better done for all steps at once;
   and what is long enough for threads. (Zen 4; an addition takes a nanosecond, in which three operations are done.) */
bool ax_step_sum_is_worth(const ax_plan *plan, const ax_block *body, int64_t trips, uint32_t allocation, const ax_step_sum *sum) {
  enum { few_trips = 8, more_trips = 32, many = 12, many_in_all = 64, few_elems = 16, some = 4 };
  const double very_long = 1000, long_row = 200, long_step = 30;
  const step s = look_at(body);
  const ax_type *type = &plan->buffers[allocation].type;
  bool slowly = false;
  if (s.time >= very_long) return true;
  if (trips < few_trips || fills_vectors(ax_buffer_bytes(&plan->buffers[allocation]))) return false;
  if (s.computed >= many_in_all) return true;
  if (s.reduces) return !s.columns && ax_type_elems(type) <= few_elems && s.time >= (s.results >= some ? long_step : long_row);
  if (sum->reduce != AX_SCALAR_NONE) return true;
  return trips >= more_trips && (computed_by(body->ops[sum->op].kernel.kernel, &slowly) >= many || slowly);
}

/* --- Making --- */

/* The selection, with nothing to add in place of what there was. */
static ax_ex selected_share(ax_loop_kernel *kernel, const ax_step_sum *sum) {
  if (sum->where == AX_NONE) return sum->share;
  const ax_expr was = kernel->exprs[sum->where];
  const bool second = kernel->exprs[was.arg[1]].op == AX_LEAF_LOAD; /* of what there was */
  const ax_ex none = ax_kernel_const(kernel, was.dtype, 0);
  return ax_kernel_op(kernel, AX_SCALAR_SELECT, was.dtype, was.arg[0], second ? none : sum->share, second ? sum->share : none);
}

ax_status ax_step_sum_share(ax_arena *arena, ax_bound *kernel, const ax_step_sum *sum) {
  const ax_loop_kernel *from = kernel->kernel;
  ax_loop_kernel *made = ax_kernel_extend(arena, from, 2);
  if (made == NULL) return ax_out_of_memory(sizeof *made);
  const ax_ex share = selected_share(made, sum);
  for (uint32_t s = 0; s < from->store_count; s++)
    ax_kernel_store(made, from->stores[s].slot, from->stores[s].at, s == sum->store ? share : from->stores[s].expr,
                    from->stores[s].reduce);
  kernel->kernel = made;
  return made->failed ? ax_out_of_memory(0) : AX_OK;
}

/* A buffer like the allocation's without its dimensions of one element: of it, or of its own memory. */
static ax_status add_view(ax_plan *plan, uint32_t allocation, bool own, uint32_t *out) {
  ax_buffer view = plan->buffers[allocation];
  const ax_type type = view.type;
  view.type.rank = 0;
  for (uint32_t d = 0; d < type.rank; d++)
    if (type.dims[d] != 1) view.type.dims[view.type.rank++] = type.dims[d];
  view.allocation = own ? AX_NONE : allocation;
  view.offset = 0, view.loop = AX_NONE, view.step = 0;
  return ax_plan_add_buffer(plan, &view, out);
}

static ax_status begin(ax_plan *plan, ax_bound *k, uint32_t rank, uint32_t reduce_rank, const int64_t *dims, uint32_t slots) {
  k->kernel = ax_kernel_create(&plan->arena, rank, reduce_rank, dims);
  k->buffers = ax_arena_alloc(&plan->arena, slots * sizeof k->buffers[0]);
  return k->kernel != NULL && k->buffers != NULL ? AX_OK : ax_out_of_memory(0);
}

/* for i.., reduce t:  total[i..] = reduce shares[t, i..] */
static ax_status add_up(ax_plan *plan, ax_scalar reduce, uint32_t shares, uint32_t total, ax_bound *k) {
  const ax_type from = plan->buffers[shares].type, to = plan->buffers[total].type;
  int64_t dims[AX_MAX_RANK];
  ax_position at[AX_MAX_RANK + 1] = {{.dim = (int)to.rank, .coef = 1, .dynamic = AX_NONE}};
  memcpy(dims, to.dims, to.rank * sizeof dims[0]);
  dims[to.rank] = from.dims[0];
  AX_TRY(begin(plan, k, to.rank + 1, 1, dims, 2));
  ax_at_identity(at + 1, to.rank);
  const uint32_t in = ax_kernel_slot(k->kernel, from.dtype, from.rank, from.dims),
                 out = ax_kernel_slot(k->kernel, to.dtype, to.rank, to.dims);
  k->buffers[in] = shares, k->buffers[out] = total;
  const ax_ex share = ax_kernel_load(k->kernel, in, at);
  ax_kernel_store(k->kernel, out, at + 1, share, reduce);
  return k->kernel->failed ? ax_out_of_memory(0) : AX_OK;
}

/* for i..:  sum[i..] = sum[i..] joined with total[i..] */
static ax_status join_with(ax_plan *plan, ax_scalar join, uint32_t total, uint32_t sum, ax_bound *k) {
  const ax_type type = plan->buffers[sum].type;
  ax_position at[AX_MAX_RANK];
  AX_TRY(begin(plan, k, type.rank, 0, type.dims, 2));
  ax_at_identity(at, type.rank);
  const uint32_t was = ax_kernel_slot(k->kernel, type.dtype, type.rank, type.dims),
                 more = ax_kernel_slot(k->kernel, type.dtype, type.rank, type.dims);
  k->buffers[was] = sum, k->buffers[more] = total;
  const ax_ex before = ax_kernel_load(k->kernel, was, at), all = ax_kernel_load(k->kernel, more, at);
  ax_kernel_store(k->kernel, was, at, ax_kernel_op(k->kernel, join, type.dtype, before, all, AX_NONE), AX_SCALAR_NONE);
  return k->kernel->failed ? ax_out_of_memory(0) : AX_OK;
}

/* Into how many blocks a long sum of numbers is cut, of which threads have each some: 1, unless they are of one length, so that
   the shares are computed where they are added up. */
static int64_t blocks_of(const ax_loop_kernel *adds) {
  enum { long_sum = 1 << 15, most_blocks = 64, least_blocks = 4 };
  if (adds->rank != 1 || adds->dims[0] < long_sum) return 1;
  for (int64_t blocks = most_blocks; blocks >= least_blocks; blocks--)
    if (adds->dims[0] % blocks == 0) return blocks;
  return 1;
}

ax_status ax_step_sum_reduce(ax_plan *plan, const ax_step_sum *sum, const ax_op *like, uint32_t allocation, uint32_t shares,
                             ax_op out[AX_STEP_SUM_OPS], uint32_t *count) {
  uint32_t total, there;
  ax_op adds = *like;
  AX_TRY(add_view(plan, allocation, true, &total));
  AX_TRY(add_view(plan, allocation, false, &there));
  AX_TRY(add_up(plan, sum->reduce, shares, total, &adds.kernel));
  const int64_t blocks = blocks_of(adds.kernel.kernel);
  *count = 0;
  if (blocks > 1) AX_TRY(ax_reduce_in_blocks(plan, &adds, 0, blocks, out, count));
  if (*count == 0) out[(*count)++] = adds;
  out[*count] = *like;
  return join_with(plan, sum->join, total, there, &out[(*count)++].kernel);
}

ax_status ax_step_sum_step(ax_plan *plan, const ax_step_sum *sum, uint32_t allocation, uint32_t shares, uint32_t loop,
                           ax_bound *out) {
  uint32_t there, share;
  AX_TRY(add_view(plan, allocation, false, &there));
  ax_buffer view = plan->buffers[there];
  view.allocation = plan->buffers[shares].allocation, view.axes = plan->buffers[shares].axes;
  view.loop = loop, view.step = ax_buffer_bytes(&view);
  AX_TRY(ax_plan_add_buffer(plan, &view, &share));
  return join_with(plan, sum->join, share, there, out);
}
