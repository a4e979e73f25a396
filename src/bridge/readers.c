/* Readers of StableHLO operations that are no primitives. */
#include "bridge/readers.h"

#include <string.h>

#include "axle/linalg.h"
#include "axle/numpy.h"
#include "axle/ops.h"
#include "axle/random.h"
#include "base/nearest.h"
#include "bridge/import.h"
#include "bridge/quantized.h"
#include "collectives/ragged.h"
#include "hlo/verify_rules.h"
#include "ir/dtype.h"
#include "ir/number.h"
#include "linalg/lapack_read.h"
#include "prim/bind.h"
#include "prim/scalars.h"

static ax_status takes(const ax_hlo_read_args *args, uint32_t count) {
  if (args->op->operand_count == count) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "it takes %u operands, and here are %u", count, args->op->operand_count);
}

static ax_status gives(const ax_hlo_read_args *args, uint32_t count) {
  if (args->op->result_count == count) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "it has %u results, and here are %u", count, args->op->result_count);
}

/* --- Arithmetic --- */

static ax_status clamp_read(const ax_hlo_read_args *args) {
  AX_TRY(takes(args, 3));
  const ax_type type = ax_typeof(args->in[1]);
  ax_value bounds[] = {args->in[0], args->in[2]};
  for (int k = 0; k < 2; k++)
    if (ax_typeof(bounds[k]).rank == 0)
      bounds[k] = (ax_broadcast_in_dim)(bounds[k], AX_LIST(type.rank, type.dims), AX_LIST(0, NULL));
  if (type.dtype == AX_BOOL)
    args->out[0] = ax_and(ax_or(args->in[1], bounds[0]), bounds[1]);
  else
    args->out[0] = ax_min(ax_max(args->in[1], bounds[0]), bounds[1]); /* NaN where a bound is, unlike ax_clamp */
  return AX_OK;
}

/* The result has further dimensions in front of the operand's. */
static ax_status broadcast_read(const ax_hlo_read_args *args) {
  const ax_type *to = &args->out_types[0];
  int64_t at[AX_MAX_RANK];
  AX_TRY(takes(args, 1));
  const ax_type x = ax_typeof(args->in[0]);
  if (x.rank > to->rank) return ax_error(AX_INVALID_ARGUMENT, "the result has fewer dimensions than the operand");
  for (uint32_t d = 0; d < x.rank; d++) at[d] = to->rank - x.rank + d;
  args->out[0] = (ax_broadcast_in_dim)(args->in[0], AX_LIST(to->rank, to->dims), AX_LIST(x.rank, at));
  return AX_OK;
}

/* The dimensions may stand in any order, where the primitive takes an ascending one. */
static ax_status broadcast_in_dim_read(const ax_hlo_read_args *args) {
  const ax_type *to = &args->out_types[0];
  ax_dims at, order = {0}, sorted = {0};
  AX_TRY(takes(args, 1));
  AX_TRY(ax_hlo_want_shape(args, 0));
  AX_TRY(ax_hlo_integers(args->op, "broadcast_dimensions", &at));
  const ax_type x = ax_typeof(args->in[0]);
  if (at.count != x.rank) return ax_error(AX_INVALID_ARGUMENT, "broadcast_dimensions has %u entries, and the operand rank %u", at.count, x.rank);
  bool ascending = true;
  for (uint32_t d = 1; d < at.count; d++) ascending = ascending && at.v[d - 1] < at.v[d];
  for (int64_t place = 0; place < to->rank; place++)
    for (uint32_t d = 0; d < at.count; d++)
      if (at.v[d] == place) sorted.v[sorted.count++ % AX_MAX_RANK] = place, order.v[order.count++ % AX_MAX_RANK] = d;
  const bool whole = sorted.count == at.count; /* else one is outside, or named twice, which the primitive says */
  const ax_value turned = ascending || !whole ? args->in[0] : (ax_transpose)(args->in[0], AX_LIST(order.count, order.v));
  const ax_dims *dims = ascending || !whole ? &at : &sorted;
  args->out[0] = (ax_broadcast_in_dim)(turned, AX_LIST(to->rank, to->dims), AX_LIST(dims->count, dims->v));
  return AX_OK;
}

static ax_status top_k_read(const ax_hlo_read_args *args) {
  int64_t k;
  AX_TRY(takes(args, 1));
  AX_TRY(ax_hlo_integer(args->op, "k", &k));
  (ax_top_k)(args->in[0], k, args->op->result_count, args->out);
  return AX_OK;
}

static ax_status square_read(const ax_hlo_read_args *args) {
  AX_TRY(takes(args, 1));
  args->out[0] = ax_square(args->in[0]);
  return AX_OK;
}

static ax_status is_inf_read(const ax_hlo_read_args *args) {
  AX_TRY(takes(args, 1));
  const ax_value finite = ax_is_finite(args->in[0]), number = ax_eq(args->in[0], args->in[0]);
  args->out[0] = ax_and(ax_not(finite), number);
  return AX_OK;
}

static ax_status conj_read(const ax_hlo_read_args *args) {
  AX_TRY(takes(args, 1));
  args->out[0] = ax_is_complex(ax_typeof(args->in[0]).dtype) ? ax_conj(args->in[0]) : args->in[0];
  return AX_OK;
}

/* Of integers by squares; below 0 the power is 1 / x^-y without its fraction: of 1 and -1 a number, of others 0. */
static ax_value integer_power(ax_value x, ax_value y, const ax_type *type) {
  const ax_value one = ax_full_like(x, 1), odd = ax_ne(ax_and(y, one), ax_integer(0));
  ax_value power = one, square = x;
  for (uint32_t bit = 0; bit < ax_dtype_get(type->dtype)->bits; bit++) {
    const ax_value digit = ax_and(ax_shift_right_logical(y, ax_integer(bit)), one), times = ax_mul(power, square);
    power = ax_where(ax_ne(digit, ax_integer(0)), times, power);
    square = ax_mul(square, square);
  }
  if (ax_dtype_get(type->dtype)->kind != AX_KIND_SIGNED) return power;
  const ax_value of_minus_one = ax_where(odd, ax_neg(one), one), is_minus_one = ax_eq(x, ax_integer(-1));
  const ax_value below = ax_where(is_minus_one, of_minus_one, ax_where(ax_eq(x, ax_integer(1)), one, ax_full_like(x, 0)));
  return ax_where(ax_lt(y, ax_integer(0)), below, power);
}

static ax_status power_read(const ax_hlo_read_args *args) {
  AX_TRY(takes(args, 2));
  const ax_type type = ax_typeof(args->in[0]);
  const bool integers = ax_dtype_get(type.dtype)->kind == AX_KIND_SIGNED || ax_dtype_get(type.dtype)->kind == AX_KIND_UNSIGNED;
  args->out[0] = integers ? integer_power(args->in[0], args->in[1], &type) : ax_pow(args->in[0], args->in[1]);
  return AX_OK;
}

static ax_status cbrt_read(const ax_hlo_read_args *args) {
  AX_TRY(takes(args, 1));
  const ax_value x = args->in[0];
  if (!ax_is_complex(ax_typeof(x).dtype)) args->out[0] = ax_cbrt(x);
  else args->out[0] = ax_where(ax_eq(x, ax_zero_like(x)), x, ax_exp(ax_div(ax_log(x), ax_real(3))));
  return AX_OK;
}

/* The last dimension of the left operand and the first of the right one. */
static ax_status dot_read(const ax_hlo_read_args *args) {
  AX_TRY(takes(args, 2));
  const ax_type lhs = ax_typeof(args->in[0]), rhs = ax_typeof(args->in[1]);
  const ax_dtype wanted = args->out_types[0].dtype;
  const int64_t last[] = {(int64_t)lhs.rank - 1}, first[] = {0};
  if (lhs.rank == 0 || rhs.rank == 0) return ax_error(AX_INVALID_ARGUMENT, "its operands must have dimensions");
  const ax_value left = ax_convert_element_type(args->in[0], wanted), right = ax_convert_element_type(args->in[1], wanted);
  args->out[0] = (ax_dot_general)(left, right, AX_LIST(1, last), AX_LIST(1, first), AX_LIST(0, NULL), AX_LIST(0, NULL));
  return AX_OK;
}

static ax_status einsum_read(const ax_hlo_read_args *args) {
  const ax_hlo_attribute *config = ax_hlo_find(args->op, "einsum_config");
  char subscripts[128] = {0};
  if (config == NULL || config->text.length >= sizeof subscripts)
    return ax_error(AX_INVALID_ARGUMENT, "einsum_config must be subscripts, as \"ij,jk->ik\"");
  memcpy(subscripts, config->text.start, config->text.length);
  args->out[0] = (ax_einsum)(subscripts, args->op->operand_count, args->in);
  return AX_OK;
}

/* The body on the elements of all operands. */
static ax_status map_read(const ax_hlo_read_args *args) {
  const uint32_t count = args->op->operand_count;
  ax_program *function;
  ax_hlo_body body;
  ax_fn each;
  ax_dtype *dtypes = ax_trace_alloc(count * sizeof dtypes[0]);
  if (dtypes == NULL) return AX_OK;
  for (uint32_t i = 0; i < count; i++) dtypes[i] = ax_typeof(args->in[i]).dtype;
  AX_TRY(ax_hlo_body_of(args, 0, 1, &body, &each));
  if (count == 0 || each.in_count != count) return ax_error(AX_INVALID_ARGUMENT, "the body must take an element of each operand");
  AX_TRY(ax_scalars_trace("map", "body", each, dtypes, &function));
  ax_scalars_call(function, args->in, args->out);
  ax_program_release(function);
  return AX_OK;
}

/* Of the operand `batch_dims` the slices at the indices along `dim`: as gathers that have one index each. */
static ax_status index_select_read(const ax_hlo_read_args *args) {
  int64_t dim, batch_dims;
  AX_TRY(takes(args, 2));
  AX_TRY(ax_hlo_integer(args->op, "dim", &dim));
  AX_TRY(ax_hlo_integer(args->op, "batch_dims", &batch_dims));
  if (batch_dims != 0) return ax_error(AX_ABSENT, "batch_dims other than 0 are not read yet");
  args->out[0] = ax_take(args->in[0], args->in[1], dim);
  return AX_OK;
}

/* --- Batch normalisation, over all dimensions but that of the features --- */

typedef struct normal {
  ax_dims others; /* dimensions */
  int64_t feature[1];
  ax_type type;
  double epsilon, count; /* elements of a feature */
} normal;

static ax_status read_normal(const ax_hlo_read_args *args, normal *out) {
  const ax_hlo_attribute *epsilon = ax_hlo_find(args->op, "epsilon");
  ax_dtype dtype;
  ax_element number;
  *out = (normal){.type = ax_typeof(args->in[0]), .count = 1};
  AX_TRY(ax_hlo_integer(args->op, "feature_index", &out->feature[0]));
  if (epsilon == NULL || !ax_hlo_number(epsilon, &dtype, &number) || dtype != AX_F32)
    return ax_error(AX_INVALID_ARGUMENT, "epsilon must be a number of f32");
  out->epsilon = ax_number_load(dtype, &number, 0).f;
  for (uint32_t d = 0; d < out->type.rank; d++) {
    if ((int64_t)d == out->feature[0]) continue;
    out->others.v[out->others.count++] = d;
    out->count *= (double)out->type.dims[d];
  }
  return AX_OK;
}

static ax_value spread_out(const normal *n, ax_value feature) {
  return (ax_broadcast_in_dim)(feature, AX_LIST(n->type.rank, n->type.dims), AX_LIST(1, n->feature));
}
static ax_value mean_of(const normal *n, ax_value x) {
  return ax_div((ax_reduce_sum)(x, AX_LIST(n->others.count, n->others.v), false), ax_real(n->count));
}
/* 1 / sqrt(variance + epsilon) */
static ax_value scale_of(const normal *n, ax_value variance) { return ax_rsqrt(ax_add(variance, ax_real(n->epsilon))); }

/* operand, scale, offset, mean, variance */
static ax_value normalised(const normal *n, const ax_value *in) {
  const ax_value centred = ax_sub(in[0], spread_out(n, in[3])), unit = ax_mul(centred, spread_out(n, scale_of(n, in[4])));
  const ax_value scaled = ax_mul(unit, spread_out(n, in[1]));
  return ax_add(scaled, spread_out(n, in[2]));
}

static ax_status batch_norm_inference_read(const ax_hlo_read_args *args) {
  normal n;
  AX_TRY(takes(args, 5));
  AX_TRY(read_normal(args, &n));
  args->out[0] = normalised(&n, args->in);
  return AX_OK;
}

static ax_status batch_norm_training_read(const ax_hlo_read_args *args) {
  normal n;
  AX_TRY(takes(args, 3));
  if (args->op->result_count != 3) return ax_error(AX_INVALID_ARGUMENT, "it has 3 results");
  AX_TRY(read_normal(args, &n));
  const ax_value mean = mean_of(&n, args->in[0]), centred = ax_sub(args->in[0], spread_out(&n, mean));
  const ax_value variance = mean_of(&n, ax_square(centred));
  const ax_value in[] = {args->in[0], args->in[1], args->in[2], mean, variance};
  args->out[0] = normalised(&n, in), args->out[1] = mean, args->out[2] = variance;
  return AX_OK;
}

/* operand, scale, mean, variance, gradient of the result: gradients of operand, scale and offset. */
static ax_status batch_norm_grad_read(const ax_hlo_read_args *args) {
  normal n;
  AX_TRY(takes(args, 5));
  if (args->op->result_count != 3) return ax_error(AX_INVALID_ARGUMENT, "it has 3 results");
  AX_TRY(read_normal(args, &n));
  const ax_value unit_by = scale_of(&n, args->in[3]), centred = ax_sub(args->in[0], spread_out(&n, args->in[2]));
  const ax_value unit = ax_mul(centred, spread_out(&n, unit_by)), by = args->in[4];
  const ax_value of_offset = (ax_reduce_sum)(by, AX_LIST(n.others.count, n.others.v), false);
  const ax_value of_scale = (ax_reduce_sum)(ax_mul(by, unit), AX_LIST(n.others.count, n.others.v), false);
  const ax_value along = ax_mul(unit, spread_out(&n, ax_div(of_scale, ax_real(n.count))));
  const ax_value rest = ax_sub(ax_sub(by, spread_out(&n, ax_div(of_offset, ax_real(n.count)))), along);
  args->out[0] = ax_mul(rest, spread_out(&n, ax_mul(args->in[1], unit_by)));
  args->out[1] = of_scale, args->out[2] = of_offset;
  return AX_OK;
}

static const ax_hlo_reader arithmetic[] = {{"stablehlo.clamp", clamp_read},
                                           {"stablehlo.power", power_read},
                                           {"stablehlo.cbrt", cbrt_read},
                                           {"stablehlo.dot", dot_read},
                                           {"stablehlo.einsum", einsum_read},
                                           {"stablehlo.unary_einsum", einsum_read},
                                           {"stablehlo.map", map_read},
                                           {"stablehlo.torch_index_select", index_select_read},
                                           {"stablehlo.batch_norm_inference", batch_norm_inference_read},
                                           {"stablehlo.batch_norm_training", batch_norm_training_read},
                                           {"stablehlo.batch_norm_grad", batch_norm_grad_read},
                                           {"stablehlo.broadcast", broadcast_read},
                                           {"stablehlo.broadcast_in_dim", broadcast_in_dim_read},
                                           {"chlo.square", square_read},
                                           {"chlo.is_inf", is_inf_read},
                                           {"chlo.conj", conj_read},
                                           {"chlo.top_k", top_k_read},
                                           {0}};

/* --- Random numbers --- */

/* The unsigned integers whose bits those of the dtype are. AX_NO_DTYPE: there are none. */
static ax_dtype unsigned_of(ax_dtype dtype) {
  for (uint32_t d = AX_NO_DTYPE + 1; d < AX_DTYPE_COUNT; d++)
    if (ax_dtype_get((ax_dtype)d)->kind == AX_KIND_UNSIGNED && ax_dtype_get((ax_dtype)d)->bits == ax_dtype_get(dtype)->bits) return (ax_dtype)d;
  return AX_NO_DTYPE;
}

/* Signed integers and floats have the bits of unsigned ones. */
static ax_status rng_bits_read(const ax_hlo_read_args *args) {
  const ax_hlo_attribute *algorithm = ax_hlo_find(args->op, "rng_algorithm");
  const ax_type *bits = &args->out_types[1];
  static const char *const names[] = {[AX_RNG_DEFAULT] = "DEFAULT", [AX_RNG_THREE_FRY] = "THREE_FRY", [AX_RNG_PHILOX] = "PHILOX"};
  ax_rng_algorithm which = AX_RNG_DEFAULT;
  AX_TRY(takes(args, 1));
  if (args->op->result_count != 2) return ax_error(AX_INVALID_ARGUMENT, "it has two results");
  while (algorithm != NULL && which < AX_COUNT(names) && !ax_hlo_slice_is(algorithm->text, names[which])) which++;
  if (which == AX_COUNT(names)) return ax_error(AX_INVALID_ARGUMENT, "rng_algorithm must be DEFAULT, THREE_FRY or PHILOX");
  const ax_dtype drawn = unsigned_of(bits->dtype);
  const ax_dtype dtype = drawn != AX_NO_DTYPE ? drawn : bits->dtype;
  (ax_rng_bit_generator)(args->in[0], dtype, AX_LIST(bits->rank, bits->dims), which, args->op->result_count, args->out);
  if (drawn != bits->dtype && !ax_failed()) args->out[1] = ax_bitcast_convert_type(args->out[1], bits->dtype);
  return AX_OK;
}

static const ax_hlo_reader draws[] = {{"stablehlo.rng_bit_generator", rng_bits_read}, {0}};

/* --- Custom calls --- */

/* The operand: what the call says of it is where it lies, or how it is laid out, which is seen to for all operations alike; what a cast
   says is which of its extents are known. */
static ax_status same_read(const ax_hlo_read_args *args) {
  AX_TRY(takes(args, 1));
  args->out[0] = args->in[0];
  return AX_OK;
}

static ax_status erf_read(const ax_hlo_read_args *args) {
  AX_TRY(takes(args, 1));
  args->out[0] = ax_erf(args->in[0]);
  return AX_OK;
}

/* What XLA's own library of matrices calls, as TensorFlow's compiler writes it. */
static ax_status qr_read(const ax_hlo_read_args *args) {
  AX_TRY(takes(args, 1));
  AX_TRY(gives(args, 2));
  (ax_geqrf)(args->in[0], 2, args->out);
  return AX_OK;
}

static ax_status reflectors_read(const ax_hlo_read_args *args) {
  AX_TRY(takes(args, 2));
  args->out[0] = ax_householder_product(args->in[0], args->in[1]);
  return AX_OK;
}

/* Its configuration, "1,1,100,0.000001": whether the lower triangle is read, whether values are sorted, and when to stop. */
static ax_status eigh_read(const ax_hlo_read_args *args) {
  const ax_hlo_attribute *config = ax_hlo_find(args->op, "backend_config");
  AX_TRY(takes(args, 1));
  AX_TRY(gives(args, 2));
  if (config == NULL || config->kind != AX_HLO_STRING || config->text.length < 1 || (config->text.start[0] != '0' && config->text.start[0] != '1'))
    return ax_error(AX_INVALID_ARGUMENT, "backend_config does not say which triangle is read");
  (ax_eigh)(args->in[0], config->text.start[0] == '1', false, 2, args->out);
  return AX_OK;
}

/* jax.experimental.control_dep: what the second operand is computed of comes after the first one. Effects are in order here, and what has
   none may come at any time. */
static ax_status order_read(const ax_hlo_read_args *args) { return takes(args, 2); }

static const ax_hlo_reader targets[] = {{"Sharding", same_read},
                                        {"annotate_device_placement", same_read},
                                        {"LayoutConstraint", same_read},
                                        {"control_dep", order_read},
                                        {"InspectSharding", ax_inspected_read},
                                        {"mhlo.erf", erf_read},
                                        {"Qr", qr_read},
                                        {"ProductOfElementaryHouseholderReflectors", reflectors_read},
                                        {"Eigh", eigh_read},
                                        {AX_RAGGED_TARGET, ax_ragged_read},
                                        {0}};

static ax_status read_target(const ax_hlo_read_args *args, ax_hlo_slice name) {
  const ax_hlo_reader *const lists[] = {targets, ax_hlo_shape_targets};
  bool found;
  AX_TRY(ax_hlo_read_custom(args, name, &found));
  if (found) return AX_OK;
  if (ax_lapack_reads(name)) return ax_lapack_read(args, name);
  if (ax_hlo_is_check(name)) return ax_hlo_read_check(args, name);
  for (size_t i = 0; i < AX_COUNT(lists); i++)
    for (const ax_hlo_reader *target = lists[i]; target->op != NULL; target++)
      if (ax_hlo_slice_is(name, target->op)) return target->read(args);
  return ax_hlo_refuse_target(args, name);
}

static ax_status custom_call_read(const ax_hlo_read_args *args) {
  const ax_hlo_attribute *name = ax_hlo_find(args->op, "call_target_name");
  ax_type *types = ax_trace_alloc((args->op->result_count + 1) * sizeof types[0]);
  ax_hlo_operation op = *args->op;
  ax_hlo_read_args shaped = *args;
  if (name == NULL) return ax_error(AX_INVALID_ARGUMENT, "the attribute call_target_name is missing");
  if (types == NULL) return AX_OK; /* the trace has failed */
  AX_TRY(ax_hlo_take_shapes(args, &op, types));
  shaped.op = &op, shaped.out_types = types;
  return read_target(&shaped, name->text);
}

static const ax_hlo_reader calls[] = {{"stablehlo.custom_call", custom_call_read}, {"tensor.cast", same_read}, {0}};

/* --- The lists --- */

/* --- What none of them reads --- */

static bool is_of(ax_hlo_slice name, const char *dialect) {
  return name.length > strlen(dialect) && memcmp(name.start, dialect, strlen(dialect)) == 0;
}

ax_status ax_hlo_refuse_operation(const ax_hlo_import *import, ax_hlo_slice name) {
  enum { longest = 64 };
  char word[longest + 1] = {0};
  ax_nearest nearest = {0};
  ax_text text = {0};
  uint32_t index;
  const char *dialect = is_of(name, "stablehlo.") ? "stablehlo." : is_of(name, "chlo.") ? "chlo." : NULL;
  if (dialect == NULL || name.length > longest || ax_hlo_find_rule(name, &index) != NULL)
    return ax_error(AX_ABSENT, "this operation is not read yet");
  memcpy(word, name.start, name.length);
  for (uint32_t i = 0; i < import->reader_size; i++) {
    const char *op = import->readers[i].op;
    if (op != NULL && strncmp(op, dialect, strlen(dialect)) == 0) ax_nearest_offer(&nearest, word, op, op);
  }
  ax_nearest_text(&text, &nearest);
  const ax_status status = ax_error(AX_ABSENT, "there is no operation of this name%s", text.data != NULL ? text.data : "");
  ax_text_deinit(&text);
  return status;
}

const ax_hlo_reader *const ax_hlo_reader_lists[] = {
    arithmetic,           draws,               calls,                    ax_hlo_shape_readers,    ax_hlo_quantized_readers,
    ax_hlo_window_readers, ax_hlo_chlo_readers, ax_hlo_host_readers,      ax_hlo_rng_readers,      ax_hlo_bits_readers,
    ax_hlo_sharding_readers, ax_hlo_parallel_readers, ax_hlo_check_readers,    ax_hlo_probe_readers};
const uint32_t ax_hlo_reader_list_count = AX_COUNT(ax_hlo_reader_lists);
