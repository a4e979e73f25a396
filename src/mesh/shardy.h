/* Layouts in the words of Shardy, in modules of whole programs, which another partitioner lays out: a shard_map is a manual computation, and
   a constraint one of Shardy's. Such a module has one mesh, @mesh. */
#ifndef AX_MESH_SHARDY_H
#define AX_MESH_SHARDY_H

#include "hlo/hlo.h"

/* Adds #sdy.sharding<@mesh, [{"d"}, {}]> to the list: how a value of the type lies over the mesh. */
void ax_shardy_add_sharding(ax_hlo_attributes *to, const char *name, const ax_type *type, const ax_spec *spec, const ax_mesh *mesh);
/* Adds the operation that says what @mesh is. */
void ax_shardy_add_mesh(ax_hlo *hlo, const ax_mesh *mesh);
/* The hlo rules of shard_map and sharding_constraint. AX_ABSENT: a module of one device; another mesh than the module's, or axes that are
   automatic inside. */
ax_status ax_shard_map_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);
ax_status ax_constraint_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);

#endif
