/* Arrays: what goes in comes out under every layout, the parts are where they are said to be, pictures, and who may use the memory
   of an array that is donated. */
#include <pthread.h>
#include <string.h>

#include "axle/ops.h"
#include "array/executable.h"
#include "support/cmocka.h"
#include "support/tensor.h"

static ax_runtime *runtime_of(uint32_t workers) {
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = workers}, &runtime));
  return runtime;
}

static ax_array *put(ax_runtime *runtime, const char *mesh_text, const char *spec, ax_type type, const void *data) {
  ax_array *array;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse(mesh_text, &mesh));
  TEST_OK(ax_device_put_data(runtime, &mesh, spec, &type, data, &array));
  return array;
}

/* --- Layouts --- */

static const struct {
  const char *mesh, *spec;
} layouts[] = {
    {"", ""},          {"a=2,b=3", ""},        {"a=2,b=3", "a,b"},      {"a=2,b=3", "b,a"},
    {"a=2,b=3", "b+a"}, {"a=2,b=3", "_,_,a"},  {"a=3,b=2", "a,_,b"},    {"a=2,b=3,c=2", "c+a,b"},
};

static void every_layout(void **state) {
  (void)state;
  ax_runtime *runtime = runtime_of(1);
  const ax_type type = TEST_TYPE(AX_S32, 12, 6, 2);
  int32_t data[144], got[144];
  for (int i = 0; i < 144; i++) data[i] = i;
  for (size_t l = 0; l < AX_COUNT(layouts); l++) {
    ax_array *array = put(runtime, layouts[l].mesh, layouts[l].spec, type, data);
    TEST_OK(ax_array_read(array, got, sizeof got));
    assert_memory_equal(got, data, sizeof data);
    ax_array_release(array);
  }
  ax_runtime_release(runtime);
}

static void shards(void **state) {
  (void)state;
  ax_runtime *runtime = runtime_of(1);
  float data[48] = {0};
  ax_array *array = put(runtime, "a=2,b=3", "b,a", TEST_TYPE(AX_F32, 6, 8), data);
  for (int64_t device = 0; device < 6; device++) {
    ax_type block;
    int64_t start[2];
    TEST_OK(ax_array_shard(array, device, &block, start));
    assert_true(block.rank == 2 && block.dims[0] == 2 && block.dims[1] == 4);
    assert_int_equal(start[0], device % 3 * 2);
    assert_int_equal(start[1], device / 3 * 4);
  }
  ax_array_release(array);
  ax_runtime_release(runtime);
}

static void refused(void **state) {
  (void)state;
  ax_runtime *runtime = runtime_of(1);
  const ax_type type = TEST_TYPE(AX_F32, 6, 2, 2), huge = TEST_TYPE(AX_U8, INT64_MAX);
  ax_mesh mesh;
  ax_array *array = NULL;
  float data[24] = {0};
  TEST_OK(ax_mesh_parse("d=4", &mesh));
  TEST_FAILS(ax_device_put_data(runtime, &mesh, "d", &type, data, &array), AX_INVALID_ARGUMENT,
             "the spec P(d) cuts dimension 0 in 4 parts, which do not divide f32[6,2,2]");
  TEST_FAILS(ax_device_put_data(runtime, &mesh, "_,_,_,_", &type, data, &array), AX_INVALID_ARGUMENT,
             "the spec P(_, _, _, _) has more entries than there are dimensions in f32[6,2,2]");
  TEST_FAILS((ax_device_put_data)(runtime, &mesh, "", &huge, AX_NO_DTYPE, data, SIZE_MAX, &array), AX_OUT_OF_MEMORY, "out of memory");
  assert_null(array);
  ax_runtime_release(runtime);
}

/* --- Pictures --- */

static void shows(ax_runtime *runtime, const char *mesh, const char *spec, ax_type type, const char *wanted) {
  static const float data[512];
  ax_array *array = put(runtime, mesh, spec, type, data);
  char *text;
  TEST_OK(ax_array_picture(array, &text));
  if (strncmp(text, wanted, strlen(wanted)) != 0) fail_msg("instead of\n%sit is\n%s", wanted, text);
  ax_string_free(text);
  ax_array_release(array);
}

static void pictures(void **state) {
  (void)state;
  ax_runtime *runtime = runtime_of(1);
  shows(runtime, "data=4,model=2", "_,model", TEST_TYPE(AX_F32, 4, 8),
        "f32[4,8] P(_, model), a device holds f32[4,4]\n"
        "+----------------+----------------+\n"
        "|    0 2 4 6     |    1 3 5 7     |\n"
        "+----------------+----------------+\n");
  shows(runtime, "data=2,model=5", "data,_", TEST_TYPE(AX_F32, 2, 2),
        "f32[2,2] P(data, _), a device holds f32[1,2]\n"
        "+----------------+\n"
        "|    0 1 .. 4    |\n"
        "+----------------+\n"
        "|    5 6 .. 9    |\n"
        "+----------------+\n");
  shows(runtime, "", "", (ax_type){.dtype = AX_F32},
        "f32[] P(), a device holds f32[]\n"
        "+----------------+\n"
        "|       0        |\n"
        "+----------------+\n");
  shows(runtime, "d=2", "d", TEST_TYPE(AX_F32, 0),
        "f32[0] P(d), a device holds f32[0]\n"
        "+----------------+----------------+\n");
  shows(runtime, "a=2,b=1000", "a", TEST_TYPE(AX_F32, 2),
        "f32[2] P(a), a device holds f32[1]\n"
        "+-------------------+-------------------+\n"
        "|    0 1 .. 999     | 1000 1001 .. 1999 |\n"
        "+-------------------+-------------------+\n");
  shows(runtime, "a=2,b=3,c=2", "b,a", TEST_TYPE(AX_F32, 6, 2),
        "f32[6,2] P(b, a), a device holds f32[2,1]\n"
        "+----------------+----------------+\n"
        "|      0 1       |      6 7       |\n"
        "+----------------+----------------+\n"
        "|      2 3       |      8 9       |\n"
        "+----------------+----------------+\n"
        "|      4 5       |     10 11      |\n"
        "+----------------+----------------+\n");
  shows(runtime, "c=1048576", "", TEST_TYPE(AX_F32, 2),
        "f32[2] P(), a device holds f32[2]\n"
        "+----------------+\n"
        "| 0 1 .. 1048575 |\n"
        "+----------------+\n");
  shows(runtime, "data=2,model=2", "data,_,model", TEST_TYPE(AX_F32, 4, 2, 2),
        "f32[4,2,2] P(data, _, model), a device holds f32[2,2,1]\n"
        "from [0,0,0]: 0\n"
        "from [0,0,1]: 1\n"
        "from [2,0,0]: 2\n"
        "from [2,0,1]: 3\n");
  static const float many[512];
  ax_array *array = put(runtime, "d=17,m=9", "d,m", TEST_TYPE(AX_F32, 17, 9), many);
  char *text;
  TEST_OK(ax_array_picture(array, &text));
  assert_non_null(strstr(text, "(the first 16 x 8 of 17 x 9 blocks)\n"));
  ax_string_free(text);
  ax_array_release(array);
  TEST_FAILS(ax_array_picture(NULL, &text), AX_INVALID_ARGUMENT, "no array");
  ax_runtime_release(runtime);
}

/* --- Donation --- */

static void doubled(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[0], in[0]);
}

static ax_executable *donating(ax_runtime *runtime, ax_type type) {
  ax_program *program;
  ax_executable *executable;
  TEST_OK(ax_trace(AX_FN(doubled, 1, 1), &type, &program));
  TEST_OK(ax_compile(runtime, program, &(ax_compile_options){.donate = AX_FIRST(1)}, &executable));
  ax_program_release(program);
  return executable;
}

static void another_runtime(void **state) {
  (void)state;
  ax_runtime *mine = runtime_of(1), *other = runtime_of(1);
  const ax_type type = TEST_TYPE(AX_F32, 4);
  ax_executable *executable = donating(mine, type);
  ax_array *foreign = put(other, "", "", type, (float[]){1, 2, 3, 4}), *y;
  float got[4];
  TEST_FAILS(ax_run(executable, &foreign, &y), AX_INVALID_ARGUMENT, "got f32[4] of another runtime");
  assert_null(y);
  TEST_OK(ax_array_read(foreign, got, sizeof got));
  ax_array_release(foreign);
  ax_executable_release(executable);
  ax_runtime_release(mine);
  ax_runtime_release(other);
}

/* A run that is donated what others still read begins when they have left; nobody else gets it any more. */
static void while_in_use(void **state) {
  (void)state;
  ax_runtime *runtime = runtime_of(1);
  const ax_type type = TEST_TYPE(AX_F32, 4);
  ax_executable *executable = donating(runtime, type);
  ax_array *x = put(runtime, "", "", type, (float[]){1, 2, 3, 4}), *y, *z;
  float got[4];
  assert_true(ax_array_use(x)); /* as another thread does */
  assert_false(ax_array_take(x));
  TEST_OK(ax_run_start(executable, &x, &y));
  assert_false(ax_array_is_ready(y));
  TEST_FAILS(ax_run(executable, &x, &z), AX_INVALID_ARGUMENT, "donated to an earlier run");
  TEST_FAILS(ax_array_read(x, got, sizeof got), AX_INVALID_ARGUMENT, "donated");
  assert_non_null(x->parts); /* the reader has them still */
  ax_array_leave(x);
  TEST_OK(ax_array_wait(y));
  assert_true(ax_array_is_ready(y));
  TEST_OK(ax_array_read(y, got, sizeof got));
  assert_true(got[3] == 8);
  assert_null(x->parts);
  assert_true(ax_array_take(y));
  TEST_FAILS(ax_array_read(y, got, sizeof got), AX_INVALID_ARGUMENT, "donated");
  ax_array_end_taking(y, false);
  TEST_OK(ax_array_read(y, got, sizeof got));
  ax_array_release(y);
  ax_array_release(x);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
}

/* A donated array in another layout than the program's: both memories go. */
static void laid_out_anew(void **state) {
  (void)state;
  ax_runtime *runtime = runtime_of(1);
  const ax_type type = TEST_TYPE(AX_F32, 4);
  ax_executable *executable = donating(runtime, type);
  ax_array *x = put(runtime, "d=2", "d", type, (float[]){1, 2, 3, 4}), *y;
  float got[4];
  TEST_OK(ax_run(executable, &x, &y));
  TEST_OK(ax_array_read(y, got, sizeof got));
  assert_true(got[0] == 2 && got[3] == 8);
  assert_null(x->parts);
  ax_array_release(x);
  ax_array_release(y);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
}

enum { threads = 4, rounds = 200, elems = 1024 };

typedef struct contest {
  ax_executable *executable;
  ax_array *x;
  _Atomic int won, wrong;
  pthread_barrier_t start;
} contest;

static void *donates(void *context) {
  contest *c = context;
  ax_array *y;
  float got[elems];
  pthread_barrier_wait(&c->start);
  if (ax_run(c->executable, &c->x, &y) != AX_OK) return NULL;
  c->won++;
  if (ax_array_read(y, got, sizeof got) != AX_OK || got[0] != 2 || got[elems - 1] != 2) c->wrong++;
  ax_array_release(y);
  return NULL;
}

/* Reads all of it, or is told that it is gone. */
static void *reads(void *context) {
  contest *c = context;
  float got[elems];
  pthread_barrier_wait(&c->start);
  if (ax_array_read(c->x, got, sizeof got) != AX_OK) return NULL;
  for (int i = 0; i < elems; i++)
    if (got[i] != 1) c->wrong++;
  return NULL;
}

static void from_many_threads(void **state) {
  (void)state;
  ax_runtime *runtime = runtime_of(1);
  const ax_type type = TEST_TYPE(AX_F32, elems);
  contest c = {.executable = donating(runtime, type)};
  float data[elems];
  for (int i = 0; i < elems; i++) data[i] = 1;
  pthread_barrier_init(&c.start, NULL, threads);
  for (int round = 0; round < rounds; round++) {
    pthread_t ids[threads];
    c.x = put(runtime, "", "", type, data);
    c.won = 0;
    for (int i = 0; i < threads; i++) assert_int_equal(pthread_create(&ids[i], NULL, i < 3 ? donates : reads, &c), 0);
    for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
    assert_true(c.won <= 1);
    ax_array_release(c.x);
  }
  assert_int_equal(c.wrong, 0);
  size_t now, peak;
  ax_executable_release(c.executable);
  ax_runtime_trim(runtime);
  ax_runtime_memory(runtime, &now, &peak);
  assert_int_equal(now, 0); /* nothing was given back twice, and nothing is missing */
  pthread_barrier_destroy(&c.start);
  ax_runtime_release(runtime);
}

/* --- Readers --- */

static void gone(void *context) { ++*(int *)context; }

/* The last of two readers destroys an array whose last reference was released while both read it. */
static void readers_hold(void **state) {
  (void)state;
  ax_runtime *runtime = runtime_of(1);
  static _Alignas(64) float data[4];
  const ax_type type = TEST_TYPE(AX_F32, 4);
  int gone_parts = 0;
  ax_array *array;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("", &mesh));
  const ax_part part = {.data = data, .bytes = sizeof data, .release = gone, .context = &gone_parts};
  TEST_OK(ax_array_from_parts(runtime, &mesh, "", &type, AX_LIST(1, &part), &array));
  assert_true(ax_array_use(array) && ax_array_use(array));
  ax_array_release(array);
  assert_int_equal(gone_parts, 0);
  ax_array_leave(array);
  assert_int_equal(gone_parts, 0);
  assert_ptr_equal(array->parts->part[0], data);
  ax_array_leave(array);
  assert_int_equal(gone_parts, 1);
  ax_runtime_release(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_layout),    cmocka_unit_test(shards),       cmocka_unit_test(refused),
      cmocka_unit_test(pictures),        cmocka_unit_test(another_runtime), cmocka_unit_test(while_in_use),
      cmocka_unit_test(laid_out_anew),   cmocka_unit_test(from_many_threads), cmocka_unit_test(readers_hold),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
