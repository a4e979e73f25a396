/* Calling a handler of XLA's interface: its metadata, its state, and its stages for one call of a program.

     site (once)                       frame (each call)
       buffers: dtype, dims      ->      in, out: the same with their memory
       typed: attributes         ->      attributes
       state                     ->      context.states[instantiate]

   Nothing of the arrays is copied: a buffer's memory is the program's. */
#include <stdio.h>
#include <string.h>

#include "ffi/api.h"

/* The message of an error, which is ended, and its status. */
static ax_status take_error(ax_ffi_error *error, char *message) {
  if (error == NULL) return AX_OK;
  ax_ffi_error_message said = {.struct_size = sizeof said, .error = error};
  ax_ffi_functions()->error_message(&said);
  const ax_status status = ax_ffi_status_of(error->code);
  snprintf(message, AX_MESSAGE_BYTES, "%s: %s", ax_ffi_code_name(error->code), said.message);
  ax_ffi_error_end(error);
  return status;
}

static ax_ffi_frame empty_frame(ax_ffi_context *context, ax_ffi_stage stage) {
  return (ax_ffi_frame){.struct_size = AX_FFI_FRAME_BYTES,
                        .api = ax_ffi_functions(),
                        .context = context,
                        .stage = stage,
                        .in = {.struct_size = sizeof(ax_ffi_values)},
                        .out = {.struct_size = sizeof(ax_ffi_values)},
                        .attributes = {.struct_size = sizeof(ax_ffi_attributes)}};
}

/* A handler that returns an error has failed, whatever its future says. */
static ax_ffi_error *call(ax_ffi_handler handler, ax_ffi_frame *frame) {
  frame->future = NULL;
  ax_ffi_error *error = handler(frame);
  if (frame->future == NULL) return error;
  if (error == NULL) return ax_ffi_future_wait(frame->future);
  ax_ffi_future_abandon(frame->future);
  return error;
}

ax_status ax_ffi_ask(ax_ffi_handler handler, const char *stage) {
  char message[AX_MESSAGE_BYTES] = "";
  ax_ffi_metadata metadata = {.struct_size = AX_FFI_METADATA_BYTES, .version = {.struct_size = sizeof(ax_ffi_version)}};
  ax_ffi_metadata_extension extension = {{sizeof extension, AX_FFI_METADATA, NULL}, &metadata};
  ax_ffi_frame frame = empty_frame(NULL, AX_FFI_EXECUTE);
  frame.extensions = &extension.head;
  const ax_status status = take_error(call(handler, &frame), message);
  if (status != AX_OK) return ax_error(status, "its %s handler: %s", stage, message);
  const ax_ffi_version *version = &metadata.version;
  if (version->major == AX_FFI_MAJOR && version->minor >= AX_FFI_LEAST_MINOR && version->minor <= AX_FFI_MINOR) return AX_OK;
  return ax_error(AX_ABSENT, "its %s handler is built for version %d.%d of XLA's interface, and here are %d.%d to %d.%d", stage,
                  version->major, version->minor, AX_FFI_MAJOR, AX_FFI_LEAST_MINOR, AX_FFI_MAJOR, AX_FFI_MINOR);
}

ax_status ax_ffi_instantiate(ax_ffi_site *site) {
  char message[AX_MESSAGE_BYTES] = "";
  if (site->entry.stages[AX_FFI_INSTANTIATE] == NULL) return AX_OK;
  ax_ffi_context context = {.calls = site->calls};
  ax_ffi_frame frame = empty_frame(&context, AX_FFI_INSTANTIATE);
  frame.attributes = site->typed;
  const ax_status status = take_error(call(site->entry.stages[AX_FFI_INSTANTIATE], &frame), message);
  site->state = context.states[AX_FFI_INSTANTIATE];
  return status == AX_OK ? AX_OK : ax_error(status, "its instantiate handler: %s", message);
}

/* --- One call --- */

enum { few = 16 }; /* buffers that need no memory of their own */

typedef struct call_memory {
  ax_ffi_buffer *buffers;
  void **values;
} call_memory;

static void fill(const ax_ffi_site *site, const ax_callback_call *c, const call_memory *memory, ax_ffi_frame *frame) {
  const uint32_t count = site->in_count + site->out_count;
  memcpy(memory->buffers, site->buffers, count * sizeof memory->buffers[0]);
  for (uint32_t i = 0; i < count; i++) {
    memory->buffers[i].data = i < site->in_count ? c->in[i].data : c->out[i - site->in_count].data;
    if (site->blocks) memory->buffers[i].dims = (int64_t *)(uintptr_t)c->in[i].dims; /* which handlers only read */
    memory->values[i] = &memory->buffers[i];
  }
  frame->attributes = site->typed;
  frame->in.count = site->in_count, frame->in.kinds = site->kinds, frame->in.values = memory->values;
  frame->out.count = site->out_count, frame->out.kinds = site->kinds, frame->out.values = memory->values + site->in_count;
}

static ax_status run_stages(const ax_ffi_site *site, ax_callback_call *c, const call_memory *memory) {
  ax_status status = AX_OK;
  ax_ffi_context context = {.calls = site->calls, .device = c->device, .user_data_count = c->user_data_count, .user_data = c->user_data,
                            .states = {site->state}};
  for (int stage = AX_FFI_PREPARE; status == AX_OK && stage <= AX_FFI_EXECUTE; stage++) {
    if (site->entry.stages[stage] == NULL) continue;
    ax_ffi_frame frame = empty_frame(&context, stage);
    fill(site, c, memory, &frame);
    status = take_error(call(site->entry.stages[stage], &frame), c->message);
  }
  for (int stage = AX_FFI_PREPARE; stage < AX_FFI_EXECUTE; stage++) ax_ffi_state_end(&context.states[stage]);
  return status;
}

ax_status ax_ffi_execute(const ax_ffi_site *site, ax_callback_call *c) {
  ax_ffi_buffer buffers[few];
  void *values[few];
  call_memory memory = {buffers, values};
  const size_t count = (size_t)site->in_count + site->out_count;
  if (count <= few) return run_stages(site, c, &memory);
  memory.buffers = ax_alloc(count * (sizeof memory.buffers[0] + sizeof memory.values[0]));
  if (memory.buffers == NULL) return ax_out_of_memory(count);
  memory.values = (void **)(memory.buffers + count);
  const ax_status status = run_stages(site, c, &memory);
  ax_free(memory.buffers);
  return status;
}
