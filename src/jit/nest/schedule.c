/* Makes a schedule: finds the live nodes, makes loops of dimensions (loops.c), chooses the vector loop by cost, decides between
   rows, columns, squares and several rows a vector, and orders the loops. Each choice depends on the ones before it and on the
   kernel's sizes alone. */
#include "jit/nest/schedule.h"

#include <string.h>

#include "ir/program.h"
#include "machine/caches.h"

/* --- How much it computes --- */

/* Rough size of the body: unrolling pays for small ones only. `call`: that of a function that is called. */
enum { function_weight = 12 };

static uint32_t node_weight(const ax_nest_schedule *s, const ax_expr *expr, uint32_t call) {
  if (expr->op == AX_LEAF_CONST || expr->op == AX_LEAF_GIVEN) return 0;
  if (expr->op == AX_SCALAR_POW || !ax_scalar_is_function(expr->op)) return 1;
  if (expr->op == AX_SCALAR_SQRT || expr->op == AX_SCALAR_RSQRT) return function_weight;
  if (ax_is_narrow_float(expr->dtype)) return s->paired ? 8 : function_weight; /* in line: half_math.c */
  return expr->dtype == AX_F64 ? function_weight : call;
}

static uint32_t body_weight(const ax_nest_schedule *s, uint32_t call) {
  uint32_t weight = 0;
  for (ax_ex id = 0; id < s->kernel->expr_count; id++)
    if (s->live[id]) weight += node_weight(s, &s->kernel->exprs[id], call);
  return weight;
}

bool ax_expr_is_exp(const ax_expr *expr) {
  return expr->op == AX_SCALAR_EXP && expr->dtype == AX_F32 && !ax_scalar_precise(expr->op, expr->dtype, expr->imm);
}

/* Registers of 16 bytes call SLEEF's. */
static bool computes_in_line(const ax_nest_schedule *s) {
  enum { many_vectors = 2048, few = 4 };
  uint32_t count = 0;
  for (ax_ex id = 0; id < s->kernel->expr_count; id++) count += s->live[id] && ax_expr_is_exp(&s->kernel->exprs[id]);
  return s->vector_bytes >= 32 && count > 0 && count <= few && s->work * 4 / s->vector_bytes >= many_vectors;
}

/* --- The vector loop --- */

bool ax_scalar_in_f16(ax_scalar op) {
  if (op == AX_SCALAR_INTEGER_POW || op == AX_SCALAR_REM) return false;
  return op == AX_SCALAR_SQRT || !ax_scalar_is_function(op);
}

/* Sums are added up in f32, in the same order on all machines with registers of that size. */
static bool computes_in_f16(const ax_nest_schedule *s, const ax_expr *expr) {
  return s->f16 && !s->reduces && expr->dtype == AX_F16 && ax_scalar_in_f16(expr->op);
}

/* Bytes an element of this type takes in a register, as far as the lane count should care: narrow floats are computed in f32,
   comparisons are masks, and 64-bit integers that are only index arithmetic should not halve everything else. */
static size_t lane_bytes(const ax_nest_schedule *s, const ax_expr *expr) {
  if (ax_is_narrow_float(expr->dtype)) return computes_in_f16(s, expr) ? 2 : 4;
  if (expr->op != AX_LEAF_LOAD && (expr->dtype == AX_S64 || expr->dtype == AX_U64)) return 1;
  return ax_dtype_bytes(expr->dtype);
}

/* Lanes of a register, for elements of `widest` bytes or of the widest dtype that the kernel computes or stores, if that is
   wider. */
static uint32_t lanes_of(const ax_nest_schedule *s, uint32_t vector_bytes, size_t widest) {
  for (ax_ex id = 0; id < s->kernel->expr_count; id++) {
    size_t bytes = lane_bytes(s, &s->kernel->exprs[id]);
    if (s->live[id] && bytes > widest) widest = bytes;
  }
  for (uint32_t i = 0; i < s->kernel->store_count; i++) {
    size_t bytes = ax_dtype_bytes(s->kernel->slots[s->kernel->stores[i].slot].dtype);
    if (bytes > widest) widest = bytes;
  }
  return vector_bytes / (uint32_t)widest;
}

/* Before AVX-512 there are no masks for elements of less than 4 bytes: each lane of a remainder would be a branch. */
static uint32_t choose_lanes(const ax_nest_schedule *s, uint32_t vector_bytes) {
  return lanes_of(s, vector_bytes, vector_bytes < 64 ? 4 : 1);
}

/* Instructions to move one vector, roughly. */
static double access_cost(const ax_nest_schedule *s, const ax_nest_access *access, uint32_t loop, bool store) {
  int64_t stride = access->stride[loop];
  if (ax_access_is_moved(access, loop)) return s->lanes * 2;
  if (stride == 0) return 0.25;
  if (stride == 1) return 1;
  if (stride == -1) return 2;
  if (store) return s->lanes * 3;
  if (ax_nest_schedule_row_line(s, access, loop) > 0) return 8;
  if (ax_nest_schedule_in_columns(s, (ax_ex)(access - s->accesses), loop)) return 6;
  if (ax_nest_schedule_can_turn(s, access, loop, AX_FULL_SQUARE)) return 5;
  if (ax_nest_schedule_can_turn(s, access, loop, AX_SHORT_SQUARE)) return 10;
  return ax_access_picks(access, loop, s->lanes) ? (double)stride * 2
                                                 : s->lanes * (ax_dtype_bytes(s->kernel->slots[access->slot].dtype) < 4 ? 2 : 1.25);
}

/* To combine the lanes of one register. Largest and smallest floats take several instructions where they are not compared as
   integers (order.c). */
static double across_cost(const ax_nest_schedule *s, const ax_store *store) {
  bool extreme = (store->reduce == AX_SCALAR_MAX || store->reduce == AX_SCALAR_MIN) && s->vector_bytes < 32 &&
                 ax_is_float(s->kernel->slots[store->slot].dtype);
  return 2 * __builtin_ctz(s->lanes) * (extreme ? 5 : 1);
}

static int64_t reduced_elems(const ax_nest_schedule *s) {
  int64_t elems = 1;
  for (uint32_t l = 0; l < s->loop_count; l++)
    if (s->loops[l].reduced) elems *= s->loops[l].extent;
  return elems;
}

static bool moves_along_reduced(const ax_nest_schedule *s, const ax_nest_access *access) {
  const uint64_t deps = ax_access_deps(s, access);
  for (uint32_t l = 0; l < s->loop_count; l++)
    if (s->loops[l].reduced && (deps >> l & 1) != 0) return true;
  return false;
}

/* How many steps share one access. What is loaded for a sum, or stored of it, and does not move along a loop that is reduced, is touched once
   for all steps of these loops: as x[i] is where y[i] is the sum over j of x[i] times j. */
static double sharing(const ax_nest_schedule *s, const ax_nest_access *access) {
  return s->reduces && !s->running && !moves_along_reduced(s, access) ? (double)reduced_elems(s) : 1;
}

/* Instructions for one vector of a node, roughly. A function takes as long for a vector that is half empty as for a full one. */
static double node_cost(const ax_expr *expr) {
  enum { function = 24, root = 4 };
  if (expr->op >= AX_SCALAR_COUNT || !ax_scalar_is_function(expr->op)) return 0.5;
  return expr->op == AX_SCALAR_SQRT || expr->op == AX_SCALAR_RSQRT ? root : function;
}

/* Per element of the loop. A vector that is half empty costs as much as a full one. */
static double loop_cost(const ax_nest_schedule *s, uint32_t loop) {
  const ax_loop *l = &s->loops[loop];
  double cost = 0, vectors = (double)((l->extent + s->lanes - 1) / s->lanes);
  for (ax_ex id = 0; id < s->kernel->expr_count; id++) {
    const ax_nest_access *access = &s->accesses[id];
    if (s->live[id]) cost += access->live ? access_cost(s, access, loop, false) / sharing(s, access) : node_cost(&s->kernel->exprs[id]);
  }
  for (uint32_t i = 0; i < s->kernel->store_count; i++) {
    const bool plain = s->kernel->stores[i].reduce == AX_SCALAR_NONE;
    const ax_nest_access *access = ax_nest_schedule_store(s, i);
    if (plain || s->running || !l->reduced) cost += access_cost(s, access, loop, true) / sharing(s, access);
    const double across = l->reduced ? across_cost(s, &s->kernel->stores[i]) : 0;
    if (!plain) cost += 1 + (s->running ? across : across / vectors);
  }
  return cost * vectors / (double)l->extent;
}

/* Of the loop that is cut into ranges a call may get a single step, of which no vector is made. That is of no use where what is stored
   lies apart along it, and another loop is as long as a vector. */
static bool is_cut_short(const ax_nest_schedule *s, uint32_t loop) {
  if (!s->loops[loop].ranged || s->reduces || ax_stride_length(ax_nest_schedule_store(s, 0)->stride[loop]) <= 1) return false;
  for (uint32_t l = 0; l < s->loop_count; l++)
    if (l != loop && s->loops[l].extent >= s->lanes) return true;
  return false;
}

static uint32_t choose_vector(const ax_nest_schedule *s) {
  uint32_t best = s->loop_count - 1;
  double best_cost = loop_cost(s, best);
  for (uint32_t loop = best; loop-- > 0;) {
    if (is_cut_short(s, loop)) continue;
    double cost = loop_cost(s, loop);
    if (cost < best_cost) {
      best = loop;
      best_cost = cost;
    }
  }
  return best;
}

/* --- Shape and order --- */

/* Nor are there gathers for them; element by element, the fewer the better. */
static bool gathers_short_elements(const ax_nest_schedule *s) {
  for (uint32_t a = 0; a < ax_nest_schedule_access_count(s); a++) {
    const ax_nest_access *access = &s->accesses[a];
    int64_t stride = access->stride[s->vector];
    bool near = access->transposed || (stride >= -1 && stride <= 1) || ax_access_picks(access, s->vector, s->lanes);
    if (ax_access_is_moved(access, s->vector)) near = false;
    near |= ax_nest_schedule_in_columns(s, a, s->vector) ||
            (a < s->kernel->expr_count && ax_nest_schedule_row_line(s, access, s->vector) > 0);
    if (access->live && !near && ax_dtype_bytes(s->kernel->slots[access->slot].dtype) < 4) return true;
  }
  return false;
}

static bool looks_up(const ax_nest_schedule *s) {
  for (ax_ex id = 0; id < s->kernel->expr_count; id++)
    if (s->accesses[id].live && ax_access_has_starts(s, &s->accesses[id])) return true;
  return false;
}

/* Registers no longer than a short loop fills. Pairs that are looked up are moved by two lanes without masks. */
static void shorten(ax_nest_schedule *s) {
  const int64_t extent = s->loops[s->vector].extent;
  const uint32_t least = extent == 2 && looks_up(s) ? 2 : 4;
  while (s->lanes > least && extent <= s->lanes / 2) s->lanes /= 2;
}

/* RUNS: for a reduction along the vector loop, the parallel loop whose rows lie nearest to each other, if some rows that are
   added up lie further apart. -1: there is none. The load decides that moves along the vector loop and most other loops. */
static int choose_listed(const ax_nest_schedule *s) {
  enum { long_row = 16 << 10, least = 2 };
  const ax_nest_access *most = NULL;
  int listed = -1;
  int64_t far = 0;
  for (ax_ex id = 0; id < s->kernel->expr_count; id++) {
    const ax_nest_access *access = &s->accesses[id];
    if (!access->live || access->stride[s->vector] == 0 || ax_access_is_moved(access, s->vector)) continue;
    if (most == NULL || __builtin_popcountll(ax_access_deps(s, access)) > __builtin_popcountll(ax_access_deps(s, most)))
      most = access;
  }
  if (!s->reduces || s->running || !s->loops[s->vector].reduced || most == NULL) return -1;
  if (s->loops[s->vector].extent * (int64_t)ax_dtype_bytes(s->kernel->slots[most->slot].dtype) > long_row) return -1;
  for (uint32_t l = 0; l < s->loop_count; l++)
    if (s->loops[l].reduced && l != s->vector && s->loops[l].extent >= least && ax_stride_length(most->stride[l]) > far)
      far = ax_stride_length(most->stride[l]);
  for (uint32_t l = 0; l < s->loop_count; l++) {
    int64_t stride = ax_stride_length(most->stride[l]);
    if (s->loops[l].reduced || s->loops[l].extent < least || stride == 0 || stride >= far) continue;
    if (listed < 0 || stride < ax_stride_length(most->stride[listed])) listed = (int)l;
  }
  return listed;
}

/* For a reduction whose lanes are rows: the elements of each row that are loaded at a time. 0: it is no such reduction. */
static uint32_t row_line(const ax_nest_schedule *s) {
  uint32_t line = 0;
  for (ax_ex id = 0; id < s->kernel->expr_count; id++) {
    uint32_t own = s->accesses[id].live ? ax_nest_schedule_row_line(s, &s->accesses[id], s->vector) : 0;
    if (own > line) line = own;
  }
  return line;
}

/* Sums of narrow floats over numbers that caches near the core hold: they are widened once for several rows that are added up, if
   these are taken together. */
static bool sums_near(const ax_nest_schedule *s) {
  enum { near_elems = AX_SUMS_NEAR_BYTES / 4 };
  bool found = false;
  for (uint32_t i = 0; i < s->kernel->store_count; i++) {
    const ax_store *store = &s->kernel->stores[i];
    found = found || (store->reduce == AX_SCALAR_ADD && ax_rounds(s->kernel->slots[store->slot].dtype) &&
                      s->kernel->slots[store->slot].dtype != AX_F64);
  }
  return found && s->work <= near_elems;
}

/* Whether some load goes along the vector loop and along a reduced one. If none does, as where all pairs of two lists are gone through, memory is
   read in no rows, and results can stay in registers; not so around longer work, for which tiles have more vectors under way. */
static bool reads_rows(const ax_nest_schedule *s) {
  enum { light = 8 };
  if (s->weight > light) return true;
  for (ax_ex id = 0; id < s->kernel->expr_count; id++) {
    const ax_nest_access *access = &s->accesses[id];
    if (access->live && (ax_access_deps(s, access) >> s->vector & 1) != 0 && moves_along_reduced(s, access)) return true;
  }
  return false;
}

static ax_nest_shape choose_shape(const ax_nest_schedule *s) {
  const ax_loop *vector = &s->loops[s->vector];
  int64_t rows = reduced_elems(s);
  if (!s->reduces || vector->reduced) return choose_listed(s) >= 0 ? AX_NEST_RUNS : AX_NEST_LANES;
  if (rows == 1 || (s->running && vector->extent <= 8 * (int64_t)s->lanes)) return AX_NEST_BLOCK;
  if (s->running) return AX_NEST_TILE;
  if (vector->extent <= s->lanes || row_line(s) > 0) return AX_NEST_STRIP;
  if (rows <= 16 || !reads_rows(s)) return AX_NEST_BLOCK;
  return vector->extent <= 8 * (int64_t)s->lanes && !sums_near(s) ? AX_NEST_BLOCK : AX_NEST_TILE;
}

/* The extent of the last reduced loop. */
static int64_t row_length(const ax_nest_schedule *s) {
  int64_t row = 1;
  for (uint32_t l = 0; l < s->loop_count; l++)
    if (s->loops[l].reduced) row = s->loops[l].extent;
  return row;
}

enum { most_masks = 4 }; /* sums of bools in registers, beside as many that are added: there are seven for masks */

static bool gives_masks(const ax_nest_schedule *s) {
  for (uint32_t i = 0; i < s->kernel->store_count; i++)
    if (s->kernel->slots[s->kernel->stores[i].slot].dtype == AX_BOOL && s->kernel->stores[i].reduce != AX_SCALAR_NONE) return true;
  return false;
}

/* Reductions need several chains of additions at once. The rest does well enough with as many vectors as are given. A call is one
   instruction, but all sums wait in memory meanwhile: the way there and back takes as long as a function of f32, so that several
   vectors must share it. `call`: see body_weight. */
static uint32_t choose_unroll(const ax_nest_schedule *s, uint32_t abreast, uint32_t call) {
  if (s->running && s->shape != AX_NEST_BLOCK) return 1;
  uint32_t weight = body_weight(s, call) * s->kernel->store_count, unroll = weight <= 8 ? 4 : weight <= 24 ? 2 : 1;
  if (!s->reduces || s->shape == AX_NEST_TRANSPOSE) unroll = abreast;
  else if ((s->shape == AX_NEST_BLOCK || s->shape == AX_NEST_TILE) && weight <= 4) unroll = 8;
  if (s->shape == AX_NEST_BLOCK && gives_masks(s) && unroll > most_masks) unroll = most_masks;
  if (s->shape == AX_NEST_STRIP && row_line(s) > 0) unroll = (uint32_t)row_length(s);
  int64_t vectors = (s->loops[s->vector].extent + s->lanes - 1) / s->lanes;
  bool along_vector = s->shape == AX_NEST_BLOCK || s->shape == AX_NEST_LANES || s->shape == AX_NEST_RUNS;
  while (along_vector && unroll > 1 && unroll / 2 >= vectors) unroll /= 2; /* of nothing there are no vectors */
  return s->paired && unroll == 1 ? 2 : unroll;
}

static void move_loop(ax_nest_schedule *s, ax_loop *loops, uint32_t *to_new, uint32_t old) {
  to_new[old] = s->loop_count;
  s->loops[s->loop_count++] = loops[old];
}

/* Writes strides and dimensions in terms of the new loop numbers. */
static void renumber(ax_nest_schedule *s, const uint32_t *to_new) {
  for (uint32_t a = 0; a < ax_nest_schedule_access_count(s); a++) {
    int64_t stride[AX_MAX_LOOPS] = {0}, uneven[AX_MAX_LOOPS] = {0};
    for (uint32_t l = 0; l < s->loop_count; l++) {
      stride[to_new[l]] = s->accesses[a].stride[l];
      uneven[to_new[l]] = s->accesses[a].uneven[l];
    }
    memcpy(s->accesses[a].stride, stride, sizeof stride);
    memcpy(s->accesses[a].uneven, uneven, sizeof uneven);
  }
  for (uint32_t d = 0; d < s->kernel->rank; d++)
    if (s->loop_of_dim[d] >= 0) s->loop_of_dim[d] = (int)to_new[s->loop_of_dim[d]];
}

/* `last`: a loop that goes innermost after all, or -1; `listed`: one that goes inside of the reduced ones, or -1. */
static void order_loops(ax_nest_schedule *s, int last, int listed) {
  ax_loop loops[AX_MAX_LOOPS];
  uint32_t to_new[AX_MAX_LOOPS], count = s->loop_count, vector = s->vector;
  bool inside = s->shape == AX_NEST_LANES || s->shape == AX_NEST_TILE || s->shape == AX_NEST_RUNS;
  memcpy(loops, s->loops, sizeof loops);
  s->loop_count = 0;
  for (uint32_t l = 0; l < count; l++)
    if (l != vector && !loops[l].reduced && (int)l != last && (int)l != listed) move_loop(s, loops, to_new, l);
  s->outer = s->loop_count;
  if (!inside) move_loop(s, loops, to_new, vector);
  for (uint32_t l = 0; l < count; l++)
    if (l != vector && loops[l].reduced && (int)l != last) move_loop(s, loops, to_new, l);
  if (listed >= 0) move_loop(s, loops, to_new, (uint32_t)listed);
  if (inside) move_loop(s, loops, to_new, vector);
  if (last >= 0) move_loop(s, loops, to_new, (uint32_t)last);
  renumber(s, to_new);
  s->vector = to_new[vector];
  if (listed >= 0) s->listed = to_new[listed];
}

/* Short rows that are read in one order and written in another. The last two parallel loops are a, and b inside of it:

       for a:  for b:  y[a, b, :] = x[b, a, :]

   A cache line of x has a row for one a and the next rows for later a. So b is done in blocks, small enough that the lines read
   for all of a stay in the first cache. */
static int64_t choose_blocked(const ax_nest_schedule *s) {
  enum { long_row = 128, least = 4 };
  if (s->shape != AX_NEST_LANES || s->reduces || s->outer < 2) return 0;
  const ax_loop *a = &s->loops[s->outer - 2], *b = &s->loops[s->outer - 1];
  const int64_t *to = ax_nest_schedule_store(s, 0)->stride;
  const int64_t first = ax_caches_here()->first;
  int64_t block = 0;
  if (ax_stride_length(to[s->outer - 2]) < ax_stride_length(to[s->outer - 1])) return 0;
  for (ax_ex id = 0; id < s->kernel->expr_count; id++) {
    const ax_nest_access *access = &s->accesses[id];
    int64_t along_a = ax_stride_length(access->stride[s->outer - 2]), along_b = ax_stride_length(access->stride[s->outer - 1]);
    if (!access->live || access->moved != 0 || along_a == 0 || along_a >= along_b) continue;
    int64_t bytes = (int64_t)ax_dtype_bytes(s->kernel->slots[access->slot].dtype), row = s->loops[s->vector].extent * bytes;
    if (row > long_row || s->work * bytes < ax_caches_here()->second / 2 || a->extent * row > first / least) continue;
    int64_t fits = first / (a->extent * row);
    if (block == 0 || fits < block) block = fits;
  }
  return block < b->extent ? block : 0;
}

/* How many values are added one after the other into an accumulator, if so many iterations are done at a time. */
static int64_t chain(const ax_nest_schedule *s, uint32_t unroll) {
  int64_t rows = reduced_elems(s), lanes = s->lanes;
  int64_t vectors = (s->loops[s->vector].extent + lanes - 1) / lanes;
  if (s->shape == AX_NEST_BLOCK) return rows;
  if (s->shape == AX_NEST_RUNS) return rows / s->loops[s->vector].extent * ((vectors + unroll - 1) / unroll);
  if (s->shape == AX_NEST_LANES) rows = rows / s->loops[s->vector].extent * vectors;
  return (rows + unroll - 1) / unroll;
}

/* --- Several rows a vector --- */

/* The loops as the first store steps through them, the widest steps first. */
static void sort_loops(const ax_nest_schedule *s, uint32_t *order) {
  const int64_t *stride = ax_nest_schedule_store(s, 0)->stride;
  for (uint32_t l = 0; l < s->loop_count; l++) {
    uint32_t at = l;
    for (; at > 0 && ax_stride_length(stride[order[at - 1]]) < ax_stride_length(stride[l]); at--) order[at] = order[at - 1];
    order[at] = l;
  }
}

/* In that order: how many of the first loops stay as they are, at least one, so that those after them, of AX_MAX_NARROW iterations
   together at most, are narrow. 0: none are. */
static uint32_t before_narrow(const ax_nest_schedule *s, const uint32_t *order, int64_t *narrow) {
  uint32_t first = s->loop_count;
  for (*narrow = 1; first > 1; first--) {
    const ax_loop *loop = &s->loops[order[first - 1]];
    if (*narrow * loop->extent > AX_MAX_NARROW || loop->ranged) break;
    *narrow *= loop->extent;
  }
  return *narrow > 1 ? first : 0;
}

static void make_narrow(ax_nest_schedule *s, const uint32_t *order, uint32_t first, int64_t narrow) {
  uint32_t to_new[AX_MAX_LOOPS];
  ax_loop loops[AX_MAX_LOOPS];
  memcpy(loops, s->loops, sizeof loops);
  for (uint32_t l = 0; l < s->loop_count; l++) {
    s->loops[l] = loops[order[l]];
    to_new[order[l]] = l;
  }
  renumber(s, to_new);
  s->outer = first - 1;
  s->vector = s->unrolled = s->loop_count - 1;
  s->narrow = (uint32_t)narrow;
  s->shape = AX_NEST_NARROW;
  s->unroll = 1;
  ax_nest_schedule_find_deps(s);
}

/* Whether elements are stored a few apart, as a column of a narrow array is: rows of one element. */
static bool stores_apart(const ax_nest_schedule *s, const uint32_t *order) {
  enum { most_apart = 8 };
  const uint32_t last = order[s->loop_count - 1];
  const int64_t apart = ax_stride_length(ax_nest_schedule_store(s, 0)->stride[last]);
  return apart > 1 && apart <= most_apart && s->loops[last].extent >= s->lanes && s->loop_count < AX_MAX_LOOPS;
}

/* A loop of one step inside all others, along which stores step. Loads do not, since what they load may be where a store starts. */
static void add_single(ax_nest_schedule *s, uint32_t *order) {
  const uint32_t l = order[s->loop_count] = s->loop_count;
  s->loop_count++;
  s->loops[l] = (ax_loop){.extent = 1};
  for (uint32_t a = 0; a < ax_nest_schedule_access_count(s); a++) {
    s->accesses[a].stride[l] = a >= s->kernel->expr_count;
    s->accesses[a].uneven[l] = 0;
  }
}

/* By rows, the last vector of each is masked. That is slow where it reaches over two cache lines, or where the next row is read
   while the mask's store is on its way: 6 to 8 ns a row in a loop on Zen 4. A body for many vectors takes longer to compile, 0.03
   to 0.1 ms for each operation of a vector, which few rows do not bring back. Rows of whole vectors have less to gain. */
static bool narrow_pays(const ax_nest_schedule *s, int64_t narrow, bool often) {
  enum { call_weight = 4, most_whole = 96, whole_rows = 4096, most_nodes = 256, least_rows = 64, rows_a_node = 4 };
  const int64_t nodes = body_weight(s, call_weight) * narrow, rows = s->work / narrow;
  const bool along = ax_stride_length(ax_nest_schedule_store(s, 0)->stride[s->vector]) == 1;
  if (along && s->loops[s->vector].extent % s->lanes == 0) return nodes <= most_whole && rows >= whole_rows;
  return nodes <= most_nodes && (often || (rows >= least_rows && rows >= nodes * rows_a_node));
}

/* Fewer rows than lanes, computed often, are blocks of shorter vectors, if these leave no row over. */
static uint32_t lanes_for_rows(const ax_nest_schedule *s, int64_t rows, bool often) {
  enum { least = 4 };
  uint32_t lanes = s->lanes;
  while (often && rows < s->lanes && lanes > least && rows % lanes != 0) lanes /= 2;
  return rows >= s->lanes || rows % lanes == 0 ? lanes : 0;
}

static ax_status choose_narrow(ax_nest_schedule *s, ax_arena *arena, bool often, bool *chosen) {
  enum { masked_row = 4 };
  uint32_t order[AX_MAX_LOOPS], first;
  int64_t narrow;
  *chosen = false;
  if (s->reduces || ax_nest_schedule_fits_squares(s)) return AX_OK;
  sort_loops(s, order);
  first = before_narrow(s, order, &narrow);
  const bool single = narrow == 1 && stores_apart(s, order) && !ax_nest_schedule_weaves(s);
  if (single) first = s->loop_count;
  const uint32_t lanes = first > 0 ? lanes_for_rows(s, s->loops[order[first - 1]].extent, often) : 0;
  if (lanes == 0 || !narrow_pays(s, narrow, often)) return AX_OK;
  const int64_t row = s->loops[s->vector].extent;
  double cost, by_rows = loop_cost(s, s->vector) + (row % s->lanes == 0 ? 1.0 : masked_row) / (double)row;
  ax_nest_schedule before = *s;
  ax_nest_access *accesses = ax_arena_copy(arena, s->accesses, ax_nest_schedule_access_count(s) * sizeof accesses[0]);
  if (accesses == NULL) return ax_out_of_memory(ax_nest_schedule_access_count(s) * sizeof accesses[0]);
  if (single) add_single(s, order);
  s->lanes = lanes;
  make_narrow(s, order, first, narrow);
  cost = ax_narrow_cost(s);
  *chosen = cost >= 0 && cost < by_rows;
  if (*chosen) return AX_OK;
  *s = before;
  s->accesses = accesses;
  ax_nest_schedule_find_deps(s);
  return AX_OK;
}

static bool allocate(ax_nest_schedule *s, ax_arena *arena) {
  size_t exprs = s->kernel->expr_count;
  s->live = ax_arena_alloc(arena, exprs * sizeof s->live[0]);
  s->still = ax_arena_alloc(arena, exprs * sizeof s->still[0]);
  s->deps = ax_arena_alloc(arena, exprs * sizeof s->deps[0]);
  s->stretches = ax_arena_alloc(arena, exprs * sizeof s->stretches[0]);
  s->accesses = ax_arena_alloc(arena, (exprs + s->kernel->store_count) * sizeof s->accesses[0]);
  return s->live != NULL && s->still != NULL && s->stretches != NULL && s->deps != NULL && s->accesses != NULL;
}

ax_status ax_nest_schedule_create(ax_arena *arena, const ax_loop_kernel *kernel, ax_registers registers, bool often,
                                  ax_nest_schedule **out) {
  const uint32_t vector_bytes = registers.bytes;
  ax_nest_schedule *s = *out = ax_arena_alloc(arena, sizeof *s);
  bool narrow;
  if (s == NULL) return ax_out_of_memory(sizeof *s);
  s->kernel = kernel;
  s->running = kernel->running;
  if (!allocate(s, arena)) return ax_out_of_memory(kernel->expr_count * sizeof(ax_nest_access));
  for (uint32_t i = 0; i < kernel->store_count; i++) s->reduces |= kernel->stores[i].reduce != AX_SCALAR_NONE;
  ax_nest_schedule_mark_live(s);
  AX_TRY(ax_nest_schedule_take_bits(s, arena));
  ax_nest_schedule_make_loops(s);
  ax_nest_schedule_find_deps(s);
  s->vector_bytes = vector_bytes;
  s->f16 = registers.f16;
  s->lanes = choose_lanes(s, vector_bytes);
  s->weight = body_weight(s, function_weight) * kernel->store_count;
  s->work = 1;
  for (uint32_t l = 0; l < s->loop_count; l++) s->work *= s->loops[l].extent;
  int transposed;
  AX_TRY(ax_nest_schedule_compose(s, arena, &transposed));
  if (transposed < 0) {
    s->vector = choose_vector(s);
    AX_TRY(choose_narrow(s, arena, often, &narrow));
    if (narrow) return AX_OK;
    transposed = ax_nest_schedule_choose_turned(s, AX_FULL_SQUARE);
    if (transposed < 0 && ax_nest_schedule_choose_columns(s) < 0) transposed = ax_nest_schedule_choose_turned(s, AX_SHORT_SQUARE);
  }
  bool gathers = gathers_short_elements(s);
  if (gathers && s->lanes > vector_bytes / 4) s->lanes = vector_bytes / 4;
  if (row_line(s) > 0 && s->lanes > vector_bytes / 4)
    s->lanes = vector_bytes / 4; /* twice the rows would take twice as long to compile, or longer */
  shorten(s);
  s->shape = transposed >= 0 ? AX_NEST_TRANSPOSE : choose_shape(s);
  int columns = transposed >= 0 ? -1 : ax_nest_schedule_choose_columns(s);
  if (columns >= 0) s->shape = AX_NEST_COLUMNS;
  int listed = s->shape == AX_NEST_RUNS ? choose_listed(s) : -1;
  if (transposed >= 0)
    s->lanes = ax_nest_schedule_turned_lanes(s, (uint32_t)transposed, gathers ? 0 : lanes_of(s, vector_bytes, 1));
  s->paired = ax_nest_schedule_can_pair(s);
  s->in_line = computes_in_line(s);
  uint32_t abreast = 1;
  if (s->shape == AX_NEST_LANES && !s->reduces) AX_TRY(ax_nest_schedule_choose_abreast(s, arena, &abreast));
  s->unroll = choose_unroll(s, abreast, 1);
  /* Results of functions are added up as accurately as where fewer vectors are taken together. */
  s->wide = s->reduces && chain(s, choose_unroll(s, abreast, function_weight)) > AX_FEW_ADDITIONS;
  if (columns >= 0) s->unroll = (uint32_t)s->loops[columns].extent;
  order_loops(s, transposed >= 0 ? transposed : columns, listed);
  s->unrolled = s->shape == AX_NEST_STRIP || s->shape == AX_NEST_COLUMNS ? s->loop_count - 1
                : s->shape == AX_NEST_TILE ? s->loop_count - 2
                                           : s->vector;
  s->blocked = choose_blocked(s);
  s->called = ax_nest_schedule_can_call(s);
  s->streams = ax_nest_schedule_can_stream(s);
  ax_nest_schedule_find_deps(s);
  return AX_OK;
}
