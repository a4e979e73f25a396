/* Algorithms, as chains of phases.

   n members; B bytes are what each has at first (of an all-gather what each adds). Parts are rounded up to whole bytes.

     ring           reduce-scatter and all-gather in n-1 steps to the next member
     bidirectional  the same with half of each part either way, side by side
     dimensions     rings along one cycle of the group after the other: reduced parts are scattered along the last cycle, then what
                    is left
                    along the one before, and gathered the other way round
     doubling       Bruck et al. (1997): an all-gather in ceil(log2 n) steps, to the member 1, 2, 4, .. before, of all that one has;
                    a reduce-scatter is that backwards; all-to-all sends what still has to go an odd number of times so far. Along
                    each cycle
     tree           binomial, to the root and back
     direct         everything to everybody at once
     pairwise       the same in n-1 steps
     gather, shares, chain
                    over processes (processes/ways.h); run: which of them the table says. Devices of a process give each other what they
                    have directly. The blocks of a chain go forth one after the other and come back while others go forth */
#include "sim/procedure.h"

#include <math.h>
#include <string.h>

#include "processes/ways.h"

static const char *const names[AX_ALGORITHM_COUNT] = {"best",     "ring", "bidirectional", "dimensions",
                                                      "doubling", "tree", "direct",        "pairwise",
                                                      "gather",   "shares", "chain",       "run"};

const char *ax_algorithm_name(ax_algorithm algorithm) { return (unsigned)algorithm < AX_ALGORITHM_COUNT ? names[algorithm] : NULL; }

ax_status ax_algorithm_find(const char *name, ax_algorithm *out) {
  ax_text all = {0};
  AX_TRY(ax_require(name, "name"));
  for (int a = 0; a < AX_ALGORITHM_COUNT; a++) {
    ax_text_add(&all, "%s%s", a > 0 ? ", " : "", names[a]);
    *out = (ax_algorithm)a;
    if (strcmp(names[a], name) == 0) break;
  }
  ax_status status = strcmp(names[*out], name) == 0
                         ? AX_OK
                         : ax_error(AX_INVALID_ARGUMENT, "there is no algorithm \"%s\"; there are %s", name, all.data);
  ax_text_deinit(&all);
  return status;
}

/* --- Phases --- */

static ax_status add(ax_sim_chain *chain, ax_sim_phase phase) {
  if (phase.repeat <= 0 || phase.fan <= 0) return AX_OK;
  phase.bytes = ceil(phase.bytes);
  phase.key = chain->keys;
  chain->keys += phase.varied ? phase.repeat : 1;
  AX_TRY(ax_grow(&chain->phases, sizeof chain->phases[0], chain->phase_count, 1, &chain->phase_capacity));
  chain->phases[chain->phase_count++] = phase;
  return AX_OK;
}

static double share(double bytes, int64_t members) { return ceil(bytes / (double)members); }

static int64_t levels(int64_t members) {
  int64_t count = 0;
  while ((int64_t)1 << count < members) count++;
  return count;
}

static bool scatters(const ax_sim_procedure *s) {
  return s->kind == AX_COLLECTIVE_ALL_REDUCE || s->kind == AX_COLLECTIVE_REDUCE_SCATTER;
}
static bool gathers(const ax_sim_procedure *s) {
  return s->kind == AX_COLLECTIVE_ALL_REDUCE || s->kind == AX_COLLECTIVE_ALL_GATHER;
}

static ax_status ring(ax_sim_procedure *s, int64_t shift, double halves, ax_sim_chain *chain) {
  const int64_t n = s->group.members, steps = scatters(s) && gathers(s) ? 2 * (n - 1) : n - 1;
  const double part = scatters(s) ? share(s->bytes, n) : s->bytes;
  return add(chain, (ax_sim_phase){.move = AX_MOVE_MEMBER, .shift = shift, .repeat = steps, .fan = 1, .bytes = part / halves});
}

static ax_status both_ways(ax_sim_procedure *s) {
  s->chain_count = 2;
  AX_TRY(ring(s, 1, 2, &s->chains[0]));
  return ring(s, s->group.members - 1, 2, &s->chains[1]);
}

/* After each cycle's scatter 1/size of the data remains; each gather makes it larger by the same factor. */
static ax_status dimensions(ax_sim_procedure *s, ax_sim_chain *chain) {
  const ax_sim_group *g = &s->group;
  double part = s->bytes;
  for (uint32_t p = g->count; p-- > 0 && scatters(s);) {
    part = share(part, g->cycle[p].size);
    AX_TRY(add(chain, (ax_sim_phase){
                          .move = AX_MOVE_CYCLE, .cycle = p, .shift = 1, .repeat = g->cycle[p].size - 1, .fan = 1, .bytes = part}));
  }
  for (uint32_t p = 0; p < g->count && gathers(s); p++) {
    AX_TRY(add(chain, (ax_sim_phase){
                          .move = AX_MOVE_CYCLE, .cycle = p, .shift = 1, .repeat = g->cycle[p].size - 1, .fan = 1, .bytes = part}));
    part *= (double)g->cycle[p].size;
  }
  for (uint32_t p = g->count; p-- > 0 && s->kind == AX_COLLECTIVE_ALL_TO_ALL;)
    AX_TRY(add(chain, (ax_sim_phase){.move = AX_MOVE_CYCLE,
                                     .cycle = p,
                                     .varied = true,
                                     .shift = 1,
                                     .repeat = g->cycle[p].size - 1,
                                     .fan = 1,
                                     .bytes = share(part, g->cycle[p].size)}));
  return AX_OK;
}

/* Blocks, of `count`, whose number has bit `level`. */
static int64_t with_bit(int64_t count, int64_t level) {
  const int64_t half = (int64_t)1 << level, rest = count % (2 * half);
  return count / (2 * half) * half + (rest > half ? rest - half : 0);
}

static ax_status double_along(ax_sim_chain *chain, uint32_t p, int64_t n, int64_t level, double blocks, double part, bool back) {
  const int64_t far = (int64_t)1 << level;
  return add(chain,
             (ax_sim_phase){
                 .move = AX_MOVE_CYCLE, .cycle = p, .shift = back ? n - far : far, .repeat = 1, .fan = 1, .bytes = blocks * part});
}

static ax_status doubling(ax_sim_procedure *s, ax_sim_chain *chain) {
  const ax_sim_group *g = &s->group;
  double part = s->bytes;
  for (uint32_t p = g->count; p-- > 0 && scatters(s);) {
    const int64_t n = g->cycle[p].size;
    part = share(part, n);
    for (int64_t l = levels(n); l-- > 0;) {
      const int64_t far = (int64_t)1 << l;
      AX_TRY(double_along(chain, p, n, l, (double)(far < n - far ? far : n - far), part, false));
    }
  }
  for (uint32_t p = 0; p < g->count && gathers(s); p++) {
    const int64_t n = g->cycle[p].size;
    for (int64_t l = 0; l < levels(n); l++) {
      const int64_t far = (int64_t)1 << l;
      AX_TRY(double_along(chain, p, n, l, (double)(far < n - far ? far : n - far), part, true));
    }
    part *= (double)n;
  }
  for (uint32_t p = g->count; p-- > 0 && s->kind == AX_COLLECTIVE_ALL_TO_ALL;) {
    const int64_t n = g->cycle[p].size;
    for (int64_t l = 0; l < levels(n); l++) AX_TRY(double_along(chain, p, n, l, (double)with_bit(n, l), share(part, n), false));
  }
  return AX_OK;
}

static ax_status tree(ax_sim_procedure *s, ax_sim_chain *chain) {
  const int64_t depth = levels(s->group.members);
  for (int64_t l = 0; l < depth && s->kind == AX_COLLECTIVE_ALL_REDUCE; l++)
    AX_TRY(add(chain, (ax_sim_phase){.move = AX_MOVE_UP, .shift = l, .repeat = 1, .fan = 1, .bytes = s->bytes}));
  for (int64_t l = depth; l-- > 0;)
    AX_TRY(add(chain, (ax_sim_phase){.move = AX_MOVE_DOWN, .shift = l, .repeat = 1, .fan = 1, .bytes = s->bytes}));
  return AX_OK;
}

static ax_status direct(ax_sim_procedure *s, ax_sim_chain *chain) {
  const bool parts = s->kind == AX_COLLECTIVE_REDUCE_SCATTER || s->kind == AX_COLLECTIVE_ALL_TO_ALL;
  const ax_sim_move move = s->kind == AX_COLLECTIVE_BROADCAST ? AX_MOVE_STAR : AX_MOVE_APART;
  return add(chain, (ax_sim_phase){.move = move,
                                   .shift = 1,
                                   .repeat = 1,
                                   .fan = s->group.members - 1,
                                   .bytes = parts ? share(s->bytes, s->group.members) : s->bytes});
}

int64_t ax_sim_group_apart(const ax_sim_group *g, int64_t from, int64_t to) {
  int64_t shift = 0, factor = 1;
  for (uint32_t p = g->count; p-- > 0; from /= g->cycle[p].size, to /= g->cycle[p].size) {
    const int64_t size = g->cycle[p].size;
    shift += (to % size - from % size + size) % size * factor;
    factor *= size;
  }
  return shift;
}

/* Pairs that move all members alike are such a move. */
static ax_status permute(ax_sim_procedure *s, ax_sim_chain *chain) {
  const int64_t n = s->group.members;
  ax_sim_phase phase = {.move = AX_MOVE_PAIRS, .repeat = 1, .fan = 1, .bytes = s->bytes};
  bool one_apart = s->target[0] >= 0, one_further = one_apart;
  const int64_t far = one_apart ? ax_sim_group_apart(&s->group, 0, s->target[0]) : 0, further = s->target[0];
  for (int64_t m = 0; m < n; m++) {
    one_apart = one_apart && s->target[m] >= 0 && ax_sim_group_apart(&s->group, m, s->target[m]) == far;
    one_further = one_further && s->target[m] >= 0 && (s->target[m] - m + n) % n == further;
  }
  if (one_apart || one_further) phase.move = one_apart ? AX_MOVE_APART : AX_MOVE_MEMBER;
  if (one_apart || one_further) phase.shift = one_apart ? far : further;
  return add(chain, phase);
}

/* --- Over processes --- */

static bool is_of_nodes(const ax_sim_cycle *cycle, const ax_sim_procedure *s) { return cycle->stride >= s->per_process; }

/* In how many processes the group is; 0: not equally in each, or there are none on this machine. */
static int64_t processes_of(const ax_sim_procedure *s) {
  int64_t count = 1;
  if (s->per_process == 0) return 0;
  for (uint32_t p = 0; p < s->group.count; p++) {
    if (s->group.cycle[p].digit == AX_NONE) return 0;
    if (is_of_nodes(&s->group.cycle[p], s)) count *= s->group.cycle[p].size;
  }
  return count;
}

/* Members of each process follow one another. */
static bool is_in_order(const ax_sim_procedure *s) {
  for (uint32_t p = 1; p < s->group.count; p++)
    if (is_of_nodes(&s->group.cycle[p], s) && !is_of_nodes(&s->group.cycle[p - 1], s)) return false;
  return true;
}

/* The process of a member among those of its group, and its number there. */
static int64_t process_at(const ax_sim_procedure *s, int64_t device) {
  int64_t number = 0;
  for (uint32_t p = 0; p < s->group.count; p++)
    if (is_of_nodes(&s->group.cycle[p], s)) number = number * s->group.cycle[p].size + ax_sim_cycle_value(&s->group.cycle[p], device);
  return number;
}
static bool is_first_within(const ax_sim_procedure *s, int64_t device) {
  for (uint32_t p = 0; p < s->group.count; p++)
    if (!is_of_nodes(&s->group.cycle[p], s) && ax_sim_cycle_value(&s->group.cycle[p], device) != 0) return false;
  return true;
}

static ax_status gather_over(ax_sim_procedure *s, int64_t processes) {
  const int64_t n = s->group.members, within = n / processes;
  const bool parts = s->kind == AX_COLLECTIVE_REDUCE_SCATTER || s->kind == AX_COLLECTIVE_ALL_TO_ALL;
  s->chain_count = 1;
  AX_TRY(add(&s->chains[0], (ax_sim_phase){.move = AX_MOVE_PROCESSES, .shift = 1, .repeat = 1, .fan = processes - 1,
                                           .bytes = parts ? s->bytes / (double)processes : s->bytes}));
  AX_TRY(add(&s->chains[0], (ax_sim_phase){.move = AX_MOVE_WITHIN, .shift = 1, .repeat = 1, .fan = within - 1,
                                           .bytes = parts ? s->bytes / (double)n : s->bytes}));
  return AX_OK;
}

/* Members give each process its share; its first member sends the total of it to those of the others, and has the whole sum then. */
static ax_status shares_over(ax_sim_procedure *s, int64_t processes) {
  const int64_t within = s->group.members / processes;
  const double part = share(s->bytes, processes);
  ax_sim_chain *chain = &s->chains[0];
  s->chain_count = 1;
  AX_TRY(add(chain, (ax_sim_phase){.move = AX_MOVE_PROCESSES, .shift = 1, .repeat = 1, .fan = processes - 1, .bytes = part}));
  AX_TRY(add(chain, (ax_sim_phase){.move = AX_MOVE_WITHIN, .shift = 1, .repeat = 1, .fan = within - 1, .bytes = part}));
  AX_TRY(add(chain, (ax_sim_phase){.move = AX_MOVE_TOTALS, .shift = 1, .repeat = 1, .fan = processes - 1, .bytes = part}));
  return add(chain, (ax_sim_phase){.move = AX_MOVE_OUT, .shift = 1, .repeat = 1, .fan = within - 1, .bytes = s->bytes});
}

static double block_of(const ax_sim_procedure *s, int64_t k) { return fmin(AX_CHAIN_BLOCK, s->bytes - (double)k * AX_CHAIN_BLOCK); }
static int64_t blocks_of(const ax_sim_procedure *s) { return (int64_t)ceil(fmax(1, s->bytes / AX_CHAIN_BLOCK)); }

static ax_status pass_forth(const ax_sim_procedure *s, ax_sim_chain *chain, int64_t processes, int64_t k) {
  for (int64_t p = 0; p + 1 < processes; p++)
    AX_TRY(add(chain, (ax_sim_phase){.move = AX_MOVE_FORTH, .shift = p, .repeat = 1, .fan = 1, .bytes = block_of(s, k)}));
  return AX_OK;
}

static ax_status pass_back(const ax_sim_procedure *s, ax_sim_chain *chain, int64_t processes, int64_t k) {
  for (int64_t p = processes; --p > 0;)
    AX_TRY(add(chain, (ax_sim_phase){.move = AX_MOVE_BACK, .shift = p, .repeat = 1, .fan = 1, .bytes = block_of(s, k)}));
  return AX_OK;
}

/* Blocks come back while others go forth, so there are two chains of phases. The one that goes back begins with the way of the first block
   to the last process; the other has the blocks after that. */
static ax_status chain_over(ax_sim_procedure *s, int64_t processes) {
  const int64_t within = s->group.members / processes, blocks = blocks_of(s);
  ax_sim_chain *forth = &s->chains[0], *back = &s->chains[1];
  const ax_sim_phase adds = {.move = AX_MOVE_WITHIN, .shift = 1, .repeat = 1, .fan = within - 1, .bytes = share(s->bytes, 2 * within)};
  s->chain_count = blocks > 1 ? 2 : 1;
  if (blocks == 1) back = forth;
  else AX_TRY(add(forth, adds));
  AX_TRY(add(back, adds));
  AX_TRY(pass_forth(s, back, processes, 0));
  for (int64_t k = 1; k < blocks; k++) AX_TRY(pass_forth(s, forth, processes, k));
  for (int64_t k = 0; k < blocks; k++) AX_TRY(pass_back(s, back, processes, k));
  return add(back, (ax_sim_phase){.move = AX_MOVE_OUT, .shift = 1, .repeat = 1, .fan = within - 1, .bytes = s->bytes});
}

static ax_status over_processes(ax_sim_procedure *s, ax_algorithm algorithm) {
  const int64_t processes = processes_of(s);
  const ax_way_case of = {.sum = s->kind == AX_COLLECTIVE_ALL_REDUCE, .in_order = processes > 0 && is_in_order(s),
                          .once = true, .bytes = (uint64_t)s->bytes, .processes = (uint32_t)processes,
                          .members = processes > 0 ? (uint32_t)(s->group.members / processes) : 0};
  if (processes == 0 || s->kind == AX_COLLECTIVE_BROADCAST) return AX_OK;
  static ax_status (*const over[AX_WAY_COUNT])(ax_sim_procedure *, int64_t) = {
      [AX_WAY_GATHER] = gather_over, [AX_WAY_SHARES] = shares_over, [AX_WAY_CHAIN] = chain_over};
  const ax_way way = algorithm == AX_ALGORITHM_RUN      ? ax_way_choose(&of, false)
                     : algorithm == AX_ALGORITHM_SHARES ? AX_WAY_SHARES
                     : algorithm == AX_ALGORITHM_CHAIN  ? AX_WAY_CHAIN
                                                        : AX_WAY_GATHER;
  return ax_way_can(way, &of) ? over[way](s, processes) : AX_OK;
}

static ax_status make(ax_sim_procedure *s, ax_algorithm algorithm) {
  ax_sim_chain *chain = &s->chains[0];
  const bool all_to_all = s->kind == AX_COLLECTIVE_ALL_TO_ALL, broadcast = s->kind == AX_COLLECTIVE_BROADCAST;
  s->chain_count = 1;
  if (s->kind == AX_COLLECTIVE_PERMUTE) return algorithm == AX_ALGORITHM_DIRECT ? permute(s, chain) : AX_OK;
  switch ((int)algorithm) {
    case AX_ALGORITHM_RING: return all_to_all || broadcast ? AX_OK : ring(s, 1, 1, chain);
    case AX_ALGORITHM_BIDIRECTIONAL: return all_to_all || broadcast ? AX_OK : both_ways(s);
    case AX_ALGORITHM_DIMENSIONS: return broadcast ? AX_OK : dimensions(s, chain);
    case AX_ALGORITHM_DOUBLING: return broadcast ? AX_OK : doubling(s, chain);
    case AX_ALGORITHM_TREE: return broadcast || s->kind == AX_COLLECTIVE_ALL_REDUCE ? tree(s, chain) : AX_OK;
    case AX_ALGORITHM_DIRECT: return direct(s, chain);
    case AX_ALGORITHM_PAIRWISE:
      return !all_to_all ? AX_OK
                         : add(chain, (ax_sim_phase){.move = AX_MOVE_APART,
                                                     .varied = true,
                                                     .shift = 1,
                                                     .repeat = s->group.members - 1,
                                                     .fan = 1,
                                                     .bytes = share(s->bytes, s->group.members)});
    case AX_ALGORITHM_GATHER:
    case AX_ALGORITHM_SHARES:
    case AX_ALGORITHM_CHAIN:
    case AX_ALGORITHM_RUN: return over_processes(s, algorithm);
    default: return AX_OK;
  }
}

ax_status ax_sim_procedure_make(ax_sim_procedure *s, ax_algorithm algorithm, bool *done) {
  ax_sim_procedure_deinit(s);
  s->algorithm = algorithm;
  ax_status status = make(s, algorithm);
  *done = status == AX_OK && s->chains[0].phase_count > 0;
  if (status != AX_OK) ax_sim_procedure_deinit(s);
  return status;
}

void ax_sim_procedure_deinit(ax_sim_procedure *s) {
  for (uint32_t c = 0; c < AX_MAX_CHAINS; c++) {
    ax_free(s->chains[c].phases);
    s->chains[c] = (ax_sim_chain){0};
  }
  s->chain_count = 0;
}

/* --- What it keeps --- */

void ax_sim_procedure_keep(const ax_sim_procedure *s, ax_sim_place *place) {
  const ax_sim_group *g = &s->group;
  for (uint32_t c = 0; c < s->chain_count; c++)
    for (uint32_t i = 0; i < s->chains[c].phase_count; i++) {
      const ax_sim_phase *phase = &s->chains[c].phases[i];
      for (uint32_t p = 0; p < g->count; p++) {
        const bool of_firsts = phase->move == AX_MOVE_TOTALS || phase->move == AX_MOVE_OUT; /* alike in each process */
        const bool moves = phase->move == AX_MOVE_APART || phase->move == AX_MOVE_PROCESSES || phase->move == AX_MOVE_WITHIN ||
                           (phase->move == AX_MOVE_MEMBER && p == 0) || (of_firsts && is_of_nodes(&g->cycle[p], s));
        if (phase->move == AX_MOVE_CYCLE && phase->cycle != p) continue;
        if (moves || phase->move == AX_MOVE_CYCLE) ax_sim_place_keep_moves(place, &g->cycle[p]);
        else ax_sim_place_keep_values(place, &g->cycle[p]);
      }
    }
}

/* How many members send in a step of the phase. */
static double senders(const ax_sim_procedure *s, const ax_sim_phase *phase) {
  const int64_t n = s->group.members, far = (int64_t)1 << (phase->shift < 62 ? phase->shift : 62);
  double count = 0;
  switch (phase->move) {
    case AX_MOVE_UP:
    case AX_MOVE_DOWN: return (double)((n - far + 2 * far - 1) / (2 * far));
    case AX_MOVE_STAR: return 1;
    case AX_MOVE_FORTH:
    case AX_MOVE_BACK: return 1;
    case AX_MOVE_TOTALS:
    case AX_MOVE_OUT: return (double)processes_of(s);
    case AX_MOVE_PAIRS:
      for (int64_t m = 0; m < n; m++) count += s->target[m] >= 0;
      return count;
    default: return (double)n;
  }
}

double ax_sim_procedure_bytes(const ax_sim_procedure *s) {
  double bytes = 0;
  for (uint32_t c = 0; c < s->chain_count; c++)
    for (uint32_t i = 0; i < s->chains[c].phase_count; i++) {
      const ax_sim_phase *phase = &s->chains[c].phases[i];
      bytes += (double)phase->repeat * (double)phase->fan * phase->bytes * senders(s, phase) / (double)s->group.members;
    }
  return bytes;
}

double ax_sim_procedure_work(const ax_sim_procedure *s) {
  enum { until_steady = 256 };
  const int64_t n = s->group.members;
  double messages = 0;
  for (uint32_t c = 0; c < s->chain_count; c++)
    for (uint32_t i = 0; i < s->chains[c].phase_count; i++) {
      const ax_sim_phase *phase = &s->chains[c].phases[i];
      const bool of_one = phase->move == AX_MOVE_FORTH || phase->move == AX_MOVE_BACK;
      messages += (double)(phase->varied || phase->repeat < until_steady ? phase->repeat : until_steady) * (double)phase->fan /
                  (of_one ? (double)n : 1);
    }
  return messages;
}

/* --- Steps --- */

/* Its number counted from the root. */
static int64_t from_root(const ax_sim_procedure *s, int64_t device) {
  return (ax_sim_group_member(&s->group, device) - s->root + s->group.members) % s->group.members;
}

/* In a tree's level: it is a child, or has one. */
static bool is_child(int64_t number, int64_t level) { return (number & (((int64_t)2 << level) - 1)) == (int64_t)1 << level; }
static bool has_child(const ax_sim_procedure *s, int64_t number, int64_t level) {
  return (number & (((int64_t)2 << level) - 1)) == 0 && number + ((int64_t)1 << level) < s->group.members;
}

int64_t ax_sim_procedure_sends(const ax_sim_procedure *s, const ax_sim_phase *phase, int64_t device) {
  switch (phase->move) {
    case AX_MOVE_UP: return is_child(from_root(s, device), phase->shift);
    case AX_MOVE_DOWN: return has_child(s, from_root(s, device), phase->shift);
    case AX_MOVE_STAR: return from_root(s, device) == 0 ? phase->fan : 0;
    case AX_MOVE_FORTH:
    case AX_MOVE_BACK: return is_first_within(s, device) && process_at(s, device) == phase->shift;
    case AX_MOVE_TOTALS:
    case AX_MOVE_OUT: return is_first_within(s, device) ? phase->fan : 0;
    case AX_MOVE_PAIRS: return s->target[ax_sim_group_member(&s->group, device)] >= 0;
    default: return phase->fan;
  }
}

int64_t ax_sim_procedure_receives(const ax_sim_procedure *s, const ax_sim_phase *phase, int64_t device) {
  switch (phase->move) {
    case AX_MOVE_UP: return has_child(s, from_root(s, device), phase->shift);
    case AX_MOVE_DOWN: return is_child(from_root(s, device), phase->shift);
    case AX_MOVE_STAR: return from_root(s, device) != 0;
    case AX_MOVE_FORTH: return is_first_within(s, device) && process_at(s, device) == phase->shift + 1;
    case AX_MOVE_BACK: return is_first_within(s, device) && process_at(s, device) == phase->shift - 1;
    case AX_MOVE_TOTALS: return is_first_within(s, device) ? phase->fan : 0;
    case AX_MOVE_OUT: return !is_first_within(s, device);
    case AX_MOVE_PAIRS: return s->source[ax_sim_group_member(&s->group, device)] >= 0;
    default: return phase->fan;
  }
}

/* As move_apart, along the cycles between processes alone, or along those within one. */
static int64_t move_some(const ax_sim_procedure *s, int64_t device, int64_t shift, bool of_nodes) {
  for (uint32_t p = s->group.count; p-- > 0;) {
    const ax_sim_cycle *cycle = &s->group.cycle[p];
    if (is_of_nodes(cycle, s) != of_nodes) continue;
    const int64_t value = ax_sim_cycle_value(cycle, device);
    device += ((value + shift) % cycle->size - value) * cycle->stride;
    shift /= cycle->size;
  }
  return device;
}

/* To the process of this number, among those of the group. */
static int64_t move_to_process(const ax_sim_procedure *s, int64_t device, int64_t process) {
  for (uint32_t p = s->group.count; p-- > 0;) {
    const ax_sim_cycle *cycle = &s->group.cycle[p];
    if (!is_of_nodes(cycle, s)) continue;
    device += (process % cycle->size - ax_sim_cycle_value(cycle, device)) * cycle->stride;
    process /= cycle->size;
  }
  return device;
}

static int64_t move_apart(const ax_sim_group *g, int64_t device, int64_t shift) {
  for (uint32_t p = g->count; p-- > 0; shift /= g->cycle[p].size) {
    const ax_sim_cycle *cycle = &g->cycle[p];
    const int64_t value = ax_sim_cycle_value(cycle, device);
    device += ((value + shift) % cycle->size - value) * cycle->stride;
  }
  return device;
}

int64_t ax_sim_procedure_target(const ax_sim_procedure *s, const ax_sim_phase *phase, int64_t r, int64_t k, int64_t device) {
  const ax_sim_group *g = &s->group;
  const int64_t n = g->members, shift = phase->shift + (phase->varied ? r : 0) + k;
  if (phase->move == AX_MOVE_APART) return move_apart(g, device, shift);
  if (phase->move == AX_MOVE_PROCESSES || phase->move == AX_MOVE_TOTALS) return move_some(s, device, shift, true);
  if (phase->move == AX_MOVE_WITHIN || phase->move == AX_MOVE_OUT) return move_some(s, device, shift, false);
  if (phase->move == AX_MOVE_FORTH || phase->move == AX_MOVE_BACK)
    return move_to_process(s, device, phase->shift + (phase->move == AX_MOVE_FORTH ? 1 : -1));
  if (phase->move == AX_MOVE_CYCLE) {
    const ax_sim_cycle *cycle = &g->cycle[phase->cycle];
    const int64_t value = ax_sim_cycle_value(cycle, device);
    return device + ((value + shift) % cycle->size - value) * cycle->stride;
  }
  const int64_t member = ax_sim_group_member(g, device), number = (member - s->root + n) % n,
                far = phase->move == AX_MOVE_UP || phase->move == AX_MOVE_DOWN ? (int64_t)1 << phase->shift : 0;
  switch (phase->move) {
    case AX_MOVE_UP: return ax_sim_group_device(g, device, (number - far + s->root) % n);
    case AX_MOVE_DOWN: return ax_sim_group_device(g, device, (number + far + s->root) % n);
    case AX_MOVE_PAIRS: return ax_sim_group_device(g, device, s->target[member]);
    default: return ax_sim_group_device(g, device, (member + shift) % n);
  }
}

/* --- How long it takes, roughly --- */

typedef struct estimate {
  const ax_sim_procedure *procedure;
  ax_sim_place place;
  ax_sim_route route;
  double *load, overhead, latency; /* load: by link, seconds */
  int64_t links;
} estimate;

/* Finds the load of each link in one step, and the longest route. If there are many messages, some, evenly chosen, stand for
   all. */
static ax_status load_step(estimate *e, const ax_sim_phase *phase, int64_t r, int64_t images) {
  enum { most = 1 << 14 };
  for (int64_t i = 0; i < images; i++) {
    const int64_t device = ax_sim_place_device(&e->place, i), sends = ax_sim_procedure_sends(e->procedure, phase, device);
    const int64_t stride = sends > most ? (sends + most - 1) / most : 1;
    double overhead = 0;
    for (int64_t k = 0; k < sends; k += stride) {
      const int64_t to = ax_sim_procedure_target(e->procedure, phase, r, k, device);
      AX_TRY(ax_sim_route_find(&e->place, device, to, &e->route));
      overhead += e->route.overhead * (double)stride;
      const double latency = e->route.latency + ax_sim_place_besides(&e->place, device, to, phase->bytes);
      if (latency > e->latency) e->latency = latency;
      for (uint32_t h = 0; h < e->route.count; h++) {
        const ax_sim_hop *hop = &e->route.hops[h];
        e->load[hop->link] += phase->bytes * hop->weight * (double)stride / ax_sim_place_wire(&e->place, hop->link)->bandwidth;
      }
    }
    if (overhead > e->overhead) e->overhead = overhead;
  }
  return AX_OK;
}

/* One step of phase i of all chains, which go on together. */
static ax_status time_step(estimate *e, uint32_t i, int64_t r, int64_t images, double *seconds, double *waiting) {
  double most = 0;
  memset(e->load, 0, (size_t)e->links * sizeof e->load[0]);
  e->overhead = e->latency = 0;
  for (uint32_t c = 0; c < e->procedure->chain_count; c++) AX_TRY(load_step(e, &e->procedure->chains[c].phases[i], r, images));
  for (int64_t l = 0; l < e->links; l++) most = e->load[l] > most ? e->load[l] : most;
  const bool many = e->procedure->chains[0].phases[i].fan > 1; /* they begin to arrive while others are still to be sent */
  *seconds = e->latency + (many ? (most > e->overhead ? most : e->overhead) : most + e->overhead);
  *waiting = *seconds - most;
  return AX_OK;
}

static ax_status time_phases(estimate *e, int64_t images, double *seconds, double *waiting) {
  enum { most = 32 };
  const ax_sim_chain *chain = &e->procedure->chains[0];
  for (uint32_t i = 0; i < chain->phase_count; i++) {
    const ax_sim_phase *phase = &chain->phases[i];
    const int64_t stride = !phase->varied ? phase->repeat : phase->repeat > most ? (phase->repeat + most - 1) / most : 1;
    for (int64_t r = 0; r < phase->repeat; r += stride) {
      const double steps = (double)(stride < phase->repeat - r ? stride : phase->repeat - r);
      double step, wait;
      AX_TRY(time_step(e, i, r, images, &step, &wait));
      *seconds += step * steps;
      *waiting += wait * steps;
    }
  }
  return AX_OK;
}

/* A chain of processes: the first block goes to the last process and back, and the others follow it (ax_chain_seconds). */
static void time_chain(const ax_sim_procedure *s, const ax_sim_place *place, double *seconds, double *waiting) {
  const ax_sim_wire *wire = &place->machine->network, *inside = &place->machine->wire;
  const double hops = 2 * (double)(processes_of(s) - 1), within = (double)s->group.members / (double)processes_of(s) - 1;
  const double block = block_of(s, 0), besides = ax_sim_place_besides(place, 0, place->machine->per_node, block);
  const double carrying = (double)(blocks_of(s) - 1) * (hops > 2 ? 2 : 1) * block / wire->bandwidth +
                          2 * within * s->bytes / inside->bandwidth;
  *waiting = hops * (wire->latency + wire->overhead + besides + block / wire->bandwidth);
  *seconds = *waiting + carrying;
}

static bool is_chain_of_processes(const ax_sim_procedure *s) {
  const ax_sim_chain *last = &s->chains[s->chain_count - 1];
  return last->phases[last->phase_count > 1].move == AX_MOVE_FORTH || last->phases[0].move == AX_MOVE_FORTH;
}

ax_status ax_sim_procedure_estimate(const ax_sim_procedure *s, const ax_sim_place *place, double *seconds, double *waiting) {
  estimate e = {.procedure = s, .place = *place};
  ax_sim_place_fold(&e.place);
  ax_sim_procedure_keep(s, &e.place);
  if (is_chain_of_processes(s)) {
    time_chain(s, place, seconds, waiting);
    return AX_OK;
  }
  const int64_t images = ax_sim_place_images(&e.place);
  e.links = ax_sim_place_links(&e.place);
  *seconds = *waiting = 0;
  e.load = ax_calloc((size_t)e.links, sizeof e.load[0]);
  ax_status status = e.load != NULL ? AX_OK : ax_out_of_memory((size_t)e.links * sizeof e.load[0]);
  if (status == AX_OK) status = time_phases(&e, images < place->devices ? images : place->devices, seconds, waiting);
  ax_free(e.load);
  ax_sim_route_deinit(&e.route);
  return status;
}
