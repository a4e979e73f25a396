/* No number costs more than another. Some processors take 40 to 60 ns for an instruction with a subnormal operand or a result that
   underflows, instead of 0.3. So where a function's operand and result are no subnormal numbers, nothing in between is one, at each
   width of registers for which the functions are ours: the processor's flags say what an instruction met. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "ir/number.h"
#include "jit/jit.h"
#include "jit/widths_test.h"

#if defined(__x86_64__)

enum { lanes = 64, subnormal_operand = 2, underflow = 16, no_traps = 0x1f80 };

static const ax_scalar functions[] = {AX_SCALAR_EXP, AX_SCALAR_EXPM1, AX_SCALAR_LOG, AX_SCALAR_LOG1P, AX_SCALAR_SIN,
                                      AX_SCALAR_COS, AX_SCALAR_TANH, AX_SCALAR_LOGISTIC, AX_SCALAR_ERF, AX_SCALAR_SQRT,
                                      AX_SCALAR_RSQRT, AX_SCALAR_EXP2, AX_SCALAR_CBRT, AX_SCALAR_TAN, AX_SCALAR_ASIN,
                                      AX_SCALAR_ACOS, AX_SCALAR_ATAN, AX_SCALAR_ATANH};
static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_BF16, AX_F16};
static const double numbers[] = {0,   1e-300, 1e-200, 1e-100, 1e-37, 1e-30, 1e-20, 1e-10, 1e-7, 1e-4, 0.01,
                                 0.5, 1,      3,      20,     60,    86,    104,   105,   110,  130,  150,
                                 200, 400,    600,    746,    1000,  1e4,   1e9,   1e30,  1e100, 1e300};

static ax_kernel_code compile(ax_compiler *jit, ax_scalar op, ax_dtype dtype) {
  ax_arena arena = {0};
  ax_position at[1];
  ax_kernel_code code;
  const int64_t elems = lanes;
  ax_loop_kernel *k = ax_kernel_create(&arena, 1, 0, &elems);
  ax_at_identity(at, 1);
  const uint32_t in = ax_kernel_slot(k, dtype, 1, &elems), out = ax_kernel_slot(k, dtype, 1, &elems);
  ax_kernel_store(k, out, at, ax_kernel_op_imm(k, op, dtype, ax_kernel_load(k, in, at), 0), AX_SCALAR_NONE);
  const ax_loop_kernel *kernel = k;
  if (ax_jit_compile(jit, &kernel, 1, &code) != AX_OK) fail_msg("%s", ax_message());
  ax_arena_deinit(&arena);
  return code;
}

static double least_normal(ax_dtype dtype) { return dtype == AX_F64 ? 0x1p-1022 : dtype == AX_F16 ? 0x1p-14 : 0x1p-126; }

static bool is_plain(ax_dtype dtype, double x) { return x == 0 || isnan(x) || fabs(x) >= least_normal(dtype); }

/* What docs/performance.md says of the smallest numbers: their squares underflow in polynomials. And where a result is rounded to
   0 as an f16, the conversion underflows, which costs nothing. */
static bool is_known(ax_scalar op, ax_dtype dtype, double x, double y) {
  const bool square_underflows = fabs(x) < (dtype == AX_F64 ? 1e-150 : 1e-18);
  if (op == AX_SCALAR_SIN) return square_underflows;
  if (op == AX_SCALAR_LOG1P) return square_underflows && dtype == AX_F64;
  if (op == AX_SCALAR_TAN && dtype == AX_F64) return fabs(x) > 0x1p30; /* SLEEF's */
  if (op == AX_SCALAR_ERF) return square_underflows && dtype == AX_BF16;
  return dtype == AX_F16 && y == 0;
}

static void try_number(ax_kernel_code code, ax_scalar op, ax_dtype dtype, uint32_t width, double number) {
  _Alignas(64) uint64_t in[lanes], out[lanes];
  for (int64_t i = 0; i < lanes; i++) ax_number_store(dtype, in, i, (ax_number){.f = number});
  const double x = ax_number_load(dtype, in, 0).f;
  if (!is_plain(dtype, x)) return;
  __builtin_ia32_ldmxcsr(no_traps);
  code((void *[]){in, out}, NULL, 0, lanes);
  const unsigned met = __builtin_ia32_stmxcsr() & (subnormal_operand | underflow);
  const double y = ax_number_load(dtype, out, 0).f;
  if (met != 0 && is_plain(dtype, y) && !is_known(op, dtype, x, y))
    fail_msg("%s of %s %g in %u bytes, which is %g, meets %s", ax_scalar_name(op), ax_dtype_name(dtype), x, width, y,
             (met & underflow) != 0 ? "underflow" : "a subnormal number");
}

static void none_costs_more(void **unused) {
  (void)unused;
  for (int w = 0; w < width_count; w++) {
    if (widths[w] == 16) continue; /* SLEEF's functions */
    for (size_t f = 0; f < AX_COUNT(functions); f++)
      for (size_t d = 0; d < AX_COUNT(dtypes); d++) {
        const ax_kernel_code code = compile(jits[w], functions[f], dtypes[d]);
        for (size_t i = 0; i < AX_COUNT(numbers); i++) {
          try_number(code, functions[f], dtypes[d], widths[w], numbers[i]);
          try_number(code, functions[f], dtypes[d], widths[w], -numbers[i]);
        }
        try_number(code, functions[f], dtypes[d], widths[w], INFINITY);
        try_number(code, functions[f], dtypes[d], widths[w], -INFINITY);
        try_number(code, functions[f], dtypes[d], widths[w], NAN);
      }
  }
}

#endif

int main(void) {
  const struct CMUnitTest tests[] = {
#if defined(__x86_64__)
      cmocka_unit_test(none_costs_more),
#endif
  };
  return cmocka_run_group_tests(tests, make_jits, destroy_jits);
}
