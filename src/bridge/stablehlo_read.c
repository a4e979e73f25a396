/* A StableHLO module as a program: each operation is read by a primitive's form, or by a reader (hlo/read.h), as equations of a
   trace. Functions that are called become programs of their own, once each, and calls of them.

     @main(x: tensor<4xf32>)                program: x f32[4]
       %0 = stablehlo.sine %x                 a = sin x
       %1 = call @f(%0)                       b = closed_call[body=..] a
       return %1                              in b

   Values of a module are handles of the trace in progress, by number; regions capture those around them as any traced function
   does. Every result's type is compared with the one that the module says. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "axle/random.h"
#include "axle/stablehlo.h"
#include "bridge/import.h"
#include "bridge/parts.h"
#include "bridge/quantized.h"
#include "bridge/readers.h"
#include "bridge/sections.h"
#include "bridge/shardy_calls.h"
#include "bridge/threefry_trial.h"
#include "control/closed_call.h"
#include "hlo/files.h"
#include "hlo/flatten.h"
#include "hlo/hlo.h"
#include "hlo/verify.h"
#include "prim/prims.h"
#include "prim/rules.h"

/* --- Tables --- */

static uint64_t hash_name(const char *name, size_t length) { return ax_hash_bytes(AX_HASH_SEED, name, length); }

ax_reader_entry *ax_reader_slot(const ax_hlo_import *import, const char *name, size_t length) {
  uint32_t slot = (uint32_t)hash_name(name, length) & (import->reader_size - 1);
  for (; import->readers[slot].op != NULL; slot = (slot + 1) & (import->reader_size - 1))
    if (ax_hlo_slice_is((ax_hlo_slice){name, length}, import->readers[slot].op)) break;
  return &import->readers[slot];
}

/* The first reader of an op stays: lists of readers come before forms. */
static void add_reader(ax_hlo_import *import, const ax_reader_entry *entry) {
  ax_reader_entry *slot = ax_reader_slot(import, entry->op, strlen(entry->op));
  if (slot->op != NULL) return;
  *slot = *entry;
  slot->shape_operands = ax_hlo_shape_operands((ax_hlo_slice){entry->op, strlen(entry->op)});
}

static void add_readers(ax_hlo_import *import, const ax_prim *prim, const ax_hlo_reader *readers) {
  for (; readers != NULL && readers->op != NULL; readers++)
    add_reader(import, &(ax_reader_entry){.op = readers->op, .prim = prim, .read = readers->read});
}

static ax_status make_readers(ax_hlo_import *import) {
  import->reader_size = 2048;
  import->readers = ax_calloc(import->reader_size, sizeof import->readers[0]);
  if (import->readers == NULL) return ax_out_of_memory(import->reader_size * sizeof import->readers[0]);
  for (uint32_t i = 0; i < ax_hlo_reader_list_count; i++) add_readers(import, NULL, ax_hlo_reader_lists[i]);
  for (uint32_t i = 0; i < ax_prim_count; i++) add_readers(import, ax_prims[i], ax_prims[i]->reads);
  for (uint32_t i = 0; i < ax_prim_count; i++) {
    const ax_hlo_form *form = ax_prims[i]->form;
    if (form == NULL || form->word_of != NULL) continue;
    add_reader(import, &(ax_reader_entry){.op = form->op, .prim = ax_prims[i], .read = ax_hlo_read_by_form});
  }
  return AX_OK;
}

static ax_function_entry *function_slot(const ax_hlo_import *import, ax_hlo_slice name) {
  uint32_t slot = (uint32_t)hash_name(name.start, name.length) & (import->function_size - 1);
  for (; import->functions[slot].op != NULL; slot = (slot + 1) & (import->function_size - 1))
    if (ax_hlo_slice_same(import->functions[slot].name, name)) break;
  return &import->functions[slot];
}

static ax_status make_functions(ax_hlo_import *import) {
  const ax_hlo_block *body = &import->module->body;
  for (import->function_size = 16; import->function_size / 2 <= body->operation_count;) import->function_size *= 2;
  import->functions = ax_calloc(import->function_size, sizeof import->functions[0]);
  if (import->functions == NULL) return ax_out_of_memory(import->function_size * sizeof import->functions[0]);
  for (uint32_t i = 0; i < body->operation_count; i++) {
    const ax_hlo_operation *op = body->operations[i];
    const ax_hlo_attribute *name = ax_hlo_slice_is(op->name, "func.func") ? ax_hlo_find(op, "sym_name") : NULL;
    if (name == NULL || op->region_count != 1) continue;
    ax_function_entry *entry = function_slot(import, name->text);
    if (entry->op != NULL)
      return ax_error(AX_INVALID_ARGUMENT, "%s:%u: there are two functions @%.*s", import->module->source, op->place.line,
                      (int)name->text.length, name->text.start);
    *entry = (ax_function_entry){.name = name->text, .op = op};
  }
  return AX_OK;
}

static ax_status check_callable(const ax_function_entry *entry, ax_hlo_slice name) {
  if (entry->op == NULL) return ax_error(AX_INVALID_ARGUMENT, "there is no function @%.*s", (int)name.length, name.start);
  return entry->in_progress ? ax_error(AX_INVALID_ARGUMENT, "@%.*s calls itself", (int)name.length, name.start) : AX_OK;
}

/* --- Operations --- */

/* The message with the operation and its line; of operations inside others, with the innermost lines. Of calls inside one another
   the reason must not be hidden behind hundreds of lines. */
enum { most_context = 600, most_calls = 3 }; /* bytes; calls */

static ax_status blame(const ax_hlo_import *import, const ax_hlo_operation *op, ax_status status) {
  static const char call[] = ": func.call: ";
  uint32_t calls = 0;
  for (const char *at = ax_message(); (at = strstr(at, call)) != NULL; at += sizeof call - 1) calls++;
  const bool is_enough = strlen(ax_message()) > most_context || (calls >= most_calls && ax_hlo_slice_is(op->name, "func.call"));
  return is_enough ? status : ax_hlo_blame(import->module, op, status);
}

static ax_status check_result(const ax_hlo_import *import, const ax_hlo_operation *op, uint32_t k, ax_value made) {
  const ax_hlo_value_type *said = import->module->values[op->result + k];
  const ax_type type = ax_typeof(made);
  if (ax_failed() || ax_hlo_type_fits(said, &type)) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "result %u of %.*s is %s, and the module says %.*s", k, (int)op->name.length, op->name.start,
                  ax_type_string(&type, NULL), said->text.length < 200 ? (int)said->text.length : 200, said->text.start);
}

/* The last operands may be shapes, which no equation takes. */
static void take_operands(ax_hlo_import *import, const ax_hlo_operation *op, const ax_reader_entry *entry, ax_value *in) {
  for (uint32_t i = 0; i < op->operand_count; i++) {
    const bool shape = i + entry->shape_operands >= op->operand_count && import->known != NULL && import->known[op->operands[i]] != NULL;
    in[i] = shape ? ax_poison : ax_known_value(import, op->operands[i]);
  }
}

static ax_status read_operation(ax_hlo_import *import, const ax_hlo_operation *op, const ax_hlo_frame *f) {
  const ax_reader_entry *entry = ax_reader_slot(import, op->name.start, op->name.length);
  bool done;
  if (entry->op == NULL) return ax_hlo_refuse_operation(import, op->name);
  if (++import->read_count > import->most_read)
    return ax_error(AX_ABSENT, "functions are called with so many shapes that %" PRIu64 " operations are read", import->most_read);
  for (uint32_t k = 0; k < op->result_count; k++) AX_TRY(ax_hlo_open_type(import->module->values[op->result + k], &f->types[k]));
  for (uint32_t k = 0; k < op->result_count && import->known != NULL; k++) import->known[op->result + k] = NULL;
  AX_TRY(ax_known_fold(import, op, entry, f, &done));
  if (done) return AX_OK;
  take_operands(import, op, entry, f->in);
  ax_hlo_promote(import, op, f->in);
  for (uint32_t k = 0; k < op->result_count; k++) f->out[k] = ax_poison;
  const ax_hlo_read_args args = {.prim = entry->prim,
                                 .op = op,
                                 .in = f->in,
                                 .out = f->out,
                                 .out_types = f->types,
                                 .import = import,
                                 .devices = &import->devices};
  AX_TRY(ax_quantized_touches(import, op) ? ax_quantized_read(&args, entry->read) : entry->read(&args));
  for (uint32_t k = 0; k < op->result_count && !ax_failed(); k++) {
    AX_TRY(check_result(import, op, k, f->out[k]));
    AX_TRY(ax_hlo_lay_out_as(&import->devices, op->attributes, op->attribute_count, k, &f->out[k]));
    import->values[op->result + k] = f->out[k];
  }
  return AX_OK;
}

ax_status ax_hlo_read_as(const ax_hlo_read_args *args, const char *name, const ax_value *in) {
  const ax_reader_entry *entry = ax_reader_slot(args->import, name, strlen(name));
  ax_hlo_read_args other = *args;
  ax_hlo_operation op = *args->op;
  if (entry->op == NULL) return ax_error(AX_ABSENT, "%s is not read yet", name);
  op.name = (ax_hlo_slice){entry->op, strlen(entry->op)};
  other.prim = entry->prim, other.op = &op, other.in = in;
  return entry->read(&other);
}

/* Readers may look at the first operands and results, and set these, before they have counted how many there are. */
enum { spare = 8 };

/* Runs an operation in the trace in progress. False: the trace has failed. */
static bool run_operation(ax_hlo_import *import, const ax_hlo_operation *op) {
  char place[512];
  ax_builder *builder = ax_builder_current();
  const size_t in_count = op->operand_count + spare, out_count = op->result_count + spare;
  const size_t operands = in_count * sizeof(ax_value), results = out_count * sizeof(ax_value);
  char *memory = ax_calloc(1, operands + results + out_count * sizeof(ax_type));
  ax_status status = memory != NULL ? AX_OK : ax_out_of_memory(operands + results);
  ax_hlo_place_text(import->module, &op->place, place, sizeof place);
  ax_builder_locate(builder, place);
  if (status == AX_OK)
    status = read_operation(
        import, op,
        &(ax_hlo_frame){
            .in = (ax_value *)memory, .out = (ax_value *)(memory + operands), .types = (ax_type *)(memory + operands + results)});
  ax_builder_locate(builder, NULL);
  ax_free(memory);
  if (builder->status != AX_OK) status = ax_error(builder->status, "%s", builder->message); /* what failed first */
  if (status == AX_OK) return true;
  builder->status = AX_OK;
  ax_fail(blame(import, op, status));
  return false;
}

/* The value must have the type that the module says for the block's argument. False: the trace has failed. */
static bool take_argument(ax_hlo_import *import, const ax_hlo_block *block, uint32_t i, ax_value value, const ax_literal *known) {
  const ax_hlo_value_type *said = import->module->values[block->argument + i];
  const ax_type type = known != NULL ? known->type : ax_typeof(value);
  if (!ax_failed() && !ax_hlo_type_fits(said, &type))
    ax_fail(ax_error(AX_INVALID_ARGUMENT, "argument %u of a block is %s, and the module says %.*s", i, ax_type_string(&type, NULL),
                     said->text.length < 200 ? (int)said->text.length : 200, said->text.start));
  import->values[block->argument + i] = value;
  if (import->known != NULL) import->known[block->argument + i] = known;
  return !ax_failed();
}

/* Runs the operations on the block's arguments, which are set. */
static void run_block(ax_hlo_import *import, const ax_hlo_block *block, ax_value *out) {
  for (uint32_t i = 0; i < block->operation_count; i++) {
    const ax_hlo_operation *op = block->operations[i];
    if (ax_hlo_is_return(op->name) && i + 1 < block->operation_count) {
      ax_fail(blame(import, op, ax_error(AX_INVALID_ARGUMENT, "operations stand behind it")));
      return;
    }
    if (ax_hlo_is_return(op->name)) {
      for (uint32_t k = 0; k < op->operand_count; k++) out[k] = ax_known_value(import, op->operands[k]);
      return;
    }
    if (!run_operation(import, op)) return;
  }
}

/* --- Regions --- */

static const ax_hlo_operation *last_of(const ax_hlo_region *region) {
  const ax_hlo_block *block = region->block_count == 1 ? &region->blocks[0] : NULL;
  return block == NULL || block->operation_count == 0 ? NULL : block->operations[block->operation_count - 1];
}

static AX_BODY(run_body) {
  const ax_hlo_body *body = context;
  const ax_hlo_block *block = &body->region->blocks[0];
  for (uint32_t i = 0; i < block->argument_count; i++)
    if (!take_argument(body->import, block, i, in[i], NULL)) return;
  if (body->in_progress != NULL) *body->in_progress = true;
  run_block(body->import, block, out);
  if (body->in_progress != NULL) *body->in_progress = false;
}

static ax_status region_body(const ax_hlo_read_args *args, const ax_hlo_operation *of, uint32_t region, uint32_t out_count,
                             ax_hlo_body *body, ax_fn *out) {
  const ax_hlo_operation *last = region < of->region_count ? last_of(&of->regions[region]) : NULL;
  if (last == NULL || !ax_hlo_is_return(last->name))
    return ax_error(AX_INVALID_ARGUMENT, "region %u must be one block that ends in a return", region);
  if (last->operand_count != out_count)
    return ax_error(AX_INVALID_ARGUMENT, "region %u returns %u values, and not %u", region, last->operand_count, out_count);
  *body = (ax_hlo_body){args->import, &of->regions[region], NULL};
  *out = (ax_fn){run_body, of->regions[region].blocks[0].argument_count, out_count, body};
  return AX_OK;
}

ax_status ax_hlo_body_of(const ax_hlo_read_args *args, uint32_t region, uint32_t out_count, ax_hlo_body *body, ax_fn *out) {
  return region_body(args, args->op, region, out_count, body, out);
}

ax_status ax_hlo_function_body(const ax_hlo_read_args *args, ax_hlo_slice function, uint32_t out_count, ax_hlo_body *body, ax_fn *out) {
  ax_function_entry *entry = function_slot(args->import, function);
  AX_TRY(check_callable(entry, function));
  AX_TRY(region_body(args, entry->op, 0, out_count, body, out));
  body->in_progress = &entry->in_progress;
  return AX_OK;
}

const ax_hlo_attribute *ax_hlo_constant_operand(const ax_hlo_read_args *args, uint32_t operand) {
  return ax_hlo_constant(args->import->module, args->op->operands[operand]);
}

const ax_hlo_operation *ax_hlo_maker_of(const ax_hlo_read_args *args, uint32_t value) {
  return args->import->module->makers[value];
}

bool ax_hlo_is_truth(const ax_hlo_read_args *args, uint32_t value) {
  const ax_hlo_value_type *type = args->import->module->values[value];
  return type->kind == AX_HLO_TENSOR && type->element_known && type->dtype == AX_BOOL;
}

uint32_t ax_hlo_chosen_branch(const ax_hlo_read_args *args) { return ax_hlo_chosen(args->import->module, args->op); }

/* A scalar's layout, which JAX puts into reducers: nothing. */
static bool is_layout(const ax_hlo_operation *op) {
  const ax_hlo_attribute *target = ax_hlo_find(op, "call_target_name");
  if (op->operand_count != 1 || op->result_count != 1) return false;
  return ax_hlo_slice_is(op->name, "sdy.sharding_constraint") || (target != NULL && ax_hlo_slice_is(target->text, "Sharding"));
}

ax_hlo_slice ax_hlo_body_operation(const ax_hlo_operation *op, uint32_t region) {
  const ax_hlo_slice none = {0};
  const ax_hlo_block *block =
      region < op->region_count && op->regions[region].block_count == 1 ? &op->regions[region].blocks[0] : NULL;
  if (block == NULL || block->operation_count < 2 || block->operation_count > 3 || block->argument_count != 2 || op->opaque) return none;
  const ax_hlo_operation *only = block->operations[0], *laid = block->operations[1];
  const ax_hlo_operation *last = block->operations[block->operation_count - 1];
  if (only->operand_count != 2 || only->result_count != 1 || only->region_count > 0) return none;
  const bool lays = laid != last && is_layout(laid) && laid->operands[0] == only->result;
  if (laid != last && !lays) return none;
  if (!ax_hlo_is_return(last->name) || last->operand_count != 1 || last->operands[0] != (lays ? laid->result : only->result)) return none;
  const uint32_t a = block->argument, x = only->operands[0], y = only->operands[1];
  return (x == a && y == a + 1) || (x == a + 1 && y == a) ? only->name : none;
}

/* --- Functions --- */

typedef struct function_run {
  ax_hlo_import *import;
  ax_variant *variant;
  bool drops; /* arguments that are known are no inputs */
} function_run;

/* What is known of the results, as long as the function's values are there. */
static void keep_known(const function_run *run, const ax_hlo_block *block) {
  const ax_hlo_operation *last = block->operations[block->operation_count - 1];
  for (uint32_t k = 0; k < last->operand_count && run->import->known != NULL; k++)
    run->variant->out_known[k] = run->import->known[last->operands[k]];
}

/* The attributes of argument or result number i; empty where there are none. */
static ax_hlo_attribute attributes_of(const ax_hlo_operation *function, const char *attributes, uint32_t i) {
  const ax_hlo_attribute *list = ax_hlo_find(function, attributes);
  const bool listed = list != NULL && list->kind == AX_HLO_ARRAY && i < list->count && list->items[i].kind == AX_HLO_DICTIONARY;
  return listed ? list->items[i] : (ax_hlo_attribute){0};
}

/* Lays out argument or result number i as the function's attributes say. False: the trace has failed. */
static bool lay_out(const function_run *run, const char *attributes, uint32_t i, ax_value *value) {
  const ax_hlo_operation *op = run->variant->op;
  const ax_hlo_attribute own = attributes_of(op, attributes, i);
  ax_hlo_import *import = run->import;
  ax_status status = AX_OK;
  if (ax_failed()) return false;
  const bool parts = ax_hlo_parts_here(&import->devices), takes = strcmp(attributes, "arg_attrs") == 0;
  if (parts && takes && import->in_having[i] != AX_HAVE_ARRAY)
    status = ax_hlo_parts_take(&import->devices, own.items, own.count, import->in_having[i], value);
  else if (parts && !takes) status = ax_hlo_parts_give(&import->devices, own.items, own.count, value, &import->out_having[i]);
  if (status == AX_OK && (!parts || (takes ? import->in_having : import->out_having)[i] == AX_HAVE_ARRAY))
    status = ax_hlo_lay_out_as(&import->devices, own.items, own.count, 0, value);
  if (status != AX_OK && !ax_failed()) ax_fail(blame(run->import, op, status));
  return !ax_failed();
}

static AX_BODY(run_function) {
  const function_run *run = context;
  const ax_variant *variant = run->variant;
  const ax_hlo_block *block = &variant->op->regions[0].blocks[0];
  if (run->drops && !run->import->devices.each) run->import->devices.main = ax_builder_current();
  for (uint32_t i = 0, next = 0; i < block->argument_count; i++) {
    const bool dropped = run->drops && variant->known[i] != NULL;
    ax_value value = dropped ? ax_poison : in[next++];
    if (!dropped && !lay_out(run, "arg_attrs", i, &value)) return;
    if (!take_argument(run->import, block, i, value, variant->known[i])) return;
  }
  const uint32_t results = last_of(&variant->op->regions[0])->operand_count;
  run_block(run->import, block, out);
  if (!ax_failed()) keep_known(run, block);
  for (uint32_t k = 0; k < results; k++)
    if (!lay_out(run, "res_attrs", k, &out[k])) return;
}

/* What the function returns is what it says that it does. */
static ax_status check_results(const ax_hlo_import *import, const ax_hlo_operation *op, const ax_hlo_operation *last) {
  const ax_hlo_attribute *said = ax_hlo_find(op, "function_type");
  if (said == NULL || said->kind != AX_HLO_TYPE || said->type->kind != AX_HLO_FUNCTION) return AX_OK;
  const ax_hlo_value_type *type = said->type;
  bool same = type->part_count - type->in_count == last->operand_count;
  for (uint32_t k = 0; same && k < last->operand_count; k++)
    same = type->parts[type->in_count + k] == import->module->values[last->operands[k]];
  if (same) return AX_OK;
  return blame(import, last, ax_error(AX_INVALID_ARGUMENT, "the function returns other values than those that it says"));
}

/* The function of one block that ends in a return, with as many results as *results. */
static ax_status check_function(const ax_hlo_import *import, const ax_hlo_operation *op, uint32_t *results) {
  const ax_hlo_operation *last = last_of(&op->regions[0]);
  if (last == NULL || !ax_hlo_is_return(last->name))
    return ax_hlo_blame(import->module, op, ax_error(AX_INVALID_ARGUMENT, "a function must be one block that ends in a return"));
  *results = last->operand_count;
  return check_results(import, op, last);
}

/* In the axes of the trace in progress, if there is one; else it is the whole program, which may be what each device runs. */
static ax_status trace_in(ax_hlo_import *import, ax_fn function, ax_type *types, ax_program **out) {
  if (ax_builder_current() != NULL) return (ax_trace_on)(&ax_builder_current()->axes, function, function.in_count, types, out);
  if (!import->devices.each) return (ax_trace)(function, function.in_count, types, out);
  ax_hlo_each each = ax_hlo_each_of(&import->devices, function);
  AX_TRY(ax_hlo_each_types(&each, function.in_count, types));
  return (ax_trace)(ax_hlo_each_function(&each), function.in_count, types, out);
}

/* Says how devices have the entry function's arguments, and makes the types of inputs that come as parts theirs. */
static ax_status expect_parts(ax_hlo_import *import, const ax_variant *main, uint32_t results, ax_type *types) {
  const ax_having each = import->devices.each && import->devices.replicas * import->devices.partitions > 1 ? AX_HAVE_BY_DEVICE : AX_HAVE_ARRAY;
  import->in_having = ax_arena_alloc(&import->arena, (main->in_count + (size_t)results + 1) * sizeof import->in_having[0]);
  if (import->in_having == NULL) return ax_out_of_memory(main->in_count + (size_t)results);
  import->out_having = import->in_having + main->in_count;
  for (uint32_t i = 0; i < main->in_count + results; i++) import->in_having[i] = each;
  for (uint32_t i = 0, next = 0; i < main->in_count && !import->devices.each; i++) {
    if (main->known[i] != NULL) continue;
    const ax_hlo_attribute own = attributes_of(main->op, "arg_attrs", i);
    const bool by_device = import->by_device != NULL && import->by_device[next];
    AX_TRY(ax_hlo_parts_argument(&import->devices, own.items, own.count, by_device, &types[next++], &import->in_having[i]));
  }
  return AX_OK;
}

/* drops: arguments that are known are no inputs of the program. */
static ax_status trace_variant(ax_hlo_import *import, ax_variant *variant, bool drops) {
  uint32_t results, count = 0;
  AX_TRY(check_function(import, variant->op, &results));
  ax_type *types = ax_alloc((variant->in_count + 1) * sizeof types[0]);
  variant->out_known = ax_arena_alloc(&import->arena, (results + 1) * sizeof variant->out_known[0]);
  if (types == NULL || variant->out_known == NULL) {
    ax_free(types);
    return ax_out_of_memory(variant->in_count * sizeof types[0]);
  }
  for (uint32_t i = 0; i < variant->in_count; i++)
    if (!drops || variant->known[i] == NULL) types[count++] = variant->types[i];
  function_run run = {import, variant, drops};
  ax_status status = drops && import->devices.parts_wanted ? expect_parts(import, variant, results, types) : AX_OK;
  if (status == AX_OK) status = trace_in(import, (ax_fn){run_function, count, results, &run}, types, &variant->program);
  ax_free(types);
  return status;
}

static uint64_t hash_variant(const ax_variant *v) {
  uint64_t hash = ax_hash_bytes(AX_HASH_SEED, &v->op, sizeof v->op);
  hash = ax_hash_bytes(hash, &v->axes.count, sizeof v->axes.count);
  for (uint32_t i = 0; i < v->in_count; i++) {
    hash = ax_hash_bytes(hash, &v->types[i].dtype, sizeof v->types[i].dtype);
    hash = ax_hash_bytes(hash, v->types[i].dims, v->types[i].rank * sizeof v->types[i].dims[0]);
    hash = ax_known_hash(hash, v->known[i]);
  }
  return hash;
}

static bool same_variant(const ax_variant *a, const ax_variant *b) {
  bool same = a->hash == b->hash && a->op == b->op && a->in_count == b->in_count && ax_mesh_equal(&a->axes, &b->axes, true);
  for (uint32_t i = 0; same && i < a->in_count; i++) {
    const ax_type *x = &a->types[i], *y = &b->types[i];
    same = x->form == y->form && x->dtype == y->dtype && ax_same_shape(x, y) && ax_spread_equal(&x->spread, &y->spread) &&
           ax_known_same(a->known[i], b->known[i]);
  }
  return same;
}

static ax_variant **variant_slot(const ax_hlo_import *import, const ax_variant *wanted) {
  uint32_t slot = (uint32_t)wanted->hash & (import->variant_size - 1);
  for (; import->variants[slot] != NULL; slot = (slot + 1) & (import->variant_size - 1))
    if (same_variant(import->variants[slot], wanted)) break;
  return &import->variants[slot];
}

static ax_status grow_variants(ax_hlo_import *import) {
  const uint32_t old_size = import->variant_size;
  if (2 * (import->variant_count + 1) <= old_size) return AX_OK;
  ax_variant **old = import->variants;
  ax_variant **larger = ax_calloc(old_size == 0 ? 16 : 2 * (size_t)old_size, sizeof larger[0]);
  if (larger == NULL) return ax_out_of_memory(2 * (size_t)old_size * sizeof larger[0]);
  import->variants = larger;
  import->variant_size = old_size == 0 ? 16 : 2 * old_size;
  for (uint32_t i = 0; i < old_size; i++)
    if (old[i] != NULL) *variant_slot(import, old[i]) = old[i];
  ax_free(old);
  return AX_OK;
}

static ax_status new_variant(ax_hlo_import *import, const ax_hlo_operation *op, ax_variant **out) {
  const uint32_t count = op->regions[0].block_count == 1 ? op->regions[0].blocks[0].argument_count : 0;
  if (op->regions[0].block_count != 1)
    return ax_hlo_blame(import->module, op, ax_error(AX_INVALID_ARGUMENT, "a function must have one block"));
  ax_variant *variant = ax_arena_alloc(&import->arena, sizeof *variant);
  ax_type *types = ax_arena_alloc(&import->arena, (count + 1) * sizeof types[0]);
  const ax_literal **known = ax_arena_alloc(&import->arena, (count + 1) * sizeof known[0]);
  if (variant == NULL || types == NULL || known == NULL) return ax_out_of_memory(count * sizeof types[0]);
  *variant = (ax_variant){.op = op, .in_count = count, .types = types, .known = known};
  if (ax_builder_current() != NULL) variant->axes = ax_builder_current()->axes;
  *out = variant;
  return AX_OK;
}

/* The function as the operation calls it: read now, or before. */
static ax_status find_variant(const ax_hlo_read_args *args, ax_function_entry *entry, ax_variant **out) {
  ax_hlo_import *import = args->import;
  ax_variant *wanted;
  AX_TRY(grow_variants(import));
  AX_TRY(new_variant(import, entry->op, &wanted));
  for (uint32_t i = 0; i < wanted->in_count; i++) {
    ((ax_type *)wanted->types)[i] = ax_typeof(args->in[i]);
    if (import->known != NULL) ((const ax_literal **)wanted->known)[i] = import->known[args->op->operands[i]];
  }
  wanted->hash = hash_variant(wanted);
  if ((*out = *variant_slot(import, wanted)) != NULL || ax_failed()) return AX_OK;
  entry->in_progress = true;
  const ax_status status = trace_variant(import, wanted, false);
  entry->in_progress = false;
  AX_TRY(status);
  wanted->is_threefry = ax_is_threefry(wanted->program);
  AX_TRY(grow_variants(import)); /* the function may have called others */
  *variant_slot(import, wanted) = *out = wanted;
  import->variant_count++;
  return AX_OK;
}

static ax_status check_call(const ax_hlo_import *import, const ax_hlo_operation *call, const ax_function_entry *entry) {
  uint32_t results;
  const ax_hlo_block *block = entry->op->regions[0].blocks;
  const uint32_t count = entry->op->regions[0].block_count > 0 ? block->argument_count : 0;
  AX_TRY(check_function(import, entry->op, &results));
  for (uint32_t i = 0; i < count && count == call->operand_count; i++) {
    const ax_hlo_value_type *said = import->module->values[block->argument + i], *is = import->module->values[call->operands[i]];
    if (!ax_hlo_same_quantized(said->quantized, is->quantized))
      return ax_error(AX_INVALID_ARGUMENT, "argument %u of @%.*s is quantized otherwise", i, (int)entry->name.length, entry->name.start);
  }
  if (count == call->operand_count && results == call->result_count) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "@%.*s takes %u values and gives %u, and the call has %u and %u", (int)entry->name.length,
                  entry->name.start, count, results, call->operand_count, call->result_count);
}

const ax_hlo_operation *ax_hlo_function_of(const ax_hlo_import *import, ax_hlo_slice name) { return function_slot(import, name)->op; }
const ax_hlo_operation *ax_hlo_function(const ax_hlo_read_args *args, ax_hlo_slice name) { return ax_hlo_function_of(args->import, name); }

/* Whether the value comes, by calls and layouts, from a manual computation, whose parts no call can pass on; marks these calls. */
static bool open_calls(ax_hlo_import *import, uint32_t value, uint32_t depth) {
  enum { deepest = 256 };
  const ax_hlo_operation *maker;
  while ((maker = import->module->makers[value]) != NULL && maker->operand_count == 1 && maker->result_count == 1 &&
         (ax_hlo_slice_is(maker->name, "sdy.sharding_constraint") || ax_hlo_slice_is(maker->name, "sdy.propagation_barrier")))
    value = maker->operands[0];
  if (maker == NULL || depth > deepest) return false;
  const ax_hlo_attribute *callee = ax_hlo_slice_is(maker->name, "func.call") ? ax_hlo_find(maker, "callee") : NULL;
  if (callee == NULL) return ax_hlo_slice_is(maker->name, "sdy.manual_computation");
  const ax_hlo_operation *function = function_slot(import, callee->text)->op;
  const ax_hlo_operation *last = function != NULL ? last_of(&function->regions[0]) : NULL;
  const uint32_t k = value - maker->result;
  if (last == NULL || k >= last->operand_count || !open_calls(import, last->operands[k], depth + 1)) return false;
  return import->opened[maker->result] = true;
}

static ax_status open_calls_of(ax_hlo_import *import, const ax_hlo_operation *main) {
  const ax_hlo_operation *last = last_of(&main->regions[0]);
  if (!import->devices.parts_wanted || import->devices.each || import->known != NULL || last == NULL) return AX_OK;
  import->opened = ax_arena_alloc(&import->arena, import->module->value_count + (size_t)1);
  if (import->opened == NULL) return ax_out_of_memory(import->module->value_count);
  for (uint32_t k = 0; k < last->operand_count; k++) (void)open_calls(import, last->operands[k], 0);
  return AX_OK;
}

/* Reads the function's operations as if they stood in the place of the call. */
static ax_status read_in_place(const ax_hlo_read_args *args, ax_hlo_slice function) {
  ax_hlo_body body;
  ax_fn fn;
  AX_TRY(ax_hlo_function_body(args, function, args->op->result_count, &body, &fn));
  fn.function(args->in, args->out, fn.context);
  return AX_OK;
}

ax_status ax_hlo_call(const ax_hlo_read_args *args, ax_hlo_slice function) {
  ax_function_entry *entry = function_slot(args->import, function);
  const ax_hlo_operation *op = args->op;
  ax_variant *variant;
  AX_TRY(check_callable(entry, function));
  AX_TRY(check_call(args->import, op, entry));
  if (args->import->opened != NULL && args->import->opened[op->result] && ax_hlo_parts_here(&args->import->devices))
    return read_in_place(args, function);
  AX_TRY(find_variant(args, entry, &variant));
  if (ax_failed()) return AX_OK;
  for (uint32_t k = 0; k < op->result_count && args->import->known != NULL; k++)
    args->import->known[op->result + k] = variant->out_known[k];
  const ax_closed_call_params params = {.body = variant->program};
  if (variant->is_threefry) (ax_threefry2x32)(args->in[0], args->in[1], args->in[2], args->in[3], op->result_count, args->out);
  else ax_bind(&ax_prim_closed_call, &params, args->in, op->operand_count, args->out, op->result_count);
  return AX_OK;
}

/* --- The module --- */

/* @main, or the only function. */
static ax_status find_main(const ax_hlo_import *import, const ax_hlo_operation **out) {
  const ax_function_entry *only = NULL;
  uint32_t count = 0;
  for (uint32_t i = 0; i < import->function_size; i++)
    if (import->functions[i].op != NULL) only = &import->functions[i], count++;
  const ax_function_entry *entry = function_slot(import, (ax_hlo_slice){"main", 4});
  if (entry->op == NULL && count != 1)
    return ax_error(AX_INVALID_ARGUMENT, "%s: the module has %u functions, and none is @main", import->module->source, count);
  *out = entry->op != NULL ? entry->op : only->op;
  return AX_OK;
}

/* The program of the entry function. */
static ax_status trace_main(ax_hlo_import *import, const ax_hlo_operation *function, const ax_hlo_binding *binding, ax_variant **out) {
  ax_function_entry *entry = NULL;
  AX_TRY(new_variant(import, function, out));
  for (uint32_t i = 0; i < import->function_size; i++)
    if (import->functions[i].op == function) entry = &import->functions[i];
  AX_TRY(ax_bind_arguments(import, function, binding, (ax_type *)(*out)->types, (const ax_literal **)(*out)->known));
  entry->in_progress = true;
  return trace_variant(import, *out, true);
}

enum { most_read_each = 100, most_read_least = 100000 }; /* operations that are read for each of the module's */

static ax_status import_main(ax_hlo_import *import, const ax_hlo_binding *binding, ax_variant **out) {
  const ax_hlo_operation *function = NULL;
  AX_TRY(ax_hlo_find_devices(import->module, &import->arena, &import->devices));
  AX_TRY(make_readers(import));
  AX_TRY(make_functions(import));
  AX_TRY(find_main(import, &function));
  const size_t bytes = import->module->value_count * sizeof import->values[0];
  import->values = ax_calloc(import->module->value_count + 1, sizeof import->values[0]); /* none is set: ax_poison */
  if (import->values == NULL) return ax_out_of_memory(bytes);
  import->most_read = most_read_least + (uint64_t)most_read_each * import->module->value_count;
  AX_TRY(ax_known_begin(import));
  AX_TRY(open_calls_of(import, function));
  return trace_main(import, function, binding, out);
}

static void end_import(ax_hlo_import *import) {
  for (uint32_t i = 0; i < import->variant_size; i++)
    if (import->variants[i] != NULL) ax_program_release(import->variants[i]->program);
  ax_free(import->variants);
  ax_hlo_probes_release(import->probes);
  ax_free(import->functions);
  ax_free(import->readers);
  ax_free(import->values);
  ax_free(import->known);
  ax_arena_deinit(&import->arena);
}

static ax_status import_module(const ax_hlo_module *module, const ax_hlo_binding *binding, ax_program_names *names, ax_program **out) {
  ax_hlo_import import = {.module = module, .custom_calls = binding->custom_calls, .inspections = binding->inspections,
                          .by_device = binding->by_device, .devices.parts_wanted = binding->parts};
  ax_variant *main = NULL;
  ax_status status = import_main(&import, binding, &main);
  if (status == AX_OK && names != NULL) status = ax_keep_names(&import, main, names);
  *out = main != NULL ? main->program : NULL;
  end_import(&import);
  return status;
}

ax_status ax_program_from_stablehlo_named(const char *text, size_t bytes, const char *source, const ax_hlo_binding *binding,
                                          ax_program_names *names, ax_program **out) {
  const ax_hlo_binding none = {0};
  ax_hlo_module module;
  *out = NULL;
  if (names != NULL) *names = (ax_program_names){0};
  AX_TRY(ax_require(text, "text"));
  AX_TRY(ax_hlo_read_lent(text, bytes, source != NULL ? source : "module", binding != NULL ? binding->owner : NULL, &module));
  ax_status status = ax_hlo_verify(&module);
  if (status == AX_OK) status = ax_hlo_flatten(&module, binding != NULL && binding->entry_tokens);
  if (status == AX_OK) status = ax_hlo_shardy_calls(&module);
  if (status == AX_OK) status = ax_hlo_manual_sections(&module);
  if (status == AX_OK) status = import_module(&module, binding != NULL ? binding : &none, names, out);
  ax_hlo_module_deinit(&module);
  if (status == AX_OK) return AX_OK;
  if (names != NULL) ax_program_names_deinit(names);
  ax_program_release(*out);
  *out = NULL;
  return status;
}

ax_status ax_program_from_stablehlo(const char *text, size_t bytes, const char *source, ax_program **out) {
  return ax_program_from_stablehlo_named(text, bytes, source, NULL, NULL, out);
}

/* Types that the caller says. */
static ax_status type_of_options(void *context, uint32_t index, ax_hlo_slice name, ax_type *out) {
  const ax_stablehlo_options *options = context;
  (void)name;
  *out = index < options->type_count ? options->types[index] : (ax_type){.dtype = AX_NO_DTYPE};
  return AX_OK;
}

ax_status ax_program_from_stablehlo_with(const char *text, size_t bytes, const char *source, const ax_stablehlo_options *options,
                                         ax_program **out) {
  *out = NULL;
  AX_TRY(ax_require(options, "options"));
  const ax_hlo_binding binding = {.dim_count = options->dim_count,
                                  .dims = options->dims,
                                  .type_of = type_of_options,
                                  .context = (void *)(uintptr_t)options,
                                  .custom_calls = options->custom_calls};
  return ax_program_from_stablehlo_named(text, bytes, source, &binding, NULL, out);
}
