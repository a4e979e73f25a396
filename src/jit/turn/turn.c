#include "jit/turn/turn.h"

#include <stdio.h>

#include "machine/features.h"

ax_turn_function *ax_turn_of(uint32_t bytes, bool streams) {
  const ax_turn_table *wide = ax_machine_has(AX_FEATURE_AVX2) && ax_turn_32[0][0] != NULL ? &ax_turn_32 : &ax_turn_16;
  return bytes == 0 || bytes > 8 || (bytes & (bytes - 1)) != 0 ? NULL : (*wide)[__builtin_ctz(bytes)][streams];
}

#define PREFIX "axle_turn"

void ax_turn_name(uint32_t bytes, bool streams, char name[static AX_TURN_NAME]) {
  snprintf(name, AX_TURN_NAME, PREFIX "_%u_%u", (unsigned)bytes, (unsigned)streams);
}

ax_turn_function *ax_turn_find(const char *name) {
  unsigned bytes, streams;
  char end;
  if (sscanf(name, PREFIX "_%1u_%1u%c", &bytes, &streams, &end) != 2 || streams > 1) return NULL;
  return ax_turn_of(bytes, streams);
}
