/* Reads of counts order nothing. An agent that reads a count learns that there was a signal. Unlike a wait, the read does not tell
   it that the signaller's earlier acts are done: the count may be ahead of memory, barriers and other semaphores.

   A kernel that reads counts so has more runs than the machine shows. Let r be a complete run of the machine. Its acts depend on
   the values that the reads gave. An order of r's acts is a run too if programs of agents, starts, waits and phases allow it, and
   no read in it is behind: the count at the read's place is at most the value that the read gave in r. (The amount that other
   agents have still to take is subtracted from the count, as a read may be ahead of their waits, too.) So a read is an act that
   says `seen`, and

     r's acts are a system of agents that each do fixed acts, a script. explore.c visits its orders. Mostly that is not needed: if
     reads are treated as acts that do nothing, there are more orders, and prove.c may find that all of these are right.

   Two runs of the machine with the same acts and the same reads, agent by agent, have the same orders: explore.c adds one of them,
   and keeps states apart that were reached by others. A count that is read again and again with the same result is one read.

   In the orders of a run data are not computed again. Where no acts race in them, reads of memory give the same values as in r. But
   where several agents wait on one semaphore, other orders than r's may leave other data: where the scripts' results differ,
   nothing is proved. */
#include "check/orders.h"

#include <string.h>

#include "check/script.h"

/* *given: by step, the value that a read gave. */
static ax_status find_given(const ax_act_record *run, int64_t **given) {
  const ax_act_objects *o = &run->objects;
  int64_t *count = ax_alloc((o->semaphore_count + 1) * sizeof count[0]);
  *given = ax_calloc((size_t)run->step_count + 1, sizeof **given);
  if (count == NULL || *given == NULL) {
    ax_free(count);
    return ax_out_of_memory(0);
  }
  for (uint32_t s = 0; s < o->semaphore_count; s++) count[s] = o->semaphores[s].initial;
  for (uint32_t s = 0; s < run->step_count; s++) {
    const ax_act *act = &run->steps[s].act;
    if (act->kind == AX_ACT_SIGNAL) count[act->object] += act->amount;
    if (act->kind == AX_ACT_WAIT) count[act->object] -= act->amount;
    if (act->kind == AX_ACT_READ) (*given)[s] = count[act->object];
  }
  ax_free(count);
  return AX_OK;
}

/* Reads become acts of another kind, and those back again. */
static void turn_reads(ax_act_record *run, const bool *reads, ax_act_kind kind, const int64_t *given) {
  for (uint32_t s = 0; s < run->step_count; s++) {
    if (!reads[s]) continue;
    run->steps[s].act.kind = kind;
    run->steps[s].act.amount = given[s];
  }
}

/* How many steps of the run come before act `position` of the agent; all: it has none such. */
static uint32_t steps_before(const ax_act_record *run, uint32_t agent, uint32_t position) {
  for (uint32_t s = 0, done = 0; s < run->step_count; s++)
    if (run->steps[s].agent == agent && done++ == position) return s;
  return run->step_count;
}

/* The run itself leads to the finding: of two acts, to where the later one is next. */
static ax_status take_schedule(const ax_act_record *run, ax_act_finding *finding) {
  uint32_t steps = run->step_count;
  if (finding->other != AX_NONE) {
    const uint32_t one = steps_before(run, finding->agent, finding->position),
                   other = steps_before(run, finding->other, finding->other_position);
    steps = one > other ? one : other;
  }
  finding->schedule.count = 0;
  for (uint32_t s = 0; s < steps; s++) AX_TRY(ax_interleaving_add(&finding->schedule, run->steps[s].agent));
  return AX_OK;
}

static ax_status take_finding(ax_orders *orders, const ax_act_record *run, ax_act_finding *from) {
  ax_text text = {0};
  ax_act_finding finding = *from;
  *from = ax_act_finding_of(AX_FINDING_NONE);
  ax_text_add(&text, "%s\n  in the schedule a count that is read comes between: a read orders nothing, only waits do",
              finding.text != NULL ? finding.text : "");
  ax_free(finding.text);
  finding.text = NULL;
  finding.reordered = finding.certain = true;
  ax_status status = ax_text_finish(&text, &finding.text);
  if (status == AX_OK) status = take_schedule(run, &finding);
  if (status == AX_OK) return ax_act_findings_add(&orders->findings, finding);
  ax_interleaving_deinit(&finding.schedule);
  ax_free(finding.text);
  return status;
}

enum { most_told = 24 };
static const uint32_t results = 1u << AX_FINDING_RESULTS | 1u << AX_FINDING_ROUNDING; /* kinds, as bits */

static ax_status take(ax_orders *orders, const ax_act_record *run, uint32_t kinds, ax_act_findings *findings,
                      const ax_race_list *races) {
  orders->kinds |= kinds;
  for (uint32_t k = 0; k < findings->count && orders->findings.count < most_told; k++)
    if ((1u << findings->items[k].kind & results) == 0) AX_TRY(take_finding(orders, run, &findings->items[k]));
  for (uint32_t k = 0; k < races->count; k++) AX_TRY(ax_races_add(&orders->races, races->items[k]));
  return AX_OK;
}

static ax_status go_through(ax_orders *orders, const ax_act_record *run, uint64_t most_states) {
  ax_script script;
  ax_system system;
  ax_exploration found = {0};
  AX_TRY(ax_script_of_record(run, &script));
  ax_status status = ax_script_system(&script, &system);
  if (status == AX_OK)
    status = ax_explore(&system, &(ax_explore_options){.mode = AX_EXPLORE_REDUCED, .most_states = most_states}, &found);
  if (status == AX_OK) status = take(orders, run, found.kinds & ~results, &found.findings, &found.races);
  orders->undecided = orders->undecided || found.bounded || found.outcome_count > 1;
  ax_exploration_deinit(&found);
  ax_script_deinit(&script);
  return status;
}

/* Whether all orders are right, if reads do nothing at all. */
static ax_status all_right(const ax_act_record *run, bool *right) {
  ax_proof proof;
  AX_TRY(ax_prove(run, NULL, &proof));
  *right = proof.confluent && proof.kinds == 0;
  ax_proof_deinit(&proof);
  return AX_OK;
}

ax_status ax_orders_add(ax_orders *orders, ax_act_record *run, uint64_t most_states) {
  int64_t *given = NULL;
  bool right = false, *reads = ax_calloc((size_t)run->step_count + 1, sizeof reads[0]);
  ax_status status = reads == NULL ? ax_out_of_memory(0) : find_given(run, &given);
  for (uint32_t s = 0; s < run->step_count && status == AX_OK; s++) reads[s] = run->steps[s].act.kind == AX_ACT_READ;
  if (status == AX_OK) turn_reads(run, reads, AX_ACT_LOCAL, given);
  if (status == AX_OK) status = all_right(run, &right);
  if (status == AX_OK) turn_reads(run, reads, AX_ACT_SEEN, given);
  if (status == AX_OK && !right) status = go_through(orders, run, most_states);
  ax_free(reads);
  ax_free(given);
  return status;
}

void ax_orders_deinit(ax_orders *orders) {
  ax_act_findings_deinit(&orders->findings);
  ax_free(orders->races.items);
  *orders = (ax_orders){0};
}
