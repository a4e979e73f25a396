/* Subnormal numbers where the thread flushes them: what each operation makes of them, at each width of registers. Operations that
   compute give what they give for zeros in the place of subnormal operands, and zero in the place of a subnormal result. Those that
   move bits keep them. f16's are always kept. Results of the other mode say what an operation gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "axle/ops.h"
#include "ir/number.h"
#include "jit/jit.h"
#include "jit/widths_test.h"
#include "machine/float_mode.h"

#if defined(__x86_64__) || defined(__aarch64__)

static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_BF16, AX_F16};
static const ax_scalar ones[] = {AX_SCALAR_SIGN,  AX_SCALAR_FLOOR, AX_SCALAR_CEIL,     AX_SCALAR_ROUND_NEAREST_EVEN,
                         AX_SCALAR_EXP,   AX_SCALAR_EXPM1, AX_SCALAR_LOG,      AX_SCALAR_LOG1P,
                         AX_SCALAR_SIN,   AX_SCALAR_COS,   AX_SCALAR_TANH,     AX_SCALAR_LOGISTIC,
                         AX_SCALAR_ERF,   AX_SCALAR_SQRT,  AX_SCALAR_RSQRT,    AX_SCALAR_NEG,
                         AX_SCALAR_ABS,   AX_SCALAR_EXP2,  AX_SCALAR_CBRT,     AX_SCALAR_TAN,
                         AX_SCALAR_ASIN,  AX_SCALAR_ACOS,  AX_SCALAR_ATAN,     AX_SCALAR_SINH,
                         AX_SCALAR_COSH,  AX_SCALAR_ASINH, AX_SCALAR_ACOSH,    AX_SCALAR_ATANH,
                         AX_SCALAR_ERFC,  AX_SCALAR_ROUND_NEAREST_AFZ, AX_SCALAR_ERF_INV, AX_SCALAR_LGAMMA,
                         AX_SCALAR_DIGAMMA, AX_SCALAR_BESSEL_I0E, AX_SCALAR_BESSEL_I1E};
static const ax_scalar twos[] = {AX_SCALAR_ADD, AX_SCALAR_SUB, AX_SCALAR_MUL, AX_SCALAR_DIV, AX_SCALAR_MAX, AX_SCALAR_MIN, AX_SCALAR_REM,
                         AX_SCALAR_POW, AX_SCALAR_EQ,  AX_SCALAR_NE,  AX_SCALAR_LT,  AX_SCALAR_LE,  AX_SCALAR_GT,  AX_SCALAR_GE,
                         AX_SCALAR_POLYGAMMA, AX_SCALAR_ZETA};
static const ax_scalar reductions[] = {AX_SCALAR_ADD, AX_SCALAR_MUL, AX_SCALAR_MAX, AX_SCALAR_MIN};

/* --- Numbers --- */

typedef struct form { /* of a float dtype */
  unsigned bits, digits; /* of all; of the fraction */
} form;

static form form_of(ax_dtype dtype) {
  return dtype == AX_F64 ? (form){64, 52} : dtype == AX_F32 ? (form){32, 23} : dtype == AX_BF16 ? (form){16, 7} : (form){16, 10};
}

static uint64_t bits_at(const void *data, size_t bytes, int64_t i) {
  uint64_t bits = 0;
  memcpy(&bits, (const char *)data + (size_t)i * bytes, bytes);
  return bits;
}

static uint64_t sign_of(form f) { return (uint64_t)1 << (f.bits - 1); }
static uint64_t infinity_of(form f) { return sign_of(f) - ((uint64_t)1 << f.digits); }

static bool is_subnormal(ax_dtype dtype, uint64_t bits) {
  const form f = form_of(dtype);
  const uint64_t size = bits & ~sign_of(f);
  return dtype != AX_F16 && size != 0 && size >> f.digits == 0;
}

static bool is_nan(ax_dtype dtype, uint64_t bits) {
  const form f = form_of(dtype);
  return (bits & ~sign_of(f)) > infinity_of(f);
}

static uint64_t flushed(ax_dtype dtype, uint64_t bits) {
  return is_subnormal(dtype, bits) ? bits & sign_of(form_of(dtype)) : bits;
}

/* Subnormal numbers, the least normal ones, and others, each with either sign. */
enum { number_count = 30 };
static void make_numbers(ax_dtype dtype, uint64_t *out) {
  const form f = form_of(dtype);
  const uint64_t least = (uint64_t)1 << f.digits, one = (infinity_of(f) >> 1) & ~(least - 1);
  const uint64_t sizes[number_count / 2] = {0, 1, 3, least / 2, least - 1, least, least + 1, least + least / 2, 2 * least,
                                            one - 3 * least, one, one + least / 2, one + 5 * least + 3, infinity_of(f) - 1,
                                            infinity_of(f)};
  for (int i = 0; i < number_count; i++) out[i] = sizes[i / 2] | (i % 2 != 0 ? sign_of(f) : 0);
}

/* --- Kernels --- */

enum { elems = number_count * number_count };

typedef struct operation {
  ax_scalar op;
  ax_dtype dtype, result;
  int64_t imm;
} operation;

static ax_kernel_code compiled(ax_compiler *jit, const ax_loop_kernel *k, ax_arena *arena) {
  ax_kernel_code code;
  if (ax_jit_compile(jit, &k, 1, &code) != AX_OK) fail_msg("%s", ax_message());
  ax_arena_deinit(arena);
  return code;
}

static ax_kernel_code compile(ax_compiler *jit, const operation *o) {
  ax_arena arena = {0};
  ax_position at[1];
  const int64_t extent = elems;
  ax_loop_kernel *k = ax_kernel_create(&arena, 1, 0, &extent);
  ax_ex x[3] = {AX_NONE, AX_NONE, AX_NONE};
  ax_at_identity(at, 1);
  for (int i = 0; i < ax_scalar_arity(o->op); i++) x[i] = ax_kernel_load(k, ax_kernel_slot(k, o->dtype, 1, &extent), at);
  const uint32_t out = ax_kernel_slot(k, o->result, 1, &extent);
  ax_ex y = ax_scalar_arity(o->op) == 1 ? ax_kernel_op_imm(k, o->op, o->result, x[0], o->imm)
                                        : ax_kernel_op(k, o->op, o->result, x[0], x[1], AX_NONE);
  ax_kernel_store(k, out, at, y, AX_SCALAR_NONE);
  return compiled(jit, k, &arena);
}

static void run(ax_kernel_code code, bool flush, void *const *slots, int64_t extent) {
  const ax_float_mode caller = ax_float_mode_enter(flush);
  code(slots, NULL, 0, extent);
  ax_float_mode_leave(caller);
}

static void put(void *data, size_t bytes, int64_t i, uint64_t bits) { memcpy((char *)data + (size_t)i * bytes, &bits, bytes); }

static void compare(const operation *o, uint32_t width, const uint64_t *x, const uint64_t *y, uint64_t got, uint64_t wanted) {
  if (ax_is_float(o->result)) {
    const form f = form_of(o->result);
    if (is_nan(o->result, got) && is_nan(o->result, wanted)) return;
    /* What rounds up to the least normal number may be flushed before. */
    if ((wanted & ~sign_of(f)) == (uint64_t)1 << f.digits && got == (wanted & sign_of(f))) return;
  }
  if (width == 16 && ax_scalar_is_function(o->op) && (got == wanted + 1 || got + 1 == wanted)) return; /* SLEEF's, next to the least number */
  if (got != wanted)
    fail_msg("%s of %s to %s in %u bytes: of %#llx and %#llx it is %#llx instead of %#llx", ax_scalar_name(o->op),
             ax_dtype_name(o->dtype), ax_dtype_name(o->result), width, (unsigned long long)*x, (unsigned long long)(y != NULL ? *y : 0),
             (unsigned long long)got, (unsigned long long)wanted);
}

static bool moves(const operation *o) {
  return o->op == AX_SCALAR_NEG || o->op == AX_SCALAR_ABS ||
         (o->op == AX_SCALAR_CONVERT && o->dtype != AX_F64 && o->dtype != AX_F16 && (o->result == AX_F32 || o->result == AX_BF16));
}

static void try_operation(const operation *o, uint32_t w) {
  _Alignas(64) static uint64_t in[4][elems], out[2][elems];
  uint64_t numbers[number_count];
  const size_t bytes = ax_dtype_bytes(o->dtype), wide = ax_dtype_bytes(o->result);
  const int arity = ax_scalar_arity(o->op);
  const ax_kernel_code code = compile(jits[w], o);
  make_numbers(o->dtype, numbers);
  for (int64_t i = 0; i < elems; i++)
    for (int k = 0; k < arity; k++) {
      const uint64_t bits = numbers[k == 0 ? i % number_count : i / number_count];
      put(in[k], bytes, i, bits);
      put(in[2 + k], bytes, i, moves(o) ? bits : flushed(o->dtype, bits));
    }
  run(code, true, (void *[]){in[0], arity == 2 ? in[1] : out[0], out[0]}, elems);
  run(code, false, (void *[]){in[2], arity == 2 ? in[3] : out[1], out[1]}, elems);
  for (int64_t i = 0; i < elems; i++) {
    const uint64_t x = bits_at(in[0], bytes, i), y = bits_at(in[1], bytes, i), wanted = bits_at(out[1], wide, i);
    compare(o, widths[w], &x, arity == 2 ? &y : NULL, bits_at(out[0], wide, i),
            ax_is_float(o->result) && !moves(o) ? flushed(o->result, wanted) : wanted);
  }
}

static void operations(void **unused) {
  (void)unused;
  for (uint32_t w = 0; w < width_count; w++)
    for (size_t d = 0; d < AX_COUNT(dtypes); d++) {
      for (size_t i = 0; i < AX_COUNT(ones); i++) {
        try_operation(&(operation){ones[i], dtypes[d], dtypes[d], 0}, w);
        if (ax_scalar_is_function(ones[i])) try_operation(&(operation){ones[i], dtypes[d], dtypes[d], AX_ACCURACY_HIGHEST}, w);
      }
      for (int64_t exponent = -2; exponent <= 3; exponent++)
        try_operation(&(operation){AX_SCALAR_INTEGER_POW, dtypes[d], dtypes[d], exponent}, w);
      for (size_t i = 0; i < AX_COUNT(twos); i++) {
        const bool compares = twos[i] >= AX_SCALAR_EQ && twos[i] <= AX_SCALAR_GE;
        try_operation(&(operation){twos[i], dtypes[d], compares ? AX_BOOL : dtypes[d], 0}, w);
      }
    }
}

static void conversions(void **unused) {
  static const ax_dtype to[] = {AX_F32, AX_F64, AX_BF16, AX_F16, AX_S32, AX_U8, AX_BOOL};
  (void)unused;
  for (uint32_t w = 0; w < width_count; w++)
    for (size_t d = 0; d < AX_COUNT(dtypes); d++)
      for (size_t t = 0; t < AX_COUNT(to); t++)
        if (to[t] != dtypes[d]) try_operation(&(operation){AX_SCALAR_CONVERT, dtypes[d], to[t], to[t]}, w);
}

/* --- Reductions, along rows and along columns, of one element to many --- */

static void try_reduction(ax_scalar op, ax_dtype dtype, uint32_t w, int64_t rows, int64_t columns, bool along_rows) {
  _Alignas(64) static uint64_t in[2][4096], out[2][4096];
  ax_arena arena = {0};
  uint64_t numbers[number_count];
  const int64_t dims[] = {along_rows ? rows : columns, along_rows ? columns : rows}, shape[] = {rows, columns};
  const size_t bytes = ax_dtype_bytes(dtype);
  ax_loop_kernel *k = ax_kernel_create(&arena, 2, 1, dims);
  ax_position at[2] = {{.dim = along_rows ? 0 : 1, .coef = 1, .dynamic = AX_NONE}, {.dim = along_rows ? 1 : 0, .coef = 1, .dynamic = AX_NONE}},
              to[1];
  ax_at_identity(to, 1);
  ax_ex x = ax_kernel_load(k, ax_kernel_slot(k, dtype, 2, shape), at);
  ax_kernel_store(k, ax_kernel_slot(k, dtype, 1, dims), to, x, op);
  const ax_kernel_code code = compiled(jits[w], k, &arena);
  make_numbers(dtype, numbers);
  for (int64_t i = 0; i < rows * columns; i++) {
    const uint64_t bits = numbers[(i * 7 + i / 5) % (op == AX_SCALAR_ADD ? 12 : 20)]; /* the rest would hide the small ones */
    put(in[0], bytes, i, bits);
    put(in[1], bytes, i, flushed(dtype, bits));
  }
  for (int i = 0; i < 2; i++) run(code, i == 0, (void *[]){in[i], out[i]}, dims[0]);
  for (int64_t i = 0; i < dims[0]; i++) {
    const uint64_t got = bits_at(out[0], bytes, i), wanted = flushed(dtype, bits_at(out[1], bytes, i));
    if (got != wanted && !(op == AX_SCALAR_MUL && (got & ~sign_of(form_of(dtype))) == 0))
      fail_msg("%s of %lld of %s %s in %u bytes: %#llx instead of %#llx", ax_scalar_name(op), (long long)dims[1], ax_dtype_name(dtype),
               along_rows ? "in rows" : "in columns", widths[w], (unsigned long long)got, (unsigned long long)wanted);
  }
}

static void reductions_of_them(void **unused) {
  static const int64_t lengths[] = {1, 2, 3, 16, 17, 40};
  (void)unused;
  for (uint32_t w = 0; w < width_count; w++)
    for (size_t d = 0; d < AX_COUNT(dtypes); d++)
      for (size_t r = 0; r < AX_COUNT(reductions); r++)
        for (size_t l = 0; l < AX_COUNT(lengths); l++) {
          try_reduction(reductions[r], dtypes[d], w, 33, lengths[l], true);
          try_reduction(reductions[r], dtypes[d], w, lengths[l], 33, false);
        }
}

/* --- Many divided by one, for which the reciprocal is taken: an exact quotient that is the least normal number is not flushed --- */

static void least_quotients(void **unused) {
  enum { mantissas = 128, columns = 40 };
  static uint16_t x[mantissas][columns], y[mantissas], out[mantissas][columns];
  (void)unused;
  for (uint32_t w = 0; w < width_count; w++)
    for (int exponent = 127; exponent < 127 + 118; exponent += 39) {
      ax_arena arena = {0};
      const int64_t dims[] = {mantissas, columns};
      ax_loop_kernel *k = ax_kernel_create(&arena, 2, 0, dims);
      ax_position at[2];
      ax_at_identity(at, 2);
      ax_ex many = ax_kernel_load(k, ax_kernel_slot(k, AX_BF16, 2, dims), at),
            one = ax_kernel_load(k, ax_kernel_slot(k, AX_BF16, 1, dims), at);
      const uint32_t slot = ax_kernel_slot(k, AX_BF16, 2, dims);
      ax_kernel_store(k, slot, at, ax_kernel_op(k, AX_SCALAR_DIV, AX_BF16, many, one, AX_NONE), AX_SCALAR_NONE);
      const ax_kernel_code code = compiled(jits[w], k, &arena);
      for (int m = 0; m < mantissas; m++) {
        y[m] = (uint16_t)(exponent << 7 | m);
        for (int c = 0; c < columns; c++) x[m][c] = (uint16_t)((c % 2 << 15) | (exponent - 126) << 7 | m);
      }
      for (int flush = 0; flush < 2; flush++) {
        run(code, flush != 0, (void *[]){x, y, out}, mantissas);
        for (int m = 0; m < mantissas; m++)
          for (int c = 0; c < columns; c++) assert_int_equal(out[m][c], (c % 2 << 15) | 1 << 7);
      }
    }
}

/* --- Constants: no compiler computes with them in another mode --- */

static void constants(void **unused) {
  (void)unused;
  for (uint32_t w = 0; w < width_count; w++)
    for (size_t d = 0; d < 2; d++) {
      const ax_dtype dtype = dtypes[d];
      const form f = form_of(dtype);
      ax_arena arena = {0};
      ax_position at[1];
      const int64_t extent = 40;
      uint64_t in[40] = {0}, out[40];
      ax_loop_kernel *k = ax_kernel_create(&arena, 1, 0, &extent);
      ax_at_identity(at, 1);
      ax_ex x = ax_kernel_load(k, ax_kernel_slot(k, dtype, 1, &extent), at);
      const uint64_t least = (uint64_t)1 << f.digits, one = (infinity_of(f) >> 1) & ~(least - 1);
      const uint32_t slot = ax_kernel_slot(k, dtype, 1, &extent);
      ax_ex small = ax_kernel_op(k, AX_SCALAR_MUL, dtype, ax_kernel_const(k, dtype, (int64_t)least),
                                 ax_kernel_const(k, dtype, (int64_t)(one - least)), AX_NONE); /* half of the least */
      ax_ex minus = ax_kernel_op(k, AX_SCALAR_MUL, dtype, x, ax_kernel_const(k, dtype, (int64_t)(one | sign_of(f))), AX_NONE);
      ax_ex chosen = ax_kernel_op(k, AX_SCALAR_SELECT, dtype, ax_kernel_op(k, AX_SCALAR_EQ, AX_BOOL, x, x, AX_NONE), small, minus);
      ax_kernel_store(k, slot, at, chosen, AX_SCALAR_NONE);
      const uint32_t second = ax_kernel_slot(k, dtype, 1, &extent);
      ax_kernel_store(k, second, at, minus, AX_SCALAR_NONE);
      const ax_kernel_code code = compiled(jits[w], k, &arena);
      uint64_t other[40];
      for (int64_t i = 0; i < extent; i++) put(in, ax_dtype_bytes(dtype), i, 1);
      run(code, true, (void *[]){in, out, other}, extent);
      for (int64_t i = 0; i < extent; i++) {
        assert_int_equal(bits_at(out, ax_dtype_bytes(dtype), i), 0);
        assert_int_equal(bits_at(other, ax_dtype_bytes(dtype), i), sign_of(f));
      }
    }
}

#endif

int main(void) {
  const struct CMUnitTest tests[] = {
#if defined(__x86_64__) || defined(__aarch64__)
      cmocka_unit_test(operations),
      cmocka_unit_test(conversions),
      cmocka_unit_test(reductions_of_them),
      cmocka_unit_test(least_quotients),
      cmocka_unit_test(constants),
#endif
  };
  return cmocka_run_group_tests(tests, make_jits, destroy_jits);
}
