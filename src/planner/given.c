/* Meshes that are given. Their axes have the names that strategies print, which say what an axis does, and each cuts as the
   search has found that way of a second axis to cut. What the names leave open, how state and parameters lie along the axes of
   samples, microbatches and checkpoints, is searched as on any other mesh. */
#include <math.h>
#include <string.h>

#include "planner/ahead.h"

enum { axis_second = 1 }; /* of ways */

static ax_status refuse_name(const char *name) {
  return ax_error(
      AX_INVALID_ARGUMENT,
      "planner: the axis \"%s\" does not say what it does: axes are called data (cuts samples), shard (samples, and all "
      "parameters), expert, sequence, model (parameters) or same (nothing), a second one of these model2, and of a pipeline the "
      "first is pipe",
      name);
}

/* The way that an axis of the role cuts as; NULL: it needs none. */
static const ax_arrangement *way_of(const ax_planner *p, ax_axis_role role) {
  return role == AX_ROLE_TENSOR     ? &p->tensor
         : role == AX_ROLE_EXPERTS  ? &p->expert
         : role == AX_ROLE_SEQUENCE ? &p->sequence
                                    : NULL;
}

static ax_status find_way(ax_planner *p, ax_axis_role role) {
  const char *name = role == AX_ROLE_EXPERTS ? "expert" : "sequence";
  if (role == AX_ROLE_TENSOR) return p->tensor.family == NULL ? ax_planner_find_ways(p, NULL) : AX_OK;
  if (way_of(p, role) == NULL || way_of(p, role)->family != NULL) return AX_OK;
  AX_TRY(ax_planner_find_ways(p, name));
  if (way_of(p, role)->family != NULL) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "planner: the program has nothing that an axis %s would cut", name);
}

/* Lets an axis cut what its role says. */
static void lay_axis(const ax_planner *p, ax_axis_role role, uint32_t axis, ax_arrangement *out) {
  const ax_arrangement *way = way_of(p, role);
  if (role == AX_ROLE_SAMPLES || role == AX_ROLE_SHARDS) out->batch.axis[axis] = 0;
  if (way == NULL || way->family == NULL) return;
  out->batch.axis[axis] = way->batch.axis[axis_second];
  for (uint32_t g = 0; g < p->families.count; g++) out->family[g].axis[axis] = way->family[g].axis[axis_second];
}

ax_status ax_planner_lay_named(ax_planner *p, const ax_mesh *mesh, ax_arrangement *out, uint32_t *shards) {
  *shards = 0;
  if (mesh->count == 0 || mesh->count > AX_PLANNER_AXES)
    return ax_error(AX_INVALID_ARGUMENT, "planner: a mesh of %u axes, of one stage; there may be 1 to %d", mesh->count,
                    AX_PLANNER_AXES);
  for (uint32_t a = 0; a < mesh->count; a++) {
    const ax_axis_role role = ax_axis_role_named(mesh->axis[a].name);
    if (role == AX_ROLE_COUNT) return refuse_name(mesh->axis[a].name);
    AX_TRY(find_way(p, role));
    if (role == AX_ROLE_SHARDS) *shards |= 1u << a;
  }
  AX_TRY(ax_arrangement_whole(&p->families, out));
  for (uint32_t a = 0; a < mesh->count; a++) lay_axis(p, ax_axis_role_named(mesh->axis[a].name), a, out);
  return AX_OK;
}

/* --- The search on one mesh --- */

/* Whether axes of these names do the same, as far as a mesh tells: how parameters lie along an axis of samples, which makes it
   one that shards, is searched. */
static bool do_alike(const char *a, const char *b) {
  const ax_axis_role x = ax_axis_role_named(a), y = ax_axis_role_named(b);
  const bool samples = x == AX_ROLE_SAMPLES || x == AX_ROLE_SHARDS;
  return x == y || (samples && (y == AX_ROLE_SAMPLES || y == AX_ROLE_SHARDS));
}

/* What is found lacks axes of one device. */
static bool is_mesh(const ax_mesh *found, const ax_mesh *wanted) {
  uint32_t next = 0;
  for (uint32_t a = 0; a < wanted->count; a++) {
    if (wanted->axis[a].size == 1) continue;
    if (next == found->count || found->axis[next].size != wanted->axis[a].size ||
        !do_alike(found->axis[next].name, wanted->axis[a].name))
      return false;
    next++;
  }
  return next == found->count;
}

/* Names axes by what they do now, as steps that improve layouts may have changed it. Where some do what they were called, the
   others are left out. */
static void leave_out_others(ax_planner *p, const ax_mesh *wanted) {
  uint32_t left = 0;
  for (uint32_t i = 0; i < p->found_count; i++) {
    ax_candidate_tidy(p, &p->found[i]);
    left += is_mesh(&p->found[i].mesh, wanted);
  }
  if (left == 0) return;
  left = 0;
  for (uint32_t i = 0; i < p->found_count; i++) {
    if (is_mesh(&p->found[i].mesh, wanted))
      p->found[left++] = p->found[i];
    else
      ax_candidate_deinit(&p->found[i]);
  }
  p->found_count = left;
}

static ax_status refuse(const ax_planner *p, const ax_mesh *mesh, const ax_arrangement *layout) {
  ax_text why = {0}, shown = {0};
  ax_mesh_text(&shown, mesh);
  if (!ax_arrangement_why_not(layout, &p->model, mesh, 1, &why))
    ax_text_add(&why, "it cannot be laid over %s: %s", shown.data != NULL ? shown.data : "this mesh", p->why);
  const ax_status status = ax_error(AX_INVALID_ARGUMENT, "planner: %s", why.data != NULL ? why.data : "");
  ax_text_deinit(&why);
  ax_text_deinit(&shown);
  return status;
}

/* What fits nowhere is timed all the same, as it was asked for: what takes the least memory. */
static ax_status settle(ax_planner *p) {
  enum { most = 32 };
  const double capacity = p->capacity;
  ax_candidates_sort(p, p->found, p->found_count);
  const bool fits = p->found[0].trial.bytes <= capacity;
  if (!fits) p->capacity = INFINITY;
  const ax_status status = ax_planner_settle(p, fits ? most : 1);
  p->capacity = capacity;
  return status;
}

static bool is_tensor(const ax_mesh *mesh, uint32_t axis) {
  return mesh->axis[axis].size > 1 && ax_axis_role_named(mesh->axis[axis].name) == AX_ROLE_TENSOR;
}

/* Where several axes cut parameters, layouts in which one of them cuts as tensor parallelism does, and steps find what the others
   are for. */
static ax_status try_each_tensor(ax_planner *p, const ax_mesh *mesh, const ax_arrangement *layout) {
  uint32_t count = 0;
  for (uint32_t a = 0; a < mesh->count; a++) count += is_tensor(mesh, a);
  for (uint32_t one = 0; one < mesh->count && count > 1; one++) {
    ax_arrangement alone;
    if (!is_tensor(mesh, one)) continue;
    AX_TRY(ax_arrangement_copy(layout, &p->families, &alone));
    for (uint32_t a = 0; a < mesh->count; a++)
      for (uint32_t g = 0; a != one && is_tensor(mesh, a) && g < p->families.count; g++) alone.family[g].axis[a] = AX_WHOLE;
    const ax_status status = ax_planner_try_sharings(p, mesh, &alone, 0);
    ax_arrangement_deinit(&alone);
    AX_TRY(status);
  }
  return AX_OK;
}

/* What an axis `shard` cuts of parameters is searched: beside one that cuts all, one is called so too that cuts a few. So layouts are tried
   in which some of those axes cut all and the others, at first, none. */
static ax_status try_each_sharding(ax_planner *p, const ax_mesh *mesh, const ax_arrangement *layout, uint32_t shards) {
  for (uint32_t some = shards; some > 0; some = (some - 1) & shards) AX_TRY(ax_planner_try_sharings(p, mesh, layout, some));
  return shards != 0 ? ax_planner_try_sharings(p, mesh, layout, 0) : AX_OK;
}

static ax_status search_stage(ax_planner *p, const ax_mesh *mesh) {
  ax_arrangement layout = {0};
  uint32_t shards;
  ax_status status = ax_planner_lay_named(p, mesh, &layout, &shards);
  if (status == AX_OK)
    status = shards != 0 ? try_each_sharding(p, mesh, &layout, shards) : ax_planner_try_sharings(p, mesh, &layout, 0);
  if (status == AX_OK) status = try_each_tensor(p, mesh, &layout);
  if (status == AX_OK && p->found_count == 0) status = refuse(p, mesh, &layout);
  if (status == AX_OK) status = ax_planner_improve_found(p);
  if (status == AX_OK) leave_out_others(p, mesh);
  if (status == AX_OK) status = settle(p);
  ax_arrangement_deinit(&layout);
  return status;
}

static ax_status search_stages(ax_planner *p, int64_t stages, const ax_mesh *mesh) {
  AX_TRY(ax_planner_search_pipeline(p, stages, mesh));
  return settle(p);
}

ax_status ax_planner_search_given(ax_planner *p) {
  ax_mesh mesh = *p->options.mesh;
  const bool piped = mesh.count > 0 && strcmp(mesh.axis[0].name, "pipe") == 0;
  if (ax_mesh_devices(&mesh) != p->devices)
    return ax_error(AX_INVALID_ARGUMENT, "planner: the mesh has %lld devices, and there are to be %lld",
                    (long long)ax_mesh_devices(&mesh), (long long)p->devices);
  if (!piped) return search_stage(p, &mesh);
  const int64_t stages = mesh.axis[0].size;
  mesh.count--;
  memmove(mesh.axis, mesh.axis + 1, mesh.count * sizeof mesh.axis[0]);
  return stages > 1 ? search_stages(p, stages, &mesh) : search_stage(p, &mesh);
}
