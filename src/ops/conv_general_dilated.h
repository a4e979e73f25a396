/* Declarations shared by the files of conv_general_dilated. */
#ifndef AX_OPS_CONV_GENERAL_DILATED_H
#define AX_OPS_CONV_GENERAL_DILATED_H

#include "ops/window.h"

typedef struct ax_conv_params {
  ax_dims window_strides, padding_low, padding_high, lhs_dilation, rhs_dilation; /* one entry a spatial dimension */
  ax_dims lhs_spec, rhs_spec,
      out_spec; /* numbers of dimensions. lhs, out: batch, feature, spatial..; rhs: out feature, in feature, spatial.. */
  int64_t feature_group_count, batch_group_count;
} ax_conv_params;

enum { AX_CONV_BATCH = 0, AX_CONV_FEATURE = 1, AX_CONV_SPATIAL = 2 }; /* places in lhs_spec and out_spec */
enum { AX_CONV_OUT = 0, AX_CONV_IN = 1 };                             /* in rhs_spec */

static inline uint32_t ax_conv_spatial(const ax_conv_params *p) { return p->lhs_spec.count - AX_CONV_SPATIAL; }
/* The window along spatial dimension i. */
ax_window ax_conv_window(const ax_conv_params *p, const ax_type *lhs, const ax_type *rhs, uint32_t i);
ax_value ax_conv_bind(const ax_conv_params *p, ax_value lhs, ax_value rhs);

void ax_conv_transpose(const ax_transpose_args *args);
void ax_conv_batch(const ax_batch_args *args);
void ax_conv_shard(const ax_shard_args *args);
void ax_conv_block(const ax_block_args *args);
/* Convolutions whose lhs is dilated (conv_general_dilated_phases.c). has_phases: whether this one can be computed by phases,
   without the zeros between elements; by_phases: the expansion that computes it so. */
bool ax_conv_has_phases(const ax_conv_params *p, const ax_type *lhs, const ax_type *rhs);
ax_value ax_conv_by_phases(const ax_eqn *eqn, const ax_value *in);
/* Convolutions whose rows are the rows of products (conv_general_dilated_image.c). *made: this one is, and is lowered. */
AX_MUST_USE ax_status ax_conv_lower_image(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out, bool *made);
/* Whether narrow floats of this dtype are multiplied as they are, since the processor does: sums are in f32 all the same, and rounded
   once. Others are converted to f32 before. */
bool ax_conv_multiplies_narrow(ax_dtype dtype);
/* Transposes x so that its dimensions follow `order`, or leaves it as it lies if `lies`. at[i]: the dimension of the result that
   has role i of the spec. */
ax_value ax_conv_ordered(ax_value x, const ax_dims *spec, const uint32_t *order, bool lies, uint32_t *at);
/* Cuts dimension d in groups, which come to the front. */
ax_value ax_conv_groups_front(ax_value x, uint32_t d, int64_t groups);
ax_status ax_conv_lower(ax_lower *lower, const ax_eqn *eqn, const uint32_t *in, uint32_t *out);

#endif
