/* ax_mpmd_map: functions on the cores of several meshes, all at once on each device, over the same memory. */
#include <string.h>

#include "kernel/call.h"
#include "prim/prims.h"

static const char function[] = "mpmd_map";

/* --- Meshes --- */

static ax_status take_name(ax_axes *names, const char *name, const char *what) {
  if (name == NULL || !ax_is_name(name, strnlen(name, AX_MAX_NAME)))
    return ax_error(AX_INVALID_ARGUMENT, "%s: \"%.40s\" is no name", what, name != NULL ? name : "");
  if (names->count == AX_MAX_AXES) return ax_error(AX_INVALID_ARGUMENT, "%s: more than %d", what, AX_MAX_AXES);
  memset(names->name[names->count], 0, AX_MAX_NAME);
  strcpy(names->name[names->count++], name);
  return AX_OK;
}

/* Axes of one name are one axis. */
static ax_status check_sizes(const ax_core_mesh *meshes, uint32_t m) {
  const ax_mesh *own = &meshes[m].mesh;
  for (uint32_t o = 0; o < m; o++)
    for (uint32_t i = 0; i < own->count; i++) {
      int at = ax_mesh_find(&meshes[o].mesh, own->axis[i].name);
      if (at >= 0 && meshes[o].mesh.axis[at].size != own->axis[i].size)
        return ax_error(AX_INVALID_ARGUMENT, "meshes %u and %u: conflicting size for axis %s: %lld and %lld", o, m,
                        own->axis[i].name, (long long)meshes[o].mesh.axis[at].size, (long long)own->axis[i].size);
    }
  return AX_OK;
}

static ax_status take_threads(ax_axes *all, const ax_core_mesh *mesh) {
  ax_axes own;
  if (mesh->threads == NULL) return AX_OK;
  AX_TRY(ax_axes_parse(mesh->threads, NULL, &own));
  for (uint32_t i = 0; i < own.count; i++) {
    if (ax_mesh_find(&mesh->mesh, own.name[i]) < 0)
      return ax_error(AX_INVALID_ARGUMENT, "threads along \"%s\", which the mesh has not", own.name[i]);
    bool known = false;
    for (uint32_t k = 0; k < all->count; k++) known = known || strcmp(all->name[k], own.name[i]) == 0;
    if (!known) AX_TRY(take_name(all, own.name[i], "axes of threads"));
  }
  return AX_OK;
}

static ax_status take_mesh(ax_kernel_params *params, const ax_core_mesh *meshes, uint32_t m, ax_mesh *axes) {
  const ax_core_mesh *mesh = &meshes[m];
  AX_TRY(take_name(&params->cores, mesh->core, "the core type"));
  AX_TRY(check_sizes(meshes, m));
  AX_TRY(ax_kernel_axes(&mesh->mesh, axes));
  AX_TRY(take_threads(&params->threads, mesh));
  if (mesh->space < AX_SPACE_NONE || mesh->space >= AX_SPACE_COUNT || mesh->space == AX_SPACE_REGISTERS)
    return ax_error(AX_INVALID_ARGUMENT, "its space is none for operands");
  params->core_axes.v[params->core_axes.count++] = mesh->mesh.count;
  return AX_OK;
}

static bool take_meshes(ax_kernel_trace *t, const ax_core_mesh *meshes, ax_mesh *axes) {
  for (uint32_t m = 0; m < t->params.bodies.count; m++) {
    ax_status status = take_mesh(&t->params, meshes, m, &axes[m]);
    if (status == AX_OK) continue;
    ax_fail(ax_error_context(status, "%s: mesh %u: ", function, m));
    return false;
  }
  return true;
}

/* --- Refs --- */

/* In the mesh's space, or where the result is asked for as a ref, in that one's. */
static ax_type ref_of(const ax_core_mesh *mesh, const ax_type *whole) {
  ax_space space = whole->form == AX_REF ? whole->space : mesh->space;
  return ax_ref_type(space == AX_SPACE_NONE ? AX_SPACE_ANY : space, whole->dtype, AX_LIST(whole->rank, whole->dims));
}

/* Operands and results as each mesh has them; those of the first are the equation's. */
static const ax_type *const *refs_of(ax_kernel_trace *t, const ax_core_mesh *meshes, const ax_type *in, const ax_type *outs) {
  uint32_t count = t->in_count + t->params.outs.count;
  const ax_type **refs = ax_trace_alloc(t->params.bodies.count * sizeof refs[0]);
  for (uint32_t m = 0; refs != NULL && m < t->params.bodies.count; m++) {
    ax_type *own = ax_trace_alloc(count * sizeof own[0]);
    for (uint32_t i = 0; own != NULL && i < count; i++)
      own[i] = ref_of(&meshes[m], i < t->in_count ? &in[i] : &outs[i - t->in_count]);
    refs[m] = own;
    if (m == 0) t->params.blocks = (ax_types){count, own};
  }
  return ax_failed() ? NULL : refs;
}

/* --- Scratch --- */

static ax_status scratch_core(const ax_kernel_params *params, const ax_scratch *scratch, const char **core) {
  bool known = false;
  *core = scratch->core;
  if (scratch->core != NULL && scratch->shared)
    return ax_error(AX_INVALID_ARGUMENT, "it is of the core type \"%s\", and shared by all cores", scratch->core);
  if (scratch->core == NULL) {
    bool whole = scratch->shared || (scratch->type.form == AX_REF && scratch->type.space == AX_SPACE_HBM);
    if (!whole && params->bodies.count > 1)
      return ax_error(AX_INVALID_ARGUMENT,
                      "%s says no core type: of several meshes, it is to be said whose it is, unless it is in hbm or shared",
                      ax_type_string(&scratch->type, NULL));
    *core = whole ? AX_SCRATCH_DEVICE : AX_SCRATCH_EACH;
    return AX_OK;
  }
  for (uint32_t b = 0; b < params->cores.count; b++) known = known || strcmp(params->cores.name[b], scratch->core) == 0;
  return known ? AX_OK : ax_error(AX_INVALID_ARGUMENT, "it is of the core type \"%.40s\", which no mesh has", scratch->core);
}

/* Nothing is said where each core has its own. */
static bool take_scratch_cores(ax_kernel_params *params, const ax_kernel_options *options) {
  bool all_own = true;
  for (uint32_t i = 0; i < options->scratch.count; i++) {
    const char *core;
    ax_status status = scratch_core(params, &options->scratch.v[i], &core);
    bool own = status == AX_OK && strcmp(core, AX_SCRATCH_EACH) == 0;
    if (status == AX_OK && own && all_own) continue;
    for (uint32_t k = 0; status == AX_OK && all_own && k < i; k++)
      status = take_name(&params->scratch_cores, AX_SCRATCH_EACH, "scratch");
    all_own = false;
    if (status == AX_OK) status = take_name(&params->scratch_cores, core, "scratch that says whose it is");
    if (status == AX_OK) continue;
    ax_fail(ax_error_context(status, "%s: scratch %u: ", function, i));
    return false;
  }
  return true;
}

/* --- The function --- */

void(ax_mpmd_map)(uint32_t mesh_count, const ax_core_mesh *meshes, uint32_t body_count, const ax_fn *bodies,
                  const ax_kernel_options *options, uint32_t in_count, const ax_value *in, uint32_t type_count, const ax_type *outs,
                  uint32_t out_count, ax_value *out) {
  static const ax_kernel_options defaults;
  if (options == NULL) options = &defaults;
  if (ax_failed()) return;
  if (mesh_count == 0 || meshes == NULL || bodies == NULL || mesh_count > AX_MAX_AXES) {
    ax_reject_as(
        function,
        mesh_count > AX_MAX_AXES ? "%u meshes; there are %d at most" : "%u meshes: at least one mesh and its function are needed",
        mesh_count, AX_MAX_AXES);
    return;
  }
  if (!ax_list_fits(function, "the meshes take", "function", body_count, mesh_count)) return;
  in_count = ax_kernel_operands(in_count, &bodies[0], type_count, options);
  if (!ax_lists_fit(function, in_count, in_count, out_count, type_count, out)) return;
  in = ax_take_operands(in, in_count, out, type_count);
  ax_kernel_trace t = {
      .function = function, .bodies = bodies, .in_count = in_count, .in = in, .out = out, .params.bodies.count = mesh_count};
  ax_mesh *axes = ax_trace_alloc(mesh_count * sizeof axes[0]);
  const ax_type *types = ax_types_of(function, in, in_count);
  if (axes == NULL || types == NULL || !ax_take_kernel_options(function, options, &t.params) ||
      !ax_take_kernel_outs(function, type_count, outs, &t.params.outs) || !take_meshes(&t, meshes, axes) ||
      !take_scratch_cores(&t.params, options))
    return;
  t.axes = axes;
  t.refs = refs_of(&t, meshes, types, outs);
  if (t.refs != NULL) ax_kernel_bind(&t);
}
