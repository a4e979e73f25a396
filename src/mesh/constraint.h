/* The inside of sharding_constraint, for the partitioner. */
#ifndef AX_MESH_CONSTRAINT_H
#define AX_MESH_CONSTRAINT_H

#include "ir/program.h"

typedef struct ax_constraint_params {
  ax_mesh mesh;   /* without flags. All its axes are automatic around it, or none is there */
  ax_specs specs; /* one; axis numbers are those of `mesh` */
} ax_constraint_params;

/* Whether it says how a value lies over axes that are automatic in this environment. */
bool ax_constraint_is_around(const ax_constraint_params *params, const ax_mesh *axes);

#endif
