/* Dynamic starts: indices that the kernel itself computes, as of a dynamic_slice or a look-up, and that are clamped. One is added to an
   access's address as soon as it is known: at level 0 if it depends on no loop; at the level of the innermost loop that it depends on;
   and if it differs between lanes or instances, by each load. */
#include "jit/emit/nest.h"
#include "plan/kernel_range.h"

static LLVMValueRef broadcast_number(const ax_nest *nest, uint32_t bits, int64_t value, uint32_t lanes) {
  return ax_cg_broadcast(&nest->cg, LLVMConstInt(ax_cg_int(&nest->cg, bits, 1), (uint64_t)value, true), lanes);
}

/* The node that a start of 64 bits was widened from, if that has 32; else the start. */
static ax_ex before_widening(const ax_loop_kernel *kernel, ax_ex start) {
  const ax_expr *expr = &kernel->exprs[start];
  return expr->op == AX_SCALAR_CONVERT && kernel->exprs[expr->arg[0]].dtype == AX_S32 ? expr->arg[0] : start;
}

/* clamp(start, 0, limit), of which what its range tells is left out. */
static LLVMValueRef clamp(ax_nest *nest, LLVMValueRef start, ax_integers range, int64_t limit, uint32_t bits, uint32_t lanes) {
  LLVMTypeRef type = LLVMTypeOf(start);
  if (!range.is || range.low < 0)
    start = ax_cg_intrinsic(&nest->cg, "llvm.smax", &type, 1, (LLVMValueRef[]){start, broadcast_number(nest, bits, 0, lanes)}, 2);
  if (!range.is || range.high > limit)
    start =
        ax_cg_intrinsic(&nest->cg, "llvm.smin", &type, 1, (LLVMValueRef[]){start, broadcast_number(nest, bits, limit, lanes)}, 2);
  return start;
}

static bool is_clamped_aside(const ax_clamped_starts *known, LLVMValueRef value) {
  for (uint32_t i = 0; i < AX_COUNT(known->starts); i++)
    if (known->starts[i].aside && known->starts[i].clamped == value) return true;
  return false;
}

/* Whether a number is made, by few operations, of one that a loop hands on from step to step, or that is looked up by such a one. */
static bool is_handed_on(const ax_clamped_starts *known, LLVMValueRef value, uint32_t operations) {
  if (LLVMIsAPHINode(value) != NULL) return true;
  if (operations == 0 || LLVMIsAInstruction(value) == NULL || LLVMIsACallInst(value) != NULL) return false;
  if (LLVMIsALoadInst(value) != NULL) {
    LLVMValueRef address = LLVMGetOperand(value, 0),
                 index = LLVMIsAGetElementPtrInst(address) != NULL ? LLVMGetOperand(address, 1) : NULL;
    if (index != NULL && LLVMIsAZExtInst(index) != NULL) index = LLVMGetOperand(index, 0);
    return index != NULL && is_clamped_aside(known, index);
  }
  for (int i = 0; i < LLVMGetNumOperands(value); i++)
    if (is_handed_on(known, LLVMGetOperand(value, (unsigned)i), operations - 1)) return true;
  return false;
}

/* The same of one start that the step before has found, so that each step waits for it. It is inside nearly always, which the processor
   foresees, and goes on; where it is now inside and now outside, by chance, a step takes longer than it would. A start that counts from
   the array's end may well come by chance, and is made one that counts from its beginning without a branch. */
static LLVMValueRef clamp_aside(ax_nest *nest, LLVMValueRef start, ax_integers range, int64_t limit, uint32_t bits) {
  LLVMBuilderRef b = nest->cg.builder;
  LLVMValueRef values[] = {start, NULL};
  LLVMBasicBlockRef from[] = {LLVMGetInsertBlock(b), LLVMAppendBasicBlockInContext(nest->cg.context, nest->cg.function, "outside")};
  LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(nest->cg.context, nest->cg.function, "clamped");
  LLVMValueRef last = LLVMConstInt(ax_cg_int(&nest->cg, bits, 1), (uint64_t)limit, false);
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntULE, values[0], last, ""), after, from[1]);
  LLVMPositionBuilderAtEnd(b, from[1]);
  values[1] = clamp(nest, start, range, limit, bits, 1);
  LLVMBuildBr(b, after);
  LLVMPositionBuilderAtEnd(b, after);
  LLVMValueRef clamped = LLVMBuildPhi(b, LLVMTypeOf(start), "");
  LLVMAddIncoming(clamped, values, from, 2);
  return clamped;
}

/* The same of one start, which kernels of a fused loop and accesses of a kernel may have in common. */
static LLVMValueRef clamp_once(ax_nest *nest, LLVMValueRef start, ax_integers range, int64_t limit, uint32_t bits) {
  ax_clamped_starts *known = nest->inside != NULL ? nest->inside->clamped : NULL;
  LLVMBasicBlockRef block = LLVMGetInsertBlock(nest->cg.builder);
  for (uint32_t i = 0; known != NULL && i < AX_COUNT(known->starts); i++)
    if (known->starts[i].start == start && known->starts[i].limit == limit && known->starts[i].block == block)
      return known->starts[i].clamped;
  const bool open = !range.is || (range.low < 0 && range.high > limit),
             aside = known != NULL && open && is_handed_on(known, start, 4);
  LLVMValueRef made = aside ? clamp_aside(nest, start, range, limit, bits) : clamp(nest, start, range, limit, bits, 1);
  if (known == NULL) return made;
  for (uint32_t i = 0; i < AX_COUNT(known->starts); i++)
    if (known->starts[i].block == block) known->starts[i].block = LLVMGetInsertBlock(nest->cg.builder); /* it leads there alone */
  known->starts[known->next++ % AX_COUNT(known->starts)] =
      (ax_clamped_start){LLVMGetInsertBlock(nest->cg.builder), start, made, limit, aside};
  return made;
}

/* The elements by which a dynamic start moves an access, in so many bits: clamp(start, 0, limit) * by. In 32, twice as many lanes
   are done at once. Lanes may not exist, and then be beyond what the start's range says. */
static LLVMValueRef clamped(ax_nest *nest, const ax_position *at, int64_t by, uint32_t instance, uint32_t lanes, uint32_t bits) {
  const ax_loop_kernel *kernel = nest->schedule->kernel;
  const ax_ex node = at->limit <= INT32_MAX ? before_widening(kernel, at->dynamic) : at->dynamic;
  const uint32_t has = node != at->dynamic ? 32 : 64;
  LLVMValueRef start = ax_nest_value(nest, node, instance, lanes);
  start = lanes > 1 ? clamp(nest, start, (ax_integers){.is = false}, at->limit, has, lanes)
                    : clamp_once(nest, start, ax_kernel_range(kernel, node), at->limit, has);
  if (bits < has) start = LLVMBuildTrunc(nest->cg.builder, start, ax_cg_int(&nest->cg, bits, lanes), "");
  if (bits > has) start = LLVMBuildCast(nest->cg.builder, LLVMZExt, start, ax_cg_int(&nest->cg, bits, lanes), "");
  return by == 1 ? start : LLVMBuildMul(nest->cg.builder, start, broadcast_number(nest, bits, by, lanes), "");
}

bool ax_nest_start_is_added_by_load(const ax_nest_schedule *schedule, uint64_t deps) {
  return ((deps >> schedule->vector | deps >> schedule->unrolled) & 1) != 0;
}

LLVMValueRef ax_nest_add_starts(ax_nest *nest, uint32_t access, uint32_t level, uint32_t instance, uint32_t lanes, uint32_t bits,
                               LLVMValueRef sum) {
  const ax_nest_schedule *schedule = nest->schedule;
  const ax_nest_access *a = &schedule->accesses[access];
  const ax_slot *slot = &schedule->kernel->slots[a->slot];
  int64_t pitch = 1;
  for (uint32_t d = slot->rank; d-- > 0; pitch *= slot->dims[d]) {
    if (a->at[d].dynamic == AX_NONE) continue;
    uint64_t deps = schedule->deps[a->at[d].dynamic];
    if ((ax_nest_start_is_added_by_load(schedule, deps) ? AX_NONE : ax_nest_schedule_level(deps)) != level) continue;
    LLVMValueRef start = clamped(nest, &a->at[d], pitch, instance, lanes, bits);
    sum = sum == NULL ? start : LLVMBuildAdd(nest->cg.builder, sum, start, "");
  }
  return sum;
}
