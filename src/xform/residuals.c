/* The choice of residuals, for loops that keep each one by itself.

   In a chain of cheap equations the tangent half often uses every link. It is enough to keep some links and compute the others from
   them. A value's *bases* are the kept values that it is computed from in the end, through cheap equations whose results are not
   used otherwise or are computed again themselves. In a walk forward, a residual is computed again if its bases are kept anyway, or
   are much smaller than it; or if the one base that is missing would serve residuals that weigh more than the base. All others are
   kept, and become bases. plan/recompute.c makes this choice for operations whose residuals do not leave their program.

   The time is proportional to the equations, since the number of equations computed again at once is bounded. */
#include "xform/xform.h"

enum { most_bases = 6, most_work = 48 /* equations, of all that is made again for a value */ };

typedef struct value {
  uint32_t maker; /* the equation that makes it; AX_NONE: an input */
  bool makeable, residual, again, opaque; /* opaque: users of the value take it as it is */
  uint32_t work, base_count, bases[most_bases];
  double gain; /* of what could be made of it, if it were kept */
} value;

typedef struct chooser {
  ax_residuals *r;
  value *values;
} chooser;

double ax_value_weight(const ax_program *program, uint32_t id) {
  const ax_type *type = &program->types[id];
  return (double)ax_type_elems(type) * (double)ax_dtype_bytes(type->dtype) *
         (double)ax_axis_set_size(ax_spread_differs(&type->spread), &program->axes);
}

static double weight(const chooser *c, uint32_t id) { return ax_value_weight(c->r->joint, id); }

static void describe(chooser *c) {
  const ax_residuals *r = c->r;
  for (uint32_t i = 0; i < r->joint->value_count; i++) c->values[i].maker = AX_NONE;
  for (uint32_t i = 0; i < r->joint->eqn_count; i++) {
    const ax_eqn *eqn = &r->joint->eqns[i];
    for (uint32_t k = 0; k < eqn->out_count; k++) c->values[eqn->out + k].maker = i;
    if (!r->known[i] || eqn->out_count != 1) continue;
    value *v = &c->values[eqn->out];
    v->makeable = r->again[i] || eqn->prim->cheap;
    v->residual = r->needed[eqn->out] && !r->again[i];
  }
}

static bool add_base(value *v, uint32_t base) {
  for (uint32_t i = 0; i < v->base_count; i++)
    if (v->bases[i] == base) return true;
  if (v->base_count == most_bases) return false;
  v->bases[v->base_count++] = base;
  return true;
}

/* False: too much. */
static bool add_operand(const chooser *c, value *v, uint32_t id, bool decided) {
  const value *u = &c->values[id];
  if (c->r->fixed[id] || (u->maker == AX_NONE && c->r->held[id])) return true;
  if (!u->makeable || u->opaque || (u->residual && !(decided && u->again))) return add_base(v, id);
  v->work += u->work;
  for (uint32_t i = 0; i < u->base_count; i++)
    if (!add_base(v, u->bases[i])) return false;
  return v->work <= most_work;
}

/* decided: what residuals before it come down to is known; else they are bases. */
static void find_bases(const chooser *c, value *v, bool decided) {
  const ax_eqn *eqn = &c->r->joint->eqns[v->maker];
  v->work = 1;
  v->base_count = 0;
  v->opaque = false;
  for (uint32_t k = 0; k < eqn->in_count && !v->opaque; k++) v->opaque = !add_operand(c, v, eqn->in[k], decided);
}

/* The bytes that are to be kept for v to be made again. lacks: one base that is not kept without; count: how many. */
static double price(const chooser *c, const value *v, bool decided, uint32_t *lacks, uint32_t *count) {
  double bytes = 0;
  *count = 0;
  for (uint32_t i = 0; i < v->base_count; i++) {
    uint32_t base = v->bases[i];
    if (c->r->needed[base] || (decided && c->values[base].gain > weight(c, base))) continue;
    bytes += weight(c, base);
    *lacks = base;
    (*count)++;
  }
  return bytes;
}

static void decide(chooser *c, uint32_t id, bool decided) {
  value *v = &c->values[id];
  uint32_t lacks = 0, count;
  if (!v->makeable) return;
  find_bases(c, v, decided);
  if (!v->residual || v->opaque) return;
  double bytes = price(c, v, decided, &lacks, &count);
  if (!decided) {
    if (count == 1) c->values[lacks].gain += weight(c, id);
    return;
  }
  v->again = bytes <= weight(c, id) / 2;
  for (uint32_t i = 0; i < v->base_count && v->again; i++) c->r->needed[v->bases[i]] = true;
}

ax_status ax_choose_residuals(ax_residuals *r) {
  chooser c = {.r = r};
  c.values = ax_calloc(r->joint->value_count, sizeof c.values[0]);
  if (c.values == NULL) return ax_out_of_memory(r->joint->value_count * sizeof c.values[0]);
  describe(&c);
  for (int decided = 0; decided < 2; decided++)
    for (uint32_t i = 0; i < r->joint->eqn_count; i++)
      if (r->joint->eqns[i].out_count == 1) decide(&c, r->joint->eqns[i].out, decided);
  for (uint32_t i = 0; i < r->joint->eqn_count; i++) {
    if (r->joint->eqns[i].out_count != 1) continue;
    const value *v = &c.values[r->joint->eqns[i].out];
    r->more[i] = v->makeable && !v->opaque && (!v->residual || v->again);
  }
  ax_free(c.values);
  return AX_OK;
}
