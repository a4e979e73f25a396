/* Transforms of programs with every choice open: what the rules of primitives that hold programs call. Declared here, below
   `prim`; defined in xform/. Conventions as in axle/transform.h: `*out` is a program owned by the caller, NULL on failure. The
   programs may have any axis environment: it is kept. What a rule asks for twice within one transform is made once (ir/memo.h). */
#ifndef AX_IR_TRANSFORM_H
#define AX_IR_TRANSFORM_H

#include "axle/transform.h"
#include "ir/program.h"

/* --- What a region's rule asks before it transforms its programs --- */

/* Which results of the equation get a tangent when the operands in[] have one; a batch dimension. Of a loop: what its carries come
   to. An upper bound: that a tangent is zero may show only when it is made. False: no memory; the trace has failed. */
bool ax_eqn_tangents(const ax_eqn *eqn, const bool *in, bool *out);
bool ax_eqn_batched(const ax_eqn *eqn, const char *axis, const bool *in, bool *out);

/* --- Differentiation --- */

/* What is wanted of a result's tangent. Results that are not floats never have one. ZERO: it is expected to be the symbolic zero;
   AX_INTERNAL when it is not. */
typedef enum ax_want { AX_WANT_NEVER, AX_WANT_ZERO, AX_WANT_ALWAYS } ax_want;

/* (x..) -> (y..)  becomes  (x.., dx[wrt]..) -> (y.., dy[want: always]..). wrt NULL: all float inputs; want NULL: ALWAYS. */
AX_MUST_USE ax_status ax_jvp_program(const ax_program *program, const bool *wrt, const ax_want *want, ax_program **out);
/* The same split in two: primal (x..) -> (y.., residual..), tangent (residual.., dx[wrt]..) -> (dy[want: always]..). held (may be
   NULL): every residual is kept by itself, but for the inputs that are marked, which are there anyway; so the tangent half makes
   again what is cheaper to make than to keep. */
AX_MUST_USE ax_status ax_linearize_program(const ax_program *program, const bool *wrt, const ax_want *want, const bool *held,
                                           ax_program **primal, ax_program **tangent, uint32_t *residual_count);
/* What is kept of a program whose other values are made again. */
typedef struct ax_saved {
  bool (*saves)(const void *policy, const ax_eqn *eqn); /* whether the results of an equation are */
  const void *policy;                                   /* all that this goes by: plain bytes */
  size_t policy_bytes;
} ax_saved;
/* As ax_linearize_program, but the tangent half makes again all that it uses besides inputs and what is saved: those are the
   residuals. The program has no state. */
AX_MUST_USE ax_status ax_remat_program(const ax_program *program, const bool *wrt, const ax_want *want, const ax_saved *saved,
                                       ax_program **primal, ax_program **tangent, uint32_t *residual_count);
/* ax_program_transpose, where cotangents may be the symbolic zero, which costs nothing and makes no 0 * inf:
   (c.., dx..) -> (dy..) becomes (c.., ct of dy[not zero]..) -> (ct of dx..). zero[k]: result k's is; NULL: none is.
   made_zero[i] (may be NULL): linear input i's is; the result is then real zeros. */
AX_MUST_USE ax_status ax_transpose_program(const ax_program *program, const bool *linear, const bool *zero, bool *made_zero,
                                           ax_program **out);

/* --- Pruning: what `prune` rules ask of their programs --- */

/* in[i]: whether input i is needed for the results marked in out[]. */
AX_MUST_USE ax_status ax_needs_program(struct ax_memo *memo, const ax_program *program, const bool *out, bool *in);
/* For loops, whose result k of `body` is carried to input first + k, of `count` carries: adds to args->out the carries that those
   in it need, and fills `in` as above. */
AX_MUST_USE ax_status ax_needs_loop(const ax_prune_args *args, const ax_program *body, uint32_t first, uint32_t count, bool *in);
/* The program with the inputs and results marked alone, of which `in` has at least what is needed, and without equations that
   nobody needs; itself, retained, when it is all needed. */
AX_MUST_USE ax_status ax_prune_program(struct ax_memo *memo, const ax_program *program, const bool *out, const bool *in,
                                       ax_program **pruned);

/* --- Batching --- */

/* The dimension that a user gives, of an array of `rank` dimensions: below 0 it counts from the end. *dim is -1 for AX_NOT_MAPPED.
   Returns false where there is no such dimension. */
bool ax_mapped_dim(int given, uint32_t rank, int *dim);

enum { AX_BATCH_ANY = -2 }; /* in front when batched, -1 otherwise */
/* in_dim[i]: where input i gets its batch dimension, or -1. want[i]: where result i must have its own (-1: it must have none), or
   AX_BATCH_ANY; want NULL: any. out_dim (may be NULL): where it is. `axis` (may be NULL) leaves the environment, where it has
   it. Errors speak of in_axes and out_axes. */
AX_MUST_USE ax_status ax_batch_program(const ax_program *program, const int *in_dim, int64_t size, const char *axis,
                                       const int *want, int *out_dim, ax_program **out);

/* The same, but the equations are bound in the trace in progress, on `in`: a nest of these binds each equation once. */
void ax_batch_call(const ax_program *program, const ax_value *in, const int *in_dim, int64_t size, const char *axis,
                   const int *want, ax_value *out);

#endif
