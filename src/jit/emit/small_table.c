/* Look-ups in tables that a few registers hold, as permutations of a row, boards of games and codes of letters have them:

     table[index], 16 lanes      a gather: 29 cycles on Zen 4, 20 and more elsewhere
     the table in 4 registers    4 loads, a permutation of the first two, one of the others, and a choice between them: 6 cycles

   A permutation of two registers takes the low bits of each lane's index, and each bit above them chooses between two results. */
#include "jit/emit/nest.h"

#if defined(__x86_64__)

enum { most_pieces = 8 };

typedef struct small_table {
  const ax_nest_schedule *schedule;
  uint32_t in_memory; /* bits of an element */
  uint32_t bits;      /* of an index, and of an element while it is permuted */
  bool wide;          /* there are permutations of two registers */
  int64_t elems, pieces;
  const char *one, *two; /* the permutations of one register, and of two */
} small_table;

/* The elements from the first to the last that an access's own starts can reach. */
static int64_t reach(const ax_nest_schedule *s, const ax_nest_access *a) {
  const ax_slot *slot = &s->kernel->slots[a->slot];
  int64_t elems = 1, pitch = 1;
  for (uint32_t d = slot->rank; d-- > 0; pitch *= slot->dims[d])
    if (a->at[d].dynamic != AX_NONE && ax_nest_start_is_added_by_load(s, s->deps[a->at[d].dynamic])) elems += a->at[d].limit * pitch;
  return elems;
}

static bool instructions(small_table *t, uint32_t vector_bytes, uint32_t lanes) {
  const uint32_t bytes = lanes * t->bits / 8;
  t->wide = vector_bytes == 64;
  if (t->bits == 32 && bytes == 32) t->one = "llvm.x86.avx2.permd", t->two = "llvm.x86.avx512.vpermi2var.d.256";
  else if (t->wide && bytes == 32) t->one = "llvm.x86.avx512.permvar.di.256", t->two = "llvm.x86.avx512.vpermi2var.q.256";
  else if (t->wide && bytes == 64 && t->bits == 32) t->one = "llvm.x86.avx512.permvar.si.512", t->two = "llvm.x86.avx512.vpermi2var.d.512";
  else if (t->wide && bytes == 64) t->one = "llvm.x86.avx512.permvar.di.512", t->two = "llvm.x86.avx512.vpermi2var.q.512";
  return t->one != NULL && vector_bytes >= 32;
}

static bool find(const ax_nest *nest, uint32_t access, small_table *t) {
  const ax_nest_schedule *s = nest->schedule;
  const ax_nest_access *a = &s->accesses[access];
  const uint32_t bits = 8 * (uint32_t)ax_dtype_bytes(s->kernel->slots[a->slot].dtype);
  *t = (small_table){.schedule = s, .in_memory = bits, .bits = bits > 32 ? 64 : 32};
  if (bits > 64 || a->stride[s->vector] != 0 || !instructions(t, nest->cg.vector_bytes, s->lanes)) return false;
  t->elems = reach(s, a);
  t->pieces = (t->elems + s->lanes - 1) / s->lanes;
  if (!t->wide && (t->pieces > most_pieces / 2 || (bits < 32 && t->elems % s->lanes != 0))) return false;
  return t->pieces <= most_pieces;
}

bool ax_nest_has_small_table(const ax_nest *nest, uint32_t access) {
  small_table table;
  return find(nest, access, &table);
}

/* A register of the table, each element as a number of `bits` bits. */
static LLVMValueRef load_piece(ax_nest *nest, const small_table *t, LLVMTypeRef element, LLVMValueRef pointer, int64_t piece) {
  const ax_codegen *cg = &nest->cg;
  const uint32_t lanes = t->schedule->lanes;
  const int64_t begin = piece * lanes, left = t->elems - begin;
  LLVMValueRef mask = left < lanes ? ax_walk_constant_mask(nest, left) : NULL;
  LLVMValueRef loaded = ax_nest_load_side_by_side(nest, element, ax_nest_advance(nest, element, pointer, ax_cg_i64(cg, begin)), mask);
  loaded = LLVMBuildCast(cg->builder, LLVMBitCast, loaded, ax_cg_int(cg, t->in_memory, lanes), "");
  return t->in_memory < t->bits ? LLVMBuildCast(cg->builder, LLVMZExt, loaded, ax_cg_int(cg, t->bits, lanes), "") : loaded;
}

/* What the index finds in `pieces` registers from `first` on; lanes whose index is elsewhere have anything. */
static LLVMValueRef permuted(ax_nest *nest, const small_table *t, LLVMValueRef *pieces, int64_t count, LLVMValueRef index) {
  const ax_codegen *cg = &nest->cg;
  const uint32_t lanes = t->schedule->lanes;
  if (count == 1) {
    LLVMValueRef args[] = {pieces[0], index};
    return ax_cg_intrinsic(cg, t->one, NULL, 0, args, 2);
  }
  if (count == 2 && t->wide) {
    LLVMValueRef args[] = {pieces[0], index, pieces[1]};
    return ax_cg_intrinsic(cg, t->two, NULL, 0, args, 3);
  }
  int64_t half = 1;
  while (half * 2 < count) half *= 2;
  LLVMValueRef low = permuted(nest, t, pieces, half, index), high = permuted(nest, t, pieces + half, count - half, index);
  LLVMValueRef bit = ax_cg_broadcast(cg, LLVMConstInt(ax_cg_int(cg, t->bits, 1), (uint64_t)half * lanes, false), lanes);
  LLVMValueRef is_low = LLVMBuildICmp(cg->builder, LLVMIntEQ, LLVMBuildAnd(cg->builder, index, bit, ""),
                                      LLVMConstNull(ax_cg_int(cg, t->bits, lanes)), "");
  return LLVMBuildSelect(cg->builder, is_low, low, high, "");
}

LLVMValueRef ax_nest_look_up_small(ax_nest *nest, uint32_t access, LLVMTypeRef element, LLVMValueRef pointer, LLVMValueRef offsets) {
  small_table t;
  LLVMValueRef pieces[most_pieces];
  const ax_codegen *cg = &nest->cg;
  find(nest, access, &t);
  const uint32_t lanes = t.schedule->lanes;
  if (t.bits > 32) offsets = LLVMBuildCast(cg->builder, LLVMZExt, offsets, ax_cg_int(cg, 64, lanes), "");
  for (int64_t p = 0; p < t.pieces; p++) pieces[p] = load_piece(nest, &t, element, pointer, p);
  LLVMValueRef found = permuted(nest, &t, pieces, t.pieces, offsets);
  if (t.in_memory < t.bits) found = LLVMBuildTrunc(cg->builder, found, ax_cg_int(cg, t.in_memory, lanes), "");
  return LLVMBuildCast(cg->builder, LLVMBitCast, found, LLVMVectorType(element, lanes), "");
}

#else

bool ax_nest_has_small_table(const ax_nest *nest, uint32_t access) {
  (void)nest, (void)access;
  return false;
}

LLVMValueRef ax_nest_look_up_small(ax_nest *nest, uint32_t access, LLVMTypeRef element, LLVMValueRef pointer, LLVMValueRef offsets) {
  (void)nest, (void)access, (void)element, (void)pointer, (void)offsets;
  return NULL;
}

#endif
