/* Values in the place where they are needed: carries and donated arguments that branches leave as they are, change a row of, or change all
   of. What comes out is what it was with copies, under every policy, and the copies are counted. */
#include "axle/ops.h"
#include "plan/passes.h"
#include "support/cmocka.h"
#include "support/run.h"

enum { rows = 8, columns = 16 };

static ax_value row(ax_value i) { return ax_dynamic_slice_in_dim(i, ax_full(AX_S32, AX_DIMS(), 2), 1, 0); }

/* Cases: (x, i) -> x. */
static AX_BODY(keep) {
  (void)context;
  out[0] = in[0];
}
static AX_BODY(add) {
  (void)context;
  out[0] = ax_add(in[0], ax_real(1));
}
static AX_BODY(set_row) {
  (void)context;
  out[0] = ax_dynamic_update_slice_in_dim(in[0], ax_full(AX_F32, AX_DIMS(1, columns), 7), in[1], 0);
}
static AX_BODY(set_rows) {
  (void)context;
  ax_value once = ax_dynamic_update_slice_in_dim(in[0], ax_full(AX_F32, AX_DIMS(1, columns), 7), in[1], 0);
  out[0] = ax_dynamic_update_slice_in_dim(once, ax_mul(row(once), ax_real(2)), ax_full(AX_S32, AX_DIMS(), 3), 0);
}
/* Reads the old value where the new one has been written to. */
static AX_BODY(set_from_old) {
  (void)context;
  out[0] = ax_dynamic_update_slice_in_dim(ax_add(in[0], ax_real(1)), row(in[0]), in[1], 0);
}
static AX_BODY(turn) {
  (void)context;
  out[0] = ax_reshape(ax_transpose(in[0], AX_DIMS(1, 0)), AX_DIMS(rows, columns));
}

typedef struct loop {
  ax_function cases[3];
  bool old_is_read; /* after the branch */
  int64_t length;
} loop;

static void choose(const loop *l, ax_value x, ax_value i, ax_value *out) {
  const ax_value in[] = {x, i};
  const ax_fn cases[] = {AX_FN(l->cases[0], 2, 1), AX_FN(l->cases[1], 2, 1), AX_FN(l->cases[2], 2, 1)};
  ax_switch(ax_rem(i, ax_full(AX_S32, AX_DIMS(), 3)), AX_LIST(3, cases), AX_LIST(2, in), AX_LIST(1, out));
}

/* (x, sum, i) -> (x, sum, i) */
static AX_BODY(step) {
  const loop *l = context;
  choose(l, in[0], in[2], &out[0]);
  out[1] = ax_add(in[1], row(l->old_is_read ? in[0] : out[0]));
  out[2] = ax_add(in[2], ax_integer(1));
}

static AX_BODY(looped) {
  const loop *l = context;
  const ax_value start[] = {ax_sin(in[0]), ax_full(AX_F32, AX_DIMS(1, columns), 0), ax_full(AX_S32, AX_DIMS(), 0)};
  ax_value end[3];
  ax_scan(AX_CLOSURE(step, 3, 3, context), 3, l->length, false, start, end);
  out[0] = end[0];
  out[1] = end[1];
}

static AX_BODY(once) { choose(context, in[0], in[1], &out[0]); }

/* Copies of whole arrays of so many elements, anywhere. */
typedef struct counted {
  const ax_plan *plan;
  int64_t elems;
  uint32_t copies;
} counted;

static void count(void *context, ax_op *op) {
  counted *c = context;
  uint32_t to, from;
  c->copies += ax_op_copies_all(op, &to, &from) && ax_type_elems(&c->plan->buffers[to].type) == c->elems;
}

static void expect_of(int64_t elems, ax_program *program, const bool *donate, uint32_t copies) {
  ax_plan *plan = test_plan(program);
  counted c = {.plan = plan, .elems = elems};
  plan->donate = donate;
  TEST_OK(ax_plan_optimise(plan, "coalesce", NULL));
  TEST_OK(ax_plan_verify(plan));
  ax_block_walk(&plan->block, count, &c);
  assert_int_equal(c.copies, copies);
  plan->donate = NULL;
  ax_plan_destroy(plan);
  test_random_run(program, 5, false, 1e-5);
  ax_program_release(program);
}

static void expect(ax_program *program, const bool *donate, uint32_t copies) { expect_of(rows * columns, program, donate, copies); }

static void expect_loop(loop l, uint32_t copies) {
  const ax_type type = TEST_TYPE(AX_F32, rows, columns);
  l.length = 7;
  expect(test_trace(looped, &l, &type, 1, 2), NULL, copies);
}

static void expect_once(loop l, uint32_t copies) {
  const ax_type types[] = {TEST_TYPE(AX_F32, rows, columns), TEST_SCALAR(AX_S32)};
  static const bool all[] = {true, true};
  expect(test_trace(once, &l, types, 2, 1), all, copies);
}

static void carries(void **state) {
  (void)state;
  expect_loop((loop){.cases = {keep, add, keep}}, 0);
  expect_loop((loop){.cases = {keep, set_row, add}}, 0);
  expect_loop((loop){.cases = {set_rows, set_row, keep}}, 0);
  expect_loop((loop){.cases = {keep, set_from_old, keep}}, 1); /* what is made of the old value has a place of its own first */
  expect_loop((loop){.cases = {keep, turn, set_row}}, 1);
}

/* A value that is read later than another one is there. */
static void carries_read_late(void **state) {
  (void)state;
  expect_loop((loop){.cases = {keep, add, keep}, .old_is_read = true}, 3);
  expect_loop((loop){.cases = {keep, set_row, add}, .old_is_read = true}, 3);
}

static void donations(void **state) {
  (void)state;
  expect_once((loop){.cases = {keep, add, keep}}, 0);
  expect_once((loop){.cases = {keep, set_row, set_rows}}, 0);
  expect_once((loop){.cases = {add, set_from_old, keep}}, 1);
}

/* --- Values made by several operations --- */

typedef struct made {
  bool old_is_read; /* after the first of them */
  bool by_loop;     /* they are a loop inside */
} made;

static ax_value with_row(ax_value x, ax_value of, ax_value at) {
  return ax_dynamic_update_slice_in_dim(x, ax_add(ax_mul(row(of), ax_real(2)), ax_real(1)), at, 0);
}

/* (x, i) -> (x, i) */
static AX_BODY(step_of_rows) {
  (void)context;
  const ax_value x = ax_sin(in[0]);
  out[0] = with_row(x, x, in[1]);
  out[1] = ax_add(in[1], ax_integer(1));
}

/* (x, sum, i) -> (x, sum, i) */
static AX_BODY(make) {
  const made *m = context;
  ax_value x = ax_broadcast_to(in[1], AX_DIMS(rows, columns));
  if (m->by_loop) {
    const ax_value start[] = {x, ax_full(AX_S32, AX_DIMS(), 0)};
    ax_value end[2];
    ax_scan(AX_CLOSURE(step_of_rows, 2, 2, NULL), 2, 3, false, start, end);
    x = end[0];
  }
  x = ax_dynamic_update_slice_in_dim(x, ax_full(AX_F32, AX_DIMS(1, columns), 3), in[2], 0);
  x = with_row(x, m->old_is_read ? in[0] : x, ax_full(AX_S32, AX_DIMS(), 5));
  out[0] = x;
  out[1] = ax_add(in[1], row(x));
  out[2] = ax_add(in[2], ax_integer(1));
}

static AX_BODY(make_repeatedly) {
  const ax_value start[] = {ax_sin(in[0]), ax_full(AX_F32, AX_DIMS(1, columns), 0), ax_full(AX_S32, AX_DIMS(), 0)};
  ax_value end[3];
  ax_scan(AX_CLOSURE(make, 3, 3, context), 3, 5, false, start, end);
  out[0] = end[0];
  out[1] = end[1];
}

static void made_by_several(void **state) {
  const ax_type type = TEST_TYPE(AX_F32, rows, columns);
  (void)state;
  for (int inside = 0; inside < 2; inside++)
    for (int late = 0; late < 2; late++) {
      made m = {.by_loop = inside, .old_is_read = late};
      expect(test_trace(make_repeatedly, &m, &type, 1, 2), NULL, (uint32_t)late);
    }
}

/* --- Complex numbers, whose parts a kernel of one step reads and writes --- */

/* (z, i) -> (z z + c, i + 1), while i < 20 and Re z < 4 */
static AX_BODY(stays_small) {
  (void)context;
  out[0] = ax_and(ax_lt(in[1], ax_integer(20)), ax_lt(ax_real_part(in[0]), ax_real(4)));
}
static AX_BODY(squared_and_added) {
  out[0] = ax_add(ax_mul(in[0], in[0]), *(const ax_value *)context);
  out[1] = ax_add(in[1], ax_integer(1));
}
static AX_BODY(complex_carry) {
  ax_value c = ax_complex(ax_mul(in[0], ax_real(0.2)), ax_mul(in[0], ax_real(-0.1))), end[2];
  (void)context;
  ax_while(AX_FN(stays_small, 2, 1), AX_CLOSURE(squared_and_added, 2, 2, &c), AX_VALUES(ax_mul(c, c), ax_full(AX_S32, AX_DIMS(), 0)), end);
  out[0] = ax_real_part(end[0]), out[1] = ax_imag_part(end[0]);
}

static void parts_of_a_number(void **state) {
  const ax_type type = TEST_SCALAR(AX_F32);
  (void)state;
  expect_of(2, test_trace(complex_carry, NULL, &type, 1, 2), NULL, 1); /* the start is copied, once */
}

/* --- Memory that is read as numbers of fewer bytes: element i is at another place, and is read behind what was written there --- */

enum { numbers = 300 };

static AX_BODY(first_parts) {
  const ax_dtype *narrow = context, dtype = ax_typeof(in[0]).dtype;
  const ax_value parts = ax_reshape(ax_bitcast_convert_type(in[0], *narrow), AX_DIMS(-1));
  out[0] = ax_convert_element_type(ax_slice_in_dim(parts, 0, numbers, 1, 0), dtype);
}
/* Of numbers all of whose bytes differ from those beside them. */
static AX_BODY(parts_repeatedly) {
  const ax_dtype dtype = ax_typeof(in[0]).dtype;
  const ax_value counted = ax_add(ax_iota(dtype, AX_DIMS(numbers), 0), in[0]), start = ax_mul(counted, ax_full(dtype, AX_DIMS(), dtype == AX_U16 ? 0x7b51 : 0x5e3d7b51));
  ax_scan(AX_CLOSURE(first_parts, 1, 1, context), 1, 3, false, &start, out);
}
static AX_BODY(parts_or_the_same) {
  const ax_fn cases[] = {AX_CLOSURE(first_parts, 1, 1, context), AX_FN(keep, 1, 1)};
  ax_switch(in[1], AX_LIST(2, cases), AX_LIST(1, in), AX_LIST(1, out));
  out[1] = ax_sub(ax_integer(1), in[1]);
}
static AX_BODY(parts_by_turns) {
  const ax_value start[] = {ax_add(ax_iota(ax_typeof(in[0]).dtype, AX_DIMS(numbers), 0), in[0]), ax_full(AX_S32, AX_DIMS(), 0)};
  ax_scan(AX_CLOSURE(parts_or_the_same, 2, 2, context), 2, 3, false, start, out);
}

static void parts_of_integers(void **state) {
  static const ax_dtype wide[] = {AX_U16, AX_U32, AX_U32, AX_S64}, narrow[] = {AX_U8, AX_U16, AX_S8, AX_U16};
  (void)state;
  for (size_t i = 0; i < AX_COUNT(wide); i++) {
    const ax_type type = TEST_TYPE(wide[i], numbers);
    void *context = (void *)(uintptr_t)&narrow[i];
    ax_program *made[] = {test_trace(parts_repeatedly, context, &type, 1, 1), test_trace(parts_by_turns, context, &type, 1, 2)};
    for (size_t k = 0; k < AX_COUNT(made); k++) {
      test_random_run(made[k], 5, false, 0);
      ax_program_release(made[k]);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(carries), cmocka_unit_test(carries_read_late), cmocka_unit_test(donations),
                                     cmocka_unit_test(made_by_several), cmocka_unit_test(parts_of_a_number),
                                     cmocka_unit_test(parts_of_integers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
