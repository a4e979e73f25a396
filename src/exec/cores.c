/* Kernels of users, as activations perform them. An activation at a RUN runs cores that are ready, its own or others'. If none
   is ready and other threads still run some, it is parked on a counter of the group, and goes on when a core has become ready or
   all are through. So a waiting core holds no thread. If no core is running and none is ready, the cores that remain are
   deadlocked; the last activation reports it. */
#include "exec/cores.h"

#include "exec/compute.h"
#include "exec/share.h"

/* --- Before a run --- */

static ax_status describe(ax_assembly *a, const ax_instr *instr) {
  ax_executable *e = a->executable;
  const ax_plan *plan = a->plan;
  ax_cores_instr *mine = instr->cores;
  const ax_cores *cores = mine->cores;
  const uint32_t members = (uint32_t)ax_axis_set_size(cores->axes, &plan->mesh);
  uint32_t set, groups, *number = ax_arena_alloc(&a->plan->arena, e->devices * sizeof number[0]),
                        *place = ax_arena_alloc(&a->plan->arena, members * sizeof place[0]);
  if (number == NULL || place == NULL) return ax_out_of_memory(e->devices * sizeof number[0]);
  for (uint32_t k = 0; k < 1 + cores->in_count + cores->out_count; k++)
    if (instr->refs[k].space == e->scratch_space)
      return ax_error(AX_INTERNAL, "operand %u of a kernel that others reach is in scratch memory", k);
  AX_TRY(ax_set_of(e, plan->buffers[cores->state].axes, &set));
  AX_TRY(ax_set_of(e, plan->buffers[cores->state].axes & ~cores->axes, &groups));
  for (uint32_t d = 0; d < e->devices; d++) number[d] = (uint32_t)ax_axes_index(&cores->names, &plan->mesh, d);
  for (uint32_t i = 0; i < members; i++) place[i] = e->sets[set].index[ax_axes_device(&cores->names, &plan->mesh, 0, i)];
  mine->number = number;
  mine->place = place;
  mine->group = e->sets[groups].index;
  if (mine->step != AX_CORES_RUN) return AX_OK;
  mine->first = e->counter_count;
  e->counter_count += e->sets[groups].size;
  return AX_OK;
}

/* The ENTER and the RUN of one kernel share a counter. */
static void find_counter(ax_assembly *a, uint32_t enter) {
  for (uint32_t i = enter; i < a->instr_count; i++) {
    const ax_instr *instr = &a->instrs[i];
    if (instr->kind != AX_INSTR_CORES || instr->cores->step != AX_CORES_RUN ||
        a->ops[i]->cores->state != a->ops[enter]->cores->state)
      continue;
    a->instrs[enter].cores->first = instr->cores->first;
    return;
  }
}

ax_status ax_instrs_cores(ax_assembly *a) {
  for (uint32_t i = 0; i < a->instr_count; i++)
    if (a->instrs[i].kind == AX_INSTR_CORES && a->instrs[i].cores->cores->came != AX_NONE) AX_TRY(describe(a, &a->instrs[i]));
  for (uint32_t i = 0; i < a->instr_count; i++)
    if (a->instrs[i].kind == AX_INSTR_CORES && a->instrs[i].cores->step == AX_CORES_ENTER) find_counter(a, i);
  return AX_OK;
}

/* --- In a run --- */

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

static ax_status enter(ax_execution *run, const ax_activation *activation, const ax_instr *instr) {
  const ax_cores *cores = instr->cores->cores;
  enum { few = 32 };
  void *here[few], **memory = here;
  uint32_t count = cores->in_count + cores->out_count;
  bool alone = instr->cores->number == NULL;
  uint64_t base = alone ? 0 : atomic_load(&run->counters[counter_of(activation, instr)].count);
  if (count > few && (memory = ax_alloc(count * sizeof memory[0])) == NULL) return ax_out_of_memory(count * sizeof memory[0]);
  for (uint32_t k = 0; k < count; k++) memory[k] = ax_address(activation, &instr->refs[1 + k]);
  ax_status status = cores->rules->enter(cores->kernel, ax_address(activation, &instr->refs[0]), memory, activation->device,
                                         alone ? 0 : instr->cores->number[activation->device], base);
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
  if (run->threaded && cores->core_count > 1) {
    worker_slot->share.activation = (uint32_t)(r->activation - run->activations);
    worker_slot->share.instr = (uint32_t)(r->instr - r->activation->code->instrs);
    ax_status status = ax_share_parts(run, worker_slot, run_part, r, cores->core_count);
    if (status == AX_OUT_OF_MEMORY) return status;
  }
  return cores->rules->run(cores->kernel, r->all, &ticket); /* runs all cores that remain; no other thread runs any by now */
}

static ax_status run_together(ax_execution *run, ax_worker_slot *worker_slot, const runner *r, uint32_t f, bool *parked) {
  const ax_cores *cores = r->instr->cores->cores;
  uint64_t ticket;
  do {
    AX_TRY(cores->rules->run(cores->kernel, r->all, &ticket));
    if (ticket == 0) return AX_OK;
  } while (ax_scheduler_await(run, worker_slot, f, counter_of(r->activation, r->instr), ticket, false));
  *parked = true;
  return AX_OK;
}

ax_status ax_cores_do(ax_execution *run, ax_worker_slot *worker_slot, const ax_activation *activation, const ax_instr *instr,
                      uint32_t f, bool *parked) {
  const ax_cores *cores = instr->cores->cores;
  runner context = {run, activation, instr, NULL};
  const ax_cores_runner all = {
      .state = state_of,
      .wake = wake,
      .context = &context,
      .members = cores->came == AX_NONE ? 1 : (uint32_t)ax_axis_set_size(cores->axes, &run->executable->plan->mesh),
      .seed = run->scheduling_policy != NULL ? run->executable->runtime->options.seed | 1 : 0};
  context.all = &all;
  *parked = false;
  switch (instr->cores->step) {
    case AX_CORES_ENTER: return enter(run, activation, instr);
    case AX_CORES_RUN:
      return instr->cores->number == NULL ? run_alone(run, worker_slot, &context)
                                          : run_together(run, worker_slot, &context, f, parked);
    case AX_CORES_LEAVE: return AX_OK; /* only its waits matter */
  }
  return AX_OK;
}
