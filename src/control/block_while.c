/* Blocks that are whiles: AX_WHILE, and AX_LOOP with a bound that only a run knows, whose index and upper bound are carries after the
   variables. */
#include "control/block.h"
#include "control/fori_loop.h"
#include "prim/composite.h"

void ax_block_begin_while(ax_block_state *b) {
  ax_while_tracing *t = &b->loop;
  if (b->counts && !ax_fori_values(b->name, b->index)) return;
  if (!ax_block_check_starts(b)) return;
  for (uint32_t k = 0; k < 2 && b->counts; k++) b->starts[b->count + k] = b->index[k];
  t->owner = b->name;
  t->part = "block";
  t->count = b->count + (b->counts ? 2 : 0);
  t->types = ax_types_of(b->name, b->starts, t->count);
  if (!ax_failed()) (void)ax_while_begin(t, (ax_function)(uintptr_t)b->call);
}

static void deinit(ax_block_state *b) { ax_while_deinit(&b->loop); }

ax_status ax_block_open_body(ax_block_state *b) {
  ax_value *in;
  AX_TRY(ax_while_open(&b->loop, &in));
  if (in == NULL) return AX_OK;
  b->carries = in;
  ax_block_give(b, in);
  if (b->counts) b->handle->index = in[b->count];
  return AX_OK;
}

ax_status ax_block_close_test(ax_block_state *b, ax_value condition) {
  if (ax_check_operands(b->name, &condition, 1)) {
    ax_type type = ax_is_number(condition) ? (ax_type){0} : ax_typeof(condition);
    if (ax_is_number(condition))
      ax_reject_as(b->name, "the condition is a number of C");
    else if (!ax_failed() && (type.dtype != AX_BOOL || type.rank != 0 || type.form != AX_ARRAY))
      ax_reject_as(b->name, "the condition is %s; it must be a bool scalar", ax_operand_string(&type));
  }
  return ax_while_close_test(&b->loop, ax_failed() ? NULL : &condition);
}

/* AX_WHILE's condition is an expression of the head, which C evaluates next. */
static ax_status open(ax_block_state *b) {
  ax_value *in;
  AX_TRY(ax_while_open_test(&b->loop, &in));
  if (in == NULL) return AX_OK;
  if (!b->counts) {
    ax_block_give(b, in);
    return AX_OK;
  }
  ax_value is_below = ax_lt(in[b->count], in[b->count + 1]);
  ax_stamp(b->call);
  AX_TRY(ax_block_close_test(b, is_below));
  return ax_block_open_body(b);
}

static ax_status close(ax_block_state *b, bool *more) {
  ax_while_tracing *t = &b->loop;
  ax_value *outs = ax_block_take_round(b, t->types, 2);
  if (outs != NULL && b->counts) {
    outs[b->count] = ax_fori_next(b->name, b->carries[b->count]);
    outs[b->count + 1] = b->carries[b->count + 1];
    ax_stamp(b->call);
  }
  AX_TRY(ax_while_close(t, outs));
  if (b->is_compared) {
    AX_TRY(ax_block_compare(b, &b->test, &t->cond));
    AX_TRY(ax_block_compare(b, &b->body, &t->body));
  }
  *more = t->settling.changed;
  if (!*more && !b->is_compared && !b->reruns) {
    *more = b->is_compared = true;
    b->test = t->cond;
    b->body = t->body;
    t->cond = t->body = (ax_body){0};
  }
  if (!*more) ax_settle_end(&t->settling);
  return AX_OK;
}

static void bind(ax_block_state *b) {
  ax_value *out = ax_trace_alloc(b->loop.count * sizeof out[0]);
  if (out == NULL) return;
  ax_while_bind(&b->loop, b->starts, out);
  ax_block_give(b, out);
}

const ax_block_form ax_block_while = {open, close, bind, deinit};
