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

#include "axle/stablehlo.h"
#include "bridge/devices.h"
#include "bridge/readers.h"
#include "bridge/sections.h"
#include "bridge/stablehlo_read.h"
#include "control/closed_call.h"
#include "hlo/files.h"
#include "hlo/flatten.h"
#include "hlo/hlo.h"
#include "prim/prims.h"
#include "prim/rules.h"

typedef struct reader_entry { /* of the table of readers, by the op's name */
  const char *op;
  const ax_prim *prim;
  ax_status (*read)(const ax_hlo_read_args *args);
} reader_entry;

typedef struct function_entry {
  ax_hlo_slice name;
  const ax_hlo_operation *op;
  ax_program *program; /* NULL: not read yet */
  ax_mesh axes;        /* that it was read for: a function may be called in several manual computations */
  bool in_progress;
} function_entry;

struct ax_hlo_import {
  const ax_hlo_module *module;
  ax_arena arena;
  ax_hlo_devices devices;
  ax_value *values; /* by number */
  reader_entry *readers;
  uint32_t reader_count, reader_size;
  function_entry *functions; /* a hash table */
  uint32_t function_size;
};

/* --- Tables --- */

static uint64_t hash_name(const char *name, size_t length) { return ax_hash_bytes(AX_HASH_SEED, name, length); }

static reader_entry *reader_slot(const ax_hlo_import *import, const char *name, size_t length) {
  uint32_t slot = (uint32_t)hash_name(name, length) & (import->reader_size - 1);
  for (; import->readers[slot].op != NULL; slot = (slot + 1) & (import->reader_size - 1))
    if (ax_hlo_slice_is((ax_hlo_slice){name, length}, import->readers[slot].op)) break;
  return &import->readers[slot];
}

/* The first reader of an op stays: lists of readers come before forms. */
static void add_reader(ax_hlo_import *import, const reader_entry *entry) {
  reader_entry *slot = reader_slot(import, entry->op, strlen(entry->op));
  if (slot->op == NULL) *slot = *entry;
}

static void add_readers(ax_hlo_import *import, const ax_prim *prim, const ax_hlo_reader *readers) {
  for (; readers != NULL && readers->op != NULL; readers++)
    add_reader(import, &(reader_entry){.op = readers->op, .prim = prim, .read = readers->read});
}

static ax_status make_readers(ax_hlo_import *import) {
  import->reader_size = 2048;
  import->readers = ax_calloc(import->reader_size, sizeof import->readers[0]);
  if (import->readers == NULL) return ax_out_of_memory(import->reader_size * sizeof import->readers[0]);
  for (uint32_t i = 0; i < ax_hlo_reader_list_count; i++) add_readers(import, NULL, ax_hlo_reader_lists[i]);
  for (uint32_t i = 0; i < ax_prim_count; i++) add_readers(import, ax_prims[i], ax_prims[i]->reads);
  for (uint32_t i = 0; i < ax_prim_count; i++) {
    const ax_hlo_form *form = ax_prims[i]->form;
    if (form == NULL || form->attributes != NULL) continue;
    add_reader(import, &(reader_entry){.op = form->op, .prim = ax_prims[i], .read = ax_hlo_read_by_form});
  }
  return AX_OK;
}

static function_entry *function_slot(const ax_hlo_import *import, ax_hlo_slice name) {
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
    function_entry *entry = function_slot(import, name->text);
    if (entry->op != NULL)
      return ax_error(AX_INVALID_ARGUMENT, "%s:%u: there are two functions @%.*s", import->module->source, op->place.line,
                      (int)name->text.length, name->text.start);
    *entry = (function_entry){.name = name->text, .op = op};
  }
  return AX_OK;
}

/* --- Operations --- */

static bool is_return(ax_hlo_slice name) {
  return ax_hlo_slice_is(name, "stablehlo.return") || ax_hlo_slice_is(name, "func.return") || ax_hlo_slice_is(name, "sdy.return");
}

/* The message with the operation and its line; of operations inside others, with the innermost lines. */
enum { most_context = 600 }; /* bytes */

static ax_status blame(const ax_hlo_import *import, const ax_hlo_operation *op, ax_status status) {
  char place[512];
  if (status == AX_OUT_OF_MEMORY || strlen(ax_message()) > most_context) return status;
  ax_hlo_place_text(import->module, &op->place, place, sizeof place);
  return ax_error_context(status, "%s: %.*s: ", place, (int)op->name.length, op->name.start);
}

static ax_status check_result(const ax_hlo_operation *op, uint32_t k, ax_value made, const ax_type *said) {
  const ax_type type = ax_typeof(made);
  if (type.dtype == said->dtype && type.form == said->form && ax_same_shape(&type, said)) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "result %u of %.*s is %s, and the module says %s", k, (int)op->name.length, op->name.start,
                  ax_type_string(&type, NULL), ax_type_string(said, NULL));
}

/* The value of the number. A scalar constant from outside a region is made anew in it, since optimizers move constants out of bodies
   that may use numbers but no values from outside: comparators and reducers. */
static ax_status value_of(const ax_hlo_import *import, uint32_t number, ax_value *out) {
  const ax_hlo_attribute *constant = ax_hlo_constant(import->module, number);
  *out = import->values[number];
  if (constant == NULL || constant->type->rank > 0 || out->trace == ax_builder_current()->serial) return AX_OK;
  return ax_hlo_elements_value(constant, out);
}

typedef struct frame { /* what one operation needs besides itself */
  ax_value *in, *out;
  ax_type *types;
} frame;

static ax_status read_operation(ax_hlo_import *import, const ax_hlo_operation *op, const frame *f) {
  const reader_entry *entry = reader_slot(import, op->name.start, op->name.length);
  if (entry->op == NULL) return ax_error(AX_ABSENT, "this operation is not read yet");
  for (uint32_t k = 0; k < op->result_count; k++) AX_TRY(ax_hlo_array_type(import->module->values[op->result + k], &f->types[k]));
  for (uint32_t i = 0; i < op->operand_count; i++) AX_TRY(value_of(import, op->operands[i], &f->in[i]));
  for (uint32_t k = 0; k < op->result_count; k++) f->out[k] = ax_poison;
  AX_TRY(entry->read(&(ax_hlo_read_args){.prim = entry->prim,
                                         .op = op,
                                         .in = f->in,
                                         .out = f->out,
                                         .out_types = f->types,
                                         .import = import,
                                         .devices = &import->devices}));
  for (uint32_t k = 0; k < op->result_count && !ax_failed(); k++) {
    AX_TRY(check_result(op, k, f->out[k], &f->types[k]));
    AX_TRY(ax_hlo_lay_out_as(&import->devices, op->attributes, op->attribute_count, k, &f->out[k]));
    import->values[op->result + k] = f->out[k];
  }
  return AX_OK;
}

ax_status ax_hlo_read_as(const ax_hlo_read_args *args, const char *name, const ax_value *in) {
  const reader_entry *entry = reader_slot(args->import, name, strlen(name));
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
  builder->location = place;
  if (status == AX_OK)
    status = read_operation(
        import, op,
        &(frame){
            .in = (ax_value *)memory, .out = (ax_value *)(memory + operands), .types = (ax_type *)(memory + operands + results)});
  builder->location = NULL;
  ax_free(memory);
  if (builder->status != AX_OK) status = ax_error(builder->status, "%s", builder->message); /* what failed first */
  if (status == AX_OK) return true;
  builder->status = AX_OK;
  ax_fail(blame(import, op, status));
  return false;
}

/* The value must have the type that the module says for the block's argument. False: the trace has failed. */
static bool take_argument(ax_hlo_import *import, const ax_hlo_block *block, uint32_t i, ax_value value) {
  const ax_type type = ax_typeof(value);
  ax_type said;
  ax_status status = ax_hlo_array_type(import->module->values[block->argument + i], &said);
  if (status == AX_OK && !ax_failed() && (type.dtype != said.dtype || !ax_same_shape(&type, &said)))
    status = ax_error(AX_INVALID_ARGUMENT, "argument %u of a block is %s, and the module says %s", i, ax_type_string(&type, NULL),
                      ax_type_string(&said, NULL));
  if (status != AX_OK) ax_fail(status);
  import->values[block->argument + i] = value;
  return !ax_failed();
}

static void run_block(ax_hlo_import *import, const ax_hlo_block *block, const ax_value *in, ax_value *out) {
  for (uint32_t i = 0; i < block->argument_count; i++)
    if (!take_argument(import, block, i, in[i])) return;
  for (uint32_t i = 0; i < block->operation_count; i++) {
    const ax_hlo_operation *op = block->operations[i];
    if (is_return(op->name) && i + 1 < block->operation_count) {
      ax_fail(blame(import, op, ax_error(AX_INVALID_ARGUMENT, "operations stand behind it")));
      return;
    }
    if (is_return(op->name)) {
      for (uint32_t k = 0; k < op->operand_count; k++) {
        const ax_status status = value_of(import, op->operands[k], &out[k]);
        if (status != AX_OK && !ax_failed()) ax_fail(blame(import, op, status));
      }
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
  run_block(body->import, &body->region->blocks[0], in, out);
}

ax_status ax_hlo_body_of(const ax_hlo_read_args *args, uint32_t region, uint32_t out_count, ax_hlo_body *body, ax_fn *out) {
  const ax_hlo_operation *op = args->op, *last = region < op->region_count ? last_of(&op->regions[region]) : NULL;
  if (last == NULL || !is_return(last->name))
    return ax_error(AX_INVALID_ARGUMENT, "region %u must be one block that ends in a return", region);
  if (last->operand_count != out_count)
    return ax_error(AX_INVALID_ARGUMENT, "region %u returns %u values, and not %u", region, last->operand_count, out_count);
  *body = (ax_hlo_body){args->import, &op->regions[region]};
  *out = (ax_fn){run_body, op->regions[region].blocks[0].argument_count, out_count, body};
  return AX_OK;
}

const ax_hlo_attribute *ax_hlo_constant_operand(const ax_hlo_read_args *args, uint32_t operand) {
  return ax_hlo_constant(args->import->module, args->op->operands[operand]);
}

const ax_hlo_operation *ax_hlo_maker_of(const ax_hlo_read_args *args, uint32_t value) {
  return args->import->module->makers[value];
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
  if (block == NULL || block->operation_count < 2 || block->operation_count > 3 || block->argument_count != 2) return none;
  const ax_hlo_operation *only = block->operations[0], *laid = block->operations[1];
  const ax_hlo_operation *last = block->operations[block->operation_count - 1];
  if (only->operand_count != 2 || only->result_count != 1 || only->region_count > 0) return none;
  const bool lays = laid != last && is_layout(laid) && laid->operands[0] == only->result;
  if (laid != last && !lays) return none;
  if (!is_return(last->name) || last->operand_count != 1 || last->operands[0] != (lays ? laid->result : only->result)) return none;
  const uint32_t a = block->argument, x = only->operands[0], y = only->operands[1];
  return (x == a && y == a + 1) || (x == a + 1 && y == a) ? only->name : none;
}

/* --- Functions --- */

typedef struct function_run {
  ax_hlo_import *import;
  const ax_hlo_operation *op;
} function_run;

/* Lays out arguments or results as the function's attributes say. False: the trace has failed. */
static bool lay_out(const function_run *run, const char *attributes, uint32_t count, ax_value *values) {
  const ax_hlo_attribute *list = ax_hlo_find(run->op, attributes);
  for (uint32_t i = 0; list != NULL && list->kind == AX_HLO_ARRAY && i < list->count && i < count && !ax_failed(); i++) {
    const ax_hlo_attribute *own = &list->items[i];
    if (own->kind != AX_HLO_DICTIONARY) continue;
    const ax_status status = ax_hlo_lay_out_as(&run->import->devices, own->items, own->count, 0, &values[i]);
    if (status != AX_OK && !ax_failed()) ax_fail(blame(run->import, run->op, status));
  }
  return !ax_failed();
}

static AX_BODY(run_function) {
  const function_run *run = context;
  const ax_hlo_block *block = &run->op->regions[0].blocks[0];
  const uint32_t out_count = last_of(&run->op->regions[0])->operand_count;
  ax_value *laid = ax_trace_alloc((block->argument_count + 1) * sizeof laid[0]);
  if (laid == NULL) return;
  for (uint32_t i = 0; i < block->argument_count; i++) laid[i] = in[i];
  if (!lay_out(run, "arg_attrs", block->argument_count, laid)) return;
  run_block(run->import, block, laid, out);
  if (!ax_failed()) lay_out(run, "res_attrs", out_count, out);
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

/* In the axes of the trace in progress, if there is one. */
static ax_status trace_types(ax_hlo_import *import, const ax_hlo_operation *op, const ax_hlo_block *block, ax_type *types,
                             ax_program **out) {
  const ax_hlo_operation *last = last_of(&op->regions[0]);
  if (last == NULL || !is_return(last->name))
    return ax_error(AX_INVALID_ARGUMENT, "a function must be one block that ends in a return");
  for (uint32_t i = 0; i < block->argument_count; i++)
    AX_TRY(ax_hlo_array_type(import->module->values[block->argument + i], &types[i]));
  AX_TRY(check_results(import, op, last));
  function_run run = {import, op};
  ax_hlo_each each;
  ax_fn function = {run_function, block->argument_count, last->operand_count, &run};
  if (ax_builder_current() != NULL)
    return (ax_trace_on)(&ax_builder_current()->axes, function, function.in_count, types, out);
  if (!import->devices.each) return (ax_trace)(function, function.in_count, types, out);
  each = ax_hlo_each_of(&import->devices, function);
  AX_TRY(ax_hlo_each_types(&each, function.in_count, types));
  return (ax_trace)(ax_hlo_each_function(&each), function.in_count, types, out);
}

static ax_status trace_function(ax_hlo_import *import, const ax_hlo_operation *op, ax_program **out) {
  *out = NULL;
  if (op->regions[0].block_count != 1) return ax_error(AX_INVALID_ARGUMENT, "a function must have one block");
  const ax_hlo_block *block = &op->regions[0].blocks[0];
  ax_type *types = ax_alloc(block->argument_count * sizeof types[0]);
  if (types == NULL) return ax_out_of_memory(block->argument_count * sizeof types[0]);
  const ax_status status = trace_types(import, op, block, types, out);
  ax_free(types);
  return status;
}

ax_status ax_hlo_call(const ax_hlo_read_args *args, ax_hlo_slice function) {
  function_entry *entry = function_slot(args->import, function);
  const ax_hlo_operation *op = args->op;
  if (entry->op == NULL) return ax_error(AX_INVALID_ARGUMENT, "there is no function @%.*s", (int)function.length, function.start);
  if (entry->in_progress) return ax_error(AX_INVALID_ARGUMENT, "@%.*s calls itself", (int)function.length, function.start);
  const ax_mesh *axes = &ax_builder_current()->axes;
  if (entry->program != NULL && !ax_mesh_equal(axes, &entry->axes, true)) {
    ax_program_release(entry->program);
    entry->program = NULL;
  }
  if (entry->program == NULL) {
    entry->axes = *axes;
    entry->in_progress = true;
    AX_TRY(trace_function(args->import, entry->op, &entry->program));
    entry->in_progress = false;
  }
  if (entry->program->in_count != op->operand_count || entry->program->out_count != op->result_count)
    return ax_error(AX_INVALID_ARGUMENT, "@%.*s takes %u values and gives %u, and the call has %u and %u", (int)function.length,
                    function.start, entry->program->in_count, entry->program->out_count, op->operand_count, op->result_count);
  const ax_closed_call_params params = {.body = entry->program};
  ax_bind(&ax_prim_closed_call, &params, args->in, op->operand_count, args->out, op->result_count);
  return AX_OK;
}

/* --- The module --- */

/* @main, or the only function. */
static ax_status find_main(const ax_hlo_import *import, const ax_hlo_operation **out) {
  const function_entry *only = NULL;
  uint32_t count = 0;
  for (uint32_t i = 0; i < import->function_size; i++)
    if (import->functions[i].op != NULL) only = &import->functions[i], count++;
  const function_entry *entry = function_slot(import, (ax_hlo_slice){"main", 4});
  if (entry->op == NULL && count != 1)
    return ax_error(AX_INVALID_ARGUMENT, "%s: the module has %u functions, and none is @main", import->module->source, count);
  *out = entry->op != NULL ? entry->op : only->op;
  return AX_OK;
}

static ax_status import_main(ax_hlo_import *import, const ax_hlo_operation **function, ax_program **out) {
  AX_TRY(ax_hlo_find_devices(import->module, &import->arena, &import->devices));
  AX_TRY(make_readers(import));
  AX_TRY(make_functions(import));
  AX_TRY(find_main(import, function));
  const size_t bytes = import->module->value_count * sizeof import->values[0];
  import->values = ax_calloc(import->module->value_count + 1, sizeof import->values[0]); /* none is set: ax_poison */
  if (import->values == NULL) return ax_out_of_memory(bytes);
  return trace_function(import, *function, out);
}

/* Names of the inputs as the text has them, empty ones of the results. */
static ax_status keep_names(const ax_hlo_operation *function, const ax_program *program, ax_program_names *names) {
  const ax_hlo_attribute *found = ax_hlo_find(function, AX_HLO_ARGUMENT_NAMES);
  const char **in = ax_arena_alloc(&names->arena, (program->in_count + 1) * sizeof in[0]);
  const char **out = ax_arena_alloc(&names->arena, (program->out_count + 1) * sizeof out[0]);
  if (in == NULL || out == NULL) return ax_out_of_memory(0);
  for (uint32_t k = 0; k < program->out_count; k++) out[k] = "";
  for (uint32_t i = 0; i < program->in_count; i++) {
    const ax_hlo_slice text = found != NULL && i < found->count ? found->items[i].text : (ax_hlo_slice){"", 0};
    char *copy = ax_arena_alloc(&names->arena, text.length + 1);
    if (copy == NULL) return ax_out_of_memory(text.length);
    memcpy(copy, text.start, text.length);
    in[i] = copy;
  }
  names->in = in, names->out = out;
  return AX_OK;
}

static ax_status import_module(const ax_hlo_module *module, ax_program_names *names, ax_program **out) {
  ax_hlo_import import = {.module = module};
  const ax_hlo_operation *function = NULL;
  ax_status status = import_main(&import, &function, out);
  if (status == AX_OK && names != NULL) status = keep_names(function, *out, names);
  for (uint32_t i = 0; i < import.function_size && import.functions != NULL; i++) ax_program_release(import.functions[i].program);
  ax_free(import.functions);
  ax_free(import.readers);
  ax_free(import.values);
  ax_arena_deinit(&import.arena);
  return status;
}

ax_status ax_program_from_stablehlo_named(const char *text, size_t bytes, const char *source, ax_program_names *names, ax_program **out) {
  ax_hlo_module module;
  *out = NULL;
  if (names != NULL) *names = (ax_program_names){0};
  AX_TRY(ax_require(text, "text"));
  AX_TRY(ax_hlo_read(text, bytes, source != NULL ? source : "module", &module));
  ax_status status = ax_hlo_flatten(&module);
  if (status == AX_OK) status = ax_hlo_manual_sections(&module);
  if (status == AX_OK) status = import_module(&module, names, out);
  ax_hlo_module_deinit(&module);
  if (status == AX_OK) return AX_OK;
  if (names != NULL) ax_program_names_deinit(names);
  ax_program_release(*out);
  *out = NULL;
  return status;
}

ax_status ax_program_from_stablehlo(const char *text, size_t bytes, const char *source, ax_program **out) {
  return ax_program_from_stablehlo_named(text, bytes, source, NULL, out);
}
