/* Additions to memory (act.h): which steps of a body they are, and how large their terms are.

     add r, v                        one step that adds
     x = load r; s = x + v; store r, s     a load and a store: no step between them is jumped to or jumps, so that one run of the
                                     load comes with each of the store; nothing else uses x or s

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

static bool has_sums(ax_dtype dtype) {
  const ax_dtype_kind kind = ax_dtype_get(dtype)->kind;
  return kind == AX_KIND_FLOAT || kind == AX_KIND_SIGNED || kind == AX_KIND_UNSIGNED;
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

static bool adds(const ax_core_code_step *step) {
  return step->kind == AX_STEP_EVAL && (step->eqn->prim == &ax_prim_add || step->eqn->prim == &ax_prim_sub);
}

/* The store's value is a sum of which one term was loaded. */
static void find_load(finder *f, ax_core_code_step *store, const ax_step_access *access) {
  const uint32_t sum = store->in[access->value], maker = maker_of(f, sum);
  if (maker == AX_NONE || f->uses[sum] != 1 || !adds(&f->code->steps[maker])) return;
  const ax_core_code_step *made = &f->code->steps[maker];
  for (uint32_t i = 0; i < (made->eqn->prim == &ax_prim_add ? 2u : 1u); i++) {
    const uint32_t load = f->terms[maker][i];
    if (load == AX_NONE || f->uses[made->in[i]] != 1 || !is_plain_load(&f->code->steps[load])) continue;
    f->code->steps[load].sum = (ax_code_sum){true, AX_NONE, AX_NONE};
    store->sum = (ax_code_sum){true, load, made->in[1 - i]};
    return;
  }
}

static void look_at_access(finder *f, ax_core_code_step *step) {
  const ax_step_access *access = step->kind == AX_STEP_ACT ? ax_step_access_of(step->eqn) : NULL;
  if (access == NULL || !has_sums(f->code->types[step->in[0]].dtype)) return;
  if (access->combine == &ax_prim_add && !ax_step_is_masked(step->eqn))
    step->sum = (ax_code_sum){true, AX_NONE, step->in[access->value]};
  else if (is_plain_store(step, access))
    find_load(f, step, access);
}

/* Once through all steps. A line ends before a step that is jumped to, and behind one that jumps, or moves slots. */
static void go_through(finder *f) {
  for (uint32_t s = 0; s < f->code->step_count; s++) {
    ax_core_code_step *step = &f->code->steps[s];
    if (f->entered[s]) f->line = s;
    look_at_access(f, step);
    for (uint32_t i = 0; i < 2 && adds(step); i++) f->terms[s][i] = maker_of(f, step->in[i]);
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

static ax_touch_sum sum_of(ax_dtype dtype, const void *data, int64_t count) {
  if (!ax_is_float(dtype)) return (ax_touch_sum){.bits = AX_SUM_WRAPS};
  const ax_float_form form = ax_float_form_of(dtype);
  ax_touch_sum sum = {.bits = (uint8_t)(form.fraction + 1), .top = (int16_t)ilogb(ax_float_largest(dtype)), .least = AX_SUM_ZERO};
  for (int64_t i = 0; i < count; i++) {
    const double x = ax_number_load(dtype, data, i).f;
    if (!isfinite(x)) sum.most = INFINITY;
    if (!isfinite(x) || x == 0) continue;
    if (twos(x) < sum.least) sum.least = twos(x);
    if (fabs(x) > sum.most) sum.most = fabs(x);
  }
  return sum;
}

static ax_status sum_of_memory(const ax_about *a, const ax_view *view, ax_touch_sum *out) {
  const ax_dtype dtype = view->type.dtype;
  *out = (ax_touch_sum){.bits = AX_SUM_WRAPS};
  if (!ax_is_float(dtype)) return AX_OK;
  unsigned char *data = ax_alloc((size_t)ax_view_bytes(view) + 1);
  if (data == NULL) return ax_out_of_memory(0);
  ax_view_read(view, ax_about_place_of(a, view)->memory, NULL, data, NULL);
  *out = sum_of(dtype, data, ax_type_elems(&view->type));
  ax_free(data);
  return AX_OK;
}

/* Marks the last touch, if there was one since there were `before`. */
static void mark(ax_about *a, uint32_t before, ax_touch_sum sum) {
  ax_touches *pool = &a->state->pool;
  if (pool->touch_count > before) pool->touches[pool->touch_count - 1].sum = sum;
}

ax_status ax_about_sum(ax_about *a) {
  const ax_code_sum *part = &a->step->sum;
  const ax_view *view = ax_about_view(a, 0);
  const uint32_t before = a->state->pool.touch_count;
  ax_touch_sum sum;
  const ax_cell *value = part->value != AX_NONE ? a->actor->frame.slot[part->value] : NULL;
  if (part->load != AX_NONE) {
    const ax_core_code *code = a->state->machine->codes[a->state->machine->cores[a->actor->core].body];
    if (!same_view(view, &a->actor->frame.slot[code->steps[part->load].in[0]]->view)) return ax_about_touch(a, view, NULL, true);
  } else {
    AX_TRY(sum_of_memory(a, view, &sum));
    AX_TRY(ax_about_touch(a, view, NULL, false));
    mark(a, before, sum);
    if (value == NULL) return AX_OK;
  }
  const uint32_t loaded = a->state->pool.touch_count;
  AX_TRY(ax_about_touch(a, view, NULL, true));
  mark(a, loaded, sum_of(view->type.dtype, value->tensor->data, ax_type_elems(&view->type)));
  return AX_OK;
}
