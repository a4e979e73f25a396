/* What operations have, as data: the attributes of StableHLO's operations in the order in which bytecode has them, what VHLO makes of
   each, and since which version. VHLO is the form of StableHLO that is kept stable over versions. Its operations are StableHLO's, with a
   number: gather_v1, gather_v2. They differ in this:

     attributes that StableHLO may leave out are all there, with what leaving them out stands for
     what StableHLO groups, #stablehlo.gather<..>, are attributes of the operation, one by one
     lists of integers and truth values are tensors, symbols are strings, units are truth values

   Both readers and the writer of bytecode go by these tables, and none of them knows an operation by name. */
#ifndef AX_HLO_DIALECT_H
#define AX_HLO_DIALECT_H

#include "hlo/module.h"

/* A version of VHLO; they are in order as numbers are. */
#define AX_HLO_VERSION(major, minor) ((uint32_t)(major) << 16 | (uint32_t)(minor))
#define AX_HLO_MAJOR(version) ((version) >> 16)
#define AX_HLO_MINOR(version) ((version) & 0xffff)
enum { AX_HLO_OLDEST = AX_HLO_VERSION(0, 9), AX_HLO_NEWEST = AX_HLO_VERSION(1, 20) };

typedef enum ax_hlo_slot_kind {
  AX_HLO_SLOT_ANY,       /* as it is: truth values, strings, types, dictionaries, arrays of these, constants */
  AX_HLO_SLOT_INTEGER,   /* of 64 bits */
  AX_HLO_SLOT_INTEGER32, /* of 32 bits */
  AX_HLO_SLOT_INTEGERS,  /* array<i64: ..>; a tensor in VHLO */
  AX_HLO_SLOT_TRUTHS,    /* array<i1: ..>; likewise */
  AX_HLO_SLOT_SEGMENTS,  /* array<i32: ..>: how many operands or results belong to each of several lists */
  AX_HLO_SLOT_PAIRS,     /* dense<[[..], ..]> : tensor<nx2xi64> */
  AX_HLO_SLOT_BOOL,
  AX_HLO_SLOT_UNIT, /* a truth value in VHLO */
  AX_HLO_SLOT_STRING,
  AX_HLO_SLOT_SYMBOL,  /* a string in VHLO */
  AX_HLO_SLOT_SYMBOLS, /* an array of these */
  AX_HLO_SLOT_TYPE,
  AX_HLO_SLOT_FLOAT, /* f32 */
  AX_HLO_SLOT_DICTIONARY,
  AX_HLO_SLOT_ARRAY,
  AX_HLO_SLOT_WORD,     /* one of `words` */
  AX_HLO_SLOT_WORDS,    /* an array of two of `words` */
  AX_HLO_SLOT_NUMBER,   /* an integer of 32 bits, and one of `words` in VHLO */
  AX_HLO_SLOT_ACCURACY, /* #stablehlo.result_accuracy<..> */
  AX_HLO_SLOT_GROUP     /* a dictionary of `group`; its entries one by one in VHLO */
} ax_hlo_slot_kind;

typedef struct ax_hlo_words { /* an enumeration */
  const char *name;           /* in messages, and before the word in texts: comparison_direction */
  const char *words[6];
  uint32_t count;
  uint32_t code, vhlo; /* of attributes in the bytecode of either dialect; 0: there is none */
} ax_hlo_words;

typedef struct ax_hlo_group ax_hlo_group;

typedef struct ax_hlo_slot {    /* an attribute of an operation, or an entry of a group */
  const char *name, *vhlo_name; /* NULL: the same */
  ax_hlo_slot_kind kind;
  bool optional;     /* StableHLO may leave it out; that stands for `otherwise` */
  int64_t otherwise; /* a number, a word's number, or what each entry of a list is */
  const char *like;  /* a list that is left out has as many entries as this other attribute; NULL: none */
  const ax_hlo_words *words;
  const ax_hlo_group *group;
  const char *before, *behind; /* what short forms leave out of the text of an attribute of sdy: "#sdy.sharding"; NULL: nothing */
  uint32_t first, last;        /* VHLO's numbers of the operation that have it; 0: from the first on, to the last */
} ax_hlo_slot;

struct ax_hlo_group {
  const char *name; /* of the dictionary: "stablehlo.gather" */
  uint32_t code;    /* of such attributes in StableHLO's bytecode, their entries in this order */
  const ax_hlo_slot *slots;
  uint32_t count;
};

enum { AX_HLO_MOST_FORMS = 2 };
typedef struct ax_hlo_listed { /* an operation that has attributes, or is not of VHLO's first version */
  const char *name;           /* without the dialect, which is StableHLO's unless it stands before it: func.func */
  const ax_hlo_slot *slots;
  uint32_t count;
  uint32_t since[AX_HLO_MOST_FORMS]; /* versions that the operation's first and second form came with; 0: the oldest */
  bool single;                       /* its first form has one operand and one result */
} ax_hlo_listed;

/* The operation with the name, as "stablehlo.gather" or "func.func". NULL: it is not listed. */
const ax_hlo_listed *ax_hlo_find_known(ax_hlo_slice name);
/* The operation's attributes in the order of their names, with those of groups one by one if it is of VHLO's form `form`, from 1 on; 0:
   it is StableHLO's. Returns how many there are, at most AX_HLO_MOST_SLOTS. */
enum { AX_HLO_MOST_SLOTS = 24 };
uint32_t ax_hlo_order_slots(const ax_hlo_listed *known, uint32_t form, const ax_hlo_slot *out[AX_HLO_MOST_SLOTS]);
static inline const char *ax_hlo_vhlo_name(const ax_hlo_slot *slot) {
  return slot->vhlo_name != NULL ? slot->vhlo_name : slot->name;
}

/* The table of enumerations and groups, by their codes in either dialect; NULL: there is none. */
const ax_hlo_words *ax_hlo_find_words(bool vhlo, uint64_t code);
const ax_hlo_group *ax_hlo_find_group(uint64_t code);
const ax_hlo_group *ax_hlo_find_named_group(ax_hlo_slice name); /* "stablehlo.gather" */
extern const ax_hlo_words ax_hlo_accuracy_modes; /* of result_accuracy */

/* Types of VHLO that have no parts, by their codes: MLIR's name for each, as "f32"; NULL: there is none. */
typedef struct ax_hlo_simple_type {
  const char *text;
  uint32_t since;
} ax_hlo_simple_type;
const ax_hlo_simple_type *ax_hlo_simple_type_of(uint64_t code);
/* The code of the type with the text; AX_NONE: there is none. */
uint32_t ax_hlo_simple_code(ax_hlo_slice text);

#endif
