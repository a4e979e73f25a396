/* The functions that XLA's interface gives to handlers. Each takes a struct of its arguments, refuses one that is too small, and returns
   NULL or an error, which its caller ends. */
#include "ffi/api.h"

#include <string.h>

/* --- Errors --- */

static const ax_ffi_error no_memory = {.code = AX_FFI_RESOURCE_EXHAUSTED};
static ax_ffi_error *no_memory_error(void) { return (ax_ffi_error *)(uintptr_t)&no_memory; } /* which is never changed, nor freed */

ax_ffi_error *ax_ffi_error_make(int code, const char *message) {
  const size_t length = message != NULL ? strlen(message) : 0;
  ax_ffi_error *error = ax_alloc(sizeof *error + length + 1);
  if (error == NULL) return no_memory_error();
  error->code = code;
  if (length > 0) memcpy(error->message, message, length);
  error->message[length] = '\0';
  return error;
}

void ax_ffi_error_end(ax_ffi_error *error) {
  if (error != &no_memory) ax_free(error);
}

static const struct {
  const char *name;
  ax_status status;
} codes[] = {[AX_FFI_OK] = {"OK", AX_OK},
             [AX_FFI_CANCELLED] = {"CANCELLED", AX_UNAVAILABLE},
             [AX_FFI_UNKNOWN] = {"UNKNOWN", AX_INVALID_ARGUMENT},
             [AX_FFI_INVALID_ARGUMENT] = {"INVALID_ARGUMENT", AX_INVALID_ARGUMENT},
             [AX_FFI_DEADLINE_EXCEEDED] = {"DEADLINE_EXCEEDED", AX_UNAVAILABLE},
             [AX_FFI_NOT_FOUND] = {"NOT_FOUND", AX_INVALID_ARGUMENT},
             [AX_FFI_ALREADY_EXISTS] = {"ALREADY_EXISTS", AX_INVALID_ARGUMENT},
             [AX_FFI_PERMISSION_DENIED] = {"PERMISSION_DENIED", AX_IO_ERROR},
             [AX_FFI_RESOURCE_EXHAUSTED] = {"RESOURCE_EXHAUSTED", AX_OUT_OF_MEMORY},
             [AX_FFI_FAILED_PRECONDITION] = {"FAILED_PRECONDITION", AX_INVALID_ARGUMENT},
             [AX_FFI_ABORTED] = {"ABORTED", AX_UNAVAILABLE},
             [AX_FFI_OUT_OF_RANGE] = {"OUT_OF_RANGE", AX_INVALID_ARGUMENT},
             [AX_FFI_UNIMPLEMENTED] = {"UNIMPLEMENTED", AX_ABSENT},
             [AX_FFI_INTERNAL] = {"INTERNAL", AX_INVALID_ARGUMENT}, /* AX_INTERNAL is a defect of Axle's own */
             [AX_FFI_UNAVAILABLE] = {"UNAVAILABLE", AX_UNAVAILABLE},
             [AX_FFI_DATA_LOSS] = {"DATA_LOSS", AX_IO_ERROR},
             [AX_FFI_UNAUTHENTICATED] = {"UNAUTHENTICATED", AX_IO_ERROR}};

static size_t known(int code) { return code > AX_FFI_OK && (size_t)code < AX_COUNT(codes) ? (size_t)code : AX_FFI_UNKNOWN; }
const char *ax_ffi_code_name(int code) { return codes[known(code)].name; }
ax_status ax_ffi_status_of(int code) { return codes[known(code)].status; }

/* NULL: the struct has all fields that its function knows. Sizes end at the last field, without what C puts behind it. */
static ax_ffi_error *check(size_t given, size_t wanted) {
  if (given >= wanted) return NULL;
  return ax_ffi_error_make(AX_FFI_INVALID_ARGUMENT, "the arguments of a function of XLA's interface are those of another version");
}
#define CHECK(args, last) check((args)->struct_size, offsetof(__typeof__(*(args)), last) + sizeof (args)->last)

static ax_ffi_error *error_create(ax_ffi_error_create *args) {
  ax_ffi_error *wrong = CHECK(args, code);
  return wrong != NULL ? wrong : ax_ffi_error_make(args->code, args->message);
}

static void error_message(ax_ffi_error_message *args) {
  args->message = args->error == &no_memory ? "there is no memory" : args->error->message;
}

static void error_destroy(ax_ffi_error_destroy *args) { ax_ffi_error_end(args->error); }

/* --- What there is not --- */

static ax_ffi_error *register_handler(ax_ffi_register *args) {
  (void)args;
  return ax_ffi_error_make(AX_FFI_UNIMPLEMENTED, "handlers are registered by ax_custom_call_register_ffi, not by themselves");
}

static ax_ffi_error *register_type(ax_ffi_type_register *args) {
  (void)args;
  return ax_ffi_error_make(AX_FFI_UNIMPLEMENTED, "types are registered by ax_custom_call_register_ffi_type, not by themselves");
}

static ax_ffi_error *stream(ax_ffi_stream *args) {
  ax_ffi_error *wrong = CHECK(args, stream);
  if (wrong != NULL) return wrong;
  args->stream = NULL;
  return ax_ffi_error_make(AX_FFI_UNIMPLEMENTED, "there is no stream: devices are threads of this process");
}

static ax_ffi_error *user_data(ax_ffi_user_data *args) {
  ax_ffi_error *wrong = CHECK(args, data);
  if (wrong != NULL) return wrong;
  for (uint32_t i = 0; i < args->context->user_data_count; i++)
    if (args->context->user_data[i].type == args->id->number) return args->data = args->context->user_data[i].data, NULL;
  return ax_ffi_error_make(AX_FFI_NOT_FOUND, "the run has no user data of this type (ax_run_options.user_data)");
}

static ax_ffi_error *run_id(ax_ffi_run_id *args) {
  ax_ffi_error *wrong = CHECK(args, run);
  return wrong != NULL ? wrong : ax_ffi_error_make(AX_FFI_UNIMPLEMENTED, "runs have no numbers");
}

/* --- States --- */

void ax_ffi_state_end(ax_ffi_state_slot *slot) {
  if (slot->object != NULL) slot->deleter(slot->object);
  *slot = (ax_ffi_state_slot){0};
}

static ax_ffi_error *slot_of(ax_ffi_state *args, ax_ffi_state_slot **out) {
  ax_ffi_error *wrong = CHECK(args, state);
  if (wrong != NULL) return wrong;
  if (args->stage < 0 || args->stage >= AX_FFI_EXECUTE) return ax_ffi_error_make(AX_FFI_INVALID_ARGUMENT, "this stage has no state");
  *out = &args->context->states[args->stage];
  return NULL;
}

static ax_ffi_error *state_set(ax_ffi_state *args) {
  ax_ffi_state_slot *slot;
  ax_ffi_error *wrong = slot_of(args, &slot);
  if (wrong != NULL) return wrong;
  void (*deleter)(void *) = ax_custom_calls_deleter(args->context->calls, args->id->number);
  if (slot->object != NULL) return ax_ffi_error_make(AX_FFI_FAILED_PRECONDITION, "the state is set already");
  if (deleter == NULL)
    return ax_ffi_error_make(AX_FFI_FAILED_PRECONDITION, "the type of the state is not registered (ax_custom_call_register_ffi_type)");
  *slot = (ax_ffi_state_slot){args->state, args->id->number, deleter};
  return NULL;
}

static ax_ffi_error *state_get(ax_ffi_state *args) {
  ax_ffi_state_slot *slot;
  ax_ffi_error *wrong = slot_of(args, &slot);
  if (wrong != NULL) return wrong;
  if (slot->object == NULL) return ax_ffi_error_make(AX_FFI_NOT_FOUND, "the state is not set");
  if (slot->type != args->id->number) return ax_ffi_error_make(AX_FFI_INVALID_ARGUMENT, "the state is of another type");
  args->state = slot->object;
  return NULL;
}

/* --- Scratch: where its block begins stands before it --- */

static ax_ffi_error *allocate(ax_ffi_allocate *args) {
  ax_ffi_error *wrong = CHECK(args, data);
  if (wrong != NULL) return wrong;
  const size_t align = args->alignment > 64 ? args->alignment : 64;
  if ((align & (align - 1)) != 0) return ax_ffi_error_make(AX_FFI_INVALID_ARGUMENT, "the alignment is no power of 2");
  char *block = args->bytes < SIZE_MAX / 4 && align < SIZE_MAX / 4 ? ax_alloc(args->bytes + 2 * align) : NULL;
  if (block == NULL) return ax_ffi_error_make(AX_FFI_RESOURCE_EXHAUSTED, "there is no memory for scratch");
  char *data = (char *)(((uintptr_t)block + sizeof block + align - 1) & ~(uintptr_t)(align - 1));
  memcpy(data - sizeof block, &block, sizeof block);
  args->data = data;
  return NULL;
}

static ax_ffi_error *release(ax_ffi_release *args) {
  ax_ffi_error *wrong = CHECK(args, data);
  char *block;
  if (wrong != NULL || args->data == NULL) return wrong;
  memcpy(&block, (char *)args->data - sizeof block, sizeof block);
  ax_free(block);
  return NULL;
}

/* --- Threads: the caller's. A task is done when it is scheduled --- */

static ax_ffi_error *schedule(ax_ffi_schedule *args) {
  ax_ffi_error *wrong = CHECK(args, data);
  if (wrong == NULL) args->task(args->data);
  return wrong;
}

static ax_ffi_error *threads(ax_ffi_threads *args) {
  ax_ffi_error *wrong = CHECK(args, count);
  if (wrong == NULL) *args->count = 1;
  return wrong;
}

static ax_ffi_error *device(ax_ffi_device *args) {
  ax_ffi_error *wrong = CHECK(args, device);
  if (wrong == NULL) args->device = (int32_t)args->context->device;
  return wrong;
}

/* --- Futures --- */

struct ax_ffi_future {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool set, abandoned; /* both: it is ended */
  ax_ffi_error *error;
};

static ax_ffi_error *future_create(ax_ffi_future_create *args) {
  ax_ffi_error *wrong = check(args->struct_size, AX_FFI_FUTURE_CREATE_BYTES);
  if (wrong != NULL) return wrong;
  ax_ffi_future *future = ax_calloc(1, sizeof *future);
  if (future == NULL) return no_memory_error();
  pthread_mutex_init(&future->lock, NULL);
  pthread_cond_init(&future->changed, NULL);
  args->future = future;
  return NULL;
}

static void end_future(ax_ffi_future *future) {
  pthread_cond_destroy(&future->changed);
  pthread_mutex_destroy(&future->lock);
  ax_free(future);
}

static ax_ffi_error *set_future(ax_ffi_future *future, ax_ffi_error *error) {
  pthread_mutex_lock(&future->lock);
  const bool again = future->set, abandoned = future->abandoned;
  if (!again) future->set = true, future->error = error;
  pthread_cond_signal(&future->changed);
  pthread_mutex_unlock(&future->lock);
  if (abandoned) {
    if (error != NULL) ax_ffi_error_end(error);
    end_future(future);
    return NULL;
  }
  if (!again) return NULL;
  if (error != NULL) ax_ffi_error_end(error);
  return ax_ffi_error_make(AX_FFI_FAILED_PRECONDITION, "the future is set already");
}

static ax_ffi_error *future_available(ax_ffi_future_available *args) {
  ax_ffi_error *wrong = CHECK(args, future);
  return wrong != NULL ? wrong : set_future(args->future, NULL);
}

static ax_ffi_error *future_error(ax_ffi_future_error *args) {
  ax_ffi_error *wrong = CHECK(args, error);
  if (wrong != NULL) return wrong;
  return set_future(args->future, args->error != NULL ? args->error : ax_ffi_error_make(AX_FFI_UNKNOWN, "an error without a message"));
}

ax_ffi_error *ax_ffi_future_wait(ax_ffi_future *future) {
  pthread_mutex_lock(&future->lock);
  while (!future->set) pthread_cond_wait(&future->changed, &future->lock);
  pthread_mutex_unlock(&future->lock);
  ax_ffi_error *error = future->error;
  end_future(future);
  return error;
}

void ax_ffi_future_abandon(ax_ffi_future *future) {
  pthread_mutex_lock(&future->lock);
  const bool set = future->set;
  future->abandoned = true;
  pthread_mutex_unlock(&future->lock);
  if (!set) return;
  if (future->error != NULL) ax_ffi_error_end(future->error);
  end_future(future);
}

/* --- The table --- */

static const ax_ffi_api functions = {.struct_size = sizeof functions,
                                     .version = {.struct_size = sizeof(ax_ffi_version), .major = AX_FFI_MAJOR, .minor = AX_FFI_MINOR},
                                     .error_create = error_create,
                                     .error_message = error_message,
                                     .error_destroy = error_destroy,
                                     .register_handler = register_handler,
                                     .stream = stream,
                                     .register_type = register_type,
                                     .user_data = user_data,
                                     .state_set = state_set,
                                     .state_get = state_get,
                                     .allocate = allocate,
                                     .release = release,
                                     .schedule = schedule,
                                     .threads = threads,
                                     .future_create = future_create,
                                     .future_available = future_available,
                                     .future_error = future_error,
                                     .run_id = run_id,
                                     .device = device};

const ax_ffi_api *ax_ffi_functions(void) { return &functions; }
