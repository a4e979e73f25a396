/* PJRT's interface: compiling and running. Included by client/api.h. An executable is a program that was compiled; a loaded one has its
   devices, too. */
#ifndef AX_CLIENT_API_EXECUTABLE_H
#define AX_CLIENT_API_EXECUTABLE_H

#include "client/api.h"

typedef struct ax_pjrt_program {
  AX_PJRT_HEAD;
  char *code;
  size_t code_bytes;
  const char *format; /* "mlir": StableHLO or VHLO, as text or bytecode; "hlo" */
  size_t format_length;
} ax_pjrt_program;

/* options: XLA's CompileOptionsProto. */
AX_PJRT_ARGS(client_compile, ax_pjrt_client *of; const ax_pjrt_program *program; const char *options; size_t option_bytes;
             /* -> */ ax_pjrt_loaded_executable *value;);
AX_PJRT_ARGS(client_load, ax_pjrt_client *of; ax_pjrt_executable *executable; const char *options; size_t option_bytes;
             /* -> */ ax_pjrt_loaded_executable *value;);
AX_PJRT_ARGS(compile, const ax_pjrt_topology *of; const ax_pjrt_program *program; const char *options; size_t option_bytes;
             ax_pjrt_client *client; /* -> */ ax_pjrt_executable *value;);

/* --- Executables --- */

AX_PJRT_OF(executable_destroy, ax_pjrt_executable);
AX_PJRT_TEXT(executable_name, ax_pjrt_executable);
AX_PJRT_GET(executable_replicas, ax_pjrt_executable, size_t);
AX_PJRT_GET(executable_partitions, ax_pjrt_executable, size_t);
AX_PJRT_GET(executable_outputs, ax_pjrt_executable, size_t);
AX_PJRT_GET(executable_code_bytes, ax_pjrt_executable, int64_t);
AX_PJRT_TEXT(executable_fingerprint, ax_pjrt_executable);
AX_PJRT_ARGS(executable_cost_analysis, ax_pjrt_executable *of; /* -> */ size_t count; const ax_pjrt_named *items;);
/* Bytes of one device. */
typedef struct ax_pjrt_memory_use {
  int64_t code, arguments, outputs, aliases, temporaries;
} ax_pjrt_memory_use;
AX_PJRT_ARGS(executable_memory_stats, ax_pjrt_executable *of; /* -> */ ax_pjrt_memory_use device; ax_pjrt_memory_use host; int64_t peak;
             int64_t total; int64_t allocated; int64_t indefinite; int64_t peak_unpadded;);
AX_PJRT_LIST(executable_output_element_types, ax_pjrt_executable, ax_pjrt_element);
/* The dimensions of all results, one behind the other, and how many each has. */
AX_PJRT_ARGS(executable_output_dimensions, ax_pjrt_executable *of; size_t count; /* -> */ const int64_t *dims; const size_t *ranks;);
AX_PJRT_ARGS(executable_parameter_memory_kinds, ax_pjrt_executable *of; /* -> */ size_t count; const char *const *texts;
             const size_t *lengths;);
AX_PJRT_ARGS(executable_output_memory_kinds, ax_pjrt_executable *of; /* -> */ size_t count; const char *const *texts;
             const size_t *lengths;);
/* Called twice: first without `code`, for its size. */
AX_PJRT_ARGS(executable_optimized_program, ax_pjrt_executable *of; ax_pjrt_program *program;);
AX_PJRT_ARGS(executable_serialize, const ax_pjrt_executable *of; /* -> */ const char *bytes; size_t count; ax_pjrt_held *held;
             void (*release)(ax_pjrt_held *held););
AX_PJRT_ARGS(executable_compile_options, ax_pjrt_executable *of; /* -> */ const char *bytes; size_t count; ax_pjrt_held *held;
             void (*release)(ax_pjrt_held *held););
typedef struct ax_pjrt_load_options {
  size_t struct_size;
  const int32_t *origin;
  size_t origin_count;
  void *slices;
} ax_pjrt_load_options;
AX_PJRT_ARGS(executable_deserialize_and_load, ax_pjrt_client *of; const char *bytes; size_t count;
             /* -> */ ax_pjrt_loaded_executable *value; /* more of the caller's */ const char *options; size_t option_bytes;
             ax_pjrt_load_options *load;);

/* --- Loaded ones --- */

typedef struct ax_pjrt_logical_id {
  int replica, partition;
} ax_pjrt_logical_id;
AX_PJRT_OF(loaded_destroy, ax_pjrt_loaded_executable);
AX_PJRT_GET(loaded_executable, ax_pjrt_loaded_executable, ax_pjrt_executable *);
AX_PJRT_LIST(loaded_addressable_devices, ax_pjrt_loaded_executable, ax_pjrt_device *const);
AX_PJRT_LIST(loaded_logical_ids, ax_pjrt_loaded_executable, ax_pjrt_logical_id);
/* XLA's DeviceAssignmentProto. */
AX_PJRT_ARGS(loaded_device_assignment, ax_pjrt_loaded_executable *of; /* -> */ const char *bytes; size_t count; ax_pjrt_held *held;
             void (*release)(ax_pjrt_held *held););
AX_PJRT_OF(loaded_delete, ax_pjrt_loaded_executable);
AX_PJRT_GET(loaded_is_deleted, ax_pjrt_loaded_executable, bool);
AX_PJRT_TEXT(loaded_fingerprint, ax_pjrt_loaded_executable);

/* --- Runs --- */

typedef struct ax_pjrt_send {
  int64_t channel;
  void *context;
  ax_pjrt_error *(*call)(ax_pjrt_chunk *chunk, ax_pjrt_callback_error *error, size_t bytes, bool done, void *context);
} ax_pjrt_send;
typedef struct ax_pjrt_receive {
  int64_t channel;
  void *context;
  void (*call)(ax_pjrt_stream *stream, void *context);
} ax_pjrt_receive;

typedef struct ax_pjrt_execute_options {
  AX_PJRT_HEAD;
  ax_pjrt_send **sends;       /* of each device: its sends */
  ax_pjrt_receive **receives; /* likewise */
  size_t send_count, receive_count;
  int launch_id;
  const int64_t *kept; /* arguments that are not donated, though the program would take them */
  size_t kept_count;
  ax_pjrt_execute_context *context;
  const char *location;
  size_t task_count;
  int *tasks;
  int64_t *incarnations;
  void *slices;
  bool row_major_callbacks;
  void *output_callbacks;
  size_t output_callback_count;
} ax_pjrt_execute_options;

AX_PJRT_ARGS(context_create, /* -> */ ax_pjrt_execute_context *value;);
AX_PJRT_OF(context_destroy, ax_pjrt_execute_context);
/* arguments, outputs: a list for each device. events: one for each device, or NULL. device: where a program of one device runs, if it
   was compiled for none. */
AX_PJRT_ARGS(loaded_execute, ax_pjrt_loaded_executable *of; ax_pjrt_execute_options *options;
             ax_pjrt_buffer *const *const *arguments; size_t device_count; size_t argument_count;
             /* -> */ ax_pjrt_buffer **const *outputs; ax_pjrt_event **events; /* more of the caller's */ ax_pjrt_device *device;);

#endif
