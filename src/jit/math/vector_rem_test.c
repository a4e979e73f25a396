/* Remainders bit by bit as the C library's: of bits at random, of quotients of every size, and of numbers that lie at the ends; with
   subnormal numbers kept and flushed, in registers of 32 and 64 bytes. */
#include "jit/math/vector_math.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "machine/float_mode.h"
#include "support/cmocka.h"
#include "support/random.h"

#if defined(__x86_64__)

typedef void apply(const ax_vector_math *math, const void *x, const void *y, void *out);

typedef float f32_of_32_register __attribute__((vector_size(32)));
typedef f32_of_32_register f32_of_32_two(f32_of_32_register, f32_of_32_register);
__attribute__((target("avx2,fma"))) static void f32_of_32(const ax_vector_math *math, const void *x, const void *y, void *out) {
  f32_of_32_register a, b;
  memcpy(&a, x, sizeof a);
  memcpy(&b, y, sizeof b);
  a = ((f32_of_32_two *)math->f32[AX_SCALAR_REM])(a, b);
  memcpy(out, &a, sizeof a);
}

typedef double f64_of_32_register __attribute__((vector_size(32)));
typedef f64_of_32_register f64_of_32_two(f64_of_32_register, f64_of_32_register);
__attribute__((target("avx2,fma"))) static void f64_of_32(const ax_vector_math *math, const void *x, const void *y, void *out) {
  f64_of_32_register a, b;
  memcpy(&a, x, sizeof a);
  memcpy(&b, y, sizeof b);
  a = ((f64_of_32_two *)math->f64[AX_SCALAR_REM])(a, b);
  memcpy(out, &a, sizeof a);
}

typedef float f32_of_64_register __attribute__((vector_size(64)));
typedef f32_of_64_register f32_of_64_two(f32_of_64_register, f32_of_64_register);
__attribute__((target("avx512f"))) static void f32_of_64(const ax_vector_math *math, const void *x, const void *y, void *out) {
  f32_of_64_register a, b;
  memcpy(&a, x, sizeof a);
  memcpy(&b, y, sizeof b);
  a = ((f32_of_64_two *)math->f32[AX_SCALAR_REM])(a, b);
  memcpy(out, &a, sizeof a);
}

typedef double f64_of_64_register __attribute__((vector_size(64)));
typedef f64_of_64_register f64_of_64_two(f64_of_64_register, f64_of_64_register);
__attribute__((target("avx512f"))) static void f64_of_64(const ax_vector_math *math, const void *x, const void *y, void *out) {
  f64_of_64_register a, b;
  memcpy(&a, x, sizeof a);
  memcpy(&b, y, sizeof b);
  a = ((f64_of_64_two *)math->f64[AX_SCALAR_REM])(a, b);
  memcpy(out, &a, sizeof a);
}

typedef struct width {
  const ax_vector_math *math;
  uint32_t bytes;
  apply *f32, *f64;
} width;

/* False: the processor, or the compiler that made the library, has no such registers. */
static bool find_width(uint32_t bytes, width *out) {
  const bool narrow = bytes == 32;
  *out = narrow ? (width){&ax_vector_math_32, 32, f32_of_32, f64_of_32} : (width){&ax_vector_math_64, 64, f32_of_64, f64_of_64};
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return false;
  if (!narrow && (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512dq"))) return false;
  return out->math->f32[AX_SCALAR_REM] != NULL && out->math->f64[AX_SCALAR_REM] != NULL;
}

/* --- What is wanted: as the C library has it, of operands that are flushed before and a result that is flushed behind --- */

static double flushed(double x, double least, bool flush) { return flush && fabs(x) < least ? copysign(0, x) : x; }

static double wanted(double x, double y, double least, bool flush) {
  return flushed(fmod(flushed(x, least, flush), flushed(y, least, flush)), least, flush);
}

static void compare(double x, double y, double got, double want, const char *what) {
  const bool same = (isnan(got) && isnan(want)) || (memcmp(&got, &want, sizeof got) == 0);
  if (!same) fail_msg("%s: %a rem %a is %a, not %a", what, x, y, got, want);
}

static void try_f64(const width *w, const double *x, const double *y, bool flush) {
  double got[8];
  const ax_float_mode mode = ax_float_mode_enter(flush);
  w->f64(w->math, x, y, got);
  ax_float_mode_leave(mode);
  for (uint32_t i = 0; i < w->bytes / 8; i++) compare(x[i], y[i], got[i], wanted(x[i], y[i], DBL_MIN, flush), flush ? "f64, flushed" : "f64");
}

static void try_f32(const width *w, const float *x, const float *y, bool flush) {
  float got[16];
  const ax_float_mode mode = ax_float_mode_enter(flush);
  w->f32(w->math, x, y, got);
  ax_float_mode_leave(mode);
  for (uint32_t i = 0; i < w->bytes / 4; i++)
    compare((double)x[i], (double)y[i], (double)got[i], wanted((double)x[i], (double)y[i], (double)FLT_MIN, flush),
            flush ? "f32, flushed" : "f32");
}

/* --- Numbers --- */

static double f64_of(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static float f32_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* A divisor whose exponent is up to `away` below that of x's bits, or a little above it. */
static uint64_t divisor(test_random *random, uint64_t x, unsigned digits, uint64_t exponents, uint64_t away) {
  const uint64_t exponent = x >> digits & exponents, back = test_random_below(random, away + 2);
  const uint64_t own = exponent + 1 > back ? exponent + 1 - back : 0, most = exponents - 1;
  return (test_random_bits(random) & ((1ull << digits) - 1)) | (own < most ? own : most) << digits;
}

enum { rounds = 20000 };
static const uint64_t reaches[] = {2, 23, 60, 300, 3000};

static void random_numbers(const width *w, bool flush) {
  test_random random = {w->bytes};
  for (int round = 0; round < rounds; round++) {
    double x[8], y[8];
    float u[16], v[16];
    const uint64_t reach = reaches[round % 5];
    for (int i = 0; i < 8; i++) {
      const uint64_t bits = test_random_bits(&random), by = round % 7 == 0 ? test_random_bits(&random) : divisor(&random, bits, 52, 2047, reach);
      x[i] = f64_of(bits), y[i] = f64_of(by);
      if (round % 4 == 0) y[i] = f64_of(by & 0xfff0000000000000); /* a power of two */
    }
    for (int i = 0; i < 16; i++) {
      const uint32_t bits = (uint32_t)test_random_bits(&random);
      const uint32_t by = round % 7 == 0 ? (uint32_t)test_random_bits(&random) : (uint32_t)divisor(&random, bits, 23, 255, reach);
      u[i] = f32_of(bits), v[i] = f32_of(by);
      if (round % 4 == 0) v[i] = f32_of(by & 0xff800000);
    }
    try_f64(w, x, y, flush);
    try_f32(w, u, v, flush);
  }
}

/* Multiples of y, and their neighbours, where a quotient is rounded up to the whole number. */
static void multiples(const width *w, bool flush) {
  test_random random = {7};
  for (int round = 0; round < rounds; round++) {
    double x[8], y[8];
    float u[16], v[16];
    for (int i = 0; i < 8; i++) {
      y[i] = f64_of(0x3ff0000000000000 | (test_random_bits(&random) >> 12));
      x[i] = y[i] * (double)(test_random_bits(&random) >> (11 + (unsigned)round % 53));
      if (round % 3 != 0) x[i] = nextafter(x[i], round % 2 == 0 ? 0 : HUGE_VAL);
    }
    for (int i = 0; i < 16; i++) {
      v[i] = f32_of(0x3f800000 | (uint32_t)(test_random_bits(&random) >> 41));
      u[i] = v[i] * (float)(test_random_bits(&random) >> (38 + (unsigned)round % 26));
      if (round % 3 != 0) u[i] = nextafterf(u[i], round % 2 == 0 ? 0 : HUGE_VALF);
    }
    try_f64(w, x, y, flush);
    try_f32(w, u, v, flush);
  }
}

static void ends(const width *w, bool flush) {
  static const double wide[] = {0, -0.0, 1, -1, 3, DBL_MIN, -DBL_MIN, DBL_TRUE_MIN, 0x1.8p-1023, DBL_MAX, -DBL_MAX, HUGE_VAL, -HUGE_VAL, NAN,
                                0x1p-960, 0x1.fffffffffffffp-961, 0x1p51, 0x1p52, 0x1p53, 0x1p1000, 0x1p-1000, 2, 0.1, 0x1p500};
  static const float narrow[] = {0, -0.0f, 1, -1, 3, FLT_MIN, -FLT_MIN, FLT_TRUE_MIN, 0x1.8p-127f, FLT_MAX, -FLT_MAX, HUGE_VALF, -HUGE_VALF, NAN,
                                 0x1p-100f, 0x1.fffffep-101f, 0x1p22f, 0x1p23f, 0x1p24f, 0x1p120f, 0x1p-120f, 2, 0.1f, 0x1p60f};
  enum { count = sizeof wide / sizeof wide[0] };
  double x[8], y[8];
  float u[16], v[16];
  for (int a = 0; a < count; a++)
    for (int b = 0; b < count; b++) {
      for (int i = 0; i < 16; i++) u[i] = narrow[i % 2 == 0 ? a : (a + i) % count], v[i] = narrow[i % 2 == 0 ? b : (b + i) % count];
      for (int i = 0; i < 8; i++) x[i] = wide[i % 2 == 0 ? a : (a + i) % count], y[i] = wide[i % 2 == 0 ? b : (b + i) % count];
      try_f64(w, x, y, flush);
      try_f32(w, u, v, flush);
    }
}

static void remainders(uint32_t bytes) {
  width w;
  if (!find_width(bytes, &w)) skip();
  for (int flush = 0; flush < 2; flush++) {
    random_numbers(&w, flush);
    multiples(&w, flush);
    ends(&w, flush);
  }
}

static void remainders_of_32_bytes(void **state) {
  (void)state;
  remainders(32);
}

static void remainders_of_64_bytes(void **state) {
  (void)state;
  remainders(64);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(remainders_of_32_bytes), cmocka_unit_test(remainders_of_64_bytes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void) { return 0; }
#endif
