/* What programs, runtimes and evaluation hold of the host: callbacks, those registered by name, and where text goes. */
#ifndef AX_IR_CALLBACK_H
#define AX_IR_CALLBACK_H

#include <pthread.h>

#include "axle/callback.h"
#include "base/base.h"

struct ax_callback {
  _Atomic uint32_t references;
  ax_callback_function function; /* NULL: of a text; the name alone is known */
  void *context;
  void (*release)(void *context);
  char name[];
};

enum { AX_MAX_CALLBACK_NAME = 255 };

/* Any name of 1 to AX_MAX_CALLBACK_NAME bytes; function NULL: one that is to be looked up. */
AX_MUST_USE ax_status ax_callback_make(const char *name, size_t length, ax_callback **out);
bool ax_callback_equal(const ax_callback *a, const ax_callback *b);

/* Those of a runtime, by name. Only added to, until the end: one that was found stays. Zero-initialised, then _init. */
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
                               const char *name); /* borrowed, as long as they live; NULL: there is none, or none of all */

/* What a run has of its host. */
struct ax_eval_args; /* ir/prim.h */
typedef struct ax_hooks {
  ax_callbacks *callbacks; /* NULL: none */
  void (*print)(const char *text, void *context); /* NULL: nobody reads what debug_print says */
  void *print_context;
  ax_status (*kernel)(
      const struct ax_eval_args *args,
      void *context); /* reference evaluation calls it at each kernel_call, before that is run; NULL: nobody looks */
  void *kernel_context;
} ax_hooks;
/* The callback itself where it has a function, else the one of that name. hooks may be NULL. AX_INVALID_ARGUMENT: none is
   registered. */
AX_MUST_USE ax_status ax_callback_resolve(const ax_hooks *hooks, ax_callback *callback, ax_callback **out);

#endif
