/* Cells, memory, and the bytes of views. */
#include <stdlib.h>
#include <string.h>

#include "kernel/machine/state.h"

/* --- Cells --- */

ax_cell *ax_cell_retain(ax_cell *cell) {
  if (cell != NULL) cell->references++;
  return cell;
}

void ax_cell_release(ax_cell *cell) {
  if (cell == NULL || --cell->references > 0) return;
  ax_tensor_release(cell->tensor);
  ax_free(cell->terms);
  ax_free(cell);
}

ax_status ax_cell_tensor(const ax_type *type, ax_cell **out) {
  *out = NULL;
  ax_cell *cell = ax_calloc(1, sizeof *cell);
  if (cell == NULL) return ax_out_of_memory(sizeof *cell);
  cell->references = 1;
  ax_status status = ax_tensor_create(type, &cell->tensor);
  if (status != AX_OK) {
    ax_free(cell);
    return status;
  }
  *out = cell;
  return AX_OK;
}

ax_status ax_cell_view(const ax_view *view, ax_cell **out) {
  *out = ax_calloc(1, sizeof **out);
  if (*out == NULL) return ax_out_of_memory(sizeof **out);
  (*out)->references = 1;
  (*out)->view = *view;
  return AX_OK;
}

/* --- Memory --- */

enum { never_written = 0xfb }; /* of floats a NaN-like large negative number, of integers one far off */

ax_status ax_bank_create(uint64_t bytes, ax_bank **out) {
  *out = ax_calloc(1, sizeof **out);
  unsigned char *data = ax_alloc(bytes), *set = ax_calloc(1, bytes);
  if (*out == NULL || data == NULL || set == NULL) {
    ax_free(*out);
    ax_free(data);
    ax_free(set);
    *out = NULL;
    return ax_out_of_memory(2 * bytes);
  }
  memset(data, never_written, bytes);
  **out = (ax_bank){.references = 1, .bytes = bytes, .data = data, .set = set};
  return AX_OK;
}

void ax_bank_release(ax_bank *memory) {
  if (memory == NULL || --memory->references > 0) return;
  ax_free(memory->data);
  ax_free(memory->set);
  ax_free(memory->terms);
  ax_free(memory);
}

ax_status ax_bank_own(ax_bank **memory) {
  ax_bank *old = *memory, *fresh;
  old->hash = 0;
  if (old->references == 1) return AX_OK;
  AX_TRY(ax_bank_create(old->bytes, &fresh));
  memcpy(fresh->data, old->data, old->bytes);
  memcpy(fresh->set, old->set, old->bytes);
  if (old->terms != NULL) {
    const size_t bytes = (size_t)(old->bytes / old->term_bytes + 1) * sizeof old->terms[0];
    fresh->terms = ax_alloc(bytes);
    fresh->term_bytes = old->term_bytes;
    if (fresh->terms == NULL) {
      ax_bank_release(fresh);
      return ax_out_of_memory(bytes);
    }
    memcpy(fresh->terms, old->terms, bytes);
  }
  ax_bank_release(old);
  *memory = fresh;
  return AX_OK;
}

uint64_t ax_bank_hash(ax_bank *memory) {
  if (memory->hash == 0) {
    memory->hash = ax_hash_bytes(AX_HASH_SEED, memory->data, memory->bytes);
    memory->hash = ax_hash_bytes(memory->hash, memory->set, memory->bytes) | 1;
  }
  return memory->hash;
}

/* --- Views --- */

/* The last dimensions of a view that lie in one piece: how many, and their bytes. */
static uint32_t dense_tail(const ax_view *view, int64_t *bytes) {
  uint32_t dense = 0;
  *bytes = (int64_t)ax_dtype_bytes(view->type.dtype);
  while (dense < view->type.rank &&
         (view->strides[view->type.rank - 1 - dense] == *bytes || view->type.dims[view->type.rank - 1 - dense] == 1))
    *bytes *= view->type.dims[view->type.rank - 1 - dense++];
  return dense;
}

/* A walk over the pieces of a view, in row-major order of its elements. */
typedef struct pieces {
  const ax_view *view;
  uint32_t outer;
  int64_t bytes, offset, index[AX_MAX_RANK];
  bool more;
} pieces;

static pieces pieces_of(const ax_view *view) {
  pieces p = {.view = view, .offset = view->offset};
  p.outer = view->type.rank - dense_tail(view, &p.bytes);
  p.more = ax_type_elems(&view->type) > 0;
  return p;
}

/* The same, element by element. */
static pieces elements_of(const ax_view *view) {
  pieces p = {.view = view, .offset = view->offset, .outer = view->type.rank, .bytes = (int64_t)ax_dtype_bytes(view->type.dtype)};
  p.more = ax_type_elems(&view->type) > 0;
  return p;
}

static void next_piece(pieces *p) {
  for (uint32_t d = p->outer; d-- > 0;) {
    p->offset += p->view->strides[d];
    if (++p->index[d] < p->view->type.dims[d]) return;
    p->offset -= p->view->strides[d] * p->view->type.dims[d];
    p->index[d] = 0;
  }
  p->more = false;
}

static int by_begin(const void *a, const void *b) {
  const ax_bytes *x = a, *y = b;
  return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static uint32_t join_runs(ax_bytes *runs, uint32_t count) {
  uint32_t joined = 0;
  bool ascending = true;
  for (uint32_t i = 1; i < count; i++) ascending = ascending && runs[i - 1].begin <= runs[i].begin;
  if (!ascending) qsort(runs, count, sizeof runs[0], by_begin);
  for (uint32_t i = 0; i < count; i++) {
    if (joined > 0 && runs[joined - 1].end >= runs[i].begin)
      runs[joined - 1].end = runs[i].end > runs[joined - 1].end ? runs[i].end : runs[joined - 1].end;
    else
      runs[joined++] = runs[i];
  }
  return joined;
}

ax_status ax_view_touch(ax_touches *pool, const ax_view *view, const unsigned char *mask, bool write) {
  ax_bytes *runs = NULL;
  uint32_t count = 0, capacity = 0;
  ax_status status = AX_OK;
  for (pieces p = mask == NULL ? pieces_of(view) : elements_of(view); p.more && status == AX_OK; next_piece(&p)) {
    if (mask != NULL && *mask++ == 0) continue;
    status = ax_grow(&runs, sizeof runs[0], count, 1, &capacity);
    if (status == AX_OK) runs[count++] = (ax_bytes){(uint64_t)p.offset, (uint64_t)(p.offset + p.bytes)};
  }
  count = join_runs(runs, count);
  if (status == AX_OK && count > 0) status = ax_touches_add(pool, view->region, write, false, count, runs);
  ax_free(runs);
  return status;
}

void ax_view_read(const ax_view *view, const ax_bank *memory, const unsigned char *mask, void *data, unsigned char *set) {
  unsigned char *to = data;
  for (pieces p = mask == NULL ? pieces_of(view) : elements_of(view); p.more; next_piece(&p)) {
    if (mask == NULL || *mask++ != 0) {
      memcpy(to, memory->data + p.offset, (size_t)p.bytes);
      if (set != NULL) memcpy(set, memory->set + p.offset, (size_t)p.bytes);
    }
    to += p.bytes;
    if (set != NULL) set += p.bytes;
  }
}

void ax_view_write(const ax_view *view, ax_bank *memory, const unsigned char *mask, const void *data, const unsigned char *set) {
  const unsigned char *from = data;
  for (pieces p = mask == NULL ? pieces_of(view) : elements_of(view); p.more; next_piece(&p)) {
    if (mask == NULL || *mask++ != 0) {
      memcpy(memory->data + p.offset, from, (size_t)p.bytes);
      if (set != NULL)
        memcpy(memory->set + p.offset, set, (size_t)p.bytes);
      else
        memset(memory->set + p.offset, 1, (size_t)p.bytes);
    }
    from += p.bytes;
    if (set != NULL) set += p.bytes;
  }
}

bool ax_view_unset(const ax_view *view, const ax_bank *memory, const unsigned char *mask, ax_bytes *where) {
  for (pieces p = mask == NULL ? pieces_of(view) : elements_of(view); p.more; next_piece(&p)) {
    if (mask != NULL && *mask++ == 0) continue;
    const unsigned char *unset = memchr(memory->set + p.offset, 0, (size_t)p.bytes);
    if (unset == NULL) continue;
    const size_t left = (size_t)(memory->set + p.offset + p.bytes - unset);
    const unsigned char *set = memchr(unset, 1, left);
    *where = (ax_bytes){(uint64_t)(unset - memory->set), (uint64_t)(set != NULL ? set - memory->set : p.offset + p.bytes)};
    return true;
  }
  return false;
}
