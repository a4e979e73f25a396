/* What a module calls the inputs and results of its entry function, and which inputs it is given for good.

     @main(%arg0: tensor<4xf32> loc("params['w']")) -> (tensor<f32> {jax.result_info = "result['loss']"})

   The input is params['w'], and also arg0; the result is result['loss']. Texts have locations where they are asked for
   (as_text(debug_info=True)), bytecode and files of jax.export always. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/import.h"
#include "bridge/parts.h"
#include "hlo/flatten.h"

/* A string in the arena; "" for an empty slice. NULL: no memory. */
static const char *copy_of(ax_program_names *names, ax_hlo_slice text) {
  char *copy = text.length > 0 ? ax_arena_alloc(&names->arena, text.length + 1) : NULL;
  if (text.length == 0) return "";
  if (copy != NULL) memcpy(copy, text.start, text.length), copy[text.length] = '\0';
  return copy;
}

static ax_status name_inputs(const ax_hlo_module *module, const ax_variant *main, ax_program_names *names) {
  const ax_hlo_attribute *found = ax_hlo_find(main->op, AX_HLO_ARGUMENT_NAMES);
  const size_t bytes = (main->program->in_count + 1) * sizeof(char *);
  const char **in = ax_arena_alloc(&names->arena, bytes), **also = ax_arena_alloc(&names->arena, bytes);
  if (in == NULL || also == NULL) return ax_out_of_memory(2 * bytes);
  for (uint32_t i = 0, next = 0; i < main->in_count; i++) {
    if (main->known[i] != NULL) continue;
    const bool named = found != NULL && i < found->count;
    const ax_hlo_slice text = named ? found->items[i].text : (ax_hlo_slice){0};
    const ax_hlo_slice called = named ? ax_hlo_location_name(module, found->items[i].name) : (ax_hlo_slice){0};
    in[next] = copy_of(names, called.length > 0 ? called : text);
    also[next] = copy_of(names, called.length > 0 ? text : called);
    if (in[next] == NULL || also[next] == NULL) return ax_out_of_memory(called.length + text.length);
    next++;
  }
  names->in = in, names->in_also = also;
  return AX_OK;
}

static ax_status name_module(const ax_hlo_module *module, ax_program_names *names) {
  ax_hlo_slice name = {0};
  for (uint32_t i = 0; i < module->attribute_count; i++)
    if (ax_hlo_slice_is(module->attributes[i].name, "sym_name")) name = module->attributes[i].text;
  names->module = copy_of(names, name);
  return names->module != NULL ? AX_OK : ax_out_of_memory(name.length + 1);
}

/* Item `name` among the attributes of argument or result number i; NULL: it has none. */
static const ax_hlo_attribute *said_of(const ax_variant *main, const char *attributes, uint32_t i, const char *name) {
  const ax_hlo_attribute *list = ax_hlo_find(main->op, attributes);
  const bool listed = list != NULL && list->kind == AX_HLO_ARRAY && i < list->count && list->items[i].kind == AX_HLO_DICTIONARY;
  return listed ? ax_hlo_item(&list->items[i], name) : NULL;
}

/* tf.aliasing_output says of which result an input's memory becomes, jax.buffer_donor that it may become any's. */
static ax_status mark_donated(const ax_variant *main, ax_program_names *names) {
  bool *donated = ax_arena_alloc(&names->arena, main->program->in_count + 1);
  if (donated == NULL) return ax_out_of_memory(main->program->in_count);
  for (uint32_t i = 0, next = 0; i < main->in_count; i++) {
    if (main->known[i] != NULL) continue;
    const ax_hlo_attribute *donor = said_of(main, "arg_attrs", i, "jax.buffer_donor");
    donated[next++] = said_of(main, "arg_attrs", i, "tf.aliasing_output") != NULL || (donor != NULL && donor->integer != 0);
  }
  names->donated = donated;
  return AX_OK;
}

static ax_status name_results(const ax_variant *main, ax_program_names *names) {
  const size_t bytes = (main->program->out_count + 1) * sizeof(char *);
  const char **out = ax_arena_alloc(&names->arena, bytes);
  if (out == NULL) return ax_out_of_memory(bytes);
  for (uint32_t k = 0; k < main->program->out_count; k++) {
    const ax_hlo_attribute *info = said_of(main, "res_attrs", k, "jax.result_info");
    out[k] = copy_of(names, info != NULL && info->kind == AX_HLO_STRING ? info->text : (ax_hlo_slice){0});
    if (out[k] == NULL) return ax_out_of_memory(0);
  }
  names->out = out;
  return AX_OK;
}

/* Of a value whose mesh has the devices in another order: that order. */
static ax_status name_order(const ax_hlo_import *import, const ax_hlo_attribute *list, uint32_t i, ax_program_names *names, ax_dim_list *out) {
  ax_sdy_sharding layout;
  bool said;
  *out = (ax_dim_list){0};
  if (list == NULL || list->kind != AX_HLO_ARRAY || i >= list->count || list->items[i].kind != AX_HLO_DICTIONARY) return AX_OK;
  AX_TRY(ax_hlo_layout_of(&import->devices, list->items[i].items, list->items[i].count, &layout, &said));
  if (!said || layout.mesh.ids == NULL) return AX_OK;
  *out = (ax_dim_list){layout.mesh.id_count, ax_arena_copy(&names->arena, layout.mesh.ids, layout.mesh.id_count * sizeof layout.mesh.ids[0])};
  return out->v != NULL ? AX_OK : ax_out_of_memory(layout.mesh.id_count * sizeof layout.mesh.ids[0]);
}

static ax_status name_orders(const ax_hlo_import *import, const ax_variant *main, ax_program_names *names) {
  const size_t in_count = main->program->in_count, out_count = main->program->out_count;
  ax_dim_list *order = ax_arena_alloc(&names->arena, (in_count + out_count + 1) * sizeof order[0]);
  if (order == NULL) return ax_out_of_memory((in_count + out_count) * sizeof order[0]);
  for (uint32_t i = 0, next = 0; i < main->in_count; i++)
    if (main->known[i] == NULL) AX_TRY(name_order(import, ax_hlo_find(main->op, "arg_attrs"), i, names, &order[next++]));
  for (uint32_t k = 0; k < out_count; k++)
    AX_TRY(name_order(import, ax_hlo_find(main->op, "res_attrs"), k, names, &order[in_count + k]));
  names->in_order = order, names->out_order = order + in_count;
  return AX_OK;
}

/* mhlo.layout_mode of an input or a result; "default" where nothing is said. */
static const char *layout_of(const ax_variant *main, const char *attributes, uint32_t i, ax_program_names *names) {
  const ax_hlo_attribute *mode = said_of(main, attributes, i, "mhlo.layout_mode");
  return mode != NULL && mode->kind == AX_HLO_STRING ? copy_of(names, mode->text) : "default";
}

/* The order of a value's dimensions in memory, the one that changes fastest first: that of an argument, if the module says it. */
static void order_of(const ax_variant *main, uint32_t value, uint32_t rank, ax_program_names *names, int64_t *order) {
  const ax_hlo_block *block = &main->op->regions[0].blocks[0];
  const bool argument = value >= block->argument && value - block->argument < block->argument_count;
  const char *at = argument ? layout_of(main, "arg_attrs", value - block->argument, names) : NULL;
  for (uint32_t d = 0; d < rank; d++) {
    char *end = NULL;
    order[d] = rank - 1 - d;
    if (at == NULL || (*at != '{' && *at != ',')) continue;
    order[d] = strtoll(at + 1, &end, 10);
    at = end;
  }
}

/* The operation that makes result k; NULL: it is an argument. */
static const ax_hlo_operation *maker_of(const ax_hlo_import *import, const ax_variant *main, uint32_t k) {
  const ax_hlo_block *block = &main->op->regions[0].blocks[0];
  return import->module->makers[block->operations[block->operation_count - 1]->operands[k]];
}

/* Of a result whose layout is left to us: row-major; but what is a transposed array lies as that array does. */
static const char *chosen_layout(const ax_hlo_import *import, const ax_variant *main, uint32_t k, ax_program_names *names) {
  const ax_hlo_operation *maker = maker_of(import, main, k);
  while (maker != NULL && ax_hlo_slice_is(maker->name, "sdy.sharding_constraint")) maker = import->module->makers[maker->operands[0]];
  ax_dims permutation;
  int64_t order[AX_MAX_RANK];
  char text[4 * AX_MAX_RANK + 4];
  if (maker == NULL || !ax_hlo_slice_is(maker->name, "stablehlo.transpose") || ax_hlo_integers(maker, "permutation", &permutation) != AX_OK ||
      permutation.count == 0)
    return "default";
  order_of(main, maker->operands[0], permutation.count, names, order);
  size_t length = 0;
  for (uint32_t i = 0; i < permutation.count; i++)
    for (uint32_t d = 0; d < permutation.count; d++)
      if (permutation.v[d] == order[i]) length += (size_t)snprintf(text + length, sizeof text - length, "%c%u", i == 0 ? '{' : ',', d);
  snprintf(text + length, sizeof text - length, "}");
  return copy_of(names, (ax_hlo_slice){text, strlen(text)});
}

static ax_status name_layouts(const ax_hlo_import *import, const ax_variant *main, ax_program_names *names) {
  const size_t in_count = main->program->in_count, out_count = main->program->out_count;
  const char **layout = ax_arena_alloc(&names->arena, (in_count + out_count + 1) * sizeof layout[0]);
  bool all = layout != NULL;
  for (uint32_t i = 0, next = 0; all && i < main->in_count; i++)
    if (main->known[i] == NULL) all = (layout[next++] = layout_of(main, "arg_attrs", i, names)) != NULL;
  for (uint32_t k = 0; all && k < out_count; k++) {
    const char *said = layout_of(main, "res_attrs", k, names);
    layout[in_count + k] = said != NULL && strcmp(said, "auto") == 0 ? chosen_layout(import, main, k, names) : said;
    all = layout[in_count + k] != NULL;
  }
  names->in_layout = layout, names->out_layout = layout + in_count;
  return all ? AX_OK : ax_out_of_memory((in_count + out_count) * sizeof layout[0]);
}

/* mhlo.memory_kind of an input or a result; "device" where nothing is said. */
static const char *memory_of(const ax_variant *main, const char *attributes, uint32_t i, ax_program_names *names) {
  const ax_hlo_attribute *kind = said_of(main, attributes, i, "mhlo.memory_kind");
  return kind != NULL && kind->kind == AX_HLO_STRING ? copy_of(names, kind->text) : "device";
}

static ax_status name_memories(const ax_variant *main, ax_program_names *names) {
  const size_t in_count = main->program->in_count, out_count = main->program->out_count;
  const char **memory = ax_arena_alloc(&names->arena, (in_count + out_count + 1) * sizeof memory[0]);
  bool all = memory != NULL;
  for (uint32_t i = 0, next = 0; all && i < main->in_count; i++)
    if (main->known[i] == NULL) all = (memory[next++] = memory_of(main, "arg_attrs", i, names)) != NULL;
  for (uint32_t k = 0; all && k < out_count; k++) all = (memory[in_count + k] = memory_of(main, "res_attrs", k, names)) != NULL;
  names->in_memory = memory, names->out_memory = memory + in_count;
  return all ? AX_OK : ax_out_of_memory((in_count + out_count) * sizeof memory[0]);
}

static ax_status name_tokens(const ax_hlo_import *import, const ax_variant *main, ax_program_names *names) {
  bool *token = ax_arena_alloc(&names->arena, main->program->out_count + (size_t)1);
  if (token == NULL) return ax_out_of_memory(main->program->out_count);
  for (uint32_t k = 0; k < main->program->out_count; k++) {
    const ax_hlo_operation *maker = maker_of(import, main, k);
    token[k] = maker != NULL && ax_hlo_find(maker, AX_HLO_IS_TOKEN) != NULL;
  }
  names->out_token = token;
  return AX_OK;
}

static ax_status keep_having(const ax_hlo_import *import, const ax_variant *main, ax_program_names *names) {
  const size_t in_count = main->program->in_count, out_count = main->program->out_count;
  ax_having *having = ax_arena_alloc(&names->arena, (in_count + out_count + 1) * sizeof having[0]);
  if (having == NULL) return ax_out_of_memory((in_count + out_count) * sizeof having[0]);
  for (uint32_t i = 0, next = 0; i < main->in_count; i++)
    if (main->known[i] == NULL) having[next++] = import->in_having[i];
  memcpy(having + in_count, import->out_having, out_count * sizeof having[0]);
  names->in_having = having, names->out_having = having + in_count;
  return AX_OK;
}

ax_status ax_keep_names(const ax_hlo_import *import, const ax_variant *main, ax_program_names *names) {
  AX_TRY(name_module(import->module, names));
  AX_TRY(name_inputs(import->module, main, names));
  if (import->in_having != NULL) AX_TRY(keep_having(import, main, names));
  if (import->in_having != NULL) AX_TRY(name_layouts(import, main, names));
  if (import->in_having != NULL) AX_TRY(name_memories(main, names));
  if (import->in_having != NULL) AX_TRY(name_tokens(import, main, names));
  if (import->in_having != NULL && !import->devices.each) AX_TRY(name_orders(import, main, names));
  names->sums_stay = import->devices.sums_stay;
  AX_TRY(mark_donated(main, names));
  return name_results(main, names);
}
