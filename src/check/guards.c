/* What predicates say of numbers: where x < y, x is below the most that y is. */
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

ax_status ax_symbols_guarded(ax_symbols *s, uint32_t id, const ax_guard *guards, uint32_t count, ax_interval *out) {
  uint32_t part, other;
  int64_t constant, other_constant;
  *out = ax_symbols_range(s, id);
  if (count == 0) return AX_OK;
  AX_TRY(ax_symbols_split(s, id, &part, &constant));
  for (uint32_t k = 0; k < count; k++) {
    AX_TRY(ax_symbols_split(s, guards[k].number, &other, &other_constant));
    if (part != other || ax_symbols_dtype(s, id) != ax_symbols_dtype(s, guards[k].number)) continue;
    /* The other number, in the bounds of both, and so far on: if that does not wrap, it is this number. */
    ax_interval range = ax_interval_common(guards[k].range, ax_symbols_range(s, guards[k].number));
    const ax_interval all = ax_interval_of_dtype(ax_symbols_dtype(s, id));
    const int64_t by = constant - other_constant;
    if (range.low > range.high) {
      *out = range; /* the guard never holds */
      return AX_OK;
    }
    if (!shifted(&range.low, by) || !shifted(&range.high, by) || range.low < all.low || range.high > all.high) continue;
    *out = ax_interval_common(*out, range);
  }
  return AX_OK;
}
