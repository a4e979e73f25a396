/* Blocks are gone through once, in the order of the text, so that what makes an operand has been seen. Calls that change shapes leave the
   block, and their results are marked: an operation that uses one where none may be is refused. */
#include "bridge/shardy_calls.h"

#include <stdlib.h>
#include <string.h>

#include "hlo/sdy.h"

typedef struct rewrite {
  ax_hlo_module *module;
  bool *gone; /* by value: its operation has left the block */
} rewrite;

static const char body_mark[] = "xla.sdy.manual_computation_body"; /* the names of bodies have it, between other words */
static const char no_layouts[] = "[]";

const ax_hlo_attribute *ax_hlo_frontend(const ax_hlo_attribute *attributes, uint32_t count, const char *name) {
  for (uint32_t i = 0; i < count; i++)
    if (ax_hlo_slice_is(attributes[i].name, "mhlo.frontend_attributes")) {
      const ax_hlo_attribute *found = attributes[i].kind == AX_HLO_DICTIONARY ? ax_hlo_item(&attributes[i], name) : NULL;
      return found != NULL && found->kind == AX_HLO_STRING ? found : NULL;
    }
  return NULL;
}

static const ax_hlo_attribute *kept(const ax_hlo_operation *op, const char *name) {
  return op != NULL ? ax_hlo_frontend(op->attributes, op->attribute_count, name) : NULL;
}

/* --- Which calls --- */

static bool makes_local(const ax_hlo_operation *op) { return ax_hlo_calls_target(op, "xla.sdy.GlobalToLocalShape"); }
static bool makes_global(const ax_hlo_operation *op) { return ax_hlo_calls_target(op, "xla.sdy.LocalToGlobalShape"); }

static bool calls_body(const ax_hlo_operation *op) {
  const ax_hlo_attribute *callee = ax_hlo_slice_is(op->name, "func.call") ? ax_hlo_find(op, "callee") : NULL;
  for (size_t i = 0; callee != NULL && i + sizeof body_mark - 1 <= callee->text.length; i++)
    if (memcmp(callee->text.start + i, body_mark, sizeof body_mark - 1) == 0) return true;
  return false;
}

/* The first of the operands' makers that is such a call; NULL: there is none. */
static const ax_hlo_operation *maker_among(const rewrite *w, const ax_hlo_operation *op, bool (*is)(const ax_hlo_operation *op)) {
  for (uint32_t i = 0; i < op->operand_count; i++) {
    const ax_hlo_operation *maker = w->module->makers[op->operands[i]];
    if (maker != NULL && is(maker)) return maker;
  }
  return NULL;
}

static bool is_empty(const ax_hlo_value_type *type) {
  for (uint32_t d = 0; type->kind == AX_HLO_TENSOR && d < type->rank; d++)
    if (type->dims[d] == 0) return true;
  return false;
}

/* Whether the operation takes the maker's results one by one. XLA puts constants in the place of those without elements. */
static bool takes_all(const rewrite *w, const ax_hlo_operation *op, const ax_hlo_operation *maker) {
  bool same = op->operand_count == maker->result_count;
  for (uint32_t i = 0; same && i < op->operand_count; i++)
    same = op->operands[i] == maker->result + i || is_empty(w->module->values[op->operands[i]]);
  return same;
}

/* --- Operations --- */

static ax_hlo_attribute as_layout(const char *name, ax_hlo_slice text) {
  return (ax_hlo_attribute){.kind = AX_HLO_OPAQUE, .name = {name, strlen(name)}, .text = text};
}

/* A copy of the operation under Shardy's name, with other attributes. NULL: no memory. */
static ax_hlo_operation *renamed(rewrite *w, const ax_hlo_operation *op, const char *name, const ax_hlo_attribute *attributes, uint32_t count) {
  ax_hlo_operation *copy = ax_arena_copy(&w->module->arena, op, sizeof *op);
  if (copy == NULL) return NULL;
  copy->name = (ax_hlo_slice){name, strlen(name)};
  copy->attributes = count > 0 ? ax_arena_copy(&w->module->arena, attributes, count * sizeof attributes[0]) : NULL;
  copy->attribute_count = count;
  if (count > 0 && copy->attributes == NULL) return NULL;
  for (uint32_t k = 0; k < op->result_count; k++) w->module->makers[op->result + k] = copy;
  return copy;
}

/* The body's computation: `local` makes its operands, `global` takes its results; each is NULL where there are none. */
static ax_status make_computation(rewrite *w, const ax_hlo_operation *call, const ax_hlo_operation *global, const ax_hlo_operation **out) {
  const ax_hlo_operation *local = maker_among(w, call, makes_local), *results = global != NULL ? global : call;
  const ax_hlo_operation *const places[] = {local, global, call}; /* where attributes may be */
  static const char *const names[][2] = {
      {"in_shardings", "xla.sdy.in_shardings"}, {"out_shardings", "xla.sdy.out_shardings"}, {"manual_axes", "xla.sdy.manual_axes"}};
  ax_hlo_attribute attributes[AX_COUNT(names) + 1];
  if (local != NULL ? !takes_all(w, call, local) || local->operand_count != local->result_count : call->operand_count > 0)
    return ax_error(AX_INVALID_ARGUMENT, "a body of a manual computation takes what one call of @xla.sdy.GlobalToLocalShape gives");
  if (global != NULL && (!takes_all(w, global, call) || global->operand_count != global->result_count))
    return ax_error(AX_INVALID_ARGUMENT, "@xla.sdy.LocalToGlobalShape takes what one body of a manual computation gives");
  for (size_t i = 0; i < AX_COUNT(names); i++) {
    const ax_hlo_attribute *said = NULL;
    for (size_t p = 0; p < AX_COUNT(places) && said == NULL; p++) said = kept(places[p], names[i][1]);
    attributes[i] = as_layout(names[i][0], said != NULL ? said->text : (ax_hlo_slice){no_layouts, sizeof no_layouts - 1});
    if (said == NULL && i == 2) attributes[i].text = (ax_hlo_slice){"{}", 2}; /* nothing is taken by hand */
  }
  attributes[AX_COUNT(names)] = *ax_hlo_find(call, "callee");
  ax_hlo_operation *op = renamed(w, results, "sdy.manual_computation", attributes, AX_COUNT(attributes));
  if (op == NULL) return ax_out_of_memory(sizeof *op);
  op->operands = local != NULL ? local->operands : NULL;
  op->operand_count = call->operand_count;
  op->place = call->place;
  *out = op;
  return AX_OK;
}

/* The layout that is said of the result; it is the operand where nothing is said. */
static ax_status make_constraint(rewrite *w, const ax_hlo_operation *op, const ax_hlo_operation **out) {
  const ax_hlo_attribute *said = kept(op, "xla.sdy.sharding");
  const char *at = NULL;
  ax_hlo_slice item;
  const bool laid = said != NULL && ax_sdy_next(said->text, &at, &item);
  const ax_hlo_attribute sharding = as_layout("sharding", laid ? item : (ax_hlo_slice){0});
  *out = renamed(w, op, laid ? "sdy.sharding_constraint" : "sdy.propagation_barrier", &sharding, laid);
  return *out != NULL ? AX_OK : ax_out_of_memory(sizeof **out);
}

/* The group's number is text: "3 : i64". */
static ax_status make_group(rewrite *w, const ax_hlo_operation *op, const ax_hlo_operation **out) {
  const ax_hlo_attribute *said = kept(op, "xla.sdy.sharding_group_id");
  ax_hlo_attribute group = {.kind = AX_HLO_INTEGER, .name = {"group_id", 8}};
  char number[24];
  if (said == NULL || said->text.length >= sizeof number) return ax_error(AX_INVALID_ARGUMENT, "xla.sdy.sharding_group_id is missing, or no number");
  memcpy(number, said->text.start, said->text.length);
  number[said->text.length] = '\0';
  group.integer = strtoll(number, NULL, 10);
  *out = renamed(w, op, "sdy.sharding_group", &group, 1);
  return *out != NULL ? AX_OK : ax_out_of_memory(sizeof **out);
}

static ax_status leave(rewrite *w, const ax_hlo_operation *op) {
  for (uint32_t k = 0; k < op->result_count; k++) w->gone[op->result + k] = true;
  return AX_OK;
}

static ax_status check_operands(const rewrite *w, const ax_hlo_operation *op) {
  for (uint32_t i = 0; i < op->operand_count; i++)
    if (w->gone[op->operands[i]])
      return ax_error(AX_INVALID_ARGUMENT, "it takes a block of a manual computation, which only the computation's body has");
  return AX_OK;
}

/* *out: what stands in the operation's place; NULL: nothing. */
static ax_status rewrite_operation(rewrite *w, const ax_hlo_operation *op, const ax_hlo_operation **out) {
  *out = NULL;
  if (calls_body(op)) return op->result_count > 0 ? leave(w, op) : make_computation(w, op, NULL, out);
  if (makes_global(op)) {
    const ax_hlo_operation *call = maker_among(w, op, calls_body);
    return call != NULL ? make_computation(w, call, op, out) : leave(w, op);
  }
  AX_TRY(check_operands(w, op));
  if (makes_local(op)) return leave(w, op);
  if (ax_hlo_calls_target(op, "xla.sdy.FuncResultSharding")) return make_constraint(w, op, out);
  if (ax_hlo_calls_target(op, "Sharding") && kept(op, "xla.sdy.sharding") != NULL) return make_constraint(w, op, out);
  if (ax_hlo_calls_target(op, "xla.sdy.ShardingGroup")) return make_group(w, op, out);
  *out = ax_hlo_calls_target(op, "xla.sdy.PropagationBarrier") ? renamed(w, op, "sdy.propagation_barrier", NULL, 0) : op;
  return *out != NULL ? AX_OK : ax_out_of_memory(sizeof *op);
}

/* Modules are the arena's, and may be written until they are read. */
static ax_status rewrite_block(rewrite *w, ax_hlo_block *block) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < block->operation_count; i++) {
    const ax_hlo_operation *op = block->operations[i], *made;
    AX_TRY(ax_hlo_blame(w->module, op, rewrite_operation(w, op, &made)));
    if (made != NULL) block->operations[count++] = made;
    for (uint32_t r = 0; r < op->region_count; r++)
      for (uint32_t b = 0; b < op->regions[r].block_count; b++) AX_TRY(rewrite_block(w, (ax_hlo_block *)&op->regions[r].blocks[b]));
  }
  block->operation_count = count;
  return AX_OK;
}

static bool has_calls(const ax_hlo_block *block) {
  static const char mark[] = "xla.sdy.";
  for (uint32_t i = 0; i < block->operation_count; i++) {
    const ax_hlo_operation *op = block->operations[i];
    const ax_hlo_attribute *target = ax_hlo_slice_is(op->name, "stablehlo.custom_call") ? ax_hlo_find(op, "call_target_name") : NULL;
    if (target != NULL && target->text.length >= sizeof mark && memcmp(target->text.start, mark, sizeof mark - 1) == 0) return true;
    if (calls_body(op) || kept(op, "xla.sdy.sharding") != NULL) return true;
    for (uint32_t r = 0; r < op->region_count; r++)
      for (uint32_t b = 0; b < op->regions[r].block_count; b++)
        if (has_calls(&op->regions[r].blocks[b])) return true;
  }
  return false;
}

ax_status ax_hlo_shardy_calls(ax_hlo_module *module) {
  if (!has_calls(&module->body)) return AX_OK;
  rewrite w = {.module = module, .gone = ax_calloc(module->value_count + 1, sizeof w.gone[0])};
  if (w.gone == NULL) return ax_out_of_memory(module->value_count);
  const ax_status status = rewrite_block(&w, &module->body);
  ax_free(w.gone);
  return status;
}
