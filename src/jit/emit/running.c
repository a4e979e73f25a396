/* Kernels that run (plan/kernel.h) along their vector loop. The lanes of a vector are reduced up to each lane; what all vectors
   before it come to, the carry, is an accumulator:

     values      a  b   c    d
     prefixes    a  ab  abc  abcd
     stored      carry with each of them
     carry       with abcd, from the last lane

   So from one vector to the next there is one operation to wait for. Prefixes are made in pieces of 16 bytes first, inside of which
   lanes move in one cycle; then each piece takes what the pieces before it come to.

   Sums of many vectors keep their carry in f64, which is rounded each time it is used; those of f64 keep what rounding takes from
   the carry as well (Knuth's two-sum). The errors of a result are those of some eight additions then, however many numbers there
   are. */
#include "jit/emit/nest.h"

static bool keeps_errors(const ax_nest *nest, uint32_t store) {
  const ax_nest_schedule *s = nest->schedule;
  return s->shape == AX_NEST_LANES && s->wide && s->kernel->stores[store].reduce == AX_SCALAR_ADD &&
         ax_nest_store_dtype(nest, store) == AX_F64;
}

uint32_t ax_nest_running_sums(const ax_nest *nest, uint32_t store) { return keeps_errors(nest, store) ? 2 : 1; }

/* Combines two values of the contributions' dtype. */
static LLVMValueRef combined(ax_nest *nest, uint32_t store, LLVMValueRef a, LLVMValueRef b) {
  const ax_scalar reduce = nest->schedule->kernel->stores[store].reduce;
  return ax_cg_combine(&nest->cg, reduce, ax_nest_contribution_dtype(nest, store), a, b, nest->schedule->lanes);
}

/* Each lane has what was `by` lanes before it in its piece, or the identity. Pieces are `piece` lanes long. */
static LLVMValueRef moved(ax_nest *nest, uint32_t store, LLVMValueRef value, int64_t by, int64_t piece) {
  const int64_t lanes = nest->schedule->lanes;
  const ax_scalar reduce = nest->schedule->kernel->stores[store].reduce;
  LLVMValueRef none = ax_cg_identity(&nest->cg, reduce, ax_nest_contribution_dtype(nest, store), (uint32_t)lanes);
  int64_t from[64];
  for (int64_t l = 0; l < lanes; l++) from[l] = l % piece < by ? lanes + l : l - by;
  return ax_cg_shuffle(&nest->cg, value, none, from, (uint32_t)lanes);
}

/* Combines, for each lane, the pieces before its own. Up to four pieces are moved side by side. */
static LLVMValueRef pieces_before(ax_nest *nest, uint32_t store, LLVMValueRef upto, int64_t piece) {
  const int64_t lanes = nest->schedule->lanes;
  int64_t last[64];
  for (int64_t l = 0; l < lanes; l++) last[l] = l / piece * piece + piece - 1;
  LLVMValueRef totals = ax_cg_shuffle(&nest->cg, upto, NULL, last, (uint32_t)lanes);
  LLVMValueRef before = moved(nest, store, totals, piece, lanes);
  if (lanes <= 4 * piece) {
    LLVMValueRef two = lanes > 2 * piece ? moved(nest, store, totals, 2 * piece, lanes) : NULL,
                 three = lanes > 2 * piece ? moved(nest, store, totals, 3 * piece, lanes) : NULL;
    return two == NULL ? before : combined(nest, store, combined(nest, store, three, two), before);
  }
  for (int64_t by = piece; by < lanes - piece; by *= 2)
    before = combined(nest, store, moved(nest, store, before, by, lanes), before);
  return before;
}

static LLVMValueRef prefixes(ax_nest *nest, uint32_t store, LLVMValueRef value) {
  enum { piece_bytes = 16 };
  const int64_t lanes = nest->schedule->lanes;
  const size_t bytes = ax_dtype_bytes(ax_cg_accumulator(ax_nest_contribution_dtype(nest, store), false));
  const int64_t piece = lanes < (int64_t)(piece_bytes / bytes) ? lanes : (int64_t)(piece_bytes / bytes);
  for (int64_t by = 1; by < piece; by *= 2) value = combined(nest, store, moved(nest, store, value, by, piece), value);
  return piece == lanes ? value : combined(nest, store, pieces_before(nest, store, value, piece), value);
}

/* The carry in the contributions' dtype, in all lanes. */
static LLVMValueRef carried(ax_nest *nest, uint32_t store) {
  LLVMBuilderRef b = nest->cg.builder;
  LLVMValueRef carry = *ax_nest_accumulator(nest, store, 0);
  if (ax_nest_widens(nest, store)) carry = ax_cg_convert(&nest->cg, AX_F64, AX_F32, carry, 1);
  if (keeps_errors(nest, store)) {
    LLVMValueRef lacks = *ax_nest_accumulator(nest, store, 1), exact = LLVMBuildFAdd(b, carry, lacks, "");
    carry = LLVMBuildSelect(b, LLVMBuildFCmp(b, LLVMRealORD, lacks, lacks, ""), exact, carry, ""); /* an infinite sum's is NaN */
  }
  return ax_cg_broadcast(&nest->cg, carry, nest->schedule->lanes);
}

/* carry + more, and what the sum lacks. */
static void add_exactly(ax_nest *nest, uint32_t store, LLVMValueRef more) {
  LLVMBuilderRef b = nest->cg.builder;
  LLVMValueRef *carry = ax_nest_accumulator(nest, store, 0), *lacks = ax_nest_accumulator(nest, store, 1);
  LLVMValueRef sum = LLVMBuildFAdd(b, *carry, more, ""), added = LLVMBuildBinOp(b, LLVMFSub, sum, *carry, "");
  LLVMValueRef first = LLVMBuildBinOp(b, LLVMFSub, *carry, LLVMBuildBinOp(b, LLVMFSub, sum, added, ""), ""),
               second = LLVMBuildBinOp(b, LLVMFSub, more, added, "");
  *lacks = LLVMBuildFAdd(b, *lacks, LLVMBuildFAdd(b, first, second, ""), "");
  *carry = sum;
}

static void add_to_carry(ax_nest *nest, uint32_t store, LLVMValueRef more) {
  LLVMValueRef *carry = ax_nest_accumulator(nest, store, 0);
  if (keeps_errors(nest, store)) {
    add_exactly(nest, store, more);
    return;
  }
  if (ax_nest_widens(nest, store)) more = ax_cg_convert(&nest->cg, AX_F32, AX_F64, more, 1);
  *carry = ax_nest_combine(nest, store, *carry, more, 1);
}

/* Stores a value of the contributions' dtype. */
static void store_value(ax_nest *nest, uint32_t store, LLVMValueRef value) {
  const uint32_t lanes = nest->schedule->lanes, access = nest->schedule->kernel->expr_count + store;
  if (!ax_nest_widens(nest, store)) ax_nest_store_sum(nest, store, value, 0, lanes);
  else ax_nest_store(nest, access, ax_cg_round(&nest->cg, ax_nest_store_dtype(nest, store), value, lanes), lanes, 0);
}

void ax_nest_run_along(ax_nest *nest, uint32_t store) {
  LLVMValueRef upto = prefixes(nest, store, ax_nest_contribution(nest, store, 0));
  LLVMValueRef last = ax_cg_i64(&nest->cg, nest->schedule->lanes - 1);
  store_value(nest, store, combined(nest, store, carried(nest, store), upto));
  add_to_carry(nest, store, LLVMBuildExtractElement(nest->cg.builder, upto, last, ""));
}
