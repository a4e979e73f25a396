/* A body that is called is lowered once, and each call is a copy of the result.

     closed_call body a b          fragment of body: b7 b8 -> b9              the call: a = b2, b = b5
     closed_call body c d            kernel of b7 b8 b9                         kernel of b2 b5 b20
                                     gemm b10 = b9 b8                           gemm b21 = b20 b5

   A fragment is lowered against buffers that stand for the operands (formals). Its operations depend only on these facts about
   the operands, which are the fragment's key: along which axes each differs, which of them are the same buffer, which are views
   of a loop's iteration, which are constants of one element or a few, and at which different places devices may be. A call then costs its
   operations and buffers, renamed. Kernels name no buffers, so all copies share them; a pass copies a kernel before it changes
   it. Passes, memory and waits see the copies as they would see the equations written out, so a call is as fast, and gives the
   same bits. */
#include <string.h>

#include "ir/flow.h"
#include "ir/memo.h"
#include "plan/lowering.h"
#include "plan/op.h"

/* All of an operand that lowering a body may look at. */
typedef struct formal {
  ax_axis_set axes;
  int64_t bits;                    /* of a constant of one element; of one of a few, as coefficients, where its memory is */
  uint32_t same;                   /* the first operand that is this buffer */
  uint32_t is_looped, is_constant; /* words, so that nothing between the fields is left unset */
} formal;

typedef struct fragment {
  uint32_t in_count, out_count;
  uint32_t *in, *out;         /* buffers, by operand and result */
  uint32_t first, count;      /* of `buffers`: formals, then those of the body, numbered first .. */
  ax_buffer *buffers;
  uint32_t *formal;           /* by buffer: the operand it stands for, or AX_NONE */
  ax_block block;
  uint32_t first_loop, loop_count, first_exchange, exchange_count, first_control_dependence, control_dependence_count;
  ax_called *called;
} fragment;

/* --- The key --- */

/* Whether the body makes a single element of input i somewhere, or hands it on to a body that may. */
static bool takes_elements(const ax_program *body, uint32_t i) {
  for (uint32_t e = 0; e < body->eqn_count; e++) {
    const ax_eqn *eqn = &body->eqns[e];
    for (uint32_t k = 0; k < eqn->in_count; k++)
      if (eqn->in[k] == i && (ax_eqn_program(eqn, 0) != NULL || (eqn->out_count == 1 && ax_type_elems(&body->types[eqn->out]) == 1))) return true;
  }
  return false;
}

/* A constant of which the body takes single elements, which then are part of its code. */
static bool is_few(const ax_buffer *buffer, const ax_program *body, uint32_t i) {
  enum { few = 32 };
  return buffer->kind == AX_BUFFER_CONST && buffer->loop == AX_NONE && ax_type_elems(&buffer->type) <= few &&
         ax_type_elems(&buffer->type) > 0 && takes_elements(body, i);
}

static ax_status make_key(ax_lower *lower, const ax_program *body, const uint32_t *in, formal **out, size_t *bytes) {
  const uint32_t count = body->in_count;
  *bytes = (count + (size_t)1) * sizeof(formal);
  formal *key = *out = ax_calloc(1, *bytes);
  if (key == NULL) return ax_out_of_memory(*bytes);
  AX_TRY(ax_grow(&lower->operand, sizeof lower->operand[0], 0, lower->plan->buffer_count, &lower->operand_capacity));
  uint32_t *first = lower->operand;
  for (uint32_t i = count; i-- > 0;) first[in[i]] = i;
  for (uint32_t i = 0; i < count; i++) {
    const ax_buffer *buffer = &lower->plan->buffers[in[i]];
    key[i] = (formal){.axes = buffer->axes, .same = first[in[i]], .is_looped = buffer->loop != AX_NONE};
    key[i].is_constant = ax_lower_constant(buffer, &key[i].bits);
    if (key[i].is_constant || !is_few(buffer, body, i)) continue; /* of one type in all calls, so that it is known which of the two `bits` are */
    key[i].is_constant = true;
    key[i].bits = (int64_t)(uintptr_t)buffer->data + buffer->offset;
  }
  key[count].axes = lower->diverging;
  return AX_OK;
}

/* --- Lowering --- */

/* Adds one buffer for each different operand. Each has an allocation of its own, so that views of it are known by that
   allocation. */
static ax_status add_formals(ax_lower *lower, const formal *key, const uint32_t *in, fragment *f) {
  for (uint32_t i = 0; i < f->in_count; i++) {
    ax_buffer buffer = lower->plan->buffers[in[i]];
    f->in[i] = f->in[key[i].same];
    if (key[i].same != i) continue;
    buffer.allocation = AX_NONE;
    if (!key[i].is_constant) buffer.kind = AX_BUFFER_TEMP;
    AX_TRY(ax_plan_add_buffer(lower->plan, &buffer, &f->in[i]));
  }
  return AX_OK;
}

static ax_status lower_body(ax_lower *lower, const ax_program *body, const formal *key, const uint32_t *in, fragment *f) {
  ax_block *outer = lower->block;
  AX_TRY(add_formals(lower, key, in, f));
  lower->block = &f->block;
  AX_TRY(ax_lower_program(lower, body, f->in, f->out));
  lower->block = outer;
  return AX_OK;
}

/* Moves all that lowering the body has added from the plan to the fragment. */
static ax_status take(ax_lower *lower, fragment *f) {
  ax_plan *plan = lower->plan;
  ax_arena *arena = &lower->flow->memo->arena;
  f->count = plan->buffer_count - f->first;
  f->loop_count = plan->loop_count - f->first_loop;
  f->exchange_count = plan->exchange_count - f->first_exchange;
  f->control_dependence_count = plan->control_dependence_count - f->first_control_dependence;
  f->buffers = ax_arena_copy(arena, plan->buffers + f->first, f->count * sizeof f->buffers[0]);
  f->formal = ax_arena_alloc(arena, f->count * sizeof f->formal[0]);
  if (f->buffers == NULL || f->formal == NULL) return ax_out_of_memory(f->count * sizeof f->buffers[0]);
  for (uint32_t b = 0; b < f->count; b++) f->formal[b] = AX_NONE;
  for (uint32_t i = 0; i < f->in_count; i++) f->formal[f->in[i] - f->first] = i;
  plan->buffer_count = f->first;
  plan->loop_count = f->first_loop;
  plan->exchange_count = f->first_exchange;
  plan->control_dependence_count = f->first_control_dependence;
  return AX_OK;
}

static uint32_t count_ops(const ax_block *block) {
  uint32_t count = block->count;
  for (uint32_t i = 0; i < block->count; i++)
    for (uint32_t k = 0; ax_op_block(&block->ops[i], k) != NULL; k++) count += count_ops(ax_op_block(&block->ops[i], k));
  return count;
}

static ax_status note_called(ax_plan *plan, fragment *f) {
  f->called = ax_arena_alloc(&plan->arena, sizeof *f->called);
  if (f->called == NULL) return ax_out_of_memory(sizeof *f->called);
  *f->called = (ax_called){.op_count = count_ops(&f->block), .next = plan->called};
  plan->called = f->called;
  return AX_OK;
}

static ax_status make(ax_lower *lower, const ax_program *body, const formal *key, const uint32_t *in, fragment **out) {
  ax_plan *plan = lower->plan;
  ax_arena *arena = &lower->flow->memo->arena;
  fragment *f = *out = ax_arena_alloc(arena, sizeof *f);
  if (f == NULL) return ax_out_of_memory(sizeof *f);
  *f = (fragment){.in_count = body->in_count,
                  .out_count = body->out_count,
                  .first = plan->buffer_count,
                  .first_loop = plan->loop_count,
                  .first_exchange = plan->exchange_count,
                  .first_control_dependence = plan->control_dependence_count};
  f->in = ax_arena_alloc(arena, f->in_count * sizeof f->in[0]);
  f->out = ax_arena_alloc(arena, f->out_count * sizeof f->out[0]);
  if (f->in == NULL || f->out == NULL) return ax_out_of_memory(0);
  AX_TRY(lower_body(lower, body, key, in, f));
  AX_TRY(take(lower, f));
  return note_called(plan, f);
}

/* --- A call --- */

typedef struct call {
  ax_lower *lower;
  const fragment *fragment;
  const uint32_t *in;
  uint32_t *buffer;        /* by buffer of the fragment */
  ax_exchange **exchange;  /* by exchange of the fragment */
  ax_control_dependence **control_dependence;          /* by control dependence of the fragment */
  const ax_control_dependence *own;      /* what all of it waits for; NULL: nothing */
  uint32_t first_loop, first_control_dependence;
  ax_op_renaming renaming;
} call;

static uint32_t here(const call *c, uint32_t buffer) { return c->buffer[buffer - c->fragment->first]; }
static uint32_t loop_here(const call *c, uint32_t loop) {
  return loop != AX_NONE ? loop - c->fragment->first_loop + c->first_loop : AX_NONE;
}

/* A view of an operand: of whatever that is a view of. One that is a view of an iteration already is of no other loop (lower.c). */
static ax_buffer operand_view(const call *c, const ax_buffer *view, uint32_t operand) {
  const ax_buffer *formal = &c->fragment->buffers[view->allocation - c->fragment->first],
                  *actual = &c->lower->plan->buffers[c->in[operand]];
  ax_buffer made = *actual;
  made.type = view->type;
  made.offset += view->offset - formal->offset;
  if (formal->loop == AX_NONE && view->loop != AX_NONE) {
    made.loop = loop_here(c, view->loop);
    made.step = view->step;
  }
  return made;
}

static ax_status add_buffers(call *c) {
  const fragment *f = c->fragment;
  for (uint32_t b = 0; b < f->count; b++) {
    ax_buffer buffer = f->buffers[b];
    if (f->formal[b] != AX_NONE) {
      c->buffer[b] = c->in[f->formal[b]];
      continue;
    }
    uint32_t operand = f->formal[buffer.allocation - f->first];
    if (operand != AX_NONE) {
      buffer = operand_view(c, &buffer, operand);
    } else {
      buffer.allocation = buffer.allocation == f->first + b ? AX_NONE : here(c, buffer.allocation);
      buffer.loop = loop_here(c, buffer.loop);
    }
    AX_TRY(ax_plan_add_buffer(c->lower->plan, &buffer, &c->buffer[b]));
  }
  return AX_OK;
}

static ax_status buffer_here(void *context, uint32_t *buffer) {
  *buffer = here(context, *buffer);
  return AX_OK;
}

static void start_here(void *context, const ax_exchange *from, ax_exchange *to) {
  const call *c = context;
  const uint32_t number = from->id - c->fragment->first_exchange;
  to->id = c->lower->plan->exchange_count + number;
  c->exchange[number] = to;
}

static ax_exchange *started_here(void *context, ax_exchange *from) {
  const call *c = context;
  return c->exchange[from->id - c->fragment->first_exchange];
}

static uint32_t id_here(void *context, uint32_t loop) { return loop_here(context, loop); }

/* A control dependence that stands in no other of the fragment stands in that of the call. Those around it were made before. */
static const ax_control_dependence *control_dependence_here(const call *c, const ax_control_dependence *control_dependence) {
  ax_arena *arena = &c->lower->plan->drafts;
  ax_control_dependence **made = &c->control_dependence[control_dependence->number - c->fragment->first_control_dependence];
  if (*made != NULL) return *made;
  const ax_control_dependence *outer =
      control_dependence->outer != NULL ? control_dependence_here(c, control_dependence->outer) : c->own;
  uint32_t *buffers = ax_arena_copy(arena, control_dependence->buffers, control_dependence->count * sizeof buffers[0]);
  for (uint32_t i = 0; buffers != NULL && i < control_dependence->count; i++) buffers[i] = here(c, buffers[i]);
  ax_control_dependence copy = {control_dependence->count,
                                control_dependence->number - c->fragment->first_control_dependence + c->first_control_dependence,
                                buffers, outer};
  return *made = buffers != NULL && (control_dependence->outer == NULL || outer != NULL)
                     ? ax_arena_copy(arena, &copy, sizeof copy)
                     : NULL;
}

static ax_status copy_block(const call *c, const ax_block *from, ax_block *to);

static ax_status copy_op(const call *c, ax_op *from, ax_op *to) {
  *to = *from;
  if (from->control_dependence != NULL && (to->control_dependence = control_dependence_here(c, from->control_dependence)) == NULL)
    return ax_out_of_memory(0);
  AX_TRY(ax_op_rename(&c->renaming, to));
  for (uint32_t k = 0; ax_op_block(from, k) != NULL; k++) AX_TRY(copy_block(c, ax_op_block(from, k), ax_op_block(to, k)));
  return AX_OK;
}

static ax_status copy_block(const call *c, const ax_block *from, ax_block *to) {
  *to = (ax_block){0};
  if (from->count == 0) return AX_OK;
  to->ops = ax_arena_alloc(&c->lower->plan->drafts, from->count * sizeof to->ops[0]);
  if (to->ops == NULL) return ax_out_of_memory(from->count * sizeof to->ops[0]);
  to->count = to->capacity = from->count;
  for (uint32_t i = 0; i < from->count; i++) AX_TRY(copy_op(c, &from->ops[i], &to->ops[i]));
  return AX_OK;
}

/* The operations behind those of the block at work. */
static ax_status add_ops(const call *c) {
  for (uint32_t i = 0; i < c->fragment->block.count; i++) {
    ax_op op;
    AX_TRY(copy_op(c, &c->fragment->block.ops[i], &op));
    if (op.control_dependence == NULL) op.control_dependence = c->own;
    AX_TRY(ax_lower_append(c->lower, &op));
  }
  return AX_OK;
}

static ax_status run(call *c, uint32_t *out) {
  const fragment *f = c->fragment;
  ax_plan *plan = c->lower->plan;
  c->buffer = ax_alloc(f->count * sizeof c->buffer[0]);
  c->exchange = ax_calloc(f->exchange_count, sizeof c->exchange[0]);
  c->control_dependence = ax_calloc(f->control_dependence_count, sizeof c->control_dependence[0]);
  ax_status status = c->buffer != NULL && c->exchange != NULL && c->control_dependence != NULL ? AX_OK : ax_out_of_memory(0);
  c->renaming = (ax_op_renaming){.arena = &plan->arena,
                                 .lists = &plan->drafts,
                                 .buffer = buffer_here,
                                 .start = start_here,
                                 .started = started_here,
                                 .loop = id_here,
                                 .context = c};
  c->first_loop = plan->loop_count;
  c->first_control_dependence = plan->control_dependence_count;
  plan->loop_count += f->loop_count;
  plan->control_dependence_count += f->control_dependence_count;
  if (status == AX_OK) status = add_buffers(c);
  if (status == AX_OK) status = add_ops(c);
  plan->exchange_count += f->exchange_count;
  for (uint32_t k = 0; status == AX_OK && k < f->out_count; k++) out[k] = here(c, f->out[k]);
  f->called->call_count++;
  ax_free(c->buffer);
  ax_free(c->exchange);
  ax_free(c->control_dependence);
  return status;
}

/* own: what the call's operations wait for; NULL: nothing. */
static ax_status call_body(ax_lower *lower, const ax_program *body, const ax_control_dependence *own, const uint32_t *in,
                           uint32_t *out) {
  formal *key;
  size_t bytes;
  ax_status status = make_key(lower, body, in, &key, &bytes);
  ax_memo_entry *entry = status == AX_OK ? ax_memo_ask(lower->flow->memo, "fragment", body, key, bytes) : NULL;
  if (status == AX_OK && entry == NULL) status = ax_out_of_memory(bytes);
  if (status == AX_OK && !entry->known) {
    fragment *made;
    status = make(lower, body, key, in, &made);
    if (status == AX_OK) entry->data = made;
    entry->known = status == AX_OK;
  }
  ax_free(key);
  return status == AX_OK ? run(&(call){.lower = lower, .fragment = entry->data, .in = in, .own = own}, out) : status;
}

ax_status ax_lower_call(ax_lower *lower, const ax_program *body, const uint32_t *in, uint32_t *out) {
  return call_body(lower, body, NULL, in, out);
}

ax_status ax_lower_call_late(ax_lower *lower, const ax_program *body, const uint32_t *in, uint32_t *out) {
  ax_arena *arena = &lower->plan->drafts;
  ax_control_dependence control_dependence = {body->in_count, lower->plan->control_dependence_count++,
                                              ax_arena_copy(arena, in, body->in_count * sizeof in[0]), NULL};
  const ax_control_dependence *own =
      control_dependence.buffers != NULL ? ax_arena_copy(arena, &control_dependence, sizeof control_dependence) : NULL;
  return own != NULL ? call_body(lower, body, own, in, out) : ax_out_of_memory(sizeof control_dependence);
}
