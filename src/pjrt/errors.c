/* Errors of PJRT's interface. An error is never lost for want of memory: then a static one says that there is none. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "pjrt/pjrt.h"

struct ax_pjrt_error {
  const ax_pjrt_error_functions *functions; /* first: callers read it */
  ax_pjrt_code code;
  size_t length;
  const char *text;
};

static void destroy(ax_pjrt_error *error);

static void message_of(const ax_pjrt_error *error, const char **text, size_t *length) {
  *text = error != NULL ? error->text : "";
  *length = error != NULL ? error->length : 0;
}

static ax_pjrt_code code_of(const ax_pjrt_error *error) { return error != NULL ? error->code : AX_PJRT_OK; }

static void no_payloads(const ax_pjrt_error *error, ax_pjrt_payload_visitor visitor, void *context) {
  (void)error, (void)visitor, (void)context;
}

static const ax_pjrt_error_functions functions = {
    .struct_size = sizeof functions,
    .instance_size = sizeof(ax_pjrt_error),
    .destroy = destroy,
    .message = message_of,
    .code = code_of,
    .for_each_payload = no_payloads,
};

static const char no_memory_text[] = "out of memory";
static ax_pjrt_error no_memory = {&functions, AX_PJRT_RESOURCE_EXHAUSTED, sizeof no_memory_text - 1, no_memory_text};

static void destroy(ax_pjrt_error *error) {
  if (error != &no_memory) ax_free(error);
}

static ax_pjrt_error *create(ax_pjrt_code code, const char *text, size_t length) {
  ax_pjrt_error *error = ax_alloc(sizeof *error + length + 1);
  if (error == NULL) return &no_memory;
  char *own = (char *)(error + 1);
  memcpy(own, text, length);
  own[length] = '\0';
  *error = (ax_pjrt_error){&functions, code, length, own};
  return error;
}

ax_pjrt_error *ax_pjrt_fail(ax_pjrt_code code, const char *format, ...) {
  char text[1024];
  va_list list;
  va_start(list, format);
  const int length = vsnprintf(text, sizeof text, format, list);
  va_end(list);
  return create(code, text, length < 0 ? 0 : (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
}

ax_pjrt_error *ax_pjrt_error_of(ax_pjrt_code code, const char *message) {
  if (message == NULL) message = "it failed, and there was no memory for the reason";
  return create(code, message, strlen(message));
}

ax_pjrt_code ax_pjrt_code_of(ax_status status) {
  switch (status) {
    case AX_OK: return AX_PJRT_OK;
    case AX_INVALID_ARGUMENT:
    case AX_PARSE_ERROR: return AX_PJRT_INVALID_ARGUMENT;
    case AX_OUT_OF_MEMORY: return AX_PJRT_RESOURCE_EXHAUSTED;
    case AX_ABSENT: return AX_PJRT_UNIMPLEMENTED;
    case AX_IO_ERROR: return AX_PJRT_DATA_LOSS;
    case AX_DEADLOCK: return AX_PJRT_ABORTED;
    case AX_NOT_FINITE: return AX_PJRT_FAILED_PRECONDITION;
    case AX_UNAVAILABLE: return AX_PJRT_UNAVAILABLE;
    default: return AX_PJRT_INTERNAL;
  }
}

ax_pjrt_error *ax_pjrt_status_of(ax_status status, const char *message) {
  return status != AX_OK ? ax_pjrt_error_of(ax_pjrt_code_of(status), message) : NULL;
}

ax_pjrt_error *ax_pjrt_status(ax_status status) { return ax_pjrt_status_of(status, ax_message()); }

/* --- The table's functions --- */

void ax_pjrt_do_error_destroy(ax_pjrt_error_destroy_args *args) {
  if (args->of != NULL) destroy(args->of);
}

void ax_pjrt_do_error_message(ax_pjrt_error_message_args *args) { message_of(args->of, &args->text, &args->length); }

AX_PJRT_GIVE_VALUE(error_code, code_of(args->of))

ax_pjrt_error *ax_pjrt_do_error_payloads(ax_pjrt_error_payloads_args *args) {
  (void)args; /* no error has any */
  return NULL;
}
