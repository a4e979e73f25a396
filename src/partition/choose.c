/* The search for the layouts of inputs that are given as "auto". It tries every way to cut such an input that divides it, and keeps
   the way with which a run of the whole program costs a device least:

     operations + bytes received + collectives + bytes held of inputs and results / 16

   in bytes received, for which the others count as by the machine's speeds (machine/rates.h): as many as a device computes f32 in
   the time, and as many as a handover takes. With facts that are assumed that is 32 operations a byte, and 8 KB a collective. If the
   mesh is spread over processes, the time of a collective counts instead (between.h), in as many bytes as devices of one process give
   each other meanwhile: what crosses processes is dearer.

   The counts come from the partitioned program (cost.c), so each try takes as long as partitioning. At first propagation lays out
   all of these inputs, from the layouts that are given. Then each input alone gets a layout, with the others left to propagation;
   the best of these tries is where the search begins. From there it goes through the inputs, the largest first, until no change is
   better, at most three times. Inputs of one type get one layout, as the weights of equal layers do; if there are at most eight
   inputs, each gets its own after the first round. The result is a local minimum of the counted cost. */
#include <stdlib.h>
#include <string.h>

#include "axle/stages.h"
#include "machine/rates.h"
#include "mesh/constraint.h"
#include "partition/between.h"
#include "partition/partition.h"
#include "mesh/sharding.h"

enum { rounds = 3, most_alone = 8, holding = 16 };

typedef struct choosing {
  const ax_program *program;
  const ax_mesh *mesh;
  const ax_process_layout *processes; /* that the mesh is spread over; NULL: one */
  ax_given *given;
  uint32_t *by_size, count; /* inputs to choose for, the largest first */
  double least;
} choosing;

static const ax_type *type_of(const choosing *c, uint32_t i) { return &c->program->types[i]; }
static double bytes_of(const ax_type *type) { return (double)ax_type_elems(type) * (double)ax_dtype_bytes(type->dtype); }

/* --- What a choice costs --- */

static double held_bytes(const ax_type *types, const uint32_t *values, uint32_t count, const ax_partitioned *parts,
                         const ax_spec *specs) {
  double bytes = 0;
  for (uint32_t i = 0; i < count; i++) {
    const double all = bytes_of(&types[values != NULL ? values[i] : i]);
    bytes += specs != NULL ? all / (double)ax_axis_set_size(ax_spec_set(&specs[i]), parts->mesh) : all;
  }
  return bytes;
}

/* In bytes received. Collectives over several processes count by their time. */
static double computing_and_exchanging(const ax_cost *cost) {
  const ax_rates *rates = ax_rates_planned();
  const double bytes_a_second = rates->read / AX_MOVES_OF_A_BYTE;
  double bytes = ax_rates_computing(rates, cost->flops, AX_F32) * bytes_a_second;
  if (cost->processes > 1) return bytes + cost->seconds * bytes_a_second;
  bytes += cost->received;
  for (uint32_t i = 0; i < cost->collective_count; i++)
    bytes += cost->collectives[i].runs * AX_LINES_OF_A_COLLECTIVE * rates->exchange * bytes_a_second;
  return bytes;
}

static ax_status cost_of(const choosing *c, double *out) {
  ax_program *laid = NULL, *partitioned = NULL;
  ax_cost cost = {0};
  ax_status status = ax_program_given(c->program, c->mesh, c->given, &laid);
  if (status == AX_OK) status = ax_program_partition(laid, &partitioned);
  if (status == AX_OK) {
    const ax_partitioned parts = ax_partitioned_of(partitioned);
    status = ax_partitioned_cost(&parts, c->processes, &cost);
    *out = held_bytes(c->program->types, NULL, c->program->in_count, &parts, parts.in_specs) +
           held_bytes(c->program->types, c->program->outs, c->program->out_count, &parts, parts.out_specs);
  }
  *out = *out / holding + computing_and_exchanging(&cost);
  ax_cost_release(&cost);
  ax_program_release(partitioned);
  ax_program_release(laid);
  return status;
}

/* --- The ways to cut an array --- */

/* Decodes way number `way`. Its digit k, to the base of rank + 1, is the dimension that axis k cuts, counted from 1; 0: none.
   False: the layout does not divide the array. */
static bool spec_of(const choosing *c, const ax_type *type, uint64_t way, ax_spec *out) {
  memset(out, 0, sizeof *out);
  for (uint32_t axis = 0; axis < c->mesh->count; axis++, way /= type->rank + 1) {
    const uint64_t digit = way % (type->rank + 1);
    if (digit == 0) continue;
    if (c->mesh->axis[axis].size == 1) return false; /* cutting by an axis of size 1 changes nothing */
    out->axis[digit - 1][out->count[digit - 1]++] = (uint8_t)axis;
    if (out->rank < digit) out->rank = (uint32_t)digit;
  }
  for (uint32_t d = 0; d < out->rank; d++)
    if (!ax_shard_divides(type, out, c->mesh, d)) return false;
  return true;
}

/* How many ways there are to cut the array. 0: more than 256. */
static uint64_t way_count(const choosing *c, const ax_type *type) {
  enum { most = 256 };
  uint64_t ways = 1;
  for (uint32_t axis = 0; axis < c->mesh->count && ways <= most; axis++) ways *= type->rank + 1;
  return ways <= most ? ways : 0;
}

/* Gives one of the few ways that are tried for an array with too many: number 0 cuts nothing, every other number cuts one
   dimension, by one axis or by all axes of the mesh. */
static uint64_t few_ways(const choosing *c, const ax_type *type, uint64_t number) {
  uint64_t way = 0, place = 1;
  if (number == 0) return 0;
  const uint64_t dim = (number - 1) % type->rank + 1, which = (number - 1) / type->rank;
  for (uint32_t axis = 0; axis < c->mesh->count; axis++, place *= type->rank + 1)
    if (which == axis || which == c->mesh->count) way += dim * place;
  return way;
}

/* --- The search --- */

/* Tries one layout for `count` inputs from place `first` on, and keeps it if it costs less. spec NULL: propagation lays them
   out. */
static ax_status try_spec(choosing *c, uint32_t first, uint32_t count, const ax_spec *spec, bool *better) {
  ax_given *g = c->given;
  const ax_spec old = g->specs[c->by_size[first]];
  const ax_saying before = g->sayings[c->by_size[first]], after = spec != NULL ? AX_SAYS_SPEC : AX_SAYS_NOTHING;
  double cost = 0;
  if (before == after && (spec == NULL || ax_spec_equal(&old, spec))) return AX_OK;
  for (uint32_t i = first; i < first + count; i++) {
    g->specs[c->by_size[i]] = spec != NULL ? *spec : (ax_spec){0};
    g->sayings[c->by_size[i]] = after;
  }
  AX_TRY(cost_of(c, &cost));
  if (cost < c->least) {
    c->least = cost;
    *better = true;
    return AX_OK;
  }
  for (uint32_t i = first; i < first + count; i++) {
    g->specs[c->by_size[i]] = old;
    g->sayings[c->by_size[i]] = before;
  }
  return AX_OK;
}

static ax_status improve(choosing *c, uint32_t first, uint32_t count, bool *better) {
  const ax_type *type = type_of(c, c->by_size[first]);
  const uint64_t all = way_count(c, type), ways = all > 0 ? all : 1 + (uint64_t)type->rank * (c->mesh->count + 1);
  AX_TRY(try_spec(c, first, count, NULL, better));
  for (uint64_t way = 0; way < ways; way++) {
    ax_spec spec;
    if (spec_of(c, type, all > 0 ? way : few_ways(c, type, way), &spec)) AX_TRY(try_spec(c, first, count, &spec, better));
  }
  return AX_OK;
}

static bool same_type(const choosing *c, uint32_t i, uint32_t k) {
  return ax_type_equal(type_of(c, c->by_size[i]), type_of(c, c->by_size[k]));
}

/* The place after the last input that gets one layout with the input at place `first`: if `together`, all that follow it and
   have its type. */
static uint32_t group_end(const choosing *c, uint32_t first, bool together) {
  uint32_t end = first + 1;
  while (together && end < c->count && same_type(c, first, end)) end++;
  return end;
}

static void say(const choosing *c, uint32_t first, uint32_t end, ax_saying saying, const ax_spec *spec) {
  for (uint32_t i = first; i < end; i++) {
    c->given->sayings[c->by_size[i]] = saying;
    c->given->specs[c->by_size[i]] = *spec;
  }
}

/* Finds the best start: a layout for one group of inputs, with all others left to propagation. */
static ax_status begin(choosing *c) {
  const ax_spec nothing = {0};
  const double open = c->least;
  double least = open;
  uint32_t best = 0, best_end = 0;
  ax_spec spec = nothing;
  for (uint32_t first = 0, end; first < c->count; first = end) {
    bool better = false;
    end = group_end(c, first, true);
    c->least = open;
    AX_TRY(improve(c, first, end - first, &better));
    if (c->least < least) {
      least = c->least;
      best = first;
      best_end = end;
      spec = c->given->specs[c->by_size[first]];
    }
    say(c, first, end, AX_SAYS_NOTHING, &nothing);
  }
  c->least = least;
  say(c, best, best_end, AX_SAYS_SPEC, &spec);
  return AX_OK;
}

static ax_status search(choosing *c) {
  bool better = true;
  AX_TRY(cost_of(c, &c->least));
  AX_TRY(begin(c));
  for (int round = 0; round < rounds && better; round++) {
    better = false;
    for (uint32_t first = 0, end; first < c->count; first = end) {
      end = group_end(c, first, round == 0 || c->count > most_alone);
      AX_TRY(improve(c, first, end - first, &better));
    }
  }
  return AX_OK;
}

typedef struct sized {
  double bytes;
  const ax_type *type;
  uint32_t input;
} sized;

/* Orders by size, the largest first, and puts inputs of one type next to each other. */
static int larger_first(const void *a, const void *b) {
  const sized *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  if (x->type->dtype != y->type->dtype) return x->type->dtype < y->type->dtype ? -1 : 1;
  if (x->type->rank != y->type->rank) return x->type->rank < y->type->rank ? -1 : 1;
  const int by_dims = memcmp(x->type->dims, y->type->dims, x->type->rank * sizeof x->type->dims[0]);
  return by_dims != 0 ? by_dims : x->input < y->input ? -1 : 1;
}

static ax_status order(choosing *c) {
  sized *all = ax_calloc((size_t)c->count + 1, sizeof all[0]);
  if (all == NULL) return ax_out_of_memory(0);
  for (uint32_t n = 0; n < c->count; n++)
    all[n] = (sized){bytes_of(type_of(c, c->by_size[n])), type_of(c, c->by_size[n]), c->by_size[n]};
  qsort(all, c->count, sizeof all[0], larger_first);
  for (uint32_t n = 0; n < c->count; n++) c->by_size[n] = all[n].input;
  ax_free(all);
  return AX_OK;
}

/* A program gets its mesh from its constraints, so one without any is given a whole layout for its first input or result. */
static void say_something(const ax_program *program, ax_given *given) {
  for (uint32_t i = 0; i < program->in_count + program->out_count; i++)
    if (given->sayings[i] == AX_SAYS_SPEC) return;
  given->sayings[0] = AX_SAYS_SPEC;
  given->specs[0] = (ax_spec){0};
}

ax_status ax_given_choose(const ax_program *program, const ax_mesh *mesh, const ax_process_layout *processes, ax_given *given) {
  choosing c = {.program = program, .mesh = mesh, .processes = processes, .given = given,
                .by_size = ax_calloc((size_t)program->in_count + 1, sizeof c.by_size[0])};
  bool any = false;
  if (c.by_size == NULL) return ax_out_of_memory(0);
  for (uint32_t i = 0; i < program->in_count + program->out_count; i++) {
    if (given->sayings[i] != AX_SAYS_AUTO) continue;
    any = true;
    given->sayings[i] = AX_SAYS_NOTHING; /* a result lies as it is made, because then no bytes are moved for it */
    if (i < program->in_count) c.by_size[c.count++] = i;
  }
  ax_status status = order(&c);
  if (status == AX_OK && c.count > 0) status = search(&c);
  if (status == AX_OK && any) say_something(program, given);
  ax_free(c.by_size);
  return status;
}
