/* Collectives made of others by their parameters: pshift, the ppermute of rings, halos and pipelines; pshuffle; pswapaxes. */
#include "collectives/collective.h"
#include "prim/composite.h"

ax_value ax_pshift(ax_value x, const char *axes, int64_t by, bool wrap) {
  static const char name[] = "pshift";
  ax_axes names;
  ax_type type;
  if (!ax_operand(name, x, &type) || !ax_collective_names(name, axes, &names)) return ax_poison;
  int64_t members = ax_axes_members(&names), first = 0, last = members; /* the members that give to another */
  if (wrap) by %= members;
  else if (by >= members || by <= -members) last = 0;
  else if (by < 0) first = -by;
  else last = members - by;
  int64_t(*pairs)[2] = ax_trace_alloc((size_t)(last - first) * sizeof pairs[0]);
  if (pairs == NULL) return ax_poison;
  for (int64_t i = first; i < last; i++) {
    pairs[i - first][0] = i;
    pairs[i - first][1] = wrap ? (i + by + members) % members : i + by;
  }
  return ax_ppermute(x, axes, (uint32_t)(last - first), (const int64_t(*)[2])pairs);
}

/* Each member once. */
static bool is_permutation(const int64_t *perm, int64_t members, uint32_t *place) {
  for (int64_t i = 0; i < members; i++) {
    bool outside = perm[i] < 0 || perm[i] >= members;
    if (outside)
      ax_reject_as("pshuffle", "perm[%lld] is %lld: the group's members are 0 to %lld", (long long)i, (long long)perm[i],
                   (long long)members - 1);
    else if (place[perm[i]] != 0)
      ax_reject_as("pshuffle", "perm[%u] and perm[%lld] are both %lld: it is no permutation", place[perm[i]] - 1, (long long)i,
                   (long long)perm[i]);
    if (outside || place[perm[i]] != 0) return false;
    place[perm[i]] = (uint32_t)i + 1;
  }
  return true;
}

ax_value (ax_pshuffle)(ax_value x, const char *axes, uint32_t count, const int64_t *perm) {
  static const char name[] = "pshuffle";
  ax_axes names;
  ax_type type;
  if (!ax_operand(name, x, &type) || !ax_ungrouped_names(name, axes, &names)) return ax_poison;
  int64_t members = ax_axes_members(&names);
  count = ax_list_entries(count, (uint32_t)members);
  if (count != members || perm == NULL)
    return ax_reject_as(name, "perm has %u numbers; the group along \"%s\" has %lld members", perm != NULL ? count : 0, axes,
                        (long long)members);
  int64_t(*pairs)[2] = ax_trace_alloc(count * sizeof pairs[0]);
  uint32_t *place = ax_trace_alloc(count * sizeof place[0]);
  if (pairs == NULL || place == NULL || !is_permutation(perm, members, place)) return ax_poison;
  for (uint32_t i = 0; i < count; i++) pairs[i][0] = perm[i], pairs[i][1] = i;
  return ax_ppermute(x, axes, count, (const int64_t(*)[2])pairs);
}

ax_value ax_pswapaxes(ax_value x, const char *axes, int64_t dimension) {
  static const char name[] = "pswapaxes";
  ax_axes names;
  ax_type type;
  if (!ax_operand(name, x, &type) || !ax_collective_names(name, axes, &names) ||
      !ax_dimension(name, "dimension", &dimension, type.rank))
    return ax_poison;
  int64_t members = ax_axes_members(&names);
  if (ax_groups_even(&names.groups) && type.dims[dimension] != members)
    return ax_reject_as(name, "dimension %lld of %s has %lld elements; the group along \"%.200s\" has %lld members",
                        (long long)dimension, ax_operand_string(&type), (long long)type.dims[dimension], axes, (long long)members);
  return ax_all_to_all(x, axes, dimension, dimension, false);
}
