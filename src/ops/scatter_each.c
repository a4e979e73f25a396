/* A scatter of one window for each place along the batching dimensions, at one of few places, as the gradient of take_along_axis is:

     y[b, j] = j == index[b] ? x[b, j] + u[b] : x[b, j]

   One kernel over all of y, which makes several elements at a time and is fused with what makes x, most often zeros, and with what reads
   y. A window that is not inside is equal to no place. */
#include "ops/indexed.h"
#include "ops/scatter.h"
#include "plan/lower.h"
#include "prim/prims.h"

enum { most_places = 64, most_elems = 256 }; /* of a window; and of all of its places */

static const ax_indexing *indexing_of(const ax_eqn *eqn) { return &((const ax_scatter_params *)eqn->params)->at; }

static bool takes(const ax_eqn *eqn, ax_dtype dtype) {
  const ax_dtype_info *info = ax_dtype_get(dtype);
  return !ax_is_key(dtype) && info->kind != AX_KIND_COMPLEX && (eqn->prim == &ax_prim_scatter || dtype != AX_BOOL);
}

bool ax_scatter_has_one_each(const ax_eqn *eqn, const ax_type *types) {
  const ax_indexing *at = indexing_of(eqn);
  const ax_type *x = &types[eqn->in[0]], *indices = &types[eqn->in[1]];
  const ax_index_windows w = ax_scatter_windows(at, x, indices, &types[eqn->in[2]]);
  int64_t places = 1, elems = 1;
  if (!takes(eqn, x->dtype)) return false;
  for (uint32_t d = 0; d + 1 < w.index_rank; d++)
    if (!ax_dims_has(&at->index_batching, d) && indices->dims[d] != 1) return false;
  for (uint32_t d = 0; d < w.rank; d++) {
    const bool batching = ax_dims_has(&at->batching, d), moves = w.component_of[d] >= 0;
    if (batching) continue;
    if (w.sizes[d] != (moves ? 1 : x->dims[d])) return false;
    places *= moves ? x->dims[d] : 1;
    elems *= x->dims[d];
    if (places > most_places || elems > most_elems) return false;
  }
  return true;
}

/* The loop of the kernel, which goes through the operand's dimensions, along a dimension of the wide array; -1: none, its extent is 1. */
static int loop_along(const ax_index_windows *w, int wide) {
  for (uint32_t d = 0; d < w->rank; d++)
    if (w->wide_of[d] == wide && w->component_of[d] < 0) return (int)d;
  return -1;
}

/* Whether an element lies in its window; AX_NONE: there is but one place. */
static ax_ex is_met(ax_lower *lower, const ax_index_windows *w, bool clips, uint32_t indices) {
  ax_loop_kernel *kernel = lower->kernel;
  int loop_of[AX_MAX_RANK];
  ax_ex met = AX_NONE;
  for (uint32_t d = 0; d + 1 < w->index_rank; d++) loop_of[d] = loop_along(w, w->wide_of_index[d]);
  for (uint32_t d = 0; d < w->rank; d++) {
    if (w->component_of[d] < 0) continue;
    ax_ex index = ax_lower_index(lower, w, indices, w->component_of[d], loop_of);
    if (clips) {
      index = ax_kernel_op(kernel, AX_SCALAR_MAX, AX_S64, index, ax_kernel_const(kernel, AX_S64, 0), AX_NONE);
      index = ax_kernel_op(kernel, AX_SCALAR_MIN, AX_S64, index, ax_kernel_const(kernel, AX_S64, w->limit[d]), AX_NONE);
    }
    const ax_ex here = ax_kernel_op(kernel, AX_SCALAR_EQ, AX_BOOL, ax_kernel_index(kernel, d), index, AX_NONE);
    met = met == AX_NONE ? here : ax_kernel_op(kernel, AX_SCALAR_AND, AX_BOOL, met, here, AX_NONE);
  }
  return met;
}

ax_status ax_scatter_lower_one_each(ax_lower *lower, ax_scalar combine, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *types = lower->program->types, type = types[eqn->out];
  const ax_index_windows w = ax_scatter_windows(indexing_of(eqn), &type, &types[eqn->in[1]], &types[eqn->in[2]]);
  ax_position at[AX_MAX_RANK], from[AX_MAX_RANK];
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  AX_TRY(ax_lower_kernel_begin(lower, type.rank, 0, type.dims));
  ax_at_identity(at, type.rank);
  for (uint32_t v = 0; v < w.wide_rank; v++) from[v] = (ax_position){.dim = loop_along(&w, (int)v), .coef = 1, .dynamic = AX_NONE};
  const ax_ex met = is_met(lower, &w, !ax_indexing_fills(indexing_of(eqn)), in[1]);
  const ax_ex before = ax_lower_load(lower, in[0], at);
  ax_ex value = ax_lower_load(lower, in[2], from);
  if (combine != AX_SCALAR_NONE) value = ax_kernel_op(lower->kernel, combine, type.dtype, before, value, AX_NONE);
  if (met != AX_NONE) value = ax_kernel_op(lower->kernel, AX_SCALAR_SELECT, type.dtype, met, value, before);
  ax_lower_store(lower, out[0], at, value, AX_SCALAR_NONE);
  return ax_lower_kernel_end(lower);
}
