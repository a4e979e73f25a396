/* Every scalar operation on every dtype, on the values where it goes wrong: in vectors of each width, masked, and as scalars. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <stdio.h>

#include "base/threefry.h"
#include "jit/jit.h"
#include "jit/reference_test.h"
#include "jit/widths_test.h"


/* Among them ties of bf16 and f16, exact and off by what f32 cannot hold: to catch rounding twice. */
static const double float_edges[] = {
    0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, -3, 10, 0.1, -0.1, 1.5, 2.5, -2.5, 0.99999, 1.00001, -0.999, 1e-3, -1e-3,
    1e-8, -1e-8, 1e-20, -1e-20, 1e-38, -1e-38, 1e-40, -1e-40, 1.5e-45, -1.5e-45, 6e-8, 6.2e-5, 65504, 65519.9, 65520,
    -65520, 1e5, -1e5, 127, 127.5, -128, -128.9, -129, 128, 255, 255.5, 256, 32767, 32768, -32769, 65535, 65536,
    2147483647, 2147483648.0, -2147483649.0, 4294967295.0, 4294967296.0, 9.2e18, 9.3e18, -9.3e18, 1.84e19, 1.85e19,
    1e30, -1e30, 3.4e38, -3.4e38, 20, -20, 50, -50, 87, -87, 88.8, -88.8, -95, 100, -100, -104, 7.1e2, -7.1e2,
    -7.46e2, 1e300, -1e300, 1e-310, -1e-310, 5e-324, 1.7e308, -1.7e308, 1.2e38, INFINITY, -INFINITY, NAN, 16777217,
    0.333333333333, 1.00390625, 1.001953125, 1.0019531250001, 3.00390625000001, 0.75, 1.00390625000001,
    1.000488281250001, 1.01171874999999, 1.00146484374999, 16777216, 33554433, 3.99, -3.99, 8, -7, 1e10, -1e10, 0.7,
    4, 5, 1.7976929550930003e308, -1.7976929550930003e308, 1.7976931348623157e308, 1.3407807929942002e154, 1.3286855433859613e-13};
static const int64_t int_edges[] = {
    0, 1, -1, 2, -2, 3, -3, 5, 7, -7, 10, -10, 16, 31, 63, 64, 100, 127, -127, -128, 128, 129, 200, 255, 256, -256,
    32767, -32767, -32768, 32768, 65535, 65536, 2147483647, -2147483647, -2147483647 - 1, 2147483648, 4294967295,
    4294967296, 16777217, 33554435, 0x80808081, 9007199254740993, 0x7fffffffffffffff, -0x7fffffffffffffff,
    -0x7fffffffffffffff - 1, 0x4000000000000001, 0x7fffff8000000001, 0x0100800000000001, 0x0101800000000000, 257, 259,
    2049, 2051, 4098, 0x0101000000000001, 0x01010001, 0x0102ffffffffffff};

enum { float_edge_count = AX_COUNT(float_edges), int_edge_count = AX_COUNT(int_edges) };

static uint32_t edge_count(ax_dtype dtype) {
  return dtype == AX_BOOL ? 2 : ax_is_float(dtype) ? float_edge_count : int_edge_count;
}

static void store_edge(ax_dtype dtype, void *array, int64_t at, uint32_t edge) {
  number x = ax_is_float(dtype) ? (number){.f = round_dtype(dtype, float_edges[edge])}
                                : (number){.i = wrap(dtype, dtype == AX_BOOL ? edge : (uint64_t)int_edges[edge])};
  store_number(dtype, array, at, x);
}

/* --- Comparing --- */

/* The distance in representable values; 0 for two NaNs. */
static uint64_t distance(ax_dtype dtype, uint64_t a, uint64_t b) {
  number x = number_of_bits(dtype, a), y = number_of_bits(dtype, b);
  if (!ax_is_float(dtype) || a == b) return a == b ? 0 : UINT64_MAX;
  if (isnan(x.f) && isnan(y.f)) return 0;
  if (isnan(x.f) || isnan(y.f) || signbit(x.f) != signbit(y.f)) return UINT64_MAX;
  return a > b ? a - b : b - a;
}

/* In units of the last place of the dtype's result. */
static uint64_t tolerance(ax_scalar op, ax_dtype dtype) {
  const bool approximates = ax_scalar_is_function(op) && op != AX_SCALAR_SQRT && op != AX_SCALAR_RSQRT;
  if (!approximates || !ax_is_float(dtype)) return 0;
  return ax_is_narrow_float(dtype) ? 1 : 4;
}

static uint64_t bits_at(ax_dtype dtype, const void *array, int64_t at) {
  uint64_t bits = 0;
  memcpy(&bits, (const char *)array + (size_t)at * ax_dtype_bytes(dtype), ax_dtype_bytes(dtype));
  return bits;
}

static void check(const ax_expr *expr, ax_dtype operand, const void *got, const void *wanted, int64_t count, uint64_t most,
                  void *const *slots) {
  for (int64_t i = 0; i < count; i++) {
    uint64_t g = bits_at(expr->dtype, got, i), w = bits_at(expr->dtype, wanted, i);
    if (distance(expr->dtype, g, w) <= most) continue;
    number a = load_number(operand, slots[0], i), b = load_number(operand, slots[1], i);
    number x = number_of_bits(expr->dtype, g), y = number_of_bits(expr->dtype, w);
    fail_msg("%s %s -> %s (%.17g / %lld, %.17g / %lld): got %.17g / %lld, want %.17g / %lld", ax_scalar_name(expr->op),
             ax_dtype_name(operand), ax_dtype_name(expr->dtype), a.f, (long long)a.i, b.f, (long long)b.i, x.f,
             (long long)x.i, y.f, (long long)y.i);
  }
}

/* --- One operation on arrays: slots a, b, c (bool), result --- */

static ax_loop_kernel *make(ax_arena *arena, const ax_expr *op, ax_dtype operand, int64_t count, bool uniform) {
  int64_t dims[] = {count};
  ax_loop_kernel *k = ax_kernel_create(arena, 1, 0, dims);
  ax_position at[1], one[1] = {{.dim = -1, .offset = 0, .dynamic = AX_NONE}};
  ax_at_identity(at, 1);
  uint32_t a = ax_kernel_slot(k, operand, 1, dims), b = ax_kernel_slot(k, operand, 1, dims);
  uint32_t c = ax_kernel_slot(k, AX_BOOL, 1, dims), out = ax_kernel_slot(k, op->dtype, 1, dims);
  ax_ex x = ax_kernel_load(k, a, uniform ? one : at), y = ax_kernel_load(k, b, uniform ? one : at), result;
  if (op->op == AX_SCALAR_SELECT) result = ax_kernel_op(k, op->op, op->dtype, ax_kernel_load(k, c, uniform ? one : at), x, y);
  else if (op->op == AX_SCALAR_INTEGER_POW || op->op == AX_SCALAR_REDUCE_PRECISION) result = ax_kernel_op_imm(k, op->op, op->dtype, x, op->imm);
  else result = ax_kernel_op(k, op->op, op->dtype, x, ax_scalar_arity(op->op) > 1 ? y : AX_NONE, AX_NONE);
  ax_kernel_store(k, out, at, result, AX_SCALAR_NONE);
  assert_false(k->failed);
  return k;
}

static ax_kernel_code compile(ax_compiler *jit, const ax_loop_kernel *kernel) {
  ax_kernel_code code;
  if (ax_jit_compile(jit, &kernel, 1, &code) != AX_OK) fail_msg("%s", ax_message());
  return code;
}

/* All vector lengths must agree with the reference; the same machine's scalars and odd positions with its vectors, bitwise. */
static void try_op(const ax_expr *op, ax_dtype operand) {
  static _Alignas(64) unsigned char a[40000 * 8], b[40000 * 8], c[40000], got[40000 * 8], wanted[40000 * 8], one[8];
  ax_arena arena = {0};
  uint32_t edges = edge_count(operand), others = ax_scalar_arity(op->op) > 1 ? edges : 1;
  int64_t count = (int64_t)edges * others;
  size_t bytes = ax_dtype_bytes(op->dtype);
  for (int64_t i = 0; i < count; i++) {
    store_edge(operand, a, i, (uint32_t)(i / others));
    store_edge(operand, b, i, (uint32_t)(i % others));
    c[i] = (unsigned char)(i % 3 == 1);
  }
  void *slots[] = {a, b, c, got};
  void *reference_slots[] = {a, b, c, wanted};
  const ax_loop_kernel *kernel = make(&arena, op, operand, count, false), *scalar = make(&arena, op, operand, 1, true);
  reference_run(kernel, reference_slots, NULL, 0, count);
  for (int w = 0; w < width_count; w++) {
    memset(got, 0xee, sizeof got);
    ax_kernel_code code = compile(jits[w], kernel), one_code = compile(jits[w], scalar);
    code(slots, NULL, 0, count);
    check(op, operand, got, wanted, count, tolerance(op->op, op->dtype), slots);
    const int64_t step = op->op == AX_SCALAR_DIV || op->op == AX_SCALAR_REM ? 1 : 1 + count / 200; /* these have branches */
    for (int64_t i = 0; i < count; i += step) {
      void *one_slots[] = {a + (size_t)i * ax_dtype_bytes(operand), b + (size_t)i * ax_dtype_bytes(operand), c + i, one};
      one_code(one_slots, NULL, 0, 1);
      check(op, operand, one, got + (size_t)i * bytes, 1, 0, one_slots);
    }
  }
  ax_arena_deinit(&arena);
}

static bool defined(ax_scalar op, ax_dtype dtype) {
  bool is_float = ax_is_float(dtype), is_bool = dtype == AX_BOOL;
  if (ax_scalar_is_function(op) && op != AX_SCALAR_POW) return is_float;
  switch ((int)op) {
    case AX_SCALAR_FLOOR:
    case AX_SCALAR_CEIL:
    case AX_SCALAR_ROUND_NEAREST_EVEN:
    case AX_SCALAR_IS_FINITE:
    case AX_SCALAR_NEXTAFTER:
    case AX_SCALAR_ROUND_NEAREST_AFZ: return is_float;
    case AX_SCALAR_SHIFT_LEFT:
    case AX_SCALAR_SHIFT_RIGHT_LOGICAL:
    case AX_SCALAR_SHIFT_RIGHT_ARITHMETIC:
    case AX_SCALAR_POPULATION_COUNT:
    case AX_SCALAR_CLZ:
    case AX_SCALAR_CTZ: return !is_float && !is_bool;
    case AX_SCALAR_THREEFRY: return dtype == AX_U64;
    case AX_SCALAR_XOR:
    case AX_SCALAR_AND:
    case AX_SCALAR_OR:
    case AX_SCALAR_NOT: return !is_float;
    case AX_SCALAR_EQ:
    case AX_SCALAR_NE:
    case AX_SCALAR_LT:
    case AX_SCALAR_LE:
    case AX_SCALAR_GT:
    case AX_SCALAR_GE:
    case AX_SCALAR_ADD:
    case AX_SCALAR_MUL:
    case AX_SCALAR_MAX:
    case AX_SCALAR_MIN:
    case AX_SCALAR_SELECT: return true;
    default: return !is_bool;
  }
}

/* The dtypes of a whole C type. Kernels have no complex numbers (plan/parts.c); those of a byte are walked over by tests/byte_floats_test.c and tests/primitives_test.c. */
static int next_of(int dtype) {
  while (ax_is_byte_float((ax_dtype)dtype) || ax_is_short_integer((ax_dtype)dtype) || ax_is_complex((ax_dtype)dtype)) dtype++;
  return dtype;
}

static void try_everywhere(ax_scalar op) {
  bool compares = (op >= AX_SCALAR_EQ && op <= AX_SCALAR_GE) || op == AX_SCALAR_IS_FINITE;
  for (int d = next_of(AX_BOOL); d < AX_DTYPE_COUNT; d = next_of(d + 1))
    if (defined(op, (ax_dtype)d)) try_op(&(ax_expr){.op = op, .dtype = compares ? AX_BOOL : (ax_dtype)d}, (ax_dtype)d);
}

static void operations(void **state) {
  (void)state;
  for (int op = AX_SCALAR_NONE + 1; op < AX_SCALAR_COUNT; op++)
    if (op != AX_SCALAR_CONVERT && op != AX_SCALAR_INTEGER_POW && op != AX_SCALAR_BITCAST && op != AX_SCALAR_REDUCE_PRECISION)
      try_everywhere((ax_scalar)op);
}

/* NaNs have one value in the reference of f16 and bf16: the edges' are that one. */
static void bitcasts(void **state) {
  (void)state;
  for (int from = next_of(AX_S8); from < AX_DTYPE_COUNT; from = next_of(from + 1))
    for (int to = next_of(AX_S8); to < AX_DTYPE_COUNT; to = next_of(to + 1))
      if (ax_dtype_bytes((ax_dtype)from) == ax_dtype_bytes((ax_dtype)to))
        try_op(&(ax_expr){.op = AX_SCALAR_BITCAST, .dtype = (ax_dtype)to}, (ax_dtype)from);
}

static void precisions(void **state) {
  static const int64_t bits[][2] = {{5, 10}, {8, 7}, {4, 3}, {5, 2}, {1, 3}, {2, 0}, {8, 23}, {11, 52}, {8, 0}, {30, 9}, {100, 100}, {3, 60}};
  (void)state;
  for (size_t i = 0; i < AX_COUNT(bits); i++)
    for (int d = next_of(AX_S8); d < AX_DTYPE_COUNT; d = next_of(d + 1))
      if (ax_is_float((ax_dtype)d))
        try_op(&(ax_expr){.op = AX_SCALAR_REDUCE_PRECISION, .dtype = (ax_dtype)d, .imm = ax_precision_imm(bits[i][0], bits[i][1])},
               (ax_dtype)d);
}

static void powers(void **state) {
  static const int64_t exponents[] = {0, 1, 2, 3, 4, 7, 10, -1, -2, -3};
  (void)state;
  for (size_t i = 0; i < AX_COUNT(exponents); i++)
    for (int d = next_of(AX_S8); d < AX_DTYPE_COUNT; d = next_of(d + 1)) {
      const bool narrow = ax_is_narrow_float((ax_dtype)d); /* the reference rounds between, which says nothing */
      if (narrow && (exponents[i] > 2 || exponents[i] < 0)) continue;
      if (exponents[i] < 0 && !ax_is_float((ax_dtype)d)) continue;
      try_op(&(ax_expr){.op = AX_SCALAR_INTEGER_POW, .dtype = (ax_dtype)d, .imm = exponents[i]}, (ax_dtype)d);
    }
}

static void conversions(void **state) {
  (void)state;
  for (int from = next_of(AX_BOOL); from < AX_DTYPE_COUNT; from = next_of(from + 1))
    for (int to = next_of(AX_BOOL); to < AX_DTYPE_COUNT; to = next_of(to + 1))
      try_op(&(ax_expr){.op = AX_SCALAR_CONVERT, .dtype = (ax_dtype)to}, (ax_dtype)from);
}

/* Floats from all over, f32 and f64: accuracy between the edges. */
static void accuracy(void **state) {
  enum { count = 30000 };
  static const ax_scalar ops[] = {AX_SCALAR_EXP,  AX_SCALAR_LOG,      AX_SCALAR_LOG1P, AX_SCALAR_EXPM1,
                                  AX_SCALAR_SIN,  AX_SCALAR_COS,      AX_SCALAR_TANH,
                                  AX_SCALAR_LOGISTIC, AX_SCALAR_ERF,   AX_SCALAR_POW,
                                  AX_SCALAR_EXP2, AX_SCALAR_CBRT, AX_SCALAR_TAN, AX_SCALAR_ASIN, AX_SCALAR_ACOS,
                                  AX_SCALAR_ATAN, AX_SCALAR_SINH, AX_SCALAR_COSH, AX_SCALAR_ASINH, AX_SCALAR_ACOSH,
                                  AX_SCALAR_ATANH, AX_SCALAR_ERFC, AX_SCALAR_ATAN2, AX_SCALAR_ERF_INV, AX_SCALAR_LGAMMA, AX_SCALAR_DIGAMMA,
                                  AX_SCALAR_BESSEL_I0E, AX_SCALAR_BESSEL_I1E, AX_SCALAR_POLYGAMMA, AX_SCALAR_ZETA};
  static double a[count], b[count], got[count], wanted[count];
  static unsigned char c[count];
  (void)state;
  for (int d = AX_F32; d <= AX_F64; d++) {
    uint64_t random = 12345;
    for (int64_t i = 0; i < count; i++) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      double scale = ldexp(1, (int)(random >> 58) % 40 - 32), unit = (double)(random >> 11 & 0xffffffff) / 2147483648.0 - 1;
      store_number((ax_dtype)d, a, i, (number){.f = round_dtype((ax_dtype)d, unit * scale)});
      store_number((ax_dtype)d, b, i, (number){.f = round_dtype((ax_dtype)d, (double)(random >> 20 & 255) / 16 - 8)});
    }
    for (size_t o = 0; o < AX_COUNT(ops); o++) {
      ax_arena arena = {0};
      ax_expr op = {.op = ops[o], .dtype = (ax_dtype)d};
      const ax_loop_kernel *kernel = make(&arena, &op, (ax_dtype)d, count, false);
      void *slots[] = {a, b, c, got};
      reference_run(kernel, (void *[]){a, b, c, wanted}, NULL, 0, count);
      for (int w = 0; w < width_count; w++) {
        compile(jits[w], kernel)(slots, NULL, 0, count);
        check(&op, (ax_dtype)d, got, wanted, count, 4, slots);
      }
      ax_arena_deinit(&arena);
    }
  }
}

/* Many bf16 by one, which is done otherwise than each by its own: the same bits, for all divisors there are. */
static void one_divisor(void **unused) {
  enum { some = 40, rows = 1 << 12 };
  static _Alignas(64) uint16_t x[some], divisors[rows], each[some], quotients[rows * some], wanted[some];
  const int64_t dims[] = {rows, some}, row[] = {some};
  (void)unused;
  for (int w = 0; w < width_count; w++) {
    ax_arena arena = {0};
    ax_position at[2], along[1], down[1];
    ax_loop_kernel *k = ax_kernel_create(&arena, 2, 0, dims);
    ax_at_identity(at, 2);
    ax_at_identity(down, 1);
    ax_at_identity(along, 1);
    along[0].dim = 1;
    ax_ex a = ax_kernel_load(k, ax_kernel_slot(k, AX_BF16, 1, row), along),
          b = ax_kernel_load(k, ax_kernel_slot(k, AX_BF16, 1, dims), down);
    ax_kernel_store(k, ax_kernel_slot(k, AX_BF16, 2, dims), at, ax_kernel_op(k, AX_SCALAR_DIV, AX_BF16, a, b, AX_NONE),
                    AX_SCALAR_NONE);
    ax_kernel_code together = compile(jits[w], k),
                   apart = compile(jits[w], make(&arena, &(ax_expr){.op = AX_SCALAR_DIV, .dtype = AX_BF16}, AX_BF16, some, false));
    for (uint32_t first = 0; first < 65536; first += rows) {
      for (uint32_t i = 0; i < some; i++) x[i] = (uint16_t)((first + i) * 40503u ^ i << 9);
      for (uint32_t i = 0; i < rows; i++) divisors[i] = (uint16_t)(first + i);
      together((void *[]){x, divisors, quotients}, NULL, 0, rows);
      for (uint32_t r = 0; r < rows; r++) {
        for (uint32_t i = 0; i < some; i++) each[i] = divisors[r];
        apart((void *[]){x, each, NULL, wanted}, NULL, 0, some);
        for (uint32_t i = 0; i < some; i++) {
          number g = number_of_bits(AX_BF16, quotients[r * some + i]), v = number_of_bits(AX_BF16, wanted[i]);
          if (quotients[r * some + i] != wanted[i] && !(isnan(g.f) && isnan(v.f)))
            fail_msg("%a / %a of bf16, %u bytes: %a together, %a apart", number_of_bits(AX_BF16, x[i]).f,
                     number_of_bits(AX_BF16, divisors[r]).f, widths[w], g.f, v.f);
        }
      }
    }
    ax_arena_deinit(&arena);
  }
}

/* Powers of f32, one for each row, which are computed one by one, and side by side: the same bits. */
static void one_power(void **state) {
  enum { rows = 700, columns = 300 };
  static _Alignas(64) float x[rows], y[rows], alone[rows * columns], beside[rows];
  static const float strange[] = {0,         -0.0f, 1,         -1,    2,  -2,        0.5f,   3,  INFINITY,
                                  -INFINITY, NAN,   0x1p-126f, 1e38f, -7, 0x1p-140f, -1e30f, 127};
  const int64_t dims[] = {rows, columns};
  (void)state;
  for (int i = 0; i < rows; i++) {
    x[i] = (float)(0.057 * i + 0.003), y[i] = (float)(i % 83 - 41) * 0.7f;
    if (i % 3 == 0) x[i] = strange[i / 3 % (int)AX_COUNT(strange)];
    if (i % 5 == 0) y[i] = strange[i / 5 % (int)AX_COUNT(strange)];
  }
  for (int w = 0; w < width_count; w++) {
    ax_arena arena = {0};
    ax_position at[2], down[1];
    ax_loop_kernel *k = ax_kernel_create(&arena, 2, 0, dims);
    ax_at_identity(at, 2);
    ax_at_identity(down, 1);
    const ax_ex a = ax_kernel_load(k, ax_kernel_slot(k, AX_F32, 1, dims), down),
                b = ax_kernel_load(k, ax_kernel_slot(k, AX_F32, 1, dims), down);
    ax_kernel_store(k, ax_kernel_slot(k, AX_F32, 2, dims), at, ax_kernel_op(k, AX_SCALAR_POW, AX_F32, a, b, AX_NONE),
                    AX_SCALAR_NONE);
    compile(jits[w], k)((void *[]){x, y, alone}, NULL, 0, rows);
    compile(jits[w], make(&arena, &(ax_expr){.op = AX_SCALAR_POW, .dtype = AX_F32}, AX_F32, rows, false))(
        (void *[]){x, y, NULL, beside}, NULL, 0, rows);
    for (int i = 0; i < rows * columns; i++)
      if (memcmp(&alone[i], &beside[i / columns], sizeof(float)) != 0 && !(isnan(alone[i]) && isnan(beside[i / columns])))
        fail_msg("%a to the power %a, %u bytes: %a by itself, %a beside others", (double)x[i / columns], (double)y[i / columns],
                 widths[w], (double)alone[i], (double)beside[i / columns]);
    ax_arena_deinit(&arena);
  }
}

/* A number to powers of f32: the same bits whether it is known to the code or read. */
static void powers_of_a_number(void **state) {
  enum { some = 3000 };
  static const float bases[] = {10, 2, 0.5f, 0.99f, 1.00001f, 0x1p-126f, 0x1.fffffep127f, 1, -2, 0, INFINITY, NAN, 3.3e-39f, 1e4f};
  static const float strange[] = {0,     -0.0f,  INFINITY,  -INFINITY, NAN,  0x1p-126f, -0x1p-140f,
                                  1e38f, -1e38f, 38.53184f, 128,       -149, -150};
  static _Alignas(64) float x[some], y[some], known[some], given[some];
  static const int64_t dim = some;
  (void)state;
  for (int i = 0; i < some; i++)
    y[i] = i % 7 == 0 ? strange[i / 7 % (int)AX_COUNT(strange)] : (float)(i - some / 2) * (i % 2 == 0 ? 0.031f : 1.7e-4f);
  for (int w = 0; w < width_count; w++)
    for (size_t b = 0; b < AX_COUNT(bases); b++) {
      ax_arena arena = {0};
      ax_position at[1];
      uint64_t bits = 0;
      ax_loop_kernel *k = ax_kernel_create(&arena, 1, 0, &dim);
      ax_at_identity(at, 1);
      memcpy(&bits, &bases[b], sizeof bases[b]);
      const ax_ex power = ax_kernel_op(k, AX_SCALAR_POW, AX_F32, ax_kernel_const(k, AX_F32, bits),
                                       ax_kernel_load(k, ax_kernel_slot(k, AX_F32, 1, &dim), at), AX_NONE);
      ax_kernel_store(k, ax_kernel_slot(k, AX_F32, 1, &dim), at, power, AX_SCALAR_NONE);
      for (int i = 0; i < some; i++) x[i] = bases[b];
      compile(jits[w], k)((void *[]){y, known}, NULL, 0, some);
      compile(jits[w], make(&arena, &(ax_expr){.op = AX_SCALAR_POW, .dtype = AX_F32}, AX_F32, some, false))(
          (void *[]){x, y, NULL, given}, NULL, 0, some);
      for (int i = 0; i < some; i++)
        if (memcmp(&known[i], &given[i], sizeof(float)) != 0 && !(isnan(known[i]) && isnan(given[i])))
          fail_msg("%a to the power %a, %u bytes: %a, and %a of an array", (double)bases[b], (double)y[i], widths[w],
                   (double)known[i], (double)given[i]);
      ax_arena_deinit(&arena);
    }
}

/* Random bits of counts that are counted and of ones that are read, with one key and with many, vectors side by side and rows of which
   some are left over. */
static void random_bits_side_by_side(void **state) {
  enum { many = (1 << 15) * 2 + 37 };
  static uint64_t keys[many], counts[many], out[many];
  static const int64_t all = many, one = 1;
  (void)state;
  for (int64_t i = 0; i < many; i++)
    keys[i] = 0x9e3779b97f4a7c15u * (uint64_t)(i + 1), counts[i] = 0xbf58476d1ce4e5b9u * (uint64_t)(i + 7);
  for (int w = 0; w < width_count; w++)
    for (int form = 0; form < 4; form++) {
      const bool many_keys = form % 2 == 1, counted = form / 2 == 1;
      ax_arena arena = {0};
      ax_kernel_code code;
      const ax_position at = {.dim = 0, .coef = 1, .dynamic = AX_NONE}, first = {.dim = -1, .dynamic = AX_NONE};
      ax_loop_kernel *k = ax_kernel_create(&arena, 1, 0, &all);
      const uint32_t key = ax_kernel_slot(k, AX_U64, 1, many_keys ? &all : &one), count = ax_kernel_slot(k, AX_U64, 1, &all),
                     made = ax_kernel_slot(k, AX_U64, 1, &all);
      const ax_ex index = ax_kernel_op(k, AX_SCALAR_CONVERT, AX_U64, ax_kernel_index(k, 0), AX_NONE, AX_NONE);
      ax_kernel_store(k, made, &at,
                      ax_kernel_op(k, AX_SCALAR_THREEFRY, AX_U64, ax_kernel_load(k, key, many_keys ? &at : &first),
                                   counted ? index : ax_kernel_load(k, count, &at), AX_NONE),
                      AX_SCALAR_NONE);
      const ax_loop_kernel *kernel = k;
      if (ax_jit_compile(jits[w], &kernel, 1, &code) != AX_OK) fail_msg("%s", ax_message());
      code((void *[]){keys, counts, out}, NULL, 0, many);
      for (int64_t i = 0; i < many; i++)
        assert_int_equal(out[i], ax_threefry_bits(keys[many_keys ? i : 0], counted ? (uint64_t)i : counts[i]));
      ax_arena_deinit(&arena);
    }
}

/* x / (n - i) and x % (n - i), whose divisor is above 0 for each index that there is, and 0 or less in the lanes behind the last: each,
   and the largest of all, by rows of two. */
static void try_falling_divisors(int w, ax_dtype dtype, int64_t n) {
  enum { most_elems = 2 * 600 };
  static uint64_t x[most_elems], quotients[most_elems], rests[most_elems], largest[2], most_rest[2];
  ax_arena arena = {0};
  ax_kernel_code codes[2];
  const int64_t dims[] = {2, n};
  const size_t bytes = ax_dtype_bytes(dtype);
  const uint64_t top = ax_dtype_get(dtype)->kind == AX_KIND_SIGNED ? UINT64_MAX >> (65 - 8 * bytes) : UINT64_MAX >> (64 - 8 * bytes);
  memset(x, 0, sizeof x);
  for (int64_t i = 0; i < 2 * n; i++) memcpy((char *)x + i * (int64_t)bytes, &(uint64_t){top - (uint64_t)(i % 5)}, bytes);
  for (int reduces = 0; reduces < 2; reduces++) {
    const ax_position at[] = {{.dim = 0, .coef = 1, .dynamic = AX_NONE}, {.dim = 1, .coef = 1, .dynamic = AX_NONE}};
    ax_loop_kernel *k = ax_kernel_create(&arena, 2, (uint32_t)reduces, dims);
    const uint32_t in = ax_kernel_slot(k, dtype, 2, dims), out[] = {ax_kernel_slot(k, dtype, 2 - (uint32_t)reduces, dims),
                                                                    ax_kernel_slot(k, dtype, 2 - (uint32_t)reduces, dims)};
    const ax_ex index = ax_kernel_op(k, AX_SCALAR_CONVERT, dtype, ax_kernel_index(k, 1), AX_NONE, AX_NONE),
                by = ax_kernel_op(k, AX_SCALAR_SUB, dtype, ax_kernel_const(k, dtype, n), index, AX_NONE), number = ax_kernel_load(k, in, at);
    for (int rest = 0; rest < 2; rest++)
      ax_kernel_store(k, out[rest], at, ax_kernel_op(k, rest == 1 ? AX_SCALAR_REM : AX_SCALAR_DIV, dtype, number, by, AX_NONE),
                      reduces == 1 ? AX_SCALAR_MAX : AX_SCALAR_NONE);
    const ax_loop_kernel *kernel = k;
    if (ax_jit_compile(jits[w], &kernel, 1, &codes[reduces]) != AX_OK) fail_msg("%s", ax_message());
  }
  codes[0]((void *[]){x, quotients, rests}, NULL, 0, 2);
  codes[1]((void *[]){x, largest, most_rest}, NULL, 0, 2);
  for (int64_t row = 0; row < 2; row++) {
    uint64_t most[2] = {0};
    for (int64_t i = 0; i < n; i++) {
      const uint64_t number = bits_at(dtype, x, row * n + i), wanted[] = {number / (uint64_t)(n - i), number % (uint64_t)(n - i)},
                     got[] = {bits_at(dtype, quotients, row * n + i), bits_at(dtype, rests, row * n + i)};
      for (int rest = 0; rest < 2; rest++) {
        if (got[rest] != wanted[rest]) fail_msg("%s, %lld, %u bytes: %llu", ax_dtype_name(dtype), (long long)n, widths[w], (unsigned long long)got[rest]);
        most[rest] = wanted[rest] > most[rest] ? wanted[rest] : most[rest];
      }
    }
    assert_int_equal(bits_at(dtype, largest, row), most[0]);
    assert_int_equal(bits_at(dtype, most_rest, row), most[1]);
  }
  ax_arena_deinit(&arena);
}

static void falling_divisors(void **state) {
  static const ax_dtype dtypes[] = {AX_S8, AX_U8, AX_S16, AX_U16, AX_S32, AX_U32, AX_S64, AX_U64};
  static const int64_t extents[] = {2, 3, 5, 13, 17, 33, 65, 100, 513};
  (void)state;
  for (int w = 0; w < width_count; w++)
    for (size_t d = 0; d < AX_COUNT(dtypes); d++)
      for (size_t n = 0; n < AX_COUNT(extents); n++)
        if (ax_dtype_bytes(dtypes[d]) > 1 || extents[n] < 120) try_falling_divisors(w, dtypes[d], extents[n]);
}

/* --- Quotients and rests of the same bits --- */

/* Of integers as they are, and of the same bits with a sign or without one: what is divided once must not be shared by both. */
static ax_loop_kernel *divides_both(ax_arena *arena, ax_dtype dtype, ax_dtype other, int64_t count) {
  const int64_t dims[] = {count};
  ax_loop_kernel *k = ax_kernel_create(arena, 1, 0, dims);
  ax_position at[1];
  ax_at_identity(at, 1);
  const uint32_t a = ax_kernel_slot(k, dtype, 1, dims), b = ax_kernel_slot(k, dtype, 1, dims);
  const ax_ex x = ax_kernel_load(k, a, at), y = ax_kernel_load(k, b, at);
  for (int unsigned_too = 0; unsigned_too < 2; unsigned_too++) {
    const ax_dtype as = unsigned_too ? other : dtype;
    const ax_ex p = unsigned_too ? ax_kernel_op(k, AX_SCALAR_CONVERT, as, x, AX_NONE, AX_NONE) : x,
                q = unsigned_too ? ax_kernel_op(k, AX_SCALAR_CONVERT, as, y, AX_NONE, AX_NONE) : y;
    for (int rest_first = 0; rest_first < 2; rest_first++) {
      const ax_ex one = ax_kernel_op(k, rest_first == unsigned_too ? AX_SCALAR_REM : AX_SCALAR_DIV, as, p, q, AX_NONE);
      ax_kernel_store(k, ax_kernel_slot(k, as, 1, dims), at, one, AX_SCALAR_NONE);
    }
  }
  assert_false(k->failed);
  return k;
}

static void quotients_and_rests(void **state) {
  static const ax_dtype pairs[][2] = {{AX_S8, AX_U8}, {AX_S16, AX_U16}, {AX_S32, AX_U32}, {AX_S64, AX_U64}};
  enum { count = int_edge_count * int_edge_count };
  static uint64_t a[count], b[count], got[4][count], wanted[4][count];
  (void)state;
  for (size_t d = 0; d < AX_COUNT(pairs); d++) {
    ax_arena arena = {0};
    const ax_dtype dtype = pairs[d][0];
    const size_t bytes = ax_dtype_bytes(dtype);
    for (int64_t i = 0; i < count; i++) {
      store_edge(dtype, a, i, (uint32_t)(i / int_edge_count));
      store_edge(dtype, b, i, (uint32_t)(i % int_edge_count));
    }
    const ax_loop_kernel *all = divides_both(&arena, dtype, pairs[d][1], count), *one = divides_both(&arena, dtype, pairs[d][1], 1);
    reference_run(all, (void *[]){a, b, wanted[0], wanted[1], wanted[2], wanted[3]}, NULL, 0, count);
    for (int w = 0; w < width_count; w++) {
      ax_kernel_code code = compile(jits[w], all), of_one = compile(jits[w], one);
      code((void *[]){a, b, got[0], got[1], got[2], got[3]}, NULL, 0, count);
      for (int k = 0; k < 4; k++) assert_memory_equal(got[k], wanted[k], count * bytes);
      memset(got, 0xee, sizeof got);
      for (size_t i = 0; i < count * bytes; i += bytes)
        of_one((void *[]){(char *)a + i, (char *)b + i, (char *)got[0] + i, (char *)got[1] + i, (char *)got[2] + i, (char *)got[3] + i}, NULL,
               0, 1);
      for (int k = 0; k < 4; k++) assert_memory_equal(got[k], wanted[k], count * bytes);
    }
    ax_arena_deinit(&arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(operations),
      cmocka_unit_test(bitcasts),
      cmocka_unit_test(precisions),
      cmocka_unit_test(powers),
      cmocka_unit_test(conversions),
      cmocka_unit_test(accuracy),
      cmocka_unit_test(one_divisor),
      cmocka_unit_test(one_power),
      cmocka_unit_test(powers_of_a_number),
      cmocka_unit_test(quotients_and_rests),
      cmocka_unit_test(random_bits_side_by_side),
      cmocka_unit_test(falling_divisors),
  };
  return cmocka_run_group_tests(tests, make_jits, destroy_jits);
}
