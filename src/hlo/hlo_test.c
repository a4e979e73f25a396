/* The text of each piece: types, constants, ops with regions, attributes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "hlo/hlo.h"
#include "hlo/print.h"
#include "ir/number.h"
#include "support/cmocka.h"

static void expect(ax_text *text, const char *expected) {
  assert_false(text->failed);
  assert_string_equal(text->data != NULL ? text->data : "", expected);
  ax_text_deinit(text);
}

static ax_type vector(ax_dtype dtype, int64_t elems) { return ax_array_type(dtype, AX_LIST(1, &elems)); }

static void test_types(void **state) {
  (void)state;
  int64_t dims[] = {4, 0, 8};
  ax_type array = ax_array_type(AX_BF16, AX_LIST(3, dims)), scalar = ax_array_type(AX_BOOL, AX_DIMS());
  ax_text text = {0};
  ax_hlo_type(&text, &array);
  ax_hlo_type(&text, &scalar);
  expect(&text, "tensor<4x0x8xbf16>tensor<i1>");
}

/* --- Modules --- */

/* The text of what was added, outside of all functions. */
static void expect_module(ax_hlo *hlo, const char *expected) {
  const ax_hlo_attributes none = {.hlo = hlo};
  ax_text text = {0}, whole = {0};
  assert_int_equal(ax_hlo_finish(hlo, &none), AX_OK);
  assert_int_equal(ax_hlo_print(&hlo->module, &text), AX_OK);
  ax_text_add(&whole, "module {\n%s}\n", expected);
  expect(&text, whole.data);
  ax_text_deinit(&whole);
  ax_hlo_deinit(hlo);
}

/* --- Constants --- */

static void expect_splat(ax_dtype dtype, double value, const char *expected) {
  ax_hlo hlo = {0};
  assert_int_equal(ax_hlo_init(&hlo), AX_OK);
  uint64_t element = 0;
  ax_type type = vector(dtype, 2);
  ax_number_store(dtype, &element, 0, ax_number_of(dtype, value));
  assert_int_equal(ax_hlo_splat(&hlo, &type, &element), 0);
  char line[200];
  const char *name = ax_dtype_get(dtype)->hlo;
  snprintf(line, sizeof line,
           "  %%0 = \"stablehlo.constant\"() {value = dense<%s> : tensor<2x%s>} : () -> tensor<2x%s>\n", expected, name,
           name);
  expect_module(&hlo, line);
}

static void test_splats(void **state) {
  (void)state;
  expect_splat(AX_F32, 1, "1.0e+00");
  expect_splat(AX_F32, -0.0, "-0.0e+00");
  expect_splat(AX_F32, 0.1, "1.0e-01");
  expect_splat(AX_F64, 0.1, "1.0e-01");
  expect_splat(AX_F64, 1.0 / 3, "3.3333333333333331e-01");
  expect_splat(AX_F32, INFINITY, "0x7F800000");
  expect_splat(AX_F16, -INFINITY, "0xFC00");
  expect_splat(AX_BF16, NAN, "0x7FC0");
  expect_splat(AX_F64, NAN, "0x7FF8000000000000");
  expect_splat(AX_S8, -128, "-128");
  expect_splat(AX_U8, 255, "255");
  expect_splat(AX_BOOL, 1, "true");
}

static void expect_dense(const ax_type *type, const void *data, const char *expected) {
  ax_hlo hlo = {0};
  assert_int_equal(ax_hlo_init(&hlo), AX_OK);
  const ax_hlo_attributes none = {.hlo = &hlo};
  ax_text text = {0};
  ax_hlo_dense(&hlo, type, data);
  assert_int_equal(ax_hlo_finish(&hlo, &none), AX_OK);
  assert_int_equal(ax_hlo_print(&hlo.module, &text), AX_OK);
  char *value = strstr(text.data, "dense");
  assert_non_null(value);
  *strchr(value, '}') = '\0';
  assert_string_equal(value, expected);
  ax_text_deinit(&text);
  ax_hlo_deinit(&hlo);
}

static void test_dense(void **state) {
  (void)state;
  int64_t dims[] = {2, 3}, none[] = {0, 3};
  int16_t data[] = {1, 2, 3, -4, 5, 6};
  ax_type type = ax_array_type(AX_S16, AX_LIST(2, dims)), empty = ax_array_type(AX_S16, AX_LIST(2, none));
  expect_dense(&type, data, "dense<[[1, 2, 3], [-4, 5, 6]]> : tensor<2x3xi16>");
  expect_dense(&empty, data, "dense<> : tensor<0x3xi16>");
  uint8_t bools[] = {1, 0};
  ax_type two = vector(AX_BOOL, 2);
  expect_dense(&two, bools, "dense<[true, false]> : tensor<2xi1>");
}

static void test_dense_large(void **state) {
  (void)state;
  uint16_t data[65];
  char expected[400] = "dense<\"0x";
  for (int i = 0; i < 65; i++) {
    data[i] = (uint16_t)(0xab01 + (i == 0));
    strcat(expected, i == 0 ? "02AB" : "01AB");
  }
  ax_type type = vector(AX_U16, 65);
  expect_dense(&type, data, strcat(expected, "\"> : tensor<65xui16>"));
}

/* --- Ops --- */

static void test_regions(void **state) {
  (void)state;
  ax_hlo hlo = {0};
  assert_int_equal(ax_hlo_init(&hlo), AX_OK);
  ax_type scalar = ax_array_type(AX_F32, AX_DIMS()), pair[] = {scalar, scalar};
  ax_hlo_attributes attributes = {.hlo = &hlo};
  const uint32_t in = ax_hlo_op(&hlo, "a.start", NULL, 0, NULL, pair, 2), both_in[] = {in, in + 1};
  const uint32_t made = ax_hlo_begin(&hlo, "a.op", both_in, 2, pair, 2);
  assert_int_equal(made, in + 2);
  uint32_t arg = ax_hlo_region_begin(&hlo, &scalar, 1), both[] = {arg, arg};
  uint32_t sum = ax_hlo_op(&hlo, "a.add", both, 2, NULL, &scalar, 1);
  assert_int_equal(ax_hlo_region_count(&hlo), 1);
  ax_hlo_region_end(&hlo, &sum, 1);
  ax_hlo_region_begin(&hlo, NULL, 0);
  ax_hlo_region_end(&hlo, both_in, 2);
  ax_hlo_add_integer(&attributes, "x", 1);
  ax_hlo_end(&hlo, &attributes);
  ax_hlo_op(&hlo, "a.dropped", NULL, 0, NULL, NULL, 0);
  ax_hlo_drop(&hlo);
  expect_module(&hlo,
                "  %0, %1 = \"a.start\"() : () -> (tensor<f32>, tensor<f32>)\n"
                "  %2, %3 = \"a.op\"(%0, %1) ({\n"
                "  ^bb0(%4: tensor<f32>):\n"
                "    %5 = \"a.add\"(%4, %4) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n"
                "    \"stablehlo.return\"(%5) : (tensor<f32>) -> ()\n"
                "  }, {\n"
                "    \"stablehlo.return\"(%0, %1) : (tensor<f32>, tensor<f32>) -> ()\n"
                "  }) {x = 1 : i64} : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)\n");
}

/* --- Attributes --- */

static void test_lists(void **state) {
  (void)state;
  int64_t v[] = {3, -1};
  ax_hlo hlo = {0};
  assert_int_equal(ax_hlo_init(&hlo), AX_OK);
  ax_hlo_attributes attributes = {.hlo = &hlo};
  ax_hlo_add_integers(&attributes, "a", v, 2);
  ax_hlo_add_integers(&attributes, "b", v, 0);
  ax_hlo_op(&hlo, "a.op", NULL, 0, &attributes, NULL, 0);
  expect_module(&hlo, "  \"a.op\"() {a = array<i64: 3, -1>, b = array<i64>} : () -> ()\n");
}

static void expect_groups(const char *mesh_text, const char *names, const char *expected) {
  ax_mesh mesh;
  ax_axes axes;
  ax_hlo hlo = {0};
  assert_int_equal(ax_hlo_init(&hlo), AX_OK);
  ax_hlo_attributes attributes = {.hlo = &hlo};
  ax_text line = {0};
  assert_int_equal(ax_mesh_parse(mesh_text, &mesh), AX_OK);
  assert_int_equal(ax_axes_parse(names, NULL, &axes), AX_OK);
  ax_hlo_add_replica_groups(&attributes, &axes, &mesh);
  ax_hlo_op(&hlo, "a.op", NULL, 0, &attributes, NULL, 0);
  ax_text_add(&line, "  \"a.op\"() {replica_groups = %s} : () -> ()\n", expected);
  expect_module(&hlo, line.data);
  ax_text_deinit(&line);
}

/* Members of a group stand in the order of the axes named. */
static void test_groups(void **state) {
  (void)state;
  expect_groups("a=2,b=3", "a", "dense<[[0, 3], [1, 4], [2, 5]]> : tensor<3x2xi64>");
  expect_groups("a=2,b=3", "b", "dense<[[0, 1, 2], [3, 4, 5]]> : tensor<2x3xi64>");
  expect_groups("a=2,b=3", "a,b", "dense<[[0, 1, 2, 3, 4, 5]]> : tensor<1x6xi64>");
  expect_groups("a=2,b=3", "b,a", "dense<[[0, 3, 1, 4, 2, 5]]> : tensor<1x6xi64>");
  expect_groups("a=2,b=2,c=2", "c,a", "dense<[[0, 4, 1, 5], [2, 6, 3, 7]]> : tensor<2x4xi64>");
  expect_groups("a=1", "a", "dense<0> : tensor<1x1xi64>");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_types),       cmocka_unit_test(test_splats),  cmocka_unit_test(test_dense),
      cmocka_unit_test(test_dense_large), cmocka_unit_test(test_regions), cmocka_unit_test(test_lists),
      cmocka_unit_test(test_groups),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
