/* The equations of a kernel's body, discharged: stores become new values, and control flow carries the contents of the memory that
   its body writes.

     scan[consts: ref.., x..] carry.. xs..
       becomes
     scan carry.. (contents of refs that the body writes).. xs..,  with the others as constants

   Each step is done at once: a copy is complete when it is started, and a wait for it does nothing. This is one of the kernel's
   schedules where its steps are ordered, so that the results are the kernel's. */
#include "kernel/discharge.h"

#include <string.h>

#include "control/cond.h"
#include "prim/prims.h"
#include "control/scan.h"
#include "control/while.h"

typedef ax_discharge_value slot;
typedef void (*step)(ax_discharge *d, const ax_eqn *eqn, const ax_type *types, const slot *in, slot *out);

static void give(const ax_discharge *d, slot *out, ax_value value) { *out = (slot){.value = ax_discharge_spread(d, value)}; }

/* --- Views and memory --- */

static void view(ax_discharge *d, const ax_eqn *eqn, const ax_type *types, const slot *in, slot *out) {
  ax_value starts[AX_MAX_RANK];
  for (uint32_t i = 1; i < eqn->in_count; i++) starts[i - 1] = in[i].value;
  out[0] = (slot){.view = ax_content_of(d, in[0].view, eqn, &types[eqn->out], starts)};
}

static bool is_masked(const ax_eqn *eqn) { return ((const ax_ref_masked_params *)eqn->params)->masked; }

static void load(ax_discharge *d, const ax_eqn *eqn, const ax_type *types, const slot *in, slot *out) {
  (void)types;
  ax_value x = ax_content_read(d, in[0].view);
  give(d, &out[0], is_masked(eqn) ? ax_select_n(in[1].value, in[2].value, x) : x);
}

static void store(ax_discharge *d, const ax_eqn *eqn, const ax_type *types, const slot *in, slot *out) {
  (void)types, (void)out;
  ax_value x = in[1].value;
  if (is_masked(eqn)) x = ax_select_n(in[2].value, ax_content_read(d, in[0].view), x);
  ax_content_write(d, in[0].view, x);
}

static void swap(ax_discharge *d, const ax_eqn *eqn, const ax_type *types, const slot *in, slot *out) {
  (void)types;
  ax_value was = ax_content_read(d, in[0].view);
  ax_content_write(d, in[0].view, is_masked(eqn) ? ax_select_n(in[2].value, was, in[1].value) : in[1].value);
  give(d, &out[0], is_masked(eqn) ? ax_select_n(in[2].value, in[3].value, was) : was);
}

static void add(ax_discharge *d, const ax_eqn *eqn, const ax_type *types, const slot *in, slot *out) {
  (void)eqn, (void)types, (void)out;
  ax_content_write(d, in[0].view, ax_add(ax_content_read(d, in[0].view), in[1].value));
}

static void copy(ax_discharge *d, const ax_eqn *eqn, const ax_type *types, const slot *in, slot *out) {
  (void)types, (void)out;
  const ax_copy_params *params = eqn->params;
  ax_value x = ax_content_read(d, in[0].view);
  if (params->predicate)
    x = ax_select_n(in[2 + params->received + params->sent + params->barrier].value, ax_content_read(d, in[1].view), x);
  ax_content_write(d, in[1].view, x);
}

static void nothing(ax_discharge *d, const ax_eqn *eqn, const ax_type *types, const slot *in, slot *out) {
  (void)d, (void)eqn, (void)types, (void)in, (void)out;
}

/* Signals and waits of a counting semaphore, as additions to its content: only the present core uses it. */
static void count(ax_discharge *d, const ax_eqn *eqn, const ax_type *types, const slot *in, slot *out) {
  (void)types, (void)out;
  if (in[0].view->memory == AX_NONE) return;
  ax_value was = ax_content_read(d, in[0].view);
  ax_content_write(d, in[0].view, eqn->prim == &ax_prim_semaphore_signal ? ax_add(was, in[1].value) : ax_sub(was, in[1].value));
}

static void read_count(ax_discharge *d, const ax_eqn *eqn, const ax_type *types, const slot *in, slot *out) {
  (void)eqn, (void)types;
  if (in[0].view->memory == AX_NONE) ax_fail(ax_error(AX_ABSENT, "the count of a barrier semaphore, which others change, is read"));
  else give(d, &out[0], ax_content_read(d, in[0].view));
}

/* All kernels of the device have it: it is no memory of this one. */
static void barrier_semaphore(ax_discharge *d, const ax_eqn *eqn, const ax_type *types, const slot *in, slot *out) {
  (void)in;
  ax_type others = types[eqn->out];
  others.form = AX_BARRIER;
  out[0] = (slot){.view = ax_content_add(d, &others, ax_poison)};
}

/* --- Where one is --- */

static void program_id(ax_discharge *d, const ax_eqn *eqn, const ax_type *types, const slot *in, slot *out) {
  (void)types, (void)in;
  int64_t dimension = ((const ax_program_id_params *)eqn->params)->dimension;
  if (d->ids == NULL) ax_fail(ax_error(AX_ABSENT, "program_id in a function with rules of its own; take it outside"));
  else give(d, &out[0], d->ids[dimension]);
}

static uint32_t device_axes(const ax_discharge *d) { return d->axes->count; }

/* Row-major over the axes named, those of cores by what they are here. */
static void axis_index(ax_discharge *d, const ax_eqn *eqn, const ax_type *types, const slot *in, slot *out) {
  (void)types, (void)in;
  const ax_axes *names = eqn->params;
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
  give(d, &out[0], names->count > 0 ? index : ax_full_i64(AX_S32, 0, NULL, 0));
}

/* --- Regions with refs: bodies as functions, whose values around are captured --- */

typedef struct nest {
  ax_discharge *d;
  const ax_program *program;
  const slot *in; /* of the program; those not in `given` are values around */
  uint32_t first, given; /* inputs of the program that the function's operands are, .. */
  uint32_t given_at, result_at; /* .. before and behind which the contents stand: among operands and results */
  const ax_carried *carried;
} nest;

/* (given.. up to given_at, contents, given.. behind) -> (results.. up to result_at, contents, results.. behind). Restores the
   contents afterwards, for the equations that are traced next. */
static AX_BODY(call_nest) {
  const nest *n = context;
  ax_discharge *d = n->d;
  uint32_t carried = n->carried->count, outs = n->program->out_count, memories = d->memory_count;
  slot *operands = ax_trace_alloc((n->program->in_count + 1) * sizeof operands[0]);
  ax_value *results = ax_trace_alloc((outs + 1) * sizeof results[0]), *before = ax_trace_alloc((carried + 1) * sizeof before[0]);
  if (ax_failed()) return;
  for (uint32_t i = 0; i < n->program->in_count; i++) operands[i] = n->in[i];
  for (uint32_t i = 0; i < n->given; i++) operands[n->first + i] = (slot){.value = in[i < n->given_at ? i : i + carried]};
  for (uint32_t c = 0; c < carried; c++) {
    before[c] = d->content[n->carried->memory[c]];
    if (n->given_at != AX_NONE) d->content[n->carried->memory[c]] = in[n->given_at + c];
  }
  ax_discharge_program(d, n->program, operands, results);
  for (uint32_t k = 0; k < outs; k++) out[k < n->result_at ? k : k + carried] = results[k];
  for (uint32_t c = 0; c < carried; c++) {
    if (n->result_at != AX_NONE) out[n->result_at + c] = d->content[n->carried->memory[c]];
    d->content[n->carried->memory[c]] = before[c];
  }
  d->memory_count = memories;
}

/* The memories that inputs of the program are of, and it writes; `in` are its inputs. False: the trace has failed. */
static bool add_written(ax_discharge *d, const ax_program *program, const slot *in, ax_carried *carried) {
  bool *written = ax_trace_alloc(program->in_count + 1);
  if (written == NULL) return false;
  ax_status status = ax_written_inputs(program, written);
  if (status != AX_OK) ax_fail(status);
  for (uint32_t i = 0; i < program->in_count && status == AX_OK; i++) {
    if (!written[i] || in[i].view == NULL || in[i].view->memory == AX_NONE) continue;
    uint32_t at = 0, memory = in[i].view->memory;
    while (at < carried->count && carried->memory[at] < memory) at++;
    if (at < carried->count && carried->memory[at] == memory) continue;
    memmove(carried->memory + at + 1, carried->memory + at, (carried->count++ - at) * sizeof carried->memory[0]);
    carried->memory[at] = memory;
  }
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

static void cond(ax_discharge *d, const ax_eqn *eqn, const ax_type *types, const slot *in, slot *out) {
  (void)types;
  const ax_programs *branches = &((const ax_cond_params *)eqn->params)->branches;
  ax_carried carried;
  nest *nests = ax_trace_alloc(branches->count * sizeof nests[0]);
  ax_fn *functions = ax_trace_alloc(branches->count * sizeof functions[0]);
  if (nests == NULL || functions == NULL || !carried_init(d, &carried)) return;
  for (uint32_t b = 0; b < branches->count; b++)
    if (!add_written(d, branches->v[b], in + 1, &carried)) return;
  uint32_t count = eqn->out_count + carried.count;
  for (uint32_t b = 0; b < branches->count; b++) {
    nests[b] = (nest){
        .d = d, .program = branches->v[b], .in = in + 1, .given_at = AX_NONE, .result_at = eqn->out_count, .carried = &carried};
    functions[b] = AX_CLOSURE(call_nest, 0, count, &nests[b]);
  }
  ax_value *made = ax_trace_alloc((count + 1) * sizeof made[0]);
  if (made == NULL) return;
  ax_switch(in[0].value, branches->count, functions, NULL, made);
  for (uint32_t k = 0; k < eqn->out_count && !ax_failed(); k++) give(d, &out[k], made[k]);
  if (!ax_failed()) put_contents(d, &carried, made + eqn->out_count);
}

static void scan(ax_discharge *d, const ax_eqn *eqn, const ax_type *types, const slot *in, slot *out) {
  (void)types;
  const ax_scan_params *params = eqn->params;
  uint32_t consts = (uint32_t)params->num_consts, carries = (uint32_t)params->num_carry, given = eqn->in_count - consts;
  ax_carried carried;
  if (!carried_init(d, &carried) || !add_written(d, params->body, in, &carried)) return;
  nest n = {.d = d,
            .program = params->body,
            .in = in,
            .first = consts,
            .given = given,
            .given_at = carries,
            .result_at = carries,
            .carried = &carried};
  uint32_t in_count = given + carried.count, out_count = eqn->out_count + carried.count;
  ax_value *all = ax_trace_alloc((in_count + 1) * sizeof all[0]), *made = ax_trace_alloc((out_count + 1) * sizeof made[0]);
  if (ax_failed()) return;
  for (uint32_t i = 0; i < given; i++) all[i < carries ? i : i + carried.count] = in[consts + i].value;
  take_contents(d, &carried, all + carries);
  ax_scan(AX_CLOSURE(call_nest, in_count, out_count, &n), carries + carried.count, params->length, params->reverse, all, made);
  for (uint32_t k = 0; k < eqn->out_count && !ax_failed(); k++) give(d, &out[k], made[k < carries ? k : k + carried.count]);
  if (!ax_failed()) put_contents(d, &carried, made + carries);
}

static void while_loop(ax_discharge *d, const ax_eqn *eqn, const ax_type *types, const slot *in, slot *out) {
  (void)types;
  const ax_while_params *params = eqn->params;
  uint32_t conds = (uint32_t)params->cond_nconsts, bodies = (uint32_t)params->body_nconsts, carries = eqn->out_count;
  ax_carried carried, by_cond;
  slot *of_cond = ax_trace_alloc((conds + carries + 1) * sizeof of_cond[0]);
  if (of_cond == NULL || !carried_init(d, &carried) || !carried_init(d, &by_cond)) return;
  for (uint32_t i = 0; i < conds + carries; i++) of_cond[i] = in[i < conds ? i : i + bodies];
  if (!add_written(d, params->cond, of_cond, &by_cond) || !add_written(d, params->body, in + conds, &carried)) return;
  if (by_cond.count > 0) {
    ax_fail(ax_error(AX_ABSENT, "the condition of a while writes memory: a plain program's cannot"));
    return;
  }
  nest test = {.d = d,
               .program = params->cond,
               .in = of_cond,
               .first = conds,
               .given = carries,
               .given_at = carries,
               .result_at = AX_NONE,
               .carried = &carried};
  nest body = {.d = d,
               .program = params->body,
               .in = in + conds,
               .first = bodies,
               .given = carries,
               .given_at = carries,
               .result_at = carries,
               .carried = &carried};
  uint32_t count = carries + carried.count;
  ax_value *all = ax_trace_alloc((count + 1) * sizeof all[0]);
  if (all == NULL) return;
  for (uint32_t i = 0; i < carries; i++) all[i] = in[conds + bodies + i].value;
  take_contents(d, &carried, all + carries);
  ax_while(AX_CLOSURE(call_nest, count, 1, &test), AX_CLOSURE(call_nest, count, count, &body), all, all);
  for (uint32_t k = 0; k < carries && !ax_failed(); k++) give(d, &out[k], all[k]);
  if (!ax_failed()) put_contents(d, &carried, all + carries);
}

static void inline_body(ax_discharge *d, const ax_eqn *eqn, const ax_program *body, const slot *in, slot *out) {
  ax_value *made = ax_trace_alloc((eqn->out_count + 1) * sizeof made[0]);
  if (made == NULL) return;
  ax_discharge_program(d, body, in, made);
  for (uint32_t k = 0; k < eqn->out_count; k++) out[k] = (slot){.value = made[k]};
}

static void call(ax_discharge *d, const ax_eqn *eqn, const ax_type *types, const slot *in, slot *out) {
  (void)types;
  inline_body(d, eqn, ax_eqn_program(eqn, 0), in, out);
}

static void run_scoped(ax_discharge *d, const ax_eqn *eqn, const ax_type *types, const slot *in, slot *out) {
  (void)types;
  const ax_run_scoped_params *params = eqn->params;
  uint32_t memories = d->memory_count;
  slot *all = ax_trace_alloc((eqn->in_count + params->scratch.count + 1) * sizeof all[0]);
  if (all == NULL) return;
  memcpy(all, in, eqn->in_count * sizeof all[0]);
  for (uint32_t i = 0; i < params->scratch.count && !ax_failed(); i++) {
    const ax_type *type = &params->scratch.v[i];
    all[eqn->in_count + i] = (slot){.view = ax_content_add(d, type, ax_content_unset(d, type))};
  }
  if (!ax_failed()) inline_body(d, eqn, params->body, all, out);
  d->memory_count = memories;
}

static void grid_point(ax_discharge *d, const ax_eqn *eqn, const ax_type *types, const slot *in, slot *out) {
  (void)types;
  const ax_grid_point_params *params = eqn->params;
  const ax_value *around = d->ids;
  ax_value ids[AX_MAX_RANK];
  for (uint32_t i = 0; i < params->grid.count; i++) ids[i] = in[i].value;
  d->ids = ids;
  inline_body(d, eqn, params->body, in + params->grid.count, out);
  d->ids = around;
}

/* --- All else --- */

/* A function that a primitive has rules for: the same in the environment of the program, where everything spreads alike. */
static ax_program *rebuilt(const ax_discharge *d, const ax_program *program) {
  ax_discharge inner = {.params = d->params, .axes = d->axes, .body_axes = d->body_axes, .spread = d->spread, .zeros = d->zeros};
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

static void plain(ax_discharge *d, const ax_eqn *eqn, const ax_type *types, const slot *in, slot *out) {
  (void)types;
  ax_arena arena = {0};
  ax_value *operands = ax_trace_alloc((eqn->in_count + 1) * sizeof operands[0]),
           *made = ax_trace_alloc((eqn->out_count + 1) * sizeof made[0]);
  if (ax_failed()) return;
  bool holds = ax_eqn_program(eqn, 0) != NULL;
  void *params = holds ? ax_eqn_own_params(eqn, &arena) : params_outside(d, eqn);
  if (params == NULL && eqn->prim->params_bytes > 0 && !ax_failed()) ax_fail(ax_out_of_memory(eqn->prim->params_bytes));
  for (uint32_t i = 0; i < eqn->in_count; i++) operands[i] = in[i].value;
  uint32_t programs = 0;
  for (ax_program **at; holds && !ax_failed() && (at = ax_params_program(eqn->prim, params, programs)) != NULL; programs++)
    *at = rebuilt(d, *at);
  if (!ax_failed()) ax_bind(eqn->prim, params, operands, eqn->in_count, made, eqn->out_count);
  while (programs > 0) ax_program_release(*ax_params_program(eqn->prim, params, --programs));
  ax_arena_deinit(&arena);
  for (uint32_t k = 0; k < eqn->out_count && !ax_failed(); k++) give(d, &out[k], made[k]);
}

static step step_of(const ax_prim *prim) {
  static const struct {
    const ax_prim *prim;
    step step;
  } steps[] = {{&ax_prim_ref_slice, view},
               {&ax_prim_ref_transpose, view},
               {&ax_prim_ref_reshape, view},
               {&ax_prim_ref_load, load},
               {&ax_prim_ref_store, store},
               {&ax_prim_ref_swap, swap},
               {&ax_prim_ref_add, add},
               {&ax_prim_semaphore_signal, count},
               {&ax_prim_semaphore_wait, count},
               {&ax_prim_semaphore_read, read_count},
               {&ax_prim_barrier_semaphore, barrier_semaphore},
               {&ax_prim_barrier_arrive, nothing},
               {&ax_prim_barrier_wait, nothing},
               {&ax_prim_copy_start, copy},
               {&ax_prim_copy_wait, nothing},
               {&ax_prim_copy_commit, nothing},
               {&ax_prim_copy_wait_groups, nothing},
               {&ax_prim_commit_smem, nothing},
               {&ax_prim_program_id, program_id},
               {&ax_prim_set_max_registers, nothing},
               {&ax_prim_trace_begin, nothing},
               {&ax_prim_trace_end, nothing},
               {&ax_prim_axis_index, axis_index},
               {&ax_prim_run_scoped, run_scoped},
               {&ax_prim_grid_point, grid_point},
               {&ax_prim_cond, cond},
               {&ax_prim_scan, scan},
               {&ax_prim_while, while_loop},
               {&ax_prim_closed_call, call}};
  for (uint32_t i = 0; i < AX_COUNT(steps); i++)
    if (steps[i].prim == prim) return steps[i].step;
  return plain;
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
    step_of(eqn->prim)(d, eqn, program->types, operands, values + eqn->out);
  }
  for (uint32_t k = 0; k < program->out_count; k++) out[k] = ax_failed() ? ax_poison : values[program->outs[k]].value;
  ax_free(values);
  ax_free(operands);
}
