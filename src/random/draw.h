/* What draws from distributions check and share. Checks name the function that the user called, and fail the trace. */
#ifndef AX_RANDOM_DRAW_H
#define AX_RANDOM_DRAW_H

#include "axle/random.h"
#include "random/keys.h"

/* A draw: where it comes from and what it makes. The key may be an array of keys, u32[b.., 2], inside this room: results are then
   T[b.., shape..]. */
typedef struct ax_draw {
  const char *name; /* of the function, for messages */
  ax_value key;
  ax_dtype dtype;
  ax_dims shape;
} ax_draw;

/* The dtypes that a draw may have. FLOAT: of 8 bits and more, with bits of fraction. INTEGER: of 8 bits and more. NUMERIC: both, and
   complex numbers. */
typedef enum ax_draw_kind { AX_DRAW_FLOAT, AX_DRAW_INTEGER, AX_DRAW_NUMERIC, AX_DRAW_FLOAT_OR_COMPLEX } ax_draw_kind;

/* Checks a key, a dtype and a shape. */
bool ax_draw_of(const char *name, ax_value key, ax_draw_kind kind, ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_draw *out);
/* Checks that parameters of these types broadcast to the draw's shape; where that is (), it becomes the one that they broadcast to. */
bool ax_draw_shape(ax_draw *draw, uint32_t count, const ax_type *types);
/* The same for values of `dtype`; numbers become scalars. At most 4. */
bool ax_draw_with(ax_draw *draw, ax_dtype dtype, uint32_t count, ax_value *parameters);
/* Repeats a parameter to the draw's shape. */
ax_value ax_draw_spread(const ax_draw *draw, ax_value parameter);

/* A distribution: the draw and its parameters have been checked. */
typedef ax_value (*ax_distribution_function)(const ax_draw *draw, const ax_value *parameters);
/* Checks and draws, of floats. */
ax_value ax_draw_call(const char *name, ax_value key, ax_dtype dtype, uint32_t rank, const int64_t *dims, uint32_t count,
                      const ax_value *parameters, ax_distribution_function function);

/* --- Other draws --- */
ax_draw ax_draw_from(const ax_draw *draw, ax_value keys, int64_t k);  /* from key k of several, u32[b.., n, 2] */
ax_draw ax_draw_as(const ax_draw *draw, ax_dtype dtype);
ax_value ax_draw_keys(const ax_draw *draw, int64_t n); /* n keys of the draw's: u32[b.., n, 2] */
ax_draw ax_draw_wider(const ax_draw *draw, int64_t first, int64_t last); /* with one more dimension, before or behind; 0: none */

/* --- What others are made of --- */
ax_value ax_draw_bits(const ax_draw *draw, ax_dtype dtype); /* random integers, as ax_random_bits */
ax_value ax_draw_unit(const ax_draw *draw); /* uniform from 0 to 1, without 1 */
ax_value ax_draw_uniform(const ax_draw *draw, ax_value minval, ax_value maxval); /* arrays of the dtype, or numbers */
ax_value ax_draw_normal(const ax_draw *draw);
ax_value ax_draw_exponential(const ax_draw *draw);
ax_value ax_draw_gamma(const ax_draw *draw, ax_value a, bool in_log); /* or their logarithms */
ax_value ax_draw_signs(const ax_draw *draw); /* 1 or -1, of any numeric dtype */
ax_value ax_draw_gumbel(const ax_draw *draw, ax_random_mode mode);

/* --- Numbers of a float dtype --- */
double ax_dtype_epsilon(ax_dtype dtype); /* from 1 to the next number above */
double ax_dtype_tiny(ax_dtype dtype);    /* the smallest normal number */

#endif
