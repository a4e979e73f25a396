/* Convolutions and pools of one device, forwards and with both gradients. */
#include <string.h>

#include "axle/ops.h"
#include "axle/transform.h"
#include "cases.h"
#include "job.h"
#include "serve.h"

typedef struct windowed {
  const char *name;
  int64_t x[4], w[4]; /* NHWC, HWIO */
  int64_t stride, groups;
  bool pools, gradients;
} windowed;

static AX_BODY(values) {
  const windowed *c = context;
  const ax_conv_options options = {.lhs = "NHWC",
                                   .rhs = "HWIO",
                                   .strides = {AX_DIMS(c->stride, c->stride)},
                                   .padding = "SAME",
                                   .feature_group_count = c->groups};
  if (c->pools)
    out[0] = ax_max_pool(in[0], AX_LIST(2, c->w), AX_DIMS(c->stride, c->stride), "SAME");
  else
    out[0] = ax_conv_general_dilated(in[0], in[1], &options);
}

static AX_BODY(loss) {
  ax_value y;
  values(in, &y, context);
  out[0] = ax_reduce_sum(ax_square(y), AX_ALL_DIMS, false);
}

static AX_BODY(made) {
  const windowed *c = context;
  if (!c->gradients) values(in, out, context);
  else ax_grad(AX_CLOSURE(loss, c->pools ? 1 : 2, 1, context), AX_FIRST(c->pools ? 1 : 2), in, out);
}

static const windowed all[] = {
    {"conv_3x3", {8, 64, 64, 32}, {3, 3, 32, 32}, 1, 1, false, false},
    {"conv_1x1", {8, 64, 64, 32}, {1, 1, 32, 64}, 1, 1, false, false},
    {"conv_depthwise", {8, 64, 64, 32}, {3, 3, 1, 32}, 1, 32, false, false},
    {"conv_7x7", {8, 128, 128, 3}, {7, 7, 3, 64}, 2, 1, false, false},
    {"conv_3x3_gradients", {8, 64, 64, 32}, {3, 3, 32, 32}, 1, 1, false, true},
    {"max_pool", {8, 64, 64, 32}, {2, 2}, 2, 1, true, false},
    {"max_pool_gradient", {8, 64, 64, 32}, {2, 2}, 2, 1, true, true},
};

/* One of these. */
void windows(char **arguments) {
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    windowed c = all[i];
    if (strcmp(c.name, arguments[0]) != 0) continue;
    ax_type types[] = {ax_array_type(AX_F32, AX_LIST(4, c.x)), ax_array_type(AX_F32, AX_LIST(4, c.w))};
    uint32_t in = c.pools ? 1 : 2;
    job j = job_create(&(job_function){made, &c, NULL, in, c.gradients ? in : 1, types, NULL, NULL}, 0);
    bench_serve(job_run, &j, 1);
    return;
  }
}
