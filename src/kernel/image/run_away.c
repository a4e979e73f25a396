/* What cores do on devices of other processes: it is sent there by the process of the core, and done there by whichever thread
   handles the message.

                  words[0]                                    words[1]                                       words[2]
     a step       barrier that gets the answer, step          core that it is for, place of the semaphore    bytes or an amount
     an answer    that barrier, as it came                    AX_NONE                                        -

   A step is known by its number in the code of the body, which is the same in all processes. Operations are not, since what is
   compiled may depend on the processor. The core that a step is for has the body of the core that sends it. A barrier is of the core
   that sends: a copy that arrives at one asks for an answer. The barriers of all members are numbered in a row; AX_NONE: none. */
#include "kernel/image/run.h"
#include "kernel/step.h"

static uint64_t pair(uint32_t high, uint32_t low) { return (uint64_t)high << 32 | low; }
static uint32_t high_of(uint64_t word) { return (uint32_t)(word >> 32); }
static uint32_t low_of(uint64_t word) { return (uint32_t)word; }

/* --- Barriers by number --- */

static uint32_t number_of(const ax_row_walk *w, uint32_t operand) {
  const ax_image *image = w->image;
  const int64_t device = w->core->device->device;
  const uint32_t member = image->members > 1 ? (uint32_t)ax_axes_index(&image->names, image->axes, device) : 0;
  return member * image->barrier_total + ax_walk_object(w, w->core, operand)->number;
}

static ax_run_object *barrier_at(const ax_image *image, char *state, uint32_t number) {
  for (uint32_t i = 0, before = 0; i < image->object_count; i++) {
    const ax_image_objects *objects = &image->objects[i];
    if (!objects->barriers) continue;
    if (number - before < objects->count) return (ax_run_object *)(void *)(state + objects->at) + (number - before);
    before += (uint32_t)objects->count;
  }
  return NULL;
}

/* --- Sent --- */

/* With the lock held, which is released meanwhile. */
static ax_status send_unlocked(ax_run_group *group, const ax_cores_runner *runner, const ax_cores_message *message) {
  pthread_mutex_unlock(&group->lock);
  ax_status status = runner->send(runner->context, message);
  pthread_mutex_lock(&group->lock);
  return status;
}

ax_status ax_walk_send(const ax_row_walk *w, const ax_core_meant *to, const ax_departure *what) {
  ax_run_group *group = w->core->device->group;
  const ax_core_code_step *step = w->op->step;
  const bool asks = what->barrier != AX_NONE;
  const int64_t place = what->object != AX_NONE ? w->core->views[w->body->view_of[step->in[what->object]]] : 0;
  const ax_cores_message message = {
      .member = to->member,
      .words = {pair(asks ? number_of(w, what->barrier) : AX_NONE, (uint32_t)(step - w->body->code->steps)),
                pair(to->number, (uint32_t)place), (uint64_t)what->number},
      .data = what->data,
      .bytes = what->bytes};
  group->unanswered += asks; /* before it is sent: the answer may come at once */
  ax_status status = send_unlocked(group, w->runner, &message);
  if (status != AX_OK) group->unanswered -= asks;
  return status;
}

static ax_status answer(const ax_image *image, ax_run_group *group, const ax_cores_runner *runner, uint32_t barrier) {
  const ax_cores_message message = {.member = barrier / image->barrier_total, .words = {pair(barrier, 0), pair(AX_NONE, 0)}};
  return send_unlocked(group, runner, &message);
}

/* --- What comes --- */

ax_run_object *ax_landing_object(const ax_landing *l, uint32_t operand) {
  const uint32_t slot = l->step->in[operand];
  return (ax_run_object *)l->walk.core->roots[l->walk.body->slots[slot].root] + l->object;
}

static ax_status unknown(const ax_image *image) {
  return ax_error(AX_INTERNAL, "a message that the kernel %s does not have", image->machine->params->name);
}

/* NULL: this kernel has no such core here. */
static ax_run_core *core_at(const ax_image *image, const ax_run_group *group, uint32_t member, uint32_t number) {
  char *state = member < group->members ? group->states[member] : NULL;
  return state != NULL && number < image->machine->core_count ? (void *)(state + image->core_at[number]) : NULL;
}

/* NULL: the body has no step of that number that can come from elsewhere. */
static const ax_core_code_step *step_at(const ax_core_code *code, uint32_t number) {
  if (number >= code->step_count || code->steps[number].kind != AX_STEP_ACT) return NULL;
  return code->steps[number].eqn->prim->step->land != NULL ? &code->steps[number] : NULL;
}

/* These have the lock, and the group has begun. */
static ax_status land(const ax_image *image, ax_run_group *group, const ax_cores_runner *runner, const ax_cores_message *message) {
  const uint32_t barrier = high_of(message->words[0]);
  ax_run_core *core = core_at(image, group, message->member, high_of(message->words[1]));
  const ax_core_code_step *step = core != NULL ? step_at(core->body->code, low_of(message->words[0])) : NULL;
  if (step == NULL || (barrier != AX_NONE && barrier / image->members >= image->barrier_total)) return unknown(image);
  ax_landing landing = {.walk = {.image = image, .runner = runner, .core = core, .body = core->body},
                        .step = step,
                        .object = low_of(message->words[1]),
                        .number = (int64_t)message->words[2],
                        .data = message->data,
                        .bytes = message->bytes};
  AX_TRY(step->eqn->prim->step->land(&landing));
  return barrier != AX_NONE ? answer(image, group, runner, barrier) : AX_OK;
}

static ax_status take_answer(const ax_image *image, ax_run_group *group, const ax_cores_runner *runner,
                             const ax_cores_message *message) {
  const uint32_t barrier = high_of(message->words[0]);
  ax_run_core *core = core_at(image, group, message->member, 0);
  if (core == NULL || group->unanswered == 0 || barrier / image->barrier_total != message->member) return unknown(image);
  const ax_row_walk w = {.image = image, .runner = runner, .core = core, .body = core->body};
  group->unanswered--;
  ax_walk_arrive(&w, barrier_at(image, core->device->state, barrier % image->barrier_total));
  ax_run_group_end(group, runner);
  return AX_OK;
}

ax_status ax_image_take(const void *kernel, const ax_cores_runner *runner, const ax_cores_message *message) {
  const ax_image *image = kernel;
  ax_run_group *group = runner->state(runner->context, runner->first);
  ax_group_lock(group);
  ax_run_group_begin(image, group, runner);
  const bool answers = high_of(message->words[1]) == AX_NONE;
  ax_status status = answers ? take_answer(image, group, runner, message) : land(image, group, runner, message);
  pthread_mutex_unlock(&group->lock);
  return status;
}

void ax_image_closed(const void *kernel, const ax_cores_runner *runner) {
  const ax_image *image = kernel;
  ax_run_group *group = runner->state(runner->context, runner->first);
  ax_group_lock(group);
  ax_run_group_begin(image, group, runner);
  group->open--;
  ax_run_group_end(group, runner);
  pthread_mutex_unlock(&group->lock);
}
