/* Status codes and the message of the last error.

   NULL in place of an object (a program, runtime, array, executable, sharding, npz): functions with a status say
   AX_INVALID_ARGUMENT, retain gives NULL, release does nothing, queries return 0, false or NULL. Every other pointer must point to
   something, unless its function says otherwise. */
#ifndef AXLE_STATUS_H
#define AXLE_STATUS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

#if defined(__GNUC__)
#define AX_MUST_USE __attribute__((warn_unused_result))
#define AX_PRINTF(format_index, first_argument) __attribute__((format(printf, format_index, first_argument)))
#define AX_UNUSED __attribute__((unused))
#else
#define AX_MUST_USE
#define AX_PRINTF(format_index, first_argument)
#define AX_UNUSED
#endif

typedef enum ax_status {
  AX_OK = 0,
  AX_INVALID_ARGUMENT, /* the caller's input is wrong: shapes, dtypes, axis names, specs, handles */
  AX_OUT_OF_MEMORY,    /* an allocation failed; nothing half-done stays behind. LLVM ends the process when it finds no memory, so
                          Axle first checks that the memory it usually needs is there */
  AX_ABSENT,           /* a rule or feature that does not exist (yet), named in the message */
  AX_PARSE_ERROR,      /* text that is not a program; the message has file, line, column and a caret */
  AX_IO_ERROR,         /* a file could not be opened, read or written, or is malformed */
  AX_DEADLOCK,         /* devices wait for a collective that others never reach; the message names the devices */
  AX_NOT_FINITE,       /* an equation of a run made a NaN or an infinity, and the run was compiled to look:
                          ax_compile_options.check_numerics */
  AX_UNAVAILABLE,      /* another process of the mesh is gone, or the library that processes talk by cannot be used; the message
                          names it */
  AX_INTERNAL          /* a defect of Axle's own */
} ax_status;

/* The message of the last failed call on this thread, "" if none. Owned by the thread; valid until its next failing call. */
const char *ax_message(void);

/* The name of a status: "AX_OK", ... Static. */
const char *ax_status_name(ax_status status);

/* Replaces malloc for everything Axle allocates itself. `allocate` returns NULL on failure; `align` is a power of two.
   Process-wide: set before the first other call, from one thread. NULL restores the default. */
typedef struct ax_allocator {
  void *(*allocate)(void *user, size_t bytes, size_t align);
  void (*release)(void *user, void *memory);
  void *user;
} ax_allocator;
void ax_set_allocator(const ax_allocator *allocator);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
