/* Reverse differentiation: linearize, transpose the linear half, and join both in one program.

     x.. -> primal -> y, residual..          residual.., 1 -> tangent transposed -> dy/dx..

   The forward computation stands in the result once: the gradient takes its residuals from it. */
#include "prim/bind.h"
#include "xform/xform.h"

typedef struct halves {
  ax_program *primal, *transposed;
  uint32_t residual_count;
} halves;

static void halves_deinit(halves *h) {
  ax_program_release(h->primal);
  ax_program_release(h->transposed);
}

ax_status ax_check_loss(const ax_program *program) {
  if (program->out_count == 0) return ax_error(AX_INVALID_ARGUMENT, "the first result must be a float scalar; there is no result");
  const ax_type *type = ax_program_out_type(program, 0);
  if (ax_is_complex(type->dtype))
    return ax_error(AX_INVALID_ARGUMENT,
                    "the first result must be a float scalar; it is %s. vjp differentiates complex results: by a holomorphic "
                    "function with the cotangent 1",
                    ax_type_string(type, &program->axes));
  if (type->rank == 0 && ax_is_differentiable(type->dtype)) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "the first result must be a float scalar; it is %s", ax_type_string(type, &program->axes));
}

/* The tangent program of the first result alone, transposed. */
static ax_status split(const ax_program *program, const bool *wrt, ax_arena *arena, halves *h) {
  ax_program *tangent;
  ax_want *want = ax_arena_alloc(arena, program->out_count * sizeof want[0]);
  if (want == NULL) return ax_out_of_memory(program->out_count * sizeof want[0]);
  want[0] = AX_WANT_ALWAYS;
  AX_TRY(ax_linearize_program(program, wrt, want, NULL, &h->primal, &tangent, &h->residual_count));
  ax_args linear = AX_RANGE(h->residual_count, tangent->in_count - h->residual_count);
  ax_status status = ax_program_transpose(tangent, linear, &h->transposed);
  ax_program_release(tangent);
  return status;
}

/* primal, then transposed on its residuals and 1. */
static ax_status join(const ax_program *program, const halves *h, bool with_values, ax_arena *arena, ax_program **out) {
  uint32_t y_count = program->out_count, grad_count = h->transposed->out_count, kept = with_values ? y_count : 0;
  size_t bytes = ((size_t)program->in_count + h->primal->out_count + 1 + y_count + grad_count) * sizeof(ax_value);
  ax_value *in = ax_arena_alloc(arena, bytes);
  if (in == NULL) return ax_out_of_memory(bytes);
  ax_value *made = in + program->in_count, *outs = made + h->primal->out_count + 1;
  ax_builder builder;
  ax_builder_begin(&builder, &program->axes);
  for (uint32_t i = 0; i < program->in_count; i++) in[i] = ax_builder_input(&builder, &program->types[i]);
  ax_call(h->primal, AX_LIST(program->in_count, in), AX_LIST(h->primal->out_count, made));
  ax_type seed = ax_typeof(made[0]);
  seed = ax_dual(&seed);
  made[h->primal->out_count] = ax_filled(&seed, 1);
  ax_call(h->transposed, AX_LIST(h->residual_count + 1, made + y_count), AX_LIST(grad_count, outs + kept));
  for (uint32_t i = 0; i < kept; i++) outs[i] = made[i];
  return ax_finish_clean(&builder, outs, kept + grad_count, out);
}

static ax_status differentiate(const ax_program *program, const bool *wrt, bool with_values, ax_arena *arena,
                               ax_program **out) {
  halves h = {0};
  ax_program *joined = NULL;
  ax_status status = split(program, wrt, arena, &h);
  if (status == AX_OK) status = join(program, &h, with_values, arena, &joined);
  if (status == AX_OK) status = ax_program_simplify(joined, out);
  ax_program_release(joined);
  halves_deinit(&h);
  return status;
}

static ax_status grad(const ax_program *program, ax_args wrt, bool with_values, ax_program **out) {
  *out = NULL;
  AX_TRY(ax_require(program, "program"));
  ax_status scalar = ax_check_loss(program);
  if (scalar != AX_OK) return ax_error_context(scalar, "%s: ", with_values ? "value_and_grad" : "grad");
  if (wrt.count == 0) return ax_error(AX_INVALID_ARGUMENT, "grad: there is nothing to take derivatives by");
  bool *mask;
  AX_TRY(ax_wrt_mask(program, wrt, &mask));
  ax_arena arena = {0};
  ax_status status = differentiate(program, mask, with_values, &arena, out);
  ax_arena_deinit(&arena);
  ax_free(mask);
  return status;
}

ax_status ax_program_grad(const ax_program *program, ax_args wrt, ax_program **out) { return grad(program, wrt, false, out); }

ax_status ax_program_value_and_grad(const ax_program *program, ax_args wrt, ax_program **out) {
  return grad(program, wrt, true, out);
}
