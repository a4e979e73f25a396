/* Windows: what convolutions and windowed reductions do along one dimension.

     array     a  b  c          base 2, low 1, high 0:    .  a  .  b  .  c
     window    3 places, dilation 1, stride 2:            [.  a  .]
                                                                [.  b  .]      2 positions

   An array's elements stand `base` apart; `low` and `high` places stand before and behind them, or so many are cut off. A window
   has `size` places, `dilation` apart, and moves `stride` from position to position, as long as it lies inside. */
#ifndef AX_OPS_WINDOW_H
#define AX_OPS_WINDOW_H

#include "prim/shape.h"

typedef struct ax_window {
  int64_t array, base, low, high;
  int64_t size, dilation, stride;
} ax_window;

/* Elements standing `apart`: how long they are together. */
int64_t ax_dilated(int64_t size, int64_t apart);
/* How many positions there are. Errors: a dilation or stride below 1, an array that is cut to less than nothing; in messages,
   `array` is what is dilated by `base`. */
AX_MUST_USE ax_status ax_window_positions(const ax_window *w, const char *array, uint32_t d, int64_t *out);
/* The same of a window that has been checked. */
int64_t ax_window_count(const ax_window *w);
/* The element at place `tap` of the window at `position`; -1: there stands none. */
int64_t ax_window_element(const ax_window *w, int64_t position, int64_t tap);
/* The window over the positions of w, dilated by w's stride, whose positions are w's array and whose places, turned round, are
   w's. */
ax_window ax_window_transposed(const ax_window *w);
/* SAME, SAME_LOWER or VALID: as jax.lax.padtype_to_pads. False: none of these, and the trace has failed in `function`'s name. */
bool ax_window_pads(const char *function, const char *padding, ax_window *w);

/* --- For lower rules --- */

/* x along dimension d: `count` elements, `stride` apart, from `start` on; x itself where that is all. */
ax_value ax_window_part(ax_value x, uint32_t d, int64_t start, int64_t count, int64_t stride);
/* x with `value` where it is padded, and its elements apart, as windows[i] says of dimension first + i; then those have neither. */
ax_value ax_window_padded(ax_value x, ax_value value, uint32_t first, uint32_t count, ax_window *windows);

/* An equation as others: what they are is traced by `function` on values of the operands' types. */
typedef ax_value (*ax_expansion)(const ax_eqn *eqn, const ax_value *in);
AX_MUST_USE ax_status ax_lower_expanded(ax_lower *lower, const ax_eqn *eqn, ax_expansion function, const uint32_t *in,
                                        uint32_t *out);

/* --- For hlo --- */
/* "dense<[[1, 2], [0, 0]]> : tensor<2x2xi64>" */
void ax_hlo_padding(ax_text *text, const ax_dims *low, const ax_dims *high);

#endif
