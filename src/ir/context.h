/* What a room has to find again in the traces that begin inside another one: entries of a key and a value, in a list that a trace
   inherits as a pointer.

     this trace          loop notes -> grid --.
     the trace around                         '-> batching -> NULL
     the thread          numbers -> NULL                              entries of callers, behind those of all traces

   Nothing here knows a key. A room keeps each of its keys to itself, and offers functions to set and to ask, with the value's type
   (kernel/grid.h, prim/settle.h, ..). */
#ifndef AX_IR_CONTEXT_H
#define AX_IR_CONTEXT_H

#include "base/base.h"

/* Keys are told apart by their addresses. */
typedef struct ax_context_key {
  const char *name;
  void (*release)(void *value); /* of a value that the trace owns, when the trace ends; NULL: values are borrowed */
} ax_context_key;

typedef struct ax_context {
  const ax_context_key *key;
  void *value;
  struct ax_context *around;
} ax_context;

struct ax_builder;

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
/* Releases the values that were set in this trace, which ends. */
void ax_context_end(struct ax_builder *builder);

#endif
