/* In which layouts equations that hold programs take their operands and give their results. Propagation has held a program's inputs
   and what is handed to them to be one value; where they could not be brought together, the program's own say holds:

     call     operands as the body takes them; results as it makes them
     cond     operands as the first branch takes them; results as the equation's are to lie, for all branches
     loops    a carry as the body takes it, in whatever way it comes round. What scan goes over, and what it stacks, as slices
     are */
#include "partition/partitioner.h"
#include "prim/prims.h"
#include "control/scan.h"
#include "control/while.h"

typedef struct asking {
  ax_partitioner *p;
  const ax_scope *s;
} asking;

static const ax_spec *taken(const asking *a, const ax_program *body, uint32_t i) { return ax_propagated_at(a->p, a->s, body, i); }

static void scan_layouts(const asking *a, const ax_eqn *eqn, const ax_spec **in, const ax_spec **out) {
  const ax_scan_params *params = eqn->params;
  const uint32_t consts = (uint32_t)params->num_consts, carries = (uint32_t)params->num_carry;
  const ax_program *body = params->body;
  for (uint32_t i = 0; i < eqn->in_count; i++)
    in[i] = i < consts + carries ? taken(a, body, i) : ax_spec_stacked(a->p, taken(a, body, i));
  for (uint32_t k = 0; k < eqn->out_count; k++)
    out[k] = k < carries ? in[consts + k] : ax_spec_stacked(a->p, taken(a, body, body->outs[k]));
}

static void while_layouts(const asking *a, const ax_eqn *eqn, const ax_spec **in, const ax_spec **out) {
  const ax_while_params *params = eqn->params;
  const uint32_t cond_consts = (uint32_t)params->cond_nconsts;
  for (uint32_t i = 0; i < eqn->in_count; i++)
    in[i] = i < cond_consts ? taken(a, params->cond, i) : taken(a, params->body, i - cond_consts);
  for (uint32_t k = 0; k < eqn->out_count; k++) out[k] = in[eqn->in_count - eqn->out_count + k];
}

void ax_region_layouts(ax_partitioner *p, const ax_scope *s, const ax_program *program, const ax_eqn *eqn, const ax_spec **in,
                       const ax_spec **out) {
  const asking a = {p, s};
  if (eqn->prim == &ax_prim_scan) {
    scan_layouts(&a, eqn, in, out);
    return;
  }
  if (eqn->prim == &ax_prim_while) {
    while_layouts(&a, eqn, in, out);
    return;
  }
  const uint32_t first = eqn->prim == &ax_prim_cond; /* a branch does not take the index */
  for (uint32_t i = 0; i < eqn->in_count; i++) in[i] = i < first ? NULL : taken(&a, ax_eqn_program(eqn, 0), i - first);
  for (uint32_t k = 0; first == 1 && k < eqn->out_count; k++) out[k] = taken(&a, program, eqn->out + k);
}
