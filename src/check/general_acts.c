/* Acts of cores and copies in the general run, and its beginning. */
#include <stdio.h>
#include <string.h>

#include "check/general.h"
#include "ir/number.h"
#include "kernel/machine/agent.h"
#include "kernel/step.h"

typedef struct acting {
  ax_general *g;
  uint32_t number;
  ax_general_core *core;
  const ax_core_code_step *step;
} acting;

static ax_abstract *operand_of(const acting *a, uint32_t k) { return a->core->slot[a->step->in[k]]; }
static const ax_act_step *step_of(const ax_general *g) { return &g->run->steps[g->step]; }

/* The act as the run has it; of a branch on inputs the run may not have it. */
static ax_status begin_act(acting *a) {
  const char *name = a->step->eqn->prim->name;
  ax_act act = {.kind = AX_ACT_LOCAL,
                .what = strncmp(name, "ref_", 4) == 0 ? name + 4 : name,
                .location = a->step->location,
                .span = a->step->span};
  a->core->acts++;
  return ax_wide_act(&a->g->wide, a->number, a->g->may == 0 ? &step_of(a->g)->act : &act);
}

static ax_status same_touches(ax_general *g) {
  const ax_act *act = &step_of(g)->act;
  for (uint32_t t = act->touch_first; t < act->touch_first + act->touch_count; t++)
    AX_TRY(ax_wide_same(&g->wide, &g->run->touches, &g->run->touches.touches[t]));
  return AX_OK;
}

/* --- Bytes that are read and written, for all inputs --- */

/* A copy has written the view; set: bytes that were written. */
static ax_status note_copied(ax_general *g, const ax_abstract *view, bool set) {
  ax_bytes *runs;
  uint32_t count;
  if (set && (g->regions[view->view.region].set == NULL || view->shift_count > 0 || g->may > 0)) return AX_OK;
  AX_TRY(ax_wide_bytes(view, &runs, &count));
  const ax_status status = ax_general_put_set(g, view->view.region, runs, count, set);
  ax_free(runs);
  return status;
}

static ax_status all_written(ax_general *g, const ax_abstract *view, bool *out) {
  ax_bytes *runs;
  uint32_t count;
  *out = true;
  if (g->regions[view->view.region].set == NULL) return AX_OK;
  AX_TRY(ax_wide_bytes(view, &runs, &count));
  *out = ax_general_is_set(g, view->view.region, runs, count);
  ax_free(runs);
  return AX_OK;
}

/* Stores that no commit has made visible to copies (machine/commits.c). step NULL: they are written over by a copy. */
static ax_status put_stored(acting *a, const ax_abstract *view, const ax_core_code_step *step) {
  ax_touches pool = {0};
  ax_bytes *runs;
  uint32_t count;
  AX_TRY(ax_wide_bytes(view, &runs, &count));
  ax_status status = count > 0 ? ax_touches_add(&pool, view->view.region, true, false, count, runs) : AX_OK;
  if (status == AX_OK && count > 0) status = ax_stored_put(&a->core->stored, &pool, &pool.touches[0], step);
  ax_touches_deinit(&pool);
  ax_free(runs);
  return status;
}

static bool is_near(const ax_abstract *view) {
  return view->view.type.space == AX_SPACE_VMEM || view->view.type.space == AX_SPACE_SMEM;
}

ax_status ax_general_check_committed(ax_general *g, uint32_t core, const ax_core_code_step *step, const ax_abstract *view) {
  const ax_machine *machine = g->machine;
  const ax_stored *stores = &g->cores[core].stored;
  const bool grouped = ((const ax_copy_params *)step->eqn->params)->grouped;
  ax_bytes *runs;
  uint32_t count;
  bool meets = false;
  if (machine->commits == AX_COMMITS_NONE || !is_near(view) || (machine->commits == AX_COMMITS_GROUPED && !grouped)) return AX_OK;
  AX_TRY(ax_wide_bytes(view, &runs, &count));
  for (uint32_t i = 0; i < stores->count; i++) {
    const ax_stored_run *stored = &stores->runs[i];
    for (uint32_t k = 0; k < count && stored->region == view->view.region; k++)
      meets = meets || (runs[k].begin < stored->bytes.end && stored->bytes.begin < runs[k].end);
  }
  ax_free(runs);
  return meets ? ax_general_refuse(step, "for some inputs it reads stores that no ax_commit_smem has made visible") : AX_OK;
}

/* --- Accesses --- */

/* Of an access: what is known of it. */
typedef struct reach {
  ax_abstract *view;
  bool masked;
  bool same;  /* the run's touches are those for all inputs */
  bool whole; /* it comes for all inputs, to all elements of the view */
} reach;

/* A mask that is not known may leave anything out. */
static ax_status reach_of(const acting *a, const ax_step_access *access, reach *out) {
  ax_abstract *view = operand_of(a, 0);
  *out = (reach){.view = view, .masked = ax_step_is_masked(a->step->eqn)};
  if (view == NULL) return ax_general_refuse(a->step, "which memory it is of depends on inputs");
  if (view->view.region >= a->g->region_count || !a->g->regions[view->view.region].there)
    return ax_general_refuse(a->step, "its memory is not there on this way");
  const ax_abstract *mask = out->masked ? operand_of(a, access->mask) : NULL;
  const bool known = !out->masked || (mask != NULL && mask->tensor != NULL);
  out->same = a->g->may == 0 && view->shift_count == 0 && !view->nowhere && known;
  out->whole = out->same && !out->masked;
  return AX_OK;
}

static ax_status touch_access(acting *a, const reach *r, const ax_step_access *access) {
  if (r->same) return same_touches(a->g);
  a->g->wide.steps[a->g->wide.step_count - 1].label.may = true;
  if (access->combine != NULL) AX_TRY(ax_wide_view(&a->g->wide, r->view, false)); /* a read, and a write */
  return ax_wide_view(&a->g->wide, r->view, access->writes);
}

static ax_status check_written(acting *a, const reach *r) {
  const ax_touches *pool = &a->g->run->touches;
  const ax_act *act = &step_of(a->g)->act;
  bool written = true;
  if (!r->same) AX_TRY(all_written(a->g, r->view, &written));
  for (uint32_t t = act->touch_first; t < act->touch_first + act->touch_count && r->same; t++)
    written = written && ax_general_is_set(a->g, r->view->view.region, pool->runs + pool->touches[t].first, pool->touches[t].count);
  return written ? AX_OK : ax_general_refuse(a->step, "for some inputs it reads what nobody has written");
}

static ax_status note_access(acting *a, const reach *r) {
  const ax_touches *pool = &a->g->run->touches;
  const ax_act *act = &step_of(a->g)->act;
  if (a->g->machine->commits != AX_COMMITS_NONE && is_near(r->view)) AX_TRY(put_stored(a, r->view, a->step));
  for (uint32_t t = act->touch_first; t < act->touch_first + act->touch_count && r->same; t++)
    if (pool->touches[t].write)
      AX_TRY(ax_general_put_set(a->g, r->view->view.region, pool->runs + pool->touches[t].first, pool->touches[t].count, true));
  return AX_OK;
}

/* What a load gives. Where there is a mask, other elements may be there. */
static ax_status load_access(acting *a, const reach *r) {
  const ax_type *type = &ax_general_code(a->g, a->number)->types[a->step->out[0]];
  ax_abstract *was;
  if (r->masked || r->view->nowhere)
    AX_TRY(ax_abstract_range((uint64_t)ax_type_elems(type), ax_interval_of_dtype(type->dtype), &was));
  else
    AX_TRY(ax_general_load(a->g, r->view, &was));
  ax_abstract_release(a->core->slot[a->step->out[0]]);
  a->core->slot[a->step->out[0]] = was;
  return AX_OK;
}

static ax_status store_access(acting *a, const reach *r, const ax_step_access *access) {
  ax_abstract *value = operand_of(a, access->value), *sum;
  if (value == NULL) return ax_general_refuse(a->step, "its value is of one branch alone");
  if (r->view->nowhere) return AX_OK;
  if (access->combine == NULL) return ax_general_store(a->g, r->view, value, !r->whole);
  const ax_interval any = ax_interval_of_dtype(a->g->regions[r->view->view.region].type.dtype);
  AX_TRY(ax_abstract_range((uint64_t)ax_type_elems(&r->view->view.type), any, &sum));
  const ax_status status = ax_general_store(a->g, r->view, sum, !r->whole);
  ax_abstract_release(sum);
  return status;
}

ax_status ax_general_access(ax_general *g, uint32_t core, const ax_core_code_step *step) {
  acting a = {g, core, &g->cores[core], step};
  const ax_step_access *access = ax_step_access_of(step->eqn);
  reach r;
  AX_TRY(reach_of(&a, access, &r));
  AX_TRY(begin_act(&a));
  AX_TRY(touch_access(&a, &r, access));
  if (access->reads) AX_TRY(check_written(&a, &r));
  if (step->out_count > 0) AX_TRY(load_access(&a, &r));
  if (!access->writes) return AX_OK;
  AX_TRY(store_access(&a, &r, access));
  return note_access(&a, &r);
}

/* --- Other acts: none of their numbers may depend on inputs --- */

static ax_status check_operands(const acting *a) {
  for (uint32_t k = 0; k < a->step->in_count; k++) {
    const ax_abstract *value = operand_of(a, k);
    const ax_type *type = &ax_general_code(a->g, a->number)->types[a->step->in[k]];
    if (value == NULL) return ax_general_refuse(a->step, "which memory it is of depends on inputs");
    if (type->form == AX_ARRAY && value->tensor == NULL)
      return ax_general_refuse(a->step, "its amount, device or predicate depends on inputs");
    if (type->form != AX_ARRAY && type->form != AX_REF && (value->shift_count > 0 || value->nowhere))
      return ax_general_refuse(a->step, "which semaphore or barrier it is of depends on inputs");
  }
  return AX_OK;
}

static ax_status start_copy(acting *a) {
  const ax_act *act = &step_of(a->g)->act;
  AX_TRY(ax_general_check_committed(a->g, a->number, a->step, operand_of(a, 0)));
  ax_general_copy *copy = &a->g->copies[act->object];
  *copy =
      (ax_general_copy){.step = a->step, .from = ax_abstract_retain(operand_of(a, 0)), .to = ax_abstract_retain(operand_of(a, 1))};
  const bool exact = copy->to->shift_count == 0 && !copy->to->nowhere &&
                     ax_core_operands(&((const ax_copy_params *)a->step->eqn->params)->to) == 0;
  return exact && a->core->stored.count > 0 ? put_stored(a, copy->to, NULL) : AX_OK;
}

static ax_status scope_place(const acting *a, uint32_t opened, uint32_t k, uint32_t *out) {
  const ax_run_scoped_params *params = a->step->eqn->params;
  int64_t users;
  const ax_name_key key = {.kind = AX_NAME_PLACE,
                           .core = ax_machine_leader(a->g->machine, a->number, &params->along, &users),
                           .site = opened,
                           .occurrence = a->core->occurrence[opened],
                           .index = k};
  if (!ax_names_find(a->g->machine->names, &key, out)) return ax_error(AX_INTERNAL, "the run has no such scope");
  *out += a->g->machine->place_count;
  return AX_OK;
}

/* The first of several cores makes the memory of a scope; it is forgotten when the next time has another number. */
static ax_status open_scope(acting *a) {
  const ax_run_scoped_params *params = a->step->eqn->params;
  for (uint32_t k = 0; k < params->scratch.count; k++) {
    uint32_t place;
    ax_abstract *view;
    AX_TRY(scope_place(a, a->core->pc, k, &place));
    if (place >= a->g->region_count || !a->g->regions[place].there)
      AX_TRY(ax_general_make_region(a->g, place, &params->scratch.v[k], false));
    const ax_view whole = ax_dense_view(place, &params->scratch.v[k]);
    AX_TRY(ax_abstract_view(&whole, &view));
    ax_abstract_release(a->core->slot[a->step->out[k]]);
    a->core->slot[a->step->out[k]] = view;
  }
  return AX_OK;
}

/* Several cores may be in it still, and come to its end later. */
static ax_status close_scope(acting *a) {
  const ax_run_scoped_params *params = a->step->eqn->params;
  for (uint32_t k = 0; k < params->scratch.count && params->along.count == 0; k++) {
    uint32_t place;
    AX_TRY(scope_place(a, a->step->target, k, &place));
    ax_general_forget_region(&a->g->regions[place]);
  }
  a->core->occurrence[a->step->target]++;
  return AX_OK;
}

ax_status ax_general_meet(ax_general *g, uint32_t core, const ax_core_code_step *step) {
  acting a = {g, core, &g->cores[core], step};
  const ax_act *act = &step_of(g)->act;
  if (step->kind == AX_STEP_ACT) AX_TRY(check_operands(&a));
  if (step->kind == AX_STEP_ACT && step->eqn->prim->step->reads_count) return ax_general_refuse(step, "a count is read");
  AX_TRY(begin_act(&a));
  AX_TRY(same_touches(g));
  if (step->kind == AX_STEP_OPEN) return open_scope(&a);
  if (step->kind == AX_STEP_CLOSE) return close_scope(&a);
  if (act->kind == AX_ACT_START && ax_step_copies(step->eqn)) return start_copy(&a);
  return AX_OK;
}

/* --- Copies --- */

/* The view that a copy reads or writes now. Its region, which may be another device's, does not depend on inputs: it is the run's. */
static ax_status copy_touches(ax_general *g, const ax_general_copy *c, const ax_abstract *view, bool write) {
  if (view->view.region >= g->region_count || !g->regions[view->view.region].there)
    return ax_general_refuse(c->step, "its memory is not there");
  if (g->may == 0 && view->shift_count == 0 && !view->nowhere) return same_touches(g);
  g->wide.steps[g->wide.step_count - 1].label.may = true;
  return ax_wide_view(&g->wide, view, write);
}

ax_status ax_general_copy_reads(ax_general *g, ax_general_copy *c) {
  AX_TRY(copy_touches(g, c, c->from, false));
  AX_TRY(all_written(g, c->from, &c->all_set));
  if (ax_copy_leaves_unset(g->machine, c->step)) AX_TRY(note_copied(g, c->from, false));
  return ax_general_load(g, c->from, &c->data);
}

ax_status ax_general_copy_writes(ax_general *g, ax_general_copy *c, uint32_t region) {
  ax_abstract there = *c->to;
  there.view.region = region;
  AX_TRY(copy_touches(g, c, &there, true));
  AX_TRY(ax_general_store(g, &there, c->data, g->may > 0));
  return note_copied(g, &there, c->all_set);
}

ax_status ax_general_copy_acts(ax_general *g, uint32_t agent) {
  const ax_act *act = &step_of(g)->act;
  ax_general_copy *c = &g->copies[agent];
  AX_TRY(ax_wide_act(&g->wide, agent, act));
  if (act->kind != AX_ACT_LOCAL || c->step == NULL || act->touch_count == 0) return same_touches(g); /* a signal; or of nothing */
  const uint32_t region = g->run->touches.touches[act->touch_first].region;
  const bool reads = !c->has_read;
  c->has_read = true;
  if (reads) return ax_general_copy_reads(g, c);
  AX_TRY(ax_general_copy_writes(g, c, region));
  ax_abstract_release(c->from);
  ax_abstract_release(c->to);
  ax_abstract_release(c->data);
  *c = (ax_general_copy){.has_read = true};
  return AX_OK;
}

/* --- The beginning --- */

static ax_status make_place(ax_general *g, uint32_t number) {
  const ax_machine *machine = g->machine;
  const struct ax_ref_place *at = &machine->places[number];
  const uint32_t operands = machine->operand_count, outs = machine->params->outs.count, consts = (uint32_t)machine->params->consts;
  if (number >= machine->first_barrier) return AX_OK;
  if (at->ref >= operands + outs)
    return ax_general_make_region(g, number, &machine->params->scratch.v[at->ref - operands - outs], false);
  const bool is_operand = at->ref < operands;
  const ax_tensor *tensor = is_operand ? g->in[(size_t)(consts + at->ref) * machine->device_count + at->device] : NULL;
  ax_type type =
      is_operand ? ax_array_type(tensor->dtype, AX_LIST(tensor->rank, tensor->dims)) : machine->params->outs.v[at->ref - operands];
  type.form = AX_REF;
  type.space = AX_SPACE_HBM;
  AX_TRY(ax_general_make_region(g, number, &type, is_operand));
  if (!is_operand || !ax_is_counted(type.dtype)) return AX_OK;
  const ax_operand_fact *fact = &g->facts[consts + at->ref];
  g->regions[number].range = ax_interval_common(fact->range, ax_interval_of_dtype(type.dtype));
  g->regions[number].named = fact->decides;
  if (fact->fixed) g->regions[number].fixed = tensor;
  return AX_OK;
}

/* A captured value: known, or a symbol for each element, the same on all cores of a device. */
static ax_status make_constant(ax_general *g, uint32_t i, uint32_t device, ax_abstract **out) {
  const ax_tensor *tensor = g->in[(size_t)i * g->machine->device_count + device];
  const ax_operand_fact *fact = &g->facts[i];
  const uint64_t count = (uint64_t)ax_dims_elems(tensor->rank, tensor->dims);
  const ax_interval range = ax_interval_common(fact->range, ax_interval_of_dtype(tensor->dtype));
  if (fact->fixed) return ax_abstract_tensor(tensor, out);
  if (!fact->decides || !ax_is_counted(tensor->dtype) || count > AX_MOST_SYMBOLS) return ax_abstract_range(count, range, out);
  AX_TRY(ax_abstract_ids(g->symbols, count, out));
  for (uint64_t k = 0; k < count; k++) {
    const uint64_t key[] = {AX_SYMBOL_LOADED, (uint64_t)1 << 32 | device, i, k}; /* no region has such a number */
    AX_TRY(ax_symbols_named(g->symbols, tensor->dtype, range, AX_COUNT(key), key, &(*out)->ids[k]));
  }
  return AX_OK;
}

/* `first`: the core of the same device and body before it, whose constants it shares; NULL. */
static ax_status make_core(ax_general *g, uint32_t number, const ax_general_core *first) {
  const ax_machine *machine = g->machine;
  const ax_core_code *code = ax_general_code(g, number);
  const uint32_t consts = (uint32_t)machine->params->consts;
  ax_general_core *core = &g->cores[number];
  core->slot = ax_calloc(code->slot_count + 1, sizeof core->slot[0]);
  core->counter = ax_calloc(code->loop_count + 1, sizeof core->counter[0]);
  core->occurrence = ax_calloc(code->step_count + 1, sizeof core->occurrence[0]);
  if (core->slot == NULL || core->counter == NULL || core->occurrence == NULL) return ax_out_of_memory(0);
  for (uint32_t i = 0; i < consts; i++) {
    if (first != NULL)
      core->slot[i] = ax_abstract_retain(first->slot[i]);
    else
      AX_TRY(make_constant(g, i, machine->cores[number].device, &core->slot[i]));
  }
  for (uint32_t r = 0; r < machine->ref_count; r++) {
    const ax_view whole = ax_dense_view(ax_machine_place(machine, &machine->cores[number], r), &code->types[consts + r]);
    AX_TRY(ax_abstract_view(&whole, &core->slot[consts + r]));
  }
  for (uint32_t i = 0; i < code->constant_count; i++) {
    const ax_literal *literal = code->constants[i].literal;
    ax_tensor value = {.dtype = literal->type.dtype, .rank = literal->type.rank, .data = literal->data};
    memcpy(value.dims, literal->type.dims, sizeof value.dims);
    AX_TRY(ax_abstract_tensor(&value, &core->slot[code->constants[i].slot]));
  }
  return AX_OK;
}

ax_status ax_general_create(ax_general *g) {
  const ax_machine *machine = g->machine;
  AX_TRY(ax_symbols_create(&g->symbols));
  g->cores = ax_calloc(machine->core_count + 1, sizeof g->cores[0]);
  g->copies = ax_calloc(g->run->objects.agent_count + 1, sizeof g->copies[0]);
  g->dropped = ax_calloc(g->run->objects.agent_count + 1, sizeof g->dropped[0]);
  if (g->cores == NULL || g->copies == NULL || g->dropped == NULL) return ax_out_of_memory(0);
  for (uint32_t p = 0; p < machine->place_count; p++) AX_TRY(make_place(g, p));
  for (uint32_t c = 0; c < machine->core_count; c++) {
    const ax_core *core = &machine->cores[c];
    const bool like = c > 0 && core->device == core[-1].device && core->body == core[-1].body;
    AX_TRY(make_core(g, c, like ? &g->cores[c - 1] : NULL));
  }
  return AX_OK;
}

void ax_general_deinit(ax_general *g) {
  for (uint32_t c = 0; g->cores != NULL && c < g->machine->core_count; c++) {
    ax_general_core *core = &g->cores[c];
    for (uint32_t i = 0; core->slot != NULL && i < ax_general_code(g, c)->slot_count; i++) ax_abstract_release(core->slot[i]);
    ax_free(core->slot);
    ax_free(core->counter);
    ax_free(core->occurrence);
    ax_stored_deinit(&core->stored);
  }
  for (uint32_t a = 0; g->copies != NULL && a < g->run->objects.agent_count; a++) {
    ax_abstract_release(g->copies[a].from);
    ax_abstract_release(g->copies[a].to);
    ax_abstract_release(g->copies[a].data);
  }
  for (uint32_t p = 0; p < g->region_count; p++) ax_general_forget_region(&g->regions[p]);
  ax_free(g->dropped);
  ax_free(g->way_objects);
  ax_free(g->cores);
  ax_free(g->copies);
  ax_free(g->regions);
  ax_symbols_release(g->symbols);
  ax_wide_deinit(&g->wide);
}
