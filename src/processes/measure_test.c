/* Messages are measured, among all processes and some; and what times come to. The processes are threads of this one. */
#include "processes/measure.h"

#include <pthread.h>

#include "base/base.h"
#include "processes/within.h"
#include "support/cmocka.h"
#include "support/tensor.h"

typedef struct party {
  ax_transport *transport;
  uint32_t processes, stride;
  ax_status status;
  ax_measured measured;
  pthread_t thread;
} party;

static void *measure(void *context) {
  party *p = context;
  p->status = ax_messages_measure(p->transport, p->processes, p->stride, &p->measured);
  p->transport->functions->destroy(p->transport);
  return NULL;
}

static void run(uint32_t count, uint32_t processes, uint32_t stride) {
  ax_transport *transports[4];
  party parties[4];
  assert_int_equal(ax_within_create(count, transports), AX_OK);
  for (uint32_t p = 0; p < count; p++) {
    parties[p] = (party){.transport = transports[p], .processes = processes, .stride = stride};
    pthread_create(&parties[p].thread, NULL, measure, &parties[p]);
  }
  for (uint32_t p = 0; p < count; p++) {
    pthread_join(parties[p].thread, NULL);
    assert_int_equal(parties[p].status, AX_OK);
  }
  for (int s = 0; s < AX_MEASURED_SIZES; s++) {
    assert_true(parties[0].measured.one_by_one[s] > 0 && parties[0].measured.one_by_one[s] < 1e3);
    assert_true(parties[0].measured.all_at_once[s] > 0 && parties[0].measured.all_at_once[s] < 1e3);
    if (count > processes) assert_true(parties[count == 3 && stride == 2 ? 1 : count - 1].measured.one_by_one[s] == 0);
  }
}

static void among_processes(void **state) {
  (void)state;
  run(2, 2, 1);
  run(3, 3, 1);
  run(3, 2, 1);
  run(3, 2, 2); /* the first and the last */
}

/* Times of a link of which all is known give it back. */
static void rates(void **state) {
  (void)state;
  const ax_link_rates link = {.message = 1e-6, .handshake = 5e-6, .message_bytes = 2e9, .transfer = 1e10,
                              .most_short = AX_NETWORK_SHORT};
  ax_measured of = {0};
  for (int s = 0; s < AX_MEASURED_SIZES; s++)
    of.one_by_one[s] = ax_link_seconds(&link, (double)ax_measured_sizes[s]);
  const ax_link_rates made = ax_measured_rates(&of, AX_NETWORK_SHORT);
  TEST_NEAR(made.message, 1e-6 + 4 / 2e9, 1e-15);
  TEST_NEAR(made.handshake / link.handshake, 1, 1e-9);
  TEST_NEAR(made.message_bytes / link.message_bytes, 1, 1e-9);
  TEST_NEAR(made.transfer / link.transfer, 1, 1e-9);
  of.one_by_one[AX_MEASURED_SIZES - 2] = 1; /* other programs ran meanwhile */
  const ax_link_rates disturbed = ax_measured_rates(&of, AX_NETWORK_SHORT);
  assert_true(disturbed.transfer > 0 && disturbed.transfer < link.transfer && disturbed.handshake >= disturbed.message);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(among_processes), cmocka_unit_test(rates)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
