/* Additions to memory (act.h): which steps of a body they are, and how large their terms are.

     add r, v                        one step that adds
     x = load r; s = x + v; store r, s     a load and a store: no step between them is jumped to or jumps, so that one run of the
                                     load comes with each of the store; nothing else uses x or s. For + there may be
                                     any of `updates`

   That both are of the same elements is seen when the store is done: the views are compared. */
#include <math.h>
#include <string.h>

#include "kernel/machine/agent.h"
#include "kernel/step.h"
#include "prim/prims.h"

/* --- Of the code --- */

static bool jumps(const ax_core_code_step *step) {
  return step->kind == AX_STEP_JUMP || step->kind == AX_STEP_SWITCH || step->kind == AX_STEP_TEST || step->kind == AX_STEP_NEXT ||
         step->kind == AX_STEP_ADVANCE;
}

/* How many operands each slot is, and which steps are jumped to. */
static void count_uses(const ax_core_code *code, uint32_t *uses, bool *entered) {
  for (uint32_t s = 0; s < code->step_count; s++) {
    const ax_core_code_step *step = &code->steps[s];
    for (uint32_t i = 0; i < step->in_count; i++) uses[step->in[i]]++;
    if (step->kind == AX_STEP_SWITCH)
      for (uint32_t t = 0; t < step->target_count; t++) entered[step->targets[t]] = true;
    else if (jumps(step))
      entered[step->target] = true;
  }
}

static bool is_plain_load(const ax_core_code_step *step) {
  const ax_step_access *access = step->kind == AX_STEP_ACT ? ax_step_access_of(step->eqn) : NULL;
  return access != NULL && access->reads && !access->writes && !ax_step_is_masked(step->eqn);
}

static bool is_plain_store(const ax_core_code_step *step, const ax_step_access *access) {
  return access->writes && !access->reads && access->combine == NULL && !ax_step_is_masked(step->eqn);
}

/* What may be done to what was loaded. Products of floats are rounded, and products and sums of bools are none of integers. */
typedef struct update {
  const ax_prim *prim;
  ax_update update;
  bool first_alone; /* what was loaded is the first operand */
  bool floats, bools;
} update;

static const update updates[] = {
    {&ax_prim_add, AX_UPDATE_ADD, false, true, false},  {&ax_prim_sub, AX_UPDATE_ADD, true, true, false},
    {&ax_prim_max, AX_UPDATE_MAX, false, true, true},   {&ax_prim_min, AX_UPDATE_MIN, false, true, true},
    {&ax_prim_mul, AX_UPDATE_MUL, false, false, false}, {&ax_prim_and, AX_UPDATE_AND, false, false, true},
    {&ax_prim_or, AX_UPDATE_OR, false, false, true},    {&ax_prim_xor, AX_UPDATE_XOR, false, false, true}};

/* NULL: it is no such step. */
static const update *update_of(const ax_prim *prim, ax_dtype dtype) {
  const ax_dtype_kind kind = ax_dtype_get(dtype)->kind;
  for (size_t k = 0; k < AX_COUNT(updates); k++) {
    const update *u = &updates[k];
    if (u->prim != prim) continue;
    const bool has = kind == AX_KIND_SIGNED || kind == AX_KIND_UNSIGNED || (kind == AX_KIND_FLOAT && u->floats) ||
                     (kind == AX_KIND_BOOL && u->bools);
    return has ? u : NULL;
  }
  return NULL;
}

typedef struct finder { /* as steps are gone through */
  ax_core_code *code;
  uint32_t *uses;          /* by slot */
  bool *entered;           /* by step */
  uint32_t *made;          /* by slot: the last step so far that makes it; AX_NONE */
  uint32_t (*terms)[2];    /* by step, of additions: where their operands were made, in a straight line to it; AX_NONE */
  uint32_t line;           /* where the present straight line begins */
} finder;

/* The step that makes the slot, in the present straight line; AX_NONE: none such. */
static uint32_t maker_of(const finder *f, uint32_t slot) {
  return f->made[slot] != AX_NONE && f->made[slot] >= f->line ? f->made[slot] : AX_NONE;
}

static const update *made_by(const finder *f, const ax_core_code_step *step) {
  return step->kind == AX_STEP_EVAL && step->out_count == 1 ? update_of(step->eqn->prim, f->code->types[step->out[0]].dtype) : NULL;
}

/* The store's value is a sum of which one term was loaded. */
static void find_load(finder *f, ax_core_code_step *store, const ax_step_access *access) {
  const uint32_t sum = store->in[access->value], maker = maker_of(f, sum);
  const update *u = maker != AX_NONE && f->uses[sum] == 1 ? made_by(f, &f->code->steps[maker]) : NULL;
  if (u == NULL) return;
  const ax_core_code_step *made = &f->code->steps[maker];
  for (uint32_t i = 0; i < (u->first_alone ? 1u : 2u); i++) {
    const uint32_t load = f->terms[maker][i];
    if (load == AX_NONE || f->uses[made->in[i]] != 1 || !is_plain_load(&f->code->steps[load])) continue;
    f->code->steps[load].sum = (ax_code_sum){true, AX_NONE, AX_NONE, (uint8_t)u->update};
    store->sum = (ax_code_sum){true, load, made->in[1 - i], (uint8_t)u->update};
    return;
  }
}

static void look_at_access(finder *f, ax_core_code_step *step) {
  const ax_step_access *access = step->kind == AX_STEP_ACT ? ax_step_access_of(step->eqn) : NULL;
  if (access == NULL) return;
  const update *u = access->combine != NULL ? update_of(access->combine, f->code->types[step->in[0]].dtype) : NULL;
  if (u != NULL && !u->first_alone && !ax_step_is_masked(step->eqn))
    step->sum = (ax_code_sum){true, AX_NONE, step->in[access->value], (uint8_t)u->update};
  else if (is_plain_store(step, access))
    find_load(f, step, access);
}

/* Once through all steps. A line ends before a step that is jumped to, and behind one that jumps, or moves slots. */
static void go_through(finder *f) {
  for (uint32_t s = 0; s < f->code->step_count; s++) {
    ax_core_code_step *step = &f->code->steps[s];
    if (f->entered[s]) f->line = s;
    look_at_access(f, step);
    for (uint32_t i = 0; i < 2 && made_by(f, step) != NULL; i++) f->terms[s][i] = maker_of(f, step->in[i]);
    for (uint32_t k = 0; k < step->out_count; k++) f->made[step->out[k]] = s;
    if (jumps(step) || step->kind == AX_STEP_MOVE) f->line = s + 1;
  }
}

ax_status ax_core_code_find_sums(ax_core_code *code) {
  const size_t slots = (size_t)code->slot_count + 1, steps = (size_t)code->step_count + 1;
  finder f = {.code = code,
              .uses = ax_calloc(slots, sizeof f.uses[0]),
              .entered = ax_calloc(steps, sizeof f.entered[0]),
              .made = ax_alloc(slots * sizeof f.made[0]),
              .terms = ax_alloc(steps * sizeof f.terms[0])};
  const bool there = f.uses != NULL && f.entered != NULL && f.made != NULL && f.terms != NULL;
  if (there) {
    memset(f.made, 0xff, slots * sizeof f.made[0]);
    count_uses(code, f.uses, f.entered);
    go_through(&f);
  }
  ax_free(f.uses);
  ax_free(f.entered);
  ax_free(f.made);
  ax_free(f.terms);
  return there ? AX_OK : ax_out_of_memory(0);
}

/* --- Of an act --- */

static bool same_view(const ax_view *a, const ax_view *b) {
  return a->region == b->region && a->offset == b->offset && a->type.rank == b->type.rank &&
         memcmp(a->type.dims, b->type.dims, a->type.rank * sizeof a->type.dims[0]) == 0 &&
         memcmp(a->strides, b->strides, a->type.rank * sizeof a->strides[0]) == 0;
}

/* The number of twos in a number that is not 0. */
static int twos(double x) {
  int exponent, count = 0;
  const double fraction = frexp(x, &exponent);
  for (uint64_t whole = (uint64_t)ldexp(fabs(fraction), 53); (whole & 1) == 0; whole >>= 1) count++;
  return exponent - 53 + count;
}

static ax_touch_sum sum_of(uint8_t update, ax_dtype dtype, const void *data, int64_t count) {
  if (!ax_is_float(dtype)) return (ax_touch_sum){.bits = AX_SUM_WRAPS, .update = update};
  const ax_float_form form = ax_float_form_of(dtype);
  ax_touch_sum sum = {
      .bits = (uint8_t)(form.fraction + 1), .update = update, .top = (int16_t)ilogb(ax_float_largest(dtype)), .least = AX_SUM_ZERO};
  for (int64_t i = 0; i < count; i++) {
    const double x = ax_number_load(dtype, data, i).f;
    if (ax_update_is_extreme(update)) {
      if (isnan(x)) sum.most = INFINITY;
      if (x == 0) sum.zeros |= signbit(x) ? 2 : 1;
      continue;
    }
    if (!isfinite(x)) sum.most = INFINITY;
    if (!isfinite(x) || x == 0) continue;
    if (twos(x) < sum.least) sum.least = twos(x);
    if (fabs(x) > sum.most) sum.most = fabs(x);
  }
  return sum;
}

static ax_status sum_of_memory(const ax_about *a, uint8_t update, const ax_view *view, ax_touch_sum *out) {
  const ax_dtype dtype = view->type.dtype;
  *out = (ax_touch_sum){.bits = AX_SUM_WRAPS, .update = update};
  if (!ax_is_float(dtype)) return AX_OK;
  unsigned char *data = ax_alloc((size_t)ax_view_bytes(view) + 1);
  if (data == NULL) return ax_out_of_memory(0);
  ax_view_read(view, ax_about_place_of(a, view)->memory, NULL, data, NULL);
  *out = sum_of(update, dtype, data, ax_type_elems(&view->type));
  ax_free(data);
  return AX_OK;
}

/* Marks the last touch, if there was one since there were `before`. */
static void mark(ax_about *a, uint32_t before, ax_touch_sum sum) {
  ax_touches *pool = &a->state->pool;
  if (pool->touch_count > before) pool->touches[pool->touch_count - 1].sum = sum;
}

/* Where the step stores a sum of what another has loaded: whether that was of these elements. */
static bool is_of_loaded(const ax_about *a) {
  const ax_core_code *code = a->state->machine->codes[a->state->machine->cores[a->actor->core].body];
  return same_view(ax_about_view(a, 0), &a->actor->frame.slot[code->steps[a->step->sum.load].in[0]]->view);
}

const ax_cell *ax_about_term(const ax_about *a) {
  const ax_code_sum *part = &a->step->sum;
  if (!part->part || part->update != AX_UPDATE_ADD || part->value == AX_NONE) return NULL;
  return part->load == AX_NONE || is_of_loaded(a) ? a->actor->frame.slot[part->value] : NULL;
}

ax_status ax_about_sum(ax_about *a) {
  const ax_code_sum *part = &a->step->sum;
  const ax_view *view = ax_about_view(a, 0);
  const uint32_t before = a->state->pool.touch_count;
  ax_touch_sum sum;
  const ax_cell *value = part->value != AX_NONE ? a->actor->frame.slot[part->value] : NULL;
  if (part->load != AX_NONE) {
    if (!is_of_loaded(a)) return ax_about_touch(a, view, NULL, true);
  } else {
    AX_TRY(sum_of_memory(a, part->update, view, &sum));
    AX_TRY(ax_about_touch(a, view, NULL, false));
    mark(a, before, sum);
    if (value == NULL) return AX_OK;
  }
  const uint32_t loaded = a->state->pool.touch_count;
  AX_TRY(ax_about_touch(a, view, NULL, true));
  mark(a, loaded, sum_of(part->update, view->type.dtype, value->tensor->data, ax_type_elems(&view->type)));
  return AX_OK;
}
