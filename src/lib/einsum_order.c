/* The order of products of an einsum.

   The cost of a product is its number of multiplications, which is the product of the sizes of its operands' labels, and the
   elements that it writes. Of up to eight terms the best order is found from the best order of each subset. More terms are first
   reduced to eight: each time by the product whose result is smallest compared with the two terms it replaces. Either way a
   subset's product has the labels that the result or a term outside it needs. */
#include <math.h>

#include "prim/composite.h"
#include "lib/einsum.h"

enum { most_exact = 8, most_compared = 32 };

static double elems(ax_labels labels, const int64_t *size) {
  double product = 1;
  for (; labels != 0; labels &= labels - 1) product *= (double)size[__builtin_ctzll(labels)];
  return product;
}

static bool too_many(ax_labels labels) { return __builtin_popcountll(labels) > AX_MAX_RANK; }

typedef struct terms { /* those that are left */
  uint32_t count;
  uint32_t *number;
  ax_labels *labels;
  ax_labels out;
  const int64_t *size;
  ax_einsum_step *steps;
  uint32_t made, operands; /* steps so far */
} terms;

/* --- More than eight: the most is saved first --- */

/* Labels that more than two of them have: a product of two keeps those. */
static ax_labels shared_by_three(const terms *t) {
  ax_labels one = 0, two = 0, three = 0;
  for (uint32_t i = 0; i < t->count; i++) {
    three |= two & t->labels[i];
    two |= one & t->labels[i];
    one |= t->labels[i];
  }
  return three;
}

/* A label that only one of the two has is needed elsewhere: else it would have been summed over. */
static ax_labels pair_kept(const terms *t, uint32_t i, uint32_t j, ax_labels three) {
  ax_labels a = t->labels[i], b = t->labels[j];
  return (a ^ b) | (a & b & (t->out | three));
}

/* Joins the two of the first few terms whose product grows least; false: each product has too many dimensions. */
static bool join_cheapest(terms *t) {
  uint32_t compared = t->count < most_compared ? t->count : most_compared, left = 0, right = 0;
  ax_labels three = shared_by_three(t);
  double least = INFINITY;
  for (uint32_t i = 0; i < compared; i++)
    for (uint32_t j = i + 1; j < compared; j++) {
      ax_labels kept = pair_kept(t, i, j, three);
      double grows = too_many(kept) ? INFINITY : elems(kept, t->size) - elems(t->labels[i], t->size) - elems(t->labels[j], t->size);
      if (grows < least) least = grows, left = i, right = j;
    }
  if (left == right) return false;
  ax_labels kept = pair_kept(t, left, right, three);
  t->steps[t->made] = (ax_einsum_step){t->number[left], t->number[right], kept};
  t->number[left] = t->operands + t->made++;
  t->labels[left] = kept;
  t->count--;
  t->number[right] = t->number[t->count];
  t->labels[right] = t->labels[t->count];
  return true;
}

/* --- Up to eight: the best --- */

typedef struct subset {
  ax_labels all, kept; /* of its terms; of their product */
  double cost;         /* of making it */
  uint32_t left;       /* the part of it that is made first */
} subset;

static void find_best_split(subset *of, uint32_t set, const int64_t *size) {
  subset *s = &of[set];
  s->cost = INFINITY;
  if (too_many(s->kept)) return;
  uint32_t first = set & -set, rest = set ^ first;
  for (uint32_t with = rest;; with = (with - 1) & rest) { /* the left part is the first term and those */
    uint32_t left = first | with, right = set ^ left;
    if (right != 0) {
      double cost = of[left].cost + of[right].cost + elems(of[left].kept | of[right].kept, size) + elems(s->kept, size);
      if (cost < s->cost) s->cost = cost, s->left = left;
    }
    if (with == 0) return;
  }
}

/* The steps that make the subset; returns the number of its term. */
static uint32_t write_steps(terms *t, const subset *of, uint32_t set) {
  if ((set & (set - 1)) == 0) return t->number[__builtin_ctz(set)];
  uint32_t left = write_steps(t, of, of[set].left), right = write_steps(t, of, set ^ of[set].left);
  t->steps[t->made] = (ax_einsum_step){left, right, of[set].kept};
  return t->operands + t->made++;
}

static bool join_all(terms *t) {
  subset of[1 << most_exact] = {0};
  uint32_t whole = (1u << t->count) - 1;
  for (uint32_t set = 1; set <= whole; set++) of[set].all = of[set & (set - 1)].all | t->labels[__builtin_ctz(set)];
  for (uint32_t set = 1; set <= whole; set++) {
    of[set].kept = of[set].all & (t->out | of[whole ^ set].all);
    if ((set & (set - 1)) != 0) find_best_split(of, set, t->size);
  }
  if (isinf(of[whole].cost)) return false;
  write_steps(t, of, whole);
  return true;
}

bool ax_einsum_order(uint32_t count, const ax_labels *labels, ax_labels out, const int64_t *size, ax_einsum_step *steps) {
  terms t = {.count = count, .operands = count, .out = out, .size = size, .steps = steps};
  t.number = ax_trace_alloc(count * sizeof t.number[0]);
  t.labels = ax_trace_alloc(count * sizeof t.labels[0]);
  if (t.number == NULL || t.labels == NULL) return false;
  for (uint32_t i = 0; i < count; i++) t.number[i] = i, t.labels[i] = labels[i];
  bool found = true;
  while (found && t.count > most_exact) found = join_cheapest(&t);
  if (found && join_all(&t)) return true;
  ax_reject_as("einsum", "in each order some product of two has more than %d dimensions", AX_MAX_RANK);
  return false;
}
