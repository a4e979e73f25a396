/* Arrays in several processes. The devices of a runtime's meshes may be spread over several processes of the same program; each
   process has the blocks of its own devices. Here is what a program asks of that, and does with it. In one process all of it works too:
   the process has all devices.

   Which process has which device depends on the mesh: devices are in contiguous blocks of device order, as equal as can be, or as the
   runtime was told. Axle calls a block that a device of this process has addressable, as JAX does; only such blocks have
   addresses here. An array on one device, or without a mesh, is whole in each process, and each has its own.

   Collective calls are those that all processes must make, in the same order, since they send each other what they lack, or
   compare. They end the same in all: if one process fails, also out of memory, all fail with its status and message, and
   "process 1: " before it. Besides those that say so here, they are, of programs whose mesh is spread over processes, ax_compile and
   what calls it (the programs and options are compared), ax_run and ax_run_start; and of arrays that are not whole in each process,
   ax_array_reshard, ax_array_copy_to, and runs that they are arguments of. If processes make different calls, or the same with other
   arguments, all fail with AX_INVALID_ARGUMENT, and the message has the first line in which what they do differs. A process that is gone
   is AX_UNAVAILABLE. All other calls are each process's own, and need no other process.

   Any thread may call any function; but collective calls of several threads have no order, and must not be made at the same time. */
#ifndef AXLE_PROCESSES_H
#define AXLE_PROCESSES_H

#include "axle/exec.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

/* The number of this process among those of the runtime, from 0, and how many there are: jax.process_index, jax.process_count. 0 and
   1 for NULL. */
uint32_t ax_process_index(const ax_runtime *runtime);
uint32_t ax_process_count(const ax_runtime *runtime);
/* The process that has a device of the mesh: jax.Device.process_index. AX_INVALID_ARGUMENT: an unsound mesh; a device that it has
   not; more devices than the runtime's list of processes has. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_runtime_process_of(const ax_runtime *runtime, const ax_mesh *mesh, int64_t device, uint32_t *out);
/* How many of the mesh's devices this process has: jax.local_device_count. Errors as above. */
AX_MUST_USE ax_status ax_runtime_local_device_count(const ax_runtime *runtime, const ax_mesh *mesh, int64_t *out);

/* --- The part of an array that is here --- */

/* Whether all of its blocks are addressable, so that it can be read here: is_fully_addressable. False for NULL. */
bool ax_array_is_addressable(const ax_array *array);
/* What one device of this process has: an entry of addressable_shards. A plain value; `data` is read only, and good as that of
   ax_array_part. */
typedef struct ax_shard {
  int64_t device;             /* as ax_array_shard names it */
  int64_t replica;            /* 0 for the first device that has this block, of all processes' devices; 1 for the second .. */
  ax_type type;               /* of the block */
  int64_t start[AX_MAX_RANK]; /* where it begins in the whole array */
  const void *data;           /* dense row-major */
  size_t bytes;
} ax_shard;
/* How many there are: one for each device of this process that the array is on, in the order of the devices. 0 for NULL. */
uint32_t ax_array_addressable_count(const ax_array *array);
/* Waits until the array is ready. AX_INVALID_ARGUMENT: there are not so many; a donated array. Or what its run failed with. */
AX_MUST_USE ax_status ax_array_addressable_shard(const ax_array *array, uint32_t index, ax_shard *out);

/* --- Arrays made of what each process has. `*out` is owned by the caller, NULL on failure. mesh, spec and type are those of the
   whole array, as in ax_device_put_data, and so are errors. --- */

/* The type of this process's own part: all of its blocks side by side, in the order of their places along each dimension. So with
   P(d) on d=4, blocks f32[2] and two processes it is f32[4]. A process without blocks has 0 along dimensions that are cut.
   AX_INVALID_ARGUMENT: its blocks do not make a box, as those of devices 0 and
   3 of P(x, y) on x=2,y=2. */
AX_MUST_USE ax_status ax_array_local_type(ax_runtime *runtime, const ax_mesh *mesh, const char *spec, const ax_type *type,
                                          ax_type *local);
/* Copies that part, `data`, dense row-major in the shape ax_array_local_type says: jax.make_array_from_process_local_data. Not
   collective. AX_INVALID_ARGUMENT: as ax_array_local_type. */
AX_MUST_USE ax_status ax_array_from_local(ax_runtime *runtime, const ax_mesh *mesh, const char *spec, const ax_type *type,
                                          ax_dtype element, const void *data, size_t bytes, ax_array **out);
/* Writes one block, dense and row-major, to `data`: the box of type `block` that begins at `start` in the whole array. Called on the
   caller's thread. Another status than AX_OK ends the making of the array, which then fails with it. */
typedef ax_status (*ax_block_writer)(void *context, const ax_type *block, const int64_t *start, void *data);
/* Makes each addressable block by a call: jax.make_array_from_callback. Blocks that several devices have are made once. Not
   collective. */
AX_MUST_USE ax_status ax_array_from_callback(ax_runtime *runtime, const ax_mesh *mesh, const char *spec, const ax_type *type,
                                             ax_block_writer write, void *context, ax_array **out);
/* As ax_device_put, of data that is meant to be the same in all processes, and is compared by digest: as jax.device_put compares
   it. Collective. AX_INVALID_ARGUMENT: it differs. */
AX_MUST_USE ax_status ax_device_put_same(ax_runtime *runtime, const ax_mesh *mesh, const char *spec, const ax_host_array *host,
                                         ax_array **out);

/* --- The whole array --- */

enum { AX_EVERY_PROCESS = -1 };
/* Brings the whole array to one process, or to all (AX_EVERY_PROCESS), in memory of its own (ax_host_array_release):
   process_allgather. `out` is empty in the other processes, and on failure; what it held is not released. Collective if the array is
   not whole in each process. AX_INVALID_ARGUMENT: no such process; a donated array. AX_OUT_OF_MEMORY. Or what its run failed with. */
AX_MUST_USE ax_status ax_array_gather(const ax_array *array, int64_t process, ax_host_array *out);

/* --- What all processes did --- */

/* The timelines of all processes as one, in process 0; `*out` is NULL in the others. JSON: Perfetto shows each process by its number
   and machine, with a row for each thread and each device. TEXT: the rows of one process after the other, in the same columns of time.
   Times are by process 0's clock; how far the other clocks are ahead is found from messages there and back, to within half of the
   shortest of their times, which the trace says of each process. Clocks also drift apart from the run until this call, by some
   microseconds a second between machines. Collective, if the program's mesh is spread over processes; else as ax_executable_timeline, in each. `*out`:
   ax_string_free. Errors as ax_executable_timeline. */
AX_MUST_USE ax_status ax_executable_gather_timeline(ax_executable *executable, ax_timeline_form form, char **out);

#pragma GCC visibility pop

#ifndef __cplusplus /* memory with its dtype (axle/type.h) */
#define ax_array_from_local(runtime, mesh, spec, type, data, out) \
  AX_LINED_STATUS(array_from_local, runtime, mesh, spec, type, AX_MEMORY(data), out)
#endif

#ifndef AXLE_NO_LINES /* axle/line.h */
#define ax_runtime_process_of(...) AX_LINED_STATUS(runtime_process_of, __VA_ARGS__)
#define ax_runtime_local_device_count(...) AX_LINED_STATUS(runtime_local_device_count, __VA_ARGS__)
#define ax_array_addressable_shard(...) AX_LINED_STATUS(array_addressable_shard, __VA_ARGS__)
#define ax_array_local_type(...) AX_LINED_STATUS(array_local_type, __VA_ARGS__)
#define ax_array_from_callback(...) AX_LINED_STATUS(array_from_callback, __VA_ARGS__)
#define ax_device_put_same(...) AX_LINED_STATUS(device_put_same, __VA_ARGS__)
#define ax_array_gather(...) AX_LINED_STATUS(array_gather, __VA_ARGS__)
#define ax_executable_gather_timeline(...) AX_LINED_STATUS(executable_gather_timeline, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
