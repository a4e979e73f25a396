/* How much of the caller's stack a run takes, of programs of every kind: programs run on a thread whose stack of 64 KB was painted
   before, and the paint says afterwards how deep the run went. include/axle/exec.h promises at most 32 KB, which holds for
   optimised code without sanitizers. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "axle/exec.h"
#include "axle/collectives.h"
#include "axle/kernel.h"
#include "axle/ops.h"
#include "axle/linalg.h"
#include "axle/numpy.h"
#include "axle/sharding.h"
#include "axle/transform.h"
#include "ir/prim.h"
#include "support/cmocka.h"
#include "support/kernels.h"
#include "support/run.h"
#include "support/sample.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
enum {
  small_stack = 1 << 20,
  promised = 1 << 20,
  promised_lapack = 1 << 20
}; /* frames are larger, by as much as the compiler likes */
#else
enum { small_stack = 64 << 10, promised = 32 << 10, promised_lapack = 48 << 10 };
#endif
enum { large_stack = 1 << 20, paint = 0xa5 };

typedef struct job {
  ax_executable *executable;
  uint32_t in_count, out_count;
  ax_array **in, **out;
  ax_status status;
} job;

static void *run_job(void *context) {
  job *j = context;
  j->status = ax_run(j->executable, AX_LIST(j->in_count, j->in), AX_LIST(j->out_count, j->out));
  return NULL;
}

static size_t depth_of(void *(*function)(void *), void *context, size_t stack_bytes) {
  char *stack;
  pthread_attr_t attributes;
  pthread_t thread;
  assert_int_equal(posix_memalign((void **)&stack, 4096, stack_bytes), 0);
  memset(stack, paint, stack_bytes);
  assert_int_equal(pthread_attr_init(&attributes), 0);
  assert_int_equal(pthread_attr_setstack(&attributes, stack, stack_bytes), 0);
  assert_int_equal(pthread_create(&thread, &attributes, function, context), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  pthread_attr_destroy(&attributes);
  size_t untouched = 0;
  while (untouched < stack_bytes && (unsigned char)stack[untouched] == paint) untouched++;
  free(stack);
  return stack_bytes - untouched;
}

static void *do_nothing(void *context) { return context; }

/* What the C library itself puts on a thread's stack: thread-local variables, of which the tests have many, and what calls the
   thread's function. */
static size_t own_depth(void) {
  static size_t bytes;
  if (bytes == 0) bytes = depth_of(do_nothing, NULL, large_stack);
  return bytes;
}

static size_t deepest;

/* The depth of a run on arrays of random values; 0: it failed, other than by a number that is not finite. */
static size_t run_depth(ax_program *program, double low, double high, const ax_compile_options *options) {
  static ax_runtime *runtime; /* for all programs */
  if (runtime == NULL) TEST_OK(ax_runtime_create(&(ax_runtime_options){.policy = AX_POLICY_FIXED}, &runtime));
  const uint32_t in_count = ax_program_in_count(program), out_count = ax_program_out_count(program);
  ax_array **arrays = calloc((size_t)in_count + out_count + 1, sizeof arrays[0]);
  job j = {.in_count = in_count, .out_count = out_count, .in = arrays, .out = arrays + in_count};
  test_random random = {1};
  assert_non_null(arrays);
  if (ax_compile(runtime, program, options, &j.executable) != AX_OK) {
    free(arrays);
    return 0;
  }
  for (uint32_t i = 0; i < in_count; i++) {
    ax_tensor *tensor = test_random_tensor(&random, *ax_program_in_type(program, i), low, high);
    TEST_OK(ax_device_put_data(runtime, NULL, "", ax_program_in_type(program, i), tensor->data, &arrays[i]));
    ax_tensor_release(tensor);
  }
  const size_t whole = depth_of(run_job, &j, own_depth() / 4096 * 4096 + small_stack),
               depth = whole > own_depth() ? whole - own_depth() : 1;
  for (uint32_t i = 0; i < in_count + out_count; i++) ax_array_release(arrays[i]);
  ax_executable_release(j.executable);
  free(arrays);
  if (depth > deepest) deepest = depth;
  return j.status == AX_OK || j.status == AX_NOT_FINITE ? depth : 0;
}

/* --- Each primitive --- */

/* LAPACK's own frames depend on the processor. */
static bool calls_lapack(const ax_program *program) {
  static const char *const names[] = {"cholesky",
                                      "triangular_solve",
                                      "lu",
                                      "linear_solve",
                                      "geqrf",
                                      "geqp3",
                                      "householder_product",
                                      "ormqr",
                                      "qr",
                                      "eigh",
                                      "eig",
                                      "svd",
                                      "schur",
                                      "hessenberg",
                                      "tridiagonal",
                                      "tridiagonal_solve"};
  for (uint32_t e = 0; e < program->eqn_count; e++)
    for (size_t n = 0; n < AX_COUNT(names); n++)
      if (strcmp(program->eqns[e].prim->name, names[n]) == 0) return true;
  return false;
}

/* What a sample computes is compiled as any program, and once more in reference code. Collectives, which are of a mesh, are among
   the larger programs. */
static void every_primitive(void **state) {
  (void)state;
  uint32_t count = 0;
  deepest = 0;
  for (size_t s = 0; s < test_sample_count; s++) {
    test_instances instances = test_instances_of(&test_samples[s], &test_in_f64);
    for (uint32_t i = 0; i < instances.count; i++)
      for (int reference = 0; reference < 2; reference++) {
        const size_t depth = run_depth(instances.v[i].program, test_low(&test_samples[s]), test_high(&test_samples[s]),
                                       &(ax_compile_options){.reference = reference == 1});
        if (depth > 0) count++;
        if (depth > (calls_lapack(instances.v[i].program) ? promised_lapack : promised))
          test_blame(&instances.v[i], "a run%s takes %zu bytes of the caller's stack", reference == 1 ? " in reference code" : "",
                     depth);
      }
    test_instances_release(&instances);
  }
  test_blameless();
  print_message("%u runs, at most %zu bytes of the caller's stack\n", count, deepest);
  assert_true(count > 200);
}

/* --- Larger programs --- */

static const int64_t last = -1;

static ax_value total(ax_value x) { return ax_reduce_sum(x, AX_ALL_DIMS, false); }

static void softmax(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_softmax(ax_add(ax_tanh(in[0]), in[1]), -1);
}
static void normalised(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value centred = ax_sub(in[0], ax_reduce_mean(in[0], AX_LIST(1, &last), true));
  out[0] = ax_mul(
      ax_mul(centred, ax_rsqrt(ax_add(ax_reduce_mean(ax_mul(centred, centred), AX_LIST(1, &last), true), ax_real(0.1)))), in[1]);
}
static void attention(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value shares = ax_softmax(ax_einsum("qd,kd->qk", AX_VALUES(in[0], in[1])), -1);
  out[0] = ax_einsum("qk,kd->qd", AX_VALUES(shares, in[1]));
}
static void reductions(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(ax_add(total(in[0]), ax_reduce_max(in[1], AX_ALL_DIMS, false)),
                  total(ax_reduce_sum(ax_mul(in[0], in[1]), AX_DIMS(0), false)));
}
static void products(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value halves = ax_convert_element_type(in[0], AX_BF16), wide = ax_convert_element_type(in[1], AX_F64);
  out[0] = ax_matmul(in[0], ax_transpose(in[1], AX_DIMS(1, 0)));
  out[0] = ax_add(out[0], ax_convert_element_type(ax_matmul(halves, ax_transpose(halves, AX_DIMS(1, 0))), AX_F32));
  out[0] = ax_add(out[0], ax_convert_element_type(ax_matmul(wide, ax_transpose(wide, AX_DIMS(1, 0))), AX_F32));
}
static void sorted(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value best[2];
  ax_top_k(in[1], 9, best);
  out[0] = ax_add(ax_sort(in[0], 1), ax_convert_element_type(ax_argsort(in[1], 0), AX_F32));
  out[0] = ax_add(out[0], ax_reduce_sum(best[0], AX_LIST(1, &last), true));
}
static void table(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value place = ax_convert_element_type(ax_reshape(ax_slice(in[0], AX_DIMS(0, 0), AX_DIMS(512, 1), NULL), AX_DIMS(512)), AX_S32);
  ax_value rows = ax_take(in[1], ax_abs(place), 0);
  const ax_scatter_dims to_rows = {
      .update_window_dims = {AX_DIMS(1)}, .inserted_window_dims = {AX_DIMS(0)}, .scatter_dims_to_operand_dims = {AX_DIMS(0)}};
  out[0] = ax_scatter_add(in[1], ax_reshape(ax_abs(place), AX_DIMS(512, 1)), rows, &to_rows, NULL);
  out[0] = ax_add(out[0], ax_cumsum(in[0], 1, false));
}
static void convolved(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value images = ax_reshape(in[0], AX_DIMS(8, 16, 64, 64)),
           weights = ax_reshape(ax_slice(in[1], AX_DIMS(0, 0), AX_DIMS(9, 256), NULL), AX_DIMS(16, 16, 3, 3));
  out[0] = total(ax_mul(ax_tanh(ax_conv(images, weights, NULL, "SAME")), images));
  out[0] =
      ax_add(out[0], total(ax_reduce_window_max(images, AX_DIMS(1, 1, 2, 2),
                                                (&(ax_window_options){.strides = {AX_DIMS(1, 1, 2, 2)}, .padding = "VALID"}))));
}
static AX_BODY(step) {
  (void)context;
  out[0] = ax_add(ax_add(in[0], ax_real(1)), ax_softmax(in[1], -1));
  out[1] = ax_tanh(in[1]);
}
static AX_BODY(not_yet) {
  (void)context;
  out[0] = ax_lt(ax_reduce_max(in[0], AX_ALL_DIMS, false), ax_real(4)); /* each step adds 1 or more */
}
static void looped(const ax_value *in, ax_value *out, void *context) {
  ax_value made[2];
  ax_scan(AX_CLOSURE(step, 2, 2, context), 2, 3, false, in, made);
  ax_while(AX_CLOSURE(not_yet, 2, 1, context), AX_CLOSURE(step, 2, 2, context), made, made);
  out[0] = made[0];
}
static AX_BODY(on_device) {
  (void)context;
  ax_value mine = ax_softmax(in[0], -1), gathered = ax_all_gather(mine, "d", 0, true),
           parts = ax_psum_scatter(gathered, "d", 0, true);
  ax_value sum = ax_psum(ax_mul(parts, in[1]), "d");
  out[0] = ax_add(parts,
                  ax_ppermute(ax_all_to_all(mine, "d", 0, 0, true), "d", 4, (const int64_t[][2]){{0, 1}, {1, 2}, {2, 3}, {3, 0}}));
  out[0] = ax_add(out[0], sum);
}
static void collectives(const ax_value *in, ax_value *out, void *context) {
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=4", &mesh));
  ax_shard_map(&mesh, "d; d -> d", AX_CLOSURE(on_device, 2, 1, context), in, out);
}
static void loss_of(const ax_value *in, ax_value *out, void *context) {
  const ax_function *of = context;
  (*of)(in, out, NULL);
  if (ax_typeof(out[0]).rank > 0) out[0] = total(ax_mul(out[0], out[0]));
}
static void kernel_rows(const ax_value *in, ax_value *out, void *context) {
  ax_value small = ax_slice(in[0], AX_DIMS(0, 0), AX_DIMS(3, 2), NULL);
  test_doubled(&small, out, context);
}

static void factored(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value square = ax_slice(in[0], AX_DIMS(0, 0), AX_DIMS(384, 384), NULL), parts[3], lu[3];
  ax_value regular = ax_add(square, ax_mul(ax_real(400), ax_eye(AX_F32, 384, 384, 0)));
  ax_value definite = ax_matmul(regular, ax_transpose(regular, AX_DIMS(1, 0)));
  out[0] = ax_add(total(ax_solve(regular, square)), total(ax_cholesky_solve(ax_cholesky(definite, true), square, true)));
  ax_lu(regular, AX_LIST(3, lu));
  ax_eigh(definite, true, true, AX_LIST(2, parts));
  out[0] = ax_add(out[0], ax_add(total(parts[0]), total(ax_lu_solve(lu[0], lu[1], square, false))));
  ax_qr(square, false, false, AX_LIST(2, parts));
  out[0] = ax_add(out[0], total(parts[1]));
  ax_svd(square, false, true, AX_LIST(3, parts));
  out[0] = ax_add(out[0], total(parts[1]));
  ax_schur(square, true, AX_LIST(2, parts));
  out[0] = ax_add(out[0], total(parts[0]));
  ax_hessenberg(square, AX_LIST(2, parts));
  out[0] = ax_add(out[0], total(parts[0]));
}

static void root(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_sqrt(ax_add(in[0], in[1]));
}

static const struct larger {
  const char *name;
  ax_function function;
  bool derived; /* and its gradient */
} larger_programs[] = {
    {"softmax", softmax, true},          {"normalised", normalised, true}, {"attention", attention, true},
    {"reductions", reductions, true},    {"products", products, true},     {"sorted", sorted, true},
    {"gather and scatter", table, true}, {"convolved", convolved, true},   {"looped", looped, false},
    {"collectives", collectives, true},  {"a kernel", kernel_rows, false}, {"factored", factored, false},
};

static bool take_too_much(const char *name, const char *what, size_t depth) {
  if (depth > 0 && depth <= (strcmp(name, "factored") == 0 ? promised_lapack : promised)) return false;
  print_error("%s%s: a run took %zu bytes of the caller's stack (0: it failed)\n", name, what, depth);
  return true;
}

static void larger(void **state) {
  (void)state;
  const ax_type type = ax_array_type(AX_F32, AX_DIMS(512, 1024)), types[2] = {type, type};
  bool bad = false;
  deepest = 0;
  for (size_t i = 0; i < AX_COUNT(larger_programs); i++) {
    const struct larger *l = &larger_programs[i];
    ax_program *program = test_trace(l->function, NULL, types, 2, 1), *loss, *grad;
    bad = take_too_much(l->name, "", run_depth(program, -1, 1, &(ax_compile_options){0})) || bad;
    ax_program_release(program);
    if (!l->derived) continue;
    loss = test_trace(loss_of, (void *)&l->function, types, 2, 1);
    TEST_OK(ax_program_value_and_grad(loss, test_args((bool[]){true, true}, 2), &grad));
    bad = take_too_much(l->name, ", its gradient", run_depth(grad, -1, 1, &(ax_compile_options){0})) || bad;
    ax_program_release(loss);
    ax_program_release(grad);
  }
  ax_program *roots = test_trace(root, NULL, types, 2, 1);
  bad = take_too_much("roots of negative numbers", ", which are found",
                      run_depth(roots, -1, 1, &(ax_compile_options){.check_numerics = AX_CHECK_NAN})) ||
        bad;
  ax_program_release(roots);
  print_message("larger programs: at most %zu bytes of the caller's stack\n", deepest);
  assert_false(bad);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_primitive), cmocka_unit_test(larger)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
