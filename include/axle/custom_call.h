/* Custom calls: functions that StableHLO modules call by a name of their own, "stablehlo.custom_call @rms_norm". A collection of them
   is given to the reader of modules (ax_stablehlo_options.custom_calls); each call becomes a callback (axle/callback.h) of the program.

   A function is one of three kinds: in Axle's own terms, on host arrays; a handler of XLA's FFI, built with the headers that jaxlib
   brings, as custom calls of api_version 4 name it; or a function of the older kinds, api_version 1 to 3. The latter two run as they
   were compiled for XLA on CPUs.

   A call that has no side effect is a pure callback: it is dropped where its results are unused. One that has is an io_callback: a
   device makes its calls in the order of the text. Threads, order and failing are as axle/callback.h says. Several devices may call a
   function at the same time.

   What a program calls stays: the program holds the collection, and the collection holds what was registered and the libraries that
   were loaded. */
#ifndef AXLE_CUSTOM_CALL_H
#define AXLE_CUSTOM_CALL_H

#include "axle/callback.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

/* --- Attributes of a call: what a module writes as backend_config = {eps = 1.0e-5 : f32, mode = "fast"} --- */

typedef enum ax_attribute_kind { AX_ATTRIBUTE_SCALAR, AX_ATTRIBUTE_ARRAY, AX_ATTRIBUTE_STRING, AX_ATTRIBUTE_DICTIONARY } ax_attribute_kind;
/* All is borrowed from the call, and immutable. */
typedef struct ax_attribute {
  const char *name; /* in its dictionary; "": the outermost one */
  ax_attribute_kind kind;
  ax_dtype dtype; /* of scalars and arrays; else AX_NO_DTYPE */
  size_t count;   /* elements, bytes of a string, entries of a dictionary; 1 of a scalar */
  const void *data; /* elements; a string's bytes, with a NUL behind them; NULL: a dictionary */
  const struct ax_attribute *entries; /* of a dictionary, in the order of their names */
} ax_attribute;
/* The entry with the name; NULL: the dictionary has none, or `dictionary` is none. Any thread, as all below. */
const ax_attribute *ax_attribute_find(const ax_attribute *dictionary, const char *name);
/* The entry as a number of C, or a string, which is borrowed. AX_INVALID_ARGUMENT: there is none of the name, or it is of another kind;
   of _integer also one beyond int64_t; *out is not set then. */
AX_MUST_USE ax_status ax_attribute_integer(const ax_attribute *dictionary, const char *name, int64_t *out); /* integers, booleans */
AX_MUST_USE ax_status ax_attribute_number(const ax_attribute *dictionary, const char *name, double *out);   /* any real scalar */
AX_MUST_USE ax_status ax_attribute_text(const ax_attribute *dictionary, const char *name, const char **out);

/* --- The collection --- */

/* Functions by the names of their targets. Reference-counted; all functions may be called from any thread. */
typedef struct ax_custom_calls ax_custom_calls;
/* `*out` is owned by the caller: ax_custom_calls_release. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_custom_calls_create(ax_custom_calls **out);
ax_custom_calls *ax_custom_calls_retain(ax_custom_calls *calls);
void ax_custom_calls_release(ax_custom_calls *calls);

/* A call as the module has it: what a check is asked about. All is borrowed, and gone when it returns. */
typedef struct ax_custom_call_site {
  const char *target;
  uint32_t in_count, out_count;
  const ax_type *in_types, *out_types;
  const ax_attribute *attributes; /* a dictionary */
} ax_custom_call_site;
/* One call, as the function sees it: arrays as in a callback, and the attributes. Returns AX_OK, or the status with which the run
   fails; call->message may say why. */
typedef ax_status (*ax_custom_call_function)(ax_callback_call *call, const ax_attribute *attributes, void *context);
/* Asked once for each call in a module that is read. AX_OK, or a status: the module is refused with it, and with `message`
   (AX_MESSAGE_BYTES, "" before). */
typedef ax_status (*ax_custom_call_check)(const ax_custom_call_site *site, char *message, void *context);

typedef struct ax_custom_call_options {
  ax_custom_call_check check; /* NULL: types are taken as the module says them */
  bool has_side_effect;       /* also where the module does not say so */
  bool vectorized;            /* under ax_vmap one call takes the whole batch (ax_pure_callback); without side effects only */
} ax_custom_call_options;

/* Adds a function in Axle's own terms. `options`: NULL for none. `release` (may be NULL) is called with the context when the collection
   goes; it is not called if this fails. The name is copied. A call's output_operand_aliases are honoured: the result begins with what
   the operand holds, and both are one memory.
   AX_INVALID_ARGUMENT: no function; an empty name or one longer than 255 bytes; a name that is registered. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_custom_call_register(ax_custom_calls *calls, const char *target, ax_custom_call_function function, void *context,
                                              void (*release)(void *context), const ax_custom_call_options *options);

/* --- Functions built for XLA on CPUs --- */

/* A function of any type: one that dlsym found, or XLA's headers declared. */
typedef void (*ax_foreign_function)(void);
/* An XLA_FFI_Handler for each stage; as XLA_FFI_Handler_Bundle. */
typedef struct ax_ffi_handlers {
  ax_foreign_function instantiate; /* NULL: none. Called once for each call in a module, as it is read; what it makes is the call's state */
  ax_foreign_function prepare;     /* NULL: none; before each execute, as the next one is */
  ax_foreign_function initialize;
  ax_foreign_function execute;
} ax_ffi_handlers;
/* Adds a handler of XLA's FFI (XLA_FFI_DEFINE_HANDLER_SYMBOL), for calls of api_version 4. Handlers of versions 0.1 to 0.3 of that
   interface run, which is asked when a module names the target. Buffers are the program's own memory, row-major or as the call's layouts
   say. Scratch is host memory; there is one thread, the caller's; there is no stream and no run id (UNIMPLEMENTED); user
   data is the run's (ax_run_options; NOT_FOUND: of a type that it has not). A future that a handler gives is waited for. As jax.ffi.register_ffi_target.
   AX_INVALID_ARGUMENT: no execute handler; names as above. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_custom_call_register_ffi(ax_custom_calls *calls, const char *target, const ax_ffi_handlers *handlers);
/* Makes a type known whose objects handlers keep as state. `type_id`, an XLA_FFI_TypeId: if it is 0 it gets its number, which is never
   taken back; else it keeps it, as the one that XLA gave it. `type_info`, an XLA_FFI_TypeInfo, is read now: its deleter ends the objects.
   As jax.ffi.register_ffi_type. Before the handlers that use the type are named by a module.
   AX_INVALID_ARGUMENT: neither is there, or there is no deleter; a number that another type has. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_custom_call_register_ffi_type(ax_custom_calls *calls, void *type_id, const void *type_info);
/* Adds a function of the older kinds, whose type is that of the call's api_version:
     1    void (*)(void *out, const void **in)
     2    void (*)(void *out, const void **in, XlaCustomCallStatus *status)
     3    void (*)(void *out, const void **in, const char *opaque, size_t opaque_bytes, XlaCustomCallStatus *status)
   `out` is the memory of the one result, or an array of the results' memories. A status is what XLA's own custom_call_status.cc, linked
   into the library, makes of it where the C++ library is libstdc++. A name may have such a function and a handler. Errors as above. */
AX_MUST_USE ax_status ax_custom_call_register_untyped(ax_custom_calls *calls, const char *target, ax_foreign_function function);

/* Loads a shared library and registers a symbol of it:
     "./ffi.so:RmsNorm=rms_norm"                 the symbol RmsNorm, as both kinds of function, for the target rms_norm
     "./ffi.so:instantiate:RmsState=rms_norm"    the handler of another stage: instantiate, prepare or initialize
     "./ffi.so:type:StateId:StateInfo"           a type: objects of the library that are an XLA_FFI_TypeId and an XLA_FFI_TypeInfo
   The stages of a target may come in any order. The library stays as long as the collection. It runs code of the library.
   AX_INVALID_ARGUMENT: other text; a symbol that the library has not; errors as above. AX_IO_ERROR: the library cannot be loaded.
   AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_custom_calls_load(ax_custom_calls *calls, const char *what);

#pragma GCC visibility pop

#ifndef AXLE_NO_LINES /* axle/line.h */
#define ax_attribute_integer(...) AX_LINED_STATUS(attribute_integer, __VA_ARGS__)
#define ax_attribute_number(...) AX_LINED_STATUS(attribute_number, __VA_ARGS__)
#define ax_attribute_text(...) AX_LINED_STATUS(attribute_text, __VA_ARGS__)
#define ax_custom_call_register(...) AX_LINED_STATUS(custom_call_register, __VA_ARGS__)
#define ax_custom_call_register_ffi(...) AX_LINED_STATUS(custom_call_register_ffi, __VA_ARGS__)
#define ax_custom_call_register_ffi_type(...) AX_LINED_STATUS(custom_call_register_ffi_type, __VA_ARGS__)
#define ax_custom_call_register_untyped(...) AX_LINED_STATUS(custom_call_register_untyped, __VA_ARGS__)
#define ax_custom_calls_create(...) AX_LINED_STATUS(custom_calls_create, __VA_ARGS__)
#define ax_custom_calls_load(...) AX_LINED_STATUS(custom_calls_load, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
