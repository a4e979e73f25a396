/* Measures the facts of speed on this machine, in some ten milliseconds. The facts of caches, limits and instructions are known by
   then. */
#ifndef AX_MACHINE_SPEEDS_H
#define AX_MACHINE_SPEEDS_H

#include "machine/machine.h"

void ax_speeds_measure(ax_description *machine);

#endif
