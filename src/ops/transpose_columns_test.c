/* Rows that are put one below another and then turned are columns side by side: where each row alone is a column as it lies,
   and there are few; also where something is computed of them element by element. All give what they gave. */
#include "axle/ops.h"
#include "ir/prim.h"
#include "ir/transform.h"
#include "prim/prims.h"
#include "support/cmocka.h"
#include "support/run.h"

enum { points = 7, most = 20 };

typedef struct stack {
  uint32_t count; /* of rows */
  int64_t high;   /* of each */
  bool computed;  /* of all of them, before they are turned */
  bool other;     /* of them and of another matrix */
} stack;

/* x: points x count high. */
static AX_BODY_OF(stacked, const stack, s) {
  ax_value rows[most];
  for (uint32_t i = 0; i < s->count; i++) {
    const int64_t from[] = {0, (int64_t)i * s->high}, to[] = {points, ((int64_t)i + 1) * s->high};
    rows[i] = ax_mul(ax_reshape(ax_slice(in[0], from, to, NULL), AX_DIMS(s->high, points)),
                     ax_full(AX_F32, AX_DIMS(s->high, points), i + 1));
  }
  ax_value all = ax_concatenate(AX_LIST(s->count, rows), 0);
  if (s->computed)
    all = ax_neg(ax_mul(all, ax_broadcast_in_dim(ax_full(AX_F32, AX_DIMS(), 0.5), AX_DIMS(s->count * s->high, points), AX_DIMS())));
  if (s->other) all = ax_add(all, ax_reshape(in[0], AX_DIMS(s->count * s->high, points)));
  out[0] = ax_transpose(all, AX_DIMS(1, 0));
}

static uint32_t turned_in(const ax_program *program, uint32_t *side_by_side) {
  uint32_t turned = 0;
  *side_by_side = 0;
  for (uint32_t e = 0; e < program->eqn_count; e++) {
    const ax_type *type = &program->types[program->eqns[e].out];
    turned += program->eqns[e].prim == &ax_prim_transpose && type->rank == 2 && type->dims[0] > 1 && type->dims[1] > 1;
    *side_by_side += program->eqns[e].prim == &ax_prim_concatenate && type->dims[0] == points;
  }
  return turned;
}

static void expect(const stack *s, bool columns) {
  const ax_type type = TEST_TYPE(AX_F32, points, s->count * s->high);
  ax_program *program = test_trace(stacked, (void *)(uintptr_t)s, &type, 1, 1), *simple;
  uint32_t side_by_side;
  TEST_OK(ax_program_simplify(program, &simple));
  assert_int_equal(turned_in(simple, &side_by_side), columns ? s->computed : 1); /* that of the number it is multiplied by */
  assert_int_equal(side_by_side, columns);
  test_random_run(program, s->count, false, 0);
  ax_program_release(simple);
  ax_program_release(program);
}

static void few_rows(void **state) {
  (void)state;
  for (uint32_t count = 2; count <= 16; count += 7) {
    expect(&(stack){count, 1, false, false}, true);
    expect(&(stack){count, 1, true, false}, true);
  }
}

static void what_stays(void **state) {
  (void)state;
  expect(&(stack){17, 1, false, false}, false); /* many */
  expect(&(stack){3, 2, false, false}, false);  /* rows that are matrices */
  expect(&(stack){3, 1, false, true}, false);   /* a matrix would have to be turned, too */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(few_rows), cmocka_unit_test(what_stays)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
