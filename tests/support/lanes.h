/* Programs on all devices of their axes at once: arrays of tensors, [operand * lanes + lane]; one lane when there are no axes. */
#ifndef AX_TESTS_SUPPORT_LANES_H
#define AX_TESTS_SUPPORT_LANES_H

#include "support/random.h"

uint32_t test_lanes(const ax_program *program);
/* `count` empty places for each lane; free. */
ax_tensor **test_lane_array(const ax_program *program, uint32_t count);
void test_lane_array_release(const ax_program *program, ax_tensor **tensors, uint32_t count);

/* A value for each lane, the same on those that differ only along axes the type does not vary over (unchecked ones always vary). */
typedef ax_tensor *(*test_fill)(test_random *random, ax_type type, double low, double high);
void test_fill_lanes(const ax_program *program, const ax_type *type, test_random *random, test_fill fill, double low,
                     double high, ax_tensor **out);
ax_tensor *test_fill_edges(test_random *random, ax_type type, double low, double high);

/* Reference evaluation. */
AX_MUST_USE ax_status test_run_lanes(const ax_program *program, ax_tensor *const *in, ax_tensor **out);
/* Sum of products over all elements on all lanes, where what is the same on several counts once. */
double test_inner_lanes(const ax_program *program, const ax_type *type, ax_tensor *const *a, ax_tensor *const *b);
/* The sum of squared sizes, likewise. */
double test_squares_lanes(const ax_program *program, const ax_type *type, ax_tensor *const *a);

/* The program as one without axes: inputs and results are whole arrays with a dimension in front for each axis that they vary over,
   and a shard_map over the axes runs it. A program without axes is returned as it is. ax_program_release. */
AX_MUST_USE ax_status test_on_mesh(ax_program *program, ax_program **out);
/* All programs, none with axes, as one: their inputs and results one after the other. */
AX_MUST_USE ax_status test_together(ax_program *const *programs, uint32_t count, ax_program **out);

#endif
