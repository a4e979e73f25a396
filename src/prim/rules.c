/* Binding, and the rules many primitives share. */
#include "prim/rules.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "hlo/hlo.h"
#include "ir/number.h"
#include "prim/prims.h"

/* --- Binding --- */

void *ax_trace_alloc(size_t bytes) {
  if (ax_failed()) return NULL;
  void *memory = ax_arena_alloc(&ax_builder_current()->arena, bytes);
  if (memory == NULL) ax_fail(ax_out_of_memory(bytes));
  return memory;
}

void ax_bind(const ax_prim *prim, const void *params, const ax_value *in, uint32_t in_count, ax_value *out,
             uint32_t out_count) {
  const ax_value *operands = in;
  if (prim->kind != AX_REGION) (void)ax_check_operands(prim->name, in, in_count);
  if (prim->kind != AX_REGION && prim->linear != AX_LINEAR_EACH && !ax_failed()) operands = ax_spread_together(in, in_count);
  ax_emit(prim, params, operands, operands != NULL ? in_count : 0, out, out_count);
}

ax_value ax_bind1(const ax_prim *prim, const void *params, const ax_value *in, uint32_t in_count) {
  ax_value out;
  ax_bind(prim, params, in, in_count, &out, 1);
  return out;
}

static ax_value reject(const char *name, const char *format, va_list arguments) {
  char text[512];
  vsnprintf(text, sizeof text, format, arguments);
  if (!ax_failed()) ax_fail(ax_error(AX_INVALID_ARGUMENT, "%s: %s", name, text));
  return ax_poison;
}

ax_value ax_reject(const ax_prim *prim, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  reject(prim->name, format, arguments);
  va_end(arguments);
  return ax_poison;
}

ax_value ax_reject_as(const char *function, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  reject(function, format, arguments);
  va_end(arguments);
  return ax_poison;
}

bool ax_dimension(const char *function, const char *what, int64_t *dimension, uint32_t rank) {
  int64_t given = *dimension;
  if (given < 0) *dimension += rank;
  if (*dimension >= 0 && *dimension < rank) return true;
  ax_reject_as(function, "%s is %lld, but there are %u dimensions", what, (long long)given, rank);
  return false;
}

/* The shape two or more shapes broadcast to; false when they do not. */
static bool broadcast_shape(const ax_type *types, uint32_t count, ax_type *out) {
  *out = (ax_type){0};
  for (uint32_t i = 0; i < count; i++)
    if (types[i].rank > out->rank) out->rank = types[i].rank;
  for (uint32_t d = 0; d < out->rank; d++) {
    out->dims[d] = 1;
    for (uint32_t i = 0; i < count; i++) {
      uint32_t lead = out->rank - types[i].rank;
      if (d < lead || types[i].dims[d - lead] == 1) continue;
      if (out->dims[d] != 1 && out->dims[d] != types[i].dims[d - lead]) return false;
      out->dims[d] = types[i].dims[d - lead];
    }
  }
  return true;
}

bool ax_broadcast_together(ax_value *values, uint32_t count) {
  ax_type types[4], shape;
  assert(count <= AX_COUNT(types));
  for (uint32_t i = 0; i < count; i++) types[i] = ax_typeof(values[i]);
  if (ax_failed()) return true;
  if (!broadcast_shape(types, count, &shape)) return false;
  ax_spread all = {0};
  for (uint32_t i = 0; i < count; i++) ax_spread_meet(&all, &types[i].spread);
  for (uint32_t i = 0; i < count; i++) {
    if (ax_same_shape(&types[i], &shape)) continue;
    int64_t where[AX_MAX_RANK];
    values[i] = ax_spread_to(values[i], &all); /* while it is small: its gradient's psum is then as small */
    for (uint32_t d = 0; d < types[i].rank; d++) where[d] = shape.rank - types[i].rank + d;
    values[i] = ax_broadcast_in_dim(values[i], AX_LIST(shape.rank, shape.dims), where);
  }
  return true;
}

void ax_give_dtype(const char *function, ax_value *values, uint32_t count) {
  uint32_t typed = 0;
  if (!ax_check_operands(function, values, count)) return;
  while (typed < count && ax_is_number(values[typed])) typed++;
  if (typed == count) {
    ax_reject_as(function, "all operands are numbers, so there is no dtype; ax_full gives one");
    return;
  }
  ax_dtype dtype = AX_NO_DTYPE;
  for (uint32_t i = 0; i < count; i++) {
    if (!ax_is_number(values[i])) continue;
    if (dtype == AX_NO_DTYPE) dtype = ax_typeof(values[typed]).dtype;
    if (ax_failed()) return;
    values[i] = ax_as(function, values[i], dtype);
  }
}

void ax_give_parts(const char *function, ax_value *pair) {
  if (ax_is_number(pair[0]) == ax_is_number(pair[1]) || !ax_check_operands(function, pair, 2)) return;
  ax_value *number = ax_is_number(pair[0]) ? &pair[0] : &pair[1], other = ax_is_number(pair[0]) ? pair[1] : pair[0];
  const ax_spread on = ax_typeof(other).spread;
  if (on.unreduced != 0 && on.kind == AX_UNREDUCED_SUM && ax_number_real(*number) == 0) *number = ax_zero_like(other);
}

void ax_tensor_assign(ax_tensor *to, const ax_tensor *from) {
  const size_t bytes = (size_t)ax_dims_elems(to->rank, to->dims) * ax_dtype_bytes(to->dtype);
  if (bytes > 0) memcpy(to->data, from->data, bytes); /* an array of nothing may lie nowhere */
}

/* --- Tangents --- */

ax_value ax_conjugated(ax_value x) {
  const ax_type type = ax_typeof(x);
  return !ax_failed() && ax_is_complex(type.dtype) ? ax_conj(x) : x;
}

ax_value ax_add_any(ax_value a, ax_value b) {
  if (ax_is_zero(a)) return b;
  return ax_is_zero(b) ? a : ax_add(a, b);
}

ax_value ax_zeros_of(const ax_type *type) { return ax_filled(type, 0); }

ax_value ax_zero_cotangent(const ax_type *primal) {
  ax_type type = ax_dual(primal);
  return ax_zeros_of(&type);
}

ax_value ax_instantiate(ax_value tangent, ax_value primal_like) {
  if (!ax_is_zero(tangent) || ax_failed()) return tangent;
  ax_type type = ax_typeof(primal_like);
  type = ax_tangent(&type);
  return ax_zeros_of(&type);
}

ax_value ax_zero_like(ax_value x) {
  ax_type type = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  type.rank = 0;
  return ax_zeros_of(&type);
}

/* --- Shared rules --- */

ax_status ax_eval_same(const ax_eval_args *args) {
  for (uint32_t lane = 0; lane < args->lanes; lane++) ax_tensor_assign(args->out[lane], args->in[lane]);
  return AX_OK;
}

ax_status ax_lower_same(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  (void)lower, (void)eqn;
  out[0] = in[0];
  return AX_OK;
}

ax_status ax_hlo_same(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  (void)hlo, (void)eqn;
  out[0] = in[0];
  return AX_OK;
}

void ax_differs_union(const ax_differs_args *args) {
  ax_axis_set all = 0;
  for (uint32_t i = 0; i < args->eqn->in_count; i++) all |= args->in[i];
  for (uint32_t i = 0; i < args->eqn->out_count; i++) args->out[i] = all;
}

void ax_jvp_linear(const ax_jvp_args *args) {
  const ax_eqn *eqn = args->eqn;
  ax_bind(eqn->prim, eqn->params, args->in, eqn->in_count, args->out, eqn->out_count);
  bool any = false;
  for (uint32_t i = 0; i < eqn->in_count; i++) any = any || !ax_is_zero(args->tangent_in[i]);
  ax_value *tangents = any ? ax_trace_alloc(eqn->in_count * sizeof tangents[0]) : NULL;
  if (tangents == NULL) {
    for (uint32_t i = 0; i < eqn->out_count; i++) args->tangent_out[i] = ax_zero;
    return;
  }
  for (uint32_t i = 0; i < eqn->in_count; i++) tangents[i] = ax_instantiate(args->tangent_in[i], args->in[i]);
  ax_bind(eqn->prim, eqn->params, tangents, eqn->in_count, args->tangent_out, eqn->out_count);
}

void ax_jvp_zero(const ax_jvp_args *args) {
  const ax_eqn *eqn = args->eqn;
  ax_bind(eqn->prim, eqn->params, args->in, eqn->in_count, args->out, eqn->out_count);
  for (uint32_t i = 0; i < eqn->out_count; i++) args->tangent_out[i] = ax_zero;
}

ax_region_link ax_region_links_call(const ax_region_link_args *args) {
  const uint32_t count = args->is_output ? args->eqn->out_count : args->eqn->in_count;
  return args->number < count ? ax_region_link_to(AX_LINK_SAME, args->number) : ax_region_link_own();
}

void ax_absent_jvp(const ax_jvp_args *args) {
  ax_fail(ax_error(AX_ABSENT, "%s has no derivatives; a function around it can be given some (custom_jvp, custom_vjp)",
                   args->eqn->prim->name));
}

void ax_absent_transpose(const ax_transpose_args *args) {
  ax_fail(ax_error(AX_ABSENT, "%s has no transpose rule", args->eqn->prim->name));
}

bool ax_linear_in_one(const ax_transpose_args *args) {
  if (!args->linear[0] || !args->linear[1]) return true;
  if (!ax_failed())
    ax_fail(ax_error(AX_ABSENT, "%s of two values that both depend on the linear inputs is not linear", args->eqn->prim->name));
  return false;
}

ax_status ax_absent_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  (void)hlo, (void)in, (void)out;
  return ax_error(AX_ABSENT, "%s has no StableHLO rule", eqn->prim->name);
}

/* --- Batching --- */

ax_value ax_move_dim(ax_value x, int from, int to) {
  if (from == to || ax_failed()) return x;
  ax_type type = ax_typeof(x);
  int64_t permutation[AX_MAX_RANK];
  int next = 0;
  for (int d = 0; d < (int)type.rank; d++) {
    if (d == to) {
      permutation[d] = from;
      continue;
    }
    if (next == from) next++;
    permutation[d] = next++;
  }
  return ax_transpose(x, permutation);
}

static const ax_context_key batching_key = {.name = "batching"};

ax_batching ax_batching_here(void) {
  const ax_batching *batching = ax_context_get(&batching_key);
  return batching != NULL ? *batching : (ax_batching){0};
}

bool ax_batching_set(ax_batching *batching) { return ax_context_set(&batching_key, batching); }

ax_value ax_batch_front(ax_value x, int dim, int64_t size) {
  if (dim >= 0) return ax_move_dim(x, dim, 0);
  ax_type type = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  if (type.rank == AX_MAX_RANK) {
    ax_fail(ax_error(AX_INVALID_ARGUMENT, "vmap: the rank would exceed %d", AX_MAX_RANK));
    return ax_poison;
  }
  int64_t dims[AX_MAX_RANK], where[AX_MAX_RANK];
  dims[0] = size;
  for (uint32_t d = 0; d < type.rank; d++) {
    dims[d + 1] = type.dims[d];
    where[d] = d + 1;
  }
  x = ax_vary_to(x, ax_batching_here().varying);
  return ax_broadcast_in_dim(x, AX_LIST(type.rank + 1, dims), where);
}

void ax_batch_pointwise(const ax_batch_args *args) {
  const ax_eqn *eqn = args->eqn;
  ax_value *in = ax_trace_alloc(eqn->in_count * sizeof in[0]);
  if (in == NULL) return;
  int common = -1; /* the batch dimension, when all batched operands agree and none is unbatched */
  bool agree = true;
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    if (args->in_dim[i] < 0 || (common >= 0 && common != args->in_dim[i])) agree = false;
    if (common < 0) common = args->in_dim[i];
  }
  for (uint32_t i = 0; i < eqn->in_count; i++)
    in[i] = agree ? args->in[i] : ax_batch_front(args->in[i], args->in_dim[i], args->size);
  ax_bind(eqn->prim, eqn->params, in, eqn->in_count, args->out, eqn->out_count);
  for (uint32_t i = 0; i < eqn->out_count; i++) args->out_dim[i] = agree ? common : 0;
}

/* --- Simplification --- */

void ax_simplify_nothing(const ax_simplify_args *args) { (void)args; }

const ax_eqn *ax_simplify_operand(const ax_simplify_args *args, uint32_t k, const ax_prim *prim) {
  const ax_eqn *made_by = args->made_by[args->eqn->in[k]];
  return made_by != NULL && made_by->prim == prim ? made_by : NULL;
}

/* A chain of such equations has been folded into one or two. */
const ax_eqn *ax_behind_repeats(const ax_eqn *const *made_by, uint32_t id) {
  const ax_eqn *eqn = made_by[id];
  for (int steps = 0; steps < 4 && eqn != NULL; steps++) {
    bool repeats = eqn->prim == &ax_prim_broadcast_in_dim || eqn->prim == &ax_prim_reshape || eqn->prim == &ax_prim_pvary ||
                   eqn->prim == &ax_prim_preduced || eqn->prim == &ax_prim_reduced_vary_cast;
    if (!repeats) return eqn;
    eqn = made_by[eqn->in[0]];
  }
  return NULL;
}

bool ax_simplify_is(const ax_simplify_args *args, uint32_t k, double value) {
  const ax_eqn *eqn = ax_behind_repeats(args->made_by, args->eqn->in[k]);
  const ax_literal *literal = eqn == NULL ? NULL : ax_eqn_literal(eqn);
  if (literal == NULL || ax_is_complex(literal->type.dtype)) return false; /* x + 0 and x * 1 are not always x: signs of zeros, infinities */
  ax_number held = ax_number_load(literal->type.dtype, literal->data, 0), wanted = ax_number_of(literal->type.dtype, value);
  if (!ax_is_float(literal->type.dtype)) return held.u == wanted.u;
  return held.f == wanted.f && signbit(held.f) == signbit(wanted.f);
}

void ax_simplify_replace(const ax_simplify_args *args, uint32_t k, uint32_t x, const void *params) {
  size_t bytes = args->eqn->prim->params_bytes;
  uint32_t *in = ax_arena_copy(args->arena, args->eqn->in, args->eqn->in_count * sizeof x);
  void *copy = bytes > 0 ? ax_arena_copy(args->arena, params, bytes) : NULL;
  *args->failed = in == NULL || (bytes > 0 && copy == NULL);
  if (*args->failed) return;
  in[k] = x;
  args->eqn->in = in;
  args->eqn->params = copy;
  *args->changed = true;
}

/* --- StableHLO --- */

ax_status ax_hlo_simple(ax_hlo *hlo, const ax_eqn *eqn, const char *name, const uint32_t *in, const ax_hlo_attributes *attributes,
                        uint32_t *out) {
  const uint32_t first = ax_hlo_op(hlo, name, in, eqn->in_count, attributes, hlo->program->types + eqn->out, eqn->out_count);
  for (uint32_t i = 0; i < eqn->out_count; i++) out[i] = first + i;
  return AX_OK;
}

uint32_t ax_hlo_compare(ax_hlo *hlo, const char *direction, const char *kind, uint32_t a, uint32_t b, const ax_type *type) {
  const ax_type truth = ax_array_type(AX_BOOL, AX_LIST(type->rank, type->dims));
  ax_hlo_attributes attributes = {.hlo = hlo};
  ax_hlo_add_word(&attributes, "comparison_direction", direction);
  if (kind != NULL) ax_hlo_add_word(&attributes, "compare_type", kind);
  return ax_hlo_op(hlo, "stablehlo.compare", (uint32_t[]){a, b}, 2, &attributes, &truth, 1);
}

uint32_t ax_hlo_iota(ax_hlo *hlo, const ax_type *type, int64_t dimension) {
  ax_hlo_attributes attributes = {.hlo = hlo};
  ax_hlo_add_integer(&attributes, "iota_dimension", dimension);
  return ax_hlo_op(hlo, "stablehlo.iota", NULL, 0, &attributes, type, 1);
}

uint32_t ax_hlo_broadcast(ax_hlo *hlo, uint32_t x, const ax_dims *where, const ax_type *to) {
  ax_hlo_attributes attributes = {.hlo = hlo};
  ax_hlo_add_dims(&attributes, "broadcast_dimensions", where);
  return ax_hlo_op(hlo, "stablehlo.broadcast_in_dim", &x, 1, &attributes, to, 1);
}

/* The larger or smaller of two complex numbers: by the real part, and where that is equal by the imaginary one, else the second. */
static uint32_t hlo_extreme(ax_hlo *hlo, ax_scalar op, const uint32_t *both, const ax_type *type) {
  static const char *const ops[] = {"stablehlo.real", "stablehlo.imag"};
  const ax_type part = ax_array_type(ax_part_dtype(type->dtype), AX_LIST(type->rank, type->dims));
  const ax_type truth = ax_array_type(AX_BOOL, AX_LIST(type->rank, type->dims));
  uint32_t beyond[2], equal = AX_NONE;
  for (int k = 0; k < 2; k++) {
    const uint32_t a = ax_hlo_op(hlo, ops[k], &both[0], 1, NULL, &part, 1), b = ax_hlo_op(hlo, ops[k], &both[1], 1, NULL, &part, 1);
    beyond[k] = ax_hlo_compare(hlo, op == AX_SCALAR_MAX ? "GT" : "LT", NULL, a, b, &part);
    if (k == 0) equal = ax_hlo_compare(hlo, "EQ", NULL, a, b, &part);
  }
  const uint32_t which = ax_hlo_op(hlo, "stablehlo.select", (uint32_t[]){equal, beyond[1], beyond[0]}, 3, NULL, &truth, 1);
  return ax_hlo_op(hlo, "stablehlo.select", (uint32_t[]){which, both[0], both[1]}, 3, NULL, type, 1);
}

void ax_hlo_combination(ax_hlo *hlo, ax_scalar op, ax_dtype dtype) {
  ax_type scalar = ax_array_type(dtype, AX_DIMS()), pair[] = {scalar, scalar};
  uint32_t arg = ax_hlo_region_begin(hlo, pair, 2), both[] = {arg, arg + 1};
  const bool by_parts = ax_is_complex(dtype) && (op == AX_SCALAR_MAX || op == AX_SCALAR_MIN);
  uint32_t result = by_parts ? hlo_extreme(hlo, op, both, &scalar)
                             : ax_hlo_op(hlo, ax_hlo_combination_name(op), both, 2, NULL, &scalar, 1);
  ax_hlo_region_end(hlo, &result, 1);
}
