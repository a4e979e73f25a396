/* lu_pivots_to_permutation: pivots s32[.., k] -> s32[.., n]         exchanges of rows as a permutation, n = permutation_size
   The numbers from 0 to n, number i exchanged with number pivots[i], one after the other.
   Parameters: permutation_size.
   Errors: pivots that are not s32; a scalar; fewer than k numbers. A pivot outside 0 .. n gives a permutation that is not said.
   Integers have no tangents. Batched and cut along leading dimensions.
   Compiled: code of its own, a row at a time. */
#include "axle/linalg.h"
#include "hlo/hlo.h"
#include "linalg/matrices.h"
#include "prim/prims.h"

typedef struct permutation_params {
  int64_t permutation_size;
} permutation_params;

static ax_status infer(const ax_infer_args *args) {
  const ax_type *x = &args->in[0];
  const int64_t size = ((const permutation_params *)args->params)->permutation_size;
  if (x->dtype != AX_S32) return ax_error(AX_INVALID_ARGUMENT, "the pivots are %s; they must be s32", ax_dtype_name(x->dtype));
  if (x->rank == 0) return ax_error(AX_INVALID_ARGUMENT, "the pivots are a scalar");
  if (size < x->dims[x->rank - 1] || size > INT32_MAX)
    return ax_error(AX_INVALID_ARGUMENT, "a permutation of %lld has no room for %lld pivots", (long long)size,
                    (long long)x->dims[x->rank - 1]);
  args->out[0] = ax_array_type(AX_S32, AX_LIST(x->rank, x->dims));
  args->out[0].dims[x->rank - 1] = size;
  return AX_OK;
}

static void permute(const ax_matrix_call *call, void *const *matrix, void *work) {
  const int32_t *pivots = matrix[0];
  int32_t *permutation = matrix[1];
  (void)work;
  for (int64_t i = 0; i < call->n; i++) permutation[i] = (int32_t)i;
  for (int64_t i = 0; i < call->k; i++) {
    const int64_t with = pivots[i] < 0 ? 0 : pivots[i] < call->n ? pivots[i] : call->n - 1;
    const int32_t kept = permutation[i];
    permutation[i] = permutation[with];
    permutation[with] = kept;
  }
}

static ax_matrix_routine routine_of(const ax_type *pivots, const ax_type *permutation) {
  const int64_t k = pivots->dims[pivots->rank - 1], n = permutation->dims[pivots->rank - 1];
  return (ax_matrix_routine){.name = "permutation",
                             .code = permute,
                             .call = {.n = n, .k = k},
                             .batch_rank = pivots->rank - 1,
                             .time = (double)n + 2 * (double)k};
}

static ax_status eval(const ax_eval_args *args) {
  const ax_type pivots = ax_array_type(AX_S32, AX_LIST(args->in[0]->rank, args->in[0]->dims)),
                permutation = ax_array_type(AX_S32, AX_LIST(args->out[0]->rank, args->out[0]->dims));
  const ax_matrix_routine routine = routine_of(&pivots, &permutation);
  return ax_eval_matrices(args, &routine);
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  const ax_matrix_routine routine = routine_of(ax_lower_type(lower, in[0]), ax_lower_type(lower, out[0]));
  return ax_lower_matrices(lower, &routine, in, 1, out, 1);
}

static void shard(const ax_shard_args *args) {
  const ax_type *x = &args->types[args->eqn->in[0]];
  ax_shard_kept(args, (uint64_t)1 << (x->rank - 1));
}

/* --- hlo: a loop over the exchanges --- */

/* index, permutation, pivots -> permutation, pivots */
static void exchange(const ax_value *in, ax_value *out, void *context) {
  const ax_type type = ax_typeof(in[1]);
  (void)context;
  if (ax_failed()) return;
  const ax_value place = ax_iota(AX_S32, AX_LIST(type.rank, type.dims), type.rank - 1);
  const ax_value with = ax_expand_dims(ax_dynamic_at(in[2], in[0], -1), -1), kept = ax_expand_dims(ax_dynamic_at(in[1], in[0], -1), -1);
  const ax_value there = ax_where(ax_eq(place, with), in[1], ax_integer(0));
  const ax_value moved = ax_reduce_sum(there, AX_DIMS(-1), true);
  out[0] = ax_where(ax_eq(place, with), kept, ax_where(ax_eq(place, in[0]), moved, in[1]));
  out[1] = in[2];
}

static void exchanges(const ax_value *in, ax_value *out, void *context) {
  const ax_type *permutation = context, pivots = ax_typeof(in[0]);
  const uint32_t rank = permutation->rank;
  if (ax_failed()) return;
  ax_value carry[] = {ax_iota(AX_S32, AX_LIST(rank, permutation->dims), rank - 1), in[0]};
  if (pivots.dims[rank - 1] > 0)
    ax_fori_loop(ax_integer(0), ax_integer(pivots.dims[rank - 1]), AX_FN(exchange, 3, 2), AX_LIST(2, carry), AX_LIST(2, carry));
  out[0] = carry[0];
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *x = &hlo->program->types[eqn->in[0]], *y = &hlo->program->types[eqn->out];
  ax_type pivots = ax_array_type(AX_S32, AX_LIST(x->rank, x->dims)), permutation = ax_array_type(AX_S32, AX_LIST(y->rank, y->dims));
  ax_program *program;
  AX_TRY(ax_trace(AX_CLOSURE(exchanges, 1, 1, &permutation), &pivots, &program));
  const ax_status status = hlo->inline_program(hlo, program, in, out);
  ax_program_release(program);
  return status;
}

static const ax_param params[] = {{"permutation_size", AX_PARAM_I64, offsetof(permutation_params, permutation_size)}};

const ax_prim ax_prim_lu_pivots_to_permutation = {
    .name = "lu_pivots_to_permutation", .kind = AX_LOCAL, .in_count = 1, .out_count = 1,
    AX_PARAMS(params, permutation_params),
    .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union, .jvp = ax_jvp_zero, .linearize = ax_jvp_zero,
    .transpose = ax_absent_transpose, .batch = ax_batch_matrices, .simplify = ax_simplify_nothing, .shard = shard, .lower = lower,
    .hlo = hlo,
};

ax_value ax_lu_pivots_to_permutation(ax_value pivots, int64_t permutation_size) {
  return ax_bind1(&ax_prim_lu_pivots_to_permutation, &(permutation_params){permutation_size}, &pivots, 1);
}
