/* The identity of a program, independent of its values' names: equal programs have equal labels, equations and types, and so equal
   hashes. Scalar constants belong to their uses: where and how often they are made, and whether they are used, makes no difference.

     a:f32[] = 2.0   b = mul x a            x: label 0; b: label 1; a: a literal, compared and hashed in `mul` by its value */
#include <string.h>

#include "ir/prim.h"
#include "ir/program.h"

static void label(const ax_program *program, uint32_t *labels, uint32_t *count) {
  for (*count = 0; *count < program->in_count; ++*count) labels[*count] = *count;
  for (uint32_t i = 0; i < program->eqn_count; i++) {
    const ax_eqn *eqn = &program->eqns[i];
    if (ax_eqn_literal(eqn) != NULL) {
      labels[eqn->out] = AX_LITERAL | i;
      continue;
    }
    for (uint32_t k = 0; k < eqn->out_count; k++) labels[eqn->out + k] = (*count)++;
  }
}

static uint64_t hash_type(uint64_t hash, const ax_type *type) { /* field by field: there may be bytes of nothing between */
  const uint32_t words[] = {(uint32_t)type->form | (uint32_t)type->space << 16, type->dtype, type->rank, type->spread.kind};
  const ax_axis_set sets[] = {type->spread.varying, type->spread.reduced, type->spread.unreduced};
  hash = ax_hash_bytes(hash, words, sizeof words);
  hash = ax_hash_bytes(hash, type->dims, type->rank * sizeof type->dims[0]);
  return ax_hash_bytes(hash, sets, sizeof sets);
}

static uint64_t hash_operand(uint64_t hash, const ax_program *program, uint32_t id) {
  const ax_literal *literal = ax_value_literal(program, id);
  if (literal == NULL) return ax_hash_bytes(hash, &program->labels[id], sizeof program->labels[id]);
  hash = hash_type(hash, &literal->type);
  return ax_hash_bytes(hash, literal->data, ax_dtype_bytes(literal->type.dtype));
}

static uint64_t hash_program(const ax_program *program) {
  uint64_t hash = ax_hash_bytes(AX_HASH_SEED, &program->in_count, sizeof program->in_count);
  for (uint32_t i = 0; i < program->in_count; i++) hash = hash_type(hash, &program->types[i]);
  for (uint32_t i = 0; i < program->eqn_count; i++) {
    const ax_eqn *eqn = &program->eqns[i];
    if (ax_eqn_literal(eqn) != NULL) continue;
    hash = ax_hash_bytes(hash, eqn->prim->name, strlen(eqn->prim->name) + 1);
    for (uint32_t j = 0; j < eqn->in_count; j++) hash = hash_operand(hash, program, eqn->in[j]);
    hash = ax_params_hash(hash, eqn->prim, eqn->params);
    for (uint32_t k = 0; k < eqn->out_count; k++) hash = hash_type(hash, &program->types[eqn->out + k]);
  }
  for (uint32_t i = 0; i < program->out_count; i++) hash = hash_operand(hash, program, program->outs[i]);
  return hash;
}

void ax_program_identify(ax_program *program, uint32_t *labels) {
  label(program, labels, &program->label_count);
  program->hash = hash_program(program);
}

/* --- Equality --- */

static bool operands_equal(const ax_program *a, const uint32_t *a_ids, const ax_program *b, const uint32_t *b_ids,
                           uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    const ax_literal *x = ax_value_literal(a, a_ids[i]), *y = ax_value_literal(b, b_ids[i]);
    if ((x == NULL) != (y == NULL)) return false;
    if (x == NULL && a->labels[a_ids[i]] != b->labels[b_ids[i]]) return false;
    if (x != NULL && (x->type.dtype != y->type.dtype || memcmp(x->data, y->data, ax_dtype_bytes(x->type.dtype)) != 0))
      return false;
  }
  return true;
}

static bool types_equal(const ax_program *a, uint32_t a_first, const ax_program *b, uint32_t b_first, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (!ax_type_equal(&a->types[a_first + i], &b->types[b_first + i])) return false;
  return true;
}

static bool eqn_equal(const ax_program *a, const ax_eqn *x, const ax_program *b, const ax_eqn *y) {
  return x->prim == y->prim && x->in_count == y->in_count && x->out_count == y->out_count &&
         operands_equal(a, x->in, b, y->in, x->in_count) && types_equal(a, x->out, b, y->out, x->out_count) &&
         ax_params_equal(x->prim, x->params, y->params);
}

/* The next equation that is not a literal. */
static const ax_eqn *next_eqn(const ax_program *program, uint32_t *cursor) {
  while (*cursor < program->eqn_count && ax_eqn_literal(&program->eqns[*cursor]) != NULL) ++*cursor;
  return *cursor < program->eqn_count ? &program->eqns[(*cursor)++] : NULL;
}

/* Pairs that the comparison in progress on this thread has found equal. Bodies occur in several places, at each depth of a nest:
   comparing them anew would take exponential time. A pair may be overwritten by another one. */
enum { most_pairs = 256 };
typedef struct pair {
  const ax_program *a, *b;
} pair;
static _Thread_local pair pairs[most_pairs];
static _Thread_local uint32_t comparing; /* comparisons inside one another */

static pair *pair_of(const ax_program *a, const ax_program *b) {
  const pair key = {a, b};
  return &pairs[ax_hash_bytes(AX_HASH_SEED, &key, sizeof key) & (most_pairs - 1)];
}

static bool equal(const ax_program *a, const ax_program *b) {
  if (a->hash != b->hash || a->in_count != b->in_count || a->out_count != b->out_count ||
      a->label_count != b->label_count || !ax_mesh_equal(&a->axes, &b->axes, true) || !types_equal(a, 0, b, 0, a->in_count))
    return false;
  for (uint32_t i = 0, j = 0;;) {
    const ax_eqn *x = next_eqn(a, &i), *y = next_eqn(b, &j);
    if ((x == NULL) != (y == NULL) || (x != NULL && !eqn_equal(a, x, b, y))) return false;
    if (x == NULL) return operands_equal(a, a->outs, b, b->outs, a->out_count);
  }
}

/* Programs without bodies are compared as fast as they could be looked up. */
bool ax_program_equal(const ax_program *a, const ax_program *b) {
  if (a == b) return true;
  if (a == NULL || b == NULL) return false;
  if (a->nesting == 0 || b->nesting == 0) return equal(a, b);
  pair *pair = pair_of(a, b);
  if (comparing > 0 && pair->a == a && pair->b == b) return true;
  if (comparing == 0) memset(pairs, 0, sizeof pairs); /* programs of earlier comparisons may be gone */
  comparing++;
  const bool same = equal(a, b);
  comparing--;
  if (same) pair->a = a, pair->b = b;
  return same;
}
