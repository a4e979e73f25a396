/* The checker proves that a kernel's synchronisation is right in every order in which its cores, warpgroups and copies can go on,
   and points of a grid along AX_PARALLEL dimensions, or shows an order in which it is wrong. docs/checker.md explains what it proves and how. */
#ifndef AXLE_CHECK_H
#define AXLE_CHECK_H

#include "axle/host.h"
#include "axle/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

typedef enum ax_verdict {
  AX_PROVED,  /* nothing is wrong in any order of the agents, and all orders give the same results bit for bit */
  AX_WRONG,   /* there are findings: also where each run ends well, but results differ ("several results", "order of additions") */
  AX_BOUNDED  /* nothing was found, but not everything was looked at */
} ax_verdict;

/* The inputs that a proof holds for, of the shapes and the mesh that were checked. */
typedef enum ax_check_inputs {
  AX_INPUTS_THESE,     /* those that were given or made up; a verdict other than AX_PROVED is always of these */
  AX_INPUTS_IN_BOUNDS, /* all inputs with which no index leaves the memory that it is of */
  AX_INPUTS_ALL        /* all inputs, on each visit to the kernel */
} ax_check_inputs;

/* One thing that is wrong. Texts are the report's. */
typedef struct ax_check_finding {
  const char *kind;     /* "deadlock", "data race", "leaked semaphore", "several results", ..: docs/checker.md has all */
  const char *text;     /* lines: what, who, where */
  const char *schedule; /* which agent goes on, step by step: for ax_check_options.replay */
  const char *picture;  /* the schedule as text, a column an agent */
  const char *svg;      /* the same, to be looked at */
} ax_check_finding;

/* The result for one kernel_call. */
typedef struct ax_check_kernel {
  const char *name, *location; /* location: "" where it is not known */
  ax_verdict verdict;
  const char *how;             /* a sentence: how it was proved, or what was not looked at */
  ax_check_inputs proved_for;
  const char *proved_for_why;  /* IN_BOUNDS: an access that some inputs may take out of bounds; THESE, of a kernel that is proved: what is
                                  not certain for others, or cannot be followed. "": nothing to say */
  uint32_t agents;             /* cores, copies, the beginning and the end of each device; where counts are read, signals to other
                                  devices */
  uint64_t acts, pairs, holds; /* of one run; pairs of acts that conflict; acts held back to see whether others need them */
  uint64_t states, transitions; /* explored; 0 where one run was enough */
  uint32_t outcomes;            /* of what was explored: how many results runs that end well have; more than one is never proved */
  double state_bytes;           /* memory a state */
  double seconds;               /* of proof and exploration; the run that is recorded for the proof, and reference evaluation, take
                                   longer than a proof */
  uint32_t finding_count;
  const ax_check_finding *findings;
  const char *notes; /* lines of what is no fault but may be a slip: an operand that is stored to and is no result's memory; points along
                        AX_PARALLEL dimensions that were not compared, as the run in the grid's order has no end. "": none */
} ax_check_kernel;

typedef struct ax_check_report {
  ax_verdict verdict; /* the worst of its kernels' */
  uint32_t kernel_count;
  const ax_check_kernel *kernels;
  /* Numbers of the inputs that the checker made up and on whose values the kernels' addresses (indices, devices, amounts,
     predicates, masks) or control flow depend; and, of kernels whose verdict compares values, those that flow into what they store:
     where schedules were explored, or sums of floats are exact. The verdict holds for these made-up values alone. Kernels that are
     proved for all inputs, or all in bounds, add none. The list is an upper bound; inputs that the caller gave are not in it. */
  uint32_t made_up_count;
  const uint32_t *made_up;
  const char *stopped; /* why the evaluation stopped before the program's end, as after a deadlock; NULL: it did not */
} ax_check_report;

/* {0}: the defaults. */
typedef struct ax_check_options {
  ax_host_array_list in;   /* the program's inputs, {AX_HOST_ARRAYS(x, w)}; {0}, and where an entry's data is NULL: the checker
                              makes values up, small numbers, 0 for integers (ax_check_report.made_up). Where the verdict
                              compares values, integers that nothing but these depend on are made up unlike one another */
  uint64_t max_states;     /* 0: 1,000,000 */
  bool explore;            /* look at all schedules, also where one run is enough */
  bool exhaustive;         /* .. without leaving out schedules that are equivalent to others */
  bool every_visit;        /* a kernel that the program reaches several times is checked each time, not only the first time */
  const char *replay;      /* a finding's schedule: the first kernel is run in this order, and the outcome is the report's one
                              finding; NULL */
} ax_check_options;

/* Evaluates the program with the reference evaluator and checks each kernel_call that it reaches, with the values that the call has
   there. A proof holds for these sizes and this control flow. For a program without kernels it checks that the program ends,
   without a deadlock between devices.
   `options` may be NULL. `*out` is owned by the caller: ax_check_report_release. Any thread; several at once.
   AX_INVALID_ARGUMENT: inputs that are not the program's, or another number of them; a schedule that cannot be followed.
   AX_ABSENT: a kernel that cores cannot run. A finding is no error: the function returns AX_OK. */
AX_MUST_USE ax_status ax_check(const ax_program *program, const ax_check_options *options, ax_check_report **out);
void ax_check_report_release(ax_check_report *report); /* NULL is allowed */

#pragma GCC visibility pop

#ifndef AXLE_NO_LINES /* axle/line.h */
#define ax_check(...) AX_LINED_STATUS(check, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
