/* Helpers for transforms of equations that hold programs (rebuild.h). All arrays are in the memory of the trace in progress, and
   every failure fails that trace. */
#include "prim/rebuild.h"

#include "ir/prim.h"

/* --- Tangents --- */

bool ax_tangents_init(ax_tangents *t, const ax_jvp_args *args) {
  const ax_eqn *eqn = args->eqn;
  *t = (ax_tangents){.args = args};
  t->in = ax_trace_alloc(eqn->in_count);
  t->out = ax_trace_alloc(eqn->out_count);
  t->want = ax_trace_alloc(eqn->out_count * sizeof t->want[0]);
  if (ax_failed()) return false;
  for (uint32_t i = 0; i < eqn->in_count; i++) t->in[i] = !ax_is_zero(args->tangent_in[i]);
  if (!ax_eqn_tangents(eqn, t->in, t->out)) return false;
  for (uint32_t i = 0; i < eqn->in_count; i++) t->in_count += t->in[i];
  for (uint32_t k = 0; k < eqn->out_count; k++) {
    t->want[k] = t->out[k] ? AX_WANT_ALWAYS : AX_WANT_ZERO;
    t->out_count += t->out[k];
  }
  return true;
}

ax_value ax_tangent_in(const ax_tangents *t, uint32_t i) { return ax_instantiate(t->args->tangent_in[i], t->args->in[i]); }

uint32_t ax_tangents_take(const ax_tangents *t, ax_value *to) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < t->args->eqn->in_count; i++)
    if (t->in[i]) to[count++] = ax_tangent_in(t, i);
  return count;
}

void ax_tangents_give(const ax_tangents *t, const ax_value *results, const ax_value *tangents) {
  for (uint32_t k = 0; k < t->args->eqn->out_count; k++) {
    t->args->out[k] = results[k];
    t->args->tangent_out[k] = t->out[k] ? *tangents++ : ax_zero;
  }
}

/* --- Cotangents, batch dimensions --- */

bool *ax_cotangents_zero(const ax_transpose_args *args) {
  bool *zero = ax_trace_alloc(args->eqn->out_count);
  for (uint32_t k = 0; zero != NULL && k < args->eqn->out_count; k++) zero[k] = ax_is_zero(args->cotangent[k]);
  return zero;
}

void ax_transpose_by_body(const ax_transpose_args *args, const ax_program *body, ax_bind_body bind) {
  const ax_eqn *eqn = args->eqn;
  bool *zero = ax_cotangents_zero(args), *made_zero = ax_trace_alloc(eqn->in_count);
  ax_value *in = ax_trace_alloc((eqn->in_count + (size_t)eqn->out_count) * sizeof in[0]);
  ax_program *transposed = NULL;
  uint32_t count = 0;
  if (ax_failed()) return;
  for (uint32_t i = 0; i < eqn->in_count; i++)
    if (!args->linear[i]) in[count++] = args->in[i];
  for (uint32_t k = 0; k < eqn->out_count; k++)
    if (!zero[k]) in[count++] = args->cotangent[k];
  ax_status status = ax_transpose_program(body, args->linear, zero, made_zero, &transposed);
  if (status != AX_OK) {
    ax_fail(status);
    return;
  }
  ax_value *made = ax_trace_alloc(transposed->out_count * sizeof made[0]);
  if (made != NULL) bind(eqn, transposed, in, made);
  ax_program_release(transposed);
  for (uint32_t i = 0; !ax_failed() && i < eqn->in_count; i++) {
    if (!args->linear[i]) continue;
    if (!made_zero[i]) args->out[i] = *made;
    made++;
  }
}

bool *ax_batched_results(const ax_batch_args *args) {
  bool *in = ax_trace_alloc(args->eqn->in_count), *out = ax_trace_alloc(args->eqn->out_count);
  if (in == NULL || out == NULL) return NULL;
  for (uint32_t i = 0; i < args->eqn->in_count; i++) in[i] = args->in_dim[i] >= 0;
  return ax_eqn_batched(args->eqn, args->axis, in, out) ? out : NULL;
}

/* --- Operands by role --- */

bool ax_sorting_init(ax_sorting *s, uint32_t capacity) {
  *s = (ax_sorting){.capacity = capacity};
  s->value = ax_trace_alloc(capacity * sizeof s->value[0]);
  s->role = ax_trace_alloc(capacity * sizeof s->role[0]);
  return !ax_failed();
}

void ax_sorting_add(ax_sorting *s, uint32_t role, ax_value value) {
  assert(s->count < s->capacity && role < AX_MAX_ROLES);
  s->role[s->count] = role;
  s->value[s->count++] = value;
  s->of_role[role]++;
}

ax_value *ax_sorting_finish(const ax_sorting *s, const ax_program *body, const uint32_t *from, uint32_t out_count,
                            ax_program **out) {
  uint32_t next[AX_MAX_ROLES] = {0};
  ax_value *in = ax_trace_alloc(s->count * sizeof in[0]);
  uint32_t *in_at = ax_trace_alloc(s->count * sizeof in_at[0]);
  *out = NULL;
  if (in == NULL || in_at == NULL) return NULL;
  for (uint32_t r = 1; r < AX_MAX_ROLES; r++) next[r] = next[r - 1] + s->of_role[r - 1];
  for (uint32_t i = 0; i < s->count; i++) {
    in_at[i] = next[s->role[i]]++;
    in[in_at[i]] = s->value[i];
  }
  ax_status status = ax_region_permute(body, in_at, from, out_count, out);
  if (status != AX_OK) ax_fail(status);
  return status == AX_OK ? in : NULL;
}

uint32_t *ax_in_order(uint32_t count) {
  uint32_t *numbers = ax_trace_alloc(count * sizeof numbers[0]);
  for (uint32_t i = 0; numbers != NULL && i < count; i++) numbers[i] = i;
  return numbers;
}

/* --- Pruning --- */

uint32_t ax_marked(const bool *marks, uint32_t count) {
  uint32_t marked = 0;
  for (uint32_t i = 0; i < count; i++) marked += marks[i];
  return marked;
}

ax_status ax_prune_body(const ax_prune_args *args) {
  const ax_program *body = ax_eqn_program(args->eqn, 0);
  assert(args->eqn->prim->param_count == 1);
  AX_TRY(ax_needs_program(args->memo, body, args->out, args->in));
  return args->params == NULL ? AX_OK : ax_prune_program(args->memo, body, args->out, args->in, args->params);
}
