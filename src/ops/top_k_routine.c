/* Finds the greatest elements of each row with a heap of the k best so far. The worst of them is on top, so that most elements are
   compared with that one alone, a chunk of elements at a time where that can be done without branches. */
#include <string.h>

#include "ops/sort.h"
#include "plan/lower.h"
#include "plan/plan.h"

typedef struct picker {
  int64_t extent, k, rows;
  uint32_t parts;
  ax_dtype dtype;
} picker;

typedef struct entry {
  uint64_t key;
  int32_t place;
} entry;

/* If two entries are equal, the later one is worse. */
static bool is_worse(entry a, entry b) { return a.key != b.key ? a.key < b.key : a.place > b.place; }

/* An entry in place of the first, sunk to where no worse one is below it. */
static void sink(entry *heap, int64_t count, entry one) {
  int64_t at = 0;
  for (int64_t child = 1; child < count; child = 2 * at + 1) {
    if (child + 1 < count && is_worse(heap[child + 1], heap[child])) child++;
    if (!is_worse(heap[child], one)) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = one;
}

static void rise(entry *heap, int64_t at, entry one) {
  for (; at > 0 && is_worse(one, heap[(at - 1) / 2]); at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
  heap[at] = one;
}

/* The key of a float of 32 bits, as ax_total_key gives it, without branches. */
static inline uint32_t float_key(uint32_t bits) { return bits ^ ((0 - (bits >> 31)) | 0x80000000); }

static bool floats_above(const uint32_t *x, uint32_t key) {
  uint32_t any = 0;
  for (int i = 0; i < AX_SORT_CHUNK; i++) any |= float_key(x[i]) > key;
  return any != 0;
}

/* A bf16 is the upper half of a float of 32 bits, and its key that of the float's. */
static bool halves_above(const uint16_t *x, uint32_t key) {
  uint32_t any = 0;
  for (int i = 0; i < AX_SORT_CHUNK; i++) any |= float_key((uint32_t)x[i] << 16) >> 16 > key;
  return any != 0;
}

static bool integers_above(const uint32_t *x, uint32_t key) {
  uint32_t any = 0;
  for (int i = 0; i < AX_SORT_CHUNK; i++) any |= (x[i] ^ 0x80000000) > key;
  return any != 0;
}

bool ax_sort_any_above(ax_dtype dtype, const void *data, int64_t at, uint64_t key) {
  switch (dtype) {
    case AX_F32: return floats_above((const uint32_t *)data + at, (uint32_t)key);
    case AX_BF16: return halves_above((const uint16_t *)data + at, (uint32_t)key);
    case AX_S32: return integers_above((const uint32_t *)data + at, (uint32_t)key);
    default: return true;
  }
}

static void pick_row(const picker *p, const char *row, char *values, int32_t *places, entry *heap) {
  const int64_t k = p->k;
  const size_t bytes = ax_dtype_bytes(p->dtype);
  for (int64_t i = 0; i < k; i++) rise(heap, i, (entry){ax_total_key(p->dtype, row, i), (int32_t)i});
  for (int64_t i = k, end; i < p->extent; i = end) {
    end = p->extent - i < AX_SORT_CHUNK ? p->extent : i + AX_SORT_CHUNK;
    if (end - i == AX_SORT_CHUNK && !ax_sort_any_above(p->dtype, row, i, heap[0].key)) continue;
    for (; i < end; i++) {
      const uint64_t key = ax_total_key(p->dtype, row, i);
      if (key > heap[0].key) sink(heap, k, (entry){key, (int32_t)i});
    }
  }
  for (int64_t left = k; left > 0; left--) {
    entry worst = heap[0], last = heap[left - 1];
    places[left - 1] = worst.place;
    memcpy(values + (size_t)(left - 1) * bytes, row + (size_t)worst.place * bytes, bytes);
    if (left > 1) sink(heap, left - 1, last);
  }
}

static ax_status pick_part(const void *data, void *const *memory, uint32_t part) {
  const picker *p = data;
  const size_t bytes = ax_dtype_bytes(p->dtype);
  entry *heap = ax_alloc((size_t)p->k * sizeof heap[0]);
  if (heap == NULL) return AX_OUT_OF_MEMORY;
  for (int64_t row = p->rows * part / p->parts; row < p->rows * (part + 1) / p->parts; row++)
    pick_row(p, (const char *)memory[0] + (size_t)(row * p->extent) * bytes, (char *)memory[1] + (size_t)(row * p->k) * bytes,
             (int32_t *)memory[2] + row * p->k, heap);
  ax_free(heap);
  return AX_OK;
}

/* A result without elements is written by a kernel without steps. */
ax_status ax_lower_top_k(ax_lower *lower, uint32_t in, const uint32_t *out) {
  const ax_type x = *ax_lower_type(lower, in), values = *ax_lower_type(lower, out[0]);
  picker p = {
      .extent = x.dims[x.rank - 1], .k = values.dims[x.rank - 1], .rows = ax_dims_elems(x.rank - 1, x.dims), .dtype = x.dtype};
  const double time = 2 * (double)ax_type_elems(&x);
  uint32_t buffers[] = {in, out[0], out[1]};
  for (uint32_t k = 0; k < 2 && ax_type_elems(&values) == 0; k++) AX_TRY(ax_lower_fill(lower, out[k], (ax_number){.i = 0}));
  if (ax_type_elems(&values) == 0) return AX_OK;
  p.parts = ax_routine_parts(time, p.rows);
  return ax_lower_routine(
      lower,
      &(ax_routine){
          .run = pick_part, .data = &p, .in_count = 1, .out_count = 2, .parts = p.parts, .buffers = buffers, .time = time},
      sizeof p);
}
