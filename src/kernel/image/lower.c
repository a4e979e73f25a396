/* kernel_call's lower rule: gives each operand and result the buffer that a device's cores use, and adds the steps of the kernel
   (plan/cores.h).

     operand, only read              its buffer
     operand, an alias               the result's buffer, into which the operand is copied; passes elide the copy where they can
     operand, written, no alias      a copy of it
     result                          a new buffer, not initialised */
#include <string.h>

#include "collectives/collective.h"
#include "kernel/beside.h"
#include "kernel/choice.h"
#include "kernel/image/image.h"
#include "kernel/image/run.h"
#include "kernel/kernel_call.h"
#include "plan/lower.h"
#include "plan/lowering.h"
#include "plan/plan.h"
#include "prim/prims.h"
#include "xform/evaluate.h"

static void release(void *kernel) { ax_image_release(kernel); }

static const ax_cores_rules rules = {.release = release,
                                     .enter = ax_image_enter,
                                     .run = ax_image_run,
                                     .take = ax_image_take,
                                     .closed = ax_image_closed,
                                     .report = ax_image_report};

typedef struct work {
  ax_lower *lower;
  const ax_eqn *eqn;
  const ax_kernel_params *params;
  ax_axis_set axes; /* that its devices differ along */
  bool crosses;     /* its groups have devices of several processes */
  ax_cores cores;
  ax_image_memory memory;
  ax_type *types;   /* of operands */
  bool *written;    /* of them without consts: whether a body writes it */
} work;

static uint32_t list_read(work *w, uint32_t buffer) {
  for (uint32_t i = 0; i < w->cores.in_count; i++)
    if (w->cores.buffers[i] == buffer) return i;
  w->cores.buffers[w->cores.in_count] = buffer;
  return w->cores.in_count++;
}

static uint32_t list_written(work *w, uint32_t buffer) {
  w->cores.buffers[w->cores.in_count + w->cores.out_count] = buffer;
  return w->cores.in_count + w->cores.out_count++;
}

static ax_status list_operands(work *w, const uint32_t *in) {
  uint32_t consts = (uint32_t)w->params->consts;
  for (uint32_t i = 0; i < w->eqn->in_count; i++)
    if (i < consts || (!w->written[i - consts] && ax_alias_of_operand(w->params, i - consts) == AX_NONE)) w->memory.of_operand[i] = list_read(w, in[i]);
  return AX_OK;
}

/* Fresh ones first. */
static ax_status list_results(work *w, const uint32_t *in, uint32_t *out) {
  uint32_t consts = (uint32_t)w->params->consts;
  ax_plan *plan = w->lower->plan;
  for (uint32_t k = 0; k < w->eqn->out_count; k++) {
    AX_TRY(ax_lower_result(w->lower, w->eqn, k, &out[k]));
    plan->buffers[out[k]].axes = w->axes;
    if (ax_alias_of_result(w->params, k) == AX_NONE) w->memory.of_result[k] = list_written(w, out[k]);
  }
  w->cores.fresh_count = w->cores.out_count;
  for (uint32_t i = consts; i < w->eqn->in_count; i++) {
    uint32_t copy;
    const uint32_t result = ax_alias_of_operand(w->params, i - consts);
    const bool alias = result != AX_NONE;
    if (!alias && !w->written[i - consts]) continue;
    if (alias) copy = out[result];
    else AX_TRY(ax_lower_buffer(w->lower, &w->lower->program->types[w->eqn->in[i]], w->axes, &copy));
    AX_TRY(ax_lower_copy(w->lower, copy, in[i]));
    w->memory.of_operand[i] = list_written(w, copy);
    if (alias) w->memory.of_result[result] = w->memory.of_operand[i];
  }
  w->memory.count = w->cores.in_count + w->cores.out_count;
  return AX_OK;
}

static ax_status byte_buffer(work *w, int64_t count, uint32_t *out) {
  const ax_type type = ax_array_type(AX_U8, AX_LIST(1, &count));
  return ax_lower_buffer(w->lower, &type, w->axes, out);
}

/* A byte of each member's goes to all: whoever reads them knows that all have come so far. */
static ax_status meet(work *w, uint32_t mine, uint32_t all) {
  ax_exchange exchange = {.names = w->cores.names, .peers = AX_PEERS_ONE, .in = mine, .out = all, .dst_step = 1};
  ax_exchange_whole(&exchange, 1);
  return ax_lower_exchange(w->lower, &exchange);
}

static ax_status lower_steps(work *w, ax_cores *cores, int64_t members) {
  if (members == 1) return ax_lower_cores(w->lower, cores, AX_CORES_RUN);
  AX_TRY(byte_buffer(w, 1, &cores->came));
  AX_TRY(byte_buffer(w, members, &cores->all_came));
  AX_TRY(byte_buffer(w, 1, &cores->done));
  AX_TRY(byte_buffer(w, members, &cores->all_done));
  AX_TRY(ax_lower_cores(w->lower, cores, AX_CORES_ENTER));
  AX_TRY(meet(w, cores->came, cores->all_came));
  AX_TRY(ax_lower_cores(w->lower, cores, AX_CORES_RUN));
  AX_TRY(meet(w, cores->done, cores->all_done));
  return ax_lower_cores(w->lower, cores, AX_CORES_LEAVE);
}

/* Says that some devices which run it together along these axes are of different processes. */
static bool crosses(const work *w) {
  const ax_process_map *map = w->lower->plan->options.map;
  for (uint32_t d = 0; map != NULL && w->cores.names.count > 0 && d < map->devices; d++)
    if (map->of[d] != map->of[ax_axes_device(&w->cores.names, &w->lower->plan->mesh, d, 0)]) return true;
  return false;
}

/* Along which axes devices run it together, and differ. Devices of several processes run it each for itself, also along axes where
   they do the same: then a core is on one device, and what is sent to it goes to one process. */
static ax_status find_axes(work *w) {
  ax_lower *lower = w->lower;
  const ax_mesh *mesh = &lower->plan->mesh;
  ax_axis_set set = ax_kernel_exchanges(w->params);
  for (uint32_t a = 0; a < lower->program->axes.count; a++) {
    if ((set >> a & 1) == 0) continue;
    memcpy(w->cores.names.name[w->cores.names.count++], lower->program->axes.axis[a].name, sizeof w->cores.names.name[0]);
  }
  AX_TRY(ax_axes_resolve(&w->cores.names, mesh, &w->cores.axes));
  w->crosses = crosses(w);
  w->axes = w->cores.axes | ax_kernel_named(w->params) | lower->diverging;
  if (w->crosses) w->axes = ax_all_axes(mesh);
  for (uint32_t i = 0; i < w->eqn->in_count; i++) w->axes |= lower->differs[w->eqn->in[i]];
  for (uint32_t k = 0; k < w->eqn->out_count; k++) w->axes |= lower->differs[w->eqn->out + k];
  return AX_OK;
}

static ax_status make_lists(work *w) {
  ax_arena *arena = &w->lower->plan->arena;
  uint32_t in_count = w->eqn->in_count, out_count = w->eqn->out_count;
  w->cores.buffers = ax_arena_alloc(arena, (2 * in_count + out_count + 1) * sizeof w->cores.buffers[0]);
  w->memory.of_operand = ax_arena_alloc(arena, (in_count + 1) * sizeof w->memory.of_operand[0]);
  w->memory.of_result = ax_arena_alloc(arena, (out_count + 1) * sizeof w->memory.of_result[0]);
  w->written = ax_arena_alloc(arena, (in_count + 1) * sizeof w->written[0]);
  w->types = ax_arena_alloc(arena, (in_count + 1) * sizeof w->types[0]);
  bool made = w->types != NULL && w->cores.buffers != NULL && w->memory.of_operand != NULL && w->memory.of_result != NULL &&
              w->written != NULL;
  for (uint32_t i = 0; i < in_count && made; i++) w->types[i] = w->lower->program->types[w->eqn->in[i]];
  return made ? AX_OK : ax_out_of_memory((in_count + out_count) * sizeof w->cores.buffers[0]);
}

/* The texts of the bodies, to whoever reads what programs print. */
static ax_status tell(const ax_plan *plan, const ax_kernel_params *params) {
  const ax_hooks *hooks = plan->options.hooks;
  if (!params->debug || hooks == NULL || hooks->print == NULL) return AX_OK;
  for (uint32_t b = 0; b < params->bodies.count; b++) {
    char *body;
    ax_text text = {0};
    AX_TRY(ax_program_print(params->bodies.v[b], &body));
    ax_text_add(&text, "kernel \"%s\" on %s:\n%s", params->name, params->cores.name[b], body);
    ax_free(body);
    if (!text.failed) hooks->print(text.data, hooks->print_context);
    ax_status status = text.failed ? ax_out_of_memory(0) : AX_OK;
    ax_text_deinit(&text);
    AX_TRY(status);
  }
  return AX_OK;
}

/* --- As a plain program --- */

/* Whether all blocks are there that index maps choose is known where they read no table. */
static ax_status look_now(const work *w, const ax_beside *beside, ax_regular *found) {
  ax_tensor *right = NULL;
  ax_program *choice;
  if (!ax_choice_is_known(w->params, beside)) return AX_OK;
  AX_TRY(ax_choice_trace(w->params, w->types, w->eqn->in_count, beside, NULL, &choice));
  ax_status status = ax_evaluate(choice, NULL, &right);
  if (status == AX_OK) *found = ((const int32_t *)right->data)[0] != 0 ? AX_REGULAR_ALWAYS : AX_REGULAR_NEVER;
  ax_tensor_release(right);
  ax_program_release(choice);
  return status;
}

/* The maps, and what they call, say nothing of the axes of devices. */
static ax_status trace_choice(const work *w, const ax_beside *beside, ax_program **choice) {
  ax_mesh axes = w->params->bodies.v[0]->axes;
  axes.count -= (uint32_t)w->params->core_axes.v[0];
  ax_type *types = ax_arena_alloc(&w->lower->plan->arena, (w->eqn->in_count + (size_t)1) * sizeof types[0]);
  if (types == NULL) return ax_out_of_memory(w->eqn->in_count * sizeof types[0]);
  for (uint32_t i = 0; i < w->eqn->in_count; i++) {
    types[i] = w->types[i];
    types[i].spread = (ax_spread){0};
  }
  return ax_choice_trace(w->params, types, w->eqn->in_count, beside, &axes, choice);
}

/* Where a run cannot tell the difference, the plain program runs: its loops are compiled whole, and points that need nothing of one
   another are one batch, cut for all threads, as is a large product of a point. A step costs 10 to 100 ns there, and some 500 here, which
   large blocks do not notice; these lie still here, and are copied there. choice: what a run must find for that; NULL: nothing. The caller's. */
static ax_status find_plain(const work *w, ax_regular *found, ax_program **choice) {
  const uint32_t consts = (uint32_t)w->params->consts, operands = w->eqn->in_count - consts;
  enum { small_bytes = 256 << 10, large_product = 4 << 20 /* multiplications: 80 us of one thread */ };
  const ax_plan_options *options = &w->lower->plan->options;
  ax_beside beside;
  *found = AX_REGULAR_NEVER;
  if (options->reference || options->runtime == NULL) return AX_OK;
  ax_status status = ax_beside_find(w->params, w->types + consts, operands, &beside);
  if (status == AX_OK && !beside.copies_more && (beside.count > 0 || beside.bytes < small_bytes || beside.product >= large_product))
    *found = ax_kernel_is_regular(w->params, w->types + consts, operands, &beside);
  if (*found == AX_REGULAR_SOMETIMES && !ax_choice_fits(w->params)) *found = AX_REGULAR_NEVER;
  if (*found == AX_REGULAR_TRIED && options->check != 0) *found = AX_REGULAR_NEVER; /* a trial may make numbers that no run makes */
  if (*found == AX_REGULAR_SOMETIMES) status = look_now(w, &beside, found);
  if (status == AX_OK && *found == AX_REGULAR_SOMETIMES) {
    status = trace_choice(w, &beside, choice);
  }
  ax_beside_deinit(&beside);
  return status;
}

static ax_status lower_steps_of(work *w, const uint32_t *in, uint32_t *out) {
  ax_plan *plan = w->lower->plan;
  ax_image *image;
  ax_cores *cores;
  AX_TRY(find_axes(w));
  AX_TRY(ax_image_written(w->eqn, w->types, &plan->mesh, w->written));
  AX_TRY(list_operands(w, in));
  AX_TRY(list_results(w, in, out));
  AX_TRY(ax_image_create(w->eqn, w->types, &plan->mesh, &w->cores.names, w->crosses, &w->memory, plan->options.hooks,
                         plan->options.reference ? NULL : plan->options.runtime, &image));
  const int64_t members = ax_axis_set_size(w->cores.axes, &plan->mesh), bytes = (int64_t)image->bytes;
  w->cores.kernel = image;
  w->cores.core_count = image->machine->core_count;
  w->cores.one_thread = image->one_thread;
  w->cores.time = ax_image_time(image);
  AX_TRY(ax_plan_keep_cores(plan, &w->cores, &cores));
  AX_TRY(byte_buffer(w, bytes, &cores->state));
  return lower_steps(w, cores, members);
}

static ax_status copy_results(const work *w, const uint32_t *from, const uint32_t *to) {
  for (uint32_t k = 0; k < w->eqn->out_count; k++) AX_TRY(ax_lower_copy(w->lower, to[k], from[k]));
  return AX_OK;
}

/* A run looks at the blocks that its tables choose, and takes the plain program, or goes step by step. */
static ax_status lower_choice(work *w, ax_program *choice, const uint32_t *in, uint32_t *out) {
  ax_lower *lower = w->lower;
  uint32_t right;
  ax_block *outer;
  uint32_t *results = ax_arena_alloc(&lower->plan->arena, (w->eqn->out_count + 1) * sizeof results[0]);
  if (results == NULL) return ax_out_of_memory(w->eqn->out_count * sizeof results[0]);
  AX_TRY(ax_lower_call(lower, choice, in, &right));
  for (uint32_t k = 0; k < w->eqn->out_count; k++) AX_TRY(ax_lower_result(lower, w->eqn, k, &out[k]));
  AX_TRY(ax_lower_branch_begin(lower, right, 2, ax_lower_get(lower, right)->axes, &outer));
  ax_lower_branch_case(lower, outer, 0);
  AX_TRY(lower_steps_of(w, in, results));
  AX_TRY(copy_results(w, results, out));
  ax_lower_branch_case(lower, outer, 1);
  AX_TRY(ax_kernel_call_lower_plain(lower, w->eqn, AX_PLAIN_FAST, in, results));
  AX_TRY(copy_results(w, results, out));
  ax_lower_branch_end(lower, outer);
  return AX_OK;
}

/* Result k in memory of its own, which may be written again. */
static ax_status take_over(const work *w, uint32_t k, const uint32_t *results, uint32_t *out) {
  const ax_buffer *made = ax_lower_get(w->lower, results[k]), *memory = ax_lower_get(w->lower, made->allocation);
  const ax_axis_set axes = w->lower->differs[w->eqn->out + k] | w->lower->diverging;
  bool own = memory->kind == AX_BUFFER_TEMP && made->axes == axes && memory->axes == axes && made->offset == 0 &&
             made->loop == AX_NONE && ax_buffer_bytes(made) == ax_buffer_bytes(memory);
  for (uint32_t other = 0; other <= w->eqn->out_count; other++)
    own = own && (other == k || ax_lower_get(w->lower, results[other])->allocation != made->allocation);
  *out = results[k];
  if (own) return AX_OK;
  AX_TRY(ax_lower_result(w->lower, w->eqn, k, out));
  return ax_lower_copy(w->lower, *out, results[k]);
}

/* The plain program runs and says whether it was right. If not, the kernel goes step by step, and says what is wrong where it is. */
static ax_status lower_trial(work *w, const uint32_t *in, uint32_t *out) {
  ax_lower *lower = w->lower;
  const uint32_t count = w->eqn->out_count;
  ax_block *outer;
  uint32_t *results = ax_arena_alloc(&lower->plan->arena, (count + 1) * sizeof results[0]);
  if (results == NULL) return ax_out_of_memory(count * sizeof results[0]);
  AX_TRY(ax_kernel_call_lower_plain(lower, w->eqn, AX_PLAIN_CHECKED, in, results));
  const uint32_t right = results[count];
  for (uint32_t k = 0; k < count; k++) AX_TRY(take_over(w, k, results, &out[k]));
  AX_TRY(ax_lower_branch_begin(lower, right, 2, ax_lower_get(lower, right)->axes, &outer));
  ax_lower_branch_case(lower, outer, 0);
  AX_TRY(lower_steps_of(w, in, results));
  AX_TRY(copy_results(w, results, out));
  ax_lower_branch_end(lower, outer);
  return AX_OK;
}

ax_status ax_kernel_call_lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  work w = {.lower = lower,
            .eqn = eqn,
            .params = eqn->params,
            .cores = {.rules = &rules, .came = AX_NONE, .all_came = AX_NONE, .done = AX_NONE, .all_done = AX_NONE}};
  ax_program *choice = NULL;
  ax_regular found;
  AX_TRY(tell(lower->plan, w.params));
  if (w.params->interpret) return ax_kernel_call_lower_plain(lower, eqn, AX_PLAIN_IN_ORDER, in, out);
  AX_TRY(make_lists(&w));
  AX_TRY(find_plain(&w, &found, &choice));
  ax_status status = AX_ABSENT; /* also of a body that turns out to be no plain program */
  if (found == AX_REGULAR_ALWAYS) status = ax_kernel_call_lower_plain(lower, eqn, AX_PLAIN_FAST, in, out);
  if (found == AX_REGULAR_TRIED) status = lower_trial(&w, in, out);
  if (found != AX_REGULAR_SOMETIMES) return status == AX_ABSENT ? lower_steps_of(&w, in, out) : status;
  AX_TRY(ax_plan_keep(lower->plan, choice));
  return lower_choice(&w, choice, in, out);
}
