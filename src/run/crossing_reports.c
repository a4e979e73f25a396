/* What reports say of exchanges between processes: who has not pushed. Nothing goes on meanwhile. */
#include "run/crossing.h"
#include "run/crossing_group.h"

static bool brings(const ax_crossing_group *g, const ax_delivery *delivery, uint64_t round, uint32_t member) {
  if (delivery->envelope.words[0] != round || ax_is_total(delivery)) return false;
  for (uint32_t i = 0; i < delivery->envelope.words[2]; i++)
    if (ax_coalesced_member(delivery, g->bytes, i) == member) return true;
  return delivery->envelope.member == member;
}

static bool has_come(const ax_crossing_group *g, uint64_t round, uint32_t member) {
  const ax_open_round *open = ax_crossing_round(g, round);
  for (uint32_t i = 0; i < ax_crossing_parties(g); i++)
    for (const ax_delivery *one = g->waiting[i].first; one != NULL; one = one->next)
      if (brings(g, one, round, member)) return true;
  return open != NULL ? open->put[member] : round <= g->latest;
}

/* As the device for which its process sends. */
static uint32_t list_missing(ax_text *text, const ax_remote *r, const ax_crossing_group *g, uint64_t round,
                             void (*list)(ax_text *, const ax_execution *, uint32_t, uint32_t), uint32_t count) {
  const ax_push *push = g->instr->push;
  const ax_crossing *crossing = push->crossing;
  for (uint32_t m = 0; m < crossing->members; m++)
    if (!ax_party_has(crossing, g->own, m) && ax_crossing_reaches(push, m, g->own) && !has_come(g, round, m))
      list(text, r->run, crossing->first[g->group * crossing->members + m], count++);
  return count;
}

uint32_t ax_crossing_missing(ax_text *text, const ax_execution *run, uint32_t counter, uint64_t round,
                             void (*list)(ax_text *, const ax_execution *, uint32_t, uint32_t), uint32_t count) {
  for (uint32_t i = 0; run->remote != NULL && i < run->compiled->crossing_groups; i++)
    if (run->remote->groups[i].counter == counter)
      count = list_missing(text, run->remote, &run->remote->groups[i], round, list, count);
  return count;
}

static void list_device(ax_text *text, const ax_execution *run, uint32_t device, uint32_t count) {
  enum { most_listed = 16 };
  if (count < most_listed) ax_text_add(text, count == 0 ? " " : ", ");
  if (count < most_listed) ax_execution_device_name(text, run, device);
  if (count == most_listed) ax_text_add(text, " and more");
}

/* Members here that have not pushed, though others have left copies behind them. */
static void list_missing_here(ax_text *text, const ax_remote *r, const ax_crossing_group *g, uint64_t round, uint32_t count) {
  const ax_crossing *crossing = g->instr->push->crossing;
  const uint64_t before = (round - 1) * crossing->members, put = atomic_load(&r->run->counters[g->counter].count);
  for (uint32_t i = 0; g->leaves && i < g->own->count; i++) {
    const uint32_t m = crossing->held[g->own->first + i];
    if (before + m >= put && !has_come(g, round, m)) list_device(text, r->run, crossing->here[g->group * crossing->members + m], count++);
  }
}

ax_status ax_crossing_report(ax_remote *r) {
  ax_text text = {0};
  ax_text_add(&text, "deadlock: devices are through, but others never come to:");
  for (uint32_t i = 0; i < r->run->compiled->crossing_groups; i++) {
    const ax_crossing_group *g = &r->groups[i];
    for (const ax_open_round *one = g->rounds; one != NULL; one = one->next) {
      ax_text_add(&text, "\n  ");
      ax_execution_equation_text(&text, r->run, g->instr);
      ax_text_add(&text, "\n    never come:");
      list_missing_here(&text, r, g, one->round, list_missing(&text, r, g, one->round, list_device, 0));
    }
  }
  ax_status status = ax_error(AX_DEADLOCK, "%s", text.data != NULL && !text.failed ? text.data : "deadlock");
  ax_text_deinit(&text);
  return status;
}

void ax_crossing_list(const ax_remote *r, ax_stall_report *report) {
  for (uint32_t i = 0; i < r->run->compiled->crossing_groups; i++) {
    const ax_crossing_group *g = &r->groups[i];
    for (const ax_open_round *one = g->rounds; one != NULL; one = one->next)
      ax_execution_list_stall(r->run, g->instr, g->counter, one->round, report);
  }
}
