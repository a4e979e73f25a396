/* ragged_all_to_all: declarations shared by its file and the file of its StableHLO. */
#ifndef AX_COLLECTIVES_RAGGED_H
#define AX_COLLECTIVES_RAGGED_H

#include "collectives/collective.h"

enum {
  AX_RAGGED_OPERAND,
  AX_RAGGED_OUTPUT,
  AX_RAGGED_INPUT_OFFSETS,
  AX_RAGGED_SEND_SIZES,
  AX_RAGGED_OUTPUT_OFFSETS,
  AX_RAGGED_RECV_SIZES
};

typedef struct ax_ragged_params {
  ax_axes axes;
  int64_t batch;
  ax_dims local;
  bool back;
} ax_ragged_params;

/* Makes all operands vary over the axes, and binds the equation. */
ax_value ax_ragged_bind(const ax_ragged_params *params, const ax_value *in);
/* Writes the equation, on operands of these types, as a program of exchanges between devices, none with a batch or backwards. */
ax_status ax_ragged_write_out(const ax_mesh *axes, const ax_ragged_params *params, const ax_type *types, ax_program **out);
/* The same in the trace in progress, on operands of the equation's types: out[0]. */
void ax_ragged_written_out(const ax_ragged_params *params, const ax_value *in, ax_value *out);
ax_status ax_ragged_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);
/* Reads the custom call of this name: groups and channel stand in its backend_config. */
#define AX_RAGGED_TARGET "ragged_all_to_all"
AX_MUST_USE ax_status ax_ragged_read(const ax_hlo_read_args *args);

#endif
