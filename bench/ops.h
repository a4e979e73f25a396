/* b9: operations and models of one device, by name: "reduce sum f32 0 4096 4096". A case is words; its family is the
   first. */
#ifndef AXLE_BENCH_OPS_H
#define AXLE_BENCH_OPS_H

#include "axle/ops.h"

enum { OP_MOST_WORDS = 16 };

typedef struct op_case {
  const char *words[OP_MOST_WORDS]; /* after the family's */
  uint32_t word_count;
  ax_function body; /* with the case as its context */
  uint32_t in_count, out_count;
  ax_type *types;   /* of the inputs; room for more than most_inputs is made by op_inputs */
  uint32_t carried; /* as a job's */
  int64_t below;    /* what its inputs of s32 are indices into: all over it; 0: small numbers */
  double moved;     /* bytes that have to be read and written where that is not inputs and results; 0: it is */
  double flops;     /* multiplications and additions of products; 0: none to speak of */
  ax_dtype dtype;   /* of these */
  double parts;     /* a time is of one of so many; 0: 1 */
} op_case;

typedef struct op_family {
  const char *name;
  void (*make)(op_case *c);
} op_family;
extern const op_family op_model_families[];    /* op_models.c; ends with an empty one */
extern const op_family op_number_families[];   /* op_numbers.c; likewise */
extern const op_family op_whole_families[];    /* op_whole.c; likewise */
extern const op_family op_net_families[];      /* op_nets.c; likewise */
extern const op_family op_step_families[];     /* op_steps.c; likewise */
extern const op_family op_language_families[]; /* op_language.c; likewise */

ax_dtype op_dtype(const char *word);
int64_t op_int(const op_case *c, uint32_t word);
void op_input(op_case *c, ax_dtype dtype, uint32_t rank, const int64_t *dims);
ax_value op_number(ax_dtype dtype, double value); /* a scalar */
void op_product(op_case *c, ax_dtype dtype, double m, double n, double k); /* adds so many flops */

/* For whole models; in op_whole.c. */
ax_value op_scaled(ax_value x, double by);
/* Inputs from `first` on are weights: their gradients, and a step down. out: the loss, the new weights. */
void op_descend(ax_fn loss, const ax_value *in, uint32_t first, ax_value *out);
ax_value op_cross_entropy(ax_value logits, ax_value labels); /* [n, classes], s32[n]: the mean of the labels' entropies */

#define OP_IN(c, dtype, ...) \
  op_input(c, dtype, (uint32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

#endif
