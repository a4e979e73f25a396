/* Memory in C is put and read with the dtype and the bytes that the compiler knows of it: what is of another type, or too short, is
   refused at the line of the call. AX_HOST takes the dtype and the dimensions from a C array. */
#undef AXLE_NO_LINES
#include "axle/axle.h"

#include <stdio.h>
#include <string.h>

#include "support/cmocka.h"
#include "support/tensor.h"

static void expect_at(int line, const char *rest) {
  char wanted[100];
  snprintf(wanted, sizeof wanted, "memory_test.c:%d: ", line);
  if (strstr(ax_message(), wanted) == NULL || strstr(ax_message(), rest) == NULL) fail_msg("%s%s is not: %s", wanted, rest, ax_message());
}

static AX_BODY(same) { out[0] = ax_add(in[0], 1); }

static void host_arrays_have_what_c_says(void **state) {
  (void)state;
  float x[2][3][4] = {{{0}}};
  const double row[5] = {1, 2, 3, 4, 5};
  int32_t one = 7;
  uint16_t words[2][2] = {{1, 2}, {3, 4}};
  _Bool flags[3] = {1, 0, 1};
  const double *from = row;
  const ax_host_array hosts[] = {AX_HOST(x),     AX_HOST(row),   AX_HOST(one),           AX_HOST(words),
                                 AX_HOST(flags), AX_HOST(x[1]),  AX_HOST_AT(from, 2, 2), AX_HOST_AT(&x[0][0][0], 24)};
  const ax_type wanted[] = {AX_TYPE(AX_F32, 2, 3, 4), AX_TYPE(AX_F64, 5),    AX_TYPE(AX_S32),       AX_TYPE(AX_U16, 2, 2),
                            AX_TYPE(AX_BOOL, 3),      AX_TYPE(AX_F32, 3, 4), AX_TYPE(AX_F64, 2, 2), AX_TYPE(AX_F32, 24)};
  const void *data[] = {x, row, &one, words, flags, x[1], row, x};
  for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
    const ax_type got = ax_array_type(hosts[i].dtype, AX_LIST(hosts[i].rank, hosts[i].dims));
    assert_true(ax_type_equal(&got, &wanted[i]));
    assert_ptr_equal(hosts[i].data, data[i]);
    assert_true(hosts[i].view);
  }
  assert_true(ax_host_at(&AX_HOST(row), 4) == 5);
}

static void views_are_checked(void **state) {
  (void)state;
  float x[4] = {0};
  uint16_t half[4] = {0};
  void *any = x;
  assert_int_equal(ax_host_view(AX_F32, AX_DIMS(2, 2), x).dtype, AX_F32);
  assert_int_equal(ax_host_view(AX_F64, AX_DIMS(2), x).dtype, AX_NO_DTYPE);
  assert_non_null(strstr(ax_message(), "the array is f64[2], but the memory in C has elements of type f32"));
  assert_int_equal(ax_host_view(AX_F32, AX_DIMS(5), x).dtype, AX_NO_DTYPE);
  assert_non_null(strstr(ax_message(), "f32[5] takes 20 bytes, but the memory in C has 16"));
  assert_int_equal(ax_host_view(AX_F32, AX_DIMS(2), &x[3]).dtype, AX_NO_DTYPE);
  assert_int_equal(ax_host_view(AX_BF16, AX_DIMS(4), half).dtype, AX_BF16);
  assert_int_equal(ax_host_view(AX_F64, AX_DIMS(2), any).dtype, AX_F64); /* nothing is known of it */
}

/* A view that was refused says why, and where it was made, to whoever takes it, however many calls failed in between. */
static void refused_views_say_why(void **state) {
  (void)state;
  static const char *const why[] = {"host_view: the array is f64[2], but the memory in C has elements of type f32",
                                    "host_view: f32[5] takes 20 bytes, but the memory in C has 16", "host_view: dimension 1 is -3",
                                    "host_view: 0 is no dtype", "AX_HOST_AT: f32[8] takes 32 bytes, but the memory in C has 16"};
  float x[4] = {0};
  char wanted[200];
  ax_runtime *runtime;
  ax_executable *executable;
  ax_array *array;
  ax_host_array out;
  const int line = __LINE__ + 1;
  const ax_host_array views[] = {ax_host_view(AX_F64, AX_DIMS(2), x),
                                 ax_host_view(AX_F32, AX_DIMS(5), x),
                                 ax_host_view(AX_F32, AX_DIMS(2, -3), x),
                                 ax_host_view(AX_NO_DTYPE, AX_DIMS(4), x),
                                 AX_HOST_AT(&x[0], 8)};
  const ax_type type = AX_TYPE(AX_F32, 4);
  TEST_OK(ax_runtime_create(NULL, &runtime));
  TEST_OK(ax_jit(runtime, AX_FN(same, 1, 1), &type, NULL, &executable));
  for (int i = 0; i < 5; i++) {
    snprintf(wanted, sizeof wanted, "memory_test.c:%d: %s", line + i, why[i]);
    assert_int_equal(ax_apply(runtime, AX_FN(same, 1, 1), &views[i], &out), AX_INVALID_ARGUMENT);
    expect_at(__LINE__ - 1, wanted);
    assert_int_equal(ax_run_host(executable, &views[i], &out), AX_INVALID_ARGUMENT);
    expect_at(__LINE__ - 1, wanted);
    assert_int_equal(ax_device_put(runtime, NULL, "", &views[i], &array), AX_INVALID_ARGUMENT);
    expect_at(__LINE__ - 1, wanted);
    assert_int_equal(ax_npy_write("/nonexistent/x.npy", &views[i]), AX_INVALID_ARGUMENT);
    assert_non_null(strstr(ax_message(), wanted));
  }
  ax_executable_release(executable);
  ax_runtime_release(runtime);
}

/* The rows of an array may be taken for all its elements; the members of a struct not. */
static void members_end_where_they_end(void **state) {
  (void)state;
  struct {
    float member[4], next[12];
    float rows[2][4];
  } s = {.member = {0}}, two[2] = {s, s};
  float a[4][4] = {{0}}, deep[2][3][4] = {{{0}}}, column[5][1] = {{0}};
  assert_int_equal(ax_host_view(AX_F32, AX_DIMS(8), s.member).dtype, AX_NO_DTYPE);
  assert_non_null(strstr(ax_message(), "f32[8] takes 32 bytes, but the memory in C has 16"));
  assert_int_equal(ax_host_view(AX_F32, AX_DIMS(13), two[0].next).dtype, AX_NO_DTYPE);
  assert_int_equal(ax_host_view(AX_F32, AX_DIMS(9), (s.rows)).dtype, AX_NO_DTYPE);
  assert_int_equal(ax_host_view(AX_F32, AX_DIMS(13), a[1]).dtype, AX_NO_DTYPE);
  const ax_host_array good[] = {
      ax_host_view(AX_F32, AX_DIMS(4), s.member),   ax_host_view(AX_F32, AX_DIMS(8), s.rows),     ax_host_view(AX_F32, AX_DIMS(8), s.rows[0]),
      ax_host_view(AX_F32, AX_DIMS(16), a[0]),      ax_host_view(AX_F32, AX_DIMS(12), a[1]),      ax_host_view(AX_F32, AX_DIMS(16), &a[0][0]),
      ax_host_view(AX_F32, AX_DIMS(24), deep[0]),   ax_host_view(AX_F32, AX_DIMS(24), deep[0][0]), ax_host_view(AX_F32, AX_DIMS(5), column[0]),
      ax_host_view(AX_F32, AX_DIMS(5), &column[0][0])};
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) assert_int_equal(good[i].dtype, AX_F32);
}

static void leaves_refuse_what_does_not_fit(void **state) {
  (void)state;
  ax_runtime *runtime;
  ax_treedef *def;
  ax_tree *tree;
  float x[4] = {1, 2, 3, 4}, few[3] = {0}, matrix[2][2] = {{0}};
  double wide[4] = {0};
  int32_t bits[4];
  TEST_OK(ax_runtime_create(NULL, &runtime));
  TEST_OK(ax_treedef_parse("x: f32[4]", &def));
  TEST_OK(ax_tree_create(runtime, NULL, def, &tree));
  assert_int_equal(ax_tree_put(tree, wide, "x"), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "tree_put: x: the array is f32[4], but the memory in C has elements of type f64");
  assert_int_equal(ax_tree_put(tree, few, "x"), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "tree_put: x: f32[4] takes 16 bytes, but the memory in C has 12");
  TEST_OK(ax_tree_put(tree, x, "x"));
  TEST_OK(ax_tree_read(tree, matrix, sizeof matrix, "x"));
  assert_true(matrix[1][0] == 3);
  assert_int_equal(ax_tree_read(tree, bits, sizeof bits, "x"), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "the array is f32[4], but the memory in C has elements of type s32");
  ax_tree_release(tree);
  ax_treedef_release(def);
  ax_runtime_release(runtime);
}

static void arrays_refuse_what_does_not_fit(void **state) {
  (void)state;
  ax_runtime *runtime;
  ax_executable *executable;
  ax_array *array;
  const ax_type type = AX_TYPE(AX_F32, 4);
  float x[4] = {1, 2, 3, 4}, few[2] = {0}, back[4];
  double wide[4] = {0};
  uint32_t bits[4];
  TEST_OK(ax_runtime_create(NULL, &runtime));
  assert_int_equal(ax_device_put_data(runtime, NULL, "", &type, wide, &array), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "device_put_data: the array is f32[4], but the memory in C has elements of type f64");
  assert_int_equal(ax_device_put_data(runtime, NULL, "", &type, few, &array), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "device_put_data: f32[4] takes 16 bytes, but the memory in C has 8");
  assert_null(array);
  TEST_OK(ax_jit(runtime, AX_FN(same, 1, 1), &type, NULL, &executable));
  assert_int_equal(ax_executable_put(executable, 0, few, &array), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "executable_put: f32[4] takes 16 bytes, but the memory in C has 8");
  TEST_OK(ax_executable_put(executable, 0, x, &array));
  assert_int_equal(ax_array_read(array, bits, sizeof bits), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "array_read: the array is f32[4], but the memory in C has elements of type u32");
  assert_int_equal(ax_array_read(array, few, sizeof back), AX_INVALID_ARGUMENT);
  expect_at(__LINE__ - 1, "takes 16 bytes, not 8");
  TEST_OK(ax_array_read(array, (void *)bits, sizeof bits));
  TEST_OK(ax_array_read(array, back, sizeof back));
  assert_true(back[3] == 4 && memcmp(bits, back, sizeof bits) == 0);
  ax_array_release(array);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
}

static int line;
static AX_BODY(short_constant) {
  const ax_type type = AX_TYPE(AX_F32, 4);
  const float few[3] = {0};
  line = __LINE__, out[0] = ax_add(in[0], ax_constant(&type, few));
}

static void constants_refuse_what_does_not_fit(void **state) {
  (void)state;
  ax_program *program;
  const ax_type type = AX_TYPE(AX_F32, 4);
  assert_int_equal(ax_trace(AX_FN(short_constant, 1, 1), &type, &program), AX_INVALID_ARGUMENT);
  expect_at(line, "constant: f32[4] takes 16 bytes, but the memory in C has 12");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(host_arrays_have_what_c_says),       cmocka_unit_test(views_are_checked),
      cmocka_unit_test(refused_views_say_why),              cmocka_unit_test(members_end_where_they_end),
      cmocka_unit_test(leaves_refuse_what_does_not_fit),    cmocka_unit_test(arrays_refuse_what_does_not_fit),
      cmocka_unit_test(constants_refuse_what_does_not_fit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
