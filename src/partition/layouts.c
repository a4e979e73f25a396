/* The layouts in which equations that hold programs take their operands and give their results. Propagation has treated an input of
   such a program and the operand that it gets as one value. Where it could not give both the same layout, the program decides:

     call     operands as the body takes them; results as the body makes them
     cond     operands as the first branch takes them; results, for all branches, as propagation found for the equation
     loops    a carry as the body takes it, whatever layout it comes round with; the arrays that scan slices or stacks as their
              slices are */
#include "ir/region_link.h"
#include "partition/partitioner.h"
#include "prim/bind.h"

typedef struct asking {
  ax_partitioner *p;
  const ax_scope *s;
  const ax_eqn *eqn;
} asking;

/* The layout that value v of a held program has outside of it: one dimension more if it is a slice there. */
static const ax_spec *around(const asking *a, const ax_program *body, uint32_t v, ax_region_link_how how) {
  const ax_spec *spec = ax_propagated_at(a->p, a->s, body, v);
  return how == AX_LINK_SLICE ? ax_spec_stacked(a->p, spec) : spec;
}

/* Sets the layouts of operands. If several programs take an operand, the first of them decides; for a carry, the program that
   computes its next value does. */
static void take_operands(const asking *a, const ax_program *body, uint32_t p, const ax_spec **in, bool *taken) {
  const bool gives = ax_region_link_gives(a->eqn, p);
  for (uint32_t i = 0; i < body->in_count; i++) {
    const ax_region_link link = ax_region_link_in(a->eqn, p, i);
    if (link.how == AX_LINK_OWN || taken[link.number] || (link.carry != AX_NONE && !gives)) continue;
    in[link.number] = around(a, body, i, link.how);
    taken[link.number] = true;
  }
}

/* Sets the layouts of results that are carries or stacked slices. */
static void give_results(const asking *a, const ax_program *body, uint32_t p, const ax_spec *const *in, const ax_spec **out) {
  for (uint32_t j = 0; j < body->out_count; j++) {
    const ax_region_link link = ax_region_link_out(a->eqn, p, j);
    if (link.carry != AX_NONE) out[link.number] = in[ax_region_link_in(a->eqn, p, link.carry).number];
    else if (link.how == AX_LINK_SLICE) out[link.number] = around(a, body, body->outs[j], link.how);
  }
}

void ax_region_layouts(ax_partitioner *p, const ax_scope *s, const ax_program *program, const ax_eqn *eqn, const ax_spec **in,
                       const ax_spec **out) {
  const asking a = {p, s, eqn};
  const uint32_t programs = ax_region_link_programs(eqn);
  bool *taken = ax_trace_alloc(eqn->in_count + 1);
  if (taken == NULL) return;
  for (uint32_t k = 0; k < programs; k++) take_operands(&a, ax_eqn_program(eqn, k), k, in, taken);
  for (uint32_t k = 0; k < programs; k++) give_results(&a, ax_eqn_program(eqn, k), k, in, out);
  for (uint32_t k = 0; k < eqn->out_count && eqn->prim->runs == AX_RUNS_ONE; k++)
    out[k] = ax_propagated_at(p, s, program, eqn->out + k);
}
