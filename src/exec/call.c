/* ax_run: arguments checked and laid out, memory for results, and the array objects at the end. */
#include <string.h>

#include "exec/exec.h"

enum { most_named = 5 };

typedef struct call {
  ax_executable *e;
  ax_array **laid_out; /* retained: the inputs in the program's layout */
  void **inputs, **outputs;
} call;

/* What is donated must be that argument alone: its memory is written. */
static ax_status check_donations(const ax_executable *e, ax_array *const *in) {
  for (uint32_t i = 0; i < e->plan->in_count; i++)
    for (uint32_t k = 0; e->donate[i] && k < e->plan->in_count; k++)
      if (k != i && in[k] == in[i])
        return ax_error(AX_INVALID_ARGUMENT, "run: argument %u is donated, but the same array is argument %u too: %s", i, k,
                        ax_type_string(&in[i]->type, NULL));
  return AX_OK;
}

static ax_status check_arguments(const ax_executable *e, ax_array *const *in) {
  ax_text text = {0};
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < e->plan->in_count; i++) {
    const ax_type *want = ax_program_in_type(e->plan->program, i);
    const ax_type *got = in != NULL && in[i] != NULL ? &in[i]->type : NULL;
    bool gone = got != NULL && atomic_load(&in[i]->users) < 0, foreign = got != NULL && in[i]->runtime != e->runtime;
    if (got != NULL && !gone && !foreign && got->dtype == want->dtype && ax_same_shape(got, want)) continue;
    if (wrong++ < most_named)
      ax_text_add(&text, "\n  argument %u: the program takes %s, got %s%s", i, ax_type_string(want, NULL),
                  got != NULL ? ax_type_string(got, NULL) : "nothing",
                  gone ? ", which was donated to an earlier run" : foreign ? " of another runtime" : "");
  }
  if (wrong == 0) return check_donations(e, in);
  if (wrong > most_named) ax_text_add(&text, "\n  ... and %u more", wrong - most_named);
  ax_status status = ax_error(AX_INVALID_ARGUMENT, "run: %u of %u arguments do not match:%s", wrong, e->plan->in_count,
                              text.data != NULL ? text.data : "");
  ax_text_deinit(&text);
  return status;
}

/* Of the first `count` arguments. */
static void let_go(const ax_executable *e, ax_array *const *in, uint32_t count, bool began) {
  for (uint32_t i = 0; i < count; i++) {
    if (!e->donate[i]) ax_array_leave(in[i]);
    else if (!began) ax_array_give_back(in[i]);
  }
}

/* From here on no other thread takes the arguments' memory, nor uses that of donated ones. */
static ax_status hold(const ax_executable *e, ax_array *const *in) {
  for (uint32_t i = 0; i < e->plan->in_count; i++) {
    if (e->donate[i] ? ax_array_take(in[i]) : ax_array_use(in[i])) continue;
    let_go(e, in, i, false);
    return ax_error(AX_INVALID_ARGUMENT, "run: argument %u, %s, is %s", i, ax_type_string(&in[i]->type, NULL),
                    e->donate[i] ? "donated, but another thread uses it or has donated it" : "donated by another thread");
  }
  return AX_OK;
}

static ax_status lay_out_inputs(call *c, ax_array *const *in) {
  const ax_plan *plan = c->e->plan;
  for (uint32_t i = 0; i < plan->in_count; i++) {
    AX_TRY(ax_array_relayout(in[i], &plan->mesh, &plan->buffers[plan->in[i]].spec, &c->laid_out[i]));
    c->inputs[i] = c->laid_out[i]->data;
  }
  return AX_OK;
}

static ax_status make_outputs(call *c, ax_array **out) {
  const ax_executable *e = c->e;
  for (uint32_t k = 0; k < e->plan->out_count; k++) {
    const ax_result *result = &e->results[k];
    void *donated = result->donated != AX_NONE ? c->inputs[result->donated] : NULL;
    AX_TRY(ax_array_create(e->runtime, &e->plan->mesh, &result->spec, &result->type, donated, &out[k]));
    c->outputs[k] = out[k]->data;
  }
  return AX_OK;
}

/* Donated inputs are gone; those whose memory no result took are given back to the pool. Results of a failed run take nothing. */
static void take_donations(call *c, ax_array *const *in, bool failed) {
  const ax_executable *e = c->e;
  for (uint32_t i = 0; i < e->plan->in_count; i++) {
    if (!e->donate[i]) continue;
    bool taken = false;
    for (uint32_t k = 0; k < e->plan->out_count; k++) taken = taken || (e->results[k].donated == i && !failed);
    if (taken) c->laid_out[i]->data = NULL;
    ax_pool_free(e->runtime, in[i]->data, in[i]->bytes);
    in[i]->data = NULL;
  }
}

static ax_status run(call *c, ax_array *const *in, ax_array **out, bool *began) {
  AX_TRY(lay_out_inputs(c, in));
  AX_TRY(make_outputs(c, out));
  ax_status status = ax_execute(c->e, c->inputs, c->outputs, began);
  if (*began) take_donations(c, in, status != AX_OK);
  return status;
}

/* A result that was to live in an input's memory does not own it when the run failed. */
static void drop_outputs(const call *c, ax_array **out) {
  for (uint32_t k = 0; k < c->e->plan->out_count; k++) {
    if (out[k] != NULL && c->e->results[k].donated != AX_NONE) out[k]->data = NULL;
    ax_array_release(out[k]);
    out[k] = NULL;
  }
}

ax_status ax_run(ax_executable *e, ax_array *const *in, uint32_t in_count, ax_array **out, uint32_t out_count) {
  for (uint32_t k = 0; k < out_count; k++) out[k] = NULL;
  AX_TRY(ax_require(e, "executable"));
  if (in_count != e->plan->in_count || out_count != e->plan->out_count)
    return ax_error(AX_INVALID_ARGUMENT, "run: the program takes %u arguments and gives %u results, not %u and %u",
                    e->plan->in_count, e->plan->out_count, in_count, out_count);
  AX_TRY(check_arguments(e, in));
  void *few[64];
  size_t words = 2 * (size_t)in_count + out_count;
  void **memory = words <= AX_COUNT(few) ? few : ax_alloc(words * sizeof memory[0]);
  if (memory == NULL) return ax_out_of_memory(words * sizeof memory[0]);
  memset(memory, 0, words * sizeof memory[0]);
  call c = {e, (ax_array **)memory, memory + in_count, memory + 2 * in_count};
  ax_status status = hold(e, in);
  if (status == AX_OK) {
    bool began = false;
    status = run(&c, in, out, &began);
    let_go(e, in, in_count, began);
  }
  if (status != AX_OK) drop_outputs(&c, out);
  for (uint32_t i = 0; i < in_count; i++) ax_array_release(c.laid_out[i]);
  if (memory != few) ax_free(memory);
  return status;
}
