/* The mesh of all shard_maps and sharding_constraints in a program. It has a level for each depth of shard_maps inside one
   another. A shard_map over axes that one around it leaves automatic adds no level, because it adds no devices. The meshes at
   one depth are refined into one (refine.h). A mesh of fewer devices first gets a further axis, along which devices do the same
   work. */
#include <stdio.h>
#include <string.h>

#include "ir/path.h"
#include "mesh/constraint.h"
#include "partition/partitioner.h"
#include "prim/prims.h"

/* The mesh of a shard_map or a sharding_constraint. */
static const ax_mesh *mesh_of(const ax_eqn *map) {
  if (map->prim == &ax_prim_sharding_constraint) return &((const ax_constraint_params *)map->params)->mesh;
  return &((const ax_shard_map_params *)map->params)->mesh;
}

static ax_status add_mesh(ax_partitioner *p, uint32_t depth, const ax_eqn *map) {
  while (p->level_count <= depth) {
    AX_TRY(ax_grow(&p->levels, sizeof p->levels[0], p->level_count, 1, &p->level_capacity));
    p->levels[p->level_count++] = (ax_body_level){0};
  }
  ax_body_level *l = &p->levels[depth];
  for (uint32_t i = 0; i < l->mesh_count; i++)
    if (ax_mesh_equal(mesh_of(l->maps[i]), mesh_of(map), false)) return AX_OK;
  AX_TRY(ax_grow(&l->maps, sizeof l->maps[0], l->mesh_count, 1, &l->mesh_capacity));
  l->maps[l->mesh_count++] = map;
  return AX_OK;
}

/* Notes the finer mesh that would have the equation's groups along its axes. `mesh` is the innermost around the equation, on the
   level before `depth`. */
static ax_status add_cut(ax_partitioner *p, uint32_t depth, const ax_mesh *mesh, const ax_eqn *eqn) {
  const ax_axes *axes = ax_eqn_grouped(eqn);
  ax_mesh cut;
  if (axes == NULL) return AX_OK;
  p->grouped = true;
  if (!p->ungroups || mesh == NULL || !ax_mesh_cut(mesh, axes, &cut)) return AX_OK;
  ax_body_level *l = &p->levels[depth - 1];
  for (uint32_t i = 0; i < l->cut_count; i++)
    if (ax_mesh_equal(&l->cuts[i], &cut, false)) return AX_OK;
  AX_TRY(ax_grow(&l->cuts, sizeof l->cuts[0], l->cut_count, 1, &l->cut_capacity));
  l->cuts[l->cut_count++] = cut;
  return AX_OK;
}

/* Around a program: the environment of the body of the innermost shard_map, and the mesh of the innermost that added devices (NULL:
   there is none). */
typedef struct surroundings {
  const ax_mesh *axes, *mesh;
  uint64_t depth;
} surroundings;

static ax_status find_meshes(ax_partitioner *p, const ax_program *program, const surroundings *in);

static ax_status find_in_body(ax_partitioner *p, const ax_eqn *eqn, const surroundings *in) {
  const ax_shard_map_params *params = eqn->params;
  surroundings inner = *in;
  inner.axes = &params->body->axes;
  p->unchecked = p->unchecked || params->unchecked;
  if (!ax_mesh_is_around(&params->mesh, in->axes)) {
    AX_TRY(add_mesh(p, (uint32_t)in->depth, eqn));
    inner.mesh = &params->mesh;
    inner.depth++;
  }
  return find_meshes(p, params->body, &inner);
}

static ax_status find_meshes(ax_partitioner *p, const ax_program *program, const surroundings *in) {
  const uint32_t depth = (uint32_t)in->depth;
  ax_memo_entry *entry = ax_memo_ask(&p->memo, "meshes", program, in, sizeof *in);
  if (entry == NULL) return ax_out_of_memory(sizeof *entry);
  if (entry->known) return AX_OK;
  entry->known = true;
  for (uint32_t i = 0; i < program->eqn_count; i++) {
    const ax_eqn *eqn = &program->eqns[i];
    const ax_program *held;
    if (eqn->prim == &ax_prim_shard_map) {
      AX_TRY(find_in_body(p, eqn, in));
      continue;
    }
    if (eqn->prim == &ax_prim_sharding_constraint && !ax_constraint_is_around(eqn->params, in->axes))
      AX_TRY(add_mesh(p, depth, eqn));
    if ((eqn->prim->effects & AX_EFFECT_MESSAGE) != 0 && ax_manual_axes(in->axes) != ax_all_axes(in->axes))
      p->unchecked = true; /* what comes varies over all axes by its type, automatic ones too once they are not */
    AX_TRY(add_cut(p, depth, in->mesh, eqn));
    for (uint32_t k = 0; (held = ax_eqn_program(eqn, k)) != NULL; k++) AX_TRY(find_meshes(p, held, in));
  }
  return AX_OK;
}

ax_status ax_whole_mesh_find(ax_partitioner *p, const ax_program *program) {
  return find_meshes(p, program, &(surroundings){.axes = &program->axes});
}

/* "(a=4,) (prog.c:12)" */
static void map_text(ax_text *text, const ax_eqn *map) {
  ax_mesh_text(text, mesh_of(map));
  if (ax_source_text(text, " (", map)) ax_text_add(text, ")");
}

static ax_status refuse(const ax_eqn *a, const ax_eqn *b) {
  int64_t devices[] = {ax_mesh_devices(mesh_of(a)), ax_mesh_devices(mesh_of(b))};
  ax_text first = {0}, second = {0};
  map_text(&first, a);
  map_text(&second, b);
  const char *one = first.data != NULL ? first.data : "", *two = second.data != NULL ? second.data : "";
  ax_status status =
      devices[0] % devices[1] != 0 && devices[1] % devices[0] != 0
          ? ax_error(AX_ABSENT, "shard_maps over meshes of %lld and %lld devices in one program: %s and %s", (long long)devices[0],
                     (long long)devices[1], one, two)
          : ax_error(AX_ABSENT,
                     "shard_maps over the meshes %s and %s in one program: there is no mesh of %d axes or fewer that both "
                     "are made of",
                     one, two, AX_MAX_AXES);
  ax_text_deinit(&first);
  ax_text_deinit(&second);
  return status;
}

/* A mesh of fewer devices, which divide those of the level: as many groups of devices along a further axis, last, do the same. */
static bool widen(const ax_mesh *mesh, int64_t devices, ax_mesh *out) {
  const int64_t own = ax_mesh_devices(mesh);
  *out = *mesh;
  if (own == devices) return true;
  if (devices % own != 0 || mesh->count == AX_MAX_AXES) return false;
  out->axis[out->count++] = (ax_axis){.size = devices / own};
  return true;
}

static bool refines(const ax_mesh *a, const ax_mesh *b) {
  const int64_t x = ax_mesh_devices(a), y = ax_mesh_devices(b), devices = x > y ? x : y;
  ax_mesh first, second, refined;
  return widen(a, devices, &first) && widen(b, devices, &second) && ax_mesh_refine(&first, &second, &refined);
}

/* Reports two meshes of a level that have no common refinement. If every two have one, but all together need too many axes, it
   names the last two. */
static ax_status refuse_level(const ax_body_level *l, uint32_t last) {
  for (uint32_t i = 0; i < last; i++)
    if (!refines(mesh_of(l->maps[i]), mesh_of(l->maps[last]))) return refuse(l->maps[i], l->maps[last]);
  return refuse(l->maps[last - 1], l->maps[last]);
}

/* Reports a mesh that cannot be widened, together with the level's largest. */
static ax_status refuse_wide(const ax_body_level *l, uint32_t narrow, int64_t devices) {
  uint32_t largest = 0;
  while (ax_mesh_devices(mesh_of(l->maps[largest])) != devices) largest++;
  return largest < narrow ? refuse(l->maps[largest], l->maps[narrow]) : refuse(l->maps[narrow], l->maps[largest]);
}

static ax_status refine_level(ax_body_level *l) {
  int64_t devices = 1;
  for (uint32_t i = 0; i < l->mesh_count; i++)
    if (ax_mesh_devices(mesh_of(l->maps[i])) > devices) devices = ax_mesh_devices(mesh_of(l->maps[i]));
  l->refined = (ax_mesh){0};
  for (uint32_t i = 0; i < l->mesh_count; i++) {
    ax_mesh widened, next;
    if (!widen(mesh_of(l->maps[i]), devices, &widened)) return refuse_wide(l, i, devices);
    if (i > 0 && !ax_mesh_refine(&l->refined, &widened, &next)) return refuse_level(l, i);
    l->refined = i > 0 ? next : widened;
  }
  return AX_OK;
}

/* Refines the level for its groups, as long as `total`, the number of axes of all levels, is at most AX_MAX_AXES. */
static void refine_for_groups(ax_body_level *l, uint32_t *total) {
  for (uint32_t i = 0; i < l->cut_count; i++) {
    ax_mesh next;
    if (!ax_mesh_refine(&l->refined, &l->cuts[i], &next) || *total - l->refined.count + next.count > AX_MAX_AXES) continue;
    *total += next.count - l->refined.count;
    l->refined = next;
  }
}

static ax_status add_axes(ax_partitioner *p, ax_body_level *l) {
  l->first = p->mesh.count;
  l->count = l->refined.count;
  if (l->count > AX_MAX_AXES - p->mesh.count)
    return ax_error(AX_ABSENT, "the meshes of shard_maps inside one another have more than %d axes together", AX_MAX_AXES);
  for (uint32_t i = 0; i < l->count; i++)
    p->mesh.axis[p->mesh.count++] = (ax_axis){.size = l->refined.axis[i].size, .unchecked = p->unchecked};
  return AX_OK;
}

/* Names axis `axis` as wanted, or part `part` of it (-1: it is all of it), or as like that as a name that no other has can be. */
static void name_axis(ax_mesh *mesh, uint32_t axis, const char *wanted, int part) {
  enum { most = AX_MAX_NAME - 4 }; /* bytes that "_15" and the NUL leave */
  char name[AX_MAX_NAME];
  snprintf(name, sizeof name, "%s", wanted);
  if (part >= 0) snprintf(name, sizeof name, "%.*s_%u", most, wanted, (unsigned)part % AX_MAX_AXES);
  for (unsigned i = 0; ax_mesh_find(mesh, name) >= 0; i++)
    snprintf(name, sizeof name, "%.*s_%u", most, wanted, i % (2 * AX_MAX_AXES));
  memcpy(mesh->axis[axis].name, name, sizeof name);
}

/* An axis that is one of a mesh's has its name; one that is only a part of others is named after the first of them. */
static void name_level(ax_partitioner *p, const ax_body_level *l, bool parts) {
  for (uint32_t m = 0; m < l->mesh_count; m++) {
    ax_axis_list runs[AX_MAX_AXES];
    ax_mesh_runs(&p->mesh, l->first, mesh_of(l->maps[m]), runs);
    for (uint32_t i = 0; i < mesh_of(l->maps[m])->count; i++) {
      const char *name = mesh_of(l->maps[m])->axis[i].name;
      for (uint32_t k = 0; k < runs[i].count && parts == (runs[i].count > 1); k++)
        if (p->mesh.axis[runs[i].axis[k]].name[0] == '\0') name_axis(&p->mesh, runs[i].axis[k], name, parts ? (int)k : -1);
    }
  }
}

ax_status ax_whole_mesh_make(ax_partitioner *p) {
  uint32_t total = 0;
  for (uint32_t i = 0; i < p->level_count; i++) {
    AX_TRY(refine_level(&p->levels[i]));
    total += p->levels[i].refined.count;
  }
  for (uint32_t i = 0; i < p->level_count; i++) refine_for_groups(&p->levels[i], &total);
  for (uint32_t i = 0; i < p->level_count; i++) AX_TRY(add_axes(p, &p->levels[i]));
  for (uint32_t i = 0; i < p->level_count; i++) name_level(p, &p->levels[i], false);
  for (uint32_t i = 0; i < p->level_count; i++) name_level(p, &p->levels[i], true);
  return ax_mesh_check(&p->mesh);
}
