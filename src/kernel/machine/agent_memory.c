/* Acts of cores on memory. */
#include "kernel/machine/agent.h"
#include "kernel/step.h"

/* --- Of all agents --- */

bool ax_about_usable(ax_about *a, const ax_view *view, const char *whose) {
  if (view->region < a->state->place_count && ax_about_place_of(a, view)->alive) return true;
  char text[160];
  (void)ax_state_fault(a->state, a->fault, AX_FINDING_AFTER_SCOPE, view->region, "%s uses %s%s after its scope",
                       a->step != NULL ? ax_step_text(a->step, text, sizeof text) : "a copy", whose,
                       ax_type_string(&view->type, NULL));
  return false;
}

ax_status ax_about_touch(ax_about *a, const ax_view *view, const unsigned char *mask, bool write) {
  ax_view whole = *view;
  whole.region = view->region;
  uint32_t before = a->state->pool.touch_count;
  AX_TRY(ax_view_touch(&a->state->pool, &whole, mask, write));
  a->act.touch_count += a->state->pool.touch_count - before;
  return AX_OK;
}

ax_status ax_about_check_set(ax_about *a, const ax_view *view, const unsigned char *mask) {
  ax_bytes where;
  char text[160];
  if (!a->state->machine->strict || !ax_view_unset(view, ax_about_place_of(a, view)->memory, mask, &where)) return AX_OK;
  AX_TRY(ax_state_fault(a->state, a->fault, AX_FINDING_UNSET_READ, view->region, "%s reads what nobody has written",
                        ax_step_text(a->step, text, sizeof text)));
  a->fault->bytes = where;
  return AX_OK;
}

/* --- Accesses --- */

/* The mask operand's bytes, or NULL. */
static const unsigned char *mask_of(const ax_about *a, const ax_step_access *access) {
  return ax_step_is_masked(a->step->eqn) ? ax_about_cell(a, access->mask)->tensor->data : NULL;
}

ax_status ax_about_memory(ax_about *a) {
  const ax_step_access *access = ax_step_access_of(a->step->eqn);
  const unsigned char *mask = mask_of(a, access);
  if (!ax_about_usable(a, ax_about_view(a, 0), "")) return AX_OK;
  if (access->reads) AX_TRY(ax_about_check_set(a, ax_about_view(a, 0), mask));
  if (a->step->sum.part && a->state->machine->strict) return ax_about_sum(a);
  return ax_about_touch(a, ax_about_view(a, 0), mask, access->writes);
}

/* Reads the view into a new cell; elements where the mask is false are those of `other` (an operand, or NULL). */
static ax_status read_cell(ax_about *a, const unsigned char *mask, const ax_tensor *other, ax_cell **out) {
  ax_type type =
      ax_array_type(ax_about_view(a, 0)->type.dtype, AX_LIST(ax_about_view(a, 0)->type.rank, ax_about_view(a, 0)->type.dims));
  AX_TRY(ax_cell_tensor(&type, out));
  if (other != NULL) ax_tensor_assign((*out)->tensor, other);
  ax_view_read(ax_about_view(a, 0), ax_about_place_of(a, ax_about_view(a, 0))->memory, mask, (*out)->tensor->data, NULL);
  return AX_OK;
}

static ax_status write_terms(ax_about *a, const unsigned char *mask, ax_bank *memory) {
  const ax_cell *term = ax_about_term(a);
  if (term == NULL)
    return ax_terms_write(ax_about_view(a, 0), memory, mask, ax_about_cell(a, ax_step_access_of(a->step->eqn)->value)->terms);
  ax_term *terms;
  AX_TRY(ax_terms_add(ax_about_view(a, 0), memory, term, &terms));
  const ax_status status = ax_terms_write(ax_about_view(a, 0), memory, mask, terms);
  ax_free(terms);
  return status;
}

static ax_status write_tensor(ax_about *a, const unsigned char *mask, const ax_tensor *value) {
  ax_state_place *place = &a->state->places[ax_about_view(a, 0)->region];
  AX_TRY(ax_bank_own(&place->memory));
  if (a->state->weighs) AX_TRY(write_terms(a, mask, place->memory));
  ax_view_write(ax_about_view(a, 0), place->memory, mask, value->data, NULL);
  return AX_OK;
}

/* Stores what `combine` makes of the elements that were there and the value. */
static ax_status combine(ax_about *a, const ax_step_access *access, const unsigned char *mask, ax_cell *was) {
  static const ax_mesh nowhere;
  ax_cell *made;
  ax_type type = ax_array_type(was->tensor->dtype, AX_LIST(was->tensor->rank, was->tensor->dims));
  AX_TRY(ax_cell_tensor(&type, &made));
  ax_eqn eqn = *a->step->eqn;
  eqn.prim = access->combine;
  eqn.params = NULL;
  eqn.in_count = 2; /* without a mask */
  ax_tensor *in[] = {was->tensor, ax_about_cell(a, access->value)->tensor};
  const int64_t device = 0;
  const ax_eval_args args = {.eqn = &eqn, .axes = &nowhere, .lanes = 1, .device = &device, .in = in, .out = &made->tensor};
  ax_status status = access->combine->eval(&args);
  if (status == AX_OK) status = write_tensor(a, mask, made->tensor);
  ax_cell_release(made);
  return status;
}

ax_status ax_do_memory(ax_about *a) {
  const ax_step_access *access = ax_step_access_of(a->step->eqn);
  const unsigned char *mask = mask_of(a, access);
  const ax_tensor *other = mask != NULL && access->other != 0 ? ax_about_cell(a, access->other)->tensor : NULL;
  ax_cell *was = NULL;
  ax_status status = AX_OK;
  if (access->writes) AX_TRY(ax_about_stored(a));
  if (access->reads) AX_TRY(read_cell(a, mask, other, &was));
  if (access->reads && mask == NULL && a->state->weighs)
    status = ax_terms_read(ax_about_view(a, 0), ax_about_place_of(a, ax_about_view(a, 0))->memory, &was->terms);
  if (status != AX_OK) {
    ax_cell_release(was);
    return status;
  }
  if (access->combine != NULL) status = combine(a, access, mask, was);
  else if (access->writes) status = write_tensor(a, mask, ax_about_cell(a, access->value)->tensor);
  if (status != AX_OK || a->step->out_count == 0) {
    ax_cell_release(was);
    return status;
  }
  ax_cell **out = &a->actor->frame.slot[a->step->out[0]];
  ax_cell_release(*out);
  *out = was;
  return AX_OK;
}
