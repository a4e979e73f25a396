/* Programs of x and w in which x goes round a step, in loops and branches inside one another. */
#ifndef AX_TESTS_SUPPORT_NEST_H
#define AX_TESTS_SUPPORT_NEST_H

#include "axle/transform.h"

typedef enum test_level_kind {
  TEST_NO_LEVEL,
  TEST_SCAN,  /* count times */
  TEST_EACH,  /* likewise, and each time has a w of its own: a slice of so many that are alike */
  TEST_WHILE, /* until a counter, which begins at count and goes up by 4, is 10 or more */
  TEST_IF     /* where some element is above 1/4 */
} test_level_kind;

typedef struct test_level {
  test_level_kind kind;
  int count;
} test_level;

enum { TEST_MOST_LEVELS = 4 };
typedef struct test_nest {
  ax_function step; /* x -> x; its context is w: an ax_value, captured from where it comes from */
  test_level levels[TEST_MOST_LEVELS]; /* the outermost first */
} test_nest;

/* (x, w) -> x. nest: a test_nest. */
void test_nested(const ax_value *in, ax_value *out, void *nest);

#endif
