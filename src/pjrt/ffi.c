/* Functions that modules call by name: handlers of XLA's FFI, which jaxlib, JAX's users and Axle's wheel register, and data of a run
   that handlers ask for, such as the Python functions that a program calls.

     register_handler ->  the process's collection  -> compiling: a callback of the program     (src/bridge/readers_custom.c)
     add_user_data    ->  a context -> a copy for each run, until it is over                    (ax_run_options)

   PJRT's functions name no client, so the collection is the process's. It is only added to, and lasts as long as the process. */
#include "pjrt/ffi.h"

#include <string.h>

#include "ffi/custom_calls.h"
#include "pjrt/layouts.h"

/* --- The collection --- */

static struct {
  pthread_mutex_t lock;
  ax_custom_calls *calls; /* NULL: nothing was registered yet */
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

ax_pjrt_error *ax_pjrt_ffi_calls(ax_custom_calls **out) {
  pthread_mutex_lock(&process.lock);
  const ax_status status = process.calls != NULL ? AX_OK : ax_custom_calls_create(&process.calls);
  *out = process.calls;
  pthread_mutex_unlock(&process.lock);
  return ax_pjrt_status(status);
}

/* A text of the caller's, with its length, as a string. */
static ax_pjrt_error *copy_name(const char *text, size_t length, char **out) {
  *out = ax_alloc(length + 1);
  if (*out == NULL) return ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for a name");
  if (length > 0) memcpy(*out, text, length);
  (*out)[length] = '\0';
  return NULL;
}

/* Whether the target has just these functions: libraries register again what they have registered. */
static bool is_there(ax_custom_calls *calls, const char *target, const ax_pjrt_custom_call_args *args) {
  ax_custom_call_entry entry;
  void *stages[AX_FFI_STAGES] = {args->instantiate, args->prepare, args->initialize, args->execute};
  if (!ax_custom_calls_find(calls, target, &entry)) return false;
  if (args->api_version == 0) return memcmp(&entry.untyped, &args->execute, sizeof args->execute) == 0;
  return memcmp(entry.stages, stages, sizeof stages) == 0;
}

/* POSIX has pointers to functions and to objects of one form, and both interfaces use it. */
static ax_foreign_function function_of(void *pointer) {
  ax_foreign_function function;
  memcpy(&function, &pointer, sizeof function);
  return function;
}

static ax_pjrt_error *add(ax_custom_calls *calls, const char *target, const ax_pjrt_custom_call_args *args) {
  if (args->api_version != 0 && args->api_version != 1)
    return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "@%s: api_version %d is neither 0 nor 1", target, args->api_version);
  if (is_there(calls, target, args)) return NULL;
  const ax_ffi_handlers handlers = {.instantiate = function_of(args->instantiate), .prepare = function_of(args->prepare),
                                    .initialize = function_of(args->initialize), .execute = function_of(args->execute)};
  const ax_status status = args->api_version == 0 ? ax_custom_call_register_untyped(calls, target, function_of(args->execute))
                                                  : ax_custom_call_register_ffi(calls, target, &handlers);
  return status == AX_OK || is_there(calls, target, args) ? NULL : ax_pjrt_status(status); /* another thread may have been first */
}

static ax_pjrt_error *register_call(ax_pjrt_custom_call_args *args) {
  ax_custom_calls *calls;
  char *target;
  AX_PJRT_TRY(ax_pjrt_ffi_calls(&calls));
  AX_PJRT_TRY(copy_name(args->target, args->target_length, &target));
  ax_pjrt_error *error = add(calls, target, args);
  ax_free(target);
  return error;
}

/* The platform is not looked at: what is registered here is for this plugin. */
static ax_pjrt_error *register_handler(ax_pjrt_ffi_handler_args *args) {
  return register_call(&(ax_pjrt_custom_call_args){.struct_size = sizeof(ax_pjrt_custom_call_args), .target = args->target,
                                                   .target_length = args->target_length, .api_version = 1, .execute = args->execute});
}

/* --- Types --- */

static void keep_nothing(void *object) { (void)object; }

/* A type's number is the address of its id, which therefore is never freed. A caller that already has a number keeps it. */
static ax_pjrt_error *register_type(ax_pjrt_ffi_type_args *args) {
  ax_custom_calls *calls;
  ax_ffi_type_id known = {args->number}, *id = args->number != 0 ? &known : ax_calloc(1, sizeof *id);
  const ax_pjrt_ffi_type_info *said = AX_PJRT_HAS(args, info) ? args->info : NULL;
  const ax_ffi_type_info info = {.struct_size = sizeof info,
                                 .deleter = said != NULL && said->deleter != NULL ? said->deleter : keep_nothing};
  if (id == NULL) return ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for a type");
  ax_pjrt_error *error = ax_pjrt_ffi_calls(&calls);
  if (error == NULL) error = ax_pjrt_status(ax_custom_call_register_ffi_type(calls, id, &info));
  if (error == NULL) args->number = id->number;
  else if (id != &known) ax_free(id);
  return error;
}

/* --- User data --- */

struct ax_pjrt_execute_context {
  uint32_t count, capacity;
  ax_user_data *data;
};

ax_pjrt_error *ax_pjrt_do_context_create(ax_pjrt_context_create_args *args) {
  args->value = ax_calloc(1, sizeof *args->value);
  return args->value != NULL ? NULL : ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for a context");
}

ax_pjrt_error *ax_pjrt_do_context_destroy(ax_pjrt_context_destroy_args *args) {
  if (args->of != NULL) ax_free(args->of->data);
  ax_free(args->of);
  return NULL;
}

static ax_pjrt_error *add_user_data(ax_pjrt_ffi_user_data_args *args) {
  ax_pjrt_execute_context *context = args->of;
  for (uint32_t i = 0; i < context->count; i++)
    if (context->data[i].type == args->given.type)
      return ax_pjrt_fail(AX_PJRT_ALREADY_EXISTS, "the context has user data of this type already");
  AX_PJRT_TRY(ax_pjrt_status(ax_grow(&context->data, sizeof context->data[0], context->count, 1, &context->capacity)));
  context->data[context->count++] = (ax_user_data){args->given.type, args->given.data};
  return NULL;
}

/* --- Runs --- */

typedef struct run_data { /* of one run, until it is over */
  ax_run_options options;
  ax_pjrt_event *event; /* NULL: none */
  ax_user_data data[];
} run_data;

static void end_run(ax_status status, const char *message, void *context) {
  run_data *own = context;
  if (own->event != NULL) ax_pjrt_event_end(own->event, status, message);
  ax_free(own);
}

static ax_pjrt_error *make_run(const ax_pjrt_ffi_run *run, ax_pjrt_event **over, run_data **out) {
  const uint32_t count = run->context != NULL ? run->context->count : 0;
  run_data *own = *out = ax_calloc(1, sizeof *own + count * sizeof own->data[0]);
  if (own == NULL) return ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for a run");
  for (uint32_t i = 0; i < count; i++) own->data[i] = run->context->data[i];
  own->options = (ax_run_options){.user_data_count = count, .user_data = own->data, .over = end_run, .context = own, .awaited = run->awaited};
  if (over == NULL) return NULL;
  ax_pjrt_event_create_args made = {.struct_size = sizeof made};
  ax_pjrt_error *error = ax_pjrt_do_event_create(&made);
  if (error != NULL) ax_free(own);
  else *over = own->event = ax_pjrt_event_retain(made.value);
  return error;
}

ax_pjrt_error *ax_pjrt_ffi_start(const ax_pjrt_executable *e, ax_executable *made, const ax_pjrt_ffi_run *run, ax_pjrt_event **over) {
  const uint32_t in_count = (uint32_t)e->in_count, out_count = (uint32_t)e->out_count;
  run_data *own;
  if (over != NULL) *over = NULL;
  if (over == NULL && !run->awaited && (run->context == NULL || run->context->count == 0))
    return ax_pjrt_status((ax_run_start)(made, in_count, run->in, out_count, run->out));
  AX_PJRT_TRY(make_run(run, over, &own));
  const ax_status status = (ax_run_start_with)(made, in_count, run->in, out_count, run->out, &own->options);
  if (status == AX_OK) return NULL; /* what is own is gone when the run is */
  ax_pjrt_error *error = ax_pjrt_status(status);
  if (over != NULL) {
    ax_pjrt_event_end(own->event, status, NULL);
    (void)ax_pjrt_do_event_destroy(&(ax_pjrt_event_destroy_args){.of = *over});
    *over = NULL;
  }
  ax_free(own);
  return error;
}

/* --- The extensions --- */

ax_pjrt_ffi ax_pjrt_ffi_extension = {.base = {.struct_size = sizeof ax_pjrt_ffi_extension, .type = AX_PJRT_FFI, .next = &ax_pjrt_layouts_extension.base},
                                     .register_type = register_type,
                                     .add_user_data = add_user_data,
                                     .register_handler = register_handler};

ax_pjrt_custom_calls ax_pjrt_custom_calls_extension = {
    .base = {.struct_size = sizeof ax_pjrt_custom_calls_extension, .type = AX_PJRT_CUSTOM_CALLS, .next = &ax_pjrt_ffi_extension.base},
    .register_call = register_call};
