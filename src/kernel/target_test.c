/* Targets: their texts, and kernels that do not fit. */
#include <string.h>

#include "axle/axle.h"
#include "support/cmocka.h"
#include "support/tensor.h"

static void test_texts(void **state) {
  (void)state;
  ax_target target;
  TEST_OK(ax_target_parse("h200", &target));
  assert_int_equal(target.space[AX_SPACE_VMEM].bytes, 227 * 1024);
  assert_string_equal(target.space[AX_SPACE_VMEM].called, "SMEM");
  assert_int_equal(target.space[AX_SPACE_SMEM].within, AX_SPACE_VMEM);
  TEST_OK(ax_target_parse("tpu-like", &target));
  assert_true(target.space[AX_SPACE_HBM].indirect);
  TEST_OK(ax_target_parse(" vmem bytes=3KB\tcalled=L1 ;\n hbm direct=yes;", &target));
  assert_int_equal(target.space[AX_SPACE_VMEM].bytes, 3000);
  assert_int_equal(target.space[AX_SPACE_HBM].bytes, -1);
  TEST_OK(ax_target_parse("", &target));
  TEST_FAILS(ax_target_parse("vmem bytes=1; gmem bytes=2", &target), AX_INVALID_ARGUMENT, "entry 2: no memory space: \"gmem\"");
  TEST_FAILS(ax_target_parse("vmem bytes=1XiB", &target), AX_INVALID_ARGUMENT, "not a size: \"1XiB\"");
  TEST_FAILS(ax_target_parse("vmem bytes=99999999999GiB", &target), AX_INVALID_ARGUMENT, "not a size");
  TEST_FAILS(ax_target_parse("vmem align=0", &target), AX_INVALID_ARGUMENT, "align");
  TEST_FAILS(ax_target_parse("vmem within=moon", &target), AX_INVALID_ARGUMENT, "moon");
  TEST_FAILS(ax_target_parse("vmem bytes", &target), AX_INVALID_ARGUMENT, "KEY=VALUE");
  TEST_FAILS(ax_target_parse(NULL, &target), AX_INVALID_ARGUMENT, "text");
}

static AX_BODY(nothing) {}
static AX_BODY(inner) { ax_run_scoped(AX_LIST(1, &(ax_scratch){.type = AX_VMEM(AX_F32, 20)}), NULL, AX_FN(nothing, 1, 0), NULL); }
static AX_BODY(two_scopes) { /* one after the other: not alive at once */
  ax_run_scoped(AX_LIST(1, &(ax_scratch){.type = AX_VMEM(AX_F32, 16)}), NULL, AX_FN(nothing, 1, 0), NULL);
  ax_run_scoped(AX_LIST(1, &(ax_scratch){.type = AX_VMEM(AX_F32, 16)}), NULL, AX_FN(inner, 1, 0), NULL);
}
static AX_BODY(loads) { ax_ref_store(in[1], ax_ref_load(in[0])); }

typedef struct made {
  const char *target, *threads;
  ax_fn body;
  const char *mesh;
} made;

static AX_BODY(make) {
  const made *m = context;
  ax_core_mesh mesh = {.core = "core", .threads = m->threads};
  TEST_OK(ax_mesh_parse(m->mesh, &mesh.mesh));
  const ax_scratch scratch[] = {{.type = AX_VMEM(AX_S8, 10)}, {.type = ax_semaphore_type(AX_DIMS(3))}};
  const ax_kernel_options options = {.target = m->target, .scratch = {AX_LIST(2, scratch)}};
  ax_mpmd_map(AX_LIST(1, &mesh), &m->body, &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 4)), out);
}

static ax_status traced(made m) {
  ax_program *program;
  ax_status status = ax_trace(AX_CLOSURE(make, 1, 1, &m), AX_TYPES(AX_TYPE(AX_F32, 4)), &program);
  ax_program_release(program);
  return status;
}

static void test_kernels(void **state) {
  (void)state;
  const ax_fn scopes = AX_FN(two_scopes, 4, 0);
  TEST_OK(traced((made){"vmem bytes=154", NULL, scopes, ""})); /* 10 + 64 + 80 */
  TEST_FAILS(traced((made){"vmem bytes=153 called=L1", NULL, scopes, ""}), AX_INVALID_ARGUMENT,
             "it takes 154 bytes of L1, of 153 that the target has:\n  80  scoped 0, ref<f32[20] vmem>");
  TEST_FAILS(traced((made){"vmem bytes=153", NULL, scopes, ""}), AX_INVALID_ARGUMENT, "\n  10  scratch 0, ref<s8[10] vmem>");
  TEST_OK(traced((made){"vmem bytes=208 align=16", NULL, scopes, ""}));
  TEST_OK(traced((made){"vmem bytes=160 align=16", NULL, scopes, ""})); /* 16 + 64 + 80 */
  TEST_FAILS(traced((made){"vmem bytes=159 align=16", NULL, scopes, ""}), AX_INVALID_ARGUMENT, "160 bytes");
  /* Threads have scratch together, and scopes each for itself. */
  TEST_OK(traced((made){"vmem bytes=298", "wg", scopes, "wg=2"}));
  TEST_FAILS(traced((made){"vmem bytes=297", "wg", scopes, "wg=2"}), AX_INVALID_ARGUMENT,
             "160  scoped 0, ref<f32[20] vmem>, 2 times");
  TEST_FAILS(traced((made){"semaphores count=2", NULL, scopes, ""}), AX_INVALID_ARGUMENT, "it takes 3 of semaphores, of 2");
  TEST_FAILS(traced((made){"vmem bytes=170; semaphores bytes=8 within=vmem", NULL, scopes, ""}), AX_INVALID_ARGUMENT,
             "24  scratch 1, semaphore[3]");
  TEST_FAILS(traced((made){"tpu-like", NULL, AX_FN(loads, 4, 0), ""}), AX_INVALID_ARGUMENT,
             "the target's cores reach HBM by copies alone");
  TEST_OK(traced((made){"h200", NULL, AX_FN(loads, 4, 0), ""}));
  TEST_FAILS(traced((made){"cray", NULL, scopes, ""}), AX_INVALID_ARGUMENT, "no memory space: \"cray\"");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts), cmocka_unit_test(test_kernels)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
