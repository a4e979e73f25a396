/* Sorting networks: which comparators, and sort_network_template.h for each width of elements and of registers. Integers that are
   equal have the same bits. Floats go by integers that have their order, where there is neither NaN nor -0: these would be equal
   to others, and stay in order. */
#include "ops/sort_network.h"

#include <string.h>

#include "base/base.h"
#include "machine/features.h"

/* The place of a row's first element. */
static int64_t first_of(const ax_sort_network *n, int64_t row) { return row / n->inner * n->extent * n->inner + row % n->inner; }

/* Says whether the rows lie beside each other, so that vectors of them are read as they lie. */
static bool lie_across(const ax_sort_network *n, int64_t row, int64_t rows) {
  return n->inner > 1 && row % n->inner + rows <= n->inner;
}

/* Of the floats here; 0: it is none. */
static uint64_t infinity_of(ax_dtype dtype) {
  switch (dtype) {
    case AX_F64: return 0x7ff0000000000000;
    case AX_F32: return 0x7f800000;
    case AX_F16: return 0x7c00;
    case AX_BF16: return 0x7f80;
    default: return 0;
  }
}

#define ELEMENT int8_t
#define LEAST INT8_MIN
#define MOST INT8_MAX
#define FUNCTION(registers, x) s8_##registers##_##x
#include "ops/sort_network_registers.h"

#define ELEMENT int16_t
#define LEAST INT16_MIN
#define MOST INT16_MAX
#define FUNCTION(registers, x) s16_##registers##_##x
#include "ops/sort_network_registers.h"

#define ELEMENT int32_t
#define LEAST INT32_MIN
#define MOST INT32_MAX
#define FUNCTION(registers, x) s32_##registers##_##x
#include "ops/sort_network_registers.h"

#define ELEMENT int64_t
#define LEAST INT64_MIN
#define MOST INT64_MAX
#define FUNCTION(registers, x) s64_##registers##_##x
#include "ops/sort_network_registers.h"

typedef bool network_sort(const ax_sort_network *n, const void *from, void *to, int64_t row, int64_t rows);

/* By registers of `bytes` bytes; NULL: the processor has none. */
static network_sort *sort_of(size_t element_bytes, uint32_t bytes) {
  const size_t at = element_bytes == 1 ? 0 : element_bytes == 2 ? 1 : element_bytes == 4 ? 2 : 3;
  static network_sort *const plain[] = {s8_plain_sort, s16_plain_sort, s32_plain_sort, s64_plain_sort};
#if defined(__x86_64__)
  static network_sort *const wide[] = {s8_wide_sort, s16_wide_sort, s32_wide_sort, s64_wide_sort};
  static network_sort *const widest[] = {s8_widest_sort, s16_widest_sort, s32_widest_sort, s64_widest_sort};
  if (bytes == 64) return ax_machine_has(AX_FEATURE_AVX512) ? widest[at] : NULL;
  if (bytes == 32) return ax_machine_has(AX_FEATURE_AVX2) ? wide[at] : NULL;
#endif
  return bytes == 16 ? plain[at] : NULL;
}

static bool is_sorted_so(ax_dtype dtype) {
  const ax_dtype_info *info = ax_dtype_get(dtype);
  if (info->kind == AX_KIND_FLOAT) return infinity_of(dtype) != 0;
  return (info->kind == AX_KIND_SIGNED || info->kind == AX_KIND_UNSIGNED) && info->bits >= 8;
}

static void add_pair(ax_sort_network *n, int64_t lesser, int64_t greater) {
  n->pairs[2 * n->count] = (uint8_t)lesser;
  n->pairs[2 * n->count + 1] = (uint8_t)greater;
  n->count++;
}

/* Merges of sorted runs of `run` elements each; those beyond the last element are taken for greater than all. */
bool ax_sort_network_make(ax_dtype dtype, int64_t extent, int64_t inner, ax_sort_network *out) {
  if (extent < 2 || extent > AX_NETWORK_EXTENT || !is_sorted_so(dtype)) return false;
  *out = (ax_sort_network){.extent = extent, .inner = inner, .dtype = dtype};
  for (int64_t run = 1; run < extent; run *= 2)
    for (int64_t step = run; step >= 1; step /= 2)
      for (int64_t from = step % run; from + step < extent; from += 2 * step)
        for (int64_t i = from; i < from + step && i + step < extent; i++)
          if (i / (2 * run) == (i + step) / (2 * run)) add_pair(out, i, i + step);
  return true;
}

int64_t ax_sort_network_rows(const ax_sort_network *network, int64_t row, int64_t end) {
  const int64_t lanes = AX_NETWORK_LINE / (int64_t)ax_dtype_bytes(network->dtype), left = network->inner - row % network->inner;
  const int64_t most = network->inner >= lanes && left < lanes ? left : lanes; /* so that all lie beside each other */
  return end - row < most ? end - row : most;
}

bool ax_sort_network_run(const ax_sort_network *network, uint32_t bytes, const void *from, void *to, int64_t row, int64_t rows) {
  network_sort *sort = sort_of(ax_dtype_bytes(network->dtype), bytes);
  return sort != NULL && sort(network, from, to, row, rows);
}
