/* The reading of a module: the state that the files of the driver share.

     stablehlo_read.c   operations, regions, functions, the module
     known.c            integers that are known while the module is read, from which shapes come
     quantized.c        operations on quantized values
     promotion.c        reductions whose body has wider elements
     inspected.c        values whose layouts the caller asks for
     naming.c           what the module calls inputs and results
     binding.c          the types of the entry function's arguments, where the module leaves extents open

   A trace has no shape that is not known. So a type with `?` is only compared with what comes, and a function whose arguments have
   such types is read once for each list of types, and of known integers, that it is called with: a variant. */
#ifndef AX_BRIDGE_IMPORT_H
#define AX_BRIDGE_IMPORT_H

#include "bridge/devices.h"
#include "bridge/stablehlo_read.h"
#include "hlo/read.h"

typedef struct ax_reader_entry { /* of the table of readers, by the op's name */
  const char *op;
  const ax_prim *prim;
  ax_status (*read)(const ax_hlo_read_args *args);
  uint32_t shape_operands; /* ax_hlo_shape_operands */
} ax_reader_entry;

typedef struct ax_function_entry {
  ax_hlo_slice name;
  const ax_hlo_operation *op;
  bool in_progress;
} ax_function_entry;

enum { AX_HLO_MOST_INSPECTED = 10000 }; /* more are passed over */

typedef struct ax_variant { /* a function as it is called with these types and known integers */
  const ax_hlo_operation *op;
  uint64_t hash;
  ax_mesh axes; /* of the trace that it is called in: a function may be called in several manual computations */
  uint32_t in_count;
  const ax_type *types;
  const ax_literal *const *known;  /* by argument; NULL: that one is not known */
  const ax_literal **out_known;    /* by result, likewise */
  ax_program *program;
  bool is_threefry; /* bridge/threefry_trial.h */
} ax_variant;

struct ax_hlo_import {
  const ax_hlo_module *module;
  ax_arena arena;           /* known integers, variants, meshes */
  ax_hlo_devices devices;
  ax_custom_calls *custom_calls; /* borrowed; NULL: none */
  struct ax_hlo_probes *probes;  /* what the program's callbacks share (probes.c); NULL: none yet */
  bool alone; /* an operation is computed while the module is read, which runs no code of others */
  ax_value *values;         /* by number */
  const ax_literal **known; /* by number; NULL: the values are not looked at, since no shape depends on them */
  ax_reader_entry *readers;
  uint32_t reader_count, reader_size;
  ax_function_entry *functions; /* a hash table */
  uint32_t function_size;
  ax_variant **variants; /* likewise */
  uint32_t variant_count, variant_size;
  const bool *by_device; /* as ax_hlo_binding has it */
  ax_having *in_having, *out_having; /* of the entry function's arguments and results, where parts are wanted; else NULL */
  ax_inspections *inspections; /* values whose layouts the caller asks for; NULL: of none */
  bool *opened; /* by value, where parts are wanted: the first result of a call that is read in its place (bridge/parts.h) */
  uint64_t read_count, most_read; /* operations, each time that one is read */
};

typedef struct ax_hlo_frame { /* what one operation needs besides itself */
  ax_value *in, *out;
  ax_type *types;
} ax_hlo_frame;

/* --- stablehlo_read.c --- */
/* NULL: there is none of the name. */
const ax_hlo_operation *ax_hlo_function_of(const ax_hlo_import *import, ax_hlo_slice name);
/* Where the table has the op's reader, or would have it. */
ax_reader_entry *ax_reader_slot(const ax_hlo_import *import, const char *name, size_t length);

/* --- promotion.c --- */
/* Converts operands of a reduction to the elements that its body computes with. */
void ax_hlo_promote(const ax_hlo_import *import, const ax_hlo_operation *op, ax_value *in);

/* --- inspected.c --- */
AX_MUST_USE ax_status ax_inspected_read(const ax_hlo_read_args *args);

/* --- probes.c --- */
typedef struct ax_hlo_probes ax_hlo_probes;
void ax_hlo_probes_release(ax_hlo_probes *probes); /* NULL: nothing is done */

/* --- known.c --- */
/* Whether the module has shapes that depend on integers; if so they are looked at from now on. */
AX_MUST_USE ax_status ax_known_begin(ax_hlo_import *import);
/* The value in the trace in progress: what is known is a constant, and so is a number from a trace around this one. */
ax_value ax_known_value(const ax_hlo_import *import, uint32_t value);
/* Computes the operation's results if its operands are known and it is none that holds programs. *done: they are known. */
AX_MUST_USE ax_status ax_known_fold(ax_hlo_import *import, const ax_hlo_operation *op, const ax_reader_entry *entry,
                                    const ax_hlo_frame *frame, bool *done);
/* A copy in the import's arena; NULL: no memory. */
const ax_literal *ax_known_copy(ax_hlo_import *import, const ax_type *type, const void *data);
bool ax_known_same(const ax_literal *a, const ax_literal *b); /* NULL is as NULL */
uint64_t ax_known_hash(uint64_t seed, const ax_literal *literal);

/* --- binding.c --- */
/* The types of the arguments of the entry function; and arguments that are numbers which the binding gives, in the import's arena.
   AX_INVALID_ARGUMENT: an extent that nothing says, two that do not agree, a name that is none. */
AX_MUST_USE ax_status ax_bind_arguments(ax_hlo_import *import, const ax_hlo_operation *function, const ax_hlo_binding *binding,
                                        ax_type *types, const ax_literal **known);

/* --- naming.c --- */
/* What the module calls the inputs and results of the entry function's program, as ax_program_from_stablehlo_named says. */
AX_MUST_USE ax_status ax_keep_names(const ax_hlo_import *import, const ax_variant *main, ax_program_names *names);

#endif
