#include "planner/step.h"

#include <stdio.h>
#include <string.h>

#include "axle/nn.h"
#include "axle/transform.h"
#include "control/scan.h"
#include "partition/partition.h"
#include "planner/roles.h"
#include "planner/sliced.h"
#include "prim/prims.h"
#include "xform/xform.h"

/* --- What is what --- */

/* A parameter: a float that is more than one number. Behind the last of them stands the batch. */
uint32_t ax_model_first_of_batch(const ax_program *program) {
  uint32_t first = program->in_count;
  while (first > 0 && !(ax_is_differentiable(program->types[first - 1].dtype) && ax_type_elems(&program->types[first - 1]) > 1)) first--;
  return first < program->in_count ? first : program->in_count - 1;
}

const char *ax_model_input_name(const ax_model *m, uint32_t input, char number[static 16]) {
  if (m->input_names != NULL) return m->input_names[input];
  snprintf(number, 16, "%u", input);
  return number;
}

static ax_status find_inputs(ax_model *m, const ax_planner_options *o) {
  const ax_program *program = m->program;
  const uint32_t count = program->in_count;
  bool *batch = ax_calloc((size_t)count + 1, sizeof batch[0]);
  m->params = ax_calloc((size_t)count + 1, sizeof m->params[0]);
  m->batch = ax_calloc((size_t)count + 1, sizeof m->batch[0]);
  ax_status status = batch != NULL && m->params != NULL && m->batch != NULL ? AX_OK : ax_out_of_memory(count);
  const bool said = o->batch.count > 0;
  if (status == AX_OK && m->train && said) status = ax_args_mask(o->batch, "the batch's input", count, batch);
  for (uint32_t i = 0; status == AX_OK && i < count; i++) {
    if (m->train && !said) batch[i] = i >= ax_model_first_of_batch(program);
    if (batch[i]) m->batch[m->batch_count++] = i;
    else m->params[m->param_count++] = i;
  }
  ax_free(batch);
  for (uint32_t i = 0; status == AX_OK && m->train && i < m->param_count; i++)
    if (!ax_is_differentiable(program->types[m->params[i]].dtype))
      status = ax_error(AX_INVALID_ARGUMENT, "planner: input %s is %s, which cannot be trained: say which inputs are the batch",
                        ax_model_input_name(m, m->params[i], (char[16]){0}), ax_type_string(&program->types[m->params[i]], &program->axes));
  if (status == AX_OK && m->train && m->param_count == 0) status = ax_error(AX_INVALID_ARGUMENT, "planner: the loss has no parameters");
  return status;
}

/* The loop at the top of the program with the most operations. */
static ax_status find_loop(ax_model *m) {
  double most = 0;
  m->loop = AX_NONE;
  for (uint32_t e = 0; e < m->program->eqn_count; e++) {
    const ax_eqn *eqn = &m->program->eqns[e];
    const ax_scan_params *scan = eqn->params;
    double flops = 0;
    if (eqn->prim != &ax_prim_scan || scan->length < 2) continue;
    for (uint32_t i = 0; i < scan->body->eqn_count; i++) {
      double more;
      AX_TRY(ax_equation_flops(scan->body, &scan->body->eqns[i], &more));
      flops += more;
    }
    if (flops * (double)scan->length <= most) continue;
    most = flops * (double)scan->length;
    m->loop = e;
    m->layers = scan->length;
  }
  return AX_OK;
}

ax_type ax_model_param(const ax_model *m, uint32_t p, int64_t layers) {
  ax_type type = m->program->types[m->params[p]];
  if (m->layered[p]) type.dims[0] = layers;
  return type;
}

ax_status ax_model_def(const ax_model *m, const bool *used, int64_t layers, ax_treedef **out) {
  const size_t most = m->param_count;
  char(*names)[16] = ax_calloc(most + 1, sizeof names[0]);
  const char **list = ax_calloc(most + 1, sizeof list[0]);
  ax_type *types = ax_calloc(most + 1, sizeof types[0]);
  ax_status status = names != NULL && list != NULL && types != NULL ? AX_OK : ax_out_of_memory(most);
  uint32_t n = 0;
  for (uint32_t p = 0; status == AX_OK && p < most; p++) {
    if (used != NULL && !used[p]) continue;
    snprintf(names[n], sizeof names[n], "p%u", p);
    list[n] = names[n];
    types[n++] = ax_model_param(m, p, layers);
  }
  if (status == AX_OK) status = (ax_treedef_create)(n, list, n, types, 0, NULL, out);
  ax_free(names);
  ax_free(list);
  ax_free(types);
  return status;
}

static ax_status make_defs(ax_model *m) {
  AX_TRY(ax_model_def(m, NULL, m->layers, &m->param_def));
  AX_TRY(ax_optimizer_state(&m->optimizer, m->param_def, &m->state_def));
  m->state_count = ax_treedef_count(m->state_def);
  return AX_OK;
}

ax_status ax_model_make(const ax_program *program, const ax_planner_options *options, ax_model *out) {
  *out = (ax_model){.train = options->train, .input_names = options->input_names, .samples = options->samples > 0 ? options->samples : 1, .loop = AX_NONE};
  if (program->axes.count > 0)
    return ax_error(AX_INVALID_ARGUMENT, "planner: a program of one device, as it begins with axes: it is to be one on whole arrays");
  if (program->in_count == 0) return ax_error(AX_INVALID_ARGUMENT, "planner: the program has no inputs");
  if (out->train) AX_TRY(ax_program_slice_loops(program, &out->program));
  else out->program = ax_program_retain((ax_program *)(uintptr_t)program);
  out->optimizer = options->optimizer != NULL ? *options->optimizer : ax_adam(ax_constant_schedule(1e-4));
  if (out->train) AX_TRY(ax_check_loss(program));
  AX_TRY(find_inputs(out, options));
  AX_TRY(find_loop(out));
  AX_TRY(ax_model_find_roles(out, NULL));
  return out->train ? make_defs(out) : AX_OK;
}

void ax_model_deinit(ax_model *m) {
  ax_program_release(m->program);
  ax_free(m->params);
  ax_free(m->batch);
  ax_free(m->layered);
  ax_free(m->experts);
  ax_treedef_release(m->param_def);
  ax_treedef_release(m->state_def);
  *m = (ax_model){0};
}

uint32_t ax_model_state_of(const ax_model *m, uint32_t leaf) {
  const char *name = strrchr(ax_treedef_name(m->state_def, leaf), '/');
  const int64_t found = name != NULL ? ax_treedef_find(m->param_def, "%s", name + 1) : -1;
  if (found < 0) return AX_NONE;
  const ax_type *mine = ax_treedef_type(m->state_def, leaf), *param = ax_treedef_type(m->param_def, (uint32_t)found);
  return ax_same_shape(mine, param) ? (uint32_t)found : AX_NONE;
}

/* --- The loss, with its checkpoints --- */

typedef struct stepping {
  const ax_model *model;
  int64_t microbatches;
  ax_checkpoint_policy saved;
} stepping;

typedef struct called {
  const ax_program *program;
  const ax_value *consts; /* of the trace around; its first inputs */
  uint32_t const_count;
  ax_checkpoint_policy saved;
} called;

static ax_checkpoint_options options_of(ax_checkpoint_policy saved) {
  return (ax_checkpoint_options){.save_everything = saved == AX_SAVE_EVERYTHING, .save_unbatched_dots = saved == AX_SAVE_DOTS};
}

static AX_BODY(call_program) {
  const called *c = context;
  ax_value *all = ax_trace_alloc(c->program->in_count * sizeof all[0]);
  for (uint32_t i = 0; all != NULL && i < c->program->in_count; i++) all[i] = i < c->const_count ? c->consts[i] : in[i - c->const_count];
  if (all != NULL) (ax_call)(c->program, c->program->in_count, all, c->program->out_count, out);
}

static AX_BODY(call_checkpointed) {
  const called *c = context;
  const uint32_t in_count = c->program->in_count - c->const_count;
  const ax_checkpoint_options options = options_of(c->saved);
  (ax_checkpoint)(AX_CLOSURE(call_program, in_count, c->program->out_count, context), in_count, in, c->program->out_count, out, &options);
}

void ax_loop_again(const ax_eqn *eqn, const ax_value *in, int64_t length, ax_checkpoint_policy saved, ax_value *out) {
  const ax_scan_params *scan = eqn->params;
  const uint32_t consts = (uint32_t)scan->num_consts;
  called body = {scan->body, in, consts, saved};
  const ax_function function = saved == AX_SAVE_EVERYTHING ? call_program : call_checkpointed;
  (ax_scan)(AX_CLOSURE(function, scan->body->in_count - consts, scan->body->out_count, &body), (uint32_t)scan->num_carry, length,
            scan->reverse, eqn->in_count - consts, in + consts, eqn->out_count, out);
}

static AX_BODY(loss_of_sample) {
  const stepping *s = context;
  const ax_program *loss = s->model->program;
  ax_program_walk walk;
  if (s->saved == AX_SAVE_EVERYTHING || s->model->loop == AX_NONE) {
    called all = {.program = loss, .saved = s->saved};
    (s->saved == AX_SAVE_EVERYTHING ? call_program : call_checkpointed)(in, out, &all);
    return;
  }
  if (ax_walk_init(&walk, loss)) {
    for (uint32_t i = 0; i < loss->in_count; i++) walk.value[i] = in[i];
    for (uint32_t e = 0; e < loss->eqn_count && !ax_failed(); e++) {
      const ax_eqn *eqn = &loss->eqns[e];
      if (e == s->model->loop) ax_loop_again(eqn, ax_walk_operands(&walk, eqn), s->model->layers, s->saved, walk.value + eqn->out);
      else ax_walk_replay(&walk, eqn);
    }
    for (uint32_t k = 0; k < loss->out_count; k++) out[k] = walk.value[loss->outs[k]];
  }
  ax_walk_deinit(&walk);
}

/* --- The mean over samples, and its gradient; operands: parameters, then the batch --- */

/* The operands of the loss, whose order is another. */
static AX_BODY(loss_in_order) {
  const stepping *s = context;
  const ax_model *m = s->model;
  ax_value *all = ax_trace_alloc((m->program->in_count + m->program->out_count) * sizeof all[0]);
  if (all == NULL) return;
  for (uint32_t p = 0; p < m->param_count; p++) all[m->params[p]] = in[p];
  for (uint32_t b = 0; b < m->batch_count; b++) all[m->batch[b]] = in[m->param_count + b];
  loss_of_sample(all, all + m->program->in_count, context);
  out[0] = all[m->program->in_count];
}

static AX_BODY(mean_loss) {
  const stepping *s = context;
  const ax_model *m = s->model;
  const uint32_t count = m->param_count + m->batch_count;
  int64_t *mapped = ax_trace_alloc(count * sizeof mapped[0]);
  ax_value losses;
  if (mapped == NULL) return;
  for (uint32_t i = 0; i < count; i++) mapped[i] = i < m->param_count ? AX_NOT_MAPPED : 0;
  const ax_vmap_options options = {.in_axes = {AX_LIST(count, mapped)}};
  (ax_vmap)(AX_CLOSURE(loss_in_order, count, 1, context), count, in, 1, &losses, &options);
  out[0] = ax_reduce_mean(losses, AX_ALL_DIMS, false);
}

/* -> loss, gradients */
static void value_and_gradients(const stepping *s, const ax_value *in, ax_value *out) {
  const uint32_t count = s->model->param_count + s->model->batch_count;
  (ax_value_and_grad)(AX_CLOSURE(mean_loss, count, 1, (void *)s), AX_FIRST(s->model->param_count), count, in,
                      1 + s->model->param_count, out);
}

typedef struct round { /* over microbatches */
  const stepping *s;
  const ax_value *params;
} microbatch;

/* loss and gradients so far, slices of the batch -> the same with this microbatch's */
static AX_BODY(add_microbatch) {
  const microbatch *r = context;
  const ax_model *m = r->s->model;
  const uint32_t sums = 1 + m->param_count;
  ax_value *all = ax_trace_alloc((sums + m->param_count + m->batch_count) * sizeof all[0]), *made = all + m->param_count + m->batch_count;
  if (all == NULL) return;
  for (uint32_t p = 0; p < m->param_count; p++) all[p] = r->params[p];
  for (uint32_t b = 0; b < m->batch_count; b++) all[m->param_count + b] = in[sums + b];
  value_and_gradients(r->s, all, made);
  for (uint32_t k = 0; k < sums; k++) out[k] = ax_add(in[k], made[k]);
}

/* [samples, ..] -> [microbatches, samples a microbatch, ..] */
static ax_value in_microbatches(ax_value x, int64_t microbatches) {
  const ax_type type = ax_typeof(x);
  int64_t dims[AX_MAX_RANK + 1], order[AX_MAX_RANK + 1];
  if (ax_failed() || type.rank + 1 > AX_MAX_RANK) return (ax_trace_fail("planner: the batch has too many dimensions"), x);
  dims[0] = type.dims[0] / microbatches;
  dims[1] = microbatches;
  for (uint32_t d = 1; d < type.rank; d++) dims[d + 1] = type.dims[d];
  for (uint32_t d = 0; d <= type.rank; d++) order[d] = d < 2 ? 1 - d : d;
  return ax_transpose(ax_reshape(x, AX_LIST(type.rank + 1, dims)), AX_LIST(type.rank + 1, order));
}

static void gradients_of_microbatches(const stepping *s, const ax_value *in, ax_value *out) {
  const ax_model *m = s->model;
  const uint32_t sums = 1 + m->param_count, count = sums + m->batch_count;
  ax_value *looped = ax_trace_alloc(count * sizeof looped[0]);
  microbatch r = {s, in};
  if (looped == NULL) return;
  for (uint32_t k = 0; k < sums; k++) {
    const ax_type type = k == 0 ? *ax_program_out_type(m->program, 0) : m->program->types[m->params[k - 1]];
    looped[k] = (ax_full)(type.dtype, AX_LIST(type.rank, type.dims), 0);
  }
  for (uint32_t b = 0; b < m->batch_count; b++) looped[sums + b] = in_microbatches(in[m->param_count + b], s->microbatches);
  (ax_scan)(AX_CLOSURE(add_microbatch, count, sums, &r), sums, s->microbatches, false, count, looped, sums, out);
  for (uint32_t k = 0; k < sums && !ax_failed(); k++) out[k] = ax_div(out[k], ax_real((double)s->microbatches));
}

/* --- The step --- */

static AX_BODY(step) {
  const stepping *s = context;
  const ax_model *m = s->model;
  const uint32_t n = m->param_count;
  ax_value *all = ax_trace_alloc((2 * n + 1 + m->batch_count) * sizeof all[0]), *made = all + n + m->batch_count;
  if (all == NULL) return;
  for (uint32_t p = 0; p < n; p++) all[p] = in[p];
  for (uint32_t b = 0; b < m->batch_count; b++) all[n + b] = in[n + m->state_count + b];
  if (s->microbatches > 1) gradients_of_microbatches(s, all, made);
  else value_and_gradients(s, all, made);
  out[0] = made[0];
  (ax_optimizer_update)(&m->optimizer, m->param_def, n, made + 1, m->state_count, in + n, n, in, m->state_count, out + 1 + n, n, out + 1);
}

ax_type ax_batch_type(ax_type type, int64_t size) {
  memmove(type.dims + 1, type.dims, type.rank * sizeof type.dims[0]);
  type.dims[0] = size;
  type.rank++;
  return type;
}

static ax_status batched(const ax_model *m, const ax_type *sample, ax_type *out) {
  if (!ax_has_batch(sample)) return ax_error(AX_INVALID_ARGUMENT, "planner: a sample has too many dimensions");
  *out = ax_batch_type(*sample, m->samples);
  return AX_OK;
}

ax_status ax_model_step(const ax_model *m, int64_t microbatches, ax_checkpoint_policy saved, ax_program **out) {
  *out = NULL;
  if (!m->train) {
    *out = ax_program_retain(m->program);
    return AX_OK;
  }
  const stepping s = {m, microbatches, saved};
  const uint32_t n = m->param_count, count = n + m->state_count + m->batch_count;
  ax_type *types = ax_calloc((size_t)count + 1, sizeof types[0]);
  if (types == NULL) return ax_out_of_memory(count);
  ax_status status = AX_OK;
  for (uint32_t p = 0; p < n; p++) types[p] = m->program->types[m->params[p]];
  for (uint32_t k = 0; k < m->state_count; k++) types[n + k] = *ax_treedef_type(m->state_def, k);
  for (uint32_t b = 0; b < m->batch_count && status == AX_OK; b++)
    status = batched(m, &m->program->types[m->batch[b]], &types[n + m->state_count + b]);
  if (status == AX_OK) status = (ax_trace)(AX_CLOSURE(step, count, 1 + n + m->state_count, (void *)&s), count, types, out);
  ax_free(types);
  return status;
}
