/* A program as a StableHLO module: that of one device. A whole program is partitioned first (mesh/partition.h); then each equation's
   hlo rule is called, and the module stands around what they write.

     whole program                          module: one device
     x f32[8,4], w f32[4]                   @main(x: tensor<2x4xf32>, w: tensor<4xf32>)
     s = mul w w                              s = multiply w, w            the same everywhere
     y = shard_map[data=4] x s { .. }         ..                           the body                                       */
#include "axle/stablehlo.h"

#include <inttypes.h>
#include <string.h>

#include "hlo/hlo.h"
#include "mesh/partition.h"

/* --- The walk --- */

/* value: room for the SSA ids of the program's values; operand: for those of any one equation's operands. */
static ax_status write_eqns(ax_hlo *hlo, const ax_program *program, uint32_t *value, uint32_t *operand) {
  for (uint32_t i = 0; i < program->eqn_count; i++) {
    const ax_eqn *eqn = &program->eqns[i];
    for (uint32_t k = 0; k < eqn->in_count; k++) operand[k] = value[eqn->in[k]];
    AX_TRY(eqn->prim->hlo(hlo, eqn, operand, value + eqn->out));
  }
  return AX_OK;
}

/* ax_hlo.inline_program. */
static ax_status write_program(ax_hlo *hlo, const ax_program *program, const uint32_t *in, uint32_t *out) {
  const ax_program *outer = hlo->program;
  size_t bytes = ((size_t)program->value_count + ax_most_operands(program)) * sizeof(uint32_t);
  uint32_t *value = ax_alloc(bytes);
  if (value == NULL) return ax_out_of_memory(bytes);
  if (program->in_count > 0) memcpy(value, in, program->in_count * sizeof in[0]);
  hlo->program = program;
  ax_status status = write_eqns(hlo, program, value, value + program->value_count);
  hlo->program = outer;
  for (uint32_t i = 0; status == AX_OK && i < program->out_count; i++) out[i] = value[program->outs[i]];
  ax_free(value);
  return status;
}

/* --- The module --- */

/* "%0: type {mark}" each, or without a name; `values` NULL: the first `count`. */
static void add_declared(ax_hlo *hlo, const ax_type *types, const uint32_t *values, uint32_t count, bool named) {
  bool marked = ax_mesh_devices(&hlo->axes) > 1;
  for (uint32_t i = 0; i < count; i++) {
    ax_text_add(&hlo->text, "%s", i > 0 ? ", " : "");
    if (named) ax_text_add(&hlo->text, "%%%u: ", hlo->next++);
    ax_hlo_type(&hlo->text, &types[values != NULL ? values[i] : i]);
    if (marked) ax_text_add(&hlo->text, " {mhlo.sharding = \"{manual}\"}");
  }
}

static void begin_main(ax_hlo *hlo, const ax_program *program) {
  ax_text_add(&hlo->text,
              "module @axle attributes {mhlo.num_partitions = %" PRId64
              " : i32, mhlo.num_replicas = 1 : i32} {\n"
              "  func.func public @main(",
              ax_mesh_devices(&hlo->axes));
  add_declared(hlo, program->types, NULL, program->in_count, true);
  ax_text_add(&hlo->text, ") -> (");
  add_declared(hlo, program->types, program->outs, program->out_count, false);
  ax_text_add(&hlo->text, ") {\n");
  hlo->indent = 2;
}

/* in, out, out_types: room for the ids of parameters and results, and the results' types. */
static ax_status write_main(ax_hlo *hlo, const ax_program *program, uint32_t *in, uint32_t *out, ax_type *out_types) {
  begin_main(hlo, program);
  for (uint32_t i = 0; i < program->in_count; i++) in[i] = i;
  AX_TRY(write_program(hlo, program, in, out));
  for (uint32_t i = 0; i < program->out_count; i++) out_types[i] = program->types[program->outs[i]];
  ax_hlo_op(hlo, "func.return", out, out_types, program->out_count, NULL, NULL, 0);
  ax_text_add(&hlo->text, "  }\n}\n");
  return AX_OK;
}

enum { most_devices = 1 << 20 };

/* Of what each device runs. */
static ax_status write_module(const ax_program *program, char **out) {
  ax_hlo hlo = {.inline_program = write_program, .axes = program->axes};
  if (ax_mesh_devices(&hlo.axes) > most_devices)
    return ax_error(AX_ABSENT, "StableHLO lists every device at each collective: %" PRId64 " of them are more than the %d it is written for",
                    ax_mesh_devices(&hlo.axes), (int)most_devices);
  uint32_t in_count = program->in_count, out_count = program->out_count;
  ax_type *out_types = ax_alloc(out_count * sizeof out_types[0]);
  uint32_t *ids = ax_alloc(((size_t)in_count + out_count) * sizeof ids[0]);
  ax_status status = out_types != NULL && ids != NULL ? AX_OK : ax_out_of_memory(0);
  if (status == AX_OK) status = write_main(&hlo, program, ids, ids + in_count, out_types);
  if (status == AX_OK) status = ax_text_finish(&hlo.text, out);
  ax_text_deinit(&hlo.text);
  ax_free(out_types);
  ax_free(ids);
  return status;
}

ax_status ax_program_stablehlo(const ax_program *program, char **out) {
  ax_program *partitioned;
  *out = NULL;
  AX_TRY(ax_require(program, "program"));
  if (program->axes.count > 0) return write_module(program, out);
  AX_TRY(ax_program_partition(program, &partitioned));
  ax_status status = write_module(ax_partitioned_of(partitioned).body, out);
  ax_program_release(partitioned);
  return status;
}
