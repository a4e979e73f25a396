/* Algorithms, as chains of phases.

   n members; B bytes are what each has at first (of an all-gather what each adds). Parts are rounded up to whole bytes.

     ring           reduce-scatter and all-gather in n-1 steps to the next member; on a torus to a neighbour, winding through its
                    dimensions
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
     torus          2 d parts side by side, d being the number of cycles: as dimensions, beginning with each cycle, and either way
     switch         in switches (switches.h)
     gather, shares, chain
                    over processes (processes/ways.h); run: which of them the table says. Devices of a process give each other what they
                    have directly. The blocks of a chain go forth one after the other and come back while others go forth */
#include "sim/procedure.h"

#include <math.h>
#include <string.h>

#include "processes/ways.h"
#include "sim/switches.h"

static const char *const names[AX_ALGORITHM_COUNT] = {"best",   "ring",     "bidirectional", "dimensions", "doubling", "tree", "direct",
                                                      "pairwise", "torus", "switch", "gather",       "shares",     "chain",    "run"};

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

static bool is_same_at(const ax_sim_switches *a, const ax_sim_switches *b) {
  return a->sums == b->sums && a->copies == b->copies && a->radix == b->radix;
}

bool ax_sim_procedure_same(const ax_sim_procedure *a, const ax_sim_procedure *b) {
  return a->kind == b->kind && a->bytes == b->bytes && a->root == b->root && a->source == b->source && a->target == b->target &&
         is_same_at(&a->inside, &b->inside) && is_same_at(&a->between, &b->between) && memcmp(&a->group, &b->group, sizeof a->group) == 0;
}

/* --- Phases --- */

ax_status ax_sim_chain_add(ax_sim_chain *chain, ax_sim_phase phase) {
  if (phase.repeat <= 0 || phase.fan <= 0) return AX_OK;
  phase.bytes = ceil(phase.bytes);
  phase.key = chain->keys;
  chain->keys += phase.varied ? phase.repeat : 1;
  AX_TRY(ax_grow(&chain->phases, sizeof chain->phases[0], chain->phase_count, 1, &chain->phase_capacity));
  chain->phases[chain->phase_count++] = phase;
  return AX_OK;
}

static double share(double bytes, int64_t members) { return ceil(bytes / (double)members); }

int64_t ax_sim_levels(int64_t members) {
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

static ax_status ring(ax_sim_procedure *s, bool back, double halves, ax_sim_chain *chain) {
  const int64_t n = s->group.members, steps = scatters(s) && gathers(s) ? 2 * (n - 1) : n - 1;
  const double part = scatters(s) ? share(s->bytes, n) : s->bytes;
  const bool winds = s->group.winding > 0;
  return ax_sim_chain_add(chain, (ax_sim_phase){.move = winds ? AX_MOVE_WINDING : AX_MOVE_MEMBER,
                                   .shift = !back ? 1 : winds ? -1 : n - 1,
                                   .repeat = steps,
                                   .fan = 1,
                                   .bytes = part / halves});
}

static ax_status both_ways(ax_sim_procedure *s) {
  s->chain_count = 2;
  AX_TRY(ring(s, false, 2, &s->chains[0]));
  return ring(s, true, 2, &s->chains[1]);
}

/* Rings along one cycle after the other. After each cycle's scatter 1/size of the data remains; each gather makes it larger by the same
   factor. `last`: the cycle that is scattered along first, and gathered along last; the one before follows, and so round. */
static ax_status rings(const ax_sim_procedure *s, uint32_t last, bool back, double bytes, ax_sim_chain *chain) {
  const ax_sim_group *g = &s->group;
  double part = bytes;
  for (uint32_t i = 0; i < g->count && scatters(s); i++) {
    const uint32_t p = (last + g->count - i) % g->count;
    const int64_t size = g->cycle[p].size;
    part = share(part, size);
    AX_TRY(ax_sim_chain_add(chain, (ax_sim_phase){
                          .move = AX_MOVE_CYCLE, .cycle = p, .shift = back ? size - 1 : 1, .repeat = size - 1, .fan = 1, .bytes = part}));
  }
  for (uint32_t i = g->count; i-- > 0 && gathers(s);) {
    const uint32_t p = (last + g->count - i) % g->count;
    const int64_t size = g->cycle[p].size;
    AX_TRY(ax_sim_chain_add(chain, (ax_sim_phase){
                          .move = AX_MOVE_CYCLE, .cycle = p, .shift = back ? size - 1 : 1, .repeat = size - 1, .fan = 1, .bytes = part}));
    part *= (double)size;
  }
  return AX_OK;
}

static ax_status dimensions(ax_sim_procedure *s, ax_sim_chain *chain) {
  const ax_sim_group *g = &s->group;
  if (s->kind != AX_COLLECTIVE_ALL_TO_ALL) return rings(s, g->count - 1, false, s->bytes, chain);
  for (uint32_t p = g->count; p-- > 0;)
    AX_TRY(ax_sim_chain_add(chain, (ax_sim_phase){.move = AX_MOVE_CYCLE,
                                     .cycle = p,
                                     .varied = true,
                                     .shift = 1,
                                     .repeat = g->cycle[p].size - 1,
                                     .fan = 1,
                                     .bytes = share(s->bytes, g->cycle[p].size)}));
  return AX_OK;
}

/* All links of a torus at once: a part for each dimension and way. Of one dimension alone that is `bidirectional`. */
static ax_status torus(ax_sim_procedure *s) {
  const uint32_t count = s->group.count;
  if (count < 2 || 2 * count > AX_MAX_CHAINS || s->kind == AX_COLLECTIVE_ALL_TO_ALL) return AX_OK;
  s->chain_count = 2 * count;
  for (uint32_t c = 0; c < s->chain_count; c++)
    AX_TRY(rings(s, c / 2, c % 2 == 1, share(s->bytes, s->chain_count), &s->chains[c]));
  return AX_OK;
}

/* Blocks, of `count`, whose number has bit `level`. */
static int64_t with_bit(int64_t count, int64_t level) {
  const int64_t half = (int64_t)1 << level, rest = count % (2 * half);
  return count / (2 * half) * half + (rest > half ? rest - half : 0);
}

static ax_status double_along(ax_sim_chain *chain, uint32_t p, int64_t n, int64_t level, double blocks, double part, bool back) {
  const int64_t far = (int64_t)1 << level;
  return ax_sim_chain_add(chain,
             (ax_sim_phase){
                 .move = AX_MOVE_CYCLE, .cycle = p, .shift = back ? n - far : far, .repeat = 1, .fan = 1, .bytes = blocks * part});
}

ax_status ax_sim_chain_double(ax_sim_chain *chain, uint32_t cycle, int64_t size, double part, bool back) {
  const int64_t count = ax_sim_levels(size);
  for (int64_t i = 0; i < count; i++) {
    const int64_t level = back ? i : count - 1 - i, far = (int64_t)1 << level;
    AX_TRY(double_along(chain, cycle, size, level, (double)(far < size - far ? far : size - far), part, back));
  }
  return AX_OK;
}

static ax_status doubling(ax_sim_procedure *s, ax_sim_chain *chain) {
  const ax_sim_group *g = &s->group;
  double part = s->bytes;
  for (uint32_t p = g->count; p-- > 0 && scatters(s);) {
    const int64_t n = g->cycle[p].size;
    part = share(part, n);
    AX_TRY(ax_sim_chain_double(chain, p, n, part, false));
  }
  for (uint32_t p = 0; p < g->count && gathers(s); p++) {
    const int64_t n = g->cycle[p].size;
    AX_TRY(ax_sim_chain_double(chain, p, n, part, true));
    part *= (double)n;
  }
  for (uint32_t p = g->count; p-- > 0 && s->kind == AX_COLLECTIVE_ALL_TO_ALL;) {
    const int64_t n = g->cycle[p].size;
    for (int64_t l = 0; l < ax_sim_levels(n); l++) AX_TRY(double_along(chain, p, n, l, (double)with_bit(n, l), share(part, n), false));
  }
  return AX_OK;
}

static ax_status tree(ax_sim_procedure *s, ax_sim_chain *chain) {
  const int64_t depth = ax_sim_levels(s->group.members);
  for (int64_t l = 0; l < depth && s->kind == AX_COLLECTIVE_ALL_REDUCE; l++)
    AX_TRY(ax_sim_chain_add(chain, (ax_sim_phase){.move = AX_MOVE_UP, .shift = l, .repeat = 1, .fan = 1, .bytes = s->bytes}));
  for (int64_t l = depth; l-- > 0;)
    AX_TRY(ax_sim_chain_add(chain, (ax_sim_phase){.move = AX_MOVE_DOWN, .shift = l, .repeat = 1, .fan = 1, .bytes = s->bytes}));
  return AX_OK;
}

static ax_status direct(ax_sim_procedure *s, ax_sim_chain *chain) {
  const bool parts = s->kind == AX_COLLECTIVE_REDUCE_SCATTER || s->kind == AX_COLLECTIVE_ALL_TO_ALL;
  const ax_sim_move move = s->kind == AX_COLLECTIVE_BROADCAST ? AX_MOVE_STAR : AX_MOVE_APART;
  return ax_sim_chain_add(chain, (ax_sim_phase){.move = move,
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
  return ax_sim_chain_add(chain, phase);
}

/* --- Over processes --- */

/* Members of each process follow one another. */
static bool is_in_order(const ax_sim_procedure *s) {
  for (uint32_t p = 1; p < s->group.count; p++)
    if (ax_sim_procedure_crosses(s, &s->group.cycle[p]) && !ax_sim_procedure_crosses(s, &s->group.cycle[p - 1])) return false;
  return true;
}

static ax_status gather_over(ax_sim_procedure *s, int64_t processes) {
  const int64_t n = s->group.members, within = n / processes;
  const bool parts = s->kind == AX_COLLECTIVE_REDUCE_SCATTER || s->kind == AX_COLLECTIVE_ALL_TO_ALL;
  s->chain_count = 1;
  AX_TRY(ax_sim_chain_add(&s->chains[0], (ax_sim_phase){.move = AX_MOVE_PROCESSES, .shift = 1, .repeat = 1, .fan = processes - 1,
                                           .bytes = parts ? s->bytes / (double)processes : s->bytes}));
  AX_TRY(ax_sim_chain_add(&s->chains[0], (ax_sim_phase){.move = AX_MOVE_WITHIN, .shift = 1, .repeat = 1, .fan = within - 1,
                                           .bytes = parts ? s->bytes / (double)n : s->bytes}));
  return AX_OK;
}

/* Members give each process its share; its first member sends the total of it to those of the others, and has the whole sum then. */
static ax_status shares_over(ax_sim_procedure *s, int64_t processes) {
  const int64_t within = s->group.members / processes;
  const double part = share(s->bytes, processes);
  ax_sim_chain *chain = &s->chains[0];
  s->chain_count = 1;
  AX_TRY(ax_sim_chain_add(chain, (ax_sim_phase){.move = AX_MOVE_PROCESSES, .shift = 1, .repeat = 1, .fan = processes - 1, .bytes = part}));
  AX_TRY(ax_sim_chain_add(chain, (ax_sim_phase){.move = AX_MOVE_WITHIN, .shift = 1, .repeat = 1, .fan = within - 1, .bytes = part}));
  AX_TRY(ax_sim_chain_add(chain, (ax_sim_phase){.move = AX_MOVE_TOTALS, .shift = 1, .repeat = 1, .fan = processes - 1, .bytes = part}));
  return ax_sim_chain_add(chain, (ax_sim_phase){.move = AX_MOVE_OUT, .shift = 1, .repeat = 1, .fan = within - 1, .bytes = s->bytes});
}

static ax_status pass(const ax_sim_procedure *s, ax_sim_chain *chain, ax_sim_move move, int64_t process, int64_t k) {
  const double bytes = ax_sim_procedure_block(s, k);
  return ax_sim_chain_add(chain, (ax_sim_phase){.move = move, .shift = process, .repeat = 1, .fan = 1, .bytes = bytes});
}

static ax_status pass_forth(const ax_sim_procedure *s, ax_sim_chain *chain, int64_t processes, int64_t k) {
  for (int64_t p = 0; p + 1 < processes; p++) AX_TRY(pass(s, chain, AX_MOVE_FORTH, p, k));
  return AX_OK;
}

static ax_status pass_back(const ax_sim_procedure *s, ax_sim_chain *chain, int64_t processes, int64_t k) {
  for (int64_t p = processes; --p > 0;) AX_TRY(pass(s, chain, AX_MOVE_BACK, p, k));
  return AX_OK;
}

/* Blocks come back while others go forth, so there are two chains of phases. The one that goes back begins with the way of the first block
   to the last process; the other has the blocks after that. */
static ax_status chain_over(ax_sim_procedure *s, int64_t processes) {
  const int64_t within = s->group.members / processes, blocks = ax_sim_procedure_blocks(s);
  ax_sim_chain *forth = &s->chains[0], *back = &s->chains[1];
  const ax_sim_phase adds = {.move = AX_MOVE_WITHIN, .shift = 1, .repeat = 1, .fan = within - 1, .bytes = share(s->bytes, 2 * within)};
  s->chain_count = blocks > 1 ? 2 : 1;
  if (blocks == 1) back = forth;
  else AX_TRY(ax_sim_chain_add(forth, adds));
  AX_TRY(ax_sim_chain_add(back, adds));
  AX_TRY(pass_forth(s, back, processes, 0));
  for (int64_t k = 1; k < blocks; k++) AX_TRY(pass_forth(s, forth, processes, k));
  for (int64_t k = 0; k < blocks; k++) AX_TRY(pass_back(s, back, processes, k));
  return ax_sim_chain_add(back, (ax_sim_phase){.move = AX_MOVE_OUT, .shift = 1, .repeat = 1, .fan = within - 1, .bytes = s->bytes});
}

static ax_status over_processes(ax_sim_procedure *s, ax_algorithm algorithm) {
  const int64_t processes = ax_sim_procedure_processes(s);
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
    case AX_ALGORITHM_RING: return all_to_all || broadcast ? AX_OK : ring(s, false, 1, chain);
    case AX_ALGORITHM_BIDIRECTIONAL: return all_to_all || broadcast ? AX_OK : both_ways(s);
    case AX_ALGORITHM_DIMENSIONS: return broadcast ? AX_OK : dimensions(s, chain);
    case AX_ALGORITHM_DOUBLING: return broadcast ? AX_OK : doubling(s, chain);
    case AX_ALGORITHM_TREE: return broadcast || s->kind == AX_COLLECTIVE_ALL_REDUCE ? tree(s, chain) : AX_OK;
    case AX_ALGORITHM_DIRECT: return direct(s, chain);
    case AX_ALGORITHM_PAIRWISE:
      return !all_to_all ? AX_OK
                         : ax_sim_chain_add(chain, (ax_sim_phase){.move = AX_MOVE_APART,
                                                     .varied = true,
                                                     .shift = 1,
                                                     .repeat = s->group.members - 1,
                                                     .fan = 1,
                                                     .bytes = share(s->bytes, s->group.members)});
    case AX_ALGORITHM_TORUS: return broadcast ? AX_OK : torus(s);
    case AX_ALGORITHM_SWITCH: return ax_sim_switch_make(s, chain);
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
