#include "machine/subnormals.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

bool ax_subnormals_find(const char *word, ax_subnormals *out) {
  if (strcmp(word, "keep") == 0) *out = AX_SUBNORMALS_KEEP;
  else if (strcmp(word, "flush") == 0) *out = AX_SUBNORMALS_FLUSH;
  else return false;
  return true;
}

ax_status ax_subnormals_flush(ax_subnormals asked, bool *flush) {
  const char *said = asked == AX_SUBNORMALS_DEFAULT ? getenv("AXLE_SUBNORMALS") : NULL;
  if ((unsigned)asked > AX_SUBNORMALS_FLUSH) return ax_error(AX_INVALID_ARGUMENT, "subnormals is %d; it is keep or flush", (int)asked);
  if (said != NULL && said[0] != '\0' && !ax_subnormals_find(said, &asked))
    return ax_error(AX_INVALID_ARGUMENT, "AXLE_SUBNORMALS is \"%s\"; it is keep or flush", said);
  *flush = asked != AX_SUBNORMALS_KEEP;
  return AX_OK;
}
