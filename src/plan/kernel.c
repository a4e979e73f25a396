/* Kernels are built node by node, equal nodes once; and hashed, compared and printed by structure alone. Arrays in the arena grow
   by copies. */
#include "plan/kernel.h"

#include <string.h>

#include "ir/text.h"
#include "plan/index_map.h"
#include "plan/kernel_known.h"
#include "plan/kernel_range.h"

ax_loop_kernel *ax_kernel_create(ax_arena *arena, uint32_t rank, uint32_t reduce_rank, const int64_t *dims) {
  ax_loop_kernel *kernel = ax_arena_alloc(arena, sizeof *kernel);
  if (kernel == NULL) return NULL;
  kernel->arena = arena;
  kernel->rank = rank;
  kernel->reduce_rank = reduce_rank;
  kernel->parts = 1;
  if (rank > 0) memcpy(kernel->dims, dims, rank * sizeof dims[0]);
  return kernel;
}

int64_t ax_kernel_extent(const ax_loop_kernel *kernel) {
  return kernel->rank > kernel->reduce_rank ? kernel->dims[kernel->ranged] : 1;
}

/* Room for one more item in an arena array, doubling. False when there is no memory. */
static bool reserve(ax_loop_kernel *kernel, void *items, size_t item_bytes, uint32_t count, uint32_t *capacity) {
  if (kernel->failed) return false;
  if (count < *capacity) return true;
  uint32_t larger = *capacity < 8 ? 8 : *capacity * 2;
  void *old, *fresh = ax_arena_alloc(kernel->arena, larger * item_bytes);
  if (fresh == NULL) {
    kernel->failed = true;
    return false;
  }
  memcpy(&old, items, sizeof old);
  if (count > 0) memcpy(fresh, old, count * item_bytes);
  memcpy(items, &fresh, sizeof fresh);
  *capacity = larger;
  return true;
}

uint32_t ax_kernel_slot(ax_loop_kernel *kernel, ax_dtype dtype, uint32_t rank, const int64_t *dims) {
  if (kernel->slot_count == AX_MAX_SLOTS) kernel->failed = true;
  if (!reserve(kernel, &kernel->slots, sizeof kernel->slots[0], kernel->slot_count, &kernel->slot_capacity)) return 0;
  ax_slot *slot = &kernel->slots[kernel->slot_count];
  *slot = (ax_slot){.dtype = dtype, .rank = rank};
  if (rank > 0) memcpy(slot->dims, dims, rank * sizeof dims[0]);
  return kernel->slot_count++;
}

static bool at_equal(const ax_position *a, const ax_position *b) {
  return a->dim == b->dim && (a->dim < 0 || a->coef == b->coef) && a->offset == b->offset && a->dynamic == b->dynamic &&
         (a->dynamic == AX_NONE || a->limit == b->limit);
}

static bool ats_equal(const ax_position *a, const ax_position *b, uint32_t rank) {
  for (uint32_t d = 0; d < rank; d++)
    if (!at_equal(&a[d], &b[d])) return false;
  return true;
}

static bool expr_equal(const ax_loop_kernel *kernel, const ax_expr *a, const ax_expr *b) {
  if (a->op != b->op || a->dtype != b->dtype || a->imm != b->imm || memcmp(a->arg, b->arg, sizeof a->arg) != 0) return false;
  return a->slot == b->slot && ats_equal(a->at, b->at, ax_expr_positions(kernel, a));
}

/* --- Nodes --- */

enum { few_exprs = 16 }; /* are looked through one by one; more are found by their hash */

static uint64_t pair(uint32_t high, uint32_t low) { return (uint64_t)high << 32 | low; }

static void take_hash(void *context, uint64_t word) {
  uint64_t *hash = context;
  *hash = ax_hash_word(*hash, word);
}

/* Inlined, so that hashing, which all rewrites do to all nodes, calls nothing for a word. */
static inline __attribute__((always_inline)) void at_words(const ax_position *at, uint32_t rank, ax_take_word *take, void *context) {
  for (uint32_t d = 0; d < rank; d++) {
    take(context, pair((uint32_t)at[d].dim, at[d].dynamic));
    take(context, (uint64_t)at[d].offset);
    if (at[d].dim >= 0) take(context, (uint64_t)at[d].coef);
    if (at[d].dynamic != AX_NONE) take(context, (uint64_t)at[d].limit);
  }
}

static inline __attribute__((always_inline)) void expr_words(const ax_loop_kernel *kernel, const ax_expr *expr, ax_take_word *take,
                                                             void *context) {
  take(context, pair((uint32_t)expr->op << 8 | (uint32_t)expr->dtype, expr->slot));
  take(context, (uint64_t)expr->imm);
  at_words(expr->at, ax_expr_positions(kernel, expr), take, context);
  take(context, pair(expr->arg[0], expr->arg[1]));
  take(context, expr->arg[2]);
}

static uint32_t hash_expr(const ax_loop_kernel *kernel, const ax_expr *expr) {
  uint64_t hash = AX_HASH_SEED;
  expr_words(kernel, expr, take_hash, &hash);
  return (uint32_t)hash;
}

/* The table's entry for an equal node, or a free one. expr NULL: a free one. */
static uint64_t *place_of(const ax_loop_kernel *kernel, const ax_expr *expr, uint32_t hash) {
  for (uint32_t at = hash;; at++) {
    uint64_t *place = &kernel->table[at & (kernel->table_size - 1)];
    if (*place == 0) return place;
    if (expr != NULL && (uint32_t)(*place >> 32) == hash && expr_equal(kernel, &kernel->exprs[(uint32_t)*place - 1], expr)) return place;
  }
}

/* A table that is at most half full. False when there is no memory. */
static bool reserve_table(ax_loop_kernel *kernel) {
  if (2 * kernel->expr_count < kernel->table_size) return true;
  const uint64_t *old = kernel->table;
  const uint32_t old_size = kernel->table_size;
  uint32_t size = old_size == 0 ? 8 * few_exprs : 2 * old_size;
  while (size <= 2 * kernel->expr_count) size *= 2;
  kernel->table = ax_arena_alloc(kernel->arena, size * sizeof kernel->table[0]);
  kernel->table_size = kernel->table != NULL ? size : 0;
  kernel->failed = kernel->table == NULL;
  for (uint32_t i = 0; i < old_size && !kernel->failed; i++)
    if (old[i] != 0) *place_of(kernel, NULL, (uint32_t)(old[i] >> 32)) = old[i];
  for (uint32_t i = 0; i < kernel->expr_count && old_size == 0 && !kernel->failed; i++) {
    const uint32_t hash = hash_expr(kernel, &kernel->exprs[i]);
    *place_of(kernel, NULL, hash) = pair(hash, i + 1);
  }
  return !kernel->failed;
}

/* Copies a node that is not there yet. */
static ax_ex add_fresh(ax_loop_kernel *kernel, const ax_expr *expr) {
  ax_expr fresh = *expr;
  fresh.range = ax_kernel_range_of(kernel, expr);
  if (expr->at != NULL) {
    fresh.at = ax_arena_copy(kernel->arena, expr->at, ax_expr_positions(kernel, expr) * sizeof expr->at[0]);
    kernel->failed = fresh.at == NULL;
  }
  if (!reserve(kernel, &kernel->exprs, sizeof kernel->exprs[0], kernel->expr_count, &kernel->expr_capacity)) return 0;
  kernel->exprs[kernel->expr_count] = fresh;
  return kernel->expr_count++;
}

static ax_ex add(ax_loop_kernel *kernel, const ax_expr *expr) {
  if (kernel->failed || (kernel->expr_count >= few_exprs && !kernel->extends && !reserve_table(kernel))) return 0;
  if (kernel->table_size > 0) {
    const uint32_t hash = hash_expr(kernel, expr);
    uint64_t *place = place_of(kernel, expr, hash);
    if (*place != 0) return (uint32_t)*place - 1;
    const ax_ex made = add_fresh(kernel, expr);
    if (!kernel->failed) *place = pair(hash, made + 1);
    return made;
  }
  for (uint32_t i = 0; i < kernel->expr_count; i++)
    if (expr_equal(kernel, &kernel->exprs[i], expr)) return i;
  return add_fresh(kernel, expr);
}

static ax_ex leaf(ax_loop_kernel *kernel, ax_scalar op, ax_dtype dtype, int64_t imm) {
  return add(kernel, &(ax_expr){.op = op, .dtype = dtype, .arg = {AX_NONE, AX_NONE, AX_NONE}, .imm = imm});
}

ax_ex ax_kernel_const(ax_loop_kernel *kernel, ax_dtype dtype, int64_t bits) {
  return leaf(kernel, AX_LEAF_CONST, dtype, bits);
}
ax_ex ax_kernel_index(ax_loop_kernel *kernel, uint32_t dim) { return leaf(kernel, AX_LEAF_INDEX, AX_S64, dim); }
ax_ex ax_kernel_axis(ax_loop_kernel *kernel, uint32_t axis) { return leaf(kernel, AX_LEAF_AXIS, AX_S64, axis); }

ax_ex ax_kernel_load(ax_loop_kernel *kernel, uint32_t slot, const ax_position *at) {
  return ax_kernel_load_where(kernel, slot, at, AX_NONE);
}

static bool is_constant(const ax_loop_kernel *kernel, ax_ex node, int64_t bits) {
  return node != AX_NONE && kernel->exprs[node].op == AX_LEAF_CONST && kernel->exprs[node].imm == bits;
}

ax_ex ax_kernel_load_where(ax_loop_kernel *kernel, uint32_t slot, const ax_position *at, ax_ex guard) {
  if (kernel->failed) return 0;
  if (is_constant(kernel, guard, 0)) return ax_kernel_const(kernel, kernel->slots[slot].dtype, 0);
  if (is_constant(kernel, guard, 1)) guard = AX_NONE;
  ax_position settled[AX_MAX_RANK];
  for (uint32_t d = 0; d < kernel->slots[slot].rank; d++) settled[d] = ax_position_settled(kernel, &at[d]);
  return add(kernel, &(ax_expr){.op = AX_LEAF_LOAD, .dtype = kernel->slots[slot].dtype, .arg = {guard, AX_NONE, AX_NONE},
                                .slot = slot, .at = settled});
}

ax_ex ax_kernel_inside(ax_loop_kernel *kernel, int dim, int64_t coef, int64_t offset, int64_t limit) {
  int64_t reach = dim < 0 || kernel->dims[dim] == 0 ? 0 : coef * (kernel->dims[dim] - 1);
  int64_t low = offset + (reach < 0 ? reach : 0), high = offset + (reach > 0 ? reach : 0);
  if (low >= 0 && high < limit) return ax_kernel_const(kernel, AX_BOOL, 1);
  if (low >= limit || high < 0) return ax_kernel_const(kernel, AX_BOOL, 0);
  const ax_position at = {.dim = dim, .coef = coef, .offset = offset, .dynamic = AX_NONE};
  return add(kernel,
             &(ax_expr){.op = AX_LEAF_INSIDE, .dtype = AX_BOOL, .arg = {AX_NONE, AX_NONE, AX_NONE}, .imm = limit, .at = &at});
}

ax_ex ax_kernel_both(ax_loop_kernel *kernel, ax_ex a, ax_ex b) {
  if (kernel->failed) return 0;
  if (is_constant(kernel, a, 1)) a = AX_NONE;
  if (is_constant(kernel, b, 1)) b = AX_NONE;
  if (a == AX_NONE || is_constant(kernel, b, 0)) return b;
  if (b == AX_NONE || is_constant(kernel, a, 0)) return a;
  return a == b ? a : ax_kernel_op(kernel, AX_SCALAR_AND, AX_BOOL, a, b, AX_NONE);
}

ax_ex ax_kernel_op(ax_loop_kernel *kernel, ax_scalar op, ax_dtype dtype, ax_ex a, ax_ex b, ax_ex c) {
  const ax_ex known = ax_kernel_known(kernel, op, dtype, (ax_ex[]){a, b, c});
  if (known != AX_NONE) return known;
  const ax_ex inverse = ax_kernel_inverse(kernel, op, dtype, b);
  if (inverse != AX_NONE) op = AX_SCALAR_MUL, b = inverse;
  return add(kernel, &(ax_expr){.op = op, .dtype = dtype, .arg = {a, b, c}});
}

ax_ex ax_kernel_op_imm(ax_loop_kernel *kernel, ax_scalar op, ax_dtype dtype, ax_ex a, int64_t imm) {
  const ax_ex known =
      op == AX_SCALAR_SQRT || imm == 0 ? ax_kernel_known(kernel, op, dtype, (ax_ex[]){a, AX_NONE, AX_NONE}) : AX_NONE;
  if (known != AX_NONE) return known;
  return add(kernel, &(ax_expr){.op = op, .dtype = dtype, .arg = {a, AX_NONE, AX_NONE}, .imm = imm});
}

ax_ex ax_kernel_op_like(ax_loop_kernel *kernel, const ax_expr *like, const ax_ex *args) {
  if (kernel->failed) return 0;
  if (ax_scalar_arity(like->op) == 1) return ax_kernel_op_imm(kernel, like->op, like->dtype, args[0], like->imm);
  if (like->op == AX_SCALAR_AND && like->dtype == AX_BOOL) {
    const ax_ex both = ax_kernel_both(kernel, args[0], args[1]);
    return both != AX_NONE ? both : ax_kernel_const(kernel, AX_BOOL, 1);
  }
  return ax_kernel_op(kernel, like->op, like->dtype, args[0], args[1], args[2]);
}

void ax_kernel_store(ax_loop_kernel *kernel, uint32_t slot, const ax_position *at, ax_ex expr, ax_scalar reduce) {
  if (!reserve(kernel, &kernel->stores, sizeof kernel->stores[0], kernel->store_count, &kernel->store_capacity)) return;
  const ax_position *copy = ax_arena_copy(kernel->arena, at, kernel->slots[slot].rank * sizeof at[0]);
  kernel->failed = copy == NULL;
  if (copy != NULL) kernel->stores[kernel->store_count++] = (ax_store){slot, expr, reduce, copy};
}

void ax_at_identity(ax_position *at, uint32_t rank) {
  for (uint32_t d = 0; d < rank; d++) at[d] = (ax_position){.dim = (int)d, .coef = 1, .dynamic = AX_NONE};
}

bool ax_at_is_identity(const ax_position *at, uint32_t rank) {
  for (uint32_t d = 0; d < rank; d++)
    if (at[d].dim != (int)d || at[d].coef != 1 || at[d].offset != 0 || at[d].dynamic != AX_NONE) return false;
  return true;
}

bool ax_kernel_covers(const ax_loop_kernel *kernel, uint32_t slot, const ax_position *at) {
  const ax_slot *array = &kernel->slots[slot];
  return array->rank == kernel->rank && ax_at_is_identity(at, array->rank) &&
         memcmp(array->dims, kernel->dims, array->rank * sizeof array->dims[0]) == 0;
}

bool ax_kernel_makes(const ax_loop_kernel *kernel, const ax_store *store) {
  const ax_slot *array = &kernel->slots[store->slot];
  if (kernel->reduce_rank > 0 || array->rank > kernel->rank || !ax_at_is_identity(store->at, array->rank)) return false;
  for (uint32_t d = 0; d < kernel->rank; d++)
    if (kernel->dims[d] != (d < array->rank ? array->dims[d] : 1)) return false;
  return true;
}

/* --- Copies --- */

static bool copy_at(ax_arena *arena, const ax_position **at, uint32_t rank) {
  *at = ax_arena_copy(arena, *at, rank * sizeof **at);
  return *at != NULL;
}

/* Without its stores; `more` nodes have room. */
static ax_loop_kernel *copy_nodes(ax_arena *arena, const ax_loop_kernel *from, uint32_t more) {
  const size_t bytes = from->expr_count * sizeof from->exprs[0];
  ax_loop_kernel *kernel = ax_arena_copy(arena, from, sizeof *from);
  if (kernel == NULL) return NULL;
  kernel->arena = arena;
  kernel->table = NULL;
  kernel->table_size = 0;
  kernel->stores = NULL;
  kernel->store_count = kernel->store_capacity = 0;
  kernel->exprs = ax_arena_alloc(arena, bytes + more * sizeof from->exprs[0]);
  kernel->slots = ax_arena_copy(arena, from->slots, from->slot_count * sizeof from->slots[0]);
  if (kernel->exprs == NULL || kernel->slots == NULL) return NULL;
  if (bytes > 0) memcpy(kernel->exprs, from->exprs, bytes);
  kernel->expr_capacity = kernel->expr_count + more;
  kernel->slot_capacity = kernel->slot_count;
  for (uint32_t i = 0; i < kernel->expr_count; i++) {
    ax_expr *expr = &kernel->exprs[i];
    if (expr->at != NULL && !copy_at(arena, &expr->at, ax_expr_positions(kernel, expr))) return NULL;
  }
  return kernel;
}

ax_loop_kernel *ax_kernel_copy(ax_arena *arena, const ax_loop_kernel *from) {
  ax_loop_kernel *kernel = copy_nodes(arena, from, 0);
  if (kernel == NULL) return NULL;
  kernel->stores = ax_arena_copy(arena, from->stores, from->store_count * sizeof from->stores[0]);
  if (kernel->stores == NULL) return NULL;
  kernel->store_count = kernel->store_capacity = from->store_count;
  for (uint32_t i = 0; i < kernel->store_count; i++)
    if (!copy_at(arena, &kernel->stores[i].at, kernel->slots[kernel->stores[i].slot].rank)) return NULL;
  return kernel;
}

ax_loop_kernel *ax_kernel_extend(ax_arena *arena, const ax_loop_kernel *from, uint32_t more) {
  ax_loop_kernel *kernel = copy_nodes(arena, from, more);
  if (kernel != NULL) kernel->extends = true;
  return kernel;
}

size_t ax_kernel_copy_bytes(const ax_loop_kernel *kernel) {
  size_t bytes = ax_arena_bytes(sizeof *kernel) + ax_arena_bytes(kernel->expr_count * sizeof kernel->exprs[0]) +
                 ax_arena_bytes(kernel->slot_count * sizeof kernel->slots[0]) +
                 ax_arena_bytes(kernel->store_count * sizeof kernel->stores[0]);
  for (uint32_t i = 0; i < kernel->expr_count; i++)
    if (kernel->exprs[i].at != NULL) bytes += ax_arena_bytes(ax_expr_positions(kernel, &kernel->exprs[i]) * sizeof(ax_position));
  for (uint32_t i = 0; i < kernel->store_count; i++)
    bytes += ax_arena_bytes(kernel->slots[kernel->stores[i].slot].rank * sizeof(ax_position));
  return bytes;
}

/* --- Structure --- */

static inline __attribute__((always_inline)) void kernel_words(const ax_loop_kernel *kernel, ax_take_word *take, void *context) {
  take(context, pair(kernel->rank, kernel->reduce_rank));
  take(context, pair(kernel->ranged, (uint32_t)kernel->streams | (uint32_t)kernel->running << 1));
  for (uint32_t d = 0; d < kernel->rank; d++) take(context, (uint64_t)kernel->dims[d]);
  take(context, kernel->slot_count);
  for (uint32_t i = 0; i < kernel->slot_count; i++) {
    const ax_slot *slot = &kernel->slots[i];
    take(context, pair((uint32_t)slot->dtype, slot->rank));
    for (uint32_t d = 0; d < slot->rank; d++) take(context, (uint64_t)slot->dims[d]);
  }
  take(context, pair(kernel->expr_count, kernel->store_count));
  for (uint32_t i = 0; i < kernel->expr_count; i++) expr_words(kernel, &kernel->exprs[i], take, context);
  for (uint32_t i = 0; i < kernel->store_count; i++) {
    const ax_store *store = &kernel->stores[i];
    take(context, pair(store->slot, store->expr));
    take(context, (uint64_t)store->reduce);
    at_words(store->at, kernel->slots[store->slot].rank, take, context);
  }
}

void ax_kernel_words(const ax_loop_kernel *kernel, ax_take_word *take, void *context) { kernel_words(kernel, take, context); }

uint64_t ax_kernel_hash(const ax_loop_kernel *kernel) {
  uint64_t hash = AX_HASH_SEED;
  kernel_words(kernel, take_hash, &hash);
  return hash;
}

static bool slots_equal(const ax_loop_kernel *a, const ax_loop_kernel *b) {
  if (a->slot_count != b->slot_count) return false;
  for (uint32_t i = 0; i < a->slot_count; i++) {
    const ax_slot *x = &a->slots[i], *y = &b->slots[i];
    if (x->dtype != y->dtype || x->rank != y->rank || memcmp(x->dims, y->dims, x->rank * sizeof x->dims[0]) != 0)
      return false;
  }
  return true;
}

static bool stores_equal(const ax_loop_kernel *a, const ax_loop_kernel *b) {
  if (a->store_count != b->store_count) return false;
  for (uint32_t i = 0; i < a->store_count; i++) {
    const ax_store *x = &a->stores[i], *y = &b->stores[i];
    if (x->slot != y->slot || x->expr != y->expr || x->reduce != y->reduce ||
        !ats_equal(x->at, y->at, a->slots[x->slot].rank))
      return false;
  }
  return true;
}

bool ax_kernel_equal(const ax_loop_kernel *a, const ax_loop_kernel *b) {
  if (a->rank != b->rank || a->reduce_rank != b->reduce_rank || a->ranged != b->ranged || a->streams != b->streams ||
      a->running != b->running || a->expr_count != b->expr_count)
    return false;
  if (memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) != 0 || !slots_equal(a, b)) return false;
  for (uint32_t i = 0; i < a->expr_count; i++)
    if (!expr_equal(a, &a->exprs[i], &b->exprs[i])) return false;
  return stores_equal(a, b);
}

/* --- Text --- */

static void add_at(ax_text *text, const ax_position *at, uint32_t rank) {
  ax_text_add(text, "[");
  for (uint32_t d = 0; d < rank; d++) {
    const char *plus = "";
    ax_text_add(text, "%s", d ? ", " : "");
    if (at[d].dim >= 0) {
      if (at[d].coef != 1) ax_text_add(text, "%lld*", (long long)at[d].coef);
      ax_text_add(text, "i%d", at[d].dim);
      plus = "+";
    }
    if (at[d].offset != 0 || (at[d].dim < 0 && at[d].dynamic == AX_NONE)) {
      ax_text_add(text, "%s%lld", at[d].offset < 0 ? "" : plus, (long long)at[d].offset);
      plus = "+";
    }
    if (at[d].dynamic != AX_NONE) ax_text_add(text, "%sclamp(e%u, %lld)", plus, at[d].dynamic, (long long)at[d].limit);
  }
  ax_text_add(text, "]");
}

static void add_expr(ax_text *text, const ax_loop_kernel *kernel, ax_ex id) {
  const ax_expr *expr = &kernel->exprs[id];
  ax_text_add(text, "  e%u:%s = %s", id, ax_dtype_name(expr->dtype), ax_scalar_name(expr->op));
  for (int i = 0; i < ax_scalar_arity(expr->op); i++) ax_text_add(text, " e%u", expr->arg[i]);
  if (expr->op == AX_LEAF_LOAD) {
    ax_text_add(text, " s%u", expr->slot);
    add_at(text, expr->at, kernel->slots[expr->slot].rank);
    if (expr->arg[0] != AX_NONE) ax_text_add(text, " where e%u", expr->arg[0]);
  } else if (expr->op == AX_LEAF_INSIDE) {
    ax_text_add(text, " ");
    add_at(text, expr->at, 1);
    ax_text_add(text, " of %lld", (long long)expr->imm);
  } else if (expr->op == AX_LEAF_CONST) {
    ax_text_add(text, " ");
    ax_element_text(text, expr->dtype, &expr->imm, 0);
  } else if (expr->op > AX_SCALAR_COUNT - 1 || expr->op == AX_SCALAR_INTEGER_POW ||
             (expr->op != AX_SCALAR_CONVERT && expr->imm != 0)) {
    ax_text_add(text, " %lld", (long long)expr->imm);
  }
  ax_text_add(text, "\n");
}

void ax_kernel_text(ax_text *text, const ax_loop_kernel *kernel) {
  ax_text_add(text, "for");
  for (uint32_t d = 0; d < kernel->rank; d++)
    ax_text_add(text, "%s i%u<%lld", d == kernel->rank - kernel->reduce_rank ? " reduce" : "", d, (long long)kernel->dims[d]);
  ax_text_add(text, "\n");
  for (uint32_t i = 0; i < kernel->expr_count; i++) add_expr(text, kernel, i);
  for (uint32_t i = 0; i < kernel->store_count; i++) {
    const ax_store *store = &kernel->stores[i];
    ax_text_add(text, "  s%u", store->slot);
    add_at(text, store->at, kernel->slots[store->slot].rank);
    const char *how = kernel->running ? "running " : "reduce ";
    if (store->reduce == AX_SCALAR_NONE) ax_text_add(text, " = e%u\n", store->expr);
    else ax_text_add(text, " = %s%s e%u\n", how, ax_scalar_name(store->reduce), store->expr);
  }
}
