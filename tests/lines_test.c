/* Calls say where they stand: in errors, in equations through transforms, in text; numbers are operands. */
#undef AXLE_NO_LINES
#include "axle/axle.h"

#include <stdio.h>
#include <string.h>

#include "support/cmocka.h"
#include "support/tensor.h"

/* The text with the lines counted from `base`: "lines_test.c:+2". */
static void expect_line(const char *text, int base, int line, const char *rest) {
  char wanted[300];
  snprintf(wanted, sizeof wanted, "lines_test.c:%d%s", base + line, rest);
  if (strstr(text, wanted) == NULL) fail_msg("%s is not in: %s", wanted, text);
}

static const int of_uneven = __LINE__;
static void uneven(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value y = ax_mul(in[0], 2);
  out[0] = ax_add(y, ax_matmul(ax_exp(in[0]), in[0]));
}
static void looped(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_scan(AX_FN(uneven, 1, 1), 1, 3, false, in, out);
}

static void errors_say_where(void **state) {
  (void)state;
  ax_program *program;
  const ax_type type = AX_TYPE(AX_F32, 2, 3);
  assert_int_equal(ax_trace(AX_FN(looped, 1, 1), &type, &program), AX_INVALID_ARGUMENT);
  expect_line(ax_message(), __LINE__, -1, ": trace: ");
  expect_line(ax_message(), of_uneven, 8, ": scan: body: ");
  expect_line(ax_message(), of_uneven, 4,
              ": matmul: f32[2,3] and f32[2,3]: the last dimension of the first is 3, but the last but one of the second 2");
  ax_mesh mesh;
  assert_int_equal(ax_mesh_parse("d=0", &mesh), AX_INVALID_ARGUMENT);
  expect_line(ax_message(), __LINE__, -1, ": mesh_parse: ");
}

static const int of_mapped = __LINE__;
static void mapped_badly(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_pmap(AX_FN(uneven, 1, 1), in, out, &(ax_pmap_options){.axis_size = 2});
}
static void one_row(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_exp(in[0]);
}

static void pmaps_say_where(void **state) {
  (void)state;
  ax_program *program;
  char *text;
  const ax_type type = AX_TYPE(AX_F32, 2, 3, 2);
  assert_int_equal(ax_trace(AX_FN(mapped_badly, 1, 1), &type, &program), AX_INVALID_ARGUMENT);
  expect_line(ax_message(), of_mapped, 3, ": pmap: body: ");
  expect_line(ax_message(), of_uneven, 4, ": matmul: f32[3,2] and f32[3,2]");
  const int line = __LINE__ + 1;
  TEST_OK(ax_trace(AX_PMAPPED(NULL, AX_FN(one_row, 1, 1)), &type, &program));
  TEST_OK(ax_program_print_locations(program, &text));
  expect_line(text, line, 0, "\"");
  expect_line(text, of_mapped, 7, "\"");
  ax_string_free(text);
  ax_program_release(program);
  const ax_type other = AX_TYPE(AX_F32);
  assert_int_equal(ax_trace(AX_PMAPPED(NULL, AX_FN(one_row, 1, 1)), &other, &program), AX_INVALID_ARGUMENT);
  expect_line(ax_message(), __LINE__, -1, ": pmap: in_axes[0]=0 of f32[] is out of range");
}

/* Of a call over two lines clang names the last, others the first. */
#ifdef __clang__
enum { of_two = 1 };
#else
enum { of_two = 0 };
#endif
static const int of_started = __LINE__;
static void started(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value sum = ax_start(ax_psum(
      ax_exp(in[0]), ""));
  ax_value most = ax_psum_start(in[0],
                                context == NULL ? "" : "none");
  out[0] = ax_add(ax_done(sum), ax_done(most));
}

/* What is started says where it is, and where what it holds is. */
static void what_is_started_says_where(void **state) {
  (void)state;
  ax_program *program;
  char *text;
  int any;
  const ax_type type = AX_TYPE(AX_F32, 2);
  TEST_OK(ax_trace(AX_FN(started, 1, 1), &type, &program));
  TEST_OK(ax_program_print_locations(program, &text));
  expect_line(strstr(text, "exp"), of_started, 4, "\"\n");
  expect_line(strstr(text, "] a @"), of_started, 3 + of_two, "\"\n");
  ax_string_free(text);
  ax_program_release(program);
  assert_int_equal(ax_trace(AX_CLOSURE(started, 1, 1, &any), &type, &program), AX_INVALID_ARGUMENT);
  expect_line(ax_message(), __LINE__, -1, ": trace: ");
  if (strstr(ax_message(), "psum: axis \"none\" is not bound") == NULL || strstr(ax_message(), "start: ") != NULL)
    fail_msg("%s", ax_message());
}

static const int of_loss = __LINE__;
static void loss(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value hidden = ax_tanh(ax_matmul(in[0], in[1]));
  out[0] = ax_reduce_sum(ax_mul(hidden, 0.5),
                         AX_ALL_DIMS, false);
}
static const int of_step = __LINE__;
static void step(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_grad(AX_FN(loss, 2, 1), AX_FIRST(1), in, out);
  out[0] = ax_sub(1, out[0]);
}

static void equations_keep_their_locations(void **state) {
  (void)state;
  ax_program *program, *again;
  char *text, *plain, *copy;
  const ax_type types[] = {AX_TYPE(AX_F32, 2, 3), AX_TYPE(AX_F32, 3, 2)};
  TEST_OK(ax_trace(AX_FN(step, 2, 1), types, &program));
  TEST_OK(ax_program_print_locations(program, &text));
  const char *product = strstr(text, "dot_general"), *cotangent = strstr(product + 1, "dot_general");
  expect_line(product, of_loss, 3, "\"\n");
  expect_line(cotangent, of_loss, 3, "\"\n"); /* of the transposed equation */
  expect_line(strstr(text, "= sub 1.0") != NULL ? strstr(text, "= sub") : text, of_loss, 3, "\"\n");
  expect_line(text, of_step, 4, "\"\n");
  TEST_OK(ax_program_parse(text, strlen(text), NULL, &again));
  assert_true(ax_program_equal(program, again));
  TEST_OK(ax_program_print_locations(again, &copy));
  assert_string_equal(copy, text);
  TEST_OK(ax_program_print(program, &plain));
  assert_null(strchr(plain, '@'));
  ax_program_release(program);
  ax_program_release(again);
  ax_string_free(text), ax_string_free(plain), ax_string_free(copy);
}

static void itself(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[0];
}
static const int of_backwards = __LINE__;
static void backwards(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_custom_vjp(AX_FN(itself, 1, 1), AX_FN(itself, 1, 1), AX_FN(itself, 1, 1), in, out);
}
static void pushed(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value y;
  ax_jvp(AX_FN(backwards, 1, 1), AX_FIRST(1), in, in, &y, out);
}

/* A function that has no derivative forwards is named by its place where one is asked for. */
static void no_derivative_of_which(void **state) {
  (void)state;
  ax_program *program;
  const ax_type type = AX_TYPE(AX_F32, 2);
  assert_int_equal(ax_trace(AX_FN(pushed, 1, 1), &type, &program), AX_ABSENT);
  expect_line(ax_message(), of_backwards, 8, ": jvp: the function with custom_vjp at ");
  expect_line(strstr(ax_message(), "custom_vjp"), of_backwards, 3, " has no derivative forwards");
}

static void mapped(const ax_value *in, ax_value *out, void *context) {
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=2", &mesh));
  if (context != NULL) ax_shard_map_unchecked(&mesh, "d -> d", AX_FN(uneven, 1, 1), in, out);
  else ax_shard_map(&mesh, "d -> d", AX_FN(uneven, 1, 1), in, out);
}

/* Whose body it is is said once. */
static void of_which_map(void **state) {
  (void)state;
  ax_program *program;
  const ax_type type = AX_TYPE(AX_F32, 2, 3);
  for (int unchecked = 0; unchecked < 2; unchecked++) {
    assert_int_equal(ax_trace(AX_CLOSURE(mapped, 1, 1, unchecked != 0 ? &unchecked : NULL), &type, &program), AX_INVALID_ARGUMENT);
    const char *said = strstr(ax_message(), "shard_map");
    assert_non_null(said);
    assert_true(strncmp(said, unchecked != 0 ? "shard_map_unchecked: body: " : "shard_map: body: ", unchecked != 0 ? 27 : 17) == 0);
    assert_null(strstr(said + 1, "shard_map"));
  }
}

/* Every kind of number, on either side. */
static void numbers(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  float f = 0.5f;
  unsigned u = 3;
  long l = -2;
  bool b = true;
  ax_value x = in[0];
  out[0] = ax_add(ax_mul(ax_sub(f, x), u), ax_div(l, ax_max(x, 0x1p-20)));
  out[1] = ax_where(ax_gt(x, 0), ax_pow(x, 2), b);
  out[2] = ax_mul(ax_add(in[1], 18446744073709551615u), 1);
  out[0] = ax_add(ax_add(out[0], 2.75L), ax_axis_size(ax_typeof(x).rank == 1 ? "" : "none"));
  out[3] = ax_dynamic_slice(x, AX_VALUES(ax_integer(1)), AX_DIMS(2));
}

static void numbers_are_operands(void **state) {
  (void)state;
  ax_program *program;
  char *text;
  const ax_type types[] = {AX_TYPE(AX_F32, 4), AX_TYPE(AX_U64)};
  TEST_OK(ax_trace(AX_FN(numbers, 2, 4), types, &program));
  TEST_OK(ax_program_print(program, &text));
  static const char *const parts[] = {"0.5:f32[]", "3.0:f32[]", "-2.0:f32[]", "9.536743e-07:f32[]", "2.0:f32[]", "1.0:f32[]",
                                      "add b 18446744073709551615:u64[]", "2.75:f32[]",
                                      "dynamic_slice[slice_sizes=(2,)] a 1:s32[]"};
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
    if (strstr(text, parts[i]) == NULL) fail_msg("%s is not in\n%s", parts[i], text);
  ax_string_free(text);
  ax_program_release(program);
}

/* Of functions of three operands, and indices. */
static const int of_parts = __LINE__;
static void parts(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = in[0];
  out[0] = ax_clamp(0, ax_dynamic_at(x, 3, 0), 1);
  out[1] = ax_dynamic_at_set(ax_dynamic_at_set(x, 0, in[1], 0), 7, 1, 1);
  out[2] = ax_dynamic_update_slice_in_dim(x, ax_dynamic_slice_in_dim(x, 2, 1, -1), 0u, 1);
  if (ax_typeof(x).dims[0] == 5) out[0] = ax_dynamic_at(x, -1, 0);
}

static void numbers_are_indices(void **state) {
  (void)state;
  ax_type types[] = {AX_TYPE(AX_F32, 4, 3), AX_TYPE(AX_U8)};
  ax_program *program;
  TEST_OK(ax_trace(AX_FN(parts, 2, 3), types, &program));
  ax_tensor *in[] = {test_tensor(types[0], (double[]){1, 2, 3, 4, 5, 6, 7, 8, 9, -1, 0.5, 2}),
                     test_tensor(types[1], (double[]){2})},
            *out[3];
  test_run(program, in, out);
  static const double wanted[3][12] = {{0, 0.5, 1}, {1, 7, 3, 4, 7, 6, 0, 7, 0, -1, 7, 2}, {3, 2, 3, 6, 5, 6, 9, 8, 9, 2, 0.5, 2}};
  for (int k = 0; k < 3; k++)
    for (int64_t i = 0; i < test_elems(out[k]); i++) assert_true(test_get(out[k], i) == wanted[k][i]);
  test_release(in, 2);
  test_release(out, 3);
  ax_program_release(program);
  types[0] = AX_TYPE(AX_F32, 5, 3);
  assert_int_equal(ax_trace(AX_FN(parts, 2, 3), types, &program), AX_INVALID_ARGUMENT);
  expect_line(ax_message(), of_parts, 7, ": dynamic_at: the index is -1; it does not count from the end");
}

/* What nests does not grow with 2^depth when it is compiled. */
static void nested(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = in[0];
  out[0] = ax_add(
      1,
      ax_mul(
          x,
          ax_add(
              2,
              ax_mul(
                  x,
                  ax_add(
                      3,
                      ax_mul(
                          x,
                          ax_add(
                              4,
                              ax_mul(
                                  x,
                                  ax_add(
                                      5,
                                      ax_mul(
                                          x,
                                          ax_add(
                                              6,
                                              ax_mul(
                                                  x,
                                                  ax_add(
                                                      7,
                                                      ax_mul(
                                                          x,
                                                          ax_add(
                                                              8,
                                                              ax_mul(
                                                                  x,
                                                                  ax_add(
                                                                      9,
                                                                      ax_mul(
                                                                          x,
                                                                          ax_add(
                                                                              10,
                                                                              ax_mul(
                                                                                  x,
                                                                                  ax_add(
                                                                                      11,
                                                                                      ax_mul(x, ax_add(12, x)))))))))))))))))))))));
}

static void numbers_nest(void **state) {
  (void)state;
  ax_program *program;
  const ax_type type = AX_TYPE(AX_F32);
  TEST_OK(ax_trace(AX_FN(nested, 1, 1), &type, &program));
  assert_int_equal(ax_program_out_type(program, 0)->rank, 0);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_started_says_where), cmocka_unit_test(errors_say_where), cmocka_unit_test(pmaps_say_where),
      cmocka_unit_test(equations_keep_their_locations), cmocka_unit_test(no_derivative_of_which), cmocka_unit_test(of_which_map),
      cmocka_unit_test(numbers_are_operands),
      cmocka_unit_test(numbers_are_indices),
      cmocka_unit_test(numbers_nest),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
