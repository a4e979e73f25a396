/* Integers that are known while a module is read: constants, extents of arrays, and what is computed from them. Shapes are made of
   them.

     %0 = stablehlo.get_dimension_size %x, dim = 0      8      since %x is f32[8,4] here
     %1 = stablehlo.multiply %0, %c4                    32     an operation all of whose operands are known: it is traced as a
                                                               program of its own, and evaluated
     %2 = stablehlo.dynamic_reshape %x, %1                     f32[32]

   Where an operation that is not computed here takes such a value, it takes it as a constant. Each is small, and so is all that is
   computed on the way. */
#include <string.h>

#include "bridge/import.h"
#include "ir/dtype.h"
#include "ir/number.h"
#include "ir/program.h"
#include "prim/bind.h"
#include "prim/prims.h"
#include "prim/rules.h"
#include "xform/evaluate.h"

enum {
  most_elements = 64,      /* of a value that is known */
  most_on_the_way = 1 << 12 /* of what an operation on such values makes of them */
};

/* --- Literals --- */

static size_t literal_bytes(const ax_type *type) { return (size_t)ax_type_elems(type) * ax_dtype_bytes(type->dtype); }

const ax_literal *ax_known_copy(ax_hlo_import *import, const ax_type *type, const void *data) {
  ax_literal *literal = ax_arena_alloc(&import->arena, sizeof *literal);
  if (literal == NULL) return NULL;
  *literal = (ax_literal){*type, ax_arena_copy(&import->arena, data, literal_bytes(type)), NULL};
  return literal->data != NULL || literal_bytes(type) == 0 ? literal : NULL;
}

bool ax_known_same(const ax_literal *a, const ax_literal *b) {
  if (a == NULL || b == NULL) return a == b;
  if (a->type.dtype != b->type.dtype || !ax_same_shape(&a->type, &b->type)) return false;
  return literal_bytes(&a->type) == 0 || memcmp(a->data, b->data, literal_bytes(&a->type)) == 0;
}

uint64_t ax_known_hash(uint64_t seed, const ax_literal *literal) {
  return literal != NULL && literal_bytes(&literal->type) > 0 ? ax_hash_bytes(seed, literal->data, literal_bytes(&literal->type))
                                                               : ax_hash_bytes(seed, "", 1);
}

/* --- Whether they are looked at --- */

static const ax_reader_entry *entry_of(const ax_hlo_import *import, const ax_hlo_operation *op) {
  return op != NULL ? ax_reader_slot(import, op->name.start, op->name.length) : NULL;
}

ax_status ax_known_begin(ax_hlo_import *import) {
  const ax_hlo_module *module = import->module;
  bool wanted = false;
  for (uint32_t i = 0; i < module->attribute_count && !wanted; i++)
    wanted = ax_hlo_slice_is(module->attributes[i].name, "jax.uses_shape_polymorphism");
  for (uint32_t i = 0; i < module->value_count && !wanted; i++) {
    const ax_reader_entry *entry = entry_of(import, module->makers[i]);
    wanted = module->values[i]->dynamic || !module->values[i]->ranked || (entry != NULL && entry->shape_operands > 0);
  }
  if (!wanted) return AX_OK;
  import->known = ax_calloc(module->value_count + 1, sizeof import->known[0]);
  return import->known != NULL ? AX_OK : ax_out_of_memory(module->value_count * sizeof import->known[0]);
}

ax_value ax_known_value(const ax_hlo_import *import, uint32_t value) {
  const ax_literal *literal = import->known != NULL ? import->known[value] : NULL;
  const ax_value made = import->values[value];
  if (literal != NULL) return ax_bind1(&ax_prim_constant, literal, NULL, 0);
  const ax_hlo_attribute *constant = made.trace != ax_builder_current()->serial ? ax_hlo_constant(import->module, value) : NULL;
  ax_value again;
  return constant != NULL && constant->type->rank == 0 && ax_hlo_elements_value(constant, &again) == AX_OK ? again : made;
}

/* --- Computing them --- */

static bool is_integer(ax_dtype dtype) {
  const ax_dtype_kind kind = ax_dtype_get(dtype)->kind;
  return kind == AX_KIND_BOOL || kind == AX_KIND_SIGNED || kind == AX_KIND_UNSIGNED;
}

static bool may_be_known(const ax_hlo_value_type *type) {
  ax_type array;
  if (type->kind != AX_HLO_TENSOR || !type->element_known || !is_integer(type->dtype) || type->dynamic || type->rank > AX_MAX_RANK ||
      type->quantized != NULL)
    return false;
  return ax_hlo_array_type(type, &array) == AX_OK && ax_type_elems(&array) <= most_elements;
}

static bool is_computed(const ax_hlo_import *import, const ax_hlo_operation *op, const ax_reader_entry *entry) {
  if (import->known == NULL || op->result_count == 0) return false;
  /* A collective is of the devices around it, which an operation by itself has not: a device's number differs. */
  if (entry->prim != NULL && (entry->prim->kind == AX_REGION || entry->prim->kind == AX_COLLECTIVE)) return false;
  for (uint32_t i = 0; i < op->operand_count; i++)
    if (import->known[op->operands[i]] == NULL) return false;
  for (uint32_t k = 0; k < op->result_count; k++)
    if (!may_be_known(import->module->values[op->result + k])) return false;
  return true;
}

typedef struct computed { /* the operation alone */
  ax_hlo_import *import;
  const ax_hlo_operation *op;
  const ax_reader_entry *entry;
  const ax_hlo_frame *frame;
} computed;

static AX_BODY(run_alone) {
  const computed *c = context;
  (void)in;
  for (uint32_t i = 0; i < c->op->operand_count; i++) c->frame->in[i] = ax_known_value(c->import, c->op->operands[i]);
  ax_hlo_promote(c->import, c->op, c->frame->in);
  const ax_hlo_read_args args = {.prim = c->entry->prim,
                                 .op = c->op,
                                 .in = c->frame->in,
                                 .out = c->frame->out,
                                 .out_types = c->frame->types,
                                 .devices = &c->import->devices,
                                 .import = c->import};
  const ax_status status = c->entry->read(&args);
  if (status != AX_OK) ax_fail(status);
  for (uint32_t k = 0; k < c->op->result_count; k++) out[k] = c->frame->out[k];
}

static bool is_small(const ax_program *program, const computed *c) {
  for (uint32_t i = 0; i < program->value_count; i++)
    if (ax_type_elems(&program->types[i]) > most_on_the_way) return false;
  for (uint32_t k = 0; k < program->out_count; k++) {
    const ax_type *type = &program->types[program->outs[k]];
    if (type->dtype != c->frame->types[k].dtype || !ax_same_shape(type, &c->frame->types[k])) return false;
  }
  return program->effects == 0;
}

static ax_status evaluate(const computed *c, const ax_program *program, ax_tensor **out) {
  AX_TRY(ax_evaluate(program, NULL, out));
  for (uint32_t k = 0; k < program->out_count; k++) {
    c->import->known[c->op->result + k] = ax_known_copy(c->import, &c->frame->types[k], out[k]->data);
    if (c->import->known[c->op->result + k] == NULL) return ax_out_of_memory(literal_bytes(&c->frame->types[k]));
  }
  return AX_OK;
}

static ax_status compute(const computed *c, bool *done) {
  ax_program *program;
  *done = false;
  c->import->alone = true;
  const ax_status traced = (ax_trace)((ax_fn){run_alone, 0, c->op->result_count, (void *)(uintptr_t)c}, 0, NULL, &program);
  c->import->alone = false;
  AX_TRY(traced);
  ax_tensor **out = ax_calloc(program->out_count, sizeof out[0]);
  ax_status status = out != NULL ? AX_OK : ax_out_of_memory(program->out_count * sizeof out[0]);
  if (status == AX_OK && is_small(program, c)) {
    status = evaluate(c, program, out);
    *done = status == AX_OK;
  }
  for (uint32_t k = 0; out != NULL && k < program->out_count; k++) ax_tensor_release(out[k]);
  ax_free(out);
  ax_program_release(program);
  return status;
}

ax_status ax_known_fold(ax_hlo_import *import, const ax_hlo_operation *op, const ax_reader_entry *entry, const ax_hlo_frame *frame,
                        bool *done) {
  const computed c = {import, op, entry, frame};
  *done = false;
  if (!is_computed(import, op, entry)) return AX_OK;
  const ax_status status = compute(&c, done);
  for (uint32_t k = 0; !*done && k < op->result_count; k++) import->known[op->result + k] = NULL;
  return status == AX_OUT_OF_MEMORY ? status : AX_OK; /* what else is wrong comes to light where the operation is read */
}

/* --- What readers ask --- */

const ax_literal *ax_hlo_known(const ax_hlo_read_args *args, uint32_t operand) {
  const ax_hlo_import *import = args->import;
  return import->known != NULL ? import->known[args->op->operands[operand]] : NULL;
}

ax_status ax_hlo_known_integers(const ax_hlo_read_args *args, uint32_t operand, uint32_t most, int64_t *out, uint32_t *count) {
  const ax_literal *literal = ax_hlo_known(args, operand);
  if (literal == NULL)
    return ax_error(AX_INVALID_ARGUMENT, "operand %u says a shape, and is not known while the module is read: it must be computed "
                                         "from constants and extents alone", operand);
  if (literal->type.rank > 2)
    return ax_error(AX_INVALID_ARGUMENT, "operand %u, which says a shape, has rank %u", operand, literal->type.rank);
  const int64_t elems = ax_type_elems(&literal->type);
  if (elems > most) return ax_error(AX_INVALID_ARGUMENT, "operand %u, which says a shape, has %lld elements", operand, (long long)elems);
  for (int64_t i = 0; i < elems; i++) out[i] = ax_number_load(literal->type.dtype, literal->data, i).i;
  *count = (uint32_t)elems;
  return AX_OK;
}

ax_status ax_hlo_known_dims(const ax_hlo_read_args *args, uint32_t operand, ax_dims *out) {
  return ax_hlo_known_integers(args, operand, AX_MAX_RANK, out->v, &out->count);
}

ax_status ax_hlo_know(const ax_hlo_read_args *args, uint32_t result, const ax_type *type, const void *data) {
  ax_hlo_import *import = args->import;
  const uint32_t value = args->op->result + result;
  if (import->known == NULL) return AX_OK;
  import->known[value] = ax_known_copy(import, type, data);
  return import->known[value] != NULL ? AX_OK : ax_out_of_memory(literal_bytes(type));
}
