/* Derives facts that the executor looks up: addresses of counters, whether scratch memory is still needed, whether threads are
   worth waking. Then makes the list the code of the devices. */
#include "assemble/assembly.h"

static bool is_jump(const ax_instr *instr) {
  return instr->kind == AX_INSTR_LOOP || instr->kind == AX_INSTR_NEXT || instr->kind == AX_INSTR_TEST ||
         instr->kind == AX_INSTR_BRANCH || instr->kind == AX_INSTR_JUMP;
}

/* Sets instr->scratch: this instruction or a later one touches scratch memory. The list is walked from its end. A jump may lead
   back to any earlier instruction, so a jump always counts as touching it. */
static void mark_scratch(ax_assembly *a) {
  bool ahead = false;
  if (a->compiled->spaces[a->compiled->scratch_space].bytes == 0) return;
  for (uint32_t i = a->instr_count; i-- > 0;) {
    ax_instr *instr = &a->instrs[i];
    bool mine = is_jump(instr);
    for (uint32_t k = 0; k < instr->ref_count; k++) mine = mine || instr->refs[k].space == a->compiled->scratch_space;
    if (ax_instr_has_room(instr) && instr->room != NULL) mine = mine || instr->room->ref.space == a->compiled->scratch_space;
    instr->scratch = ahead = ahead || mine;
  }
}

/* Says whether every run makes the same small results: the plan has no inputs, and no instruction calls the host. */
static bool is_constant(const ax_assembly *a) {
  enum { most_kept = 64 << 10 }; /* bytes */
  const ax_compiled *c = a->compiled;
  size_t bytes = 0;
  if (c->plan->in_count > 0 || c->plan->out_count == 0 || c->plan->program->effects != 0 || c->timed) return false;
  for (uint32_t k = 0; k < c->plan->out_count; k++) bytes += c->spaces[c->results[k].space].total;
  for (uint32_t i = 0; i < a->instr_count; i++)
    if (a->instrs[i].kind == AX_INSTR_CALL || a->instrs[i].kind == AX_INSTR_EVAL || a->instrs[i].kind == AX_INSTR_CHECK)
      return false;
  return bytes <= most_kept;
}

/* *out NULL: all devices are of this process. */
static ax_status list_devices(const ax_compiled *c, const uint32_t **out) {
  *out = NULL;
  if (c->map == NULL) return AX_OK;
  uint32_t *devices = ax_arena_alloc(&c->plan->arena, (c->map->here + 1) * sizeof devices[0]), count = 0;
  if (devices == NULL) return ax_out_of_memory(c->map->here * sizeof devices[0]);
  for (uint32_t d = 0; d < c->devices; d++)
    if (ax_device_is_here(c->map, d)) devices[count++] = d;
  *out = devices;
  return AX_OK;
}

ax_status ax_instrs_finish(ax_assembly *a) {
  ax_compiled *c = a->compiled;
  const uint32_t *devices;
  c->idle_plan = c->plan->out_count == 0 && a->instr_count == 1; /* the END */
  c->is_constant = is_constant(a);
  ax_resolve_counters(a);
  AX_TRY(ax_number_owners(a));
  AX_TRY(list_devices(c, &devices));
  mark_scratch(a);
  for (uint32_t i = 0; i < a->instr_count; i++) c->in_parts = c->in_parts || a->instrs[i].parts > 1;
  const bool worth_threads = ax_worth_threads(c);
  c->late = c->devices == 1 || !worth_threads;
  c->threaded = worth_threads || ax_worth_help(a);
  c->brief = ax_plan_time(c->plan) < 2e6;
  c->ends_soon = c->brief && ax_plan_is_foreseen(c->plan);
  c->accesses = ax_arena_copy(&a->plan->arena, a->accesses, a->access_count * sizeof a->accesses[0]);
  c->codes = ax_arena_alloc(&a->plan->arena, sizeof c->codes[0]);
  if (c->timed) {
    c->ops = ax_arena_copy(&a->plan->arena, a->ops, a->instr_count * sizeof a->ops[0]);
    if (c->ops == NULL) return ax_out_of_memory(a->instr_count * sizeof a->ops[0]);
  }
  if (c->accesses == NULL || c->codes == NULL) return ax_out_of_memory(a->access_count * sizeof a->accesses[0]);
  c->access_count = a->access_count;
  c->codes[0] =
      (ax_code){.mesh = &c->plan->mesh, .activation_count = c->map != NULL ? c->map->here : c->devices, .devices = devices,
                .instr_count = a->instr_count, .instrs = a->instrs};
  c->code_count = 1;
  c->activation_count = c->codes[0].activation_count;
  c->region_count = a->region_count;
  c->loop_count = a->plan->loop_count;
  return AX_OK;
}
