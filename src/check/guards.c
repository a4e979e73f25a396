/* What predicates say of numbers, and of sums of these: where x < y, x is below the most that y is, and x + 32 below 32 more. */
#include "check/symbols.h"

#include "prim/prims.h"

static void add(ax_guard *guards, uint32_t *count, uint32_t number, int64_t low, int64_t high) {
  if (*count < AX_MOST_GUARDS) guards[(*count)++] = (ax_guard){number, {low, high}};
}

/* a < b, or a <= b. */
static void add_order(const ax_symbols *s, uint32_t a, uint32_t b, bool strict, ax_guard *guards, uint32_t *count) {
  const int64_t most = ax_symbols_range(s, b).high, least = ax_symbols_range(s, a).low;
  add(guards, count, a, INT64_MIN, strict && most > INT64_MIN ? most - 1 : most);
  add(guards, count, b, strict && least < INT64_MAX ? least + 1 : least, INT64_MAX);
}

static void add_equal(const ax_symbols *s, uint32_t a, uint32_t b, ax_guard *guards, uint32_t *count) {
  const ax_interval x = ax_symbols_range(s, a), y = ax_symbols_range(s, b);
  add(guards, count, a, y.low, y.high);
  add(guards, count, b, x.low, x.high);
}

enum { most_predicates = 256, most_depth = 32 }; /* that are looked at; one may stand in another many times */

static void look(const ax_symbols *s, uint32_t predicate, bool truth, ax_guard *guards, uint32_t *count, uint32_t *left, uint32_t depth) {
  uint32_t in[2];
  if (*left == 0 || depth == most_depth) return;
  --*left;
  const ax_prim *prim = ax_symbols_maker(s, predicate, in);
  if (prim == &ax_prim_convert_element_type && ax_symbols_dtype(s, in[0]) == AX_BOOL)
    look(s, in[0], truth, guards, count, left, depth + 1);
  if (prim == &ax_prim_not && ax_symbols_dtype(s, predicate) == AX_BOOL) look(s, in[0], !truth, guards, count, left, depth + 1);
  const bool several = ax_symbols_dtype(s, predicate) == AX_BOOL && prim == (truth ? &ax_prim_and : &ax_prim_or);
  for (uint32_t i = 0; i < 2 && several; i++) look(s, in[i], truth, guards, count, left, depth + 1);
  if (prim == &ax_prim_lt) add_order(s, in[!truth], in[truth], truth, guards, count);
  if (prim == &ax_prim_le) add_order(s, in[!truth], in[truth], !truth, guards, count);
  if (prim == &ax_prim_gt) add_order(s, in[truth], in[!truth], truth, guards, count);
  if (prim == &ax_prim_ge) add_order(s, in[truth], in[!truth], !truth, guards, count);
  if (prim == (truth ? &ax_prim_eq : &ax_prim_ne)) add_equal(s, in[0], in[1], guards, count);
}

void ax_symbols_guard(const ax_symbols *s, uint32_t predicate, bool truth, ax_guard *guards, uint32_t *count) {
  uint32_t left = most_predicates;
  look(s, predicate, truth, guards, count, &left, 0);
}

static bool shifted(int64_t *bound, int64_t by) {
  return !__builtin_add_overflow(*bound, by, bound); /* what would wrap says nothing */
}

/* A number within bounds; `part` and `constant` as ax_symbols_split has it. */
typedef struct bounded {
  uint32_t part;
  int64_t constant;
  ax_dtype dtype;
  ax_interval range;
} bounded;

static ax_status bound(ax_symbols *s, uint32_t id, ax_interval range, bounded *out) {
  *out = (bounded){.dtype = ax_symbols_dtype(s, id), .range = ax_interval_common(range, ax_symbols_range(s, id))};
  return ax_symbols_split(s, id, &out->part, &out->constant);
}

/* The other number, in its bounds, and so far on: if that does not wrap, it is this number. */
static void narrow(bounded *a, const bounded *by) {
  if (a->part != by->part || a->dtype != by->dtype) return;
  ax_interval range = by->range;
  const ax_interval all = ax_interval_of_dtype(a->dtype);
  const int64_t apart = a->constant - by->constant;
  if (range.low > range.high) {
    a->range = range; /* the guard never holds */
    return;
  }
  if (!shifted(&range.low, apart) || !shifted(&range.high, apart) || range.low < all.low || range.high > all.high) return;
  a->range = ax_interval_common(a->range, range);
}

/* 32 x + y, where a guard says something of x: the sum of the bounds of all terms, if that does not wrap. */
static ax_status narrow_sum(ax_symbols *s, uint32_t id, const bounded *guards, uint32_t count, bounded *a) {
  ax_symbols_terms terms;
  const ax_interval all = ax_interval_of_dtype(a->dtype);
  ax_symbols_sum(s, id, &terms);
  ax_interval sum = {terms.constant, terms.constant};
  bool guarded = false;
  for (uint32_t k = 0; k < terms.count; k++) {
    bounded term;
    AX_TRY(bound(s, terms.number[k], ax_symbols_range(s, terms.number[k]), &term));
    const ax_interval before = term.range;
    for (uint32_t i = 0; i < count; i++) narrow(&term, &guards[i]);
    guarded = guarded || term.range.low != before.low || term.range.high != before.high;
    if (term.range.low > term.range.high) {
      a->range = term.range;
      return AX_OK;
    }
    if (!ax_interval_product(term.range, (ax_interval){terms.factor[k], terms.factor[k]}, &term.range)) return AX_OK;
    if (!ax_interval_sum(sum, term.range, &sum)) return AX_OK;
  }
  if (guarded && ax_interval_is_within(sum, all)) a->range = ax_interval_common(a->range, sum);
  return AX_OK;
}

/* Guards of one number, or of numbers a constant apart, hold together: 0 <= x says nothing of x + 1, which may wrap, but with x <
   8 it does. */
ax_status ax_symbols_guarded(ax_symbols *s, uint32_t id, const ax_guard *guards, uint32_t count, ax_interval *out) {
  bounded own, each[AX_MOST_GUARDS];
  *out = ax_symbols_range(s, id);
  if (count == 0) return AX_OK;
  AX_TRY(bound(s, id, *out, &own));
  for (uint32_t k = 0; k < count; k++) AX_TRY(bound(s, guards[k].number, guards[k].range, &each[k]));
  for (uint32_t k = 0; k < count; k++)
    for (uint32_t i = 0; i < count; i++)
      if (i != k) narrow(&each[k], &each[i]);
  for (uint32_t k = 0; k < count; k++) narrow(&own, &each[k]);
  if (own.range.low <= own.range.high) AX_TRY(narrow_sum(s, id, each, count, &own));
  *out = own.range;
  return AX_OK;
}
