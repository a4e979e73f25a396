/* top_k: x T[.., n] -> T[.., k], s32[.., k]         the k greatest along the last dimension, descending, and where they are
   Floats are in IEEE 754's total order: NaN is greatest and -NaN least, 0 is above -0; of less than 16 bits NaN is greatest, and zeros
   are equal. Equal elements stay in order.
   Parameters: k.
   Errors: a scalar; k below 0 or above n; n beyond s32.
   The values' tangents are taken from where they are, by a gather; places have none. Batched and cut along other dimensions.
   Compiled: code of its own, one pass over each row, whatever its order; rows in parts. */
#include <string.h>

#include "hlo/hlo.h"
#include "ops/sort.h"
#include "plan/lower.h"
#include "prim/prims.h"

typedef struct top_k_params {
  int64_t k;
} top_k_params;

static ax_status infer(const ax_infer_args *args) {
  const int64_t k = ((const top_k_params *)args->params)->k;
  const ax_type *x = &args->in[0];
  if (x->rank == 0) return ax_error(AX_INVALID_ARGUMENT, "a scalar has no last dimension");
  const int64_t n = x->dims[x->rank - 1];
  if (k < 0 || k > n)
    return ax_error(AX_INVALID_ARGUMENT, "there are %lld along the last dimension, of which %lld cannot be taken", (long long)n,
                    (long long)k);
  if (n > INT32_MAX) return ax_error(AX_INVALID_ARGUMENT, "s32 does not count to %lld", (long long)n);
  args->out[0] = ax_array_type(x->dtype, AX_LIST(x->rank, x->dims));
  args->out[0].dims[x->rank - 1] = k;
  args->out[1] = ax_array_type(AX_S32, AX_LIST(x->rank, args->out[0].dims));
  return AX_OK;
}

/* --- eval: one after the other the greatest that is left --- */

static bool is_taken(const int32_t *places, int64_t count, int64_t i) {
  for (int64_t j = 0; j < count; j++)
    if (places[j] == i) return true;
  return false;
}

static ax_status eval(const ax_eval_args *args) {
  const ax_tensor *x = args->in[0], *values = args->out[0];
  const int64_t n = x->dims[x->rank - 1], k = values->dims[x->rank - 1], rows = ax_dims_elems(x->rank - 1, x->dims);
  size_t bytes = ax_dtype_bytes(x->dtype);
  for (int64_t row = 0; row < rows; row++) {
    int32_t *places = (int32_t *)args->out[1]->data + row * k;
    for (int64_t j = 0; j < k; j++) {
      int64_t best = -1;
      for (int64_t i = 0; i < n; i++) {
        if (is_taken(places, j, i)) continue;
        if (best < 0 || ax_total_key(x->dtype, x->data, row * n + i) > ax_total_key(x->dtype, x->data, row * n + best)) best = i;
      }
      places[j] = (int32_t)best;
      memcpy((char *)values->data + (size_t)(row * k + j) * bytes, (const char *)x->data + (size_t)(row * n + best) * bytes, bytes);
    }
  }
  return AX_OK;
}

static void jvp(const ax_jvp_args *args) {
  ax_bind(args->eqn->prim, args->eqn->params, args->in, 1, args->out, 2);
  args->tangent_out[0] = args->tangent_out[1] = ax_zero;
  if (ax_is_zero(args->tangent_in[0]) || ax_failed()) return;
  const ax_type x = ax_typeof(args->in[0]);
  if (x.dims[x.rank - 1] > 0)
    args->tangent_out[0] = ax_taken_in_order(args->tangent_in[0], args->out[1], x.rank - 1); /* of none there are none */
}

static void batch(const ax_batch_args *args) {
  ax_value x = ax_batch_front(args->in[0], args->in_dim[0], args->size);
  ax_bind(args->eqn->prim, args->eqn->params, &x, 1, args->out, 2);
}

static void shard(const ax_shard_args *args) {
  const ax_type *x = &args->types[args->eqn->in[0]];
  for (uint32_t d = 0; d + 1 < x->rank; d++) {
    uint32_t factor = ax_factor(args, x->dims[d], AX_FACTOR_ALONG);
    ax_factor_of(&args->in[0], d, factor);
    for (int k = 0; k < 2; k++) ax_factor_of(&args->out[k], d, factor);
  }
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  for (uint32_t k = 0; k < 2; k++) AX_TRY(ax_lower_result(lower, eqn, k, &out[k]));
  return ax_lower_top_k(lower, in[0], out);
}

/* --- hlo: all in order, and the first k of them --- */

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *x = &hlo->program->types[eqn->in[0]];
  const ax_type places = ax_array_type(AX_S32, AX_LIST(x->rank, x->dims)), value = ax_array_type(x->dtype, AX_DIMS()),
                place = ax_array_type(AX_S32, AX_DIMS());
  const ax_type both[] = {*x, places}, scalars[] = {value, value, place, place};
  const ax_dims none = {.count = x->rank};
  ax_dims limits = {.count = x->rank}, ones = {.count = x->rank};
  ax_hlo_attributes order = {.hlo = hlo}, part = {.hlo = hlo};
  for (uint32_t d = 0; d < x->rank; d++) limits.v[d] = hlo->program->types[eqn->out].dims[d], ones.v[d] = 1;
  uint32_t operands[] = {in[0], ax_hlo_iota(hlo, &places, x->rank - 1)};
  uint32_t sorted = ax_hlo_begin(hlo, "stablehlo.sort", operands, 2, both, 2), arg = ax_hlo_region_begin(hlo, scalars, 4);
  uint32_t before = ax_hlo_total_compare(hlo, "GT", arg, arg + 1, &value);
  ax_hlo_region_end(hlo, &before, 1);
  ax_hlo_add_fields(&order, &ax_prim_sort, &(ax_sort_params){.dimension = x->rank - 1, .is_stable = true});
  ax_hlo_end(hlo, &order);
  ax_hlo_add_dims(&part, "start_indices", &none);
  ax_hlo_add_dims(&part, "limit_indices", &limits);
  ax_hlo_add_dims(&part, "strides", &ones);
  for (uint32_t k = 0; k < 2; k++) {
    uint32_t one = sorted + k;
    out[k] = ax_hlo_op(hlo, "stablehlo.slice", &one, 1, &part, &hlo->program->types[eqn->out + k], 1);
  }
  return AX_OK;
}

static const ax_param params[] = {{"k", AX_PARAM_I64, offsetof(top_k_params, k)}};

const ax_prim ax_prim_top_k = {
    .name = "top_k", .kind = AX_LOCAL, .in_count = 1, .out_count = 2,
    AX_PARAMS(params, top_k_params),
    .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union, .jvp = jvp, .linearize = jvp,
    .transpose = ax_absent_transpose, .batch = batch, .simplify = ax_simplify_nothing, .shard = shard, .lower = lower, .hlo = hlo,
};

void (ax_top_k)(ax_value x, int64_t k, uint32_t out_count, ax_value *out) {
  if (ax_lists_fit("top_k", 1, 1, out_count, 2, out)) ax_bind(&ax_prim_top_k, &(top_k_params){k}, &x, 1, out, 2);
}
