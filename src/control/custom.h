/* Functions whose derivatives are given by other functions: what custom_vjp and custom_jvp share.

   All their programs take the same operands first: what any of the functions captured, num_consts of them, then the function's own.
   Derivatives are by its own alone: of a captured value that has a tangent nobody was told, which is an error. */
#ifndef AX_CONTROL_CUSTOM_H
#define AX_CONTROL_CUSTOM_H

#include "prim/rebuild.h"

/* --- Tracing --- */

enum { AX_CUSTOM_FUNCTIONS = 3 };
typedef struct ax_custom {
  const char *owner;      /* for messages */
  const ax_value *in;     /* the operands, and their types */
  const ax_type *types;
  uint32_t in_count, out_count;
  ax_body body[AX_CUSTOM_FUNCTIONS]; /* the function first */
  uint32_t body_count;
  ax_spread *spread;      /* of the results: what those of the first two bodies come to together */
} ax_custom;
/* False: the trace has failed. ax_custom_deinit in any case. */
bool ax_custom_init(ax_custom *c, const char *owner, ax_fn function, const ax_value *in, ax_value *out);
void ax_custom_deinit(ax_custom *c);
/* Traces the next function on values of these types. False: the trace has failed. */
bool ax_custom_trace(ax_custom *c, const char *part, ax_fn function, const ax_type *in, const ax_spread *out_spread);
/* After two bodies: checks that the second's first results, `part`'s, are the function's, and fills in `spread`. */
bool ax_custom_join(ax_custom *c, const char *part);
/* The type of a result of the function, spread as it will be. */
ax_type ax_custom_result(const ax_custom *c, uint32_t k);
/* How many of the operands, and of the results, are floats. */
uint32_t ax_custom_float_operands(const ax_custom *c);
uint32_t ax_custom_float_results(const ax_custom *c);

/* Which body, and how it is to be. */
typedef struct ax_custom_part {
  uint32_t body;
  const ax_type *more; /* of what it takes behind the operands */
  uint32_t more_count;
  const ax_spread *spread; /* of its first results */
  uint32_t spread_count;
  uint32_t keeps; /* the body whose captured values come behind those; AX_NONE: of none */
} ax_custom_part;
/* The body as a program of (what all captured.., operands.., more..). NULL: the trace has failed. */
ax_program *ax_custom_program(const ax_custom *c, const ax_custom_part *part);
/* Binds the equation. */
void ax_custom_bind(const ax_custom *c, const ax_prim *prim, const void *params, ax_value *out);
uint32_t ax_custom_captured(const ax_custom *c);

/* --- Rules --- */

/* infer: that `program`, `what`, takes the operands, and `more` values behind them, and gives `results` at least. */
AX_MUST_USE ax_status ax_custom_check(const ax_infer_args *args, const ax_program *program, const char *what, uint32_t more,
                                      uint32_t results);
/* infer: that the first results of `program` are those of `call`, arrays; they are filled in. */
AX_MUST_USE ax_status ax_custom_check_results(const ax_infer_args *args, const ax_program *call, const ax_program *program,
                                              const char *what);
/* Refuses tangents of captured values. False: the trace has failed. */
bool ax_custom_check_captured(const ax_jvp_args *args, uint32_t num_consts);
/* differs: as the results of `call`, and the first ones of `other`, whose inputs behind the operands are as `more` says. */
void ax_custom_differs(const ax_differs_args *args, const ax_program *call, const ax_program *other, const ax_axis_set *more);

/* --- prune: results that nobody uses go, with what they alone take. Operands of the function stay, as its derivative has a
   cotangent for each --- */

/* Which operands are needed: those from `first` on, and what `call` needs for args->out and `other`, which takes the operands
   first, for the results marked in `out`. */
AX_MUST_USE ax_status ax_custom_needs(const ax_prune_args *args, uint32_t first, const ax_program *call, const ax_program *other,
                                      const bool *out);
/* A program of residuals and cotangents, which gives cotangents, of the inputs marked alone: residuals it does not need are left
   out, and cotangents that are left out are zeros. */
AX_MUST_USE ax_status ax_custom_prune_backward(ax_memo *memo, const ax_program *backward, uint32_t residuals, const bool *in,
                                               ax_program **out);

#endif
