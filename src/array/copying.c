/* Copies, box by box; large boxes in pieces. A piece is also a box, and is dense in the destination: one index along the first
   dimensions, a range along the next one, and the whole of the others. */
#include "array/copying.h"

#include <string.h>

#include "array/runtime.h"
#include "mesh/sharding.h"

enum {
  worth_sharing = 4 << 20, /* bytes: below that, waking a thread takes as long as copying */
  piece_bytes = 1 << 20,
  most_pieces = 256
};

static void copy_box(const ax_blocks *from, const ax_type *to, const int64_t *offset, void *data) {
  const ax_type *block = from->type;
  const uint32_t rank = block->rank;
  int64_t first[AX_MAX_RANK], last[AX_MAX_RANK], part[AX_MAX_RANK] = {0}, begin[AX_MAX_RANK];
  for (uint32_t d = 0; d < rank; d++) {
    first[d] = part[d] = offset[d] / block->dims[d];
    last[d] = (offset[d] + to->dims[d] - 1) / block->dims[d];
  }
  for (bool more = true; more;) {
    for (uint32_t d = 0; d < rank; d++) begin[d] = part[d] * block->dims[d];
    ax_shard_copy(block, begin, from->part[ax_shard_number(from->spec, from->mesh, part)], to, offset, data);
    more = false;
    for (uint32_t d = rank; d-- > 0 && !more;) {
      more = part[d] < last[d];
      part[d] = more ? part[d] + 1 : first[d];
    }
  }
}

typedef struct copying {
  const ax_blocks *from;
  const ax_type *to;
  const int64_t *offset;
  unsigned char *data;
  uint32_t dim;        /* dimension along which pieces are ranges */
  int64_t outer, cuts; /* indices along the dimensions before it; ranges for each */
  _Atomic int64_t next;
} copying;

static void plan_pieces(copying *c, int64_t wanted) {
  c->outer = 1;
  c->dim = 0;
  while (c->dim + 1 < c->to->rank && c->outer * c->to->dims[c->dim] < wanted) c->outer *= c->to->dims[c->dim++];
  c->cuts = (wanted + c->outer - 1) / c->outer;
  if (c->to->rank == 0) c->cuts = 1;
  else if (c->cuts > c->to->dims[c->dim]) c->cuts = c->to->dims[c->dim];
}

static void copy_piece(const copying *c, int64_t piece) {
  ax_type to = *c->to;
  int64_t offset[AX_MAX_RANK], index = piece / c->cuts, cut = piece % c->cuts, elems = 1;
  const int64_t rows = to.dims[c->dim], row = rows * cut / c->cuts, end = rows * (cut + 1) / c->cuts;
  memcpy(offset, c->offset, sizeof offset[0] * to.rank);
  for (uint32_t d = c->dim + 1; d < to.rank; d++) elems *= to.dims[d];
  unsigned char *data = c->data + (size_t)((index * rows + row) * elems) * ax_dtype_bytes(to.dtype);
  offset[c->dim] += row;
  to.dims[c->dim] = end - row;
  for (uint32_t d = c->dim; d-- > 0; index /= c->to->dims[d]) {
    offset[d] += index % c->to->dims[d];
    to.dims[d] = 1;
  }
  copy_box(c->from, &to, offset, data);
}

static bool work(void *context, const ax_helper *helper) {
  copying *c = context;
  (void)helper; /* pieces are short: helpers finish theirs */
  for (int64_t piece; (piece = atomic_fetch_add_explicit(&c->next, 1, memory_order_relaxed)) < c->outer * c->cuts;)
    copy_piece(c, piece);
  return false;
}

static void nudge(void *context) { (void)context; } /* no helper sleeps */

void ax_blocks_copy(ax_runtime *runtime, const ax_blocks *from, const ax_type *to, const int64_t *offset, void *data) {
  const int64_t bytes = ax_type_elems(to) * (int64_t)ax_dtype_bytes(to->dtype);
  if (bytes == 0) return;
  if (bytes < worth_sharing || !ax_workers_any(runtime->executor.workers)) {
    copy_box(from, to, offset, data);
    return;
  }
  copying c = {.from = from, .to = to, .offset = offset, .data = data};
  plan_pieces(&c, bytes / piece_bytes < most_pieces ? bytes / piece_bytes : most_pieces);
  atomic_init(&c.next, 0);
  ax_workers_call(runtime->executor.workers,
                  &(ax_job){.work = work, .nudge = nudge, .context = &c, .wanted = runtime->options.workers - 1});
}
