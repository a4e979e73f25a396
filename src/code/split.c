/* See split.h. */
#include "code/split.h"

/* Work is counted in multiply-adds of f32. part_work: about three microseconds; byte_work: reading or writing a byte. */
static const double part_work = 3e5, byte_work = 2;
enum { most_gemm_parts = 256, check_part_bytes = 256 << 10, most_check_parts = 64 };

/* The time of a multiply-add relative to one of f32. */
static double slowness(ax_dtype dtype) {
  return dtype == AX_F64 ? 2 : dtype == AX_BF16 ? 0.5 : ax_dtype_bytes(dtype) == 1 ? 0.25 : 1;
}

double ax_gemm_wanted_parts(const ax_gemm *g, double count) {
  const double m = (double)g->m, n = (double)g->n, k = (double)g->k, terms = (double)ax_dims_elems(g->term_rank, g->terms);
  return (m * n * k * terms * slowness(g->dtype) + (m * k + k * n + m * n) * ax_dtype_bytes(g->dtype) * byte_work) * count /
         part_work;
}

uint32_t ax_gemm_parts(const ax_gemm *g) {
  const double wanted = ax_gemm_wanted_parts(g, (double)ax_dims_elems(g->batch_rank, g->batch));
  return wanted < 2 ? 1 : wanted < most_gemm_parts ? (uint32_t)wanted : most_gemm_parts;
}

uint32_t ax_check_parts(const ax_value_check *check) {
  const int64_t parts = check->elems[0] * (int64_t)ax_dtype_bytes(check->dtype[0]) / check_part_bytes;
  return parts < 2 ? 1 : parts > most_check_parts ? most_check_parts : (uint32_t)parts;
}
