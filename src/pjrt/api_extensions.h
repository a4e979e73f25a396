/* PJRT's interface: what a plugin may have besides, in a list of structs whose type says what they are. Included by pjrt/api.h. */
#ifndef AX_PJRT_API_EXTENSIONS_H
#define AX_PJRT_API_EXTENSIONS_H

#include "pjrt/api.h"

enum { AX_PJRT_SHARDINGS = 19 };

/* How the parameters or results lie over the devices: an OpSharding each, as bytes. items NULL: it is not known. */
AX_PJRT_ARGS(executable_shardings, ax_pjrt_executable *of; /* -> */ size_t count; const char *const *items; const size_t *lengths;);
typedef struct ax_pjrt_shardings {
  ax_pjrt_extension base;
  ax_pjrt_error *(*parameters)(ax_pjrt_executable_shardings_args *args);
  ax_pjrt_error *(*results)(ax_pjrt_executable_shardings_args *args);
} ax_pjrt_shardings;

#endif
