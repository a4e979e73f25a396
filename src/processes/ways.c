/* See ways.h. */
#include "processes/ways.h"

#include <math.h>

#include "base/base.h"

const ax_way_record ax_ways[AX_WAY_COUNT] = {
    [AX_WAY_GATHER] = {"gather", .runs = true},
    [AX_WAY_SHARES] = {"shares", .sums = true, .once = true, .runs = true},
    [AX_WAY_CHAIN] = {"chain", .sums = true, .in_order = true},
};

/* With the speeds that are assumed of one host (ways_test.c compares them; `axle devices --messages` prints the rows of a machine
   that it has measured). What is short is gathered. A chain carries the data twice, and shares carry it once for each member and once
   more, in fewer steps: so of few members they are better, and of many until a chain's blocks are many. */
const ax_way_row ax_way_rows[] = {
    {AX_WAY_CHAIN, 2, 4, 1 << 20},
    {AX_WAY_CHAIN, 2, 2, 8 << 20},
    {AX_WAY_SHARES, 2, 1, AX_SHARES_LEAST},
    {AX_WAY_CHAIN, 2, 4, 16 << 10},
    {AX_WAY_GATHER, 0, 0, 0},
};
const uint32_t ax_way_row_count = AX_COUNT(ax_way_rows);

bool ax_way_can(ax_way way, const ax_way_case *of) {
  const ax_way_record *w = &ax_ways[way];
  return (!w->sums || (of->sum && of->processes > 1)) && (!w->in_order || of->in_order) && (!w->once || of->once);
}

static bool fits(const ax_way_row *row, const ax_way_case *of, bool all) {
  if (!(ax_ways[row->way].runs || all) || !ax_way_can(row->way, of)) return false;
  return of->processes >= row->processes && of->members >= row->members && of->bytes >= row->bytes;
}

ax_way ax_way_choose(const ax_way_case *of, bool all) {
  uint32_t i = 0;
  while (i + 1 < ax_way_row_count && !fits(&ax_way_rows[i], of, all)) i++;
  return ax_way_rows[i].way;
}

static double carrying(const ax_link_rates *link, double bytes) {
  return bytes / (bytes > link->most_short ? link->transfer : link->message_bytes);
}

double ax_shares_seconds(const ax_link_rates *link, uint32_t processes, uint32_t members, double bytes) {
  return (double)(processes - 1) * (members + 1) * ax_link_seconds(link, bytes / processes);
}

/* What runs take. */
static double running(const ax_link_rates *link, uint32_t processes, uint32_t members, double bytes) {
  return bytes >= AX_SHARES_LEAST ? ax_shares_seconds(link, processes, members, bytes)
                                  : (double)(processes - 1) * members * ax_link_seconds(link, bytes);
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
    first += 2 * kinds[i].hops * ax_link_seconds(kinds[i].link, block);
    slowest = fmax(slowest, carrying(kinds[i].link, block));
  }
  return first + more * times * slowest;
}

uint64_t ax_chain_pays(const ax_link_rates *link, uint32_t processes, uint32_t members) {
  const ax_rates rates = {.host = *link};
  uint64_t pays = UINT64_MAX;
  for (uint64_t bytes = UINT64_C(1) << 32; (double)bytes > link->most_short; bytes /= 2, pays = 2 * bytes)
    if (ax_chain_seconds(&rates, processes - 1, 0, (double)bytes) >= running(link, processes, members, (double)bytes)) break;
  return pays;
}
