#include "exec/execution.h"

#include <stdio.h>
#include <string.h>

/* --- Making one --- */

static uint32_t words_per_frame(const ax_executable *e) {
  return e->space_count + e->region_count + e->loop_count + e->plan->mesh.count + 1;
}

static void lay_out_frames(ax_execution *run) {
  const ax_executable *e = run->executable;
  const ax_mesh *mesh = &e->plan->mesh;
  for (uint32_t f = 0; f < e->devices; f++) {
    int64_t *words = run->words + (size_t)f * words_per_frame(e);
    ax_frame *frame = &run->frames[f];
    frame->base = (unsigned char **)words;
    frame->entered = words + e->space_count;
    frame->iteration = frame->entered + e->region_count;
    int64_t *coordinates = frame->iteration + e->loop_count + 1;
    frame->coordinates = coordinates;
    for (uint32_t axis = 0; axis < mesh->count; axis++) {
      coordinates[axis] = ax_mesh_coordinate(mesh, f, axis);
      if (coordinates[axis] != 0) frame->nonzero |= (ax_axis_set)1 << axis;
    }
  }
}

static ax_status allocate_spaces(ax_execution *run) {
  ax_executable *e = run->executable;
  for (uint32_t s = 0; s < e->space_count; s++) {
    const ax_space *space = &e->spaces[s];
    if (space->kind == AX_SPACE_CONST) run->space[s] = e->constants;
    if (space->kind == AX_SPACE_SHARED)
      AX_TRY(ax_pool_alloc(e->runtime, (size_t)space->bytes * e->sets[space->set].size, &run->space[s]));
  }
  for (uint32_t f = 0; f < e->devices; f++)
    for (uint32_t s = 0; s < e->space_count; s++)
      run->frames[f].base[s] =
          run->space[s] != NULL ? (unsigned char *)run->space[s] + e->spaces[s].bytes * e->sets[e->spaces[s].set].index[f] : NULL;
  return AX_OK;
}

static ax_status allocate(ax_execution *run) {
  const ax_executable *e = run->executable;
  size_t words = (size_t)words_per_frame(e) * e->devices;
  run->frames = ax_calloc(e->devices, sizeof run->frames[0]);
  run->words = ax_calloc(words, sizeof run->words[0]);
  run->counters = ax_calloc(e->counter_count, sizeof run->counters[0]);
  run->space = ax_calloc(e->space_count, sizeof run->space[0]);
  run->ready = ax_calloc(e->devices, sizeof run->ready[0]);
  if (run->frames == NULL || run->words == NULL || run->counters == NULL || run->space == NULL || run->ready == NULL)
    return ax_out_of_memory(words * sizeof run->words[0]);
  lay_out_frames(run);
  return allocate_spaces(run);
}

ax_status ax_execution_create(ax_executable *executable, ax_execution **out) {
  ax_execution *run = *out = ax_calloc(1, sizeof *run);
  if (run == NULL) return ax_out_of_memory(sizeof *run);
  run->executable = executable;
  pthread_mutex_init(&run->lock, NULL);
  pthread_cond_init(&run->change, NULL);
  ax_status status = allocate(run);
  if (status == AX_OK) return AX_OK;
  ax_execution_destroy(executable, run);
  *out = NULL;
  return status;
}

void ax_execution_destroy(ax_executable *e, ax_execution *run) {
  for (uint32_t s = 0; run->space != NULL && s < e->space_count; s++)
    if (e->spaces[s].kind == AX_SPACE_SHARED)
      ax_pool_free(e->runtime, run->space[s], (size_t)e->spaces[s].bytes * e->sets[e->spaces[s].set].size);
  for (uint32_t i = 0; i < run->scratch_count; i++)
    ax_pool_free(e->runtime, run->scratch[i], (size_t)e->spaces[e->scratch_space].bytes);
  for (uint32_t f = 0; run->frames != NULL && f < e->devices; f++) /* after a failure, some still hold theirs */
    ax_pool_free(e->runtime, run->frames[f].scratch, (size_t)e->spaces[e->scratch_space].bytes);
  pthread_mutex_destroy(&run->lock);
  pthread_cond_destroy(&run->change);
  ax_free(run->scratch);
  ax_free(run->frames);
  ax_free(run->words);
  ax_free(run->counters);
  ax_free(run->space);
  ax_free(run->ready);
  ax_free(run);
}

/* --- For each call --- */

void ax_execution_reset(ax_execution *run, void *const *inputs, void *const *outputs) {
  const ax_executable *e = run->executable;
  for (uint32_t i = 0; i < e->counter_count; i++) {
    atomic_store_explicit(&run->counters[i].count, 0, memory_order_relaxed);
    atomic_store_explicit(&run->counters[i].parked, AX_NONE, memory_order_relaxed);
  }
  for (uint32_t f = 0; f < e->devices; f++) {
    ax_frame *frame = &run->frames[f];
    frame->pc = 0;
    frame->state = FRAME_NEW;
    memset(frame->entered, 0, e->region_count * sizeof frame->entered[0]);
    frame->entered[0] = 1;
  }
  for (uint32_t s = 0; s < e->space_count; s++) {
    const ax_space *space = &e->spaces[s];
    if (space->kind != AX_SPACE_INPUT && space->kind != AX_SPACE_OUTPUT) continue;
    unsigned char *first = space->kind == AX_SPACE_INPUT ? inputs[space->index] : outputs[space->index];
    const uint32_t *index = e->sets[space->set].index;
    for (uint32_t f = 0; f < e->devices; f++) run->frames[f].base[s] = first + space->bytes * index[f];
  }
  run->ready_first = run->ready_count = run->fresh = run->running = run->finished = run->idle = 0;
  atomic_store(&run->ready_hint, 0);
  run->over = false;
  run->status = AX_OK;
}

/* --- Deadlocks --- */

static void add_device(ax_text *text, const ax_execution *run, uint32_t f) {
  const ax_mesh *mesh = &run->executable->plan->mesh;
  ax_text_add(text, "device %u", f);
  for (uint32_t axis = 0; axis < mesh->count; axis++)
    ax_text_add(text, "%s%s=%lld", axis == 0 ? " (" : ",", mesh->axis[axis].name, (long long)run->frames[f].coordinates[axis]);
  if (mesh->count > 0) ax_text_add(text, ")");
}

static void add_equation(ax_text *text, const ax_instr *instr) {
  const ax_eqn *eqn = instr->eqn;
  if (eqn == NULL) return;
  ax_text_add(text, "equation %u, %s", (uint32_t)(eqn - instr->program->eqns), eqn->prim->name);
  for (uint32_t i = 0; i < eqn->in_count && i < 3; i++)
    ax_text_add(text, " %s", ax_type_string(&instr->program->types[eqn->in[i]], &instr->program->axes));
  if (eqn->line > 0) ax_text_add(text, " (line %u)", eqn->line);
}

static const ax_event *event_at(const ax_executable *e, uint32_t counter) {
  for (uint32_t i = 0; i < e->event_count; i++)
    if (counter >= e->events[i].first && counter < e->events[i].first + e->events[i].groups) return &e->events[i];
  return NULL;
}

/* The push that signals an event is the collective to name, rather than the equation that needs its result. */
static const ax_instr *collective_of(const ax_executable *e, const ax_event *event) {
  for (uint32_t i = 0; i < e->instr_count; i++)
    if (e->instrs[i].kind == AX_INSTR_PUSH && &e->events[e->instrs[i].push->event] == event) return &e->instrs[i];
  return NULL;
}

/* Members of the group that are neither past the collective nor waiting for it. */
static void add_missing(ax_text *text, const ax_execution *run, uint32_t counter, const ax_event *event, uint32_t position) {
  const ax_executable *e = run->executable;
  uint32_t group = counter - event->first, listed = 0;
  for (uint32_t f = 0; f < e->devices; f++) {
    const ax_frame *frame = &run->frames[f];
    if (e->sets[event->set].index[f] != group) continue;
    if (frame->state == FRAME_PARKED && (frame->counter == counter || frame->pc == position)) continue;
    if (listed++ == 8) {
      ax_text_add(text, " and more");
      break;
    }
    ax_text_add(text, listed == 1 ? ", for " : ", ");
    add_device(text, run, f);
    ax_text_add(text, frame->state == FRAME_DONE ? ", which has finished" : ", which waits elsewhere");
  }
}

void ax_execution_report_deadlock(ax_execution *run) {
  const ax_executable *e = run->executable;
  ax_text text = {0};
  uint32_t waiting = 0, listed = 0;
  for (uint32_t f = 0; f < e->devices; f++) waiting += run->frames[f].state == FRAME_PARKED;
  ax_text_add(&text, "deadlock: %u of %u devices wait for what never comes", waiting, e->devices);
  for (uint32_t f = 0; f < e->devices && listed < 16; f++) {
    const ax_frame *frame = &run->frames[f];
    if (frame->state != FRAME_PARKED) continue;
    listed++;
    const ax_event *event = event_at(e, frame->counter);
    const ax_instr *collective = event != NULL ? collective_of(e, event) : NULL;
    const ax_instr *at = collective != NULL ? collective : &e->instrs[frame->pc];
    ax_text_add(&text, "\n  ");
    add_device(&text, run, f);
    ax_text_add(&text, " waits at ");
    add_equation(&text, at);
    if (event != NULL) add_missing(&text, run, frame->counter, event, (uint32_t)(at - e->instrs));
  }
  if (listed < waiting) ax_text_add(&text, "\n  ... and %u more", waiting - listed);
  snprintf(run->message, sizeof run->message, "%s", text.data != NULL && !text.failed ? text.data : "deadlock");
  ax_text_deinit(&text);
  run->status = AX_DEADLOCK;
}
