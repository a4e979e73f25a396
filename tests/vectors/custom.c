/* Functions with derivatives of their own: custom.py says the same in JAX. */
#include <stdio.h>

#include "vectors/vectors.h"

enum { UNMAPPED = AX_NOT_MAPPED };

#define FLOAT "f32 f64"
#define LINES "d=2 d=4 d=8"
#define GRID "a=4,b=2:a a=4,b=2:b,a"

/* A function by custom_vjp or custom_jvp, and what it is told. */
typedef struct way {
  ax_function f;
  void *variant;
} way;

static const vector_variant *variant(void *context) { return context; }
static const char *axes(void *context) { return variant(context)->axes; }
static ax_value total(ax_value x) { return ax_reduce_sum(x, AX_ALL_DIMS, false); }
static void call(const way *w, const ax_value *in, ax_value *out) { w->f(in, out, w->variant); }

/* --- x, w -> tanh(x w), sum of x --- */

BODY(two) {
  out[0] = ax_tanh(ax_mul(in[0], in[1]));
  out[1] = total(in[0]);
}
BODY(two_forward) {
  two(in, out, context);
  out[2] = in[0], out[3] = in[1];
}
BODY(two_backward) { /* x, w, cotangents */
  out[0] = ax_sub(ax_mul(ax_mul(in[2], in[1]), ax_integer(3)), ax_mul(in[3], ax_integer(2)));
  out[1] = total(ax_mul(ax_mul(in[2], in[0]), ax_integer(5)));
}
BODY(two_rule) { /* x, w, tangents */
  two(in, out, context);
  out[2] = ax_add(ax_mul(ax_mul(in[2], in[1]), ax_integer(3)), ax_mul(ax_mul(in[3], in[0]), ax_integer(5)));
  out[3] = ax_mul(total(in[2]), ax_integer(-2));
}
BODY(two_by_vjp) { ax_custom_vjp(AX_FN(two, 2, 2), AX_FN(two_forward, 2, 4), AX_FN(two_backward, 4, 2), in, out); }
BODY(two_by_jvp) { ax_custom_jvp(AX_FN(two, 2, 2), AX_FN(two_rule, 4, 4), in, out); }

BODY(first) { /* context: a way */
  ax_value made[2];
  call(context, in, made);
  out[0] = made[0];
}
BODY(whole) {
  ax_value made[2];
  call(context, in, made);
  out[0] = ax_add(total(ax_square(made[0])), ax_square(made[1]));
}
BODY(slopes) { ax_grad(AX_CLOSURE(whole, 2, 1, context), AX_FIRST(2), in, out); }
BODY(hessian) { ax_hessian(AX_CLOSURE(whole, 2, 1, context), AX_FIRST(1), in, out); }
BODY(both_results) { call(context, in, out); }
BODY(vmap) { ax_vmap(AX_CLOSURE(both_results, 2, 2, context), in, out, &(ax_vmap_options){.in_axes = {AX_DIMS(0, UNMAPPED)}}); }
BODY(vmap_of_slopes) { ax_vmap(AX_CLOSURE(slopes, 2, 2, context), in, out, &(ax_vmap_options){.in_axes = {AX_DIMS(UNMAPPED, 0)}}); }

typedef struct step_of {
  const way *way;
  ax_value w;
} step_of;
BODY(step) {
  const step_of *s = context;
  call(s->way, (ax_value[]){in[0], s->w}, out);
}
BODY(scan) { ax_scan(AX_CLOSURE(step, 1, 2, &(step_of){context, in[1]}), 1, 3, false, in, out); }

BODY(product) { out[0] = ax_mul(in[0], in[1]); }
BODY(branch) { /* i, x, w */
  const ax_fn branches[] = {AX_CLOSURE(first, 2, 1, context), AX_FN(product, 2, 1)};
  ax_switch(in[0], AX_LIST(2, branches), in + 1, out);
}

BODY(is_large) { out[0] = ax_gt(total(ax_square(in[0])), ax_integer(1)); }
BODY(smaller) {
  ax_value made[2];
  step(in, made, context);
  out[0] = ax_mul(made[0], ax_real(0.5));
}
BODY(until) { ax_while(AX_FN(is_large, 1, 1), AX_CLOSURE(smaller, 1, 1, &(step_of){context, in[1]}), in, out); }

#define BY_BOTH(name, function, f)                                        \
  BODY(name##_by_vjp) { function(in, out, &(way){f##_by_vjp, context}); } \
  BODY(name##_by_jvp) { function(in, out, &(way){f##_by_jvp, context}); }
BY_BOTH(unused, first, two)
BY_BOTH(slopes, slopes, two)
BY_BOTH(hessian, hessian, two)
BY_BOTH(vmap, vmap, two)
BY_BOTH(vmap_of_slopes, vmap_of_slopes, two)
BY_BOTH(scan, scan, two)
BY_BOTH(switch, branch, two)
BY_BOTH(while, until, two)

/* --- i, x -> i + 1, x i --- */

BODY(scaled) {
  out[0] = ax_add(in[0], ax_integer(1));
  out[1] = ax_mul(in[1], ax_convert_element_type(in[0], ax_typeof(in[1]).dtype));
}
BODY(scaled_forward) {
  scaled(in, out, context);
  out[2] = in[0];
}
BODY(scaled_backward) { out[0] = ax_mul(in[1], ax_mul(ax_convert_element_type(in[0], ax_typeof(in[1]).dtype), ax_integer(7))); }
BODY(scaled_rule) {
  scaled(in, out, context);
  out[2] = ax_mul(in[2], ax_mul(ax_convert_element_type(in[0], ax_typeof(in[1]).dtype), ax_integer(7)));
}
BODY(integer_by_vjp) { ax_custom_vjp(AX_FN(scaled, 2, 2), AX_FN(scaled_forward, 2, 3), AX_FN(scaled_backward, 2, 1), in, out); }
BODY(integer_by_jvp) { ax_custom_jvp(AX_FN(scaled, 2, 2), AX_FN(scaled_rule, 3, 3), in, out); }

/* --- Over an axis of vmap: x minus the mean --- */

BODY(centred) { out[0] = ax_sub(in[0], ax_pmean(in[0], "i")); }
BODY(centred_forward) {
  centred(in, out, context);
  out[1] = in[0];
}
BODY(centred_slope) { /* x, then a cotangent or a tangent */
  centred(in + 1, out, context);
  out[0] = ax_mul(ax_mul(out[0], ax_integer(2)), ax_cos(in[0]));
}
BODY(centred_rule) {
  centred(in, out, context);
  centred_slope(in, out + 1, context);
}
BODY(member_by_vjp) { ax_custom_vjp(AX_FN(centred, 1, 1), AX_FN(centred_forward, 1, 2), AX_FN(centred_slope, 2, 1), in, out); }
BODY(member_by_jvp) { ax_custom_jvp(AX_FN(centred, 1, 1), AX_FN(centred_rule, 2, 2), in, out); }
BODY(member_slope) {
  ax_value made, cotangent = ax_sin(in[0]);
  ax_vjp(AX_FN(member_by_vjp, 1, 1), AX_FIRST(1), in, &cotangent, &made, out);
}
static const ax_vmap_options named = {.axis_name = "i"};
BODY(centred_by_vjp) { ax_vmap(AX_FN(member_slope, 1, 1), in, out, &named); }
BODY(centred_by_jvp) { ax_vmap(AX_FN(member_by_jvp, 1, 1), in, out, &named); }

/* --- In a shard_map: x, w -> the sum of tanh(x w) --- */

BODY(sum) { out[0] = ax_psum(ax_tanh(ax_mul(in[0], in[1])), axes(context)); }
BODY(sum_forward) {
  sum(in, out, context);
  out[1] = in[0], out[2] = in[1];
}
static ax_value slope(ax_value x, ax_value w) { return ax_sub(ax_integer(1), ax_square(ax_tanh(ax_mul(x, w)))); }
BODY(sum_backward) { /* x, w, cotangent */
  char all[2 * AX_MAX_NAME];
  const ax_mesh *mesh = &variant(context)->mesh;
  snprintf(all, sizeof all, mesh->count > 1 ? "%s,%s" : "%s", mesh->axis[0].name, mesh->axis[1].name);
  ax_value cotangent = ax_mul(in[2], slope(in[0], in[1]));
  out[0] = ax_mul(cotangent, in[1]);
  out[1] = ax_psum(total(ax_mul(cotangent, in[0])), all);
}
BODY(sum_rule) { /* x, w, tangents */
  sum(in, out, context);
  ax_value tangent = ax_add(ax_mul(in[2], in[1]), ax_mul(in[0], in[3]));
  out[1] = ax_psum(ax_mul(slope(in[0], in[1]), tangent), axes(context));
}
BODY(psum_by_vjp) {
  ax_custom_vjp(AX_CLOSURE(sum, 2, 1, context), AX_CLOSURE(sum_forward, 2, 3, context), AX_CLOSURE(sum_backward, 3, 2, context), in,
                out);
}
BODY(psum_by_jvp) { ax_custom_jvp(AX_CLOSURE(sum, 2, 1, context), AX_CLOSURE(sum_rule, 4, 2, context), in, out); }

BODY(sum_step) {
  ax_value made;
  step(in, &made, context);
  out[0] = ax_mul(ax_sin(in[0]), total(made));
}
BODY(sum_loop) { ax_scan(AX_CLOSURE(sum_step, 1, 1, &(step_of){context, in[1]}), 1, 2, false, in, out); }
BODY(sum_row) { call(context, in, out); }
BODY(sum_rows) { ax_vmap(AX_CLOSURE(sum_row, 2, 1, context), in, out, &(ax_vmap_options){.in_axes = {AX_DIMS(0, UNMAPPED)}}); }
BODY(sum_loss) {
  call(context, in, out);
  out[0] = total(ax_sin(out[0]));
}
BODY(sum_slopes) { ax_grad(AX_CLOSURE(sum_loss, 2, 1, context), AX_FIRST(2), in, out); }
BY_BOTH(psum_loop, sum_loop, psum)
BY_BOTH(psum_rows, sum_rows, psum)
BY_BOTH(psum_slopes, sum_slopes, psum)

/* --- Squares, moved; the way back is another collective --- */

typedef struct move {
  ax_value (*there)(ax_value x, void *variant);
  ax_value (*back)(ax_value x, void *variant);
  void *variant;
} move;

BODY(moved) {
  const move *m = context;
  out[0] = m->there(ax_square(in[0]), m->variant);
}
BODY(moved_forward) {
  moved(in, out, context);
  out[1] = in[0];
}
BODY(moved_backward) {
  const move *m = context;
  out[0] = ax_mul(ax_mul(in[0], ax_integer(2)), m->back(in[1], m->variant));
}
BODY(moved_rule) {
  const move *m = context;
  moved(in, out, context);
  out[1] = m->there(ax_mul(ax_mul(in[0], ax_integer(2)), in[1]), m->variant);
}
static void moved_by_vjp(move m, const ax_value *in, ax_value *out) {
  ax_custom_vjp(AX_CLOSURE(moved, 1, 1, &m), AX_CLOSURE(moved_forward, 1, 2, &m), AX_CLOSURE(moved_backward, 2, 1, &m), in, out);
}
static void moved_by_jvp(move m, const ax_value *in, ax_value *out) {
  ax_custom_jvp(AX_CLOSURE(moved, 1, 1, &m), AX_CLOSURE(moved_rule, 2, 2, &m), in, out);
}

static ax_value gather(ax_value x, void *v) { return ax_all_gather(x, axes(v), 0, true); }
static ax_value scatter(ax_value x, void *v) { return ax_psum_scatter(x, axes(v), 0, true); }
static ax_value trade(ax_value x, void *v) { return ax_all_to_all(x, axes(v), 1, 0, true); }
static ax_value trade_back(ax_value x, void *v) { return ax_all_to_all(x, axes(v), 0, 1, true); }
static ax_value pass(ax_value x, void *v) { return ax_pshift(x, axes(v), 1, true); }
static ax_value pass_back(ax_value x, void *v) { return ax_pshift(x, axes(v), -1, true); }
static ax_value sum_halves(ax_value x, void *v) {
  char text[128];
  int64_t n = variant(v)->members;
  int at = snprintf(text, sizeof text, "%s", axes(v));
  for (int64_t i = 0; i < n; i++)
    at += snprintf(text + at, sizeof text - (size_t)at, "%s%lld%s", i % (n / 2) == 0 ? " {" : ",",
                   (long long)(2 * (i % (n / 2)) + i / (n / 2)), i % (n / 2) == n / 2 - 1 ? "}" : "");
  return ax_psum(x, text);
}

#define MOVED(name, there, back)                                               \
  BODY(name##_by_vjp) { moved_by_vjp((move){there, back, context}, in, out); } \
  BODY(name##_by_jvp) { moved_by_jvp((move){there, back, context}, in, out); }
MOVED(all_gather, gather, scatter)
MOVED(all_to_all, trade, trade_back)
MOVED(ppermute, pass, pass_back)
MOVED(groups, sum_halves, sum_halves)

/* The same by both, with the modes of each. */
#define TWO(name_, vjp_, jvp_, ...)                                       \
  {#name_ "_by_vjp", .body = name_##_by_vjp, .modes = vjp_, __VA_ARGS__}, \
  {#name_ "_by_jvp", .body = name_##_by_jvp, .modes = jvp_, __VA_ARGS__}
#define MESHES LINES " " GRID

static const vector_case custom_cases[] = {
    TWO(two, "vg", "vjg", .variants = FLOAT " bf16", .in = 2, .out = 2, .scaled = true),
    TWO(unused, "vg", "vjg", .variants = FLOAT, .in = 2, .scaled = true),
    TWO(slopes, "vj", "vjg", .variants = FLOAT, .in = 2, .out = 2, .ulps = 64, .scaled = true),
    TWO(hessian, "v", "v", .variants = FLOAT, .in = 2, .ulps = 64, .scaled = true),
    TWO(vmap, "vg", "vjg", .variants = FLOAT, .in = 2, .out = 2, .scaled = true),
    TWO(vmap_of_slopes, "v", "v", .variants = FLOAT, .in = 2, .out = 2, .ulps = 64, .scaled = true),
    TWO(scan, "vg", "vjg", .variants = FLOAT, .in = 2, .out = 2, .ulps = 64, .scaled = true),
    TWO(switch, "vg", "vjg", .variants = FLOAT, .in = 3, .scaled = true),
    TWO(while, "v", "vj", .variants = FLOAT, .in = 2, .ulps = 64, .scaled = true),
    TWO(integer, "vg", "vjg", .variants = FLOAT, .in = 2, .out = 2, .scaled = true),
    TWO(centred, "v", "vjg", .variants = FLOAT, .scaled = true),
    TWO(psum, "vg", "vjg", .variants = MESHES, .specs = "A . > R", .in = 2, .ulps = 64, .scaled = true),
    /* w's gradient adds up terms of all devices that are hundreds of times as large as what is left of them: of JAX's own f32
       values some are 65 from f64's. */
    TWO(psum_loop, "vg", "vjg", .variants = MESHES, .specs = "A . > A", .in = 2, .ulps = 256, .scaled = true),
    TWO(psum_rows, "vg", "vjg", .variants = MESHES, .specs = "A . > R", .in = 2, .ulps = 64, .scaled = true),
    TWO(psum_slopes, "vj", "vjg", .variants = MESHES, .specs = "A . > A .", .in = 2, .out = 2, .ulps = 64, .scaled = true),
    TWO(all_gather, "vg", "vjg", .variants = MESHES, .specs = "A > A", .scaled = true),
    TWO(all_to_all, "vg", "vjg", .variants = MESHES, .specs = "A > A", .scaled = true),
    TWO(ppermute, "vg", "vjg", .variants = LINES " a=4,b=2:a", .specs = "A > A", .scaled = true),
    TWO(groups, "vg", "vjg", .variants = "d=4 d=8", .specs = "A > A", .unchecked = true, .scaled = true),
};

const VECTOR_GROUP(custom);
