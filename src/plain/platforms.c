/* What plugins lack. XLA's for CUDA has the collectives by NCCL, which adds no floats of a byte. No plugin is known to run messages that no
   sharding says anything of, or to round functions of narrow floats once. */
#include "plain/plain.h"

const ax_plain_platform ax_plain_platforms[] = {
    {"axle", {0}},
    {"cpu",
     {.lapack = true, .collective_broadcast = true, .ragged_all_to_all = true, .messages = true, .byte_combinations = true, .wide_sums = true,
      .narrow_functions = true, .starts_once = true, .short_counts = true}},
    {"cuda", {.lapack = true, .messages = true, .byte_combinations = true, .narrow_functions = true, .starts_once = true, .short_counts = true}},
    {NULL,
     {.lapack = true, .collective_broadcast = true, .ragged_all_to_all = true, .messages = true, .byte_combinations = true,
      .narrow_functions = true, .starts_once = true, .short_counts = true}},
};
