/* The devices that a collective of a module exchanges between, as named axes. Modules list them by number:

     replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]>     on (data=4, model=2): "data"
     replica_groups = dense<[[0, 1], [2, 3]]>                 on (i=4): "i {0,1} {2,3}"
     source_target_pairs = dense<[[0, 2], [1, 3]]>            on (data=4, model=2): "data", (0, 1)

   Groups that are the places along some axes become these axes; others become lists of members along as few axes as have them. */
#ifndef AX_PRIM_HLO_GROUPS_H
#define AX_PRIM_HLO_GROUPS_H

#include "hlo/read.h"
#include "hlo/sdy.h"

/* What numbers mean where operations are being read: places on a mesh, row-major, replicas before partitions. */
typedef struct ax_hlo_grid {
  ax_mesh mesh;
  int64_t replicas;   /* the size of its first axis, if these are replicas; 1: there are none */
  const int64_t *ids; /* of partitions at the mesh's places; NULL: 0 and on. Only without replicas */
} ax_hlo_grid;

/* The devices of a module (bridge/devices.h). */
struct ax_hlo_devices {
  const ax_hlo_grid *grid; /* of the place that is being read; NULL: outside of manual computations */
  const ax_sdy_named_mesh *meshes;
  uint32_t mesh_count;
  int64_t replicas, partitions; /* as the module says, or as its groups need */
  bool kept;                    /* what Shardy says is kept as text (bridge/shardy_calls.h): tiles beside it say less */
  bool each;                    /* the module is what each device runs: there are collectives, and arrays have no layouts */
  ax_arena *arena;
  bool parts_wanted;          /* what devices have by themselves is wanted of the entry function (bridge/parts.h) .. */
  bool sums_stay; /* a layout that was read says that devices have parts of a sum */
  const void *main;           /* .. whose trace this is, once it has begun */
  struct ax_hlo_parts *parts; /* a list */
  struct ax_hlo_alike *alike; /* likewise: groups of values that lie alike (bridge/readers_sharding.c) */
  struct ax_hlo_parallel *parallel; /* functions on a grid of devices that are being read (bridge/run_parallel.c); NULL: none */
};

enum { AX_HLO_MOST_DEVICES = 1 << 20 }; /* of a grid: more are refused, as groups list them one by one */

/* Which numbers an operation's groups have: of replicas or of all devices by use_global_device_ids and its channel, as those of
   all_reduce; or of replicas or partitions by its channel alone, as those of all_to_all. */
typedef enum ax_hlo_numbering { AX_HLO_BY_IDS, AX_HLO_BY_CHANNEL } ax_hlo_numbering;

/* "data,model" or "data {0,1} {2,3}", as the functions of axle/collectives.h take them, in the trace's memory. *size: members of the
   first group; NULL: not wanted. Devices that no group has are groups of one. AX_INVALID_ARGUMENT: no grid, numbers that it has
   not, or one twice. AX_ABSENT: groups along axes that are not taken by hand here, or that differ along these. */
AX_MUST_USE ax_status ax_hlo_read_groups(const ax_hlo_read_args *args, ax_hlo_numbering numbering, const char **names,
                                         int64_t *size);
/* The same of source_target_pairs; the pairs' numbers are of members along the names. */
AX_MUST_USE ax_status ax_hlo_read_pairs(const ax_hlo_read_args *args, const char **names, ax_pairs *pairs);
/* By place, the members of its group, in a row of peers->columns: -1 behind the last, and where the place is in none. */
typedef struct ax_hlo_peers {
  int64_t devices, columns;
  int64_t *place; /* to be freed */
} ax_hlo_peers;
/* `only_first`: rows have the first member alone. AX_ABSENT: too many of them. */
AX_MUST_USE ax_status ax_hlo_read_peers(const ax_hlo_read_args *args, ax_hlo_numbering numbering, bool only_first,
                                        ax_hlo_peers *out);
/* Whether the groups have several sizes; devices that no group has are groups of one. */
AX_MUST_USE ax_status ax_hlo_groups_uneven(const ax_hlo_read_args *args, ax_hlo_numbering numbering, bool *out);
/* Replicas and partitions that the numbers of the operation's groups need at least, where the module does not say how many there
   are: both at least 1. */
void ax_hlo_count_devices(const ax_hlo_operation *op, ax_hlo_numbering numbering, int64_t *replicas, int64_t *partitions);

#endif
