/* Instructions that compute: kernels, products, and the primitives' own reference code; whole or in parts. */
#include "exec/compute.h"

#include <assert.h>
#include <string.h>

typedef struct tile { /* of a product's result */
  int64_t row, rows, column, columns;
} tile;

/* Larger than what caches near the cores hold. */
static bool is_far(const ax_gemm *g) {
  const double far_bytes = 2 << 20;
  return (double)g->m * (double)g->k * (double)ax_dims_elems(g->batch_rank, g->batch) * (double)ax_dtype_bytes(g->dtype) > far_bytes;
}

ax_product ax_gemm_product(const ax_gemm *g, int64_t rows, int64_t columns) {
  return (ax_product){.dtype = g->dtype, .m = rows, .n = columns, .k = g->k,
                      .a_row = g->transpose_a ? 1 : g->lda, .a_column = g->transpose_a ? g->lda : 1,
                      .b_row = g->transpose_b ? 1 : g->ldb, .b_column = g->transpose_b ? g->ldb : 1,
                      .c_row = g->ldc, .add = g->accumulate, .far = is_far(g)};
}

void ax_gemm_begin(const ax_gemm *g, int64_t index, int64_t *at) {
  at[0] = g->a_offset;
  at[1] = g->b_offset;
  at[2] = g->c_offset;
  for (uint32_t d = g->batch_rank; d-- > 0; index /= g->batch[d]) {
    int64_t i = d > 0 ? index % g->batch[d] : index;
    at[0] += i * g->a_stride[d];
    at[1] += i * g->b_stride[d];
    at[2] += i * g->c_stride[d];
  }
}

/* A tile of each of some products of the batch. */
static ax_status product_tiles(const ax_frame *frame, const ax_instr *instr, int64_t begin, int64_t end, tile t) {
  const ax_gemm *g = instr->gemm;
  const ax_product p = ax_gemm_product(g, t.rows, t.columns);
  const ax_product_way way = ax_product_choose(&p, AX_REGISTER_BYTES);
  void *work = NULL;
  if (way.work_bytes > 0 && (work = ax_alloc(way.work_bytes)) == NULL) return AX_OUT_OF_MEMORY;
  const char *a = ax_address(frame, &instr->refs[0]), *b = ax_address(frame, &instr->refs[1]);
  char *c = ax_address(frame, &instr->refs[2]);
  for (int64_t i = begin; i < end; i++) {
    int64_t at[3];
    ax_gemm_begin(g, i, at);
    ax_product_run(&p, &way, a + (at[0] + t.row * p.a_row) * way.kernels->number_bytes, b + (at[1] + t.column * p.b_column) * way.kernels->number_bytes,
                   c + (at[2] + t.row * p.c_row + t.column) * way.kernels->result_bytes, work);
  }
  ax_free(work);
  return AX_OK;
}

/* --- The parts of a product --- */

/* Multiply-adds of f32: some tens of microseconds of them; and as what reading or writing a byte counts. */
static const double part_work = 1 << 21, byte_work = 2;
enum { most_parts = 256, most_tiles = 64, tile_edge = 32 };
enum { few_rows = 28, short_run = 256, long_run = 512 }; /* columns of b, that few rows read where they lie */

typedef struct tiling {
  int64_t rows, columns; /* tiles in each product ... */
  int64_t groups;        /* ... or, where that is 1, groups of products of the batch; in both cases rows * columns * groups parts */
} tiling;

/* What a library does for an element of a tile besides its multiply-adds: it packs the rows and the columns that meet in the tile. */
static double packing(const ax_gemm *g, int64_t rows, int64_t columns) {
  return (double)rows / (double)g->m + (double)columns / (double)g->n;
}

/* Columns of a tile: of few rows so many that memory is read in long runs. */
static int64_t least_columns(const ax_gemm *g) {
  if (g->m > few_rows) return tile_edge;
  int64_t eighth = g->n / 8;
  return eighth < short_run ? short_run : eighth > long_run ? long_run : eighth;
}

/* Halves the larger side until there are enough tiles, or packing would cost more than a tenth or so of the product. */
static tiling tiling_of_one(const ax_gemm *g, double wanted) {
  tiling t = {1, 1, 1};
  double most = 1.25 * packing(g, 1, 1);
  if (most < 1.0 / 85) most = 1.0 / 85;
  while ((double)(t.rows * t.columns) < wanted) {
    double by_rows = packing(g, 2 * t.rows, t.columns), by_columns = packing(g, t.rows, 2 * t.columns);
    if ((by_rows < by_columns ? by_rows : by_columns) > most) break;
    if (by_rows >= by_columns && 2 * t.columns * least_columns(g) > g->n) break;
    *(by_rows < by_columns ? &t.rows : &t.columns) *= 2;
  }
  return t;
}

/* Of a multiply-add, beside one of f32. */
static double slowness(ax_dtype dtype) {
  return dtype == AX_F64 ? 2 : dtype == AX_BF16 ? 0.5 : ax_dtype_bytes(dtype) == 1 ? 0.25 : 1;
}

/* By the product's shape alone. */
static tiling tiling_of(const ax_gemm *g) {
  double count = (double)ax_dims_elems(g->batch_rank, g->batch);
  double m = (double)g->m, n = (double)g->n, k = (double)g->k;
  double work = m * n * k * slowness(g->dtype) + (m * k + k * n + m * n) * ax_dtype_bytes(g->dtype) * byte_work, wanted = work * count / part_work;
  if (wanted < 2) return (tiling){1, 1, 1};
  if (count >= most_tiles || work < 2 * part_work) {
    if (wanted > most_parts) wanted = most_parts;
    return (tiling){1, 1, (int64_t)(wanted < count ? wanted : count)};
  }
  tiling t = tiling_of_one(g, (wanted < most_tiles ? wanted : most_tiles) / count);
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
  return product_tiles(frame, instr, count * group / t.groups, count * (group + 1) / t.groups, it);
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

/* Where a part begins. Where parts are long, at a multiple of a short vector's elements or of many vectors': what begins amid a line of a
   cache reads and writes two lines a vector, to its end. */
static int64_t part_begin(int64_t extent, int64_t part, int64_t parts) {
  int64_t begin = extent * part / parts, unit = 64;
  while (unit > 1 && extent / parts < 16 * unit) unit /= 2;
  return part == parts ? extent : begin / unit * unit;
}

ax_status ax_compute_part(const ax_frame *frame, const ax_instr *instr, uint32_t part) {
  if (instr->kind == AX_INSTR_GEMM) return gemm_part(frame, instr, part);
  if (instr->kind == AX_INSTR_ROUTINE) return routine_part(frame, instr, part);
  int64_t parts = instr->parts, extent = instr->kind == AX_INSTR_ROWS ? instr->rows->rows->outer * instr->rows->rows->extent : instr->kernel.extent;
  const int64_t begin = part_begin(extent, part, parts), end = part_begin(extent, part + (int64_t)1, parts);
  if (instr->kind == AX_INSTR_ROWS) return ax_compute_rows(frame, instr, begin, end);
  ax_compute_range(frame, instr, begin, end);
  return AX_OK;
}

ax_status ax_compute(const ax_frame *frame, const ax_instr *instr) {
  ax_status status = AX_OK;
  if (instr->kind == AX_INSTR_KERNEL)
    ax_compute_range(frame, instr, 0, instr->kernel.extent);
  else if (instr->kind == AX_INSTR_ROWS)
    status = ax_compute_rows(frame, instr, 0, instr->rows->rows->outer * instr->rows->rows->extent);
  else
    for (uint32_t part = 0; status == AX_OK && part < instr->parts; part++) status = ax_compute_part(frame, instr, part);
  return status;
}

ax_status ax_compute_failed(const ax_instr *instr, ax_status status) {
  const ax_gemm *g = instr->gemm;
  if (status == AX_OK) return AX_OK;
  if (instr->kind == AX_INSTR_ROUTINE) return ax_error(status, "%s found no memory to work in", instr->eqn->prim->name);
  if (instr->kind == AX_INSTR_ROWS) return ax_error(status, "products over the same rows found no memory to work in");
  assert(instr->kind == AX_INSTR_GEMM && status == AX_OUT_OF_MEMORY);
  return ax_error(status, "a product %s[%lld,%lld] x [%lld,%lld] found no memory to work in", ax_dtype_name(g->dtype), (long long)g->m,
                  (long long)g->k, (long long)g->k, (long long)g->n);
}
