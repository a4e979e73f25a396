/* Whole programs compiled and run: under each policy, with several workers, compared bit by bit. */
#include "support/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/collectives.h"
#include "exec/exec.h"
#include "mesh/partition.h"
#include "mesh/sharding.h"
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

/* How a program is run: with all arguments donated; with arguments whose parts each lie in memory of their own, at no address that is
   more than an element's; several times at once, none waiting for another. */
typedef struct manner {
  ax_runtime_options options;
  bool donate, lent, reference;
  int at_once; /* 0: as 1 */
} manner;

/* Arguments as the executable wants them, lent part by part. */
static ax_array *lend(ax_runtime *runtime, const ax_layout *layout, const void *data) {
  size_t item = ax_dtype_bytes(layout->type.dtype);
  ax_part *parts = calloc(layout->blocks, sizeof parts[0]);
  ax_array *array;
  ax_text spec = {0};
  assert_non_null(parts);
  for (uint32_t b = 0; b < layout->blocks; b++) {
    int64_t start[AX_MAX_RANK];
    char *memory = malloc(layout->block_bytes + 64 + 3 * item);
    assert_non_null(memory);
    parts[b] = (ax_part){.data = memory + item * (1 + b % 3), .bytes = layout->block_bytes, .release = free, .context = memory};
    ax_layout_offset(layout, b, start);
    ax_shard_read(&layout->type, data, start, &layout->block, parts[b].data);
  }
  for (uint32_t d = 0; d < layout->spec.rank; d++) { /* "_,a+b" */
    if (layout->spec.count[d] == 0) ax_text_add(&spec, "_");
    for (uint32_t i = 0; i < layout->spec.count[d]; i++)
      ax_text_add(&spec, "%s%s", i > 0 ? "+" : "", layout->mesh.axis[layout->spec.axis[d][i]].name);
    if (d + 1 < layout->spec.rank) ax_text_add(&spec, ",");
  }
  TEST_OK(ax_array_from_parts(runtime, &layout->mesh, spec.data != NULL ? spec.data : "", &layout->type, parts, layout->blocks, &array));
  ax_text_deinit(&spec);
  free(parts);
  return array;
}

static void start(ax_executable *executable, ax_program *program, const manner *how, ax_tensor *const *in, ax_array **arrays) {
  uint32_t in_count = ax_program_in_count(program), out_count = ax_program_out_count(program);
  for (uint32_t i = 0; i < in_count; i++) {
    if (how->lent) arrays[i] = lend(executable->runtime, executable->wanted[i], in[i]->data);
    else TEST_OK(ax_device_put(executable->runtime, NULL, "", ax_program_in_type(program, i), in[i]->data, &arrays[i]));
  }
  if (how->at_once > 1) TEST_OK(ax_run_start(executable, arrays, in_count, arrays + in_count, out_count));
  else TEST_OK(ax_run(executable, arrays, in_count, arrays + in_count, out_count));
}

/* Several at once must give the same; the first's results are handed out. */
static void read_results(ax_program *program, ax_array *const *arrays, ax_tensor **out, bool first) {
  uint32_t in_count = ax_program_in_count(program), out_count = ax_program_out_count(program);
  for (uint32_t i = 0; i < out_count; i++) {
    ax_tensor *result;
    TEST_OK(ax_tensor_create(ax_program_out_type(program, i), &result));
    TEST_OK(ax_array_read(arrays[in_count + i], result->data, tensor_bytes(result)));
    if (first) {
      out[i] = result;
      continue;
    }
    assert_memory_equal(result->data, out[i]->data, tensor_bytes(result));
    ax_tensor_release(result);
  }
}

static void execute(ax_runtime *runtime, ax_program *program, const manner *how, ax_tensor *const *in, ax_tensor **out) {
  uint32_t in_count = ax_program_in_count(program), count = in_count + ax_program_out_count(program);
  int runs = how->at_once > 1 ? how->at_once : 1;
  ax_array **arrays = calloc((size_t)runs * count + 1, sizeof arrays[0]);
  bool *donated = calloc(in_count + 1, sizeof donated[0]);
  ax_executable *executable;
  assert_true(arrays != NULL && donated != NULL);
  for (uint32_t i = 0; i < in_count; i++) donated[i] = how->donate;
  TEST_OK(ax_compile(runtime, program, &(ax_compile_options){.donate = donated, .reference = how->reference}, &executable));
  test_use_threads(executable);
  for (int run = 0; run < runs; run++) start(executable, program, how, in, arrays + (size_t)run * count);
  for (int run = 0; run < runs; run++) read_results(program, arrays + (size_t)run * count, out, run == 0);
  for (size_t i = 0; i < (size_t)runs * count; i++) ax_array_release(arrays[i]);
  ax_executable_release(executable);
  free(arrays), free(donated);
}

void test_execute(ax_runtime *runtime, ax_program *program, ax_tensor *const *in, ax_tensor **out) {
  execute(runtime, program, &(manner){0}, in, out);
}

void test_execute_reference(ax_runtime *runtime, ax_program *program, ax_tensor *const *in, ax_tensor **out) {
  execute(runtime, program, &(manner){.reference = true}, in, out);
}

/* The plan verifier after each pass, whatever the build; with and without donations. */
static void verify_passes(ax_program *program) {
  bool *donate = calloc(ax_program_in_count(program) + 1, sizeof donate[0]);
  assert_non_null(donate);
  for (int given = 0; given < 2; given++) {
    ax_plan *plan = test_plan(program);
    for (uint32_t i = 0; i < ax_program_in_count(program); i++) donate[i] = true;
    if (given) plan->donate = donate;
    TEST_OK(ax_plan_verify(plan));
    for (uint32_t i = 0; i < ax_plan_pass_count; i++) {
      TEST_OK(ax_plan_passes[i].run(plan));
      ax_status status = ax_plan_verify(plan);
      if (status != AX_OK) fail_msg("after %s: %s", ax_plan_passes[i].name, ax_message());
    }
    ax_plan_destroy(plan);
  }
  free(donate);
}

static const manner ways[] = {
    {{.policy = AX_POLICY_FIXED}, .donate = false},
    {{.policy = AX_POLICY_SEEDED, .seed = 1}, .donate = true},
    {{.policy = AX_POLICY_SEEDED, .seed = 2}, .lent = true},
    {{.policy = AX_POLICY_SEEDED, .seed = 3}, .donate = true, .lent = true},
    {{.policy = AX_POLICY_PARALLEL, .workers = 2}, .at_once = 2},
    {{.policy = AX_POLICY_PARALLEL, .workers = 5}, .donate = true, .lent = true, .at_once = 2},
};

void test_every_way(ax_program *program, ax_tensor *const *in, double tolerance, const char *file, int line) {
  uint32_t count = ax_program_out_count(program);
  ax_tensor **reference = calloc(count + 1, sizeof reference[0]), **first = calloc(count + 1, sizeof first[0]);
  ax_tensor **again = calloc(count + 1, sizeof again[0]);
  assert_true(reference != NULL && first != NULL && again != NULL);
  test_run(program, in, reference);
  verify_passes(program);
  for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
    ax_runtime *runtime;
    TEST_OK(ax_runtime_create(&ways[w].options, &runtime));
    execute(runtime, program, &ways[w], in, w == 0 ? first : again);
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
