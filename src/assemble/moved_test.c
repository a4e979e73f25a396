/* Moved kernels: those that do the same at other places of their arrays share code, which gives the bits of the kernel's own if the
   slots begin later; what the code depends on stays as it is. */
#include "assemble/moved.h"

#include <string.h>

#include "jit/jit.h"
#include "machine/caches.h"
#include "support/cmocka.h"

enum { rows = 8, columns = 8, wide = 200 };

static ax_position along(int dim, int64_t offset) {
  return (ax_position){.dim = dim, .coef = 1, .offset = offset, .dynamic = AX_NONE};
}

/* y[i0, i1 + to] = x[i0 + row, i1 + column] + x[i0 + row, i1 + column + 1], of x: f32[x_rows, x_columns] and y: f32[8, 200] */
static ax_loop_kernel *make(ax_arena *arena, int64_t x_rows, int64_t x_columns, int64_t row, int64_t column, int64_t to) {
  ax_loop_kernel *k = ax_kernel_create(arena, 2, 0, (const int64_t[]){rows, columns});
  const uint32_t x = ax_kernel_slot(k, AX_F32, 2, (const int64_t[]){x_rows, x_columns}),
                 y = ax_kernel_slot(k, AX_F32, 2, (const int64_t[]){rows, wide});
  const ax_position first[] = {along(0, row), along(1, column)}, second[] = {along(0, row), along(1, column + 1)},
                    there[] = {along(0, 0), along(1, to)};
  const ax_ex sum = ax_kernel_op(k, AX_SCALAR_ADD, AX_F32, ax_kernel_load(k, x, first), ax_kernel_load(k, x, second), AX_NONE);
  ax_kernel_store(k, y, there, sum, AX_SCALAR_NONE);
  assert_false(k->failed);
  return k;
}

static void run(ax_compiler *jit, const ax_loop_kernel *kernel, char *x, char *y, const int64_t *later) {
  ax_kernel_code code;
  assert_int_equal(ax_jit_compile(jit, &kernel, 1, &code), AX_OK);
  code((void *[]){x + later[0], y + later[1]}, NULL, 0, rows);
}

static void same_bits(void **state) {
  (void)state;
  static float x[20 * wide], own[rows * wide], moved[rows * wide];
  static const int64_t none[2];
  for (int i = 0; i < 20 * wide; i++) x[i] = (float)i / 7;
  ax_compiler *jit;
  assert_int_equal(ax_jit_create(NULL, &jit), AX_OK);
  for (int64_t column = 0; column < wide - columns; column += 13)
    for (int64_t row = 0; row <= 12; row += 4) {
      ax_arena arena = {0};
      int64_t later[2];
      const ax_loop_kernel *kernel = make(&arena, 20, wide, row, column, (column + 1) % (wide - columns)),
                           *shared = ax_kernel_moved(&arena, kernel, later);
      assert_ptr_not_equal(shared, kernel);
      assert_true(later[0] % 64 == 0 && later[0] <= 4 * (row * wide + column) && later[0] > 4 * (row * wide + column) - 64);
      memset(own, 0, sizeof own);
      memset(moved, 0, sizeof moved);
      run(jit, kernel, (char *)x, (char *)own, none);
      run(jit, shared, (char *)x, (char *)moved, later);
      assert_memory_equal(own, moved, sizeof own);
      ax_arena_deinit(&arena);
    }
  ax_jit_destroy(jit);
}

static const ax_loop_kernel *moved_of(ax_arena *arena, const ax_loop_kernel *kernel) {
  int64_t later[AX_MAX_SLOTS];
  return ax_kernel_moved(arena, kernel, later);
}

/* Whether x f32[x_rows, x_columns] read at [row, column] has the code of f32[20, 200] read at [0, 0]. */
static bool as_at_the_beginning(int64_t x_rows, int64_t x_columns, int64_t row, int64_t column, int64_t to) {
  ax_arena arena = {0};
  const bool equal = ax_kernel_equal(moved_of(&arena, make(&arena, 20, wide, 0, 0, 0)),
                                     moved_of(&arena, make(&arena, x_rows, x_columns, row, column, to)));
  ax_arena_deinit(&arena);
  return equal;
}

static void code_is_shared(void **state) {
  (void)state;
  assert_true(as_at_the_beginning(20, wide, 0, 16, 0)); /* whole lines of 16 numbers */
  assert_true(as_at_the_beginning(20, wide, 0, 160, 0));
  assert_true(as_at_the_beginning(20, wide, 4, 0, 0)); /* 800 numbers */
  assert_true(as_at_the_beginning(20, wide, 2, 0, 32));
  assert_true(as_at_the_beginning(20, wide, 1, 8, 0)); /* 208 */
  assert_true(as_at_the_beginning(31, wide, 23, 8, 0)); /* an array of more rows */
  assert_false(as_at_the_beginning(20, wide, 0, 1, 0)); /* elsewhere in the line */
  assert_false(as_at_the_beginning(20, wide, 1, 0, 0));
  assert_false(as_at_the_beginning(20, wide, 0, 0, 8));
  assert_false(as_at_the_beginning(20, wide + 16, 0, 0, 0)); /* longer rows */
  assert_false(as_at_the_beginning(ax_caches_here()->far_rows / (4 * wide) + 1, wide, 0, 0, 0)); /* rows that are fetched ahead */
}

/* y[i0 + to] = x[step * i0 + from] of so many steps, x and y of one dimension. */
static ax_loop_kernel *line(ax_arena *arena, int64_t elems, int64_t step, int64_t from, int64_t to) {
  ax_loop_kernel *k = ax_kernel_create(arena, 1, 0, &elems);
  const int64_t x_elems = step * elems + from, y_elems = elems + to;
  const uint32_t x = ax_kernel_slot(k, AX_F32, 1, &x_elems), y = ax_kernel_slot(k, AX_F32, 1, &y_elems);
  const ax_position there[] = {{.dim = 0, .coef = step, .offset = from, .dynamic = AX_NONE}}, here[] = {along(0, to)};
  ax_kernel_store(k, y, here, ax_kernel_load(k, x, there), AX_SCALAR_NONE);
  assert_false(k->failed);
  return k;
}

static bool line_as(int64_t elems, int64_t step, int64_t other_elems, int64_t other_step) {
  ax_arena arena = {0};
  const bool equal = ax_kernel_equal(moved_of(&arena, line(&arena, elems, step, 3, 16)),
                                     moved_of(&arena, line(&arena, other_elems, other_step, 16 * 5 + 3, 0)));
  ax_arena_deinit(&arena);
  return equal;
}

/* Parts of vectors, of other lengths at other places. */
static void lines_share_code(void **state) {
  (void)state;
  assert_true(line_as(600, 1, 1234, 1));
  assert_true(line_as(600, 2, 1234, 2));
  assert_true(line_as(40000, 1, 50001, 1)); /* many elements */
  assert_false(line_as(600, 1, 40000, 1));
  assert_false(line_as(600, 1, 1234, 2));
  assert_false(line_as(100, 1, 101, 1)); /* few enough that their number makes shorter code */
  static float x[4000], own[2000], shared[2000];
  ax_compiler *jit;
  for (int i = 0; i < 4000; i++) x[i] = (float)i / 7;
  assert_int_equal(ax_jit_create(NULL, &jit), AX_OK);
  for (int64_t elems = 512; elems < 1900; elems += 139)
    for (int64_t step = 1; step <= 2; step++) {
      ax_arena arena = {0};
      int64_t later[2];
      ax_kernel_code code[2];
      const ax_loop_kernel *kernel = line(&arena, elems, step, 37, 21), *both[] = {kernel, ax_kernel_moved(&arena, kernel, later)};
      assert_int_equal(ax_jit_compile(jit, both, 2, code), AX_OK);
      memset(own, 0, sizeof own);
      memset(shared, 0, sizeof shared);
      for (int64_t part = 0; part < 3; part++) {
        code[0]((void *[]){x, own}, NULL, elems * part / 3, elems * (part + 1) / 3);
        code[1]((void *[]){(char *)x + later[0], (char *)shared + later[1]}, NULL, elems * part / 3, elems * (part + 1) / 3);
      }
      assert_memory_equal(own, shared, sizeof own);
      ax_arena_deinit(&arena);
    }
  ax_jit_destroy(jit);
}

/* A load whose guard never holds begins beyond its slot, whose first element is read instead. */
static void slots_begin_inside(void **state) {
  (void)state;
  static const int64_t dims[] = {4, 40};
  ax_arena arena = {0};
  int64_t later[2];
  ax_loop_kernel *k = ax_kernel_create(&arena, 2, 0, dims);
  const ax_position far[] = {along(0, 100), along(1, 0)}, there[] = {along(0, 0), along(1, 0)};
  const uint32_t x = ax_kernel_slot(k, AX_F32, 2, dims);
  const ax_ex guard = ax_kernel_inside(k, 0, 1, -2, 4);
  ax_kernel_store(k, ax_kernel_slot(k, AX_F32, 2, dims), there, ax_kernel_load_where(k, x, far, guard), AX_SCALAR_NONE);
  assert_non_null(ax_kernel_moved(&arena, k, later));
  assert_true(later[0] > 0 && later[0] < 4 * 4 * 40);
  assert_int_equal(later[1], 0);
  ax_arena_deinit(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits), cmocka_unit_test(code_is_shared),
                                     cmocka_unit_test(lines_share_code),
                                     cmocka_unit_test(slots_begin_inside)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
