/* What operations on matrices share: their routines, checks, triangles. */
#include "linalg/matrices.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "axle/linalg.h"
#include "axle/ops.h"
#include "axle/transform.h"
#include "hlo/hlo.h"
#include "ops/sort.h"
#include "plan/plan.h"

/* A large number in f32 may have been rounded down. */
int ax_lapack_asked(ax_dtype dtype, const ax_lapack_size *work) {
  const double asked = ax_number_load(dtype, work, 0).f;
  return (int)ceil(ax_part_dtype(dtype) == AX_F32 ? asked * (1 + 0x1p-23) : asked);
}

int ax_leading(int64_t rows) { return rows > 0 ? (int)rows : 1; }

void *ax_work_behind(const ax_matrix_call *call, void *work, int64_t elems) {
  return (char *)work + (size_t)elems * ax_dtype_bytes(call->dtype);
}

void *ax_parts_behind(const ax_matrix_call *call, void *work, int64_t parts) {
  return (char *)work + (size_t)parts * ax_dtype_bytes(ax_part_dtype(call->dtype));
}

void ax_matrix_nan(ax_dtype dtype, void *to, int64_t elems) {
  for (int64_t i = 0; i < elems; i++) ax_number_store(dtype, to, i, (ax_number){.f = NAN, .imag = NAN});
}

static int64_t parts_of_each(ax_dtype dtype) { return ax_is_complex(dtype) ? 2 : 1; }

/* Without branches: what is not finite times 0 is NaN, and stays. */
static bool all_f32(const float *x, int64_t count) {
  float sum = 0;
  for (int64_t i = 0; i < count; i++) sum += x[i] * 0;
  return sum == 0;
}

static bool all_f64(const double *x, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; i++) sum += x[i] * 0;
  return sum == 0;
}

bool ax_matrix_finite(const ax_matrix_call *call, const void *x, int64_t elems) {
  const int64_t count = elems * parts_of_each(call->dtype);
  return ax_part_dtype(call->dtype) == AX_F32 ? all_f32(x, count) : all_f64(x, count);
}

void ax_matrix_conjugate(ax_dtype dtype, void *x, int64_t elems) {
  const ax_dtype part = ax_part_dtype(dtype);
  for (int64_t i = 1; ax_is_complex(dtype) && i < 2 * elems; i += 2)
    ax_number_store(part, x, i, (ax_number){.f = -ax_number_load(part, x, i).f});
}

double ax_matrix_rate(ax_dtype dtype, double of_f32) {
  return of_f32 / (ax_part_dtype(dtype) == AX_F32 ? 1 : 2) / (ax_is_complex(dtype) ? 4 : 1);
}

void ax_matrix_unit(const ax_matrix_call *call, void *to, int64_t m, int64_t n) {
  memset(to, 0, (size_t)(m * n) * ax_dtype_bytes(call->dtype));
  for (int64_t i = 0; i < m && i < n; i++) ax_number_store(call->dtype, to, i * n + i, (ax_number){.f = 1});
}

/* --- infer --- */

ax_status ax_infer_matrix(const ax_infer_args *args, uint32_t i, uint32_t least) {
  const ax_type *x = &args->in[i];
  const ax_dtype part = ax_part_dtype(x->dtype);
  if (part != AX_F32 && part != AX_F64)
    return ax_error(AX_INVALID_ARGUMENT, "operand %u is of %s; it must be of f32, f64 or complex numbers", i,
                    ax_dtype_name(x->dtype));
  if (x->dtype != args->in[0].dtype) return ax_error(AX_INVALID_ARGUMENT, "the operands need one dtype");
  if (x->rank < least)
    return ax_error(AX_INVALID_ARGUMENT, "operand %u is no %s: it needs at least %u dimension%s", i,
                    least > 1 ? "matrix" : "vector", least, least > 1 ? "s" : "");
  for (uint32_t d = x->rank - least; d < x->rank; d++)
    if (x->dims[d] > INT_MAX)
      return ax_error(AX_INVALID_ARGUMENT, "%lld rows or columns are more than s32 counts", (long long)x->dims[d]);
  return AX_OK;
}

ax_status ax_infer_matrices(const ax_infer_args *args, uint32_t least) {
  for (uint32_t i = 0; i < args->in_count; i++) AX_TRY(ax_infer_matrix(args, i, least));
  return AX_OK;
}

ax_status ax_infer_square(const ax_type *x) {
  const int64_t *last = x->dims + x->rank - 2;
  if (last[0] == last[1]) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "the matrices are %lld by %lld; they must be square", (long long)last[0],
                  (long long)last[1]);
}

static ax_type with_dtype(const ax_type *x, ax_dtype dtype, uint32_t drop) {
  return ax_array_type(dtype, AX_LIST(x->rank - drop, x->dims));
}

ax_type ax_matrix_parts_type(const ax_type *x, uint32_t drop) { return with_dtype(x, ax_part_dtype(x->dtype), drop); }

ax_type ax_matrix_complex_type(const ax_type *x, uint32_t drop) {
  return with_dtype(x, ax_is_complex(x->dtype) ? x->dtype : ax_complex_dtype(x->dtype), drop);
}

/* --- Derivatives --- */

/* bool[m, n]: whether row + k >= column. */
static ax_value below(int64_t m, int64_t n, int64_t k) {
  const int64_t dims[] = {m, n};
  const ax_value row = ax_iota(AX_S32, AX_LIST(2, dims), 0), column = ax_iota(AX_S32, AX_LIST(2, dims), 1);
  return ax_ge(ax_add(row, ax_integer(k)), column);
}

ax_value ax_matrix_lower(ax_value x, int64_t k) {
  const ax_type type = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  return ax_where(below(type.dims[type.rank - 2], type.dims[type.rank - 1], k), x, ax_integer(0));
}

ax_value ax_matrix_upper(ax_value x, int64_t k) {
  const ax_type type = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  return ax_where(below(type.dims[type.rank - 2], type.dims[type.rank - 1], k - 1), ax_integer(0), x);
}

ax_value ax_matrix_adjoint(ax_value x) { return ax_conjugated(ax_matrix_transpose(x)); }

ax_value ax_matrix_as(ax_value x, ax_value like) {
  const ax_type type = ax_typeof(like);
  return ax_failed() ? ax_poison : ax_convert_element_type(x, type.dtype);
}

ax_value ax_matrix_reals(ax_value x) {
  const ax_type type = ax_typeof(x);
  return !ax_failed() && ax_is_complex(type.dtype) ? ax_real_part(x) : x;
}

ax_value ax_matrix_real(ax_value x) { return ax_matrix_as(ax_matrix_reals(x), x); }

ax_value ax_matrix_imaginary(ax_value x) {
  const ax_type type = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  return ax_is_complex(type.dtype) ? ax_sub(x, ax_matrix_real(x)) : ax_full_like(x, 0);
}

ax_value ax_matrix_of_triangle(ax_value x, bool lower) {
  const ax_value apart = lower ? ax_matrix_lower(x, -1) : ax_matrix_upper(x, 1), other = ax_matrix_adjoint(apart);
  const ax_type type = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  if (!ax_is_complex(type.dtype)) return ax_add(lower ? ax_matrix_lower(x, 0) : ax_matrix_upper(x, 0), other);
  const ax_value diagonal = ax_mul(ax_matrix_real(x), ax_matrix_diagonal(x, type.dims[type.rank - 1], 1, 0));
  return ax_add(ax_add(apart, diagonal), other);
}

ax_value ax_matrix_solve(ax_value a, ax_value b, bool transposed) {
  ax_value factors[3];
  ax_lu(ax_stop_gradient(a), AX_LIST(3, factors));
  return ax_linear_solve(a, factors[0], factors[1], b, transposed);
}

ax_value ax_matrix_diagonal(ax_value x, int64_t n, double diagonal, double other) {
  const ax_type type = ax_typeof(x);
  const int64_t dims[] = {n, n};
  if (ax_failed()) return ax_poison;
  const ax_value row = ax_iota(AX_S32, AX_LIST(2, dims), 0), column = ax_iota(AX_S32, AX_LIST(2, dims), 1);
  return ax_where(ax_eq(row, column), ax_full(type.dtype, AX_LIST(2, dims), diagonal),
                  ax_full(type.dtype, AX_LIST(2, dims), other));
}

bool ax_matrix_symmetrized(const char *function, ax_value *x) {
  if (!ax_check_operands(function, x, 1)) return false;
  const ax_type type = ax_typeof(*x);
  const bool square = type.form == AX_ARRAY && type.rank >= 2 && type.dims[type.rank - 1] == type.dims[type.rank - 2];
  if (square && ax_rounds(type.dtype)) *x = ax_mul(ax_add(*x, ax_matrix_adjoint(*x)), ax_real(0.5));
  return true;
}

ax_value ax_matrix_eye(ax_value x, int64_t m, int64_t n) {
  const ax_type type = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  const ax_value place = ax_eq(ax_iota(AX_S32, AX_DIMS(m, n), 0), ax_iota(AX_S32, AX_DIMS(m, n), 1));
  return ax_convert_element_type(place, type.dtype);
}

ax_value ax_vector_to_diagonal(ax_value x) {
  const ax_type type = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  const int64_t n = type.dims[type.rank - 1];
  return ax_mul(ax_expand_dims(x, -1), ax_matrix_eye(x, n, n));
}

ax_value ax_diagonal_to_vector(ax_value x) {
  const ax_type type = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  const int64_t n = type.dims[type.rank - 1];
  const ax_value place = ax_eq(ax_iota(AX_S32, AX_DIMS(n, n), 0), ax_iota(AX_S32, AX_DIMS(n, n), 1));
  return ax_reduce_sum(ax_where(place, x, ax_integer(0)), AX_DIMS(-1), false);
}

ax_value ax_matrix_part(ax_value x, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  return ax_slice_in_dim(ax_slice_in_dim(x, row, row + rows, 1, -2), column, column + columns, 1, -1);
}

ax_value ax_matrix_padded(ax_value x, int64_t rows, int64_t columns) {
  const ax_type type = ax_typeof(x);
  int64_t none[AX_MAX_RANK] = {0}, high[AX_MAX_RANK] = {0};
  if (ax_failed()) return ax_poison;
  high[type.rank - 2] = rows - type.dims[type.rank - 2], high[type.rank - 1] = columns - type.dims[type.rank - 1];
  if (high[type.rank - 2] == 0 && high[type.rank - 1] == 0) return x;
  return ax_pad(x, ax_integer(0), AX_LIST(type.rank, none), AX_LIST(type.rank, high), AX_LIST(type.rank, none));
}

ax_value ax_matrix_within(ax_value x, int64_t row, int64_t column, int64_t n) {
  const ax_type type = ax_typeof(x);
  int64_t none[AX_MAX_RANK] = {0}, low[AX_MAX_RANK] = {0}, high[AX_MAX_RANK] = {0};
  if (ax_failed()) return ax_poison;
  const uint32_t last = type.rank - 1;
  low[last - 1] = row, high[last - 1] = n - row - type.dims[last - 1];
  low[last] = column, high[last] = n - column - type.dims[last];
  return ax_pad(x, ax_integer(0), AX_LIST(type.rank, low), AX_LIST(type.rank, high), AX_LIST(type.rank, none));
}

ax_value ax_matrix_beside(ax_value left, ax_value right) {
  const ax_type type = ax_typeof(left);
  return ax_failed() ? ax_poison : ax_concatenate(AX_VALUES(left, right), type.rank - 1);
}

ax_value ax_matrix_above(ax_value upper, ax_value lower) {
  const ax_type type = ax_typeof(upper);
  return ax_failed() ? ax_poison : ax_concatenate(AX_VALUES(upper, lower), type.rank - 2);
}

ax_value ax_matrix_columns(ax_value x, ax_value places) {
  const ax_type type = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  const ax_value everywhere = ax_broadcast_to(ax_expand_dims(places, -2), AX_LIST(type.rank, type.dims));
  return ax_taken_in_order(x, everywhere, type.rank - 1);
}

/* --- batch, shard, hlo --- */

void ax_batch_matrices(const ax_batch_args *args) {
  ax_value in[AX_MATRIX_OPERANDS];
  for (uint32_t i = 0; i < args->eqn->in_count; i++) in[i] = ax_batch_front(args->in[i], args->in_dim[i], args->size);
  ax_bind(args->eqn->prim, args->eqn->params, in, args->eqn->in_count, args->out, args->eqn->out_count);
}

static void more_columns(const ax_batch_args *args) {
  ax_type type = ax_typeof(args->in[3]);
  if (ax_failed()) return;
  const int at = (int)type.rank - 1;
  const ax_value b = ax_move_dim(args->in[3], args->in_dim[3], at);
  type = ax_typeof(b);
  if (ax_failed()) return;
  ax_dims joined = {.count = type.rank - 1};
  memcpy(joined.v, type.dims, (type.rank - 2) * sizeof joined.v[0]);
  joined.v[type.rank - 2] = type.dims[type.rank - 2] * type.dims[type.rank - 1];
  const ax_value in[] = {args->in[0], args->in[1], args->in[2], ax_reshape(b, AX_LIST(joined.count, joined.v))};
  args->out[0] = ax_reshape(ax_bind1(args->eqn->prim, args->eqn->params, in, 4), AX_LIST(type.rank, type.dims));
  args->out_dim[0] = at;
}

void ax_batch_systems(const ax_batch_args *args) {
  if (args->in_dim[0] < 0 && args->in_dim[1] < 0 && args->in_dim[2] < 0) more_columns(args);
  else ax_batch_matrices(args);
}

void ax_shard_batches(const ax_shard_args *args) {
  const ax_eqn *eqn = args->eqn;
  const ax_type *x = &args->types[eqn->in[0]];
  for (uint32_t d = 0; d + 2 < x->rank; d++) {
    const uint32_t factor = ax_factor(args, x->dims[d], AX_FACTOR_ALONG);
    for (uint32_t i = 0; i < eqn->in_count; i++) ax_factor_of(&args->in[i], d, factor);
    for (uint32_t k = 0; k < eqn->out_count; k++) ax_factor_of(&args->out[k], d, factor);
  }
}

uint32_t ax_hlo_matrix_compare(ax_hlo *hlo, const ax_type *type, const char *direction, int64_t k) {
  ax_type numbers = *type;
  const int32_t shift = (int32_t)k;
  numbers.dtype = AX_S32;
  uint32_t row = ax_hlo_iota(hlo, &numbers, type->rank - 2), column = ax_hlo_iota(hlo, &numbers, type->rank - 1);
  if (k != 0) row = ax_hlo_op(hlo, "stablehlo.add", (uint32_t[]){row, ax_hlo_splat(hlo, &numbers, &shift)}, 2, NULL, &numbers, 1);
  return ax_hlo_compare(hlo, direction, NULL, row, column, &numbers);
}

uint32_t ax_hlo_matrix_lower(ax_hlo *hlo, uint32_t x, const ax_type *type, int64_t k) {
  const uint32_t which = ax_hlo_matrix_compare(hlo, type, "GE", k);
  const uint32_t chosen[] = {which, x, ax_hlo_zeros(hlo, type)};
  return ax_hlo_op(hlo, "stablehlo.select", chosen, 3, NULL, type, 1);
}

/* Adds the layouts of arrays; of matrices, which have this rank, column by column. */
static void add_layouts(ax_hlo_attributes *to, const char *name, const ax_type *types, uint32_t count, uint32_t rank) {
  enum { most = 8 };
  ax_dims layouts[most];
  assert(count <= most);
  for (uint32_t k = 0; k < count; k++) {
    layouts[k].count = types[k].rank;
    for (uint32_t i = 0; i < types[k].rank; i++) layouts[k].v[i] = types[k].rank - 1 - (types[k].rank == rank && i < 2 ? 1 - i : i);
  }
  ax_hlo_add_layouts(to, name, layouts, count);
}

uint32_t ax_hlo_zeros(ax_hlo *hlo, const ax_type *type) {
  const ax_element zero = {0};
  return ax_hlo_splat(hlo, type, &zero);
}

uint32_t ax_hlo_or_nan(ax_hlo *hlo, uint32_t info, uint32_t x, const ax_type *type, uint32_t batch_rank) {
  const ax_type numbers = ax_array_type(AX_S32, AX_LIST(batch_rank, type->dims)),
                everywhere = ax_array_type(AX_BOOL, AX_LIST(type->rank, type->dims));
  const float nan_f32[] = {NAN, NAN};
  const double nan_f64[] = {NAN, NAN};
  ax_dims places = {.count = batch_rank};
  for (uint32_t d = 0; d < batch_rank; d++) places.v[d] = d;
  const uint32_t ok = ax_hlo_compare(hlo, "EQ", NULL, info, ax_hlo_zeros(hlo, &numbers), &numbers);
  const uint32_t which = ax_hlo_broadcast(hlo, ok, &places, &everywhere);
  const uint32_t nans = ax_hlo_splat(hlo, type, ax_part_dtype(type->dtype) == AX_F32 ? (const void *)nan_f32 : nan_f64);
  return ax_hlo_op(hlo, "stablehlo.select", (uint32_t[]){which, x, nans}, 3, NULL, type, 1);
}

static uint32_t most_dims(const ax_type *types, uint32_t count, uint32_t rank) {
  for (uint32_t i = 0; i < count; i++)
    if (types[i].rank > rank) rank = types[i].rank;
  return rank;
}

static char letter_of(ax_dtype dtype) { return dtype == AX_F32 ? 's' : dtype == AX_F64 ? 'd' : dtype == AX_C64 ? 'c' : 'z'; }

/* The beginning of a routine's name by which those of real and of complex numbers differ. */
static const char *family_of(ax_dtype dtype, const char *routine) {
  if (!ax_is_complex(dtype)) return "";
  return strncmp(routine, "or", 2) == 0 ? "un" : strncmp(routine, "sy", 2) == 0 ? "he" : "";
}

uint32_t ax_hlo_lapack(ax_hlo *hlo, const char *routine, const ax_hlo_attributes *config, const uint32_t *in, const ax_type *in_types,
                       uint32_t in_count, const ax_type *out_types, uint32_t out_count) {
  const uint32_t rank = most_dims(out_types, out_count, most_dims(in_types, in_count, 0));
  const ax_dtype dtype = in_types[0].dtype;
  const char *family = family_of(dtype, routine);
  const ax_hlo_attributes none = {.hlo = hlo};
  ax_hlo_attributes attributes = {.hlo = hlo};
  char target[32];
  snprintf(target, sizeof target, "lapack_%c%s%s_ffi", letter_of(dtype), family, routine + strlen(family));
  ax_hlo_add_short(&attributes, "api_version", 4, "i32");
  ax_hlo_add_group(&attributes, "backend_config", "", config != NULL ? config : &none);
  ax_hlo_add_string(&attributes, "call_target_name", target);
  add_layouts(&attributes, "operand_layouts", in_types, in_count, rank);
  add_layouts(&attributes, "result_layouts", out_types, out_count, rank);
  return ax_hlo_op(hlo, "stablehlo.custom_call", in, in_count, &attributes, out_types, out_count);
}
