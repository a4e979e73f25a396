/* What shapes, reductions and products give and refuse, row by row; which products are one GEMM where the operands lie. */
#include <stdio.h>
#include <string.h>

#include "ir/program.h"
#include "plan/passes.h"
#include "prim/bind.h"
#include "prim/shape.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/tensor.h"

/* --- infer: an equation as text, on the values below; `error` NULL: it holds --- */

#define INPUTS "x:f32[3,4] w:f32[4,5] s:f32[] i:s32[] b:f32[2,3,4] m:bool[3,4] n:s32[3] e:f32[3,0]"

typedef struct equation {
  const char *type, *text, *error;
} equation;

static const equation equations[] = {
    {"f32[2,1,6]", "reshape[new_sizes=(2, 1, 6)] x", NULL},
    {"f32[0,7]", "reshape[new_sizes=(0, 7)] e", NULL},
    {"f32[11]", "reshape[new_sizes=(11,)] x", "12 elements do not fill f32[11]"},
    {"f32[12]", "reshape[new_sizes=(-3, -4)] x", "dimension 0 of the result is negative: -3"},
    {"f32[12]", "reshape[new_sizes=(9223372036854775807, 9223372036854775807, 2)] x", "too large"},

    {"f32[4,2,3]", "transpose[permutation=(2, 0, 1)] b", NULL},
    {"f32[4,2,3]", "transpose[permutation=(2, 0, 2)] b", "permutation has 2 twice"},
    {"f32[4,2,3]", "transpose[permutation=(2, 0, 3)] b", "permutation has 3, which is outside rank 3"},
    {"f32[4,3]", "transpose[permutation=(1, 0, 2)] x", "permutation has 3 entries for an operand of rank 2"},

    {"f32[3,2,4]", "broadcast_in_dim[shape=(3, 2, 4) broadcast_dimensions=(0, 2)] x", NULL},
    {"f32[4,3]", "broadcast_in_dim[shape=(4, 3) broadcast_dimensions=(1, 0)] x",
     "broadcast_dimensions do not increase"},
    {"f32[2,3,5]", "broadcast_in_dim[shape=(2, 3, 5) broadcast_dimensions=(1, 2)] x",
     "dimension 1, of 4, does not stretch to dimension 2 of f32[2,3,5]"},
    {"f32[2,3,4]", "broadcast_in_dim[shape=(2, 3, 4) broadcast_dimensions=(1,)] x",
     "broadcast_dimensions has 1 entries"},

    {"f32[2,2]", "slice[start_indices=(0, 1) limit_indices=(3, 4) strides=(2, 2)] x", NULL},
    {"f32[1,3]", "slice[start_indices=(1, 1) limit_indices=(3, 4) strides=(9223372036854775807, 1)] x", NULL},
    {"f32[0,3]", "slice[start_indices=(3, 1) limit_indices=(3, 4) strides=(1, 1)] x", NULL},
    {"f32[3,4]", "slice[start_indices=(0, 1) limit_indices=(3, 5) strides=(1, 1)] x",
     "1 to 5 is not a range of dimension 1, of 4"},
    {"f32[3,4]", "slice[start_indices=(2, 1) limit_indices=(1, 4) strides=(1, 1)] x",
     "2 to 1 is not a range of dimension 0"},
    {"f32[3,4]", "slice[start_indices=(0, 1) limit_indices=(3, 4) strides=(1, 0)] x", "the stride of dimension 1 is 0"},
    {"f32[3,4]", "slice[start_indices=(0,) limit_indices=(3, 4) strides=(1, 1)] x", "start_indices has 1 entries"},

    {"f32[6,5]", "pad[low=(1, -1) high=(0, 2) interior=(1, 0)] x s", NULL},
    {"f32[0,4]", "pad[low=(-2, 0) high=(-1, 0) interior=(0, 0)] x s", NULL},
    {"f32[3,2]", "pad[low=(0, 1) high=(0, 1) interior=(0, 7)] e s", NULL},
    {"f32[0,4]", "pad[low=(-2, 0) high=(-2, 0) interior=(0, 0)] x s", "cut more than dimension 0 has, 3"},
    {"f32[3,4]", "pad[low=(0, 0) high=(0, 0) interior=(-1, 0)] x s", "interior of dimension 0 is -1"},
    {"f32[3,4]", "pad[low=(9223372036854775807, 0) high=(9223372036854775807, 0) interior=(0, 0)] x s",
     "the padding of dimension 0 is too large"},
    {"f32[4,4]", "pad[low=(0, 0) high=(1, 0) interior=(0, 0)] x i", "the padding value is s32[], not f32[]"},

    {"f32[3,8]", "concatenate[dimension=1] x x e", NULL},
    {"f32[3,8]", "concatenate[dimension=1]", "at least one operand"},
    {"f32[7,4]", "concatenate[dimension=0] x w", "operand 1, f32[4,5], does not go with f32[3,4] along dimension 0"},
    {"f32[3,8]", "concatenate[dimension=2] x x", "dimension 2 is outside rank 2"},

    {"u8[3,300]", "iota[dtype=u8 shape=(3, 300) dimension=1]", NULL},
    {"bool[3]", "iota[dtype=bool shape=(3,) dimension=0]", "got bool"},
    {"f32[]", "iota[dtype=f32 shape=() dimension=0]", "dimension 0 is outside rank 0"},
    {"f32[3]", "iota[dtype=f32 shape=(4611686018427387904, 4) dimension=0]", "too large"},

    {"f32[2,4]", "dynamic_slice[slice_sizes=(2, 4)] x i i", NULL},
    {"f32[2,5]", "dynamic_slice[slice_sizes=(2, 5)] x i i", "a part of 5 does not fit dimension 1, of 4"},
    {"f32[2,4]", "dynamic_slice[slice_sizes=(2, 4)] x i s", "start 1 is not an integer scalar: f32[]"},
    {"f32[2,4]", "dynamic_slice[slice_sizes=(2, 4)] x i", "needs one start a dimension, 2, got 1"},
    {"f32[3,4]", "dynamic_update_slice x e i i", NULL},
    {"f32[3,4]", "dynamic_update_slice x w i i", "a part of 4 does not fit dimension 0, of 3"},
    {"f32[3,4]", "dynamic_update_slice x s i i", "the update differs in dtype or rank: f32[] into f32[3,4]"},

    {"f32[3]", "reduce_sum[axes=(2, 0)] b", NULL},
    {"s32[]", "reduce_max[axes=(0,)] n", NULL},
    {"f32[3]", "reduce_min[axes=(1,)] e", NULL},
    {"bool[]", "reduce_sum[axes=(0, 1)] m", "got bool"},
    {"f32[2]", "reduce_sum[axes=(1, 1)] b", "axes has 1 twice"},
    {"f32[2]", "reduce_sum[axes=(-1,)] b", "axes has -1, which is outside rank 3"},
    {"u8[2,4]", "argmax[axes=(1,) index_dtype=u8] b", NULL},
    {"bool[4]", "argmax[axes=(0,) index_dtype=bool] m", "the index dtype bool is no integer"},
    {"s32[]", "argmax[axes=(0, 1) index_dtype=s32] x", "takes one axis, got 2"},
    {"s32[3]", "argmax[axes=(1,) index_dtype=s32] e", "there is nothing along axis 1"},

    {"f32[3,2]", "dot_general[lhs_contract=(2,) rhs_contract=(1,) lhs_batch=(1,) rhs_batch=(0,)] b x", NULL},
    {"f32[3,3]", "dot_general[lhs_contract=(1,) rhs_contract=(1,) lhs_batch=() rhs_batch=()] e e", NULL},
    {"f32[3,4,3]", "dot_general[lhs_contract=() rhs_contract=() lhs_batch=() rhs_batch=()] x n",
     "operand dtypes differ: f32 and s32"},
    {"bool[4,4]", "dot_general[lhs_contract=(0,) rhs_contract=(0,) lhs_batch=() rhs_batch=()] m m", "got bool"},
    {"f32[4,5]", "dot_general[lhs_contract=(0,) rhs_contract=(0,) lhs_batch=() rhs_batch=()] x w",
     "contracted dimensions 0 and 0 differ in size: 3 and 4"},
    {"f32[4]", "dot_general[lhs_contract=(0,) rhs_contract=(0,) lhs_batch=(0,) rhs_batch=(1,)] x x",
     "the left operand has 0 twice"},
    {"f32[3,5]", "dot_general[lhs_contract=(1,) rhs_contract=(2,) lhs_batch=() rhs_batch=()] x w",
     "the right operand has 2, which is outside rank 2"},
    {"f32[4]", "dot_general[lhs_contract=(0,) rhs_contract=(0, 1) lhs_batch=() rhs_batch=()] x x",
     "1 contracted dimensions of the left operand, 2 of the right"},
};

static void equation_rows(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(equations); i++) {
    const equation *row = &equations[i];
    ax_program *program;
    char text[512];
    int length =
        snprintf(text, sizeof text, "{ lambda " INPUTS ". let\n    y:%s = %s\n  in (y,) }", row->type, row->text);
    ax_status status = ax_program_parse(text, (size_t)length, "row", &program);
    bool holds = row->error == NULL ? status == AX_OK : status != AX_OK && strstr(ax_message(), row->error) != NULL;
    if (!holds) fail_msg("%s\n%s", row->text, status == AX_OK ? "is taken" : ax_message());
    ax_program_release(program);
  }
}

/* --- The functions: what they make of their arguments before an equation is there, and the composites --- */

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

enum { X, W, S, I, B, M, N, input_count }; /* as above */
typedef ax_value (*maker)(const ax_value *in);
typedef struct row {
  maker make;
  const char *want; /* the result's type, or part of the error */
} row;

static ax_value reshape_rank(const ax_value *in) { return ax_reshape(in[X], AX_LIST(AX_MAX_RANK + 1, DIMS(1))); }
static ax_value reshape_null(const ax_value *in) { return ax_reshape(in[X], AX_LIST(2, NULL)); }
static ax_value transpose_null(const ax_value *in) { return ax_transpose(in[X], NULL); }
static ax_value slice_plain(const ax_value *in) { return ax_slice(in[X], DIMS(0, 1), DIMS(3, 4), NULL); }
static ax_value concatenate_none(const ax_value *in) { return ax_concatenate(AX_LIST(0, in), 0); }
static ax_value dynamic_slice(const ax_value *in) {
  return ax_dynamic_slice(in[X], AX_VALUES(in[I], in[I]), DIMS(2, 4));
}
static ax_value dynamic_slice_null(const ax_value *in) { return ax_dynamic_slice(in[X], NULL, DIMS(2, 3)); }
static ax_value update(const ax_value *in) {
  return ax_dynamic_update_slice(in[X], ax_reshape(in[S], AX_LIST(2, DIMS(1, 1))), AX_VALUES(in[I], in[I]));
}
static ax_value pad(const ax_value *in) { return ax_pad(in[X], in[S], DIMS(1, -1), DIMS(0, 2), DIMS(1, 0)); }
static ax_value expand(const ax_value *in) { return ax_expand_dims(in[X], -1); }
static ax_value expand_outside(const ax_value *in) { return ax_expand_dims(in[X], 3); }
static ax_value sum(const ax_value *in) { return ax_reduce_sum(in[B], AX_LIST(2, DIMS(0, -1)), false); }
static ax_value sum_all(const ax_value *in) { return ax_reduce_sum(in[B], AX_ALL_DIMS, false); }
static ax_value sum_twice(const ax_value *in) { return ax_reduce_sum(in[B], AX_LIST(2, DIMS(1, -2)), false); }
static ax_value sum_outside(const ax_value *in) { return ax_reduce_sum(in[B], AX_LIST(1, DIMS(-4)), false); }
static ax_value sum_null(const ax_value *in) { return ax_reduce_sum(in[B], AX_LIST(2, NULL), false); }
static ax_value argmax(const ax_value *in) { return ax_argmax(in[B], -2, AX_U8); }
static ax_value argmax_narrow(const ax_value *in) {
  return ax_argmax(ax_broadcast_in_dim(in[S], AX_LIST(1, DIMS(129)), NULL), 0, AX_S8);
}
static ax_value mean(const ax_value *in) { return ax_reduce_mean(in[B], AX_LIST(1, DIMS(1)), false); }
static ax_value mean_integer(const ax_value *in) { return ax_reduce_mean(in[N], AX_ALL_DIMS, false); }
static ax_value softmax_outside(const ax_value *in) { return ax_softmax(in[X], 2); }
static ax_value log_softmax(const ax_value *in) { return ax_log_softmax(in[X], 0); }
static ax_value one_hot(const ax_value *in) { return ax_one_hot(in[N], 10, AX_BF16); }
static ax_value one_hot_float(const ax_value *in) { return ax_one_hot(in[X], 10, AX_BF16); }
static ax_value one_hot_negative(const ax_value *in) { return ax_one_hot(in[N], -1, AX_F32); }
static ax_value where(const ax_value *in) { return ax_where(in[M], in[S], in[X]); }
static ax_value ones9(const ax_value *in) {
  return ax_broadcast_in_dim(in[S], AX_LIST(9, DIMS(1, 1, 1, 1, 1, 1, 1, 1, 1)), NULL);
}
static ax_value dot_rank(const ax_value *in) {
  return ax_dot_general(ones9(in), ones9(in), AX_DIMS(), AX_DIMS(), AX_DIMS(), AX_DIMS());
}
static ax_value matmul(const ax_value *in) { return ax_matmul(in[B], in[W]); }
static ax_value matmul_vectors(const ax_value *in) {
  return ax_matmul(ax_reduce_sum(in[X], AX_LIST(1, DIMS(0)), false), ax_reduce_sum(in[W], AX_LIST(1, DIMS(1)), false));
}
static ax_value matmul_leading(const ax_value *in) {
  return ax_matmul(ax_reshape(in[B], AX_LIST(4, DIMS(2, 1, 3, 4))),
                   ax_broadcast_in_dim(in[W], AX_LIST(3, DIMS(7, 4, 5)), DIMS(1, 2)));
}
static ax_value matmul_differ(const ax_value *in) {
  return ax_matmul(in[B], ax_broadcast_in_dim(in[W], AX_LIST(3, DIMS(3, 4, 5)), DIMS(1, 2)));
}
static ax_value matmul_scalar(const ax_value *in) { return ax_matmul(in[S], in[X]); }
static ax_value poison(const ax_value *in) { return ax_softmax(ax_matmul((ax_value){0}, in[X]), 0); }

static const row rows[] = {
    {reshape_rank, "rank 17 is above 16"},
    {reshape_null, "no dimensions are given"},
    {transpose_null, "no dimensions are given"},
    {slice_plain, "f32[3,3]"},
    {concatenate_none, "at least one operand"},
    {dynamic_slice, "f32[2,4]"},
    {dynamic_slice_null, "no starts are given"},
    {update, "f32[3,4]"},
    {pad, "f32[6,5]"},
    {expand, "f32[3,4,1]"},
    {expand_outside, "dimension is 3, but there are 3 dimensions"},
    {sum, "f32[3]"},
    {sum_all, "f32[]"},
    {sum_twice, "axes has 1 twice"},
    {sum_outside, "axis is -4, but there are 3 dimensions"},
    {sum_null, "no dimensions are given"},
    {argmax, "u8[2,4]"},
    {argmax_narrow, "the index dtype s8 does not count to 128"},
    {mean, "f32[2,4]"},
    {mean_integer, "reduce_mean: the operand is s32[3]; it must be a float"},
    {softmax_outside, "axis is 2, but there are 2 dimensions"},
    {log_softmax, "f32[3,4]"},
    {one_hot, "bf16[3,10]"},
    {one_hot_float, "integer indices, got f32"},
    {one_hot_negative, "one_hot: there cannot be -1 classes"},
    {where, "f32[3,4]"},
    {ones9, "f32[1,1,1,1,1,1,1,1,1]"},
    {dot_rank, "the result has 18 dimensions"},
    {matmul, "f32[2,3,5]"},
    {matmul_vectors, "f32[]"},
    {matmul_leading, "f32[2,7,3,5]"},
    {matmul_differ, "leading dimensions differ"},
    {matmul_scalar, "scalars"},
    {poison, "never set"},
};

static void trace_row(const ax_value *in, ax_value *out, void *context) { out[0] = ((const row *)context)->make(in); }

static ax_status trace(const row *r, ax_program **out) {
  const ax_type in[input_count] = {TEST_TYPE(AX_F32, 3, 4), TEST_TYPE(AX_F32, 4, 5),    TEST_SCALAR(AX_F32),
                                   TEST_SCALAR(AX_S32),     TEST_TYPE(AX_F32, 2, 3, 4), TEST_TYPE(AX_BOOL, 3, 4),
                                   TEST_TYPE(AX_S32, 3)};
  return ax_trace(AX_CLOSURE(trace_row, input_count, 1, (void *)r), in, out);
}

static void function_rows(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    ax_program *program;
    ax_status status = trace(&rows[i], &program);
    const char *got = status == AX_OK ? ax_type_string(ax_program_out_type(program, 0), NULL) : ax_message();
    bool holds = status == AX_OK ? strcmp(got, rows[i].want) == 0
                                 : status == AX_INVALID_ARGUMENT && strstr(got, rows[i].want) != NULL;
    if (!holds) fail_msg("row %zu: %s, not %s", i, got, rows[i].want);
    ax_program_release(program);
  }
}

/* --- Which operations a product becomes --- */

typedef struct product {
  ax_type lhs, rhs;
  ax_dims lhs_contract, rhs_contract, lhs_batch, rhs_batch;
  uint32_t kernels, gemms;
} product;

static void trace_product(const ax_value *in, ax_value *out, void *context) {
  const product *p = context;
  out[0] = ax_dot_general(in[0], in[1], AX_LIST(p->lhs_contract.count, p->lhs_contract.v),
                          AX_LIST(p->lhs_contract.count, p->rhs_contract.v), AX_LIST(p->lhs_batch.count, p->lhs_batch.v),
                          AX_LIST(p->lhs_batch.count, p->rhs_batch.v));
}

static void lowered_products(void **state) {
  (void)state;
  const product products[] = {
      /* as they lie */
      {TEST_TYPE(AX_F32, 30, 40), TEST_TYPE(AX_F32, 40, 50), {1, {1}}, {1, {0}}, {0}, {0}, 0, 1},
      /* both transposed */
      {TEST_TYPE(AX_F32, 40, 30), TEST_TYPE(AX_F32, 50, 40), {1, {0}}, {1, {1}}, {0}, {0}, 0, 1},
      /* neighbours are one dimension */
      {TEST_TYPE(AX_F32, 2, 30, 40), TEST_TYPE(AX_F32, 40, 5), {1, {2}}, {1, {0}}, {0}, {0}, 0, 1},
      /* in any order of the pairs */
      {TEST_TYPE(AX_F32, 2, 30, 40), TEST_TYPE(AX_F32, 2, 30, 50), {2, {1, 0}}, {2, {1, 0}}, {0}, {0}, 0, 1},
      /* attention */
      {TEST_TYPE(AX_F32, 2, 17, 8, 64),
       TEST_TYPE(AX_F32, 2, 19, 8, 64),
       {1, {3}},
       {1, {3}},
       {2, {0, 2}},
       {2, {0, 2}},
       0,
       1},
      /* long sums: blocks, what is left over, and their sum */
      {TEST_TYPE(AX_F32, 16, 1 << 18), TEST_TYPE(AX_F32, 1 << 18, 8), {1, {1}}, {1, {0}}, {0}, {0}, 1, 1},
      {TEST_TYPE(AX_F64, 100003, 3), TEST_TYPE(AX_F64, 2, 100003), {1, {0}}, {1, {1}}, {0}, {0}, 1, 2},
      {TEST_TYPE(AX_F32, 256, 8192), TEST_TYPE(AX_F32, 8192, 256), {1, {1}}, {1, {0}}, {0}, {0}, 1, 1},
      /* vectors, and tiny ones, are sums like others */
      {TEST_TYPE(AX_F32, 8, 16), TEST_TYPE(AX_F32, 16, 8), {1, {1}}, {1, {0}}, {0}, {0}, 1, 0},
      {TEST_TYPE(AX_F32, 8, 16), TEST_TYPE(AX_F32, 16, 9), {1, {1}}, {1, {0}}, {0}, {0}, 0, 1},
      {TEST_TYPE(AX_F32, 4), TEST_TYPE(AX_F32, 4), {1, {0}}, {1, {0}}, {0}, {0}, 1, 0},
      {TEST_TYPE(AX_F32, 30, 40), TEST_TYPE(AX_F32, 40), {1, {1}}, {1, {0}}, {0}, {0}, 1, 0},
      {TEST_TYPE(AX_F64, 1, 40), TEST_TYPE(AX_F64, 40, 30), {1, {1}}, {1, {0}}, {0}, {0}, 1, 0},
      {TEST_TYPE(AX_F32, 2, 7, 8), TEST_TYPE(AX_F32, 2, 8, 9), {1, {2}}, {1, {1}}, {1, {0}}, {1, {0}}, 1, 0},
      /* a free dimension on each side */
      {TEST_TYPE(AX_F32, 30, 40, 2), TEST_TYPE(AX_F32, 40, 50), {1, {1}}, {1, {0}}, {0}, {0}, 1, 1},
      /* zeros */
      {TEST_TYPE(AX_F32, 3, 0), TEST_TYPE(AX_F32, 0, 5), {1, {1}}, {1, {0}}, {0}, {0}, 1, 0},
      /* made in f32, and rounded */
      {TEST_TYPE(AX_BF16, 30, 40), TEST_TYPE(AX_BF16, 40, 50), {1, {1}}, {1, {0}}, {0}, {0}, 0, 1},
      {TEST_TYPE(AX_F16, 30, 40), TEST_TYPE(AX_F16, 40, 50), {1, {1}}, {1, {0}}, {0}, {0}, 1, 1},
      {TEST_TYPE(AX_BF16, 256, 8192), TEST_TYPE(AX_BF16, 8192, 256), {1, {1}}, {1, {0}}, {0}, {0}, 2, 1},
      {TEST_TYPE(AX_S32, 30, 40), TEST_TYPE(AX_S32, 40, 50), {1, {1}}, {1, {0}}, {0}, {0}, 0, 1},
      {TEST_TYPE(AX_S8, 30, 40), TEST_TYPE(AX_S8, 40, 50), {1, {1}}, {1, {0}}, {0}, {0}, 1, 1},
      {TEST_TYPE(AX_S16, 3, 4), TEST_TYPE(AX_S16, 4, 5), {1, {1}}, {1, {0}}, {0}, {0}, 1, 0},
  };
  for (size_t i = 0; i < AX_COUNT(products); i++) {
    ax_program *program;
    ax_plan *plan;
    uint32_t kernels = 0, gemms = 0;
    assert_int_equal(ax_trace(AX_CLOSURE(trace_product, 2, 1, (void *)&products[i]), AX_LIST(2, &products[i].lhs), &program), AX_OK);
    assert_int_equal(ax_plan_create(program, NULL, NULL, NULL, &plan), AX_OK);
    for (uint32_t k = 0; k < plan->block.count; k++) {
      kernels += plan->block.ops[k].kind == AX_OP_KERNEL;
      gemms += plan->block.ops[k].kind == AX_OP_GEMM;
    }
    if (kernels != products[i].kernels || gemms != products[i].gemms)
      fail_msg("row %zu: %u kernels, %u GEMMs", i, kernels, gemms);
    ax_plan_destroy(plan);
    ax_program_release(program);
  }
}

/* --- Each allocation failing --- */

static ax_status trace_and_plan(void *context) {
  ax_program *program;
  ax_plan *plan;
  AX_TRY(trace(context, &program));
  ax_status status = ax_plan_create(program, NULL, NULL, NULL, &plan);
  if (status == AX_OK) ax_plan_destroy(plan);
  ax_program_release(program);
  return status;
}

static void allocations(void **state) {
  (void)state;
  static const maker makers[] = {pad, dynamic_slice, update, argmax, log_softmax, one_hot, mean, matmul_leading};
  for (size_t i = 0; i < AX_COUNT(makers); i++) test_each_allocation(trace_and_plan, &(row){makers[i], NULL});
}

/* --- Lists of dimensions, strides, reductions --- */

static void lists_of_dimensions(void **state) {
  (void)state;
  ax_dims axes = {2, {3, 0}};
  const ax_dims none = {0}, second = {1, {1}};
  const ax_type x = ax_array_type(AX_F32, AX_DIMS(5, 6, 7, 8));
  assert_true(ax_dims_has(&axes, 3) && !ax_dims_has(&axes, 1));
  const ax_dims others = ax_dims_others(4, &axes, NULL), fewer = ax_dims_others(4, &axes, &second),
                all = ax_dims_others(2, &none, NULL);
  assert_true(others.count == 2 && others.v[0] == 1 && others.v[1] == 2);
  assert_true(fewer.count == 1 && fewer.v[0] == 2);
  assert_true(all.count == 2 && all.v[1] == 1);
  const ax_dims left = ax_dims_left(&x, &axes);
  assert_true(left.count == 2 && left.v[0] == 6 && left.v[1] == 7);
  ax_dims_shift(&axes, 3); /* a dimension has come before 3 */
  assert_true(axes.v[0] == 4 && axes.v[1] == 0);
}

static void lists_are_refused(void **state) {
  (void)state;
  const ax_dims twice = {2, {1, 1}}, outside = {1, {2}}, negative = {2, {3, -1}};
  ax_type type;
  TEST_OK(ax_infer_distinct("axes", &outside, 3));
  TEST_FAILS(ax_infer_distinct("axes", &outside, 2), AX_INVALID_ARGUMENT, "axes has 2, which is outside rank 2");
  TEST_FAILS(ax_infer_distinct("axes", &twice, 2), AX_INVALID_ARGUMENT, "axes has 1 twice");
  TEST_FAILS(ax_infer_one_each("strides", &twice, 3), AX_INVALID_ARGUMENT, "strides has 2 entries for an operand of rank 3");
  TEST_FAILS(ax_infer_shape(AX_F32, &negative, &type), AX_INVALID_ARGUMENT, "dimension 1 of the result is negative: -1");
  TEST_FAILS(ax_infer_shape((ax_dtype)99, &twice, &type), AX_INVALID_ARGUMENT, "not a dtype");
}

static void strides_of_dense_arrays(void **state) {
  (void)state;
  const int64_t dims[] = {2, 3, 4};
  int64_t strides[3];
  ax_dense_strides(3, dims, strides);
  assert_true(strides[0] == 12 && strides[1] == 4 && strides[2] == 1);
  ax_dense_strides(3, (const int64_t[]){2, 0, 4}, strides);
  assert_true(strides[0] == 4 && strides[1] == 4); /* also of nothing */
}

static void an_element_is_found_under_other_strides(void **state) {
  (void)state;
  const int64_t dims[] = {2, 3}, columns[] = {1, 2}; /* stored column by column */
  assert_int_equal(ax_strided_at(0, 2, dims, columns), 0);
  assert_int_equal(ax_strided_at(1, 2, dims, columns), 2);
  assert_int_equal(ax_strided_at(5, 2, dims, columns), 5);
  assert_int_equal(ax_strided_at(3, 2, dims, columns), 1);
  assert_int_equal(ax_strided_at(0, 0, NULL, NULL), 0);
}

static void a_strided_copy_transposes(void **state) {
  (void)state;
  int16_t from[] = {9, 0, 1, 2, 10, 11, 12}, to[8] = {7, 7};
  const ax_strided rows = {from, 1, {3, 1}}, columns = {to, 2, {1, 2}};
  ax_strided_copy(2, (const int64_t[]){2, 3}, sizeof from[0], &columns, &rows);
  assert_memory_equal(to, ((int16_t[]){7, 7, 0, 10, 1, 11, 2, 12}), sizeof to);
}

static void a_reduction_goes_over_its_axes_last(void **state) {
  (void)state;
  const ax_dims axes = {2, {2, 0}};
  const ax_reduction r = ax_reduction_of(3, (const int64_t[]){5, 6, 7}, &axes);
  assert_true(r.kept.count == 1 && r.kept.v[0] == 1);
  assert_true(r.reduced.count == 2 && r.reduced.v[0] == 0 && r.reduced.v[1] == 2);
  assert_true(r.dims[0] == 6 && r.dims[1] == 5 && r.dims[2] == 7);
  assert_true(r.at[0].dim == 1 && r.at[1].dim == 0 && r.at[2].dim == 2);
}

static void neutral_elements(void **state) {
  (void)state;
  assert_true(ax_reduce_identity(AX_SCALAR_ADD, AX_F32).f == 0);
  assert_true(ax_reduce_identity(AX_SCALAR_MAX, AX_BF16).f == -__builtin_inf());
  assert_true(ax_reduce_identity(AX_SCALAR_MIN, AX_F64).f == __builtin_inf());
  assert_true(ax_reduce_identity(AX_SCALAR_MAX, AX_S8).i == -128 && ax_reduce_identity(AX_SCALAR_MIN, AX_S8).i == 127);
  assert_true(ax_reduce_identity(AX_SCALAR_MAX, AX_U16).u == 0 && ax_reduce_identity(AX_SCALAR_MIN, AX_U16).u == 65535);
  assert_true(ax_reduce_identity(AX_SCALAR_MIN, AX_S64).i == INT64_MAX && ax_reduce_identity(AX_SCALAR_MIN, AX_BOOL).u == 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equation_rows),
      cmocka_unit_test(function_rows),
      cmocka_unit_test(lowered_products),
      cmocka_unit_test(allocations),
      cmocka_unit_test(lists_of_dimensions),
      cmocka_unit_test(lists_are_refused),
      cmocka_unit_test(strides_of_dense_arrays),
      cmocka_unit_test(an_element_is_found_under_other_strides),
      cmocka_unit_test(a_strided_copy_transposes),
      cmocka_unit_test(a_reduction_goes_over_its_axes_last),
      cmocka_unit_test(neutral_elements),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
