/* Translates the axes of one program to those of the whole mesh. Each axis of a program is a run of the whole mesh's axes. */
#include <string.h>

#include "partition/partitioner.h"
#include "mesh/sharding.h"
#include "prim/bind.h"

ax_axis_set ax_scope_set(const ax_scope *s, ax_axis_set set) {
  ax_axis_set here = 0;
  for (uint32_t i = 0; i < s->axes.count; i++)
    for (uint32_t k = 0; (set >> i & 1) != 0 && k < s->runs[i].count; k++) here |= (ax_axis_set)1 << s->runs[i].axis[k];
  return here;
}

ax_type ax_scope_type(const ax_partitioner *p, const ax_scope *s, const ax_type *type) {
  ax_type here = *type;
  ax_axis_set checked = ax_checked_axes(&p->mesh);
  here.spread.varying = ax_scope_set(s, type->spread.varying) & checked;
  here.spread.reduced = ax_scope_set(s, type->spread.reduced) & checked;
  here.spread.unreduced = ax_scope_set(s, type->spread.unreduced) & checked;
  if (here.spread.unreduced == 0) here.spread.kind = AX_UNREDUCED_SUM;
  return here;
}

ax_type ax_scope_block(const ax_partitioner *p, const ax_scope *s, const ax_type *type, const ax_spec *spec) {
  ax_type here = ax_scope_type(p, s, type);
  if (spec == NULL) return here;
  ax_status status = ax_shard_padded(&here, spec, &p->mesh, &here);
  if (status != AX_OK) ax_fail(status);
  here.spread.varying |= ax_spec_set(spec) & ax_checked_axes(&p->mesh);
  return here;
}

ax_axes ax_scope_names(const ax_partitioner *p, const ax_scope *s, const ax_axes *names) {
  ax_axes here = {.groups = names->groups}; /* an axis's parts are in its order, so members keep their numbers */
  for (uint32_t i = 0; i < names->count; i++) {
    int axis = ax_mesh_find(&s->axes, names->name[i]);
    for (uint32_t k = 0; axis >= 0 && k < s->runs[axis].count; k++)
      memcpy(here.name[here.count++], p->mesh.axis[s->runs[axis].axis[k]].name, AX_MAX_NAME);
  }
  return here;
}

const ax_scope *ax_scope_body(ax_partitioner *p, const ax_scope *outer, const ax_shard_map_params *params) {
  ax_axis_list own[AX_MAX_AXES];
  ax_scope s = {.depth = outer->depth, .axes = params->body->axes};
  const bool around = ax_mesh_is_around(&params->mesh, &outer->axes);
  if (!around) ax_mesh_runs(&p->mesh, p->levels[s.depth++].first, &params->mesh, own);
  for (uint32_t i = 0; i < s.axes.count; i++) {
    const int at = around ? -1 : ax_mesh_find(&params->mesh, s.axes.axis[i].name),
              was = ax_mesh_find(&outer->axes, s.axes.axis[i].name);
    const ax_axis_list *run = at >= 0 ? &own[at] : was >= 0 ? &outer->runs[was] : &(ax_axis_list){0};
    for (uint32_t k = 0; k < run->count; k++) s.runs[i].axis[s.runs[i].count++] = run->axis[k];
  }
  for (const ax_scope *known = p->scopes; known != NULL; known = known->next)
    if (known->depth == s.depth && ax_mesh_equal(&known->axes, &s.axes, true) && memcmp(known->runs, s.runs, sizeof s.runs) == 0)
      return known;
  ax_scope *made = ax_arena_copy(&p->arena, &s, sizeof s);
  if (made == NULL) {
    ax_fail(ax_out_of_memory(sizeof s));
    return NULL;
  }
  made->next = p->scopes;
  return p->scopes = made;
}

bool ax_scope_lays_out(const ax_scope *s) { return ax_manual_axes(&s->axes) != ax_all_axes(&s->axes); }

/* --- Layouts --- */

const ax_spec *ax_spec_unique(ax_partitioner *p, const ax_spec *spec) {
  if (ax_spec_set(spec) == 0) return NULL;
  ax_memo_entry *entry = ax_memo_ask(&p->memo, "layout", NULL, spec, sizeof *spec);
  if (entry == NULL) ax_fail(ax_out_of_memory(sizeof *spec));
  return entry != NULL ? entry->key : NULL;
}

/* runs: by axis of the mesh that the spec is of. */
static const ax_spec *spec_along(ax_partitioner *p, const ax_axis_list *runs, const ax_spec *spec) {
  ax_spec here;
  memset(&here, 0, sizeof here);
  for (uint32_t d = 0; d < spec->rank; d++) {
    for (uint32_t i = 0; i < spec->count[d]; i++) {
      const ax_axis_list *run = &runs[spec->axis[d][i]];
      for (uint32_t k = 0; k < run->count; k++) here.axis[d][here.count[d]++] = run->axis[k];
    }
    if (here.count[d] > 0) here.rank = d + 1; /* trailing entries that name nothing say nothing */
  }
  return ax_spec_unique(p, &here);
}

const ax_spec *ax_spec_on(ax_partitioner *p, const ax_scope *s, const ax_mesh *mesh, const ax_spec *spec) {
  ax_axis_list runs[AX_MAX_AXES] = {{0}};
  if (ax_spec_set(spec) == 0) return NULL;
  if (!ax_mesh_is_around(mesh, &s->axes)) ax_mesh_runs(&p->mesh, p->levels[s->depth].first, mesh, runs);
  else for (uint32_t i = 0; i < mesh->count; i++) runs[i] = s->runs[ax_mesh_find(&s->axes, mesh->axis[i].name)];
  return spec_along(p, runs, spec);
}

const ax_spec *ax_spec_inward(ax_partitioner *p, const ax_scope *inner, const ax_type *block, const ax_spec *spec) {
  const ax_axis_set automatic = ax_scope_set(inner, ax_all_axes(&inner->axes) & ~ax_manual_axes(&inner->axes));
  ax_spec here;
  memset(&here, 0, sizeof here);
  for (uint32_t d = 0; spec != NULL && automatic != 0 && d < block->rank; d++) {
    int64_t left = block->dims[d];
    for (uint32_t i = 0; i < spec->count[d]; i++) {
      const uint8_t axis = spec->axis[d][i];
      if ((automatic >> axis & 1) == 0) continue;
      if (left % p->mesh.axis[axis].size != 0) break;
      left /= p->mesh.axis[axis].size;
      here.axis[d][here.count[d]++] = axis;
      here.rank = d + 1;
    }
  }
  return ax_spec_unique(p, &here);
}

const ax_spec *ax_spec_outward(ax_partitioner *p, const ax_spec *own, const ax_spec *inside) {
  if (own == NULL || inside == NULL) return own != NULL ? own : inside;
  ax_spec here = *own;
  for (uint32_t d = 0; d < inside->rank; d++)
    for (uint32_t i = 0; i < inside->count[d]; i++) here.axis[d][here.count[d]++] = inside->axis[d][i];
  if (here.rank < inside->rank) here.rank = inside->rank;
  return ax_spec_unique(p, &here);
}

ax_spec ax_spec_moved(const ax_spec *spec, int by) {
  ax_spec here;
  memset(&here, 0, sizeof here);
  here.rank = (uint32_t)((int)spec->rank + by);
  for (uint32_t d = by < 0 ? (uint32_t)-by : 0; d < spec->rank; d++) {
    const uint32_t to = (uint32_t)((int)d + by);
    here.count[to] = spec->count[d];
    memcpy(here.axis[to], spec->axis[d], sizeof here.axis[to]);
  }
  return here;
}

static const ax_spec *moved(ax_partitioner *p, const ax_spec *spec, int by) {
  if (spec == NULL || (by > 0 && spec->rank == AX_MAX_RANK)) return NULL;
  const ax_spec here = ax_spec_moved(spec, by);
  return ax_spec_unique(p, &here);
}

const ax_spec *ax_spec_stacked(ax_partitioner *p, const ax_spec *spec) { return moved(p, spec, 1); }
const ax_spec *ax_spec_unstacked(ax_partitioner *p, const ax_spec *spec) { return moved(p, spec, -1); }
