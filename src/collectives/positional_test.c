/* Reductions over members and dimensions at once, of bools and of numbers: against the same in two steps; what is refused. */
#include <string.h>

#include "axle/collectives.h"
#include "axle/transform.h"
#include "ir/program.h"
#include "support/cmocka.h"
#include "support/run.h"
#include "support/tensor.h"

typedef ax_value (*reduction)(ax_value x, const char *axes);
typedef struct row {
  const char *axes, *names; /* with dimensions, and without */
  uint32_t count;
  int64_t dims[3];
} row;
static const row rows[] = {
    {"a,0", "a", 1, {0}},        {"0,a", "a", 1, {0}},        {"1,b,a", "b,a", 1, {1}}, {"a,-1", "a", 1, {2}},
    {"2, b ,0", "b", 2, {0, 2}}, {"0,1,2", "", 3, {0, 1, 2}}, {"-1", "", 1, {2}},       {"b,-3,a,-1", "b,a", 2, {0, 2}},
};
enum { row_count = sizeof rows / sizeof rows[0], kinds = 4 };

static void in_one(const ax_value *in, ax_value *out, void *context) {
  const row *r = context;
  const reduction all[kinds] = {ax_psum, ax_pmean, ax_pmax, ax_pmin};
  for (int k = 0; k < kinds; k++) out[k] = all[k](in[0], r->axes);
}

static void in_two(const ax_value *in, ax_value *out, void *context) {
  const row *r = context;
  out[0] = ax_psum(ax_reduce_sum(in[0], AX_LIST(r->count, r->dims), false), r->names);
  out[1] = ax_pmean(ax_reduce_mean(in[0], AX_LIST(r->count, r->dims), false), r->names);
  out[2] = ax_pmax(ax_reduce_max(in[0], AX_LIST(r->count, r->dims), false), r->names);
  out[3] = ax_pmin(ax_reduce_min(in[0], AX_LIST(r->count, r->dims), false), r->names);
}

static ax_status trace(ax_fn function, ax_dtype dtype, ax_program **out) {
  ax_mesh mesh;
  ax_type type = ax_array_type(dtype, AX_DIMS(2, 3, 4));
  TEST_OK(ax_mesh_parse("a=2,b=3", &mesh));
  type.spread.varying = 3;
  return ax_trace_on(&mesh, function, &type, out);
}

typedef struct cut { /* a function inside a shard_map, whose results are on all devices */
  ax_function function;
  const row *row;
} cut;
static void on_devices(const ax_value *in, ax_value *out, void *context) {
  const cut *c = context;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("a=2,b=3", &mesh));
  ax_shard_map_unchecked(&mesh, "a,b -> ", AX_CLOSURE(c->function, 1, kinds, (void *)c->row), in, out);
}

static void dimensions_beside_names(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F64, 4, 9, 4);
  double data[4 * 9 * 4];
  for (int i = 0; i < 4 * 9 * 4; i++) data[i] = (i * 37 % 101) / 8.0 - 6;
  for (int r = 0; r < row_count; r++) {
    ax_tensor *in = test_tensor(type, data), *one[kinds], *two[kinds];
    ax_program *program = test_trace(on_devices, &(cut){in_one, &rows[r]}, &type, 1, kinds);
    ax_program *other = test_trace(on_devices, &(cut){in_two, &rows[r]}, &type, 1, kinds);
    test_run(program, &in, one);
    test_run(other, &in, two);
    for (int k = 0; k < kinds; k++) {
      assert_int_equal(test_elems(one[k]), test_elems(two[k]));
      for (int64_t i = 0; i < test_elems(one[k]); i++) TEST_NEAR(test_get(one[k], i), test_get(two[k], i), 1e-14);
    }
    test_release(&in, 1);
    test_release(one, kinds);
    test_release(two, kinds);
    ax_program_release(program);
    ax_program_release(other);
  }
}

/* --- Bools and numbers --- */

static void of_bools(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_psum(in[0], "a,b");
  out[1] = ax_pmax(in[0], "a,b");
  out[2] = ax_pmin(in[0], "a,b");
  out[3] = ax_psum(in[0], "a,b,0");
}

static void bools(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_BOOL, 2, 9);
  const double data[18] = {1, 0, 0, 1, 0, 0, 1, 1, 0, 1, 0, 0, 1, 0, 1, 1, 1, 0}; /* on each device one row of three */
  ax_program *program = test_trace(on_devices, &(cut){of_bools, NULL}, &type, 1, kinds);
  ax_tensor *in = test_tensor(type, data), *out[kinds];
  test_run(program, &in, out);
  const double sums[3] = {6, 2, 1};
  for (int64_t i = 0; i < 3; i++) {
    TEST_NEAR(test_get(out[0], i), sums[i], 0);
    TEST_NEAR(test_get(out[1], i), 1, 0);
    TEST_NEAR(test_get(out[2], i), i == 0, 0);
    TEST_NEAR(test_get(out[3], i), sums[i], 0);
  }
  assert_int_equal(out[0]->dtype, AX_S32);
  assert_int_equal(out[1]->dtype, AX_BOOL);
  assert_int_equal(out[2]->dtype, AX_BOOL);
  TEST_EVERY_WAY(program, &in, 0);
  test_release(&in, 1);
  test_release(out, kinds);
  ax_program_release(program);
}

static void of_numbers(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value n = ax_psum(ax_integer(1), "b,a"), x = in[0];
  assert_true(ax_is_number(n));
  assert_true(ax_number_real(n) == 6 && ax_number_real(ax_psum(ax_real(0.5), "b")) == 1.5);
  assert_true(ax_number_real(ax_psum(ax_unsigned(UINT64_MAX / 2), "a")) == (double)UINT64_MAX);
  assert_true(ax_number_real(ax_psum(ax_integer(-3), "a {1} {0}")) == -3);
  assert_true(ax_number_real(ax_pmean(ax_integer(7), "a")) == 7 && ax_number_real(ax_pmax(ax_real(2), "b")) == 2 &&
              ax_number_real(ax_pmin(ax_integer(-1), "")) == -1);
  out[0] = ax_mul(x, n);
}

static void numbers(void **state) {
  (void)state;
  ax_program *program;
  TEST_OK(trace(AX_FN(of_numbers, 1, 1), AX_F32, &program));
  assert_int_equal(program->effects, 0); /* no exchange */
  ax_program_release(program);
}

/* --- Means of what is no float --- */

typedef struct mean {
  ax_dtype of, is;
  double row[4], wanted;
} mean;
static void mean_over(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_pmean(in[0], "b");
  out[1] = ax_pmean(ax_reshape(in[0], AX_DIMS(1)), "b,0");
}
static void mean_of(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_vmap(AX_FN(mean_over, 1, 2), in, out,
          &(ax_vmap_options){.axis_name = "b", .out_axes = {AX_DIMS(AX_NOT_MAPPED, AX_NOT_MAPPED)}});
}

static void means_of_integers(void **state) {
  (void)state;
  static const mean rows[] = {{AX_S32, AX_F32, {1, 2, 4, -9}, -0.5}, {AX_U8, AX_F32, {0, 1, 2, 3}, 1.5},
                              {AX_S8, AX_F32, {-1, -1, 0, 0}, -0.5}, {AX_S64, AX_F64, {0, 1, 2, 3}, 1.5},
                              {AX_U64, AX_F64, {1, 1, 2, 1}, 1.25},  {AX_BOOL, AX_F32, {1, 1, 0, 1}, 0.75}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const ax_type type = TEST_TYPE(rows[i].of, 4);
    ax_program *program = test_trace(mean_of, NULL, &type, 1, 2);
    ax_tensor *in = test_tensor(type, rows[i].row), *out[2];
    test_run(program, &in, out);
    for (int k = 0; k < 2; k++) {
      assert_int_equal(out[k]->dtype, rows[i].is);
      TEST_NEAR(test_get(out[k], 0), rows[i].wanted, 0);
    }
    test_release(&in, 1);
    test_release(out, 2);
    ax_program_release(program);
  }
}

/* --- What is refused --- */

static void summed(const ax_value *in, ax_value *out, void *context) { out[0] = ax_psum(in[0], context); }
static void averaged(const ax_value *in, ax_value *out, void *context) { out[0] = ax_pmean(in[0], context); }
static void number_summed(const ax_value *in, ax_value *out, void *context) {
  (void)in;
  out[0] = ax_psum(ax_integer(INT64_MIN), context);
}

static void refused(void **state) {
  (void)state;
  static const struct {
    ax_function function;
    const char *axes, *message;
  } bad[] = {
      {summed, "a,3", "psum: the axis is 3, but there are 3 dimensions"},
      {summed, "-4", "psum: the axis is -4, but there are 3 dimensions"},
      {summed, "0,a,-3", "psum: dimension 0 is named twice"},
      {summed, "0 {0,1}", "psum: groups are of named axes alone: \"0 {0,1}\""},
      {summed, "0,c", "psum: axis \"c\" is not bound; bound are a (2), b (3)"},
      {summed, "0,,a", "psum: axis names \",a\""},
      {summed, "9999999999", "psum: axis names \"9999999999\""},
      {averaged, "a,7", "pmean: the axis is 7"},
      {number_summed, "a,0", "psum: axis names \"a,0\""},
      {number_summed, "a", "psum: -9223372036854775808 times 2 is beyond 64 bits"},
      {number_summed, "b {0,1} {2}", "psum: the groups of \"b {0,1} {2}\" are of several sizes"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    ax_program *program;
    TEST_FAILS(trace(AX_CLOSURE(bad[i].function, 1, 1, (void *)bad[i].axes), AX_F32, &program), AX_INVALID_ARGUMENT,
               bad[i].message);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(dimensions_beside_names), cmocka_unit_test(bools), cmocka_unit_test(numbers),
                                     cmocka_unit_test(means_of_integers), cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
