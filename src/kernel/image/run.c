/* Kernels in the executor: a device's state is made, and threads take cores that are ready until none is.

   Threads wait for nothing here. A core that waits stands in the list of what it waits for, and whoever signals that puts it among
   those that are ready. Copies are through when they have been started: the core that starts one does it, which is a legal
   schedule.

   One lock a group guards who is ready and what semaphores hold. A thread that runs a core keeps it as long as no other thread
   wants it, and does not hold it while the core does what takes long. */
#include <stdio.h>
#include <string.h>

#include "kernel/image/run.h"

/* --- A device's state --- */

static void make_core(const ax_image *image, ax_run_device *device, uint32_t c) {
  const ax_core *from = &image->machine->cores[c];
  const ax_image_body *body = &image->bodies[from->body];
  char *at = device->state + image->core_at[c];
  ax_run_core *core = (ax_run_core *)(void *)at;
  int64_t cores = from->place; /* of device 0: its number */
  const ax_mesh *mesh = &image->machine->params->bodies.v[from->body]->axes;
  int64_t per_device = ax_mesh_devices(mesh) / ax_mesh_devices(image->axes);
  memset(at, 0, body->values_at);
  *core = (ax_run_core){.body = body,
                        .device = device,
                        .number = c,
                        .rounds = AX_RUN_ROUNDS,
                        .place = device->device * per_device + cores,
                        .views = (void *)(at + body->views_at),
                        .counters = (void *)(at + body->counters_at),
                        .waited = (void *)(at + body->waited_at),
                        .occurrences = (void *)(at + body->occurrences_at),
                        .roots = (void *)(at + body->roots_at),
                        .targets = (void *)(at + body->targets_at),
                        .values = at + body->values_at,
                        .segments = at + body->segments_at};
  for (uint32_t r = 0; r < body->root_count; r++) {
    const ax_image_root *root = &image->roots[c][r];
    core->roots[r] = root->memory != AX_NONE ? device->memory[root->memory] : device->state + root->at;
  }
  memcpy(core->views, body->first_views, body->view_count * sizeof core->views[0]);
  memcpy(core->values + body->kept_at, body->kept, body->kept_count * sizeof body->kept[0]);
  for (uint32_t i = 0; i < body->kept_operand_count; i++) {
    const ax_image_kept *kept = &body->kept_operands[i];
    memcpy(core->values + kept->at, device->memory[kept->memory], kept->bytes);
  }
}

/* It is held for some nanoseconds at a time: who finds it taken looks again before going to sleep. */
static ax_status make_lock(pthread_mutex_t *lock) {
  pthread_mutexattr_t how;
  if (pthread_mutexattr_init(&how) != 0) return ax_out_of_memory(0);
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
  pthread_mutexattr_settype(&how, PTHREAD_MUTEX_ADAPTIVE_NP);
#endif
  int failed = pthread_mutex_init(lock, &how);
  pthread_mutexattr_destroy(&how);
  return failed == 0 ? AX_OK : ax_out_of_memory(0);
}

ax_status ax_image_enter(const void *kernel, void *state, void *const *memory, int64_t number, bool first, uint64_t base) {
  const ax_image *image = kernel;
  ax_run_device *device = (void *)((char *)state + image->device_at);
  *device = (ax_run_device){.device = number, .state = state};
  if (image->memory_count > 0) memcpy(device->memory, memory, image->memory_count * sizeof memory[0]);
  for (uint32_t i = 0, numbered = 0; i < image->object_count; i++) {
    ax_run_object *objects = (void *)((char *)state + image->objects[i].at);
    for (int64_t k = 0; k < image->objects[i].count; k++)
      objects[k] =
          (ax_run_object){.arrivals = image->objects[i].arrivals, .number = image->objects[i].barriers ? numbered++ : AX_NONE};
  }
  for (uint32_t i = 0; i < image->table_count; i++) { /* nothing is borrowed yet: units are where they would be */
    const ax_image_table *table = &image->tables[i];
    char **unit = (void *)((char *)state + table->table_at);
    for (int64_t k = 0; k < table->count; k++) unit[k] = (char *)state + table->root_at + (size_t)k * table->unit;
  }
  for (uint32_t s = 0; s < image->scope_count; s++) *(ax_run_scope *)(void *)((char *)state + image->scopes[s]) = (ax_run_scope){0};
  for (uint32_t c = 0; c < image->machine->core_count; c++) make_core(image, device, c);
  if (!first) return AX_OK;
  ax_run_group *group = state;
  *group = (ax_run_group){.members = image->members, .signals = base};
  return make_lock(&group->lock);
}

/* A walker that sees it wanted gives it up soon. */
void ax_group_lock_wanted(ax_run_group *group) {
  atomic_fetch_add_explicit(&group->wanted, 1, memory_order_relaxed);
  pthread_mutex_lock(&group->lock);
  atomic_fetch_sub_explicit(&group->wanted, 1, memory_order_relaxed);
}

/* --- Failures --- */

void ax_run_group_fail(ax_run_group *group, ax_status status) {
  if (group->status != AX_OK) return;
  group->status = status;
  snprintf(group->message, sizeof group->message, "%s", ax_message());
}

/* --- Who is ready --- */

void ax_group_ready(ax_run_group *group, const ax_cores_runner *runner, ax_run_core *core) {
  for (ax_run_core *next; core != NULL; core = next) {
    next = core->next;
    core->next = NULL;
    if (group->first == NULL) group->first = core;
    else group->last->next = core;
    group->last = core;
    group->ready++;
    if (group->parked == 0 || (runner->one_thread && group->running > 0)) continue;
    group->parked--;
    group->signals++;
    runner->wake(runner->context, 1);
  }
}

/* The first; where a policy is to choose, any. */
static ax_run_core *take_ready(ax_run_group *group, uint64_t seed) {
  if (group->first == NULL) return NULL;
  group->random = (group->random + seed) * 6364136223846793005u + 1442695040888963407u;
  uint32_t skip = seed != 0 ? (uint32_t)((group->random >> 33) % group->ready) : 0;
  ax_run_core *before = NULL, *core = group->first;
  for (; skip > 0; skip--) before = core, core = core->next;
  if (before == NULL) group->first = core->next;
  else before->next = core->next;
  if (group->last == core) group->last = before;
  core->next = NULL;
  group->ready--;
  return core;
}

void ax_run_group_begin(const ax_image *image, ax_run_group *group, const ax_cores_runner *runner) {
  if (group->begun) return;
  group->begun = true;
  group->open = runner->away;
  for (uint32_t m = 0; m < group->members; m++) {
    group->states[m] = runner->state(runner->context, m);
    if (group->states[m] != NULL) ((ax_run_device *)(void *)(group->states[m] + image->device_at))->group = group;
  }
  for (uint32_t m = 0; m < group->members; m++)
    for (uint32_t c = 0; c < image->machine->core_count && group->states[m] != NULL; c++) {
      group->live++;
      ax_group_ready(group, runner, (void *)(group->states[m] + image->core_at[c]));
    }
}

/* --- Deadlocks --- */

void ax_core_text(ax_text *text, const ax_image *image, const ax_run_core *core) {
  const ax_kernel_params *params = image->machine->params;
  uint32_t b = image->machine->cores[core->number].body;
  const ax_mesh *mesh = &params->bodies.v[b]->axes;
  ax_text_add(text, "device %lld", (long long)core->device->device);
  for (uint32_t a = mesh->count - (uint32_t)params->core_axes.v[b]; a < mesh->count; a++)
    ax_text_add(text, ", %s %lld", mesh->axis[a].name, (long long)ax_mesh_coordinate(mesh, core->place, a));
  if (params->cores.count > 1) ax_text_add(text, " (%s)", params->cores.name[b]);
}

static void waiting_text(ax_text *text, const ax_image *image, const ax_run_core *core) {
  char step[160];
  ax_core_text(text, image, core);
  if (core->quiet) {
    ax_text_add(text, " goes round in %s, and nothing changes what it reads", ax_step_text(core->circles->step, step, sizeof step));
    return;
  }
  ax_text_add(text, " waits in %s", ax_step_text(core->body->ops[core->pc].step, step, sizeof step));
  if (core->awaited == NULL) return;
  if (core->awaits_phase)
    ax_text_add(text, " for phase %lld, with %lld of %lld arrivals in phase %lld", (long long)core->amount,
                (long long)core->awaited->arrived, (long long)core->awaited->arrivals, (long long)core->awaited->phase + 1);
  else ax_text_add(text, " for %lld, of which there are %lld", (long long)core->amount, (long long)core->awaited->count);
}

/* Returns how many cores of this process are not through. */
static uint32_t list_waiting(ax_text *text, const ax_image *image, const ax_run_group *group) {
  enum { most_listed = 8 };
  uint32_t listed = 0;
  for (uint32_t m = 0; m < group->members; m++)
    for (uint32_t c = 0; c < image->machine->core_count && group->states[m] != NULL; c++) {
      const ax_run_core *core = (const void *)(group->states[m] + image->core_at[c]);
      if (core->through || listed++ >= most_listed) continue;
      ax_text_add(text, "%s ", listed > 1 ? ";" : "");
      waiting_text(text, image, core);
    }
  if (listed > most_listed) ax_text_add(text, "; and %u more", listed - most_listed);
  return listed;
}

void ax_image_report(const void *kernel, const void *common, ax_text *text) {
  const ax_image *image = kernel;
  ax_text_add(text, " in the kernel %s:", image->machine->params->name);
  if (list_waiting(text, image, common) == 0) ax_text_add(text, " the cores of this process have ended, those of others have not");
}

ax_status ax_run_group_deadlock(const ax_image *image, ax_run_group *group) {
  ax_text text = {0};
  ax_text_add(&text, "deadlock in the kernel %s:", image->machine->params->name);
  (void)list_waiting(&text, image, group);
  snprintf(group->message, sizeof group->message, "%s", text.data != NULL ? text.data : "deadlock in a kernel");
  ax_text_deinit(&text);
  return group->status = AX_DEADLOCK;
}

/* --- Running --- */

/* A core that reads a semaphore again and again may be waiting for a message. */
static void look_for_messages(ax_run_group *group, const ax_cores_runner *runner) {
  pthread_mutex_unlock(&group->lock);
  const bool goes_on = runner->poll(runner->context);
  pthread_mutex_lock(&group->lock);
  if (!goes_on) ax_run_group_fail(group, ax_error(AX_UNAVAILABLE, "the run is over"));
}

/* With the lock held, which is held again afterwards. */
static void run_ready(const ax_image *image, ax_run_group *group, const ax_cores_runner *runner) {
  if (runner->one_thread && group->running > 0) return; /* that thread comes to them */
  for (ax_run_core *core; group->status == AX_OK && (core = take_ready(group, runner->seed)) != NULL;) {
    group->running++;
    ax_walked walked = ax_core_walk(image, runner, core);
    group->running--;
    if (!core->quiet) group->changes++;
    if (walked == AX_WALKED_THROUGH) core->through = true;
    group->live -= walked == AX_WALKED_THROUGH;
    if (walked == AX_WALKED_WAITS && core->made_way && runner->away > 0) look_for_messages(group, runner);
  }
}

/* Once its own cores are through, a process says to the others that no more messages come from it. */
static void close_group(ax_run_group *group, const ax_cores_runner *runner) {
  if (runner->away == 0 || group->live > 0 || group->status != AX_OK || group->closing) return;
  group->closing = true;
  pthread_mutex_unlock(&group->lock);
  ax_status status = runner->close(runner->context);
  pthread_mutex_lock(&group->lock);
  group->closed = true;
  if (status != AX_OK) ax_run_group_fail(group, status);
}

static bool is_through(const ax_run_group *group, const ax_cores_runner *runner) {
  return group->live == 0 && group->open == 0 && group->unanswered == 0 && (group->closed || runner->away == 0);
}

void ax_run_group_end(ax_run_group *group, const ax_cores_runner *runner) {
  if (!is_through(group, runner) || group->parked == 0) return;
  group->signals += group->parked;
  runner->wake(runner->context, group->parked);
  group->parked = 0;
}

ax_status ax_image_run(const void *kernel, const ax_cores_runner *runner, uint64_t *ticket) {
  const ax_image *image = kernel;
  ax_run_group *group = runner->state(runner->context, runner->first);
  ax_group_lock(group);
  ax_run_group_begin(image, group, runner);
  run_ready(image, group, runner);
  close_group(group, runner);
  *ticket = 0;
  if (group->status == AX_OK && !is_through(group, runner)) {
    if (group->running == 0 && runner->away == 0) (void)ax_run_group_deadlock(image, group);
    else if (group->members > 1) *ticket = group->signals + ++group->parked;
  }
  ax_run_group_end(group, runner);
  ax_status status = group->status;
  if (status != AX_OK) status = ax_error(status, "%s", group->message);
  pthread_mutex_unlock(&group->lock);
  return status;
}
