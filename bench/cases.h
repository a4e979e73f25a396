/* The cases of this program: see the table in main.c. Each sets itself up and answers bench/run until it is told no more. */
#ifndef AXLE_BENCH_CASES_H
#define AXLE_BENCH_CASES_H

typedef void bench_case(char **arguments);
bench_case add_one, psum, psum_in_scan, collective, repeated, repeated_on_grid, beside; /* collectives.c */
bench_case train, train_rounds, compile, compile_again, peak_memory, temporaries, gradients; /* training.c */
bench_case sgemm, pointwise;                        /* alone.c */
bench_case rows_in_scan, cache_in_scan;             /* updates.c */
bench_case operations, operations_traced, operations_simulated; /* ops.c */
bench_case strange_numbers;                         /* numbers.c */
bench_case windows;                                 /* windows.c */
bench_case at_once, ahead;                           /* threads.c */
bench_case place;                                   /* placing.c */
bench_case gathered_matmul, pipelined;              /* kernels.c */
bench_case grid;                                    /* grids.c */
bench_case grid_table;                              /* grid_tables.c */
bench_case acts;                                    /* acts.c */
bench_case module_read, module_compile, module_run, module_memory; /* modules.c */
bench_case calls;                                   /* calls.c */
bench_case checked;                                 /* checked.c */
bench_case simulated;                               /* simulated.c */
bench_case scaling, reading, every_stage;           /* scaling.c */

#endif
