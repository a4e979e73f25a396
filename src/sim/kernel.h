/* Kernels under the same clock. A kernel is run on the machine that the checker runs it on (kernel/machine/machine.h), one act
   after the other, and the order of acts is that of simulated time:

     computing between two acts    its flops; the cores of a device share what computes, one after the other
     loads and stores              bytes of the device's memory, or of a core's own
     a copy                        on a device: bytes of the slower of the two memories; else a message over links: read when the
                                   last of them has
                                   carried it, written `latency` later
     a signal                      at once; to another device a message of no bytes
     a wait                        until what it waits for is there, and can be seen on its device

   So data decides as in a run, and what waits for whom is the kernel's own doing. */
#ifndef AX_SIM_KERNEL_H
#define AX_SIM_KERNEL_H

#include "ir/program.h"
#include "sim/place.h"

typedef struct ax_timed_kernels { /* on the heap as ax_simulation.timed */
  ax_simulated_kernel *kernels; /* as they were come to, each equation once; spans are on the heap, texts in the arena */
  const ax_eqn **eqns;
  uint32_t count, capacity, eqn_capacity;
  ax_arena texts;
} ax_timed_kernels;

/* Evaluates the program by reference, with made-up inputs, and simulates each kernel that it comes to. Zero to start, deinited
   whatever is returned. The place is as ax_place_make says, of the program's mesh. AX_DEADLOCK, AX_INVALID_ARGUMENT: the kernel's
   own mistakes. */
AX_MUST_USE ax_status ax_kernels_time(const ax_program *program, const ax_sim_place *place, ax_timed_kernels *out);
/* That of the equation, or of another call of the same name; NULL. */
const ax_simulated_kernel *ax_kernels_find(const ax_timed_kernels *kernels, const ax_eqn *eqn);
void ax_timed_kernels_deinit(ax_timed_kernels *kernels);

#endif
