/* Writing StableHLO modules as text, in MLIR's generic form: one function for every op. Knows no primitive.
   Failure to allocate is remembered in the text and reported at the end. */
#ifndef AX_HLO_HLO_H
#define AX_HLO_HLO_H

#include "ir/program.h"

/* A primitive that is one StableHLO op on the same operands: its record (ir/prim.h) names the op. The form serves both ways: it
   writes the op, and reads it, unless the primitive's file has a reader for the op (hlo/read.h). */
struct ax_hlo_form {
  const char *op;         /* "stablehlo.add" */
  const char *attributes; /* attributes that tell it from other forms of the op; NULL: none */
  /* The op's attributes that are parameters of the primitive: integers and lists of them. `attribute` NULL: the parameter is the
     shape or the dtype of the result, which the op says by its type. */
  struct ax_hlo_field {
    const char *attribute, *param;
  } fields[4]; /* up to the first without `param` */
};

struct ax_hlo {
  ax_text text;
  uint32_t next;   /* next SSA id: %0, %1, ... */
  uint32_t indent;
  ax_mesh axes;    /* the devices the module runs on: replica groups are made from it */
  uint32_t channel;
  uint32_t watched, watched_ops; /* ops begun at indentation `watched` are counted in watched_ops: `start` must write just one
                                    exchange; watched 0: none are counted */
  uint32_t messages; /* channel of all messages, since both sides must name the same one; 0: no message yet */
  const ax_program *program; /* whose equations are being written: operand types are program->types[eqn->in[i]] */
  /* Writes `program`'s equations here by their rules. The driver (bridge/) sets it; rules of regions call it. */
  ax_status (*inline_program)(ax_hlo *hlo, const ax_program *program, const uint32_t *in, uint32_t *out);
  /* Calls `program` here. It becomes a function of the module, once however often it is called. Set and called likewise. */
  ax_status (*call_program)(ax_hlo *hlo, const ax_program *program, const uint32_t *in, uint32_t *out);
};

/* Added to a value's id: the value is a future of StableHLO, which async_done must end. Only the rules of start and done see it. */
#define AX_HLO_FUTURE 0x80000000u

/* The type that StableHLO has for values of this one: of keys that of their words, u32[d.., 2]; of others itself. The rank of keys must
   be below AX_MAX_RANK. */
ax_type ax_hlo_physical(const ax_type *type);
/* tensor<4x8xf32>; !stablehlo.future<tensor<4x8xf32>> */
void ax_hlo_type(ax_text *text, const ax_type *type);

/* %r = "name"(%in...) {attributes} : (types) -> type. `attributes` is NULL or the text between the braces.
   `in_types` has `in_count` entries; results get consecutive ids, the first is returned. */
uint32_t ax_hlo_op(ax_hlo *hlo, const char *name, const uint32_t *in, const ax_type *in_types, uint32_t in_count,
                   const char *attributes, const ax_type *out_types, uint32_t out_count);
/* The same with regions: begin; then for each region region_begin (its arguments' ids are arg, arg+1, ...), ops,
   region_end; then end. */
uint32_t ax_hlo_begin(ax_hlo *hlo, const char *name, const uint32_t *in, uint32_t in_count, uint32_t out_count);
uint32_t ax_hlo_region_begin(ax_hlo *hlo, const ax_type *arg_types, uint32_t arg_count);
void ax_hlo_region_end(ax_hlo *hlo, const uint32_t *results, const ax_type *types, uint32_t count);
void ax_hlo_end(ax_hlo *hlo, const char *attributes, const ax_type *in_types, uint32_t in_count, const ax_type *out_types,
                uint32_t out_count);
/* Releases attributes that a rule wrote. AX_OUT_OF_MEMORY: there was too little memory for them, and the op lacks some. */
AX_MUST_USE ax_status ax_hlo_attributes_end(ax_text *attributes);
/* dense<v>: an array of `type` whose elements all equal *scalar, which has the array's dtype; the two words of a key are equal. */
uint32_t ax_hlo_splat(ax_hlo *hlo, const ax_type *type, const void *scalar);
/* A dense array. */
uint32_t ax_hlo_dense(ax_hlo *hlo, const ax_type *type, const void *data);
/* "array<i64: 1, 2>" */
void ax_hlo_i64_array(ax_text *text, const int64_t *v, uint32_t count);
/* "dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>": the groups of devices that differ only along the named axes. A group's devices are
   in the order of their index along these axes. Groups smaller than the largest are filled up with -1. */
void ax_hlo_replica_groups(ax_text *text, const ax_axes *names, const ax_mesh *axes);

/* Writes an equation of hlo->program by its primitive's rule, that for keys if it takes or gives some. in, out: SSA ids.
   AX_ABSENT: keys of the greatest rank; and what the rule has no form for. */
AX_MUST_USE ax_status ax_hlo_eqn(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);

#endif
