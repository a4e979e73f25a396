/* The gradient of a value of which many small parts are taken: each part's cotangent is added where the part lies, so that it costs
   the part and not the whole value. */
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "axle/transform.h"
#include "ir/prim.h"
#include "support/cmocka.h"
#include "support/run.h"

enum { ROWS = 24, COLUMNS = 16, TAKEN = 2 }; /* a part: TAKEN rows, half of the columns */

typedef enum kind { STATIC, DYNAMIC, LOOKED_UP, MIXED } kind;

typedef struct taking {
  kind kind;
  int parts;
} taking;

/* Where part i begins; parts overlap. */
static int64_t row_of(int i) { return 5 * i % (ROWS - TAKEN + 1); }
static int64_t column_of(int i) { return 3 * i % (COLUMNS / 2 + 1); }

static ax_value part(kind kind, ax_value x, int i) {
  const int64_t row = row_of(i), column = column_of(i);
  ax_value starts[] = {ax_full_i64(AX_S32, AX_DIMS(), row), ax_full_i64(AX_S32, AX_DIMS(), column)};
  const int32_t rows[] = {(int32_t)row, (int32_t)row + 1};
  const ax_type index = TEST_TYPE(AX_S32, TAKEN);
  switch (kind == MIXED ? (enum kind)(i % 3) : kind) {
    case STATIC: return ax_slice(x, AX_DIMS(row, column), AX_DIMS(row + TAKEN, column + COLUMNS / 2), NULL);
    case DYNAMIC: return ax_dynamic_slice(x, starts, AX_DIMS(TAKEN, COLUMNS / 2));
    default:
      return ax_slice_in_dim(ax_take(x, ax_constant(&index, rows), 0), column, column + COLUMNS / 2, 1, 1);
  }
}

/* The sum of the parts, each times its number and its own values' square: the gradient at x is twice that. */
static void loss(const ax_value *in, ax_value *out, void *context) {
  const taking *t = context;
  for (int i = 0; i < t->parts; i++) {
    ax_value one = part(t->kind, in[0], i);
    ax_value sum = ax_reduce_sum(ax_mul(ax_square(one), ax_full_like(one, i + 1)), AX_ALL_DIMS, false);
    out[0] = i == 0 ? sum : ax_add(out[0], sum);
  }
}

static void gradient(const ax_value *in, ax_value *out, void *context) {
  ax_grad(AX_CLOSURE(loss, 1, 1, context), AX_FIRST(1), in, out);
}

static uint32_t count_prim(const ax_program *program, const char *name) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < program->eqn_count; i++) count += program->eqns[i].prim == ax_prim_find(name, strlen(name));
  return count;
}

static void check(const taking *t) {
  const ax_type type = TEST_TYPE(AX_F64, ROWS, COLUMNS);
  ax_program *program = test_trace(gradient, (void *)t, &type, 1, 1);
  double x[ROWS * COLUMNS], expected[ROWS * COLUMNS] = {0};
  for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = (double)(i % 7) - 3;
  for (int i = 0; i < t->parts; i++)
    for (int64_t r = row_of(i); r < row_of(i) + TAKEN; r++)
      for (int64_t c = column_of(i); c < column_of(i) + COLUMNS / 2; c++) {
        const int64_t at = r * COLUMNS + c;
        expected[at] += 2 * (i + 1) * x[at];
      }
  ax_tensor *in = test_tensor(type, x), *out;
  test_run(program, &in, &out);
  for (int i = 0; i < ROWS * COLUMNS; i++) assert_true(((const double *)out->data)[i] == expected[i]); /* small integers: exact */
  TEST_EVERY_WAY(program, &in, 0);
  test_release(&in, 1), test_release(&out, 1);
  ax_program_release(program);
}

static void gradients_are_right(void **state) {
  (void)state;
  for (int parts = 6; parts <= 10; parts++)
    for (kind kind = STATIC; kind <= MIXED; kind++) check(&(taking){kind, parts});
}

/* Few parts are padded and added in one kernel; of many parts one alone is. */
static void many_parts_make_one_array(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F64, ROWS, COLUMNS);
  for (int parts = 4; parts <= 40; parts *= 10) {
    taking t = {STATIC, parts};
    ax_program *program = test_trace(gradient, &t, &type, 1, 1);
    assert_int_equal(count_prim(program, "pad"), parts == 4 ? 4 : 1);
    assert_int_equal(count_prim(program, "dynamic_update_slice"), parts == 4 ? 0 : parts - 1);
    ax_program_release(program);
  }
}

static void on_each_device(const ax_value *in, ax_value *out, void *context) {
  ax_value x = ax_add(in[0], ax_convert_element_type(ax_axis_index("d"), AX_F64));
  gradient(&x, out, context);
}
static void in_batch(const ax_value *in, ax_value *out, void *context) {
  ax_vmap(AX_CLOSURE(gradient, 1, 1, context), in, out, NULL);
}
static void twice(const ax_value *in, ax_value *out, void *context) {
  ax_value tangent;
  ax_jvp(AX_CLOSURE(gradient, 1, 1, context), AX_FIRST(1), in, in, out, &tangent);
  out[0] = ax_add(out[0], tangent);
}

static void gradients_compose(void **state) {
  (void)state;
  for (kind kind = STATIC; kind <= MIXED; kind++) {
    taking t = {kind, 12};
    const ax_type type = TEST_TYPE(AX_F64, ROWS, COLUMNS), rows = TEST_TYPE(AX_F64, 4 * ROWS, COLUMNS),
                  batch = TEST_TYPE(AX_F64, 3, ROWS, COLUMNS);
    const test_map map = {.mesh = "d=4", .in_specs = {"d"}, .out_specs = {"d"}, .body = on_each_device, .context = &t};
    ax_program *all[] = {test_trace_map(&map, &rows), test_trace(in_batch, &t, &batch, 1, 1), test_trace(twice, &t, &type, 1, 1)};
    for (size_t i = 0; i < AX_COUNT(all); i++) {
      test_random_run(all[i], 7 + i, false, 1e-12);
      ax_program_release(all[i]);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gradients_are_right),
      cmocka_unit_test(many_parts_make_one_array),
      cmocka_unit_test(gradients_compose),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
