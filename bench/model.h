/* A model to train: a loss over weights and data, and their layout on the mesh. */
#ifndef AXLE_BENCH_MODEL_H
#define AXLE_BENCH_MODEL_H

#include "axle/program.h"

typedef struct model model;
struct model {
  const char *mesh;
  ax_function loss; /* on one device: (weights.., data..) -> f32[], the same on all devices; context: the model */
  uint32_t weight_count, input_count;
  ax_type *types;     /* of whole arrays; input_count of them, as those below; owned by the model */
  const char **specs; /* owned; the texts are not */
  const char **names; /* of the weights and data in files; owned, the texts too */
  const void *sizes;  /* the model's own */
  bool global;        /* the loss is over whole arrays, which lie as the specs say, and has no collectives */
};

/* Room for `input_count` inputs, added one by one with model_input. */
model *model_create(const char *mesh, ax_function loss, const void *sizes, uint32_t weight_count, uint32_t input_count);
/* `name` may have a %d in it, for `number`. */
void model_input(model *m, const char *spec, ax_dtype dtype, uint32_t rank, const int64_t *dims, const char *name,
                 int number);
void model_release(model *m);

/* Over the devices along an axis; the value itself where it is of whole arrays. */
ax_value model_sum(const model *m, ax_value x, const char *axis);
ax_value model_mean(const model *m, ax_value x, const char *axis);

#endif
