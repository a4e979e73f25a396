/* transpose: T[d..] -> T[d[permutation]..]         result dimension i is x's dimension permutation[i]
   Parameters: permutation.
   Errors: not a permutation of x's dimensions.
   Linear; the transpose is the inverse permutation. Where only dimensions of 1 move, the result is the operand's memory. */
#include "hlo/hlo.h"
#include "ops/transpose_wide.h"
#include "plan/lower.h"
#include "prim/prims.h"
#include "prim/shape.h"

typedef struct transpose_params {
  ax_dims permutation;
} transpose_params;

static ax_status infer(const ax_infer_args *args) {
  const ax_dims *permutation = &((const transpose_params *)args->params)->permutation;
  const ax_type *x = &args->in[0];
  AX_TRY(ax_infer_one_each("permutation", permutation, x->rank));
  AX_TRY(ax_infer_distinct("permutation", permutation, x->rank));
  args->out[0] = ax_array_type(x->dtype, AX_LIST(x->rank, x->dims));
  for (uint32_t i = 0; i < x->rank; i++) args->out[0].dims[i] = x->dims[permutation->v[i]];
  return AX_OK;
}

static ax_status eval(const ax_eval_args *args) {
  const ax_dims *permutation = &((const transpose_params *)args->eqn->params)->permutation;
  const ax_tensor *out = args->out[0];
  ax_strided to = ax_strided_dense(out), from = ax_strided_dense(args->in[0]), permuted = from;
  for (uint32_t i = 0; i < out->rank; i++) permuted.strides[i] = from.strides[permutation->v[i]];
  ax_strided_copy(out->rank, out->dims, ax_dtype_bytes(out->dtype), &to, &permuted);
  return AX_OK;
}

static void transpose(const ax_transpose_args *args) {
  const ax_dims *permutation = &((const transpose_params *)args->eqn->params)->permutation;
  int64_t inverse[AX_MAX_RANK];
  for (uint32_t i = 0; i < permutation->count; i++) inverse[permutation->v[i]] = i;
  args->out[0] = ax_transpose(args->cotangent[0], inverse);
}

static void batch(const ax_batch_args *args) {
  transpose_params p = *(const transpose_params *)args->eqn->params;
  ax_dims_shift(&p.permutation, args->in_dim[0]);
  if (!ax_dims_insert(args->eqn->prim, &p.permutation, 0, args->in_dim[0])) return;
  args->out[0] = ax_transpose(args->in[0], p.permutation.v);
}

/* A permutation of a permutation is one; one that moves nothing, none. */
static void simplify(const ax_simplify_args *args) {
  const ax_eqn *inner = ax_simplify_operand(args, 0, &ax_prim_transpose);
  transpose_params p = *(const transpose_params *)args->eqn->params;
  if (inner != NULL) {
    const ax_dims *first = &((const transpose_params *)inner->params)->permutation;
    for (uint32_t i = 0; i < p.permutation.count; i++) p.permutation.v[i] = first->v[p.permutation.v[i]];
    ax_simplify_replace(args, 0, inner->in[0], &p);
  }
  bool moves = *args->failed;
  for (uint32_t i = 0; i < p.permutation.count; i++) moves = moves || p.permutation.v[i] != i;
  if (!moves) args->same[0] = args->eqn->in[0];
}

const ax_dims *ax_transposed_dims(const ax_eqn *eqn) { return &((const transpose_params *)eqn->params)->permutation; }

static void shard(const ax_shard_args *args) {
  const ax_dims *permutation = &((const transpose_params *)args->eqn->params)->permutation;
  for (uint32_t i = 0; i < permutation->count; i++) {
    uint32_t factor = ax_factor(args, args->types[args->eqn->out].dims[i], AX_FACTOR_ALONG);
    ax_factor_of(&args->in[0], permutation->v[i], factor);
    ax_factor_of(&args->out[0], i, factor);
  }
}

/* The dimensions other than 1 keep their order. */
static bool same_memory(const ax_type *x, const ax_dims *permutation) {
  int64_t last = -1;
  for (uint32_t i = 0; i < permutation->count; i++) {
    if (x->dims[permutation->v[i]] == 1) continue;
    if (permutation->v[i] < last) return false;
    last = permutation->v[i];
  }
  return true;
}

/* --- Columns: few rows put one below another, where each alone is a column as it lies, are put side by side instead, as vmap's
   stack of a function's results is; also where something is computed of them element by element. So each column is stored where
   it stays. --- */

enum { few_pieces = 16, deepest = 4, most_operands = 3 };

static bool is_number(const ax_rewrite_args *args, uint32_t value) {
  const ax_eqn *made = args->made_by[value];
  return made != NULL && made->prim == &ax_prim_broadcast_in_dim && args->types[made->in[0]].rank == 0;
}

static bool is_columns(const ax_rewrite_args *args, uint32_t value, int depth) {
  const ax_eqn *made = args->made_by[value];
  const ax_dims *permutation = ax_transposed_dims(args->eqn);
  uint32_t columns = 0;
  if (made == NULL || same_memory(&args->types[value], permutation)) return false;
  if (made->prim == &ax_prim_concatenate) {
    while (columns < made->in_count && same_memory(&args->types[made->in[columns]], permutation)) columns++;
    return made->in_count > 1 && made->in_count <= few_pieces && columns == made->in_count;
  }
  if (made->prim->scalar == AX_SCALAR_NONE || made->out_count != 1 || made->in_count > most_operands || depth == deepest)
    return false;
  for (uint32_t i = 0; i < made->in_count; i++) {
    const bool one = is_columns(args, made->in[i], depth + 1);
    if (!one && !is_number(args, made->in[i])) return false;
    columns += one;
  }
  return columns > 0;
}

static ax_value as_columns(const ax_rewrite_args *args, uint32_t value) {
  const ax_eqn *made = args->made_by[value];
  const ax_dims *permutation = ax_transposed_dims(args->eqn);
  ax_value in[few_pieces];
  const bool pieces = made->prim == &ax_prim_concatenate;
  if (!pieces && is_number(args, value)) return (ax_transpose)(args->values[value], permutation->count, permutation->v);
  for (uint32_t i = 0; i < made->in_count; i++)
    in[i] = pieces ? (ax_transpose)(args->values[made->in[i]], permutation->count, permutation->v) : as_columns(args, made->in[i]);
  if (!pieces) return ax_bind1(made->prim, made->params, in, made->in_count);
  uint32_t along = 0;
  while (permutation->v[along] != ax_concatenated_dimension(made)) along++;
  return ax_concatenate(AX_LIST(made->in_count, in), along);
}

static bool rewrite(const ax_rewrite_args *args) {
  if (!is_columns(args, args->eqn->in[0], 0)) return false;
  if (args->values != NULL) args->out[0] = as_columns(args, args->eqn->in[0]);
  return true;
}

static ax_status move(ax_lower *lower, const ax_eqn *eqn, uint32_t from_buffer, uint32_t to_buffer) {
  const ax_dims *permutation = &((const transpose_params *)eqn->params)->permutation;
  const ax_type *type = &lower->program->types[eqn->out];
  ax_position from[AX_MAX_RANK], to[AX_MAX_RANK];
  ax_at_identity(to, type->rank);
  for (uint32_t i = 0; i < type->rank; i++) from[permutation->v[i]] = to[i];
  return ax_lower_move(lower, type->rank, type->dims, to_buffer, to, from_buffer, from);
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  if (same_memory(&lower->program->types[eqn->in[0]], &((const transpose_params *)eqn->params)->permutation))
    return ax_lower_as_view(lower, eqn, in[0], 0, &out[0]);
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  return move(lower, eqn, in[0], out[0]);
}

/* A complex number of 8 bytes is moved as one word, which kernels do in squares (jit/nest), and one of 16 by a routine. By its parts, each two
   apart, single numbers are gathered: 1,024 columns as long take 15 times the time. Few elements whose parts are known go by these, so
   that kernels of other operations take the transpose in. */
static ax_status lower_complex(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  enum { few_elems = 1 << 10 };
  const ax_type *x = ax_lower_type(lower, in[0]);
  const bool known = ax_lower_has_parts(lower, in[0]),
             same = same_memory(&lower->program->types[eqn->in[0]], ax_transposed_dims(eqn));
  const bool few = ax_type_elems(x) < few_elems, wide = x->dtype == AX_C128;
  uint32_t from, to;
  if ((known && (same || few)) || (wide && few && !same)) return ax_complex_parts(lower, eqn, in, out);
  if (same) return ax_lower_as_view(lower, eqn, in[0], 0, &out[0]);
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  if (wide) return ax_lower_transpose_wide(lower, ax_transposed_dims(eqn), in[0], out[0]);
  AX_TRY(ax_lower_as_words(lower, in[0], &from));
  AX_TRY(ax_lower_as_words(lower, out[0], &to));
  return move(lower, eqn, from, to);
}

static const ax_hlo_form form = {.op = "stablehlo.transpose", .fields = AX_HLO_FIELDS({"permutation", "permutation"})};

static const ax_param params[] = {{"permutation", AX_PARAM_DIMS, offsetof(transpose_params, permutation)}};

const ax_prim ax_prim_transpose = {
    .name = "transpose",
    .kind = AX_LOCAL,
    .cheap = true,
    .in_count = 1,
    .out_count = 1,
    AX_PARAMS(params, transpose_params),
    AX_LINEAR_RULES,
    .infer = infer,
    .eval = eval,
    .transpose = transpose,
    .batch = batch,
    .simplify = simplify,
    .rewrite = rewrite,
    .shard = shard,
    .lower = lower,
    .complex = lower_complex,
    .keys = ax_keys_words,
    .form = &form, .hlo = ax_hlo_by_form,
};

ax_value (ax_transpose)(ax_value x, uint32_t count, const int64_t *permutation) {
  transpose_params p;
  bool moves = false;
  uint32_t rank = ax_typeof(x).rank;
  if (ax_failed() || !ax_list_fits("transpose", "the array has", "dimension", count, rank) ||
      !ax_dims_take(&ax_prim_transpose, rank, permutation, &p.permutation)) return ax_poison;
  for (uint32_t i = 0; i < p.permutation.count; i++) moves = moves || permutation[i] != i;
  return moves ? ax_bind1(&ax_prim_transpose, &p, &x, 1) : x;
}
