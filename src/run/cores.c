/* Kernels of users, as activations perform them. An activation at a RUN runs cores that are ready, its own or others'. If none
   is ready and other threads still run some, it is parked on a counter of the group, and goes on when a core has become ready or
   all are through. So a waiting core holds no thread. If no core is running and none is ready, the cores that remain are
   deadlocked; the last activation reports it. */
#include "run/cores.h"

#include "run/compute.h"
#include "run/cores_crossing.h"
#include "run/share.h"

typedef struct runner {
  ax_execution *run;
  const ax_activation *activation;
  const ax_instr *instr;
  const ax_cores_runner *all;
} runner;

static uint32_t counter_of(const ax_activation *activation, const ax_instr *instr) {
  return instr->cores->first + instr->cores->group[activation->device];
}

static void *state_of(const void *context, uint32_t member) {
  const runner *r = context;
  const ax_cores_instr *cores = r->instr->cores;
  if (cores->number == NULL) return ax_address(r->activation, &r->instr->refs[0]);
  return ax_address_away(r->activation, &r->instr->refs[0],
                         (int64_t)cores->place[member] - (int64_t)cores->place[cores->number[r->activation->device]]);
}

static void wake(const void *context, uint32_t count) {
  const runner *r = context;
  if (r->instr->cores->number != NULL) ax_scheduler_signal(r->run, counter_of(r->activation, r->instr), count);
}

static bool is_first(const ax_activation *activation, const ax_instr *instr) {
  const ax_cores_instr *cores = instr->cores;
  if (cores->number == NULL) return true;
  const uint32_t first = cores->crossing != NULL ? ax_cores_first_here(cores->crossing, activation->device) : 0;
  return cores->number[activation->device] == first;
}

static ax_status enter(ax_execution *run, const ax_activation *activation, const ax_instr *instr) {
  const ax_cores *cores = instr->cores->cores;
  enum { few = 32 };
  void *here[few], **memory = here;
  uint32_t count = cores->in_count + cores->out_count;
  bool alone = instr->cores->number == NULL;
  uint64_t base = alone ? 0 : atomic_load(&run->counters[counter_of(activation, instr)].count);
  if (count > few && (memory = ax_alloc(count * sizeof memory[0])) == NULL) return ax_out_of_memory(count * sizeof memory[0]);
  for (uint32_t k = 0; k < count; k++) memory[k] = ax_address(activation, &instr->refs[1 + k]);
  void *state = ax_address(activation, &instr->refs[0]);
  ax_status status = cores->rules->enter(cores->kernel, state, memory, activation->device, is_first(activation, instr), base);
  if (status == AX_OK && instr->cores->crossing != NULL) ax_cores_entered(run, activation, instr, state);
  if (memory != here) ax_free(memory);
  return status;
}

/* The first part that fails leaves its message in the kernel's state. */
static ax_status run_part(const void *context, ax_worker_slot *worker_slot, uint32_t part) {
  (void)worker_slot;
  const runner *r = context;
  const ax_cores *cores = r->instr->cores->cores;
  uint64_t ticket;
  (void)part;
  return cores->rules->run(cores->kernel, r->all, &ticket);
}

static ax_status run_alone(ax_execution *run, ax_worker_slot *worker_slot, const runner *r) {
  const ax_cores *cores = r->instr->cores->cores;
  uint64_t ticket;
  AX_TRY(enter(run, r->activation, r->instr));
  if (run->threaded && cores->core_count > 1 && !cores->one_thread) {
    worker_slot->share.activation = (uint32_t)(r->activation - run->activations);
    worker_slot->share.instr = (uint32_t)(r->instr - r->activation->code->instrs);
    ax_status status = ax_share_parts(run, worker_slot, run_part, r, cores->core_count);
    if (status == AX_OUT_OF_MEMORY) return status;
  }
  return cores->rules->run(cores->kernel, r->all, &ticket); /* runs all cores that remain; no other thread runs any by now */
}

static ax_status run_together(ax_execution *run, ax_worker_slot *worker_slot, const ax_activation *activation,
                              const ax_instr *instr, const ax_cores_runner *all, uint32_t f, bool *parked) {
  const ax_cores *cores = instr->cores->cores;
  uint64_t ticket;
  do {
    AX_TRY(cores->rules->run(cores->kernel, all, &ticket));
    if (ticket == 0) return AX_OK;
  } while (ax_scheduler_await(run, worker_slot, f, counter_of(activation, instr), ticket, false));
  *parked = true;
  return AX_OK;
}

ax_status ax_cores_do(ax_execution *run, ax_worker_slot *worker_slot, const ax_activation *activation, const ax_instr *instr,
                      uint32_t f, bool *parked) {
  const ax_cores *cores = instr->cores->cores;
  runner context = {run, activation, instr, NULL};
  ax_cores_runner all = {
      .state = state_of,
      .wake = wake,
      .context = &context,
      .members = cores->came == AX_NONE ? 1 : (uint32_t)ax_axis_set_size(cores->axes, &run->compiled->plan->mesh),
      .one_thread = cores->one_thread,
      .seed = run->scheduling_policy != NULL ? run->executor->options->seed | 1 : 0};
  context.all = &all;
  if (instr->cores->crossing != NULL) ax_cores_cross(run, activation, instr, &all);
  *parked = false;
  switch (instr->cores->step) {
    case AX_CORES_ENTER: return enter(run, activation, instr);
    case AX_CORES_RUN:
      return instr->cores->number == NULL ? run_alone(run, worker_slot, &context)
                                          : run_together(run, worker_slot, activation, instr, &all, f, parked);
    case AX_CORES_LEAVE: return AX_OK; /* only its waits matter */
  }
  return AX_OK;
}
