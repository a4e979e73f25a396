/* A constant can be given if instructions do not depend on what number it is. So it is an operand of arithmetic, a comparison or a
   choice, or it is stored. Not so what a function is computed of, an integer, or a divisor, which may become a product. Nor 0, 1,
   2 or a half, positive or negative, for which the code generator has shorter instructions. But of those, where a kernel has many
   numbers, the ones that it adds or compares with, 0 aside, are given like the others: one of them alone is no reason for a kernel
   to have code of its own. */
#include "assemble/given.h"

#include <math.h>
#include <string.h>

#include "ir/number.h"
#include "ir/program.h"

static double size_of(const ax_expr *e) { return fabs(ax_number_load(e->dtype, &e->imm, 0).f); }

static bool is_plain(double size) { return size != 0 && size != 0.5 && size != 1 && size != 2; }

/* Whether operand `i` of such an operation can be given. */
static bool takes_given(ax_scalar op, int i) {
  switch ((int)op) {
    case AX_SCALAR_ADD:
    case AX_SCALAR_SUB:
    case AX_SCALAR_MUL:
    case AX_SCALAR_MAX:
    case AX_SCALAR_MIN:
    case AX_SCALAR_EQ:
    case AX_SCALAR_NE:
    case AX_SCALAR_LT:
    case AX_SCALAR_LE:
    case AX_SCALAR_GT:
    case AX_SCALAR_GE: return true;
    case AX_SCALAR_DIV: return i == 0;
    case AX_SCALAR_SELECT: return i > 0;
    default: return false;
  }
}

/* Marks constants that cannot be given; factors: which nodes products and quotients are made of. */
static void keep_others(const ax_loop_kernel *kernel, bool *kept, bool *factors) {
  for (ax_ex id = 0; id < kernel->expr_count; id++) {
    const ax_expr *e = &kernel->exprs[id];
    for (int i = 0; i < ax_scalar_arity(e->op); i++) {
      if (!takes_given(e->op, i)) kept[e->arg[i]] = true;
      if (e->op == AX_SCALAR_MUL || e->op == AX_SCALAR_DIV) factors[e->arg[i]] = true;
    }
    for (uint32_t d = 0; e->op == AX_LEAF_LOAD && d < kernel->slots[e->slot].rank; d++)
      if (e->at[d].dynamic != AX_NONE) kept[e->at[d].dynamic] = true;
    if (e->op == AX_LEAF_LOAD && e->arg[0] != AX_NONE) kept[e->arg[0]] = true;
    if (e->op != AX_LEAF_CONST || !ax_is_float(e->dtype) || size_of(e) == 0) kept[id] = true;
  }
}

/* Likewise numbers with instructions of their own. */
static void keep_short(const ax_loop_kernel *kernel, bool *kept, const bool *factors) {
  enum { many = 24 };
  uint32_t count = 0;
  for (ax_ex id = 0; id < kernel->expr_count; id++) count += !kept[id] && is_plain(size_of(&kernel->exprs[id]));
  for (ax_ex id = 0; id < kernel->expr_count; id++)
    kept[id] = kept[id] || (!is_plain(size_of(&kernel->exprs[id])) && (count < many || factors[id]));
}

/* Kernels that only move floats take them as integers (jit/nest/bits.c). */
static bool computes(const ax_loop_kernel *kernel) {
  for (ax_ex id = 0; id < kernel->expr_count; id++) {
    const ax_scalar op = kernel->exprs[id].op;
    if (op < AX_SCALAR_COUNT && op != AX_SCALAR_SELECT && ax_is_float(kernel->exprs[id].dtype)) return true;
  }
  return false;
}

const ax_loop_kernel *ax_kernel_given(ax_arena *arena, const ax_loop_kernel *kernel, uint64_t *bits, uint32_t *count) {
  bool *kept = ax_arena_alloc(arena, kernel->expr_count), *factors = ax_arena_alloc(arena, kernel->expr_count);
  ax_loop_kernel *given = NULL;
  *count = 0;
  if (kept == NULL || factors == NULL) return NULL;
  if (!computes(kernel)) return kernel;
  keep_others(kernel, kept, factors);
  keep_short(kernel, kept, factors);
  for (ax_ex id = 0; id < kernel->expr_count && *count < AX_MAX_GIVEN; id++) {
    if (kept[id]) continue;
    if (given == NULL && (given = ax_kernel_copy(arena, kernel)) == NULL) return NULL;
    bits[*count] = (uint64_t)given->exprs[id].imm;
    given->exprs[id].op = AX_LEAF_GIVEN;
    given->exprs[id].imm = (*count)++;
  }
  return given != NULL ? given : kernel;
}
