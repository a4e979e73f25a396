/* Collectives between the devices along named mesh axes, and shard_map, whose body uses them.

   `axes`: "data" or "data,model". A group is the devices that differ along these axes alone; its n members are numbered
   row-major over the axes in the order named. Where x is invariant over them, it is first made varying. Where it is reduced, the
   caller must cast it (ax_reduced_vary_cast). Only psum, pmax, pmin and psum_scatter take an unreduced x. "" is a group of one.
   "data {0,2} {1,3}" makes groups of those members (axis_index_groups of jax.lax). Each member is in one group, and is numbered by
   its place in the list. psum, pmean, pmax and pmin take groups of any sizes; all_gather, psum_scatter, all_to_all, pswapaxes,
   ragged_all_to_all and axis_size of one size. Their results differ from group to group, so these stay typed varying. Groups along
   the axes of a finer mesh cost as much as collectives over these axes; other groups cost about twice as much as a collective of
   all members.
   Semantics are those of jax.lax (parallel.py), with two exceptions: jax.lax numbers the members of ppermute in mesh order whatever
   the order named, and here pmax and pmin have derivatives.
   A dimension may count from the end: -1 is the last.
   Errors (kept by the trace): an axis that is not in scope or is named twice, a dimension x does not have, a size that does not
   divide, a dtype other than those said; groups that overlap, leave a member out, or differ in size where they must not, and groups
   of functions not named above. */
#ifndef AXLE_COLLECTIVES_H
#define AXLE_COLLECTIVES_H

#include "axle/program.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

/* T[d..] -> T[d..]: the sum over the members, combined in member order; the same on all, and typed invariant over axes. T
   numeric; of bools the number that are true, s32. Floats over more than 128 members are added in f64 and rounded once, over up to
   128 in f32 (f64: in f64): n members are off by at most min(n, 128) 2^-24 times the sum of absolute values. psum_scatter likewise.
   psum, pmean, pmax and pmin also take dimensions of x, by number among the names: "data,0", "-1". Each device reduces these
   dimensions first, as reduce_sum and the like do. For a number (ax_integer(1)) the result is a number, without an equation: n
   times it for psum, itself for the others. */
ax_value ax_psum(ax_value x, const char *axes);
ax_value ax_pmean(ax_value x, const char *axes); /* psum / n. For integers f32[d..], for 64-bit ones f64[d..]: their psum, converted
                                                    and divided. For bools the fraction that are true, f32[d..] */
ax_value ax_pmax(ax_value x, const char *axes);  /* NaN if any is; of bools, whether any is true; pmin: all */
ax_value ax_pmin(ax_value x, const char *axes);
/* T[d..] -> s32[d..]: the number of the first member that has the largest, or the smallest, element by element; NaN is both. Typed
   invariant over axes. Any T; no groups. */
ax_value ax_pargmax(ax_value x, const char *axes);
ax_value ax_pargmin(ax_value x, const char *axes);
/* The members' x, joined. tiled: T[.., k, ..] -> T[.., n k, ..]; otherwise a new dimension of n: T[..] -> T[.., n, ..]. Any T.
   The result stays typed varying. */
ax_value ax_all_gather(ax_value x, const char *axes, int64_t dimension, bool tiled);
ax_value ax_all_gather_invariant(ax_value x, const char *axes, int64_t dimension, bool tiled); /* ... invariant */
ax_value ax_all_gather_reduced(ax_value x, const char *axes, int64_t dimension, bool tiled);   /* ... reduced */
/* The sum over the members; member i keeps part i of it. tiled: T[.., n k, ..] -> T[.., k, ..]; otherwise the dimension's size is
   n, and it goes. T numeric. */
ax_value ax_psum_scatter(ax_value x, const char *axes, int64_t dimension, bool tiled);
/* tiled: split_axis is cut in n parts, part i goes to member i, those received are joined along concat_axis in member order;
   otherwise split_axis has size n and goes, and a new dimension of n appears at concat_axis. Any T. */
ax_value ax_all_to_all(ax_value x, const char *axes, int64_t split_axis, int64_t concat_axis, bool tiled);
/* T[d..] -> T[d..]: x of member `source` on member `target`, for each of the pairs (source, target); a member that is no target
   gets zeros. Any T. Errors: a member outside the group, below 0 too; two pairs with one source, or with one target. */
ax_value ax_ppermute(ax_value x, const char *axes, uint32_t count, const int64_t (*pairs)[2]);
/* ppermute by an offset of any size and sign: member i + by gets x of member i. wrap: modulo n, a ring; otherwise a member that
   would get x from outside 0 .. n-1 gets zeros. */
ax_value ax_pshift(ax_value x, const char *axes, int64_t by, bool wrap);
/* ppermute by a whole permutation, each member's number once: x of member perm[i] on member i. */
ax_value ax_pshuffle(ax_value x, const char *axes, uint32_t count, const int64_t *perm);
/* The members change places with a dimension, which has n elements: element i to member i, and member i's at place i. As
   all_to_all, untiled, from the dimension to itself. */
ax_value ax_pswapaxes(ax_value x, const char *axes, int64_t dimension);
/* T[d..] -> T[d..]: x of member `source` on all. The result stays typed varying. Any T. A source outside the group is an error. */
ax_value ax_pbroadcast(ax_value x, const char *axes, int64_t source);
/* The same with a source, s32[], that the program computes: the psum of x on that member and zeros (for bools false) on the others.
   So all members get zeros where there is no such member, and 0 for -0. Also an error: a source that is not s32[]. */
ax_value ax_pbroadcast_dynamic(ax_value x, const char *axes, ax_value source);
/* output T[M, A..] with rows of the members' operands T[N, A..] put in it, as jax.lax.ragged_all_to_all. The others are integers
   [K], of any dtypes; c = K / n slices of each member go to each member. Slice i, operand[input_offsets[i] : input_offsets[i] +
   send_sizes[i]], goes to member i / c, and lies from output_offsets[i] on in that one's output. recv_sizes[i] is the size of slice
   i % c from member i / c.
   Any T. All operands are made varying over axes.
   A run fails with AX_INVALID_ARGUMENT and names device, slice, offsets and size where these are negative, leave operand or output,
   lie on each other in one output, or are not what the receiver's recv_sizes say (ax_compile_options.unchecked_ragged turns the
   last off). */
ax_value ax_ragged_all_to_all(ax_value operand, ax_value output, ax_value input_offsets, ax_value send_sizes,
                              ax_value output_offsets, ax_value recv_sizes, const char *axes);
ax_value ax_axis_index(const char *axes); /* s32[], this member's number, varying over axes */
int64_t ax_axis_size(const char *axes);   /* n, known while tracing; 1 and an error for an unknown axis */
/* Casts: T[d..] -> T[d..]. Each device keeps the elements that it holds; the type changes its state along the axes (ax_spread lists
   the states). On unchecked axes casts do nothing. Errors: an operand that is not in the state to cast from along every one of the
   axes. */
ax_value ax_pvary(ax_value x, const char *axes);             /* invariant to varying; its gradient is a psum */
ax_value ax_preduced(ax_value x, const char *axes);          /* invariant to reduced; its gradient is a psum, of unreduced
                                                                cotangents */
ax_value ax_reduced_vary_cast(ax_value x, const char *axes); /* reduced to varying */
/* Varying to unreduced: the devices' values become the parts of a sum, or of a largest or smallest value, that is not computed yet.
   T numeric; unreduced over other axes by another kind: an error. */
ax_value ax_vary_unreduced_cast(ax_value x, const char *axes, ax_unreduced_kind kind);
/* As jax.lax.pcast: the cast to "varying", "reduced", "unreduced" (by sum), "unreduced_max", "unreduced_min" or "invariant", from
   the state there is: from invariant to varying, to reduced, and to unreduced_max and _min; from varying to the three unreduced;
   from reduced to varying, to invariant, and to unreduced_max and _min; from unreduced_max and _min to varying. All others, and to
   the state there is, are errors that say what to use. */
ax_value ax_pcast(ax_value x, const char *axes, const char *to);
/* psum, pmax, pmin and psum_scatter of an operand that is unreduced over axes (by this kind), and nothing else; those without the
   prefix take such operands too. The result is invariant; of psum_scatter varying. Where axes are unchecked: what they are without
   the prefix. */
ax_value ax_unreduced_psum(ax_value x, const char *axes);
ax_value ax_unreduced_pmax(ax_value x, const char *axes);
ax_value ax_unreduced_pmin(ax_value x, const char *axes);
ax_value ax_unreduced_psum_scatter(ax_value x, const char *axes, int64_t dimension, bool tiled);
ax_value ax_psum_invariant(ax_value x, const char *axes); /* psum of a varying operand alone (an invariant one is made to vary) */
/* A collective in two parts, as MPI_Iallreduce and MPI_Wait: ax_start begins the collectives of an expression and gives a future;
   ax_done waits for it and gives the result. Other work proceeds between them:
     ax_value sum = ax_start(ax_psum(x, "data"));
     ax_value y = ax_matmul(z, w);
     return ax_add(y, ax_done(sum));
   The expression is evaluated where it stands, once. It is made of collectives and operations of each device, and may use any value
   of the trace. Derivatives and batches go through it as through the expression.
   ax_typeof of a future gives the result's type, with the form AX_FUTURE. Only ax_done may use a future, once, in the trace that
   started it. To use it as an array, in a body or in another start's expression, or to return it, is an error at that place. A
   future that is done twice or never is an error when the trace finishes.
   Errors (kept by the trace): those of the expression; an expression whose value is a number or was made before, since nothing
   would be started; one that holds another start, or a cond or a loop with collectives in it.
   ax_start is the macro behind these: the first begins the expression's trace and the last ends it, with its value; ax_start_with
   also gives the collective's operand, which was evaluated before. */
void ax_start_open(void);
ax_value ax_start_with(ax_value x);
ax_value ax_start_close(ax_value value);
ax_value ax_done(ax_value future);
/* ax_start as above; the others start one collective, whose operand x is evaluated before it. */
#define ax_start(...) (ax_start_open(), AX_STARTED("start", (__VA_ARGS__)))
#define ax_psum_start(x, ...) AX_STARTED("psum_start", ax_psum(ax_start_with(x), __VA_ARGS__))
#define ax_all_gather_start(x, ...) AX_STARTED("all_gather_start", ax_all_gather(ax_start_with(x), __VA_ARGS__))
#define ax_psum_scatter_start(x, ...) AX_STARTED("psum_scatter_start", ax_psum_scatter(ax_start_with(x), __VA_ARGS__))
#define ax_all_to_all_start(x, ...) AX_STARTED("all_to_all_start", ax_all_to_all(ax_start_with(x), __VA_ARGS__))
#define ax_pbroadcast_start(x, ...) AX_STARTED("pbroadcast_start", ax_pbroadcast(ax_start_with(x), __VA_ARGS__))
#define ax_ppermute_start(x, ...) AX_STARTED("ppermute_start", ax_ppermute(ax_start_with(x), __VA_ARGS__))
#ifdef AXLE_NO_LINES
#define AX_STARTED(name, ...) ax_start_close(__VA_ARGS__)
#else
#define AX_STARTED(name, ...) ax_lined_value(ax_start_close(ax_lined_value(__VA_ARGS__, AX_CALL(name))), AX_CALL(name))
#endif

/* Messages from one device to another: as jax.lax.psend and jax.lax.precv, on every platform.
   psend sends x of member `source` to member `target`, for each of the pairs (source, target), and gives a token. It copies x and
   never waits. precv gives, on each target, the array that its source sent: T[d..] as `type` says (its dtype and dims); zeros on a
   member that is no target.
   It waits for its message. Any T. The result is varying over all checked axes.
   From one member to another messages over one set of axes stay in order: the k-th precv takes what the k-th psend left. A member
   runs its own side alone, so psend and precv may stand apart, under an ax_if whose predicate varies, or in loops. Each device's
   psends and precvs happen in program order; nothing else orders them. A token says which precv is meant to follow which psend. It
   is used once at most, in the trace that made it or in a body; it may be a carry or operand of if, switch, scan and while, but not
   an input or result of a program.
   Errors: as ppermute's; a token used twice (the message has both uses); a value that is no token. When run: a message of another
   dtype or shape than its precv's, or one that no precv takes, with both places (AX_INVALID_ARGUMENT); a precv whose message never
   comes (AX_DEADLOCK).
   Only forward derivatives exist: the tangent follows x. vmap over the axis itself: AX_ABSENT. */
ax_value ax_psend(ax_value x, const char *axes, uint32_t count, const int64_t (*pairs)[2]);
ax_value ax_precv(ax_value token, ax_type type, const char *axes, uint32_t count, const int64_t (*pairs)[2]);
ax_value ax_create_token(void); /* for a precv whose psend is elsewhere */

/* Runs `body` on each device of `mesh`. `specs` gives a spec for each operand and each result: how it is cut into blocks (see
   ax_spec):
     "data; _,model -> data; "     two operands and two results
   First the operands' specs, separated by semicolons, then an arrow, then the results'. One spec alone on a side stands for all
   there; "*N" behind one repeats it: "_,model*2; *6; data -> ".
   A result that varies over an axis its spec does not name is refused. ax_shard_map_unchecked turns the varying/invariant types off
   and takes such a result from the first device along that axis. A reduced result leaves the body as an invariant one; an unreduced
   result is refused.
   The mesh may have automatic axes (ax_mesh_manual, and ax_shard_map_manual, which is both): specs do not name them, the body does
   not see them, and blocks are whole along them. The partitioner lays the body over them, as it does outside; ax_with_sharding
   decides it where it is used. In such a body a shard_map may take axes by hand that are automatic around it. It may be given the
   whole mesh: axes that are in use already are left out. As jax.shard_map with axis_names.
   Errors (kept by the trace): an unsound mesh; an axis that a shard_map around this one takes by hand; a mesh of axes that are
   automatic around it and others; specs that name automatic axes; specs of another number than there are operands or results; one
   that has more entries than there are dimensions, or does not divide; the body's own. */
void ax_shard_map(const ax_mesh *mesh, const char *specs, ax_fn body, uint32_t in_count, const ax_value *in, uint32_t out_count,
                  ax_value *out);
void ax_shard_map_unchecked(const ax_mesh *mesh, const char *specs, ax_fn body, uint32_t in_count, const ax_value *in,
                            uint32_t out_count, ax_value *out);
void ax_shard_map_manual(const ax_mesh *mesh, const char *names, const char *specs, ax_fn body, uint32_t in_count,
                         const ax_value *in, uint32_t out_count, ax_value *out);
/* x, outside of shard_map, laid over fewer axes of `mesh`: "data+model,_ -> data" gathers dimension 0 over model. Each dimension
   keeps some of the first of its axes, so that by value the result is x. As jax.lax's top_level_all_gather with multi_dim; the
   transpose takes each device's part of the cotangent.
   Errors (kept by the trace): a spec of another axis, or of one that does not come first; those of shard_map. */
ax_value ax_top_level_all_gather(ax_value x, const ax_mesh *mesh, const char *specs);
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
#ifndef __cplusplus
#define AX_SHARDED(mesh_, specs_, ...) \
  ax_sharded_function(&(ax_sharded){.mesh = (mesh_), .specs = (specs_), .body = __VA_ARGS__, .call = AX_SHARDED_AT})
#endif

#pragma GCC visibility pop

#ifndef __cplusplus /* lists, with their counts (axle/type.h) */
#define ax_pshuffle(x, axes, perm) AX_LINED(pshuffle, x, axes, AX_COUNTED(int64_t, perm))
#define ax_shard_map(mesh, specs, body, in, out) \
  AX_LINED_VOID(shard_map, mesh, specs, body, AX_COUNTED(ax_value, in), AX_COUNTED(ax_value, out))
#define ax_shard_map_unchecked(mesh, specs, body, in, out) \
  AX_LINED_VOID(shard_map_unchecked, mesh, specs, body, AX_COUNTED(ax_value, in), AX_COUNTED(ax_value, out))
#define ax_shard_map_manual(mesh, names, specs, body, in, out) \
  AX_LINED_VOID(shard_map_manual, mesh, names, specs, body, AX_COUNTED(ax_value, in), AX_COUNTED(ax_value, out))
#endif

#ifndef AXLE_NO_LINES /* axle/line.h */
#define ax_psum(x, ...) AX_LINED(psum, AX_X(x), __VA_ARGS__)
#define ax_pmean(x, ...) AX_LINED(pmean, AX_X(x), __VA_ARGS__)
#define ax_pmax(x, ...) AX_LINED(pmax, AX_X(x), __VA_ARGS__)
#define ax_pmin(x, ...) AX_LINED(pmin, AX_X(x), __VA_ARGS__)
#define ax_all_gather(...) AX_LINED(all_gather, __VA_ARGS__)
#define ax_all_gather_invariant(...) AX_LINED(all_gather_invariant, __VA_ARGS__)
#define ax_all_gather_reduced(...) AX_LINED(all_gather_reduced, __VA_ARGS__)
#define ax_psum_scatter(...) AX_LINED(psum_scatter, __VA_ARGS__)
#define ax_all_to_all(...) AX_LINED(all_to_all, __VA_ARGS__)
#define ax_ppermute(...) AX_LINED(ppermute, __VA_ARGS__)
#define ax_top_level_all_gather(...) AX_LINED(top_level_all_gather, __VA_ARGS__)
#define ax_pargmax(...) AX_LINED(pargmax, __VA_ARGS__)
#define ax_pargmin(...) AX_LINED(pargmin, __VA_ARGS__)
#define ax_pswapaxes(...) AX_LINED(pswapaxes, __VA_ARGS__)
#define ax_pbroadcast(...) AX_LINED(pbroadcast, __VA_ARGS__)
#define ax_pbroadcast_dynamic(...) AX_LINED(pbroadcast_dynamic, __VA_ARGS__)
#define ax_psend(...) AX_LINED(psend, __VA_ARGS__)
#define ax_precv(...) AX_LINED(precv, __VA_ARGS__)
#define ax_create_token() ax_lined_value((ax_create_token)(), AX_CALL("create_token"))
#define ax_ragged_all_to_all(...) AX_LINED(ragged_all_to_all, __VA_ARGS__)
#define ax_axis_index(...) AX_LINED(axis_index, __VA_ARGS__)
#define ax_axis_size(...) AX_LINED_ANY(axis_size, __VA_ARGS__)
#define ax_pvary(...) AX_LINED(pvary, __VA_ARGS__)
#define ax_preduced(...) AX_LINED(preduced, __VA_ARGS__)
#define ax_reduced_vary_cast(...) AX_LINED(reduced_vary_cast, __VA_ARGS__)
#define ax_vary_unreduced_cast(...) AX_LINED(vary_unreduced_cast, __VA_ARGS__)
#define ax_pcast(...) AX_LINED(pcast, __VA_ARGS__)
#define ax_unreduced_psum(...) AX_LINED(unreduced_psum, __VA_ARGS__)
#define ax_unreduced_pmax(...) AX_LINED(unreduced_pmax, __VA_ARGS__)
#define ax_unreduced_pmin(...) AX_LINED(unreduced_pmin, __VA_ARGS__)
#define ax_unreduced_psum_scatter(...) AX_LINED(unreduced_psum_scatter, __VA_ARGS__)
#define ax_psum_invariant(...) AX_LINED(psum_invariant, __VA_ARGS__)
#define ax_done(...) AX_LINED(done, __VA_ARGS__)
#define ax_pshift(...) AX_LINED(pshift, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
