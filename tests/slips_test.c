/* What users get wrong without meaning to: NULL for what must be there, counts and handles that are none, files without names. Each is
   refused with words that say what is missing; and what is odd but sound is not refused. */
#include <stdint.h>

#include "axle/axle.h"
#include "axle/npy.h"
#include "support/cmocka.h"
#include "support/tensor.h"

/* --- Steps --- */

static void same(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[0];
}

typedef struct slip {
  const char *message; /* NULL: none */
  void (*step)(const ax_value *in, ax_value *out); /* in: f32[4,3], s32[]; out: one result, which is in[0] */
} slip;

static void no_branches(const ax_value *in, ax_value *out) { ax_cond(in[1], NULL, NULL, 2, in, 1, out, 1); }
static void no_branch(const ax_value *in, ax_value *out) { ax_cond(in[1], (ax_function[]){same, NULL}, NULL, 2, in, 1, out, 1); }
static void no_condition(const ax_value *in, ax_value *out) { ax_while(NULL, same, NULL, in, 1, out); }
static void no_body(const ax_value *in, ax_value *out) { ax_scan(NULL, NULL, in, 1, 0, 3, false, out, 0); }
static void no_function(const ax_value *in, ax_value *out) { ax_closed_call(NULL, NULL, in, 1, out, 1); }
static void no_loss(const ax_value *in, ax_value *out) { ax_grad(NULL, NULL, in, 1, 1, out); }
static void no_mapped(const ax_value *in, ax_value *out) { ax_vmap(NULL, NULL, NULL, in, 1, out, 1); }
static void no_map(const ax_value *in, ax_value *out) { ax_shard_map(NULL, same, NULL, in, 1, out, 1); }
static void too_many_xs(const ax_value *in, ax_value *out) { ax_scan(same, NULL, in, 1, UINT32_MAX, 3, false, out, 0); }
static void no_pairs(const ax_value *in, ax_value *out) { out[0] = ax_ppermute(in[0], "", NULL, 1); }
static void no_such_dimension(const ax_value *in, ax_value *out) { out[0] = ax_all_gather(in[0], "", 9, true); }
static void no_such_handle(const ax_value *in, ax_value *out) { out[0] = ax_neg((ax_value){in[0].trace, 600}); }
static void no_elements(const ax_value *in, ax_value *out) {
  const ax_type none = TEST_TYPE(AX_F32, 0);
  (void)in;
  out[0] = ax_constant(&none, NULL);
}

static const slip slips[] = {
    {"cond: there is no branch 0", no_branches},
    {"cond: there is no branch 1", no_branch},
    {"while: condition: there is no function", no_condition},
    {"scan: body: there is no function", no_body},
    {"closed_call: function: there is no function", no_function},
    {"grad: function: there is no function", no_loss},
    {"vmap: function: there is no function", no_mapped},
    {"shard_map: there is no mesh", no_map},
    {"scan: 1 carries, 4294967295 xs and 0 ys are too many", too_many_xs},
    {"ppermute: there are no pairs", no_pairs},
    {"all_gather: dimension is 9, but there are 2 dimensions", no_such_dimension},
    {"a handle that no step of its trace gave", no_such_handle},
    {NULL, no_elements},
};

static void make_slip(const ax_value *in, ax_value *out, void *context) { ((const slip *)context)->step(in, out); }

static void steps(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, 4, 3), TEST_SCALAR(AX_S32)};
  for (size_t i = 0; i < sizeof slips / sizeof slips[0]; i++) {
    ax_program *program = NULL;
    ax_status status = ax_trace(make_slip, (void *)&slips[i], types, 2, 1, &program);
    if (slips[i].message != NULL) TEST_FAILS(status, AX_INVALID_ARGUMENT, slips[i].message);
    else TEST_OK(status);
    ax_program_release(program);
  }
}

/* --- Texts of meshes --- */

static void meshes(void **state) {
  (void)state;
  static const char *const rows[][2] = {
      {"data=4;model=2", "expected ',' after \"data=4\", got \";model=2\""},
      {"data=1e3", "expected ',' after \"data=1\", got \"e3\""},
      {"data=", "axis \"data\" needs a size of at least 1"},
      {"a_name_that_is_longer_than_it_may_be=2", "the name \"a_name_that_is_longer_than_it_may_be\" has more than 31 bytes"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    ax_mesh mesh;
    TEST_FAILS(ax_mesh_parse(rows[i][0], &mesh), AX_INVALID_ARGUMENT, rows[i][1]);
  }
}

/* --- Arrays --- */

static int released;
static void count_release(void *context) {
  (void)context;
  released++;
}

static void arrays(void **state) {
  (void)state;
  ax_runtime *runtime;
  ax_array *array;
  ax_mesh mesh;
  static float data[8];
  const ax_type type = TEST_TYPE(AX_F32, 8), none = TEST_TYPE(AX_F32, 0);
  ax_type future = type, spread = type;
  ax_part parts[4], nowhere[4];
  future.form = AX_FUTURE;
  spread.spread.varying = UINT64_MAX;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  TEST_OK(ax_mesh_parse("d=4", &mesh));
  for (int i = 0; i < 4; i++) parts[i] = (ax_part){.data = &data[2 * i], .bytes = 8, .release = count_release};
  for (int i = 0; i < 4; i++) nowhere[i] = (ax_part){.release = count_release};
  TEST_FAILS(ax_device_put(runtime, &mesh, "d", &future, data, &array), AX_INVALID_ARGUMENT, "future<f32[8]> is no array");
  TEST_OK(ax_device_put(runtime, &mesh, "d", &spread, data, &array)); /* axis sets are not looked at, and not kept */
  assert_true(ax_type_equal(ax_array_get_type(array), &type));
  ax_array_release(array);
  TEST_FAILS(ax_array_from_parts(runtime, &mesh, "d", &type, NULL, 4, &array), AX_INVALID_ARGUMENT, "there is no list of parts");
  parts[2].data = NULL;
  TEST_FAILS(ax_array_from_parts(runtime, &mesh, "d", &type, parts, 4, &array), AX_INVALID_ARGUMENT, "part 2 is at no address");
  assert_int_equal(released, 0);
  TEST_OK(ax_array_from_parts(runtime, &mesh, "d", &none, nowhere, 4, &array)); /* of no elements, nowhere */
  ax_array_release(array);
  assert_int_equal(released, 4);
  ax_runtime_release(runtime);
}

/* --- Files --- */

static void files(void **state) {
  (void)state;
  ax_host_array array;
  ax_npz *npz;
  float data[1] = {0};
  const ax_host_array one = {.dtype = AX_F32, .rank = 1, .dims = {1}, .data = data};
  TEST_FAILS(ax_npy_read(NULL, &array), AX_INVALID_ARGUMENT, "there is no path");
  TEST_FAILS(ax_npz_read(NULL, &npz), AX_INVALID_ARGUMENT, "there is no path");
  TEST_FAILS(ax_csv_read(NULL, &array), AX_INVALID_ARGUMENT, "there is no path");
  TEST_FAILS(ax_npy_write(NULL, &one), AX_INVALID_ARGUMENT, "there is no path");
  TEST_FAILS(ax_npy_write("/nowhere/x.npy", NULL), AX_INVALID_ARGUMENT, "there is no array");
  TEST_FAILS(ax_npz_write(NULL, (const char *[]){"a"}, &one, 1), AX_INVALID_ARGUMENT, "there is no path");
  TEST_FAILS(ax_npz_write("/nowhere/x.npz", NULL, &one, 1), AX_INVALID_ARGUMENT, "there is no list of names");
  TEST_FAILS(ax_npz_write("/nowhere/x.npz", (const char *[]){"a"}, NULL, 1), AX_INVALID_ARGUMENT, "there is no list of arrays");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(steps), cmocka_unit_test(meshes), cmocka_unit_test(arrays), cmocka_unit_test(files)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
