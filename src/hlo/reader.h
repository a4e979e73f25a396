/* The reader of texts, inside hlo: the state that its files share.

     scan.c         characters and words; errors with line and column
     read_types.c   types; read_quantized.c those of quantized elements
     read_attributes.c, read_elements.c   attributes; dense<..>
     read_text.c    operations in MLIR's generic form, regions, aliases, the module
     read_pretty.c  the short forms that dialects give their operations

   Each function that reads returns a status; on failure the place is in the message. */
#ifndef AX_HLO_READER_H
#define AX_HLO_READER_H

#include "hlo/module.h"

enum { AX_HLO_MOST_NESTED = 192 }; /* regions, attributes and types inside each other */

typedef struct ax_hlo_named { /* what a name stands for */
  ax_hlo_slice name;
  uint32_t value, count; /* the first value, and how many have the name: %5:2 */
} ax_hlo_named;

typedef struct ax_hlo_type_entry { /* types by their text */
  ax_hlo_slice text;
  const ax_hlo_value_type *type;
} ax_hlo_type_entry;

typedef struct ax_hlo_scan {
  ax_hlo_module *module;
  const char *text, *end, *cursor;
  const char *line_start; /* a line begins here, .. */
  uint32_t line;          /* .. with this number; for places that are asked for in ascending order */
  uint32_t nested;

  ax_hlo_named *names; /* in scope; an inner one hides an outer one of the same name */
  uint32_t name_count, name_capacity;
  uint32_t scope;    /* the first of the innermost region, where a name may not be given again */
  uint32_t isolated; /* the first that is seen: functions see no names around them */
  ax_table table;                    /* the innermost entry of `names` by name */
  uint32_t *hidden, hidden_capacity; /* by entry of `names`: what its slot of the table had before */

  ax_hlo_attribute *resources; /* names and texts, in the order of the names; made when the first one is asked for */
  uint32_t resource_count;
  bool has_resources;

  ax_hlo_type_entry *types; /* a hash table */
  uint32_t type_count, type_capacity;
  const ax_hlo_attribute *enumeration; /* of the word that was read last: most words are of few */
  uint32_t value_capacity, maker_capacity;
} ax_hlo_scan;

/* --- scan.c --- */
/* AX_PARSE_ERROR, "model.mlir:3:7: message", the line and a caret at `at`. */
AX_MUST_USE ax_status ax_hlo_refuse(ax_hlo_scan *r, const char *at, const char *format, ...) AX_PRINTF(3, 4);
/* The same: "expected .., not ..", with what stands at the cursor. */
AX_MUST_USE ax_status ax_hlo_expected(ax_hlo_scan *r, const char *what);
ax_hlo_place ax_hlo_place_at(ax_hlo_scan *r, const char *at);
static inline bool ax_hlo_is_digit(char c) { return c >= '0' && c <= '9'; }
int ax_hlo_hex_digit(char c);     /* -1: it is none */
void ax_hlo_skip(ax_hlo_scan *r); /* blanks, line ends and comments */
static inline bool ax_hlo_sees_comment(const ax_hlo_scan *r) { return r->end - r->cursor > 1 && r->cursor[0] == '/' && r->cursor[1] == '/'; }
/* Whether the mark or the word comes next; if so it is passed. A word is not taken as the beginning of a longer one. */
bool ax_hlo_take(ax_hlo_scan *r, const char *mark);
bool ax_hlo_sees(ax_hlo_scan *r, const char *mark);
AX_MUST_USE ax_status ax_hlo_want(ax_hlo_scan *r, const char *mark);
/* Letters, digits, _, $ and . ; not a digit first. Empty: no word comes next. */
ax_hlo_slice ax_hlo_take_word(ax_hlo_scan *r);
AX_MUST_USE ax_status ax_hlo_want_word(ax_hlo_scan *r, const char *what, ax_hlo_slice *out);
/* "..", with its escapes undone. */
AX_MUST_USE ax_status ax_hlo_want_string(ax_hlo_scan *r, ax_hlo_slice *out);
AX_MUST_USE ax_status ax_hlo_want_integer(ax_hlo_scan *r, int64_t *out);
/* @name, @"name", and @a::@b, of which the last counts and the others are items. Fills all of *out but its name. */
AX_MUST_USE ax_status ax_hlo_want_symbol(ax_hlo_scan *r, ax_hlo_attribute *out);
/* What follows %, # or !: a name. */
AX_MUST_USE ax_status ax_hlo_want_name(ax_hlo_scan *r, char mark, ax_hlo_slice *out);
/* Passes what stands between brackets of the kind that comes next, with all that is nested in it: <..>, (..), {..}, [..]. */
AX_MUST_USE ax_status ax_hlo_want_balanced(ax_hlo_scan *r, ax_hlo_slice *out);
/* Counts nesting; ax_hlo_leave must follow. */
AX_MUST_USE ax_status ax_hlo_enter(ax_hlo_scan *r);
static inline void ax_hlo_leave(ax_hlo_scan *r) { r->nested--; }

/* A growing list of things that go to the arena together. Zero-initialise to start; `items` is freed by ax_hlo_list_end. */
typedef struct ax_hlo_list {
  void *items;
  uint32_t count, capacity;
} ax_hlo_list;
AX_MUST_USE ax_status ax_hlo_list_add(ax_hlo_list *list, const void *item, size_t bytes);
/* Copies the items into the arena and frees the list. NULL: there are none, or *status, of what filled the list, was a failure or
   is one now. */
void *ax_hlo_list_end(ax_hlo_scan *r, ax_hlo_list *list, size_t bytes, ax_status *status);

/* --- read_types.c --- */
AX_MUST_USE ax_status ax_hlo_want_type(ax_hlo_scan *r, const ax_hlo_value_type **out);
/* The type with the text, which is copied if the module has it not yet. */
AX_MUST_USE ax_status ax_hlo_spelled_type(ax_hlo_scan *r, ax_hlo_slice text, const ax_hlo_value_type **out);
/* What stands in !quant.uniform<..>. NULL and AX_OK: it is no such type, or one that Axle has no storage for. */
AX_MUST_USE ax_status ax_hlo_read_quantized(ax_arena *arena, ax_hlo_slice text, const ax_hlo_quantized **out);
/* The dtype that StableHLO calls so. */
bool ax_hlo_find_dtype(ax_hlo_slice name, ax_dtype *out);
/* (types) or one type. */
AX_MUST_USE ax_status ax_hlo_want_results(ax_hlo_scan *r, ax_hlo_list *types);
/* (types) -> results, as one function type. */
AX_MUST_USE ax_status ax_hlo_want_signature(ax_hlo_scan *r, const ax_hlo_value_type **out);

/* --- read_attributes.c, read_elements.c --- */
/* Fills all of *out but its name. */
AX_MUST_USE ax_status ax_hlo_want_attribute(ax_hlo_scan *r, ax_hlo_attribute *out);
/* name = value, .. between braces, which are passed; the entries are added to the list. */
AX_MUST_USE ax_status ax_hlo_want_entries(ax_hlo_scan *r, ax_hlo_list *entries);
AX_MUST_USE ax_status ax_hlo_want_group(ax_hlo_scan *r, ax_hlo_attribute *out); /* behind <: a dictionary, and > */
AX_MUST_USE ax_status ax_hlo_want_elements(ax_hlo_scan *r, ax_hlo_attribute *out); /* behind the word dense */
/* Elements of out->type from a file's bytes, which stay as long as the module; they are copied only where they must be. Messages have
   the place of the cursor. */
AX_MUST_USE ax_status ax_hlo_elements_of(ax_hlo_scan *r, const void *bytes, size_t count, ax_hlo_attribute *out);
/* [b, 0, f]x[0, i, o]->[b, 0, f], as a dictionary. */
AX_MUST_USE ax_status ax_hlo_want_conv(ax_hlo_scan *r, ax_hlo_attribute *out);

/* --- read_text.c --- */
AX_MUST_USE ax_status ax_hlo_new_values(ax_hlo_scan *r, uint32_t count, const ax_hlo_value_type *const *types, uint32_t *first);
/* Gives the name to values; ax_hlo_names_drop takes back all names from the mark on. AX_PARSE_ERROR: the region has the name already. */
AX_MUST_USE ax_status ax_hlo_name_values(ax_hlo_scan *r, ax_hlo_slice name, uint32_t first, uint32_t count);
static inline uint32_t ax_hlo_names_mark(const ax_hlo_scan *r) { return r->name_count; }
void ax_hlo_names_drop(ax_hlo_scan *r, uint32_t mark);
/* %x or %x#1 -> the value's number. */
AX_MUST_USE ax_status ax_hlo_want_operand(ax_hlo_scan *r, uint32_t *out);

/* loc("train.py":31:4), loc(#loc1), .., if it comes next: kept as text. */
AX_MUST_USE ax_status ax_hlo_take_location(ax_hlo_scan *r, ax_hlo_slice *out);

/* An operation while it is read. */
typedef struct ax_hlo_draft {
  ax_hlo_operation op;
  const char *at;                                     /* where it begins */
  ax_hlo_list operands, attributes, regions, results; /* uint32_t, ax_hlo_attribute, ax_hlo_region, const ax_hlo_value_type * */
} ax_hlo_draft;
/* { blocks }. The arguments that its first block has without writing them: `count` of them, with names. */
typedef struct ax_hlo_arguments {
  const ax_hlo_slice *names;
  const ax_hlo_value_type *const *types;
  uint32_t count;
} ax_hlo_arguments;
AX_MUST_USE ax_status ax_hlo_want_region(ax_hlo_scan *r, ax_hlo_draft *draft, const ax_hlo_arguments *arguments);
/* A region of one block that is put together here: its operations by ax_hlo_draft_end. */
AX_MUST_USE ax_status ax_hlo_draft_region(ax_hlo_scan *r, ax_hlo_draft *draft, const ax_hlo_block *block);
AX_MUST_USE ax_status ax_hlo_draft_attribute(ax_hlo_draft *draft, const char *name, const ax_hlo_attribute *attribute);
AX_MUST_USE ax_status ax_hlo_draft_attributes(ax_hlo_scan *r, ax_hlo_draft *draft); /* {..}, if it comes next */

/* ": (types) -> types": results' types, and operands', which must be those that they have. */
AX_MUST_USE ax_status ax_hlo_want_typed(ax_hlo_scan *r, ax_hlo_draft *draft);

/* The module's functions, which are those of the block, or of the module in it. */
void ax_hlo_find_body(ax_hlo_module *m, const ax_hlo_block *block);
void ax_hlo_free_scan(ax_hlo_scan *r); /* all that the state itself has */
/* (%a, %b), added to the operands. */
AX_MUST_USE ax_status ax_hlo_want_operands(ax_hlo_scan *r, ax_hlo_draft *draft);

/* --- read_chlo.c --- */
AX_MUST_USE ax_status ax_hlo_read_scan(ax_hlo_scan *r, ax_hlo_draft *draft);
AX_MUST_USE ax_status ax_hlo_read_cast(ax_hlo_scan *r, ax_hlo_draft *draft);

/* --- read_pretty.c --- */
/* Reads what stands behind the name of an operation that is not in quotes. */
AX_MUST_USE ax_status ax_hlo_want_pretty(ax_hlo_scan *r, ax_hlo_draft *draft);

#endif
