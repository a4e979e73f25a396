/* grad, jvp and hvp of functions inside a trace: each transforms the function's program and calls the result once. */
#include "xform/in_trace.h"

/* --- grad --- */

static void grad(const char *what, bool with_value, ax_fn function, ax_args wrt, ax_in_and_out l) {
  ax_traced f;
  ax_program *transformed = NULL;
  bool ready = ax_traced_begin(&f, what, function, wrt, l.in_count, l.in);
  uint32_t out_count = f.by_count + (with_value ? function.out_count : 0);
  ready = ax_traced_results(what, l.out_count, out_count, l.out) && ready;
  if (ready && ax_traced_trace(&f, NULL)) {
    ax_args inputs = ax_traced_inputs(&f);
    ax_status status = ax_check_loss(f.body.program);
    if (status == AX_OK && !ax_failed())
      status = with_value ? ax_program_value_and_grad(f.body.program, inputs, &transformed)
                          : ax_program_grad(f.body.program, inputs, &transformed);
    ax_traced_call(&f, status, transformed, NULL, 0, l.out, out_count);
  }
  ax_traced_deinit(&f);
}

void (ax_value_and_grad)(ax_fn f, ax_args wrt, uint32_t in_count, const ax_value *in, uint32_t out_count, ax_value *out) {
  grad("value_and_grad", true, f, wrt, (ax_in_and_out){in_count, in, out_count, out});
}

void (ax_grad)(ax_fn f, ax_args wrt, uint32_t in_count, const ax_value *in, uint32_t out_count, ax_value *out) {
  grad("grad", false, f, wrt, (ax_in_and_out){in_count, in, out_count, out});
}

void ax_call_differentiated(const ax_value *in, ax_value *out, void *differentiated) {
  const ax_differentiated *d = differentiated;
  const char *what = d->with_value ? "value_and_grad" : "grad";
  const bool counted = d->wrt.list != NULL || d->wrt.count != UINT32_MAX;
  const uint32_t wrt_count = d->wrt.count <= d->body.in_count ? d->wrt.count : d->body.in_count; /* more is refused by grad */
  const uint32_t out_count = (d->with_value ? d->body.out_count : 0) + wrt_count;
  if (counted) grad(what, d->with_value, d->body, d->wrt, (ax_in_and_out){d->body.in_count, in, out_count, out});
  else ax_reject_as(what, "a function that is passed on needs the numbers of its operands: AX_FIRST or AX_ARGS, not AX_ALL_ARGS");
  if (d->call != NULL) ax_stamp(d->call);
}

/* --- jvp, hvp --- */

/* The tangents given for those chosen, made to agree with them; NULL: the trace has failed. */
static ax_value *fit_tangents(const ax_traced *f, const char *kind, const ax_value *tangents) {
  ax_value *fit = ax_trace_alloc(f->by_count * sizeof fit[0]);
  for (uint32_t k = 0; k < f->by_count && fit != NULL; k++) {
    ax_type type = ax_tangent(&f->types[f->by[k]]);
    fit[k] = tangents[k];
    if (!ax_fit_tangent(f->what, "operand", kind, f->by[k], &type, ax_all_axes(ax_axes_here()), &fit[k])) return NULL;
  }
  return fit;
}

/* Results that are no floats get zeros for tangents. */
static void spread_tangents(const ax_program *program, const ax_value *made, ax_value *out, ax_value *out_tangents) {
  if (ax_failed()) return;
  const ax_value *tangent = made + program->out_count;
  for (uint32_t i = 0; i < program->out_count; i++) {
    const ax_type *type = ax_program_out_type(program, i);
    out[i] = made[i];
    out_tangents[i] = ax_is_differentiable(type->dtype) ? *tangent++ : ax_zeros_of(type);
  }
}

/* The jvp of `program`, of f's inputs, called on the tangents. Gives its results; NULL: the trace has failed. */
static ax_value *call_jvp(const ax_traced *f, ax_status status, const ax_program *program, const ax_value *tangents) {
  ax_program *transformed = NULL;
  ax_args inputs = ax_traced_inputs(f);
  if (status == AX_OK && !ax_failed()) status = ax_program_jvp(program, inputs, &transformed);
  uint32_t count = transformed != NULL ? transformed->out_count : 0;
  ax_value *made = ax_trace_alloc(count * sizeof made[0]);
  ax_traced_call(f, status, transformed, tangents, f->by_count, made, count);
  return ax_failed() ? NULL : made;
}

void (ax_jvp)(ax_fn function, ax_args wrt, uint32_t in_count, const ax_value *in, uint32_t tangent_count, const ax_value *tangents,
              uint32_t out_count, ax_value *out, uint32_t out_tangent_count, ax_value *out_tangents) {
  ax_traced f;
  bool ready = ax_traced_begin(&f, "jvp", function, wrt, in_count, in);
  ready = ready && ax_list_fits("jvp", "it takes", "tangent", tangent_count, f.by_count);
  const ax_value *fit = ready ? fit_tangents(&f, "tangent", tangents) : NULL;
  ready = ax_traced_results("jvp", out_count, function.out_count, out) && fit != NULL;
  ready = ax_traced_results("jvp", out_tangent_count, function.out_count, out_tangents) && ready;
  if (ready && ax_traced_trace(&f, NULL)) {
    const ax_value *made = call_jvp(&f, AX_OK, f.body.program, fit);
    if (made != NULL) spread_tangents(f.body.program, made, out, out_tangents);
  }
  ax_traced_deinit(&f);
}

/* Forward over reverse: the gradient's tangent. */
void (ax_hvp)(ax_fn function, ax_args wrt, uint32_t in_count, const ax_value *in, uint32_t vector_count, const ax_value *vectors,
              uint32_t gradient_count, ax_value *gradients, uint32_t product_count, ax_value *products) {
  ax_traced f;
  bool ready = ax_traced_begin(&f, "hvp", function, wrt, in_count, in);
  ready = ready && ax_list_fits("hvp", "it takes", "vector", vector_count, f.by_count);
  const ax_value *fit = ready ? fit_tangents(&f, "vector", vectors) : NULL;
  ready = (gradients == NULL || ax_traced_results("hvp", gradient_count, f.by_count, gradients)) && fit != NULL;
  ready = ax_traced_results("hvp", product_count, f.by_count, products) && ready;
  if (ready && ax_traced_trace(&f, NULL)) {
    ax_program *slope = NULL;
    ax_args inputs = ax_traced_inputs(&f);
    ax_status status = ax_check_loss(f.body.program);
    if (status == AX_OK && !ax_failed()) status = ax_program_grad(f.body.program, inputs, &slope);
    const ax_value *made = call_jvp(&f, status, slope, fit);
    for (uint32_t k = 0; k < f.by_count && made != NULL; k++) {
      if (gradients != NULL) gradients[k] = made[k];
      products[k] = made[f.by_count + k];
    }
    ax_program_release(slope);
  }
  ax_traced_deinit(&f);
}
