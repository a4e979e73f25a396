/* ax_run: arguments checked and laid out, memory for results, and the array objects at the end. */
#include <string.h>

#include "exec/exec.h"

enum { most_named = 5 };

typedef struct call {
  ax_executable *e;
  ax_parts **inputs;  /* retained: laid out as the program wants them */
  ax_parts **outputs; /* the results' own */
} call;

static ax_status check_arguments(const ax_executable *e, ax_array *const *in) {
  ax_text text = {0};
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < e->plan->in_count; i++) {
    const ax_type *want = ax_program_in_type(e->plan->program, i);
    const ax_type *got = in != NULL && in[i] != NULL ? &in[i]->layout->type : NULL;
    bool gone = got != NULL && atomic_load(&in[i]->users) < 0, foreign = got != NULL && in[i]->runtime != e->runtime;
    if (got != NULL && !gone && !foreign && got->dtype == want->dtype && ax_same_shape(got, want)) continue;
    if (wrong++ < most_named)
      ax_text_add(&text, "\n  argument %u: the program takes %s, got %s%s", i, ax_type_string(want, NULL),
                  got != NULL ? ax_type_string(got, NULL) : "nothing",
                  gone ? ", which was donated to an earlier run" : foreign ? " of another runtime" : "");
  }
  if (wrong == 0) return AX_OK;
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

/* Why argument i could not be held. What is donated must be that argument alone: its memory is written. */
static ax_status refuse(const ax_executable *e, ax_array *const *in, uint32_t i) {
  const char *type = ax_type_string(&in[i]->layout->type, NULL);
  for (uint32_t k = 0; k < i; k++)
    if (in[k] == in[i])
      return ax_error(AX_INVALID_ARGUMENT, "run: argument %u is donated, but the same array is argument %u too: %s",
                      e->donate[k] ? k : i, e->donate[k] ? i : k, type);
  return ax_error(AX_INVALID_ARGUMENT, "run: argument %u, %s, is %s", i, type,
                  e->donate[i] ? "donated, but another thread uses it or has donated it" : "donated by another thread");
}

/* From here on no other thread takes the arguments' memory, nor uses that of donated ones. */
static ax_status hold(const ax_executable *e, ax_array *const *in) {
  for (uint32_t i = 0; i < e->plan->in_count; i++) {
    if (e->donate[i] ? ax_array_take(in[i]) : ax_array_use(in[i])) continue;
    let_go(e, in, i, false);
    return refuse(e, in, i);
  }
  return AX_OK;
}

static ax_status lay_out_inputs(call *c, ax_array *const *in) {
  for (uint32_t i = 0; i < c->e->plan->in_count; i++)
    AX_TRY(ax_parts_lay_out(in[i]->parts, in[i]->layout, c->e->wanted[i], c->e->donate[i], &c->inputs[i]));
  return AX_OK;
}

/* A result's parts are its own, or those of the donated input that it is written over. */
static ax_status make_outputs(call *c, ax_array **out) {
  ax_runtime *runtime = c->e->runtime;
  for (uint32_t k = 0; k < c->e->plan->out_count; k++) {
    const ax_result *result = &c->e->results[k];
    ax_parts *parts;
    if (result->donated != AX_NONE) parts = ax_parts_retain(c->inputs[result->donated]);
    else AX_TRY(ax_parts_create(runtime, result->layout, &parts));
    ax_status status = ax_array_create(runtime, result->layout, parts, &out[k]);
    if (status != AX_OK) ax_parts_release(parts);
    if (status != AX_OK) return status;
    c->outputs[k] = parts;
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

static ax_status run(call *c, ax_array *const *in, ax_array **out, bool *began) {
  AX_TRY(lay_out_inputs(c, in));
  AX_TRY(make_outputs(c, out));
  ax_status status = ax_execute(c->e, c->inputs, c->outputs, began);
  if (*began) take_donations(c->e, in);
  return status;
}

ax_status ax_run(ax_executable *e, ax_array *const *in, uint32_t in_count, ax_array **out, uint32_t out_count) {
  for (uint32_t k = 0; k < out_count; k++) out[k] = NULL;
  AX_TRY(ax_require(e, "executable"));
  if (in_count != e->plan->in_count || out_count != e->plan->out_count)
    return ax_error(AX_INVALID_ARGUMENT, "run: the program takes %u arguments and gives %u results, not %u and %u",
                    e->plan->in_count, e->plan->out_count, in_count, out_count);
  AX_TRY(check_arguments(e, in));
  ax_parts *few[64];
  size_t count = (size_t)in_count + out_count;
  ax_parts **parts = count <= AX_COUNT(few) ? few : ax_alloc(count * sizeof parts[0]);
  if (parts == NULL) return ax_out_of_memory(count * sizeof parts[0]);
  memset(parts, 0, count * sizeof parts[0]);
  call c = {e, parts, parts + in_count};
  ax_status status = hold(e, in);
  if (status == AX_OK) {
    bool began = false;
    status = run(&c, in, out, &began);
    let_go(e, in, in_count, began);
  }
  for (uint32_t k = 0; status != AX_OK && k < out_count; k++) {
    ax_array_release(out[k]);
    out[k] = NULL;
  }
  for (uint32_t i = 0; i < in_count; i++) ax_parts_release(c.inputs[i]);
  if (parts != few) ax_free(parts);
  return status;
}
