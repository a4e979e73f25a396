#include "processes/map.h"

#include "base/base.h"

/* The first blocks have one device more where processes do not divide devices. */
static uint32_t in_blocks(const ax_process_rule *rule, uint32_t devices, uint32_t device) {
  const uint32_t least = devices / rule->processes, longer = devices % rule->processes;
  const uint32_t in_longer = longer * (least + 1);
  return device < in_longer ? device / (least + 1) : longer + (device - in_longer) / least;
}

static uint32_t process_of(const ax_process_rule *rule, uint32_t devices, uint32_t device) {
  return rule->listed > 0 ? rule->of[device] : in_blocks(rule, devices, device);
}

static ax_status check(const ax_process_rule *rule, uint32_t devices) {
  if (rule->listed == 0 || devices <= rule->listed) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "a mesh of %u devices, but the processes' list has %u", devices, rule->listed);
}

ax_status ax_process_of(const ax_process_rule *rule, uint32_t devices, uint32_t device, uint32_t *out) {
  *out = 0;
  AX_TRY(check(rule, devices));
  *out = process_of(rule, devices, device);
  return AX_OK;
}

ax_status ax_process_devices(const ax_process_rule *rule, uint32_t devices, uint32_t *out) {
  *out = 0;
  AX_TRY(check(rule, devices));
  if (rule->listed == 0) *out = devices / rule->processes + (rule->process < devices % rule->processes);
  for (uint32_t d = 0; d < devices && rule->listed > 0; d++) *out += rule->of[d] == rule->process;
  return AX_OK;
}

ax_status ax_process_map_create(const ax_process_rule *rule, uint32_t devices, ax_process_map **out) {
  *out = NULL;
  AX_TRY(check(rule, devices));
  const size_t bytes = sizeof(ax_process_map) + 2 * (size_t)devices * sizeof(uint32_t);
  ax_process_map *map = *out = ax_alloc(bytes);
  if (map == NULL) return ax_out_of_memory(bytes);
  *map = (ax_process_map){.process = rule->process, .processes = rule->processes, .devices = devices, .own = map->of + devices};
  for (uint32_t d = 0; d < devices; d++) {
    map->of[d] = process_of(rule, devices, d);
    if (map->of[d] == map->process) map->own[map->here++] = d;
  }
  return AX_OK;
}
