/* ragged_all_to_all, between its file and that of its StableHLO. */
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

/* All operands made to vary over the axes. */
ax_value ax_ragged_bind(const ax_ragged_params *params, const ax_value *in);
/* The equation on operands of these types as a program of exchanges between devices, of no batch and not back. */
ax_status ax_ragged_write_out(const ax_mesh *axes, const ax_ragged_params *params, const ax_type *types, ax_program **out);
ax_status ax_ragged_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);

#endif
