/* The memory of an array: an address for each of its blocks. array.h says who owns it; a run only needs the addresses. */
#ifndef AX_RUN_PARTS_H
#define AX_RUN_PARTS_H

#include <stdatomic.h>

#include "axle/exec.h"

typedef struct ax_parts {
  atomic_uint references;
  ax_runtime *runtime;     /* `memory` is from its pool; held by the arrays and runs that hold the parts */
  void *memory;            /* of the parts that were allocated together; NULL: none */
  size_t bytes;            /* of `memory` */
  struct ax_parts *source; /* retained: parts in whose memory some of these lie; NULL */
  ax_part *lent;           /* by part, if the user owns them; NULL */
  bool read_only;          /* no run may write into them, whichever array has them */
  struct ax_buffers *buffers; /* retained: what a plugin's devices have of them; NULL. Guarded by the runtime's lock `bringing` */
  _Atomic bool away;          /* only they have it: there are no addresses (ax_parts_bring) */
  uint32_t count;
  unsigned char *part[]; /* by block */
} ax_parts;

#endif
