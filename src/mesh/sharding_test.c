/* The index maps: every element is in exactly the blocks it should be in, and blocks put together give the array back. */
#include "mesh/sharding.h"

#include <string.h>

#include "support/cmocka.h"
#include "support/random.h"

typedef struct row {
  const char *mesh, *spec;
  int64_t dims[3], block[3], count;
} row;

static const row rows[] = {
    {"", "", {4, 6, 2}, {4, 6, 2}, 1},
    {"data=4", "data", {4, 6, 2}, {1, 6, 2}, 4},
    {"data=4", "_,_,_", {4, 6, 2}, {4, 6, 2}, 1},
    {"data=2,model=3", "data,model", {4, 6, 2}, {2, 2, 2}, 6},
    {"data=2,model=3", "model,_,data", {6, 5, 2}, {2, 5, 1}, 6},
    {"data=2,model=3,pipe=2", "_,model+data", {4, 6, 2}, {4, 1, 2}, 6},
    {"data=2,model=3,pipe=2", "pipe+data,model", {4, 6, 2}, {1, 2, 2}, 12},
    {"data=2,model=3", "data", {0, 6, 2}, {0, 6, 2}, 2},
};

static void parse(const row *row, ax_mesh *mesh, ax_spec *spec, ax_type *whole, ax_type *block) {
  TEST_OK(ax_mesh_parse(row->mesh, mesh));
  TEST_OK(ax_spec_parse(row->spec, mesh, spec));
  *whole = ax_array_type(AX_S32, AX_LIST(3, row->dims));
  TEST_OK(ax_shard_type(whole, spec, mesh, block));
}

static void test_types(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    ax_mesh mesh;
    ax_spec spec;
    ax_type whole, block, again;
    parse(&rows[i], &mesh, &spec, &whole, &block);
    assert_memory_equal(block.dims, rows[i].block, sizeof rows[i].block);
    assert_int_equal(ax_shard_count(&spec, &mesh), rows[i].count);
    TEST_OK(ax_unshard_type(&block, &spec, &mesh, &again));
    assert_true(ax_type_equal(&whole, &again));
  }
}

/* Each block from its first device, put at its offset, makes the array; every device holds one of these blocks, and the devices
   that are first come in the order of their blocks. */
static void test_blocks(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    ax_mesh mesh;
    ax_spec spec;
    ax_type whole, block;
    int64_t begins[16][AX_MAX_RANK], offset[AX_MAX_RANK] = {0}, last = -1;
    parse(&rows[i], &mesh, &spec, &whole, &block);
    test_random random = {i};
    ax_tensor *array = test_random_tensor(&random, whole, -100, 100), *made, *part;
    TEST_OK(ax_tensor_create(&whole, &made));
    TEST_OK(ax_tensor_create(&block, &part));
    for (int64_t b = 0; b < rows[i].count; b++) {
      int64_t device = ax_shard_device(&spec, &mesh, b);
      assert_true(last < device && device < ax_mesh_devices(&mesh));
      last = device;
      ax_shard_offset(&block, &spec, &mesh, device, begins[b]);
      ax_shard_read(&whole, array->data, begins[b], &block, part->data);
      ax_shard_write(&block, part->data, begins[b], &whole, made->data);
    }
    for (int64_t device = 0; device < ax_mesh_devices(&mesh); device++) {
      bool found = false;
      ax_shard_offset(&block, &spec, &mesh, device, offset);
      for (int64_t b = 0; b < rows[i].count && !found; b++)
        found = memcmp(begins[b], offset, 3 * sizeof offset[0]) == 0 && ax_shard_device(&spec, &mesh, b) <= device;
      assert_true(found);
    }
    TEST_TENSORS_NEAR(array, made, 0);
    test_release((ax_tensor *[]){array, made, part}, 3);
  }
}

static void test_scalar(void **state) {
  (void)state;
  ax_mesh mesh;
  ax_spec spec;
  ax_type type = TEST_SCALAR(AX_F64), block;
  TEST_OK(ax_mesh_parse("data=3", &mesh));
  TEST_OK(ax_spec_parse("", &mesh, &spec));
  TEST_OK(ax_shard_type(&type, &spec, &mesh, &block));
  ax_tensor *whole = test_tensor(type, (double[]){3}), *part = test_tensor(type, (double[]){0});
  ax_shard_read(&type, whole->data, NULL, &block, part->data);
  TEST_NEAR(test_get(part, 0), 3, 0);
  assert_int_equal(ax_shard_device(&spec, &mesh, 0), 0);
  test_release((ax_tensor *[]){whole, part}, 2);
}

static void test_refused(void **state) {
  (void)state;
  ax_mesh mesh;
  ax_spec spec;
  ax_type type = TEST_TYPE(AX_F32, 6, 4), out;
  TEST_OK(ax_mesh_parse("data=2,model=2", &mesh));
  TEST_OK(ax_spec_parse("data+model", &mesh, &spec));
  TEST_FAILS(ax_shard_type(&type, &spec, &mesh, &out), AX_INVALID_ARGUMENT,
             "the spec P(data+model) cuts dimension 0 in 4 parts, which do not divide f32[6,4]");
  TEST_OK(ax_spec_parse("_,_,data", &mesh, &spec));
  ax_type inside = type; /* varies over an axis of a shard_map around, which is none of the mesh's */
  inside.spread.varying = 1;
  TEST_FAILS(ax_shard_type(&inside, &spec, &mesh, &out), AX_INVALID_ARGUMENT,
             "the spec P(_, _, data) has more entries than there are dimensions in f32[6,4]");
  assert_null(strchr(ax_message(), '{'));
  TEST_FAILS(ax_unshard_type(&type, &spec, &mesh, &out), AX_INVALID_ARGUMENT, "has more entries");
  TEST_OK(ax_spec_parse("data", &mesh, &spec));
  type.dims[0] = INT64_MAX;
  TEST_FAILS(ax_unshard_type(&type, &spec, &mesh, &out), AX_INVALID_ARGUMENT, "too large an array");
}

static void test_equal(void **state) {
  (void)state;
  ax_mesh mesh;
  ax_spec a, b, c;
  TEST_OK(ax_mesh_parse("data=2,model=2", &mesh));
  TEST_OK(ax_spec_parse("data", &mesh, &a));
  TEST_OK(ax_spec_parse("data,_", &mesh, &b));
  TEST_OK(ax_spec_parse("data,model", &mesh, &c));
  assert_true(ax_spec_equal(&a, &b));
  assert_false(ax_spec_equal(&a, &c));
}

/* --- By hand --- */

static ax_mesh six;

static ax_spec spec_of(const char *text) {
  ax_spec spec;
  TEST_OK(ax_mesh_parse("data=2,model=3", &six));
  TEST_OK(ax_spec_parse(text, &six, &spec));
  return spec;
}

static void parts_are_those_of_all_axes_of_a_dimension(void **state) {
  (void)state;
  const ax_spec spec = spec_of("_,data+model");
  assert_int_equal(ax_shard_parts(&spec, &six, 0), 1);
  assert_int_equal(ax_shard_parts(&spec, &six, 1), 6);
}

static void blocks_that_do_not_divide_are_padded(void **state) {
  (void)state;
  const ax_spec spec = spec_of("model,data");
  const int64_t dims[] = {7, 4};
  const ax_type whole = ax_array_type(AX_F32, AX_LIST(2, dims));
  ax_type block;
  TEST_OK(ax_shard_padded(&whole, &spec, &six, &block));
  assert_true(block.dims[0] == 3 && block.dims[1] == 2);
  assert_false(ax_shard_divides(&whole, &spec, &six, 0));
  assert_true(ax_shard_divides(&whole, &spec, &six, 1));
  assert_true(ax_shard_divides(&whole, &spec, &six, 2)); /* the spec says nothing of it */
  assert_true(ax_shard_divides(&whole, NULL, &six, 0));
}

/* Blocks are in the order of the mesh, whatever the order of dimensions: data before model. */
static void blocks_are_numbered_in_the_order_of_the_mesh(void **state) {
  (void)state;
  const ax_spec spec = spec_of("model,data"), minor = spec_of("model+data");
  assert_int_equal(ax_shard_number(&spec, &six, (const int64_t[]){2, 1}), 5);
  assert_int_equal(ax_shard_number(&spec, &six, (const int64_t[]){1, 0}), 1);
  assert_int_equal(ax_shard_number(&minor, &six, (const int64_t[]){3}), 4); /* model 1, data 1 */
  const ax_spec only = spec_of("model");
  assert_int_equal(ax_shard_count(&only, &six), 3);
  assert_int_equal(ax_shard_device(&only, &six, 2), 2);
  const ax_spec data = spec_of("data");
  assert_int_equal(ax_shard_device(&data, &six, 1), 3);
}

static void what_two_blocks_share_is_copied(void **state) {
  (void)state;
  const ax_type from = ax_array_type(AX_S32, AX_DIMS(2, 3)), to = ax_array_type(AX_S32, AX_DIMS(2, 2));
  const int32_t source[] = {1, 2, 3, 4, 5, 6};
  int32_t target[] = {0, 0, 0, 0};
  ax_shard_copy(&from, (const int64_t[]){0, 0}, source, &to, (const int64_t[]){1, 2}, target); /* one element: [1, 2] */
  assert_memory_equal(target, ((int32_t[]){6, 0, 0, 0}), sizeof target);
  ax_shard_copy(&from, (const int64_t[]){5, 1}, source, &to, (const int64_t[]){5, 0}, target); /* their columns 1 */
  assert_memory_equal(target, ((int32_t[]){6, 1, 0, 4}), sizeof target);
  ax_shard_copy(&from, (const int64_t[]){0, 0}, source, &to, (const int64_t[]){2, 0}, target); /* nothing */
  const ax_type row = ax_array_type(AX_S32, AX_DIMS(4));
  ax_shard_copy(&row, (const int64_t[]){0}, source, &row, (const int64_t[]){9}, target); /* nor here */
  assert_memory_equal(target, ((int32_t[]){6, 1, 0, 4}), sizeof target);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_types),
      cmocka_unit_test(test_blocks),
      cmocka_unit_test(test_scalar),
      cmocka_unit_test(test_refused),
      cmocka_unit_test(test_equal),
      cmocka_unit_test(parts_are_those_of_all_axes_of_a_dimension),
      cmocka_unit_test(blocks_that_do_not_divide_are_padded),
      cmocka_unit_test(blocks_are_numbered_in_the_order_of_the_mesh),
      cmocka_unit_test(what_two_blocks_share_is_copied),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
