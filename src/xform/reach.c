/* How far tangents and batch dimensions reach. Rules of regions ask before they transform their programs, so that each body is
   transformed once, with the inputs and results that take part known (ir/flow.h). */
#include "ir/flow.h"
#include "prim/bind.h"
#include "prim/rules.h"
#include "xform/xform.h"

static const ax_axis_set one = (ax_axis_set)1 << 63; /* a bit that is no axis */

/* A received message has a tangent and a batch dimension, whatever the equation's operands have. */
static bool is_message(const ax_eqn *eqn) { return (eqn->prim->effects & AX_EFFECT_MESSAGE) != 0; }

/* Floats that depend on a tangent have one, unless the primitive has no derivative. */
static void tangent_rule(const ax_differs_args *args) {
  const ax_eqn *eqn = args->eqn;
  ax_axis_set any = is_message(eqn) ? one : 0;
  for (uint32_t i = 0; i < eqn->in_count && eqn->prim->jvp != ax_jvp_zero; i++) any |= args->in[i];
  for (uint32_t k = 0; k < eqn->out_count; k++)
    args->out[k] = ax_is_differentiable(args->program->types[eqn->out + k].dtype) ? any : 0;
}

static void batch_rule(const ax_differs_args *args) {
  const ax_eqn *eqn = args->eqn;
  eqn->prim->differs(args);
  for (uint32_t k = 0; k < eqn->out_count && is_message(eqn); k++)
    args->out[k] = args->program->types[eqn->out + k].form == AX_ARRAY ? ~(ax_axis_set)0 : 0;
}

/* Carries `bit` from the operands to the results. */
static bool reach(ax_flow *flow, const ax_eqn *eqn, ax_axis_set bit, const bool *in, bool *out) {
  ax_axis_set *from = ax_trace_alloc(((size_t)eqn->in_count + eqn->out_count) * sizeof from[0]), *to = from + eqn->in_count;
  if (from == NULL) return false;
  for (uint32_t i = 0; i < eqn->in_count; i++) from[i] = in[i] ? bit : 0;
  if (!ax_flow_eqn(flow, NULL, eqn, from, to)) {
    ax_fail(ax_out_of_memory(0));
    return false;
  }
  for (uint32_t k = 0; k < eqn->out_count; k++) out[k] = (to[k] & bit) != 0;
  return true;
}

bool ax_eqn_tangents(const ax_eqn *eqn, const bool *in, bool *out) {
  if (ax_failed()) return false;
  ax_flow flow = {.memo = ax_builder_current()->memo, .question = "tangents", .rule = tangent_rule, .tangents = true};
  return reach(&flow, eqn, one, in, out);
}

static void find_axis(const ax_program *program, const char *axis, ax_axis_set *bit) {
  int index = ax_mesh_find(&program->axes, axis);
  if (index >= 0) *bit = (ax_axis_set)1 << index;
}

/* Collectives over the axis itself add to it and take from it, as with devices. */
bool ax_eqn_batched(const ax_eqn *eqn, const char *axis, const bool *in, bool *out) {
  if (ax_failed()) return false;
  ax_flow flow = {.memo = ax_builder_current()->memo, .question = "batched", .rule = batch_rule};
  ax_axis_set bit = one;
  const ax_program *program;
  for (uint32_t i = 0; axis != NULL && (program = ax_eqn_program(eqn, i)) != NULL; i++) find_axis(program, axis, &bit);
  return reach(&flow, eqn, bit, in, out);
}
