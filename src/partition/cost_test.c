/* Costs against counts by hand. */
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "axle/stages.h"
#include "axle/transform.h"
#include "ir/text.h"
#include "support/cmocka.h"
#include "support/run.h"
#include "support/tensor.h"

static ax_cost cost_of(const char *text) {
  ax_program *program;
  ax_cost cost;
  TEST_OK(ax_program_parse(text, strlen(text), "test", &program));
  TEST_OK(ax_program_cost(program, &cost));
  ax_program_release(program);
  return cost;
}

static void expect(const ax_cost *cost, double flops, double bytes, double received) {
  TEST_NEAR(cost->flops, flops, 0);
  TEST_NEAR(cost->bytes, bytes, 0);
  TEST_NEAR(cost->received, received, 0);
}

static void expect_row(const ax_cost *cost, uint32_t i, const char *primitive, const char *axes, int64_t members, double runs,
                       double bytes) {
  assert_true(i < cost->collective_count);
  assert_string_equal(cost->collectives[i].primitive, primitive);
  assert_string_equal(cost->collectives[i].axes, axes);
  assert_int_equal(cost->collectives[i].members, members);
  TEST_NEAR(cost->collectives[i].runs, runs, 0);
  TEST_NEAR(cost->collectives[i].bytes, bytes, 0);
}

/* [4,8] x [8,16]: two for each of 4 * 8 * 16 pairs, and 32 + 128 + 64 elements. exp is one an element; a transpose moves what is
   there; a sum takes what it adds, and argmax what it looks at; a scalar that stands in an equation is not read. */
static void products_and_elements(void **state) {
  (void)state;
  ax_cost cost = cost_of("{ lambda x:f32[4,8] w:f32[8,16]. let\n"
                         "    y:f32[4,16] = dot_general[lhs_contract=(1) rhs_contract=(0) lhs_batch=() rhs_batch=()] x w in (y) }");
  assert_int_equal(cost.devices, 1);
  assert_int_equal(cost.collective_count, 0);
  assert_false(cost.at_least);
  expect(&cost, 1024, 4 * (32 + 128 + 64), 0);
  ax_cost_release(&cost);
  cost = cost_of("{ lambda x:f64[4,8]. let y:f64[4,8] = exp x z:f64[8,4] = transpose[permutation=(1, 0)] y in (z) }");
  expect(&cost, 32, 4 * 32 * 8, 0);
  ax_cost_release(&cost);
  cost = cost_of(
      "{ lambda x:f32[4,8]. let y:f32[4] = reduce_sum[axes=(1)] x z:s32[4] = argmax[axes=(1) index_dtype=s32] x in (y, z) }");
  expect(&cost, 64, 4 * 2 * (32 + 4), 0);
  ax_cost_release(&cost);
  cost = cost_of("{ lambda x:f32[]. let y:f32[] = mul x 2.0:f32[] in (y) }");
  expect(&cost, 1, 8, 0);
  ax_cost_release(&cost);
}

#define ON(mesh_, spec_, result_, takes_, body_, gives_)                                                                         \
  "{ lambda x:" takes_ ". let y:" gives_ " = shard_map[mesh=(" mesh_ ") unchecked=true in_specs=(" spec_ ") out_specs=(" result_ \
  ") body={ " body_ " }] x in (y) }"

/* An [8,8] of f32 on each of four devices: 256 bytes. */
static void collectives(void **state) {
  (void)state;
  ax_cost cost = cost_of(
      ON("d=4", "P(d)", "P()", "f32[32,8]", "axes d=4? ; lambda x:f32[8,8]. let y:f32[8,8] = psum[axes=(d)] x in (y)", "f32[8,8]"));
  assert_int_equal(cost.devices, 4);
  expect(&cost, 0, 512, 384);
  assert_int_equal(cost.collective_count, 1);
  expect_row(&cost, 0, "psum", "d", 4, 1, 384);
  ax_cost_release(&cost);
  cost = cost_of(ON("d=4", "P(d)", "P()", "f32[32,8]",
                    "axes d=4? ; lambda x:f32[8,8]. let y:f32[32,8] = all_gather[axes=(d) dimension=0] x in (y)", "f32[32,8]"));
  expect(&cost, 0, 256 * 5, 768);
  ax_cost_release(&cost);
  cost = cost_of(ON("d=4", "P(d)", "P(d)", "f32[32,8]",
                    "axes d=4? ; lambda x:f32[8,8]. let y:f32[2,8] = psum_scatter[axes=(d) dimension=0] x in (y)", "f32[8,8]"));
  expect(&cost, 0, 256 + 64, 192);
  ax_cost_release(&cost);
  cost = cost_of(ON("d=4", "P(d)", "P(d)", "f32[32,8]",
                    "axes d=4? ; lambda x:f32[8,8]. let y:f32[8,8] = ppermute[axes=(d) pairs=((0, 1))] x in (y)", "f32[32,8]"));
  expect(&cost, 0, 512, 256);
  ax_cost_release(&cost);
  cost = cost_of(ON("d=4", "P(d)", "P()", "f32[32,8]",
                    "axes d=4? ; lambda x:f32[8,8]. let y:f32[8,8] = psum[axes=(d {0,1} {2,3})] x in (y)", "f32[8,8]"));
  expect_row(&cost, 0, "psum", "d", 2, 1, 256);
  ax_cost_release(&cost);
}

/* Ten steps, of which each has another loop of three: multiplied; of what goes on until a condition says so, once. */
static void loops(void **state) {
  (void)state;
  ax_cost cost = cost_of(ON(
      "a=2,b=2", "P(a)", "P(a)", "f32[8,8]",
      "axes a=2? b=2? ; lambda x:f32[4,8]. let y:f32[4,8] = scan[length=10 reverse=false num_consts=0 num_carry=1 body={ axes a=2? b=2? ; "
      "lambda c:f32[4,8]. let s:f32[4,8] = psum[axes=(a, b)] c t:f32[4,8] = scan[length=3 reverse=false num_consts=0 num_carry=1 body={ axes a=2? b=2? ; "
      "lambda c:f32[4,8]. let d:f32[4,8] = mul c c e:f32[4,8] = psum[axes=(b)] d in (e) }] s in (t) }] x in (y)",
      "f32[8,8]"));
  expect(&cost, 10 * 3 * 32, 10 * (256 + 3 * (384 + 256)), 10 * 192 + 30 * 128);
  assert_int_equal(cost.collective_count, 2);
  expect_row(&cost, 0, "psum", "b", 2, 30, 30 * 128);
  expect_row(&cost, 1, "psum", "a,b", 4, 10, 10 * 192);
  ax_cost_release(&cost);
  cost = cost_of(
      "{ lambda x:f32[8]. let y:f32[8] = while[cond={ lambda v:f32[8]. let s:f32[] = reduce_sum[axes=(0)] v b:bool[] = lt s 9.0:f32[] in (b) } cond_nconsts=0 "
      "body={ lambda v:f32[8]. let w:f32[8] = add v v in (w) } body_nconsts=0] x in (y) }");
  assert_true(cost.at_least);
  expect(&cost, 8 + 1 + 8, 36 + 5 + 96, 0);
  ax_cost_release(&cost);
}

/* The costlier branch. */
static void branches(void **state) {
  (void)state;
  ax_cost cost = cost_of(
      "{ lambda x:f32[8] n:s32[]. let y:f32[8] = cond[branches=({ lambda a:f32[8]. let b:f32[8] = neg a in (b) }, "
      "{ lambda a:f32[8]. let b:f32[8] = mul a a c:f32[8] = exp b in (c) })] n x in (y) }");
  expect(&cost, 16, 96 + 64, 0);
  ax_cost_release(&cost);
}

/* A program of whole arrays laid over a mesh: the product of blocks, and what the partitioner puts in to add its parts. */
static void laid_out(void **state) {
  (void)state;
  const char *text = "{ lambda x:f32[8,16] w:f32[16,4]. let\n"
                     "    y:f32[8,4] = dot_general[lhs_contract=(1) rhs_contract=(0) lhs_batch=() rhs_batch=()] x w in (y) }";
  ax_program *program, *laid;
  ax_mesh mesh;
  ax_cost cost;
  char *table;
  TEST_OK(ax_mesh_parse("data=2,model=4", &mesh));
  TEST_OK(ax_program_parse(text, strlen(text), "test", &program));
  TEST_OK(ax_program_with_shardings(program, &mesh, "data,model; model -> data", &laid));
  TEST_OK(ax_program_cost(laid, &cost));
  assert_int_equal(cost.devices, 8);
  expect(&cost, 2 * 4 * 4 * 4, 4 * (16 + 16 + 16) + 128, 96);
  expect_row(&cost, 0, "psum", "model", 4, 1, 96);
  TEST_OK(ax_cost_text(&cost, &table));
  assert_string_equal(table, "on each of 8 devices, a run:\n"
                             "             128  flops\n"
                             "             320  bytes read and written, nothing fused\n"
                             "              96  bytes received from other devices\n\n"
                             "  bytes received       times   members  collective\n"
                             "              96           1         4  psum over model\n");
  ax_string_free(table);
  ax_cost_release(&cost);
  ax_cost_release(&cost);
  assert_null(cost.collectives);
  ax_program_release(laid);
  ax_program_release(program);
}

/* Loops in loops, 20 deep. */
static void nests(void **state) {
  (void)state;
  ax_text text = {0};
  char *made;
  ax_text_add(&text, "{ lambda a:f32[8]. let ");
  for (int i = 0; i < 20; i++)
    ax_text_add(&text, "b:f32[8] = scan[length=2 reverse=false num_consts=0 num_carry=1 body={ lambda a:f32[8]. let ");
  ax_text_add(&text, "b:f32[8] = mul a a in (b) ");
  for (int i = 0; i < 20; i++) ax_text_add(&text, "}] a in (b) ");
  ax_text_add(&text, "}");
  TEST_OK(ax_text_finish(&text, &made));
  ax_cost cost = cost_of(made);
  expect(&cost, 8.0 * (1 << 20), 96.0 * (1 << 20), 0);
  ax_cost_release(&cost);
  ax_free(made);
}

static void refusals(void **state) {
  (void)state;
  ax_cost cost;
  char *text;
  TEST_FAILS(ax_program_cost(NULL, &cost), AX_INVALID_ARGUMENT, "program");
  assert_null(cost.collectives);
  TEST_FAILS(ax_cost_text(NULL, &text), AX_INVALID_ARGUMENT, "cost");
  ax_cost_release(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_and_elements), cmocka_unit_test(collectives), cmocka_unit_test(loops), cmocka_unit_test(branches),
      cmocka_unit_test(laid_out), cmocka_unit_test(nests), cmocka_unit_test(refusals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
