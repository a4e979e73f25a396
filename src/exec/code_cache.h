/* Which folder a runtime keeps compiled code in. */
#ifndef AX_EXEC_CODE_CACHE_H
#define AX_EXEC_CODE_CACHE_H

#include <stdbool.h>
#include <stddef.h>

/* The folder that ax_runtime_options.code_cache means, or AXLE_CODE_CACHE where that is NULL. False: none, or its path is longer
   than `bytes`. */
bool ax_code_cache_folder(const char *said, char *path, size_t bytes);

#endif
