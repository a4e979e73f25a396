/* copy_start: source: ref<T[d..]>, destination: ref<T[d..]>, [received: dma_semaphore[]], [sent: dma_semaphore[]],
               [barrier: barrier[]], [predicate: bool[]], coordinate: s32[].. -> ()
   copy_wait: dma_semaphore[], ref -> ()     waits until the semaphore has as many bytes as the ref, and subtracts them
   copy_commit: -> ()                        puts the grouped copies that this core has started since the last commit into one group
   copy_wait_groups: -> ()                   waits until at most `pending` of the groups that this core has committed are under way
   commit_smem: -> ()                        makes this core's stores to VMEM visible to the copies that it starts afterwards

     core:   copy_start ----------- goes on ----------- copy_wait(received) --
     copy:              read .. write .. received += bytes

   A copy goes on by itself from when it is started. It reads the source; then `sent`, on the starting core, gets the bytes. It
   writes the destination; then `received`, on the destination's core, gets the bytes, and `barrier` gets an arrival. Where the
   predicate is false there is no copy, and nothing is signalled.
   Parameters of copy_start: axes and logical, as semaphore_signal's, name the core that destination and received belong to (the
   barrier is the own core's); received, sent, barrier, predicate: whether there are these operands; grouped. Parameters of
   copy_wait_groups: pending; read_only: it waits only until their sources have been read.
   Errors: refs of other shapes or dtypes; an operand that is no such semaphore, or an array of several; a copy with a barrier that
   does not go from HBM or ANY to VMEM or SMEM; a grouped one that does not go the other way round; a copy with both; registers; a
   grouped one to another core; pending below 0.
   They stand in kernels' bodies alone. */
#include <string.h>

#include "kernel/discharge.h"
#include "kernel/image/run.h"
#include "kernel/local.h"
#include "kernel/machine/agent.h"
#include "prim/prims.h"

/* --- infer --- */

static bool is_far(const ax_type *ref) { return ref->space == AX_SPACE_HBM || ref->space == AX_SPACE_ANY; }
static bool is_near(const ax_type *ref) { return ref->space == AX_SPACE_VMEM || ref->space == AX_SPACE_SMEM; }

static ax_status check_ends(const ax_infer_args *args) {
  const ax_copy_params *params = args->params;
  const ax_type *from = &args->in[0], *to = &args->in[1];
  AX_TRY(ax_step_ref(args, 0));
  AX_TRY(ax_step_ref(args, 1));
  if (from->dtype != to->dtype || !ax_same_shape(from, to))
    return ax_error(AX_INVALID_ARGUMENT, "from %s to %s: a copy changes neither shape nor dtype", ax_type_string(from, args->axes),
                    ax_type_string(to, args->axes));
  if (from->space == AX_SPACE_REGISTERS || to->space == AX_SPACE_REGISTERS)
    return ax_error(AX_INVALID_ARGUMENT, "from %s to %s: registers are loaded and stored, not copied",
                    ax_type_string(from, args->axes), ax_type_string(to, args->axes));
  if (params->barrier && params->grouped)
    return ax_error(AX_INVALID_ARGUMENT, "it arrives at a barrier (GMEM to SMEM) or belongs to a group (SMEM to GMEM), not both");
  if (params->barrier && !(is_far(from) && is_near(to)))
    return ax_error(AX_INVALID_ARGUMENT, "from %s to %s: copies that arrive at a barrier go from hbm or any to vmem or smem",
                    ax_type_string(from, args->axes), ax_type_string(to, args->axes));
  if (params->grouped && !(is_near(from) && is_far(to)))
    return ax_error(AX_INVALID_ARGUMENT, "from %s to %s: copies in groups go from vmem or smem to hbm or any",
                    ax_type_string(from, args->axes), ax_type_string(to, args->axes));
  if (params->grouped && ax_core_operands(&params->to) > 0)
    return ax_error(AX_INVALID_ARGUMENT, "copies in groups go to the device's own memory");
  return AX_OK;
}

static ax_status start_infer(const ax_infer_args *args) {
  const ax_copy_params *params = args->params;
  uint32_t count = 2u + params->received + params->sent + params->barrier + params->predicate, at = 2;
  AX_TRY(ax_step_count(args, count + ax_core_operands(&params->to), count + ax_core_operands(&params->to)));
  AX_TRY(check_ends(args));
  if (params->received) AX_TRY(ax_step_one(args, at++, AX_DMA_SEMAPHORE));
  if (params->sent) AX_TRY(ax_step_one(args, at++, AX_DMA_SEMAPHORE));
  if (params->barrier) AX_TRY(ax_step_one(args, at++, AX_BARRIER));
  if (params->predicate) AX_TRY(ax_step_scalar(args, at++, AX_BOOL, "the predicate"));
  return ax_step_core(args, &params->to, at);
}

static ax_status wait_infer(const ax_infer_args *args) {
  AX_TRY(ax_step_one(args, 0, AX_DMA_SEMAPHORE));
  return ax_step_ref(args, 1);
}

static ax_status groups_infer(const ax_infer_args *args) {
  int64_t pending = ((const ax_copy_groups_params *)args->params)->pending;
  if (pending < 0) return ax_error(AX_INVALID_ARGUMENT, "%lld groups are to be under way", (long long)pending);
  return AX_OK;
}

static ax_status nothing_infer(const ax_infer_args *args) {
  (void)args;
  return AX_OK;
}

/* --- In the machine --- */

/* Numbers of the optional operands; AX_NONE: there is none. */
typedef struct copy_operands {
  uint32_t received, sent, barrier, predicate;
} copy_operands;

static copy_operands operands_of(const ax_copy_params *params) {
  copy_operands at = {AX_NONE, AX_NONE, AX_NONE, AX_NONE};
  uint32_t next = 2;
  if (params->received) at.received = next++;
  if (params->sent) at.sent = next++;
  if (params->barrier) at.barrier = next++;
  if (params->predicate) at.predicate = next++;
  return at;
}

static bool copy_happens(const ax_about *a) {
  uint32_t predicate = operands_of(a->step->eqn->params).predicate;
  return predicate == AX_NONE || ax_about_integer(a, predicate) != 0;
}

static ax_status start_about(ax_about *a) {
  if (!copy_happens(a)) return AX_OK;
  a->act.kind = AX_ACT_START;
  AX_TRY(ax_about_committed(a));
  return ax_about_sent_agent(a, false, a->actor->frame.copies, &a->act.object);
}

static uint32_t acts_of_copy(const ax_state_copy *transfer) {
  return 2u + (transfer->sent != AX_NONE) + (transfer->received != AX_NONE) + (transfer->barrier != AX_NONE);
}

static ax_status add_to_group(ax_core_frame *frame, uint32_t agent, const ax_state_copy *transfer) {
  AX_TRY(ax_grow(&frame->group, sizeof frame->group[0], frame->grouped, 1, &frame->grouped_capacity));
  frame->group[frame->grouped++] = (struct ax_grouped){agent, acts_of_copy(transfer)};
  return AX_OK;
}

static ax_status start_act(ax_about *a, bool *more) {
  (void)more;
  if (a->act.kind != AX_ACT_START) return AX_OK;
  const ax_copy_params *params = a->step->eqn->params;
  const copy_operands at = operands_of(params);
  ax_state_copy transfer = {.step = a->step,
                            .from = *ax_about_view(a, 0),
                            .to = *ax_about_view(a, 1),
                            .by = a->actor->core,
                            .received = AX_NONE,
                            .sent = AX_NONE,
                            .barrier = AX_NONE};
  AX_TRY(ax_about_away(a, &params->to, &transfer.to.region));
  if (a->fault->kind != AX_FINDING_NONE) return AX_OK;
  if (at.received != AX_NONE) AX_TRY(ax_about_object(a, ax_about_view(a, at.received), &params->to, &transfer.received));
  if (at.sent != AX_NONE) AX_TRY(ax_about_object(a, ax_about_view(a, at.sent), NULL, &transfer.sent));
  if (at.barrier != AX_NONE) AX_TRY(ax_about_object(a, ax_about_view(a, at.barrier), NULL, &transfer.barrier));
  if (a->fault->kind != AX_FINDING_NONE) return AX_OK;
  uint32_t agent = a->act.object;
  ax_actor *actor;
  AX_TRY(ax_state_add_actor(a->state, agent, &actor));
  *actor = (ax_actor){.references = 1, .kind = AX_AGENT_COPY, .started = true, .transfer = transfer};
  a->actor->frame.copies++;
  AX_TRY(ax_about_overwritten(a, &transfer.to));
  return params->grouped ? add_to_group(&a->actor->frame, agent, &transfer) : AX_OK;
}

/* The copies that a wait for groups is for, and that no wait has seen so far; the next of them, or NULL. */
static const struct ax_grouped *next_to_join(const ax_about *a) {
  const ax_core_frame *frame = &a->actor->frame;
  const ax_copy_groups_params *params = a->step->eqn->params;
  uint32_t next = params->read_only ? frame->joined_read : frame->joined;
  if (frame->groups <= (uint64_t)params->pending) return NULL;
  return next < frame->group_end[frame->groups - 1 - (uint32_t)params->pending] ? &frame->group[next] : NULL;
}

static void join(ax_core_frame *frame, const ax_copy_groups_params *params) {
  if (!params->read_only) frame->joined++;
  if (params->read_only || frame->joined_read < frame->joined) frame->joined_read++;
}

static ax_status groups_about(ax_about *a) {
  const struct ax_grouped *copy = next_to_join(a);
  if (copy == NULL) return AX_OK;
  a->act.kind = AX_ACT_JOIN;
  a->act.object = copy->agent;
  a->act.amount = ((const ax_copy_groups_params *)a->step->eqn->params)->read_only ? 1 : copy->acts;
  return AX_OK;
}

/* Groups that are through are forgotten when they have been waited for, so that frames stay small. */
static void forget_groups(ax_core_frame *frame) {
  uint32_t groups = 0;
  while (groups < frame->groups && frame->group_end[groups] <= frame->joined) groups++;
  uint32_t copies = groups > 0 ? frame->group_end[groups - 1] : 0;
  if (groups == 0) return;
  frame->grouped -= copies, frame->joined -= copies, frame->joined_read -= copies, frame->groups -= groups;
  if (frame->grouped > 0)
    memmove(frame->group, frame->group + copies, frame->grouped * sizeof frame->group[0]); /* there may never have been any */
  memmove(frame->group_end, frame->group_end + groups, frame->groups * sizeof frame->group_end[0]);
  for (uint32_t i = 0; i < frame->groups; i++) frame->group_end[i] -= copies;
}

static ax_status groups_act(ax_about *a, bool *more) {
  ax_core_frame *frame = &a->actor->frame;
  if (a->act.kind == AX_ACT_JOIN) {
    join(frame, a->step->eqn->params);
    *more = next_to_join(a) != NULL;
  }
  if (!*more) forget_groups(frame);
  return AX_OK;
}

static ax_status commit_note(ax_core_frame *frame) {
  AX_TRY(ax_grow(&frame->group_end, sizeof frame->group_end[0], frame->groups, 1, &frame->groups_capacity));
  frame->group_end[frame->groups++] = frame->grouped;
  return AX_OK;
}

static ax_status smem_note(ax_core_frame *frame) {
  ax_core_frame_commit(frame);
  return AX_OK;
}

static ax_status wait_about(ax_about *a) {
  a->act.kind = AX_ACT_WAIT;
  a->act.amount = ax_view_bytes(ax_about_view(a, 1));
  return ax_about_object(a, ax_about_view(a, 0), NULL, &a->act.object);
}

static ax_status wait_act(ax_about *a, bool *more) {
  (void)more;
  a->state->objects[a->act.object].count -= a->act.amount;
  return AX_OK;
}

/* --- In a plain program: a copy is complete when it is started --- */

static int64_t bytes_of(const ax_type *ref) { return ax_type_elems(ref) * ax_dtype_bytes(ref->dtype); }

static void count_copy(const ax_discharge_args *a, uint32_t semaphore, uint32_t predicate) {
  const ax_content_view *view = a->in[semaphore].view;
  if (view->memory == AX_NONE) return;
  const ax_value count = ax_content_read(a->d, view), more = ax_add(count, ax_integer(bytes_of(&a->types[a->eqn->in[0]])));
  ax_content_write(a->d, view, ax_discharge_guarded(a->d, count, predicate != AX_NONE ? ax_select_n(a->in[predicate].value, count, more) : more));
}

static void discharge_start(const ax_discharge_args *a) {
  const uint32_t predicate = operands_of(a->eqn->params).predicate;
  ax_value x = ax_content_read(a->d, a->in[0].view);
  if (predicate != AX_NONE) x = ax_select_n(a->in[predicate].value, ax_content_read(a->d, a->in[1].view), x);
  if (a->d->guard != NULL) x = ax_discharge_guarded(a->d, ax_content_read(a->d, a->in[1].view), x);
  ax_content_write(a->d, a->in[1].view, x);
  const copy_operands at = operands_of(a->eqn->params);
  if (at.received != AX_NONE) count_copy(a, at.received, predicate);
  if (at.sent != AX_NONE) count_copy(a, at.sent, predicate);
}

/* A wait that finds too few bytes would never end, as all copies before it are complete. */
static void discharge_wait(const ax_discharge_args *a) {
  const ax_content_view *semaphore = a->in[0].view;
  if (semaphore->memory == AX_NONE) return;
  const ax_value count = ax_content_read(a->d, semaphore), bytes = ax_integer(bytes_of(&a->types[a->eqn->in[1]]));
  ax_discharge_require(a->d, ax_ge(count, bytes));
  ax_content_write(a->d, semaphore, ax_discharge_guarded(a->d, count, ax_sub(count, bytes)));
}

/* --- In the executor: the core that starts a copy makes it --- */

/* Where the copy's destination begins in its root. */
static int64_t destination_of(const ax_row_walk *w) { return w->core->views[w->op->in[1].at]; }

/* The bytes are copied when they are sent, so the source may be overwritten at once. */
static ax_status send_run(ax_row_walk *w, const ax_core_meant *there) {
  const ax_core_code_step *step = w->op->step;
  const ax_image_slot *from = &w->body->slots[step->in[0]];
  const copy_operands at = operands_of(step->eqn->params);
  const void *data = ax_core_view(w->core, step->in[0]);
  char *dense = NULL;
  if (!ax_slot_is_dense(from)) {
    if ((dense = ax_alloc(from->bytes + 1)) == NULL) return ax_out_of_memory(from->bytes);
    ax_rows_take(&from->type, from->strides, data, NULL, dense);
    data = dense;
  }
  ax_status status = ax_walk_send(w, there, &(ax_departure){.object = at.received, .barrier = at.barrier, .data = data,
                                                            .number = destination_of(w), .bytes = from->bytes});
  ax_free(dense);
  if (status == AX_OK && at.sent != AX_NONE) ax_walk_signal(w, ax_walk_object(w, w->core, at.sent), (int64_t)from->bytes);
  return status;
}

static ax_status start_land(ax_landing *l) {
  const ax_row_walk *w = &l->walk;
  const ax_image_slot *to = &w->body->slots[l->step->in[1]];
  const copy_operands at = operands_of(l->step->eqn->params);
  if (l->bytes != to->bytes) return ax_error(AX_INTERNAL, "a copy of %zu bytes brings %zu", to->bytes, l->bytes);
  pthread_mutex_unlock(&w->core->device->group->lock);
  ax_rows_put(&to->type, to->strides, (char *)w->core->roots[to->root] + l->number, NULL, l->data);
  pthread_mutex_lock(&w->core->device->group->lock);
  if (at.received != AX_NONE) ax_walk_signal(w, ax_landing_object(l, at.received), (int64_t)to->bytes);
  return AX_OK;
}

/* Long pieces may go past the caches, which is for ax_rows_copy to choose. */
static void move_bytes(const ax_row_walk *w, const char *from, char *to) {
  const ax_core_code_step *step = w->op->step;
  const ax_image_slot *slots = w->body->slots;
  if (w->op->dense && w->op->bytes < AX_WALK_LONG) memmove(to, from, w->op->bytes);
  else ax_rows_copy(&slots[step->in[0]].type, slots[step->in[0]].strides, from, slots[step->in[1]].strides, to, w->op->far);
}

static void move(ax_row_walk *w, const ax_run_core *there) {
  const ax_core_code_step *step = w->op->step;
  const ax_image_slot *to = &w->body->slots[step->in[1]];
  const int64_t offset = destination_of(w);
  if (w->core->forwarded) {
    w->core->forwarded = false;
    return;
  }
  if (to->unit > 0) {
    *ax_core_unit(there, to, offset) = ax_core_view(w->core, step->in[0]);
    return;
  }
  ax_walk_begin_moving(w, w->op->bytes);
  move_bytes(w, ax_core_view(w->core, step->in[0]), (char *)there->roots[w->op->in[1].root] + offset);
  ax_walk_end_moving(w);
}

static ax_status start_run(ax_row_walk *w, bool *waits) {
  const ax_copy_params *params = w->op->step->eqn->params;
  const copy_operands at = operands_of(params);
  const int64_t bytes = (int64_t)w->op->bytes;
  ax_core_meant meant;
  (void)waits;
  if (at.predicate != AX_NONE && ax_walk_integer(w, at.predicate) == 0) return AX_OK;
  AX_TRY(ax_walk_core_meant(w, &params->to, &meant));
  if (meant.here == NULL) return send_run(w, &meant);
  if (w->op->plain) memmove(ax_walk_memory(w, meant.here, 1), ax_walk_memory(w, w->core, 0), w->op->bytes);
  else move(w, meant.here);
  if (at.sent != AX_NONE) ax_walk_signal(w, ax_walk_object(w, w->core, at.sent), bytes);
  if (at.received != AX_NONE) ax_walk_signal(w, ax_walk_object(w, meant.here, at.received), bytes);
  if (at.barrier != AX_NONE) ax_walk_arrive(w, ax_walk_object(w, w->core, at.barrier));
  return AX_OK;
}

static ax_status wait_run(ax_row_walk *w, bool *waits) {
  return ax_walk_wait(w, (int64_t)w->op->bytes, waits);
}

/* --- The records --- */

static const ax_step start_step = {.role = AX_STEP_MAKES_ACT, .copies = true, .moves = true, .elsewhere = true, .about = start_about,
                                   .act = start_act, .discharge = discharge_start, .run = start_run,
                                   .land = start_land};
static const ax_step wait_step = {.role = AX_STEP_MAKES_ACT, .moves = true, .discharge = discharge_wait, .about = wait_about, .act = wait_act, .run = wait_run};
static const ax_step commit_step = {.role = AX_STEP_MAKES_NOTE, .moves = true, .note = commit_note};
static const ax_step groups_step = {.role = AX_STEP_MAKES_ACT, .moves = true, .about = groups_about, .act = groups_act};
static const ax_step smem_step = {.role = AX_STEP_MAKES_NOTE, .moves = true, .note = smem_note};

static const ax_param start_params[] = {{"axes", AX_PARAM_AXES, offsetof(ax_copy_params, to.axes)},
                                        {"logical", AX_PARAM_BOOL, offsetof(ax_copy_params, to.logical)},
                                        {"received", AX_PARAM_BOOL, offsetof(ax_copy_params, received)},
                                        {"sent", AX_PARAM_BOOL, offsetof(ax_copy_params, sent)},
                                        {"barrier", AX_PARAM_BOOL, offsetof(ax_copy_params, barrier)},
                                        {"predicate", AX_PARAM_BOOL, offsetof(ax_copy_params, predicate)},
                                        {"grouped", AX_PARAM_BOOL, offsetof(ax_copy_params, grouped)}};
static const ax_param groups_params[] = {{"pending", AX_PARAM_I64, offsetof(ax_copy_groups_params, pending)},
                                         {"read_only", AX_PARAM_BOOL, offsetof(ax_copy_groups_params, read_only)}};

const ax_prim ax_prim_copy_start = {
    .name = "copy_start", AX_STEP_RULES, .effects = AX_KERNEL_STEP, .in_count = -1, .out_count = 0, .infer = start_infer,
    .step = &start_step, .traffic = AX_TRAFFIC_OPERAND,
    AX_PARAMS(start_params, ax_copy_params),
};

const ax_prim ax_prim_copy_wait = {
    .name = "copy_wait", AX_STEP_RULES, .effects = AX_KERNEL_STEP, .in_count = 2, .out_count = 0, .infer = wait_infer,
    .step = &wait_step,
};

const ax_prim ax_prim_copy_commit = {
    .name = "copy_commit", AX_STEP_RULES, .effects = AX_KERNEL_STEP, .in_count = 0, .out_count = 0, .infer = nothing_infer,
    .step = &commit_step,
};

const ax_prim ax_prim_copy_wait_groups = {
    .name = "copy_wait_groups", AX_STEP_RULES, .effects = AX_KERNEL_STEP, .in_count = 0, .out_count = 0, .infer = groups_infer,
    .step = &groups_step,
    AX_PARAMS(groups_params, ax_copy_groups_params),
};

const ax_prim ax_prim_commit_smem = {
    .name = "commit_smem", AX_STEP_RULES, .effects = AX_KERNEL_STEP, .in_count = 0, .out_count = 0, .infer = nothing_infer,
    .step = &smem_step,
};

/* --- The functions --- */

void ax_copy_start(ax_value source, ax_value destination, const ax_copy_options *options) {
  static const ax_copy_options none;
  if (options == NULL) options = &none;
  ax_copy_params params = {.received = options->received != NULL,
                           .sent = options->sent != NULL,
                           .barrier = options->barrier != NULL,
                           .predicate = options->predicate != NULL,
                           .grouped = options->grouped};
  ax_value in[6 + AX_MAX_AXES] = {source, destination};
  uint32_t count = 2;
  if (ax_failed()) return;
  if (options->received != NULL) in[count++] = *options->received;
  if (options->sent != NULL) in[count++] = *options->sent;
  if (options->barrier != NULL) in[count++] = *options->barrier;
  if (options->predicate != NULL) in[count++] = ax_as("copy_start", *options->predicate, AX_BOOL);
  if (ax_take_core("copy_start", options->to, &params.to, in, &count)) ax_step_bind(&ax_prim_copy_start, &params, in, count);
}

void ax_copy_wait(ax_value semaphore, ax_value ref) {
  ax_value in[] = {semaphore, ref};
  ax_step_bind(&ax_prim_copy_wait, NULL, in, 2);
}

static AX_BODY(start_and_wait) {
  const ax_value *ends = context;
  ax_copy_start(ends[0], ends[1], &(ax_copy_options){.received = (ax_value[]){in[0]}});
  ax_copy_wait(in[0], ends[1]);
}

void ax_copy(ax_value source, ax_value destination) {
  const ax_value ends[] = {source, destination};
  const ax_scratch semaphore = {.type = ax_dma_semaphore_type(AX_DIMS())};
  ax_run_scoped(AX_LIST(1, &semaphore), NULL, AX_CLOSURE(start_and_wait, 1, 0, ends), NULL);
}

void ax_copy_commit_group(void) { ax_step_bind(&ax_prim_copy_commit, NULL, NULL, 0); }

void ax_copy_wait_groups(int64_t pending, bool read_only) {
  ax_step_bind(&ax_prim_copy_wait_groups, &(ax_copy_groups_params){pending, read_only}, NULL, 0);
}

void ax_commit_smem(void) { ax_step_bind(&ax_prim_commit_smem, NULL, NULL, 0); }
