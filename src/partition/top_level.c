/* top_level_all_gather: lays an array outside of shard_map out over fewer axes. The value stays the same. The call makes a
   shard_map whose body gathers, so that the collective stands where the user put it, and not where the partitioner would put
   one. */
#include <string.h>

#include "axle/collectives.h"
#include "ir/program.h"
#include "mesh/shard_map.h"
#include "prim/bind.h"

static const char name[] = "top_level_all_gather";

typedef struct change {
  const ax_mesh *mesh;
  ax_spec from, to;
} change;

/* Gathers each dimension over the axes that its new layout lacks. These are the inner ones, and keep their order. */
static void gather(const ax_value *in, ax_value *out, void *context) {
  const change *c = context;
  out[0] = in[0];
  for (uint32_t d = 0; d < c->from.rank; d++) {
    const ax_axes gone = ax_spec_names(&c->from, c->mesh, d, c->to.count[d]);
    if (gone.count > 0) out[0] = ax_all_gather_invariant(out[0], ax_axes_listed(&gone).text, d, true);
  }
}

static ax_status check_prefixes(const change *c) {
  for (uint32_t d = 0; d < AX_MAX_RANK; d++)
    if (c->to.count[d] > c->from.count[d] || memcmp(c->to.axis[d], c->from.axis[d], c->to.count[d]) != 0)
      return ax_error(AX_INVALID_ARGUMENT, "dimension %u keeps none but the first of the axes that it is laid over", d);
  return AX_OK;
}

ax_value ax_top_level_all_gather(ax_value x, const ax_mesh *mesh, const char *specs) {
  change c = {.mesh = mesh};
  ax_value out = ax_poison;
  if (!ax_check_operands(name, &x, 1)) return ax_poison;
  if (mesh == NULL) return ax_reject_as(name, "there is no mesh");
  ax_status status = ax_parse_specs(specs, 1, 1, mesh, &c.from, &c.to, NULL);
  if (status == AX_OK) status = check_prefixes(&c);
  if (status != AX_OK) {
    ax_fail(ax_error_context(status, "%s: ", name));
    return ax_poison;
  }
  ax_shard_map(mesh, specs, AX_CLOSURE(gather, 1, 1, &c), &x, &out);
  return out;
}
