/* See ranges.h. Each value has the least and the most that its elements can be. A sum of what is within its dtype has the sums of both ends;
   what may wrap, or is not known, has the ends of its dtype. A carry of a scan is known if each step adds the same constant, or nothing:

     for i in 0 .. 7:  slice x, 2 i, 2        i: 0 .. 7, the start: 0 .. 14

   A program that is called with other ranges than before is gone over again, with those of both; after a few times, with any. */
#include "kernel/ranges.h"

#include <string.h>

#include "control/scan.h"
#include "ir/region_link.h"
#include "kernel/step.h"
#include "prim/prims.h"

enum { most_visits = 4, most_elems = 4096 };

typedef struct visited { /* of a program */
  uint32_t count;
  ax_interval *at, *in; /* by value; of inputs before */
  bool *late;         /* by equation */
} visited;

static ax_interval any(const ax_type *type) {
  return type->form == AX_ARRAY ? ax_interval_of_dtype(type->dtype) : (ax_interval){INT64_MIN, INT64_MAX};
}

/* --- Equations that hold no program --- */

/* What an equation is known to give from its operands. */
static ax_interval range_of(const ax_program *p, const ax_eqn *eqn, const ax_interval *at) {
  enum { most_operands = 8 };
  ax_dtype dtypes[most_operands];
  ax_interval in[most_operands];
  const ax_type *type = &p->types[eqn->out];
  const bool reduces = eqn->prim == &ax_prim_reduce_max || eqn->prim == &ax_prim_reduce_min;
  if (reduces && ax_type_elems(&p->types[eqn->in[0]]) > 0) return at[eqn->in[0]]; /* of nothing, the largest is none */
  if (eqn->in_count > most_operands) return any(type);
  for (uint32_t i = 0; i < eqn->in_count; i++) dtypes[i] = p->types[eqn->in[i]].dtype, in[i] = at[eqn->in[i]];
  return ax_interval_of_eqn(eqn, dtypes, in, type->dtype);
}

static ax_interval known_range(const ax_ranges *r, const ax_program *p, const ax_eqn *eqn, const ax_interval *at) {
  const ax_type *type = &p->types[eqn->out];
  const ax_program_id_params *number = ax_step_grid_number(eqn);
  if (eqn->prim == &ax_prim_constant) return ax_interval_of_literal(eqn->params, most_elems);
  if (number != NULL) return r->grid[number->dimension];
  return eqn->prim == &ax_prim_iota ? ax_interval_of_iota(type) : range_of(p, eqn, at);
}

static void plain_range(const ax_ranges *r, const ax_program *p, const ax_eqn *eqn, ax_interval *at) {
  for (uint32_t k = 0; k < eqn->out_count; k++) at[eqn->out + k] = any(&p->types[eqn->out + k]);
  const ax_type *type = &p->types[eqn->out];
  if (eqn->out_count != 1 || type->form != AX_ARRAY || !ax_is_counted(type->dtype)) return;
  const ax_interval found = known_range(r, p, eqn, at);
  if (ax_interval_is_within(found, at[eqn->out])) at[eqn->out] = found;
}

/* A view begins somewhere between the least and the most of its starts. */
static bool may_leave(const ax_program *p, const ax_eqn *eqn, const ax_interval *at) {
  const ax_step_view *view = ax_step_view_of(eqn);
  int64_t low[AX_MAX_RANK], high[AX_MAX_RANK], strides[AX_MAX_RANK] = {0}, offset = 0;
  if (view == NULL || view->offset == NULL) return false;
  for (uint32_t i = 1; i < eqn->in_count; i++) low[i - 1] = at[eqn->in[i]].low, high[i - 1] = at[eqn->in[i]].high;
  return view->offset(eqn, &p->types[eqn->in[0]], strides, low, &offset) != AX_OK ||
         view->offset(eqn, &p->types[eqn->in[0]], strides, high, &offset) != AX_OK;
}

/* --- Equations that hold programs --- */

static visited *visit(ax_ranges *r, const ax_program *p, const ax_interval *in);

/* A carry of a loop of known length: `begins`, and what each step adds to it. */
static ax_interval carried(const ax_eqn *eqn, const ax_program *body, uint32_t input, uint32_t carry, ax_interval begins) {
  const ax_type *type = &body->types[input];
  const uint32_t next = body->outs[carry];
  if (eqn->prim != &ax_prim_scan || type->form != AX_ARRAY || !ax_is_counted(type->dtype)) return any(type);
  const int64_t length = ((const ax_scan_params *)eqn->params)->length;
  if (next == input) return begins;
  for (uint32_t e = 0; e < body->eqn_count; e++) {
    const ax_eqn *adds = &body->eqns[e];
    if (adds->out != next || adds->prim != &ax_prim_add || (adds->in[0] != input && adds->in[1] != input)) continue;
    const ax_literal *literal = ax_value_literal(body, adds->in[adds->in[0] == input ? 1 : 0]);
    ax_interval all = {0, 0}, sum;
    if (literal == NULL || length < 1) break;
    const ax_interval each = ax_interval_of_literal(literal, most_elems);
    if (!ax_interval_product(each, (ax_interval){0, length}, &all) || !ax_interval_sum(begins, all, &sum) || !ax_interval_is_within(sum, any(type))) break;
    const ax_interval before = {0, length - 1}; /* the last step is given what all but it have added */
    return ax_interval_product(each, before, &all) && ax_interval_sum(begins, all, &sum) ? sum : any(type);
  }
  return any(type);
}

static bool hold(ax_ranges *r, const ax_program *p, const ax_eqn *eqn, ax_interval *at) {
  bool given = false;
  for (uint32_t k = 0; k < eqn->out_count; k++) at[eqn->out + k] = any(&p->types[eqn->out + k]);
  for (uint32_t k = 0; k < ax_region_link_programs(eqn); k++) {
    const ax_program *held = ax_eqn_program(eqn, k);
    ax_interval *in = ax_alloc(((size_t)held->in_count + 1) * sizeof in[0]);
    if (in == NULL) return false;
    for (uint32_t i = 0; i < held->in_count; i++) {
      const ax_region_link link = ax_region_link_in(eqn, k, i);
      in[i] = link.number != AX_NONE ? at[eqn->in[link.number]] : any(&held->types[i]);
      if (link.carry != AX_NONE) in[i] = link.number != AX_NONE ? carried(eqn, held, i, link.carry, in[i]) : any(&held->types[i]);
    }
    const visited *v = visit(r, held, in);
    ax_free(in);
    if (v == NULL) return false;
    if (eqn->prim->runs == AX_RUNS_LENGTH || eqn->prim->runs == AX_RUNS_UNTIL) continue; /* after no steps a loop gives what it was given */
    for (uint32_t j = 0; j < held->out_count; j++) {
      const ax_region_link link = ax_region_link_out(eqn, k, j);
      if (link.how != AX_LINK_SAME || link.number >= eqn->out_count) continue;
      ax_interval *to = &at[eqn->out + link.number];
      *to = given ? ax_interval_hull(*to, v->at[held->outs[j]]) : v->at[held->outs[j]];
    }
    given = true;
  }
  return true;
}

/* --- Programs --- */

static bool go_over(ax_ranges *r, const ax_program *p, visited *v) {
  memcpy(v->at, v->in, p->in_count * sizeof v->at[0]);
  for (uint32_t e = 0; e < p->eqn_count; e++) {
    const ax_eqn *eqn = &p->eqns[e];
    if (ax_eqn_program(eqn, 0) == NULL) plain_range(r, p, eqn, v->at);
    else if (!hold(r, p, eqn, v->at)) return false;
    v->late[e] = v->late[e] || may_leave(p, eqn, v->at);
  }
  return true;
}

static visited *new_visited(ax_memo *memo, const ax_program *p) {
  visited *v = ax_arena_alloc(&memo->arena, sizeof *v);
  if (v == NULL) return NULL;
  *v = (visited){.in = ax_arena_alloc(&memo->arena, (p->in_count + 1) * sizeof v->in[0]),
                 .at = ax_arena_alloc(&memo->arena, ((size_t)p->value_count + 1) * sizeof v->at[0]),
                 .late = ax_arena_alloc(&memo->arena, (size_t)p->eqn_count + 1)};
  if (v->late != NULL) memset(v->late, 0, (size_t)p->eqn_count + 1);
  return v->in != NULL && v->at != NULL && v->late != NULL ? v : NULL;
}

/* NULL: no memory. */
static visited *visit(ax_ranges *r, const ax_program *p, const ax_interval *in) {
  ax_memo_entry *entry = ax_memo_ask(&r->memo, "ranges", p, NULL, 0);
  if (entry == NULL || (entry->data == NULL && (entry->data = new_visited(&r->memo, p)) == NULL)) return NULL;
  visited *v = entry->data;
  bool same = v->count > 0;
  for (uint32_t i = 0; i < p->in_count; i++) {
    same = same && ax_interval_is_within(in[i], v->in[i]);
    v->in[i] = v->count == 0 ? in[i] : v->count < most_visits ? ax_interval_hull(v->in[i], in[i]) : any(&p->types[i]);
  }
  if (same) return v;
  v->count++;
  return go_over(r, p, v) ? v : NULL;
}

ax_status ax_ranges_find(ax_ranges *r, const ax_program *program, bool map, ax_interval *out) {
  ax_interval *in = ax_alloc(((size_t)program->in_count + 1) * sizeof in[0]);
  for (uint32_t i = 0; in != NULL && i < program->in_count; i++)
    in[i] = map && i < r->rank ? r->grid[i] : any(&program->types[i]);
  const visited *v = in != NULL ? visit(r, program, in) : NULL;
  ax_free(in);
  if (v == NULL) return ax_out_of_memory(program->value_count * sizeof in[0]);
  for (uint32_t k = 0; out != NULL && k < program->out_count; k++) out[k] = v->at[program->outs[k]];
  return AX_OK;
}

static const visited *visited_of(ax_ranges *r, const ax_program *program) {
  const ax_memo_entry *entry = ax_memo_ask(&r->memo, "ranges", program, NULL, 0);
  const visited *v = entry != NULL ? entry->data : NULL;
  return v != NULL && v->count > 0 ? v : NULL;
}

ax_interval ax_ranges_of(ax_ranges *r, const ax_program *program, uint32_t value) {
  const visited *v = visited_of(r, program);
  return v != NULL ? v->at[value] : any(&program->types[value]);
}

uint32_t ax_ranges_branch(ax_ranges *r, const ax_program *program, const ax_eqn *eqn) {
  const ax_interval index = ax_ranges_of(r, program, eqn->in[0]);
  const uint32_t branches = ax_region_link_programs(eqn);
  if (index.low != index.high) return AX_NONE;
  return index.low < 0 ? 0 : index.low >= branches ? branches - 1 : (uint32_t)index.low;
}

bool ax_ranges_is_late(ax_ranges *r, const ax_program *program, uint32_t e) {
  const visited *v = visited_of(r, program);
  return v == NULL || v->late[e];
}

void ax_ranges_init(ax_ranges *r, const ax_dims *grid) {
  *r = (ax_ranges){.rank = grid->count};
  for (uint32_t d = 0; d < grid->count; d++) r->grid[d] = (ax_interval){0, grid->v[d] - 1};
}

void ax_ranges_deinit(ax_ranges *r) { ax_memo_deinit(&r->memo); }
