/* Speeds that are measured for the command are kept, in the folder of its compiled code. */
#include <limits.h>
#include <stdlib.h>

#include "array/code_cache.h"
#include "cli.h"
#include "machine/machine.h"

const char *own_code_cache(void) { return getenv("AXLE_CODE_CACHE") == NULL ? "user" : NULL; }

void keep_speeds(void) {
  char folder[PATH_MAX];
  if (ax_code_cache_folder(own_code_cache(), folder, sizeof folder)) ax_machine_keep(folder);
}
