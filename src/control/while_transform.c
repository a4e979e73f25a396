/* while: the rules that make whiles of whiles.

     jvp         one while: the body's jvp carries the tangents along; the condition takes them and ignores them
     linearize   the loop alone, for the results; and once more with tangents, for those
     batch       one while. Where members stop at different times, all go on until the last stops, and those that have stopped keep
                 their carries
     prune       a carry is needed when its result is, or the condition or another carry that is uses it

   The carries that have a tangent, or a batch dimension, are known before the body is transformed (ax_tangents,
   ax_batched_results). */
#include "ir/prim.h"
#include "prim/prims.h"
#include "prim/rebuild.h"
#include "control/while.h"

typedef struct loop {
  ax_while_params p;
  uint32_t cond_consts, body_consts, carries;
} loop;

static loop loop_of(const ax_eqn *eqn) {
  const ax_while_params *p = eqn->params;
  return (loop){*p, (uint32_t)p->cond_nconsts, (uint32_t)p->body_nconsts, eqn->out_count};
}

/* --- jvp, linearize, transpose --- */

enum { ROLE_CONST, ROLE_CARRY };

/* The condition with the carries' tangents as further, unused inputs. */
static ax_status widen_condition(const loop *l, const ax_tangents *t, ax_program **out) {
  const ax_program *cond = l->p.cond;
  uint32_t count = cond->in_count, result = 0;
  ax_type *types = ax_trace_alloc((count + (size_t)l->carries) * sizeof types[0]);
  uint32_t *in_at = ax_in_order(count);
  *out = NULL;
  if (types == NULL || in_at == NULL) return ax_out_of_memory(count * sizeof types[0]);
  for (uint32_t i = 0; i < cond->in_count; i++) types[i] = cond->types[i];
  for (uint32_t k = 0; k < l->carries; k++)
    if (t->out[k]) types[count++] = cond->types[l->cond_consts + k];
  return ax_region_rearrange(cond, types, count, in_at, &result, 1, out);
}

/* The body's jvp, and its operands: constants and theirs, carries and theirs. A carry that comes to a tangent has one from the
   start.
   NULL: the trace has failed. */
static ax_value *jvp_body(const loop *l, const ax_tangents *t, ax_sorting *operands, ax_program **body) {
  uint32_t count = l->body_consts + l->carries;
  bool *in = ax_trace_alloc(count);
  ax_program *made;
  if (in == NULL || !ax_sorting_init(operands, 2 * count)) return NULL;
  for (uint32_t i = 0; i < count; i++) {
    in[i] = i < l->body_consts ? t->in[l->cond_consts + i] : t->out[i - l->body_consts];
    ax_sorting_add(operands, i < l->body_consts ? ROLE_CONST : ROLE_CARRY, t->args->in[l->cond_consts + i]);
  }
  for (uint32_t i = 0; i < count; i++)
    if (in[i]) ax_sorting_add(operands, i < l->body_consts ? ROLE_CONST : ROLE_CARRY, ax_tangent_in(t, l->cond_consts + i));
  ax_status status = ax_jvp_program(l->p.body, in, t->want, &made);
  if (status != AX_OK) {
    ax_fail(status);
    return NULL;
  }
  uint32_t *from = ax_in_order(made->out_count);
  ax_value *sorted = from != NULL ? ax_sorting_finish(operands, made, from, made->out_count, body) : NULL;
  ax_program_release(made);
  return sorted;
}

/* Gives the results, then the tangents; NULL: the trace has failed. */
static ax_value *bind_jvp(const loop *l, const ax_tangents *t) {
  ax_sorting operands;
  ax_while_params params = l->p;
  ax_value *sorted = jvp_body(l, t, &operands, &params.body);
  if (sorted == NULL) return NULL;
  ax_value *in = ax_trace_alloc((l->cond_consts + (size_t)operands.count) * sizeof in[0]);
  ax_value *out = ax_trace_alloc(params.body->out_count * sizeof out[0]);
  ax_status status = widen_condition(l, t, &params.cond);
  if (status != AX_OK) ax_fail(status);
  params.body_nconsts = operands.of_role[ROLE_CONST];
  if (in != NULL && out != NULL && status == AX_OK) {
    for (uint32_t i = 0; i < l->cond_consts; i++) in[i] = t->args->in[i];
    for (uint32_t i = 0; i < operands.count; i++) in[l->cond_consts + i] = sorted[i];
    ax_bind(&ax_prim_while, &params, in, l->cond_consts + operands.count, out, params.body->out_count);
  }
  ax_program_release(params.cond);
  ax_program_release(params.body);
  return ax_failed() ? NULL : out;
}

void ax_while_jvp(const ax_jvp_args *args) {
  loop l = loop_of(args->eqn);
  ax_tangents t;
  if (!ax_tangents_init(&t, args)) return;
  ax_value *out = bind_jvp(&l, &t);
  if (out != NULL) ax_tangents_give(&t, out, out + l.carries);
}

void ax_while_linearize(const ax_jvp_args *args) {
  const ax_eqn *eqn = args->eqn;
  ax_while_jvp(args);
  ax_bind(&ax_prim_while, eqn->params, args->in, eqn->in_count, args->out, eqn->out_count);
}

void ax_while_transpose(const ax_transpose_args *args) {
  (void)args;
  ax_fail(ax_error(AX_ABSENT,
                   "while has no reverse-mode derivative: how many steps there are to go back is known only after it "
                   "has run; scan has one, so has fori_loop where both bounds are numbers or constants, and while has the forward mode, jvp"));
}

/* --- batch --- */

/* A loop being batched. Carries and the predicate have the batch in front, or none. */
typedef struct batching {
  loop l;
  const ax_batch_args *args;
  int *cond_dim, *body_dim, *want; /* of the programs' inputs; of the carries */
  ax_program *cond, *body;
  bool each; /* members stop at different times: the predicate is batched */
} batching;

/* A carry is batched when it starts so, when the body makes it so, or when the predicate is batched. */
static bool batching_init(batching *b, const ax_batch_args *args) {
  *b = (batching){.l = loop_of(args->eqn), .args = args};
  const loop *l = &b->l;
  bool *batched = ax_batched_results(args);
  b->cond_dim = ax_trace_alloc((l->cond_consts + (size_t)l->carries) * sizeof(int));
  b->body_dim = ax_trace_alloc((l->body_consts + (size_t)l->carries) * sizeof(int));
  b->want = ax_trace_alloc(l->carries * sizeof(int));
  if (ax_failed()) return false;
  for (uint32_t i = 0; i < l->cond_consts; i++) b->cond_dim[i] = args->in_dim[i];
  for (uint32_t i = 0; i < l->body_consts; i++) b->body_dim[i] = args->in_dim[l->cond_consts + i];
  for (uint32_t k = 0; k < l->carries; k++)
    b->want[k] = b->cond_dim[l->cond_consts + k] = b->body_dim[l->body_consts + k] = batched[k] ? 0 : -1;
  return true;
}

static ax_status batch_both(batching *b) {
  const ax_batch_args *args = b->args;
  int predicate;
  AX_TRY(ax_batch_program(b->l.p.cond, b->cond_dim, args->size, args->axis, NULL, &predicate, &b->cond));
  b->each = predicate >= 0;
  return ax_batch_program(b->l.p.body, b->body_dim, args->size, args->axis, b->want, NULL, &b->body);
}

/* A batched predicate -> whether it holds for any member. */
static ax_status any_holds(ax_program **cond) {
  ax_builder builder;
  const ax_program *batched = *cond;
  ax_program *made;
  ax_value *in = ax_region_begin(&builder, &batched->axes, batched->types, batched->in_count), holds = ax_poison;
  if (in != NULL) {
    ax_call(batched, AX_LIST(batched->in_count, in), &holds);
    ax_value most = ax_reduce_max(ax_convert_element_type(holds, AX_S32), AX_ALL_DIMS, false);
    holds = ax_gt(most, ax_full_like(most, 0));
  }
  AX_TRY(ax_region_finish(&builder, &holds, 1, &made));
  ax_program_release(*cond);
  *cond = made;
  return AX_OK;
}

/* (cond consts.., body consts.., carry..): members for which the condition no longer holds keep their carries. */
static ax_status step_selected(batching *b, ax_program **out) {
  const loop *l = &b->l;
  uint32_t cond_consts = l->cond_consts, body_in = l->body_consts + l->carries, count = cond_consts + body_in;
  const int64_t front = 0;
  ax_builder builder;
  ax_type *types = ax_trace_alloc(count * sizeof types[0]);
  *out = NULL;
  if (types == NULL) return ax_out_of_memory(count * sizeof types[0]);
  for (uint32_t i = 0; i < count; i++) types[i] = i < cond_consts ? b->cond->types[i] : b->body->types[i - cond_consts];
  ax_value *in = ax_region_begin(&builder, &b->body->axes, types, count), holds;
  ax_value *cond_in = ax_trace_alloc((cond_consts + (size_t)l->carries) * sizeof in[0]);
  ax_value *outs = ax_trace_alloc(l->carries * sizeof in[0]);
  if (in != NULL && cond_in != NULL && outs != NULL) {
    ax_value *carries = in + cond_consts + l->body_consts;
    for (uint32_t i = 0; i < cond_consts; i++) cond_in[i] = in[i];
    for (uint32_t k = 0; k < l->carries; k++) cond_in[cond_consts + k] = carries[k];
    ax_call(b->cond, AX_LIST(b->cond->in_count, cond_in), &holds);
    ax_call(b->body, AX_LIST(body_in, in + cond_consts), AX_LIST(l->carries, outs));
    for (uint32_t k = 0; k < l->carries && !ax_failed(); k++) {
      ax_type type = ax_typeof(outs[k]);
      outs[k] = ax_select_n(ax_broadcast_in_dim(holds, AX_LIST(type.rank, type.dims), &front), carries[k], outs[k]);
    }
  }
  return ax_region_finish(&builder, outs, l->carries, out);
}

static ax_status select_steps(batching *b) {
  ax_program *body;
  AX_TRY(step_selected(b, &body));
  ax_program_release(b->body);
  b->body = body;
  return any_holds(&b->cond);
}

static void bind_batched(const batching *b) {
  const loop *l = &b->l;
  const ax_batch_args *args = b->args;
  uint32_t consts = l->cond_consts + l->body_consts, count = 0;
  ax_value *in = ax_trace_alloc(2 * (size_t)args->eqn->in_count * sizeof in[0]);
  if (in == NULL) return;
  for (uint32_t i = 0; i < l->cond_consts; i++) in[count++] = args->in[i];
  for (uint32_t i = b->each ? 0 : l->cond_consts; i < consts; i++) in[count++] = args->in[i];
  ax_while_params params = {b->cond, l->cond_consts, b->body, count - l->cond_consts};
  for (uint32_t k = 0; k < l->carries; k++) {
    ax_value start = args->in[consts + k];
    in[count++] = b->want[k] >= 0 ? ax_batch_front(start, args->in_dim[consts + k], args->size) : start;
    args->out_dim[k] = b->want[k];
  }
  ax_bind(&ax_prim_while, &params, in, count, args->out, l->carries);
}

void ax_while_batch(const ax_batch_args *args) {
  batching b;
  if (!batching_init(&b, args)) return;
  ax_status status = batch_both(&b);
  if (status == AX_OK && b.each && (ax_eqn_effects(args->eqn) & AX_EFFECT_MESSAGE) != 0)
    status =
        ax_error(AX_ABSENT, "vmap: the loop has messages, but each member of the batch ends by itself, and a message is of all");
  else if (status == AX_OK && b.each && (ax_eqn_effects(args->eqn) & AX_EFFECT_STATE) != 0)
    status = ax_error(AX_ABSENT,
                      "vmap: the loop calls the host, but each member of the batch ends by itself, and goes on being computed");
  if (status == AX_OK && b.each) status = select_steps(&b);
  if (status != AX_OK) ax_fail(status);
  if (!ax_failed()) bind_batched(&b);
  ax_program_release(b.cond);
  ax_program_release(b.body);
}

/* --- prune --- */

static ax_status prune_both(const ax_prune_args *args, const loop *l, const bool *cond_in, ax_while_params *params) {
  const bool *body_in = args->in + l->cond_consts;
  params->cond_nconsts = ax_marked(cond_in, l->cond_consts);
  params->body_nconsts = ax_marked(body_in, l->body_consts);
  AX_TRY(ax_prune_program(args->memo, l->p.cond, &(bool){true}, cond_in, &params->cond));
  ax_status status = ax_prune_program(args->memo, l->p.body, args->out, body_in, &params->body);
  if (status != AX_OK) ax_program_release(params->cond);
  return status;
}

ax_status ax_while_prune(const ax_prune_args *args) {
  loop l = loop_of(args->eqn);
  bool *cond_in = ax_arena_alloc(&args->memo->arena, l.cond_consts + (size_t)l.carries);
  if (cond_in == NULL) return ax_out_of_memory(l.cond_consts + (size_t)l.carries);
  AX_TRY(ax_needs_program(args->memo, l.p.cond, &(bool){true}, cond_in));
  for (uint32_t k = 0; k < l.carries; k++) args->out[k] = args->out[k] || cond_in[l.cond_consts + k];
  AX_TRY(ax_needs_loop(args, l.p.body, l.body_consts, l.carries, args->in + l.cond_consts));
  for (uint32_t i = 0; i < l.cond_consts; i++) args->in[i] = cond_in[i];
  for (uint32_t k = 0; k < l.carries; k++)
    args->in[l.cond_consts + l.body_consts + k] = cond_in[l.cond_consts + k] = args->out[k];
  if (args->params == NULL) return AX_OK;
  ax_while_params params;
  AX_TRY(prune_both(args, &l, cond_in, &params));
  *(ax_while_params *)args->params = params;
  return AX_OK;
}
