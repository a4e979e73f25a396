/* A call of a registered function in a module: what becomes the context of a callback. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "ffi/attributes.h"
#include "ffi/custom_calls.h"

ax_status ax_ffi_site_create(ax_custom_calls *calls, const char *target, size_t length, ax_ffi_site **out) {
  *out = NULL;
  ax_ffi_site *site = ax_calloc(1, sizeof *site);
  if (site == NULL) return ax_out_of_memory(sizeof *site);
  char *name = ax_arena_alloc(&site->arena, length + 1);
  if (name != NULL && length > 0) memcpy(name, target, length);
  site->target = name;
  site->attributes = (ax_attribute){.name = "", .kind = AX_ATTRIBUTE_DICTIONARY};
  const bool found = name != NULL && ax_custom_calls_find(calls, name, &site->entry);
  site->calls = ax_custom_calls_retain(calls);
  if (found) return *out = site, AX_OK;
  ax_ffi_site_release(site);
  return name != NULL ? ax_error(AX_ABSENT, "it is not registered") : ax_out_of_memory(length);
}

/* Before the collection, whose libraries may have the deleter. */
void ax_ffi_site_release(void *context) {
  ax_ffi_site *site = context;
  if (site->state.object != NULL) site->state.deleter(site->state.object);
  ax_custom_calls_release(site->calls);
  ax_arena_deinit(&site->arena);
  ax_free(site);
}

/* --- Whether the function takes the call --- */

static ax_status begin_own(const ax_ffi_site *site) {
  const ax_custom_call_options *options = &site->entry.options;
  char message[AX_MESSAGE_BYTES] = "";
  if (options->check == NULL) return AX_OK;
  const ax_custom_call_site asked = {site->target, site->in_count, site->out_count, site->in_types, site->out_types, &site->attributes};
  const ax_status status = options->check(&asked, message, site->entry.context);
  message[AX_MESSAGE_BYTES - 1] = '\0';
  if (status == AX_OK) return AX_OK;
  return ax_error(status > AX_OK && status <= AX_INTERNAL ? status : AX_INVALID_ARGUMENT, "%s",
                  message[0] != '\0' ? message : "its check refuses the call");
}

static ax_status make_buffer(const ax_type *type, const char *what, uint32_t number, ax_ffi_buffer *out) {
  *out = (ax_ffi_buffer){.struct_size = sizeof *out,
                         .dtype = ax_ffi_dtype(type->dtype),
                         .rank = type->rank,
                         .dims = (int64_t *)(uintptr_t)type->dims}; /* which handlers only read */
  if (out->dtype != 0) return AX_OK;
  return ax_error(AX_ABSENT, "%s %u is of %s, which XLA's interface has not in the form that Axle has", what, number,
                  ax_dtype_name(type->dtype));
}

static ax_status make_buffers(ax_ffi_site *site) {
  const uint32_t count = site->in_count + site->out_count;
  site->buffers = ax_arena_alloc(&site->arena, (count + 1) * sizeof site->buffers[0]);
  site->kinds = ax_arena_alloc(&site->arena, (count + 1) * sizeof site->kinds[0]);
  if (site->buffers == NULL || site->kinds == NULL) return ax_out_of_memory(count * sizeof site->buffers[0]);
  for (uint32_t i = 0; i < count; i++) site->kinds[i] = AX_FFI_BUFFER;
  for (uint32_t i = 0; i < site->in_count; i++) AX_TRY(make_buffer(&site->in_types[i], "operand", i, &site->buffers[i]));
  for (uint32_t k = 0; k < site->out_count; k++)
    AX_TRY(make_buffer(&site->out_types[k], "result", k, &site->buffers[site->in_count + k]));
  return AX_OK;
}

static ax_status begin_typed(ax_ffi_site *site) {
  static const char *const stages[AX_FFI_STAGES] = {"instantiate", "prepare", "initialize", "execute"};
  if (site->entry.stages[AX_FFI_EXECUTE] == NULL) return ax_error(AX_INVALID_ARGUMENT, "it has no execute handler for version 4");
  for (int i = 0; i < AX_FFI_STAGES; i++)
    if (site->entry.stages[i] != NULL) AX_TRY(ax_ffi_ask(site->entry.stages[i], stages[i]));
  AX_TRY(make_buffers(site));
  AX_TRY(ax_ffi_attributes_make(&site->arena, &site->attributes, &site->typed));
  return ax_ffi_instantiate(site);
}

ax_status ax_ffi_site_begin(ax_ffi_site *site) {
  if (site->entry.function != NULL) return begin_own(site);
  if (site->version == AX_FFI_TYPED) return begin_typed(site);
  if (site->version < 1 || site->version > AX_FFI_UNTYPED_MOST)
    return ax_error(AX_ABSENT, "api_version %d is none of 1 to 4", (int)site->version);
  return site->entry.untyped != NULL ? AX_OK : ax_error(AX_INVALID_ARGUMENT, "it is registered for api_version 4 only, and this one is %d",
                                                        (int)site->version);
}

/* --- Calls --- */

/* XLA's status of a call is an optional string of C++. So libstdc++ has it: where its characters are, how many, room for 16 short ones,
   and whether there is one. Longer ones are in memory of operator new. */
typedef struct untyped_status {
  const char *text;
  size_t count;
  char room[16];
  bool failed;
  char spare[31];
} untyped_status;

typedef union untyped {
  ax_foreign_function any;
  void (*first)(void *out, const void **in);
  void (*second)(void *out, const void **in, untyped_status *status);
  void (*third)(void *out, const void **in, const char *config, size_t config_bytes, untyped_status *status);
} untyped;

/* Frees a string's memory as the function would: by the operator delete of the process, which is libstdc++'s, that is free, where nothing
   else is loaded for all. */
static void end_status(untyped_status *status) {
  void *symbol = dlsym(RTLD_DEFAULT, "_ZdlPv");
  void (*operator_delete)(void *) = free;
  if (!status->failed || status->text == status->room) return;
  if (symbol != NULL) memcpy(&operator_delete, &symbol, sizeof symbol); /* POSIX has both of one form */
  operator_delete((char *)(uintptr_t)status->text);
}

static ax_status call_untyped(const ax_ffi_site *site, ax_callback_call *call) {
  const size_t count = (size_t)call->in_count + call->out_count;
  const untyped function = {site->entry.untyped};
  untyped_status status = {0};
  void **memory = ax_alloc((count + 1) * sizeof memory[0]), **results = memory != NULL ? memory + call->in_count : NULL;
  if (memory == NULL) return ax_out_of_memory(count * sizeof memory[0]);
  for (uint32_t i = 0; i < call->in_count; i++) memory[i] = call->in[i].data;
  for (uint32_t k = 0; k < call->out_count; k++) results[k] = call->out[k].data;
  void *out = call->out_count == 1 ? results[0] : results;
  const void **in = (const void **)memory;
  if (site->version == 1) function.first(out, in);
  else if (site->version == 2) function.second(out, in, &status);
  else function.third(out, in, site->config, site->config_bytes, &status);
  ax_free(memory);
  if (!status.failed) return AX_OK;
  const size_t length = status.count < AX_MESSAGE_BYTES ? status.count : AX_MESSAGE_BYTES - 1;
  if (length > 0) memcpy(call->message, status.text, length);
  call->message[length] = '\0';
  end_status(&status);
  return AX_INVALID_ARGUMENT;
}

/* A result that is to be an operand's memory begins as a copy of it, and is the operand from then on: others may still need that one as
   it was. The list of operands is the callback's own, for this call. */
static void take_aliases(const ax_ffi_site *site, const ax_callback_call *call) {
  ax_host_array *in = (ax_host_array *)(uintptr_t)call->in;
  for (uint32_t k = 0; site->alias != NULL && k < call->out_count; k++) {
    const uint32_t operand = site->alias[k];
    size_t bytes = ax_dtype_bytes(call->out[k].dtype);
    if (operand == AX_NONE) continue;
    for (uint32_t d = 0; d < call->out[k].rank; d++) bytes *= (size_t)call->out[k].dims[d];
    if (bytes > 0) memcpy(call->out[k].data, in[operand].data, bytes);
    in[operand].data = call->out[k].data;
  }
}

ax_status ax_ffi_site_call(ax_callback_call *call, void *context) {
  const ax_ffi_site *site = context;
  take_aliases(site, call);
  if (site->entry.function != NULL) return site->entry.function(call, &site->attributes, site->entry.context);
  return site->version == AX_FFI_TYPED ? ax_ffi_execute(site, call) : call_untyped(site, call);
}
