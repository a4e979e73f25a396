/* Entries of a key and a value that rooms keep in a trace, to find them again in the traces that begin inside it. They form a list,
   which a trace inherits as a pointer.

     this trace          loop notes -> grid --.
     the trace around                         '-> batching -> NULL
     the thread          numbers -> NULL                              entries of callers, behind those of all traces

   Nothing here knows a key. A room keeps each of its keys to itself, and offers functions to set and to ask, with the value's type
   (kernel/grid.h, prim/settle.h, ..). */
#ifndef AX_IR_CONTEXT_H
#define AX_IR_CONTEXT_H

#include "base/base.h"

struct ax_builder;

/* Keys are told apart by their addresses. */
typedef struct ax_context_key {
  const char *name;
  void (*release)(void *value); /* of a value that the trace owns, when the trace ends; NULL: values are borrowed */
  /* Told that the trace is given up, as its function was left by longjmp, an exception or the like and will never finish it. The
     trace around is current; `trace` and the value are whole still. NULL: it does not matter how the trace ends. */
  void (*given_up)(void *value, const struct ax_builder *trace);
} ax_context_key;

typedef struct ax_context {
  const ax_context_key *key;
  void *value;
  struct ax_context *around;
} ax_context;

/* The innermost value of the key; NULL: there is none. */
void *ax_context_get(const ax_context_key *key);
/* The value that was set in this trace itself; NULL: none was. */
void *ax_context_own(const struct ax_builder *builder, const ax_context_key *key);
/* Sets the value for the trace in progress and those that begin inside it, until it ends. A value that the trace owned before is
   released. False: no memory; the trace has failed, and the value is the caller's still. */
bool ax_context_set(const ax_context_key *key, void *value);
/* Sets the value for all that this thread does until ax_context_leave, which the same function calls. The entry is the caller's. */
void ax_context_enter(ax_context *entry, const ax_context_key *key, void *value);
void ax_context_leave(const ax_context *entry);
/* Tells the keys of the values that were set in this trace that it is given up. */
void ax_context_give_up(const struct ax_builder *builder);
/* Releases the values that were set in this trace, which ends. */
void ax_context_end(struct ax_builder *builder);

#endif
