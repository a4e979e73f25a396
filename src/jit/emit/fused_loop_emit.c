/* Emits fused loops (nest/fused_loop.h has their steps, and says what a place is). The code of a kernel stands where its step is.
   Places that are held become SSA values: where paths meet (after a branch, at the head of a loop), each value that some path
   changes gets a phi. */
#include "jit/emit/fused_loop_emit.h"

#include <string.h>

#include "jit/emit/nest.h"
#include "jit/emit/windows.h"
#include "jit/nest/elements.h"

/* Limits on the vectors that hold one place, and that hold all places together: kernels need registers for their own values too. */
enum { most_vectors = 8, most_in_all = 16, most_values = AX_FUSED_LOOP_ELEMENTS };

typedef struct holding { /* how a place is held */
  uint32_t vectors, lanes; /* vectors 0: in memory; lanes 1: element by element; UINT32_MAX, while it is decided: never as vectors */
} holding;

typedef struct writer {
  ax_codegen cg;
  ax_arena *arena;
  const ax_fused_loop *fused_loop;
  LLVMValueRef places, coordinates;
  ax_nest_schedule **schedules; /* by step that is a KERNEL; NULL: it has nothing to do */
  holding *held;        /* by place */
  LLVMValueRef *bases;  /* by place: its address */
  LLVMValueRef *values; /* [place][most_values]: what it is now */
  LLVMValueRef *index;  /* by number of LOOP: its iteration */
  uint32_t *number;     /* by step that is a LOOP: its number */
  ax_clamped_starts clamped;
  bool failed;          /* for lack of memory */
} writer;

/* A *value* below is an index into w->values: one vector, or one element, of a place. */
static LLVMValueRef i64(const writer *w, int64_t value) { return ax_cg_i64(&w->cg, value); }
static LLVMBasicBlockRef new_block(const writer *w) { return LLVMAppendBasicBlockInContext(w->cg.context, w->cg.function, ""); }
static size_t value_count(const writer *w) { return (size_t)w->fused_loop->place_count * most_values; }
static bool is_held(const writer *w, size_t value) { return value % most_values < w->held[value / most_values].vectors; }

/* --- Steps --- */

static bool opens(const ax_fused_loop_step *step) { return step->kind == AX_FUSED_LOOP_LOOP || step->kind == AX_FUSED_LOOP_BRANCH; }

/* Finds the step that ends the steps from `at` on. `whole`: the END of the loop or branch that they are in. Otherwise the TEST,
   CASE or END that ends their part of it, if that comes first. */
static uint32_t part_end(const writer *w, uint32_t at, bool whole) {
  for (uint32_t depth = 0;; at++) {
    const ax_fused_loop_step *step = &w->fused_loop->steps[at];
    if (depth == 0 &&
        (step->kind == AX_FUSED_LOOP_END || (!whole && (step->kind == AX_FUSED_LOOP_CASE || step->kind == AX_FUSED_LOOP_TEST))))
      return at;
    if (step->kind == AX_FUSED_LOOP_END) depth--;
    if (opens(step)) depth++;
  }
}

/* Returns for each place whether a step from begin to end stores to it and it is held. NULL: out of memory. */
static bool *changed(writer *w, uint32_t begin, uint32_t end) {
  bool *is = ax_arena_alloc(w->arena, w->fused_loop->place_count);
  for (uint32_t i = begin; is != NULL && i < end; i++) {
    const ax_fused_loop_step *step = &w->fused_loop->steps[i];
    for (uint32_t s = 0; step->kind == AX_FUSED_LOOP_KERNEL && s < step->kernel->store_count; s++) {
      uint32_t place = step->operands[step->kernel->stores[s].slot].place;
      is[place] = is[place] || w->held[place].vectors > 0;
    }
  }
  if (is == NULL) w->failed = true;
  return is;
}

/* Whether a step from begin to end has an operand that moves with the LOOP of this number. */
static bool uses_index(const writer *w, uint32_t begin, uint32_t end, uint32_t loop) {
  for (uint32_t i = begin; i < end; i++)
    for (uint32_t k = 0; k < ax_fused_loop_operands(&w->fused_loop->steps[i]); k++)
      if (w->fused_loop->steps[i].operands[k].loop == loop) return true;
  return false;
}

static LLVMValueRef *copy_values(writer *w) {
  LLVMValueRef *copy = ax_arena_copy(w->arena, w->values, value_count(w) * sizeof copy[0]);
  if (copy == NULL) w->failed = true;
  return copy;
}

/* --- Operands --- */

static LLVMValueRef address(writer *w, const ax_fused_loop_operand *operand) {
  const ax_fused_loop_place *place = &w->fused_loop->places[operand->place];
  LLVMValueRef base = w->bases[operand->place], first = i64(w, operand->first);
  if (operand->first != 0) base = LLVMBuildGEP2(w->cg.builder, ax_cg_memory(&w->cg, place->dtype, 1), base, &first, 1, "");
  if (operand->loop == AX_NONE || operand->step == 0) return base;
  LLVMValueRef index = w->index[operand->loop];
  int64_t step = operand->step;
  bool scales = step == 1 || step == 2 || step == 4 || step == 8; /* the processor multiplies by these as part of an address */
  if (!scales) index = LLVMBuildMul(w->cg.builder, index, i64(w, step), "");
  return LLVMBuildGEP2(w->cg.builder, ax_cg_int(&w->cg, scales ? 8 * (uint32_t)step : 8, 1), base, &index, 1, "");
}

static LLVMValueRef scalar(writer *w, const ax_fused_loop_operand *operand) {
  const ax_fused_loop_place *place = &w->fused_loop->places[operand->place];
  if (w->held[operand->place].vectors > 0) return w->values[operand->place * most_values + operand->first];
  LLVMValueRef memory = LLVMBuildLoad2(w->cg.builder, ax_cg_memory(&w->cg, place->dtype, 1), address(w, operand), "");
  return ax_cg_to_register(&w->cg, place->dtype, memory, 1);
}

/* Whether the operand steps, over all trips of its loop, through more bytes than a cache near a core holds. */
static bool is_far(const writer *w, const ax_fused_loop_operand *operand) {
  for (uint32_t i = 0; operand->loop != AX_NONE && i < w->fused_loop->step_count; i++) {
    const ax_fused_loop_step *loop = &w->fused_loop->steps[i];
    if (loop->kind == AX_FUSED_LOOP_LOOP && w->number[i] == operand->loop)
      return operand->step > 0 && loop->trips >= ax_caches_here()->far_rows / operand->step;
  }
  return false;
}

static ax_status emit_kernel(writer *w, uint32_t at) {
  const ax_fused_loop_step *step = &w->fused_loop->steps[at];
  LLVMValueRef bases[AX_MAX_SLOTS], *held[AX_MAX_SLOTS];
  bool unrolled = false, far[AX_MAX_SLOTS];
  if (w->schedules[at] == NULL) return AX_OK;
  for (uint32_t k = 0; k < step->kernel->slot_count; k++) {
    uint32_t place = step->operands[k].place;
    held[k] = w->held[place].vectors > 0 ? &w->values[place * most_values + step->operands[k].first] : NULL;
    bases[k] = held[k] != NULL ? w->places : address(w, &step->operands[k]); /* the base of a held slot is never used */
    far[k] = is_far(w, &step->operands[k]);
    unrolled = unrolled || w->held[place].lanes > 1;
  }
  return ax_nest_emit_inside(w->arena, &w->cg, w->schedules[at],
                             &(ax_nest_inside){w->coordinates, bases, held, far, unrolled, &w->clamped});
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
  LLVMValueRef *phis; /* by value: its phi at the head; NULL: the loop does not change the value */
  LLVMValueRef index; /* the iteration's number, a phi; NULL: nothing needs it */
} opened;

/* Ends the builder's block with a jump to the head of a new loop, and emits the head's phis. The loop's steps are `at` to `end`. */
static opened open_loop(writer *w, uint32_t at, uint32_t end) {
  LLVMBasicBlockRef before = LLVMGetInsertBlock(w->cg.builder);
  const bool *changes = changed(w, at, end);
  opened l = {.head = new_block(w), .phis = ax_arena_alloc(w->arena, value_count(w) * sizeof l.phis[0])};
  w->failed = w->failed || l.phis == NULL;
  if (w->failed) return l;
  LLVMBuildBr(w->cg.builder, l.head);
  LLVMPositionBuilderAtEnd(w->cg.builder, l.head);
  if (w->fused_loop->steps[at].trips >= 0 || uses_index(w, at, end, w->number[at]))
    l.index = w->index[w->number[at]] = add_phi(w, i64(w, 0), before);
  for (size_t v = 0; v < value_count(w); v++)
    if (changes[v / most_values] && is_held(w, v)) w->values[v] = l.phis[v] = add_phi(w, w->values[v], before);
  return l;
}

/* Gives the loop's phis their second operands: the values at the end of an iteration. `next` is that of the index, or NULL. */
static void close_phis(writer *w, const opened *l, LLVMValueRef next) {
  LLVMBasicBlockRef latch = LLVMGetInsertBlock(w->cg.builder);
  if (next != NULL) LLVMAddIncoming(l->index, &next, &latch, 1);
  for (size_t v = 0; v < value_count(w); v++)
    if (l->phis[v] != NULL) LLVMAddIncoming(l->phis[v], &w->values[v], &latch, 1);
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
  LLVMBuildCondBr(w->cg.builder, LLVMBuildICmp(w->cg.builder, LLVMIntSLT, next, i64(w, w->fused_loop->steps[at].trips), ""), l.head,
                  after);
  LLVMPositionBuilderAtEnd(w->cg.builder, after);
  return AX_OK;
}

static ax_status emit_while(writer *w, uint32_t at, uint32_t end) {
  opened l = open_loop(w, at, end);
  if (w->failed) return ax_out_of_memory(0);
  uint32_t test = part_end(w, at + 1, false);
  AX_TRY(emit_steps(w, at + 1));
  LLVMBasicBlockRef body = new_block(w), after = new_block(w);
  LLVMValueRef *left = copy_values(w); /* the loop is left after its test, so these values hold behind it */
  if (left == NULL) return ax_out_of_memory(0);
  LLVMBuildCondBr(w->cg.builder, scalar(w, w->fused_loop->steps[test].operands), body, after);
  LLVMPositionBuilderAtEnd(w->cg.builder, body);
  AX_TRY(emit_steps(w, test + 1));
  close_phis(w, &l, next_index(w, &l));
  LLVMBuildBr(w->cg.builder, l.head);
  LLVMPositionBuilderAtEnd(w->cg.builder, after);
  memcpy(w->values, left, value_count(w) * sizeof left[0]);
  return AX_OK;
}

/* --- Branches --- */

static LLVMValueRef clamped(writer *w, LLVMValueRef index, uint32_t last) {
  LLVMTypeRef type = LLVMTypeOf(index);
  LLVMValueRef low[] = {index, LLVMConstNull(type)};
  LLVMValueRef high[] = {ax_cg_intrinsic(&w->cg, "llvm.smax", &type, 1, low, 2), LLVMConstInt(type, last, false)};
  return ax_cg_intrinsic(&w->cg, "llvm.smin", &type, 1, high, 2);
}

/* Ends the builder's block with a jump to the block of the case that the index chooses. An index out of range is clamped; with two
   cases, the comparison with 0 does that. */
static void choose(writer *w, LLVMValueRef index, const LLVMBasicBlockRef *blocks, uint32_t count) {
  if (count == 1) {
    LLVMBuildBr(w->cg.builder, blocks[0]);
  } else if (count == 2) {
    LLVMBuildCondBr(w->cg.builder, LLVMBuildICmp(w->cg.builder, LLVMIntSGT, index, LLVMConstNull(LLVMTypeOf(index)), ""), blocks[1],
                    blocks[0]);
  } else {
    LLVMValueRef chosen = LLVMBuildSwitch(w->cg.builder, clamped(w, index, count - 1), blocks[count - 1], count - 1);
    for (uint32_t k = 0; k + 1 < count; k++) LLVMAddCase(chosen, LLVMConstInt(LLVMTypeOf(index), k, false), blocks[k]);
  }
}

/* Joins the paths of a branch: each held value that some case changes becomes a phi of the cases' values. from[k] is the block in
   which case k ends, values[k] are the values there. */
static void meet(writer *w, const bool *changes, LLVMBasicBlockRef *from, LLVMValueRef *const *values, uint32_t count) {
  for (size_t v = 0; v < value_count(w); v++) {
    if (!changes[v / most_values] || !is_held(w, v)) continue;
    LLVMValueRef phi = add_phi(w, values[0][v], from[0]);
    for (uint32_t k = 1; k < count; k++) LLVMAddIncoming(phi, &values[k][v], &from[k], 1);
    w->values[v] = phi;
  }
}

static ax_status emit_branch(writer *w, uint32_t at, uint32_t end) {
  const uint32_t count = w->fused_loop->steps[at].count;
  LLVMBasicBlockRef *blocks = ax_arena_alloc(w->arena, count * sizeof blocks[0]), after;
  LLVMValueRef **values = ax_arena_alloc(w->arena, count * sizeof values[0]);
  const LLVMValueRef *before = copy_values(w);
  const bool *changes = changed(w, at, end);
  if (blocks == NULL || values == NULL || before == NULL || changes == NULL) return ax_out_of_memory(count * sizeof values[0]);
  for (uint32_t k = 0; k < count; k++) blocks[k] = new_block(w);
  after = new_block(w);
  choose(w, scalar(w, w->fused_loop->steps[at].operands), blocks, count);
  for (uint32_t k = 0, step = at + 1; k < count; k++, step = part_end(w, step + 1, false)) { /* each begins with its CASE */
    LLVMPositionBuilderAtEnd(w->cg.builder, blocks[k]);
    memcpy(w->values, before, value_count(w) * sizeof before[0]);
    AX_TRY(emit_steps(w, step + 1));
    if ((values[k] = copy_values(w)) == NULL) return ax_out_of_memory(0);
    blocks[k] = LLVMGetInsertBlock(w->cg.builder); /* from here on: the block in which the case ends */
    LLVMBuildBr(w->cg.builder, after);
  }
  LLVMPositionBuilderAtEnd(w->cg.builder, after);
  meet(w, changes, blocks, values, count);
  return AX_OK;
}

/* Emits the steps from `at` on, up to the TEST, CASE or END that ends the part of a loop or branch that they are in, or to the end
   of the list. A loop or branch among them is emitted whole. */
static ax_status emit_steps(writer *w, uint32_t at) {
  for (; at < w->fused_loop->step_count; at++) {
    const ax_fused_loop_step *step = &w->fused_loop->steps[at];
    if (step->kind == AX_FUSED_LOOP_KERNEL) {
      AX_TRY(emit_kernel(w, at));
      continue;
    }
    if (!opens(step)) break;
    uint32_t end = part_end(w, at + 1, true);
    if (step->kind == AX_FUSED_LOOP_BRANCH) AX_TRY(emit_branch(w, at, end));
    else if (step->trips < 0) AX_TRY(emit_while(w, at, end));
    else if (step->trips > 0) AX_TRY(emit_trips(w, at, end));
    at = end;
  }
  return AX_OK;
}

/* --- What is held --- */

/* Whether a run of the fused loop runs its step many times: loops around it have many trips, or nobody knows how many. */
static bool *steps_done_often(writer *w) {
  enum { many = 64 };
  const ax_fused_loop *f = w->fused_loop;
  bool *often = ax_arena_alloc(w->arena, f->step_count * sizeof often[0]);
  int64_t trips[AX_FUSED_LOOP_NESTED + 2] = {1}; /* by depth, of which the outermost loop's is 0 */
  uint32_t depth = 0;
  for (uint32_t i = 0; often != NULL && i < f->step_count; i++) {
    const ax_fused_loop_step *step = &f->steps[i];
    if (step->kind == AX_FUSED_LOOP_LOOP || step->kind == AX_FUSED_LOOP_BRANCH) {
      const int64_t own = step->kind == AX_FUSED_LOOP_BRANCH ? 1 : step->trips < 0 ? many : step->trips;
      trips[depth + 1] = trips[depth] >= many ? many : trips[depth] * ax_least(own, many);
      depth++;
    }
    if (step->kind == AX_FUSED_LOOP_END) depth--;
    often[i] = trips[depth] >= many;
  }
  return often;
}

/* Of the steps with kernels of which `which` is true; NULL: of all. */
static ax_status make_schedules(writer *w, const bool *often, const bool *which) {
  for (uint32_t i = 0; i < w->fused_loop->step_count; i++)
    if (w->fused_loop->steps[i].kind == AX_FUSED_LOOP_KERNEL && (which == NULL || which[i]))
      AX_TRY(ax_nest_schedule_inside(w->arena, w->fused_loop->steps[i].kernel, (ax_registers){w->cg.vector_bytes, w->cg.f16},
                                     often[i], &w->schedules[i]));
  return AX_OK;
}

/* Decides that a place is held as vectors of `lanes` lanes; 0: a kernel needs it in memory. If an earlier kernel takes it in
   vectors of another length, or it needs too many vectors, it is never held. */
static void hold(writer *w, uint32_t place, uint32_t lanes) {
  const uint32_t elems = w->fused_loop->places[place].elems;
  holding *h = &w->held[place];
  bool other = h->vectors > 0 && h->lanes != lanes;
  h->lanes = lanes;
  h->vectors = other || lanes == 0 ? 0 : (elems + lanes - 1) / lanes;
  if (h->vectors == 0 || h->vectors > most_vectors) *h = (holding){0, UINT32_MAX}; /* never */
}

/* Vectors that are partly empty would be read and written with masks, which before AVX-512 are slow for short elements. */
static bool fills(const writer *w, uint32_t place, uint32_t lanes) {
  const ax_fused_loop_place *p = &w->fused_loop->places[place];
  return p->elems % lanes == 0 || w->cg.vector_bytes == 64 || ax_dtype_bytes(p->dtype) >= 4;
}

/* Decides how the places that kernel `at` touches are held, except for those of one element. */
static void hold_vectors(writer *w, uint32_t at) {
  const ax_fused_loop_step *step = &w->fused_loop->steps[at];
  const ax_nest_schedule *schedule = w->schedules[at];
  for (uint32_t k = 0; schedule != NULL && k < step->kernel->slot_count; k++) {
    const uint32_t place = step->operands[k].place, elems = w->fused_loop->places[place].elems;
    if (elems < 2 || w->held[place].lanes == UINT32_MAX) continue;
    bool along = step->operands[k].first == 0 && ax_nest_walks_once(schedule, k, elems) && schedule->lanes > 1 &&
                 fills(w, place, schedule->lanes);
    hold(w, place, along ? schedule->lanes : 0);
  }
}

/* What a branch or a test reads is one element. Where it is one of several of its place, it is read from memory. */
static void leave_in_memory(writer *w, const ax_fused_loop_step *step) {
  const bool reads = step->kind == AX_FUSED_LOOP_BRANCH || step->kind == AX_FUSED_LOOP_TEST;
  if (reads && w->fused_loop->places[step->operands->place].elems > 1) hold(w, step->operands->place, 0);
}

static void choose_held(writer *w) {
  uint32_t vectors = 0;
  for (uint32_t p = 0; p < w->fused_loop->place_count; p++)
    if (w->fused_loop->places[p].elems == 1) w->held[p] = (holding){1, 1};
  for (uint32_t i = 0; i < w->fused_loop->step_count; i++) leave_in_memory(w, &w->fused_loop->steps[i]);
  for (uint32_t i = 0; i < w->fused_loop->step_count; i++)
    if (w->fused_loop->steps[i].kind == AX_FUSED_LOOP_KERNEL) hold_vectors(w, i);
  for (uint32_t p = 0; p < w->fused_loop->place_count; p++) {
    if (w->held[p].lanes > 1 && (vectors += w->held[p].vectors) > most_in_all) {
      vectors -= w->held[p].vectors;
      w->held[p].vectors = 0;
    }
    if (w->held[p].vectors == 0) w->held[p].lanes = 0;
  }
}

/* Holds small places that are left in memory element by element, where that is worth it. */
static ax_status hold_elements(writer *w, const bool *often) {
  const ax_fused_loop *f = w->fused_loop;
  bool *in_memory = ax_arena_alloc(w->arena, f->place_count), *held = ax_arena_alloc(w->arena, f->place_count),
       *changes = ax_arena_alloc(w->arena, f->step_count);
  ax_fused_loop *other;
  if (in_memory == NULL || held == NULL || changes == NULL) return ax_out_of_memory(f->place_count);
  for (uint32_t p = 0; p < f->place_count; p++) in_memory[p] = w->held[p].vectors == 0;
  AX_TRY(ax_fused_loop_by_elements(w->arena, f, in_memory, often, held, changes, &other));
  for (uint32_t p = 0; p < f->place_count; p++)
    if (held[p]) w->held[p] = (holding){f->places[p].elems, 1};
  w->fused_loop = other;
  return make_schedules(w, often, changes);
}

/* --- The function --- */

static bool allocate(writer *w) {
  const size_t places = w->fused_loop->place_count, steps = w->fused_loop->step_count;
  w->schedules = ax_arena_alloc(w->arena, steps * sizeof w->schedules[0]);
  w->held = ax_arena_alloc(w->arena, places * sizeof w->held[0]);
  w->bases = ax_arena_alloc(w->arena, places * sizeof w->bases[0]);
  w->values = ax_arena_alloc(w->arena, value_count(w) * sizeof w->values[0]);
  w->index = ax_arena_alloc(w->arena, steps * sizeof w->index[0]);
  w->number = ax_arena_alloc(w->arena, steps * sizeof w->number[0]);
  if (w->schedules == NULL || w->held == NULL || w->bases == NULL || w->values == NULL || w->index == NULL || w->number == NULL)
    return false;
  for (uint32_t i = 0, loops = 0; i < steps; i++)
    if (w->fused_loop->steps[i].kind == AX_FUSED_LOOP_LOOP) w->number[i] = loops++;
  return true;
}

/* Loads one vector, or one element, of a held place from the place's memory. If `value` is not NULL, stores `value` there
   instead. The lanes of a last vector that lie behind the place's end are masked out. */
static LLVMValueRef move(writer *w, uint32_t place, uint32_t vector, LLVMValueRef value) {
  const ax_fused_loop_place *p = &w->fused_loop->places[place];
  const uint32_t lanes = w->held[place].lanes, left = p->elems - vector * lanes;
  LLVMTypeRef type = ax_cg_memory(&w->cg, p->dtype, lanes), element = ax_cg_memory(&w->cg, p->dtype, 1);
  LLVMValueRef start = i64(w, (int64_t)vector * lanes), at = LLVMBuildGEP2(w->cg.builder, element, w->bases[place], &start, 1, "");
  const unsigned align = (unsigned)ax_dtype_bytes(p->dtype);
  if (left >= lanes) {
    LLVMValueRef moved = value == NULL ? LLVMBuildLoad2(w->cg.builder, type, at, "") : LLVMBuildStore(w->cg.builder, value, at);
    LLVMSetAlignment(moved, align);
    return moved;
  }
  LLVMValueRef exists[AX_MAX_LANES], alignment = LLVMConstInt(LLVMInt32TypeInContext(w->cg.context), align, false);
  for (uint32_t l = 0; l < lanes; l++) exists[l] = LLVMConstInt(LLVMInt1TypeInContext(w->cg.context), l < left, false);
  LLVMValueRef mask = LLVMConstVector(exists, lanes);
  LLVMTypeRef types[] = {type, LLVMTypeOf(at)};
  LLVMValueRef reads[] = {at, alignment, mask, LLVMConstNull(type)}, writes[] = {value, at, alignment, mask};
  return value == NULL ? ax_cg_intrinsic(&w->cg, "llvm.masked.load", types, 2, reads, 4)
                       : ax_cg_intrinsic(&w->cg, "llvm.masked.store", types, 2, writes, 4);
}

/* A single bool is an i1 while it is held, and a byte in memory. */
static bool is_bit(const writer *w, uint32_t place) {
  return w->fused_loop->places[place].dtype == AX_BOOL && w->held[place].lanes == 1;
}

static void load_places(writer *w) {
  LLVMBuilderRef b = w->cg.builder;
  LLVMTypeRef pointer = LLVMPointerTypeInContext(w->cg.context, 0);
  for (uint32_t p = 0; p < w->fused_loop->place_count; p++) {
    LLVMValueRef index = i64(w, p);
    w->bases[p] = LLVMBuildLoad2(b, pointer, LLVMBuildGEP2(b, pointer, w->places, &index, 1, ""), "");
    for (uint32_t v = 0; v < w->held[p].vectors; v++) {
      LLVMValueRef *value = &w->values[p * most_values + v];
      *value = LLVMConstNull(ax_nest_held_type(&w->cg, w->fused_loop->places[p].dtype, w->held[p].lanes));
      if (!w->fused_loop->places[p].needed) continue;
      *value = move(w, p, v, NULL);
      if (is_bit(w, p)) *value = ax_cg_to_register(&w->cg, AX_BOOL, *value, 1);
    }
  }
}

static void store_places(writer *w, const bool *changes) {
  for (uint32_t p = 0; p < w->fused_loop->place_count; p++)
    for (uint32_t v = 0; w->fused_loop->places[p].wanted && changes[p] && v < w->held[p].vectors; v++) {
      LLVMValueRef value = w->values[p * most_values + v];
      move(w, p, v, is_bit(w, p) ? ax_cg_to_memory(&w->cg, AX_BOOL, value, 1) : value);
    }
}

ax_status ax_fused_loop_emit(ax_arena *arena, const ax_codegen *cg, const ax_fused_loop *fused_loop, const char *name) {
  writer w = {.cg = *cg, .arena = arena, .fused_loop = fused_loop};
  if (!allocate(&w)) return ax_out_of_memory(fused_loop->step_count * sizeof w.number[0]);
  const bool *often = steps_done_often(&w);
  if (often == NULL) return ax_out_of_memory(fused_loop->step_count);
  AX_TRY(make_schedules(&w, often, NULL));
  choose_held(&w);
  AX_TRY(hold_elements(&w, often));
  const bool *changes = changed(&w, 0, fused_loop->step_count);
  if (changes == NULL) return ax_out_of_memory(fused_loop->place_count);
  ax_cg_begin_function(&w.cg, name);
  w.places = LLVMGetParam(w.cg.function, 0);
  w.coordinates = LLVMGetParam(w.cg.function, 1);
  load_places(&w);
  AX_TRY(emit_steps(&w, 0));
  store_places(&w, changes);
  LLVMBuildRetVoid(w.cg.builder);
  return AX_OK;
}
