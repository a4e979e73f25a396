#include "run/contribution.h"

#include "run/pieces.h"

/* How many results here it may be put into. */
static inline uint32_t target_count(const ax_contribution *c) {
  const ax_exchange *x = c->push->exchange;
  if (x->alone && c->number != x->source) return 0;
  return x->peers == AX_PEERS_ONE ? 1 : c->own->count;
}

static inline ax_kernel_code code_for(const ax_contribution *c) {
  return ax_push_code(c->push, c->push->exchange->combine != AX_SCALAR_NONE && c->number > 0);
}

static inline uint32_t peer_at(const ax_contribution *c, uint32_t i) { return c->push->crossing->held[c->own->first + i]; }

/* Its place in the result of the i-th member here. NULL: that gets nothing of it. */
static inline char *target(const ax_contribution *c, const ax_activation *view, const ax_instr *instr, uint32_t i) {
  const ax_push *push = c->push;
  const ax_exchange *x = push->exchange;
  const int64_t place = c->number * x->dst_step * push->out_item;
  if (x->peers == AX_PEERS_ONE) return (char *)ax_address(view, &instr->refs[1]) + place;
  if (x->peers == AX_PEERS_PAIRS && push->targets[c->number] != peer_at(c, i)) return NULL;
  return ax_push_result(view, instr, peer_at(c, i)) + place;
}

void ax_contribution_put(const ax_contribution *c, const ax_activation *view, const ax_instr *instr) {
  const ax_push *push = c->push;
  const ax_kernel_code code = code_for(c);
  const uint32_t count = target_count(c);
  for (uint32_t i = 0; i < count; i++) {
    char *dst = target(c, view, instr, i);
    if (dst == NULL) continue;
    const int64_t piece = push->exchange->peers == AX_PEERS_ONE ? 0 : c->dense ? i : peer_at(c, i);
    const char *src = c->src + piece * c->piece * push->item;
    if (push->outer_rank == 0) {
      ax_push_put_run(push, code, src, dst + c->range.begin * push->out_item, 0, c->range.end - c->range.begin);
    } else {
      const ax_push_rows where = {src, dst, c->stride, push->exchange->dst_stride, push->out_item};
      ax_push_put_rows(push, code, &where, 0, ax_dims_elems(push->outer_rank, push->exchange->dims));
    }
  }
}

/* --- Reading where it lies --- */

enum { block_bytes = 64 << 10 };

typedef struct reading {
  ax_remote *remote;
  const ax_delivery *delivery;
  const ax_contribution *from;
  const ax_activation *view;
  const ax_instr *instr;
  uint32_t begin, end; /* the targets that get this piece */
  char *block;         /* memory for a block */
} reading;

static ax_status read_elems(const reading *d, int64_t piece, int64_t elem, void *into, int64_t count) {
  const int64_t item = d->from->push->item;
  return ax_remote_read(d->remote, d->delivery, (size_t)((piece * d->from->piece + elem) * item), into, (size_t)(count * item));
}

/* Elements first to first + count - 1 of a row; of the payload, the first is number `elem`. */
static ax_status put_of_row(const reading *d, int64_t elem, int64_t row, int64_t first, int64_t count) {
  const ax_push *push = d->from->push;
  const ax_push_rows where = {.dst_stride = push->exchange->dst_stride};
  AX_TRY(read_elems(d, 0, elem, d->block, count));
  for (uint32_t i = d->begin; i < d->end; i++) {
    char *dst = target(d->from, d->view, d->instr, i);
    if (dst == NULL) continue;
    dst += (ax_push_row_offset(push, &where, row) + first) * push->out_item;
    ax_push_put_run(push, code_for(d->from), d->block, dst, 0, count);
  }
  return AX_OK;
}

static ax_status put_rows(const reading *d, int64_t piece, int64_t first, int64_t count) {
  const ax_push *push = d->from->push;
  AX_TRY(read_elems(d, piece, first * push->run, d->block, count * push->run));
  for (uint32_t i = d->begin; i < d->end; i++) {
    char *dst = target(d->from, d->view, d->instr, i);
    const ax_push_rows rows = {d->block, dst, NULL, push->exchange->dst_stride, push->out_item};
    if (dst != NULL) ax_push_put_rows(push, code_for(d->from), &rows, first, first + count);
  }
  return AX_OK;
}

/* Of a row, its elements in the range. begin: the first of them, in the payload. */
static ax_status put_row(const reading *d, int64_t begin, int64_t row, ax_elems range) {
  const int64_t at_once = block_bytes / d->from->push->item;
  for (int64_t e = range.begin; e < range.end; e += at_once)
    AX_TRY(put_of_row(d, begin + e - range.begin, row, e, ax_least(at_once, range.end - e)));
  return AX_OK;
}

static ax_status put_piece(const reading *d, int64_t piece) {
  const ax_push *push = d->from->push;
  const ax_elems range = d->from->range;
  const int64_t first = piece * d->from->piece, rows = ax_dims_elems(push->outer_rank, push->exchange->dims);
  const int64_t row_bytes = push->run * push->item, at_once = row_bytes > 0 ? block_bytes / row_bytes : rows;
  char *only = d->end - d->begin == 1 ? target(d->from, d->view, d->instr, d->begin) : NULL;
  if (push->outer_rank == 0 && only != NULL && code_for(d->from) == NULL) /* in its place, without a block */
    return read_elems(d, piece, 0, only + range.begin * push->out_item, range.end - range.begin);
  if (push->outer_rank == 0) return put_row(d, first, 0, range);
  for (int64_t r = 0; r < rows && at_once > 0; r += at_once) AX_TRY(put_rows(d, piece, r, ax_least(at_once, rows - r)));
  for (int64_t r = 0; r < rows && at_once == 0; r++) AX_TRY(put_row(d, first + r * push->run, r, (ax_elems){0, push->run}));
  return AX_OK;
}

ax_status ax_contribution_read(ax_remote *r, const ax_contribution *c, const ax_activation *view, const ax_instr *instr,
                               const ax_delivery *delivery) {
  const uint32_t count = target_count(c);
  char *block = ax_alloc(block_bytes);
  ax_status status = block != NULL ? AX_OK : ax_out_of_memory(block_bytes);
  reading d = {r, delivery, c, view, instr, 0, count, block};
  if (c->piece == 0 && status == AX_OK) status = put_piece(&d, 0);
  for (uint32_t i = 0; c->piece != 0 && i < count && status == AX_OK; i++) {
    d.begin = i;
    d.end = i + 1;
    status = put_piece(&d, i);
  }
  ax_free(block);
  return status;
}

/* --- What is sent --- */

uint32_t ax_pieces_for(const ax_push *push, const ax_party *party) {
  return push->exchange->peers == AX_PEERS_ALL && push->exchange->src_step != 0 ? party->count : 1;
}

const char *ax_piece_for(const ax_push *push, const char *src, const ax_party *party, uint32_t i) {
  const int64_t peer = push->exchange->peers == AX_PEERS_ALL ? push->crossing->held[party->first + i] : 0;
  return src + peer * push->exchange->src_step * push->item;
}

/* Pieces of several rows. */
static void write_rows(const ax_push *push, const char *src, const ax_party *party, char *out) {
  const int64_t elems = ax_part_elems(push), rows = ax_dims_elems(push->outer_rank, push->exchange->dims);
  int64_t stride[AX_MAX_RANK], elems_of_rows = push->run;
  for (uint32_t k = push->outer_rank; k-- > 0; elems_of_rows *= push->exchange->dims[k]) stride[k] = elems_of_rows;
  for (uint32_t i = 0; i < ax_pieces_for(push, party); i++) {
    char *piece = out + i * elems * push->item;
    ax_push_put_rows(push, NULL,
                     &(ax_push_rows){ax_piece_for(push, src, party, i), piece, push->exchange->src_stride, stride, push->item}, 0,
                     rows);
  }
}

void ax_pieces_write(const ax_push *push, const char *src, const ax_party *party, ax_elems range, char *out) {
  const size_t bytes = (size_t)((range.end - range.begin) * push->item);
  if (push->outer_rank > 0) {
    write_rows(push, src, party, out);
    return;
  }
  for (uint32_t i = 0; i < ax_pieces_for(push, party) && bytes > 0; i++) /* empty arrays have no address */
    memcpy(out + i * bytes, ax_piece_for(push, src, party, i) + range.begin * push->item, bytes);
}

ax_status ax_pieces_gather(const ax_push *push, const char *src, const ax_party *party, char **out) {
  const size_t bytes = (size_t)(ax_pieces_for(push, party) * ax_part_elems(push) * push->item);
  *out = ax_alloc(bytes);
  if (*out == NULL) return ax_out_of_memory(bytes);
  ax_pieces_write(push, src, party, (ax_elems){0, push->run}, *out);
  return AX_OK;
}
