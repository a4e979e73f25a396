/* Owners: which devices compute what is the same along some axes. In one process these are the devices with coordinate 0 on the
   axes, and `skip` of an instruction is the axes. If devices are spread over processes, each process has owners of its own, the
   first of its devices that are alike but for the axes; then each bit of `skip` stands for one set of axes. */
#include <string.h>

#include "assemble/assembly.h"

static bool is_at_origin(const ax_mesh *mesh, ax_axis_set axes, uint32_t device) {
  for (uint32_t axis = 0; axis < mesh->count; axis++)
    if ((axes >> axis & 1) != 0 && ax_mesh_coordinate(mesh, device, axis) != 0) return false;
  return true;
}

/* Marks the first of the devices that are here in each class of devices that are alike but for the axes. */
static ax_status mark_owners(ax_compiled *c, ax_owned_by *owned) {
  const ax_mesh *mesh = &c->plan->mesh;
  uint32_t set;
  AX_TRY(ax_set_of(c, ax_all_axes(mesh) & ~owned->axes, &set));
  bool *owner = ax_arena_alloc(&c->plan->arena, c->devices), *seen = ax_calloc(c->sets[set].size, 1);
  if (owner == NULL || seen == NULL) {
    ax_free(seen);
    return ax_out_of_memory(c->devices);
  }
  for (uint32_t d = 0; d < c->devices; d++) {
    const uint32_t class = c->sets[set].index[d];
    const bool here = ax_device_is_here(c->map, d);
    owner[d] = here && (owned->once ? is_at_origin(mesh, owned->axes, d) : !seen[class]);
    seen[class] = seen[class] || here;
  }
  ax_free(seen);
  owned->owner = owner;
  return AX_OK;
}

ax_status ax_owned_along(ax_compiled *c, ax_axis_set axes, bool once, uint32_t *out) {
  for (*out = 0; *out < c->owned_count; (*out)++)
    if (c->owned[*out].axes == axes && c->owned[*out].once == once) return AX_OK;
  enum { most = 64 }; /* bits of `skip` */
  if (c->owned_count == most)
    return ax_error(AX_ABSENT, "compile: values of this program are the same along %u different sets of mesh axes, more than %u",
                    c->owned_count + 1, (unsigned)most);
  ax_owned_by *all = ax_arena_alloc(&c->plan->arena, (c->owned_count + 1) * sizeof all[0]);
  if (all == NULL) return ax_out_of_memory((c->owned_count + 1) * sizeof all[0]);
  if (c->owned_count > 0) memcpy(all, c->owned, c->owned_count * sizeof all[0]);
  all[c->owned_count] = (ax_owned_by){.axes = axes, .once = once};
  AX_TRY(mark_owners(c, &all[c->owned_count]));
  c->owned = all;
  c->owned_count++;
  return AX_OK;
}

void ax_find_first(const ax_compiled *c, ax_axis_set axes, bool *first) {
  for (uint32_t d = 0; d < c->devices; d++) first[d] = is_at_origin(&c->plan->mesh, axes, d);
}

ax_status ax_find_owners(ax_compiled *c, ax_axis_set axes, bool *owner) {
  uint32_t owned;
  if (c->map != NULL) {
    AX_TRY(ax_owned_along(c, axes, false, &owned));
    memcpy(owner, c->owned[owned].owner, c->devices);
    return AX_OK;
  }
  for (uint32_t d = 0; d < c->devices; d++) owner[d] = is_at_origin(&c->plan->mesh, axes, d);
  return AX_OK;
}

/* A call without results need not be made in each process. */
static bool is_made_once(const ax_instr *instr) {
  return instr->kind == AX_INSTR_EVAL && instr->eqn != NULL && instr->eqn->out_count == 0;
}

static ax_status number(ax_compiled *c, ax_axis_set *skip, bool once) {
  uint32_t owned;
  if (*skip == 0) return AX_OK;
  AX_TRY(ax_owned_along(c, *skip, once, &owned));
  *skip = (ax_axis_set)1 << owned;
  return AX_OK;
}

ax_status ax_number_owners(ax_assembly *a) {
  if (a->compiled->map == NULL) return AX_OK;
  for (uint32_t i = 0; i < a->instr_count; i++) {
    ax_instr *instr = &a->instrs[i];
    AX_TRY(number(a->compiled, &instr->skip, is_made_once(instr)));
    if (instr->kind == AX_INSTR_LOOP && instr->fused_loop != NULL) AX_TRY(number(a->compiled, &instr->fused_loop->skip, false));
  }
  return AX_OK;
}
