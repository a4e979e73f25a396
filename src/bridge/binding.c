/* The types of the entry function's arguments. Where the module leaves extents open, the caller binds them:

     @main(%x: tensor<?x4xf32>, %n: tensor<i64>)     x.0 = 8      extent 0 of x; also 0.0, by the argument's number
                                                     n = 8        an argument that is a number: a constant of the program, no input
                                                     b = 8        what JAX calls b: extents of several arguments, b and 2*b + 1

   JAX's names stand in the message of its first shape assertion, "polymorphic shapes specifications: args[0].shape = (b, 2*b + 1),..",
   which lists the arguments that have open extents, in order. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bridge/import.h"
#include "ir/dtype.h"
#include "ir/number.h"
#include "ir/program.h"

enum { most_symbols = 64, most_nested = 32, open_extent = AX_HLO_DYNAMIC };

typedef struct symbol {
  ax_hlo_slice name;
  int64_t extent;
} symbol;

typedef struct binder {
  const ax_hlo_import *import;
  const ax_hlo_operation *function;
  const ax_hlo_block *block;
  ax_type *types;
  ax_hlo_slice *shapes; /* by argument: "b, 2*b + 1", what JAX calls its extents; empty: it says nothing */
  symbol symbols[most_symbols];
  uint32_t symbol_count;
} binder;

static const ax_hlo_value_type *declared(const binder *b, uint32_t i) {
  return b->import->module->values[b->block->argument + i];
}

static ax_hlo_slice name_of(const binder *b, uint32_t i) {
  const ax_hlo_attribute *names = ax_hlo_find(b->function, AX_HLO_ARGUMENT_NAMES);
  return names != NULL && i < names->count ? names->items[i].text : (ax_hlo_slice){"", 0};
}

/* What the argument's location calls it. */
static ax_hlo_slice called(const binder *b, uint32_t i) {
  const ax_hlo_attribute *names = ax_hlo_find(b->function, AX_HLO_ARGUMENT_NAMES);
  return names != NULL && i < names->count ? ax_hlo_location_name(b->import->module, names->items[i].name) : (ax_hlo_slice){0};
}

/* --- Dimensions as JAX writes them: 2*b + 1, floordiv(b, 2), b^2 --- */

typedef struct expression {
  const binder *binder;
  const char *at, *end;
  uint32_t nested;
  bool failed; /* it is none, a symbol is not bound, or the numbers are too large */
} expression;

static bool sees(expression *e, char c) {
  while (e->at < e->end && *e->at == ' ') e->at++;
  if (e->at == e->end || *e->at != c) return false;
  e->at++;
  return true;
}

static ax_hlo_slice take_name(expression *e) {
  const char *start = e->at;
  while (e->at < e->end && strchr(" ,()+-*^=.", *e->at) == NULL) e->at++;
  return (ax_hlo_slice){start, (size_t)(e->at - start)};
}

static int64_t sum_of(expression *e);

static int64_t floor_of(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

static int64_t call_of(expression *e, ax_hlo_slice name) {
  const int64_t a = sum_of(e);
  if (!sees(e, ',')) e->failed = true;
  const int64_t b = e->failed ? 1 : sum_of(e);
  if (!sees(e, ')')) e->failed = true;
  if (ax_hlo_slice_is(name, "max")) return a > b ? a : b;
  if (ax_hlo_slice_is(name, "min")) return a < b ? a : b;
  const bool divides = ax_hlo_slice_is(name, "floordiv");
  if (e->failed || b == 0 || b == -1 || (!divides && !ax_hlo_slice_is(name, "mod"))) return e->failed = true, 0;
  return divides ? floor_of(a, b) : a - floor_of(a, b) * b;
}

static int64_t symbol_of(expression *e, ax_hlo_slice name) {
  for (uint32_t i = 0; i < e->binder->symbol_count; i++)
    if (ax_hlo_slice_same(e->binder->symbols[i].name, name)) return e->binder->symbols[i].extent;
  e->failed = true;
  return 0;
}

static int64_t number_of(expression *e, ax_hlo_slice digits) {
  int64_t number = 0;
  for (size_t i = 0; i < digits.length; i++) {
    const char c = digits.start[i];
    if (c < '0' || c > '9' || __builtin_mul_overflow(number, 10, &number) || __builtin_add_overflow(number, c - '0', &number))
      e->failed = true;
  }
  return number;
}

static int64_t factor_of(expression *e) {
  if (e->failed || ++e->nested > most_nested) return e->failed = true, 0;
  int64_t value, power = 1, result = 1;
  if (sees(e, '-')) {
    if (__builtin_sub_overflow(0, factor_of(e), &value)) e->failed = true;
  } else if (sees(e, '(')) {
    value = sum_of(e);
    if (!sees(e, ')')) e->failed = true;
  } else {
    const ax_hlo_slice name = take_name(e);
    const bool digits = name.length > 0 && name.start[0] >= '0' && name.start[0] <= '9';
    value = digits ? number_of(e, name) : sees(e, '(') ? call_of(e, name) : symbol_of(e, name);
  }
  if (!e->failed && sees(e, '^')) power = factor_of(e);
  if (power < 1 || power > 64) e->failed = true;
  for (int64_t i = 0; !e->failed && i < power; i++)
    if (__builtin_mul_overflow(result, value, &result)) e->failed = true;
  e->nested--;
  return result;
}

static int64_t product_of(expression *e) {
  int64_t value = factor_of(e);
  while (!e->failed && sees(e, '*'))
    if (__builtin_mul_overflow(value, factor_of(e), &value)) e->failed = true;
  return value;
}

static int64_t sum_of(expression *e) {
  int64_t value = product_of(e);
  while (!e->failed) {
    const bool plus = sees(e, '+');
    if (!plus && !sees(e, '-')) break;
    const int64_t next = product_of(e);
    if (plus ? __builtin_add_overflow(value, next, &value) : __builtin_sub_overflow(value, next, &value)) e->failed = true;
  }
  return value;
}

/* False: the extent does not follow from the symbols that are bound. */
static bool extent_of(const binder *b, ax_hlo_slice text, int64_t *out) {
  if (text.length == 0) return false;
  expression e = {.binder = b, .at = text.start, .end = text.start + text.length};
  *out = sum_of(&e);
  while (e.at < e.end && *e.at == ' ') e.at++;
  return !e.failed && e.at == e.end && *out >= 0;
}

static bool is_symbol(ax_hlo_slice text) {
  expression e = {.at = text.start, .end = text.start + text.length};
  const ax_hlo_slice name = take_name(&e);
  return name.length > 0 && e.at == e.end && (name.start[0] < '0' || name.start[0] > '9');
}

/* --- What JAX calls them --- */

/* Entry `d` of a list of dimensions. */
static ax_hlo_slice dimension_text(ax_hlo_slice shape, uint32_t d) {
  if (shape.length == 0) return shape;
  const char *p = shape.start, *end = shape.start + shape.length;
  for (uint32_t nested = 0, i = 0; i <= d; i++, p++) {
    while (p < end && *p == ' ') p++;
    const char *start = p;
    for (; p < end && (*p != ',' || nested > 0); p++) nested += (*p == '(') - (*p == ')');
    if (i == d) return (ax_hlo_slice){start, (size_t)(p - start)};
    if (p == end) break;
  }
  return (ax_hlo_slice){"", 0};
}

/* The next shape of the list: what stands between the parentheses of ".shape = (..)". False: there is none. */
static bool next_shape(const char **at, const char *end, ax_hlo_slice *out) {
  static const char mark[] = ".shape = (";
  const size_t length = sizeof mark - 1;
  for (; (size_t)(end - *at) > length; (*at)++) {
    if (memcmp(*at, mark, length) != 0) continue;
    const char *start = *at += length;
    for (uint32_t nested = 1; *at < end && nested > 0; (*at)++) nested += (**at == '(') - (**at == ')');
    *out = (ax_hlo_slice){start, (size_t)(*at - start) - 1};
    return *at < end;
  }
  return false;
}

/* The message of the first shape assertion, from the list on; empty: there is none. */
static ax_hlo_slice specifications(const binder *b) {
  static const char mark[] = "polymorphic shapes specifications: ";
  const size_t length = sizeof mark - 1;
  for (uint32_t i = 0; i < b->block->operation_count; i++) {
    const ax_hlo_attribute *message = ax_hlo_find(b->block->operations[i], "error_message");
    if (message == NULL || message->kind != AX_HLO_STRING) continue;
    for (size_t at = 0; at + length < message->text.length; at++)
      if (memcmp(message->text.start + at, mark, length) == 0)
        return (ax_hlo_slice){message->text.start + at + length, message->text.length - at - length};
  }
  return (ax_hlo_slice){"", 0};
}

static bool is_open(const ax_type *type) {
  for (uint32_t d = 0; d < type->rank; d++)
    if (type->dims[d] == open_extent) return true;
  return false;
}

static void find_shapes(binder *b) {
  const ax_hlo_slice list = specifications(b);
  const char *at = list.start, *end = list.start + list.length;
  for (uint32_t i = 0; i < b->block->argument_count; i++)
    if (is_open(&b->types[i]) && !next_shape(&at, end, &b->shapes[i])) return;
}

static bool has_symbol(const binder *b, ax_hlo_slice name) {
  for (uint32_t i = 0; i < b->block->argument_count; i++)
    for (uint32_t d = 0; b->shapes[i].length > 0 && d < b->types[i].rank; d++) {
      const ax_hlo_slice text = dimension_text(b->shapes[i], d);
      for (expression e = {.at = text.start, .end = text.start + text.length}; e.at < e.end;) {
        const ax_hlo_slice word = take_name(&e);
        if (ax_hlo_slice_same(word, name)) return true;
        e.at += word.length == 0;
      }
    }
  return false;
}

static void add_symbol(binder *b, ax_hlo_slice name, int64_t extent) {
  for (uint32_t i = 0; i < b->symbol_count; i++)
    if (ax_hlo_slice_same(b->symbols[i].name, name)) return; /* the module's assertions compare them */
  if (b->symbol_count < most_symbols) b->symbols[b->symbol_count++] = (symbol){name, extent};
}

/* --- Binding --- */

static ax_status set_extent(binder *b, uint32_t i, uint32_t d, int64_t extent, const char *by) {
  int64_t *is = &b->types[i].dims[d];
  if (*is != open_extent && *is != extent)
    return ax_error(AX_INVALID_ARGUMENT, "%s says %" PRId64 " for extent %u of argument %u, which is %" PRId64, by, extent, d, i, *is);
  *is = extent;
  const ax_hlo_slice text = dimension_text(b->shapes[i], d);
  if (is_symbol(text)) add_symbol(b, text, extent);
  return AX_OK;
}

/* The argument of the name or number; the number of arguments: there is none. */
static uint32_t find_argument(const binder *b, ax_hlo_slice name) {
  const uint32_t count = b->block->argument_count;
  expression e = {0};
  for (uint32_t i = 0; i < count; i++)
    if (ax_hlo_slice_same(name_of(b, i), name) || ax_hlo_slice_same(called(b, i), name)) return i;
  const int64_t number = number_of(&e, name);
  return e.failed || name.length == 0 || number >= count ? count : (uint32_t)number;
}

static ax_status bind_number(const binder *b, uint32_t i, const ax_stablehlo_dim *dim, const ax_literal **known, ax_hlo_import *import) {
  const ax_type *type = &b->types[i];
  const ax_dtype_kind kind = ax_dtype_get(type->dtype)->kind;
  uint64_t element[2] = {0};
  if (type->form != AX_ARRAY || type->rank != 0 || (kind != AX_KIND_SIGNED && kind != AX_KIND_UNSIGNED))
    return ax_error(AX_INVALID_ARGUMENT, "%s = %" PRId64 ": argument %u is %.*s, and no number; its extents are %s.0, ..", dim->name,
                    dim->extent, i, (int)declared(b, i)->text.length, declared(b, i)->text.start, dim->name);
  ax_number_store(type->dtype, element, 0, (ax_number){.i = dim->extent});
  known[i] = ax_known_copy(import, type, element);
  return known[i] != NULL ? AX_OK : ax_out_of_memory(sizeof(ax_literal));
}

/* "x.0", "n" or "b". */
static ax_status bind_named(binder *b, const ax_stablehlo_dim *dim, const ax_literal **known, ax_hlo_import *import) {
  const ax_hlo_slice name = {dim->name, strlen(dim->name)};
  const uint32_t count = b->block->argument_count;
  const char *dot = strrchr(dim->name, '.');
  uint32_t i = find_argument(b, name);
  expression e = {0};
  if (i < count) return bind_number(b, i, dim, known, import);
  if (dim->extent < 0) return ax_error(AX_INVALID_ARGUMENT, "%s = %" PRId64 ": an extent is not below 0", dim->name, dim->extent);
  if (has_symbol(b, name)) return add_symbol(b, name, dim->extent), AX_OK;
  if (dot == NULL || (i = find_argument(b, (ax_hlo_slice){dim->name, (size_t)(dot - dim->name)})) == count)
    return ax_error(AX_INVALID_ARGUMENT, "the module has no dimension %s", dim->name);
  const int64_t d = number_of(&e, (ax_hlo_slice){dot + 1, strlen(dot + 1)});
  if (e.failed || dot[1] == '\0' || d >= b->types[i].rank)
    return ax_error(AX_INVALID_ARGUMENT, "%s: argument %u has rank %u", dim->name, i, b->types[i].rank);
  return set_extent(b, i, (uint32_t)d, dim->extent, dim->name);
}

/* What the caller knows of the argument's own type. */
static ax_status bind_type(binder *b, uint32_t i, uint32_t input, const ax_hlo_binding *binding) {
  ax_type given = {.dtype = AX_NO_DTYPE};
  if (!is_open(&b->types[i]) || binding->type_of == NULL) return AX_OK;
  const ax_hlo_slice name = name_of(b, i);
  const ax_hlo_slice by_jax = called(b, i);
  if (by_jax.length > 0) AX_TRY(binding->type_of(binding->context, input, by_jax, &given));
  if (given.dtype == AX_NO_DTYPE) AX_TRY(binding->type_of(binding->context, input, name, &given));
  if (given.dtype == AX_NO_DTYPE) return AX_OK;
  if (given.rank != b->types[i].rank)
    return ax_error(AX_INVALID_ARGUMENT, "argument %u is %.*s, and its value has rank %u", i, (int)declared(b, i)->text.length,
                    declared(b, i)->text.start, given.rank);
  for (uint32_t d = 0; d < given.rank; d++) AX_TRY(set_extent(b, i, d, given.dims[d], "its value"));
  return AX_OK;
}

/* What the extent may be bound as: "b=N or x.0=N". */
static void write_names(const binder *b, uint32_t i, uint32_t d, char *out, size_t bytes) {
  const ax_hlo_slice text = dimension_text(b->shapes[i], d), name = name_of(b, i);
  int length = 0;
  if (is_symbol(text) && text.length < bytes / 4) length = snprintf(out, bytes, "%.*s=N or --dim ", (int)text.length, text.start);
  if (name.length > 0 && name.length < bytes / 4)
    snprintf(out + length, bytes - (size_t)length, "%.*s.%u=N", (int)name.length, name.start, d);
  else
    snprintf(out + length, bytes - (size_t)length, "%u.%u=N", i, d);
}

static ax_status check_bound(binder *b, uint32_t i) {
  const ax_hlo_value_type *type = declared(b, i);
  char names[256];
  for (uint32_t d = 0; d < b->types[i].rank; d++) {
    if (b->types[i].dims[d] != open_extent || extent_of(b, dimension_text(b->shapes[i], d), &b->types[i].dims[d])) continue;
    write_names(b, i, d, names, sizeof names);
    return ax_error(AX_INVALID_ARGUMENT, "extent %u of argument %u, %.*s, is not known: --dim %s", d, i, (int)type->text.length,
                    type->text.start, names);
  }
  return AX_OK;
}

/* The types that the function declares, as programs have them; extents may be open. */
static ax_status open_type(binder *b, uint32_t i) {
  const ax_hlo_value_type *type = declared(b, i);
  if (type->kind != AX_HLO_TENSOR || type->ranked) return ax_hlo_open_type(type, &b->types[i]);
  return ax_error(AX_ABSENT, "%.*s: an argument without a rank is not supported", (int)type->text.length, type->text.start);
}

static ax_status open_types(binder *b) {
  for (uint32_t i = 0; i < b->block->argument_count; i++) {
    const ax_status status = open_type(b, i);
    const ax_hlo_slice name = name_of(b, i);
    const int length = name.length < 100 ? (int)name.length : 100;
    if (status == AX_OUT_OF_MEMORY) return status;
    if (status != AX_OK) return ax_error_context(status, "argument %u%s%.*s: ", i, length > 0 ? ", %" : "", length, name.start);
  }
  return AX_OK;
}

static ax_status bind_all(binder *b, ax_hlo_import *import, const ax_hlo_binding *binding, const ax_literal **known) {
  const uint32_t count = b->block->argument_count;
  AX_TRY(ax_hlo_blame(import->module, b->function, open_types(b)));
  find_shapes(b);
  for (uint32_t i = 0; i < binding->dim_count; i++) AX_TRY(bind_named(b, &binding->dims[i], known, import));
  for (uint32_t i = 0, input = 0; i < count; i++) {
    AX_TRY(bind_type(b, i, input, binding));
    input += known[i] == NULL;
  }
  for (uint32_t i = 0; i < count; i++) AX_TRY(check_bound(b, i));
  return AX_OK;
}

ax_status ax_bind_arguments(ax_hlo_import *import, const ax_hlo_operation *function, const ax_hlo_binding *binding, ax_type *types,
                            const ax_literal **known) {
  const ax_hlo_block *block = &function->regions[0].blocks[0];
  binder b = {.import = import, .function = function, .block = block, .types = types};
  b.shapes = ax_calloc(block->argument_count + 1, sizeof b.shapes[0]);
  if (b.shapes == NULL) return ax_out_of_memory(block->argument_count * sizeof b.shapes[0]);
  const ax_status status = bind_all(&b, import, binding, known);
  ax_free(b.shapes);
  return status;
}
