/* What the files of the verifier share. A row of a table says of an operation what many have in common; its rule checks the rest.

     verify.c           walking a module; rows
     verify_table.c     the rows, one for each operation
     verify_types.c     questions about types, and checks that many rules make
     verify_shapes.c    rules of operations that move elements
     verify_indices.c   of gather, scatter, and slices at indices
     verify_products.c  of products, convolutions, matrices
     verify_windows.c   of windows and reductions
     verify_regions.c   of control flow, sort, map
     verify_devices.c   of collectives, the host, calls
     verify_scales.c    of quantized elements */
#ifndef AX_HLO_VERIFY_RULES_H
#define AX_HLO_VERIFY_RULES_H

#include "hlo/module.h"

typedef struct ax_hlo_symbols { /* what the module's body calls by a name: a hash table */
  const ax_hlo_operation **slots;
  uint32_t size;
} ax_hlo_symbols;

typedef struct ax_verified { /* an operation */
  const ax_hlo_module *module;
  const ax_hlo_operation *op;
  const ax_hlo_symbols *symbols;
} ax_verified;

enum { /* kinds of values, as bits */
       AX_HLO_FLOATS = 1,
       AX_HLO_COMPLEXES = 2,
       AX_HLO_SIGNED = 4,
       AX_HLO_UNSIGNED = 8,
       AX_HLO_TRUTHS = 16,
       AX_HLO_SCALED = 32,   /* quantized, with one scale */
       AX_HLO_CHANNELS = 64, /* with one for each index of a dimension */
       AX_HLO_TOKENS = 128,
       AX_HLO_TUPLES = 256,
       AX_HLO_FUTURES = 512,
       AX_HLO_OTHERS = 1024, /* buffers, and types of other dialects */
       AX_HLO_INTS = AX_HLO_SIGNED | AX_HLO_UNSIGNED,
       AX_HLO_ARRAYS = AX_HLO_FLOATS | AX_HLO_COMPLEXES | AX_HLO_INTS | AX_HLO_TRUTHS | AX_HLO_SCALED,
       AX_HLO_ANY_ARRAYS = AX_HLO_ARRAYS | AX_HLO_CHANNELS,
       AX_HLO_ALL = 2047
};

enum { /* what operands and results have in common, as bits */
       AX_HLO_ONE_SHAPE = 1,
       AX_HLO_ONE_ELEMENT = 2,
       AX_HLO_ANY_RANK = 4,   /* arrays without a rank are taken */
       AX_HLO_SAME_COUNT = 8, /* as many results as operands */
       AX_HLO_PAIRWISE = 16   /* result number i has the elements of operand number i */
};

enum { AX_HLO_MANY = 255, AX_HLO_ANY_REGIONS = 254, AX_HLO_MOST_CLASSES = 5 };
typedef struct ax_hlo_rule {
  const char *op;
  uint8_t least_in, most_in, least_out, most_out; /* MANY: any number */
  uint8_t regions;                                /* MANY: at least one; ANY_REGIONS: or none */
  uint8_t common;
  uint16_t in[AX_HLO_MOST_CLASSES], out;    /* kinds; 0: as the one before. Operands behind the last listed one are as that */
  ax_status (*check)(const ax_verified *v); /* NULL: that is all */
} ax_hlo_rule;

/* NULL: there is none. *index: its place in the table, below AX_HLO_MOST_RULES. */
enum { AX_HLO_MOST_RULES = 256 };
const ax_hlo_rule *ax_hlo_find_rule(ax_hlo_slice name, uint32_t *index);

static inline const ax_hlo_value_type *ax_verified_in(const ax_verified *v, uint32_t i) {
  return v->module->values[v->op->operands[i]];
}
static inline const ax_hlo_value_type *ax_verified_out(const ax_verified *v, uint32_t k) {
  return v->module->values[v->op->result + k];
}

/* --- verify.c --- */
/* The function, mesh, .. of the module's body that has the name; NULL: there is none. */
const ax_hlo_operation *ax_hlo_symbol(const ax_verified *v, ax_hlo_slice name);

/* --- verify_types.c --- */
/* For "%.*s" in messages, of a type or another slice. */
static inline int ax_hlo_length(ax_hlo_slice text) { return text.length < 160 ? (int)text.length : 160; }
/* Bits of the enumeration above; elements that Axle does not know are of every kind. */
uint32_t ax_hlo_class_of(const ax_hlo_value_type *type);
bool ax_hlo_ranked(const ax_hlo_value_type *type); /* an array of a known rank, of at most AX_MAX_RANK */
bool ax_hlo_extents_fit(int64_t a, int64_t b);     /* equal, or one is not known */
/* The most that an extent which is not known may be; AX_HLO_DYNAMIC: there is no bound. */
int64_t ax_hlo_bound(const ax_hlo_value_type *type, uint32_t d);
/* Likewise; and an extent is at most the other one's bound. */
bool ax_hlo_shapes_fit(const ax_hlo_value_type *a, const ax_hlo_value_type *b);
/* Equal; of quantized ones what they stand for, and how it is stored. */
bool ax_hlo_elements_fit(const ax_hlo_value_type *a, const ax_hlo_value_type *b);
/* Both of these: arrays; other types are equal, or made of parts that fit, of which there are at most 65536. */
bool ax_hlo_types_fit(const ax_hlo_value_type *a, const ax_hlo_value_type *b);
bool ax_hlo_is_scalar(const ax_hlo_value_type *type, ax_dtype dtype);
/* "[2, ?]", in `out`. */
const char *ax_hlo_dims_text(const ax_dims *dims, char out[256]);
ax_dims ax_hlo_dims_of(const ax_hlo_value_type *type);
/* AX_INVALID_ARGUMENT: result number k has another shape. */
AX_MUST_USE ax_status ax_hlo_check_shape(const ax_verified *v, uint32_t k, const ax_dims *dims);
/* AX_INVALID_ARGUMENT: result number k has other elements than operand number i. */
AX_MUST_USE ax_status ax_hlo_check_elements(const ax_verified *v, uint32_t k, uint32_t i);
/* AX_INVALID_ARGUMENT: a number is not in [0, end), or is there twice; sorted: or is smaller than one before it. */
AX_MUST_USE ax_status ax_hlo_check_places(const char *name, const ax_dims *list, int64_t end, bool sorted);
/* AX_INVALID_ARGUMENT: a dimension is in both. */
AX_MUST_USE ax_status ax_hlo_check_disjoint(const char *name, const ax_dims *list, const char *other_name, const ax_dims *other);
/* A region of one block, with `count` arguments if that is not AX_NONE. */
AX_MUST_USE ax_status ax_hlo_check_block(const ax_verified *v, uint32_t region, uint32_t count, const ax_hlo_block **block,
                                         const ax_hlo_operation **last);
/* A function of two scalars for each of `count` starts, values of the module; elements may be promoted. NULL: there are no starts.
   Arrays instead of scalars have extents of `most`; NULL: there are none. */
AX_MUST_USE ax_status ax_hlo_check_reducer(const ax_verified *v, uint32_t region, uint32_t count,
                                           const ax_hlo_value_type *const *inputs, const ax_hlo_value_type *const *starts,
                                           const ax_dims *most);
/* precision_config, if there is one. */
AX_MUST_USE ax_status ax_hlo_check_precision(const ax_verified *v);
/* dense<..> of integers: its rank, extents and numbers. False: it is none. */
bool ax_hlo_table(const ax_hlo_attribute *attribute, int64_t *rows, int64_t *columns);
int64_t ax_hlo_table_at(const ax_hlo_attribute *attribute, int64_t place);

/* The elements of operand i, if that is a constant list of integers. */
bool ax_hlo_known_list(const ax_verified *v, uint32_t i, ax_dims *out);
/* AX_INVALID_ARGUMENT: bounds, scales or parts that such a type cannot have. */
AX_MUST_USE ax_status ax_hlo_check_type(const ax_hlo_value_type *type);

/* --- Rules, in the files of their kinds --- */
typedef ax_status ax_hlo_check_fn(const ax_verified *v);
ax_hlo_check_fn ax_hlo_check_bitcast, ax_hlo_check_broadcast, ax_hlo_check_broadcast_in_dim, ax_hlo_check_dynamic_broadcast,
    ax_hlo_check_concatenate, ax_hlo_check_constant, ax_hlo_check_iota, ax_hlo_check_dynamic_iota, ax_hlo_check_pad,
    ax_hlo_check_dynamic_pad, ax_hlo_check_reshape, ax_hlo_check_dynamic_reshape, ax_hlo_check_reverse, ax_hlo_check_transpose,
    ax_hlo_check_dimension_size, ax_hlo_check_set_dimension_size, ax_hlo_check_chlo_broadcast;
ax_hlo_check_fn ax_hlo_check_slice, ax_hlo_check_dynamic_slice, ax_hlo_check_update_slice, ax_hlo_check_real_dynamic_slice,
    ax_hlo_check_gather, ax_hlo_check_dynamic_gather, ax_hlo_check_scatter, ax_hlo_check_torch_index_select;
ax_hlo_check_fn ax_hlo_check_dot, ax_hlo_check_dot_general, ax_hlo_check_convolution, ax_hlo_check_fft, ax_hlo_check_cholesky,
    ax_hlo_check_triangular_solve, ax_hlo_check_batch_norm_training, ax_hlo_check_batch_norm_inference,
    ax_hlo_check_batch_norm_grad, ax_hlo_check_einsum, ax_hlo_check_ragged_dot, ax_hlo_check_top_k;
ax_hlo_check_fn ax_hlo_check_reduce, ax_hlo_check_reduce_window, ax_hlo_check_select_and_scatter;
ax_hlo_check_fn ax_hlo_check_if, ax_hlo_check_case, ax_hlo_check_while, ax_hlo_check_sort, ax_hlo_check_map,
    ax_hlo_check_async_start, ax_hlo_check_async_done, ax_hlo_check_tuple, ax_hlo_check_tuple_element, ax_hlo_check_scan;
ax_hlo_check_fn ax_hlo_check_all_gather, ax_hlo_check_all_reduce, ax_hlo_check_reduce_scatter, ax_hlo_check_all_to_all,
    ax_hlo_check_permute, ax_hlo_check_rooted, ax_hlo_check_send, ax_hlo_check_recv, ax_hlo_check_infeed,
    ax_hlo_check_composite, ax_hlo_check_cross_replica_sum;
ax_hlo_check_fn ax_hlo_check_compare, ax_hlo_check_complex, ax_hlo_check_parts, ax_hlo_check_clamp, ax_hlo_check_select,
    ax_hlo_check_rng, ax_hlo_check_rng_bits, ax_hlo_check_add, ax_hlo_check_quantize;
/* Of quantized operands: what they have in common with the result. */
AX_MUST_USE ax_status ax_hlo_check_moved_scales(const ax_verified *v, int64_t axis);

/* Strides or dilations of a window, 1 where they are left out or empty. */
AX_MUST_USE ax_status ax_hlo_window_list(const ax_verified *v, const char *name, uint32_t count, ax_dims *out);
/* Extents of a window of `dims`; negative: it does not fit. */
int64_t ax_hlo_windows_in(int64_t extent, int64_t low, int64_t high, int64_t base, int64_t window, int64_t dilation,
                          int64_t stride);

#endif
