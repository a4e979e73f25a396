/* Files of jax.export: what they say of @main's arguments and of the platform; what is refused; and any bytes. */
#include "hlo/exported.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/files.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/random.h"

typedef struct file {
  char *bytes;
  size_t count;
} file;

static file load(const char *name) {
  char path[256];
  file f = {0};
  snprintf(path, sizeof path, "tests/bytecode/%s", name);
  FILE *stream = fopen(path, "rb");
  if (stream == NULL) fail_msg("there is no %s", path);
  fseek(stream, 0, SEEK_END);
  f.count = (size_t)ftell(stream);
  f.bytes = malloc(f.count);
  rewind(stream);
  assert_int_equal(fread(f.bytes, 1, f.count, stream), f.count);
  fclose(stream);
  return f;
}

static void test_says(void **state) {
  (void)state;
  static const char *const names[] = {"cpu.export", "three.export"};
  static const char *const types[] = {"tensor<3x5xf32>", "tensor<7xbf16>", "tensor<5x4xf32>"};
  for (size_t i = 0; i < AX_COUNT(names); i++) {
    file f = load(names[i]);
    ax_arena arena = {0};
    ax_hlo_slice module;
    ax_hlo_calling calling;
    assert_int_equal(ax_hlo_format_of(f.bytes, f.count), AX_HLO_EXPORTED);
    assert_int_equal(ax_hlo_read_exported(f.bytes, f.count, "m", &arena, &module, &calling), AX_OK);
    assert_int_equal(calling.in_count, 3);
    for (uint32_t k = 0; k < 3; k++) assert_true(ax_hlo_slice_is(calling.in[k], types[k]));
    assert_int_equal(calling.kept_count, 2);
    assert_true(calling.kept[0] == 0 && calling.kept[1] == 2);
    assert_true(calling.has_platform == (i == 1) && calling.platform == (int64_t)i);
    assert_int_equal(ax_hlo_format_of(module.start, module.length), AX_HLO_BYTECODE);
    assert_false(ax_hlo_is_exported(module.start, module.length));
    ax_arena_deinit(&arena);
    free(f.bytes);
  }
}

/* @main takes all arguments, and the platform is known in the functions that it calls: no other platform's branch is chosen. */
static void test_module(void **state) {
  (void)state;
  file f = load("three.export");
  ax_hlo_module module;
  uint32_t cases = 0;
  assert_int_equal(ax_hlo_read(f.bytes, f.count, "m", &module), AX_OK);
  for (uint32_t i = 0; i < module.body.operation_count; i++) {
    const ax_hlo_block *block = &module.body.operations[i]->regions[0].blocks[0];
    const ax_hlo_attribute *name = ax_hlo_find(module.body.operations[i], "sym_name");
    if (ax_hlo_slice_is(name->text, "main")) assert_int_equal(block->argument_count, 3);
    for (uint32_t k = 0; k < block->operation_count; k++) {
      if (!ax_hlo_slice_is(block->operations[k]->name, "stablehlo.case")) continue;
      assert_int_not_equal(ax_hlo_chosen(&module, block->operations[k]), AX_NONE);
      cases++;
    }
  }
  assert_true(cases >= 2);
  ax_hlo_module_deinit(&module);
  free(f.bytes);
}

static void test_refused(void **state) {
  (void)state;
  file f = load("tpu.export");
  ax_hlo_module module;
  assert_int_equal(ax_hlo_read(f.bytes, f.count, "m", &module), AX_ABSENT);
  assert_string_equal(ax_message(), "m: exported for other platforms than cpu, as tpu");
  assert_false(ax_hlo_is_exported(f.bytes, f.count / 2));
  assert_false(ax_hlo_is_exported("module {}", 9));
  free(f.bytes);
}

static ax_status read_copy(const char *bytes, size_t count) {
  ax_arena arena = {0};
  ax_hlo_slice part;
  ax_hlo_calling calling;
  ax_hlo_module module;
  char *copy = malloc(count > 0 ? count : 1);
  if (count > 0) memcpy(copy, bytes, count);
  (void)ax_hlo_is_exported(copy, count);
  ax_status status = ax_hlo_read_exported(copy, count, "m", &arena, &part, &calling);
  if (status == AX_OK) status = ax_hlo_read(copy, count, "m", &module);
  if (status == AX_OK) ax_hlo_module_deinit(&module);
  ax_arena_deinit(&arena);
  free(copy);
  return status;
}

static void test_any_bytes(void **state) {
  (void)state;
  test_random random = {.state = 5};
  file f = load("three.export");
  char *changed = malloc(f.count);
  assert_int_not_equal(read_copy(f.bytes, f.count / 2), AX_OK);
  for (size_t count = 0; count < f.count; count += 1 + count / 64) (void)!read_copy(f.bytes, count); /* what is not asked for may be missing */
  for (int round = 0; round < 6000; round++) {
    memcpy(changed, f.bytes, f.count);
    for (int64_t change = test_random_below(&random, 3); change >= 0; change--)
      changed[test_random_below(&random, (int64_t)f.count)] = (char)test_random_below(&random, 256);
    (void)!read_copy(changed, f.count);
  }
  free(changed);
  free(f.bytes);
}

static ax_status read_whole(void *context) {
  const file *f = context;
  ax_hlo_module module;
  const ax_status status = ax_hlo_read(f->bytes, f->count, "m", &module);
  if (status == AX_OK) ax_hlo_module_deinit(&module);
  return status;
}

static void test_out_of_memory(void **state) {
  (void)state;
  file f = load("three.export");
  ax_arena_chunk_bytes = 512;
  assert_true(test_each_allocation(read_whole, &f) > 50);
  free(f.bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_says), cmocka_unit_test(test_module), cmocka_unit_test(test_refused),
                                     cmocka_unit_test(test_any_bytes), cmocka_unit_test(test_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
