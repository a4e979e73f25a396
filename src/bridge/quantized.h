/* Operations on quantized values (bridge/quantized.c). */
#ifndef AX_BRIDGE_QUANTIZED_H
#define AX_BRIDGE_QUANTIZED_H

#include "hlo/read.h"

extern const ax_hlo_reader ax_hlo_quantized_readers[];
/* Whether an operand or a result is quantized; then ax_quantized_read calls the operation's reader, on the elements that are stored or
   on what they stand for. */
bool ax_quantized_touches(const ax_hlo_import *import, const ax_hlo_operation *op);
AX_MUST_USE ax_status ax_quantized_read(const ax_hlo_read_args *args, ax_status (*read)(const ax_hlo_read_args *args));

#endif
