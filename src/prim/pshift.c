/* pshift: ppermute by an offset, which is what rings, halos and pipelines want of it. */
#include "prim/collective.h"
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
