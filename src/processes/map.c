#include "processes/map.h"

#include "base/base.h"

/* The first blocks have one device more where processes do not divide devices. */
static uint32_t in_blocks(const ax_process_rule *rule, uint32_t devices, uint32_t device) {
  const uint32_t least = devices / rule->processes, longer = devices % rule->processes;
  const uint32_t in_longer = longer * (least + 1);
  return device < in_longer ? device / (least + 1) : longer + (device - in_longer) / least;
}

ax_status ax_process_map_create(const ax_process_rule *rule, uint32_t devices, ax_process_map **out) {
  *out = NULL;
  if (rule->listed > 0 && devices > rule->listed)
    return ax_error(AX_INVALID_ARGUMENT, "a mesh of %u devices, but the processes' list has %u", devices, rule->listed);
  ax_process_map *map = *out = ax_alloc(sizeof *map + devices * sizeof map->of[0]);
  if (map == NULL) return ax_out_of_memory(devices * sizeof map->of[0]);
  *map = (ax_process_map){.process = rule->process, .processes = rule->processes, .devices = devices};
  for (uint32_t d = 0; d < devices; d++) {
    map->of[d] = rule->listed > 0 ? rule->of[d] : in_blocks(rule, devices, d);
    map->here += map->of[d] == map->process;
  }
  return AX_OK;
}
