/* Integers of rank 0: counters, indices, predicates. A core computes them itself, as most of them take a few nanoseconds. They
   follow the primitives: results wrap around, and the index of a choice is clamped. */
#include <string.h>

#include "kernel/image/image.h"
#include "prim/prims.h"

typedef enum op {
  ADD,
  SUB,
  MUL,
  DIV,
  REM,
  MAX,
  MIN,
  NEG,
  ABS,
  SIGN,
  EQ,
  NE,
  LT,
  LE,
  GT,
  GE,
  AND,
  OR,
  NOT,
  SELECT,
  CONVERT,
  SAME,
  INDEX,
  UNKNOWN
} op;

static op op_of(const ax_prim *prim) {
  static const struct { const ax_prim *prim; op op;
  } all[] = {{&ax_prim_add, ADD},
             {&ax_prim_sub, SUB},
             {&ax_prim_mul, MUL},
             {&ax_prim_div, DIV},
             {&ax_prim_rem, REM},
             {&ax_prim_max, MAX},
             {&ax_prim_min, MIN},
             {&ax_prim_neg, NEG},
             {&ax_prim_abs, ABS},
             {&ax_prim_sign, SIGN},
             {&ax_prim_eq, EQ},
             {&ax_prim_ne, NE},
             {&ax_prim_lt, LT},
             {&ax_prim_le, LE},
             {&ax_prim_gt, GT},
             {&ax_prim_ge, GE},
             {&ax_prim_and, AND},
             {&ax_prim_or, OR},
             {&ax_prim_not, NOT},
             {&ax_prim_select_n, SELECT},
             {&ax_prim_convert_element_type, CONVERT},
             {&ax_prim_stop_gradient, SAME},
             {&ax_prim_reshape, SAME},
             {&ax_prim_axis_index, INDEX}};
  for (size_t i = 0; i < AX_COUNT(all); i++)
    if (all[i].prim == prim) return all[i].op;
  return UNKNOWN;
}

/* s32 and bool are what indices and predicates are; others are rare, and left to reference code. */
static bool is_small(const ax_type *type) {
  return type->form == AX_ARRAY && ax_type_elems(type) == 1 && (type->dtype == AX_S32 || type->dtype == AX_BOOL);
}

uint32_t ax_scalar_step_number(const ax_core_code *code, const ax_core_code_step *step) {
  op op = op_of(step->eqn->prim);
  if (op == UNKNOWN || step->out_count != 1 || step->in_count > 3 || !is_small(&code->types[step->out[0]])) return AX_NONE;
  for (uint32_t i = 0; i < step->in_count; i++)
    if (!is_small(&code->types[step->in[i]])) return AX_NONE;
  return op;
}

bool ax_scalar_step_known(const ax_core_code *code, const ax_core_code_step *step) {
  return ax_scalar_step_number(code, step) != AX_NONE;
}

int64_t ax_integer_at(ax_dtype dtype, const void *data) {
  int32_t value = 0;
  if (dtype == AX_BOOL) return *(const uint8_t *)data != 0;
  memcpy(&value, data, sizeof value);
  return value;
}

static void store(ax_dtype dtype, void *data, int64_t value) {
  int32_t low = (int32_t)(uint32_t)(uint64_t)value;
  if (dtype == AX_BOOL) *(uint8_t *)data = value != 0;
  else memcpy(data, &low, sizeof low);
}

static int64_t apply(op op, ax_dtype dtype, const int64_t *x) {
  switch (op) {
    case ADD: return x[0] + x[1];
    case SUB: return x[0] - x[1];
    case MUL: return x[0] * x[1];
    case DIV: return x[0] / x[1];
    case REM: return x[0] % x[1];
    case MAX: return x[0] > x[1] ? x[0] : x[1];
    case MIN: return x[0] < x[1] ? x[0] : x[1];
    case NEG: return -x[0];
    case ABS: return x[0] < 0 ? -x[0] : x[0];
    case SIGN: return (x[0] > 0) - (x[0] < 0);
    case EQ: return x[0] == x[1];
    case NE: return x[0] != x[1];
    case LT: return x[0] < x[1];
    case LE: return x[0] <= x[1];
    case GT: return x[0] > x[1];
    case GE: return x[0] >= x[1];
    case AND: return x[0] & x[1];
    case OR: return x[0] | x[1];
    case NOT: return dtype == AX_BOOL ? !x[0] : ~x[0];
    case SELECT: return x[0] != 0 ? x[2] : x[1];
    default: return x[0];
  }
}

/* The place along the names, row-major, as axis_index gives it. */
static int64_t index_of(const ax_core_code_step *step, int64_t place) {
  return ax_axes_index((const ax_axes *)ax_param_at(step->eqn, &step->eqn->prim->params[0]), &step->program->axes, place);
}

bool ax_scalar_step_do(uint32_t number, const ax_core_code *code, const ax_core_code_step *step, int64_t place,
                       const void *const *in, void *out) {
  op op = (enum op)number;
  int64_t x[3] = {0};
  ax_dtype dtype = code->types[step->out[0]].dtype;
  for (uint32_t i = 0; i < step->in_count; i++) x[i] = ax_integer_at(code->types[step->in[i]].dtype, in[i]);
  if ((op == DIV || op == REM) && x[1] == 0) return false;
  if (op == SELECT && step->in_count == 3) x[0] = x[0] < 0 ? 0 : x[0] > 1 ? 1 : x[0];
  store(dtype, out, op == INDEX ? index_of(step, place) : apply(op, dtype, x));
  return true;
}
