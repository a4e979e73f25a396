/* What the checker says of kernels besides findings. */
#include <string.h>

#include "axle/axle.h"
#include "support/cmocka.h"
#include "support/tensor.h"

typedef struct noted {
  bool stores, alias, scratch, anew, parallel; /* anew: the scratch is written before it is read */
} noted;

static AX_BODY(by_row) {
  out[0] = in[0];
  out[1] = ax_integer(0);
}

static AX_BODY_OF(body, const noted, n) {
  ax_ref_store(in[1], ax_neg(ax_ref_load(in[0])));
  if (n->stores) ax_ref_store(in[0], ax_real(0));
  if (n->anew) ax_ref_store(in[2], ax_real(1));
  if (n->scratch) ax_ref_add(in[2], ax_real(1));
}

static AX_BODY_OF(kernel, const noted, n) {
  const ax_block_spec rows = {.block = {AX_DIMS(1, 4)}, .index_map = by_row};
  const ax_scratch scratch = {.type = AX_VMEM(AX_F32, 4)};
  const ax_kernel k = {.grid = {AX_DIMS(3)},
                       .semantics = {AX_SEMANTICS(n->parallel ? AX_PARALLEL : AX_ARBITRARY)},
                       .in_specs = {AX_BLOCK_SPECS(rows)},
                       .out_specs = {AX_BLOCK_SPECS(rows)},
                       .outs = {AX_TYPES(AX_TYPE(AX_F32, 3, 4))},
                       .options = {.scratch = {AX_LIST(n->scratch ? 1 : 0, &scratch)},
                                   .aliases = {AX_LIST(n->alias ? 1 : 0, ((const uint32_t[][2]){{0, 0}}))}}};
  ax_kernel_call(&k, AX_CLOSURE(body, 2 + n->scratch, 0, n), AX_LIST(1, in), AX_LIST(1, out));
}

static void check_notes(noted n, const char *lost, const char *parallel) {
  const ax_type type = AX_TYPE(AX_F32, 3, 4);
  ax_program *program = test_trace(kernel, &n, &type, 1, 1);
  ax_check_report *report;
  TEST_OK(ax_check(program, NULL, &report));
  const char *notes = report->kernels[0].notes;
  if ((strstr(notes, "operand 0 is stored to") != NULL) != (lost != NULL)) fail_msg("%s", notes);
  if ((strstr(notes, "what points along AX_PARALLEL") != NULL) != (parallel != NULL)) fail_msg("%s", notes);
  if (lost == NULL && parallel == NULL) assert_string_equal(notes, "");
  ax_check_report_release(report);
  ax_program_release(program);
}

static void test_notes(void **state) {
  (void)state;
  check_notes((noted){0}, NULL, NULL);
  check_notes((noted){.stores = true}, "lost", NULL);
  check_notes((noted){.stores = true, .alias = true}, NULL, NULL);
  check_notes((noted){.parallel = true}, NULL, NULL); /* each point has a row of its own */
  check_notes((noted){.parallel = true, .scratch = true}, NULL, "parallel"); /* the first point reads memory that was never set */
  check_notes((noted){.parallel = true, .scratch = true, .anew = true}, NULL, NULL);
  check_notes((noted){.parallel = true, .stores = true}, "lost", NULL);
  check_notes((noted){.scratch = true}, NULL, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_notes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
