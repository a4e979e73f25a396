/* The bytes that a record touches, in classes.

   Touches with the same bytes are one *footprint*; bytes that are in the same footprints are one *atom*. Footprints are few (the
   slots of a buffer, and the buffer), however often they are touched, and however many rows a block has.

       footprints   |------ buffer ------|        allocation, end of scope
                    |- slot 0 -|- slot 1 -|
       atoms            0           1 */
#ifndef AX_CHECK_ATOMS_H
#define AX_CHECK_ATOMS_H

#include "kernel/machine/act.h"

typedef struct ax_atoms { /* zero-initialise to start */
  uint32_t *of_touch; /* by touch: its footprint */
  uint32_t *first;    /* by footprint p: its atoms are items[first[p] .. first[p + 1]), ascending */
  uint32_t *items;
  uint32_t count; /* of atoms */
} ax_atoms;
/* AX_INVALID_ARGUMENT: a touch of a region that there is not. */
AX_MUST_USE ax_status ax_atoms_find(const ax_act_record *record, ax_atoms *out);
void ax_atoms_deinit(ax_atoms *atoms);

#endif
