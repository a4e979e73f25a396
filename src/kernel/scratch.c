/* Scratch of kernels and scopes: what it may be, and as parameters. */
#include "kernel/scratch.h"

#include <string.h>

static bool has_arrivals(const ax_pairs *arrivals, uint32_t i, int64_t *count) {
  for (uint32_t k = 0; k < arrivals->count; k++)
    if (arrivals->v[k][0] == i) {
      *count = arrivals->v[k][1];
      return true;
    }
  return false;
}

ax_status ax_scratch_check(const ax_types *scratch, const ax_pairs *arrivals) {
  static const ax_mesh none;
  for (uint32_t i = 0; i < scratch->count; i++) {
    const ax_type *type = &scratch->v[i];
    int64_t count = 0;
    ax_status status = ax_type_check(type, &none);
    if (status != AX_OK) return ax_error_context(status, "scratch %u: ", i);
    if (!ax_is_memory(type->form))
      return ax_error(AX_INVALID_ARGUMENT, "scratch %u is %s, an array; a ref, semaphores or barriers are made", i,
                      ax_type_string(type, NULL));
    bool given = has_arrivals(arrivals, i, &count);
    if (given != (type->form == AX_BARRIER))
      return ax_error(AX_INVALID_ARGUMENT, given ? "scratch %u is %s, but arrivals complete a phase of barriers alone"
                                                 : "scratch %u is %s, and nothing says how many arrivals complete a phase",
                      i, ax_type_string(type, NULL));
    if (given && count < 1)
      return ax_error(AX_INVALID_ARGUMENT, "scratch %u: %lld arrivals complete a phase; it is at least 1", i, (long long)count);
  }
  for (uint32_t k = 0; k < arrivals->count; k++)
    if (arrivals->v[k][0] < 0 || arrivals->v[k][0] >= scratch->count || (k > 0 && arrivals->v[k][0] <= arrivals->v[k - 1][0]))
      return ax_error(AX_INVALID_ARGUMENT, "arrivals of scratch %lld: there is none of that number, or not in this order",
                      (long long)arrivals->v[k][0]);
  return AX_OK;
}

bool ax_take_scratch(const char *function, uint32_t count, const ax_scratch *scratch, ax_types *types, ax_pairs *arrivals) {
  *types = (ax_types){count, ax_trace_alloc(count * sizeof types->v[0])};
  *arrivals = (ax_pairs){0, ax_trace_alloc(count * sizeof arrivals->v[0])};
  if (ax_failed()) return false;
  if (count > 0 && scratch == NULL) {
    ax_reject_as(function, "there is no list of the %u scratch", count);
    return false;
  }
  for (uint32_t i = 0; i < count; i++) {
    types->v[i] = scratch[i].type;
    if (scratch[i].type.form != AX_BARRIER && scratch[i].arrivals == 0) continue;
    arrivals->v[arrivals->count][0] = i;
    arrivals->v[arrivals->count++][1] = scratch[i].arrivals;
  }
  ax_status status = ax_scratch_check(types, arrivals);
  if (status != AX_OK) ax_fail(ax_error_context(status, "%s: ", function));
  return !ax_failed();
}

ax_status ax_prune_nothing(const ax_prune_args *args) {
  const ax_eqn *eqn = args->eqn;
  ax_program *program;
  for (uint32_t k = 0; k < eqn->out_count; k++) args->out[k] = true;
  for (uint32_t i = 0; i < eqn->in_count; i++) args->in[i] = true;
  if (args->params == NULL) return AX_OK;
  memcpy(args->params, eqn->params, eqn->prim->params_bytes);
  for (uint32_t k = 0; (program = ax_eqn_program(eqn, k)) != NULL; k++) (void)ax_program_retain(program);
  return AX_OK;
}
