/* pmap: pmap.py says the same in JAX. */
#include "axle/pmap.h"

#include "vectors/vectors.h"

enum { UNMAPPED = AX_NOT_MAPPED };

#define LINES "d=2 d=4 d=8"
#define GRID "a=4,b=2"

static ax_value total(ax_value x) { return ax_reduce_sum(x, AX_ALL_DIMS, false); }
static int64_t devices(void *context) { return ax_mesh_devices(&((const vector_variant *)context)->mesh); }

#define FIRST \
  { AX_DIMS(0, UNMAPPED) }
static const ax_pmap_options by_rows = {.axis_name = "d"}, first_by_rows = {.axis_name = "d", .in_axes = FIRST};

/* --- What is mapped where --- */

BODY(three) {
  out[0] = ax_mul(ax_tanh(in[0]), in[1]);
  out[1] = ax_sin(in[2]);
  out[2] = ax_mul(in[0], ax_integer(2));
  out[3] = ax_mul(total(in[2]), in[1]);
}
BODY(mapped) {
  const ax_pmap_options options = {
      .axis_name = "d", .in_axes = {AX_DIMS(0, UNMAPPED, 1)}, .out_axes = {AX_DIMS(1, 0, UNMAPPED, 0)}};
  ax_pmap(AX_FN(three, 3, 4), in, out, &options);
}

/* --- Collectives --- */

static ax_value times_sum(ax_value x, ax_value w) { return ax_mul(ax_psum(ax_mul(ax_sin(x), w), "d"), x); }
BODY(product) { out[0] = times_sum(in[0], in[1]); }
BODY(product_and_mean) {
  out[0] = times_sum(in[0], in[1]);
  out[1] = ax_pmean(ax_mul(in[0], in[1]), "d");
}
BODY(product_and_sum) {
  out[0] = times_sum(in[0], in[1]);
  out[1] = ax_psum(ax_mul(in[0], in[1]), "d");
}
BODY(sums) {
  const ax_pmap_options options = {.axis_name = "d", .in_axes = FIRST, .out_axes = {AX_DIMS(1, 0)}};
  ax_pmap(AX_FN(product_and_mean, 2, 2), in, out, &options);
}
BODY(sum_once) {
  const ax_pmap_options options = {.axis_name = "d", .in_axes = FIRST, .out_axes = {AX_DIMS(UNMAPPED, UNMAPPED)}};
  ax_pmap(AX_FN(product_and_sum, 2, 2), in, out, &options);
}

BODY(largest_on_one) {
  out[0] = ax_pmax(in[0], "d");
  out[1] = ax_pmin(in[0], "d");
  out[2] = ax_axis_index("d");
  out[3] = ax_add(ax_axis_index("d"), ax_integer(ax_axis_size("d")));
}
BODY(largest) { ax_pmap(AX_FN(largest_on_one, 1, 4), in, out, &by_rows); }

BODY(exchange) {
  const int64_t n = devices(context);
  ax_value row = ax_reshape(ax_slice(in[0], LIST(0, 0), LIST(1, n), NULL), DIMS(n));
  ax_value element = ax_reshape(ax_slice(in[0], LIST(1, 0), LIST(2, 1), NULL), AX_DIMS());
  int64_t ring[8][2];
  for (int64_t i = 0; i < n; i++) ring[i][0] = i, ring[i][1] = (i + 1) % n;
  out[0] = ax_mul(ax_all_gather(row, "d", 0, false), element);
  out[1] = ax_ppermute(in[0], "d", (uint32_t)n, (const int64_t(*)[2])ring);
  out[2] = ax_psum_scatter(ax_mul(in[0], in[0]), "d", 0, true);
  out[3] = ax_all_to_all(in[0], "d", 0, 1, true);
}
BODY(exchanges) { ax_pmap(AX_CLOSURE(exchange, 1, 4, context), in, out, &by_rows); }

/* --- Derivatives --- */

BODY(error) {
  ax_value off = ax_sub(ax_tanh(ax_matmul(in[1], in[0])), in[2]);
  out[0] = ax_pmean(ax_reduce_mean(ax_mul(off, off), AX_ALL_DIMS, false), "d");
}
BODY(step_on_one) {
  ax_value made[2];
  ax_value_and_grad(AX_FN(error, 3, 1), AX_FIRST(1), in, made);
  out[0] = ax_sub(in[0], ax_pmean(made[1], "d"));
  out[1] = made[0];
}
BODY(step) {
  const ax_pmap_options options = {
      .axis_name = "d", .in_axes = {AX_DIMS(UNMAPPED, 0, 0)}, .out_axes = {AX_DIMS(UNMAPPED, UNMAPPED)}};
  ax_pmap(AX_FN(step_on_one, 3, 2), in, out, &options);
}

BODY(loss) {
  ax_value made[2];
  sums(in, made, context);
  out[0] = ax_add(total(ax_mul(made[0], made[0])), total(ax_mul(made[1], made[1])));
}
BODY(loss_once) {
  ax_value made[2];
  sum_once(in, made, context);
  out[0] = ax_add(total(made[0]), total(ax_mul(made[1], made[1])));
}
BODY(grad_of_loss) { ax_grad(AX_CLOSURE(loss, 2, 1, context), AX_FIRST(2), in, out); }
BODY(grad_of_loss_once) { ax_grad(AX_CLOSURE(loss_once, 2, 1, context), AX_FIRST(2), in, out); }

BODY(product_with) { out[0] = times_sum(in[0], *(const ax_value *)context); }
BODY(captured) { ax_pmap(AX_CLOSURE(product_with, 1, 1, &in[1]), in, out, &by_rows); }

static const ax_pmap_options with_tangent = {.axis_name = "d", .in_axes = {AX_DIMS(0, UNMAPPED, 0)}};
BODY(jvp_on_one) { ax_jvp(AX_CLOSURE(product_with, 1, 1, &in[1]), AX_FIRST(1), in, in + 2, out, out + 1); }
BODY(jvp_inside) { ax_pmap(AX_FN(jvp_on_one, 3, 2), in, out, &with_tangent); }

BODY(linear_on_one) {
  ax_linear map = ax_linearize(AX_CLOSURE(product_with, 1, 1, &in[1]), AX_FIRST(1), in, out);
  ax_pushforward(map, in + 2, out + 1);
  ax_pullback(map, in + 2, out + 2);
}
BODY(linear_inside) { ax_pmap(AX_FN(linear_on_one, 3, 3), in, out, &with_tangent); }

/* --- vmap --- */

BODY(to_columns) {
  const ax_pmap_options options = {.axis_name = "d", .in_axes = FIRST, .out_axes = {AX_DIMS(1)}};
  ax_pmap(AX_FN(product, 2, 1), AX_VALUES(in[0], *(const ax_value *)context), out, &options);
}
BODY(vmap_of) {
  ax_vmap(AX_CLOSURE(to_columns, 1, 1, &in[1]), in, out, &(ax_vmap_options){.in_axes = {AX_DIMS(1)}, .out_axes = {AX_DIMS(1)}});
}

BODY(over_both) {
  const ax_value x = in[0];
  out[0] = ax_add(times_sum(x, *(const ax_value *)context), ax_mul(ax_psum(x, "k"), ax_pmean(ax_mul(x, x), "k,d")));
}
BODY(over_devices) { ax_pmap(AX_CLOSURE(over_both, 1, 1, context), in, out, &by_rows); }
BODY(over_batch) { ax_vmap(AX_CLOSURE(over_both, 1, 1, context), in, out, &(ax_vmap_options){.axis_name = "k"}); }
BODY(named_vmap_of) {
  ax_vmap(AX_CLOSURE(over_devices, 1, 1, &in[1]), in, out, &(ax_vmap_options){.in_axes = {AX_DIMS(1)}, .axis_name = "k"});
}
BODY(of_vmap) { ax_pmap(AX_CLOSURE(over_batch, 1, 1, &in[1]), in, out, &by_rows); }

/* --- Control flow and functions --- */

BODY(bounded) { out[0] = ax_tanh(times_sum(in[0], in[1])); }
BODY(scanned) {
  ax_pmap(AX_FN(bounded, 2, 1), in, out, &first_by_rows);
  out[1] = ax_reshape(ax_slice(out[0], LIST(0, 0), LIST(1, 3), NULL), DIMS(3));
}
BODY(in_scan) { ax_scan(AX_FN(scanned, 2, 2), 1, -1, false, in, out); }

BODY(mapped_product) { ax_pmap(AX_FN(product, 2, 1), in, out, &first_by_rows); }
BODY(sine) { out[0] = ax_sin(in[0]); }
BODY(in_cond) {
  ax_value positive = ax_gt(total(in[0]), ax_integer(0));
  ax_if(positive, AX_FN(mapped_product, 2, 1), AX_FN(sine, 2, 1), in + 1, out);
}

BODY(forward) { out[0] = ax_sin(in[0]), out[1] = in[0]; }
BODY(backward) { out[0] = ax_mul(ax_psum(in[1], "d"), in[0]); }
BODY(called) { ax_closed_call(AX_FN(product, 2, 1), AX_VALUES(in[1], *(const ax_value *)context), out); }
BODY(calls_on_one) {
  ax_value y;
  ax_fori_loop(ax_integer(0), ax_integer(2), AX_CLOSURE(called, 2, 1, &in[1]), in, &y);
  ax_custom_vjp(AX_FN(sine, 1, 1), AX_FN(forward, 1, 2), AX_FN(backward, 2, 1), &y, &y);
  ax_checkpoint(AX_FN(product, 2, 1), in, out, NULL);
  out[0] = ax_add(ax_mul(y, in[0]), out[0]);
}
BODY(of_calls) { ax_pmap(AX_FN(calls_on_one, 2, 1), in, out, &first_by_rows); }

/* --- A nest: a takes rows, b within them columns --- */

BODY(innermost) {
  const ax_value x = in[0], w = in[1];
  out[0] = ax_mul(ax_psum(ax_mul(ax_sin(x), w), "b"), ax_pmean(x, "a"));
  out[1] = ax_mul(ax_psum(ax_mul(x, w), "a,b"), x);
  out[2] = ax_mul(ax_convert_element_type(ax_axis_index("a"), AX_F32), x);
}
BODY(inner) {
  const ax_pmap_options options = {.axis_name = "b", .in_axes = {AX_DIMS(1, 0)}, .out_axes = {AX_DIMS(0, UNMAPPED, 0)}};
  ax_pmap(AX_FN(innermost, 2, 3), in, out, &options);
}
BODY(nested) {
  const ax_pmap_options options = {.axis_name = "a", .in_axes = FIRST, .out_axes = {AX_DIMS(1, 0, UNMAPPED)}};
  ax_pmap(AX_FN(inner, 2, 3), in, out, &options);
}

#define OUTSIDE "the case lays its operands out itself"

static const vector_case pmap_cases[] = {
    {"pmap", LINES, .body = mapped, .in = 3, .out = 4, .scaled = true, .no_hlo = OUTSIDE},
    {"pmap_sums", LINES, .body = sums, .in = 2, .out = 2, .scaled = true, .no_hlo = OUTSIDE},
    {"pmap_sum_once", LINES, .body = sum_once, .in = 2, .out = 2, .scaled = true, .no_hlo = OUTSIDE},
    {"pmap_largest", LINES, .body = largest, .out = 4, .modes = "v", .no_hlo = OUTSIDE},
    {"pmap_exchanges", "d=2 d=4", .body = exchanges, .out = 4, .scaled = true, .no_hlo = OUTSIDE},
    {"pmap_step", LINES, .body = step, .in = 3, .out = 2, .ulps = 256, .scaled = true, .no_hlo = OUTSIDE},
    {"pmap_grad", LINES, .body = grad_of_loss, .in = 2, .out = 2, .ulps = 256, .scaled = true, .no_hlo = OUTSIDE},
    {"pmap_grad_once", LINES, .body = grad_of_loss_once, .in = 2, .out = 2, .ulps = 256, .scaled = true, .no_hlo = OUTSIDE},
    {"pmap_captured", "d=4", .body = captured, .in = 2, .scaled = true, .no_hlo = OUTSIDE},
    {"pmap_jvp", "d=4", .body = jvp_inside, .in = 3, .out = 2, .scaled = true, .no_hlo = OUTSIDE},
    {"pmap_linear", "d=4", .body = linear_inside, .in = 3, .out = 3, .modes = "vj", .scaled = true, .no_hlo = OUTSIDE},
    {"pmap_under_vmap", "d=4", .body = vmap_of, .in = 2, .scaled = true, .no_hlo = OUTSIDE},
    {"pmap_under_named_vmap", "d=4", .body = named_vmap_of, .in = 2, .scaled = true, .no_hlo = OUTSIDE},
    {"pmap_of_vmap", "d=4", .body = of_vmap, .in = 2, .scaled = true, .no_hlo = OUTSIDE},
    {"pmap_in_scan", "d=4", .body = in_scan, .in = 2, .out = 2, .ulps = 256, .scaled = true, .no_hlo = OUTSIDE},
    {"pmap_in_cond", "d=4", .body = in_cond, .in = 3, .scaled = true, .no_hlo = OUTSIDE},
    {"pmap_of_calls", "d=4", .body = of_calls, .in = 2, .modes = "vg", .ulps = 256, .scaled = true, .no_hlo = OUTSIDE},
    {"pmap_nested", GRID, .body = nested, .in = 2, .out = 3, .scaled = true, .no_hlo = OUTSIDE},
};

const VECTOR_GROUP(pmap);
