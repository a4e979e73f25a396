/* Functions with derivatives given by other functions: helpers shared by custom_vjp and custom_jvp.
   All their programs take the same first operands: the values that any of the functions captured, num_consts of them, then the
   function's own operands. Derivatives are by the function's own operands only. A captured value with a tangent is an error, as the
   user gave no derivative by it. */
#ifndef AX_CONTROL_CUSTOM_H
#define AX_CONTROL_CUSTOM_H

#include "prim/rebuild.h"

/* --- Tracing --- */

enum { AX_CUSTOM_FUNCTIONS = 3 };
typedef struct ax_custom {
  const char *owner;      /* for messages */
  const ax_value *in;     /* the operands */
  const ax_type *types;
  uint32_t in_count, out_count;
  ax_body body[AX_CUSTOM_FUNCTIONS]; /* the function's body first */
  uint32_t body_count;
  ax_spread *spread;      /* of the results: the common spread of the first results of the first two bodies */
} ax_custom;
/* False: the trace has failed. Call ax_custom_deinit in either case. */
bool ax_custom_init(ax_custom *c, const char *owner, ax_fn function, const ax_value *in, ax_value *out);
void ax_custom_deinit(ax_custom *c);
/* Traces the next function on values of these types. False: the trace has failed. */
bool ax_custom_trace(ax_custom *c, const char *part, ax_fn function, const ax_type *in, const ax_spread *out_spread);
/* After two bodies: checks that the first results of the second, which messages call `part`, are the function's, and fills in
   `spread`. */
bool ax_custom_join(ax_custom *c, const char *part);
/* The type of the function's result k, with the spread it will have. */
ax_type ax_custom_result(const ax_custom *c, uint32_t k);
/* The number of floats among the operands, and among the results. */
uint32_t ax_custom_float_operands(const ax_custom *c);
uint32_t ax_custom_float_results(const ax_custom *c);

/* For functions that give what they take: the axes that results of any body vary over, besides those that all operands vary over;
   and the operands cast to vary over these too. NULL: the trace has failed. */
ax_axis_set ax_custom_grown(const ax_custom *c);
const ax_value *ax_custom_spread(const ax_custom *c, ax_axis_set varying);

/* A body, and the inputs and results it gets as a program. */
typedef struct ax_custom_part {
  uint32_t body;
  const ax_type *more; /* types of the inputs behind the operands */
  uint32_t more_count;
  const ax_spread *spread; /* of the body's first results */
  uint32_t spread_count;
  uint32_t keeps; /* the body whose captured values are results behind those; AX_NONE: none */
} ax_custom_part;
/* The body as a program of (all captured.., operands.., more..). NULL: the trace has failed. */
ax_program *ax_custom_program(const ax_custom *c, const ax_custom_part *part);
/* Binds the equation. */
void ax_custom_bind(const ax_custom *c, const ax_prim *prim, const void *params, ax_value *out);
uint32_t ax_custom_captured(const ax_custom *c);

/* --- Rules --- */

/* infer: checks that `program`, which messages call `what`, takes the operands and `more` values behind them, and has at least
   `results` results. */
AX_MUST_USE ax_status ax_custom_check(const ax_infer_args *args, const ax_program *program, const char *what, uint32_t more,
                                      uint32_t results);
/* infer: checks that the first results of `program` are those of `call`, which are arrays, and fills in their types. */
AX_MUST_USE ax_status ax_custom_check_results(const ax_infer_args *args, const ax_program *call, const ax_program *program,
                                              const char *what);
/* Refuses tangents of captured values. False: the trace has failed. */
bool ax_custom_check_captured(const ax_jvp_args *args, uint32_t num_consts);
/* differs: each result differs as in `call` and as in the first results of `other`, whose inputs behind the operands differ as
   `more` says. */
void ax_custom_differs(const ax_differs_args *args, const ax_program *call, const ax_program *other, const ax_axis_set *more);

/* lower, hlo: the first program that the equation holds, in its place. */
AX_MUST_USE ax_status ax_custom_lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);
AX_MUST_USE ax_status ax_custom_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);

/* --- prune: drops unused results, and operands that only they need. The function's own operands stay, since its derivative has a
   cotangent for each --- */

/* Marks the needed operands: all from `first` on, those that `call` needs for args->out, and those that `other`, which takes the
   operands first, needs for the results marked in `out`. */
AX_MUST_USE ax_status ax_custom_needs(const ax_prune_args *args, uint32_t first, const ax_program *call, const ax_program *other,
                                      const bool *out);
/* Reduces a program of residuals and cotangents, which gives cotangents, to the inputs marked in `in`. Residuals that are not
   marked must not be needed; cotangents that are not marked are zeros. */
AX_MUST_USE ax_status ax_custom_prune_backward(ax_memo *memo, const ax_program *backward, uint32_t residuals, const bool *in,
                                               ax_program **out);

#endif
