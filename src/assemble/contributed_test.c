/* Products that are made where they are added: the bits are those of sums of operands, as they are between processes. */
#include <stdio.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "code/compiled.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

typedef struct found {
  uint32_t products, contributed; /* instructions of products; pushes that make one */
} found;

static found count(ax_program *program, uint32_t workers) {
  found f = {0};
  ax_runtime *runtime;
  ax_executable *executable;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = workers}, &runtime));
  TEST_OK(ax_compile(runtime, program, NULL, &executable));
  const ax_compiled *c = test_compiled(executable);
  for (uint32_t i = 0; i < c->codes[0].instr_count; i++) {
    const ax_instr *instr = &c->codes[0].instrs[i];
    f.products += instr->kind == AX_INSTR_GEMM || instr->kind == AX_INSTR_ROWS;
    f.contributed += instr->kind == AX_INSTR_PUSH && instr->push->product != NULL;
  }
  ax_executable_release(executable);
  ax_runtime_release(runtime);
  return f;
}

/* Every way gives the same bits, also in several processes, where operands are sent. */
static void check(test_map m, const ax_type *types, uint32_t contributed) {
  test_random random = {7};
  ax_tensor *in[8];
  ax_program *program = test_trace_map(&m, types);
  const uint32_t inputs = ax_program_in_count(program);
  const found f = count(program, 2);
  assert_int_equal(f.contributed, contributed);
  for (uint32_t i = 0; i < inputs; i++) in[i] = test_random_tensor(&random, types[i], -2, 2);
  TEST_EVERY_WAY(program, in, 1e-3);
  test_release(in, inputs);
  ax_program_release(program);
}

static ax_value transposed(ax_value x) { return ax_transpose(x, AX_DIMS(1, 0)); }

/* A gradient of weights: each device has some of the examples. */
static AX_BODY(gradient) { out[0] = ax_psum(ax_matmul(transposed(in[0]), in[1]), "d"); }

static void gradients(void **state) {
  (void)state;
  const struct {
    int64_t examples, m, n; /* examples of one device */
    ax_dtype dtype;
  } cases[] = {{16, 96, 100, AX_F32},  {16, 512, 16, AX_F32}, {3, 97, 101, AX_F32},   {500, 90, 96, AX_F32}, 
               {40, 600, 17, AX_F32},  {40, 9, 1000, AX_F32}, {1300, 64, 129, AX_F32}, {20, 64, 70, AX_F64},  {16, 1100, 300, AX_F32}};
  for (size_t i = 0; i < AX_COUNT(cases); i++) {
    const ax_type types[] = {AX_TYPE(cases[i].dtype, 4 * cases[i].examples, cases[i].m), AX_TYPE(cases[i].dtype, 4 * cases[i].examples, cases[i].n)};
    check((test_map){"d=4", {"d", "d"}, {""}, .body = gradient}, types, 1);
  }
}

/* A device more than are put at a time. */
static void many_devices(void **state) {
  (void)state;
  check((test_map){"d=70", {"d", "d"}, {""}, .body = gradient}, (ax_type[]){AX_TYPE(AX_F32, 70 * 3, 96), AX_TYPE(AX_F32, 70 * 3, 100)}, 1);
}

static AX_BODY(over_one_axis) { out[0] = ax_psum(ax_matmul(transposed(in[0]), in[1]), "b"); }

static void groups(void **state) {
  (void)state;
  check((test_map){"a=2,b=3", {"a+b", "a+b"}, {"a"}, .body = over_one_axis},
        (ax_type[]){AX_TYPE(AX_F32, 6 * 20, 96), AX_TYPE(AX_F32, 6 * 20, 100)}, 1);
}

/* The product is read again, is small, is of narrow numbers, is one of several; or the sum takes the largest. */
static AX_BODY(read_again) {
  const ax_value product = ax_matmul(transposed(in[0]), in[1]);
  out[0] = ax_psum(product, "d");
  out[1] = ax_tanh(product);
}
static AX_BODY(largest) { out[0] = ax_pmax(ax_matmul(transposed(in[0]), in[1]), "d"); }
static AX_BODY(in_pieces) { out[0] = ax_psum_scatter(ax_matmul(transposed(in[0]), in[1]), "d", 0, true); }

static void others_are_operands(void **state) {
  (void)state;
  const ax_type types[] = {AX_TYPE(AX_F32, 4 * 16, 96), AX_TYPE(AX_F32, 4 * 16, 100)};
  check((test_map){"d=4", {"d", "d"}, {"", "d"}, .body = read_again}, types, 0);
  check((test_map){"d=4", {"d", "d"}, {""}, .body = largest}, types, 0);
  check((test_map){"d=4", {"d", "d"}, {"d"}, .body = in_pieces}, types, 0);
  check((test_map){"d=4", {"d", "d"}, {""}, .body = gradient}, (ax_type[]){AX_TYPE(AX_F32, 4 * 16, 9), AX_TYPE(AX_F32, 4 * 16, 10)}, AX_HOSTILE);
  check((test_map){"d=4", {"d", "d"}, {""}, .body = gradient}, (ax_type[]){AX_TYPE(AX_S32, 4 * 16, 96), AX_TYPE(AX_S32, 4 * 16, 100)}, 0);
}

/* In a loop, whose factors are made anew in each step, in the same memory. */
static AX_BODY(step) {
  const ax_value sum = ax_psum(ax_matmul(transposed(in[1]), ax_mul(in[1], in[1])), "d");
  out[0] = ax_add(in[0], sum);
  out[1] = ax_tanh(ax_add(in[1], ax_slice_in_dim(ax_mul(in[0], ax_full_like(in[0], 0.01)), 0, 20, 1, 0)));
}
static AX_BODY(steps) {
  const ax_value first[] = {ax_psum(ax_matmul(transposed(in[0]), in[0]), "d"), in[0]};
  ax_scan(AX_FN(step, 2, 2), 2, 5, false, AX_LIST(2, first), AX_LIST(2, out));
}

static void in_a_loop(void **state) {
  (void)state;
  check((test_map){"d=4", {"d"}, {"", "d"}, .body = steps}, (ax_type[]){AX_TYPE(AX_F32, 4 * 20, 96)}, 2);
}

/* Of few rows there are two tiles, in which many threads would wait for each other: then each makes its own device's product. */
static void threads_share_tiles(void **state) {
  (void)state;
  const struct {
    int64_t m, n;
    uint32_t workers, contributed;
  } cases[] = {{16, 512, 2, 1}, {16, 512, 4, 1}, {16, 512, 8, 0}, {512, 512, 8, 1}};
  for (size_t i = 0; i < AX_COUNT(cases); i++) {
    const ax_type types[] = {AX_TYPE(AX_F32, 8 * 256, cases[i].m), AX_TYPE(AX_F32, 8 * 256, cases[i].n)};
    test_map m = {"d=8", {"d", "d"}, {""}, .body = gradient};
    ax_program *program = test_trace_map(&m, types);
    assert_int_equal(count(program, cases[i].workers).contributed, cases[i].contributed);
    ax_program_release(program);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gradients), cmocka_unit_test(many_devices), cmocka_unit_test(groups), cmocka_unit_test(others_are_operands),
      cmocka_unit_test(in_a_loop), cmocka_unit_test(threads_share_tiles),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
