/* Blocks of C as bodies: for (begin; next; ) { the block }.

     next    ends the run before: the variables' values are the body's results; begins the next: a trace, in which the variables
     hold its operands left    C has left the block's scope. Where no run is under way, next had ended the last; else the block
     was left before its end

   A loop's block is run until the types of its carries are found, as a function is traced (prim/settle.h), and once more. What
   it makes then must be equal: a variable that should be a carry holds a value of the run before, which has finished, and a C
   variable that a round changes makes another program. A loop in a block that is run again is not checked again, so that n
   loops in one another take n + 1 runs of the innermost, not 2^n. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "control/block.h"
#include "control/fori_loop.h"
#include "prim/composite.h"

/* --- Variables --- */

/* The start of the next item in a list of C expressions: behind a comma outside of brackets and quotes. */
static const char *next_item(const char *text) {
  int depth = 0;
  char quote = 0;
  for (; *text != '\0'; text++) {
    if (quote != 0) {
      if (*text == '\\' && text[1] != '\0')
        text++;
      else if (*text == quote)
        quote = 0;
    } else if (*text == '"' || *text == '\'')
      quote = *text;
    else if (strchr("([{", *text) != NULL)
      depth++;
    else if (strchr(")]}", *text) != NULL)
      depth--;
    else if (*text == ',' && depth == 0)
      return text + 1;
  }
  return text;
}

const char *ax_block_variable_name(const ax_block_state *b, uint32_t k, char text[64]) {
  const char *at = next_item(b->listed);
  for (uint32_t i = 0; i < k; i++) at = next_item(at);
  while (isspace((unsigned char)*at) || *at == '&') at++;
  const char *end = next_item(at);
  size_t length = (size_t)(end - at) - (end > at && end[-1] == ',');
  while (length > 0 && isspace((unsigned char)at[length - 1])) length--;
  snprintf(text, 64, "%.*s", (int)(length < 63 ? length : 63), at);
  return text;
}

/* "AX_LOOP: x": what ax_check_operands and others take for a function. */
static const char *context_of(const ax_block_state *b, uint32_t k, char text[128]) {
  char name[64];
  bool is_otherwise = b->form == &ax_block_if && b->branch == 0;
  snprintf(text, 128, "%s: %s%s", b->name, ax_block_variable_name(b, k, name),
           is_otherwise ? ", where the predicate is false" : "");
  return text;
}

void ax_block_give(const ax_block_state *b, const ax_value *values) {
  for (uint32_t k = 0; k < b->count; k++) *b->variables[k] = values != NULL ? values[k] : ax_poison;
}

bool ax_block_check_starts(const ax_block_state *b) {
  char text[128], name[64];
  for (uint32_t k = 0; k < b->count && !ax_failed(); k++)
    if (ax_check_operands(context_of(b, k, text), &b->starts[k], 1) && ax_is_number(b->starts[k]))
      ax_reject_as(b->name, "%s starts as a number; ax_full gives it a dtype and a shape", ax_block_variable_name(b, k, name));
  return !ax_failed();
}

static bool check_variable(const ax_block_state *b, uint32_t k, ax_value *value, const ax_type *type) {
  char text[128], name[64];
  if (!ax_check_operands(context_of(b, k, text), value, 1)) return false;
  if (ax_is_number(*value)) {
    if (type == NULL || type->rank != 0 || type->form != AX_ARRAY)
      return ax_reject_as(b->name, "%s is a number when the block ends; ax_full gives it a dtype and a shape",
                          ax_block_variable_name(b, k, name)),
             false;
    *value = ax_as(text, *value, type->dtype);
  }
  ax_type made = ax_typeof(*value);
  if (ax_failed() || type == NULL) return !ax_failed();
  if (made.form == type->form && made.dtype == type->dtype && ax_same_shape(&made, type)) return true;
  const ax_mesh *axes = &ax_builder_current()->axes;
  if (b->form == &ax_block_if)
    ax_reject_as(b->name, "%s is %s in the block, but %s where the predicate is false", ax_block_variable_name(b, k, name),
                 ax_type_string(type, axes), ax_type_string(&made, axes));
  else
    ax_reject_as(b->name, "%s starts as %s, but the block makes it %s; what a round leaves is what the next begins with",
                 ax_block_variable_name(b, k, name), ax_type_string(type, axes), ax_type_string(&made, axes));
  return false;
}

ax_value *ax_block_take(ax_block_state *b, const ax_type *types, uint32_t extra) {
  ax_value *values = ax_trace_alloc(((size_t)b->count + extra) * sizeof values[0]);
  for (uint32_t k = 0; values != NULL && k < b->count; k++) {
    values[k] = *b->variables[k];
    if (!check_variable(b, k, &values[k], types != NULL ? &types[k] : NULL)) return NULL;
  }
  return ax_failed() ? NULL : values;
}

ax_value *ax_block_take_round(ax_block_state *b, const ax_type *types, uint32_t extra) {
  ax_value *values = ax_block_take(b, types, extra);
  if (values == NULL || b->trace->eqn_count > 0 || b->slices.stacked_count > 0) return values;
  if (!ax_block_same_values(values, b->carries, b->count)) return values;
  ax_reject_as(b->name, "the block does nothing; a `;` behind its head ends it there");
  return NULL;
}

bool ax_block_same_values(const ax_value *a, const ax_value *b, uint32_t count) {
  uint32_t k = 0;
  while (k < count && a[k].trace == b[k].trace && a[k].id == b[k].id) k++;
  return k == count;
}

ax_status ax_block_compare(const ax_block_state *b, const ax_body *earlier, const ax_body *body) {
  if (body != NULL && ax_program_equal(earlier->program, body->program) && earlier->captured_count == body->captured_count &&
      ax_block_same_values(earlier->captured, body->captured, body->captured_count))
    return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT,
                  "%s: the block makes something else each time that C runs it: it depends on a C variable that it changes. "
                  "A variable that rounds change is a value and is listed: &variable",
                  b->name);
}

/* --- Runs --- */

static void forget(ax_block_state *b) {
  b->form->deinit(b);
  ax_body_deinit(&b->body);
  ax_body_deinit(&b->test);
  b->trace = NULL;
}

/* C went out of the block before its end, so the trace of its run is given up. The current trace, which is the one around, is told.
   The handle may be gone already. */
static void left(void *state, const ax_builder *trace) {
  ax_block_state *b = state;
  ax_builder *around = ax_builder_current();
  const char *last = trace->eqn_count > 0 ? trace->eqns[trace->eqn_count - 1].location : NULL;
  forget(b);
  if (around == NULL || around->status != AX_OK) return;
  if (trace->status != AX_OK)
    ax_fail(ax_error(trace->status, "%s: %s", b->call, trace->message));
  else
    ax_fail(ax_error(AX_INVALID_ARGUMENT,
                     "%s: its block was left by break, return, goto, longjmp or an exception%s%s; a block runs to its end",
                     b->call, last != NULL ? ", after " : "", last != NULL ? last : ""));
  around->blamed = true;
}

/* The block whose run a trace is, until the run has come to its end. */
static const ax_context_key run = {.name = "run of a block", .given_up = left};

ax_block_state *ax_block_of(const ax_builder *trace) { return ax_context_own(trace, &run); }

/* Is this trace in progress on this thread? */
static bool is_current(uint64_t serial) {
  const ax_builder *builder = ax_builder_current();
  while (builder != NULL && builder->serial != serial) builder = builder->parent;
  return builder != NULL;
}

/* A block whose code C runs once more, for the same loop. Checks that cannot change are left out in it. */
static const ax_context_key rerun = {.name = "block run again"};

/* The trace that was just begun is this block's. */
static void mark(ax_block_state *b) {
  ax_builder *trace = b->trace = ax_builder_current();
  trace->frame = b->frame; /* all that the block calls has frames below it */
  trace->block = b->call;
  ax_context_set(&run, b);
  /* A second run of a loop's block repeats the first. A branch's second run is of its other block, which did not run before. */
  if (b->reruns || (b->runs > 1 && b->form != &ax_block_if)) ax_context_set(&rerun, b);
}

/* No more runs: the variables are poison where the trace has failed. */
static bool finish(ax_code_block *block, ax_status status) {
  ax_block_state *b = block->inside;
  block->inside = NULL;
  if (status != AX_OK) ax_fail(status);
  if (ax_failed()) ax_block_give(b, NULL);
  forget(b);
  ax_stamp(b->call);
  return false;
}

/* A trace was begun for the block, or `status` says why not. */
static bool went_on(ax_code_block *block, ax_status status) {
  ax_block_state *b = block->inside;
  if (ax_builder_current()->serial != block->around) mark(b);
  if (status == AX_OK && !ax_failed()) return true;
  if (b->trace != NULL) {
    ax_body none;
    ax_context_set(&run, NULL);
    status = ax_body_close(&(ax_body_options){0}, NULL, &none);
    b->trace = NULL;
  }
  return finish(block, status);
}

static bool open_run(ax_code_block *block) {
  ax_block_state *b = block->inside;
  b->runs++;
  block->stage = AX_BLOCK_BEGUN;
  return went_on(block, b->form->open(b));
}

/* Cancels the traces that C code in the block left open. False: this run's trace was among them, or was cancelled before, so the
   trace around the block is current. */
static bool end_inner(const ax_block_state *b, uint64_t around) {
  while (ax_builder_current() != b->trace && ax_builder_current()->serial != around) ax_builder_cancel(ax_builder_current());
  return ax_builder_current() == b->trace;
}

/* The run under way is given up, and the trace around told why. */
static void give_up_run(ax_block_state *b, uint64_t around) {
  while (ax_builder_current()->serial != around) ax_builder_cancel(ax_builder_current());
  ax_block_give(b, NULL);
}

/* The state of a block whose run has come to an end of C's; NULL: there is nothing to go on with. */
static ax_block_state *resume(ax_code_block *block) {
  ax_block_state *b = block->inside;
  bool is_there = b != NULL && is_current(block->around);
  if (is_there) b->handle = block;
  if (is_there && (b->runs == 0 || end_inner(b, block->around))) return b;
  if (is_there) give_up_run(b, block->around);
  block->inside = NULL;
  return NULL;
}

bool ax_block_next(ax_code_block *block) {
  ax_block_state *b = resume(block);
  bool more = false;
  if (b == NULL) return false;
  if (b->runs == 0) return open_run(block);
  if (b->declares && block->stage != AX_BLOCK_ENDED) { /* `break` ended the inner `for` */
    block->inside = NULL;
    give_up_run(b, block->around);
    return false;
  }
  ax_context_set(&run, NULL);
  ax_status status = b->form->close(b, &more);
  b->trace = NULL;
  if (status != AX_OK || ax_failed()) return finish(block, status);
  if (more) return open_run(block);
  b->form->bind(b);
  return finish(block, AX_OK);
}

bool ax_block_enter(ax_code_block *block, AX_UNUSED const void *declared) {
  block->stage = block->stage == AX_BLOCK_BEGUN ? AX_BLOCK_ENTERED : AX_BLOCK_ENDED;
  return block->stage == AX_BLOCK_ENTERED;
}

bool ax_block_test(ax_code_block *block, ax_value condition) {
  ax_block_state *b = resume(block);
  if (b == NULL) return false;
  ax_context_set(&run, NULL);
  ax_status status = ax_block_close_test(b, condition);
  b->trace = NULL;
  if (status == AX_OK) status = ax_block_open_body(b);
  return went_on(block, status);
}

void ax_block_left(ax_code_block *block) {
  ax_block_state *b = block->inside;
  block->inside = NULL;
  if (b != NULL && is_current(block->around)) give_up_run(b, block->around);
}

/* --- Beginning --- */

/* The name in "prog.c:12: AX_LOOP". */
static const char *name_in(const char *call) { return strrchr(call, ' ') + 1; }

static bool check_list(ax_block_state *b) {
  char name[64];
  for (uint32_t k = 0; k < b->count; k++)
    for (uint32_t i = 0; i < k; i++)
      if (b->variables[i] == b->variables[k]) {
        ax_reject_as(b->name, "%s is listed twice", ax_block_variable_name(b, k, name));
        return false;
      }
  return true;
}

/* NULL: the trace has failed, or there is none. */
static ax_block_state *begin(const ax_block_form *form, const char *call, const char *listed, const void *frame,
                             ax_value *const *variables) {
  if (ax_failed()) return NULL;
  ax_block_state *b = ax_trace_alloc(sizeof *b);
  if (b == NULL) return NULL;
  *b = (ax_block_state){
      .form = form, .call = call, .name = name_in(call), .listed = listed, .frame = frame};
  b->reruns = ax_context_get(&rerun) != NULL;
  while (variables[b->count] != NULL) b->count++;
  b->variables = ax_trace_alloc((b->count + 1) * sizeof b->variables[0]);
  b->starts = ax_trace_alloc((b->count + 2) * sizeof b->starts[0]);
  if (b->variables == NULL || b->starts == NULL) return NULL;
  for (uint32_t k = 0; k < b->count; k++) b->starts[k] = *(b->variables[k] = variables[k]);
  return check_list(b) ? b : NULL;
}

/* The block as its head holds it. Where something is wrong, no run is made of it. */
static ax_code_block ready(ax_block_state *b, const char *call, ax_value *const *variables) {
  if (b != NULL && !ax_failed()) return (ax_code_block){.inside = b, .around = ax_builder_current()->serial};
  if (ax_builder_current() != NULL)
    while (*variables != NULL) **variables++ = ax_poison;
  ax_stamp(call);
  return (ax_code_block){0};
}

ax_code_block ax_loop_block(const char *call, const char *listed, const void *frame, ax_value *const *variables, ax_value lower,
                            ax_value upper) {
  bool is_scan = !ax_failed() && ax_fori_known(lower, upper);
  ax_block_state *b = begin(is_scan ? &ax_block_scan : &ax_block_while, call, listed, frame, variables);
  if (b != NULL) {
    b->declares = b->counts = true;
    b->index[0] = lower;
    b->index[1] = upper;
    if (is_scan)
      ax_block_begin_scan(b, -1, false);
    else
      ax_block_begin_while(b);
  }
  return ready(b, call, variables);
}

ax_code_block ax_scan_block(const char *call, const char *listed, const void *frame, ax_value *const *variables, ax_value xs,
                            bool reverse) {
  ax_block_state *b = begin(&ax_block_scan, call, listed, frame, variables);
  if (b != NULL) {
    ax_type type = {0};
    b->declares = true;
    b->index[0] = xs;
    if (ax_check_operands(b->name, &xs, 1) && ax_is_number(xs))
      ax_reject_as(b->name, "the array is a number: there is nothing to loop over");
    if (!ax_failed()) type = ax_typeof(xs);
    if (!ax_failed() && type.rank == 0)
      ax_reject_as(b->name, "the array is %s: there is nothing to loop over", ax_type_string(&type, &ax_builder_current()->axes));
    if (!ax_failed()) ax_block_begin_scan(b, type.dims[0], reverse);
  }
  return ready(b, call, variables);
}

ax_code_block ax_while_block(const char *call, const char *listed, const void *frame, ax_value *const *variables) {
  ax_block_state *b = begin(&ax_block_while, call, listed, frame, variables);
  if (b != NULL) ax_block_begin_while(b);
  return ready(b, call, variables);
}

ax_code_block ax_if_block(const char *call, const char *listed, const void *frame, ax_value *const *variables, ax_value predicate) {
  ax_block_state *b = begin(&ax_block_if, call, listed, frame, variables);
  if (b != NULL) ax_block_begin_if(b, predicate);
  return ready(b, call, variables);
}
