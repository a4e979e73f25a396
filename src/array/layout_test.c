/* Layouts and the parts in them, one function after the other: a layout says where each block of an array is, parts are the blocks'
   memory. */
#include <stdio.h>
#include <string.h>

#include "array/call.h"
#include "array/copying.h"
#include "array/executable.h"
#include "axle/ops.h"
#include "axle/sharding.h"
#include "support/cmocka.h"
#include "support/run.h"
#include "support/tensor.h"

static ax_runtime *runtime;
static ax_mesh mesh; /* "a=2,b=3" */

static int start(void **state) {
  (void)state;
  TEST_OK(ax_mesh_parse("a=2,b=3", &mesh));
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 1}, &runtime));
  return 0;
}

static int stop(void **state) {
  (void)state;
  ax_runtime_release(runtime);
  return 0;
}

static ax_layout *layout_of(const char *spec, const ax_type *type) {
  ax_layout *layout;
  TEST_OK(ax_layout_describe("test", runtime, &mesh, spec, type, &layout));
  return layout;
}

/* --- Layouts --- */

static void a_description_becomes_a_layout(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_S32, 6, 4);
  ax_layout *layout = layout_of("b,a", &type);
  assert_int_equal(layout->devices, 6);
  assert_int_equal(layout->blocks, 6);
  assert_int_equal(layout->block.dims[0], 2);
  assert_int_equal(layout->block.dims[1], 2);
  assert_int_equal(layout->block_bytes, 16);
  ax_layout_release(layout);
  TEST_FAILS(ax_layout_describe("put", runtime, &mesh, "a,c", &type, &layout), AX_INVALID_ARGUMENT, "unknown axis \"c\"");
  TEST_FAILS(ax_layout_describe("put", runtime, &mesh, "_,b", &type, &layout), AX_INVALID_ARGUMENT, "3");
}

/* Equal layouts have one address; a holder keeps it. */
static void equal_layouts_are_one(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_S32, 6);
  ax_layout *first = layout_of("a", &type), *second = layout_of("a", &type), *other = layout_of("b", &type);
  assert_ptr_equal(first, second);
  assert_ptr_not_equal(first, other);
  assert_ptr_equal(ax_layout_retain(first), first);
  assert_int_equal(first->references, 3);
  for (int i = 0; i < 3; i++) ax_layout_release(first);
  ax_layout_release(other);
}

/* Blocks are numbered along the axes that cut, in the mesh's order; devices along the other axes have the same block. */
static void devices_have_blocks(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_S32, 6);
  ax_layout *rows = layout_of("b", &type), *both = layout_of("a+b", &type);
  for (int64_t place = 0; place < 6; place++) {
    assert_int_equal(ax_layout_block_at(rows, place), place % 3);
    assert_int_equal(ax_layout_block_at(both, place), place);
  }
  ax_layout_release(rows);
  ax_layout_release(both);
}

static void a_block_begins_in_the_whole(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_S32, 6, 4);
  ax_layout *layout = layout_of("b,a", &type);
  int64_t offset[2];
  ax_layout_offset(layout, 5, offset); /* a=1, b=2 */
  assert_int_equal(offset[0], 4);
  assert_int_equal(offset[1], 2);
  ax_layout_release(layout);
}

static void a_device_is_found_by_its_id(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_S32, 6);
  ax_layout *layout = layout_of("b", &type);
  int64_t place;
  TEST_OK(ax_layout_place(layout, 4, &place));
  assert_int_equal(place, 4);
  TEST_FAILS(ax_layout_place(layout, 6, &place), AX_INVALID_ARGUMENT, "device 6 of a mesh of 6");
  ax_layout_release(layout);
}

/* Whole arrays are the same wherever; cut ones if the same axes cut the same dimensions. */
static void layouts_that_are_the_same(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_S32, 6, 6);
  ax_layout *rows = layout_of("a", &type), *columns = layout_of("_,a", &type), *whole = layout_of("", &type), *alone;
  TEST_OK(ax_layout_describe("test", runtime, NULL, "", &type, &alone));
  assert_true(ax_layout_same(rows, rows));
  assert_false(ax_layout_same(rows, columns));
  assert_false(ax_layout_same(rows, whole));
  assert_true(ax_layout_same(whole, alone));
  assert_true(ax_layout_same_devices(rows, columns));
  assert_false(ax_layout_same_devices(whole, alone));
  ax_layout_release(rows);
  ax_layout_release(columns);
  ax_layout_release(whole);
  ax_layout_release(alone);
}

/* --- Parts --- */

static void parts_are_allocated_together(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_S32, 6);
  ax_layout *layout = layout_of("b", &type);
  ax_parts *parts;
  TEST_OK(ax_parts_create(runtime, layout, &parts));
  assert_int_equal(parts->count, 3);
  for (uint32_t b = 0; b < 3; b++) assert_ptr_equal(parts->part[b], (unsigned char *)parts->memory + b * layout->stride);
  assert_ptr_equal(ax_parts_retain(parts), parts);
  assert_int_equal(parts->references, 2);
  ax_parts_release(parts);
  assert_int_equal(parts->references, 1);
  ax_parts_release(parts);
  ax_layout_release(layout);
}

static void one_block_is_the_memory_of_all_parts(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_S32, 6);
  ax_layout *layout = layout_of("b", &type);
  ax_parts *parts;
  TEST_OK(ax_parts_share(runtime, layout, NULL, 1, NULL, &parts));
  assert_true(parts->read_only);
  for (uint32_t b = 0; b < 3; b++) assert_ptr_equal(parts->part[b], parts->memory);
  ax_parts_release(parts);
  ax_layout_release(layout);
}

/* It stays where it is, and keeps the parts that it was one of. */
static void one_block_of_several(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_S32, 6), block = TEST_TYPE(AX_S32, 2);
  ax_layout *layout = layout_of("b", &type), *alone;
  ax_parts *parts, *one;
  TEST_OK(ax_layout_describe("test", runtime, NULL, "", &block, &alone));
  TEST_OK(ax_parts_create(runtime, layout, &parts));
  unsigned char *second = parts->part[1];
  TEST_OK(ax_parts_of_block(parts, alone, 1, &one));
  ax_parts_release(parts);
  memset(second, 7, 8); /* still there */
  assert_int_equal(one->count, 1);
  assert_ptr_equal(one->part[0], second);
  ax_parts_release(one);
  ax_layout_release(alone);
  ax_layout_release(layout);
}

static void count_release(void *context) { ++*(int *)context; }

/* The user's memory is released with its last holder; memory that is returned is not released at all. */
static void lent_parts_go_back(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_S32, 6);
  static int32_t memory[3][2];
  int released = 0;
  ax_part lent[3];
  for (int b = 0; b < 3; b++) lent[b] = (ax_part){.data = memory[b], .release = count_release, .context = &released};
  ax_layout *layout = layout_of("b", &type);
  ax_parts *parts;
  TEST_OK(ax_parts_lend(runtime, layout, lent, &parts));
  assert_ptr_equal(parts->part[2], memory[2]);
  ax_parts_release(parts);
  assert_int_equal(released, 3);
  TEST_OK(ax_parts_lend(runtime, layout, lent, &parts));
  ax_parts_return(parts);
  assert_int_equal(released, 3);
  ax_layout_release(layout);
}

/* A box across blocks, put together from them. */
static void a_box_of_several_blocks(void **state) {
  (void)state;
  int32_t left[] = {0, 1, 4, 5}, right[] = {2, 3, 6, 7}, got[4]; /* [0 1 2 3; 4 5 6 7], cut into columns */
  unsigned char *part[] = {(unsigned char *)left, (unsigned char *)right};
  const ax_type block = TEST_TYPE(AX_S32, 2, 2), box = TEST_TYPE(AX_S32, 2, 2);
  ax_mesh two;
  ax_spec spec;
  TEST_OK(ax_mesh_parse("a=2", &two));
  TEST_OK(ax_spec_parse("_,a", &two, &spec));
  ax_blocks_copy(runtime, &(ax_blocks){&block, &spec, &two, part}, &box, (const int64_t[]){0, 1}, got);
  const int32_t wanted[] = {1, 2, 5, 6};
  assert_memory_equal(got, wanted, sizeof wanted);
}

/* --- Arrays --- */

static ax_array *numbers(void) { /* 0 .. 5, cut in three */
  const int32_t data[] = {0, 1, 2, 3, 4, 5};
  const ax_type type = TEST_TYPE(AX_S32, 6);
  ax_layout *layout = layout_of("b", &type);
  ax_array *array;
  TEST_OK(ax_array_of_data(runtime, layout, data, &array));
  ax_layout_release(layout);
  return array;
}

static void an_array_of_data_is_read_in_boxes(void **state) {
  (void)state;
  const ax_type box = TEST_TYPE(AX_S32, 3);
  ax_array *array = numbers();
  int32_t got[3];
  TEST_OK(ax_array_read_box(array, &box, (const int64_t[]){1}, got, sizeof got));
  assert_true(got[0] == 1 && got[1] == 2 && got[2] == 3);
  TEST_FAILS(ax_array_read_box(array, &box, (const int64_t[]){1}, got, 8), AX_INVALID_ARGUMENT, "8");
  ax_array_release(array);
}

/* While it is open nobody takes it; once it is taken nobody opens it. */
static void an_array_is_open_or_taken(void **state) {
  (void)state;
  ax_array *array = numbers();
  TEST_OK(ax_array_open(array));
  assert_int_equal(array->users, 1);
  assert_false(ax_array_take(array));
  ax_array_close(array);
  assert_int_equal(array->users, 0);
  assert_true(ax_array_take(array));
  TEST_FAILS(ax_array_open(array), AX_INVALID_ARGUMENT, "the array s32[6] was donated to a run");
  TEST_FAILS(ax_array_refuse_donated(array), AX_INVALID_ARGUMENT, "donated");
  ax_array_end_taking(array, false); /* the run did not begin */
  TEST_OK(ax_array_open(array));
  ax_array_close(array);
  ax_array_release(array);
}

static void an_array_of_the_users_memory(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_S32, 6);
  static int32_t memory[3][2] = {{1, 2}, {3, 4}, {5, 6}};
  int released = 0;
  ax_part lent[3];
  for (int b = 0; b < 3; b++)
    lent[b] = (ax_part){.data = memory[b], .bytes = sizeof memory[b], .release = count_release, .context = &released};
  ax_layout *layout = layout_of("b", &type);
  ax_array *array;
  TEST_FAILS(ax_array_lend("lend", runtime, layout, lent, 2, &array), AX_INVALID_ARGUMENT, "lend: ");
  assert_int_equal(released, 0);
  TEST_OK(ax_array_lend("lend", runtime, layout, lent, 3, &array));
  assert_ptr_equal(array->parts->part[1], memory[1]);
  ax_array_release(array);
  assert_int_equal(released, 3);
  ax_layout_release(layout);
}

/* --- Names and messages --- */

static void names_are_copied(void **state) {
  (void)state;
  char first[] = "weights";
  const ax_name_list names = {AX_NAMES(first, NULL, "x")}, none = {0};
  const char **copy;
  TEST_OK(ax_names_copy(&names, 3, &copy));
  first[0] = '!';
  assert_string_equal(copy[0], "weights");
  assert_null(copy[1]);
  assert_string_equal(copy[2], "x");
  ax_free(copy);
  TEST_OK(ax_names_copy(&none, 3, &copy));
  assert_null(copy);
}

static AX_BODY(twice) { out[0] = ax_add(in[0], in[0]); }

static ax_executable *compiled(const ax_compile_options *options, ax_program **program) {
  const ax_type type = TEST_TYPE(AX_F32, 4);
  ax_executable *executable;
  *program = test_trace(twice, NULL, &type, 1, 1);
  TEST_OK(ax_compile(runtime, *program, options, &executable));
  return executable;
}

static void arguments_that_do_not_match(void **state) {
  (void)state;
  ax_program *program;
  ax_executable *executable = compiled(&(ax_compile_options){.names = {AX_NAMES("x")}}, &program);
  const ax_type want = TEST_TYPE(AX_F32, 4), got = TEST_TYPE(AX_F32, 5);
  ax_text text = {0};
  ax_argument_text(&text, executable, NULL, 0);
  assert_string_equal(text.data, "argument 0 (x)");
  ax_text_deinit(&text);
  ax_mismatches all = {0};
  TEST_OK(ax_mismatches_report(&all, "run", 1));
  ax_mismatch(&all, executable, 0, &want, &got, ", of old");
  TEST_FAILS(ax_mismatches_report(&all, "run", 1), AX_INVALID_ARGUMENT,
             "run: 1 of 1 arguments do not match:\n  argument 0 (x): the program takes f32[4], got f32[5], of old");
  TEST_OK(ax_call_check_counts(executable, "run", 1, 1));
  TEST_FAILS(ax_call_check_counts(executable, "run", 2, 1), AX_INVALID_ARGUMENT, "run: ");
  TEST_FAILS(ax_call_check_counts(executable, "run", 1, 0), AX_INVALID_ARGUMENT, "run: ");
  ax_executable_release(executable);
  ax_program_release(program);
}

/* --- The cache of executables --- */

static void an_executable_is_found_by_its_key(void **state) {
  (void)state;
  ax_program *program;
  const bool kept[] = {false}, donated[] = {true};
  const ax_compile_options options = {.subnormals = AX_SUBNORMALS_FLUSH, .contraction = AX_CONTRACTION_EXACT},
                           timed = {.subnormals = AX_SUBNORMALS_FLUSH, .contraction = AX_CONTRACTION_EXACT, .timeline = true};
  ax_executable *executable = compiled(&options, &program);
  const ax_compile_key key = ax_compile_key_of(program, &options, kept), other = ax_compile_key_of(program, &timed, kept),
                       given = ax_compile_key_of(program, &options, donated);
  assert_true(key.hash != other.hash && key.hash != given.hash);
  assert_ptr_equal(ax_executable_cache_find(&runtime->cache, &key), executable);
  assert_null(ax_executable_cache_find(&runtime->cache, &other));
  assert_null(ax_executable_cache_find(&runtime->cache, &given));
  assert_false(ax_executable_cache_drop(&runtime->cache, executable)); /* the reference that was found */
  assert_int_equal(runtime->cache.count, 1);
  ax_executable_release(executable);
  assert_int_equal(runtime->cache.count, 0);
  assert_null(ax_executable_cache_find(&runtime->cache, &key));
  ax_program_release(program);
}

/* --- The runtime --- */

static void keep_line(const char *line, void *context) { snprintf(context, 64, "%s", line); }

static void a_runtime_is_held_and_logs(void **state) {
  (void)state;
  char line[64] = "";
  ax_runtime *own;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 1, .log = keep_line, .log_context = line}, &own));
  ax_runtime_log(own, "%d runs", 3);
  assert_string_equal(line, "3 runs");
  ax_runtime_log(runtime, "%d runs", 4); /* that one has no log */
  assert_string_equal(line, "3 runs");
  assert_ptr_equal(ax_runtime_hold(own), own);
  assert_false(ax_runtime_let_go(own));
  assert_ptr_equal(ax_runtime_tally(own), ax_runtime_tally(own));
  assert_ptr_equal(ax_runtime_hold(own), own);
  ax_runtime_release(own); /* its user leaves; the holder is the last */
  ax_runtime_drop(own);
}

static void memory_of_a_program_as_text(void **state) {
  (void)state;
  ax_program *program;
  ax_executable *executable = compiled(&(ax_compile_options){0}, &program);
  char *text;
  TEST_OK(ax_memory_text(runtime, program, &text));
  assert_non_null(strstr(text, "bytes"));
  ax_free(text);
  TEST_OK(ax_text_after(runtime, program, "lower", NULL, &text));
  assert_non_null(strstr(text, "b0: input f32[4]"));
  ax_free(text);
  ax_executable_release(executable);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_description_becomes_a_layout),
      cmocka_unit_test(equal_layouts_are_one),
      cmocka_unit_test(devices_have_blocks),
      cmocka_unit_test(a_block_begins_in_the_whole),
      cmocka_unit_test(a_device_is_found_by_its_id),
      cmocka_unit_test(layouts_that_are_the_same),
      cmocka_unit_test(parts_are_allocated_together),
      cmocka_unit_test(one_block_is_the_memory_of_all_parts),
      cmocka_unit_test(one_block_of_several),
      cmocka_unit_test(lent_parts_go_back),
      cmocka_unit_test(a_box_of_several_blocks),
      cmocka_unit_test(an_array_of_data_is_read_in_boxes),
      cmocka_unit_test(an_array_is_open_or_taken),
      cmocka_unit_test(an_array_of_the_users_memory),
      cmocka_unit_test(names_are_copied),
      cmocka_unit_test(arguments_that_do_not_match),
      cmocka_unit_test(an_executable_is_found_by_its_key),
      cmocka_unit_test(a_runtime_is_held_and_logs),
      cmocka_unit_test(memory_of_a_program_as_text),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
