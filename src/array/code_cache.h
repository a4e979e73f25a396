/* The folder in which a runtime keeps compiled code. */
#ifndef AX_ARRAY_CODE_CACHE_H
#define AX_ARRAY_CODE_CACHE_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the folder's path into path[0 .. bytes - 1]. `said` is ax_runtime_options.code_cache; if it is NULL, the environment
   variable AXLE_CODE_CACHE is read instead. Either is a path, or "user" for the folder `axle` in the user's cache folder (~/.cache,
   by the XDG specification), or "off".
   False: nothing is to be kept ("off", "", or neither is set), or the path does not fit. */
bool ax_code_cache_folder(const char *said, char *path, size_t bytes);

#endif
