/* Callbacks: C functions that programs call while they run, with arrays of the host in and out; and debug_print, which writes text.

   A program holds a callback (ax_callback): a name, a function and a context. A program's text has the name alone, which is looked
   up when the program is compiled, among those registered in the runtime (ax_runtime_register).

   Number of calls. ax_pure_callback's function has no effect but its results: it may be called once where results are wanted twice,
   or where they are the same on several devices, and never where they are unused. ax_io_callback's and ax_debug_print's are called
   exactly once each time a device reaches them: outside of all shard_maps once for all devices, with whole values; inside, by each
   device along all axes in scope, with its own block. All transforms of the program keep that.

   Order. A device makes its calls in program order, of all kinds but pure ones. Ordered ones are made in one order altogether: in
   program order, and at each place by device 0 first, then 1, ..: the same in each run, under every policy, with any number of
   workers. So all devices must reach an ordered call, as a collective; it must not stand where devices take different branches.
   Calls that are not ordered are made as devices reach them, several at once on different threads. Runs that do not take each
   other's results are not ordered, and so are their calls not.

   Threads. A callback is called on a thread that works on the run: the caller's of ax_run, or one of the runtime's workers. No
   other thread waits for it: devices that wait for its results or for their turn give their thread to others. It may call any
   function of Axle, trace, compile and run other programs, on the same runtime too. It must not wait for the run that it is called
   in, nor for anything that waits for this run: ax_array_wait, ax_array_read on its results and ax_runtime_wait then never return.
   It must return: longjmp or an exception out of it is undefined.

   References. A callback may release the run's executable, its arguments and the runtime: the run holds all three until it is over.
   A callback's context may own the runtime's last reference, or that of an executable. The last reference to a runtime, released in
   a callback or by a context's `release` as a run ends, does not wait for runs in flight, as ax_runtime_release does elsewhere; the
   last run, array or executable ends the runtime. But a callback that is registered in a runtime (ax_runtime_register) is held by
   it, and must not own it: neither would ever go.

   Failing. A callback that returns a status other than AX_OK ends its run with that status, and a message that names the callback,
   the equation and the device. Calls that other devices have begun are finished; it is unspecified which other calls are made
   before the run ends. */
#ifndef AXLE_CALLBACK_H
#define AXLE_CALLBACK_H

#include "axle/host.h"
#include "axle/program.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

enum { AX_MESSAGE_BYTES = 2048 };

/* What a run has for its callbacks (ax_run_start_with): an object, and a number that says of which type it is. */
typedef struct ax_user_data {
  int64_t type;
  void *data;
} ax_user_data;

/* One call, as the function sees it. All is borrowed, and gone when it returns. */
typedef struct ax_callback_call {
  const char *name; /* of the callback */
  int64_t device;   /* number, on the program's mesh, of the device that calls; where several devices share the value, the first of
                       them */
  uint32_t in_count, out_count;
  const ax_host_array *in; /* views: dense, only to be read */
  ax_host_array *out;      /* views with dtype and shape set: `data` is to be filled in place; it is zeros before */
  char *message;           /* AX_MESSAGE_BYTES bytes, "" before: what to say when it fails */
  uint32_t user_data_count;
  const ax_user_data *user_data; /* the run's; none outside of runs that were given some */
} ax_callback_call;
/* Returns AX_OK, or the status with which the run fails: then this device stops and the others go on as far as they can. Of several
   failures the run's is the earliest in the program, and there the lowest device's. */
typedef ax_status (*ax_callback_function)(ax_callback_call *call, void *context);

/* A function, its context and a name. Reference-counted, immutable; retain and release from any thread. Programs, executables and
   runtimes that hold one retain it. */
typedef struct ax_callback ax_callback;
/* `release` (may be NULL) is called with the context on the thread that releases the last reference. The name is copied.
   Two callbacks are the same, in programs that are compared, when name, function and context are. `*out` is owned by the caller.
   AX_INVALID_ARGUMENT: no function; an empty name, or one longer than 255 bytes. `release` is not called then. */
AX_MUST_USE ax_status ax_callback_create(const char *name, ax_callback_function function, void *context,
                                         void (*release)(void *context), ax_callback **out);
ax_callback *ax_callback_retain(ax_callback *callback);
void ax_callback_release(ax_callback *callback);
const char *ax_callback_name(const ax_callback *callback); /* borrowed */

/* --- In a trace --- */

/* out[k], of out_types[k] (arrays; how they spread is not looked at): the function's results for `in`. The same operands must
   always give the same results: the result differs between devices only where an operand does. Batched, it is called for one
   element of the batch after the other; or, `vectorized`, once with all: operands and results have the batch dimension in front
   then, also operands that had none.
   There are no derivatives: ax_custom_jvp or ax_custom_vjp gives them. As jax.pure_callback, with vmap_method "sequential" or
   "broadcast_all".
   Errors (kept by the trace): no callback; no results; types that are no arrays'; operands that are unreduced. A derivative:
   AX_ABSENT. */
void ax_pure_callback(ax_callback *callback, bool vectorized, uint32_t in_count, const ax_value *in, uint32_t type_count,
                      const ax_type *out_types, uint32_t out_count, ax_value *out);
/* The same for a function with effects. The results differ between devices along all axes in scope. Batched, it is called for one
   element after the other; ordered, AX_ABSENT. In a branch or a loop whose predicate is batched: AX_ABSENT. As
   jax.experimental.io_callback, where ordered ones are for one device only. An error besides: ordered, where devices go
   different ways (as of a collective there). A checkpoint that it stands in has no derivatives (AX_ABSENT): it would call again. */
void ax_io_callback(ax_callback *callback, bool ordered, uint32_t in_count, const ax_value *in, uint32_t type_count,
                    const ax_type *out_types, uint32_t out_count, ax_value *out);
/* Gives text to ax_runtime_options.print: `format` with each {} replaced by the next value, and a newline.
   ax_debug_print("x={:.3f}", false, AX_VALUES(x)). A field is {} or {:[width][.precision][type]}, type one of e f g (floats), d x
   (integers); {{ and }} are braces. Arrays are nested lists; of dimensions longer than 6 in arrays of more than 1000 elements the
   first three and the last three are shown. Values are numbers' shortest text that reads back. A runtime that has no `print` leaves
   debug_print out of what it compiles. Derivatives pass it by: it prints in the forward part, and transposes have none. In a checkpoint
   it prints again where that is done again, ordered or not. Batched, as ax_io_callback. As jax.debug.print.
   Errors (kept by the trace): a format that is none, with a place; other than as many fields as values; a type that the value's
   dtype has not. */
void ax_debug_print(const char *format, bool ordered, uint32_t count, const ax_value *values);

#pragma GCC visibility pop

#ifndef __cplusplus /* lists, with their counts (axle/type.h) */
#define ax_pure_callback(callback, vectorized, in, out_types, out) \
  AX_LINED_VOID(pure_callback, callback, vectorized, AX_EXACTLY(in), AX_EXACTLY(out_types), AX_COUNTED(ax_value, out))
#define ax_io_callback(callback, ordered, in, out_types, out) \
  AX_LINED_VOID(io_callback, callback, ordered, AX_EXACTLY(in), AX_EXACTLY(out_types), AX_COUNTED(ax_value, out))
#define ax_debug_print(format, ordered, values) AX_LINED_VOID(debug_print, format, ordered, AX_EXACTLY(values))
#endif

#ifndef AXLE_NO_LINES /* axle/line.h */
#define ax_callback_create(...) AX_LINED_STATUS(callback_create, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
