/* Findings in words. A finding says who and what; the run that its schedule leads to has the counts, and who has signalled what. */
#include "check/finding.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* --- Schedules --- */

ax_status ax_interleaving_add(ax_interleaving *schedule, uint32_t agent) {
  AX_TRY(ax_grow(&schedule->agents, sizeof schedule->agents[0], schedule->count, 1, &schedule->capacity));
  schedule->agents[schedule->count++] = agent;
  return AX_OK;
}

ax_status ax_interleaving_print(const ax_interleaving *schedule, char **out) {
  ax_text text = {0};
  for (uint32_t i = 0; i < schedule->count;) {
    uint32_t end = i + 1;
    while (end < schedule->count && schedule->agents[end] == schedule->agents[i]) end++;
    ax_text_add(&text, i == 0 ? "%u" : " %u", schedule->agents[i]);
    if (end > i + 1) ax_text_add(&text, "x%u", end - i);
    i = end;
  }
  if (schedule->count == 0) ax_text_add(&text, "%s", "");
  return ax_text_finish(&text, out);
}

static ax_status wrong(const char *text, const char *at, const char *what) {
  return ax_error(AX_PARSE_ERROR, "schedule, character %zu: %s", (size_t)(at - text) + 1, what);
}

/* Digits; false: there are none, or they are too many. */
static bool number(const char **at, uint32_t *out) {
  uint64_t n = 0;
  const char *begin = *at;
  for (; isdigit((unsigned char)**at); (*at)++) {
    n = 10 * n + (uint64_t)(**at - '0');
    if (n >= AX_NONE) return false;
  }
  *out = (uint32_t)n;
  return *at > begin;
}

enum { longest_schedule = 1 << 24 }; /* as long as a run may be */

ax_status ax_interleaving_parse(const char *text, ax_interleaving *out) {
  const char *at = text;
  while (true) {
    while (isspace((unsigned char)*at)) at++;
    if (*at == 0) return AX_OK;
    uint32_t agent, times = 1;
    if (!number(&at, &agent)) return wrong(text, at, "expected an agent's number");
    if (*at == 'x') {
      at++;
      if (!number(&at, &times) || times == 0) return wrong(text, at, "expected how many steps, at least 1");
    }
    if (*at != 0 && !isspace((unsigned char)*at)) return wrong(text, at, "expected a space");
    if (times > longest_schedule - out->count) return wrong(text, at, "more steps than a schedule may have");
    while (times-- > 0) AX_TRY(ax_interleaving_add(out, agent));
  }
}

void ax_interleaving_deinit(ax_interleaving *schedule) {
  ax_free(schedule->agents);
  *schedule = (ax_interleaving){0};
}

/* --- Lists --- */

ax_act_run ax_act_record_run(const ax_act_record *r) {
  return (ax_act_run){.objects = &r->objects,
                      .touches = &r->touches,
                      .steps = r->steps,
                      .pending = r->pending,
                      .step_count = r->step_count,
                      .pending_count = r->pending_count};
}

static void deinit_finding(ax_act_finding *finding) {
  ax_interleaving_deinit(&finding->schedule);
  ax_free(finding->text);
}

ax_act_finding ax_act_finding_of(ax_finding_kind kind) {
  return (ax_act_finding){
      .kind = kind, .agent = AX_NONE, .other = AX_NONE, .object = AX_NONE, .certain = true, .fault = {.region = AX_NONE}};
}

ax_status ax_act_findings_add(ax_act_findings *findings, ax_act_finding finding) {
  ax_status status = ax_grow(&findings->items, sizeof findings->items[0], findings->count, 1, &findings->capacity);
  if (status == AX_OK)
    findings->items[findings->count++] = finding;
  else
    deinit_finding(&finding);
  return status;
}

void ax_act_findings_deinit(ax_act_findings *findings) {
  for (uint32_t i = 0; i < findings->count; i++) deinit_finding(&findings->items[i]);
  ax_free(findings->items);
  *findings = (ax_act_findings){0};
}

/* --- Bytes as slices --- */

/* The block that holds a run of elements: where it crosses a row, all of the rows. */
static void widen(const ax_act_region *region, uint64_t begin, uint64_t end, int64_t *low, int64_t *high) {
  bool whole = false;
  uint64_t inner = 1;
  for (uint32_t d = 0; d < region->rank; d++) inner *= (uint64_t)region->dims[d];
  for (uint32_t d = 0; d < region->rank; d++) {
    inner /= (uint64_t)region->dims[d];
    int64_t first = whole ? 0 : (int64_t)(begin / inner), last = whole ? region->dims[d] - 1 : (int64_t)((end - 1) / inner);
    if (!whole && first != last)
      whole = true;
    else if (!whole) {
      begin -= (uint64_t)first * inner;
      end -= (uint64_t)first * inner;
    }
    if (first < low[d]) low[d] = first;
    if (last + 1 > high[d]) high[d] = last + 1;
  }
}

static void print_block(const ax_act_region *region, const int64_t *low, const int64_t *high, ax_text *text) {
  for (uint32_t d = 0; d < region->rank; d++) {
    ax_text_add(text, d == 0 ? "[" : ", ");
    if (high[d] == low[d] + 1)
      ax_text_add(text, "%lld", (long long)low[d]);
    else
      ax_text_add(text, "%lld:%lld", (long long)low[d], (long long)high[d]);
  }
  if (region->rank > 0) ax_text_add(text, "]");
}

/* The largest block that elements begin with, from `begin` to `end` in row-major order, of an array that has them. Returns how many
   they are. */
static uint64_t first_block(const ax_act_region *region, uint64_t begin, uint64_t end, int64_t *low, int64_t *high) {
  uint64_t inner = 1, taken = 0, at = begin;
  for (uint32_t d = 0; d < region->rank; d++) inner *= (uint64_t)region->dims[d];
  for (uint32_t d = 0; d < region->rank; d++) {
    const uint64_t dim = (uint64_t)region->dims[d];
    inner /= dim;
    low[d] = taken > 0 ? 0 : (int64_t)(at / inner);
    high[d] = taken > 0 ? (int64_t)dim : low[d] + 1;
    if (taken > 0) continue;
    at %= inner;
    if (at != 0 || end - begin < inner) continue;
    const uint64_t left = dim - (uint64_t)low[d], rows = (end - begin) / inner < left ? (end - begin) / inner : left;
    high[d] = low[d] + (int64_t)rows;
    taken = rows * inner;
  }
  return taken;
}

/* Prints runs that are no block as a few blocks, and how many elements more there are; false: they are no whole elements. */
static bool print_blocks(const ax_act_region *region, const ax_bytes *runs, uint32_t count, ax_text *text) {
  enum { few = 3 };
  uint64_t all = 1, more = 0;
  uint32_t told = 0;
  for (uint32_t d = 0; d < region->rank; d++) all *= region->dims[d] > 0 ? (uint64_t)region->dims[d] : 0;
  for (uint32_t r = 0; r < count; r++)
    if (region->elem_bytes == 0 || region->rank == 0 || runs[r].begin % region->elem_bytes != 0 ||
        runs[r].end % region->elem_bytes != 0 || runs[r].end / region->elem_bytes > all)
      return false;
  for (uint32_t r = 0; r < count; r++) {
    uint64_t begin = runs[r].begin / region->elem_bytes;
    const uint64_t end = runs[r].end / region->elem_bytes;
    for (; begin < end && told < few; told++) {
      int64_t low[AX_REGION_RANK], high[AX_REGION_RANK];
      if (told > 0) ax_text_add(text, ", ");
      begin += first_block(region, begin, end, low, high);
      print_block(region, low, high, text);
    }
    more += end - begin;
  }
  if (more > 0) ax_text_add(text, " and %llu more element%s", (unsigned long long)more, more > 1 ? "s" : "");
  return true;
}

/* Are the runs a block? Then it is in low, high. */
static bool is_block(const ax_act_region *region, const ax_bytes *runs, uint32_t count, int64_t *low, int64_t *high) {
  uint64_t elems = 0, volume = 1, all = 1;
  if (region->elem_bytes == 0 || count == 0) return false;
  for (uint32_t d = 0; d < region->rank; d++) {
    if (region->dims[d] <= 0) return false;
    low[d] = INT64_MAX;
    high[d] = 0;
    all *= (uint64_t)region->dims[d];
  }
  for (uint32_t r = 0; r < count; r++) {
    if (runs[r].begin % region->elem_bytes != 0 || runs[r].end % region->elem_bytes != 0) return false;
    uint64_t begin = runs[r].begin / region->elem_bytes, end = runs[r].end / region->elem_bytes;
    if (end > all) return false;
    elems += end - begin;
    widen(region, begin, end, low, high);
  }
  for (uint32_t d = 0; d < region->rank; d++) volume *= (uint64_t)(high[d] - low[d]);
  return volume == elems;
}

void ax_act_region_print(const ax_act_region *region, const ax_bytes *runs, uint32_t count, ax_text *text) {
  int64_t low[AX_REGION_RANK], high[AX_REGION_RANK];
  ax_text_add(text, "%s", region->name);
  if (is_block(region, runs, count, low, high)) {
    print_block(region, low, high, text);
    return;
  }
  if (print_blocks(region, runs, count, text)) return;
  enum { few = 3 };
  for (uint32_t r = 0; r < count && r < few; r++)
    ax_text_add(text, r == 0 ? " bytes %llu:%llu" : ", %llu:%llu", (unsigned long long)runs[r].begin,
                (unsigned long long)runs[r].end);
  if (count > few) ax_text_add(text, " and %u more", count - few);
}

/* --- Acts in words --- */

void ax_act_print(const ax_act_objects *o, const ax_act *act, ax_text *text) {
  if (act->what != NULL) {
    ax_text_add(text, "%s", act->what);
    return;
  }
  const char *name = ax_act_kind_name(act->kind);
  long long amount = (long long)act->amount;
  switch (act->kind) {
    case AX_ACT_SIGNAL:
      ax_text_add(text, "%s %s += %lld", name, o->semaphores[act->object].name, amount);
      break;
    case AX_ACT_WAIT:
      ax_text_add(text, "%s %s >= %lld", name, o->semaphores[act->object].name, amount);
      break;
    case AX_ACT_READ:
      ax_text_add(text, "%s %s", name, o->semaphores[act->object].name);
      break;
    case AX_ACT_ARRIVE:
      ax_text_add(text, "%s %s", name, o->barriers[act->object].name);
      break;
    case AX_ACT_AWAIT:
      ax_text_add(text, "%s %s phase %lld", name, o->barriers[act->object].name, amount);
      break;
    case AX_ACT_START:
    case AX_ACT_JOIN:
      ax_text_add(text, "%s %s", name, o->agents[act->object].name);
      break;
    default:
      ax_text_add(text, "%s", name);
      break;
  }
}

/* "device 0, core 0: wait free >= 1, at kernel.c:12". */
static void print_step(const ax_act_run *run, const ax_act_step *step, ax_text *text) {
  ax_text_add(text, "%s: ", run->objects->agents[step->agent].name);
  ax_act_print(run->objects, &step->act, text);
  if (step->act.span != NULL) ax_text_add(text, ", in %s", step->act.span);
  if (step->act.location != NULL) ax_text_add(text, ", at %s", step->act.location);
}

static const ax_act_step *pending_of(const ax_act_run *run, uint32_t agent) {
  for (uint32_t k = 0; k < run->pending_count; k++)
    if (run->pending[k].agent == agent) return &run->pending[k];
  return NULL;
}

/* Prints the agents that have done acts of a kind to an object so far, and how often. */
static void print_doers(const ax_act_run *run, ax_act_kind kind, uint32_t object, const char *done, ax_text *text) {
  enum { few = 4 };
  uint32_t agents[few], times[few], shown = 0, others = 0, count = 0;
  for (uint32_t s = 0; s < run->step_count; s++) {
    if (run->steps[s].act.kind != kind || run->steps[s].act.object != object) continue;
    uint32_t k = 0;
    while (k < shown && agents[k] != run->steps[s].agent) k++;
    count++;
    if (k < shown)
      times[k]++;
    else if (shown < few)
      agents[shown] = run->steps[s].agent, times[shown++] = 1;
    else
      others++;
  }
  if (count == 0) ax_text_add(text, "; nobody has %s it", done);
  for (uint32_t k = 0; k < shown; k++) {
    ax_text_add(text, k == 0 ? "; %s by %s" : ", %s%s", k == 0 ? done : "", run->objects->agents[agents[k]].name);
    if (times[k] > 1) ax_text_add(text, " (%u times)", times[k]);
  }
  if (others > 0) ax_text_add(text, " and others (%u times)", others);
}

static int64_t count_of(const ax_act_run *run, uint32_t semaphore) {
  int64_t count = run->objects->semaphores[semaphore].initial;
  for (uint32_t s = 0; s < run->step_count; s++) {
    const ax_act *act = &run->steps[s].act;
    if (act->object != semaphore) continue;
    count += act->kind == AX_ACT_SIGNAL ? act->amount : act->kind == AX_ACT_WAIT ? -act->amount : 0;
  }
  return count;
}

static int64_t arrivals_at(const ax_act_run *run, uint32_t barrier) {
  int64_t count = 0;
  for (uint32_t s = 0; s < run->step_count; s++)
    count += run->steps[s].act.kind == AX_ACT_ARRIVE && run->steps[s].act.object == barrier;
  return count;
}

static uint32_t acts_of(const ax_act_run *run, uint32_t agent) {
  uint32_t count = 0;
  for (uint32_t s = 0; s < run->step_count; s++) count += run->steps[s].agent == agent;
  return count;
}

/* --- Each kind --- */

/* Another is to be through; nobody knows yet after how many acts. */
static bool waits_for_all(const ax_act_step *step) { return step->act.kind == AX_ACT_JOIN && step->act.amount == INT64_MAX; }

/* Prints the object that an agent waits for, and the agents that could let it go on. */
static void print_waiting(const ax_act_run *run, const ax_act_step *step, ax_text *text) {
  const ax_act_objects *o = run->objects;
  const ax_act *act = &step->act;
  ax_text_add(text, "\n  ");
  print_step(run, step, text);
  if (act->kind == AX_ACT_WAIT) {
    const ax_act_semaphore *s = &o->semaphores[act->object];
    ax_text_add(text, "\n    semaphore %s of device %u holds %lld of %lld", s->name, s->device,
                (long long)count_of(run, act->object), (long long)act->amount);
    print_doers(run, AX_ACT_SIGNAL, act->object, "signalled", text);
  } else if (act->kind == AX_ACT_AWAIT) {
    const ax_act_barrier *b = &o->barriers[act->object];
    int64_t arrivals = arrivals_at(run, act->object), before = (act->amount - 1) * b->arrivals;
    ax_text_add(text, "\n    phase %lld of barrier %s of device %u has %lld of %u arrivals", (long long)act->amount, b->name,
                b->device, (long long)(arrivals > before ? arrivals - before : 0), b->arrivals);
    print_doers(run, AX_ACT_ARRIVE, act->object, "arrived at", text);
  } else if (act->kind == AX_ACT_READ) {
    const ax_act_semaphore *s = &o->semaphores[act->object];
    ax_text_add(text, "\n    semaphore %s of device %u holds %lld", s->name, s->device, (long long)count_of(run, act->object));
    print_doers(run, AX_ACT_SIGNAL, act->object, "signalled", text);
  } else if (waits_for_all(step)) {
    ax_text_add(text, "\n    %s is not through", o->agents[act->object].name);
  } else if (act->kind == AX_ACT_JOIN) {
    ax_text_add(text, "\n    %s has done %u acts of %lld", o->agents[act->object].name, acts_of(run, act->object),
                (long long)act->amount);
    if (acts_of(run, act->object) == 0 && pending_of(run, act->object) == NULL) ax_text_add(text, ", and is not started");
  }
}

static void explain_deadlock(const ax_act_finding *f, const ax_act_run *run, ax_text *text) {
  enum { few = 8 };
  uint32_t waiting = 0, told = 0; /* those that only wait for others to be through are not the cause, if there are others */
  for (uint32_t k = 0; k < run->pending_count; k++) waiting += !waits_for_all(&run->pending[k]);
  bool all = waiting == 0;
  if (all) waiting = run->pending_count;
  if (f->endless)
    ax_text_add(text,
                "deadlock: some agents go on for ever, as what they read never changes any more, and no end is come to");
  else
    ax_text_add(text, "deadlock: %u of %u agents wait for what never comes", waiting, run->objects->agent_count);
  for (uint32_t k = 0; k < run->pending_count && told < few; k++)
    if (all || !waits_for_all(&run->pending[k])) print_waiting(run, &run->pending[k], text), told++;
  if (waiting > few) ax_text_add(text, "\n  and %u more", waiting - few);
}

/* The bytes that both touch, of the first region where they conflict. */
static void print_common(const ax_act_run *run, const ax_act *a, const ax_act *b, ax_text *text) {
  const ax_touches *pool = run->touches;
  for (uint32_t i = a->touch_first; i < a->touch_first + a->touch_count; i++)
    for (uint32_t k = b->touch_first; k < b->touch_first + b->touch_count; k++) {
      const ax_touch *x = &pool->touches[i], *y = &pool->touches[k];
      if (x->region != y->region || (!x->write && !y->write) || ax_touch_leaves(x) || ax_touch_leaves(y)) continue;
      ax_bytes *runs = ax_alloc((x->count + y->count) * sizeof runs[0]);
      uint32_t count = 0;
      text->failed = text->failed || runs == NULL;
      for (uint32_t p = 0, q = 0; runs != NULL && p < x->count && q < y->count;) {
        ax_bytes m = pool->runs[x->first + p], n = pool->runs[y->first + q];
        ax_bytes both = {m.begin > n.begin ? m.begin : n.begin, m.end < n.end ? m.end : n.end};
        if (both.begin < both.end) runs[count++] = both;
        if (m.end < n.end)
          p++;
        else
          q++;
      }
      if (count > 0) {
        ax_act_region_print(&run->objects->regions[x->region], runs, count, text);
        ax_text_add(text, " of device %u", run->objects->regions[x->region].device);
      }
      ax_free(runs);
      if (count > 0) return;
    }
}

static const char *how(const ax_touches *pool, const ax_act *act) {
  bool reads = false, writes = false, scope = false;
  for (uint32_t i = act->touch_first; i < act->touch_first + act->touch_count; i++) {
    reads = reads || !pool->touches[i].write;
    writes = writes || pool->touches[i].write;
    scope = scope || pool->touches[i].scope;
  }
  return scope ? "begins or ends its scope" : reads && writes ? "reads and writes" : writes ? "writes" : "reads";
}

static void explain_race(const ax_act_finding *f, const ax_act_run *run, ax_text *text) {
  const ax_act_step *a = pending_of(run, f->agent), *b = pending_of(run, f->other);
  ax_text_add(text, "%s: ", ax_finding_kind_name(f->kind));
  if (a == NULL || b == NULL) {
    ax_text_add(text, "of %s and %s", run->objects->agents[f->agent].name, run->objects->agents[f->other].name);
    return;
  }
  print_common(run, &a->act, &b->act, text);
  ax_text_add(text, ": nothing says which of the two comes first");
  for (int k = 0; k < 2; k++) {
    const ax_act_step *step = k == 0 ? a : b;
    ax_text_add(text, "\n  ");
    print_step(run, step, text);
    ax_text_add(text, " (%s)", how(run->touches, &step->act));
  }
}

static void explain_leak(const ax_act_finding *f, const ax_act_run *run, ax_text *text) {
  const ax_act_semaphore *s = &run->objects->semaphores[f->object];
  ax_text_add(text, "leaked semaphore: %s of device %u holds %lld at the end", s->name, s->device, (long long)f->amount);
  print_doers(run, AX_ACT_SIGNAL, f->object, "signalled", text);
  print_doers(run, AX_ACT_WAIT, f->object, "waited for", text);
}

static void explain_barrier(const ax_act_finding *f, const ax_act_run *run, ax_text *text) {
  const ax_act_barrier *b = &run->objects->barriers[f->object];
  if (f->amount == 0) {
    ax_text_add(text, "barrier misuse: a phase of %s of device %u is left with %lld of %u arrivals at the end", b->name, b->device,
                (long long)(arrivals_at(run, f->object) % b->arrivals), b->arrivals);
    print_doers(run, AX_ACT_ARRIVE, f->object, "arrived at", text);
    return;
  }
  ax_text_add(text, "barrier misuse: phase %lld of %s of device %u is complete before %s has waited for phase %lld",
              (long long)f->amount, b->name, b->device, run->objects->agents[f->agent].name, (long long)f->amount - 1);
  const ax_act_step *step = pending_of(run, f->agent);
  if (step == NULL) return;
  ax_text_add(text, "\n  ");
  print_step(run, step, text);
}

static void explain_fault(const ax_act_finding *f, const ax_act_run *run, ax_text *text) {
  ax_text_add(text, "%s: %s", ax_finding_kind_name(f->kind), f->fault.text != NULL ? f->fault.text : "");
  if (f->fault.region < run->objects->region_count && f->fault.bytes.begin < f->fault.bytes.end) {
    ax_text_add(text, f->fault.text != NULL ? ": " : "");
    ax_act_region_print(&run->objects->regions[f->fault.region], &f->fault.bytes, 1, text);
  }
  if (run->step_count == 0) return;
  ax_text_add(text, "\n  ");
  print_step(run, &run->steps[run->step_count - 1], text);
}

/* A copy is under way from or to what cores had together. */
static void explain_shared(const ax_act_finding *f, const ax_act_run *run, ax_text *text) {
  const ax_act_region *region = &run->objects->regions[f->object];
  ax_text_add(text, "use after scope: all that share %s of device %u have left its scope", region->name, region->device);
  const ax_act_step *step = pending_of(run, f->agent);
  if (step == NULL) return;
  ax_text_add(text, "\n  ");
  print_step(run, step, text);
}

/* Where the search has stopped, another part of it may have a race, or results that differ more. */
static void explain_results(const ax_act_finding *f, ax_text *text) {
  const bool rounding = f->kind == AX_FINDING_ROUNDING;
  ax_text_add(text, rounding ? "order of additions: " : "several results: ");
  if (f->at_least) ax_text_add(text, "at least ");
  ax_text_add(text, rounding ? "%lld results are possible, which differ by roundings alone" : "%lld are possible",
              (long long)f->amount);
  if (f->at_least)
    ax_text_add(
        text, rounding ? " in the %llu states that were searched" : ", and no race was found in the %llu states that were searched",
        (unsigned long long)f->searched);
  else if (!rounding)
    ax_text_add(text, ", though no acts race");
  ax_text_add(text, rounding ? ": floats are added in the order in which agents come" : ": they follow from who comes first");
  ax_text_add(text, "; this schedule gives the second of them that was met");
}

ax_status ax_act_finding_explain(ax_act_finding *f, const ax_act_run *run) {
  ax_text text = {0};
  bool race = f->kind == AX_FINDING_RACE || (f->kind == AX_FINDING_AFTER_SCOPE && f->other != AX_NONE);
  if (race)
    explain_race(f, run, &text);
  else if (f->kind == AX_FINDING_DEADLOCK)
    explain_deadlock(f, run, &text);
  else if (f->kind == AX_FINDING_LEAK)
    explain_leak(f, run, &text);
  else if (f->kind == AX_FINDING_BARRIER)
    explain_barrier(f, run, &text);
  else if (f->kind == AX_FINDING_RESULTS || f->kind == AX_FINDING_ROUNDING)
    explain_results(f, &text);
  else if (f->kind == AX_FINDING_COPY_NOT_AWAITED) {
    ax_text_add(&text, "copy not awaited: all cores are through, and %s is still under way", run->objects->agents[f->agent].name);
    const ax_act_step *step = pending_of(run, f->agent);
    if (step != NULL) {
      ax_text_add(&text, "\n  ");
      print_step(run, step, &text);
    }
  } else if (f->kind == AX_FINDING_AFTER_SCOPE && f->fault.kind == AX_FINDING_NONE)
    explain_shared(f, run, &text);
  else
    explain_fault(f, run, &text);
  ax_free(f->text);
  f->text = NULL;
  return ax_text_finish(&text, &f->text);
}
