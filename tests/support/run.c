/* Programs to run: bodies on meshes, programs at random, and how many of those. */
#include "support/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "axle/collectives.h"
#include "array/executable.h"
#include "partition/partition.h"
#include "support/cmocka.h"
#include "support/random.h"

static uint32_t count_specs(const char *const *specs) {
  uint32_t count = 0;
  while (count < AX_COUNT(((test_map *)0)->in_specs) && specs[count] != NULL) count++;
  return count;
}

static void add_specs(ax_text *text, const char *const *specs, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) ax_text_add(text, "%s%s", i > 0 ? "; " : "", specs[i]);
}

void test_shard_map(const ax_mesh *mesh, const char *const *in_specs, const char *const *out_specs, bool unchecked, ax_fn body,
                    const ax_value *in, ax_value *out) {
  ax_text text = {0};
  add_specs(&text, in_specs, body.in_count);
  ax_text_add(&text, " -> ");
  add_specs(&text, out_specs, body.out_count);
  if (text.failed) ax_fail(AX_OUT_OF_MEMORY);
  else if (unchecked) ax_shard_map_unchecked(mesh, text.data, body, in, out);
  else ax_shard_map(mesh, text.data, body, in, out);
  ax_text_deinit(&text);
}

void test_map_body(const ax_value *in, ax_value *out, void *map) {
  const test_map *m = map;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse(m->mesh, &mesh));
  test_shard_map(&mesh, m->in_specs, m->out_specs, m->unchecked,
                 AX_CLOSURE(m->body, count_specs(m->in_specs), count_specs(m->out_specs), m->context), in, out);
}

ax_program *test_trace_map(const test_map *map, const ax_type *in) {
  return test_trace(test_map_body, (void *)map, in, count_specs(map->in_specs), count_specs(map->out_specs));
}

const ax_compiled *test_compiled(const ax_executable *executable) { return &executable->compiled; }
ax_runner *test_runner(ax_executable *executable) { return &executable->runner; }
ax_parts *test_parts(const ax_array *array) { return array->parts; }

void test_use_vectors(ax_runtime *runtime, uint32_t bytes) {
  ax_jit_destroy(runtime->assembler.jit);
  runtime->assembler.jit = NULL;
  TEST_OK(ax_jit_create(&(ax_jit_options){.most_vector_bytes = bytes}, &runtime->assembler.jit));
}

void test_use_threads_as_planned(ax_executable *executable) {
  executable->compiled.threaded = true;
  executable->compiled.late = executable->compiled.devices == 1;
}

void test_use_threads(ax_executable *executable) {
  const ax_code *code = &executable->compiled.codes[0];
  test_use_threads_as_planned(executable);
  for (uint32_t i = 0; i < code->instr_count; i++)
    if (code->instrs[i].kind == AX_INSTR_CORES) ((ax_cores *)(uintptr_t)code->instrs[i].cores->cores)->one_thread = false;
}

ax_status test_make_plan(const ax_program *program, ax_plan **out) {
  ax_program *partitioned, *ungrouped;
  *out = NULL;
  AX_TRY(ax_program_partition(program, &partitioned));
  ax_status status = ax_program_ungroup(partitioned, &ungrouped);
  ax_program_release(partitioned);
  if (status != AX_OK) return status;
  const ax_partitioned p = ax_partitioned_of(ungrouped);
  status = ax_partitioned_plan(&p, NULL, out);
  ax_program_release(ungrouped);
  return status;
}

ax_plan *test_plan(const ax_program *program) {
  ax_plan *plan;
  TEST_OK(test_make_plan(program, &plan));
  return plan;
}

void test_show_program(const ax_program *program) {
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
  if (show) test_show_program(program);
  for (uint32_t i = 0; i < count; i++) in[i] = test_random_tensor(&data, *ax_program_in_type(program, i), -1, 1);
  test_every_way(program, in, tolerance, seed, __FILE__, __LINE__);
  test_release(in, count);
  free(in);
}

/* --- Seeds --- */

static uint64_t number_in(const char *name, uint64_t otherwise) {
  const char *text = getenv(name);
  return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void test_each_seed(uint64_t count, void (*one)(uint64_t seed, bool show)) {
  const char *single = getenv("AXLE_RANDOM_SEED");
  const double seconds = (double)number_in("AXLE_RANDOM_SECONDS", 0), begin = seconds_now();
  const bool many = seconds > 0 || getenv("AXLE_RANDOM_PROGRAMS") != NULL;
  uint64_t first = number_in("AXLE_RANDOM_FROM", seconds > 0 ? (uint64_t)time(NULL) * 1000 : 1), done = 0;
  if (single != NULL) {
    one(strtoull(single, NULL, 10), true);
    return;
  }
  if (many) count = seconds > 0 ? UINT64_MAX : number_in("AXLE_RANDOM_PROGRAMS", count);
  else if (AX_HOSTILE) count = (count + 2) / 3; /* sanitizers take five times as long; without them all are run */
  for (; done < count && (seconds == 0 || seconds_now() - begin < seconds); done++) {
    if (many) print_message("seed %llu\n", (unsigned long long)(first + done));
    one(first + done, false);
  }
  if (!many) return;
  print_message("%llu programs from seed %llu in %.0f s\n", (unsigned long long)done, (unsigned long long)first,
                seconds_now() - begin);
  test_tell_ways();
}
