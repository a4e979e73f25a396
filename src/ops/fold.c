/* Combining along dimensions, as equations. The neighbours of a group are one expression of the kernel that these become, a tree of
   pairs: ((0 1) (2 3)) ((4 5) (6 7)). What they come to is combined likewise, until one is left:

     size 37     groups of 16: 2      5 are left
     size  2     a group of 2: 1
     last        that one, then the 5, which were combined by themselves

   So each pass reads what the one before it wrote, a 16th of its size. */
#include "ops/fold.h"

#include <string.h>

#include "ops/window.h"
#include "prim/shape.h"

typedef struct folding {
  const ax_program *body;
  uint32_t count; /* arrays that are reduced together */
  ax_value *pair; /* room for operands of the body */
} folding;

/* a = a and then b */
static void combine(const folding *f, ax_value *a, const ax_value *b) {
  memcpy(f->pair, a, f->count * sizeof a[0]);
  memcpy(f->pair + f->count, b, f->count * sizeof b[0]);
  if (!ax_failed()) ax_scalars_call(f->body, f->pair, a);
}

/* Combines `size` neighbours along d, from `start` on, at each of `places`: in pairs, then pairs of pairs. */
static ax_value *neighbours(const folding *f, const ax_value *x, uint32_t d, int64_t start, int64_t size, int64_t places) {
  ax_value *part = ax_trace_alloc((size_t)size * f->count * sizeof part[0]);
  for (int64_t j = 0; part != NULL && j < size; j++)
    for (uint32_t k = 0; k < f->count && !ax_failed(); k++)
      part[j * f->count + k] = ax_window_part(x[k], d, start + j, places, size);
  for (int64_t half = 1; half < size && !ax_failed(); half *= 2)
    for (int64_t j = 0; j + half < size; j += 2 * half) combine(f, part + j * f->count, part + (j + half) * f->count);
  return part;
}

/* Neighbours that are one expression: fewer of a long body. To round to a float of a byte takes as long as many operations. */
static int64_t group_of(const ax_program *body) {
  int64_t work = 0;
  for (uint32_t e = 0; e < body->eqn_count; e++) work += ax_is_byte_float(body->types[body->eqns[e].out].dtype) ? 8 : 1;
  return work <= 8 ? 16 : work <= 20 ? 8 : 4;
}

/* Reduces dimension d, of which something is there, to 1. What does not fill a group is combined last. */
static void reduce_dim(const folding *f, ax_value *x, uint32_t d) {
  enum { most_levels = 64 };
  const int64_t group = group_of(f->body);
  ax_value *rest[most_levels];
  uint32_t levels = 0;
  for (int64_t size = ax_failed() ? 1 : ax_typeof(x[0]).dims[d]; size > 1 && !ax_failed();) {
    const int64_t taken = size < group ? size : group, places = size / taken, left = size % taken;
    if (left > 0) rest[levels++] = neighbours(f, x, d, size - left, left, 1);
    const ax_value *made = neighbours(f, x, d, 0, taken, places);
    if (made != NULL) memcpy(x, made, f->count * sizeof x[0]);
    size = places;
  }
  while (levels > 0 && !ax_failed()) combine(f, x, rest[--levels]);
}

/* Merges each run of reduced dimensions into one, so that a[i] of them are left: their numbers. */
static ax_dims merge_runs(ax_value *x, uint32_t count, const ax_dims *axes) {
  const ax_type type = ax_typeof(x[0]);
  int64_t dims[AX_MAX_RANK];
  uint32_t rank = 0;
  ax_dims runs = {0};
  for (uint32_t d = 0; d < type.rank; d++) {
    const bool reduced = ax_dims_has(axes, d), follows = reduced && d > 0 && ax_dims_has(axes, d - 1);
    if (follows) dims[rank - 1] *= type.dims[d];
    else dims[rank++] = type.dims[d];
    if (reduced && !follows) runs.v[runs.count++] = rank - 1;
  }
  for (uint32_t k = 0; k < count && rank < type.rank; k++) x[k] = ax_reshape(x[k], AX_LIST(rank, dims));
  return runs;
}

void ax_fold(const ax_program *body, uint32_t count, ax_value *x, const ax_dims *axes) {
  const folding f = {.body = body, .count = count, .pair = ax_trace_alloc(2 * (size_t)count * sizeof f.pair[0])};
  if (f.pair == NULL || ax_failed()) return;
  const ax_type type = ax_typeof(x[0]);
  const ax_dims left = ax_dims_left(&type, axes), runs = merge_runs(x, count, axes);
  for (uint32_t i = runs.count; i-- > 0;) reduce_dim(&f, x, (uint32_t)runs.v[i]);
  for (uint32_t k = 0; k < count && !ax_failed(); k++) x[k] = ax_reshape(x[k], AX_LIST(left.count, left.v));
}
