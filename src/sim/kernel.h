/* Kernels under the same clock. A kernel runs on the machine that the checker uses (kernel/machine/machine.h), one act after the
   other, in the order of simulated time:

     computing between two acts    its flops; the cores of a device share its arithmetic units, one after the other
     loads and stores              bytes of the device's memory, or of a core's own
     a copy                        on a device: bytes of the slower of the two memories; else a message over links: read when the
                                   last link has carried it, written `latency` later
     a signal                      at once; to another device a message of no bytes
     a wait                        until the awaited signals are given, and visible on its device

   So data decides as in a run, and the waits are the kernel's own. */
#ifndef AX_SIM_KERNEL_H
#define AX_SIM_KERNEL_H

#include "ir/program.h"
#include "sim/place.h"

typedef struct ax_timed_kernels { /* on the heap as ax_simulation.timed */
  ax_simulated_kernel *kernels; /* in the order of evaluation, each equation once; spans are on the heap, texts in the arena */
  const ax_eqn **eqns;
  uint32_t count, capacity, eqn_capacity;
  ax_arena texts;
} ax_timed_kernels;

/* Evaluates the program by reference, with made-up inputs, and simulates each kernel that it reaches. `out` is zero before, and
   deinited by the caller also on failure. The place is made by ax_sim_place_make from the program's mesh. AX_DEADLOCK,
   AX_INVALID_ARGUMENT: the kernel's own mistakes. */
AX_MUST_USE ax_status ax_kernels_time(const ax_program *program, const ax_sim_place *place, ax_timed_kernels *out);
/* The kernel of the equation, or of another call of the same name; NULL: none. */
const ax_simulated_kernel *ax_kernels_find(const ax_timed_kernels *kernels, const ax_eqn *eqn);
void ax_timed_kernels_deinit(ax_timed_kernels *kernels);

#endif
