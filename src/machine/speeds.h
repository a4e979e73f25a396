/* Measures the facts of speed on this machine, in some twenty milliseconds. The other facts are known by then. */
#ifndef AX_MACHINE_SPEEDS_H
#define AX_MACHINE_SPEEDS_H

#include "machine/machine.h"

/* False: something could not be measured, or two rounds of a measurement differ so much that other processes had a part in it. */
bool ax_speeds_measure(ax_description *machine);
/* The operations that a core does on numbers of this fact's type while it does one on f32: of a processor with the instructions of
   this one, whatever it is. 1: of other facts. */
double ax_speeds_beside_f32(ax_fact fact);

#endif
