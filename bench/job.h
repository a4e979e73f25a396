/* A compiled program with its inputs on the devices, run over and over. Anything that fails ends the process with a message. */
#ifndef AXLE_BENCH_JOB_H
#define AXLE_BENCH_JOB_H

#include "axle/exec.h"
#include "model.h"

void check(ax_status status);
/* "mlp_small", "mlp_middle", "transformer"; as a program of whole arrays "transformer_global" and, of 32 layers,
   "transformer_global_32": training.c */
model *find_model(const char *name);

typedef struct job {
  ax_runtime *runtime;
  ax_executable *executable;
  ax_array **arrays; /* inputs, then room for results */
  uint32_t in_count, out_count;
  uint32_t carried; /* so many last results take the place of the first inputs after each run; they are donated */
} job;

/* A function of arrays; per device, where `mesh` is given. */
typedef struct job_function {
  ax_function body;
  void *context;
  const char *mesh; /* NULL: one device */
  uint32_t in_count, out_count;
  const ax_type *types;
  const char *const *in_specs, *const *out_specs;
} job_function;

ax_program *job_trace(const job_function *f);
/* The body is of whole arrays, which lie on the mesh as the specs say. */
ax_program *job_trace_global(const job_function *f);
/* Inputs are all ones. workers: 0 is one a core. */
job job_create(const job_function *f, uint32_t workers);
/* One step of gradient descent: (weights.., data..) -> loss, weights... Random weights and data. */
job job_train(const model *m, ax_runtime *runtime);
/* Only the step's program: what happens between tracing and compiled. The executable is released by the caller. */
ax_executable *job_compile_step(const model *m, ax_runtime *runtime, bool donate);
void job_release(job *j);

/* The arrays for an executable made already, which it takes over. */
job job_arrays(const job_function *f, ax_runtime *runtime, ax_executable *executable);
/* On a runtime that others use too. */
job job_create_on(const job_function *f, ax_runtime *runtime);

enum { job_steps_ahead = 30 };
/* Two of type bench_work. The second starts so many runs at once, each on the results of the one before, and then waits; the job
   carries some. */
void job_run(void *job, int64_t count);
void job_run_ahead(void *job, int64_t count);

#endif
