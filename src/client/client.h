/* A plugin of PJRT's C interface as its caller sees it: the library, one client of it, programs that it has compiled, and arrays on its
   devices. The room above arrays knows nothing of them: here a buffer is one device's part, and a run has lists of buffers.

   All functions may be called from any thread. Errors of the plugin become statuses that have its message (status.c). */
#ifndef AX_CLIENT_CLIENT_H
#define AX_CLIENT_CLIENT_H

#include <pthread.h>
#include <stdatomic.h>

#include "axle/type.h"
#include "base/base.h"
#include "client/api.h"

/* The least minor version of the interface whose structs are as described here. */
enum { AX_CLIENT_LEAST_MINOR = 54 };

typedef struct ax_client {
  const ax_pjrt_api *api; /* the plugin's, which stays open until the process ends */
  ax_pjrt_client *client;
  ax_pjrt_device *const *devices; /* those of this process */
  uint32_t device_count;
  char *overrides;        /* options for the compiler, "NAME=VALUE", each with a NUL behind it; then an empty one */
  char version[16];       /* of VHLO, in which modules are written for it; "": it has said none, so they are written as text */
  pthread_mutex_t launch; /* held while a run is handed over: all devices get the runs of several threads in one order */
  int launches;           /* runs so far, whose numbers tell them apart; guarded by `launch` */
} ax_client;

/* Opens the plugin and makes a client of it. options: "NAME=VALUE" with spaces between them; those whose names begin with xla_ go to its
   compiler, the others to the client. NULL: none. The path is as dlopen takes it.
   AX_UNAVAILABLE: no such file, not a plugin, another version of the interface, or the client did not start; the message has the
   plugin's. AX_INVALID_ARGUMENT: options of another form; or as the plugin says. */
AX_MUST_USE ax_status ax_client_create(const char *path, const char *options, ax_client **out);
void ax_client_destroy(ax_client *client); /* no buffers and programs of it are left; NULL: nothing */

/* Adds what the client is: its platform, the version, the interface's version, and its devices, a line each. */
AX_MUST_USE ax_status ax_client_describe(const ax_client *client, ax_text *text);

/* Says whether the plugin's platform has this name: "axle" is Axle's own. */
bool ax_client_is(const ax_client *client, const char *platform);

/* --- plugin.c --- */

#define AX_CLIENT_NAME(name, known_as) static const char ax_client_name_##name[] AX_UNUSED = known_as;
AX_PJRT_FUNCTIONS(AX_CLIENT_NAME)
#undef AX_CLIENT_NAME
/* Whether the plugin's table has the function: a table may be older and shorter. */
#define AX_CLIENT_HAS(api, name) (AX_PJRT_HAS(api, name) && (api)->name != NULL)
/* Calls a function of the table; a status. */
#define AX_CLIENT_CALL(api_, name, args)                                                          \
  (AX_CLIENT_HAS(api_, name) ? ax_client_status(api_, (api_)->name(args), ax_client_name_##name) \
                             : ax_client_lacks(ax_client_name_##name))
AX_MUST_USE ax_status ax_client_lacks(const char *known_as); /* always AX_ABSENT */

/* --- status.c --- */

/* The status of the error, which goes, with its message; AX_OK for NULL. `who`: PJRT's name of what failed. */
AX_MUST_USE ax_status ax_client_status(const ax_pjrt_api *api, ax_pjrt_error *error, const char *who);
/* Waits for the event, which goes; what failed is its status. NULL: there is nothing to wait for. */
AX_MUST_USE ax_status ax_client_await(const ax_client *client, ax_pjrt_event *event, const char *who);
/* Waits for all of them. status: what failed before, which counts, with its message; else the first that fails does. */
AX_MUST_USE ax_status ax_client_await_all(const ax_client *client, ax_pjrt_event *const *events, uint32_t count, const char *who,
                                          ax_status status);

/* --- buffers.c --- */

/* What devices have of an array: each place of its mesh a buffer of its own, on the device of the place's number. */
typedef struct ax_buffers {
  atomic_uint references;
  const ax_client *client; /* borrowed */
  uint32_t count;
  ax_pjrt_buffer *buffer[]; /* NULL: given to a run, or not made yet */
} ax_buffers;
/* Room for buffers, all NULL. */
AX_MUST_USE ax_status ax_buffers_create(const ax_client *client, uint32_t count, ax_buffers **out);
ax_buffers *ax_buffers_retain(ax_buffers *buffers);
void ax_buffers_release(ax_buffers *buffers); /* NULL: nothing */
bool ax_buffers_shared(const ax_buffers *buffers); /* there are other references */

/* Copies a dense row-major array of this type, which has no keys, to each device: data[place]. It is read until the call returns.
   AX_ABSENT: PJRT has no such elements. */
AX_MUST_USE ax_status ax_buffers_fill(ax_buffers *buffers, const ax_type *type, unsigned char *const *data);
/* Copies the arrays of some devices back, dense and row-major: that of place[i] to data[i], `bytes` bytes each. Waits. */
AX_MUST_USE ax_status ax_buffers_read(const ax_buffers *buffers, uint32_t rank, uint32_t count, const uint32_t *place,
                                      unsigned char *const *data, size_t bytes);

/* --- programs.c --- */

typedef struct ax_client_program {
  const ax_client *client; /* borrowed */
  ax_pjrt_loaded_executable *loaded;
  uint32_t devices, in_count, out_count;
} ax_client_program;
typedef struct ax_client_shape {
  uint32_t devices, in_count, out_count; /* the first devices; arguments and results of the module */
  bool whole; /* it is of all devices together, and Shardy's partitioner lays it out; else it is each device's */
} ax_client_shape;
/* Compiles a module, in a form that MLIR reads. AX_INVALID_ARGUMENT: fewer devices; or what the plugin says of the module. */
AX_MUST_USE ax_status ax_client_compile(ax_client *client, const char *module, size_t bytes, const ax_client_shape *shape,
                                        ax_client_program **out);
void ax_client_program_destroy(ax_client_program *program); /* NULL: nothing */
typedef struct ax_client_going { /* a run that was handed over */
  const ax_client_program *program;
  ax_pjrt_event **events; /* by device: when its part is over */
  void *memory;
} ax_client_going;
/* Hands a run over. in: by argument; out: by result, created here and the caller's, all NULL on failure. They may be arguments of other
   runs at once: the devices do one after the other. given: by argument, that its buffers may become results' and are gone afterwards. */
AX_MUST_USE ax_status ax_client_launch(const ax_client_program *program, ax_buffers *const *in, const bool *given, ax_buffers **out,
                                       ax_client_going *going);
bool ax_client_is_over(const ax_client_going *going); /* false too where the plugin does not say */
/* Waits until it is over, once: its status. Nothing was handed over where `going` is all zero. */
AX_MUST_USE ax_status ax_client_finish(ax_client_going *going);

/* --- options.c --- */

/* XLA's CompileOptionsProto for one replica on `devices` partitions. shardy: its partitioner is on. *bytes: ax_free. */
AX_MUST_USE ax_status ax_client_options(const ax_client *client, uint32_t devices, const int64_t *ids, bool shardy, char **bytes,
                                        size_t *count);
/* Takes "NAME=VALUE NAME=VALUE" apart: NULs instead of spaces, in memory of its own. *out: ax_free; *names: how many. */
AX_MUST_USE ax_status ax_client_words(const char *options, char **out, uint32_t *names);

#endif
