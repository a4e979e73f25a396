/* Two meshes of the same devices as one: their common refinement. Each axis of the two is a run of consecutive axes of the
   refinement.

     a=4, b=2     and   c=2, d=4        number the same eight devices, row-major
     r=2, s=2, t=2                      is the coarsest mesh that both are made of: a is r then s, b is t, c is r, d is s then t

   Axes can be cut where the product of the sizes before is the same; 3x2 and 2x3 have no common refinement. Axes of size one stand
   between others and are their own. */
#ifndef AX_MESH_REFINE_H
#define AX_MESH_REFINE_H

#include "ir/program.h"

/* Axes of a mesh, in order, major first. */
typedef struct ax_axis_list {
  uint32_t count;
  uint8_t axis[AX_MAX_AXES];
} ax_axis_list;

/* Finds the sizes of the coarsest common refinement; its names are empty. False: it would have more than AX_MAX_AXES axes, or there
   is none. */
bool ax_mesh_refine(const ax_mesh *a, const ax_mesh *b, ax_mesh *out);
/* Finds the axes of `refined`, counted from its axis `first`, that make up each axis of `mesh`; `refined` must be a refinement of
   `mesh`. */
void ax_mesh_runs(const ax_mesh *refined, uint32_t first, const ax_mesh *mesh, ax_axis_list *runs);

#endif
