/* Instructions that compute: kernels, products, and the primitives' own reference code; whole or in parts. */
#include "exec/compute.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include <cblas.h>
#include <dnnl.h>

/* Where OpenBLAS comes with threads of its own (libopenblas0-pthread), it cuts a product by how many there are: other bits on other
   machines, and threads that fight with ours. Serial builds ignore this. */
void ax_compute_start(void) { openblas_set_num_threads(1); }

static ax_status status_of(dnnl_status_t status) {
  return status == dnnl_success ? AX_OK : status == dnnl_out_of_memory ? AX_OUT_OF_MEMORY : AX_INTERNAL;
}

typedef struct tile { /* of a product's result */
  int64_t row, rows, column, columns;
} tile;

/* oneDNN makes its code at the first product of a process, and does not look whether there is memory for it. */
static ax_status library_product(const ax_gemm *g, const char *a, const char *b, char *c, tile t) {
  static atomic_bool started;
  enum { to_start = 48 << 20 };
  bool first = !atomic_load_explicit(&started, memory_order_relaxed);
  if (first) AX_TRY(ax_memory_for_library(to_start));
  AX_TRY(status_of(dnnl_sgemm(g->transpose_a ? 'T' : 'N', g->transpose_b ? 'T' : 'N', t.rows, t.columns, g->k, 1,
                              (const float *)(const void *)a, g->lda, (const float *)(const void *)b, g->ldb,
                              (float)g->accumulate, (float *)(void *)c, g->ldc)));
  if (first) atomic_store_explicit(&started, true, memory_order_relaxed);
  return AX_OK;
}

/* OpenBLAS that is built without threads hands out its working memory without a lock: two products at once would be in the same memory. */
static void double_product(const ax_gemm *g, const double *a, const double *b, double *c, tile t) {
  static pthread_mutex_t working_memory = PTHREAD_MUTEX_INITIALIZER;
  const bool alone = openblas_get_parallel() == OPENBLAS_SEQUENTIAL;
  if (alone) pthread_mutex_lock(&working_memory);
  cblas_dgemm(CblasRowMajor, g->transpose_a ? CblasTrans : CblasNoTrans, g->transpose_b ? CblasTrans : CblasNoTrans, (int)t.rows, (int)t.columns,
              (int)g->k, 1, a, (int)g->lda, b, (int)g->ldb, g->accumulate, c, (int)g->ldc);
  if (alone) pthread_mutex_unlock(&working_memory);
}

static ax_status product_tile(const ax_gemm *g, const char *a, const char *b, char *c, tile t) {
  int64_t item = (int64_t)ax_dtype_bytes(g->dtype);
  a += t.row * (g->transpose_a ? 1 : g->lda) * item;
  b += t.column * (g->transpose_b ? g->ldb : 1) * item;
  c += (t.row * g->ldc + t.column) * item;
  if (g->dtype == AX_F32) return library_product(g, a, b, c, t);
  double_product(g, (const double *)(const void *)a, (const double *)(const void *)b, (double *)(void *)c, t);
  return AX_OK;
}

/* A tile of product `i` of the batch. */
static ax_status product(const ax_frame *frame, const ax_instr *instr, int64_t i, tile t) {
  const ax_gemm *g = instr->gemm;
  int64_t item = (int64_t)ax_dtype_bytes(g->dtype), at = g->a_offset, bt = g->b_offset, ct = g->c_offset;
  for (uint32_t d = g->batch_rank; d-- > 0; i /= g->batch[d]) {
    int64_t index = i % g->batch[d];
    at += index * g->a_stride[d];
    bt += index * g->b_stride[d];
    ct += index * g->c_stride[d];
  }
  const char *a = ax_address(frame, &instr->refs[0]), *b = ax_address(frame, &instr->refs[1]);
  return product_tile(g, a + at * item, b + bt * item, (char *)ax_address(frame, &instr->refs[2]) + ct * item, t);
}

/* --- The parts of a product --- */

/* Multiply-adds: about 100 us of them. */
static const double part_work = 1 << 23;
enum { most_parts = 256, most_tiles = 64, tile_edge = 16 };

typedef struct tiling {
  int64_t rows, columns; /* tiles in each product ... */
  int64_t groups;        /* ... or, where that is 1, groups of products of the batch; in both cases rows * columns * groups parts */
} tiling;

/* What a library does for an element of a tile besides its multiply-adds: it packs the rows and the columns that meet in the tile. */
static double packing(const ax_gemm *g, int64_t rows, int64_t columns) {
  return (double)rows / (double)g->m + (double)columns / (double)g->n;
}

/* Halves the larger side until there are enough tiles, or packing would cost more than a tenth or so of the product. */
static tiling tile_product(const ax_gemm *g, double wanted) {
  tiling t = {1, 1, 1};
  double most = 1.25 * packing(g, 1, 1);
  if (most < 1.0 / 85) most = 1.0 / 85;
  while ((double)(t.rows * t.columns) < wanted) {
    double by_rows = packing(g, 2 * t.rows, t.columns), by_columns = packing(g, t.rows, 2 * t.columns);
    if ((by_rows < by_columns ? by_rows : by_columns) > most) break;
    *(by_rows < by_columns ? &t.rows : &t.columns) *= 2;
  }
  return t;
}

/* By the product's shape alone. */
static tiling tiling_of(const ax_gemm *g) {
  double count = (double)ax_dims_elems(g->batch_rank, g->batch);
  double work = (double)g->m * (double)g->n * (double)g->k * (g->dtype == AX_F64 ? 2 : 1), wanted = work * count / part_work;
  if (wanted < 2) return (tiling){1, 1, 1};
  if (count >= most_tiles || work < 2 * part_work) {
    if (wanted > most_parts) wanted = most_parts;
    return (tiling){1, 1, (int64_t)(wanted < count ? wanted : count)};
  }
  tiling t = tile_product(g, (wanted < most_tiles ? wanted : most_tiles) / count);
  t.groups = (int64_t)count;
  return t;
}

uint32_t ax_gemm_parts(const ax_gemm *g) {
  tiling t = tiling_of(g);
  return (uint32_t)(t.rows * t.columns * t.groups);
}

/* Where the index-th of `count` tiles begins. */
static int64_t tile_begin(int64_t extent, int64_t index, int64_t count) {
  return index == count ? extent : extent * index / count / tile_edge * tile_edge;
}

static ax_status gemm_part(const ax_frame *frame, const ax_instr *instr, uint32_t part) {
  const ax_gemm *g = instr->gemm;
  tiling t = tiling_of(g);
  int64_t count = ax_dims_elems(g->batch_rank, g->batch), row = part / t.columns % t.rows, column = part % t.columns;
  int64_t group = part / (t.rows * t.columns);
  tile it = {.row = tile_begin(g->m, row, t.rows), .column = tile_begin(g->n, column, t.columns)};
  it.rows = tile_begin(g->m, row + 1, t.rows) - it.row;
  it.columns = tile_begin(g->n, column + 1, t.columns) - it.column;
  ax_status status = AX_OK;
  for (int64_t i = count * group / t.groups; status == AX_OK && i < count * (group + 1) / t.groups; i++)
    status = product(frame, instr, i, it);
  return status;
}

/* --- Routines --- */

enum { most_refs = 8 }; /* that stand on the stack */

static ax_status routine_part(const ax_frame *frame, const ax_instr *instr, uint32_t part) {
  void *few[most_refs] = {NULL}, **memory = few;
  if (instr->ref_count > most_refs && (memory = ax_alloc(instr->ref_count * sizeof memory[0])) == NULL) return AX_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < instr->ref_count; i++) memory[i] = ax_address(frame, &instr->refs[i]);
  ax_status status = instr->routine->run(instr->routine->data, memory, part);
  if (memory != few) ax_free(memory);
  return status;
}

/* --- Instructions --- */

ax_status ax_compute_eval(const ax_executable *e, const ax_frame *frame, const ax_instr *instr, uint32_t f) {
  const ax_eqn *eqn = instr->eqn;
  uint32_t count = instr->ref_count;
  ax_tensor *tensors = ax_alloc(count * sizeof tensors[0]);
  ax_tensor **pointers = ax_alloc(count * sizeof pointers[0]);
  int64_t device = f;
  ax_status status = tensors == NULL || pointers == NULL ? ax_out_of_memory(count * sizeof tensors[0]) : AX_OK;
  for (uint32_t i = 0; status == AX_OK && i < count; i++) {
    uint32_t id = i < eqn->in_count ? eqn->in[i] : eqn->out + (i - eqn->in_count);
    const ax_type *type = &instr->program->types[id];
    tensors[i] = (ax_tensor){.dtype = type->dtype, .rank = type->rank, .data = ax_address(frame, &instr->refs[i])};
    memcpy(tensors[i].dims, type->dims, sizeof type->dims);
    pointers[i] = &tensors[i];
  }
  ax_eval_args args = {.eqn = eqn, .axes = &e->plan->mesh, .lanes = 1, .device = &device, .in = pointers,
                       .out = pointers + eqn->in_count, .hooks = &e->runtime->hooks, .callback = instr->call.callback,
                       .each = ~(ax_axis_set)0}; /* who is not to make it steps over it */
  if (status == AX_OK) status = eqn->prim->eval(&args);
  ax_free(tensors);
  ax_free(pointers);
  return status;
}

ax_status ax_compute_part(const ax_frame *frame, const ax_instr *instr, uint32_t part) {
  if (instr->kind == AX_INSTR_GEMM) return gemm_part(frame, instr, part);
  if (instr->kind == AX_INSTR_ROUTINE) return routine_part(frame, instr, part);
  int64_t extent = instr->kernel.extent, parts = instr->parts;
  ax_compute_range(frame, instr, extent * part / parts, extent * (part + 1) / parts);
  return AX_OK;
}

ax_status ax_compute(const ax_frame *frame, const ax_instr *instr) {
  ax_status status = AX_OK;
  if (instr->kind == AX_INSTR_KERNEL)
    ax_compute_range(frame, instr, 0, instr->kernel.extent);
  else
    for (uint32_t part = 0; status == AX_OK && part < instr->parts; part++) status = ax_compute_part(frame, instr, part);
  return status;
}

ax_status ax_compute_failed(const ax_instr *instr, ax_status status) {
  const ax_gemm *g = instr->gemm;
  if (status == AX_OK) return AX_OK;
  if (instr->kind == AX_INSTR_ROUTINE) return ax_error(status, "%s found no memory to work in", instr->eqn->prim->name);
  assert(instr->kind == AX_INSTR_GEMM);
  return ax_error(status, "a product %s[%lld,%lld] x [%lld,%lld] failed: %s", ax_dtype_name(g->dtype), (long long)g->m,
                  (long long)g->k, (long long)g->k, (long long)g->n,
                  status == AX_OUT_OF_MEMORY ? "the library found no memory for it" : "the library refused it");
}
