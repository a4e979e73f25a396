/* From a program to an executable: the passes in order, then what instructions need at run time.

     program -> simplify -> partition -> simplify -> plan (lower rules) -> turn products -> schedule -> update in place -> fuse -> coalesce -> flatten
          -> synchronise -> place memory -> machine code for kernels -> tables for exchanges                                                      */
#include <string.h>

#include "axle/transform.h"
#include "exec/exec.h"
#include "exec/float_mode.h"
#include "exec/execution.h"
#include "mesh/partition.h"

/* How inputs and results lie: as the specs of the partitioned program say. */
static ax_status describe_arguments(ax_executable *e, const ax_partitioned *partitioned) {
  const ax_spec whole = {0}, *in = partitioned->in_specs, *out = partitioned->out_specs;
  e->mesh = *partitioned->mesh;
  for (uint32_t k = 0; k < e->plan->out_count; k++)
    AX_TRY(ax_layout_create(ax_program_out_type(e->program, k), &e->mesh, out != NULL ? &out[k] : &whole, &e->results[k].layout));
  for (uint32_t i = 0; i < e->plan->in_count; i++)
    AX_TRY(ax_layout_create(ax_program_in_type(e->program, i), &e->mesh, in != NULL ? &in[i] : &whole, &e->wanted[i]));
  return AX_OK;
}

/* --- Machine code --- */

static ax_status compile_kernels(ax_assembly *a) {
  uint32_t count = 0;
  const ax_kernel **kernels = ax_arena_alloc(&a->scratch, a->instr_count * sizeof kernels[0]);
  ax_kernel_code *code = ax_arena_alloc(&a->scratch, a->instr_count * sizeof code[0]);
  if (kernels == NULL || code == NULL) return ax_out_of_memory(a->instr_count * sizeof code[0]);
  for (uint32_t i = 0; i < a->instr_count; i++) {
    const ax_instr *instr = &a->instrs[i];
    if (instr->kind == AX_INSTR_KERNEL) kernels[count++] = a->ops[i]->kernel.kernel;
    if (instr->kind != AX_INSTR_PUSH || instr->push->exchange->combine == AX_SCALAR_NONE) continue;
    if ((kernels[count++] = ax_combine_kernel(a, instr->push)) == NULL) return ax_out_of_memory(0);
  }
  if (count == 0) return AX_OK;
  AX_TRY(ax_jit_compile(a->executable->runtime->jit, kernels, count, code));
  count = 0;
  for (uint32_t i = 0; i < a->instr_count; i++) {
    ax_instr *instr = &a->instrs[i];
    if (instr->kind == AX_INSTR_KERNEL) instr->kernel.code = code[count++];
    if (instr->kind == AX_INSTR_PUSH && instr->push->exchange->combine != AX_SCALAR_NONE) instr->push->combine = code[count++];
  }
  return AX_OK;
}

/* --- Assembling --- */

static bool is_jump(const ax_instr *instr) {
  return instr->kind == AX_INSTR_LOOP || instr->kind == AX_INSTR_NEXT || instr->kind == AX_INSTR_TEST ||
         instr->kind == AX_INSTR_BRANCH || instr->kind == AX_INSTR_JUMP;
}

/* From the end backwards; what comes after a jump may come before it. */
static void mark_scratch(ax_assembly *a) {
  bool ahead = false;
  for (uint32_t i = a->instr_count; i-- > 0;) {
    ax_instr *instr = &a->instrs[i];
    bool mine = is_jump(instr);
    for (uint32_t k = 0; k < instr->ref_count; k++) mine = mine || instr->refs[k].space == a->executable->scratch_space;
    instr->scratch = ahead = ahead || mine;
  }
}

static ax_status assemble_into(ax_assembly *a) {
  ax_executable *e = a->executable;
  AX_TRY(ax_flatten(a));
  AX_TRY(ax_synchronise(a));
  AX_TRY(ax_place_memory(a));
  AX_TRY(ax_number_events(a));
  AX_TRY(ax_make_pushes(a));
  AX_TRY(compile_kernels(a));
  ax_resolve_counters(a);
  mark_scratch(a);
  for (uint32_t i = 0; i < a->instr_count; i++) e->splits = e->splits || a->instrs[i].parts > 1;
  e->accesses = ax_arena_copy(&a->plan->arena, a->accesses, a->access_count * sizeof a->accesses[0]);
  e->codes = ax_arena_alloc(&a->plan->arena, sizeof e->codes[0]);
  if (e->accesses == NULL || e->codes == NULL) return ax_out_of_memory(a->access_count * sizeof a->accesses[0]);
  e->access_count = a->access_count;
  e->codes[0] = (ax_code){.mesh = &e->plan->mesh, .frame_count = e->devices, .instr_count = a->instr_count, .instrs = a->instrs};
  e->code_count = 1;
  e->frame_count = e->devices;
  e->region_count = a->region_count;
  e->loop_count = a->plan->loop_count;
  return AX_OK;
}

static ax_status assemble(ax_executable *e) {
  ax_assembly a = {.executable = e, .plan = e->plan};
  ax_status status = assemble_into(&a);
  if (status != AX_OK && a.instr_capacity > 0) ax_free(a.instrs); /* else in the arena */
  ax_free(a.ops);
  ax_free(a.regions);
  ax_free(a.accesses);
  ax_free(a.events);
  ax_free(a.tenants);
  ax_arena_deinit(&a.scratch);
  return status;
}

/* The plan of the partitioned program, and the tables by input and result. */
static ax_status make_plan(ax_executable *e, const ax_partitioned *partitioned, const ax_compile_options *options) {
  const int64_t devices = ax_mesh_devices(partitioned->mesh), most = e->runtime->options.max_devices;
  if (devices > most)
    return ax_error(AX_INVALID_ARGUMENT, "the mesh has %lld devices, more than the %lld there are", (long long)devices,
                    (long long)most);
  e->devices = (uint32_t)devices;
  AX_TRY(ax_partitioned_plan(partitioned, options->reference, &e->plan));
  ax_plan *plan = e->plan;
  e->results = ax_arena_alloc(&plan->arena, plan->out_count * sizeof e->results[0]);
  e->donate = ax_arena_alloc(&plan->arena, plan->in_count);
  e->wanted = ax_arena_alloc(&plan->arena, plan->in_count * sizeof e->wanted[0]);
  if (e->results == NULL || e->donate == NULL || e->wanted == NULL) return ax_out_of_memory(0);
  if (options->donate != NULL) memcpy(e->donate, options->donate, plan->in_count);
  plan->donate = e->donate;
  return describe_arguments(e, partitioned);
}

/* Simplified twice: as it was written, so that nothing needless decides on meshes and layouts, and as each device runs it. */
static ax_status partition(ax_executable *e, const ax_compile_options *options) {
  ax_program *simple, *program, *body;
  AX_TRY(ax_program_simplify(e->program, &simple));
  ax_status status = ax_program_partition(simple, &program);
  ax_program_release(simple);
  AX_TRY(status);
  ax_partitioned partitioned = ax_partitioned_of(program);
  status = ax_program_simplify(partitioned.body, &body);
  if (status == AX_OK) {
    partitioned.body = body;
    status = make_plan(e, &partitioned, options);
    ax_program_release(body);
  }
  ax_program_release(program);
  return status;
}

static ax_status build(ax_executable *e, const ax_compile_options *options) {
  AX_TRY(partition(e, options));
  AX_TRY(ax_plan_check(e->plan, "lower"));
  AX_TRY(ax_plan_optimise(e->plan, NULL));
  e->threaded = ax_worth_threads(e);
  return assemble(e);
}

/* --- The object and its cache --- */

static void destroy(ax_executable *e) {
  while (e->idle != NULL) {
    ax_execution *run = e->idle;
    e->idle = run->next;
    ax_execution_destroy(e, run);
  }
  for (uint32_t k = 0; e->results != NULL && k < e->plan->out_count; k++) ax_layout_release(e->results[k].layout);
  for (uint32_t i = 0; e->wanted != NULL && i < e->plan->in_count; i++) ax_layout_release(e->wanted[i]);
  ax_plan_destroy(e->plan);
  ax_program_release(e->program);
  ax_free(e->constants);
  pthread_mutex_destroy(&e->lock);
  ax_runtime_drop(e->runtime);
  ax_free(e);
}

static bool same_options(const ax_executable *e, const ax_compile_options *options) {
  if (e->plan->reference != options->reference) return false;
  for (uint32_t i = 0; i < e->plan->in_count; i++)
    if (e->donate[i] != (options->donate != NULL && options->donate[i])) return false;
  return true;
}

/* Of equal programs: their equations stand in the same places, so that messages that name those fit both. */
static bool same_places(const ax_program *a, const ax_program *b) {
  if (a == b) return true;
  if (a->eqn_count != b->eqn_count) return false;
  for (uint32_t i = 0; i < a->eqn_count; i++) {
    if (a->eqns[i].line != b->eqns[i].line || a->eqns[i].prim != b->eqns[i].prim) return false;
    for (uint32_t k = 0; ax_eqn_program(&a->eqns[i], k) != NULL; k++)
      if (!same_places(ax_eqn_program(&a->eqns[i], k), ax_eqn_program(&b->eqns[i], k))) return false;
  }
  return true;
}

static ax_executable *find_cached(ax_runtime *runtime, const ax_program *program, const ax_compile_options *options) {
  ax_executable *found = NULL;
  pthread_mutex_lock(&runtime->lock);
  for (ax_executable *e = runtime->cache; e != NULL && found == NULL; e = e->next_cached)
    if (ax_program_equal(e->program, program) && same_places(e->program, program) && same_options(e, options)) {
      found = e;
      atomic_fetch_add(&e->references, 1);
    }
  pthread_mutex_unlock(&runtime->lock);
  return found;
}

ax_status ax_compile(ax_runtime *runtime, ax_program *program, const ax_compile_options *options, ax_executable **out) {
  const ax_compile_options defaults = {0};
  if (options == NULL) options = &defaults;
  *out = NULL;
  AX_TRY(ax_require(runtime, "runtime"));
  AX_TRY(ax_require(program, "program"));
  if ((*out = find_cached(runtime, program, options)) != NULL) return AX_OK;
  ax_executable *e = ax_calloc(1, sizeof *e);
  if (e == NULL) return ax_out_of_memory(sizeof *e);
  atomic_init(&e->references, 1);
  pthread_mutex_init(&e->lock, NULL);
  e->runtime = ax_runtime_hold(runtime);
  e->program = ax_program_retain(program);
  ax_float_mode caller = ax_float_mode_enter(); /* constants are rounded as runs round */
  ax_status status = build(e, options);
  ax_float_mode_leave(caller);
  if (status != AX_OK) {
    destroy(e);
    return status;
  }
  pthread_mutex_lock(&runtime->lock);
  e->next_cached = runtime->cache;
  runtime->cache = e;
  pthread_mutex_unlock(&runtime->lock);
  *out = e;
  return AX_OK;
}

void ax_executable_release(ax_executable *e) {
  if (e == NULL) return;
  pthread_mutex_lock(&e->runtime->lock); /* the cache must not hand out what is going */
  bool last = atomic_fetch_sub(&e->references, 1) == 1;
  for (ax_executable **link = &e->runtime->cache; last && *link != NULL; link = &(*link)->next_cached)
    if (*link == e) {
      *link = e->next_cached;
      break;
    }
  pthread_mutex_unlock(&e->runtime->lock);
  if (last) destroy(e);
}

/* --- Questions --- */

const ax_mesh *ax_executable_get_mesh(const ax_executable *e) { return e != NULL ? &e->mesh : NULL; }

const ax_spec *ax_executable_in_spec(const ax_executable *e, uint32_t index) {
  return e != NULL && index < e->plan->in_count ? &e->wanted[index]->spec : NULL;
}

const ax_spec *ax_executable_out_spec(const ax_executable *e, uint32_t index) {
  return e != NULL && index < e->plan->out_count ? &e->results[index].layout->spec : NULL;
}

ax_status ax_executable_put(const ax_executable *e, uint32_t index, const void *data, ax_array **out) {
  *out = NULL;
  AX_TRY(ax_require(e, "executable"));
  if (index < e->plan->in_count) return ax_array_put(e->runtime, e->wanted[index], data, out);
  return ax_error(AX_INVALID_ARGUMENT, "executable_put: there is no input %u; the program takes %u", index, e->plan->in_count);
}

/* --- Text --- */

static const char *const instr_names[] = {
    [AX_INSTR_KERNEL] = "kernel", [AX_INSTR_GEMM] = "gemm",   [AX_INSTR_EVAL] = "eval",     [AX_INSTR_PUSH] = "push",
    [AX_INSTR_CLEAR] = "clear",   [AX_INSTR_WAIT] = "wait",   [AX_INSTR_SIGNAL] = "signal", [AX_INSTR_LOOP] = "loop",
    [AX_INSTR_ENTER] = "enter",   [AX_INSTR_NEXT] = "next",   [AX_INSTR_TEST] = "test",     [AX_INSTR_BRANCH] = "branch",
    [AX_INSTR_JUMP] = "jump",     [AX_INSTR_END] = "end"};

static uint32_t most_times(const ax_event *event) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < event->count; i++) most = event->times[i] > most ? event->times[i] : most;
  return most;
}

static void instr_text(ax_text *text, const ax_executable *e, uint32_t i) {
  const ax_instr *instr = &e->codes[0].instrs[i];
  ax_text_add(text, "%4u %-7s", i, instr_names[instr->kind]);
  ax_axis_set on = ax_all_axes(&e->plan->mesh) & ~instr->skip;
  ax_text_add(text, " on %s", ax_axis_set_string(on, &e->plan->mesh));
  if (instr->kind == AX_INSTR_WAIT || instr->kind == AX_INSTR_SIGNAL)
    ax_text_add(text, " event %u region %u%+lld times %u%s%s", instr->sync.event, instr->sync.region, (long long)instr->sync.delta,
                most_times(&e->events[instr->sync.event]), instr->sync.away != NULL ? " away" : "", instr->sync.hard ? " hard" : "");
  if (instr->kind == AX_INSTR_PUSH) ax_text_add(text, " event %u", instr->push->event);
  if (instr->kind == AX_INSTR_LOOP || instr->kind == AX_INSTR_NEXT || instr->kind == AX_INSTR_TEST || instr->kind == AX_INSTR_JUMP)
    ax_text_add(text, " to %u", instr->target);
  for (uint32_t k = 0; k < instr->ref_count; k++)
    ax_text_add(text, " s%u+%lld", instr->refs[k].space, (long long)instr->refs[k].offset);
  if (instr->eqn != NULL) ax_text_add(text, "   ; %s", instr->eqn->prim->name);
  ax_text_add(text, "\n");
}

ax_status ax_executable_text(const ax_executable *e, char **out) {
  static const char *const kinds[] = {"const", "input", "output", "kept", "scratch"};
  ax_text text = {0};
  *out = NULL;
  AX_TRY(ax_require(e, "executable"));
  ax_plan_text(&text, e->plan);
  for (uint32_t s = 0; s < e->space_count; s++)
    ax_text_add(&text, "s%u: %s %u, %lld bytes per %s\n", s, kinds[e->spaces[s].kind], e->spaces[s].index,
                (long long)e->spaces[s].bytes, ax_axis_set_string(e->sets[e->spaces[s].set].axes, &e->plan->mesh));
  for (uint32_t i = 0; i < e->codes[0].instr_count; i++) instr_text(&text, e, i);
  return ax_text_finish(&text, out);
}
