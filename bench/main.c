/* build/bench/ours CASE ARGUMENT...: Axle's side of the races. bench/run starts it; serve.h says how they talk. */
#include <stdio.h>
#include <string.h>

#include "cases.h"

static const struct {
  const char *name;
  bench_case *run;
  int argument_count;
  const char *arguments;
} cases[] = {
    {"add_one", add_one, 1, "DEVICES"},
    {"psum", psum, 1, "DEVICES"},
    {"psum_in_scan", psum_in_scan, 1, "DEVICES"},
    {"collective", collective, 2, "psum|all_gather|all_to_all|ppermute|psum_scatter MEBIBYTES"},
    {"repeated", repeated, 2,
     "psum|pmean|pmax|pmin|all_gather|all_to_all|ppermute|psum_scatter|ragged_all_to_all|psum_of_pairs|pbroadcast|psum_of_others|"
     "all_to_all_negated|ragged_negated BYTES"},
    {"repeated_on_grid", repeated_on_grid, 1, "BYTES"},
    {"beside", beside, 1, "products|exchanges|both"},
    {"train", train, 1, "mlp_small|mlp_middle|transformer"},
    {"train_rounds", train_rounds, 3, "mlp_small|mlp_middle|transformer STEPS ROUNDS"},
    {"at_once", at_once, 2, "small|mlp_small|mlp_middle|transformer THREADS"},
    {"ahead", ahead, 1, "mlp_small|mlp_middle|transformer"},
    {"compile_again", compile_again, 1, "mlp_small|mlp_middle|transformer"},
    {"compile", compile, 1, "mlp_small|mlp_middle|transformer"},
    {"peak_memory", peak_memory, 1, "DEVICES"},
    {"temporaries", temporaries, 2, "step|loss LAYERS"},
    {"rows_in_scan", rows_in_scan, 1, "ROWS"},
    {"windows", windows, 1, "CASE"},
    {"cache_in_scan", cache_in_scan, 1, "STEPS"},
    {"place", place, 2, "put|move|read|read_in_place rows|columns|whole"},
    {"gathered_matmul", gathered_matmul, 2, "kernel|plain|product N"},
    {"pipelined", pipelined, 2, "kernel|plain scale|add|matmul"},
    {"grid", grid, 3, "kernel|parallel|interpret|plain CASE WORKERS"},
    {"grid_table", grid_table, 3, "kernel|plain CASE WORKERS"},
    {"acts", acts, 2, "CASE|limit WORKERS"},
    {"calls", calls, 2, "COUNT each|sum"},
    {"checked", checked, 2, "prove|state|state_limit|bytes|bytes_limit DEVICES"},
    {"simulated", simulated, 3, "ring|tree|all_to_all DEVICES real|simulated|form|limit"},
    {"module_read", module_read, 1, "FILE"},
    {"module_compile", module_compile, 1, "FILE"},
    {"module_run", module_run, 1, "FILE"},
    {"module_memory", module_memory, 1, "FILE"},
    {"scaling", scaling, 2, "FAMILY N"},
    {"reading", reading, 2, "FAMILY N"},
    {"stages", every_stage, 2, "FAMILY N"},
    {"ops", operations, 1, "WORKERS"},
    {"ops_traced", operations_traced, 0, ""},
    {"ops_simulated", operations_simulated, 1, "MACHINE"},
    {"strange_numbers", strange_numbers, 1, "flush|keep"},
    {"sgemm", sgemm, 1, "WORKERS"},
    {"pointwise", pointwise, 1, "WORKERS"},
    {"gradients", gradients, 3, "mlp_small|mlp_middle|transformer INPUTS.npz RESULTS.npz"},
};

int main(int argc, char **argv) {
  for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof cases[0]; i++) {
    if (strcmp(argv[1], cases[i].name) != 0 || argc - 2 != cases[i].argument_count) continue;
    cases[i].run(argv + 2);
    return 0;
  }
  fprintf(stderr, "usage:\n");
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    fprintf(stderr, "  %s %s %s\n", argv[0], cases[i].name, cases[i].arguments);
  return 2;
}
