/* Fourier transforms of many lengths: by the engine and by products, beside the sums that they are; and a line's bits, whatever is
   beside it. */
#include <stdlib.h>
#include <string.h>

#include "axle/numpy.h"
#include "fourier/engines.h"
#include "fourier/products.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"
#include "support/tensor.h"

static const int64_t lengths[] = {1,  2,  3,  4,  5,  6,   7,   8,   9,   11,  12,  13,  16,  17,  25,   32,
                                  49, 60, 64, 97, 100, 121, 128, 131, 210, 243, 256, 257, 509, 1000, 1024, 4100};

/* --- Beside the sums --- */

/* z c128[3,n,2] -> the four kinds along dimension 1; by products, the same */
static AX_BODY(every_kind) {
  const int64_t n = *(const int64_t *)context;
  const ax_value z = in[0], x = ax_real_part(z), half = ax_rfft(x, 1);
  out[0] = ax_fft(z, 1), out[1] = ax_ifft(z, 1), out[2] = half, out[3] = ax_irfft(half, n, 1);
  out[4] = ax_fourier_by_products(z, AX_FOURIER_FORWARD, n, 1);
  out[5] = ax_fourier_by_products(z, AX_FOURIER_BACKWARD, n, 1);
  out[6] = ax_fourier_by_products(x, AX_FOURIER_REAL, n, 1);
  out[7] = ax_fourier_by_products(half, AX_FOURIER_REAL_BACK, n, 1);
}

static void sums(void **state) {
  (void)state;
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  test_random random = {.state = 29};
  for (size_t i = 0; i < AX_COUNT(lengths); i++) {
    const ax_type type = TEST_TYPE(AX_C128, 3, lengths[i], 2);
    ax_tensor *in[] = {test_random_tensor(&random, type, -1, 1)}, *compiled[8], *reference[8];
    ax_program *program = test_trace(every_kind, (void *)&lengths[i], &type, 1, 8);
    test_execute(runtime, program, in, compiled);
    test_execute_reference(runtime, program, in, reference);
    for (uint32_t k = 0; k < 8; k++) TEST_TENSORS_NEAR(compiled[k], reference[k % 4], 1e-15 * (double)lengths[i] + 1e-13);
    test_release(compiled, 8);
    test_release(reference, 8);
    test_release(in, 1);
    ax_program_release(program);
  }
  ax_runtime_release(runtime);
}

/* --- Bits: a line alone, at the end of a group that it does not fill, cut as threads cut it, and over its operand --- */

enum { LINES = 57 };

typedef struct job {
  ax_fourier_key key;
  ax_fourier_job job;
  int64_t in_bytes, out_bytes; /* of a line */
} job;

static job job_of(ax_fourier_kind kind, int64_t n, bool wide, int64_t s) {
  const int64_t number = wide ? 8 : 4, half = (n / 2 + 1) * 2;
  return (job){.key = {.n = n, .wide = wide, .real = ax_fourier_is_real(kind)},
               .job = {.kind = kind, .n = n, .s = s},
               .in_bytes = number * (kind == AX_FOURIER_REAL ? n : kind == AX_FOURIER_REAL_BACK ? half : 2 * n),
               .out_bytes = number * (kind == AX_FOURIER_REAL ? half : kind == AX_FOURIER_REAL_BACK ? n : 2 * n)};
}

static void same_bits(const ax_fourier_engine *engine, const job *j, test_random *random) {
  ax_fourier_plan *plan;
  TEST_OK(ax_fourier_take(engine, &j->key, false, &plan));
  const void *made = ax_fourier_made(plan);
  char *from = ax_alloc((size_t)(LINES * j->in_bytes)), *whole = ax_alloc((size_t)(LINES * j->out_bytes)),
       *pieces = ax_alloc((size_t)(LINES * j->out_bytes)), *work = aligned_alloc(64, (size_t)(engine->work_bytes(made) + 63) / 64 * 64);
  assert_true(from != NULL && whole != NULL && pieces != NULL && work != NULL);
  for (int64_t i = 0; i < LINES * j->in_bytes / (j->key.wide ? 8 : 4); i++) {
    const double x = test_random_uniform(random, -1, 1);
    if (j->key.wide) ((double *)from)[i] = x;
    else ((float *)from)[i] = (float)x;
  }
  assert_true(engine->run(made, &j->job, 0, LINES, from, whole, work));
  memset(pieces, 0, (size_t)(LINES * j->out_bytes));
  static const int64_t ends[] = {0, 1, 4, 12, 17, 18, 40, LINES};
  for (size_t i = 0; i + 1 < AX_COUNT(ends); i++) assert_true(engine->run(made, &j->job, ends[i], ends[i + 1], from, pieces, work));
  if (memcmp(whole, pieces, (size_t)(LINES * j->out_bytes)) != 0)
    fail_msg("kind %d of %d, %d lines side by side, has other bits in pieces", (int)j->job.kind, (int)j->job.n, (int)j->job.s);
  for (size_t i = 0; i + 1 < AX_COUNT(ends) && !ax_fourier_is_real(j->job.kind); i++)
    assert_true(engine->run(made, &j->job, ends[i], ends[i + 1], from, from, work));
  if (!ax_fourier_is_real(j->job.kind) && memcmp(whole, from, (size_t)(LINES * j->out_bytes)) != 0)
    fail_msg("kind %d of %d, %d lines side by side, has other bits in place", (int)j->job.kind, (int)j->job.n, (int)j->job.s);
  ax_free(from), ax_free(whole), ax_free(pieces), free(work);
  ax_fourier_give(plan);
}

static void bits(void **state) {
  (void)state;
  const ax_fourier_engine *engine = ax_fourier_engine_here();
  if (engine == NULL) skip(); /* built without ducc0, or for a newer processor */
  static const int64_t more[] = {2048, 4096, 4097, 5000, 8192, 10007, 20000};
  test_random random = {.state = 31};
  for (size_t i = 0; i < AX_COUNT(lengths) + AX_COUNT(more); i++)
    for (int kind = 0; kind < 4; kind++)
      for (int wide = 0; wide < 2; wide++)
        for (int64_t s = 1; s <= 19; s += s == 1 ? 2 : 16) { /* 1, 3, 19: of which 57 is a multiple */
          job j = job_of((ax_fourier_kind)kind, i < AX_COUNT(lengths) ? lengths[i] : more[i - AX_COUNT(lengths)], wide != 0, s);
          same_bits(engine, &j, &random);
          j.key.many = true;
          if (j.job.n > 4096 && s == 3) same_bits(engine, &j, &random);
          j.key.many = false, j.key.alone = true;
          if (j.job.n <= 4096 && s == 3) same_bits(engine, &j, &random);
        }
}

/* --- Plans: more than are kept, the oldest taken all the while --- */

static void plans(void **state) {
  (void)state;
  const ax_fourier_engine *engine = ax_fourier_engine_here();
  if (engine == NULL) skip();
  ax_fourier_plan *first, *again, *other;
  const ax_fourier_key key = {.n = 30};
  TEST_OK(ax_fourier_take(engine, &key, false, &first));
  const void *made = ax_fourier_made(first);
  for (int64_t n = 31; n < 700; n++) {
    TEST_OK(ax_fourier_take(engine, &(ax_fourier_key){.n = n}, false, &other));
    ax_fourier_give(other);
  }
  TEST_OK(ax_fourier_take(engine, &key, false, &again));
  assert_ptr_equal(ax_fourier_made(again), made);
  ax_fourier_give(first);
  ax_fourier_give(again);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sums), cmocka_unit_test(bits), cmocka_unit_test(plans)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
