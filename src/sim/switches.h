/* Collectives in switches: of NVSwitch and of InfiniBand's Quantum switches it is called SHARP.

   A switch adds up what its members send it while it comes, and sends each of them the sum, or its part of it; or it gives all of them
   what each has sent. So an all-reduce of B bytes takes B bytes to the switch and B bytes back, at the same time, where a ring of n takes
   2 (n-1)/n B either way. Nothing moves before all members are there. Then it is one message that occupies the links of all of them at
   once, as any message occupies those of its way. Where one switch has fewer ports than there are members, switches make a tree, and the
   message has its latency once for each level.

   Members in several nodes do it in turn: their switches scatter the sum over the members of a node; each of these adds its part with its
   like in the other nodes, in the switches between nodes; and the switches of nodes gather. What switches at one level do not do, or
   do later than doubling would where nothing else goes, is done by doubling (procedure.c):

     inside     doubling, or switch      B bytes to the switch, B/m back
     between    doubling, or switch      B/m to the switch and back
     inside     doubling, or multicast   B/m to the switch, B back */
#ifndef AX_SIM_SWITCHES_H
#define AX_SIM_SWITCHES_H

#include "sim/procedure.h"

/* Notes in a procedure what a machine's switches do for values of this dtype, which are summed, or not combined. devices: of the mesh. */
void ax_sim_switches_note(const ax_cluster *machine, int64_t devices, ax_dtype dtype, bool sums, ax_sim_procedure *procedure);
/* Makes the phases. None: the switches do not do it, or members are not in whole parts of nodes. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_sim_switch_make(const ax_sim_procedure *procedure, ax_sim_chain *chain);

/* Whether members of a phase of SWITCH differ in their values of a cycle. */
bool ax_sim_switch_has(const ax_sim_procedure *procedure, const ax_sim_phase *phase, const ax_sim_cycle *cycle);
/* Adds the links of a device, with the bytes that they could carry in that time. */
AX_MUST_USE ax_status ax_sim_switch_route(const ax_sim_place *place, const ax_sim_phase *phase, int64_t device, ax_sim_route *route);
/* Puts the images of all members that are at the switch with a device behind those that are in the list, in ascending order, each once. */
AX_MUST_USE ax_status ax_sim_switch_images(const ax_sim_procedure *procedure, const ax_sim_phase *phase, const ax_sim_place *place,
                                           int64_t device, uint32_t **images, uint32_t *count, uint32_t *capacity);

#endif
