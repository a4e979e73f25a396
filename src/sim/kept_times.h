/* What collectives take alone on a machine, kept from program to program: a search lays one program over one mesh in many ways, and most
   collectives of two of them are the same. Any thread. */
#ifndef AX_SIM_KEPT_TIMES_H
#define AX_SIM_KEPT_TIMES_H

#include "sim/procedure.h"

typedef struct ax_kept_times ax_kept_times;

AX_MUST_USE ax_status ax_kept_times_create(ax_kept_times **out);
void ax_kept_times_destroy(ax_kept_times *times); /* NULL: nothing */
/* The time of a collective in a place; all places are of one machine. False: it is not kept. Messages by pairs (PERMUTE) never are. */
bool ax_kept_times_find(ax_kept_times *times, const ax_sim_procedure *procedure, const ax_sim_place *place, ax_sim_alone *out);
/* Keeps it, as long as there is memory and there are not too many. */
void ax_kept_times_add(ax_kept_times *times, const ax_sim_procedure *procedure, const ax_sim_place *place, const ax_sim_alone *alone);

#endif
