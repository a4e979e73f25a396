/* What compiling promises whatever the size. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "array/executable.h"
#include "ir/program.h"
#include "support/cmocka.h"
#include "support/run.h"

enum { SUMS = 8200 };

static void many_sums(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[0];
  for (int i = 0; i < SUMS; i++) out[0] = ax_add(ax_psum(out[0], "d"), in[0]);
}

/* A counter for each sum and each of 2^19 groups: their number passes 32 bits. */
static void test_too_many_counters(void **state) {
  (void)state;
  const test_map map = {.mesh = "d=2,e=524288", .in_specs = {"d+e"}, .out_specs = {"d+e"}, .body = many_sums};
  ax_type type = ax_array_type(AX_F32, AX_DIMS(0));
  ax_runtime *runtime;
  ax_executable *executable;
  assert_int_equal(ax_runtime_create(&(ax_runtime_options){.max_devices = 1 << 20}, &runtime), AX_OK);
  ax_program *program = test_trace_map(&map, &type);
  assert_int_equal(ax_compile(runtime, program, NULL, &executable), AX_OUT_OF_MEMORY);
  assert_null(executable);
  assert_non_null(strstr(ax_message(), "need more than 2^32 counters"));
  ax_program_release(program);
  ax_runtime_release(runtime);
}

static void halves(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_mul(in[0], ax_full_like(in[0], 0.5));
  out[1] = ax_psum(in[1], "d");
}

static void expect_spec(const ax_executable *executable, const ax_spec *spec, const char *wanted) {
  ax_spec parsed;
  assert_non_null(spec);
  assert_int_equal(ax_spec_parse(wanted, ax_executable_mesh(executable), &parsed), AX_OK);
  assert_true(ax_spec_equal(spec, &parsed));
}

/* Arrays put as the executable wants them are used as they are; the results say how they lie. */
static void test_layouts(void **state) {
  (void)state;
  const test_map map = {.mesh = "d=2,e=2", .in_specs = {"_,e+d", "d"}, .out_specs = {"_,e+d", ""}, .body = halves};
  const ax_type types[] = {ax_array_type(AX_F32, AX_DIMS(1, 4)), ax_array_type(AX_F32, AX_DIMS(2))};
  const float x[] = {2, 4, 6, 8}, y[] = {1, 2};
  float halved[4], sum[1];
  ax_runtime *runtime;
  ax_executable *executable;
  ax_array *in[2], *out[2], *none;
  assert_int_equal(ax_runtime_create(NULL, &runtime), AX_OK);
  ax_program *program = test_trace_map(&map, types);
  assert_int_equal(ax_compile(runtime, program, NULL, &executable), AX_OK);
  ax_program_release(program);
  assert_int_equal(ax_mesh_devices(ax_executable_mesh(executable)), 4);
  for (uint32_t i = 0; i < 2; i++) expect_spec(executable, ax_executable_in_spec(executable, i), map.in_specs[i]);
  for (uint32_t k = 0; k < 2; k++) expect_spec(executable, ax_executable_out_spec(executable, k), map.out_specs[k]);
  assert_null(ax_executable_in_spec(executable, 2));
  assert_null(ax_executable_out_spec(executable, 2));
  assert_int_equal(ax_executable_put(executable, 0, x, &in[0]), AX_OK);
  assert_int_equal(ax_executable_put(executable, 1, y, &in[1]), AX_OK);
  assert_int_equal(ax_executable_put(executable, 2, y, &none), AX_INVALID_ARGUMENT);
  assert_null(none);
  assert_true(ax_spec_equal(ax_array_spec(in[0]), ax_executable_in_spec(executable, 0)));
  assert_int_equal(ax_run(executable, in, out), AX_OK);
  assert_int_equal(ax_array_read(out[0], halved, sizeof halved), AX_OK);
  assert_int_equal(ax_array_read(out[1], sum, sizeof sum), AX_OK);
  for (int i = 0; i < 4; i++) assert_true(halved[i] == (float)(i + 1));
  assert_true(sum[0] == 3);
  for (int i = 0; i < 2; i++) ax_array_release(in[i]), ax_array_release(out[i]);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
}

/* --- Donations --- */

enum { PARAMETERS = 100 };

static void one_more_each(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  for (int i = 0; i < PARAMETERS; i++) out[PARAMETERS - 1 - i] = ax_add(in[i], ax_full_like(in[i], 1));
}

static void product(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_matmul(in[0], in[1]);
}

static void row_renewed(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value zero = ax_full(AX_S32, AX_DIMS(), 0), row = ax_slice(in[1], AX_DIMS(0, 0), AX_DIMS(1, 4), NULL);
  out[0] = ax_dynamic_update_slice(in[0], row, AX_VALUES(zero, zero));
}

/* The arguments in whose memory results live: where[k] of result k; AX_NONE. where NULL: each in one of its own. */
static void expect_donated(ax_function function, uint32_t in_count, uint32_t out_count, const bool *donate, const uint32_t *where) {
  ax_type types[PARAMETERS];
  for (uint32_t i = 0; i < in_count; i++) types[i] = TEST_TYPE(AX_F32, 4, 4);
  ax_runtime *runtime;
  ax_executable *executable;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  ax_program *program = test_trace(function, NULL, types, in_count, out_count);
  TEST_OK(ax_compile(runtime, program,
                     &(ax_compile_options){.donate = test_args(donate, ax_program_in_count(program)), .keep_unused = true},
                     &executable));
  bool taken[PARAMETERS] = {false};
  for (uint32_t k = 0; k < out_count; k++) {
    uint32_t donated = executable->compiled.results[k].donated;
    if (where != NULL) assert_int_equal(donated, where[k]);
    assert_true(where != NULL || (donated < in_count && !taken[donated]));
    if (donated != AX_NONE) taken[donated] = true;
  }
  ax_executable_release(executable);
  ax_program_release(program);
  ax_runtime_release(runtime);
}

static void test_donations(void **state) {
  (void)state;
  bool all[PARAMETERS];
  for (uint32_t i = 0; i < PARAMETERS; i++) all[i] = true;
  expect_donated(one_more_each, PARAMETERS, PARAMETERS, all, NULL);
  expect_donated(product, 3, 1, all, (const uint32_t[]){2}); /* which nobody reads */
  expect_donated(product, 2, 1, all, (const uint32_t[]){AX_NONE});
  expect_donated(row_renewed, 2, 1, all, (const uint32_t[]){0});
  expect_donated(row_renewed, 2, 1, (const bool[]){false, true}, (const uint32_t[]){AX_NONE});
}

/* --- Memory --- */

static void layers(const ax_value *in, ax_value *out, void *context) {
  const int *count = context;
  ax_value x = in[0];
  for (int i = 0; i < *count; i++) x = ax_tanh(ax_add(x, ax_psum(ax_matmul(ax_matmul(x, in[1]), in[2]), "m")));
  out[0] = x;
}

/* The bytes of an activation's part of each. */
static int64_t temporaries_of(const test_map *map, const ax_type *types) {
  ax_runtime *runtime;
  ax_executable *executable;
  int64_t bytes = 0;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  ax_program *program = test_trace_map(map, types);
  TEST_OK(ax_compile(runtime, program, NULL, &executable));
  for (uint32_t s = 0; s < executable->compiled.space_count; s++)
    if (executable->compiled.spaces[s].kind == AX_SPACE_KEPT || executable->compiled.spaces[s].kind == AX_SPACE_SCRATCH)
      bytes += executable->compiled.spaces[s].bytes;
  ax_executable_release(executable);
  ax_program_release(program);
  ax_runtime_release(runtime);
  return bytes;
}

static int64_t of_layers(int count) {
  const test_map map = {.mesh = "m=2", .in_specs = {"", "_,m", "m"}, .out_specs = {""}, .body = layers, .context = &count};
  const ax_type types[] = {TEST_TYPE(AX_F32, 8, 16), TEST_TYPE(AX_F32, 16, 64), TEST_TYPE(AX_F32, 64, 16)};
  return temporaries_of(&map, types);
}

/* What all devices write together is reused: a deep program needs what a few of its layers do. */
static void test_layers(void **state) {
  (void)state;
  assert_int_equal(of_layers(64), of_layers(8));
  assert_true(of_layers(64) < 3 * of_layers(1));
}

static void loss(const ax_value *in, ax_value *out, void *context) {
  const int *count = context;
  ax_value x = in[0];
  for (int i = 0; i < *count; i++) x = ax_psum(ax_matmul(ax_gelu(ax_matmul(x, in[1])), in[2]), "m");
  out[0] = ax_reduce_sum(ax_mul(x, x), AX_ALL_DIMS, false);
}

static void gradient(const ax_value *in, ax_value *out, void *context) {
  ax_grad(AX_CLOSURE(loss, 3, 1, context), AX_FIRST(3), in, out);
}

static int64_t of_training(int count) {
  const test_map map = {
      .mesh = "m=2", .in_specs = {"", "_,m", "m"}, .out_specs = {"", "_,m", "m"}, .body = gradient, .context = &count};
  const ax_type types[] = {TEST_TYPE(AX_F32, 256, 64), TEST_TYPE(AX_F32, 64, 512), TEST_TYPE(AX_F32, 256 * 2, 64)};
  return temporaries_of(&map, types);
}

/* Of each layer its input [256, 64] is held, and one value of five between the products [256, 256]. */
static void test_training(void **state) {
  (void)state;
  int64_t layer = (of_training(24) - of_training(16)) / 8;
  assert_in_range(layer, 4 * 256 * (64 + 256), 4 * 256 * (64 + 256) * 11 / 10);
}

/* --- Many arguments --- */

enum { most_arguments = 2400 };

static void sums_of_all(const ax_value *in, ax_value *out, void *context) {
  for (uint32_t i = 0; i < *(const uint32_t *)context; i++) out[i] = ax_add(ax_psum(in[i], "d"), in[i]);
}

static void map_of_all(const ax_value *in, ax_value *out, void *context) {
  uint32_t count = *(const uint32_t *)context;
  static const char *specs[most_arguments];
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=4", &mesh));
  for (uint32_t i = 0; i < count; i++) specs[i] = "d";
  test_shard_map(&mesh, specs, specs, false, AX_CLOSURE(sums_of_all, count, count, &count), in, out);
}

/* Bytes that an executable with so many arguments and results keeps. */
static size_t bytes_kept(uint32_t count) {
  static ax_type types[most_arguments];
  ax_runtime *runtime;
  ax_executable *executable;
  for (uint32_t i = 0; i < count; i++) types[i] = TEST_TYPE(AX_F32, 8);
  ax_program *program = test_trace(map_of_all, &count, types, count, count);
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 1}, &runtime));
  struct mallinfo2 before = mallinfo2();
  TEST_OK(ax_compile(runtime, program, NULL, &executable));
  struct mallinfo2 after = mallinfo2();
  ax_executable_release(executable);
  ax_program_release(program);
  ax_runtime_release(runtime);
  return after.uordblks + after.hblkhd - before.uordblks - before.hblkhd;
}

/* What is kept grows with the arguments. (A sanitizer's malloc tells nothing.) */
static void many_arguments(void **state) {
  (void)state;
  size_t few = bytes_kept(most_arguments / 8), all = bytes_kept(most_arguments);
  if (all > few * 8 * 2) fail_msg("%d arguments take %zu bytes, eight times as many %zu", most_arguments / 8, few, all);
}

enum { table_elems = 1000 };

static void add_table(const ax_value *in, ax_value *out, void *context) {
  const ax_type type = TEST_TYPE(AX_F32, table_elems);
  out[0] = ax_mul(ax_add(in[0], ax_constant(&type, context)), ax_constant(&type, (const float *)context + 1));
}

static void add_tables(const ax_value *in, ax_value *out, void *context) {
  out[0] = in[0];
  for (int i = 0; i < 10; i++) ax_closed_call(AX_CLOSURE(add_table, 1, 1, context), out, out);
}

/* Ten calls of a body have its constants once. */
static void constants_of_calls(void **state) {
  (void)state;
  float table[table_elems + 1];
  const ax_type type = TEST_TYPE(AX_F32, table_elems);
  ax_runtime *runtime;
  ax_executable *executable;
  for (int i = 0; i <= table_elems; i++) table[i] = (float)i / table_elems;
  ax_program *program = test_trace(add_tables, table, &type, 1, 1);
  TEST_OK(ax_runtime_create(NULL, &runtime));
  TEST_OK(ax_compile(runtime, program, NULL, &executable));
  assert_in_range(executable->compiled.spaces[executable->compiled.const_space].bytes, 2 * sizeof(float) * table_elems,
                  3 * sizeof(float) * table_elems - 1);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
  test_random_run(program, 1, false, 1e-5);
  ax_program_release(program);
}

enum { large_elems = 1 << 16 };

static void add_large(const ax_value *in, ax_value *out, void *context) {
  const ax_type type = TEST_TYPE(AX_F32, large_elems);
  const ax_value large = ax_constant(&type, (const float *)context);
  out[0] = ax_mul(ax_add(in[0], large), large);
}

static void add_large_twice(const ax_value *in, ax_value *out, void *context) {
  ax_closed_call(AX_CLOSURE(add_large, 1, 1, context), in, out);
  ax_closed_call(AX_CLOSURE(add_large, 1, 1, context), out, out);
}

/* A large constant stays where the program has it, once however often its body is called, and outlives the program there. */
static void large_constants_stay(void **state) {
  (void)state;
  float *table = malloc(large_elems * sizeof *table);
  const ax_type type = TEST_TYPE(AX_F32, large_elems);
  ax_runtime *runtime;
  ax_executable *executable;
  assert_non_null(table);
  for (int i = 0; i < large_elems; i++) table[i] = (float)i / large_elems;
  ax_program *program = test_trace(add_large_twice, table, &type, 1, 1);
  TEST_OK(ax_runtime_create(NULL, &runtime));
  TEST_OK(ax_compile(runtime, program, NULL, &executable));
  assert_int_equal(executable->compiled.lent_count, 1);
  assert_int_equal(executable->compiled.spaces[executable->compiled.const_space].bytes, 0);
  test_random_run(program, 1, false, 1e-5);
  ax_program_release(program);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
  free(table);
}

static void columns(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_reduce_sum(ax_matmul(ax_tanh(ax_matmul(in[0], in[1])), in[2]), AX_DIMS(1), true); /* too small to hold the product before */
}

/* Who waits for what one device makes for all, with nothing in scratch memory, gives its scratch memory back. */
static void test_parking(void **state) {
  (void)state;
  const test_map map = {.mesh = "m=4", .in_specs = {"", "", "_,m"}, .out_specs = {"_,m"}, .body = columns};
  const ax_type types[] = {TEST_TYPE(AX_F32, 8, 8), TEST_TYPE(AX_F32, 8, 8), TEST_TYPE(AX_F32, 8, 16)};
  ax_runtime *runtime;
  ax_executable *executable;
  uint32_t waits = 0;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  ax_program *program = test_trace_map(&map, types);
  TEST_OK(ax_compile(runtime, program, NULL, &executable));
  assert_true(executable->compiled.spaces[executable->compiled.scratch_space].bytes > 0);
  for (uint32_t i = 0; i < executable->compiled.codes[0].instr_count; i++) {
    const ax_instr *instr = &executable->compiled.codes[0].instrs[i];
    if (instr->kind != AX_INSTR_WAIT) continue;
    assert_true(instr->sync.parks);
    waits++;
  }
  assert_int_equal(waits, 1);
  ax_executable_release(executable);
  ax_program_release(program);
  ax_runtime_release(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_too_many_counters), cmocka_unit_test(many_arguments), cmocka_unit_test(constants_of_calls), cmocka_unit_test(large_constants_stay),
      cmocka_unit_test(test_layouts),           cmocka_unit_test(test_donations), cmocka_unit_test(test_layers),
      cmocka_unit_test(test_training),          cmocka_unit_test(test_parking),
  };
  return cmocka_run_group_tests_name("executable", tests, NULL, NULL);
}
