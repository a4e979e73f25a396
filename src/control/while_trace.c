/* ax_while: rounds of tracing its condition and its body, until the types of the carries are found, and the equation. */
#include "control/while.h"
#include "prim/prims.h"

static ax_while_params params_of(const ax_while_tracing *t) {
  return (ax_while_params){t->cond.program, t->cond.captured_count, t->body.program, t->body.captured_count};
}

/* Finds the carries' types that follow from one trace. */
static ax_status settle_once(ax_while_tracing *t) {
  const ax_program *cond = t->cond.program, *body = t->body.program;
  const ax_while_params params = params_of(t);
  uint32_t cond_consts = t->cond.captured_count, first = cond_consts + t->body.captured_count;
  ax_axis_set *in = ax_trace_alloc((first + (size_t)t->count) * sizeof in[0]);
  ax_spread *made = ax_trace_alloc(t->count * sizeof made[0]);
  if (in == NULL || made == NULL) return AX_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < first; i++)
    in[i] = i < cond_consts ? cond->types[i].spread.varying : body->types[i - cond_consts].spread.varying;
  for (uint32_t k = 0; k < t->count; k++) {
    made[k] = body->types[body->outs[k]].spread;
    ax_spread_vary(&made[k], cond->types[cond->outs[0]].spread.varying);
  }
  const ax_eqn eqn = {.prim = &ax_prim_while, .params = &params, .in_count = first + t->count, .out_count = t->count};
  return ax_settle(&t->settling, &eqn, in, first, made);
}

bool ax_while_begin(ax_while_tracing *t, ax_function site) { return ax_settle_begin(&t->settling, site, t->types, t->count); }

/* The options for tracing the condition, or the body. */
static ax_body_options options_of(ax_while_tracing *t, bool is_body) {
  return (ax_body_options){.owner = t->owner,
                           .part = is_body ? t->part : "condition",
                           .in = t->types,
                           .notes = &t->settling.notes,
                           .function = {.in_count = t->count, .out_count = is_body ? t->count : 1},
                           .out_spread = is_body ? t->settling.spread : NULL};
}

ax_status ax_while_open_test(ax_while_tracing *t, ax_value **in) {
  const ax_body_options options = options_of(t, false);
  ax_body_deinit(&t->cond);
  ax_body_deinit(&t->body);
  ax_settle_round(&t->settling);
  return ax_body_open(&options, in);
}

ax_status ax_while_close_test(ax_while_tracing *t, ax_value *outs) {
  const ax_body_options options = options_of(t, false);
  return ax_body_close(&options, outs, &t->cond);
}

ax_status ax_while_open(ax_while_tracing *t, ax_value **in) {
  const ax_body_options options = options_of(t, true);
  return ax_body_open(&options, in);
}

ax_status ax_while_close(ax_while_tracing *t, ax_value *outs) {
  const ax_body_options options = options_of(t, true);
  AX_TRY(ax_body_close(&options, outs, &t->body));
  return settle_once(t);
}

void ax_while_bind(const ax_while_tracing *t, const ax_value *in, ax_value *out) {
  uint32_t cond_consts = t->cond.captured_count, body_consts = t->body.captured_count;
  uint32_t count = cond_consts + body_consts + t->count;
  ax_value *all = ax_trace_alloc(count * sizeof all[0]);
  if (all == NULL) return;
  for (uint32_t i = 0; i < cond_consts; i++) all[i] = t->cond.captured[i];
  for (uint32_t i = 0; i < body_consts; i++) all[cond_consts + i] = t->body.captured[i];
  for (uint32_t k = 0; k < t->count; k++) all[cond_consts + body_consts + k] = ax_spread_to(in[k], &t->settling.spread[k]);
  const ax_while_params params = params_of(t);
  ax_bind(&ax_prim_while, &params, all, count, out, t->count);
}

void ax_while_deinit(ax_while_tracing *t) {
  ax_body_deinit(&t->cond);
  ax_body_deinit(&t->body);
}

static ax_status trace_test(ax_while_tracing *t, ax_fn condition) {
  ax_value *in;
  AX_TRY(ax_while_open_test(t, &in));
  return ax_while_close_test(t, ax_builder_call(condition, in));
}

static ax_status trace_body(ax_while_tracing *t, ax_fn body) {
  ax_value *in;
  AX_TRY(ax_while_open(t, &in));
  return ax_while_close(t, ax_builder_call(body, in));
}

static ax_status trace_all(ax_while_tracing *t, ax_fn condition, ax_fn body) {
  if (!ax_while_begin(t, body.function)) return AX_OUT_OF_MEMORY;
  while (t->settling.changed) {
    ax_status status = trace_test(t, condition);
    if (status != AX_OK) return ax_error_context(status, "while: condition: ");
    status = trace_body(t, body);
    if (status != AX_OK) return ax_error_context(status, "while: body: ");
  }
  ax_settle_end(&t->settling);
  return AX_OK;
}

/* Whether both take and give the carries; or the trace has failed. */
static bool functions_agree(ax_fn condition, ax_fn body) {
  uint32_t count = body.out_count;
  if (body.in_count == count && condition.in_count == count && condition.out_count == 1) return true;
  if (condition.out_count != 1)
    (void)ax_reject(&ax_prim_while, "the condition gives %u results; it must give 1", condition.out_count);
  else
    (void)ax_reject(&ax_prim_while,
                    "the body takes %u operands and gives %u results, the condition takes %u: all three are the carries",
                    body.in_count, count, condition.in_count);
  return false;
}

void (ax_while)(ax_fn condition, ax_fn body, uint32_t in_count, const ax_value *in, uint32_t out_count, ax_value *out) {
  uint32_t count = body.out_count;
  if (!functions_agree(condition, body) || !ax_lists_fit("while", in_count, count, out_count, count, out)) {
    ax_poison_list(out_count, count, out);
    return;
  }
  in = ax_take_operands(in, count, out, count);
  ax_while_tracing t = {.owner = "while", .part = "body", .count = count, .types = ax_types_of("while", in, count)};
  if (t.types == NULL) return;
  ax_status status = trace_all(&t, condition, body);
  if (status != AX_OK) ax_fail(status);
  if (!ax_failed()) ax_while_bind(&t, in, out);
  ax_while_deinit(&t);
}
