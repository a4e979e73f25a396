/* The words for a folder. By default nothing is kept: a library must not write into a home directory unasked. */
#include "array/code_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_absolute(const char *path) { return path != NULL && path[0] == '/'; }

/* The folder for caches by the XDG base directory specification, which ignores paths that are not absolute. */
static int users_folder(char *path, size_t bytes) {
  const char *caches = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
  if (is_absolute(caches)) return snprintf(path, bytes, "%s/axle", caches);
  return is_absolute(home) ? snprintf(path, bytes, "%s/.cache/axle", home) : -1;
}

bool ax_code_cache_folder(const char *said, char *path, size_t bytes) {
  if (said == NULL) said = secure_getenv("AXLE_CODE_CACHE"); /* NULL for programs with more rights than their user */
  if (said == NULL || said[0] == '\0' || strcmp(said, "off") == 0) return false;
  const int length = strcmp(said, "user") == 0 ? users_folder(path, bytes) : snprintf(path, bytes, "%s", said);
  return length >= 0 && (size_t)length < bytes;
}
