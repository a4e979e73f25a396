/* The checker: whether a kernel's synchronisation is right, in whatever order its cores, warpgroups and copies go on.
   docs/checker.md says what is proved, and why. */
#ifndef AXLE_CHECK_H
#define AXLE_CHECK_H

#include "axle/host.h"
#include "axle/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

typedef enum ax_verdict {
  AX_PROVED,  /* nothing is wrong, in whatever order agents go on, and all orders give the same results bit for bit */
  AX_WRONG,   /* there are findings: also where each run ends well, but results differ ("several results") */
  AX_BOUNDED  /* nothing was found, but not everything was looked at */
} ax_verdict;

/* One thing that is wrong. Texts are the report's. */
typedef struct ax_check_finding {
  const char *kind;     /* "deadlock", "data race", "leaked semaphore", "several results", ..: docs/checker.md has all */
  const char *text;     /* lines: what, who, where */
  const char *schedule; /* which agent goes on, step by step: for ax_check_options.replay */
  const char *picture;  /* the schedule as text, a column an agent */
  const char *svg;      /* the same, to be looked at */
} ax_check_finding;

/* What was found of one kernel_call. */
typedef struct ax_check_kernel {
  const char *name, *location; /* location: "" where it is not known */
  ax_verdict verdict;
  const char *how;             /* a sentence: by what, or what was not looked at */
  uint32_t agents;             /* cores, copies, the beginning and the end of each device; where counts are read, signals to other devices */
  uint64_t acts, pairs, holds; /* of one run; pairs of acts that conflict; acts held back to see whether others need them */
  uint64_t states, transitions; /* explored; 0 where one run was enough */
  uint32_t outcomes;            /* of what was explored: how many results runs that end well have; more than one is never proved */
  double state_bytes;           /* memory a state */
  double seconds;               /* of proof and exploration; the run that is recorded for the proof, and reference evaluation, take longer than a proof */
  uint32_t finding_count;
  const ax_check_finding *findings;
} ax_check_kernel;

typedef struct ax_check_report {
  ax_verdict verdict; /* the worst of its kernels' */
  uint32_t kernel_count;
  const ax_check_kernel *kernels;
  /* Inputs, by number, that were made up, and that kernels' addresses (indices, devices, amounts, predicates, masks) or control
     flow follow from: what is said holds for the values that were made up alone. An upper bound; inputs that are given are not in
     it. */
  uint32_t made_up_count;
  const uint32_t *made_up;
  const char *stopped; /* why the program could not be gone through to its end, as after a deadlock; NULL: it was */
} ax_check_report;

/* {0}: the defaults. */
typedef struct ax_check_options {
  const ax_host_array *in; /* of each of the program's inputs; NULL, or one whose data is NULL: made up, small numbers, of integers 0 (ax_check_report.made_up) */
  uint64_t max_states;     /* 0: 1,000,000 */
  bool explore;            /* look at all schedules, also where one run is enough */
  bool exhaustive;         /* .. without leaving out those that come to the same */
  bool every_visit;        /* a kernel that is come to several times is checked each time, not the first alone */
  const char *replay;      /* a finding's schedule: the first kernel is run so, and the report's one finding is what it comes to; NULL */
} ax_check_options;

/* Goes through the program (reference evaluation) and checks each kernel_call that it comes to, with the values it has there: what
   is proved is proved for these sizes and this control flow. Of a program without kernels: that it ends, without a deadlock between
   devices.
   `options` may be NULL. `*out` is owned by the caller: ax_check_report_release. Any thread; several at once. AX_INVALID_ARGUMENT:
   inputs that are not the program's, a schedule that cannot be gone. AX_ABSENT: a kernel that cores cannot run. What is found is no
   error. */
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
