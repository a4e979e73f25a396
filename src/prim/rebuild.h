/* Equations that hold programs, made anew by a transform: what their operands and results are to it, and how those of the new
   equation, and of its body, are put in order. cond, scan, while and shard_map stand on this; each says only what is its own. */
#ifndef AX_PRIM_REBUILD_H
#define AX_PRIM_REBUILD_H

#include "ir/memo.h"
#include "prim/region.h"

/* --- Tangents: which operands and results have one that is not the symbolic zero --- */

typedef struct ax_tangents {
  const ax_jvp_args *args;
  bool *in, *out;
  ax_want *want; /* of the bodies' results: as `out`, where each is a result */
  uint32_t in_count, out_count; /* how many there are */
} ax_tangents;
/* Of an equation being differentiated, as its bodies will give them (ax_eqn_tangents). False: the trace has failed. */
bool ax_tangents_init(ax_tangents *t, const ax_jvp_args *args);
/* The tangent of operand i, real zeros where it starts as the symbolic one. */
ax_value ax_tangent_in(const ax_tangents *t, uint32_t i);
/* The operands' tangents there are, one after the other; returns how many. */
uint32_t ax_tangents_take(const ax_tangents *t, ax_value *to);
/* The results, and the tangents there are, one after the other, to where the rule gives them. */
void ax_tangents_give(const ax_tangents *t, const ax_value *results, const ax_value *tangents);

/* --- Cotangents: which results have one --- */

/* zero[k]: result k's is the symbolic zero. NULL: the trace has failed. */
bool *ax_cotangents_zero(const ax_transpose_args *args);

/* Binds an equation, or all those, of `body` in the place of `eqn`; in and out as the body says. */
typedef void (*ax_bind_body)(const ax_eqn *eqn, ax_program *body, const ax_value *in, ax_value *out);
/* transpose of an equation whose body's inputs and results are its own: (c.., ct of y..) -> (ct of x..), bound by `bind`. */
void ax_transpose_by_body(const ax_transpose_args *args, const ax_program *body, ax_bind_body bind);

/* --- Batch dimensions --- */

/* Which results are batched, as the bodies will make them (ax_eqn_batched). NULL: the trace has failed. */
bool *ax_batched_results(const ax_batch_args *args);

/* --- Operands by role --- */

enum { AX_MAX_ROLES = 4 };
/* Operands are added in the order of a body's inputs; they, and the inputs, are then sorted by role, in the order added within
   each. */
typedef struct ax_sorting {
  uint32_t count, capacity;
  uint32_t of_role[AX_MAX_ROLES]; /* how many there are */
  ax_value *value;
  uint32_t *role;
} ax_sorting;
bool ax_sorting_init(ax_sorting *s, uint32_t capacity); /* false: the trace has failed */
void ax_sorting_add(ax_sorting *s, uint32_t role, ax_value value);
/* The operands sorted; *out: `body` with its inputs in that order, and of its results those numbered from[0 .. out_count). NULL:
   the trace has failed. */
ax_value *ax_sorting_finish(const ax_sorting *s, const ax_program *body, const uint32_t *from, uint32_t out_count,
                            ax_program **out);

/* How many of `count` are marked. */
uint32_t ax_marked(const bool *marks, uint32_t count);
/* prune of an equation whose body's inputs and results are its own, and whose parameters are the body alone. */
ax_status ax_prune_body(const ax_prune_args *args);
/* 0, 1, .. count; NULL: the trace has failed. */
uint32_t *ax_in_order(uint32_t count);

#endif
