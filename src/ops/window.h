/* Windows: the geometry of convolutions and windowed reductions along one dimension.

        array     a  b  c          base 2, low 1, high 0:    .  a  .  b  .  c
        window    3 places, dilation 1, stride 2:            [.  a  .]
                                                                   [.  b  .]      2 positions

   Elements of the array stand `base` apart. `low` and `high` places are added before and behind them; a negative number cuts as
   many off. A window has `size` places, `dilation` apart, and moves by `stride` from position to position while it lies inside. */
#ifndef AX_OPS_WINDOW_H
#define AX_OPS_WINDOW_H

#include "prim/expand.h"
#include "prim/shape.h"

typedef struct ax_window {
  int64_t array, base, low, high;
  int64_t size, dilation, stride;
} ax_window;

/* The extent of `size` elements that stand `apart` from each other. */
int64_t ax_dilated(int64_t size, int64_t apart);
/* Counts the window's positions. Errors: a dilation or stride below 1, an array cut to a negative size. Messages name the array,
   which `base` dilates, as `array`. */
AX_MUST_USE ax_status ax_window_positions(const ax_window *w, const char *array, uint32_t d, int64_t *out);
/* The same for a window that has been checked. */
int64_t ax_window_count(const ax_window *w);
/* The number of the element at place `tap` of the window at `position`; -1 if no element is there. */
int64_t ax_window_element(const ax_window *w, int64_t position, int64_t tap);
/* The window that the transpose moves over the positions of w. They stand w's stride apart, its positions are w's array, and its
   places are w's in reverse order. */
ax_window ax_window_transposed(const ax_window *w);
/* Sets low and high for padding SAME, SAME_LOWER or VALID, as jax.lax.padtype_to_pads. False: another word; the trace has failed in
   `function`'s name. */
bool ax_window_pads(const char *function, const char *padding, ax_window *w);

/* --- For reading StableHLO --- */

/* Whether the operation's region is logaddexp of its arguments, which no single operation of StableHLO is. */
bool ax_hlo_is_logaddexp(const struct ax_hlo_operation *op);

/* --- For lower rules --- */

/* Elements of x along dimension d: `count` of them, `stride` apart, from `start` on; x itself if these are all. */
ax_value ax_window_part(ax_value x, uint32_t d, int64_t start, int64_t count, int64_t stride);
/* Pads x with `value` and spreads its elements apart along dimensions first .. first + count, as windows[i] says for dimension
   first + i; then the windows have neither padding nor base dilation left. */
ax_value ax_window_padded(ax_value x, ax_value value, uint32_t first, uint32_t count, ax_window *windows);

/* Lowers a reduction by ADD, MUL, MAX or MIN of which each result along dimension d is made of all elements up to its place;
   reverse: of all from it on (reduce_window_running.c). */
AX_MUST_USE ax_status ax_window_lower_running(ax_lower *lower, const ax_eqn *eqn, ax_scalar op, uint32_t d, bool reverse,
                                              uint32_t in, uint32_t *out);

/* Parameters of the reduce_windows, one entry a dimension. */
typedef struct ax_window_params {
  ax_dims window_dimensions, window_strides, padding_low, padding_high, base_dilation, window_dilation;
} ax_window_params;

#endif
