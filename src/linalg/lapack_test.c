/* OpenBLAS, called by many threads at once: each result has the bits that it has alone. */
#include "linalg/lapack.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "machine/features.h"
#include "support/cmocka.h"
#include "support/tensor.h"

enum { order = 96, columns = 40, threads = 8, rounds = 60 };

typedef struct system { /* a, column by column, is factored; then a triangle of it solves for b */
  double a[order * order], b[order * columns];
  int pivots[order], info;
} system_of;

static void fill(system_of *s, unsigned seed) {
  uint32_t state = seed * 2654435761u + 1;
  for (size_t i = 0; i < AX_COUNT(s->a) + AX_COUNT(s->b); i++) {
    state = state * 1664525u + 1013904223u;
    const double x = (double)(state >> 8) / (1 << 24) - 0.5;
    if (i < AX_COUNT(s->a)) s->a[i] = x + (i % (order + 1) == 0 ? order : 0);
    else s->b[i - AX_COUNT(s->a)] = x;
  }
}

static void solve(const ax_lapack *lapack, system_of *s) {
  const int n = order, m = columns;
  const double one = 1;
  lapack->getrf(&n, &n, s->a, &n, s->pivots, &s->info);
  lapack->trsm("L", "L", "N", "U", &n, &m, &one, s->a, &n, s->b, &n, 1, 1, 1, 1);
  lapack->trsm("L", "U", "N", "N", &n, &m, &one, s->a, &n, s->b, &n, 1, 1, 1, 1);
}

typedef struct worker {
  pthread_t thread;
  const ax_lapack *lapack;
  const system_of *expected; /* of the worker's seed, alone */
  unsigned seed, wrong;
} worker;

static void *work(void *context) {
  worker *w = context;
  system_of *s = malloc(sizeof *s);
  for (int round = 0; s != NULL && round < rounds; round++) {
    fill(s, w->seed);
    solve(w->lapack, s);
    w->wrong += memcmp(s->a, w->expected->a, sizeof s->a) != 0 || memcmp(s->b, w->expected->b, sizeof s->b) != 0;
  }
  w->wrong += s == NULL;
  free(s);
  return NULL;
}

static void threads_at_once(void **state) {
  (void)state;
  static system_of expected[threads];
  worker workers[threads] = {0};
  const ax_lapack *lapack;
  TEST_OK(ax_lapack_of(AX_F64, &lapack));
  for (unsigned t = 0; t < threads; t++) {
    fill(&expected[t], t);
    solve(lapack, &expected[t]);
    workers[t] = (worker){.lapack = lapack, .expected = &expected[t], .seed = t};
  }
  for (unsigned t = 0; t < threads; t++) assert_int_equal(pthread_create(&workers[t].thread, NULL, work, &workers[t]), 0);
  for (unsigned t = 0; t < threads; t++) {
    pthread_join(workers[t].thread, NULL);
    assert_int_equal(workers[t].wrong, 0);
  }
}

/* What the factors are factors of. */
static void factors_multiply_to_the_matrix(void **state) {
  (void)state;
  static system_of s, original;
  const ax_lapack *lapack;
  TEST_OK(ax_lapack_of(AX_F64, &lapack));
  fill(&s, 1);
  original = s;
  solve(lapack, &s);
  assert_int_equal(s.info, 0);
  for (int j = 0; j < columns; j++)
    for (int i = 0; i < order; i++) {
      double sum = 0; /* no rows were exchanged: the diagonal is the largest of each column */
      for (int k = 0; k < order; k++) sum += original.a[i + k * order] * s.b[k + j * order];
      assert_int_equal(s.pivots[i], i + 1);
      assert_true(sum - original.b[i + j * order] < 1e-12 && original.b[i + j * order] - sum < 1e-12);
    }
}

static void processors_that_openblas_does_not_know(void **state) {
  (void)state;
  assert_string_equal(ax_openblas_core("Prescott", true, true), "SkylakeX");
  assert_string_equal(ax_openblas_core("Nehalem", true, false), "Haswell");
  assert_null(ax_openblas_core("Prescott", false, false));
  assert_null(ax_openblas_core("Zen", true, true));
  assert_null(ax_openblas_core("Haswell", true, true));
  const ax_lapack *lapack;
  TEST_OK(ax_lapack_of(AX_F64, &lapack));
  Dl_info library;
  assert_true(dladdr((const void *)(uintptr_t)lapack->getrf, &library) != 0);
  void *opened = dlopen(library.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  assert_non_null(opened);
  char *(*core)(void) = NULL;
  void *found = dlsym(opened, "openblas_get_corename");
  memcpy(&core, &found, sizeof found);
  if (getenv("OPENBLAS_CORETYPE") == NULL)
    assert_null(ax_openblas_core(core(), ax_machine_has(AX_FEATURE_AVX2), ax_machine_has(AX_FEATURE_AVX512)));
  dlclose(opened);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(threads_at_once), cmocka_unit_test(factors_multiply_to_the_matrix),
                                     cmocka_unit_test(processors_that_openblas_does_not_know)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
