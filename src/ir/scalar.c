/* The table of scalar operations, from scalar.def. */
#include "ir/scalar.h"

static const struct {
  const char *name;
  int arity;
} scalars[] = {
    {"none", 0},
#define AX_SCALAR(name, text, arity) {text, arity},
#include "ir/scalar.def"
#undef AX_SCALAR
    {"const", 0},
    {"index", 0},
    {"axis", 0},
    {"load", 0},
    {"inside", 0},
};

int ax_scalar_arity(ax_scalar op) { return scalars[op].arity; }
const char *ax_scalar_name(ax_scalar op) { return scalars[op].name; }
