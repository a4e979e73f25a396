/* The choice of residuals, for loops that keep each one by itself (ir/remake.h). A cheap equation of the half that is known makes
   its result again if that result is no residual, or is a residual that is not kept. plan/recompute.c makes the same choice for
   operations whose residuals do not leave their program. */
#include "ir/prim.h"
#include "ir/remake.h"
#include "xform/xform.h"

enum { most_work = 48 /* equations, of all that is made again for a value */ };

typedef struct chooser {
  ax_residuals *r;
  ax_remade *values;
  uint32_t *maker; /* by value: the equation that makes it; AX_NONE: an input */
} chooser;

double ax_value_weight(const ax_program *program, uint32_t id) {
  const ax_type *type = &program->types[id];
  return (double)ax_type_elems(type) * (double)ax_dtype_bytes(type->dtype) *
         (double)ax_axis_set_size(ax_spread_differs(&type->spread), &program->axes);
}

static ax_remade *value_of(void *context, uint32_t id) { return &((const chooser *)context)->values[id]; }
static double weight(void *context, uint32_t id) { return ax_value_weight(((const chooser *)context)->r->joint, id); }

static bool is_kept(void *context, uint32_t base, uint32_t id) {
  (void)id;
  return ((const chooser *)context)->r->needed[base];
}

static void keep(void *context, uint32_t base, uint32_t id) {
  (void)id;
  ((const chooser *)context)->r->needed[base] = true;
}

static void describe(chooser *c) {
  const ax_residuals *r = c->r;
  for (uint32_t i = 0; i < r->joint->value_count; i++) c->maker[i] = AX_NONE;
  for (uint32_t i = 0; i < r->joint->eqn_count; i++) {
    const ax_eqn *eqn = &r->joint->eqns[i];
    for (uint32_t k = 0; k < eqn->out_count; k++) c->maker[eqn->out + k] = i;
    if (!r->known[i] || eqn->out_count != 1) continue;
    ax_remade *v = &c->values[eqn->out];
    v->makeable = r->again[i] || eqn->prim->cheap;
    v->wanted = r->needed[eqn->out] && !r->again[i];
  }
}

static bool stays(const chooser *c, uint32_t id) { return c->r->fixed[id] || (c->maker[id] == AX_NONE && c->r->held[id]); }

static void decide(const chooser *c, const ax_remaking *remaking, const ax_eqn *eqn) {
  ax_remade *v = &c->values[eqn->out];
  if (eqn->out_count != 1 || !v->makeable) return;
  bool fits = ax_remake_begin(remaking, v, 1);
  for (uint32_t k = 0; k < eqn->in_count && fits; k++) fits = stays(c, eqn->in[k]) || ax_remake_operand(remaking, v, eqn->in[k]);
  ax_remake_decide(remaking, eqn->out);
}

static void choose(chooser *c) {
  const ax_program *joint = c->r->joint;
  ax_remaking remaking = {
      .most_work = most_work, .value = value_of, .weight = weight, .is_kept = is_kept, .keep = keep, .context = c};
  describe(c);
  for (int walk = 0; walk < 2; walk++) {
    remaking.decided = walk == 1;
    for (uint32_t i = 0; i < joint->eqn_count; i++) decide(c, &remaking, &joint->eqns[i]);
  }
  for (uint32_t i = 0; i < joint->eqn_count; i++)
    if (joint->eqns[i].out_count == 1) c->r->more[i] = ax_remake_sees_through(&remaking, &c->values[joint->eqns[i].out]);
}

ax_status ax_choose_residuals(ax_residuals *r) {
  const uint32_t count = r->joint->value_count;
  chooser c = {.r = r, .values = ax_calloc(count, sizeof c.values[0]), .maker = ax_calloc(count, sizeof c.maker[0])};
  const bool room = c.values != NULL && c.maker != NULL;
  if (room) choose(&c);
  ax_free(c.values);
  ax_free(c.maker);
  return room ? AX_OK : ax_out_of_memory(count * sizeof c.values[0]);
}
