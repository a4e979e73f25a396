/* Collectives over groups of members: groups.py says the same in JAX. */
#include <stdio.h>

#include "vectors/vectors.h"

#define EVEN "d=4 d=8 a=4,b=2:a,b a=4,b=2:a"
#define UNEVEN "d=4 d=8 a=4,b=2:a"

typedef struct grouped {
  char axes[256];
} grouped;

typedef enum kind { PAIRS, HALVES, MIXED, UNEVEN_ONES } kind;

/* Member i of group g; groups of `size`. */
static int64_t member(kind kind, int64_t n, int64_t size, int64_t g, int64_t i) {
  if (kind == PAIRS) return g * size + i;
  if (kind == HALVES) return g + 2 * i;
  return i == 0 ? n - 1 - g : g;
}

static grouped groups_of(const vector_variant *v, kind kind) {
  grouped text;
  int64_t n = v->members, size = kind == HALVES ? n / 2 : 2;
  int at = snprintf(text.axes, sizeof text.axes, "%s", v->axes);
  if (kind == UNEVEN_ONES) {
    at += snprintf(text.axes + at, sizeof text.axes - (size_t)at, " {2} {1,0");
    for (int64_t i = 3; i < n; i++) at += snprintf(text.axes + at, sizeof text.axes - (size_t)at, ",%lld", (long long)i);
    snprintf(text.axes + at, sizeof text.axes - (size_t)at, "}");
    return text;
  }
  for (int64_t g = 0; g < n / size; g++)
    for (int64_t i = 0; i < size; i++)
      at += snprintf(text.axes + at, sizeof text.axes - (size_t)at, "%s%lld%s", i == 0 ? " {" : ",",
                     (long long)member(kind, n, size, g, i), i == size - 1 ? "}" : "");
  return text;
}

static ax_value gather(ax_value x, const char *axes) { return ax_all_gather(x, axes, 1, false); }
static ax_value gather_tiled(ax_value x, const char *axes) { return ax_all_gather(x, axes, 0, true); }
static ax_value scatter(ax_value x, const char *axes) { return ax_psum_scatter(x, axes, 1, true); }
static ax_value trade(ax_value x, const char *axes) { return ax_all_to_all(x, axes, 1, 0, true); }
static ax_value swap(ax_value x, const char *axes) { return ax_all_to_all(x, axes, 1, 1, false); }

#define OVER(name, function, kind) \
  BODY(name) { out[0] = function(in[0], groups_of(context, kind).axes); }
#define EACH(name, function)             \
  OVER(name##_pairs, function, PAIRS)    \
  OVER(name##_halves, function, HALVES)  \
  OVER(name##_mixed, function, MIXED)
EACH(psum, ax_psum)
EACH(pmean, ax_pmean)
EACH(pmax, ax_pmax)
EACH(pmin, ax_pmin)
EACH(all_gather, gather)
EACH(all_gather_tiled, gather_tiled)
EACH(psum_scatter, scatter)
EACH(all_to_all, trade)
OVER(psum_uneven, ax_psum, UNEVEN_ONES)
OVER(pmax_uneven, ax_pmax, UNEVEN_ONES)
OVER(pswapaxes, swap, PAIRS)

BODY(sum_of_row) { out[0] = ax_psum(ax_sin(in[0]), groups_of(context, HALVES).axes); }
BODY(psum_vmap) { ax_vmap(AX_CLOSURE(sum_of_row, 1, 1, context), in, out, NULL); }
BODY(gather_of_row) { out[0] = ax_all_gather(ax_sin(in[0]), groups_of(context, MIXED).axes, 0, true); }
BODY(all_gather_vmap) {
  const ax_vmap_options options = {.in_axes = {AX_DIMS(1)}, .out_axes = {AX_DIMS(1)}};
  ax_vmap(AX_CLOSURE(gather_of_row, 1, 1, context), in, out, &options);
}
BODY(step) { out[0] = ax_sin(ax_psum(in[0], groups_of(context, PAIRS).axes)); }
BODY(psum_scan) { ax_scan(AX_CLOSURE(step, 1, 1, context), 1, 3, false, in, out); }

#define ONE(name, ...) {#name, EVEN, "A > A", .body = name, .unchecked = true, __VA_ARGS__}
#define THREE(name, ...) ONE(name##_pairs, __VA_ARGS__), ONE(name##_halves, __VA_ARGS__), ONE(name##_mixed, __VA_ARGS__)

static const vector_case groups_cases[] = {
    THREE(psum, ),
    THREE(pmean, ),
    THREE(pmax, .modes = "v"),
    THREE(pmin, .modes = "v"),
    THREE(all_gather, ),
    THREE(all_gather_tiled, ),
    THREE(psum_scatter, ),
    THREE(all_to_all, ),
    {"psum_uneven", UNEVEN, "A > A", .body = psum_uneven, .unchecked = true},
    {"psum_uneven_s32", UNEVEN, "A > A", .body = psum_uneven, .unchecked = true},
    {"pmax_uneven", UNEVEN, "A > A", .body = pmax_uneven, .unchecked = true, .modes = "v"},
    {"psum_bf16", "d=8", "A > A", .body = psum_pairs, .unchecked = true},
    ONE(pswapaxes, ),
    ONE(psum_vmap, .ulps = 4, .scaled = true), /* of sines, which may cancel */
    ONE(all_gather_vmap, ),
    ONE(psum_scan, .scaled = true),
};
const VECTOR_GROUP(groups);
