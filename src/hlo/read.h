/* Reading one operation of a module as equations of the trace in progress. A primitive's file has a reader for each StableHLO op
   that it stands for, in its record's slot `reads` (ir/prim.h); simple ones are read by their form (hlo/hlo.h). Functions that
   are no primitives have their readers in tables of their own (bridge/readers.c). */
#ifndef AX_HLO_READ_H
#define AX_HLO_READ_H

#include "hlo/module.h"
#include "ir/prim.h"

typedef struct ax_hlo_import ax_hlo_import; /* the reading of a whole module (bridge/stablehlo_read.c) */
typedef struct ax_hlo_devices ax_hlo_devices; /* what it says of devices (prim/hlo_groups.h) */

struct ax_hlo_read_args {
  const ax_prim *prim; /* whose reader this is; NULL: of no primitive */
  const ax_hlo_operation *op;
  const ax_value *in;
  ax_value *out;            /* to fill; their types are checked against those that the module says */
  const ax_type *out_types; /* what the module says; an extent that it leaves open is AX_HLO_DYNAMIC */
  ax_hlo_import *import;
  ax_hlo_devices *devices;
};

struct ax_hlo_reader {
  const char *op; /* "stablehlo.compare"; NULL ends a list */
  /* Binds equations, or fails the trace; attributes that are missing are its status. */
  ax_status (*read)(const ax_hlo_read_args *args);
};

/* The elements of an operand that is a constant; NULL: it is none. */
const ax_hlo_attribute *ax_hlo_constant_operand(const ax_hlo_read_args *args, uint32_t operand);
/* The operation whose result a value of the module is; NULL: it is an argument of a block. */
const ax_hlo_operation *ax_hlo_maker_of(const ax_hlo_read_args *args, uint32_t value);
/* Whether a value of the module is an array of truth values. */
bool ax_hlo_is_truth(const ax_hlo_read_args *args, uint32_t value);
/* The number of the branch that an index chooses, the first operand, if it is known; else AX_NONE. */
uint32_t ax_hlo_chosen_branch(const ax_hlo_read_args *args);

/* Integers that are known while the module is read, where shapes depend on some. NULL: they are not. */
const ax_literal *ax_hlo_known(const ax_hlo_read_args *args, uint32_t operand);
/* Its elements. AX_INVALID_ARGUMENT: it is not known, has more than `most`, or is of rank 3 or more. */
AX_MUST_USE ax_status ax_hlo_known_integers(const ax_hlo_read_args *args, uint32_t operand, uint32_t most, int64_t *out,
                                            uint32_t *count);
AX_MUST_USE ax_status ax_hlo_known_dims(const ax_hlo_read_args *args, uint32_t operand, ax_dims *out);
/* Says the elements of a result, which the reader has computed. */
AX_MUST_USE ax_status ax_hlo_know(const ax_hlo_read_args *args, uint32_t result, const ax_type *type, const void *data);
/* AX_INVALID_ARGUMENT: the module leaves the result's shape open. */
AX_MUST_USE ax_status ax_hlo_want_shape(const ax_hlo_read_args *args, uint32_t result);

/* A region of the operation as a function to trace: it runs the region's operations on its operands. Valid until the reader
   returns. */
typedef struct ax_hlo_body {
  ax_hlo_import *import;
  const ax_hlo_region *region;
  bool *in_progress; /* of the function that is the body, which must not call itself; NULL: it is a region of the operation */
} ax_hlo_body;
/* AX_INVALID_ARGUMENT: the operation has no such region of one block, or the region gives other than `out_count` values. */
AX_MUST_USE ax_status ax_hlo_body_of(const ax_hlo_read_args *args, uint32_t region, uint32_t out_count, ax_hlo_body *body,
                                     ax_fn *out);
/* The same of a function of the module, in the place of a region. AX_INVALID_ARGUMENT: also no such function, or one that is being
   read. */
AX_MUST_USE ax_status ax_hlo_function_body(const ax_hlo_read_args *args, ax_hlo_slice function, uint32_t out_count, ax_hlo_body *body,
                                           ax_fn *out);
/* Reads the operation as if it had this name, on other operands. AX_ABSENT: no operation of the name is read. */
AX_MUST_USE ax_status ax_hlo_read_as(const ax_hlo_read_args *args, const char *name, const ax_value *in);
/* The operation of a function of the module; NULL: it has none of the name. */
const ax_hlo_operation *ax_hlo_function(const ax_hlo_read_args *args, ax_hlo_slice name);
/* Calls a function of the module. */
AX_MUST_USE ax_status ax_hlo_call(const ax_hlo_read_args *args, ax_hlo_slice function);

/* The operations of a region that is one operation on its two arguments, in any order, and a return: that operation's name, as
   "stablehlo.add". Empty: it is something else. */
ax_hlo_slice ax_hlo_body_operation(const ax_hlo_operation *op, uint32_t region);

#endif
