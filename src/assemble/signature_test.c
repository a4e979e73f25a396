/* Programs assembled without a runtime: what the signature says of their inputs and results. */
#include "assemble/signature.h"

#include "assemble/assemble.h"
#include "axle/collectives.h"
#include "axle/ops.h"
#include "support/cmocka.h"
#include "support/run.h"

typedef struct assembled {
  ax_compiler *jit;
  ax_signature signature;
  ax_compiled compiled;
} assembled;

static void assemble(assembled *a, ax_program *program, const ax_compile_options *options) {
  static const ax_hooks none;
  TEST_OK(ax_jit_create(NULL, &a->jit));
  const ax_assembler assembler = {.jit = a->jit, .hooks = &none, .max_devices = 8};
  TEST_OK(ax_assemble(&assembler, &(ax_source){.program = program, .options = options}, &a->signature, &a->compiled));
}

static void deinit(assembled *a) {
  ax_compiled_deinit(&a->compiled, a->jit);
  ax_jit_destroy(a->jit);
}

static void expect_in(const assembled *a, uint32_t i, ax_signature_in wanted) {
  const ax_signature_in *in = &a->signature.in[i];
  assert_int_equal(in->place, wanted.place);
  assert_int_equal(in->donated, wanted.donated);
  assert_int_equal(in->asked, wanted.asked);
  assert_int_equal(in->donate, wanted.donate);
  assert_int_equal(in->is_passed, wanted.is_passed);
}

static void expect_out(const assembled *a, uint32_t k, uint32_t made, uint32_t input, bool has_spec) {
  const ax_signature_out *out = &a->signature.out[k];
  assert_int_equal(out->made, made);
  assert_int_equal(out->input, input);
  assert_int_equal(out->spec != NULL, has_spec);
}

static void some_of_it(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[3];
  out[1] = ax_neg(in[2]);
  out[2] = ax_neg(in[0]);
  out[3] = in[3];
}

/* (a, b, c, d) -> (d, -c, -a, d): b is unused, and d is passed on. */
static void pruned(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, 4), TEST_TYPE(AX_F32, 5), TEST_TYPE(AX_F32, 6), TEST_TYPE(AX_F32, 7)};
  ax_program *program = test_trace(some_of_it, NULL, types, 4, 4);
  assembled a;
  assemble(&a, program, &(ax_compile_options){.donate = AX_ARGS(1, 2, 3)});
  assert_int_equal(a.signature.in_count, 4);
  assert_int_equal(a.signature.out_count, 4);
  assert_false(a.signature.plain);
  assert_int_equal(a.compiled.plan->in_count, 2);
  expect_in(&a, 0, (ax_signature_in){.place = 0, .donated = AX_NONE});
  expect_in(&a, 1, (ax_signature_in){.place = AX_NONE, .donated = AX_NONE, .asked = true});
  expect_in(&a, 2, (ax_signature_in){.place = 1, .donated = 1, .asked = true, .donate = true});
  expect_in(&a, 3, (ax_signature_in){.place = AX_NONE, .donated = 0, .asked = true, .donate = true, .is_passed = true});
  assert_int_equal(a.signature.kept[0], 0);
  assert_int_equal(a.signature.kept[1], 2);
  expect_out(&a, 0, AX_NONE, 3, false);
  expect_out(&a, 1, 0, AX_NONE, true);
  expect_out(&a, 2, 1, AX_NONE, true);
  expect_out(&a, 3, AX_NONE, 3, false);
  deinit(&a);
  ax_program_release(program);
}

static void keep_unused(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, 4), TEST_TYPE(AX_F32, 5), TEST_TYPE(AX_F32, 6), TEST_TYPE(AX_F32, 7)};
  ax_program *program = test_trace(some_of_it, NULL, types, 4, 4);
  assembled a;
  assemble(&a, program, &(ax_compile_options){.keep_unused = true});
  for (uint32_t i = 0; i < 4; i++) expect_in(&a, i, (ax_signature_in){.place = i, .donated = AX_NONE, .is_passed = i == 3});
  deinit(&a);
  ax_program_release(program);
}

static void second_as_it_is(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_psum(in[0], "d");
  out[1] = in[1];
}

/* A result that the shard_map returns in the blocks in which it took it is its input, with a layout of its own. */
static void over_a_mesh(void **state) {
  (void)state;
  const test_map map = {"d=4", {"d", "d"}, {"", "d"}, .body = second_as_it_is};
  const ax_type types[] = {TEST_TYPE(AX_F32, 8), TEST_TYPE(AX_F32, 12)};
  ax_program *program = test_trace_map(&map, types);
  assembled a;
  assemble(&a, program, &(ax_compile_options){0});
  assert_int_equal(a.compiled.devices, 4);
  assert_int_equal(a.signature.mesh.count, 1);
  for (uint32_t i = 0; i < 2; i++) assert_int_equal(a.signature.in[i].spec->count[0], 1);
  expect_in(&a, 0, (ax_signature_in){.place = 0, .donated = AX_NONE});
  expect_in(&a, 1, (ax_signature_in){.place = AX_NONE, .donated = AX_NONE, .is_passed = true});
  expect_out(&a, 0, 0, AX_NONE, true);
  expect_out(&a, 1, AX_NONE, 1, true);
  assert_int_equal(a.signature.out[0].spec->count[0], 0);
  assert_int_equal(a.signature.out[1].spec->count[0], 1);
  deinit(&a);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(pruned), cmocka_unit_test(keep_unused), cmocka_unit_test(over_a_mesh)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
