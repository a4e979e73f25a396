/* The primitive record: everything Axle knows about one operation. Rules take one struct of arguments each, so that a rule
   can be given more without touching the others. The interfaces that rules call stand in the rooms above `prim`.

   A file that makes a record, asks one, or is one of its rules includes this header. Who only hands equations on includes
   ir/program.h, so that a new field of the record leaves it alone. */
#ifndef AX_IR_PRIM_H
#define AX_IR_PRIM_H

#include "ir/equation.h"
#include "ir/scalar.h"

/* --- Parameters are described field by field, so that printing, parsing, copying, hashing and comparing are written once. --- */
typedef enum ax_param_kind {
  AX_PARAM_I64,      /* int64_t */
  AX_PARAM_BOOL,     /* bool */
  AX_PARAM_DTYPE,    /* ax_dtype */
  AX_PARAM_DIMS,     /* ax_dims */
  AX_PARAM_AXES,     /* ax_axes */
  AX_PARAM_PAIRS,    /* ax_pairs */
  AX_PARAM_PROGRAM,  /* ax_program *, retained by the program that holds it */
  AX_PARAM_SCALARS,  /* ax_program *, likewise, without axes: a function of scalars that an operation applies to elements
                        (prim/scalars.h). No walk over programs enters it */
  AX_PARAM_PROGRAMS, /* ax_programs, likewise */
  AX_PARAM_LITERAL,  /* ax_literal */
  AX_PARAM_MESH,     /* ax_mesh */
  AX_PARAM_SPECS,    /* ax_specs; axis numbers refer to the same record's AX_PARAM_MESH */
  AX_PARAM_KIND,     /* ax_unreduced_kind */
  AX_PARAM_ACCURACY, /* int64_t; texts leave the default out */
  AX_PARAM_NAMES,    /* ax_axes without groups: words that name no axes */
  AX_PARAM_TEXT,     /* const char *, any bytes */
  AX_PARAM_TYPES,    /* ax_types */
  AX_PARAM_CALLBACK  /* ax_callback *, retained by the program that holds it */
} ax_param_kind;

typedef struct ax_param {
  const char *name;
  ax_param_kind kind;
  size_t offset;
} ax_param;

/* --- infer: types of the operands -> types of the results (form, dtype, shape). Then spread: how the operands spread over the
   mesh -> how the results do (out[k].spread); for a region, whose bodies say it, infer has filled that in. --- */
typedef struct ax_infer_args {
  const ax_prim *prim;
  const ax_mesh *axes; /* the axis environment */
  const void *params;
  const ax_type *in;
  uint32_t in_count, out_count;
  ax_type *out; /* out_count entries, zeroed */
} ax_infer_args;

/* --- eval: reference semantics over arrays. LOCAL: one lane. COLLECTIVE: all members of one group, in the order of the axes it
   names; with state, all devices that got here together, in their order. REGION: any set of devices that got here together. --- */
typedef struct ax_eval_args {
  const ax_eqn *eqn;
  const ax_mesh *axes;
  uint32_t lanes;
  const int64_t *device;       /* a lane's device id, row-major over `axes` */
  ax_tensor *const *in;        /* in[operand * lanes + lane] */
  ax_tensor **out;             /* out[result * lanes + lane]; LOCAL, COLLECTIVE: allocated, cleared; REGION: the rule makes them */
  struct ax_evaluator *driver; /* for REGION: xform/evaluate.h */
  const ax_hooks *hooks;       /* NULL: there is no host */
  ax_callback *callback;       /* that a parameter names, when it was looked up before; NULL */
  const struct ax_run_options *run; /* what the run was given for its callbacks; NULL: nothing */
  ax_axis_set each; /* of a COLLECTIVE with state: devices that differ along other axes alone have one effect and result */
} ax_eval_args;

/* --- differs: the axes along which a result may differ between devices, from those of the operands. The sets follow the
   computation, not the declared types: a value that is equal on several devices is computed once. A region's rule carries any sets
   through its programs, and is asked other questions too (ir/flow.h); bits that are no axes come through as they are. --- */
typedef struct ax_differs_args {
  const ax_program *program; /* the equation's program; NULL for a REGION that is asked about alone */
  const ax_eqn *eqn;
  const ax_axis_set *in;
  ax_axis_set *out;
  struct ax_flow *flow;
} ax_differs_args;

/* --- links: what each input and each output of the programs is that a REGION holds. It says once, for all who walk programs, how
   operands become inputs, what goes round in loops, and how outputs become results. --- */
typedef enum ax_region_link_how {
  AX_LINK_OWN,  /* an input that is made for the program: scratch, a cotangent. An output that the equation itself uses: a
     condition */
  AX_LINK_SAME, /* the operand or the result as it is */
  AX_LINK_SLICE, /* one index of the operand's or the result's first dimension, another one in each run */
  AX_LINK_BLOCK  /* a device's block of it, as parameters of the equation say */
} ax_region_link_how;
typedef struct ax_region_link {
  ax_region_link_how how;
  uint32_t number; /* of the operand that an input comes from, or of the result that an output becomes; OWN: AX_NONE */
  /* For a loop's carry that starts as operand `number`: for an input, the number of the equation's result that it ends as; for an
     output, the number of the program's input that takes it in the next run. AX_NONE: no carry. A program without results only
     reads carries, which another program gives. */
  uint32_t carry;
  bool once;       /* of an input: what the program computes from such inputs alone may be computed before, for all its runs */
} ax_region_link;
typedef struct ax_region_link_args {
  const ax_eqn *eqn; /* with parameters that infer has found right; its operands may not be known */
  uint32_t program;  /* as ax_eqn_program counts */
  bool is_output;
  uint32_t number;   /* of the program's input or output */
} ax_region_link_args;

/* --- jvp and linearize: fill out and tangent_out. A tangent may be the symbolic zero (ax_is_zero). Rules for linearize add
   only equations that either do not depend on tangents or are linear in them. --- */
typedef struct ax_jvp_args {
  const ax_eqn *eqn;
  const ax_value *in, *tangent_in;
  ax_value *out, *tangent_out;
} ax_jvp_args;

/* --- transpose: cotangents of the results -> cotangents of the linear operands. --- */
typedef struct ax_transpose_args {
  const ax_eqn *eqn;
  const ax_type *in_types;
  const bool *linear;    /* operands whose cotangent is wanted */
  const ax_value *in;    /* the others' values */
  const ax_value *cotangent; /* of each result; may be the symbolic zero */
  ax_value *out;         /* of each linear operand; starts as the symbolic zero */
  ax_value sum; /* what later equations have given the first operand, if many take small parts of it; else the symbolic zero. A
                   rule that takes a part may add its cotangent to that part of the sum, instead of making an array of zeros */
  bool *summed; /* set by a rule that has done so: out[0] is the sum */
} ax_transpose_args;

/* --- batch: operands with a batch dimension (or -1) -> results with theirs. --- */
typedef struct ax_batch_args {
  const ax_eqn *eqn;
  const ax_value *in;
  const int *in_dim;
  int64_t size;
  const char *axis; /* the name of the axis being batched; NULL when it has none */
  ax_value *out;
  int *out_dim; /* starts as 0 */
} ax_batch_args;

/* --- prune: an equation without unused results. First only the question: the operands, and the further results, that it needs. Then
   the equation that is left. --- */
typedef struct ax_prune_args {
  const ax_eqn *eqn;
  bool *out;    /* the results that are needed; the rule adds the results (carries) that these need */
  bool *in;     /* filled in: the operands that are needed */
  void *params; /* NULL: only the question. Otherwise filled in: the parameters of the equation that is left; the caller owns the
                   programs in them */
  struct ax_memo *memo;
} ax_prune_args;

typedef enum ax_prim_kind {
  AX_LOCAL,      /* each device for itself; binding makes operands spread alike by casts (ax_spread_local; not if AX_LINEAR_EACH) */
  AX_COLLECTIVE, /* between the devices of the axes in its parameter "axes" */
  AX_REGION      /* holds programs: cond, scan, while, shard_map, closed_call, checkpoint, start */
} ax_prim_kind;

/* An operation's linearity decides which of its operands may be unreduced. Devices then apply it to the parts they hold. That is
   right if combining the parts' results gives the result of the combined operands, as for linear operations on parts of sums. */
typedef enum ax_linearity {
  AX_LINEAR_NOT,       /* none may be */
  AX_LINEAR_ALL,       /* all together: add, concatenate */
  AX_LINEAR_ONE,       /* one of them, the others being reduced: mul, dot_general */
  AX_LINEAR_FIRST,     /* the first, the others being reduced: div, dynamic_slice */
  AX_LINEAR_FIRST_TWO, /* the first two together, likewise: dynamic_update_slice */
  AX_LINEAR_OUTER,     /* the first and the third together, the second being reduced: scatter_add */
  AX_LINEAR_REST,      /* all but the first together, which is reduced: select_n */
  AX_LINEAR_LAST,      /* the last, the others being reduced: ormqr */
  AX_LINEAR_SOME,      /* any of them, the others being reduced: max, which takes one value twice as well as once */
  AX_LINEAR_EACH       /* any of them: results spread as the operands at their places, which binding leaves as they are
                          (ax_spread_each): optimization_barrier */
} ax_linearity;
/* The kinds that such operands may be unreduced by: bits 1 << ax_unreduced_kind. */
enum {
  AX_KINDS_SUM = 1,
  AX_KINDS_MAX = 2,
  AX_KINDS_MIN = 4,
  AX_KINDS_ALL = 7,       /* operations that only move elements */
  AX_KINDS_FLOAT_SUM = 8  /* sums, but of floats alone */
};

/* The bytes that a device receives when the n members of a group run a collective on operands of B bytes, by the method with the
   fewest bytes. */
typedef enum ax_traffic {
  AX_TRAFFIC_NONE,
  AX_TRAFFIC_COMBINED, /* each receives the combination of all operands: 2(n-1)/n B; parts are combined and then gathered */
  AX_TRAFFIC_PARTS,    /* each receives a part of every other member's operand: (n-1)/n B */
  AX_TRAFFIC_GATHERED, /* each receives every other member's operand: (n-1) B */
  AX_TRAFFIC_OPERAND,  /* each receives one other member's operand: B */
  AX_TRAFFIC_RESULT    /* each receives a message: the bytes of the result */
} ax_traffic;

/* How often one run of an equation runs the programs it holds. */
typedef enum ax_runs {
  AX_RUNS_EACH,   /* each of them once */
  AX_RUNS_FIRST,  /* the first once; the others define derivatives */
  AX_RUNS_ONE,    /* one of them */
  AX_RUNS_LENGTH, /* as often as its parameter "length" */
  AX_RUNS_UNTIL,  /* until one of them ends the loop */
  AX_RUNS_POINTS  /* for each point of its parameter "grid", on each core; parameters "flops" and "bytes" say what that comes to,
                     unless 0 */
} ax_runs;

/* --- simplify: values that an equation's results are, bit for bit, without computing them; or the same equation on operands made
   earlier. Its own operands, and those of the equations that made them, are simplified already. --- */
typedef struct ax_simplify_args {
  ax_eqn *eqn;                  /* `in` and `params` may be replaced, by what lives in `arena` */
  const ax_type *types;         /* by value id */
  const ax_eqn *const *made_by; /* by value id; NULL: an input */
  uint32_t *same;               /* of each result: the id of a value of its type that it equals; starts as AX_NONE */
  ax_arena *arena;
  bool *changed; /* set when the equation was replaced */
  bool *failed;  /* set when there was no memory for it */
} ax_simplify_args;

/* --- rewrite: an equation, when programs are simplified, as others that cost less and give the same, bit for bit. Returns false where
   there are none. First only the question. --- */
typedef struct ax_rewrite_args {
  const ax_eqn *eqn;
  const ax_type *types;         /* by value id */
  const ax_eqn *const *made_by; /* by value id; NULL: an input */
  const ax_value *values; /* by value id, in the trace in progress; NULL: only the question */
  ax_value *out;
} ax_rewrite_args;

/* --- part: a box of a result whose elements' places say what they are (others follow from `shard`), from boxes of the operands. First
   only the question: which boxes these are. Returns false where the whole is needed. --- */
typedef struct ax_box { /* by dimension: the indices from low on, below high */
  int64_t low[AX_MAX_RANK], high[AX_MAX_RANK];
} ax_box;
typedef struct ax_part_args {
  const ax_eqn *eqn;
  const ax_type *types; /* by value id */
  const ax_box *box;    /* of the one result; it has elements */
  ax_box *in;           /* filled in, by operand; each starts as the whole operand. Nothing is needed of one whose box is empty */
  const ax_value *values; /* by operand: those boxes, in the trace in progress; NULL: only the question */
  ax_value *out;
} ax_part_args;

/* --- ungroup: an equation over groups of members, as equations over all members along its axes. Bound in the trace in progress.
   --- */
typedef struct ax_ungroup_args {
  const ax_eqn *eqn;
  const ax_axes *axes; /* the axes of eqn, as they are called in the trace in progress, with the groups */
  const ax_value *in;
  ax_value *out;
} ax_ungroup_args;

/* --- shard: how the dimensions of operands and results go together, for the partitioner. A dimension is a product of factors,
   major first; axes that cut a factor cut it wherever it stands. A dimension without factors is not cut. --- */
enum { AX_MAX_FACTORS = 64 };
typedef enum ax_factor_kind {
  AX_FACTOR_ALONG, /* its indices are independent of each other, or the `block` rule handles their dependence */
  AX_FACTOR_SUM,   /* no result has it: blocks give parts of results, which are added */
  AX_FACTOR_MAX,   /* the same; the largest part is taken */
  AX_FACTOR_MIN,   /* the same; the smallest part is taken */
  AX_FACTOR_PROD,  /* the same; parts are gathered and multiplied, .. */
  AX_FACTOR_AND,   /* .. or and, or, xor of their bits is taken */
  AX_FACTOR_OR,
  AX_FACTOR_XOR
} ax_factor_kind;
/* A dimension of an operand over which windows go: its one factor counts their positions, which are no indices of its own. Position
   p sees what stands from first + p * stride on, `extent` places, when its elements stand `base` apart, and `fill` everywhere
   else. */
typedef enum ax_fill {
  AX_FILL_ANY,      /* these elements are never used. If `extent` is 1, `block` may get the seen elements without those between */
  AX_FILL_ZERO,
  AX_FILL_LEAST,    /* of the dtype */
  AX_FILL_GREATEST,
  AX_FILL_OPERAND   /* operand 1, a scalar */
} ax_fill;
typedef struct ax_reach {
  int64_t first, stride, extent, base;
  ax_fill fill;
} ax_reach;
typedef struct ax_factored { /* an operand's or a result's dimensions; the numbers of their factors */
  uint8_t count[AX_MAX_RANK], factor[AX_MAX_RANK][AX_MAX_RANK];
  uint32_t reached; /* bits of the dimensions that windows move over */
  ax_reach reach[AX_MAX_RANK]; /* the windows, by dimension */
} ax_factored;
typedef struct ax_factors {
  uint32_t count;
  int64_t size[AX_MAX_FACTORS];
  ax_factor_kind kind[AX_MAX_FACTORS];
  uint8_t exchanged[AX_MAX_FACTORS]; /* where it is cut, the block rule exchanges blocks: 1: those of the operand; 2: and those of the
                                        result */
} ax_factors;
typedef struct ax_shard_args {
  const ax_eqn *eqn;
  const ax_type *types;   /* by value id */
  ax_factors *factors;    /* to fill, as are the next two; all start empty */
  ax_factored *in, *out;  /* by operand and result */
} ax_shard_args;

/* --- block: the equation on blocks, for primitives whose parameters say sizes: bound in the trace in progress, over whose axes
   specs are. --- */
typedef struct ax_block_args {
  const ax_eqn *eqn;
  const ax_value *in;    /* blocks; along dimensions that are reached, all that the positions in the block see */
  const uint32_t *reached; /* by operand: bits of those dimensions */
  const ax_type *types; /* of the whole values, by value id */
  const ax_type *blocks; /* the types of the results' */
  const ax_spec *in_specs, *specs; /* the cuts of operands and results */
  ax_value *out;
} ax_block_args;

/* --- rename: a program that an equation holds, whose values have no layouts, in the environment of the whole mesh. --- */
typedef struct ax_rename_args {
  const ax_program *program;
  const ax_mesh *from, *to; /* the environments of the equation: that it has, and the whole mesh */
  const ax_axes *parts;     /* by axis of `from`: the axes of `to` that it is made of, major first */
} ax_rename_args;

enum { AX_AS_OPERANDS = -2 }; /* of out_count below */

typedef struct ax_step ax_step;         /* kernel/step.h */
typedef struct ax_hlo_form ax_hlo_form; /* hlo/hlo.h */
typedef struct ax_hlo_reader ax_hlo_reader; /* hlo/read.h */

/* No rule but `links`, `rewrite`, `part`, `prune`, `ungroup`, `block`, `rename`, `plain`, `complex`, `keys`, `reads` and `step` is NULL: a shared
   one (prim/rules.h) or the matching `ax_absent_*`. */
struct ax_prim {
  const char *name;
  ax_prim_kind kind;
  uint32_t effects;               /* AX_EFFECT_*; a COLLECTIVE without EXCHANGE is one that each device comes to alone */
  ax_scalar scalar;               /* the operation that a pointwise primitive applies to elements; AX_SCALAR_NONE for others */
  const ax_hlo_form *form; /* the StableHLO op that is equal to the primitive; NULL if there is none or it needs more than
                                     its name */
  ax_form operands; /* the form of all operands */
  bool tokens;      /* operands may also be tokens, which it passes on */
  bool memory;      /* operands may also be refs, semaphores and barriers; infer checks which */
  bool cheap;       /* an element of the result takes little work, on at most one element of each operand */
  ax_linearity linear; /* of a LOCAL or COLLECTIVE: the operands that may be unreduced */
  uint32_t kinds;      /* the kinds they may be unreduced by */
  ax_traffic traffic;  /* of a COLLECTIVE, or of a kernel's step that copies to another device */
  ax_runs runs;        /* of a REGION */
  bool derived;     /* of a REGION: it has derivatives of its own; otherwise it is a call of its first program */
  bool unify;       /* its programs are functions that other equations may call too: equal ones become one program */
  /* For a REGION whose programs have effects only on objects it makes itself: the effects it has outside, and the axes of its
     environment over which it exchanges. NULL: those of its programs. */
  uint32_t (*outside)(const void *params, ax_axis_set *axes);
  int in_count,
      out_count; /* -1: any; then infer is called with out_count from count_outs; AX_AS_OPERANDS: as many results as operands */
  uint32_t (*count_outs)(const void *params);
  const ax_param *params;
  uint32_t param_count;
  size_t params_bytes;
  ax_status (*infer)(const ax_infer_args *args);
  ax_status (*spread)(const ax_infer_args *args);
  ax_status (*eval)(const ax_eval_args *args);
  void (*differs)(const ax_differs_args *args);
  ax_region_link (*links)(
      const ax_region_link_args *args); /* of a REGION, which is refused without it; NULL for others (ir/region_link.h) */
  void (*jvp)(const ax_jvp_args *args);
  void (*linearize)(const ax_jvp_args *args);
  void (*transpose)(const ax_transpose_args *args);
  void (*batch)(const ax_batch_args *args);
  void (*simplify)(const ax_simplify_args *args);
  bool (*rewrite)(const ax_rewrite_args *args); /* NULL: never */
  bool (*part)(const ax_part_args *args); /* NULL: none, but what `shard` says */
  ax_status (*prune)(const ax_prune_args *args); /* of a REGION, and of what can compute fewer results; NULL: needed whole or not at all */
  void (*ungroup)(const ax_ungroup_args *args);  /* for a COLLECTIVE that takes groups; NULL: its axes have none */
  void (*shard)(const ax_shard_args *args);
  void (*block)(const ax_block_args *args); /* NULL: blocks take the same parameters */
  ax_status (*rename)(const ax_rename_args *args, ax_program **out); /* NULL: its programs are rebuilt, with layouts */
  ax_status (*plain)(
      const ax_eqn *eqn,
      ax_program **out); /* for a `derived` REGION: an equal program without kernels, for evaluators that run none; NULL: its first
                            program */
  ax_status (*lower)(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out); /* buffers */
  ax_status (*complex)(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out); /* `lower` where an operand or a
                            result is complex: as operations on real and imaginary parts (prim/complex.h), or ax_complex_whole;
                            NULL: it takes no complex numbers, and inference refuses them */
  ax_status (*hlo)(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);       /* SSA ids */
  ax_status (*keys)(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);      /* `hlo` where an operand or a result is
                            a key (AX_KEY), which StableHLO holds as ui32[.., 2] (prim/rules.h); NULL: it takes no keys, and inference
                            refuses them. Those that take keys move elements, and look into none but to say whether two are equal */
  const ax_hlo_reader *reads; /* the StableHLO ops that the primitive's file reads, besides the one of its form; NULL: none */
  const ax_step *step; /* of a primitive that stands in bodies of kernels alone: its rules there; NULL for others */
};

/* A record's fields about its parameters: `list` describes the members of the struct `type`. */
#define AX_PARAMS(list, type) .params = list, .param_count = AX_COUNT(list), .params_bytes = sizeof(type)

/* --- Questions that a record answers --- */
/* Whether a primitive's result is its one parameter, a literal: `constant`, known here by its form. */
static inline bool ax_prim_is_literal(const ax_prim *prim) {
  return prim->kind == AX_LOCAL && prim->in_count == 0 && prim->out_count == 1 && prim->param_count == 1 &&
         prim->params[0].kind == AX_PARAM_LITERAL;
}
/* The scalar of an equation that is a `constant` of rank 0; NULL for other equations. */
static inline const ax_literal *ax_eqn_literal(const ax_eqn *eqn) {
  const ax_literal *literal = ax_prim_is_literal(eqn->prim) ? eqn->params : NULL;
  return literal != NULL && literal->type.rank == 0 ? literal : NULL;
}
/* That of the equation that made value `id`, as simplifying rules are given them; NULL: it is no such constant. */
static inline const ax_literal *ax_made_literal(const ax_eqn *const *made_by, uint32_t id) {
  return made_by[id] == NULL ? NULL : ax_eqn_literal(made_by[id]);
}
static inline const void *ax_param_at(const ax_eqn *eqn, const ax_param *param) {
  return (const char *)eqn->params + param->offset;
}

/* The table of all primitives, defined by prim/table.c from prims.def. */
extern const ax_prim *const ax_prims[];
extern const uint32_t ax_prim_count;
const ax_prim *ax_prim_find(const char *name, size_t length); /* NULL when there is none */

#endif
