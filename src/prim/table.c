/* The table of primitives, from prims.def. It is small enough for a linear search. */
#include <string.h>

#include "ir/prim.h"
#include "prim/prims.h"

const ax_prim *const ax_prims[] = {
#define AX_PRIM(name) &ax_prim_##name,
#include "prim/prims.def"
#undef AX_PRIM
};
const uint32_t ax_prim_count = AX_COUNT(ax_prims);

const ax_prim *ax_prim_find(const char *name, size_t length) {
  for (uint32_t i = 0; i < ax_prim_count; i++)
    if (strlen(ax_prims[i]->name) == length && memcmp(ax_prims[i]->name, name, length) == 0) return ax_prims[i];
  return NULL;
}
