/* The stages of a program on its way to a run, each an object that can be asked: traced (ax_program), lowered, compiled (ax_executable), and
   what each costs before the next is begun. docs/running.md has an example. */
#ifndef AXLE_STAGES_H
#define AXLE_STAGES_H

#include "axle/exec.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

/* What one kind of collective over the same axes does, in one run, on one device. */
typedef struct ax_collective_cost {
  const char *primitive; /* "psum" */
  const char *axes;      /* "data", or "data,model" */
  int64_t members;       /* of a group: those that exchange with one another; of groups of several sizes the largest */
  double runs;           /* how often: loops multiplied */
  double bytes;          /* received by a device in all of them */
} ax_collective_cost;

/* What one device computes, reads and receives in a run, counted from the program: nothing is compiled. Of conditionals the costliest branch
   counts (by the sum of the three figures), and a loop that runs until a condition says so counts as one step. */
typedef struct ax_cost {
  int64_t devices;
  double flops;    /* operations on elements: one an element of a pointwise function, two a pair of a product, one an element reduced. What only
                      moves or converts elements has none */
  double bytes;    /* read and written if each equation read its operands from memory and wrote its results there: more than what runs,
                      which is fused */
  double received; /* from other devices, by all collectives: as rings of the fewest bytes do it, n members and an operand of B bytes being
                      2(n-1)/n B for a psum, (n-1)/n B where each gets a part of what the others have (psum_scatter, all_to_all), (n-1) B for
                      all_gather, B for ppermute, pbroadcast and a message */
  bool at_least;   /* there are loops of which one step was counted */
  uint32_t collective_count;
  ax_collective_cost *collectives; /* those with the most bytes first; owned by the struct */
} ax_cost;
/* Of a program without axes of its own, simplified and partitioned as ax_compile does it. `*out` is to be released (ax_cost_release), and empty on
   failure; what it held is not released. Any thread. AX_INVALID_ARGUMENT, AX_ABSENT: what ax_program_partition says. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_program_cost(const ax_program *program, ax_cost *out);
void ax_cost_release(ax_cost *cost); /* leaves it empty */
/* As a table. `*out`: ax_string_free. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_cost_text(const ax_cost *cost, char **out);

#pragma GCC visibility pop

#ifndef AXLE_NO_LINES /* axle/line.h */
#define ax_program_cost(...) AX_LINED_STATUS(program_cost, __VA_ARGS__)
#define ax_cost_text(...) AX_LINED_STATUS(cost_text, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
