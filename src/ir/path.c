/* The place of an equation: the way to it through the equations that hold programs, and its text. */
#include "ir/path.h"

#include "ir/memo.h"
#include "ir/prim.h"

/* Programs that do not lead there are in the memo, since bodies may be shared. */
static bool find(ax_memo *memo, const ax_program *at, const ax_program *wanted, ax_path *path) {
  if (at == wanted) return true;
  ax_memo_entry *entry = ax_memo_ask(memo, "path", at, NULL, 0);
  if (entry == NULL || entry->known) return false;
  entry->known = true;
  uint32_t level = path->count++;
  for (uint32_t i = 0; i < at->eqn_count; i++)
    for (uint32_t k = 0; ax_eqn_program(&at->eqns[i], k) != NULL; k++) {
      path->step[level] = (struct ax_path_step){&at->eqns[i], at, 0};
      if (find(memo, ax_eqn_program(&at->eqns[i], k), wanted, path)) return true;
    }
  path->count = level;
  return false;
}

/* How many equations hold each program of the path: bodies that are called more than once are one program. */
static void count_holders(ax_memo *memo, const ax_program *at, ax_path *path) {
  ax_memo_entry *entry = ax_memo_ask(memo, "holders", at, NULL, 0);
  if (entry == NULL || entry->known) return;
  entry->known = true;
  for (uint32_t i = 0; i < at->eqn_count; i++)
    for (uint32_t k = 0; ax_eqn_program(&at->eqns[i], k) != NULL; k++) {
      const ax_program *held = ax_eqn_program(&at->eqns[i], k);
      for (uint32_t level = 1; level < path->count; level++) path->step[level].holders += path->step[level].program == held;
      count_holders(memo, held, path);
    }
}

void ax_path_find(const ax_program *whole, const ax_program *program, const ax_eqn *eqn, ax_path *out) {
  ax_memo memo = {0};
  out->count = 0;
  if (!find(&memo, whole, program, out)) out->count = 0;
  out->step[out->count++] = (struct ax_path_step){eqn, program, 0};
  if (out->count > 1) count_holders(&memo, whole, out);
  ax_memo_deinit(&memo);
}

/* "branch 1 of cond": which of the equation's programs */
static void add_body(ax_text *text, const ax_eqn *eqn, const ax_program *program) {
  for (uint32_t i = 0; i < eqn->prim->param_count; i++) {
    const ax_param *param = &eqn->prim->params[i];
    const ax_programs *programs = param->kind == AX_PARAM_PROGRAMS ? ax_param_at(eqn, param) : NULL;
    for (uint32_t k = 0; programs != NULL && k < programs->count; k++)
      if (programs->v[k] == program) {
        ax_text_add(text, "branch %u of %s", k, eqn->prim->name);
        return;
      }
    if (param->kind != AX_PARAM_PROGRAM || *(ax_program *const *)ax_param_at(eqn, param) != program) continue;
    ax_text_add(text, "%s of %s", param->name, eqn->prim->name);
    return;
  }
  ax_text_add(text, "%s", eqn->prim->name);
}

bool ax_source_text(ax_text *text, const char *lead, const ax_eqn *eqn) {
  if (eqn->line > 0) ax_text_add(text, "%sline %u", lead, eqn->line), lead = ", ";
  if (eqn->location != NULL) ax_text_add(text, "%s%s", lead, eqn->location);
  return eqn->line > 0 || eqn->location != NULL;
}

void ax_path_text(ax_text *text, const ax_path *path) {
  const char *lead = " (";
  const ax_eqn *last = path->step[path->count - 1].eqn;
  for (uint32_t i = path->count; i-- > 0;) {
    uint32_t number = path->step[i].eqn->number;
    if (number > 0) ax_text_add(text, "%sequation %u%s", lead, number - 1, i > 0 ? " of " : "");
    else if (i > 0) ax_text_add(text, "%sin ", lead);
    if (number > 0 || i > 0) lead = ", ";
    if (i == 0) continue;
    add_body(text, path->step[i - 1].eqn, path->step[i].program);
    if (path->step[i].holders < 2) continue;
    ax_text_add(text, ", one of %u that hold it", path->step[i].holders); /* which, is not known */
    break;
  }
  if (ax_source_text(text, lead, last)) lead = ", ";
  if (lead[0] == ',') ax_text_add(text, ")");
}

void ax_origin_text(ax_text *text, const ax_eqn *eqn) {
  ax_text_add(text, "%s", eqn->prim->name);
  (void)ax_source_text(text, ", ", eqn);
}
