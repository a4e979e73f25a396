/* cond: s32[], T0.., -> R0..            runs branch[clamp(index)] on the operands
   Parameters: branches, programs that take the same operands and give results of the same types.
   Errors: an index that is no s32 scalar; branches that disagree; checked axes along which the index varies and a branch
   communicates: devices that take another branch would never come.
   Varying: operands and results vary at least over what the index varies over (ax_cond sees to it by pvary): what a device's choice
   uses is its own, so that a transposed branch needs no psum that other devices would not come to.
   Linear in the operands for a fixed index; each transform is that of the branches. When the index is batched, all branches run on
   the whole batch and each member's results are selected. */
#include <stdio.h>

#include "ir/number.h"
#include "prim/prims.h"
#include "prim/region.h"

typedef struct cond_params {
  ax_programs branches;
} cond_params;

static uint32_t count_outs(const void *params) {
  const ax_programs *branches = params;
  return branches->count > 0 ? branches->v[0]->out_count : 0;
}

/* --- infer --- */

static ax_status check_varying(const ax_infer_args *args, const ax_program *branch, const char *name) {
  ax_axis_set varying = args->in[0].spread.varying;
  for (uint32_t i = 0; i < branch->in_count + branch->out_count; i++) {
    bool is_operand = i < branch->in_count;
    uint32_t number = is_operand ? i : i - branch->in_count;
    const ax_type *type = &branch->types[is_operand ? i : branch->outs[number]];
    if ((varying & ~type->spread.varying) != 0)
      return ax_error(AX_INVALID_ARGUMENT, "%s %u of %s is %s, but the index varies over %s",
                      is_operand ? "operand" : "result", number, name, ax_type_string(type, args->axes),
                      ax_axis_set_string(varying, args->axes));
  }
  return AX_OK;
}

static ax_status check_branch(const ax_infer_args *args, const ax_program *branch, const ax_program *first,
                              uint32_t b) {
  char name[32];
  snprintf(name, sizeof name, "branch %u", b);
  AX_TRY(ax_region_check_axes(branch, args->axes, name));
  if (branch->in_count + 1 != args->in_count || branch->out_count != args->out_count)
    return ax_error(AX_INVALID_ARGUMENT, "%s takes %u operands and gives %u results, not %u and %u", name,
                    branch->in_count, branch->out_count, args->in_count - 1, args->out_count);
  for (uint32_t i = 0; i < branch->in_count; i++)
    AX_TRY(ax_region_check_type(&args->in[i + 1], &branch->types[i], args->axes, "operand", i, "is", "a branch takes"));
  AX_TRY(check_varying(args, branch, name));
  for (uint32_t k = 0; k < branch->out_count; k++)
    AX_TRY(ax_region_check_type(&branch->types[branch->outs[k]], &first->types[first->outs[k]], args->axes,
                                "the branches disagree: result", k, "is", "of branch 0 it is"));
  return ax_region_check_silent(branch, args->in[0].spread.varying, args->axes, name);
}

static ax_status infer(const ax_infer_args *args) {
  const cond_params *params = args->params;
  if (params->branches.count == 0 || args->in_count == 0)
    return ax_error(AX_INVALID_ARGUMENT, "needs an index and at least one branch");
  const ax_type *index = &args->in[0];
  if (index->dtype != AX_S32 || index->rank != 0)
    return ax_error(AX_INVALID_ARGUMENT, "the index is %s, not s32[]", ax_type_string(index, args->axes));
  const ax_program *first = params->branches.v[0];
  for (uint32_t b = 0; b < params->branches.count; b++)
    AX_TRY(check_branch(args, params->branches.v[b], first, b));
  for (uint32_t k = 0; k < args->out_count; k++) args->out[k] = first->types[first->outs[k]];
  return AX_OK;
}

/* --- eval, differs --- */

static uint32_t chosen(const ax_tensor *index, uint32_t count) {
  int64_t i = ax_number_load(AX_S32, index->data, 0).i;
  return i < 0 ? 0 : i >= count ? count - 1 : (uint32_t)i;
}

/* Devices that chose the same branch run it together. */
static ax_status eval(const ax_eval_args *args) {
  const ax_programs *branches = &((const cond_params *)args->eqn->params)->branches;
  ax_arena arena = {0};
  uint32_t in_count = args->eqn->in_count - 1, out_count = args->eqn->out_count;
  uint32_t *lane = ax_arena_alloc(&arena, args->lanes * sizeof lane[0]);
  ax_tensor *const **in = ax_arena_alloc(&arena, in_count * sizeof in[0]);
  ax_tensor ***out = ax_arena_alloc(&arena, out_count * sizeof out[0]);
  ax_status status = lane == NULL || in == NULL || out == NULL ? ax_out_of_memory(0) : AX_OK;
  for (uint32_t i = 0; status == AX_OK && i < in_count; i++) in[i] = args->in + (i + 1) * args->lanes;
  for (uint32_t k = 0; status == AX_OK && k < out_count; k++) out[k] = args->out + k * args->lanes;
  for (uint32_t b = 0; status == AX_OK && b < branches->count; b++) {
    uint32_t count = 0;
    for (uint32_t l = 0; l < args->lanes; l++)
      if (chosen(args->in[l], branches->count) == b) lane[count++] = l;
    status = ax_region_eval(args, branches->v[b], lane, count, in, out);
  }
  return ax_region_eval_end(args, &arena, status);
}

static void differs(const ax_differs_args *args) {
  const ax_programs *branches = &((const cond_params *)args->eqn->params)->branches;
  ax_axis_set *out = ax_differs_alloc(args, args->eqn->out_count);
  for (uint32_t k = 0; k < args->eqn->out_count; k++) args->out[k] = args->in[0];
  for (uint32_t b = 0; out != NULL && b < branches->count; b++) {
    if (!ax_region_differs(args, branches->v[b], args->axes, args->in + 1, out)) return;
    for (uint32_t k = 0; k < args->eqn->out_count; k++) args->out[k] |= out[k];
  }
}

/* --- jvp, linearize --- */

/* What the rules of one equation work with: its branches, and programs made of them. */
typedef struct branches {
  const ax_programs *of;
  uint32_t count, in_count, out_count; /* operands without the index */
  bool *nonzero;    /* operands with a tangent */
  ax_want *want;    /* results with a tangent, in any branch */
  ax_program **made; /* count programs, owned here */
} branches;

static bool branches_init(branches *b, const ax_eqn *eqn) {
  const ax_programs *of = &((const cond_params *)eqn->params)->branches;
  *b = (branches){.of = of, .count = of->count, .in_count = eqn->in_count - 1, .out_count = eqn->out_count};
  b->nonzero = ax_trace_alloc(b->in_count);
  b->want = ax_trace_alloc(b->out_count * sizeof b->want[0]);
  b->made = ax_trace_alloc(b->count * sizeof b->made[0]);
  return !ax_failed();
}

static void release(ax_program **programs, uint32_t count) {
  for (uint32_t i = 0; programs != NULL && i < count; i++) ax_program_release(programs[i]);
}

/* Binds the programs made of the branches; on failure, of them or before, the trace has failed. */
static void bind_made(ax_status status, ax_program **made, uint32_t count, const ax_value *in, uint32_t in_count,
                      ax_value *out, uint32_t out_count) {
  cond_params params = {{count, made}};
  if (status != AX_OK) ax_fail(status);
  if (!ax_failed()) ax_bind(&ax_prim_cond, &params, in, in_count, out, out_count);
}

/* A result has a tangent when it has one in any branch. Returns how many have. */
static uint32_t settle_tangents(branches *b, const ax_value *tangents) {
  bool *has = ax_trace_alloc(b->out_count), *any = ax_trace_alloc(b->out_count);
  if (any == NULL || has == NULL) return 0;
  uint32_t count = 0;
  ax_region_nonzero(tangents, b->in_count, b->nonzero);
  for (uint32_t k = 0; k < b->out_count; k++) b->want[k] = AX_WANT_NONZERO;
  for (uint32_t i = 0; i < b->count && !ax_failed(); i++) {
    ax_program *jvp;
    ax_status status = ax_jvp_program(b->of->v[i], b->nonzero, b->want, has, &jvp);
    if (status != AX_OK) ax_fail(status);
    for (uint32_t k = 0; status == AX_OK && k < b->out_count; k++) any[k] = any[k] || has[k];
    ax_program_release(jvp);
  }
  for (uint32_t k = 0; k < b->out_count; k++) {
    b->want[k] = any[k] ? AX_WANT_ALWAYS : AX_WANT_NEVER;
    count += any[k];
  }
  return count;
}

static void spread_tangents(const branches *b, const ax_value *given, ax_value *tangent_out) {
  uint32_t next = 0;
  for (uint32_t k = 0; k < b->out_count; k++) tangent_out[k] = b->want[k] == AX_WANT_ALWAYS ? given[next++] : ax_zero;
}

static uint32_t add_tangents(const branches *b, const ax_value *tangents, ax_value *to) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < b->in_count; i++)
    if (b->nonzero[i]) to[count++] = tangents[i];
  return count;
}

static void jvp(const ax_jvp_args *args) {
  branches b;
  if (!branches_init(&b, args->eqn)) return;
  uint32_t tangents = settle_tangents(&b, args->tangent_in + 1), in_count = args->eqn->in_count;
  ax_value *in = ax_trace_alloc((2 * (size_t)in_count) * sizeof in[0]);
  ax_value *out = ax_trace_alloc((b.out_count + (size_t)tangents) * sizeof out[0]);
  if (in == NULL || out == NULL) return;
  for (uint32_t i = 0; i < in_count; i++) in[i] = args->in[i];
  in_count += add_tangents(&b, args->tangent_in + 1, in + in_count);
  ax_status status = AX_OK;
  for (uint32_t i = 0; i < b.count && status == AX_OK; i++)
    status = ax_jvp_program(b.of->v[i], b.nonzero, b.want, NULL, &b.made[i]);
  bind_made(status, b.made, b.count, in, in_count, out, b.out_count + tangents);
  release(b.made, b.count);
  for (uint32_t k = 0; k < b.out_count; k++) args->out[k] = out[k];
  spread_tangents(&b, out + b.out_count, args->tangent_out);
}

/* The branches split in two. A residual that is an operand is taken from there; the others leave the primal branches through
   slots, shared by residuals of equal type of different branches. */
typedef struct split {
  branches *b;
  ax_program **primal, **tangent; /* by branch; owned here */
  uint32_t *residual_count, **source; /* by branch, by residual: an operand, or in_count + slot */
  bool *used;                     /* operands that are residuals of some branch */
  ax_type *slots;
  uint32_t slot_count, slot_capacity;
} split;

static bool split_init(split *s, branches *b) {
  *s = (split){.b = b};
  s->primal = ax_trace_alloc(b->count * sizeof s->primal[0]);
  s->tangent = ax_trace_alloc(b->count * sizeof s->tangent[0]);
  s->residual_count = ax_trace_alloc(b->count * sizeof s->residual_count[0]);
  s->source = ax_trace_alloc(b->count * sizeof s->source[0]);
  s->used = ax_trace_alloc(b->in_count);
  return !ax_failed();
}

static void split_deinit(split *s) {
  release(s->primal, s->b->count);
  release(s->tangent, s->b->count);
  ax_free(s->slots);
}

/* A slot of this type that the branch does not use yet. */
static ax_status find_slot(split *s, const ax_type *type, bool *taken, uint32_t *out) {
  for (*out = 0; *out < s->slot_count; ++*out)
    if (!taken[*out] && ax_type_equal(&s->slots[*out], type)) break;
  if (*out < s->slot_count) return AX_OK;
  AX_TRY(ax_grow(&s->slots, sizeof s->slots[0], s->slot_count, 1, &s->slot_capacity));
  s->slots[s->slot_count++] = *type;
  return AX_OK;
}

static ax_status split_branch(split *s, uint32_t i) {
  branches *b = s->b;
  AX_TRY(ax_linearize_program(b->of->v[i], b->nonzero, b->want, NULL, &s->primal[i], &s->tangent[i],
                              &s->residual_count[i]));
  const ax_program *primal = s->primal[i];
  uint32_t count = s->residual_count[i];
  s->source[i] = ax_trace_alloc(count * sizeof(uint32_t));
  bool *taken = ax_trace_alloc(s->slot_count + count);
  if (taken == NULL || s->source[i] == NULL) return ax_out_of_memory(count * sizeof(uint32_t));
  for (uint32_t r = 0; r < count; r++) {
    uint32_t id = primal->outs[b->out_count + r], slot;
    if (id < primal->in_count) {
      s->used[id] = true;
      s->source[i][r] = id;
      continue;
    }
    AX_TRY(find_slot(s, &primal->types[id], taken, &slot));
    taken[slot] = true;
    s->source[i][r] = b->in_count + slot;
  }
  return AX_OK;
}

/* (x..) -> (y.., slot..), zeros in the slots it does not use. */
static ax_status build_primal(const split *s, uint32_t i, ax_program **out) {
  const ax_program *primal = s->primal[i];
  uint32_t y_count = s->b->out_count, out_count = y_count + s->slot_count;
  ax_builder builder;
  ax_value *in = ax_region_begin(&builder, &primal->axes, primal->types, primal->in_count);
  ax_value *results = ax_trace_alloc(primal->out_count * sizeof results[0]);
  ax_value *outs = ax_trace_alloc(out_count * sizeof outs[0]);
  if (in != NULL && results != NULL && outs != NULL) {
    ax_call(primal, in, primal->in_count, results, primal->out_count);
    for (uint32_t k = 0; k < y_count; k++) outs[k] = results[k];
    for (uint32_t r = 0; r < s->residual_count[i]; r++)
      if (s->source[i][r] >= s->b->in_count) outs[y_count + s->source[i][r] - s->b->in_count] = results[y_count + r];
    for (uint32_t k = y_count; k < out_count; k++)
      if (outs[k].trace == 0) outs[k] = ax_zeros_of(&s->slots[k - y_count]);
  }
  return ax_region_finish(&builder, outs, out_count, out);
}

/* (used x.., slot.., dx..) -> (dy..) */
static ax_status build_tangent(const split *s, uint32_t i, ax_program **out) {
  const ax_program *first = s->b->of->v[0], *tangent = s->tangent[i];
  uint32_t n = s->b->in_count, count = 0, residuals = s->residual_count[i];
  ax_type *types = ax_trace_alloc((2 * (size_t)n + s->slot_count) * sizeof types[0]);
  uint32_t *place = ax_trace_alloc((n + (size_t)s->slot_count) * sizeof place[0]);
  uint32_t *in_at = ax_trace_alloc(tangent->in_count * sizeof in_at[0]);
  uint32_t *out_from = ax_trace_alloc(tangent->out_count * sizeof out_from[0]);
  if (types == NULL || place == NULL || in_at == NULL || out_from == NULL) return ax_out_of_memory(0);
  for (uint32_t x = 0; x < n + s->slot_count; x++) {
    place[x] = count;
    if (x >= n || s->used[x]) types[count++] = x < n ? first->types[x] : s->slots[x - n];
  }
  for (uint32_t r = 0; r < residuals; r++) in_at[r] = place[s->source[i][r]];
  for (uint32_t r = residuals; r < tangent->in_count; r++) {
    types[count] = tangent->types[r];
    in_at[r] = count++;
  }
  for (uint32_t k = 0; k < tangent->out_count; k++) out_from[k] = k;
  return ax_region_rearrange(tangent, types, count, in_at, out_from, tangent->out_count, out);
}

static ax_status build_all(const split *s, ax_status (*build)(const split *, uint32_t, ax_program **)) {
  release(s->b->made, s->b->count);
  for (uint32_t i = 0; i < s->b->count; i++) s->b->made[i] = NULL;
  for (uint32_t i = 0; i < s->b->count; i++) AX_TRY(build(s, i, &s->b->made[i]));
  return AX_OK;
}

static void bind_split(const split *s, const ax_jvp_args *args, uint32_t tangents) {
  branches *b = s->b;
  uint32_t out_count = b->out_count + s->slot_count, count = 1;
  ax_value *out = ax_trace_alloc((out_count + (size_t)tangents) * sizeof out[0]);
  ax_value *in = ax_trace_alloc((1 + 2 * (size_t)b->in_count + s->slot_count) * sizeof in[0]);
  if (out == NULL || in == NULL) return;
  bind_made(build_all(s, build_primal), b->made, b->count, args->in, args->eqn->in_count, out, out_count);
  for (uint32_t k = 0; k < b->out_count; k++) args->out[k] = out[k];
  in[0] = args->in[0];
  for (uint32_t i = 0; i < b->in_count; i++)
    if (s->used[i]) in[count++] = args->in[i + 1];
  for (uint32_t k = 0; k < s->slot_count; k++) in[count++] = out[b->out_count + k];
  count += add_tangents(b, args->tangent_in + 1, in + count);
  bind_made(build_all(s, build_tangent), b->made, b->count, in, count, out + out_count, tangents);
  spread_tangents(b, out + out_count, args->tangent_out);
}

static void linearize(const ax_jvp_args *args) {
  branches b;
  split s;
  if (!branches_init(&b, args->eqn)) return;
  uint32_t tangents = settle_tangents(&b, args->tangent_in + 1);
  if (ax_failed() || !split_init(&s, &b)) return;
  ax_status status = AX_OK;
  for (uint32_t i = 0; i < b.count && status == AX_OK; i++) status = split_branch(&s, i);
  if (status != AX_OK) ax_fail(status);
  if (!ax_failed()) bind_split(&s, args, tangents);
  release(b.made, b.count);
  split_deinit(&s);
}

/* --- transpose --- */

/* (index, c.., ct of y..) -> (ct of x..) */
static void transpose(const ax_transpose_args *args) {
  branches b;
  if (!branches_init(&b, args->eqn)) return;
  const bool *linear = args->linear + 1;
  uint32_t count = 1, wanted = 0;
  ax_value *in = ax_trace_alloc((1 + (size_t)b.in_count + b.out_count) * sizeof in[0]);
  ax_value *out = ax_trace_alloc(b.in_count * sizeof out[0]);
  if (in == NULL || out == NULL) return;
  in[0] = args->in[0];
  for (uint32_t i = 0; i < b.in_count; i++) {
    if (!linear[i]) in[count++] = args->in[i + 1];
    wanted += linear[i];
  }
  bool *zero = ax_trace_alloc(b.out_count);
  if (zero == NULL) return;
  for (uint32_t k = 0; k < b.out_count; k++) {
    zero[k] = ax_is_zero(args->cotangent[k]);
    if (!zero[k]) in[count++] = args->cotangent[k];
  }
  ax_status status = AX_OK;
  for (uint32_t i = 0; i < b.count && status == AX_OK; i++)
    status = ax_transpose_program(b.of->v[i], linear, zero, NULL, &b.made[i]);
  bind_made(status, b.made, b.count, in, count, out, wanted);
  release(b.made, b.count);
  wanted = 0;
  for (uint32_t i = 0; i < b.in_count; i++)
    if (linear[i]) args->out[i + 1] = out[wanted++];
}

/* --- batch --- */

/* The branches batched, results as `want` says. */
static ax_status batch_branches(branches *b, const ax_batch_args *args, const int *want) {
  for (uint32_t i = 0; i < b->count; i++)
    AX_TRY(ax_batch_program(b->of->v[i], args->in_dim + 1, args->size, args->axis, want, NULL, &b->made[i]));
  return AX_OK;
}

/* want[k]: 0 where result k is batched in any branch, otherwise -1. */
static ax_status settle_batched(branches *b, const ax_batch_args *args, int *want) {
  int *dim = ax_trace_alloc(b->out_count * sizeof dim[0]);
  if (dim == NULL) return ax_out_of_memory(b->out_count * sizeof dim[0]);
  for (uint32_t k = 0; k < b->out_count; k++) want[k] = -1;
  for (uint32_t i = 0; i < b->count; i++) {
    ax_program *batched;
    AX_TRY(ax_batch_program(b->of->v[i], args->in_dim + 1, args->size, args->axis, NULL, dim, &batched));
    ax_program_release(batched);
    for (uint32_t k = 0; k < b->out_count; k++)
      if (dim[k] >= 0) want[k] = 0;
  }
  return AX_OK;
}

/* index [size], branches' results with the batch in front -> each member's. Results of branch b are at out + b * out_count. */
static ax_value select_result(const ax_batch_args *args, const branches *b, const ax_value *out, uint32_t k) {
  ax_value result = out[k];
  ax_type type = ax_typeof(result);
  const int64_t front = 0;
  for (uint32_t i = 1; i < b->count && !ax_failed(); i++) {
    ax_value chosen = ax_ge(args->in[0], ax_full_like(args->in[0], i));
    ax_value which = ax_broadcast_in_dim(chosen, type.rank, type.dims, &front);
    result = ax_select_n(which, result, out[i * b->out_count + k]);
  }
  return result;
}

static void batch_by_select(const ax_batch_args *args, branches *b, const int *want) {
  ax_value *out = ax_trace_alloc((size_t)b->count * b->out_count * sizeof out[0]);
  if (out == NULL) return;
  ax_status status = batch_branches(b, args, want);
  if (status != AX_OK) ax_fail(status);
  for (uint32_t i = 0; i < b->count && !ax_failed(); i++)
    ax_call(b->made[i], args->in + 1, b->in_count, out + i * b->out_count, b->out_count);
  for (uint32_t k = 0; k < b->out_count; k++) args->out[k] = select_result(args, b, out, k);
}

static void batch(const ax_batch_args *args) {
  branches b;
  if (!branches_init(&b, args->eqn)) return;
  int *want = ax_trace_alloc(b.out_count * sizeof want[0]);
  if (want == NULL) return;
  if (args->in_dim[0] >= 0) {
    batch_by_select(args, &b, want);
  } else {
    ax_status status = settle_batched(&b, args, want);
    if (status == AX_OK) status = batch_branches(&b, args, want);
    bind_made(status, b.made, b.count, args->in, args->eqn->in_count, args->out, b.out_count);
    for (uint32_t k = 0; k < b.out_count; k++) args->out_dim[k] = want[k];
  }
  release(b.made, b.count);
}

/* --- lower, hlo --- */

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_programs *branches = &((const cond_params *)eqn->params)->branches;
  ax_block *outer;
  uint32_t *results = ax_arena_alloc(&lower->plan->arena, eqn->out_count * sizeof results[0]);
  if (results == NULL) return ax_out_of_memory(eqn->out_count * sizeof results[0]);
  for (uint32_t k = 0; k < eqn->out_count; k++) AX_TRY(ax_lower_result(lower, eqn, k, &out[k]));
  AX_TRY(ax_lower_branch_begin(lower, in[0], branches->count, ax_lower_get(lower, in[0])->axes, &outer));
  for (uint32_t b = 0; b < branches->count; b++) {
    ax_lower_branch_case(lower, outer, b);
    AX_TRY(ax_lower_program(lower, branches->v[b], in + 1, results));
    for (uint32_t k = 0; k < eqn->out_count; k++) AX_TRY(ax_lower_copy(lower, out[k], results[k]));
  }
  ax_lower_branch_end(lower, outer);
  return AX_OK;
}

/* stablehlo.case takes the last branch for an index out of range; ours is clamped, so it is clamped first. */
static uint32_t hlo_clamped(ax_hlo *hlo, uint32_t index, uint32_t count) {
  ax_type scalar = ax_array_type(AX_S32, 0, NULL), types[] = {scalar, scalar, scalar};
  int32_t low = 0, high = (int32_t)count - 1;
  uint32_t first = ax_hlo_splat(hlo, &scalar, &low), last = ax_hlo_splat(hlo, &scalar, &high);
  uint32_t in[] = {first, index, last};
  return ax_hlo_op(hlo, "stablehlo.clamp", in, types, 3, NULL, &scalar, 1);
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_programs *branches = &((const cond_params *)eqn->params)->branches;
  const ax_type *types = hlo->program->types + eqn->out;
  ax_type scalar = ax_array_type(AX_S32, 0, NULL);
  uint32_t *results = ax_calloc(eqn->out_count, sizeof results[0]);
  if (results == NULL) return ax_out_of_memory(eqn->out_count * sizeof results[0]);
  uint32_t index = hlo_clamped(hlo, in[0], branches->count);
  uint32_t first = ax_hlo_begin(hlo, "stablehlo.case", &index, 1, eqn->out_count);
  ax_status status = AX_OK;
  for (uint32_t b = 0; b < branches->count && status == AX_OK; b++) {
    ax_hlo_region_begin(hlo, NULL, 0);
    status = hlo->inline_program(hlo, branches->v[b], in + 1, results);
    ax_hlo_region_end(hlo, results, types, eqn->out_count);
  }
  ax_hlo_end(hlo, NULL, &scalar, 1, types, eqn->out_count);
  for (uint32_t k = 0; k < eqn->out_count; k++) out[k] = first + k;
  ax_free(results);
  return status;
}

/* --- The record --- */

static const ax_param params[] = {{"branches", AX_PARAM_PROGRAMS, offsetof(cond_params, branches)}};

const ax_prim ax_prim_cond = {
    .name = "cond", .kind = AX_REGION, .in_count = -1, .out_count = -1, .count_outs = count_outs,
    .params = params, .param_count = AX_COUNT(params), .params_bytes = sizeof(cond_params),
    .infer = infer, .spread = ax_spread_body, .eval = eval, .differs = differs, .jvp = jvp, .linearize = linearize,
    .transpose = transpose, .batch = batch, .shard = ax_absent_shard, .lower = lower, .hlo = hlo,
};

/* --- The function --- */

/* Tracing all branches until they capture the same values and their results vary alike. */
typedef struct tracing {
  const ax_function *branches;
  void *const *contexts;
  uint32_t branch_count, in_count, out_count;
  const ax_type *in_types;
  ax_axis_set index_varying, *out_varying;
  ax_body *bodies;
  uint32_t *given;           /* of each branch: how many captures it was given in the last round */
  const ax_value *captures;  /* of the branch traced last */
  uint32_t capture_count;
  bool changed;
} tracing;

static ax_status trace_branch(tracing *t, uint32_t b) {
  ax_body_options options = {.function = t->branches[b],
                             .context = t->contexts != NULL ? t->contexts[b] : NULL,
                             .in = t->in_types,
                             .in_count = t->in_count,
                             .out_count = t->out_count,
                             .out_varying = t->out_varying,
                             .captures = t->captures,
                             .capture_count = t->capture_count,
                             .capture_varying = t->index_varying};
  ax_body body;
  AX_TRY(ax_body_trace(&options, &body));
  ax_body_deinit(&t->bodies[b]);
  t->bodies[b] = body;
  t->given[b] = t->capture_count;
  t->captures = body.captured;
  t->capture_count = body.captured_count;
  for (uint32_t k = 0; k < t->out_count; k++)
    t->out_varying[k] |= body.program->types[body.program->outs[k]].spread.varying;
  return AX_OK;
}

static bool is_settled(const tracing *t, uint32_t b) {
  const ax_program *program = t->bodies[b].program;
  uint32_t captured = t->index_varying != 0 ? t->given[b] : t->bodies[b].captured_count;
  bool settled = program != NULL && captured == t->capture_count;
  for (uint32_t k = 0; settled && k < t->out_count; k++)
    settled = program->types[program->outs[k]].spread.varying == t->out_varying[k];
  return settled;
}

static ax_status trace_branches(tracing *t) {
  do {
    t->changed = false;
    for (uint32_t b = 0; b < t->branch_count; b++) {
      if (is_settled(t, b)) continue;
      ax_status status = trace_branch(t, b);
      if (status != AX_OK) return ax_error_context(status, "cond: branch %u: ", b);
      t->changed = true;
    }
  } while (t->changed);
  return AX_OK;
}

static void bind_traced(tracing *t, ax_value index, const ax_value *in, ax_value *out) {
  uint32_t count = 1 + t->capture_count + t->in_count;
  ax_value *all = ax_trace_alloc(count * sizeof all[0]);
  ax_program **branches = ax_trace_alloc(t->branch_count * sizeof branches[0]);
  if (all == NULL || branches == NULL) return;
  all[0] = index;
  for (uint32_t i = 0; i < t->capture_count; i++) all[1 + i] = ax_vary_to(t->captures[i], t->index_varying);
  for (uint32_t i = 0; i < t->in_count; i++) all[1 + t->capture_count + i] = ax_vary_to(in[i], t->index_varying);
  for (uint32_t b = 0; b < t->branch_count; b++) branches[b] = t->bodies[b].program;
  cond_params params = {{t->branch_count, branches}};
  ax_bind(&ax_prim_cond, &params, all, count, out, t->out_count);
}

void ax_cond(ax_value index, const ax_function *branches, void *const *contexts, uint32_t branch_count,
             const ax_value *in, uint32_t in_count, ax_value *out, uint32_t out_count) {
  in = ax_take(in, in_count, out, out_count);
  if (ax_failed()) return;
  if (ax_typeof(index).dtype == AX_BOOL) index = ax_convert_element_type(index, AX_S32);
  ax_type *types = ax_trace_alloc(in_count * sizeof types[0]);
  tracing t = {.branches = branches, .contexts = contexts, .branch_count = branch_count, .in_count = in_count,
               .out_count = out_count, .in_types = types, .index_varying = ax_typeof(index).spread.varying};
  t.out_varying = ax_trace_alloc(out_count * sizeof t.out_varying[0]);
  t.bodies = ax_trace_alloc(branch_count * sizeof t.bodies[0]);
  t.given = ax_trace_alloc(branch_count * sizeof t.given[0]);
  if (types == NULL || t.out_varying == NULL || t.bodies == NULL || t.given == NULL) return;
  for (uint32_t i = 0; i < in_count; i++) {
    types[i] = ax_typeof(in[i]);
    types[i].spread.varying |= t.index_varying;
  }
  for (uint32_t k = 0; k < out_count; k++) t.out_varying[k] = t.index_varying;
  ax_status status = ax_failed() ? AX_OK : trace_branches(&t);
  if (status != AX_OK) ax_fail(status);
  if (!ax_failed()) bind_traced(&t, index, in, out);
  for (uint32_t b = 0; b < branch_count; b++) ax_body_deinit(&t.bodies[b]);
}
