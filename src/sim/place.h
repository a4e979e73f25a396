/* A mesh laid over a machine: the links of each message, and the devices that are alike.

   A device's id is its place in the mesh, and has digits, major first: on a torus its coordinates; on a switch those of the mesh;
   with nodes those of the mesh again, cut where a node ends, so that some digits say which node it is and the others which of its
   devices. Adding to a digit, modulo its size, moves every device to one whose links look the same.

   Where all that is to be simulated looks the same after such a move by `fold`, devices whose digit is the same modulo `fold` do
   the same at the same time, and one stands for all of them: their *image*. So do their links. With fold = 1 everywhere one device
   is left, with fold = size all of them. A link of an image carries the messages that images send over it and over all links that
   it stands for:

     ring of 6, fold 2     0 > 1 > 2 > 3 > 4 > 5 >       a message from 0 to 3 goes over the links of 0, 1 and 2;
                           a   b   a   b   a   b         the link of a carries it twice, that of b once

   Routes on a torus go along one dimension after the other, the shorter way round, and half of a message either way where both are
   as long. Along a side of 2 there is one link each way. */
#ifndef AX_SIM_PLACE_H
#define AX_SIM_PLACE_H

#include "sim/cluster.h"

enum { AX_MAX_DIGITS = 2 * AX_MAX_AXES, AX_MAX_LINK_KINDS = 2 * AX_MAX_SIDES };

typedef struct ax_sim_digit {
  int64_t size, stride; /* of ids */
  int64_t fold;
} ax_sim_digit;

/* A part of a member's number, in a group along axes: size values, `stride` ids apart, which are `unit` apart in the digit. */
typedef struct ax_sim_cycle {
  int64_t size, stride, unit;
  uint32_t digit; /* AX_NONE: it is cut across digits, so that nothing is alike */
  uint32_t round; /* 1: its last value is as near to its first as any two that follow each other; otherwise 0 */
} ax_sim_cycle;
typedef struct ax_sim_group {
  int64_t members;
  uint32_t count;
  ax_sim_cycle cycle[AX_MAX_DIGITS]; /* major first, as members are numbered; none of size 1 */
  uint32_t winding; /* cycles that a ring from neighbour to neighbour winds through, as it does on a torus; 0: there is none */
  uint32_t wound[AX_MAX_DIGITS]; /* those cycles, major first */
} ax_sim_group;

typedef struct ax_sim_place {
  const ax_cluster *machine;
  const ax_mesh *mesh;
  int64_t devices; /* of the mesh: the machine's first */
  int64_t all;     /* that are there */
  bool foldable;   /* they are all of it, as far as is known, and all alike */
  const double *slow; /* by device: how many times as long it computes; NULL: all alike. Borrowed */
  uint32_t count;
  ax_sim_digit digit[AX_MAX_DIGITS];
  uint32_t rotation_count; /* groups of whose rings one member stands for all (rotation.h). Borrowed */
  const ax_sim_group *rotations[AX_MAX_SIDES / 2];
} ax_sim_place;

/* Nothing is folded. The mesh is borrowed. AX_INVALID_ARGUMENT: the machine has fewer devices. */
AX_MUST_USE ax_status ax_sim_place_make(const ax_cluster *machine, const ax_mesh *mesh, ax_sim_place *out);
/* Every digit by 1, as far as the machine is the same everywhere; nothing, where the mesh is a part of it. */
void ax_sim_place_fold(ax_sim_place *place);
int64_t ax_sim_place_images(
    const ax_sim_place *place); /* at least as many as there are devices of the mesh, where nothing is folded */
int64_t ax_sim_place_image(const ax_sim_place *place, int64_t device);
/* The device with the least id that has this image. */
int64_t ax_sim_place_device(const ax_sim_place *place, int64_t image);

/* Links are numbered from 0 on, by image. */
int64_t ax_sim_place_links(const ax_sim_place *place);
const ax_sim_wire *ax_sim_place_wire(const ax_sim_place *place, int64_t link);
/* Links by kind, for reports. */
uint32_t ax_sim_place_kinds(const ax_sim_place *place);
uint32_t ax_sim_place_kind(const ax_sim_place *place, int64_t link);
/* Name, bandwidth and how many there are, of those that devices of the mesh have. */
void ax_sim_place_describe(const ax_sim_place *place, uint32_t kind, ax_simulated_link *out);
/* "torus 16 x 16 x 16", "512 nodes of 8", "a switch". */
void ax_sim_place_topology(const ax_sim_place *place, ax_text *text);

/* --- Groups --- */

void ax_sim_group_make(const ax_sim_place *place, const ax_axes *names, ax_sim_group *out);
int64_t ax_sim_cycle_value(const ax_sim_cycle *cycle, int64_t device); /* its value there */
int64_t ax_sim_group_member(const ax_sim_group *group, int64_t device);
int64_t ax_sim_group_device(const ax_sim_group *group, int64_t device, int64_t member); /* that member of the device's group */
/* The next device of the winding ring, or the one before. It goes up and down: each cycle's values, in turn either way, for each of
   those of the cycles before it, as numbers of a reflected Gray code. So each step is one of one value in one cycle; the last one
   too, where the major cycle comes round and has an even size.

     2 cycles of 4 and 3:   00 01 02  12 11 10  20 21 22  32 31 30  and to 00 */
int64_t ax_sim_group_winding_next(const ax_sim_group *group, int64_t device, bool back);

/* Fold the place less, so that a cycle's values, or moves along a cycle by any number modulo its size, stay the same for all
   devices of an image. */
void ax_sim_place_keep_values(ax_sim_place *place, const ax_sim_cycle *cycle);
void ax_sim_place_keep_moves(ax_sim_place *place, const ax_sim_cycle *cycle);
/* .. so that steps of the winding ring stay the same. */
void ax_sim_place_keep_winding(ax_sim_place *place, const ax_sim_group *group);

/* --- Routes --- */

typedef struct ax_sim_hop {
  uint32_t link;
  double weight; /* how often */
} ax_sim_hop;
typedef struct ax_sim_route { /* zero to start; made anew by each call */
  double latency, overhead;
  ax_sim_hop *hops;
  uint32_t count, capacity;
} ax_sim_route;
/* The sender's overhead, and the route, of a message from one device to another. */
double ax_sim_place_overhead(const ax_sim_place *place, int64_t from, int64_t to);
/* What a message of so many bytes takes besides its latency and its links' carrying it: a handshake, or short bytes that are slower. */
double ax_sim_place_besides(const ax_sim_place *place, int64_t from, int64_t to, double bytes);
AX_MUST_USE ax_status ax_sim_route_find(const ax_sim_place *place, int64_t from, int64_t to, ax_sim_route *route);
/* Adds the links of a device to the switch of its node, or to the one between nodes, and back; each carries so many bytes. The route has
   the overhead and the latency of one message. */
AX_MUST_USE ax_status ax_sim_route_add_switch(const ax_sim_place *place, int64_t device, bool between, double bytes, double back,
                                              ax_sim_route *route);
void ax_sim_route_deinit(ax_sim_route *route);

#endif
