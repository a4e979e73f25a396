/* Results whose memory may hold temporaries before they are written; for memory.c. */
#ifndef AX_ASSEMBLE_LODGE_H
#define AX_ASSEMBLE_LODGE_H

#include "assemble/assembly.h"
#include "assemble/pack.h"

enum { AX_HOST_UNIT = 64 }; /* bytes: places in results are counted in these, as all of memory is */

typedef struct ax_hosts {
  uint32_t count;
  uint32_t *allocation; /* by host: the result's */
  ax_pack_place *place;
} ax_hosts;
/* lives: by allocation. The lists are the arena's. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_list_hosts(const ax_assembly *assembly, ax_arena *arena, const ax_lifetime *lives, ax_hosts *out);

#endif
