/* Findings that follow from others are left out.

   An agent with a fault stops, and does not wait for what it would have waited for. So counts stay, phases are half done, agents
   wait for it, copies are under way when their devices end. And a copy that its core has started, and will not wait for, is in no
   order with the end of the device.

   A copy that is not awaited leaves what it signals on a semaphore, and is in no order with the end of its core's device. If more
   is left on the semaphore, or less, that has another reason as well.

   Findings are compared by their words, without the numbers of agents. */
#include "check/told.h"

#include <string.h>

static bool has_fault(const ax_act_finding *finding) { return finding->fault.kind != AX_FINDING_NONE; }

bool ax_finding_is_cause(const ax_act_finding *finding) {
  return has_fault(finding) || finding->kind == AX_FINDING_COPY_NOT_AWAITED;
}

/* Of a race of a copy with the end of its core's device: the copy. AX_NONE: it is none. */
static uint32_t copy_at_end(const ax_watch *watch, const ax_act_finding *f) {
  if (f->kind != AX_FINDING_RACE && f->kind != AX_FINDING_AFTER_SCOPE) return AX_NONE;
  if (f->agent == AX_NONE || f->other == AX_NONE || ax_watch_is_end(watch, f->agent) == ax_watch_is_end(watch, f->other))
    return AX_NONE;
  const uint32_t end = ax_watch_is_end(watch, f->agent) ? f->agent : f->other, copy = end == f->agent ? f->other : f->agent;
  return watch->objects.agents[copy].device == watch->objects.agents[end].device ? copy : AX_NONE;
}

static bool is_awaited(const ax_act_findings *all, uint32_t copy) {
  for (uint32_t k = 0; k < all->count; k++)
    if (all->items[k].kind == AX_FINDING_COPY_NOT_AWAITED && all->items[k].agent == copy) return false;
  return true;
}

/* All that is left on the semaphore is of copies that are not awaited. */
static ax_status leaks_by_copies(ax_watch *watch, const ax_act_findings *all, const ax_act_finding *leak, bool *out) {
  const ax_system system = ax_watch_system(watch);
  ax_act_record run = {0};
  int64_t amount = 0;
  AX_TRY(ax_system_record(&system, &leak->schedule, false, 0, &run));
  for (uint32_t s = 0; s < run.step_count; s++) {
    const ax_act *act = &run.steps[s].act;
    if (act->kind == AX_ACT_SIGNAL && act->object == leak->object && !is_awaited(all, run.steps[s].agent)) amount += act->amount;
  }
  *out = amount == leak->amount;
  ax_act_record_deinit(&run);
  return AX_OK;
}

static bool follows_from_fault(const ax_watch *watch, const ax_act_findings *all, const ax_act_finding *finding) {
  const uint32_t copy = copy_at_end(watch, finding);
  for (uint32_t k = 0; k < all->count && copy != AX_NONE; k++)
    if (has_fault(&all->items[k]) && all->items[k].agent == ax_watch_core(watch, copy)) return true;
  ax_finding_kind kind = finding->kind;
  if (kind == AX_FINDING_AFTER_SCOPE) return finding->other != AX_NONE; /* its device comes to an end early */
  return kind == AX_FINDING_DEADLOCK || kind == AX_FINDING_LEAK || kind == AX_FINDING_BARRIER ||
         kind == AX_FINDING_COPY_NOT_AWAITED;
}

ax_status ax_finding_follows(ax_watch *watch, const ax_act_findings *all, const ax_act_finding *finding, bool *out) {
  bool fault = false, copies = false;
  *out = false;
  for (uint32_t k = 0; k < all->count; k++) {
    fault = fault || has_fault(&all->items[k]);
    copies = copies || all->items[k].kind == AX_FINDING_COPY_NOT_AWAITED;
  }
  if (has_fault(finding)) return AX_OK;
  if (fault && follows_from_fault(watch, all, finding)) *out = true;
  if (fault || !copies) return AX_OK;
  if (finding->kind == AX_FINDING_LEAK) return leaks_by_copies(watch, all, finding, out);
  const uint32_t copy = copy_at_end(watch, finding);
  *out = copy != AX_NONE && !is_awaited(all, copy);
  return AX_OK;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Whether the number at `at` is of a line: "at line 12", "at kernel.c:12". */
static bool is_line(const char *text, const char *at) {
  if (at - text >= 5 && memcmp(at - 5, "line ", 5) == 0) return true;
  return at - text >= 2 && at[-1] == ':' && !is_digit(at[-2]) && at[-2] != ' ';
}

/* The next letter of a text without numbers, as those of devices and copies; lines of the program tell findings apart. */
static char next_plain(const char *text, const char **at) {
  if (is_digit(**at) && !(*at > text && is_digit((*at)[-1])) && !is_line(text, *at))
    while (is_digit(**at)) (*at)++;
  return **at == 0 ? 0 : *(*at)++;
}

bool ax_findings_alike(const ax_act_finding *a, const ax_act_finding *b) {
  if (a->kind != b->kind || a->text == NULL || b->text == NULL) return false;
  const char *x = a->text, *y = b->text;
  for (;;) {
    char next = next_plain(a->text, &x);
    if (next != next_plain(b->text, &y)) return false;
    if (next == 0) return true;
  }
}
