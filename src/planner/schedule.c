/* Each stage does one pass after the other. A pass begins when the stage is free and what it needs has come: of a forward pass the
   activations from the stage before, of a backward pass the cotangents from the stage behind. With chunks the layers go round the
   stages several times: part c of stage s is the (c * stages + s)-th of all.

   GPipe, 1F1B and interleaved say the order of the passes on each stage. With zero bubbles a stage takes what it can: a backward
   pass by its operands; else a forward pass, unless it holds as many microbatches as there are stages; else the part of a backward pass
   by parameters. */
#include "planner/schedule.h"

#include <math.h>

#include "base/base.h"

typedef struct stage {
  double free, busy;
  int64_t done;        /* passes of its order that are over; zero bubbles: forward passes */
  int64_t back, by;    /* zero bubbles: the other passes that are over */
  int64_t held, most;  /* activations of chunks */
} stage;

typedef struct piping {
  const ax_pipeline *p;
  stage *stages;
  double *forward, *backward; /* by virtual stage and microbatch: when its result is there; NAN: not yet */
  ax_on_stage_pass *on_pass;
  void *context;
} piping;

static int64_t virtual_stages(const ax_pipeline *p) { return p->stages * p->chunks; }

static const ax_stage_times *times_of(const ax_pipeline *p, int64_t stage) {
  return stage == 0 ? &p->first : stage == p->stages - 1 ? &p->last : &p->middle;
}

static double *at(const piping *s, double *table, int64_t virtual_stage, int64_t microbatch) {
  return &table[virtual_stage * s->p->microbatches + microbatch];
}

/* When what the pass needs has come; NAN: that is not known yet. */
static double ready(const piping *s, ax_stage_pass_kind kind, int64_t virtual_stage, int64_t microbatch) {
  if (kind == AX_STAGE_FORWARD) return virtual_stage == 0 ? 0 : *at(s, s->forward, virtual_stage - 1, microbatch) + s->p->message;
  const double own = *at(s, s->forward, virtual_stage, microbatch);
  if (virtual_stage == virtual_stages(s->p) - 1) return own;
  const double behind = *at(s, s->backward, virtual_stage + 1, microbatch) + s->p->message;
  return isnan(own) || isnan(behind) ? NAN : fmax(own, behind);
}

static void pass(piping *s, int64_t n, ax_stage_pass_kind kind, int64_t virtual_stage, int64_t microbatch, double begin, double seconds) {
  stage *at_hand = &s->stages[n];
  begin = fmax(at_hand->free, begin);
  if (s->on_pass != NULL) s->on_pass(s->context, &(ax_stage_pass){kind, n, virtual_stage / s->p->stages, microbatch, begin, seconds});
  at_hand->free = begin + seconds;
  at_hand->busy += seconds;
  if (kind != AX_STAGE_BY_PARAMETERS) *at(s, kind == AX_STAGE_FORWARD ? s->forward : s->backward, virtual_stage, microbatch) = at_hand->free;
  if (kind == AX_STAGE_FORWARD && ++at_hand->held > at_hand->most) at_hand->most = at_hand->held;
}

/* --- Schedules with an order --- */

/* Pass number k of a stage's forward passes, or backward ones: its chunk and microbatch. With chunks, `stages` microbatches go
   through one chunk, then through the next. */
static void place(const ax_pipeline *p, int64_t k, bool forward, int64_t *chunk, int64_t *microbatch) {
  const int64_t turn = p->stages * p->chunks;
  *chunk = p->chunks == 1 ? 0 : k % turn / p->stages;
  *microbatch = p->chunks == 1 ? k : k / turn * p->stages + k % p->stages;
  if (!forward) *chunk = p->chunks - 1 - *chunk;
}

/* Forward passes before the first backward pass. */
static int64_t warm_up(const ax_pipeline *p, int64_t n) {
  const int64_t all = p->microbatches * p->chunks;
  int64_t before = all;
  if (p->schedule == AX_PIPELINE_1F1B) before = p->stages - n;
  if (p->schedule == AX_PIPELINE_INTERLEAVED) before = (p->stages - n - 1) * 2 + (p->chunks - 1) * p->stages + 1;
  return before < all ? before : all;
}

/* Pass number k in the order of a stage: `warm_up` forward ones, then by turns a backward and a forward one, then the rest. */
static ax_stage_pass_kind kind_of(const ax_pipeline *p, int64_t n, int64_t k, int64_t *number) {
  const int64_t all = p->microbatches * p->chunks, warm = warm_up(p, n), turns = 2 * (all - warm);
  *number = k;
  if (k < warm) return AX_STAGE_FORWARD;
  if (k >= warm + turns) return *number = k - all, AX_STAGE_BACKWARD;
  *number = (k - warm) / 2 + ((k - warm) % 2 == 1 ? warm : 0);
  return (k - warm) % 2 == 1 ? AX_STAGE_FORWARD : AX_STAGE_BACKWARD;
}

/* Does the next pass of the stage, if it is known when that can begin. */
static bool go_on_in_order(piping *s, int64_t n) {
  const ax_pipeline *p = s->p;
  const ax_stage_times *times = times_of(p, n);
  int64_t number, chunk, microbatch;
  if (s->stages[n].done == 2 * p->microbatches * p->chunks) return false;
  const ax_stage_pass_kind kind = kind_of(p, n, s->stages[n].done, &number);
  place(p, number, kind == AX_STAGE_FORWARD, &chunk, &microbatch);
  const double begin = ready(s, kind, chunk * p->stages + n, microbatch);
  if (isnan(begin)) return false;
  pass(s, n, kind, chunk * p->stages + n, microbatch, begin, (kind == AX_STAGE_FORWARD ? times->forward : times->backward) / (double)p->chunks);
  if (kind == AX_STAGE_BACKWARD) s->stages[n].held--;
  s->stages[n].done++;
  return true;
}

/* --- Zero bubbles --- */

/* The pass that the stage can begin first; of those that can begin at once, a backward one goes first, and one by parameters last. */
static double first_of(const piping *s, int64_t n, ax_stage_pass_kind *kind) {
  const ax_pipeline *p = s->p;
  const stage *at_hand = &s->stages[n];
  double begin[3] = {INFINITY, INFINITY, INFINITY};
  if (at_hand->done < p->microbatches && at_hand->held < p->stages) begin[AX_STAGE_FORWARD] = ready(s, AX_STAGE_FORWARD, n, at_hand->done);
  if (at_hand->back < at_hand->done) begin[AX_STAGE_BACKWARD] = ready(s, AX_STAGE_BACKWARD, n, at_hand->back);
  if (at_hand->by < at_hand->back) begin[AX_STAGE_BY_PARAMETERS] = at_hand->free;
  static const ax_stage_pass_kind order[] = {AX_STAGE_BACKWARD, AX_STAGE_FORWARD, AX_STAGE_BY_PARAMETERS};
  double best = INFINITY;
  for (int i = 0; i < 3; i++) {
    const double start = isnan(begin[order[i]]) ? INFINITY : fmax(begin[order[i]], at_hand->free);
    if (start >= best) continue;
    best = start;
    *kind = order[i];
  }
  return best;
}

/* Does the pass that begins first on any stage; false: all are over. */
static bool go_on(piping *s) {
  const ax_pipeline *p = s->p;
  double best = INFINITY;
  int64_t which = 0;
  ax_stage_pass_kind kind = AX_STAGE_FORWARD;
  for (int64_t n = 0; n < p->stages; n++) {
    ax_stage_pass_kind own = AX_STAGE_FORWARD;
    const double begin = first_of(s, n, &own);
    if (begin >= best) continue;
    best = begin;
    which = n;
    kind = own;
  }
  if (isinf(best)) return false;
  stage *at_hand = &s->stages[which];
  const ax_stage_times *t = times_of(p, which);
  if (kind == AX_STAGE_FORWARD) pass(s, which, kind, which, at_hand->done++, best, t->forward);
  else if (kind == AX_STAGE_BACKWARD) pass(s, which, kind, which, at_hand->back++, best, t->backward - t->by_parameters);
  else pass(s, which, kind, which, at_hand->by++, best, t->by_parameters), at_hand->held--;
  return true;
}

/* --- All of it --- */

static void run(piping *s) {
  const ax_pipeline *p = s->p;
  for (int64_t i = 0; i < virtual_stages(p) * p->microbatches; i++) s->forward[i] = s->backward[i] = NAN;
  if (p->schedule == AX_PIPELINE_ZERO_BUBBLE) {
    while (go_on(s)) continue;
    return;
  }
  for (bool any = true; any;) {
    any = false;
    for (int64_t n = 0; n < p->stages; n++)
      while (go_on_in_order(s, n)) any = true;
  }
}

ax_status ax_pipeline_run(const ax_pipeline *p, ax_pipelined *out) { return ax_pipeline_visit(p, NULL, NULL, out); }

ax_status ax_pipeline_visit(const ax_pipeline *p, ax_on_stage_pass *on_pass, void *context, ax_pipelined *out) {
  const size_t places = (size_t)(virtual_stages(p) * p->microbatches);
  *out = (ax_pipelined){0};
  if (p->chunks > 1 && p->microbatches % p->stages != 0)
    return ax_error(AX_INVALID_ARGUMENT, "planner: %lld microbatches are interleaved over %lld stages, of which they are no multiple",
                    (long long)p->microbatches, (long long)p->stages);
  piping s = {p, ax_calloc((size_t)p->stages, sizeof(stage)), ax_alloc(places * sizeof(double)), ax_alloc(places * sizeof(double)),
              on_pass, context};
  ax_status status = s.stages != NULL && s.forward != NULL && s.backward != NULL ? AX_OK : ax_out_of_memory(places * sizeof(double));
  if (status == AX_OK) run(&s);
  for (int64_t n = 0; status == AX_OK && n < p->stages; n++) {
    const stage *at_hand = &s.stages[n];
    if (at_hand->free > out->seconds) {
      out->seconds = at_hand->free;
      out->busy = at_hand->busy;
    }
    out->in_flight = fmax(out->in_flight, (double)at_hand->most / (double)p->chunks);
  }
  ax_free(s.stages);
  ax_free(s.forward);
  ax_free(s.backward);
  return status;
}
