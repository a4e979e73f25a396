/* PJRT's interface: what a plugin may have besides, in a list of structs whose type says what they are. Included by client/api.h. */
#ifndef AX_CLIENT_API_EXTENSIONS_H
#define AX_CLIENT_API_EXTENSIONS_H

#include "client/api.h"

enum { AX_PJRT_CUSTOM_CALLS = 0, AX_PJRT_PROFILERS = 1, AX_PJRT_LAYOUTS = 4, AX_PJRT_FFI = 5, AX_PJRT_SHARDINGS = 19 };

/* How the parameters or results lie over the devices: an OpSharding each, as bytes. items NULL: it is not known. */
AX_PJRT_ARGS(executable_shardings, ax_pjrt_executable *of; /* -> */ size_t count; const char *const *items; const size_t *lengths;);
typedef struct ax_pjrt_shardings {
  ax_pjrt_extension base;
  ax_pjrt_error *(*parameters)(ax_pjrt_executable_shardings_args *args);
  ax_pjrt_error *(*results)(ax_pjrt_executable_shardings_args *args);
} ax_pjrt_shardings;

/* The order in which dimensions lie in memory, as XLA's text: {1,0} is row-major. `of` of defaults: a client or a topology. */
typedef struct ax_pjrt_layout ax_pjrt_layout;
AX_PJRT_ARGS(layout_destroy, ax_pjrt_layout *of;);
AX_PJRT_ARGS(layout_serialize, ax_pjrt_layout *of; /* -> */ const char *bytes; size_t count; void *backing; void (*release)(void *backing););
AX_PJRT_ARGS(layout_buffer, ax_pjrt_buffer *of; /* -> */ ax_pjrt_layout *value;);
AX_PJRT_ARGS(layout_default, void *of; int type; const int64_t *dims; size_t rank; /* -> */ ax_pjrt_layout *value;);
AX_PJRT_ARGS(layout_executable, ax_pjrt_executable *of; /* -> */ size_t count; ax_pjrt_layout **items;);
typedef struct ax_pjrt_layouts {
  ax_pjrt_extension base;
  ax_pjrt_error *(*destroy)(ax_pjrt_layout_destroy_args *args);
  ax_pjrt_error *(*serialize)(ax_pjrt_layout_serialize_args *args);
  ax_pjrt_error *(*client_default)(ax_pjrt_layout_default_args *args);
  ax_pjrt_error *(*of_buffer)(ax_pjrt_layout_buffer_args *args);
  ax_pjrt_error *(*topology_default)(ax_pjrt_layout_default_args *args);
  ax_pjrt_error *(*of_results)(ax_pjrt_layout_executable_args *args);
  ax_pjrt_error *(*of_parameters)(ax_pjrt_layout_executable_args *args);
} ax_pjrt_layouts;

/* --- Functions that modules call by name; ax_ffi_handler and the rest of XLA's FFI are in ffi/abi.h. All are the process's. --- */

typedef struct ax_pjrt_ffi_type_info {
  void (*deleter)(void *object); /* NULL: objects of the type are never states of handlers */
  void (*serialize)(void), (*deserialize)(void); /* not called */
} ax_pjrt_ffi_type_info;
/* number: 0, and the type gets one; else the one that it has. */
AX_PJRT_ARGS(ffi_type, const char *name; size_t name_length; /* <-> */ int64_t number; const ax_pjrt_ffi_type_info *info;);
/* For the handlers of the runs that the context is given to. */
typedef struct ax_pjrt_user_data {
  int64_t type;
  void *data;
} ax_pjrt_user_data;
AX_PJRT_ARGS(ffi_user_data, ax_pjrt_execute_context *of; ax_pjrt_user_data given;);
typedef struct ax_pjrt_ffi_handler_args { /* without a list of extensions */
  size_t struct_size;
  const char *target;
  size_t target_length;
  void *execute;
  const char *platform;
  size_t platform_length;
  int traits;
} ax_pjrt_ffi_handler_args;
typedef struct ax_pjrt_ffi {
  ax_pjrt_extension base;
  ax_pjrt_error *(*register_type)(ax_pjrt_ffi_type_args *args);
  ax_pjrt_error *(*add_user_data)(ax_pjrt_ffi_user_data_args *args);
  ax_pjrt_error *(*register_handler)(ax_pjrt_ffi_handler_args *args);
} ax_pjrt_ffi;

/* The same with all stages, and for functions of the older kinds: as plugins for GPUs have it. */
typedef struct ax_pjrt_custom_call_args { /* likewise */
  size_t struct_size;
  const char *target;
  size_t target_length;
  int api_version; /* 1: handlers of XLA's FFI; 0: `execute` is a function of an older kind */
  void *instantiate, *prepare, *initialize, *execute;
} ax_pjrt_custom_call_args;
typedef struct ax_pjrt_custom_calls {
  ax_pjrt_extension base;
  ax_pjrt_error *(*register_call)(ax_pjrt_custom_call_args *args);
} ax_pjrt_custom_calls;

/* --- Profilers: traces of what devices did (xla/backends/profiler/plugin/profiler_c_api.h). Its structs have no list of extensions. --- */

typedef struct ax_profiler ax_profiler;
typedef struct ax_pjrt_profiler_error_args {
  size_t struct_size;
  void *unused;
  ax_pjrt_error *of;
  /* -> the message, or the code, which is PJRT's */
  union {
    struct {
      const char *text;
      size_t length;
    };
    int code;
  };
} ax_pjrt_profiler_error_args;
typedef struct ax_pjrt_profiler_create_args {
  size_t struct_size;
  const char *options; /* a ProfileOptions of XLA's, as bytes */
  size_t option_bytes;
  /* -> */ ax_profiler *profiler;
} ax_pjrt_profiler_create_args;
typedef struct ax_pjrt_profiler_args {
  size_t struct_size;
  ax_profiler *of;
} ax_pjrt_profiler_args;
typedef struct ax_pjrt_profiler_data_args {
  size_t struct_size;
  ax_profiler *of;
  uint8_t *bytes; /* <-> where to copy them; NULL: it gets the profiler's own, which are there until it is destroyed */
  size_t count;   /* -> */
} ax_pjrt_profiler_data_args;
typedef struct ax_pjrt_profiler_functions {
  size_t struct_size;
  void *unused;
  void (*error_destroy)(ax_pjrt_profiler_error_args *args);
  void (*error_message)(ax_pjrt_profiler_error_args *args);
  ax_pjrt_error *(*error_code)(ax_pjrt_profiler_error_args *args);
  ax_pjrt_error *(*create)(ax_pjrt_profiler_create_args *args);
  ax_pjrt_error *(*destroy)(ax_pjrt_profiler_args *args);
  ax_pjrt_error *(*start)(ax_pjrt_profiler_args *args);
  ax_pjrt_error *(*stop)(ax_pjrt_profiler_args *args);
  ax_pjrt_error *(*collect_data)(ax_pjrt_profiler_data_args *args); /* an XSpace, as bytes */
} ax_pjrt_profiler_functions;
typedef struct ax_pjrt_profilers {
  ax_pjrt_extension base;
  const ax_pjrt_profiler_functions *functions;
  int64_t context; /* a kind of XLA's links between traces; 0: none */
} ax_pjrt_profilers;

#endif
