/* concatenate: T[.., d0, ..], T[.., d1, ..] .. -> T[.., d0 + d1 + .., ..]
   Parameters: dimension.
   Errors: no operands; a dimension outside their rank; dtypes, ranks or other dimensions that differ.
   Linear; the transpose gives each operand its slice. */
#include "hlo/hlo.h"
#include "plan/lower.h"
#include "prim/prims.h"
#include "prim/shape.h"

typedef struct concatenate_params {
  int64_t dimension;
} concatenate_params;

int64_t ax_concatenated_dimension(const ax_eqn *eqn) { return ((const concatenate_params *)eqn->params)->dimension; }

static ax_status infer(const ax_infer_args *args) {
  int64_t dimension = ((const concatenate_params *)args->params)->dimension, total = 0;
  const ax_type *first = &args->in[0];
  if (args->in_count == 0) return ax_error(AX_INVALID_ARGUMENT, "needs at least one operand");
  if (dimension < 0 || dimension >= first->rank)
    return ax_error(AX_INVALID_ARGUMENT, "dimension %lld is outside rank %u", (long long)dimension, first->rank);
  for (uint32_t i = 0; i < args->in_count; i++) {
    ax_type like = args->in[i];
    if (like.rank == first->rank) like.dims[dimension] = first->dims[dimension];
    if (like.dtype != first->dtype || !ax_same_shape(&like, first))
      return ax_error(AX_INVALID_ARGUMENT, "operand %u, %s, does not go with %s along dimension %lld", i,
                      ax_type_string(&args->in[i], args->axes), ax_type_string(first, args->axes),
                      (long long)dimension);
    if (__builtin_add_overflow(total, args->in[i].dims[dimension], &total))
      return ax_error(AX_INVALID_ARGUMENT, "the result is too large");
  }
  args->out[0] = ax_array_type(first->dtype, AX_LIST(first->rank, first->dims));
  args->out[0].dims[dimension] = total;
  return AX_OK;
}

static ax_status eval(const ax_eval_args *args) {
  int64_t dimension = ((const concatenate_params *)args->eqn->params)->dimension;
  const ax_tensor *out = args->out[0];
  ax_strided to = ax_strided_dense(out);
  for (uint32_t i = 0; i < args->eqn->in_count; i++) {
    const ax_tensor *x = args->in[i];
    ax_strided from = ax_strided_dense(x);
    ax_strided_copy(x->rank, x->dims, ax_dtype_bytes(x->dtype), &to, &from);
    to.offset += x->dims[dimension] * to.strides[dimension];
  }
  return AX_OK;
}

static void transpose(const ax_transpose_args *args) {
  int64_t dimension = ((const concatenate_params *)args->eqn->params)->dimension;
  int64_t start[AX_MAX_RANK] = {0}, limit[AX_MAX_RANK];
  for (uint32_t i = 0; i < args->eqn->in_count; i++) {
    const ax_type *x = &args->in_types[i];
    for (uint32_t d = 0; d < x->rank; d++) limit[d] = start[d] + x->dims[d];
    if (args->linear[i]) args->out[i] = ax_slice(args->cotangent[0], start, limit, NULL);
    start[dimension] = limit[dimension];
  }
}

/* Cutting along the joined dimension is offered for few operands only: there each index of the result reads an element of one
   operand. */
static void shard(const ax_shard_args *args) {
  enum { few = 8 };
  int64_t dimension = ((const concatenate_params *)args->eqn->params)->dimension, first = 0;
  const ax_type *type = &args->types[args->eqn->out];
  for (uint32_t d = 0; d < type->rank; d++) {
    if (d == dimension && (args->eqn->in_count > few || type->dims[d] == 0)) continue;
    if (d == dimension) {
      uint32_t factor = ax_factor(args, type->dims[d], AX_FACTOR_ALONG);
      for (uint32_t i = 0; i < args->eqn->in_count; i++) {
        ax_factor_reaches(&args->in[i], d, factor, (ax_reach){first, 1, 1, 1, AX_FILL_ANY});
        first -= args->types[args->eqn->in[i]].dims[d];
      }
      ax_factor_of(&args->out[0], d, factor);
      continue;
    }
    uint32_t factor = ax_factor(args, type->dims[d], AX_FACTOR_ALONG);
    for (uint32_t i = 0; i < args->eqn->in_count; i++) ax_factor_of(&args->in[i], d, factor);
    ax_factor_of(&args->out[0], d, factor);
  }
}

/* Every operand as the result has it, of which those are taken that stand there. */
static void block(const ax_block_args *args) {
  const ax_eqn *eqn = args->eqn;
  const uint32_t d = (uint32_t)((const concatenate_params *)eqn->params)->dimension;
  if ((args->reached[0] >> d & 1) == 0) {
    args->out[0] = ax_bind1(eqn->prim, eqn->params, args->in, eqn->in_count);
    return;
  }
  const ax_type *block = &args->blocks[0];
  ax_value at = ax_add(ax_iota(AX_S64, AX_LIST(block->rank, block->dims), d), ax_block_start(args, 0, d, AX_S64)),
           made = args->in[0];
  int64_t end = 0;
  for (uint32_t i = 1; i < eqn->in_count && !ax_failed(); i++) {
    end += args->types[eqn->in[i - 1]].dims[d];
    made = ax_where(ax_lt(at, ax_integer(end)), made, args->in[i]);
  }
  args->out[0] = made;
}

static void batch(const ax_batch_args *args) {
  const ax_eqn *eqn = args->eqn;
  int64_t dimension = ((const concatenate_params *)eqn->params)->dimension;
  ax_value *in = ax_trace_alloc(eqn->in_count * sizeof in[0]);
  if (in == NULL) return;
  for (uint32_t i = 0; i < eqn->in_count; i++) in[i] = ax_batch_front(args->in[i], args->in_dim[i], args->size);
  args->out[0] = ax_concatenate(AX_LIST(eqn->in_count, in), dimension + 1);
}

/* Many operands one behind the other in memory: each to its place by a kernel that does not say where, so that those of like
   operands are one. */
static ax_status lower_rows(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t out) {
  const ax_type *types = lower->program->types;
  uint32_t rank = types[eqn->out].rank, place;
  ax_position at[AX_MAX_RANK];
  int64_t offset = 0;
  ax_at_identity(at, rank);
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    const ax_type *x = &types[eqn->in[i]];
    if (ax_type_elems(x) == 0) continue;
    AX_TRY(ax_lower_view(lower, out, x, offset, AX_NONE, 0, &place));
    AX_TRY(ax_lower_move(lower, rank, x->dims, place, at, in[i], at));
    offset += ax_type_elems(x) * (int64_t)ax_dtype_bytes(x->dtype);
  }
  return AX_OK;
}

static bool is_rows(const ax_type *type, int64_t dimension) {
  for (int64_t d = 0; d < dimension; d++)
    if (type->dims[d] != 1) return false;
  return true;
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  enum { many = 64 };
  int64_t dimension = ((const concatenate_params *)eqn->params)->dimension;
  ax_position from[AX_MAX_RANK], to[AX_MAX_RANK];
  uint32_t rank = lower->program->types[eqn->out].rank;
  if (eqn->in_count == 1) return ax_lower_as_view(lower, eqn, in[0], 0, &out[0]);
  ax_at_identity(from, rank);
  ax_at_identity(to, rank);
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  if (eqn->in_count > many && is_rows(&lower->program->types[eqn->out], dimension)) return lower_rows(lower, eqn, in, out[0]);
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    const ax_type *x = &lower->program->types[eqn->in[i]];
    AX_TRY(ax_lower_move(lower, rank, x->dims, out[0], to, in[i], from));
    to[dimension].offset += x->dims[dimension];
  }
  return AX_OK;
}

/* --- part --- */

/* Parts of some operands, or of one. */
static bool part(const ax_part_args *args) {
  const ax_eqn *eqn = args->eqn;
  const uint32_t d = (uint32_t)ax_concatenated_dimension(eqn);
  ax_value *parts = args->values != NULL ? ax_trace_alloc(eqn->in_count * sizeof parts[0]) : NULL;
  uint32_t count = 0;
  int64_t begin = 0;
  for (uint32_t k = 0; k < eqn->in_count; k++) {
    const int64_t size = args->types[eqn->in[k]].dims[d], low = args->box->low[d] - begin, high = args->box->high[d] - begin;
    args->in[k] = *args->box;
    args->in[k].low[d] = ax_most(ax_least(low, size), 0);
    args->in[k].high[d] = ax_most(ax_least(high, size), 0);
    if (parts != NULL && args->in[k].low[d] < args->in[k].high[d]) parts[count++] = args->values[k];
    begin += size;
  }
  if (parts != NULL) args->out[0] = count == 1 ? parts[0] : ax_bind1(eqn->prim, eqn->params, parts, count);
  return true;
}

static const ax_hlo_form form = {.op = "stablehlo.concatenate", .fields = AX_HLO_FIELDS({"dimension", "dimension"})};

/* Operands of no elements are left out, as jnp.roll by 0 makes them, if one of the others spreads as the result does. */
static void simplify(const ax_simplify_args *args) {
  ax_eqn *eqn = args->eqn;
  const ax_type *types = args->types;
  uint32_t count = 0, *left;
  bool spreads = false;
  for (uint32_t k = 0; k < eqn->in_count; k++) {
    if (ax_type_elems(&types[eqn->in[k]]) == 0) continue;
    spreads = spreads || ax_spread_equal(&types[eqn->in[k]].spread, &types[eqn->out].spread);
    count++;
  }
  if (spreads && count < eqn->in_count) {
    left = ax_arena_alloc(args->arena, count * sizeof left[0]);
    *args->failed = left == NULL;
    if (left == NULL) return;
    count = 0;
    for (uint32_t k = 0; k < eqn->in_count; k++)
      if (ax_type_elems(&types[eqn->in[k]]) > 0) left[count++] = eqn->in[k];
    eqn->in = left, eqn->in_count = count;
    *args->changed = true;
  }
  if (eqn->in_count == 1) args->same[0] = eqn->in[0];
}

static const ax_param params[] = {{"dimension", AX_PARAM_I64, offsetof(concatenate_params, dimension)}};

const ax_prim ax_prim_concatenate = {
    .name = "concatenate",
    .kind = AX_LOCAL,
    .in_count = -1,
    .out_count = 1,
    AX_PARAMS(params, concatenate_params),
    AX_LINEAR_RULES,
    .infer = infer,
    .eval = eval,
    .transpose = transpose,
    .batch = batch,
    .simplify = simplify,
    .part = part,
    .shard = shard,
    .block = block,
    .lower = lower,
    .complex = ax_complex_parts,
    .keys = ax_keys_whole,
    .form = &form, .hlo = ax_hlo_by_form,
};

ax_value (ax_concatenate)(uint32_t count, const ax_value *xs, int64_t dimension) {
  concatenate_params p = {dimension};
  if (!ax_check_operands("concatenate", xs, count)) return ax_poison;
  if (count > 0 && !ax_dimension(ax_prim_concatenate.name, "dimension", &p.dimension, ax_typeof(xs[0]).rank)) return ax_poison;
  return ax_bind1(&ax_prim_concatenate, &p, xs, count);
}
