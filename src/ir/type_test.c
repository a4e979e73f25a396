/* Types: what makes two of them equal, the dual, what is refused. */
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "ir/text.h"
#include "support/cmocka.h"
#include "support/tensor.h"

/* Types that differ in one thing each from the first. */
static const ax_type types[] = {
    {.dtype = AX_F32, .rank = 1, .dims = {4}},
    {.dtype = AX_S32, .rank = 1, .dims = {4}},
    {.dtype = AX_F32, .rank = 1, .dims = {5}},
    {.dtype = AX_F32, .rank = 2, .dims = {4, 1}},
    {.dtype = AX_F32, .rank = 1, .dims = {4}, .spread = {.varying = 1}},
    {.dtype = AX_F32, .rank = 1, .dims = {4}, .spread = {.reduced = 1}},
    {.dtype = AX_F32, .rank = 1, .dims = {4}, .spread = {.unreduced = 1}},
    {.dtype = AX_F32, .rank = 1, .dims = {4}, .spread = {.unreduced = 1, .kind = AX_UNREDUCED_MAX}},
    {.dtype = AX_F32, .rank = 1, .dims = {4}, .spread = {.unreduced = 1, .kind = AX_UNREDUCED_MIN}},
    {.dtype = AX_F32, .rank = 1, .dims = {4}, .spread = {.varying = 2, .unreduced = 1}},
};

static void identity(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[0];
}

/* Everything a type says is in its text, in equality and in the hash of programs. */
static void nothing_is_forgotten(void **state) {
  (void)state;
  ax_mesh mesh;
  ax_program *programs[AX_COUNT(types)];
  TEST_OK(ax_mesh_parse("a=2,b=2", &mesh));
  for (size_t i = 0; i < AX_COUNT(types); i++) TEST_OK(ax_trace_on(&mesh, AX_FN(identity, 1, 1), &types[i], &programs[i]));
  for (size_t i = 0; i < AX_COUNT(types); i++)
    for (size_t j = 0; j < AX_COUNT(types); j++) {
      assert_int_equal(ax_type_equal(&types[i], &types[j]), i == j);
      assert_int_equal(ax_program_equal(programs[i], programs[j]), i == j);
      assert_int_equal(programs[i]->hash == programs[j]->hash, i == j);
      assert_int_equal(strcmp(ax_type_string(&types[i], &mesh), ax_type_string(&types[j], &mesh)) == 0, i == j);
    }
  for (size_t i = 0; i < AX_COUNT(types); i++) ax_program_release(programs[i]);
}

/* What is computed in f32 and rounded: all floats of 16 bits or less. */
static void narrow_floats(void **state) {
  (void)state;
  for (ax_dtype dtype = AX_NO_DTYPE; dtype < AX_DTYPE_COUNT; dtype++)
    assert_int_equal(ax_is_narrow_float(dtype), ax_is_float(dtype) && ax_dtype_bytes(dtype) <= 2);
  assert_true(ax_is_narrow_float(AX_BF16) && ax_is_narrow_float(AX_F16) && !ax_is_narrow_float(AX_F32));
}

/* The columns of the table say of f32 and f64 what C says of float and double. */
static void float_formats(void **state) {
  (void)state;
  assert_true(ax_float_largest(AX_F32) == (double)FLT_MAX && ax_float_largest(AX_F64) == DBL_MAX);
  assert_true(ax_float_smallest_normal(AX_F32) == (double)FLT_MIN && ax_float_smallest_normal(AX_F64) == DBL_MIN);
  assert_true(ax_float_infinity_bits(AX_F64) == 0x7ff0000000000000 && ax_float_nan_bits(AX_F32) == 0x7fc00000);
  assert_true(ax_float_largest(AX_F8E4M3FN) == 448 && ax_float_largest(AX_F8E4M3) == 240 && ax_float_least(AX_F4E2M1FN) == -6);
  assert_true(ax_float_largest(AX_F6E2M3FN) == 7.5 && ax_float_largest(AX_F6E3M2FN) == 28);
  assert_true(ax_float_largest(AX_F8E8M0FNU) == 0x1p127 && ax_float_least(AX_F8E8M0FNU) == 0x1p-127);
  for (ax_dtype dtype = AX_NO_DTYPE; dtype < AX_DTYPE_COUNT; dtype++) {
    if (!ax_is_float(dtype) || dtype == AX_F64) continue;
    assert_true(ax_dtype_widens(dtype, AX_F64) && !ax_dtype_widens(AX_F64, dtype));
    assert_true(ax_dtype_widens(dtype, ax_multiplied_as(dtype)));
    assert_int_equal(ax_is_differentiable(dtype), dtype != AX_F8E8M0FNU);
  }
  assert_true(ax_dtype_widens(AX_F8E5M2, AX_F16) && !ax_dtype_widens(AX_F8E8M0FNU, AX_F16) && !ax_dtype_widens(AX_F16, AX_BF16));
  assert_true(ax_is_multiplied_as(AX_S8, AX_F32) && ax_is_multiplied_as(AX_S64, AX_BF16) && ax_is_multiplied_as(AX_S8, AX_U32));
  assert_true(!ax_is_multiplied_as(AX_F32, AX_S32) && !ax_is_multiplied_as(AX_S32, AX_S8) && !ax_is_multiplied_as(AX_F32, AX_BF16));
  assert_true(ax_dtype_widens(AX_U4, AX_S8) && ax_dtype_widens(AX_S2, AX_S4) && !ax_dtype_widens(AX_U4, AX_S4));
}

static void duals(void **state) {
  (void)state;
  ax_type type = {.dtype = AX_F32, .spread = {.varying = 1, .reduced = 2, .unreduced = 4}}, dual = ax_dual(&type),
          back = ax_dual(&dual);
  assert_true(dual.spread.varying == 1 && dual.spread.reduced == 4 && dual.spread.unreduced == 2);
  assert_true(ax_type_equal(&type, &back));
  type.spread.kind = AX_UNREDUCED_MAX;
  dual = ax_dual(&type);
  assert_int_equal(dual.spread.kind, AX_UNREDUCED_SUM); /* cotangents add up, whatever made the value */
  assert_int_equal(ax_spread_differs(&type.spread), 1 | 4);
}

static void refusals(void **state) {
  (void)state;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("a=2,b=2", &mesh));
  ax_type kind_alone = {.dtype = AX_F32, .spread = {.kind = AX_UNREDUCED_MAX}},
          twice = {.dtype = AX_F32, .spread = {.reduced = 1, .unreduced = 1}},
          no_kind = {.dtype = AX_F32, .spread = {.unreduced = 1, .kind = (ax_unreduced_kind)7}},
          beyond = {.dtype = AX_F32, .spread = {.unreduced = 4}};
  TEST_FAILS(ax_type_check(&kind_alone, &mesh), AX_INVALID_ARGUMENT, "has a kind without being unreduced");
  TEST_FAILS(ax_type_check(&no_kind, &mesh), AX_INVALID_ARGUMENT, "f32[]{U?:a} is unreduced of a kind that is none");
  TEST_FAILS(ax_type_check(&twice, &mesh), AX_INVALID_ARGUMENT, "overlap");
  TEST_FAILS(ax_type_check(&beyond, &mesh), AX_INVALID_ARGUMENT, "not of the environment");
}

/* Structs that were filled wrongly: functions without a status answer as if there were nothing, and read nothing behind the
   struct. */
static void unsound(void **state) {
  (void)state;
  ax_type *type = malloc(sizeof *type);
  ax_mesh *mesh = malloc(sizeof *mesh);
  *type = ax_array_type(AX_F32, AX_DIMS(2, 3));
  assert_int_equal(ax_type_elems(type), 6);
  assert_true(ax_type_equal(type, type));
  type->rank = 99;
  assert_int_equal(ax_type_elems(type), 0);
  assert_false(ax_type_equal(type, type));
  *type = ax_array_type(AX_F32, AX_DIMS(INT64_C(1) << 40, INT64_C(1) << 40));
  assert_int_equal(ax_type_elems(type), 0);
  type->dims[1] = -1;
  assert_int_equal(ax_type_elems(type), 0);
  TEST_OK(ax_mesh_parse("a=2,b=3", mesh));
  assert_int_equal(ax_mesh_devices(mesh), 6);
  assert_int_equal(ax_mesh_find(mesh, "b"), 1);
  memset(mesh->axis[0].name, 'a', sizeof mesh->axis[0].name);
  assert_int_equal(ax_mesh_find(mesh, mesh->axis[0].name), -1);
  assert_int_equal(ax_mesh_find(mesh, "a"), -1);
  assert_int_equal(ax_mesh_find(mesh, "b"), 1);
  mesh->count = 99;
  assert_int_equal(ax_mesh_devices(mesh), 0);
  assert_int_equal(ax_mesh_find(mesh, "zz"), -1);
  mesh->count = 2;
  mesh->axis[0].size = mesh->axis[1].size = INT64_C(1) << 40;
  assert_int_equal(ax_mesh_devices(mesh), 0);
  mesh->axis[0].size = mesh->axis[1].size = -1;
  assert_int_equal(ax_mesh_devices(mesh), 0);
  free(type);
  free(mesh);
}

/* x is checked, u is unchecked, a is automatic. */
static ax_mesh three(void) {
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("x=2,u=3,a=4", &mesh));
  mesh.axis[1].unchecked = true;
  mesh.axis[2].automatic = true;
  return mesh;
}

/* --- Spreads --- */

static void a_value_varies_where_it_is_not_unreduced(void **state) {
  (void)state;
  ax_spread spread = {.reduced = 3, .unreduced = 4};
  ax_spread_vary(&spread, 5);
  assert_true(spread.varying == 1 && spread.reduced == 2 && spread.unreduced == 4);
}

static void unchecked_axes_are_dropped(void **state) {
  (void)state;
  const ax_mesh mesh = three();
  ax_spread spread = {.varying = 3, .unreduced = 4, .kind = AX_UNREDUCED_MAX}, wanted = {.varying = 1};
  assert_false(ax_spread_equal(&spread, &wanted));
  ax_spread_keep_checked(&spread, &mesh);
  assert_true(ax_spread_equal(&spread, &wanted)); /* with nothing unreduced there is no kind */
}

static void a_tangent_of_a_maximum_varies(void **state) {
  (void)state;
  const ax_type sum = {.form = AX_FUTURE, .dtype = AX_F32, .spread = {.unreduced = 2}},
                maximum = {.dtype = AX_F32, .spread = {.varying = 1, .unreduced = 2, .kind = AX_UNREDUCED_MAX}};
  const ax_type a = ax_tangent(&sum), b = ax_tangent(&maximum);
  assert_true(a.form == AX_ARRAY && a.spread.unreduced == 2);
  assert_true(b.spread.varying == 3 && b.spread.unreduced == 0 && b.spread.kind == AX_UNREDUCED_SUM);
}

static void memory_is_no_value(void **state) {
  (void)state;
  assert_true(ax_is_memory(AX_REF) && ax_is_memory(AX_SEMAPHORE) && ax_is_memory(AX_BARRIER));
  assert_false(ax_is_memory(AX_ARRAY) || ax_is_memory(AX_FUTURE) || ax_is_memory(AX_TOKEN));
  assert_string_equal(ax_form_advice(&(ax_type){.form = AX_FUTURE}), "which done must end first");
}

static void a_dtype_is_found_by_its_name(void **state) {
  (void)state;
  assert_int_equal(ax_dtype_find("bf16", 4), AX_BF16);
  assert_int_equal(ax_dtype_find("bf16x", 4), AX_BF16);
  assert_int_equal(ax_dtype_find("bf1", 3), AX_NO_DTYPE);
}

/* --- Sets of operands --- */

static void a_set_of_operands_becomes_a_mask(void **state) {
  (void)state;
  bool mask[3] = {false};
  TEST_OK(ax_args_mask(AX_ARGS(0, 2), "input", 3, mask));
  assert_true(mask[0] && !mask[1] && mask[2]);
  TEST_OK(ax_args_mask(AX_ALL_ARGS, "input", 3, mask));
  assert_true(mask[1]);
  assert_true(ax_args_all(AX_ALL_ARGS) && !ax_args_all(AX_FIRST(3)) && ax_args_refused(AX_REFUSED_ARGS));
  TEST_FAILS(ax_args_mask(AX_ARGS(3), "input", 3, mask), AX_INVALID_ARGUMENT, "there is no input 3: there are 3");
  TEST_FAILS(ax_args_mask(AX_RANGE(2, 2), "argument", 3, mask), AX_INVALID_ARGUMENT, "there is no argument 3");
  TEST_FAILS(ax_args_mask(AX_ARGS(1, 1), "input", 3, mask), AX_INVALID_ARGUMENT, "input 1 is named after 1");
  TEST_FAILS(ax_args_mask(AX_REFUSED_ARGS, "input", 3, mask), AX_INVALID_ARGUMENT,
             "inputs are to be those of a selection that failed");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_is_forgotten),
      cmocka_unit_test(narrow_floats),
      cmocka_unit_test(float_formats),
      cmocka_unit_test(duals),
      cmocka_unit_test(refusals),
      cmocka_unit_test(unsound),
      cmocka_unit_test(a_value_varies_where_it_is_not_unreduced),
      cmocka_unit_test(unchecked_axes_are_dropped),
      cmocka_unit_test(a_tangent_of_a_maximum_varies),
      cmocka_unit_test(memory_is_no_value),
      cmocka_unit_test(a_dtype_is_found_by_its_name),
      cmocka_unit_test(a_set_of_operands_becomes_a_mask),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
