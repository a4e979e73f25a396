/* Perceptrons: one hidden layer over data=4,model=2, and a linear layer whose data alone is spread. */
#ifndef AXLE_BENCH_MLP_H
#define AXLE_BENCH_MLP_H

#include "model.h"

typedef struct mlp_sizes {
  int64_t batch, in, hidden, classes;
} mlp_sizes;

/* Inputs: w1, w2, x, y (one-hot). Cross entropy of relu(x w1) w2. `sizes` outlives the model. */
model *mlp_model(const mlp_sizes *sizes);

/* Inputs: w, x, y. Mean squared error of x w; `batch` rows a device. `mesh`: "data=N". */
model *linear_model(const char *mesh, int64_t devices, int64_t batch, int64_t in, int64_t out);

#endif
