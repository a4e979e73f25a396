/* What cores do on devices of other processes: it is sent there by the process of the core, and done there by whichever thread
   handles the message.

     words[0]     sender's core, step of its body           words[1]     core that it is for, place of the semaphore
     words[2]     bytes into the destination's root, or an amount

   A step is known by its number in the body's code, which is the same in all processes; operations are not, since what is compiled
   may depend on the processor. */
#include "kernel/image/run.h"
#include "kernel/step.h"

static uint64_t pair(uint32_t high, uint32_t low) { return (uint64_t)high << 32 | low; }
static uint32_t high_of(uint64_t word) { return (uint32_t)(word >> 32); }
static uint32_t low_of(uint64_t word) { return (uint32_t)word; }

ax_status ax_walk_send(const ax_row_walk *w, const ax_core_meant *to, uint32_t object, int64_t number, const void *data,
                       size_t bytes) {
  ax_run_group *group = w->core->device->group;
  const ax_core_code_step *step = w->op->step;
  const int64_t place = object != AX_NONE ? w->core->views[w->body->view_of[step->in[object]]] : 0;
  const ax_cores_message message = {.member = to->member,
                                    .words = {pair(w->core->number, (uint32_t)(step - w->body->code->steps)),
                                              pair(to->number, (uint32_t)place), (uint64_t)number},
                                    .data = data,
                                    .bytes = bytes};
  pthread_mutex_unlock(&group->lock);
  ax_status status = w->runner->send(w->runner->context, &message);
  pthread_mutex_lock(&group->lock);
  return status;
}

ax_run_object *ax_landing_object(const ax_landing *l, uint32_t operand) {
  const uint32_t slot = l->step->in[operand];
  return (ax_run_object *)l->walk.core->roots[l->walk.body->slots[slot].root] + l->object;
}

/* The step that a message says. NULL: this kernel has no such step. */
static const ax_core_code_step *step_of(const ax_image *image, const ax_cores_message *message) {
  const uint32_t core = high_of(message->words[0]), number = low_of(message->words[0]);
  if (core >= image->machine->core_count || high_of(message->words[1]) >= image->machine->core_count) return NULL;
  const ax_core_code *code = image->bodies[image->machine->cores[core].body].code;
  if (number >= code->step_count || code->steps[number].kind != AX_STEP_ACT) return NULL;
  return code->steps[number].eqn->prim->step->land != NULL ? &code->steps[number] : NULL;
}

/* With the lock held, once the group has begun. */
static ax_status land(const ax_image *image, const ax_run_group *group, const ax_cores_runner *runner,
                      const ax_cores_message *message) {
  const ax_core_code_step *step = step_of(image, message);
  char *state = message->member < group->members ? group->states[message->member] : NULL;
  if (step == NULL || state == NULL)
    return ax_error(AX_INTERNAL, "a message that the kernel %s does not have", image->machine->params->name);
  ax_run_core *core = (void *)(state + image->core_at[high_of(message->words[1])]);
  ax_landing landing = {.walk = {.image = image, .runner = runner, .core = core, .body = core->body},
                        .step = step,
                        .object = low_of(message->words[1]),
                        .number = (int64_t)message->words[2],
                        .data = message->data,
                        .bytes = message->bytes};
  return step->eqn->prim->step->land(&landing);
}

ax_status ax_image_take(const void *kernel, const ax_cores_runner *runner, const ax_cores_message *message) {
  const ax_image *image = kernel;
  ax_run_group *group = runner->state(runner->context, runner->first);
  pthread_mutex_lock(&group->lock);
  ax_run_group_begin(image, group, runner);
  ax_status status = land(image, group, runner, message);
  pthread_mutex_unlock(&group->lock);
  return status;
}

void ax_image_closed(const void *kernel, const ax_cores_runner *runner) {
  const ax_image *image = kernel;
  ax_run_group *group = runner->state(runner->context, runner->first);
  pthread_mutex_lock(&group->lock);
  ax_run_group_begin(image, group, runner);
  group->open--;
  ax_run_group_end(group, runner);
  pthread_mutex_unlock(&group->lock);
}
