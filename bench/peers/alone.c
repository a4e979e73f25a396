/* build/bench/alone sgemm|copy|copy_8_mib THREADS: what one device's work is raced against: oneDNN's sgemm 1024^3 called directly;
   memcpy of 256 MiB, or of the 8 that 8 devices have. THREADS 0: as many as the library takes by itself, and one a core. What the
   machine can do at most is in its description (axle devices), which bounds are made of. */
#include <dnnl.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../serve.h"

typedef struct buffers {
  float *a, *b, *c;
  int64_t copied; /* elements */
} buffers;

static float *ones(int64_t elems) {
  float *x = aligned_alloc(64, (size_t)elems * sizeof x[0]);
  for (int64_t i = 0; x != NULL && i < elems; i++) x[i] = 1;
  return x != NULL ? x : (perror("aligned_alloc"), exit(1), NULL);
}

static void multiply(void *context, int64_t count) {
  const buffers *x = context;
  const int64_t n = 1024;
  for (int64_t i = 0; i < count; i++) dnnl_sgemm('N', 'N', n, n, n, 1, x->a, n, x->b, n, 0, x->c, n);
}

static void copy(void *context, int64_t count) {
  const buffers *x = context;
  for (int64_t i = 0; i < count; i++) {
#pragma omp parallel
    {
      int64_t parts = omp_get_num_threads(), part = omp_get_thread_num(), copied = x->copied, each = copied / parts / 16 * 16;
      int64_t from = each * part, until = part + 1 < parts ? from + each : copied;
      memcpy(x->c + from, x->a + from, (size_t)(until - from) * sizeof x->a[0]);
    }
  }
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  int threads = atoi(argv[2]);
  if (threads > 0) omp_set_num_threads(threads);
  int multiplies = strcmp(argv[1], "sgemm") == 0;
  int64_t elems = multiplies ? 1024 * 1024 : strcmp(argv[1], "copy") == 0 ? 64 << 20 : 2 << 20;
  buffers x = {ones(elems), ones(multiplies ? elems : 16), ones(elems), elems};
  bench_serve(multiplies ? multiply : copy, &x, 1);
}
