/* Making StableHLO modules from programs: operations are added one by one to a module in memory (hlo/module.h), which is printed
   or written as bytecode afterwards. One function for every operation. Knows no primitive.
   Failure to allocate is remembered and reported at the end. */
#ifndef AX_HLO_HLO_H
#define AX_HLO_HLO_H

#include "hlo/module.h"
#include "ir/program.h"
#include "ir/scalar.h"

/* What a primitive and a StableHLO op have in common, said once for both directions: export writes the op by it, import reads the op by
   it (prim/hlo_form.c). What kind an attribute is, and what it stands for where it is left out, the tables of operations say
   (hlo/dialect.c). Where one direction needs more than the form, a rule or a reader in the primitive's file adds it. */
typedef struct ax_hlo_field { /* an attribute that is a parameter of the primitive */
  /* "dimension"; an entry of a group, "dimension_numbers.offset_dims"; a column of pairs, "padding.low" and then "padding.high". NULL:
     the parameter is the shape or the dtype of the result, which the op says by its type. */
  const char *attribute;
  const char *param; /* "dimension"; of a list one entry or those from the third on: "lhs_spec[0]", "lhs_spec[1]", "lhs_spec[2..]" */
} ax_hlo_field;
struct ax_hlo_form {
  const char *op;             /* "stablehlo.add" */
  const ax_hlo_field *fields; /* up to one without `param`; NULL: there are none */
  const char *word_of, *word; /* an attribute and its word, which tell the form from others of the op; NULL: none */
  bool precise;               /* the op may say how precise its products are */
  ax_scalar reducer;          /* what the op's region makes of two scalars; AX_SCALAR_NONE: it has no such region */
};
#define AX_HLO_FIELDS(...) ((const ax_hlo_field[]){__VA_ARGS__, {0}})

typedef struct ax_hlo_attributes ax_hlo_attributes;
typedef struct ax_hlo_open ax_hlo_open; /* an operation whose regions are being made (hlo.c) */
struct ax_hlo_scan;                     /* the table of types (hlo/reader.h) */

struct ax_hlo {
  ax_hlo_module module; /* what is made; by ax_hlo_finish all of it */
  struct ax_hlo_scan *scan;
  const ax_hlo_operation **added; /* operations of the blocks in progress, those of outer ones first */
  ax_hlo_block *blocks;           /* of the operations in progress, those that are whole */
  ax_hlo_open *open;              /* the operations in progress, outer ones first */
  uint32_t added_count, added_capacity, block_count, block_capacity, open_count, open_capacity;
  const ax_program **held; /* programs that the module's constants are in */
  uint32_t held_count, held_capacity;
  ax_text scratch;
  bool failed; /* there was too little memory: something is missing */
  ax_mesh axes; /* the devices the module runs on: replica groups are made from it */
  bool whole;   /* the module is of a whole program, which another partitioner lays out over `axes` (mesh/shardy.h) */
  bool by_hand; /* then: what is written is in a shard_map */
  bool at_once; /* exchanges that a program begins early are whole where they begin */
  const char *precision; /* of products of f32, "HIGHEST"; NULL: the module says nothing */
  uint32_t channel;
  uint32_t messages; /* channel of all messages, since both sides must name the same one; 0: no message yet */
  ax_hlo_place place; /* of the operations that are added: the line that their equation comes from */
  const char *located;     /* the equation's location that was spelled last, .. */
  ax_hlo_slice place_text; /* .. and its spelling */
  const ax_program *program; /* whose equations are being written: operand types are program->types[eqn->in[i]] */
  /* Writes `program`'s equations here by their rules. The driver (bridge/) sets it; rules of regions call it. */
  ax_status (*inline_program)(ax_hlo *hlo, const ax_program *program, const uint32_t *in, uint32_t *out);
  /* Calls `program` here. It becomes a function of the module, once however often it is called. Set and called likewise. */
  ax_status (*call_program)(ax_hlo *hlo, const ax_program *program, const uint32_t *in, uint32_t *out);
};

AX_MUST_USE ax_status ax_hlo_init(ax_hlo *hlo); /* the rest of *hlo is zero, or set already */
void ax_hlo_deinit(ax_hlo *hlo);
/* Ends the module: what was added outside of all regions is its body. AX_OUT_OF_MEMORY: something is missing. */
AX_MUST_USE ax_status ax_hlo_finish(ax_hlo *hlo, const ax_hlo_attributes *attributes);
/* Keeps a reference to the program until the end, since constants of the module lie in it. */
AX_MUST_USE ax_status ax_hlo_hold(ax_hlo *hlo, const ax_program *program);

/* --- Attributes: a list that is filled, and given to an operation. Names and words are borrowed until the module's end, all else is
   copied. Zero-initialise but for `hlo`; a list that was given may only grow. --- */
struct ax_hlo_attributes {
  ax_hlo *hlo;
  ax_hlo_attribute *items; /* in the module's arena */
  uint32_t count, capacity;
};

void ax_hlo_add(ax_hlo_attributes *to, const char *name, ax_hlo_attribute attribute);
void ax_hlo_add_unit(ax_hlo_attributes *to, const char *name);
void ax_hlo_add_bool(ax_hlo_attributes *to, const char *name, bool value);
void ax_hlo_add_integer(ax_hlo_attributes *to, const char *name, int64_t value);
void ax_hlo_add_short(ax_hlo_attributes *to, const char *name, int64_t value, const char *type); /* of type "i32", "ui8" */
void ax_hlo_add_string(ax_hlo_attributes *to, const char *name, const char *value); /* copied */
void ax_hlo_add_symbol(ax_hlo_attributes *to, const char *name, const char *value); /* copied */
void ax_hlo_add_word(ax_hlo_attributes *to, const char *name, const char *word); /* of an enumeration */
void ax_hlo_add_integers(ax_hlo_attributes *to, const char *name, const int64_t *v, uint32_t count);
void ax_hlo_add_dims(ax_hlo_attributes *to, const char *name, const ax_dims *dims);
/* dense<[[..], ..]> : tensor<rowsxcolumnsxi64>; *to_fill: room for the numbers, row by row; NULL: there is no memory for it. */
void ax_hlo_add_matrix(ax_hlo_attributes *to, const char *name, int64_t rows, int64_t columns, int64_t **to_fill);
/* Rows of two, [[low, high], ..]. */
void ax_hlo_add_pairs(ax_hlo_attributes *to, const char *name, const ax_dims *low, const ax_dims *high);
/* #kind<..>, as "stablehlo.gather"; {..} if kind is empty. */
void ax_hlo_add_group(ax_hlo_attributes *to, const char *name, const char *kind, const ax_hlo_attributes *entries);
/* Adds an integer to a group that is in the list. */
void ax_hlo_add_entry(ax_hlo_attributes *to, const char *group, const char *name, int64_t value);
/* Adds what the text says: "name = value, ..". AX_PARSE_ERROR. */
AX_MUST_USE ax_status ax_hlo_add_spelled(ax_hlo_attributes *to, const char *text);
/* [{..}, ..]: a dictionary of each list. */
void ax_hlo_add_each(ax_hlo_attributes *to, const char *name, const ax_hlo_attributes *each, uint32_t count);
/* [dense<[1, 0]> : tensor<2xindex>, ..]: layouts, minor dimension first. */
void ax_hlo_add_layouts(ax_hlo_attributes *to, const char *name, const ax_dims *layouts, uint32_t count);

/* Added to a value's id: the value is a future of StableHLO, which async_done must end. Only the rules of start and done see it. */
#define AX_HLO_FUTURE 0x80000000u

/* The type that StableHLO has for values of this one: of keys that of their words, u32[d.., 2]; of others itself. The rank of keys must
   be below AX_MAX_RANK. */
ax_type ax_hlo_physical(const ax_type *type);
/* tensor<4x8xf32>; !stablehlo.future<tensor<4x8xf32>> */
void ax_hlo_type(ax_text *text, const ax_type *type);

/* The module's own type for it. NULL: there is no memory. */
const ax_hlo_value_type *ax_hlo_value_type_of(ax_hlo *hlo, const ax_type *type);
const ax_hlo_value_type *ax_hlo_function_type(ax_hlo *hlo, const ax_type *in, uint32_t in_count, const ax_type *out,
                                              uint32_t out_count); /* (in) -> (out) */

/* Adds %r = "name"(%in...) {attributes} : (types) -> type. `attributes` may be NULL. Operands have the types of the values that
   they are; results get consecutive ids, the first is returned. `name` is borrowed until the module's end. */
uint32_t ax_hlo_op(ax_hlo *hlo, const char *name, const uint32_t *in, uint32_t in_count, const ax_hlo_attributes *attributes,
                   const ax_type *out_types, uint32_t out_count);
/* The same with regions: begin; then for each region region_begin (its arguments' ids are arg, arg+1, ...), ops,
   region_end; then end. */
uint32_t ax_hlo_begin(ax_hlo *hlo, const char *name, const uint32_t *in, uint32_t in_count, const ax_type *out_types,
                      uint32_t out_count);
uint32_t ax_hlo_region_begin(ax_hlo *hlo, const ax_type *arg_types, uint32_t arg_count);
void ax_hlo_region_end(ax_hlo *hlo, const uint32_t *results, uint32_t count); /* adds stablehlo.return of these */
void ax_hlo_region_close(ax_hlo *hlo);                                        /* without an operation that returns */
void ax_hlo_end(ax_hlo *hlo, const ax_hlo_attributes *attributes);
/* How many operations the region in progress has. */
uint32_t ax_hlo_region_count(const ax_hlo *hlo);
/* Takes the last operation back, which has ended. */
void ax_hlo_drop(ax_hlo *hlo);
/* dense<v>: an array of `type` whose elements all equal *scalar, which has the array's dtype; the two words of a key are equal. */
uint32_t ax_hlo_splat(ax_hlo *hlo, const ax_type *type, const void *scalar);
/* A dense array. `data` is copied; borrowed until the module's end. */
uint32_t ax_hlo_dense(ax_hlo *hlo, const ax_type *type, const void *data);
uint32_t ax_hlo_dense_borrowed(ax_hlo *hlo, const ax_type *type, const void *data);
/* replica_groups, as dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>: the groups of devices that differ only along the named axes. A group's devices are
   in the order of their index along these axes. Groups smaller than the largest are filled up with -1. */
void ax_hlo_add_replica_groups(ax_hlo_attributes *to, const ax_axes *names, const ax_mesh *axes);

/* Writes an equation of hlo->program by its primitive's rule, that for keys if it takes or gives some. in, out: SSA ids.
   AX_ABSENT: keys of the greatest rank; and what the rule has no form for. */
AX_MUST_USE ax_status ax_hlo_eqn(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);

#endif
