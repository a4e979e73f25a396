/* Elements of several vectors in turn, and back. Halves, which are the vectors even and odd by number, are interleaved first,
   each by itself, and so on down:

     a0 a1 a2 a3 | c0 ..        a0 c0 a1 c1 | a2 c2 ..         a0 b0 c0 d0 | a1 b1 c1 d1 | ..
     b0 b1 b2 b3 | d0 ..   ->   b0 d0 b1 d1 | b2 d2 ..    ->

   So eight vectors take 24 shuffles of two vectors, where one after another would take 56.

   Of 3, 5 or 7 vectors no two elements of one go to the same lane of different results, since lanes are a power of two. So each
   vector is shuffled once, and what goes to each result is chosen by masks:

     a0 a1 a2 a3        a0 a3 a2 a1        a0 b0 c0 a1          of the first the lanes 0 and 3,
     b0 b1 b2 b3        b1 b0 b3 b2        b1 c1 a2 b2          of the second the lanes 1, 0 and 3,
     c0 c1 c2 c3   ->   c2 c1 c0 c3   ->   c2 a3 b3 c3          of the third the lanes 2, 1, 0 and 3 */
#include "jit/emit/codegen.h"

enum { most_lanes = 64 };

static uint32_t least_factor(uint32_t count) {
  uint32_t by = 2;
  while (by < count && count % by != 0) by++;
  return by;
}

typedef struct turn { /* by lane of a result: which of the vectors has its element, and in which lane */
  uint32_t which[most_lanes], lane[most_lanes];
} turn;

/* Element first + l of the vectors' elements in turn. */
static turn in_turn(uint32_t count, uint32_t first, uint32_t lanes) {
  turn t = {{0}, {0}};
  for (uint32_t l = 0; l < lanes; l++) {
    t.which[l] = (first + l) % count;
    t.lane[l] = (first + l) / count;
  }
  return t;
}

/* Every count-th element of the vectors one behind the other. */
static turn each_of(uint32_t count, uint32_t first, uint32_t lanes) {
  turn t = {{0}, {0}};
  for (uint32_t l = 0; l < lanes; l++) {
    t.which[l] = (l * count + first) / lanes;
    t.lane[l] = (l * count + first) % lanes;
  }
  return t;
}

static LLVMValueRef permuted(const ax_codegen *cg, LLVMValueRef v, const int64_t *from, uint32_t lanes) {
  return v == NULL ? NULL : ax_cg_shuffle(cg, v, NULL, from, lanes);
}

/* Lane l of v[which[l]]. A vector that is NULL is not asked for, or not known. */
static LLVMValueRef chosen(const ax_codegen *cg, LLVMValueRef *v, uint32_t count, const uint32_t *which, uint32_t lanes) {
  LLVMValueRef all = NULL;
  for (uint32_t k = 0; k < count; k++) {
    int64_t from[most_lanes];
    if (v[k] == NULL) continue;
    for (uint32_t l = 0; l < lanes; l++) from[l] = which[l] == k ? (int64_t)lanes + l : l;
    all = all == NULL ? v[k] : ax_cg_shuffle(cg, all, v[k], from, lanes);
  }
  return all;
}

/* One vector after the other, by shuffles of two: for two vectors, and for elements of less than four bytes, of which choosing by
   masks takes as long as shuffling. */
static LLVMValueRef in_chain(const ax_codegen *cg, LLVMValueRef *v, uint32_t count, const turn *t, uint32_t lanes) {
  LLVMValueRef all = NULL;
  for (uint32_t k = 0; k < count; k++) {
    int64_t from[most_lanes];
    if (v[k] == NULL) continue;
    for (uint32_t l = 0; l < lanes; l++)
      from[l] = t->which[l] == k                 ? (int64_t)t->lane[l] + (all != NULL ? lanes : 0)
                : t->which[l] < k && all != NULL ? (int64_t)l
                                                 : -1;
    all = all == NULL ? ax_cg_shuffle(cg, v[k], NULL, from, lanes) : ax_cg_shuffle(cg, all, v[k], from, lanes);
  }
  return all;
}

static bool chains(LLVMValueRef *v, uint32_t count) {
  for (uint32_t k = 0; k < count; k++) {
    if (v[k] == NULL) continue;
    LLVMTypeRef element = LLVMGetElementType(LLVMTypeOf(v[k]));
    return count == 2 || LLVMGetTypeKind(element) == LLVMHalfTypeKind ||
           (LLVMGetTypeKind(element) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(element) < 32);
  }
  return true;
}

/* A vector of each of `count`, which is 2 or odd, become as many, an element of each in turn. */
static void interleave_some(const ax_codegen *cg, LLVMValueRef *v, uint32_t count, uint32_t lanes, LLVMValueRef *out) {
  LLVMValueRef moved[AX_MOST_IN_TURN];
  const bool chain = chains(v, count);
  for (uint32_t k = 0; k < count && !chain; k++) {
    int64_t from[most_lanes] = {0};
    for (uint32_t w = 0; w < count; w++) {
      const turn t = in_turn(count, w * lanes, lanes);
      for (uint32_t l = 0; l < lanes; l++)
        if (t.which[l] == k) from[l] = t.lane[l];
    }
    moved[k] = permuted(cg, v[k], from, lanes);
  }
  for (uint32_t w = 0; w < count; w++) {
    const turn t = in_turn(count, w * lanes, lanes);
    out[w] = chain ? in_chain(cg, v, count, &t, lanes) : chosen(cg, moved, count, t.which, lanes);
  }
}

static void deinterleave_some(const ax_codegen *cg, LLVMValueRef *v, uint32_t count, uint32_t lanes, LLVMValueRef *out) {
  const bool chain = chains(v, count);
  for (uint32_t k = 0; k < count; k++) {
    const turn t = each_of(count, k, lanes);
    uint32_t which[most_lanes] = {0};
    int64_t from[most_lanes] = {0};
    for (uint32_t l = 0; l < lanes; l++) {
      which[t.lane[l]] = t.which[l];
      from[l] = t.lane[l];
    }
    out[k] = chain ? in_chain(cg, v, count, &t, lanes) : permuted(cg, chosen(cg, v, count, which, lanes), from, lanes);
  }
}

void ax_cg_interleave(const ax_codegen *cg, LLVMValueRef *values, uint32_t count, uint32_t lanes) {
  LLVMValueRef parts[AX_MOST_IN_TURN][AX_MOST_IN_TURN], one[AX_MOST_IN_TURN];
  const uint32_t by = least_factor(count);
  if (count == 1) return;
  for (uint32_t p = 0; p < by; p++) {
    for (uint32_t k = 0; k < count / by; k++) parts[p][k] = values[k * by + p];
    ax_cg_interleave(cg, parts[p], count / by, lanes);
  }
  for (uint32_t k = 0; k < count / by; k++) {
    for (uint32_t p = 0; p < by; p++) one[p] = parts[p][k];
    interleave_some(cg, one, by, lanes, &values[k * by]);
  }
}

void ax_cg_deinterleave(const ax_codegen *cg, LLVMValueRef *values, uint32_t count, uint32_t lanes) {
  LLVMValueRef parts[AX_MOST_IN_TURN][AX_MOST_IN_TURN], one[AX_MOST_IN_TURN];
  const uint32_t by = least_factor(count);
  if (count == 1) return;
  for (uint32_t k = 0; k < count / by; k++) {
    deinterleave_some(cg, &values[k * by], by, lanes, one);
    for (uint32_t p = 0; p < by; p++) parts[p][k] = one[p];
  }
  for (uint32_t p = 0; p < by; p++) {
    ax_cg_deinterleave(cg, parts[p], count / by, lanes);
    for (uint32_t k = 0; k < count / by; k++) values[k * by + p] = parts[p][k];
  }
}
