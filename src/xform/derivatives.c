/* grad, jvp and hvp of functions inside a trace: each transforms the function's program and calls the result once. */
#include "xform/in_trace.h"

/* --- grad --- */

static void grad(const char *what, bool with_value, ax_fn function, ax_args wrt, const ax_value *in, ax_value *out) {
  ax_traced f;
  ax_program *transformed = NULL;
  bool ready = ax_traced_init(&f, what, function, in, NULL, 0);
  ready = ax_traced_choose(&f, wrt) && ready;
  uint32_t out_count = f.by_count + (with_value ? function.out_count : 0);
  (void)ax_take_operands(NULL, 0, out, out_count);
  if (ready && ax_traced_trace(&f, NULL)) {
    ax_args inputs = ax_traced_inputs(&f);
    ax_status status = ax_check_loss(f.body.program);
    if (status == AX_OK && !ax_failed())
      status = with_value ? ax_program_value_and_grad(f.body.program, inputs, &transformed)
                          : ax_program_grad(f.body.program, inputs, &transformed);
    ax_traced_call(&f, status, transformed, NULL, 0, out, out_count);
  }
  ax_traced_deinit(&f);
}

void ax_value_and_grad(ax_fn f, ax_args wrt, const ax_value *in, ax_value *out) { grad("value_and_grad", true, f, wrt, in, out); }

void ax_grad(ax_fn f, ax_args wrt, const ax_value *in, ax_value *out) { grad("grad", false, f, wrt, in, out); }

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
    out_tangents[i] = ax_is_float(type->dtype) ? *tangent++ : ax_zeros_of(type);
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

void ax_jvp(ax_fn function, ax_args wrt, const ax_value *in, const ax_value *tangents, ax_value *out, ax_value *out_tangents) {
  ax_traced f;
  bool ready = ax_traced_init(&f, "jvp", function, in, NULL, 0) && ax_traced_choose(&f, wrt);
  const ax_value *fit = ready ? fit_tangents(&f, "tangent", tangents) : NULL;
  (void)ax_take_operands(NULL, 0, out, function.out_count);
  (void)ax_take_operands(NULL, 0, out_tangents, function.out_count);
  if (fit != NULL && ax_traced_trace(&f, NULL)) {
    const ax_value *made = call_jvp(&f, AX_OK, f.body.program, fit);
    if (made != NULL) spread_tangents(f.body.program, made, out, out_tangents);
  }
  ax_traced_deinit(&f);
}

/* Forward over reverse: the gradient's tangent. */
void ax_hvp(ax_fn function, ax_args wrt, const ax_value *in, const ax_value *vectors, ax_value *gradients, ax_value *products) {
  ax_traced f;
  bool ready = ax_traced_init(&f, "hvp", function, in, NULL, 0);
  ready = ax_traced_choose(&f, wrt) && ready;
  const ax_value *fit = ready ? fit_tangents(&f, "vector", vectors) : NULL;
  if (gradients != NULL) (void)ax_take_operands(NULL, 0, gradients, f.by_count);
  (void)ax_take_operands(NULL, 0, products, f.by_count);
  if (fit != NULL && ax_traced_trace(&f, NULL)) {
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
