/* The primitives' records by name, for rules that build equations of other primitives. */
#ifndef AX_PRIM_PRIMS_H
#define AX_PRIM_PRIMS_H

#include "ir/equation.h"

#define AX_PRIM(name) extern const ax_prim ax_prim_##name;
#include "prim/prims.def"
#undef AX_PRIM

#endif
