#ifndef AX_OPS_ARGMAX_H
#define AX_OPS_ARGMAX_H

#include "ir/program.h"

/* x's elements at the places along the axis that argmax gives, without the axis. Not computed unless they are used. */
ax_value ax_elements_at(ax_value x, ax_value place, int64_t axis);

#endif
