/* Kernels whose groups have devices in several processes. Each process runs the cores of its own devices (plan/cores.h). What they
   do on a device of another process goes there as a message, and the thread that handles the message does it.

     core: copy_start to device 3 ------- CORES: kernel, group, device; what; bytes ---> written at its place, then signalled
                                   <----- CORES: done, if a barrier is to know it ------
     all cores of a process through ----- CORES: no more of this kernel ---------------> its RUN may end, if all is answered

   A message comes only when all devices of the group have entered the kernel, since no core runs before that. Messages of one
   process are taken in the order in which they were sent, so a signal never overtakes the bytes that were sent before it: those
   behind a long one wait until it has been fetched. */
#ifndef AX_RUN_CORES_CROSSING_H
#define AX_RUN_CORES_CROSSING_H

#include "run/remote.h"

AX_MUST_USE ax_status ax_cores_init(ax_remote *remote);
void ax_cores_deinit(ax_remote *remote);
void ax_cores_reset(ax_remote *remote);

/* The first member here of a device's group. */
static inline uint32_t ax_cores_first_here(const ax_crossing *crossing, uint32_t device) {
  uint32_t member = 0;
  while (crossing->here[crossing->group[device] * crossing->members + member] == AX_NONE) member++;
  return member;
}
/* A member of this process has entered: its state. */
void ax_cores_entered(ax_execution *run, const ax_activation *activation, const ax_instr *instr, void *state);
/* Completes the caller of a kernel at its RUN: states of the members here, and messages. It is valid as long as the run. */
void ax_cores_cross(ax_execution *run, const ax_activation *activation, const ax_instr *instr, ax_cores_runner *runner);
/* What a core of another process does here. Consumes the message. */
AX_MUST_USE ax_status ax_cores_take(ax_execution *run, ax_delivery *delivery);
/* For reports: says what the cores of this process wait for, in the group of a device that is at the kernel. */
void ax_cores_waiting(ax_text *text, const ax_execution *run, const ax_activation *activation, const ax_instr *instr);

#endif
