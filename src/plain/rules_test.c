/* What rules are made of: parameters by name; a reduction's tree by mathematics; messages alone; exchanges of rows written out in a trace;
   the table of platforms. */
#include <stdio.h>
#include <string.h>

#include "axle/ops.h"
#include "collectives/ragged.h"
#include "ops/reduce.h"
#include "plain/matrix.h"
#include "plain/plain.h"
#include "plain/rules.h"
#include "prim/prims.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/tensor.h"

static ax_program *parsed(const char *text) {
  ax_program *program;
  TEST_OK(ax_program_parse(text, strlen(text), NULL, &program));
  return program;
}

static void parameters_by_name(void **state) {
  (void)state;
  ax_program *program = parsed("{ axes d=2 ; lambda a:f32[3]{V:d}. let b:f32[3]{V:d} = pbroadcast[axes=(d,) source=1] a "
                               "c:f32[3]{V:d} = cumsum[axis=0 reverse=true] b in (c) }");
  assert_int_equal(*(const int64_t *)ax_plain_parameter(&program->eqns[0], "source"), 1);
  assert_true(ax_plain_bool(&program->eqns[1], "reverse"));
  assert_true(ax_plain_lapack(&(ax_plain_lacks){.lapack = true}, NULL, NULL, NULL));
  assert_false(ax_plain_lapack(&(ax_plain_lacks){.messages = true}, NULL, NULL, NULL));
  ax_program_release(program);
}

/* Of a b + a + b: (1 + start) times the product of 1 + x, less 1; also of no elements, and over no axes. */
#define BODY "body={ lambda a:f64[] b:f64[]. let c:f64[] = mul a b d:f64[] = add a b e:f64[] = add c d in (e) }"
static AX_BODY(expanded) { ax_reduce_expand(context, in, out); }

static void check_reduction(const char *text, int64_t rows, int64_t columns) {
  ax_program *program = parsed(text), *tree;
  test_random random = {(uint64_t)columns};
  ax_tensor *in[2], *out;
  TEST_OK(ax_trace(AX_CLOSURE(expanded, 2, 1, &program->eqns[0]), program->types, &tree));
  assert_int_equal(test_count_prim(tree, "reduce"), 0);
  for (int i = 0; i < 2; i++) in[i] = test_random_tensor(&random, program->types[i], -0.5, 0.5);
  test_run(tree, in, &out);
  for (int64_t r = 0; r < rows; r++) {
    double product = 1 + test_get(in[1], 0);
    for (int64_t c = 0; c < columns; c++) product *= 1 + test_get(in[0], r * columns + c);
    TEST_NEAR(test_get(out, r), product - 1, 1e-13);
  }
  test_release(in, 2), ax_tensor_release(out);
  ax_program_release(program), ax_program_release(tree);
}

static void starts_once(void **state) {
  (void)state;
  check_reduction("{ lambda a:f64[3,37] b:f64[]. let c:f64[3] = reduce[" BODY " axes=(1,)] a b in (c) }", 3, 37);
  check_reduction("{ lambda a:f64[3,0] b:f64[]. let c:f64[3] = reduce[" BODY " axes=(1,)] a b in (c) }", 3, 0);
  check_reduction("{ lambda a:f64[6] b:f64[]. let c:f64[6] = reduce[" BODY " axes=()] a b in (c) }", 6, 1);
}

static void assert_same_text(const ax_program *a, const ax_program *b) {
  char *texts[2];
  TEST_OK(ax_program_print(a, &texts[0]));
  TEST_OK(ax_program_print(b, &texts[1]));
  assert_string_equal(texts[0], texts[1]);
  ax_string_free(texts[0]), ax_string_free(texts[1]);
}

static void messages_alone(void **state) {
  (void)state;
  ax_program *silent = parsed("{ axes d=2 ; lambda a:f32[3]{V:d}. let b:f32[3]{V:d} = neg a in (b) }"), *made;
  TEST_OK(ax_plain_messages(silent, &made));
  assert_same_text(made, silent);
  ax_program_release(silent), ax_program_release(made);
  ax_program *sends = parsed("{ axes d=2 ; lambda a:f32[3]{V:d}. let t:token{V:d} = psend[axes=(d,) pairs=((0, 1),) link=0] a "
                             "b:f32[3]{V:d} = precv[dtype=f32 dims=(3,) axes=(d,) pairs=((0, 1),) link=0] t in (b) }");
  ax_program *moves = parsed("{ axes d=2 ; lambda a:f32[3]{V:d}. let b:f32[3]{V:d} = ppermute[axes=(d,) pairs=((0, 1),)] a in (b) }");
  TEST_OK(ax_plain_messages(sends, &made));
  assert_same_text(made, moves);
  ax_program_release(sends), ax_program_release(moves), ax_program_release(made);
}

static AX_BODY(written) { ax_ragged_written_out(context, in, out); }

static void written_out_in_a_trace(void **state) {
  (void)state;
  const ax_ragged_params params = {.axes = {.count = 1, .name = {"d"}}, .batch = 1};
  ax_type types[6] = {TEST_TYPE(AX_F32, 2, 5), TEST_TYPE(AX_F32, 2, 4)};
  ax_program *whole, *traced;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=2", &mesh));
  for (int k = 2; k < 6; k++) types[k] = TEST_TYPE(AX_S32, 2, 2);
  for (int k = 0; k < 6; k++) types[k].spread.varying = 1;
  TEST_OK(ax_ragged_write_out(&mesh, &params, types, &whole));
  TEST_OK(ax_trace_on(&mesh, AX_CLOSURE(written, 6, 1, &params), types, &traced));
  assert_same_text(traced, whole);
  ax_program_release(whole), ax_program_release(traced);
}

static const ax_plain_lacks *lacks_of(const char *name) {
  const ax_plain_platform *platform = ax_plain_platforms;
  while (platform->name != NULL && strcmp(platform->name, name) != 0) platform++;
  return &platform->lacks;
}

static void platforms(void **state) {
  (void)state;
  const ax_plain_lacks *cuda = lacks_of("cuda"), *other = lacks_of("another"), *own = lacks_of("axle");
  assert_false(cuda->collective_broadcast || cuda->ragged_all_to_all); /* which NCCL has */
  assert_true(cuda->messages && cuda->byte_combinations);
  assert_true(lacks_of("cpu")->wide_sums && other->collective_broadcast && other->ragged_all_to_all && other->lapack);
  assert_false(other->wide_sums || own->lapack || own->messages || own->starts_once);
}

/* Paddings that cut go by way of bytes; others stay as they are. */
static void short_cuts(void **state) {
  static const char *const paddings[] = {"low=(-1) high=(-2) interior=(0)", "low=(-1) high=(2) interior=(1)", "low=(1) high=(2) interior=(1)"};
  static const char *const dtypes[] = {"s4", "u4", "s2", "s8"};
  test_random random = {11};
  (void)state;
  for (size_t d = 0; d < AX_COUNT(dtypes); d++)
    for (size_t k = 0; k < AX_COUNT(paddings); k++) {
      char text[256];
      ax_program *plain;
      ax_tensor *in[2], *got, *wanted;
      snprintf(text, sizeof text, "{ lambda a:%s[5] b:%s[]. let c:%s[%s] = pad[%s] a b in (c) }", dtypes[d], dtypes[d], dtypes[d],
               k == 0 ? "2" : k == 1 ? "10" : "12", paddings[k]);
      ax_program *program = parsed(text);
      TEST_OK(ax_plain_program(program, lacks_of("cuda"), &plain));
      assert_true((plain != program) == (d < 3 && k < 2));
      for (int i = 0; i < 2; i++) in[i] = test_random_tensor(&random, program->types[i], -2, 2);
      test_run(program, in, &wanted), test_run(plain, in, &got);
      assert_true(test_same_tensors(got, wanted));
      test_release(in, 2), ax_tensor_release(got), ax_tensor_release(wanted);
      ax_program_release(program), ax_program_release(plain);
    }
}

static void epsilons(void **state) {
  (void)state;
  assert_true(ax_plain_epsilon(AX_F32) == 0x1p-23 && ax_plain_epsilon(AX_F64) == 0x1p-52);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(parameters_by_name), cmocka_unit_test(starts_once), cmocka_unit_test(messages_alone),
                                     cmocka_unit_test(written_out_in_a_trace), cmocka_unit_test(platforms), cmocka_unit_test(short_cuts),
                                     cmocka_unit_test(epsilons)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
