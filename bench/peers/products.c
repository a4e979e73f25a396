/* build/bench/products [SECONDS]: what one thread makes of products of many shapes: ours, and those libraries that this machine
   has, each loaded by name and asked by turns, in multiplications and additions a nanosecond (GF/s); the table of
   docs/performance.md. Times are the least of those in SECONDS (0.3) a case. OPENBLAS_CORETYPE says what OpenBLAS takes the
   processor for, where it does not know it. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../serve.h"
#include "product/product.h"

typedef struct shape {
  ax_dtype dtype;
  int64_t m, n, k;
  bool a_turned, b_turned;
  int64_t batch;
} shape;

static const shape shapes[] = {
    {AX_F32, 8, 8, 8, 0, 0, 512},        {AX_F32, 13, 19, 17, 0, 0, 256},     {AX_F32, 32, 32, 32, 0, 0, 64},
    {AX_F32, 64, 64, 64, 0, 0, 1},       {AX_F32, 256, 256, 256, 0, 0, 1},    {AX_F32, 512, 512, 512, 0, 0, 1},
    {AX_F32, 1000, 1000, 1000, 0, 0, 1}, {AX_F32, 1024, 1024, 1024, 1, 0, 1}, {AX_F32, 1024, 1024, 1024, 0, 1, 1},
    {AX_F32, 16, 1024, 1024, 0, 0, 1},   {AX_F32, 10000, 10, 64, 0, 0, 1},    {AX_F32, 100000, 4, 32, 0, 0, 1},
    {AX_F64, 8, 8, 8, 0, 0, 512},        {AX_F64, 32, 32, 32, 0, 0, 64},      {AX_F64, 512, 512, 512, 0, 0, 1},
    {AX_F64, 1000, 1000, 1000, 0, 0, 1}, {AX_BF16, 64, 64, 64, 0, 0, 1},      {AX_BF16, 512, 512, 512, 0, 0, 1},
    {AX_BF16, 512, 512, 512, 0, 1, 1},   {AX_BF16, 512, 512, 512, 1, 0, 1},   {AX_BF16, 1024, 1024, 1024, 0, 0, 1},
    {AX_BF16, 2048, 2048, 2048, 0, 0, 1}, {AX_BF16, 512, 4096, 1024, 0, 0, 1}, {AX_BF16, 300, 500, 700, 0, 0, 1},
    {AX_BF16, 32, 1024, 1024, 0, 0, 1},  {AX_F16, 512, 512, 512, 0, 0, 1},    {AX_S32, 512, 512, 512, 0, 0, 1},
    {AX_S8, 512, 512, 512, 0, 0, 1},     {AX_S8, 1024, 1024, 1024, 0, 0, 1},
};

/* --- Libraries --- */

typedef int dnnl_product(char, char, int64_t, int64_t, int64_t, float, const float *, int64_t, const float *, int64_t, float,
                         float *, int64_t);
typedef void blas_f32(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
typedef void blas_f64(int, int, int, int, int, int, double, const double *, int, const double *, int, double, double *, int);
typedef void small_product(const void *, const void *, void *);
typedef small_product *make_small(int, int, int, const int *, const int *, const int *, const void *, const void *, const int *,
                                  const int *);

typedef struct library {
  const char *name, *file;
  void *handle, *f32, *f64; /* functions; NULL: none */
} library;

enum { oneDNN, OpenBLAS, BLIS, LIBXSMM, LIBRARIES };

static void load(library *l, const char *f32, const char *f64) {
  l->handle = dlopen(l->file, RTLD_NOW | RTLD_LOCAL);
  if (l->handle == NULL) return;
  l->f32 = dlsym(l->handle, f32);
  l->f64 = f64 != NULL ? dlsym(l->handle, f64) : NULL;
}

typedef struct running {
  const shape *shape;
  char *a, *b, *c, *work;
  ax_product product;
  ax_product_way way;
  small_product *small;
} running;

static void ours(const running *r, const library *l, int64_t a, int64_t b, int64_t c) {
  (void)l;
  ax_product_run(&r->product, &r->way, r->a + a, r->b + b, r->c + c, r->work);
}

static void dnnl(const running *r, const library *l, int64_t a, int64_t b, int64_t c) {
  const shape *s = r->shape;
  dnnl_product *product = (dnnl_product *)(uintptr_t)l->f32;
  product(s->a_turned ? 'T' : 'N', s->b_turned ? 'T' : 'N', s->m, s->n, s->k, 1, (float *)(r->a + a), s->a_turned ? s->m : s->k,
          (float *)(r->b + b), s->b_turned ? s->k : s->n, 0, (float *)(r->c + c), s->n);
}

static void blas(const running *r, const library *l, int64_t a, int64_t b, int64_t c) {
  enum { rows = 101, plain = 111, turned = 112 };
  const shape *s = r->shape;
  const int m = (int)s->m, n = (int)s->n, k = (int)s->k, ta = s->a_turned ? turned : plain, tb = s->b_turned ? turned : plain;
  const int lda = s->a_turned ? m : k, ldb = s->b_turned ? k : n;
  if (s->dtype == AX_F32)
    ((blas_f32 *)(uintptr_t)l->f32)(rows, ta, tb, m, n, k, 1, (float *)(r->a + a), lda, (float *)(r->b + b), ldb, 0,
                                    (float *)(r->c + c), n);
  else
    ((blas_f64 *)(uintptr_t)l->f64)(rows, ta, tb, m, n, k, 1, (double *)(r->a + a), lda, (double *)(r->b + b), ldb, 0,
                                    (double *)(r->c + c), n);
}

/* Columns by columns, so that b' a' is made. */
static void small(const running *r, const library *l, int64_t a, int64_t b, int64_t c) {
  (void)l;
  r->small(r->b + b, r->a + a, r->c + c);
}

static bool make_kernel(running *r, const library *l) {
  const shape *s = r->shape;
  const int m = (int)s->n, n = (int)s->m, k = (int)s->k, none = 0;
  const float zero = 0;
  const double zero_f64 = 0;
  make_small *make = (make_small *)(uintptr_t)(s->dtype == AX_F32 ? l->f32 : l->f64);
  if (s->a_turned || s->b_turned || m > 64 || n > 64 || k > 64) return false;
  r->small = make(m, n, k, NULL, NULL, NULL, NULL, s->dtype == AX_F32 ? (const void *)&zero : &zero_f64, &none, NULL);
  return r->small != NULL;
}

/* --- Measuring --- */

typedef void one_product(const running *r, const library *l, int64_t a, int64_t b, int64_t c);

static double seconds_of(const running *r, const library *l, one_product *product) {
  const shape *s = r->shape;
  const int64_t bytes = (int64_t)ax_dtype_bytes(s->dtype), made = r->way.kernels->result_bytes;
  double begin = bench_seconds();
  for (int64_t i = 0; i < s->batch; i++) product(r, l, i * s->m * s->k * bytes, i * s->k * s->n * bytes, i * s->m * s->n * made);
  return bench_seconds() - begin;
}

static void *memory(int64_t bytes) {
  void *x = aligned_alloc(64, (size_t)(bytes + 4096) / 64 * 64);
  return x != NULL ? memset(x, 0, (size_t)bytes) : (perror("aligned_alloc"), exit(1), NULL);
}

static void measure(const shape *s, library *libraries, double seconds) {
  running r = {.shape = s,
               .a = memory(s->batch * s->m * s->k * 8),
               .b = memory(s->batch * s->k * s->n * 8),
               .c = memory(s->batch * s->m * s->n * 8)};
  r.product = (ax_product){.dtype = s->dtype,
                           .m = s->m,
                           .n = s->n,
                           .k = s->k,
                           .a_row = s->a_turned ? 1 : s->k,
                           .a_column = s->a_turned ? s->m : 1,
                           .b_row = s->b_turned ? 1 : s->n,
                           .b_column = s->b_turned ? s->k : 1,
                           .c_row = s->n};
  r.way = ax_product_choose(&r.product, 64);
  r.work = memory((int64_t)r.way.work_bytes);
  static one_product *const asked[] = {dnnl, blas, blas, small};
  double best[1 + LIBRARIES], flops = 2e-9 * (double)s->m * (double)s->n * (double)s->k * (double)s->batch;
  bool there[1 + LIBRARIES] = {true};
  for (int i = 0; i < LIBRARIES; i++)
    there[i + 1] = (s->dtype == AX_F32 ? libraries[i].f32 : s->dtype == AX_F64 ? libraries[i].f64 : NULL) != NULL;
  if (there[1 + LIBXSMM]) there[1 + LIBXSMM] = make_kernel(&r, &libraries[LIBXSMM]);
  for (int i = 0; i <= LIBRARIES; i++) best[i] = 1e9;
  for (double end = bench_seconds() + seconds; bench_seconds() < end;)
    for (int i = 0; i <= LIBRARIES; i++) {
      double took = there[i] ? seconds_of(&r, i > 0 ? &libraries[i - 1] : NULL, i > 0 ? asked[i - 1] : ours) : 1e9;
      if (took < best[i]) best[i] = took;
    }
  printf("| %s %lld x %lld x %lld%s%s%s |", ax_dtype_name(s->dtype), (long long)s->m, (long long)s->k, (long long)s->n,
         s->a_turned ? ", left transposed" : "", s->b_turned ? ", right transposed" : "", s->batch > 1 ? ", many" : "");
  for (int i = 0; i <= LIBRARIES; i++) there[i] ? printf(" %.0f |", flops / best[i]) : printf(" |");
  puts("");
  fflush(stdout);
  free(r.a), free(r.b), free(r.c), free(r.work);
}

int main(int argc, char **argv) {
  library libraries[LIBRARIES] = {{.name = "oneDNN", .file = "libdnnl.so.2"}, {.name = "OpenBLAS", .file = "libopenblas.so.0"},
                                  {.name = "BLIS", .file = "libblis.so.4"}, {.name = "libxsmm", .file = "libxsmm.so.1"}};
  setenv("OMP_NUM_THREADS", "1", 1);
  setenv("OPENBLAS_NUM_THREADS", "1", 1);
  setenv("BLIS_NUM_THREADS", "1", 1);
  load(&libraries[oneDNN], "dnnl_sgemm", NULL);
  load(&libraries[OpenBLAS], "cblas_sgemm", "cblas_dgemm");
  load(&libraries[BLIS], "cblas_sgemm", "cblas_dgemm");
  load(&libraries[LIBXSMM], "libxsmm_smmdispatch", "libxsmm_dmmdispatch");
  printf("| product | ours |");
  for (int i = 0; i < LIBRARIES; i++) printf(" %s%s |", libraries[i].name, libraries[i].handle == NULL ? " (not here)" : "");
  printf("\n|---|---|---|---|---|---|\n");
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) measure(&shapes[i], libraries, argc > 1 ? atof(argv[1]) : 0.3);
  return 0;
}
