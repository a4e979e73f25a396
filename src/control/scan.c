/* scan: C0.., A0.., T0[n,d..].. -> A0.., R0[n,d..]..

     for i in 0 .. n (from the end when `reverse`):  carry, y[i] = body(consts, carry, x[i])

   Parameters: length n; reverse; num_consts, num_carry: how many operands are constants and carries, the rest are xs; body.
   Errors: operands that are not what the body takes (xs one dimension more, of size n); a carry that the body changes in type.
   Varying: a carry has the same type in all iterations, so it varies from the start over all axes that it ever varies over; ax_scan
   finds that fixed point.
   Linear where its body is linear. jvp, linearize, transpose and batch stand in scan_transform.c, the function in scan_trace.c. */
#include <string.h>

#include "control/scan.h"
#include "ir/number.h"
#include "hlo/hlo.h"
#include "ir/flow.h"
#include "plan/lower.h"
#include "plan/plan.h"
#include "prim/prims.h"
#include "prim/region.h"
#include "prim/rules.h"

static uint32_t count_outs(const void *params) { return ((const ax_scan_params *)params)->body->out_count; }

/* --- infer --- */

/* An operand without, or a result with, the dimension that is looped over. */
ax_type ax_scan_slice_type(const ax_type *type) {
  ax_type slice = ax_array_type(type->dtype, AX_LIST(type->rank - 1, type->dims + 1));
  slice.spread = type->spread;
  return slice;
}

static ax_type stacked(const ax_type *type, int64_t length) {
  int64_t dims[AX_MAX_RANK + 1] = {length};
  for (uint32_t d = 0; d < type->rank; d++) dims[d + 1] = type->dims[d];
  ax_type whole = ax_array_type(type->dtype, AX_LIST(type->rank + 1, dims));
  whole.spread = type->spread;
  return whole;
}

static ax_status check_counts(const ax_infer_args *args) {
  const ax_scan_params *params = args->params;
  const ax_program *body = params->body;
  int64_t in_count = args->in_count, out_count = body->out_count;
  if (params->length < 0) return ax_error(AX_INVALID_ARGUMENT, "the length is %lld", (long long)params->length);
  if (params->num_consts < 0 || params->num_carry < 0 || params->num_consts > in_count ||
      params->num_carry > in_count - params->num_consts || params->num_carry > out_count)
    return ax_error(AX_INVALID_ARGUMENT, "%lld constants and %lld carries, of %lld operands and %lld results",
                    (long long)params->num_consts, (long long)params->num_carry, (long long)in_count,
                    (long long)out_count);
  if (body->in_count != args->in_count || body->out_count != args->out_count)
    return ax_error(AX_INVALID_ARGUMENT, "the body takes %u values and gives %u, not %u and %u", body->in_count,
                    body->out_count, args->in_count, args->out_count);
  return ax_region_check_axes(body, args->axes, "the body");
}

static ax_status check_x(const ax_infer_args *args, uint32_t i, uint32_t number) {
  const ax_scan_params *params = args->params;
  const ax_type *type = &args->in[i];
  if (type->rank == 0 || type->dims[0] != params->length)
    return ax_error(AX_INVALID_ARGUMENT, "xs %u is %s, but its first dimension must be the length, %lld", number,
                    ax_type_string(type, args->axes), (long long)params->length);
  ax_type slice = ax_scan_slice_type(type);
  return ax_region_check_type(&slice, &params->body->types[i], args->axes, "xs", number, "has slices",
                              "the body takes");
}

static ax_status infer(const ax_infer_args *args) {
  const ax_scan_params *params = args->params;
  const ax_program *body = params->body;
  AX_TRY(check_counts(args));
  uint32_t consts = (uint32_t)params->num_consts, carries = (uint32_t)params->num_carry;
  AX_TRY(ax_region_check_tokens(body, 0, consts, "a scan"));
  AX_TRY(ax_region_check_memory(args, consts, args->in_count - consts, "scan"));
  for (uint32_t i = 0; i < args->in_count; i++) {
    if (i < consts)
      AX_TRY(ax_region_check_type(&args->in[i], &body->types[i], args->axes, "constant", i, "is", "the body takes"));
    else if (i < consts + carries)
      AX_TRY(ax_region_check_type(&args->in[i], &body->types[i], args->axes, "carry", i - consts, "starts as",
                                  "the body takes"));
    else
      AX_TRY(check_x(args, i, i - consts - carries));
  }
  for (uint32_t k = 0; k < args->out_count; k++) {
    const ax_type *type = &body->types[body->outs[k]];
    args->out[k] = k < carries ? *type : stacked(type, params->length);
    if (k < carries)
      AX_TRY(ax_region_check_type(&args->in[consts + k], type, args->axes, "carry", k, "is", "the body returns"));
    else if (type->form == AX_TOKEN)
      return ax_error(AX_INVALID_ARGUMENT, "ys %u is a token, which cannot be stacked; carry it", k - carries);
    else if (type->rank == AX_MAX_RANK)
      return ax_error(AX_INVALID_ARGUMENT, "ys %u would have a rank above %d", k - carries, AX_MAX_RANK);
  }
  return AX_OK;
}

/* --- eval, differs --- */

/* A row a body operand or result: by lane. */
typedef struct eval_state {
  const ax_eval_args *args;
  const ax_scan_params *params;
  uint32_t consts, carries, in_count, out_count;
  uint32_t *lane;
  ax_tensor *const **in;
  ax_tensor ***out; /* ys: of one step */
  ax_tensor ***slices; /* of the xs: owned here */
} eval_state;

static size_t slice_bytes(const ax_tensor *slice) {
  return (size_t)ax_dims_elems(slice->rank, slice->dims) * ax_dtype_bytes(slice->dtype);
}

static ax_status eval_init(eval_state *s, ax_arena *arena) {
  const ax_eval_args *args = s->args;
  const ax_program *body = s->params->body;
  uint32_t lanes = args->lanes;
  s->lane = ax_arena_alloc(arena, lanes * sizeof s->lane[0]);
  s->in = ax_arena_alloc(arena, s->in_count * sizeof s->in[0]);
  s->out = ax_arena_alloc(arena, s->out_count * sizeof s->out[0]);
  s->slices = ax_arena_alloc(arena, s->in_count * sizeof s->slices[0]);
  ax_tensor **rows = ax_arena_alloc(arena, ((size_t)s->in_count + s->out_count) * lanes * sizeof rows[0]);
  if (s->lane == NULL || s->in == NULL || s->out == NULL || s->slices == NULL || rows == NULL)
    return ax_out_of_memory(0);
  for (uint32_t l = 0; l < lanes; l++) s->lane[l] = l;
  for (uint32_t i = 0; i < s->in_count; i++) s->slices[i] = rows + i * lanes;
  for (uint32_t k = 0; k < s->out_count; k++)
    s->out[k] = k < s->carries ? args->out + k * lanes : rows + (s->in_count + k) * lanes;
  for (uint32_t i = 0; i < s->in_count; i++) {
    uint32_t carry = i - s->consts;
    bool is_x = i >= s->consts + s->carries;
    s->in[i] = i < s->consts ? args->in + i * lanes : is_x ? s->slices[i] : args->out + carry * lanes;
    for (uint32_t l = 0; l < lanes; l++) {
      if (is_x) AX_TRY(ax_tensor_create(&body->types[i], &s->slices[i][l]));
      if (i >= s->consts && !is_x) AX_TRY(ax_tensor_copy(args->in[i * lanes + l], &args->out[carry * lanes + l]));
    }
  }
  for (uint32_t k = s->carries; k < s->out_count; k++) {
    ax_type type = stacked(&body->types[body->outs[k]], s->params->length);
    for (uint32_t l = 0; l < lanes; l++) AX_TRY(ax_tensor_create(&type, &args->out[k * lanes + l]));
  }
  return AX_OK;
}

static ax_status eval_step(eval_state *s, int64_t step) {
  const ax_eval_args *args = s->args;
  uint32_t lanes = args->lanes;
  for (uint32_t i = s->consts + s->carries; i < s->in_count; i++)
    for (uint32_t l = 0; l < lanes; l++) {
      ax_tensor *slice = s->slices[i][l];
      size_t bytes = slice_bytes(slice);
      memcpy(slice->data, (const char *)args->in[i * lanes + l]->data + (size_t)step * bytes, bytes);
    }
  AX_TRY(ax_region_eval(args, s->params->body, s->lane, lanes, s->in, s->out));
  for (uint32_t k = s->carries; k < s->out_count; k++)
    for (uint32_t l = 0; l < lanes; l++) {
      size_t bytes = slice_bytes(s->out[k][l]);
      memcpy((char *)args->out[k * lanes + l]->data + (size_t)step * bytes, s->out[k][l]->data, bytes);
    }
  return AX_OK;
}

static ax_status eval(const ax_eval_args *args) {
  const ax_scan_params *params = args->eqn->params;
  ax_arena arena = {0};
  eval_state s = {.args = args, .params = params, .consts = (uint32_t)params->num_consts,
                  .carries = (uint32_t)params->num_carry, .in_count = args->eqn->in_count,
                  .out_count = args->eqn->out_count};
  ax_status status = eval_init(&s, &arena);
  for (int64_t i = 0; status == AX_OK && i < params->length; i++)
    status = eval_step(&s, params->reverse ? params->length - 1 - i : i);
  for (uint32_t l = 0; s.out != NULL && s.slices != NULL && l < args->lanes; l++) {
    for (uint32_t i = 0; i < s.in_count; i++) ax_tensor_release(s.slices[i] != NULL ? s.slices[i][l] : NULL);
    for (uint32_t k = s.carries; k < s.out_count; k++) ax_tensor_release(s.out[k] != NULL ? s.out[k][l] : NULL);
  }
  return ax_region_eval_end(args, &arena, status);
}

/* Bodies whose first step may be a second copy of them: short ones, in which no loop could do the same again, and nothing says in
   which step of the loop it has found something. */
static bool short_body(const ax_program *body) {
  enum { most = 64 };
  if (body->eqn_count > most || (body->effects & ~(uint32_t)AX_EFFECT_EXCHANGE) != 0) return false;
  for (uint32_t i = 0; i < body->eqn_count; i++)
    if (body->eqns[i].prim->kind == AX_REGION || body->eqns[i].prim == &ax_prim_ragged_all_to_all) return false;
  return true;
}

/* The sets of the body's values in all steps; with *first, which is NULL otherwise, from the second on, and *first in the first: a
   carry that differs only before the first step, as the operand of a psum does, then does not differ in the loop. */
static const ax_axis_set *step_sets(const ax_differs_args *args, const ax_axis_set **first) {
  const ax_scan_params *params = args->eqn->params;
  const ax_program *body = params->body;
  uint32_t consts = (uint32_t)params->num_consts, carries = (uint32_t)params->num_carry;
  *first = NULL;
  if (!args->flow->first_apart || params->length < 2 || !short_body(body))
    return ax_flow_loop(args, body, args->in, consts, carries);
  const ax_axis_set *sets = ax_flow_program(args->flow, body, args->in);
  ax_axis_set *in = ax_differs_alloc(args, body->in_count);
  if (sets == NULL || in == NULL) return NULL;
  for (uint32_t i = 0; i < body->in_count; i++)
    in[i] = i >= consts && i < consts + carries ? sets[body->outs[i - consts]] : args->in[i];
  const ax_axis_set *all = ax_flow_loop(args, body, in, consts, carries);
  for (uint32_t i = consts; all != NULL && i < consts + carries; i++)
    if ((args->in[i] & ~all[i]) != 0) *first = sets;
  return all;
}

/* A carry varies wherever its start or what the body makes of it does. */
static void differs(const ax_differs_args *args) {
  const ax_scan_params *params = args->eqn->params;
  uint32_t consts = (uint32_t)params->num_consts, carries = (uint32_t)params->num_carry;
  const ax_axis_set *first, *all = step_sets(args, &first);
  for (uint32_t k = 0; all != NULL && k < args->eqn->out_count; k++) {
    args->out[k] = all[k < carries ? consts + k : params->body->outs[k]];
    if (first != NULL && k >= carries) args->out[k] |= first[params->body->outs[k]];
  }
}

static ax_region_link links(const ax_region_link_args *args) {
  const ax_scan_params *params = args->eqn->params;
  const uint32_t consts = (uint32_t)params->num_consts, carries = (uint32_t)params->num_carry, i = args->number;
  const uint32_t first = args->is_output ? 0 : consts; /* carry */
  ax_region_link link = ax_region_link_to(i < first + carries ? AX_LINK_SAME : AX_LINK_SLICE, i);
  link.once = i < first;
  if (i >= first && i < first + carries) link.carry = args->is_output ? consts + i : i - consts;
  return link;
}

/* --- lower --- */

/* The loop being lowered. */
typedef struct lower_state {
  ax_lower *lower;
  const ax_eqn *eqn;
  const ax_scan_params *params;
  uint32_t consts, carries;
  const uint32_t *in; /* xs are no views of another loop's step any more */
  uint32_t *out;
  uint32_t *body_in, *body_out;
} lower_state;

/* Slices of xs and ys are views of the whole arrays: of step `first`, and moving with the loop, if there is one. */
static ax_status step_view(const lower_state *s, uint32_t buffer, const ax_type *slice, int64_t first, uint32_t loop,
                           uint32_t *out) {
  const ax_scan_params *params = s->params;
  int64_t bytes = ax_type_elems(slice) * (int64_t)ax_dtype_bytes(slice->dtype);
  int64_t start = params->reverse && params->length > 0 ? (params->length - 1 - first) * bytes : first * bytes;
  return ax_lower_view(s->lower, buffer, slice, start, loop, params->reverse ? -bytes : bytes, out);
}

/* Room for the results; xs that are views of another loop's step are copied out once, before the loop. */
static ax_status before_loop(lower_state *s, uint32_t *in) {
  ax_lower *lower = s->lower;
  for (uint32_t k = 0; k < s->eqn->out_count; k++) AX_TRY(ax_lower_result(lower, s->eqn, k, &s->out[k]));
  for (uint32_t i = s->consts + s->carries; i < s->eqn->in_count; i++) {
    if (ax_lower_get(lower, in[i])->loop == AX_NONE) continue;
    uint32_t copy;
    ax_type type = *ax_lower_type(lower, in[i]);
    AX_TRY(ax_lower_buffer(lower, &type, ax_lower_get(lower, in[i])->axes, &copy));
    AX_TRY(ax_lower_copy(lower, copy, in[i]));
    in[i] = copy;
  }
  s->in = in;
  return AX_OK;
}

/* The steps of the loop from `first` on, or that one alone where there is no loop; its operands but the xs are in body_in. */
static ax_status lower_steps(lower_state *s, int64_t first, uint32_t loop) {
  const ax_program *body = s->params->body;
  for (uint32_t i = s->consts + s->carries; i < s->eqn->in_count; i++)
    AX_TRY(step_view(s, s->in[i], &body->types[i], first, loop, &s->body_in[i]));
  AX_TRY(ax_lower_program(s->lower, body, s->body_in, s->body_out));
  for (uint32_t k = s->carries; k < s->eqn->out_count; k++) {
    uint32_t slice;
    AX_TRY(step_view(s, s->out[k], &body->types[body->outs[k]], first, loop, &slice));
    AX_TRY(ax_lower_copy(s->lower, slice, s->body_out[k]));
  }
  return AX_OK;
}

/* A carry that a step returns as it came is no carry: every step reads what went in. */
static bool stays(const lower_state *s, uint32_t carry) {
  const ax_program *body = s->params->body;
  return body->outs[carry] == s->consts + carry;
}

static ax_status lower_scan(lower_state *s, uint32_t *in, bool first_apart) {
  ax_lower *lower = s->lower;
  ax_block *outer;
  uint32_t loop;
  AX_TRY(before_loop(s, in));
  memcpy(s->body_in, in, ((size_t)s->consts + s->carries) * sizeof in[0]);
  if (first_apart) AX_TRY(lower_steps(s, 0, AX_NONE));
  const uint32_t *starts = first_apart ? s->body_out : in + s->consts;
  for (uint32_t k = 0; k < s->carries; k++) {
    if (stays(s, k)) continue;
    AX_TRY(ax_lower_copy(lower, s->out[k], starts[k]));
    s->body_in[s->consts + k] = s->out[k];
  }
  AX_TRY(ax_lower_loop_begin(lower, s->params->length - first_apart, 0, &outer, &loop));
  AX_TRY(lower_steps(s, first_apart, loop));
  for (uint32_t k = 0; k < s->carries; k++)
    if (stays(s, k)) s->body_out[k] = s->out[k];
  AX_TRY(ax_region_lower_carries(lower, s->out, s->body_out, s->carries));
  ax_lower_loop_end(lower, outer);
  for (uint32_t k = 0; k < s->carries; k++) /* behind the loop: into memory that is donated, it may be no copy */
    if (stays(s, k)) AX_TRY(ax_lower_copy(lower, s->out[k], in[s->consts + k]));
  return AX_OK;
}

/* Whether the first step stands before the loop: as the analysis has it. */
static ax_status first_apart(const ax_lower *lower, const ax_eqn *eqn, ax_axis_set *sets, bool *out) {
  const ax_axis_set *first;
  for (uint32_t i = 0; i < eqn->in_count; i++) sets[i] = lower->differs[eqn->in[i]];
  const ax_differs_args args = {lower->program, eqn, sets, NULL, lower->flow};
  if (step_sets(&args, &first) == NULL) return ax_out_of_memory(0);
  *out = first != NULL;
  return AX_OK;
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_scan_params *params = eqn->params;
  size_t in_count = eqn->in_count, out_count = eqn->out_count;
  ax_axis_set *sets = ax_arena_alloc(&lower->plan->drafts, in_count * sizeof sets[0]);
  uint32_t *room = ax_arena_alloc(&lower->plan->drafts, (2 * in_count + out_count) * sizeof room[0]);
  bool apart = false;
  if (sets == NULL || room == NULL) return ax_out_of_memory(in_count * sizeof sets[0]);
  AX_TRY(first_apart(lower, eqn, sets, &apart));
  if (in_count > 0) memcpy(room, in, in_count * sizeof in[0]);
  lower_state s = {.lower = lower,
                   .eqn = eqn,
                   .params = params,
                   .consts = (uint32_t)params->num_consts,
                   .carries = (uint32_t)params->num_carry,
                   .out = out,
                   .body_in = room + in_count,
                   .body_out = room + 2 * in_count};
  return lower_scan(&s, room, apart);
}

/* --- hlo --- */

/* stablehlo.while over (counter, operands.., ys..); each step slices the xs and updates the ys at the counter's place. */
typedef struct hlo_state {
  ax_hlo *hlo;
  const ax_eqn *eqn;
  const ax_scan_params *params;
  const ax_type *outer;              /* types of the enclosing program's values */
  uint32_t count, consts, carries;   /* count: of what the loop carries */
  ax_type *types;                    /* of that */
  uint32_t *values, *body_in, *body_out;
} hlo_state;

static uint32_t hlo_s64(ax_hlo *hlo, int64_t value) {
  ax_type scalar = ax_array_type(AX_S64, AX_DIMS());
  return ax_hlo_splat(hlo, &scalar, &value);
}

static uint32_t hlo_binary(ax_hlo *hlo, const char *name, uint32_t a, uint32_t b) {
  ax_type scalar = ax_array_type(AX_S64, AX_DIMS());
  uint32_t in[] = {a, b};
  return ax_hlo_op(hlo, name, in, 2, NULL, &scalar, 1);
}

/* name(x, [update,] place, 0, ..): a part with one entry in dimension 0. */
static uint32_t hlo_part(const hlo_state *s, const ax_type *of, const ax_type *part_of, uint32_t x, const uint32_t *update,
                         uint32_t place) {
  const ax_type physical[] = {ax_hlo_physical(of), ax_hlo_physical(part_of)}, *whole = &physical[0], *part = &physical[1];
  uint32_t in[AX_MAX_RANK + 2], count = 0;
  in[count++] = x;
  if (update != NULL) in[count++] = *update;
  for (uint32_t d = 0; d < whole->rank; d++) in[count++] = d == 0 ? place : hlo_s64(s->hlo, 0);
  if (update != NULL) return ax_hlo_op(s->hlo, "stablehlo.dynamic_update_slice", in, count, NULL, whole, 1);
  ax_hlo_attributes sizes = {.hlo = s->hlo};
  ax_hlo_add_integers(&sizes, "slice_sizes", part->dims, part->rank);
  return ax_hlo_op(s->hlo, "stablehlo.dynamic_slice", in, count, &sizes, part, 1);
}

static void hlo_condition(const hlo_state *s) {
  const ax_type scalar = ax_array_type(AX_S64, AX_DIMS());
  const uint32_t counter = ax_hlo_region_begin(s->hlo, s->types, s->count);
  const uint32_t more = ax_hlo_compare(s->hlo, "LT", NULL, counter, hlo_s64(s->hlo, s->params->length), &scalar);
  ax_hlo_region_end(s->hlo, &more, 1);
}

static ax_status hlo_body(const hlo_state *s) {
  ax_hlo *hlo = s->hlo;
  const ax_program *body = s->params->body;
  uint32_t in_count = s->eqn->in_count, counter = ax_hlo_region_begin(hlo, s->types, s->count), place = counter;
  if (s->params->reverse) place = hlo_binary(hlo, "stablehlo.subtract", hlo_s64(hlo, s->params->length - 1), counter);
  for (uint32_t i = 0; i < in_count; i++) {
    s->body_in[i] = counter + 1 + i;
    if (i < s->consts + s->carries) continue;
    ax_type part = s->types[1 + i];
    part.dims[0] = 1;
    uint32_t slice = hlo_part(s, &s->types[1 + i], &part, s->body_in[i], NULL, place);
    s->body_in[i] = ax_hlo_op(hlo, "stablehlo.reshape", &slice, 1, NULL, &body->types[i], 1);
  }
  AX_TRY(hlo->inline_program(hlo, body, s->body_in, s->body_out));
  s->values[0] = hlo_binary(hlo, "stablehlo.add", counter, hlo_s64(hlo, 1));
  for (uint32_t i = 0; i < in_count; i++) {
    bool is_carry = i >= s->consts && i < s->consts + s->carries;
    s->values[1 + i] = is_carry ? s->body_out[i - s->consts] : counter + 1 + i;
  }
  for (uint32_t k = s->carries; k < s->eqn->out_count; k++) {
    uint32_t at = 1 + in_count + k - s->carries;
    ax_type part = s->types[at];
    part.dims[0] = 1;
    uint32_t slice =
        ax_hlo_op(hlo, "stablehlo.reshape", &s->body_out[k], 1, NULL, &part, 1);
    s->values[at] = hlo_part(s, &s->types[at], &part, counter + at, &slice, place);
  }
  ax_hlo_region_end(hlo, s->values, s->count);
  return AX_OK;
}

static ax_status hlo_loop(const hlo_state *s, const uint32_t *in, uint32_t *out) {
  const ax_eqn *eqn = s->eqn;
  s->types[0] = ax_array_type(AX_S64, AX_DIMS());
  s->values[0] = hlo_s64(s->hlo, 0);
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    s->types[1 + i] = s->outer[eqn->in[i]];
    s->values[1 + i] = in[i];
  }
  for (uint32_t k = s->carries; k < eqn->out_count; k++) {
    uint32_t at = 1 + eqn->in_count + k - s->carries;
    const ax_element zero = {0};
    s->types[at] = s->outer[eqn->out + k];
    s->values[at] = ax_hlo_splat(s->hlo, &s->types[at], &zero);
  }
  uint32_t first = ax_hlo_begin(s->hlo, "stablehlo.while", s->values, s->count, s->types, s->count);
  hlo_condition(s);
  ax_status status = hlo_body(s);
  ax_hlo_end(s->hlo, NULL);
  for (uint32_t k = 0; k < eqn->out_count; k++)
    out[k] = first + 1 + (k < s->carries ? s->consts + k : eqn->in_count + k - s->carries);
  return status;
}

/* A scan of length 0 is not a loop: its body would slice an empty array. */
static ax_status hlo_nothing(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_scan_params *params = eqn->params;
  const ax_element zero = {0};
  for (uint32_t k = 0; k < eqn->out_count; k++)
    out[k] = k < (uint64_t)params->num_carry ? in[params->num_consts + k]
                                             : ax_hlo_splat(hlo, &hlo->program->types[eqn->out + k], &zero);
  return AX_OK;
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_scan_params *params = eqn->params;
  if (params->length == 0) return hlo_nothing(hlo, eqn, in, out);
  ax_arena arena = {0};
  hlo_state s = {.hlo = hlo, .eqn = eqn, .params = params, .outer = hlo->program->types,
                 .consts = (uint32_t)params->num_consts, .carries = (uint32_t)params->num_carry};
  s.count = 1 + eqn->in_count + eqn->out_count - s.carries;
  s.types = ax_arena_alloc(&arena, s.count * sizeof s.types[0]);
  s.values = ax_arena_alloc(&arena, s.count * sizeof s.values[0]);
  s.body_in = ax_arena_alloc(&arena, eqn->in_count * sizeof s.body_in[0]);
  s.body_out = ax_arena_alloc(&arena, eqn->out_count * sizeof s.body_out[0]);
  bool made = s.types != NULL && s.values != NULL && s.body_in != NULL && s.body_out != NULL;
  ax_status status = made ? hlo_loop(&s, in, out) : ax_out_of_memory(0);
  ax_arena_deinit(&arena);
  return status;
}

/* --- The record --- */

static const ax_param params[] = {
    {"length", AX_PARAM_I64, offsetof(ax_scan_params, length)},
    {"reverse", AX_PARAM_BOOL, offsetof(ax_scan_params, reverse)},
    {"num_consts", AX_PARAM_I64, offsetof(ax_scan_params, num_consts)},
    {"num_carry", AX_PARAM_I64, offsetof(ax_scan_params, num_carry)},
    {"body", AX_PARAM_PROGRAM, offsetof(ax_scan_params, body)},
};

const ax_prim ax_prim_scan = {
    .name = "scan",
    .kind = AX_REGION,
    .runs = AX_RUNS_LENGTH,
    .tokens = true,
    .memory = true,
    .in_count = -1,
    .out_count = -1,
    .count_outs = count_outs,
    AX_PARAMS(params, ax_scan_params),
    .infer = infer,
    .spread = ax_spread_body,
    .eval = eval,
    .differs = differs,
    .links = links,
    .jvp = ax_scan_jvp,
    .linearize = ax_scan_linearize,
    .transpose = ax_scan_transpose,
    .batch = ax_scan_batch,
    .simplify = ax_simplify_nothing,
    .prune = ax_scan_prune,
    .shard = ax_shard_whole,
    .lower = lower,
    .complex = ax_complex_whole,
    .keys = ax_keys_whole,
    .hlo = hlo,
};
