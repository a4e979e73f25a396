/* Small programs, and the operations they come to. A plan is written as a line: its operations in order, with the index space of a
   kernel ("reduce": one that reduces), the shape of a product (' marks a transposed operand), the number of an exchange; "once" is
   for one device of a group. */
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "ir/prim.h"
#include "plan/op.h"
#include "plan/passes.h"
#include "support/cmocka.h"
#include "support/run.h"

static ax_value number(double x) { return ax_full(AX_F32, AX_DIMS(), x); }

/* --- Plans as lines --- */

static void add_block(ax_text *line, ax_plan *plan, ax_block *block);

static void add_kernel(ax_text *line, const ax_loop_kernel *kernel) {
  ax_text_add(line, "%s[", kernel->reduce_rank > 0 ? "reduce" : "kernel");
  for (uint32_t d = 0; d < kernel->rank; d++) ax_text_add(line, "%s%lld", d > 0 ? "," : "", (long long)kernel->dims[d]);
  ax_text_add(line, "]");
}

static void add_op(ax_text *line, ax_plan *plan, ax_op *op) {
  switch (op->kind) {
    case AX_OP_NONE: fail(); break;
    case AX_OP_KERNEL: add_kernel(line, op->kernel.kernel); break;
    case AX_OP_ROWS:
      ax_text_add(line, "rows (");
      for (uint32_t k = 0; k < op->rows->count; k++) {
        if (k > 0) ax_text_add(line, "; ");
        add_op(line, plan, &op->rows->members[k]);
      }
      ax_text_add(line, ")");
      break;
    case AX_OP_GEMM:
      ax_text_add(line, "gemm%s[%lld,%lld]%s[%lld,%lld]", op->gemm->transpose_a ? "'" : "", (long long)op->gemm->m,
                  (long long)op->gemm->k, op->gemm->transpose_b ? "'" : "", (long long)op->gemm->k, (long long)op->gemm->n);
      break;
    case AX_OP_EVAL: ax_text_add(line, "eval %s", op->eqn->prim->name); break;
    case AX_OP_ROUTINE: ax_text_add(line, "routine %s", op->eqn->prim->name); break;
    case AX_OP_START: ax_text_add(line, "start %u", op->exchange->id); break;
    case AX_OP_DONE: ax_text_add(line, "done %u", op->exchange->id); break;
    default: ax_text_add(line, "%s", ax_op_rules_of(op)->name); break;
  }
  if (plan->mesh.count > 0 && op->axes == 0) ax_text_add(line, " once");
  for (uint32_t k = 0; ax_op_block(op, k) != NULL; k++) {
    if (ax_op_block(op, k)->count == 0) continue;
    ax_text_add(line, " (");
    add_block(line, plan, ax_op_block(op, k));
    ax_text_add(line, ")");
  }
}

static void add_block(ax_text *line, ax_plan *plan, ax_block *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    if (i > 0) ax_text_add(line, "; ");
    add_op(line, plan, &block->ops[i]);
  }
}

/* After the passes, the program is `wanted`. Released. */
static void expect_plan(ax_program *program, const char *wanted) {
  ax_plan *plan = test_plan(program);
  ax_text line = {0};
  char *got;
  bool found;
  TEST_OK(ax_plan_optimise(plan, "fuse", &found));
  assert_true(found);
  add_block(&line, plan, &plan->block);
  TEST_OK(ax_text_finish(&line, &got));
  assert_string_equal(got, wanted);
  ax_free(got);
  ax_plan_destroy(plan);
  ax_program_release(program);
}

static void expect(ax_function function, const ax_type *in, uint32_t in_count, uint32_t out_count, const char *wanted) {
  expect_plan(test_trace(function, NULL, in, in_count, out_count), wanted);
}

static void expect_on_mesh(const test_map *map, const ax_type *in, const char *wanted) {
  expect_plan(test_trace_map(map, in), wanted);
}

static const ax_type matrix = {.dtype = AX_F32, .rank = 2, .dims = {4, 6}};

/* --- One pass over memory --- */

static void chain(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = in[0];
  for (int i = 0; i < 5; i++) x = ax_tanh(ax_add(ax_mul(x, number(0.5)), in[1]));
  out[0] = x;
}

static void two_results(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value shared = ax_exp(in[0]);
  out[0] = ax_mul(shared, in[1]);
  out[1] = ax_sub(shared, in[1]);
}

static void rearranged(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value turned = ax_transpose(ax_reshape(in[0], AX_DIMS(6, 4)), AX_DIMS(1, 0));
  ax_value row = ax_slice(in[1], AX_DIMS(1, 0), AX_DIMS(2, 6), NULL);
  out[0] = ax_add(turned, ax_broadcast_in_dim(row, AX_LIST(2, matrix.dims), AX_DIMS(0, 1)));
}

static void sum_of_squares(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value difference = ax_sub(in[0], in[1]);
  out[0] = ax_reduce_sum(ax_mul(difference, difference), AX_DIMS(1), false);
}

static void only_constants(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = ax_exp(ax_add(ax_full(AX_F32, AX_LIST(2, matrix.dims), 1), number(2)));
  out[0] = ax_mul(in[0], x);
}

static void pointwise(void **state) {
  (void)state;
  const ax_type in[] = {matrix, matrix};
  expect(chain, in, 2, 1, "kernel[4,6]");
  expect(two_results, in, 2, 2, "kernel[4,6]");
  expect(rearranged, in, 2, 1, "kernel[4,6]");
  expect(sum_of_squares, in, 2, 1, "reduce[4,6]");
  expect(only_constants, in, 2, 1, "kernel[4,6]");
}

static void softmax(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_softmax(in[0], -1);
}

/* What costs more than a load is computed once, however many read it. */
static void costly_and_read_twice(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = ax_tanh(in[0]);
  out[0] = ax_reduce_sum(x, AX_DIMS(0), false);
  out[1] = ax_reduce_sum(x, AX_DIMS(1), false);
}

/* What costs no more is computed by each reader. */
static void moved_and_read_twice(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = ax_transpose(in[0], AX_DIMS(1, 0));
  out[0] = ax_reduce_sum(x, AX_DIMS(0), false);
  out[1] = ax_reduce_sum(x, AX_DIMS(1), false);
}

static void reductions(void **state) {
  (void)state;
  expect(softmax, &matrix, 1, 1, "reduce[4,6]; reduce[4,6]; kernel[4,6]");
  expect(costly_and_read_twice, &matrix, 1, 2, "reduce[4,6]; reduce[6,4]");
  expect(moved_and_read_twice, &matrix, 1, 2, "reduce[4,6]; reduce[6,4]");
}

/* --- Products --- */

static ax_value transposed_product(const ax_value *in) {
  return ax_dot_general(in[0], in[1], AX_DIMS(0), AX_DIMS(0), AX_DIMS(), AX_DIMS());
}

static void turned_product(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_transpose(transposed_product(in), AX_DIMS(1, 0));
}

static void product_read_twice(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value product = transposed_product(in);
  out[0] = ax_transpose(product, AX_DIMS(1, 0));
  out[1] = ax_exp(product);
}

static void layer(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_relu(ax_add(ax_matmul(in[0], in[1]), in[2]));
}

static void products(void **state) {
  (void)state;
  const ax_type in[] = {TEST_TYPE(AX_F32, 80, 4), TEST_TYPE(AX_F32, 80, 6)}, tiny[] = {TEST_TYPE(AX_F32, 8, 4), TEST_TYPE(AX_F32, 8, 6)};
  const ax_type of_layer[] = {TEST_TYPE(AX_F32, 80, 4), TEST_TYPE(AX_F32, 4, 6), TEST_TYPE(AX_F32, 80, 6)};
  expect(turned_product, in, 2, 1, "gemm'[6,80][80,4]");
  expect(turned_product, tiny, 2, 1, "reduce[4,6,8]; kernel[6,4]");
  expect(product_read_twice, in, 2, 2, "gemm'[4,80][80,6]; kernel[6,4]");
  expect(layer, of_layer, 3, 1, "gemm[80,4][4,6]; kernel[80,6]");
}

/* --- What is written in parts keeps its order --- */

static void padded(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_pad(ax_exp(in[0]), number(7), AX_DIMS(1, 2), AX_DIMS(0, 1), AX_DIMS(0, 0));
}

static void joined(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_neg(ax_concatenate(AX_VALUES(ax_exp(in[0]), in[1]), 0));
}

static void updated(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value row = ax_slice(in[1], AX_DIMS(0, 0), AX_DIMS(1, 6), NULL), zero = ax_full(AX_S32, AX_DIMS(), 0);
  ax_value once = ax_dynamic_update_slice(ax_exp(in[0]), row, AX_VALUES(zero, zero));
  out[0] = ax_dynamic_update_slice(once, ax_neg(row), AX_VALUES(ax_full(AX_S32, AX_DIMS(), 2), zero));
}

/* What is padded is chosen by whoever reads it, at as many places as it likes; what is computed first, where that is not much more
   of it. */
static void stencil(const ax_value *in, ax_value *out, void *context) {
  const int64_t one[] = {1, 1}, none[] = {0, 0}, n = ax_typeof(in[0]).dims[0], m = ax_typeof(in[0]).dims[1];
  const double *around = context;
  ax_value wide = ax_pad(in[0], number(*around), one, one, none), sum = in[0];
  for (int64_t d = 0; d < 4; d++) {
    const int64_t start[] = {d == 0 ? 0 : d == 1 ? 2 : 1, d == 2 ? 0 : d == 3 ? 2 : 1}, limit[] = {start[0] + n, start[1] + m};
    sum = ax_add(sum, ax_slice(wide, start, limit, NULL));
  }
  out[0] = ax_tanh(sum);
}

static void computed_and_padded(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value wide = ax_pad(ax_exp(in[0]), number(7), AX_DIMS(1, 1), AX_DIMS(1, 1), AX_DIMS(0, 0));
  out[0] = ax_mul(wide, in[1]);
}

/* Turned round by one along both dimensions: nearly all of what is put together is one part. */
static void rolled(const ax_value *in, ax_value *out, void *context) {
  ax_value sum = in[0];
  (void)context;
  for (int64_t d = 0; d < 2; d++) {
    const int64_t n = ax_typeof(in[0]).dims[d];
    ax_value last = ax_slice_in_dim(in[0], n - 1, n, 1, d), others = ax_slice_in_dim(in[0], 0, n - 1, 1, d);
    sum = ax_add(sum, ax_concatenate(AX_VALUES(last, others), d));
  }
  out[0] = sum;
}

/* A slope, column by column, and a step along it, as of a differential equation for many points. */
static ax_value moved(ax_value x) {
  ax_value column[3], side[3];
  for (int64_t i = 0; i < 3; i++) column[i] = ax_slice_in_dim(x, i, i + 1, 1, 1);
  for (int i = 0; i < 3; i++) side[i] = ax_mul(column[i], ax_sub(column[(i + 1) % 3], column[(i + 2) % 3]));
  return ax_add(x, ax_mul(ax_full_like(x, 0.1), ax_concatenate(AX_LIST(3, side), 1)));
}

static void points(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = moved(moved(moved(in[0])));
}

static void paddings(void **state) {
  (void)state;
  static const double nothing = 0, something = 3;
  const ax_type square = TEST_TYPE(AX_F32, 40, 40), wide[] = {square, TEST_TYPE(AX_F32, 42, 42)};
  expect_plan(test_trace(stencil, (void *)(uintptr_t)&nothing, &square, 1, 1), "kernel[40,40]");
  expect_plan(test_trace(stencil, (void *)(uintptr_t)&something, &square, 1, 1), "kernel[40,40]");
  expect(computed_and_padded, wide, 2, 1, "kernel[42,42]");
  expect(rolled, &square, 1, 1, "kernel[40,40]");
}

static void parts(void **state) {
  (void)state;
  const ax_type in[] = {matrix, matrix};
  expect(padded, in, 1, 1, "kernel[4,6]; kernel[5,9]");
  expect(joined, in, 2, 1, "kernel[4,6]; kernel[4,6]");
  expect(updated, in, 2, 1, "kernel[4,6]; kernel[1,6]; kernel[1,6]");
  const ax_type far[] = {TEST_TYPE(AX_F32, 5000, 3)};
  expect(points, far, 1, 1, "kernel[5000,1]");
}

/* --- Loops: carries are read before they are written --- */

static void swap_step(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_neg(in[1]);
  out[1] = ax_exp(in[0]);
}

static void swapped(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_scan(AX_FN(swap_step, 2, 2), 2, 3, false, in, out);
}

/* The sum so far is carried and stacked by the kernel that adds it up; the copy to the carry is coalescing's. */
static void add_row(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = out[1] = ax_add(in[0], in[1]);
}

static void running_sums(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value operands[] = {ax_full(AX_F32, AX_DIMS(6), 0), in[0]};
  ax_scan(AX_FN(add_row, 2, 2), 1, -1, false, operands, out);
}

/* A row is written where it belongs: neither the carry nor its start is copied, except an argument, which stays. */
static void row_step(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value at[] = {in[0], ax_full(AX_S32, AX_DIMS(), 0)};
  out[0] = ax_add(in[0], ax_full(AX_S32, AX_DIMS(), 1));
  out[1] = ax_dynamic_update_slice(in[1], ax_exp(ax_dynamic_slice(in[1], at, AX_DIMS(1, 6))), at);
}

static void rows(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value start[] = {ax_full(AX_S32, AX_DIMS(), 0), in[0]}, end[2];
  ax_scan(AX_FN(row_step, 2, 2), 2, 4, false, start, end);
  out[0] = end[1];
}

static void rows_of_sum(const ax_value *in, ax_value *out, void *context) {
  ax_value sum = ax_add(in[0], in[1]);
  rows(&sum, out, context);
}

/* Parts are added to what began as zeros; to another start, -0.0 among it perhaps, tables of zeros with a part in them are. */
static void part_step(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value at[] = {in[0], ax_full(AX_S32, AX_DIMS(), 0)}, row = ax_dynamic_slice(in[2], at, AX_DIMS(1, 6));
  out[0] = ax_add(in[0], ax_full(AX_S32, AX_DIMS(), 1));
  out[1] = ax_add(in[1], ax_dynamic_update_slice(ax_full(AX_F32, AX_DIMS(4, 6), 0), row, at));
  out[2] = in[2];
}

static void parts_added(const ax_value *in, ax_value *out, void *context) {
  const bool *zero = context;
  ax_value start[] = {ax_full(AX_S32, AX_DIMS(), 0), *zero ? ax_full(AX_F32, AX_DIMS(4, 6), 0) : in[1], in[0]}, end[3];
  ax_scan(AX_FN(part_step, 3, 3), 3, 4, false, start, end);
  out[0] = end[1];
}

static void loops(void **state) {
  (void)state;
  const ax_type in[] = {matrix, matrix};
  expect(running_sums, in, 1, 2, "kernel[6]; loop (kernel[6]; kernel[6])");
  expect(swapped, in, 2, 2, "kernel[4,6]; kernel[4,6]; loop (kernel[4,6]; kernel[4,6]; kernel[4,6])");
  expect(rows, in, 1, 1, "kernel[]; kernel[4,6]; loop (kernel[1,6]; kernel[1,6]; kernel[])");
  bool zero = true;
  expect_plan(test_trace(parts_added, &zero, in, 2, 1), "kernel[4,6]; kernel[]; loop (kernel[1,6]; kernel[])");
  zero = false;
  expect_plan(test_trace(parts_added, &zero, in, 2, 1),
              "kernel[]; kernel[4,6]; loop (kernel[4,6]; kernel[1,6]; kernel[]; kernel[4,6])");
  expect(rows_of_sum, in, 2, 1, "kernel[4,6]; kernel[]; loop (kernel[1,6]; kernel[1,6]; kernel[])");
}

/* --- What nobody reads --- */

/* Each is found out at its end, when what it is made of has been passed already. */
static void unread(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value one = ax_exp(in[0]), sum = ax_reduce_sum(one, AX_DIMS(0), false);
  ax_reduce_sum(ax_mul(one, ax_broadcast_in_dim(sum, AX_LIST(2, matrix.dims), AX_DIMS(1))), AX_DIMS(1), false);
  ax_neg(in[1]);
  out[0] = ax_add(in[0], in[1]);
}

static void dead(void **state) {
  (void)state;
  const ax_type in[] = {matrix, matrix};
  expect(unread, in, 2, 1, "kernel[4,6]");
}

/* --- Views --- */

static const int64_t flat[] = {24}, rows_split[] = {2, 2, 6}, columns_split[] = {4, 2, 3}, one_more[] = {4, 1, 6},
                     narrow[] = {6, 4};

/* Dimensions split, joined, put in and taken out. */
static void reshapes(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = ax_tanh(in[0]);
  x = ax_mul(ax_reshape(x, AX_LIST(3, rows_split)), number(2));
  x = ax_exp(ax_reshape(x, AX_LIST(1, flat)));
  x = ax_add(ax_reshape(x, AX_LIST(3, one_more)), number(1));
  out[0] = ax_sub(ax_reshape(x, AX_LIST(2, matrix.dims)), in[1]);
}

/* A value that both sides of a reshape want, as gradients do. */
static void wanted_twice(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = ax_tanh(in[0]), y = ax_reshape(x, AX_LIST(3, columns_split));
  out[0] = ax_mul(x, in[1]);
  out[1] = ax_add(ax_exp(y), y);
}

/* A row whose number is computed: its reader takes it from the matrix, whatever is read beside it. */
static void numbered_row(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const ax_value number = ax_argmax(in[1], 0, AX_S32), at[] = {number, ax_full(AX_S32, AX_DIMS(), 0)};
  out[0] = ax_mul(ax_reshape(ax_dynamic_slice(in[0], at, AX_DIMS(1, 6)), AX_DIMS(6)), in[1]);
}

/* An element of such a row: nothing of the row is copied. */
static void element_of_row(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const ax_value at[] = {in[1], ax_full(AX_S32, AX_DIMS(), 0)};
  const ax_value row = ax_reshape(ax_dynamic_slice(in[0], at, AX_DIMS(1, 6)), AX_DIMS(6));
  out[0] = ax_neg(ax_dynamic_slice(row, AX_LIST(1, &in[2]), AX_DIMS(2)));
}
static void element_of_column(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const ax_value at[] = {ax_full(AX_S32, AX_DIMS(), 0), in[1]};
  const ax_value column = ax_reshape(ax_dynamic_slice(in[0], at, AX_DIMS(4, 1)), AX_DIMS(1, 4, 1));
  out[0] = ax_neg(ax_dynamic_slice(column, ((const ax_value[]){at[0], in[2], at[0]}), AX_DIMS(1, 2, 1)));
}

/* The parts of a complex number are looked up, and not the number. */
static void size_of_one(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_abs(ax_reshape(ax_dynamic_slice(in[0], AX_LIST(1, &in[1]), AX_DIMS(1)), AX_DIMS()));
}

/* Rows of a reshape, turned: loaded where they lie. */
static void rows_turned(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = ax_reshape(ax_tanh(in[0]), AX_LIST(3, rows_split)), row = ax_slice(x, AX_DIMS(1, 0, 0), AX_DIMS(2, 2, 6), NULL);
  out[0] = ax_neg(ax_transpose(ax_reshape(row, AX_DIMS(2, 6)), AX_DIMS(1, 0)));
}

/* An element's row would have to be found by a division, as it is broadcast along what is joined. */
static void divided(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = ax_mul(in[0], ax_broadcast_in_dim(ax_reshape(in[1], AX_DIMS(6)), AX_LIST(2, matrix.dims), AX_DIMS(1)));
  out[0] = ax_reduce_sum(ax_reshape(ax_transpose(ax_tanh(x), AX_DIMS(1, 0)), AX_LIST(1, flat)), AX_DIMS(0), false);
}

/* Six by four is not four by six in other words: no step of the one is a row of the other. */
static void other_rows(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = ax_transpose(ax_reshape(ax_tanh(in[0]), AX_LIST(2, narrow)), AX_DIMS(1, 0));
  out[0] = ax_mul(x, ax_exp(in[1]));
}

/* A mask over tiles of 2 by 3 that counts rows and columns of the whole. */
static const int64_t tiled[] = {2, 2, 2, 3};
static ax_value counted_over(uint32_t dim, int64_t tile) {
  const ax_value block = ax_iota(AX_S32, AX_LIST(4, tiled), dim), place = ax_iota(AX_S32, AX_LIST(4, tiled), dim + 1);
  return ax_add(ax_mul(block, ax_integer(tile)), place);
}
static void masked_tiles(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_where(ax_ge(counted_over(0, 2), counted_over(2, 3)), ax_exp(ax_reshape(in[0], AX_LIST(4, tiled))), number(0));
}
static void masked(const ax_value *in, ax_value *out, void *context) {
  masked_tiles(in, out, context);
  out[0] = ax_neg(ax_reshape(out[0], AX_LIST(2, matrix.dims)));
}
static void masked_within(const ax_value *in, ax_value *out, void *context) {
  masked_tiles(in, out, context);
  out[0] = ax_where(ax_ge(ax_iota(AX_S32, AX_LIST(4, tiled), 1), ax_integer(1)), out[0], number(1));
}
/* Tiles of an array that is padded to hold them all. */
static void masked_widened(const ax_value *in, ax_value *out, void *context) {
  const int64_t none[] = {0, 0}, high[] = {1, 1}, there[] = {3, 5};
  ax_value x = ax_pad(ax_slice(in[0], none, there, NULL), number(0), none, high, none);
  masked(&x, out, context);
  out[0] = ax_slice(out[0], none, there, NULL);
}

static void dimensions_that_are_one(void **state) {
  (void)state;
  expect(masked_tiles, &matrix, 1, 1, "kernel[4,6]");
  expect(masked, &matrix, 1, 1, "kernel[4,6]");
  expect(masked_within, &matrix, 1, 1, "kernel[2,2,6]");
  expect(masked_widened, &matrix, 1, 1, "kernel[3,5]");
}

/* As jax.numpy.take_along_axis: an index from the end, whether it is one, and the element, if so. The index and the truth value are of one kernel,
   which the look-up takes in. */
static void taken_along(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const int64_t dims[] = {128, 64, 1};
  const ax_value zero = ax_full(AX_S32, AX_DIMS(), 0), most = ax_full(AX_S32, AX_DIMS(), 63);
  const ax_value at = ax_where(ax_lt(in[1], zero), ax_add(in[1], ax_full(AX_S32, AX_DIMS(), 64)), in[1]), thin = ax_reshape(at, AX_LIST(3, dims));
  const ax_value there = ax_reduce_and(ax_and(ax_ge(thin, zero), ax_le(thin, most)), AX_DIMS(2), false);
  out[0] = ax_where(there, ax_take_along_axis(in[0], at, 1, NULL), ax_full(AX_F32, AX_DIMS(), -1));
}

static void several_for_one(void **state) {
  (void)state;
  const ax_type in[] = {TEST_TYPE(AX_F32, 128, 64), TEST_TYPE(AX_S32, 128, 64)};
  expect(taken_along, in, 2, 1, "kernel[128,64]");
}

static void views(void **state) {
  (void)state;
  const ax_type in[] = {matrix, matrix}, row[] = {matrix, TEST_TYPE(AX_F32, 6)};
  expect(reshapes, in, 2, 1, "kernel[4,6]");
  expect(wanted_twice, in, 2, 2, "kernel[4,6]");
  expect(rows_turned, in, 1, 1, "kernel[6,2]");
  expect(numbered_row, row, 2, 1, "reduce[6]; reduce[6]; kernel[6]"); /* argmax is two */
  const ax_type of_row[] = {matrix, TEST_SCALAR(AX_S32), TEST_SCALAR(AX_S32)};
  expect(element_of_row, of_row, 3, 1, "kernel[2]");
  expect(element_of_column, of_row, 3, 1, "kernel[1,2,1]");
  expect(size_of_one, ((const ax_type[]){TEST_TYPE(AX_C64, 24), TEST_SCALAR(AX_S32)}), 2, 1, "kernel[]");
  expect(divided, row, 2, 1, "kernel[6,4]; reduce[24]");
  expect(other_rows, in, 2, 1, "kernel[4,6]");
}

/* --- Values put together from parts --- */

static const ax_type wide = {.dtype = AX_F32, .rank = 2, .dims = {32, 64}};

static ax_value half(ax_value x, int64_t k) { return ax_slice(x, AX_DIMS(0, 32 * k), AX_DIMS(32, 32 * k + 32), NULL); }

/* A rotary embedding: x * c + (-right, left) * s. */
static void rotated(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value turned = ax_concatenate(AX_VALUES(ax_neg(half(in[0], 1)), half(in[0], 0)), 1);
  out[0] = ax_add(ax_mul(in[0], in[1]), ax_mul(turned, in[2]));
}

/* Its gradient pads. */
static void halves_padded(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const int64_t none[] = {0, 0}, before[] = {0, 64}, middle[] = {0, 64}, rows[] = {64, 64}, all[] = {64, 128};
  ax_value zero = number(0), first = ax_slice(in[0], none, rows, NULL), second = ax_slice(in[1], middle, all, NULL);
  out[0] = ax_mul(ax_add(ax_pad(first, zero, before, none, none), ax_pad(second, zero, none, before, none)), in[2]);
}

/* A product wants it whole. A sum along what is put together chooses. */
static void wanted_whole(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = ax_concatenate(AX_VALUES(ax_tanh(half(in[0], 1)), half(in[1], 0)), 1);
  out[0] = ax_matmul(x, ax_reshape(in[2], AX_DIMS(64, 32)));
  ax_value y = ax_concatenate(AX_VALUES(half(in[0], 1), half(in[1], 0)), 1);
  out[1] = ax_reduce_sum(y, AX_DIMS(1), false);
}

/* Columns of one element are no runs for vectors: they are chosen. */
static void columns(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value first = ax_slice(in[0], AX_DIMS(0, 0), AX_DIMS(32, 1), NULL);
  ax_value rest = ax_slice(in[1], AX_DIMS(0, 1), AX_DIMS(32, 64), NULL);
  out[0] = ax_exp(ax_concatenate(AX_VALUES(first, rest), 1));
}

static void put_together(void **state) {
  (void)state;
  const ax_type in[] = {wide, wide, wide}, large = TEST_TYPE(AX_F32, 64, 128), many[] = {large, large, large};
  expect(rotated, in, 3, 1, "kernel[32,32]; kernel[32,32]");
  expect(halves_padded, many, 3, 1, "kernel[64,64]; kernel[64,64]");
  expect(wanted_whole, in, 3, 2, "kernel[32,32]; kernel[32,32]; gemm[32,64][64,32]; reduce[32,64]");
  expect(columns, in, 2, 1, "kernel[32,64]");
}

/* --- Effects --- */

/* abs, then twice an equation with effects, of which nobody reads the second, then abs. */
static void expect_with_effects(uint32_t effects, const char *wanted) {
  ax_prim marked = *ax_prim_find("neg", 3);
  const ax_prim *plain = ax_prim_find("abs", 3);
  marked.effects = effects;
  const ax_mesh none = {0};
  ax_builder builder;
  ax_value x, first, second, unread, last;
  ax_program *program;
  ax_builder_begin(&builder, &none);
  x = ax_builder_input(&builder, &matrix);
  ax_emit(plain, NULL, &x, 1, &first, 1);
  ax_emit(&marked, NULL, &first, 1, &second, 1);
  ax_emit(&marked, NULL, &second, 1, &unread, 1);
  ax_emit(plain, NULL, &second, 1, &last, 1);
  TEST_OK(ax_builder_finish(&builder, &last, 1, &program, NULL, NULL));
  expect_plan(program, wanted);
}

static void step_of_three(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_tanh(in[0]);
}

static void three_steps(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_scan(AX_FN(step_of_three, 1, 1), 1, 3, false, in, out);
}

/* How many operations a loop's body has once carries are in place, when its copies have effects. */
static uint32_t body_with_effects(uint32_t effects) {
  ax_program *program = test_trace(three_steps, NULL, &matrix, 1, 1);
  ax_plan *plan = test_plan(program);
  ax_prim marked = *ax_prim_find("exp", 3);
  const ax_eqn eqn = {.prim = &marked};
  uint32_t count = 0, to, from;
  marked.effects = effects;
  for (uint32_t i = 0; i < plan->block.count; i++) {
    if (plan->block.ops[i].kind != AX_OP_LOOP) continue;
    ax_block *body = &plan->block.ops[i].loop.body;
    for (uint32_t k = 0; k < body->count; k++)
      if (ax_op_copies_all(&body->ops[k], &to, &from)) body->ops[k].eqn = &eqn;
    TEST_OK(ax_plan_coalesce(plan));
    count += body->count;
  }
  ax_plan_destroy(plan);
  ax_program_release(program);
  return count;
}

static void effects(void **state) {
  (void)state;
  expect_with_effects(0, "kernel[4,6]");
  expect_with_effects(AX_EFFECT_EXCHANGE, "kernel[4,6]");
  expect_with_effects(AX_EFFECT_ORDER, "kernel[4,6]; kernel[4,6]; kernel[4,6]");
  expect_with_effects(AX_EFFECT_STATE, "kernel[4,6]; kernel[4,6]; kernel[4,6]");
  assert_int_equal(body_with_effects(0), 1);
  assert_int_equal(body_with_effects(AX_EFFECT_STATE), 2);
}

/* --- Devices --- */

/* The report of the loss waits for all; the gradient's exchange is started first. */
static void train(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value hidden = ax_tanh(ax_matmul(in[1], in[0]));
  out[0] = ax_mul(ax_psum(ax_reduce_sum(ax_reshape(hidden, AX_DIMS(4)), AX_DIMS(0), false), "d"), number(0.25));
  ax_value gradient = ax_dot_general(ax_mul(hidden, hidden), in[1], AX_DIMS(0), AX_DIMS(0), AX_DIMS(), AX_DIMS());
  out[1] = ax_sub(in[0], ax_psum(ax_transpose(gradient, AX_DIMS(1, 0)), "d"));
}

static void in_two_parts(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value started = ax_psum_start(in[0], "d"), product = ax_matmul(in[1], in[1]);
  out[0] = ax_matmul(product, ax_done(started));
}

/* A chain of collectives, and work that needs none of them. */
static void waits_in_a_row(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_psum(ax_mul(ax_psum(in[0], "d"), in[0]), "d");
  out[1] = ax_matmul(in[1], in[1]);
}

/* What is the same everywhere is computed by one, not by each that reads it. */
static void the_same_everywhere(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[1], ax_tanh(in[0]));
}

static void devices(void **state) {
  (void)state;
  const ax_type weights[] = {TEST_TYPE(AX_F32, 3, 2), TEST_TYPE(AX_F32, 8, 3)};
  const ax_type squares[] = {TEST_TYPE(AX_F32, 80), TEST_TYPE(AX_F32, 80, 20)};
  const ax_type vectors[] = {TEST_TYPE(AX_F32, 8), TEST_TYPE(AX_F32, 32)};
  expect_on_mesh(&(test_map){"d=4", {"", "d"}, {"", ""}, .body = train}, weights,
                 "reduce[2,2,3]; reduce[4]; start 0; kernel[2,2]; reduce[2,3,2]; kernel[3,2]; start 1; "
                 "done 0 once; kernel[] once; done 1 once; kernel[3,2] once");
  expect_on_mesh(&(test_map){"d=4", {"d", "d"}, {"d"}, .body = in_two_parts}, squares,
                 "start 0; gemm[20,20][20,20]; done 0 once; reduce[20,20]");
  expect_on_mesh(&(test_map){"d=4", {"d", "d"}, {"", "d"}, .body = waits_in_a_row}, squares,
                 "start 0; gemm[20,20][20,20]; done 0 once; kernel[20]; start 1; done 1 once");
  expect_on_mesh(&(test_map){"d=4", {"", "d"}, {"d"}, .body = the_same_everywhere}, vectors, "kernel[8] once; kernel[8]");
}

/* Each step's value comes a long way after the one before it. */
static void one_by_one(const ax_value *in, ax_value *out, void *context) {
  const ax_value x = in[0];
  ax_value y = x, sum = x;
  (void)context;
  for (int i = 0; i < 3; i++) {
    for (int k = 0; k < 15; k++) y = ax_tanh(ax_neg(y));
    sum = ax_add(sum, ax_matmul(y, in[1]));
  }
  out[0] = sum;
}

/* All at the end would hold all of them; of small ones that is no matter. */
static void sums(void **state) {
  (void)state;
  const ax_type large[] = {TEST_TYPE(AX_F32, 128, 64), TEST_TYPE(AX_F32, 64, 64)};
  const ax_type small[] = {TEST_TYPE(AX_F32, 8, 64), TEST_TYPE(AX_F32, 64, 64)};
  expect(
      one_by_one, large, 2, 1,
      "kernel[128,64]; gemm[128,64][64,64]; kernel[128,64]; gemm[128,64][64,64]; kernel[128,64]; kernel[128,64]; gemm[128,64][64,64]; "
      "kernel[128,64]");
  expect(one_by_one, small, 2, 1, "kernel[8,64]; gemm[8,64][64,64]; gemm[8,64][64,64]; gemm[8,64][64,64]; kernel[8,64]");
}

/* One step of a layer's gradient, of a batch of one: what goes on to the step before, and what is added to the weights'
   gradient. */
static void step_of_one(const ax_value *in, ax_value *out, void *context) {
  const int64_t row = 1, column = 0;
  (void)context;
  out[0] = ax_dot_general(in[0], in[1], AX_LIST(1, &row), AX_LIST(1, &row), AX_DIMS(), AX_DIMS());
  out[1] = ax_add(in[2], ax_transpose(ax_dot_general(in[0], in[3], AX_LIST(1, &column), AX_LIST(1, &column), AX_DIMS(),
                                                     AX_DIMS()), AX_DIMS(1, 0)));
}

/* The product of two vectors is made where it is added, however it lies there, though a sum before it goes over as many steps and
   reads one of the vectors too. */
static void outer_products(void **state) {
  (void)state;
  const ax_type large[] = {TEST_TYPE(AX_F32, 1, 96), TEST_TYPE(AX_F32, 80, 96), TEST_TYPE(AX_F32, 80, 96),
                           TEST_TYPE(AX_F32, 1, 80)};
  const ax_type small[] = {TEST_TYPE(AX_F32, 1, 12), TEST_TYPE(AX_F32, 10, 12), TEST_TYPE(AX_F32, 10, 12),
                           TEST_TYPE(AX_F32, 1, 10)};
  expect(step_of_one, large, 4, 2, "reduce[1,80,96]");
  expect(step_of_one, small, 4, 2, "reduce[1,10,12]");
}

/* Rows of two arrays, looked up at the same numbers; each result goes into a product of its own. */
static void two_lookups(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  for (int k = 0; k < 2; k++) out[k] = ax_matmul(ax_take(in[k], in[2], 0), in[3]);
}

/* Together they would share the numbers alone, and the second one's rows would be held while the first product is made. */
static void large_results_stay_apart(void **state) {
  (void)state;
  const ax_type large[] = {TEST_TYPE(AX_F32, 4096, 64), TEST_TYPE(AX_F32, 4096, 64), TEST_TYPE(AX_S32, 2048), TEST_TYPE(AX_F32, 64, 8)};
  const ax_type small[] = {TEST_TYPE(AX_F32, 64, 64), TEST_TYPE(AX_F32, 64, 64), TEST_TYPE(AX_S32, 32), TEST_TYPE(AX_F32, 64, 8)};
  expect(two_lookups, large, 4, 2, "kernel[2048,64]; gemm[2048,64][64,8]; kernel[2048,64]; gemm[2048,64][64,8]");
  expect(two_lookups, small, 4, 2, "kernel[32,64]; gemm[32,64][64,8]; gemm[32,64][64,8]");
}

/* --- Columns of indices, and pieces that they choose among --- */

enum { rows_each = 40, columns_each = 24 };

static void expect_runs(ax_function function, const ax_type *in, uint32_t in_count, const char *wanted) {
  if (!AX_HOSTILE) expect(function, in, in_count, 1, wanted); /* where whatever may be made again is */
  ax_program *program = test_trace(function, NULL, in, in_count, 1);
  test_random_run(program, 7, false, 1e-6);
  ax_program_release(program);
}

static ax_value counted(int64_t dimension) {
  return ax_reshape(ax_iota(AX_S32, AX_DIMS(rows_each, columns_each), dimension), AX_DIMS(rows_each, columns_each, 1));
}

/* Of three arrays the one that a number says, element by element: what is put together is not, and the numbers that count are no look-ups. */
static void chosen(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const int64_t one[] = {1, 1, 1}, all[] = {0, 1, 2};
  ax_value stacked[3];
  for (int k = 0; k < 3; k++) stacked[k] = ax_reshape(k < 2 ? in[k] : ax_add(in[0], in[1]), AX_DIMS(1, rows_each, columns_each));
  const ax_value which = ax_reshape(ax_convert_element_type(in[2], AX_S32), AX_DIMS(rows_each, columns_each, 1));
  const ax_value at = ax_concatenate(AX_VALUES(which, counted(0), counted(1)), 2);
  const ax_gather_dims dims = {.collapsed_slice_dims = {3, all}, .start_index_map = {3, all}};
  out[0] = ax_gather(ax_concatenate(AX_LIST(3, stacked), 0), at, AX_LIST(3, one), &dims, NULL);
}

/* Of pieces of two rows one cannot be chosen so. */
static void chosen_of_two(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const ax_value which = ax_convert_element_type(ax_reshape(in[2], AX_DIMS(rows_each * columns_each)), AX_S32);
  const ax_value pieces[] = {ax_slice(in[0], AX_DIMS(0, 3), AX_DIMS(2, 4), NULL), ax_slice(in[1], AX_DIMS(5, 3), AX_DIMS(7, 4), NULL)};
  out[0] = ax_take(ax_reshape(ax_concatenate(AX_LIST(2, pieces), 0), AX_DIMS(4)), which, 0);
}

static void indices(void **state) {
  (void)state;
  const ax_type in[] = {TEST_TYPE(AX_F32, rows_each, columns_each), TEST_TYPE(AX_F32, rows_each, columns_each),
                        TEST_TYPE(AX_F32, rows_each, columns_each)};
  expect_runs(chosen, in, 3, "kernel[40,24]");
  expect_runs(chosen_of_two, in, 3, "kernel[2,1]; kernel[2,1]; kernel[960]");
}

/* Three columns, of which one is a copy: rows are written whole. */
static void three_columns(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const ax_value made[] = {ax_exp(in[0]), in[1], ax_mul(in[0], in[1])};
  ax_value columns[3];
  for (int k = 0; k < 3; k++) columns[k] = ax_reshape(made[k], AX_DIMS(rows_each * columns_each, 1));
  out[0] = ax_concatenate(AX_LIST(3, columns), 1);
}

/* Columns that several of the products read. */
static void crossed(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value a[3], b[3], made[3];
  for (int64_t k = 0; k < 3; k++) {
    a[k] = ax_reshape(ax_slice_in_dim(in[0], k, k + 1, 1, 1), AX_DIMS(rows_each));
    b[k] = ax_reshape(ax_slice_in_dim(in[1], k, k + 1, 1, 1), AX_DIMS(rows_each));
  }
  for (int k = 0; k < 3; k++) {
    const int l = (k + 1) % 3, m = (k + 2) % 3;
    made[k] = ax_reshape(ax_sub(ax_mul(a[l], b[m]), ax_mul(a[m], b[l])), AX_DIMS(rows_each, 1));
  }
  out[0] = ax_concatenate(AX_LIST(3, made), 1);
}

static void rows_whole(void **state) {
  (void)state;
  const ax_type points[] = {TEST_TYPE(AX_F32, rows_each, 3), TEST_TYPE(AX_F32, rows_each, 3)};
  expect_runs(crossed, points, 2, "kernel[40,1]");
  const ax_type in[] = {TEST_TYPE(AX_F32, rows_each, columns_each), TEST_TYPE(AX_F32, rows_each, columns_each)};
  expect_runs(three_columns, in, 2, "kernel[960,1]");
}

/* --- Differences, which are made again --- */

static void squared_differences(const ax_value *in, ax_value *out, void *context) {
  const int64_t axis = *(const int64_t *)context, length = ax_typeof(in[0]).dims[axis];
  const ax_value d = ax_sub(ax_slice_in_dim(in[0], 1, length, 1, axis), ax_slice_in_dim(in[0], 0, length - 1, 1, axis));
  out[0] = ax_reduce_sum(ax_square(d), AX_ALL_DIMS, false);
}

static void towards_neighbours(const ax_value *in, ax_value *out, void *axis) {
  ax_grad(AX_CLOSURE(squared_differences, 1, 1, axis), AX_FIRST(1), AX_LIST(1, in), AX_LIST(1, out));
}

/* Of two arrays: each would be read twice. */
static void towards_two(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const int64_t rows = ax_typeof(in[0]).dims[0];
  const ax_value d = ax_mul(ax_sub(in[0], in[1]), number(0.5));
  out[0] = ax_sub(ax_slice_in_dim(d, 1, rows, 1, 0), ax_slice_in_dim(d, 0, rows - 1, 1, 0));
}

static void differences(void **state) {
  const ax_type in[] = {TEST_TYPE(AX_F32, 80, 80), TEST_TYPE(AX_F32, 80, 80)};
  int64_t axes[] = {0, 1};
  (void)state;
  for (int k = 0; k < 2; k++) {
    ax_program *program = test_trace(towards_neighbours, &axes[k], in, 1, 1);
    test_random_run(program, 7, false, 1e-6);
    expect_plan(program, "kernel[80,80]");
  }
  expect(towards_two, in, 2, 1, "kernel[80,80]; kernel[79,80]");
}

/* --- Numbers that are known before a loop --- */

static void steps_of_numbers(const ax_value *in, ax_value *out, void *numbers) {
  const ax_value *made = numbers;
  out[0] = ax_mul(in[0], ax_convert_element_type(made[0], AX_F32));
  out[0] = ax_add(out[0], ax_select_n(made[1], in[0], ax_neg(in[0])));
}

/* A divisor that is 1 where it would be 0, and whether it is negative, as NumPy's remainders have them. */
static void numbers_before(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const ax_value two = ax_full_i64(AX_S32, AX_LIST(2, matrix.dims), 2), zero = ax_full_i64(AX_S32, AX_LIST(2, matrix.dims), 0);
  const ax_value divisor = ax_select_n(ax_eq(two, zero), two, ax_full_i64(AX_S32, AX_LIST(2, matrix.dims), 1));
  ax_value made[] = {divisor, ax_lt(divisor, zero)};
  ax_scan(AX_CLOSURE(steps_of_numbers, 1, 1, made), 1, 3, false, in, out);
}

/* Bytes that are seen as a longer number, and longer ones that are seen as bytes: these are other numbers. */
static void bytes_before(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const ax_value bytes = ax_full_i64(AX_U8, AX_DIMS(4, 6, 4), 200), words = ax_full_i64(AX_S32, AX_LIST(2, matrix.dims), 7);
  const ax_value low = ax_slice(ax_bitcast_convert_type(words, AX_S8), AX_DIMS(0, 0, 1), AX_DIMS(4, 6, 2), NULL);
  const ax_value one = ax_add(ax_reshape(low, AX_LIST(2, matrix.dims)), ax_full_i64(AX_S8, AX_LIST(2, matrix.dims), 1));
  ax_value made[] = {ax_convert_element_type(one, AX_S32),
                     ax_lt(ax_bitcast_convert_type(bytes, AX_S32), ax_full_i64(AX_S32, AX_LIST(2, matrix.dims), 0))};
  ax_scan(AX_CLOSURE(steps_of_numbers, 1, 1, made), 1, 3, false, in, out);
}

static void bytes_seen_as_words(void **state) {
  (void)state;
  ax_program *program = test_trace(bytes_before, NULL, &matrix, 1, 1);
  test_random_run(program, 7, false, 1e-6);
  ax_program_release(program);
}

static void numbers_known(void **state) {
  (void)state;
  ax_program *program = test_trace(numbers_before, NULL, &matrix, 1, 1);
  ax_plan *plan = test_plan(program);
  uint32_t loops = 0;
  TEST_OK(ax_plan_optimise(plan, "fuse", NULL));
  for (uint32_t i = 0; i < plan->block.count; i++) {
    const ax_op *op = &plan->block.ops[i];
    if (op->kind != AX_OP_LOOP) continue;
    loops++;
    for (uint32_t k = 0; k < op->loop.body.count; k++) assert_int_equal(op->loop.body.ops[k].kernel.kernel->slot_count, 1); /* the carry */
  }
  assert_int_equal(loops, 1);
  ax_plan_destroy(plan);
  test_random_run(program, 7, false, 1e-6);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(indices),   cmocka_unit_test(rows_whole), cmocka_unit_test(numbers_known), cmocka_unit_test(bytes_seen_as_words), cmocka_unit_test(differences),
      cmocka_unit_test(pointwise), cmocka_unit_test(reductions), cmocka_unit_test(products),
      cmocka_unit_test(paddings), cmocka_unit_test(parts),     cmocka_unit_test(loops),      cmocka_unit_test(devices),
      cmocka_unit_test(dead),      cmocka_unit_test(sums),       cmocka_unit_test(effects),
      cmocka_unit_test(views), cmocka_unit_test(several_for_one), cmocka_unit_test(dimensions_that_are_one), cmocka_unit_test(put_together), cmocka_unit_test(outer_products), cmocka_unit_test(large_results_stay_apart),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
