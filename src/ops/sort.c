/* sort: x T[d..], y U[d..] .. -> T[d..], U[d..] ..         all in the order in which x, then y, .., ascend along the dimension
   The first num_keys operands are keys: a later key decides between elements that are equal in the earlier ones; the other operands
   are rearranged alike. False comes before true, -0 is 0, NaN comes last and is equal to NaN. Elements that are equal in all keys
   stay in order, with is_stable or without.
   Parameters: dimension, num_keys, is_stable.
   Errors: no operands; shapes that differ; a dimension outside the rank; fewer than one key, or more than operands.
   A gather puts tangents in the same order, and has a transpose. Batching and sharding are along the other dimensions.
   Compiled: code of its own, by digits of the keys, so that the time does not depend on the order; rows in parts. Rows of
   2 to 64 elements of a single operand are sorted by a network of comparators, as many at once as fill a vector of 64 bytes; floats
   if there is neither NaN nor -0 among these. */
#include "ops/sort.h"

#include <stdio.h>
#include <string.h>

#include "hlo/hlo.h"
#include "machine/float_mode.h"
#include "ops/gather.h"
#include "ops/pointwise.h"
#include "plan/lower.h"
#include "prim/expand.h"
#include "prim/prims.h"

static ax_status infer(const ax_infer_args *args) {
  const ax_sort_params *p = args->params;
  if (args->in_count == 0) return ax_error(AX_INVALID_ARGUMENT, "needs at least one operand");
  const ax_type *first = &args->in[0];
  if (p->dimension < 0 || p->dimension >= first->rank)
    return ax_error(AX_INVALID_ARGUMENT, "dimension %lld is outside rank %u", (long long)p->dimension, first->rank);
  if (p->num_keys < 1 || p->num_keys > args->in_count)
    return ax_error(AX_INVALID_ARGUMENT, "of %u operands %lld cannot be keys", args->in_count, (long long)p->num_keys);
  for (uint32_t i = 0; i < args->in_count; i++) {
    if (!ax_same_shape(&args->in[i], first))
      return ax_error(AX_INVALID_ARGUMENT, "operand %u, %s, has not the shape of %s", i, ax_type_string(&args->in[i], args->axes),
                      ax_type_string(first, args->axes));
    args->out[i] = ax_array_type(args->in[i].dtype, AX_LIST(first->rank, first->dims));
  }
  return AX_OK;
}

/* --- eval: by insertion --- */

/* -1, 0, 1 */
static int compare(ax_dtype dtype, ax_number a, ax_number b) {
  switch (ax_dtype_get(dtype)->kind) {
    case AX_KIND_COMPLEX:
      if (compare(AX_F64, a, b) != 0) return compare(AX_F64, a, b);
      return compare(AX_F64, (ax_number){.f = a.imag}, (ax_number){.f = b.imag});
    case AX_KIND_FLOAT: return a.f != a.f || b.f != b.f ? (a.f != a.f) - (b.f != b.f) : (a.f > b.f) - (a.f < b.f);
    case AX_KIND_SIGNED: return (a.i > b.i) - (a.i < b.i);
    default: return (a.u > b.u) - (a.u < b.u);
  }
}

static bool comes_before(const ax_eval_args *args, int64_t keys, int64_t at, int64_t other) {
  for (int64_t k = 0; k < keys; k++) {
    const ax_tensor *x = args->in[k];
    int order = compare(x->dtype, ax_number_load(x->dtype, x->data, at), ax_number_load(x->dtype, x->data, other));
    if (order != 0) return order < 0;
  }
  return false;
}

static ax_status eval(const ax_eval_args *args) {
  const ax_sort_params *p = args->eqn->params;
  const ax_tensor *first = args->in[0];
  const uint32_t d = (uint32_t)p->dimension;
  int64_t n = first->dims[d], inner = ax_dims_elems(first->rank - d - 1, first->dims + d + 1),
          rows = ax_dims_elems(d, first->dims) * inner;
  int64_t *order = ax_alloc((size_t)n * sizeof order[0]);
  if (order == NULL) return ax_out_of_memory((size_t)n * sizeof order[0]);
  const ax_float_mode mode = ax_float_mode_enter(false); /* subnormal numbers have their places in the order in every mode */
  for (int64_t row = 0; row < rows; row++) {
    int64_t base = row / inner * n * inner + row % inner;
    for (int64_t i = 0; i < n; i++) {
      int64_t at = i, from = base + i * inner;
      for (; at > 0 && comes_before(args, p->num_keys, from, order[at - 1]); at--) order[at] = order[at - 1];
      order[at] = from;
    }
    for (uint32_t k = 0; k < args->eqn->in_count; k++) {
      size_t bytes = ax_dtype_bytes(args->in[k]->dtype);
      for (int64_t i = 0; i < n; i++)
        memcpy((char *)args->out[k]->data + (size_t)(base + i * inner) * bytes,
               (const char *)args->in[k]->data + (size_t)order[i] * bytes, bytes);
    }
  }
  ax_float_mode_leave(mode);
  ax_free(order);
  return AX_OK;
}

/* --- jvp: the places that elements come from are sorted along with them --- */

ax_value ax_taken_in_order(ax_value x, ax_value places, int64_t dimension) {
  const ax_type type = ax_typeof(x);
  ax_indexing at = {.collapsed = {1, {dimension}}, .map = {1, {dimension}}, .mode = "promise_in_bounds", .unique = true};
  int64_t sizes[AX_MAX_RANK];
  if (ax_failed()) return ax_poison;
  if (type.rank == AX_MAX_RANK) {
    ax_fail(ax_error(AX_ABSENT, "sort: the derivative of an array of rank %d", AX_MAX_RANK));
    return ax_poison;
  }
  for (uint32_t d = 0; d < type.rank; d++) {
    sizes[d] = type.dims[d] > 0;
    if (d != dimension) at.batching.v[at.batching.count++] = d;
  }
  at.index_batching = at.batching;
  return ax_gather_of(x, ax_expand_dims(places, type.rank), &at, sizes);
}

static void jvp(const ax_jvp_args *args) {
  const ax_eqn *eqn = args->eqn;
  const int64_t dimension = ((const ax_sort_params *)eqn->params)->dimension;
  const uint32_t count = eqn->in_count;
  bool any = false;
  for (uint32_t k = 0; k < count; k++) any = any || !ax_is_zero(args->tangent_in[k]);
  ax_value *in = ax_trace_alloc((count + 1) * sizeof in[0]), *out = ax_trace_alloc((count + 1) * sizeof out[0]);
  const ax_type type = ax_typeof(args->in[0]);
  if (in == NULL || out == NULL) return;
  memcpy(in, args->in, count * sizeof in[0]);
  if (any && type.dims[dimension] == 0) any = false;
  if (any) in[count] = ax_iota(type.dims[dimension] > INT32_MAX ? AX_S64 : AX_S32, AX_LIST(type.rank, type.dims), dimension);
  ax_bind(eqn->prim, eqn->params, in, count + any, out, count + any);
  for (uint32_t k = 0; k < count; k++) {
    args->out[k] = out[k];
    args->tangent_out[k] =
        any && !ax_is_zero(args->tangent_in[k]) ? ax_taken_in_order(args->tangent_in[k], out[count], dimension) : ax_zero;
  }
}

/* --- batch --- */

static void batch(const ax_batch_args *args) {
  ax_sort_params p = *(const ax_sort_params *)args->eqn->params;
  const uint32_t count = args->eqn->in_count;
  ax_value *in = ax_trace_alloc(count * sizeof in[0]);
  if (in == NULL) return;
  for (uint32_t k = 0; k < count; k++) in[k] = ax_batch_front(args->in[k], args->in_dim[k], args->size);
  p.dimension++;
  ax_bind(args->eqn->prim, &p, in, count, args->out, count);
}

/* Dimensions beside that of the order are cut. */
static void shard(const ax_shard_args *args) {
  const ax_type *type = &args->types[args->eqn->out];
  for (uint32_t d = 0; d < type->rank; d++) {
    if (d == ((const ax_sort_params *)args->eqn->params)->dimension) continue;
    uint32_t factor = ax_factor(args, type->dims[d], AX_FACTOR_ALONG);
    for (uint32_t k = 0; k < args->eqn->in_count; k++) {
      ax_factor_of(&args->in[k], d, factor);
      ax_factor_of(&args->out[k], d, factor);
    }
  }
}

static ax_status lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  for (uint32_t k = 0; k < eqn->out_count; k++) AX_TRY(ax_lower_result(lower, eqn, k, &out[k]));
  return ax_lower_sort(lower, eqn->params, eqn->in_count, in, out);
}

/* Complex numbers as their parts, two operands and two keys: by the real part, and where that is equal by the imaginary one. */
static void expand(const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  ax_sort_params p = *(const ax_sort_params *)eqn->params;
  uint32_t count = 0;
  ax_value *operands = ax_trace_alloc(2 * (size_t)eqn->in_count * sizeof in[0]),
           *sorted = ax_trace_alloc(2 * (size_t)eqn->in_count * sizeof in[0]);
  if (operands == NULL || sorted == NULL) return;
  for (uint32_t k = 0; k < eqn->in_count; k++) {
    const bool is_complex = ax_is_complex(ax_typeof(in[k]).dtype);
    if (is_complex && k < ((const ax_sort_params *)eqn->params)->num_keys) p.num_keys++;
    operands[count++] = is_complex ? ax_real_part(in[k]) : in[k];
    if (is_complex) operands[count++] = ax_imag_part(in[k]);
  }
  ax_bind(eqn->prim, &p, operands, count, sorted, count);
  for (uint32_t k = 0, next = 0; k < eqn->in_count; k++) {
    const bool is_complex = ax_is_complex(ax_typeof(in[k]).dtype);
    out[k] = is_complex ? ax_complex(sorted[next], sorted[next + 1]) : sorted[next];
    next += 1 + is_complex;
  }
}

static ax_status sort_complex(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  return ax_lower_expanded_all(lower, eqn, expand, in, out);
}

/* --- hlo: a comparison of keys, the last first --- */

static uint32_t hlo_select(ax_hlo *hlo, uint32_t which, uint32_t yes, uint32_t no, const ax_type *type) {
  uint32_t in[] = {which, yes, no};
  return ax_hlo_op(hlo, "stablehlo.select", in, 3, NULL, type, 1);
}

/* A float as the total order has it where all zeros and all NaNs are one. */
static uint32_t hlo_plain(ax_hlo *hlo, uint32_t x, const ax_type *type) {
  int64_t zero = 0, nan = 0;
  ax_number_store(type->dtype, &zero, 0, (ax_number){.f = 0});
  ax_number_store(type->dtype, &nan, 0, (ax_number){.f = __builtin_nan("")});
  uint32_t zeros = ax_hlo_splat(hlo, type, &zero);
  x = hlo_select(hlo, ax_hlo_compare(hlo, "EQ", NULL, x, zeros, type), zeros, x, type);
  const uint32_t nans = ax_hlo_splat(hlo, type, &nan);
  return hlo_select(hlo, ax_hlo_compare(hlo, "NE", NULL, x, x, type), nans, x, type);
}

uint32_t ax_hlo_sort_compare(ax_hlo *hlo, const char *direction, uint32_t a, uint32_t b, const ax_type *type) {
  const bool is_float = ax_is_float(type->dtype);
  if (is_float) a = hlo_plain(hlo, a, type), b = hlo_plain(hlo, b, type);
  return ax_hlo_compare(hlo, direction, is_float ? "TOTALORDER" : NULL, a, b, type);
}

uint32_t ax_hlo_total_compare(ax_hlo *hlo, const char *direction, uint32_t a, uint32_t b, const ax_type *type) {
  if (!ax_is_float(type->dtype) || ax_is_byte_float(type->dtype)) return ax_hlo_sort_compare(hlo, direction, a, b, type);
  return ax_hlo_compare(hlo, direction, "TOTALORDER", a, b, type);
}

static void hlo_comparator(ax_hlo *hlo, const ax_eqn *eqn, ax_type *scalars) {
  const int64_t keys = ((const ax_sort_params *)eqn->params)->num_keys;
  const ax_type truth = ax_array_type(AX_BOOL, AX_DIMS());
  for (uint32_t k = 0; k < 2 * eqn->in_count; k++) scalars[k] = ax_array_type(hlo->program->types[eqn->in[k / 2]].dtype, AX_DIMS());
  uint32_t arg = ax_hlo_region_begin(hlo, scalars, 2 * eqn->in_count), before = 0;
  for (int64_t k = keys; k-- > 0;) {
    const ax_type *type = &scalars[2 * k];
    const uint32_t a = arg + 2 * (uint32_t)k, b = a + 1, less = ax_hlo_sort_compare(hlo, "LT", a, b, type);
    if (k + 1 == keys) {
      before = less;
      continue;
    }
    uint32_t tie[] = {ax_hlo_sort_compare(hlo, "EQ", a, b, type), before};
    uint32_t either[] = {less, ax_hlo_op(hlo, "stablehlo.and", tie, 2, NULL, &truth, 1)};
    before = ax_hlo_op(hlo, "stablehlo.or", either, 2, NULL, &truth, 1);
  }
  ax_hlo_region_end(hlo, &before, 1);
}

static ax_status hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const uint32_t count = eqn->in_count;
  ax_hlo_attributes attributes = {.hlo = hlo};
  for (uint32_t k = 0; k < count; k++)
    if (ax_is_complex(hlo->program->types[eqn->in[k]].dtype)) return ax_hlo_expanded_all(hlo, eqn, expand, in, out);
  ax_type *scalars = ax_alloc(2 * (size_t)count * sizeof scalars[0]);
  if (scalars == NULL) return ax_out_of_memory(2 * count * sizeof scalars[0]);
  ax_hlo_add_fields(&attributes, eqn->prim, eqn->params);
  out[0] = ax_hlo_begin(hlo, "stablehlo.sort", in, count, hlo->program->types + eqn->out, count);
  for (uint32_t k = 1; k < count; k++) out[k] = out[0] + k;
  hlo_comparator(hlo, eqn, scalars);
  ax_hlo_end(hlo, &attributes);
  ax_free(scalars);
  return AX_OK;
}

/* How many operands are keys, the comparator says. */
static const ax_hlo_form form = {.op = "stablehlo.sort",
                                 .fields = AX_HLO_FIELDS({"dimension", "dimension"}, {"is_stable", "is_stable"})};

/* --- The record --- */

static const ax_param params[] = {
    {"dimension", AX_PARAM_I64, offsetof(ax_sort_params, dimension)},
    {"num_keys", AX_PARAM_I64, offsetof(ax_sort_params, num_keys)},
    {"is_stable", AX_PARAM_BOOL, offsetof(ax_sort_params, is_stable)},
};

const ax_prim ax_prim_sort = {
    .name = "sort", .kind = AX_LOCAL, .in_count = -1, .out_count = AX_AS_OPERANDS,
    AX_PARAMS(params, ax_sort_params),
    .infer = infer, .spread = ax_spread_local, .eval = eval, .differs = ax_differs_union, .jvp = jvp, .linearize = jvp,
    .transpose = ax_absent_transpose, .batch = batch, .simplify = ax_simplify_nothing, .shard = shard, .lower = lower,
    .complex = sort_complex, .form = &form, .reads = ax_sort_readers, .hlo = hlo,
};

/* --- The functions --- */

void(ax_sort_together)(uint32_t count, const ax_value *xs, int64_t dimension, uint32_t num_keys, uint32_t out_count,
                       ax_value *out) {
  if (!ax_lists_fit("sort_together", count, count, out_count, count, out)) return;
  ax_sort_params p = {.dimension = dimension, .num_keys = num_keys, .is_stable = true};
  const ax_value *in = ax_take_operands(xs, count, out, count);
  if (!ax_check_operands("sort", in, count)) return;
  if (count > 0 && !ax_dimension("sort", "dimension", &p.dimension, ax_typeof(in[0]).rank)) return;
  if (!ax_failed()) ax_bind(&ax_prim_sort, &p, in, count, out, count);
}

ax_value ax_sort(ax_value x, int64_t dimension) {
  ax_value out = ax_poison;
  ax_sort_together(AX_LIST(1, &x), dimension, 1, &out);
  return out;
}

ax_value ax_argsort(ax_value x, int64_t dimension) {
  ax_value out[] = {ax_poison, ax_poison};
  if (!ax_check_operands("argsort", &x, 1)) return ax_poison;
  const ax_type type = ax_typeof(x);
  if (ax_failed() || !ax_dimension("argsort", "dimension", &dimension, type.rank)) return ax_poison;
  if (type.dims[dimension] > INT32_MAX)
    return ax_reject_as("argsort", "s32 does not count to %lld", (long long)type.dims[dimension]);
  const ax_value in[] = {x, ax_iota(AX_S32, AX_LIST(type.rank, type.dims), dimension)};
  ax_sort_together(AX_LIST(2, in), dimension, 1, out);
  return out[1];
}
