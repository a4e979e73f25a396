/* Arrays of a module of which each device has a part of its own: a caller that keeps one array for each device (src/pjrt) takes and
   gives these parts. Two kinds of values have them:

     summed    the layout says unreduced = {"y"}: the array is the sum of what devices have along y
     by device a manual computation gives a value that differs along axes which its layout does not name, or has given it in another
               module, of which it is an argument: the array is the first device's, and the others have values that the module's text
               does not show

   Such a value has, beside itself, an array of all parts, with a new first dimension along these axes: [n, ..], laid out P((y), ..).
   Parts go from the entry function's arguments into manual computations, and out of these to its results, as they are. All other
   operations see the array. A sum that is made outside of manual computations has it as the first part, and zeros as the others. */
#ifndef AX_BRIDGE_PARTS_H
#define AX_BRIDGE_PARTS_H

#include "bridge/devices.h"
#include "hlo/sdy.h"
#include "ir/text.h"

typedef struct ax_hlo_parts {
  ax_value of, stacked; /* of the trace of the entry function */
  ax_mesh mesh;
  ax_axis_set axes; /* of `mesh` */
  ax_spec spec;     /* of the stacked array */
  bool summed;
  struct ax_hlo_parts *next;
} ax_hlo_parts;

/* Whether the trace in progress is that of an entry function whose parts are wanted. */
bool ax_hlo_parts_here(const ax_hlo_devices *devices);
/* NULL: the value has no parts. */
const ax_hlo_parts *ax_hlo_parts_of(const ax_hlo_devices *devices, ax_value x);
/* The parts that a manual computation may take as they are, by a layout over this mesh; NULL: it takes the array. */
const ax_hlo_parts *ax_hlo_parts_for(const ax_hlo_devices *devices, ax_value x, const ax_sdy_sharding *layout, ax_axis_set by_hand);
AX_MUST_USE ax_status ax_hlo_parts_note(ax_hlo_devices *devices, const ax_hlo_parts *parts);
/* Passes on the parts of a value to the same one under another layout, if they are parts by that, too. */
AX_MUST_USE ax_status ax_hlo_parts_carry(ax_hlo_devices *devices, ax_value from, const ax_sdy_sharding *layout, ax_value to);
/* Makes the spec of an array that of its parts along these axes. */
ax_spec ax_hlo_parts_spec(ax_axis_set axes, const ax_spec *spec);
/* Makes the type of an array that of its parts. AX_ABSENT: an array of the greatest rank. */
AX_MUST_USE ax_status ax_hlo_parts_type(const ax_mesh *mesh, ax_axis_set axes, ax_type *type);
/* The layout among the attributes, if it is Shardy's; *said: whether there is one. */
AX_MUST_USE ax_status ax_hlo_layout_of(const ax_hlo_devices *devices, const ax_hlo_attribute *attributes, uint32_t count,
                                       ax_sdy_sharding *out, bool *said);
/* How devices have an argument of the entry function: as its layout says, or, `by_device`, each its own where the layout shows one. If it
   comes as parts its type becomes theirs. */
AX_MUST_USE ax_status ax_hlo_parts_argument(const ax_hlo_devices *devices, const ax_hlo_attribute *attributes, uint32_t count,
                                            bool by_device, ax_type *type, ax_having *having);
/* The array of an argument's parts; notes them. */
AX_MUST_USE ax_status ax_hlo_parts_take(ax_hlo_devices *devices, const ax_hlo_attribute *attributes, uint32_t count, ax_having having,
                                        ax_value *x);
/* Makes a result of the entry function its parts, if it has any. */
AX_MUST_USE ax_status ax_hlo_parts_give(const ax_hlo_devices *devices, const ax_hlo_attribute *attributes, uint32_t count, ax_value *x,
                                        ax_having *having);

#endif
