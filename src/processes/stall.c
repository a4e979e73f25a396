#include "processes/stall.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- The clock and the settings --- */

double ax_stall_clock(void *context) {
  struct timespec now;
  (void)context;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void write_to_stderr(const char *line, void *context) {
  (void)context;
  fputs(line, stderr); /* at once, so that lines of several processes do not mix */
}

static ax_status seconds_of_environment(double *seconds) {
  const char *said = getenv("AXLE_WATCH_SECONDS");
  char *end;
  *seconds = 10;
  if (said == NULL || said[0] == '\0') return AX_OK;
  *seconds = strtod(said, &end);
  if (*end == '\0' && *seconds >= 0) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "AXLE_WATCH_SECONDS is \"%s\"; it is a number of seconds, or 0 for never", said);
}

ax_status ax_stall_set(ax_stalls *stalls, double seconds, void (*write)(const char *line, void *context), void *context) {
  stalls->seconds = 0;
  stalls->write = write != NULL ? write : write_to_stderr;
  stalls->context = context;
  if (isnan(seconds)) return ax_error(AX_INVALID_ARGUMENT, "runtime: watch_seconds is no number");
  if (seconds == 0) AX_TRY(seconds_of_environment(&seconds));
  stalls->seconds = seconds > 0 ? seconds : 0;
  return AX_OK;
}

/* --- What is known of others --- */

/* What has come since the last look came now, or a little earlier. */
static void note_heard(ax_processes *p, double now) {
  pthread_mutex_lock(&p->lock);
  for (uint32_t i = 0; i < p->rule.processes; i++) {
    ax_heard *heard = &p->heard[i];
    const uint64_t messages = ax_processes_came(p, i);
    if (heard->seen == messages) continue;
    heard->seen = messages;
    heard->at = now;
  }
  pthread_mutex_unlock(&p->lock);
}

static ax_heard heard_of(const ax_stall_report *report, uint32_t process) {
  return ax_processes_heard((ax_processes *)report->processes, process); /* the lock is no part of what is read */
}

static bool waits_too(const ax_stall_report *report, uint32_t process) {
  return report->number != 0 && heard_of(report, process).waits == report->number;
}

static bool waits_for(const ax_stall_report *report, uint32_t process, uint32_t awaited) {
  return waits_too(report, process) && heard_of(report, process).waits_for == awaited;
}

static const char *last_of(const ax_processes *p) { return p->last != NULL ? p->last : "ax_runtime_create"; }

static void add_state(ax_text *text, const ax_process_seen *seen) {
  if (seen->pid == 0) return;
  ax_text_add(text, seen->stopped ? "; it is stopped (pid %d)" : " (pid %d)", (int)seen->pid);
}

static void add_bytes(ax_text *text, const char *where, uint64_t bytes) {
  const bool many = bytes >= 1000000;
  ax_text_add(text, "%s which %.0f %s are on their way", where, (double)bytes / (many ? 1e6 : 1e3), many ? "MB" : "kB");
}

/* Long payloads: nothing else comes before they have. */
static void add_payloads(ax_text *text, const ax_process_seen *seen) {
  if (seen->coming > 0) add_bytes(text, "from", seen->coming);
  if (seen->going > 0) add_bytes(text, seen->coming > 0 ? ", and to" : "to", seen->going);
}

static void add_whereabouts(ax_stall_report *report, uint32_t process) {
  const ax_processes *p = report->processes;
  const ax_heard heard = heard_of(report, process);
  ax_process_seen seen = {0};
  ax_text *text = &report->text;
  if (p->transport->look_at != NULL) p->transport->look_at(p->transport, process, &seen);
  const bool moves = seen.coming > 0 || seen.going > 0;
  ax_text_add(text, "process %u, ", process);
  if (!waits_too(report, process)) {
    if (report->number != 0 && heard.number == report->number)
      ax_text_add(text, "which has come there too, and has sent nothing for %.0f s", report->now - heard.at);
    else ax_text_add(text, "which has sent nothing since it left %s %.0f s ago", last_of(p), report->now - p->left);
    if (moves) ax_text_add(text, ", and ");
  } else if (!moves) {
    ax_text_add(text, "which waits too");
  }
  add_payloads(text, &seen);
  add_state(text, &seen);
}

/* --- Lines --- */

enum { most_named = 8 };

/* The first that is waited for, and does not wait itself unless all do. */
static uint32_t first_awaited(const ax_stall_report *report, const bool *awaited, bool all_wait) {
  for (uint32_t i = 0; i < report->processes->rule.processes; i++)
    if (awaited[i] && (all_wait || !waits_too(report, i))) return i;
  return AX_NONE;
}

/* Returns false if a process before this one reports the same. */
static bool add_waiting(ax_stall_report *report, const char *where, uint32_t awaited) {
  const uint32_t own = report->processes->rule.process;
  uint32_t more = 0;
  for (uint32_t i = 0; i < report->processes->rule.processes; i++) {
    if (i == own || !waits_for(report, i, awaited)) continue;
    if (i < own) return false;
    more++;
  }
  ax_text_add(&report->text, "axle: process %u ", own);
  if (more > 0) ax_text_add(&report->text, "and %u more wait %s for ", more, where);
  else ax_text_add(&report->text, "waits %s for ", where);
  return true;
}

void ax_stall_add(ax_stall_report *report, const char *where, const bool *awaited) {
  const ax_processes *p = report->processes;
  bool all_wait = false;
  uint32_t first = first_awaited(report, awaited, false), named = 0;
  if (first == AX_NONE) first = first_awaited(report, awaited, all_wait = true);
  if (first < report->first) report->first = first;
  if (first == AX_NONE || !add_waiting(report, where, first)) return;
  for (uint32_t i = first; i < p->rule.processes; i++) {
    if (!awaited[i] || (!all_wait && waits_too(report, i)) || named++ >= most_named) continue;
    if (named > 1) ax_text_add(&report->text, "; for ");
    add_whereabouts(report, i);
  }
  if (named > most_named) ax_text_add(&report->text, "; and for %u more", named - most_named);
  ax_text_add(&report->text, "\n");
}

/* What others have told counts no more. */
static void forget_waits(ax_processes *p) {
  pthread_mutex_lock(&p->lock);
  for (uint32_t i = 0; i < p->rule.processes; i++) p->heard[i].waits = 0;
  pthread_mutex_unlock(&p->lock);
}

static void write_report(ax_processes *p, const ax_stall_report *report) {
  if (report->text.data != NULL && !report->text.failed) p->stalls.write(report->text.data, p->stalls.context);
  forget_waits(p);
}

/* Without memory, or to a process that is gone, nothing is told: that is no reason to fail. */
static void tell_others(ax_processes *p, const ax_stall_report *report) {
  const ax_envelope envelope = {.run = report->number, .kind = AX_MESSAGE_WAITS, .member = report->first};
  for (uint32_t i = 0; i < p->rule.processes && report->number != 0 && report->first != AX_NONE; i++)
    if (i != p->rule.process) (void)!ax_processes_send(p, i, &envelope, NULL, NULL, NULL);
}

/* --- Looking --- */

void ax_stall_begin(ax_stall *stall) {
  atomic_flag_clear(&stall->looking);
  stall->begun = stall->told = false;
  stall->look = 0;
}

static void next_report(ax_stall *s, double now, double seconds) {
  s->told = false;
  s->tell = now + seconds / 2;
  s->report = now + seconds;
}

static void begin_anew(ax_stall *s, const ax_processes *p, uint64_t moves, double now) {
  s->begun = true;
  s->moves = moves;
  s->since = now;
  next_report(s, now, p->stalls.seconds);
}

static void look(ax_stall *s, ax_processes *p, uint64_t number, uint64_t moves, ax_stall_list *list, void *context) {
  const double now = p->stalls.clock(p->stalls.context_of_clock);
  const bool tells = !s->told && now >= s->tell, reports = now >= s->report;
  if (now < s->look) return;
  s->look = now + p->stalls.seconds / 64;
  note_heard(p, now);
  if (!s->begun || s->moves != moves) {
    begin_anew(s, p, moves, now);
    return;
  }
  if (!tells && !reports) return;
  ax_stall_report report = {.processes = p, .number = number, .now = now, .first = AX_NONE};
  list(context, &report);
  if (tells) tell_others(p, &report);
  s->told = true;
  if (reports) write_report(p, &report);
  if (reports) next_report(s, now, now - s->since);
  ax_text_deinit(&report.text);
}

void ax_stall_look(ax_stall *s, ax_processes *p, uint64_t number, uint64_t moves, ax_stall_list *list, void *context) {
  if (p->stalls.seconds == 0 || atomic_flag_test_and_set(&s->looking)) return;
  look(s, p, number, moves, list, context);
  atomic_flag_clear(&s->looking);
}

typedef struct lingering {
  const ax_processes *processes;
  const char *where;
  uint32_t process;
} lingering;

static void list_one(void *context, ax_stall_report *report) {
  const lingering *l = context;
  bool *awaited = ax_calloc(l->processes->rule.processes, sizeof awaited[0]);
  if (awaited == NULL) return;
  awaited[l->process] = true;
  ax_stall_add(report, l->where, awaited);
  ax_free(awaited);
}

void ax_stall_linger(ax_processes *p, const char *where, uint64_t what, uint32_t process) {
  ax_stall_look(&p->lingers, p, 0, what, list_one, &(lingering){p, where, process});
}
