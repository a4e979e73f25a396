/* Random numbers as jax.random makes them with its default generator (threefry2x32, partitionable): a key gives the same numbers.
   Element i of an array depends on the key and i alone. */
#ifndef AX_TREE_RANDOM_H
#define AX_TREE_RANDOM_H

#include "axle/type.h"

typedef struct ax_fill_key {
  uint32_t word[2];
} ax_fill_key;

/* jax.random.key(seed); for seeds from 2^31 on, as with jax_enable_x64. */
ax_fill_key ax_fill_key_of(uint64_t seed);
/* jax.random.fold_in(key, number). */
ax_fill_key ax_fill_key_fold_in(ax_fill_key key, uint32_t number);

/* Rounds x to the nearest number of a float dtype. */
double ax_rounded(ax_dtype dtype, double x);

typedef enum ax_distribution {
  AX_UNIFORM,         /* from low to high, without high */
  AX_NORMAL,          /* mean 0, deviation 1 */
  AX_TRUNCATED_NORMAL /* the same, cut off outside low .. high */
} ax_distribution;

/* Fills `elems` elements of a float dtype with numbers of the distribution, each multiplied by `factor`; jax.random.uniform, normal
   and truncated_normal, then the product. All operations round to the dtype, as jax's do but for a few in bf16 and f16. */
void ax_random_fill(ax_fill_key key, ax_distribution distribution, double low, double high, double factor, ax_dtype dtype,
                    int64_t elems, void *data);

#endif
