/* XLA's foreign function interface, version 0.3, as facts of its binary form: which fields its structs have, in order. What a handler
   that was compiled with XLA's headers is called with, and what it calls back. tests/oracle/ffi_abi.cc compares sizes, offsets and
   numbers with the published header, xla/ffi/api/c_api.h.

   Each struct begins with its size in bytes, as far as its maker knew it, up to the end of the last field, and a list of extensions. A
   reader takes a larger one, and refuses a smaller one. The sizes of a call frame and of metadata leave out their last field, which came later (ax_ffi_*_bytes). */
#ifndef AX_FFI_ABI_H
#define AX_FFI_ABI_H

#include <stddef.h>
#include <stdint.h>

enum { AX_FFI_MAJOR = 0, AX_FFI_MINOR = 3, AX_FFI_LEAST_MINOR = 1 };

typedef struct ax_ffi_error ax_ffi_error;     /* opaque to handlers */
typedef struct ax_ffi_future ax_ffi_future;   /* likewise */
typedef struct ax_ffi_context ax_ffi_context; /* likewise; of one call */

#define AX_FFI_HEAD      \
  size_t struct_size; \
  struct ax_ffi_extension *extensions

typedef struct ax_ffi_extension {
  size_t struct_size;
  int type; /* AX_FFI_METADATA */
  struct ax_ffi_extension *next;
} ax_ffi_extension;
enum { AX_FFI_METADATA = 1 };

typedef struct ax_ffi_version {
  AX_FFI_HEAD;
  int major, minor;
} ax_ffi_version;

/* The codes of absl::Status. */
typedef enum ax_ffi_code {
  AX_FFI_OK,
  AX_FFI_CANCELLED,
  AX_FFI_UNKNOWN,
  AX_FFI_INVALID_ARGUMENT,
  AX_FFI_DEADLINE_EXCEEDED,
  AX_FFI_NOT_FOUND,
  AX_FFI_ALREADY_EXISTS,
  AX_FFI_PERMISSION_DENIED,
  AX_FFI_RESOURCE_EXHAUSTED,
  AX_FFI_FAILED_PRECONDITION,
  AX_FFI_ABORTED,
  AX_FFI_OUT_OF_RANGE,
  AX_FFI_UNIMPLEMENTED,
  AX_FFI_INTERNAL,
  AX_FFI_UNAVAILABLE,
  AX_FFI_DATA_LOSS,
  AX_FFI_UNAUTHENTICATED
} ax_ffi_code;

/* --- Values --- */
typedef struct ax_ffi_bytes {
  const char *data;
  size_t count;
} ax_ffi_bytes;
typedef struct ax_ffi_scalar {
  int dtype; /* abi numbers of dtypes: attributes.c */
  void *data;
} ax_ffi_scalar;
typedef struct ax_ffi_array {
  int dtype;
  size_t count;
  void *data;
} ax_ffi_array;
typedef struct ax_ffi_buffer {
  AX_FFI_HEAD;
  int dtype;
  void *data;
  int64_t rank;
  int64_t *dims;
} ax_ffi_buffer;

enum { AX_FFI_BUFFER = 1 };                                                     /* kinds of operands and results */
enum { AX_FFI_ATTRIBUTE_ARRAY = 1, AX_FFI_ATTRIBUTE_DICTIONARY, AX_FFI_ATTRIBUTE_SCALAR, AX_FFI_ATTRIBUTE_STRING };

typedef struct ax_ffi_values { /* operands, or results */
  AX_FFI_HEAD;
  int64_t count;
  int *kinds;
  void **values; /* ax_ffi_buffer * */
} ax_ffi_values;
typedef struct ax_ffi_attributes { /* in the order of their names */
  AX_FFI_HEAD;
  int64_t count;
  int *kinds;
  ax_ffi_bytes **names;
  void **values; /* ax_ffi_array *, ax_ffi_attributes *, ax_ffi_scalar *, ax_ffi_bytes * */
} ax_ffi_attributes;

/* --- Calls of handlers --- */
typedef enum ax_ffi_stage { AX_FFI_INSTANTIATE, AX_FFI_PREPARE, AX_FFI_INITIALIZE, AX_FFI_EXECUTE, AX_FFI_STAGES } ax_ffi_stage;

typedef struct ax_ffi_frame {
  AX_FFI_HEAD;
  const struct ax_ffi_api *api;
  ax_ffi_context *context;
  int stage;
  ax_ffi_values in, out;
  ax_ffi_attributes attributes;
  ax_ffi_future *future; /* set by the handler: it goes on after it has returned */
} ax_ffi_frame;
enum { AX_FFI_FRAME_BYTES = offsetof(ax_ffi_frame, future) };
typedef ax_ffi_error *(*ax_ffi_handler)(ax_ffi_frame *frame);

typedef struct ax_ffi_type_id {
  int64_t number; /* 0: not known yet */
} ax_ffi_type_id;
typedef struct ax_ffi_type_info {
  AX_FFI_HEAD;
  void (*deleter)(void *object);
} ax_ffi_type_info;

/* What a handler fills, rather than run, if a frame has this extension. */
typedef struct ax_ffi_metadata {
  size_t struct_size;
  ax_ffi_version version;
  uint32_t traits;
  ax_ffi_type_id state_type; /* of what it makes */
} ax_ffi_metadata;
enum { AX_FFI_METADATA_BYTES = offsetof(ax_ffi_metadata, traits) + sizeof(uint32_t) };
typedef struct ax_ffi_metadata_extension {
  ax_ffi_extension head;
  ax_ffi_metadata *metadata;
} ax_ffi_metadata_extension;

/* --- What handlers call: each function has one struct of arguments, which also takes what it gives --- */
typedef struct ax_ffi_error_create {
  AX_FFI_HEAD;
  const char *message;
  int code;
} ax_ffi_error_create;
typedef struct ax_ffi_error_message {
  AX_FFI_HEAD;
  ax_ffi_error *error;
  const char *message; /* out */
} ax_ffi_error_message;
typedef struct ax_ffi_error_destroy {
  AX_FFI_HEAD;
  ax_ffi_error *error;
} ax_ffi_error_destroy;
typedef struct ax_ffi_register {
  AX_FFI_HEAD;
  ax_ffi_bytes name, platform;
  ax_ffi_handler stages[AX_FFI_STAGES];
  uint32_t traits;
} ax_ffi_register;
typedef struct ax_ffi_stream {
  AX_FFI_HEAD;
  ax_ffi_context *context;
  void *stream; /* out */
} ax_ffi_stream;
typedef struct ax_ffi_type_register {
  AX_FFI_HEAD;
  ax_ffi_bytes name;
  ax_ffi_type_id *id;
  const ax_ffi_type_info *info;
} ax_ffi_type_register;
typedef struct ax_ffi_user_data {
  AX_FFI_HEAD;
  ax_ffi_context *context;
  ax_ffi_type_id *id;
  void *data; /* out */
} ax_ffi_user_data;
typedef struct ax_ffi_state { /* to set one and to get one */
  AX_FFI_HEAD;
  ax_ffi_context *context;
  int stage;
  ax_ffi_type_id *id;
  void *state;
} ax_ffi_state;
typedef struct ax_ffi_allocate {
  AX_FFI_HEAD;
  ax_ffi_context *context;
  size_t bytes, alignment;
  void *data; /* out */
} ax_ffi_allocate;
typedef struct ax_ffi_release {
  AX_FFI_HEAD;
  ax_ffi_context *context;
  size_t bytes;
  void *data;
} ax_ffi_release;
typedef struct ax_ffi_schedule {
  AX_FFI_HEAD;
  ax_ffi_context *context;
  void (*task)(void *data);
  void *data;
} ax_ffi_schedule;
typedef struct ax_ffi_threads {
  AX_FFI_HEAD;
  ax_ffi_context *context;
  int64_t *count; /* out */
} ax_ffi_threads;
typedef struct ax_ffi_future_create {
  AX_FFI_HEAD;
  ax_ffi_future *future; /* out */
} ax_ffi_future_create;
enum { AX_FFI_FUTURE_CREATE_BYTES = offsetof(ax_ffi_future_create, future) };
typedef struct ax_ffi_future_available {
  AX_FFI_HEAD;
  ax_ffi_future *future;
} ax_ffi_future_available;
typedef struct ax_ffi_future_error {
  AX_FFI_HEAD;
  ax_ffi_future *future;
  ax_ffi_error *error; /* ours from now on */
} ax_ffi_future_error;
typedef struct ax_ffi_run_id {
  AX_FFI_HEAD;
  ax_ffi_context *context;
  int64_t run; /* out */
} ax_ffi_run_id;
typedef struct ax_ffi_device {
  AX_FFI_HEAD;
  ax_ffi_context *context;
  int32_t device; /* out */
} ax_ffi_device;

typedef struct ax_ffi_api {
  AX_FFI_HEAD;
  ax_ffi_version version;
  const void *internal; /* of XLA's own handlers */
  ax_ffi_error *(*error_create)(ax_ffi_error_create *args);
  void (*error_message)(ax_ffi_error_message *args);
  void (*error_destroy)(ax_ffi_error_destroy *args);
  ax_ffi_error *(*register_handler)(ax_ffi_register *args);
  ax_ffi_error *(*stream)(ax_ffi_stream *args);
  ax_ffi_error *(*register_type)(ax_ffi_type_register *args);
  ax_ffi_error *(*user_data)(ax_ffi_user_data *args);
  ax_ffi_error *(*state_set)(ax_ffi_state *args);
  ax_ffi_error *(*state_get)(ax_ffi_state *args);
  ax_ffi_error *(*allocate)(ax_ffi_allocate *args);
  ax_ffi_error *(*release)(ax_ffi_release *args);
  ax_ffi_error *(*schedule)(ax_ffi_schedule *args);
  ax_ffi_error *(*threads)(ax_ffi_threads *args);
  ax_ffi_error *(*future_create)(ax_ffi_future_create *args);
  ax_ffi_error *(*future_available)(ax_ffi_future_available *args);
  ax_ffi_error *(*future_error)(ax_ffi_future_error *args);
  ax_ffi_error *(*run_id)(ax_ffi_run_id *args);
  ax_ffi_error *(*device)(ax_ffi_device *args);
} ax_ffi_api;

#endif
