/* Clocks that are ahead by what the test knows. */
#include "processes/clocks.h"

#include <time.h>

#include "support/parties.h"

static _Thread_local int64_t ahead;

static int64_t wrong_clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec + ahead;
}

static ax_status compare(ax_processes *processes) {
  ax_clock_ahead found;
  const uint32_t own = processes->rule.process;
  ahead = own == 0 ? 1000 : (int64_t)own * -5000000000;
  AX_TRY(ax_clocks_compare(processes, AX_OK, wrong_clock, 77 + own, &found));
  assert_int_equal(found.given, 77);
  if (own == 0) {
    assert_int_equal(found.ahead, 0);
    assert_int_equal(found.within, 0);
    return AX_OK;
  }
  const int64_t wrong = found.ahead - (ahead - 1000);
  assert_true(found.within > 0);
  assert_true(wrong <= found.within && -wrong <= found.within);
  return AX_OK;
}

static void clocks_are_found_as_they_are(void **state) {
  (void)state;
  for (uint32_t count = 1; count <= 5; count++) assert_int_equal(in_parties(count, compare, NULL), AX_OK);
}

static ax_status compare_after_failure(ax_processes *processes) {
  ax_clock_ahead found;
  ax_status status = processes->rule.process == 2 ? ax_error(AX_IO_ERROR, "no run") : AX_OK;
  return ax_clocks_compare(processes, status, wrong_clock, 0, &found);
}

static void a_failure_is_all_processes(void **state) {
  char message[512];
  (void)state;
  assert_int_equal(in_parties(3, compare_after_failure, message), AX_IO_ERROR);
  assert_string_equal(message, "process 2: no run");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(clocks_are_found_as_they_are),
      cmocka_unit_test(a_failure_is_all_processes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
