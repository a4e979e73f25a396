/* Sets of inputs flow along values: a result may depend on all operands of its equation. In kernels memory has a set as well: the
   sets of all values that were stored in it. Sets only grow, so the steps are visited, in any order, until no set changes. An input
   decides acts if it flows into an index, a coordinate, an amount, a predicate, a mask or a branch; results, if it flows into a
   value that is stored, or memory that is copied or added to. This is an upper bound: a value that is multiplied by 0 counts. */
#include "check/decides.h"

#include <string.h>

#include "ir/region_link.h"
#include "kernel/step.h"
#include "prim/prims.h"

/* --- Sets: words of bits, `width` each --- */

static bool take(uint64_t *to, const uint64_t *from, uint32_t width) {
  bool grown = false;
  for (uint32_t w = 0; w < width; w++) {
    grown = grown || (from[w] & ~to[w]) != 0;
    to[w] |= from[w];
  }
  return grown;
}

static void put(uint64_t *set, uint32_t member) { set[member / 64] |= (uint64_t)1 << member % 64; }
static bool has(const uint64_t *set, uint32_t member) { return (set[member / 64] >> member % 64 & 1) != 0; }

/* --- A kernel --- */

typedef struct flow {
  const ax_machine *machine;
  uint32_t width, root_count;
  uint64_t *slots;    /* by slot of all bodies */
  uint32_t *roots;    /* likewise: the memory that a ref is of; AX_NONE: not known, or no ref */
  uint64_t *contents; /* by root: refs of the kernel, then slots of refs that scopes make */
  uint64_t *decides, *results;
  const ax_core_code *code; /* that is gone through, and where its slots begin */
  uint32_t first;
  bool grown;
} flow;

static uint64_t *slot_of(const flow *f, uint32_t slot) { return f->slots + (size_t)(f->first + slot) * f->width; }
static bool is_value(const flow *f, uint32_t slot) { return f->code->types[slot].form == AX_ARRAY; }
static void join(flow *f, uint64_t *to, const uint64_t *from) { f->grown = take(to, from, f->width) || f->grown; }

static uint64_t *content_of(const flow *f, uint32_t slot) {
  const uint32_t root = f->roots[f->first + slot];
  return root != AX_NONE ? f->contents + (size_t)root * f->width : NULL;
}

static void move(flow *f, uint32_t from, uint32_t to) {
  join(f, slot_of(f, to), slot_of(f, from));
  if (f->roots[f->first + to] == f->roots[f->first + from]) return;
  f->roots[f->first + to] = f->roots[f->first + from];
  f->grown = true;
}

static void decide(flow *f, const ax_core_code_step *step, uint32_t first) {
  for (uint32_t k = first; k < step->in_count; k++)
    if (is_value(f, step->in[k])) join(f, f->decides, slot_of(f, step->in[k]));
}

static void follow_act(flow *f, const ax_core_code_step *step) {
  const ax_step_access *access = ax_step_access_of(step->eqn);
  const bool store = access != NULL && access->writes;
  uint64_t *content = step->in_count > 0 && !is_value(f, step->in[0]) ? content_of(f, step->in[0]) : NULL;
  decide(f, step, store ? access->value + 1 : 0); /* of a store the value is no mask */
  if (access != NULL)
    for (uint32_t k = 0; k < step->out_count && content != NULL; k++) join(f, slot_of(f, step->out[k]), content);
  if (store) join(f, f->results, slot_of(f, step->in[access->value]));
  if (store && content != NULL) join(f, content, slot_of(f, step->in[access->value]));
  if (content == NULL) return;
  if (store && access->combine != NULL) join(f, f->results, content);
  if (!ax_step_copies(step->eqn)) return;
  join(f, f->results, content);
  uint64_t *to = content_of(f, step->in[1]);
  if (to != NULL) join(f, to, content);
}

static void follow_step(flow *f, const ax_core_code_step *step) {
  switch (step->kind) {
    case AX_STEP_EVAL:
      for (uint32_t i = 0; i < step->in_count; i++)
        for (uint32_t k = 0; k < step->out_count; k++) join(f, slot_of(f, step->out[k]), slot_of(f, step->in[i]));
      break;
    case AX_STEP_VIEW:
      if (step->in_count > 0 && step->out_count > 0) move(f, step->in[0], step->out[0]);
      decide(f, step, 1);
      break;
    case AX_STEP_MOVE:
    case AX_STEP_NEXT:
    case AX_STEP_STACK:
      for (uint32_t k = 0; k < step->in_count && k < step->out_count; k++) move(f, step->in[k], step->out[k]);
      break;
    case AX_STEP_SWITCH:
    case AX_STEP_TEST:
      decide(f, step, 0);
      break;
    case AX_STEP_ACT:
      follow_act(f, step);
      break;
    default:
      break;
  }
}

/* A result that is an alias has its operand's memory. */
static uint32_t root_of_ref(const ax_machine *machine, uint32_t ref) {
  uint32_t first = 0;
  while (machine->first_place[first] != machine->first_place[ref]) first++;
  return first;
}

/* Constants are values; refs have roots, and operands hold themselves. */
static void begin_body(flow *f) {
  const uint32_t consts = (uint32_t)f->machine->params->consts;
  for (uint32_t i = 0; i < consts; i++) put(slot_of(f, i), i);
  for (uint32_t r = 0; r < f->machine->ref_count; r++) {
    const uint32_t root = root_of_ref(f->machine, r);
    f->roots[f->first + consts + r] = root;
    if (r < f->machine->operand_count) put(f->contents + (size_t)root * f->width, consts + r);
  }
  for (uint32_t s = 0; s < f->code->step_count; s++) {
    const ax_core_code_step *step = &f->code->steps[s];
    for (uint32_t k = 0; k < step->out_count && step->kind == AX_STEP_OPEN; k++)
      f->roots[f->first + step->out[k]] = f->machine->ref_count + f->first + step->out[k];
  }
}

static void go_through(flow *f, bool begins) {
  f->first = 0;
  for (uint32_t b = 0; b < f->machine->params->bodies.count; b++) {
    f->code = f->machine->codes[b];
    if (begins) begin_body(f);
    for (uint32_t s = 0; s < f->code->step_count && !begins; s++) follow_step(f, &f->code->steps[s]);
    f->first += f->code->slot_count;
  }
}

ax_status ax_decides_of_kernel(const ax_machine *machine, uint8_t *operands) {
  const uint32_t count = machine->eqn->in_count;
  flow f = {.machine = machine, .width = count / 64 + 1};
  uint32_t slots = 0;
  for (uint32_t b = 0; b < machine->params->bodies.count; b++) slots += machine->codes[b]->slot_count;
  f.root_count = machine->ref_count + slots;
  f.slots = ax_calloc((size_t)slots * f.width + 1, sizeof f.slots[0]);
  f.contents = ax_calloc((size_t)f.root_count * f.width + 1, sizeof f.contents[0]);
  f.decides = ax_calloc(f.width, sizeof f.decides[0]);
  f.results = ax_calloc(f.width, sizeof f.results[0]);
  f.roots = ax_alloc(((size_t)slots + 1) * sizeof f.roots[0]);
  const bool there = f.slots != NULL && f.contents != NULL && f.decides != NULL && f.results != NULL && f.roots != NULL;
  if (there) {
    memset(f.roots, 0xff, ((size_t)slots + 1) * sizeof f.roots[0]);
    go_through(&f, true);
    for (f.grown = true; f.grown;) {
      f.grown = false;
      go_through(&f, false);
    }
    for (uint32_t i = 0; i < count; i++)
      operands[i] = (uint8_t)((has(f.decides, i) ? AX_DECIDES_ACTS : 0) | (has(f.results, i) ? AX_DECIDES_RESULTS : 0));
  }
  ax_free(f.slots);
  ax_free(f.contents);
  ax_free(f.decides);
  ax_free(f.results);
  ax_free(f.roots);
  return there ? AX_OK : ax_out_of_memory(0);
}

/* --- A program --- */

typedef struct walk {
  const ax_decides *kernels;
  uint32_t kernel_count, width;
  uint64_t *acts, *results, *loops;
} walk;

static bool holds_kernel(const ax_eqn *eqn) {
  const ax_program *held;
  if (eqn->prim == &ax_prim_kernel_call) return true;
  for (uint32_t k = 0; (held = ax_eqn_program(eqn, k)) != NULL; k++)
    if (ax_program_holds(held, &ax_prim_kernel_call)) return true;
  return false;
}

static ax_status walk_program(walk *w, const ax_program *program, uint64_t *sets);

static void decide_by(const walk *w, uint64_t *set, const ax_eqn *eqn, uint32_t operand, const uint64_t *around) {
  (void)take(set, around + (size_t)eqn->in[operand] * w->width, w->width);
}

/* An input's set, from the operand that it is; or from all, where `any` of them may be it, or it is made of them. */
static void enter(const walk *w, const ax_eqn *eqn, ax_region_link link, bool any, uint64_t *input, const uint64_t *around) {
  for (uint32_t i = 0; i < eqn->in_count; i++)
    if (any || link.how == AX_LINK_OWN || link.number == i) (void)take(input, around + (size_t)eqn->in[i] * w->width, w->width);
}

/* What the operands of a kernel decide, in each of its visits. */
static void decide_kernel(const walk *w, const ax_eqn *eqn, const uint64_t *sets) {
  for (uint32_t k = 0; k < w->kernel_count; k++)
    for (uint32_t i = 0; w->kernels[k].eqn == eqn && i < eqn->in_count; i++) {
      if ((w->kernels[k].operands[i] & AX_DECIDES_ACTS) != 0) decide_by(w, w->acts, eqn, i, sets);
      if ((w->kernels[k].operands[i] & AX_DECIDES_RESULTS) != 0) decide_by(w, w->results, eqn, i, sets);
    }
}

/* Program k of an equation; a loop's carries go round until nothing grows. */
static ax_status walk_held(walk *w, const ax_eqn *eqn, uint32_t k, bool any, uint64_t *around) {
  const ax_program *held = ax_eqn_program(eqn, k);
  uint64_t *sets = ax_calloc((size_t)held->value_count * w->width + 1, sizeof sets[0]);
  if (sets == NULL) return ax_out_of_memory(0);
  for (uint32_t i = 0; i < held->in_count; i++)
    enter(w, eqn, ax_region_link_in(eqn, k, i), any, sets + (size_t)i * w->width, around);
  ax_status status = AX_OK;
  for (bool grown = true; grown && status == AX_OK;) {
    grown = false;
    status = walk_program(w, held, sets);
    for (uint32_t o = 0; o < held->out_count && status == AX_OK; o++) {
      const uint32_t input = ax_region_link_out(eqn, k, o).carry;
      if (input != AX_NONE)
        grown = take(sets + (size_t)input * w->width, sets + (size_t)held->outs[o] * w->width, w->width) || grown;
    }
  }
  for (uint32_t o = 0; o < held->out_count && status == AX_OK; o++) {
    const ax_region_link link = ax_region_link_out(eqn, k, o);
    for (uint32_t r = 0; r < eqn->out_count; r++)
      if (link.how == AX_LINK_OWN || link.number == r)
        (void)take(around + (size_t)(eqn->out + r) * w->width, sets + (size_t)held->outs[o] * w->width, w->width);
  }
  ax_free(sets);
  return status;
}

/* Each result from all operands. */
static void flow_through(const walk *w, const ax_eqn *eqn, uint64_t *sets) {
  for (uint32_t i = 0; i < eqn->in_count; i++)
    for (uint32_t k = 0; k < eqn->out_count; k++)
      (void)take(sets + (size_t)(eqn->out + k) * w->width, sets + (size_t)eqn->in[i] * w->width, w->width);
}

/* A loop without a length, whose first program says whether it goes on: any operand may decide on the next round, and be handed on
   to it. */
static ax_status walk_until(walk *w, const ax_eqn *eqn, uint64_t *around) {
  ax_status status = walk_held(w, eqn, 1, true, around);
  flow_through(w, eqn, around);
  const bool kernel = holds_kernel(eqn);
  for (uint32_t i = 0; i < eqn->in_count; i++) decide_by(w, kernel ? w->acts : w->loops, eqn, i, around);
  return status;
}

/* Walks an equation that holds programs. Where one of several programs runs, the first operand chooses it, so it decides. */
static ax_status walk_regions(walk *w, const ax_eqn *eqn, uint64_t *around) {
  if (eqn->prim->runs == AX_RUNS_UNTIL) return walk_until(w, eqn, around);
  const bool branches = eqn->prim->runs == AX_RUNS_ONE;
  ax_status status = AX_OK;
  if (branches) decide_by(w, holds_kernel(eqn) ? w->acts : w->loops, eqn, 0, around);
  for (uint32_t k = 0; ax_eqn_program(eqn, k) != NULL && status == AX_OK; k++) status = walk_held(w, eqn, k, false, around);
  for (uint32_t k = 0; k < eqn->out_count && branches; k++)
    (void)take(around + (size_t)(eqn->out + k) * w->width, around + (size_t)eqn->in[0] * w->width, w->width);
  return status;
}

/* sets: by value; of the inputs as they come. */
static ax_status walk_program(walk *w, const ax_program *program, uint64_t *sets) {
  for (uint32_t e = 0; e < program->eqn_count; e++) {
    const ax_eqn *eqn = &program->eqns[e];
    if (eqn->prim == &ax_prim_kernel_call) decide_kernel(w, eqn, sets);
    if (eqn->prim != &ax_prim_kernel_call && ax_eqn_program(eqn, 0) != NULL)
      AX_TRY(walk_regions(w, eqn, sets));
    else
      flow_through(w, eqn, sets);
  }
  return AX_OK;
}

ax_status ax_decides_of_program(const ax_program *program, const ax_decides *kernels, uint32_t kernel_count, uint8_t *inputs) {
  walk w = {.kernels = kernels, .kernel_count = kernel_count, .width = program->in_count / 64 + 1};
  uint64_t *sets = ax_calloc((size_t)program->value_count * w.width + 1, sizeof sets[0]);
  uint64_t *decided = ax_calloc((size_t)3 * w.width, sizeof decided[0]);
  ax_status status = sets == NULL || decided == NULL ? ax_out_of_memory(0) : AX_OK;
  for (uint32_t i = 0; i < program->in_count && status == AX_OK; i++) put(sets + (size_t)i * w.width, i);
  w.acts = decided;
  if (status == AX_OK) w.results = w.acts + w.width, w.loops = w.results + w.width;
  if (status == AX_OK) status = walk_program(&w, program, sets);
  for (uint32_t i = 0; i < program->in_count && status == AX_OK; i++)
    inputs[i] = (uint8_t)((has(w.acts, i) ? AX_DECIDES_ACTS : 0) | (has(w.results, i) ? AX_DECIDES_RESULTS : 0) |
                          (has(w.loops, i) ? AX_DECIDES_LOOPS : 0));
  ax_free(sets);
  ax_free(decided);
  return status;
}
