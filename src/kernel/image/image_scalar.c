/* Integers of rank 0: counters, indices, predicates. A core computes them itself, as most of them take a few nanoseconds. They
   follow the primitives: results wrap around, and the index of a choice is clamped. */
#include <string.h>

#include "ir/prim.h"
#include "kernel/image/image.h"
#include "prim/prims.h"

/* An operation: an ax_scalar, or one of these. */
enum { SAME = AX_SCALAR_COUNT, INDEX, UNKNOWN };

/* Says whether integers and predicates (indices, grid numbers, conditions) are computed with this operation. */
static bool is_for_integers(ax_scalar op) {
  static const ax_scalar all[] = {AX_SCALAR_ADD, AX_SCALAR_SUB,  AX_SCALAR_MUL,  AX_SCALAR_DIV, AX_SCALAR_REM,
                                  AX_SCALAR_MAX, AX_SCALAR_MIN,  AX_SCALAR_NEG,  AX_SCALAR_ABS, AX_SCALAR_SIGN,
                                  AX_SCALAR_EQ,  AX_SCALAR_NE,   AX_SCALAR_LT,   AX_SCALAR_LE,  AX_SCALAR_GT,
                                  AX_SCALAR_GE,  AX_SCALAR_AND,  AX_SCALAR_OR,   AX_SCALAR_NOT};
  for (size_t i = 0; i < AX_COUNT(all); i++)
    if (all[i] == op) return true;
  return false;
}

static uint32_t op_of(const ax_prim *prim) {
  static const struct {
    const ax_prim *prim;
    uint32_t op;
  } others[] = {{&ax_prim_select_n, AX_SCALAR_SELECT}, {&ax_prim_convert_element_type, AX_SCALAR_CONVERT},
                {&ax_prim_stop_gradient, SAME},        {&ax_prim_reshape, SAME},
                {&ax_prim_axis_index, INDEX}};
  if (is_for_integers(prim->scalar)) return prim->scalar;
  for (size_t i = 0; i < AX_COUNT(others); i++)
    if (others[i].prim == prim) return others[i].op;
  return UNKNOWN;
}

/* s32 and bool are what indices and predicates are; others are rare, and left to reference code. */
static bool is_small(const ax_type *type) {
  return type->form == AX_ARRAY && ax_type_elems(type) == 1 && (type->dtype == AX_S32 || type->dtype == AX_BOOL);
}

uint32_t ax_scalar_step_number(const ax_core_code *code, const ax_core_code_step *step) {
  const uint32_t op = op_of(step->eqn->prim);
  if (op == UNKNOWN || step->out_count != 1 || step->in_count > 3 || !is_small(&code->types[step->out[0]])) return AX_NONE;
  for (uint32_t i = 0; i < step->in_count; i++)
    if (!is_small(&code->types[step->in[i]])) return AX_NONE;
  return op;
}

bool ax_scalar_step_known(const ax_core_code *code, const ax_core_code_step *step) {
  return ax_scalar_step_number(code, step) != AX_NONE;
}

static void store(const ax_image_place *place, char *values, int64_t value) {
  int32_t low = (int32_t)(uint32_t)(uint64_t)value;
  if (place->narrow) *(uint8_t *)(values + place->at) = value != 0;
  else memcpy(values + place->at, &low, sizeof low);
}

static int64_t apply(uint32_t op, bool narrow, const int64_t *x) {
  switch (op) {
    case AX_SCALAR_ADD: return x[0] + x[1];
    case AX_SCALAR_SUB: return x[0] - x[1];
    case AX_SCALAR_MUL: return x[0] * x[1];
    case AX_SCALAR_DIV: return x[0] / x[1];
    case AX_SCALAR_REM: return x[0] % x[1];
    case AX_SCALAR_MAX: return x[0] > x[1] ? x[0] : x[1];
    case AX_SCALAR_MIN: return x[0] < x[1] ? x[0] : x[1];
    case AX_SCALAR_NEG: return -x[0];
    case AX_SCALAR_ABS: return x[0] < 0 ? -x[0] : x[0];
    case AX_SCALAR_SIGN: return (x[0] > 0) - (x[0] < 0);
    case AX_SCALAR_EQ: return x[0] == x[1];
    case AX_SCALAR_NE: return x[0] != x[1];
    case AX_SCALAR_LT: return x[0] < x[1];
    case AX_SCALAR_LE: return x[0] <= x[1];
    case AX_SCALAR_GT: return x[0] > x[1];
    case AX_SCALAR_GE: return x[0] >= x[1];
    case AX_SCALAR_AND: return x[0] & x[1];
    case AX_SCALAR_OR: return x[0] | x[1];
    case AX_SCALAR_NOT: return narrow ? !x[0] : ~x[0];
    case AX_SCALAR_SELECT: return x[0] != 0 ? x[2] : x[1];
    default: return x[0];
  }
}

/* The place along the names, row-major, as axis_index gives it. */
static int64_t index_of(const ax_core_code_step *step, int64_t place) {
  return ax_axes_index((const ax_axes *)ax_param_at(step->eqn, &step->eqn->prim->params[0]), &step->program->axes, place);
}

bool ax_scalar_do(const ax_image_op *op, int64_t place, char *values) {
  const ax_image_place *in = op->in, *out = op->out;
  const uint32_t number = op->scalar, count = op->step->in_count;
  int64_t x[3] = {0};
  for (uint32_t i = 0; i < count; i++) x[i] = ax_image_integer(values, &in[i]);
  if ((number == AX_SCALAR_DIV || number == AX_SCALAR_REM) && x[1] == 0) return false;
  if (number == AX_SCALAR_SELECT && count == 3) x[0] = x[0] < 0 ? 0 : x[0] > 1 ? 1 : x[0];
  store(out, values, number == INDEX ? index_of(op->step, place) : apply(number, out->narrow, x));
  return true;
}
