/* Blocks that are branches: AX_IF runs its block, then AX_ELSE's, or nothing where there is none. */
#include "control/block.h"
#include "prim/composite.h"

enum { OTHERWISE, THEN, BRANCHES }; /* as in ax_if */

static const char *const parts[] = {"AX_ELSE block", "block"};

void ax_block_begin_if(ax_block_state *b, ax_value predicate) {
  if (!ax_check_operands(b->name, &predicate, 1)) return;
  ax_type type = ax_is_number(predicate) ? (ax_type){0} : ax_typeof(predicate);
  if (ax_is_number(predicate))
    ax_reject_as(b->name, "the predicate is a number of C; `if` takes it");
  else if (!ax_failed() && (type.dtype != AX_BOOL || type.rank != 0 || type.form != AX_ARRAY))
    ax_reject_as(b->name, "the predicate is %s; it must be a bool scalar", ax_operand_string(&type));
  if (ax_failed()) return;
  b->index[0] = ax_convert_element_type(predicate, AX_S32);
  b->cond = (ax_cond_tracing){.owner = b->name, .names = parts, .branch_count = BRANCHES, .out_count = b->count};
  if (!ax_failed()) (void)ax_cond_begin(&b->cond, b->index[0], NULL);
}

static void deinit(ax_block_state *b) { ax_cond_deinit(&b->cond); }

static ax_status open(ax_block_state *b) {
  ax_value *in;
  b->branch = b->runs == 1 ? THEN : OTHERWISE;
  b->handle->then = b->branch == THEN;
  AX_TRY(ax_cond_open(&b->cond, b->branch, &in));
  ax_block_give(b, b->starts);
  return AX_OK;
}

static ax_status close(ax_block_state *b, bool *more) {
  const ax_program *then = b->branch == OTHERWISE ? b->cond.bodies[THEN].program : NULL;
  ax_type *types = then != NULL ? ax_trace_alloc(b->count * sizeof types[0]) : NULL;
  for (uint32_t k = 0; types != NULL && k < b->count; k++) types[k] = *ax_program_out_type(then, k);
  *more = b->branch == THEN;
  return ax_cond_close(&b->cond, b->branch, ax_block_take(b, types, 0));
}

static void bind(ax_block_state *b) {
  ax_value *out = ax_trace_alloc(b->count * sizeof out[0]);
  ax_status status = ax_cond_join(&b->cond);
  if (status != AX_OK) ax_fail(status);
  if (ax_failed() || out == NULL) return;
  ax_cond_bind(&b->cond, b->index[0], NULL, out);
  ax_block_give(b, out);
}

const ax_block_form ax_block_if = {open, close, bind, deinit};
