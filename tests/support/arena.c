#include "support/arena.h"

ax_arena test_arena;

int test_arena_start(void **state) {
  (void)state;
  test_arena = (ax_arena){0};
  return 0;
}

int test_arena_end(void **state) {
  (void)state;
  ax_arena_deinit(&test_arena);
  return 0;
}
