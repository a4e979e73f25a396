/* Pairs (source, target) of member numbers, for ppermute, psend and precv. */
#include <stdlib.h>

#include "collectives/collective.h"
#include "hlo/hlo.h"

static int compare_numbers(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* The first two pairs that share a source (side 0) or a target (side 1). */
static ax_status report_twice(const ax_pairs *pairs, int side, int64_t number) {
  uint32_t found[2], count = 0;
  for (uint32_t i = 0; i < pairs->count && count < 2; i++)
    if (pairs->v[i][side] == number) found[count++] = i;
  const int64_t *a = pairs->v[found[0]], *b = pairs->v[found[1]];
  return ax_error(AX_INVALID_ARGUMENT, "pairs (%lld, %lld) and (%lld, %lld) have the same %s", (long long)a[0],
                  (long long)a[1], (long long)b[0], (long long)b[1], side == 0 ? "source" : "target");
}

static ax_status check_unique(const ax_pairs *pairs, int side, int64_t *sorted) {
  for (uint32_t i = 0; i < pairs->count; i++) sorted[i] = pairs->v[i][side];
  qsort(sorted, pairs->count, sizeof sorted[0], compare_numbers);
  for (uint32_t i = 1; i < pairs->count; i++)
    if (sorted[i] == sorted[i - 1]) return report_twice(pairs, side, sorted[i]);
  return AX_OK;
}

ax_status ax_pairs_check(const ax_pairs *pairs, int64_t members) {
  for (uint32_t i = 0; i < pairs->count; i++)
    for (int side = 0; side < 2; side++)
      if (pairs->v[i][side] < 0 || pairs->v[i][side] >= members)
        return ax_error(AX_INVALID_ARGUMENT, "pair (%lld, %lld): the group's members are 0 to %lld",
                        (long long)pairs->v[i][0], (long long)pairs->v[i][1], (long long)members - 1);
  if (pairs->count == 0) return AX_OK;
  int64_t *sorted = ax_alloc(pairs->count * sizeof sorted[0]);
  if (sorted == NULL) return ax_out_of_memory(pairs->count * sizeof sorted[0]);
  ax_status status = check_unique(pairs, 0, sorted);
  if (status == AX_OK) status = check_unique(pairs, 1, sorted);
  ax_free(sorted);
  return status;
}

bool ax_pairs_swap(const ax_pairs *pairs, ax_pairs *out) {
  *out = (ax_pairs){pairs->count, ax_trace_alloc(pairs->count * sizeof out->v[0])};
  for (uint32_t i = 0; i < pairs->count && out->v != NULL; i++) {
    out->v[i][0] = pairs->v[i][1];
    out->v[i][1] = pairs->v[i][0];
  }
  return out->v != NULL;
}

/* Each pair once for every group: the groups' first members are the devices whose number in their group is 0. */
ax_status ax_hlo_add_exchanged(ax_hlo_attributes *to, const ax_axes *names, const ax_pairs *pairs, uint32_t channel) {
  const ax_mesh *mesh = &to->hlo->axes;
  ax_axis_set set;
  int64_t *entry;
  AX_TRY(ax_axes_resolve(names, mesh, &set));
  const int64_t devices = ax_mesh_devices(mesh), count = devices / ax_axis_set_size(set, mesh) * pairs->count;
  ax_hlo_add_matrix(to, "source_target_pairs", count, 2, &entry);
  for (int64_t d = 0; d < devices && pairs->count > 0 && entry != NULL; d++) {
    if (ax_axes_index(names, mesh, d) != 0) continue;
    for (uint32_t i = 0; i < pairs->count; i++)
      for (int side = 0; side < 2; side++) *entry++ = ax_axes_device(names, mesh, d, pairs->v[i][side]);
  }
  ax_hlo_add_channel(to, channel);
  return AX_OK;
}
