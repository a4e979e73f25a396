/* Keys, and the parts that the generators of random bits share. A key is u32[2]; an array of keys is u32[.., 2]. */
#ifndef AX_RANDOM_KEYS_H
#define AX_RANDOM_KEYS_H

#include "plan/kernel.h"
#include "prim/composite.h"

/* Word k of each of the keys: u32[b.., 2] -> u32[b..]. */
ax_value ax_key_word(ax_value keys, int64_t k);
/* Of an array of keys: random bits of each, as ax_random_bits, T[b.., dims..]; keys of each, u32[b.., dims.., 2]. */
ax_value ax_keys_bits(ax_value keys, ax_dtype dtype, uint32_t rank, const int64_t *dims);
ax_value ax_keys_split(ax_value keys, uint32_t rank, const int64_t *dims);
/* u32[.., 2]: words of keys. */
bool ax_is_words_of_keys(const ax_type *type);
/* Makes the operand, one key, a u32[2] if it is a key[], which *typed says if it is not NULL. False: it is none; the trace has
   failed. */
bool ax_key_operand(const char *function, ax_value *key, bool *typed);

/* In kernels: two nodes of u32 as one of u64, the first one above; word k of such a node. */
ax_ex ax_kernel_joined(ax_loop_kernel *kernel, ax_ex high, ax_ex low);
ax_ex ax_kernel_word(ax_loop_kernel *kernel, ax_ex joined, int k);

#endif
