/* What is registered for custom calls, and a call of it in a module. */
#ifndef AX_FFI_CUSTOM_CALLS_H
#define AX_FFI_CUSTOM_CALLS_H

#include <pthread.h>

#include "axle/custom_call.h"
#include "base/base.h"
#include "ffi/abi.h"
#include "ir/equation.h"

typedef struct ax_custom_call_entry { /* a target: a function of Axle's, or any of the others */
  ax_custom_call_function function;
  void *context;
  void (*release)(void *context);
  ax_custom_call_options options;
  ax_ffi_handler stages[AX_FFI_STAGES];
  ax_foreign_function untyped;
  const char *name; /* behind the entry */
} ax_custom_call_entry;

typedef struct ax_ffi_type { /* of states */
  int64_t number;
  void (*deleter)(void *object);
} ax_ffi_type;

struct ax_custom_calls {
  _Atomic uint32_t references;
  pthread_mutex_t lock;
  ax_custom_call_entry **entries; /* in the order in which they came */
  uint32_t *slots, slot_count;    /* a hash table of targets: 1 + the place in `entries`; 0: none */
  ax_ffi_type *types;
  void **libraries; /* of dlopen */
  uint32_t entry_count, entry_capacity, type_count, type_capacity, library_count, library_capacity;
};

/* The entry of a target: a copy. False: there is none. calls: NULL, likewise. */
bool ax_custom_calls_find(ax_custom_calls *calls, const char *target, ax_custom_call_entry *out);
/* Adds the names, "a, b", for a message; "none" where there are none. */
void ax_custom_calls_names(ax_custom_calls *calls, ax_text *text);
/* What ends an object of a type; NULL: the type is not known. */
void (*ax_custom_calls_deleter(ax_custom_calls *calls, int64_t type))(void *object);

/* A call in a module: the context of its callback. Make one, say what the module says, begin it; then it is only read. */
enum { AX_FFI_UNTYPED_MOST = 3, AX_FFI_TYPED = 4 }; /* versions of the interface */
typedef struct ax_ffi_state_slot {
  void *object; /* NULL: none */
  int64_t type;
  void (*deleter)(void *object);
} ax_ffi_state_slot;
typedef struct ax_ffi_site {
  ax_arena arena; /* of all that follows */
  ax_custom_calls *calls;
  ax_custom_call_entry entry;
  const char *target;
  int64_t version;
  ax_attribute attributes;
  const char *config; /* versions 1 to 3: the call's text */
  size_t config_bytes;
  uint32_t in_count, out_count;
  const ax_type *in_types, *out_types; /* as the module has them; the callback's arrays are in the order that layouts say */
  const uint32_t *alias;               /* by result: the operand whose memory it is to be; AX_NONE: none */
  const ax_dims *orders; /* of operands, then results: their dimensions from the outermost in memory on, count 0: in order. NULL: all are */
  bool blocks; /* operands are blocks of those of the module (ir/callback.h) */
  const char *text;                    /* the call's attributes, to be written again */
  ax_ffi_attributes typed;             /* version 4; and buffers without their memory, operands first, and their kinds */
  ax_ffi_buffer *buffers;
  int *kinds;
  ax_ffi_state_slot state;             /* what the handler's first stage made */
} ax_ffi_site;

/* `target` is copied. AX_ABSENT: it is not registered. */
AX_MUST_USE ax_status ax_ffi_site_create(ax_custom_calls *calls, const char *target, size_t length, ax_ffi_site **out);
/* Looks whether the function takes the call, and has a handler make its state. Errors name no target. */
AX_MUST_USE ax_status ax_ffi_site_begin(ax_ffi_site *site);
/* An ax_callback_function, its context, and what ends that. */
ax_status ax_ffi_site_call(ax_callback_call *call, void *site);
void ax_ffi_site_release(void *site);

/* --- frame.c --- */
/* Asks a handler for its version, which must be one that runs here. */
AX_MUST_USE ax_status ax_ffi_ask(ax_ffi_handler handler, const char *stage);
AX_MUST_USE ax_status ax_ffi_instantiate(ax_ffi_site *site);
AX_MUST_USE ax_status ax_ffi_execute(const ax_ffi_site *site, ax_callback_call *call);

#endif
