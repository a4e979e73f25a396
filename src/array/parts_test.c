/* Parts: from each layout to each other, what stays where it is, and parts whose memory is somebody else's, each somewhere on its
   own. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "array/executable.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"
#include "support/tensor.h"

static ax_runtime *new_runtime(void) {
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 2}, &runtime));
  return runtime;
}

/* --- Layouts --- */

static ax_layout *layout_of(ax_runtime *runtime, const char *mesh_text, const char *spec_text, const ax_type *type) {
  ax_mesh mesh;
  ax_spec spec;
  ax_layout *layout;
  TEST_OK(ax_mesh_parse(mesh_text, &mesh));
  TEST_OK(ax_spec_parse(spec_text, &mesh, &spec));
  TEST_OK(ax_layout_create(runtime, type, &mesh, &spec, NULL, true, &layout));
  return layout;
}

static ax_array *put(ax_runtime *runtime, const char *mesh_text, const char *spec, const ax_type *type, const void *data) {
  ax_array *array;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse(mesh_text, &mesh));
  TEST_OK(ax_device_put_data(runtime, &mesh, spec, type, data, &array));
  return array;
}

static const struct {
  const char *mesh, *spec;
} layouts[] = {
    {"", ""},          {"a=2,b=3", ""},        {"a=2,b=3", "a,b"},      {"a=2,b=3", "b,a"},
    {"a=2,b=3", "b+a"}, {"a=2,b=3", "_,_,a"},  {"a=3,b=2", "a,_,b"},    {"a=2,b=3,c=2", "c+a,b"},
    {"x=4", "x"},
};

static void every_layout(void **state) {
  (void)state;
  ax_runtime *runtime = new_runtime();
  const ax_type type = TEST_TYPE(AX_S32, 12, 6, 2);
  int32_t data[144], got[144];
  for (int i = 0; i < 144; i++) data[i] = i;
  for (size_t l = 0; l < AX_COUNT(layouts) * AX_COUNT(layouts) * 2; l++) {
    size_t first = l % AX_COUNT(layouts), second = l / 2 / AX_COUNT(layouts);
    ax_array *array = put(runtime, layouts[first].mesh, layouts[first].spec, &type, data), *again;
    ax_layout *to = layout_of(runtime, layouts[second].mesh, layouts[second].spec, &type);
    ax_parts *parts;
    TEST_OK(ax_parts_lay_out(array->parts, array->layout, to, l % 2 == 0 ? AX_LAY_WRITTEN : AX_LAY_READ, &parts));
    TEST_OK(ax_array_create(to, parts, &again));
    ax_array_release(array); /* what the new one still needs of it stays */
    memset(got, 0, sizeof got);
    TEST_OK(ax_array_read(again, got, sizeof got));
    assert_memory_equal(got, data, sizeof data);
    ax_array_release(again);
    ax_layout_release(to);
  }
  ax_runtime_release(runtime);
}

/* How many of the new parts lie in the old ones. */
static int kept(ax_runtime *runtime, const char *mesh, const char *spec, const char *new_mesh, const char *new_spec, bool written) {
  static const float data[48];
  const ax_type type = TEST_TYPE(AX_F32, 4, 12);
  ax_array *array = put(runtime, mesh, spec, &type, data);
  ax_layout *to = layout_of(runtime, new_mesh, new_spec, &type);
  ax_parts *parts;
  TEST_OK(ax_parts_lay_out(array->parts, array->layout, to, written ? AX_LAY_WRITTEN : AX_LAY_READ, &parts));
  const unsigned char *begin = array->parts->memory, *end = begin + array->parts->bytes;
  int count = 0;
  for (uint32_t b = 0; b < parts->count; b++) count += begin <= parts->part[b] && parts->part[b] < end;
  ax_parts_release(parts);
  ax_array_release(array);
  ax_layout_release(to);
  return count;
}

static void in_place(void **state) {
  (void)state;
  ax_runtime *runtime = new_runtime();
  assert_int_equal(kept(runtime, "d=4", "d", "d=4", "d", true), 4);     /* as it is */
  assert_int_equal(kept(runtime, "d=4", "", "d=2,e=2", "e", true), 2);  /* rows of the one copy */
  assert_int_equal(kept(runtime, "d=4", "", "d=4", "_,d", false), 0);   /* columns are not dense in it */
  assert_int_equal(kept(runtime, "d=4", "d", "d=4", "_,d", false), 0);
  assert_int_equal(kept(runtime, "d=4", "d", "d=4,e=3", "d,e", true), 12); /* a row's pieces are */
  assert_int_equal(kept(runtime, "d=2", "d", "d=4", "d", true), 4);
  assert_int_equal(kept(runtime, "d=4", "d", "d=2", "d", false), 0);    /* each new part is made of two */
  assert_int_equal(kept(runtime, "d=4", "d", "x=2,y=2", "x+y", true), 4); /* the same cuts by other names */
  ax_runtime_release(runtime);
}

/* --- Lent parts --- */

enum { devices = 4, rows = 8, columns = 3, piece = rows / devices * columns };

typedef struct lent {
  unsigned char *memory[devices]; /* each allocated alone, its elements at an odd multiple of their size */
  ax_part part[devices];
  int released[devices];
} lent;

static void note_release(void *context) { (*(int *)context)++; }

static const float *elems_of(const lent *l, int i) { return l->part[i].data; }

static void lend(lent *l, bool read_only) {
  *l = (lent){0};
  for (int i = 0; i < devices; i++) {
    l->memory[i] = malloc(4096 + (size_t)i * 64);
    assert_non_null(l->memory[i]);
    float *data = (float *)(void *)(l->memory[i] + 4 * (3 + 2 * i));
    for (int k = 0; k < piece; k++) data[k] = (float)(i * piece + k);
    l->part[i] = (ax_part){.data = data, .bytes = piece * sizeof data[0], .release = note_release, .context = &l->released[i],
                           .read_only = read_only};
  }
}

static void end_lent(lent *l) {
  for (int i = 0; i < devices; i++) {
    assert_int_equal(l->released[i], 1);
    free(l->memory[i]);
  }
}

static void check_not_released(const lent *l) {
  for (int i = 0; i < devices; i++) assert_int_equal(l->released[i], 0);
}

static ax_array *from_parts(ax_runtime *runtime, const lent *l) {
  const ax_type type = TEST_TYPE(AX_F32, rows, columns);
  ax_mesh mesh;
  ax_array *array;
  TEST_OK(ax_mesh_parse("d=4", &mesh));
  TEST_OK(ax_array_from_parts(runtime, &mesh, "d", &type, AX_LIST(devices, l->part), &array));
  return array;
}

static void body(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[0], ax_psum(in[0], "d"));
  out[1] = ax_all_gather(in[0], "d", 0, true);
}

static void map(const ax_value *in, ax_value *out, void *context) {
  static const char *const in_specs[] = {"d"}, *const out_specs[] = {"d", "d"};
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=4", &mesh));
  test_shard_map(&mesh, in_specs, out_specs, false, AX_CLOSURE(body, 1, 2, context), in, out);
}

static ax_executable *compile(ax_runtime *runtime, bool donate) {
  const ax_type type = TEST_TYPE(AX_F32, rows, columns);
  ax_program *program = test_trace(map, NULL, &type, 1, 2);
  ax_executable *executable;
  TEST_OK(
      ax_compile(runtime, program, &(ax_compile_options){.donate = test_args(&donate, ax_program_in_count(program))}, &executable));
  ax_program_release(program);
  return executable;
}

static void check_results(ax_array *const *results) {
  float sums[rows * columns], gathered[devices * rows * columns];
  TEST_OK(ax_array_read(results[0], sums, sizeof sums));
  TEST_OK(ax_array_read(results[1], gathered, sizeof gathered));
  for (int i = 0; i < rows * columns; i++) {
    float sum = 0;
    for (int d = 0; d < devices; d++) sum += (float)(d * piece + i % piece);
    assert_true(sums[i] == (float)i + sum);
  }
  for (int i = 0; i < devices * rows * columns; i++) assert_true(gathered[i] == (float)(i % (rows * columns)));
}

/* Runs read lent parts where they are, and keep them as long as needed. */
static void lent_parts(void **state) {
  (void)state;
  ax_runtime *runtime = new_runtime();
  ax_executable *executable = compile(runtime, false);
  lent l;
  lend(&l, true);
  ax_array *x = from_parts(runtime, &l), *results[2];
  assert_int_equal(ax_array_part_count(x), devices);
  for (int i = 0; i < devices; i++) {
    const void *data;
    size_t bytes;
    int64_t device;
    TEST_OK(ax_array_part(x, (uint32_t)i, &data, &bytes, &device));
    assert_true(data == l.part[i].data && bytes == piece * sizeof(float) && device == i);
  }
  for (int time = 0; time < 2; time++) {
    TEST_OK(ax_run(executable, &x, results));
    check_results(results);
    ax_array_release(results[0]);
    ax_array_release(results[1]);
  }
  check_not_released(&l);
  ax_array_release(x);
  end_lent(&l);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
}

/* A result lives in donated parts that may be written; they go when it does. */
static void donated(void **state) {
  (void)state;
  ax_runtime *runtime = new_runtime();
  ax_executable *executable = compile(runtime, true);
  for (int read_only = 0; read_only < 2; read_only++) {
    lent l;
    lend(&l, read_only != 0);
    ax_array *x = from_parts(runtime, &l), *results[2];
    TEST_OK(ax_run(executable, &x, results));
    check_results(results);
    const void *data;
    size_t bytes;
    TEST_OK(ax_array_part(results[0], 1, &data, &bytes, NULL));
    assert_true((data == l.part[1].data) == !read_only);
    assert_true((elems_of(&l, 1)[0] == piece) == (read_only != 0));
    TEST_FAILS(ax_array_part(x, 1, &data, &bytes, NULL), AX_INVALID_ARGUMENT, "the array f32[8,3] was donated to a run");
    if (!read_only) check_not_released(&l);
    ax_array_release(results[0]);
    end_lent(&l);
    ax_array_release(results[1]);
    ax_array_release(x);
  }
  ax_executable_release(executable);
  ax_runtime_release(runtime);
}

static void refused(void **state) {
  (void)state;
  ax_runtime *runtime = new_runtime();
  const ax_type type = TEST_TYPE(AX_F32, rows, columns);
  ax_mesh mesh;
  ax_array *array;
  lent l;
  lend(&l, false);
  TEST_OK(ax_mesh_parse("d=4", &mesh));
  TEST_FAILS(ax_array_from_parts(runtime, &mesh, "d", &type, AX_LIST(3, l.part), &array), AX_INVALID_ARGUMENT,
             "array_from_parts: f32[8,3] has 4 parts of f32[2,3], not 3");
  TEST_FAILS(ax_array_from_parts(runtime, &mesh, "", &type, AX_LIST(1, l.part), &array), AX_INVALID_ARGUMENT,
             "part 0 has 24 bytes, but f32[8,3] takes 96");
  ax_part part = l.part[2];
  l.part[2].data = NULL;
  TEST_FAILS(ax_array_from_parts(runtime, &mesh, "d", &type, AX_LIST(4, l.part), &array), AX_INVALID_ARGUMENT,
             "part 2 is at no address");
  l.part[2].data = (char *)part.data + 1;
  TEST_FAILS(ax_array_from_parts(runtime, &mesh, "d", &type, AX_LIST(4, l.part), &array), AX_INVALID_ARGUMENT,
             "is not aligned to an element's 4 bytes");
  TEST_FAILS(ax_array_from_parts(runtime, &mesh, "d,_,_", &type, AX_LIST(4, l.part), &array), AX_INVALID_ARGUMENT, "more entries");
  TEST_FAILS(ax_array_from_parts(runtime, &mesh, "d", &type, AX_LIST(4, NULL), &array), AX_INVALID_ARGUMENT, "no list of parts");
  assert_null(array);
  l.part[2] = part;
  check_not_released(&l);
  array = from_parts(runtime, &l);
  const void *data;
  size_t bytes;
  TEST_FAILS(ax_array_part(array, 4, &data, &bytes, NULL), AX_INVALID_ARGUMENT, "part 4 of an array that has 4");
  ax_array_release(array);
  end_lent(&l);
  ax_runtime_release(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_layout), cmocka_unit_test(in_place), cmocka_unit_test(lent_parts),
      cmocka_unit_test(donated),      cmocka_unit_test(refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
