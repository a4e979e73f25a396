/* The executor runs activations depth-first until they must wait. This file performs instructions; scheduler.c chooses the next
   activation, push.c performs exchanges, and share.c shares work in parts. One thread or several run the same code. */
#include <stdio.h>
#include <string.h>

#include "machine/float_mode.h"
#include "run/check.h"
#include "run/compute.h"
#include "run/cores.h"
#include "run/gemm.h"
#include "run/inside.h"
#include "run/mail.h"
#include "run/push.h"
#include "run/remote.h"
#include "run/ragged.h"
#include "run/scheduler.h"
#include "run/share.h"
#include "run/timeline.h"
#include "run/turns.h"

typedef enum outcome { PARKED, YIELDS, FINISHED, FAILED } outcome;

/* --- Instructions --- */

typedef struct computation {
  const ax_activation *activation;
  const ax_instr *instr;
} computation;

static ax_status compute_part(const void *context, ax_worker_slot *worker_slot, uint32_t part) {
  const computation *c = context;
  (void)worker_slot;
  return ax_compute_part(c->activation, c->instr, part);
}

/* A large kernel or product is done in parts, which idle threads may take. The parts depend on its size alone, so the result
   does not depend on the threads. */
static ax_status compute(ax_execution *run, ax_worker_slot *worker_slot, const ax_activation *activation, const ax_instr *instr) {
  worker_slot->share.activation = (uint32_t)(activation - run->activations);
  worker_slot->share.instr = (uint32_t)(instr - activation->code->instrs);
  if (instr->kind == AX_INSTR_ROWS) return ax_rows_run(run, worker_slot, activation, instr);
  if (!ax_share_worth(run, instr)) return ax_compute(activation, instr, NULL, &run->executor->pool);
  if (instr->kind == AX_INSTR_GEMM) return ax_gemm_run(run, worker_slot, activation, instr);
  return ax_share_parts(run, worker_slot, compute_part, &(computation){activation, instr}, instr->parts);
}

static bool do_wait(ax_execution *run, ax_worker_slot *worker_slot, const ax_activation *activation, const ax_instr *instr,
                    uint32_t f) {
  uint32_t counter = instr->sync.counter[activation->device];
  if (counter == AX_NONE) return true;
  int64_t target = (activation->entered[instr->sync.region] + instr->sync.delta) * instr->sync.times[counter];
  return target <= 0 || ax_scheduler_await(run, worker_slot, f, instr->sync.first + counter, (uint64_t)target, instr->sync.parks);
}

static uint32_t branch_target(const ax_activation *activation, const ax_instr *instr) {
  int32_t index = *(const int32_t *)ax_address(activation, &instr->refs[0]);
  uint32_t last = instr->branch.count - 1, chosen = index < 0 ? 0 : (uint32_t)index;
  return instr->branch.targets[chosen > last ? last : chosen];
}

static outcome fail(ax_execution *run, ax_status status) {
  ax_scheduler_stop(run, status, ax_message());
  return FAILED;
}

/* Notes a failure. If callbacks fail on several devices, the same failure is reported whichever came first. The activation's pc
   is that of the instruction. */
static outcome fail_at(ax_execution *run, const ax_instr *instr, uint32_t f, ax_status status) {
  ax_finding_of_eval(run, f, ax_execution_blame(run, f, instr, status));
  return FINISHED;
}

/* Sends or receives a message. PARKED; FAILED; YIELDS: the activation goes on. */
static outcome do_message(ax_execution *run, ax_worker_slot *worker_slot, ax_activation *activation, const ax_instr *instr,
                          uint32_t f) {
  bool parked = false;
  ax_status status = instr->kind == AX_INSTR_SEND ? ax_mail_send(run, activation, instr)
                                                  : ax_mail_receive(run, worker_slot, activation, instr, f, &parked);
  return status != AX_OK ? fail(run, status) : parked ? PARKED : YIELDS;
}

/* An ordered call, likewise. */
static outcome do_call(ax_execution *run, ax_worker_slot *worker_slot, ax_activation *activation, const ax_instr *instr,
                       uint32_t f) {
  bool parked = false;
  ax_status status = ax_turn_take(run, worker_slot, activation, instr, f, &parked);
  return status != AX_OK ? fail_at(run, instr, f, status) : parked ? PARKED : YIELDS;
}

/* A step of a ragged exchange, likewise. FINISHED: it has a finding. */
static outcome do_ragged(ax_execution *run, ax_worker_slot *worker_slot, ax_activation *activation, const ax_instr *instr,
                         uint32_t f) {
  bool parked = false;
  ax_status status = ax_ragged_do(run, worker_slot, activation, instr, f, &parked);
  if (status != AX_OK) return fail(run, status);
  return parked ? PARKED : activation->found ? FINISHED : YIELDS;
}

/* A step of a kernel, likewise. */
static outcome do_cores(ax_execution *run, ax_worker_slot *worker_slot, const ax_activation *activation, const ax_instr *instr,
                        uint32_t f) {
  bool parked = false;
  ax_status status = ax_cores_do(run, worker_slot, activation, instr, f, &parked);
  return status != AX_OK ? fail(run, status) : parked ? PARKED : YIELDS;
}

/* An exchange, likewise. */
static outcome do_push(ax_execution *run, ax_worker_slot *worker_slot, ax_activation *activation, const ax_instr *instr,
                       uint32_t f) {
  bool parked = false;
  ax_status status = ax_push_do(run, worker_slot, activation, instr, f, &parked);
  return status != AX_OK ? fail(run, status) : parked ? PARKED : YIELDS;
}

/* The device sees another part from here on. Its pointers are its own, so this orders nothing. */
static void point(ax_execution *run, uint32_t device, const ax_point *p) {
  const uint32_t before = p->from_pointers != AX_NONE ? run->seen[p->from_pointers + device] : p->place[device];
  const uint32_t after = p->next != NULL ? p->next[before] : before;
  run->seen[p->to_pointers + device] = after;
  run->part[p->to_pointers + device] = run->part[p->first + after];
}

/* Runs an activation until it waits or ends. */
static outcome run_activation(ax_execution *run, ax_worker_slot *worker_slot, uint32_t f) {
  const ax_compiled *c = run->compiled;
  ax_activation *activation = &run->activations[f];
  const ax_instr *instrs = activation->code->instrs;
  const ax_scheduling_policy *scheduling_policy = run->scheduling_policy;
  const bool timed = c->timed;
  const uint64_t passes = activation->passes;
  uint32_t pc = activation->pc;
  for (;;) {
    const ax_instr *instr = &instrs[pc];
    for (; (instr->skip & passes) != 0; pc++) instr++;
    uint32_t next = pc + 1;
    int64_t begin = timed ? ax_timeline_now() : 0;
    switch (instr->kind) {
      case AX_INSTR_KERNEL:
        if (instr->parts <= 1) { /* the usual case */
          ax_compute_range(activation, instr, 0, instr->kernel.extent);
          break;
        }
        /* fall through */
      case AX_INSTR_ROWS:
      case AX_INSTR_ROUTINE:
      case AX_INSTR_GEMM: {
        ax_status status = compute(run, worker_slot, activation, instr);
        if (status != AX_OK) return fail(run, ax_compute_failed(instr, status));
        break;
      }
      case AX_INSTR_EVAL: {
        ax_status status = ax_compute_eval(c, &run->executor->hooks, run->options, activation, instr, activation->device);
        if (status == AX_OK) break;
        activation->pc = pc;
        return fail_at(run, instr, f, status);
      }
      case AX_INSTR_CHECK:
        activation->pc = pc;
        if (!ax_check_passes(run, worker_slot, activation, instr)) return FINISHED;
        break;
      case AX_INSTR_RAGGED: {
        activation->pc = pc;
        outcome done = do_ragged(run, worker_slot, activation, instr, f);
        if (done != YIELDS) return done;
        break;
      }
      case AX_INSTR_CALL: {
        activation->pc = pc;
        outcome done = do_call(run, worker_slot, activation, instr, f);
        if (done != YIELDS) return done;
        break;
      }
      case AX_INSTR_CORES: {
        activation->pc = pc;
        outcome done = do_cores(run, worker_slot, activation, instr, f);
        if (done != YIELDS) return done;
        break;
      }
      case AX_INSTR_PUSH: {
        activation->pc = pc;
        outcome done = do_push(run, worker_slot, activation, instr, f);
        if (done != YIELDS) return done;
        break;
      }
      case AX_INSTR_CLEAR: ax_push_clear(activation, instr); break;
      case AX_INSTR_POINT: point(run, activation->device, instr->point); break;
      case AX_INSTR_SEND:
      case AX_INSTR_RECEIVE: {
        activation->pc = pc;
        outcome done = do_message(run, worker_slot, activation, instr, f);
        if (done != YIELDS) return done;
        break;
      }
      case AX_INSTR_WAIT:
        activation->pc = pc;
        if (!do_wait(run, worker_slot, activation, instr, f)) return PARKED;
        break;
      case AX_INSTR_SIGNAL: ax_scheduler_signal(run, instr->sync.first + instr->sync.counter[activation->device], 1); break;
      case AX_INSTR_LOOP:
        activation->iteration[instr->loop] = 0;
        if (instr->fused_loop != NULL) ax_compute_fused_loop(activation, instr->fused_loop);
        if (instr->trips == 0 || instr->fused_loop != NULL) next = instr->target;
        break;
      case AX_INSTR_ENTER: activation->entered[instr->region]++; break;
      case AX_INSTR_NEXT:
        if (++activation->iteration[instr->loop] < instr->trips || instr->trips < 0) next = instr->target;
        break;
      case AX_INSTR_TEST:
        if (!*(const uint8_t *)ax_address(activation, &instr->refs[0])) next = instr->target;
        break;
      case AX_INSTR_BRANCH: next = branch_target(activation, instr); break;
      case AX_INSTR_JUMP: next = instr->target; break;
      case AX_INSTR_END: return FINISHED;
    }
    if (timed && (instr->kind <= AX_INSTR_PUSH || (instr->kind == AX_INSTR_LOOP && instr->fused_loop != NULL)))
      ax_timeline_add(run, worker_slot, f, pc, begin);
    pc = next;
    if (scheduling_policy != NULL && scheduling_policy->yields(scheduling_policy->state, instr)) {
      activation->pc = pc;
      return YIELDS;
    }
  }
}

/* --- Threads --- */

static void run_one(ax_execution *run, ax_worker_slot *worker_slot, uint32_t f) {
  ax_status status = ax_scheduler_scratch(run, worker_slot, &run->activations[f]);
  switch (status == AX_OK ? run_activation(run, worker_slot, f) : fail(run, status)) {
    case PARKED: break; /* another thread may run it already */
    case YIELDS: ax_scheduler_yield(run, f); break;
    case FINISHED:
    case FAILED: ax_scheduler_end(run, worker_slot, f); break;
  }
}

static void nudge(void *context) { ax_scheduler_wake(context, true); }

/* Runs activations until none is left to run here, or the helper is to leave. helper NULL: the thread that makes the call. */
static void run_activations(ax_execution *run, ax_worker_slot *worker_slot, const ax_helper *helper) {
  while (!atomic_load_explicit(&run->over, memory_order_acquire)) {
    uint32_t f = ax_scheduler_take(run, worker_slot);
    if (f != AX_NONE) {
      run_one(run, worker_slot, f);
      continue;
    }
    if (ax_share_help(run, worker_slot)) continue;
    if (run->remote != NULL && ax_remote_poll(run->remote)) continue;
    if (ax_scheduler_exhausted(run) || (helper != NULL && ax_helper_leaves(helper))) break;
    ax_scheduler_wait(run);
  }
}

static bool work(void *context, const ax_helper *helper) {
  ax_execution *run = context;
  ax_inside inside;
  ax_worker_slot *worker_slot = helper != NULL ? ax_scheduler_join(run) : ax_scheduler_enter(run);
  if (worker_slot == NULL) return true;
  if (helper != NULL) ax_inside_enter(&inside, run->executor);
  const ax_float_mode own = ax_float_mode_enter(run->compiled->flushes); /* helpers work for runs of either kind in turn */
  run_activations(run, worker_slot, helper);
  ax_float_mode_leave(own);
  if (helper != NULL) ax_inside_leave(&inside);
  ax_scheduler_leave(run, worker_slot);
  return !atomic_load_explicit(&run->over, memory_order_acquire);
}

void ax_execution_run(ax_execution *run, uint64_t number) {
  if (run->threaded) {
    run->job = (ax_job){work, nudge, run, number, .wanted = run->threads - 1, .late = run->compiled->late};
    ax_workers_call(run->executor->workers, &run->job);
    if (run->pace.begun != 0) ax_pace_ends(&run->pace, ax_timeline_now());
  } else {
    work(run, NULL);
  }
  ax_scheduler_land(run);
}

/* --- Calls --- */

static ax_status failure(ax_execution *run) {
  if (run->status == run->finding.status) ax_finding_report(run);
  return ax_error(run->status, "%s", run->message);
}

/* Results by pointer are where the run has left them. */
static void find_results(const ax_execution *run, ax_parts *const *outputs) {
  const ax_compiled *c = run->compiled;
  for (uint32_t k = 0; k < c->plan->out_count && c->points; k++) {
    const ax_result *result = &c->results[k];
    if (result->pointers == AX_NONE) continue;
    const uint32_t set = result->blocks;
    for (uint32_t d = 0; d < c->devices; d++)
      outputs[k]->part[c->sets[set].index[d]] = run->part[c->spaces[result->pointers].first + d];
  }
}

ax_status ax_execute(ax_runner *runner, ax_parts *const *inputs, ax_parts *const *outputs, uint64_t number, const ax_doing *doing,
                     const ax_run_options *given, bool *began) {
  const ax_executor *executor = runner->executor;
  const ax_runtime_options *options = executor->options;
  ax_execution *run = ax_execution_take_idle(runner);
  *began = false;
  if (run == NULL) AX_TRY(ax_execution_create(runner, &run));
  ax_status reset = ax_execution_reset(run, inputs, outputs);
  if (reset != AX_OK) {
    ax_execution_destroy(run);
    return reset;
  }
  *began = true;
  run->options = given;
  ax_seeded seeded = {options->seed | 1ull << 63};
  const ax_scheduling_policy by_seed = ax_choose_seeded(&seeded);
  run->scheduling_policy = executor->scheduling_policy != NULL   ? executor->scheduling_policy
                           : options->policy == AX_POLICY_SEEDED ? &by_seed
                                                                 : NULL;
  if (run->remote != NULL) ax_remote_begin(run->remote, doing);
  ax_execution_run(run, number);
  if (runner->compiled->timed) ax_timeline_keep(runner, run);
  ax_status status = run->status != AX_OK ? failure(run) : run->remote == NULL ? ax_mail_check(run) : AX_OK;
  if (run->remote != NULL) status = ax_remote_end(run->remote, status);
  if (status == AX_OK) find_results(run, outputs);
  if (status != AX_OK) {
    ax_execution_destroy(run);
    return status;
  }
  ax_execution_give_back(run);
  ax_execution_keep(runner, run);
  return AX_OK;
}
