/* The profiler of PJRT's interface. What runs have noted is given as XLA's XSpace: a plane of threads and one of devices, which has the programs
   too. A plane has a line for each, and a line events: equations with their lines of code. */
#include "pjrt/profile.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "pjrt/ffi.h"
#include "client/messages.pb-c.h"

enum { most_spans = 1 << 22 };
static const uint32_t nobody = UINT32_MAX;

typedef struct noted { /* a span; nobody's is a run of a program */
  int64_t begin, end;
  uint32_t thread, device, name;
} noted;

struct ax_profiler {
  int64_t started, wall; /* when, in ns, by CLOCK_MONOTONIC and by CLOCK_REALTIME */
  noted *spans;
  char **names;    /* each once */
  uint32_t *slots; /* open addressing: a name's number + 1 */
  uint32_t span_count, span_capacity, name_count, name_capacity, slot_count;
  bool is_lacking; /* something found no memory, or no place */
  uint8_t *bytes;  /* as it is given; NULL: not made yet */
  size_t byte_count;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ax_profiler *at_work; /* under the lock; NULL: none */
static atomic_bool is_profiled;

bool ax_pjrt_is_profiled(void) { return atomic_load_explicit(&is_profiled, memory_order_relaxed); }

static int64_t now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* --- Names --- */

static uint32_t slot_of(const ax_profiler *p, const char *name) {
  uint32_t slot = (uint32_t)(ax_hash_bytes(0, name, strlen(name)) % p->slot_count);
  while (p->slots[slot] != 0 && strcmp(p->names[p->slots[slot] - 1], name) != 0) slot = (slot + 1) % p->slot_count;
  return slot;
}

static ax_status widen(ax_profiler *p) {
  const uint32_t count = 2 * p->slot_count + 64;
  uint32_t *slots = ax_calloc(count, sizeof slots[0]);
  if (slots == NULL) return ax_out_of_memory(count * sizeof slots[0]);
  ax_free(p->slots);
  p->slots = slots;
  p->slot_count = count;
  for (uint32_t i = 0; i < p->name_count; i++) p->slots[slot_of(p, p->names[i])] = i + 1;
  return AX_OK;
}

static ax_status number_of(ax_profiler *p, const char *name, uint32_t *out) {
  if (2 * p->name_count >= p->slot_count) AX_TRY(widen(p));
  const uint32_t slot = slot_of(p, name);
  if (p->slots[slot] == 0) {
    const size_t bytes = strlen(name) + 1;
    AX_TRY(ax_grow(&p->names, sizeof p->names[0], p->name_count, 1, &p->name_capacity));
    char *own = ax_alloc(bytes);
    if (own == NULL) return ax_out_of_memory(bytes);
    memcpy(own, name, bytes);
    p->names[p->name_count++] = own;
    p->slots[slot] = p->name_count;
  }
  *out = p->slots[slot] - 1;
  return AX_OK;
}

/* --- Runs --- */

static void add(ax_profiler *p, noted span, const char *name) {
  if (p->span_count < most_spans && number_of(p, name, &span.name) == AX_OK &&
      ax_grow(&p->spans, sizeof p->spans[0], p->span_count, 1, &p->span_capacity) == AX_OK)
    p->spans[p->span_count++] = span;
  else
    p->is_lacking = true;
}

typedef struct adding {
  ax_profiler *profiler;
  int64_t begin, end;
} adding;

static void see(const ax_timeline_span *span, void *context) {
  adding *a = context;
  char name[512];
  const char *where = span->location;
  snprintf(name, sizeof name, where != NULL ? "%s (%s)" : "%s", span->primitive, where);
  if (a->begin == 0 || span->begin < a->begin) a->begin = span->begin;
  if (span->end > a->end) a->end = span->end;
  add(a->profiler, (noted){span->begin, span->end, span->thread, span->device, 0}, name);
}

void ax_pjrt_profile_add(ax_executable *executable, const char *program) {
  pthread_mutex_lock(&lock);
  adding a = {.profiler = at_work};
  if (at_work != NULL) {
    const ax_status status = ax_executable_visit_timeline(executable, see, &a); /* refused: it computed nothing */
    at_work->is_lacking = at_work->is_lacking || status == AX_OUT_OF_MEMORY;
    if (a.end > 0) add(at_work, (noted){a.begin, a.end, nobody, nobody, 0}, program);
  }
  pthread_mutex_unlock(&lock);
}

/* --- As an XSpace, whose messages are in an arena --- */

typedef AxPjrtProto__XEvent event;
typedef AxPjrtProto__XLine line;
typedef AxPjrtProto__XPlane plane;
typedef AxPjrtProto__XPlane__EventMetadataEntry entry;
typedef AxPjrtProto__XEventMetadata metadata;

/* Which line of the plane of threads or of devices the span is on; nobody's: on none. */
static uint32_t line_of(const noted *span, bool of_devices) {
  if (span->thread == nobody) return of_devices ? 0 : nobody;
  return of_devices ? span->device + 1 : span->thread;
}

static bool begin_line(ax_arena *arena, bool of_devices, uint32_t index, int64_t wall, line *out) {
  enum { longest = 24 };
  *out = (line)AX_PJRT_PROTO__XLINE__INIT;
  out->id = index;
  out->timestamp_ns = wall;
  out->name = ax_arena_alloc(arena, longest);
  if (out->name == NULL) return false;
  if (of_devices && index == 0) snprintf(out->name, longest, "programs");
  else snprintf(out->name, longest, of_devices ? "device %u" : "thread %u", of_devices ? index - 1 : index);
  return true;
}

/* The lines of a plane, with room for their events. */
static bool make_lines(const ax_profiler *p, ax_arena *arena, bool of_devices, plane *out) {
  uint32_t count = 0;
  for (uint32_t s = 0; s < p->span_count; s++) {
    const uint32_t i = line_of(&p->spans[s], of_devices);
    if (i != nobody && i >= count) count = i + 1;
  }
  line *lines = ax_arena_alloc(arena, (count + 1) * sizeof lines[0]);
  out->lines = ax_arena_alloc(arena, (count + 1) * sizeof out->lines[0]);
  event **events = ax_arena_alloc(arena, (p->span_count + 1) * sizeof events[0]);
  if (lines == NULL || out->lines == NULL || events == NULL) return false;
  for (uint32_t i = 0; i < count; i++) {
    if (!begin_line(arena, of_devices, i, p->wall, &lines[i])) return false;
    out->lines[out->n_lines++] = &lines[i];
  }
  for (uint32_t s = 0; s < p->span_count; s++)
    if (line_of(&p->spans[s], of_devices) != nobody) lines[line_of(&p->spans[s], of_devices)].n_events++;
  for (uint32_t i = 0; i < count; i++) lines[i].events = events, events += lines[i].n_events, lines[i].n_events = 0;
  return true;
}

static bool add_events(const ax_profiler *p, ax_arena *arena, bool of_devices, plane *out) {
  event *events = ax_arena_alloc(arena, (p->span_count + 1) * sizeof events[0]);
  if (events == NULL) return false;
  for (uint32_t s = 0; s < p->span_count; s++) {
    const noted *span = &p->spans[s];
    const uint32_t i = line_of(span, of_devices);
    if (i == nobody) continue;
    events[s] = (event)AX_PJRT_PROTO__XEVENT__INIT;
    events[s].metadata_id = span->name + 1;
    events[s].offset_ps = (span->begin - p->started) * 1000;
    events[s].duration_ps = (span->end - span->begin) * 1000;
    out->lines[i]->events[out->lines[i]->n_events++] = &events[s];
  }
  return true;
}

/* Each plane has all names. */
static bool name_events(const ax_profiler *p, ax_arena *arena, plane *out) {
  metadata *all = ax_arena_alloc(arena, (p->name_count + 1) * sizeof all[0]);
  entry *entries = ax_arena_alloc(arena, (p->name_count + 1) * sizeof entries[0]);
  out->event_metadata = ax_arena_alloc(arena, (p->name_count + 1) * sizeof out->event_metadata[0]);
  if (all == NULL || entries == NULL || out->event_metadata == NULL) return false;
  for (uint32_t i = 0; i < p->name_count; i++) {
    all[i] = (metadata)AX_PJRT_PROTO__XEVENT_METADATA__INIT;
    all[i].id = i + 1;
    all[i].name = p->names[i];
    entries[i] = (entry)AX_PJRT_PROTO__XPLANE__EVENT_METADATA_ENTRY__INIT;
    entries[i].key = i + 1;
    entries[i].value = &all[i];
    out->event_metadata[out->n_event_metadata++] = &entries[i];
  }
  return true;
}

/* Makes p->bytes. */
static ax_pjrt_error *pack(ax_profiler *p) {
  static char titles[2][32] = {"/device:CUSTOM:Axle threads", "/device:CUSTOM:Axle devices"}, lacking[] = "spans are left out: too many, or no memory";
  ax_arena arena = {0};
  plane planes[2] = {AX_PJRT_PROTO__XPLANE__INIT, AX_PJRT_PROTO__XPLANE__INIT}, *list[2] = {&planes[0], &planes[1]};
  char *warnings[1] = {lacking};
  AxPjrtProto__XSpace space = AX_PJRT_PROTO__XSPACE__INIT;
  bool made = true;
  for (int k = 0; made && k < 2; k++) {
    planes[k].id = k;
    planes[k].name = titles[k];
    made = make_lines(p, &arena, k == 1, &planes[k]) && add_events(p, &arena, k == 1, &planes[k]) && name_events(p, &arena, &planes[k]);
  }
  space.n_planes = 2, space.planes = list;
  space.n_warnings = p->is_lacking, space.warnings = warnings;
  p->byte_count = made ? ax_pjrt_proto__xspace__get_packed_size(&space) : 0;
  p->bytes = made ? ax_alloc(p->byte_count + 1) : NULL;
  if (p->bytes != NULL) ax_pjrt_proto__xspace__pack(&space, p->bytes);
  ax_arena_deinit(&arena);
  return p->bytes != NULL ? NULL : ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for a trace");
}

/* --- The extension --- */

static void error_destroy(ax_pjrt_profiler_error_args *args) { ax_pjrt_do_error_destroy(&(ax_pjrt_error_destroy_args){.of = args->of}); }

static void error_message(ax_pjrt_profiler_error_args *args) {
  ax_pjrt_error_message_args message = {.struct_size = sizeof message, .of = args->of};
  ax_pjrt_do_error_message(&message);
  args->text = message.text;
  args->length = message.length;
}

static ax_pjrt_error *error_code(ax_pjrt_profiler_error_args *args) {
  ax_pjrt_error_code_args code = {.struct_size = sizeof code, .of = args->of};
  AX_PJRT_TRY(ax_pjrt_do_error_code(&code));
  args->code = (int)code.value;
  return NULL;
}

static ax_pjrt_error *create(ax_pjrt_profiler_create_args *args) {
  args->profiler = ax_calloc(1, sizeof *args->profiler);
  return args->profiler != NULL ? NULL : ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for a profiler");
}

static ax_pjrt_error *start(ax_pjrt_profiler_args *args) {
  pthread_mutex_lock(&lock);
  const bool is_free = at_work == NULL || at_work == args->of;
  if (is_free && at_work == NULL) {
    at_work = args->of;
    args->of->started = now(CLOCK_MONOTONIC);
    args->of->wall = now(CLOCK_REALTIME);
    atomic_store(&is_profiled, true);
  }
  pthread_mutex_unlock(&lock);
  return is_free ? NULL : ax_pjrt_fail(AX_PJRT_ALREADY_EXISTS, "another profiler is at work: there is one at a time");
}

static ax_pjrt_error *stop(ax_pjrt_profiler_args *args) {
  pthread_mutex_lock(&lock);
  if (at_work == args->of) {
    at_work = NULL;
    atomic_store(&is_profiled, false);
  }
  pthread_mutex_unlock(&lock);
  return NULL;
}

static ax_pjrt_error *collect(ax_pjrt_profiler_data_args *args) {
  AX_PJRT_TRY(stop(&(ax_pjrt_profiler_args){.of = args->of}));
  if (args->of->bytes == NULL) AX_PJRT_TRY(pack(args->of));
  if (args->bytes == NULL) args->bytes = args->of->bytes;
  else memcpy(args->bytes, args->of->bytes, args->of->byte_count);
  args->count = args->of->byte_count;
  return NULL;
}

static ax_pjrt_error *destroy(ax_pjrt_profiler_args *args) {
  ax_profiler *p = args->of;
  if (p == NULL) return NULL;
  AX_PJRT_TRY(stop(args));
  for (uint32_t i = 0; i < p->name_count; i++) ax_free(p->names[i]);
  ax_free(p->names);
  ax_free(p->slots);
  ax_free(p->spans);
  ax_free(p->bytes);
  ax_free(p);
  return NULL;
}

static const ax_pjrt_profiler_functions functions = {.struct_size = sizeof functions,
                                                     .error_destroy = error_destroy,
                                                     .error_message = error_message,
                                                     .error_code = error_code,
                                                     .create = create,
                                                     .destroy = destroy,
                                                     .start = start,
                                                     .stop = stop,
                                                     .collect_data = collect};
ax_pjrt_profilers ax_pjrt_profilers_extension = {
    .base = {.struct_size = sizeof ax_pjrt_profilers_extension, .type = AX_PJRT_PROFILERS, .next = &ax_pjrt_custom_calls_extension.base},
    .functions = &functions};
