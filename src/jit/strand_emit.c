/* Strands to code. Every kernel is emitted where it stands. What is held is a value that goes along: where paths meet, after a branch and at
   the head of a loop, each that some path changes gets a phi. */
#include "jit/strand_emit.h"

#include <string.h>

#include "jit/nest.h"

typedef struct writer {
  ax_codegen cg;
  ax_arena *arena;
  const ax_strand *strand;
  LLVMValueRef places, coordinates;
  LLVMValueRef *bases;  /* by place: its address */
  LLVMValueRef *values; /* by place that is held: what it is now */
  LLVMValueRef *index;  /* by number of LOOP: its iteration */
  uint32_t *number;     /* by step that is a LOOP: its number */
  bool failed;          /* for lack of memory */
} writer;

static LLVMValueRef i64(const writer *w, int64_t value) { return ax_cg_i64(&w->cg, value); }
static LLVMBasicBlockRef new_block(const writer *w) { return LLVMAppendBasicBlockInContext(w->cg.context, w->cg.function, ""); }
static LLVMTypeRef held_type(const writer *w, uint32_t place) { return ax_nest_held_type(&w->cg, w->strand->places[place].dtype); }

/* --- Steps --- */

static bool opens(const ax_strand_step *step) { return step->kind == AX_STRAND_LOOP || step->kind == AX_STRAND_BRANCH; }

/* The END of what a step opens, or the TEST, CASE or END that ends what begins at `at`. */
static uint32_t part_end(const writer *w, uint32_t at, bool whole) {
  for (uint32_t depth = 0;; at++) {
    const ax_strand_step *step = &w->strand->steps[at];
    if (depth == 0 && (step->kind == AX_STRAND_END || (!whole && (step->kind == AX_STRAND_CASE || step->kind == AX_STRAND_TEST)))) return at;
    if (step->kind == AX_STRAND_END) depth--;
    if (opens(step)) depth++;
  }
}

/* By place: whether a step of begin .. end changes what is held there. NULL: no memory. */
static bool *changed(writer *w, uint32_t begin, uint32_t end) {
  bool *is = ax_arena_alloc(w->arena, w->strand->place_count);
  for (uint32_t i = begin; is != NULL && i < end; i++) {
    const ax_strand_step *step = &w->strand->steps[i];
    for (uint32_t s = 0; step->kind == AX_STRAND_KERNEL && s < step->kernel->store_count; s++) {
      uint32_t place = step->operands[step->kernel->stores[s].slot].place;
      is[place] = is[place] || w->strand->places[place].held;
    }
  }
  if (is == NULL) w->failed = true;
  return is;
}

static bool uses_index(const writer *w, uint32_t begin, uint32_t end, uint32_t loop) {
  for (uint32_t i = begin; i < end; i++)
    for (uint32_t k = 0; k < ax_strand_operands(&w->strand->steps[i]); k++)
      if (w->strand->steps[i].operands[k].loop == loop) return true;
  return false;
}

static LLVMValueRef *copy_values(writer *w) {
  LLVMValueRef *copy = ax_arena_copy(w->arena, w->values, w->strand->place_count * sizeof copy[0]);
  if (copy == NULL) w->failed = true;
  return copy;
}

/* --- Operands --- */

static LLVMValueRef address(writer *w, const ax_strand_operand *operand) {
  LLVMValueRef base = w->bases[operand->place];
  if (operand->loop == AX_NONE || operand->step == 0) return base;
  LLVMValueRef index = w->index[operand->loop];
  int64_t step = operand->step;
  bool scales = step == 1 || step == 2 || step == 4 || step == 8; /* as the processor's addresses do */
  if (!scales) index = LLVMBuildMul(w->cg.builder, index, i64(w, step), "");
  return LLVMBuildGEP2(w->cg.builder, ax_cg_int(&w->cg, scales ? 8 * (uint32_t)step : 8, 1), base, &index, 1, "");
}

static LLVMValueRef scalar(writer *w, const ax_strand_operand *operand) {
  const ax_strand_place *place = &w->strand->places[operand->place];
  if (place->held) return w->values[operand->place];
  LLVMValueRef memory = LLVMBuildLoad2(w->cg.builder, ax_cg_memory(&w->cg, place->dtype, 1), address(w, operand), "");
  return ax_cg_to_register(&w->cg, place->dtype, memory, 1);
}

static ax_status emit_kernel(writer *w, const ax_strand_step *step) {
  LLVMValueRef bases[AX_MAX_SLOTS], *held[AX_MAX_SLOTS];
  for (uint32_t k = 0; k < step->kernel->slot_count; k++) {
    uint32_t place = step->operands[k].place;
    held[k] = w->strand->places[place].held ? &w->values[place] : NULL;
    bases[k] = held[k] != NULL ? w->places : address(w, &step->operands[k]);
  }
  return ax_nest_emit_inside(w->arena, &w->cg, step->kernel, &(ax_nest_inside){w->coordinates, bases, held});
}

/* --- Loops --- */

static LLVMValueRef add_phi(const writer *w, LLVMValueRef first, LLVMBasicBlockRef from) {
  LLVMValueRef phi = LLVMBuildPhi(w->cg.builder, LLVMTypeOf(first), "");
  LLVMAddIncoming(phi, &first, &from, 1);
  return phi;
}

static ax_status emit_steps(writer *w, uint32_t at);

typedef struct opened {
  LLVMBasicBlockRef head;
  LLVMValueRef *phis; /* by place: of what changes; NULL */
  LLVMValueRef index; /* NULL: nobody asks */
} opened;

static opened open_loop(writer *w, uint32_t at, uint32_t end) {
  LLVMBasicBlockRef before = LLVMGetInsertBlock(w->cg.builder);
  const bool *changes = changed(w, at, end);
  opened l = {.head = new_block(w), .phis = ax_arena_alloc(w->arena, w->strand->place_count * sizeof l.phis[0])};
  w->failed = w->failed || l.phis == NULL;
  if (w->failed) return l;
  LLVMBuildBr(w->cg.builder, l.head);
  LLVMPositionBuilderAtEnd(w->cg.builder, l.head);
  if (w->strand->steps[at].trips >= 0 || uses_index(w, at, end, w->number[at])) l.index = w->index[w->number[at]] = add_phi(w, i64(w, 0), before);
  for (uint32_t p = 0; p < w->strand->place_count; p++)
    if (changes[p]) w->values[p] = l.phis[p] = add_phi(w, w->values[p], before);
  return l;
}

/* `next`: of the index. */
static void close_phis(writer *w, const opened *l, LLVMValueRef next) {
  LLVMBasicBlockRef latch = LLVMGetInsertBlock(w->cg.builder);
  if (next != NULL) LLVMAddIncoming(l->index, &next, &latch, 1);
  for (uint32_t p = 0; p < w->strand->place_count; p++)
    if (l->phis[p] != NULL) LLVMAddIncoming(l->phis[p], &w->values[p], &latch, 1);
}

static LLVMValueRef next_index(writer *w, const opened *l) {
  return l->index == NULL ? NULL : LLVMBuildAdd(w->cg.builder, l->index, i64(w, 1), "");
}

static ax_status emit_trips(writer *w, uint32_t at, uint32_t end) {
  opened l = open_loop(w, at, end);
  if (w->failed) return ax_out_of_memory(0);
  AX_TRY(emit_steps(w, at + 1));
  LLVMBasicBlockRef after = new_block(w);
  LLVMValueRef next = next_index(w, &l);
  close_phis(w, &l, next);
  LLVMBuildCondBr(w->cg.builder, LLVMBuildICmp(w->cg.builder, LLVMIntSLT, next, i64(w, w->strand->steps[at].trips), ""), l.head, after);
  LLVMPositionBuilderAtEnd(w->cg.builder, after);
  return AX_OK;
}

static ax_status emit_while(writer *w, uint32_t at, uint32_t end) {
  opened l = open_loop(w, at, end);
  if (w->failed) return ax_out_of_memory(0);
  uint32_t test = part_end(w, at + 1, false);
  AX_TRY(emit_steps(w, at + 1));
  LLVMBasicBlockRef body = new_block(w), after = new_block(w);
  LLVMValueRef *left = copy_values(w);
  if (left == NULL) return ax_out_of_memory(0);
  LLVMBuildCondBr(w->cg.builder, scalar(w, w->strand->steps[test].operands), body, after);
  LLVMPositionBuilderAtEnd(w->cg.builder, body);
  AX_TRY(emit_steps(w, test + 1));
  close_phis(w, &l, next_index(w, &l));
  LLVMBuildBr(w->cg.builder, l.head);
  LLVMPositionBuilderAtEnd(w->cg.builder, after);
  memcpy(w->values, left, w->strand->place_count * sizeof left[0]);
  return AX_OK;
}

/* --- Branches --- */

static LLVMValueRef clamped(writer *w, LLVMValueRef index, uint32_t last) {
  LLVMTypeRef type = LLVMTypeOf(index);
  LLVMValueRef low[] = {index, LLVMConstNull(type)};
  LLVMValueRef high[] = {ax_cg_intrinsic(&w->cg, "llvm.smax", &type, 1, low, 2), LLVMConstInt(type, last, false)};
  return ax_cg_intrinsic(&w->cg, "llvm.smin", &type, 1, high, 2);
}

/* From the builder's block to that of each case. */
static void choose(writer *w, LLVMValueRef index, const LLVMBasicBlockRef *blocks, uint32_t count) {
  if (count == 1) {
    LLVMBuildBr(w->cg.builder, blocks[0]);
  } else if (count == 2) {
    LLVMBuildCondBr(w->cg.builder, LLVMBuildICmp(w->cg.builder, LLVMIntSGT, index, LLVMConstNull(LLVMTypeOf(index)), ""), blocks[1], blocks[0]);
  } else {
    LLVMValueRef chosen = LLVMBuildSwitch(w->cg.builder, clamped(w, index, count - 1), blocks[count - 1], count - 1);
    for (uint32_t k = 0; k + 1 < count; k++) LLVMAddCase(chosen, LLVMConstInt(LLVMTypeOf(index), k, false), blocks[k]);
  }
}

/* What some case changes, of what each has come to. */
static void meet(writer *w, const bool *changes, LLVMBasicBlockRef *from, LLVMValueRef *const *values, uint32_t count) {
  for (uint32_t p = 0; p < w->strand->place_count; p++) {
    if (!changes[p]) continue;
    LLVMValueRef phi = add_phi(w, values[0][p], from[0]);
    for (uint32_t k = 1; k < count; k++) LLVMAddIncoming(phi, &values[k][p], &from[k], 1);
    w->values[p] = phi;
  }
}

static ax_status emit_branch(writer *w, uint32_t at, uint32_t end) {
  const uint32_t count = w->strand->steps[at].count;
  LLVMBasicBlockRef *blocks = ax_arena_alloc(w->arena, count * sizeof blocks[0]), after;
  LLVMValueRef **values = ax_arena_alloc(w->arena, count * sizeof values[0]);
  const LLVMValueRef *before = copy_values(w);
  const bool *changes = changed(w, at, end);
  if (blocks == NULL || values == NULL || before == NULL || changes == NULL) return ax_out_of_memory(count * sizeof values[0]);
  for (uint32_t k = 0; k < count; k++) blocks[k] = new_block(w);
  after = new_block(w);
  choose(w, scalar(w, w->strand->steps[at].operands), blocks, count);
  for (uint32_t k = 0, step = at + 1; k < count; k++, step = part_end(w, step + 1, false)) { /* each begins with its CASE */
    LLVMPositionBuilderAtEnd(w->cg.builder, blocks[k]);
    memcpy(w->values, before, w->strand->place_count * sizeof before[0]);
    AX_TRY(emit_steps(w, step + 1));
    if ((values[k] = copy_values(w)) == NULL) return ax_out_of_memory(0);
    blocks[k] = LLVMGetInsertBlock(w->cg.builder);
    LLVMBuildBr(w->cg.builder, after);
  }
  LLVMPositionBuilderAtEnd(w->cg.builder, after);
  meet(w, changes, blocks, values, count);
  return AX_OK;
}

/* From `at` to what ends the part of a loop or branch that it is in, or to the end of the list. */
static ax_status emit_steps(writer *w, uint32_t at) {
  for (; at < w->strand->step_count; at++) {
    const ax_strand_step *step = &w->strand->steps[at];
    if (step->kind == AX_STRAND_KERNEL) {
      AX_TRY(emit_kernel(w, step));
      continue;
    }
    if (!opens(step)) break;
    uint32_t end = part_end(w, at + 1, true);
    if (step->kind == AX_STRAND_BRANCH) AX_TRY(emit_branch(w, at, end));
    else if (step->trips < 0) AX_TRY(emit_while(w, at, end));
    else if (step->trips > 0) AX_TRY(emit_trips(w, at, end));
    at = end;
  }
  return AX_OK;
}

/* --- The function --- */

static bool allocate(writer *w) {
  const size_t places = w->strand->place_count, steps = w->strand->step_count;
  w->bases = ax_arena_alloc(w->arena, places * sizeof w->bases[0]);
  w->values = ax_arena_alloc(w->arena, places * sizeof w->values[0]);
  w->index = ax_arena_alloc(w->arena, steps * sizeof w->index[0]);
  w->number = ax_arena_alloc(w->arena, steps * sizeof w->number[0]);
  if (w->bases == NULL || w->values == NULL || w->index == NULL || w->number == NULL) return false;
  for (uint32_t i = 0, loops = 0; i < steps; i++)
    if (w->strand->steps[i].kind == AX_STRAND_LOOP) w->number[i] = loops++;
  return true;
}

static void load_places(writer *w) {
  LLVMBuilderRef b = w->cg.builder;
  LLVMTypeRef pointer = LLVMPointerTypeInContext(w->cg.context, 0);
  for (uint32_t p = 0; p < w->strand->place_count; p++) {
    const ax_strand_place *place = &w->strand->places[p];
    LLVMValueRef index = i64(w, p);
    w->bases[p] = LLVMBuildLoad2(b, pointer, LLVMBuildGEP2(b, pointer, w->places, &index, 1, ""), "");
    if (!place->held) continue;
    w->values[p] = LLVMConstNull(held_type(w, p));
    if (!place->needed) continue;
    w->values[p] = LLVMBuildLoad2(b, ax_cg_memory(&w->cg, place->dtype, 1), w->bases[p], "");
    if (place->dtype == AX_BOOL) w->values[p] = ax_cg_to_register(&w->cg, AX_BOOL, w->values[p], 1);
  }
}

static void store_places(writer *w) {
  for (uint32_t p = 0; p < w->strand->place_count; p++) {
    const ax_strand_place *place = &w->strand->places[p];
    if (!place->held || !place->wanted) continue;
    LLVMValueRef value = place->dtype == AX_BOOL ? ax_cg_to_memory(&w->cg, AX_BOOL, w->values[p], 1) : w->values[p];
    LLVMBuildStore(w->cg.builder, value, w->bases[p]);
  }
}

ax_status ax_strand_emit(ax_arena *arena, const ax_codegen *cg, const ax_strand *strand, const char *name) {
  writer w = {.cg = *cg, .arena = arena, .strand = strand};
  if (!allocate(&w)) return ax_out_of_memory(strand->step_count * sizeof w.number[0]);
  ax_cg_begin_function(&w.cg, name);
  w.places = LLVMGetParam(w.cg.function, 0);
  w.coordinates = LLVMGetParam(w.cg.function, 1);
  w.cg.entry = LLVMGetInsertBlock(w.cg.builder);
  LLVMBasicBlockRef first = new_block(&w);
  LLVMPositionBuilderAtEnd(w.cg.builder, first);
  load_places(&w);
  ax_status status = emit_steps(&w, 0);
  if (status != AX_OK) return status;
  store_places(&w);
  LLVMBuildRetVoid(w.cg.builder);
  LLVMPositionBuilderAtEnd(w.cg.builder, w.cg.entry);
  LLVMBuildBr(w.cg.builder, first);
  return AX_OK;
}
