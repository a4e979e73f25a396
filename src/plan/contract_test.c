/* Contraction: which products are not rounded by themselves, what the option and the environment say, and that results are those of
   fma, the same for all cuts and threads. */
#include "plan/contract.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "axle/exec.h"
#include "axle/ops.h"
#include "axle/transform.h"
#include "machine/features.h"
#include "support/cmocka.h"
#include "support/run.h"

/* --- Kernels --- */

static const int64_t dims[] = {8};
static const ax_position at[] = {{.dim = 0, .coef = 1, .dynamic = AX_NONE}};

typedef struct operands {
  ax_arena arena;
  ax_loop_kernel *kernel;
  ax_dtype dtype;
  ax_ex x, y, z;
} operands;

static void begin(operands *o, ax_dtype dtype) {
  *o = (operands){.dtype = dtype};
  o->kernel = ax_kernel_create(&o->arena, 1, 0, dims);
  o->x = ax_kernel_load(o->kernel, ax_kernel_slot(o->kernel, dtype, 1, dims), at);
  o->y = ax_kernel_load(o->kernel, ax_kernel_slot(o->kernel, dtype, 1, dims), at);
  o->z = ax_kernel_load(o->kernel, ax_kernel_slot(o->kernel, dtype, 1, dims), at);
}

static ax_ex op(const operands *o, ax_scalar scalar, ax_ex a, ax_ex b) {
  return ax_kernel_op(o->kernel, scalar, o->dtype, a, b, AX_NONE);
}

static void store(const operands *o, ax_ex value) {
  ax_kernel_store(o->kernel, ax_kernel_slot(o->kernel, o->dtype, 1, dims), at, value, AX_SCALAR_NONE);
}

/* Contracts the kernel. Returns which operand of `sum` is a contracted product. */
static int contracted(operands *o, ax_ex sum) {
  bool any;
  assert_false(o->kernel->failed);
  TEST_OK(ax_kernel_contract(o->kernel, &any));
  const int product = ax_expr_contracted(&o->kernel->exprs[sum]);
  assert_int_equal(any, product >= 0);
  ax_arena_deinit(&o->arena);
  return product;
}

static int of_sum(ax_dtype dtype, ax_scalar scalar, bool product_first) {
  operands o;
  begin(&o, dtype);
  const ax_ex product = op(&o, AX_SCALAR_MUL, o.x, o.y);
  const ax_ex sum = product_first ? op(&o, scalar, product, o.z) : op(&o, scalar, o.z, product);
  store(&o, sum);
  return contracted(&o, sum);
}

static void products_that_are_added(void **state) {
  (void)state;
  const ax_dtype wide[] = {AX_F32, AX_F64}, others[] = {AX_BF16, AX_F16, AX_S32};
  for (size_t d = 0; d < AX_COUNT(wide); d++) {
    assert_int_equal(of_sum(wide[d], AX_SCALAR_ADD, true), 0);
    assert_int_equal(of_sum(wide[d], AX_SCALAR_ADD, false), 1);
    assert_int_equal(of_sum(wide[d], AX_SCALAR_SUB, true), 0);
    assert_int_equal(of_sum(wide[d], AX_SCALAR_SUB, false), 1);
    assert_int_equal(of_sum(wide[d], AX_SCALAR_MAX, true), -1);
  }
  for (size_t d = 0; d < AX_COUNT(others); d++) assert_int_equal(of_sum(others[d], AX_SCALAR_ADD, true), -1);
}

static void of_two_products_the_first(void **state) {
  (void)state;
  operands o;
  begin(&o, AX_F32);
  const ax_ex sum = op(&o, AX_SCALAR_ADD, op(&o, AX_SCALAR_MUL, o.x, o.y), op(&o, AX_SCALAR_MUL, o.x, o.z));
  store(&o, sum);
  assert_int_equal(contracted(&o, sum), 0);
}

static void a_product_with_another_use_is_rounded(void **state) {
  (void)state;
  operands o;
  begin(&o, AX_F32);
  const ax_ex product = op(&o, AX_SCALAR_MUL, o.x, o.y), sum = op(&o, AX_SCALAR_ADD, product, o.z);
  store(&o, sum);
  store(&o, product);
  assert_int_equal(contracted(&o, sum), -1);
  begin(&o, AX_F32);
  const ax_ex twice = op(&o, AX_SCALAR_ADD, op(&o, AX_SCALAR_MUL, o.x, o.y), op(&o, AX_SCALAR_MUL, o.x, o.y));
  store(&o, twice);
  assert_int_equal(contracted(&o, twice), -1);
}

/* --- The option --- */

static void words(void **state) {
  ax_contraction found = AX_CONTRACTION_DEFAULT;
  (void)state;
  assert_true(ax_contraction_find("exact", &found) && found == AX_CONTRACTION_EXACT);
  assert_true(ax_contraction_find("fused", &found) && found == AX_CONTRACTION_FUSED);
  assert_false(ax_contraction_find("", &found) || ax_contraction_find("fuse", &found));
}

static void options_and_environment(void **state) {
  bool fused;
  (void)state;
  unsetenv("AXLE_CONTRACTION");
  TEST_OK(ax_contraction_fused(AX_CONTRACTION_DEFAULT, &fused));
  assert_false(fused);
  setenv("AXLE_CONTRACTION", "fused", 1);
  TEST_OK(ax_contraction_fused(AX_CONTRACTION_DEFAULT, &fused));
  assert_true(fused);
  TEST_OK(ax_contraction_fused(AX_CONTRACTION_EXACT, &fused));
  assert_false(fused);
  setenv("AXLE_CONTRACTION", "fast", 1);
  assert_int_equal(ax_contraction_fused(AX_CONTRACTION_DEFAULT, &fused), AX_INVALID_ARGUMENT);
  assert_string_equal(ax_message(), "AXLE_CONTRACTION is \"fast\"; it is exact or fused");
  unsetenv("AXLE_CONTRACTION");
  assert_int_equal(ax_contraction_fused((ax_contraction)3, &fused), AX_INVALID_ARGUMENT);
}

/* --- Results --- */

/* As the code generator has it (jit/emit/body.c). */
static bool has_fma(void) {
#if defined(__x86_64__)
  return ax_machine_register_bytes() >= 32;
#else
  return true;
#endif
}

enum { count = 100003 }; /* not a multiple of anything */
static float x[count], y[count], z[count], got[count], again[count];

/* x y + z, less the product of it and x, less 3: a sum, and two differences. */
static AX_BODY(chain) {
  (void)context;
  ax_value sum = ax_add(ax_mul(in[0], in[1]), in[2]);
  out[0] = ax_sub(ax_sub(sum, ax_mul(in[0], in[2])), ax_full_like(in[0], 3));
}

static void run(ax_contraction contraction, uint32_t workers, int64_t elems, float *to) {
  ax_runtime *runtime;
  ax_program *program;
  ax_executable *executable;
  ax_array *in[3], *out;
  const ax_type type = TEST_TYPE(AX_F32, elems), types[] = {type, type, type};
  float *const data[] = {x, y, z};
  program = test_trace(chain, NULL, types, 3, 1);
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = workers}, &runtime));
  TEST_OK(ax_compile(runtime, program, &(ax_compile_options){.contraction = contraction}, &executable));
  for (int i = 0; i < 3; i++)
    TEST_OK((ax_device_put_data)(runtime, NULL, "", &type, AX_F32, data[i], (size_t)elems * sizeof(float), &in[i]));
  TEST_OK(ax_run(executable, in, &out));
  TEST_OK((ax_array_read)(out, AX_F32, to, (size_t)elems * sizeof(float)));
  for (int i = 0; i < 3; i++) ax_array_release(in[i]);
  ax_array_release(out);
  ax_executable_release(executable);
  ax_program_release(program);
  ax_runtime_release(runtime);
}

static void fill(void) {
  for (int i = 0; i < count; i++) {
    x[i] = 1 + (float)(i * 7919 % 8191) / 8191;
    y[i] = 1 - (float)(i % 9973 * 1047 % 16381) / 16381;
    z[i] = -x[i] * y[i]; /* so that most of the sum is what rounding drops */
  }
}

static void results_are_those_of_fma(void **state) {
  bool differ = false;
  (void)state;
  fill();
  run(AX_CONTRACTION_EXACT, 1, count, again);
  run(AX_CONTRACTION_FUSED, 1, count, got);
  for (int i = 0; i < count; i++) {
    const float fused = fmaf(-x[i], z[i], fmaf(x[i], y[i], z[i])) - 3, product = x[i] * y[i], other = x[i] * z[i];
    const float exact = product + z[i] - other - 3;
    if (again[i] != exact) fail_msg("number %d is %.9g; rounded after each operation it is %.9g", i, (double)again[i], (double)exact);
    if (has_fma() ? got[i] != fused : got[i] != exact) fail_msg("number %d is %.9g, not %.9g", i, (double)got[i], (double)fused);
    differ = differ || got[i] != again[i];
  }
  assert_int_equal(differ, has_fma());
}

static void threads_and_cuts_do_not_matter(void **state) {
  (void)state;
  fill();
  run(AX_CONTRACTION_FUSED, 1, count, got);
  run(AX_CONTRACTION_FUSED, 3, count, again);
  assert_memory_equal(got, again, sizeof got);
  static const int64_t shorter[] = {1, 7, 64, 1000, 65536};
  for (size_t i = 0; i < AX_COUNT(shorter); i++) {
    run(AX_CONTRACTION_FUSED, 2, shorter[i], again);
    assert_memory_equal(got, again, (size_t)shorter[i] * sizeof(float));
  }
}

static void wrong_options_are_refused(void **state) {
  ax_runtime *runtime;
  ax_executable *executable;
  const ax_type types[] = {TEST_TYPE(AX_F32, 4), TEST_TYPE(AX_F32, 4), TEST_TYPE(AX_F32, 4)};
  ax_program *program = test_trace(chain, NULL, types, 3, 1);
  (void)state;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  assert_int_equal(ax_compile(runtime, program, &(ax_compile_options){.contraction = (ax_contraction)7}, &executable),
                   AX_INVALID_ARGUMENT);
  assert_non_null(strstr(ax_message(), "contraction is 7; it is exact or fused"));
  ax_program_release(program);
  ax_runtime_release(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_that_are_added),
      cmocka_unit_test(of_two_products_the_first),
      cmocka_unit_test(a_product_with_another_use_is_rounded),
      cmocka_unit_test(words),
      cmocka_unit_test(options_and_environment),
      cmocka_unit_test(results_are_those_of_fma),
      cmocka_unit_test(threads_and_cuts_do_not_matter),
      cmocka_unit_test(wrong_options_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
