/* Powers of real numbers, pow x y, where y is the same number everywhere:

     y      becomes                                                      its error, in units of the last place
     0      1, of a NaN too                                              none
     1      x                                                            none
     -1     1 / x                                                        0.5
     2      x * x                                                        0.5
     3      x * x * x                                                    1
     0.5    the root; of -0 it is 0, and of negative infinity infinity   0.5

   Zeros, infinities and NaN give what pow gives; a subnormal x to the power 1 stays, where pow may flush it. The number may also be a sum
   or difference of two, as it is in a derivative of pow. Floats of a byte and less are left alone: some have no infinity, or no zero. */
#include "ops/known_power.h"

#include <math.h>

#include "axle/ops.h"
#include "ir/dtype.h"
#include "ir/number.h"
#include "ops/pointwise.h"
#include "prim/prims.h"

static bool literal_of(const ax_eqn *eqn, double *out) {
  const ax_literal *literal = eqn == NULL ? NULL : ax_eqn_literal(eqn);
  if (literal != NULL) *out = ax_number_load(literal->type.dtype, literal->data, 0).f;
  return literal != NULL;
}

static bool exponent_of(const ax_rewrite_args *args, double *out) {
  const ax_eqn *eqn = ax_behind_repeats(args->made_by, args->eqn->in[1]);
  double x[2];
  if (literal_of(eqn, out)) return true;
  if (eqn == NULL || (eqn->prim != &ax_prim_add && eqn->prim != &ax_prim_sub)) return false;
  for (int k = 0; k < 2; k++)
    if (!literal_of(ax_behind_repeats(args->made_by, eqn->in[k]), &x[k])) return false;
  *out = eqn->prim == &ax_prim_add ? x[0] + x[1] : x[0] - x[1]; /* if it is one of the numbers above, these dtypes have it */
  return true;
}

/* + 0 makes 0 of -0. */
static ax_value root_of(ax_value x) {
  const ax_value root = (ax_add)((ax_sqrt)(x), (ax_full_like)(x, 0));
  return (ax_select_n)((ax_eq)(x, (ax_full_like)(x, -INFINITY)), root, (ax_full_like)(x, INFINITY));
}

static ax_value power_of(ax_value x, double exponent) {
  if (exponent == 0) return (ax_full_like)(x, 1);
  if (exponent == 1) return x;
  if (exponent == -1) return (ax_div)((ax_full_like)(x, 1), x);
  if (exponent == 0.5) return root_of(x);
  return (ax_integer_pow)(x, (int64_t)exponent);
}

bool ax_rewrite_power(const ax_rewrite_args *args) {
  const ax_type *x = &args->types[args->eqn->in[0]], *y = &args->types[args->eqn->out];
  double exponent;
  if (!ax_is_float(x->dtype) || ax_is_byte_float(x->dtype) || !ax_type_equal(x, y) || !exponent_of(args, &exponent)) return false;
  if (exponent == 0 && (y->spread.varying | y->spread.reduced | y->spread.unreduced) != 0) return false;
  if (exponent != -1 && exponent != 0 && exponent != 0.5 && exponent != 1 && exponent != 2 && exponent != 3) return false;
  if (args->values != NULL) args->out[0] = power_of(args->values[args->eqn->in[0]], exponent);
  return true;
}
