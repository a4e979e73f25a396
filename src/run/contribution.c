#include "run/contribution.h"

#include "run/pieces.h"

/* Where it is put. */
typedef struct targets {
  const ax_push *push;
  const ax_instr *instr;
  const ax_activation *view;
  const ax_party *own;
  ax_kernel_code code;
  uint32_t count;
  int64_t step; /* bytes from the beginning of a result to the part of this contribution */
} targets;

static inline targets targets_of(const ax_contribution *c, const ax_activation *view, const ax_instr *instr) {
  const ax_push *push = c->push;
  const ax_exchange *x = push->exchange;
  const uint32_t count = x->peers == AX_PEERS_ONE ? 1 : c->own->count;
  return (targets){.push = push, .instr = instr, .view = view, .own = c->own,
                   .code = ax_push_code(push, x->combine != AX_SCALAR_NONE && c->number > 0),
                   .count = x->alone && c->number != x->source ? 0 : count, .step = c->number * x->dst_step * push->out_item};
}

static inline uint32_t peer_at(const targets *t, uint32_t i) { return t->push->crossing->held[t->own->first + i]; }

/* NULL: what the i-th member here has gets nothing of it. */
static inline char *target(const targets *t, const ax_contribution *c, uint32_t i) {
  const ax_push *push = t->push;
  if (push->exchange->peers == AX_PEERS_ONE) return (char *)ax_address(t->view, &t->instr->refs[1]) + t->step;
  if (push->exchange->peers == AX_PEERS_PAIRS && push->targets[c->number] != peer_at(t, i)) return NULL;
  return ax_push_result(t->view, t->instr, peer_at(t, i)) + t->step;
}

void ax_contribution_put(const ax_contribution *c, const ax_activation *view, const ax_instr *instr) {
  const targets t = targets_of(c, view, instr);
  const ax_push *push = c->push;
  const int64_t rows = push->outer_rank > 0 ? ax_dims_elems(push->outer_rank, push->exchange->dims) : 1;
  for (uint32_t i = 0; i < t.count; i++) {
    char *dst = target(&t, c, i);
    const int64_t piece = push->exchange->peers == AX_PEERS_ONE ? 0 : c->dense ? i : peer_at(&t, i);
    const char *src = c->src + piece * c->piece * push->item;
    const ax_push_rows where = {src, dst, c->stride, push->exchange->dst_stride, push->out_item};
    if (dst == NULL) continue;
    if (push->outer_rank > 0) ax_push_put_rows(push, t.code, &where, 0, rows);
    else ax_push_put_run(push, t.code, src, dst + c->range.begin * push->out_item, 0, c->range.end - c->range.begin);
  }
}

/* --- Reading where it lies --- */

enum { block_bytes = 64 << 10 };

typedef struct reading {
  ax_remote *remote;
  const ax_delivery *delivery;
  const ax_contribution *from;
  const targets *to;
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
    char *dst = target(d->to, d->from, i);
    if (dst == NULL) continue;
    dst += (ax_push_row_offset(push, &where, row) + first) * push->out_item;
    ax_push_put_run(push, d->to->code, d->block, dst, 0, count);
  }
  return AX_OK;
}

static ax_status put_rows(const reading *d, int64_t piece, int64_t first, int64_t count) {
  const ax_push *push = d->from->push;
  AX_TRY(read_elems(d, piece, first * push->run, d->block, count * push->run));
  for (uint32_t i = d->begin; i < d->end; i++) {
    char *dst = target(d->to, d->from, i);
    const ax_push_rows rows = {d->block, dst, NULL, push->exchange->dst_stride, push->out_item};
    if (dst != NULL) ax_push_put_rows(push, d->to->code, &rows, first, first + count);
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
  char *only = d->end - d->begin == 1 ? target(d->to, d->from, d->begin) : NULL;
  if (push->outer_rank == 0 && only != NULL && d->to->code == NULL) /* in its place, without a block */
    return read_elems(d, piece, 0, only + range.begin * push->out_item, range.end - range.begin);
  if (push->outer_rank == 0) return put_row(d, first, 0, range);
  for (int64_t r = 0; r < rows && at_once > 0; r += at_once) AX_TRY(put_rows(d, piece, r, ax_least(at_once, rows - r)));
  for (int64_t r = 0; r < rows && at_once == 0; r++) AX_TRY(put_row(d, first + r * push->run, r, (ax_elems){0, push->run}));
  return AX_OK;
}

ax_status ax_contribution_read(ax_remote *r, const ax_contribution *c, const ax_activation *view, const ax_instr *instr,
                               const ax_delivery *delivery) {
  const targets t = targets_of(c, view, instr);
  char *block = ax_alloc(block_bytes);
  ax_status status = block != NULL ? AX_OK : ax_out_of_memory(block_bytes);
  reading d = {r, delivery, c, &t, 0, t.count, block};
  if (c->piece == 0 && status == AX_OK) status = put_piece(&d, 0);
  for (uint32_t i = 0; c->piece != 0 && i < t.count && status == AX_OK; i++) {
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
