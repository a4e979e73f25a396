/* See cores.h. */
#include "plan/plan.h"

ax_status ax_plan_keep_cores(ax_plan *plan, const ax_cores *cores, ax_cores **out) {
  uint32_t count = cores->in_count + cores->out_count;
  *out = ax_arena_copy(&plan->arena, cores, sizeof *cores);
  uint32_t *buffers = ax_arena_copy(&plan->arena, cores->buffers, count * sizeof buffers[0]);
  if (*out == NULL || (buffers == NULL && count > 0)) {
    cores->rules->release(cores->kernel);
    return ax_out_of_memory(sizeof *cores);
  }
  (*out)->buffers = buffers;
  (*out)->next = plan->cores;
  plan->cores = *out;
  return AX_OK;
}

uint32_t ax_cores_buffer_count(const ax_cores *cores, ax_cores_step step) {
  bool group = cores->came != AX_NONE;
  return 1 + cores->in_count + cores->out_count + (!group ? 0 : step == AX_CORES_RUN ? 2 : 1);
}

ax_cores_buffer ax_cores_buffer_at(const ax_cores *cores, ax_cores_step step, uint32_t k) {
  bool run = step == AX_CORES_RUN, leave = step == AX_CORES_LEAVE, alone = cores->came == AX_NONE;
  if (k == 0)
    return (ax_cores_buffer){cores->state, leave || (run && !alone), !leave}; /* others run cores in it until all are through */
  uint32_t at = k - 1;
  if (at < cores->in_count) return (ax_cores_buffer){cores->buffers[at], true, false};
  if (at < cores->in_count + cores->out_count)
    return (ax_cores_buffer){cores->buffers[at], leave || (run && !alone) || at - cores->in_count >= cores->fresh_count, !leave};
  bool last = at > cores->in_count + cores->out_count;
  if (step == AX_CORES_ENTER) return (ax_cores_buffer){cores->came, false, true};
  if (leave) return (ax_cores_buffer){cores->all_done, true, false};
  return last ? (ax_cores_buffer){cores->done, false, true} : (ax_cores_buffer){cores->all_came, true, false};
}
