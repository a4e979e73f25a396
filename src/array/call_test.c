/* What a call does not do: arguments that nothing depends on, results that are arguments, results that are always the same. */
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "axle/transform.h"
#include "array/executable.h"
#include "support/cmocka.h"
#include "support/run.h"

enum { elems = 8 };

static const ax_type type = {.dtype = AX_F32, .rank = 1, .dims = {elems}};

typedef struct setting {
  ax_runtime *runtime;
  ax_executable *e;
  ax_array *in[8], *out[8];
  uint32_t in_count, out_count;
} setting;

static ax_array *put_filled(ax_runtime *runtime, const ax_mesh *mesh, const char *spec, float first) {
  float data[elems];
  ax_array *array;
  for (int i = 0; i < elems; i++) data[i] = first + (float)i;
  TEST_OK(ax_device_put_data(runtime, mesh, spec, &type, data, &array));
  return array;
}

/* Arguments are 10 .., 20 .., .. */
static setting set_up(ax_function function, uint32_t in_count, uint32_t out_count, const ax_compile_options *options) {
  setting s = {.in_count = in_count, .out_count = out_count};
  ax_type types[8];
  for (uint32_t i = 0; i < 8; i++) types[i] = type;
  TEST_OK(ax_runtime_create(NULL, &s.runtime));
  TEST_OK(ax_jit(s.runtime, AX_FN(function, in_count, out_count), types, options, &s.e));
  const ax_mesh *mesh = options != NULL ? options->mesh : NULL;
  for (uint32_t i = 0; i < in_count; i++)
    s.in[i] =
        mesh != NULL ? put_filled(s.runtime, mesh, "d", 10 * (float)(i + 1)) : put_filled(s.runtime, NULL, "", 10 * (float)(i + 1));
  return s;
}

static void run(setting *s) { TEST_OK(ax_run(s->e, AX_LIST(s->in_count, s->in), AX_LIST(s->out_count, s->out))); }

static void drop_results(setting *s) {
  for (uint32_t k = 0; k < s->out_count; k++) {
    ax_array_release(s->out[k]);
    s->out[k] = NULL;
  }
}

static void tear_down(setting *s) {
  drop_results(s);
  for (uint32_t i = 0; i < s->in_count; i++) ax_array_release(s->in[i]);
  ax_executable_release(s->e);
  ax_runtime_release(s->runtime);
}

static void expect(const ax_array *array, float first) {
  float data[elems];
  TEST_OK(ax_array_read(array, data, sizeof data));
  for (int i = 0; i < elems; i++) TEST_NEAR(data[i], first + (float)i, 0);
}

static void expect_gone(const ax_array *array) {
  float data[elems];
  assert_true(ax_array_is_ready(array));
  TEST_FAILS(ax_array_wait(array), AX_INVALID_ARGUMENT, "donated to a run");
  TEST_FAILS(ax_array_read(array, data, sizeof data), AX_INVALID_ARGUMENT, "donated");
}

/* --- Arguments that nothing depends on --- */

static void second_half(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_mul(in[0], ax_real(3)); /* nobody uses it */
  out[0] = ax_add(in[1], ax_real(1));
}

static void test_unused(void **state) {
  (void)state;
  setting s = set_up(second_half, 2, 1, &(ax_compile_options){.donate = AX_ALL_ARGS});
  ax_memory memory;
  assert_false(ax_executable_is_kept(s.e, 0));
  assert_true(ax_executable_is_kept(s.e, 1));
  assert_false(ax_executable_is_kept(s.e, 2));
  assert_int_equal(ax_executable_donated(s.e, 0), -1);
  assert_int_equal(ax_executable_donated(s.e, 1), 0);
  TEST_OK(ax_executable_memory(s.e, &memory));
  assert_int_equal(memory.device.arguments, 64);
  run(&s);
  expect(s.out[0], 21);
  expect(s.in[0], 10); /* not taken */
  expect_gone(s.in[1]);
  tear_down(&s);
}

static void test_kept(void **state) {
  (void)state;
  setting s = set_up(second_half, 2, 1, &(ax_compile_options){.donate = AX_FIRST(1), .keep_unused = true});
  ax_memory memory;
  assert_true(ax_executable_is_kept(s.e, 0));
  TEST_OK(ax_executable_memory(s.e, &memory));
  assert_int_equal(memory.device.arguments, 128);
  assert_int_equal(ax_executable_donated(s.e, 0), 0); /* the result lives where nobody reads */
  run(&s);
  expect(s.out[0], 21);
  expect_gone(s.in[0]);
  tear_down(&s);
}

static void second(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[1];
}

/* Also where nothing is left to run. */
static void test_kept_by_nothing(void **state) {
  (void)state;
  setting s = set_up(second, 2, 1, &(ax_compile_options){.donate = AX_ARGS(0), .keep_unused = true});
  TEST_FAILS(ax_run(s.e, AX_ARRAYS(s.in[1], s.in[1]), s.out), AX_INVALID_ARGUMENT,
             "argument 0 is donated, but the same array is argument 1 too");
  run(&s);
  assert_ptr_equal(s.out[0], s.in[1]);
  expect(s.out[0], 20);
  expect_gone(s.in[0]);
  assert_int_equal(ax_runtime_counters(s.runtime).calls_without_run, 1);
  tear_down(&s);
}

/* An argument that is not looked at may be gone, or still to be made by a run that fails; it must be of its type all the same. */
static void test_unused_unfit(void **state) {
  (void)state;
  setting s = set_up(second_half, 2, 1, NULL), t = set_up(second_half, 2, 1, &(ax_compile_options){.donate = AX_ARGS(1)});
  run(&t);
  float few[2] = {0};
  ax_array *gone = put_filled(s.runtime, NULL, "", 0), *other;
  ax_executable *taking;
  TEST_OK(
      ax_jit(s.runtime, AX_FN(second_half, 2, 1), AX_TYPES(type, type), &(ax_compile_options){.donate = AX_ARGS(1)}, &taking));
  TEST_OK(ax_run(taking, AX_ARRAYS(s.in[0], gone), s.out));
  drop_results(&s);
  TEST_OK(ax_run(s.e, AX_ARRAYS(gone, s.in[1]), s.out));
  expect(s.out[0], 21);
  drop_results(&s);
  TEST_OK(ax_device_put_data(s.runtime, NULL, "", (&(ax_type){.dtype = AX_F32, .rank = 1, .dims = {2}}), few, &other));
  TEST_FAILS(ax_run(s.e, AX_ARRAYS(other, s.in[1]), s.out), AX_INVALID_ARGUMENT,
             "argument 0: the program takes f32[8], got f32[2]");
  TEST_FAILS(ax_run(s.e, AX_ARRAYS(NULL, s.in[1]), s.out), AX_INVALID_ARGUMENT,
             "argument 0: the program takes f32[8], got nothing");
  TEST_FAILS(ax_run(s.e, AX_ARRAYS(t.in[0], s.in[1]), s.out), AX_INVALID_ARGUMENT, "of another runtime");
  ax_array_release(other);
  ax_array_release(gone);
  ax_executable_release(taking);
  tear_down(&s);
  tear_down(&t);
}

/* What bodies do not need: a loop's constant and carry, an operand of a call, of a branch and of a shard_map. */
static void step(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[0], in[2]);
  out[1] = ax_mul(in[1], in[3]);
  out[2] = in[2];
  out[3] = in[3];
}
static void first_of_two(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_neg(in[0]);
  out[1] = ax_mul(in[1], ax_real(2));
}
static void sum_of_first(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_psum(in[0], "d");
  out[1] = ax_mul(in[1], ax_real(2));
}
static void bodies(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value carried[4], called[2], mapped[2];
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=4", &mesh));
  ax_scan(AX_FN(step, 4, 4), 4, 3, false, in, carried);
  ax_closed_call(AX_FN(first_of_two, 2, 2), AX_VALUES(carried[0], in[4]), called);
  ax_shard_map(&mesh, "d; d -> ; d", AX_FN(sum_of_first, 2, 2), AX_VALUES(called[0], in[5]), mapped);
  out[0] = mapped[0];
}

static void test_unused_in_bodies(void **state) {
  (void)state;
  setting s = set_up(bodies, 6, 1, NULL);
  const bool wanted[] = {true, false, true, false, false, false};
  for (uint32_t i = 0; i < 6; i++) assert_int_equal(ax_executable_is_kept(s.e, i), wanted[i]);
  run(&s);
  float sums[2];
  TEST_OK(ax_array_read(s.out[0], sums, sizeof sums));
  /* carry: x + 3 z = 10 + i + 3 (30 + i) = 100 + 4 i; negated, summed over i = 0, 2, 4, 6 and 1, 3, 5, 7 */
  TEST_NEAR(sums[0], -(400 + 4 * 12), 0);
  TEST_NEAR(sums[1], -(400 + 4 * 16), 0);
  tear_down(&s);
}

/* --- Results that are arguments --- */

static void exchanged(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[1];
  out[1] = in[0];
  out[2] = in[1];
  out[3] = ax_add(in[0], ax_real(1));
}

static void test_passed(void **state) {
  (void)state;
  setting s = set_up(exchanged, 3, 4, NULL);
  assert_int_equal(ax_executable_passed(s.e, 0), 1);
  assert_int_equal(ax_executable_passed(s.e, 1), 0);
  assert_int_equal(ax_executable_passed(s.e, 3), -1);
  assert_int_equal(ax_executable_passed(s.e, 4), -1);
  assert_false(ax_executable_is_kept(s.e, 1));
  run(&s);
  assert_ptr_equal(s.out[0], s.in[1]);
  assert_ptr_equal(s.out[1], s.in[0]);
  assert_ptr_equal(s.out[2], s.in[1]);
  expect(s.out[3], 11);
  const ax_counters counters = ax_runtime_counters(s.runtime);
  assert_int_equal(counters.runs, 1);
  assert_int_equal(counters.calls_without_run, 0);
  tear_down(&s);
}

/* Donated, it is gone, and what it held are the results'. */
static void test_passed_donated(void **state) {
  (void)state;
  setting s = set_up(exchanged, 3, 4, &(ax_compile_options){.donate = AX_ALL_ARGS});
  const void *before[2], *after[3];
  size_t bytes;
  assert_int_equal(ax_executable_donated(s.e, 0), 1);
  assert_int_equal(ax_executable_donated(s.e, 1), 0);
  assert_int_equal(ax_executable_donated(s.e, 2), -1);
  for (int i = 0; i < 2; i++) TEST_OK(ax_array_part(s.in[i], 0, &before[i], &bytes, NULL));
  run(&s);
  for (int k = 0; k < 3; k++) TEST_OK(ax_array_part(s.out[k], 0, &after[k], &bytes, NULL));
  assert_ptr_equal(after[0], before[1]);
  assert_ptr_equal(after[1], before[0]);
  assert_ptr_equal(after[2], before[1]);
  expect_gone(s.in[0]);
  expect_gone(s.in[1]);
  expect(s.in[2], 30);
  expect(s.out[0], 20);
  expect(s.out[1], 10);
  expect(s.out[2], 20);
  expect(s.out[3], 11);
  /* Two results have one memory: to donate one of them takes nothing from the other. */
  ax_array *again[4], *results[] = {s.out[0], s.out[1], s.out[3]};
  TEST_OK(ax_run(s.e, results, again));
  expect(s.out[2], 20);
  expect(again[3], 21);
  for (int k = 0; k < 4; k++) ax_array_release(again[k]);
  TEST_FAILS(ax_run(s.e, AX_ARRAYS(s.out[2], s.out[2], s.in[2]), again), AX_INVALID_ARGUMENT,
             "the same array is argument");
  tear_down(&s);
}

static void second_and_first(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[1];
  out[1] = in[0];
}

static void second_and_sum(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[1];
  out[1] = ax_add(in[0], ax_real(1));
}

static void sum_and_first(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[1], ax_real(1));
  out[1] = in[0];
}

/* An argument that is only passed on must not be another that is donated. The array stays the caller's. */
static void test_passed_and_donated(void **state) {
  (void)state;
  static const ax_function functions[] = {second_and_first, second_and_sum, sum_and_first};
  for (int k = 0; k < 3; k++)
    for (int given = 0; given < 3; given++) {
      setting s = set_up(functions[k], 2, 2,
                         &(ax_compile_options){.donate = given == 0   ? AX_ARGS(0)
                                                         : given == 1 ? AX_ARGS(1)
                                                                      : AX_FIRST(2)});
      ax_array *twice[] = {s.in[0], s.in[0]};
      TEST_FAILS(ax_run(s.e, twice, s.out), AX_INVALID_ARGUMENT, "is donated, but the same array is argument");
      TEST_FAILS(ax_run_start(s.e, twice, s.out), AX_INVALID_ARGUMENT, "is donated, but the same array is argument");
      assert_null(s.out[0]);
      expect(s.in[0], 10);
      run(&s);
      tear_down(&s);
    }
}

static void all_arguments(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[1];
  out[1] = ax_mul(in[0], ax_real(1)); /* the same to the bit */
}

static void test_nothing_to_run(void **state) {
  (void)state;
  setting s = set_up(all_arguments, 2, 2, NULL);
  for (int i = 0; i < 3; i++) {
    run(&s);
    assert_ptr_equal(s.out[0], s.in[1]);
    assert_ptr_equal(s.out[1], s.in[0]);
    drop_results(&s);
  }
  const ax_counters counters = ax_runtime_counters(s.runtime);
  assert_int_equal(counters.runs, 0);
  assert_int_equal(counters.calls_without_run, 3);
  tear_down(&s);
}

/* Laid out alike by shardings, it is the argument's array where that lies so; else it is laid out anew, and still nothing runs. */
static void test_passed_by_shardings(void **state) {
  (void)state;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=4", &mesh));
  setting s = set_up(all_arguments, 2, 2, &(ax_compile_options){.mesh = &mesh, .shardings = "d; d -> d; d"});
  run(&s);
  assert_ptr_equal(s.out[0], s.in[1]);
  assert_ptr_equal(s.out[1], s.in[0]);
  drop_results(&s);
  ax_array *whole = put_filled(s.runtime, &mesh, "", 50);
  TEST_OK(ax_run(s.e, AX_ARRAYS(s.in[0], whole), s.out));
  assert_ptr_not_equal(s.out[0], whole);
  assert_int_equal(ax_array_part_count(s.out[0]), 4);
  expect(s.out[0], 50);
  assert_int_equal(ax_runtime_counters(s.runtime).runs, 0);
  ax_array_release(whole);
  tear_down(&s);
}

/* Laid out otherwise it is what devices make. */
static void test_laid_out_anew(void **state) {
  (void)state;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=4", &mesh));
  setting s = set_up(all_arguments, 2, 2, &(ax_compile_options){.mesh = &mesh, .shardings = "d; d -> ; d"});
  assert_int_equal(ax_executable_passed(s.e, 0), -1);
  assert_int_equal(ax_executable_passed(s.e, 1), 0);
  run(&s);
  assert_int_equal(ax_array_part_count(s.out[0]), 1);
  expect(s.out[0], 20);
  tear_down(&s);
}

static void same_blocks(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[0], ax_pmean(in[1], "d"));
  out[1] = in[1];
}
static void mapped(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=4", &mesh));
  ax_shard_map(&mesh, "d; d -> d; d", AX_FN(same_blocks, 2, 2), in, out);
}

static void test_passed_through_shard_map(void **state) {
  (void)state;
  setting s = set_up(mapped, 2, 2, &(ax_compile_options){.donate = AX_ARGS(1)});
  assert_true(ax_executable_is_kept(s.e, 1));
  assert_int_equal(ax_executable_passed(s.e, 1), 1);
  run(&s);
  expect(s.out[1], 20);
  expect_gone(s.in[1]);
  tear_down(&s);
}

/* --- Runs that are only started --- */

static void slow(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value big = ax_broadcast_to(ax_reshape(in[0], AX_DIMS(elems, 1)), AX_DIMS(elems, 1 << 16));
  out[0] = ax_add(in[0], ax_mul(ax_reduce_sum(ax_sin(big), AX_DIMS(1), false), ax_real(0)));
}

static void test_passed_before_it_is_there(void **state) {
  (void)state;
  setting s = set_up(exchanged, 3, 4, &(ax_compile_options){.donate = AX_FIRST(1)});
  ax_executable *before;
  ax_array *made[2];
  TEST_OK(ax_jit(s.runtime, AX_FN(slow, 1, 1), &type, NULL, &before));
  for (int round = 0; round < 20; round++) {
    for (int i = 0; i < 2; i++) TEST_OK(ax_run_start(before, &s.in[i], &made[i]));
    TEST_OK(ax_run_start(s.e, AX_ARRAYS(made[0], made[1], s.in[2]), s.out));
    assert_ptr_equal(s.out[0], made[1]);
    for (int i = 0; i < 2; i++) ax_array_release(made[i]);
    expect(s.out[1], 10);
    expect(s.out[2], 20);
    expect(s.out[3], 11);
    drop_results(&s);
  }
  ax_executable_release(before);
  tear_down(&s);
}

/* --- Results that are always the same --- */

static void numbers(const ax_value *in, ax_value *out, void *context) {
  (void)in, (void)context;
  const int64_t length = elems;
  out[0] = ax_iota(AX_F32, AX_LIST(1, &length), 0);
  out[1] = ax_add(ax_iota(AX_F32, AX_LIST(1, &length), 0), ax_real(7));
}

static void test_constants(void **state) {
  (void)state;
  setting s = set_up(numbers, 0, 2, NULL);
  ax_executable *taking;
  ax_array *more;
  TEST_OK(
      ax_jit(s.runtime, AX_FN(second_half, 2, 1), AX_TYPES(type, type), &(ax_compile_options){.donate = AX_ARGS(1)}, &taking));
  for (int i = 0; i < 3; i++) {
    run(&s);
    expect(s.out[0], 0);
    expect(s.out[1], 7);
    TEST_OK(ax_run(taking, s.out, &more)); /* writes where the result lies, but in a copy */
    expect(more, 8);
    ax_array_release(more);
    drop_results(&s);
  }
  const ax_counters counters = ax_runtime_counters(s.runtime);
  assert_int_equal(counters.runs, 1 + 3);
  assert_int_equal(counters.arguments_copied, 3);
  assert_int_equal(counters.calls_without_run, 2);
  ax_executable_release(taking);
  tear_down(&s);
}

/* --- Host arrays --- */

static void test_host(void **state) {
  (void)state;
  setting s = set_up(exchanged, 3, 4, &(ax_compile_options){.donate = AX_ALL_ARGS});
  float x[elems] = {1, 2}, y[elems] = {3, 4};
  const ax_host_array in[] = {ax_host_view(AX_F32, AX_DIMS(elems), x), ax_host_view(AX_F32, AX_DIMS(elems), y),
                              ax_host_view(AX_F32, AX_DIMS(elems), x)};
  ax_host_array out[4];
  TEST_OK(ax_run_host(s.e, in, out));
  TEST_NEAR(ax_host_at(&out[0], 1), 4, 0);
  TEST_NEAR(ax_host_at(&out[1], 1), 2, 0);
  TEST_NEAR(ax_host_at(&out[2], 0), 3, 0);
  TEST_NEAR(ax_host_at(&out[3], 0), 2, 0);
  for (int k = 0; k < 4; k++) ax_host_array_release(&out[k]);
  tear_down(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_unused),
      cmocka_unit_test(test_kept),
      cmocka_unit_test(test_kept_by_nothing),
      cmocka_unit_test(test_unused_unfit),
      cmocka_unit_test(test_unused_in_bodies),
      cmocka_unit_test(test_passed),
      cmocka_unit_test(test_passed_donated), cmocka_unit_test(test_passed_and_donated),
      cmocka_unit_test(test_nothing_to_run),
      cmocka_unit_test(test_passed_by_shardings),
      cmocka_unit_test(test_laid_out_anew),
      cmocka_unit_test(test_passed_through_shard_map),
      cmocka_unit_test(test_passed_before_it_is_there),
      cmocka_unit_test(test_constants),
      cmocka_unit_test(test_host),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
