/* debug_print: T0[d..].. ->                        writes its format, with the operands in its fields, and a newline
   ordered_debug_print: T0[d..].. ->                the same, one after the other

     = debug_print[axes=(d,) format="step {}: loss {:.3f}"] i loss

   Parameters: axes, as io_callback's; format: text, and as many fields as operands. A field is {} or
   {:[width][.precision][type]}, type one of e f g for floats, d x for integers; {{ and }} are braces.
   Errors: a malformed format, or one that does not fit the operands; operands as io_callback's.
   The text goes to the runtime's print function (ax_runtime_options.print); without one, nothing is compiled. Order and batching
   as io_callback. Derivatives ignore it: it stays in the forward part, and a transpose has none. */
#include "control/format.h"
#include "control/host_call.h"
#include "machine/float_mode.h"
#include "plan/lower.h"
#include "plan/plan.h"
#include "prim/prims.h"

typedef struct print_params {
  ax_axes axes; /* first: host_call.h */
  const char *format;
} print_params;

static ax_status infer(const ax_infer_args *args) {
  return ax_format_check(((const print_params *)args->params)->format, args->in_count, args->in);
}

static ax_status print(const ax_eval_args *args, uint32_t lane) {
  const char *format = ((const print_params *)args->eqn->params)->format;
  ax_text text = {0};
  if (args->hooks == NULL || args->hooks->print == NULL) return AX_OK;
  const ax_float_mode run = ax_float_mode_enter(false); /* subnormal numbers are printed as they are */
  ax_status status = ax_format_text(&text, format, args->eqn->in_count > 0 ? args->in + lane : NULL, args->lanes);
  ax_text_add(&text, "\n");
  if (status == AX_OK && text.failed) status = ax_out_of_memory(0);
  if (status == AX_OK) args->hooks->print(text.data, args->hooks->print_context);
  ax_float_mode_leave(run);
  ax_text_deinit(&text);
  return status;
}
static ax_status eval(const ax_eval_args *args) { return ax_host_call_eval(args, print); }

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_hooks *hooks = lower->plan->options.hooks;
  if (hooks == NULL || hooks->print == NULL) return AX_OK;
  return ax_lower_host_call(lower, eqn, &((const print_params *)eqn->params)->axes, in, out);
}

static const ax_param params[] = {{"axes", AX_PARAM_AXES, offsetof(print_params, axes)},
                                  {"format", AX_PARAM_TEXT, offsetof(print_params, format)}};

#define DEBUG_PRINT(name_, effects_)        \
  const ax_prim ax_prim_##name_ = {         \
      .name = #name_,                       \
      .kind = AX_COLLECTIVE,                \
      .effects = (effects_),                \
      .in_count = -1,                       \
      .out_count = 0,                       \
      AX_PARAMS(params, print_params),      \
      .infer = infer,                       \
      .spread = ax_host_call_spread,        \
      .eval = eval,                         \
      .differs = ax_host_call_differs,      \
      .jvp = ax_jvp_zero,                   \
      .linearize = ax_jvp_zero,             \
      .transpose = ax_absent_transpose,     \
      .batch = ax_host_call_batch,          \
      .simplify = ax_simplify_nothing,      \
      .shard = ax_shard_whole,              \
      .lower = lower,                       \
      .complex = ax_complex_whole,          \
      .hlo = ax_host_call_hlo,              \
  };
DEBUG_PRINT(debug_print, AX_EFFECT_STATE)
DEBUG_PRINT(ordered_debug_print, AX_EFFECT_STATE | AX_EFFECT_ORDER | AX_EFFECT_EXCHANGE)

/* Keys are printed as their words. NULL: there was no memory; the trace has failed. */
static const ax_value *without_keys(uint32_t count, const ax_value *values) {
  ax_value *made = ax_trace_alloc(count * sizeof made[0]);
  for (uint32_t i = 0; i < count && made != NULL; i++) {
    const bool is_key = !ax_is_number(values[i]) && ax_is_key(ax_typeof(values[i]).dtype);
    made[i] = is_key ? ax_bind1(&ax_prim_random_unwrap, NULL, &values[i], 1) : values[i];
  }
  return made;
}

void (ax_debug_print)(const char *format, bool ordered, uint32_t count, const ax_value *values) {
  const ax_prim *prim = ordered ? &ax_prim_ordered_debug_print : &ax_prim_debug_print;
  print_params params_here = {.format = format};
  if (!ax_check_operands(prim->name, values, count)) return;
  if (format == NULL) (void)ax_reject(prim, "there is no format");
  else if (ax_host_call_axes(&params_here.axes) && (values = without_keys(count, values)) != NULL)
    ax_bind(prim, &params_here, values, count, NULL, 0);
}
