/* See split.h. */
#include "code/split.h"

#include "machine/rates.h"

enum { most_gemm_parts = 256, check_part_bytes = 256 << 10, most_check_parts = 64 };

/* A part takes about three microseconds, or longer where sharing costs more. Each number is read from a cache and packed or
   written, so it moves twice. */
double ax_gemm_wanted_parts(const ax_gemm *g, double count) {
  static const double part_seconds = 3e-6;
  const double m = (double)g->m, n = (double)g->n, k = (double)g->k, terms = (double)ax_dims_elems(g->term_rank, g->terms),
               bytes = (m * k + k * n + m * n) * ax_dtype_bytes(g->dtype);
  const ax_rates *rates = ax_rates_planned();
  return (ax_rates_computing(rates, 2 * m * n * k * terms, g->dtype) + 2 * bytes / rates->shared) * count /
         (part_seconds * rates->sharing);
}

uint32_t ax_gemm_parts(const ax_gemm *g) {
  const double wanted = ax_gemm_wanted_parts(g, (double)ax_dims_elems(g->batch_rank, g->batch));
  return wanted < 2 ? 1 : wanted < most_gemm_parts ? (uint32_t)wanted : most_gemm_parts;
}

uint32_t ax_check_parts(const ax_value_check *check) {
  const int64_t parts = check->elems[0] * (int64_t)ax_dtype_bytes(check->dtype[0]) / check_part_bytes;
  return parts < 2 ? 1 : parts > most_check_parts ? most_check_parts : (uint32_t)parts;
}
