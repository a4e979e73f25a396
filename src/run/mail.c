/* Messages (mail.h). The queue is a list that begins with the message taken last, if any. Only the sender writes its end, and
   only the receiver its beginning. A message is read after the link's counter has said that it is there. */
#include "run/mail.h"

#include <string.h>

#include "run/compute.h"
#include "run/remote.h"

struct ax_letter {
  struct ax_letter *next;
  const ax_instr *from;
  void *data; /* of the runtime's pool; given back when it is received */
};

struct ax_queue {
  struct ax_letter *last;  /* the sender's */
  char apart[64];          /* from the receiver's */
  struct ax_letter *taken; /* the message before the first that waits */
  uint64_t count;          /* messages taken */
  ax_in_order away;        /* messages from another process */
};

static struct ax_letter *new_letter(const ax_instr *from) {
  struct ax_letter *letter = ax_calloc(1, sizeof *letter);
  if (letter != NULL) letter->from = from;
  return letter;
}

static void free_data(ax_execution *run, struct ax_letter *letter) {
  if (letter->data != NULL) ax_pool_free(&run->executor->pool, letter->data, (size_t)letter->from->side->bytes);
  letter->data = NULL;
}

ax_status ax_mail_init(ax_execution *run) {
  const uint32_t count = run->compiled->link_count;
  run->queues = ax_calloc(count, sizeof run->queues[0]);
  if (run->queues == NULL) return ax_out_of_memory(count * sizeof run->queues[0]);
  for (uint32_t i = 0; i < count; i++) {
    run->queues[i].last = run->queues[i].taken = new_letter(NULL);
    if (run->queues[i].last == NULL) return ax_out_of_memory(sizeof *run->queues[i].last);
  }
  return AX_OK;
}

void ax_mail_empty(ax_execution *run) {
  for (uint32_t i = 0; i < run->compiled->link_count; i++) {
    struct ax_queue *queue = &run->queues[i];
    while (queue->taken != queue->last) {
      struct ax_letter *next = queue->taken->next;
      free_data(run, next);
      ax_free(queue->taken);
      queue->taken = next;
    }
    ax_in_order_empty(&queue->away);
    queue->count = 0;
  }
}

void ax_mail_deinit(ax_execution *run) {
  if (run->queues == NULL) return;
  ax_mail_empty(run);
  for (uint32_t i = 0; i < run->compiled->link_count; i++)
    ax_free(run->queues[i].taken);
  ax_free(run->queues);
}

/* To a device of another process. place: the link; words[0]: the instruction, which says the message's type. */
static ax_status send_away(ax_execution *run, const ax_activation *activation, const ax_instr *instr, uint32_t link) {
  const uint32_t target = run->compiled->links[link].target;
  ax_envelope envelope = {.kind = AX_MESSAGE_LETTER, .place = link, .bytes = (uint64_t)instr->side->bytes};
  envelope.words[0] = (uint64_t)(instr - activation->code->instrs);
  return ax_remote_send(run->remote, run->compiled->map->of[target], &envelope, ax_address(activation, &instr->refs[0]));
}

ax_status ax_mail_send(ax_execution *run, const ax_activation *activation, const ax_instr *instr) {
  const ax_side *side = instr->side;
  uint32_t link = side->link[activation->device];
  if (link == AX_NONE) return AX_OK;
  if (!ax_device_is_here(run->compiled->map, run->compiled->links[link].target)) return send_away(run, activation, instr, link);
  struct ax_letter *letter = new_letter(instr);
  ax_status status = letter == NULL ? ax_out_of_memory(sizeof *letter)
                     : side->bytes > 0 ? ax_pool_alloc(&run->executor->pool, (size_t)side->bytes, &letter->data)
                                       : AX_OK;
  if (status != AX_OK) {
    ax_free(letter);
    return status;
  }
  if (side->bytes > 0) memcpy(letter->data, ax_address(activation, &instr->refs[0]), (size_t)side->bytes);
  run->queues[link].last->next = letter;
  run->queues[link].last = letter;
  ax_scheduler_signal(run, run->compiled->first_link + link, 1);
  return AX_OK;
}

/* Puts a message with its payload into its queue. */
static ax_status receive_letter(ax_execution *run, const ax_delivery *delivery) {
  struct ax_queue *queue = &run->queues[delivery->envelope.place];
  struct ax_letter *letter = new_letter(&run->compiled->codes[0].instrs[delivery->envelope.words[0]]);
  if (letter == NULL) return ax_out_of_memory(sizeof *letter);
  const size_t bytes = (size_t)delivery->envelope.bytes;
  ax_status status = bytes > 0 ? ax_pool_alloc(&run->executor->pool, bytes, &letter->data) : AX_OK;
  if (status != AX_OK) {
    ax_free(letter);
    return status;
  }
  if (bytes > 0) memcpy(letter->data, delivery->payload, bytes);
  queue->last->next = letter;
  queue->last = letter;
  ax_scheduler_signal(run, run->compiled->first_link + delivery->envelope.place, 1);
  return AX_OK;
}

static ax_status take_one(ax_execution *run, ax_delivery *delivery) {
  ax_status status = receive_letter(run, delivery);
  ax_delivery_free(delivery);
  return status;
}

/* --- That no more come from a process: it says so once its devices are through, behind all that they have sent --- */

static bool leads(const ax_execution *run, uint32_t from, uint32_t to) {
  const ax_compiled *c = run->compiled;
  for (uint32_t i = 0; i < c->link_count; i++)
    if (c->map->of[c->links[i].source] == from && c->map->of[c->links[i].target] == to) return true;
  return false;
}

uint32_t ax_mail_senders(const ax_execution *run) {
  const ax_process_map *map = run->compiled->map;
  uint32_t count = 0;
  for (uint32_t p = 0; p < map->processes; p++) count += p != map->process && leads(run, p, map->process);
  return count;
}

ax_status ax_mail_close(ax_execution *run) {
  const ax_process_map *map = run->compiled->map;
  for (uint32_t p = 0; p < map->processes; p++) {
    ax_envelope envelope = {.kind = AX_MESSAGE_LETTER, .place = AX_NONE};
    if (p != map->process && leads(run, map->process, p)) AX_TRY(ax_remote_send(run->remote, p, &envelope, NULL));
  }
  return AX_OK;
}

ax_status ax_mail_take(ax_execution *run, ax_delivery *delivery) {
  const ax_compiled *c = run->compiled;
  const ax_envelope *envelope = &delivery->envelope;
  if (envelope->place == AX_NONE) {
    atomic_fetch_sub(&run->remote->senders, 1);
    ax_delivery_free(delivery);
    return AX_OK;
  }
  if (envelope->place >= c->link_count || envelope->words[0] >= c->codes[0].instr_count ||
      c->codes[0].instrs[envelope->words[0]].kind != AX_INSTR_SEND ||
      c->codes[0].instrs[envelope->words[0]].side->bytes != (int64_t)envelope->bytes) {
    const uint32_t from = delivery->from;
    ax_delivery_free(delivery);
    return ax_error(AX_INTERNAL, "process %u sends a message that this program does not have", from);
  }
  return ax_in_order_take(&run->queues[envelope->place].away, run->remote, delivery, take_one);
}

/* "message 2 of device 0 (d=0)" */
static void letter_text(ax_text *text, const ax_execution *run, uint32_t link) {
  ax_text_add(text, "message %llu of ", (unsigned long long)run->queues[link].count + 1);
  ax_execution_device_name(text, run, run->compiled->links[link].source);
}

static ax_status refuse(const ax_execution *run, const ax_instr *instr, uint32_t f, uint32_t link, const ax_instr *from) {
  ax_text text = {0};
  ax_execution_equation_text(&text, run, instr);
  ax_text_add(&text, " on ");
  ax_execution_device_text(&text, run, f);
  ax_text_add(&text, " receives %s, but ", ax_type_string(&instr->side->type, NULL));
  letter_text(&text, run, link);
  ax_text_add(&text, " is %s, of ", ax_type_string(&from->side->type, NULL));
  ax_execution_equation_text(&text, run, from);
  ax_status status =
      ax_error(AX_INVALID_ARGUMENT, "%s", text.data != NULL && !text.failed ? text.data : "a message is not what precv says");
  ax_text_deinit(&text);
  return status;
}

ax_status ax_mail_receive(ax_execution *run, ax_worker_slot *worker_slot, ax_activation *activation, const ax_instr *instr,
                          uint32_t f, bool *parked) {
  const ax_side *side = instr->side;
  uint32_t link = side->link[activation->device];
  *parked = false;
  if (link == AX_NONE) {
    if (side->bytes > 0) memset(ax_address(activation, &instr->refs[0]), 0, (size_t)side->bytes);
    return AX_OK;
  }
  struct ax_queue *queue = &run->queues[link];
  *parked = !ax_scheduler_await(run, worker_slot, f, run->compiled->first_link + link, queue->count + 1, true);
  if (*parked) return AX_OK;
  struct ax_letter *letter = queue->taken->next;
  if (!ax_type_equal(&letter->from->side->type, &side->type)) return refuse(run, instr, f, link, letter->from);
  if (side->bytes > 0) memcpy(ax_address(activation, &instr->refs[0]), letter->data, (size_t)side->bytes);
  free_data(run, letter);
  ax_free(queue->taken);
  queue->taken = letter;
  queue->count++;
  return AX_OK;
}

ax_status ax_mail_check(const ax_execution *run) {
  const ax_compiled *c = run->compiled;
  uint32_t link = 0;
  while (link < c->link_count && run->queues[link].taken == run->queues[link].last) link++;
  if (link == c->link_count) return AX_OK;
  ax_text text = {0};
  ax_execution_equation_text(&text, run, run->queues[link].taken->next->from);
  ax_text_add(&text, ": ");
  letter_text(&text, run, link);
  ax_text_add(&text, " to ");
  ax_execution_device_name(&text, run, c->links[link].target);
  ax_text_add(&text, " is never received");
  ax_status status =
      ax_error(AX_INVALID_ARGUMENT, "%s", text.data != NULL && !text.failed ? text.data : "a message is never received");
  ax_text_deinit(&text);
  return status;
}
