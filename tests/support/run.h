/* Programs run every way there is. */
#ifndef AX_TESTS_SUPPORT_RUN_H
#define AX_TESTS_SUPPORT_RUN_H

#include "axle/exec.h"
#include "plan/plan.h"
#include "support/tensor.h"

/* A body on each device of a mesh: a shard_map, as a function to trace. One spec for each operand and result; NULL ends them. */
typedef struct test_map {
  const char *mesh, *in_specs[8], *out_specs[8];
  ax_function body;
  bool unchecked;
  void *context; /* the body's */
} test_map;
void test_map_body(const ax_value *in, ax_value *out, void *map);
/* ax_shard_map of specs in arrays. */
void test_shard_map(const ax_mesh *mesh, const char *const *in_specs, const char *const *out_specs, bool unchecked, ax_fn body,
                    const ax_value *in, ax_value *out);
/* Traced; released by the caller. */
ax_program *test_trace_map(const test_map *map, const ax_type *in);

/* The inside of an executable and of an array, for tests of rooms that do not know them. */
const struct ax_compiled *test_compiled(const ax_executable *executable);
struct ax_runner *test_runner(ax_executable *executable);
struct ax_parts *test_parts(const ax_array *array);
/* Code is compiled from now on for registers of so many bytes. */
void test_use_vectors(ax_runtime *runtime, uint32_t bytes);
/* Small programs run on one thread, and so do the cores of kernels that do little between two acts; so that the others are tested too: as
   many as the runtime has, from the beginning. As planned: only one of these runs cores of such a kernel. */
void test_use_threads(ax_executable *executable);
void test_use_threads_as_planned(ax_executable *executable);
/* The plan of a program without axes, before the passes. ax_plan_destroy. */
ax_plan *test_plan(const ax_program *program);
AX_MUST_USE ax_status test_make_plan(const ax_program *program, ax_plan **out);
/* Compiles and runs a program without axes; out: new tensors. */
void test_execute(ax_runtime *runtime, ax_program *program, ax_tensor *const *in, ax_tensor **out);
/* The same in reference code (ax_compile_options). */
void test_execute_reference(ax_runtime *runtime, ax_program *program, ax_tensor *const *in, ax_tensor **out);
/* Likewise, on a runtime of the tests' own; the status of what fails first. */
ax_status test_try(ax_program *program, ax_tensor *const *in, ax_tensor **out);
ax_status test_try_reference(ax_program *program, ax_tensor *const *in, ax_tensor **out); /* in reference code */
/* Both: the same failure, with its message, or, if `written`, the same result, of which there is one. Returns the status. */
ax_status test_as_reference(ax_program *program, ax_tensor *const *in, bool written);
/* Runs under every policy, with 1 to 8 workers, with arguments put down or lent in parts, donated or kept; alone, several runs
   started at once, several threads that run it at once, runs started one on the other's results where these fit, and a share of the
   programs in several processes (processes.h): all must agree bit by bit (any NaN is any NaN), and with reference evaluation within `tolerance`; 0: bit by bit too. How many workers, and the
   orders of the seeded policy, follow from `seed`; TEST_EVERY_WAY takes the next number of workers each time. */
#define TEST_EVERY_WAY(program, in, tolerance) test_every_way((program), (in), (tolerance), 0, __FILE__, __LINE__)
void test_every_way(ax_program *program, ax_tensor *const *in, double tolerance, uint64_t seed, const char *file, int line);
/* Prints how many runs there were under which policy, with how many workers. */
void test_tell_ways(void);

void test_show_program(const ax_program *program);
/* test_every_way on inputs drawn from -1 to 1; prints the program first when it is to be shown. */
void test_random_run(ax_program *program, uint64_t seed, bool show, double tolerance);

/* Calls one(seed, false) for `count` seeds, from 1 on. The environment may say otherwise:
     AXLE_RANDOM_PROGRAMS=n    for n seeds, each printed before
     AXLE_RANDOM_SECONDS=s     for as many as begin within s seconds, likewise, from the clock's own seed on
     AXLE_RANDOM_FROM=n        from seed n on
     AXLE_RANDOM_SEED=n        one(n, true) alone, which shows its program
   The first two print how many programs there were, and which runs, at the end. */
void test_each_seed(uint64_t count, void (*one)(uint64_t seed, bool show));

#endif
