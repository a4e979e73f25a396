/* A program as a StableHLO module: that of one device. A whole program is partitioned first (partition/partition.h); then each
   equation's hlo rule writes its operations, and the module is written around them.

     whole program                          module: one device
     x f32[8,4], w f32[4]                   @main(x: tensor<2x4xf32>, w: tensor<4xf32>)
     s = mul w w                              s = multiply w, w            the same everywhere
     y = shard_map[data=4] x s { .. }         ..                           the body
     z = closed_call y y { .. }               func.call @body_0            a function of the module, once for all its calls */
#include "axle/stablehlo.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "hlo/hlo.h"
#include "hlo/print.h"
#include "hlo/write_bytecode.h"
#include "ir/memo.h"
#include "ir/prim.h"
#include "mesh/shardy.h"
#include "partition/partition.h"

typedef struct module {
  ax_hlo hlo;   /* first: rules hand it back */
  ax_memo memo; /* of bodies that are called: `count` is 1 + the number of the function */
  const ax_program **bodies;
  uint32_t body_count, body_capacity;
  const ax_stablehlo_writing *how;
  const bool *donor; /* by parameter of @main */
} module;

/* --- The walk --- */

/* value: room for the SSA ids of the program's values; operand: for those of any one equation's operands. */
static ax_status write_eqns(ax_hlo *hlo, const ax_program *program, uint32_t *value, uint32_t *operand) {
  for (uint32_t i = 0; i < program->eqn_count; i++) {
    const ax_eqn *eqn = &program->eqns[i];
    for (uint32_t k = 0; k < eqn->in_count; k++) operand[k] = value[eqn->in[k]];
    AX_TRY(ax_hlo_eqn(hlo, eqn, operand, value + eqn->out));
  }
  return AX_OK;
}

/* ax_hlo.inline_program. */
static ax_status write_program(ax_hlo *hlo, const ax_program *program, const uint32_t *in, uint32_t *out) {
  AX_TRY(ax_hlo_hold(hlo, program)); /* constants of the module lie in it, and rules may release it before the module is printed */
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

/* The number of the body's function, which is written after the functions in progress. */
static ax_status function_of(module *m, const ax_program *body, uint32_t *number) {
  ax_memo_entry *entry = ax_memo_ask_equal(&m->memo, "function", body);
  if (entry == NULL) return ax_out_of_memory(0);
  if (entry->count == 0) {
    AX_TRY(ax_grow(&m->bodies, sizeof m->bodies[0], m->body_count, 1, &m->body_capacity));
    m->bodies[m->body_count++] = entry->made[0];
    entry->count = m->body_count;
  }
  *number = entry->count - 1;
  return AX_OK;
}

/* Room for the types of the program's results, which are filled in. */
static ax_type *result_types(const ax_program *program) {
  ax_type *types = ax_alloc(program->out_count * sizeof types[0]);
  for (uint32_t k = 0; types != NULL && k < program->out_count; k++) types[k] = program->types[program->outs[k]];
  return types;
}

/* ax_hlo.call_program. */
static ax_status write_call(ax_hlo *hlo, const ax_program *program, const uint32_t *in, uint32_t *out) {
  char callee[32];
  uint32_t number = 0;
  ax_hlo_attributes attributes = {.hlo = hlo};
  AX_TRY(function_of((module *)hlo, program, &number));
  ax_type *types = result_types(program);
  if (types == NULL) return ax_out_of_memory(program->out_count * sizeof types[0]);
  snprintf(callee, sizeof callee, "body_%" PRIu32, number);
  ax_hlo_add_symbol(&attributes, "callee", callee);
  const uint32_t first = ax_hlo_op(hlo, "func.call", in, program->in_count, &attributes, types, program->out_count);
  for (uint32_t k = 0; k < program->out_count; k++) out[k] = first + k;
  ax_free(types);
  return AX_OK;
}

/* --- The module --- */

typedef struct function {
  const char *name;
  bool main;
  const ax_stablehlo_writing *how; /* of @main: what its parameters and results are marked with; NULL */
  const bool *donor;               /* by parameter of @main */
} function;

/* The marks of one parameter or result: how it lies, or that it is one device's by itself; and whether it is given. */
static void mark_one(ax_hlo_attributes *to, const ax_type *type, const ax_spec *spec, bool donor) {
  if (donor) ax_hlo_add_bool(to, "jax.buffer_donor", true);
  if (to->hlo->whole) ax_shardy_add_sharding(to, "sdy.sharding", type, spec, &to->hlo->axes);
  else if (ax_mesh_devices(&to->hlo->axes) > 1) ax_hlo_add_string(to, "mhlo.sharding", "{manual}");
}

/* A list without any mark is left out. */
static void mark_all(ax_hlo_attributes *to, const char *name, ax_hlo_attributes *each, uint32_t count) {
  bool any = false;
  for (uint32_t i = 0; i < count; i++) any = any || each[i].count > 0;
  if (any) ax_hlo_add_each(to, name, each, count);
}

static void mark(ax_hlo *hlo, ax_hlo_attributes *to, const ax_program *program, const function *f, const ax_type *out_types) {
  const uint32_t most = program->in_count > program->out_count ? program->in_count : program->out_count;
  ax_hlo_attributes *each = ax_calloc((size_t)most + 1, sizeof each[0]);
  hlo->failed = hlo->failed || each == NULL;
  for (uint32_t i = 0; each != NULL && i < program->in_count; i++) {
    each[i].hlo = hlo;
    mark_one(&each[i], &program->types[i], f->how->in_specs != NULL ? &f->how->in_specs[i] : NULL, f->donor[i]);
  }
  if (each != NULL) mark_all(to, "arg_attrs", each, program->in_count);
  for (uint32_t k = 0; each != NULL && k < program->out_count; k++) {
    each[k] = (ax_hlo_attributes){.hlo = hlo};
    mark_one(&each[k], &out_types[k], f->how->out_specs != NULL ? &f->how->out_specs[k] : NULL, false);
  }
  if (each != NULL) mark_all(to, "res_attrs", each, program->out_count);
  ax_free(each);
}

static void end_function(ax_hlo *hlo, const ax_program *program, const function *f, const ax_type *out_types) {
  ax_hlo_attributes attributes = {.hlo = hlo};
  ax_hlo_add_string(&attributes, "sym_name", f->name);
  ax_hlo_add_string(&attributes, "sym_visibility", f->main ? "public" : "private");
  ax_hlo_add(&attributes, "function_type",
             (ax_hlo_attribute){.kind = AX_HLO_TYPE,
                                .type = ax_hlo_function_type(hlo, program->types, program->in_count, out_types, program->out_count)});
  if (f->how != NULL) mark(hlo, &attributes, program, f, out_types);
  ax_hlo_region_close(hlo);
  ax_hlo_end(hlo, &attributes);
}

/* ids: room for those of parameters and results. */
static ax_status write_function_with(ax_hlo *hlo, const ax_program *program, const function *f, uint32_t *ids, const ax_type *out_types) {
  uint32_t *in = ids, *out = ids + program->in_count;
  ax_hlo_begin(hlo, "func.func", NULL, 0, NULL, 0);
  const uint32_t argument = ax_hlo_region_begin(hlo, program->types, program->in_count);
  for (uint32_t i = 0; i < program->in_count; i++) in[i] = argument + i;
  AX_TRY(write_program(hlo, program, in, out));
  ax_hlo_op(hlo, "func.return", out, program->out_count, NULL, NULL, 0);
  end_function(hlo, program, f, out_types);
  return AX_OK;
}

static ax_status write_function(ax_hlo *hlo, const ax_program *program, const function *f) {
  ax_type *out_types = result_types(program);
  uint32_t *ids = ax_alloc(((size_t)program->in_count + program->out_count) * sizeof ids[0]);
  ax_status status = out_types != NULL && ids != NULL ? AX_OK : ax_out_of_memory(0);
  if (status == AX_OK) status = write_function_with(hlo, program, f, ids, out_types);
  ax_free(out_types);
  ax_free(ids);
  return status;
}

enum { most_devices = 1 << 20 };

static ax_status write_functions(module *m, const ax_program *program) {
  ax_hlo *hlo = &m->hlo;
  const int64_t devices = ax_mesh_devices(&hlo->axes);
  ax_hlo_attributes attributes = {.hlo = hlo};
  if (hlo->whole) ax_shardy_add_mesh(hlo, &hlo->axes);
  AX_TRY(write_function(hlo, program, &(function){"main", true, m->how, m->donor}));
  for (uint32_t i = 0; i < m->body_count; i++) { /* there may be more of them after each */
    char name[32];
    snprintf(name, sizeof name, "body_%" PRIu32, i);
    AX_TRY(write_function(hlo, m->bodies[i], &(function){.name = name}));
  }
  ax_hlo_add_string(&attributes, "sym_name", "axle");
  ax_hlo_add_short(&attributes, "mhlo.num_partitions", devices, "i32");
  ax_hlo_add_short(&attributes, "mhlo.num_replicas", 1, "i32");
  return ax_hlo_finish(hlo, &attributes);
}

/* What becomes of the module that was made. */
typedef ax_status module_use(const ax_hlo_module *module, uint32_t version, ax_text *out);

static ax_status print_module(const ax_hlo_module *module, AX_UNUSED uint32_t version, ax_text *out) { return ax_hlo_print(module, out); }

typedef struct making {
  module_use *use;
  uint32_t version;
  const ax_stablehlo_writing *how;
  const bool *donor;
} making;

/* Makes the module of a partitioned program, which is one device's, or of a whole one over a mesh. */
static ax_status use_program(const ax_program *program, const making *making, ax_text *out) {
  const ax_mesh *over = making->how->mesh;
  module m = {.hlo = {.inline_program = write_program, .call_program = write_call, .axes = over != NULL ? *over : program->axes},
              .how = making->how,
              .donor = making->donor};
  m.hlo.whole = over != NULL;
  m.hlo.at_once = making->how->at_once;
  m.hlo.precision = making->how->precision;
  if (ax_mesh_devices(&m.hlo.axes) > most_devices)
    return ax_error(AX_ABSENT,
                    "StableHLO lists every device at each collective: %" PRId64 " of them are more than the %d it is written for",
                    ax_mesh_devices(&m.hlo.axes), (int)most_devices);
  ax_status status = ax_hlo_init(&m.hlo);
  if (status == AX_OK) status = write_functions(&m, program);
  if (status == AX_OK) status = making->use(&m.hlo.module, making->version, out);
  ax_hlo_deinit(&m.hlo);
  ax_memo_deinit(&m.memo);
  ax_free(m.bodies);
  return status;
}

static ax_status use_module(const ax_program *program, const making *making, ax_text *out) {
  ax_program *partitioned;
  if (program->axes.count > 0 || making->how->mesh != NULL) return use_program(program, making, out);
  AX_TRY(ax_program_partition_plain(program, &partitioned));
  ax_status status = use_program(ax_partitioned_of(partitioned).body, making, out);
  ax_program_release(partitioned);
  return status;
}

static ax_status write(const ax_program *program, const ax_stablehlo_writing *how, char **out, size_t *out_bytes) {
  ax_text text = {0};
  making making = {.use = how->version != NULL ? ax_hlo_write_bytecode : print_module, .how = how};
  if (how->version != NULL) AX_TRY(ax_hlo_parse_version(how->version, &making.version));
  bool *donor = ax_calloc((size_t)program->in_count + 1, sizeof donor[0]);
  if (donor == NULL) return ax_out_of_memory(program->in_count);
  ax_status status = ax_args_mask(how->donate, "parameter", program->in_count, donor);
  making.donor = donor;
  if (status == AX_OK) status = use_module(program, &making, &text);
  const size_t length = text.length;
  if (status == AX_OK) status = ax_text_finish(&text, out);
  if (status == AX_OK) *out_bytes = length;
  ax_text_deinit(&text);
  ax_free(donor);
  return status;
}

static ax_status check_precision(const char *word) {
  if (word == NULL || strcmp(word, "HIGHEST") == 0 || strcmp(word, "HIGH") == 0 || strcmp(word, "DEFAULT") == 0) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "the precision is HIGHEST, HIGH or DEFAULT, and not \"%s\"", word);
}

ax_status (ax_program_stablehlo_with)(const ax_program *program, const ax_stablehlo_writing *writing, char **out, size_t *out_bytes) {
  *out = NULL;
  *out_bytes = 0;
  AX_TRY(ax_require(program, "program"));
  AX_TRY(ax_require(writing, "writing"));
  AX_TRY(check_precision(writing->precision));
  if (writing->mesh == NULL) return write(program, writing, out, out_bytes);
  AX_TRY(ax_mesh_check(writing->mesh));
  if (program->axes.count > 0) return ax_error(AX_INVALID_ARGUMENT, "a program of one device is not written over a mesh");
  if ((writing->in_specs == NULL && program->in_count > 0) || (writing->out_specs == NULL && program->out_count > 0))
    return ax_error(AX_INVALID_ARGUMENT, "a mesh without specs of the inputs and results");
  return write(program, writing, out, out_bytes);
}

ax_status ax_program_stablehlo(const ax_program *program, char **out) {
  const ax_stablehlo_writing how = {0};
  size_t bytes;
  *out = NULL;
  AX_TRY(ax_require(program, "program"));
  return write(program, &how, out, &bytes);
}

ax_status ax_program_stablehlo_bytecode(const ax_program *program, const char *version, char **out, size_t *out_bytes) {
  const ax_stablehlo_writing how = {.version = version != NULL ? version : "1.0.0"};
  *out = NULL;
  *out_bytes = 0;
  AX_TRY(ax_require(program, "program"));
  return write(program, &how, out, out_bytes);
}
