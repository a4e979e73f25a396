/* The interface: sizes and remainders, sums that do not depend on ranges, in-place stores, empty spaces, the cache, threads and
   failing memory. nest_test.c tries kernels at random, scalar_test.c each operation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "jit/guarded_test.h"
#include "jit/jit.h"

static ax_compiler *jit;
static const ax_position identity[2] = {{.dim = 0, .coef = 1, .dynamic = AX_NONE}, {.dim = 1, .coef = 1, .dynamic = AX_NONE}};

static ax_kernel_code compile(const ax_loop_kernel *kernel) {
  ax_kernel_code code;
  assert_false(kernel->failed);
  if (ax_jit_compile(jit, &kernel, 1, &code) != AX_OK) fail_msg("%s", ax_message());
  return code;
}

/* Reproducible values whose sums round. */
static float noise(int64_t i) { return (float)((uint32_t)(i * 2654435761u) >> 8) / 16777216.0f - 0.3f; }

static float *noisy(int64_t count) {
  float *data = malloc((size_t)count * sizeof data[0]);
  for (int64_t i = 0; i < count; i++) data[i] = noise(i);
  return data;
}

/* --- Integers --- */

enum { quotients = 4096 };

static void check_quotients(int64_t *a, int64_t *b) {
  static int64_t got[quotients];
  const int64_t dims[] = {quotients};
  ax_arena arena = {0};
  ax_loop_kernel *k = ax_kernel_create(&arena, 1, 0, dims);
  uint32_t x = ax_kernel_slot(k, AX_S64, 1, dims), y = ax_kernel_slot(k, AX_S64, 1, dims);
  ax_ex ratio = ax_kernel_op(k, AX_SCALAR_DIV, AX_S64, ax_kernel_load(k, x, identity), ax_kernel_load(k, y, identity), AX_NONE);
  ax_kernel_store(k, ax_kernel_slot(k, AX_S64, 1, dims), identity, ratio, AX_SCALAR_NONE);
  compile(k)((void *[]){a, b, got}, NULL, 0, quotients);
  for (int64_t i = 0; i < quotients; i++) assert_int_equal(got[i], a[i] / b[i]);
  ax_arena_deinit(&arena);
}

/* A long chain of narrow operations, which is done for several vectors side by side: at each number of elements as for one
   alone. */
static void narrow_chains(void **state) {
  enum { most = 150, links = 16 };
  static _Alignas(64) uint16_t in[most], out[most + 1], alone[most];
  (void)state;
  for (int64_t i = 0; i < most; i++) in[i] = (uint16_t)(0x3f00 + 7 * i); /* from 0.5 up, as bf16 */
  for (int64_t n = 0; n <= most; n++) {
    const int64_t dims[] = {n == 0 ? 1 : n};
    ax_arena arena = {0};
    ax_loop_kernel *k = ax_kernel_create(&arena, 1, 0, dims);
    uint32_t x = ax_kernel_slot(k, AX_BF16, 1, dims), y = ax_kernel_slot(k, AX_BF16, 1, dims);
    ax_ex value = ax_kernel_load(k, x, identity), first = value;
    for (int link = 0; link < links; link++)
      value = ax_kernel_op(k, link % 2 == 0 ? AX_SCALAR_MUL : AX_SCALAR_SUB, AX_BF16, value, first, AX_NONE);
    ax_kernel_store(k, y, identity, value, AX_SCALAR_NONE);
    ax_kernel_code code = compile(k);
    for (int64_t i = 0; n == 0 && i < most; i++) code((void *[]){in + i, alone + i}, NULL, 0, 1);
    out[n] = 0xeeee;
    if (n > 0) code((void *[]){in, out}, NULL, 0, n);
    assert_memory_equal(out, alone, (size_t)n * sizeof out[0]);
    assert_int_equal(out[n], 0xeeee);
    ax_arena_deinit(&arena);
  }
}

/* Whether the first instructions round the stack pointer down to a multiple of a vector register: and rsp, -64 or -32. */
static inline bool realigns(ax_kernel_code code) {
  const unsigned char *bytes;
  memcpy(&bytes, &code, sizeof bytes);
  for (int i = 0; i < 64; i++)
    if (memcmp(bytes + i, "\x48\x83\xe4", 3) == 0) return bytes[i + 3] == 0xc0 || bytes[i + 3] == 0xe0;
  return false;
}

/* A kernel keeps values in memory for want of registers. Wherever its caller's stack ends, each lies in one cache line: a softmax
   whose vectors lay across two took twice the time. */
static void kept_vectors_are_aligned(void **state) {
  enum { many = 40 };
  (void)state;
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2")) return; /* 16 bytes, as the stack has them anyway */
  const int64_t dims[] = {4096};
  ax_arena arena = {0};
  ax_loop_kernel *k = ax_kernel_create(&arena, 1, 0, dims);
  ax_ex parts[many], sum;
  const ax_ex x = ax_kernel_load(k, ax_kernel_slot(k, AX_F32, 1, dims), identity);
  for (int i = 0; i < many; i++) parts[i] = ax_kernel_op(k, AX_SCALAR_MUL, AX_F32, x, i == 0 ? x : parts[i - 1], AX_NONE);
  sum = parts[0];
  for (int i = many; i-- > 1;) sum = ax_kernel_op(k, AX_SCALAR_SUB, AX_F32, sum, parts[i], AX_NONE);
  ax_kernel_store(k, ax_kernel_slot(k, AX_F32, 1, dims), identity, sum, AX_SCALAR_NONE);
  assert_true(realigns(compile(k)));
  ax_arena_deinit(&arena);
#endif
}

/* Of 64 bits, next to whole numbers: up to where floats would round, and beyond. */
static void long_quotients(void **state) {
  (void)state;
  static int64_t a[quotients], b[quotients];
  static const int64_t most[] = {((int64_t)1 << 51) - 1, INT64_MAX};
  for (int large = 0; large < 2; large++) {
    for (int64_t i = 0; i < quotients; i++) {
      int64_t divisor = (int64_t)((uint64_t)i * 0x9e3779b97f4a7c15u >> (13 + i % 48)) + 2;
      if (divisor > most[large]) divisor = most[large];
      a[i] = most[large] / divisor * divisor - i % 3; /* a multiple, and one and two less */
      b[i] = i & 8 ? -divisor : divisor;
      if (i & 16) a[i] = -a[i];
    }
    check_quotients(a, b);
  }
}

/* --- Sizes --- */

/* c = a * b + a: a contraction to fma would show. */
static ax_loop_kernel *muladd(ax_arena *arena, uint32_t rank, const int64_t *dims) {
  ax_loop_kernel *k = ax_kernel_create(arena, rank, 0, dims);
  uint32_t a = ax_kernel_slot(k, AX_F32, rank, dims), b = ax_kernel_slot(k, AX_F32, rank, dims);
  uint32_t c = ax_kernel_slot(k, AX_F32, rank, dims);
  ax_ex x = ax_kernel_load(k, a, identity);
  ax_ex product = ax_kernel_op(k, AX_SCALAR_MUL, AX_F32, x, ax_kernel_load(k, b, identity), AX_NONE);
  ax_kernel_store(k, c, identity, ax_kernel_op(k, AX_SCALAR_ADD, AX_F32, product, x, AX_NONE), AX_SCALAR_NONE);
  return k;
}

static void remainders(void **state) {
  (void)state;
  for (int64_t n = 1; n <= 40; n++) {
    ax_arena arena = {0};
    size_t bytes = (size_t)n * sizeof(float);
    guarded a = guarded_create(bytes, true), b = guarded_create(bytes, true), c = guarded_create(bytes, true);
    float *x = a.data, *y = b.data, *z = c.data;
    for (int64_t i = 0; i < n; i++) {
      x[i] = noise(i);
      y[i] = noise(i + 1000);
    }
    compile(muladd(&arena, 1, &n))((void *[]){x, y, z}, NULL, 0, n);
    for (int64_t i = 0; i < n; i++) {
      volatile float product = x[i] * y[i];
      assert_true(z[i] == product + x[i]);
    }
    guarded_destroy(&a);
    guarded_destroy(&b);
    guarded_destroy(&c);
    ax_arena_deinit(&arena);
  }
}

/* Dimensions that merge into one long loop; the range counts in the first of them. Nothing outside it is touched. */
static void ranges_of_merged_dimensions(void **state) {
  int64_t dims[] = {333, 257}, count = 333 * 257;
  ax_arena arena = {0};
  float *x = noisy(count), *y = noisy(count), *z = calloc((size_t)count, sizeof z[0]);
  (void)state;
  ax_kernel_code code = compile(muladd(&arena, 2, dims));
  code((void *[]){x, y, z}, NULL, 100, 201);
  code((void *[]){x, y, z}, NULL, 50, 50);
  for (int64_t i = 0; i < count; i++) {
    bool inside = i >= 100 * 257 && i < 201 * 257;
    volatile float product = x[i] * y[i];
    assert_true(z[i] == (inside ? product + x[i] : 0));
  }
  free(x);
  free(y);
  free(z);
  ax_arena_deinit(&arena);
}

static void in_place(void **state) {
  int64_t n = 1003;
  ax_arena arena = {0};
  float *x = noisy(n), *y = noisy(n);
  (void)state;
  compile(muladd(&arena, 1, &n))((void *[]){x, y, x}, NULL, 0, n);
  for (int64_t i = 0; i < n; i++) {
    volatile float product = y[i] * y[i];
    assert_true(x[i] == product + y[i]);
  }
  free(x);
  free(y);
  ax_arena_deinit(&arena);
}

/* --- Sums --- */

/* Sums of [rows, columns] over rows (`down`) or columns; also stores twice each element when `also` is set. */
static ax_loop_kernel *sums(ax_arena *arena, ax_dtype dtype, int64_t rows, int64_t columns, bool down, bool also) {
  int64_t array[] = {rows, columns}, dims[] = {down ? columns : rows, down ? rows : columns};
  ax_loop_kernel *k = ax_kernel_create(arena, 2, 1, dims);
  ax_position across[] = {{.dim = 1, .coef = 1, .dynamic = AX_NONE}, {.dim = 0, .coef = 1, .dynamic = AX_NONE}};
  const ax_position *at = down ? across : identity;
  uint32_t in = ax_kernel_slot(k, dtype, 2, array), out = ax_kernel_slot(k, dtype, 1, dims);
  ax_ex x = ax_kernel_load(k, in, at);
  ax_kernel_store(k, out, identity, x, AX_SCALAR_ADD);
  if (also)
    ax_kernel_store(k, ax_kernel_slot(k, dtype, 2, array), at, ax_kernel_op(k, AX_SCALAR_ADD, dtype, x, x, AX_NONE),
                    AX_SCALAR_NONE);
  return k;
}

static void try_sums(int64_t rows, int64_t columns, bool down) {
  ax_arena arena = {0};
  int64_t results = down ? columns : rows, count = rows * columns;
  float *x = noisy(count), *whole = calloc((size_t)results, 4), *pieces = calloc((size_t)results, 4),
        *twice = calloc((size_t)count, 4);
  ax_kernel_code code = compile(sums(&arena, AX_F32, rows, columns, down, true));
  code((void *[]){x, whole, twice}, NULL, 0, results);
  for (int64_t i = 0; i < results; i += 7)
    code((void *[]){x, pieces, twice}, NULL, i, i + 7 < results ? i + 7 : results);
  assert_memory_equal(whole, pieces, (size_t)results * 4);
  for (int64_t i = 0; i < results; i++) {
    double sum = 0;
    for (int64_t j = 0; j < count / results; j++) sum += (double)(down ? x[j * columns + i] : x[i * columns + j]);
    assert_true(whole[i] > sum - 1e-2 && whole[i] < sum + 1e-2);
  }
  for (int64_t i = 0; i < count; i++) assert_true(twice[i] == 2 * x[i]);
  free(x);
  free(whole);
  free(pieces);
  free(twice);
  ax_arena_deinit(&arena);
}

static void sums_do_not_depend_on_ranges(void **state) {
  static const int64_t sizes[][2] = {{1, 1},   {5, 3},    {33, 10},   {10, 33},   {200, 17},
                                     {40, 70}, {64, 200}, {19, 2100}, {100, 4099}};
  (void)state;
  for (size_t i = 0; i < AX_COUNT(sizes); i++) {
    try_sums(sizes[i][0], sizes[i][1], false);
    try_sums(sizes[i][0], sizes[i][1], true);
    try_sums(sizes[i][1], sizes[i][0], true);
  }
}

/* 1 + 2^-7 in bf16, 4096 times: with rounding on the way the sum would not get beyond 512. */
static void narrow_sums_round_once(void **state) {
  enum { count = 4096 };
  ax_arena arena = {0};
  uint16_t *x = malloc(count * sizeof x[0]), sum = 0;
  (void)state;
  for (int i = 0; i < count; i++) x[i] = 0x3f81;
  compile(sums(&arena, AX_BF16, 1, count, false, false))((void *[]){x, &sum}, NULL, 0, 1);
  assert_int_equal(sum, 0x4581); /* 4128 */
  free(x);
  ax_arena_deinit(&arena);
}

static void infinities_and_nans_in_maxima(void **state) {
  int64_t dims[] = {4, 40}, rows[] = {4};
  float x[160], least[4], greatest[4];
  ax_arena arena = {0};
  (void)state;
  for (int i = 0; i < 160; i++) x[i] = -1 - (float)(i % 40);
  x[40 + 39] = __builtin_nanf("");
  for (int i = 80; i < 120; i++) x[i] = -__builtin_inff();
  ax_loop_kernel *k = ax_kernel_create(&arena, 2, 1, dims);
  uint32_t in = ax_kernel_slot(k, AX_F32, 2, dims), a = ax_kernel_slot(k, AX_F32, 1, rows),
           b = ax_kernel_slot(k, AX_F32, 1, rows);
  ax_kernel_store(k, a, identity, ax_kernel_load(k, in, identity), AX_SCALAR_MIN);
  ax_kernel_store(k, b, identity, ax_kernel_load(k, in, identity), AX_SCALAR_MAX);
  compile(k)((void *[]){x, least, greatest}, NULL, 0, 4);
  assert_true(least[0] == -40 && greatest[0] == -1 && least[3] == -40);
  assert_true(least[1] != least[1] && greatest[1] != greatest[1]);
  assert_true(greatest[2] == -__builtin_inff());
  ax_arena_deinit(&arena);
}

/* --- Nothing --- */

static void empty_reductions_give_identities(void **state) {
  static const struct {
    ax_scalar reduce;
    ax_dtype dtype;
    uint64_t bits;
  } cases[] = {{AX_SCALAR_ADD, AX_F32, 0},          {AX_SCALAR_MUL, AX_F32, 0x3f800000},
               {AX_SCALAR_MAX, AX_F32, 0xff800000}, {AX_SCALAR_MIN, AX_F32, 0x7f800000},
               {AX_SCALAR_MUL, AX_BF16, 0x3f80},    {AX_SCALAR_MAX, AX_F16, 0xfc00},
               {AX_SCALAR_MAX, AX_S32, 0x80000000}, {AX_SCALAR_MIN, AX_S8, 0x7f},
               {AX_SCALAR_MIN, AX_U16, 0xffff},     {AX_SCALAR_MAX, AX_U64, 0},
               {AX_SCALAR_AND, AX_BOOL, 1},         {AX_SCALAR_OR, AX_BOOL, 0},
               {AX_SCALAR_AND, AX_S16, 0xffff},     {AX_SCALAR_MUL, AX_F64, 0x3ff0000000000000}};
  int64_t dims[] = {3, 0}, rows[] = {3};
  (void)state;
  for (size_t i = 0; i < AX_COUNT(cases); i++)
    for (uint32_t all = 0; all < 2; all++) { /* one value a row; or rank 0: dims {0}, everything reduced */
      ax_arena arena = {0};
      ax_loop_kernel *k = ax_kernel_create(&arena, all ? 1 : 2, 1, all ? dims + 1 : dims);
      uint32_t in = ax_kernel_slot(k, cases[i].dtype, all ? 1 : 2, all ? dims + 1 : dims);
      uint32_t out = ax_kernel_slot(k, cases[i].dtype, all ? 0 : 1, rows);
      ax_kernel_store(k, out, identity, ax_kernel_load(k, in, identity), cases[i].reduce);
      uint64_t results[4] = {0}, wanted = 0;
      size_t bytes = ax_dtype_bytes(cases[i].dtype);
      compile(k)((void *[]){NULL, results}, NULL, 0, all ? 0 : 3);
      for (uint32_t r = 0; r < (all ? 1 : 3); r++) memcpy((char *)&wanted, &cases[i].bits, bytes);
      for (uint32_t r = 0; r < (all ? 1 : 3); r++) assert_memory_equal((char *)results + r * bytes, &wanted, bytes);
      ax_arena_deinit(&arena);
    }
}

static void empty_spaces_run_nothing(void **state) {
  int64_t dims[] = {4, 0}, none = 0;
  ax_arena arena = {0};
  (void)state;
  compile(muladd(&arena, 2, dims))((void *[]){NULL, NULL, NULL}, NULL, 0, 4);
  compile(muladd(&arena, 1, &none))((void *[]){NULL, NULL, NULL}, NULL, 0, 0);
  ax_arena_deinit(&arena);
}

static void rank_zero(void **state) {
  float x = 3, y = 5, z = 0;
  ax_arena arena = {0};
  (void)state;
  compile(muladd(&arena, 0, NULL))((void *[]){&x, &y, &z}, NULL, 0, 1);
  assert_true(z == 18);
  ax_arena_deinit(&arena);
}

/* --- The cache --- */

static void equal_kernels_share_code(void **state) {
  int64_t n = 77, m = 78;
  ax_arena first = {0}, second = {0};
  ax_kernel_code codes[4], again;
  (void)state;
  const ax_loop_kernel *kernels[] = {muladd(&first, 1, &n), muladd(&first, 1, &m), muladd(&second, 1, &n),
                                muladd(&second, 1, &m)};
  assert_int_equal(ax_jit_compile(jit, kernels, 4, codes), AX_OK);
  ax_arena_deinit(&first); /* the cache must not need it */
  assert_true(codes[0] == codes[2] && codes[1] == codes[3] && codes[0] != codes[1]);
  assert_true(compile(kernels[2]) == codes[0]);
  assert_int_equal(ax_jit_compile(jit, NULL, 0, &again), AX_OK);
  ax_arena_deinit(&second);
}

static void *compile_many(void *unused) {
  for (int64_t n = 500; n < 520; n++) {
    ax_arena arena = {0};
    float x[520], z[520];
    ax_kernel_code code;
    const ax_loop_kernel *kernel = muladd(&arena, 1, &n);
    for (int64_t i = 0; i < n; i++) x[i] = (float)i;
    if (ax_jit_compile(jit, &kernel, 1, &code) != AX_OK) return "failed";
    code((void *[]){x, x, z}, NULL, 0, n);
    if (z[n - 1] != x[n - 1] * x[n - 1] + x[n - 1]) return "wrong";
    ax_arena_deinit(&arena);
  }
  return unused;
}

static void threads_share_a_jit(void **state) {
  pthread_t threads[4];
  (void)state;
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, compile_many, NULL), 0);
  for (int i = 0; i < 4; i++) {
    void *result;
    pthread_join(threads[i], &result);
    assert_null(result);
  }
}

/* --- Memory that fails --- */

static long allocations_left;

static void *fail_later(void *user, size_t bytes, size_t align) {
  void *memory = NULL;
  (void)user;
  if (allocations_left-- <= 0) return NULL;
  return posix_memalign(&memory, align, bytes) == 0 ? memory : NULL;
}

static void release(void *user, void *memory) {
  (void)user;
  free(memory);
}

/* Each allocation fails once; then the same jit compiles the same kernels. */
static void failing_memory(void **state) {
  int64_t n = 5, dims[] = {2, 0};
  ax_arena arena = {0};
  const ax_loop_kernel *kernels[] = {muladd(&arena, 1, &n), sums(&arena, AX_F32, dims[0], dims[1], false, false)};
  ax_allocator allocator = {fail_later, release, NULL};
  (void)state;
  ax_set_allocator(&allocator);
  for (long calls = 0;; calls++) {
    ax_compiler *fresh = NULL;
    ax_kernel_code codes[2];
    allocations_left = calls;
    ax_status status = ax_jit_create(NULL, &fresh);
    if (status == AX_OK) status = ax_jit_compile(fresh, kernels, 2, codes);
    bool done = status == AX_OK;
    if (!done) assert_int_equal(status, AX_OUT_OF_MEMORY);
    allocations_left = 1000;
    if (fresh != NULL) {
      assert_int_equal(ax_jit_compile(fresh, kernels, 2, codes), AX_OK);
      assert_true(codes[0] != NULL && codes[1] != NULL && codes[0] != codes[1]);
    }
    ax_jit_destroy(fresh);
    if (done) break;
  }
  ax_set_allocator(NULL);
  ax_arena_deinit(&arena);
}

static int setup(void **state) {
  (void)state;
  return ax_jit_create(NULL, &jit) != AX_OK;
}

static int teardown(void **state) {
  (void)state;
  ax_jit_destroy(jit);
  ax_jit_destroy(NULL);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(remainders),
      cmocka_unit_test(narrow_chains), cmocka_unit_test(kept_vectors_are_aligned), cmocka_unit_test(long_quotients),
      cmocka_unit_test(ranges_of_merged_dimensions),
      cmocka_unit_test(in_place),
      cmocka_unit_test(sums_do_not_depend_on_ranges),
      cmocka_unit_test(narrow_sums_round_once),
      cmocka_unit_test(infinities_and_nans_in_maxima),
      cmocka_unit_test(empty_reductions_give_identities),
      cmocka_unit_test(empty_spaces_run_nothing),
      cmocka_unit_test(rank_zero),
      cmocka_unit_test(equal_kernels_share_code),
      cmocka_unit_test(threads_share_a_jit),
      cmocka_unit_test(failing_memory),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
