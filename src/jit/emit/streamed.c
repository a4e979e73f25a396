/* Stores past the caches. They write whole lines, so a line need not be fetched before it is overwritten. Along rows (LANES) they
   begin at each row's first whole line (walk.c), so a row must be long beside the two partial lines at its ends, if it has some.
   Transposed squares are stored in lines, or in the usual way where vectors do not begin with lines (emit.c), or by a function
   (turned.c). The processor may delay such stores: a function that has some ends with a fence. */
#include "jit/emit/walk.h"
#include "machine/caches.h"

#if defined(__x86_64__)
enum { here = true, line = AX_LINE_BYTES };
#else
enum { here = false, line = AX_LINE_BYTES }; /* the fence is x86's */
#endif

/* Whether every row begins with a line, if the first one does. */
static bool rows_begin_lines(const ax_nest_schedule *s) {
  const ax_nest_access *to = ax_nest_schedule_store(s, 0);
  const int64_t bytes = (int64_t)ax_dtype_bytes(s->kernel->slots[to->slot].dtype);
  if (bytes * to->offset % line != 0) return false;
  for (uint32_t l = 0; l < s->loop_count; l++)
    if (l != s->vector && (bytes * to->stride[l] % line != 0 || bytes * to->uneven[l] % line != 0)) return false;
  return true;
}

bool ax_nest_schedule_stores_lines(const ax_nest_schedule *s) {
  const uint32_t slot = ax_nest_schedule_store(s, 0)->slot;
  return ax_dtype_bytes(s->kernel->slots[slot].dtype) * s->lanes % line == 0 && rows_begin_lines(s);
}

bool ax_nest_schedule_can_stream(const ax_nest_schedule *s) {
  enum { least_run = 1024, least_whole_run = 256, least_vector = 16 };
  const int64_t least = rows_begin_lines(s) ? least_whole_run : least_run;
  const ax_nest_access *to = ax_nest_schedule_store(s, 0);
  const int64_t bytes = (int64_t)ax_dtype_bytes(s->kernel->slots[to->slot].dtype);
  if (!here || !s->kernel->streams || s->running || to->stride[s->vector] != 1) return false;
  if (s->shape == AX_NEST_TRANSPOSE) return s->called || ax_nest_schedule_stores_lines(s);
  return s->shape == AX_NEST_LANES && bytes * s->lanes >= least_vector && bytes * s->loops[s->vector].extent >= least;
}

/* The address, as an integer, that the first store writes at index `at` of the vector loop. */
static LLVMValueRef place_of(ax_nest *nest, LLVMValueRef at) {
  const uint32_t store = nest->schedule->kernel->expr_count;
  LLVMValueRef place = ax_nest_advance(nest, ax_nest_element(nest, store), ax_nest_pointer(nest, store), at);
  return LLVMBuildCast(nest->cg.builder, LLVMPtrToInt, place, LLVMInt64TypeInContext(nest->cg.context), "");
}

LLVMValueRef ax_nest_steps_to_line(ax_nest *nest, LLVMValueRef from) {
  LLVMBuilderRef b = nest->cg.builder;
  const ax_nest_schedule *s = nest->schedule;
  const uint32_t bytes = (uint32_t)ax_dtype_bytes(s->kernel->slots[ax_nest_schedule_store(s, 0)->slot].dtype);
  LLVMValueRef before = LLVMBuildAnd(b, LLVMBuildNeg(b, place_of(nest, from), ""), ax_nest_i64(nest, line - 1), "");
  return LLVMBuildLShr(b, before, ax_nest_i64(nest, __builtin_ctz(bytes)), "");
}

LLVMValueRef ax_nest_begins_line(ax_nest *nest, LLVMValueRef at) {
  LLVMValueRef after = LLVMBuildAnd(nest->cg.builder, place_of(nest, at), ax_nest_i64(nest, line - 1), "");
  return LLVMBuildICmp(nest->cg.builder, LLVMIntEQ, after, ax_nest_i64(nest, 0), "");
}

void ax_nest_mark_streamed(ax_nest *nest, LLVMValueRef store, uint32_t bytes) {
  static const char kind[] = "nontemporal";
  LLVMContextRef context = nest->cg.context;
  LLVMMetadataRef one = LLVMValueAsMetadata(LLVMConstInt(LLVMInt32TypeInContext(context), 1, false));
  LLVMMetadataRef list = LLVMMDNodeInContext2(context, &one, 1);
  LLVMSetAlignment(store, bytes);
  LLVMSetMetadata(store, LLVMGetMDKindIDInContext(context, kind, sizeof kind - 1), LLVMMetadataAsValue(context, list));
}
