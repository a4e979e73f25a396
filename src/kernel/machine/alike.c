/* Which cores are alike.

   A core is told apart from another by its place alone, which axis_index reads. Say that a value is *fixed* if it is computed from
   such indices and literals. Two cores of one body on one device are alike if they have all refs in common and, with their fixed
   values put in, the same steps: what comes of a fixed value is another one, a branch that goes the same way in both, or is equal.
   So the core that only asks whether it is the first has its like in all that are not.

   Then a state in which two such cores have changed places is a state of the same machine, with the same memory and counts: each
   goes on as the other would have. Fixed values belong to the place, and do not change. Cores that open scopes, start copies or
   name other cores are not compared.

   Each core is gone through by itself first: what another one must do the same comes to a hash, the core's *trait*. Only cores with
   one trait are compared, so the work grows with the cores, not with their pairs. */
#include "kernel/machine/alike.h"

#include <string.h>

#include "ir/number.h"
#include "kernel/machine/state.h"
#include "kernel/step.h"
#include "prim/prims.h"

enum { most_elems = 256 };

typedef struct finder {
  const ax_machine *machine;
  const ax_core_code *code;
  bool *fixed;                   /* by slot */
  ax_cell **values, **others;    /* by slot: of two cores; NULL: not fixed */
  uint32_t other;                /* the core that `others` are of; AX_NONE */
  uint32_t *queue, queue_count;  /* steps to look at */
  bool *reached;
  uint64_t *traits;              /* by core that is the first of its kind */
  uint32_t *heads, head_slots;   /* these cores, by hash of the trait; AX_NONE. head_slots: a power of two */
} finder;

static void find_fixed(finder *f) {
  const ax_core_code *code = f->code;
  uint32_t *made = f->queue; /* by slot: how many steps make it */
  memset(made, 0, ((size_t)code->slot_count + 1) * sizeof made[0]);
  for (uint32_t s = 0; s < code->step_count; s++)
    for (uint32_t k = 0; k < code->steps[s].out_count; k++) made[code->steps[s].out[k]]++;
  for (uint32_t i = 0; i < code->constant_count; i++) f->fixed[code->constants[i].slot] = made[code->constants[i].slot] == 0;
  for (uint32_t s = 0; s < code->step_count; s++) {
    const ax_core_code_step *step = &code->steps[s];
    if (step->kind != AX_STEP_EVAL || step->out_count != 1 || made[step->out[0]] != 1 || step->in_count > 8) continue;
    bool fixed = step->eqn->prim == &ax_prim_axis_index || (step->eqn->prim->effects == 0 && step->in_count > 0);
    for (uint32_t i = 0; i < step->in_count; i++) fixed = fixed && f->fixed[step->in[i]];
    f->fixed[step->out[0]] = fixed && ax_type_elems(&code->types[step->out[0]]) <= most_elems;
  }
}

static ax_status compute(const finder *f, const ax_core *core, const ax_core_code_step *step, ax_cell **values) {
  ax_tensor *in[8];
  ax_cell *made;
  AX_TRY(ax_cell_tensor(&f->code->types[step->out[0]], &made));
  for (uint32_t i = 0; i < step->in_count; i++) in[i] = values[step->in[i]]->tensor;
  const ax_eval_args args = {.eqn = step->eqn,
                             .axes = &step->program->axes,
                             .lanes = 1,
                             .device = &core->place,
                             .in = in,
                             .out = &made->tensor,
                             .hooks = f->machine->hooks};
  const ax_status status = step->eqn->prim->eval(&args);
  if (status != AX_OK) {
    ax_cell_release(made);
    return status;
  }
  values[step->out[0]] = made;
  return AX_OK;
}

/* The fixed values of a core. */
static ax_status compute_all(const finder *f, const ax_core *core, ax_cell **values) {
  const ax_core_code *code = f->code;
  for (uint32_t i = 0; i < code->constant_count; i++) {
    const ax_core_code_constant *c = &code->constants[i];
    ax_tensor value = {.dtype = c->literal->type.dtype, .rank = c->literal->type.rank, .data = c->literal->data};
    memcpy(value.dims, c->literal->type.dims, sizeof value.dims);
    if (!f->fixed[c->slot]) continue;
    AX_TRY(ax_cell_tensor(&code->types[c->slot], &values[c->slot]));
    ax_tensor_assign(values[c->slot]->tensor, &value);
  }
  for (uint32_t s = 0; s < code->step_count; s++)
    if (code->steps[s].kind == AX_STEP_EVAL && f->fixed[code->steps[s].out[0]])
      AX_TRY(compute(f, core, &code->steps[s], values));
  return AX_OK;
}

static bool same(const finder *f, uint32_t slot) {
  const ax_type *type = &f->code->types[slot];
  return memcmp(f->values[slot]->tensor->data, f->others[slot]->tensor->data,
                (size_t)ax_type_elems(type) * ax_dtype_bytes(type->dtype)) == 0;
}

static void reach(finder *f, uint32_t step) {
  if (f->reached[step]) return;
  f->reached[step] = true;
  f->queue[f->queue_count++] = step;
}

static void start(finder *f) {
  memset(f->reached, 0, f->code->step_count);
  f->queue_count = 0;
  reach(f, 0);
}

static int64_t integer_in(const ax_cell *cell) {
  return ax_number_load(cell->tensor->dtype, cell->tensor->data, 0).i;
}

static uint32_t chosen(const ax_core_code_step *step, uint32_t s, const ax_cell *cell) {
  const int64_t index = integer_in(cell);
  if (step->kind == AX_STEP_TEST) return index == 0 ? step->target : s + 1;
  return step->targets[index < 0 ? 0 : index >= step->target_count ? step->target_count - 1 : index];
}

/* Where a branch goes; false: the two cores part. */
static bool branch(finder *f, uint32_t s) {
  const ax_core_code_step *step = &f->code->steps[s];
  const uint32_t slot = step->in[0];
  if (f->fixed[slot]) {
    const uint32_t to = chosen(step, s, f->values[slot]);
    reach(f, to);
    return to == chosen(step, s, f->others[slot]);
  }
  if (step->kind == AX_STEP_TEST) reach(f, step->target), reach(f, s + 1);
  for (uint32_t t = 0; step->kind == AX_STEP_SWITCH && t < step->target_count; t++) reach(f, step->targets[t]);
  return true;
}

static bool names_core(const ax_eqn *eqn) {
  const ax_core_params *to = ax_step_target(eqn);
  return to != NULL && (to->axes.count > 0 || to->logical);
}

/* Whether both cores do the same at this step, and what comes next. */
static bool does_same(finder *f, uint32_t s) {
  const ax_core_code_step *step = &f->code->steps[s];
  const ax_step *record = step->eqn != NULL && (step->kind == AX_STEP_ACT || step->kind == AX_STEP_VIEW) ? step->eqn->prim->step : NULL;
  if (step->kind == AX_STEP_END) return true;
  if (step->kind == AX_STEP_TEST || step->kind == AX_STEP_SWITCH) return branch(f, s);
  if (step->kind == AX_STEP_OPEN || step->kind == AX_STEP_CLOSE || (record != NULL && record->copies)) return false;
  if (record != NULL && names_core(step->eqn)) return false;
  const bool fixed = step->kind == AX_STEP_EVAL && f->fixed[step->out[0]];
  if (step->kind == AX_STEP_EVAL && !fixed && step->eqn->prim->effects != 0) return false;
  for (uint32_t i = 0; i < step->in_count && !fixed; i++)
    if (f->fixed[step->in[i]] && !same(f, step->in[i])) return false;
  if (step->kind != AX_STEP_JUMP && step->kind != AX_STEP_ADVANCE) reach(f, s + 1);
  if (step->kind == AX_STEP_JUMP || step->kind == AX_STEP_ADVANCE || step->kind == AX_STEP_NEXT) reach(f, step->target);
  return true;
}

/* --- One core by itself --- */

static uint64_t hash_value(const finder *f, uint32_t slot, uint64_t hash) {
  const ax_type *type = &f->code->types[slot];
  return ax_hash_bytes(hash, f->values[slot]->tensor->data, (size_t)ax_type_elems(type) * ax_dtype_bytes(type->dtype));
}

/* Goes the way of a step as does_same does, with nobody to compare; false: the core has no like. */
static bool pass(finder *f, uint32_t s, uint64_t *hash) {
  const ax_core_code_step *step = &f->code->steps[s];
  const bool branches = step->kind == AX_STEP_TEST || step->kind == AX_STEP_SWITCH;
  const bool fixed = step->kind == AX_STEP_EVAL && f->fixed[step->out[0]];
  *hash = ax_hash_word(*hash, s);
  if (branches && f->fixed[step->in[0]]) *hash = ax_hash_word(*hash, chosen(step, s, f->values[step->in[0]]));
  for (uint32_t i = 0; i < step->in_count && !fixed && !branches && step->kind != AX_STEP_END; i++)
    if (f->fixed[step->in[i]]) *hash = hash_value(f, step->in[i], *hash);
  return does_same(f, s);
}

/* What it does that another must do likewise: equal of cores that are alike, and mostly of no others. */
static bool find_trait(finder *f, const ax_core *core, uint64_t *trait) {
  uint64_t hash = ax_hash_word(AX_HASH_SEED, core->device);
  for (uint32_t r = 0; r < f->machine->ref_count; r++) hash = ax_hash_word(hash, ax_machine_place(f->machine, core, r));
  ax_cell **const others = f->others;
  f->others = f->values; /* a core does the same as itself, unless it does what is not compared */
  start(f);
  bool comparable = true;
  for (uint32_t k = 0; k < f->queue_count && comparable; k++) comparable = pass(f, f->queue[k], &hash);
  f->others = others;
  *trait = hash;
  return comparable;
}

/* --- Two --- */

static bool same_refs(const ax_machine *machine, const ax_core *a, const ax_core *b) {
  for (uint32_t r = 0; r < machine->ref_count; r++)
    if (ax_machine_place(machine, a, r) != ax_machine_place(machine, b, r)) return false;
  return true;
}

static bool are_alike(finder *f) {
  start(f);
  for (uint32_t k = 0; k < f->queue_count; k++)
    if (!does_same(f, f->queue[k])) return false;
  return true;
}

static void release_values(const finder *f, ax_cell **values) {
  for (uint32_t s = 0; s < f->code->slot_count; s++) {
    ax_cell_release(values[s]);
    values[s] = NULL;
  }
}

/* Compares a core, whose values are there, with another. */
static ax_status compare(finder *f, uint32_t c, uint32_t other, bool *alike) {
  const ax_core *cores = f->machine->cores;
  *alike = false;
  if (cores[c].device != cores[other].device || !same_refs(f->machine, &cores[c], &cores[other])) return AX_OK;
  if (f->other != other) {
    f->other = AX_NONE;
    release_values(f, f->others);
    AX_TRY(compute_all(f, &cores[other], f->others));
    f->other = other;
  }
  *alike = are_alike(f);
  return AX_OK;
}

/* Compares a core with the first ones of its kind before it. */
static ax_status place_core(finder *f, uint32_t c, ax_alike *out) {
  uint64_t trait;
  out->first[c] = c;
  release_values(f, f->values);
  AX_TRY(compute_all(f, &f->machine->cores[c], f->values));
  if (!find_trait(f, &f->machine->cores[c], &trait)) return AX_OK;
  uint32_t slot = (uint32_t)trait & (f->head_slots - 1);
  for (; f->heads[slot] != AX_NONE; slot = (slot + 1) & (f->head_slots - 1)) {
    const uint32_t k = f->heads[slot];
    bool alike = false;
    if (f->traits[k] == trait) AX_TRY(compare(f, c, k, &alike));
    if (!alike) continue;
    out->first[c] = k;
    out->several[c] = out->several[k] = out->any = true;
    return AX_OK;
  }
  f->heads[slot] = c;
  f->traits[c] = trait;
  return AX_OK;
}

static ax_status place_body(const ax_machine *machine, uint32_t body, ax_alike *out) {
  const ax_core_code *code = machine->codes[body];
  const size_t slots = (size_t)code->slot_count + 1, steps = (size_t)code->step_count + 1;
  uint32_t head_slots = 64;
  while (head_slots < 2 * machine->core_count) head_slots *= 2;
  out->own[body] = ax_calloc(slots, sizeof(bool));
  finder f = {.machine = machine,
              .code = code,
              .fixed = out->own[body],
              .values = ax_calloc(slots, sizeof(ax_cell *)),
              .others = ax_calloc(slots, sizeof(ax_cell *)),
              .queue = ax_alloc((slots > steps ? slots : steps) * sizeof(uint32_t)),
              .reached = ax_calloc(steps, sizeof(bool)),
              .traits = ax_alloc(((size_t)machine->core_count + 1) * sizeof(uint64_t)),
              .heads = ax_alloc(head_slots * sizeof(uint32_t)),
              .head_slots = head_slots,
              .other = AX_NONE};
  ax_status status = f.fixed == NULL || f.values == NULL || f.others == NULL || f.queue == NULL || f.reached == NULL ||
                             f.traits == NULL || f.heads == NULL
                         ? ax_out_of_memory(0)
                         : AX_OK;
  if (status == AX_OK) find_fixed(&f);
  if (status == AX_OK) memset(f.heads, 0xff, head_slots * sizeof f.heads[0]);
  for (uint32_t c = 0; c < machine->core_count && status == AX_OK; c++)
    if (machine->cores[c].body == body) status = place_core(&f, c, out);
  if (f.values != NULL && f.others != NULL) release_values(&f, f.values), release_values(&f, f.others);
  void *memory[] = {f.values, f.others, f.queue, f.reached, f.traits, f.heads};
  for (uint32_t k = 0; k < AX_COUNT(memory); k++) ax_free(memory[k]);
  return status;
}

ax_status ax_alike_find(const ax_machine *machine, ax_alike *out) {
  const uint32_t bodies = machine->params->bodies.count;
  *out = (ax_alike){.first = ax_calloc((size_t)machine->core_count + 1, sizeof(uint32_t)),
                    .several = ax_calloc((size_t)machine->core_count + 1, sizeof(bool)),
                    .own = ax_calloc((size_t)bodies + 1, sizeof(bool *)),
                    .body_count = bodies};
  ax_status status = out->first == NULL || out->several == NULL || out->own == NULL ? ax_out_of_memory(0) : AX_OK;
  for (uint32_t b = 0; b < bodies && status == AX_OK; b++) status = place_body(machine, b, out);
  if (status != AX_OK) ax_alike_deinit(out);
  return status;
}

void ax_alike_deinit(ax_alike *alike) {
  for (uint32_t b = 0; alike->own != NULL && b < alike->body_count; b++) ax_free(alike->own[b]);
  ax_free(alike->own);
  ax_free(alike->first);
  ax_free(alike->several);
  *alike = (ax_alike){0};
}
