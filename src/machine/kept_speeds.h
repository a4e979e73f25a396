/* Measured speeds, kept for later processes in the folder of compiled code, which must belong to the user alone (base/folder.h).
   The file "speeds" is a text:

     axle speeds 3
     of 5f0c..           what identifies the machine: the processor, its caches, the processors of this process, its quota
     read 24913420288    a fact a line, in its own unit
     ..
     sum 91b2..          of all before

   Speeds of another machine, or of another share of this one, are not used, nor are those that no machine has, or a file that is
   damaged: then speeds are measured again, and the file is replaced. Nothing here fails a call or changes this thread's message. */
#ifndef AX_MACHINE_KEPT_SPEEDS_H
#define AX_MACHINE_KEPT_SPEEDS_H

#include "machine/machine.h"

/* Sets the speeds that are kept of this machine, whose other facts are known. False: there are none, and nothing is set. */
bool ax_kept_speeds_find(const char *folder, ax_description *machine);
/* Keeps those that are measured. */
void ax_kept_speeds_put(const char *folder, const ax_description *machine);

#endif
