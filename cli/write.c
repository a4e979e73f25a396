/* Files that sub-commands write: pictures, timelines, modules. Arrays are written by axle/npy.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"

ax_status write_file(const char *path, const char *bytes, size_t count) {
  const bool standard = strcmp(path, "-") == 0;
  FILE *file = standard ? stdout : fopen(path, "wb");
  if (file == NULL) return ax_error(AX_IO_ERROR, "%s: %s", path, strerror(errno));
  bool written = fwrite(bytes, 1, count, file) == count;
  if (!standard) written = fclose(file) == 0 && written;
  return written ? AX_OK : ax_error(AX_IO_ERROR, "%s: %s", path, strerror(errno));
}
