/* The collection of custom calls: functions by their targets, types of states, libraries. What it has is only added until its end, so
   that programs that were read have what they found. */
#include "ffi/custom_calls.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum { most_name = 255 };

ax_status ax_custom_calls_create(ax_custom_calls **out) {
  *out = NULL;
  ax_custom_calls *calls = ax_calloc(1, sizeof *calls);
  if (calls == NULL) return ax_out_of_memory(sizeof *calls);
  atomic_init(&calls->references, 1);
  pthread_mutex_init(&calls->lock, NULL);
  *out = calls;
  return AX_OK;
}

ax_custom_calls *ax_custom_calls_retain(ax_custom_calls *calls) {
  if (calls != NULL) atomic_fetch_add_explicit(&calls->references, 1, memory_order_relaxed);
  return calls;
}

/* Libraries last: the others may be of them. */
void ax_custom_calls_release(ax_custom_calls *calls) {
  if (calls == NULL || atomic_fetch_sub(&calls->references, 1) != 1) return;
  for (uint32_t i = 0; i < calls->entry_count; i++) {
    const ax_custom_call_entry *entry = calls->entries[i];
    if (entry->release != NULL) entry->release(entry->context);
    ax_free(calls->entries[i]);
  }
  for (uint32_t i = calls->library_count; i-- > 0;) dlclose(calls->libraries[i]);
  pthread_mutex_destroy(&calls->lock);
  ax_free(calls->entries);
  ax_free(calls->slots);
  ax_free(calls->types);
  ax_free(calls->libraries);
  ax_free(calls);
}

/* --- Targets --- */

/* Where the table has the target's entry, or would have it. With the lock held, as all up to `put`. */
static uint32_t *slot_of(const ax_custom_calls *calls, const char *target) {
  uint32_t slot = (uint32_t)ax_hash_bytes(AX_HASH_SEED, target, strlen(target)) & (calls->slot_count - 1);
  while (calls->slots[slot] != 0 && strcmp(calls->entries[calls->slots[slot] - 1]->name, target) != 0) slot = (slot + 1) & (calls->slot_count - 1);
  return &calls->slots[slot];
}

static ax_custom_call_entry *find(const ax_custom_calls *calls, const char *target) {
  const uint32_t found = calls->slot_count > 0 ? *slot_of(calls, target) : 0;
  return found > 0 ? calls->entries[found - 1] : NULL;
}

/* Makes room for one more; at most half of the table is full. */
static ax_status grow_slots(ax_custom_calls *calls) {
  const uint32_t count = calls->slot_count == 0 ? 16 : 2 * calls->slot_count;
  if (2 * (calls->entry_count + 1) <= calls->slot_count) return AX_OK;
  uint32_t *slots = ax_calloc(count, sizeof slots[0]);
  if (slots == NULL) return ax_out_of_memory(count * sizeof slots[0]);
  ax_free(calls->slots);
  calls->slots = slots, calls->slot_count = count;
  for (uint32_t i = 0; i < calls->entry_count; i++) *slot_of(calls, calls->entries[i]->name) = i + 1;
  return AX_OK;
}

static ax_status add(ax_custom_calls *calls, const char *target, ax_custom_call_entry **out) {
  const size_t length = strlen(target);
  AX_TRY(grow_slots(calls));
  AX_TRY(ax_grow(&calls->entries, sizeof calls->entries[0], calls->entry_count, 1, &calls->entry_capacity));
  ax_custom_call_entry *entry = ax_calloc(1, sizeof *entry + length + 1);
  if (entry == NULL) return ax_out_of_memory(sizeof *entry + length + 1);
  entry->name = memcpy(entry + 1, target, length);
  *slot_of(calls, target) = calls->entry_count + 1;
  calls->entries[calls->entry_count++] = *out = entry;
  return AX_OK;
}

/* Puts what `with` has besides what the target has already. */
static ax_status merge(ax_custom_calls *calls, const char *target, const ax_custom_call_entry *with) {
  ax_custom_call_entry *entry = find(calls, target);
  bool taken = entry != NULL && (entry->function != NULL || with->function != NULL || (entry->untyped != NULL && with->untyped != NULL));
  for (int i = 0; i < AX_FFI_STAGES; i++) taken = taken || (entry != NULL && entry->stages[i] != NULL && with->stages[i] != NULL);
  if (taken) return ax_error(AX_INVALID_ARGUMENT, "the custom call @%s is registered already", target);
  if (entry == NULL) AX_TRY(add(calls, target, &entry));
  for (int i = 0; i < AX_FFI_STAGES; i++)
    if (with->stages[i] != NULL) entry->stages[i] = with->stages[i];
  if (with->untyped != NULL) entry->untyped = with->untyped;
  if (with->function == NULL) return AX_OK;
  entry->function = with->function, entry->context = with->context, entry->release = with->release, entry->options = with->options;
  return AX_OK;
}

static ax_status put(ax_custom_calls *calls, const char *target, const ax_custom_call_entry *with) {
  AX_TRY(ax_require(calls, "collection of custom calls"));
  AX_TRY(ax_require(target, "target"));
  const size_t length = strlen(target);
  if (length == 0 || length > most_name)
    return ax_error(AX_INVALID_ARGUMENT, "the target of a custom call has 1 to %d bytes, not %zu", most_name, length);
  pthread_mutex_lock(&calls->lock);
  const ax_status status = merge(calls, target, with);
  pthread_mutex_unlock(&calls->lock);
  return status;
}

ax_status ax_custom_call_register(ax_custom_calls *calls, const char *target, ax_custom_call_function function, void *context,
                                  void (*release)(void *context), const ax_custom_call_options *options) {
  const ax_custom_call_options none = {0};
  if (function == NULL) return ax_error(AX_INVALID_ARGUMENT, "the custom call has no function");
  return put(calls, target,
             &(ax_custom_call_entry){.function = function, .context = context, .release = release, .options = options != NULL ? *options : none});
}

ax_status ax_custom_call_register_ffi(ax_custom_calls *calls, const char *target, const ax_ffi_handlers *handlers) {
  AX_TRY(ax_require(handlers, "handlers"));
  if (handlers->execute == NULL) return ax_error(AX_INVALID_ARGUMENT, "the custom call has no execute handler");
  return put(calls, target,
             &(ax_custom_call_entry){.stages = {(ax_ffi_handler)handlers->instantiate, (ax_ffi_handler)handlers->prepare,
                                                (ax_ffi_handler)handlers->initialize, (ax_ffi_handler)handlers->execute}});
}

ax_status ax_custom_call_register_untyped(ax_custom_calls *calls, const char *target, ax_foreign_function function) {
  if (function == NULL) return ax_error(AX_INVALID_ARGUMENT, "the custom call has no function");
  return put(calls, target, &(ax_custom_call_entry){.untyped = function});
}

bool ax_custom_calls_find(ax_custom_calls *calls, const char *target, ax_custom_call_entry *out) {
  if (calls == NULL) return false;
  pthread_mutex_lock(&calls->lock);
  const ax_custom_call_entry *found = find(calls, target);
  if (found != NULL) *out = *found;
  pthread_mutex_unlock(&calls->lock);
  return found != NULL;
}

void ax_custom_calls_names(ax_custom_calls *calls, ax_text *text) {
  if (calls != NULL) pthread_mutex_lock(&calls->lock);
  for (uint32_t i = 0; calls != NULL && i < calls->entry_count; i++)
    ax_text_add(text, "%s%s", i > 0 ? ", " : "", calls->entries[i]->name);
  if (calls == NULL || calls->entry_count == 0) ax_text_add(text, "none");
  if (calls != NULL) pthread_mutex_unlock(&calls->lock);
}

/* --- Types --- */

/* A type that XLA has not numbered gets the place of its number, which no other type has. */
static int64_t number_of(ax_ffi_type_id *id) {
  if (id->number == 0) id->number = (int64_t)(uintptr_t)id;
  return id->number;
}

static ax_status add_type(ax_custom_calls *calls, ax_ffi_type type) {
  for (uint32_t i = 0; i < calls->type_count; i++) {
    if (calls->types[i].number != type.number) continue;
    if (calls->types[i].deleter == type.deleter) return AX_OK;
    return ax_error(AX_INVALID_ARGUMENT, "another type has this number");
  }
  AX_TRY(ax_grow(&calls->types, sizeof calls->types[0], calls->type_count, 1, &calls->type_capacity));
  calls->types[calls->type_count++] = type;
  return AX_OK;
}

ax_status ax_custom_call_register_ffi_type(ax_custom_calls *calls, void *type_id, const void *type_info) {
  const ax_ffi_type_info *info = type_info;
  AX_TRY(ax_require(calls, "collection of custom calls"));
  AX_TRY(ax_require(type_id, "XLA_FFI_TypeId"));
  AX_TRY(ax_require(info, "XLA_FFI_TypeInfo"));
  if (info->struct_size < sizeof *info || info->deleter == NULL) return ax_error(AX_INVALID_ARGUMENT, "the type has no deleter");
  pthread_mutex_lock(&calls->lock);
  const ax_status status = add_type(calls, (ax_ffi_type){number_of(type_id), info->deleter});
  pthread_mutex_unlock(&calls->lock);
  return status;
}

void (*ax_custom_calls_deleter(ax_custom_calls *calls, int64_t type))(void *object) {
  void (*deleter)(void *object) = NULL;
  pthread_mutex_lock(&calls->lock);
  for (uint32_t i = 0; i < calls->type_count; i++)
    if (calls->types[i].number == type) deleter = calls->types[i].deleter;
  pthread_mutex_unlock(&calls->lock);
  return deleter;
}

/* --- Libraries --- */

static const char *const stages[AX_FFI_STAGES] = {"instantiate", "prepare", "initialize", "execute"};

typedef struct words { /* of "LIBRARY:KIND:SYMBOL=TARGET"; slices of a copy, which NULs end */
  char *library, *kind, *symbol, *target; /* kind, target: NULL, there is none */
} words;

/* Cuts the text at the last separator; NULL: it has none. */
static char *cut(char *text, char separator) {
  char *at = strrchr(text, separator);
  if (at == NULL) return NULL;
  *at = '\0';
  return at + 1;
}

static bool is_kind(const char *word) {
  for (int i = 0; i < AX_FFI_STAGES; i++)
    if (strcmp(word, stages[i]) == 0) return true;
  return strcmp(word, "type") == 0;
}

static ax_status parse(char *text, words *out) {
  char *equals = strrchr(text, '='), *colon;
  *out = (words){.library = text, .target = equals != NULL ? equals + 1 : NULL};
  if (equals != NULL) *equals = '\0';
  out->symbol = cut(text, ':');
  if (equals == NULL && out->symbol != NULL) { /* a type: its second symbol takes the place of the target */
    out->target = out->symbol;
    out->symbol = cut(text, ':');
  }
  colon = strrchr(text, ':');
  if (out->symbol != NULL && colon != NULL && is_kind(colon + 1)) {
    *colon = '\0';
    out->kind = colon + 1;
  }
  const bool type = out->kind != NULL && strcmp(out->kind, "type") == 0;
  if (out->symbol != NULL && out->target != NULL && text[0] != '\0' && out->symbol[0] != '\0' && out->target[0] != '\0' && type == (equals == NULL))
    return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "a custom call of a library is LIBRARY:SYMBOL=TARGET, LIBRARY:STAGE:SYMBOL=TARGET or "
                                       "LIBRARY:type:ID:INFO");
}

static ax_status symbol_of(void *library, const words *w, const char *symbol, void **out) {
  *out = dlsym(library, symbol);
  return *out != NULL ? AX_OK : ax_error(AX_INVALID_ARGUMENT, "%s has no symbol %s", w->library, symbol);
}

static ax_status load(ax_custom_calls *calls, void *library, const words *w) {
  void *symbol, *info;
  ax_custom_call_entry entry = {0};
  AX_TRY(symbol_of(library, w, w->symbol, &symbol));
  if (w->kind != NULL && strcmp(w->kind, "type") == 0) {
    AX_TRY(symbol_of(library, w, w->target, &info));
    return ax_custom_call_register_ffi_type(calls, symbol, info);
  }
  ax_foreign_function function;
  memcpy(&function, &symbol, sizeof function); /* POSIX has both of one form */
  for (int i = 0; i < AX_FFI_STAGES; i++)
    if (strcmp(w->kind != NULL ? w->kind : "execute", stages[i]) == 0) entry.stages[i] = (ax_ffi_handler)function;
  if (w->kind == NULL) entry.untyped = function;
  return put(calls, w->target, &entry);
}

/* The collection has the library from now on. */
static ax_status keep(ax_custom_calls *calls, void *library) {
  pthread_mutex_lock(&calls->lock);
  const ax_status status = ax_grow(&calls->libraries, sizeof calls->libraries[0], calls->library_count, 1, &calls->library_capacity);
  if (status == AX_OK) calls->libraries[calls->library_count++] = library;
  pthread_mutex_unlock(&calls->lock);
  if (status != AX_OK) dlclose(library);
  return status;
}

/* A name without a folder is a file here, or else one of the system's libraries. */
static ax_status open_library(const char *name, void **out) {
  ax_text here = {0};
  if (strchr(name, '/') == NULL) ax_text_add(&here, "./%s", name);
  if (here.failed) return ax_out_of_memory(0);
  const bool file = here.data != NULL && access(here.data, F_OK) == 0;
  *out = dlopen(file ? here.data : name, RTLD_NOW | RTLD_LOCAL);
  ax_text_deinit(&here);
  return *out != NULL ? AX_OK : ax_error(AX_IO_ERROR, "%s", dlerror());
}

static ax_status open_and_load(ax_custom_calls *calls, const words *w) {
  void *library;
  AX_TRY(open_library(w->library, &library));
  AX_TRY(keep(calls, library));
  return load(calls, library, w);
}

ax_status ax_custom_calls_load(ax_custom_calls *calls, const char *what) {
  words w;
  AX_TRY(ax_require(calls, "collection of custom calls"));
  AX_TRY(ax_require(what, "library"));
  char *text = ax_alloc(strlen(what) + 1);
  if (text == NULL) return ax_out_of_memory(strlen(what) + 1);
  memcpy(text, what, strlen(what) + 1);
  ax_status status = parse(text, &w);
  if (status == AX_OK) status = open_and_load(calls, &w);
  ax_free(text);
  return status;
}
