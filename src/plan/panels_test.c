/* Which right factors are packed once and where, that results have the bits of products that pack for themselves, and what
   constants take. */
#include <string.h>

#include "axle/ops.h"
#include "axle/stages.h"
#include "plan/passes.h"
#include "product/product.h"
#include "support/cmocka.h"
#include "support/nest.h"
#include "support/random.h"
#include "support/run.h"

/* --- Where factors are packed --- */

static ax_value product(ax_value a, ax_value b) {
  return ax_dot_general(a, b, AX_DIMS(1), AX_DIMS(1), AX_DIMS(), AX_DIMS());
} /* b lies transposed */

static void times_captured(const ax_value *in, ax_value *out, void *factor) {
  out[0] = ax_sin(product(in[0], *(const ax_value *)factor));
}
static void without_a_loop(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = product(in[0], in[1]);
}

/* A factor that the loop changes. */
static void times_changed(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_sin(product(in[0], in[1]));
  out[1] = ax_sin(in[1]);
}
static void changed(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value made[2];
  ax_scan(AX_FN(times_changed, 2, 2), 2, 3, false, in, made);
  out[0] = made[0];
}

/* Two products with one factor, and one with what lies the other way. */
static void times_twice(const ax_value *in, ax_value *out, void *factor) {
  const ax_value w = *(const ax_value *)factor;
  out[0] = ax_sin(product(ax_sin(product(in[0], w)), w));
}
static void times_both_ways(const ax_value *in, ax_value *out, void *factor) {
  const ax_value w = *(const ax_value *)factor;
  out[0] = ax_sin(ax_matmul(ax_sin(product(in[0], w)), w));
}

/* So many steps written out; and the same with a factor that a step in the middle makes anew. */
typedef struct written_out {
  int steps;
  bool anew;
} written_out;
static void one_by_one(const ax_value *in, ax_value *out, void *context) {
  const written_out *s = context;
  ax_value x = in[0], w = in[1];
  for (int i = 0; i < s->steps; i++) {
    if (s->anew && i == s->steps / 2) w = ax_sin(w);
    x = ax_sin(product(x, w));
  }
  out[0] = x;
}

static void six_times_captured(const ax_value *in, ax_value *out, void *factor) {
  const ax_value both[] = {in[0], *(const ax_value *)factor};
  one_by_one(both, out, &(written_out){6, false});
}

/* "pack" where one is, "loop(..)" and "branch(..)" around what they hold; of products only those that read packed factors. */
static void describe(ax_text *text, ax_block *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    ax_op *op = &block->ops[i];
    const bool pack = op->kind == AX_OP_ROUTINE && op->routine->name != NULL && strcmp(op->routine->name, "pack") == 0;
    if (pack) ax_text_add(text, "pack ");
    if (op->kind == AX_OP_GEMM) ax_text_add(text, op->gemm->packed ? "packed " : "product ");
    if (op->kind == AX_OP_LOOP) ax_text_add(text, "loop( ");
    if (op->kind == AX_OP_BRANCH) ax_text_add(text, "branch( ");
    for (uint32_t k = 0; ax_op_block(op, k) != NULL; k++) describe(text, ax_op_block(op, k));
    if (ax_op_block(op, 0) != NULL) ax_text_add(text, ") ");
  }
}

static void expect_plan(ax_program *program, const char *wanted) {
  ax_plan *plan;
  ax_text text = {0};
  char *got;
  TEST_OK(ax_plan_create(program, NULL, NULL, NULL, &plan));
  TEST_OK(ax_plan_optimise(plan, NULL, NULL));
  describe(&text, &plan->block);
  ax_text_add(&text, ".");
  TEST_OK(ax_text_finish(&text, &got));
  assert_string_equal(got, wanted);
  ax_free(got);
  ax_plan_destroy(plan);
}

static void expect_of(ax_function body, void *context, ax_dtype dtype, int64_t m, int64_t n, const char *wanted) {
  const ax_type in[] = {TEST_TYPE(dtype, m, n), TEST_TYPE(dtype, n, n)};
  ax_program *program = test_trace(body, context, in, 2, 1);
  expect_plan(program, wanted);
  if (n < 200) test_random_run(program, 3, false, 1e-4);
  ax_program_release(program);
}

static void expect(ax_function body, ax_dtype dtype, int64_t m, int64_t n, const char *wanted) {
  expect_of(body, NULL, dtype, m, n, wanted);
}
static void expect_nest(test_nest nest, ax_dtype dtype, int64_t m, int64_t n, const char *wanted) {
  expect_of(test_nested, &nest, dtype, m, n, wanted);
}

/* Without a loop: where products enough read one factor, before the first of them. */
static void written_out_steps(void **state) {
  (void)state;
  if (AX_HOSTILE) skip();
  expect_of(one_by_one, &(written_out){6, false}, AX_F32, 40, 129, "pack packed packed packed packed packed packed .");
  expect_of(one_by_one, &(written_out){5, false}, AX_F32, 40, 129, "product product product product product .");
  expect_of(one_by_one, &(written_out){6, false}, AX_F32, 65, 129, "product product product product product product .");
  expect_of(one_by_one, &(written_out){6, true}, AX_F32, 40, 129, "product product product product product product .");
  expect_nest((test_nest){six_times_captured, {{TEST_IF, 0}}}, AX_F32, 40, 129,
              "branch( pack packed packed packed packed packed packed ) .");
}

static void places(void **state) {
  if (AX_HOSTILE) skip(); /* where products and kernels are done together, whatever they are */
  (void)state;
  expect_nest((test_nest){times_captured, {{TEST_SCAN, 3}}}, AX_F32, 16, 33, "pack loop( packed ) .");
  expect_nest((test_nest){times_captured, {{TEST_WHILE, 0}}}, AX_F32, 16, 33, "pack loop( packed ) .");
  expect_nest((test_nest){times_captured, {{TEST_WHILE, 11}}}, AX_F32, 16, 33, "pack loop( packed ) .");
  expect_nest((test_nest){times_captured, {{TEST_SCAN, 3}, {TEST_IF, 0}, {TEST_SCAN, 2}}}, AX_F32, 16, 33,
              "pack loop( branch( loop( packed ) ) ) .");
  expect_nest((test_nest){times_captured, {{TEST_EACH, 3}, {TEST_SCAN, 2}}}, AX_F32, 16, 33, "loop( pack loop( packed ) ) .");
  expect_nest((test_nest){times_twice, {{TEST_SCAN, 3}}}, AX_F32, 16, 33, "pack loop( packed packed ) .");
  expect_nest((test_nest){times_both_ways, {{TEST_SCAN, 3}}}, AX_F32, 130, 129, "pack pack loop( packed packed ) .");
}

static void not_worth_it(void **state) {
  if (AX_HOSTILE) skip();
  (void)state;
  expect_nest((test_nest){times_captured, {{TEST_SCAN, 1}}}, AX_F32, 16, 33, "loop( product ) .");
  expect(without_a_loop, AX_F32, 16, 33, "product .");
  expect(changed, AX_F32, 16, 33, "loop( product ) .");
  expect_nest((test_nest){times_captured, {{TEST_SCAN, 3}}}, AX_F32, 192, 33, "pack loop( packed ) .");
  expect_nest((test_nest){times_captured, {{TEST_SCAN, 3}}}, AX_F32, 193, 33, "loop( product ) ."); /* packing is little, beside a second copy */
  expect_nest((test_nest){times_captured, {{TEST_SCAN, 3}}}, AX_F32, 100, 5000, "loop( product ) .");  /* it would take too much */
  const ax_product few = {
      .dtype = AX_F32, .m = 8, .n = 1500, .k = 1500, .a_row = 1500, .a_column = 1, .b_row = 1, .b_column = 1500, .c_row = 1500};
  const ax_product_way way = ax_product_choose(&few, AX_REGISTER_BYTES);
  if (way.turned || way.turns_b)
    expect_nest((test_nest){times_captured, {{TEST_SCAN, 3}}}, AX_F32, 8, 1500,
                "loop( product ) ."); /* few rows, and no cache holds it; */
  expect_nest((test_nest){times_captured, {{TEST_SCAN, 3}}}, AX_F32, 64, 1500,
              "pack loop( packed ) ."); /* many, which read it often enough */
}

/* --- Bits --- */

typedef struct stepped {
  bool turned, unrolled;
  int64_t batch; /* of products; 0: none, -1: one factor for all of two */
} stepped;

static ax_value one_step(const stepped *s, ax_value x, ax_value w) {
  const int64_t rank = ax_typeof(x).rank;
  if (s->batch > 0) return ax_dot_general(x, w, AX_DIMS(2), AX_DIMS(s->turned ? 2 : 1), AX_DIMS(0), AX_DIMS(0));
  return ax_dot_general(x, w, AX_DIMS(rank - 1), AX_DIMS(s->turned), AX_DIMS(), AX_DIMS());
}

typedef struct step_context {
  const stepped *s;
  ax_value w;
} step_context;
static void step(const ax_value *in, ax_value *out, void *context) {
  const step_context *c = context;
  out[0] = one_step(c->s, in[0], c->w);
}
static void steps(const ax_value *in, ax_value *out, void *context) {
  const stepped *s = context;
  step_context c = {s, in[1]};
  const ax_type x = ax_typeof(in[0]);
  if (!s->unrolled) {
    ax_scan(AX_CLOSURE(step, 1, 1, &c), 0, x.dims[0], false, in, out);
    return;
  }
  for (int64_t i = 0; i < x.dims[0]; i++)
    out[i] = one_step(s, ax_reshape(ax_slice_in_dim(in[0], i, i + 1, 1, 0), AX_LIST(x.rank - 1, x.dims + 1)), in[1]);
}

/* A loop with the factor packed before it, in every way to run it; then the products one by one. */
static void check_bits(test_random *random, ax_dtype dtype, int64_t m, int64_t n, int64_t k, stepped s) {
  enum { length = 2 };
  const int64_t rows = s.turned ? n : k, columns = s.turned ? k : n, batch = s.batch < 0 ? 2 : s.batch;
  const ax_type types[] = {batch > 0 ? TEST_TYPE(dtype, length, batch, m, k) : TEST_TYPE(dtype, length, m, k),
                           s.batch > 0 ? TEST_TYPE(dtype, s.batch, rows, columns) : TEST_TYPE(dtype, rows, columns)};
  ax_program *loop = test_trace(steps, &s, types, 2, 1);
  s.unrolled = true;
  ax_program *alone = test_trace(steps, &s, types, 2, length);
  ax_tensor *in[] = {test_random_tensor(random, types[0], -3, 3), test_random_tensor(random, types[1], -3, 3)}, *all, *each[length];
  ax_runtime *runtime;
  TEST_EVERY_WAY(loop, in, 1e-2);
  TEST_OK(ax_runtime_create(NULL, &runtime));
  test_execute(runtime, loop, in, &all);
  test_execute(runtime, alone, in, each);
  const size_t bytes = test_tensor_bytes(each[0]);
  for (int i = 0; i < length; i++) assert_memory_equal((const char *)all->data + (size_t)i * bytes, each[i]->data, bytes);
  ax_runtime_release(runtime);
  test_release(in, 2), test_release(&all, 1), test_release(each, length);
  ax_program_release(loop), ax_program_release(alone);
}

static void bits(void **state) {
  (void)state;
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_BF16, AX_F16, AX_S32, AX_S8};
  static const int64_t sizes[] = {2, 3, 7, 16, 17, 31, 32, 33, 64, 65, 129}, depths[] = {1, 2, 5, 16, 63, 128, 385, 500, 900};
  enum { tiny = 1024 }; /* m n k: what is a kernel, and has no panels */
  test_random random = {11};
  for (size_t d = 0; d < AX_COUNT(dtypes); d++)
    for (int i = 0; i < 14; i++) {
      const int64_t m = sizes[test_random_below(&random, AX_COUNT(sizes))], n = sizes[test_random_below(&random, AX_COUNT(sizes))];
      const stepped s = {.turned = i % 2, .batch = i % 7 == 5 ? 3 : i % 7 == 6 ? -1 : 0};
      const int64_t k = depths[test_random_below(&random, AX_COUNT(depths))];
      check_bits(&random, dtypes[d], m, n, m * n * k <= tiny ? tiny : k, s);
    }
}

/* Nothing to add up, no rows, no columns. */
static void empty(void **state) {
  (void)state;
  test_random random = {12};
  for (int i = 0; i < 3; i++)
    check_bits(&random, AX_F32, i == 0 ? 0 : 5, i == 1 ? 0 : 33, i == 2 ? 0 : 40, (stepped){.turned = true});
}

/* Columns in several tiles, and more of them than are in one pass. */
static void wide(void **state) {
  (void)state;
  test_random random = {13};
  check_bits(&random, AX_F32, 150, 1100, 400, (stepped){.turned = false});
  check_bits(&random, AX_BF16, 40, 700, 1000, (stepped){.turned = true});
  check_bits(&random, AX_F32, 20, 40, 50000, (stepped){.turned = true}); /* in runs that are added as if exactly */
  check_bits(&random, AX_F64, 40, 70, 20000, (stepped){.turned = false});
}

/* --- Devices --- */

static void devices(void **state) {
  (void)state;
  static const char *const factor[] = {"_,_", "a,_", "b,_"};
  for (size_t i = 0; i < AX_COUNT(factor); i++) {
    const int64_t rows = i == 0 ? 33 : i == 1 ? 66 : 99;
    const ax_type in[] = {TEST_TYPE(AX_F32, 6 * 4, 33), TEST_TYPE(AX_F32, rows, 33)};
    test_map map = {.mesh = "a=2,b=3",
                    .in_specs = {"a+b,_", factor[i]},
                    .out_specs = {"a+b,_"},
                    .body = test_nested,
                    .unchecked = true,
                    .context = &(test_nest){times_captured, {{TEST_SCAN, 3}}}};
    ax_program *program = test_trace_map(&map, in);
    test_random_run(program, 5, false, 1e-4);
    ax_program_release(program);
  }
}

/* --- Constants --- */

enum { WIDTH = 96 };

typedef struct constants {
  const float *data;
  bool also;    /* the constant is a result too */
  int calls;    /* of products with it */
} constants;

static void with_constant(const ax_value *in, ax_value *out, void *context) {
  const constants *c = context;
  const ax_type type = TEST_TYPE(AX_F32, WIDTH, WIDTH);
  ax_value w = ax_constant(&type, c->data), x = in[0];
  for (int i = 0; i < c->calls; i++) x = ax_sin(product(x, w));
  out[0] = x;
  if (c->also) out[1] = ax_neg(w);
}

static size_t constant_bytes(ax_program *program) {
  ax_plan *plan;
  size_t bytes = 0;
  TEST_OK(ax_plan_create(program, NULL, NULL, NULL, &plan));
  TEST_OK(ax_plan_optimise(plan, NULL, NULL));
  uint32_t *reads = ax_calloc(plan->buffer_count, sizeof reads[0]), *writes = ax_calloc(plan->buffer_count, sizeof writes[0]);
  ax_plan_count(plan, reads, writes);
  for (uint32_t i = 0; i < plan->buffer_count; i++)
    if (plan->buffers[i].kind == AX_BUFFER_CONST && reads[i] > 0) bytes += (size_t)ax_buffer_bytes(&plan->buffers[i]);
  ax_free(reads), ax_free(writes);
  ax_plan_destroy(plan);
  return bytes;
}

/* It is held once, in panels; twice, where others read it as it is. */
static void of_constants(void **state) {
  if (AX_HOSTILE) skip();
  (void)state;
  float data[WIDTH * WIDTH];
  test_random random = {17};
  for (int i = 0; i < WIDTH * WIDTH; i++) data[i] = (float)test_random_uniform(&random, -1, 1);
  for (int way = 0; way < 4; way++) {
    constants c = {data, way & 1, 1 + (way >> 1)};
    const ax_type type = TEST_TYPE(AX_F32, 40, WIDTH);
    ax_program *program = test_trace(with_constant, &c, &type, 1, 1 + c.also);
    expect_plan(program, c.calls == 2 ? "packed packed ." : "packed .");
    assert_int_equal(constant_bytes(program), (c.also ? 2 : 1) * sizeof data);
    test_random_run(program, 19, false, 1e-4);
    ax_program_release(program);
  }
}

typedef struct wide_constant {
  const float *data;
  int64_t width;
} wide_constant;

static void few_and_many(const ax_value *in, ax_value *out, void *context) {
  const wide_constant *c = context;
  const ax_type type = TEST_TYPE(AX_F32, c->width, c->width);
  const ax_value w = ax_constant(&type, c->data);
  for (int i = 0; i < 2; i++) out[i] = product(in[i], w);
}

/* Few rows, for which alone a factor that no cache holds is not packed, and then many: it is not held both ways. */
static void read_by_few_first(void **state) {
  if (AX_HOSTILE) skip();
  (void)state;
  enum { width = 1200 };
  const size_t bytes = sizeof(float) * width * width;
  float *data = ax_calloc(1, bytes);
  wide_constant c = {data, width};
  for (int many_first = 0; many_first < 2; many_first++) {
    const ax_type types[] = {TEST_TYPE(AX_F32, many_first ? 64 : 8, width), TEST_TYPE(AX_F32, many_first ? 8 : 64, width)};
    ax_program *program = test_trace(few_and_many, &c, types, 2, 2);
    const size_t held = constant_bytes(program);
    assert_true(held >= bytes && held < bytes + bytes / 2);
    ax_program_release(program);
  }
  ax_free(data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(places),
      cmocka_unit_test(written_out_steps),
      cmocka_unit_test(not_worth_it),
      cmocka_unit_test(bits),
      cmocka_unit_test(empty),
      cmocka_unit_test(wide),
      cmocka_unit_test(devices),
      cmocka_unit_test(of_constants),
      cmocka_unit_test(read_by_few_first),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
