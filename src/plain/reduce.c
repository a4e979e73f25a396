/* reduce by a body, as a tree of the body's expressions. StableHLO lets a device combine the start any number of times, and XLA does: as often
   as it has parts of a sum, and not at all where nothing is reduced. That is the same for a neutral start alone, which a body does not tell. */
#include "ops/reduce.h"
#include "plain/rules.h"
#include "prim/prims.h"

static bool applies(const ax_plain_lacks *lacks, const ax_eqn *eqn, const ax_type *in, const ax_type *out) {
  (void)eqn, (void)in, (void)out;
  return lacks->starts_once;
}

const ax_plain_rule ax_plain_reduce = {.prim = &ax_prim_reduce, .applies = applies, .trace = ax_reduce_expand};
