/* ax_run and ax_run_start: arguments checked and held, laid out, memory for results.

   A call goes on at once, on the caller's thread, when its arguments are there and nobody waits for them longer than a lock takes: no
   object is made for it. Otherwise, and when it was only to be started and is worth a thread, it becomes a pending run. */
#include "exec/call.h"

#include <string.h>

#include "exec/exec.h"
#include "exec/float_mode.h"
#include "exec/pending.h"

/* --- Arguments --- */

enum { most_named = 5 };

void ax_mismatch(ax_mismatches *all, uint32_t index, const ax_type *want, const ax_type *got, const char *but) {
  if (all->count++ < most_named)
    ax_text_add(&all->text, "\n  argument %u: the program takes %s, got %s%s", index, ax_type_string(want, NULL),
                got != NULL ? ax_type_string(got, NULL) : "nothing", but);
}

ax_status ax_mismatches_report(ax_mismatches *all, const char *who, uint32_t arguments) {
  if (all->count == 0) return AX_OK;
  if (all->count > most_named) ax_text_add(&all->text, "\n  ... and %u more", all->count - most_named);
  ax_status status = ax_error(AX_INVALID_ARGUMENT, "%s: %u of %u arguments do not match:%s", who, all->count, arguments,
                              all->text.data != NULL ? all->text.data : "");
  ax_text_deinit(&all->text);
  return status;
}

static ax_status check_arguments(const ax_executable *e, ax_array *const *in) {
  ax_mismatches wrong = {0};
  for (uint32_t i = 0; i < e->plan->in_count; i++) {
    const ax_type *want = ax_program_in_type(e->program, i);
    const ax_type *got = in != NULL && in[i] != NULL ? &in[i]->layout->type : NULL;
    bool gone = got != NULL && ax_array_gone(in[i]), foreign = got != NULL && in[i]->layout->runtime != e->runtime;
    if (got != NULL && !gone && !foreign && got->dtype == want->dtype && ax_same_shape(got, want)) continue;
    ax_mismatch(&wrong, i, want, got, gone ? ", which was donated to an earlier run" : foreign ? " of another runtime" : "");
  }
  return ax_mismatches_report(&wrong, "run", e->plan->in_count);
}

ax_status ax_call_check_counts(const ax_executable *e, const char *who, uint32_t in_count, uint32_t out_count) {
  if (in_count == e->plan->in_count && out_count == e->plan->out_count) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "%s: the program takes %u arguments and gives %u results, not %u and %u", who, e->plan->in_count,
                  e->plan->out_count, in_count, out_count);
}

void ax_call_let_go(const ax_executable *e, ax_array *const *in, uint32_t count, bool began) {
  for (uint32_t i = 0; i < count; i++) {
    if (!e->donate[i]) ax_array_leave(in[i]);
    else if (!began) ax_array_give_back(in[i]);
  }
}

ax_status ax_call_refuse_twice(const ax_executable *e, ax_array *const *in, uint32_t i) {
  uint32_t k = 0;
  while (k == i || in[k] != in[i]) k++;
  uint32_t first = i < k ? i : k, second = i < k ? k : i;
  return ax_error(AX_INVALID_ARGUMENT, "run: argument %u is donated, but the same array is argument %u too: %s",
                  e->donate[first] ? first : second, e->donate[first] ? second : first, ax_type_string(&in[i]->layout->type, NULL));
}

typedef enum holding { HELD, NOT_YET, FAILED } holding;

/* Everything is made. From here on no other thread takes the arguments' memory, nor uses that of donated ones. NOT_YET: somebody uses what
   is donated, or it is an argument twice. */
static holding hold(const ax_executable *e, ax_array *const *in, ax_status *status) {
  *status = AX_OK;
  for (uint32_t i = 0; i < e->plan->in_count; i++) {
    const ax_pending *maker = in[i]->maker;
    if (maker != NULL && ax_pending_over(maker)) *status = ax_array_wait(in[i]);
    bool made = maker == NULL || (ax_pending_over(maker) && *status == AX_OK);
    if (made && (e->donate[i] ? ax_array_take(in[i]) : ax_array_use(in[i]))) continue;
    ax_call_let_go(e, in, i, false);
    return *status == AX_OK ? NOT_YET : FAILED;
  }
  return HELD;
}

/* --- One run --- */

ax_status ax_call_make_arrays(ax_executable *e, ax_array **out) {
  for (uint32_t k = 0; k < e->plan->out_count; k++) AX_TRY(ax_array_create(e->results[k].layout, NULL, &out[k]));
  return AX_OK;
}

void ax_call_drop_arrays(const ax_executable *e, ax_array **out) {
  for (uint32_t k = 0; k < e->plan->out_count; k++) {
    ax_array_release(out[k]);
    out[k] = NULL;
  }
}

typedef struct call {
  ax_executable *e;
  ax_parts **inputs;  /* retained: laid out as the program wants them */
  ax_parts **outputs; /* retained, until the results have them */
} call;

static ax_status lay_out_inputs(call *c, ax_array *const *in) {
  for (uint32_t i = 0; i < c->e->plan->in_count; i++)
    AX_TRY(ax_parts_lay_out(in[i]->parts, in[i]->layout, c->e->wanted[i], c->e->donate[i] ? AX_LAY_WRITTEN : AX_LAY_READ, &c->inputs[i]));
  return AX_OK;
}

/* A result's parts are its own, or those of the donated input that it is written over. */
static ax_status make_outputs(call *c) {
  for (uint32_t k = 0; k < c->e->plan->out_count; k++) {
    const ax_result *result = &c->e->results[k];
    if (result->donated != AX_NONE) c->outputs[k] = ax_parts_retain(c->inputs[result->donated]);
    else AX_TRY(ax_parts_create(c->e->runtime, result->layout, &c->outputs[k]));
  }
  return AX_OK;
}

/* Donated inputs are gone, whether results live in their memory or not. */
static void take_donations(const ax_executable *e, ax_array *const *in) {
  for (uint32_t i = 0; i < e->plan->in_count; i++) {
    if (!e->donate[i]) continue;
    ax_parts_release(in[i]->parts);
    in[i]->parts = NULL;
  }
}

static ax_status run(call *c, ax_array *const *in, uint64_t number, bool *began) {
  AX_TRY(lay_out_inputs(c, in));
  AX_TRY(make_outputs(c));
  return ax_execute(c->e, c->inputs, c->outputs, number, began);
}

ax_status ax_call_perform(ax_executable *e, ax_array *const *in, ax_array *const *out, uint64_t number, bool *began) {
  ax_parts *few[64];
  uint32_t in_count = e->plan->in_count, out_count = e->plan->out_count;
  size_t count = (size_t)in_count + out_count;
  ax_parts **parts = count <= AX_COUNT(few) ? few : ax_alloc(count * sizeof parts[0]);
  *began = false;
  if (parts == NULL) return ax_out_of_memory(count * sizeof parts[0]);
  memset(parts, 0, count * sizeof parts[0]);
  call c = {e, parts, parts + in_count};
  ax_status status = run(&c, in, number, began);
  if (*began) take_donations(e, in);
  for (uint32_t k = 0; k < out_count; k++) {
    if (status == AX_OK) out[k]->parts = c.outputs[k];
    else ax_parts_release(c.outputs[k]);
  }
  for (uint32_t i = 0; i < in_count; i++) ax_parts_release(c.inputs[i]);
  if (parts != few) ax_free(parts);
  return status;
}

/* Everything is held. */
static ax_status run_now(ax_executable *e, ax_array *const *in, ax_array **out) {
  bool began = false;
  ax_float_mode caller = ax_float_mode_enter();
  ax_status status = ax_call_make_arrays(e, out);
  if (status == AX_OK) status = ax_call_perform(e, in, out, 0, &began);
  ax_call_let_go(e, in, e->plan->in_count, began);
  ax_float_mode_leave(caller);
  return status;
}

/* --- Calls --- */

static ax_status start(ax_executable *e, ax_array *const *in, ax_array **out, bool at_once, ax_pending **pending) {
  ax_status status;
  bool worth_a_thread = !at_once && e->threaded && ax_workers_any(e->runtime->workers);
  *pending = NULL;
  holding held = worth_a_thread ? NOT_YET : hold(e, in, &status);
  if (held == NOT_YET) return ax_pending_start(e, in, out, pending);
  return held == HELD ? run_now(e, in, out) : status;
}

static ax_status check_call(const ax_executable *e, ax_array *const *in, uint32_t in_count, ax_array **out, uint32_t out_count) {
  for (uint32_t k = 0; k < out_count; k++) out[k] = NULL;
  AX_TRY(ax_require(e, "executable"));
  AX_TRY(ax_call_check_counts(e, "run", in_count, out_count));
  return check_arguments(e, in);
}

ax_status ax_run(ax_executable *e, uint32_t in_count, ax_array *const *in, uint32_t out_count, ax_array **out) {
  ax_pending *pending;
  AX_TRY(check_call(e, in, in_count, out, out_count));
  ax_status status = start(e, in, out, true, &pending);
  if (pending != NULL) status = ax_pending_wait(pending);
  ax_pending_release(pending);
  if (status != AX_OK) ax_call_drop_arrays(e, out);
  return status;
}

ax_status ax_run_start(ax_executable *e, uint32_t in_count, ax_array *const *in, uint32_t out_count, ax_array **out) {
  ax_pending *pending;
  AX_TRY(check_call(e, in, in_count, out, out_count));
  ax_status status = start(e, in, out, false, &pending);
  ax_pending_release(pending);
  if (status != AX_OK) ax_call_drop_arrays(e, out);
  return status;
}

ax_status ax_array_wait(const ax_array *array) {
  AX_TRY(ax_require(array, "array"));
  return array->maker != NULL ? ax_pending_wait(array->maker) : AX_OK;
}

bool ax_array_is_ready(const ax_array *array) {
  return array != NULL && (array->maker == NULL || ax_pending_over(array->maker));
}
