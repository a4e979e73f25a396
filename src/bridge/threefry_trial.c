/* A program is found to be Threefry by trying it on some numbers. This is enough, since nothing is tried but sums, shifts and
   operations on bits, on each element by itself, in loops of a known length: such a function does not give the 64 bits of Threefry on
   all of them unless it gives them everywhere. So an array has one number here, which stands for each of its elements. Only small
   constants, as the numbers of places that rounds rotate by, are arrays with elements of their own. */
#include "bridge/threefry_trial.h"

#include <string.h>

#include "base/threefry.h"
#include "control/closed_call.h"
#include "control/scan.h"
#include "ops/broadcast.h"
#include "prim/prims.h"

enum { most_elems = 8, most_equations = 1000, most_steps = 20 };

typedef struct value {
  bool known, each; /* each: `data` is one element, which stands for each of the array's */
  ax_tensor tensor; /* of `data` */
  uint64_t data[most_elems];
} value;

typedef struct trial {
  const ax_program *program;
  value *values;
  uint32_t *left; /* equations that may still be tried */
} trial;

static bool run(const ax_program *program, const value *in, value *out, uint32_t *left);

static const ax_type *type_of(const trial *t, uint32_t id) { return &t->program->types[id]; }

static value number(ax_dtype dtype) { return (value){.known = true, .each = true, .tensor = {.dtype = dtype}}; }

/* Of a small array; not known: it is none. */
static value array(const ax_type *type) {
  const int64_t elems = ax_type_elems(type);
  value v = {.known = elems <= most_elems && ax_dtype_bytes(type->dtype) <= sizeof v.data[0], .each = elems == 1};
  v.tensor = (ax_tensor){.dtype = type->dtype, .rank = type->rank};
  memcpy(v.tensor.dims, type->dims, type->rank * sizeof type->dims[0]);
  return v;
}

/* --- Equations: false where one is of another kind --- */

static bool is_tried(const ax_prim *prim) {
  switch (prim->scalar) {
    case AX_SCALAR_ADD:
    case AX_SCALAR_SUB:
    case AX_SCALAR_AND:
    case AX_SCALAR_OR:
    case AX_SCALAR_XOR:
    case AX_SCALAR_NOT:
    case AX_SCALAR_MAX: /* how often a loop runs */
    case AX_SCALAR_SHIFT_LEFT:
    case AX_SCALAR_SHIFT_RIGHT_LOGICAL: return true;
    default: return prim == &ax_prim_convert_element_type;
  }
}

/* By the primitive's own rule. */
static bool evaluate(trial *t, const ax_eqn *eqn, value out) {
  ax_tensor in[2], *operands[2], *result = &out.tensor;
  if (eqn->in_count > AX_COUNT(in) || eqn->out_count != 1 || !out.known) return false;
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    value *v = &t->values[eqn->in[i]];
    in[i] = v->tensor;
    in[i].data = v->data;
    operands[i] = &in[i];
  }
  result->data = out.data;
  const ax_eval_args args = {.eqn = eqn, .axes = &t->program->axes, .lanes = 1, .in = operands, .out = &result};
  if (eqn->prim->eval(&args) != AX_OK) return false;
  t->values[eqn->out] = out;
  return true;
}

static bool all_are_numbers(const trial *t, const ax_eqn *eqn) {
  for (uint32_t i = 0; i < eqn->in_count; i++)
    if (!t->values[eqn->in[i]].each || ax_is_float(type_of(t, eqn->in[i])->dtype)) return false;
  return true;
}

/* Whether element i of the result is element i of the operand, or its only one: dimensions are added in front, or have one
   element. */
static bool is_aligned(const trial *t, const ax_eqn *eqn) {
  const ax_broadcast_params *p = eqn->params;
  const ax_type *from = type_of(t, eqn->in[0]), *to = type_of(t, eqn->out);
  for (uint32_t d = 0; d < from->rank; d++)
    if (p->broadcast_dimensions.v[d] != (int64_t)d + to->rank - from->rank) return false;
  return true;
}

static bool has_one(const trial *t, uint32_t id) { return ax_type_elems(type_of(t, id)) == 1; }

/* The number, as each of the result's. */
static bool pass_on(trial *t, const ax_eqn *eqn) {
  t->values[eqn->out] = t->values[eqn->in[0]];
  return t->values[eqn->out].each;
}

static bool take_constant(trial *t, const ax_eqn *eqn) {
  const ax_literal *literal = eqn->params;
  value v = array(&literal->type);
  if (v.known) memcpy(v.data, literal->data, (size_t)ax_type_elems(&literal->type) * ax_dtype_bytes(literal->type.dtype));
  t->values[eqn->out] = v;
  return v.known;
}

static bool call(trial *t, const ax_eqn *eqn) {
  value *in = ax_calloc((size_t)eqn->in_count + 1, sizeof in[0]);
  if (in == NULL) return false;
  for (uint32_t i = 0; i < eqn->in_count; i++) in[i] = t->values[eqn->in[i]];
  const bool good = run(((const ax_closed_call_params *)eqn->params)->body, in, &t->values[eqn->out], t->left);
  ax_free(in);
  return good;
}

static bool repeat(trial *t, const ax_eqn *eqn) {
  const ax_scan_params *p = eqn->params;
  const int64_t carried = p->num_consts + p->num_carry;
  if (carried != eqn->in_count || p->num_carry != eqn->out_count || p->length > most_steps) return false;
  value *in = ax_calloc((size_t)carried + 1, sizeof in[0]), *out = &t->values[eqn->out];
  bool good = in != NULL;
  for (int64_t i = 0; good && i < carried; i++) in[i] = t->values[eqn->in[i]];
  for (int64_t step = 0; good && step < p->length; step++) {
    good = run(p->body, in, out, t->left);
    memcpy(in + p->num_consts, out, (size_t)p->num_carry * sizeof out[0]);
  }
  if (good) memcpy(out, in + p->num_consts, (size_t)p->num_carry * sizeof out[0]);
  ax_free(in);
  return good;
}

static bool try_equation(trial *t, const ax_eqn *eqn) {
  const ax_prim *prim = eqn->prim;
  if (prim == &ax_prim_constant) return take_constant(t, eqn);
  if (prim == &ax_prim_closed_call) return call(t, eqn);
  if (prim == &ax_prim_scan) return repeat(t, eqn);
  if (prim == &ax_prim_broadcast_in_dim) return (has_one(t, eqn->in[0]) || is_aligned(t, eqn)) && pass_on(t, eqn);
  if (prim == &ax_prim_reshape) return has_one(t, eqn->in[0]) && pass_on(t, eqn);
  if (prim == &ax_prim_slice) return !t->values[eqn->in[0]].each && evaluate(t, eqn, array(type_of(t, eqn->out)));
  return is_tried(prim) && all_are_numbers(t, eqn) && evaluate(t, eqn, number(type_of(t, eqn->out)->dtype));
}

static bool run(const ax_program *program, const value *in, value *out, uint32_t *left) {
  trial t = {.program = program, .left = left, .values = ax_calloc((size_t)program->value_count + 1, sizeof t.values[0])};
  bool good = t.values != NULL;
  if (good) memcpy(t.values, in, program->in_count * sizeof in[0]);
  for (uint32_t e = 0; good && e < program->eqn_count; e++) good = (*left)-- > 1 && try_equation(&t, &program->eqns[e]);
  for (uint32_t k = 0; good && k < program->out_count; k++) out[k] = t.values[program->outs[k]];
  ax_free(t.values);
  return good;
}

/* --- The trial --- */

static bool takes_keys_and_counts(const ax_program *program) {
  if (program->in_count != 4 || program->out_count != 2 || program->effects != 0) return false;
  const ax_type *out = &program->types[program->outs[0]];
  for (uint32_t i = 0; i < 6; i++) {
    const ax_type *type = &program->types[i < 4 ? i : program->outs[i - 4]];
    if (type->dtype != AX_U32 || type->form != AX_ARRAY || (i >= 4 && !ax_same_shape(type, out))) return false;
    if (type->rank > 0 && type->rank != out->rank) return false;
    for (uint32_t d = 0; d < type->rank; d++)
      if (type->dims[d] != out->dims[d] && type->dims[d] != 1) return false;
  }
  return true;
}

static bool gives_the_same(const ax_program *program, const uint32_t *words, uint32_t *left) {
  const uint64_t key = (uint64_t)words[0] << 32 | words[1], count = (uint64_t)words[2] << 32 | words[3];
  value in[4], out[2] = {{0}};
  for (int i = 0; i < 4; i++) {
    in[i] = number(AX_U32);
    memcpy(in[i].data, &words[i], sizeof words[i]);
  }
  if (!run(program, in, out, left) || !out[0].each || !out[1].each) return false;
  uint32_t high, low;
  memcpy(&high, out[0].data, sizeof high), memcpy(&low, out[1].data, sizeof low);
  return ((uint64_t)high << 32 | low) == ax_threefry_bits(key, count);
}

bool ax_is_threefry(const ax_program *program) {
  static const uint32_t tried[][4] = {{0, 0, 0, 0},
                                      {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX},
                                      {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                                      {0xa4093822, 0x299f31d0, 0x082efa98, 0xec4e6c89},
                                      {0, 42, 0, 1},
                                      {0x452821e6, 0x38d01377, 0xbe5466cf, 0x34e90c6c}};
  if (!takes_keys_and_counts(program)) return false;
  for (uint32_t i = 0; i < AX_COUNT(tried); i++) {
    uint32_t left = most_equations;
    if (!gives_the_same(program, tried[i], &left)) return false;
  }
  return true;
}
