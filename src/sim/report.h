/* Parts of simulations' reports: words that several forms use, and the forms that stand in files of their own. */
#ifndef AX_SIM_REPORT_H
#define AX_SIM_REPORT_H

#include "axle/simulate.h"
#include "base/base.h"

/* "141 GB", the number with so many digits and at least `width` wide; with a width the unit is too. */
void ax_sim_bytes_text(ax_text *text, double bytes, int width, int digits);
/* "12.3 us", the number at least `width` wide. */
void ax_sim_seconds_text(ax_text *text, double seconds, int width);
/* "psum of 8, ring (line 5)" */
void ax_sim_op_text(ax_text *text, const ax_simulated_op *op);

/* Trace events, for Perfetto. */
void ax_sim_trace_events(ax_text *text, const ax_simulation *simulation);
/* A picture, as SVG. */
AX_MUST_USE ax_status ax_sim_picture(ax_text *text, const ax_simulation *simulation);

#endif
