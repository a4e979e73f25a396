/* A module in the making. Operations whose regions are being made are a stack, `open`; what the blocks in progress have is another,
   `added`, in which each block's operations lie together:

     open     while          reduce
     added    a b while      c d reduce     e f
              the body's     the region's   the region's

   When a region ends, its operations leave that stack as a block; when an operation ends, it takes its blocks. Value numbers are
   never used twice in a module. */
#include "hlo/hlo.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "hlo/reader.h"
#include "ir/number.h"
#include "ir/prim.h"

struct ax_hlo_open {
  ax_hlo_operation *op;
  ax_hlo_block block;          /* that is being made */
  uint32_t first, first_block; /* where its operations begin in `added`, and the operation's regions in `blocks` */
};

static ax_hlo_slice slice_of(const char *word) { return (ax_hlo_slice){word, strlen(word)}; }

ax_status ax_hlo_init(ax_hlo *hlo) {
  hlo->scan = ax_calloc(1, sizeof *hlo->scan);
  if (hlo->scan == NULL) return ax_out_of_memory(sizeof *hlo->scan);
  hlo->scan->module = &hlo->module;
  hlo->module.source = "the program";
  return AX_OK;
}

void ax_hlo_deinit(ax_hlo *hlo) {
  if (hlo->scan != NULL) ax_hlo_free_scan(hlo->scan);
  ax_free(hlo->scan);
  ax_free(hlo->added);
  ax_free(hlo->blocks);
  ax_free(hlo->open);
  for (uint32_t i = 0; i < hlo->held_count; i++) ax_program_release((ax_program *)(uintptr_t)hlo->held[i]);
  ax_free(hlo->held);
  ax_text_deinit(&hlo->scratch);
  ax_hlo_module_deinit(&hlo->module);
}

/* Remembers a failure. */
static bool works(ax_hlo *hlo, ax_status status) {
  if (status != AX_OK) hlo->failed = true;
  return !hlo->failed;
}

static void *room(ax_hlo *hlo, size_t bytes) {
  void *memory = hlo->failed ? NULL : ax_arena_alloc(&hlo->module.arena, bytes > 0 ? bytes : 1);
  if (memory == NULL) hlo->failed = true;
  return memory;
}

static void *copied(ax_hlo *hlo, const void *data, size_t bytes) {
  void *memory = room(hlo, bytes);
  if (memory != NULL && bytes > 0) memcpy(memory, data, bytes);
  return memory;
}

ax_status ax_hlo_finish(ax_hlo *hlo, const ax_hlo_attributes *attributes) {
  ax_hlo_block *body = &hlo->module.body;
  body->operations = copied(hlo, hlo->added, hlo->added_count * sizeof hlo->added[0]);
  hlo->module.attributes = attributes->items;
  if (hlo->failed || hlo->scratch.failed) return ax_out_of_memory(0);
  hlo->module.attribute_count = attributes->count;
  body->operation_count = hlo->added_count;
  return AX_OK;
}

ax_status ax_hlo_hold(ax_hlo *hlo, const ax_program *program) {
  AX_TRY(ax_grow(&hlo->held, sizeof hlo->held[0], hlo->held_count, 1, &hlo->held_capacity));
  hlo->held[hlo->held_count++] = program;
  ax_program_retain((ax_program *)(uintptr_t)program);
  return AX_OK;
}

/* --- Types --- */

ax_type ax_hlo_physical(const ax_type *type) {
  ax_type words = *type;
  if (!ax_is_key(type->dtype)) return words;
  words.dtype = AX_U32;
  words.dims[words.rank++] = 2;
  return words;
}

void ax_hlo_type(ax_text *text, const ax_type *type) {
  if (type->form == AX_TOKEN) {
    ax_text_add(text, "!stablehlo.token");
    return;
  }
  ax_text_add(text, type->form == AX_FUTURE ? "!stablehlo.future<tensor<" : "tensor<");
  for (uint32_t d = 0; d < type->rank; d++) ax_text_add(text, "%" PRId64 "x", type->dims[d]);
  if (ax_is_key(type->dtype)) ax_text_add(text, "2x"); /* the words of a key */
  ax_text_add(text, type->form == AX_FUTURE ? "%s>>" : "%s>", ax_dtype_get(type->dtype)->hlo);
}

/* The type that hlo->scratch spells, which is emptied. */
static const ax_hlo_value_type *spelled(ax_hlo *hlo) {
  const ax_hlo_value_type *type = NULL;
  if (hlo->scratch.failed) hlo->failed = true;
  if (!hlo->failed) (void)works(hlo, ax_hlo_spelled_type(hlo->scan, (ax_hlo_slice){hlo->scratch.data, hlo->scratch.length}, &type));
  hlo->scratch.length = 0;
  return type;
}

const ax_hlo_value_type *ax_hlo_value_type_of(ax_hlo *hlo, const ax_type *type) {
  ax_hlo_type(&hlo->scratch, type);
  return spelled(hlo);
}

const ax_hlo_value_type *ax_hlo_function_type(ax_hlo *hlo, const ax_type *in, uint32_t in_count, const ax_type *out,
                                              uint32_t out_count) {
  ax_text_add(&hlo->scratch, "(");
  for (uint32_t i = 0; i < in_count + out_count; i++) {
    if (i == in_count) ax_text_add(&hlo->scratch, ") -> (");
    else if (i > 0) ax_text_add(&hlo->scratch, ", ");
    ax_hlo_type(&hlo->scratch, i < in_count ? &in[i] : &out[i - in_count]);
  }
  ax_text_add(&hlo->scratch, out_count == 0 ? ") -> ()" : ")");
  return spelled(hlo);
}

static uint32_t new_values(ax_hlo *hlo, const ax_type *types, uint32_t count) {
  uint32_t first = 0, value;
  for (uint32_t i = 0; i < count; i++) {
    const ax_hlo_value_type *type = ax_hlo_value_type_of(hlo, &types[i]);
    if (hlo->failed || !works(hlo, ax_hlo_new_values(hlo->scan, 1, &type, &value))) return 0;
    if (i == 0) first = value;
  }
  return first;
}

/* --- Operations --- */

uint32_t ax_hlo_begin(ax_hlo *hlo, const char *name, const uint32_t *in, uint32_t in_count, const ax_type *out_types,
                      uint32_t out_count) {
  ax_hlo_operation *op = room(hlo, sizeof *op);
  const uint32_t *operands = copied(hlo, in, in_count * sizeof in[0]);
  const uint32_t first = new_values(hlo, out_types, out_count);
  if (hlo->failed) return 0;
  *op = (ax_hlo_operation){.name = slice_of(name), .operands = operands, .operand_count = in_count, .result = first,
                           .result_count = out_count, .place = hlo->place};
  for (uint32_t k = 0; k < out_count; k++) hlo->module.makers[first + k] = op;
  if (!works(hlo, ax_grow(&hlo->added, sizeof hlo->added[0], hlo->added_count, 1, &hlo->added_capacity))) return 0;
  if (!works(hlo, ax_grow(&hlo->open, sizeof hlo->open[0], hlo->open_count, 1, &hlo->open_capacity))) return 0;
  hlo->added[hlo->added_count++] = op;
  hlo->open[hlo->open_count++] = (ax_hlo_open){.op = op, .first = hlo->added_count, .first_block = hlo->block_count};
  return first;
}

uint32_t ax_hlo_region_begin(ax_hlo *hlo, const ax_type *arg_types, uint32_t arg_count) {
  const uint32_t first = new_values(hlo, arg_types, arg_count);
  if (hlo->failed) return 0;
  hlo->open[hlo->open_count - 1].block = (ax_hlo_block){.argument = first, .argument_count = arg_count};
  return first;
}

void ax_hlo_region_close(ax_hlo *hlo) {
  if (hlo->failed) return;
  ax_hlo_open *open = &hlo->open[hlo->open_count - 1];
  const uint32_t count = hlo->added_count - open->first;
  open->block.operation_count = count;
  open->block.operations = copied(hlo, hlo->added + open->first, count * sizeof hlo->added[0]);
  if (!works(hlo, ax_grow(&hlo->blocks, sizeof hlo->blocks[0], hlo->block_count, 1, &hlo->block_capacity))) return;
  hlo->blocks[hlo->block_count++] = open->block;
  hlo->added_count = open->first;
}

void ax_hlo_region_end(ax_hlo *hlo, const uint32_t *results, uint32_t count) {
  ax_hlo_op(hlo, "stablehlo.return", results, count, NULL, NULL, 0);
  ax_hlo_region_close(hlo);
}

void ax_hlo_end(ax_hlo *hlo, const ax_hlo_attributes *attributes) {
  if (hlo->failed) return;
  const ax_hlo_open *open = &hlo->open[hlo->open_count - 1];
  ax_hlo_operation *op = open->op;
  const uint32_t count = hlo->block_count - open->first_block;
  ax_hlo_block *blocks = count > 0 ? copied(hlo, hlo->blocks + open->first_block, count * sizeof blocks[0]) : NULL;
  ax_hlo_region *regions = count > 0 ? room(hlo, count * sizeof regions[0]) : NULL;
  for (uint32_t i = 0; i < count && !hlo->failed; i++) regions[i] = (ax_hlo_region){1, &blocks[i]};
  op->regions = regions;
  op->region_count = count;
  if (attributes != NULL) op->attributes = attributes->items, op->attribute_count = attributes->count;
  hlo->block_count = open->first_block;
  hlo->open_count--;
}

uint32_t ax_hlo_op(ax_hlo *hlo, const char *name, const uint32_t *in, uint32_t in_count, const ax_hlo_attributes *attributes,
                   const ax_type *out_types, uint32_t out_count) {
  const uint32_t first = ax_hlo_begin(hlo, name, in, in_count, out_types, out_count);
  ax_hlo_end(hlo, attributes);
  return first;
}

uint32_t ax_hlo_region_count(const ax_hlo *hlo) {
  return hlo->failed ? 0 : hlo->added_count - hlo->open[hlo->open_count - 1].first;
}

void ax_hlo_drop(ax_hlo *hlo) {
  if (!hlo->failed) hlo->added_count--;
}

/* --- Attributes --- */

static void add_named(ax_hlo_attributes *to, const ax_hlo_attribute *attribute) {
  if (to->count == to->capacity) {
    const uint32_t capacity = to->capacity > 0 ? 2 * to->capacity : 4;
    ax_hlo_attribute *items = room(to->hlo, capacity * sizeof items[0]);
    if (items == NULL) return;
    if (to->count > 0) memcpy(items, to->items, to->count * sizeof items[0]);
    to->items = items, to->capacity = capacity;
  }
  to->items[to->count++] = *attribute;
}

void ax_hlo_add(ax_hlo_attributes *to, const char *name, ax_hlo_attribute attribute) {
  attribute.name = slice_of(name);
  add_named(to, &attribute);
}

ax_status ax_hlo_add_spelled(ax_hlo_attributes *to, const char *text) {
  ax_hlo_scan *r = to->hlo->scan;
  ax_hlo_list list = {0};
  const size_t length = strlen(text) + 2;
  char *braced = room(to->hlo, length + 1);
  if (braced == NULL) return AX_OK; /* remembered */
  snprintf(braced, length + 1, "{%s}", text);
  r->text = r->cursor = r->line_start = braced;
  r->end = braced + length;
  const ax_status status = ax_hlo_want_entries(r, &list);
  for (uint32_t i = 0; status == AX_OK && i < list.count; i++) add_named(to, &((ax_hlo_attribute *)list.items)[i]);
  ax_free(list.items);
  return status;
}

void ax_hlo_add_unit(ax_hlo_attributes *to, const char *name) { ax_hlo_add(to, name, (ax_hlo_attribute){.kind = AX_HLO_UNIT}); }

void ax_hlo_add_bool(ax_hlo_attributes *to, const char *name, bool value) {
  ax_hlo_add(to, name, (ax_hlo_attribute){.kind = AX_HLO_BOOL, .integer = value});
}

void ax_hlo_add_short(ax_hlo_attributes *to, const char *name, int64_t value, const char *type) {
  ax_text_add(&to->hlo->scratch, "%s", type);
  ax_hlo_add(to, name, (ax_hlo_attribute){.kind = AX_HLO_INTEGER, .integer = value, .type = spelled(to->hlo)});
}

void ax_hlo_add_integer(ax_hlo_attributes *to, const char *name, int64_t value) {
  ax_hlo_add(to, name, (ax_hlo_attribute){.kind = AX_HLO_INTEGER, .integer = value}); /* without a type: i64 */
}

static void add_text(ax_hlo_attributes *to, const char *name, ax_hlo_attribute_kind kind, const char *value) {
  const char *own = copied(to->hlo, value, strlen(value) + 1);
  ax_hlo_add(to, name, (ax_hlo_attribute){.kind = kind, .text = slice_of(own != NULL ? own : "")});
}

void ax_hlo_add_string(ax_hlo_attributes *to, const char *name, const char *value) { add_text(to, name, AX_HLO_STRING, value); }
void ax_hlo_add_symbol(ax_hlo_attributes *to, const char *name, const char *value) { add_text(to, name, AX_HLO_SYMBOL, value); }

void ax_hlo_add_word(ax_hlo_attributes *to, const char *name, const char *word) {
  ax_hlo_add(to, name, (ax_hlo_attribute){.kind = AX_HLO_WORD, .text = slice_of(word)});
}

void ax_hlo_add_integers(ax_hlo_attributes *to, const char *name, const int64_t *v, uint32_t count) {
  const int64_t *numbers = copied(to->hlo, v, count * sizeof v[0]);
  ax_hlo_add(to, name, (ax_hlo_attribute){.kind = AX_HLO_NUMBERS, .numbers = numbers, .count = count});
}

void ax_hlo_add_dims(ax_hlo_attributes *to, const char *name, const ax_dims *dims) { ax_hlo_add_integers(to, name, dims->v, dims->count); }

void ax_hlo_add_matrix(ax_hlo_attributes *to, const char *name, int64_t rows, int64_t columns, int64_t **to_fill) {
  const ax_type type = ax_array_type(AX_S64, AX_DIMS(rows, columns));
  *to_fill = room(to->hlo, (size_t)(rows * columns) * sizeof **to_fill);
  ax_hlo_add(to, name, (ax_hlo_attribute){.kind = AX_HLO_ELEMENTS, .type = ax_hlo_value_type_of(to->hlo, &type), .data = *to_fill});
}

void ax_hlo_add_pairs(ax_hlo_attributes *to, const char *name, const ax_dims *low, const ax_dims *high) {
  int64_t *pairs;
  ax_hlo_add_matrix(to, name, low->count, 2, &pairs);
  for (uint32_t i = 0; pairs != NULL && i < low->count; i++) pairs[2 * i] = low->v[i], pairs[2 * i + 1] = high->v[i];
}

static ax_hlo_attribute dictionary_of(const char *kind, const ax_hlo_attributes *entries) {
  return (ax_hlo_attribute){.kind = AX_HLO_DICTIONARY, .text = slice_of(kind), .items = entries->items, .count = entries->count};
}

void ax_hlo_add_group(ax_hlo_attributes *to, const char *name, const char *kind, const ax_hlo_attributes *entries) {
  ax_hlo_add(to, name, dictionary_of(kind, entries));
}

void ax_hlo_add_entry(ax_hlo_attributes *to, const char *group, const char *name, int64_t value) {
  uint32_t i = 0;
  if (to->hlo->failed) return;
  while (!ax_hlo_slice_is(to->items[i].name, group)) i++;
  ax_hlo_attribute *found = &to->items[i], *items = room(to->hlo, (found->count + 1) * sizeof items[0]);
  if (items == NULL) return;
  if (found->count > 0) memcpy(items, found->items, found->count * sizeof items[0]);
  items[found->count++] = (ax_hlo_attribute){.kind = AX_HLO_INTEGER, .name = slice_of(name), .integer = value};
  found->items = items;
}

void ax_hlo_add_each(ax_hlo_attributes *to, const char *name, const ax_hlo_attributes *each, uint32_t count) {
  ax_hlo_attribute *items = room(to->hlo, count * sizeof items[0]);
  for (uint32_t i = 0; items != NULL && i < count; i++) items[i] = dictionary_of("", &each[i]);
  ax_hlo_add(to, name, (ax_hlo_attribute){.kind = AX_HLO_ARRAY, .items = items, .count = count});
}

void ax_hlo_add_layouts(ax_hlo_attributes *to, const char *name, const ax_dims *layouts, uint32_t count) {
  ax_hlo *hlo = to->hlo;
  ax_hlo_attribute *items = room(hlo, count * sizeof items[0]);
  for (uint32_t i = 0; items != NULL && i < count; i++) {
    ax_text_add(&hlo->scratch, "tensor<%uxindex>", layouts[i].count);
    items[i] = (ax_hlo_attribute){.kind = AX_HLO_ELEMENTS, .type = spelled(hlo),
                                  .data = copied(hlo, layouts[i].v, layouts[i].count * sizeof layouts[i].v[0])};
  }
  ax_hlo_add(to, name, (ax_hlo_attribute){.kind = AX_HLO_ARRAY, .items = items, .count = count});
}

/* --- Constants --- */

static uint32_t add_constant(ax_hlo *hlo, const ax_type *type, bool splat, const void *data) {
  ax_hlo_attributes attributes = {.hlo = hlo};
  ax_hlo_add(&attributes, "value",
             (ax_hlo_attribute){.kind = AX_HLO_ELEMENTS, .type = ax_hlo_value_type_of(hlo, type), .splat = splat, .data = data});
  return ax_hlo_op(hlo, "stablehlo.constant", NULL, 0, &attributes, type, 1);
}

uint32_t ax_hlo_splat(ax_hlo *hlo, const ax_type *type, const void *scalar) {
  const ax_type made = ax_hlo_physical(type);
  return add_constant(hlo, &made, true, copied(hlo, scalar, ax_dtype_bytes(made.dtype)));
}

uint32_t ax_hlo_dense_borrowed(ax_hlo *hlo, const ax_type *type, const void *data) {
  const ax_type made = ax_hlo_physical(type);
  return add_constant(hlo, &made, false, data);
}

uint32_t ax_hlo_dense(ax_hlo *hlo, const ax_type *type, const void *data) {
  const ax_type made = ax_hlo_physical(type);
  return add_constant(hlo, &made, false, copied(hlo, data, (size_t)ax_type_elems(&made) * ax_dtype_bytes(made.dtype)));
}

/* --- Devices --- */

/* One group of devices, filled up with -1 to `size` entries. The devices are those that differ from `device` only along the axes:
   group number `group` of them, or all of them if `group` is AX_NONE. */
static void replica_group(int64_t *to, const ax_axes *names, const ax_mesh *axes, int64_t device, uint32_t group, int64_t size) {
  const ax_groups *groups = &names->groups;
  const uint32_t *member = group != AX_NONE ? groups->member + ax_group_begin(groups, group) : NULL;
  const int64_t count = member != NULL ? ax_group_size(groups, group) : size;
  for (int64_t k = 0; k < size; k++) to[k] = k < count ? ax_axes_device(names, axes, device, member != NULL ? member[k] : k) : -1;
}

void ax_hlo_add_replica_groups(ax_hlo_attributes *to, const ax_axes *names, const ax_mesh *axes) {
  int64_t devices = ax_mesh_devices(axes), members = 1, size = 1, *row;
  const ax_groups *groups = &names->groups;
  for (uint32_t i = 0; i < names->count; i++) members *= axes->axis[ax_mesh_find(axes, names->name[i])].size;
  if (groups->count == 0) size = members;
  for (uint32_t g = 0; g < groups->count; g++) size = ax_group_size(groups, g) > size ? ax_group_size(groups, g) : size;
  ax_hlo_add_matrix(to, "replica_groups", devices / members * (groups->count > 0 ? groups->count : 1), size, &row);
  for (int64_t device = 0; device < devices && row != NULL; device++) {
    if (ax_axes_index(names, axes, device) != 0) continue; /* its group was written with the first device in it */
    if (groups->count == 0) replica_group(row, names, axes, device, AX_NONE, size), row += size;
    for (uint32_t g = 0; g < groups->count; g++, row += size) replica_group(row, names, axes, device, g, size);
  }
}

/* --- Equations --- */

/* Whether the equation takes or gives keys, whose words are one more dimension. */
static ax_status has_keys(const ax_program *program, const ax_eqn *eqn, bool *out) {
  for (uint32_t k = 0; k < eqn->in_count + eqn->out_count; k++) {
    const ax_type *type = &program->types[k < eqn->in_count ? eqn->in[k] : eqn->out + k - eqn->in_count];
    if (!ax_is_key(type->dtype)) continue;
    if (type->rank == AX_MAX_RANK)
      return ax_error(AX_ABSENT, "%s: StableHLO has keys with one more dimension, and their rank is %d already", eqn->prim->name,
                      AX_MAX_RANK);
    *out = true;
  }
  return AX_OK;
}

/* loc("train.py":31:0) of "train.py:31" and of "train.py:31: ax_add". Equations of one line mostly stand together. */
static ax_hlo_place place_of(ax_hlo *hlo, const ax_eqn *eqn) {
  const char *colon = eqn->location, *end = NULL;
  ax_hlo_place place = {.line = eqn->line};
  if (eqn->location == hlo->located && colon != NULL) return place.location = hlo->place_text, place;
  while (colon != NULL && (colon = strchr(colon, ':')) != NULL) {
    const size_t digits = strspn(++colon, "0123456789");
    if (digits > 0 && (colon[digits] == '\0' || colon[digits] == ':')) {
      end = colon + digits;
      break;
    }
  }
  if (end == NULL) return place;
  ax_text_add(&hlo->scratch, "loc(\"%.*s\":%.*s:0)", (int)(colon - 1 - eqn->location), eqn->location, (int)(end - colon), colon);
  const char *text = hlo->scratch.failed ? NULL : copied(hlo, hlo->scratch.data, hlo->scratch.length);
  if (text != NULL) place.location = hlo->place_text = (ax_hlo_slice){text, hlo->scratch.length}, hlo->located = eqn->location;
  hlo->scratch.length = 0;
  return place;
}

ax_status ax_hlo_eqn(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  bool keys = false;
  AX_TRY(has_keys(hlo->program, eqn, &keys));
  const ax_hlo_place outer = hlo->place;
  hlo->place = place_of(hlo, eqn);
  const ax_status status = (keys ? eqn->prim->keys : eqn->prim->hlo)(hlo, eqn, in, out);
  hlo->place = outer;
  return status;
}
