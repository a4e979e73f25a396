/* Concatenations of many operands: put together from like and unlike pieces, read whole, in parts and by loops, every way there is;
   and that like pieces cost one kernel. */
#include "axle/ops.h"
#include "axle/transform.h"
#include "plan/passes.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"
#include "support/tensor.h"

enum { pieces = 70, row = 3 };

typedef enum reader { WHOLE, SQUARED, IN_PARTS, IN_A_LOOP, DIFFERENTIATED, READERS } reader;
typedef struct many {
  reader by;
  int64_t dimension; /* 1: behind one of size 1 */
} many;

/* x[row] -> pieces rows of it, every seventh as two, one as none. */
static ax_value put_together(ax_value x, int64_t dimension) {
  ax_value all[pieces];
  for (int i = 0; i < pieces; i++) {
    ax_value piece = i % 3 == 0 ? x : ax_add(ax_mul(x, ax_real(0.25 * i)), ax_real(i));
    int64_t dims[] = {1, 1, row};
    piece = ax_reshape(piece, AX_LIST(dimension == 1 ? 3 : 2, dims + (dimension == 1 ? 0 : 1)));
    if (i % 7 == 0) piece = ax_concatenate(AX_VALUES(piece, ax_neg(piece)), dimension);
    if (i == 5) piece = ax_slice_in_dim(piece, 0, 0, 1, dimension);
    all[i] = piece;
  }
  return ax_concatenate(AX_LIST(pieces, all), dimension);
}

static void step(const ax_value *in, ax_value *out, void *context) {
  ax_value all = put_together(in[0], ((const many *)context)->dimension);
  const int64_t size = ax_typeof(all).dims[((const many *)context)->dimension];
  out[0] =
      ax_mul(ax_reshape(ax_slice_in_dim(all, size / 2, size / 2 + 1, 1, ((const many *)context)->dimension), AX_DIMS(row)),
             ax_real(0.1));
  out[1] = all;
}
static void loss(const ax_value *in, ax_value *out, void *context) {
  ax_value all = put_together(in[0], ((const many *)context)->dimension);
  out[0] = ax_reduce_sum(ax_sin(all), AX_ALL_DIMS, false);
}

static void made(const ax_value *in, ax_value *out, void *context) {
  const many *m = context;
  if (m->by == IN_A_LOOP) {
    ax_value both[2];
    ax_scan(AX_CLOSURE(step, 1, 2, context), 1, 4, false, in, both);
    out[0] = ax_add(ax_reduce_sum(both[1], AX_DIMS(0), false), ax_real(0));
  } else if (m->by == DIFFERENTIATED) {
    ax_grad(AX_CLOSURE(loss, 1, 1, context), AX_FIRST(1), in, out);
  } else {
    ax_value all = put_together(in[0], m->dimension);
    ax_type type = ax_typeof(all);
    out[0] = m->by == WHOLE     ? all
             : m->by == SQUARED ? ax_add(ax_mul(all, all), ax_full_like(all, (double)type.dims[m->dimension]))
                                : ax_slice_in_dim(all, 3, 60, 2, m->dimension);
  }
}

static void every_way(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F32, row);
  ax_tensor *in = test_tensor(type, (double[]){0.5, -1.25, 3}), *out, *wanted;
  for (int by = 0; by < READERS; by++)
    for (int64_t dimension = 0; dimension < 2; dimension++) {
      ax_program *program = test_trace(made, &(many){(reader)by, dimension}, &type, 1, 1);
      test_run(program, &in, &out);
      TEST_OK(ax_evaluate(program, &in, &wanted));
      TEST_TENSORS_NEAR(out, wanted, 1e-5);
      TEST_EVERY_WAY(program, &in, 1e-5);
      test_release(&out, 1);
      test_release(&wanted, 1);
      ax_program_release(program);
    }
  test_release(&in, 1);
}

/* Its rows from two operands by turns. */
static void by_turns(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value all[pieces];
  for (int i = 0; i < pieces; i++) all[i] = in[i % 2];
  out[0] = ax_concatenate(AX_LIST(pieces, all), 0);
}

static void like_pieces_are_one_kernel(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, 1, row), TEST_TYPE(AX_F32, 1, row)};
  ax_program *program = test_trace(by_turns, NULL, types, 2, 1);
  ax_plan *plan;
  uint32_t kernels = 0;
  TEST_OK(ax_plan_create(program, NULL, NULL, NULL, &plan));
  TEST_OK(ax_plan_optimise(plan, NULL, NULL));
  for (uint32_t i = 0; i < plan->block.count; i++) {
    assert_int_equal(plan->block.ops[i].kind, AX_OP_KERNEL);
    kernels += i == 0 || plan->block.ops[i].kernel.kernel != plan->block.ops[i - 1].kernel.kernel;
  }
  assert_int_equal(kernels, 1);
  ax_plan_destroy(plan);
  ax_program_release(program);
}

/* Values stacked as a loop stacks them, of which each is read alone. */
enum { stack = 20 };

static void stacked(const ax_value *in, ax_value *out, void *context) {
  const int64_t size = ax_typeof(in[0]).dims[0];
  ax_value rows[stack], sum = in[0];
  (void)context;
  for (int i = 0; i < stack; i++) rows[i] = ax_reshape(ax_mul(ax_abs(in[0]), ax_real(i)), AX_DIMS(1, size));
  const ax_value all = ax_concatenate(AX_LIST(stack, rows), 0), none = ax_slice_in_dim(all, 0, 0, 1, 0),
                 both = ax_concatenate(AX_VALUES(none, all), 0);
  for (int i = 0; i < stack; i += 3) sum = ax_add(sum, ax_reshape(ax_slice_in_dim(both, i, i + 1, 1, 0), AX_DIMS(size)));
  out[0] = sum;
}

/* Then there is no stack. */
static void pieces_are_read_alone(void **state) {
  enum { size = 1000 };
  (void)state;
  const ax_type type = TEST_TYPE(AX_F32, size);
  test_random random = {5};
  ax_program *program = test_trace(stacked, NULL, &type, 1, 1), *simple;
  ax_tensor *in = test_edge_tensor(&random, type);
  ax_plan *plan;
  TEST_OK(ax_program_simplify(program, &simple));
  TEST_OK(ax_plan_create(simple, NULL, NULL, NULL, &plan));
  TEST_OK(ax_plan_optimise(plan, NULL, NULL));
  for (uint32_t i = 0; i < plan->block.count; i++)
    for (uint32_t k = 0; plan->block.ops[i].kind == AX_OP_KERNEL && k < plan->block.ops[i].kernel.kernel->slot_count; k++) {
      const ax_buffer *buffer = &plan->buffers[plan->block.ops[i].kernel.buffers[k]];
      assert_true(buffer->type.dims[0] < stack || buffer->type.dims[0] == size);
    }
  ax_plan_destroy(plan);
  TEST_EVERY_WAY(program, &in, 0);
  test_release(&in, 1);
  ax_program_release(program);
  ax_program_release(simple);
}

/* Columns side by side: operands of one column and of few, with remainders, in registers of all sizes. */
static void side_by_side(const ax_value *in, ax_value *out, void *context) {
  out[0] = ax_concatenate(AX_LIST(*(const uint32_t *)context, in), 1);
}

static void few_columns(void **state) {
  enum { rows = 5003, most = 5 };
  static const ax_dtype dtypes[] = {AX_S8, AX_BF16, AX_F32, AX_F64};
  test_random random = {3};
  (void)state;
  for (size_t d = 0; d < AX_COUNT(dtypes); d++)
    for (uint32_t operands = 2; operands <= most; operands++)
      for (int64_t columns = 1; columns <= 2; columns++) {
        ax_type types[most];
        ax_tensor *in[most], *out, *wanted;
        for (uint32_t i = 0; i < operands; i++) {
          types[i] = TEST_TYPE(dtypes[d], rows, i % 2 == 0 ? 1 : columns);
          in[i] = test_edge_tensor(&random, types[i]);
        }
        ax_program *program = test_trace(side_by_side, &operands, types, operands, 1);
        TEST_OK(ax_evaluate(program, in, &wanted));
        test_run(program, in, &out);
        assert_true(test_same_tensors(out, wanted));
        test_release(&out, 1);
        for (uint32_t bytes = 16; bytes <= 64; bytes *= 2) {
          ax_runtime *runtime;
          TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 2}, &runtime));
          test_use_vectors(runtime, bytes);
          test_execute(runtime, program, in, &out);
          assert_true(test_same_tensors(out, wanted));
          test_release(&out, 1);
          ax_runtime_release(runtime);
        }
        test_release(&wanted, 1);
        test_release(in, operands);
        ax_program_release(program);
      }
}

/* Steps of points whose coordinates lie side by side: columns taken, computed with, put together, and carried; each result is the
   sum of some of them, so that every column counts. */
typedef struct shape {
  int64_t rows, columns;
  bool carried;
} shape;

static void moved(const ax_value *in, ax_value *out, void *context) {
  const shape *s = context;
  ax_value column[4], side[4];
  for (int64_t i = 0; i < s->columns; i++) column[i] = ax_slice_in_dim(in[0], i, i + 1, 1, 1);
  for (int64_t i = 0; i < s->columns; i++)
    side[i] = ax_sub(ax_mul(column[i], column[(i + 1) % s->columns]), ax_tanh(column[s->columns - 1 - i]));
  ax_value slope = ax_concatenate(AX_LIST((uint32_t)s->columns, side), 1);
  ax_value turned = ax_concatenate(AX_VALUES(ax_slice_in_dim(slope, 1, s->columns, 1, 1), ax_slice_in_dim(slope, 0, 1, 1, 1)), 1);
  out[0] = ax_add(in[0], ax_mul(ax_full_like(slope, 0.25), ax_sub(slope, turned)));
}

static void points(const ax_value *in, ax_value *out, void *context) {
  ax_value x = in[0];
  if (((const shape *)context)->carried) {
    ax_scan(AX_CLOSURE(moved, 1, 1, context), 1, 3, false, in, out);
    return;
  }
  for (int i = 0; i < 3; i++) moved(&x, &x, context);
  out[0] = x;
}

static void coordinates_of_points(void **state) {
  test_random random = {5};
  (void)state;
  static const int64_t heights[] = {15, 16, 333, 4099};
  for (size_t h = 0; h < AX_COUNT(heights); h++)
    for (int64_t columns = 2; columns <= 4; columns++)
      for (int carried = 0; carried < 2; carried++) {
        const int64_t rows = heights[h];
        const ax_type type = TEST_TYPE(AX_F32, rows, columns);
        ax_tensor *in = test_random_tensor(&random, type, -1, 1), *out, *wanted;
        ax_program *program = test_trace(points, &(shape){rows, columns, carried != 0}, &type, 1, 1);
        test_run(program, &in, &out);
        TEST_OK(ax_evaluate(program, &in, &wanted));
        TEST_TENSORS_NEAR(out, wanted, 1e-5);
        if (rows <= 333) TEST_EVERY_WAY(program, &in, 1e-5);
        test_release(&out, 1);
        test_release(&wanted, 1);
        test_release(&in, 1);
        ax_program_release(program);
      }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_way), cmocka_unit_test(like_pieces_are_one_kernel), cmocka_unit_test(pieces_are_read_alone),
                                     cmocka_unit_test(few_columns), cmocka_unit_test(coordinates_of_points)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
