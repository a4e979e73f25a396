/* How long a device takes for an operation, its bytes and flops counted. A device of a described machine takes the longer of two
   times: its flops over its flops a second, its bytes over its bytes a second. A core of a processor (`core` of the description)
   takes for all that is no product what the library's own code takes on it, has caches (levels.h), and may share the operation
   with other cores. */
#ifndef AX_SIM_DEVICE_H
#define AX_SIM_DEVICE_H

#include "plan/amount.h"
#include "sim/cluster.h"

typedef struct ax_sim_effort {
  double computing; /* seconds, without its bytes and its launch */
  double read, written; /* bytes */
  uint32_t parts;   /* that cores may share */
  bool launched;    /* it has a launch */
  bool in_turn;     /* bytes are moved first, then it computes: of rows, which are read by their first kernel, and of products, whose
                       factors are packed. Other code of cores computes while it waits for bytes, but not all the time */
} ax_sim_effort;

/* Seconds in which its bytes are moved: by all cores of the device, and by one of them alone, which has less of the caches and links
   to memory. */
typedef struct ax_sim_moved {
  double all, alone;
} ax_sim_moved;

double ax_sim_cores(const ax_cluster *machine); /* of a device; 1 */
/* How many times as long one core alone takes to move bytes of memory as all cores together. */
double ax_sim_memory_alone(const ax_cluster *machine);
ax_sim_effort ax_sim_effort_of(const ax_cluster *machine, const ax_op *op, const ax_amount *amount);
ax_sim_moved ax_sim_moving(const ax_cluster *machine, const ax_sim_effort *effort); /* if all of it is in memory */
double ax_sim_write_rate(const ax_cluster *machine); /* bytes a second */
/* The seconds that it takes if its bytes take `moving`. *bound: what takes most of them. */
double ax_sim_effort_seconds(const ax_cluster *machine, const ax_sim_effort *effort, ax_sim_moved moving, const char **bound);

#endif
