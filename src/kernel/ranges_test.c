/* Ranges of integers, beside their values at each point of a grid: random expressions, loops, branches, calls. */
#include "kernel/ranges.h"

#include <string.h>

#include "axle/axle.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/tensor.h"

enum { most_values = 12, grid_rows = 5, grid_columns = 4 };

static int64_t below(test_random *random, int64_t count) { return test_random_below(random, count); }

static AX_BODY(add_constant) { /* index, carry -> carry */
  const ax_value *constant = context;
  out[0] = ax_add(in[1], constant[0]);
}

static AX_BODY_OF(largest_of, const ax_value, around) { out[0] = ax_max(ax_mul(in[0], ax_integer(3)), around[0]); }

static ax_value number_of(test_random *random) { return ax_full_i64(AX_S32, AX_DIMS(), below(random, 13) - 6); }

static ax_value loop_of(test_random *random, ax_value begins) {
  const ax_value adds = below(random, 2) == 0 ? number_of(random) : begins;
  ax_fori_loop(ax_integer(0), ax_integer(below(random, 4)), AX_CLOSURE(add_constant, 2, 1, (void *)(uintptr_t)&adds), &begins, &begins);
  return begins;
}

static AX_BODY_OF(take_first, const ax_value, pair) { out[0] = pair[0]; }
static AX_BODY_OF(take_sum, const ax_value, pair) { out[0] = ax_add(pair[0], pair[1]); }

static ax_value any_of(test_random *random, ax_value a, ax_value b) {
  const ax_value pair[] = {a, b};
  ax_value made;
  switch (below(random, 14)) {
    case 0: return ax_add(a, b);
    case 1: return ax_sub(a, b);
    case 2: return ax_mul(a, b);
    case 3: return ax_div(a, ax_add(ax_max(b, ax_integer(0)), ax_integer(1)));
    case 4: return ax_rem(a, ax_add(ax_max(b, ax_integer(0)), ax_integer(2)));
    case 5: return ax_max(a, b);
    case 6: return ax_min(a, b);
    case 7: return ax_select_n(ax_lt(a, b), a, b);
    case 8: return ax_select_n(ax_and(ax_ge(a, b), ax_ne(a, ax_integer(1))), b, a);
    case 9: return ax_floor_divide(a, ax_integer(2));
    case 10: return loop_of(random, a);
    case 11: return ax_convert_element_type(ax_or(ax_le(a, b), ax_gt(a, ax_integer(2))), AX_S32);
    case 12: ax_checkpoint(AX_CLOSURE(largest_of, 1, 1, (void *)(uintptr_t)&b), &a, &made, NULL); return made;
    default:
      ax_if(ax_gt(a, b), AX_CLOSURE(take_first, 0, 1, (void *)(uintptr_t)pair), AX_CLOSURE(take_sum, 0, 1, (void *)(uintptr_t)pair), NULL, &made);
      return made;
  }
}

static AX_BODY(expression) {
  test_random random = {*(const uint64_t *)context};
  ax_value values[most_values] = {in[0], in[1], number_of(&random)};
  for (int v = 3; v < most_values; v++) values[v] = any_of(&random, values[below(&random, v)], values[below(&random, v)]);
  out[0] = values[most_values - 1];
  out[1] = values[most_values - 2];
}

static uint32_t narrow;

static void one_expression(uint64_t seed) {
  const ax_type type = AX_TYPE(AX_S32), types[] = {type, type};
  ax_ranges ranges;
  ax_interval found[2];
  ax_program *program = test_trace(expression, &seed, types, 2, 2);
  ax_ranges_init(&ranges, &(ax_dims){2, {grid_rows, grid_columns}});
  TEST_OK(ax_ranges_find(&ranges, program, true, found));
  for (int i = 0; i < grid_rows; i++)
    for (int j = 0; j < grid_columns; j++) {
      ax_tensor *in[] = {test_tensor(type, (double[]){i}), test_tensor(type, (double[]){j})}, *made[2];
      test_run(program, in, made);
      for (int k = 0; k < 2; k++) {
        const int64_t is = (int64_t)test_get(made[k], 0);
        if (is < found[k].low || is > found[k].high)
          fail_msg("seed %llu, result %d at (%d, %d) is %lld, not from %lld to %lld", (unsigned long long)seed, k, i, j, (long long)is,
                   (long long)found[k].low, (long long)found[k].high);
      }
      test_release(in, 2);
      test_release(made, 2);
    }
  narrow += found[0].high - found[0].low < 1000;
  ax_ranges_deinit(&ranges);
  ax_program_release(program);
}

static void expressions(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 400; seed++) one_expression(seed);
  print_message("%u of 400 ranges are narrow\n", narrow);
  assert_true(narrow > 200);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(expressions)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
