/* The folder in which a runtime keeps compiled code. */
#ifndef AX_ARRAY_CODE_CACHE_H
#define AX_ARRAY_CODE_CACHE_H

#include <stdbool.h>
#include <stddef.h>

/* Gives the folder that ax_runtime_options.code_cache names, or, if that is NULL, AXLE_CODE_CACHE. False: there is none, or its
   path is longer than `bytes`. */
bool ax_code_cache_folder(const char *said, char *path, size_t bytes);

#endif
