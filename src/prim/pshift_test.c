/* pshift: offsets of every size against their definition, over devices and over a named axis of vmap; and what is refused. */
#include "axle/collectives.h"
#include "axle/transform.h"
#include "support/cmocka.h"
#include "support/run.h"
#include "support/tensor.h"

enum { members = 5 };
static const int64_t offsets[] = {0, 1, -1, 4, -4, 5, -5, 6, -13, INT64_MAX, INT64_MIN};
enum { count = sizeof offsets / sizeof offsets[0] };

/* Of each offset: in a ring, and not. */
static void shifts(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  for (int i = 0; i < count; i++) {
    out[2 * i] = ax_pshift(in[0], "d", offsets[i], true);
    out[2 * i + 1] = ax_pshift(in[0], "d", offsets[i], false);
  }
}

static void over_devices(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=5", &mesh));
  ax_shard_map(&mesh, "d -> d", AX_FN(shifts, 1, 2 * count), in, out);
}

static void over_a_batch(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_vmap(&(ax_vmap_options){.axis_name = "d"}, AX_FN(shifts, 1, 2 * count), in, out);
}

static double wanted(int64_t offset, bool wrap, int64_t member) {
  int64_t reduced = offset % members;
  if (wrap) return (double)((member - reduced + 2 * members) % members + 1);
  if (offset <= -members || offset >= members) return 0;
  return member - offset >= 0 && member - offset < members ? (double)(member - offset + 1) : 0;
}

static void check(ax_function function) {
  const ax_type type = TEST_TYPE(AX_S32, members);
  ax_program *program = test_trace(function, NULL, &type, 1, 2 * count);
  ax_tensor *in = test_tensor(type, (double[]){1, 2, 3, 4, 5}), *out[2 * count];
  test_run(program, &in, out);
  for (int i = 0; i < 2 * count; i++)
    for (int64_t m = 0; m < members; m++)
      if (test_get(out[i], m) != wanted(offsets[i / 2], i % 2 == 0, m))
        fail_msg("by %lld%s: member %lld has %g", (long long)offsets[i / 2], i % 2 == 0 ? ", wrapped" : "", (long long)m, test_get(out[i], m));
  TEST_EVERY_WAY(program, &in, 0);
  test_release(&in, 1);
  test_release(out, 2 * count);
  ax_program_release(program);
}

static void offsets_of_all_sizes(void **state) {
  (void)state;
  check(over_devices);
  check(over_a_batch);
}

static void unknown(const ax_value *in, ax_value *out, void *context) { out[0] = ax_pshift(in[0], context, 1, true); }

static void future(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_pshift(ax_start(ax_pshift(in[0], "d", 1, true)), "d", 1, true);
}

static void refused(void **state) {
  (void)state;
  ax_mesh mesh;
  ax_program *program;
  const ax_type type = TEST_TYPE(AX_S32, members);
  TEST_OK(ax_mesh_parse("d=5", &mesh));
  TEST_FAILS(ax_trace_on(&mesh, AX_CLOSURE(unknown, 1, 1, "e"), &type, &program), AX_INVALID_ARGUMENT, "pshift: unknown axis name \"e\"");
  TEST_FAILS(ax_trace_on(&mesh, AX_CLOSURE(unknown, 1, 1, "d,d"), &type, &program), AX_INVALID_ARGUMENT, "pshift: ");
  TEST_FAILS(ax_trace_on(&mesh, AX_FN(unknown, 1, 1), &type, &program), AX_INVALID_ARGUMENT, "pshift: ");
  TEST_FAILS(ax_trace_on(&mesh, AX_FN(future, 1, 1), &type, &program), AX_INVALID_ARGUMENT, "pshift: operand 0 is future<s32[5]");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(offsets_of_all_sizes), cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
