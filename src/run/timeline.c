/* Timelines: each thread notes the spans of its own work; they are put together when the run is over.

   As text: a row for each thread, each device and each exchange under way, cut into columns of equal time. A column has the letter
   of the equation that took most of it. As JSON: the trace events that Perfetto and chrome://tracing show. */
#include "run/timeline.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ir/prim.h"
#include "run/execution.h"

enum { most_spans = 1 << 20, columns = 96, most_rows = 16 };

int64_t ax_timeline_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void ax_timeline_add(ax_execution *run, ax_worker_slot *worker_slot, uint32_t activation, uint32_t instr, int64_t begin) {
  assert(run->activations[activation].code == &run->compiled->codes[0]); /* spans are numbered in its list */
  if (worker_slot->span_count >= most_spans ||
      ax_grow(&worker_slot->spans, sizeof worker_slot->spans[0], worker_slot->span_count, 1, &worker_slot->span_capacity) != AX_OK)
    worker_slot->spans_lost = true;
  else
    worker_slot->spans[worker_slot->span_count++] =
        (ax_span){begin, ax_timeline_now(), activation, instr, (uint32_t)(worker_slot - run->worker_slots)};
}

static int by_begin(const void *a, const void *b) {
  const ax_span *x = a, *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return x->activation < y->activation ? -1 : x->activation > y->activation;
}

void ax_timeline_keep(ax_runner *runner, ax_execution *run) {
  ax_timeline made = {.whole = true};
  uint32_t count = 0;
  for (uint32_t s = 0; s < run->worker_slot_count; s++) count += run->worker_slots[s].span_count;
  made.spans = ax_alloc(count * sizeof made.spans[0]);
  for (uint32_t s = 0; s < run->worker_slot_count; s++) {
    ax_worker_slot *worker_slot = &run->worker_slots[s];
    if (made.spans != NULL && worker_slot->span_count > 0)
      memcpy(made.spans + made.count, worker_slot->spans, worker_slot->span_count * sizeof made.spans[0]);
    made.count += made.spans != NULL ? worker_slot->span_count : 0;
    made.whole = made.whole && (made.spans != NULL || count == 0) && !worker_slot->spans_lost;
    worker_slot->span_count = 0;
    worker_slot->spans_lost = false;
  }
  if (made.count > 0) qsort(made.spans, made.count, sizeof made.spans[0], by_begin);
  pthread_mutex_lock(&runner->lock);
  ax_timeline old = runner->timeline;
  runner->timeline = made;
  pthread_mutex_unlock(&runner->lock);
  ax_free(old.spans);
}

/* --- What is shown --- */

typedef struct drawing {
  const ax_compiled *c;
  const ax_span *spans;
  uint32_t count, letters;
  int64_t begin, end;
  char *letter;  /* by instruction: the letter of its equation; 0: it did nothing */
  int64_t *time; /* by instruction: time of all its spans */
  ax_text *text;
} drawing;

/* The number of an activation's device in the mesh, of which other processes may have some. */
static uint32_t device_of(const ax_compiled *c, uint32_t activation) {
  return c->codes[0].devices != NULL ? c->codes[0].devices[activation] : activation;
}

static const ax_instr *instr_of(const drawing *d, uint32_t index) { return &d->c->codes[0].instrs[index]; }

/* Gives letters to equations in the order of the list; when they run out, all others have the same. */
static void choose_letters(drawing *d) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  uint32_t first[sizeof letters]; /* by letter: an instruction of its equation */
  for (uint32_t i = 0; i < d->count; i++) {
    const ax_span *span = &d->spans[i];
    d->time[span->instr] += span->end - span->begin;
    if (span->end > d->end) d->end = span->end;
  }
  for (uint32_t i = 0; i < d->c->codes[0].instr_count; i++) {
    uint32_t l = 0;
    if (d->time[i] == 0) continue;
    while (l < d->letters && instr_of(d, first[l])->eqn != instr_of(d, i)->eqn) l++;
    if (l == d->letters && l < sizeof letters - 1) first[d->letters++] = i;
    d->letter[i] = l < sizeof letters - 1 ? letters[l] : '#';
  }
}

typedef bool shown(const drawing *d, const ax_span *span, uint32_t row);

static bool on_worker_slot(const drawing *d, const ax_span *span, uint32_t worker_slot) {
  return (void)d, span->worker_slot == worker_slot;
}
static bool on_device(const drawing *d, const ax_span *span, uint32_t device) { return (void)d, span->activation == device; }
static bool of_letter(const drawing *d, const ax_span *span, uint32_t letter) {
  return instr_of(d, span->instr)->kind == AX_INSTR_PUSH && d->letter[span->instr] == (char)letter;
}

static int64_t column_at(const drawing *d, uint32_t column) { return d->begin + (d->end - d->begin) * column / columns; }

/* Prints a row: each column has the letter that takes most of its time; a dot: there is none. */
static void row(drawing *d, shown *is_shown, uint32_t which) {
  int64_t most[columns] = {0};
  char line[columns + 1];
  memset(line, '.', columns);
  line[columns] = '\0';
  for (uint32_t i = 0; i < d->count; i++) {
    const ax_span *span = &d->spans[i];
    if (!is_shown(d, span, which)) continue;
    int64_t length = d->end - d->begin;
    uint32_t from = (uint32_t)((span->begin - d->begin) * columns / length),
             to = (uint32_t)((span->end - d->begin) * columns / length);
    for (uint32_t c = from; c <= to && c < columns; c++) {
      int64_t begin = column_at(d, c), end = column_at(d, c + 1);
      int64_t inside = (span->end < end ? span->end : end) - (span->begin > begin ? span->begin : begin);
      if (inside < most[c] || (inside == 0 && line[c] != '.')) continue;
      most[c] = inside;
      line[c] = d->letter[span->instr];
    }
  }
  ax_text_add(d->text, "%s\n", line);
}

/* Prints a row for an exchange: each time round from the first of a group's parts to the last. The n-th span of an activation
   belongs to round n. */
static void under_way(drawing *d, char letter) {
  char line[columns + 1];
  memset(line, '.', columns);
  line[columns] = '\0';
  uint32_t *round = ax_calloc(d->c->activation_count, sizeof round[0]), last = 0;
  int64_t from = 0, to = 0;
  for (uint32_t i = 0; i <= d->count && round != NULL; i++) {
    const ax_span *span = i < d->count ? &d->spans[i] : NULL;
    if (span != NULL && !of_letter(d, span, (uint32_t)(unsigned char)letter)) continue;
    uint32_t now = span != NULL ? round[span->activation]++ : last + 1;
    if (now != last || i == 0) {
      uint32_t begin = (uint32_t)((from - d->begin) * columns / (d->end - d->begin)),
               end = (uint32_t)((to - d->begin) * columns / (d->end - d->begin));
      for (uint32_t c = begin; from > 0 && c <= end && c < columns; c++) line[c] = '=';
      from = 0;
      last = now;
    }
    if (span != NULL && (from == 0 || span->begin < from)) from = span->begin;
    if (span != NULL && span->end > to) to = span->end;
  }
  ax_free(round);
  ax_text_add(d->text, "%s\n", line);
}

static void legend(drawing *d) {
  const ax_execution at = {.compiled = d->c};
  int64_t all = 0;
  for (uint32_t i = 0; i < d->c->codes[0].instr_count; i++) all += d->time[i];
  ax_text_add(d->text, "\n");
  for (uint32_t i = 0; i < d->c->codes[0].instr_count; i++) {
    bool first = d->letter[i] != 0;
    for (uint32_t k = 0; k < i && first; k++) first = d->letter[k] != d->letter[i];
    if (!first) continue;
    int64_t time = 0;
    for (uint32_t k = i; k < d->c->codes[0].instr_count; k++) time += d->letter[k] == d->letter[i] ? d->time[k] : 0;
    ax_text_add(d->text, "%c %5.1f %%  ", d->letter[i], 100 * (double)time / (double)(all > 0 ? all : 1));
    if (d->letter[i] == '#') ax_text_add(d->text, "all others");
    else if (instr_of(d, i)->eqn == NULL) ax_text_add(d->text, "copies of carries and results");
    else ax_execution_equation_text(d->text, &at, instr_of(d, i));
    ax_text_add(d->text, "\n");
  }
}

static uint32_t worker_slot_count(const drawing *d) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < d->count; i++) count = d->spans[i].worker_slot >= count ? d->spans[i].worker_slot + 1 : count;
  return count;
}

static void draw(drawing *d) {
  const uint32_t worker_slots = worker_slot_count(d), devices = d->c->activation_count;
  ax_text_add(d->text, "%.3f ms, a column is %.1f us\n", (double)(d->end - d->begin) * 1e-6,
              (double)(d->end - d->begin) * 1e-3 / columns);
  for (uint32_t s = 0; s < worker_slots && s < most_rows; s++) {
    ax_text_add(d->text, "thread %-5u ", s);
    row(d, on_worker_slot, s);
  }
  for (uint32_t f = 0; f < devices && f < most_rows; f++) {
    ax_text_add(d->text, "device %-5u ", device_of(d->c, f));
    row(d, on_device, f);
  }
  if (devices > most_rows) ax_text_add(d->text, "%u more devices\n", devices - most_rows);
  bool drawn[128] = {['#'] = true}; /* an equation may have several exchanges */
  for (uint32_t i = 0; i < d->c->codes[0].instr_count; i++) {
    if (d->letter[i] == 0 || instr_of(d, i)->kind != AX_INSTR_PUSH || drawn[(unsigned char)d->letter[i]]) continue;
    drawn[(unsigned char)d->letter[i]] = true;
    ax_text_add(d->text, "%c under way  ", d->letter[i]);
    under_way(d, d->letter[i]);
  }
  legend(d);
}

/* --- As trace events --- */

static void event(ax_text *text, const char *name, const ax_span *span, int64_t start, uint32_t process, uint32_t row, bool more) {
  ax_text_add(text, "{\"name\":\"%s\",\"ph\":\"X\",\"ts\":%.3f,\"dur\":%.3f,\"pid\":%u,\"tid\":%u}%s\n", name,
              (double)(span->begin - start) * 1e-3, (double)(span->end - span->begin) * 1e-3, process, row, more ? "," : "");
}

/* Adds text as part of a JSON string: locations may contain any character. */
static void add_escaped(ax_text *text, const char *s) {
  for (; *s != '\0'; s++) {
    if ((unsigned char)*s < ' ') ax_text_add(text, "\\u%04x", (unsigned)*s);
    else ax_text_add(text, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
  }
}

/* Where events are shown: by what Perfetto calls processes, and rows of these. */
typedef struct place {
  uint32_t threads, devices; /* the process that has a row for each thread; for each device */
  uint32_t first_device;     /* the row of device 0 */
  int64_t start;             /* the time that is shown as 0 */
} place;

static void name_row(ax_text *text, uint32_t process, uint32_t row, const char *kind, uint32_t number) {
  ax_text_add(text, ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"args\":{\"name\":\"%s %u\"}}", process,
              row, kind, number);
}

static void name_rows(const drawing *d, const place *at) {
  for (uint32_t s = 0; s < worker_slot_count(d); s++) name_row(d->text, at->threads, s, "thread", s);
  for (uint32_t f = 0; f < d->c->activation_count; f++) {
    const uint32_t device = device_of(d->c, f);
    name_row(d->text, at->devices, at->first_device + device, "device", device);
  }
}

static void add_events(const drawing *d, const place *at) {
  for (uint32_t i = 0; i < d->count; i++) {
    const ax_span *span = &d->spans[i];
    const ax_eqn *eqn = instr_of(d, span->instr)->eqn;
    ax_text name = {0};
    ax_text_add(&name, "%s", eqn != NULL ? eqn->prim->name : "copy");
    if (eqn != NULL && eqn->location != NULL) {
      ax_text_add(&name, " (");
      add_escaped(&name, eqn->location);
      ax_text_add(&name, ")");
    }
    const char *shown = name.data != NULL ? name.data : "";
    event(d->text, shown, span, at->start, at->threads, span->worker_slot, true);
    event(d->text, shown, span, at->start, at->devices, at->first_device + device_of(d->c, span->activation), i + 1 < d->count);
    ax_text_deinit(&name);
  }
}

static const char trace_begin[] = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", trace_end[] = "]}\n";

/* Process 0 has a row for each thread, process 1 one for each device. */
static void trace_events(const drawing *d) {
  const place at = {.devices = 1, .start = d->begin};
  ax_text_add(d->text, "%s", trace_begin);
  ax_text_add(d->text, "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":0,\"args\":{\"name\":\"threads\"}},\n");
  ax_text_add(d->text, "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"args\":{\"name\":\"devices\"}}");
  name_rows(d, &at);
  ax_text_add(d->text, d->count > 0 ? ",\n" : "\n");
  add_events(d, &at);
  ax_text_add(d->text, "%s", trace_end);
}

/* What one of several processes adds: threads and devices are rows of one process, threads first. */
static void own_events(const drawing *d, const ax_timeline_process *p) {
  enum { most_threads = 1 << 16 };
  const place at = {p->number, p->number, most_threads, p->start};
  ax_text_add(d->text, "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%u,\"args\":{\"name\":\"process %u on ", p->number, p->number);
  add_escaped(d->text, p->host);
  ax_text_add(d->text, "\"}}");
  if (p->number > 0)
    ax_text_add(d->text, ",\n{\"name\":\"process_labels\",\"ph\":\"M\",\"pid\":%u,\"args\":{\"labels\":\"times to within %.1f us\"}}",
                p->number, (double)p->within * 1e-3);
  name_rows(d, &at);
  ax_text_add(d->text, d->count > 0 ? ",\n" : "\n");
  add_events(d, &at);
}

void ax_timeline_join(ax_text *text, ax_timeline_form form, uint32_t count, const char *const *parts) {
  if (form == AX_TIMELINE_JSON) ax_text_add(text, "%s", trace_begin);
  for (uint32_t p = 0; p < count; p++) {
    if (form == AX_TIMELINE_JSON && p > 0) ax_text_add(text, ",");
    ax_text_add_bytes(text, parts[p], strlen(parts[p]));
  }
  if (form == AX_TIMELINE_JSON) ax_text_add(text, "%s", trace_end);
}

static ax_status nothing_to_show(void) {
  return ax_error(AX_INVALID_ARGUMENT, "executable_timeline: no run has ended, or none computed anything");
}

/* p: NULL, or the process whose part of a timeline of several it is. */
static ax_status show(const ax_compiled *c, const ax_timeline *timeline, ax_timeline_form form, const ax_timeline_process *p,
                      ax_text *text) {
  drawing d = {.c = c, .spans = timeline->spans, .count = timeline->count, .text = text};
  if (d.count == 0 && p != NULL) { /* others may have computed something */
    if (form == AX_TIMELINE_JSON) own_events(&d, p);
    return AX_OK;
  }
  if (d.count == 0) return nothing_to_show();
  d.begin = d.end = timeline->spans[0].begin;
  uint32_t instrs = c->codes[0].instr_count;
  d.letter = ax_calloc(instrs, 1);
  d.time = ax_calloc(instrs, sizeof d.time[0]);
  ax_status status = d.letter != NULL && d.time != NULL ? AX_OK : ax_out_of_memory(instrs * sizeof d.time[0]);
  if (status == AX_OK) {
    choose_letters(&d);
    if (p != NULL) {
      d.begin = p->start;
      d.end = p->end;
    }
    if (d.end == d.begin) d.end++;
    if (form == AX_TIMELINE_JSON && p != NULL) own_events(&d, p);
    else if (form == AX_TIMELINE_JSON) trace_events(&d);
    else draw(&d);
    if (form == AX_TIMELINE_TEXT && !timeline->whole) ax_text_add(text, "some of it is left out: there was too much\n");
  }
  ax_free(d.letter);
  ax_free(d.time);
  return status;
}

static ax_status check_timed(const ax_runner *runner) {
  if (runner->compiled->timed) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "executable_timeline: it was compiled without ax_compile_options.timeline");
}

ax_status ax_runner_visit_timeline(ax_runner *runner, ax_span_visitor see, void *context) {
  AX_TRY(check_timed(runner));
  const ax_compiled *c = runner->compiled;
  pthread_mutex_lock(&runner->lock);
  const ax_timeline *t = &runner->timeline;
  for (uint32_t i = 0; i < t->count; i++) {
    const ax_span *span = &t->spans[i];
    const ax_eqn *eqn = c->codes[0].instrs[span->instr].eqn;
    see(&(ax_timeline_span){span->begin, span->end, span->worker_slot, device_of(c, span->activation), eqn != NULL ? eqn->prim->name : "copy",
                            eqn != NULL ? eqn->location : NULL},
        context);
  }
  const uint32_t count = t->count;
  const bool whole = t->whole;
  pthread_mutex_unlock(&runner->lock);
  if (!whole) return ax_error(AX_OUT_OF_MEMORY, "executable_visit_timeline: some of it is left out: there was too much, or no memory");
  return count > 0 ? AX_OK : nothing_to_show();
}

ax_status ax_runner_timeline(ax_runner *runner, ax_timeline_form form, const ax_timeline_process *process, char **out) {
  ax_text text = {0};
  *out = NULL;
  if (form != AX_TIMELINE_TEXT && form != AX_TIMELINE_JSON)
    return ax_error(AX_INVALID_ARGUMENT, "executable_timeline: the form is %d, which is none", (int)form);
  AX_TRY(check_timed(runner));
  pthread_mutex_lock(&runner->lock);
  if (process != NULL && form == AX_TIMELINE_TEXT) ax_text_add(&text, "process %u on %s\n", process->number, process->host);
  ax_status status = show(runner->compiled, &runner->timeline, form, process, &text);
  pthread_mutex_unlock(&runner->lock);
  if (status == AX_OK) return ax_text_finish(&text, out);
  ax_text_deinit(&text);
  return status;
}

bool ax_runner_timeline_reach(ax_runner *runner, int64_t *begin, int64_t *end) {
  pthread_mutex_lock(&runner->lock);
  const ax_timeline *t = &runner->timeline;
  *begin = *end = t->count > 0 ? t->spans[0].begin : 0;
  for (uint32_t i = 0; i < t->count; i++)
    if (t->spans[i].end > *end) *end = t->spans[i].end;
  const bool any = t->count > 0;
  pthread_mutex_unlock(&runner->lock);
  return any;
}
