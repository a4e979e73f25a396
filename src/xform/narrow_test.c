/* What is computed of arrays of which slices read a part. */
#include "xform/narrow.h"

#include <stdio.h>
#include <string.h>

#include "axle/program.h"
#include "ir/program.h"
#include "support/cmocka.h"
#include "support/tensor.h"

static ax_program *parsed(const char *text) {
  ax_program *program;
  TEST_OK(ax_program_parse(text, strlen(text), "t", &program));
  return program;
}

/* `text`, narrowed, is `wanted`; nothing is left to narrow in that. */
static void expect(const char *text, const char *wanted) {
  ax_program *program = parsed(text), *other = parsed(wanted), *made, *again;
  TEST_OK(ax_program_narrow(program, &made));
  if (!ax_program_equal(made, other)) {
    char *left = NULL;
    TEST_OK(ax_program_print(made, &left));
    fail_msg("%s", left);
  }
  TEST_OK(ax_program_narrow(made, &again));
  assert_ptr_equal(again, made);
  ax_program *all[] = {program, other, made, again};
  for (size_t i = 0; i < AX_COUNT(all); i++) ax_program_release(all[i]);
}

static void expect_same(const char *text) { expect(text, text); }

#define SLICE(start, limit) "slice[start_indices=" start " limit_indices=" limit " strides=(1,1)] "

static void pointwise(void **state) {
  (void)state;
  expect("{ lambda x:f32[8,4] v:f32[]. let a:f32[8,4] = exp x b:f32[8,4] = broadcast_in_dim[shape=(8,4) broadcast_dimensions=()] v "
         "c:f32[8,4] = add a b d:f32[1,4] = " SLICE("(5,0)", "(6,4)") "c in (d) }",
         "{ lambda x:f32[8,4] v:f32[]. let s:f32[1,4] = " SLICE("(5,0)", "(6,4)") "x a:f32[1,4] = exp s "
         "b:f32[1,4] = broadcast_in_dim[shape=(1,4) broadcast_dimensions=()] v c:f32[1,4] = add a b in (c) }");
}

/* Both parts lie in rows 1 to 4, which are computed; of two thirds of the rows all are. */
static void parts_together(void **state) {
  (void)state;
  expect("{ lambda x:f32[9,4]. let a:f32[9,4] = exp x b:f32[1,4] = " SLICE("(1,0)", "(2,4)") "a c:f32[1,4] = " SLICE("(3,0)", "(4,4)") "a in (b, c) }",
         "{ lambda x:f32[9,4]. let s:f32[3,4] = " SLICE("(1,0)", "(4,4)") "x a:f32[3,4] = exp s b:f32[1,4] = " SLICE("(0,0)", "(1,4)")
         "a c:f32[1,4] = " SLICE("(2,0)", "(3,4)") "a in (b, c) }");
  expect_same("{ lambda x:f32[9,4]. let a:f32[9,4] = exp x b:f32[6,4] = " SLICE("(1,0)", "(7,4)") "a in (b) }");
  expect_same("{ lambda x:f32[9,4]. let a:f32[9,4] = exp x b:f32[1,4] = " SLICE("(1,0)", "(2,4)") "a in (a, b) }");
  expect_same("{ lambda x:f32[9,4]. let b:f32[1,4] = " SLICE("(1,0)", "(2,4)") "x c:f32[1,4] = exp b in (c) }");
}

static void steps(void **state) {
  (void)state;
  expect("{ lambda x:f32[20]. let a:f32[20] = exp x b:f32[3] = slice[start_indices=(3) limit_indices=(10) strides=(3)] a in (b) }",
         "{ lambda x:f32[20]. let s:f32[7] = slice[start_indices=(3) limit_indices=(10) strides=(1)] x a:f32[7] = exp s "
         "b:f32[3] = slice[start_indices=(0) limit_indices=(7) strides=(3)] a in (b) }");
}

static void products_and_sums(void **state) {
  (void)state;
  expect("{ lambda h:f32[8,5] w:f32[5,6]. let a:f32[8,6] = dot_general[lhs_contract=(1) rhs_contract=(0) lhs_batch=() rhs_batch=()] h w "
         "b:f32[1,6] = " SLICE("(7,0)", "(8,6)") "a in (b) }",
         "{ lambda h:f32[8,5] w:f32[5,6]. let s:f32[1,5] = " SLICE("(7,0)", "(8,5)") "h "
         "a:f32[1,6] = dot_general[lhs_contract=(1) rhs_contract=(0) lhs_batch=() rhs_batch=()] s w in (a) }");
  expect("{ lambda x:f32[8,5]. let a:f32[8] = reduce_sum[axes=(1)] x b:f32[2] = slice[start_indices=(0) limit_indices=(2) strides=(1)] a in (b) }",
         "{ lambda x:f32[8,5]. let s:f32[2,5] = " SLICE("(0,0)", "(2,5)") "x a:f32[2] = reduce_sum[axes=(1)] s in (a) }");
}

/* Indices that are computed from their place stay whole: counting, running sums. */
static void places_count(void **state) {
  (void)state;
  expect_same("{ lambda . let a:s32[8] = iota[dtype=s32 shape=(8) dimension=0] b:s32[2] = slice[start_indices=(5) limit_indices=(7) strides=(1)] a in (b) }");
  expect_same("{ lambda x:f32[8]. let a:f32[8] = cumsum[axis=0 reverse=false] x b:f32[2] = slice[start_indices=(5) limit_indices=(7) strides=(1)] a in (b) }");
}

static void shapes(void **state) {
  (void)state;
  expect("{ lambda x:f32[8,4]. let a:f32[8,4] = exp x b:f32[32] = reshape[new_sizes=(32)] a "
         "c:f32[3] = slice[start_indices=(5) limit_indices=(8) strides=(1)] b in (c) }",
         "{ lambda x:f32[8,4]. let s:f32[1,4] = " SLICE("(1,0)", "(2,4)") "x a:f32[1,4] = exp s b:f32[4] = reshape[new_sizes=(4)] a "
         "c:f32[3] = slice[start_indices=(1) limit_indices=(4) strides=(1)] b in (c) }");
  expect("{ lambda x:f32[8,4]. let a:f32[8,4] = exp x b:f32[4,8] = transpose[permutation=(1,0)] a c:f32[1,8] = " SLICE("(2,0)", "(3,8)") "b in (c) }",
         "{ lambda x:f32[8,4]. let s:f32[8,1] = " SLICE("(0,2)", "(8,3)") "x a:f32[8,1] = exp s b:f32[1,8] = transpose[permutation=(1,0)] a in (b) }");
}

/* What is turned, laid behind others, padded; of operands that nothing is read of, nothing is computed. */
static void moved(void **state) {
  (void)state;
  expect("{ lambda x:f32[8]. let e:f32[8] = exp x a:f32[8] = rev[dimensions=(0)] e b:f32[2] = slice[start_indices=(5) limit_indices=(7) strides=(1)] a in (b) }",
         "{ lambda x:f32[8]. let s:f32[2] = slice[start_indices=(1) limit_indices=(3) strides=(1)] x e:f32[2] = exp s a:f32[2] = rev[dimensions=(0)] e in (a) }");
  expect("{ lambda x:f32[4] y:f32[6]. let e:f32[4] = exp x f:f32[6] = tanh y a:f32[14] = concatenate[dimension=0] e f e "
         "b:f32[4] = slice[start_indices=(8) limit_indices=(12) strides=(1)] a in (b) }",
         "{ lambda x:f32[4] y:f32[6]. let s:f32[2] = slice[start_indices=(0) limit_indices=(2) strides=(1)] x e:f32[2] = exp s "
         "t:f32[2] = slice[start_indices=(4) limit_indices=(6) strides=(1)] y f:f32[2] = tanh t a:f32[4] = concatenate[dimension=0] f e in (a) }");
  expect("{ lambda x:f32[9] v:f32[]. let e:f32[9] = exp x a:f32[14] = pad[low=(3) high=(2) interior=(0)] e v "
         "b:f32[5] = slice[start_indices=(1) limit_indices=(6) strides=(1)] a in (b) }",
         "{ lambda x:f32[9] v:f32[]. let s:f32[3] = slice[start_indices=(0) limit_indices=(3) strides=(1)] x e:f32[3] = exp s "
         "a:f32[5] = pad[low=(2) high=(0) interior=(0)] e v in (a) }");
  expect("{ lambda x:f32[9] v:f32[]. let e:f32[9] = exp x a:f32[14] = pad[low=(3) high=(2) interior=(0)] e v "
         "b:f32[2] = slice[start_indices=(0) limit_indices=(2) strides=(1)] a in (b) }",
         "{ lambda x:f32[9] v:f32[]. let b:f32[2] = broadcast_in_dim[shape=(2) broadcast_dimensions=()] v in (b) }");
  expect("{ lambda x:f32[9] v:f32[]. let e:f32[9] = exp x a:f32[6] = pad[low=(-2) high=(-1) interior=(0)] e v "
         "b:f32[2] = slice[start_indices=(1) limit_indices=(3) strides=(1)] a in (b) }",
         "{ lambda x:f32[9] v:f32[]. let s:f32[2] = slice[start_indices=(3) limit_indices=(5) strides=(1)] x e:f32[2] = exp s "
         "a:f32[2] = pad[low=(0) high=(0) interior=(0)] e v in (a) }");
  expect_same("{ lambda x:f32[9] v:f32[]. let e:f32[9] = exp x a:f32[17] = pad[low=(0) high=(0) interior=(1)] e v "
              "b:f32[2] = slice[start_indices=(0) limit_indices=(2) strides=(1)] a in (b) }");
}

/* Shapes that have no rows in common stay whole; so does what has no elements, of which all is read. */
static void no_common_rows(void **state) {
  (void)state;
  expect_same("{ lambda x:f32[2,3,4]. let a:f32[2,3,4] = exp x b:f32[8,3] = reshape[new_sizes=(8,3)] a c:f32[1,3] = " SLICE("(0,0)", "(1,3)") "b in (c) }");
  expect_same("{ lambda x:f32[6,8,10]. let a:f32[6,8,10] = exp x b:f32[60,8] = reshape[new_sizes=(60,8)] a c:f32[10,8] = " SLICE("(20,0)", "(30,8)") "b in (c) }");
  expect_same("{ lambda x:f32[4,0]. let a:f32[4] = reduce_sum[axes=(1)] x b:f32[1] = slice[start_indices=(0) limit_indices=(1) strides=(1)] a in (b) }");
}

#define CALL(body, of) "closed_call[body={ " body " }] " of

/* A call computes what is read of its results, of what is read of its operands; two calls by which the same is read have one body. */
static void calls(void **state) {
  (void)state;
  expect("{ lambda x:f32[8,4]. let a:f32[8,4] = " CALL("lambda x:f32[8,4]. let a:f32[8,4] = exp x b:f32[8,4] = tanh a in (b)", "x")
         " b:f32[1,4] = " SLICE("(2,0)", "(3,4)") "a in (b) }",
         "{ lambda x:f32[8,4]. let s:f32[1,4] = " SLICE("(2,0)", "(3,4)") "x a:f32[1,4] = "
         CALL("lambda x:f32[1,4]. let a:f32[1,4] = exp x b:f32[1,4] = tanh a in (b)", "s") " in (a) }");
  expect("{ lambda x:f32[8,4]. let a:f32[8,4] = exp x b:f32[1,4] = " CALL("lambda x:f32[8,4]. let b:f32[1,4] = " SLICE("(2,0)", "(3,4)") "x in (b)", "a")
         " in (b) }",
         "{ lambda x:f32[8,4]. let s:f32[1,4] = " SLICE("(2,0)", "(3,4)") "x a:f32[1,4] = exp s b:f32[1,4] = "
         CALL("lambda x:f32[1,4]. let in (x)", "a") " in (b) }");
}

/* So however many calls there are. */
static void many_calls(void **state) {
  enum { count = 12 };
  char text[8192];
  size_t at = (size_t)snprintf(text, sizeof text, "{ lambda x:f32[8,4]. let ");
  (void)state;
  for (char c = 'a'; c < 'a' + count; c++)
    at += (size_t)snprintf(text + at, sizeof text - at,
                           "%cx:f32[8,4] = " CALL("lambda x:f32[8,4]. let a:f32[8,4] = exp x b:f32[8,4] = tanh a in (b)", "x")
                           " %cy:f32[1,4] = " SLICE("(2,0)", "(3,4)") "%cx ", c, c, c);
  at += (size_t)snprintf(text + at, sizeof text - at, "in (ay");
  for (char c = 'b'; c < 'a' + count; c++) at += (size_t)snprintf(text + at, sizeof text - at, ", %cy", c);
  snprintf(text + at, sizeof text - at, ") }");
  ax_program *program = parsed(text), *made;
  TEST_OK(ax_program_narrow(program, &made));
  const ax_program *body = NULL;
  uint32_t calls = 0;
  for (uint32_t i = 0; i < made->eqn_count; i++) {
    const ax_program *called = ax_eqn_program(&made->eqns[i], 0);
    if (called == NULL) continue;
    assert_true(body == NULL || called == body);
    assert_int_equal(called->types[called->outs[0]].dims[0], 1);
    body = called;
    calls++;
  }
  assert_int_equal(calls, count);
  ax_program_release(program);
  ax_program_release(made);
}

/* In a loop's body too; its carries and what it goes over stay. */
static void loops(void **state) {
  (void)state;
  expect("{ lambda c:f32[8] x:f32[3,8]. let d:f32[8] y:f32[3,1] = scan[body={ lambda c:f32[8] x:f32[8]. let a:f32[8] = exp x "
         "b:f32[1] = slice[start_indices=(0) limit_indices=(1) strides=(1)] a in (c, b) } length=3 reverse=false num_consts=0 num_carry=1] c x in (d, y) }",
         "{ lambda c:f32[8] x:f32[3,8]. let d:f32[8] y:f32[3,1] = scan[body={ lambda c:f32[8] x:f32[8]. let "
         "s:f32[1] = slice[start_indices=(0) limit_indices=(1) strides=(1)] x a:f32[1] = exp s in (c, a) } length=3 reverse=false num_consts=0 num_carry=1] c x in (d, y) }");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(pointwise),    cmocka_unit_test(parts_together), cmocka_unit_test(steps),
                                     cmocka_unit_test(products_and_sums), cmocka_unit_test(places_count),   cmocka_unit_test(shapes), cmocka_unit_test(moved), cmocka_unit_test(no_common_rows),
                                     cmocka_unit_test(calls), cmocka_unit_test(many_calls),        cmocka_unit_test(loops)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
