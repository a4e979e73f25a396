/* From a program to an executable: the passes in order, then what instructions need at run time.

     plan (lower rules) -> results made storable -> turn products -> schedule -> fuse -> coalesce -> flatten -> synchronise -> place memory
          -> machine code for kernels -> tables for exchanges                                                      */
#include <string.h>

#include "exec/exec.h"
#include "exec/execution.h"
#include "loop/lower.h"

/* --- Sets --- */

static void fill_index(const ax_executable *e, ax_set *set) {
  const ax_mesh *mesh = &e->plan->mesh;
  for (uint32_t d = 0; d < e->devices; d++) {
    int64_t rest = d, index = 0, scale = 1;
    for (uint32_t axis = mesh->count; axis-- > 0;) {
      if (set->axes >> axis & 1) {
        index += rest % mesh->axis[axis].size * scale;
        scale *= mesh->axis[axis].size;
      }
      rest /= mesh->axis[axis].size;
    }
    set->index[d] = (uint32_t)index;
  }
}

ax_status ax_set_of(ax_executable *e, ax_axis_set axes, uint32_t *out) {
  for (uint32_t i = 0; i < e->set_count; i++)
    if (e->sets[i].axes == axes) {
      *out = i;
      return AX_OK;
    }
  ax_set *sets = ax_arena_alloc(&e->plan->arena, (e->set_count + 1) * sizeof sets[0]);
  uint32_t *index = ax_arena_alloc(&e->plan->arena, e->devices * sizeof index[0]);
  if (sets == NULL || index == NULL) return ax_out_of_memory(e->devices * sizeof index[0]);
  if (e->set_count > 0) memcpy(sets, e->sets, e->set_count * sizeof sets[0]);
  e->sets = sets;
  *out = e->set_count++;
  sets[*out] = (ax_set){axes, (uint32_t)ax_axis_set_size(axes, &e->plan->mesh), index};
  fill_index(e, &sets[*out]);
  return AX_OK;
}

/* --- Results --- */

static bool storable(const ax_plan *plan, uint32_t k) {
  const ax_buffer *buffer = &plan->buffers[plan->out[k]], *root = &plan->buffers[buffer->root];
  if (root->kind != AX_BUFFER_TEMP || buffer->offset != 0 || buffer->loop != AX_NONE || buffer->axes != root->axes ||
      ax_type_elems(&buffer->type) * (int64_t)ax_dtype_bytes(buffer->type.dtype) !=
          ax_type_elems(&root->type) * (int64_t)ax_dtype_bytes(root->type.dtype))
    return false;
  for (uint32_t i = 0; i < k; i++)
    if (plan->buffers[plan->out[i]].root == buffer->root) return false;
  return ax_spec_set(&buffer->spec) == buffer->axes;
}

/* Results that are inputs, constants, parts of something or the same thing twice are copied, so that each has its memory. */
static ax_status make_results_storable(ax_plan *plan) {
  ax_lower lower = {.plan = plan, .block = &plan->block, .program = plan->program};
  ax_status status = AX_OK;
  for (uint32_t k = 0; status == AX_OK && k < plan->out_count; k++) {
    if (storable(plan, k)) continue;
    const ax_buffer old = plan->buffers[plan->out[k]];
    uint32_t copy;
    status = ax_lower_buffer(&lower, &old.type, ax_spec_set(&old.spec), &copy);
    if (status == AX_OK) status = ax_lower_copy(&lower, copy, plan->out[k]);
    if (status != AX_OK) break;
    plan->buffers[copy].spec = old.spec;
    plan->out[k] = copy;
  }
  ax_free(lower.buffers);
  return status;
}

static ax_status describe_arguments(ax_executable *e) {
  const ax_plan *plan = e->plan;
  for (uint32_t k = 0; k < plan->out_count; k++)
    AX_TRY(ax_layout_create(ax_program_out_type(plan->program, k), &plan->mesh, &plan->buffers[plan->out[k]].spec, &e->results[k].layout));
  for (uint32_t i = 0; i < plan->in_count; i++)
    AX_TRY(ax_layout_create(ax_program_in_type(plan->program, i), &plan->mesh, &plan->buffers[plan->in[i]].spec, &e->wanted[i]));
  return AX_OK;
}

/* --- Exchanges --- */

/* The trailing dimensions of a part that are contiguous on both sides are one run. */
static void find_run(ax_push *push) {
  const ax_exchange *x = push->exchange;
  push->run = 1;
  push->outer_rank = x->rank;
  while (push->outer_rank > 0) {
    uint32_t d = push->outer_rank - 1;
    if (x->dims[d] != 1 && (x->src_stride[d] != push->run || x->dst_stride[d] != push->run)) break;
    push->run *= x->dims[d];
    push->outer_rank = d;
  }
}

/* Who each member of a group is, in the order of its mesh and for the result's memory. */
static ax_status number_members(ax_executable *e, ax_push *push) {
  uint32_t n = push->members;
  push->in_place = ax_arena_alloc(&e->plan->arena, n * sizeof push->in_place[0]);
  push->number = ax_arena_alloc(&e->plan->arena, n * sizeof push->number[0]);
  push->place = ax_arena_alloc(&e->plan->arena, n * sizeof push->place[0]);
  if (push->number == NULL || push->place == NULL || push->in_place == NULL) return ax_out_of_memory(n * sizeof push->number[0]);
  for (uint32_t member = 0; member < n; member++) {
    int64_t device = ax_axes_device(&push->exchange->names, &e->plan->mesh, 0, member);
    push->number[e->sets[push->set].index[device]] = member;
    push->place[member] = e->sets[push->out_set].index[device];
    push->in_place[member] = e->sets[push->in_set].index[device];
  }
  return AX_OK;
}

static ax_status pair_members(ax_executable *e, ax_push *push) {
  uint32_t n = push->members;
  const ax_pairs *pairs = push->exchange->pairs;
  push->targets = ax_arena_alloc(&e->plan->arena, n * sizeof push->targets[0]);
  push->sources = ax_arena_alloc(&e->plan->arena, n * sizeof push->sources[0]);
  if (push->targets == NULL || push->sources == NULL) return ax_out_of_memory(n * sizeof push->targets[0]);
  memset(push->targets, 0xff, n * sizeof push->targets[0]);
  memset(push->sources, 0xff, n * sizeof push->sources[0]);
  for (uint32_t i = 0; i < pairs->count; i++) {
    push->targets[pairs->v[i][0]] = (uint32_t)pairs->v[i][1];
    push->sources[pairs->v[i][1]] = (uint32_t)pairs->v[i][0];
  }
  return AX_OK;
}

enum { least_late = 1 << 20 }; /* bytes of a group's contributions */

/* Large contributions that lie in arguments of the run, which nothing overwrites, need not be passed on one after another. */
static bool may_be_late(const ax_assembly *a, const ax_push *push) {
  const ax_exchange *x = push->exchange;
  uint32_t root = a->plan->buffers[x->in].root;
  int64_t bytes = ax_type_elems(&a->plan->buffers[x->in].type) * push->item;
  if (x->combine == AX_SCALAR_NONE || push->outer_rank > 0 || bytes * push->members < least_late) return false;
  if (a->plan->buffers[root].kind != AX_BUFFER_INPUT) return false;
  for (uint32_t i = 0; i < a->access_count; i++) {
    const ax_access *access = &a->accesses[i];
    if ((access->root == root && access->writes) || (access->exchange == x && access->region != 0)) return false;
  }
  return true;
}

static ax_status make_push(ax_assembly *a, const ax_exchange *exchange, ax_push **out) {
  ax_executable *e = a->executable;
  ax_push *push = *out = ax_arena_alloc(&a->plan->arena, sizeof *push);
  if (push == NULL) return ax_out_of_memory(sizeof *push);
  push->exchange = exchange;
  push->item = (int64_t)ax_dtype_bytes(a->plan->buffers[exchange->in].type.dtype);
  push->members = (uint32_t)ax_axis_set_size(exchange->axes, &a->plan->mesh);
  for (uint32_t i = 0; i < a->access_count; i++)
    if (a->accesses[i].exchange == exchange) push->event = a->accesses[i].event;
  AX_TRY(ax_set_of(e, exchange->axes, &push->set));
  AX_TRY(ax_set_of(e, a->plan->buffers[a->plan->buffers[exchange->out].root].axes, &push->out_set));
  AX_TRY(ax_set_of(e, a->plan->buffers[a->plan->buffers[exchange->in].root].axes, &push->in_set));
  find_run(push);
  push->late = may_be_late(a, push);
  AX_TRY(number_members(e, push));
  return exchange->peers == AX_PEERS_PAIRS ? pair_members(e, push) : AX_OK;
}

/* The push made for an exchange, made when first asked for. */
static ax_status push_of(ax_assembly *a, const ax_exchange *exchange, ax_push **out) {
  for (uint32_t i = 0; i < a->instr_count; i++)
    if (a->instrs[i].kind == AX_INSTR_PUSH && a->instrs[i].push != NULL && a->instrs[i].push->exchange == exchange) {
      *out = a->instrs[i].push;
      return AX_OK;
    }
  return make_push(a, exchange, out);
}

static ax_status make_pushes(ax_assembly *a) {
  for (uint32_t i = 0; i < a->instr_count; i++) {
    ax_instr *instr = &a->instrs[i];
    if (instr->kind != AX_INSTR_PUSH && instr->kind != AX_INSTR_CLEAR) continue;
    ax_push *push;
    AX_TRY(push_of(a, a->ops[i]->exchange, &push));
    const ax_buffer *out = &a->plan->buffers[push->exchange->out];
    instr->push = push;
    instr->bytes = ax_type_elems(&out->type) * (int64_t)ax_dtype_bytes(out->type.dtype);
  }
  return AX_OK;
}

/* --- Machine code --- */

static ax_kernel *combine_kernel(ax_plan *plan, const ax_push *push) {
  int64_t dims[] = {push->run};
  ax_dtype dtype = plan->buffers[push->exchange->out].type.dtype;
  ax_kernel *kernel = ax_kernel_create(&plan->arena, 1, 0, dims);
  ax_at at;
  if (kernel == NULL) return NULL;
  ax_at_identity(&at, 1);
  uint32_t dst = ax_kernel_slot(kernel, dtype, 1, dims), src = ax_kernel_slot(kernel, dtype, 1, dims);
  ax_ex sum = ax_kernel_op(kernel, push->exchange->combine, dtype, ax_kernel_load(kernel, dst, &at),
                           ax_kernel_load(kernel, src, &at), AX_NONE);
  ax_kernel_store(kernel, dst, &at, sum, AX_SCALAR_NONE);
  return kernel->failed ? NULL : kernel;
}

static ax_status compile_kernels(ax_assembly *a) {
  ax_plan *plan = a->plan;
  uint32_t count = 0;
  const ax_kernel **kernels = ax_arena_alloc(&plan->arena, a->instr_count * sizeof kernels[0]);
  ax_kernel_code *code = ax_arena_alloc(&plan->arena, a->instr_count * sizeof code[0]);
  if (kernels == NULL || code == NULL) return ax_out_of_memory(a->instr_count * sizeof code[0]);
  for (uint32_t i = 0; i < a->instr_count; i++) {
    const ax_instr *instr = &a->instrs[i];
    if (instr->kind == AX_INSTR_KERNEL) kernels[count++] = a->ops[i]->kernel.kernel;
    if (instr->kind != AX_INSTR_PUSH || instr->push->exchange->combine == AX_SCALAR_NONE) continue;
    if ((kernels[count++] = combine_kernel(plan, instr->push)) == NULL) return ax_out_of_memory(0);
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

/* --- Cost --- */

/* Rough nanoseconds on one thread and how many segments, from wait to wait, they are in; loops counted. Enough to tell
   microseconds from milliseconds. */
typedef struct cost {
  double time, segments;
} cost;

static cost block_cost(const ax_plan *plan, const ax_block *block);

static double own_time(const ax_plan *plan, const ax_op *op) {
  switch (op->kind) {
    case AX_OP_KERNEL: {
      const ax_kernel *kernel = op->kernel.kernel;
      return 20 + (double)ax_dims_elems(kernel->rank, kernel->dims) * 0.05 * kernel->expr_count;
    }
    case AX_OP_GEMM:
      return 200 + 0.02 * (double)op->gemm.m * (double)op->gemm.n * (double)op->gemm.k *
                       (double)ax_dims_elems(op->gemm.batch_rank, op->gemm.batch);
    case AX_OP_EVAL: return 1000;
    case AX_OP_START: return 30 + 0.2 * (double)ax_type_elems(&plan->buffers[op->exchange->in].type);
    default: return 0;
  }
}

static cost op_cost(const ax_plan *plan, const ax_op *op) {
  double times = (double)ax_axis_set_size(op->axes, &plan->mesh);
  if (op->kind == AX_OP_BRANCH) return block_cost(plan, &op->branch.blocks[0]);
  if (op->kind != AX_OP_LOOP) return (cost){times * own_time(plan, op), op->kind == AX_OP_START ? times : 0};
  double trips = op->loop.trips < 0 ? 10 : (double)op->loop.trips;
  cost test = block_cost(plan, &op->loop.test), body = block_cost(plan, &op->loop.body);
  return (cost){trips * (test.time + body.time), trips * (test.segments + body.segments)};
}

static cost block_cost(const ax_plan *plan, const ax_block *block) {
  cost sum = {0, 0};
  for (uint32_t i = 0; i < block->count; i++) {
    cost one = op_cost(plan, &block->ops[i]);
    sum.time += one.time;
    sum.segments += one.segments;
  }
  return sum;
}

/* Waking a thread takes some microseconds, and passing a frame from one to another about one. */
static bool worth_threads(const ax_executable *e) {
  cost whole = block_cost(e->plan, &e->plan->block);
  return whole.time > 30000 && whole.time / (whole.segments + e->devices) > 2000;
}

/* --- Assembling --- */

static ax_status number_events(ax_assembly *a) {
  ax_executable *e = a->executable;
  e->events = ax_arena_copy(&a->plan->arena, a->events, a->event_count * sizeof a->events[0]);
  if (e->events == NULL) return ax_out_of_memory(a->event_count * sizeof a->events[0]);
  e->event_count = a->event_count;
  for (uint32_t i = 0; i < e->event_count; i++) {
    ax_event *event = &e->events[i];
    AX_TRY(ax_set_of(e, event->axes, &event->set));
    event->groups = e->sets[event->set].size;
    event->first = e->counter_count;
    e->counter_count += event->groups;
  }
  return AX_OK;
}

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

/* What instructions need of their events, at hand. */
static void resolve_counters(ax_assembly *a) {
  const ax_executable *e = a->executable;
  for (uint32_t i = 0; i < a->instr_count; i++) {
    ax_instr *instr = &a->instrs[i];
    if (instr->kind == AX_INSTR_WAIT || instr->kind == AX_INSTR_SIGNAL) {
      instr->sync.first = e->events[instr->sync.event].first;
      instr->sync.index = e->sets[e->events[instr->sync.event].set].index;
    } else if (instr->kind == AX_INSTR_PUSH) {
      instr->push->first = e->events[instr->push->event].first;
      instr->push->index = e->sets[e->events[instr->push->event].set].index;
    }
  }
}

static ax_status assemble_into(ax_assembly *a) {
  ax_executable *e = a->executable;
  AX_TRY(ax_flatten(a));
  AX_TRY(ax_synchronise(a));
  AX_TRY(ax_place_memory(a));
  AX_TRY(number_events(a));
  AX_TRY(make_pushes(a));
  AX_TRY(compile_kernels(a));
  resolve_counters(a);
  mark_scratch(a);
  for (uint32_t i = 0; i < a->instr_count; i++) e->splits = e->splits || a->instrs[i].parts > 1;
  e->instrs = a->instrs;
  e->instr_count = a->instr_count;
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
  return status;
}

static ax_status build(ax_executable *e, ax_program *program, const ax_compile_options *options) {
  const int64_t most = e->runtime->options.max_devices;
  AX_TRY(options->reference ? ax_plan_create_reference(program, &e->plan) : ax_plan_create(program, &e->plan));
  ax_plan *plan = e->plan;
  if (ax_mesh_devices(&plan->mesh) > most)
    return ax_error(AX_INVALID_ARGUMENT, "the mesh has %lld devices, more than the %lld there are",
                    (long long)ax_mesh_devices(&plan->mesh), (long long)most);
  e->devices = (uint32_t)ax_mesh_devices(&plan->mesh);
  e->results = ax_arena_alloc(&plan->arena, plan->out_count * sizeof e->results[0]);
  e->donate = ax_arena_alloc(&plan->arena, plan->in_count);
  e->wanted = ax_arena_alloc(&plan->arena, plan->in_count * sizeof e->wanted[0]);
  if (e->results == NULL || e->donate == NULL || e->wanted == NULL) return ax_out_of_memory(0);
  if (options->donate != NULL) memcpy(e->donate, options->donate, plan->in_count);
  AX_TRY(make_results_storable(plan));
  AX_TRY(describe_arguments(e));
  AX_TRY(ax_plan_optimise(plan));
  AX_TRY(ax_coalesce(plan, e->donate));
  e->threaded = worth_threads(e);
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
  ax_free(e->constants);
  pthread_mutex_destroy(&e->lock);
  ax_runtime_release(e->runtime);
  ax_free(e);
}

static bool same_options(const ax_executable *e, const ax_compile_options *options) {
  if (e->plan->reference != options->reference) return false;
  for (uint32_t i = 0; i < e->plan->in_count; i++)
    if (e->donate[i] != (options->donate != NULL && options->donate[i])) return false;
  return true;
}

static ax_executable *find_cached(ax_runtime *runtime, const ax_program *program, const ax_compile_options *options) {
  ax_executable *found = NULL;
  pthread_mutex_lock(&runtime->lock);
  for (ax_executable *e = runtime->cache; e != NULL && found == NULL; e = e->next_cached)
    if (ax_program_equal(e->plan->program, program) && same_options(e, options)) {
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
  e->runtime = ax_runtime_retain(runtime);
  ax_status status = build(e, program, options);
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

/* --- Text --- */

static const char *const instr_names[] = {
    [AX_INSTR_KERNEL] = "kernel", [AX_INSTR_GEMM] = "gemm",   [AX_INSTR_EVAL] = "eval",     [AX_INSTR_PUSH] = "push",
    [AX_INSTR_CLEAR] = "clear",   [AX_INSTR_WAIT] = "wait",   [AX_INSTR_SIGNAL] = "signal", [AX_INSTR_LOOP] = "loop",
    [AX_INSTR_ENTER] = "enter",   [AX_INSTR_NEXT] = "next",   [AX_INSTR_TEST] = "test",     [AX_INSTR_BRANCH] = "branch",
    [AX_INSTR_JUMP] = "jump",     [AX_INSTR_END] = "end"};

static void instr_text(ax_text *text, const ax_executable *e, uint32_t i) {
  const ax_instr *instr = &e->instrs[i];
  ax_text_add(text, "%4u %-7s", i, instr_names[instr->kind]);
  ax_axis_set on = ax_all_axes(&e->plan->mesh) & ~instr->skip;
  ax_text_add(text, " on %s", ax_axis_set_string(on, &e->plan->mesh));
  if (instr->kind == AX_INSTR_WAIT || instr->kind == AX_INSTR_SIGNAL)
    ax_text_add(text, " event %u region %u%+lld times %lld%s", instr->sync.event, instr->sync.region,
                (long long)instr->sync.delta, (long long)instr->sync.times, instr->sync.hard ? " hard" : "");
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
  for (uint32_t i = 0; i < e->instr_count; i++) instr_text(&text, e, i);
  return ax_text_finish(&text, out);
}
