/* What plugins lack. XLA's for CUDA has the collectives by NCCL, which adds no floats of a byte; its compiler ends the process
   at a padding that cuts integers of less than a byte. XLA's for processors moves integers of two bits past the ends of their
   arrays, which ends the process; those of four bits it moves well. It alone runs a step of a loop within some microseconds. No
   plugin is known to run messages that no sharding says anything of, or to round functions of narrow floats once. */
#include "plain/plain.h"

const ax_plain_platform ax_plain_platforms[] = {
    {"axle", {0}},
    {"cpu",
     {.lapack = true, .collective_broadcast = true, .ragged_all_to_all = true, .messages = true, .byte_combinations = true,
      .two_bit_moves = true, .wide_sums = true, .narrow_functions = true, .starts_once = true, .short_counts = true}},
    {"cuda",
     {.lapack = true, .messages = true, .byte_combinations = true, .two_bit_moves = true, .narrow_functions = true, .starts_once = true,
      .short_cuts = true, .slow_steps = true, .short_counts = true}},
    {NULL,
     {.lapack = true, .collective_broadcast = true, .ragged_all_to_all = true, .messages = true, .byte_combinations = true,
      .two_bit_moves = true, .narrow_functions = true, .starts_once = true, .short_cuts = true, .slow_steps = true,
      .short_counts = true}},
};
