/* The inside of sharding_constraint, for the partitioner. */
#ifndef AX_MESH_CONSTRAINT_H
#define AX_MESH_CONSTRAINT_H

#include "ir/program.h"

typedef struct ax_constraint_params {
  ax_mesh mesh;   /* its axes' `unchecked` is false */
  ax_specs specs; /* one; axis numbers are those of `mesh` */
} ax_constraint_params;

#endif
