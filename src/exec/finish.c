/* Derives facts that the executor looks up: results in donated memory, addresses of counters, whether scratch memory is still
   needed, whether threads are worth waking. Then makes the list the code of the devices. */
#include "exec/exec.h"
#include "exec/execution.h"

static bool is_jump(const ax_instr *instr) {
  return instr->kind == AX_INSTR_LOOP || instr->kind == AX_INSTR_NEXT || instr->kind == AX_INSTR_TEST ||
         instr->kind == AX_INSTR_BRANCH || instr->kind == AX_INSTR_JUMP;
}

/* Sets instr->scratch: this instruction or a later one touches scratch memory. The list is walked from its end. A jump may lead
   back to any earlier instruction, so a jump always counts as touching it. */
static void mark_scratch(ax_assembly *a) {
  bool ahead = false;
  if (a->executable->spaces[a->executable->scratch_space].bytes == 0) return;
  for (uint32_t i = a->instr_count; i-- > 0;) {
    ax_instr *instr = &a->instrs[i];
    bool mine = is_jump(instr);
    for (uint32_t k = 0; k < instr->ref_count; k++) mine = mine || instr->refs[k].space == a->executable->scratch_space;
    instr->scratch = ahead = ahead || mine;
  }
}

/* Finds the result that lives in each donated input's memory. */
static void find_donated(ax_executable *e) {
  for (uint32_t i = 0; i < e->in_count; i++) e->donated[i] = AX_NONE;
  for (uint32_t k = e->out_count; k-- > 0;) { /* if several results are the same input, the first counts */
    const ax_returned *r = &e->returned[k];
    const uint32_t in = r->made == AX_NONE ? AX_NONE : e->results[r->made].donated;
    if (in != AX_NONE) e->donated[e->kept[in]] = k;
    if (r->input != AX_NONE && e->donate[r->input]) e->donated[r->input] = k;
  }
}

static bool is_plain(const ax_executable *e) {
  bool plain = e->in_count == e->plan->in_count && e->out_count == e->plan->out_count;
  for (uint32_t k = 0; k < e->out_count && plain; k++) plain = e->returned[k].made == k;
  return plain;
}

/* Says whether every run makes the same small results: the plan has no inputs, and no instruction calls the host. */
static bool is_constant(const ax_assembly *a) {
  enum { most_kept = 64 << 10 }; /* bytes */
  const ax_executable *e = a->executable;
  size_t bytes = 0;
  if (e->plan->in_count > 0 || e->plan->out_count == 0 || e->plan->program->effects != 0 || e->timeline != NULL) return false;
  for (uint32_t k = 0; k < e->plan->out_count; k++) bytes += e->results[k].layout->bytes;
  for (uint32_t i = 0; i < a->instr_count; i++)
    if (a->instrs[i].kind == AX_INSTR_CALL || a->instrs[i].kind == AX_INSTR_EVAL || a->instrs[i].kind == AX_INSTR_CHECK)
      return false;
  return bytes <= most_kept;
}

ax_status ax_instrs_finish(ax_assembly *a) {
  ax_executable *e = a->executable;
  find_donated(e);
  AX_TRY(ax_assigned_init(e));
  e->plain = is_plain(e);
  e->idle_plan = e->plan->out_count == 0 && a->instr_count == 1; /* the END */
  e->is_constant = is_constant(a);
  ax_resolve_counters(a);
  mark_scratch(a);
  for (uint32_t i = 0; i < a->instr_count; i++) e->in_parts = e->in_parts || a->instrs[i].parts > 1;
  e->threaded = ax_worth_threads(e);
  e->brief = ax_plan_time(e->plan) < 2e6;
  e->accesses = ax_arena_copy(&a->plan->arena, a->accesses, a->access_count * sizeof a->accesses[0]);
  e->codes = ax_arena_alloc(&a->plan->arena, sizeof e->codes[0]);
  if (e->timeline != NULL) {
    e->ops = ax_arena_copy(&a->plan->arena, a->ops, a->instr_count * sizeof a->ops[0]);
    if (e->ops == NULL) return ax_out_of_memory(a->instr_count * sizeof a->ops[0]);
  }
  if (e->accesses == NULL || e->codes == NULL) return ax_out_of_memory(a->access_count * sizeof a->accesses[0]);
  e->access_count = a->access_count;
  e->codes[0] =
      (ax_code){.mesh = &e->plan->mesh, .activation_count = e->devices, .instr_count = a->instr_count, .instrs = a->instrs};
  e->code_count = 1;
  e->activation_count = e->devices;
  e->region_count = a->region_count;
  e->loop_count = a->plan->loop_count;
  return AX_OK;
}
