/* An array whose slices are all one: read, run on as a pmap's operand, donated; what is refused. */
#include "axle/pmap.h"

#include "axle/collectives.h"
#include "axle/ops.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/run.h"
#include "support/tensor.h"

static const float data[] = {1, 2, 3};

static AX_BODY(count_up) { out[0] = ax_add(in[0], ax_convert_element_type(ax_axis_index("i"), AX_F32)); }
static AX_BODY(mapped) { ax_pmap(AX_FN(count_up, 1, 1), in, out, &(ax_pmap_options){.axis_name = "i"}); }

static ax_mesh mesh_of(const char *text) {
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse(text, &mesh));
  return mesh;
}

static void replicated(void **state) {
  (void)state;
  const ax_host_array host = ax_host_view(AX_F32, AX_DIMS(3), data);
  const ax_type type = TEST_TYPE(AX_F32, 4, 3);
  const ax_mesh mesh = mesh_of("i=4");
  ax_runtime *runtime;
  ax_executable *executable;
  ax_array *x, *kept, *y[2];
  float got[12];
  const void *first, *part;
  size_t bytes;
  int64_t device;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 2}, &runtime));
  TEST_OK(ax_replicate(runtime, &mesh, "i", &host, &x));
  TEST_OK(ax_replicate(runtime, &mesh, "i", &host, &kept));
  assert_true(ax_type_equal(ax_array_typeof(x), &type));
  assert_int_equal(ax_array_part_count(x), 4);
  TEST_OK(ax_array_part(x, 0, &first, &bytes, &device));
  for (uint32_t i = 0; i < 4; i++) {
    TEST_OK(ax_array_part(x, i, &part, &bytes, &device));
    assert_true(part == first && bytes == sizeof data && device == i);
  }
  TEST_OK(ax_array_read(x, got, sizeof got));
  for (int i = 0; i < 12; i++) assert_true(got[i] == data[i % 3]);
  /* Given away: each device writes into memory of its own. */
  TEST_OK(ax_jit(runtime, AX_FN(mapped, 1, 1), &type, &(ax_compile_options){.donate = AX_FIRST(1)}, &executable));
  TEST_OK(ax_run(executable, &x, &y[0]));
  TEST_OK(ax_run(executable, &kept, &y[1]));
  for (int k = 0; k < 2; k++) {
    TEST_OK(ax_array_read(y[k], got, sizeof got));
    for (int i = 0; i < 12; i++) assert_true(got[i] == data[i % 3] + (float)(i / 3));
    ax_array_release(y[k]);
  }
  assert_true(data[0] == 1 && data[2] == 3);
  ax_array_release(x);
  ax_array_release(kept);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
}

/* Over some axes of a mesh, a scalar, nothing; once in memory. */
static void forms(void **state) {
  (void)state;
  static const struct {
    const char *mesh, *spec;
    uint32_t rank, blocks;
    int64_t n;
  } forms[] = {{"i=2,j=3", "i", 1, 2, 2},
               {"i=2,j=3", "j+i", 0, 6, 6},
               {"i=2,j=3", "", 1, 1, 1},
               {"", "", 1, 1, 1},
               {"i=2,j=3", "j,_", 1, 3, 3}};
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 1}, &runtime));
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
    const ax_mesh mesh = mesh_of(forms[i].mesh);
    const ax_host_array host = ax_host_view(AX_F32, AX_LIST(forms[i].rank, ((int64_t[]){3})), data);
    ax_array *x;
    float got[18];
    TEST_OK(ax_replicate(runtime, &mesh, forms[i].spec, &host, &x));
    assert_true(ax_array_typeof(x)->dims[0] == forms[i].n && ax_array_typeof(x)->rank == forms[i].rank + 1);
    assert_int_equal(ax_array_part_count(x), forms[i].blocks);
    TEST_OK(ax_array_read(x, got, sizeof(float) * (size_t)ax_type_elems(ax_array_typeof(x))));
    for (int64_t e = 0; e < ax_type_elems(ax_array_typeof(x)); e++) assert_true(got[e] == data[forms[i].rank == 0 ? 0 : e % 3]);
    ax_array_release(x);
  }
  const ax_mesh mesh = mesh_of("i=4");
  const ax_host_array none = ax_host_view(AX_F32, AX_DIMS(0), NULL);
  ax_array *x;
  TEST_OK(ax_replicate(runtime, &mesh, "i", &none, &x));
  assert_int_equal(ax_type_elems(ax_array_typeof(x)), 0);
  ax_array_release(x);
  const size_t length = 1 << 20;
  float *large = ax_calloc(length, sizeof large[0]);
  const ax_host_array much = ax_host_view(AX_F32, AX_DIMS((int64_t)length), large);
  size_t before, now, peak;
  ax_runtime_memory(runtime, &before, &peak);
  TEST_OK(ax_replicate(runtime, &mesh, "i", &much, &x));
  ax_runtime_memory(runtime, &now, &peak);
  assert_true(now - before < 2 * length * sizeof large[0]);
  ax_array_release(x);
  ax_free(large);
  ax_runtime_release(runtime);
}

static void refused(void **state) {
  (void)state;
  const ax_host_array host = ax_host_view(AX_F32, AX_DIMS(3), data), nowhere = ax_host_view(AX_F32, AX_DIMS(3), NULL),
                      nothing = {0};
  ax_host_array deep = {.dtype = AX_F32, .rank = AX_MAX_RANK, .data = (void *)data, .view = true};
  for (int d = 0; d < AX_MAX_RANK; d++) deep.dims[d] = 1;
  const ax_mesh mesh = mesh_of("i=4"), broken = {.count = 1};
  ax_runtime *runtime;
  ax_array *x;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 1, .max_devices = 4}, &runtime));
  TEST_FAILS(ax_replicate(runtime, &mesh, "i,i", &host, &x), AX_INVALID_ARGUMENT, "replicate: spec \"i,i\"");
  TEST_FAILS(ax_replicate(runtime, &mesh, "_,i", &host, &x), AX_INVALID_ARGUMENT,
             "replicate: \"_,i\" splits dimension 1; only the new one, 0, is split");
  TEST_FAILS(ax_replicate(runtime, &mesh, "i", &nowhere, &x), AX_INVALID_ARGUMENT, "data");
  TEST_FAILS(ax_replicate(runtime, &mesh, "i", &nothing, &x), AX_INVALID_ARGUMENT, "replicate: ");
  TEST_FAILS(ax_replicate(runtime, &mesh, "i", &deep, &x), AX_INVALID_ARGUMENT, "has 16 dimensions already");
  TEST_FAILS(ax_replicate(runtime, &broken, "i", &host, &x), AX_INVALID_ARGUMENT, "replicate: ");
  TEST_FAILS(ax_replicate(runtime, NULL, "i", &host, &x), AX_INVALID_ARGUMENT, "mesh");
  TEST_FAILS(ax_replicate(runtime, &mesh, NULL, &host, &x), AX_INVALID_ARGUMENT, "spec");
  TEST_FAILS(ax_replicate(runtime, &mesh, "i", NULL, &x), AX_INVALID_ARGUMENT, "host array");
  TEST_FAILS(ax_replicate(NULL, &mesh, "i", &host, &x), AX_INVALID_ARGUMENT, "runtime");
  const ax_mesh many = mesh_of("i=8");
  TEST_FAILS(ax_replicate(runtime, &many, "i", &host, &x), AX_INVALID_ARGUMENT,
             "the mesh has 8 devices, more than the 4 there are");
  assert_null(x);
  ax_runtime_release(runtime);
}

static ax_status put_and_read(void *runtime) {
  const ax_host_array host = ax_host_view(AX_F32, AX_DIMS(3), data);
  const ax_mesh mesh = {.count = 1, .axis = {{.name = "i", .size = 4}}};
  float got[12];
  ax_array *x;
  ax_status status = ax_replicate(runtime, &mesh, "i", &host, &x);
  if (status == AX_OK) status = ax_array_read(x, got, sizeof got);
  ax_array_release(x);
  ax_runtime_trim(runtime);
  return status;
}

static void out_of_memory(void **state) {
  (void)state;
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 1}, &runtime));
  TEST_OK(put_and_read(runtime));
  assert_true(test_each_allocation(put_and_read, runtime) > 2);
  ax_runtime_release(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(replicated), cmocka_unit_test(forms), cmocka_unit_test(refused),
                                     cmocka_unit_test(out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
