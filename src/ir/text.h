/* The text form of programs: functions shared by print.c, parse.c, verify.c and messages. README.md has the grammar. */
#ifndef AX_IR_TEXT_H
#define AX_IR_TEXT_H

#include "ir/program.h"

/* Words that cannot name a value: in let lambda axes true false nan inf. */
bool ax_is_reserved(const char *word, size_t length);

/* The name of the value with this label: a .. z, aa, ab .. without the reserved words. `name` needs 16 bytes. */
void ax_label_name(uint32_t label, char *name);
/* Writes a value as an operand: its name, or its literal: 0.1:f32[]. */
void ax_operand_text(ax_text *text, const ax_program *program, uint32_t id);

/* Writes one element in the shortest form that reads back to the same bits. Floats always have a point, an exponent or a name: 1.0,
   1e-05, nan. */
void ax_element_text(ax_text *text, ax_dtype dtype, const void *data, int64_t index);
/* Reads what ax_element_text writes, and any decimal number that `dtype` holds. False: the word is neither. `word` is
   NUL-terminated. */
bool ax_element_parse(const char *word, ax_dtype dtype, void *data, int64_t index);
/* Decimal digits after an optional minus; false on anything else and beyond int64_t. */
bool ax_integer_parse(const char *word, int64_t *out);

/* Writes any bytes but NUL between quotes: "a\\n". A quote, a backslash and characters below a blank are written \\x22, \\\\, \\n
   or \\x07. */
void ax_quoted_text(ax_text *text, const char *bytes);
/* Reads the text between quotes, `length` bytes, into `out` of length + 1 bytes. Returns NULL, or a description of the error. */
const char *ax_quoted_parse(const char *quoted, size_t length, char *out);

/* [[1, 2], [3, 4]]:s32[2,2]; equal elements are written once: 0.0:f32[8,4]. */
void ax_literal_text(ax_text *text, const ax_literal *literal);
/* Reads what ax_literal_text writes; the data is the arena's. AX_PARSE_ERROR. */
AX_MUST_USE ax_status ax_literal_parse(const char *text, const char *source, ax_arena *arena, ax_literal *out);

/* How the devices of a module have an input or result of its entry function (bridge/parts.h). */
typedef enum ax_having {
  AX_HAVE_ARRAY,     /* parts of one array, as its layout says */
  AX_HAVE_BY_DEVICE, /* each has its own, though the layout says that some have the same */
  AX_HAVE_SUMMED     /* the array is the sum of what devices have */
} ax_having;

/* The names that a text gave to a program's inputs and results; "" for a result that is a literal. */
typedef struct ax_program_names {
  ax_arena arena;
  const char *const *in, *const *out; /* in_count, out_count of the program */
  const char *const *in_also;         /* other names of the inputs, "" for none; NULL: there are none */
  const char *module;                 /* the module's own name; "": it has none. NULL: the program comes from no module */
  const bool *donated;                /* inputs whose memory a module gives away; NULL: the program comes from no module */
  const ax_having *in_having, *out_having; /* NULL: it comes from no module, or parts were not asked for */
  const char *const *in_layout, *const *out_layout; /* likewise; the orders of their dimensions in memory: {0,1}, default or auto */
  const char *const *in_memory, *const *out_memory; /* likewise; the kinds of memory that they are in: device, pinned_host */
  const bool *out_token; /* likewise; results that the module calls tokens */
  bool sums_stay; /* a layout says that devices have parts of a sum */
  const ax_dim_list *in_order, *out_order; /* likewise; by value: which device of the module stands at each place of the value's mesh;
                                              none: they stand there in order */
} ax_program_names;
void ax_program_names_deinit(ax_program_names *names);
/* ax_program_parse, keeping the names (NULL: not wanted). hooks: callbacks that are registered there get their functions; NULL:
   none do. */
AX_MUST_USE ax_status ax_program_parse_named(const char *text, size_t bytes, const char *source, const ax_hooks *hooks,
                                             ax_program_names *names, ax_program **out);

/* Says whether a nested program may have this environment: one that begins with its parent's, of whose automatic axes some may no
   longer be automatic; or an empty one, as a program that names no axes may be nested anywhere. */
bool ax_axes_begin_with(const ax_mesh *axes, const ax_mesh *parent);

#endif
