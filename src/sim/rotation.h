/* Rings that look the same from each of their members.

   A ring that winds through a torus (place.h) and comes back by one step uses one link of each member, the one to the next: so to move
   each member on by one along the ring changes nothing, though it is no move of the torus. It changes nothing of the whole simulation if
   rings through the same group are all that goes over the links of its dimensions. Then one member stands for all of a ring, as one
   device does for all that moves of the torus map to one another.

     4 x 3, to the next:   00 > 01 > 02 > 12 > 11 > 10 > 20 > 21 > 22 > 32 > 31 > 30 > 00 */
#ifndef AX_SIM_ROTATION_H
#define AX_SIM_ROTATION_H

#include "sim/work.h"

/* Notes in the place the groups of such rings: of all transfers and posts, as their procedures are now. */
void ax_sim_rotations_find(const ax_sim_work *work, ax_sim_place *place);
/* Whether one member of the procedure's ring stands for all. */
bool ax_sim_rotation_has(const ax_sim_place *place, const ax_sim_procedure *procedure);
/* Bytes on links of this kind, where one member stands for all of its ring: *all on all links of the kind that there are for one image,
   the mean, *most on one. used: by link of the images. False: members of no ring stand for one another there. */
bool ax_sim_rotation_spread(const ax_sim_place *place, uint32_t kind, const double *used, int64_t image, double *mean, double *most);

#endif
