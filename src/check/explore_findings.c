/* What a search finds: at states, from runs at random, and from the whole of it. */
#include "check/explorer.h"
#include "check/prove.h"

enum { most_told = 24, most_deadlocks = 4 };

static ax_status add_steps(ax_interleaving *to, const ax_interleaving *way) {
  for (uint32_t k = 0; k < way->count; k++) AX_TRY(ax_interleaving_add(to, way->agents[k]));
  return AX_OK;
}

ax_status ax_explorer_way(const ax_explorer *e, ax_interleaving *out) {
  if (e->scouted != NULL) return add_steps(out, e->scouted);
  for (uint32_t d = 1; d < e->depth; d++)
    if (e->nodes[d].came != AX_NONE) AX_TRY(ax_interleaving_add(out, e->nodes[d].came));
  return AX_OK;
}

ax_status ax_explorer_tell(ax_explorer *e, ax_act_finding finding, uint32_t last, bool *is_new) {
  uint64_t key[2], slot,
      word = ax_hash_word((uint64_t)finding.kind << 32 | finding.object, (uint64_t)finding.agent << 32 | finding.position);
  word = ax_hash_word(word, (uint64_t)finding.other << 32 | finding.other_position);
  key[0] = ax_next_random(&word);
  key[1] = ax_next_random(&word);
  AX_TRY(ax_known_states_add(&e->told, key, &slot, is_new));
  e->out->kinds |= 1u << finding.kind;
  if (!*is_new || e->out->findings.count >= most_told) return AX_OK;
  if (finding.kind == AX_FINDING_DEADLOCK) {
    if (e->deadlocks++ >= most_deadlocks) return AX_OK;
    finding.object = AX_NONE;
  }
  ax_status status = ax_explorer_way(e, &finding.schedule);
  if (last != AX_NONE && status == AX_OK) status = ax_interleaving_add(&finding.schedule, last);
  if (status == AX_OK) return ax_act_findings_add(&e->out->findings, finding);
  ax_interleaving_deinit(&finding.schedule);
  return status;
}

/* Words for what was found: each schedule is run again. */
static ax_status explain_all(ax_explorer *e) {
  for (uint32_t k = 0; k < e->out->findings.count; k++) {
    ax_act_finding *finding = &e->out->findings.items[k];
    ax_act_record record;
    AX_TRY(ax_system_record(e->s, &finding->schedule, false, 0, &record));
    ax_act_run run = ax_act_record_run(&record);
    ax_status status = ax_act_finding_explain(finding, &run);
    ax_act_record_deinit(&record);
    AX_TRY(status);
  }
  return AX_OK;
}

static ax_status tell_endless(ax_explorer *e) {
  bool found;
  if (!ax_explorer_notes_ends(e) || e->stopped) return AX_OK;
  ax_act_finding finding = ax_act_finding_of(AX_FINDING_DEADLOCK);
  finding.endless = true;
  ax_status status = ax_ends_missing(&e->ends, e->first, &found, &finding.schedule);
  if (status == AX_OK && found) {
    e->out->kinds |= 1u << AX_FINDING_DEADLOCK;
    return ax_act_findings_add(&e->out->findings, finding);
  }
  ax_interleaving_deinit(&finding.schedule);
  return status;
}

/* Reports that there are several results, unless a race explains them. */
static ax_status tell_results(ax_explorer *e) {
  const uint32_t racy = 1u << AX_FINDING_RACE | 1u << AX_FINDING_AFTER_SCOPE;
  if (e->out->outcome_count < 2 || (e->out->kinds & racy) != 0) return AX_OK;
  ax_act_finding finding = ax_act_finding_of(e->beyond_rounding ? AX_FINDING_RESULTS : AX_FINDING_ROUNDING);
  finding.amount = e->out->outcome_count;
  finding.at_least = e->stopped;
  finding.searched = e->out->states;
  finding.schedule = e->other;
  e->other = (ax_interleaving){0};
  e->out->kinds |= 1u << finding.kind;
  return ax_act_findings_add(&e->out->findings, finding);
}

/* Reports the findings of other orders, if there are no findings besides several results. */
static ax_status tell_orders(ax_explorer *e) {
  ax_orders *orders = &e->orders;
  if ((e->out->kinds & ~(1u << AX_FINDING_RESULTS | 1u << AX_FINDING_ROUNDING)) != 0) return AX_OK;
  e->out->kinds |= orders->kinds;
  e->out->bounded = e->out->bounded || orders->undecided;
  for (uint32_t k = 0; k < orders->findings.count; k++) {
    ax_act_finding finding = orders->findings.items[k];
    orders->findings.items[k] = ax_act_finding_of(AX_FINDING_NONE);
    AX_TRY(ax_act_findings_add(&e->out->findings, finding));
  }
  for (uint32_t k = 0; k < orders->races.count; k++) AX_TRY(ax_races_add(&e->out->races, orders->races.items[k]));
  return AX_OK;
}

/* Adds a finding of the proof from a run at random, as the search would have. */
static ax_status adopt(ax_explorer *e, const ax_act_finding *found, const ax_act_record *run) {
  ax_act_finding finding = *found;
  bool is_new;
  finding.schedule = (ax_interleaving){0};
  finding.text = NULL;
  if (finding.kind == AX_FINDING_COPY_NOT_AWAITED) finding.position = 0;
  if (finding.kind == AX_FINDING_DEADLOCK) {
    uint64_t word = 0;
    for (uint32_t k = 0; k < run->pending_count; k++) word = ax_hash_word(word, run->pending[k].agent);
    finding.object = (uint32_t)word;
  }
  const bool race = finding.other != AX_NONE;
  if (race && finding.agent > finding.other) {
    finding.agent = found->other, finding.position = found->other_position;
    finding.other = found->agent, finding.other_position = found->position;
  }
  e->scouted = &found->schedule;
  const ax_status status = ax_explorer_tell(e, finding, AX_NONE, &is_new);
  e->scouted = NULL;
  if (status != AX_OK || !race || !is_new) return status;
  return ax_races_add(&e->out->races, (ax_race){finding.agent, finding.position, finding.other, finding.other_position,
                                                finding.kind == AX_FINDING_AFTER_SCOPE});
}

/* Certain findings are right whatever else holds (prove.c). */
ax_status ax_explorer_prove_scout(ax_explorer *e, const ax_interleaving *schedule) {
  enum { most_steps = 20 * 1000 * 1000 };
  ax_act_record run = {0};
  ax_proof proof = {0};
  if (e->scout_steps > most_steps) return AX_OK;
  ax_status status = ax_system_record(e->s, schedule, false, 0, &run);
  bool seen = false;
  for (uint32_t k = 0; k < run.pending_count; k++) seen = seen || run.pending[k].act.kind == AX_ACT_SEEN;
  if (status == AX_OK && !seen) status = ax_prove(&run, NULL, &proof);
  e->scout_steps += proof.steps + run.step_count;
  for (uint32_t k = 0; k < proof.findings.count && status == AX_OK; k++)
    if (proof.findings.items[k].certain) status = adopt(e, &proof.findings.items[k], &run);
  ax_proof_deinit(&proof);
  ax_act_record_deinit(&run);
  return status;
}

ax_status ax_explorer_tell_whole(ax_explorer *e) {
  AX_TRY(tell_endless(e));
  AX_TRY(tell_results(e));
  AX_TRY(explain_all(e));
  return tell_orders(e);
}
