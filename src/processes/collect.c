#include "processes/collect.h"

#include <string.h>

#include "processes/talk.h"

typedef struct collecting {
  uint32_t own, processes, root;
  const void *data;
  size_t bytes;
  ax_collected *out;
  uint32_t missing; /* processes whose bytes have not come */
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

static ax_status begin(ax_together *together, void *context) {
  collecting *c = context;
  c->missing = gets(c, c->own) ? c->processes - 1 : 0;
  if (gets(c, c->own)) AX_TRY(keep(&c->out[c->own], c->data, c->bytes));
  for (uint32_t to = 0; to < c->processes; to++) {
    ax_envelope envelope = {.kind = AX_MESSAGE_PART, .bytes = c->bytes};
    if (to != c->own && gets(c, to)) AX_TRY(ax_together_send(together, to, &envelope, c->data, NULL, NULL));
  }
  return AX_OK;
}

static ax_status take(ax_together *together, void *context, const ax_delivery *delivery) {
  (void)together;
  collecting *c = context;
  c->missing--;
  return keep(&c->out[delivery->from], delivery->payload, delivery->envelope.bytes);
}

static bool is_done(const ax_together *together, const void *context) {
  (void)together;
  return ((const collecting *)context)->missing == 0;
}

static ax_status lacks(const void *context) {
  return ax_error(AX_DEADLOCK, "what %u processes give has not come", ((const collecting *)context)->missing);
}

ax_status ax_collect_bytes(ax_processes *processes, const ax_doing *doing, ax_status status, uint32_t root, const void *data,
                           size_t bytes, ax_collected *out) {
  static const ax_talk talk = {begin, take, is_done, lacks};
  const ax_process_rule *rule = &processes->rule;
  for (uint32_t p = 0; p < rule->processes; p++) out[p] = (ax_collected){0};
  collecting c = {rule->process, rule->processes, root, data, bytes, out, 0};
  status = ax_talk_hold(&talk, processes, doing, status, &c);
  if (status != AX_OK) ax_collected_deinit(out, rule->processes);
  return status;
}

void ax_collected_deinit(ax_collected *collected, uint32_t count) {
  for (uint32_t p = 0; p < count; p++) {
    ax_free(collected[p].data);
    collected[p] = (ax_collected){0};
  }
}
