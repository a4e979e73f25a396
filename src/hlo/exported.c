/* A flatbuffer: a table is a place whose first four bytes say how far before it its list of fields stands; the list has the length of
   itself and of the table, and then for each field its place in the table, 0 where it is absent. Strings, lists and other tables are
   fields that say how far behind them these stand; a list begins with its length.

     file    4 bytes: the place of the root table
     table   -distance of the list of fields | fields
     list    2 bytes: its bytes, 2 bytes: the table's, 2 bytes each: the fields' places */
#include "hlo/exported.h"

#include <string.h>

#include "hlo/read_bytecode.h"

typedef enum field { /* of the table Exported */
                     FIELD_IN_AVALS = 3,
                     FIELD_PLATFORMS = 9,
                     FIELD_ORDERED_EFFECTS = 10,
                     FIELD_MODULE = 13,
                     FIELD_CONVENTION = 14,
                     FIELD_KEPT = 15,
                     FIELD_UNIQUE_AVALS = 19,
                     FIELD_IN_INDICES = 22
} field;
enum { FIELD_SHAPE = 1, FIELD_DTYPE = 2 }; /* of AbstractValue */
enum { FIELD_TYPE_NAME = 0 };              /* of Effect */
enum { oldest_convention = 9, newest_convention = 10 };

typedef struct buffer {
  const unsigned char *bytes;
  size_t count;
  const char *source;
} buffer;

typedef struct table {
  size_t at, fields, field_bytes; /* of the list of fields */
} table;

typedef struct list {
  size_t at;
  uint32_t count;
} list;

/* --- The wire format --- */

static ax_status broken(const buffer *b, size_t at, const char *what) {
  return ax_error(AX_PARSE_ERROR, "%s: byte %zu: %s", b->source, at, what);
}

static ax_status read_number(const buffer *b, size_t at, size_t bytes, uint32_t *out) {
  *out = 0;
  if (at > b->count || bytes > b->count - at) return broken(b, b->count, "the bytes end here, and more must follow");
  for (size_t i = 0; i < bytes; i++) *out |= (uint32_t)b->bytes[at + i] << 8 * i;
  return AX_OK;
}

static ax_status follow(const buffer *b, size_t at, size_t *out) {
  uint32_t distance;
  AX_TRY(read_number(b, at, 4, &distance));
  *out = at + distance;
  return *out < b->count ? AX_OK : broken(b, at, "an offset leads beyond the end");
}

static ax_status open_table(const buffer *b, size_t at, table *out) {
  uint32_t back;
  AX_TRY(read_number(b, at, 4, &back));
  const int64_t fields = (int64_t)at - (int32_t)back;
  if (fields < 0 || (uint64_t)fields >= b->count) return broken(b, at, "a table has no list of fields");
  *out = (table){.at = at, .fields = (size_t)fields};
  uint32_t bytes;
  AX_TRY(read_number(b, out->fields, 2, &bytes));
  out->field_bytes = bytes;
  return AX_OK;
}

/* The place of the field; 0: it is absent. */
static ax_status find(const buffer *b, const table *t, uint32_t number, size_t *out) {
  const size_t entry = 4 + 2 * (size_t)number;
  uint32_t place;
  *out = 0;
  if (entry + 2 > t->field_bytes) return AX_OK;
  AX_TRY(read_number(b, t->fields + entry, 2, &place));
  if (place > 0) *out = t->at + place;
  return AX_OK;
}

static ax_status read_scalar(const buffer *b, const table *t, uint32_t number, size_t bytes, uint32_t *out) {
  size_t at;
  AX_TRY(find(b, t, number, &at));
  *out = 0;
  return at == 0 ? AX_OK : read_number(b, at, bytes, out);
}

/* A list of things of so many bytes each; none if the field is absent. */
static ax_status read_list(const buffer *b, const table *t, uint32_t number, size_t each, list *out) {
  size_t at;
  *out = (list){0};
  AX_TRY(find(b, t, number, &at));
  if (at == 0) return AX_OK;
  AX_TRY(follow(b, at, &at));
  AX_TRY(read_number(b, at, 4, &out->count));
  out->at = at + 4;
  return out->count <= (b->count - out->at) / each ? AX_OK : broken(b, at, "a list is longer than the file");
}

static ax_status read_string(const buffer *b, size_t at, ax_hlo_slice *out) {
  uint32_t length;
  AX_TRY(follow(b, at, &at));
  AX_TRY(read_number(b, at, 4, &length));
  if (length > b->count - at - 4) return broken(b, at, "a string is longer than the file");
  *out = (ax_hlo_slice){(const char *)b->bytes + at + 4, length};
  return AX_OK;
}

static ax_status open_entry(const buffer *b, const list *tables, uint32_t i, table *out) {
  size_t at;
  AX_TRY(follow(b, tables->at + 4 * (size_t)i, &at));
  return open_table(b, at, out);
}

static ax_status open_root(const buffer *b, table *out) {
  size_t at;
  AX_TRY(follow(b, 0, &at));
  return open_table(b, at, out);
}

/* --- What it says --- */

/* MLIR's names by JAX's numbers of dtypes; keys have their words as one more dimension. */
static const struct {
  const char *name, *words;
} dtypes[] = {{"i1", ""},
              {"i8", ""},
              {"i16", ""},
              {"i32", ""},
              {"i64", ""},
              {"ui8", ""},
              {"ui16", ""},
              {"ui32", ""},
              {"ui64", ""},
              {"f16", ""},
              {"f32", ""},
              {"f64", ""},
              {"complex<f32>", ""},
              {"complex<f64>", ""},
              {"bf16", ""},
              {"i4", ""},
              {"ui4", ""},
              {"f8E4M3B11FNUZ", ""},
              {"f8E4M3FN", ""},
              {"f8E4M3FNUZ", ""},
              {"f8E5M2", ""},
              {"f8E5M2FNUZ", ""},
              {"i1", ""} /* float0 */,
              {"f8E4M3", ""},
              {"f8E3M4", ""},
              {"f8E8M0FNU", ""},
              {"f4E2M1FN", ""},
              {"ui32", "2x"},
              {"ui32", "4x"},
              {"ui32", "4x"}};

/* tensor<2x?xf32>: extents that are no numbers are not known. */
static ax_status add_type(const buffer *b, const table *aval, ax_text *text) {
  list shape;
  uint32_t dtype;
  AX_TRY(read_list(b, aval, FIELD_SHAPE, 4, &shape));
  AX_TRY(read_scalar(b, aval, FIELD_DTYPE, 1, &dtype));
  if (dtype >= AX_COUNT(dtypes))
    return ax_error(AX_ABSENT, "%s: arguments of the dtype with the number %u are not read", b->source, dtype);
  ax_text_add(text, "tensor<");
  for (uint32_t d = 0; d < shape.count; d++) {
    ax_hlo_slice extent;
    AX_TRY(read_string(b, shape.at + 4 * (size_t)d, &extent));
    bool number = extent.length > 0 && extent.length < 20;
    for (size_t i = 0; i < extent.length; i++) number = number && extent.start[i] >= '0' && extent.start[i] <= '9';
    ax_text_add(text, "%.*sx", number ? (int)extent.length : 1, number ? extent.start : "?");
  }
  ax_text_add(text, "%s%s>", dtypes[dtype].words, dtypes[dtype].name);
  return AX_OK;
}

static ax_status read_type(const buffer *b, const list *avals, uint32_t i, ax_arena *arena, ax_hlo_slice *out) {
  ax_text text = {0};
  table aval;
  if (i >= avals->count) return broken(b, avals->at, "an argument has no type");
  AX_TRY(open_entry(b, avals, i, &aval));
  ax_status status = add_type(b, &aval, &text);
  if (status == AX_OK && text.failed) status = ax_out_of_memory(text.length);
  char *copy = status == AX_OK ? ax_arena_copy(arena, text.data, text.length) : NULL;
  if (status == AX_OK && copy == NULL) status = ax_out_of_memory(text.length);
  *out = (ax_hlo_slice){copy, text.length};
  ax_text_deinit(&text);
  return status;
}

/* Types of the arguments: a list of them, or of their numbers in a list of those that differ. */
static ax_status read_types(const buffer *b, const table *root, ax_arena *arena, ax_hlo_calling *out) {
  list avals, indices;
  AX_TRY(read_list(b, root, FIELD_IN_AVALS, 4, &avals));
  AX_TRY(read_list(b, root, FIELD_IN_INDICES, 4, &indices));
  const bool listed = avals.count > 0 || indices.count == 0;
  if (!listed) AX_TRY(read_list(b, root, FIELD_UNIQUE_AVALS, 4, &avals));
  out->in_count = listed ? avals.count : indices.count;
  ax_hlo_slice *types = ax_arena_alloc(arena, (out->in_count + 1) * sizeof types[0]);
  if (types == NULL) return ax_out_of_memory(out->in_count * sizeof types[0]);
  for (uint32_t i = 0; i < out->in_count; i++) {
    uint32_t index = i;
    if (!listed) AX_TRY(read_number(b, indices.at + 4 * (size_t)i, 4, &index));
    AX_TRY(read_type(b, &avals, index, arena, &types[i]));
  }
  out->in = types;
  return AX_OK;
}

static ax_status read_kept(const buffer *b, const table *root, ax_arena *arena, ax_hlo_calling *out) {
  list kept;
  AX_TRY(read_list(b, root, FIELD_KEPT, 2, &kept));
  uint32_t *numbers = ax_arena_alloc(arena, (kept.count + 1) * sizeof numbers[0]);
  if (numbers == NULL) return ax_out_of_memory(kept.count * sizeof numbers[0]);
  for (uint32_t i = 0; i < kept.count; i++) {
    AX_TRY(read_number(b, kept.at + 2 * (size_t)i, 2, &numbers[i]));
    if (numbers[i] >= out->in_count || (i > 0 && numbers[i] <= numbers[i - 1]))
      return broken(b, kept.at, "the kept arguments are not in order");
  }
  out->kept = numbers;
  out->kept_count = kept.count;
  return AX_OK;
}

static ax_status read_platforms(const buffer *b, const table *root, ax_hlo_calling *out) {
  list platforms;
  ax_hlo_slice name = {"none", 4};
  AX_TRY(read_list(b, root, FIELD_PLATFORMS, 4, &platforms));
  out->has_platform = platforms.count > 1;
  for (uint32_t i = 0; i < platforms.count; i++) {
    AX_TRY(read_string(b, platforms.at + 4 * (size_t)i, &name));
    out->platform = i;
    if (ax_hlo_slice_is(name, "cpu")) return AX_OK;
  }
  return ax_error(AX_ABSENT, "%s: exported for other platforms than cpu, as %.*s", b->source,
                  (int)(name.length < 64 ? name.length : 64), name.start);
}

/* Effects in an order are tokens that @main takes and gives. */
static ax_status check_effects(const buffer *b, const table *root) {
  list effects;
  table effect;
  size_t at;
  ax_hlo_slice name = {"?", 1};
  AX_TRY(read_list(b, root, FIELD_ORDERED_EFFECTS, 4, &effects));
  if (effects.count == 0) return AX_OK;
  AX_TRY(open_entry(b, &effects, 0, &effect));
  AX_TRY(find(b, &effect, FIELD_TYPE_NAME, &at));
  if (at > 0) AX_TRY(read_string(b, at, &name));
  return ax_error(AX_ABSENT, "%s: effects in an order are not read, and it has %.*s", b->source,
                  (int)(name.length < 64 ? name.length : 64), name.start);
}

static ax_status read_module(const buffer *b, const table *root, ax_hlo_slice *out) {
  list module;
  AX_TRY(read_list(b, root, FIELD_MODULE, 1, &module));
  *out = (ax_hlo_slice){(const char *)b->bytes + module.at, module.count};
  return module.count > 0 ? AX_OK : broken(b, root->at, "there is no module");
}

static ax_status check_convention(const buffer *b, const table *root) {
  uint32_t convention;
  AX_TRY(read_scalar(b, root, FIELD_CONVENTION, 2, &convention));
  if (convention >= oldest_convention && convention <= newest_convention) return AX_OK;
  return ax_error(AX_ABSENT, "%s: the calling convention of version %u is not read: versions %d to %d are", b->source, convention,
                  oldest_convention, newest_convention);
}

bool ax_hlo_is_exported(const char *bytes, size_t count) {
  const buffer b = {(const unsigned char *)bytes, count, ""};
  ax_message_copy kept;
  ax_hlo_slice module;
  table root;
  if (count < 8 || bytes[3] != 0) return false; /* the root is near the beginning */
  ax_message_keep(&kept);
  const bool found = open_root(&b, &root) == AX_OK && read_module(&b, &root, &module) == AX_OK;
  ax_message_put_back(&kept);
  return found && ax_hlo_is_bytecode(module.start, module.length);
}

ax_status ax_hlo_read_exported(const char *bytes, size_t count, const char *source, ax_arena *arena, ax_hlo_slice *module,
                               ax_hlo_calling *out) {
  const buffer b = {(const unsigned char *)bytes, count, source};
  table root;
  *out = (ax_hlo_calling){0};
  AX_TRY(open_root(&b, &root));
  AX_TRY(check_convention(&b, &root));
  AX_TRY(check_effects(&b, &root));
  AX_TRY(read_platforms(&b, &root, out));
  AX_TRY(read_types(&b, &root, arena, out));
  AX_TRY(read_kept(&b, &root, arena, out));
  return read_module(&b, &root, module);
}
