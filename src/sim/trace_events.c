/* Simulations as trace events.

   A device is a process. Its track 0 is computing, and each collective has a track of its own, as several may be under way at once.
   Behind the devices, a process for each device of each kernel has a track for each agent, from the kernel's own beginning. */
#include <stdlib.h>
#include <string.h>

#include "sim/report.h"

enum { apart = 1000000 }; /* processes of kernels begin there */

/* Names of operations hold locations, which may hold any character. */
static void add_escaped(ax_text *text, const char *s) {
  for (; *s != '\0'; s++) {
    if ((unsigned char)*s < ' ')
      ax_text_add(text, "\\u%04x", (unsigned)*s);
    else
      ax_text_add(text, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
  }
}

static void add_op(ax_text *text, const ax_simulated_op *op) {
  ax_text name = {0};
  ax_sim_op_text(&name, op);
  add_escaped(text, name.data != NULL ? name.data : "");
  text->failed = text->failed || name.failed;
  ax_text_deinit(&name);
}

/* --- Tracks --- */

typedef struct track {
  uint32_t process, row;
  const ax_simulated_op *op; /* a collective's; NULL: the row computes */
  const ax_simulated_kernel *kernel;
  const char *agent;
} track;

static int by_place(const void *x, const void *y) {
  const track *a = x, *b = y;
  if (a->process != b->process) return a->process < b->process ? -1 : 1;
  return a->row < b->row ? -1 : a->row > b->row;
}

static uint32_t row_of_agent(const char *agent) { return (uint32_t)(ax_hash_bytes(AX_HASH_SEED, agent, strlen(agent)) % apart); }

static void name_process(ax_text *text, const track *t) {
  ax_text_add(text, "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%u,\"args\":{\"name\":\"", t->process);
  if (t->kernel == NULL) {
    ax_text_add(text, "device %u\"}},\n", t->process);
    return;
  }
  add_escaped(text, t->kernel->name);
  ax_text_add(text, " on device %u\"}},\n", t->process % apart);
}

static void name_row(ax_text *text, const track *t) {
  ax_text_add(text, "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"args\":{\"name\":\"", t->process, t->row);
  if (t->kernel != NULL)
    add_escaped(text, t->agent);
  else if (t->op != NULL)
    add_op(text, t->op);
  else
    ax_text_add(text, "computing");
  ax_text_add(text, "\"}},\n");
}

static track track_of(const ax_simulation *s, const ax_simulated_span *span) {
  const ax_simulated_op *op = &s->ops[span->op];
  return op->algorithm != NULL ? (track){.process = span->device, .row = 1 + span->op, .op = op} : (track){.process = span->device};
}

static track track_of_act(const ax_simulation *s, uint32_t kernel, const ax_simulated_act *act) {
  return (track){.process = apart * (1 + kernel) + act->device,
                 .row = row_of_agent(act->agent),
                 .kernel = &s->kernels[kernel],
                 .agent = act->agent};
}

/* Names each track once. */
static void name_tracks(ax_text *text, const ax_simulation *s) {
  size_t count = s->span_count, made = 0;
  for (uint32_t k = 0; k < s->kernel_count; k++) count += s->kernels[k].span_count;
  track *tracks = ax_alloc(count * sizeof tracks[0]);
  if (tracks == NULL) {
    text->failed = true;
    return;
  }
  for (uint32_t i = 0; i < s->span_count; i++) tracks[made++] = track_of(s, &s->spans[i]);
  for (uint32_t k = 0; k < s->kernel_count; k++)
    for (uint32_t i = 0; i < s->kernels[k].span_count; i++) tracks[made++] = track_of_act(s, k, &s->kernels[k].spans[i]);
  if (made > 0) qsort(tracks, made, sizeof tracks[0], by_place);
  for (size_t i = 0; i < made; i++) {
    if (i == 0 || tracks[i - 1].process != tracks[i].process) name_process(text, &tracks[i]);
    if (i == 0 || by_place(&tracks[i - 1], &tracks[i]) != 0) name_row(text, &tracks[i]);
  }
  ax_free(tracks);
}

/* --- Events --- */

static void add_times(ax_text *text, double start, double end, const track *t) {
  ax_text_add(text, "\",\"ph\":\"X\",\"ts\":%.6f,\"dur\":%.6f,\"pid\":%u,\"tid\":%u}", start * 1e6, (end - start) * 1e6, t->process,
              t->row);
}

static void add_kernel_acts(ax_text *text, const ax_simulation *s) {
  for (uint32_t k = 0; k < s->kernel_count; k++)
    for (uint32_t i = 0; i < s->kernels[k].span_count; i++) {
      const ax_simulated_act *act = &s->kernels[k].spans[i];
      const track t = track_of_act(s, k, act);
      ax_text_add(text, "{\"name\":\"");
      add_escaped(text, act->agent);
      ax_text_add(text, ": %s", act->what);
      add_times(text, act->start, act->end, &t);
      ax_text_add(text, ",\n");
    }
}

void ax_sim_trace_events(ax_text *text, const ax_simulation *s) {
  ax_text_add(text, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
  name_tracks(text, s);
  add_kernel_acts(text, s);
  for (uint32_t i = 0; i < s->span_count; i++) {
    const ax_simulated_span *span = &s->spans[i];
    const track t = track_of(s, span);
    ax_text_add(text, "{\"name\":\"");
    add_op(text, &s->ops[span->op]);
    add_times(text, span->start, span->end, &t);
    ax_text_add(text, i + 1 < s->span_count ? ",\n" : "\n");
  }
  ax_text_add(text, "]}\n");
}
