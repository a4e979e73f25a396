/* einsum: T[..].. -> T[..]         "ij,jk->ik": the product of all operands, summed over the letters that the result lacks

   Four steps; none is a primitive of its own:

     names       each dimension gets a label: its letter, or its place in the ellipsis, counted from the end
     operands    a label twice in one operand: its diagonal; a 1 that meets another size: dropped; a label in no other term: summed
                 over
     products    two at a time (einsum_order.c): a dot_general if it sums over a label, batch dimensions in place; else a product
                 of elements
     result      its dimensions in order, if they are not yet

   The last product's operands are taken in the order that gives the result's dimensions as they are wanted, if one does. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "prim/composite.h"
#include "lib/einsum.h"
#include "prim/shape.h"

typedef struct term { /* an operand, or a product: the labels of its dimensions */
  ax_value x;
  uint32_t rank;
  uint8_t label[AX_MAX_RANK];
} term;

typedef struct einsum {
  const char *subscripts;
  uint32_t label_count;
  uint8_t of_letter[128], of_ellipsis[AX_MAX_RANK]; /* 1 + a label; 0: none yet. In the ellipsis by distance from its end */
  char letter[AX_EINSUM_LABELS];                    /* by label; '.' in the ellipsis */
  int64_t size[AX_EINSUM_LABELS];                   /* by label: the largest, as a 1 stretches */
  ax_labels once, more;                             /* seen in operands: at least once; more than once */
  uint32_t in_ellipsis;                             /* the most dimensions that one stands for */
} einsum;

/* `einsum: "ij,jk": ...` */
static bool refuse(const einsum *e, const char *format, ...) AX_PRINTF(2, 3);
static bool refuse(const einsum *e, const char *format, ...) {
  char text[384];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  ax_reject_as("einsum", "\"%.96s\": %s", e->subscripts, text);
  return false;
}

static ax_labels labels_of(const term *t) {
  ax_labels set = 0;
  for (uint32_t d = 0; d < t->rank; d++) set |= (ax_labels)1 << t->label[d];
  return set;
}

static bool same_order(const term *a, const term *b) { return a->rank == b->rank && memcmp(a->label, b->label, a->rank) == 0; }

/* --- Names --- */

typedef struct letters { /* what stands between two commas */
  uint32_t count, before; /* letters; those before the ellipsis */
  bool ellipsis;
  char v[AX_MAX_RANK];
} letters;

/* Leaves `*at` behind them, at a comma, an arrow or the end. */
static bool read_letters(const einsum *e, const char **at, letters *out) {
  *out = (letters){0};
  for (; **at != 0 && **at != ',' && strncmp(*at, "->", 2) != 0; ++*at) {
    unsigned char c = (unsigned char)**at;
    if (c == ' ') continue;
    if (strncmp(*at, "...", 3) == 0) {
      if (out->ellipsis) return refuse(e, "an ellipsis twice for one array");
      out->ellipsis = true;
      out->before = out->count;
      *at += 2;
    } else if (c >= 128 || !isalpha(c)) {
      return refuse(e, "at %.12s: subscripts are letters, \"...\", commas and one \"->\"", *at);
    } else if (out->count == AX_MAX_RANK) {
      return refuse(e, "more than %d letters for one array", AX_MAX_RANK);
    } else {
      out->v[out->count++] = (char)c;
    }
  }
  if (!out->ellipsis) out->before = out->count;
  return true;
}

/* The label that `*known` has, or a new one. */
static bool label_of(einsum *e, uint8_t *known, char letter, uint8_t *out) {
  if (*known == 0) {
    if (e->label_count == AX_EINSUM_LABELS) return refuse(e, "more than %d different dimensions", AX_EINSUM_LABELS);
    e->letter[e->label_count] = letter;
    e->size[e->label_count] = 1;
    *known = (uint8_t)++e->label_count;
  }
  *out = (uint8_t)(*known - 1);
  return true;
}

/* The labels of letters with `in_ellipsis` dimensions between them. */
static bool name_dimensions(einsum *e, const letters *from, uint32_t in_ellipsis, term *out) {
  out->rank = from->count + in_ellipsis;
  for (uint32_t d = 0; d < out->rank; d++) {
    bool inside = d >= from->before && d < from->before + in_ellipsis;
    char letter = inside ? '.' : from->v[d < from->before ? d : d - in_ellipsis];
    uint8_t *known = inside ? &e->of_ellipsis[from->before + in_ellipsis - 1 - d] : &e->of_letter[(int)letter];
    if (!label_of(e, known, letter, &out->label[d])) return false;
  }
  return true;
}

/* Checks that the size of dimension d agrees with the known size of its label, in this operand and those before. */
static bool fit_size(einsum *e, uint32_t operand, const ax_type *type, const term *t, uint32_t d) {
  uint8_t label = t->label[d];
  int64_t size = type->dims[d];
  for (uint32_t k = 0; k < d; k++)
    if (t->label[k] == label && type->dims[k] != size)
      return refuse(e, "%c is %lld and %lld in operand %u, %s", e->letter[label], (long long)type->dims[k], (long long)size,
                    operand, ax_operand_string(type));
  if (size != 1 && e->size[label] != 1 && size != e->size[label])
    return refuse(e, "%s%c is %lld before, but %lld in operand %u, %s", e->letter[label] == '.' ? "a dimension of .." : "",
                  e->letter[label], (long long)e->size[label], (long long)size, operand, ax_operand_string(type));
  if (e->size[label] == 1) e->size[label] = size;
  e->more |= e->once & (ax_labels)1 << label;
  e->once |= (ax_labels)1 << label;
  return true;
}

static bool name_operand(einsum *e, uint32_t operand, const letters *from, const ax_type *type, term *out) {
  if (type->rank < from->count || (!from->ellipsis && type->rank != from->count))
    return refuse(e, "operand %u is %s, but its letters are %u", operand, ax_operand_string(type), from->count);
  uint32_t in_ellipsis = type->rank - from->count;
  if (in_ellipsis > e->in_ellipsis) e->in_ellipsis = in_ellipsis;
  if (!name_dimensions(e, from, in_ellipsis, out)) return false;
  for (uint32_t d = 0; d < type->rank; d++)
    if (!fit_size(e, operand, type, out, d)) return false;
  return true;
}

/* Without an arrow: the ellipsis, then the letters that are seen once, sorted. */
static bool usual_result(einsum *e, term *out) {
  letters once = {.ellipsis = true};
  for (int c = 'A'; c <= 'z'; c++) {
    if (e->of_letter[c] == 0 || (e->more >> (e->of_letter[c] - 1) & 1) != 0) continue;
    if (once.count + e->in_ellipsis == AX_MAX_RANK) return refuse(e, "the result has more than %d dimensions", AX_MAX_RANK);
    once.v[once.count++] = (char)c;
  }
  return name_dimensions(e, &once, e->in_ellipsis, out);
}

static bool read_result(einsum *e, const char *at, term *out) {
  letters wanted;
  ax_labels seen = e->once;
  if (!read_letters(e, &at, &wanted)) return false;
  if (*at != 0) return refuse(e, "at %.12s: the result is one, and the last", at);
  if (wanted.count + (wanted.ellipsis ? e->in_ellipsis : 0) > AX_MAX_RANK)
    return refuse(e, "the result has more than %d dimensions", AX_MAX_RANK);
  if (!name_dimensions(e, &wanted, wanted.ellipsis ? e->in_ellipsis : 0, out)) return false;
  for (uint32_t d = 0; d < out->rank; d++) {
    ax_labels label = (ax_labels)1 << out->label[d];
    if ((e->once & label) == 0) return refuse(e, "%c is in no operand", e->letter[out->label[d]]);
    if ((seen & label) == 0) return refuse(e, "%c is twice in the result", e->letter[out->label[d]]);
    seen &= ~label;
  }
  return true;
}

/* All of the subscripts: labels for each operand, and for the result. */
/* How many operands there are to be. */
static uint32_t parts_of(const char *subscripts) {
  uint32_t parts = 1;
  for (const char *c = subscripts; *c != 0 && strncmp(c, "->", 2) != 0; c++) parts += *c == ',';
  return parts;
}

static bool read_subscripts(einsum *e, uint32_t count, const ax_type *types, term *operands, term *result) {
  const char *at = e->subscripts;
  const uint32_t parts = parts_of(at);
  letters from;
  if (parts != count) return refuse(e, "%u operand%s, but subscripts for %u", count, count == 1 ? "" : "s", parts);
  for (uint32_t i = 0; i < count; i++) {
    if (i > 0) at++; /* the comma */
    if (!read_letters(e, &at, &from) || !name_operand(e, i, &from, &types[i], &operands[i])) return false;
  }
  return *at == 0 ? usual_result(e, result) : read_result(e, at + 2, result);
}

/* --- Operands --- */

/* x's dimension d stands where places[i] == d, i from 0; its label goes along. */
static void permute(term *t, const int64_t *places) {
  uint8_t old[AX_MAX_RANK];
  memcpy(old, t->label, sizeof old);
  t->x = ax_transpose(t->x, places);
  for (uint32_t i = 0; i < t->rank; i++) t->label[i] = old[places[i]];
}

/* The dimensions from d on that have d's label become one: the elements whose indices along them are equal. They are brought
   together, and lie apart by 1 + n + n^2 .. where they are counted as one dimension. */
static void take_diagonal(term *t, uint32_t d) {
  int64_t places[AX_MAX_RANK], size, stride = 1, all;
  uint32_t same = 0, next = 0;
  ax_dims dims = {0};
  ax_type type = ax_typeof(t->x);
  if (ax_failed()) return;
  size = all = type.dims[d];
  for (uint32_t i = 0; i < d; i++) places[next++] = i;
  for (uint32_t i = d; i < t->rank; i++)
    if (t->label[i] == t->label[d]) places[next++] = i, same++;
  for (uint32_t i = d; i < t->rank; i++)
    if (t->label[i] != t->label[d]) places[next++] = i;
  if (same == 1) return;
  permute(t, places);
  type = ax_typeof(t->x);
  for (uint32_t k = 1; k < same; k++) stride = stride * size + 1, all *= size;
  for (uint32_t i = 0; i < t->rank; i++)
    if (i <= d || i >= d + same) dims.v[dims.count++] = i == d ? all : type.dims[i];
  memmove(t->label + d + 1, t->label + d + same, t->rank - d - same);
  t->rank = dims.count;
  t->x = ax_slice_in_dim(ax_reshape(t->x, AX_LIST(dims.count, dims.v)), 0, AX_END, stride, d);
}

/* The dimensions of `gone`, all of one element, dropped; or summed over. */
static void drop(term *t, const ax_dims *gone, bool sum) {
  if (gone->count == 0) return;
  ax_dims left = ax_dims_others(t->rank, gone, NULL);
  t->x = sum ? ax_reduce_sum(t->x, AX_LIST(gone->count, gone->v), false) : ax_squeeze(t->x, AX_LIST(gone->count, gone->v));
  t->rank = left.count;
  for (uint32_t i = 0; i < left.count; i++) t->label[i] = t->label[left.v[i]];
}

/* Each label once, and at its full size. */
static void simplify(const einsum *e, term *t) {
  ax_dims gone = {0};
  for (uint32_t d = 0; d < t->rank; d++) take_diagonal(t, d);
  ax_type type = ax_typeof(t->x);
  if (ax_failed()) return;
  for (uint32_t d = 0; d < t->rank; d++)
    if (type.dims[d] == 1 && e->size[t->label[d]] != 1) gone.v[gone.count++] = d;
  drop(t, &gone, false);
}

static void sum_all_but(term *t, ax_labels kept) {
  ax_dims gone = {0};
  for (uint32_t d = 0; d < t->rank; d++)
    if ((kept >> t->label[d] & 1) == 0) gone.v[gone.count++] = d;
  drop(t, &gone, true);
}

/* --- Products --- */

static void put_in_order(term *t, const term *order) {
  int64_t places[AX_MAX_RANK] = {0};
  uint32_t next = 0;
  for (uint32_t i = 0; i < order->rank; i++)
    for (uint32_t d = 0; d < t->rank; d++)
      if (t->label[d] == order->label[i]) places[next++] = d;
  permute(t, places);
}

/* The term's elements with the dimensions of `order`, along which it has them or is repeated. */
static ax_value spread(const einsum *e, const term *t, const term *order) {
  term ordered = *t;
  int64_t dims[AX_MAX_RANK], where[AX_MAX_RANK];
  put_in_order(&ordered, order);
  if (t->rank == order->rank) return ordered.x;
  for (uint32_t i = 0, next = 0; i < order->rank; i++) {
    dims[i] = e->size[order->label[i]];
    if (next < ordered.rank && ordered.label[next] == order->label[i]) where[next++] = i;
  }
  return ax_broadcast_in_dim(ordered.x, AX_LIST(order->rank, dims), where);
}

/* Nothing is summed over: a product of elements, with the dimensions in the order that is wanted. */
static term multiply(const einsum *e, const term *a, const term *b, const term *wanted) {
  term out = *a, left = *a, right = *b;
  ax_labels mine = labels_of(a);
  for (uint32_t d = 0; d < b->rank; d++)
    if ((mine >> b->label[d] & 1) == 0) out.label[out.rank++] = b->label[d];
  if (wanted != NULL) out = *wanted;
  left.x = ax_vary_to(a->x, ax_typeof(b->x).spread.varying); /* while it is small: its gradient's psum is then as small */
  right.x = ax_vary_to(b->x, ax_typeof(a->x).spread.varying);
  out.x = ax_mul(spread(e, &left, &out), spread(e, &right, &out));
  return out;
}

typedef struct product {
  ax_dims left_contract, right_contract, left_batch, right_batch;
  term out; /* its labels */
} product;

static int64_t place_of(const term *t, uint8_t label) {
  uint32_t d = 0;
  while (d < t->rank && t->label[d] != label) d++;
  return d;
}

/* Batch dimensions in the order of `batch_order`, those contracted in the order of the left operand. */
static product plan_product(const term *a, const term *b, ax_labels kept, const term *batch_order) {
  product p = {0};
  ax_labels left = labels_of(a), right = labels_of(b), both = left & right;
  for (uint32_t i = 0; i < batch_order->rank; i++) {
    uint8_t label = batch_order->label[i];
    if ((both & kept) >> label & 1) {
      p.left_batch.v[p.left_batch.count++] = place_of(a, label);
      p.right_batch.v[p.right_batch.count++] = place_of(b, label);
      p.out.label[p.out.rank++] = label;
    }
  }
  for (uint32_t d = 0; d < a->rank; d++) {
    if (((both & ~kept) >> a->label[d] & 1) != 0) {
      p.left_contract.v[p.left_contract.count++] = d;
      p.right_contract.v[p.right_contract.count++] = place_of(b, a->label[d]);
    } else if ((right >> a->label[d] & 1) == 0) {
      p.out.label[p.out.rank++] = a->label[d];
    }
  }
  for (uint32_t d = 0; d < b->rank; d++)
    if ((left >> b->label[d] & 1) == 0) p.out.label[p.out.rank++] = b->label[d];
  return p;
}

/* wanted: the result's dimensions, of the last product; NULL. */
static term multiply_and_sum(const term *a, const term *b, ax_labels kept, const term *wanted) {
  product p = plan_product(a, b, kept, wanted != NULL ? wanted : a);
  if (wanted != NULL && !same_order(&p.out, wanted)) {
    product swapped = plan_product(b, a, kept, wanted);
    if (same_order(&swapped.out, wanted)) {
      const term *first = a;
      p = swapped, a = b, b = first;
    }
  }
  p.out.x = ax_dot_general(a->x, b->x, AX_LIST(p.left_contract.count, p.left_contract.v),
                           AX_LIST(p.left_contract.count, p.right_contract.v), AX_LIST(p.left_batch.count, p.left_batch.v),
                           AX_LIST(p.left_batch.count, p.right_batch.v));
  return p.out;
}

/* terms: `count`, and room for as many products. The last is the result; its dimensions may be in another order. */
static term *multiply_all(const einsum *e, term *terms, uint32_t count, const term *result) {
  ax_labels *sets = ax_trace_alloc(count * sizeof sets[0]);
  ax_einsum_step *steps = ax_trace_alloc(count * sizeof steps[0]);
  for (uint32_t i = 0; i < count && sets != NULL; i++) sets[i] = labels_of(&terms[i]);
  if (sets == NULL || steps == NULL || !ax_einsum_order(count, sets, labels_of(result), e->size, steps)) return NULL;
  for (uint32_t k = 0; k + 1 < count; k++) {
    const term *a = &terms[steps[k].left], *b = &terms[steps[k].right], *wanted = k + 2 == count ? result : NULL;
    bool sums = (labels_of(a) & labels_of(b) & ~steps[k].kept) != 0;
    terms[count + k] = sums ? multiply_and_sum(a, b, steps[k].kept, wanted) : multiply(e, a, b, wanted);
  }
  return &terms[2 * count - 2];
}

/* Labels that one operand has, and labels that more than one have, once each operand has each label once. */
static void sum_what_is_alone(term *terms, uint32_t count, ax_labels out) {
  ax_labels once = 0, more = 0;
  for (uint32_t i = 0; i < count; i++) {
    more |= once & labels_of(&terms[i]);
    once |= labels_of(&terms[i]);
  }
  for (uint32_t i = 0; i < count; i++) sum_all_but(&terms[i], more | out);
}

ax_value (ax_einsum)(const char *subscripts, uint32_t count, const ax_value *xs) {
  static const char name[] = "einsum";
  einsum e = {.subscripts = subscripts};
  term result;
  if (ax_failed()) return ax_poison;
  if (subscripts == NULL) return ax_reject_as(name, "there are no subscripts");
  count = ax_list_entries(count, parts_of(subscripts));
  if (count == 0) return ax_reject_as(name, "there are no operands");
  ax_type *types = ax_trace_alloc(count * sizeof types[0]);
  term *terms = ax_trace_alloc(2 * (size_t)count * sizeof terms[0]);
  if (types == NULL || terms == NULL || !ax_operands(name, count, xs, types)) return ax_poison;
  if (types[0].dtype == AX_BOOL) return ax_reject_as(name, "operand 0 is %s; it must be numeric", ax_operand_string(&types[0]));
  if (!read_subscripts(&e, count, types, terms, &result)) return ax_poison;
  for (uint32_t i = 0; i < count; i++) {
    terms[i].x = xs[i];
    simplify(&e, &terms[i]);
  }
  sum_what_is_alone(terms, count, labels_of(&result));
  term *made = multiply_all(&e, terms, count, &result);
  if (made == NULL || ax_failed()) return ax_poison;
  put_in_order(made, &result);
  return made->x;
}
