#include "processes/talk.h"

typedef struct talking {
  const ax_talk *talk;
  ax_together *together;
  void *context;
  ax_status status; /* and its message, once something has failed */
} talking;

static ax_status take_counted(talking *t, ax_delivery *delivery) {
  ax_status status = ax_together_count(t->together, delivery);
  if (status == AX_OK && t->status == AX_OK) {
    if (ax_delivery_is_away(delivery)) return ax_together_fetch(t->together, delivery);
    status = t->talk->take(t->together, t->context, delivery);
  }
  ax_delivery_free(delivery);
  return status;
}

static ax_status take(talking *t, ax_delivery *delivery) {
  if (ax_message_is_counted(delivery->envelope.kind)) return take_counted(t, delivery);
  return ax_together_handle(t->together, delivery);
}

static bool handle(void *context) {
  talking *t = context;
  bool any = false;
  for (ax_delivery *next, *one = ax_together_take(t->together); one != NULL; one = next) {
    next = one->next;
    any = true;
    ax_status status = take(t, one);
    if (t->status == AX_OK) t->status = status; /* its message stays, since nothing is done after it that fails */
  }
  return any;
}

static bool is_over(void *context) {
  const talking *t = context;
  const ax_ending *ending = &t->together->ending;
  return t->status != AX_OK || atomic_load(&ending->failed) || atomic_load(&ending->stuck) ||
         t->talk->is_done(t->together, t->context);
}

static ax_status hold(talking *t) {
  AX_TRY(t->talk->begin(t->together, t->context));
  AX_TRY(ax_together_until(t->together, &(ax_waiting){is_over, handle, t, NULL}));
  if (t->status != AX_OK || t->talk->is_done(t->together, t->context)) return t->status;
  return atomic_load(&t->together->ending.failed) ? AX_UNAVAILABLE : t->talk->lacks(t->context);
}

ax_status ax_talk_hold(const ax_talk *talk, ax_processes *processes, const ax_doing *doing, ax_status status, void *context) {
  ax_doing own = *doing;
  if (status != AX_OK) own.check = 0; /* nothing is compared */
  talking t = {talk, ax_together_borrow(processes), context, status};
  ax_together_begin(t.together, &own);
  if (status == AX_OK) t.status = status = hold(&t);
  status = ax_together_end(t.together, status, handle, &t);
  ax_together_give_back(processes);
  return status;
}
