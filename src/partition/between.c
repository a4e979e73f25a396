/* Each member of a group is held by the processes that have a device which is this member; the process of the first such device sends
   for it. A process with members of the group is a party:

     mesh data=2,model=4 on 2 processes, psum over data      group 0: members 0 (process 0), 1 (process 1); ..   4 groups, all cross
                                        psum over model      group 0: members 0 to 3 (process 0); group 1: (process 1)     none does

   The same tables, for runs, are those of assemble/crossing.c. */
#include "partition/between.h"

#include <stdlib.h>
#include <string.h>

#include "ir/program.h"

ax_status ax_over_processes_init(const ax_process_layout *layout, const ax_mesh *mesh, ax_over_processes *out) {
  *out = (ax_over_processes){0};
  if (layout == NULL || layout->processes <= 1 || ax_mesh_devices(mesh) <= 1) return AX_OK;
  for (uint32_t d = 0; d < layout->process_of_count; d++)
    if (layout->process_of[d] >= layout->processes)
      return ax_error(AX_INVALID_ARGUMENT, "device %u is given to process %u, and there are %u", d, layout->process_of[d],
                      layout->processes);
  const ax_process_rule rule = {.processes = layout->processes, .listed = layout->process_of_count, .of = layout->process_of};
  out->per_host = layout->per_host > 0 ? layout->per_host : layout->processes;
  return ax_process_map_create(&rule, (uint32_t)ax_mesh_devices(mesh), &out->map);
}

void ax_over_processes_deinit(ax_over_processes *over) {
  ax_free(over->map);
  *over = (ax_over_processes){0};
}

/* --- Who holds what --- */

typedef struct holder {
  uint32_t group, process, member, sender; /* sender: the process that sends for the member */
} holder;

typedef struct tally { /* of a process */
  double within, bytes, messages;
  double gathering; /* seconds in which it takes what is gathered */
  double chained;   /* bytes that it takes of chains */
} tally;

typedef struct counting {
  const ax_over_processes *over;
  const ax_rates *rates;
  const ax_between_case *of;
  uint32_t members; /* of the largest group */
  uint32_t count;
  holder *holders; /* by group, process and member */
  uint32_t *sender; /* by member of the group at hand: the process that sends for it */
  tally *by_process;
  double *into_host; /* bytes that come to a host from others */
  double chain;      /* seconds of the longest chain */
  ax_way way;        /* of what crosses */
} counting;

static int by_process(const void *a, const void *b) {
  const holder *x = a, *y = b;
  if (x->group != y->group) return x->group < y->group ? -1 : 1;
  if (x->process != y->process) return x->process < y->process ? -1 : 1;
  return x->member < y->member ? -1 : x->member > y->member;
}

/* Numbers the groups that devices are in, and the members in them. */
static ax_status number(counting *c, uint32_t *group, uint32_t *member) {
  const ax_mesh *mesh = c->of->mesh;
  const ax_groups *groups = &c->of->names->groups;
  const uint32_t all = (uint32_t)ax_mesh_devices(mesh);
  ax_axis_set along = 0;
  ax_status status = ax_axes_resolve(c->of->names, mesh, &along);
  const ax_axes rest = ax_axis_set_names(c->of->on & ~along, mesh);
  const uint32_t size = (uint32_t)ax_axis_set_size(along, mesh);
  uint32_t *numbers = status == AX_OK ? ax_calloc(2 * (size_t)size, sizeof numbers[0]) : NULL;
  if (status == AX_OK && numbers == NULL) status = ax_out_of_memory(size * sizeof numbers[0]);
  for (uint32_t m = 0; status == AX_OK && m < size; m++) numbers[size + m] = m;
  if (status == AX_OK && groups->count > 0) ax_groups_numbers(groups, numbers, numbers + size);
  const uint32_t parts = groups->count > 0 ? groups->count : 1;
  for (uint32_t d = 0; status == AX_OK && d < all; d++) {
    const uint32_t m = (uint32_t)ax_axes_index(c->of->names, mesh, d);
    group[d] = (uint32_t)ax_axes_index(&rest, mesh, d) * parts + numbers[m];
    member[d] = numbers[size + m];
    if (member[d] >= c->members) c->members = member[d] + 1;
  }
  ax_free(numbers);
  return status;
}

/* The process of each member's first device. Members of groups are told apart by group * members + member. */
static ax_status find_holders(counting *c) {
  const uint32_t all = (uint32_t)ax_mesh_devices(c->of->mesh), *process = c->over->map->of;
  uint32_t *group = ax_calloc(2 * (size_t)all, sizeof group[0]), *member = group + all, *first = NULL, groups = 0;
  c->holders = ax_calloc(all, sizeof c->holders[0]);
  ax_status status = group != NULL && c->holders != NULL ? number(c, group, member) : ax_out_of_memory(all * sizeof c->holders[0]);
  for (uint32_t d = 0; status == AX_OK && d < all; d++) groups = group[d] >= groups ? group[d] + 1 : groups;
  const size_t places = (size_t)groups * c->members;
  if (status == AX_OK && (first = ax_alloc(places * sizeof first[0])) == NULL) status = ax_out_of_memory(places * sizeof first[0]);
  if (status == AX_OK) memset(first, 0xff, places * sizeof first[0]);
  for (uint32_t d = 0; status == AX_OK && d < all; d++) {
    uint32_t *one = &first[(size_t)group[d] * c->members + member[d]];
    if (*one == AX_NONE) *one = process[d];
    c->holders[d] = (holder){group[d], process[d], member[d], *one};
  }
  if (status == AX_OK) qsort(c->holders, all, sizeof c->holders[0], by_process);
  for (uint32_t d = 0; status == AX_OK && d < all; d++)
    if (c->count == 0 || by_process(&c->holders[c->count - 1], &c->holders[d]) != 0) c->holders[c->count++] = c->holders[d];
  ax_free(group);
  ax_free(first);
  return status;
}

/* --- One party of a group --- */

static uint32_t host_of(const counting *c, uint32_t process) { return process / c->over->per_host; }

static const ax_link_rates *link_between(const counting *c, uint32_t p, uint32_t q) {
  return host_of(c, p) == host_of(c, q) ? &c->rates->host : &c->rates->network;
}

/* A process gets a message of another. */
static void get(counting *c, uint32_t process, uint32_t from, double bytes) {
  tally *t = &c->by_process[process];
  t->messages++;
  t->bytes += bytes;
  t->gathering += ax_link_seconds(link_between(c, process, from), bytes);
  if (host_of(c, process) != host_of(c, from)) c->into_host[host_of(c, process)] += bytes;
}

typedef struct party {
  const holder *first;
  uint32_t count; /* members */
} party;

static bool has(const party *p, uint32_t member) {
  uint32_t low = 0, high = p->count;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (p->first[middle].member < member) low = middle + 1;
    else high = middle;
  }
  return low < p->count && p->first[low].member == member;
}

/* Bytes that one member gives a party of so many members. */
static double contribution(const ax_between_case *of, uint32_t count, uint32_t members) {
  return of->traffic == AX_TRAFFIC_PARTS ? of->bytes * count / members : of->bytes;
}

/* Bytes that members of a party receive from one another; as cost.c counts for the members of a whole group. */
static double within(const ax_between_case *of, uint32_t count, uint32_t members) {
  const double others = (double)count - 1;
  if (of->traffic == AX_TRAFFIC_COMBINED) return 2 * others * of->bytes;
  return others * count * (of->traffic == AX_TRAFFIC_PARTS ? of->bytes / members : of->bytes);
}

/* --- A group --- */

typedef struct group {
  const holder *first; /* its holders */
  uint32_t count, members, parties;
} group;

static party party_at(const group *g, uint32_t at) {
  party p = {&g->first[at], 1};
  while (at + p.count < g->count && p.first[p.count].process == p.first->process) p.count++;
  return p;
}

/* How many members of another party it sends to this one. */
static uint32_t count_sent(const party *from, const party *to) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < from->count; i++)
    count += from->first[i].process == from->first[i].sender && !has(to, from->first[i].member);
  return count;
}

/* All parties get what each member has that they lack: each in a message, or short ones of a process together if it sends all of its
   members (run/coalesced.h). */
static void get_contributions(counting *c, const group *g, const party *p, double bytes) {
  const uint32_t most = ax_coalesced_most((uint64_t)bytes);
  for (uint32_t at = 0; at < g->count;) {
    const party from = party_at(g, at);
    const uint32_t sent = count_sent(&from, p), together = most > 0 && sent > 1 && sent == from.count ? most : 1;
    for (uint32_t k = 0; k < sent; k += together)
      get(c, p->first->process, from.first->process, bytes * (sent - k < together ? sent - k : together));
    at += from.count;
  }
}

/* All give to all: each party gets what the members that it lacks have. */
static void gather(counting *c, const group *g) {
  for (uint32_t at = 0; at < g->count;) {
    const party p = party_at(g, at);
    const double bytes = contribution(c->of, p.count, g->members);
    c->by_process[p.first->process].within += within(c->of, p.count, g->members);
    get_contributions(c, g, &p, bytes);
    at += p.count;
  }
}

/* Each party gets its share of what the members that it lacks have, and the totals of the others. Its own members add that share
   alone; all of them take the whole sum. */
static void split(counting *c, const group *g) {
  const double share = c->of->bytes / g->parties;
  for (uint32_t at = 0; at < g->count;) {
    const party p = party_at(g, at);
    c->by_process[p.first->process].within += (p.count - 1) * (share + c->of->bytes);
    get_contributions(c, g, &p, share);
    for (uint32_t from = 0; from < g->count; from += party_at(g, from).count)
      if (from != at) get(c, p.first->process, g->first[from].process, share);
    at += p.count;
  }
}

/* One member's operand comes to the party's target, for each of the pairs. */
static void pass(counting *c, const party *p) {
  const ax_pairs *pairs = c->of->pairs;
  tally *t = &c->by_process[p->first->process];
  for (uint32_t i = 0; i < pairs->count; i++) {
    const uint32_t source = (uint32_t)pairs->v[i][0], target = (uint32_t)pairs->v[i][1];
    if (source == target || !has(p, target)) continue;
    if (has(p, source)) t->within += c->of->bytes;
    else get(c, p->first->process, c->sender[source], c->of->bytes);
  }
}

/* One member's operand comes to all. */
static void broadcast(counting *c, const party *p) {
  const uint32_t source = (uint32_t)c->of->source;
  c->by_process[p->first->process].within += (p->count - 1) * c->of->bytes;
  if (!has(p, source)) get(c, p->first->process, c->sender[source], c->of->bytes);
}

static void hand_over(counting *c, const group *g) {
  for (uint32_t i = 0; i < g->count; i++) c->sender[g->first[i].member] = g->first[i].sender;
  for (uint32_t at = 0; at < g->count;) {
    const party p = party_at(g, at);
    if (c->of->pairs != NULL) pass(c, &p);
    else broadcast(c, &p);
    at += p.count;
  }
}

/* The two at the ends get the data once, those between them from both sides. */
static void chain(counting *c, const group *g) {
  uint32_t hops[2] = {0}, last = AX_NONE;
  for (uint32_t at = 0, k = 0; at < g->count; k++) {
    const party p = party_at(g, at);
    const uint32_t process = p.first->process;
    const double times = k > 0 && k + 1 < g->parties ? 2 : 1;
    tally *t = &c->by_process[process];
    t->within += within(c->of, p.count, g->members);
    t->bytes += times * c->of->bytes;
    t->chained += times * c->of->bytes;
    t->messages += times * (double)(((uint64_t)c->of->bytes + AX_CHAIN_BLOCK - 1) / AX_CHAIN_BLOCK);
    if (last != AX_NONE) hops[host_of(c, last) != host_of(c, process)]++;
    if (last != AX_NONE && host_of(c, last) != host_of(c, process)) {
      c->into_host[host_of(c, process)] += c->of->bytes;
      c->into_host[host_of(c, last)] += c->of->bytes;
    }
    last = process;
    at += p.count;
  }
  const double seconds = ax_chain_seconds(c->rates, hops[0], hops[1], c->of->bytes);
  c->chain = seconds > c->chain ? seconds : c->chain;
}

/* Members that follow one another in each process, processes in their order: the order of additions is that of a chain. */
static ax_way_case case_of(const counting *c, const group *g) {
  ax_way_case of = {.sum = c->of->traffic == AX_TRAFFIC_COMBINED, .in_order = true, .once = g->count == g->members,
                    .bytes = (uint64_t)c->of->bytes, .processes = g->parties};
  for (uint32_t i = 0; i < g->count; i++) of.in_order = of.in_order && g->first[i].member == i;
  for (uint32_t at = 0; at < g->count;) {
    const party p = party_at(g, at);
    of.members = p.count > of.members ? p.count : of.members;
    at += p.count;
  }
  return of;
}

static void count_group(counting *c, group *g) {
  for (uint32_t at = 0; at < g->count; g->parties++) at += party_at(g, at).count;
  for (uint32_t i = 0; i < g->count; i++) g->members = g->first[i].member >= g->members ? g->first[i].member + 1 : g->members;
  const ax_way_case of = case_of(c, g);
  static void (*const ways[AX_WAY_COUNT])(counting *, const group *) = {
      [AX_WAY_GATHER] = gather, [AX_WAY_SHARES] = split, [AX_WAY_CHAIN] = chain};
  const bool one_gives = c->of->traffic == AX_TRAFFIC_OPERAND || c->of->traffic == AX_TRAFFIC_RESULT;
  const ax_way way = one_gives ? AX_WAY_GATHER : ax_way_choose(&of, false);
  if (one_gives) hand_over(c, g);
  else ways[way](c, g);
  c->way = way > c->way ? way : c->way;
}

/* --- All groups --- */

/* Devices of a process work side by side. What comes from other processes comes one after the other, and then is put or added as what
   a device of the same process gives; what comes to a host shares its link. */
static double seconds_of(const counting *c, uint32_t process, uint32_t devices) {
  const ax_rates *r = c->rates;
  const tally *t = &c->by_process[process];
  const double inside = (t->within + t->bytes) / (devices > 0 ? devices : 1) * AX_MOVES_OF_A_BYTE / r->read;
  const double host = c->into_host[host_of(c, process)] / r->network.transfer;
  double between = t->gathering + (t->chained > 0 ? c->chain : 0);
  const double carried = t->chained / r->host.transfer; /* several chains at once share what carries them */
  between = between > carried ? between : carried;
  return inside + (between > host ? between : host) + AX_LINES_OF_A_COLLECTIVE * r->exchange;
}

static ax_status sum_up(counting *c, ax_between *out) {
  const uint32_t processes = c->over->map->processes;
  uint32_t *devices = ax_calloc(processes, sizeof devices[0]);
  if (devices == NULL) return ax_out_of_memory(processes * sizeof devices[0]);
  for (uint32_t d = 0; d < c->over->map->devices; d++) devices[c->over->map->of[d]]++;
  *out = (ax_between){.way = c->way};
  for (uint32_t p = 0; p < processes; p++) {
    const double seconds = seconds_of(c, p, devices[p]);
    const tally *t = &c->by_process[p];
    if (seconds > out->seconds) *out = (ax_between){t->within, t->bytes, t->messages, seconds, out->way};
  }
  ax_free(devices);
  return AX_OK;
}

static void count_groups(counting *c) {
  for (uint32_t at = 0; at < c->count;) {
    group g = {.first = &c->holders[at]};
    while (at + g.count < c->count && g.first[g.count].group == g.first->group) g.count++;
    at += g.count;
    count_group(c, &g);
  }
}

ax_status ax_between_count(const ax_over_processes *over, const ax_rates *rates, const ax_between_case *of, ax_between *out) {
  const uint32_t processes = over->map->processes;
  counting c = {.over = over, .rates = rates, .of = of};
  *out = (ax_between){0};
  c.by_process = ax_calloc(processes, sizeof c.by_process[0]);
  c.into_host = ax_calloc(processes, sizeof c.into_host[0]);
  ax_status status = c.by_process != NULL && c.into_host != NULL ? find_holders(&c) : ax_out_of_memory(processes * sizeof(tally));
  if (status == AX_OK && (c.sender = ax_calloc(c.members, sizeof c.sender[0])) == NULL) status = ax_out_of_memory(c.members);
  if (status == AX_OK) count_groups(&c);
  if (status == AX_OK) status = sum_up(&c, out);
  ax_free(c.holders);
  ax_free(c.sender);
  ax_free(c.by_process);
  ax_free(c.into_host);
  return status;
}
