/* scan: the rules that make scans of scans.

     jvp         one scan, of the body's jvp: (consts, dconsts; carry, dcarry; xs, dxs)
     linearize   a scan of the body's primal half, whose residuals leave as further ys; then one of its tangent half, which takes
                 them as xs. Residuals that are constants or slices of xs are passed as they are.
     transpose   a scan the other way: (constants; sums of the constants' cotangents, cotangents of carries; xs, cotangents of ys)
     batch       one scan, of the body batched

   Which carries have a tangent, or a batch dimension, is a fixed point: asked of the body until nothing changes. */
#include "prim/prims.h"
#include "prim/region.h"
#include "prim/scan.h"

/* --- jvp, linearize --- */

/* An equation being transformed: what its operands and results are. */
typedef struct scan {
  ax_scan_params p;
  uint32_t consts, carries, in_count, out_count;
  bool *nonzero;  /* operands with a tangent */
  ax_want *want;
  bool *has;      /* results with a tangent */
} scan;

static scan scan_of(const ax_eqn *eqn) {
  const ax_scan_params *p = eqn->params;
  return (scan){.p = *p, .consts = (uint32_t)p->num_consts, .carries = (uint32_t)p->num_carry,
                .in_count = eqn->in_count, .out_count = eqn->out_count};
}

static bool is_carry(const scan *s, uint32_t i) { return i >= s->consts && i < s->consts + s->carries; }

/* What a scan's operands and results are, in the order they stand in; a slice is of an operand or result that is stacked. */
typedef enum role { ROLE_CONST, ROLE_CARRY, ROLE_SLICE, ROLE_COUNT } role;
static role role_of_in(const scan *s, uint32_t i) {
  return i < s->consts ? ROLE_CONST : is_carry(s, i) ? ROLE_CARRY : ROLE_SLICE;
}
static role role_of_out(const scan *s, uint32_t k) { return k < s->carries ? ROLE_CARRY : ROLE_SLICE; }

/* A scan under construction: operands and body inputs put in order of their roles. */
typedef struct assembly {
  uint32_t count, capacity;
  ax_value *value; /* operands, in the order of the body given */
  role *role;
  uint32_t *in_at; /* of body input i: its place */
} assembly;

static bool assembly_init(assembly *a, uint32_t capacity) {
  *a = (assembly){.capacity = capacity};
  a->value = ax_trace_alloc(capacity * sizeof a->value[0]);
  a->role = ax_trace_alloc(capacity * sizeof a->role[0]);
  a->in_at = ax_trace_alloc(capacity * sizeof a->in_at[0]);
  return !ax_failed();
}

static void assembly_add(assembly *a, role role, ax_value value) {
  assert(a->count < a->capacity);
  a->role[a->count] = role;
  a->value[a->count++] = value;
}

/* Binds a scan over `body`, whose inputs are those added and of whose results those of out_from are wanted (carries first). */
static void assembly_bind(assembly *a, const ax_scan_params *like, const ax_program *body, const uint32_t *out_from,
                          uint32_t out_count, ax_value *out) {
  ax_scan_params params = *like;
  uint32_t next = 0, counts[ROLE_COUNT] = {0};
  ax_value *in = ax_trace_alloc(a->count * sizeof in[0]);
  for (uint32_t k = 0; k < out_count; k++) out[k] = ax_poison;
  if (in == NULL) return;
  for (role r = ROLE_CONST; r < ROLE_COUNT; r++)
    for (uint32_t i = 0; i < a->count; i++) {
      if (a->role[i] != r) continue;
      in[next] = a->value[i];
      a->in_at[i] = next++;
      counts[r]++;
    }
  params.num_consts = counts[ROLE_CONST];
  params.num_carry = counts[ROLE_CARRY];
  ax_status status = ax_region_permute(body, a->in_at, out_from, out_count, &params.body);
  if (status != AX_OK) {
    ax_fail(status);
    return;
  }
  ax_bind(&ax_prim_scan, &params, in, a->count, out, out_count);
  ax_program_release(params.body);
}

/* Which carries get tangents: those that start with one, or that the body gives one. */
static ax_status settle_tangents(scan *s, const ax_value *tangent_in) {
  for (uint32_t i = 0; i < s->in_count; i++) s->nonzero[i] = !ax_is_zero(tangent_in[i]);
  for (bool changed = true; changed;) {
    ax_program *jvp;
    changed = false;
    for (uint32_t k = 0; k < s->out_count; k++)
      s->want[k] = k < s->carries && s->nonzero[s->consts + k] ? AX_WANT_ALWAYS : AX_WANT_NONZERO;
    AX_TRY(ax_jvp_program(s->p.body, s->nonzero, s->want, s->has, &jvp));
    ax_program_release(jvp);
    for (uint32_t k = 0; k < s->carries; k++) {
      changed = changed || s->has[k] != s->nonzero[s->consts + k];
      s->nonzero[s->consts + k] = s->has[k];
    }
  }
  return AX_OK;
}

static bool tangents_init(scan *s, const ax_jvp_args *args) {
  *s = scan_of(args->eqn);
  s->nonzero = ax_trace_alloc(s->in_count);
  s->want = ax_trace_alloc(s->out_count * sizeof s->want[0]);
  s->has = ax_trace_alloc(s->out_count);
  if (ax_failed()) return false;
  ax_status status = settle_tangents(s, args->tangent_in);
  if (status != AX_OK) ax_fail(status);
  return status == AX_OK;
}

static void add_tangents(const scan *s, assembly *a, const ax_jvp_args *args) {
  for (uint32_t i = 0; i < s->in_count; i++)
    if (s->nonzero[i]) assembly_add(a, role_of_in(s, i), ax_instantiate(args->tangent_in[i], args->in[i]));
}

/* Orders the results of a body (y.., dy[has]..): carries, their tangents, then ys and theirs. Returns how many. */
static uint32_t order_results(const scan *s, uint32_t *out_from) {
  uint32_t count = 0;
  for (role r = ROLE_CARRY; r < ROLE_COUNT; r++) {
    for (uint32_t k = 0; k < s->out_count; k++)
      if (role_of_out(s, k) == r) out_from[count++] = k;
    uint32_t next = s->out_count;
    for (uint32_t k = 0; k < s->out_count; k++) {
      if (s->has[k] && role_of_out(s, k) == r) out_from[count++] = next;
      next += s->has[k];
    }
  }
  return count;
}

static void spread_tangents(const scan *s, const ax_value *by_result, ax_value *tangent_out) {
  uint32_t next = 0;
  for (uint32_t k = 0; k < s->out_count; k++) tangent_out[k] = s->has[k] ? by_result[next++] : ax_zero;
}

void ax_scan_jvp(const ax_jvp_args *args) {
  scan s;
  assembly a;
  ax_program *body;
  if (!tangents_init(&s, args) || !assembly_init(&a, 2 * s.in_count)) return;
  uint32_t *out_from = ax_trace_alloc(2 * (size_t)s.out_count * sizeof out_from[0]);
  ax_value *out = ax_trace_alloc(2 * (size_t)s.out_count * sizeof out[0]);
  ax_value *by_result = ax_trace_alloc(2 * (size_t)s.out_count * sizeof out[0]);
  if (out_from == NULL || out == NULL || by_result == NULL) return;
  for (uint32_t i = 0; i < s.in_count; i++) assembly_add(&a, role_of_in(&s, i), args->in[i]);
  add_tangents(&s, &a, args);
  ax_status status = ax_jvp_program(s.p.body, s.nonzero, s.want, NULL, &body);
  if (status != AX_OK) {
    ax_fail(status);
    return;
  }
  uint32_t count = order_results(&s, out_from);
  assembly_bind(&a, &s.p, body, out_from, count, out);
  ax_program_release(body);
  for (uint32_t k = 0; k < count; k++) by_result[out_from[k]] = out[k];
  for (uint32_t k = 0; k < s.out_count; k++) args->out[k] = by_result[k];
  spread_tangents(&s, by_result + s.out_count, args->tangent_out);
}

/* The primal half: results, then the residuals that it must keep of each step, stacked. All residuals are added to the tangent
   half's operands. */
static void bind_primal(const scan *s, const ax_jvp_args *args, const ax_program *primal, uint32_t residuals,
                        assembly *tangent) {
  assembly a;
  uint32_t *out_from = ax_trace_alloc(primal->out_count * sizeof out_from[0]), count = s->out_count;
  ax_value *out = ax_trace_alloc(primal->out_count * sizeof out[0]);
  if (out_from == NULL || out == NULL || !assembly_init(&a, s->in_count)) return;
  for (uint32_t i = 0; i < s->in_count; i++) assembly_add(&a, role_of_in(s, i), args->in[i]);
  for (uint32_t k = 0; k < s->out_count; k++) out_from[k] = k;
  for (uint32_t r = 0; r < residuals; r++) {
    uint32_t id = primal->outs[s->out_count + r];
    if (id >= s->in_count || is_carry(s, id)) out_from[count++] = s->out_count + r;
  }
  assembly_bind(&a, &s->p, primal, out_from, count, out);
  for (uint32_t k = 0; k < s->out_count; k++) args->out[k] = out[k];
  for (uint32_t r = 0, next = s->out_count; r < residuals; r++) {
    uint32_t id = primal->outs[s->out_count + r];
    if (next < count && out_from[next] == s->out_count + r) assembly_add(tangent, ROLE_SLICE, out[next++]);
    else assembly_add(tangent, role_of_in(s, id), args->in[id]);
  }
}

void ax_scan_linearize(const ax_jvp_args *args) {
  scan s;
  assembly a;
  ax_program *primal, *tangent;
  uint32_t residuals;
  if (!tangents_init(&s, args)) return;
  ax_status status = ax_linearize_program(s.p.body, s.nonzero, s.want, NULL, &primal, &tangent, &residuals);
  if (status != AX_OK) {
    ax_fail(status);
    return;
  }
  uint32_t count = tangent->out_count;
  uint32_t *out_from = ax_trace_alloc(count * sizeof out_from[0]);
  ax_value *out = ax_trace_alloc(count * sizeof out[0]);
  if (out_from != NULL && out != NULL && assembly_init(&a, residuals + s.in_count)) {
    bind_primal(&s, args, primal, residuals, &a);
    add_tangents(&s, &a, args);
    for (uint32_t k = 0; k < count; k++) out_from[k] = k; /* carries' come before ys' already */
    if (!ax_failed()) assembly_bind(&a, &s.p, tangent, out_from, count, out);
    spread_tangents(&s, out, args->tangent_out);
  }
  ax_program_release(primal);
  ax_program_release(tangent);
}

/* --- transpose --- */

/* All carries are taken as linear: those that are not themselves (zeros that stand for a tangent) become so in the body, and their
   cotangents are not asked for. */
static ax_status settle_linear(const scan *s, const bool *given, bool *linear) {
  for (uint32_t i = 0; i < s->in_count; i++) linear[i] = given[i];
  for (uint32_t k = 0; k < s->carries; k++) {
    linear[s->consts + k] = true;
    if (!ax_is_float(s->p.body->types[s->consts + k].dtype))
      return ax_error(AX_ABSENT, "scan: no transpose for a linear scan that carries %s along",
                      ax_type_string(&s->p.body->types[s->consts + k], &s->p.body->axes));
  }
  return AX_OK;
}

/* The body transposed, and which of its results' cotangents are zero in every step: those of ys that nobody uses, and of carries
   nobody uses and no step turns into one that is used. */
static ax_status transpose_body(const scan *s, const bool *linear, bool *zero, bool *made_zero, ax_program **out) {
  for (bool changed = true; changed;) {
    changed = false;
    AX_TRY(ax_transpose_program(s->p.body, linear, zero, made_zero, out));
    for (uint32_t k = 0; k < s->carries; k++) {
      if (!zero[k] || made_zero[s->consts + k]) continue;
      zero[k] = false;
      changed = true;
    }
    if (changed) ax_program_release(*out);
  }
  return AX_OK;
}

/* The body of the transposed scan. Inputs by role: constants; sums of constants' cotangents, cotangents of carries; xs, cotangents
   of ys that are not zero. Results: sums, cotangents of carries, cotangents of linear xs. */
static ax_status build_transposed(const scan *s, const bool *linear, const ax_value *cotangent, ax_program **out) {
  const ax_program *body = s->p.body;
  ax_program *transposed;
  *out = NULL;
  bool *zero = ax_calloc(s->out_count + s->in_count, 1);
  if (zero == NULL) return ax_out_of_memory(s->out_count + s->in_count);
  for (uint32_t k = 0; k < s->out_count; k++) zero[k] = ax_is_zero(cotangent[k]);
  ax_status status = transpose_body(s, linear, zero, zero + s->out_count, &transposed);
  if (status != AX_OK) {
    ax_free(zero);
    return status;
  }
  ax_builder builder;
  uint32_t capacity = s->in_count + s->out_count, count = 0, made = 0, next = 0;
  ax_type *types = ax_calloc(capacity, sizeof types[0]);
  for (role r = ROLE_CONST; r < ROLE_COUNT && types != NULL; r++) {
    for (uint32_t i = 0; i < s->in_count; i++)
      if (!linear[i] && role_of_in(s, i) == r) types[count++] = body->types[i];
    for (uint32_t i = 0; i < s->consts; i++)
      if (linear[i] && r == ROLE_CARRY) types[count++] = body->types[i];
    for (uint32_t k = 0; k < s->out_count; k++)
      if (role_of_out(s, k) == r && (r == ROLE_CARRY || !ax_is_zero(cotangent[k])))
        types[count++] = body->types[body->outs[k]];
  }
  ax_value *in = ax_region_begin(&builder, &body->axes, types, types != NULL ? count : 0);
  ax_value *operands = ax_trace_alloc(transposed->in_count * sizeof operands[0]);
  ax_value *outs = ax_trace_alloc(transposed->out_count * sizeof outs[0]);
  uint32_t sum_count = 0;
  for (uint32_t i = 0; i < s->consts; i++) sum_count += linear[i];
  if (types == NULL) ax_fail(ax_out_of_memory(capacity * sizeof types[0]));
  if (!ax_failed()) {
    for (uint32_t i = 0; i < s->consts; i++)
      if (!linear[i]) operands[made++] = in[next++];
    const ax_value *sums = in + next, *carries = sums + sum_count;
    next += sum_count + s->carries;
    for (uint32_t i = s->consts + s->carries; i < s->in_count; i++)
      if (!linear[i]) operands[made++] = in[next++];
    for (uint32_t k = 0; k < s->carries; k++)
      if (!zero[k]) operands[made++] = carries[k];
    for (uint32_t k = s->carries; k < s->out_count; k++)
      if (!zero[k]) operands[made++] = in[next++];
    ax_call(transposed, operands, made, outs, transposed->out_count);
    for (uint32_t k = 0; k < sum_count; k++) outs[k] = ax_add(sums[k], outs[k]);
  }
  status = ax_region_finish(&builder, outs, transposed->out_count, out);
  ax_free(types);
  ax_free(zero);
  ax_program_release(transposed);
  return status;
}

void ax_scan_transpose(const ax_transpose_args *args) {
  scan s = scan_of(args->eqn);
  const ax_program *body = s.p.body;
  bool *linear = ax_trace_alloc(s.in_count);
  ax_value *in = ax_trace_alloc((s.in_count + (size_t)s.out_count) * sizeof in[0]);
  ax_value *out = ax_trace_alloc(s.in_count * sizeof out[0]);
  if (linear == NULL || in == NULL || out == NULL) return;
  ax_scan_params params = {s.p.length, !s.p.reverse, 0, s.carries, NULL};
  ax_status status = settle_linear(&s, args->linear, linear);
  if (status == AX_OK) status = build_transposed(&s, linear, args->cotangent, &params.body);
  if (status != AX_OK) {
    ax_fail(status);
    return;
  }
  uint32_t count = 0, next = 0;
  for (uint32_t i = 0; i < s.consts; i++)
    if (!linear[i]) in[count++] = args->in[i];
  params.num_consts = count;
  params.num_carry += s.consts - count;
  for (uint32_t i = 0; i < s.consts; i++)
    if (linear[i]) in[count++] = ax_zeros_of(&body->types[i]);
  for (uint32_t k = 0; k < s.carries; k++)
    in[count++] = ax_is_zero(args->cotangent[k]) ? ax_zeros_of(&body->types[body->outs[k]]) : args->cotangent[k];
  for (uint32_t i = s.consts + s.carries; i < s.in_count; i++)
    if (!linear[i]) in[count++] = args->in[i];
  for (uint32_t k = s.carries; k < s.out_count; k++)
    if (!ax_is_zero(args->cotangent[k])) in[count++] = args->cotangent[k];
  if (!ax_failed()) ax_bind(&ax_prim_scan, &params, in, count, out, params.body->out_count);
  ax_program_release(params.body);
  for (uint32_t i = 0; i < s.in_count; i++)
    if (linear[i]) args->out[i] = args->linear[i] ? out[next++] : (next++, ax_zero);
}

/* --- batch --- */

/* Constants keep their batch dimension; carries and slices have theirs in front, so xs and ys have it second. in_dim, want:
   of the body; a carry is batched when it starts so or when the body makes it so. */
static ax_status batch_body(const scan *s, const ax_batch_args *args, int *in_dim, int *want, int *out_dim,
                            ax_program **out) {
  *out = NULL;
  for (uint32_t i = 0; i < s->in_count; i++) in_dim[i] = i < s->consts || args->in_dim[i] < 0 ? args->in_dim[i] : 0;
  for (uint32_t k = 0; k < s->out_count; k++) want[k] = AX_BATCH_ANY;
  for (bool changed = true; changed;) {
    changed = false;
    ax_program_release(*out);
    for (uint32_t k = 0; k < s->carries; k++) want[k] = in_dim[s->consts + k] >= 0 ? 0 : AX_BATCH_ANY;
    AX_TRY(ax_batch_program(s->p.body, in_dim, args->size, args->axis, want, out_dim, out));
    for (uint32_t k = 0; k < s->carries; k++) {
      changed = changed || out_dim[k] != in_dim[s->consts + k];
      in_dim[s->consts + k] = out_dim[k];
    }
  }
  return AX_OK;
}

void ax_scan_batch(const ax_batch_args *args) {
  scan s = scan_of(args->eqn);
  int *in_dim = ax_trace_alloc(s.in_count * sizeof in_dim[0]);
  int *want = ax_trace_alloc(s.out_count * sizeof want[0]), *out_dim = ax_trace_alloc(s.out_count * sizeof want[0]);
  ax_value *in = ax_trace_alloc(s.in_count * sizeof in[0]);
  if (in_dim == NULL || want == NULL || out_dim == NULL || in == NULL) return;
  ax_scan_params params = s.p;
  ax_status status = batch_body(&s, args, in_dim, want, out_dim, &params.body);
  if (status != AX_OK) {
    ax_fail(status);
    return;
  }
  for (uint32_t i = 0; i < s.in_count; i++) {
    int dim = args->in_dim[i];
    in[i] = args->in[i];
    if (is_carry(&s, i) && in_dim[i] >= 0) in[i] = ax_batch_front(in[i], dim, args->size);
    if (role_of_in(&s, i) == ROLE_SLICE && dim >= 0) in[i] = ax_move_dim(in[i], dim, 1);
  }
  ax_bind(&ax_prim_scan, &params, in, s.in_count, args->out, s.out_count);
  ax_program_release(params.body);
  for (uint32_t k = 0; k < s.out_count; k++) args->out_dim[k] = out_dim[k] < 0 ? -1 : k < s.carries ? 0 : 1;
}
