/* Timelines of several processes as one: clocks are compared, all agree on the time that is shown as 0, and process 0 puts together
   what each has made of its own spans. */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "array/executable.h"
#include "array/pending.h"
#include "axle/processes.h"
#include "processes/clocks.h"
#include "processes/collect.h"

enum { host_bytes = 256 };

typedef struct gathering {
  ax_executable *executable;
  ax_processes *processes;
  ax_timeline_form form;
  ax_timeline_process own;
  char host[host_bytes];
} gathering;

static void describe(const void *context, ax_text *text) {
  const gathering *g = context;
  const unsigned long long digest = g->executable->check;
  ax_text_add(text, "gathers a timeline of form %d of a program with digest %016llx", (int)g->form, digest);
}

static ax_doing doing_of(const gathering *g) {
  const uint64_t check = ax_hash_word(ax_hash_word(14, g->executable->check), (uint64_t)g->form);
  return (ax_doing){check | 1, describe, g, "the gathering of a timeline"};
}

/* Brings what each process gives to `root`, or to all; *out: ax_collected_deinit, then ax_free. */
static ax_status collect(const gathering *g, ax_status status, uint32_t root, const void *data, size_t bytes, ax_collected **out) {
  const ax_doing doing = doing_of(g);
  const uint32_t count = g->processes->rule.processes;
  *out = ax_calloc(count, sizeof **out);
  if (*out == NULL && status == AX_OK) status = ax_out_of_memory(count * sizeof **out);
  if (*out == NULL) return ax_agree(g->processes, &(ax_doing){0, describe, g, doing.what}, status);
  status = ax_collect_bytes(g->processes, &doing, status, root, data, bytes, *out);
  if (status == AX_OK) return AX_OK;
  ax_free(*out);
  *out = NULL;
  return status;
}

static void drop(const gathering *g, ax_collected *collected) {
  if (collected != NULL) ax_collected_deinit(collected, g->processes->rule.processes);
  ax_free(collected);
}

/* From when to when a process has spans, by the clock of process 0. */
typedef struct reach {
  int64_t begin, end;
  bool any;
} reach;

/* The run began when the first process did, and ended when the last one did. */
static ax_status find_reach(gathering *g, int64_t ahead) {
  reach one = {0}, all = {0};
  ax_collected *each;
  one.any = ax_runner_timeline_reach(&g->executable->runner, &one.begin, &one.end);
  one.begin -= ahead;
  one.end -= ahead;
  AX_TRY(collect(g, AX_OK, AX_NONE, &one, sizeof one, &each));
  for (uint32_t p = 0; p < g->processes->rule.processes; p++) {
    memcpy(&one, each[p].data, sizeof one);
    if (one.any && (!all.any || one.begin < all.begin)) all.begin = one.begin;
    if (one.any && (!all.any || one.end > all.end)) all.end = one.end;
    all.any = all.any || one.any;
  }
  drop(g, each);
  if (!all.any) return ax_error(AX_INVALID_ARGUMENT, "executable_gather_timeline: no run has ended, or none computed anything");
  g->own.start = all.begin + ahead;
  g->own.end = all.end + ahead;
  return AX_OK;
}

static ax_status join(const gathering *g, const ax_collected *parts, char **out) {
  const uint32_t count = g->processes->rule.processes;
  ax_text text = {0};
  const char **texts = ax_calloc(count, sizeof texts[0]);
  if (texts == NULL) return ax_out_of_memory(count * sizeof texts[0]);
  for (uint32_t p = 0; p < count; p++) texts[p] = parts[p].data;
  ax_timeline_join(&text, g->form, count, texts);
  ax_free(texts);
  return ax_text_finish(&text, out);
}

static ax_status gather(gathering *g, char **out) {
  ax_clock_ahead clock;
  ax_collected *parts;
  char *own = NULL;
  AX_TRY(ax_clocks_compare(g->processes, AX_OK, ax_timeline_now, 0, &clock));
  g->own.within = clock.within;
  AX_TRY(find_reach(g, clock.ahead));
  ax_status status = ax_runner_timeline(&g->executable->runner, g->form, &g->own, &own);
  status = collect(g, status, 0, own, own != NULL ? strlen(own) : 0, &parts);
  ax_string_free(own);
  if (status != AX_OK) return status;
  if (g->own.number == 0) status = join(g, parts, out);
  drop(g, parts);
  const ax_doing doing = doing_of(g);
  return ax_agree(g->processes, &doing, status);
}

ax_status ax_executable_gather_timeline(ax_executable *e, ax_timeline_form form, char **out) {
  *out = NULL;
  AX_TRY(ax_require(e, "executable"));
  if (e->compiled.map == NULL || !e->compiled.timed) return ax_executable_timeline(e, form, out);
  gathering g = {.executable = e, .processes = e->runtime->executor.processes, .form = form};
  g.own = (ax_timeline_process){.number = g.processes->rule.process, .host = g.host};
  if (gethostname(g.host, sizeof g.host) != 0) strcpy(g.host, "an unknown machine");
  g.host[sizeof g.host - 1] = '\0';
  ax_pending_wait_together(e->runtime);
  ax_status status = gather(&g, out);
  if (status == AX_OK) return AX_OK;
  ax_string_free(*out);
  *out = NULL;
  return status;
}
