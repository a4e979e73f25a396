/* See ways.h. */
#include "processes/ways.h"

#include <math.h>

#include "base/base.h"

const ax_way_record ax_ways[AX_WAY_COUNT] = {
    [AX_WAY_GATHER] = {"gather", false, true},
    [AX_WAY_CHAIN] = {"chain", true, false},
};

/* With the speeds that are assumed of one host (ways_test.c compares them; `axle devices --messages` prints the rows of a machine
   that it has measured). What is short is gathered, and so are few contributions, since a chain carries the data twice. */
const ax_way_row ax_way_rows[] = {
    {AX_WAY_CHAIN, 2, 4, 16 << 10},
    {AX_WAY_CHAIN, 2, 2, 128 << 10},
    {AX_WAY_CHAIN, 8, 1, 256 << 10},
    {AX_WAY_CHAIN, 4, 1, 512 << 10},
    {AX_WAY_GATHER, 0, 0, 0},
};
const uint32_t ax_way_row_count = AX_COUNT(ax_way_rows);

static bool fits(const ax_way_row *row, const ax_way_case *of, bool all) {
  const ax_way_record *way = &ax_ways[row->way];
  if (!(way->runs || all) || (way->sums && !(of->sum && of->in_order))) return false;
  return of->processes >= row->processes && of->members >= row->members && of->bytes >= row->bytes;
}

ax_way ax_way_choose(const ax_way_case *of, bool all) {
  uint32_t i = 0;
  while (i + 1 < ax_way_row_count && !fits(&ax_way_rows[i], of, all)) i++;
  return ax_way_rows[i].way;
}

double ax_message_seconds(const ax_link_rates *link, double bytes) { return ax_link_seconds(link, bytes, ax_payload_is_long(bytes)); }

static double carrying(const ax_link_rates *link, double bytes) {
  return bytes / (ax_payload_is_long(bytes) ? link->transfer : link->message_bytes);
}

/* The first block goes through all processes and back; the others follow. A process in the middle gets each block twice, and the two
   at the ends once. */
double ax_chain_seconds(const ax_rates *rates, uint32_t on_host, uint32_t between_hosts, double bytes) {
  const struct {
    const ax_link_rates *link;
    uint32_t hops;
  } kinds[] = {{&rates->host, on_host}, {&rates->network, between_hosts}};
  const double block = fmin(bytes, AX_CHAIN_BLOCK), more = ceil(bytes / fmax(block, 1)) - 1;
  const double times = on_host + between_hosts > 1 ? 2 : 1;
  double first = 0, slowest = 0;
  for (size_t i = 0; i < AX_COUNT(kinds); i++) {
    if (kinds[i].hops == 0) continue;
    first += 2 * kinds[i].hops * ax_message_seconds(kinds[i].link, block);
    slowest = fmax(slowest, carrying(kinds[i].link, block));
  }
  return first + more * times * slowest;
}

uint64_t ax_chain_pays(const ax_link_rates *link, uint32_t processes, uint32_t members) {
  const ax_rates rates = {.host = *link};
  const double others = (double)(processes - 1) * members;
  for (uint64_t bytes = 2 * AX_SHORT_PAYLOAD; bytes <= UINT64_C(1) << 32; bytes *= 2)
    if (ax_chain_seconds(&rates, processes - 1, 0, (double)bytes) < others * ax_message_seconds(link, (double)bytes)) return bytes;
  return UINT64_MAX;
}
