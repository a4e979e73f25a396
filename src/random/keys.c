/* Keys: made of seeds, split, and numbers folded into them. */
#include "random/keys.h"

#include "axle/random.h"
#include "ir/dtype.h"

ax_value ax_key_word(ax_value keys, int64_t k) { return ax_at(keys, k, -1); }

bool ax_is_words_of_keys(const ax_type *type) {
  return type->dtype == AX_U32 && type->rank > 0 && type->dims[type->rank - 1] == 2;
}

bool ax_key_operand(const char *function, ax_value *key, bool *typed) {
  ax_type type;
  if (!ax_operand(function, *key, &type)) return false;
  const bool is_key = ax_is_key(type.dtype), words = ax_is_words_of_keys(&type);
  if (typed != NULL) *typed = is_key;
  if (is_key && type.rank == 0) *key = ax_random_key_data(*key);
  else if (!words || type.rank != 1)
    ax_reject_as(function, "the key is %s; it must be key[] or u32[2]%s", ax_operand_string(&type),
                 is_key || words ? ": ax_vmap takes many keys" : "");
  return !ax_failed();
}

static ax_value typed_as(bool typed, ax_value words) { return typed && !ax_failed() ? ax_random_wrap_key_data(words) : words; }

/* An integer scalar. */
static bool is_number(const ax_type *type) {
  const ax_dtype_kind kind = ax_dtype_get(type->dtype)->kind;
  return type->rank == 0 && (kind == AX_KIND_SIGNED || kind == AX_KIND_UNSIGNED);
}

static ax_value key_of(ax_value high, ax_value low) { return ax_stack(AX_LIST(2, ((ax_value[]){high, low})), -1); }

/* A C number counts as a number of 64 bits. A narrower seed has zeros for the upper word, also where it is negative. */
static ax_value key_of_seed(const char *name, ax_value seed) {
  ax_type type;
  if (ax_is_number(seed)) {
    int64_t bits;
    if (!ax_number_bits(name, seed, ax_number_real(seed) < 0 ? AX_S64 : AX_U64, &bits)) return ax_poison;
    const uint32_t words[2] = {(uint32_t)((uint64_t)bits >> 32), (uint32_t)bits};
    const ax_type key = ax_array_type(AX_U32, AX_DIMS(2));
    return (ax_constant)(&key, AX_U32, words, sizeof words);
  }
  if (!ax_operand(name, seed, &type)) return ax_poison;
  if (!is_number(&type))
    return ax_reject_as(name, "the seed is %s; it must be an integer scalar", ax_operand_string(&type));
  const bool wide = ax_dtype_bytes(type.dtype) == 8;
  ax_value high = wide ? ax_shift_right_logical(seed, ax_integer(32)) : ax_full(AX_U32, AX_DIMS(), 0);
  return key_of(ax_convert_element_type(high, AX_U32), ax_convert_element_type(seed, AX_U32));
}

ax_value ax_random_key(ax_value seed) { return key_of_seed("random_key", seed); }
ax_value ax_random_typed_key(ax_value seed) { return typed_as(true, key_of_seed("random_typed_key", seed)); }

ax_value ax_random_fold_in(ax_value key, ax_value data) {
  static const char name[] = "random_fold_in";
  ax_type type;
  ax_value words[2];
  bool typed;
  if (!ax_key_operand(name, &key, &typed)) return ax_poison;
  data = ax_as(name, data, AX_U32);
  if (ax_failed() || !ax_operand(name, data, &type)) return ax_poison;
  if (!is_number(&type))
    return ax_reject_as(name, "the number is %s; it must be an integer scalar", ax_operand_string(&type));
  data = ax_convert_element_type(data, AX_U32);
  (ax_threefry2x32)(ax_key_word(key, 0), ax_key_word(key, 1), ax_integer(0), data, 2, words);
  return typed_as(typed, key_of(words[0], words[1]));
}

/* Each key is the two words that Threefry makes of its place. */
ax_value (ax_random_split)(ax_value key, uint32_t rank, const int64_t *dims) {
  bool typed;
  return ax_key_operand("random_split", &key, &typed) ? typed_as(typed, ax_keys_split(key, rank, dims)) : ax_poison;
}

ax_value ax_keys_split(ax_value keys, uint32_t rank, const int64_t *dims) {
  const ax_value bits = ax_keys_bits(keys, AX_U64, rank, dims);
  const ax_value high = ax_convert_element_type(ax_shift_right_logical(bits, ax_integer(32)), AX_U32);
  return key_of(high, ax_convert_element_type(bits, AX_U32));
}

/* --- In kernels --- */

static ax_ex number_node(ax_loop_kernel *kernel, int64_t value) { return ax_kernel_const(kernel, AX_U64, value); }
static ax_ex converted(ax_loop_kernel *kernel, ax_ex x, ax_dtype dtype) {
  return ax_kernel_op(kernel, AX_SCALAR_CONVERT, dtype, x, AX_NONE, AX_NONE);
}

ax_ex ax_kernel_joined(ax_loop_kernel *kernel, ax_ex high, ax_ex low) {
  const ax_ex wide = converted(kernel, high, AX_U64);
  const ax_ex above = ax_kernel_op(kernel, AX_SCALAR_SHIFT_LEFT, AX_U64, wide, number_node(kernel, 32), AX_NONE);
  return ax_kernel_op(kernel, AX_SCALAR_OR, AX_U64, above, converted(kernel, low, AX_U64), AX_NONE);
}

ax_ex ax_kernel_word(ax_loop_kernel *kernel, ax_ex joined, int k) {
  if (k == 0) joined = ax_kernel_op(kernel, AX_SCALAR_SHIFT_RIGHT_LOGICAL, AX_U64, joined, number_node(kernel, 32), AX_NONE);
  return converted(kernel, joined, AX_U32);
}
