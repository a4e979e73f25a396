/* Events: something that comes about once, well or with an error. Who waits for it may be a thread, or callbacks. An event is the
   caller's, who destroys it, and what brings it about holds it too. */
#include <string.h>

#include "pjrt/pjrt.h"

typedef struct listener {
  void (*callback)(ax_pjrt_error *error, void *context);
  void *context;
  struct listener *next;
} listener;

struct ax_pjrt_event {
  atomic_uint references;
  pthread_mutex_t lock; /* of all that follows */
  pthread_cond_t came;
  bool ready;
  ax_pjrt_code code; /* once it is ready, as is message */
  char *message;     /* NULL: none */
  ax_array *array;    /* which it waits for; retained until it is ready: who awaits the event works on the array's run */
  listener *listeners;
};

static ax_pjrt_event *create(void) {
  ax_pjrt_event *event = ax_calloc_plain(sizeof *event);
  if (event == NULL) return NULL;
  atomic_init(&event->references, 1);
  pthread_mutex_init(&event->lock, NULL);
  pthread_cond_init(&event->came, NULL);
  return event;
}

static bool set(ax_pjrt_event *event, ax_pjrt_code code, const char *message, size_t length);

static void release(ax_pjrt_event *event) {
  static const char never[] = "the event was destroyed, and had not come about";
  if (event == NULL || atomic_fetch_sub(&event->references, 1) != 1) return;
  if (event->listeners != NULL) (void)set(event, AX_PJRT_CANCELLED, never, sizeof never - 1); /* nothing is left that could bring it about */
  ax_array_release(event->array);
  pthread_mutex_destroy(&event->lock);
  pthread_cond_destroy(&event->came);
  ax_free(event->message);
  ax_free(event);
}

/* The event's error, made anew; NULL: it came about well. Of an event that is ready. */
static ax_pjrt_error *error_of(const ax_pjrt_event *event) {
  return event->code != AX_PJRT_OK ? ax_pjrt_error_of(event->code, event->message) : NULL;
}

/* It comes about. What was set first stays; returns whether this is it. The caller holds the event, which callbacks may destroy. */
static bool set(ax_pjrt_event *event, ax_pjrt_code code, const char *message, size_t length) {
  char *own = message != NULL && code != AX_PJRT_OK ? ax_alloc(length + 1) : NULL;
  if (own != NULL) memcpy(own, message, length), own[length] = '\0';
  pthread_mutex_lock(&event->lock);
  const bool first = !event->ready;
  listener *listeners = event->listeners;
  ax_array *array = event->array;
  if (first) {
    event->ready = true;
    event->code = code;
    event->message = own;
    event->array = NULL;
    event->listeners = NULL;
  }
  pthread_cond_broadcast(&event->came);
  pthread_mutex_unlock(&event->lock);
  if (!first) {
    ax_free(own);
    return false;
  }
  ax_array_release(array);
  for (listener *l = listeners, *next; l != NULL; l = next) {
    next = l->next;
    l->callback(error_of(event), l->context);
    ax_free(l);
  }
  return true;
}

ax_pjrt_event *ax_pjrt_event_retain(ax_pjrt_event *event) {
  atomic_fetch_add(&event->references, 1);
  return event;
}

void ax_pjrt_event_awaits(ax_pjrt_event *event, ax_array *array) {
  pthread_mutex_lock(&event->lock);
  if (!event->ready && event->array == NULL) event->array = ax_array_retain(array);
  pthread_mutex_unlock(&event->lock);
}

ax_pjrt_event *ax_pjrt_event_now(ax_pjrt_error *error) {
  ax_pjrt_event *event = create();
  ax_pjrt_error_message_args message = {.struct_size = sizeof message, .of = error};
  ax_pjrt_error_code_args code = {.struct_size = sizeof code, .of = error};
  ax_pjrt_do_error_message(&message);
  (void)ax_pjrt_do_error_code(&code);
  if (event != NULL) (void)set(event, code.value, message.text, message.length);
  ax_pjrt_do_error_destroy(&(ax_pjrt_error_destroy_args){.of = error});
  return event;
}

void ax_pjrt_event_end(ax_pjrt_event *event, ax_status status, const char *message) {
  (void)set(event, ax_pjrt_code_of(status), message, message != NULL ? strlen(message) : 0);
  release(event);
}

static void array_is_ready(ax_status status, const char *message, void *context) { ax_pjrt_event_end(context, status, message); }

ax_pjrt_error *ax_pjrt_event_of(ax_array *array, ax_pjrt_event **out) {
  ax_pjrt_event *event = *out = create();
  if (event == NULL) return ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for an event");
  event->array = ax_array_retain(array);
  atomic_fetch_add(&event->references, 1);
  const ax_status status = ax_array_when_ready(array, array_is_ready, event);
  if (status == AX_OK) return NULL;
  release(event);
  release(event);
  *out = NULL;
  return ax_pjrt_status(status);
}

/* --- The table's functions --- */

ax_pjrt_error *ax_pjrt_do_event_destroy(ax_pjrt_event_destroy_args *args) {
  release(args->of);
  return NULL;
}

ax_pjrt_error *ax_pjrt_do_event_is_ready(ax_pjrt_event_is_ready_args *args) {
  pthread_mutex_lock(&args->of->lock);
  args->value = args->of->ready;
  pthread_mutex_unlock(&args->of->lock);
  return NULL;
}

ax_pjrt_error *ax_pjrt_do_event_await(ax_pjrt_event_await_args *args) {
  ax_pjrt_event *event = args->of;
  pthread_mutex_lock(&event->lock);
  ax_array *array = event->ready ? NULL : ax_array_retain(event->array);
  pthread_mutex_unlock(&event->lock);
  if (array != NULL) {
    (void)(ax_array_wait(array) == AX_OK); /* the event gets the failure, too */
    ax_array_release(array);
  }
  pthread_mutex_lock(&event->lock);
  while (!event->ready) pthread_cond_wait(&event->came, &event->lock);
  pthread_mutex_unlock(&event->lock);
  return error_of(event);
}

ax_pjrt_error *ax_pjrt_do_event_error(ax_pjrt_event_error_args *args) {
  return ax_pjrt_do_event_await(&(ax_pjrt_event_await_args){.struct_size = sizeof(ax_pjrt_event_await_args), .of = args->of});
}

ax_pjrt_error *ax_pjrt_do_event_on_ready(ax_pjrt_event_on_ready_args *args) {
  ax_pjrt_event *event = args->of;
  listener *l = ax_alloc_plain(sizeof *l);
  if (l == NULL) return ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for a callback");
  pthread_mutex_lock(&event->lock);
  const bool ready = event->ready;
  *l = (listener){args->callback, args->context, event->listeners};
  if (!ready) event->listeners = l;
  pthread_mutex_unlock(&event->lock);
  if (!ready) return NULL;
  ax_free(l);
  args->callback(error_of(event), args->context);
  return NULL;
}

ax_pjrt_error *ax_pjrt_do_event_create(ax_pjrt_event_create_args *args) {
  args->value = create();
  return args->value != NULL ? NULL : ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for an event");
}

ax_pjrt_error *ax_pjrt_do_event_set(ax_pjrt_event_set_args *args) {
  ax_pjrt_event *event = ax_pjrt_event_retain(args->of);
  const bool first = set(event, args->code, args->message, args->message_length);
  release(event);
  return first ? NULL : ax_pjrt_fail(AX_PJRT_FAILED_PRECONDITION, "the event has come about already");
}
