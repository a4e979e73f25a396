/* Loops with a counter and unchanged carries, as scans that slice: they compute the same; what is no such loop stays. */
#include "planner/sliced.h"

#include <stdio.h>
#include <string.h>

#include "axle/axle.h"
#include "control/scan.h"
#include "prim/prims.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/tensor.h"

/* The body gets w: f32[5,4], h: f32[4], i: s32[]; `step` is what it makes of them. */
static const char frame[] =
    "{ lambda w:f64[5,4] x:f64[4]. let a:f64[5,4] b:f64[4] c:s32[] = scan[length=5 reverse=%s num_consts=0 num_carry=3 body={ lambda "
    "w:f64[5,4] h:f64[4] i:s32[]. let %s }] w x %s:s32[] in (b, c, a) }";

/* The scan of the rewritten program: its carries, and what it slices. */
static void rewrite(const char *reverse, const char *step, const char *start, int64_t carries, int64_t sliced) {
  char text[2048];
  ax_program *program, *made;
  test_random random = {.state = 3};
  snprintf(text, sizeof text, frame, reverse, step, start);
  TEST_OK(ax_program_parse(text, strlen(text), "test", &program));
  TEST_OK(ax_program_slice_loops(program, &made));
  TEST_OK(ax_program_verify(made));
  ax_tensor *in[] = {test_random_tensor(&random, program->types[0], -1, 1), test_random_tensor(&random, program->types[1], -1, 1)};
  ax_tensor *expected[3], *out[3];
  test_run(program, in, expected);
  test_run(made, in, out);
  for (int k = 0; k < 3; k++) assert_true(test_same_tensors(out[k], expected[k]));
  const ax_eqn *scan = NULL;
  for (uint32_t e = 0; e < made->eqn_count; e++)
    if (made->eqns[e].prim == &ax_prim_scan) scan = &made->eqns[e];
  assert_non_null(scan);
  const ax_scan_params *params = scan->params;
  assert_int_equal(params->num_carry, carries);
  assert_int_equal(scan->in_count - params->num_consts - params->num_carry, sliced);
  test_release(in, 2);
  test_release(out, 3);
  test_release(expected, 3);
  ax_program_release(program);
  ax_program_release(made);
}

#define NEXT "j:s32[] = add i 1:s32[] "
#define SLICE "s:f64[1,4] = dynamic_slice[slice_sizes=(1, 4)] w i 0:s32[] t:f64[4] = reshape[new_sizes=(4)] s g:f64[4] = add h t "

static void test_loops(void **state) {
  (void)state;
  rewrite("false", SLICE NEXT "in (w, g, j)", "0", 2, 1);
  /* In a function, as JAX writes it. */
  rewrite("false",
          "t:f64[4] = closed_call[body={ lambda w:f64[5,4] i:s32[]. let s:f64[1,4] = dynamic_slice[slice_sizes=(1, 4)] w i 0:s32[] "
          "t:f64[4] = reshape[new_sizes=(4)] s in (t) }] w i g:f64[4] = add h t j:s32[] = add 1:s32[] i in (w, g, j)",
          "0", 2, 1);
  /* Read whole besides: a constant of the loop. */
  rewrite("false", SLICE "r:f64[4] = reduce_sum[axes=(0)] w k:f64[4] = add g r " NEXT "in (w, k, j)", "0", 2, 0);
  /* Another start, another step, backwards, a slice that is not at the counter, a carry that changes. */
  rewrite("false", SLICE NEXT "in (w, g, j)", "1", 2, 0);
  rewrite("false", SLICE "j:s32[] = add i 2:s32[] in (w, g, j)", "0", 2, 0);
  rewrite("true", SLICE NEXT "in (w, g, j)", "0", 2, 0);
  rewrite("false", "s:f64[1,4] = dynamic_slice[slice_sizes=(1, 4)] w 2:s32[] 0:s32[] t:f64[4] = reshape[new_sizes=(4)] s g:f64[4] = add h t " NEXT
          "in (w, g, j)", "0", 2, 0);
  rewrite("false", SLICE "u:f64[5,4] = neg w " NEXT "in (u, g, j)", "0", 3, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_loops)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
