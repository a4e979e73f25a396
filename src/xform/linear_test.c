/* Functions linearized in a trace, Jacobians and Hessians: held against one another, for functions of every kind. */
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "axle/transform.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/tensor.h"

/* --- The functions: x T[3], w T[3,2], n s32[4], s T[], z T[0,2]  ->  T[2], s32[4], T[], T[0,3] --- */

enum { in_count = 5, out_count = 4, float_count = 4 };
static const uint32_t floats[float_count] = {0, 1, 3, 4}; /* of the operands */
static const uint32_t results[] = {0, 2, 3};              /* of the results, those that are floats */

static ax_value total(ax_value x) { return ax_reduce_sum(x, AX_ALL_DIMS, false); }

static void plain(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_mul(ax_tanh(ax_matmul(in[0], in[1])), in[3]);
  out[1] = ax_add(in[2], ax_integer(1));
  out[2] = ax_add(total(ax_exp(in[0])), ax_convert_element_type(total(in[2]), ax_typeof(in[0]).dtype));
  out[3] = ax_matmul(in[4], ax_full(ax_typeof(in[4]).dtype, AX_DIMS(2, 3), 1));
}

/* With a value of the trace around, which is the context. */
static void captures(const ax_value *in, ax_value *out, void *context) {
  plain(in, out, NULL);
  out[0] = ax_mul(out[0], *(const ax_value *)context);
  out[2] = ax_add(out[2], ax_mul(*(const ax_value *)context, in[3]));
}

static void called(const ax_value *in, ax_value *out, void *context) {
  ax_closed_call(AX_CLOSURE(captures, in_count, out_count, context), in, out);
}

static void turn(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[0];                                                             /* w */
  out[1] = ax_tanh(ax_add(in[1], ax_matmul(in[0], ax_matmul(in[1], in[0])))); /* x */
  out[2] = total(out[1]);
}
static void scanned(const ax_value *in, ax_value *out, void *context) {
  plain(in, out, context);
  ax_value carry[] = {in[1], in[0]}, made[3];
  ax_scan(AX_FN(turn, 2, 3), 2, 3, false, carry, made);
  out[0] = ax_matmul(made[1], in[1]);
  out[2] = total(ax_mul(made[2], in[3]));
}

static void one_way(const ax_value *in, ax_value *out, void *context) { plain(in, out, context); }
static void other_way(const ax_value *in, ax_value *out, void *context) {
  plain(in, out, context);
  out[2] = ax_mul(in[3], in[3]);
}
static void branches(const ax_value *in, ax_value *out, void *context) {
  ax_if(ax_gt(total(in[2]), ax_integer(3)), AX_CLOSURE(one_way, in_count, out_count, context),
        AX_CLOSURE(other_way, in_count, out_count, context), in, out);
}

/* Whose floats depend on no operand. */
static void constant(const ax_value *in, ax_value *out, void *context) {
  plain(in, out, context);
  out[0] = ax_full_like(out[0], 2);
  out[2] = ax_full_like(out[2], 3);
}

static void on_devices(const ax_value *in, ax_value *out, void *context) {
  (void)context; /* x in blocks, w and s whole */
  ax_value mine = ax_tanh(ax_mul(in[0], in[2]));
  out[0] = ax_psum(ax_mul(mine, total(ax_exp(in[1]))), "d");
  out[1] = ax_mul(mine, mine);
}
static void sharded(const ax_value *in, ax_value *out, void *context) {
  plain(in, out, context);
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=2", &mesh));
  ax_value x[] = {ax_concatenate(AX_VALUES(in[0], in[0]), 0), in[1], in[3]}, made[2];
  ax_shard_map(&mesh, "d;; -> ; d", AX_FN(on_devices, 3, 2), x, made);
  out[0] = ax_slice_in_dim(made[0], 0, 2, 1, 0);
  out[2] = ax_add(out[2], total(made[1]));
}

static void member(const ax_value *in, ax_value *out, void *context) {
  (void)context; /* a row of w, x, s */
  ax_value row = ax_mul(in[0], in[2]);
  out[0] = ax_mul(ax_sub(row, ax_pmean(row, "i")), total(in[1]));
}
static void mapped(const ax_value *in, ax_value *out, void *context) {
  plain(in, out, context);
  const ax_vmap_options options = {.axis_name = "i", .in_axes = {AX_DIMS(0, AX_NOT_MAPPED, AX_NOT_MAPPED)}};
  ax_value operands[] = {in[1], in[0], in[3]}, made;
  ax_vmap(AX_FN(member, 3, 1), operands, &made, &options);
  out[0] = ax_reduce_sum(ax_mul(made, made), AX_DIMS(0), false);
}

/* One that is itself a derivative. */
static void first_only(const ax_value *in, ax_value *out, void *context) {
  ax_value made[out_count];
  plain(in, made, context);
  out[0] = ax_add(total(ax_mul(made[0], made[0])), made[2]);
}
static void derived(const ax_value *in, ax_value *out, void *context) {
  plain(in, out, context);
  ax_value slopes[float_count];
  ax_grad(AX_CLOSURE(first_only, in_count, 1, context), AX_ALL_ARGS, in, slopes);
  out[0] = ax_matmul(slopes[0], slopes[1]);
  out[2] = slopes[2];
}

typedef struct example {
  const char *name;
  ax_function function;
} example;
static const example examples[] = {{"plain", plain},     {"captures", captures}, {"called", called},
                                   {"scanned", scanned}, {"branches", branches}, {"constant", constant},
                                   {"sharded", sharded}, {"mapped", mapped},     {"derived", derived}};

/* --- What holds: each function below gives pairs of scalars that are the same --- */

static ax_value dot(ax_value a, ax_value b) { return total(ax_mul(a, b)); }
static void pair(ax_value **out, ax_value a, ax_value b) {
  ax_value zero = ax_full_like(a, 0);
  *(*out)++ = ax_add(a, zero);
  *(*out)++ = ax_add(b, zero);
}

typedef struct question {
  ax_function function;
  ax_dtype dtype;
} question;

/* The operands that the program is given: in_count of the function, float_count tangents, out_count cotangents (of which one is no
   float's). */
static ax_fn function_of(const question *q, ax_value *captured, const ax_value *in) {
  *captured = in[3];
  return AX_CLOSURE(q->function, in_count, out_count, captured);
}

/* jvp and vjp, linearize used once and again: <v, J u> = <J' v, u>. */
static void inner_products(const ax_value *in, ax_value *out, void *context) {
  ax_value captured, made[4][out_count], tangent[2][out_count], gradient[2][float_count];
  ax_fn f = function_of(context, &captured, in);
  const ax_value *u = in + in_count, *v = u + float_count;
  ax_jvp(f, AX_ALL_ARGS, in, u, made[0], tangent[0]);
  ax_vjp(f, AX_ALL_ARGS, in, v, made[1], gradient[0]);
  ax_linear map = ax_linearize(f, AX_ARGS(0, 1, 3, 4), in, made[2]);
  ax_pushforward(map, u, tangent[1]);
  ax_pullback(map, v, gradient[1]);
  ax_value forward = ax_full_like(in[3], 0), backward = forward, again = forward;
  for (int r = 0; r < 3; r++) {
    forward = ax_add(forward, dot(tangent[0][results[r]], v[results[r]]));
    pair(&out, total(tangent[0][results[r]]), total(tangent[1][results[r]]));
    pair(&out, total(made[0][results[r]]), total(made[1][results[r]]));
    pair(&out, total(made[0][results[r]]), total(made[2][results[r]]));
  }
  for (int k = 0; k < float_count; k++) {
    backward = ax_add(backward, dot(gradient[0][k], u[k]));
    again = ax_add(again, dot(gradient[1][k], u[k]));
  }
  pair(&out, forward, backward);
  pair(&out, forward, again);
  ax_value doubled[float_count], twice[out_count];
  for (int k = 0; k < float_count; k++) doubled[k] = ax_mul(u[k], ax_integer(2));
  ax_pushforward(map, doubled, twice);
  pair(&out, ax_mul(ax_integer(2), total(tangent[1][0])), total(twice[0]));
  ax_value of_integer = ax_convert_element_type(total(twice[1]), ax_typeof(in[0]).dtype);
  pair(&out, of_integer, ax_full_like(of_integer, 0));
}
enum { inner_pairs = 9 + 2 + 2 };

static void floats_alone(const ax_value *in, ax_value *out, void *context) {
  ax_value made[out_count];
  ax_fn *f = context;
  f->function(in, made, f->context);
  for (int r = 0; r < 3; r++) out[r] = made[results[r]];
}

/* A Jacobian as the sum of its product with fixed weights, whatever its shape. */
static ax_value weighed(ax_value x) {
  ax_type type = ax_typeof(x);
  int64_t elems = ax_type_elems(&type);
  ax_value flat = ax_reshape(x, AX_DIMS(elems)), weights = ax_convert_element_type(ax_iota(AX_S32, AX_DIMS(elems), 0), type.dtype);
  return dot(flat, ax_add(ax_integer(1), ax_mul(weights, ax_real(0.25))));
}

static ax_value outer(ax_value a, ax_value b) {
  ax_type p = ax_typeof(a), q = ax_typeof(b);
  int64_t dims[AX_MAX_RANK];
  for (uint32_t d = 0; d < p.rank; d++) dims[d] = p.dims[d];
  for (uint32_t d = 0; d < q.rank; d++) dims[p.rank + d] = q.dims[d];
  ax_value column = ax_reshape(a, AX_DIMS(ax_type_elems(&p), 1)), row = ax_reshape(b, AX_DIMS(1, ax_type_elems(&q)));
  return ax_reshape(ax_mul(column, row), AX_LIST(p.rank + q.rank, dims));
}

/* jacfwd = jacrev, and v' J u by either = <v, J u>. */
static void jacobians(const ax_value *in, ax_value *out, void *context) {
  ax_value captured, forward[3 * float_count], reverse[3 * float_count], made[out_count], tangents[out_count];
  ax_fn all = function_of(context, &captured, in), f = AX_CLOSURE(floats_alone, in_count, 3, &all);
  const ax_value *u = in + in_count, *v = u + float_count;
  ax_jacfwd(f, AX_ALL_ARGS, in, forward);
  ax_jacrev(f, AX_ALL_ARGS, in, reverse);
  ax_jvp(all, AX_ALL_ARGS, in, u, made, tangents);
  for (int r = 0; r < 3; r++) {
    ax_value sum = ax_full_like(in[3], 0);
    for (int k = 0; k < float_count; k++) {
      ax_value a = forward[r * float_count + k], b = reverse[r * float_count + k];
      sum = ax_add(sum, dot(a, outer(v[results[r]], u[k])));
      pair(&out, weighed(a), weighed(b));
    }
    pair(&out, sum, dot(v[results[r]], tangents[results[r]]));
  }
}
enum { jacobian_pairs = 3 * (float_count + 1) };

static void loss(const ax_value *in, ax_value *out, void *context) {
  ax_value made[out_count];
  ax_fn *f = context;
  f->function(in, made, f->context);
  out[0] = ax_add(total(ax_mul(made[0], made[0])), ax_mul(made[2], made[2]));
  out[1] = made[1]; /* auxiliary */
}
static void loss_alone(const ax_value *in, ax_value *out, void *context) {
  ax_value made[2];
  loss(in, made, context);
  out[0] = made[0];
}

/* hvp = hessian u; its gradients are grad's; the Hessian is symmetric. */
static void hessians(const ax_value *in, ax_value *out, void *context) {
  ax_value captured, second[float_count * float_count], gradients[float_count], products[float_count],
      plain_gradients[float_count + 2];
  ax_fn all = function_of(context, &captured, in), f = AX_CLOSURE(loss_alone, in_count, 1, &all),
        aux = AX_CLOSURE(loss, in_count, 2, &all);
  const ax_value *u = in + in_count;
  ax_hessian(f, AX_ALL_ARGS, in, second);
  ax_hvp(aux, AX_ALL_ARGS, in, u, gradients, products);
  ax_value_and_grad(aux, AX_ALL_ARGS, in, plain_gradients);
  for (int k = 0; k < float_count; k++) {
    ax_value product = ax_full_like(in[3], 0);
    ax_type type = ax_typeof(in[floats[k]]);
    ax_value w = ax_add(ax_reshape(ax_convert_element_type(ax_iota(AX_S32, AX_DIMS(ax_type_elems(&type)), 0), type.dtype),
                                   AX_LIST(type.rank, type.dims)),
                        ax_integer(1));
    for (int l = 0; l < float_count; l++) {
      product = ax_add(product, dot(second[k * float_count + l], outer(w, u[l])));
      ax_value other = second[l * float_count + k];
      pair(&out, dot(second[k * float_count + l], outer(w, u[l])), dot(other, outer(u[l], w)));
    }
    pair(&out, product, dot(products[k], w));
    pair(&out, weighed(gradients[k]), weighed(plain_gradients[2 + k]));
  }
}
enum { hessian_pairs = float_count * (float_count + 2), most_pairs = 24 };

/* --- Asking --- */

enum { given_count = in_count + float_count + out_count };

static void types_of(ax_dtype dtype, ax_type *types) {
  const ax_type operands[in_count] = {TEST_TYPE(dtype, 3), TEST_TYPE(dtype, 3, 2), TEST_TYPE(AX_S32, 4), TEST_SCALAR(dtype),
                                      TEST_TYPE(dtype, 0, 2)};
  const ax_type values[out_count] = {TEST_TYPE(dtype, 2), TEST_TYPE(AX_S32, 4), TEST_SCALAR(dtype), TEST_TYPE(dtype, 0, 3)};
  for (int i = 0; i < in_count; i++) types[i] = operands[i];
  for (int k = 0; k < float_count; k++) types[in_count + k] = operands[floats[k]];
  for (int r = 0; r < out_count; r++) types[in_count + float_count + r] = values[r];
}

static void ask(const example *e, ax_function holds, uint32_t pairs, ax_dtype dtype, double tolerance) {
  ax_type types[given_count];
  ax_tensor *in[given_count], *out[2 * most_pairs];
  question q = {e->function, dtype};
  ax_program *program;
  types_of(dtype, types);
  TEST_OK(ax_trace(AX_CLOSURE(holds, given_count, 2 * pairs, &q), types, &program));
  TEST_OK(ax_program_verify(program));
  for (uint32_t i = 0, next = 7; i < given_count; i++) {
    double values[8];
    for (int n = 0; n < 8; n++)
      values[n] = ax_is_float(types[i].dtype) ? (double)(int)((next = next * 1103515245 + 12345) >> 16 & 255) / 256 - 0.4 : n;
    in[i] = test_tensor(types[i], values);
  }
  test_run(program, in, out);
  for (uint32_t p = 0; p < pairs; p++) {
    double a = test_get(out[2 * p], 0), b = test_get(out[2 * p + 1], 0);
    if (!test_near(a, b, tolerance)) fail_msg("%s, %s: pair %u: %.17g and %.17g", e->name, ax_dtype_name(dtype), p, a, b);
    assert_true(isfinite(a));
  }
  test_release(in, given_count);
  test_release(out, 2 * pairs);
  ax_program_release(program);
}

static void ask_all(ax_function holds, uint32_t pairs, bool low) {
  for (size_t e = 0; e < sizeof examples / sizeof examples[0]; e++) {
    ask(&examples[e], holds, pairs, AX_F64, 1e-11);
    ask(&examples[e], holds, pairs, AX_F32, 1e-4);
    if (low) ask(&examples[e], holds, pairs, AX_BF16, 0.2);
  }
}

static void linear_maps(void **state) { (void)state, ask_all(inner_products, inner_pairs, true); }
static void whole_jacobians(void **state) { (void)state, ask_all(jacobians, jacobian_pairs, true); }
static void whole_hessians(void **state) { (void)state, ask_all(hessians, hessian_pairs, false); }

/* --- Where a linearized function is good --- */

static ax_type scalar_f64(void) { return TEST_SCALAR(AX_F64); }

static ax_status run(ax_function f, const double *x, uint32_t count, double *y, uint32_t results_count) {
  ax_type types[4] = {scalar_f64(), scalar_f64(), scalar_f64(), scalar_f64()};
  ax_program *program;
  ax_status status = ax_trace(AX_FN(f, count, results_count), types, &program);
  if (status != AX_OK) return status;
  test_run_scalars(program, x, y);
  ax_program_release(program);
  return AX_OK;
}

static void cube(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_integer_pow(in[0], 3);
}

/* Of the context's map, which the inner trace captures. */
static void pushed(const ax_value *in, ax_value *out, void *context) { ax_pushforward(*(ax_linear *)context, in, out); }
static void pulled(const ax_value *in, ax_value *out, void *context) { ax_pullback(*(ax_linear *)context, in, out); }
static void pulled_on_device(const ax_value *in, ax_value *out, void *context) {
  ax_value one = ax_reshape(in[0], AX_DIMS());
  ax_pullback(*(ax_linear *)context, &one, out);
  out[0] = ax_reshape(out[0], AX_DIMS(1));
}

static void inside(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value y, both = ax_stack(AX_VALUES(in[1], in[1]), 0), many;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=2", &mesh));
  ax_linear map = ax_linearize(AX_FN(cube, 1, 1), AX_ALL_ARGS, in, &y);
  ax_scan(AX_CLOSURE(pushed, 1, 1, &map), 1, 2, false, &in[1], &out[0]); /* 3x^2 twice */
  ax_grad(AX_CLOSURE(pulled, 1, 1, &map), AX_ALL_ARGS, &in[1], &out[1]); /* linear in the cotangent */
  ax_vmap(AX_CLOSURE(pulled, 1, 1, &map), &both, &many, NULL);
  out[2] = total(many);
  ax_shard_map(&mesh, "d -> d", AX_CLOSURE(pulled_on_device, 1, 1, &map), &both, &many);
  out[3] = total(many);
}

/* The residuals depend on x: second derivatives through a captured map. */
static void slope(const ax_value *in, ax_value *out, void *context) {
  ax_value y, one = ax_real(1);
  ax_linear map = ax_linearize(AX_CLOSURE(cube, 1, 1, context), AX_ALL_ARGS, in, &y);
  ax_pullback(map, &one, out);
}
static void curvature(const ax_value *in, ax_value *out, void *context) {
  ax_grad(AX_CLOSURE(slope, 1, 1, context), AX_ALL_ARGS, in, out);
}

static void inner_traces(void **state) {
  (void)state;
  double x[] = {2, 0.5}, y[4];
  TEST_OK(run(inside, x, 2, y, 4));
  assert_true(y[0] == 72 && y[1] == 12 && y[2] == 12 && y[3] == 12);
  TEST_OK(run(curvature, x, 1, y, 1));
  assert_true(y[0] == 12);
}

/* A map that leaves the function it was made in. */
static void leave(const ax_value *in, ax_value *out, void *context) {
  *(ax_linear *)context = ax_linearize(AX_FN(cube, 1, 1), AX_ALL_ARGS, in, out);
}
static void stale_push(const ax_value *in, ax_value *out, void *context) {
  ax_linear map;
  ax_closed_call(AX_CLOSURE(leave, 1, 1, &map), in, out);
  (void)context, ax_pushforward(map, in, out);
}
static void stale_pull(const ax_value *in, ax_value *out, void *context) {
  ax_linear map;
  ax_closed_call(AX_CLOSURE(leave, 1, 1, &map), in, out);
  (void)context, ax_pullback(map, in, out);
}
static void never_made(const ax_value *in, ax_value *out, void *context) {
  (void)context, ax_pullback(((ax_linear){.in_count = 1, .out_count = 1}), in, out);
}
static void wrong_tangent(const ax_value *in, ax_value *out, void *context) {
  ax_value wrong = ax_stack(AX_VALUES(in[0], in[0]), 0);
  (void)context, ax_pushforward(ax_linearize(AX_FN(cube, 1, 1), AX_ALL_ARGS, in, out), &wrong, out);
}
static void wrong_cotangent(const ax_value *in, ax_value *out, void *context) {
  ax_value wrong = ax_convert_element_type(in[0], AX_F32), made;
  (void)context, ax_vjp(AX_FN(cube, 1, 1), AX_ALL_ARGS, in, &wrong, &made, out);
}
static void wrong_vector(const ax_value *in, ax_value *out, void *context) {
  ax_value wrong = ax_stack(AX_VALUES(in[0], in[0]), 0);
  (void)context, ax_hvp(AX_FN(cube, 1, 1), AX_ALL_ARGS, in, &wrong, NULL, out);
}
static void whole(const ax_value *in, ax_value *out, void *context) {
  (void)context, out[0] = ax_convert_element_type(in[0], AX_S32);
}
static void jacobian_of_integer(const ax_value *in, ax_value *out, void *context) {
  ax_jacfwd(AX_CLOSURE(whole, 1, 1, context), AX_ALL_ARGS, in, out);
}
static void hessian_of_integer(const ax_value *in, ax_value *out, void *context) {
  ax_hessian(AX_CLOSURE(whole, 1, 1, context), AX_ALL_ARGS, in, out);
}
static void product_by_integer(const ax_value *in, ax_value *out, void *context) {
  ax_hvp(AX_CLOSURE(whole, 1, 1, context), AX_ALL_ARGS, in, in, NULL, out);
}
static void ranks(const ax_value *in, ax_value *out, void *context) {
  static const int64_t ones[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  ax_value x = ax_reshape(in[0], AX_LIST(9, ones));
  ax_jacrev(AX_CLOSURE(cube, 1, 1, context), AX_ALL_ARGS, &x, out);
}
static void too_small(const ax_value *in, ax_value *out, void *context) {
  (void)context, out[0] = in[0], out[1] = ax_add(in[0], ax_stack(AX_VALUES(in[0]), 0));
}
static void too_many_results(const ax_value *in, ax_value *out, void *context) {
  ax_jacrev(AX_CLOSURE(too_small, 1, 1, context), AX_ALL_ARGS, in, out);
}
static void nothing_to_derive(const ax_value *in, ax_value *out, void *context) {
  ax_value number = ax_convert_element_type(in[0], AX_S32);
  ax_linear map = ax_linearize(AX_CLOSURE(cube, 1, 1, context), AX_ALL_ARGS, &number, out);
  ax_pushforward(map, in, out);
}
static void by_integer(const ax_value *in, ax_value *out, void *context) {
  ax_value operands[] = {in[0], ax_convert_element_type(in[0], AX_S32)};
  ax_jacrev(AX_CLOSURE(cube, 2, 1, context), AX_FIRST(2), operands, out);
}
static void halve(const ax_value *in, ax_value *out, void *context) { (void)context, out[0] = ax_mul(in[0], ax_real(0.5)); }
static void large(const ax_value *in, ax_value *out, void *context) { (void)context, out[0] = ax_gt(in[0], ax_real(1)); }
static void while_large(const ax_value *in, ax_value *out, void *context) {
  ax_while(AX_CLOSURE(large, 1, 1, context), AX_CLOSURE(halve, 1, 1, context), in, out);
}
static void backward_of_while(const ax_value *in, ax_value *out, void *context) {
  ax_value made, one = ax_integer(1);
  ax_vjp(AX_CLOSURE(while_large, 1, 1, context), AX_ALL_ARGS, in, &one, &made, out);
}
static void forward_of_while(const ax_value *in, ax_value *out, void *context) {
  ax_jacfwd(AX_CLOSURE(while_large, 1, 1, context), AX_ALL_ARGS, in, out);
}

static void refusals(void **state) {
  (void)state;
  double x[] = {6}, y[2];
  const ax_status kind = AX_INVALID_ARGUMENT;
  TEST_FAILS(run(stale_push, x, 1, y, 1), kind,
             "pushforward: the function was linearized in a trace that has finished, or in another one");
  TEST_FAILS(run(stale_pull, x, 1, y, 1), kind, "pullback: the function was linearized in a trace that has finished");
  TEST_FAILS(run(never_made, x, 1, y, 1), kind, "pullback: the linearized function was never made");
  TEST_FAILS(run(wrong_tangent, x, 1, y, 1), kind, "pushforward: operand 0 is f64[], but its tangent is f64[2]");
  TEST_FAILS(run(wrong_cotangent, x, 1, y, 1), kind, "vjp: result 0 is f64[], but its cotangent is f32[]");
  TEST_FAILS(run(wrong_vector, x, 1, y, 1), kind, "hvp: operand 0 is f64[], but its vector is f64[2]");
  TEST_FAILS(run(jacobian_of_integer, x, 1, y, 1), kind, "jacfwd: result 0 is s32[]: only floats have derivatives");
  TEST_FAILS(run(hessian_of_integer, x, 1, y, 1), kind, "hessian: result 0 is s32[]");
  TEST_FAILS(run(product_by_integer, x, 1, y, 1), kind, "hvp: the first result must be a float scalar; it is s32[]");
  TEST_FAILS(run(ranks, x, 1, y, 1), kind,
             "jacrev: the derivative of f64[1,1,1,1,1,1,1,1,1] by f64[1,1,1,1,1,1,1,1,1]: there may be 16 dimensions");
  TEST_FAILS(run(too_many_results, x, 1, y, 1), kind, "jacrev: function: out[1] was set, but there is 1 result");
  TEST_FAILS(run(nothing_to_derive, x, 1, y, 1), kind, "linearize: there is nothing to take derivatives by");
  TEST_FAILS(run(by_integer, x, 1, y, 2), kind, "jacrev: operand 1 is s32[]: only floats have derivatives");
  TEST_FAILS(run(backward_of_while, x, 1, y, 1), AX_ABSENT, "vjp: ");
  TEST_OK(run(forward_of_while, x, 1, y, 1));
  assert_true(y[0] == 0.125);
}

/* --- Cost: tracing follows the function's size, the number of operands and of uses --- */

typedef struct work {
  ax_function transform; /* of the function below, of its operands */
  int links, count;      /* of a chain; of operands */
} work;

static void chain(const ax_value *in, ax_value *out, void *context) {
  const work *w = context;
  out[0] = ax_tanh(in[0]);
  for (int i = 0; i < w->links; i++) out[0] = ax_tanh(ax_mul(out[0], in[i % w->count]));
}
static void used_often(const ax_value *in, ax_value *out, void *context) {
  ax_value y, tangent = in[0];
  ax_linear map = ax_linearize(AX_CLOSURE(chain, 1, 1, context), AX_FIRST(1), in, &y);
  for (int i = 0; i < 100; i++) ax_pushforward(map, &tangent, &tangent);
  for (int i = 0; i < 100; i++) ax_pullback(map, &tangent, &tangent);
  out[0] = tangent;
}
static void each_of_all(const ax_value *in, ax_value *out, void *context) {
  const work *w = context;
  uint32_t count = (uint32_t)w->count;
  ax_fn f = AX_CLOSURE(chain, count, 1, context);
  ax_value *operands = malloc(count * sizeof operands[0]), *made = malloc(3 * count * sizeof made[0]), y;
  for (uint32_t i = 0; i < count; i++) operands[i] = in[0];
  ax_jacfwd(f, AX_RANGE(1, count - 1), operands, made);
  ax_jacrev(f, AX_ALL_ARGS, operands, made + count);
  ax_vjp(f, AX_RANGE(1, count - 1), operands, &operands[0], &y, made + 2 * count);
  out[0] = ax_add(ax_add(made[0], made[2 * count - 1]), made[3 * count - 2]);
  free(operands);
  free(made);
}

static double seconds_to_trace(work w) {
  ax_type type = scalar_f64();
  ax_program *program;
  struct timespec from, to;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
  TEST_OK(ax_trace(AX_CLOSURE(w.transform, 1, 1, &w), &type, &program));
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
  ax_program_release(program);
  return (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
}

/* Four times as much work takes four times as long; the bound is half way, by exponent, to what something quadratic takes. */
static void cost_follows_size(void **state) {
  (void)state;
#ifdef AXLE_VERIFIES
  skip(); /* verifiers cost more than what they look at */
#endif
  const work pairs[][2] = {{{used_often, 50, 1}, {used_often, 200, 1}}, {{each_of_all, 500, 500}, {each_of_all, 2000, 2000}}};
  for (int p = 0; p < 2; p++) {
    double ratio = 16;
    for (int tries = 0; tries < 5 && ratio >= 8; tries++) {
      double took = seconds_to_trace(pairs[p][1]) / seconds_to_trace(pairs[p][0]);
      if (took < ratio) ratio = took;
    }
    assert_true(ratio < 8);
  }
}

static void several(const ax_value *in, ax_value *out, void *context) {
  inside(in, out, context);
  ax_jacfwd(AX_CLOSURE(cube, 1, 1, context), AX_FIRST(1), in, &out[4]);
  ax_hessian(AX_CLOSURE(cube, 1, 1, context), AX_FIRST(1), in, &out[5]);
  ax_hvp(AX_CLOSURE(cube, 1, 1, context), AX_FIRST(1), in, in, NULL, &out[6]);
}
static ax_status trace_several(void *context) {
  (void)context;
  ax_type types[] = {scalar_f64(), scalar_f64()};
  ax_program *program;
  ax_status status = ax_trace(AX_FN(several, 2, 7), types, &program);
  ax_program_release(program);
  return status;
}
static void survives_lack_of_memory(void **state) {
  (void)state;
  assert_true(test_each_allocation(trace_several, NULL) > 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(linear_maps),  cmocka_unit_test(whole_jacobians), cmocka_unit_test(whole_hessians),
      cmocka_unit_test(inner_traces), cmocka_unit_test(refusals),        cmocka_unit_test(cost_follows_size),
      cmocka_unit_test(survives_lack_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
