/* A machine: the speed of a device, and the links between devices.

     torus     each device has a link each way along every dimension
     switch    each device has a link to the switch and one from it; any two ports, at full speed
     nodes     switches of `per_node` devices each, and a network between them, with links of the devices or of their nodes */
#ifndef AX_SIM_CLUSTER_H
#define AX_SIM_CLUSTER_H

#include "axle/simulate.h"
#include "ir/program.h"

enum { AX_MAX_SIDES = 6, AX_MAX_CACHES = 4 };

typedef struct ax_sim_cache { /* of a device */
  double bytes, bandwidth; /* bandwidth: bytes a second */
} ax_sim_cache;

typedef struct ax_sim_wire { /* a kind of link */
  double
      latency; /* seconds from the last byte's leaving to its arriving: for each hop of a torus, from device to device otherwise */
  double bandwidth; /* bytes a second */
  double overhead;  /* seconds of the sender for each message */
  /* Of a network. A message of at most `short_bytes` goes at once, its bytes at `short_bandwidth`; a longer one takes `handshake` besides.
     0: all messages are alike */
  double short_bytes, short_bandwidth, handshake;
  /* Of a switch that adds up what its devices send, or gives each of them what all send: bytes a second that it takes of each device, or
     gives to each. 0: it does not; sums by dtype */
  double reduces[AX_DTYPE_COUNT], multicast;
  int64_t radix; /* so many are at one such switch, and so many switches at the next; 0: all are at one */
} ax_sim_wire;

typedef enum ax_sim_topology { AX_TOPOLOGY_NONE, AX_TOPOLOGY_TORUS, AX_TOPOLOGY_SWITCH, AX_TOPOLOGY_NODES } ax_sim_topology;

struct ax_cluster {
  char *text; /* its description */
  char name[64];
  double flops[AX_DTYPE_COUNT]; /* operations a second; 0: not given */
  double memory; /* bytes a second */
  double write;  /* the same of bytes that are written; 0: as they are read */
  uint32_t cache_count;
  ax_sim_cache caches[AX_MAX_CACHES]; /* from the smallest on */
  double core; /* devices are cores of a processor: how many times as long the library's own code takes there as on the core that times
                  of plans were fitted on; 0: they are not, and all that computes takes its flops */
  double quotients; /* the same of quotients and roots; 0: as `core` */
  bool one_memory;  /* devices share a memory: those of `core`, and of processes (ax_cluster_over) */
  int64_t cores; /* of a device, which share an operation of several parts; its figures are of all of them. 0: one */
  double share;  /* seconds that sharing one takes */
  double core_memory; /* bytes a second of memory that one of the cores gets to alone; 0: its part of `memory` */
  double capacity; /* bytes of memory; 0: not given */
  double failures, restart, store; /* of a device: failures a second; seconds until it goes on; bytes a second to where checkpoints are
                                      kept. 0: not given */
  double watts, price; /* of a device; price: of an hour, in whatever currency; 0: not given */
  double scratch; /* the same of a core's own memory; 0: no limit */
  double launch; /* seconds before an operation begins */
  ax_sim_topology topology;
  uint32_t rank; /* of a torus */
  int64_t side[AX_MAX_SIDES]; /* side[0] 0: chosen to fit the mesh, ... */
  bool cube;                  /* ... or as near to each other as the number of devices allows */
  int64_t ports;    /* of a switch, or nodes of a network; 0: no limit */
  int64_t per_node;
  bool by_node;     /* the network's links are the nodes', not the devices' */
  ax_sim_wire wire, network; /* of the torus, the switch or the nodes' switches; between nodes */
};

/* The machine of a mesh that is spread over processes: a node each, with speeds that are given (AXLE_MACHINE) or assumed. Processes on
   several hosts are taken to be on a host each. `*out` is owned by the caller. AX_INVALID_ARGUMENT: the processes do not have equally many
   of the devices, in blocks. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_cluster_over(const ax_process_layout *processes, int64_t devices, ax_cluster **out);

/* Says whether it is the machine that this process runs on; plans of others are made for caches that are assumed. */
bool ax_cluster_is_here(const ax_cluster *machine);
/* Operations on elements a second. A dtype without a figure has f32's, or the least of all figures. */
double ax_cluster_flops(const ax_cluster *machine, ax_dtype dtype);

#endif
