/* Programs that a plugin has compiled, and their runs. */
#include <string.h>

#include "client/client.h"

/* --- Compiling --- */

static ax_status ids_of(const ax_client *client, uint32_t devices, int64_t *ids) {
  for (uint32_t i = 0; i < devices; i++) {
    ax_pjrt_device_description_args of = {.struct_size = sizeof of, .of = client->devices[i]};
    AX_TRY(AX_CLIENT_CALL(client->api, device_description, &of));
    ax_pjrt_device_description_id_args id = {.struct_size = sizeof id, .of = of.value};
    AX_TRY(AX_CLIENT_CALL(client->api, device_description_id, &id));
    ids[i] = id.value;
  }
  return AX_OK;
}

/* The plugin's count of results must be the module's: a list of results is written to as long as the plugin has it. */
static ax_status check_results(const ax_client_program *p) {
  const ax_pjrt_api *api = p->client->api;
  ax_pjrt_loaded_executable_args executable = {.struct_size = sizeof executable, .of = p->loaded};
  AX_TRY(AX_CLIENT_CALL(api, loaded_executable, &executable));
  ax_pjrt_executable_outputs_args outputs = {.struct_size = sizeof outputs, .of = executable.value};
  ax_status status = AX_CLIENT_CALL(api, executable_outputs, &outputs);
  ax_pjrt_executable_destroy_args gone = {.struct_size = sizeof gone, .of = executable.value};
  const ax_status ended = AX_CLIENT_CALL(api, executable_destroy, &gone);
  if (status == AX_OK) status = ended;
  if (status == AX_OK && outputs.value != p->out_count)
    status = ax_error(AX_UNAVAILABLE, "the plugin's program has %zu results, and the module %u", outputs.value, p->out_count);
  return status;
}

static ax_status compile(ax_client_program *p, const char *module, size_t bytes, bool shardy, int64_t *ids) {
  static const char mlir[] = "mlir";
  char *options;
  size_t option_bytes;
  AX_TRY(ids_of(p->client, p->devices, ids));
  AX_TRY(ax_client_options(p->client, p->devices, ids, shardy, &options, &option_bytes));
  const ax_pjrt_program program = {.struct_size = sizeof program, .code = (char *)(uintptr_t)module, /* only read */
                                   .code_bytes = bytes, .format = mlir, .format_length = strlen(mlir)};
  ax_pjrt_client_compile_args args = {.struct_size = sizeof args, .of = p->client->client, .program = &program, .options = options,
                                      .option_bytes = option_bytes};
  ax_status status = AX_CLIENT_CALL(p->client->api, client_compile, &args);
  ax_free(options);
  AX_TRY(status);
  p->loaded = args.value;
  return check_results(p);
}

ax_status ax_client_compile(ax_client *client, const char *module, size_t bytes, const ax_client_shape *shape,
                            ax_client_program **out) {
  const uint32_t devices = shape->devices;
  *out = NULL;
  if (devices > client->device_count)
    return ax_error(AX_INVALID_ARGUMENT, "the program is for %u devices, and the plugin has %u", devices, client->device_count);
  ax_client_program *p = ax_calloc(1, sizeof *p);
  int64_t *ids = ax_calloc(devices, sizeof ids[0]);
  ax_status status = p != NULL && ids != NULL ? AX_OK : ax_out_of_memory(devices * sizeof ids[0]);
  if (status == AX_OK) {
    *p = (ax_client_program){client, NULL, devices, shape->in_count, shape->out_count};
    status = compile(p, module, bytes, shape->whole, ids);
  }
  ax_free(ids);
  if (status == AX_OK) *out = p;
  else ax_client_program_destroy(p);
  return status;
}

void ax_client_program_destroy(ax_client_program *p) {
  if (p == NULL) return;
  ax_pjrt_loaded_destroy_args args = {.struct_size = sizeof args, .of = p->loaded};
  if (p->loaded != NULL) (void)!AX_CLIENT_CALL(p->client->api, loaded_destroy, &args);
  ax_free(p);
}

/* --- Runs --- */

typedef struct lists { /* by device, then by argument or result; in one allocation, `memory` */
  ax_pjrt_buffer ***in, ***out;
  ax_pjrt_event **events;
  int64_t *kept; /* arguments that stay the caller's */
  size_t kept_count;
  void *memory;
} lists;

static ax_status make_lists(const ax_client_program *p, lists *l) {
  const size_t devices = p->devices, each = (size_t)p->in_count + p->out_count;
  size_t bytes;
  if (!ax_mul_size(devices, each * sizeof(void *), &bytes)) return ax_out_of_memory(SIZE_MAX);
  bytes += 3 * devices * sizeof(void *) + p->in_count * sizeof l->kept[0];
  l->memory = ax_calloc(1, bytes + 1);
  if (l->memory == NULL) return ax_out_of_memory(bytes);
  l->in = l->memory;
  l->out = l->in + devices;
  l->events = (ax_pjrt_event **)(void *)(l->out + devices);
  l->kept = (int64_t *)(void *)(l->events + devices);
  ax_pjrt_buffer **next = (ax_pjrt_buffer **)(void *)(l->kept + p->in_count);
  for (size_t d = 0; d < devices; d++) {
    l->in[d] = next;
    l->out[d] = next + p->in_count;
    next += each;
  }
  return AX_OK;
}

static ax_status make_results(const ax_client_program *p, ax_buffers **out) {
  for (uint32_t k = 0; k < p->out_count; k++) AX_TRY(ax_buffers_create(p->client, p->devices, &out[k]));
  return AX_OK;
}

/* Hands the run over. Runs over several devices have numbers of their own, by which the devices' parts of one run find each other, and all
   devices get them in the same order. */
static ax_status launch(const ax_client_program *p, lists *l) {
  ax_client *client = (ax_client *)(uintptr_t)p->client; /* the cast: the order of runs is not part of what a client is */
  pthread_mutex_lock(&client->launch);
  ax_pjrt_execute_options options = {
      .struct_size = sizeof options, .launch_id = ++client->launches, .kept = l->kept, .kept_count = l->kept_count};
  ax_pjrt_loaded_execute_args args = {.struct_size = sizeof args,
                                      .of = p->loaded,
                                      .options = &options,
                                      .arguments = (ax_pjrt_buffer *const *const *)l->in,
                                      .device_count = p->devices,
                                      .argument_count = p->in_count,
                                      .outputs = l->out,
                                      .events = l->events};
  const ax_status status = AX_CLIENT_CALL(client->api, loaded_execute, &args);
  pthread_mutex_unlock(&client->launch);
  return status;
}

static void release_results(const ax_client_program *p, ax_buffers **out) {
  for (uint32_t k = 0; k < p->out_count; k++) {
    ax_buffers_release(out[k]);
    out[k] = NULL;
  }
}

ax_status ax_client_launch(const ax_client_program *p, ax_buffers *const *in, const bool *given, ax_buffers **out, ax_client_going *going) {
  lists l = {0};
  for (uint32_t k = 0; k < p->out_count; k++) out[k] = NULL;
  AX_TRY(make_lists(p, &l));
  ax_status status = make_results(p, out);
  for (uint32_t i = 0; i < p->in_count; i++) {
    if (!given[i]) l.kept[l.kept_count++] = i;
    for (uint32_t d = 0; d < p->devices; d++) l.in[d][i] = in[i]->buffer[d];
  }
  if (status == AX_OK) status = launch(p, &l);
  if (status != AX_OK) {
    release_results(p, out);
    ax_free(l.memory);
    return status;
  }
  for (uint32_t k = 0; k < p->out_count; k++)
    for (uint32_t d = 0; d < p->devices; d++) out[k]->buffer[d] = l.out[d][k];
  *going = (ax_client_going){p, l.events, l.memory};
  return AX_OK;
}

bool ax_client_is_over(const ax_client_going *going) {
  const ax_client_program *p = going->program;
  for (uint32_t d = 0; p != NULL && d < p->devices; d++) {
    ax_pjrt_event_is_ready_args args = {.struct_size = sizeof args, .of = going->events[d]};
    if (going->events[d] == NULL) continue;
    if (!AX_CLIENT_HAS(p->client->api, event_is_ready) || AX_CLIENT_CALL(p->client->api, event_is_ready, &args) != AX_OK || !args.value) return false;
  }
  return true;
}

ax_status ax_client_finish(ax_client_going *going) {
  if (going->program == NULL) return AX_OK;
  const ax_client_program *p = going->program;
  const ax_status status = ax_client_await_all(p->client, going->events, p->devices, ax_client_name_loaded_execute, AX_OK);
  ax_free(going->memory);
  return status;
}
