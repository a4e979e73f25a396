/* See vectors.h. */
#include "support/vectors.h"

#include <string.h>

#include "axle/linalg.h"
#include "axle/ops.h"
#include "ir/prim.h"
#include "linalg/matrices.h"
#include "xform/xform.h"

/* The tensor that is result `which` of the equation; NULL: it is no result of the program. */
static ax_tensor *result_of(const ax_program *program, const ax_eqn *eqn, uint32_t which, ax_tensor *const *tensors) {
  for (uint32_t k = 0; k < program->out_count; k++)
    if (program->outs[k] == eqn->out + which) return tensors[k];
  return NULL;
}

typedef struct vector { /* one of a matrix */
  int64_t first, step, elems;
} vector;

static vector vector_of(const ax_tensor *x, int64_t matrix, int64_t number, bool column) {
  const int64_t m = x->dims[x->rank - 2], n = x->dims[x->rank - 1];
  return column ? (vector){matrix * m * n + number, n, m} : (vector){matrix * m * n + number * n, 1, n};
}

static double product(const ax_tensor *a, const ax_tensor *b, vector v) {
  double sum = 0;
  for (int64_t i = 0; i < v.elems; i++) sum += test_get(a, v.first + i * v.step) * test_get(b, v.first + i * v.step);
  return sum;
}

static void turn(ax_tensor *x, vector v) {
  for (int64_t i = 0; i < v.elems; i++) test_set(x, v.first + i * v.step, -test_get(x, v.first + i * v.step));
}

static void align_eigh(ax_tensor *got, const ax_tensor *wanted) {
  const int64_t n = got->dims[got->rank - 1], matrices = ax_dims_elems(got->rank - 2, got->dims);
  for (int64_t i = 0; i < matrices * n; i++) {
    const vector v = vector_of(got, i / n, i % n, true);
    if (product(got, wanted, v) < 0) turn(got, v);
  }
}

static void align_svd(ax_tensor *u, ax_tensor *vt, const ax_tensor *wanted_u, const ax_tensor *wanted_vt) {
  const int64_t m = u->dims[u->rank - 1], n = vt->dims[vt->rank - 2], matrices = ax_dims_elems(u->rank - 2, u->dims), all = m > n ? m : n;
  for (int64_t i = 0; i < matrices * all; i++) {
    const int64_t j = i % all;
    const vector column = vector_of(u, i / all, j, true), row = vector_of(vt, i / all, j, false);
    const bool turns = j < m ? product(u, wanted_u, column) < 0 : product(vt, wanted_vt, row) < 0;
    if (turns && j < m) turn(u, column);
    if (turns && j < n) turn(vt, row);
  }
}

void test_align_vectors(const ax_program *program, ax_tensor *const *got, ax_tensor *const *wanted) {
  for (uint32_t e = 0; e < program->eqn_count; e++) {
    const ax_eqn *eqn = &program->eqns[e];
    const bool eigh = strcmp(eqn->prim->name, "eigh") == 0 && eqn->out_count == 2, svd = strcmp(eqn->prim->name, "svd") == 0 && eqn->out_count == 3;
    if ((!eigh && !svd) || ax_is_complex(program->types[eqn->in[0]].dtype)) continue;
    ax_tensor *first = result_of(program, eqn, eigh ? 0 : 1, got), *second = svd ? result_of(program, eqn, 2, got) : NULL;
    if (eigh && first != NULL) align_eigh(first, result_of(program, eqn, 0, wanted));
    if (svd && first != NULL && second != NULL)
      align_svd(first, second, result_of(program, eqn, 1, wanted), result_of(program, eqn, 2, wanted));
  }
}

/* --- What eig and schur fix --- */

enum { most_fixed = 8 };

typedef struct results {
  ax_value v[most_fixed];
  uint32_t count;
} results;

static void add(results *r, ax_value x) { r->v[r->count++] = x; }
static ax_value adjoint_product(ax_value q) { return ax_matmul(ax_matrix_adjoint(q), q); }

/* The traces of x, x^2 .. x^n: C[.., n]. */
static ax_value traces(ax_value x) {
  const ax_type type = ax_typeof(x);
  ax_value power = x, sums[16];
  if (ax_failed()) return ax_poison;
  const uint32_t n = (uint32_t)type.dims[type.rank - 1];
  for (uint32_t k = 0; k < n; k++) {
    sums[k] = ax_reduce_sum(ax_diagonal_to_vector(power), AX_DIMS(-1), false);
    power = ax_matmul(power, x);
  }
  return ax_stack(AX_LIST(n, sums), -1);
}

static void add_eig(results *r, ax_value x, const ax_value *made, uint32_t count, bool left_alone) {
  const ax_value w = made[0], complex = ax_matrix_as(x, w), columns = ax_expand_dims(w, -2);
  add(r, traces(ax_vector_to_diagonal(w)));
  for (uint32_t k = 1; k < count; k++) {
    const bool left = k == 1 && (count == 3 || left_alone);
    const ax_value of = left ? ax_matrix_adjoint(complex) : complex, values = left ? ax_conj(columns) : columns;
    add(r, ax_add(of, ax_sub(ax_mul(made[k], values), ax_matmul(of, made[k]))));
    add(r, ax_diagonal_to_vector(adjoint_product(made[k])));
  }
}

static void add_schur(results *r, ax_value x, const ax_value *made, uint32_t count) {
  const ax_type type = ax_typeof(x);
  const ax_value t = made[0], low = ax_matrix_lower(t, type.dtype == AX_F64 || type.dtype == AX_F32 ? -2 : -1);
  add(r, traces(t));
  add(r, ax_add(low, ax_full_like(low, 1)));
  if (count == 1) return;
  add(r, ax_add(x, ax_sub(ax_matmul(made[1], t), ax_matmul(x, made[1]))));
  add(r, adjoint_product(made[1]));
}

/* The first equation of those; AX_NONE: there is none, of matrices that have elements. */
static uint32_t find_free(const ax_program *program) {
  for (uint32_t e = 0; e < program->eqn_count; e++) {
    const ax_eqn *eqn = &program->eqns[e];
    const bool is = strcmp(eqn->prim->name, "eig") == 0 || strcmp(eqn->prim->name, "schur") == 0;
    if (is && ax_type_elems(&program->types[eqn->in[0]]) > 0) return e;
  }
  return AX_NONE;
}

ax_status test_fixed_program(const ax_program *program, ax_program **out) {
  const uint32_t e = find_free(program);
  ax_program_walk walk;
  ax_builder builder;
  results r = {.count = 0};
  *out = e == AX_NONE ? ax_program_retain((ax_program *)program) : NULL;
  if (e == AX_NONE) return AX_OK;
  if (!ax_walk_init(&walk, program)) return ax_out_of_memory(0);
  ax_builder_begin(&builder, &program->axes);
  for (uint32_t i = 0; i < program->in_count; i++) walk.value[i] = ax_builder_input(&builder, &program->types[i]);
  for (uint32_t k = 0; k <= e; k++) ax_walk_replay(&walk, &program->eqns[k]);
  const ax_eqn *eqn = &program->eqns[e];
  const ax_value x = walk.value[eqn->in[0]], *made = walk.value + eqn->out;
  if (eqn->prim->name[0] == 's') add_schur(&r, x, made, eqn->out_count);
  else add_eig(&r, x, made, eqn->out_count, *(const bool *)eqn->params);
  const ax_status status = ax_builder_finish(&builder, r.v, r.count, out, NULL, NULL);
  ax_walk_deinit(&walk);
  return status;
}
