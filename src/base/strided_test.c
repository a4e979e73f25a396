/* Elements moved between orders, beside one at a time: all ranks, sizes and orders, with gaps and backwards. */
#include "base/strided.h"

#include <string.h>

#include "support/cmocka.h"
#include "support/random.h"

enum { ROOM = 1 << 17 };

typedef struct order {
  int64_t strides[AX_STRIDED_RANK], first;
} order;

/* The dimensions in any order, some with a gap behind each element, some backwards. */
static order order_of(test_random *random, uint32_t rank, const int64_t *dims, int64_t bytes) {
  order o = {{0}, 0};
  bool placed[AX_STRIDED_RANK] = {0};
  int64_t next = bytes;
  for (uint32_t i = 0; i < rank; i++) {
    uint32_t d;
    do d = (uint32_t)test_random_below(random, rank);
    while (placed[d]);
    placed[d] = true;
    if (test_random_below(random, 4) == 0) next += bytes;
    o.strides[d] = next;
    next *= dims[d] > 0 ? dims[d] : 1;
    if (test_random_below(random, 5) == 0 && dims[d] > 0) o.first += (dims[d] - 1) * o.strides[d], o.strides[d] = -o.strides[d];
  }
  return o;
}

static void one_at_a_time(uint32_t rank, const int64_t *dims, size_t bytes, char *to, const int64_t *to_strides, const char *from,
                          const int64_t *from_strides) {
  if (rank == 0) {
    memcpy(to, from, bytes);
    return;
  }
  for (int64_t i = 0; i < dims[0]; i++)
    one_at_a_time(rank - 1, dims + 1, bytes, to + i * to_strides[0], to_strides + 1, from + i * from_strides[0], from_strides + 1);
}

static void moved_as_one_at_a_time(void **state) {
  (void)state;
  static char from[ROOM], fast[ROOM], slow[ROOM];
  static const size_t sizes[] = {1, 2, 4, 8, 16};
  for (size_t i = 0; i < ROOM; i++) from[i] = (char)(i * 37 + i / 251);
  for (uint64_t seed = 1; seed <= 2000; seed++) {
    test_random random = {seed};
    const uint32_t rank = (uint32_t)test_random_below(&random, 5);
    const size_t bytes = sizes[test_random_below(&random, sizeof sizes / sizeof sizes[0])];
    int64_t dims[4];
    for (uint32_t d = 0; d < rank; d++) dims[d] = (int64_t)test_random_below(&random, rank <= 2 ? 45 : 6);
    const order a = order_of(&random, rank, dims, (int64_t)bytes), b = order_of(&random, rank, dims, (int64_t)bytes);
    memset(fast, 0, sizeof fast), memset(slow, 0, sizeof slow);
    ax_strided_move(rank, dims, bytes, (ax_strided_place){fast + a.first, a.strides}, (ax_strided_place){from + b.first, b.strides});
    one_at_a_time(rank, dims, bytes, slow + a.first, a.strides, from + b.first, b.strides);
    if (memcmp(fast, slow, sizeof fast) != 0) fail_msg("seed %llu differs", (unsigned long long)seed);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(moved_as_one_at_a_time)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
