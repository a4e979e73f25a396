/* Draws that are made again until they are accepted, for all elements at once: a loop that ends when none is left. */
#ifndef AX_RANDOM_REJECTION_H
#define AX_RANDOM_REJECTION_H

#include "random/draw.h"

/* Whether any element is true: bool[d..] -> bool[]. */
ax_value ax_draw_any(ax_value x);
/* n keys of `key`, which takes the place of the draw's; uniform numbers of key k of those. */
ax_value ax_draw_keys_of(const ax_draw *draw, ax_value key, int64_t n);
ax_value ax_draw_unit_of(const ax_draw *draw, ax_value keys, int64_t k);
/* The number everywhere, of the draw's dtype and shape. */
ax_value ax_draw_filled(const ax_draw *draw, double value);

/* The loop. Its carries are a key, results and which are accepted; body: from them to the next, by ax_draw_accept. needed: bool[..],
   which elements' results are used; if none are, nothing is drawn. What is drawn for the others counts for how often the loop runs. */
ax_value ax_draw_until_accepted(const ax_draw *draw, ax_value needed, ax_fn body);
/* k and which of them are accepted: the next carries. */
void ax_draw_accept(const ax_value *in, ax_value *out, ax_value key, ax_value k, ax_value accepted);

#endif
