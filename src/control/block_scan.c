/* Blocks that are scans: AX_SCAN, and AX_LOOP between numbers or constants, whose index is a carry after the variables. What is
   sliced becomes an input of the body where ax_each meets it first. */
#include "control/block.h"
#include "control/fori_loop.h"
#include "prim/composite.h"

void ax_block_begin_scan(ax_block_state *b, int64_t length, bool reverse) {
  ax_scan_tracing *t = &b->scan;
  uint32_t carries = b->count + b->counts;
  ax_value upper = b->index[1];
  if (b->counts && !ax_fori_numbers(b->name, b->index[0], upper, &b->index[0], &length)) return;
  if (b->counts) b->starts[b->count] = b->index[0];
  if (!ax_block_check_starts(b)) return;
  t->params = (ax_scan_params){.length = length, .reverse = reverse, .num_carry = carries};
  t->types = ax_types_of(b->name, b->starts, carries);
  t->options = (ax_body_options){.owner = b->name, .part = "block", .function = {.in_count = carries}};
  if (!ax_failed()) (void)ax_scan_begin(t, (ax_function)(uintptr_t)b->call);
}

static void clear(ax_block_slices *s) {
  ax_free(s->whole);
  ax_free(s->slice);
  ax_free(s->stacked);
  ax_free(s->made);
  *s = (ax_block_slices){0};
}

static void deinit(ax_block_state *b) {
  ax_body_deinit(&b->scan.body);
  clear(&b->slices);
  clear(&b->earlier);
}

static ax_value slice_of(ax_block_state *b, ax_value xs);

static ax_status open(ax_block_state *b) {
  ax_value *in;
  AX_TRY(ax_scan_open(&b->scan, &in));
  if (in == NULL) return AX_OK;
  clear(&b->slices);
  b->carries = in;
  ax_block_give(b, in);
  b->trace = ax_builder_current();
  b->handle->index = b->counts ? in[b->count] : slice_of(b, b->index[0]);
  return AX_OK;
}

static bool alike(const ax_block_slices *a, const ax_block_slices *b) {
  bool same = a->count == b->count && ax_block_same_values(a->whole, b->whole, a->count) && a->stacked_count == b->stacked_count;
  for (uint32_t k = 0; same && k < a->stacked_count; k++) same = a->stacked[k] == b->stacked[k];
  return same;
}

/* The results: variables, index, stacked values; NULL: the trace has failed. */
static ax_value *results(ax_block_state *b) {
  const ax_block_slices *s = &b->slices;
  uint32_t carries = b->count + b->counts;
  ax_value *outs = ax_block_take_round(b, b->scan.types, 1 + s->stacked_count);
  b->scan.options.function.out_count = carries + s->stacked_count;
  if (outs == NULL) return NULL;
  if (b->counts) outs[b->count] = ax_fori_next(b->name, b->carries[b->count]);
  for (uint32_t k = 0; k < s->stacked_count; k++) outs[carries + k] = s->made[k];
  ax_stamp(b->call);
  return outs;
}

static ax_status close(ax_block_state *b, bool *more) {
  AX_TRY(ax_scan_close(&b->scan, results(b)));
  if (b->is_compared) {
    AX_TRY(ax_block_compare(b, &b->body, &b->scan.body));
    if (!alike(&b->earlier, &b->slices)) return ax_block_compare(b, NULL, NULL);
  }
  *more = b->scan.settling.changed;
  if (!*more && !b->is_compared && !b->reruns) {
    *more = b->is_compared = true;
    b->body = b->scan.body;
    b->earlier = b->slices;
    b->scan.body = (ax_body){0};
    b->slices = (ax_block_slices){0};
  }
  if (!*more) ax_settle_end(&b->scan.settling);
  return AX_OK;
}

static void bind(ax_block_state *b) {
  const ax_block_slices *s = &b->slices;
  uint32_t carries = b->count + b->counts;
  ax_value *in = ax_trace_alloc(((size_t)carries + s->count) * sizeof in[0]);
  ax_value *out = ax_trace_alloc(((size_t)carries + s->stacked_count) * sizeof out[0]);
  if (in == NULL || out == NULL) return;
  for (uint32_t k = 0; k < carries; k++) in[k] = b->starts[k];
  for (uint32_t k = 0; k < s->count; k++) in[carries + k] = s->whole[k];
  ax_scan_bind(&b->scan, in, carries + s->count, out, carries + s->stacked_count);
  ax_block_give(b, out);
  for (uint32_t k = 0; k < s->stacked_count; k++) *s->stacked[k] = out[carries + k];
}

const ax_block_form ax_block_scan = {open, close, bind, deinit};

/* --- Slices and stacks --- */

/* The block around that is a scan; NULL: there is none, and the trace has failed. */
static ax_block_state *scan_around(const char *function) {
  const ax_builder *builder = ax_failed() ? NULL : ax_builder_current();
  for (; builder != NULL; builder = builder->parent) {
    ax_block_state *b = ax_block_of(builder);
    if (b != NULL && b->form == &ax_block_scan) return b;
  }
  ax_reject_as(function, "it stands in no AX_SCAN, and in no AX_LOOP whose bounds are numbers or constants");
  return NULL;
}

static bool check_whole(const ax_block_state *b, ax_value xs, ax_type *type) {
  if (!ax_check_operands("each", &xs, 1)) return false;
  if (ax_is_number(xs)) ax_reject_as("each", "the operand is a number");
  for (const ax_builder *builder = ax_builder_current(); builder != b->trace->parent && !ax_failed(); builder = builder->parent)
    if (builder->serial == xs.trace)
      ax_reject_as("each", "the operand is made in the block of %s; it comes from outside of it", b->name);
  if (ax_failed() || !ax_builder_type(b->trace->parent, xs, type)) return false;
  if (type->form != AX_ARRAY || type->rank == 0 || type->dims[0] != b->scan.params.length)
    ax_reject_as("each", "the operand is %s; its first dimension must be the number of rounds, %lld", ax_operand_string(type),
                 (long long)b->scan.params.length);
  return !ax_failed();
}

static ax_value slice_of(ax_block_state *b, ax_value xs) {
  ax_block_slices *s = &b->slices;
  ax_type type;
  if (!check_whole(b, xs, &type)) return ax_poison;
  for (uint32_t k = 0; k < s->count; k++)
    if (s->whole[k].trace == xs.trace && s->whole[k].id == xs.id) return s->slice[k];
  ax_type slice = ax_scan_slice_type(&type);
  uint32_t capacity = s->capacity;
  ax_status status = ax_grow(&s->whole, sizeof s->whole[0], s->count, 1, &capacity);
  if (status == AX_OK) status = ax_grow(&s->slice, sizeof s->slice[0], s->count, 1, &s->capacity);
  if (status != AX_OK) ax_fail(status);
  if (ax_failed()) return ax_poison;
  s->whole[s->count] = xs;
  return s->slice[s->count++] = ax_builder_late_input(b->trace, &slice);
}

ax_value(ax_each)(ax_value xs) {
  ax_block_state *b = scan_around("each");
  return b != NULL ? slice_of(b, xs) : ax_poison;
}

void(ax_collect)(ax_value *stacked, ax_value y) {
  ax_block_state *b = scan_around("collect");
  if (b == NULL) return;
  ax_block_slices *s = &b->slices;
  if (stacked == NULL)
    ax_reject_as("collect", "there is no place for the stack");
  else if (ax_builder_current() != b->trace)
    ax_reject_as("collect", "it stands in a body within the block of %s; a value of that body is no round's", b->name);
  else if (ax_check_operands("collect", &y, 1) && ax_is_number(y))
    ax_reject_as("collect", "the operand is a number; ax_full gives it a dtype and a shape");
  for (uint32_t k = 0; k < s->stacked_count && !ax_failed(); k++)
    if (s->stacked[k] == stacked) ax_reject_as("collect", "there is a stack in this variable already");
  uint32_t capacity = s->stacked_capacity;
  if (ax_failed()) return;
  ax_status status = ax_grow(&s->stacked, sizeof s->stacked[0], s->stacked_count, 1, &capacity);
  if (status == AX_OK) status = ax_grow(&s->made, sizeof s->made[0], s->stacked_count, 1, &s->stacked_capacity);
  if (status != AX_OK) {
    ax_fail(status);
    return;
  }
  s->stacked[s->stacked_count] = stacked;
  s->made[s->stacked_count++] = y;
  *stacked = ax_poison;
}
