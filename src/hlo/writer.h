/* The writer of bytecode, inside hlo: the state that its files share.

     write_bytecode.c    operations, regions, values; sections
     write_mixed.c       what stands beside VHLO: operations of chlo and sdy
     write_attributes.c  attributes and types, each once
     write_vhlo.c        attributes of operations as VHLO has them */
#ifndef AX_HLO_WRITER_H
#define AX_HLO_WRITER_H

#include "hlo/dialect.h"

typedef enum ax_hlo_written { /* dialects */
  AX_HLO_WRITES_BUILTIN,
  AX_HLO_WRITES_VHLO,
  AX_HLO_WRITES_CHLO,
  AX_HLO_WRITES_SDY,
  AX_HLO_WRITES_COUNT,
  AX_HLO_WRITES_TEXT /* of any dialect: what MLIR's reader of texts takes; counted as builtin's */
} ax_hlo_written;

typedef struct ax_hlo_interned { /* bytes that were written, by dialect */
  ax_hlo_slice bytes;
  uint32_t dialect;
} ax_hlo_interned;

typedef struct ax_hlo_pool { /* things with numbers, each once */
  ax_hlo_interned *items;
  uint32_t count, capacity;
  ax_table table; /* of these, by bytes and dialect */
} ax_hlo_pool;

typedef struct ax_hlo_writer {
  const ax_hlo_module *module;
  uint32_t version;
  bool mixed; /* operations of chlo and sdy are written, too */
  ax_arena arena;
  ax_hlo_pool strings, names, attributes, types;
  uint32_t *ids;  /* by value: its number in the file */
  uint32_t scope; /* values in the innermost region that sees none outside, and in those around inside it */
  uint32_t nested, attributes_left;
} ax_hlo_writer;

/* Numbers of variable length. */
void ax_hlo_add_number(ax_text *text, uint64_t number);
void ax_hlo_add_signed(ax_text *text, int64_t number);
/* The number of what has these bytes; the text is emptied. */
AX_MUST_USE ax_status ax_hlo_intern(ax_hlo_writer *w, ax_hlo_pool *pool, uint32_t dialect, ax_text *bytes, uint32_t *out);
AX_MUST_USE ax_status ax_hlo_intern_string(ax_hlo_writer *w, ax_hlo_slice string, uint32_t *out);
void ax_hlo_pool_deinit(ax_hlo_pool *pool);

/* --- write_mixed.c --- */
/* The dialect of an operation that VHLO has not, but which may stand beside its: of chlo or sdy; AX_HLO_WRITES_VHLO: it is of no such dialect. */
ax_hlo_written ax_hlo_beside(const ax_hlo_operation *op);
/* How many operations stand around it, which only change the types of its operands and results. Of such a region each argument has one, too. */
uint32_t ax_hlo_casts_of(const ax_hlo_operation *op);
/* Values of VHLO's operations have VHLO's types, others those of builtin: an operation that makes the other of value `id`. It is value *next. */
AX_MUST_USE ax_status ax_hlo_add_cast(ax_hlo_writer *w, const ax_hlo_value_type *type, uint32_t id, bool to_vhlo, uint32_t *next,
                                      ax_text *out);
/* Its name, and its attributes as one text. */
AX_MUST_USE ax_status ax_hlo_write_beside(ax_hlo_writer *w, const ax_hlo_operation *op, uint32_t *name, uint32_t *attributes);
/* The type as those operations have it. */
AX_MUST_USE ax_status ax_hlo_write_plain_type(ax_hlo_writer *w, const ax_hlo_value_type *type, uint32_t *out);
/* An attribute of sdy or chlo where VHLO's operations have it. */
AX_MUST_USE ax_status ax_hlo_write_as_text(ax_hlo_writer *w, const ax_hlo_attribute *attribute, uint32_t *out);

/* --- write_attributes.c --- */
AX_MUST_USE ax_status ax_hlo_write_type(ax_hlo_writer *w, const ax_hlo_value_type *type, uint32_t *out);
/* Types that have no parts, by name: "f32". */
AX_MUST_USE ax_status ax_hlo_write_simple(ax_hlo_writer *w, ax_hlo_slice name, uint32_t *out);
/* An attribute of VHLO, of any kind that VHLO has. */
AX_MUST_USE ax_status ax_hlo_write_attribute(ax_hlo_writer *w, const ax_hlo_attribute *attribute, uint32_t *out);
AX_MUST_USE ax_status ax_hlo_write_integer(ax_hlo_writer *w, int64_t number, const char *type, uint32_t *out);
AX_MUST_USE ax_status ax_hlo_write_word(ax_hlo_writer *w, const ax_hlo_words *words, ax_hlo_slice word, uint32_t *out);
/* A tensor of integers or truth values: `count` rows of `columns`; 0 columns: of one dimension. */
AX_MUST_USE ax_status ax_hlo_write_numbers(ax_hlo_writer *w, const int64_t *numbers, int64_t count, int64_t columns, bool truths,
                                           uint32_t *out);
AX_MUST_USE ax_status ax_hlo_write_accuracy(ax_hlo_writer *w, const ax_hlo_attribute *accuracy,
                                            uint32_t *out); /* NULL: the default */
AX_MUST_USE ax_status ax_hlo_write_array(ax_hlo_writer *w, const uint32_t *items, uint32_t count, uint32_t *out);
/* Attributes of builtin: a module's own; a dictionary of attributes; a place. */
AX_MUST_USE ax_status ax_hlo_write_builtin(ax_hlo_writer *w, const ax_hlo_attribute *attribute, uint32_t *out);
typedef struct ax_hlo_entry_index {
  ax_hlo_slice name;
  uint32_t value;
} ax_hlo_entry_index;
AX_MUST_USE ax_status ax_hlo_write_dictionary(ax_hlo_writer *w, const ax_hlo_entry_index *entries, uint32_t count, uint32_t *out);
AX_MUST_USE ax_status ax_hlo_write_place(ax_hlo_writer *w, const ax_hlo_place *place, uint32_t *out);

/* --- write_vhlo.c --- */
/* The operation's name, "gather_v2", and its attributes, a dictionary; AX_NONE: it has none. */
AX_MUST_USE ax_status ax_hlo_write_named(ax_hlo_writer *w, const ax_hlo_operation *op, uint32_t *name, uint32_t *attributes);

#endif
