/* dot_product_attention: two products around a softmax, in the order of dimensions in which passes over plans put scores, softmax
   and values over a block of rows at a time. Masks are comparisons of indices, which go into that pass as well: none lies in memory
   but the one that the caller gives.

     scores[b, k, g, t, s] = query[b, t, k, g, h] . key[b, s, k, h]       n heads are k groups of g
     result[b, t, k, g, h] = softmax(scores)[b, k, g, t, s] . value[b, s, k, h] */
#include <math.h>

#include "axle/nn.h"
#include "lib/checked.h"

static const char name[] = "dot_product_attention";

/* The sizes of an attention, with b. */
typedef struct sizes {
  int64_t b, t, s, k, g, h;
} sizes;

static bool take_sizes(const ax_value *in, ax_type *types, sizes *z) {
  if (!ax_operands(name, 3, in, types)) return false;
  const ax_type *q = &types[0], *k = &types[1], *v = &types[2];
  const uint32_t r = q->rank;
  if (!ax_is_float(q->dtype)) {
    ax_reject_as(name, "the operand is %s; it must be of floats", ax_operand_string(q));
    return false;
  }
  bool fits = (r == 3 || r == 4) && k->rank == r && v->rank == r && q->dims[r - 1] == k->dims[r - 1];
  for (uint32_t d = 0; d < r && fits; d++) fits = k->dims[d] == v->dims[d] && (d != 0 || r == 3 || q->dims[d] == k->dims[d]);
  if (!fits) {
    ax_reject_as(name, "query, key and value are %s, %s and %s; they must be [b, t, n, h], [b, s, k, h] and as the key",
                 ax_operand_string(q), ax_operand_string(k), ax_operand_string(v));
    return false;
  }
  const int64_t n = q->dims[r - 2];
  *z = (sizes){.b = r == 4 ? q->dims[0] : 1, .t = q->dims[r - 3], .s = k->dims[r - 3], .k = k->dims[r - 2], .h = q->dims[r - 1]};
  z->g = z->k > 0 ? n / z->k : 1;
  if (z->g * z->k == n) return true;
  ax_reject_as(name, "the query has %lld heads, which is no multiple of the key's %lld", (long long)n, (long long)z->k);
  return false;
}

/* A bias or a mask [b, n, t, s], each dimension that or 1, as [b, k, g, t, s] so that it meets the scores. */
static ax_value by_group(const char *what, ax_value x, ax_dtype dtype, const sizes *z) {
  ax_type type;
  const ax_type full = ax_array_type(dtype, AX_DIMS(z->b, z->k * z->g, z->t, z->s));
  if (!ax_beside(name, what, x, &full) || !ax_operand(name, x, &type)) return ax_poison;
  int64_t dims[] = {1, 1, 1, 1};
  for (uint32_t d = 0; d < type.rank; d++) dims[4 - type.rank + d] = type.dims[d];
  const bool shared = dims[1] == 1;
  return ax_reshape(x, AX_DIMS(dims[0], shared ? 1 : z->k, shared ? 1 : z->g, dims[2], dims[3]));
}

/* The places of queries and keys, s32[t, 1] and s32[1, s]. */
static ax_value query_places(const sizes *z) { return ax_iota(AX_S32, AX_DIMS(z->t, 1), 0); }
static ax_value key_places(const sizes *z) { return ax_iota(AX_S32, AX_DIMS(1, z->s), 1); }

static ax_value both(ax_value a, ax_value b) { return ax_is_given(a) ? ax_and(a, b) : b; }

/* Whether places are below the lengths of the batch: bool[b, 1, 1, 1, s], and of queries [b, 1, 1, t, 1]. */
static ax_value below_lengths(const char *what, ax_value lengths, ax_value places, const sizes *z) {
  ax_type type;
  if (!ax_operand(name, lengths, &type)) return ax_poison;
  if (type.dtype != AX_S32 || type.rank != 1 || type.dims[0] != z->b)
    return ax_reject_as(name, "%s is %s; it must be s32[%lld]", what, ax_operand_string(&type), (long long)z->b);
  return ax_lt(places, ax_reshape(lengths, AX_DIMS(z->b, 1, 1, 1, 1)));
}

/* Which keys each query sees, of a shape that stretches to the scores'; {0}: all. */
static ax_value seen(const ax_attention_options *o, const sizes *z) {
  ax_value seen = {0};
  if (ax_is_given(o->mask)) seen = by_group("the mask", o->mask, AX_BOOL, z);
  if (o->is_causal) seen = both(seen, ax_ge(query_places(z), key_places(z)));
  if (o->local_window.v != NULL) {
    if (o->local_window.count != 2) return ax_reject_as(name, "local_window has %u entries, not 2", o->local_window.count);
    seen = both(seen, ax_le(query_places(z), ax_add(key_places(z), ax_integer(o->local_window.v[0]))));
    seen = both(seen, ax_ge(query_places(z), ax_sub(key_places(z), ax_integer(o->local_window.v[1]))));
  }
  if (ax_is_given(o->query_seq_lengths))
    seen = both(seen, below_lengths("query_seq_lengths", o->query_seq_lengths, query_places(z), z));
  if (ax_is_given(o->key_value_seq_lengths))
    seen = both(seen, below_lengths("key_value_seq_lengths", o->key_value_seq_lengths, key_places(z), z));
  return seen;
}

/* The softmax's scores, in f32 or f64. A key that is not seen has a number that is as low as -inf, but keeps a row without a key
   from being NaN. */
static ax_value scores_of(ax_value query, ax_value key, const ax_attention_options *o, ax_dtype wide, const sizes *z) {
  ax_value in[] = {ax_convert_element_type(query, wide), ax_convert_element_type(key, wide)};
  ax_value scores = ax_einsum("btkgh,bskh->bkgts", AX_LIST(2, in));
  scores = ax_mul(scores, ax_real(o->scale != 0 ? o->scale : 1 / sqrt((double)z->h)));
  if (ax_is_given(o->bias)) {
    ax_type type = ax_typeof(query);
    scores = ax_add(scores, ax_convert_element_type(by_group("the bias", o->bias, type.dtype, z), wide));
  }
  ax_value visible = seen(o, z);
  return ax_is_given(visible) ? ax_where(visible, scores, ax_real(-0.7 * 0x1.fffffep127)) : scores;
}

ax_value ax_dot_product_attention(ax_value query, ax_value key, ax_value value, const ax_attention_options *options) {
  const ax_attention_options none = {0}, *o = options != NULL ? options : &none;
  ax_value in[] = {query, key, value};
  ax_type types[3];
  sizes z;
  if (!take_sizes(in, types, &z)) return ax_poison;
  const ax_dtype dtype = types[0].dtype, wide = dtype == AX_F64 ? AX_F64 : AX_F32;
  query = ax_reshape(query, AX_DIMS(z.b, z.t, z.k, z.g, z.h));
  key = ax_reshape(key, AX_DIMS(z.b, z.s, z.k, z.h));
  value = ax_reshape(value, AX_DIMS(z.b, z.s, z.k, z.h));
  ax_value scores = scores_of(query, key, o, wide, &z);
  if (ax_failed()) return ax_poison;
  ax_value shares[] = {ax_convert_element_type(ax_softmax(scores, -1), dtype), value};
  ax_value result = ax_einsum("bkgts,bskh->btkgh", AX_LIST(2, shares));
  if (ax_is_given(o->query_seq_lengths)) {
    ax_value there = below_lengths("query_seq_lengths", o->query_seq_lengths, ax_iota(AX_S32, AX_DIMS(1, z.t, 1, 1, 1), 1), &z);
    result = ax_mul(result, ax_convert_element_type(there, dtype));
  }
  return ax_reshape(result, AX_LIST(types[0].rank, types[0].dims));
}
