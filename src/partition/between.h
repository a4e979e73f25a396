/* What of a collective stays within a process and what crosses to others, if the mesh is spread over processes, and the time that both
   take: by the way that runs take it (processes/ways.h), with speeds that are given or assumed, never with measured ones. */
#ifndef AX_PARTITION_BETWEEN_H
#define AX_PARTITION_BETWEEN_H

#include "axle/stages.h"
#include "ir/prim.h"
#include "machine/rates.h"
#include "processes/map.h"
#include "processes/ways.h"

/* A byte that another device of the process gives moves four times: it is read and written by the device that sends it, and again by
   the one that takes it. The two share memory, so each move takes twice as long. A collective hands some lines over besides. */
enum { AX_MOVES_OF_A_BYTE = 8, AX_LINES_OF_A_COLLECTIVE = 13 };

/* The processes of a mesh, for costs. */
typedef struct ax_over_processes {
  ax_process_map *map; /* NULL: one process has all devices */
  uint32_t per_host;   /* successive processes that share a host */
} ax_over_processes;
/* layout NULL, or of one process: *out is empty. AX_INVALID_ARGUMENT: a process that there is not; a list that is too short for the mesh.
   AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_over_processes_init(const ax_process_layout *layout, const ax_mesh *mesh, ax_over_processes *out);
void ax_over_processes_deinit(ax_over_processes *over);

/* A collective as the counting meets it. */
typedef struct ax_between_case {
  const ax_mesh *mesh;
  const ax_axes *names; /* with groups, if it has them */
  ax_axis_set on;       /* along which devices push, each its own: those of `names` among them */
  ax_traffic traffic;
  double bytes;          /* of a member's operand; RESULT: of a message */
  const ax_pairs *pairs; /* OPERAND, RESULT: NULL: `source` sends to all */
  int64_t source;
} ax_between_case;

/* Of one run of it: in the process that it takes longest, all its devices together. */
typedef struct ax_between {
  double within;   /* bytes that devices of the process receive from one another */
  double bytes;    /* that the process receives from others, in so many messages */
  double messages;
  double seconds; /* of both */
  ax_way way;     /* meaningful where bytes cross */
} ax_between;
/* AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_between_count(const ax_over_processes *over, const ax_rates *rates, const ax_between_case *of, ax_between *out);

#endif
