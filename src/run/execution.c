/* The state of one run. It is created once, pointed at each call's arguments, and read by reports of deadlocks. */
#include "run/execution.h"

#include <stdio.h>
#include <string.h>

#include "ir/path.h"
#include "ir/prim.h"
#include "run/cores_crossing.h"
#include "run/arrivals.h"
#include "run/crossing.h"
#include "run/mail.h"
#include "run/remote.h"
#include "run/turns.h"

/* --- Making one --- */

static uint32_t words_per_activation(const ax_compiled *c) {
  uint32_t axes = 0;
  for (uint32_t i = 0; i < c->code_count; i++) axes = c->codes[i].mesh->count > axes ? c->codes[i].mesh->count : axes;
  return c->region_count + c->loop_count + axes + 1;
}

/* The bits for which it passes over instructions. */
static ax_axis_set passed_over(const ax_compiled *c, const ax_activation *activation) {
  const ax_mesh *mesh = activation->code->mesh;
  ax_axis_set bits = 0;
  for (uint32_t axis = 0; axis < mesh->count && c->map == NULL; axis++)
    if (activation->coordinates[axis] != 0) bits |= (ax_axis_set)1 << axis;
  for (uint32_t i = 0; i < c->owned_count; i++)
    if (!c->owned[i].owner[activation->device]) bits |= (ax_axis_set)1 << i;
  return bits;
}

static void lay_out_activation(ax_execution *run, const ax_code *code, uint32_t i) {
  const ax_compiled *c = run->compiled;
  const ax_mesh *mesh = code->mesh;
  const uint32_t f = code->first_activation + i, device = code->devices != NULL ? code->devices[i] : i;
  ax_activation *activation = &run->activations[f];
  activation->code = code;
  activation->device = device;
  activation->part = run->part;
  activation->entered = run->words + (size_t)f * words_per_activation(c);
  activation->iteration = activation->entered + c->region_count;
  int64_t *coordinates = activation->iteration + c->loop_count + 1;
  activation->coordinates = coordinates;
  for (uint32_t axis = 0; axis < mesh->count; axis++) coordinates[axis] = ax_mesh_coordinate(mesh, device, axis);
  activation->passes = passed_over(c, activation);
}

static void lay_out_activations(ax_execution *run) {
  const ax_compiled *c = run->compiled;
  for (uint32_t i = 0; i < c->code_count; i++)
    for (uint32_t k = 0; k < c->codes[i].activation_count; k++) lay_out_activation(run, &c->codes[i], k);
}

/* Lists the places along a set that devices of this process have; the caller frees them. */
static ax_status list_places(const ax_compiled *c, const ax_set *set, uint32_t **places, uint32_t *count) {
  bool *here = ax_calloc(set->size, 1);
  *places = ax_alloc(set->size * sizeof **places);
  *count = 0;
  if (here == NULL || *places == NULL) {
    ax_free(here);
    ax_free(*places);
    return ax_out_of_memory(set->size * sizeof **places);
  }
  for (uint32_t d = 0; d < c->devices; d++)
    if (ax_device_is_here(c->map, d)) here[set->index[d]] = true;
  for (uint32_t i = 0; i < set->size; i++)
    if (here[i]) (*places)[(*count)++] = i;
  ax_free(here);
  return AX_OK;
}

/* Allocates kept memory, or borrows it, and points the table of parts at it. */
static ax_status place_kept(ax_execution *run, const ax_part_space *space, ax_kept_space *kept) {
  uint32_t *places, count;
  AX_TRY(kept->borrowed ? ax_pool_borrow(&run->executor->pool, kept->bytes, &kept->memory)
                        : ax_pool_alloc(&run->executor->pool, kept->bytes, &kept->memory));
  if (kept->memory == kept->placed) return AX_OK; /* as in the call before */
  AX_TRY(list_places(run->compiled, &run->compiled->sets[space->set], &places, &count));
  for (uint32_t i = 0; i < count; i++)
    run->part[space->first + places[i]] = (unsigned char *)kept->memory + i * (size_t)space->bytes;
  kept->placed = kept->memory;
  ax_free(places);
  return AX_OK;
}

static void free_kept(ax_execution *run, ax_kept_space *kept) {
  if (kept->borrowed) ax_pool_give_back(&run->executor->pool, kept->memory, kept->bytes);
  else ax_pool_free(&run->executor->pool, kept->memory, kept->bytes);
  kept->memory = NULL;
}

/* Memory of runs in several processes is where others may read it, and stays. */
static ax_status allocate_kept(ax_execution *run, const ax_part_space *space, ax_kept_space *kept) {
  uint32_t *places, count;
  AX_TRY(list_places(run->compiled, &run->compiled->sets[space->set], &places, &count));
  ax_free(places);
  kept->bytes = count * (size_t)space->bytes;
  kept->borrowed = kept->bytes > AX_POOL_SMALL && run->remote == NULL;
  return kept->borrowed ? AX_OK : place_kept(run, space, kept);
}

/* Allocates the memory that stays from call to call: constants, and small kept memory. */
static ax_status allocate_spaces(ax_execution *run) {
  const ax_compiled *c = run->compiled;
  run->kept = ax_calloc(c->space_count, sizeof run->kept[0]);
  if (run->kept == NULL) return ax_out_of_memory(c->space_count * sizeof run->kept[0]);
  for (uint32_t s = 0; s < c->space_count; s++) {
    const ax_part_space *space = &c->spaces[s];
    if (space->kind == AX_SPACE_CONST) run->part[space->first] = ax_constants_of(c, space);
    if (space->kind == AX_SPACE_KEPT) AX_TRY(allocate_kept(run, space, &run->kept[s]));
  }
  return AX_OK;
}

/* One activation at a time begins steps. */
static ax_status allocate_pace(ax_execution *run) {
  const ax_compiled *c = run->compiled;
  if (!c->threaded || !c->late || c->activation_count != 1) return AX_OK;
  run->pace.count = c->codes[0].instr_count;
  run->pace.steps = ax_calloc(run->pace.count, sizeof run->pace.steps[0]);
  return run->pace.steps != NULL ? AX_OK : ax_out_of_memory(run->pace.count * sizeof run->pace.steps[0]);
}

static ax_status allocate(ax_execution *run) {
  const ax_compiled *c = run->compiled;
  size_t words = (size_t)words_per_activation(c) * c->activation_count;
  run->activations = ax_calloc(c->activation_count, sizeof run->activations[0]);
  run->parking = ax_calloc(c->activation_count, sizeof run->parking[0]);
  run->words = ax_calloc(words, sizeof run->words[0]);
  run->counters = ax_calloc(c->counter_count, sizeof run->counters[0]);
  run->arrived = ax_calloc(c->counter_count, sizeof run->arrived[0]);
  run->stages = ax_calloc(c->stage_count, sizeof run->stages[0]);
  run->part = ax_calloc(c->part_count, sizeof run->part[0]);
  run->seen = c->points ? ax_calloc(c->part_count, sizeof run->seen[0]) : NULL;
  run->ready = ax_calloc(2 * (size_t)c->activation_count, sizeof run->ready[0]);
  run->worker_slots = ax_calloc(run->executor->options->workers, sizeof run->worker_slots[0]);
  if (run->activations == NULL || run->parking == NULL || run->words == NULL || run->counters == NULL || run->arrived == NULL ||
      run->stages == NULL || run->part == NULL || (c->points && run->seen == NULL) || run->ready == NULL ||
      run->worker_slots == NULL)
    return ax_out_of_memory(words * sizeof run->words[0]);
  for (; run->worker_slot_count < run->executor->options->workers; run->worker_slot_count++) {
    pthread_mutex_init(&run->worker_slots[run->worker_slot_count].lock, NULL);
    pthread_cond_init(&run->worker_slots[run->worker_slot_count].share.left, NULL);
  }
  AX_TRY(allocate_pace(run));
  lay_out_activations(run);
  AX_TRY(ax_mail_init(run));
  if (c->map != NULL) AX_TRY(ax_remote_create(run));
  return allocate_spaces(run);
}

ax_status ax_execution_create(const ax_runner *runner, ax_execution **out) {
  ax_execution *run = *out = ax_calloc(1, sizeof *run);
  if (run == NULL) return ax_out_of_memory(sizeof *run);
  run->compiled = runner->compiled;
  run->executor = runner->executor;
  pthread_mutex_init(&run->lock, NULL);
  pthread_cond_init(&run->change, NULL);
  for (uint32_t i = 0; i < AX_STRIPES; i++) pthread_mutex_init(&run->stripes[i], NULL);
  ax_status status = allocate(run);
  if (status == AX_OK) return AX_OK;
  ax_execution_destroy(run);
  *out = NULL;
  return status;
}

static size_t scratch_bytes(const ax_compiled *c) { return (size_t)c->spaces[c->scratch_space].bytes; }

static void free_scratch(ax_execution *run, void **blocks) {
  for (void *block; (block = *blocks) != NULL;) {
    *blocks = *(void **)block;
    ax_pool_give_back(&run->executor->pool, block, scratch_bytes(run->compiled));
  }
}

void ax_execution_give_back(ax_execution *run) {
  const ax_compiled *c = run->compiled;
  for (uint32_t s = 0; s < c->space_count; s++)
    if (run->kept[s].borrowed) free_kept(run, &run->kept[s]);
  if (scratch_bytes(c) <= AX_POOL_SMALL) return;
  free_scratch(run, &run->scratch);
  for (uint32_t i = 0; i < run->worker_slot_count; i++) free_scratch(run, &run->worker_slots[i].scratch);
}

void ax_execution_destroy(ax_execution *run) {
  const ax_compiled *c = run->compiled;
  for (uint32_t s = 0; run->kept != NULL && s < c->space_count; s++)
    free_kept(run, &run->kept[s]);
  ax_free(run->kept);
  for (uint32_t i = 0; run->stages != NULL && i < c->stage_count; i++) /* after a failure: pieces that were never put */
    ax_pool_free(&run->executor->pool, run->stages[i].memory, run->stages[i].bytes);
  free_scratch(run, &run->scratch);
  for (uint32_t i = 0; i < run->worker_slot_count; i++) {
    free_scratch(run, &run->worker_slots[i].scratch);
    ax_pool_free(&run->executor->pool, run->worker_slots[i].rows, c->rows_bytes);
    ax_free(run->worker_slots[i].spans);
    pthread_mutex_destroy(&run->worker_slots[i].lock);
    pthread_cond_destroy(&run->worker_slots[i].share.left);
  }
  for (uint32_t f = 0; run->activations != NULL && f < c->activation_count; f++) /* after a failure some hold scratch */
    ax_pool_give_back(&run->executor->pool, run->activations[f].scratch, scratch_bytes(c));
  for (uint32_t i = 0; i < AX_STRIPES; i++) pthread_mutex_destroy(&run->stripes[i]);
  pthread_mutex_destroy(&run->lock);
  pthread_cond_destroy(&run->change);
  ax_mail_deinit(run);
  ax_remote_destroy(run);
  ax_free(run->worker_slots);
  ax_free(run->posts);
  ax_free(run->activations);
  ax_free(run->parking);
  ax_free(run->pace.steps);
  ax_free(run->words);
  ax_free(run->counters);
  ax_free(run->arrived);
  ax_free(run->stages);
  ax_free(run->part);
  ax_free(run->seen);
  ax_free(run->ready);
  ax_free(run);
}

/* --- Kept for the next call --- */

void ax_runner_init(ax_runner *runner, const ax_compiled *compiled, ax_executor *executor) {
  *runner = (ax_runner){.compiled = compiled, .executor = executor, .timeline.whole = true};
  pthread_mutex_init(&runner->lock, NULL);
}

void ax_runner_deinit(ax_runner *runner) {
  for (ax_execution *run; (run = ax_execution_take_idle(runner)) != NULL;) ax_execution_destroy(run);
  ax_free(runner->timeline.spans);
  pthread_mutex_destroy(&runner->lock);
}

ax_execution *ax_execution_take_idle(ax_runner *runner) {
  uint32_t own = ax_thread_place(AX_IDLE_PLACES);
  for (uint32_t i = 0; i < AX_IDLE_PLACES; i++) {
    ax_idle *place = &runner->idle[(own + i) % AX_IDLE_PLACES];
    if (atomic_load_explicit(&place->run, memory_order_relaxed) == NULL) continue;
    ax_execution *run = atomic_exchange_explicit(&place->run, NULL, memory_order_acquire);
    if (run != NULL) return run;
  }
  pthread_mutex_lock(&runner->lock);
  ax_execution *run = runner->more_idle;
  if (run != NULL) runner->more_idle = run->next;
  pthread_mutex_unlock(&runner->lock);
  return run;
}

void ax_execution_keep(ax_runner *runner, ax_execution *run) {
  uint32_t own = ax_thread_place(AX_IDLE_PLACES);
  for (uint32_t i = 0; i < AX_IDLE_PLACES; i++) {
    ax_execution *none = NULL;
    ax_idle *place = &runner->idle[(own + i) % AX_IDLE_PLACES];
    if (atomic_load_explicit(&place->run, memory_order_relaxed) != NULL) continue;
    if (atomic_compare_exchange_strong_explicit(&place->run, &none, run, memory_order_release, memory_order_relaxed)) return;
  }
  pthread_mutex_lock(&runner->lock);
  run->next = runner->more_idle;
  runner->more_idle = run;
  pthread_mutex_unlock(&runner->lock);
}

/* --- For each call --- */

static void reset_schedule(ax_execution *run) {
  for (uint32_t i = 0; i < run->worker_slot_count; i++) { /* a failed run leaves activations in queues */
    ax_worker_slot *worker_slot = &run->worker_slots[i];
    atomic_store_explicit(&worker_slot->finished, 0, memory_order_relaxed);
    worker_slot->first = worker_slot->last = AX_NONE;
    atomic_store_explicit(&worker_slot->count, 0, memory_order_relaxed);
  }
  run->ready_first = run->ready_count = run->alone = 0;
  atomic_store_explicit(&run->flown, false, memory_order_relaxed);
  atomic_store_explicit(&run->in_flight, 0, memory_order_relaxed);
  atomic_store_explicit(&run->fresh, 0, memory_order_relaxed);
  atomic_store_explicit(&run->busy, 0, memory_order_relaxed);
  atomic_store_explicit(&run->running, 0, memory_order_relaxed);
  atomic_store_explicit(&run->scratch_out, 0, memory_order_relaxed);
  atomic_store_explicit(&run->post_count, 0, memory_order_relaxed);
  atomic_store_explicit(&run->over, false, memory_order_relaxed);
}

ax_status ax_execution_reset(ax_execution *run, ax_parts *const *inputs, ax_parts *const *outputs) {
  const ax_compiled *c = run->compiled;
  ax_mail_empty(run);
  for (uint32_t i = 0; i < c->counter_count; i++) {
    ax_counter_reset(&run->counters[i]);
    atomic_store_explicit(&run->arrived[i], 0, memory_order_relaxed);
  }
  for (uint32_t s = 0; s < c->space_count; s++) {
    const ax_part_space *space = &c->spaces[s];
    if (run->kept[s].borrowed) AX_TRY(place_kept(run, space, &run->kept[s]));
    if (AX_HOSTILE && space->kind == AX_SPACE_KEPT && run->kept[s].bytes > 0) memset(run->kept[s].memory, 0xff, run->kept[s].bytes);
    if (space->kind != AX_SPACE_INPUT && space->kind != AX_SPACE_OUTPUT) continue;
    const ax_parts *parts = space->kind == AX_SPACE_INPUT ? inputs[space->index] : outputs[space->index];
    const uint32_t *part = space->kind == AX_SPACE_OUTPUT ? c->results[space->index].part : NULL;
    if (part == NULL) memcpy(&run->part[space->first], parts->part, parts->count * sizeof parts->part[0]);
    for (uint32_t b = 0; part != NULL && b < parts->count; b++)
      if (parts->part[b] != NULL) run->part[space->first + part[b]] = parts->part[b];
  }
  uint32_t workers = run->executor->options->run_workers;
  run->threads = c->in_parts || workers < c->activation_count ? workers : c->activation_count;
  run->threaded = run->threads > 1 && c->threaded && ax_workers_any(run->executor->workers);
  if (run->threaded && c->brief) run->threaded = !ax_workers_held_up(run->executor->workers, 0);
  reset_schedule(run);
  run->status = run->finding.status = AX_OK;
  return AX_OK;
}

/* --- Deadlocks. The place of an activation and its counts of regions entered show how often it has signalled each event, so
   which activations owe a signal. --- */

enum { most_listed = 16, most_groups = 8, enough_bytes = 3500 };

static void add_device(ax_text *text, const ax_mesh *mesh, uint32_t device) {
  ax_text_add(text, "device %u", device);
  for (uint32_t axis = 0; axis < mesh->count; axis++)
    ax_text_add(text, "%s%s=%lld", axis == 0 ? " (" : ",", mesh->axis[axis].name,
                (long long)ax_mesh_coordinate(mesh, device, axis));
  if (mesh->count > 0) ax_text_add(text, ")");
}

void ax_execution_device_name(ax_text *text, const ax_execution *run, uint32_t device) {
  const ax_compiled *c = run->compiled;
  add_device(text, c->codes[0].mesh, device);
  if (!ax_device_is_here(c->map, device)) ax_text_add(text, " of process %u", c->map->of[device]);
}

void ax_execution_device_text(ax_text *text, const ax_execution *run, uint32_t f) {
  const ax_activation *activation = &run->activations[f];
  if (activation->code->first_activation > 0) ax_text_add(text, "code %u ", (unsigned)(activation->code - run->compiled->codes));
  add_device(text, activation->code->mesh, activation->device);
}

/* The activation of a device of the first code. AX_NONE: it is of another process. */
static uint32_t activation_of(const ax_execution *run, uint32_t device) {
  const ax_code *code = &run->compiled->codes[0];
  if (code->devices == NULL) return device;
  for (uint32_t i = 0; i < code->activation_count; i++)
    if (code->devices[i] == device) return i;
  return AX_NONE;
}

/* "psum f32[2]{V:d} over d (equation 0 of branch 1 of cond, equation 3, line 7)" */
void ax_execution_equation_text(ax_text *text, const ax_execution *run, const ax_instr *instr) {
  const ax_eqn *eqn = instr->eqn;
  if (eqn == NULL) {
    ax_text_add(text, "the end of a loop or branch");
    return;
  }
  ax_text_add(text, "%s", eqn->prim->name);
  for (uint32_t i = 0; i < eqn->in_count && i < 3; i++) {
    ax_text_add(text, " ");
    ax_type_text(text, &instr->program->types[eqn->in[i]], &instr->program->axes);
  }
  if (eqn->in_count > 3) ax_text_add(text, " ...");
  for (uint32_t i = 0; i < eqn->prim->param_count; i++) {
    if (eqn->prim->params[i].kind != AX_PARAM_AXES) continue;
    const ax_axes *names = ax_param_at(eqn, &eqn->prim->params[i]);
    for (uint32_t j = 0; j < names->count; j++) ax_text_add(text, "%s%s", j == 0 ? " over " : ",", names->name[j]);
  }
  ax_path path;
  ax_path_find(run->compiled->plan->program, instr->program, eqn, &path);
  ax_path_text(text, &path);
}

ax_status ax_execution_blame(const ax_execution *run, uint32_t f, const ax_instr *instr, ax_status status) {
  ax_text text = {0};
  ax_execution_equation_text(&text, run, instr);
  ax_text_add(&text, " on ");
  ax_execution_device_text(&text, run, f);
  if (text.data != NULL && !text.failed) status = ax_error_context(status, "%s: ", text.data);
  ax_text_deinit(&text);
  return status;
}

/* The event that a counter belongs to: the last one whose first counter is not greater. */
static const ax_event *event_at(const ax_compiled *c, uint32_t counter) {
  uint32_t low = 0, high = c->event_count;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    if (c->events[middle].first <= counter) low = middle;
    else high = middle;
  }
  return &c->events[low];
}

static const ax_instr *signal_of(const ax_compiled *c, const ax_event *event) { return &c->codes[0].instrs[event->signalled_at]; }

/* The signal that an activation waits for, and how often each activation must have given it. */
typedef struct awaited {
  const ax_event *event;
  const ax_instr *signal;
  uint32_t region, begin; /* region of the signal; first instruction of that region */
  int64_t times;
} awaited;

static uint32_t region_begin(const ax_compiled *c, uint32_t region) {
  for (uint32_t i = 0; i < c->codes[0].instr_count; i++)
    if (c->codes[0].instrs[i].kind == AX_INSTR_ENTER && c->codes[0].instrs[i].region == region) return i;
  return 0; /* the whole program */
}

static awaited awaited_by(const ax_execution *run, uint32_t f) {
  const ax_compiled *c = run->compiled;
  const ax_activation *activation = &run->activations[f];
  const ax_instr *at = &activation->code->instrs[activation->pc];
  awaited a = {.event = event_at(c, run->parking[f].counter)};
  a.signal = signal_of(c, a.event);
  a.region = a.signal->kind == AX_INSTR_PUSH ? a.signal->region : a.signal->sync.region;
  a.begin = region_begin(c, a.region);
  a.times = activation->entered[a.region] + (at->kind == AX_INSTR_WAIT ? at->sync.delta : 0);
  return a;
}

/* How often activation f has signalled. If f stands in the region, before the signal, this time round does not count yet. */
static int64_t signalled(const ax_execution *run, const awaited *a, uint32_t f) {
  const ax_activation *activation = &run->activations[f];
  uint32_t place = (uint32_t)(a->signal - run->compiled->codes[0].instrs);
  bool yet = activation->state != ACTIVATION_DONE && a->begin <= activation->pc && activation->pc <= place;
  return activation->entered[a->region] - yet;
}

static bool owes(const ax_execution *run, const awaited *a, uint32_t counter, uint32_t f) {
  if (run->activations[f].code != &run->compiled->codes[0]) return false;
  uint32_t signalled_counter = a->event->signal[run->activations[f].device];
  if (signalled_counter == AX_NONE || a->event->first + signalled_counter != counter) return false;
  return (a->signal->skip & run->activations[f].passes) == 0 && signalled(run, a, f) < a->times;
}

/* The instruction that a report names for activation f: rather a collective than the reader of its result. */
static const ax_instr *named_place(const ax_execution *run, uint32_t f) {
  const ax_compiled *c = run->compiled;
  if (ax_execution_awaits_message(run, f) || ax_execution_awaits_turn(run, f) || ax_execution_awaits_cores(run, f) ||
      ax_execution_awaits_rows(run, f))
    return &run->activations[f].code->instrs[run->activations[f].pc];
  const ax_instr *signal = signal_of(c, event_at(c, run->parking[f].counter));
  return signal->kind == AX_INSTR_PUSH ? signal : &run->activations[f].code->instrs[run->activations[f].pc];
}

static bool wait_together(const ax_execution *run, uint32_t f, uint32_t g) {
  bool messages = ax_execution_awaits_message(run, f); /* each waits for a message of its own */
  return run->activations[g].state == ACTIVATION_PARKED && ax_execution_awaits_message(run, g) == messages &&
         (messages || run->parking[f].counter == run->parking[g].counter) && named_place(run, f) == named_place(run, g);
}

static void list(ax_text *text, const ax_execution *run, uint32_t f, uint32_t count) {
  if (count >= most_listed) return;
  ax_text_add(text, count == 0 ? " " : ", ");
  ax_execution_device_text(text, run, f);
}

/* Of another process. */
static void list_away(ax_text *text, const ax_execution *run, uint32_t device, uint32_t count) {
  if (count >= most_listed) return;
  ax_text_add(text, count == 0 ? " " : ", ");
  ax_execution_device_name(text, run, device);
}

static void list_end(ax_text *text, uint32_t count) {
  if (count > most_listed) ax_text_add(text, " and %u more", count - most_listed);
}

static void add_whereabouts(ax_text *text, const ax_execution *run, uint32_t f) {
  ax_text_add(text, run->activations[f].state == ACTIVATION_DONE ? ", which has finished" : ", which waits at ");
  if (run->activations[f].state != ACTIVATION_DONE) ax_execution_equation_text(text, run, named_place(run, f));
}

/* Adds the messages awaited by the activations that wait at the same instruction as `first`. */
static void add_messages(ax_text *text, const ax_execution *run, uint32_t first) {
  const ax_compiled *c = run->compiled;
  uint32_t count = 0;
  for (uint32_t f = first; f < c->activation_count; f++) {
    if (!wait_together(run, first, f) || count++ >= most_listed) continue;
    uint32_t source = c->links[run->parking[f].counter - c->first_link].source;
    ax_text_add(text, "\n    never comes to device %u: message %llu of ", run->activations[f].device,
                (unsigned long long)run->parking[f].target);
    ax_execution_device_name(text, run, source);
    if (activation_of(run, source) != AX_NONE) add_whereabouts(text, run, activation_of(run, source));
  }
}

/* Says whether activation f has yet to make the ordered call that `first` waits for, at the same place. */
static bool owes_turn(const ax_execution *run, uint32_t first, uint32_t f) {
  const ax_activation *waits = &run->activations[first], *other = &run->activations[f];
  const ax_turns *turns = waits->code->instrs[waits->pc].call.turns;
  const bool before = turns->number[other->device] < turns->number[waits->device]; /* AX_NONE is greater than all */
  return before && other->turn <= waits->turn;
}

/* Adds those whose ordered calls come before that of `first`. What devices of other processes have done may not have been told
   here. */
static void add_turns(ax_text *text, const ax_execution *run, uint32_t first) {
  uint32_t missing = 0;
  ax_text away = {0};
  for (uint32_t f = 0; f < run->compiled->activation_count; f++) {
    if (!owes_turn(run, first, f) || wait_together(run, first, f)) continue;
    if (missing == 0) ax_text_add(text, "\n    never come:");
    list(text, run, f, missing++);
    if (missing <= most_listed) add_whereabouts(text, run, f);
  }
  list_end(text, missing);
  const uint32_t unknown = run->remote != NULL ? ax_turn_missing(&away, run, first, list_away, 0) : 0;
  list_end(&away, unknown);
  if (unknown > 0 && away.data != NULL) ax_text_add(text, "\n    not heard of:%s", away.data);
  ax_text_deinit(&away);
}

/* Adds the activations that wait where `first` does, and those that never came, with the places where these are. A member that
   waits at this place too is not counted as missing. */
static uint32_t add_group(ax_text *text, const ax_execution *run, uint32_t first) {
  const uint32_t activations = run->compiled->activation_count;
  uint32_t waiting = 0, missing = 0;
  ax_text_add(text, "\n  at ");
  ax_execution_equation_text(text, run, named_place(run, first));
  ax_text_add(text, ":");
  for (uint32_t f = first; f < activations; f++)
    if (wait_together(run, first, f)) list(text, run, f, waiting++);
  list_end(text, waiting);
  if (ax_execution_awaits_message(run, first)) {
    add_messages(text, run, first);
    return waiting;
  }
  if (ax_execution_awaits_cores(run, first)) {
    ax_text_add(text, "\n   ");
    ax_cores_waiting(text, run, &run->activations[first], named_place(run, first));
    return waiting;
  }
  if (ax_execution_awaits_rows(run, first)) {
    ax_text_add(text, "\n    never come: rows of");
    list_away(text, run, ax_arrivals_missing(run, first), 0);
    return waiting;
  }
  if (ax_execution_awaits_turn(run, first)) {
    add_turns(text, run, first);
    return waiting;
  }
  awaited a = awaited_by(run, first);
  ax_text_add(text, "\n    never come:");
  for (uint32_t f = 0; f < activations; f++) {
    if (!owes(run, &a, run->parking[first].counter, f) || wait_together(run, first, f)) continue;
    list(text, run, f, missing++);
    if (missing <= most_listed) add_whereabouts(text, run, f);
  }
  missing = ax_crossing_missing(text, run, run->parking[first].counter, (uint64_t)a.times, list_away, missing);
  list_end(text, missing);
  return waiting;
}

void ax_execution_report_deadlock(ax_execution *run) {
  const uint32_t activations = run->compiled->activation_count;
  ax_text text = {0};
  uint32_t waiting = 0, listed = 0, groups = 0, first[most_groups];
  for (uint32_t f = 0; f < activations; f++) waiting += run->activations[f].state == ACTIVATION_PARKED;
  ax_text_add(&text, "deadlock: %u of %u devices wait for what never comes", waiting, activations);
  for (uint32_t f = 0; f < activations && groups < most_groups && text.length < enough_bytes; f++) {
    bool known = run->activations[f].state != ACTIVATION_PARKED;
    for (uint32_t g = 0; g < groups && !known; g++) known = wait_together(run, first[g], f);
    if (known) continue;
    first[groups++] = f;
    listed += add_group(&text, run, f);
  }
  if (listed < waiting) ax_text_add(&text, "\n  ... and %u more", waiting - listed);
  snprintf(run->message, sizeof run->message, "%s", text.data != NULL && !text.failed ? text.data : "deadlock");
  ax_text_deinit(&text);
  run->status = AX_DEADLOCK;
}

/* --- Long waits for other processes --- */

typedef struct awaiting { /* the text comes first: crossing.h gives it back */
  ax_text text;
  const ax_execution *run;
  bool *processes; /* by process: it is waited for */
} awaiting;

static void mark(ax_text *text, const ax_execution *run, uint32_t device, uint32_t count) {
  (void)count;
  ((awaiting *)text)->processes[run->compiled->map->of[device]] = true;
}

static void add_stall(ax_stall_report *report, const ax_execution *run, const ax_instr *instr, const awaiting *a) {
  ax_text where = {0};
  bool any = false;
  for (uint32_t p = 0; p < run->compiled->map->processes; p++) any = any || a->processes[p];
  ax_text_add(&where, "in ");
  ax_execution_equation_text(&where, run, instr);
  if (any && where.data != NULL && !where.failed) ax_stall_add(report, where.data, a->processes);
  ax_text_deinit(&where);
}

void ax_execution_list_stall(const ax_execution *run, const ax_instr *instr, uint32_t counter, uint64_t round,
                             ax_stall_report *report) {
  awaiting a = {.run = run, .processes = ax_calloc(run->compiled->map->processes, sizeof a.processes[0])};
  if (a.processes == NULL) return;
  (void)ax_crossing_missing(&a.text, run, counter, round, mark, 0);
  add_stall(report, run, instr, &a);
  ax_free(a.processes);
}

/* Of a message: its sender. */
static void list_message(const ax_execution *run, uint32_t f, ax_stall_report *report) {
  const ax_compiled *c = run->compiled;
  awaiting a = {.run = run, .processes = ax_calloc(c->map->processes, sizeof a.processes[0])};
  const uint32_t source = c->links[run->parking[f].counter - c->first_link].source;
  if (a.processes == NULL) return;
  if (!ax_device_is_here(c->map, source)) mark(&a.text, run, source, 0);
  add_stall(report, run, named_place(run, f), &a);
  ax_free(a.processes);
}

static void list_group(const ax_execution *run, uint32_t first, ax_stall_report *report) {
  if (ax_execution_awaits_turn(run, first)) return; /* for a device here */
  if (ax_execution_awaits_message(run, first)) {
    list_message(run, first, report);
    return;
  }
  const awaited a = awaited_by(run, first);
  ax_execution_list_stall(run, named_place(run, first), run->parking[first].counter, (uint64_t)a.times, report);
}

void ax_execution_list_stalls(const ax_execution *run, ax_stall_report *report) {
  uint32_t groups = 0, first[most_groups];
  for (uint32_t f = 0; f < run->compiled->activation_count && groups < most_groups; f++) {
    bool known = run->activations[f].state != ACTIVATION_PARKED;
    for (uint32_t g = 0; g < groups && !known; g++) known = wait_together(run, first[g], f);
    if (known) continue;
    first[groups++] = f;
    list_group(run, f, report);
  }
}
