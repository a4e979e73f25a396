/* JAX's calls of LAPACK on CPUs, custom calls of StableHLO whose targets are lapack_?potrf_ffi and so on, read as Axle's
   functions of matrices. Layouts say only where a matrix's elements lie, so they are not looked at. The last result, `info`, is 0
   for each matrix of a batch: where a factorisation fails Axle's gives NaN, as JAX does once it has seen `info`. */
#include "linalg/lapack_read.h"

#include <string.h>

#include "axle/linalg.h"
#include "axle/ops.h"
#include "ir/dtype.h"
#include "prim/bind.h"

/* A letter or a truth value of the call's configuration; -1: it has none of the name. */
static int64_t option(const ax_hlo_read_args *args, const char *name) {
  const ax_hlo_attribute *of_jax = ax_hlo_find(args->op, "mhlo.backend_config");
  const ax_hlo_attribute *config = of_jax != NULL ? of_jax : ax_hlo_find(args->op, "backend_config");
  const ax_hlo_attribute *found = config != NULL && config->kind == AX_HLO_DICTIONARY ? ax_hlo_item(config, name) : NULL;
  return found != NULL && (found->kind == AX_HLO_INTEGER || found->kind == AX_HLO_BOOL) ? found->integer : -1;
}

/* Zeros for results from `first` on: info, and what the routine leaves open. */
static void fill(const ax_hlo_read_args *args, uint32_t first) {
  for (uint32_t k = first; k < args->op->result_count; k++) {
    const ax_type *type = &args->out_types[k];
    args->out[k] = (ax_full)(type->dtype, AX_LIST(type->rank, type->dims), 0);
  }
}

/* --- Factorisations --- */

static void potrf(const ax_hlo_read_args *args) {
  const bool lower = option(args, "uplo") != 'U';
  const ax_value x = lower ? args->in[0] : ax_conjugated(ax_matrix_transpose(args->in[0])), l = ax_cholesky(x, false);
  args->out[0] = lower ? l : ax_conjugated(ax_matrix_transpose(l));
  fill(args, 1);
}

/* LAPACK counts rows from 1. */
static void getrf(const ax_hlo_read_args *args) {
  ax_value out[3];
  (ax_lu)(args->in[0], 3, out);
  args->out[0] = out[0];
  args->out[1] = ax_add(out[1], ax_integer(1));
  fill(args, 2);
}

static void geqrf(const ax_hlo_read_args *args) {
  (ax_geqrf)(args->in[0], 2, args->out);
  fill(args, 2);
}

static void geqp3(const ax_hlo_read_args *args) {
  ax_value out[3];
  (ax_geqp3)(args->in[0], args->in[1], 3, out);
  args->out[0] = out[0];
  args->out[1] = out[1];
  args->out[2] = out[2];
  fill(args, 3);
}

static void orgqr(const ax_hlo_read_args *args) {
  args->out[0] = ax_householder_product(args->in[0], args->in[1]);
  fill(args, 1);
}

static void ormqr(const ax_hlo_read_args *args) {
  args->out[0] = ax_ormqr(args->in[0], args->in[1], args->in[2], option(args, "left") != 0, option(args, "transpose") == 1);
  fill(args, 1);
}

/* --- Values and vectors --- */

static void syevd(const ax_hlo_read_args *args) {
  ax_value out[2];
  (ax_eigh)(args->in[0], option(args, "uplo") != 'U', false, 2, out);
  args->out[0] = out[0];
  args->out[1] = out[1];
  fill(args, 2);
}

/* x, s, u, vt, info: x is spoilt. */
static void gesdd(const ax_hlo_read_args *args) {
  const int64_t mode = option(args, "mode");
  ax_value out[3];
  fill(args, 0);
  if (mode == 'N') {
    (ax_svd)(args->in[0], false, false, 1, &args->out[1]);
    return;
  }
  (ax_svd)(args->in[0], mode == 'A', true, 3, out);
  args->out[1] = out[1];
  args->out[2] = out[0];
  args->out[3] = out[2];
}

/* Of real matrices the eigenvalues' two parts are two results. */
static void geev(const ax_hlo_read_args *args) {
  const bool real = !ax_is_complex(ax_typeof(args->in[0]).dtype);
  const bool left = option(args, "compute_left") == 'V', right = option(args, "compute_right") == 'V';
  ax_value out[3];
  uint32_t next = 0;
  fill(args, 0);
  (ax_eig)(args->in[0], left, right, 1 + (left ? 1 : 0) + (right ? 1 : 0), out);
  args->out[next++] = real ? ax_real_part(out[0]) : out[0];
  if (real) args->out[next++] = ax_imag_part(out[0]);
  if (left) args->out[next] = out[1];
  if (right) args->out[next + 1] = out[left ? 2 : 1];
}

/* t, q, eigenvalues, how many were sorted to the front, info. The eigenvalues are t's diagonal where it is complex. */
static void gees(const ax_hlo_read_args *args) {
  fill(args, 0);
  const bool vectors = option(args, "mode") == 'V';
  (ax_schur)(args->in[0], vectors, vectors ? 2 : 1, args->out);
}

static void gehrd(const ax_hlo_read_args *args) {
  (ax_hessenberg)(args->in[0], 2, args->out);
  fill(args, 2);
}

static void sytrd(const ax_hlo_read_args *args) {
  (ax_tridiagonal)(args->in[0], option(args, "uplo") != 'U', 4, args->out);
  fill(args, 4);
}

/* --- Systems of equations --- */

static void trsm(const ax_hlo_read_args *args) {
  const int64_t transpose = option(args, "trans_x");
  args->out[0] = ax_triangular_solve(args->in[0], args->in[1], option(args, "side") != 'R', option(args, "uplo") != 'U',
                                     transpose == 'T' || transpose == 'C', transpose == 'C', option(args, "diag") == 'U');
}

/* The three diagonals are spoilt; the fourth result is the solution. */
static void gtsv(const ax_hlo_read_args *args) {
  fill(args, 0);
  args->out[3] = ax_tridiagonal_solve(args->in[0], args->in[1], args->in[2], args->in[3]);
}

/* --- The table --- */

static const struct {
  const char *name, *of_complex; /* without the letter of the dtype */
  uint32_t operands, results;    /* at least */
  void (*read)(const ax_hlo_read_args *args);
} routines[] = {{"potrf", NULL, 1, 1, potrf},    {"getrf", NULL, 1, 2, getrf},    {"geqrf", NULL, 1, 2, geqrf},
                {"geqp3", NULL, 2, 3, geqp3},    {"orgqr", "ungqr", 2, 1, orgqr}, {"ormqr", "unmqr", 3, 1, ormqr},
                {"syevd", "heevd", 1, 2, syevd}, {"gesdd", NULL, 1, 5, gesdd},    {"geev", NULL, 1, 4, geev},
                {"gees", NULL, 1, 4, gees},      {"gehrd", NULL, 1, 2, gehrd},    {"sytrd", "hetrd", 1, 4, sytrd},
                {"trsm", NULL, 2, 1, trsm},      {"gtsv", NULL, 4, 4, gtsv}};

bool ax_lapack_reads(ax_hlo_slice target) {
  const size_t before = strlen("lapack_s"), behind = strlen("_ffi");
  if (target.length <= before + behind || strncmp(target.start, "lapack_", before - 1) != 0) return false;
  return strncmp(target.start + target.length - behind, "_ffi", behind) == 0;
}

ax_status ax_lapack_read(const ax_hlo_read_args *args, ax_hlo_slice target) {
  const ax_hlo_slice name = {target.start + strlen("lapack_s"), target.length - strlen("lapack_s_ffi")};
  for (size_t i = 0; i < AX_COUNT(routines); i++) {
    const bool complex = routines[i].of_complex != NULL && ax_hlo_slice_is(name, routines[i].of_complex);
    if (!complex && !ax_hlo_slice_is(name, routines[i].name)) continue;
    if (args->op->operand_count < routines[i].operands || args->op->result_count < routines[i].results)
      return ax_error(AX_INVALID_ARGUMENT, "%.*s takes %u operands and has %u results at least, and here are %u and %u",
                      (int)target.length, target.start, routines[i].operands, routines[i].results, args->op->operand_count,
                      args->op->result_count);
    routines[i].read(args);
    return AX_OK;
  }
  return ax_error(AX_ABSENT, "the routine %.*s is not read yet", (int)target.length, target.start);
}
