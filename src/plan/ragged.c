/* The work of a ragged exchange's members, and the errors about slices that do not fit. */
#include "plan/ragged.h"

#include <string.h>

/* --- Members --- */

/* Member numbers are mixed radix over devices' and local digits, as their axes stood: digits are taken off from the last axis
   on. */
typedef struct digits {
  int64_t rest, index[2], step[2]; /* of the device, and among those on it */
} digits;

static void take_digit(digits *d, int which, int64_t size) {
  d->index[which] += d->rest % size * d->step[which];
  d->step[which] *= size;
  d->rest /= size;
}

ax_status ax_ragged_number(ax_arena *arena, uint32_t local_count, const int64_t *at, const int64_t *local, ax_ragged_shape *shape) {
  size_t bytes = (size_t)shape->members * sizeof(uint32_t);
  uint32_t *number = ax_arena_alloc(arena, bytes), *where = ax_arena_alloc(arena, bytes);
  if (number == NULL || where == NULL) return ax_out_of_memory(bytes);
  for (int64_t m = 0; m < shape->members; m++) {
    digits d = {.rest = m, .step = {1, 1}};
    for (uint32_t k = local_count; k-- > 0;) {
      take_digit(&d, 0, at[k] / d.step[0]);
      take_digit(&d, 1, local[k]);
    }
    take_digit(&d, 0, shape->devices / d.step[0]);
    where[m] = (uint32_t)(d.index[0] * shape->local + d.index[1]);
    number[where[m]] = (uint32_t)m;
  }
  shape->number = number;
  shape->where = where;
  return AX_OK;
}

/* --- Tables --- */

static int64_t count_at(const ax_counts *counts, int64_t i) {
  if (counts->dtype == AX_S32) return ((const int32_t *)counts->data)[i];
  return ax_number_load(counts->dtype, counts->data, i).i; /* u64 beyond s64 is negative */
}

/* Slice s from one member to another, in the sender's arrays. */
static int64_t slice_number(const ax_ragged_shape *shape, uint32_t receiver, int64_t s) { return receiver * shape->each + s; }

/* The index at which the arrays of batch element `batch` begin for local member `local`. */
static int64_t counts_begin(const ax_ragged_shape *shape, int64_t batch, int64_t local) {
  return (batch * shape->local + local) * shape->members * shape->each;
}

void ax_ragged_pack(const ax_ragged_shape *shape, const ax_counts *from, const ax_counts *size, const ax_counts *to,
                    ax_piece *table) {
  for (int64_t f = 0; f < shape->devices; f++)
    for (int64_t b = 0; b < shape->batch; b++)
      for (int64_t mine = 0; mine < shape->local; mine++)
        for (int64_t l = 0; l < shape->local; l++)
          for (int64_t s = 0; s < shape->each; s++) {
            int64_t i = counts_begin(shape, b, mine) + slice_number(shape, shape->number[f * shape->local + l], s);
            *table++ = (ax_piece){count_at(from, i), count_at(size, i), count_at(to, i)};
          }
}

/* The index in a table, sent or received, of the slices between two local members of two devices. */
static int64_t table_at(const ax_ragged_shape *shape, int64_t device, int64_t batch, int64_t from, int64_t to) {
  return (((device * shape->batch + batch) * shape->local + from) * shape->local + to) * shape->each;
}

/* The slices that member `number` sends to local member l of the receiver. */
static const ax_piece *slices_from(const ax_taking *t, int64_t batch, uint32_t l, int64_t number) {
  uint32_t where = t->shape->where[number], local = (uint32_t)t->shape->local;
  return t->received + table_at(t->shape, where / local, batch, where % local, l);
}

/* The slices that local member l sends to member `number`. */
static const ax_piece *slices_to(const ax_taking *t, int64_t batch, uint32_t l, int64_t number) {
  uint32_t where = t->shape->where[number], local = (uint32_t)t->shape->local;
  return t->packed + table_at(t->shape, where / local, batch, l, where % local);
}

/* --- Looking --- */

static ax_sent sent_by(const ax_taking *t, int64_t batch, uint32_t l, int64_t number, int64_t s) {
  const ax_ragged_shape *shape = t->shape;
  uint32_t where = shape->where[number], receiver = shape->number[t->device * shape->local + l];
  return (ax_sent){slices_from(t, batch, l, number)[s], where / (uint32_t)shape->local, where % (uint32_t)shape->local,
                   slice_number(shape, receiver, s)};
}

/* Says whether a slice leaves the rows on one of its sides. */
static bool leaves(const ax_ragged_shape *shape, const ax_piece *slice, ax_fault_kind *kind) {
  if (slice->from < 0) *kind = AX_FAULT_FROM;
  else if (slice->size < 0) *kind = AX_FAULT_SIZE;
  else if (slice->to < 0) *kind = AX_FAULT_TO;
  else if (slice->from > shape->from_rows || slice->size > shape->from_rows - slice->from) *kind = AX_FAULT_OPERAND;
  else if (slice->to > shape->to_rows || slice->size > shape->to_rows - slice->to) *kind = AX_FAULT_OUTPUT;
  else return false;
  return true;
}

static bool is_wrong(const ax_taking *t, const ax_piece *slice, int64_t expected, ax_fault_kind *kind) {
  if (leaves(t->shape, slice, kind)) return true;
  *kind = AX_FAULT_EXPECTED;
  return t->agree && slice->size != expected;
}

static bool comes_before(const int64_t *a, const int64_t *b) { return a[0] != b[0] ? a[0] < b[0] : a[1] < b[1]; }

static void sink(int64_t (*heap)[2], int64_t at, int64_t count) {
  for (int64_t child; (child = 2 * at + 1) < count; at = child) {
    if (child + 1 < count && comes_before(heap[child], heap[child + 1])) child++;
    if (!comes_before(heap[at], heap[child])) return;
    int64_t kept[2];
    memcpy(kept, heap[at], sizeof kept);
    memcpy(heap[at], heap[child], sizeof kept);
    memcpy(heap[child], kept, sizeof kept);
  }
}

/* In place and without a call of the allocator, as a run may take none. */
static void sort(int64_t (*items)[2], int64_t count) {
  for (int64_t i = count / 2; i-- > 0;) sink(items, i, count);
  for (int64_t end = count - 1; end > 0; end--) {
    int64_t kept[2];
    memcpy(kept, items[end], sizeof kept);
    memcpy(items[end], items[0], sizeof kept);
    memcpy(items[0], kept, sizeof kept);
    sink(items, 0, end);
  }
}

/* Whether two slices that come to local member l lie on each other: those sorted by where they begin, each with the next. *sorted:
   how many are in t->work. */
static bool overlaps(const ax_taking *t, int64_t batch, uint32_t l, int64_t *sorted, ax_fault *fault) {
  const ax_ragged_shape *shape = t->shape;
  int64_t count = 0;
  for (int64_t m = 0; m < shape->members; m++)
    for (int64_t s = 0; s < shape->each; s++) {
      const ax_piece *slice = &slices_from(t, batch, l, m)[s];
      if (slice->size == 0) continue;
      t->work[count][0] = slice->to;
      t->work[count++][1] = m * shape->each + s;
    }
  sort(t->work, count);
  *sorted = count;
  for (int64_t i = 1; i < count; i++) {
    int64_t one = t->work[i - 1][1], next = t->work[i][1];
    const ax_sent a = sent_by(t, batch, l, one / shape->each, one % shape->each);
    if (a.piece.to + a.piece.size <= t->work[i][0]) continue;
    fault->kind = AX_FAULT_OVERLAP;
    fault->sent = a;
    fault->other = sent_by(t, batch, l, next / shape->each, next % shape->each);
    return true;
  }
  return false;
}

/* *sorted: so many slices are in t->work, in order; -1: they came in order. */
static bool fits(const ax_taking *t, int64_t batch, uint32_t l, int64_t *sorted, ax_fault *fault) {
  const ax_ragged_shape *shape = t->shape;
  int64_t begin = counts_begin(shape, batch, l), end = 0;
  bool in_order = true; /* slices usually lie in the order of their senders, and then need no sorting */
  for (int64_t m = 0; m < shape->members; m++) {
    const ax_piece *slices = slices_from(t, batch, l, m);
    for (int64_t s = 0; s < shape->each; s++) {
      int64_t at = m * shape->each + s, expected = t->agree ? count_at(&t->expected, begin + at) : 0;
      if (is_wrong(t, &slices[s], expected, &fault->kind)) {
        fault->sent = sent_by(t, batch, l, m, s);
        fault->expected = expected;
        fault->expected_at = at;
        return false;
      }
      if (slices[s].size == 0) continue;
      in_order = in_order && slices[s].to >= end;
      end = slices[s].to + slices[s].size;
    }
  }
  *sorted = -1;
  return in_order || !overlaps(t, batch, l, sorted, fault);
}

/* --- Taking --- */

static void add_elems(ax_dtype dtype, void *to, const void *from, int64_t elems) {
  const int64_t count = ax_is_complex(dtype) ? 2 * elems : elems;
  if (ax_part_dtype(dtype) == AX_F32)
    for (int64_t i = 0; i < count; i++) ((float *)to)[i] += ((const float *)from)[i];
  else
    for (int64_t i = 0; i < count; i++) ((double *)to)[i] += ((const double *)from)[i];
}

static int64_t row_bytes(const ax_ragged_shape *shape) { return shape->row_elems * (int64_t)ax_dtype_bytes(shape->dtype); }

/* The rows that are taken for a slice of device e. in: the operand; NULL: it is elsewhere. Back, a device's own slices are
   checked by those that they come to, so they may be wrong here: then the run fails, and there is nothing to take. */
static void take_one(const ax_taking *t, const ax_piece *slice, uint32_t e, char *out, const char *in) {
  ax_fault_kind kind;
  if (t->back && leaves(t->shape, slice, &kind)) return;
  const int64_t row = row_bytes(t->shape), bytes = slice->size * row;
  if (bytes == 0) return; /* empty arrays have no address */
  const void *from = in != NULL ? in + (t->back ? slice->to : slice->from) * row : t->rows(t->context, e, bytes);
  char *to = out + (t->back ? slice->from : slice->to) * row;
  if (t->back) add_elems(t->shape->dtype, to, from, slice->size * t->shape->row_elems);
  else memcpy(to, from, (size_t)bytes);
}

/* Everything that local member l takes, from each member in order. */
static void take_all(const ax_taking *t, int64_t batch, uint32_t l) {
  const ax_ragged_shape *shape = t->shape;
  int64_t mine = t->back ? shape->from_rows : shape->to_rows, theirs = t->back ? shape->to_rows : shape->from_rows;
  char *out = (char *)t->out + (batch * shape->local + l) * mine * row_bytes(shape);
  for (int64_t m = 0; m < shape->members; m++) {
    const ax_piece *slices = t->back ? slices_to(t, batch, l, m) : slices_from(t, batch, l, m);
    uint32_t where = shape->where[m], local = (uint32_t)shape->local, e = where / local;
    const char *in = t->operand(t->context, e);
    if (in != NULL) in += (batch * shape->local + where % local) * theirs * row_bytes(shape);
    for (int64_t s = 0; s < shape->each; s++) take_one(t, &slices[s], e, out, in);
  }
}

/* Rows begin .. end of base. */
static void fill(const ax_taking *t, int64_t offset, int64_t begin, int64_t end) {
  int64_t row = row_bytes(t->shape), bytes = (end - begin) * row;
  if (bytes > 0) memcpy((char *)t->out + (offset + begin) * row, (const char *)t->base + (offset + begin) * row, (size_t)bytes);
}

/* Copies from base all rows that no slice covers. */
static void fill_gaps(const ax_taking *t, int64_t batch, uint32_t l, int64_t sorted) {
  const ax_ragged_shape *shape = t->shape;
  int64_t mine = t->back ? shape->from_rows : shape->to_rows, offset = (batch * shape->local + l) * mine, end = 0;
  int64_t count = t->back ? 0 : sorted >= 0 ? sorted : shape->members * shape->each;
  for (int64_t i = 0; i < count; i++) {
    int64_t at = sorted >= 0 ? t->work[i][1] : i;
    const ax_piece *piece = &slices_from(t, batch, l, at / shape->each)[at % shape->each];
    if (piece->size == 0) continue;
    fill(t, offset, end, piece->to);
    end = piece->to + piece->size;
  }
  fill(t, offset, end, mine);
}

bool ax_ragged_take(const ax_taking *t, ax_fault *fault) {
  const ax_ragged_shape *shape = t->shape;
  int64_t sorted;
  for (int64_t b = 0; b < shape->batch; b++)
    for (uint32_t l = 0; l < shape->local; l++) {
      *fault = (ax_fault){.batch = b, .device = t->device, .local = l};
      if (!fits(t, b, l, &sorted, fault)) return false;
      if (t->base != NULL) fill_gaps(t, b, l, sorted);
      take_all(t, b, l);
    }
  return true;
}

/* --- Giving --- */

/* The slices between local member l of this device, whose rows they are, and local member `taker` of device `to`. */
static const ax_piece *slices_given(const ax_giving *g, uint32_t to, int64_t batch, int64_t l, int64_t taker) {
  return g->back ? g->received + table_at(g->shape, to, batch, taker, l) : g->packed + table_at(g->shape, to, batch, l, taker);
}

/* Members of one device are numbered in the order in which they stand there: so they are taken in that order. */
int64_t ax_ragged_give(const ax_giving *g, uint32_t to, void *out) {
  const ax_ragged_shape *shape = g->shape;
  const int64_t row = row_bytes(shape), mine = g->back ? shape->to_rows : shape->from_rows;
  int64_t given = 0;
  ax_fault_kind kind;
  for (int64_t b = 0; b < shape->batch; b++)
    for (int64_t taker = 0; taker < shape->local; taker++)
      for (int64_t l = 0; l < shape->local; l++) {
        const char *rows = (const char *)g->operand + (b * shape->local + l) * mine * row;
        const ax_piece *slices = slices_given(g, to, b, l, taker);
        for (int64_t s = 0; s < shape->each; s++) {
          if (leaves(shape, &slices[s], &kind)) continue;
          const int64_t bytes = slices[s].size * row, from = g->back ? slices[s].to : slices[s].from;
          if (out != NULL && bytes > 0) memcpy((char *)out + given, rows + from * row, (size_t)bytes);
          given += bytes;
        }
      }
  return given;
}

/* --- Error messages --- */

static void device_text(ax_text *text, const ax_mesh *mesh, int64_t device) {
  ax_text_add(text, "device %lld", (long long)device);
  for (uint32_t a = 0; a < mesh->count; a++)
    ax_text_add(text, "%s%s=%lld", a == 0 ? " (" : ",", mesh->axis[a].name, (long long)ax_mesh_coordinate(mesh, device, a));
  if (mesh->count > 0) ax_text_add(text, ")");
}

typedef struct speaking {
  ax_text *text;
  const ax_ragged_shape *shape;
  const ax_mesh *mesh;
} speaking;

/* "device 2 (d=2)"; where several members live on a device, "member 5 on device 2 (d=2)". number: in its group; device: of the
   mesh. */
static void member_text(const speaking *s, uint32_t number, uint32_t local, int64_t device) {
  if (s->shape->local > 1) ax_text_add(s->text, "member %u on ", s->shape->number[number * s->shape->local + local]);
  device_text(s->text, s->mesh, device);
}

static void slice_text(const speaking *s, const ax_sent *sent, int64_t device) {
  ax_text_add(s->text, "slice %lld of ", (long long)sent->number);
  member_text(s, sent->device, sent->local, device);
  ax_text_add(s->text, " (offset %lld, size %lld, output offset %lld)", (long long)sent->piece.from, (long long)sent->piece.size,
              (long long)sent->piece.to);
}

static void negative_text(const speaking *s, const char *what, const ax_sent *sent, int64_t value, int64_t device) {
  ax_text_add(s->text, "%s[%lld] is %lld on ", what, (long long)sent->number, (long long)value);
  member_text(s, sent->device, sent->local, device);
}

static void kind_text(const speaking *s, const ax_fault *fault, int64_t sender, int64_t other, int64_t receiver) {
  const ax_sent *sent = &fault->sent;
  if (fault->kind >= AX_FAULT_OPERAND) slice_text(s, sent, sender);
  switch (fault->kind) {
    case AX_FAULT_FROM: negative_text(s, "input_offsets", sent, sent->piece.from, sender); return;
    case AX_FAULT_SIZE: negative_text(s, "send_sizes", sent, sent->piece.size, sender); return;
    case AX_FAULT_TO: negative_text(s, "output_offsets", sent, sent->piece.to, sender); return;
    case AX_FAULT_OPERAND: ax_text_add(s->text, " leaves its %lld rows", (long long)s->shape->from_rows); return;
    case AX_FAULT_OUTPUT: ax_text_add(s->text, " leaves the %lld rows of the output on ", (long long)s->shape->to_rows); break;
    case AX_FAULT_EXPECTED:
      ax_text_add(s->text, " is not of the size that recv_sizes[%lld] is, %lld, on ", (long long)fault->expected_at,
                  (long long)fault->expected);
      break;
    case AX_FAULT_OVERLAP:
      ax_text_add(s->text, " and ");
      slice_text(s, &fault->other, other);
      ax_text_add(s->text, " overlap in the output on ");
      break;
  }
  member_text(s, fault->device, fault->local, receiver);
}

void ax_fault_text(ax_text *text, const ax_fault *fault, const ax_ragged_shape *shape, const ax_mesh *mesh, int64_t sender,
                   int64_t other, int64_t receiver) {
  kind_text(&(speaking){text, shape, mesh}, fault, sender, other, receiver);
  if (shape->batch > 1) ax_text_add(text, ", in batch element %lld", (long long)fault->batch);
}
