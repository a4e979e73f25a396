/* ax_if and ax_switch. Each branch is traced once. Then all branches get the values that any of them captures, and each result
   varies, or is reduced, over the axes that it does in any branch. */
#include <stdio.h>

#include "control/cond.h"
#include "prim/prims.h"

static void join(ax_spread *all, const ax_spread *on) {
  all->reduced |= on->reduced;
  if (on->unreduced != 0) all->kind = on->kind;
  all->unreduced |= on->unreduced;
  all->varying |= on->varying;
  all->reduced &= ~(all->varying | all->unreduced);
}

static ax_body_options options_of(const ax_cond_tracing *t, uint32_t b) {
  return (ax_body_options){.owner = t->owner,
                           .part = t->names != NULL ? t->names[b] : "branch",
                           .in = t->in_types,
                           .function = {.in_count = t->in_count, .out_count = t->out_count},
                           .capture_varying = t->index_varying};
}

/* Results of one form, dtype and shape as those of the first branch: how they spread is made to agree. */
static ax_status check_results(const ax_cond_tracing *t, uint32_t b) {
  const ax_mesh *axes = &ax_builder_current()->axes;
  for (uint32_t k = 0; k < t->out_count; k++) {
    const ax_type *type = ax_program_out_type(t->bodies[b].program, k), *first = ax_program_out_type(t->bodies[0].program, k);
    if (type->form == first->form && type->dtype == first->dtype && ax_same_shape(type, first)) continue;
    char other[32] = "branch 0";
    if (t->names != NULL) snprintf(other, sizeof other, "%s", t->names[0]);
    return ax_error(AX_INVALID_ARGUMENT, "result %u is %s, but of %s it is %s", k, ax_type_string(type, axes), other,
                    ax_type_string(first, axes));
  }
  return AX_OK;
}

bool ax_cond_begin(ax_cond_tracing *t, ax_value index, const ax_value *in) {
  ax_type *types = ax_types_of(t->owner, in, t->in_count);
  t->index_varying = ax_typeof(index).spread.varying;
  t->out_spread = ax_trace_alloc(t->out_count * sizeof t->out_spread[0]);
  t->bodies = ax_trace_alloc(t->branch_count * sizeof t->bodies[0]);
  if (types == NULL || t->out_spread == NULL || t->bodies == NULL) return false;
  t->in_types = types;
  for (uint32_t i = 0; i < t->in_count; i++) ax_spread_vary(&types[i].spread, t->index_varying);
  for (uint32_t k = 0; k < t->out_count; k++) t->out_spread[k].varying = t->index_varying;
  return true;
}

ax_status ax_cond_open(ax_cond_tracing *t, uint32_t b, ax_value **in) {
  const ax_body_options options = options_of(t, b);
  return ax_body_open(&options, in);
}

ax_status ax_cond_close(ax_cond_tracing *t, uint32_t b, ax_value *outs) {
  const ax_body_options options = options_of(t, b);
  AX_TRY(ax_body_close(&options, outs, &t->bodies[b]));
  const ax_program *program = t->bodies[b].program;
  for (uint32_t k = 0; k < t->out_count; k++) join(&t->out_spread[k], &program->types[program->outs[k]].spread);
  return ax_region_check_silent(program, t->index_varying, &ax_builder_current()->axes, "it");
}

static ax_status trace_branch(ax_cond_tracing *t, uint32_t b, ax_fn function) {
  ax_value *in;
  if (function.in_count != t->in_count || function.out_count != t->out_count)
    return ax_error(AX_INVALID_ARGUMENT, "takes %u operands and gives %u results, but others take %u and give %u",
                    function.in_count, function.out_count, t->in_count, t->out_count);
  AX_TRY(ax_cond_open(t, b, &in));
  AX_TRY(ax_cond_close(t, b, ax_builder_call(function, in)));
  return check_results(t, b);
}

static ax_status trace_branches(ax_cond_tracing *t, const ax_fn *functions) {
  for (uint32_t b = 0; b < t->branch_count; b++) {
    ax_status status = trace_branch(t, b, functions[b]);
    if (status == AX_OK) continue;
    return t->names != NULL ? ax_error_context(status, "%s: %s: ", t->owner, t->names[b])
                            : ax_error_context(status, "switch: branch %u: ", b);
  }
  return AX_OK;
}

/* Captures are values of the trace in progress: a table of them by id finds those met before. */
static ax_status join_captures(ax_cond_tracing *t) {
  size_t all = 0, size = 16;
  for (uint32_t b = 0; b < t->branch_count; b++) all += t->bodies[b].captured_count;
  while (size < 2 * all) size *= 2;
  uint32_t *table = ax_calloc(size, sizeof table[0]); /* 1 + the number of a capture */
  t->captures = ax_trace_alloc(all * sizeof t->captures[0]);
  t->place = ax_trace_alloc(t->branch_count * sizeof t->place[0]);
  for (uint32_t b = 0; b < t->branch_count && !ax_failed() && table != NULL; b++) {
    const ax_body *body = &t->bodies[b];
    t->place[b] = ax_trace_alloc(body->captured_count * sizeof t->place[b][0]);
    for (uint32_t i = 0; i < body->captured_count && t->place[b] != NULL; i++) {
      size_t at = ax_hash_word(AX_HASH_SEED, body->captured[i].id) & (size - 1);
      while (table[at] != 0 && t->captures[table[at] - 1].id != body->captured[i].id) at = (at + 1) & (size - 1);
      if (table[at] == 0) {
        t->captures[t->capture_count++] = body->captured[i];
        table[at] = t->capture_count;
      }
      t->place[b][i] = table[at] - 1;
    }
  }
  ax_free(table);
  if (table == NULL) return ax_out_of_memory(size * sizeof table[0]);
  return ax_failed() ? AX_OUT_OF_MEMORY : AX_OK;
}

/* If a result is unreduced in one branch it must be unreduced in all: values that are not parts cannot be added to the same sum. */
static ax_status check_unreduced(const ax_cond_tracing *t, uint32_t b) {
  const ax_mesh *axes = &ax_builder_current()->axes;
  for (uint32_t k = 0; k < t->out_count; k++) {
    const ax_spread *all = &t->out_spread[k], *on = &ax_program_out_type(t->bodies[b].program, k)->spread;
    ax_axis_set other = all->unreduced & ~(on->kind == all->kind ? on->unreduced : 0);
    if (other == 0) continue;
    uint32_t axis = (uint32_t)__builtin_ctzll(other);
    ax_status status =
        ax_error(AX_INVALID_ARGUMENT,
                 "result %u is %s along \"%s\", but %s in another branch; vary_unreduced_cast makes it so, or %s in that one", k,
                 ax_state_name(on, axis), axes->axis[axis].name,
                 ax_state_name(&(ax_spread){.unreduced = all->unreduced, .kind = all->kind}, axis), ax_reduce_advice(all->kind));
    return t->names != NULL ? ax_error_context(status, "%s: %s: ", t->owner, t->names[b])
                            : ax_error_context(status, "switch: branch %u: ", b);
  }
  return AX_OK;
}

/* Whether it takes all captures, in order, and its results spread enough. */
static bool is_alike(const ax_cond_tracing *t, uint32_t b) {
  const ax_program *program = t->bodies[b].program;
  bool alike = t->bodies[b].captured_count == t->capture_count;
  for (uint32_t i = 0; alike && i < t->capture_count; i++) alike = t->place[b][i] == i;
  for (uint32_t k = 0; alike && k < t->out_count; k++)
    alike = ax_spread_equal(&program->types[program->outs[k]].spread, &t->out_spread[k]);
  return alike;
}

/* (captures of all.., in..) -> (out..) */
static ax_status make_alike(const ax_cond_tracing *t, uint32_t b) {
  ax_body *body = &t->bodies[b];
  uint32_t own = body->captured_count, count = t->capture_count + t->in_count;
  ax_type *types = ax_trace_alloc(count * sizeof types[0]);
  for (uint32_t i = 0; types != NULL && i < t->capture_count; i++) {
    types[i] = ax_typeof(t->captures[i]);
    ax_spread_vary(&types[i].spread, t->index_varying);
  }
  for (uint32_t i = 0; types != NULL && i < t->in_count; i++) types[t->capture_count + i] = t->in_types[i];
  if (types == NULL) return AX_OUT_OF_MEMORY;
  ax_builder builder;
  ax_program *made;
  ax_value *in = ax_region_begin(&builder, &body->program->axes, types, count);
  ax_value *operands = ax_trace_alloc(body->program->in_count * sizeof operands[0]);
  ax_value *outs = ax_trace_alloc(t->out_count * sizeof outs[0]);
  if (in != NULL && operands != NULL && outs != NULL) {
    for (uint32_t i = 0; i < own; i++) operands[i] = in[t->place[b][i]];
    for (uint32_t i = 0; i < t->in_count; i++) operands[own + i] = in[t->capture_count + i];
    ax_call(body->program, AX_LIST(body->program->in_count, operands), AX_LIST(t->out_count, outs));
    for (uint32_t k = 0; k < t->out_count; k++) outs[k] = ax_spread_to(outs[k], &t->out_spread[k]);
  }
  AX_TRY(ax_region_finish(&builder, outs, t->out_count, &made));
  ax_program_release(body->program);
  body->program = made;
  return AX_OK;
}

ax_status ax_cond_join(ax_cond_tracing *t) {
  for (uint32_t b = 0; b < t->branch_count; b++) AX_TRY(check_unreduced(t, b));
  AX_TRY(join_captures(t));
  for (uint32_t b = 0; b < t->branch_count; b++)
    if (!is_alike(t, b)) AX_TRY(make_alike(t, b));
  return AX_OK;
}

void ax_cond_bind(const ax_cond_tracing *t, ax_value index, const ax_value *in, ax_value *out) {
  uint32_t count = 1 + t->capture_count + t->in_count;
  ax_value *all = ax_trace_alloc(count * sizeof all[0]);
  ax_program **branches = ax_trace_alloc(t->branch_count * sizeof branches[0]);
  if (all == NULL || branches == NULL) return;
  all[0] = index;
  for (uint32_t i = 0; i < t->capture_count; i++) all[1 + i] = ax_vary_to(t->captures[i], t->index_varying);
  for (uint32_t i = 0; i < t->in_count; i++) all[1 + t->capture_count + i] = ax_vary_to(in[i], t->index_varying);
  for (uint32_t b = 0; b < t->branch_count; b++) branches[b] = t->bodies[b].program;
  ax_cond_params params = {{t->branch_count, branches}};
  ax_bind(&ax_prim_cond, &params, all, count, out, t->out_count);
}

void ax_cond_deinit(ax_cond_tracing *t) {
  for (uint32_t b = 0; b < t->branch_count && t->bodies != NULL; b++) ax_body_deinit(&t->bodies[b]);
}

/* t: names, branches and counts; operands were taken. */
static void choose(ax_cond_tracing *t, const ax_fn *functions, ax_value index, const ax_value *in, ax_value *out) {
  if (!ax_cond_begin(t, index, in)) return;
  ax_status status = trace_branches(t, functions);
  if (status == AX_OK) status = ax_cond_join(t);
  if (status != AX_OK) ax_fail(status);
  if (!ax_failed()) ax_cond_bind(t, index, in, out);
  ax_cond_deinit(t);
}

/* A scalar of this dtype; or the trace has failed. */
static bool is_scalar(ax_value x, ax_dtype dtype, const char *format) {
  ax_type type = ax_typeof(x);
  if (ax_failed()) return false;
  if (type.dtype == dtype && type.rank == 0) return true;
  ax_fail(ax_error(AX_INVALID_ARGUMENT, format, ax_type_string(&type, &ax_builder_current()->axes)));
  return false;
}

void (ax_switch)(ax_value index, uint32_t count, const ax_fn *branches, uint32_t in_count, const ax_value *in, uint32_t out_count,
                 ax_value *out) {
  ax_status status = ax_list_length("switch", "branches", count, &count);
  if (status != AX_OK) ax_fail(status);
  if (count == 0 || branches == NULL) {
    if (!ax_failed()) ax_fail(ax_error(AX_INVALID_ARGUMENT, "switch: there is no branch"));
    return;
  }
  ax_cond_tracing t = {
      .owner = "switch", .branch_count = count, .in_count = branches[0].in_count, .out_count = branches[0].out_count};
  if (!ax_lists_fit("switch", in_count, t.in_count, out_count, t.out_count, out)) return;
  in = ax_take_operands(in, t.in_count, out, t.out_count);
  if (is_scalar(index, AX_S32, "switch: the index is %s; it must be an s32 scalar (ax_if takes a bool)"))
    choose(&t, branches, index, in, out);
}

void (ax_if)(ax_value predicate, ax_fn then, ax_fn otherwise, uint32_t in_count, const ax_value *in, uint32_t out_count,
             ax_value *out) {
  if (!ax_lists_fit("if", in_count, then.in_count, out_count, then.out_count, out)) return;
  static const char *const names[] = {"otherwise", "then"};
  const ax_fn branches[] = {otherwise, then};
  ax_cond_tracing t = {.owner = "if", .names = names, .branch_count = 2, .in_count = then.in_count, .out_count = then.out_count};
  in = ax_take_operands(in, t.in_count, out, t.out_count);
  if (is_scalar(predicate, AX_BOOL, "if: the predicate is %s; it must be a bool scalar (ax_switch takes an s32)"))
    choose(&t, branches, ax_convert_element_type(predicate, AX_S32), in, out);
}
