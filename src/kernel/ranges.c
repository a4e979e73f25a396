/* See ranges.h. Each value has the least and the most that its elements can be. A sum of what is within its dtype has the sums of both ends;
   what may wrap, or is not known, has the ends of its dtype. A carry of a scan is known if each step adds the same constant, or nothing:

     for i in 0 .. 7:  slice x, 2 i, 2        i: 0 .. 7, the start: 0 .. 14

   A program that is called with other ranges than before is gone over again, with those of both; after a few times, with any. */
#include "kernel/ranges.h"

#include <string.h>

#include "control/scan.h"
#include "ir/number.h"
#include "ir/region_link.h"
#include "kernel/step.h"
#include "prim/prims.h"

enum { most_visits = 4, most_elems = 4096 };

typedef struct visited { /* of a program */
  uint32_t count;
  ax_bounds *at, *in; /* by value; of inputs before */
  bool *late;         /* by equation */
} visited;

static ax_bounds any_of(ax_dtype dtype) {
  const ax_dtype_info *info = ax_dtype_get(dtype);
  if (info->kind == AX_KIND_BOOL) return (ax_bounds){0, 1};
  if (info->kind == AX_KIND_UNSIGNED && info->bits < 64) return (ax_bounds){0, ((int64_t)1 << info->bits) - 1};
  if (info->kind == AX_KIND_SIGNED) return (ax_bounds){INT64_MIN >> (64 - info->bits), INT64_MAX >> (64 - info->bits)};
  return (ax_bounds){INT64_MIN, INT64_MAX};
}

static ax_bounds any(const ax_type *type) { return type->form == AX_ARRAY ? any_of(type->dtype) : (ax_bounds){INT64_MIN, INT64_MAX}; }

static ax_bounds both(ax_bounds a, ax_bounds b) { return (ax_bounds){a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high}; }
static bool is_within(ax_bounds a, ax_bounds b) { return a.low >= b.low && a.high <= b.high; }
/* Of numbers that 64 bits with a sign hold: of u64 nothing is known. */
static bool is_integer(ax_dtype dtype) {
  const ax_dtype_kind kind = ax_dtype_get(dtype)->kind;
  return dtype == AX_U64 ? false : kind == AX_KIND_SIGNED || kind == AX_KIND_UNSIGNED || kind == AX_KIND_BOOL;
}

/* --- Arithmetic: false where a result may leave 64 bits --- */

static bool add(ax_bounds a, ax_bounds b, ax_bounds *out) {
  return !__builtin_add_overflow(a.low, b.low, &out->low) && !__builtin_add_overflow(a.high, b.high, &out->high);
}

static bool subtract(ax_bounds a, ax_bounds b, ax_bounds *out) {
  return !__builtin_sub_overflow(a.low, b.high, &out->low) && !__builtin_sub_overflow(a.high, b.low, &out->high);
}

/* All four products of the ends. */
static bool multiply(ax_bounds a, ax_bounds b, ax_bounds *out) {
  const int64_t left[] = {a.low, a.low, a.high, a.high}, right[] = {b.low, b.high, b.low, b.high};
  for (int i = 0; i < 4; i++) {
    int64_t product;
    if (__builtin_mul_overflow(left[i], right[i], &product)) return false;
    *out = i == 0 ? (ax_bounds){product, product} : both(*out, (ax_bounds){product, product});
  }
  return true;
}

static bool divide(ax_bounds a, ax_bounds b, ax_bounds *out) {
  if (b.low < 1 || b.high < b.low) return false;
  *out = both((ax_bounds){a.low / b.low, a.high / b.low}, (ax_bounds){a.low / b.high, a.high / b.high});
  return true;
}

static bool remain(ax_bounds a, ax_bounds b, ax_bounds *out) {
  if (b.low < 1 || b.high < b.low) return false;
  const int64_t most = b.high - 1;
  *out = (ax_bounds){a.low >= 0 ? 0 : a.low > -most ? a.low : -most, a.high <= 0 ? 0 : a.high < most ? a.high : most};
  return true;
}

static bool largest(ax_bounds a, ax_bounds b, ax_bounds *out) {
  *out = (ax_bounds){a.low > b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
  return true;
}

static bool smallest(ax_bounds a, ax_bounds b, ax_bounds *out) {
  *out = (ax_bounds){a.low < b.low ? a.low : b.low, a.high < b.high ? a.high : b.high};
  return true;
}

static bool truth(bool always, bool never, ax_bounds *out) {
  *out = (ax_bounds){always, !never};
  return true;
}

static bool less(ax_bounds a, ax_bounds b, ax_bounds *out) { return truth(a.high < b.low, a.low >= b.high, out); }
static bool more(ax_bounds a, ax_bounds b, ax_bounds *out) { return less(b, a, out); }
static bool less_or_equal(ax_bounds a, ax_bounds b, ax_bounds *out) { return truth(a.high <= b.low, a.low > b.high, out); }
static bool more_or_equal(ax_bounds a, ax_bounds b, ax_bounds *out) { return less_or_equal(b, a, out); }

static bool equal(ax_bounds a, ax_bounds b, ax_bounds *out) {
  return truth(a.low == a.high && b.low == b.high && a.low == b.low, a.high < b.low || b.high < a.low, out);
}

static bool unequal(ax_bounds a, ax_bounds b, ax_bounds *out) {
  return truth(a.high < b.low || b.high < a.low, a.low == a.high && b.low == b.high && a.low == b.low, out);
}

/* Of truth values, and of numbers that are not negative: no more than each. */
static bool both_hold(ax_bounds a, ax_bounds b, ax_bounds *out) {
  if (a.low < 0 || b.low < 0) return false;
  const bool truths = a.high <= 1 && b.high <= 1;
  *out = (ax_bounds){truths && a.low == 1 && b.low == 1, a.high < b.high ? a.high : b.high};
  return true;
}

static bool one_holds(ax_bounds a, ax_bounds b, ax_bounds *out) {
  if (a.low < 0 || b.low < 0 || a.high > 1 || b.high > 1) return false;
  *out = (ax_bounds){a.low | b.low, a.high | b.high};
  return true;
}

static const struct {
  const ax_prim *prim;
  bool (*rule)(ax_bounds a, ax_bounds b, ax_bounds *out);
} binary[] = {{&ax_prim_add, add},     {&ax_prim_sub, subtract}, {&ax_prim_mul, multiply},       {&ax_prim_div, divide},
              {&ax_prim_rem, remain},  {&ax_prim_max, largest},  {&ax_prim_min, smallest},       {&ax_prim_lt, less},
              {&ax_prim_gt, more},     {&ax_prim_le, less_or_equal}, {&ax_prim_ge, more_or_equal}, {&ax_prim_and, both_hold},
              {&ax_prim_or, one_holds}, {&ax_prim_eq, equal},          {&ax_prim_ne, unequal}};

/* Each element is one of operand 0's. */
static const ax_prim *const movers[] = {&ax_prim_broadcast_in_dim, &ax_prim_reshape,  &ax_prim_transpose,     &ax_prim_slice,
                                        &ax_prim_dynamic_slice,    &ax_prim_rev,      &ax_prim_stop_gradient, &ax_prim_reduce_max,
                                        &ax_prim_reduce_min};

/* --- Equations that hold no program --- */

static ax_bounds constant_range(const ax_literal *literal) {
  const int64_t elems = ax_type_elems(&literal->type);
  ax_bounds range = any(&literal->type);
  if (!is_integer(literal->type.dtype) || elems < 1 || elems > most_elems) return range;
  for (int64_t e = 0; e < elems; e++) {
    const int64_t i = ax_number_load(literal->type.dtype, literal->data, e).i;
    range = e == 0 ? (ax_bounds){i, i} : both(range, (ax_bounds){i, i});
  }
  return range;
}

static bool known_range(const ax_ranges *r, const ax_program *p, const ax_eqn *eqn, const ax_bounds *at, ax_bounds *out) {
  const ax_type *type = &p->types[eqn->out];
  const ax_program_id_params *number = ax_step_grid_number(eqn);
  if (eqn->prim == &ax_prim_constant) *out = constant_range(eqn->params);
  else if (number != NULL) *out = r->grid[number->dimension];
  else if (eqn->prim == &ax_prim_iota) {
    int64_t most = 1;
    for (uint32_t d = 0; d < type->rank; d++) most = type->dims[d] > most ? type->dims[d] : most;
    *out = (ax_bounds){0, most - 1};
  } else if (eqn->prim == &ax_prim_select_n) {
    *out = at[eqn->in[1]];
    for (uint32_t i = 2; i < eqn->in_count; i++) *out = both(*out, at[eqn->in[i]]);
  } else if (eqn->prim == &ax_prim_convert_element_type && is_integer(p->types[eqn->in[0]].dtype) && type->dtype != AX_BOOL) {
    *out = at[eqn->in[0]];
  } else {
    for (size_t i = 0; i < sizeof movers / sizeof movers[0]; i++)
      if (eqn->prim == movers[i]) return *out = at[eqn->in[0]], ax_type_elems(&p->types[eqn->in[0]]) > 0; /* of nothing, the largest is none */
    for (size_t i = 0; i < sizeof binary / sizeof binary[0]; i++)
      if (eqn->prim == binary[i].prim) return binary[i].rule(at[eqn->in[0]], at[eqn->in[1]], out);
    return false;
  }
  return true;
}

static void plain_range(const ax_ranges *r, const ax_program *p, const ax_eqn *eqn, ax_bounds *at) {
  ax_bounds found;
  for (uint32_t k = 0; k < eqn->out_count; k++) at[eqn->out + k] = any(&p->types[eqn->out + k]);
  const ax_type *type = &p->types[eqn->out];
  if (eqn->out_count != 1 || type->form != AX_ARRAY || !is_integer(type->dtype)) return;
  if (known_range(r, p, eqn, at, &found) && is_within(found, at[eqn->out])) at[eqn->out] = found;
}

/* A view begins somewhere between the least and the most of its starts. */
static bool may_leave(const ax_program *p, const ax_eqn *eqn, const ax_bounds *at) {
  const ax_step_view *view = ax_step_view_of(eqn);
  int64_t low[AX_MAX_RANK], high[AX_MAX_RANK], strides[AX_MAX_RANK] = {0}, offset = 0;
  if (view == NULL || view->offset == NULL) return false;
  for (uint32_t i = 1; i < eqn->in_count; i++) low[i - 1] = at[eqn->in[i]].low, high[i - 1] = at[eqn->in[i]].high;
  return view->offset(eqn, &p->types[eqn->in[0]], strides, low, &offset) != AX_OK ||
         view->offset(eqn, &p->types[eqn->in[0]], strides, high, &offset) != AX_OK;
}

/* --- Equations that hold programs --- */

static visited *visit(ax_ranges *r, const ax_program *p, const ax_bounds *in);

/* A carry of a loop of known length: `begins`, and what each step adds to it. */
static ax_bounds carried(const ax_eqn *eqn, const ax_program *body, uint32_t input, uint32_t carry, ax_bounds begins) {
  const ax_type *type = &body->types[input];
  const uint32_t next = body->outs[carry];
  if (eqn->prim != &ax_prim_scan || type->form != AX_ARRAY || !is_integer(type->dtype)) return any(type);
  const int64_t length = ((const ax_scan_params *)eqn->params)->length;
  if (next == input) return begins;
  for (uint32_t e = 0; e < body->eqn_count; e++) {
    const ax_eqn *adds = &body->eqns[e];
    if (adds->out != next || adds->prim != &ax_prim_add || (adds->in[0] != input && adds->in[1] != input)) continue;
    const ax_literal *literal = ax_value_literal(body, adds->in[adds->in[0] == input ? 1 : 0]);
    ax_bounds all = {0, 0}, sum;
    if (literal == NULL || length < 1) break;
    const ax_bounds each = constant_range(literal);
    if (!multiply(each, (ax_bounds){0, length}, &all) || !add(begins, all, &sum) || !is_within(sum, any(type))) break;
    const ax_bounds before = {0, length - 1}; /* the last step is given what all but it have added */
    return multiply(each, before, &all) && add(begins, all, &sum) ? sum : any(type);
  }
  return any(type);
}

static bool hold(ax_ranges *r, const ax_program *p, const ax_eqn *eqn, ax_bounds *at) {
  bool given = false;
  for (uint32_t k = 0; k < eqn->out_count; k++) at[eqn->out + k] = any(&p->types[eqn->out + k]);
  for (uint32_t k = 0; k < ax_region_link_programs(eqn); k++) {
    const ax_program *held = ax_eqn_program(eqn, k);
    ax_bounds *in = ax_alloc(((size_t)held->in_count + 1) * sizeof in[0]);
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
      ax_bounds *to = &at[eqn->out + link.number];
      *to = given ? both(*to, v->at[held->outs[j]]) : v->at[held->outs[j]];
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
static visited *visit(ax_ranges *r, const ax_program *p, const ax_bounds *in) {
  ax_memo_entry *entry = ax_memo_ask(&r->memo, "ranges", p, NULL, 0);
  if (entry == NULL || (entry->data == NULL && (entry->data = new_visited(&r->memo, p)) == NULL)) return NULL;
  visited *v = entry->data;
  bool same = v->count > 0;
  for (uint32_t i = 0; i < p->in_count; i++) {
    same = same && is_within(in[i], v->in[i]);
    v->in[i] = v->count == 0 ? in[i] : v->count < most_visits ? both(v->in[i], in[i]) : any(&p->types[i]);
  }
  if (same) return v;
  v->count++;
  return go_over(r, p, v) ? v : NULL;
}

ax_status ax_ranges_find(ax_ranges *r, const ax_program *program, bool map, ax_bounds *out) {
  ax_bounds *in = ax_alloc(((size_t)program->in_count + 1) * sizeof in[0]);
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

ax_bounds ax_ranges_of(ax_ranges *r, const ax_program *program, uint32_t value) {
  const visited *v = visited_of(r, program);
  return v != NULL ? v->at[value] : any(&program->types[value]);
}

bool ax_ranges_is_late(ax_ranges *r, const ax_program *program, uint32_t e) {
  const visited *v = visited_of(r, program);
  return v == NULL || v->late[e];
}

void ax_ranges_init(ax_ranges *r, const ax_dims *grid) {
  *r = (ax_ranges){.rank = grid->count};
  for (uint32_t d = 0; d < grid->count; d++) r->grid[d] = (ax_bounds){0, grid->v[d] - 1};
}

void ax_ranges_deinit(ax_ranges *r) { ax_memo_deinit(&r->memo); }
