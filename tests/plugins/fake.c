/* A plugin of PJRT for tests of those who load plugins: it has one device, whose programs give their arguments back, and it fails where the
   environment's AXLE_FAKE_PLUGIN says:
     old, major, short, quiet    its version or its table is not such that it can be used
     initialize, create, none    setting up or the client fails; there are no devices
     compile, execute, later     compiling, handing a run over, or the run fails
     slow                        runs are over when four are handed over, or fail five seconds later
     results                     a program has another number of results than its module */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/api.h"

struct ax_pjrt_error {
  ax_pjrt_code code;
  const char *text;
};
struct ax_pjrt_event {
  ax_pjrt_error *error;
  unsigned runs; /* are handed over before it happens */
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t handed_over = PTHREAD_COND_INITIALIZER;
static unsigned runs; /* slow ones handed over so far */
struct ax_pjrt_buffer {
  size_t bytes;
  char data[256];
};
static char object; /* what pointers to things without a state point to */

static bool fails(const char *where) {
  const char *said = getenv("AXLE_FAKE_PLUGIN");
  return said != NULL && strcmp(said, where) == 0;
}

static ax_pjrt_error *fail(ax_pjrt_code code, const char *text) {
  ax_pjrt_error *error = malloc(sizeof *error);
  *error = (ax_pjrt_error){code, text};
  return error;
}

static void error_destroy(ax_pjrt_error_destroy_args *args) { free(args->of); }
static void error_message(ax_pjrt_error_message_args *args) {
  args->text = args->of->text;
  args->length = strlen(args->text);
}
static ax_pjrt_error *error_code(ax_pjrt_error_code_args *args) {
  args->value = args->of->code;
  return NULL;
}

static ax_pjrt_event *event_of(ax_pjrt_error *error) {
  ax_pjrt_event *event = malloc(sizeof *event);
  *event = (ax_pjrt_event){.error = error};
  return event;
}
static ax_pjrt_error *event_destroy(ax_pjrt_event_destroy_args *args) {
  free(args->of);
  return NULL;
}
static ax_pjrt_error *event_await(ax_pjrt_event_await_args *args) {
  struct timespec patience;
  int late = 0;
  clock_gettime(CLOCK_REALTIME, &patience);
  patience.tv_sec += 5;
  pthread_mutex_lock(&lock);
  while (runs < args->of->runs && late == 0) late = pthread_cond_timedwait(&handed_over, &lock, &patience);
  pthread_mutex_unlock(&lock);
  return late != 0 ? fail(AX_PJRT_ABORTED, "no other run came") : args->of->error;
}

static ax_pjrt_error *plugin_initialize(ax_pjrt_plugin_initialize_args *args) {
  (void)args;
  return fails("initialize") ? fail(AX_PJRT_FAILED_PRECONDITION, "no driver") : NULL;
}

/* --- The client --- */

static ax_pjrt_device *const devices[] = {(ax_pjrt_device *)(void *)&object};

/* Options by which a test sees what they became: fraction=0.5, visible=3,5 and one=7, are what they seem to be. */
static bool is_wrong(const ax_pjrt_named *o) {
  const char *name = o->name;
  if (strncmp(name, "fraction=", 9) == 0) return o->kind != AX_PJRT_FLOAT || o->number != 0.5F || o->count != 1;
  if (strncmp(name, "visible=", 8) == 0)
    return o->kind != AX_PJRT_INTEGERS || o->count != 2 || o->integers[0] != 3 || o->integers[1] != 5;
  if (strncmp(name, "one=", 4) == 0) return o->kind != AX_PJRT_INTEGERS || o->count != 1 || o->integers[0] != 7;
  return strncmp(name, "text=", 5) == 0 && o->kind != AX_PJRT_STRING;
}

static ax_pjrt_error *client_create(ax_pjrt_client_create_args *args) {
  for (size_t i = 0; i < args->option_count; i++)
    if (is_wrong(&args->options[i])) return fail(AX_PJRT_INVALID_ARGUMENT, "an option of another kind");
  args->client = (ax_pjrt_client *)(void *)&object;
  return fails("create") ? fail(AX_PJRT_INTERNAL, "no device of this kind") : NULL;
}
static ax_pjrt_error *client_destroy(ax_pjrt_client_destroy_args *args) {
  (void)args;
  return NULL;
}
static ax_pjrt_error *client_addressable_devices(ax_pjrt_client_addressable_devices_args *args) {
  args->items = devices;
  args->count = fails("none") ? 0 : 1;
  return NULL;
}
static ax_pjrt_error *client_platform_name(ax_pjrt_client_platform_name_args *args) {
  args->text = "fake";
  args->length = 4;
  return NULL;
}
static ax_pjrt_error *client_platform_version(ax_pjrt_client_platform_version_args *args) {
  args->text = "1";
  args->length = 1;
  return NULL;
}
static ax_pjrt_error *device_description(ax_pjrt_device_description_args *args) {
  args->value = (ax_pjrt_device_description *)(void *)&object;
  return NULL;
}
static ax_pjrt_error *device_description_id(ax_pjrt_device_description_id_args *args) {
  args->value = 7;
  return NULL;
}
static ax_pjrt_error *device_description_kind(ax_pjrt_device_description_kind_args *args) {
  args->text = "fake one";
  args->length = 8;
  return NULL;
}
static ax_pjrt_error *device_description_to_string(ax_pjrt_device_description_to_string_args *args) {
  args->text = "Fake(id=7)";
  args->length = 10;
  return NULL;
}

/* --- Buffers: of elements of four bytes --- */

static ax_pjrt_error *client_buffer_from_host_buffer(ax_pjrt_client_buffer_from_host_buffer_args *args) {
  size_t bytes = 4;
  for (size_t d = 0; d < args->rank; d++) bytes *= (size_t)args->dims[d];
  if (bytes > sizeof args->value->data) return fail(AX_PJRT_RESOURCE_EXHAUSTED, "the device is full");
  args->value = malloc(sizeof *args->value);
  args->value->bytes = bytes;
  memcpy(args->value->data, args->data, bytes);
  args->done = event_of(NULL);
  return NULL;
}
static ax_pjrt_error *buffer_destroy(ax_pjrt_buffer_destroy_args *args) {
  free(args->of);
  return NULL;
}
static ax_pjrt_error *buffer_to_host_buffer(ax_pjrt_buffer_to_host_buffer_args *args) {
  if (args->bytes < args->of->bytes) return fail(AX_PJRT_INVALID_ARGUMENT, "too little room");
  memcpy(args->data, args->of->data, args->of->bytes);
  args->done = event_of(NULL);
  return NULL;
}

/* --- Programs --- */

static ax_pjrt_error *client_compile(ax_pjrt_client_compile_args *args) {
  args->value = (ax_pjrt_loaded_executable *)(void *)&object;
  return fails("compile") ? fail(AX_PJRT_UNIMPLEMENTED, "an operation that there is not") : NULL;
}
static ax_pjrt_error *loaded_destroy(ax_pjrt_loaded_destroy_args *args) {
  (void)args;
  return NULL;
}
static ax_pjrt_error *loaded_executable(ax_pjrt_loaded_executable_args *args) {
  args->value = (ax_pjrt_executable *)(void *)&object;
  return NULL;
}
static ax_pjrt_error *executable_destroy(ax_pjrt_executable_destroy_args *args) {
  (void)args;
  return NULL;
}
static ax_pjrt_error *executable_outputs(ax_pjrt_executable_outputs_args *args) {
  args->value = fails("results") ? 3 : 1;
  return NULL;
}
static ax_pjrt_error *loaded_execute(ax_pjrt_loaded_execute_args *args) {
  if (fails("execute")) return fail(AX_PJRT_INVALID_ARGUMENT, "not this argument");
  ax_pjrt_buffer *copy = malloc(sizeof *copy);
  *copy = *args->arguments[0][0];
  args->outputs[0][0] = copy;
  args->events[0] = event_of(fails("later") ? fail(AX_PJRT_DATA_LOSS, "the device was taken away") : NULL);
  pthread_mutex_lock(&lock);
  if (fails("slow")) args->events[0]->runs = (++runs + 3) / 4 * 4;
  pthread_cond_broadcast(&handed_over);
  pthread_mutex_unlock(&lock);
  return NULL;
}

#define ENTRY(name) .name = name
static ax_pjrt_api table = {.struct_size = sizeof table,
                            ENTRY(error_destroy),
                            ENTRY(error_message),
                            ENTRY(error_code),
                            ENTRY(plugin_initialize),
                            ENTRY(event_destroy),
                            ENTRY(event_await),
                            ENTRY(client_create),
                            ENTRY(client_destroy),
                            ENTRY(client_addressable_devices),
                            ENTRY(client_platform_name),
                            ENTRY(client_platform_version),
                            ENTRY(device_description),
                            ENTRY(device_description_id),
                            ENTRY(device_description_kind),
                            ENTRY(device_description_to_string),
                            ENTRY(client_buffer_from_host_buffer),
                            ENTRY(buffer_destroy),
                            ENTRY(buffer_to_host_buffer),
                            ENTRY(client_compile),
                            ENTRY(loaded_destroy),
                            ENTRY(loaded_executable),
                            ENTRY(executable_destroy),
                            ENTRY(executable_outputs),
                            ENTRY(loaded_execute)};

__attribute__((visibility("default"))) const ax_pjrt_api *GetPjrtApi(void);
const ax_pjrt_api *GetPjrtApi(void) {
  table.version = (ax_pjrt_version){
      .struct_size = sizeof table.version, .major = fails("major") ? 1 : 0, .minor = fails("old") ? 30 : AX_PJRT_MINOR};
  table.struct_size = fails("short") ? offsetof(ax_pjrt_api, client_create) : sizeof table;
  table.error_message = fails("quiet") ? NULL : error_message;
  return fails("null") ? NULL : &table;
}
