/* Sums over devices leave loops: what each iteration adds up over the devices and then to a carry is added to the carry by each device
   for itself, and up over the devices once, behind the loop.

     c = scan { c + psum(g) } c0           becomes         c = psum(scan { c + g } c0')

   c0' is c0 on the first device and zeros on the others. So gradients of microbatches, of weights that a loop over time uses, and of
   what is accumulated otherwise, are exchanged once a step and not in each iteration. Sums are rounded in another order, and each device
   has sums of its own, where devices of one process would share them: so it is done where it is asked for (ax_compile_options.late_sums).

   A value is *raw* if its place in the new program is taken by parts of it, one on each device, whose sum it is. A psum's operand
   is such parts of its result. From there being raw goes on through whatever is linear: through additions, products with values
   that are the same on all those devices, changes of shape, updates of slices; through results of calls, and results and carries of loops. A carry may be raw
   if its next value is raw as long as the carry is, and if every use of each raw value is one that expects parts. */
#include "control/closed_call.h"
#include "control/scan.h"
#include "ir/prim.h"
#include "partition/partition.h"
#include "prim/bind.h"
#include "prim/prims.h"
#include "xform/xform.h"

#include <string.h>

typedef struct use {
  uint32_t eqn, place; /* eqn AX_NONE: a result of the program */
} use;

/* A program at one place: the body of that equation of the region around it. */
typedef struct region {
  const ax_program *program;
  struct region *around; /* NULL: the outermost */
  uint32_t at;           /* the equation around it */
  uint32_t *def;         /* by value: 1 + the equation that makes it; 0: an input */
  use *uses;             /* ascending by value */
  uint32_t *first_use;   /* by value, and one behind */
  bool *raw, *tried;     /* by value; tried: taken for raw in the attempt that is made */
  uint32_t *refused;     /* by value: the last attempt in which it could not be raw */
  bool *out_raw, *out_tried; /* by result: whoever is given it expects parts */
  struct region **body;  /* by equation; NULL: not looked at */
} region;

typedef struct mark {
  region *r;
  uint32_t number; /* of a value, or of a result */
  bool of_result;
} mark;

/* A program that changes the same way wherever nothing around it asks for parts. */
typedef struct settled {
  const ax_program *program;
  const region *r;
  ax_program *made; /* owned; NULL: not yet */
} settled;

typedef struct leaving {
  ax_arena arena;
  ax_axes axes;   /* of the sums that leave in this pass: those of the first that was found; count 0: none yet */
  mark *trail;    /* of the attempt */
  uint32_t count, capacity;
  uint32_t attempt, steps; /* its number, from 1 on, and how many values it has come to */
  const ax_program **quiet; /* in which no sums leave a loop, if nothing around asks for parts */
  uint32_t quiet_count, quiet_capacity;
  settled *settled;
  uint32_t settled_count, settled_capacity;
  uint32_t regions; /* looked at: functions that call each other twice have exponentially many */
  ax_status status;
} leaving;

static const ax_scan_params *scan_of(const ax_eqn *eqn) { return eqn->params; }
static bool is_scan(const ax_eqn *eqn) { return eqn->prim == &ax_prim_scan; }
static bool is_call(const ax_eqn *eqn) { return eqn->prim == &ax_prim_closed_call; }
static const ax_program *body_of(const ax_eqn *eqn) {
  return is_scan(eqn) ? scan_of(eqn)->body : ((const ax_closed_call_params *)eqn->params)->body;
}

/* The carry that operand `place` of a scan is; -1: it is none. */
static int64_t carry_of(const ax_eqn *eqn, uint32_t place) {
  const int64_t carry = (int64_t)place - scan_of(eqn)->num_consts;
  return carry >= 0 && carry < scan_of(eqn)->num_carry ? carry : -1;
}

/* --- Regions --- */

static void *take(leaving *l, size_t bytes) {
  void *memory = ax_arena_alloc(&l->arena, bytes + 1);
  if (memory == NULL && l->status == AX_OK) l->status = ax_out_of_memory(bytes);
  return memory;
}

static void list_uses(region *r) {
  const ax_program *p = r->program;
  for (uint32_t e = 0; e < p->eqn_count; e++)
    for (uint32_t i = 0; i < p->eqns[e].in_count; i++) r->first_use[p->eqns[e].in[i] + 1]++;
  for (uint32_t k = 0; k < p->out_count; k++) r->first_use[p->outs[k] + 1]++;
  for (uint32_t v = 0; v < p->value_count; v++) r->first_use[v + 1] += r->first_use[v];
}

/* Fills in the uses by their values; `next` by value: the place of its next use. */
static void fill_uses(region *r, uint32_t *next) {
  const ax_program *p = r->program;
  memcpy(next, r->first_use, p->value_count * sizeof next[0]);
  for (uint32_t e = 0; e < p->eqn_count; e++)
    for (uint32_t i = 0; i < p->eqns[e].in_count; i++) r->uses[next[p->eqns[e].in[i]]++] = (use){e, i};
  for (uint32_t k = 0; k < p->out_count; k++) r->uses[next[p->outs[k]]++] = (use){AX_NONE, k};
}

enum {
  most_regions = 1 << 13, /* programs with more are looked at no further */
  most_steps = 1 << 13    /* of an attempt */
};

static region *region_of(leaving *l, const ax_program *p, region *around, uint32_t at) {
  region *r = take(l, sizeof *r);
  if (r == NULL) return NULL;
  *r = (region){.program = p, .around = around, .at = at};
  l->regions++;
  r->def = take(l, p->value_count * sizeof r->def[0]);
  r->raw = take(l, p->value_count);
  r->tried = take(l, p->value_count);
  r->refused = take(l, p->value_count * sizeof r->refused[0]);
  r->out_raw = take(l, p->out_count);
  r->out_tried = take(l, p->out_count);
  r->body = take(l, p->eqn_count * sizeof r->body[0]);
  r->first_use = take(l, ((size_t)p->value_count + 1) * sizeof r->first_use[0]);
  uint32_t *next = take(l, p->value_count * sizeof next[0]);
  if (l->status != AX_OK) return NULL;
  for (uint32_t e = 0; e < p->eqn_count; e++)
    for (uint32_t k = 0; k < p->eqns[e].out_count; k++) r->def[p->eqns[e].out + k] = e + 1;
  list_uses(r);
  r->uses = take(l, r->first_use[p->value_count] * sizeof r->uses[0]);
  if (r->uses != NULL) fill_uses(r, next);
  return l->status == AX_OK ? r : NULL;
}

/* NULL: there are too many, or no memory. */
static region *body_at(leaving *l, region *r, uint32_t e) {
  if (r->body[e] == NULL && l->regions < most_regions) r->body[e] = region_of(l, body_of(&r->program->eqns[e]), r, e);
  return r->body[e];
}

/* --- An attempt --- */

static bool is_raw(const region *r, uint32_t v) { return r->raw[v] || r->tried[v]; }
static bool is_wanted(const region *r, uint32_t k) { return r->out_raw[k] || r->out_tried[k]; }

/* What programs themselves say is unreduced, or reduced, stays as it is. */
static bool is_plain(const region *r, uint32_t v) {
  const ax_spread *spread = &r->program->types[v].spread;
  return spread->unreduced == 0 && spread->reduced == 0;
}

/* The axes of the sums, all of them; 0: none is known yet. */
static ax_axis_set axes_in(const leaving *l, const ax_mesh *mesh) {
  ax_axis_set set = 0;
  for (uint32_t i = 0; i < l->axes.count; i++) set |= (ax_axis_set)1 << ax_mesh_find(mesh, l->axes.name[i]);
  return set;
}

static bool note(leaving *l, region *r, uint32_t number, bool of_result) {
  if (!of_result && !is_plain(r, number)) return false;
  const ax_status status = ax_grow(&l->trail, sizeof l->trail[0], l->count, 1, &l->capacity);
  if (status != AX_OK) l->status = status;
  if (status != AX_OK) return false;
  l->trail[l->count++] = (mark){r, number, of_result};
  (of_result ? r->out_tried : r->tried)[number] = true;
  return true;
}

static void go_back(leaving *l, uint32_t count) {
  while (l->count > count) {
    const mark *m = &l->trail[--l->count];
    (m->of_result ? m->r->out_tried : m->r->tried)[m->number] = false;
  }
}

/* All its elements are zero. */
static bool is_zero(const region *r, uint32_t v) {
  const ax_eqn *eqn = r->def[v] > 0 ? &r->program->eqns[r->def[v] - 1] : NULL;
  if (eqn != NULL && eqn->prim == &ax_prim_pvary) return is_zero(r, eqn->in[0]);
  if (eqn != NULL && eqn->prim == &ax_prim_broadcast_in_dim) return is_zero(r, eqn->in[0]);
  const ax_literal *literal = ax_value_literal(r->program, v);
  if (literal == NULL || literal->type.rank > 0) return false;
  const unsigned char *bytes = literal->data;
  for (size_t i = 0; i < ax_dtype_bytes(literal->type.dtype); i++)
    if (bytes[i] != 0) return false;
  return true;
}

/* Linear in its first operand, and in no other. Division of integers truncates. */
static bool is_linear(const region *r, const ax_eqn *eqn) {
  const ax_prim *prim = eqn->prim;
  if (prim == &ax_prim_div) return ax_is_differentiable(r->program->types[eqn->out].dtype);
  return prim == &ax_prim_neg || prim == &ax_prim_transpose || prim == &ax_prim_reshape || prim == &ax_prim_broadcast_in_dim ||
         prim == &ax_prim_reduce_sum;
}
static bool adds(const ax_prim *prim) { return prim == &ax_prim_add || prim == &ax_prim_sub || prim == &ax_prim_dynamic_update_slice; }

static bool make_raw(leaving *l, region *r, uint32_t v);

static bool carry_raw(leaving *l, region *r, uint32_t e, uint32_t carry) {
  const ax_eqn *eqn = &r->program->eqns[e];
  region *body = body_at(l, r, e);
  if (body == NULL) return false;
  const uint32_t input = (uint32_t)scan_of(eqn)->num_consts + carry;
  if (is_raw(body, input)) return true;
  if (!note(l, body, input, false) || !note(l, body, carry, true) || !note(l, r, eqn->out + carry, false)) return false;
  return make_raw(l, body, body->program->outs[carry]);
}

static bool input_raw(leaving *l, region *r, uint32_t input) {
  region *around = r->around;
  if (around == NULL) return false;
  const ax_eqn *eqn = &around->program->eqns[r->at];
  if (is_call(eqn)) return note(l, r, input, false) && make_raw(l, around, eqn->in[input]);
  const int64_t carry = carry_of(eqn, input);
  return carry >= 0 && carry_raw(l, around, r->at, (uint32_t)carry);
}

static bool result_raw(leaving *l, region *r, uint32_t e, uint32_t k) {
  const ax_eqn *eqn = &r->program->eqns[e];
  region *body = body_at(l, r, e);
  if (body == NULL) return false;
  if (is_scan(eqn) && k < scan_of(eqn)->num_carry) return carry_raw(l, r, e, k);
  return note(l, r, eqn->out + k, false) && note(l, body, k, true) && make_raw(l, body, body->program->outs[k]);
}

static bool psum_raw(leaving *l, region *r, const ax_eqn *eqn) {
  const ax_axes *axes = eqn->params;
  if (axes->count == 0 || axes->groups.count > 0 || !is_plain(r, eqn->in[0])) return false;
  if (l->axes.count > 0 && !ax_axes_equal(axes, &l->axes)) return false;
  if (l->axes.count == 0) l->axes = *axes;
  const ax_axis_set set = axes_in(l, &r->program->axes);
  if ((set & ~ax_checked_axes(&r->program->axes)) != 0) return false; /* what is the same on all devices is not known */
  return note(l, r, eqn->out, false);
}

static bool product_raw(leaving *l, region *r, const ax_eqn *eqn) {
  const uint32_t count = l->count;
  const ax_axes axes = l->axes;
  if (eqn->in[0] == eqn->in[1] || !note(l, r, eqn->out, false)) return false;
  for (int side = 0; side < 2; side++) {
    if (!is_zero(r, eqn->in[side]) && make_raw(l, r, eqn->in[side])) return true;
    go_back(l, count + 1);
    l->axes = axes;
  }
  return false;
}

static bool value_raw(leaving *l, region *r, uint32_t v) {
  if (r->def[v] == 0) return input_raw(l, r, v);
  const uint32_t e = r->def[v] - 1;
  const ax_eqn *eqn = &r->program->eqns[e];
  if (is_scan(eqn) || is_call(eqn)) return result_raw(l, r, e, v - eqn->out);
  if (eqn->prim == &ax_prim_psum) return psum_raw(l, r, eqn);
  if (eqn->prim == &ax_prim_mul) return product_raw(l, r, eqn);
  if (is_linear(r, eqn)) return note(l, r, v, false) && make_raw(l, r, eqn->in[0]);
  if (adds(eqn->prim)) return note(l, r, v, false) && make_raw(l, r, eqn->in[0]) && make_raw(l, r, eqn->in[1]);
  return false;
}

/* Takes a value for raw, and what has to be raw for that. */
static bool make_raw(leaving *l, region *r, uint32_t v) {
  if (l->status != AX_OK || l->steps++ > most_steps || r->refused[v] == l->attempt) return false;
  if (is_raw(r, v) || is_zero(r, v)) return true;
  const bool made = value_raw(l, r, v);
  if (!made) r->refused[v] = l->attempt;
  return made;
}

/* Whether a use expects parts. */
static bool takes_parts(const region *r, const use *u) {
  if (u->eqn == AX_NONE) return is_wanted(r, u->place);
  const ax_eqn *eqn = &r->program->eqns[u->eqn];
  if (is_scan(eqn) && carry_of(eqn, u->place) < 0) return false;
  if (is_scan(eqn) || is_call(eqn)) return r->body[u->eqn] != NULL && is_raw(r->body[u->eqn], u->place);
  if (!is_raw(r, eqn->out)) return false;
  if (eqn->prim == &ax_prim_mul) return !is_raw(r, eqn->in[1 - u->place]);
  return (is_linear(r, eqn) && u->place == 0) || (adds(eqn->prim) && u->place < 2);
}

static bool is_consistent(const leaving *l, const region *top, uint32_t result) {
  for (uint32_t i = 0; i < l->count; i++) {
    const region *r = l->trail[i].r;
    const uint32_t v = l->trail[i].number;
    if (!l->trail[i].of_result && (r->program->types[v].spread.varying & axes_in(l, &r->program->axes)) != 0) return false;
    if (l->trail[i].of_result || (r == top && v == result)) continue;
    for (uint32_t u = r->first_use[v]; u < r->first_use[v + 1]; u++)
      if (!takes_parts(r, &r->uses[u])) return false;
  }
  return true;
}

static double bytes_of(const region *r, uint32_t v) {
  return (double)ax_type_elems(&r->program->types[v]) * (double)ax_dtype_bytes(r->program->types[v].dtype);
}

/* Whether the sum behind the loop is of fewer bytes than those that it takes the place of, in all iterations. */
static bool is_less(const leaving *l, const region *top, uint32_t e, uint32_t carry) {
  double inside = 0;
  for (uint32_t i = 0; i < l->count; i++) {
    const region *r = l->trail[i].r;
    const uint32_t v = l->trail[i].number;
    double times = 1;
    if (l->trail[i].of_result || r->def[v] == 0 || r->program->eqns[r->def[v] - 1].prim != &ax_prim_psum) continue;
    for (const region *at = r; at != top; at = at->around) {
      const ax_eqn *eqn = &at->around->program->eqns[at->at];
      if (is_scan(eqn)) times *= (double)scan_of(eqn)->length;
    }
    inside += times * bytes_of(r, v);
  }
  return bytes_of(top, top->program->eqns[e].out + carry) < inside;
}

/* A sum leaves the loop by this carry, if it can. Of the loop's result the sum is made behind it. */
static void try_carry(leaving *l, region *r, uint32_t e, uint32_t carry) {
  const uint32_t result = r->program->eqns[e].out + carry;
  const ax_axes before = l->axes;
  if (r->raw[result] || r->body[e]->out_raw[carry]) return;
  l->attempt++;
  l->steps = 0;
  const bool good = carry_raw(l, r, e, carry) && is_less(l, r, e, carry) && is_consistent(l, r, result);
  for (uint32_t i = 0; good && i < l->count; i++) {
    const mark *m = &l->trail[i];
    if (m->r == r && !m->of_result && m->number == result) continue;
    (m->of_result ? m->r->out_raw : m->r->raw)[m->number] = true;
  }
  go_back(l, 0);
  if (!good) l->axes = before;
}

static bool is_quiet(const leaving *l, const ax_program *p) {
  for (uint32_t i = 0; i < l->quiet_count; i++)
    if (l->quiet[i] == p) return true;
  return false;
}

/* None of the first values is raw, and no result is asked for as parts. */
static bool has_no_parts(const region *r, uint32_t values) {
  for (uint32_t v = 0; v < values; v++)
    if (r->raw[v]) return false;
  for (uint32_t k = 0; k < r->program->out_count; k++)
    if (r->out_raw[k]) return false;
  return true;
}
static bool is_untouched(const region *r) { return has_no_parts(r, r->program->value_count); }

/* Nothing around it asks for parts, or gives some. */
static bool is_free(const region *r) { return has_no_parts(r, r->program->in_count); }

static settled *find_settled(const leaving *l, const ax_program *p) {
  for (uint32_t i = 0; i < l->settled_count; i++)
    if (l->settled[i].program == p) return &l->settled[i];
  return NULL;
}

static void settle(leaving *l, const region *r) {
  if (find_settled(l, r->program) != NULL) return;
  const ax_status status = ax_grow(&l->settled, sizeof l->settled[0], l->settled_count, 1, &l->settled_capacity);
  if (status != AX_OK) l->status = status;
  else l->settled[l->settled_count++] = (settled){r->program, r, NULL};
}

static void drop_body(leaving *l, region *r, uint32_t e) {
  r->body[e] = NULL;
  l->regions--;
}

/* Tries all loops in it, the outer ones first. Returns whether anything changes. */
static bool visit(leaving *l, region *r) {
  const ax_program *p = r->program;
  bool changed = false;
  for (uint32_t e = 0; e < p->eqn_count && l->status == AX_OK; e++) {
    const ax_eqn *eqn = &p->eqns[e];
    if (!is_scan(eqn) && !is_call(eqn)) continue;
    const bool known = is_quiet(l, body_of(eqn)) || find_settled(l, body_of(eqn)) != NULL;
    if (!(is_call(eqn) && r->body[e] == NULL && known) && body_at(l, r, e) != NULL) {
      for (uint32_t k = 0; is_scan(eqn) && k < scan_of(eqn)->num_carry; k++) try_carry(l, r, e, k);
      if (known && is_untouched(r->body[e])) drop_body(l, r, e);
      else if (visit(l, r->body[e])) changed = true;
    }
    changed = changed || find_settled(l, body_of(eqn)) != NULL;
  }
  const bool free = is_free(r);
  changed = changed || !is_untouched(r);
  if (changed && free && l->status == AX_OK) settle(l, r);
  if (changed || l->status != AX_OK) return changed;
  const ax_status status = ax_grow(&l->quiet, sizeof l->quiet[0], l->quiet_count, 1, &l->quiet_capacity);
  if (status != AX_OK) l->status = status;
  else l->quiet[l->quiet_count++] = p;
  if (r->around != NULL) drop_body(l, r->around, r->at); /* it stays as it is */
  return false;
}

/* --- The new program --- */

static ax_type parts_type(const leaving *l, const ax_type *type) {
  ax_type parts = *type;
  parts.spread.varying |= axes_in(l, &ax_builder_current()->axes);
  return parts;
}

/* Parts of a value that an equation expects parts of. */
static ax_value parts_of(const leaving *l, const region *r, const ax_program_walk *walk, uint32_t v) {
  if (r->raw[v]) return walk->value[v];
  const ax_type parts = parts_type(l, &r->program->types[v]);
  return is_zero(r, v) ? ax_zeros_of(&parts) : ax_vary_to(ax_once(walk->value[v], &l->axes), parts.spread.varying);
}

static ax_program *rebuild(leaving *l, const region *r);

/* of: the body's region. */
static void rebuild_scan(leaving *l, const region *r, uint32_t e, const region *of, ax_program *body, ax_program_walk *walk) {
  const ax_eqn *eqn = &r->program->eqns[e];
  ax_scan_params params = *scan_of(eqn);
  ax_value *in = ax_walk_alloc(walk, eqn->in_count * sizeof in[0]);
  if (in == NULL) return;
  params.body = body;
  for (uint32_t i = 0; i < eqn->in_count; i++)
    in[i] = of->raw[i] ? parts_of(l, r, walk, eqn->in[i]) : walk->value[eqn->in[i]];
  ax_bind(&ax_prim_scan, &params, in, eqn->in_count, walk->value + eqn->out, eqn->out_count);
  for (uint32_t k = 0; k < params.num_carry && !ax_failed(); k++)
    if (of->out_raw[k] && !r->raw[eqn->out + k])
      walk->value[eqn->out + k] = ax_bind1(&ax_prim_psum, &l->axes, &walk->value[eqn->out + k], 1);
}

static void rebuild_call(leaving *l, const region *r, uint32_t e, const region *of, ax_program *body, ax_program_walk *walk) {
  const ax_eqn *eqn = &r->program->eqns[e];
  ax_value *in = ax_walk_alloc(walk, eqn->in_count * sizeof in[0]);
  if (in == NULL) return;
  for (uint32_t i = 0; i < eqn->in_count; i++)
    in[i] = of->raw[i] ? parts_of(l, r, walk, eqn->in[i]) : walk->value[eqn->in[i]];
  const ax_value *out = ax_called_bind(eqn->prim, eqn->params, body, in);
  for (uint32_t k = 0; out != NULL && k < eqn->out_count; k++) walk->value[eqn->out + k] = out[k];
}

static void rebuild_raw(const leaving *l, const region *r, const ax_eqn *eqn, ax_program_walk *walk) {
  const ax_type parts = parts_type(l, &r->program->types[eqn->out]);
  ax_value *in = ax_walk_alloc(walk, eqn->in_count * sizeof in[0]);
  if (in == NULL) return;
  for (uint32_t i = 0; i < eqn->in_count; i++) in[i] = walk->value[eqn->in[i]];
  if (eqn->prim == &ax_prim_psum) {
    walk->value[eqn->out] = ax_vary_to(in[0], parts.spread.varying);
    return;
  }
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    const bool expected = adds(eqn->prim) ? i < 2 : eqn->prim == &ax_prim_mul ? r->raw[eqn->in[i]] : i == 0;
    in[i] = ax_vary_to(expected ? parts_of(l, r, walk, eqn->in[i]) : in[i], parts.spread.varying);
  }
  ax_bind(eqn->prim, eqn->params, in, eqn->in_count, walk->value + eqn->out, 1);
}

static void rebuild_equation(leaving *l, const region *r, uint32_t e, ax_program_walk *walk) {
  const ax_eqn *eqn = &r->program->eqns[e];
  ax_builder_stem(ax_builder_current(), eqn);
  const bool holds = is_scan(eqn) || is_call(eqn);
  settled *known = holds && (r->body[e] == NULL || is_free(r->body[e])) ? find_settled(l, body_of(eqn)) : NULL;
  const region *of = known != NULL ? known->r : r->body[e];
  if (of != NULL) {
    if (known != NULL && known->made == NULL) known->made = rebuild(l, of);
    ax_program *body = known != NULL ? ax_program_retain(known->made) : rebuild(l, of);
    if (body != NULL && is_scan(eqn)) rebuild_scan(l, r, e, of, body, walk);
    else if (body != NULL) rebuild_call(l, r, e, of, body, walk);
    ax_program_release(body);
    return;
  }
  if (eqn->out_count == 1 && r->raw[eqn->out]) rebuild_raw(l, r, eqn, walk);
  else ax_walk_replay(walk, eqn);
}

/* In a trace of its own. NULL: it failed, and so does the one around. */
static ax_program *rebuild(leaving *l, const region *r) {
  const ax_program *p = r->program;
  ax_program *made = NULL;
  ax_program_walk walk;
  ax_builder builder;
  ax_builder_begin(&builder, &p->axes);
  ax_value *outs = ax_trace_alloc((p->out_count + 1) * sizeof outs[0]);
  if (ax_walk_init(&walk, p) && outs != NULL) {
    for (uint32_t i = 0; i < p->in_count; i++) {
      const ax_type type = r->raw[i] ? parts_type(l, &p->types[i]) : p->types[i];
      walk.value[i] = ax_builder_input(&builder, &type);
    }
    for (uint32_t e = 0; e < p->eqn_count && !ax_failed(); e++) rebuild_equation(l, r, e, &walk);
    for (uint32_t k = 0; k < p->out_count && !ax_failed(); k++)
      outs[k] = r->out_raw[k] ? parts_of(l, r, &walk, p->outs[k]) : walk.value[p->outs[k]];
  }
  ax_walk_deinit(&walk);
  const ax_status status = ax_finish_clean(&builder, outs, p->out_count, &made);
  if (status != AX_OK && ax_builder_current() != NULL) ax_fail(status);
  if (status != AX_OK && l->status == AX_OK) l->status = status;
  return status == AX_OK ? made : NULL;
}

/* Sums over the axes of one of them. */
static ax_status leave(ax_program *program, ax_program **out) {
  leaving l = {.status = AX_OK};
  region *all = region_of(&l, program, NULL, 0);
  const bool changed = all != NULL && visit(&l, all);
  *out = l.status == AX_OK && changed ? rebuild(&l, all) : l.status == AX_OK ? ax_program_retain(program) : NULL;
  ax_free(l.trail);
  ax_free(l.quiet);
  for (uint32_t i = 0; i < l.settled_count; i++) ax_program_release(l.settled[i].made);
  ax_free(l.settled);
  ax_arena_deinit(&l.arena);
  return l.status;
}

ax_status ax_sums_leave_loops(ax_program *program, ax_program **out) {
  enum { most_passes = 8 };
  *out = ax_program_retain(program);
  for (int i = 0; i < most_passes; i++) {
    ax_program *next;
    const ax_status status = leave(*out, &next);
    const bool changed = next != *out;
    ax_program_release(*out);
    *out = next;
    if (status != AX_OK || !changed) return status;
  }
  return AX_OK;
}
