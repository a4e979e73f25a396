/* The two innermost loops of a transpose as a call (jit/turn): rows of the array read are steps of the vector loop, columns those
   of the innermost one. */
#include "jit/emit/nest.h"
#include "jit/turn/turn.h"

typedef struct words { /* of the structure that is passed, in its order */
  ax_nest *nest;
  LLVMValueRef memory;
  uint32_t count;
} words;

static void add(words *w, LLVMValueRef value) {
  LLVMTypeRef word = LLVMInt64TypeInContext(w->nest->cg.context);
  LLVMBuildStore(w->nest->cg.builder, value, ax_nest_advance(w->nest, word, w->memory, ax_cg_i64(&w->nest->cg, w->count++)));
}

static void add_steps(words *w, const ax_nest_access *access, uint32_t loop, int64_t bytes) {
  const int64_t uneven = access->uneven[loop];
  add(w, ax_cg_i64(&w->nest->cg, access->stride[loop] * bytes));
  add(w, ax_cg_i64(&w->nest->cg, uneven == 0 ? 0 : w->nest->schedule->loops[loop].inner));
  add(w, ax_cg_i64(&w->nest->cg, uneven * bytes));
}

static LLVMValueRef function_for(ax_nest *nest, uint32_t bytes, LLVMTypeRef *type) {
  char name[AX_TURN_NAME];
  LLVMTypeRef pointer = LLVMPointerTypeInContext(nest->cg.context, 0);
  *type = LLVMFunctionType(LLVMVoidTypeInContext(nest->cg.context), &pointer, 1, false);
  ax_turn_name(bytes, nest->schedule->streams, name);
  LLVMValueRef function = LLVMGetNamedFunction(nest->cg.module, name);
  return function != NULL ? function : LLVMAddFunction(nest->cg.module, name, *type);
}

/* At the function's entry: in a loop each trip would take some more. */
void ax_nest_allocate_turn(ax_nest *nest) {
  LLVMTypeRef word = LLVMInt64TypeInContext(nest->cg.context);
  nest->tiles[nest->schedule->kernel->expr_count] = ax_cg_stack(&nest->cg, LLVMArrayType2(word, AX_TURN_WORDS));
}

void ax_nest_call_turn(ax_nest *nest, const ax_range *rows, const ax_range *columns) {
  const ax_nest_schedule *s = nest->schedule;
  const uint32_t last = s->loop_count - 1, from = s->kernel->stores[0].expr, to = s->kernel->expr_count;
  const uint32_t bytes = (uint32_t)ax_dtype_bytes(s->kernel->slots[s->accesses[to].slot].dtype);
  LLVMTypeRef type;
  LLVMValueRef function = function_for(nest, bytes, &type);
  words w = {.nest = nest, .memory = nest->tiles[to]};
  add(&w, ax_nest_pointer(nest, to));
  add(&w, ax_nest_pointer(nest, from));
  add(&w, rows->lo);
  add(&w, rows->hi);
  add(&w, columns->lo);
  add(&w, columns->hi);
  add(&w, ax_cg_i64(&nest->cg, s->loops[last].extent));
  add_steps(&w, &s->accesses[from], s->vector, bytes);
  add_steps(&w, &s->accesses[to], last, bytes);
  LLVMBuildCall2(nest->cg.builder, type, function, &w.memory, 1, "");
}
