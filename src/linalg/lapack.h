/* LAPACK and BLAS by OpenBLAS (BSD-3-Clause), opened by name when the first routine of a program is lowered.

   Many threads call it at once, each for matrices of its own, and each call runs on its caller's thread alone. OpenBLAS built with
   threads has locks on the memory that its calls share; built without, it has none and gives wrong numbers. So only a build with
   threads is taken, and is told to use one. That setting is the process's: a program that uses the same OpenBLAS on several threads
   of its own sets their number again after its first such Axle program has been compiled.

   Routines take numbers by their address, as Fortran does, matrices column by column, and the lengths of texts behind all else. */
#ifndef AX_LINALG_LAPACK_H
#define AX_LINALG_LAPACK_H

#include "axle/type.h"
#include "base/base.h"

/* One dtype's routines. A matrix has `ld` elements from one column to the next, at least 1. *info: 0, or what failed. lwork -1 asks
   for the size of `work`, which is stored in its first element. Those of complex numbers for which a field says so are there for
   c64 and c128 alone; their rwork, and the values of Hermitian matrices, are real numbers. Those beside them are there for f32 and
   f64. */
typedef struct ax_lapack {
  void (*potrf)(const char *uplo, const int *n, void *a, const int *lda, int *info, size_t);
  void (*trsm)(const char *side, const char *uplo, const char *trans, const char *diag, const int *m, const int *n,
               const void *alpha, const void *a, const int *lda, void *b, const int *ldb, size_t, size_t, size_t, size_t);
  void (*trsv)(const char *uplo, const char *trans, const char *diag, const int *n, const void *a, const int *lda, void *x,
               const int *incx, size_t, size_t, size_t);
  void (*getrf)(const int *m, const int *n, void *a, const int *lda, int *pivots, int *info);
  void (*geqrf)(const int *m, const int *n, void *a, const int *lda, void *taus, void *work, const int *lwork, int *info);
  void (*geqp3)(const int *m, const int *n, void *a, const int *lda, int *jpvt, void *taus, void *work, const int *lwork, int *info);
  void (*orgqr)(const int *m, const int *n, const int *k, void *a, const int *lda, const void *taus, void *work, const int *lwork,
                int *info);
  void (*ormqr)(const char *side, const char *trans, const int *m, const int *n, const int *k, const void *a, const int *lda,
                const void *taus, void *c, const int *ldc, void *work, const int *lwork, int *info, size_t, size_t);
  void (*syevd)(const char *jobz, const char *uplo, const int *n, void *a, const int *lda, void *w, void *work, const int *lwork,
                int *iwork, const int *liwork, int *info, size_t, size_t);
  void (*gesdd)(const char *jobz, const int *m, const int *n, void *a, const int *lda, void *s, void *u, const int *ldu, void *vt,
                const int *ldvt, void *work, const int *lwork, int *iwork, int *info, size_t);
  void (*gtsv)(const int *n, const int *nrhs, void *dl, void *d, void *du, void *b, const int *ldb, int *info);
  void (*sytrd)(const char *uplo, const int *n, void *a, const int *lda, void *d, void *e, void *taus, void *work, const int *lwork,
                int *info, size_t);
  void (*gehrd)(const int *n, const int *ilo, const int *ihi, void *a, const int *lda, void *taus, void *work, const int *lwork,
                int *info);
  void (*gees)(const char *jobvs, const char *sort, void *select, const int *n, void *a, const int *lda, int *sdim, void *wr, void *wi,
               void *vs, const int *ldvs, void *work, const int *lwork, int *bwork, int *info, size_t, size_t);
  void (*geev)(const char *jobvl, const char *jobvr, const int *n, void *a, const int *lda, void *wr, void *wi, void *vl,
               const int *ldvl, void *vr, const int *ldvr, void *work, const int *lwork, int *info, size_t, size_t);
  /* Of complex numbers. */
  void (*complex_geqp3)(const int *m, const int *n, void *a, const int *lda, int *jpvt, void *taus, void *work, const int *lwork,
                        void *rwork, int *info);
  void (*heevd)(const char *jobz, const char *uplo, const int *n, void *a, const int *lda, void *w, void *work, const int *lwork,
                void *rwork, const int *lrwork, int *iwork, const int *liwork, int *info, size_t, size_t);
  void (*complex_gesdd)(const char *jobz, const int *m, const int *n, void *a, const int *lda, void *s, void *u, const int *ldu,
                        void *vt, const int *ldvt, void *work, const int *lwork, void *rwork, int *iwork, int *info, size_t);
  void (*complex_gees)(const char *jobvs, const char *sort, void *select, const int *n, void *a, const int *lda, int *sdim, void *w,
                       void *vs, const int *ldvs, void *work, const int *lwork, void *rwork, int *bwork, int *info, size_t, size_t);
  void (*complex_geev)(const char *jobvl, const char *jobvr, const int *n, void *a, const int *lda, void *w, void *vl,
                       const int *ldvl, void *vr, const int *ldvr, void *work, const int *lwork, void *rwork, int *info, size_t,
                       size_t);
} ax_lapack;

/* The routines of f32, f64, c64 or c128; any thread. AX_UNAVAILABLE: there is no OpenBLAS with threads; the same answer at each
   later call. */
AX_MUST_USE ax_status ax_lapack_of(ax_dtype dtype, const ax_lapack **out);
/* The processor that OpenBLAS is to take this one for, if by itself it takes it for `core`, which has no AVX. NULL: it may stay. */
const char *ax_openblas_core(const char *core, bool avx2, bool avx512);

#endif
