/* The walk over the table of primitives, derivatives in f64: jvp by differences, transposes by <A x, y> = <x, At y>: of the
   linearized primitive, and of those that are linear themselves. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/program.h"
#include "prim/bind.h"
#include "prim/rules.h"
#include "support/cmocka.h"
#include "support/lanes.h"
#include "support/sample.h"

/* --- Values --- */

/* Integers as well as floats between the sample's bounds. */
static void fill_generic(const test_instance *instance, const ax_program *program, test_random *random,
                         ax_tensor **in) {
  for (uint32_t i = 0; i < program->in_count; i++)
    test_fill_lanes(program, &program->types[i], random, test_random_tensor, test_low(instance->sample),
                    test_high(instance->sample), in + i * test_lanes(program));
}

/* The float inputs. */
static uint32_t tangent_set(const ax_program *program) {
  uint32_t set = 0;
  for (uint32_t i = 0; i < program->in_count; i++) set |= (uint32_t)ax_is_differentiable(program->types[i].dtype) << i;
  return set;
}

enum { most_inputs = 32 };
static void spell(uint32_t set, bool *wrt) {
  for (uint32_t i = 0; i < most_inputs; i++) wrt[i] = set >> i & 1;
}

/* --- jvp --- */

/* f(in + step * direction); in[operand * lanes + lane], direction: of the inputs in the set. */
static ax_tensor **moved(const test_instance *instance, uint32_t set, ax_tensor **in, ax_tensor **direction,
                         double step) {
  const ax_program *program = instance->program;
  uint32_t lanes = test_lanes(program);
  ax_tensor **at = test_lane_array(program, program->in_count), **out = test_lane_array(program, program->out_count);
  for (uint32_t i = 0; i < program->in_count; i++) {
    bool moves = set >> i & 1;
    for (uint32_t lane = 0; lane < lanes; lane++) {
      ax_tensor **to = &at[i * lanes + lane];
      TEST_OK(ax_tensor_copy(in[i * lanes + lane], to));
      for (int64_t e = 0; moves && e < test_elems(*to); e++)
        test_set(*to, e, test_get(*to, e) + step * test_get(direction[lane], e));
    }
    if (moves) direction += lanes;
  }
  TEST_OK(test_run_lanes(program, at, out));
  test_lane_array_release(program, at, program->in_count);
  return out;
}

enum { step_count = 4 };
static const double steps[step_count] = {1e-4, -1e-4, 2e-4, -2e-4};

/* The central difference D(h) is off by c h^2 + rounding / h; D(2 h) by four times the first: their distance says how much.
   256: a few hundred terms may have been added up. */
static void check_element(const test_instance *instance, ax_tensor **const *results, uint32_t at, int64_t e,
                          double tangent) {
  double f[step_count], still = test_get(results[0][at], e);
  bool moves = false;
  for (int s = 0; s < step_count; s++) {
    f[s] = test_get(results[s][at], e);
    moves = moves || !(f[s] == still || (isnan(f[s]) && isnan(still)));
  }
  if (!moves && tangent == 0) return; /* infinities and NaN among them */
  double near = (f[0] - f[1]) / (2 * steps[0]), far = (f[2] - f[3]) / (2 * steps[2]);
  double rounding = 256 * DBL_EPSILON * (1 + fabs(f[0])) / steps[0], tolerance = fabs(near - far) + rounding;
  if (tolerance > 1e-4 * (1 + fabs(near)))
    test_blame(instance, "is not smooth where it is sampled: differences %.12g and %.12g", near, far);
  else if (!(fabs(tangent - near) <= tolerance))
    test_blame(instance, "jvp: tangent %.12g, but the difference is %.12g, within %g", tangent, near, tolerance);
}

static void check_differences(const test_instance *instance, uint32_t set, ax_tensor **in, ax_tensor **tangent_in,
                              ax_tensor **out) {
  const ax_program *program = instance->program;
  uint32_t lanes = test_lanes(program);
  ax_tensor **results[step_count];
  for (int s = 0; s < step_count; s++) results[s] = moved(instance, set, in, tangent_in, steps[s]);
  ax_tensor **tangent = out + program->out_count * lanes;
  for (uint32_t k = 0; k < program->out_count; k++) {
    if (!ax_is_differentiable(ax_program_out_type(program, k)->dtype)) continue;
    for (uint32_t lane = 0; lane < lanes; lane++)
      for (int64_t e = 0; e < test_elems(tangent[lane]); e++) {
        double t = test_get(tangent[lane], e);
        if (!instance->sample->stops_gradients)
          check_element(instance, results, k * lanes + lane, e, t);
        else if (t != 0)
          test_blame(instance, "jvp: tangent %.12g, not 0", t);
      }
    tangent += lanes;
  }
  for (int s = 0; s < step_count; s++) test_lane_array_release(program, results[s], program->out_count);
}

static void check_jvp(const test_instance *instance, uint32_t set) {
  ax_program *jvp;
  bool wrt[most_inputs];
  spell(set, wrt);
  if (!test_passes(instance, "jvp",
                   ax_program_jvp(instance->program, test_args(wrt, ax_program_in_count(instance->program)), &jvp)))
    return;
  test_random random = test_instance_random(instance);
  ax_tensor **in = test_lane_array(jvp, jvp->in_count), **out = test_lane_array(jvp, jvp->out_count);
  fill_generic(instance, jvp, &random, in);
  if (test_passes(instance, "jvp", ax_program_verify(jvp)) &&
      test_passes(instance, "jvp", test_run_lanes(jvp, in, out)))
    check_differences(instance, set, in, in + instance->program->in_count * test_lanes(jvp), out);
  test_lane_array_release(jvp, in, jvp->in_count);
  test_lane_array_release(jvp, out, jvp->out_count);
  ax_program_release(jvp);
}

/* --- Transposes --- */

/* What rounding is off by, in the coarsest dtype here. */
static double unit_of(const ax_program *program) {
  double unit = DBL_EPSILON;
  for (uint32_t i = 0; i < program->value_count; i++) {
    ax_dtype dtype = ax_part_dtype(program->types[i].dtype);
    if (ax_is_float(dtype)) unit = fmax(unit, ldexp(1, -(int)ax_dtype_get(dtype)->fraction));
  }
  return unit;
}

/* `program`, linear in those inputs; its other inputs from `given` (NULL: generic ones). */
static void check_transpose(const test_instance *instance, const char *what, ax_program *program, const bool *linear,
                            ax_tensor **given) {
  ax_program *transposed;
  if (!test_passes(instance, what, ax_program_transpose(program, test_args(linear, ax_program_in_count(program)), &transposed)))
    return;
  uint32_t lanes = test_lanes(program), back = 0;
  test_random random = test_instance_random(instance);
  ax_tensor **x = test_lane_array(program, program->in_count), **ax = test_lane_array(program, program->out_count);
  ax_tensor **y = test_lane_array(program, transposed->in_count),
            **aty = test_lane_array(program, transposed->out_count);
  fill_generic(instance, program, &random, x);
  for (uint32_t i = 0; i < program->in_count; i++) {
    if (linear[i]) continue;
    for (uint32_t lane = 0; lane < lanes; lane++) {
      ax_tensor **own = &x[i * lanes + lane];
      if (given != NULL) ax_tensor_release(*own);
      if (given != NULL) TEST_OK(ax_tensor_copy(given[i * lanes + lane], own));
      TEST_OK(ax_tensor_copy(*own, &y[back * lanes + lane]));
    }
    back++;
  }
  uint32_t cotangents = back;
  for (; back < transposed->in_count; back++)
    test_fill_lanes(program, &transposed->types[back], &random, test_random_tensor, -1, 1, y + back * lanes);
  if (test_passes(instance, what, ax_program_verify(transposed)) &&
      test_passes(instance, what, test_run_lanes(program, x, ax)) &&
      test_passes(instance, what, test_run_lanes(transposed, y, aty))) {
    double forward = 0, backward = 0, size = 1;
    for (uint32_t k = 0, ct = cotangents; k < program->out_count; k++) {
      const ax_type *type = ax_program_out_type(program, k);
      if (!ax_is_differentiable(type->dtype)) continue;
      ax_tensor **left = ax + k * lanes, **right = y + ct++ * lanes;
      forward += test_inner_lanes(program, type, left, right);
      size += sqrt(test_squares_lanes(program, type, left) * test_squares_lanes(program, type, right));
    }
    for (uint32_t i = 0, ct = 0; i < program->in_count; i++)
      if (linear[i]) backward += test_inner_lanes(program, &program->types[i], x + i * lanes, aty + ct++ * lanes);
    if (!(fabs(forward - backward) <= 16 * unit_of(program) * size))
      test_blame(instance, "%s: <A x, y> = %.17g, but <x, At y> = %.17g", what, forward, backward);
  }
  test_lane_array_release(program, x, program->in_count);
  test_lane_array_release(program, ax, program->out_count);
  test_lane_array_release(program, y, transposed->in_count);
  test_lane_array_release(program, aty, transposed->out_count);
  ax_program_release(transposed);
}

/* The tangent program at a generic point. */
static void check_linearized(const test_instance *instance, uint32_t set) {
  ax_program *primal, *tangent;
  uint32_t residuals;
  bool wrt[most_inputs];
  spell(set, wrt);
  const ax_program *program = instance->program;
  if (!test_passes(instance, "linearize",
                   ax_program_linearize(program, test_args(wrt, ax_program_in_count(program)), &primal, &tangent, &residuals)))
    return;
  test_random random = test_instance_random(instance);
  uint32_t lanes = test_lanes(program);
  ax_tensor **in = test_lane_array(program, program->in_count), **out = test_lane_array(program, primal->out_count);
  bool *linear = calloc(tangent->in_count + 1, sizeof linear[0]);
  for (uint32_t i = residuals; i < tangent->in_count; i++) linear[i] = true;
  fill_generic(instance, program, &random, in);
  if (test_passes(instance, "linearize", ax_program_verify(primal)) &&
      test_passes(instance, "linearize", ax_program_verify(tangent)) &&
      test_passes(instance, "linearize", test_run_lanes(primal, in, out)))
    check_transpose(instance, "linearize and transpose", tangent, linear, out + program->out_count * lanes);
  test_lane_array_release(program, in, program->in_count);
  test_lane_array_release(program, out, primal->out_count);
  free(linear);
  ax_program_release(primal);
  ax_program_release(tangent);
}

/* Which inputs a word of `linear` names. */
static void check_named(const test_instance *instance, const char *word, size_t length) {
  uint32_t count = instance->program->in_count, found = 0;
  bool *linear = calloc(count + 1, sizeof linear[0]);
  for (uint32_t i = 0; i < count; i++) {
    linear[i] = memchr(word, instance->names[i], length) != NULL;
    found += linear[i];
  }
  assert_int_equal(found, length);
  check_transpose(instance, "transpose", instance->program, linear, NULL);
  free(linear);
}

static void check_linear(const test_instance *instance) {
  for (const char *word = instance->sample->linear; word != NULL && *word != 0;) {
    size_t length = strcspn(word, " ");
    check_named(instance, word, length);
    word += length + strspn(word + length, " ");
  }
}

/* --- The walk --- */

static void each_instance(const test_variety *variety, void (*check)(const test_instance *)) {
  for (size_t i = 0; i < test_sample_count; i++) {
    if (test_samples[i].own_derivative) continue;
    test_instances instances = test_instances_of(&test_samples[i], variety);
    for (uint32_t k = 0; k < instances.count; k++)
      if (tangent_set(instances.v[k].program) != 0) check(&instances.v[k]);
    test_instances_release(&instances);
  }
  test_blameless();
}

/* By all float inputs together, and by each alone: the others' tangents are symbolic zeros then. */
static void each_set(const test_instance *instance, void (*check)(const test_instance *, uint32_t set)) {
  uint32_t all = tangent_set(instance->program);
  check(instance, all);
  for (uint32_t one = 1; one <= all && one != 0; one *= 2)
    if ((all & one) != 0 && all != one) check(instance, one);
}

static void by_jvp(const test_instance *instance) { each_set(instance, check_jvp); }
static void by_transpose(const test_instance *instance) {
  if (!instance->sample->forward_only) each_set(instance, check_linearized);
}

/* The jvp as a function of its own: second derivatives, forward over forward and reverse over forward. */
static void by_both(const test_instance *instance) {
  test_instance second = *instance;
  if (!test_passes(instance, "jvp", ax_program_jvp(instance->program, AX_ALL_ARGS, &second.program))) return;
  by_jvp(&second);
  by_transpose(&second);
  test_instance_release(&second);
}

/* The types of what the rules build, and their values as far as they are rounded. */
static void by_types(const test_instance *instance) {
  ax_program *jvp;
  if (!test_passes(instance, "jvp", ax_program_jvp(instance->program, AX_ALL_ARGS, &jvp))) return;
  test_passes(instance, "jvp", ax_program_verify(jvp));
  ax_program_release(jvp);
  by_transpose(instance);
  if (ax_is_differentiable(instance->u) || strcmp(instance->sample->prim, "convert_element_type") != 0) check_linear(instance);
}

static void jvp(void **state) { (void)state, each_instance(&test_in_f64, by_jvp); }
static void linearized(void **state) { (void)state, each_instance(&test_in_f64, by_transpose); }
static void linear(void **state) { (void)state, each_instance(&test_in_f64, check_linear); }
/* Tensors of complex numbers are their parts: directions are those of the plane, and <t, z> is Re(sum of t z). */
static void complex_jvp(void **state) { (void)state, each_instance(&test_in_c128, by_jvp); }
static void complex_linearized(void **state) { (void)state, each_instance(&test_in_c128, by_transpose); }
static void complex_linear(void **state) { (void)state, each_instance(&test_in_c128, check_linear); }
static void second(void **state) { (void)state, each_instance(&test_in_f64, by_both); }

/* But those in which the samples' sums and products overflow: their largest numbers are 6, 15.5 and 30. */
static void every_dtype(void **state) {
  (void)state;
  ax_dtype dtypes[AX_DTYPE_COUNT];
  uint32_t count = 0;
  for (int i = 0; i < test_dtype_count; i++)
    if (!ax_is_float(test_dtypes[i]) || ax_float_largest(test_dtypes[i]) > 100) dtypes[count++] = test_dtypes[i];
  const test_variety variety = {dtypes, dtypes, count, count, (const char *[]){"2"}, 1};
  each_instance(&variety, by_types);
}

/* Every transpose rule is met. */
static void every_transpose_has_samples(void **state) {
  (void)state;
  for (uint32_t p = 0; p < ax_prim_count; p++) {
    bool has_rule = ax_prims[p]->transpose != ax_absent_transpose, found = false;
    for (size_t i = 0; i < test_sample_count; i++)
      found = found || (strcmp(test_samples[i].prim, ax_prims[p]->name) == 0 &&
                        (test_samples[i].linear != NULL || test_samples[i].forward_only || test_samples[i].own_derivative));
    if (has_rule && !found)
      fail_msg("%s has a transpose, but no row in tests/support/samples.c says what it is linear in",
               ax_prims[p]->name);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(jvp),         cmocka_unit_test(linearized),
                                     cmocka_unit_test(linear),      cmocka_unit_test(second),
                                     cmocka_unit_test(complex_jvp), cmocka_unit_test(complex_linearized),
                                     cmocka_unit_test(complex_linear), cmocka_unit_test(every_dtype), cmocka_unit_test(every_transpose_has_samples)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
