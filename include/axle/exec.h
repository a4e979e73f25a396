/* Running programs: a runtime, arrays laid over meshes, executables.

   Threads. Every function here may be called from any thread, and any number of them at once, on the same objects: compiling,
   starting, running, waiting, reading, retaining and releasing need no locks of the caller's. A reference must not be used after it
   was released, as everywhere. No call needs another thread of the caller to make progress: a run waits for its arguments, for the
   calls that still read arrays donated to it, and for its program's callbacks (axle/callback.h), and for nothing else.

   Order. Runs that do not take each other's results are not ordered: they go on at the same time, on the same workers. A run that
   takes a result begins after the run that makes it. Results do not depend on threads, workers or order: they are the same bit for
   bit, also whatever rounding mode or handling of subnormals the calling thread has set (a run rounds to nearest and treats
   subnormal numbers as its executable says; callbacks find the settings with which C programs start, and the caller its own again).
   That holds for one program (C compilers may trace calls that are arguments of one call in either order: ax_function) and on one
   kind of processor: another may have wider registers or lack fused multiply-add, and then sums and functions such as tanh can
   differ in their last digits. Kernels (axle/kernel.h) that ax_check does not prove may give anything.

   Memory. An array's elements do not change as long as a live reference can read them. Arrays own their memory, or keep the memory
   that was lent by ax_array_from_parts; memory that nothing needs goes to the runtime's pool, and to the system by ax_runtime_trim
   or with the runtime.
   A run holds its arguments and its executable while it goes on, so the caller may release its references as soon as the call
   returns. A callback of the run, or a thread that the callback waits for, may release them even during the call.

   Arguments that no result and no effect depends on are not looked at but for their type: they are not laid out, not waited for and
   not donated (ax_compile_options.keep_unused, ax_executable_is_kept). A result that is an argument unchanged is that array, once
   more (ax_executable_passed). Such an argument decides with the others on which devices the run goes on, and must not be one that
   is donated.

   Donation. An argument that an executable was compiled to be given (ax_compile_options.donate) is gone from the moment the run is
   started, for every reference to it and every thread: reading it, waiting for it or running on it fails. A reader that began
   before (a run that was started, ax_array_read) reads on, and the run that it was donated to waits for such readers. Its memory
   may hold a result afterwards. The argument comes back only when the run fails before it begins: an argument's run failed, or
   there is no memory. An address that ax_array_part gave is good only as long as the caller knows that the array is neither donated
   nor released.

   Forking. A process that is forked from one with a runtime has none of the runtime's threads. It may release the runtime, its
   arrays and its executables, once, as if they were its own, and do nothing else with them. */
#ifndef AXLE_EXEC_H
#define AXLE_EXEC_H

#include "axle/callback.h"
#include "axle/host.h"
#include "axle/program.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

/* The order in which devices that can go on do so. Results are bitwise the same under every policy. */
typedef enum ax_policy {
  AX_POLICY_PARALLEL, /* all workers; fast */
  AX_POLICY_FIXED,    /* the calling thread alone, devices in order */
  AX_POLICY_SEEDED    /* the calling thread alone, devices in a random order that `seed` decides; for stress tests */
} ax_policy;

/* The processes that a runtime's meshes are spread over. AX_MPI: those of MPI's MPI_COMM_WORLD, or of `communicator`; the library of
   MPI is found when it is needed, and started if it is not. Each process then makes the same calls in the same order, as with
   jax.distributed: a mesh has the devices of all, and each process runs its own. Results are the same bits as in one process.
   docs/processes.md. */
typedef enum ax_processes_by {
  AX_PROCESSES_DEFAULT, /* what the environment's AXLE_PROCESSES says, one or mpi; without it one */
  AX_ONE_PROCESS,
  AX_MPI
} ax_processes_by;

typedef struct ax_runtime_options {
  uint32_t workers;    /* threads, the caller's included; 0: one for each processor that this process may run on and has the time of (a
                          cgroup's quota, rounded up). As many as the system gives: fewer do the work too */
  uint32_t run_workers; /* most of them that work on one run at once; 0: all. One less than `workers`, which is then one more than there
                           are processors, suits callers that start runs and do something else */
  int64_t max_devices; /* devices a mesh may have; 0: 2^20 */
  ax_policy policy;    /* FIXED and SEEDED run on one thread, whatever `workers` says */
  uint64_t seed;       /* SEEDED: decides the order */
  /* Receives the text of debug_print: `text` is the text of one call, with its newline, and is gone when `print` returns. It is
     called on the thread that runs the device, on several threads at once; the rules of callbacks hold for it (axle/callback.h).
     NULL: programs are compiled without debug_print, since the library itself writes nothing anywhere (but for `watch`). ax_print_to,
     with a FILE * as context, writes to that stream. */
  void (*print)(const char *text, void *context);
  void *print_context;
  uint32_t check_numerics; /* AX_CHECK_*, of every program that is compiled, besides those that its
                              ax_compile_options.check_numerics names */
  void (*log)(const char *line, void *context); /* gets a line for each program that was lowered or compiled, with the time it took,
                                                   and for donated arguments whose memory no result can use. Called on the thread
                                                   that compiles, with no lock held. NULL: there is no log; nothing is printed */
  void *log_context;
  /* The folder in which machine code is kept for later processes ("the code cache"): a path, "user" ($XDG_CACHE_HOME/axle, or
     ~/.cache/axle), or "off".
     NULL: what the environment's AXLE_CODE_CACHE says in the same words, and where it is not set nothing is kept. Borrowed for the
     call. A folder that cannot be used, since it belongs to another user or others can write in it, is not used, and `log` gets a
     line that says so. As jax_compilation_cache_dir. */
  const char *code_cache;
  uint64_t code_cache_bytes; /* what that folder holds at most; 0: 256 MiB */
  uint64_t idle_code_bytes;  /* most bytes of machine code that is kept in memory after its executables are released, for programs
                                with the same fused operations; 0: 64 MiB. Beyond them the code that was released first is freed
                                first. ax_runtime_trim gives all of it back */
  ax_processes_by processes; /* with AX_MPI and workers 0, processes that share a machine share its processors, unless they are bound */
  const void *communicator;  /* AX_MPI: the address of an MPI_Comm, which is duplicated; NULL: MPI_COMM_WORLD. Borrowed for the call. Without
                                MPI_THREAD_MULTIPLE the caller leaves MPI alone during calls and started runs */
  const uint32_t *process_of; /* which process has device 0, 1, ..: `process_of_count` entries, at least as many as a mesh has devices.
                                 Copied. NULL: blocks of successive devices, as equal as can be (8 devices, 3 processes: 3, 3, 2) */
  uint32_t process_of_count;
  /* After so many seconds in which this process waits for another one that does not come, and whenever that time has doubled, a
     report says for whom, where, and what that one did last. It only reports. 0: what the environment's AXLE_WATCH_SECONDS says, where
     0 is never; without it 10. Below 0: never */
  double watch_seconds;
  void (*watch)(const char *lines, void *context); /* gets the reports, each whole, on any thread; NULL: stderr */
  void *watch_context;
  const char *plugin, *plugin_options, *plugin_precision; /* of PJRT: see ax_runtime_create. Borrowed during it */
  bool plugin_partitions;
} ax_runtime_options;
/* How the devices of a mesh are spread over processes, for costs, and for layouts that are given as "auto": these are chosen so that what
   is sent most stays within a process (ax_compile_options.processes; where there is no runtime, as in ax_program_lower, one process has
   all devices unless that says otherwise). Sums of other layouts have other orders, so a program with "auto" has the same bits however
   devices are spread only if the same layout is given for all. Zero: one process has all. */
typedef struct ax_process_layout {
  uint32_t processes; /* 0: one */
  uint32_t per_host;  /* successive processes that share a host; 0: all of them do */
  const uint32_t *process_of; /* which process has device 0, 1, ..; NULL: blocks, as in ax_runtime_options. Borrowed for the call */
  uint32_t process_of_count;
} ax_process_layout;
/* A ready `print`: writes the text to a stdio stream (the context, a FILE *), whole. */
void ax_print_to(const char *text, void *file);

/* Worker threads, memory, compiled code and executables. Reference-counted; arrays and executables retain it. Any thread. */
typedef struct ax_runtime ax_runtime;
/* options may be NULL: all 0. `*out` is owned by the caller. Of several processes each must call it, in the same order (so with MPI it
   is collective over the communicator), and release it.
   plugin: the path of a plugin of PJRT, which then compiles and runs the programs and has the arrays (docs/pjrt.md), and stays loaded
   until the process ends; "": Axle does; NULL: what the environment's AXLE_PLUGIN says, else Axle. plugin_options: "NAME=VALUE
   NAME=VALUE", of the plugin's compiler where a name begins with xla_, else of its client, whose options are truths,
   integers, lists of them ("0,1"; "0," of one), numbers or texts, as they read; NULL: AXLE_PLUGIN_OPTIONS.
   plugin_partitions: the plugin gets whole programs with their layouts in Shardy's words, and partitions them itself.
   plugin_precision: of the plugin's products of f32: "highest", as Axle's own; "high"; "default", the plugin's choice (TF32 on Nvidia's
   processors). NULL: AXLE_PLUGIN_PRECISION, else "highest".
   AX_INVALID_ARGUMENT: max_devices below 0, a policy, a check_numerics or a `processes` that is none, a process that there is not in
   process_of. AX_UNAVAILABLE: no library of MPI can be used; the message says which were looked for; or the plugin cannot: there is no
   such file, it is none, its interface is of another version, or it does not start, and the message has what it says. AX_ABSENT: a plugin
   together with MPI or check_numerics. AX_OUT_OF_MEMORY. With MPI, what
   fails in one process after the library is found fails in all, with a message that names it. */
AX_MUST_USE ax_status ax_runtime_create(const ax_runtime_options *options, ax_runtime **out);
ax_runtime *ax_runtime_retain(ax_runtime *runtime);
/* The release of the last reference that create and retain gave waits for all runs in flight; arrays and executables may outlive
   it. It does not wait inside a run of the runtime: in a callback, or in the release of a callback's context or of a lent part as a
   run ends, on any thread. The runs in flight then go on, and the last run, array or executable ends the runtime. */
void ax_runtime_release(ax_runtime *runtime);
/* Bytes held now, and the most so far: arrays, temporaries and pooled memory. */
void ax_runtime_memory(const ax_runtime *runtime, size_t *now, size_t *peak);
/* Gives back to the system: pooled memory, and machine code that no executable uses. */
void ax_runtime_trim(ax_runtime *runtime);
/* Programs read from texts that are compiled from now on find this callback by its name. It is retained as long as the runtime
   lives. Any thread.
   AX_INVALID_ARGUMENT: another one is registered under that name. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_runtime_register(ax_runtime *runtime, ax_callback *callback);
/* Returns when all runs that ax_run_start began before are over, and works on them meanwhile. All their printing and all their
   calls are done then; a result that is ready says the same for its own run. Only the results tell which runs failed. As
   jax.effects_barrier. Any thread that is not in a callback of such a run. */
void ax_runtime_wait(ax_runtime *runtime);
/* Counts since the runtime was created: how often something was made, and how often found in a cache. A plain value. */
typedef struct ax_counters {
  uint64_t programs_compiled, programs_found; /* by ax_compile and what calls it */
  uint64_t kernels_compiled, kernels_found;   /* of programs that were compiled: machine code of fused operations */
  uint64_t kernels_loaded;                    /* those that were not compiled, since an earlier process had left their code
                                                 (ax_runtime_options.code_cache) */
  uint64_t code_bytes;                        /* of machine code, held now */
  uint64_t arguments_copied;                  /* by calls, because they lay otherwise than the program wants them; a sharding that
                                                 means the same is not counted */
  uint64_t layouts_made, layouts_found;       /* layouts of arrays: one for each combination of type, mesh, spec and devices, as
                                                 long as something holds it */
  uint64_t runs, calls_without_run; /* calls that devices ran for, and those that gave arguments, or constants made by an earlier
                                       one, as results */
} ax_counters;
ax_counters ax_runtime_counters(const ax_runtime *runtime); /* zeros for NULL */

/* An immutable array laid over a mesh, ready or to be made by a run that is not over. Reference-counted; any thread. */
typedef struct ax_array ax_array;
/* Copies dense row-major `data` onto the devices of `mesh` as `spec` says (see ax_spec; "" puts one shared copy). mesh NULL: one
   device. `*out` is owned by the caller. Axis sets of `type` are not looked at. data may be NULL when there are no elements.
   AX_INVALID_ARGUMENT: an unsound mesh or type; a spec with an unknown axis, more entries than dimensions, or a dimension that
   its axes do not divide; more devices than the runtime allows; data of another dtype than the type, or too short. */
AX_MUST_USE ax_status ax_device_put_data(ax_runtime *runtime, const ax_mesh *mesh, const char *spec, const ax_type *type,
                                    ax_dtype element, const void *data, size_t bytes, ax_array **out);
/* The same of a host array, which is borrowed for the call. */
AX_MUST_USE ax_status ax_device_put(ax_runtime *runtime, const ax_mesh *mesh, const char *spec, const ax_host_array *host,
                                    ax_array **out);
ax_array *ax_array_retain(ax_array *array);
void ax_array_release(ax_array *array);
/* Borrowed, all three. The type is that of the whole array. */
const ax_type *ax_array_typeof(const ax_array *array);
const ax_mesh *ax_array_mesh(const ax_array *array);
const ax_spec *ax_array_spec(const ax_array *array);
/* Waits until the array is ready, then copies the whole, dense row-major, to `data` of `bytes` bytes. AX_INVALID_ARGUMENT: wrong
   size; data of another dtype; a donated array. Or what its run failed with. */
AX_MUST_USE ax_status ax_array_read(const ax_array *array, ax_dtype element, void *data, size_t bytes);
/* The same into a host array with memory of its own: ax_host_array_release; empty on failure. What `*out` held is not released.
   AX_INVALID_ARGUMENT: a donated array. AX_OUT_OF_MEMORY. Or what its run failed with. */
AX_MUST_USE ax_status ax_array_to_host(const ax_array *array, ax_host_array *out);
/* The part on one device, which is its place on the mesh, or where the array was put by a sharding (axle/sharding.h) its id: its
   shape, and where it begins in the whole array (rank entries). AX_INVALID_ARGUMENT: a device the array is not on. */
AX_MUST_USE ax_status ax_array_shard(const ax_array *array, int64_t device, ax_type *type, int64_t *start);

/* --- Parts: the stored blocks, one part for each block however many devices hold it --- */

/* A part whose memory the caller lends. */
typedef struct ax_part {
  void *data;     /* dense row-major; aligned to an element; NULL only when there are no elements */
  size_t bytes;   /* at `data`: at least those of a part */
  void (*release)(void *context); /* NULL: nothing is called */
  void *context;
  bool read_only; /* memory that must not be written: a donated array is copied then */
} ax_part;
/* An array of parts that lie where they are: nothing is copied. Parts are numbered as the first devices that hold each: with a spec
   that names no axes there is one; with P(d) on d=4, part i is what device i holds. Until its release is called, each part's memory
   belongs to the array and no other code may write to it. Runs write into it only when the array is donated, and then a result may
   live there. Each release is called once, when nothing lies in its part any more, on any thread (a worker too); it must not wait
   for a run, as ax_run, ax_array_wait, ax_array_read and ax_array_part may. It may release the runtime. mesh, spec and type as in
   ax_device_put_data; `parts` itself is copied. `*out` is owned by the caller. Copies are made, at the cost of a copy in each run,
   only where a program wants another layout.
   AX_INVALID_ARGUMENT: as ax_device_put_data; a wrong number of parts, one that is too small, at no address or not aligned. On
   failure no release is called. */
AX_MUST_USE ax_status ax_array_from_parts(ax_runtime *runtime, const ax_mesh *mesh, const char *spec, const ax_type *type,
                                          uint32_t count, const ax_part *parts, ax_array **out);
uint32_t ax_array_part_count(const ax_array *array);
/* Part `index` in place, once the array is ready: `*data` is valid until the array is donated or its last reference released, and
   only to be read. *device (may be NULL): the first device that holds it, for ax_array_shard.
   AX_INVALID_ARGUMENT: no such part; a donated array. */
AX_MUST_USE ax_status ax_array_part(const ax_array *array, uint32_t index, const void **data, size_t *bytes, int64_t *device);

/* The layout as text: the type, the spec and a block's type, then the blocks with the devices that hold each. Up to rank 2 they
   are boxes as wide as the longest text, at most 16 rows of 8; beyond, a line each, at most 64. More than 4 devices show as the
   first two and the last. `*out`: ax_string_free. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_array_picture(const ax_array *array, char **out);

/* The numbers that check_numerics looks for in the results of equations, one kind or both. */
enum {
  AX_CHECK_NAN = 1,
  AX_CHECK_INF = 2
};

/* Subnormal numbers: those of f32, f64 and bf16 that are nearer to zero than the least with all its digits (2^-126 of f32 and bf16,
   2^-1022 of f64). FLUSH: arithmetic reads one as the zero of its sign, and gives that zero instead of one. So do comparisons (the
   least f32 is not > 0), max, min, functions, sums, products, and conversions to other dtypes. What only moves bits keeps them:
   copies and all changes of shape, select, neg, abs, gather, sort, exchanges, and conversions between f32, bf16 and f8e8m0fnu. KEEP: they are
   numbers as all others, as IEEE 754 has them. f16's are always kept. FLUSH is the default, since XLA on CPUs does so: many
   processors take 40 to 60 ns for an instruction that meets such a number, instead of 0.3. Processors other than x86-64 and AArch64
   keep them either way. */
typedef enum ax_subnormals {
  AX_SUBNORMALS_DEFAULT, /* what the environment's AXLE_SUBNORMALS says, keep or flush; without it FLUSH */
  AX_SUBNORMALS_KEEP,
  AX_SUBNORMALS_FLUSH
} ax_subnormals;

/* Floating-point contraction: whether x y + z and x y - z are rounded once, as a fused multiplication and addition. EXACT: no. Each
   operation is rounded, so results are those of reference evaluation, and the same on all processors but for functions and the
   order of sums. FUSED: yes, of f32 and f64, where the product has no other use and is computed in one kernel with the sum; such
   results have the smaller error, and take one instruction instead of two, as with XLA on CPUs. Which operations are in one kernel
   follows from the program, its shapes and what is donated, never from threads, workers or order, so that runs still give the same
   bits; a change elsewhere in the program may change the last digit here, and x x - y y may be other than 0 where x = y. Processors
   without such an instruction round twice. Sums over elements and matrix products are made as they are without. */
typedef enum ax_contraction {
  AX_CONTRACTION_DEFAULT, /* what the environment's AXLE_CONTRACTION says, exact or fused; without it EXACT */
  AX_CONTRACTION_EXACT,
  AX_CONTRACTION_FUSED
} ax_contraction;

/* Lists in structs of options: of names, and of arrays. */
typedef struct ax_name_list { /* {AX_NAMES("x", "w")} */
  uint32_t count;
  const char *const *v;
} ax_name_list;
typedef struct ax_array_list { /* {AX_ARRAYS(x, w)} */
  uint32_t count;
  ax_array *const *v;
} ax_array_list;
#ifndef __cplusplus
#define AX_NAMES(...) (uint32_t)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)), ((const char *const[]){__VA_ARGS__})
#endif

/* A compiled program. Any thread, several at once. It keeps its runtime and its program. */
typedef struct ax_executable ax_executable;
typedef struct ax_compile_options {
  ax_args donate;     /* the inputs whose memory may be reused for results, and that are gone once a run is started (see above) */
  bool keep_unused;   /* inputs that no result and no effect depends on are part of the program all the same: they are placed, held,
                         and gone when they are donated, so that a result may live in their memory. As jax.jit's keep_unused */
  ax_name_list names; /* names of the inputs for messages, which have the numbers too, {AX_NAMES("x", "w")}: as many as there are
                         inputs, copied; {0}, or a NULL entry: no name */
  bool reference;     /* each device's own computation runs in plain reference code instead of machine code: slow, to find out which
                         of the two is wrong */
  /* AX_CHECK_*: a run fails with AX_NOT_FINITE when an equation makes such a number: its result has one and none of
     its floating-point operands has. A NaN or infinity of an argument or a constant is no finding where it is
     carried on: -inf in a mask or as the first value of a maximum is none. log's NaN is one, even if a select after
     it leaves it out (as jax_debug_nans and jax_debug_infs). The message names the equation, its place, the
     iteration of the loops around it, the device, how many there are and where the first is: of all that is found,
     the earliest in the order in which a device goes through the simplified program, and of that the lowest
     device's, whatever the policy and the workers. A device goes no further once it has found something; the others
     end, or wait for it. Only equations that run are looked at, not unused ones. Where axes do not divide a
     dimension, padding is looked at like all else; it repeats an array's last element, so it has such a number
     where that element has one (except for numbers made of positions). Each equation's results are then in memory
     at some time, and fewer of them live in the memory of its operands: slower, and it takes more memory. Kernels
     are others than without, so that a sum over elements may be added in another order; all else is the same to the
     bit */
  uint32_t check_numerics;
  bool unchecked_ragged; /* ragged_all_to_all trusts send_sizes and does not compare them with recv_sizes. Slices that leave an
                            operand or output, or overlap, fail a run all the same */
  ax_subnormals subnormals; /* whether the runs keep or flush them, on all threads, whatever the callers' threads do */
  ax_contraction contraction; /* whether products that are added are rounded by themselves */
  const ax_mesh *mesh; /* with `shardings`; else NULL */
  const char *shardings; /* "data; ? -> ?": how inputs and results lie over `mesh`, as ax_program_with_shardings has it; NULL: as
                            the program says */
  /* Arrays such as the runs will be given, one for each input, {AX_ARRAYS(x, w)}, borrowed for the call; {0}, and an entry that is
     NULL: nothing. An input of which `shardings` say nothing ("?", or no shardings at all) lies as its array does, over that
     array's mesh, so that computation follows data: arguments that lie so are not copied, and each device computes with its blocks.
     As jax.jit without in_shardings. Only how the arrays lie is looked at: they may be donated, or still to be made. One that is
     not committed (ax_array_is_committed), or lies on a device without a mesh, says nothing. */
  ax_array_list like;
  const ax_process_layout *processes; /* that "auto" chooses for; NULL: the runtime's */
  bool late_sums; /* sums over devices that loops add to a carry are made behind them: docs/processes.md */
  bool timeline;      /* each run notes what every thread and device did, and when: ax_executable_timeline. Two looks at the clock
                         for each kernel, product and part of an exchange */
} ax_compile_options;
/* Compiles a program without axes of its own, simplified (ax_program_simplify: a collective whose results are unused is not run,
   and so cannot deadlock) and partitioned (ax_program_partition): the mesh is that of its shard_maps. While an executable lives,
   compiling an equal program from the same lines with equal options gives one more reference to it (two threads at the same time
   may each get their own). `*out` is owned by the caller. Any thread. options may be NULL.
   AX_INVALID_ARGUMENT: shardings that do not parse or fit; another number of names, or of arrays in `like`, than of inputs; arrays
   in `like` of other types than the inputs, or on different devices; a program with axes; more devices than the runtime allows; an
   input donated that there is not; a check_numerics, subnormals or contraction that is none, or
   such an AXLE_SUBNORMALS or AXLE_CONTRACTION. AX_ABSENT: what ax_program_partition says; a primitive that
   cannot be compiled; for a plugin, one that has no StableHLO (ax_program_stablehlo), and check_numerics, timeline, reference, subnormals
   and contraction. Of a plugin also what its compiler says, with the status that its error has (src/client/status.c). AX_OUT_OF_MEMORY: also when values are larger than any machine's memory. */
AX_MUST_USE ax_status ax_compile(ax_runtime *runtime, ax_program *program, const ax_compile_options *options,
                                 ax_executable **out);
/* ax_trace and ax_compile in one: the executable of a function of operands of these types. Statuses: theirs. */
AX_MUST_USE ax_status ax_jit(ax_runtime *runtime, ax_fn function, uint32_t in_count, const ax_type *in_types,
                             const ax_compile_options *options, ax_executable **out);
ax_executable *ax_executable_retain(ax_executable *executable);
/* The same for operands with the types of host arrays, whose data is not looked at. AX_INVALID_ARGUMENT: one that has no dtype,
   besides. */
AX_MUST_USE ax_status ax_jit_host(ax_runtime *runtime, ax_fn function, uint32_t in_count, const ax_host_array *in,
                                  const ax_compile_options *options, ax_executable **out);
void ax_executable_release(ax_executable *executable);
/* The mesh it runs on (of a program over several meshes one that all are made of, with axes of its own), and how input and
   result `index` lie over it: an input as what uses it first wants it, a result as it is made. An argument that lies so is used
   as it is. Any other is laid out anew by every run that it is given to: what moves is copied into memory that is held as long as
   the run needs it. A result that lies as an input of the next run is that run's argument without a copy.
   Borrowed, for as long as the executable lives; NULL: there is no such input or result. Any thread. */
const ax_mesh *ax_executable_mesh(const ax_executable *executable);
const ax_spec *ax_executable_in_spec(const ax_executable *executable, uint32_t index);
const ax_spec *ax_executable_out_spec(const ax_executable *executable, uint32_t index);
/* Copies dense row-major `data` onto the devices as input `index` wants to lie, as ax_device_put_data. `*out` is owned by the
   caller. AX_INVALID_ARGUMENT: no such input; data of another dtype, or too short. */
AX_MUST_USE ax_status ax_executable_put(const ax_executable *executable, uint32_t index, ax_dtype element, const void *data,
                                        size_t bytes, ax_array **out);
/* The compiled program as text: its buffers, instructions and memory. `*out`: ax_string_free. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_executable_text(const ax_executable *executable, char **out);

/* The timeline of the run that ended last, for an executable compiled with ax_compile_options.timeline. TEXT: a row for each
   thread, each device (16 of each at most) and each collective under way, in columns of equal time that show the equation which
   took most of them, and what the letters stand for. JSON: trace events, as Perfetto and chrome://tracing show them, threads and
   devices as processes. `*out`:
   ax_string_free. Any thread. AX_INVALID_ARGUMENT: compiled without, no run yet, a form that is none. AX_OUT_OF_MEMORY. */
typedef enum ax_timeline_form { AX_TIMELINE_TEXT, AX_TIMELINE_JSON } ax_timeline_form;
AX_MUST_USE ax_status ax_executable_timeline(ax_executable *executable, ax_timeline_form form, char **out);
/* The same as data: tells every span of that run, in the order in which they began. A span is the work of one thread on one equation
   for one device, in nanoseconds of CLOCK_MONOTONIC. `see` must not call Axle for this executable. Its argument and texts are there while it is called.
   Errors as ax_executable_timeline; AX_OUT_OF_MEMORY also if the run could not note all, of which the others are told. */
typedef struct ax_timeline_span {
  int64_t begin, end;
  uint32_t thread, device;
  const char *primitive, *location; /* "copy" for what is no equation's; location NULL: not known */
} ax_timeline_span;
typedef void (*ax_span_visitor)(const ax_timeline_span *span, void *context);
AX_MUST_USE ax_status ax_executable_visit_timeline(ax_executable *executable, ax_span_visitor see, void *context);

/* Runs and waits: ax_run_start, then until the results are ready. The thread works on this run until it is over, beside the
   runtime's workers. `out` receives arrays owned by the caller, all NULL on failure. Any thread, several at once; the workers serve
   all runs. A run takes at most 32 KB of the thread's stack, whatever the program, and 48 KB where LAPACK's
   routines are called (axle/linalg.h); callbacks come on top of that.
   AX_INVALID_ARGUMENT: wrong number of arguments; shapes or dtypes that do not match, arrays of another runtime, arrays donated
   to an earlier run (the first five are named); committed arrays (ax_array_is_committed) on different devices, or on another number
   of them than the executable's mesh has (the first are named, with their layouts and devices); an array that is donated and an
   argument twice, or donated by another thread meanwhile.
   AX_DEADLOCK: devices wait for a collective that others never reach; the message names them. AX_NOT_FINITE:
   see ax_compile_options.check_numerics. Also what an argument's run failed with. */
#ifndef __cplusplus
#define AX_ARRAYS(...) (uint32_t)(sizeof((ax_array *[]){__VA_ARGS__}) / sizeof(ax_array *)), ((ax_array *[]){__VA_ARGS__}) /* for `in` */
#endif
AX_MUST_USE ax_status ax_run(ax_executable *executable, uint32_t in_count, ax_array *const *in, uint32_t out_count, ax_array **out);
/* The same from host arrays to host arrays: puts each argument down as the executable wants it, runs, and reads the results. `in`
   is borrowed, and only read, also where the executable was compiled to be given an argument; `out` gets arrays with memory of
   their own (ax_host_array_release), all empty on failure. What `out` held is not released, and it shares no array with `in`.
   Threads and errors as ax_run. */
AX_MUST_USE ax_status ax_run_host(ax_executable *executable, uint32_t in_count, const ax_host_array *in, uint32_t out_count,
                                  ax_host_array *out);
/* Once, and all in one: traces the function on the types of the host arrays, compiles it and runs it on them. runtime NULL: one
   that is made for the call. `in` has function.in_count entries, `out` function.out_count; ownership as ax_run_host's. What is run
   more often is compiled once (ax_jit). Statuses: those of ax_runtime_create, ax_jit and ax_run_host. */
AX_MUST_USE ax_status ax_apply(ax_runtime *runtime, ax_fn function, uint32_t in_count, const ax_host_array *in, uint32_t out_count,
                               ax_host_array *out);
/* Starts a run. Its results, in `out`, are arrays that need not be ready yet, and its arguments may be such arrays. The run
   begins when its arguments are ready and no other run or call reads those that are donated to it (every other use of these fails
   from now on). No thread waits meanwhile. A small run, any run that a callback starts, and any run where the runtime has no worker
   threads, is over when this returns, if its arguments are ready. The caller may release all references at once: a run keeps the
   objects that it needs. Memory for results is taken when a run begins. A failure before the run begins to wait is this function's, as ax_run's, with
   `out` all NULL. One that comes later is that of the results: waiting for one of them, reading it or running on it gives the
   status and the message, which names the run ("run 3 failed: ..."; runs that are pending are numbered from 1 in each runtime).
   Threads: as ax_run. Several processes start the runs of meshes that are spread over them in the same order, and make them one
   after the other. A failure of one of these is that of its results in all processes, with the same message; but a process whose
   own call fails before the run begins to wait, while others have started it, hears so from this function. */
AX_MUST_USE ax_status ax_run_start(ax_executable *executable, uint32_t in_count, ax_array *const *in, uint32_t out_count,
                                   ax_array **out);
/* Waits until the array is ready, and works on the runtime's runs meanwhile. Gives the status and message of the run that makes it,
   which holds none of its arguments and results any more.
   AX_INVALID_ARGUMENT: a donated array.
   Any thread, several at once. */
AX_MUST_USE ax_status ax_array_wait(const ax_array *array);
/* Calls `tell` once, when ax_array_wait would not wait any more, with what that would give: a status and, unless it is AX_OK, a message,
   which is read only during the call. At once if the array is ready; else on the thread that ends the run which makes it, where the
   rules of callbacks hold (axle/callback.h). The array may be released meanwhile. AX_INVALID_ARGUMENT: NULL. AX_OUT_OF_MEMORY. On
   failure `tell` is not called. Any thread. */
typedef void (*ax_ready_callback)(ax_status status, const char *message, void *context);
AX_MUST_USE ax_status ax_array_when_ready(const ax_array *array, ax_ready_callback tell, void *context);
/* True when ax_array_wait would not wait: the run that makes it is over, well or not, or the array was donated. */
bool ax_array_is_ready(const ax_array *array);

/* What a run is given besides its arguments. All is borrowed until the run is over. */
typedef struct ax_run_options {
  uint32_t user_data_count;
  const ax_user_data *user_data; /* what callbacks find in their calls, and handlers of XLA's FFI as UserData (axle/custom_call.h) */
  ax_ready_callback over;        /* NULL: none. Called once when the run is over, on the thread that ends it, with its status, as
                                    ax_array_when_ready says. The caller may free the options then */
  void *context;
  bool awaited; /* the caller waits for the run next. A short one is performed before the call returns, on this thread and those that
                   help it, if its arguments are ready: one that has less than some 2 ms to compute, callbacks and handlers not
                   counted; where there are loops of unknown length, one whose last run took less than 1 ms. A callback that waits for
                   what the caller does next never ends. If the run fails, so does the call, and there are no results */
} ax_run_options;
/* ax_run_start with options. `over` is called before this returns if the run is over then, and not at all if this fails.
   AX_INVALID_ARGUMENT: no options. Threads and other errors as ax_run_start. */
AX_MUST_USE ax_status ax_run_start_with(ax_executable *executable, uint32_t in_count, ax_array *const *in, uint32_t out_count,
                                        ax_array **out, const ax_run_options *options);

#pragma GCC visibility pop

#ifndef __cplusplus /* lists with their counts, memory with its dtype (axle/type.h) */
#define ax_executable_put(executable, index, data, out) \
  AX_LINED_STATUS(executable_put, executable, index, AX_MEMORY(data), out)
#define ax_array_read(array, data, bytes) AX_LINED_STATUS(array_read, array, AX_ELEMENT(data), data, AX_WITHIN(data, bytes))
#define ax_device_put_data(runtime, mesh, spec, type, data, out) \
  AX_LINED_STATUS(device_put_data, runtime, mesh, spec, type, AX_MEMORY(data), out)
#define ax_array_from_parts(runtime, mesh, spec, type, parts, out) \
  AX_LINED_STATUS(array_from_parts, runtime, mesh, spec, type, AX_COUNTED(ax_part, parts), out)
#define ax_jit(runtime, function, in_types, ...) AX_LINED_STATUS(jit, runtime, function, AX_COUNTED(ax_type, in_types), __VA_ARGS__)
#define ax_jit_host(runtime, function, in, ...) \
  AX_LINED_STATUS(jit_host, runtime, function, AX_COUNTED(ax_host_array, in), __VA_ARGS__)
#define ax_apply(runtime, function, in, out) \
  AX_LINED_STATUS(apply, runtime, function, AX_COUNTED(ax_host_array, in), AX_COUNTED(ax_host_array, out))
#define ax_run(executable, in, out) AX_LINED_STATUS(run, executable, AX_COUNTED(ax_array *, in), AX_COUNTED(ax_array *, out))
#define ax_run_start(executable, in, out) \
  AX_LINED_STATUS(run_start, executable, AX_COUNTED(ax_array *, in), AX_COUNTED(ax_array *, out))
#define ax_run_start_with(executable, in, out, options) \
  AX_LINED_STATUS(run_start_with, executable, AX_COUNTED(ax_array *, in), AX_COUNTED(ax_array *, out), options)
#define ax_run_host(executable, in, out) \
  AX_LINED_STATUS(run_host, executable, AX_COUNTED(ax_host_array, in), AX_COUNTED(ax_host_array, out))
#endif

#ifndef AXLE_NO_LINES /* axle/line.h */
#define ax_runtime_create(...) AX_LINED_STATUS(runtime_create, __VA_ARGS__)
#define ax_runtime_register(...) AX_LINED_STATUS(runtime_register, __VA_ARGS__)
#define ax_array_shard(...) AX_LINED_STATUS(array_shard, __VA_ARGS__)
#define ax_array_part(...) AX_LINED_STATUS(array_part, __VA_ARGS__)
#define ax_array_picture(...) AX_LINED_STATUS(array_picture, __VA_ARGS__)
#define ax_compile(...) AX_LINED_STATUS(compile, __VA_ARGS__)
#define ax_executable_text(...) AX_LINED_STATUS(executable_text, __VA_ARGS__)
#define ax_executable_timeline(...) AX_LINED_STATUS(executable_timeline, __VA_ARGS__)
#define ax_executable_visit_timeline(...) AX_LINED_STATUS(executable_visit_timeline, __VA_ARGS__)
#define ax_array_wait(...) AX_LINED_STATUS(array_wait, __VA_ARGS__)
#define ax_array_when_ready(...) AX_LINED_STATUS(array_when_ready, __VA_ARGS__)
#define ax_device_put(...) AX_LINED_STATUS(device_put, __VA_ARGS__)
#define ax_array_to_host(...) AX_LINED_STATUS(array_to_host, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
