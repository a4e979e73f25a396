/* The program is gone through from its inputs, of which nothing is known but the dtype, to the kernel. Bounds come from clamps, rests,
   comparisons and constants on the way. What a loop carries from round to round is not followed. */
#include "check/facts.h"

#include "ir/region_link.h"
#include "prim/prims.h"

typedef struct search {
  const ax_eqn *kernel;
  ax_operand_fact *operands;
  bool found, gave_up; /* gave_up: programs are called too often to look at all calls */
  uint32_t programs;
} search;

static ax_operand_fact unknown(ax_dtype dtype) { return (ax_operand_fact){.range = ax_interval_of_dtype(dtype)}; }

/* Of result k of an equation that holds no programs. */
static ax_operand_fact fact_of_result(const ax_program *program, const ax_eqn *eqn, uint32_t k, const ax_operand_fact *facts) {
  enum { most_operands = 64 };
  const ax_dtype dtype = program->types[eqn->out + k].dtype;
  ax_interval ranges[most_operands];
  ax_dtype dtypes[most_operands];
  ax_operand_fact fact = unknown(dtype);
  if (ax_prim_is_literal(eqn->prim)) return (ax_operand_fact){.fixed = true, .range = ax_interval_of_literal(eqn->params, INT64_MAX)};
  if (eqn->in_count > most_operands) return fact;
  fact.fixed = eqn->prim->effects == 0;
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    fact.fixed = fact.fixed && facts[eqn->in[i]].fixed;
    ranges[i] = facts[eqn->in[i]].range;
    dtypes[i] = program->types[eqn->in[i]].dtype;
  }
  if (k == 0 && program->types[eqn->out].form == AX_ARRAY) fact.range = ax_interval_of_eqn(eqn, dtypes, ranges, dtype);
  return fact;
}

static ax_status go_through(search *s, const ax_program *program, bool once, ax_operand_fact *facts);

/* Of an input of program k: what it is handed, unless a loop carries it. */
static ax_operand_fact fact_of_input(const ax_eqn *eqn, uint32_t k, uint32_t i, ax_dtype dtype, const ax_operand_fact *facts) {
  const ax_region_link link = ax_region_link_in(eqn, k, i);
  if (link.how == AX_LINK_OWN || link.carry != AX_NONE) return unknown(dtype);
  ax_operand_fact fact = facts[eqn->in[link.number]];
  fact.fixed = fact.fixed && link.how != AX_LINK_SLICE;
  return fact;
}

static ax_status go_into(search *s, const ax_program *program, const ax_eqn *eqn, bool once, ax_operand_fact *facts) {
  const bool calls = eqn->prim->runs == AX_RUNS_EACH || eqn->prim->runs == AX_RUNS_FIRST;
  const ax_program *held;
  for (uint32_t r = 0; r < eqn->out_count; r++) facts[eqn->out + r] = unknown(program->types[eqn->out + r].dtype);
  for (uint32_t k = 0; k < ax_region_link_programs(eqn) && (held = ax_eqn_program(eqn, k)) != NULL && !s->gave_up; k++) {
    ax_operand_fact *within = ax_calloc(held->value_count + 1, sizeof within[0]);
    if (within == NULL) return ax_out_of_memory(0);
    for (uint32_t i = 0; i < held->in_count; i++) within[i] = fact_of_input(eqn, k, i, held->types[i].dtype, facts);
    const ax_status status = go_through(s, held, once && (calls || eqn->prim->runs == AX_RUNS_ONE), within);
    for (uint32_t o = 0; o < held->out_count && calls && k == 0 && status == AX_OK; o++) {
      const ax_region_link link = ax_region_link_out(eqn, k, o);
      if (link.how == AX_LINK_SAME && link.carry == AX_NONE) facts[eqn->out + link.number] = within[held->outs[o]];
    }
    ax_free(within);
    AX_TRY(status);
  }
  return AX_OK;
}

/* One of the places where the kernel stands: its program may be called several times. */
static void note_place(search *s, const ax_eqn *eqn, bool once, const ax_operand_fact *facts) {
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    const ax_interval here = facts[eqn->in[i]].range;
    s->operands[i].fixed = !s->found && facts[eqn->in[i]].fixed && once;
    s->operands[i].range = s->found ? ax_interval_hull(s->operands[i].range, here) : here;
  }
  s->found = true;
}

static ax_status go_through(search *s, const ax_program *program, bool once, ax_operand_fact *facts) {
  enum { most_programs = 4096 };
  s->gave_up = s->gave_up || s->programs++ == most_programs;
  for (uint32_t e = 0; e < program->eqn_count && !s->gave_up; e++) {
    const ax_eqn *eqn = &program->eqns[e];
    if (eqn == s->kernel) note_place(s, eqn, once, facts);
    else if (ax_eqn_program(eqn, 0) != NULL)
      AX_TRY(go_into(s, program, eqn, once, facts));
    else
      for (uint32_t k = 0; k < eqn->out_count; k++) facts[eqn->out + k] = fact_of_result(program, eqn, k, facts);
  }
  return AX_OK;
}

ax_status ax_facts_of(const ax_program *program, const ax_eqn *kernel, ax_operand_fact *operands) {
  search s = {.kernel = kernel, .operands = operands};
  ax_operand_fact *facts = ax_calloc(program->value_count + 1, sizeof facts[0]);
  if (facts == NULL) return ax_out_of_memory(0);
  for (uint32_t i = 0; i < kernel->in_count; i++)
    operands[i].fixed = false, operands[i].range = (ax_interval){INT64_MIN, INT64_MAX};
  for (uint32_t i = 0; i < program->in_count; i++) facts[i] = unknown(program->types[i].dtype);
  const ax_status status = go_through(&s, program, true, facts);
  for (uint32_t i = 0; i < kernel->in_count && s.gave_up; i++)
    operands[i].fixed = false, operands[i].range = (ax_interval){INT64_MIN, INT64_MAX};
  ax_free(facts);
  return status;
}
