/* Collectives between the devices along named mesh axes, and shard_map, in whose body they are used. Semantics: jax.lax
   (parallel.py). `axes`: "data" or "data,model"; members of a group are numbered row-major over the axes in that order, n in all.
   Errors (kept by the trace): an axis that is not in scope, a size that does not divide. */
#ifndef AXLE_COLLECTIVES_H
#define AXLE_COLLECTIVES_H

#include "axle/program.h"

#ifdef __cplusplus
extern "C" {
#endif

ax_value ax_psum(ax_value x, const char *axes); /* varying -> invariant over axes; x is made varying first if it is not */
ax_value ax_pmean(ax_value x, const char *axes);
ax_value ax_pmax(ax_value x, const char *axes);
ax_value ax_pmin(ax_value x, const char *axes);
/* tiled: dimension `dimension` grows n times; otherwise a new dimension of n. The result stays typed varying. */
ax_value ax_all_gather(ax_value x, const char *axes, int64_t dimension, bool tiled);
ax_value ax_all_gather_invariant(ax_value x, const char *axes, int64_t dimension, bool tiled); /* ... invariant */
/* Sum over members; member i keeps part i of dimension `dimension` (tiled: of n equal parts; otherwise its size is n and it goes). */
ax_value ax_psum_scatter(ax_value x, const char *axes, int64_t dimension, bool tiled);
/* tiled: split_axis is cut in n parts, part i goes to member i, those received are joined along concat_axis; otherwise
   split_axis has size n and goes, and a new dimension of n appears at concat_axis. */
ax_value ax_all_to_all(ax_value x, const char *axes, int64_t split_axis, int64_t concat_axis, bool tiled);
/* pairs: (source, target). A member that is no target gets zeros. Duplicate sources or targets are an error. */
ax_value ax_ppermute(ax_value x, const char *axes, const int64_t (*pairs)[2], uint32_t pair_count);
ax_value ax_axis_index(const char *axes); /* s32[], varying over axes */
int64_t ax_axis_size(const char *axes);   /* a number, known while tracing; 0 and an error for an unknown axis */
ax_value ax_pvary(ax_value x, const char *axes);
/* to: "varying", ("invariant" is what psum and its like are for). axes already varying are an error, as in JAX. */
ax_value ax_pcast(ax_value x, const char *axes, const char *to);
/* The pair: other work proceeds between start and done. done returns psum's result. */
ax_value ax_psum_start(ax_value x, const char *axes);
ax_value ax_psum_done(ax_value started);

/* Runs `body` on each device of `mesh`: operand i is cut by in_specs[i] (see ax_spec), the results are put together by
   out_specs. A result that varies over an axis its spec does not name is refused, unless `unchecked`, which turns the
   varying/invariant types off: then such a result is taken from the first device along that axis. */
typedef struct ax_shard_map_options {
  const ax_mesh *mesh;
  const char *const *in_specs;
  const char *const *out_specs;
  bool unchecked;
} ax_shard_map_options;
void ax_shard_map(const ax_shard_map_options *options, ax_function body, void *context, const ax_value *in,
                  uint32_t in_count, ax_value *out, uint32_t out_count);

#ifdef __cplusplus
}
#endif
#endif
