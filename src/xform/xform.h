/* What the transforms share, and their forms with every choice open, which the rules of region primitives need for the programs
   they hold. Conventions as in axle/transform.h: `*out` is a new program owned by the caller, NULL on failure. */
#ifndef AX_XFORM_XFORM_H
#define AX_XFORM_XFORM_H

#include "axle/transform.h"
#include "ir/program.h"

/* --- Walking a program, equation by equation, into the builder that is current --- */

typedef struct ax_walk {
  ax_arena arena; /* scratch, for the time of the walk */
  const ax_program *program;
  ax_value *value; /* by value id: its handle in the current trace */
  ax_value *in;    /* room for the operands of any one equation */
  uint32_t most;   /* the most operands or results an equation has */
} ax_walk;
/* False without memory: the trace has failed. ax_walk_deinit in any case. */
bool ax_walk_init(ax_walk *walk, const ax_program *program);
void ax_walk_deinit(ax_walk *walk);
void *ax_walk_alloc(ax_walk *walk, size_t bytes); /* cleared; NULL: the trace has failed */
/* The handles of an equation's operands, until the next call; what is built next stems from its line. */
const ax_value *ax_walk_operands(ax_walk *walk, const ax_eqn *eqn);
/* The equation as it is, on the walk's values. */
void ax_walk_replay(ax_walk *walk, const ax_eqn *eqn);

/* Ends the trace as ax_builder_finish does, and removes what nobody uses. */
AX_MUST_USE ax_status ax_finish_clean(ax_builder *builder, const ax_value *outs, uint32_t out_count, ax_program **out);
/* Same dtype, shape and axis sets; otherwise the trace fails with AX_INTERNAL: `rule` of this equation is wrong. */
bool ax_check_rule(const ax_eqn *eqn, const char *rule, ax_value made, const ax_type *wanted);
/* AX_INVALID_ARGUMENT: an input that is to have a tangent is no float. wrt NULL: all float inputs. */
AX_MUST_USE ax_status ax_check_wrt(const ax_program *program, const bool *wrt);
/* Whether input i has a tangent. */
bool ax_has_tangent(const ax_program *program, const bool *wrt, uint32_t i);

/* --- Differentiation --- */

/* What is wanted of a result's tangent. Results that are not floats never have one. */
typedef enum ax_want { AX_WANT_NEVER, AX_WANT_NONZERO, AX_WANT_ALWAYS } ax_want;

/* (x..) -> (y..)  becomes  (x.., dx[wrt]..) -> (y.., dy[has]..): has[i] tells which dy there are. AX_WANT_NONZERO: when it is not
   the symbolic zero. A loop finds out which of its carries have tangents by asking until nothing changes. want NULL: ALWAYS;
   has may be NULL. */
AX_MUST_USE ax_status ax_jvp_program(const ax_program *program, const bool *wrt, const ax_want *want, bool *has,
                                     ax_program **out);
/* The same split in two: primal (x..) -> (y.., residual..), tangent (residual.., dx[wrt]..) -> (dy[has]..). */
AX_MUST_USE ax_status ax_linearize_program(const ax_program *program, const bool *wrt, const ax_want *want, bool *has,
                                           ax_program **primal, ax_program **tangent, uint32_t *residual_count);
/* jvp.c: the walk of both, by the `linearize` rules or by the `jvp` rules. */
AX_MUST_USE ax_status ax_differentiate(const ax_program *program, const bool *wrt, const ax_want *want, bool *has,
                                       bool linearize, ax_program **out);

/* --- Batching --- */

enum { AX_BATCH_ANY = -2 }; /* in front when batched, -1 otherwise */
/* in_dim[i]: where input i gets its batch dimension, or -1. want[i]: where result i must have its own (-1: it must have none), or
   AX_BATCH_ANY; want NULL: any. out_dim (may be NULL): where it is. `axis` (may be NULL) leaves the environment. Errors speak of
   in_axes and out_axes. */
AX_MUST_USE ax_status ax_batch_program(const ax_program *program, const int *in_dim, int64_t size, const char *axis,
                                       const int *want, int *out_dim, ax_program **out);

#endif
