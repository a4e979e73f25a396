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
#include "kernel/local.h"
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
  args->out[0] = ax_array_type(AX_S32, 0, NULL);
  return ax_step_one(args, 0, AX_SEMAPHORE);
}

static ax_status own_infer(const ax_infer_args *args) {
  args->out[0] = ax_semaphore_type(0, NULL);
  return AX_OK;
}

static ax_status barrier_infer(const ax_infer_args *args) { return ax_step_one(args, 0, AX_BARRIER); }

/* --- The records --- */

static const ax_step signal_step = {.role = AX_STEP_MAKES_ACT, .counts = true, .elsewhere = true, .meets_others = true};
static const ax_step wait_step = {.role = AX_STEP_MAKES_ACT, .counts = true, .meets_others = true};
static const ax_step read_step = {.role = AX_STEP_MAKES_ACT, .meets_others = true, .reads_count = true};
static const ax_step own_step = {.role = AX_STEP_MAKES_VIEW};
static const ax_step arrive_step = {.role = AX_STEP_MAKES_ACT, .meets_others = true};
static const ax_step await_step = {.role = AX_STEP_MAKES_ACT, .meets_others = true};

static const ax_param signal_params[] = {{"axes", AX_PARAM_AXES, offsetof(ax_core_params, axes)},
                                         {"logical", AX_PARAM_BOOL, offsetof(ax_core_params, logical)}};

const ax_prim ax_prim_semaphore_signal = {
    .name = "semaphore_signal", AX_STEP_RULES, .effects = AX_KERNEL_STEP, .in_count = -1, .out_count = 0, .infer = signal_infer,
    .step = &signal_step,
    .params = signal_params, .param_count = AX_COUNT(signal_params), .params_bytes = sizeof(ax_core_params),
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
