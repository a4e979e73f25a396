/* A StableHLO module in memory: a tree of operations, as MLIR has them. It knows no primitive, and no operation by name. Readers
   make it (hlo/read_text.h); programs are made from it (bridge/stablehlo_read.c).

     module
       operation "func.func"    attributes: sym_name = "main", function_type = (tensor<4xf32>) -> tensor<f32>
         region
           block                arguments: value 0, tensor<4xf32>
             operation          "stablehlo.sine", operands: 0, results: value 1, tensor<4xf32>
             operation          "func.return", operands: 1

   All of it lives in the module's arena, and parts of it are slices of the text that was read, which must stay as long as the
   module. Values are numbered over the whole module; the numbers of an operation's results follow each other, as those of a block's
   arguments do. */
#ifndef AX_HLO_MODULE_H
#define AX_HLO_MODULE_H

#include "base/table.h"
#include "ir/equation.h"
#include "ir/number.h"

typedef struct ax_hlo_attribute ax_hlo_attribute;
typedef struct ax_hlo_region ax_hlo_region;

typedef struct ax_hlo_slice { /* characters of the text, or of the arena */
  const char *start;
  size_t length;
} ax_hlo_slice;

/* --- Types --- */
typedef enum ax_hlo_kind {
  AX_HLO_TENSOR,
  AX_HLO_SCALAR,      /* the type of a number in an attribute: i64, f32, index */
  AX_HLO_TOKEN,       /* !stablehlo.token */
  AX_HLO_TUPLE,       /* tuple<..>; `parts` */
  AX_HLO_FUTURE_TYPE, /* !stablehlo.future<..>; `parts` */
  AX_HLO_FUNCTION,    /* (..) -> (..); `parts`, of which the first in_count are parameters */
  AX_HLO_OTHER        /* any other one; its text says which */
} ax_hlo_kind;

enum { AX_HLO_DYNAMIC = -1 }; /* an extent that is not known */

/* !quant.uniform<storage<least:greatest>:expressed:axis, {scale:zero, ..}>: an element stands for (stored - zero) * scale. */
typedef struct ax_hlo_quantized {
  ax_dtype storage, expressed;
  int64_t least, greatest; /* that is stored */
  int64_t axis;            /* each index of this dimension has a scale of its own; -1: one for all */
  uint32_t count;          /* of scales */
  const double *scales;
  const int64_t *zeros;
} ax_hlo_quantized;

/* Equal types of one module are one object. */
typedef struct ax_hlo_value_type {
  ax_hlo_kind kind;
  bool element_known;   /* TENSOR, SCALAR: Axle has a dtype for the elements */
  bool ranked, dynamic; /* TENSOR: its rank is known; some extent is not known, or is bounded only */
  ax_dtype dtype;
  uint32_t rank, in_count, part_count;
  uint32_t size; /* of all parts together, and of theirs: how many there are, each as often as it stands there; at most UINT32_MAX */
  const int64_t *dims;
  const struct ax_hlo_value_type **parts;
  const ax_hlo_attribute *encoding; /* TENSOR; NULL: it has none */
  const int64_t *bounds; /* TENSOR: the most that extents which are not known may be, AX_HLO_DYNAMIC where there is none; NULL: no bounds */
  uint32_t bound_count;  /* the rank, which the verifier checks */
  const ax_hlo_quantized *quantized; /* TENSOR: `dtype` is that of what is stored; NULL: it is not quantized */
  ax_hlo_slice text;
} ax_hlo_value_type;

/* --- Attributes --- */
typedef enum ax_hlo_attribute_kind {
  AX_HLO_UNIT,       /* there, and that is all */
  AX_HLO_BOOL,       /* integer: 0 or 1 */
  AX_HLO_INTEGER,    /* integer, type */
  AX_HLO_FLOAT,      /* text: the decimal or the bits as written, type */
  AX_HLO_STRING,     /* text, without quotes and escapes */
  AX_HLO_COMPLEX,    /* #complex.number<:f32 1.0, 2.0>: type, and two floats as items */
  AX_HLO_SYMBOL,     /* text, without its @; of a nested one the last name, and those before it as items */
  AX_HLO_WORD,       /* text: one word; of an enumeration one item, whose name is the dialect's and whose text says which it is */
  AX_HLO_TYPE,       /* type */
  AX_HLO_ARRAY,      /* items */
  AX_HLO_DICTIONARY, /* items with names; text: what a dialect calls it, "stablehlo.gather", or empty */
  AX_HLO_NUMBERS,    /* array<i64: ..>, numbers; of floats their bits */
  AX_HLO_ELEMENTS,   /* dense<..>: type, and data or `splat` */
  AX_HLO_OPAQUE      /* text of an attribute of a dialect that is read by whoever needs it */
} ax_hlo_attribute_kind;

struct ax_hlo_attribute {
  ax_hlo_attribute_kind kind;
  ax_hlo_slice name; /* in a dictionary or an operation; empty elsewhere */
  ax_hlo_slice text;
  const ax_hlo_value_type *type; /* NULL: none was written */
  int64_t integer;
  const int64_t *numbers;
  const ax_hlo_attribute *items;
  uint32_t count;   /* of numbers or items */
  bool splat;       /* ELEMENTS: `data` has one element, which all are */
  const void *data; /* elements as Axle's arrays have them, row-major */
  struct ax_shared *owner; /* ELEMENTS: holds `data`, and is held by the module; NULL: the text or the module's arena has it */
};

/* --- Operations --- */
typedef struct ax_hlo_place { /* where an operation stands in the text that was read, and where that text says it came from */
  uint32_t line, column;
  ax_hlo_slice location; /* what stands in loc(..); empty: nothing */
} ax_hlo_place;

typedef struct ax_hlo_operation {
  ax_hlo_slice name; /* stablehlo.add */
  const uint32_t *operands;
  uint32_t operand_count, result_count, region_count, attribute_count;
  uint32_t result; /* the first one's number */
  bool opaque;     /* its regions are more than the single operations that they look like, since their values are quantized */
  const ax_hlo_region *regions;
  const ax_hlo_attribute *attributes; /* properties and others alike */
  ax_hlo_place place;
} ax_hlo_operation;

typedef struct ax_hlo_block {
  uint32_t argument, argument_count; /* the first one's number */
  uint32_t operation_count;
  const ax_hlo_operation **operations;
} ax_hlo_block;

struct ax_hlo_region {
  uint32_t block_count;
  const ax_hlo_block *blocks;
};

typedef struct ax_hlo_alias_entry {
  ax_hlo_slice name, text;
  const ax_hlo_attribute *attribute; /* what an attribute's alias was read as; NULL: it was not read */
} ax_hlo_alias_entry;

typedef struct ax_hlo_module {
  ax_arena arena;
  const char *source; /* what messages call the text; borrowed */
  ax_hlo_block body;  /* of the module; of the innermost one that holds functions */
  const ax_hlo_attribute *attributes;
  uint32_t attribute_count;
  const ax_hlo_value_type **values; /* types by number */
  const ax_hlo_operation **makers;  /* the operations whose results they are; NULL: arguments of blocks */
  uint32_t value_count;
  struct ax_hlo_alias_entry *aliases; /* #loc1 and what it stands for */
  uint32_t alias_count, alias_capacity;
  ax_table alias_table; /* of these, by name */
  struct ax_hlo_held *held; /* memory of large constants */
  struct ax_shared *lender; /* of the bytes that are read, which may forget what has been copied; borrowed. NULL: there is none */
} ax_hlo_module;

/* An attribute of functions that were read in the short form or from bytecode: strings, what the text calls the arguments, without
   their %. The `name` of each is what stands in the argument's loc(..), where JAX says what it calls the argument. */
#define AX_HLO_ARGUMENT_NAMES "argument_names"

void ax_hlo_module_deinit(ax_hlo_module *module);
/* Room for the elements of a constant, as long as the module, or longer if it is large: then *owner holds it, else *owner is NULL.
   Whoever wants it for longer retains *owner. NULL: out of memory. */
void *ax_hlo_room(ax_hlo_module *module, size_t bytes, struct ax_shared **owner);
/* Constants that lie in the bytes that the module was read from are this owner's. Borrowed: it must live as long as the module. */
void ax_hlo_own(ax_hlo_module *module, const char *bytes, size_t count, struct ax_shared *owner);

/* --- Questions --- */
static inline bool ax_hlo_slice_is(ax_hlo_slice slice, const char *word) {
  size_t i = 0;
  while (i < slice.length && word[i] != '\0' && slice.start[i] == word[i]) i++;
  return i == slice.length && word[i] == '\0';
}
static inline bool ax_hlo_is_return(ax_hlo_slice name) {
  return ax_hlo_slice_is(name, "stablehlo.return") || ax_hlo_slice_is(name, "func.return") || ax_hlo_slice_is(name, "sdy.return");
}
/* Below 0, 0 or above 0, as strcmp. */
int ax_hlo_slice_order(ax_hlo_slice a, ax_hlo_slice b);
static inline bool ax_hlo_slice_same(ax_hlo_slice a, ax_hlo_slice b) { return ax_hlo_slice_order(a, b) == 0; }
/* Adds an alias of a name that the module has not yet. */
AX_MUST_USE ax_status ax_hlo_add_alias(ax_hlo_module *module, ax_hlo_slice name, ax_hlo_slice text);
/* NULL: there is no alias of the name, which begins with its mark. Adding another one makes the entry invalid. */
ax_hlo_alias_entry *ax_hlo_find_alias(const ax_hlo_module *module, ax_hlo_slice name);
/* The attribute with the name; NULL: there is none. */
const ax_hlo_attribute *ax_hlo_find(const ax_hlo_operation *op, const char *name);
const ax_hlo_attribute *ax_hlo_item(const ax_hlo_attribute *dictionary, const char *name);
/* Whether the operation is a custom call of the target. */
bool ax_hlo_calls_target(const ax_hlo_operation *op, const char *target);
/* The elements of a value that is a constant, or a constant scalar that is broadcast to a scalar; NULL: it is none. */
const ax_hlo_attribute *ax_hlo_constant(const ax_hlo_module *module, uint32_t value);
/* Of branches that an index chooses, an operand that is a constant, the one that is chosen: one outside means the last. AX_NONE: the
   index is not known. */
uint32_t ax_hlo_chosen(const ax_hlo_module *module, const ax_hlo_operation *op);
/* The file and line that a location names; false: it names none. */
bool ax_hlo_place_line(const ax_hlo_module *module, const ax_hlo_place *place, ax_hlo_slice *file, int64_t *line);
/* What a location calls a value: params['w'] of "params['w']" or of an alias of that; empty: it says a place, or nothing. */
ax_hlo_slice ax_hlo_location_name(const ax_hlo_module *module, ax_hlo_slice location);
/* The operation's line: "train.py:31" if the text has a location for it, else the text's own name and line; of a module that was
   made, which has no lines, the name alone. */
void ax_hlo_place_text(const ax_hlo_module *module, const ax_hlo_place *place, char *out, size_t bytes);

/* The message with the operation's line and name in front of it; AX_OK and AX_OUT_OF_MEMORY stay as they are. Returns the status. */
AX_MUST_USE ax_status ax_hlo_blame(const ax_hlo_module *module, const ax_hlo_operation *op, ax_status status);

/* A number of an attribute, true, 5, 1.5e+00 or 0x7FC00000, as one element of its own type: i64 or f64 if none is written. Complex ones
   as well. False: it is none, or Axle has no such type or number. */
bool ax_hlo_number(const ax_hlo_attribute *attribute, ax_dtype *dtype, ax_element *out);

/* Attributes that must have a kind, and Axle's own form of them. AX_INVALID_ARGUMENT names the attribute: it is missing, or
   something else. */
AX_MUST_USE ax_status ax_hlo_integer(const ax_hlo_operation *op, const char *name, int64_t *out);
AX_MUST_USE ax_status ax_hlo_bool(const ax_hlo_operation *op, const char *name, bool *out);
/* The same of attributes that may be missing: they are `otherwise` then. */
AX_MUST_USE ax_status ax_hlo_integer_or(const ax_hlo_operation *op, const char *name, int64_t otherwise, int64_t *out);
AX_MUST_USE ax_status ax_hlo_bool_or(const ax_hlo_operation *op, const char *name, bool otherwise, bool *out);
/* A list of integers, in any of the ways that versions of StableHLO write one. */
AX_MUST_USE ax_status ax_hlo_integers(const ax_hlo_operation *op, const char *name, ax_dims *out);
AX_MUST_USE ax_status ax_hlo_item_integers(const ax_hlo_attribute *dictionary, const char *name, ax_dims *out); /* absent: none */
/* The same of an attribute that must have `count` entries; missing or without an entry: each is `otherwise`. */
AX_MUST_USE ax_status ax_hlo_integers_or(const ax_hlo_operation *op, const char *name, uint32_t count, int64_t otherwise,
                                         ax_dims *out);
/* The attribute padding: [[low, high], ..], `count` of them, as a list of lists or as dense<..>; missing or an empty list: zeros. */
AX_MUST_USE ax_status ax_hlo_read_padding(const ax_hlo_operation *op, uint32_t count, ax_dims *low, ax_dims *high);
/* The type as a program's value has it. AX_ABSENT: a dynamic one, a dtype or a rank that Axle has not. */
AX_MUST_USE ax_status ax_hlo_array_type(const ax_hlo_value_type *type, ax_type *out);
/* The same of a type that may leave extents open: these are AX_HLO_DYNAMIC. Of one without a rank all are, in AX_MAX_RANK dimensions.
   AX_ABSENT: also extents that are bounded only. */
AX_MUST_USE ax_status ax_hlo_open_type(const ax_hlo_value_type *type, ax_type *out);
bool ax_hlo_same_quantized(const ax_hlo_quantized *a, const ax_hlo_quantized *b); /* NULL is as NULL */
/* Whether a value of type `is` may stand where the module says `said`. */
bool ax_hlo_type_fits(const ax_hlo_value_type *said, const ax_type *is);

#endif
