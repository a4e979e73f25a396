/* cond, scan, while and calls: control.py says the same in JAX. */
#include <stdio.h>

#include "vectors/vectors.h"

#define FLOAT "f32 f64"
#define LINES "d=2 d=4 d=8"
#define GRID "a=4,b=2 a=4,b=2:b"

static const vector_variant *variant(void *context) { return context; }
static const char *axes(void *context) { return variant(context)->axes; }
static ax_value total(ax_value x) { return ax_reduce_sum(x, AX_ALL_DIMS, false); }
static ax_value times(ax_value x, double factor) { return ax_mul(x, ax_full_like(x, factor)); }
static ax_value number(double value) { return ax_full(AX_S32, AX_DIMS(), value); }

/* --- scan --- */

BODY(cell) { /* context: w */
  const ax_value *w = context;
  out[0] = ax_tanh(ax_add(ax_matmul(in[0], *w), in[1]));
  out[1] = ax_mul(out[0], in[1]);
}
BODY(rnn) {
  ax_value w = in[2];
  ax_scan(AX_CLOSURE(cell, 2, 2, &w), 1, -1, false, in, out);
}
BODY(scan_reverse) {
  ax_value w = in[2];
  ax_scan(AX_CLOSURE(cell, 2, 2, &w), 1, -1, true, in, out);
}
static void unrolled(int64_t unroll, bool reverse, const ax_value *in, ax_value *out) {
  ax_value w = in[2];
  ax_scan_unrolled(AX_CLOSURE(cell, 2, 2, &w), 1, -1, reverse, unroll, AX_LIST(2, in), AX_LIST(2, out));
}
BODY(scan_unroll) { unrolled(2, false, in, out); }
BODY(scan_unroll_evenly) { unrolled(3, false, in, out); }
BODY(scan_unroll_reverse) { unrolled(2, true, in, out); }
BODY(scan_unroll_all) { unrolled(5, false, in, out); }
BODY(scan_unroll_empty) { unrolled(4, false, in, out); }
BODY(unrolled_loss) {
  ax_value made[2];
  unrolled(2, false, in, made);
  out[0] = ax_add(total(ax_mul(made[0], made[0])), total(made[1]));
}
BODY(scan_unroll_grad) { ax_grad(AX_FN(unrolled_loss, 3, 1), AX_FIRST(3), in, out); }

BODY(of_row) { /* context: w */
  const ax_value *w = context;
  out[0] = ax_mul(ax_tanh(ax_matmul(in[0], *w)), in[1]);
  out[1] = total(in[0]);
}
static void mapped(int64_t batch_size, const ax_value *in, ax_value *out) {
  ax_value w = in[2];
  ax_map(AX_CLOSURE(of_row, 2, 2, &w), batch_size, AX_LIST(2, in), AX_LIST(2, out));
}
BODY(map_rows) { mapped(0, in, out); }
BODY(map_batches) { mapped(2, in, out); }
BODY(map_large_batch) { mapped(8, in, out); }
BODY(map_loss) {
  ax_value made[2];
  mapped(2, in, made);
  out[0] = total(ax_mul(made[0], made[0]));
}
BODY(map_grad) { ax_grad(AX_FN(map_loss, 3, 1), AX_FIRST(3), in, out); }
BODY(map_vmap) {
  ax_vmap(AX_FN(map_batches, 3, 2), in, out, &(ax_vmap_options){.in_axes = {AX_DIMS(0, AX_NOT_MAPPED, AX_NOT_MAPPED)}});
}
BODY(loss) {
  ax_value made[2];
  rnn(in, made, context);
  out[0] = ax_add(total(ax_mul(made[0], made[0])), total(made[1]));
}
BODY(scan_grad) { ax_grad(AX_CLOSURE(loss, 3, 1, context), AX_FIRST(3), in, out); }

BODY(tanh_times) { /* context: w */
  const ax_value *w = context;
  out[0] = ax_tanh(ax_mul(in[0], *w));
}
BODY(scan_length) {
  ax_value w = in[1];
  ax_scan(AX_CLOSURE(tanh_times, 1, 1, &w), 1, 4, false, in, out);
}

BODY(count) {
  out[0] = ax_add(in[0], number(1));
  out[1] = ax_add(in[1], ax_mul(in[2], ax_convert_element_type(in[0], ax_typeof(in[2]).dtype)));
  out[2] = in[0];
}
BODY(scan_count) {
  ax_value operands[] = {number(0), ax_full(ax_typeof(in[0]).dtype, DIMS(2), 0), in[0]};
  ax_scan(AX_FN(count, 3, 3), 2, -1, false, operands, out);
}

BODY(inner_step) {
  const ax_value *w = context;
  out[0] = ax_tanh(ax_add(ax_mul(in[0], *w), in[1]));
  out[1] = ax_mul(in[0], in[1]);
}
BODY(outer_step) {
  ax_value made[2];
  ax_scan(AX_CLOSURE(inner_step, 2, 2, context), 1, -1, false, in, made);
  out[0] = made[0];
  out[1] = total(made[1]);
}
BODY(scan_of_scan) {
  ax_value w = in[1], operands[] = {in[1], in[0]};
  ax_scan(AX_CLOSURE(outer_step, 2, 2, &w), 1, -1, false, operands, out);
}

static void map(ax_function f, ax_dim_list in_axes, const ax_value *in, uint32_t in_count, ax_value *out, uint32_t out_count) {
  ax_vmap(AX_FN(f, in_count, out_count), in, out, &(ax_vmap_options){.in_axes = in_axes});
}
#define AXES(...) ((ax_dim_list){AX_DIMS(__VA_ARGS__)})

BODY(scan_vmap) { map(rnn, AXES(0, 1, AX_NOT_MAPPED), in, 3, out, 2); }
BODY(scan_vmap_weights) { map(rnn, AXES(AX_NOT_MAPPED, AX_NOT_MAPPED, 0), in, 3, out, 2); }
BODY(grad_of_start_and_weights) {
  ax_value made[3];
  ax_grad(AX_CLOSURE(loss, 3, 1, context), AX_FIRST(3), in, made);
  out[0] = made[0];
  out[1] = made[2];
}
BODY(scan_vmap_of_grad) { map(grad_of_start_and_weights, AXES(0, AX_NOT_MAPPED, AX_NOT_MAPPED), in, 3, out, 2); }

/* --- cond --- */

BODY(product) { out[0] = ax_mul(in[0], in[1]); }
BODY(tanh_plus) { out[0] = ax_add(ax_tanh(in[0]), in[1]); }
BODY(exp_of_minus) { out[0] = ax_exp(ax_neg(in[0])); }
static const ax_fn branches[] = {{product, 2, 1, NULL}, {tanh_plus, 2, 1, NULL}, {exp_of_minus, 2, 1, NULL}};

BODY(cond) { ax_if(in[0], branches[1], branches[0], in + 1, out); }
BODY(switch_three) { ax_switch(in[0], AX_LIST(3, branches), in + 1, out); }

BODY(total_of_chosen) { /* context: the index */
  const ax_value *index = context;
  ax_value made;
  ax_if(*index, branches[1], branches[0], in, &made);
  out[0] = total(made);
}
BODY(cond_grad) {
  ax_value index = in[0];
  ax_grad(AX_CLOSURE(total_of_chosen, 2, 1, &index), AX_FIRST(2), in + 1, out);
}
BODY(cond_vmap) { map(cond, AXES(0, 0, AX_NOT_MAPPED), in, 3, out, 1); }
BODY(switch_vmap) { map(switch_three, AXES(0, 0, AX_NOT_MAPPED), in, 3, out, 1); }
BODY(switch_vmap_operands) { map(switch_three, AXES(AX_NOT_MAPPED, 0, AX_NOT_MAPPED), in, 3, out, 1); }

typedef struct step_values {
  ax_value w, v;
} step_values;

BODY(add_step) {
  const step_values *s = context;
  out[0] = ax_add(in[0], ax_mul(s->w, s->v));
}
BODY(tanh_step) {
  const step_values *s = context;
  out[0] = ax_tanh(ax_mul(in[0], s->w));
}
BODY(choose_step) {
  step_values s = {*(const ax_value *)context, in[1]};
  ax_if(ax_gt(in[1], ax_full_like(in[1], 0)), AX_CLOSURE(tanh_step, 1, 1, &s), AX_CLOSURE(add_step, 1, 1, &s), in, out);
  out[1] = in[0];
}
BODY(cond_in_scan) {
  ax_value w = in[1], operands[] = {in[1], in[0]};
  ax_scan(AX_CLOSURE(choose_step, 2, 2, &w), 1, -1, false, operands, out);
}

/* --- while --- */

BODY(above_limit) { out[0] = ax_gt(in[0], *(const ax_value *)context); }
BODY(halve) {
  out[0] = times(in[0], 0.5);
  out[1] = ax_add(in[1], number(1));
  out[2] = ax_mul(in[2], in[0]);
}
BODY(halvings) {
  ax_value limit = in[1], start[] = {in[0], number(0), ax_full_like(in[0], 1)};
  ax_while(AX_CLOSURE(above_limit, 3, 1, &limit), AX_CLOSURE(halve, 3, 3, &limit), start, out);
}

BODY(below_bound) { out[0] = ax_lt(in[0], *(const ax_value *)context); }
BODY(tanh_and_count) {
  out[0] = ax_add(in[0], number(1));
  out[1] = times(ax_tanh(in[1]), 1.5);
}
BODY(bounded) {
  ax_value bound = in[1], start[] = {number(0), in[0]}, made[2];
  ax_while(AX_CLOSURE(below_bound, 2, 1, &bound), AX_CLOSURE(tanh_and_count, 2, 2, &bound), start, made);
  out[0] = made[1];
}
BODY(while_vmap) { map(bounded, AXES(0, AX_NOT_MAPPED), in, 2, out, 1); }
BODY(while_vmap_each) { map(bounded, AXES(), in, 2, out, 1); }

/* --- On meshes --- */

static void every_axis(const vector_variant *v, char out[64]) {
  size_t used = 0;
  for (uint32_t a = 0; a < v->mesh.count; a++)
    used += (size_t)snprintf(out + used, 64 - used, "%s%s", a > 0 ? "," : "", v->mesh.axis[a].name);
}

BODY(mix) {
  ax_value mean = ax_pmean(in[0], axes(context));
  out[0] = ax_add(times(ax_tanh(in[0]), 0.5), mean);
  out[1] = mean;
}
BODY(mesh_scan) { ax_scan(AX_CLOSURE(mix, 1, 2, context), 1, 4, false, in, out); }

BODY(pass_on) {
  int64_t pairs[64][2], n = variant(context)->members;
  for (int64_t i = 0; i < n; i++) pairs[i][0] = i, pairs[i][1] = (i + 1) % n;
  ax_value arrived = ax_ppermute(in[0], axes(context), (uint32_t)n, (const int64_t(*)[2])pairs);
  out[0] = ax_tanh(ax_matmul(arrived, in[1]));
  out[1] = ax_psum(arrived, axes(context));
}
BODY(mesh_ring) { ax_scan(AX_CLOSURE(pass_on, 2, 2, context), 1, -1, false, in, out); }

typedef struct fit {
  ax_value x;
  char axes[64];
} fit;

BODY(misfit) {
  const fit *f = context;
  ax_value y = ax_tanh(ax_matmul(f->x, in[0]));
  out[0] = ax_pmean(ax_reduce_mean(ax_integer_pow(ax_sub(y, ax_full_like(y, 0.5)), 2), AX_ALL_DIMS, false), f->axes);
}
BODY(descend) {
  ax_value made[2];
  ax_value_and_grad(AX_CLOSURE(misfit, 1, 1, context), AX_FIRST(1), in, made);
  out[0] = ax_sub(in[0], times(made[1], 0.1));
  out[1] = made[0];
}
BODY(mesh_invariant_carry) {
  fit f = {.x = in[0]};
  every_axis(context, f.axes);
  ax_scan(AX_CLOSURE(descend, 1, 2, &f), 1, 3, false, in + 1, out);
}

BODY(gather_and_scatter) {
  ax_value everything = ax_all_gather(in[0], axes(context), 0, true);
  out[0] = times(ax_psum_scatter(ax_tanh(everything), axes(context), 0, true), 0.3);
}
BODY(mesh_gathered) { ax_scan(AX_CLOSURE(gather_and_scatter, 1, 1, context), 1, 3, false, in, out); }

/* --- Calls --- */

static ax_value nth(ax_value xs, int64_t i) { /* the i-th matrix of f[n,3,3] */
  const int64_t start[] = {i, 0, 0}, limit[] = {i + 1, 3, 3}, dims[] = {3, 3};
  return ax_reshape(ax_slice(xs, start, limit, NULL), AX_LIST(2, dims));
}

BODY(layer) {
  (void)context;
  out[0] = ax_tanh(ax_matmul(in[0], in[1]));
  out[1] = ax_mul(out[0], out[0]);
}
BODY(calls) {
  ax_value made[2] = {in[0]};
  out[1] = ax_full_like(in[0], 0);
  for (int64_t i = 0; i < 4; i++) {
    const ax_value operands[] = {made[0], nth(in[1], i)};
    ax_closed_call(AX_CLOSURE(layer, 2, 2, context), operands, made);
    out[1] = ax_add(out[1], made[1]);
  }
  out[0] = made[0];
}
BODY(squares) {
  ax_value made[2];
  calls(in, made, context);
  out[0] = total(made[1]);
}
BODY(calls_grad) { ax_grad(AX_CLOSURE(squares, 2, 1, context), AX_FIRST(2), in, out); }

BODY(mesh_layer) { out[0] = ax_add(ax_tanh(ax_matmul(in[0], in[1])), ax_pmean(in[0], axes(context))); }
BODY(mesh_calls) {
  ax_value x = in[0];
  for (int64_t i = 0; i < 4; i++) {
    const ax_value operands[] = {x, nth(in[1], i)};
    ax_closed_call(AX_CLOSURE(mesh_layer, 2, 1, context), operands, &x);
  }
  out[0] = x;
}

BODY(first_to_last) {
  const int64_t pairs[][2] = {{0, variant(context)->members - 1}};
  out[0] = ax_ppermute(ax_tanh(in[0]), axes(context), 1, pairs);
}
BODY(sum_times) { out[0] = ax_mul(ax_psum(in[0], axes(context)), in[0]); }
BODY(mesh_uniform_choice) {
  ax_if(in[0], AX_CLOSURE(sum_times, 1, 1, context), AX_CLOSURE(first_to_last, 1, 1, context), in + 1, out);
}

BODY(twice) { out[0] = times(in[0], 2); }
BODY(exponential) { out[0] = ax_exp(in[0]); }
BODY(mesh_own_choice) {
  ax_value number_here = ax_axis_index(axes(context));
  ax_value even = ax_mul(ax_div(number_here, number(2)), number(2));
  ax_if(ax_ne(number_here, even), AX_FN(exponential, 1, 1), AX_FN(twice, 1, 1), in, out);
}

BODY(still_large) {
  char all[64];
  every_axis(context, all);
  out[0] = ax_gt(ax_psum(total(ax_mul(in[0], in[0])), all), ax_full(AX_F32, AX_DIMS(), 1));
}
BODY(shrink) { out[0] = ax_add(times(in[0], 0.5), times(ax_pmean(in[0], axes(context)), 0.01)); }
BODY(mesh_until_small) { ax_while(AX_CLOSURE(still_large, 1, 1, context), AX_CLOSURE(shrink, 1, 1, context), in, out); }

BODY(tanh_and_count_once) {
  out[0] = ax_add(in[0], number(1));
  out[1] = ax_tanh(in[1]);
}
BODY(mesh_own_trips) {
  ax_value bound = ax_axis_index(axes(context)), start[] = {number(0), in[0]}, made[2];
  ax_while(AX_CLOSURE(below_bound, 2, 1, &bound), AX_CLOSURE(tanh_and_count_once, 2, 2, &bound), start, made);
  out[0] = made[1];
}

BODY(tanh_plus_mean) { out[0] = ax_add(ax_tanh(in[0]), ax_pmean(in[0], "d")); }
BODY(two_steps) { ax_scan(AX_CLOSURE(tanh_plus_mean, 1, 1, context), 1, 2, false, in, out); }
BODY(mesh_vmap_scan) { map(two_steps, AXES(), in, 1, out, 1); }

BODY(powers_step) {
  ax_value w = *(const ax_value *)context, three = ax_full(AX_S32, AX_DIMS(), 3);
  ax_value up = ax_add(in[0], ax_full(AX_S32, AX_DIMS(), 6)), turn = ax_sub(up, ax_mul(ax_div(up, three), three)); /* i mod 3 */
  out[0] = ax_tanh(ax_add(ax_mul(in[1], ax_dynamic_at(w, turn, 0)), ax_convert_element_type(in[0], ax_typeof(in[1]).dtype)));
  out[1] = ax_add(in[2], out[0]);
}

BODY(fori_loop) {
  ax_value w = in[1];
  ax_fori_loop(ax_integer(-2), ax_real(4), AX_CLOSURE(powers_step, 3, 2, &w), AX_VALUES(in[0], ax_full_like(in[0], 0)), out);
}

BODY(fori_loop_vmap) { ax_vmap(AX_FN(fori_loop, 2, 2), in, out, &(ax_vmap_options){.in_axes = AXES(0, AX_NOT_MAPPED)}); }

BODY(doubled) { out[0] = ax_add(in[1], in[1]); }
BODY(fori_loop_none) { ax_fori_loop(ax_integer(3), ax_integer(3), AX_FN(doubled, 2, 1), in, out); }

BODY(add_index) { out[0] = ax_tanh(ax_add(in[1], ax_convert_element_type(in[0], ax_typeof(in[1]).dtype))); }
BODY(fori_loop_values) { ax_fori_loop(in[1], in[2], AX_FN(add_index, 2, 1), in, out); }

static const vector_case control_cases[] = {
    {"fori_loop", FLOAT, .body = fori_loop, .in = 2, .out = 2, .scaled = true},
    {"fori_loop_vmap", "f32", .body = fori_loop_vmap, .in = 2, .out = 2, .scaled = true},
    {"fori_loop_none", "f32", .body = fori_loop_none},
    {"fori_loop_values", FLOAT, .body = fori_loop_values, .in = 3, .modes = "vj", .scaled = true},
    {"scan", FLOAT " bf16", .body = rnn, .in = 3, .out = 2, .scaled = true},
    {"scan_reverse", "f32", .body = scan_reverse, .in = 3, .out = 2, .scaled = true},
    {"scan_unroll", FLOAT, .body = scan_unroll, .in = 3, .out = 2, .scaled = true},
    {"scan_unroll_evenly", "f32", .body = scan_unroll_evenly, .in = 3, .out = 2, .scaled = true},
    {"scan_unroll_reverse", "f32", .body = scan_unroll_reverse, .in = 3, .out = 2, .scaled = true},
    {"scan_unroll_all", "f32", .body = scan_unroll_all, .in = 3, .out = 2, .scaled = true},
    {"scan_unroll_empty", "f32", .body = scan_unroll_empty, .in = 3, .out = 2, .scaled = true},
    {"scan_unroll_grad", "f64", .body = scan_unroll_grad, .in = 3, .out = 3, .ulps = 256, .scaled = true},
    {"map", FLOAT, .body = map_rows, .in = 3, .out = 2, .scaled = true},
    {"map_batches", FLOAT, .body = map_batches, .in = 3, .out = 2, .scaled = true},
    {"map_whole_batches", "f32", .body = map_batches, .in = 3, .out = 2, .scaled = true},
    {"map_large_batch", "f32", .body = map_large_batch, .in = 3, .out = 2, .scaled = true},
    {"map_grad", "f64", .body = map_grad, .in = 3, .out = 3, .ulps = 256, .scaled = true},
    {"map_vmap", "f32", .body = map_vmap, .in = 3, .out = 2, .scaled = true},
    {"scan_length", "f32", .body = scan_length, .in = 2, .scaled = true},
    {"scan_empty", "f32", .body = rnn, .in = 3, .out = 2, .scaled = true},
    {"scan_count", "f32", .body = scan_count, .out = 3, .scaled = true},
    {"scan_of_scan", "f64", .body = scan_of_scan, .in = 2, .out = 2, .scaled = true},
    {"scan_grad", FLOAT, .body = scan_grad, .in = 3, .out = 3, .ulps = 256, .scaled = true},
    {"scan_vmap", "f32", .body = scan_vmap, .in = 3, .out = 2, .scaled = true},
    {"scan_vmap_weights", "f32", .body = scan_vmap_weights, .in = 3, .out = 2, .scaled = true},
    {"scan_vmap_of_grad", "f32", .body = scan_vmap_of_grad, .in = 3, .out = 2, .modes = "v", .ulps = 256, .scaled = true},
    {"cond", "f32", .body = cond, .in = 3, .scaled = true},
    {"switch", FLOAT, .body = switch_three, .in = 3, .scaled = true},
    {"cond_grad", "f64", .body = cond_grad, .in = 3, .out = 2, .scaled = true},
    {"cond_vmap", "f32", .body = cond_vmap, .in = 3, .scaled = true},
    {"switch_vmap", "f32", .body = switch_vmap, .in = 3, .scaled = true},
    {"switch_vmap_operands", "f32", .body = switch_vmap_operands, .in = 3, .scaled = true},
    {"cond_in_scan", "f64", .body = cond_in_scan, .in = 2, .out = 2, .scaled = true},
    {"while", FLOAT, .body = halvings, .in = 2, .out = 3, .modes = "v", .scaled = true},
    {"while_jvp", FLOAT, .body = bounded, .in = 2, .modes = "vj", .scaled = true},
    {"while_vmap", "f32", .body = while_vmap, .in = 2, .modes = "vj", .scaled = true},
    {"while_vmap_each", "f32", .body = while_vmap_each, .in = 2, .modes = "vj", .scaled = true},
    {"calls", FLOAT, .body = calls, .in = 2, .out = 2, .scaled = true},
    {"calls_grad", "f32", .body = calls_grad, .in = 2, .out = 2, .ulps = 256, .scaled = true},
    {"mesh_calls", "d=4 " GRID, "A . > A", .body = mesh_calls, .in = 2, .scaled = true},
    {"mesh_scan", LINES " " GRID, "A > A N", .body = mesh_scan, .out = 2, .scaled = true},
    {"mesh_ring", LINES " " GRID, "A . > A N", .body = mesh_ring, .in = 2, .out = 2, .scaled = true},
    {"mesh_invariant_carry", "d=4 " GRID, "A . > . .", .body = mesh_invariant_carry, .in = 2, .out = 2, .ulps = 256,
     .scaled = true},
    {"mesh_gathered", "d=4 " GRID, "A > A", .body = mesh_gathered, .scaled = true},
    {"mesh_uniform_choice", "d=4 " GRID, ". A > A", .body = mesh_uniform_choice, .in = 2, .scaled = true},
    {"mesh_own_choice", "d=4 " GRID, "A > A", .body = mesh_own_choice, .scaled = true},
    {"mesh_until_small", "d=4 " GRID, "A > A", .body = mesh_until_small, .modes = "vj", .scaled = true},
    {"mesh_own_trips", "d=4 " GRID, "A > A", .body = mesh_own_trips, .modes = "vj", .scaled = true},
    {"mesh_vmap_scan", "d=4", "A > A", .body = mesh_vmap_scan, .scaled = true},
};

const VECTOR_GROUP(control);
