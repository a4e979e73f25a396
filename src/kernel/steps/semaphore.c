/* semaphore_signal: semaphore[], amount: s32[], coordinate: s32[].. -> ()     adds the amount, on this or on another core
   semaphore_wait: semaphore[], amount: s32[] -> ()     waits until the count is at least the amount, and subtracts it
   semaphore_read: semaphore[] -> s32[]                 the count; orders nothing
   barrier_semaphore: -> semaphore[]       the device's own, shared by all kernels with its kernel_call's collective_id
   barrier_arrive: barrier[] -> ()         one arrival; the barrier's scratch says how many complete a phase
   barrier_wait: barrier[] -> ()           a core's n-th wait goes on when the n-th phase is complete

   Parameters of semaphore_signal: axes, of devices and cores, with a coordinate for each (along all others the target is the own
   one); logical: the one coordinate is the number of a device, row-major over all axes of devices.
   Errors: an operand that is no such semaphore or barrier, or an array of several; an amount or a coordinate that is no s32[]; an
   unknown axis or one named twice. An amount below 0, and a coordinate outside its axis, are found when the kernel runs.
   They stand in kernels' bodies alone. */
#include <string.h>

#include "kernel/discharge.h"
#include "kernel/image/run.h"
#include "kernel/local.h"
#include "kernel/machine/agent.h"
#include "prim/prims.h"

/* --- infer --- */

static ax_status check_amount(const ax_infer_args *args) {
  AX_TRY(ax_step_one(args, 0, AX_SEMAPHORE));
  return ax_step_scalar(args, 1, AX_S32, "the amount");
}

static ax_status signal_infer(const ax_infer_args *args) {
  const ax_core_params *to = args->params;
  AX_TRY(ax_step_count(args, 2 + ax_core_operands(to), 2 + ax_core_operands(to)));
  AX_TRY(check_amount(args));
  return ax_step_core(args, to, 2);
}

static ax_status read_infer(const ax_infer_args *args) {
  args->out[0] = ax_array_type(AX_S32, AX_DIMS());
  return ax_step_one(args, 0, AX_SEMAPHORE);
}

static ax_status own_infer(const ax_infer_args *args) {
  args->out[0] = ax_semaphore_type(AX_DIMS());
  return AX_OK;
}

static ax_status barrier_infer(const ax_infer_args *args) { return ax_step_one(args, 0, AX_BARRIER); }

/* --- In the machine --- */

/* The act's object and amount: of a semaphore operand 1, which is at least 0, and 1 of others. */
static ax_status about(ax_about *a, ax_act_kind kind, const ax_core_params *to, bool has_amount) {
  char text[160];
  AX_TRY(ax_about_object(a, ax_about_view(a, 0), to, &a->act.object));
  if (a->fault->kind != AX_FINDING_NONE) return AX_OK;
  const int64_t amount = has_amount ? ax_about_integer(a, 1) : 1;
  if (amount < 0)
    return ax_state_fault(a->state, a->fault, AX_FINDING_OUT_OF_BOUNDS, AX_NONE, "%s: the amount is %lld",
                          ax_step_text(a->step, text, sizeof text), (long long)amount);
  a->act.kind = kind;
  a->act.amount = amount;
  return AX_OK;
}

static bool travels(const ax_about *a, uint32_t object) {
  const ax_machine *machine = a->state->machine;
  return machine->signals_travel &&
         a->state->places[a->state->objects[object].region].device != machine->cores[a->actor->core].device;
}

static ax_status signal_about(ax_about *a) {
  AX_TRY(about(a, AX_ACT_SIGNAL, a->step->eqn->params, true));
  if (a->fault->kind != AX_FINDING_NONE) return AX_OK;
  if (!travels(a, a->act.object)) return ax_about_touch_object(a, a->step->eqn->params, a->act.object);
  a->act.kind = AX_ACT_START;
  return ax_about_sent_agent(a, true, a->actor->frame.signals, &a->act.object);
}

/* A signal sets out. */
static ax_status send(ax_about *a) {
  ax_state_copy transfer = {.step = a->step,
                            .by = a->actor->core,
                            .received = AX_NONE,
                            .sent = AX_NONE,
                            .barrier = AX_NONE,
                            .amount = ax_about_integer(a, 1)};
  AX_TRY(ax_about_object(a, ax_about_view(a, 0), a->step->eqn->params, &transfer.received));
  ax_actor *actor;
  AX_TRY(ax_state_add_actor(a->state, a->act.object, &actor));
  *actor = (ax_actor){.references = 1, .kind = AX_AGENT_SIGNAL, .started = true, .transfer = transfer};
  a->actor->frame.signals++;
  return AX_OK;
}

static ax_status signal_act(ax_about *a, bool *more) {
  (void)more;
  if (a->act.kind == AX_ACT_START) return send(a);
  a->state->objects[a->act.object].count += a->act.amount;
  return AX_OK;
}

static ax_status wait_about(ax_about *a) { return about(a, AX_ACT_WAIT, NULL, true); }

static ax_status wait_act(ax_about *a, bool *more) {
  (void)more;
  a->state->objects[a->act.object].count -= a->act.amount;
  return AX_OK;
}

static ax_status read_about(ax_about *a) { return about(a, AX_ACT_READ, NULL, false); }

static ax_status read_act(ax_about *a, bool *more) {
  ax_cell **out = &a->actor->frame.slot[a->step->out[0]];
  const ax_type type = ax_array_type(AX_S32, AX_DIMS());
  (void)more;
  ax_cell_release(*out);
  *out = NULL;
  AX_TRY(ax_cell_tensor(&type, out));
  ax_number_store(AX_S32, (*out)->tensor->data, 0, (ax_number){.i = a->state->objects[a->act.object].count});
  return AX_OK;
}

static ax_status arrive_about(ax_about *a) { return about(a, AX_ACT_ARRIVE, NULL, false); }

static ax_status arrive_act(ax_about *a, bool *more) {
  (void)more;
  ax_object_arrive(&a->state->objects[a->act.object]);
  return AX_OK;
}

/* How often the core has waited for the barrier. NULL: never. */
static int64_t *waited(ax_core_frame *frame, uint32_t object) {
  for (uint32_t i = 0; i < frame->waited_count; i++)
    if (frame->waited[i].object == object) return &frame->waited[i].times;
  return NULL;
}

static ax_status await_about(ax_about *a) {
  AX_TRY(about(a, AX_ACT_AWAIT, NULL, false));
  if (a->fault->kind != AX_FINDING_NONE) return AX_OK;
  const int64_t *times = waited(&a->actor->frame, a->act.object);
  a->act.amount = (times != NULL ? *times : 0) + 1;
  return AX_OK;
}

static ax_status await_act(ax_about *a, bool *more) {
  ax_core_frame *frame = &a->actor->frame;
  int64_t *times = waited(frame, a->act.object);
  (void)more;
  if (times == NULL) {
    AX_TRY(ax_grow(&frame->waited, sizeof frame->waited[0], frame->waited_count, 1, &frame->waited_capacity));
    frame->waited[frame->waited_count] = (ax_wait_count){.object = a->act.object};
    times = &frame->waited[frame->waited_count++].times;
  }
  ++*times;
  return AX_OK;
}

/* --- In a plain program: counts of semaphores, as additions to their content. Only the present core uses them. --- */

static void add_to_count(const ax_discharge_args *a, ax_value (*change)(ax_value count, ax_value amount)) {
  if (a->in[0].view->memory == AX_NONE) return;
  ax_content_write(a->d, a->in[0].view, change(ax_content_read(a->d, a->in[0].view), a->in[1].value));
}

static void discharge_signal(const ax_discharge_args *a) { add_to_count(a, ax_add); }

static void discharge_wait(const ax_discharge_args *a) { add_to_count(a, ax_sub); }

static void discharge_read(const ax_discharge_args *a) {
  if (a->in[0].view->memory != AX_NONE) ax_discharge_give(a, 0, ax_content_read(a->d, a->in[0].view));
  else ax_fail(ax_error(AX_ABSENT, "the count of a barrier semaphore, which others change, is read"));
}

/* All kernels of the device have it: it is no memory of this one. */
static void discharge_own(const ax_discharge_args *a) {
  ax_type others = a->types[a->eqn->out];
  others.form = AX_BARRIER;
  a->out[0] = (ax_discharge_value){.view = ax_content_add(a->d, &others, ax_poison)};
}

/* --- In the executor --- */

static ax_status negative(const ax_row_walk *w, int64_t amount) {
  char text[160];
  return ax_walk_fault(w, "%s: the amount is %lld", ax_step_text(w->op->step, text, sizeof text), (long long)amount);
}

static ax_status signal_run(ax_row_walk *w, bool *waits) {
  const int64_t amount = ax_walk_integer(w, 1);
  ax_core_meant there;
  (void)waits;
  if (amount < 0) return negative(w, amount);
  AX_TRY(ax_walk_core_meant(w, w->op->step->eqn->params, &there));
  if (there.here == NULL) return ax_walk_send(w, &there, &(ax_departure){.object = 0, .barrier = AX_NONE, .number = amount});
  ax_walk_signal(w, ax_walk_object(w, there.here, 0), amount);
  return AX_OK;
}

static ax_status signal_land(ax_landing *l) {
  ax_walk_signal(&l->walk, ax_landing_object(l, 0), l->number);
  return AX_OK;
}

static ax_status wait_run(ax_row_walk *w, bool *waits) { return ax_walk_wait(w, ax_walk_integer(w, 1), waits); }

static ax_status read_run(ax_row_walk *w, bool *waits) {
  const int32_t count = (int32_t)ax_walk_object(w, w->core, 0)->count;
  (void)waits;
  memcpy(w->core->values + w->op->out[0].at, &count, sizeof count);
  return AX_OK;
}

static ax_status arrive_run(ax_row_walk *w, bool *waits) {
  (void)waits;
  ax_walk_arrive(w, ax_walk_object(w, w->core, 0));
  return AX_OK;
}

static ax_status await_run(ax_row_walk *w, bool *waits) {
  ax_walk_wait_phase(w, waits);
  return AX_OK;
}

/* --- The records --- */

static const ax_step signal_step = {.role = AX_STEP_MAKES_ACT, .counts = true, .elsewhere = true, .meets_others = true,
                                    .about = signal_about, .act = signal_act, .discharge = discharge_signal, .run = signal_run,
                                    .land = signal_land};
static const ax_step wait_step = {.role = AX_STEP_MAKES_ACT, .counts = true, .meets_others = true, .about = wait_about,
                                  .act = wait_act, .discharge = discharge_wait, .run = wait_run};
static const ax_step read_step = {.role = AX_STEP_MAKES_ACT, .meets_others = true, .reads_count = true, .about = read_about,
                                  .act = read_act, .discharge = discharge_read, .run = read_run};
static const ax_step own_step = {.role = AX_STEP_MAKES_VIEW, .own_barrier = true, .discharge = discharge_own};
static const ax_step arrive_step = {.role = AX_STEP_MAKES_ACT, .meets_others = true, .about = arrive_about, .act = arrive_act,
                                    .run = arrive_run};
static const ax_step await_step = {.role = AX_STEP_MAKES_ACT, .meets_others = true, .about = await_about, .act = await_act,
                                   .run = await_run};

static const ax_param signal_params[] = {{"axes", AX_PARAM_AXES, offsetof(ax_core_params, axes)},
                                         {"logical", AX_PARAM_BOOL, offsetof(ax_core_params, logical)}};

const ax_prim ax_prim_semaphore_signal = {
    .name = "semaphore_signal", AX_STEP_RULES, .effects = AX_KERNEL_STEP, .in_count = -1, .out_count = 0, .infer = signal_infer,
    .step = &signal_step,
    AX_PARAMS(signal_params, ax_core_params),
};

const ax_prim ax_prim_semaphore_wait = {
    .name = "semaphore_wait", AX_STEP_RULES, .effects = AX_KERNEL_STEP, .in_count = 2, .out_count = 0, .infer = check_amount,
    .step = &wait_step,
};

const ax_prim ax_prim_semaphore_read = {
    .name = "semaphore_read", AX_STEP_RULES, .effects = AX_KERNEL_STEP, .in_count = 1, .out_count = 1, .infer = read_infer,
    .step = &read_step,
};

const ax_prim ax_prim_barrier_semaphore = {
    .name = "barrier_semaphore", AX_STEP_RULES, .in_count = 0, .out_count = 1, .infer = own_infer,
    .step = &own_step,
};

const ax_prim ax_prim_barrier_arrive = {
    .name = "barrier_arrive", AX_STEP_RULES, .effects = AX_KERNEL_STEP, .in_count = 1, .out_count = 0, .infer = barrier_infer,
    .step = &arrive_step,
};

const ax_prim ax_prim_barrier_wait = {
    .name = "barrier_wait", AX_STEP_RULES, .effects = AX_KERNEL_STEP, .in_count = 1, .out_count = 0, .infer = barrier_infer,
    .step = &await_step,
};

/* --- The functions --- */

/* An amount that is a number of C is known here. */
static bool amount_fits(const char *function, ax_value amount) {
  int64_t bits;
  if (ax_failed()) return false;
  if (!ax_is_number(amount)) return true;
  if (!ax_number_bits(function, amount, AX_S32, &bits)) return false;
  if ((int32_t)bits >= 0) return true;
  ax_reject_as(function, "the amount is %d; it is at least 0", (int)(int32_t)bits);
  return false;
}

void ax_semaphore_signal(ax_value semaphore, ax_value amount, const ax_target_core *to) {
  ax_core_params params;
  ax_value in[2 + AX_MAX_AXES] = {semaphore};
  uint32_t count = 2;
  if (!amount_fits("semaphore_signal", amount)) return;
  in[1] = ax_as("semaphore_signal", amount, AX_S32);
  if (ax_take_core("semaphore_signal", to, &params, in, &count)) ax_step_bind(&ax_prim_semaphore_signal, &params, in, count);
}

void ax_semaphore_wait(ax_value semaphore, ax_value amount) {
  if (!amount_fits("semaphore_wait", amount)) return;
  ax_value in[] = {semaphore, ax_as("semaphore_wait", amount, AX_S32)};
  ax_step_bind(&ax_prim_semaphore_wait, NULL, in, 2);
}

ax_value ax_semaphore_read(ax_value semaphore) { return ax_bind1(&ax_prim_semaphore_read, NULL, &semaphore, 1); }

ax_value ax_barrier_semaphore(void) { return ax_bind1(&ax_prim_barrier_semaphore, NULL, NULL, 0); }

void ax_barrier_arrive(ax_value barrier) { ax_step_bind(&ax_prim_barrier_arrive, NULL, &barrier, 1); }

void ax_barrier_wait(ax_value barrier) { ax_step_bind(&ax_prim_barrier_wait, NULL, &barrier, 1); }
