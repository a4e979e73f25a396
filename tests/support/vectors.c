/* See vectors.h. */
#include "support/vectors.h"

#include <string.h>

#include "ir/prim.h"

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
