/* Helpers for transforms of equations that hold programs. A transform builds a new equation from such an equation: it decides which
   operands and results of the old one take part, and orders those of the new one and of its body. cond, scan, while and shard_map
   use this, and add only their own rules. */
#ifndef AX_PRIM_REBUILD_H
#define AX_PRIM_REBUILD_H

#include "ir/memo.h"
#include "prim/region.h"

/* --- Tangents: which operands and results have one that is not the symbolic zero --- */

typedef struct ax_tangents {
  const ax_jvp_args *args;
  bool *in, *out;
  ax_want *want; /* for the bodies' results: a copy of `out`, where each of these is a result */
  uint32_t in_count, out_count; /* numbers of tangents among operands and results */
} ax_tangents;
/* Finds which operands of the equation being differentiated have tangents, and which results its bodies will give tangents
   (ax_eqn_tangents). False: the trace has failed. */
bool ax_tangents_init(ax_tangents *t, const ax_jvp_args *args);
/* The tangent of operand i; a symbolic zero becomes real zeros. */
ax_value ax_tangent_in(const ax_tangents *t, uint32_t i);
/* Copies the operands' tangents that are not the symbolic zero, one after the other; returns their number. */
uint32_t ax_tangents_take(const ax_tangents *t, ax_value *to);
/* Stores the results, and the tangents of those that have one, where the rule returns them. `tangents`: one after the other. */
void ax_tangents_give(const ax_tangents *t, const ax_value *results, const ax_value *tangents);

/* --- Cotangents: which results have one --- */

/* zero[k]: the cotangent of result k is the symbolic zero. NULL: the trace has failed. */
bool *ax_cotangents_zero(const ax_transpose_args *args);

/* Binds an equation, or several, with `body`, in the place of `eqn`; in and out are the body's. */
typedef void (*ax_bind_body)(const ax_eqn *eqn, ax_program *body, const ax_value *in, ax_value *out);
/* transpose for an equation whose body has the same inputs and results as the equation: (c.., ct of y..) -> (ct of x..), bound by
   `bind`. */
void ax_transpose_by_body(const ax_transpose_args *args, const ax_program *body, ax_bind_body bind);

/* --- Batch dimensions --- */

/* Marks the results that the bodies will give a batch dimension (ax_eqn_batched). NULL: the trace has failed. */
bool *ax_batched_results(const ax_batch_args *args);

/* --- Operands by role --- */

enum { AX_MAX_ROLES = 4 };
/* Operands are added in the order of a body's inputs. Then operands and inputs are sorted by role; within a role they keep the
   order. */
typedef struct ax_sorting {
  uint32_t count, capacity;
  uint32_t of_role[AX_MAX_ROLES]; /* the number of operands, by role */
  ax_value *value;
  uint32_t *role;
} ax_sorting;
bool ax_sorting_init(ax_sorting *s, uint32_t capacity); /* false: the trace has failed */
void ax_sorting_add(ax_sorting *s, uint32_t role, ax_value value);
/* Returns the operands sorted. *out: `body` with its inputs in that order, and with only the results numbered from[0 .. out_count).
   NULL: the trace has failed. */
ax_value *ax_sorting_finish(const ax_sorting *s, const ax_program *body, const uint32_t *from, uint32_t out_count,
                            ax_program **out);

/* Counts the marks that are set among `count`. */
uint32_t ax_marked(const bool *marks, uint32_t count);
/* prune for an equation whose body has the same inputs and results as the equation, and whose only parameter is the body. */
ax_status ax_prune_body(const ax_prune_args *args);
/* 0, 1, .. count; NULL: the trace has failed. */
uint32_t *ax_in_order(uint32_t count);

#endif
