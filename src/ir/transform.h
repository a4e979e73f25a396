/* Transforms of programs with all their options, for the rules of primitives that hold programs. Declared here, below
   `prim`; defined in xform/. Conventions as in axle/transform.h: `*out` is a program owned by the caller, NULL on failure. The
   programs may have any axis environment: it is kept. Two equal requests within one transform are answered by one program
   (ir/memo.h). */
#ifndef AX_IR_TRANSFORM_H
#define AX_IR_TRANSFORM_H

#include "axle/transform.h"
#include "ir/program.h"

/* --- Questions that a region's rule asks before it transforms its programs --- */

/* Marks the results that get a tangent when the operands marked in in[] have one; the same for batch dimensions. For a loop this
   includes its carries' growth. The marks are upper bounds: a tangent may turn out to be zero when it is made. False: no memory;
   the trace has failed. */
bool ax_eqn_tangents(const ax_eqn *eqn, const bool *in, bool *out);
bool ax_eqn_batched(const ax_eqn *eqn, const char *axis, const bool *in, bool *out);

/* --- Differentiation --- */

/* Whether a result has a tangent in the transformed program. Results that are not floats never have one. ZERO: it must turn out to
   be the symbolic zero; otherwise AX_INTERNAL. */
typedef enum ax_want { AX_WANT_NEVER, AX_WANT_ZERO, AX_WANT_ALWAYS } ax_want;

/* (x..) -> (y..)  becomes  (x.., dx[wrt]..) -> (y.., dy[want: always]..). wrt NULL: all float inputs; want NULL: ALWAYS. */
AX_MUST_USE ax_status ax_jvp_program(const ax_program *program, const bool *wrt, const ax_want *want, ax_program **out);
/* The same split in two: primal (x..) -> (y.., residual..), tangent (residual.., dx[wrt]..) -> (dy[want: always]..). held (may be
   NULL): each residual is kept by itself, except for the inputs marked, which are kept in any case; the tangent half then computes
   values again that are cheaper to compute than to keep. */
AX_MUST_USE ax_status ax_linearize_program(const ax_program *program, const bool *wrt, const ax_want *want, const bool *held,
                                           ax_program **primal, ax_program **tangent, uint32_t *residual_count);
/* The values of a program that are kept, while its other values are computed again. */
typedef struct ax_saved {
  bool (*saves)(const void *policy, const ax_eqn *eqn); /* says whether the results of an equation are kept */
  const void *policy;                                   /* all that `saves` depends on, as plain bytes */
  size_t policy_bytes;
} ax_saved;
/* As ax_linearize_program, but the tangent half computes again all that it uses, except for inputs and saved values, which are the
   residuals. The program has no state but prints (debug_print), which the tangent half makes again unless they are saved. */
AX_MUST_USE ax_status ax_remat_program(const ax_program *program, const bool *wrt, const ax_want *want, const ax_saved *saved,
                                       ax_program **primal, ax_program **tangent, uint32_t *residual_count);
/* ax_program_transpose, where cotangents may be the symbolic zero, which costs nothing and makes no 0 * inf:
   (c.., dx..) -> (dy..) becomes (c.., ct of dy[not zero]..) -> (ct of dx..). zero[k]: result k's is; NULL: none is.
   made_zero[i] (may be NULL): linear input i's is; the result is then real zeros. */
AX_MUST_USE ax_status ax_transpose_program(const ax_program *program, const bool *linear, const bool *zero, bool *made_zero,
                                           ax_program **out);

/* --- Pruning: questions that `prune` rules ask of their programs --- */

/* Sets in[i] to whether input i is needed for the results marked in out[]. */
AX_MUST_USE ax_status ax_needs_program(struct ax_memo *memo, const ax_program *program, const bool *out, bool *in);
/* For loops that carry result k of `body` to input first + k, for `count` carries: adds to args->out the carries that its marked
   ones need, and fills in `in` as above. */
AX_MUST_USE ax_status ax_needs_loop(const ax_prune_args *args, const ax_program *body, uint32_t first, uint32_t count, bool *in);
/* The program with only the inputs and results marked, and without unused equations; `in` must mark at least the inputs that are
   needed. The program itself, retained, if all of it is needed. */
AX_MUST_USE ax_status ax_prune_program(struct ax_memo *memo, const ax_program *program, const bool *out, const bool *in,
                                       ax_program **pruned);

/* --- Batching --- */

/* The dimension meant by a user's number, for an array of `rank` dimensions: a negative number counts from the end. *dim is -1 for
   AX_NOT_MAPPED. False: there is no such dimension. */
bool ax_mapped_dim(int64_t given, uint32_t rank, int *dim);

enum { AX_BATCH_ANY = -2 }; /* in front when batched, -1 otherwise */
/* in_dim[i]: where input i gets its batch dimension, or -1. want[i]: where result i must have its own (-1: it must have none), or
   AX_BATCH_ANY; want NULL: any. out_dim (may be NULL): where it is. `axis` (may be NULL) leaves the environment, where it has
   it. Errors speak of in_axes and out_axes. */
AX_MUST_USE ax_status ax_batch_program(const ax_program *program, const int *in_dim, int64_t size, const char *axis,
                                       const int *want, int *out_dim, ax_program **out);

/* The same, but the equations are bound in the trace in progress, on `in`: a nest of these binds each equation once. */
void ax_batch_call(const ax_program *program, const ax_value *in, const int *in_dim, int64_t size, const char *axis,
                   const int *want, ax_value *out);

/* --- For compilation --- */

/* Equations, with those of bodies as often as they are called: of a program whose calls stay calls, and of any that is compiled. */
enum { AX_MOST_WRITTEN_OUT = 1 << 18, AX_MOST_COMPILED = 1 << 24 };
/* The program as it is compiled. If it has more than `most` equations, written out, calls of bodies that are called more than once
   become steps of loops, in which each body stands once (xform/calls.c). Otherwise it is the program itself. AX_INVALID_ARGUMENT:
   what is left has more than AX_MOST_COMPILED. */
AX_MUST_USE ax_status ax_program_loop_calls(const ax_program *program, uint64_t most, ax_program **out);

#endif
