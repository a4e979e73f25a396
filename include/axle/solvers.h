/* Equations that are solved by iteration, and minima. Derivatives, except those of ax_minimize, are those of the solution, whatever
   the solver did: no round is kept. Each function adds equations to the trace in progress; errors poison the results (axle/ops.h).
   Names and values are those of jax.lax.custom_linear_solve and custom_root, jax.scipy.sparse.linalg, jax.scipy.optimize and
   jax.experimental.ode.

     static AX_BODY(laplace) { out[0] = ..; }                          // x -> A x, which may use values of the enclosing trace
     ax_cg(AX_FN(laplace, 1, 1), AX_VALUES(b), AX_VALUES(x), NULL);    // A x = b

   Functions are traced once or several times, and take and give arrays of T, T float. */
#ifndef AXLE_SOLVERS_H
#define AXLE_SOLVERS_H

#include "axle/ops.h"

#pragma GCC system_header /* errors in its macros are shown at the line that uses them; what it includes is no such header */

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

/* --- Linear systems --- */

typedef struct ax_linear_solve_options { /* {0}, as NULL: there are no derivatives backwards */
  ax_fn transpose_solve; /* solves for the transposed matvec, as `solve` does for matvec; {0}: none */
  bool symmetric;        /* matvec is its own transpose, so that `solve` solves both */
} ax_linear_solve_options;
/* The x for which matvec(x) = b, which is solve(b). matvec: x.. -> A x.., linear; solve: b.. -> x... Values of the enclosing trace
   that matvec uses have derivatives; what solve uses besides has none. The tangent solves A dx = db - dA x, and is transposed by
   transpose_solve. As jax.lax.custom_linear_solve.
   Errors: functions that do not take and give what b is; b that is no float, reduced or unreduced. AX_ABSENT: backwards, without
   transpose_solve or symmetric. */
void ax_custom_linear_solve(ax_fn matvec, ax_fn solve, uint32_t in_count, const ax_value *b, uint32_t out_count, ax_value *out,
                            const ax_linear_solve_options *options);

typedef struct ax_krylov_options { /* {0}, as NULL: the defaults of jax.scipy.sparse.linalg */
  double tol, atol;   /* done when |b - A x| <= max(tol |b|, atol); tol 0: 1e-5 */
  int64_t maxiter;    /* rounds, of gmres restarts, at most; 0: 10 times the number of unknowns */
  int64_t restart;    /* of gmres: the dimensions of a search; 0: 20, or the number of unknowns if that is less */
  ax_fn M;            /* x.. -> M x.., linear: about the inverse of A; {0}: x itself */
  ax_value_list x0;   /* where to begin, as b; it has no derivative. {0}: zeros */
} ax_krylov_options;
/* The x for which A(x) = b, T b.. -> T x..: A takes and gives what b is, and is linear. By ax_custom_linear_solve: values of the
   enclosing trace that A uses have derivatives, forwards and backwards, by the same solver. ax_cg: conjugate gradients, for A
   symmetric and positive definite, as M. ax_bicgstab and ax_gmres: any A; gmres stores as many vectors as `restart`. They end with
   what they have after maxiter rounds, or where a breakdown leaves no way on. As jax.scipy.sparse.linalg.cg, bicgstab and gmres.
   Errors: arrays b of several dtypes; A or M that does not fit; numbers below 0. */
void ax_cg(ax_fn A, uint32_t in_count, const ax_value *b, uint32_t out_count, ax_value *out, const ax_krylov_options *options);
void ax_bicgstab(ax_fn A, uint32_t in_count, const ax_value *b, uint32_t out_count, ax_value *out, const ax_krylov_options *options);
void ax_gmres(ax_fn A, uint32_t in_count, const ax_value *b, uint32_t out_count, ax_value *out, const ax_krylov_options *options);

/* --- Roots and minima --- */

typedef struct ax_tangent_solve { /* a function, and what it is called with: AX_TANGENT_SOLVE(by_slope, &data), or NULL */
  void (*function)(ax_fn g, const ax_value *b, ax_value *out, void *context);
  void *context;
} ax_tangent_solve;
#ifdef __cplusplus
#define AX_TANGENT_SOLVE(function_, ...) (ax_tangent_solve{(function_), const_cast<void *>(static_cast<const void *>(__VA_ARGS__))})
#else
#define AX_TANGENT_SOLVE(function_, ...) \
  ((ax_tangent_solve){.function = (function_), .context = (void *)(uintptr_t)(const void *)(__VA_ARGS__)}) /* data may be const */
#endif
/* The x for which f(x) is 0, which is solve(guess). f: x.. -> what x is; solve: guess.. -> x... Values of the enclosing trace that
   f uses have derivatives, those of the implicit function theorem; the guess and what solve uses besides have none. tangent_solve
   gives the y.. for which g(y) = b, linear in b, where g is f linearized at the root: b / g(1) for scalars, or a call of ax_gmres
   or ax_custom_linear_solve with g. Forwards and, where the transpose of tangent_solve is known, backwards; three times at most. As
   jax.lax.custom_root.
   Errors: functions that do not take and give what the guess is; a guess that is no float, reduced or unreduced; no
   tangent_solve; a fourth derivative. */
void ax_custom_root(ax_fn f, ax_fn solve, ax_tangent_solve tangent_solve, uint32_t in_count, const ax_value *guess,
                    uint32_t out_count, ax_value *out);

typedef enum ax_minimize_method { AX_BFGS, AX_LBFGS } ax_minimize_method;
typedef struct ax_minimize_options { /* {0}, as NULL: BFGS, with the defaults of jax.scipy.optimize.minimize */
  ax_minimize_method method;
  double gtol;                 /* done when each element of the gradient is smaller; 0: 1e-5 */
  double ftol;                 /* L-BFGS: ends with a round that gains less; 0: 2.2e-9 */
  int64_t maxiter;             /* rounds at most; 0: 200 times the length of x */
  int64_t line_search_maxiter; /* how often a step is doubled at most; 0: 10, of L-BFGS 20 */
  int64_t history;             /* L-BFGS: how many steps it remembers; 0: 10 */
} ax_minimize_options;
/* How a search has ended. NO_PROGRESS: a round of L-BFGS gained less than ftol. NO_STEP: no step satisfied the conditions of Wolfe,
   as of a function without a minimum, or where roundings are as large as what is left to gain. */
typedef enum ax_minimize_status {
  AX_MINIMIZE_CONVERGED,
  AX_MINIMIZE_MAXITER,
  AX_MINIMIZE_NO_PROGRESS,
  AX_MINIMIZE_NO_STEP
} ax_minimize_status;
/* Seeks an x near x0 where f is least. f: T[n] -> T[]. out, six of them: x T[n]; f there T[]; its gradient T[n]; the status s32[],
   of ax_minimize_status; how many rounds and how many evaluations of f with its gradient there were, s32[]. BFGS stores n x n
   numbers, L-BFGS 2 history n. Values of the enclosing trace that f uses have derivatives forwards, those of the rounds; for exact
   ones, and backwards, take the x as the solution of ax_custom_root for f's gradient. As jax.scipy.optimize.minimize, with method
   "BFGS" or jax's experimental L-BFGS; steps that are not tried as there may end in another minimum, and after other numbers of
   rounds.
   Errors: an x0 that is no vector of floats; an f that gives another dtype, or no scalar; numbers below 0. */
void ax_minimize(ax_fn f, ax_value x0, uint32_t out_count, ax_value *out, const ax_minimize_options *options);

/* --- Ordinary differential equations --- */

typedef struct ax_odeint_options { /* {0}, as NULL: the defaults of jax.experimental.ode.odeint */
  double rtol, atol; /* the error of a step is at most atol + rtol |y|; 0: 1.4e-8 */
  int64_t mxstep;    /* steps between two times at most; 0: any number */
  double hmax;       /* the longest step; 0: any length */
} ax_odeint_options;
/* y at the times ts, where dy/dt = f(y, t, args..) and y is y0 at ts[0]. f: (y.. T, t: T[], args.. T) -> dy.. as y.
   in: y0, as many as results, then ts: T[n], rising, then args; out: T[n, y's dimensions..]. Adaptive steps of Dormand and Prince,
   of order 5, each time by interpolation. As jax.experimental.ode.odeint.
   Derivatives backwards, by y0, ts and args: the adjoint equation, solved likewise from the last time to the first; twice at most,
   and forwards of that. Values of the enclosing trace that f uses without taking them as args have none. AX_ABSENT: forwards alone.
   Errors: operands of several dtypes; a ts that is no vector, or is empty; results of f that are not as y. */
void ax_odeint(ax_fn f, uint32_t in_count, const ax_value *in, uint32_t out_count, ax_value *out, const ax_odeint_options *options);

#pragma GCC visibility pop

#ifndef __cplusplus /* lists with their counts (axle/type.h) */
#define ax_custom_linear_solve(matvec, solve, b, out, ...) \
  AX_LINED_VOID(custom_linear_solve, matvec, solve, AX_COUNTED(ax_value, b), AX_COUNTED(ax_value, out), __VA_ARGS__)
#define ax_cg(A, b, out, ...) AX_LINED_VOID(cg, A, AX_COUNTED(ax_value, b), AX_COUNTED(ax_value, out), __VA_ARGS__)
#define ax_bicgstab(A, b, out, ...) AX_LINED_VOID(bicgstab, A, AX_COUNTED(ax_value, b), AX_COUNTED(ax_value, out), __VA_ARGS__)
#define ax_gmres(A, b, out, ...) AX_LINED_VOID(gmres, A, AX_COUNTED(ax_value, b), AX_COUNTED(ax_value, out), __VA_ARGS__)
#define ax_custom_root(f, solve, tangent_solve, guess, out) \
  AX_LINED_VOID(custom_root, f, solve, tangent_solve, AX_COUNTED(ax_value, guess), AX_COUNTED(ax_value, out))
#define ax_minimize(f, x0, out, ...) AX_LINED_VOID(minimize, f, x0, AX_COUNTED(ax_value, out), __VA_ARGS__)
#define ax_odeint(f, in, out, ...) AX_LINED_VOID(odeint, f, AX_COUNTED(ax_value, in), AX_COUNTED(ax_value, out), __VA_ARGS__)
#endif
#ifdef __cplusplus
}
#endif

#endif
