/* Common refinements: both meshes are walked from their major axes on, and the rests of the two current axes are cut by the
   smaller. */
#include "mesh/refine.h"

/* An axis of a mesh under way: how much of it has not been given to axes of the refinement yet. */
typedef struct cursor {
  const ax_mesh *mesh;
  uint32_t axis;
  int64_t left;
} cursor;

static void load(cursor *c) { c->left = c->axis < c->mesh->count ? c->mesh->axis[c->axis].size : 0; }

/* Gives `size` of the axis away; 0: it is at its end. */
static void take(cursor *c, int64_t size) {
  c->left /= size;
  if (c->left > 1) return;
  c->axis++;
  load(c);
}

bool ax_mesh_refine(const ax_mesh *a, const ax_mesh *b, ax_mesh *out) {
  cursor x = {.mesh = a}, y = {.mesh = b};
  *out = (ax_mesh){0};
  for (load(&x), load(&y); x.left > 0 || y.left > 0;) {
    bool x_one = x.left == 1, y_one = y.left == 1; /* these stand alone, or meet another */
    int64_t size = x_one || y_one ? 1 : x.left < y.left ? x.left : y.left;
    if (size == 0 || x.left % size != 0 || y.left % size != 0 || out->count == AX_MAX_AXES) return false;
    out->axis[out->count++].size = size;
    if (x_one || size > 1) take(&x, size);
    if (y_one || size > 1) take(&y, size);
  }
  return true;
}

void ax_mesh_runs(const ax_mesh *refined, uint32_t first, const ax_mesh *mesh, ax_axis_list *runs) {
  uint32_t next = first;
  for (uint32_t i = 0; i < mesh->count; i++) {
    int64_t left = mesh->axis[i].size;
    runs[i].count = 0;
    do { /* an axis of size one that another mesh has is no part of this axis */
      int64_t size = refined->axis[next].size;
      if (size > 1 || mesh->axis[i].size == 1) runs[i].axis[runs[i].count++] = (uint8_t)next;
      left /= size;
      next++;
    } while (left > 1);
  }
}
