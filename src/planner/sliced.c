#include "planner/sliced.h"

#include <string.h>

#include "axle/ops.h"
#include "control/closed_call.h"
#include "control/scan.h"
#include "prim/prims.h"
#include "xform/xform.h"

/* --- Inlining --- */

/* Copies a program into the trace, with what its calls compute in their place. */
static void inline_program(const ax_program *program, const ax_value *in, ax_value *out) {
  ax_program_walk walk;
  if (ax_walk_init(&walk, program)) {
    for (uint32_t i = 0; i < program->in_count; i++) walk.value[i] = in[i];
    for (uint32_t e = 0; e < program->eqn_count && !ax_failed(); e++) {
      const ax_eqn *eqn = &program->eqns[e];
      if (eqn->prim != &ax_prim_closed_call) {
        ax_walk_replay(&walk, eqn);
        continue;
      }
      const ax_value *given = ax_walk_operands(&walk, eqn);
      ax_value *operands = ax_trace_alloc((eqn->in_count + 1) * sizeof operands[0]);
      if (operands == NULL) break;
      for (uint32_t i = 0; i < eqn->in_count; i++) operands[i] = given[i];
      inline_program(((const ax_closed_call_params *)eqn->params)->body, operands, walk.value + eqn->out);
    }
    for (uint32_t k = 0; k < program->out_count && !ax_failed(); k++) out[k] = walk.value[program->outs[k]];
  }
  ax_walk_deinit(&walk);
}

static AX_BODY(inlined) { inline_program(context, in, out); }

static ax_status inline_calls(const ax_program *program, ax_program **out) {
  return (ax_trace)(AX_CLOSURE(inlined, program->in_count, program->out_count, (void *)(uintptr_t)program), program->in_count,
                    program->types, out);
}

/* --- What a loop's carries are --- */

typedef enum carry_kind { CARRIED, UNCHANGED, SLICED } carry_kind;

typedef struct loop {
  const ax_eqn *eqn;
  const ax_scan_params *scan;
  ax_program *body;   /* without calls; owned */
  uint32_t consts, carries, counter; /* counter: number of the carry; AX_NONE */
  carry_kind *kind;   /* by carry; owned */
} loop;

static bool is_integer(const ax_program *program, uint32_t id, int64_t wanted) {
  const ax_literal *literal = ax_value_literal(program, id);
  if (literal == NULL || literal->type.rank != 0) return false;
  int64_t wide;
  int32_t narrow;
  switch ((int)literal->type.dtype) {
    case AX_S32:
    case AX_U32: return memcpy(&narrow, literal->data, sizeof narrow) != NULL && narrow == wanted;
    case AX_S64:
    case AX_U64: return memcpy(&wide, literal->data, sizeof wide) != NULL && wide == wanted;
    default: return false;
  }
}

/* The equation that makes a value; NULL: it is an input. */
static const ax_eqn *maker_of(const ax_program *program, uint32_t id) {
  for (uint32_t e = 0; e < program->eqn_count; e++)
    if (id >= program->eqns[e].out && id < program->eqns[e].out + program->eqns[e].out_count) return &program->eqns[e];
  return NULL;
}

/* A carry that begins at 0 and grows by 1. */
static bool counts(const loop *l, const ax_program *around, uint32_t carry) {
  const uint32_t input = l->consts + carry;
  if (l->scan->reverse || !is_integer(around, l->eqn->in[input], 0)) return false;
  const ax_eqn *made = maker_of(l->body, l->body->outs[carry]);
  if (made == NULL || made->prim != &ax_prim_add) return false;
  return (made->in[0] == input && is_integer(l->body, made->in[1], 1)) || (made->in[1] == input && is_integer(l->body, made->in[0], 1));
}

/* A slice of one along the first dimension, at the counter, and whole along the others. */
static bool slices(const loop *l, const ax_eqn *eqn) {
  if (eqn->prim != &ax_prim_dynamic_slice || l->counter == AX_NONE) return false;
  const ax_type *whole = &l->body->types[eqn->in[0]], *made = &l->body->types[eqn->out];
  if (whole->rank == 0 || whole->dims[0] != l->scan->length || made->dims[0] != 1 || eqn->in[1] != l->consts + l->counter) return false;
  for (uint32_t d = 1; d < whole->rank; d++)
    if (made->dims[d] != whole->dims[d]) return false;
  return true;
}

static carry_kind kind_of(const loop *l, uint32_t carry) {
  const uint32_t input = l->consts + carry;
  bool any = false;
  if (l->body->outs[carry] != input) return CARRIED;
  for (uint32_t k = 0; k < l->body->out_count; k++)
    if (k != carry && l->body->outs[k] == input) return UNCHANGED;
  for (uint32_t e = 0; e < l->body->eqn_count; e++)
    for (uint32_t i = 0; i < l->body->eqns[e].in_count; i++) {
      if (l->body->eqns[e].in[i] != input) continue;
      if (i > 0 || !slices(l, &l->body->eqns[e])) return UNCHANGED;
      any = true;
    }
  return any ? SLICED : UNCHANGED;
}

/* *any: some carry is no carry. */
static ax_status look(loop *l, const ax_program *around, const ax_eqn *eqn, bool *any) {
  *l = (loop){.eqn = eqn, .scan = eqn->params, .counter = AX_NONE};
  l->consts = (uint32_t)l->scan->num_consts;
  l->carries = (uint32_t)l->scan->num_carry;
  l->kind = ax_calloc((size_t)l->carries + 1, sizeof l->kind[0]);
  *any = false;
  if (l->kind == NULL) return ax_out_of_memory(l->carries);
  AX_TRY(inline_calls(l->scan->body, &l->body));
  for (uint32_t c = 0; c < l->carries && l->counter == AX_NONE; c++)
    if (counts(l, around, c)) l->counter = c;
  for (uint32_t c = 0; c < l->carries; c++) {
    l->kind[c] = kind_of(l, c);
    *any = *any || l->kind[c] != CARRIED;
  }
  return AX_OK;
}

static void deinit(loop *l) {
  ax_program_release(l->body);
  ax_free(l->kind);
}

/* --- The loop again --- */

typedef struct again {
  const loop *l;
  const ax_value *given; /* the loop's operands */
} again;

static uint32_t count_of(const loop *l, carry_kind kind) {
  uint32_t count = 0;
  for (uint32_t c = 0; c < l->carries; c++) count += l->kind[c] == kind;
  return count;
}

/* carries, slices of what was sliced already, slices -> carries, what is stacked */
static AX_BODY(step_again) {
  const again *a = context;
  const loop *l = a->l;
  const uint32_t sliced_before = l->eqn->in_count - l->consts - l->carries, carried = count_of(l, CARRIED);
  ax_program_walk walk;
  if (ax_walk_init(&walk, l->body)) {
    const ax_value *next = in, *slice = in + carried + sliced_before;
    ax_value *of = ax_walk_alloc(&walk, (l->carries + 1) * sizeof of[0]);
    for (uint32_t i = 0; i < l->consts; i++) walk.value[i] = a->given[i];
    for (uint32_t c = 0; c < l->carries && of != NULL; c++) {
      if (l->kind[c] == SLICED) of[c] = *slice++;
      walk.value[l->consts + c] = l->kind[c] == CARRIED ? *next++ : a->given[l->consts + c];
    }
    for (uint32_t i = 0; i < sliced_before; i++) walk.value[l->consts + l->carries + i] = in[carried + i];
    for (uint32_t e = 0; e < l->body->eqn_count && !ax_failed(); e++) {
      const ax_eqn *eqn = &l->body->eqns[e];
      const uint32_t carry = eqn->prim == &ax_prim_dynamic_slice ? eqn->in[0] - l->consts : AX_NONE; /* a const's wraps to be large */
      const ax_type *made = &l->body->types[eqn->out];
      if (carry < l->carries && l->kind[carry] == SLICED) walk.value[eqn->out] = (ax_reshape)(of[carry], made->rank, made->dims);
      else ax_walk_replay(&walk, eqn);
    }
    uint32_t made = 0;
    for (uint32_t k = 0; k < l->body->out_count && !ax_failed(); k++)
      if (k >= l->carries || l->kind[k] == CARRIED) out[made++] = walk.value[l->body->outs[k]];
  }
  ax_walk_deinit(&walk);
}

static void do_again(const loop *l, const ax_value *in, ax_value *out) {
  const uint32_t carried = count_of(l, CARRIED), sliced_before = l->eqn->in_count - l->consts - l->carries;
  const uint32_t count = carried + sliced_before + count_of(l, SLICED), made_count = carried + l->eqn->out_count - l->carries;
  ax_value *given = ax_trace_alloc((l->eqn->in_count + 1) * sizeof given[0]), *operands = ax_trace_alloc((count + 1) * sizeof operands[0]);
  ax_value *made = ax_trace_alloc((made_count + 1) * sizeof made[0]);
  uint32_t at = 0, next = 0;
  if (given == NULL || operands == NULL || made == NULL) return;
  for (uint32_t i = 0; i < l->eqn->in_count; i++) given[i] = in[i];
  for (uint32_t c = 0; c < l->carries; c++)
    if (l->kind[c] == CARRIED) operands[at++] = given[l->consts + c];
  for (uint32_t i = 0; i < sliced_before; i++) operands[at++] = given[l->consts + l->carries + i];
  for (uint32_t c = 0; c < l->carries; c++)
    if (l->kind[c] == SLICED) operands[at++] = given[l->consts + c];
  again a = {l, given};
  (ax_scan)(AX_CLOSURE(step_again, count, made_count, &a), carried, l->scan->length, l->scan->reverse, count, operands, made_count, made);
  for (uint32_t k = 0; k < l->eqn->out_count; k++)
    out[k] = k < l->carries && l->kind[k] != CARRIED ? given[l->consts + k] : made[next++];
}

/* --- The program --- */

static void walk_program(ax_program_walk *walk) {
  const ax_program *program = walk->program;
  for (uint32_t e = 0; e < program->eqn_count && !ax_failed(); e++) {
    const ax_eqn *eqn = &program->eqns[e];
    loop l = {0};
    bool any = false;
    if (eqn->prim == &ax_prim_scan) {
      const ax_status status = look(&l, program, eqn, &any);
      if (status != AX_OK) ax_fail(status);
    }
    if (ax_failed()) any = false;
    else if (any) do_again(&l, ax_walk_operands(walk, eqn), walk->value + eqn->out);
    else ax_walk_replay(walk, eqn);
    deinit(&l);
  }
}

static AX_BODY(rewritten) {
  const ax_program *program = context;
  ax_program_walk walk;
  if (ax_walk_init(&walk, program)) {
    for (uint32_t i = 0; i < program->in_count; i++) walk.value[i] = in[i];
    walk_program(&walk);
    for (uint32_t k = 0; k < program->out_count && !ax_failed(); k++) out[k] = walk.value[program->outs[k]];
  }
  ax_walk_deinit(&walk);
}

ax_status ax_program_slice_loops(const ax_program *program, ax_program **out) {
  ax_program *made;
  *out = NULL;
  AX_TRY((ax_trace)(AX_CLOSURE(rewritten, program->in_count, program->out_count, (void *)(uintptr_t)program), program->in_count,
                    program->types, &made));
  const ax_status status = ax_program_dce(made, out);
  ax_program_release(made);
  return status;
}
