#include "run/lent.h"

enum { least_lent = 32 << 10 }; /* a shorter payload is copied sooner than it is read */

ax_status ax_lent_send(ax_lent *lent, ax_remote *r, uint32_t to, ax_envelope *envelope, const void *payload) {
  if (envelope->bytes < least_lent) return ax_remote_send(r, to, envelope, payload);
  AX_TRY(ax_grow(&lent->loans, sizeof lent->loans[0], lent->count, 1, &lent->capacity));
  if (lent->count == 0) lent->since = ax_seconds();
  lent->bytes = (int64_t)envelope->bytes;
  AX_TRY(ax_remote_lend(r, to, envelope, payload, &lent->loans[lent->count]));
  lent->count += lent->loans[lent->count].ticket != 0;
  return AX_OK;
}

static void wait_for(ax_remote *r, const ax_loan *loan, double until, bool handles) {
  ax_transport *transport = r->together.ending.processes->transport;
  bool any;
  while (!transport->functions->is_returned(transport, loan) && ax_seconds() < until) {
    if (handles) (void)ax_remote_poll(r);
    else (void)!ax_processes_poll(r->together.ending.processes, &any); /* who polls next reports */
  }
}

ax_status ax_lent_settle(ax_lent *lent, ax_remote *r, bool handles) {
  static const double seconds_at_least = 5e-6, bytes_per_second = 8e9;
  ax_transport *transport = r->together.ending.processes->transport;
  ax_status status = AX_OK;
  for (uint32_t i = 0; i < lent->count; i++) {
    wait_for(r, &lent->loans[i], lent->since + seconds_at_least + (double)lent->bytes * (i + 1) / bytes_per_second, handles);
    ax_status settled = transport->functions->settle(transport, &lent->loans[i]);
    if (status == AX_OK) status = settled;
  }
  lent->count = 0;
  return status;
}
