/* Callbacks, and the parts of the host that programs, runtimes and evaluations hold: functions registered by name, and the receiver
   of text. */
#ifndef AX_IR_CALLBACK_H
#define AX_IR_CALLBACK_H

#include <pthread.h>

#include "axle/callback.h"
#include "base/base.h"

struct ax_callback {
  _Atomic uint32_t references;
  ax_callback_function function; /* NULL: a callback read from a text, of which only the name is known */
  void *context;
  void (*release)(void *context);
  const char *custom_call; /* attributes of the stablehlo.custom_call that it was read from, to be written again; the context's.
                              NULL: none */
  const struct ax_dims *orders; /* of that call's operands, then results: their dimensions as they lie in memory, which is how the callback
                                   has them. Count 0: in order; NULL: all are */
  bool blocks; /* outside of shard_maps, too, each device calls it, with its block of each operand as that lies over the devices; it has no
                  results (partition/host_calls.c) */
  /* Not NULL: it stands for no call, but for the question how its one operand lies, which the partitioner answers: over the program's whole
     mesh; spec NULL: whole. by_hand: in a shard_map, which gives each device what it gives it. It is asked anew where a body is made for
     other layouts; the last answer holds. */
  void (*lies)(void *context, const ax_mesh *mesh, const ax_spec *spec, bool by_hand);
  char name[];
};

enum { AX_MAX_CALLBACK_NAME = 255 };

/* Makes a callback of any name of 1 to AX_MAX_CALLBACK_NAME bytes, without a function: it is found by its name later. */
AX_MUST_USE ax_status ax_callback_make(const char *name, size_t length, ax_callback **out);
bool ax_callback_equal(const ax_callback *a, const ax_callback *b);

/* A runtime's callbacks by name. They are only added until the end, so a callback that was found stays valid. Zero-initialise, then
   call _init. */
typedef struct ax_callbacks {
  pthread_mutex_t lock;
  ax_callback **v; /* retained */
  uint32_t count, capacity;
} ax_callbacks;
void ax_callbacks_init(ax_callbacks *callbacks);
void ax_callbacks_deinit(ax_callbacks *callbacks);
/* AX_INVALID_ARGUMENT: another is registered under that name. */
AX_MUST_USE ax_status ax_callbacks_add(ax_callbacks *callbacks, ax_callback *callback);

ax_callback *ax_callbacks_find(ax_callbacks *callbacks,
                               const char *name); /* borrowed, as long as the callbacks live; NULL: no callback has this name, or
                                                     `callbacks` is NULL */

/* The host of a run. */
struct ax_eval_args; /* ir/prim.h */
typedef struct ax_hooks {
  ax_callbacks *callbacks; /* NULL: none */
  void (*print)(const char *text, void *context); /* NULL: the text of debug_print is dropped */
  void *print_context;
  ax_status (*kernel)(
      const struct ax_eval_args *args,
      void *context); /* the reference evaluation calls it before each kernel_call; NULL: not called */
  void *kernel_context;
} ax_hooks;
/* Finds the callback to run: the callback itself if it has a function, otherwise the registered one of its name. hooks may be NULL.
   AX_INVALID_ARGUMENT: none is registered. */
AX_MUST_USE ax_status ax_callback_resolve(const ax_hooks *hooks, ax_callback *callback, ax_callback **out);

#endif
