/* axle devices --messages: measures messages between the processes that mpirun has started. */
#include "cli.h"
#include "machine/machine.h"
#include "processes/measure.h"
#include "processes/mpi.h"
#include "processes/ways.h"

/* What was measured of one kind of link; the text is a table of comments. */
typedef struct messages {
  bool on_host, between_hosts;
  ax_link_rates host, network;
  ax_text text;
} messages;

static void add_table(messages *m, uint32_t processes, const char *where, const ax_measured *measured) {
  for (int s = 0; s < AX_MEASURED_SIZES; s++)
    ax_text_add(&m->text, "# %9u  %10llu  %12.2f  %12.2f  %s\n", processes, (unsigned long long)ax_measured_sizes[s],
                1e6 * measured->one_by_one[s], 1e6 * measured->all_at_once[s], where);
}

/* The rows of chains (processes/ways.c) that these speeds give. */
static void add_ways(messages *m, const ax_link_rates *link) {
  static const uint32_t cases[][2] = {{2, 8}, {2, 4}, {2, 2}, {2, 1}, {64, 8}, {64, 4}, {64, 2}, {64, 1}};
  ax_text_add(&m->text, "# a chain of processes would add faster than runs do from so many bytes on:\n"
                        "# processes     members         bytes\n");
  for (size_t i = 0; i < AX_COUNT(cases); i++) {
    const uint64_t bytes = ax_chain_pays(link, cases[i][0], cases[i][1]);
    if (bytes == UINT64_MAX) ax_text_add(&m->text, "# %9u  %10u         never\n", cases[i][0], cases[i][1]);
    else ax_text_add(&m->text, "# %9u  %10u  %12llu\n", cases[i][0], cases[i][1], (unsigned long long)bytes);
  }
}

/* Pairs, and then more and more processes; if there are several hosts, the first and the last process. Those of the first host come first,
   as launchers number them. All processes measure the same: whether they are on one host, all of them know. */
static ax_status measure_all(ax_transport *t, uint32_t on_host, messages *m) {
  ax_measured measured;
  ax_text_add(&m->text, "# messages, as runs send them, in us:\n# processes       bytes    one by one   all at once\n");
  for (uint32_t count = 2; count <= t->processes; count = count < t->processes && 2 * count > t->processes ? t->processes : 2 * count) {
    AX_TRY(ax_messages_measure(t, count, 1, &measured));
    add_table(m, count, count <= on_host ? "" : "on several hosts", &measured);
    if (count == 2 && on_host > 1) m->host = ax_measured_rates(&measured, AX_HOST_SHORT), m->on_host = true;
    if (count == 2 && on_host == 1) m->network = ax_measured_rates(&measured, AX_NETWORK_SHORT), m->between_hosts = true;
  }
  if (on_host == t->processes) return AX_OK;
  AX_TRY(ax_messages_measure(t, 2, t->processes - 1, &measured));
  add_table(m, 2, "on two hosts", &measured);
  m->network = ax_measured_rates(&measured, AX_NETWORK_SHORT);
  m->between_hosts = true;
  return AX_OK;
}

/* Process 0 prints. */
static ax_status measure_messages(messages *m, bool *prints) {
  ax_transport *t;
  AX_TRY(ax_mpi_create(NULL, &t));
  *prints = t->process == 0;
  const uint32_t on_host = t->beside == t->processes ? t->processes : t->beside > 1 ? t->beside : 1;
  ax_status status = t->processes > 1 ? measure_all(t, on_host, m)
                                      : ax_error(AX_INVALID_ARGUMENT, "--messages: there is one process; mpirun -n 2 starts two");
  if (status == AX_OK) add_ways(m, m->on_host ? &m->host : &m->network);
  t->functions->destroy(t);
  return status;
}

static void put_rates(ax_known *facts, ax_fact first, const ax_link_rates *link) {
  const double values[] = {link->message, link->message_bytes, link->handshake, link->transfer};
  for (size_t i = 0; i < AX_COUNT(values); i++) facts[(size_t)first + i] = (ax_known){values[i], AX_SOURCE_MEASURED};
}

ax_status messages_print(void) {
  messages m = {0};
  bool prints = false;
  ax_known known[AX_FACT_COUNT];
  ax_status status = measure_messages(&m, &prints);
  if (status == AX_OK && prints) keep_speeds();
  for (int f = 0; status == AX_OK && prints && f < AX_FACT_COUNT; f++) known[f] = ax_machine_know((ax_fact)f);
  if (m.on_host) put_rates(known, AX_FACT_MESSAGE, &m.host);
  if (m.between_hosts) put_rates(known, AX_FACT_NETWORK_MESSAGE, &m.network);
  if (status == AX_OK && prints) status = facts_print("", known, m.text.data);
  ax_text_deinit(&m.text);
  return status;
}
