/* Whole programs compiled and run: under each policy, with several workers, compared bit by bit. */
#include "support/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/collectives.h"
#include "exec/exec.h"
#include "mesh/partition.h"
#include "support/cmocka.h"
#include "support/random.h"

static size_t tensor_bytes(const ax_tensor *tensor) {
  return (size_t)test_elems(tensor) * ax_dtype_bytes(tensor->dtype);
}

static uint32_t count_specs(const char *const *specs) {
  uint32_t count = 0;
  while (count < AX_COUNT(((test_map *)0)->in_specs) && specs[count] != NULL) count++;
  return count;
}

void test_map_body(const ax_value *in, ax_value *out, void *map) {
  const test_map *m = map;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse(m->mesh, &mesh));
  ax_shard_map(&(ax_shard_map_options){&mesh, m->in_specs, m->out_specs, m->unchecked}, m->body, m->context, in,
               count_specs(m->in_specs), out, count_specs(m->out_specs));
}

ax_program *test_trace_map(const test_map *map, const ax_type *in) {
  return test_trace(test_map_body, (void *)map, in, count_specs(map->in_specs), count_specs(map->out_specs));
}

void test_use_threads(ax_executable *executable) { executable->threaded = true; }

ax_plan *test_plan(ax_program *program) {
  ax_plan *plan;
  TEST_OK(ax_program_plan(program, false, &plan));
  return plan;
}

static void execute(ax_runtime *runtime, ax_program *program, bool donate, bool reference, ax_tensor *const *in, ax_tensor **out) {
  uint32_t in_count = ax_program_in_count(program), out_count = ax_program_out_count(program);
  ax_array **arrays = calloc(in_count + out_count + 1, sizeof arrays[0]);
  bool *donated = calloc(in_count + 1, sizeof donated[0]);
  ax_executable *executable;
  assert_true(arrays != NULL && donated != NULL);
  for (uint32_t i = 0; i < in_count; i++) donated[i] = donate;
  for (uint32_t i = 0; i < in_count; i++)
    TEST_OK(ax_device_put(runtime, NULL, "", ax_program_in_type(program, i), in[i]->data, &arrays[i]));
  TEST_OK(ax_compile(runtime, program, &(ax_compile_options){.donate = donated, .reference = reference}, &executable));
  test_use_threads(executable);
  TEST_OK(ax_run(executable, arrays, in_count, arrays + in_count, out_count));
  for (uint32_t i = 0; i < out_count; i++) {
    TEST_OK(ax_tensor_create(ax_program_out_type(program, i), &out[i]));
    TEST_OK(ax_array_read(arrays[in_count + i], out[i]->data, tensor_bytes(out[i])));
  }
  for (uint32_t i = 0; i < in_count + out_count; i++) ax_array_release(arrays[i]);
  ax_executable_release(executable);
  free(arrays), free(donated);
}

void test_execute(ax_runtime *runtime, ax_program *program, ax_tensor *const *in, ax_tensor **out) {
  execute(runtime, program, false, false, in, out);
}

void test_execute_reference(ax_runtime *runtime, ax_program *program, ax_tensor *const *in, ax_tensor **out) {
  execute(runtime, program, false, true, in, out);
}

static const ax_runtime_options ways[] = {
    {.policy = AX_POLICY_FIXED},
    {.policy = AX_POLICY_SEEDED, .seed = 1},
    {.policy = AX_POLICY_SEEDED, .seed = 2},
    {.policy = AX_POLICY_SEEDED, .seed = 3},
    {.policy = AX_POLICY_PARALLEL, .workers = 2},
    {.policy = AX_POLICY_PARALLEL, .workers = 5},
};

void test_every_way(ax_program *program, ax_tensor *const *in, double tolerance, const char *file, int line) {
  uint32_t count = ax_program_out_count(program);
  ax_tensor **reference = calloc(count + 1, sizeof reference[0]), **first = calloc(count + 1, sizeof first[0]);
  ax_tensor **again = calloc(count + 1, sizeof again[0]);
  assert_true(reference != NULL && first != NULL && again != NULL);
  test_run(program, in, reference);
  for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
    ax_runtime *runtime;
    TEST_OK(ax_runtime_create(&ways[w], &runtime));
    execute(runtime, program, w % 2 != 0, false, in, w == 0 ? first : again);
    for (uint32_t i = 0; w > 0 && i < count; i++) {
      if (memcmp(first[i]->data, again[i]->data, tensor_bytes(first[i])) == 0) continue;
      print_error("result %u differs between way 0 and way %zu\n", i, w);
      _fail(file, line);
    }
    if (w > 0) test_release(again, count);
    ax_runtime_release(runtime);
  }
  for (uint32_t i = 0; i < count; i++) test_assert_tensors_near(first[i], reference[i], tolerance, file, line);
  test_release(first, count);
  test_release(reference, count);
  free(reference), free(first), free(again);
}

static void show_program(const ax_program *program) {
  char *text;
  TEST_OK(ax_program_print(program, &text));
  printf("%s\n", text);
  ax_string_free(text);
}

void test_random_run(ax_program *program, uint64_t seed, bool show, double tolerance) {
  test_random data = {seed};
  uint32_t count = ax_program_in_count(program);
  ax_tensor **in = calloc(count + 1, sizeof in[0]);
  assert_non_null(in);
  if (show) show_program(program);
  for (uint32_t i = 0; i < count; i++) in[i] = test_random_tensor(&data, *ax_program_in_type(program, i), -1, 1);
  TEST_EVERY_WAY(program, in, tolerance);
  test_release(in, count);
  free(in);
}

void test_each_seed(void (*one)(uint64_t seed, bool show)) {
  const char *single = getenv("AXLE_RANDOM_SEED"), *many = getenv("AXLE_RANDOM_PROGRAMS");
  if (single != NULL) {
    one(strtoull(single, NULL, 10), true);
    return;
  }
  uint64_t count = many != NULL ? strtoull(many, NULL, 10) : 24;
  for (uint64_t seed = 1; seed <= count; seed++) {
    if (many != NULL) print_message("seed %llu\n", (unsigned long long)seed);
    one(seed, false);
  }
}
