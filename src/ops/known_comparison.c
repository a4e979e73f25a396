/* Comparisons of integers by the bounds of what is compared:

     i < 0           an unsigned number, one that was made of it, iota, a remainder by a positive number: false. So an index that may
                     count from the end, as NumPy's do, is what it is where it cannot be negative
     b > 0, b == 1   of a bool, or one that was made an integer, beside a number, in any comparison that tells the two apart: b
                     itself, or not b, as for b == 0

   Bounds are followed through `most_deep` equations. */
#include "ops/known_comparison.h"

#include "ir/dtype.h"
#include "ir/equation.h"
#include "ops/pointwise.h"
#include "prim/intervals.h"
#include "prim/prims.h"

enum { most_deep = 5, most_operands = 3, most_elems = 64 }; /* of a constant that is read */

static ax_interval bounds_of(const ax_rewrite_args *args, uint32_t id, int deep) {
  const ax_eqn *eqn = args->made_by[id];
  const ax_dtype dtype = args->types[id].dtype;
  ax_interval in[most_operands];
  ax_dtype dtypes[most_operands];
  if (eqn != NULL && ax_eqn_literal(eqn) != NULL) return ax_interval_of_literal(ax_eqn_literal(eqn), most_elems);
  if (eqn != NULL && eqn->prim == &ax_prim_iota && ax_is_counted(dtype)) return ax_interval_of_iota(&args->types[id]);
  if (eqn == NULL || deep == 0 || eqn->in_count > most_operands || id != eqn->out) return ax_interval_of_dtype(dtype);
  for (uint32_t k = 0; k < eqn->in_count; k++) {
    dtypes[k] = args->types[eqn->in[k]].dtype;
    in[k] = bounds_of(args, eqn->in[k], deep - 1);
  }
  return ax_interval_of_eqn(eqn, dtypes, in, dtype);
}

/* The bool that operand k is, or was made of; AX_NONE. */
static uint32_t bool_of(const ax_rewrite_args *args, uint32_t k) {
  if (args->types[args->eqn->in[k]].dtype == AX_BOOL) return args->eqn->in[k];
  const ax_eqn *eqn = args->made_by[args->eqn->in[k]];
  const bool converts = eqn != NULL && eqn->prim == &ax_prim_convert_element_type && args->types[eqn->in[0]].dtype == AX_BOOL;
  return converts && ax_type_equal(&args->types[eqn->in[0]], &args->types[args->eqn->out]) ? eqn->in[0] : AX_NONE;
}

/* What the comparison says of the bool that operand k is made of, where the other one is a number: [0]: of false, [1]: of true. */
static bool outcomes(const ax_rewrite_args *args, uint32_t k, bool *says) {
  const ax_dtype dtype = args->types[args->eqn->in[0]].dtype, dtypes[] = {dtype, dtype};
  const ax_interval other = bounds_of(args, args->eqn->in[1 - k], most_deep);
  if (!ax_interval_is_one(other)) return false;
  for (int64_t value = 0; value < 2; value++) {
    ax_interval in[2];
    in[k] = (ax_interval){value, value}, in[1 - k] = other;
    says[value] = ax_interval_of_eqn(args->eqn, dtypes, in, AX_BOOL).low == 1;
  }
  return says[0] != says[1];
}

/* The outcome, if it is the same for all elements. */
static bool is_known(const ax_rewrite_args *args, bool *outcome) {
  const ax_dtype dtype = args->types[args->eqn->in[0]].dtype, dtypes[] = {dtype, dtype};
  const ax_spread *spread = &args->types[args->eqn->out].spread;
  const ax_interval in[] = {bounds_of(args, args->eqn->in[0], most_deep), bounds_of(args, args->eqn->in[1], most_deep)};
  const ax_interval known = ax_interval_of_eqn(args->eqn, dtypes, in, AX_BOOL);
  *outcome = known.low == 1;
  return ax_interval_is_one(known) && spread->varying == 0 && spread->reduced == 0 && spread->unreduced == 0;
}

bool ax_rewrite_comparison(const ax_rewrite_args *args) {
  const ax_type *type = &args->types[args->eqn->out];
  bool says[2];
  if (!ax_is_counted(args->types[args->eqn->in[0]].dtype)) return false;
  if (is_known(args, &says[0])) {
    if (args->values != NULL) args->out[0] = (ax_full)(AX_BOOL, AX_LIST(type->rank, type->dims), says[0]);
    return true;
  }
  for (uint32_t k = 0; k < 2; k++) {
    const uint32_t from = bool_of(args, k);
    if (from == AX_NONE || !outcomes(args, k, says)) continue;
    if (args->values != NULL) args->out[0] = says[1] ? args->values[from] : (ax_not)(args->values[from]);
    return true;
  }
  return false;
}
