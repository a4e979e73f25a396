/* See shardy.h. */
#include "mesh/shardy.h"

#include "mesh/constraint.h"
#include "mesh/shard_map.h"
#include "prim/rules.h"

/* --- Texts --- */

static void sharding_text(ax_text *text, const ax_type *type, const ax_spec *spec, const ax_mesh *mesh) {
  const ax_type physical = ax_hlo_physical(type);
  ax_text_add(text, "<@mesh, [");
  for (uint32_t d = 0; d < physical.rank; d++) {
    const bool said = d < spec->rank && d < type->rank;
    ax_text_add(text, d > 0 ? ", {" : "{");
    for (uint32_t i = 0; said && i < spec->count[d]; i++)
      ax_text_add(text, "%s\"%s\"", i > 0 ? ", " : "", mesh->axis[spec->axis[d][i]].name);
    if (said && (spec->open >> d & 1) != 0) ax_text_add(text, spec->count[d] > 0 ? ", ?" : "?");
    ax_text_add(text, "}");
    if (said && spec->priority > 0 && spec->count[d] > 0) ax_text_add(text, "p%u", spec->priority);
  }
  ax_text_add(text, "]>");
}

/* Copies the text into the module. */
static void add_text(ax_hlo_attributes *to, const char *name, ax_text *text) {
  char *copy = text->failed ? NULL : ax_arena_copy(&to->hlo->module.arena, text->data, text->length + 1);
  if (copy != NULL) ax_hlo_add(to, name, (ax_hlo_attribute){.kind = AX_HLO_OPAQUE, .text = {copy, text->length}});
  else to->hlo->failed = true;
  ax_text_deinit(text);
}

void ax_shardy_add_sharding(ax_hlo_attributes *to, const char *name, const ax_type *type, const ax_spec *spec, const ax_mesh *mesh) {
  ax_text text = {0};
  ax_text_add(&text, "#sdy.sharding");
  sharding_text(&text, type, spec, mesh);
  add_text(to, name, &text);
}

void ax_shardy_add_mesh(ax_hlo *hlo, const ax_mesh *mesh) {
  ax_hlo_attributes attributes = {.hlo = hlo};
  ax_text text = {0};
  ax_text_add(&text, "#sdy.mesh<[");
  for (uint32_t i = 0; i < mesh->count; i++)
    ax_text_add(&text, "%s\"%s\"=%lld", i > 0 ? ", " : "", mesh->axis[i].name, (long long)mesh->axis[i].size);
  ax_text_add(&text, "]>");
  add_text(&attributes, "mesh", &text);
  ax_hlo_add_string(&attributes, "sym_name", "mesh");
  ax_hlo_op(hlo, "sdy.mesh", NULL, 0, &attributes, NULL, 0);
}

/* --- Rules --- */

static ax_status check_mesh(const ax_hlo *hlo, const ax_eqn *eqn, const ax_mesh *mesh) {
  if (ax_mesh_equal(mesh, &hlo->axes, true)) return AX_OK;
  ax_text text = {0};
  ax_mesh_text(&text, mesh);
  const ax_status status = ax_error(AX_ABSENT, "%s over %s in a module of another mesh: a program that is handed over whole has one",
                                    eqn->prim->name, text.data != NULL ? text.data : "a mesh");
  ax_text_deinit(&text);
  return status;
}

ax_status ax_constraint_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_constraint_params *p = eqn->params;
  const ax_type *type = &hlo->program->types[eqn->out];
  ax_hlo_attributes attributes = {.hlo = hlo};
  if (!hlo->whole || hlo->by_hand) return ax_hlo_same(hlo, eqn, in, out);
  AX_TRY(check_mesh(hlo, eqn, &p->mesh));
  ax_shardy_add_sharding(&attributes, "sharding", type, &p->specs.v[0], &p->mesh);
  *out = ax_hlo_op(hlo, "sdy.sharding_constraint", in, 1, &attributes, type, 1);
  return AX_OK;
}

static void add_shardings(ax_hlo_attributes *to, const char *name, const ax_type *types, const ax_specs *specs, const ax_mesh *mesh) {
  ax_text text = {0};
  ax_text_add(&text, "#sdy.sharding_per_value<[");
  for (uint32_t i = 0; i < specs->count; i++) {
    if (i > 0) ax_text_add(&text, ", ");
    sharding_text(&text, &types[i], &specs->v[i], mesh);
  }
  ax_text_add(&text, "]>");
  add_text(to, name, &text);
}

static void add_manual_axes(ax_hlo_attributes *to, const ax_mesh *mesh) {
  ax_text text = {0};
  ax_text_add(&text, "#sdy<manual_axes{");
  for (uint32_t i = 0; i < mesh->count; i++) ax_text_add(&text, "%s\"%s\"", i > 0 ? ", " : "", mesh->axis[i].name);
  ax_text_add(&text, "}>");
  add_text(to, "manual_axes", &text);
}

/* types: of the operands, then of the results; ids: room for those of the body's parameters and results. */
static ax_status write_manual(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out, ax_type *types, uint32_t *ids) {
  const ax_shard_map_params *p = eqn->params;
  const ax_program *body = p->body;
  ax_hlo_attributes attributes = {.hlo = hlo};
  for (uint32_t i = 0; i < eqn->in_count; i++) types[i] = hlo->program->types[eqn->in[i]];
  for (uint32_t k = 0; k < eqn->out_count; k++) types[eqn->in_count + k] = hlo->program->types[eqn->out + k];
  const uint32_t first = ax_hlo_begin(hlo, "sdy.manual_computation", in, eqn->in_count, types + eqn->in_count, eqn->out_count);
  const uint32_t argument = ax_hlo_region_begin(hlo, body->types, body->in_count);
  for (uint32_t i = 0; i < body->in_count; i++) ids[i] = argument + i;
  hlo->by_hand = true;
  const ax_status status = hlo->inline_program(hlo, body, ids, ids + body->in_count);
  hlo->by_hand = false;
  AX_TRY(status);
  ax_hlo_op(hlo, "sdy.return", ids + body->in_count, body->out_count, NULL, NULL, 0);
  ax_hlo_region_close(hlo);
  add_shardings(&attributes, "in_shardings", types, &p->in_specs, &p->mesh);
  add_manual_axes(&attributes, &p->mesh);
  add_shardings(&attributes, "out_shardings", types + eqn->in_count, &p->out_specs, &p->mesh);
  ax_hlo_end(hlo, &attributes);
  for (uint32_t k = 0; k < eqn->out_count; k++) out[k] = first + k;
  return AX_OK;
}

ax_status ax_shard_map_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_shard_map_params *p = eqn->params;
  if (!hlo->whole || hlo->by_hand) return ax_absent_hlo(hlo, eqn, in, out);
  AX_TRY(check_mesh(hlo, eqn, &p->mesh));
  if (ax_shard_map_own(p) != ax_all_axes(&p->body->axes))
    return ax_error(AX_ABSENT, "shard_map with axes that are automatic inside is not handed over whole");
  const size_t values = (size_t)eqn->in_count + eqn->out_count;
  ax_type *types = ax_alloc(values * sizeof types[0]);
  uint32_t *ids = ax_alloc(values * sizeof ids[0]);
  const ax_status status = types != NULL && ids != NULL ? write_manual(hlo, eqn, in, out, types, ids) : ax_out_of_memory(values * sizeof types[0]);
  ax_free(types);
  ax_free(ids);
  return status;
}
