/* Finds the greatest elements of each row in one pass over it. A buffer holds candidates: the k best elements so far and those since
   that may be among the k best. Where it is full, its k best are selected, and the worst of these is what later elements are compared
   with: a chunk of elements at a time, without branches. So most elements take a comparison in a vector, and any other a few steps,
   in whatever order they come. At the end the k best are put in order. Where k is small, the k best so far are held in order instead, and
   an element that is better than the last is inserted. */
#include <string.h>

#include "ops/sort.h"
#include "plan/lower.h"
#include "plan/plan.h"

/* How keys are made of the elements' bits, as ax_total_key makes them: bits that change in all, and further ones in those whose highest
   bit is set. Not those of floats of a byte, nor of elements of fewer than 8 bits. */
typedef struct changes {
  uint64_t in_all, in_negative;
} changes;

typedef struct picker {
  int64_t extent, k, rows;
  uint32_t parts;
  ax_dtype dtype;
  int64_t width; /* of an element whose key is made by `changes`, in bytes; 0: it is made otherwise */
  changes changes;
} picker;

typedef struct entry {
  uint64_t key;
  int32_t place;
} entry;

/* --- Selecting and ordering. All entries are different. --- */

/* If two keys are equal, the later entry is worse. */
static inline bool is_better(entry a, entry b) { return a.key != b.key ? a.key > b.key : a.place < b.place; }

static inline void swap(entry *entries, int64_t a, int64_t b) {
  const entry one = entries[a];
  entries[a] = entries[b];
  entries[b] = one;
}

enum { few = 24 };

static void order_few(entry *entries, int64_t count) {
  for (int64_t i = 1; i < count; i++) {
    const entry one = entries[i];
    int64_t at = i;
    for (; at > 0 && is_better(one, entries[at - 1]); at--) entries[at] = entries[at - 1];
    entries[at] = one;
  }
}

/* Puts the median of three entries, chosen by a random number of the same sequence always, first: no order of the elements is slow. */
static void put_pivot(entry *entries, int64_t count, uint64_t *random) {
  int64_t at[3];
  for (int i = 0; i < 3; i++) {
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    at[i] = (int64_t)((*random >> 33) % (uint64_t)count);
  }
  if (is_better(entries[at[1]], entries[at[0]])) swap(entries, at[0], at[1]);
  if (is_better(entries[at[2]], entries[at[1]])) swap(entries, at[1], at[2]);
  if (is_better(entries[at[1]], entries[at[0]])) swap(entries, at[0], at[1]);
  swap(entries, 0, at[1]);
}

/* Moves what is better than the first entry before it, and returns where that is then. Each step stores, whether it moves or not,
   since half the branches would be wrong. */
static int64_t split(entry *entries, int64_t count) {
  const entry pivot = entries[0];
  int64_t better = 1;
  for (int64_t i = 1; i < count; i++) {
    const entry one = entries[i];
    entries[i] = entries[better];
    entries[better] = one;
    better += is_better(one, pivot);
  }
  swap(entries, 0, better - 1);
  return better - 1;
}

/* Moves the k best to the front. */
static void select_best(entry *entries, int64_t count, int64_t k, uint64_t *random) {
  while (count > few && k < count && k > 0) {
    put_pivot(entries, count, random);
    const int64_t at = split(entries, count);
    if (at >= k) {
      count = at;
    } else {
      entries += at + 1, count -= at + 1;
      k -= at + 1;
    }
  }
  if (k < count && k > 0) order_few(entries, count);
}

/* The larger side is done in the loop, so that calls are not deep. */
static void order(entry *entries, int64_t count, uint64_t *random) {
  while (count > few) {
    put_pivot(entries, count, random);
    const int64_t at = split(entries, count), behind = count - at - 1;
    if (at < behind) {
      order(entries, at, random);
      entries += at + 1, count = behind;
    } else {
      order(entries + at + 1, behind, random);
      count = at;
    }
  }
  order_few(entries, count);
}

/* --- Chunks of elements against one key --- */

static changes changes_of(ax_dtype dtype) {
  const ax_dtype_info *info = ax_dtype_get(dtype);
  const uint64_t sign = (uint64_t)1 << (8 * ax_dtype_bytes(dtype) - 1);
  if (info->kind == AX_KIND_FLOAT) return (changes){sign, sign - 1};
  return (changes){info->kind == AX_KIND_SIGNED ? sign : 0, 0};
}

static int64_t width_of(ax_dtype dtype) {
  return ax_is_byte_float(dtype) || ax_dtype_get(dtype)->bits < 8 ? 0 : (int64_t)ax_dtype_bytes(dtype);
}

static bool bytes_above(const uint8_t *x, uint64_t key, changes c) {
  const uint8_t in_all = (uint8_t)c.in_all, than = (uint8_t)key;
  uint8_t any = 0;
  for (int i = 0; i < AX_SORT_CHUNK; i++) any |= (uint8_t)(x[i] ^ in_all) > than;
  return any != 0;
}

static bool halves_above(const uint16_t *x, uint64_t key, changes c) {
  const uint16_t in_all = (uint16_t)c.in_all, in_negative = (uint16_t)c.in_negative, than = (uint16_t)key;
  uint16_t any = 0;
  for (int i = 0; i < AX_SORT_CHUNK; i++) any |= (uint16_t)(x[i] ^ in_all ^ ((0 - (x[i] >> 15)) & in_negative)) > than;
  return any != 0;
}

static bool words_above(const uint32_t *x, uint64_t key, changes c) {
  const uint32_t in_all = (uint32_t)c.in_all, in_negative = (uint32_t)c.in_negative, than = (uint32_t)key;
  uint32_t any = 0;
  for (int i = 0; i < AX_SORT_CHUNK; i++) any |= (x[i] ^ in_all ^ ((0 - (x[i] >> 31)) & in_negative)) > than;
  return any != 0;
}

static bool long_words_above(const uint64_t *x, uint64_t key, changes c) {
  uint64_t any = 0;
  for (int i = 0; i < AX_SORT_CHUNK; i++) any |= (x[i] ^ c.in_all ^ ((0 - (x[i] >> 63)) & c.in_negative)) > key;
  return any != 0;
}

bool ax_sort_any_above(ax_dtype dtype, const void *data, int64_t at, uint64_t key) {
  const changes c = changes_of(dtype);
  switch (width_of(dtype)) {
    case 0: return true;
    case 1: return bytes_above((const uint8_t *)data + at, key, c);
    case 2: return halves_above((const uint16_t *)data + at, key, c);
    case 4: return words_above((const uint32_t *)data + at, key, c);
    default: return long_words_above((const uint64_t *)data + at, key, c);
  }
}

/* --- Rows --- */

enum { few_best = 16, spare = 256 }; /* spare: candidates beside twice the k best */

static int64_t most_candidates(const picker *p) { return p->extent < 2 * p->k + spare ? p->extent : 2 * p->k + spare; }

typedef struct candidates {
  entry *entries;
  int64_t count;
  uint64_t key; /* elements above it are candidates */
} candidates;

/* `width`: a constant, the bytes of an element; 0: of a dtype whose keys are made another way. */
static inline __attribute__((always_inline)) uint64_t key_at(const picker *p, const char *row, int64_t i, int width) {
  const uint64_t in_all = p->changes.in_all, in_negative = p->changes.in_negative;
  if (width == 0) return ax_total_key(p->dtype, row, i);
  const uint64_t x = width == 1   ? ((const uint8_t *)(const void *)row)[i]
                     : width == 2 ? ((const uint16_t *)(const void *)row)[i]
                     : width == 4 ? ((const uint32_t *)(const void *)row)[i]
                                  : ((const uint64_t *)(const void *)row)[i];
  return x ^ in_all ^ ((0 - (x >> (8 * width - 1))) & in_negative);
}

/* Adds the candidates among elements from `begin` on, as far as there is room; if all are wanted, each is one. Returns the next element. */
static inline __attribute__((always_inline)) int64_t add_some(const picker *p, const char *row, int64_t begin, int64_t end, bool all, candidates *c,
                                                              int width) {
  const int64_t room = most_candidates(p);
  int64_t next = c->count, i = begin;
  for (; i < end && next < room; i++) {
    const entry one = {key_at(p, row, i, width), (int32_t)i};
    c->entries[next] = one;
    next += all || one.key > c->key;
  }
  c->count = next;
  return i;
}

static inline void insert(entry *best, int64_t k, entry one) {
  int64_t at = k - 1;
  for (; at > 0 && one.key > best[at - 1].key; at--) best[at] = best[at - 1];
  best[at] = one;
}

/* Elements against the k best so far, in order, of which the last one's key is c->key. */
static inline __attribute__((always_inline)) int64_t insert_some(const picker *p, const char *row, int64_t begin, int64_t end, candidates *c, int width) {
  for (int64_t i = begin; i < end; i++) {
    const entry one = {key_at(p, row, i, width), (int32_t)i};
    if (one.key <= c->key) continue;
    insert(c->entries, p->k, one);
    c->key = c->entries[p->k - 1].key;
  }
  return end;
}

static int64_t add(const picker *p, const char *row, int64_t begin, int64_t end, bool all, candidates *c) {
  switch (p->width) {
    case 1: return add_some(p, row, begin, end, all, c, 1);
    case 2: return add_some(p, row, begin, end, all, c, 2);
    case 4: return add_some(p, row, begin, end, all, c, 4);
    case 8: return add_some(p, row, begin, end, all, c, 8);
    default: return add_some(p, row, begin, end, all, c, 0);
  }
}

static int64_t compete(const picker *p, const char *row, int64_t begin, int64_t end, candidates *c) {
  if (p->k > few_best) return add(p, row, begin, end, false, c);
  switch (p->width) {
    case 1: return insert_some(p, row, begin, end, c, 1);
    case 2: return insert_some(p, row, begin, end, c, 2);
    case 4: return insert_some(p, row, begin, end, c, 4);
    case 8: return insert_some(p, row, begin, end, c, 8);
    default: return insert_some(p, row, begin, end, c, 0);
  }
}

/* Chunk by chunk, until there is no room for more candidates or there are no more elements. */
static int64_t compete_chunks(const picker *p, const char *row, int64_t i, candidates *c) {
  while (i < p->extent && c->count < most_candidates(p)) {
    const bool whole = p->extent - i >= AX_SORT_CHUNK;
    const int64_t end = whole ? i + AX_SORT_CHUNK : p->extent;
    i = whole && !ax_sort_any_above(p->dtype, row, i, c->key) ? end : compete(p, row, i, end, c);
  }
  return i;
}

/* The k best of the candidates are first, and the others are none. */
static void select_candidates(const picker *p, candidates *c, uint64_t *random) {
  select_best(c->entries, c->count, p->k, random);
  c->count = p->k;
  c->key = c->entries[0].key;
  for (int64_t e = 1; e < p->k; e++) c->key = c->entries[e].key < c->key ? c->entries[e].key : c->key;
}

static void pick_row(const picker *p, const char *row, char *values, int32_t *places, entry *entries) {
  const size_t bytes = ax_dtype_bytes(p->dtype);
  const int64_t k = p->k, n = p->extent;
  candidates c = {entries, 0, 0};
  uint64_t random = 1;
  if (k <= few_best) {
    add(p, row, 0, k, true, &c);
    order_few(entries, k);
    c.key = entries[k - 1].key, c.count = 0;
    compete_chunks(p, row, k, &c);
  } else {
    for (int64_t i = add(p, row, 0, n, true, &c); i < n; i = compete_chunks(p, row, i, &c)) select_candidates(p, &c, &random);
    select_best(entries, c.count, k, &random);
    order(entries, k, &random);
  }
  for (int64_t i = 0; i < k; i++) {
    places[i] = entries[i].place;
    memcpy(values + (size_t)i * bytes, row + (size_t)entries[i].place * bytes, bytes);
  }
}

static ax_status pick_part(const void *data, void *const *memory, uint32_t part) {
  const picker *p = data;
  const size_t bytes = ax_dtype_bytes(p->dtype);
  entry *entries = ax_alloc((size_t)most_candidates(p) * sizeof entries[0]);
  if (entries == NULL) return AX_OUT_OF_MEMORY;
  for (int64_t row = p->rows * part / p->parts; row < p->rows * (part + 1) / p->parts; row++)
    pick_row(p, (const char *)memory[0] + (size_t)(row * p->extent) * bytes, (char *)memory[1] + (size_t)(row * p->k) * bytes,
             (int32_t *)memory[2] + row * p->k, entries);
  ax_free(entries);
  return AX_OK;
}

/* A result without elements is written by a kernel without steps. */
ax_status ax_lower_top_k(ax_lower *lower, uint32_t in, const uint32_t *out) {
  const ax_type x = *ax_lower_type(lower, in), values = *ax_lower_type(lower, out[0]);
  picker p = {
      .extent = x.dims[x.rank - 1], .k = values.dims[x.rank - 1], .rows = ax_dims_elems(x.rank - 1, x.dims), .dtype = x.dtype,
      .width = width_of(x.dtype), .changes = changes_of(x.dtype)};
  const double time = (double)ax_type_elems(&x) + 50 * (double)ax_type_elems(&values);
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
