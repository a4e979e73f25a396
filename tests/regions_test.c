/* cond, scan, while and shard_map: each against what it means, its derivatives against finite differences, its batching against a
   loop, and what is refused. */
#include <stdlib.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "ir/program.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/random.h"
#include "support/run.h"

enum { UNMAPPED = AX_NOT_MAPPED };

/* --- Checks on any program of f64 inputs and results; the first `fixed` inputs are not varied --- */

static void random_inputs(const ax_program *program, uint32_t seed, ax_tensor **in) {
  test_random random = {seed};
  for (uint32_t i = 0; i < program->in_count; i++) in[i] = test_random_tensor(&random, program->types[i], -1, 1);
}

/* jvp's tangents against (f(x + e dx) - f(x - e dx)) / 2e. `in` has room for the tangents. */
static void check_jvp(const ax_program *program, ax_tensor **in, uint32_t seed) {
  ax_program *jvp;
  const double step = 1e-6;
  TEST_OK(ax_program_jvp(program, AX_ALL_ARGS, &jvp));
  TEST_OK(ax_program_verify(jvp));
  uint32_t n = program->in_count, m = program->out_count, tangents = jvp->in_count - n;
  ax_tensor **all = calloc(n + tangents, sizeof all[0]), **moved = calloc(n, sizeof moved[0]);
  ax_tensor **out = calloc(2 * m, sizeof out[0]), **up = calloc(m, sizeof up[0]), **down = calloc(m, sizeof down[0]);
  test_random random = {seed};
  for (uint32_t i = 0; i < n; i++) all[i] = in[i];
  for (uint32_t i = n; i < jvp->in_count; i++) all[i] = test_random_tensor(&random, jvp->types[i], -1, 1);
  for (int sign = -1; sign <= 1; sign += 2) {
    for (uint32_t i = 0, t = n; i < n; i++) {
      TEST_OK(ax_tensor_copy(in[i], &moved[i]));
      if (!ax_is_differentiable(in[i]->dtype)) continue;
      for (int64_t e = 0; e < test_elems(in[i]); e++)
        test_set(moved[i], e, test_get(in[i], e) + sign * step * test_get(all[t], e));
      t++;
    }
    test_run(program, moved, sign > 0 ? up : down);
    test_release(moved, n);
  }
  test_run(jvp, all, out);
  for (uint32_t k = 0, t = m; k < m; k++) {
    TEST_NEAR(test_get(out[k], 0), (test_get(up[k], 0) + test_get(down[k], 0)) / 2, 1e-6);
    if (!ax_is_differentiable(out[k]->dtype)) continue;
    for (int64_t e = 0; e < test_elems(out[k]); e++)
      TEST_NEAR(test_get(out[t], e), (test_get(up[k], e) - test_get(down[k], e)) / (2 * step), 1e-5);
    t++;
  }
  test_release(all + n, tangents);
  test_release(out, jvp->out_count);
  test_release(up, m);
  test_release(down, m);
  ax_program_release(jvp);
  free(all), free(moved), free(out), free(up), free(down);
}

/* <dy, J dx> = <J' dy, dx>, by linearize and transpose; and linearize's results and tangents are jvp's. */
static void check_transpose(const ax_program *program, ax_tensor **in, uint32_t seed) {
  ax_program *primal, *tangent, *transposed, *jvp;
  uint32_t residuals, n = program->in_count, m = program->out_count;
  TEST_OK(ax_program_linearize(program, AX_ALL_ARGS, &primal, &tangent, &residuals));
  TEST_OK(ax_program_verify(primal));
  TEST_OK(ax_program_verify(tangent));
  bool *linear = calloc(tangent->in_count, 1);
  for (uint32_t i = residuals; i < tangent->in_count; i++) linear[i] = true;
  TEST_OK(ax_program_transpose(tangent, test_args(linear, ax_program_in_count(tangent)), &transposed));
  TEST_OK(ax_program_verify(transposed));
  TEST_OK(ax_program_jvp(program, AX_ALL_ARGS, &jvp));
  uint32_t dxs = tangent->in_count - residuals, dys = tangent->out_count;
  ax_tensor **results = calloc(primal->out_count, sizeof in[0]), **a = calloc(tangent->in_count, sizeof in[0]);
  ax_tensor **b = calloc(transposed->in_count, sizeof in[0]), **dy = calloc(dys, sizeof in[0]),
            **ct = calloc(dxs, sizeof in[0]);
  ax_tensor **both = calloc(n + dxs, sizeof in[0]), **out = calloc(jvp->out_count, sizeof in[0]);
  test_random random = {seed};
  test_run(primal, in, results);
  for (uint32_t i = 0; i < tangent->in_count; i++)
    a[i] = i < residuals ? results[m + i] : test_random_tensor(&random, tangent->types[i], -1, 1);
  for (uint32_t i = 0; i < transposed->in_count; i++)
    b[i] = i < residuals ? a[i] : test_random_tensor(&random, transposed->types[i], -1, 1);
  test_run(tangent, a, dy);
  test_run(transposed, b, ct);
  TEST_NEAR(test_inner(dy, b + residuals, dys), test_inner(a + residuals, ct, dxs), 1e-9);
  for (uint32_t i = 0; i < n + dxs; i++) both[i] = i < n ? in[i] : a[residuals + i - n];
  test_run(jvp, both, out);
  for (uint32_t k = 0; k < m; k++) TEST_TENSORS_NEAR(out[k], results[k], 1e-12);
  for (uint32_t k = 0; k < dys; k++) TEST_TENSORS_NEAR(out[m + k], dy[k], 1e-9);
  test_release(results, primal->out_count);
  test_release(a + residuals, dxs);
  test_release(b + residuals, dys);
  test_release(dy, dys);
  test_release(ct, dxs);
  test_release(out, jvp->out_count);
  ax_program_release(primal), ax_program_release(tangent), ax_program_release(transposed), ax_program_release(jvp);
  free(results), free(a), free(b), free(dy), free(ct), free(both), free(out), free(linear);
}

/* vmap over the inputs of `mapped` (a bit each), in front, against one run a member. */
static void check_vmap(const ax_program *program, uint32_t mapped, uint32_t seed) {
  enum { size = 3 };
  ax_program *vmapped;
  uint32_t n = program->in_count, m = program->out_count;
  int64_t *axes = calloc(n, sizeof axes[0]);
  ax_tensor **in = calloc(n, sizeof in[0]), **one = calloc(n, sizeof in[0]), **out = calloc(m, sizeof in[0]),
            **each = calloc(m, sizeof in[0]);
  for (uint32_t i = 0; i < n; i++) axes[i] = mapped >> i & 1 ? 0 : UNMAPPED;
  TEST_OK(ax_program_vmap(program, &(ax_vmap_options){.in_axes = {n, axes}, .size = size}, &vmapped));
  TEST_OK(ax_program_verify(vmapped));
  random_inputs(vmapped, seed, in);
  test_run(vmapped, in, out);
  for (int64_t member = 0; member < size; member++) {
    for (uint32_t i = 0; i < n; i++) {
      TEST_OK(ax_tensor_create(&program->types[i], &one[i]));
      for (int64_t e = 0; e < test_elems(one[i]); e++)
        test_set(one[i], e, test_get(in[i], axes[i] < 0 ? e : member * test_elems(one[i]) + e));
    }
    test_run(program, one, each);
    for (uint32_t k = 0; k < m; k++)
      for (int64_t e = 0; e < test_elems(each[k]); e++)
        TEST_NEAR(test_get(out[k], member * test_elems(each[k]) + e), test_get(each[k], e), 1e-12);
    test_release(one, n);
    test_release(each, m);
  }
  test_release(in, n);
  test_release(out, m);
  ax_program_release(vmapped);
  free(axes), free(in), free(one), free(out), free(each);
}

static void check_text(const ax_program *program) {
  char *text;
  ax_program *again;
  TEST_OK(ax_program_print(program, &text));
  TEST_OK(ax_program_parse(text, strlen(text), "text", &again));
  assert_true(ax_program_equal(program, again));
  ax_string_free(text);
  ax_program_release(again);
}

enum { no_reverse = 1 };
static void check_all(ax_function function, void *context, const ax_type *types, uint32_t in_count, uint32_t out_count,
                      int flags) {
  ax_program *program = test_trace(function, context, types, in_count, out_count), *jvp;
  ax_tensor **in = calloc(in_count, sizeof in[0]);
  TEST_OK(ax_program_verify(program));
  check_text(program);
  for (uint32_t seed = 1; seed < 5; seed++) {
    random_inputs(program, seed, in);
    check_jvp(program, in, seed + 10);
    if (!(flags & no_reverse)) check_transpose(program, in, seed + 20);
    if (seed == 1) TEST_EVERY_WAY(program, in, 1e-12);
    test_release(in, in_count);
    for (uint32_t mapped = 1; mapped < 1u << in_count; mapped++) check_vmap(program, mapped, seed + 30);
  }
  TEST_OK(ax_program_jvp(program, AX_ALL_ARGS, &jvp)); /* second derivatives, and vmap of the derivative */
  uint32_t jvp_in = jvp->in_count;
  ax_tensor **more = calloc(jvp_in, sizeof in[0]);
  random_inputs(jvp, 5, more);
  check_text(jvp);
  check_jvp(jvp, more, 6);
  TEST_EVERY_WAY(jvp, more, 1e-12);
  if (!(flags & no_reverse)) check_transpose(jvp, more, 7);
  check_vmap(jvp, 1, 8);
  test_release(more, jvp_in);
  ax_program_release(program);
  ax_program_release(jvp);
  free(in), free(more);
}

/* --- cond --- */

static ax_value constant(double value) { return ax_full(AX_F64, AX_DIMS(), value); }

typedef struct captured {
  ax_value value;
  int which;
} captured;

static void branch(const ax_value *in, ax_value *out, void *context) {
  const captured *c = context;
  switch (c->which) {
    case 0: out[0] = ax_mul(in[0], c->value); break;
    case 1: out[0] = ax_exp(ax_mul(in[0], in[0])); break;
    default: out[0] = ax_full_like(in[0], 3); break;
  }
  out[1] = c->which == 1 ? ax_mul(in[1], ax_reduce_sum(in[0], AX_DIMS(0), false)) : in[1];
}

static void conditional(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  captured c[] = {{ax_mul(in[3], in[3]), 0}, {in[3], 1}, {in[3], 2}};
  const ax_fn branches[] = {AX_CLOSURE(branch, 2, 2, &c[0]), AX_CLOSURE(branch, 2, 2, &c[1]), AX_CLOSURE(branch, 2, 2, &c[2])};
  ax_value index = ax_convert_element_type(ax_mul(in[0], constant(4)), AX_S32);
  ax_switch(index, AX_LIST(3, branches), in + 1, out);
}

static void test_cond(void **state) {
  (void)state;
  ax_type types[] = {TEST_SCALAR(AX_F64), TEST_TYPE(AX_F64, 3), TEST_SCALAR(AX_F64), TEST_SCALAR(AX_F64)};
  check_all(conditional, NULL, types, 4, 2, 0);
}

static void choose(const ax_value *in, ax_value *out, void *context) {
  captured c[] = {{in[1], 0}, {in[1], 1}, {in[1], 2}};
  const ax_fn branches[] = {AX_CLOSURE(branch, 2, 2, &c[0]), AX_CLOSURE(branch, 2, 2, &c[1]), AX_CLOSURE(branch, 2, 2, &c[2])};
  ax_value pair[2], xs[] = {ax_reshape(in[1], AX_DIMS(1)), in[1]};
  if (context != NULL) ax_if(ax_gt(in[0], constant(0)), branches[1], branches[0], xs, pair);
  else ax_switch(ax_convert_element_type(in[0], AX_S32), AX_LIST(3, branches), xs, pair);
  out[0] = ax_reshape(pair[0], AX_DIMS());
}

/* An index out of range is clamped; a bool chooses the first branch when false. */
static void test_cond_index(void **state) {
  (void)state;
  ax_type types[] = {TEST_SCALAR(AX_F64), TEST_SCALAR(AX_F64)};
  ax_program *by_index = test_trace(choose, NULL, types, 2, 1), *by_bool = test_trace(choose, "bool", types, 2, 1);
  const double cases[][3] = {{-7, 2, 4}, {0, 2, 4}, {2, 2, 3}, {9, 2, 3}};
  for (size_t i = 0; i < AX_COUNT(cases); i++) {
    double y;
    test_run_scalars(by_index, cases[i], &y);
    TEST_NEAR(y, cases[i][2], 0);
  }
  double y;
  test_run_scalars(by_bool, (double[]){-1, 2}, &y);
  TEST_NEAR(y, 4, 0);
  test_run_scalars(by_bool, (double[]){1, 0}, &y);
  TEST_NEAR(y, 1, 0);
  ax_program_release(by_index);
  ax_program_release(by_bool);
}

/* --- scan --- */

typedef struct weights {
  ax_value w, b;
  bool permute;
} weights;

/* h = tanh(w h + x + b), s = s + h.h; the carries may change places. */
static void cell(const ax_value *in, ax_value *out, void *context) {
  const weights *w = context;
  ax_value h = ax_tanh(ax_add(ax_matmul(w->w, in[0]), ax_add(in[3], w->b)));
  out[0] = h;
  out[1] = ax_add(in[1], ax_reduce_sum(ax_mul(h, h), AX_DIMS(0), false));
  out[2] = ax_add(in[2], ax_full(AX_S32, AX_DIMS(), 1));
  if (w->permute) {
    out[0] = ax_mul(ax_broadcast_in_dim(in[1], AX_DIMS(2), NULL), ax_full_like(in[0], 0.5));
    out[1] = ax_reduce_sum(in[0], AX_DIMS(0), false);
  }
  out[3] = ax_mul(h, in[4]);
  out[4] = ax_mul(ax_convert_element_type(in[2], AX_F64), in[4]);
}

static void recur(const ax_value *in, ax_value *out, void *context) {
  const int *mode = context;
  weights w = {in[0], ax_exp(in[1]), (*mode & 2) != 0};
  ax_value operands[] = {in[2], constant(0), ax_full(AX_S32, AX_DIMS(), 0), in[3], ax_mul(in[4], in[4])}, results[5];
  ax_scan(AX_CLOSURE(cell, 5, 5, &w), 3, -1, (*mode & 1) != 0, operands, results);
  out[0] = results[0], out[1] = results[1], out[2] = results[3], out[3] = results[4];
}

static void test_scan(void **state) {
  (void)state;
  ax_type types[] = {TEST_TYPE(AX_F64, 2, 2), TEST_TYPE(AX_F64, 2), TEST_TYPE(AX_F64, 2), TEST_TYPE(AX_F64, 4, 2),
                     TEST_TYPE(AX_F64, 4)};
  for (int mode = 0; mode < 4; mode++) check_all(recur, &mode, types, 5, 4, 0);
}

static void inner_step(const ax_value *in, ax_value *out, void *context) {
  const ax_value *outer = context;
  out[0] = ax_add(ax_mul(in[0], in[1]), ax_sub(*outer, in[0]));
  out[1] = ax_mul(in[0], *outer);
}

static void outer_step(const ax_value *in, ax_value *out, void *context) {
  const ax_value *xs = context;
  ax_value results[2], start[] = {in[0], *xs}, factor = ax_mul(in[1], in[1]);
  ax_scan(AX_CLOSURE(inner_step, 2, 2, &factor), 1, -1, true, start, results);
  out[0] = ax_tanh(results[0]);
  out[1] = results[1];
}

static void nested(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value xs = in[1];
  ax_scan(AX_CLOSURE(outer_step, 2, 2, &xs), 1, 2, false, AX_VALUES(in[0], in[2]), out);
}

static void test_scan_nested(void **state) {
  (void)state;
  ax_type types[] = {TEST_SCALAR(AX_F64), TEST_TYPE(AX_F64, 3), TEST_TYPE(AX_F64, 2)};
  check_all(nested, NULL, types, 3, 2, 0);
}

static void no_steps(const ax_value *in, ax_value *out, void *context) {
  const int *mode = context;
  weights w = {in[0], in[1], false};
  ax_value operands[] = {in[2], constant(7), ax_full(AX_S32, AX_DIMS(), 0), ax_full(AX_F64, AX_DIMS(0, 2), 0),
                         ax_full(AX_F64, AX_DIMS(0), 0)};
  ax_value results[5];
  ax_scan(AX_CLOSURE(cell, 5, 5, &w), 3, 0, *mode != 0, operands, results);
  for (int k = 0; k < 2; k++) out[k] = results[k];
  out[2] = results[3];
}

static void test_scan_empty(void **state) {
  (void)state;
  ax_type types[] = {TEST_TYPE(AX_F64, 2, 2), TEST_TYPE(AX_F64, 2), TEST_TYPE(AX_F64, 2)};
  for (int mode = 0; mode < 2; mode++) {
    ax_program *program = test_trace(no_steps, &mode, types, 3, 3);
    ax_tensor *in[3], *out[3];
    random_inputs(program, 3, in);
    test_run(program, in, out);
    TEST_TENSORS_NEAR(out[0], in[2], 0);
    TEST_NEAR(test_get(out[1], 0), 7, 0);
    assert_int_equal(test_elems(out[2]), 0);
    test_release(in, 3);
    test_release(out, 3);
    ax_program_release(program);
  }
}

/* --- while --- */

static void below(const ax_value *in, ax_value *out, void *context) {
  const ax_value *limit = context;
  out[0] = ax_lt(in[0], ax_add(*limit, constant(20)));
}

static void grow(const ax_value *in, ax_value *out, void *context) {
  const ax_value *limit = context;
  out[0] = ax_add(in[0], ax_add(ax_mul(in[0], constant(0.5)), constant(1)));
  out[1] = ax_mul(ax_sub(in[1], ax_broadcast_in_dim(*limit, AX_DIMS(2), NULL)), ax_full_like(in[1], 0.7));
  out[2] = in[2];
}

static void repeat(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value limit = in[1], carries[3];
  ax_while(AX_CLOSURE(below, 3, 1, &limit), AX_CLOSURE(grow, 3, 3, &limit), AX_VALUES(in[0], in[2], in[1]), carries);
  for (int k = 0; k < 3; k++) out[k] = carries[k];
}

static void test_while(void **state) {
  (void)state;
  ax_type types[] = {TEST_SCALAR(AX_F64), TEST_SCALAR(AX_F64), TEST_TYPE(AX_F64, 2)};
  check_all(repeat, NULL, types, 3, 3, no_reverse);
  ax_program *program = test_trace(repeat, NULL, types, 3, 3), *primal, *tangent, *transposed;
  uint32_t residuals;
  TEST_OK(ax_program_linearize(program, AX_ALL_ARGS, &primal, &tangent, &residuals));
  bool *linear = calloc(tangent->in_count, 1);
  for (uint32_t i = residuals; i < tangent->in_count; i++) linear[i] = true;
  TEST_FAILS(ax_program_transpose(tangent, test_args(linear, ax_program_in_count(tangent)), &transposed), AX_ABSENT,
             "while has no reverse-mode derivative");
  ax_program_release(program), ax_program_release(primal), ax_program_release(tangent);
  free(linear);
}

/* --- shard_map --- */

/* x[4/data, 6/model], w[6/model, 2], scale[2]: a loss with sums over both axes, and results laid out in every way. */
static void layer(const ax_value *in, ax_value *out, void *context) {
  const ax_value *outer = context;
  ax_value h = ax_tanh(ax_psum(ax_matmul(in[0], in[1]), "model"));
  ax_value scaled = ax_mul(h, ax_broadcast_in_dim(in[2], AX_DIMS(2, 2), AX_DIMS(1)));
  out[0] = ax_pmean(ax_reduce_mean(ax_mul(scaled, scaled), AX_ALL_DIMS, false), "data");
  out[1] = scaled;
  out[2] = ax_mul(ax_exp(in[1]), ax_full_like(in[1], 2));
  ax_value captured = ax_reduce_sum(ax_mul(*outer, *outer), AX_DIMS(0), false);
  out[3] = ax_mul(captured, ax_full_like(captured, 3));
}

/* The layer also uses its last operand as it is outside. */
static void map_layer(const ax_value *in, ax_value *out, void *context) {
  test_map m = *(const test_map *)context;
  ax_value outer = in[2];
  m.context = &outer;
  test_map_body(in, out, &m);
}

static void maps_over_meshes(void **state) {
  (void)state;
  ax_type types[] = {TEST_TYPE(AX_F64, 4, 6), TEST_TYPE(AX_F64, 6, 2), TEST_TYPE(AX_F64, 2)};
  test_map m = {"data=2,model=3", {"data,model", "model", ""}, {"", "data", "model", ""}, .body = layer};
  check_all(map_layer, &m, types, 3, 4, 0);
  m.unchecked = true;
  check_all(map_layer, &m, types, 3, 4, 0);
  m.unchecked = false;
  m.out_specs[2] = "_,model"; /* blocks of a varying value along another dimension */
  check_all(map_layer, &m, types, 3, 4, 0);
}

/* Collectives in a scan; a carry that starts invariant and becomes varying; an invariant result put together from equal blocks. */
static void step(const ax_value *in, ax_value *out, void *context) {
  const ax_value *w = context;
  ax_value y = ax_add(ax_psum(ax_tanh(in[0]), "data"), ax_mul(in[1], *w));
  out[0] = ax_tanh(ax_add(y, in[1]));
  out[1] = ax_psum(out[0], "data");
}

static void same(const ax_value *in, ax_value *out, void *context) {
  const ax_value *w = context;
  out[0] = ax_mul(in[0], *w);
}

static void other(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_psum(ax_mul(in[0], in[0]), "data");
}

static void loops(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value results[2], w = in[1], chosen;
  ax_scan(AX_CLOSURE(step, 2, 2, &w), 1, -1, true, AX_VALUES(ax_full(AX_F64, AX_DIMS(), 0.5), in[0]), results);
  out[0] = ax_psum(results[0], "data");
  out[1] = results[1];
  ax_if(ax_gt(in[1], constant(0)), AX_CLOSURE(other, 1, 1, &w), AX_CLOSURE(same, 1, 1, &w), results, &chosen);
  out[2] = ax_reshape(chosen, AX_DIMS(1));
  ax_if(ax_gt(results[0], constant(0)), AX_CLOSURE(same, 1, 1, &w), AX_CLOSURE(same, 1, 1, &w), &w, &chosen);
  out[3] = ax_reshape(chosen, AX_DIMS(1));
  out[4] = ax_reshape(ax_mul(w, w), AX_DIMS(1));
}

static void test_loops_on_mesh(void **state) {
  (void)state;
  ax_type types[] = {TEST_TYPE(AX_F64, 6), TEST_SCALAR(AX_F64)};
  test_map m = {"data=2", {"data", ""}, {"", "", "data", "data", "data"}, .body = loops};
  check_all(test_map_body, &m, types, 2, 5, 0);
  m.mesh = "data=3";
  m.unchecked = true;
  check_all(test_map_body, &m, types, 2, 5, 0);
}

/* shard_maps in a loop and in a branch of the whole program: a training loop. */
static void gradient_step(const ax_value *in, ax_value *out, void *context) {
  const ax_value *w = context;
  ax_value error = ax_sub(ax_mul(in[0], *w), in[1]);
  out[0] = ax_pmean(ax_reduce_mean(ax_mul(error, error), AX_ALL_DIMS, false), "data");
}

static void sharded_loss(const ax_value *in, ax_value *out, void *context) {
  const ax_value *data = context;
  const char *in_specs[] = {"data", "data"}, *out_specs[] = {""};
  ax_mesh mesh;
  ax_value w = in[0];
  TEST_OK(ax_mesh_parse("data=2", &mesh));
  test_shard_map(&mesh, in_specs, out_specs, false, AX_CLOSURE(gradient_step, 2, 1, &w), data, out);
}

static void update(const ax_value *in, ax_value *out, void *context) {
  ax_value pair[2];
  ax_value_and_grad(AX_CLOSURE(sharded_loss, 1, 1, context), AX_FIRST(1), in, pair);
  out[0] = ax_sub(in[0], ax_mul(pair[1], constant(0.1)));
  out[1] = pair[0];
}

static void keep(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[0];
}

static void train(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value data[] = {in[1], in[2]};
  ax_scan(AX_CLOSURE(update, 1, 2, data), 1, 3, false, in, out);
  ax_if(ax_lt(in[0], constant(0)), AX_FN(keep, 1, 1), AX_CLOSURE(sharded_loss, 1, 1, data), in, &out[2]);
}

static void test_training_loop(void **state) {
  (void)state;
  ax_type types[] = {TEST_SCALAR(AX_F64), TEST_TYPE(AX_F64, 4), TEST_TYPE(AX_F64, 4)};
  check_all(train, NULL, types, 3, 3, 0);
}

/* --- What is refused --- */

typedef struct bad {
  ax_function body;
  const char *mesh, *in_spec, *out_spec, *part;
  bool unchecked;
} bad;

static void whole_sum(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_reduce_sum(in[0], AX_DIMS(0), false);
}

static void by_index(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value start = ax_reduce_sum(in[0], AX_DIMS(0), false), w = start;
  ax_switch(ax_axis_index("data"), AX_FNS(AX_CLOSURE(same, 1, 1, &w), AX_CLOSURE(other, 1, 1, &w)), &start, out);
}

static void not_done(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_lt(in[0], constant(10));
}

static void sum_up(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(ax_psum(in[0], "data"), constant(1));
}

static void until(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value start = ax_reduce_sum(in[0], AX_DIMS(0), false);
  ax_while(AX_FN(not_done, 1, 1), AX_FN(sum_up, 1, 1), &start, out);
}

static void nest(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("data=2", &mesh));
  const char *specs[] = {""};
  test_shard_map(&mesh, specs, specs, false, AX_FN(whole_sum, 1, 1), in, out);
}

static void map_bad(const ax_value *in, ax_value *out, void *context) {
  const bad *b = context;
  test_map m = {b->mesh, {b->in_spec}, {b->out_spec}, .body = b->body, .unchecked = b->unchecked};
  test_map_body(in, out, &m);
}

static void test_refused(void **state) {
  (void)state;
  static const bad cases[] = {
      {whole_sum, "data=2", "data", "",
       "out[0]: f64[]{V:data} varies over \"data\", but its spec P() promises it does not", false},
      {whole_sum, "data=2,model=3", "model+data", "", "varies over \"data\", \"model\", but its spec P()", false},
      {whole_sum, "data=5", "data", "", "the spec P(data) cuts dimension 0 in 5 parts, which do not divide f64[6]",
       false},
      {whole_sum, "data=2", "_,data", "", "the spec P(_, data) has more entries than there are dimensions in f64[6]",
       false},
      {whole_sum, "data=2", "data", "data", "result 0: the spec P(data) has more entries", false},
      {whole_sum, "data=2", "batch", "", "operand 0: spec \"batch\": unknown axis \"batch\"", false},
      {by_index, "data=2", "data", "", "not all of them would reach the psum over {data} in it (equation ", false},
      {until, "data=2", "data", "", "not all of them would reach the psum over {data} in the body", false},
      {nest, "data=2", "data", "", "the axis \"data\" is in use", false},
  };
  ax_type type = TEST_TYPE(AX_F64, 6);
  for (size_t i = 0; i < AX_COUNT(cases); i++) {
    ax_program *program;
    TEST_FAILS(ax_trace(AX_CLOSURE(map_bad, 1, 1, (void *)&cases[i]), &type, &program), AX_INVALID_ARGUMENT, cases[i].part);
    assert_null(program);
  }
}

/* Unchecked, what would deadlock is found when it runs. */
static void test_deadlock(void **state) {
  (void)state;
  static const bad cases[] = {{by_index, "data=2", "data", "", "never come: 0 (data=0)", true},
                              {until, "data=2", "data", "", "psum", true}};
  ax_type type = TEST_TYPE(AX_F64, 6);
  const double x[] = {20, 20, 20, 1, 1, 1};
  ax_tensor *in = test_tensor(type, x), *out;
  ax_runtime *runtime;
  ax_array *array, *result;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  TEST_OK(ax_device_put_data(runtime, NULL, "", &type, in->data, &array));
  for (size_t i = 0; i < AX_COUNT(cases); i++) {
    ax_executable *executable;
    ax_program *program = test_trace(map_bad, (void *)&cases[i], &type, 1, 1);
    TEST_FAILS(ax_evaluate(program, &in, &out), AX_DEADLOCK, cases[i].part);
    TEST_OK(ax_compile(runtime, program, NULL, &executable));
    TEST_FAILS(ax_run(executable, &array, &result), AX_DEADLOCK, "psum");
    ax_executable_release(executable);
    ax_program_release(program);
  }
  ax_array_release(array);
  ax_runtime_release(runtime);
  test_release(&in, 1);
}

static void wrong_carry(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_convert_element_type(in[0], AX_F32);
}

static void shorter(const ax_value *in, ax_value *out, void *context) {
  (void)in, (void)context;
  out[0] = ax_full(AX_F64, AX_DIMS(2), 1);
}

static void identity(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[0];
}

static void mismatched(const ax_value *in, ax_value *out, void *context) {
  switch (*(const int *)context) {
    case 0: ax_scan(AX_FN(wrong_carry, 1, 1), 1, 3, false, in, out); break;
    case 1: ax_while(AX_FN(not_done, 1, 1), AX_FN(wrong_carry, 1, 1), in, out); break;
    case 2: ax_while(AX_FN(wrong_carry, 1, 1), AX_FN(identity, 1, 1), in, out); break;
    case 3: ax_switch(in[0], AX_FNS(AX_FN(identity, 1, 1), AX_FN(shorter, 1, 1)), in, out); break;
    case 4: ax_if(ax_gt(in[0], constant(0)), AX_FN(shorter, 1, 1), AX_FN(identity, 1, 1), in, out); break;
    case 5: ax_scan(AX_FN(identity, 1, 1), 1, -1, false, in, out); break;
    case 6: ax_scan(AX_FN(identity, 1, 1), 0, -1, false, in, out); break;
    default: ax_switch(ax_axis_index(""), AX_LIST(0, NULL), in, out); break;
  }
}

static void test_mismatched(void **state) {
  (void)state;
  const char *const parts[] = {
      "scan f64[]: carry 0 is f64[], but the body returns f32[]",
      "while f64[]: carry 0 is f64[], but the body returns f32[]",
      "the condition gives f32[], not bool[]",
      "the index is f64[]; it must be an s32 scalar",
      "if: then: result 0 is f64[2], but of otherwise it is f64[]",
      "there is neither a length nor xs",
      "xs 0 is a scalar",
      "switch: there is no branch",
  };
  ax_type type = TEST_SCALAR(AX_F64);
  for (int i = 0; i < (int)AX_COUNT(parts); i++) {
    ax_program *program;
    TEST_FAILS(ax_trace(AX_CLOSURE(mismatched, 1, 1, &i), &type, &program), AX_INVALID_ARGUMENT, parts[i]);
  }
}

/* --- A named axis of vmap, against the same axis as devices --- */

static void all_regions(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value results[2], w = in[1], chosen, start = ax_psum(in[1], "data");
  ax_scan(AX_CLOSURE(step, 2, 2, &w), 1, -1, false, AX_VALUES(ax_full(AX_F64, AX_DIMS(), 0.5), in[0]), results);
  ax_if(ax_gt(start, constant(0)), AX_CLOSURE(other, 1, 1, &w), AX_CLOSURE(same, 1, 1, &w), results, &chosen);
  out[0] = ax_add(results[0], chosen);
  out[1] = results[1];
  ax_while(AX_FN(not_done, 1, 1), AX_FN(sum_up, 1, 1), &start, &out[2]);
  ax_switch(ax_axis_index("data"), AX_FNS(AX_CLOSURE(same, 1, 1, &w), AX_CLOSURE(same, 1, 1, &start)), &w, &out[3]);
}

static void as_devices(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = ax_reshape(in[0], AX_DIMS(4)), w = ax_reshape(in[1], AX_DIMS()), results[4];
  all_regions((ax_value[]){x, w}, results, NULL);
  out[0] = ax_reshape(results[0], AX_DIMS(1));
  out[1] = results[1];
  out[2] = results[2];
  out[3] = ax_reshape(results[3], AX_DIMS(1));
}

static void test_named_axis(void **state) {
  (void)state;
  test_map m = {"data=3", {"data", "data"}, {"data", "", "", "data"}, .body = as_devices};
  ax_type types[] = {TEST_TYPE(AX_F64, 3, 4), TEST_TYPE(AX_F64, 3)};
  ax_type one[] = {TEST_TYPE(AX_F64, 4), TEST_SCALAR(AX_F64)};
  one[0].spread.varying = one[1].spread.varying = 1;
  ax_mesh axes;
  TEST_OK(ax_mesh_parse("data=3", &axes));
  ax_program *on_devices = test_trace(test_map_body, &m, types, 2, 4), *member, *vmapped;
  TEST_OK(ax_trace_on(&axes, AX_FN(all_regions, 2, 4), one, &member));
  TEST_OK(ax_program_vmap(
      member, &(ax_vmap_options){.out_axes = {AX_DIMS(0, UNMAPPED, UNMAPPED, 0)}, .size = 3, .axis_name = "data"}, &vmapped));
  TEST_OK(ax_program_verify(vmapped));
  for (uint32_t seed = 1; seed < 4; seed++) {
    ax_tensor *in[2], *a[4], *b[4];
    random_inputs(on_devices, seed, in);
    test_run(on_devices, in, a);
    test_run(vmapped, in, b);
    for (int k = 0; k < 4; k++) TEST_TENSORS_NEAR(a[k], b[k], 1e-12);
    test_release(in, 2), test_release(a, 4), test_release(b, 4);
  }
  ax_program_release(on_devices), ax_program_release(member), ax_program_release(vmapped);
}

/* A shard_map inside a vmap with a named axis: its body's environment has both axes until the named one goes. */
static void inside_vmap(const ax_value *in, ax_value *out, void *context) {
  ax_value results[5], summed = ax_psum(in[0], "batch");
  test_map_body((ax_value[]){summed, in[1]}, results, context);
  out[0] = ax_add(results[0], ax_psum(results[0], "batch"));
  out[1] = results[3];
}

static void test_shard_map_in_named_axis(void **state) {
  (void)state;
  test_map m = {"data=2", {"data", ""}, {"", "", "data", "data", "data"}, .body = loops};
  ax_type types[] = {TEST_TYPE(AX_F64, 6), TEST_SCALAR(AX_F64)};
  types[0].spread.varying = types[1].spread.varying = 1;
  ax_mesh axes;
  TEST_OK(ax_mesh_parse("batch=3", &axes));
  ax_program *member, *vmapped, *plain;
  TEST_OK(ax_trace_on(&axes, AX_CLOSURE(inside_vmap, 2, 2, &m), types, &member));
  check_text(member);
  TEST_OK(ax_program_vmap(member, &(ax_vmap_options){.size = 3, .axis_name = "batch"}, &vmapped));
  TEST_OK(ax_program_verify(vmapped));
  types[0].spread.varying = types[1].spread.varying = 0;
  plain = test_trace(test_map_body, &m, types, 2, 5);
  ax_tensor *in[2], *out[2], *each[3][5];
  random_inputs(vmapped, 1, in);
  test_run(vmapped, in, out);
  double sum = 0;
  for (int b = 0; b < 3; b++) {
    ax_tensor *one[2];
    TEST_OK(ax_tensor_create(&types[0], &one[0]));
    TEST_OK(ax_tensor_create(&types[1], &one[1]));
    for (int e = 0; e < 6; e++)
      test_set(one[0], e, test_get(in[0], e) + test_get(in[0], 6 + e) + test_get(in[0], 12 + e));
    test_set(one[1], 0, test_get(in[1], b));
    test_run(plain, one, each[b]);
    sum += test_get(each[b][0], 0);
    test_release(one, 2);
  }
  for (int b = 0; b < 3; b++) {
    TEST_NEAR(test_get(out[0], b), test_get(each[b][0], 0) + sum, 1e-12);
    TEST_NEAR(test_get(out[1], 2 * b + 1), test_get(each[b][3], 1), 1e-12);
    test_release(each[b], 5);
  }
  test_release(in, 2), test_release(out, 2);
  ax_program_release(member), ax_program_release(vmapped), ax_program_release(plain);
}

/* --- Allocations failed in turn --- */

typedef struct job {
  ax_function function;
  void *context;
  const ax_type *types;
  uint32_t in_count, out_count;
} job;

static ax_status transformed(ax_program *program) {
  ax_program *jvp = NULL, *primal = NULL, *tangent = NULL, *transposed = NULL, *vmapped = NULL;
  uint32_t residuals = 0;
  ax_status status = ax_program_jvp(program, AX_ALL_ARGS, &jvp);
  if (status == AX_OK) status = ax_program_linearize(program, AX_ALL_ARGS, &primal, &tangent, &residuals);
  if (status == AX_OK) status = ax_program_vmap(program, &(ax_vmap_options){.size = 2}, &vmapped);
  bool linear[64] = {0};
  for (uint32_t i = residuals; status == AX_OK && i < tangent->in_count; i++) linear[i] = true;
  if (status == AX_OK) status = ax_program_transpose(tangent, test_args(linear, ax_program_in_count(tangent)), &transposed);
  ax_program_release(jvp), ax_program_release(primal), ax_program_release(tangent);
  ax_program_release(transposed), ax_program_release(vmapped);
  return status;
}

static ax_status do_job(void *context) {
  const job *j = context;
  ax_program *program;
  ax_tensor *in[8] = {0}, *out[8] = {0};
  ax_status status = ax_trace(AX_CLOSURE(j->function, j->in_count, j->out_count, j->context), j->types, &program);
  for (uint32_t i = 0; status == AX_OK && i < j->in_count; i++) status = ax_tensor_create(&j->types[i], &in[i]);
  if (status == AX_OK) status = ax_evaluate(program, in, out);
  ax_plan *plan = NULL;
  if (status == AX_OK) status = transformed(program);
  if (status == AX_OK) status = test_make_plan(program, &plan);
  ax_plan_destroy(plan);
  for (int i = 0; i < 8; i++) ax_tensor_release(in[i]), ax_tensor_release(out[i]);
  ax_program_release(program);
  return status;
}

static void test_out_of_memory(void **state) {
  (void)state;
  int mode = 3;
  test_map m = {"data=2", {"data", ""}, {"", "", "data", "data", "data"}, .body = loops};
  ax_type of_cond[] = {TEST_SCALAR(AX_F64), TEST_TYPE(AX_F64, 3), TEST_SCALAR(AX_F64), TEST_SCALAR(AX_F64)};
  ax_type of_scan[] = {TEST_TYPE(AX_F64, 2, 2), TEST_TYPE(AX_F64, 2), TEST_TYPE(AX_F64, 2), TEST_TYPE(AX_F64, 4, 2),
                       TEST_TYPE(AX_F64, 4)};
  ax_type of_map[] = {TEST_TYPE(AX_F64, 6), TEST_SCALAR(AX_F64)};
  job jobs[] = {{conditional, NULL, of_cond, 4, 2}, {recur, &mode, of_scan, 5, 4}, {test_map_body, &m, of_map, 2, 5}};
  for (size_t i = 0; i < AX_COUNT(jobs); i++) assert_true(test_each_allocation(do_job, &jobs[i]) > 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_cond),       cmocka_unit_test(test_cond_index), cmocka_unit_test(test_scan),
      cmocka_unit_test(test_scan_nested), cmocka_unit_test(test_scan_empty), cmocka_unit_test(test_while),
      cmocka_unit_test(maps_over_meshes),  cmocka_unit_test(test_loops_on_mesh), cmocka_unit_test(test_refused),
      cmocka_unit_test(test_deadlock),   cmocka_unit_test(test_mismatched),
      cmocka_unit_test(test_named_axis), cmocka_unit_test(test_shard_map_in_named_axis),
      cmocka_unit_test(test_out_of_memory), cmocka_unit_test(test_training_loop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
