/* Simulated time: predicts how long a run of a program takes on a machine that is only described. Nothing is computed but time.
   docs/simulate.md has the model, the description's form and examples. */
#ifndef AXLE_SIMULATE_H
#define AXLE_SIMULATE_H

#include "axle/stages.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

/* --- Machines --- */

/* A machine: the speed of its devices and the links between them. Immutable; any thread. */
typedef struct ax_cluster ax_cluster;
/* Reads a description. source: its name in errors. `*out` is owned by the caller. AX_PARSE_ERROR: with source, line and column.
   AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_cluster_parse(const char *text, const char *source, ax_cluster **out);
/* One by name ("h200", "tpu-v5p", ..: ax_cluster_builtin lists them; "cpu": the cores of this machine, whose speeds are measured in some
   100 ms the first time, or given by AXLE_MACHINE; "cpu:4": the same with devices of four cores each), or from the file of that name. AX_IO_ERROR: neither.
   AX_PARSE_ERROR, AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_cluster_read(const char *name_or_path, ax_cluster **out);
void ax_cluster_release(ax_cluster *machine); /* may be NULL */
const char *ax_cluster_name(const ax_cluster *machine); /* as its text says; borrowed */
const char *ax_cluster_text(const ax_cluster *machine); /* its description; borrowed */
/* The names of the built-in machines, from 0 on, and their texts; NULL: there are no more. */
const char *ax_cluster_builtin(uint32_t index, const char **text);

/* --- Simulating --- */

/* The algorithm by which collectives exchange messages. */
typedef enum ax_algorithm {
  AX_ALGORITHM_BEST,          /* the fastest of these choices: for each collective its fastest algorithm when it runs alone, or one
                                 algorithm for all collectives */
  AX_ALGORITHM_RING,          /* one ring through all members, one way: all-reduce in 2(n-1) steps of B/n bytes */
  AX_ALGORITHM_BIDIRECTIONAL, /* the same, half of each part either way */
  AX_ALGORITHM_DIMENSIONS,    /* rings along one dimension of the machine after the other: nodes and their devices, sides of a
                                 torus */
  AX_ALGORITHM_DOUBLING,      /* ceil(log2 n) steps to members 1, 2, 4, .. further on; twice as many for an all-reduce (Bruck et
                                 al., 1997) */
  AX_ALGORITHM_TREE,          /* binomial: to the first member, and back: 2 ceil(log2 n) steps of B bytes */
  AX_ALGORITHM_DIRECT,        /* each member to each other one, all at once */
  AX_ALGORITHM_PAIRWISE,      /* the same in n-1 steps: all_to_all */
  AX_ALGORITHM_TORUS,         /* as DIMENSIONS, by so many parts side by side that all links are in use: for each dimension one part
                                 that begins with it and goes one way, and one that goes the other way */
  AX_ALGORITHM_SWITCH,        /* in switches that add and multicast, as a machine's description says of them: an all-reduce sends B
                                 bytes to the switch, and gets B bytes. Over nodes: scattered and gathered in them, and added between
                                 them; each by such switches, or by doubling where that is sooner */
  /* On a machine of nodes, each of which is a process (docs/processes.md). AX_ALGORITHM_BEST does not try these. */
  AX_ALGORITHM_GATHER,        /* each process sends what its members have to every other one */
  AX_ALGORITHM_SHARES,        /* all-reduce: each process adds a share of the elements, and sends its total to every other one */
  AX_ALGORITHM_CHAIN,         /* all-reduce, in blocks: each process adds its members and passes the block on; the last sends it back */
  AX_ALGORITHM_RUN,           /* as runs over processes do it: by the same table */
  AX_ALGORITHM_COUNT
} ax_algorithm;
const char *ax_algorithm_name(ax_algorithm algorithm); /* "best", "ring", ..; static */
/* AX_INVALID_ARGUMENT: there is none of that name; the message lists them. */
AX_MUST_USE ax_status ax_algorithm_find(const char *name, ax_algorithm *out);

/* A straggler: a device that takes so many times as long for what it computes. */
typedef struct ax_slow_device {
  int64_t device;
  double factor; /* 1e-6 to 1e6 */
} ax_slow_device;
typedef struct ax_slow_device_list {
  uint32_t count;
  const ax_slow_device *v;
} ax_slow_device_list;

typedef struct ax_simulate_options {
  ax_algorithm algorithm; /* for the collectives that it can do; the others take their best */
  bool every_device;      /* also simulate each device that does the same as another, and each step that repeats another */
  double most_messages;   /* a simulation with more is refused; 0: 5e7 */
  uint32_t spans;         /* number of devices whose spans are kept; 0: 64 */
  ax_slow_device_list slow; /* with any, each device is simulated by itself */
} ax_simulate_options;

/* An operation of the plan, all its runs together. */
typedef struct ax_simulated_op {
  const char *name;      /* of the primitive: "psum"; or of a part that was split off it: "pack", which puts a product's right
                            factor into another order */
  const char *location;  /* of the C call, "prog.c:12"; NULL: not known */
  uint32_t line;         /* of the text; 0: none */
  const char *algorithm; /* of a collective; NULL: it is a computation */
  const char *bound;     /* the limiting factor: "flops", "memory", "launch", "bandwidth", "latency" */
  int64_t members;       /* of a collective's group; 1 */
  double start, end;     /* seconds: of the first run on any device, of the last */
  double busy;           /* seconds in all runs, on a device: the mean over the simulated devices. A collective counts from when the
                            device reaches it until it is done there, waiting for others and for links included, so the sum over
                            several may be more than the whole time */
  double runs, flops;    /* on a device */
  double bytes;          /* read and written, or sent, by a device: the mean */
  bool critical;         /* it is on the critical path */
} ax_simulated_op;

/* One run of an operation on one device. */
typedef struct ax_simulated_span {
  uint32_t device, op;
  double start, end;
} ax_simulated_span;

/* One activity of an agent of a kernel; an agent is a core, or a copy. */
typedef struct ax_simulated_act {
  const char *agent;  /* "device 3, core 0", "copy 2 of device 3, core 0" */
  const char *what;   /* "computes", "copies", "waits" */
  uint32_t device;
  double start, end;  /* seconds from the kernel's beginning */
} ax_simulated_act;

/* A kernel (axle/kernel.h), all its devices and cores together, as if all began at the same time. */
typedef struct ax_simulated_kernel {
  const char *name, *location; /* location: "" where it is not known */
  double seconds;
  double flops, copied, sent;  /* of all devices: operations; bytes that copies moved on a device, and to others */
  double computing, carrying;  /* parts of the time in which its busiest device computed, and its busiest link carried */
  double acts;
  uint32_t span_count, span_capacity;
  ax_simulated_act *spans;     /* in the order of their ends; an activity without duration has none */
} ax_simulated_kernel;

/* A kind of link. */
typedef struct ax_simulated_link {
  char name[32];    /* "x+", "to the switch" */
  int64_t count;    /* how many there are in the machine */
  double bandwidth; /* bytes a second */
  double mean, most; /* utilisation, 0 to 1: bytes sent over the bytes that could have been sent in the whole time; mean of all
                        links, and the busiest */
} ax_simulated_link;

typedef struct ax_simulation {
  double seconds;          /* from the start to the end of the last device */
  int64_t devices;         /* of the mesh */
  int64_t simulated;       /* devices that were simulated; one stands for all that do the same at the same time */
  double messages;         /* sent by all devices */
  double events;           /* simulated one by one; the others are repetitions */
  double memory;           /* bytes that a device needs for a run, arguments included, as ax_lowered_memory counts them; 0: not counted,
                              of more than 2^20 devices */
  double capacity;         /* bytes that a device of the machine has; 0: the description does not say */
  double joules, price;    /* of all devices for the run; 0: the description does not say what they take */
  /* Of a long training of such runs, where the description says how often devices fail, how long a restart takes, and how fast a
     device stores what it holds: the checkpoint interval that loses the least (J. W. Young, 1974), seconds, and the share of the time
     that checkpoints, restarts and work that is done again take; otherwise 0. */
  double checkpoint_interval, lost;
  bool at_least;           /* true if only one step of some loop was simulated, so that the time is a lower bound */
  uint32_t op_count, span_count, path_count, link_count, kernel_count;
  ax_simulated_op *ops;    /* in the order of the plan */
  ax_simulated_span *spans; /* as they began */
  ax_simulated_span *path; /* the critical path, without gaps: a collective counts from when the member that delayed it reached
                              it */
  ax_simulated_link *links;
  ax_simulated_kernel *kernels; /* in the order in which the program reaches them; each call once */
  bool all_spans;          /* none was left out */
  char machine[64];        /* its name */
  char topology[160];      /* as the mesh lies on it: "torus 1024 x 4 x 1", "512 nodes of 8", "a switch" */
  char *texts;             /* the locations */
  struct ax_timed_kernels *timed; /* owns `kernels` */
} ax_simulation;

/* Simulates a run of a lowered program: the plan that would be compiled, on one device of the machine each. options may be NULL.
   `*out` is to be released, and empty on failure. Any thread. AX_INVALID_ARGUMENT: the mesh does not fit on the machine; more
   messages than options allow; a slow device that there is not, or its factor not from 1e-6 to 1e6.
   AX_ABSENT: messages in a conditional that devices take differently. AX_DEADLOCK: a message, or in a kernel a semaphore, is waited
   for in vain. AX_OUT_OF_MEMORY. The model is in docs/simulate.md. */
AX_MUST_USE ax_status ax_simulate(const ax_lowered *lowered, const ax_cluster *machine, const ax_simulate_options *options,
                                  ax_simulation *out);
void ax_simulation_release(ax_simulation *simulation); /* leaves it empty */

typedef enum ax_simulation_form {
  AX_SIMULATION_TEXT, /* the total, operations, the critical path, links */
  AX_SIMULATION_JSON, /* the spans as trace events, for Perfetto or chrome://tracing */
  AX_SIMULATION_SVG   /* the spans as a picture */
} ax_simulation_form;
/* `*out`: ax_string_free. AX_INVALID_ARGUMENT: no such form. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_simulation_print(const ax_simulation *simulation, ax_simulation_form form, char **out);

#pragma GCC visibility pop

#ifndef AXLE_NO_LINES /* axle/line.h */
#define ax_cluster_parse(...) AX_LINED_STATUS(cluster_parse, __VA_ARGS__)
#define ax_cluster_read(...) AX_LINED_STATUS(cluster_read, __VA_ARGS__)
#define ax_algorithm_find(...) AX_LINED_STATUS(algorithm_find, __VA_ARGS__)
#define ax_simulate(...) AX_LINED_STATUS(simulate, __VA_ARGS__)
#define ax_simulation_print(...) AX_LINED_STATUS(simulation_print, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
