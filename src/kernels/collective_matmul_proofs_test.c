/* The kernels on rings, proved: rings of 2 to 8 devices, buffering of 1 to 8, one to three rings at once. AXLE_PROOFS=1 prints the
   tables of docs/checker.md. */
#include "axle/axle.h"
#include "axle/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/base.h"
#include "support/cmocka.h"
#include "support/tensor.h"

typedef struct trial {
  int64_t rings, length, buffering;
  bool scatter, columns, shuffled;
} trial;

/* Rings lie in one another: the devices of one are not neighbours by number. Shuffled: in any order. */
static AX_BODY(product) {
  const trial *t = context;
  const int32_t devices = (int32_t)(t->rings * t->length);
  int32_t ids[64];
  uint64_t random = 1;
  for (int32_t k = 0; k < devices; k++) ids[k] = k % (int32_t)t->length * (int32_t)t->rings + k / (int32_t)t->length;
  for (int32_t k = devices; t->shuffled && k > 1; k--) {
    int32_t other = (int32_t)(ax_next_random(&random) % (uint64_t)k), held = ids[k - 1];
    ids[k - 1] = ids[other], ids[other] = held;
  }
  const ax_rings rings = {.type = ax_array_type(AX_S32, AX_DIMS(t->rings, t->length)), .ids = ids};
  const ax_ring_options options = {.columns = t->columns, .buffering = t->buffering};
  out[0] = t->scatter ? ax_matmul_reduce_scatter_kernel(in[0], in[1], "d", &rings, &options)
                      : ax_collective_matmul_kernel(in[0], in[1], "d", &rings, &options);
}

static AX_BODY(mapped) {
  const trial *t = context;
  const ax_mesh mesh = {.count = 1, .axis = {{.name = "d", .size = t->rings * t->length}}};
  ax_shard_map(&mesh, "d; d -> d", AX_CLOSURE(product, 2, 1, t), in, out);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* *seconds: that it took, the run that is recorded among it. */
static ax_check_report *check(const trial *t, const ax_check_options *options, double *seconds) {
  const int64_t devices = t->rings * t->length, x = t->scatter && !t->columns ? t->length : 1,
                rows = !t->scatter && t->columns ? t->length : 1, columns = t->scatter && t->columns ? t->length : 1;
  const ax_type types[] = {TEST_TYPE(AX_F32, devices * x, 1), TEST_TYPE(AX_F32, devices * rows, columns)};
  ax_program *program = test_trace(mapped, (void *)(uintptr_t)t, types, 2, 1);
  ax_check_report *report;
  double begin = now();
  TEST_OK(ax_check(program, options, &report));
  *seconds = now() - begin;
  ax_program_release(program);
  return report;
}

/* Seconds; printed: a row of a table. */
static double prove(const trial *t, bool print) {
  double seconds;
  ax_check_report *report = check(t, NULL, &seconds);
  const ax_check_kernel *kernel = &report->kernels[0];
  assert_int_equal(report->kernel_count, 1);
  if (report->verdict != AX_PROVED)
    fail_msg("%lld rings of %lld, buffering %lld: %s: %s", (long long)t->rings, (long long)t->length, (long long)t->buffering,
             kernel->how, kernel->finding_count > 0 ? kernel->findings[0].text : "");
  if (print)
    printf("| %lld of %lld | %u | %llu | %llu | %llu | %.4f |\n", (long long)t->rings, (long long)t->length, kernel->agents,
           (unsigned long long)kernel->acts, (unsigned long long)kernel->pairs, (unsigned long long)kernel->holds, seconds);
  ax_check_report_release(report);
  return seconds;
}

static const int64_t bufferings[] = {1, 2, 4, 8};

/* Of each of the four forms: gathered or scattered, columns or rows. The first is printed, a line for each length. */
static void test_proved(void **state) {
  (void)state;
  const bool print = getenv("AXLE_PROOFS") != NULL;
  double all = 0;
  int count = 0;
  for (int form = 0; form < 4; form++)
    for (int64_t length = 2; length <= 8; length++) {
      if (print && form == 0) printf("| %lld |", (long long)length);
      for (int64_t rings = 1; rings <= 3; rings++)
        for (int b = 0; b < 4; b++, count++) {
          double seconds = prove(
              &(trial){.rings = rings, .length = length, .buffering = bufferings[b], .scatter = form & 1, .columns = !(form & 2)},
              false);
          if (print && form == 0) printf(" %.4f |", seconds);
          all += seconds;
        }
      if (print && form == 0) printf("\n");
    }
  if (print) printf("%d kernels, %.2f seconds\n", count, all);
}

/* Rings in an order that turning them does not come back to: each act is held, on every device. */
static void test_any_order(void **state) {
  (void)state;
  const bool print = getenv("AXLE_PROOFS") != NULL;
  for (int64_t length = 2; length <= 8; length++)
    for (int form = 0; form < 4; form++)
      prove(&(trial){.rings = 2, .length = length, .buffering = 2, .scatter = form & 1, .columns = form & 2, .shuffled = true},
            print && form == 0);
}

/* How cost grows: from a ring of 16 to one of 64. */
static void test_growth(void **state) {
  (void)state;
  const bool print = getenv("AXLE_PROOFS") != NULL;
  for (int64_t length = 16; length <= (print ? 64 : 32); length *= 2)
    prove(&(trial){.rings = 1, .length = length, .columns = true, .buffering = 4}, print);
}

/* The states of small ones are gone through, and say the same. */
static void test_explored(void **state) {
  (void)state;
  for (int form = 0; form < 4; form++)
    for (int64_t length = 2; length <= 3; length++) {
      double seconds;
      ax_check_report *report =
          check(&(trial){.rings = 1, .length = length, .buffering = 2, .scatter = form & 1, .columns = form & 2},
                &(ax_check_options){.explore = true}, &seconds);
      assert_int_equal(report->verdict, AX_PROVED);
      assert_true(report->kernels[0].states > 0);
      assert_int_equal(report->kernels[0].outcomes, 1);
      ax_check_report_release(report);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_proved), cmocka_unit_test(test_any_order), cmocka_unit_test(test_growth),
                                     cmocka_unit_test(test_explored)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
