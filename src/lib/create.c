/* Arrays made of numbers alone, triangles and diagonals. */
#include <math.h>

#include "axle/numpy.h"
#include "lib/checked.h"

/* As jnp.linspace: both ends have their weight, so that the last number is `stop` itself. */
ax_value ax_linspace(ax_dtype dtype, ax_value start, ax_value stop, int64_t num, bool endpoint) {
  static const char name[] = "linspace";
  ax_value ends[] = {ax_as(name, start, dtype), ax_as(name, stop, dtype)};
  ax_type types[2];
  if (num < 0) return ax_reject_as(name, "there cannot be %lld numbers", (long long)num);
  if (ax_failed() || !ax_operands(name, 2, ends, types) || !ax_float_operand(name, ends[0])) return ax_poison;
  if (types[0].dtype != dtype)
    return ax_reject_as(name, "the ends are %s, and %s is asked for", ax_operand_string(&types[0]), ax_dtype_name(dtype));
  if (!ax_broadcast_together(ends, 2))
    return ax_reject_as(name, "%s and %s do not broadcast to one shape", ax_operand_string(&types[0]),
                        ax_operand_string(&types[1]));
  ends[0] = ax_expand_dims(ends[0], 0), ends[1] = ax_expand_dims(ends[1], 0);
  if (num == 1) return ends[0];
  const int64_t steps = num > 0 && endpoint ? num - 1 : num;
  ax_type type = ax_typeof(ends[0]);
  if (ax_failed()) return ax_poison;
  type.dims[0] = steps;
  ax_value step = ax_div(ax_iota(dtype, AX_LIST(type.rank, type.dims), 0), ax_real(steps > 0 ? (double)steps : 1));
  ax_value inner = ax_add(ax_mul(ends[0], ax_sub(ax_real(1), step)), ax_mul(ends[1], step));
  return steps < num ? ax_concatenate(AX_LIST(2, ((ax_value[]){inner, ends[1]})), 0) : inner;
}

/* In s64 or f64, and then rounded once: a sum of steps in the dtype itself would not count far. */
ax_value ax_arange(ax_dtype dtype, double start, double stop, double step) {
  static const char name[] = "arange";
  if (!(step != 0) || !isfinite(start) || !isfinite(stop) || !isfinite(step))
    return ax_reject_as(name, "no numbers lead from %g to %g in steps of %g", start, stop, step);
  const double count = ceil((stop - start) / step);
  if (count > 0x1p53) return ax_reject_as(name, "%g numbers are too many", count);
  const bool is_float = ax_is_float(dtype);
  if (!is_float && (start != floor(start) || step != floor(step)))
    return ax_reject_as(name, "%g and %g are no whole numbers, as %s wants", start, step, ax_dtype_name(dtype));
  const int64_t size = count > 0 ? (int64_t)count : 0;
  const ax_value places = ax_iota(is_float ? AX_F64 : AX_S64, AX_LIST(1, &size), 0);
  const ax_value by = is_float ? ax_real(step) : ax_integer((int64_t)step);
  const ax_value from = is_float ? ax_real(start) : ax_integer((int64_t)start);
  return ax_convert_element_type(ax_add(ax_mul(places, by), from), dtype);
}

/* --- Triangles. bool[rows, columns]: where column - row <= k, and where it is k. --- */

static ax_value rows_of(int64_t rows) { return ax_iota(AX_S64, AX_LIST(2, ((int64_t[]){rows, 1})), 0); }
static ax_value columns_of(int64_t columns) { return ax_iota(AX_S64, AX_LIST(2, ((int64_t[]){1, columns})), 1); }
static ax_value triangle(int64_t rows, int64_t columns, int64_t k) {
  return ax_le(columns_of(columns), ax_add(rows_of(rows), ax_integer(k)));
}

static bool is_matrix_size(const char *name, int64_t n, int64_t m, int64_t k) {
  if (n >= 0 && m >= 0 && k > INT32_MIN && k < INT32_MAX) return true;
  ax_reject_as(name, "there is no matrix of %lld times %lld with a diagonal %lld", (long long)n, (long long)m, (long long)k);
  return false;
}

ax_value ax_tri(ax_dtype dtype, int64_t n, int64_t m, int64_t k) {
  return is_matrix_size("tri", n, m, k) ? ax_convert_element_type(triangle(n, m, k), dtype) : ax_poison;
}

ax_value ax_eye(ax_dtype dtype, int64_t n, int64_t m, int64_t k) {
  if (!is_matrix_size("eye", n, m, k)) return ax_poison;
  return ax_convert_element_type(ax_eq(columns_of(m), ax_add(rows_of(n), ax_integer(k))), dtype);
}

/* The type of an operand of two dimensions at least. */
static bool matrices(const char *name, ax_value x, int64_t k, ax_type *type) {
  if (!ax_operand(name, x, type)) return false;
  if (type->rank < 2) {
    ax_reject_as(name, "the operand is %s; it needs two dimensions", ax_operand_string(type));
    return false;
  }
  return is_matrix_size(name, 0, 0, k);
}

ax_value ax_tril(ax_value x, int64_t k) {
  ax_type t;
  if (!matrices("tril", x, k, &t)) return ax_poison;
  return ax_where(triangle(t.dims[t.rank - 2], t.dims[t.rank - 1], k), x, ax_integer(0));
}

ax_value ax_triu(ax_value x, int64_t k) {
  ax_type t;
  if (!matrices("triu", x, k, &t)) return ax_poison;
  return ax_where(triangle(t.dims[t.rank - 2], t.dims[t.rank - 1], k - 1), ax_integer(0), x);
}

/* --- Diagonals --- */

/* Of n rows of m numbers in a row, the diagonal is every (m + 1)-th: a slice of the matrix as one row. */
ax_value ax_diagonal(ax_value x, int64_t offset, int64_t axis1, int64_t axis2) {
  static const char name[] = "diagonal";
  ax_type t;
  if (!matrices(name, x, offset, &t) || !ax_dimension(name, "the first axis", &axis1, t.rank) ||
      !ax_dimension(name, "the second axis", &axis2, t.rank))
    return ax_poison;
  if (axis1 == axis2) return ax_reject_as(name, "dimension %lld is named twice", (long long)axis1);
  x = ax_moveaxis(x, axis1, -1);
  x = ax_moveaxis(x, axis2 > axis1 ? axis2 - 1 : axis2, -1);
  const int64_t n = t.dims[axis1], m = t.dims[axis2];
  t = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  const int64_t rows = offset < 0 ? n + offset : n, columns = offset > 0 ? m - offset : m, least = rows < columns ? rows : columns;
  const int64_t count = least > 0 ? least : 0, first = count == 0 ? 0 : offset >= 0 ? offset : -offset * m;
  t.rank -= 1, t.dims[t.rank - 1] = n * m;
  x = ax_reshape(x, AX_LIST(t.rank, t.dims));
  return ax_slice_in_dim(x, first, count == 0 ? first : first + (count - 1) * (m + 1) + 1, m + 1, -1);
}

ax_value ax_matrix_trace(ax_value x, int64_t offset, int64_t axis1, int64_t axis2) {
  return ax_reduce_sum(ax_diagonal(x, offset, axis1, axis2), AX_LIST(1, ((int64_t[]){-1})), false);
}

ax_value ax_diag(ax_value x, int64_t k) {
  static const char name[] = "diag";
  ax_type t;
  if (!ax_operand(name, x, &t)) return ax_poison;
  if (t.rank == 2) return ax_diagonal(x, k, 0, 1);
  if (t.rank != 1) return ax_reject_as(name, "the operand is %s; it must be a vector or a matrix", ax_operand_string(&t));
  if (!is_matrix_size(name, 0, 0, k)) return ax_poison;
  const int64_t size = t.dims[0] + (k < 0 ? -k : k), low = k > 0 ? k : 0, high = k < 0 ? -k : 0, none = 0;
  x = ax_pad(x, ax_full(t.dtype, AX_DIMS(), 0), AX_LIST(1, &low), AX_LIST(1, &high), AX_LIST(1, &none));
  return ax_where(ax_eq(columns_of(size), ax_add(rows_of(size), ax_integer(k))), x, ax_integer(0));
}

void (ax_meshgrid)(uint32_t count, const ax_value *xs, bool ij, uint32_t out_count, ax_value *out) {
  static const char name[] = "meshgrid";
  ax_type types[AX_MAX_RANK];
  int64_t dims[AX_MAX_RANK], at[AX_MAX_RANK];
  if (!ax_lists_fit(name, count, count, out_count, count, out)) return;
  xs = ax_take_operands(xs, count, out, count);
  if (count > AX_MAX_RANK) ax_reject_as(name, "the rank would exceed %d", AX_MAX_RANK);
  if (ax_failed() || !ax_operands(name, count, xs, types)) return;
  for (uint32_t i = 0; i < count; i++) {
    at[i] = !ij && count > 1 && i < 2 ? 1 - i : i;
    if (types[i].rank > 1) {
      ax_reject_as(name, "operand %u is %s; it must be a vector", i, ax_operand_string(&types[i]));
      return;
    }
    dims[at[i]] = types[i].rank == 1 ? types[i].dims[0] : 1;
  }
  for (uint32_t i = 0; i < count; i++)
    out[i] = ax_broadcast_in_dim(ax_reshape(xs[i], AX_LIST(1, &dims[at[i]])), AX_LIST(count, dims), AX_LIST(1, &at[i]));
}
