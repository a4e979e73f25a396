/* Futures: what a collective under way will give. The equation that starts it gives the future, and one whose operands are futures
   ends it: exactly one, in the same program. So what is started is awaited, by all devices alike, and nothing holds a half-done
   result. */
#include "ir/program.h"

/* The collective that an equation holds. */
static const char *collective_of(const ax_eqn *eqn) {
  for (uint32_t p = 0; p < eqn->prim->param_count; p++) {
    if (eqn->prim->params[p].kind != AX_PARAM_PROGRAM) continue;
    const ax_program *body = *(ax_program *const *)ax_param_at(eqn, &eqn->prim->params[p]);
    for (uint32_t i = 0; i < body->eqn_count; i++)
      if ((body->eqns[i].prim->effects & AX_EFFECT_EXCHANGE) != 0) return body->eqns[i].prim->name;
  }
  return "nothing";
}

ax_status ax_future_error(const ax_type *types, const ax_eqn *eqns, uint32_t eqn_count, uint32_t id, const ax_mesh *axes,
                          const char *what) {
  uint32_t i = 0, number = 0; /* as printed */
  for (; i < eqn_count && !(id >= eqns[i].out && id - eqns[i].out < eqns[i].out_count); i++) number += ax_eqn_literal(&eqns[i]) == NULL;
  if (i == eqn_count) return ax_error(AX_INVALID_ARGUMENT, "%s %s", ax_type_string(&types[id], axes), what);
  const ax_eqn *eqn = &eqns[i];
  if (eqn->location != NULL)
    return ax_error(AX_INVALID_ARGUMENT, "the %s of %s, %s at %s, %s", ax_type_string(&types[id], axes), collective_of(eqn), eqn->prim->name,
                    eqn->location, what);
  return ax_error(AX_INVALID_ARGUMENT, "the %s of %s, %s in %s %u, %s", ax_type_string(&types[id], axes), collective_of(eqn),
                  eqn->prim->name, eqn->line != 0 ? "line" : "equation", eqn->line != 0 ? eqn->line : number, what);
}

ax_status ax_futures_check(const ax_type *types, uint32_t value_count, const ax_eqn *eqns, uint32_t eqn_count, const uint32_t *outs,
                           uint32_t out_count, const ax_mesh *axes) {
  const char *wrong = NULL;
  uint32_t id = 0;
  for (uint32_t k = 0; k < out_count && wrong == NULL; k++)
    if (types[outs[k]].form == AX_FUTURE) id = outs[k], wrong = "is a result of its program; done must end it";
  bool *done = ax_calloc(value_count, sizeof done[0]);
  if (done == NULL) return ax_out_of_memory(value_count);
  for (uint32_t i = 0; i < eqn_count && wrong == NULL; i++)
    for (uint32_t j = 0; j < eqns[i].in_count && wrong == NULL; j++) {
      if (types[eqns[i].in[j]].form != AX_FUTURE) continue;
      id = eqns[i].in[j];
      if (done[id]) wrong = "is done twice";
      done[id] = true;
    }
  for (uint32_t v = 0; v < value_count && wrong == NULL; v++)
    if (types[v].form == AX_FUTURE && !done[v]) id = v, wrong = "is never done";
  ax_free(done);
  return wrong == NULL ? AX_OK : ax_future_error(types, eqns, eqn_count, id, axes, wrong);
}
