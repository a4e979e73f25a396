/* Transposes of c128 that the routine moves: all orders of up to four dimensions, with extents about its squares and blocks, on several
   threads. */
#include "axle/exec.h"
#include "axle/ops.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

typedef struct order {
  uint32_t rank;
  int64_t permutation[5];
} order;

static AX_BODY(moved) {
  const order *o = context;
  out[0] = (ax_transpose)(in[0], o->rank, o->permutation);
}

static void check(const order *o, const int64_t *dims, test_random *random) {
  const ax_type type = ax_array_type(AX_C128, AX_LIST(o->rank, dims));
  ax_program *program = test_trace(moved, (void *)(uintptr_t)o, &type, 1, 1);
  ax_tensor *x = test_random_tensor(random, type, -1, 1);
  TEST_EVERY_WAY(program, &x, 0);
  ax_tensor_release(x), ax_program_release(program);
}

static void all_orders(void **state) {
  static const int64_t shapes[][4] = {{3, 5, 9, 11}, {8, 2, 4, 33}, {1, 36, 1, 35}, {2, 1, 31, 32}};
  test_random random = {3};
  (void)state;
  for (size_t s = 0; s < AX_COUNT(shapes); s++)
    for (int64_t a = 0; a < 4; a++)
      for (int64_t b = 0; b < 4; b++)
        for (int64_t c = 0; c < 4; c++) {
          const order o = {4, {a, b, c, 6 - a - b - c}};
          if (a != b && a != c && b != c && 6 - a - b - c != a && 6 - a - b - c != b && 6 - a - b - c != c && s % 2 == (size_t)(a + b) % 2)
            check(&o, shapes[s], &random);
        }
}

static void matrices(void **state) {
  static const int64_t shapes[][2] = {{1000, 3}, {3, 1000}, {33, 65}, {300, 401}, {256, 512}};
  test_random random = {4};
  (void)state;
  for (size_t s = 0; s < AX_COUNT(shapes); s++) check(&(order){2, {1, 0}}, shapes[s], &random);
}

static void rows_that_stay_whole(void **state) {
  test_random random = {5};
  (void)state;
  check(&(order){3, {1, 0, 2}}, (const int64_t[]){40, 50, 70}, &random);
  check(&(order){5, {2, 0, 1, 3, 4}}, (const int64_t[]){4, 5, 6, 7, 8}, &random);
  check(&(order){5, {4, 2, 3, 0, 1}}, (const int64_t[]){4, 5, 6, 7, 8}, &random);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_orders),
      cmocka_unit_test(matrices),
      cmocka_unit_test(rows_that_stay_whole),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
