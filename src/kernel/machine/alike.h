/* Cores that do the same: what one does, any other may do in its place. */
#ifndef AX_KERNEL_MACHINE_ALIKE_H
#define AX_KERNEL_MACHINE_ALIKE_H

#include "kernel/machine/machine.h"

typedef struct ax_alike { /* zero-initialise to start */
  uint32_t *first;   /* by core: the first core that it is like; itself, where there is none before */
  bool *several;     /* by core: others are like it */
  bool **own;        /* by body: slots that may differ between such cores, and that nothing else depends on */
  uint32_t body_count;
  bool any;
} ax_alike;

AX_MUST_USE ax_status ax_alike_find(const ax_machine *machine, ax_alike *out);
void ax_alike_deinit(ax_alike *alike);

#endif
