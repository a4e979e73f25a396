/* Loops with many carries: the cost of what asks how far derivatives, batch dimensions and needs reach follows their number,
   however long the way from carry to carry is; and which carries take part in a scan's transpose. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "ir/transform.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/run.h"

/* --- Cost: allocations, which follow the work --- */

/* A carry takes the value of the next one: what goes in at the last comes to the first in as many steps as there are carries.
   `inside`: the same in a scan in the scan's body. */
typedef struct shift {
  uint32_t carries;
  bool inside;
} shift;

static void next_carry(const ax_value *in, ax_value *out, void *context) {
  const shift *s = context;
  for (uint32_t k = 0; k + 1 < s->carries; k++) out[k] = ax_neg(in[k + 1]);
  out[s->carries - 1] = ax_tanh(in[s->carries - 1]);
}
static void in_a_scan(const ax_value *in, ax_value *out, void *context) {
  ax_scan(AX_CLOSURE(next_carry, ((const shift *)context)->carries, ((const shift *)context)->carries, context),
          ((const shift *)context)->carries, 1, false, in, out);
}
static void shifted(const ax_value *in, ax_value *out, void *context) {
  const shift *s = context;
  ax_value *made = calloc(s->carries, sizeof made[0]);
  ax_scan(AX_CLOSURE(s->inside ? in_a_scan : next_carry, s->carries, s->carries, context), s->carries, 4, false, in, made);
  out[0] = made[0];
  free(made);
}

static ax_program *trace_shift(const void *context) {
  shift s = *(const shift *)context;
  ax_type *types = calloc(s.carries, sizeof types[0]);
  for (uint32_t i = 0; i < s.carries; i++) types[i] = TEST_SCALAR(AX_F64);
  ax_program *program = test_trace(shifted, &s, types, s.carries, 1);
  free(types);
  return program;
}

/* By the last input alone. */
static ax_status forward(const ax_program *program, ax_program **out) {
  return ax_program_jvp(program, AX_RANGE(program->in_count - 1, 1), out);
}
static ax_status backward(const ax_program *program, ax_program **out) {
  return ax_program_grad(program, AX_FIRST(program->in_count), out);
}
static ax_status batched(const ax_program *program, ax_program **out) {
  int64_t *in_axes = calloc(program->in_count, sizeof in_axes[0]);
  for (uint32_t i = 0; i + 1 < program->in_count; i++) in_axes[i] = AX_NOT_MAPPED;
  ax_status status = ax_program_vmap(program, &(ax_vmap_options){.in_axes = {program->in_count, in_axes}, .size = 3}, out);
  free(in_axes);
  return status;
}

static double cost(ax_status (*transform)(const ax_program *, ax_program **), uint32_t carries, bool inside) {
  return test_bytes_asked(trace_shift, &(shift){carries, inside}, transform);
}

static void cost_follows_carries(void **state) {
  (void)state;
  ax_status (*const transforms[])(const ax_program *, ax_program **) = {forward, backward, batched, ax_program_dce};
  for (size_t t = 0; t < AX_COUNT(transforms); t++)
    for (int inside = 0; inside < 2; inside++)
      assert_true(cost(transforms[t], 512, inside) < 2.4 * cost(transforms[t], 256, inside));
}

/* --- Which carries come to vary --- */

/* Carry k takes the value of the next one, the last that of x, which varies; the first that follow `still` of them stay as they
   are. */
typedef struct varying {
  uint32_t carries, still;
  ax_value x;
  int calls;
  bool while_loop, other; /* other: traced again, its body has another loop first */
} varying;

static void hands_on(const ax_value *in, ax_value *out, void *context) {
  varying *v = context;
  v->calls++;
  for (uint32_t k = 0; k < v->carries; k++) out[k] = k < v->still ? ax_neg(in[k]) : k + 1 < v->carries ? ax_neg(in[k + 1]) : v->x;
}
static void never(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_lt(in[0], in[0]);
}
static void starts_constant(const ax_value *in, ax_value *out, void *context) {
  varying *v = context;
  ax_value *start = calloc(2 * v->carries, sizeof start[0]), *made = start + v->carries;
  for (uint32_t k = 0; k < v->carries; k++) start[k] = ax_full(AX_F64, AX_DIMS(), 1);
  v->x = in[0];
  if (v->while_loop) ax_while(AX_CLOSURE(never, v->carries, 1, v), AX_CLOSURE(hands_on, v->carries, v->carries, v), start, made);
  else ax_scan(AX_CLOSURE(hands_on, v->carries, v->carries, v), v->carries, 3, false, start, made);
  for (uint32_t k = 0; k < v->carries; k++) out[k] = made[k];
  free(start);
}

static ax_program *trace_varying(varying *v, ax_function function, uint32_t out_count) {
  ax_mesh mesh;
  ax_program *program;
  ax_type x = TEST_SCALAR(AX_F64);
  TEST_OK(ax_mesh_parse("d=2", &mesh));
  x.spread.varying = 1;
  TEST_OK(ax_trace_on(&mesh, AX_CLOSURE(function, 1, out_count, v), &x, &program));
  TEST_OK(ax_program_verify(program));
  return program;
}

static void types_are_found_at_once(void **state) {
  (void)state;
  for (int while_loop = 0; while_loop < 2; while_loop++) {
    varying v = {.carries = 50, .still = 7, .while_loop = while_loop};
    ax_program *program = trace_varying(&v, starts_constant, v.carries);
    assert_int_equal(v.calls, 2);
    for (uint32_t k = 0; k < v.carries; k++)
      assert_int_equal(ax_program_out_type(program, k)->spread.varying, k >= v.still);
    ax_program_release(program);
  }
}

/* A body that has another loop when its carry varies: what its first loop came to says nothing of that one. */
static void negates(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_neg(in[0]);
}
static void adds_x(const ax_value *in, ax_value *out, void *context) { out[0] = ax_add(in[0], ((const varying *)context)->x); }
static void differs_when_varying(const ax_value *in, ax_value *out, void *context) {
  varying *v = context;
  bool again = ax_typeof(in[0]).spread.varying != 0;
  ax_value start = ax_full(AX_F64, AX_DIMS(), 1), made;
  ax_scan(AX_CLOSURE(again ? negates : adds_x, 1, 1, v), 1, 2, false, &start, &made);
  out[0] = ax_mul(in[0], made);
  if (again) v->other = ax_typeof(made).spread.varying == 0;
}
static void outer_scan(const ax_value *in, ax_value *out, void *context) {
  ((varying *)context)->x = in[0];
  ax_value start = ax_full(AX_F64, AX_DIMS(), 1);
  ax_scan(AX_CLOSURE(differs_when_varying, 1, 1, context), 1, 2, false, &start, out);
}
static void another_loop_is_no_known_one(void **state) {
  (void)state;
  varying v = {0};
  ax_program_release(trace_varying(&v, outer_scan, 1));
  assert_true(v.other);
}

/* --- Which carries take part --- */

/* The last of n inputs reaches the first result in n - 1 steps of four. */
static void reaches_as_far_as_steps(void **state) {
  (void)state;
  for (int inside = 0; inside < 2; inside++)
    for (uint32_t carries = 1; carries < 8; carries++) {
      ax_program *program = trace_shift(&(shift){carries, inside}), *grad;
      double in[8] = {0}, out[8];
      TEST_OK(backward(program, &grad));
      test_run_scalars(grad, in, out);
      for (uint32_t i = 0; i < carries; i++) TEST_NEAR(out[i], i == (carries < 5 ? carries - 1 : 4) ? (i % 2 == 0 ? 1 : -1) : 0, 0);
      ax_program_release(grad), ax_program_release(program);
    }
}

/* Bodies that hand a carry to a program of which only another result has a cotangent: its own is zero there. */
static void second_unused(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_tanh(in[0]);
  out[1] = ax_mul(in[1], in[0]);
}
static void first_alone(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_mul(in[0], in[0]);
  out[1] = in[1];
}
static void through_cond(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_if(ax_gt(in[0], ax_full_like(in[0], 0)), AX_FN(first_alone, 2, 2), AX_FN(second_unused, 2, 2), in, out);
}
static void through_call(const ax_value *in, ax_value *out, void *context) {
  ax_closed_call(AX_CLOSURE(second_unused, 2, 2, context), in, out);
}
static void through_map(const ax_value *in, ax_value *out, void *context) {
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=2", &mesh));
  test_shard_map(&mesh, (const char *[]){"", ""}, (const char *[]){"", ""}, context != NULL, AX_FN(second_unused, 2, 2), in, out);
}
static void through_scan(const ax_value *in, ax_value *out, void *context) {
  ax_scan(AX_CLOSURE(second_unused, 2, 2, context), 2, 2, false, in, out);
}

typedef struct passing {
  ax_function body;
  void *context;
} passing;
static void passed(const ax_value *in, ax_value *out, void *context) {
  const passing *p = context;
  ax_value made[2];
  ax_scan(AX_CLOSURE(p->body, 2, 2, p->context), 2, 3, false, in, made);
  out[0] = made[0];
}

static void zero_cotangents_are_not_carried(void **state) {
  (void)state;
  bool unchecked = true;
  const passing each[] = {
      {through_cond, NULL}, {through_call, NULL}, {through_map, NULL}, {through_map, &unchecked}, {through_scan, NULL}};
  for (size_t i = 0; i < AX_COUNT(each); i++) {
    const ax_type types[] = {TEST_SCALAR(AX_F64), TEST_SCALAR(AX_F64)};
    ax_program *program = test_trace(passed, (void *)&each[i], types, 2, 1), *primal, *tangent, *transposed;
    uint32_t residuals;
    TEST_OK(ax_program_linearize(program, AX_ALL_ARGS, &primal, &tangent, &residuals));
    bool linear[8] = {0};
    for (uint32_t k = residuals; k < tangent->in_count; k++) linear[k] = true;
    TEST_OK(ax_program_transpose(tangent, test_args(linear, ax_program_in_count(tangent)), &transposed));
    bool made_zero[8], zero = false;
    ax_program_release(transposed);
    TEST_OK(ax_transpose_program(tangent, linear, &zero, made_zero, &transposed));
    assert_false(made_zero[residuals]);
    assert_true(made_zero[residuals + 1]);
    ax_program_release(program), ax_program_release(primal), ax_program_release(tangent), ax_program_release(transposed);
  }
}

/* --- A carry that no step changes is no residual of each step --- */

/* (h, v, w): two factors that are handed on as they came, or change places. */
typedef struct factors {
  bool swap, reverse, inside; /* inside: in a scan in the scan's body */
} factors;

static void times_factors(const ax_value *in, ax_value *out, void *context) {
  const bool swap = ((const factors *)context)->swap;
  out[0] = ax_sin(ax_mul(in[0], ax_add(in[1], ax_mul(in[2], in[2]))));
  out[1] = in[1 + swap];
  out[2] = in[2 - swap];
}
static void times_factors_often(const ax_value *in, ax_value *out, void *context) {
  ax_scan(AX_CLOSURE(times_factors, 3, 3, context), 3, 2, false, in, out);
}
static void with_factors(const ax_value *in, ax_value *out, void *context) {
  const factors *f = context;
  ax_value made[3];
  ax_scan(AX_CLOSURE(f->inside ? times_factors_often : times_factors, 3, 3, context), 3, 3, f->reverse, in, made);
  out[0] = made[0];
}

/* The derivatives by h, v and w, of as many steps, forward. */
static void derive_by_hand(const factors *f, const double *in, double *out) {
  double h = in[0], dh[3] = {1, 0, 0};
  for (int step = 0; step < (f->inside ? 6 : 3); step++) {
    const bool turned = f->swap && step % 2 == 1;
    const double v = in[1 + turned], w = in[2 - turned], by = cos(h * (v + w * w)), by_v = by * h, by_w = by * h * 2 * w;
    for (int i = 0; i < 3; i++) dh[i] *= by * (v + w * w);
    dh[1 + turned] += by_v;
    dh[2 - turned] += by_w;
    h = sin(h * (v + w * w));
  }
  memcpy(out, dh, sizeof dh);
}

/* The same with factors that the body captures. */
static void times_captured(const ax_value *in, ax_value *out, void *context) {
  const ax_value *outer = context;
  out[0] = ax_sin(ax_mul(in[0], ax_add(outer[1], ax_mul(outer[2], outer[2]))));
}
static void with_captured(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value start = in[0];
  ax_scan(AX_CLOSURE(times_captured, 1, 1, (void *)in), 1, 3, false, &start, out);
}

/* Residuals that a linearized program holds of each step. */
static uint32_t stacked_residuals(ax_function function, factors *f) {
  const ax_type types[] = {TEST_TYPE(AX_F64, 7), TEST_TYPE(AX_F64, 7), TEST_TYPE(AX_F64, 7)};
  ax_program *program = test_trace(function, f, types, 3, 1), *primal, *tangent;
  uint32_t residuals, count = 0;
  TEST_OK(ax_program_linearize(program, AX_ALL_ARGS, &primal, &tangent, &residuals));
  for (uint32_t r = 0; r < residuals; r++) count += tangent->types[r].rank == 2;
  ax_program_release(program), ax_program_release(primal), ax_program_release(tangent);
  return count;
}

static void kept_carries_are_not_stacked(void **state) {
  (void)state;
  assert_int_equal(stacked_residuals(with_factors, &(factors){0}), stacked_residuals(with_captured, NULL));
  assert_true(stacked_residuals(with_factors, &(factors){.swap = true}) > stacked_residuals(with_captured, NULL));
  for (int way = 0; way < 8; way++) {
    factors f = {way & 1, way >> 1 & 1, way >> 2 & 1};
    const ax_type scalars[] = {TEST_SCALAR(AX_F64), TEST_SCALAR(AX_F64), TEST_SCALAR(AX_F64)};
    const double in[] = {0.7, 1.3, -0.4};
    double out[3], by_hand[3];
    ax_program *program = test_trace(with_factors, &f, scalars, 3, 1), *grad;
    TEST_OK(backward(program, &grad));
    test_run_scalars(grad, in, out);
    derive_by_hand(&f, in, by_hand);
    for (int i = 0; i < 3; i++) TEST_NEAR(out[i], by_hand[i], 1e-12);
    ax_program_release(grad), ax_program_release(program);
  }
}

/* --- What began as parts of a sum stays that --- */

static void varying_again(const ax_value *in, ax_value *out, void *context) {
  (void)in, (void)context;
  out[0] = ax_pvary(ax_full(AX_F32, AX_DIMS(), 1), "d");
}
static void not_yet(const ax_value *in, ax_value *out, void *context) {
  (void)in, (void)context;
  out[0] = ax_full(AX_BOOL, AX_DIMS(), 0);
}
static void parts_in_a_scan(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_scan(AX_FN(varying_again, 1, 1), 1, 3, false, in, out);
}
static void parts_in_a_while(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_while(AX_FN(not_yet, 1, 1), AX_FN(varying_again, 1, 1), in, out);
}

/* It was looked for again, for ever. */
static void parts_do_not_vary(void **state) {
  (void)state;
  const ax_function loops[] = {parts_in_a_scan, parts_in_a_while};
  ax_type parts = TEST_SCALAR(AX_F32);
  parts.spread.unreduced = 1;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=2", &mesh));
  for (size_t i = 0; i < AX_COUNT(loops); i++) {
    ax_program *program;
    TEST_FAILS(ax_trace_on(&mesh, AX_FN(loops[i], 1, 1), &parts, &program), AX_INVALID_ARGUMENT, "carry 0");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cost_follows_carries),
      cmocka_unit_test(types_are_found_at_once),
      cmocka_unit_test(another_loop_is_no_known_one),
      cmocka_unit_test(reaches_as_far_as_steps),
      cmocka_unit_test(kept_carries_are_not_stacked),
      cmocka_unit_test(zero_cotangents_are_not_carried),
      cmocka_unit_test(parts_do_not_vary),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
