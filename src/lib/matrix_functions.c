/* Norms, powers, exponentials and products of matrices: axle/linalg.h. */
#include <math.h>
#include <string.h>

#include "axle/linalg.h"
#include "axle/numpy.h"
#include "lib/checked.h"
#include "lib/linear.h"
#include "linalg/matrices.h"

/* --- Norms --- */

static ax_value sum(ax_value x, uint32_t count, const int64_t *axes, bool keepdims) {
  return ax_reduce_sum(x, AX_LIST(count, axes), keepdims);
}

static bool norm_operand(const char *name, ax_value x, ax_type *type) {
  return ax_operand(name, x, type) && ax_inexact_operand(name, x);
}

ax_value(ax_norm)(ax_value x, uint32_t count, const int64_t *axes, bool keepdims) {
  ax_type type;
  if (!norm_operand("norm", x, &type)) return ax_poison;
  const ax_value squares = ax_mul(x, ax_conjugated(x));
  return ax_sqrt(sum(ax_matrix_reals(squares), count, axes, keepdims));
}

/* A largest size: of no sizes at all it is 0. */
static ax_value at_least_0(const ax_type *x, ax_value y) {
  return !ax_failed() && ax_type_elems(x) == 0 ? ax_max(y, ax_real(0)) : y;
}

ax_value(ax_vector_norm)(ax_value x, double ord, uint32_t count, const int64_t *axes, bool keepdims) {
  ax_type type;
  if (!norm_operand("vector_norm", x, &type)) return ax_poison;
  if (ord == 2) return ax_norm(x, AX_LIST(count, axes), keepdims);
  const ax_value size = ax_abs(x);
  if (isinf(ord)) {
    const ax_value y = (ord > 0 ? ax_reduce_max : ax_reduce_min)(size, AX_LIST(count, axes), keepdims);
    return ord > 0 ? at_least_0(&type, y) : y;
  }
  if (ord == 0) return sum(ax_convert_element_type(ax_ne(x, ax_integer(0)), ax_part_dtype(type.dtype)), count, axes, keepdims);
  if (ord == 1) return sum(size, count, axes, keepdims);
  return ax_pow(sum(ax_pow(size, ax_real(ord)), count, axes, keepdims), ax_real(1 / ord));
}

/* The largest or smallest sum of sizes along a dimension, -1 or -2. */
static ax_value extreme_sum(ax_value x, int64_t along, bool largest, bool keepdims) {
  const int64_t other = -3 - along;
  const ax_type type = ax_typeof(x);
  const ax_value sums = sum(ax_abs(x), 1, &along, true);
  ax_value y = (largest ? ax_reduce_max : ax_reduce_min)(sums, AX_LIST(1, &other), true);
  if (largest) y = at_least_0(&type, y);
  return keepdims ? y : ax_squeeze(y, AX_DIMS(-2, -1));
}

static ax_value by_singular_values(ax_value x, const char *ord, bool keepdims) {
  const ax_type type = ax_typeof(x);
  ax_value s;
  ax_svd(x, false, false, AX_LIST(1, &s));
  const ax_value y = strcmp(ord, "nuc") == 0 ? ax_reduce_sum(s, AX_DIMS(-1), false)
                     : strcmp(ord, "2") == 0 ? at_least_0(&type, ax_reduce_max(s, AX_DIMS(-1), false))
                                             : ax_reduce_min(s, AX_DIMS(-1), false);
  return keepdims ? ax_expand_dims(ax_expand_dims(y, -1), -1) : y;
}

ax_value ax_matrix_norm(ax_value x, const char *ord, bool keepdims) {
  static const char name[] = "matrix_norm", *const by_values[] = {"nuc", "2", "-2"}, *const by_sums[] = {"1", "-1", "inf", "-inf"};
  ax_type type;
  if (ord == NULL) ord = "fro";
  if (!norm_operand(name, x, &type)) return ax_poison;
  if (type.rank < 2) return ax_reject_as(name, "%s is no matrix", ax_operand_string(&type));
  if (strcmp(ord, "fro") == 0) return ax_norm(x, AX_DIMS(-2, -1), keepdims);
  for (size_t i = 0; i < AX_COUNT(by_values); i++)
    if (strcmp(ord, by_values[i]) == 0)
      return ax_matrix_operand(name, x, false, &type) ? by_singular_values(x, ord, keepdims) : ax_poison;
  for (size_t i = 0; i < AX_COUNT(by_sums); i++)
    if (strcmp(ord, by_sums[i]) == 0) return extreme_sum(x, i < 2 ? -2 : -1, ord[0] != '-', keepdims);
  return ax_reject_as(name, "the order is \"%s\"; it must be \"fro\", \"nuc\", \"1\", \"2\", \"inf\", \"-1\", \"-2\" or \"-inf\"", ord);
}

/* --- Condition numbers --- */

static ax_value by_extreme_values(ax_value x, bool largest_first) {
  const ax_value s = ax_svdvals(x), largest = ax_at(s, 0, -1), smallest = ax_at(s, -1, -1);
  return largest_first ? ax_div(largest, smallest) : ax_div(smallest, largest);
}

ax_value ax_cond(ax_value x, const char *ord) {
  static const char name[] = "cond";
  ax_type type;
  if (ord == NULL) ord = "2";
  const bool by_2 = strcmp(ord, "2") == 0, by_least = strcmp(ord, "-2") == 0;
  if (!ax_matrix_operand(name, x, !by_2 && !by_least, &type)) return ax_poison;
  if (type.dims[type.rank - 1] == 0 || type.dims[type.rank - 2] == 0)
    return ax_reject_as(name, "the matrices of %s have no elements", ax_operand_string(&type));
  if (by_2) return by_extreme_values(x, true);
  const ax_value y = by_least ? by_extreme_values(x, false)
                              : ax_mul(ax_matrix_norm(x, ord, false), ax_matrix_norm(ax_inv(x), ord, false));
  const ax_value given = ax_reduce_or(ax_ne(x, x), AX_DIMS(-2, -1), false); /* a NaN of x stays one */
  return ax_where(ax_and(ax_ne(y, y), ax_not(given)), ax_real(INFINITY), y);
}

/* --- Powers --- */

static ax_value power(ax_value x, uint64_t n) {
  ax_value y = ax_poison, square = x;
  for (bool any = false; n > 0; n >>= 1) {
    if (n & 1) y = any ? ax_matmul(y, square) : square, any = true;
    if (n > 1) square = ax_matmul(square, square);
  }
  return y;
}

ax_value ax_matrix_power(ax_value a, int64_t n) {
  static const char name[] = "matrix_power";
  ax_type type;
  if (!ax_operand(name, a, &type)) return ax_poison;
  if (type.rank < 2 || type.dims[type.rank - 1] != type.dims[type.rank - 2])
    return ax_reject_as(name, "%s holds no square matrices", ax_operand_string(&type));
  const int64_t order = type.dims[type.rank - 1];
  if (n < 0 && !ax_matrix_operand(name, a, true, &type)) return ax_poison;
  if (n == 0) return ax_broadcast_to(ax_matrix_eye(a, order, order), AX_LIST(type.rank, type.dims));
  return n < 0 ? power(ax_inv(a), -(uint64_t)n) : power(a, (uint64_t)n);
}

/* --- Exponentials: Pade's approximant of a / 2^k, squared k times --- */

enum { most_squarings = 17 }; /* which may be one more than JAX makes, of matrices half as large */

typedef struct pade { /* p(a) = v + u, q(a) = v - u; the numbers of u, times a, and of v, from the constant on, by powers of a^2 */
  int terms;
  double largest; /* norm for which the approximant has the dtype's accuracy */
  double u[7], v[7];
} pade;

static const pade pade_7 = {4, 3.925724783138660, {8648640, 277200, 1512, 1}, {17297280, 1995840, 25200, 56}};
static const pade pade_13 = {7,
                             5.371920351148152,
                             {32382376266240000, 1187353796428800, 10559470521600, 33522128640, 40840800, 16380, 1},
                             {64764752532480000, 7771770303897600, 129060195264000, 670442572800, 1323241920, 960960, 182}};

/* The sum of numbers times powers[0 ..], of which the first is 1. */
static ax_value polynomial(const double *numbers, const ax_value *powers, int terms) {
  ax_value y = ax_mul(powers[0], ax_real(numbers[0]));
  for (int i = 1; i < terms; i++) y = ax_add(y, ax_mul(powers[i], ax_real(numbers[i])));
  return y;
}

/* The numbers of a^6 and more are taken with it, so that six products do for degree 13. */
static ax_value high_degree(const double *numbers, const ax_value *powers) {
  const ax_value outer = ax_add(ax_add(ax_mul(powers[3], ax_real(numbers[6])), ax_mul(powers[2], ax_real(numbers[5]))),
                                ax_mul(powers[1], ax_real(numbers[4])));
  return ax_add(ax_matmul(powers[3], outer), polynomial(numbers, powers, 4));
}

static ax_value approximant(const pade *p, ax_value a, ax_value eye) {
  ax_value powers[4] = {eye, ax_matmul(a, a)};
  for (int i = 2; i < 4; i++) powers[i] = ax_matmul(powers[i - 1], powers[1]);
  const bool high = p->terms > 4;
  const ax_value u = ax_matmul(a, high ? high_degree(p->u, powers) : polynomial(p->u, powers, 4));
  const ax_value v = high ? high_degree(p->v, powers) : polynomial(p->v, powers, 4);
  return ax_solve(ax_sub(v, u), ax_add(v, u));
}

static AX_BODY(squared) { /* x, count, i -> x^2 where i < count */
  (void)context;
  out[0] = ax_where(ax_lt(in[2], in[1]), ax_matmul(in[0], in[0]), in[0]);
}
static AX_BODY(left_alone) {
  (void)context;
  out[0] = in[0];
}
static AX_BODY(squaring_step) { /* i, x, count -> x, count */
  const ax_value i = ax_convert_element_type(in[0], ax_typeof(in[2]).dtype);
  (void)context;
  ax_if(ax_reduce_or(ax_lt(i, in[2]), AX_ALL_DIMS, false), AX_FN(squared, 3, 1), AX_FN(left_alone, 3, 1),
        AX_VALUES(in[1], in[2], i), AX_LIST(1, out));
  out[1] = in[2];
}

ax_value ax_expm(ax_value a) {
  ax_type type;
  if (!ax_matrix_operand("expm", a, true, &type)) return ax_poison;
  if (ax_type_elems(&type) == 0) return a;
  const pade *p = ax_part_dtype(type.dtype) == AX_F32 ? &pade_7 : &pade_13;
  const int64_t n = type.dims[type.rank - 1];
  const ax_value size = extreme_sum(ax_stop_gradient(a), -2, true, true);
  const ax_value needed = ax_ceil(ax_div(ax_log(ax_div(size, ax_real(p->largest))), ax_real(log(2))));
  const ax_value count = ax_max(needed, ax_real(0));
  const ax_value scaled = ax_mul(a, ax_matrix_as(ax_exp2(ax_neg(count)), a));
  const ax_value eye = ax_broadcast_to(ax_matrix_eye(a, n, n), AX_LIST(type.rank, type.dims));
  ax_value x[] = {approximant(p, scaled, eye), count};
  ax_fori_loop(ax_integer(0), ax_integer(most_squarings), AX_FN(squaring_step, 3, 2), AX_LIST(2, x), AX_LIST(2, x));
  return ax_where(ax_le(count, ax_integer(most_squarings)), x[0], ax_real(NAN));
}

/* --- Products --- */

ax_value(ax_multi_dot)(uint32_t count, const ax_value *xs) {
  static const char name[] = "multi_dot";
  enum { most = 50 };
  char text[4 * most];
  ax_type types[most];
  size_t at = 0;
  if (count < 2 || count > most) return ax_reject_as(name, "there are %u matrices; it takes 2 to %d", count, most);
  if (!ax_operands(name, count, xs, types)) return ax_poison;
  for (uint32_t i = 0; i < count; i++) {
    const bool end = i == 0 || i + 1 == count;
    if (types[i].rank != 2 && !(end && types[i].rank == 1))
      return ax_reject_as(name, "operand %u, %s, is no matrix", i, ax_operand_string(&types[i]));
    if (i > 0 && types[i - 1].dims[types[i - 1].rank - 1] != types[i].dims[0])
      return ax_reject_as(name, "%s and %s do not fit", ax_operand_string(&types[i - 1]), ax_operand_string(&types[i]));
    const char letter = (char)(i < 25 ? 'a' + i : 'A' + i - 25), next = (char)(i + 1 < 25 ? 'a' + i + 1 : 'A' + i + 1 - 25);
    if (i > 0) text[at++] = ',';
    if (i > 0 || types[i].rank == 2) text[at++] = letter;
    if (i + 1 < count || types[i].rank == 2) text[at++] = next;
  }
  text[at] = 0;
  return ax_einsum(text, AX_LIST(count, xs));
}
