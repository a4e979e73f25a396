/* A program as a StableHLO module: a walk that calls each equation's hlo rule, and the module around it.

     whole program                          module: one device
     x f32[8,4], w f32[4]                   @main(x: tensor<2x4xf32>, w: tensor<4xf32>)
     s = mul w w                              s = multiply w, w            on the same values everywhere
     y = shard_map[data=4] x s { .. }         ..                           the body, inlined

   Outside shard_maps a value is what its device holds of it: its local type. An equation there needs whole values, so those
   whose local type is the global one. An equation that puts a program over a mesh is known by its parameters: a mesh and a
   program. */
#include "axle/stablehlo.h"

#include <inttypes.h>
#include <string.h>

#include "hlo/hlo.h"

static const void *find_param(const ax_eqn *eqn, ax_param_kind kind) {
  for (uint32_t i = 0; i < eqn->prim->param_count; i++)
    if (eqn->prim->params[i].kind == kind) return ax_param_at(eqn, &eqn->prim->params[i]);
  return NULL;
}

static const ax_mesh *mesh_of(const ax_eqn *eqn) { return find_param(eqn, AX_PARAM_MESH); }
/* The program that an equation with a mesh puts over it. */
static const ax_program *body_of(const ax_eqn *eqn) { return *(ax_program *const *)find_param(eqn, AX_PARAM_PROGRAM); }

/* --- The walk --- */

/* SSA ids of the values of a program being written, and room for an equation's operands. */
typedef struct ids {
  uint32_t *value, *operand;
} ids;

static ax_status ids_init(ids *ids, const ax_program *program, const uint32_t *in) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < program->eqn_count; i++)
    if (program->eqns[i].in_count > most) most = program->eqns[i].in_count;
  size_t bytes = ((size_t)program->value_count + most) * sizeof ids->value[0];
  ids->value = ax_alloc(bytes);
  if (ids->value == NULL) return ax_out_of_memory(bytes);
  ids->operand = ids->value + program->value_count;
  if (program->in_count > 0) memcpy(ids->value, in, program->in_count * sizeof in[0]);
  return AX_OK;
}

static const uint32_t *operands(const ids *ids, const ax_eqn *eqn) {
  for (uint32_t i = 0; i < eqn->in_count; i++) ids->operand[i] = ids->value[eqn->in[i]];
  return ids->operand;
}

static void results(const ids *ids, const ax_program *program, uint32_t *out) {
  for (uint32_t i = 0; i < program->out_count; i++) out[i] = ids->value[program->outs[i]];
}

/* ax_hlo.inline_program. */
static ax_status write_program(ax_hlo *hlo, const ax_program *program, const uint32_t *in, uint32_t *out) {
  const ax_program *outer = hlo->program;
  ids ids;
  AX_TRY(ids_init(&ids, program, in));
  hlo->program = program;
  ax_status status = AX_OK;
  for (uint32_t i = 0; i < program->eqn_count && status == AX_OK; i++) {
    const ax_eqn *eqn = &program->eqns[i];
    status = eqn->prim->hlo(hlo, eqn, operands(&ids, eqn), ids.value + eqn->out);
  }
  hlo->program = outer;
  if (status == AX_OK) results(&ids, program, out);
  ax_free(ids.value);
  return status;
}

/* --- Whole programs: local types --- */

/* Shape and dtype: axes have no meaning outside the body. */
static ax_type plain(const ax_type *type) { return ax_array_type(type->dtype, type->rank, type->dims); }

/* What each device holds of the values of a whole program. Of an input: what the first shard_map that takes it wants. */
static ax_type *local_types(const ax_program *program) {
  size_t bytes = program->value_count * sizeof(ax_type);
  ax_type *local = ax_alloc(bytes);
  if (local == NULL) return NULL;
  if (bytes > 0) memcpy(local, program->types, bytes);
  for (uint32_t i = program->eqn_count; i-- > 0;) {
    const ax_eqn *eqn = &program->eqns[i];
    if (mesh_of(eqn) == NULL) continue;
    const ax_program *body = body_of(eqn);
    for (uint32_t k = 0; k < eqn->in_count; k++)
      if (eqn->in[k] < program->in_count) local[eqn->in[k]] = plain(&body->types[k]);
    for (uint32_t k = 0; k < eqn->out_count; k++) local[eqn->out + k] = plain(&body->types[body->outs[k]]);
  }
  return local;
}

static ax_status check_operands(const ax_program *program, const ax_eqn *eqn, const ax_type *local) {
  const ax_mesh *mesh = mesh_of(eqn);
  const ax_type *inside = mesh != NULL ? body_of(eqn)->types : NULL;
  for (uint32_t k = 0; k < eqn->in_count; k++) {
    const ax_type *held = &local[eqn->in[k]];
    ax_type wanted = plain(mesh != NULL ? &inside[k] : &program->types[eqn->in[k]]);
    if (ax_same_shape(held, &wanted)) continue;
    return ax_error(AX_ABSENT,
                    "%s: operand %u is %s on each device, but is used as %s; resharding has no StableHLO yet",
                    eqn->prim->name, k, ax_type_string(held, &program->axes), ax_type_string(&wanted, &program->axes));
  }
  return AX_OK;
}

static ax_status write_whole(ax_hlo *hlo, const ax_program *program, const ax_type *local, const uint32_t *in,
                             uint32_t *out) {
  ids ids;
  AX_TRY(ids_init(&ids, program, in));
  hlo->program = program;
  ax_status status = AX_OK;
  for (uint32_t i = 0; i < program->eqn_count && status == AX_OK; i++) {
    const ax_eqn *eqn = &program->eqns[i];
    status = check_operands(program, eqn, local);
    if (status != AX_OK) break;
    if (mesh_of(eqn) != NULL)
      status = write_program(hlo, body_of(eqn), operands(&ids, eqn), ids.value + eqn->out);
    else
      status = eqn->prim->hlo(hlo, eqn, operands(&ids, eqn), ids.value + eqn->out);
  }
  if (status == AX_OK) results(&ids, program, out);
  ax_free(ids.value);
  return status;
}

/* The devices: the mesh of the program's shard_maps, which must be one, or its own axis environment. */
static ax_status find_mesh(const ax_program *program, ax_mesh *out) {
  const ax_mesh *found = NULL;
  for (uint32_t i = 0; i < program->eqn_count; i++) {
    const ax_mesh *mesh = mesh_of(&program->eqns[i]);
    if (mesh == NULL) continue;
    if (program->axes.count > 0)
      return ax_error(AX_ABSENT, "a shard_map inside a per-device program has no StableHLO yet");
    if (found != NULL && !ax_mesh_equal(found, mesh, false))
      return ax_error(AX_ABSENT, "shard_maps over different meshes have no StableHLO yet");
    found = mesh;
  }
  *out = found != NULL ? *found : program->axes;
  return AX_OK;
}

/* --- The module --- */

/* "%0: type {mark}" each, or without a name; `values` NULL: the first `count`. */
static void add_declared(ax_hlo *hlo, const ax_type *local, const uint32_t *values, uint32_t count, bool named) {
  bool marked = ax_mesh_devices(&hlo->axes) > 1;
  for (uint32_t i = 0; i < count; i++) {
    ax_text_add(&hlo->text, "%s", i > 0 ? ", " : "");
    if (named) ax_text_add(&hlo->text, "%%%u: ", hlo->next++);
    ax_hlo_type(&hlo->text, &local[values != NULL ? values[i] : i]);
    if (marked) ax_text_add(&hlo->text, " {mhlo.sharding = \"{manual}\"}");
  }
}

static void begin_main(ax_hlo *hlo, const ax_program *program, const ax_type *local) {
  ax_text_add(&hlo->text,
              "module @axle attributes {mhlo.num_partitions = %" PRId64
              " : i32, mhlo.num_replicas = 1 : i32} {\n"
              "  func.func public @main(",
              ax_mesh_devices(&hlo->axes));
  add_declared(hlo, local, NULL, program->in_count, true);
  ax_text_add(&hlo->text, ") -> (");
  add_declared(hlo, local, program->outs, program->out_count, false);
  ax_text_add(&hlo->text, ") {\n");
  hlo->indent = 2;
}

/* in, out, out_types: room for the ids of parameters and results, and the results' types. */
static ax_status write_main(ax_hlo *hlo, const ax_program *program, const ax_type *local, uint32_t *in, uint32_t *out,
                            ax_type *out_types) {
  begin_main(hlo, program, local);
  for (uint32_t i = 0; i < program->in_count; i++) in[i] = i;
  AX_TRY(write_whole(hlo, program, local, in, out));
  for (uint32_t i = 0; i < program->out_count; i++) out_types[i] = local[program->outs[i]];
  ax_hlo_op(hlo, "func.return", out, out_types, program->out_count, NULL, NULL, 0);
  ax_text_add(&hlo->text, "  }\n}\n");
  return AX_OK;
}

enum { most_devices = 1 << 20 };

ax_status ax_program_stablehlo(const ax_program *program, char **out) {
  *out = NULL;
  AX_TRY(ax_require(program, "program"));
  ax_hlo hlo = {.inline_program = write_program};
  AX_TRY(find_mesh(program, &hlo.axes));
  if (ax_mesh_devices(&hlo.axes) > most_devices)
    return ax_error(AX_ABSENT, "StableHLO lists every device at each collective: %" PRId64 " of them are more than the %d it is written for",
                    ax_mesh_devices(&hlo.axes), (int)most_devices);
  uint32_t in_count = program->in_count, out_count = program->out_count;
  ax_type *local = local_types(program), *out_types = ax_alloc(out_count * sizeof out_types[0]);
  uint32_t *ids = ax_alloc(((size_t)in_count + out_count) * sizeof ids[0]);
  ax_status status = AX_OK;
  if (local == NULL || out_types == NULL || ids == NULL)
    status = ax_out_of_memory(0);
  else
    status = write_main(&hlo, program, local, ids, ids + in_count, out_types);
  if (status == AX_OK) status = ax_text_finish(&hlo.text, out);
  ax_text_deinit(&hlo.text);
  ax_free(local);
  ax_free(out_types);
  ax_free(ids);
  return status;
}
