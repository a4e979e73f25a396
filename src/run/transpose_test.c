/* Transposed copies of items of every size that has code of its own, and of others: dense rows and rows with gaps, whole squares
   and what is left of them. Nothing beside the items is touched. */
#include "run/transpose.h"

#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"

enum { most = 70, most_item = 65, gap = 3, untouched = 0xee };

typedef struct copy {
  uint32_t dst_count, src_count;
  int64_t item, dst_step, src_step;
} copy;

static void check(const copy *c) {
  const size_t src_row = (size_t)(c->dst_count * c->src_step) + 1, dst_row = (size_t)(c->src_count * c->dst_step) + 1;
  unsigned char *src = malloc(src_row * c->src_count), *dst = malloc(dst_row * c->dst_count);
  const char *from[most];
  char *to[most];
  for (size_t i = 0; i < src_row * c->src_count; i++) src[i] = (unsigned char)(i * 7 % 223); /* never `untouched` */
  memset(dst, untouched, dst_row * c->dst_count);
  for (uint32_t q = 0; q < c->src_count; q++) from[q] = (const char *)src + q * src_row;
  for (uint32_t p = 0; p < c->dst_count; p++) to[p] = (char *)dst + p * dst_row;
  ax_transpose_rows(to, c->dst_step, c->dst_count, from, c->src_step, c->src_count, c->item);
  size_t written = 0;
  for (uint32_t p = 0; p < c->dst_count; p++)
    for (uint32_t q = 0; q < c->src_count; q++)
      assert_memory_equal(to[p] + q * c->dst_step, from[q] + p * c->src_step, (size_t)c->item);
  for (size_t i = 0; i < dst_row * c->dst_count; i++) written += dst[i] != untouched;
  assert_int_equal(written, (size_t)c->item * c->dst_count * c->src_count);
  free(src);
  free(dst);
}

static void items_of_every_size(void **state) {
  (void)state;
  static const int64_t items[] = {1, 2, 3, 4, 5, 8, 12, 16, 17, 32, 64, most_item};
  static const uint32_t counts[][2] = {{1, 1}, {1, 70}, {70, 1}, {3, 5}, {16, 16}, {17, 33}, {64, 64}, {65, 70}, {70, 40}};
  for (size_t i = 0; i < sizeof items / sizeof items[0]; i++)
    for (size_t n = 0; n < sizeof counts / sizeof counts[0]; n++)
      for (int k = 0; k < 4; k++)
        check(&(copy){counts[n][0], counts[n][1], items[i], items[i] + (k & 1 ? gap : 0), items[i] + (k & 2 ? gap : 0)});
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(items_of_every_size)};
  return cmocka_run_group_tests_name("transpose", tests, NULL, NULL);
}
