/* ax_scan: rounds of tracing its body, until the types of the carries are found, and the equation. */
#include "control/scan.h"
#include "prim/prims.h"

static bool check_lengths(const ax_type *types, uint32_t count, int64_t *length) {
  for (uint32_t i = 0; i < count; i++) {
    if (types[i].rank == 0) {
      ax_reject(&ax_prim_scan, "xs %u is a scalar: there is nothing to loop over", i);
      return false;
    }
    if (*length == -1) *length = types[i].dims[0];
    if (types[i].dims[0] != *length) {
      ax_reject(&ax_prim_scan, "xs %u has the length %lld, not %lld", i, (long long)types[i].dims[0], (long long)*length);
      return false;
    }
  }
  if (*length == -1)
    ax_reject(&ax_prim_scan, "there is neither a length nor xs");
  else if (*length < 0)
    ax_reject(&ax_prim_scan, "the length is %lld", (long long)*length);
  return !ax_failed();
}

/* Finds the carries' types that follow from one trace. */
static ax_status settle_once(ax_scan_tracing *t) {
  const ax_program *program = t->params.body = t->body.program;
  ax_settling *s = &t->settling;
  ax_axis_set *in = ax_trace_alloc(program->in_count * sizeof in[0]);
  ax_spread *made = ax_trace_alloc(s->count * sizeof made[0]);
  if (in == NULL || made == NULL) return AX_OUT_OF_MEMORY;
  t->params.num_consts = t->body.captured_count;
  for (uint32_t i = 0; i < program->in_count; i++) in[i] = program->types[i].spread.varying;
  for (uint32_t k = 0; k < s->count; k++) made[k] = program->types[program->outs[k]].spread;
  const ax_eqn eqn = {.prim = &ax_prim_scan, .params = &t->params, .in_count = program->in_count, .out_count = program->out_count};
  return ax_settle(s, &eqn, in, t->body.captured_count, made);
}

bool ax_scan_begin(ax_scan_tracing *t, ax_function site) {
  t->options.in = t->types;
  t->options.notes = &t->settling.notes;
  return ax_settle_begin(&t->settling, site, t->types, (uint32_t)t->params.num_carry);
}

ax_status ax_scan_open(ax_scan_tracing *t, ax_value **in) {
  ax_body_deinit(&t->body);
  ax_settle_round(&t->settling);
  return ax_body_open(&t->options, in);
}

ax_status ax_scan_close(ax_scan_tracing *t, ax_value *outs) {
  ax_spread *wanted = ax_trace_alloc(t->options.function.out_count * sizeof wanted[0]); /* stacked results: none */
  for (uint32_t k = 0; wanted != NULL && k < t->settling.count; k++) wanted[k] = t->settling.spread[k];
  t->options.out_spread = wanted;
  AX_TRY(ax_body_close(&t->options, outs, &t->body));
  return settle_once(t);
}

void ax_scan_bind(const ax_scan_tracing *t, const ax_value *in, uint32_t in_count, ax_value *out, uint32_t out_count) {
  uint32_t captured = t->body.captured_count, count = captured + in_count;
  ax_value *all = ax_trace_alloc(count * sizeof all[0]);
  if (all == NULL) return;
  for (uint32_t i = 0; i < captured; i++) all[i] = t->body.captured[i];
  for (uint32_t i = 0; i < in_count; i++)
    all[captured + i] = i < t->params.num_carry ? ax_spread_to(in[i], &t->types[i].spread) : in[i];
  ax_bind(&ax_prim_scan, &t->params, all, count, out, out_count);
}

/* Traces the body with carries spread as it makes them: their types grow until they are stable. */
static ax_status trace_body(ax_scan_tracing *t) {
  ax_value *in;
  if (!ax_scan_begin(t, t->options.function.function)) return AX_OUT_OF_MEMORY;
  while (t->settling.changed) {
    AX_TRY(ax_scan_open(t, &in));
    AX_TRY(ax_scan_close(t, ax_builder_call(t->options.function, in)));
  }
  ax_settle_end(&t->settling);
  return AX_OK;
}

void (ax_scan)(ax_fn function, uint32_t carry_count, int64_t length, bool reverse, uint32_t in_count, const ax_value *in,
               uint32_t out_count, ax_value *out) {
  if (!ax_lists_fit("scan", in_count, function.in_count, out_count, function.out_count, out)) return;
  in_count = function.in_count;
  out_count = function.out_count;
  in = ax_take_operands(in, in_count, out, out_count);
  if (carry_count > in_count || carry_count > out_count) {
    (void)ax_reject(&ax_prim_scan, "%u carries, but its body takes %u operands and gives %u results", carry_count, in_count,
                    out_count);
    return;
  }
  ax_type *types = ax_types_of("scan", in, in_count);
  if (types == NULL || !check_lengths(types + carry_count, in_count - carry_count, &length)) return;
  for (uint32_t i = carry_count; i < in_count; i++) types[i] = ax_scan_slice_type(&types[i]);
  ax_scan_tracing t = {.params = {.length = length, .reverse = reverse, .num_carry = carry_count},
                       .types = types,
                       .options = {.owner = "scan", .part = "body", .function = function}};
  ax_status status = trace_body(&t);
  if (status != AX_OK) ax_fail(ax_error_context(status, "scan: body: "));
  if (!ax_failed()) ax_scan_bind(&t, in, in_count, out, out_count);
  ax_body_deinit(&t.body);
}
