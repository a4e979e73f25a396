/* What code is found under: all that decides how it is made. */
#include "jit/llvm/target.h"

#include <string.h>

#include "machine/machine.h"
#include "support/cmocka.h"

static ax_digest target_on(const char *machine) {
  ax_description m;
  ax_digest digest;
  assert_int_equal(ax_machine_parse(machine, &m), AX_OK);
  ax_machine_pretend(&m);
  assert_true(ax_jit_target(0, "a processor", &digest));
  ax_machine_pretend(NULL);
  return digest;
}

/* Loops are blocked, and rows prefetched, by the size of caches. */
static void caches_decide_code(void **state) {
  (void)state;
  const ax_digest one = target_on("l1 32 KiB"), again = target_on("l1 32 KiB"), others[] = {target_on("l1 64 KiB"), target_on("l1 32 KiB\nl2 2 MiB"),
                                                                                          target_on("l1 32 KiB\nl3 16 MiB")};
  assert_memory_equal(&one, &again, sizeof one);
  for (size_t i = 0; i < AX_COUNT(others); i++) assert_memory_not_equal(&one, &others[i], sizeof one);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(caches_decide_code)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
