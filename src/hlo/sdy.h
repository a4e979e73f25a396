/* What Shardy's attributes say: meshes, and how arrays lie on them.

     sdy.mesh @mesh = <["data"=4, "model"=2], device_ids=[0, 2, 4, 6, 1, 3, 5, 7]>
     <@mesh, [{"data", ?}, {"model":(1)2}p1, {?}], replicated={..}, unreduced={..}>

   Axes that Axle cannot name get other characters: "my axis" is my_axis. "model":(1)2 is part of an axis, the 2 behind the first 1:
   such a layout is over a mesh of its own, in which the axis is cut up. A layout whose dimensions have several priorities gets the
   first of them; an open dimension with axes ({"data", ?}) is as a closed one, an open one without them as `?`. */
#ifndef AX_HLO_SDY_H
#define AX_HLO_SDY_H

#include "hlo/module.h"

typedef struct ax_sdy_mesh {
  ax_mesh mesh;
  uint32_t id_count;
  const int64_t *ids; /* of the devices at the mesh's places; NULL: 0 and on */
} ax_sdy_mesh;

typedef struct ax_sdy_named_mesh {
  ax_hlo_slice name;
  ax_sdy_mesh mesh;
} ax_sdy_named_mesh;

typedef struct ax_sdy_sharding {
  ax_sdy_mesh mesh; /* without axes: nothing is said of the array */
  ax_mesh whole;    /* before axes of it were cut up */
  ax_spec spec;     /* over mesh.mesh */
  bool any_axes;    /* in spec */
  ax_axis_set unreduced; /* along these the array is the sum of what devices have */
} ax_sdy_sharding;

/* <[..], ..> of an operation sdy.mesh, also behind #sdy.mesh or mesh. The ids are in `arena`. AX_PARSE_ERROR says what is
   expected where, AX_INVALID_ARGUMENT that the mesh is unsound. */
AX_MUST_USE ax_status ax_sdy_read_mesh(ax_hlo_slice text, ax_arena *arena, ax_sdy_mesh *out);
/* One sharding, also behind #sdy.sharding. Its mesh is one of those given, or stands in it. AX_ABSENT: parts of axes that do not
   fit together. */
AX_MUST_USE ax_status ax_sdy_read_sharding(ax_hlo_slice text, const ax_sdy_named_mesh *meshes, uint32_t count, ax_arena *arena,
                                           ax_sdy_sharding *out);
/* The items of [<..>, <..>], also behind #sdy.sharding_per_value<: *at is where the next one begins, and where to go on
   afterwards; NULL at first. False: there is none left. */
bool ax_sdy_next(ax_hlo_slice list, const char **at, ax_hlo_slice *item);
/* {"data", "model"}, also behind #sdy<manual_axes: which of the mesh's axes they are. */
AX_MUST_USE ax_status ax_sdy_read_axes(ax_hlo_slice text, const ax_sdy_mesh *mesh, ax_axis_set *out);

#endif
