/* Values that are used once. A future stands for the result of a collective in progress. One equation starts it and gives the
   future, and exactly one equation of the same program, whose operands are futures, ends it. So each started collective is awaited,
   by all devices alike, and no other operation holds a result that is not complete. A token says that a message was sent. It is
   taken by one equation, or returned by the program, or unused. So tokens order messages, and no message appears twice. */
#include "ir/prim.h"
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

/* The equation that made a value: its number as printed in *number; NULL: an input. */
static const ax_eqn *maker_of(const ax_eqn *eqns, uint32_t eqn_count, uint32_t id, uint32_t *number) {
  *number = 0;
  for (uint32_t i = 0; i < eqn_count; i++) {
    if (id >= eqns[i].out && id - eqns[i].out < eqns[i].out_count) return &eqns[i];
    *number += ax_eqn_literal(&eqns[i]) == NULL;
  }
  return NULL;
}

/* " at prog.c:12", " in line 3", " in equation 3" */
static void place_text(ax_text *text, const ax_eqn *eqn, uint32_t number) {
  if (eqn->location != NULL) ax_text_add(text, " at %s", eqn->location);
  else ax_text_add(text, " in %s %u", eqn->line != 0 ? "line" : "equation", eqn->line != 0 ? eqn->line : number);
}

ax_status ax_future_error(const ax_type *types, const ax_eqn *eqns, uint32_t eqn_count, uint32_t id, const ax_mesh *axes,
                          const char *what) {
  uint32_t number;
  const ax_eqn *eqn = maker_of(eqns, eqn_count, id, &number);
  if (eqn == NULL) return ax_error(AX_INVALID_ARGUMENT, "%s %s", ax_type_string(&types[id], axes), what);
  ax_text place = {0};
  place_text(&place, eqn, number);
  ax_status status = ax_error(AX_INVALID_ARGUMENT, "the %s of %s, %s%s, %s", ax_type_string(&types[id], axes), collective_of(eqn),
                              eqn->prim->name, place.data != NULL ? place.data : "", what);
  ax_text_deinit(&place);
  return status;
}

static ax_status check_futures(const ax_type *types, uint32_t value_count, const ax_eqn *eqns, uint32_t eqn_count,
                               const uint32_t *outs, uint32_t out_count, const ax_mesh *axes) {
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

/* --- Tokens --- */

static void user_text(ax_text *text, const ax_eqn *eqns, uint32_t eqn_count, uint32_t user) {
  uint32_t number = 0;
  if (user == eqn_count) {
    ax_text_add(text, "as a result");
    return;
  }
  for (uint32_t i = 0; i < user; i++) number += ax_eqn_literal(&eqns[i]) == NULL;
  ax_text_add(text, "by %s", eqns[user].prim->name);
  place_text(text, &eqns[user], number);
}

/* "the token{V:d} of psend at prog.c:12 is used twice: by precv at prog.c:13 and by precv at prog.c:14" */
static ax_status used_twice(const ax_type *types, const ax_eqn *eqns, uint32_t eqn_count, uint32_t id, uint32_t first,
                            uint32_t second, const ax_mesh *axes) {
  uint32_t number;
  ax_text text = {0};
  const ax_eqn *maker = maker_of(eqns, eqn_count, id, &number);
  ax_text_add(&text, "the %s", ax_type_string(&types[id], axes));
  if (maker != NULL) {
    ax_text_add(&text, " of %s", maker->prim->name);
    place_text(&text, maker, number);
  }
  ax_text_add(&text, " is used twice: ");
  user_text(&text, eqns, eqn_count, first);
  ax_text_add(&text, " and ");
  user_text(&text, eqns, eqn_count, second);
  ax_status status = ax_error(AX_INVALID_ARGUMENT, "%s", text.data != NULL && !text.failed ? text.data : "a token is used twice");
  ax_text_deinit(&text);
  return status;
}

static ax_status check_tokens(const ax_type *types, uint32_t value_count, const ax_eqn *eqns, uint32_t eqn_count,
                              const uint32_t *outs, uint32_t out_count, const ax_mesh *axes) {
  uint32_t *user = ax_calloc(value_count, sizeof user[0]); /* 1 + the equation; 1 + eqn_count: a result */
  ax_status status = user != NULL ? AX_OK : ax_out_of_memory(value_count * sizeof user[0]);
  for (uint32_t i = 0; i <= eqn_count && status == AX_OK; i++) {
    const uint32_t *ids = i < eqn_count ? eqns[i].in : outs;
    for (uint32_t j = 0; j < (i < eqn_count ? eqns[i].in_count : out_count) && status == AX_OK; j++) {
      if (types[ids[j]].form != AX_TOKEN) continue;
      if (user[ids[j]] != 0) status = used_twice(types, eqns, eqn_count, ids[j], user[ids[j]] - 1, i, axes);
      user[ids[j]] = i + 1;
    }
  }
  ax_free(user);
  return status;
}

ax_status ax_linear_check(const ax_type *types, uint32_t value_count, const ax_eqn *eqns, uint32_t eqn_count, const uint32_t *outs,
                          uint32_t out_count, const ax_mesh *axes) {
  AX_TRY(check_futures(types, value_count, eqns, eqn_count, outs, out_count, axes));
  return check_tokens(types, value_count, eqns, eqn_count, outs, out_count, axes);
}

ax_status ax_results_check(const ax_type *types, const uint32_t *outs, uint32_t out_count, const ax_mesh *axes) {
  for (uint32_t k = 0; k < out_count; k++)
    if (ax_is_memory(types[outs[k]].form))
      return ax_error(AX_INVALID_ARGUMENT, "result %u is %s, which no program gives%s", k, ax_type_string(&types[outs[k]], axes),
                      types[outs[k]].form == AX_REF ? "; ref_load gives what is in it" : "");
  return AX_OK;
}

ax_status ax_whole_check(const ax_program *program) {
  for (uint32_t i = 0; i < program->in_count + program->out_count; i++) {
    bool in = i < program->in_count;
    uint32_t number = in ? i : i - program->in_count;
    const ax_type *type = &program->types[in ? i : program->outs[number]];
    if (ax_is_memory(type->form))
      return ax_error(AX_INVALID_ARGUMENT, "input %u is %s: it is made by a kernel for its body, and does not come from outside",
                      number, ax_type_string(type, &program->axes));
    if (type->form == AX_TOKEN)
      return ax_error(AX_INVALID_ARGUMENT,
                      "%s %u is %s: a token is of one run of a program, and neither comes from outside nor leaves it",
                      in ? "input" : "result", number, ax_type_string(type, &program->axes));
  }
  return AX_OK;
}
