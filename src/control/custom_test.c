/* Functions with derivatives of their own: beside the same functions without, with every collective inside, in loops and branches,
   mapped and differentiated twice; that it is the rule that is used; what is refused; that what nobody uses goes. */
#include <math.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "axle/transform.h"
#include "prim/prims.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/lanes.h"
#include "support/run.h"

/* --- A function of two operands and one result, wrapped: its rules are what jvp and vjp make of it --- */

typedef enum wrapping { PLAIN, BY_JVP, BY_VJP, WRAPPINGS } wrapping;
static const char *const wrapping_names[] = {"plain", "custom_jvp", "custom_vjp"};

static void call(const ax_value *in, ax_value *out, void *f) { ((const ax_fn *)f)->function(in, out, NULL); }
static void rule(const ax_value *in, ax_value *out, void *f) {
  ax_jvp(AX_CLOSURE(call, 2, 1, f), AX_FIRST(2), in, in + 2, out, out + 1);
}
static void forward(const ax_value *in, ax_value *out, void *f) {
  call(in, out, f);
  out[1] = in[0], out[2] = in[1];
}
static void backward(const ax_value *in, ax_value *out, void *f) {
  ax_value again;
  ax_vjp(AX_CLOSURE(call, 2, 1, f), AX_FIRST(2), in, in + 2, &again, out);
}

static ax_value wrapped(wrapping by, ax_function function, ax_value x, ax_value w) {
  ax_fn f = AX_FN(function, 2, 1);
  ax_value in[] = {x, w}, out;
  if (by == PLAIN) call(in, &out, &f);
  if (by == BY_JVP) ax_custom_jvp(AX_CLOSURE(call, 2, 1, &f), AX_CLOSURE(rule, 4, 2, &f), in, &out);
  if (by == BY_VJP)
    ax_custom_vjp(AX_CLOSURE(call, 2, 1, &f), AX_CLOSURE(forward, 2, 3, &f), AX_CLOSURE(backward, 3, 2, &f), in, &out);
  return out;
}

/* --- Functions of a device: x varies, w is the same on all --- */

static ax_value mixed(ax_value x, ax_value w) { return ax_sin(ax_mul(x, w)); }

static AX_BODY(sums) { out[0] = ax_mul(ax_psum(mixed(in[0], in[1]), "d"), in[1]); }
static AX_BODY(largest) { out[0] = ax_mul(ax_pmax(in[0], "d"), in[1]); }
static AX_BODY(gathered) { out[0] = ax_all_gather(mixed(in[0], in[1]), "d", 0, true); }
static AX_BODY(scattered) { out[0] = ax_psum_scatter(mixed(in[0], in[1]), "d", 0, true); }
static AX_BODY(exchanged) { out[0] = ax_all_to_all(mixed(in[0], in[1]), "d", 0, 1, true); }
static AX_BODY(passed_on) { out[0] = ax_pshift(mixed(in[0], in[1]), "d", 1, true); }
static AX_BODY(grouped) { out[0] = ax_psum(mixed(in[0], in[1]), "d {0,2} {1,3}"); }
static AX_BODY(in_parts) { out[0] = ax_mul(in[0], ax_preduced(in[1], "d")); }
static AX_BODY(begun) { out[0] = ax_done(ax_start(ax_psum(mixed(in[0], in[1]), "d"))); }
static AX_BODY(shaken) { out[0] = ax_sin(ax_mul(in[0], ax_psum(ax_mul(in[0], in[1]), "d"))), out[1] = in[1]; }
static AX_BODY(through_loop) {
  ax_value made[2];
  ax_scan(AX_FN(shaken, 2, 2), 2, 2, false, in, made);
  ax_closed_call(AX_FN(shaken, 2, 2), made, made);
  out[0] = made[0];
}
static AX_BODY(of_w_alone) { out[0] = ax_sin(in[1]); }

/* The same in a loop, in a branch and in a call: whoever uses one has it there. */
typedef struct subject {
  wrapping by;
  ax_function f;
  enum { HERE, IN_SCAN, IN_BRANCH, IN_CALL, PLACES } place;
  bool unchecked;
} subject;

static AX_BODY(turn) {
  const subject *s = context;
  ax_value made = wrapped(s->by, s->f, in[0], in[1]);
  out[0] = ax_add(ax_mul(in[0], ax_real(0.5)), ax_mul(ax_reduce_sum(ax_cos(made), AX_ALL_DIMS, false), ax_real(0.1)));
  out[1] = in[1];
}
static AX_BODY(other) {
  out[0] = ax_neg(in[0]);
  out[1] = in[1];
}

static AX_BODY(on_device) {
  const subject *s = context;
  ax_fn f = AX_CLOSURE(turn, 2, 2, context);
  ax_value made[2];
  if (s->place == HERE) turn(in, made, context);
  if (s->place == IN_SCAN) ax_scan(f, 2, 3, false, in, made);
  if (s->place == IN_BRANCH) ax_if(ax_gt(ax_reduce_sum(in[1], AX_ALL_DIMS, false), ax_real(-100)), f, AX_FN(other, 2, 2), in, made);
  if (s->place == IN_CALL) ax_closed_call(f, in, made);
  out[0] = ax_psum(ax_reduce_sum(ax_mul(made[0], made[0]), AX_ALL_DIMS, false), "d");
}

static AX_BODY(on_mesh) {
  const subject *s = context;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=4", &mesh));
  ax_fn f = AX_CLOSURE(on_device, 2, 1, context);
  if (s->unchecked) ax_shard_map_unchecked(&mesh, "d; -> ", f, in, out);
  else ax_shard_map(&mesh, "d; -> ", f, in, out);
}

static AX_BODY(steepness) {
  ax_value slopes[2];
  ax_grad(AX_CLOSURE(on_mesh, 2, 1, context), AX_FIRST(2), in, slopes);
  out[0] = ax_add(ax_reduce_sum(ax_square(slopes[0]), AX_ALL_DIMS, false), ax_reduce_sum(ax_sin(slopes[1]), AX_ALL_DIMS, false));
}

/* The loss and its gradient; the gradients for several w; the gradient of the gradient; the tangent, unless it has only
   gradients. */
enum { result_count = 8 };
static AX_BODY(everything) {
  const subject *s = context;
  ax_fn f = AX_CLOSURE(on_mesh, 2, 1, context);
  ax_value many = ax_mul(ax_reshape(ax_add(ax_iota(AX_F64, AX_DIMS(3), 0), ax_real(-1)), AX_DIMS(3, 1)), in[1]), again;
  ax_value_and_grad(f, AX_FIRST(2), in, out);
  ax_fn both = AX_CLOSURE(steepness, 2, 1, context);
  ax_vmap(both, AX_VALUES(in[0], many), &out[3], &(ax_vmap_options){.in_axes = {AX_DIMS(AX_NOT_MAPPED, 0)}});
  ax_grad(both, AX_FIRST(2), in, &out[4]);
  ax_value tangent = ax_full(AX_F64, AX_DIMS(), 0), pulled[2];
  if (s->by != BY_VJP) ax_jvp(f, AX_FIRST(2), in, in, &again, &tangent);
  out[6] = tangent;
  ax_linear linear = ax_linearize(f, AX_FIRST(2), in, &again);
  ax_pullback(linear, &again, pulled);
  out[7] = pulled[0];
}

static const struct {
  const char *name;
  ax_function f;
  bool checked_alone;
} functions[] = {{"psum", sums, false},
                 {"pmax", largest, false},
                 {"all_gather", gathered, false},
                 {"psum_scatter", scattered, false},
                 {"all_to_all", exchanged, false},
                 {"ppermute", passed_on, false},
                 {"groups", grouped, false},
                 {"preduced", in_parts, true},
                 {"start", begun, false},
                 {"loop", through_loop, false},
                 {"none", of_w_alone, true}};

static void make_all(const subject *s, const char *name, const ax_type *types, ax_tensor *const *in, ax_tensor **out) {
  ax_program *program;
  ax_tensor *reference[result_count];
  ax_status status = ax_trace(AX_CLOSURE(everything, 2, result_count, s), types, &program);
  if (status != AX_OK) fail_msg("%s, %s, place %d: %s", name, wrapping_names[s->by], (int)s->place, ax_message());
  TEST_OK(ax_program_verify(program));
  status = test_try(program, in, out);
  if (status != AX_OK) fail_msg("%s, %s, place %d: %s", name, wrapping_names[s->by], (int)s->place, ax_message());
  TEST_OK(ax_evaluate(program, in, reference));
  for (uint32_t k = 0; k < result_count; k++) TEST_TENSORS_NEAR(out[k], reference[k], 1e-9);
  test_release(reference, result_count);
  ax_program_release(program);
}

static void as_the_plain_function(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F64, 16, 4), TEST_TYPE(AX_F64, 4)};
  test_random random = {.state = 3};
  ax_tensor *in[] = {test_random_tensor(&random, types[0], -1, 1), test_random_tensor(&random, types[1], 0.1, 1)};
  for (size_t i = 0; i < AX_COUNT(functions); i++)
    for (int variant = 0; variant < (functions[i].checked_alone ? PLACES : PLACES + 1); variant++) {
      ax_tensor *out[WRAPPINGS][result_count];
      for (int by = 0; by < WRAPPINGS; by++) {
        subject s = {(wrapping)by, functions[i].f, variant % PLACES, variant == PLACES};
        make_all(&s, functions[i].name, types, in, out[by]);
        for (uint32_t k = 0; k < result_count; k++)
          for (int64_t e = 0; e < test_elems(out[by][k]) && !(by == BY_VJP && k == 6); e++)
            if (!test_near(test_get(out[by][k], e), test_get(out[PLAIN][k], e), 1e-9))
              fail_msg("%s, %s, place %d, result %u[%lld]: %g, not %g", functions[i].name, wrapping_names[by], variant, k,
                       (long long)e, test_get(out[by][k], e), test_get(out[PLAIN][k], e));
      }
      for (int by = 0; by < WRAPPINGS; by++) test_release(out[by], result_count);
    }
  test_release(in, 2);
}

/* --- The rule is what is used --- */

static AX_BODY(cube) { out[0] = ax_mul(ax_mul(in[0], in[0]), in[0]); }
static AX_BODY(cube_and_x) {
  cube(in, out, NULL);
  out[1] = in[0];
}
static AX_BODY(seven_times) { out[0] = ax_mul(ax_mul(in[1], in[0]), *(const ax_value *)context); } /* no derivative of the cube */
static AX_BODY(seven_x) {
  cube(in, out, NULL);
  out[1] = ax_mul(ax_mul(in[1], in[0]), *(const ax_value *)context);
}

typedef struct odd {
  bool by_jvp;
  bool uses_operand; /* what the rule uses besides is what derivatives are taken by */
} odd;
static AX_BODY(odd_cube) {
  const odd *o = context;
  ax_value seven = o->uses_operand ? in[1] : ax_stop_gradient(in[1]);
  if (o->by_jvp) ax_custom_jvp(AX_FN(cube, 1, 1), AX_CLOSURE(seven_x, 2, 2, &seven), in, out);
  else ax_custom_vjp(AX_FN(cube, 1, 1), AX_FN(cube_and_x, 1, 2), AX_CLOSURE(seven_times, 2, 1, &seven), in, out);
}
/* x, k -> f(x), f'(x), f''(x). */
static AX_BODY(odd_slope) { ax_grad(AX_CLOSURE(odd_cube, 2, 1, context), AX_FIRST(1), in, out); }
static AX_BODY(odd_slopes) {
  odd_cube(in, out, context);
  odd_slope(in, &out[1], context);
  ax_grad(AX_CLOSURE(odd_slope, 2, 1, context), AX_FIRST(1), in, &out[2]);
}

static void rules_are_used(void **state) {
  (void)state;
  const ax_type types[] = {TEST_SCALAR(AX_F64), TEST_SCALAR(AX_F64)};
  for (int by_jvp = 0; by_jvp < 2; by_jvp++) {
    ax_program *program = test_trace(odd_slopes, &(odd){.by_jvp = by_jvp}, types, 2, 3), *parsed;
    double out[3];
    char *text;
    test_run_scalars(program, (const double[]){2, 7}, out);
    TEST_NEAR(out[0], 8, 0);
    TEST_NEAR(out[1], 14, 0);
    TEST_NEAR(out[2], 7, 0);
    TEST_OK(ax_program_print(program, &text));
    TEST_OK(ax_program_parse(text, strlen(text), "printed", &parsed));
    assert_true(ax_program_equal(program, parsed));
    ax_string_free(text);
    ax_program_release(parsed);
    ax_program_release(program);
  }
}

/* --- Integers have no tangents, and no cotangents --- */

static AX_BODY(picked) {
  out[0] = in[0];
  out[1] = ax_mul(in[1], ax_convert_element_type(in[0], AX_F64));
}
static AX_BODY(picked_forward) {
  picked(in, out, NULL);
  out[2] = in[0];
}
static AX_BODY(picked_backward) { out[0] = ax_mul(in[1], ax_convert_element_type(in[0], AX_F64)); }
static AX_BODY(picked_rule) {
  picked(in, out, NULL);
  out[2] = ax_mul(in[2], ax_convert_element_type(in[0], AX_F64));
}
static AX_BODY(picked_loss) {
  ax_value three = ax_convert_element_type(ax_add(ax_stop_gradient(in[0]), ax_real(3)), AX_S32), made[2];
  if (context != NULL) ax_custom_jvp(AX_FN(picked, 2, 2), AX_FN(picked_rule, 3, 3), AX_VALUES(three, in[0]), made);
  else
    ax_custom_vjp(AX_FN(picked, 2, 2), AX_FN(picked_forward, 2, 3), AX_FN(picked_backward, 2, 1), AX_VALUES(three, in[0]), made);
  out[0] = ax_mul(made[1], ax_convert_element_type(made[0], AX_F64));
}
static AX_BODY(picked_slope) { ax_grad(AX_CLOSURE(picked_loss, 1, 1, context), AX_FIRST(1), in, out); }

static void integers(void **state) {
  (void)state;
  const ax_type type = TEST_SCALAR(AX_F64);
  for (int way = 0; way < 2; way++) {
    ax_program *program = test_trace(picked_slope, way != 0 ? &way : NULL, &type, 1, 1);
    double out;
    test_run_scalars(program, (const double[]){2}, &out);
    TEST_NEAR(out, 25, 0); /* of 5 x 5 */
    ax_program_release(program);
  }
}

/* --- What is refused --- */

static AX_BODY(two) { out[0] = in[0], out[1] = in[0]; }
static AX_BODY(same) { out[0] = in[0]; }
static AX_BODY(halved) { out[0] = ax_reduce_sum(in[0], AX_ALL_DIMS, false); }
static AX_BODY(halved_and_x) { out[0] = ax_reduce_sum(in[0], AX_ALL_DIMS, false), out[1] = in[0]; }
static AX_BODY(of_tangent) { out[0] = in[1], out[1] = in[1]; }
static AX_BODY(short_tangent) { out[0] = in[0], out[1] = ax_reduce_sum(in[1], AX_ALL_DIMS, false); }

static AX_BODY(bad_vjp) {
  const ax_fn *f = context;
  ax_custom_vjp(f[0], f[1], f[2], in, out);
}
static AX_BODY(bad_jvp) {
  const ax_fn *f = context;
  ax_custom_jvp(f[0], f[1], in, out);
}

static void refused(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, 3), TEST_TYPE(AX_F32, 3)};
  ax_program *program;
  const ax_fn one = AX_FN(same, 1, 1);
  const struct {
    ax_function f;
    ax_fn fns[3];
    const char *message;
  } cases[] = {
      {bad_vjp,
       {one, AX_FN(same, 2, 1), AX_FN(same, 1, 1)},
       "custom_vjp: forward takes 2 values and gives 1; it must take the 1 operands"},
      {bad_vjp,
       {one, one, AX_FN(two, 1, 2)},
       "custom_vjp: backward takes 1 values and gives 2; it must take the 0 residuals and the cotangents of the 1 results"},
      {bad_vjp, {one, AX_FN(halved_and_x, 1, 2), AX_FN(same, 2, 1)}, "custom_vjp: result 0 is f32[3], but forward gives f32[]"},
      {bad_vjp,
       {one, one, AX_FN(halved, 1, 1)},
       "custom_vjp: operand 0 is f32[3], so that its cotangent is f32[3], but backward gives f32[]"},
      {bad_jvp,
       {one, AX_FN(same, 1, 1)},
       "custom_jvp: the rule takes 1 values and gives 1; it must take 1 operands and 1 tangents"},
      {bad_jvp, {one, AX_FN(of_tangent, 2, 2)}, "custom_jvp: result 0 of the rule depends on the tangents"},
      {bad_jvp, {one, AX_FN(short_tangent, 2, 2)}, "custom_jvp: result 0 is f32[3], but the rule gives f32[] for its tangent"},
  };
  for (size_t i = 0; i < AX_COUNT(cases); i++)
    TEST_FAILS(ax_trace(AX_CLOSURE(cases[i].f, 1, 1, cases[i].fns), types, &program), AX_INVALID_ARGUMENT, cases[i].message);
}

static AX_BODY(slope_by_both) { ax_grad(AX_CLOSURE(odd_cube, 2, 1, context), AX_FIRST(2), in, out); }

static AX_BODY(by_jvp) { ax_jvp(AX_CLOSURE(odd_cube, 2, 1, context), AX_FIRST(1), in, in, &out[0], &out[1]); }
static AX_BODY(by_pushforward) {
  ax_linear linear = ax_linearize(AX_CLOSURE(odd_cube, 2, 1, context), AX_FIRST(1), in, &out[0]);
  ax_pushforward(linear, in, &out[1]);
}
static AX_BODY(by_jacfwd) {
  out[0] = in[0];
  ax_jacfwd(AX_CLOSURE(odd_cube, 2, 1, context), AX_FIRST(1), in, &out[1]);
}
static AX_BODY(odd_step) {
  odd_cube(in, out, context);
  out[1] = in[1];
}
static AX_BODY(in_a_loop) {
  ax_value made[2];
  ax_scan(AX_CLOSURE(odd_step, 2, 2, context), 2, 2, false, in, made);
  out[0] = made[0];
}
static AX_BODY(by_jvp_of_loop) { ax_jvp(AX_CLOSURE(in_a_loop, 2, 1, context), AX_FIRST(1), in, in, &out[0], &out[1]); }
static AX_BODY(value_alone) { /* nobody uses the tangent */
  ax_value no_tangent;
  ax_jvp(AX_CLOSURE(odd_cube, 2, 1, context), AX_FIRST(1), in, in, &out[0], &no_tangent);
}

static const char waiting[] =
    "{ lambda x:f64[]. let y:f64[] = custom_linear[backward={ lambda c:f64[]. let d:f64[] = neg c in (d,) } num_residuals=0] x in (y,) }";

static void without_derivative(void **state) {
  (void)state;
  const char forwards[] = "the function with custom_vjp has no derivative forwards";
  const ax_type types[] = {TEST_SCALAR(AX_F64), TEST_SCALAR(AX_F64)};
  const ax_function ways[] = {by_jvp, by_pushforward, by_jacfwd, by_jvp_of_loop, value_alone};
  ax_tensor *in[] = {test_tensor(types[0], (const double[]){2})}, *out[1];
  ax_program *program;
  for (int jvp = 0; jvp < 2; jvp++)
    TEST_FAILS(ax_trace(AX_CLOSURE(slope_by_both, 2, 2, &(odd){jvp, true}), types, &program), AX_INVALID_ARGUMENT,
               "derivatives are taken by a value f64[] that its functions use without being given it");
  for (size_t i = 0; i < AX_COUNT(ways); i++)
    TEST_FAILS(ax_trace(AX_CLOSURE(ways[i], 2, ways[i] == value_alone ? 1 : 2, &(odd){false, false}), types, &program), AX_ABSENT,
               forwards);
  TEST_OK(ax_program_parse(waiting, strlen(waiting), NULL, &program));
  TEST_FAILS(test_try(program, in, out), AX_ABSENT, forwards);
  TEST_FAILS(ax_evaluate(program, in, out), AX_ABSENT, forwards);
  ax_program_release(program);
  test_release(in, 1);
}

/* --- What nobody uses --- */

/* x -> a sin(x), b exp(x); what belongs to the second is residual 1 and value b. */
static AX_BODY(both_results) {
  const ax_value *factor = context;
  out[0] = ax_mul(ax_sin(in[0]), factor[0]);
  out[1] = ax_mul(ax_exp(in[0]), factor[1]);
}
static AX_BODY(both_forward) {
  both_results(in, out, context);
  out[2] = ax_mul(ax_cos(in[0]), ((const ax_value *)context)[0]);
  out[3] = ax_exp(in[0]);
  out[4] = in[0]; /* backward does not use it */
}
static AX_BODY(both_backward) { out[0] = ax_add(ax_mul(in[0], in[3]), ax_mul(in[1], in[4])); }
static AX_BODY(both_rule) {
  both_results(in, out, context);
  out[2] = ax_mul(ax_mul(ax_cos(in[0]), ((const ax_value *)context)[0]), in[1]);
  out[3] = ax_mul(out[1], in[1]);
}
static AX_BODY(first_of_both) {
  ax_value factor[] = {ax_stop_gradient(in[1]), ax_stop_gradient(in[2])}, made[2];
  ax_fn f = AX_CLOSURE(both_results, 1, 2, factor);
  if (context != NULL) ax_custom_jvp(f, AX_CLOSURE(both_rule, 2, 4, factor), in, made);
  else ax_custom_vjp(f, AX_CLOSURE(both_forward, 1, 5, factor), AX_FN(both_backward, 5, 1), in, made);
  out[0] = made[0];
}

static void what_nobody_uses_goes(void **state) {
  (void)state;
  const ax_type types[] = {TEST_SCALAR(AX_F64), TEST_SCALAR(AX_F64), TEST_SCALAR(AX_F64)};
  const double x[] = {0.5, 3, 7};
  for (int way = 0; way < 2; way++) {
    ax_program *program = test_trace(first_of_both, way != 0 ? &way : NULL, types, 3, 1), *pruned, *slopes[2];
    double slope[2];
    TEST_OK(ax_program_dce(program, &pruned));
    TEST_OK(ax_program_verify(pruned));
    assert_int_equal(pruned->eqn_count, program->eqn_count - 1); /* b's stop_gradient */
    const ax_eqn *eqn = &pruned->eqns[pruned->eqn_count - 1];
    assert_int_equal(eqn->out_count, 1);
    assert_int_equal(eqn->in_count, 3); /* a for each function, x */
    assert_int_equal(ax_eqn_program(eqn, 0)->out_count, 1);
    assert_int_equal(ax_eqn_program(eqn, 1)->out_count, way != 0 ? 2 : 3);
    if (way == 0) assert_int_equal(ax_eqn_program(eqn, 2)->in_count, 3); /* two residuals, a cotangent */
    ax_program *both[] = {program, pruned};
    for (int i = 0; i < 2; i++) {
      TEST_OK(ax_program_grad(both[i], AX_FIRST(1), &slopes[i]));
      test_run_scalars(slopes[i], x, &slope[i]);
      TEST_NEAR(slope[i], 3 * cos(0.5), 1e-15);
      ax_program_release(slopes[i]);
      ax_program_release(both[i]);
    }
  }
}

/* Of the map that is left to be transposed. */
static void results_of_maps_go(void **state) {
  (void)state;
  const char text[] =
      "{ lambda r:f64[] s:f64[] t:f64[]. let a:f64[] b:f64[] = custom_linear[backward={ lambda r:f64[] s:f64[] c:f64[] d:f64[]. "
      "let e:f64[] = mul s c g:f64[] = add e d in (g,) } num_residuals=2] r s t in (a,) }";
  const double in[] = {2, 3, 5};
  double out;
  ax_program *program, *pruned, *transposed;
  TEST_OK(ax_program_parse(text, strlen(text), NULL, &program));
  TEST_OK(ax_program_dce(program, &pruned));
  assert_int_equal(pruned->eqns[0].in_count, 2);
  assert_int_equal(pruned->eqns[0].out_count, 1);
  TEST_OK(ax_program_transpose(pruned, AX_RANGE(2, 1), &transposed));
  test_run_scalars(transposed, in, &out);
  TEST_NEAR(out, 15, 0);
  ax_program *all[] = {program, pruned, transposed};
  for (size_t i = 0; i < AX_COUNT(all); i++) ax_program_release(all[i]);
}

static ax_status pruned_with_little_memory(void *context) {
  const ax_type types[] = {TEST_SCALAR(AX_F64), TEST_SCALAR(AX_F64), TEST_SCALAR(AX_F64)};
  ax_program *program, *pruned = NULL;
  ax_status status = ax_trace(AX_CLOSURE(first_of_both, 3, 1, context), types, &program);
  if (status == AX_OK) status = ax_program_dce(program, &pruned);
  ax_program_release(pruned);
  ax_program_release(program);
  return status;
}

static ax_status with_little_memory(void *context) {
  const ax_type types[] = {TEST_TYPE(AX_F64, 16, 4), TEST_TYPE(AX_F64, 4)};
  subject s = {*(const wrapping *)context, sums, HERE, false};
  ax_program *program;
  ax_status status = ax_trace(AX_CLOSURE(steepness, 2, 1, &s), types, &program);
  ax_program_release(program);
  return status;
}

static void without_memory(void **state) {
  (void)state;
  for (int by = BY_JVP; by < WRAPPINGS; by++) assert_true(test_each_allocation(with_little_memory, &(wrapping){(wrapping)by}) > 10);
  for (int way = 0; way < 2; way++) assert_true(test_each_allocation(pruned_with_little_memory, way != 0 ? &way : NULL) > 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rules_are_used),
                                     cmocka_unit_test(integers),
                                     cmocka_unit_test(refused),
                                     cmocka_unit_test(without_derivative),
                                     cmocka_unit_test(what_nobody_uses_goes),
                                     cmocka_unit_test(results_of_maps_go),
                                     cmocka_unit_test(as_the_plain_function),
                                     cmocka_unit_test(without_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
