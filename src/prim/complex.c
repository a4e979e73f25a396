/* Equations on complex numbers as equations on their parts. */
#include "axle/ops.h"
#include "plan/lower.h"
#include "prim/expand.h"
#include "prim/rules.h"

ax_status ax_complex_whole(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return eqn->prim->lower(lower, eqn, in, out);
}

static void by_parts(const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  ax_value *part_in = ax_trace_alloc(eqn->in_count * sizeof part_in[0]),
           *part_out = ax_trace_alloc(2 * eqn->out_count * sizeof part_out[0]);
  if (part_in == NULL || part_out == NULL) return;
  for (uint32_t part = 0; part < 2; part++) {
    for (uint32_t i = 0; i < eqn->in_count; i++) {
      const bool is_complex = ax_is_complex(ax_typeof(in[i]).dtype);
      part_in[i] = !is_complex ? in[i] : part == 0 ? ax_real_part(in[i]) : ax_imag_part(in[i]);
    }
    ax_bind(eqn->prim, eqn->params, part_in, eqn->in_count, part_out + part * eqn->out_count, eqn->out_count);
  }
  for (uint32_t k = 0; k < eqn->out_count; k++) out[k] = ax_complex(part_out[k], part_out[eqn->out_count + k]);
}

ax_status ax_complex_parts(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_expanded_all(lower, eqn, by_parts, in, out);
}

static ax_value product(const ax_eqn *eqn, const ax_value *in) {
  ax_value part[2][2], made[2][2];
  for (int k = 0; k < 2; k++) {
    part[k][0] = ax_real_part(in[k]);
    part[k][1] = ax_imag_part(in[k]);
  }
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++) made[i][j] = ax_bind1(eqn->prim, eqn->params, (ax_value[]){part[0][i], part[1][j]}, 2);
  ax_value real = ax_sub(made[0][0], made[1][1]);
  return ax_complex(real, ax_add(made[0][1], made[1][0]));
}

ax_status ax_complex_product(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_expanded(lower, eqn, product, in, out);
}
