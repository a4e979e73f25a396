/* Custom calls of targets that are registered (axle/custom_call.h): callbacks, whose contexts hold the function and the attributes.

     %0 = custom_call @rms_norm(%x) {backend_config = {eps = 1.0 : f32}}     b = pure_callback[callback="rms_norm" types=(f32[8],)] a

   One that has a side effect is an io_callback that is not ordered over devices: each device makes its calls in the order of the text,
   which is all that tokens can say. A handler of XLA's sees an operand's bytes in the order that operand_layouts says: where that is not
   row-major, the operand is transposed before the call, and the result after it.
   A call with the attribute axle.blocks = true, a side effect and no results is made by each device, with its block of each operand. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/import.h"
#include "bridge/readers.h"
#include "ffi/attributes.h"
#include "ffi/custom_calls.h"
#include "hlo/read_text.h"
#include "ir/callback.h"
#include "ir/dtype.h"
#include "ir/number.h"
#include "prim/bind.h"

/* --- Attributes --- */

static ax_status decode(ax_arena *arena, const ax_hlo_attribute *from, ax_attribute *out);

static char *copy_slice(ax_arena *arena, ax_hlo_slice slice) {
  char *copy = ax_arena_alloc(arena, slice.length + 1);
  if (copy != NULL && slice.length > 0) memcpy(copy, slice.start, slice.length);
  return copy;
}

static ax_status refuse(const ax_attribute *out, const char *what) {
  return ax_error(AX_ABSENT, "the attribute %.255s of the call is %s", out->name, what);
}

/* Room for `count` elements, to be filled. */
static ax_status elements(ax_arena *arena, ax_attribute_kind kind, ax_dtype dtype, size_t count, ax_attribute *out, void **data) {
  size_t bytes;
  if (!ax_mul_size(count, ax_dtype_bytes(dtype), &bytes)) return ax_out_of_memory(0);
  *data = ax_arena_alloc(arena, bytes + 1);
  if (*data == NULL) return ax_out_of_memory(bytes);
  out->kind = kind, out->dtype = dtype, out->count = count, out->data = *data;
  return AX_OK;
}

static ax_dtype dtype_of(const ax_hlo_attribute *from, ax_dtype otherwise) {
  if (from->type == NULL) return otherwise;
  return from->type->element_known && !ax_is_key(from->type->dtype) ? from->type->dtype : AX_NO_DTYPE;
}

static ax_status decode_number(ax_arena *arena, const ax_hlo_attribute *from, ax_attribute *out) {
  ax_dtype dtype;
  ax_element number;
  void *data;
  if (!ax_hlo_number(from, &dtype, &number)) return refuse(out, "a number of a type that Axle has not, or of too many digits");
  AX_TRY(elements(arena, AX_ATTRIBUTE_SCALAR, dtype, 1, out, &data));
  memcpy(data, &number, ax_dtype_bytes(dtype));
  return AX_OK;
}

static ax_status decode_numbers(ax_arena *arena, const ax_hlo_attribute *from, ax_attribute *out) {
  void *data;
  const ax_dtype dtype = dtype_of(from, AX_S64);
  if (dtype == AX_NO_DTYPE || ax_is_complex(dtype)) return refuse(out, "an array of a type that Axle has not");
  AX_TRY(elements(arena, AX_ATTRIBUTE_ARRAY, dtype, from->count, out, &data));
  const size_t bytes = ax_dtype_bytes(dtype);
  for (uint32_t i = 0; i < from->count; i++) {
    if (ax_is_float(dtype)) memcpy((char *)data + i * bytes, &from->numbers[i], bytes);
    else ax_number_store(dtype, data, i, (ax_number){.i = from->numbers[i]});
  }
  return AX_OK;
}

enum { most_same = 1 << 24 }; /* elements that a module writes as one, since memory is to be bounded by what is read */

static ax_status decode_elements(ax_arena *arena, const ax_hlo_attribute *from, ax_attribute *out) {
  void *data;
  const ax_dtype dtype = dtype_of(from, AX_NO_DTYPE);
  if (dtype == AX_NO_DTYPE || from->type->dynamic || !from->type->ranked) return refuse(out, "an array of a type that Axle has not");
  const size_t count = (size_t)ax_dims_elems(from->type->rank, from->type->dims), bytes = ax_dtype_bytes(dtype);
  if (from->splat && count > most_same) return refuse(out, "one element, repeated too often");
  AX_TRY(elements(arena, AX_ATTRIBUTE_ARRAY, dtype, count, out, &data));
  for (size_t i = 0; i < count; i++) memcpy((char *)data + i * bytes, (const char *)from->data + (from->splat ? 0 : i * bytes), bytes);
  return AX_OK;
}

static int by_name(const void *a, const void *b) { return strcmp(((const ax_attribute *)a)->name, ((const ax_attribute *)b)->name); }

static ax_status decode_dictionary(ax_arena *arena, const ax_hlo_attribute *from, ax_attribute *out) {
  ax_attribute *entries = ax_arena_alloc(arena, (from->count + (size_t)1) * sizeof entries[0]);
  if (entries == NULL) return ax_out_of_memory(from->count * sizeof entries[0]);
  for (uint32_t i = 0; i < from->count; i++) {
    entries[i].name = copy_slice(arena, from->items[i].name);
    if (entries[i].name == NULL) return ax_out_of_memory(from->items[i].name.length);
    AX_TRY(decode(arena, &from->items[i], &entries[i]));
  }
  if (from->count > 1) qsort(entries, from->count, sizeof entries[0], by_name);
  out->kind = AX_ATTRIBUTE_DICTIONARY, out->entries = entries, out->count = from->count;
  return AX_OK;
}

/* out->name is set. */
static ax_status decode(ax_arena *arena, const ax_hlo_attribute *from, ax_attribute *out) {
  switch (from->kind) {
    case AX_HLO_BOOL:
    case AX_HLO_INTEGER:
    case AX_HLO_FLOAT:
      return decode_number(arena, from, out);
    case AX_HLO_NUMBERS:
      return decode_numbers(arena, from, out);
    case AX_HLO_ELEMENTS:
      return decode_elements(arena, from, out);
    case AX_HLO_DICTIONARY:
      return decode_dictionary(arena, from, out);
    case AX_HLO_STRING:
      out->kind = AX_ATTRIBUTE_STRING, out->count = from->text.length, out->data = copy_slice(arena, from->text);
      return out->data != NULL ? AX_OK : ax_out_of_memory(from->text.length);
    default:
      return refuse(out, "no number, array, string or dictionary");
  }
}

/* Version 4 may have its dictionary as text. */
static ax_status decode_text(ax_arena *arena, ax_hlo_slice config, ax_attribute *out) {
  ax_hlo_module module;
  ax_text text = {0};
  ax_text_add(&text, "module attributes {config = ");
  ax_text_add_bytes(&text, config.start, config.length);
  ax_text_add(&text, "} {\n}\n");
  if (text.failed) return ax_text_deinit(&text), ax_out_of_memory(config.length);
  ax_status status = ax_hlo_read_text(text.data, text.length, "backend_config", &module);
  if (status == AX_OK) {
    const bool one = module.attribute_count == 1 && module.attributes[0].kind == AX_HLO_DICTIONARY;
    status = one ? decode_dictionary(arena, &module.attributes[0], out) : refuse(out, "text that is no dictionary");
    ax_hlo_module_deinit(&module);
  }
  ax_text_deinit(&text);
  return status;
}

static ax_status take_config(ax_ffi_site *site, const ax_hlo_operation *op) {
  const ax_hlo_attribute *other = ax_hlo_find(op, "mhlo.backend_config"), *own = ax_hlo_find(op, "backend_config");
  const ax_hlo_attribute *config = other != NULL ? other : own;
  const bool typed = site->version == AX_FFI_TYPED;
  ax_attribute named = {.name = "backend_config"};
  if (config == NULL) return AX_OK;
  if (config->kind == AX_HLO_DICTIONARY && (typed || site->entry.function != NULL))
    return decode_dictionary(&site->arena, config, &site->attributes);
  if (config->kind != AX_HLO_STRING) return refuse(&named, typed ? "no dictionary" : "no text, as those of api_version 1 to 3 have it");
  if (config->text.length == 0) return AX_OK;
  if (typed) return decode_text(&site->arena, config->text, &site->attributes);
  ax_attribute *entry = ax_arena_copy(&site->arena, &named, sizeof named);
  if (entry == NULL) return ax_out_of_memory(sizeof named);
  AX_TRY(decode(&site->arena, config, entry));
  site->config = entry->data, site->config_bytes = entry->count;
  site->attributes.entries = entry, site->attributes.count = 1;
  return AX_OK;
}

/* --- Memory that results share with operands --- */

static ax_status take_alias(const ax_ffi_site *site, const ax_hlo_attribute *from, uint32_t *alias) {
  ax_dims out = {0}, in = {0};
  const ax_hlo_attribute *operand = ax_hlo_item(from, "operand_index");
  if (from->kind != AX_HLO_DICTIONARY || operand == NULL || operand->kind != AX_HLO_INTEGER)
    return ax_error(AX_INVALID_ARGUMENT, "output_operand_aliases must name operands");
  AX_TRY(ax_hlo_item_integers(from, "output_tuple_indices", &out));
  AX_TRY(ax_hlo_item_integers(from, "operand_tuple_indices", &in));
  const int64_t k = out.count > 0 ? out.v[0] : 0, i = operand->integer;
  if (out.count > 1 || in.count > 0) return ax_error(AX_ABSENT, "output_operand_aliases inside of tuples are not read");
  if (k < 0 || k >= site->out_count || i < 0 || i >= site->in_count)
    return ax_error(AX_INVALID_ARGUMENT, "output_operand_aliases names result %" PRId64 " and operand %" PRId64 ", which there are not", k, i);
  const ax_type *x = &site->in_types[i], *y = &site->out_types[k];
  if (x->dtype != y->dtype || !ax_same_shape(x, y))
    return ax_error(AX_INVALID_ARGUMENT, "output_operand_aliases: result %" PRId64 " and operand %" PRId64 " have different types", k, i);
  for (uint32_t r = 0; r < site->out_count; r++)
    if (r == k ? alias[r] != AX_NONE : alias[r] == i)
      return ax_error(AX_INVALID_ARGUMENT, "output_operand_aliases names a result or an operand twice");
  alias[k] = (uint32_t)i;
  return AX_OK;
}

static ax_status take_aliases(ax_ffi_site *site, const ax_hlo_operation *op) {
  const ax_hlo_attribute *list = ax_hlo_find(op, "output_operand_aliases");
  if (list == NULL || list->count == 0) return AX_OK;
  if (list->kind != AX_HLO_ARRAY) return ax_error(AX_INVALID_ARGUMENT, "output_operand_aliases must be an array");
  uint32_t *alias = ax_arena_alloc(&site->arena, (site->out_count + (size_t)1) * sizeof alias[0]);
  if (alias == NULL) return ax_out_of_memory(site->out_count * sizeof alias[0]);
  for (uint32_t k = 0; k < site->out_count; k++) alias[k] = AX_NONE;
  site->alias = alias;
  for (uint32_t i = 0; i < list->count; i++) AX_TRY(take_alias(site, &list->items[i], alias));
  return AX_OK;
}

/* --- Layouts --- */

/* The dimensions of value number i from the outermost in memory on. *plain: they are in order. */
static ax_status take_layout(const ax_hlo_operation *op, const char *name, uint32_t i, uint32_t rank, ax_dims *order, bool *plain) {
  const ax_hlo_attribute *list = ax_hlo_find(op, name);
  uint32_t seen = 0;
  *plain = true;
  if (list == NULL || list->kind != AX_HLO_ARRAY || list->count == 0) return AX_OK;
  if (i >= list->count || list->items[i].kind != AX_HLO_ELEMENTS || list->items[i].type->dtype != AX_S64 ||
      ax_dims_elems(list->items[i].type->rank, list->items[i].type->dims) != rank)
    return ax_error(AX_INVALID_ARGUMENT, "%s must have the dimensions of value %u, the innermost first", name, i);
  const ax_hlo_attribute *layout = &list->items[i];
  order->count = rank;
  for (uint32_t d = 0; d < rank; d++) {
    const int64_t from = ((const int64_t *)layout->data)[layout->splat ? 0 : rank - 1 - d];
    if (from < 0 || from >= rank || (seen >> from & 1) != 0)
      return ax_error(AX_INVALID_ARGUMENT, "%s does not have each dimension of value %u once", name, i);
    seen |= 1u << from;
    order->v[d] = from;
    *plain = *plain && from == d;
  }
  return AX_OK;
}

/* Sets site->orders, if some value is not row-major. */
static ax_status take_layouts(ax_ffi_site *site, const ax_hlo_operation *op) {
  const uint32_t count = site->in_count + site->out_count;
  ax_dims *orders = ax_arena_alloc(&site->arena, (count + (size_t)1) * sizeof orders[0]);
  bool all = true;
  if (orders == NULL) return ax_out_of_memory(count * sizeof orders[0]);
  for (uint32_t i = 0; i < count; i++) {
    const bool operand = i < site->in_count;
    const uint32_t number = operand ? i : i - site->in_count;
    bool plain;
    AX_TRY(take_layout(op, operand ? "operand_layouts" : "result_layouts", number,
                       operand ? site->in_types[number].rank : site->out_types[number].rank, &orders[i], &plain));
    if (plain) orders[i].count = 0;
    all = all && plain;
  }
  if (!all) site->orders = orders;
  return AX_OK;
}

/* One memory has one order. */
static ax_status check_aliases(const ax_ffi_site *site) {
  for (uint32_t k = 0; site->alias != NULL && site->orders != NULL && k < site->out_count; k++) {
    const uint32_t i = site->alias[k];
    if (i == AX_NONE) continue;
    const ax_dims *in = &site->orders[i], *out = &site->orders[site->in_count + k];
    if (in->count != out->count || memcmp(in->v, out->v, in->count * sizeof in->v[0]) != 0)
      return ax_error(AX_ABSENT, "output_operand_aliases: result %u and operand %u have different layouts", k, i);
  }
  return AX_OK;
}

static ax_value turned(ax_value x, const ax_dims *order) {
  return order->count == 0 ? x : (ax_transpose)(x, AX_LIST(order->count, order->v));
}

static ax_value turned_back(ax_value x, const ax_dims *order) {
  ax_dims back = {.count = order->count};
  for (uint32_t d = 0; d < order->count; d++) back.v[order->v[d]] = d;
  return turned(x, &back);
}

/* --- The call --- */

/* Of each value the dimensions from the innermost in memory on. */
static void write_layouts(ax_text *text, const char *name, const ax_type *types, const ax_dims *orders, uint32_t count) {
  ax_text_add(text, ", %s = [", name);
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t rank = types[i].rank;
    ax_text_add(text, "%sdense<%s", i > 0 ? ", " : "", rank > 0 ? "[" : "");
    for (uint32_t d = rank; d-- > 0;)
      ax_text_add(text, "%" PRId64 "%s", orders[i].count > 0 ? orders[i].v[d] : (int64_t)d, d > 0 ? ", " : "]");
    ax_text_add(text, "> : tensor<%uxindex>", rank);
  }
  ax_text_add(text, "]");
}

/* What ax_program_stablehlo writes again. */
static ax_status write_text(ax_ffi_site *site, bool has_side_effect) {
  ax_text text = {0};
  const char *comma = ", output_operand_aliases = [";
  ax_text_add(&text, "call_target_name = ");
  ax_ffi_quoted_text(&text, site->target, strlen(site->target));
  ax_text_add(&text, ", api_version = %" PRId64 " : i32", site->version);
  if (has_side_effect) ax_text_add(&text, ", has_side_effect = true");
  if (site->blocks) ax_text_add(&text, ", axle.blocks = true");
  if (site->config != NULL) {
    ax_text_add(&text, ", backend_config = ");
    ax_ffi_quoted_text(&text, site->config, site->config_bytes);
  } else if (site->attributes.count > 0) {
    ax_text_add(&text, ", backend_config = ");
    ax_ffi_attributes_text(&text, &site->attributes);
  }
  for (uint32_t k = 0; site->alias != NULL && k < site->out_count; k++) {
    if (site->alias[k] == AX_NONE) continue;
    ax_text_add(&text, "%s#stablehlo.output_operand_alias<output_tuple_indices = [", comma);
    if (site->out_count > 1) ax_text_add(&text, "%u", k);
    ax_text_add(&text, "], operand_index = %u, operand_tuple_indices = []>", site->alias[k]);
    comma = ", ";
  }
  if (comma[2] == '\0') ax_text_add(&text, "]");
  if (site->orders != NULL) {
    write_layouts(&text, "operand_layouts", site->in_types, site->orders, site->in_count);
    write_layouts(&text, "result_layouts", site->out_types, site->orders + site->in_count, site->out_count);
  }
  site->text = text.failed ? NULL : ax_arena_copy(&site->arena, text.data, text.length + 1);
  ax_text_deinit(&text);
  return site->text != NULL ? AX_OK : ax_out_of_memory(0);
}

static ax_status take_blocks(ax_ffi_site *site, const ax_hlo_operation *op, bool has_side_effect) {
  AX_TRY(ax_hlo_bool_or(op, "axle.blocks", false, &site->blocks));
  if (!site->blocks) return AX_OK;
  if (!has_side_effect || site->out_count > 0)
    return ax_error(AX_INVALID_ARGUMENT, "axle.blocks is for calls with a side effect and without results");
  return site->orders == NULL ? AX_OK : ax_error(AX_ABSENT, "axle.blocks: operands must be row-major");
}

static ax_status describe(ax_ffi_site *site, const ax_hlo_read_args *args, bool has_side_effect) {
  ax_type *types = ax_arena_alloc(&site->arena, ((size_t)args->op->operand_count + args->op->result_count + 1) * sizeof types[0]);
  if (types == NULL) return ax_out_of_memory(args->op->operand_count * sizeof types[0]);
  site->in_count = args->op->operand_count, site->out_count = args->op->result_count;
  site->in_types = types, site->out_types = types + site->in_count;
  for (uint32_t i = 0; i < site->in_count; i++) types[i] = ax_typeof(args->in[i]);
  for (uint32_t k = 0; k < site->out_count; k++) {
    AX_TRY(ax_hlo_want_shape(args, k));
    types[site->in_count + k] = args->out_types[k];
  }
  const ax_hlo_attribute *computations = ax_hlo_find(args->op, "called_computations");
  if (computations != NULL && computations->count > 0) return ax_error(AX_ABSENT, "called_computations are not read");
  AX_TRY(ax_hlo_integer_or(args->op, "api_version", 1, &site->version));
  const ax_hlo_attribute *typed = ax_hlo_find(args->op, "mhlo.backend_config");
  if (typed != NULL && typed->kind == AX_HLO_DICTIONARY) site->version = AX_FFI_TYPED; /* so JAX writes it, with api_version 1 */
  AX_TRY(take_config(site, args->op));
  AX_TRY(take_aliases(site, args->op));
  if (site->entry.function == NULL) AX_TRY(take_layouts(site, args->op));
  AX_TRY(check_aliases(site));
  AX_TRY(take_blocks(site, args->op, has_side_effect));
  AX_TRY(write_text(site, has_side_effect));
  return ax_ffi_site_begin(site);
}

static void bind_call(const ax_hlo_read_args *args, ax_callback *callback, const ax_ffi_site *site, bool has_side_effect) {
  const uint32_t in_count = site->in_count, out_count = site->out_count;
  const ax_dims *orders = site->orders, *out_orders = orders != NULL ? orders + in_count : NULL;
  ax_value *in = ax_trace_alloc((in_count + (size_t)1) * sizeof in[0]), *out = ax_trace_alloc((out_count + (size_t)1) * sizeof out[0]);
  ax_type *types = ax_trace_alloc((out_count + (size_t)1) * sizeof types[0]);
  if (in == NULL || out == NULL || types == NULL) return; /* the trace has failed */
  for (uint32_t i = 0; i < in_count; i++) in[i] = orders != NULL ? turned(args->in[i], &orders[i]) : args->in[i];
  for (uint32_t k = 0; k < out_count; k++) {
    types[k] = args->out_types[k];
    for (uint32_t d = 0; orders != NULL && d < out_orders[k].count; d++) types[k].dims[d] = args->out_types[k].dims[out_orders[k].v[d]];
  }
  callback->custom_call = site->text;
  callback->orders = orders;
  callback->blocks = site->blocks;
  if (has_side_effect) (ax_io_callback)(callback, false, in_count, in, out_count, types, out_count, out);
  else if (out_count > 0) (ax_pure_callback)(callback, site->entry.options.vectorized, in_count, in, out_count, types, out_count, out);
  for (uint32_t k = 0; k < out_count; k++) args->out[k] = orders != NULL ? turned_back(out[k], &out_orders[k]) : out[k];
}

ax_status ax_hlo_read_custom(const ax_hlo_read_args *args, ax_hlo_slice target, bool *found) {
  ax_ffi_site *site;
  ax_callback *callback;
  bool has_side_effect;
  *found = false;
  ax_status status = args->import->custom_calls != NULL ? ax_ffi_site_create(args->import->custom_calls, target.start, target.length, &site) : AX_ABSENT;
  if (status == AX_ABSENT) return AX_OK;
  AX_TRY(status);
  *found = true;
  if (args->import->alone) {
    ax_ffi_site_release(site);
    return ax_error(AX_ABSENT, "a custom call is made by runs alone");
  }
  status = ax_hlo_bool_or(args->op, "has_side_effect", false, &has_side_effect);
  has_side_effect = status == AX_OK && (has_side_effect || site->entry.options.has_side_effect);
  if (status == AX_OK) status = describe(site, args, has_side_effect);
  if (status == AX_OK) status = ax_callback_create(site->target, ax_ffi_site_call, site, ax_ffi_site_release, &callback);
  if (status != AX_OK) {
    ax_ffi_site_release(site);
    return ax_error_context(status, "@%.*s: ", (int)target.length, target.start);
  }
  bind_call(args, callback, site, has_side_effect);
  ax_callback_release(callback);
  return AX_OK;
}

/* xla_ffi_python_cpu_callback and its like: the function is an address or a number in the process that traced it. */
static bool is_python(ax_hlo_slice target) {
  static const char word[] = "python";
  for (size_t i = 0; i + sizeof word - 1 <= target.length; i++)
    if (memcmp(target.start + i, word, sizeof word - 1) == 0) return true;
  return false;
}

ax_status ax_hlo_refuse_target(const ax_hlo_read_args *args, ax_hlo_slice target) {
  ax_text names = {0};
  if (is_python(target))
    return ax_error(AX_ABSENT, "the target @%.*s is not known: it is a Python function (jax.pure_callback, jax.debug.print, ..) of the process "
                               "that traced it, which can call it where it runs on Axle, as JAX's plugin with its Python package",
                    (int)target.length, target.start);
  ax_custom_calls_names(args->import->custom_calls, &names);
  const ax_status status =
      ax_error(AX_ABSENT, "the target @%.*s is not known. Registered (ax_custom_call_register, --ffi): %s. Built in: lapack_.._ffi, Sharding, "
                          "annotate_device_placement, LayoutConstraint, mhlo.erf, Qr, ProductOfElementaryHouseholderReflectors, Eigh, ragged_all_to_all, "
                          "ApproxTopK, shape_assertion and "
                          "stablehlo.dynamic_..",
               (int)target.length, target.start, names.data != NULL ? names.data : "none");
  ax_text_deinit(&names);
  return status;
}
