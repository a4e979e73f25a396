/* The equations of a kernel's body, discharged: stores become new values, and control flow carries the contents of the memory that
   its body writes.

     scan[consts: ref.., x..] carry.. xs..
       becomes
     scan carry.. (contents of refs that the body writes).. xs..,  with the others as constants

   Each step is done at once: a copy is complete when it is started, and a wait for it does nothing. This is one of the kernel's
   schedules where its steps are ordered, so that the results are the kernel's. */
#include "kernel/discharge.h"

#include <string.h>

#include "control/scan.h"
#include "ir/region_link.h"
#include "kernel/ranges.h"
#include "kernel/step.h"
#include "prim/prims.h"

typedef ax_discharge_value slot;

void ax_discharge_give(const ax_discharge_args *args, uint32_t k, ax_value value) {
  args->out[k] = (slot){.value = ax_discharge_spread(args->d, value)};
}

/* --- Views and memory --- */

static void view(const ax_discharge_args *a) {
  ax_value starts[AX_MAX_RANK];
  for (uint32_t i = 1; i < a->eqn->in_count; i++) starts[i - 1] = a->in[i].value;
  const ax_content_view *made = ax_content_of(a->d, a->in[0].view, a->eqn, &a->types[a->eqn->out], starts);
  a->out[0] = (slot){.view = made};
  const ax_step_view *how = ax_step_view_of(a->eqn);
  if (made == NULL || a->d->right == AX_NONE || how->there == NULL) return;
  if (ax_ranges_is_late(a->d->all, a->program, (uint32_t)(a->eqn - a->program->eqns))) ax_discharge_require(a->d, how->there(made));
}

/* Reads or writes memory. If the access has a mask, elements where the mask is false are not written, and a load gives the `other`
   operand's elements for them. */
static void access_memory(const ax_discharge_args *a, const ax_step_access *access) {
  const bool masked = ax_step_is_masked(a->eqn);
  const ax_content_view *ref = a->in[0].view;
  ax_value was = access->reads || masked ? ax_content_read(a->d, ref) : ax_poison;
  if (access->writes) {
    const ax_value value = ax_step_stored(access, was, a->in[access->value].value);
    ax_content_write(a->d, ref, masked ? ax_select_n(a->in[access->mask].value, was, value) : value);
  }
  if (a->eqn->out_count == 0) return;
  ax_discharge_give(a, 0, masked ? ax_select_n(a->in[access->mask].value, a->in[access->other].value, was) : was);
}

/* --- Where one is --- */

static uint32_t device_axes(const ax_discharge *d) { return d->axes->count; }

/* Row-major over the axes named, those of cores by what they are here. */
static void axis_index(const ax_discharge_args *a) {
  const ax_discharge *d = a->d;
  const ax_axes *names = a->eqn->params;
  ax_value index = ax_poison;
  for (uint32_t i = 0; i < names->count; i++) {
    uint32_t at = (uint32_t)ax_mesh_find(d->body_axes, names->name[i]);
    ax_axes one = {.count = 1};
    memcpy(one.name[0], names->name[i], AX_MAX_NAME);
    if (at >= device_axes(d) && d->cores == NULL) {
      ax_fail(ax_error(AX_ABSENT, "axis_index of \"%s\" in a function with rules of its own; take it outside", names->name[i]));
      return;
    }
    ax_value own = at < device_axes(d) ? ax_bind1(&ax_prim_axis_index, &one, NULL, 0) : d->cores[at - device_axes(d)];
    index = i == 0 ? own : ax_add(ax_mul(index, ax_integer(d->body_axes->axis[at].size)), own);
  }
  ax_discharge_give(a, 0, names->count > 0 ? index : ax_full_i64(AX_S32, AX_DIMS(), 0));
}

/* --- Regions with refs: bodies as functions, whose values around are captured --- */

typedef struct nest {
  ax_discharge *d;
  const ax_program *program;
  const slot *in;      /* by input: what it is, where it is a value around */
  const uint32_t *at;  /* by input: the function's operand that it is, contents counted; AX_NONE: a value around */
  const uint32_t *to;  /* by output: the function's result that it becomes */
  uint32_t given_at, result_at; /* where the contents begin among operands and results; AX_NONE: there are none */
  const ax_carried *carried;
} nest;

/* Restores the contents afterwards, for the equations that are traced next. */
static AX_BODY(call_nest) {
  const nest *n = context;
  ax_discharge *d = n->d;
  uint32_t carried = n->carried->count, outs = n->program->out_count, memories = d->memory_count;
  slot *operands = ax_trace_alloc((n->program->in_count + 1) * sizeof operands[0]);
  ax_value *results = ax_trace_alloc((outs + 1) * sizeof results[0]), *before = ax_trace_alloc((carried + 1) * sizeof before[0]);
  if (ax_failed()) return;
  for (uint32_t i = 0; i < n->program->in_count; i++) operands[i] = n->at[i] == AX_NONE ? n->in[i] : (slot){.value = in[n->at[i]]};
  for (uint32_t c = 0; c < carried; c++) {
    before[c] = d->content[n->carried->memory[c]];
    if (n->given_at != AX_NONE) d->content[n->carried->memory[c]] = in[n->given_at + c];
  }
  ax_discharge_program(d, n->program, operands, results);
  for (uint32_t k = 0; k < outs; k++) out[n->to[k]] = results[k];
  for (uint32_t c = 0; c < carried; c++) {
    if (n->result_at != AX_NONE) out[n->result_at + c] = d->content[n->carried->memory[c]];
    d->content[n->carried->memory[c]] = before[c];
  }
  d->memory_count = memories;
}

static void carry_in_order(ax_carried *carried, uint32_t memory) {
  uint32_t at = 0;
  while (at < carried->count && carried->memory[at] < memory) at++;
  if (at < carried->count && carried->memory[at] == memory) return;
  memmove(carried->memory + at + 1, carried->memory + at, (carried->count++ - at) * sizeof carried->memory[0]);
  carried->memory[at] = memory;
}

/* The memories that inputs of the program are of, and it writes; `in` are its inputs. False: the trace has failed. */
static bool add_written(ax_discharge *d, const ax_program *program, const slot *in, ax_carried *carried) {
  bool *written = ax_trace_alloc(program->in_count + 1);
  if (written == NULL) return false;
  ax_status status = ax_written_inputs(program, written);
  if (status != AX_OK) ax_fail(status);
  for (uint32_t i = 0; i < program->in_count && status == AX_OK; i++)
    if (written[i] && in[i].view != NULL && in[i].view->memory != AX_NONE) carry_in_order(carried, in[i].view->memory);
  if (status == AX_OK && ax_discharge_asks(d, program)) carry_in_order(carried, d->right);
  return !ax_failed() && d != NULL;
}

/* Room for all memories there are. */
static bool carried_init(const ax_discharge *d, ax_carried *carried) {
  *carried = (ax_carried){0, ax_trace_alloc((d->memory_count + 1) * sizeof carried->memory[0])};
  return carried->memory != NULL;
}

static void take_contents(const ax_discharge *d, const ax_carried *carried, ax_value *to) {
  for (uint32_t c = 0; c < carried->count; c++) to[c] = d->content[carried->memory[c]];
}

static void put_contents(ax_discharge *d, const ax_carried *carried, const ax_value *from) {
  for (uint32_t c = 0; c < carried->count; c++) d->content[carried->memory[c]] = ax_discharge_spread(d, from[c]);
}

/* Returns the values and views that the inputs of program k have before its first run. NULL: the trace has failed. */
static slot *inputs_of(const ax_discharge_args *a, uint32_t k) {
  const ax_program *held = ax_eqn_program(a->eqn, k);
  slot *inputs = ax_trace_alloc((held->in_count + 1) * sizeof inputs[0]);
  for (uint32_t i = 0; inputs != NULL && i < held->in_count; i++) {
    const uint32_t number = ax_region_link_in(a->eqn, k, i).number;
    if (number != AX_NONE) inputs[i] = a->in[number];
    else ax_fail(ax_error(AX_ABSENT, "%s makes values for a program it holds", a->eqn->prim->name));
  }
  return ax_failed() ? NULL : inputs;
}

/* How many carries the program has. They are the first results of the equation. */
static uint32_t count_carries(const ax_eqn *eqn, uint32_t k) {
  uint32_t carries = 0;
  for (uint32_t i = 0; i < ax_eqn_program(eqn, k)->in_count; i++) carries += ax_region_link_in(eqn, k, i).carry != AX_NONE;
  return carries;
}

/* Program k as a function: (carries.., contents.., slices..) -> (first results.., contents.., the others..), as far as it has them.
   False: the trace has failed. */
static bool nest_init(nest *n, const ax_discharge_args *a, uint32_t k, const slot *in, const ax_carried *carried, uint32_t first) {
  const ax_program *held = ax_eqn_program(a->eqn, k);
  const uint32_t carries = count_carries(a->eqn, k);
  uint32_t *at = ax_trace_alloc((held->in_count + 1) * sizeof at[0]), *to = ax_trace_alloc((held->out_count + 1) * sizeof to[0]);
  if (at == NULL || to == NULL) return false;
  uint32_t slices = 0;
  for (uint32_t i = 0; i < held->in_count; i++) {
    const ax_region_link link = ax_region_link_in(a->eqn, k, i);
    at[i] = link.carry != AX_NONE ? link.carry : link.how == AX_LINK_SLICE ? carries + carried->count + slices++ : AX_NONE;
  }
  for (uint32_t j = 0; j < held->out_count; j++) {
    const ax_region_link link = ax_region_link_out(a->eqn, k, j);
    to[j] = link.how == AX_LINK_OWN ? j : link.number < first ? link.number : link.number + carried->count;
  }
  *n = (nest){
      .d = a->d, .program = held, .in = in, .at = at, .to = to, .given_at = carries, .result_at = first, .carried = carried};
  return true;
}

/* The results of such a function, `first` of them before the contents. */
static void take_results(const ax_discharge_args *a, const ax_carried *carried, uint32_t first, const ax_value *made) {
  for (uint32_t k = 0; k < a->eqn->out_count && !ax_failed(); k++)
    ax_discharge_give(a, k, made[k < first ? k : k + carried->count]);
  if (!ax_failed()) put_contents(a->d, carried, made + first);
}

/* It only moves: numbers are computed, and copies started and awaited at views that they choose. */
static bool only_moves(const ax_program *program) {
  for (uint32_t e = 0; e < program->eqn_count; e++) {
    const ax_eqn *eqn = &program->eqns[e];
    const ax_step *step = eqn->prim->step;
    if (ax_eqn_program(eqn, 0) != NULL || (step != NULL && step->view == NULL && !step->moves)) return false;
    if (step == NULL && (eqn->prim->effects != 0 || eqn->out_count != 1 || program->types[eqn->out].rank > 0)) return false;
  }
  return program->out_count == 0;
}

/* Branches that only move are no branches: what they move is what is there already where they are not taken. A branch would hand on all of
   the memory that it changes a part of. False: there are others. */
static bool guarded(const ax_discharge_args *a, uint32_t branches) {
  const ax_value index = a->in[0].value, *outer = a->d->guard;
  for (uint32_t b = 0; b < branches; b++)
    if (!only_moves(ax_eqn_program(a->eqn, b))) return false;
  for (uint32_t b = 0; b < branches && !ax_failed(); b++) {
    const ax_value number = ax_integer(b);
    ax_value taken = b == 0 ? ax_le(index, number) : b + 1 == branches ? ax_ge(index, number) : ax_eq(index, number);
    if (outer != NULL) taken = ax_and(*outer, taken);
    a->d->guard = &taken;
    ax_discharge_body(a, ax_eqn_program(a->eqn, b), a->in + 1);
  }
  a->d->guard = outer;
  return true;
}

/* One of the programs, which the first operand chooses. */
static void branches(const ax_discharge_args *a) {
  const uint32_t branches = ax_region_link_programs(a->eqn), outs = a->eqn->out_count,
                 only = a->d->ranges != NULL ? ax_ranges_branch(a->d->ranges, a->program, a->eqn) : AX_NONE;
  if (only != AX_NONE) {
    ax_discharge_body(a, ax_eqn_program(a->eqn, only), a->in + 1);
    return;
  }
  if (a->d->right != AX_NONE && guarded(a, branches)) return;
  ax_carried carried;
  nest *nests = ax_trace_alloc(branches * sizeof nests[0]);
  ax_fn *functions = ax_trace_alloc(branches * sizeof functions[0]);
  slot **in = ax_trace_alloc(branches * sizeof in[0]);
  if (nests == NULL || functions == NULL || in == NULL || !carried_init(a->d, &carried)) return;
  for (uint32_t b = 0; b < branches; b++)
    if ((in[b] = inputs_of(a, b)) == NULL || !add_written(a->d, ax_eqn_program(a->eqn, b), in[b], &carried)) return;
  for (uint32_t b = 0; b < branches; b++) {
    if (!nest_init(&nests[b], a, b, in[b], &carried, outs)) return;
    nests[b].given_at = AX_NONE; /* values around, as all its inputs */
    functions[b] = AX_CLOSURE(call_nest, 0, outs + carried.count, &nests[b]);
  }
  ax_value *made = ax_trace_alloc((outs + carried.count + 1) * sizeof made[0]);
  if (made == NULL) return;
  ax_switch(a->in[0].value, AX_LIST(branches, functions), NULL, made);
  take_results(a, &carried, outs, made);
}

static void scan(const ax_discharge_args *a) {
  const ax_scan_params *params = a->eqn->params;
  ax_carried carried;
  nest n;
  slot *in = inputs_of(a, 0);
  if (in == NULL || !carried_init(a->d, &carried) || !add_written(a->d, params->body, in, &carried)) return;
  if (!nest_init(&n, a, 0, in, &carried, count_carries(a->eqn, 0))) return;
  const uint32_t carries = n.given_at, out_count = a->eqn->out_count + carried.count;
  uint32_t in_count = carried.count;
  for (uint32_t i = 0; i < params->body->in_count; i++) in_count += n.at[i] != AX_NONE;
  ax_value *all = ax_trace_alloc((in_count + 1) * sizeof all[0]), *made = ax_trace_alloc((out_count + 1) * sizeof made[0]);
  if (ax_failed()) return;
  for (uint32_t i = 0; i < params->body->in_count; i++)
    if (n.at[i] != AX_NONE) all[n.at[i]] = in[i].value;
  take_contents(a->d, &carried, all + carries);
  ax_scan(AX_CLOSURE(call_nest, in_count, out_count, &n), carries + carried.count, params->length, params->reverse, all, made);
  take_results(a, &carried, carries, made);
}

/* The first program says whether the second is run again. */
static void loop_until(const ax_discharge_args *a) {
  ax_carried carried, by_test;
  nest test, body;
  slot *test_in = inputs_of(a, 0), *body_in = inputs_of(a, 1);
  if (test_in == NULL || body_in == NULL || !carried_init(a->d, &carried) || !carried_init(a->d, &by_test)) return;
  if (!add_written(a->d, ax_eqn_program(a->eqn, 0), test_in, &by_test)) return;
  if (!add_written(a->d, ax_eqn_program(a->eqn, 1), body_in, &carried)) return;
  if (by_test.count > 0) {
    ax_fail(ax_error(AX_ABSENT, "the condition of a while writes memory: a plain program's cannot"));
    return;
  }
  const uint32_t carries = a->eqn->out_count, count = carries + carried.count;
  if (!nest_init(&test, a, 0, test_in, &carried, carries) || !nest_init(&body, a, 1, body_in, &carried, carries)) return;
  test.result_at = AX_NONE;
  ax_value *all = ax_trace_alloc((count + 1) * sizeof all[0]);
  if (all == NULL) return;
  for (uint32_t i = 0; i < body.program->in_count; i++)
    if (body.at[i] != AX_NONE) all[body.at[i]] = body_in[i].value;
  take_contents(a->d, &carried, all + carries);
  ax_while(AX_CLOSURE(call_nest, count, 1, &test), AX_CLOSURE(call_nest, count, count, &body), all, all);
  take_results(a, &carried, carries, all);
}

void ax_discharge_body(const ax_discharge_args *args, const ax_program *body, const ax_discharge_value *in) {
  ax_value *made = ax_trace_alloc((args->eqn->out_count + 1) * sizeof made[0]);
  if (made == NULL) return;
  ax_discharge_program(args->d, body, in, made);
  for (uint32_t k = 0; k < args->eqn->out_count; k++) args->out[k] = (slot){.value = made[k]};
}

/* --- All else --- */

/* A function that a primitive has rules for: the same in the environment of the program, where everything spreads alike. */
static ax_program *rebuilt(const ax_discharge *d, const ax_program *program) {
  ax_discharge inner = {.params = d->params, .axes = d->axes, .body_axes = d->body_axes, .spread = d->spread, .zeros = d->zeros, .right = AX_NONE};
  ax_builder builder;
  ax_program *made = NULL;
  ax_type *types = ax_trace_alloc((program->in_count + 1) * sizeof types[0]);
  if (types == NULL) return NULL;
  for (uint32_t i = 0; i < program->in_count; i++) {
    types[i] = program->types[i];
    types[i].spread = d->spread;
  }
  ax_value *given = ax_region_begin(&builder, d->axes, types, program->in_count);
  slot *in = ax_trace_alloc((program->in_count + 1) * sizeof in[0]);
  ax_value *outs = ax_trace_alloc((program->out_count + 1) * sizeof outs[0]);
  for (uint32_t i = 0; i < program->in_count && given != NULL && in != NULL; i++) in[i] = (slot){.value = given[i]};
  if (given != NULL && in != NULL && outs != NULL) ax_discharge_program(&inner, program, in, outs);
  ax_status status = ax_region_finish(&builder, outs, program->out_count, &made);
  if (status != AX_OK) ax_fail(status);
  ax_free(inner.content);
  ax_arena_deinit(&inner.arena);
  return made;
}

/* Calls of the host are made once for a device, not for a core. */
static void *params_outside(const ax_discharge *d, const ax_eqn *eqn) {
  void *params = eqn->prim->params_bytes > 0 ? ax_trace_alloc(eqn->prim->params_bytes) : NULL;
  if (params == NULL) return NULL;
  memcpy(params, eqn->params, eqn->prim->params_bytes);
  for (uint32_t p = 0; p < eqn->prim->param_count && eqn->prim->kind == AX_COLLECTIVE; p++) {
    if (eqn->prim->params[p].kind != AX_PARAM_AXES) continue;
    ax_axes *names = (ax_axes *)((char *)params + eqn->prim->params[p].offset);
    uint32_t count = 0;
    for (uint32_t i = 0; i < names->count; i++)
      if (ax_mesh_find(d->axes, names->name[i]) >= 0) memmove(names->name[count++], names->name[i], AX_MAX_NAME);
    names->count = count;
  }
  return params;
}

static void plain(const ax_discharge_args *a) {
  const ax_discharge *d = a->d;
  const ax_eqn *eqn = a->eqn;
  ax_arena arena = {0};
  ax_value *operands = ax_trace_alloc((eqn->in_count + 1) * sizeof operands[0]),
           *made = ax_trace_alloc((eqn->out_count + 1) * sizeof made[0]);
  if (ax_failed()) return;
  bool holds = ax_eqn_program(eqn, 0) != NULL;
  void *params = holds ? ax_eqn_own_params(eqn, &arena) : params_outside(d, eqn);
  if (params == NULL && eqn->prim->params_bytes > 0 && !ax_failed()) ax_fail(ax_out_of_memory(eqn->prim->params_bytes));
  for (uint32_t i = 0; i < eqn->in_count; i++) operands[i] = a->in[i].value;
  uint32_t programs = 0;
  for (ax_program **at; holds && !ax_failed() && (at = ax_params_program(eqn->prim, params, programs)) != NULL; programs++)
    *at = rebuilt(d, *at);
  if (!ax_failed()) ax_bind(eqn->prim, params, operands, eqn->in_count, made, eqn->out_count);
  while (programs > 0) ax_program_release(*ax_params_program(eqn->prim, params, --programs));
  ax_arena_deinit(&arena);
  for (uint32_t k = 0; k < eqn->out_count && !ax_failed(); k++) ax_discharge_give(a, k, made[k]);
}

static void discharge(const ax_discharge_args *a) {
  const ax_prim *prim = a->eqn->prim;
  const ax_step *step = prim->step;
  if (step != NULL && step->access != NULL) access_memory(a, step->access);
  else if (step != NULL && step->view != NULL) view(a);
  else if (step != NULL && step->discharge != NULL) step->discharge(a);
  else if (step != NULL) return; /* it only orders, or is a hint */
  else if (prim->runs == AX_RUNS_ONE && prim->kind == AX_REGION) branches(a);
  else if (prim->runs == AX_RUNS_UNTIL) loop_until(a);
  else if (prim == &ax_prim_scan) scan(a);
  else if (prim == &ax_prim_closed_call) ax_discharge_body(a, ax_eqn_program(a->eqn, 0), a->in);
  else if (prim == &ax_prim_axis_index) axis_index(a);
  else plain(a);
}

void ax_discharge_program(ax_discharge *d, const ax_program *program, const slot *in, ax_value *out) {
  slot *values = ax_calloc(program->value_count, sizeof values[0]);
  slot *operands = ax_calloc((size_t)ax_most_operands(program) + 1, sizeof operands[0]);
  if (values == NULL || operands == NULL) ax_fail(ax_out_of_memory(program->value_count * sizeof values[0]));
  for (uint32_t i = 0; i < program->in_count && !ax_failed(); i++) values[i] = in[i];
  for (uint32_t e = 0; e < program->eqn_count && !ax_failed(); e++) {
    const ax_eqn *eqn = &program->eqns[e];
    ax_builder_stem(ax_builder_current(), eqn);
    for (uint32_t i = 0; i < eqn->in_count; i++) operands[i] = values[eqn->in[i]];
    discharge(&(ax_discharge_args){d, program, eqn, program->types, operands, values + eqn->out});
  }
  for (uint32_t k = 0; k < program->out_count; k++) out[k] = ax_failed() ? ax_poison : values[program->outs[k]].value;
  ax_free(values);
  ax_free(operands);
}
