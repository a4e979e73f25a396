/* Instructions that compute: kernels, products, and the primitives' own reference code; whole or in parts. */
#include "exec/compute.h"

#include <assert.h>
#include <string.h>

#include <cblas.h>
#include <dnnl.h>

/* Where OpenBLAS comes with threads of its own (libopenblas0-pthread), it cuts a product by how many there are: other bits on other
   machines, and threads that fight with ours. Serial builds ignore this. */
void ax_compute_start(void) { openblas_set_num_threads(1); }

static void kernel_range(const ax_frame *frame, const ax_instr *instr, int64_t begin, int64_t end) {
  void *slots[AX_MAX_SLOTS];
  for (uint32_t i = 0; i < instr->ref_count; i++) slots[i] = ax_address(frame, &instr->refs[i]);
  instr->kernel.code(slots, frame->coordinates, begin, end);
}

static ax_status status_of(dnnl_status_t status) {
  return status == dnnl_success ? AX_OK : status == dnnl_out_of_memory ? AX_OUT_OF_MEMORY : AX_INTERNAL;
}

/* Rows begin .. end of one product. */
static ax_status product_rows(const ax_gemm *g, const char *a, const char *b, char *c, int64_t begin, int64_t end) {
  int64_t item = (int64_t)ax_dtype_bytes(g->dtype), rows = end - begin;
  a += begin * (g->transpose_a ? 1 : g->lda) * item;
  c += begin * g->ldc * item;
  if (g->dtype == AX_F32)
    return status_of(dnnl_sgemm(g->transpose_a ? 'T' : 'N', g->transpose_b ? 'T' : 'N', rows, g->n, g->k, 1,
                                (const float *)(const void *)a, g->lda, (const float *)(const void *)b, g->ldb,
                                (float)g->accumulate, (float *)(void *)c, g->ldc));
  cblas_dgemm(CblasRowMajor, g->transpose_a ? CblasTrans : CblasNoTrans, g->transpose_b ? CblasTrans : CblasNoTrans,
              (int)rows, (int)g->n, (int)g->k, 1, (const double *)(const void *)a, (int)g->lda,
              (const double *)(const void *)b, (int)g->ldb, g->accumulate, (double *)(void *)c, (int)g->ldc);
  return AX_OK;
}

/* Rows begin .. end of product `i` of the batch. */
static ax_status product(const ax_frame *frame, const ax_instr *instr, int64_t i, int64_t begin, int64_t end) {
  const ax_gemm *g = instr->gemm;
  int64_t item = (int64_t)ax_dtype_bytes(g->dtype), at = g->a_offset, bt = g->b_offset, ct = g->c_offset;
  for (uint32_t d = g->batch_rank; d-- > 0; i /= g->batch[d]) {
    int64_t index = i % g->batch[d];
    at += index * g->a_stride[d];
    bt += index * g->b_stride[d];
    ct += index * g->c_stride[d];
  }
  const char *a = ax_address(frame, &instr->refs[0]), *b = ax_address(frame, &instr->refs[1]);
  return product_rows(g, a + at * item, b + bt * item, (char *)ax_address(frame, &instr->refs[2]) + ct * item, begin, end);
}

static ax_status gemm_part(const ax_frame *frame, const ax_instr *instr, uint32_t part) {
  const ax_gemm *g = instr->gemm;
  int64_t count = ax_dims_elems(g->batch_rank, g->batch), parts = instr->parts;
  if (count == 1) return product(frame, instr, 0, g->m * part / parts, g->m * (part + 1) / parts);
  for (int64_t i = count * part / parts; i < count * (part + 1) / parts; i++) {
    ax_status status = product(frame, instr, i, 0, g->m);
    if (status != AX_OK) return status;
  }
  return AX_OK;
}

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
                       .out = pointers + eqn->in_count};
  if (status == AX_OK) status = eqn->prim->eval(&args);
  ax_free(tensors);
  ax_free(pointers);
  return status;
}

/* --- Parts --- */

/* A part is worth handing to another thread from about 50 us on. */
static const double part_products = 1 << 28, part_batch = 1 << 22;
static const int64_t part_rows = 256;

static uint32_t at_most(double parts, int64_t most) {
  if (parts > (double)most) parts = (double)most;
  if (parts > 256) parts = 256;
  return parts > 1 ? (uint32_t)parts : 1;
}

/* Products are always done in these parts, by one thread or by several, so that rounding is the same. */
uint32_t ax_gemm_parts(const ax_gemm *g) {
  double work = (double)g->m * (double)g->n * (double)g->k;
  int64_t count = ax_dims_elems(g->batch_rank, g->batch);
  return count > 1 ? at_most(work * (double)count / part_batch, count) : at_most(work / part_products, g->m / part_rows);
}

ax_status ax_compute_part(const ax_frame *frame, const ax_instr *instr, uint32_t part) {
  if (instr->kind == AX_INSTR_GEMM) return gemm_part(frame, instr, part);
  int64_t extent = instr->kernel.extent, parts = instr->parts;
  kernel_range(frame, instr, extent * part / parts, extent * (part + 1) / parts);
  return AX_OK;
}

ax_status ax_compute(const ax_frame *frame, const ax_instr *instr) {
  ax_status status = AX_OK;
  if (instr->kind == AX_INSTR_KERNEL)
    kernel_range(frame, instr, 0, instr->kernel.extent);
  else
    for (uint32_t part = 0; status == AX_OK && part < instr->parts; part++) status = gemm_part(frame, instr, part);
  return status;
}

ax_status ax_compute_failed(const ax_instr *instr, ax_status status) {
  const ax_gemm *g = instr->gemm;
  if (status == AX_OK) return AX_OK;
  assert(instr->kind == AX_INSTR_GEMM);
  return ax_error(status, "a product %s[%lld,%lld] x [%lld,%lld] failed: %s", ax_dtype_name(g->dtype), (long long)g->m,
                  (long long)g->k, (long long)g->k, (long long)g->n,
                  status == AX_OUT_OF_MEMORY ? "the library found no memory for it" : "the library refused it");
}
