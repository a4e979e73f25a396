/* Parts and arrangements that are refused, each with the function's own name; and shapes at the edge of what there is. */
#include <math.h>

#include "axle/axle.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/run.h"
#include "support/tensor.h"

typedef struct slip {
  const char *message;
  ax_value (*step)(const ax_value *in); /* in: f32[8,4], s32[], bool[8], f32[0,4], f32[4], s32[8,4] and f32 of rank 16 */
} slip;

static ax_value no_dimension(const ax_value *in) { return ax_slice_in_dim(in[0], 0, 1, 1, 2); }
static ax_value no_range(const ax_value *in) { return ax_slice_in_dim(in[0], -9, AX_END, 1, 0); }
static ax_value reversed(const ax_value *in) { return ax_slice_in_dim(in[0], -1, 5, 1, 0); }
static ax_value no_stride(const ax_value *in) { return ax_slice_in_dim(in[0], 0, 5, 0, 0); }
static ax_value far_at(const ax_value *in) { return ax_at(in[0], 4, -1); }
static ax_value at_nothing(const ax_value *in) { return ax_at(in[3], 0, 0); }
static ax_value at_scalar(const ax_value *in) { return ax_at(in[1], 0, 0); }
static ax_value bool_index(const ax_value *in) { return ax_dynamic_at(in[0], in[2], 0); }
static ax_value float_index(const ax_value *in) { return ax_dynamic_at_set(in[0], in[4], ax_at(in[4], 0, 0), 0); }
static ax_value dynamic_nothing(const ax_value *in) { return ax_dynamic_at(in[3], in[1], 0); }
static ax_value wrong_row(const ax_value *in) { return ax_dynamic_at_set(in[0], in[4], in[1], 1); }
static ax_value wrong_dtype(const ax_value *in) { return ax_dynamic_at_set(in[5], in[4], in[1], 0); }
static ax_value put_nothing(const ax_value *in) { return ax_dynamic_at_set(in[3], in[4], in[1], 0); }
static ax_value long_part(const ax_value *in) { return ax_dynamic_slice_in_dim(in[0], in[1], 9, 0); }
static ax_value long_update(const ax_value *in) { return ax_dynamic_update_slice_in_dim(in[3], in[0], in[1], 0); }
static ax_value uneven_split(const ax_value *in) {
  ax_value out[2];
  ax_split(in[0], AX_DIMS(3, 4), 0, out);
  return out[0];
}
static ax_value long_split(const ax_value *in) {
  ax_value out[2];
  ax_split(in[0], AX_DIMS(3, INT64_MAX), 0, out);
  return out[1];
}
static ax_value squeeze_more(const ax_value *in) { return ax_squeeze(in[0], AX_DIMS(-1)); }
static ax_value squeeze_twice(const ax_value *in) { return ax_squeeze(ax_expand_dims(in[0], 0), AX_DIMS(0, -3)); }
static ax_value no_source(const ax_value *in) { return ax_moveaxis(in[0], -3, 0); }
static ax_value no_destination(const ax_value *in) { return ax_moveaxis(in[0], 0, 2); }
static ax_value no_second(const ax_value *in) { return ax_swapaxes(in[0], 0, 9); }
static ax_value stack_nothing(const ax_value *in) { return ax_stack(AX_LIST(0, in), 0); }
static ax_value stack_dtypes(const ax_value *in) { return ax_stack(AX_VALUES(in[0], in[5]), 0); }
static ax_value stack_shapes(const ax_value *in) { return ax_stack(AX_VALUES(in[0], in[3]), 0); }
static ax_value stack_far(const ax_value *in) { return ax_stack(AX_LIST(1, in), 3); }
static ax_value stack_deep(const ax_value *in) { return ax_stack(AX_LIST(1, in + 6), 0); }
static ax_value clamp_bools(const ax_value *in) { return ax_clamp(in[2], in[2], in[2]); }
static ax_value clamp_shapes(const ax_value *in) { return ax_clamp(in[0], in[3], in[4]); }
static ax_value clamp_dtypes(const ax_value *in) { return ax_clamp(in[1], in[0], in[1]); }
static ax_value mod_bools(const ax_value *in) { return ax_mod(in[2], in[2]); }
static ax_value mod_dtypes(const ax_value *in) { return ax_mod(in[0], in[1]); }
static ax_value floor_divide_shapes(const ax_value *in) { return ax_floor_divide(in[0], in[3]); }
static ax_value floor_integers(const ax_value *in) { return ax_floor(in[5]); }
static ax_value rem_bools(const ax_value *in) { return ax_rem(in[2], in[2]); }
static ax_value square_bools(const ax_value *in) { return ax_square(in[2]); }

static ax_value index_0(const ax_value *in) { return ax_index(in[0], "1:2, q"); }
static ax_value index_1(const ax_value *in) { return ax_index(in[0], "8"); }
static ax_value index_2(const ax_value *in) { return ax_index(in[0], "..., -5"); }
static ax_value index_3(const ax_value *in) { return ax_index(in[0], ":, :, 1"); }
static ax_value index_4(const ax_value *in) { return ax_index(in[0], "..., ..."); }
static ax_value index_5(const ax_value *in) { return ax_index(in[0], "1:2:0"); }
static ax_value index_6(const ax_value *in) { return ax_index(in[0], "1 2"); }
static ax_value index_7(const ax_value *in) { return ax_index(in[0], "99999999999999999999"); }
static ax_value index_8(const ax_value *in) { return ax_index(in[0], "0,,1"); }
static ax_value index_9(const ax_value *in) { return ax_index(in[0], "Nonesuch"); }
static ax_value index_10(const ax_value *in) { return ax_index(in[0], "1:2:3:4"); }
static ax_value index_nothing(const ax_value *in) { return ax_index(in[0], NULL); }
static ax_value index_deep(const ax_value *in) { return ax_index(in[6], "None"); }
static ax_value set_shapes(const ax_value *in) { return ax_index_set(in[0], "1:3", in[3]); }
static ax_value set_dtypes(const ax_value *in) { return ax_index_set(in[0], "0, 0", in[1]); }
static ax_value set_far(const ax_value *in) { return ax_index_set(in[0], "8", ax_real(1)); }
static ax_value transpose_vector(const ax_value *in) { return ax_matrix_transpose(in[4]); }

static ax_value take_float(const ax_value *in) { return ax_take(in[0], in[4], 0); }
static ax_value take_nothing(const ax_value *in) { return ax_take(in[3], in[1], 0); }
static ax_value take_far(const ax_value *in) { return ax_take(in[0], in[1], 2); }
static ax_value take_deep(const ax_value *in) { return ax_take(in[6], in[5], 3); }
static ax_value cumsum_bools(const ax_value *in) { return ax_cumsum(in[2], 0, false); }
static ax_value cumsum_scalar(const ax_value *in) { return ax_cumsum(in[1], -1, false); }
static ax_value logsumexp_ints(const ax_value *in) { return ax_logsumexp(in[1], AX_ALL_DIMS, false); }
static ax_value or_floats(const ax_value *in) { return ax_reduce_or(in[0], AX_ALL_DIMS, false); }
static ax_value close_integers(const ax_value *in) { return ax_allclose(in[5], in[5], 0, 0); }
static ax_value softplus_integers(const ax_value *in) { return ax_softplus(in[5]); }
static ax_value reshape_uneven(const ax_value *in) { return ax_reshape(in[0], AX_DIMS(-1, 5)); }
static ax_value reshape_twice(const ax_value *in) { return ax_reshape(in[0], AX_DIMS(-1, -1)); }
static ax_value and_floats(const ax_value *in) { return ax_reduce_and(in[0], AX_ALL_DIMS, false); }
static ax_value narrower(const ax_value *in) { return ax_broadcast_to(in[0], AX_DIMS(4)); }
static ax_value misfit(const ax_value *in) { return ax_broadcast_to(in[4], AX_DIMS(4, 8)); }

static ax_value stack_numbers(const ax_value *in) { return ax_stack(AX_VALUES(in[0], ax_integer(1)), 0); }

static const slip slips[] = {
    {"stack: operand 1 is a number, which has no dtype here; ax_full gives it one", stack_numbers},
    {"take: the indices are f32[4]; they must be integers", take_float},
    {"take: dimension 0 of f32[0,4] has nothing in it", take_nothing},
    {"take: the axis is 2, but there are 2 dimensions", take_far},
    {"take: the rank would exceed 16", take_deep},
    {"cumsum bool[8]: needs a numeric dtype, got bool", cumsum_bools},
    {"cumsum: the axis is -1, but there are 0 dimensions", cumsum_scalar},
    {"logsumexp: the operand is s32[]; it must be of floats", logsumexp_ints},
    {"reduce_or f32[8,4]: needs bool or an integer dtype, got f32", or_floats},
    {"reduce_and f32[8,4]: needs bool or an integer dtype, got f32", and_floats},
    {"broadcast_to: f32[8,4] does not broadcast to f32[4]", narrower},
    {"broadcast_to: f32[4] does not broadcast to f32[4,8]", misfit},
    {"slice_in_dim: the dimension is 2, but there are 2 dimensions", no_dimension},
    {"slice_in_dim: -9 to 8 is not a range of dimension 0 of f32[8,4]", no_range},
    {"slice_in_dim: -1 to 5 is not a range of dimension 0 of f32[8,4]", reversed},
    {"slice_in_dim: the stride is 0; it must be at least 1", no_stride},
    {"at: the index is 4, but dimension 1 of f32[8,4] has 4", far_at},
    {"at: the index is 0, but dimension 0 of f32[0,4] has 0", at_nothing},
    {"at: the dimension is 0, but there are 0 dimensions", at_scalar},
    {"dynamic_at: the index is bool[8]; it must be an integer scalar", bool_index},
    {"dynamic_at_set: the index is f32[]; it must be an integer scalar", float_index},
    {"dynamic_at: dimension 0 of f32[0,4] has nothing in it", dynamic_nothing},
    {"dynamic_at_set: what is put is f32[4]; along dimension 1, f32[8,4] consists of f32[8]", wrong_row},
    {"dynamic_at_set: operands 0 and 1 are s32[8,4] and f32[4]; they need one dtype", wrong_dtype},
    {"dynamic_at_set: dimension 0 of f32[0,4] has nothing in it", put_nothing},
    {"dynamic_slice_in_dim: a part of 9 does not fit dimension 0 of f32[8,4]", long_part},
    {"dynamic_update_slice_in_dim: the update is f32[8,4]; it must be as f32[0,4], and not longer along dimension 0", long_update},
    {"split: the parts have 7 in all, but dimension 0 of f32[8,4] has 8", uneven_split},
    {"split: part 1, of 9223372036854775807, is not inside dimension 0 of f32[8,4]: the parts before it have 3", long_split},
    {"squeeze: dimension 1 of f32[8,4] is not 1", squeeze_more},
    {"squeeze: dimension 0 is named twice", squeeze_twice},
    {"moveaxis: the source is -3, but there are 2 dimensions", no_source},
    {"moveaxis: the destination is 2, but there are 2 dimensions", no_destination},
    {"swapaxes: the second dimension is 9, but there are 2 dimensions", no_second},
    {"stack: there is nothing to stack", stack_nothing},
    {"stack: operands 0 and 1 are f32[8,4] and s32[8,4]; they need one dtype", stack_dtypes},
    {"stack: operands 0 and 1 are f32[8,4] and f32[0,4]; they need one shape", stack_shapes},
    {"stack: the dimension is 3, but there are 3 dimensions", stack_far},
    {"stack: the rank would exceed 16", stack_deep},
    {"clamp: operand 0 is bool[8]; it must be numeric", clamp_bools},
    {"reshape: dimension 0 is -1, but the others' 5 elements do not divide the 32 of f32[8,4]", reshape_uneven},
    {"reshape: 2 dimensions are -1: one may be", reshape_twice},
    {"allclose: the operands are of s32; they must be floats", close_integers},
    {"softplus: the operand is s32[8,4]; it must be of floats", softplus_integers},
    {"clamp: f32[8,4], f32[0,4] and f32[4] do not broadcast to one shape", clamp_shapes},
    {"clamp: operands 0 and 1 are s32[] and f32[8,4]; they need one dtype", clamp_dtypes},
    {"mod: operand 0 is bool[8]; it must be numeric", mod_bools},
    {"mod: operands 0 and 1 are f32[8,4] and s32[]; they need one dtype", mod_dtypes},
    {"floor_divide: f32[8,4] and f32[0,4] do not broadcast to one shape", floor_divide_shapes},
    {"floor s32[8,4]: needs a float dtype, got s32", floor_integers},
    {"rem bool[8] bool[8]: needs a numeric dtype, got bool", rem_bools},
    {"square: operand 0 is bool[8]; it must be numeric", square_bools},
    {"index: f32[8,4]: \"1:2, q\", character 6: an index is a number, start:stop:step, ... or None", index_0},
    {"index: f32[8,4]: \"8\", character 1: 8 is outside of dimension 0, of 8", index_1},
    {"index: f32[8,4]: \"..., -5\", character 6: -5 is outside of dimension 1, of 4", index_2},
    {"index: f32[8,4]: \":, :, 1\", character 7: there is no dimension 2 to index", index_3},
    {"index: f32[8,4]: \"..., ...\", character 6: there is a second ...", index_4},
    {"index: f32[8,4]: \"1:2:0\", character 5: the step is 0", index_5},
    {"index: f32[8,4]: \"1 2\", character 3: a comma or the end is expected here", index_6},
    {"index: f32[8,4]: \"99999999999999999999\", character 1: the number is beyond 64 bits", index_7},
    {"index: f32[8,4]: \"0,,1\", character 3: an index is a number, start:stop:step, ... or None", index_8},
    {"index: f32[8,4]: \"Nonesuch\", character 1: an index is a number, start:stop:step, ... or None", index_9},
    {"index: f32[8,4]: \"1:2:3:4\", character 6: a comma or the end is expected here", index_10},
    {"index: f32[8,4]: there is no text", index_nothing},
    {"character 1: the part has too many dimensions", index_deep},
    {"index_set: f32[0,4] does not broadcast to the part, which is f32[2,4]", set_shapes},
    {"index_set: operands 0 and 1 are f32[8,4] and s32[]; they need one dtype", set_dtypes},
    {"index_set: f32[8,4]: \"8\", character 1: 8 is outside of dimension 0, of 8", set_far},
    {"matrix_transpose: the operand is f32[4]; it needs two dimensions", transpose_vector},
};

static void make_slip(const ax_value *in, ax_value *out, void *context) { out[0] = ((const slip *)context)->step(in); }

static void refused(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, 8, 4),
                           TEST_SCALAR(AX_S32),
                           TEST_TYPE(AX_BOOL, 8),
                           TEST_TYPE(AX_F32, 0, 4),
                           TEST_TYPE(AX_F32, 4),
                           TEST_TYPE(AX_S32, 8, 4),
                           TEST_TYPE(AX_F32, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)};
  for (size_t i = 0; i < AX_COUNT(slips); i++) {
    ax_program *program;
    TEST_FAILS(ax_trace(AX_CLOSURE(make_slip, AX_COUNT(types), 1, (void *)&slips[i]), types, &program), AX_INVALID_ARGUMENT,
               slips[i].message);
    assert_null(program);
  }
}

/* --- Edges --- */

/* A part of a part of nothing; one dimension of sixteen; parts of no size. */
static void edges_of(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_slice_in_dim(in[0], 0, AX_END, 5, 0);
  out[1] = ax_dynamic_slice_in_dim(in[0], in[2], 0, 0);
  out[2] = ax_at(ax_moveaxis(in[1], 0, -1), -1, -1);
  out[3] = ax_squeeze(in[1], AX_ALL_DIMS);
  out[4] = ax_dynamic_at(in[1], in[2], 3);
  out[5] = ax_squeeze(in[2], AX_ALL_DIMS);
  ax_split(in[1], AX_DIMS(0, 2), 3, out + 6);
  out[8] = ax_stack(AX_VALUES(in[2], in[2]), -1);
  out[9] = ax_cumsum(in[0], 0, true);
  out[10] = ax_take(in[1], ax_full(AX_U8, AX_DIMS(0), 0), 3);
  out[11] = ax_reduce_and(ax_full(AX_BOOL, AX_DIMS(0, 2), 0), AX_DIMS(0), false);
  out[12] = ax_logsumexp(in[0], AX_DIMS(0), false);
}

static void closeness(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  static const float values[] = {1, INFINITY, -INFINITY, 0}, near[] = {1.25f, INFINITY, -INFINITY, 0};
  const ax_type type = TEST_TYPE(AX_F32, 4);
  ax_value x = ax_constant(&type, values), y = ax_constant(&type, near);
  out[0] = ax_allclose(x, y, 0.2, 0);
  out[1] = ax_allclose(x, y, 0.19, 0);
  out[2] = ax_allclose(x, y, 0, 0.25);
  out[3] = ax_allclose(x, ax_neg(y), 0, 9);
  out[4] = ax_allclose(in[0], in[0], 1, 1); /* NaN */
  out[5] = ax_allclose(x, ax_integer(1), 0, 9);
}

static void close_or_not(void **state) {
  (void)state;
  const double wanted[] = {1, 0, 1, 0, 0, 0};
  ax_host_array in = ax_host_view(AX_F32, AX_DIMS(), (float[]){NAN}), out[6];
  TEST_OK(ax_apply(NULL, AX_FN(closeness, 1, 6), &in, out));
  for (int k = 0; k < 6; k++) {
    assert_true(ax_host_at(&out[k], 0) == wanted[k]);
    ax_host_array_release(&out[k]);
  }
}

static void edges(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_BF16, 0, 4), TEST_TYPE(AX_S8, 2, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1),
                           TEST_SCALAR(AX_U8)};
  const char *wanted[] = {"bf16[0,4]",
                          "bf16[0,4]",
                          "s8[1,1,2,1,1,1,1,1,1,1,1,1,1,1,1]",
                          "s8[2,2]",
                          "s8[2,1,1,1,1,1,1,1,1,1,1,1,1,1,1]",
                          "u8[]",
                          "s8[2,1,1,0,1,1,1,1,1,1,1,1,1,1,1,1]",
                          "s8[2,1,1,2,1,1,1,1,1,1,1,1,1,1,1,1]",
                          "u8[2]",
                          "bf16[0,4]",
                          "s8[2,1,1,0,1,1,1,1,1,1,1,1,1,1,1,1]",
                          "bool[2]",
                          "bf16[4]"};
  ax_program *program = test_trace(edges_of, NULL, types, AX_COUNT(types), AX_COUNT(wanted));
  for (uint32_t k = 0; k < AX_COUNT(wanted); k++)
    assert_string_equal(ax_type_string(ax_program_out_type(program, k), NULL), wanted[k]);
  ax_tensor *in[] = {test_tensor(types[0], NULL), test_tensor(types[1], (double[]){1, 2, 3, 4}),
                     test_tensor(types[2], (double[]){200})};
  TEST_EVERY_WAY(program, in, 0);
  test_release(in, AX_COUNT(in));
  ax_program_release(program);
}

/* --- Rows read and written in a loop --- */

static void one_row(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value row = ax_add(ax_dynamic_at(in[0], in[1], 0), in[2]);
  out[0] = ax_dynamic_at_set(in[0], row, in[1], 0);
}

static void rows_in_turn(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const int64_t eight = 8;
  out[0] = ax_mul(in[0], in[0]);
  ax_value all[] = {out[0], ax_iota(AX_S32, AX_LIST(1, &eight), 0), ax_mul(in[0], in[0])};
  ax_scan(AX_FN(one_row, 3, 1), 1, -1, false, all, out);
}

static void rows_in_place(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, 8, 4)};
  ax_program *program = test_trace(rows_in_turn, NULL, types, 1, 1);
  double data[32];
  for (int i = 0; i < 32; i++) data[i] = i - 16;
  ax_tensor *in[] = {test_tensor(types[0], data)};
  TEST_EVERY_WAY(program, in, 1e-6);
  test_release(in, 1);
  ax_program_release(program);
}

/* --- Without memory --- */

static void doubled(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[1], in[1]);
}

static void many(const ax_value *in, ax_value *out, void *context) { /* in: f32[4,3], s32[2] */
  (void)context;
  ax_value x = in[0], parts[3];
  ax_split(x, AX_DIMS(1, 3), 0, parts);
  parts[2] = ax_stack(AX_VALUES(parts[0], ax_clamp(ax_real(0), parts[0], ax_real(1)), ax_square(parts[0])), 1);
  x = ax_add(ax_dynamic_at_set(x, ax_real(1), ax_at(in[1], 0, 0), 0),
             ax_broadcast_to(ax_squeeze(ax_dynamic_at(parts[2], ax_at(in[1], 1, 0), 1), AX_DIMS(0)), AX_DIMS(4, 3)));
  out[0] = ax_einsum("ij,kj,kl,ii,...->il", AX_VALUES(x, x, x, ax_einsum("ij,kj", AX_VALUES(x, x)), parts[0]));
  ax_fori_loop(ax_integer(0), ax_integer(3), AX_FN(doubled, 2, 1), out, out);
  x = ax_index_set(ax_index_set(x, "::2, ::-1", ax_index(x, "0, None")), "1:3, 0", ax_real(1));
  out[1] = ax_logsumexp(ax_cumsum(ax_take(x, in[1], 0), 1, true), AX_DIMS(0), true);
}

static ax_status trace_many(void *context) {
  const ax_type types[] = {TEST_TYPE(AX_F32, 4, 3), TEST_TYPE(AX_S32, 2)};
  ax_program *program;
  (void)context;
  ax_status status = ax_trace(AX_FN(many, 2, 2), types, &program);
  assert_true((program != NULL) == (status == AX_OK));
  ax_program_release(program);
  return status;
}

static void without_memory(void **state) {
  (void)state;
  assert_true(test_each_allocation(trace_many, NULL) > 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(refused), cmocka_unit_test(close_or_not), cmocka_unit_test(edges),
                                     cmocka_unit_test(rows_in_place), cmocka_unit_test(without_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
