/* Collectives between the devices along named mesh axes, and shard_map, in whose body they are used.

   `axes`: "data" or "data,model". A group is the devices that differ along these axes alone; its n members are numbered
   row-major over the axes in the order named. x is made varying over them first if it is not. "" is a group of one.
   Semantics are those of jax.lax (parallel.py), but for ppermute, whose members jax.lax numbers in mesh order whatever the order
   named, and for pmax and pmin, which here have derivatives.
   A dimension may count from the end: -1 is the last.
   Errors (kept by the trace): an axis that is not in scope or is named twice, a dimension x does not have, a size that does not
   divide, a dtype other than those said. */
#ifndef AXLE_COLLECTIVES_H
#define AXLE_COLLECTIVES_H

#include "axle/program.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

/* T[d..] -> T[d..]: the sum over the members, combined in member order; the same on all, and typed invariant over axes. T
   numeric. Floats over more than 128 members are added in f64 and rounded once, over up to 128 in f32 (f64: in f64): n members are
   off by at most min(n, 128) 2^-24 times the sum of absolute values. psum_scatter likewise. */
ax_value ax_psum(ax_value x, const char *axes);
ax_value ax_pmean(ax_value x, const char *axes); /* psum / n; T float */
ax_value ax_pmax(ax_value x, const char *axes);  /* T numeric; NaN if any is */
ax_value ax_pmin(ax_value x, const char *axes);
/* The members' x, joined. tiled: T[.., k, ..] -> T[.., n k, ..]; otherwise a new dimension of n: T[..] -> T[.., n, ..]. Any T.
   The result stays typed varying. */
ax_value ax_all_gather(ax_value x, const char *axes, int64_t dimension, bool tiled);
ax_value ax_all_gather_invariant(ax_value x, const char *axes, int64_t dimension, bool tiled); /* ... invariant */
/* Sum over members, of which member i keeps part i. tiled: T[.., n k, ..] -> T[.., k, ..]; otherwise the dimension's size is n,
   and it goes. T numeric. */
ax_value ax_psum_scatter(ax_value x, const char *axes, int64_t dimension, bool tiled);
/* tiled: split_axis is cut in n parts, part i goes to member i, those received are joined along concat_axis in member order;
   otherwise split_axis has size n and goes, and a new dimension of n appears at concat_axis. Any T. */
ax_value ax_all_to_all(ax_value x, const char *axes, int64_t split_axis, int64_t concat_axis, bool tiled);
/* T[d..] -> T[d..]: x of member `source` on member `target`, for each of the pairs (source, target); a member that is no target
   gets zeros. Any T. Two pairs with one source, or with one target, are an error. */
ax_value ax_ppermute(ax_value x, const char *axes, uint32_t count, const int64_t (*pairs)[2]);
/* ppermute by an offset of any size and sign: x of member i on member i + by. wrap: modulo n, a ring; otherwise members that nobody is
   `by` before get zeros. */
ax_value ax_pshift(ax_value x, const char *axes, int64_t by, bool wrap);
ax_value ax_axis_index(const char *axes); /* s32[], this member's number, varying over axes */
int64_t ax_axis_size(const char *axes);   /* n, known while tracing; 1 and an error for an unknown axis */
/* x, typed varying over axes too. An axis over which it varies already is an error. */
ax_value ax_pvary(ax_value x, const char *axes);
/* to "varying": pvary. To "invariant" is an error: psum, pmax, pmin and all_gather_invariant make values invariant. To "reduced"
   and "unreduced": AX_ABSENT. */
ax_value ax_pcast(ax_value x, const char *axes, const char *to);
/* A collective in two parts, as MPI_Iallreduce and MPI_Wait: start begins it and gives a future, ax_done waits for it and gives its
   result; other work proceeds between them. Operands, results and errors are those of the function without _start. Derivatives and
   batches are the collective's too.
   ax_typeof says what the result will be, with the form AX_FUTURE. A future is good for nothing but ax_done, once, in the trace that
   started it: used as an array, used in a body or returned is an error where that happens; done twice or never, when the trace
   finishes. */
ax_value ax_psum_start(ax_value x, const char *axes);
ax_value ax_pmean_start(ax_value x, const char *axes);
ax_value ax_pmax_start(ax_value x, const char *axes);
ax_value ax_pmin_start(ax_value x, const char *axes);
ax_value ax_all_gather_start(ax_value x, const char *axes, int64_t dimension, bool tiled);
ax_value ax_all_gather_invariant_start(ax_value x, const char *axes, int64_t dimension, bool tiled);
ax_value ax_psum_scatter_start(ax_value x, const char *axes, int64_t dimension, bool tiled);
ax_value ax_all_to_all_start(ax_value x, const char *axes, int64_t split_axis, int64_t concat_axis, bool tiled);
ax_value ax_ppermute_start(ax_value x, const char *axes, uint32_t count, const int64_t (*pairs)[2]);
ax_value ax_pshift_start(ax_value x, const char *axes, int64_t by, bool wrap);
ax_value ax_done(ax_value future);

/* Runs `body` on each device of `mesh`. `specs` says how operands are cut and results put together (see ax_spec):
     "data; _,model -> data; "     two operands and two results
   a spec for each operand, separated by semicolons, an arrow, a spec for each result. One spec alone on a side stands for all there;
   "*N" behind one repeats it: "_,model*2; *6; data -> ".
   A result that varies over an axis its spec does not name is refused; not by ax_shard_map_unchecked, which turns the
   varying/invariant types off: then such a result is taken from the first device along that axis.
   Errors (kept by the trace): an unsound mesh; an axis that a shard_map around this one has; specs of another number than there are
   operands or results; one that has more entries than there are dimensions, or does not divide; the body's own. */
void ax_shard_map(const ax_mesh *mesh, const char *specs, ax_fn body, const ax_value *in, ax_value *out);
void ax_shard_map_unchecked(const ax_mesh *mesh, const char *specs, ax_fn body, const ax_value *in, ax_value *out);
/* ax_shard_map as a function to be passed on:
     ax_trace(AX_SHARDED(&mesh, "data -> data", AX_FN(center, 1, 1)), types, &program)
   It is good as long as the block it stands in. ax_call_sharded is that function, an ax_sharded its context. */
typedef struct ax_sharded {
  const ax_mesh *mesh;
  const char *specs;
  ax_fn body;
  const char *call; /* where it was made (axle/line.h), as errors and equations say it; NULL: nowhere */
} ax_sharded;
void ax_call_sharded(const ax_value *in, ax_value *out, void *sharded);
static inline ax_fn ax_sharded_function(ax_sharded *sharded) {
  ax_fn function = sharded->body;
  function.function = ax_call_sharded;
  function.context = sharded;
  return function;
}
#ifdef AXLE_NO_LINES
#define AX_SHARDED_AT NULL
#else
#define AX_SHARDED_AT AX_CALL("shard_map")
#endif
#define AX_SHARDED(mesh_, specs_, ...) \
  ax_sharded_function(&(ax_sharded){.mesh = (mesh_), .specs = (specs_), .body = __VA_ARGS__, .call = AX_SHARDED_AT})

#pragma GCC visibility pop

#ifndef AXLE_NO_LINES /* axle/line.h */
#define ax_psum(...) AX_LINED(psum, __VA_ARGS__)
#define ax_pmean(...) AX_LINED(pmean, __VA_ARGS__)
#define ax_pmax(...) AX_LINED(pmax, __VA_ARGS__)
#define ax_pmin(...) AX_LINED(pmin, __VA_ARGS__)
#define ax_all_gather(...) AX_LINED(all_gather, __VA_ARGS__)
#define ax_all_gather_invariant(...) AX_LINED(all_gather_invariant, __VA_ARGS__)
#define ax_psum_scatter(...) AX_LINED(psum_scatter, __VA_ARGS__)
#define ax_all_to_all(...) AX_LINED(all_to_all, __VA_ARGS__)
#define ax_ppermute(...) AX_LINED(ppermute, __VA_ARGS__)
#define ax_axis_index(...) AX_LINED(axis_index, __VA_ARGS__)
#define ax_axis_size(...) AX_LINED_ANY(axis_size, __VA_ARGS__)
#define ax_pvary(...) AX_LINED(pvary, __VA_ARGS__)
#define ax_pcast(...) AX_LINED(pcast, __VA_ARGS__)
#define ax_psum_start(...) AX_LINED(psum_start, __VA_ARGS__)
#define ax_pmean_start(...) AX_LINED(pmean_start, __VA_ARGS__)
#define ax_pmax_start(...) AX_LINED(pmax_start, __VA_ARGS__)
#define ax_pmin_start(...) AX_LINED(pmin_start, __VA_ARGS__)
#define ax_all_gather_start(...) AX_LINED(all_gather_start, __VA_ARGS__)
#define ax_all_gather_invariant_start(...) AX_LINED(all_gather_invariant_start, __VA_ARGS__)
#define ax_psum_scatter_start(...) AX_LINED(psum_scatter_start, __VA_ARGS__)
#define ax_all_to_all_start(...) AX_LINED(all_to_all_start, __VA_ARGS__)
#define ax_ppermute_start(...) AX_LINED(ppermute_start, __VA_ARGS__)
#define ax_done(...) AX_LINED(done, __VA_ARGS__)
#define ax_shard_map(...) AX_LINED_VOID(shard_map, __VA_ARGS__)
#define ax_shard_map_unchecked(...) AX_LINED_VOID(shard_map_unchecked, __VA_ARGS__)
#define ax_pshift(...) AX_LINED(pshift, __VA_ARGS__)
#define ax_pshift_start(...) AX_LINED(pshift_start, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
