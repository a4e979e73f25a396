/* What operations on matrices share. Their operands and results are batches: T[b.., m, n], one matrix after the other, row by row.

   A routine on matrices is a record: what one call does to the matrices of one index of the batch, what it has to know, how much
   workspace it takes. Lowered, it becomes one routine of the plan (ax_routine) with parts of the batch, which threads share; a
   part's workspace belongs to a buffer of the plan, so a run allocates none. Each call stays on the thread that runs its part. */
#ifndef AX_LINALG_MATRICES_H
#define AX_LINALG_MATRICES_H

#include "linalg/lapack.h"
#include "plan/lower.h"
#include "prim/composite.h"
#include "prim/shape.h"

typedef struct ax_matrix_call { /* what the code of a routine knows; a routine uses the fields that it needs */
  const ax_lapack *lapack;
  ax_dtype dtype;
  int64_t m, n, k, columns; /* sizes */
  int lwork;                /* elements that LAPACK asked for */
  bool left, lower, transposed, conjugated, unit, full, vectors;
  int64_t from, to; /* of a routine with right sides: those that it is to solve for */
} ax_matrix_call;

/* matrix: the operands' matrices, then the results', of one index of the batch. work: at least `work_bytes` bytes, aligned to a
   line of the cache, with any content. */
typedef void ax_matrix_code(const ax_matrix_call *call, void *const *matrix, void *work);

typedef struct ax_matrix_routine {
  const char *name; /* in texts of plans: LAPACK's, whoever does it */
  ax_matrix_code *code;
  /* The same, with the same bits, for as many matrices as fill 64 bytes with a part of one element each: they stand side by side, element by element; of complex
     numbers the real parts of an element and then the imaginary ones. NULL: none. */
  ax_matrix_code *lanes;
  uint32_t unread;      /* the operand that the code does not read; AX_NONE: it reads all. Asked of lanes alone, as the next is */
  uint32_t overwritten; /* the operand in whose memory, side by side, the first result is made; AX_NONE: it has its own */
  ax_matrix_call call;
  uint32_t batch_rank;
  int64_t work_bytes;
  double time; /* nanoseconds of one call, roughly */
  int64_t right_sides; /* which the code solves for one by one, and threads share; 0: there are none */
} ax_matrix_routine;

enum { AX_MATRIX_OPERANDS = 8 }; /* of a routine, and results */

/* Adds the routine over all of a batch; at most AX_MATRIX_OPERANDS operands and results together. */
AX_MUST_USE ax_status ax_lower_matrices(ax_lower *lower, const ax_matrix_routine *routine, const uint32_t *in, uint32_t in_count,
                                        const uint32_t *out, uint32_t out_count);
/* Runs it on the operands of a LOCAL primitive's eval rule. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_eval_matrices(const ax_eval_args *args, const ax_matrix_routine *routine);

/* What an equation's parameters and types make its routine: fills in the rest of *routine, which has a dtype, LAPACK, and all
   dimensions but two of the first operand as its batch. in, out: the types of operands and results. */
typedef void ax_matrix_rule(const void *params, const ax_type *in, const ax_type *out, ax_matrix_routine *routine);
/* For lower and eval rules. AX_UNAVAILABLE: there is no LAPACK. */
AX_MUST_USE ax_status ax_lower_by(ax_lower *lower, const ax_eqn *eqn, ax_matrix_rule *rule, const uint32_t *in, uint32_t *out);
AX_MUST_USE ax_status ax_eval_by(const ax_eval_args *args, ax_matrix_rule *rule);

/* What LAPACK is asked with for the size of its workspace: an element of any dtype, and the number in it. */
typedef struct ax_lapack_size {
  double first, second;
} ax_lapack_size;
int ax_lapack_asked(ax_dtype dtype, const ax_lapack_size *work);
int ax_leading(int64_t rows); /* of a matrix of so many rows: at least 1 */
/* The memory behind so many elements; behind so many real numbers, of which a complex one has two. */
void *ax_work_behind(const ax_matrix_call *call, void *work, int64_t elems);
void *ax_parts_behind(const ax_matrix_call *call, void *work, int64_t parts);
void ax_matrix_nan(ax_dtype dtype, void *to, int64_t elems);                     /* NaN everywhere: the routine has failed */
bool ax_matrix_finite(const ax_matrix_call *call, const void *x, int64_t elems); /* LAPACK may not end where there are NaN */
void ax_matrix_conjugate(ax_dtype dtype, void *x, int64_t elems);                /* in place; real numbers stay */
/* Products and sums of a dtype in a nanosecond, where there are so many of f32. */
double ax_matrix_rate(ax_dtype dtype, double of_f32);
/* The m by n matrix of 1 on the diagonal and 0 elsewhere. */
void ax_matrix_unit(const ax_matrix_call *call, void *to, int64_t m, int64_t n);

/* The n by m matrix at `to` is the transpose of the m by n one at `from`, both row by row. f32, f64 or complex. */
void ax_matrix_turn(void *to, const void *from, int64_t m, int64_t n, ax_dtype dtype);

/* --- For infer --- */
/* Refuses operands that are not f32, f64 or complex, of fewer than `least` dimensions, or with more than LAPACK's integers count
   along one of the last `least`. */
AX_MUST_USE ax_status ax_infer_matrix(const ax_infer_args *args, uint32_t i, uint32_t least); /* the same for operand i alone */
AX_MUST_USE ax_status ax_infer_matrices(const ax_infer_args *args, uint32_t least);
AX_MUST_USE ax_status ax_infer_square(const ax_type *x); /* refuses matrices with m != n */
/* The type of x's real parts, or of complex numbers with x's parts; the last `drop` dimensions are not there. */
ax_type ax_matrix_parts_type(const ax_type *x, uint32_t drop);
ax_type ax_matrix_complex_type(const ax_type *x, uint32_t drop);

/* --- For derivatives; x: T[b.., m, n] --- */
/* x where row + k >= column (lower), or row + k <= column (upper); 0 elsewhere. */
ax_value ax_matrix_lower(ax_value x, int64_t k);
ax_value ax_matrix_upper(ax_value x, int64_t k);
/* *x becomes the mean of *x and its adjoint, unless the primitive will refuse it. False: it is no array; the trace has failed. */
bool ax_matrix_symmetrized(const char *function, ax_value *x);
/* T[m, n] of x's dtype: 1 on the diagonal and 0 elsewhere. */
ax_value ax_matrix_eye(ax_value x, int64_t m, int64_t n);
/* T[b.., n] -> T[b.., n, n], zero beside the diagonal; and the diagonal of T[b.., n, n]. */
ax_value ax_vector_to_diagonal(ax_value x);
ax_value ax_diagonal_to_vector(ax_value x);
/* n by n zeros with x in them, from that row and column on. */
ax_value ax_matrix_within(ax_value x, int64_t row, int64_t column, int64_t n);
/* x with zeros behind it up to so many rows and columns; two matrices side by side; one above the other. */
ax_value ax_matrix_padded(ax_value x, int64_t rows, int64_t columns);
ax_value ax_matrix_beside(ax_value left, ax_value right);
ax_value ax_matrix_above(ax_value upper, ax_value lower);
/* The columns of x in the order of places, s32[b.., n]. */
ax_value ax_matrix_columns(ax_value x, ax_value places);
/* linear_solve by triangular_solve: the x with a x = b, or with a's transpose, from the factors that lu gives; all of one batch. */
ax_value ax_solve_by_factors(ax_value lu, ax_value pivots, ax_value b, bool transposed);
/* The same from a alone: its factors have no derivatives of their own. */
ax_value ax_matrix_solve(ax_value a, ax_value b, bool transposed);
ax_value ax_matrix_part(ax_value x, int64_t row, int64_t rows, int64_t column, int64_t columns); /* from that row and column on */
/* The transpose, conjugated where numbers are complex. */
ax_value ax_matrix_adjoint(ax_value x);
/* The symmetric matrix, or Hermitian one, whose lower or upper triangle is x's; of its diagonal the real parts count. */
ax_value ax_matrix_of_triangle(ax_value x, bool lower);
/* The real parts; the same as numbers of x's dtype; i times the imaginary parts. x itself, and zeros, of real numbers. */
ax_value ax_matrix_reals(ax_value x);
ax_value ax_matrix_real(ax_value x);
ax_value ax_matrix_imaginary(ax_value x);
/* Real numbers as ones of like's dtype. */
ax_value ax_matrix_as(ax_value x, ax_value like);
/* T[n, n] of x's dtype with `diagonal` on the diagonal and `other` elsewhere. */
ax_value ax_matrix_diagonal(ax_value x, int64_t n, double diagonal, double other);

/* --- For batch, shard and hlo --- */
/* Moves the batch dimensions of all operands in front, and binds the same equation. */
void ax_batch_matrices(const ax_batch_args *args);
/* The same for systems, whose operands are three that say what the systems are, and their right sides: if the batch has the same
   systems, its right sides become more columns. */
void ax_batch_systems(const ax_batch_args *args);
/* The first operand's dimensions but the last two are the batch, which all operands and results have; it alone is cut. */
void ax_shard_batches(const ax_shard_args *args);
/* bool of the shape: whether row + k is equal to the column, "EQ", or no less, "GE". */
uint32_t ax_hlo_matrix_compare(ax_hlo *hlo, const ax_type *type, const char *direction, int64_t k);
/* `x` where row + k >= column, and zeros elsewhere. */
uint32_t ax_hlo_matrix_lower(ax_hlo *hlo, uint32_t x, const ax_type *type, int64_t k);

/* Zeros of a type; where `info`, s32[b..], is 0, x, and NaN elsewhere; x of the type shares its batch with info. */
uint32_t ax_hlo_zeros(ax_hlo *hlo, const ax_type *type);
uint32_t ax_hlo_or_nan(ax_hlo *hlo, uint32_t info, uint32_t x, const ax_type *type, uint32_t batch_rank);

/* The call of a LAPACK routine that XLA:CPU has under JAX's name for it: lapack_<letter><routine>_ffi, the letter being that of the
   first operand's dtype; an "or" or "sy" at the beginning becomes "un" or "he" for complex numbers. Matrices, which are the
   operands and results of the most dimensions, go column by column. config: its attributes; NULL: none. Returns the first result. */
uint32_t ax_hlo_lapack(ax_hlo *hlo, const char *routine, const struct ax_hlo_attributes *config, const uint32_t *in,
                       const ax_type *in_types, uint32_t in_count, const ax_type *out_types, uint32_t out_count);

#endif
