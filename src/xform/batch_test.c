/* vmap of programs: the same as a loop over the members. */
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "ir/transform.h"
#include "support/cmocka.h"
#include "support/random.h"

enum { size = 5 };

/* The row-major index in a tensor with `size` members at dimension `dim`, of element `index` of member `member`. */
static int64_t member_index(const ax_tensor *whole, int dim, int64_t index, int64_t member) {
  int64_t inner = 1;
  for (uint32_t d = (uint32_t)dim + 1; d < whole->rank; d++) inner *= whole->dims[d];
  return (index / inner * size + member) * inner + index % inner;
}

static ax_tensor *member_of(const ax_tensor *whole, int dim, const ax_type *type, int64_t member) {
  if (dim < 0 && dim != AX_NOT_MAPPED) dim += (int)whole->rank;
  if (dim < 0) {
    ax_tensor *copy;
    TEST_OK(ax_tensor_copy(whole, &copy));
    return copy;
  }
  ax_tensor *part = test_tensor(*type, NULL);
  for (int64_t i = 0; i < test_elems(part); i++)
    test_set(part, i, test_get(whole, member_index(whole, dim, i, member)));
  return part;
}

static ax_type batched(ax_type type, int dim) {
  if (dim == AX_NOT_MAPPED) return type;
  if (dim < 0) dim += (int)type.rank + 1;
  memmove(type.dims + dim + 1, type.dims + dim, (type.rank - (uint32_t)dim) * sizeof type.dims[0]);
  type.dims[dim] = size;
  type.rank++;
  return type;
}

static void check_loop(ax_function f, const ax_type *types, uint32_t in_count, const int64_t *in_axes, const int64_t *out_axes,
                       uint32_t out_count) {
  test_random random = {11};
  ax_tensor *in[4], *out[4], *one_in[4], *one_out[4];
  ax_program *program = test_trace(f, NULL, types, in_count, out_count), *vmap;
  TEST_OK(ax_program_vmap(
      program, &(ax_vmap_options){.in_axes = {in_count, in_axes}, .out_axes = {out_count, out_axes}, .size = size}, &vmap));
  TEST_OK(ax_program_verify(vmap));
  for (uint32_t i = 0; i < in_count; i++) in[i] = test_random_tensor(&random, batched(types[i], (int)in_axes[i]), -2, 2);
  test_run(vmap, in, out);
  for (int64_t m = 0; m < size; m++) {
    for (uint32_t i = 0; i < in_count; i++) one_in[i] = member_of(in[i], (int)in_axes[i], &types[i], m);
    test_run(program, one_in, one_out);
    for (uint32_t k = 0; k < out_count; k++) {
      ax_tensor *part = member_of(out[k], (int)out_axes[k], ax_program_out_type(program, k), m);
      TEST_TENSORS_NEAR(part, one_out[k], 1e-14);
      ax_tensor_release(part);
    }
    test_release(one_in, in_count);
    test_release(one_out, out_count);
  }
  test_release(in, in_count);
  test_release(out, out_count);
  ax_program_release(vmap);
  ax_program_release(program);
}

static void affine(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const int64_t permutation[] = {1, 0};
  ax_value y = ax_tanh(ax_add(ax_mul(in[0], in[1]), in[2]));
  out[0] = ax_transpose(y, permutation);
  out[1] = ax_reduce_sum(y, AX_DIMS(0), false);
  out[2] = ax_exp(in[2]);
}

static void like_a_loop(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F64, 2, 3), TEST_TYPE(AX_F64, 3), TEST_SCALAR(AX_F64)};
  enum { none = AX_NOT_MAPPED };
  const int64_t in_axes[][3] = {{0, 0, 0},       {2, 1, none}, {1, none, none}, {none, 0, 0},
                                {none, none, 0}, {0, 1, 0},    {-1, -2, none},  {-3, -1, -1}};
  const int64_t out_axes[][3] = {{0, 0, 0}, {2, 1, none}, {1, 1, 0}, {0, 1, 0}, {2, 0, 0}, {1, 1, 0}, {-1, -2, none}, {-2, -1, -1}};
  for (size_t i = 0; i < AX_COUNT(in_axes); i++) check_loop(affine, types, 3, in_axes[i], out_axes[i], 3);
}

static void refusals(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F64, 2, 3), TEST_TYPE(AX_F64, 3), TEST_SCALAR(AX_F64)};
  ax_program *program = test_trace(affine, NULL, types, 3, 3), *vmap;
  const int64_t bad[] = {0, 2, 0}, low[] = {0, -3, 0}, kept[] = {0, AX_NOT_MAPPED, 0}, far[] = {0, 0, 1};
  TEST_FAILS(ax_program_vmap(program, NULL, &vmap), AX_INVALID_ARGUMENT, "options");
  TEST_FAILS(ax_program_vmap(program, &(ax_vmap_options){.in_axes = {3, bad}, .size = size}, &vmap), AX_INVALID_ARGUMENT,
             "in_axes[1]=2 of f64[3] is out of range");
  TEST_FAILS(ax_program_vmap(program, &(ax_vmap_options){.in_axes = {3, low}, .size = size}, &vmap), AX_INVALID_ARGUMENT,
             "in_axes[1]=-3");
  static const char *const names[] = {"", "a,b", "9a", "_", "a b"};
  for (size_t i = 0; i < AX_COUNT(names); i++)
    TEST_FAILS(ax_program_vmap(program, &(ax_vmap_options){.size = size, .axis_name = names[i]}, &vmap), AX_INVALID_ARGUMENT,
               "is not a name");
  TEST_FAILS(ax_program_vmap(program, &(ax_vmap_options){.out_axes = {3, low}, .size = size}, &vmap), AX_INVALID_ARGUMENT,
             "out_axes[1]=-3");
  TEST_FAILS(ax_program_vmap(program, &(ax_vmap_options){.out_axes = {3, far}, .size = size}, &vmap), AX_INVALID_ARGUMENT,
             "out_axes[2]=1 of f64[]");
  TEST_FAILS(ax_program_vmap(program, &(ax_vmap_options){.out_axes = {3, kept}, .size = size}, &vmap), AX_INVALID_ARGUMENT,
             "out_axes[1] is AX_NOT_MAPPED, but result 1, f64[3], depends on a mapped input");
  TEST_FAILS(ax_program_vmap(program, &(ax_vmap_options){.size = -1}, &vmap), AX_INVALID_ARGUMENT, "the size is -1");
  assert_null(vmap);
  ax_program_release(program);
}

/* --- A named axis, here between two mesh axes --- */

static void collective(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_psum(in[0], "i");
  out[1] = ax_psum(ax_full_like(in[0], 1), "i");
  out[2] = ax_psum(in[0], "i,data");
  out[3] = ax_pmax(in[0], "i");
}

static void named_axis(void **state) {
  (void)state;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("model=1,i=5,data=2", &mesh));
  mesh.axis[1].unchecked = true;
  ax_type type = TEST_SCALAR(AX_F64);
  type.spread.varying = 4; /* data */
  ax_program *program, *vmap;
  const ax_dim_list out_axes = {AX_DIMS(AX_NOT_MAPPED, AX_NOT_MAPPED, AX_NOT_MAPPED, 0)};
  TEST_OK(ax_trace_on(&mesh, AX_FN(collective, 1, 4), &type, &program));
  TEST_OK(ax_program_vmap(program, &(ax_vmap_options){.out_axes = out_axes, .size = size, .axis_name = "i"}, &vmap));
  const ax_mesh *left = ax_program_axes(vmap);
  assert_true(left->count == 2 && ax_mesh_find(left, "data") == 1);
  assert_int_equal(ax_program_in_type(vmap, 0)->spread.varying, 2);
  assert_int_equal(ax_program_out_type(vmap, 2)->spread.varying, 0);
  double x[] = {1, 2, 3, 4, 5, 10, 20, 30, 40, 50};
  ax_tensor *in[2], *out[8];
  for (int d = 0; d < 2; d++) in[d] = test_tensor(TEST_TYPE(AX_F64, size), x + d * size);
  const int64_t device[] = {0, 1};
  TEST_OK(ax_evaluate_lanes(NULL, vmap, 2, device, in, out));
  assert_true(test_get(out[0], 0) == 15 && test_get(out[1], 0) == 150);
  assert_true(test_get(out[2], 0) == 5 && test_get(out[3], 0) == 5);
  assert_true(test_get(out[4], 0) == 165 && test_get(out[5], 0) == 165);
  assert_true(test_get(out[6], 3) == 5 && test_get(out[7], 0) == 50);
  test_release(in, 2);
  test_release(out, 8);
  ax_program_release(vmap);
  TEST_FAILS(ax_program_vmap(program, &(ax_vmap_options){.size = 4, .axis_name = "i"}, &vmap), AX_INVALID_ARGUMENT,
             "axis \"i\" has size 5, but the size is 4");
  ax_program_release(program);
}

/* --- For regions --- */

static void partly(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_neg(in[0]);
  out[1] = ax_neg(in[1]);
}

static void tells_what_is_batched(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F64, 2), TEST_TYPE(AX_F64, 2)};
  ax_program *program = test_trace(partly, NULL, types, 2, 2), *made;
  int dim[2];
  TEST_OK(ax_batch_program(program, (int[]){1, -1}, size, NULL, NULL, dim, &made));
  assert_true(dim[0] == 0 && dim[1] == -1);
  assert_int_equal(ax_program_out_type(made, 0)->dims[0], size);
  ax_program_release(made);
  TEST_OK(ax_batch_program(program, (int[]){-1, -1}, size, NULL, (int[]){AX_BATCH_ANY, 1}, dim, &made));
  assert_true(dim[0] == -1 && dim[1] == 1);
  ax_program_release(made);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(like_a_loop),
      cmocka_unit_test(refusals),
      cmocka_unit_test(named_axis),
      cmocka_unit_test(tells_what_is_batched),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
