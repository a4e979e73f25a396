#include "processes/collect.h"

#include <string.h>

typedef struct collecting {
  ax_together *together;
  uint32_t own, processes, root;
  const void *data;
  size_t bytes;
  ax_collected *out;
  uint32_t missing; /* processes whose bytes have not come */
  ax_status status; /* and its message, once something has failed */
} collecting;

static bool gets(const collecting *c, uint32_t process) { return c->root == AX_NONE || c->root == process; }

static ax_status keep(ax_collected *out, const void *data, size_t bytes) {
  char *copy = ax_alloc(bytes + 1);
  if (copy == NULL) return ax_out_of_memory(bytes + 1);
  if (bytes > 0) memcpy(copy, data, bytes);
  copy[bytes] = '\0';
  *out = (ax_collected){copy, bytes};
  return AX_OK;
}

static ax_status send_to(collecting *c, uint32_t to) {
  ax_envelope envelope = {.kind = AX_MESSAGE_PART, .bytes = c->bytes};
  void *payload = NULL;
  if (c->bytes > AX_SHORT_PAYLOAD) {
    payload = ax_alloc(c->bytes);
    if (payload == NULL) return ax_out_of_memory(c->bytes);
    memcpy(payload, c->data, c->bytes);
  }
  ax_status status =
      ax_together_send(c->together, to, &envelope, payload != NULL ? payload : c->data, payload != NULL ? ax_free : NULL, payload);
  if (status != AX_OK) ax_free(payload);
  return status;
}

static ax_status take_part(collecting *c, ax_delivery *delivery) {
  ax_status status = ax_together_count(c->together, delivery);
  if (status == AX_OK && c->status == AX_OK) {
    if (delivery->envelope.bytes > 0 && delivery->payload == NULL) return ax_together_fetch(c->together, delivery);
    status = keep(&c->out[delivery->from], delivery->payload, delivery->envelope.bytes);
    c->missing--;
  }
  ax_delivery_free(delivery);
  return status;
}

static ax_status take(collecting *c, ax_delivery *delivery) {
  const uint32_t kind = delivery->envelope.kind;
  if (ax_message_is_counted(kind)) return take_part(c, delivery);
  return ax_together_handle(c->together, delivery);
}

static bool handle(void *context) {
  collecting *c = context;
  bool any = false;
  for (ax_delivery *next, *one = ax_together_take(c->together); one != NULL; one = next) {
    next = one->next;
    any = true;
    ax_status status = take(c, one);
    if (c->status == AX_OK) c->status = status; /* its message stays, since nothing is done after it that fails */
  }
  return any;
}

static bool has_come(void *context) {
  const collecting *c = context;
  const ax_ending *ending = &c->together->ending;
  return c->missing == 0 || c->status != AX_OK || atomic_load(&ending->failed) || atomic_load(&ending->stuck);
}

static ax_status exchange(collecting *c) {
  c->missing = gets(c, c->own) ? c->processes - 1 : 0;
  if (gets(c, c->own)) AX_TRY(keep(&c->out[c->own], c->data, c->bytes));
  for (uint32_t to = 0; to < c->processes; to++)
    if (to != c->own && gets(c, to)) AX_TRY(send_to(c, to));
  AX_TRY(ax_together_until(c->together, &(ax_waiting){has_come, handle, c, NULL}));
  if (c->status != AX_OK || c->missing == 0) return c->status;
  if (atomic_load(&c->together->ending.failed)) return AX_UNAVAILABLE;
  return ax_error(AX_DEADLOCK, "what %u processes give has not come", c->missing);
}

ax_status ax_collect_bytes(ax_processes *processes, const ax_doing *doing, ax_status status, uint32_t root, const void *data, size_t bytes,
                     ax_collected *out) {
  const ax_process_rule *rule = &processes->rule;
  ax_doing own = *doing;
  for (uint32_t p = 0; p < rule->processes; p++) out[p] = (ax_collected){0};
  if (status != AX_OK) own.check = 0;
  ax_together *together = ax_together_borrow(processes);
  collecting c = {together, rule->process, rule->processes, root, data, bytes, out, 0, status};
  ax_together_begin(together, &own);
  if (status == AX_OK) c.status = status = exchange(&c);
  status = ax_together_end(together, status, handle, &c);
  ax_together_give_back(processes);
  if (status != AX_OK) ax_collected_deinit(out, rule->processes);
  return status;
}

void ax_collected_deinit(ax_collected *collected, uint32_t count) {
  for (uint32_t p = 0; p < count; p++) {
    ax_free(collected[p].data);
    collected[p] = (ax_collected){0};
  }
}
