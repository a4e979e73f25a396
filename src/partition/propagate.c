/* Layouts for all values, from the layouts that some of them are given. Results of sharding_constraints and of shard_maps lie as
   these say; operands of both are wished to lie as they are taken. A shard_map that leaves axes automatic does not fix its values:
   layouts over the automatic axes go into its body, through it and out again. From there layouts go through equations, forwards and
   backwards, by factors (ir/prim.h):

     y = dot_general x w     x: P(data, _)   w: P(_, model)      y gets P(data, model)

   until nothing changes. A layout only grows: a dimension gets the next axis that another operand or result has along the same
   factor, if the axis does not cut the value elsewhere. It must divide the factor, unless the factor is all of the dimension,
   which may be padded. Where values disagree on a factor, neither grows. The order is: first the layouts that are given; then
   equations that combine no elements, because a layout goes through these at no cost; then products and reductions, along the
   dimensions that they keep; last the dimensions that they combine. So a batch that is cut stays cut beside weights that are cut
   by the same axes.

   Constraints of a priority are heard when all that was heard before has come to rest. Until then a value that one lays out has no
   layout, and gets none. So layouts of a later one go only where those of earlier ones have left axes and dimensions to them: an
   optimizer's state that is cut along the axis of the samples does not cut what samples are in.

   Programs in control flow have one layout for each of their values, however often they are called. An operand and the input that
   it becomes are treated as one value, and so are a carry, its next value and its result. A scan's slices have the layout of the
   array that is scanned, without its first dimension.

   These layouts are wishes; the equation's cuts are decided when it is bound (operation.c). Cost: an equation is looked at once for
   each growth of one of its operands or results, and a value grows at most once for each axis. Of an equation that holds programs
   only the pairs of values that have changed are joined. */
#include <stdlib.h>
#include <string.h>

#include "ir/region_link.h"
#include "mesh/constraint.h"
#include "partition/partitioner.h"
#include "prim/prims.h"

/* A program in which layouts flow. */
typedef struct flow flow;
typedef struct holder {
  flow *of;
  uint32_t eqn;
  struct holder *next;
} holder;
/* Two values that a region joins: `v` around it or in one of its programs, and `w` in one. */
typedef struct pair {
  flow *of_v, *of_w;
  uint32_t v, w;
  bool slices; /* w has slices of v */
} pair;
/* The pairs of a region, in the order in which they are joined, and a bit for each of which a value has changed since: programs may have
   as many inputs and results as a long program has values, one of which changes at a time. */
typedef struct region {
  pair *pairs;
  uint32_t count;
  uint64_t *changed;
} region;
typedef struct place { /* a value is in a pair */
  region *of;
  uint32_t pair;
  struct place *next;
} place;
struct flow {
  const ax_scope *s;
  const ax_program *program;
  const ax_spec **at; /* by value */
  uint16_t *said;     /* by value: bits of the dimensions that a constraint or a shard_map fixes */
  bool *given;        /* by value: it is a result of the program */
  uint8_t *queued;    /* by equation: a bit a level */
  uint32_t *user_end, *user; /* of value v: user[user_end[v - 1]] .. user[user_end[v]], equations */
  uint32_t *maker;    /* by value: the equation; AX_NONE: an input */
  place **places;     /* by value: the pairs that it is in; NULL: none */
  region **regions;   /* by equation; NULL: its pairs are not known yet */
  holder *holders;    /* the equations that hold it */
};

/* The parts of an equation that are looked at. A level begins when the one before it has come to rest. */
typedef enum level {
  THROUGH,  /* equations that combine no elements */
  ALONG,    /* the factors that all other equations keep */
  COMBINED, /* the factors that these combine */
  LEVELS
} level;
typedef struct item {
  flow *of;
  uint32_t eqn;
  level level;
} item;

typedef struct later { /* a constraint that has not been heard yet */
  flow *of;
  const ax_eqn *eqn;
  uint32_t number;
} later;

typedef struct propagation {
  ax_partitioner *p;
  later *later;
  uint32_t later_count, later_capacity, heard; /* heard: of them, once they are sorted */
  item *queue; /* a heap: the lowest level first, and the first equation of a program */
  uint32_t count, capacity;
  ax_cuts best;
  bool stuck[AX_MAX_FACTORS];
} propagation;

/* --- The queue --- */

static bool before(const item *a, const item *b) { return a->level != b->level ? a->level < b->level : a->eqn < b->eqn; }

static void push(propagation *g, flow *of, uint32_t eqn, level level) {
  if (of->queued[eqn] >> level & 1) return;
  ax_status status = ax_grow(&g->queue, sizeof g->queue[0], g->count, 1, &g->capacity);
  if (status != AX_OK) {
    ax_fail(status);
    return;
  }
  const item added = {of, eqn, level};
  uint32_t at = g->count++;
  of->queued[eqn] |= (uint8_t)(1u << level);
  for (; at > 0 && before(&added, &g->queue[(at - 1) / 2]); at = (at - 1) / 2) g->queue[at] = g->queue[(at - 1) / 2];
  g->queue[at] = added;
}

static bool pop(propagation *g, item *out) {
  if (g->count == 0) return false;
  *out = g->queue[0];
  out->of->queued[out->eqn] &= (uint8_t) ~(1u << out->level);
  const item last = g->queue[--g->count];
  uint32_t at = 0;
  for (uint32_t child = 1; child < g->count; child = 2 * at + 1) {
    if (child + 1 < g->count && before(&g->queue[child + 1], &g->queue[child])) child++;
    if (!before(&g->queue[child], &last)) break;
    g->queue[at] = g->queue[child];
    at = child;
  }
  g->queue[at] = last;
  return true;
}

/* --- Layouts of values --- */

static void note_change(const flow *f, uint32_t v) {
  for (const place *at = f->places[v]; at != NULL; at = at->next) at->of->changed[at->pair / 64] |= UINT64_C(1) << at->pair % 64;
}

static void wake(propagation *g, flow *f, uint32_t v) {
  note_change(f, v);
  if (f->maker[v] != AX_NONE) push(g, f, f->maker[v], THROUGH);
  for (uint32_t i = v > 0 ? f->user_end[v - 1] : 0; i < f->user_end[v]; i++) push(g, f, f->user[i], THROUGH);
  if (v >= f->program->in_count && !f->given[v]) return;
  for (const holder *h = f->holders; h != NULL; h = h->next) push(g, h->of, h->eqn, THROUGH);
}

static void set(propagation *g, flow *f, uint32_t v, const ax_spec *spec) {
  if (f->at[v] == spec) return;
  f->at[v] = spec;
  wake(g, f, v);
}

static void say(propagation *g, flow *f, uint32_t v, const ax_spec *spec, uint16_t open) {
  f->said[v] = (uint16_t)~open;
  note_change(f, v);
  set(g, f, v, spec);
}

static void grow_to(propagation *g, flow *f, uint32_t v, const ax_spec *grown) {
  if (f->at[v] != NULL ? ax_spec_equal(f->at[v], grown) : ax_spec_set(grown) == 0) return;
  const ax_spec *unique = ax_spec_unique(g->p, grown);
  if (!ax_failed()) set(g, f, v, unique);
}

/* Adds to the layout of v the axes that `wanted` has beyond it. Dimension d of `wanted` is dimension d + by of v. */
static void grow_as(propagation *g, flow *f, uint32_t v, const ax_spec *wanted, int by) {
  const ax_type *type = &f->program->types[v];
  ax_spec grown;
  memset(&grown, 0, sizeof grown);
  if (f->said[v] == UINT16_MAX || wanted == NULL) return;
  if (f->at[v] != NULL) grown = *f->at[v];
  ax_axis_set used = ax_spec_set(&grown);
  for (uint32_t d = 0; d < wanted->rank; d++) {
    if ((int)d + by < 0 || (int)d + by >= (int)type->rank) continue;
    uint32_t to = (uint32_t)((int)d + by), count = grown.count[to];
    if (f->said[v] >> to & 1) continue;
    if (count > wanted->count[d] || memcmp(grown.axis[to], wanted->axis[d], count) != 0) continue;
    for (; count < wanted->count[d] && (used >> wanted->axis[d][count] & 1) == 0; count++) {
      grown.axis[to][count] = wanted->axis[d][count];
      used |= (ax_axis_set)1 << wanted->axis[d][count];
    }
    grown.count[to] = (uint8_t)count;
    if (count > 0 && grown.rank <= to) grown.rank = to + 1;
  }
  grow_to(g, f, v, &grown);
}

/* Two values are one. */
static void join(propagation *g, flow *f, uint32_t v, flow *other, uint32_t w) {
  grow_as(g, f, v, other->at[w], 0);
  grow_as(g, other, w, f->at[v], 0);
}

/* w has slices of v, along its first dimension. */
static void join_slices(propagation *g, flow *f, uint32_t v, flow *other, uint32_t w) {
  grow_as(g, f, v, other->at[w], 1);
  grow_as(g, other, w, f->at[v], -1);
}

/* --- Equations of factors --- */

/* Adds the cuts of v's factors to g->best. If two layouts disagree on a factor, g->best keeps the axes that both begin with, and
   the factor is stuck. */
static void learn(propagation *g, const ax_factoring *of, const ax_factored *tensor, const flow *f, uint32_t v) {
  const ax_factors *factors = &of->factors;
  const ax_type *type = &f->program->types[v];
  ax_cuts own;
  if (f->at[v] == NULL) return;
  ax_cuts_read(&g->p->mesh, factors, tensor, type, f->at[v], &own);
  for (uint32_t d = 0; d < type->rank; d++)
    for (uint32_t k = 0; k < tensor->count[d] && ax_factor_flows(factors, tensor, type, d); k++) {
      const uint32_t factor = tensor->factor[d][k];
      ax_axis_list *best = &g->best.by[factor], *mine = &own.by[factor];
      uint32_t common = 0;
      while (common < best->count && common < mine->count && best->axis[common] == mine->axis[common]) common++;
      if (common < best->count && common < mine->count) {
        best->count = common;
        g->stuck[factor] = true;
      } else if (mine->count > best->count && !g->stuck[factor]) {
        *best = *mine;
      }
    }
}

/* all: the factor is all of its dimension, which may be padded. */
static void grow_factor(const propagation *g, int64_t size, bool all, const ax_axis_list *best, ax_axis_list *mine,
                        ax_axis_set *used) {
  const ax_mesh *mesh = &g->p->mesh;
  if (mine->count >= best->count || memcmp(mine->axis, best->axis, mine->count) != 0) return;
  for (uint32_t i = 0; i < mine->count; i++) size /= mesh->axis[mine->axis[i]].size;
  while (mine->count < best->count) {
    uint8_t axis = best->axis[mine->count];
    if ((*used >> axis & 1) != 0 || (size % mesh->axis[axis].size != 0 && !all)) return;
    size /= mesh->axis[axis].size;
    *used |= (ax_axis_set)1 << axis;
    mine->axis[mine->count++] = axis;
  }
}

static void teach(propagation *g, const ax_factoring *of, const ax_factored *tensor, flow *f, uint32_t v) {
  const ax_factors *factors = &of->factors;
  const ax_type *type = &f->program->types[v];
  ax_cuts own;
  if (f->said[v] == UINT16_MAX) return;
  ax_cuts_read(&g->p->mesh, factors, tensor, type, f->at[v], &own);
  ax_axis_set used = f->at[v] != NULL ? ax_spec_set(f->at[v]) : 0;
  for (uint32_t d = 0; d < type->rank; d++)
    for (uint32_t k = 0; k < tensor->count[d] && (f->said[v] >> d & 1) == 0 && ax_factor_flows(factors, tensor, type, d); k++) {
      const uint32_t factor = tensor->factor[d][k];
      grow_factor(g, factors->size[factor], ax_factor_is_all(factors, tensor, type, d), &g->best.by[factor], &own.by[factor],
                  &used);
    }
  ax_spec grown = ax_cuts_write(&g->p->mesh, factors, tensor, type->rank, &own);
  if (f->at[v] != NULL && (ax_spec_set(f->at[v]) & ~ax_spec_set(&grown)) != 0) return; /* axes in no factor stay where they are */
  grow_to(g, f, v, &grown);
}

static void look_at_operation(propagation *g, flow *f, uint32_t index, level level) {
  const ax_eqn *eqn = &f->program->eqns[index];
  ax_factoring *of = &g->p->factoring;
  bool combines = false, more = false;
  if (!ax_factoring_of(of, f->program, eqn) || of->factors.count == 0) return;
  for (uint32_t i = 0; i < of->factors.count; i++) {
    combines = combines || of->factors.kind[i] != AX_FACTOR_ALONG;
    g->best.by[i].count = 0;
    g->stuck[i] = false;
  }
  if (combines && level == THROUGH) {
    push(g, f, index, ALONG);
    return;
  }
  for (uint32_t i = 0; i < eqn->in_count; i++) learn(g, of, &of->in[i], f, eqn->in[i]);
  for (uint32_t k = 0; k < eqn->out_count; k++) learn(g, of, &of->out[k], f, eqn->out + k);
  for (uint32_t i = 0; i < of->factors.count && level == ALONG; i++) {
    if (of->factors.kind[i] == AX_FACTOR_ALONG) continue;
    more = more || g->best.by[i].count > 0;
    g->best.by[i].count = 0;
  }
  for (uint32_t i = 0; i < eqn->in_count && !ax_failed(); i++) teach(g, of, &of->in[i], f, eqn->in[i]);
  for (uint32_t k = 0; k < eqn->out_count && !ax_failed(); k++) teach(g, of, &of->out[k], f, eqn->out + k);
  if (more) push(g, f, index, COMBINED);
}

/* --- Equations that hold programs --- */

static flow *flow_of(propagation *g, const ax_scope *s, const ax_program *program);

/* The body of a shard_map that leaves axes automatic. NULL: layouts do not go through it; or the trace has failed. */
static flow *body_of_map(propagation *g, const flow *f, const ax_eqn *eqn) {
  const ax_shard_map_params *params = eqn->params;
  if (ax_manual_axes(&params->body->axes) == ax_all_axes(&params->body->axes)) return NULL;
  const ax_scope *inner = ax_scope_body(g->p, f->s, params);
  return inner != NULL ? flow_of(g, inner, params->body) : NULL;
}

/* The value v around a shard_map is what w is inside, but for the axes of this spec, which come first. */
static void join_blocks(propagation *g, flow *f, uint32_t v, const ax_spec *own, flow *body, uint32_t w) {
  grow_as(g, body, w, ax_spec_inward(g->p, body->s, &body->program->types[w], f->at[v]), 0);
  if (body->at[w] != NULL) grow_as(g, f, v, ax_spec_outward(g->p, own, body->at[w]), 0);
}

static void join_map(propagation *g, flow *f, const ax_eqn *eqn) {
  const ax_shard_map_params *params = eqn->params;
  flow *body = body_of_map(g, f, eqn);
  if (body == NULL) return;
  for (uint32_t i = 0; i < eqn->in_count && !ax_failed(); i++)
    join_blocks(g, f, eqn->in[i], ax_spec_on(g->p, f->s, &params->mesh, &params->in_specs.v[i]), body, i);
  for (uint32_t k = 0; k < eqn->out_count && !ax_failed(); k++)
    join_blocks(g, f, eqn->out + k, ax_spec_on(g->p, f->s, &params->mesh, &params->out_specs.v[k]), body, body->program->outs[k]);
}

/* Adds the pair, if the link says that both are one value, or that w has slices of v. */
static void pair_linked(region *r, flow *f, uint32_t v, flow *body, uint32_t w, ax_region_link_how how) {
  if (how == AX_LINK_SAME || how == AX_LINK_SLICE) r->pairs[r->count++] = (pair){f, body, v, w, how == AX_LINK_SLICE};
}

/* A carry is joined to its start in the program that gives it. */
static void pair_inputs(region *r, flow *f, const ax_eqn *eqn, uint32_t p, flow *body) {
  const bool gives = ax_region_link_gives(eqn, p);
  for (uint32_t i = 0; i < body->program->in_count; i++) {
    const ax_region_link link = ax_region_link_in(eqn, p, i);
    if (link.how != AX_LINK_OWN && (gives || link.carry == AX_NONE)) pair_linked(r, f, eqn->in[link.number], body, i, link.how);
  }
}

/* A carry is one value all the way round, which is the result in the end. */
static void pair_outputs(region *r, flow *f, const ax_eqn *eqn, uint32_t p, flow *body) {
  for (uint32_t j = 0; j < body->program->out_count; j++) {
    const ax_region_link link = ax_region_link_out(eqn, p, j);
    if (link.how == AX_LINK_OWN) continue;
    if (link.carry != AX_NONE) pair_linked(r, body, body->program->outs[j], body, link.carry, AX_LINK_SAME);
    pair_linked(r, f, eqn->out + link.number, body, link.carry != AX_NONE ? link.carry : body->program->outs[j], link.how);
  }
}

/* The carries of a program that only looks at them. */
static void pair_looked_at(region *r, flow *f, const ax_eqn *eqn, uint32_t p, flow *body) {
  for (uint32_t i = 0; i < body->program->in_count; i++) {
    const ax_region_link link = ax_region_link_in(eqn, p, i);
    if (link.carry != AX_NONE) pair_linked(r, f, eqn->out + link.carry, body, i, AX_LINK_SAME);
  }
}

static void note_place(propagation *g, region *r, uint32_t pair, flow *f, uint32_t v) {
  place *at = ax_arena_alloc(&g->p->arena, sizeof *at);
  if (at == NULL) ax_fail(ax_out_of_memory(sizeof *at));
  else *at = (place){r, pair, f->places[v]}, f->places[v] = at;
}

/* Room for as many pairs as the links of its programs can make. */
static bool make_room(propagation *g, const ax_eqn *eqn, region *r) {
  size_t most = 0;
  for (uint32_t p = 0; p < ax_region_link_programs(eqn); p++)
    most += 2 * ((size_t)ax_eqn_program(eqn, p)->in_count + ax_eqn_program(eqn, p)->out_count);
  r->pairs = ax_arena_alloc(&g->p->arena, most * sizeof r->pairs[0]);
  r->changed = ax_arena_alloc(&g->p->arena, (most / 64 + 1) * sizeof r->changed[0]);
  if (r->pairs == NULL || r->changed == NULL) ax_fail(ax_out_of_memory(most * sizeof r->pairs[0]));
  return !ax_failed();
}

/* All pairs, none of which has been joined. */
static void begin_region(propagation *g, flow *f, const ax_eqn *eqn, region *r) {
  flow *body;
  if (!make_room(g, eqn, r)) return;
  for (uint32_t p = 0; p < ax_region_link_programs(eqn); p++) {
    if ((body = flow_of(g, f->s, ax_eqn_program(eqn, p))) == NULL) return;
    pair_inputs(r, f, eqn, p, body);
    pair_outputs(r, f, eqn, p, body);
  }
  for (uint32_t p = 0; p < ax_region_link_programs(eqn); p++) {
    if (ax_region_link_gives(eqn, p)) continue;
    if ((body = flow_of(g, f->s, ax_eqn_program(eqn, p))) == NULL) return;
    pair_looked_at(r, f, eqn, p, body);
  }
  for (uint32_t i = 0; i < r->count && !ax_failed(); i++) {
    r->changed[i / 64] |= UINT64_C(1) << i % 64;
    note_place(g, r, i, r->pairs[i].of_v, r->pairs[i].v);
    note_place(g, r, i, r->pairs[i].of_w, r->pairs[i].w);
  }
}

static region *region_of(propagation *g, flow *f, uint32_t index) {
  if (f->regions[index] != NULL) return f->regions[index];
  region *r = f->regions[index] = ax_arena_alloc(&g->p->arena, sizeof *r);
  if (r == NULL) ax_fail(ax_out_of_memory(sizeof *r));
  else begin_region(g, f, &f->program->eqns[index], r);
  return r;
}

/* Joins the pairs of which a value has changed. If that changes a value of one that was joined earlier in this pass, its bit stays set,
   and the change has queued the equation again. */
static void join_region(propagation *g, flow *f, uint32_t index) {
  region *r = region_of(g, f, index);
  for (uint32_t word = 0; !ax_failed() && word <= r->count / 64; word++)
    for (uint64_t left = UINT64_MAX; (r->changed[word] & left) != 0 && !ax_failed();) {
      const int bit = __builtin_ctzll(r->changed[word] & left);
      const pair *of = &r->pairs[64 * word + (uint32_t)bit];
      r->changed[word] &= ~(UINT64_C(1) << bit);
      left = bit < 63 ? UINT64_MAX << (bit + 1) : 0;
      (of->slices ? join_slices : join)(g, of->of_v, of->v, of->of_w, of->w);
    }
}

static bool is_said(const ax_eqn *eqn) { return eqn->prim == &ax_prim_shard_map || eqn->prim == &ax_prim_sharding_constraint; }

/* In dimensions that a constraint leaves open, its operand and its result are treated as one value. */
static void join_open(propagation *g, flow *f, const ax_eqn *eqn) {
  if (((const ax_constraint_params *)eqn->params)->specs.v[0].open != 0) join(g, f, eqn->in[0], f, eqn->out);
}

static void look_at(propagation *g, flow *f, uint32_t index, level level) {
  const ax_eqn *eqn = &f->program->eqns[index];
  if (eqn->prim == &ax_prim_sharding_constraint) join_open(g, f, eqn);
  else if (eqn->prim == &ax_prim_shard_map) join_map(g, f, eqn);
  else if (eqn->prim->kind != AX_REGION) look_at_operation(g, f, index, level);
  else join_region(g, f, index);
}

/* --- The beginning --- */

static uint16_t priority_of(const ax_eqn *eqn) { return ((const ax_constraint_params *)eqn->params)->specs.v[0].priority; }

static void hear_constraint(propagation *g, flow *f, const ax_eqn *eqn) {
  const ax_constraint_params *params = eqn->params;
  const ax_spec *spec = ax_spec_on(g->p, f->s, &params->mesh, &params->specs.v[0]);
  say(g, f, eqn->out, spec, params->specs.v[0].open);
  if (params->specs.v[0].open != 0) push(g, f, f->maker[eqn->out], THROUGH); /* what is around may have come to rest */
  grow_as(g, f, eqn->in[0], spec, 0);
}

static void hear_later(propagation *g, flow *f, const ax_eqn *eqn) {
  ax_status status = ax_grow(&g->later, sizeof g->later[0], g->later_count, 1, &g->later_capacity);
  if (status != AX_OK) ax_fail(status);
  else g->later[g->later_count] = (later){f, eqn, g->later_count}, g->later_count++;
  f->said[eqn->out] = UINT16_MAX;
}

/* Gives values the layouts that a shard_map or a sharding_constraint names. */
static void hear(propagation *g, flow *f, const ax_eqn *eqn) {
  if (eqn->prim == &ax_prim_sharding_constraint) {
    (priority_of(eqn) > 0 ? hear_later : hear_constraint)(g, f, eqn);
    return;
  }
  const ax_shard_map_params *params = eqn->params;
  const bool automatic = body_of_map(g, f, eqn) != NULL; /* then its results may be cut by automatic axes as well */
  for (uint32_t i = 0; i < eqn->in_count; i++)
    grow_as(g, f, eqn->in[i], ax_spec_on(g->p, f->s, &params->mesh, &params->in_specs.v[i]), 0);
  for (uint32_t k = 0; k < eqn->out_count; k++) {
    const ax_spec *spec = ax_spec_on(g->p, f->s, &params->mesh, &params->out_specs.v[k]);
    if (automatic) grow_as(g, f, eqn->out + k, spec, 0);
    else say(g, f, eqn->out + k, spec, 0);
  }
}

static bool flow_init(propagation *g, flow *f, const ax_program *program) {
  ax_arena *arena = &g->p->arena;
  uint64_t uses = 0;
  for (uint32_t e = 0; e < program->eqn_count; e++) uses += program->eqns[e].in_count;
  *f = (flow){.program = program,
              .at = ax_arena_alloc(arena, program->value_count * sizeof f->at[0]),
              .said = ax_arena_alloc(arena, program->value_count * sizeof f->said[0]),
              .given = ax_arena_alloc(arena, program->value_count),
              .queued = ax_arena_alloc(arena, program->eqn_count),
              .user = ax_arena_alloc(arena, uses * sizeof f->user[0]),
              .user_end = ax_arena_alloc(arena, ((size_t)program->value_count + 1) * sizeof f->user_end[0]),
              .maker = ax_arena_alloc(arena, program->value_count * sizeof f->maker[0]),
              .places = ax_arena_alloc(arena, program->value_count * sizeof f->places[0]),
              .regions = ax_arena_alloc(arena, program->eqn_count * sizeof f->regions[0])};
  if (f->at == NULL || f->said == NULL || f->given == NULL || f->queued == NULL || f->user == NULL || f->user_end == NULL ||
      f->maker == NULL || f->places == NULL || f->regions == NULL)
    return false;
  for (uint32_t i = 0; i < program->in_count; i++) f->maker[i] = AX_NONE;
  for (uint32_t k = 0; k < program->out_count; k++) f->given[program->outs[k]] = true;
  for (uint32_t e = 0; e < program->eqn_count; e++) {
    const ax_eqn *eqn = &program->eqns[e];
    for (uint32_t i = 0; i < eqn->in_count; i++) f->user_end[eqn->in[i] + 1]++;
    for (uint32_t k = 0; k < eqn->out_count; k++) f->maker[eqn->out + k] = e;
  }
  /* user_end[v + 1] counts; then it is where v's begin, and, once they are filled in, where they end, one place further down. */
  uint32_t total = 0;
  for (uint32_t v = 0; v <= program->value_count; v++) {
    uint32_t count = f->user_end[v];
    f->user_end[v] = total += count;
  }
  for (uint32_t e = 0; e < program->eqn_count; e++)
    for (uint32_t i = 0; i < program->eqns[e].in_count; i++) f->user[f->user_end[program->eqns[e].in[i]]++] = e;
  return true;
}

/* NULL: no memory. */
static flow *flow_of(propagation *g, const ax_scope *s, const ax_program *program) {
  ax_memo_entry *entry = ax_memo_ask(&g->p->memo, "propagated", program, &s, sizeof s);
  if (entry != NULL && entry->known) return entry->data;
  flow *f = ax_arena_alloc(&g->p->arena, sizeof *f);
  if (entry == NULL || f == NULL || !flow_init(g, f, program)) {
    ax_fail(ax_out_of_memory(0));
    return NULL;
  }
  f->s = s;
  entry->data = f;
  entry->known = true;
  return f;
}

static void hear_all(propagation *g, flow *f);

/* Notes that equation e holds `body`. The equation is queued in any case, because the body may have its layouts already, from
   another equation that holds it. */
static void hold(propagation *g, flow *f, uint32_t e, flow *body) {
  holder *h = body != NULL ? ax_arena_alloc(&g->p->arena, sizeof *h) : NULL;
  if (body != NULL && h == NULL) ax_fail(ax_out_of_memory(sizeof *h));
  if (h == NULL) return;
  *h = (holder){f, e, body->holders};
  body->holders = h;
  push(g, f, e, THROUGH);
  hear_all(g, body);
}

/* Visits a program and the programs in it, once each: notes which equations hold them, and takes the layouts that constraints
   and shard_maps give. */
static void hear_all(propagation *g, flow *f) {
  ax_memo_entry *entry = ax_memo_ask(&g->p->memo, "heard", f->program, &f->s, sizeof f->s);
  if (entry == NULL) ax_fail(ax_out_of_memory(0));
  if (entry == NULL || entry->known) return;
  entry->known = true;
  for (uint32_t e = 0; e < f->program->eqn_count && !ax_failed(); e++) {
    const ax_eqn *eqn = &f->program->eqns[e];
    const ax_program *held;
    if (is_said(eqn)) hear(g, f, eqn);
    if (eqn->prim == &ax_prim_shard_map) hold(g, f, e, body_of_map(g, f, eqn));
    else for (uint32_t k = 0; (held = ax_eqn_program(eqn, k)) != NULL && !ax_failed(); k++) hold(g, f, e, flow_of(g, f->s, held));
  }
}

static int by_priority(const void *left, const void *right) {
  const later *a = left, *b = right;
  const int first = priority_of(a->eqn), second = priority_of(b->eqn);
  return first != second ? (first > second) - (first < second) : (a->number > b->number) - (a->number < b->number);
}

/* Hears the constraints of the first priority that is left, in the order in which they were found. False: there is none. */
static bool hear_next(propagation *g) {
  if (g->heard == 0 && g->later_count > 0) qsort(g->later, g->later_count, sizeof g->later[0], by_priority);
  if (g->heard == g->later_count) return false;
  const uint16_t first = priority_of(g->later[g->heard].eqn);
  for (; g->heard < g->later_count && priority_of(g->later[g->heard].eqn) == first; g->heard++)
    hear_constraint(g, g->later[g->heard].of, g->later[g->heard].eqn);
  return true;
}

static void propagate(propagation *g, const ax_scope *s, const ax_program *program) {
  item at;
  flow *f = flow_of(g, s, program);
  if (f == NULL) return;
  hear_all(g, f);
  do
    while (!ax_failed() && pop(g, &at)) look_at(g, at.of, at.eqn, at.level);
  while (!ax_failed() && hear_next(g));
}

/* Whether layouts can be given here: there are meshes at this depth, or a shard_map around leaves axes automatic. */
static bool is_heard(const ax_partitioner *p, const ax_scope *s) {
  return s->depth < p->level_count || ax_scope_lays_out(s);
}

void ax_propagate(ax_partitioner *p, const ax_scope *s, const ax_program *program) {
  propagation g = {.p = p};
  if (!is_heard(p, s)) return;
  propagate(&g, s, program);
  ax_free(g.later);
  ax_free(g.queue);
}

bool ax_propagated_once(ax_partitioner *p, const ax_scope *s, const ax_program *program, uint32_t v) {
  ax_memo_entry *entry = ax_memo_ask(&p->memo, "propagated", program, &s, sizeof s);
  const flow *f = entry != NULL && entry->known ? entry->data : NULL;
  return f != NULL && !f->given[v] && f->user_end[v] - (v > 0 ? f->user_end[v - 1] : 0) == 1;
}

const ax_spec *const *ax_propagated(ax_partitioner *p, const ax_scope *s, const ax_program *program) {
  ax_memo_entry *entry = is_heard(p, s) ? ax_memo_ask(&p->memo, "propagated", program, &s, sizeof s) : NULL;
  return entry != NULL && entry->known ? ((const flow *)entry->data)->at : NULL;
}

const ax_spec *ax_propagated_at(ax_partitioner *p, const ax_scope *s, const ax_program *program, uint32_t v) {
  const ax_spec *const *lies = ax_propagated(p, s, program);
  return lies != NULL ? lies[v] : NULL;
}
