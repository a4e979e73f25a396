/* The inside of ax_sharding: a mesh, a spec, and the ids of the devices at the mesh's places.

     mesh (x=2, y=2), P(y), devices 3 1 2 0:     place    0  1  2  3
                                                 id       3  1  2  0
                                                 block    0  1  0  1      so device 3 has block 0, and device 1 block 1 */
#ifndef AX_MESH_ASSIGNMENT_H
#define AX_MESH_ASSIGNMENT_H

#include <stdatomic.h>

#include "axle/sharding.h"
#include "ir/program.h"

typedef struct ax_stand {
  int64_t id, place;
} ax_stand;

struct ax_sharding {
  atomic_uint references;
  ax_mesh mesh;
  ax_spec spec;
  int64_t places;
  uint32_t rank;  /* rank of the arrays it lays out; AX_NONE: any that the spec fits */
  int64_t *ids;   /* by place; NULL: each place's own number */
  ax_stand *by_id; /* sorted; NULL if ids is NULL */
};

/* A sharding over devices 0, 1, .. in order. */
AX_MUST_USE ax_status ax_sharding_create(const ax_mesh *mesh, const ax_spec *spec, ax_sharding **out);
/* A sharding over the devices of another sharding, in its order; there must be as many as the mesh has places. */
AX_MUST_USE ax_status ax_sharding_create_on(const ax_mesh *mesh, const ax_spec *spec, const ax_sharding *devices,
                                            ax_sharding **out);
/* Gives the whole type without axis sets, and the block's type. AX_INVALID_ARGUMENT: see ax_sharding_block. */
AX_MUST_USE ax_status ax_sharding_types(const ax_sharding *sharding, const ax_type *whole, ax_type *sound, ax_type *block);
/* Draws an array's blocks and the devices that hold them; ids: by place; NULL: the places' numbers. */
void ax_draw_layout(ax_text *text, const ax_type *whole, const ax_type *block, const ax_spec *spec, const ax_mesh *mesh,
                    const int64_t *ids);

#endif
