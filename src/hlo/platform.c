/* The platform of an exported module, wherever it is known: functions that are called with it, always, and branches that it chooses. What
   is known to be a constant gets that constant as its maker, so that readers see one. Modules for several platforms have branches with
   calls that only one of them has, which must not be read for another.

     %1 = case %platform {0} {1}     %1 is a constant
     case %1 {..} {..}               reads one branch
     call @f(%platform, ..)          so is @f's argument */
#include <stdlib.h>

#include "hlo/bytecode.h"

typedef struct callee {
  ax_hlo_slice name;
  const ax_hlo_operation *op;
} callee;

typedef struct spreading {
  ax_hlo_module *module;
  callee *functions; /* in the order of their names */
  uint32_t function_count;
  const ax_hlo_operation **given; /* by value, of arguments: what calls give them, in this round; */
  bool *differ;                   /* some gives what is no constant, or another one */
  bool changed;
  ax_status status;
} spreading;

static int by_name(const void *a, const void *b) {
  return ax_hlo_slice_order(((const callee *)a)->name, ((const callee *)b)->name);
}

static const ax_hlo_operation *maker_of(const ax_hlo_module *m, uint32_t value) {
  const ax_hlo_attribute *constant = ax_hlo_constant(m, value);
  return constant != NULL && constant->type->rank == 0 ? m->makers[value] : NULL;
}

static void set_maker(spreading *s, uint32_t value, const ax_hlo_operation *maker) {
  if (s->module->makers[value] == maker || s->module->values[value] != s->module->values[maker->result]) return;
  s->module->makers[value] = maker;
  s->changed = true;
}

/* Results that are constants in the branch that is chosen. */
static void spread_branch(spreading *s, const ax_hlo_operation *op) {
  const uint32_t chosen = ax_hlo_chosen(s->module, op);
  const ax_hlo_block *block = chosen != AX_NONE && op->regions[chosen].block_count == 1 ? &op->regions[chosen].blocks[0] : NULL;
  if (block == NULL || block->operation_count == 0) return;
  const ax_hlo_operation *last = block->operations[block->operation_count - 1];
  for (uint32_t k = 0; k < op->result_count && k < last->operand_count; k++) {
    const ax_hlo_operation *maker = maker_of(s->module, last->operands[k]);
    if (maker != NULL) set_maker(s, op->result + k, maker);
  }
}

/* What a call gives the function's arguments. */
static void note_call(spreading *s, const ax_hlo_operation *op) {
  const ax_hlo_attribute *name = ax_hlo_find(op, "callee");
  const callee wanted = {.name = name != NULL ? name->text : (ax_hlo_slice){"", 0}};
  const callee *found = s->function_count > 0 ? bsearch(&wanted, s->functions, s->function_count, sizeof wanted, by_name) : NULL;
  if (found == NULL || found->op->region_count != 1 || found->op->regions[0].block_count == 0) return;
  const ax_hlo_block *block = &found->op->regions[0].blocks[0];
  for (uint32_t i = 0; i < op->operand_count && i < block->argument_count; i++) {
    const uint32_t argument = block->argument + i;
    const ax_hlo_operation *maker = maker_of(s->module, op->operands[i]);
    if (maker == NULL || (s->given[argument] != NULL && s->given[argument] != maker)) s->differ[argument] = true;
    s->given[argument] = maker;
  }
}

/* A constant of 64 bits as one of 32, which branches are chosen by. */
static void spread_convert(spreading *s, const ax_hlo_operation *op) {
  const ax_hlo_attribute *from = op->operand_count == 1 ? ax_hlo_constant(s->module, op->operands[0]) : NULL;
  const ax_hlo_value_type *type = op->result_count == 1 ? s->module->values[op->result] : NULL;
  if (from == NULL || type == NULL || s->module->makers[op->result] != op || from->type->rank > 0 || from->type->dtype != AX_S64)
    return;
  if (type->kind != AX_HLO_TENSOR || type->rank > 0 || !type->element_known || type->dtype != AX_S32) return;
  const int32_t number = (int32_t) * (const int64_t *)from->data;
  const void *data = ax_arena_copy(&s->module->arena, &number, sizeof number);
  const ax_hlo_attribute value = {.kind = AX_HLO_ELEMENTS, .name = from->name, .type = type, .data = data};
  ax_hlo_operation constant = *s->module->makers[op->operands[0]];
  constant.result = op->result;
  constant.attributes = ax_arena_copy(&s->module->arena, &value, sizeof value);
  const ax_hlo_operation *maker = ax_arena_copy(&s->module->arena, &constant, sizeof constant);
  if (data == NULL || constant.attributes == NULL || maker == NULL)
    s->status = ax_out_of_memory(sizeof constant);
  else
    set_maker(s, op->result, maker);
}

static void spread_block(spreading *s, const ax_hlo_block *block) {
  for (uint32_t i = 0; i < block->operation_count; i++) {
    const ax_hlo_operation *op = block->operations[i];
    for (uint32_t k = 0; k < op->region_count; k++)
      for (uint32_t j = 0; j < op->regions[k].block_count; j++) spread_block(s, &op->regions[k].blocks[j]);
    if (ax_hlo_slice_is(op->name, "stablehlo.case")) spread_branch(s, op);
    if (ax_hlo_slice_is(op->name, "stablehlo.convert")) spread_convert(s, op);
    if (ax_hlo_slice_is(op->name, "func.call")) note_call(s, op);
  }
}

static ax_status list_functions(spreading *s) {
  const ax_hlo_block *body = &s->module->body;
  const size_t values = s->module->value_count + 1;
  s->functions = ax_calloc(body->operation_count + 1, sizeof s->functions[0]);
  s->given = ax_calloc(values, sizeof s->given[0]);
  s->differ = ax_calloc(values, sizeof s->differ[0]);
  if (s->functions == NULL || s->given == NULL || s->differ == NULL) return ax_out_of_memory(values);
  for (uint32_t i = 0; i < body->operation_count; i++) {
    const ax_hlo_attribute *name = ax_hlo_find(body->operations[i], "sym_name");
    if (name != NULL) s->functions[s->function_count++] = (callee){name->text, body->operations[i]};
  }
  if (s->function_count > 1) qsort(s->functions, s->function_count, sizeof s->functions[0], by_name);
  return AX_OK;
}

/* What is known never becomes unknown again: an argument is known once all calls give it one constant. */
static void spread_once(spreading *s) {
  const uint32_t count = s->module->value_count;
  s->changed = false;
  for (uint32_t i = 0; i < count; i++) s->given[i] = NULL, s->differ[i] = false;
  spread_block(s, &s->module->body);
  for (uint32_t i = 0; i < count; i++)
    if (s->given[i] != NULL && !s->differ[i]) set_maker(s, i, s->given[i]);
}

ax_status ax_hlo_spread_platform(ax_hlo_module *module) {
  enum { most_rounds = 64 }; /* calls of calls */
  spreading s = {.module = module, .changed = true};
  s.status = list_functions(&s);
  for (int round = 0; s.status == AX_OK && s.changed && round < most_rounds; round++) spread_once(&s);
  ax_free(s.functions);
  ax_free(s.given);
  ax_free(s.differ);
  return s.status;
}
