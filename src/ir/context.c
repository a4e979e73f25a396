/* See context.h. */
#include "ir/context.h"

#include "ir/program.h"

static _Thread_local ax_context *entered; /* by callers, on this thread */

static ax_context *find(ax_context *from, const ax_context *end, const ax_context_key *key) {
  while (from != end && from->key != key) from = from->around;
  return from != end ? from : NULL;
}

void *ax_context_get(const ax_context_key *key) {
  const ax_builder *builder = ax_builder_current();
  const ax_context *entry = builder != NULL ? find(builder->context, NULL, key) : NULL;
  if (entry == NULL) entry = find(entered, NULL, key);
  return entry != NULL ? entry->value : NULL;
}

void *ax_context_own(const ax_builder *builder, const ax_context_key *key) {
  const ax_context *entry = find(builder->context, builder->inherited, key);
  return entry != NULL ? entry->value : NULL;
}

static void release(const ax_context *entry) {
  if (entry->key->release != NULL && entry->value != NULL) entry->key->release(entry->value);
}

bool ax_context_set(const ax_context_key *key, void *value) {
  ax_builder *builder = ax_builder_current();
  ax_context *entry = find(builder->context, builder->inherited, key);
  if (entry != NULL) {
    if (entry->value != value) release(entry);
    entry->value = value;
    return true;
  }
  entry = ax_alloc(sizeof *entry);
  if (entry == NULL) {
    ax_fail(ax_out_of_memory(sizeof *entry));
    return false;
  }
  *entry = (ax_context){key, value, builder->context};
  builder->context = entry;
  return true;
}

void ax_context_enter(ax_context *entry, const ax_context_key *key, void *value) {
  *entry = (ax_context){key, value, entered};
  entered = entry;
}

void ax_context_leave(const ax_context *entry) {
  assert(entered == entry);
  entered = entry->around;
}

void ax_context_give_up(const ax_builder *builder) {
  for (const ax_context *entry = builder->context; entry != builder->inherited; entry = entry->around)
    if (entry->key->given_up != NULL && entry->value != NULL) entry->key->given_up(entry->value, builder);
}

void ax_context_end(ax_builder *builder) {
  while (builder->context != builder->inherited) {
    ax_context *entry = builder->context;
    builder->context = entry->around;
    release(entry);
    ax_free(entry);
  }
}
