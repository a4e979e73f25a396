#include "ir/flow.h"

#include <string.h>

bool ax_flow_eqn(ax_flow *flow, const ax_program *program, const ax_eqn *eqn, const ax_axis_set *in, ax_axis_set *out) {
  ax_differs_args args = {program, eqn, in, out, flow};
  (flow->rule != NULL && eqn->prim->kind != AX_REGION ? flow->rule : eqn->prim->differs)(&args);
  return !flow->failed;
}

static uint32_t most_operands(const ax_program *program) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < program->eqn_count; i++)
    if (program->eqns[i].in_count > most) most = program->eqns[i].in_count;
  return most;
}

static bool walk(ax_flow *flow, const ax_program *program, ax_axis_set *sets) {
  ax_axis_set *in = ax_calloc(most_operands(program), sizeof in[0]);
  flow->failed = flow->failed || in == NULL;
  for (uint32_t i = 0; i < program->eqn_count && !flow->failed; i++) {
    const ax_eqn *eqn = &program->eqns[i];
    for (uint32_t k = 0; k < eqn->in_count; k++) in[k] = sets[eqn->in[k]];
    (void)ax_flow_eqn(flow, program, eqn, in, sets + eqn->out);
  }
  ax_free(in);
  return !flow->failed;
}

const ax_axis_set *ax_flow_program(ax_flow *flow, const ax_program *program, const ax_axis_set *in) {
  ax_memo_entry *entry = ax_memo_ask(flow->memo, flow->question, program, in, program->in_count * sizeof in[0]);
  if (entry != NULL && entry->known) return entry->data;
  ax_axis_set *sets = ax_arena_alloc(&flow->memo->arena, program->value_count * sizeof sets[0]);
  flow->failed = flow->failed || entry == NULL || sets == NULL;
  if (flow->failed) return NULL;
  if (program->in_count > 0) memcpy(sets, in, program->in_count * sizeof in[0]);
  if (!walk(flow, program, sets)) return NULL;
  entry->data = sets;
  entry->known = true;
  return sets;
}

/* What is known of a loop: where it was last begun, and the least sets it came to. */
typedef struct loop {
  ax_axis_set *start, *end;
} loop;

/* A loop is its parameters; no sets have as many bytes as the key that is made of them. */
static loop *known_loop(const ax_differs_args *args, const ax_program *body) {
  ax_flow *flow = args->flow;
  size_t bytes = args->eqn->prim->params_bytes;
  char *key = ax_arena_alloc(&flow->memo->arena, bytes + 1);
  if (key == NULL) return NULL;
  memcpy(key, args->eqn->params, bytes);
  ax_memo_entry *entry = ax_memo_ask(flow->memo, flow->question, body, key, bytes + 1);
  if (entry == NULL) return NULL;
  loop *known = entry->data;
  if (known != NULL) return known;
  known = ax_arena_alloc(&flow->memo->arena, sizeof *known);
  ax_axis_set *sets = ax_arena_alloc(&flow->memo->arena, 2 * (size_t)body->in_count * sizeof sets[0]);
  if (known == NULL || sets == NULL) return NULL;
  *known = (loop){sets, sets + body->in_count};
  entry->data = known;
  return known;
}

/* From sets that hold those of an earlier start, what that came to is reached as well. */
static void begin(const loop *known, uint32_t in_count, ax_axis_set *in, ax_axis_set *start) {
  bool holds = true;
  for (uint32_t i = 0; i < in_count; i++) {
    start[i] = in[i];
    holds = holds && (known->start[i] & ~in[i]) == 0;
  }
  for (uint32_t i = 0; i < in_count && holds; i++) in[i] |= known->end[i];
}

bool ax_flow_loop(const ax_differs_args *args, const ax_program *body, ax_axis_set *in, uint32_t first, uint32_t count,
                  ax_flow_round round) {
  ax_flow *flow = args->flow;
  loop *known = known_loop(args, body);
  ax_axis_set *start = ax_calloc(body->in_count + (size_t)count, sizeof start[0]), *after = start + body->in_count;
  flow->failed = flow->failed || known == NULL || start == NULL;
  if (!flow->failed) begin(known, body->in_count, in, start);
  for (bool changed = true; changed && !flow->failed;) {
    changed = false;
    if (!round(args, in, after)) break;
    for (uint32_t k = 0; k < count; k++) {
      changed = changed || (after[k] & ~in[first + k]) != 0;
      in[first + k] |= after[k];
    }
  }
  if (!flow->failed && body->in_count > 0) {
    memcpy(known->start, start, body->in_count * sizeof start[0]);
    memcpy(known->end, in, body->in_count * sizeof in[0]);
  }
  ax_free(start);
  return !flow->failed;
}
