/* A program is found to be Threefry by running it on some numbers. Two things make that enough. What depends on the operands may only be
   added, shifted by numbers that do not, and combined by "or" and "xor", element by element: an array has one number here, which stands
   for each of its elements. And there may be no more of these operations than Threefry has. So there is none left that would do
   something else with other numbers, where all the others are needed to give the 64 bits of Threefry with these.

   What does not depend on the operands, as the number of a round, may be computed in other ways, too. Small constants, as the numbers
   of places that rounds rotate by, are arrays with elements of their own. */
#include "bridge/threefry_trial.h"

#include <string.h>

#include "base/threefry.h"
#include "control/closed_call.h"
#include "control/scan.h"
#include "ops/broadcast.h"
#include "prim/prims.h"

enum { most_elems = 8, most_steps = 20 };

typedef struct value {
  bool known;
  bool uniform; /* `data` is one element, which stands for each of the array's */
  bool depends; /* on the program's operands */
  ax_tensor tensor; /* of `data` */
  uint64_t data[most_elems];
} value;

/* What may still be done: equations in all, and operations on what depends on the operands. */
typedef struct budget {
  uint32_t equations, sums, shifts, ors, xors;
} budget;
enum { rounds = AX_THREEFRY_GROUPS * AX_THREEFRY_ROUNDS };
static const budget of_threefry = {.equations = 1000,
                                   .sums = 2 + rounds + 3 * AX_THREEFRY_GROUPS, /* of keys and counts, in rounds, of keys between them */
                                   .shifts = 2 * rounds,
                                   .ors = rounds,
                                   .xors = rounds + 2}; /* the third word of the key */

typedef struct trial {
  const ax_program *program;
  value *values;
  budget *left;
} trial;

static bool evaluate_program(const ax_program *program, const value *in, value *out, budget *left);

static const ax_type *type_of(const trial *t, uint32_t id) { return &t->program->types[id]; }

static value number(ax_dtype dtype, bool depends) {
  return (value){.known = true, .uniform = true, .depends = depends, .tensor = {.dtype = dtype}};
}

/* Of a small array; not known: it is none. */
static value array(const ax_type *type) {
  const int64_t elems = ax_type_elems(type);
  value v = {.known = elems <= most_elems && ax_dtype_bytes(type->dtype) <= sizeof v.data[0], .uniform = elems == 1};
  v.tensor = (ax_tensor){.dtype = type->dtype, .rank = type->rank};
  memcpy(v.tensor.dims, type->dims, type->rank * sizeof type->dims[0]);
  return v;
}

/* --- Equations: false where one is of another kind --- */

static bool spend(uint32_t *left) { return (*left)-- > 0; }

/* Of what depends on the operands. */
static bool is_of_threefry(trial *t, const ax_eqn *eqn) {
  switch (eqn->prim->scalar) {
    case AX_SCALAR_ADD: return spend(&t->left->sums);
    case AX_SCALAR_OR: return spend(&t->left->ors);
    case AX_SCALAR_XOR: return spend(&t->left->xors);
    case AX_SCALAR_SHIFT_LEFT:
    case AX_SCALAR_SHIFT_RIGHT_LOGICAL: return !t->values[eqn->in[1]].depends && spend(&t->left->shifts);
    default: return false;
  }
}

/* Of other numbers: those of rounds, which may come from a loop's counter. */
static bool is_on_words(const ax_prim *prim) {
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

static bool evaluate_words(trial *t, const ax_eqn *eqn) {
  bool depends = false;
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    const value *v = &t->values[eqn->in[i]];
    if (!v->uniform || ax_is_float(v->tensor.dtype)) return false;
    depends = depends || v->depends;
  }
  const bool allowed = depends ? is_of_threefry(t, eqn) : is_on_words(eqn->prim);
  return allowed && evaluate(t, eqn, number(type_of(t, eqn->out)->dtype, depends));
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

/* The result's elements are the number that the operand's are. */
static bool copy_number(trial *t, const ax_eqn *eqn) {
  t->values[eqn->out] = t->values[eqn->in[0]];
  return t->values[eqn->out].uniform;
}

static bool take_constant(trial *t, const ax_eqn *eqn) {
  const ax_literal *literal = eqn->params;
  value v = array(&literal->type);
  if (v.known) memcpy(v.data, literal->data, (size_t)ax_type_elems(&literal->type) * ax_dtype_bytes(literal->type.dtype));
  t->values[eqn->out] = v;
  return v.known;
}

/* The equation's operands; ax_free. NULL: no memory. */
static value *operands_of(const trial *t, const ax_eqn *eqn) {
  value *in = ax_calloc((size_t)eqn->in_count + 1, sizeof in[0]);
  for (uint32_t i = 0; in != NULL && i < eqn->in_count; i++) in[i] = t->values[eqn->in[i]];
  return in;
}

static bool evaluate_call(trial *t, const ax_eqn *eqn) {
  value *in = operands_of(t, eqn);
  const bool good =
      in != NULL && evaluate_program(((const ax_closed_call_params *)eqn->params)->body, in, &t->values[eqn->out], t->left);
  ax_free(in);
  return good;
}

static bool evaluate_scan(trial *t, const ax_eqn *eqn) {
  const ax_scan_params *p = eqn->params;
  if (p->num_consts + p->num_carry != eqn->in_count || p->num_carry != eqn->out_count || p->length > most_steps) return false;
  value *in = operands_of(t, eqn), *out = &t->values[eqn->out];
  if (in == NULL) return false;
  value *carries = in + p->num_consts;
  const size_t bytes = eqn->out_count * sizeof out[0];
  bool good = true;
  memcpy(out, carries, bytes);
  for (int64_t step = 0; good && step < p->length; step++) {
    memcpy(carries, out, bytes);
    good = evaluate_program(p->body, in, out, t->left);
  }
  ax_free(in);
  return good;
}

static bool evaluate_equation(trial *t, const ax_eqn *eqn) {
  const ax_prim *prim = eqn->prim;
  if (prim == &ax_prim_constant) return take_constant(t, eqn);
  if (prim == &ax_prim_closed_call) return evaluate_call(t, eqn);
  if (prim == &ax_prim_scan) return evaluate_scan(t, eqn);
  if (prim == &ax_prim_broadcast_in_dim) return (has_one(t, eqn->in[0]) || is_aligned(t, eqn)) && copy_number(t, eqn);
  if (prim == &ax_prim_reshape) return has_one(t, eqn->in[0]) && copy_number(t, eqn);
  if (prim == &ax_prim_slice) return !t->values[eqn->in[0]].uniform && evaluate(t, eqn, array(type_of(t, eqn->out)));
  return evaluate_words(t, eqn);
}

static bool evaluate_program(const ax_program *program, const value *in, value *out, budget *left) {
  trial t = {.program = program, .left = left, .values = ax_calloc((size_t)program->value_count + 1, sizeof t.values[0])};
  bool good = t.values != NULL;
  if (good) memcpy(t.values, in, program->in_count * sizeof in[0]);
  for (uint32_t e = 0; good && e < program->eqn_count; e++)
    good = spend(&left->equations) && evaluate_equation(&t, &program->eqns[e]);
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

static bool agrees_with_threefry(const ax_program *program, const uint32_t *words) {
  const uint64_t key = (uint64_t)words[0] << 32 | words[1], count = (uint64_t)words[2] << 32 | words[3];
  budget left = of_threefry;
  value in[4], out[2] = {{0}};
  for (int i = 0; i < 4; i++) {
    in[i] = number(AX_U32, true);
    memcpy(in[i].data, &words[i], sizeof words[i]);
  }
  if (!evaluate_program(program, in, out, &left) || !out[0].uniform || !out[1].uniform) return false;
  uint32_t high, low;
  memcpy(&high, out[0].data, sizeof high), memcpy(&low, out[1].data, sizeof low);
  return ((uint64_t)high << 32 | low) == ax_threefry_bits(key, count);
}

bool ax_is_threefry(const ax_program *program) {
  static const uint32_t keys_and_counts[][4] = {{0, 0, 0, 0}, /* the least, the largest, small ones, and digits of pi */
                                                {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX},
                                                {0, 42, 0, 1},
                                                {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                                                {0xa4093822, 0x299f31d0, 0x082efa98, 0xec4e6c89},
                                                {0x452821e6, 0x38d01377, 0xbe5466cf, 0x34e90c6c}};
  if (!takes_keys_and_counts(program)) return false;
  for (uint32_t i = 0; i < AX_COUNT(keys_and_counts); i++)
    if (!agrees_with_threefry(program, keys_and_counts[i])) return false;
  return true;
}
