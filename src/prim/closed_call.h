/* Calls of a body: what closed_call and checkpoint share. */
#ifndef AX_PRIM_CLOSED_CALL_H
#define AX_PRIM_CLOSED_CALL_H

#include "prim/rebuild.h"

typedef struct ax_closed_call_params {
  ax_program *body;
} ax_closed_call_params;

#endif
