/* A language model: `layers` blocks of causal attention and a gelu layer, each after an RMS norm and added to what came in.
   Attention heads and the hidden layer lie over "model", the batch over "data". */
#ifndef AXLE_BENCH_TRANSFORMER_H
#define AXLE_BENCH_TRANSFORMER_H

#include "model.h"

typedef struct transformer_sizes {
  int64_t layers, width, heads, hidden, length, batch, vocabulary;
} transformer_sizes;

/* Inputs: of each layer wqkv[width, 3, heads, key], wo[heads, key, width], w1[width, hidden], w2[hidden, width], g1[width],
   g2[width], where key = width / heads; then the embedding e[vocabulary, width]; then tok: s32[batch, length].
   The loss is the mean cross entropy of each token but the first, given those before it. `sizes` outlives the model. */
model *transformer_model(const transformer_sizes *sizes);

#endif
