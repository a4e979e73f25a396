/* The stages of a program on its way to a run, each an object that can be asked: traced (ax_program), lowered, compiled
   (ax_executable), and what each costs before the next is begun. docs/running.md has an example. */
#ifndef AXLE_STAGES_H
#define AXLE_STAGES_H

#include "axle/exec.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

/* The cost of all collectives of one kind over the same axes, in one run, on one device. */
typedef struct ax_collective_cost {
  const char *primitive; /* "psum" */
  const char *axes;      /* "data", or "data,model" */
  int64_t members;       /* of a group, whose members exchange with one another; the largest where groups differ in size */
  double runs;           /* number of times it runs, each step of a loop counted */
  double bytes;          /* received by a device in all of them */
  /* Of several processes (ax_program_cost_over), the one that it takes longest; otherwise 0 and NULL: */
  double within;         /* bytes that its devices receive from one another */
  double between;        /* bytes that it receives from other processes, .. */
  double messages;       /* .. in so many messages */
  double seconds;        /* that both take, at speeds that are given (AXLE_MACHINE) or assumed */
  const char *way;       /* how it goes between processes: "gather", "shares", "chain" (docs/processes.md); NULL: nothing does */
} ax_collective_cost;

/* The operations of one device in a run, and the bytes that it reads, writes and receives, counted from the program: nothing is
   compiled. The costliest branch of a conditional counts (by the sum of the three figures), and a loop that runs until a condition
   says so counts as one step. */
typedef struct ax_cost {
  int64_t devices;
  double flops;    /* operations on elements: one an element of a pointwise function, two a pair of a product, one an element
                      reduced. Operations that only move or convert elements count 0 */
  double bytes;    /* read and written if each equation read its operands from memory and wrote its results there: more than the
                      compiled program moves, since it is fused */
  double received; /* from other devices, by all collectives: as rings of the fewest bytes do it, n members and an operand of B
                      bytes being 2(n-1)/n B for a psum, (n-1)/n B where each member gets a part of the others' operands
                      (psum_scatter, all_to_all), (n-1) B for all_gather, B for ppermute, pbroadcast and a message. A kernel's copies
                      to other devices count as they stand in it (copy_start), between processes as if each sent to the next device */
  bool at_least;   /* there are loops of which one step was counted */
  uint32_t collective_count;
  ax_collective_cost *collectives; /* those with the most bytes first; owned by the struct */
  uint32_t processes;                        /* that the devices are spread over */
  double within, between, messages, seconds; /* of all collectives together */
} ax_cost;
/* Counts the cost of a program without axes of its own, after it is simplified and partitioned as ax_compile does. `*out` is to be
   released (ax_cost_release), and empty on failure; what it held is not released. Any thread. AX_INVALID_ARGUMENT, AX_ABSENT: what
   ax_program_partition says. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_program_cost(const ax_program *program, ax_cost *out);
/* The same where the devices are spread over processes: what stays within a process, what crosses, and the time of both. processes NULL:
   as ax_program_cost. AX_INVALID_ARGUMENT: also a process that there is not; a list that has fewer devices than the mesh. */
AX_MUST_USE ax_status ax_program_cost_over(const ax_program *program, const ax_process_layout *processes, ax_cost *out);
void ax_cost_release(ax_cost *cost); /* leaves it empty */
/* As a table. `*out`: ax_string_free. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_cost_text(const ax_cost *cost, char **out);

/* --- Lowered: a program laid over its mesh, and not yet compiled --- */

/* Reference-counted; any thread. */
typedef struct ax_lowered ax_lowered;
/* The first half of ax_compile; ax_lowered_compile is the second. Applies the options' shardings, simplifies and partitions the
   program. options may be NULL, and are copied.
   `*out` is owned by the caller. Statuses: those of ax_program_with_shardings and ax_program_partition. */
AX_MUST_USE ax_status ax_program_lower(ax_program *program, const ax_compile_options *options, ax_lowered **out);
ax_lowered *ax_lowered_retain(ax_lowered *lowered);
void ax_lowered_release(ax_lowered *lowered);
/* The program of each device, in one shard_map, with its collectives: it can be printed, written as StableHLO, and its cost counted
   (ax_program_cost). It lacks inputs that nothing depends on (unless ax_compile_options.keep_unused) and results that are an input.
   Borrowed, as are the mesh and how input and result `index` of the whole program lie on it; NULL: there is no such input or
   result. */
ax_program *ax_lowered_program(const ax_lowered *lowered);
const ax_mesh *ax_lowered_mesh(const ax_lowered *lowered);
const ax_spec *ax_lowered_in_spec(const ax_lowered *lowered, uint32_t index);
const ax_spec *ax_lowered_out_spec(const ax_lowered *lowered, uint32_t index);
/* As ax_executable_is_kept, which may keep fewer. */
bool ax_lowered_is_kept(const ax_lowered *lowered, uint32_t index);
double ax_lowered_seconds(const ax_lowered *lowered); /* time that lowering took */

/* Bytes by what they are for. */
typedef struct ax_memory_bytes {
  size_t arguments, constants;
  size_t results; /* without those that live in the memory of donated arguments */
  size_t kept;    /* temporaries that devices share, or that live during a whole run */
  size_t scratch; /* temporaries of a device's own, which it needs while it runs */
} ax_memory_bytes;
/* Memory of a run, each array rounded up to 64 bytes, those of 16 KiB and more from a page on. device: the bytes of one device. all: of
   all devices together; blocks that devices share are counted once. Scratch counts for every device in `all`, as if all ran at once;
   devices that wait may have returned theirs. */
typedef struct ax_memory {
  ax_memory_bytes device, all;
} ax_memory;
/* The memory that a run takes; no machine code is generated. Statuses: as ax_lowered_compile. */
AX_MUST_USE ax_status ax_lowered_memory(ax_runtime *runtime, const ax_lowered *lowered, ax_memory *out);
/* The second half of ax_compile: from the program's cache, or compiled. Statuses: its. */
AX_MUST_USE ax_status ax_lowered_compile(ax_runtime *runtime, const ax_lowered *lowered, ax_executable **out);

/* --- Compiled --- */

/* As ax_program_cost_over of its program, with the processes of its runtime, and the memory of its runs. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_executable_cost(const ax_executable *executable, ax_cost *out);
AX_MUST_USE ax_status ax_executable_memory(const ax_executable *executable, ax_memory *out);
/* Seconds that lowering and compiling took when it was made. */
double ax_executable_lower_seconds(const ax_executable *executable);
double ax_executable_compile_seconds(const ax_executable *executable);
/* The result that lives in the memory of input `index`, which was donated; -1: none does, and donating it only makes it
   unusable. */
int64_t ax_executable_donated(const ax_executable *executable, uint32_t index);
/* Whether devices compute with input `index`. False: nothing depends on it but results that it is itself, or there is no such
   input. JAX's kept_var_idx. */
bool ax_executable_is_kept(const ax_executable *executable, uint32_t index);
/* The input that result `index` is, unchanged; -1: none, it is made. A run gives one more reference to the argument's array:
   nothing is copied, the result is ready when that is, and fails as that does. It is another array only where the argument is
   donated, whose memory it then has, or where the argument lies otherwise than the shardings of both say. Where all results are
   inputs, such a run is done without devices. */
int64_t ax_executable_passed(const ax_executable *executable, uint32_t index);

#pragma GCC visibility pop

#ifndef AXLE_NO_LINES /* axle/line.h */
#define ax_program_cost(...) AX_LINED_STATUS(program_cost, __VA_ARGS__)
#define ax_program_cost_over(...) AX_LINED_STATUS(program_cost_over, __VA_ARGS__)
#define ax_program_lower(...) AX_LINED_STATUS(program_lower, __VA_ARGS__)
#define ax_lowered_memory(...) AX_LINED_STATUS(lowered_memory, __VA_ARGS__)
#define ax_lowered_compile(...) AX_LINED_STATUS(lowered_compile, __VA_ARGS__)
#define ax_executable_cost(...) AX_LINED_STATUS(executable_cost, __VA_ARGS__)
#define ax_executable_memory(...) AX_LINED_STATUS(executable_memory, __VA_ARGS__)
#define ax_cost_text(...) AX_LINED_STATUS(cost_text, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
