/* The reader of bytecode, inside hlo: the state that its files share.

     bytes.c            numbers and lists of bytes; errors with their place
     read_bytecode.c    sections: strings, dialects, where attributes and types lie, resources
     bytecode_types.c, bytecode_attributes.c, bytecode_vhlo.c, bytecode_sdy.c, bytecode_mesh.c   types; attributes; attributes of VHLO
     bytecode_ops.c     operations, regions, values
     called.c, platform.c   what jax.export says of @main
     vhlo.c             attributes of VHLO's operations as StableHLO has them

   Attributes and types are read when the first operation asks for them, once each. Types are written as text and read by the reader
   of texts, so that both readers have the same. */
#ifndef AX_HLO_BYTECODE_H
#define AX_HLO_BYTECODE_H

#include "hlo/dialect.h"
#include "hlo/exported.h"
#include "hlo/reader.h"

typedef struct ax_hlo_bytes { /* a part of the file; reading moves `next` */
  const unsigned char *next, *end;
} ax_hlo_bytes;
static inline size_t ax_hlo_left(const ax_hlo_bytes *bytes) { return (size_t)(bytes->end - bytes->next); }

enum { AX_HLO_PROPERTIES = 5 }; /* the first version that has operations' own attributes apart from others */

typedef enum ax_hlo_dialect {
  AX_HLO_OTHER_DIALECT,
  AX_HLO_BUILTIN,
  AX_HLO_STABLEHLO,
  AX_HLO_CHLO,
  AX_HLO_VHLO,
  AX_HLO_SDY
} ax_hlo_dialect;

typedef struct ax_hlo_coded { /* an attribute or a type */
  ax_hlo_bytes bytes;
  uint32_t dialect; /* of the file's list */
  bool custom;      /* encoded as the dialect does, else as text */
  bool in_progress;
  const void *made; /* ax_hlo_attribute or ax_hlo_value_type; NULL: not read yet */
} ax_hlo_coded;

typedef struct ax_hlo_coded_name { /* of an operation */
  ax_hlo_slice name;               /* as the tree has it */
  const ax_hlo_listed *known;       /* NULL: nothing is known of its attributes */
  const ax_hlo_slot *const *slots; /* its own attributes in the order in which bytecode has them, which is that of their names */
  uint32_t slot_count;
  uint32_t form; /* VHLO's number behind the name; 0: it is no operation of VHLO's */
} ax_hlo_coded_name;

typedef struct ax_hlo_named_dialect {
  ax_hlo_slice name;
  ax_hlo_dialect which;
} ax_hlo_named_dialect;

typedef struct ax_hlo_resource {
  ax_hlo_slice name;
  ax_hlo_bytes bytes; /* the blob alone */
} ax_hlo_resource;

typedef struct ax_hlo_bytecode {
  ax_hlo_scan scan; /* the module; and for texts inside the file */
  const unsigned char *start;
  ax_arena arena; /* what is needed while reading */
  uint64_t version;
  const ax_hlo_slice *strings;
  const ax_hlo_named_dialect *dialects;
  const ax_hlo_coded_name *names;
  ax_hlo_coded *attributes, *types;
  const ax_hlo_resource *resources;
  const ax_hlo_bytes *properties;
  uint32_t string_count, dialect_count, name_count, attribute_count, type_count, resource_count, property_count;
  size_t text_left;               /* of types that are made of others: characters that they may still have */
  size_t attributes_left;         /* that operations may still have, since many may share one list */
  size_t values_left;             /* that regions may still have: each value takes a byte of the file */
  uint32_t *values;               /* by the numbers of the file: the tree's */
  uint32_t base, count, capacity; /* of `values`: where those begin that operations see; how many there are */
  uint32_t operations;            /* that were read */
  const ax_hlo_calling *calling;  /* of @main; NULL: as it says itself */
  const ax_hlo_slice *called;     /* what the locations of the last function's arguments call them */
  uint32_t called_count;
} ax_hlo_bytecode;

/* --- bytes.c --- */
/* AX_PARSE_ERROR, "m.mlirbc: byte 20: message". */
AX_MUST_USE ax_status ax_hlo_broken(const ax_hlo_bytecode *b, const unsigned char *at, const char *format, ...) AX_PRINTF(3, 4);
AX_MUST_USE ax_status ax_hlo_read_byte(const ax_hlo_bytecode *b, ax_hlo_bytes *from, unsigned char *out);
/* Numbers of variable length; signed ones in zigzag; with a flag in the lowest bit; below a bound. */
AX_MUST_USE ax_status ax_hlo_read_number(const ax_hlo_bytecode *b, ax_hlo_bytes *from, uint64_t *out);
AX_MUST_USE ax_status ax_hlo_read_signed(const ax_hlo_bytecode *b, ax_hlo_bytes *from, int64_t *out);
AX_MUST_USE ax_status ax_hlo_read_flagged(const ax_hlo_bytecode *b, ax_hlo_bytes *from, uint64_t *out, bool *flag);
AX_MUST_USE ax_status ax_hlo_read_below(const ax_hlo_bytecode *b, ax_hlo_bytes *from, uint64_t bound, const char *what,
                                        uint32_t *out);
/* How many things follow, each of at least a byte: so there are no more than bytes. */
AX_MUST_USE ax_status ax_hlo_read_count(const ax_hlo_bytecode *b, ax_hlo_bytes *from, uint32_t *out);
AX_MUST_USE ax_status ax_hlo_read_part(const ax_hlo_bytecode *b, ax_hlo_bytes *from, uint64_t bytes, ax_hlo_bytes *out);
AX_MUST_USE ax_status ax_hlo_read_blob(const ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_bytes *out); /* its length and itself */
/* Passes the bytes that are there so that what follows lies at a multiple of `alignment`. */
AX_MUST_USE ax_status ax_hlo_align(const ax_hlo_bytecode *b, ax_hlo_bytes *from, uint64_t alignment);
AX_MUST_USE ax_status ax_hlo_read_section(const ax_hlo_bytecode *b, ax_hlo_bytes *from, uint32_t *id, ax_hlo_bytes *out);
AX_MUST_USE ax_status ax_hlo_read_string(const ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_slice *out);
/* An integer of so many bits, as MLIR encodes it: the upper ones of *out are 0. */
AX_MUST_USE ax_status ax_hlo_read_bits(const ax_hlo_bytecode *b, ax_hlo_bytes *from, uint32_t bits, uint64_t *out);
/* A count, and as many signed numbers, in the module's arena. */
AX_MUST_USE ax_status ax_hlo_read_integers(ax_hlo_bytecode *b, ax_hlo_bytes *from, const int64_t **out, uint32_t *count);
/* Memory of the module; AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_hlo_make(ax_hlo_bytecode *b, size_t count, size_t bytes, void *out);

/* --- bytecode_types.c --- */
AX_MUST_USE ax_status ax_hlo_type_at(ax_hlo_bytecode *b, uint32_t index, const ax_hlo_value_type **out);
AX_MUST_USE ax_status ax_hlo_read_type(ax_hlo_bytecode *b, ax_hlo_bytes *from, const ax_hlo_value_type **out); /* its index */
/* The type with the text, which is copied. */
AX_MUST_USE ax_status ax_hlo_type_of_text(ax_hlo_bytecode *b, const char *text, size_t length, const ax_hlo_value_type **out);
/* Sets the reader of texts to these characters. */
void ax_hlo_scan_text(ax_hlo_bytecode *b, ax_hlo_slice text);

/* --- bytecode_attributes.c --- */
AX_MUST_USE ax_status ax_hlo_attribute_at(ax_hlo_bytecode *b, uint32_t index, const ax_hlo_attribute **out);
/* By their indices in the file: one, one that may be missing (NULL then), a list. */
AX_MUST_USE ax_status ax_hlo_read_attribute(ax_hlo_bytecode *b, ax_hlo_bytes *from, const ax_hlo_attribute **out);
AX_MUST_USE ax_status ax_hlo_read_optional(ax_hlo_bytecode *b, ax_hlo_bytes *from, const ax_hlo_attribute **out);
AX_MUST_USE ax_status ax_hlo_read_array(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out);
AX_MUST_USE ax_status ax_hlo_read_dictionary(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out);
/* Parts of attributes that several dialects have. */
AX_MUST_USE ax_status ax_hlo_read_integer_of(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out);
AX_MUST_USE ax_status ax_hlo_read_float_of(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out);
AX_MUST_USE ax_status ax_hlo_read_elements_of(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out);
AX_MUST_USE ax_status ax_hlo_read_word(ax_hlo_bytecode *b, ax_hlo_bytes *from, const ax_hlo_words *words, const char *dialect,
                                       ax_hlo_attribute *out);
AX_MUST_USE ax_status ax_hlo_read_accuracy(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out);
AX_MUST_USE ax_status ax_hlo_read_bounds(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out);
AX_MUST_USE ax_status ax_hlo_read_group(ax_hlo_bytecode *b, ax_hlo_bytes *from, const ax_hlo_group *group, ax_hlo_attribute *out);

/* --- bytecode_vhlo.c --- */
AX_MUST_USE ax_status ax_hlo_read_vhlo_attribute(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out);

/* --- bytecode_sdy.c, bytecode_mesh.c --- */
AX_MUST_USE ax_status ax_hlo_read_sdy_attribute(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_attribute *out);

/* --- bytecode_mesh.c --- */
/* *known: the code is of one of these. */
AX_MUST_USE ax_status ax_hlo_read_mesh_attribute(ax_hlo_bytecode *b, ax_hlo_bytes *from, bool vhlo, uint64_t code, bool *known,
                                                 ax_hlo_attribute *out);

/* --- vhlo.c --- */
/* The attributes of an operation of VHLO's, `count` of them, as StableHLO has them: those of the tables, then others. */
AX_MUST_USE ax_status ax_hlo_from_vhlo(ax_hlo_bytecode *b, const ax_hlo_coded_name *name, const ax_hlo_attribute *items,
                                       uint32_t count, ax_hlo_operation *op);

/* --- called.c --- */
/* The operation is @main of a module that was exported, whose arguments are other ones. */
bool ax_hlo_is_called(const ax_hlo_bytecode *b, const ax_hlo_operation *op);
/* Makes the arguments of the function that was exported, and the platform, which is *first of the block's operations: numbers of these
   values for each of the file's arguments, with these types. */
AX_MUST_USE ax_status ax_hlo_called_arguments(ax_hlo_bytecode *b, ax_hlo_block *block, uint32_t count,
                                              const ax_hlo_value_type *const *types, uint32_t *values,
                                              const ax_hlo_operation **first);
/* The attributes of its arguments, among those that it has not. */
AX_MUST_USE ax_status ax_hlo_called_attributes(ax_hlo_bytecode *b, ax_hlo_operation *op);

/* --- platform.c --- */
/* Finds where the platform of the module is known. */
AX_MUST_USE ax_status ax_hlo_spread_platform(ax_hlo_module *module);

/* --- bytecode_ops.c --- */
AX_MUST_USE ax_status ax_hlo_read_operations(ax_hlo_bytecode *b, ax_hlo_bytes *from, ax_hlo_block *out);

#endif
