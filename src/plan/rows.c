/* Kernels and products over the same rows are done together, few rows at a time (ax_rows in plan.h), so that rows stay in the
   cache from one to the next:

     m[i] = max over j of x[i, j]                           rows 0 .. 16 of all four, then rows 16 .. 32, ...
     e[i, j] = exp(x[i, j] - m[i])
     s[i] = sum over j of e[i, j]                           only these four use m, e and s: they are local, a block of 16 rows
     y[i, j] = e[i, j] / s[i]                               for each thread

   A group begins with a kernel and takes in kernels after it that touch the same allocations. The rows are a dimension of the
   first kernel: the outermost one whose rows are small enough. The dimensions around it are gone through one index after the
   other. A kernel with as many steps in all may be put under these dimensions.

   A product takes part if its right factor is small: it is packed once for many rows, and stays in a cache with them.
   Attention's scores, their softmax and the weighted sum are one group, and the scores are never in memory.

   The use of each allocation by a group is noted once: the bytes that it touches of row 0, and the distance to the next row.
   Members may be done together if, for every allocation that one of them writes, all of them have the same distance from row to
   row and touch no more than a row. Then row r of one kernel only has to do with row r of another. A kernel that is taken in
   moves up to the group, over the operations in between, or these move before the group (rows_between.h). A group never waits
   for another device earlier than before.

   A kernel's results depend on its sizes alone, and never on the rows it is called with, so they keep their bits. The pass runs
   when results have their places (plan/coalesce.c, plan/alternate.c), since those decide which rows may be done together.
   rows_blocks.c decides how many rows are done at a time, and whether it pays. */
#include <string.h>

#include "plan/fuse_pairs.h"
#include "plan/kernel_rewrite.h"
#include "plan/op.h"
#include "plan/passes.h"
#include "plan/rows_between.h"
#include "plan/rows_blocks.h"
#include "product/product.h"

enum {
  window = 48, /* operations that a group looks ahead */
  most_row = AX_HOSTILE ? 300 : 48 << 10, /* bytes of a row of the first kernel, if there is a choice */
  least_product_rows = AX_HOSTILE ? 1 : 32 /* for which it is packed */
};

typedef struct grouper {
  ax_plan *plan;
  ax_arena tables;
  uint32_t *reads, *writes; /* by allocation: see ax_plan_count */
  bool *arrives;            /* by allocation: made by an exchange or a message */
  uint32_t allocations;           /* that there were to begin with */
  ax_block *block;
  bool *gone;               /* by position: it is in a group */
  ax_rows_between between;
  ax_rows_group now, trial;
  int64_t most_factors;     /* bytes of the factors on the right of products that are members; 0: no products */
} grouper;

/* --- One kernel under the dimensions of a group --- */

/* Whether it matters which index of the dimensions before `below` this is: the index itself, or whether it is inside of
   something. */
static bool uses_index(const ax_loop_kernel *kernel, uint32_t below) {
  for (uint32_t i = 0; i < kernel->expr_count; i++) {
    const ax_expr *expr = &kernel->exprs[i];
    const int64_t d = expr->op == AX_LEAF_INDEX ? expr->imm : expr->op == AX_LEAF_INSIDE ? expr->at->dim : -1;
    if (d >= 0 && d < (int64_t)below && kernel->dims[d] > 1) return true;
  }
  return false;
}

static int64_t product_count(const ax_gemm *g) { return ax_dims_elems(g->batch_rank, g->batch); }

/* Bytes that a member comes to for the first time, at most, by this access. */
static int64_t newly_touched(ax_rows_use *u, const ax_rows_use *one, uint32_t member) {
  const bool first = u->last != member;
  const int64_t before = first ? 0 : ax_least(u->last_touched, u->last_high - u->last_low);
  u->last = member;
  u->last_low = first ? one->low : ax_least(u->last_low, one->low);
  u->last_high = first || u->last_high < one->high ? one->high : u->last_high;
  u->last_touched = (first ? 0 : u->last_touched) + one->high - one->low;
  const int64_t now = ax_least(u->last_touched, u->last_high - u->last_low);
  if (now > u->most) u->most = now;
  return now - before;
}

static bool add_use(ax_rows_group *to, const ax_rows_use *one, uint32_t member) {
  for (uint32_t i = 0; i < to->use_count; i++) {
    ax_rows_use *u = &to->uses[i];
    if (u->allocation != one->allocation) continue;
    bool same =
        u->loop == one->loop && u->loop_step == one->loop_step && u->row == one->row && (u->outer == one->outer || to->outer == 1);
    u->irregular = u->irregular || one->irregular || !same;
    if (one->low < u->low) u->low = one->low;
    if (one->high > u->high) u->high = one->high;
    u->touched += newly_touched(u, one, member);
    u->members |= (uint32_t)1 << member;
    u->written = u->written || one->written;
    u->touches++;
    return true;
  }
  if (to->use_count == AX_ROWS_USES) return false;
  to->uses[to->use_count] = *one;
  to->uses[to->use_count].last = AX_NONE;
  to->uses[to->use_count].touched = newly_touched(&to->uses[to->use_count], one, member);
  to->uses[to->use_count++].members = (uint32_t)1 << member;
  return true;
}

/* Row r of one kernel has to do with row r of another alone. */
static bool is_sound(const ax_rows_group *of, const ax_rows_use *u) {
  if (!u->written || !ax_rows_by_several(u)) return true;
  return !u->irregular && u->row > 0 && u->high - u->low <= u->row && (of->outer == 1 || u->outer >= u->row * of->extent);
}

/* --- Members --- */

static uint32_t make_view(void *context, uint32_t buffer, uint32_t rank, const int64_t *dims) {
  grouper *g = context;
  ax_buffer view = g->plan->buffers[buffer];
  view.type = ax_array_type(view.type.dtype, AX_LIST(rank, dims));
  if (ax_plan_add_buffer(g->plan, &view, &buffer) != AX_OK) return AX_NONE;
  return buffer;
}

/* The dimension of the rows: of `extent` steps, behind dimensions of `outer` indices in all. AX_NONE: there is none. */
static uint32_t rows_dim(const ax_loop_kernel *kernel, int64_t outer, int64_t extent) {
  int64_t before = 1;
  for (uint32_t d = 0; d < kernel->rank - kernel->reduce_rank; d++) {
    if (before == outer && kernel->dims[d] == extent) return d;
    before *= kernel->dims[d];
  }
  return AX_NONE;
}

static int64_t factor_bytes(const ax_gemm *g) { return g->k * g->n * (int64_t)ax_dtype_bytes(g->dtype); }

static bool product_fits(const grouper *g, const ax_rows_group *of, const ax_gemm *p) {
  return !p->accumulate && p->term_rank == 0 && p->m == of->extent && product_count(p) == of->outer && p->k > 0 &&
         p->k <= AX_PRODUCT_LONG && factor_bytes(p) <= g->most_factors / 2 && of->extent >= least_product_rows;
}

/* `op` as it is to be a member, with all dimensions around the rows still there. False: it cannot be. */
static ax_status as_member(grouper *g, const ax_rows_group *of, ax_op *op, bool *fits) {
  if (op->kind == AX_OP_GEMM) {
    *fits = product_fits(g, of, op->gemm);
    return AX_OK;
  }
  ax_loop_kernel *kernel = op->kernel.kernel;
  uint32_t dim = rows_dim(kernel, of->outer, of->extent);
  int64_t rows = of->outer * of->extent, steps = ax_dims_elems(kernel->rank, kernel->dims);
  if (dim == AX_NONE && kernel->reduce_rank == 0 && steps % rows == 0 && steps > 0) {
    const ax_views views = {make_view, g};
    const ax_bound from = op->kernel;
    int64_t dims[] = {of->outer, of->extent, steps / rows};
    AX_TRY(ax_kernel_redimension(&g->plan->arena, &from, 3, dims, &views, &op->kernel));
    if ((kernel = op->kernel.kernel) != NULL) dim = 1;
    else kernel = from.kernel;
  }
  *fits = dim != AX_NONE && !uses_index(kernel, dim);
  return AX_OK;
}

/* A kernel of the rows of one outer index. */
static ax_status finish_member(grouper *g, const ax_rows_group *of, ax_op *op) {
  if (op->kind == AX_OP_GEMM) return AX_OK;
  uint32_t dim = rows_dim(op->kernel.kernel, of->outer, of->extent);
  bool ready = op->kernel.kernel->ranged == dim;
  for (uint32_t d = 0; d < dim; d++) ready = ready && op->kernel.kernel->dims[d] == 1;
  if (ready) return AX_OK;
  ax_loop_kernel *copy = ax_kernel_copy(&g->plan->arena, op->kernel.kernel);
  if (copy == NULL) return ax_out_of_memory(sizeof *copy);
  for (uint32_t d = 0; d < dim; d++) copy->dims[d] = 1;
  copy->ranged = dim;
  copy->parts = 1;
  op->kernel.kernel = copy;
  return AX_OK;
}

static bool add_product(grouper *g, const ax_gemm *p) {
  ax_rows_group *t = &g->trial;
  t->factors += factor_bytes(p);
  if (t->factors > g->most_factors) return false;
  for (uint32_t i = 0; i < 3; i++) {
    const ax_rows_use one = ax_rows_use_of_product(g->plan, p, i);
    if (!add_use(t, &one, t->count)) return false;
  }
  return true;
}

/* A slot moves from one outer index to the next by one distance, as all that goes through it must. step: the slot's; INT64_MIN:
   none yet. */
static bool steps_alike(const ax_rows_group *t, int64_t *step, const ax_rows_use *one) {
  if (t->outer == 1) return true;
  if (*step == INT64_MIN) *step = one->outer;
  return *step == one->outer;
}

static bool add_kernel(grouper *g, const ax_op *op) {
  ax_rows_group *t = &g->trial;
  const ax_loop_kernel *kernel = op->kernel.kernel;
  uint32_t dim = rows_dim(kernel, t->outer, t->extent), member = t->count;
  int64_t steps[AX_ROWS_SLOTS];
  ax_rows_use one;
  for (uint32_t i = 0; i < AX_ROWS_SLOTS; i++) steps[i] = INT64_MIN;
  for (uint32_t i = 0; i < kernel->expr_count; i++) {
    const ax_expr *load = &kernel->exprs[i];
    if (load->op != AX_LEAF_LOAD) continue;
    if (!ax_rows_use_of_load(g->plan, &op->kernel, load, dim, &one)) return false;
    if (!steps_alike(t, &steps[load->slot], &one) || !add_use(t, &one, member)) return false;
  }
  for (uint32_t i = 0; i < kernel->store_count; i++) {
    const ax_store *store = &kernel->stores[i];
    if (!ax_rows_use_of_store(g->plan, &op->kernel, store, dim, &one)) return false;
    if (!steps_alike(t, &steps[store->slot], &one) || !add_use(t, &one, member)) return false;
  }
  return true;
}

/* Adds an operation to the trial. False: it cannot be done together with the others. */
static bool try_member(grouper *g, const ax_op *op) {
  ax_rows_group *t = &g->trial;
  if (t->count == AX_ROWS_MEMBERS || t->slot_count + ax_op_slots(op) > AX_ROWS_SLOTS) return false;
  if (!(op->kind == AX_OP_GEMM ? add_product(g, op->gemm) : add_kernel(g, op))) return false;
  for (uint32_t i = 0; i < t->use_count; i++)
    if (!is_sound(t, &t->uses[i])) return false;
  t->members[t->count++] = *op;
  t->slot_count += ax_op_slots(op);
  return true;
}

/* --- Operations that stay in between --- */

/* Whether the operation reads a value from another device that the group does not wait for yet. */
static bool waits(const grouper *g, const ax_op *op) {
  for (uint32_t i = 0; i < ax_op_slots(op); i++) {
    uint32_t allocation = g->plan->buffers[ax_op_slot(op, i).buffer].allocation, k = 0;
    if (!g->arrives[allocation]) continue;
    while (k < g->now.use_count && g->now.uses[k].allocation != allocation) k++;
    if (k == g->now.use_count) return true;
  }
  return false;
}

/* --- A group --- */

/* The rows of the first member; of a kernel the outermost dimension of which an index is little enough. Dimensions before *below
   are looked at, which becomes the one that is chosen. False: there is none. */
static bool choose_rows(const ax_op *op, uint32_t *below, int64_t *outer, int64_t *extent) {
  const ax_loop_kernel *kernel = op->kernel.kernel;
  const bool is_product = op->kind == AX_OP_GEMM;
  uint32_t dims = *below, none = dims, chosen = none;
  if (is_product) {
    *outer = product_count(op->gemm);
    *extent = op->gemm->m;
    *below = 0;
    return dims > 0 && *outer * *extent > 0;
  }
  int64_t before = 1, item = 1, left = ax_dims_elems(kernel->rank, kernel->dims);
  for (uint32_t i = 0; i < kernel->slot_count; i++)
    if ((int64_t)ax_dtype_bytes(kernel->slots[i].dtype) > item) item = (int64_t)ax_dtype_bytes(kernel->slots[i].dtype);
  if (left == 0) return false;
  if (dims > kernel->rank - kernel->reduce_rank) dims = kernel->rank - kernel->reduce_rank;
  for (uint32_t d = 0; d < dims && (chosen == none || left * item > most_row); d++) {
    left /= kernel->dims[d];
    if (kernel->dims[d] > 1) {
      *outer = before;
      *extent = kernel->dims[d];
      chosen = d;
    }
    before *= kernel->dims[d];
  }
  *below = chosen;
  return chosen != none;
}

static void copy_group(ax_rows_group *to, const ax_rows_group *from) {
  memcpy(to->members, from->members, from->count * sizeof from->members[0]);
  memcpy(to->uses, from->uses, from->use_count * sizeof from->uses[0]);
  memcpy(to->places, from->places, from->count * sizeof from->places[0]);
  to->count = from->count;
  to->use_count = from->use_count;
  to->slot_count = from->slot_count;
  to->outer = from->outer;
  to->extent = from->extent;
  to->factors = from->factors;
}

static bool can_be_member(const ax_op *op) { return (op->kind == AX_OP_KERNEL || op->kind == AX_OP_GEMM) && !ax_op_is_ordered(op); }

static bool is_written(const grouper *g, uint32_t allocation) {
  for (uint32_t i = 0; i < g->now.use_count; i++)
    if (g->now.uses[i].allocation == allocation) return g->now.uses[i].written;
  return false;
}

/* A kernel that needs nothing of what the group makes, and makes as much as no cache near a core holds. */
static bool makes_much_by_itself(const grouper *g, const ax_bound *bound) {
  for (uint32_t i = 0; i < bound->kernel->slot_count; i++)
    if (is_written(g, g->plan->buffers[bound->buffers[i]].allocation)) return false;
  return ax_kernel_makes_much(g->plan, bound);
}

/* What would move over others and is large is not held for longer: a product that makes more than it takes of the group, and a kernel that
   only reads what the group reads too. */
static bool is_held_longer(const grouper *g, const ax_op *op) {
  if (g->between.staying == 0) return false;
  return op->kind == AX_OP_GEMM ? op->gemm->n > op->gemm->k : op->kind == AX_OP_KERNEL && makes_much_by_itself(g, &op->kernel);
}

static ax_status take_in(grouper *g, uint32_t at, bool *taken) {
  const ax_op *op = &g->block->ops[at];
  bool fits;
  *taken = false;
  if (is_held_longer(g, op)) return AX_OK;
  if (!can_be_member(op) || op->axes != g->now.members[0].axes || op->diverging != g->now.members[0].diverging ||
      waits(g, op) || !ax_rows_moves_up(&g->between, op))
    return AX_OK;
  ax_op member = *op;
  AX_TRY(as_member(g, &g->now, &member, &fits));
  if (!fits) return AX_OK;
  copy_group(&g->trial, &g->now);
  if (!try_member(g, &member)) return AX_OK;
  g->trial.places[g->now.count] = at;
  copy_group(&g->now, &g->trial);
  ax_rows_note_member(&g->between, op);
  *taken = true;
  return AX_OK;
}

/* The kernels that have to do with the first one, by rows that both touch, or that have to do with such. */
static uint32_t connected(const ax_rows_group *of) {
  uint32_t all = 1, before = 0;
  while (all != before) {
    before = all;
    for (uint32_t i = 0; i < of->use_count; i++) {
      const ax_rows_use *u = &of->uses[i];
      if (u->row > 0 && !u->irregular && (u->members & all) != 0) all |= u->members;
    }
  }
  return all;
}

/* Leaves out members that share nothing with the others. They stay where they are, because no operation that touches their
   buffers was moved over them. */
static bool leave_out(grouper *g) {
  ax_rows_group *t = &g->trial;
  uint32_t kept = connected(&g->now);
  t->count = t->use_count = t->slot_count = 0;
  t->factors = 0;
  t->outer = g->now.outer;
  t->extent = g->now.extent;
  for (uint32_t k = 0; k < g->now.count; k++) {
    if ((kept >> k & 1) == 0) continue;
    t->places[t->count] = g->now.places[k];
    if (!try_member(g, &g->now.members[k])) return false;
  }
  copy_group(&g->now, t);
  return true;
}

static void describe_slot(const ax_rows_group *of, const ax_rows_use *one, const int64_t *place, bool product, ax_rows_slot *slot) {
  uint32_t u = 0;
  while (of->uses[u].allocation != one->allocation) u++;
  bool local = place[u] >= 0;
  *slot = (ax_rows_slot){
      .outer_step = local || product ? 0 : one->outer, .row_bytes = local ? one->row : 0, .place = local ? place[u] : 0};
}

static ax_status describe_kernel(const grouper *g, const ax_rows_group *of, const ax_bound *bound, const int64_t *place,
                                 ax_rows_slot *slots) {
  const ax_loop_kernel *kernel = bound->kernel;
  uint32_t dim = rows_dim(kernel, of->outer, of->extent);
  for (uint32_t i = 0; i < kernel->expr_count + kernel->store_count; i++) {
    const ax_expr *load = i < kernel->expr_count ? &kernel->exprs[i] : NULL;
    if (load != NULL && load->op != AX_LEAF_LOAD) continue;
    const ax_store *store = load == NULL ? &kernel->stores[i - kernel->expr_count] : NULL;
    uint32_t slot = load != NULL ? load->slot : store->slot;
    ax_rows_use one;
    if (!(load != NULL ? ax_rows_use_of_load(g->plan, bound, load, dim, &one) : ax_rows_use_of_store(g->plan, bound, store, dim, &one)))
      return ax_error(AX_INTERNAL, "rows: lost");
    describe_slot(of, &one, place, false, &slots[slot]);
  }
  return AX_OK;
}

static ax_status describe_slots(const grouper *g, const ax_rows_group *of, const int64_t *place, ax_rows *rows) {
  ax_rows_slot *slots = rows->slots;
  for (uint32_t k = 0; k < of->count; slots += ax_op_slots(&of->members[k++])) {
    const ax_op *op = &of->members[k];
    if (op->kind == AX_OP_KERNEL) AX_TRY(describe_kernel(g, of, &op->kernel, place, slots));
    for (uint32_t i = 0; op->kind == AX_OP_GEMM && i < 3; i++) {
      const ax_rows_use one = ax_rows_use_of_product(g->plan, op->gemm, i);
      describe_slot(of, &one, place, true, &slots[i]);
    }
  }
  return AX_OK;
}

/* *made: the operation that does the group; of kind NONE when it is not worth it. */
static ax_status make_group(grouper *g, ax_op *made) {
  ax_rows_group *of = &g->now;
  ax_arena *arena = &g->plan->arena;
  ax_rows_blocks blocks;
  made->kind = AX_OP_NONE;
  if (!ax_rows_blocks_of(g->plan, g->reads, g->writes, of, &blocks)) return AX_OK;
  ax_rows *rows = ax_arena_alloc(arena, sizeof *rows);
  if (rows == NULL) return ax_out_of_memory(sizeof *rows);
  *rows = (ax_rows){.count = of->count,
                    .outer = of->outer,
                    .extent = of->extent,
                    .step = blocks.step,
                    .parts = blocks.parts,
                    .slot_count = of->slot_count};
  rows->block_bytes = blocks.bytes;
  rows->slots = ax_arena_alloc(arena, of->slot_count * sizeof rows->slots[0]);
  if (rows->slots == NULL) return ax_out_of_memory(of->slot_count * sizeof rows->slots[0]);
  AX_TRY(describe_slots(g, of, blocks.place, rows));
  for (uint32_t k = 0; k < of->count; k++) AX_TRY(finish_member(g, of, &of->members[k]));
  rows->members = ax_arena_copy(arena, of->members, of->count * sizeof of->members[0]);
  if (rows->members == NULL) return ax_out_of_memory(of->count * sizeof of->members[0]);
  *made = of->members[of->count - 1];
  made->kind = AX_OP_ROWS;
  made->rows = rows;
  return AX_OK;
}

/* A quick test before a group is begun: an allocation that several members share is mostly touched by the first one. */
static bool touches_much(const grouper *g, const ax_op *op) {
  for (uint32_t i = 0; i < ax_op_slots(op); i++)
    if (ax_buffer_bytes(&g->plan->buffers[g->plan->buffers[ax_op_slot(op, i).buffer].allocation]) >= AX_ROWS_LEAST_SHARED)
      return true;
  return false;
}

/* Begins a group with the operation at `at`. If its rows cannot be those of the dimension that is best, as what it reads lies in
   columns of these, the rows are those of a dimension around it: each is longer, but still in a cache when the next kernel
   comes. */
static ax_status begin_group(grouper *g, uint32_t at, bool *begun) {
  uint32_t below = UINT32_MAX;
  *begun = false;
  while (!*begun && choose_rows(&g->block->ops[at], &below, &g->now.outer, &g->now.extent)) {
    ax_op member = g->block->ops[at];
    bool fits;
    g->now.count = g->now.use_count = g->now.slot_count = 0;
    g->now.factors = 0;
    AX_TRY(as_member(g, &g->now, &member, &fits));
    copy_group(&g->trial, &g->now);
    *begun = fits && try_member(g, &member);
  }
  copy_group(&g->now, &g->trial);
  g->now.places[0] = at;
  return AX_OK;
}

/* The group that begins with the operation at `at`, in g->now. Fewer than two members: there is none. */
static ax_status gather(grouper *g, uint32_t at) {
  ax_rows_between *between = &g->between;
  bool begun, taken;
  AX_TRY(begin_group(g, at, &begun));
  if (!begun) g->now.count = 0;
  if (!begun) return AX_OK;
  ax_rows_between_clear(between);
  ax_rows_note_member(between, &g->block->ops[at]);
  for (uint32_t i = at + 1; i < g->block->count && i <= at + window && ax_rows_others(between) < AX_ROWS_BETWEEN; i++) {
    const ax_op *op = &g->block->ops[i];
    if (g->gone[i]) continue;
    if (!ax_op_only_computes(op)) break;
    AX_TRY(take_in(g, i, &taken));
    if (!taken) ax_rows_note_other(between, op, i, can_be_member(op) && !waits(g, op));
  }
  if (between->failed) return ax_out_of_memory(0);
  if (!leave_out(g)) g->now.count = 0;
  return AX_OK;
}

/* The group that begins with the operation at `at`, made if it is worth it; otherwise *made is of kind NONE. */
static ax_status try_group(grouper *g, uint32_t at, int64_t most_factors, ax_op *made) {
  made->kind = AX_OP_NONE;
  g->most_factors = most_factors;
  AX_TRY(gather(g, at));
  return g->now.count >= 2 ? make_group(g, made) : AX_OK;
}

/* First with factors as large as a core's part of the last cache, then with such as lie in the second one with the rows. */
static ax_status find_group(grouper *g, uint32_t at, ax_op *made) {
  const ax_op *first = &g->block->ops[at];
  AX_TRY(try_group(g, at, ax_rows_far_factors(), made));
  if (made->kind == AX_OP_NONE && g->now.factors > AX_ROWS_NEAR_FACTORS) AX_TRY(try_group(g, at, AX_ROWS_NEAR_FACTORS, made));
  if (made->kind == AX_OP_NONE && first->kind == AX_OP_KERNEL && ax_rows_has_products(&g->now)) AX_TRY(try_group(g, at, 0, made));
  return AX_OK;
}

/* Makes the group that begins with the operation at *at. Its members are gone, and the group is at the place of the first one,
   behind what had to move before it: *at is the first place that is to be looked at next. */
static ax_status group_from(grouper *g, uint32_t *at) {
  const ax_op *first = &g->block->ops[*at];
  ax_op made = {.kind = AX_OP_NONE};
  if (can_be_member(first) && touches_much(g, first)) AX_TRY(find_group(g, *at, &made));
  if (made.kind == AX_OP_NONE) {
    (*at)++;
    return AX_OK;
  }
  const uint32_t moved = ax_rows_move_before(&g->between, g->block, g->gone, g->now.places, g->now.count);
  if (g->between.failed) return ax_out_of_memory(0);
  for (uint32_t k = 1; k < g->now.count; k++) {
    g->gone[g->now.places[k]] = true;
    g->block->ops[g->now.places[k]].kind = AX_OP_NONE;
  }
  g->block->ops[g->now.places[0]] = made;
  if (moved == 0) (*at)++;
  return AX_OK;
}

static ax_status group_block(void *context, ax_block *block, bool is_body) {
  grouper *g = context;
  (void)is_body;
  g->block = block;
  g->gone = ax_calloc(block->count + (size_t)1, sizeof g->gone[0]);
  if (g->gone == NULL) return ax_out_of_memory(block->count);
  ax_status status = AX_OK;
  for (uint32_t i = 0; i < block->count && status == AX_OK;)
    if (g->gone[i]) i++;
    else status = group_from(g, &i);
  ax_free(g->gone);
  ax_block_sweep(block);
  return status;
}

static void note_arrival(void *context, ax_op *op) {
  grouper *g = context;
  const ax_op_rules *rules = ax_op_rules_of(op);
  if (rules->arrival != NULL) g->arrives[g->plan->buffers[rules->arrival(op)].allocation] = true;
}

static ax_status make_tables(grouper *g) {
  g->allocations = g->plan->buffer_count;
  g->reads = ax_arena_alloc(&g->tables, g->allocations * sizeof g->reads[0]);
  g->writes = ax_arena_alloc(&g->tables, g->allocations * sizeof g->writes[0]);
  g->arrives = ax_arena_alloc(&g->tables, g->allocations * sizeof g->arrives[0]);
  AX_TRY(ax_rows_between_init(&g->between, g->plan, &g->tables, g->allocations));
  if (g->reads == NULL || g->writes == NULL || g->arrives == NULL)
    return ax_out_of_memory(g->allocations * sizeof g->reads[0]);
  ax_plan_count(g->plan, g->reads, g->writes);
  ax_block_walk(&g->plan->block, note_arrival, g);
  return AX_OK;
}

ax_status ax_plan_rows(ax_plan *plan) {
  grouper *g = ax_calloc(1, sizeof *g);
  if (g == NULL) return ax_out_of_memory(sizeof *g);
  g->plan = plan;
  ax_status status = make_tables(g);
  if (status == AX_OK) status = ax_blocks_visit(&plan->block, group_block, g);
  ax_rows_between_deinit(&g->between);
  ax_arena_deinit(&g->tables);
  ax_free(g);
  return status;
}
