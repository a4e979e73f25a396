/* Which process has which devices of a mesh. */
#ifndef AX_PROCESSES_MAP_H
#define AX_PROCESSES_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "axle/status.h"

typedef struct ax_process_map {
  uint32_t process, processes; /* this process, and how many there are */
  uint32_t devices, here;      /* of the mesh; of this process */
  uint32_t *own;               /* the devices of this process, in order; in the same memory */
  uint32_t of[];               /* by device: its process */
} ax_process_map;

/* How devices are given to processes: by a list, or in blocks of device order that are as equal as can be (of 8 devices, three
   processes have 3, 3 and 2). */
typedef struct ax_process_rule {
  uint32_t process, processes;
  uint32_t listed;     /* 0: in blocks */
  const uint32_t *of;  /* by device, for as many devices as are listed */
} ax_process_rule;

/* AX_INVALID_ARGUMENT: the mesh has more devices than the list. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_process_map_create(const ax_process_rule *rule, uint32_t devices, ax_process_map **out);
/* The same of one device, which the mesh has, and how many are of this process: without a map. AX_INVALID_ARGUMENT as above. */
AX_MUST_USE ax_status ax_process_of(const ax_process_rule *rule, uint32_t devices, uint32_t device, uint32_t *out);
AX_MUST_USE ax_status ax_process_devices(const ax_process_rule *rule, uint32_t devices, uint32_t *out);
/* map NULL: all devices are of this process. */
static inline bool ax_device_is_here(const ax_process_map *map, uint32_t device) {
  return map == NULL || map->of[device] == map->process;
}

#endif
