/* Programs run every way there is. */
#ifndef AX_TESTS_SUPPORT_RUN_H
#define AX_TESTS_SUPPORT_RUN_H

#include "axle/exec.h"
#include "loop/plan.h"
#include "support/tensor.h"

/* A body on each device of a mesh: a shard_map, as a function to trace. One spec for each operand and result; NULL ends them. */
typedef struct test_map {
  const char *mesh, *in_specs[8], *out_specs[8];
  ax_function body;
  bool unchecked;
  void *context; /* the body's */
} test_map;
void test_map_body(const ax_value *in, ax_value *out, void *map);
/* Traced; released by the caller. */
ax_program *test_trace_map(const test_map *map, const ax_type *in);

/* Small programs run on one thread; so that the others are tested too: as many as the runtime has. */
void test_use_threads(ax_executable *executable);
/* The plan of a program without axes, before the passes. ax_plan_destroy. */
ax_plan *test_plan(ax_program *program);
/* Compiles and runs a program without axes; out: new tensors. */
void test_execute(ax_runtime *runtime, ax_program *program, ax_tensor *const *in, ax_tensor **out);
/* The same in reference code (ax_compile_options). */
void test_execute_reference(ax_runtime *runtime, ax_program *program, ax_tensor *const *in, ax_tensor **out);
/* Runs under every policy, several seeds and worker counts, with arguments put down or lent in parts, donated or kept, alone or
   several runs at once: all must agree bit by bit, and with reference evaluation within `tolerance`. */
#define TEST_EVERY_WAY(program, in, tolerance) test_every_way((program), (in), (tolerance), __FILE__, __LINE__)
void test_every_way(ax_program *program, ax_tensor *const *in, double tolerance, const char *file, int line);

/* TEST_EVERY_WAY on inputs drawn from -1 to 1; prints the program first when it is to be shown. */
void test_random_run(ax_program *program, uint64_t seed, bool show, double tolerance);

/* Calls one(seed, false) for seeds 1 to 24, or as many as $AXLE_RANDOM_PROGRAMS says, named as they come; or only
   one(seed, true), which shows its program, for $AXLE_RANDOM_SEED. */
void test_each_seed(void (*one)(uint64_t seed, bool show));

#endif
