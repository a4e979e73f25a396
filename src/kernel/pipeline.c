/* ax_emit_pipeline: a loop over a grid whose blocks are brought in, and results stored, while the body works on others.

     step                0        1        2        3                     stages 2, delay 0
     core       fetch 0,1| body 0  | body 1  | body 2  | body 3  | the end
                         | store 0 | store 1 | store 2 | store 3 | waits for all stores
                         | fetch 2 | fetch 3 |
     slot of operands      0         1         0         1

   Block u of an operand is in slot u mod stages, which step u - stages used last. It is fetched when that step is over, or `delay`
   steps later, as the body may leave something under way that still reads the slot.

   A result has the same slots, but goes on to the next one when its block changes, and is stored then: so the body finds what it
   left in a block that stays the same, and can add to it. (Storing at the first step of a block, and again at the last step of all,
   as was done where this comes from, loses what the steps between have written, and has two copies under way to one place.) Before
   a step at most stages - 1 - delay groups of stores are under way, so that the slot that its block comes to, left at least
   `stages` steps ago, has been read. What matters for slots is that they have been read; where a result comes back to a block, the
   store before must have been written too, which is waited for where the index map does not rule it out.

   What no number of the grid changes has one slot: operands are fetched once, results stored behind the loop. */
#include <string.h>

#include "kernel/pipeline.h"

static ax_value s32(int64_t number) { return ax_as("pipeline", ax_integer(number), AX_S32); }

/* --- Results within the loop --- */

static bool in_loop(const ax_pipe *pipe, uint32_t i) { return ax_pipe_is_out(pipe, i) && !pipe->of[i].invariant; }

bool ax_pipe_stores_in_loop(const ax_pipe *pipe) {
  for (uint32_t i = pipe->in_count; i < ax_pipe_count(pipe); i++)
    if (in_loop(pipe, i)) return true;
  return false;
}

int64_t ax_pipe_pending(const ax_pipe *pipe) {
  int64_t delay = 0;
  for (uint32_t i = pipe->in_count; i < ax_pipe_count(pipe); i++)
    if (in_loop(pipe, i) && pipe->of[i].delay > delay) delay = pipe->of[i].delay;
  return pipe->stages - 1 - delay;
}

uint32_t ax_pipe_carries(const ax_pipe *pipe) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < ax_pipe_count(pipe); i++)
    if (in_loop(pipe, i)) count += 1 + pipe->of[i].whole.rank;
  return count;
}

static bool index_at(const ax_pipe *pipe, const ax_piped *of, ax_value step, ax_value *index) {
  ax_value ids[AX_MAX_RANK];
  ax_pipe_ids(pipe, step, ids);
  if (!ax_pipe_index(pipe, of, ids, index)) return false;
  for (uint32_t d = 0; d < of->whole.rank; d++) index[d] = ax_as(pipe->function, index[d], AX_S32);
  return !ax_failed();
}

void ax_pipe_first_carries(const ax_pipe *pipe, ax_value *out) {
  for (uint32_t i = 0; i < ax_pipe_count(pipe); i++) {
    if (!in_loop(pipe, i)) continue;
    out[0] = s32(0);
    if (!index_at(pipe, &pipe->of[i], ax_integer(0), out + 1)) return;
    out += 1 + pipe->of[i].whole.rank;
  }
}

void ax_pipe_refs(const ax_pipe *pipe, const ax_value *buffers, ax_value in_slot, const ax_value *carries, ax_value *refs) {
  for (uint32_t i = 0; i < ax_pipe_count(pipe); i++) {
    const ax_piped *of = &pipe->of[i];
    if (of->pinned) refs[i] = of->ref;
    else if (of->invariant) refs[i] = ax_ref_at(buffers[i], ax_integer(0));
    else refs[i] = ax_ref_at(buffers[i], in_loop(pipe, i) ? carries[0] : in_slot);
    if (in_loop(pipe, i)) carries += 1 + of->whole.rank;
  }
}

void ax_pipe_next_carries(const ax_pipe *pipe, ax_value step, const ax_value *carries, ax_value *out, ax_value *changes) {
  ax_value last = ax_eq(step, ax_integer(pipe->steps - 1)), next = ax_pipe_rest(ax_add(step, ax_integer(1)), pipe->steps);
  for (uint32_t i = 0; i < ax_pipe_count(pipe); i++) {
    const ax_piped *of = &pipe->of[i];
    if (!in_loop(pipe, i)) continue;
    if (!index_at(pipe, of, next, out + 1)) return;
    ax_value change = last;
    for (uint32_t d = 0; d < of->whole.rank; d++) change = ax_or(change, ax_ne(carries[1 + d], out[1 + d]));
    out[0] = ax_select_n(change, carries[0], ax_pipe_rest(ax_add(carries[0], ax_integer(1)), pipe->stages));
    *changes++ = change;
    carries += 1 + of->whole.rank;
    out += 1 + of->whole.rank;
  }
}

void ax_pipe_store_changed(const ax_pipe *pipe, const ax_value *buffers, const ax_value *carries, const ax_value *changes) {
  bool revisits = false;
  for (uint32_t i = pipe->in_count; i < ax_pipe_count(pipe); i++) revisits = revisits || (in_loop(pipe, i) && pipe->of[i].revisits);
  if (revisits) ax_copy_wait_groups(0, false);
  for (uint32_t i = 0; i < ax_pipe_count(pipe); i++) {
    if (!in_loop(pipe, i)) continue;
    ax_pipe_store(pipe, &pipe->of[i], carries + 1, ax_ref_at(buffers[i], carries[0]), changes++);
    carries += 1 + pipe->of[i].whole.rank;
  }
  ax_copy_commit_group();
}

void ax_pipe_store_invariant(const ax_pipe *pipe, const ax_value *buffers) {
  ax_value index[AX_MAX_RANK];
  for (uint32_t i = pipe->in_count; i < ax_pipe_count(pipe); i++) {
    if (pipe->of[i].pinned || !pipe->of[i].invariant) continue;
    if (!index_at(pipe, &pipe->of[i], ax_integer(0), index)) return;
    ax_pipe_store(pipe, &pipe->of[i], index, ax_ref_at(buffers[i], ax_integer(0)), NULL);
  }
  ax_copy_commit_group();
}

/* --- Within the scope --- */

typedef struct emission {
  const ax_pipe *pipe;
  ax_fn body;
  ax_value *buffers;        /* by operand; those that are pinned have none */
  ax_value full, invariant; /* barriers: copies arrive when they are done */
  bool has_full, has_invariant;
} emission;

static bool is_fetched(const ax_pipe *pipe, uint32_t i, bool invariant) {
  return !ax_pipe_is_out(pipe, i) && !pipe->of[i].pinned && pipe->of[i].invariant == invariant;
}

/* Operand i's block of a step into its slot. */
static void fetch(const emission *e, uint32_t i, ax_value step) {
  const ax_pipe *pipe = e->pipe;
  const ax_piped *of = &pipe->of[i];
  ax_value index[AX_MAX_RANK];
  ax_value slot = of->invariant ? ax_integer(0) : ax_pipe_rest(ax_as(pipe->function, step, AX_S32), pipe->stages);
  if (!index_at(pipe, of, step, index)) return;
  ax_value barrier = ax_ref_at(of->invariant ? e->invariant : e->full, slot);
  ax_pipe_fetch(pipe, of, index, ax_ref_at(e->buffers[i], slot), &barrier);
}

/* Fetches, for a step to come, the operands that are released `delay` steps late. */
typedef struct fetching {
  const emission *e;
  int64_t delay;
  ax_value step;
} fetching;

static AX_BODY(fetch_delayed) {
  const fetching *f = context;
  for (uint32_t i = 0; i < f->e->pipe->in_count; i++)
    if (is_fetched(f->e->pipe, i, false) && f->e->pipe->of[i].delay == f->delay) fetch(f->e, i, f->step);
}

static void fetch_ahead(const emission *e, ax_value step) {
  const ax_pipe *pipe = e->pipe;
  if (pipe->steps == pipe->stages) return; /* all is there */
  for (int64_t delay = 0; delay < pipe->stages; delay++) {
    bool any = false;
    for (uint32_t i = 0; i < pipe->in_count; i++) any = any || (is_fetched(pipe, i, false) && pipe->of[i].delay == delay);
    if (!any) continue;
    fetching f = {e, delay, ax_add(step, ax_integer(pipe->stages - delay))};
    ax_value due = ax_lt(f.step, ax_integer(pipe->steps));
    if (delay > 0) due = ax_and(due, ax_ge(step, ax_integer(delay)));
    ax_pipe_where(due, fetch_delayed, &f);
  }
}

/* Loads a result's slot from the whole where its block changes. */
typedef struct loading {
  const emission *e;
  uint32_t i;
  const ax_value *carries; /* slot and block */
} loading;

static AX_BODY(load_block) {
  const loading *l = context;
  ax_pipe_fetch(l->e->pipe, &l->e->pipe->of[l->i], l->carries + 1, ax_ref_at(l->e->buffers[l->i], l->carries[0]), NULL);
}

/* changes NULL: the first ones. */
static void load_changed(const emission *e, const ax_value *carries, const ax_value *changes, ax_value step) {
  const ax_pipe *pipe = e->pipe;
  for (uint32_t i = 0; i < ax_pipe_count(pipe); i++) {
    if (!in_loop(pipe, i)) continue;
    loading l = {e, i, carries};
    if (pipe->of[i].loaded && changes == NULL) load_block(NULL, NULL, &l);
    else if (pipe->of[i].loaded) ax_pipe_where(ax_and(*changes, ax_ne(step, ax_integer(pipe->steps - 1))), load_block, &l);
    if (changes != NULL) changes++;
    carries += 1 + pipe->of[i].whole.rank;
  }
}

static AX_BODY(step_body) {
  const emission *e = context;
  const ax_pipe *pipe = e->pipe;
  ax_value step = in[0], slot = ax_pipe_rest(step, pipe->stages), ids[AX_MAX_RANK];
  ax_value *refs = ax_trace_alloc(ax_pipe_count(pipe) * sizeof refs[0]),
           *changes = ax_trace_alloc((pipe->out_count + 1) * sizeof changes[0]);
  bool stores = ax_pipe_stores_in_loop(pipe);
  if (refs == NULL || changes == NULL) return;
  if (e->has_full) ax_barrier_wait(ax_ref_at(e->full, slot));
  if (stores) ax_copy_wait_groups(ax_pipe_pending(pipe), true);
  ax_pipe_ids(pipe, step, ids);
  ax_pipe_refs(pipe, e->buffers, slot, in + 1, refs);
  ax_pipe_body(pipe, e->body, ids, refs);
  if (stores) ax_commit_smem();
  ax_pipe_next_carries(pipe, step, in + 1, out, changes);
  if (stores) ax_pipe_store_changed(pipe, e->buffers, in + 1, changes);
  if (pipe->in_place && stores) ax_copy_wait_groups(0, false);
  fetch_ahead(e, step);
  load_changed(e, out, changes, step);
}

static void take_refs(emission *e, const ax_value *in) {
  const ax_pipe *pipe = e->pipe;
  for (uint32_t i = 0; i < ax_pipe_count(pipe); i++)
    if (!pipe->of[i].pinned) e->buffers[i] = *in++;
  if (e->has_full) e->full = *in++;
  if (e->has_invariant) e->invariant = *in++;
}

/* All that can be fetched before the first step. */
static void begin(const emission *e, ax_value *carries) {
  const ax_pipe *pipe = e->pipe;
  for (uint32_t i = 0; i < pipe->in_count; i++)
    if (is_fetched(pipe, i, true)) fetch(e, i, ax_integer(0));
  for (int64_t step = 0; step < pipe->stages; step++)
    for (uint32_t i = 0; i < pipe->in_count; i++)
      if (is_fetched(pipe, i, false)) fetch(e, i, ax_integer(step));
  ax_pipe_first_carries(pipe, carries);
  load_changed(e, carries, NULL, ax_integer(0));
  for (uint32_t i = pipe->in_count; i < ax_pipe_count(pipe); i++)
    if (pipe->of[i].loaded && pipe->of[i].invariant && !pipe->of[i].pinned) {
      ax_value index[AX_MAX_RANK];
      if (index_at(pipe, &pipe->of[i], ax_integer(0), index))
        ax_pipe_fetch(pipe, &pipe->of[i], index, ax_ref_at(e->buffers[i], ax_integer(0)), NULL);
    }
  if (e->has_invariant) ax_barrier_wait(ax_ref_at(e->invariant, ax_integer(0)));
}

static AX_BODY(within) {
  emission *e = context;
  const ax_pipe *pipe = e->pipe;
  uint32_t carries = ax_pipe_carries(pipe);
  ax_value *state = ax_trace_alloc((carries + 1) * sizeof state[0]);
  if (state == NULL) return;
  take_refs(e, in);
  begin(e, state);
  ax_fori_loop(ax_integer(0), ax_integer(pipe->steps), AX_CLOSURE(step_body, 1 + carries, carries, e), state, state);
  if (!ax_pipe_stores_in_loop(pipe)) ax_commit_smem();
  ax_pipe_store_invariant(pipe, e->buffers);
  ax_copy_wait_groups(0, false);
}

/* --- The function --- */

void ax_pipe_emit(const ax_pipe *pipe, ax_fn body) {
  emission e = {.pipe = pipe, .body = body, .buffers = ax_trace_alloc(ax_pipe_count(pipe) * sizeof e.buffers[0])};
  ax_scratch *scratch = ax_trace_alloc((ax_pipe_count(pipe) + 2) * sizeof scratch[0]);
  uint32_t count = 0, varying = 0, invariant = 0;
  if (ax_failed() || pipe->steps == 0) return;
  for (uint32_t i = 0; i < ax_pipe_count(pipe); i++) {
    if (!pipe->of[i].pinned) scratch[count++] = ax_pipe_scratch(pipe, &pipe->of[i]);
    varying += is_fetched(pipe, i, false);
    invariant += is_fetched(pipe, i, true);
  }
  e.has_full = varying > 0;
  e.has_invariant = invariant > 0;
  if (e.has_full) scratch[count++] = (ax_scratch){.type = ax_barrier_type(AX_LIST(1, &pipe->stages)), .arrivals = varying};
  if (e.has_invariant) scratch[count++] = (ax_scratch){.type = ax_barrier_type(AX_DIMS(1)), .arrivals = invariant};
  ax_run_scoped(AX_LIST(count, scratch), NULL, AX_CLOSURE(within, count, 0, &e), NULL);
}

void ax_emit_pipeline(const ax_pipeline_options *options, ax_fn body, const ax_value *refs) {
  static const char function[] = "emit_pipeline";
  ax_pipe pipe;
  if (ax_failed()) return;
  if (options == NULL) {
    ax_reject_as(function, "there are no options");
    return;
  }
  if (!ax_pipe_take(function, options, 1, refs, &pipe)) return;
  if (body.in_count != ax_pipe_count(&pipe) || body.out_count != 0) {
    ax_reject_as(function, "the body takes %u refs and gives %u results; there are %u operands and %u results, and it gives none",
                 body.in_count, body.out_count, pipe.in_count, pipe.out_count);
    return;
  }
  if (pipe.steps > 0 && ax_pipe_look(&pipe)) ax_pipe_emit(&pipe, body);
}
