/* A module as text: operations in MLIR's generic form, functions and the module in the short one. Attributes are in the order of their names and in one form, those left out that may be; values
   of a function are numbered from 0. So modules that say the same have the same text, whichever form they were read from; locations are left out. */
#ifndef AX_HLO_PRINT_H
#define AX_HLO_PRINT_H

#include "hlo/module.h"

/* Adds the text. AX_ABSENT: attributes or types that share parts so often that they are too large as text. AX_OUT_OF_MEMORY, also of the text. */
AX_MUST_USE ax_status ax_hlo_print(const ax_hlo_module *module, ax_text *text);

/* Parts of such texts: {a = 1 : i64, ..} of an operation, "{}" of none; an attribute; a type. Errors as of ax_hlo_print. */
AX_MUST_USE ax_status ax_hlo_print_attributes(const ax_hlo_module *module, const ax_hlo_operation *op, ax_text *text);
AX_MUST_USE ax_status ax_hlo_print_attribute(const ax_hlo_module *module, const ax_hlo_attribute *attribute, ax_text *text);
AX_MUST_USE ax_status ax_hlo_print_type(const ax_hlo_module *module, const ax_hlo_value_type *type, ax_text *text);

/* An integer or a float, without its type, in one form: an integer as its type has it, wrapped around; of a float as many digits as tell
   it from others, or its bits if it is infinite or NaN. A float that cannot be read keeps its text. */
void ax_hlo_print_number(ax_text *text, const ax_hlo_attribute *number);
/* dense<..> : type. */
void ax_hlo_print_elements(ax_text *text, const ax_hlo_attribute *elements);

#endif
