/* Operations on the bits of integers and floats: shifts by any amount, the next number, fewer bits. The reference semantics, with the
   same steps, are in ops/scalar.c. Subnormal numbers are kept in every mode. */
#include "jit/emit/codegen.h"

#include "base/threefry.h"
#include "ir/dtype.h"

LLVMValueRef ax_cg_bits_of(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef value, uint32_t lanes) {
  value = ax_cg_to_memory(cg, dtype, value, lanes);
  LLVMTypeRef type = ax_cg_int(cg, 8 * (uint32_t)ax_dtype_bytes(dtype), lanes);
  return LLVMTypeOf(value) == type ? value : LLVMBuildCast(cg->builder, LLVMBitCast, value, type, "");
}

LLVMValueRef ax_cg_of_bits(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef bits, uint32_t lanes) {
  LLVMTypeRef type = ax_cg_memory(cg, dtype, lanes);
  if (LLVMTypeOf(bits) != type) bits = LLVMBuildCast(cg->builder, LLVMBitCast, bits, type, "");
  return ax_cg_to_register(cg, dtype, bits, lanes);
}

/* Amounts beyond the last bit are undefined in LLVM. If the amount is constant, the comparison is too, and nothing is selected. */
LLVMValueRef ax_cg_shift(const ax_codegen *cg, ax_scalar op, ax_dtype dtype, LLVMValueRef value, LLVMValueRef amount, uint32_t lanes) {
  LLVMBuilderRef b = cg->builder;
  LLVMTypeRef type = LLVMTypeOf(value);
  const uint64_t bits = ax_dtype_get(dtype)->bits;
  if (ax_is_short_integer(dtype)) { /* in a byte: the amount as an unsigned number, and what is shifted with its sign or without */
    const ax_dtype as = bits == 4 ? AX_S4 : AX_S2;
    amount = ax_cg_to_memory(cg, dtype, amount, lanes);
    value = op == AX_SCALAR_SHIFT_RIGHT_ARITHMETIC ? ax_cg_to_register(cg, as, value, lanes) : ax_cg_to_memory(cg, dtype, value, lanes);
  }
  LLVMValueRef inside = LLVMBuildICmp(b, LLVMIntULT, amount, ax_cg_integer(cg, dtype, lanes, bits), "");
  const bool all = inside == LLVMConstAllOnes(LLVMTypeOf(inside));
  if (op == AX_SCALAR_SHIFT_RIGHT_ARITHMETIC) {
    LLVMValueRef most = ax_cg_integer(cg, dtype, lanes, bits - 1);
    return LLVMBuildAShr(b, value, all ? amount : LLVMBuildSelect(b, inside, amount, most, ""), "");
  }
  LLVMValueRef shifted = op == AX_SCALAR_SHIFT_LEFT ? LLVMBuildShl(b, value, amount, "") : LLVMBuildLShr(b, value, amount, "");
  return all ? shifted : LLVMBuildSelect(b, inside, shifted, LLVMConstNull(type), "");
}

/* --- Random bits: the same steps as base/threefry.h's, on words of 32 bits. LLVM drops the halves' way through 64 bits. --- */

static LLVMValueRef half(const ax_codegen *cg, LLVMValueRef x, uint64_t from, uint32_t lanes) {
  if (from > 0) x = LLVMBuildLShr(cg->builder, x, ax_cg_integer(cg, AX_U64, lanes, from), "");
  return LLVMBuildTrunc(cg->builder, x, ax_cg_int(cg, 32, lanes), "");
}

static LLVMValueRef rotated(const ax_codegen *cg, LLVMValueRef x, uint64_t by, uint32_t lanes) {
  LLVMTypeRef type = LLVMTypeOf(x);
  return ax_cg_intrinsic(cg, "llvm.fshl", &type, 1, (LLVMValueRef[]){x, x, ax_cg_integer(cg, AX_U32, lanes, by)}, 3);
}

/* A key and a count, and what is made of them. */
typedef struct threefry {
  LLVMValueRef words[3], x0, x1;
} threefry;

static threefry threefry_begin(const ax_codegen *cg, LLVMValueRef key, LLVMValueRef count, uint32_t lanes) {
  LLVMBuilderRef b = cg->builder;
  threefry t = {.words = {half(cg, key, 32, lanes), half(cg, key, 0, lanes)}};
  LLVMValueRef both = LLVMBuildBinOp(b, LLVMXor, t.words[0], t.words[1], "");
  t.words[2] = LLVMBuildBinOp(b, LLVMXor, both, ax_cg_integer(cg, AX_U32, lanes, ax_threefry_parity), "");
  t.x0 = LLVMBuildAdd(b, half(cg, count, 32, lanes), t.words[0], "");
  t.x1 = LLVMBuildAdd(b, half(cg, count, 0, lanes), t.words[1], "");
  return t;
}

static void threefry_add_key(const ax_codegen *cg, threefry *t, uint32_t group, uint32_t lanes) {
  LLVMBuilderRef b = cg->builder;
  LLVMValueRef word = LLVMBuildAdd(b, t->words[(group + 2) % 3], ax_cg_integer(cg, AX_U32, lanes, group + 1), "");
  t->x0 = LLVMBuildAdd(b, t->x0, t->words[(group + 1) % 3], "");
  t->x1 = LLVMBuildAdd(b, t->x1, word, "");
}

static LLVMValueRef threefry_end(const ax_codegen *cg, const threefry *t, uint32_t lanes) {
  LLVMBuilderRef b = cg->builder;
  LLVMTypeRef wide = ax_cg_int(cg, 64, lanes);
  LLVMValueRef above = LLVMBuildShl(b, LLVMBuildCast(b, LLVMZExt, t->x0, wide, ""), ax_cg_integer(cg, AX_U64, lanes, 32), "");
  return LLVMBuildOr(b, above, LLVMBuildCast(b, LLVMZExt, t->x1, wide, ""), "");
}

void ax_cg_threefry(const ax_codegen *cg, const LLVMValueRef *keys, const LLVMValueRef *counts, uint32_t lanes, uint32_t count,
                    LLVMValueRef *out) {
  LLVMBuilderRef b = cg->builder;
  threefry t[AX_CG_ABREAST];
  for (uint32_t k = 0; k < count; k++) t[k] = threefry_begin(cg, keys[k], counts[k], lanes);
  for (uint32_t group = 0; group < AX_THREEFRY_GROUPS; group++) {
    for (int i = 0; i < AX_THREEFRY_ROUNDS; i++) {
      const uint64_t by = ax_threefry_rotations[group % 2][i];
      for (uint32_t k = 0; k < count; k++) t[k].x0 = LLVMBuildAdd(b, t[k].x0, t[k].x1, "");
      for (uint32_t k = 0; k < count; k++) t[k].x1 = rotated(cg, t[k].x1, by, lanes);
      for (uint32_t k = 0; k < count; k++) t[k].x1 = LLVMBuildBinOp(b, LLVMXor, t[k].x1, t[k].x0, "");
    }
    for (uint32_t k = 0; k < count; k++) threefry_add_key(cg, &t[k], group, lanes);
  }
  for (uint32_t k = 0; k < count; k++) out[k] = threefry_end(cg, &t[k], lanes);
}

/* --- Floats --- */

typedef struct bits { /* of a float dtype, and constants of its registers as integers */
  const ax_codegen *cg;
  LLVMBuilderRef b;
  ax_float_form form;
  uint32_t width, lanes;
  LLVMValueRef sign, size_mask, infinity, zero, one;
} bits;

static LLVMValueRef constant(const bits *o, uint64_t value) {
  return ax_cg_splat(LLVMConstInt(ax_cg_int(o->cg, o->width, 1), value, false), o->lanes);
}

static bits bits_begin(const ax_codegen *cg, ax_dtype dtype, uint32_t lanes) {
  bits o = {.cg = cg, .b = cg->builder, .form = ax_float_form_of(dtype), .width = 8 * (uint32_t)ax_dtype_bytes(dtype), .lanes = lanes};
  const uint64_t sign = (uint64_t)1 << (o.width - 1);
  o.sign = constant(&o, sign);
  o.size_mask = constant(&o, sign - 1);
  o.infinity = constant(&o, sign - ((uint64_t)1 << o.form.fraction));
  o.zero = constant(&o, 0);
  o.one = constant(&o, 1);
  return o;
}

static LLVMValueRef is_above(const bits *o, LLVMValueRef a, LLVMValueRef b) { return LLVMBuildICmp(o->b, LLVMIntUGT, a, b, ""); }
static LLVMValueRef is_zero(const bits *o, LLVMValueRef a) { return LLVMBuildICmp(o->b, LLVMIntEQ, a, o->zero, ""); }

LLVMValueRef ax_cg_nextafter(const ax_codegen *cg, ax_dtype dtype, LLVMValueRef x, LLVMValueRef y, uint32_t lanes) {
  const bits o = bits_begin(cg, dtype, lanes);
  LLVMValueRef from = ax_cg_bits_of(cg, dtype, x, lanes), to = ax_cg_bits_of(cg, dtype, y, lanes);
  LLVMValueRef size = LLVMBuildAnd(o.b, from, o.size_mask, ""), size_to = LLVMBuildAnd(o.b, to, o.size_mask, "");
  LLVMValueRef signs = LLVMBuildAnd(o.b, LLVMBuildBinOp(o.b, LLVMXor, from, to, ""), o.sign, "");
  LLVMValueRef grows = LLVMBuildAnd(o.b, is_zero(&o, signs), is_above(&o, size_to, size), "");
  LLVMValueRef next = LLVMBuildSelect(o.b, grows, LLVMBuildAdd(o.b, from, o.one, ""), LLVMBuildSub(o.b, from, o.one, ""), "");
  LLVMValueRef least = LLVMBuildOr(o.b, LLVMBuildAnd(o.b, to, o.sign, ""), o.one, "");
  next = LLVMBuildSelect(o.b, is_zero(&o, size), least, next, "");
  LLVMValueRef zeros = is_zero(&o, LLVMBuildOr(o.b, size, size_to, ""));
  LLVMValueRef same = LLVMBuildOr(o.b, LLVMBuildICmp(o.b, LLVMIntEQ, from, to, ""), zeros, "");
  next = LLVMBuildSelect(o.b, same, to, next, "");
  LLVMValueRef no_number = LLVMBuildOr(o.b, is_above(&o, size, o.infinity), is_above(&o, size_to, o.infinity), "");
  LLVMValueRef quiet = LLVMBuildOr(o.b, o.infinity, constant(&o, (uint64_t)1 << (o.form.fraction - 1)), "");
  return ax_cg_of_bits(cg, dtype, LLVMBuildSelect(o.b, no_number, quiet, next, ""), lanes);
}

/* Half a unit is added, less one where the last bit that is kept is 0. */
static LLVMValueRef rounded(const bits *o, LLVMValueRef size, int64_t mantissa_bits) {
  if (mantissa_bits >= o->form.fraction) return size;
  const uint64_t shift = (uint64_t)(o->form.fraction - mantissa_bits), unit = (uint64_t)1 << shift;
  LLVMValueRef last = LLVMBuildAnd(o->b, LLVMBuildLShr(o->b, size, constant(o, shift), ""), o->one, "");
  LLVMValueRef more = LLVMBuildAdd(o->b, last, constant(o, (unit >> 1) - 1), "");
  return LLVMBuildAnd(o->b, LLVMBuildAdd(o->b, size, more, ""), constant(o, ~(unit - 1)), "");
}

static LLVMValueRef in_range(const bits *o, LLVMValueRef size, int64_t exponent_bits) {
  if (exponent_bits >= o->form.exponent) return size;
  const uint64_t bias = ((uint64_t)1 << (o->form.exponent - 1)) - 1, reach = ((uint64_t)1 << (exponent_bits - 1)) - 1;
  const uint64_t last = ((bias + reach + 1) << o->form.fraction) - 1, below = (bias - reach + 1) << o->form.fraction;
  LLVMValueRef made = LLVMBuildSelect(o->b, is_above(o, size, constant(o, last)), o->infinity, size, "");
  return LLVMBuildSelect(o->b, is_above(o, constant(o, below), size), o->zero, made, "");
}

LLVMValueRef ax_cg_reduce_precision(const ax_codegen *cg, ax_dtype dtype, int64_t imm, LLVMValueRef x, uint32_t lanes) {
  const bits o = bits_begin(cg, dtype, lanes);
  LLVMValueRef all = ax_cg_bits_of(cg, dtype, x, lanes);
  LLVMValueRef size = LLVMBuildAnd(o.b, all, o.size_mask, ""), sign = LLVMBuildAnd(o.b, all, o.sign, "");
  LLVMValueRef reduced = in_range(&o, rounded(&o, size, ax_precision_mantissa(imm)), ax_precision_exponent(imm));
  LLVMValueRef made = LLVMBuildSelect(o.b, is_above(&o, size, o.infinity), all, LLVMBuildOr(o.b, sign, reduced, ""), "");
  return ax_cg_of_bits(cg, dtype, made, lanes);
}
