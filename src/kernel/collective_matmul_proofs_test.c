/* The kernels on rings, proved: rings of 2 to 8 devices, buffering of 1 to 8, one to three rings at once. AXLE_PROOFS=1 prints the table of docs/checker.md. */
#include "axle/axle.h"
#include "axle/check.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/cmocka.h"
#include "support/tensor.h"

typedef struct trial {
  int64_t rings, length, buffering;
  bool scatter, columns;
} trial;

/* Rings lie in one another: the devices of one are not neighbours by number. */
static AX_BODY(product) {
  const trial *t = context;
  int32_t ids[24];
  for (int32_t r = 0; r < t->rings; r++)
    for (int32_t i = 0; i < t->length; i++) ids[r * t->length + i] = i * (int32_t)t->rings + r;
  const ax_rings rings = {.type = ax_array_type(AX_S32, 2, (int64_t[]){t->rings, t->length}), .ids = ids};
  const ax_ring_options options = {.columns = t->columns, .buffering = t->buffering};
  out[0] = t->scatter ? ax_matmul_reduce_scatter_kernel(in[0], in[1], "d", &rings, &options) : ax_collective_matmul_kernel(in[0], in[1], "d", &rings, &options);
}

static AX_BODY(mapped) {
  const trial *t = context;
  const ax_mesh mesh = {.count = 1, .axis = {{.name = "d", .size = t->rings * t->length}}};
  ax_shard_map(&mesh, "d; d -> d", AX_CLOSURE(product, 2, 1, t), in, out);
}

static ax_check_report *check(const trial *t, const ax_check_options *options) {
  const int64_t devices = t->rings * t->length, x = t->scatter && !t->columns ? t->length : 1, rows = !t->scatter && t->columns ? t->length : 1,
                columns = t->scatter && t->columns ? t->length : 1;
  const ax_type types[] = {TEST_TYPE(AX_F32, devices * x, 1), TEST_TYPE(AX_F32, devices * rows, columns)};
  ax_program *program = test_trace(mapped, (void *)(uintptr_t)t, types, 2, 1);
  ax_check_report *report;
  TEST_OK(ax_check(program, options, &report));
  ax_program_release(program);
  return report;
}

static double prove(const trial *t, bool print) {
  ax_check_report *report = check(t, NULL);
  const ax_check_kernel *kernel = &report->kernels[0];
  assert_int_equal(report->kernel_count, 1);
  if (report->verdict != AX_PROVED)
    fail_msg("%lld rings of %lld, buffering %lld: %s: %s", (long long)t->rings, (long long)t->length, (long long)t->buffering, kernel->how,
             kernel->finding_count > 0 ? kernel->findings[0].text : "");
  double seconds = kernel->seconds;
  if (print)
    printf("| %lld | %lld | %lld | %u | %llu | %llu | %llu | %.2f | %s |\n", (long long)t->length, (long long)t->buffering, (long long)t->rings, kernel->agents,
           (unsigned long long)kernel->acts, (unsigned long long)kernel->pairs, (unsigned long long)kernel->holds, seconds, kernel->how);
  fflush(stdout);
  ax_check_report_release(report);
  return seconds;
}

static void test_proved(void **state) {
  (void)state;
  bool print = getenv("AXLE_PROOFS") != NULL;
  static const int64_t buffering[] = {1, 2, 4, 8};
  double all = 0;
  for (int64_t length = 2; length <= 8; length++)
    for (int b = 0; b < 4; b++)
      for (int64_t rings = 1; rings <= 3; rings++) all += prove(&(trial){rings, length, buffering[b], false, true}, print);
  if (print) printf("%.1f seconds\n", all);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_proved)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
