/* What each process gives, in one of them or in all; and failures, which are all processes'. */
#include "processes/collect.h"

#include <stdlib.h>

#include "support/parties.h"

static void describe(const void *context, ax_text *text) {
  (void)context;
  ax_text_add(text, "collects");
}
static const ax_doing doing = {7, describe, NULL, NULL};

/* Process p gives p times `each` bytes, each of which is p. */
static ax_status collect(ax_processes *processes, uint32_t root, size_t each) {
  const uint32_t own = processes->rule.process, count = processes->rule.processes;
  ax_collected out[MOST_PARTIES];
  char *mine = malloc(own * each + 1);
  memset(mine, (int)own, own * each);
  ax_status status = ax_collect_bytes(processes, &doing, AX_OK, root, mine, own * each, out);
  free(mine);
  AX_TRY(status);
  for (uint32_t p = 0; p < count; p++) {
    const bool here = root == AX_NONE || root == own;
    assert_int_equal(out[p].data != NULL, here);
    assert_int_equal(out[p].bytes, here ? p * each : 0);
    for (size_t i = 0; i < out[p].bytes; i++) assert_int_equal(((char *)out[p].data)[i], p);
    if (here) assert_int_equal(((char *)out[p].data)[out[p].bytes], 0);
  }
  ax_collected_deinit(out, count);
  assert_null(out[0].data);
  return AX_OK;
}

static ax_status collect_all(ax_processes *processes) {
  static const size_t sizes[] = {0, 1, 100, AX_SHORT_PAYLOAD, 3 * AX_SHORT_PAYLOAD + 1};
  for (size_t s = 0; s < AX_COUNT(sizes); s++) {
    AX_TRY(collect(processes, AX_NONE, sizes[s]));
    for (uint32_t root = 0; root < processes->rule.processes; root++) AX_TRY(collect(processes, root, sizes[s]));
  }
  return AX_OK;
}

static void bytes_of_all_processes_come(void **state) {
  (void)state;
  for (uint32_t count = 1; count <= 5; count++) assert_int_equal(in_parties(count, collect_all, NULL), AX_OK);
}

static ax_status one_has_failed(ax_processes *processes) {
  ax_collected out[MOST_PARTIES];
  ax_status status = processes->rule.process == 1 ? ax_error(AX_IO_ERROR, "no such file") : AX_OK;
  status = ax_collect_bytes(processes, &doing, status, AX_NONE, "some", 4, out);
  assert_null(out[0].data);
  return status;
}

static void a_failure_is_all_processes(void **state) {
  char message[512];
  (void)state;
  assert_int_equal(in_parties(3, one_has_failed, message), AX_IO_ERROR);
  assert_string_equal(message, "process 1: no such file");
}

static ax_status one_collects_something_else(ax_processes *processes) {
  ax_collected out[MOST_PARTIES];
  const ax_doing other = {9, describe, NULL, NULL};
  return ax_collect_bytes(processes, processes->rule.process == 2 ? &other : &doing, AX_OK, 0, "some", 4, out);
}

static void what_differs_is_refused(void **state) {
  (void)state;
  assert_int_equal(in_parties(3, one_collects_something_else, NULL), AX_INVALID_ARGUMENT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bytes_of_all_processes_come),
      cmocka_unit_test(a_failure_is_all_processes),
      cmocka_unit_test(what_differs_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
