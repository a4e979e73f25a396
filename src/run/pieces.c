/* See pieces.h. A piece is runs of contiguous elements. The runs of all pieces are numbered by source, by peer, and by the outer
   dimensions of a piece. Two of these indices are taken together, and planes of runs along them are transposed in tiles:

     across   the index along which runs are closest in the sources: usually the peer
     down     the index along which runs are closest in the results: usually the source

                      across                              down
     source 0   r0 r1 r2 r3 ..              peer 0   r0 s0 t0 ..
     source 1   s0 s1 s2 s3 ..     -->      peer 1   r1 s1 t1 ..
     source 2   t0 t1 t2 t3 ..              peer 2   r2 s2 t2 ..

   So each cache line of either side is touched few times, however short the runs are. */
#include "run/pieces.h"

#include "run/share.h"
#include "run/transpose.h"

enum { by_peer = AX_MAX_RANK, by_source, by_none, tile = 64, wide_tile = 256, shared_bytes = 1 << 18 };

typedef struct grid {
  const ax_sources *sources;
  const ax_push *push;
  const ax_exchange *x;
  uint32_t begin, peers;   /* the peers are numbered from `begin` */
  uint32_t across, down;   /* an outer dimension, by_peer, by_source or by_none */
} grid;

static int64_t extent(const grid *g, uint32_t index) {
  if (index == by_peer) return g->peers;
  if (index == by_source) return g->sources->count;
  return index == by_none ? 1 : g->x->dims[index];
}

/* From one run to the next along an index, in bytes of a source or of a result. */
static int64_t src_stride(const grid *g, uint32_t index) {
  return index >= by_source ? 0 : g->sources->item * (index == by_peer ? g->x->src_step : g->x->src_stride[index]);
}
static int64_t dst_stride(const grid *g, uint32_t index) {
  if (index == by_peer || index == by_none) return 0;
  return g->sources->item * (index == by_source ? g->x->dst_step : g->x->dst_stride[index]);
}

static uint32_t member_of(const grid *g, uint32_t source) {
  return g->sources->numbers != NULL ? g->sources->numbers[source] : source;
}
static const char *source_at(const grid *g, uint32_t source) {
  return g->sources->at != NULL ? g->sources->at[source] : ax_push_operand(g->sources->activation, g->sources->instr, source);
}
static char *result_at(const grid *g, uint32_t peer) {
  return ax_push_result(g->sources->activation, g->sources->instr, g->begin + peer);
}

/* Takes the index with the least stride of more than one run; `first` if there are several. */
static uint32_t closest(const grid *g, uint32_t first, uint32_t without, int64_t (*stride)(const grid *, uint32_t)) {
  uint32_t best = extent(g, first) > 1 ? first : (uint32_t)by_none;
  for (uint32_t d = 0; d < g->push->outer_rank; d++)
    if (d != without && g->x->dims[d] > 1 && (best == by_none || stride(g, d) < stride(g, best))) best = d;
  return best;
}

/* --- Planes --- */

typedef struct plane { /* the runs of one source, one peer and one index of a piece, but for what goes across and down */
  uint32_t source, peer;
  int64_t from, to; /* bytes into a source, and into a result */
} plane;

/* Says how many sources, from `first` on, are members that follow each other, so that their runs do as well. */
static uint32_t stretch(const grid *g, uint32_t first, uint32_t most) {
  uint32_t count = 1;
  while (count < most && member_of(g, first + count) == member_of(g, first) + count) count++;
  return count;
}

/* Copies one row of tiles: the runs of `rows` rows of results. */
static void copy_rows(const grid *g, const plane *at, char *const *rows, uint32_t row_count, int64_t from) {
  const int64_t item = g->push->run * g->sources->item, down = extent(g, g->down);
  const char *src[tile];
  char *dst[wide_tile];
  for (int64_t q = 0; q < down;) {
    uint32_t most = (uint32_t)(down - q < tile ? down - q : tile), count = most;
    int64_t to = q * dst_stride(g, g->down);
    if (g->down == by_source) {
      count = stretch(g, (uint32_t)q, most);
      to = member_of(g, (uint32_t)q) * dst_stride(g, by_source);
    }
    for (uint32_t i = 0; i < count; i++)
      src[i] = g->down == by_source ? source_at(g, (uint32_t)q + i) + from
                                    : source_at(g, at->source) + from + (q + i) * src_stride(g, g->down);
    for (uint32_t i = 0; i < row_count; i++) dst[i] = rows[i] + to;
    ax_transpose_rows(dst, dst_stride(g, g->down), row_count, src, src_stride(g, g->across), count, item);
    q += count;
  }
}

static void copy_plane(const grid *g, const plane *at) {
  const int64_t across = extent(g, g->across);
  char *rows[wide_tile];
  for (int64_t p = 0; p < across; p += wide_tile) {
    uint32_t count = (uint32_t)(across - p < wide_tile ? across - p : wide_tile);
    for (uint32_t i = 0; i < count; i++)
      rows[i] = at->to + (g->across == by_peer ? result_at(g, (uint32_t)p + i)
                                               : result_at(g, at->peer) + (p + i) * dst_stride(g, g->across));
    copy_rows(g, at, rows, count, at->from + p * src_stride(g, g->across));
  }
}

/* Goes through the other outer dimensions of a piece. */
static void copy_planes(const grid *g, plane at) {
  const int64_t from = at.from, to = at.to;
  int64_t index[AX_MAX_RANK] = {0};
  for (;;) {
    copy_plane(g, &at);
    uint32_t d = g->push->outer_rank;
    while (d-- > 0)
      if (d != g->across && d != g->down) {
        if (++index[d] < g->x->dims[d]) break;
        index[d] = 0;
      }
    if (d == AX_NONE) return;
    at.from = from;
    at.to = to;
    for (uint32_t k = 0; k < g->push->outer_rank; k++) {
      at.from += index[k] * src_stride(g, k);
      at.to += index[k] * dst_stride(g, k);
    }
  }
}

/* --- All pieces --- */

void ax_pieces_put(const ax_sources *sources, uint32_t begin, uint32_t end) {
  const ax_push *push = sources->instr->push;
  grid g = {.sources = sources, .push = push, .x = push->exchange, .begin = begin, .peers = end - begin};
  if (push->elems == 0) return;
  g.across = closest(&g, by_peer, by_none, src_stride);
  g.down = closest(&g, by_source, g.across, dst_stride);
  const uint32_t source_count = g.down == by_source ? 1 : sources->count, peer_count = g.across == by_peer ? 1 : g.peers;
  for (uint32_t i = 0; i < source_count; i++)
    for (uint32_t j = 0; j < peer_count; j++)
      copy_planes(&g, (plane){i, j, (begin + j) * src_stride(&g, by_peer),
                              g.down == by_source ? 0 : member_of(&g, i) * dst_stride(&g, by_source)});
}

typedef struct shared_pieces {
  const ax_sources *sources;
  uint32_t peers, each; /* of a part */
} shared_pieces;

static ax_status put_part(const void *context, ax_worker_slot *worker_slot, uint32_t part) {
  const shared_pieces *s = context;
  (void)worker_slot;
  uint32_t begin = part * s->each, end = begin + s->each < s->peers ? begin + s->each : s->peers;
  ax_pieces_put(s->sources, begin, end);
  return AX_OK;
}

void ax_pieces_put_all(ax_execution *run, ax_worker_slot *worker_slot, const ax_sources *sources) {
  enum { least_parts = 4 };
  const ax_push *push = sources->instr->push;
  const uint32_t peers = ax_push_peers(push);
  shared_pieces s = {sources, peers, peers / least_parts < wide_tile ? peers / least_parts : wide_tile};
  if (s.each == 0 || sources->count * push->elems * sources->item < shared_bytes) {
    ax_pieces_put(sources, 0, peers);
    return;
  }
  worker_slot->share.activation = (uint32_t)(sources->activation - run->activations);
  worker_slot->share.instr = (uint32_t)(sources->instr - sources->activation->code->instrs);
  ax_status status = ax_share_parts(run, worker_slot, put_part, &s, (peers + s.each - 1) / s.each);
  assert(status == AX_OK); /* copying cannot fail */
  (void)status;
}
