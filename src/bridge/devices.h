/* What a module says of devices: how many it is for, its meshes, how arrays lie on them; and modules that are what each device
   runs. */
#ifndef AX_BRIDGE_DEVICES_H
#define AX_BRIDGE_DEVICES_H

#include "prim/hlo_groups.h"

/* An operation of StableHLO's own tests: functions on a grid of devices, inside a module for one. */
#define AX_HLO_RUN_PARALLEL "interpreter.run_parallel"

/* Everything in `out` is in the arena or the module. Counts that the module does not say are as many as its groups need.
   AX_INVALID_ARGUMENT: a mesh that is unsound, no devices. AX_ABSENT: more than AX_HLO_MOST_DEVICES. */
AX_MUST_USE ax_status ax_hlo_find_devices(const ax_hlo_module *module, ax_arena *arena, ax_hlo_devices *out);

/* Lays out value number `index` of those that the attributes are about, as sdy.sharding or mhlo.sharding among them says; without
   these, and where all axes are taken by hand already, it stays as it is. */
AX_MUST_USE ax_status ax_hlo_lay_out_as(ax_hlo_devices *devices, const ax_hlo_attribute *attributes, uint32_t count,
                                        uint32_t index, ax_value *x);
/* The same by the text of a sharding of sdy. */
AX_MUST_USE ax_status ax_hlo_lay_out_by(ax_hlo_devices *devices, ax_hlo_slice text, ax_value *x);

/* A module that is what each device runs, as one program: its arrays are those of all devices, stacked along a new first dimension,
   replica by replica and in each partition by partition. On one device nothing is stacked. */
typedef struct ax_hlo_each {
  ax_hlo_devices *devices;
  ax_fn function; /* what each device runs */
  ax_mesh mesh;
} ax_hlo_each;
ax_hlo_each ax_hlo_each_of(ax_hlo_devices *devices, ax_fn function);
/* The function on all devices' arrays, good as long as *each. */
ax_fn ax_hlo_each_function(ax_hlo_each *each);
/* Makes types of one device's arrays those of all devices. AX_ABSENT: an array of the greatest rank. */
AX_MUST_USE ax_status ax_hlo_each_types(const ax_hlo_each *each, uint32_t count, ax_type *types);

#endif
