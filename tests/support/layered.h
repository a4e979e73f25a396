/* A small loss of layers for the planner's tests: (f[layers,4,6] w1, f[layers,6,4] w2, f[4] out, f[4] x, f[4] y) -> f[]. */
#ifndef AX_TESTS_SUPPORT_LAYERED_H
#define AX_TESTS_SUPPORT_LAYERED_H

#include "axle/axle.h"

enum { TEST_WIDTH = 4, TEST_HIDDEN = 6, TEST_PARAMS = 3, TEST_INPUTS = 5 };

static inline AX_BODY(test_layer) { out[0] = ax_add(in[0], ax_matmul(ax_tanh(ax_matmul(in[0], in[1])), in[2])); }

static inline AX_BODY(test_loss) {
  const int64_t *layers = context;
  ax_value h;
  ax_scan(AX_FN(test_layer, 3, 1), 1, *layers, false, AX_VALUES(ax_sin(in[3]), in[0], in[1]), AX_LIST(1, &h));
  out[0] = ax_reduce_mean(ax_square(ax_sub(ax_mul(h, in[2]), in[4])), AX_ALL_DIMS, false);
}

/* Of any width and hidden width. */
static inline ax_status test_trace_loss(ax_dtype dtype, int64_t layers, int64_t width, int64_t hidden, ax_program **out) {
  const ax_type types[TEST_INPUTS] = {ax_array_type(dtype, AX_DIMS(layers, width, hidden)), ax_array_type(dtype, AX_DIMS(layers, hidden, width)),
                                      ax_array_type(dtype, AX_DIMS(width)), ax_array_type(dtype, AX_DIMS(width)),
                                      ax_array_type(dtype, AX_DIMS(width))};
  return ax_trace(AX_CLOSURE(test_loss, TEST_INPUTS, 1, &layers), AX_LIST(TEST_INPUTS, types), out);
}

/* Its sample is x and y. No search is cut short, however slow the machine is. */
static inline ax_planner_options test_options(int64_t samples, int64_t devices) {
  static const uint32_t batch[] = {3, 4};
  return (ax_planner_options){
      .devices = devices, .train = true, .samples = samples, .batch = {.list = batch, .count = 2}, .seconds = 1e4};
}

#endif
