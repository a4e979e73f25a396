/* StableHLO of equations on keys, which are arrays of words there: u32[d.., 2]. */
#include <string.h>

#include "hlo/hlo.h"
#include "prim/expand.h"
#include "prim/prims.h"
#include "prim/rules.h"

ax_status ax_keys_whole(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return eqn->prim->hlo(hlo, eqn, in, out);
}

/* A key among the parameters becomes one of its words. False: its words differ, and the trace has failed. */
static bool take_words(const ax_prim *prim, void *params) {
  for (uint32_t p = 0; p < prim->param_count; p++) {
    ax_literal *value = (ax_literal *)(void *)((char *)params + prim->params[p].offset);
    uint32_t words[2];
    if (prim->params[p].kind != AX_PARAM_LITERAL || !ax_is_key(value->type.dtype)) continue;
    memcpy(words, value->data, sizeof words);
    if (words[0] != words[1])
      ax_fail(ax_error(AX_ABSENT, "%s: no StableHLO for the %s, a key of two different words", prim->name, prim->params[p].name));
    value->type.dtype = AX_U32;
  }
  return !ax_failed();
}

/* Both words at once: the equation is batched over them. */
static void on_words(const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  ax_eqn words = *eqn;
  void *params = ax_trace_alloc(eqn->prim->params_bytes);
  ax_value *operands = ax_trace_alloc(eqn->in_count * sizeof operands[0]);
  int *dims = ax_trace_alloc((eqn->in_count + eqn->out_count) * sizeof dims[0]);
  if (operands == NULL || dims == NULL || params == NULL) return;
  if (eqn->prim->params_bytes > 0) memcpy(params, eqn->params, eqn->prim->params_bytes);
  if (!take_words(eqn->prim, params)) return;
  words.params = params;
  int *out_dims = dims + eqn->in_count;
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    const ax_type type = ax_typeof(in[i]);
    const bool is_key = ax_is_key(type.dtype);
    operands[i] = is_key ? ax_bind1(&ax_prim_random_unwrap, NULL, &in[i], 1) : in[i];
    dims[i] = is_key ? (int)type.rank : -1;
  }
  for (uint32_t k = 0; k < eqn->out_count; k++) out_dims[k] = 0;
  if (ax_failed()) return;
  eqn->prim->batch(&(ax_batch_args){.eqn = &words, .in = operands, .in_dim = dims, .size = 2, .out = out, .out_dim = out_dims});
  for (uint32_t k = 0; k < eqn->out_count && !ax_failed(); k++) {
    const ax_value last = ax_move_dim(out[k], out_dims[k], (int)ax_typeof(out[k]).rank - 1);
    out[k] = ax_bind1(&ax_prim_random_wrap, NULL, &last, 1);
  }
}

ax_status ax_keys_words(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_hlo_expanded_all(hlo, eqn, on_words, in, out);
}
