/* Arrays and shardings: every one to every other, what is shared and what a donation does to it, arrays made of devices' parts and
   taken apart, slices against the definition, devices' ids, odd shapes, many devices, no memory. */
#include "axle/sharding.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "array/executable.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/random.h"
#include "support/tensor.h"

static ax_runtime *runtime_of(uint32_t workers) {
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = workers}, &runtime));
  return runtime;
}

static ax_sharding *named(const char *mesh_text, const char *spec, uint32_t count, const int64_t *devices) {
  ax_mesh mesh;
  ax_sharding *made;
  TEST_OK(ax_mesh_parse(mesh_text, &mesh));
  TEST_OK(ax_sharding_named(&mesh, spec, &(ax_sharding_options){.devices = {count, devices}}, &made));
  return made;
}

static ax_sharding *tiled(const char *text, uint32_t count) {
  ax_sharding *made;
  TEST_OK(ax_sharding_tiled(text, &(ax_sharding_options){.device_count = count}, &made));
  return made;
}

static ax_array *put(ax_runtime *runtime, const ax_sharding *sharding, const ax_type *type, const void *data) {
  const ax_host_array host = ax_host_view(type->dtype, AX_LIST(type->rank, type->dims), data);
  ax_array *array;
  TEST_OK(ax_device_put_as(runtime, sharding, &host, &array));
  return array;
}

static void check_elems(const ax_array *array, const void *data, size_t bytes) {
  void *got = malloc(bytes + 1);
  memset(got, 0xee, bytes);
  TEST_OK(ax_array_read(array, got, bytes));
  assert_memory_equal(got, data, bytes);
  free(got);
}

static const void *part_at(const ax_array *array, uint32_t index) {
  const void *data;
  size_t bytes;
  TEST_OK(ax_array_part(array, index, &data, &bytes, NULL));
  return data;
}

/* --- From every one to every other --- */

enum { kinds = 9, elems = 12 * 6 * 2 };

static void make_kinds(ax_sharding **made) {
  static const int64_t order[] = {5, 4, 3, 0, 1, 2};
  made[0] = named("", "", 0, NULL);
  TEST_OK(ax_sharding_single(3, &made[1]));
  made[2] = named("a=2,b=3", "b,a", 0, NULL);
  made[3] = named("a=2,b=3", "b", 6, order);
  made[4] = tiled("{replicated}", 4);
  made[5] = tiled("{devices=[2,3,1]<=[3,2]T(1,0)}", 0);
  made[6] = tiled("{devices=[1,3,1,2]5,3,4,0,2,1 last_tile_dim_replicate}", 0);
  made[7] = named("x=4,y=3", "x,y", 0, NULL);
  made[8] = named("x=12", "x", 0, NULL);
}

static void every_kind(void **state) {
  (void)state;
  ax_runtime *runtime = runtime_of(2);
  ax_sharding *kind[kinds];
  const ax_type type = TEST_TYPE(AX_S32, 12, 6, 2);
  int32_t data[elems];
  for (int i = 0; i < elems; i++) data[i] = i * 7;
  make_kinds(kind);
  for (int a = 0; a < kinds; a++)
    for (int b = 0; b < kinds; b++) {
      ax_array *array = put(runtime, kind[a], &type, data), *moved, *copied;
      TEST_OK(ax_array_reshard(array, kind[b], &moved));
      TEST_OK(ax_array_copy_to(array, kind[b], &copied));
      assert_true(part_at(copied, 0) != part_at(array, 0));
      assert_true(ax_array_is_laid_as(array, kind[a]) && ax_array_is_laid_as(moved, kind[b]) && ax_array_is_laid_as(copied, kind[b]));
      assert_int_equal(ax_array_is_laid_as(moved, kind[a]), ax_sharding_equal(kind[a], kind[b]));
      if (a == b) assert_true(part_at(moved, 0) == part_at(array, 0));
      ax_array_release(array); /* what the other has of it stays */
      check_elems(moved, data, sizeof data);
      check_elems(copied, data, sizeof data);
      ax_array_release(moved);
      ax_array_release(copied);
    }
  for (int a = 0; a < kinds; a++) ax_sharding_release(kind[a]);
  ax_runtime_release(runtime);
}

static void ids_are_those_of_the_sharding(void **state) {
  (void)state;
  static const int64_t order[] = {5, 4, 3, 0, 1, 2};
  ax_runtime *runtime = runtime_of(1);
  ax_sharding *sharding = named("a=2,b=3", "b", 6, order), *own, *plain = named("b=3", "b", 0, NULL);
  const ax_type type = TEST_TYPE(AX_F32, 6);
  const float data[] = {0, 1, 2, 3, 4, 5};
  ax_array *array = put(runtime, sharding, &type, data), *moved;
  for (int64_t p = 0; p < 6; p++) {
    ax_type block;
    int64_t start;
    TEST_OK(ax_array_shard(array, order[p], &block, &start));
    assert_int_equal(start, p % 3 * 2);
  }
  const void *at;
  size_t bytes;
  int64_t device;
  TEST_OK(ax_array_part(array, 1, &at, &bytes, &device));
  assert_int_equal(device, 4);
  char *picture;
  TEST_OK(ax_array_picture(array, &picture));
  assert_non_null(strstr(picture, "|      5 0       |      4 1       |      3 2       |"));
  ax_string_free(picture);
  TEST_OK(ax_array_sharding(array, &own));
  assert_true(ax_sharding_equal(own, sharding));
  ax_sharding_release(own);
  TEST_OK(ax_array_reshard(array, plain, &moved)); /* blocks lie in place, whatever they are called */
  TEST_OK(ax_array_sharding(moved, &own));
  assert_true(ax_sharding_equal(own, plain) && !ax_array_is_laid_as(array, plain));
  ax_type block;
  int64_t start;
  TEST_FAILS(ax_array_shard(array, 6, &block, &start), AX_INVALID_ARGUMENT, "device 6 is none of the array's 6");
  ax_sharding_release(own);
  ax_array_release(moved);
  ax_array_release(array);
  ax_sharding_release(sharding);
  ax_sharding_release(plain);
  ax_runtime_release(runtime);
}

/* --- What is shared, and donated --- */

static void add_one(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[0], ax_real(1));
}

static void on_rows(const ax_value *in, ax_value *out, void *context) {
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=4", &mesh));
  ax_shard_map(&mesh, "d -> d", AX_CLOSURE(add_one, 1, 1, context), in, out);
}

static ax_executable *giving(ax_runtime *runtime) {
  const ax_type type = TEST_TYPE(AX_F32, 8, 3);
  const bool donate = true;
  ax_executable *executable;
  TEST_OK(ax_jit(runtime, AX_FN(on_rows, 1, 1), &type, &(ax_compile_options){.donate = test_args(&donate, 1)}, &executable));
  return executable;
}

/* An array and one that shares with it, made by `share`: whichever is donated, the other keeps its elements; and what nobody shares
   is written in place. */
static void check_donations(ax_runtime *runtime, ax_status (*share)(const ax_array *array, ax_array **out)) {
  const ax_type type = TEST_TYPE(AX_F32, 8, 3);
  float data[24], more[24];
  ax_executable *executable = giving(runtime);
  ax_sharding *rows = named("d=4", "d", 0, NULL);
  for (int i = 0; i < 24; i++) more[i] = (data[i] = (float)i) + 1;
  for (int which = 0; which < 2; which++) {
    ax_array *both[2], *result, *again;
    both[0] = put(runtime, rows, &type, data);
    TEST_OK(share(both[0], &both[1]));
    TEST_OK(ax_run(executable, &both[which], &result));
    check_elems(result, more, sizeof more);
    check_elems(both[1 - which], data, sizeof data);
    ax_array_release(both[which]);
    const void *at = part_at(both[1 - which], 0);
    TEST_OK(ax_run(executable, &both[1 - which], &again)); /* the only one now */
    check_elems(again, more, sizeof more);
    assert_true(part_at(again, 0) == at);
    ax_array_release(both[1 - which]);
    ax_array_release(result);
    ax_array_release(again);
  }
  ax_sharding_release(rows);
  ax_executable_release(executable);
}

static ax_status share_all(const ax_array *array, ax_array **out) {
  ax_sharding *same = named("x=2,y=2", "x+y", 0, NULL);
  ax_status status = ax_array_reshard(array, same, out);
  ax_sharding_release(same);
  return status;
}

static ax_status share_as_it_is(const ax_array *array, ax_array **out) {
  ax_sharding *same = named("d=4", "d", 0, NULL);
  ax_status status = ax_array_reshard(array, same, out);
  ax_sharding_release(same);
  return status;
}

static void donations_leave_others_alone(void **state) {
  (void)state;
  ax_runtime *runtime = runtime_of(2);
  check_donations(runtime, share_all);
  check_donations(runtime, share_as_it_is);
  ax_runtime_release(runtime);
}

static void pending_arrays(void **state) {
  (void)state;
  ax_runtime *runtime = runtime_of(3);
  ax_executable *executable = giving(runtime);
  ax_sharding *rows = named("d=4", "d", 0, NULL), *whole = named("d=4", "", 0, NULL);
  const ax_type type = TEST_TYPE(AX_F32, 8, 3);
  float data[24] = {0};
  ax_array *array = put(runtime, rows, &type, data), *moved;
  for (int step = 1; step <= 20; step++) {
    ax_array *next;
    TEST_OK(ax_run_start(executable, &array, &next));
    ax_array_release(array);
    TEST_OK(ax_array_reshard(next, whole, &moved));
    for (int i = 0; i < 24; i++) data[i] = (float)step;
    check_elems(moved, data, sizeof data);
    ax_array_release(moved);
    array = next;
  }
  ax_array_release(array);
  ax_sharding_release(rows);
  ax_sharding_release(whole);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
}

typedef struct sharer {
  ax_array *array;
  ax_executable *executable;
  ax_sharding *sharding;
  const float *data, *more;
} sharer;

static void *share_and_give(void *context) {
  const sharer *s = context;
  for (int i = 0; i < 50; i++) {
    ax_array *mine, *result;
    TEST_OK(ax_array_reshard(s->array, s->sharding, &mine));
    TEST_OK(ax_run(s->executable, &mine, &result));
    check_elems(result, s->more, 96);
    check_elems(s->array, s->data, 96);
    ax_array_release(mine);
    ax_array_release(result);
  }
  return NULL;
}

static void threads_share(void **state) {
  (void)state;
  ax_runtime *runtime = runtime_of(2);
  ax_sharding *rows = named("d=4", "d", 0, NULL);
  const ax_type type = TEST_TYPE(AX_F32, 8, 3);
  float data[24], more[24];
  for (int i = 0; i < 24; i++) more[i] = (data[i] = (float)i) + 1;
  sharer s = {put(runtime, rows, &type, data), giving(runtime), rows, data, more};
  pthread_t threads[3];
  for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&threads[i], NULL, share_and_give, &s), 0);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  ax_array_release(s.array);
  ax_executable_release(s.executable);
  ax_sharding_release(rows);
  ax_runtime_release(runtime);
}

/* --- Together and apart --- */

static void note_release(void *context) { ++*(int *)context; }

static void of_device_parts(void **state) {
  (void)state;
  static const int64_t order[] = {2, 0, 3, 1};
  ax_runtime *runtime = runtime_of(1);
  ax_sharding *sharding = named("x=2,y=2", "y", 4, order);
  const ax_type type = TEST_TYPE(AX_F32, 4);
  float memory[4][2] = {{1, 2}, {3, 4}, {1, 2}, {3, 4}};
  int released[4] = {0};
  ax_part parts[4];
  ax_array *array;
  for (int p = 0; p < 4; p++) parts[p] = (ax_part){.data = memory[p], .bytes = 8, .release = note_release, .context = &released[p]};
  TEST_FAILS(ax_array_from_device_parts(runtime, sharding, &type, AX_LIST(3, parts), &array), AX_INVALID_ARGUMENT,
             "3 for 4 devices");
  parts[1].bytes = 4;
  TEST_FAILS(ax_array_from_device_parts(runtime, sharding, &type, AX_LIST(4, parts), &array), AX_INVALID_ARGUMENT,
             "array_from_device_parts: part 1 has 4 bytes");
  parts[1].bytes = 8;
  assert_true(released[0] + released[1] + released[2] + released[3] == 0);
  TEST_OK(ax_array_from_device_parts(runtime, sharding, &type, AX_LIST(4, parts), &array));
  assert_true(released[0] == 0 && released[1] == 0 && released[2] == 1 && released[3] == 1);
  check_elems(array, (float[]){1, 2, 3, 4}, 16);
  assert_true(part_at(array, 1) == memory[1]);
  ax_array_release(array);
  assert_true(released[0] == 1 && released[1] == 1 && released[2] == 1 && released[3] == 1);
  ax_sharding_release(sharding);
  ax_runtime_release(runtime);
}

static void apart_and_together(void **state) {
  (void)state;
  static const int64_t order[] = {2, 0, 3, 1};
  ax_runtime *runtime = runtime_of(1), *other = runtime_of(1);
  ax_sharding *sharding = named("x=2,y=2", "_,y", 4, order);
  const ax_type type = TEST_TYPE(AX_F32, 2, 4);
  const float data[] = {0, 1, 2, 3, 4, 5, 6, 7};
  ax_array *array = put(runtime, sharding, &type, data), *on[4], *again, *wrong;
  for (int p = 0; p < 4; p++) {
    float got[4];
    TEST_OK(ax_array_on_device(array, order[p], &on[p]));
    TEST_OK(ax_array_read(on[p], got, sizeof got));
    assert_true(got[0] == (float)(p % 2 * 2) && got[3] == (float)(p % 2 * 2 + 5));
    assert_true(part_at(on[p], 0) == part_at(array, (uint32_t)p % 2));
  }
  TEST_FAILS(ax_array_on_device(array, 4, &wrong), AX_INVALID_ARGUMENT, "device 4 is none of the array's 4");
  TEST_FAILS(ax_array_from_device_arrays(runtime, sharding, &type, AX_LIST(3, on), &wrong), AX_INVALID_ARGUMENT, "3 for 4 devices");
  TEST_FAILS(ax_array_from_device_arrays(other, sharding, &type, AX_LIST(4, on), &wrong), AX_INVALID_ARGUMENT,
             "array 0: it belongs to another runtime");
  TEST_FAILS(ax_array_from_device_arrays(runtime, sharding, &type, AX_ARRAYS(on[0], on[1], on[3], on[2]), &wrong),
             AX_INVALID_ARGUMENT, "array 2: it lies on device 1, not on 3");
  TEST_FAILS(ax_array_from_device_arrays(runtime, sharding, &type, AX_ARRAYS(on[0], array, on[2], on[3]), &wrong),
             AX_INVALID_ARGUMENT, "array 1: it is f32[2,4], but a block is f32[2,2]");
  TEST_OK(ax_array_from_device_arrays(runtime, sharding, &type, AX_LIST(4, on), &again));
  assert_true(part_at(again, 1) == part_at(array, 1));
  ax_array_release(array);
  for (int p = 0; p < 4; p++) ax_array_release(on[p]);
  check_elems(again, data, sizeof data);
  ax_array_release(again);
  ax_sharding_release(sharding);
  ax_runtime_release(runtime);
  ax_runtime_release(other);
}

static void several(void **state) {
  (void)state;
  ax_runtime *runtime = runtime_of(1);
  ax_sharding *kind[kinds];
  const ax_sharding *use[kinds];
  ax_host_array hosts[kinds];
  ax_array *arrays[kinds], *moved[kinds];
  float data[elems];
  for (int i = 0; i < elems; i++) data[i] = (float)i;
  make_kinds(kind);
  for (int a = 0; a < kinds; a++) {
    use[a] = kind[a];
    hosts[a] = ax_host_view(AX_F32, AX_DIMS(12, 6, 2), data);
  }
  TEST_OK(ax_device_put_many(runtime, AX_LIST(kinds, use), hosts, arrays));
  for (int a = 0; a < kinds; a++) use[a] = kind[kinds - 1 - a];
  TEST_OK(ax_array_reshard_many(AX_LIST(kinds, arrays), use, moved));
  for (int a = 0; a < kinds; a++) {
    check_elems(moved[a], data, sizeof data);
    ax_array_release(moved[a]);
  }
  hosts[6].dims[0] = 11;
  TEST_FAILS(ax_device_put_many(runtime, AX_LIST(kinds, use), hosts, moved), AX_INVALID_ARGUMENT,
             "device_put_many: array 6: device_put_as: the spec");
  for (int a = 0; a < kinds; a++) assert_null(moved[a]);
  ax_array *held = arrays[5];
  arrays[5] = NULL;
  TEST_FAILS(ax_array_reshard_many(AX_LIST(kinds, arrays), use, moved), AX_INVALID_ARGUMENT,
             "array_reshard_many: array 5: there is no array");
  arrays[5] = held;
  for (int a = 0; a < kinds; a++) {
    assert_null(moved[a]);
    ax_array_release(arrays[a]);
    ax_sharding_release(kind[a]);
  }
  ax_runtime_release(runtime);
}

/* --- Slices, sizes --- */

static void slices_at_random(void **state) {
  (void)state;
  ax_runtime *runtime = runtime_of(2);
  ax_sharding *kind[kinds];
  const ax_type type = TEST_TYPE(AX_S32, 12, 6, 2);
  int32_t data[elems], got[elems];
  test_random random = {7};
  for (int i = 0; i < elems; i++) data[i] = i;
  make_kinds(kind);
  for (int a = 0; a < kinds; a++) {
    ax_array *array = put(runtime, kind[a], &type, data);
    for (int time = 0; time < 100; time++) {
      int64_t start[3], sizes[3];
      for (int d = 0; d < 3; d++) {
        start[d] = test_random_below(&random, type.dims[d] + 1);
        sizes[d] = test_random_below(&random, type.dims[d] - start[d] + 1);
      }
      const int64_t count = sizes[0] * sizes[1] * sizes[2];
      TEST_OK(ax_array_read_slice(array, start, sizes, got, (size_t)count * 4));
      for (int64_t k = 0; k < count; k++) {
        const int64_t i = start[0] + k / (sizes[1] * sizes[2]), j = start[1] + k / sizes[2] % sizes[1], l = start[2] + k % sizes[2];
        assert_int_equal(got[k], (i * 6 + j) * 2 + l);
      }
    }
    TEST_FAILS(ax_array_read_slice(array, AX_DIMS(4, 0, 0), AX_DIMS(9, 1, 1), got, 36), AX_INVALID_ARGUMENT,
               "9 from 4 on leave dimension 0 of s32[12,6,2]");
    TEST_FAILS(ax_array_read_slice(array, AX_DIMS(INT64_MAX, 0, 0), AX_DIMS(1, 1, 1), got, 4), AX_INVALID_ARGUMENT,
               "leave dimension 0");
    TEST_FAILS(ax_array_read_slice(array, AX_DIMS(0, 0, 0), AX_DIMS(1, 1, 1), got, 8), AX_INVALID_ARGUMENT,
               "takes 4 bytes, not 8");
    ax_array_release(array);
    ax_sharding_release(kind[a]);
  }
  ax_runtime_release(runtime);
}

/* Copies that are shared out to threads, of blocks that do not begin where pieces do. */
static void large_copies(void **state) {
  (void)state;
  static const char *const specs[] = {"", "a", "b,a", "_,a", "a+b"};
  ax_runtime *runtime = runtime_of(3);
  const ax_type type = TEST_TYPE(AX_S32, 6 * 311, 6 * 273);
  const size_t bytes = (size_t)ax_type_elems(&type) * 4;
  int32_t *data = malloc(bytes);
  for (size_t i = 0; i < bytes / 4; i++) data[i] = (int32_t)(i * 2654435761u);
  for (int s = 0; s < 5; s++) {
    ax_sharding *from = named("a=2,b=3", specs[s], 0, NULL), *to = named("a=2,b=3", specs[(s + 2) % 5], 0, NULL);
    ax_array *array = put(runtime, from, &type, data), *moved;
    check_elems(array, data, bytes);
    TEST_OK(ax_array_reshard(array, to, &moved));
    check_elems(moved, data, bytes);
    ax_array_release(array);
    ax_array_release(moved);
    ax_sharding_release(from);
    ax_sharding_release(to);
  }
  const ax_type deep = TEST_TYPE(AX_S32, 1, 3, 1, 2, 67, 41, 1, 65); /* pieces by the first dimensions, and a range of the next */
  ax_sharding *whole = named("", "", 0, NULL);
  ax_array *array = put(runtime, whole, &deep, data);
  check_elems(array, data, (size_t)ax_type_elems(&deep) * 4);
  ax_array_release(array);
  ax_sharding_release(whole);
  free(data);
  ax_runtime_release(runtime);
}

static void odd_shapes(void **state) {
  (void)state;
  ax_runtime *runtime = runtime_of(2);
  int64_t twos[AX_MAX_RANK];
  float data[1 << 8] = {3};
  for (int d = 0; d < AX_MAX_RANK; d++) twos[d] = d % 2 ? 1 : 2;
  const ax_type types[] = {TEST_SCALAR(AX_F32), TEST_TYPE(AX_F32, 4, 0), TEST_TYPE(AX_F32, 0),
                           ax_array_type(AX_F32, AX_LIST(AX_MAX_RANK, twos))};
  ax_sharding *all = tiled("{replicated}", 3), *rows = named("d=2", "d", 0, NULL);
  for (size_t t = 0; t < AX_COUNT(types); t++) {
    ax_array *array = put(runtime, all, &types[t], data), *moved, *on, *together;
    const size_t bytes = (size_t)ax_type_elems(&types[t]) * 4;
    if (types[t].rank > 0) {
      TEST_OK(ax_array_reshard(array, rows, &moved));
      check_elems(moved, data, bytes);
      ax_array_release(moved);
    }
    TEST_OK(ax_array_on_device(array, 2, &on));
    check_elems(on, data, bytes);
    ax_sharding *there;
    TEST_OK(ax_sharding_single(2, &there));
    TEST_OK(ax_array_from_device_arrays(runtime, there, &types[t], AX_LIST(1, &on), &together));
    check_elems(together, data, bytes);
    ax_array_release(together);
    ax_array_release(on);
    ax_array_release(array);
    ax_sharding_release(there);
  }
  ax_sharding_release(all);
  ax_sharding_release(rows);
  ax_runtime_release(runtime);
}

static void many_devices(void **state) {
  (void)state;
  enum { many = 65536 };
  ax_runtime *runtime = runtime_of(2);
  int32_t *data = malloc(many * sizeof data[0]), some[4];
  int64_t *back = malloc(many * sizeof back[0]), begin;
  for (int i = 0; i < many; i++) back[i] = many - 1 - (data[i] = i);
  ax_sharding *rows = named("d=65536", "d", many, back), *squares = named("x=256,y=256", "y+x", 0, NULL);
  const ax_type type = TEST_TYPE(AX_S32, many);
  ax_array *array = put(runtime, rows, &type, data), *moved;
  ax_type block;
  TEST_OK(ax_array_shard(array, 5, &block, &begin));
  assert_int_equal(begin, many - 6);
  TEST_OK(ax_array_reshard(array, squares, &moved));
  check_elems(moved, data, many * sizeof data[0]);
  TEST_OK(ax_array_read_slice(moved, &(int64_t){60000}, &(int64_t){4}, some, sizeof some));
  assert_true(some[0] == 60000 && some[3] == 60003);
  ax_array_release(array);
  ax_array_release(moved);
  ax_sharding_release(rows);
  ax_sharding_release(squares);
  free(data);
  free(back);
  ax_runtime_release(runtime);
}

static void devices(void **state) {
  (void)state;
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 1, .max_devices = 4}, &runtime));
  ax_device device;
  ax_array *array;
  ax_sharding *far;
  assert_int_equal(ax_runtime_device_count(runtime), 4);
  const float one = 1;
  TEST_OK(ax_sharding_single(3, &far));
  const ax_host_array host = ax_host_view(AX_F32, AX_DIMS(), &one);
  TEST_OK(ax_device_put_as(runtime, far, &host, &array));
  TEST_OK(ax_runtime_device(runtime, 3, &device));
  assert_true(device.id == 3 && device.process == 0 && device.memory_now > 0 && device.memory_peak >= device.memory_now);
  assert_string_equal(device.platform, "cpu");
  assert_string_equal(device.memory_kind, "device");
  TEST_FAILS(ax_runtime_device(runtime, 4, &device), AX_INVALID_ARGUMENT, "device 4 of 4");
  ax_array_release(array);
  ax_sharding_release(far);
  TEST_OK(ax_sharding_single(4, &far));
  TEST_FAILS(ax_device_put_as(runtime, far, &host, &array), AX_INVALID_ARGUMENT, "device_put_as: device 4 of the 4 there are");
  TEST_FAILS(ax_device_put_as(runtime, NULL, &host, &array), AX_INVALID_ARGUMENT, "there is no sharding");
  ax_sharding_release(far);
  ax_runtime_release(runtime);
}

/* --- No memory --- */

static ax_status everything(void *context) {
  ax_runtime *runtime = context;
  static const float data[4] = {1, 2, 3, 4};
  const ax_host_array host = ax_host_view(AX_F32, AX_DIMS(4), data);
  const ax_type type = TEST_TYPE(AX_F32, 4);
  ax_sharding *rows = NULL, *whole = NULL, *own = NULL;
  ax_array *array = NULL, *moved = NULL, *on[2] = {NULL, NULL}, *together = NULL;
  const ax_mesh mesh = {.count = 1, .axis[0] = {.name = "d", .size = 2}};
  ax_status status = ax_sharding_named(&mesh, "d", &(ax_sharding_options){.devices = {AX_DIMS(1, 0)}}, &rows);
  if (status == AX_OK) status = ax_sharding_named(&mesh, "", NULL, &whole);
  if (status == AX_OK) status = ax_device_put_as(runtime, rows, &host, &array);
  if (status == AX_OK) status = ax_array_reshard(array, whole, &moved);
  if (status == AX_OK) status = ax_array_on_device(array, 1, &on[0]);
  if (status == AX_OK) status = ax_array_on_device(array, 0, &on[1]);
  if (status == AX_OK) status = ax_array_from_device_arrays(runtime, rows, &type, AX_LIST(2, on), &together);
  if (status == AX_OK) status = ax_array_sharding(moved, &own);
  ax_array_release(array);
  ax_array_release(moved);
  ax_array_release(on[0]);
  ax_array_release(on[1]);
  ax_array_release(together);
  ax_sharding_release(rows);
  ax_sharding_release(whole);
  ax_sharding_release(own);
  ax_runtime_trim(runtime);
  return status;
}

static void without_memory(void **state) {
  (void)state;
  ax_runtime *runtime = runtime_of(1);
  assert_true(test_each_allocation(everything, runtime) > 15);
  ax_runtime_release(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_kind),
      cmocka_unit_test(ids_are_those_of_the_sharding),
      cmocka_unit_test(donations_leave_others_alone),
      cmocka_unit_test(pending_arrays),
      cmocka_unit_test(threads_share),
      cmocka_unit_test(of_device_parts),
      cmocka_unit_test(apart_and_together),
      cmocka_unit_test(several),
      cmocka_unit_test(slices_at_random),
      cmocka_unit_test(large_copies),
      cmocka_unit_test(odd_shapes),
      cmocka_unit_test(many_devices),
      cmocka_unit_test(devices),
      cmocka_unit_test(without_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
