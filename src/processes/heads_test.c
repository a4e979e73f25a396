/* Heads: each is read as it was written, of any length, from one that differs in any words; what has not changed is not sent. */
#include "processes/heads.h"

#include <string.h>

#include "support/cmocka.h"
#include "support/random.h"

static void heads_come_as_they_were(void **state) {
  (void)state;
  ax_head sent = {0}, got = {0};
  uint32_t head[AX_HEAD_WORDS] = {0}, code[AX_HEAD_CODE / 4];
  test_random random = {5};
  for (int i = 0; i < 20000; i++) {
    const uint32_t words = (uint32_t)test_random_below(&random, AX_HEAD_WORDS + 1), changes = (uint32_t)test_random_below(&random, 8);
    for (uint32_t c = 0; c < changes; c++)
      head[test_random_below(&random, AX_HEAD_WORDS)] = (uint32_t)test_random_below(&random, 3) * 0x7fffffffu;
    uint32_t differ = 0;
    for (uint32_t w = 0; w < words; w++) differ += head[w] != sent.words[w];
    const size_t bytes = ax_head_write(&sent, head, 4 * words, code);
    assert_int_equal(bytes, 4 + 4 * differ);
    if (test_random_below(&random, 10) == 0) continue; /* it was not sent */
    ax_head_keep(&sent, head, 4 * words);
    for (int times = 0; times < 2; times++) {
      size_t length;
      assert_int_equal(ax_head_read(&got, code, &length), bytes);
      assert_int_equal(length, 4 * words);
      assert_memory_equal(got.words, head, length);
    }
    assert_memory_equal(&got, &sent, sizeof got);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(heads_come_as_they_were)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
