/* Random numbers, and the edges of each dtype. */
#include "support/random.h"

#include <math.h>
#include <string.h>

#include "ir/number.h"

uint64_t test_random_bits(test_random *random) {
  return ax_next_random(&random->state);
}

double test_random_uniform(test_random *random, double low, double high) {
  return low + (high - low) * ((double)(test_random_bits(random) >> 11) * 0x1p-53);
}

int64_t test_random_below(test_random *random, int64_t count) {
  return (int64_t)(test_random_bits(random) % (uint64_t)count);
}

ax_tensor *test_random_tensor(test_random *random, ax_type type, double low, double high) {
  ax_tensor *tensor = test_tensor(type, NULL);
  for (int64_t i = 0; i < test_elems(tensor); i++) test_set(tensor, i, test_random_uniform(random, low, high));
  return tensor;
}

static double float_edge(ax_dtype dtype, int64_t which) {
  const double edges[] = {0,
                          -0.0,
                          1,
                          -1,
                          INFINITY,
                          -INFINITY,
                          NAN,
                          ax_float_smallest_normal(dtype),
                          0.5,
                          -0.5,
                          1.5,
                          ax_float_smallest_normal(dtype) / 4,
                          -ax_float_smallest_normal(dtype) / 4,
                          ax_float_largest(dtype),
                          -ax_float_largest(dtype),
                          2,
                          2.5,
                          -2.5,
                          88,
                          -88};
  return edges[which % (int64_t)AX_COUNT(edges)];
}

/* As bit patterns: limits that no double holds are among them. */
static uint64_t integer_edge(ax_dtype dtype, int64_t which) {
  const unsigned bits = ax_dtype_get(dtype)->bits;
  const uint64_t top = (uint64_t)1 << (bits - 1);
  const uint64_t edges[] = {0, 1, 2, (uint64_t)-1, (uint64_t)-2, top, top - 1, top + 1, 3, (uint64_t)-3, 7, 100};
  return edges[which % (int64_t)AX_COUNT(edges)] & UINT64_MAX >> (64 - bits);
}

ax_tensor *test_edge_tensor(test_random *random, ax_type type) {
  ax_tensor *tensor = test_tensor(type, NULL);
  const ax_dtype dtype = ax_part_dtype(type.dtype);
  size_t bytes = ax_dtype_bytes(dtype);
  for (int64_t i = 0; i < test_elems(tensor); i++) {
    int64_t which = test_random_below(random, 240);
    uint64_t bits = which & 1;
    if (which >= 200) {
      test_set(tensor, i, test_random_uniform(random, ax_dtype_get(dtype)->kind == AX_KIND_UNSIGNED ? 0 : -9, 9));
    } else if (ax_is_float(dtype)) {
      test_set(tensor, i, float_edge(dtype, which));
    } else {
      if (dtype != AX_BOOL) bits = integer_edge(dtype, which);
      memcpy((char *)tensor->data + (size_t)i * bytes, &bits, bytes); /* little-endian */
    }
  }
  return tensor;
}
