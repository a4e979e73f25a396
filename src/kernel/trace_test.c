/* Kernels traced: what each function makes, as text that reads back to the same. */
#include <string.h>

#include "axle/kernel.h"
#include "axle/ops.h"
#include "axle/transform.h"
#include "kernel/kernel.h"
#include "support/cmocka.h"
#include "support/run.h"

/* --- Help --- */

/* The program's text has each part; it reads back to an equal program, which is sound. */
static void check_text(ax_program *program, const char *const *parts) {
  char *text, *again;
  ax_program *read;
  TEST_OK(ax_program_print(program, &text));
  for (; *parts != NULL; parts++)
    if (strstr(text, *parts) == NULL) fail_msg("no \"%s\" in\n%s", *parts, text);
  TEST_OK(ax_program_verify(program));
  ax_status status = ax_program_parse(text, strlen(text), "text", &read);
  if (status != AX_OK) fail_msg("%s\n%s", ax_message(), text);
  TEST_OK(ax_program_verify(read));
  assert_true(ax_program_equal(program, read));
  TEST_OK(ax_program_print(read, &again));
  assert_string_equal(text, again);
  ax_string_free(text);
  ax_string_free(again);
  ax_program_release(read);
  ax_program_release(program);
}

#define PARTS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* --- The smallest --- */

static AX_BODY(add_refs) { ax_ref_store(in[2], ax_add(ax_ref_load(in[0]), ax_ref_load(in[1]))); }

static AX_BODY(call_add) {
  ax_kernel_call(&(ax_kernel){.out_count = 1, .outs = AX_TYPES(AX_TYPE(AX_F32, 8))}, AX_FN(add_refs, 3, 0), 2, in, out);
}

static void without_a_grid(void **state) {
  (void)state;
  ax_program *program;
  TEST_OK(ax_trace(AX_FN(call_add, 2, 1), AX_TYPES(AX_TYPE(AX_F32, 8), AX_TYPE(AX_F32, 8)), &program));
  check_text(program, PARTS("kernel_call", "ref<f32[8] vmem>", "ref_load[masked=false] a", "ref_store[masked=false] c"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_a_grid),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
