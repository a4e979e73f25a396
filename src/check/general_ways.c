/* Acts of a branch that depends on inputs, but for loads and stores: copies that the branch starts and waits for itself, and scopes.

       AX_IF (page < pages) { copy page to buffer; wait; load buffer }

   The general run has each such copy as an agent of its own, on each way, and does the whole of it where it is started: it reads, writes,
   and signals. Its semaphore has to serve copies in branches of this core alone. all_inputs.c says why that is enough. Scopes have memory
   and semaphores of their own each time. What the recorded run has of the branch is left out. */
#include <string.h>

#include "check/general.h"
#include "kernel/machine/agent.h"
#include "kernel/step.h"
#include "prim/prims.h"

static ax_abstract *operand_of(const ax_general *g, uint32_t core, const ax_core_code_step *step, uint32_t k) {
  return g->cores[core].slot[step->in[k]];
}

static ax_status add_act(ax_general *g, uint32_t agent, ax_act act, const ax_core_code_step *step) {
  act.location = step->location;
  act.span = step->span;
  AX_TRY(ax_wide_act(&g->wide, agent, &act));
  g->wide.steps[g->wide.step_count - 1].way = true;
  if (agent < g->machine->core_count) g->cores[agent].acts++;
  return AX_OK;
}

/* --- Semaphores of branches --- */

/* The semaphore that a view is of, which no core but this one may use in branches. */
static ax_status find_object(ax_general *g, uint32_t core, const ax_core_code_step *step, const ax_abstract *view, uint32_t *out) {
  if (view == NULL || view->shift_count > 0 || view->nowhere)
    return ax_general_refuse(step, "which semaphore it is of depends on inputs");
  const ax_general_region *r = view->view.region < g->region_count ? &g->regions[view->view.region] : NULL;
  const ax_name_key key = {.kind = AX_NAME_OBJECT, .core = view->view.region, .index = (uint32_t)view->view.offset};
  if (r != NULL && r->object_behind != 0)
    *out = r->object_behind - 1 + (uint32_t)view->view.offset;
  else if (!ax_names_find(g->machine->names, &key, out))
    return ax_general_refuse(step, "its semaphore is not there");
  const uint32_t known = g->way_object_count;
  if (known <= *out) {
    AX_TRY(ax_grow(&g->way_objects, sizeof g->way_objects[0], known, *out + 1 - known, &g->way_object_capacity));
    memset(g->way_objects + known, 0xff, (*out + 1 - known) * sizeof g->way_objects[0]);
    g->way_object_count = *out + 1;
  }
  uint32_t *user = &g->way_objects[*out];
  if (*user != AX_NONE && *user != core) return ax_general_refuse(step, "its semaphore serves branches of several cores");
  *user = core;
  return AX_OK;
}

/* What the present ways have started, and not waited for. */
static ax_status change_open(ax_general *g, const ax_core_code_step *step, uint32_t object, int64_t bytes) {
  uint32_t k = g->open_first; /* what is open around this way may not be waited for on it */
  while (k < g->open_count && g->open[k].object != object) k++;
  if (k == AX_MOST_OPEN) return ax_general_refuse(step, "its branch has too many semaphores");
  if (k == g->open_count) g->open[g->open_count++] = (ax_general_open){.object = object};
  g->open[k].bytes += bytes;
  return g->open[k].bytes >= 0 ? AX_OK : ax_general_refuse(step, "it waits for what its branch has not started");
}

bool ax_general_is_closed(const ax_general *g) {
  for (uint32_t k = g->open_first; k < g->open_count; k++)
    if (g->open[k].bytes != 0) return false;
  return true;
}

/* The semaphores of branches serve nothing else. */
ax_status ax_general_check_objects(const ax_general *g) {
  for (uint32_t s = 0; s < g->wide.step_count; s++) {
    const ax_wide_step *step = &g->wide.steps[s];
    const ax_act *act = &step->act;
    if (step->way || (act->kind != AX_ACT_SIGNAL && act->kind != AX_ACT_WAIT && act->kind != AX_ACT_READ)) continue;
    if (act->object < g->way_object_count && g->way_objects[act->object] != AX_NONE)
      return ax_error(AX_ABSENT, "%s, which branches on inputs use, is used elsewhere too",
                      g->run->objects.semaphores[act->object].name);
  }
  return AX_OK;
}

/* --- Copies --- */

static ax_status check_copy(const ax_general *g, uint32_t core, const ax_core_code_step *step) {
  const ax_copy_params *params = step->eqn->params;
  if (!params->received || params->sent || params->barrier || params->grouped || params->predicate ||
      ax_core_operands(&params->to) > 0)
    return ax_general_refuse(step, "whether it comes depends on inputs");
  for (uint32_t k = 0; k < 2; k++) {
    const ax_abstract *view = operand_of(g, core, step, k);
    if (view == NULL || view->view.region >= g->region_count || !g->regions[view->view.region].there)
      return ax_general_refuse(step, "its memory is not there on this way");
  }
  return AX_OK;
}

static ax_status copy(ax_general *g, uint32_t core, const ax_core_code_step *step) {
  const ax_act_agent agent = {.name = "a copy of a branch", .device = g->machine->cores[core].device};
  uint32_t object;
  AX_TRY(check_copy(g, core, step));
  ax_general_copy c = {.step = step, .from = operand_of(g, core, step, 0), .to = operand_of(g, core, step, 1)};
  const int64_t bytes = ax_view_bytes(&c.from->view);
  AX_TRY(find_object(g, core, step, operand_of(g, core, step, 2), &object));
  AX_TRY(ax_general_check_committed(g, core, step, c.from));
  AX_TRY(ax_wide_add_agent(&g->wide, &agent));
  const uint32_t number = g->run->objects.agent_count + g->wide.agent_count - 1;
  AX_TRY(add_act(g, core, (ax_act){.kind = AX_ACT_START, .object = number, .what = "copy_start"}, step));
  AX_TRY(add_act(g, number, (ax_act){.kind = AX_ACT_LOCAL, .what = "copy reads"}, step));
  ax_status status = bytes > 0 ? ax_general_copy_reads(g, &c) : AX_OK;
  if (status == AX_OK) status = add_act(g, number, (ax_act){.kind = AX_ACT_LOCAL, .what = "copy writes"}, step);
  if (status == AX_OK && bytes > 0) status = ax_general_copy_writes(g, &c, c.to->view.region);
  ax_abstract_release(c.data);
  AX_TRY(status);
  AX_TRY(add_act(g, number, (ax_act){.kind = AX_ACT_SIGNAL, .object = object, .amount = bytes, .what = "copy signals"}, step));
  return change_open(g, step, object, bytes);
}

static ax_status wait(ax_general *g, uint32_t core, const ax_core_code_step *step) {
  const ax_abstract *view = operand_of(g, core, step, 1);
  uint32_t object;
  if (view == NULL) return ax_general_refuse(step, "which memory it is of depends on inputs");
  AX_TRY(find_object(g, core, step, operand_of(g, core, step, 0), &object));
  const int64_t bytes = ax_view_bytes(&view->view);
  AX_TRY(change_open(g, step, object, -bytes));
  return add_act(g, core, (ax_act){.kind = AX_ACT_WAIT, .object = object, .amount = bytes, .what = "copy_wait"}, step);
}

/* --- Scopes --- */

/* Memory, or semaphores, that only this time of this way has. */
static ax_status make_scratch(ax_general *g, uint32_t core, const ax_type *type, ax_abstract **out) {
  const uint32_t device = g->machine->cores[core].device;
  const ax_act_region region = {.name = "scratch of a branch",
                                .device = device,
                                .bytes = (uint64_t)ax_type_elems(type) * (type->form == AX_REF ? ax_dtype_bytes(type->dtype) : 1)};
  AX_TRY(ax_wide_add_region(&g->wide, &region));
  const uint32_t number = g->run->objects.region_count + g->wide.region_count - 1;
  AX_TRY(ax_general_make_region(g, number, type, false));
  if (type->form != AX_REF) g->regions[number].object_behind = g->run->objects.semaphore_count + g->wide.semaphore_count + 1;
  for (int64_t i = 0; i < ax_type_elems(type) && type->form != AX_REF; i++) AX_TRY(ax_wide_add_semaphore(&g->wide, device));
  const ax_view whole = ax_dense_view(number, type);
  return ax_abstract_view(&whole, out);
}

/* The memory begins, or ends. */
static ax_status touch_scope(ax_general *g, uint32_t number) {
  ax_touches pool = {0};
  ax_status status =
      g->regions[number].bytes > 0 ? ax_touches_add(&pool, number, true, true, 1, &(ax_bytes){0, g->regions[number].bytes}) : AX_OK;
  if (status == AX_OK && pool.touch_count > 0) status = ax_wide_same(&g->wide, &pool, &pool.touches[0]);
  ax_touches_deinit(&pool);
  return status;
}

static ax_status open_scope(ax_general *g, uint32_t core, const ax_core_code_step *step) {
  const ax_run_scoped_params *params = step->eqn->params;
  if (params->along.count > 0) return ax_general_refuse(step, "whether it comes depends on inputs");
  AX_TRY(add_act(g, core, (ax_act){.kind = AX_ACT_LOCAL, .what = "run_scoped"}, step));
  for (uint32_t k = 0; k < params->scratch.count; k++) {
    ax_abstract **slot = &g->cores[core].slot[step->out[k]], *view;
    AX_TRY(make_scratch(g, core, &params->scratch.v[k], &view));
    ax_abstract_release(*slot);
    *slot = view;
    AX_TRY(touch_scope(g, view->view.region));
  }
  return AX_OK;
}

/* The memory is the region's that it was opened as: no other copy of the scope is in its slots. */
static ax_status close_scope(ax_general *g, uint32_t core, const ax_core_code_step *step) {
  AX_TRY(add_act(g, core, (ax_act){.kind = AX_ACT_LOCAL, .what = "run_scoped"}, step));
  for (uint32_t k = 0; k < step->in_count; k++) {
    const ax_abstract *view = operand_of(g, core, step, k);
    AX_TRY(touch_scope(g, view->view.region));
    ax_general_forget_region(&g->regions[view->view.region]);
  }
  return AX_OK;
}

ax_status ax_general_way_act(ax_general *g, uint32_t core, const ax_core_code_step *step) {
  if (step->kind == AX_STEP_OPEN) return open_scope(g, core, step);
  if (step->kind == AX_STEP_CLOSE) return close_scope(g, core, step);
  if (step->kind == AX_STEP_ACT && ax_step_copies(step->eqn)) return copy(g, core, step);
  if (step->kind == AX_STEP_ACT && step->eqn->prim == &ax_prim_copy_wait) return wait(g, core, step);
  return ax_general_refuse(step, "whether it comes depends on inputs");
}
