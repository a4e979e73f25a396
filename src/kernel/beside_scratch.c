/* Scratch that begins anew: at each point where the last dimensions of the grid begin, the body stores all of it before it reads any.

     grid (i, k), k of a sum        if k == 0: sum = 0           so no i sees what another one has left in the scratch
                                    sum = sum + x

   The body is gone over as it runs at such a point: branches that the point decides are taken. */
#include <string.h>

#include "ir/memo.h"
#include "ir/prim.h"
#include "ir/region_link.h"
#include "kernel/beside.h"
#include "kernel/discharge.h"
#include "kernel/ranges.h"
#include "kernel/step.h"

typedef struct walk {
  ax_ranges *ranges;
  bool *stored;   /* by scratch */
  ax_memo *begun; /* branches that were gone over, by where their inputs lie: what they store is stored by now */
} walk;

typedef struct place { /* of a value: the scratch that it is, or is a view of; AX_NONE */
  uint32_t scratch;
  uint32_t all; /* not a part of it; no bool, as places are compared byte by byte */
} place;

static bool goes_well(const walk *w, const ax_program *program, place *at);

/* The branch that is taken. False: it may read what was not stored, or there is no memory. */
static bool branch_goes_well(const walk *w, const ax_program *program, const ax_eqn *eqn, const place *at) {
  const uint32_t which = ax_ranges_branch(w->ranges, program, eqn);
  if (which == AX_NONE) return false;
  const ax_program *taken = ax_eqn_program(eqn, which);
  place *inside = ax_alloc(((size_t)taken->value_count + 1) * sizeof inside[0]);
  if (inside == NULL) return false;
  for (uint32_t v = 0; v < taken->value_count; v++) inside[v] = (place){AX_NONE, false};
  for (uint32_t i = 0; i < taken->in_count; i++) {
    const uint32_t operand = ax_region_link_in(eqn, which, i).number;
    if (operand != AX_NONE) inside[i] = at[eqn->in[operand]];
  }
  ax_memo_entry *entry = ax_memo_ask(w->begun, "begins anew", taken, inside, taken->in_count * sizeof inside[0]);
  const bool well = entry != NULL && (entry->known || goes_well(w, taken, inside));
  if (well) entry->known = true;
  ax_free(inside);
  return well;
}

static bool is_store_of_all(const ax_eqn *eqn, const place *ref) {
  const ax_step_access *access = ax_step_access_of(eqn);
  return access != NULL && access->writes && !access->reads && !ax_step_is_masked(eqn) && ref->all;
}

static bool touches_unstored(const walk *w, const ax_eqn *eqn, const place *at) {
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    const uint32_t scratch = at[eqn->in[i]].scratch;
    if (scratch != AX_NONE && !w->stored[scratch]) return true;
  }
  return false;
}

static bool goes_well(const walk *w, const ax_program *program, place *at) {
  for (uint32_t e = 0; e < program->eqn_count; e++) {
    const ax_eqn *eqn = &program->eqns[e];
    const ax_step_view *view = ax_step_view_of(eqn);
    if (view != NULL) at[eqn->out] = (place){at[eqn->in[0]].scratch, at[eqn->in[0]].all && view->all};
    else if (!touches_unstored(w, eqn, at)) continue;
    else if (eqn->prim->runs == AX_RUNS_ONE && ax_eqn_program(eqn, 0) != NULL) {
      if (!branch_goes_well(w, program, eqn, at)) return false;
    } else if (is_store_of_all(eqn, &at[eqn->in[0]])) w->stored[at[eqn->in[0]].scratch] = true;
    else return false;
  }
  return true;
}

static bool walk_body(const ax_kernel_params *p, const bool *written, ax_ranges *ranges, bool *stored, place *at) {
  const ax_program *body = p->bodies.v[0];
  const uint32_t first = body->in_count - p->scratch.count;
  ax_memo begun = {0};
  const walk w = {ranges, stored, &begun};
  for (uint32_t v = 0; v < body->value_count; v++) at[v] = (place){AX_NONE, false};
  for (uint32_t s = 0; s < p->scratch.count; s++)
    if (written[first + s]) at[first + s] = (place){s, true};
  bool well = goes_well(&w, body, at);
  ax_memo_deinit(&begun);
  for (uint32_t s = 0; s < p->scratch.count; s++) well = well && (!written[first + s] || (stored[s] && p->scratch.v[s].form == AX_REF));
  return well;
}

ax_status ax_beside_begins_anew(const ax_kernel_params *p, uint32_t outer, bool *out) {
  const ax_program *body = p->bodies.v[0];
  ax_ranges ranges;
  bool *written = ax_calloc((size_t)body->in_count + 1, 1), *stored = ax_calloc((size_t)p->scratch.count + 1, 1);
  place *at = ax_alloc(((size_t)body->value_count + 1) * sizeof at[0]);
  ax_ranges_init(&ranges, &p->grid);
  for (uint32_t d = outer; d < p->grid.count; d++)
    if (p->semantics.count == 0 || p->semantics.v[d] != AX_PARALLEL) ranges.grid[d] = (ax_interval){0, 0};
  ax_status status = written != NULL && stored != NULL && at != NULL ? AX_OK : ax_out_of_memory(body->value_count * sizeof at[0]);
  if (status == AX_OK) status = ax_written_inputs(body, written);
  if (status == AX_OK) status = ax_ranges_find(&ranges, body, false, NULL);
  *out = status == AX_OK && walk_body(p, written, &ranges, stored, at);
  ax_ranges_deinit(&ranges);
  ax_free(written);
  ax_free(stored);
  ax_free(at);
  return status;
}
