/* Equations, and what stands in them: their parameters. The record of an equation's primitive is known here by its name alone
   (ir/prim.h has it); so are the arguments of its rules. */
#ifndef AX_IR_EQUATION_H
#define AX_IR_EQUATION_H

#include "axle/program.h"
#include "base/base.h"
#include "ir/callback.h"

typedef struct ax_prim ax_prim;

/* --- Parameters: plain structs, which the primitive's record describes field by field --- */

typedef struct ax_dims {
  uint32_t count;
  int64_t v[AX_MAX_RANK];
} ax_dims;
/* The groups in which members along some axes exchange, if not all exchange with all (axis_index_groups): each number from 0 to n
   once, group after group; inside a group in the order of the members' places in it. (ir/groups.c) */
typedef struct ax_groups {
  uint32_t count; /* 0: all members are one group */
  const uint32_t *end;    /* by group: where the next begins */
  const uint32_t *member; /* end[count - 1] of them */
} ax_groups;
typedef struct ax_axes { /* axis names, in order, and the groups along them; groups only for primitives with `ungroup` */
  uint32_t count;
  char name[AX_MAX_AXES][AX_MAX_NAME];
  ax_groups groups;
} ax_axes;
typedef struct ax_pairs { /* (source, target) */
  uint32_t count;
  int64_t (*v)[2];
} ax_pairs;
typedef struct ax_programs {
  uint32_t count;
  ax_program **v;
} ax_programs;
typedef struct ax_specs {
  uint32_t count;
  ax_spec *v;
} ax_specs;
typedef struct ax_types { /* types of arrays or memory, without their spreads */
  uint32_t count;
  ax_type *v;
} ax_types;
typedef struct ax_literal { /* a dense row-major array */
  ax_type type;
  void *data;
  struct ax_shared *owner; /* holds the data; an equation has a reference of its own. NULL: the data is its arena's */
} ax_literal;

/* --- Equations --- */

typedef struct ax_eqn {
  const ax_prim *prim;
  const void *params; /* as prim->params describes; NULL when there are none */
  const uint32_t *in; /* value ids */
  uint32_t in_count, out, out_count; /* results are the consecutive ids out .. out + out_count */
  uint32_t line;      /* in the text it was parsed from; 0 when traced */
  const char *
      location; /* of the C call that made it, or an equation it stems from, "prog.c:12"; NULL: not known. In the program's arena */
  uint32_t number;    /* 1 + its number in the program, as printed: scalar constants are not counted. While a program is compiled:
                         that of the equation it stems from, or 0 */
} ax_eqn;

/* Effects: actions of an equation besides computing its results, which passes that drop, merge or move equations must respect. An
   equation has the effects of its primitive and of the programs it holds (ax_eqn_effects). */
enum {
  AX_EFFECT_EXCHANGE = 1, /* exchanges data between devices: all members of a group must reach it. It may be dropped, or merged with
                             an equal one, as all devices of a program lose the same equations */
  AX_EFFECT_ORDER = 2,    /* stays in program order among all that have this effect */
  AX_EFFECT_STATE = 4,    /* reads or changes state that is no operand: never dropped, doubled, or merged with an equal one */
  AX_EFFECT_MESSAGE = 8,  /* single-sided: between two devices, each of which reaches only its own side */
  AX_EFFECT_BACKWARD = 16, /* cannot be run: only its transpose is known */
  AX_EFFECT_TANGENT = 32  /* of single equations: a message with a tangent, which has an odd link (collectives/psend.c) */
};

/* --- Arrays of the reference evaluation --- */

typedef struct ax_tensor { /* dense, row-major */
  ax_dtype dtype;
  uint32_t rank;
  int64_t dims[AX_MAX_RANK];
  void *data;
} ax_tensor;

/* --- What a primitive's rules are given: ir/prim.h, and the rooms that they are for --- */

typedef struct ax_infer_args ax_infer_args;
typedef struct ax_eval_args ax_eval_args;
typedef struct ax_differs_args ax_differs_args;
typedef struct ax_region_link_args ax_region_link_args;
typedef struct ax_jvp_args ax_jvp_args;
typedef struct ax_transpose_args ax_transpose_args;
typedef struct ax_batch_args ax_batch_args;
typedef struct ax_prune_args ax_prune_args;
typedef struct ax_simplify_args ax_simplify_args;
typedef struct ax_rewrite_args ax_rewrite_args;
typedef struct ax_ungroup_args ax_ungroup_args;
typedef struct ax_shard_args ax_shard_args;
typedef struct ax_block_args ax_block_args;
typedef struct ax_rename_args ax_rename_args;
typedef struct ax_lower ax_lower; /* plan/lower.h */
typedef struct ax_hlo ax_hlo;     /* hlo/hlo.h */
typedef struct ax_hlo_read_args ax_hlo_read_args; /* hlo/read.h */

#endif
