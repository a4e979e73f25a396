/* Attributes in one form, whichever way a file has them: what is printed and written. */
#ifndef AX_HLO_CANONICAL_H
#define AX_HLO_CANONICAL_H

#include "hlo/dialect.h"

/* The attribute as its slot says: lists of integers as AX_HLO_NUMBERS, pairs as AX_HLO_ELEMENTS of 64 bits, symbols, strings and units as
   such. What cannot be so stays as it is. New parts are in `arena`. */
AX_MUST_USE ax_status ax_hlo_canonical(ax_arena *arena, const ax_hlo_slot *slot, const ax_hlo_attribute *from,
                                       ax_hlo_attribute *out);
/* StableHLO may leave the attribute out, since it is what that stands for. */
bool ax_hlo_is_default(const ax_hlo_slot *slot, const ax_hlo_attribute *attribute);
/* All elements are one, though the attribute may have each. */
bool ax_hlo_is_splat(const ax_hlo_attribute *elements);
int64_t ax_hlo_element_count(const ax_hlo_value_type *tensor);

#endif
