/* Which products add themselves to what is there, which do not, and that the bits are those of a sum made afterwards. */
#include <math.h>
#include <string.h>

#include "axle/ops.h"
#include "plan/passes.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

typedef struct added {
  ax_dtype dtype;
  int64_t m, n, k, batch; /* batch: of products; 0: one, without that dimension */
  bool turned, scaled;    /* turned: the product is made as its transpose; scaled: something else is done to it */
  bool given;             /* the product is a result too */
  bool along;             /* factors lie along what is contracted */
  int64_t steps;
} added;

/* carry, x: T[k, m], y: T[k, n]: the sum over all steps of x' y; along: x: T[m, k], y: T[n, k]. */
static ax_value product(const added *a, ax_value x, ax_value y) {
  if (a->batch > 0) return ax_dot_general(x, y, AX_DIMS(1), AX_DIMS(1), AX_DIMS(0), AX_DIMS(0));
  if (a->along) return ax_dot_general(x, y, AX_DIMS(1), AX_DIMS(1), AX_DIMS(), AX_DIMS());
  if (a->turned) return ax_transpose(ax_dot_general(y, x, AX_DIMS(0), AX_DIMS(0), AX_DIMS(), AX_DIMS()), AX_DIMS(1, 0));
  return ax_dot_general(x, y, AX_DIMS(0), AX_DIMS(0), AX_DIMS(), AX_DIMS());
}

static void step(const ax_value *in, ax_value *out, void *context) {
  const added *a = context;
  ax_value made = product(a, in[1], in[2]);
  if (a->scaled) made = ax_mul(made, ax_full_like(made, 2));
  out[0] = ax_add(in[0], made);
  if (a->given) out[1] = made;
}

static void steps(const ax_value *in, ax_value *out, void *context) {
  const added *a = context;
  ax_scan(AX_CLOSURE(step, 3, 1 + a->given, context), 1, a->steps, false, in, out);
}

static void types_of(const added *a, bool loop, ax_type *types) {
  const int64_t b = a->batch > 0 ? a->batch : 1;
  const int64_t dims[3][4] = {{0, b, a->m, a->n},
                              {a->steps, b, a->along ? a->m : a->k, a->along ? a->k : a->m},
                              {a->steps, b, a->along ? a->n : a->k, a->along ? a->k : a->n}};
  for (int i = 0; i < 3; i++) {
    int64_t list[4];
    uint32_t rank = 0;
    for (int d = 0; d < 4; d++)
      if ((d > 0 || (loop && i > 0)) && (d != 1 || a->batch > 0)) list[rank++] = dims[i][d];
    types[i] = ax_array_type(a->dtype, AX_LIST(rank, list));
  }
}

static void count(ax_block *block, uint32_t *adding) {
  for (uint32_t i = 0; i < block->count; i++) {
    ax_op *op = &block->ops[i];
    *adding += op->kind == AX_OP_GEMM && op->gemm->accumulate;
    for (uint32_t k = 0; ax_op_block(op, k) != NULL; k++) count(ax_op_block(op, k), adding);
  }
}

/* Products of the program that add themselves. donated: its first input. */
static uint32_t adding(ax_program *program, bool donated) {
  static const bool donate[] = {true, false, false};
  ax_plan *plan;
  uint32_t found = 0;
  TEST_OK(ax_plan_create(program, NULL, NULL, NULL, &plan));
  if (donated) plan->donate = donate;
  TEST_OK(ax_plan_optimise(plan, "accumulate", NULL));
  count(&plan->block, &found);
  ax_plan_destroy(plan);
  return found;
}

/* The same sums where the product is a result as well, which is read by two then and never adds itself. */
static void expect(added a, bool wanted) {
  ax_type types[3];
  test_random random = {(uint64_t)(a.m + a.k)};
  types_of(&a, true, types);
  ax_program *program = test_trace(steps, &a, types, 3, 1);
  assert_int_equal(adding(program, false), wanted);
  a.given = true;
  ax_program *afterwards = test_trace(steps, &a, types, 3, 2);
  assert_int_equal(adding(afterwards, false), 0);
  ax_tensor *in[3], *sum, *both[2];
  for (int i = 0; i < 3; i++) in[i] = test_random_tensor(&random, types[i], -3, 3);
  TEST_EVERY_WAY(program, in, a.dtype == AX_F64 ? 1e-12 : 1e-3);
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  test_execute(runtime, program, in, &sum);
  test_execute(runtime, afterwards, in, both);
  assert_memory_equal(sum->data, both[0]->data, test_tensor_bytes(sum));
  ax_runtime_release(runtime);
  test_release(in, 3), test_release(&sum, 1), test_release(both, 2);
  ax_program_release(program), ax_program_release(afterwards);
}

static void in_loops(void **state) {
  (void)state;
  static const int64_t depths[] = {2, 3, 16, 33, 384}, sizes[] = {2, 7, 16, 33, 129, 200};
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_S32};
  for (size_t d = 0; d < AX_COUNT(dtypes); d++)
    for (size_t i = 0; i < AX_COUNT(depths); i++)
      for (int k = 0; k < 3; k++) {
        const int64_t m = sizes[(i + (size_t)k) % AX_COUNT(sizes)], n = sizes[(2 * i + (size_t)k + 1) % AX_COUNT(sizes)];
        const bool tiny = m * n * depths[i] <= 1024; /* which is a kernel */
        expect((added){.dtype = dtypes[d], .m = m, .n = n, .k = depths[i], .turned = k == 1, .batch = k == 2 ? 3 : 0, .steps = 3},
               !tiny);
      }
}

/* Few rows or columns, and right factors that are read where they lie, whichever way that is. */
static void narrow(void **state) {
  (void)state;
  static const int64_t few[] = {2, 5, 8, 12, 20};
  for (size_t i = 0; i < AX_COUNT(few); i++)
    for (int along = 0; along < 2; along++) {
      expect((added){.dtype = AX_F32, .m = few[i], .n = 300, .k = 50, .along = along, .steps = 2}, true);
      expect((added){.dtype = AX_F64, .m = 130, .n = few[i], .k = 33, .along = along, .steps = 2}, true);
    }
  expect((added){.dtype = AX_F32, .m = 8, .n = 4100, .k = 70, .steps = 2}, true);
  expect((added){.dtype = AX_F32, .m = 12, .n = 1000, .k = 300, .along = true, .steps = 2}, true);
}

/* Blocks of what is contracted are added to the result one by one: of floats that would be another order. */
static void long_sums(void **state) {
  (void)state;
  expect((added){.dtype = AX_F32, .m = 33, .n = 20, .k = 385, .steps = 2}, false);
  expect((added){.dtype = AX_F64, .m = 33, .n = 20, .k = 1000, .steps = 2}, false);
  expect((added){.dtype = AX_S32, .m = 33, .n = 20, .k = 1000, .steps = 2}, true);
}

/* What is rounded, or scaled, before it is added is no sum of the product's. */
static void something_else(void **state) {
  (void)state;
  expect((added){.dtype = AX_F32, .m = 33, .n = 20, .k = 16, .scaled = true, .steps = 2}, false);
  expect((added){.dtype = AX_BF16, .m = 33, .n = 20, .k = 16, .steps = 2}, false);
}

/* Something reads what it is added to between the product and the sum: then, that is not to be there yet. */
static void read_between(const ax_value *in, ax_value *out, void *context) {
  const ax_value made = product(context, in[1], in[2]);
  out[1] = ax_dot_general(in[0], in[0], AX_DIMS(0), AX_DIMS(0), AX_DIMS(), AX_DIMS());
  out[0] = ax_add(in[0], made);
}

/* One product added to another that adds itself, and one that two sums read. */
static void twice(const ax_value *in, ax_value *out, void *context) {
  out[0] = ax_add(ax_add(in[0], product(context, in[1], in[2])), product(context, in[2], in[1]));
}

/* Without a loop: where the sum takes the place of what is donated. */
static void donations(void **state) {
  (void)state;
  const added a = {.dtype = AX_F32, .m = 33, .n = 33, .k = 16};
  const struct {
    ax_function body;
    uint32_t outs, donated, kept; /* products that add themselves */
  } cases[] = {{step, 1, 1, 0}, {read_between, 2, 0, 0}, {twice, 1, 0, 0}};
  for (size_t i = 0; i < AX_COUNT(cases); i++) {
    ax_type types[3];
    types_of(&a, false, types);
    ax_program *program = test_trace(cases[i].body, (void *)(uintptr_t)&a, types, 3, cases[i].outs);
    assert_int_equal(adding(program, true), cases[i].donated);
    assert_int_equal(adding(program, false), cases[i].kept);
    test_random_run(program, 7, false, 1e-4);
    ax_program_release(program);
  }
}

/* What a product is added to is its own factor, left, right or both: it would be read while it is written. */
static void own_left(const ax_value *in, ax_value *out, void *context) { out[0] = ax_add(in[0], product(context, in[0], in[1])); }
static void own_right(const ax_value *in, ax_value *out, void *context) { out[0] = ax_add(in[0], product(context, in[1], in[0])); }
static void own_both(const ax_value *in, ax_value *out, void *context) { out[0] = ax_add(in[0], product(context, in[0], in[0])); }

typedef struct owning {
  ax_function body;
  const added *of;
} owning;

static AX_BODY(owning_step) {
  const owning *o = context;
  o->body(in, out, (void *)(uintptr_t)o->of);
}

static AX_BODY(owning_loop) {
  ax_value over[2] = {in[0], ax_broadcast_in_dim(in[1], AX_DIMS(2, 48, 48), AX_DIMS(1, 2))};
  ax_scan(AX_CLOSURE(owning_step, 2, 1, context), 1, 2, false, over, out);
}

static void own_factors(void **state) {
  (void)state;
  const added a = {.dtype = AX_S32, .m = 48, .n = 48, .k = 48}; /* a tile has fewer rows */
  const ax_function bodies[] = {own_left, own_right, own_both};
  const ax_type type = ax_array_type(AX_S32, AX_DIMS(48, 48)), types[] = {type, type};
  for (size_t i = 0; i < 2 * AX_COUNT(bodies); i++) {
    const owning o = {bodies[i / 2], &a};
    ax_program *program = test_trace(i % 2 == 0 ? owning_step : owning_loop, (void *)(uintptr_t)&o, types, 2, 1);
    assert_int_equal(adding(program, i % 2 == 0), 0);
    test_random_run(program, 11, false, 0);
    ax_program_release(program);
  }
}

/* --- Sums of products alone: x: [m, n k], y: [n k, j], by blocks of k --- */

typedef struct chain {
  ax_dtype dtype;
  int64_t count, m, k, j;
  bool zero, backwards, given; /* 0 in front; products made in another order than they are added in; a product is a result too */
} chain;

static AX_BODY_OF(sum_of_products, const chain, c) {
  ax_value made[8];
  for (int64_t b = 0; b < c->count; b++) {
    const int64_t block = c->backwards ? c->count - 1 - b : b, left[] = {0, block * c->k}, left_end[] = {c->m, (block + 1) * c->k},
                  right[] = {block * c->k, 0}, right_end[] = {(block + 1) * c->k, c->j};
    made[block] = ax_matmul(ax_slice(in[0], left, left_end, NULL), ax_slice(in[1], right, right_end, NULL));
  }
  ax_value sum = c->zero ? ax_add(ax_full_like(made[0], 0), made[0]) : made[0];
  for (int64_t b = 1; b < c->count; b++) sum = ax_add(sum, made[b]);
  out[0] = sum;
  if (c->given) out[1] = made[c->count - 1];
}

static void one_chain(chain c, uint32_t wanted) {
  const ax_type types[] = {AX_TYPE(c.dtype, c.m, c.count * c.k), AX_TYPE(c.dtype, c.count * c.k, c.j)};
  test_random random = {(uint64_t)(c.m + c.k)};
  ax_tensor *in[] = {test_random_tensor(&random, types[0], -3, 3), test_random_tensor(&random, types[1], -3, 3)}, *sum, *both[2];
  ax_program *program = test_trace(sum_of_products, &c, types, 2, 1);
  if (adding(program, false) != wanted) fail_msg("%u add themselves, not %u", adding(program, false), wanted);
  c.given = true;
  ax_program *apart = test_trace(sum_of_products, &c, types, 2, 2);
  TEST_EVERY_WAY(program, in, c.dtype == AX_F64 ? 1e-12 : 1e-3);
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  test_execute(runtime, program, in, &sum);
  test_execute(runtime, apart, in, both);
  assert_memory_equal(sum->data, both[0]->data, test_tensor_bytes(sum));
  ax_runtime_release(runtime);
  test_release(in, 2), test_release(&sum, 1), test_release(both, 2);
  ax_program_release(program), ax_program_release(apart);
}

static void of_products_alone(void **state) {
  (void)state;
  for (int zero = 0; zero < 2; zero++)
    for (int64_t count = 2; count <= 5; count++) {
      one_chain((chain){AX_F32, count, 40, 64, 48, .zero = zero}, (uint32_t)count - 1);
      one_chain((chain){AX_F64, count, 33, 17, 65, .zero = zero}, (uint32_t)count - 1);
    }
  one_chain((chain){AX_F32, 3, 40, 64, 48, .backwards = true}, 0);
  one_chain((chain){AX_F32, 3, 40, 2000, 48, .zero = true}, 0); /* several blocks of k */
}

/* Zeros of both signs: a product is 0, and 0 added to it changes nothing. */
static void negative_zeros(void **state) {
  (void)state;
  const chain c = {AX_F32, 3, 40, 64, 48, .zero = false}, with = {AX_F32, 3, 40, 64, 48, .zero = true};
  const ax_type types[] = {AX_TYPE(AX_F32, 40, 192), AX_TYPE(AX_F32, 192, 48)};
  ax_tensor *in[2], *sum, *other;
  for (int i = 0; i < 2; i++) {
    TEST_OK(ax_tensor_create(&types[i], &in[i]));
    for (int64_t e = 0; e < test_elems(in[i]); e++) test_set(in[i], e, i == 0 ? -0.0 : 1);
  }
  ax_program *program = test_trace(sum_of_products, (void *)(uintptr_t)&c, types, 2, 1),
             *zero = test_trace(sum_of_products, (void *)(uintptr_t)&with, types, 2, 1);
  TEST_OK(test_try(program, in, &sum));
  TEST_OK(test_try(zero, in, &other));
  for (int64_t e = 0; e < test_elems(sum); e++) assert_false(signbit(test_get(sum, e)) || signbit(test_get(other, e)));
  test_release(in, 2), test_release(&sum, 1), test_release(&other, 1);
  ax_program_release(program), ax_program_release(zero);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(in_loops),       cmocka_unit_test(narrow),    cmocka_unit_test(long_sums),
                                     cmocka_unit_test(something_else), cmocka_unit_test(donations), cmocka_unit_test(own_factors),
                                     cmocka_unit_test(of_products_alone), cmocka_unit_test(negative_zeros)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
