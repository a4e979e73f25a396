/* See batches.h.

     members, as they come    3  0  1  2 | 5  4  7  6       a batch holds copies of the operands of `batch` members; a member that
     their copies             [ batch of 4 ]                has left its copy goes on. The last one puts the pieces of all four,
                                                            sorted by member, and frees the batch

   A group has one batch at a time that takes copies. Operands that stay where they are for the whole run are not copied; then there
   is one batch, of all members. */
#include "run/batches.h"

#include <string.h>

#include "run/pieces.h"
#include "run/scheduler.h"

typedef struct batch { /* at the beginning of its memory; copies follow */
  _Atomic uint32_t filled;
  uint32_t taken, size;
  size_t bytes;
  uint32_t numbers[AX_PUSH_BATCH]; /* by copy: whose it is */
} batch;

enum { copies_at = (sizeof(batch) + 63) / 64 * 64, pad = 64 };

/* The distance between copies. It is no power of two, which would put the same pieces of all copies in few sets of a cache. */
static size_t copy_stride(const ax_push *push) { return ((size_t)push->elems * (size_t)push->item + pad - 1) / pad * pad + pad; }
static char *copy_at(const batch *b, const ax_push *push, uint32_t i) { return (char *)b + copies_at + i * copy_stride(push); }

/* --- Taking a place --- */

static ax_status open_batch(ax_execution *run, const ax_push *push, uint32_t left, ax_stage *stage) {
  uint32_t size = push->batch < left ? push->batch : left;
  stage->bytes = copies_at + size * copy_stride(push);
  AX_TRY(ax_pool_alloc(&run->executor->pool, stage->bytes, &stage->memory));
  batch *b = stage->memory;
  atomic_init(&b->filled, 0);
  b->taken = 0;
  b->size = size;
  b->bytes = stage->bytes;
  return AX_OK;
}

/* Counts the member, and gives it a place in the batch. The last member of a batch closes it for others. */
static ax_status take_place(ax_execution *run, const ax_push *push, uint32_t number, uint32_t counter, ax_stage *stage, batch **out,
                            uint32_t *place) {
  uint32_t arrived = atomic_load_explicit(&run->arrived[counter], memory_order_relaxed);
  if (stage->memory == NULL) AX_TRY(open_batch(run, push, push->members - arrived, stage));
  batch *b = *out = stage->memory;
  *place = b->taken++;
  b->numbers[*place] = number;
  if (b->taken == b->size) stage->memory = NULL;
  atomic_store_explicit(&run->arrived[counter], arrived + 1 < push->members ? arrived + 1 : 0, memory_order_relaxed);
  return AX_OK;
}

static ax_status take_place_locked(ax_execution *run, const ax_push *push, uint32_t number, uint32_t counter, ax_stage *stage,
                                   batch **out, uint32_t *place) {
  if (!run->threaded) return take_place(run, push, number, counter, stage, out, place);
  pthread_mutex_lock(&run->stripes[counter % AX_STRIPES]);
  ax_status status = take_place(run, push, number, counter, stage, out, place);
  pthread_mutex_unlock(&run->stripes[counter % AX_STRIPES]);
  return status;
}

/* --- Putting the pieces --- */

static void put_batch(ax_execution *run, ax_worker_slot *worker_slot, const ax_activation *activation, const ax_instr *instr,
                      const batch *b) {
  const ax_push *push = instr->push;
  const char *at[AX_PUSH_BATCH];
  uint32_t numbers[AX_PUSH_BATCH];
  for (uint32_t i = 0; i < b->size; i++) { /* members come nearly in order */
    uint32_t k = i;
    for (; k > 0 && numbers[k - 1] > b->numbers[i]; k--) {
      numbers[k] = numbers[k - 1];
      at[k] = at[k - 1];
    }
    numbers[k] = b->numbers[i];
    at[k] = copy_at(b, push, i);
  }
  ax_pieces_put_all(run, worker_slot, &(ax_sources){activation, instr, push->item, b->size, at, numbers});
}

static ax_status push_copy(ax_execution *run, ax_worker_slot *worker_slot, const ax_activation *activation, const ax_instr *instr,
                           uint32_t counter) {
  const ax_push *push = instr->push;
  ax_stage *stage = &run->stages[push->stage + push->counter[activation->device]];
  batch *b;
  uint32_t place;
  AX_TRY(take_place_locked(run, push, push->number[activation->device], counter, stage, &b, &place));
  memcpy(copy_at(b, push, place), ax_address(activation, &instr->refs[0]), (size_t)(push->elems * push->item));
  const uint32_t size = b->size;
  if (atomic_fetch_add(&b->filled, 1) + 1 < size) return AX_OK;
  put_batch(run, worker_slot, activation, instr, b);
  ax_pool_free(&run->executor->pool, b, b->bytes);
  ax_scheduler_signal(run, counter, size);
  return AX_OK;
}

ax_status ax_batch_push(ax_execution *run, ax_worker_slot *worker_slot, const ax_activation *activation, const ax_instr *instr,
                        uint32_t counter) {
  const ax_push *push = instr->push;
  if (push->batch > 0) return push_copy(run, worker_slot, activation, instr, counter);
  if (atomic_fetch_add(&run->arrived[counter], 1) + 1 < push->members) return AX_OK;
  atomic_store(&run->arrived[counter], 0);
  ax_pieces_put_all(run, worker_slot, &(ax_sources){activation, instr, push->item, push->members, NULL, NULL});
  ax_scheduler_signal(run, counter, push->members);
  return AX_OK;
}
