/* Scheduling policys: seeded, recorded, replayed. */
#include "run/policy.h"

/* --- Seeded --- */

static uint32_t pick_any(void *state, const uint32_t *ready, uint32_t count) {
  (void)ready;
  return (uint32_t)(ax_next_random(&((ax_seeded *)state)->state) % count);
}

static bool yields_sometimes(void *state, const ax_instr *instr) {
  return (AX_HOSTILE || instr->kind >= AX_INSTR_CALL) && ax_next_random(&((ax_seeded *)state)->state) % 4 == 0;
}

ax_scheduling_policy ax_choose_seeded(ax_seeded *seeded) { return (ax_scheduling_policy){pick_any, yields_sometimes, seeded}; }

/* --- Recorded --- */

static uint32_t write_down(ax_record *record, uint32_t decision) {
  if (record->status == AX_OK)
    record->status = ax_grow(&record->decisions, sizeof record->decisions[0], record->count, 1, &record->capacity);
  if (record->status == AX_OK) record->decisions[record->count++] = decision;
  return decision;
}

static uint32_t pick_and_record(void *state, const uint32_t *ready, uint32_t count) {
  ax_record *record = state;
  return write_down(record, record->scheduling_policy->pick(record->scheduling_policy->state, ready, count));
}

static bool yields_and_record(void *state, const ax_instr *instr) {
  ax_record *record = state;
  return write_down(record, record->scheduling_policy->yields(record->scheduling_policy->state, instr)) != 0;
}

ax_scheduling_policy ax_choose_recorded(ax_record *record, const ax_scheduling_policy *scheduling_policy) {
  record->scheduling_policy = scheduling_policy;
  return (ax_scheduling_policy){pick_and_record, yields_and_record, record};
}

void ax_record_deinit(ax_record *record) {
  ax_free(record->decisions);
  *record = (ax_record){0};
}

/* --- Replayed --- */

static uint32_t pick_again(void *state, const uint32_t *ready, uint32_t count) {
  ax_replay *replay = state;
  if (replay->next < replay->count) { /* a record of another program may name an index that is out of range */
    uint32_t decision = replay->decisions[replay->next++];
    return decision < count ? decision : 0;
  }
  return replay->scheduling_policy != NULL ? replay->scheduling_policy->pick(replay->scheduling_policy->state, ready, count) : 0;
}

static bool yields_again(void *state, const ax_instr *instr) {
  ax_replay *replay = state;
  if (replay->next < replay->count) return replay->decisions[replay->next++] != 0;
  return replay->scheduling_policy != NULL && replay->scheduling_policy->yields(replay->scheduling_policy->state, instr);
}

ax_scheduling_policy ax_choose_replayed(ax_replay *replay) { return (ax_scheduling_policy){pick_again, yields_again, replay}; }
