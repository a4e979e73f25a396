/* ax_emit_pipeline_warp_specialized: one warpgroup, the memory thread, brings blocks in, the others compute on them.

     memory thread    fetch 0, 1 | waits consumed 0, fetch 2 | waits consumed 1, fetch 3 | ..
     compute          waits in 0, body 0, consumed 0 | waits in 1, body 1, consumed 1 | ..        (each of them)
     the first of them, the leader, besides:    | store 0                             | store 1

   Barriers. There are `stages` of each kind; step u uses number u mod stages:
     in         one for each operand: its block has arrived
     consumed   the compute warpgroups have finished with the operands of a step (or of `delay` steps before). One for all operands,
                or one for each where the body arrives itself or delays differ
   and where there are several compute warpgroups and results:
     free       the leader says that the stores that used the slots of the next step's results last have read them
     ready      all have written their part of the results

   The leader stores each block of a result once, whole, when all have written to it. (In the code that this follows each compute
   warpgroup stores all of the block, whether or not the others have written their parts, and a warpgroup that writes to the slot
   next has waited for its own stores alone.) No warpgroup can miss a phase of either barrier: the leader arrives at `free` again
   only after all have arrived at `ready`, so have waited for `free`; and `ready` has the leader among its arrivals. No warpgroup
   waits between the last step and the end, so none arrives at `ready` there: two arrivals of one warpgroup could count as
   another's.
   At the end `done` tells all, the memory thread too, that everything is stored: code after the pipeline may read it.

   Invariant operands are fetched once and waited for once. (Fetching them again for each step would write to memory that is being
   read.) */
#include <string.h>

#include "axle/collectives.h"
#include "kernel/pipeline.h"

static const char function[] = "emit_pipeline_warp_specialized";

typedef struct warps {
  ax_pipe pipe;
  const ax_warp_pipeline_options *options;
  ax_fn body;
  int64_t memory;   /* the memory thread's index; the leader's is the first other */
  bool stores;      /* there are results with slots */
  bool one_barrier; /* consumed: one for all operands */
  ax_value *buffers, *full, *consumed; /* by operand */
  ax_value free, ready, done;
} warps;

/* --- What there is --- */

static bool is_fetched(const warps *w, uint32_t i) { return i < w->pipe.in_count && !w->pipe.of[i].pinned; }
static bool is_streamed(const warps *w, uint32_t i) { return is_fetched(w, i) && !w->pipe.of[i].invariant; }
static bool several(const warps *w) { return w->options->compute_wgs > 1; }

/* Whether operand i has a barrier `consumed` of its own. */
static bool has_consumed(const warps *w, uint32_t i) {
  if (w->options->manual_consumed_barriers) return true;
  if (!is_streamed(w, i)) return false;
  for (uint32_t o = 0; w->one_barrier && o < i; o++)
    if (is_streamed(w, o)) return false;
  return true;
}

static void choose(warps *w) {
  int64_t delay = -1;
  w->one_barrier = !w->options->manual_consumed_barriers;
  for (uint32_t i = 0; i < w->pipe.in_count; i++) {
    if (!is_streamed(w, i)) continue;
    w->one_barrier = w->one_barrier && (delay < 0 || w->pipe.of[i].delay == delay);
    delay = w->pipe.of[i].delay;
  }
  for (uint32_t i = w->pipe.in_count; i < ax_pipe_count(&w->pipe); i++) w->stores = w->stores || !w->pipe.of[i].pinned;
}

static ax_scratch barrier(int64_t count, int64_t arrivals) {
  return (ax_scratch){.type = ax_barrier_type(AX_LIST(1, &count)), .arrivals = arrivals};
}

/* Scratch in the order in which take_scratch has it. */
static uint32_t list_scratch(const warps *w, ax_scratch *scratch) {
  const ax_pipe *pipe = &w->pipe;
  uint32_t count = 0;
  for (uint32_t i = 0; i < ax_pipe_count(pipe); i++)
    if (!pipe->of[i].pinned) scratch[count++] = ax_pipe_scratch(pipe, &pipe->of[i]);
  for (uint32_t i = 0; i < pipe->in_count; i++)
    if (is_fetched(w, i)) scratch[count++] = barrier(ax_pipe_slots(pipe, &pipe->of[i]), 1);
  for (uint32_t i = 0; i < pipe->in_count; i++)
    if (has_consumed(w, i)) scratch[count++] = barrier(pipe->stages, w->options->compute_wgs);
  if (w->stores && several(w)) {
    scratch[count++] = barrier(1, 1);
    scratch[count++] = barrier(1, w->options->compute_wgs);
  }
  if (w->stores) scratch[count++] = barrier(1, 1);
  return count;
}

static void take_scratch(warps *w, const ax_value *in) {
  const ax_pipe *pipe = &w->pipe;
  for (uint32_t i = 0; i < ax_pipe_count(pipe); i++)
    if (!pipe->of[i].pinned) w->buffers[i] = *in++;
  for (uint32_t i = 0; i < pipe->in_count; i++)
    if (is_fetched(w, i)) w->full[i] = *in++;
  for (uint32_t i = 0; i < pipe->in_count; i++)
    if (has_consumed(w, i)) w->consumed[i] = *in++;
    else if (i > 0) w->consumed[i] = w->consumed[i - 1]; /* one for all: that of the first that is streamed */
  if (w->stores && several(w)) {
    w->free = ax_ref_at(*in++, ax_integer(0));
    w->ready = ax_ref_at(*in++, ax_integer(0));
  }
  if (w->stores) w->done = ax_ref_at(*in++, ax_integer(0));
}

/* --- The memory thread --- */

static void fetch(const warps *w, uint32_t i, ax_value step) {
  const ax_pipe *pipe = &w->pipe;
  const ax_piped *of = &pipe->of[i];
  ax_value ids[AX_MAX_RANK], index[AX_MAX_RANK];
  ax_value slot = ax_pipe_rest(ax_as(function, step, AX_S32), ax_pipe_slots(pipe, of));
  ax_pipe_ids(pipe, step, ids);
  if (!ax_pipe_index(pipe, of, ids, index)) return;
  ax_value full = ax_ref_at(w->full[i], slot);
  ax_pipe_fetch(pipe, of, index, ax_ref_at(w->buffers[i], slot), &full);
}

/* As soon as a step is over, or the delay after it, all that has its slots. */
static AX_BODY(refill) {
  const warps *w = context;
  ax_value slot = ax_pipe_rest(in[0], w->pipe.stages), next = ax_add(in[0], ax_integer(w->pipe.stages));
  for (uint32_t i = 0; i < w->pipe.in_count; i++) {
    if (!is_streamed(w, i)) continue;
    if (w->options->manual_consumed_barriers || has_consumed(w, i)) ax_barrier_wait(ax_ref_at(w->consumed[i], slot));
    fetch(w, i, next);
  }
}

static AX_BODY(memory_block) {
  const warps *w = context;
  const ax_pipe *pipe = &w->pipe;
  ax_set_max_registers(w->options->memory_registers, false);
  for (uint32_t i = 0; i < pipe->in_count; i++)
    if (is_fetched(w, i) && pipe->of[i].invariant) fetch(w, i, ax_integer(0));
  bool streams = false;
  for (int64_t step = 0; step < pipe->stages; step++)
    for (uint32_t i = 0; i < pipe->in_count; i++) {
      if (!is_streamed(w, i)) continue;
      fetch(w, i, ax_integer(step));
      streams = true;
    }
  if (streams && pipe->steps > pipe->stages)
    ax_fori_loop(ax_integer(0), ax_integer(pipe->steps - pipe->stages), AX_CLOSURE(refill, 1, 0, w), NULL, NULL);
  if (w->stores) ax_barrier_wait(w->done);
}

/* --- Compute warpgroups: what the leader does, and the others --- */

static ax_value is_leader(const warps *w) { return ax_eq(ax_axis_index(w->options->wg_axis), ax_integer(w->memory == 0 ? 1 : 0)); }

/* Runs `does` on the leader and `others` on the other compute warpgroups; where there is only one compute warpgroup it runs
   `does`. */
static void by_leader(const warps *w, ax_function does, ax_function others, void *context) {
  if (!several(w)) {
    does(NULL, NULL, context);
    return;
  }
  ax_if(is_leader(w), ((ax_fn){does, 0, 0, context}), ((ax_fn){others, 0, 0, context}), NULL, NULL);
}

typedef struct computing {
  warps *w;
  const ax_value *carries, *changes;
} computing;

static AX_BODY(no_more) {}

static AX_BODY(free_slots) {
  const warps *w = ((const computing *)context)->w;
  ax_copy_wait_groups(ax_pipe_pending(&w->pipe), false);
  if (several(w)) ax_barrier_arrive(w->free);
}

static AX_BODY(await_slots) { ax_barrier_wait(((const computing *)context)->w->free); }

static AX_BODY(store_step) {
  const computing *c = context;
  if (several(c->w)) ax_barrier_wait(c->w->ready);
  ax_pipe_store_changed(&c->w->pipe, c->w->buffers, c->carries, c->changes);
}

static AX_BODY(store_rest) {
  const computing *c = context;
  if (several(c->w) && !ax_pipe_stores_in_loop(&c->w->pipe)) ax_barrier_wait(c->w->ready);
  ax_pipe_store_invariant(&c->w->pipe, c->w->buffers);
  ax_copy_wait_groups(0, false);
  ax_barrier_arrive(c->w->done);
}

static AX_BODY(await_done) { ax_barrier_wait(((const computing *)context)->w->done); }

static AX_BODY(end_groups) { ax_copy_wait_groups(0, false); }

/* --- Compute warpgroups: steps --- */

typedef struct releasing {
  const warps *w;
  uint32_t i;
  ax_value step;
} releasing;

static AX_BODY(release) {
  const releasing *r = context;
  ax_barrier_arrive(
      ax_ref_at(r->w->consumed[r->i], ax_pipe_rest(ax_sub(r->step, ax_integer(r->w->pipe.of[r->i].delay)), r->w->pipe.stages)));
}

static void release_operands(const warps *w, ax_value step) {
  for (uint32_t i = 0; i < w->pipe.in_count && !w->options->manual_consumed_barriers; i++) {
    releasing r = {w, i, step};
    if (!has_consumed(w, i)) continue;
    if (w->pipe.of[i].delay == 0) release(NULL, NULL, &r);
    else ax_pipe_where(ax_ge(step, ax_integer(w->pipe.of[i].delay)), release, &r);
  }
}

/* The body's operands: refs, barriers, carries. NULL: the trace has failed. */
static ax_value *body_operands(const warps *w, ax_value slot, const ax_value *carries, const ax_value *body_carries) {
  const ax_pipe *pipe = &w->pipe;
  uint32_t count = ax_pipe_count(pipe);
  ax_value *all = ax_trace_alloc((w->body.in_count + 1) * sizeof all[0]);
  if (all == NULL) return NULL;
  ax_pipe_refs(pipe, w->buffers, slot, carries, all);
  for (uint32_t i = 0; w->options->manual_consumed_barriers && i < pipe->in_count; i++)
    all[count++] = ax_ref_at(w->consumed[i], slot);
  for (uint32_t k = 0; k < w->options->carry_count; k++) all[count++] = body_carries[k];
  return all;
}

/* (step, carries of results.., carries of the body..) */
static AX_BODY(compute_step) {
  warps *w = context;
  const ax_pipe *pipe = &w->pipe;
  uint32_t carries = ax_pipe_carries(pipe);
  bool stores = ax_pipe_stores_in_loop(pipe);
  ax_value step = in[0], slot = ax_pipe_rest(step, pipe->stages), ids[AX_MAX_RANK];
  ax_value *changes = ax_trace_alloc((pipe->out_count + 1) * sizeof changes[0]);
  computing c = {w, in + 1, changes};
  if (changes == NULL) return;
  for (uint32_t i = 0; i < pipe->in_count; i++)
    if (is_streamed(w, i)) ax_barrier_wait(ax_ref_at(w->full[i], slot));
  if (stores) by_leader(w, free_slots, await_slots, &c);
  ax_pipe_ids(pipe, step, ids);
  const ax_value *all = body_operands(w, slot, in + 1, in + 1 + carries);
  const ax_value *made = all != NULL ? ax_pipe_body(pipe, w->body, ids, all) : NULL;
  if (made == NULL) return;
  release_operands(w, step);
  ax_pipe_next_carries(pipe, step, in + 1, out, changes);
  for (uint32_t k = 0; k < w->options->carry_count; k++) out[carries + k] = made[k];
  if (!stores) return;
  ax_commit_smem();
  if (several(w)) ax_barrier_arrive(w->ready);
  by_leader(w, store_step, no_more, &c);
}

static int64_t compute_registers(const ax_warp_pipeline_options *options) {
  return (512 - options->memory_registers) / options->compute_wgs / 8 * 8;
}

static AX_BODY(compute_block) {
  warps *w = context;
  const ax_pipe *pipe = &w->pipe;
  uint32_t carries = ax_pipe_carries(pipe), all = carries + w->options->carry_count;
  ax_value *state = ax_trace_alloc((all + 1) * sizeof state[0]);
  computing c = {.w = w};
  if (state == NULL) return;
  ax_set_max_registers(compute_registers(w->options), true);
  for (uint32_t i = 0; i < pipe->in_count; i++)
    if (is_fetched(w, i) && pipe->of[i].invariant) ax_barrier_wait(ax_ref_at(w->full[i], ax_integer(0)));
  ax_pipe_first_carries(pipe, state);
  const ax_value *first = w->options->carry_count > 0 ? ax_builder_call(w->options->carry_init, NULL) : NULL;
  if (ax_failed()) return;
  for (uint32_t k = 0; k < w->options->carry_count; k++) state[carries + k] = first[k];
  ax_fori_loop(ax_integer(0), ax_integer(pipe->steps), AX_CLOSURE(compute_step, 1 + all, all, w), state, state);
  if (w->options->carry_count > 0) (void)ax_builder_call(w->options->carry_final, state + carries);
  if (!w->stores) {
    end_groups(NULL, NULL, NULL);
    return;
  }
  if (!ax_pipe_stores_in_loop(pipe)) { /* otherwise the last step's arrivals are for these results too */
    ax_commit_smem();
    if (several(w)) ax_barrier_arrive(w->ready);
  }
  by_leader(w, store_rest, await_done, &c);
}

/* --- The function --- */

static AX_BODY(within) {
  warps *w = context;
  take_scratch(w, in);
  ax_if(ax_ne(ax_axis_index(w->options->wg_axis), ax_integer(w->memory)), ((ax_fn){compute_block, 0, 0, w}),
        ((ax_fn){memory_block, 0, 0, w}), NULL, NULL);
}

static ax_status check_warps(warps *w) {
  const ax_warp_pipeline_options *options = w->options;
  const ax_mesh *axes = &ax_builder_current()->axes;
  int64_t wgs = options->compute_wgs;
  if (options->wg_axis == NULL) return ax_error(AX_INVALID_ARGUMENT, "there is no wg_axis");
  int axis = ax_mesh_find(axes, options->wg_axis);
  if (axis < 0)
    return ax_error(AX_INVALID_ARGUMENT, "there is no axis \"%s\" of warpgroups; there are %s", options->wg_axis,
                    ax_bound_string(axes));
  if (wgs < 1 || axes->axis[axis].size != wgs + 1)
    return ax_error(AX_INVALID_ARGUMENT, "%lld compute warpgroups and the memory thread along \"%s\", which has %lld",
                    (long long)wgs, options->wg_axis, (long long)axes->axis[axis].size);
  w->memory = options->memory_thread == -1 ? wgs : options->memory_thread;
  if (w->memory < 0 || w->memory > wgs)
    return ax_error(AX_INVALID_ARGUMENT, "the memory thread is number %lld of %lld along \"%s\"", (long long)w->memory,
                    (long long)wgs + 1, options->wg_axis);
  if (options->memory_registers < 1 || compute_registers(options) < 8)
    return ax_error(AX_INVALID_ARGUMENT, "%lld of 512 registers are the memory thread's: each of %lld compute warpgroups needs 8",
                    (long long)options->memory_registers, (long long)wgs);
  return AX_OK;
}

static ax_status check_functions(const warps *w) {
  const ax_warp_pipeline_options *options = w->options;
  uint32_t refs = ax_pipe_count(&w->pipe), barriers = options->manual_consumed_barriers ? w->pipe.in_count : 0,
           carries = options->carry_count;
  if (w->body.in_count != refs + barriers + carries || w->body.out_count != carries)
    return ax_error(AX_INVALID_ARGUMENT, "the body takes %u and gives %u; there are %u refs, %u barriers and %u carries",
                    w->body.in_count, w->body.out_count, refs, barriers, carries);
  if (carries == 0) return AX_OK;
  if (options->carry_init.function == NULL || options->carry_init.in_count != 0 || options->carry_init.out_count != carries)
    return ax_error(AX_INVALID_ARGUMENT, "carry_init takes nothing and gives the %u first carries", carries);
  if (options->carry_final.function == NULL || options->carry_final.in_count != carries || options->carry_final.out_count != 0)
    return ax_error(AX_INVALID_ARGUMENT, "carry_final takes the %u last carries and gives nothing", carries);
  return AX_OK;
}

void ax_emit_pipeline_warp_specialized(const ax_warp_pipeline_options *options, ax_fn body, const ax_value *refs) {
  warps w = {.options = options, .body = body};
  if (ax_failed()) return;
  if (options == NULL) {
    ax_reject_as(function, "there are no options");
    return;
  }
  ax_status status = check_warps(&w);
  if (status == AX_OK && !ax_pipe_take(function, &options->pipeline, 2, refs, &w.pipe)) return;
  if (status == AX_OK) status = check_functions(&w);
  if (status != AX_OK) {
    ax_fail(ax_error_context(status, "%s: ", function));
    return;
  }
  uint32_t count = ax_pipe_count(&w.pipe);
  if (w.pipe.steps == 0 || !ax_pipe_look(&w.pipe)) return;
  w.buffers = ax_trace_alloc((count + 1) * sizeof w.buffers[0]);
  w.full = ax_trace_alloc((count + 1) * sizeof w.full[0]);
  w.consumed = ax_trace_alloc((count + 1) * sizeof w.consumed[0]);
  ax_scratch *scratch = ax_trace_alloc((3 * count + 3) * sizeof scratch[0]);
  if (ax_failed()) return;
  choose(&w);
  count = list_scratch(&w, scratch);
  ax_run_scoped(AX_LIST(count, scratch), options->wg_axis, AX_CLOSURE(within, count, 0, &w), NULL);
}
