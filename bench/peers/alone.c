/* build/bench/alone sgemm|copy|copy_8_mib|copied|streamed|read|peak THREADS [BYTES]: what one device's work is measured against:
   oneDNN's sgemm 1024^3 called directly; memcpy of 256 MiB, or of the 8 that 8 devices have, or with `copied` of half of BYTES to
   the other half; `streamed`: the same, stored past the caches; `read`: all of BYTES read and added up; `peak`: 2^20
   multiplications and additions of f32 a thread, in registers. THREADS 0: as many as the library takes by itself, and one a
   core. */
#include <dnnl.h>
#include <omp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

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

typedef void copier(float *to, const float *from, int64_t elems);

static void copy_plainly(float *to, const float *from, int64_t elems) { memcpy(to, from, (size_t)elems * sizeof to[0]); }

/* Whole lines of the cache, which are not fetched before they are overwritten; both begin with one. */
static void copy_past_caches(float *to, const float *from, int64_t elems) {
  int64_t done = 0;
#ifdef __SSE2__
  for (; done + 16 <= elems; done += 16)
    for (int i = 0; i < 16; i += 4) _mm_stream_ps(to + done + i, _mm_load_ps(from + done + i));
  _mm_sfence();
#endif
  copy_plainly(to + done, from + done, elems - done);
}

static void copy_by(const buffers *x, int64_t count, copier *one) {
  for (int64_t i = 0; i < count; i++) {
#pragma omp parallel
    {
      int64_t parts = omp_get_num_threads(), part = omp_get_thread_num(), copied = x->copied, each = copied / parts / 16 * 16;
      int64_t from = each * part, until = part + 1 < parts ? from + each : copied;
      one(x->c + from, x->a + from, until - from);
    }
  }
}

static void copy(void *context, int64_t count) { copy_by(context, count, copy_plainly); }
static void stream(void *context, int64_t count) { copy_by(context, count, copy_past_caches); }

enum { lanes = 16, chains = 12, peak_operations = 1 << 20 };
typedef float wide __attribute__((vector_size(4 * lanes)));
typedef float wide_in_memory __attribute__((vector_size(4 * lanes), aligned(4), may_alias));
static volatile float seen; /* results are written here, so that the compiler keeps them */

static float lane_sum(wide x) {
  float sum = 0;
  for (int i = 0; i < lanes; i++) sum += x[i];
  return sum;
}

static void add_up(void *context, int64_t count) {
  const buffers *x = context;
  for (int64_t i = 0; i < count; i++) {
#pragma omp parallel
    {
      int64_t parts = omp_get_num_threads(), part = omp_get_thread_num(), n = x->copied / parts / (8 * lanes) * (8 * lanes);
      const float *a = x->a + part * n;
      wide sums[8] = {{0}};
      for (int64_t k = 0; k < n; k += 8 * lanes)
        for (int j = 0; j < 8; j++) sums[j] += *(const wide_in_memory *)(a + k + j * lanes);
      float sum = 0;
      for (int j = 0; j < 8; j++) sum += lane_sum(sums[j]);
      seen = sum;
    }
  }
}

static void compute(void *context, int64_t count) {
  (void)context;
  for (int64_t i = 0; i < count; i++) {
#pragma omp parallel
    {
      wide x[chains], by = (wide){0} + 0.5f + seen * 0, more = by + 1;
      for (int j = 0; j < chains; j++) x[j] = by + (float)j;
      for (int64_t k = 0; k < peak_operations / (2 * lanes * chains); k++)
#pragma GCC unroll 12
        for (int j = 0; j < chains; j++) x[j] = x[j] * by + more;
      float sum = 0;
      for (int j = 0; j < chains; j++) sum += lane_sum(x[j]);
      seen = sum;
    }
  }
}

int main(int argc, char **argv) {
  if (argc != 3 && argc != 4) return 2;
  int threads = atoi(argv[2]);
  if (threads > 0) omp_set_num_threads(threads);
  if (argc == 4) {
    int64_t bytes = atoll(argv[3]), half = bytes / 8;
    buffers x = {ones(2 * half + 16), NULL, NULL, 2 * half};
    bool streams = strcmp(argv[1], "streamed") == 0, copies = streams || strcmp(argv[1], "copied") == 0;
    if (copies) x.c = x.a + half, x.copied = half;
    bench_serve(streams ? stream : copies ? copy : add_up, &x, 1);
  }
  if (strcmp(argv[1], "peak") == 0) bench_serve(compute, NULL, 1);
  bool multiplies = strcmp(argv[1], "sgemm") == 0;
  int64_t elems = multiplies ? 1024 * 1024 : strcmp(argv[1], "copy") == 0 ? 64 << 20 : 2 << 20;
  buffers x = {ones(elems), ones(multiplies ? elems : 16), ones(elems), elems};
  bench_serve(multiplies ? multiply : copy, &x, 1);
}
