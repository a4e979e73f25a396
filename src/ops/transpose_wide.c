/* Elements of 16 bytes are wider than what kernels turn in registers. So they are moved like arrays of the host (base/strided.c), in parts. */
#include "ops/transpose_wide.h"

#include "base/strided.h"
#include "plan/plan.h"
#include "prim/shape.h"

enum { element_bytes = 16 };
_Static_assert((int)AX_MAX_RANK <= (int)AX_STRIDED_RANK, "arrays of any rank are moved");

/* Dimensions of the result, of which none is 1 and no two lie behind one another on both sides: so the longest, which the parts share, is long. */
typedef struct turning {
  uint32_t rank, cut, parts;
  int64_t dims[AX_MAX_RANK], to[AX_MAX_RANK], from[AX_MAX_RANK]; /* strides in bytes */
} turning;

static ax_status turn_part(const void *data, void *const *memory, uint32_t part) {
  const turning *t = data;
  const int64_t extent = t->dims[t->cut], begin = extent * part / t->parts, end = extent * (part + 1) / t->parts;
  int64_t dims[AX_MAX_RANK];
  for (uint32_t d = 0; d < t->rank; d++) dims[d] = d == t->cut ? end - begin : t->dims[d];
  ax_strided_move(t->rank, dims, element_bytes, (ax_strided_place){(char *)memory[1] + begin * t->to[t->cut], t->to},
                  (ax_strided_place){(char *)memory[0] + begin * t->from[t->cut], t->from});
  return AX_OK;
}

static turning turning_of(const ax_type *in, const ax_dims *permutation) {
  turning t = {0};
  int64_t strides[AX_MAX_RANK], dense = element_bytes;
  ax_dense_strides(in->rank, in->dims, strides);
  for (uint32_t d = 0; d < permutation->count; d++) {
    const int64_t extent = in->dims[permutation->v[d]], stride = strides[permutation->v[d]] * element_bytes;
    if (extent == 1) continue;
    if (t.rank > 0 && t.from[t.rank - 1] == stride * extent) { /* it lies behind the one before, here as there */
      t.dims[t.rank - 1] *= extent;
      t.from[t.rank - 1] = stride;
      continue;
    }
    t.dims[t.rank] = extent;
    t.from[t.rank++] = stride;
  }
  for (uint32_t d = t.rank; d-- > 0; dense *= t.dims[d]) {
    t.to[d] = dense;
    if (t.dims[d] >= t.dims[t.cut]) t.cut = d;
  }
  return t;
}

ax_status ax_lower_transpose_wide(ax_lower *lower, const ax_dims *permutation, uint32_t in, uint32_t out) {
  const ax_type from = *ax_lower_type(lower, in);
  turning t = turning_of(&from, permutation);
  const double time = 0.8 * (double)ax_type_elems(&from);
  uint32_t buffers[] = {in, out};
  t.parts = ax_routine_parts(time, t.dims[t.cut]);
  return ax_lower_routine(lower,
                          &(ax_routine){.run = turn_part, .data = &t, .in_count = 1, .out_count = 1, .parts = t.parts, .buffers = buffers,
                                        .moves = true, .time = time},
                          sizeof t);
}
