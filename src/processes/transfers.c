#include "processes/transfers.h"

#include <string.h>

#include "processes/copies.h"

static void put(ax_transfers *table, ax_transfer *transfer, uint32_t slot) {
  if (++table->serial == 0) table->serial = 1; /* no ticket is 0 */
  transfer->ticket = (uint64_t)table->serial << 32 | slot;
  table->slots[slot] = transfer;
  table->first_free = slot + 1;
  table->used++;
}

ax_status ax_transfers_add(ax_transfers *table, const ax_transfer *like, uint32_t most, ax_transfer **out) {
  uint32_t slot = table->first_free;
  *out = NULL;
  while (slot < table->count && table->slots[slot] != NULL) slot++;
  if (slot >= most) return ax_error(AX_UNAVAILABLE, "%u long payloads are on their way, and there are no tags for more", most);
  if (slot == table->count) AX_TRY(ax_grow(&table->slots, sizeof table->slots[0], table->count, 1, &table->capacity));
  ax_transfer *new = ax_alloc(sizeof *new);
  if (new == NULL) return ax_out_of_memory(sizeof *new);
  *new = *like;
  if (slot == table->count) table->count++;
  put(table, new, slot);
  *out = new;
  return AX_OK;
}

ax_transfer *ax_transfers_find(const ax_transfers *table, uint64_t ticket) {
  const uint32_t slot = ax_transfer_slot(ticket);
  ax_transfer *found = slot < table->count ? table->slots[slot] : NULL;
  return found != NULL && found->ticket == ticket ? found : NULL;
}

void ax_transfers_remove(ax_transfers *table, ax_transfer *transfer) {
  const uint32_t slot = ax_transfer_slot(transfer->ticket);
  table->slots[slot] = NULL;
  table->used--;
  if (slot < table->first_free) table->first_free = slot;
}

ax_transfer *ax_transfers_take(ax_transfers *table, bool (*wanted)(const ax_transfer *transfer, const void *context),
                               const void *context, ax_transfer *list) {
  for (uint32_t i = 0; i < table->count; i++) {
    ax_transfer *one = table->slots[i];
    if (one == NULL || !wanted(one, context)) continue;
    ax_transfers_remove(table, one);
    one->next = list;
    list = one;
  }
  return list;
}

uint64_t ax_transfers_started(const ax_transfers *table, uint32_t peer) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < table->count; i++) {
    const ax_transfer *one = table->slots[i];
    if (one != NULL && one->started && one->peer == peer) bytes += one->bytes;
  }
  return bytes;
}

static void free_transfer(ax_transfer *transfer) {
  if (transfer->copy != NULL) ax_copies_give(transfer->copies, transfer->copy);
  ax_free(transfer);
}

void ax_transfers_deinit(ax_transfers *table) {
  for (uint32_t i = 0; i < table->count; i++)
    if (table->slots[i] != NULL) free_transfer(table->slots[i]);
  ax_free(table->slots);
  *table = (ax_transfers){0};
}

void ax_transfer_end(ax_transfer *transfer) {
  if (transfer->done != NULL) transfer->done(transfer->context);
  free_transfer(transfer);
}
