/* Results some of whose blocks are the same: these are stored once, if that saves much memory, and no run writes into them. */
#include <stdlib.h>
#include <string.h>

#include "array/array.h"
#include "axle/collectives.h"
#include "axle/ops.h"
#include "support/cmocka.h"
#include "support/run.h"

enum { elems = 16 << 10, few = 64 }; /* of a block */

static void gather(const ax_value *in, ax_value *out, void *axes) { out[0] = ax_all_gather(in[0], axes, 0, true); }

/* Overwrites the first element of each block. */
static void overwrite(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_dynamic_update_slice(in[0], ax_full(AX_F32, AX_DIMS(1), -7), AX_VALUES(ax_full(AX_S32, AX_DIMS(), 0)));
}

static ax_executable *compile(ax_runtime *runtime, const test_map *map, int64_t count, bool donate) {
  const ax_type type = TEST_TYPE(AX_F32, count);
  ax_program *program = test_trace_map(map, &type);
  const ax_compile_options some = {.donate = AX_ALL_ARGS}, none = {0};
  ax_executable *executable;
  TEST_OK(ax_compile(runtime, program, donate ? &some : &none, &executable));
  ax_program_release(program);
  return executable;
}

/* Of 0, 1, 2 .. */
static ax_array *run_counted(ax_executable *executable, int64_t count) {
  float *values = malloc((size_t)count * sizeof values[0]);
  ax_array *in, *out;
  for (int64_t i = 0; i < count; i++) values[i] = (float)i;
  TEST_OK((ax_executable_put)(executable, 0, AX_F32, values, (size_t)count * sizeof values[0], &in));
  TEST_OK(ax_run(executable, AX_LIST(1, &in), AX_LIST(1, &out)));
  ax_array_release(in);
  free(values);
  return out;
}

/* Block b of the array begins with `first` and goes on with what `from` counts from. */
static void expect_block(ax_array *array, uint32_t b, int64_t count, float first, float from) {
  const float *block = (const float *)test_parts(array)->part[b];
  assert_float_equal(block[0], first, 0);
  for (int64_t i = 1; i < count; i++) assert_float_equal(block[i], from + (float)i, 0);
}

static ax_runtime *new_runtime(void) {
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 2}, &runtime));
  return runtime;
}

/* --- What is stored once --- */

static void all_blocks(void **state) {
  (void)state;
  ax_runtime *runtime = new_runtime();
  ax_executable *executable =
      compile(runtime, &(test_map){"d=4", {"d"}, {"d"}, .unchecked = true, .body = gather, .context = "d"}, elems, false);
  ax_array *out = run_counted(executable, elems);
  for (uint32_t b = 0; b < 4; b++) {
    assert_ptr_equal(test_parts(out)->part[b], test_parts(out)->part[0]);
    expect_block(out, b, elems, 0, 0);
  }
  assert_int_equal(test_parts(out)->bytes, elems * sizeof(float));
  ax_array_release(out);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
}

static void the_blocks_of_a_group(void **state) {
  (void)state;
  ax_runtime *runtime = new_runtime();
  ax_executable *executable =
      compile(runtime, &(test_map){"a=2,b=3,c=2", {"a+b+c"}, {"a+b+c"}, .unchecked = true, .body = gather, .context = "b"},
              12 * elems, false);
  ax_array *out = run_counted(executable, 12 * elems);
  const ax_parts *parts = test_parts(out);
  for (uint32_t b = 0; b < 12; b++) { /* (a, b, c) */
    for (uint32_t other = 0; other < 12; other++)
      assert_int_equal(parts->part[b] == parts->part[other], b / 6 == other / 6 && b % 2 == other % 2);
    const float first = (float)((b / 6 * 6 + b % 2) * elems);
    expect_block(out, b, elems, first, first);
  }
  ax_array_release(out);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
}

static void but_not_small_ones(void **state) {
  (void)state;
  ax_runtime *runtime = new_runtime();
  ax_executable *executable =
      compile(runtime, &(test_map){"d=4", {"d"}, {"d"}, .unchecked = true, .body = gather, .context = "d"}, few, false);
  ax_array *out = run_counted(executable, few);
  for (uint32_t b = 0; b < 4; b++) {
    assert_int_equal(test_parts(out)->part[b] == test_parts(out)->part[0], b == 0);
    expect_block(out, b, few, 0, 0);
  }
  ax_array_release(out);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
}

/* --- Who writes into them --- */

/* A run to which such an array is donated writes into a copy, in which each block has its own memory. */
static void a_run_writes_into_a_copy(void **state) {
  (void)state;
  ax_runtime *runtime = new_runtime();
  ax_executable *gathers = compile(runtime, &(test_map){"d=4", {"d"}, {"d"}, .unchecked = true, .body = gather, .context = "d"},
                                   elems, false),
                *overwrites = compile(runtime, &(test_map){"d=4", {"d"}, {"d"}, .body = overwrite}, 4 * elems, true);
  ax_array *same = run_counted(gathers, elems), *out;
  TEST_OK(ax_run(overwrites, AX_LIST(1, &same), AX_LIST(1, &out)));
  for (uint32_t b = 0; b < 4; b++) {
    assert_int_equal(test_parts(out)->part[b] == test_parts(out)->part[0], b == 0);
    expect_block(out, b, elems, -7, 0);
  }
  ax_array_release(same);
  ax_array_release(out);
  ax_executable_release(gathers);
  ax_executable_release(overwrites);
  ax_runtime_release(runtime);
}

/* A donated argument that all devices share is overwritten once, and is the memory of all blocks of the result. */
static void the_memory_of_an_argument(void **state) {
  (void)state;
  ax_runtime *runtime = new_runtime();
  ax_executable *executable = compile(runtime, &(test_map){"d=4", {""}, {"d"}, .unchecked = true, .body = overwrite}, elems, true);
  ax_array *out = run_counted(executable, elems);
  for (uint32_t b = 0; b < 4; b++) {
    assert_ptr_equal(test_parts(out)->part[b], test_parts(out)->part[0]);
    expect_block(out, b, elems, -7, 0);
  }
  ax_array_release(out);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
}

static void in_every_way(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F32, 6 * elems);
  static const struct { const char *in, *out; } specs[] = {{"a+b", "a+b"}, {"b+a", "b+a"}, {"a+b", "b"}};
  for (size_t i = 0; i < AX_COUNT(specs); i++) {
    ax_program *program = test_trace_map(
        &(test_map){"a=2,b=3", {specs[i].in}, {specs[i].out}, .unchecked = true, .body = gather, .context = "b"}, &type);
    test_random_run(program, i + 1, false, 0);
    ax_program_release(program);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_blocks),
      cmocka_unit_test(the_blocks_of_a_group),
      cmocka_unit_test(but_not_small_ones),
      cmocka_unit_test(a_run_writes_into_a_copy),
      cmocka_unit_test(the_memory_of_an_argument),
      cmocka_unit_test(in_every_way),
  };
  return cmocka_run_group_tests_name("same_blocks", tests, NULL, NULL);
}
