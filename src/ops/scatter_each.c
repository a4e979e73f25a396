/* A scatter of one window, or a few, for each place along the other dimensions, at one of few places, as the gradients of take_along_axis
   and of a few columns are:

     y[b, j] = j == index[b] ? x[b, j] + u[b] : x[b, j]        again for the next index, if there are several

   One kernel over all of y, which makes several elements at a time and is fused with what makes x, most often zeros, and with what reads
   y. A window that is not inside is equal to no place. */
#include "ops/indexed.h"
#include "ops/scatter.h"
#include "plan/lower.h"
#include "prim/prims.h"

/* Places: of an array that is made for this, as zeros; of one that may be overwritten in place, where single windows are quick; of several windows
   that are put and not combined. Elements of all places, in windows' innermost runs. */
enum { most_places = 64, most_kept = 32, most_put = 32, most_elems = 256, most_nodes = 100 };

static bool takes(const ax_eqn *eqn, ax_dtype dtype) {
  const ax_dtype_info *info = ax_dtype_get(dtype);
  return !ax_is_key(dtype) && info->kind != AX_KIND_COMPLEX && (eqn->prim == &ax_prim_scatter || dtype != AX_BOOL);
}

/* How many windows each place along the batching dimensions has. */
static int64_t windows_each(const ax_indexing *at, const ax_type *indices) {
  int64_t count = 1;
  for (uint32_t d = 0; d + 1 < indices->rank; d++) count *= ax_dims_has(&at->index_batching, d) ? 1 : indices->dims[d];
  return count;
}

bool ax_scatter_has_few_each(const ax_eqn *eqn, const ax_type *types, bool fresh) {
  enum { nodes_of_window = 4 };
  const ax_indexing *at = ax_scatter_indexing(eqn);
  const ax_type *x = &types[eqn->in[0]], *indices = &types[eqn->in[1]];
  const ax_index_windows w = ax_scatter_windows(at, x, indices, &types[eqn->in[2]]);
  int64_t places = 1, run = 1;
  const int64_t most = !fresh ? most_kept : eqn->prim == &ax_prim_scatter && windows_each(at, indices) > 1 ? most_put : most_places;
  const int64_t nodes_of_number = ax_indexing_fills(at) ? 4 : 6;
  if (!takes(eqn, x->dtype)) return false;
  if (windows_each(at, indices) * (indices->dims[indices->rank - 1] * nodes_of_number + nodes_of_window) > most_nodes) return false;
  for (uint32_t d = w.rank; d-- > 0;) {
    const bool moves = w.component_of[d] >= 0;
    if (ax_dims_has(&at->batching, d)) continue;
    if (w.sizes[d] != (moves ? 1 : x->dims[d])) return false;
    if (moves) places *= x->dims[d];
    else if (places == 1) run *= x->dims[d]; /* else it is another place to have windows */
    if (places > most || places * run > most_elems || (!fresh && run > 1)) return false;
  }
  return true;
}

/* The loop of the kernel, which goes through the operand's dimensions, along a dimension of the wide array; -1: none, its extent is 1. */
static int loop_along(const ax_index_windows *w, int wide) {
  for (uint32_t d = 0; d < w->rank; d++)
    if (w->wide_of[d] == wide && w->component_of[d] < 0) return (int)d;
  return -1;
}

typedef struct chooser {
  ax_lower *lower;
  const ax_indexing *at;
  const ax_index_windows *w;
  uint32_t indices, updates;
  ax_position of_index[AX_MAX_RANK], of_update[AX_MAX_RANK]; /* of the window at hand */
} chooser;

/* Window number `k` of each place. */
static void go_to(chooser *c, int64_t k) {
  const ax_type *indices = ax_lower_type(c->lower, c->indices);
  for (uint32_t v = 0; v < c->w->wide_rank; v++)
    c->of_update[v] = (ax_position){.dim = loop_along(c->w, (int)v), .coef = 1, .dynamic = AX_NONE};
  for (uint32_t d = c->w->index_rank - 1; d-- > 0;) {
    const int wide = c->w->wide_of_index[d];
    if (!ax_dims_has(&c->at->index_batching, d)) {
      c->of_update[wide] = (ax_position){.dim = -1, .offset = k % indices->dims[d], .dynamic = AX_NONE};
      k /= indices->dims[d];
    }
    c->of_index[d] = c->of_update[wide];
  }
}

/* Whether an element lies in its window; AX_NONE: there is but one place. */
static ax_ex is_met(const chooser *c) {
  ax_loop_kernel *kernel = c->lower->kernel;
  ax_ex met = AX_NONE;
  for (uint32_t d = 0; d < c->w->rank; d++) {
    if (c->w->component_of[d] < 0) continue;
    ax_ex index = ax_lower_index(c->lower, c->w, c->indices, c->w->component_of[d], c->of_index);
    if (!ax_indexing_fills(c->at)) {
      index = ax_kernel_op(kernel, AX_SCALAR_MAX, AX_S64, index, ax_kernel_const(kernel, AX_S64, 0), AX_NONE);
      index = ax_kernel_op(kernel, AX_SCALAR_MIN, AX_S64, index, ax_kernel_const(kernel, AX_S64, c->w->limit[d]), AX_NONE);
    }
    const ax_ex here = ax_kernel_op(kernel, AX_SCALAR_EQ, AX_BOOL, ax_kernel_index(kernel, d), index, AX_NONE);
    met = ax_kernel_both(kernel, met, here);
  }
  return met;
}

ax_status ax_scatter_lower_few_each(ax_lower *lower, ax_scalar combine, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_type *types = lower->program->types, type = types[eqn->out];
  const ax_index_windows w = ax_scatter_windows(ax_scatter_indexing(eqn), &type, &types[eqn->in[1]], &types[eqn->in[2]]);
  chooser c = {.lower = lower, .at = ax_scatter_indexing(eqn), .w = &w, .indices = in[1], .updates = in[2]};
  const int64_t count = windows_each(c.at, &types[eqn->in[1]]);
  ax_position at[AX_MAX_RANK];
  AX_TRY(ax_lower_result(lower, eqn, 0, &out[0]));
  AX_TRY(ax_lower_kernel_begin(lower, type.rank, 0, type.dims));
  ax_at_identity(at, type.rank);
  ax_ex value = ax_lower_load(lower, in[0], at);
  for (int64_t k = 0; k < count; k++) {
    go_to(&c, k);
    const ax_ex met = is_met(&c), before = value;
    value = ax_lower_load(lower, c.updates, c.of_update);
    if (combine != AX_SCALAR_NONE) value = ax_kernel_op(lower->kernel, combine, type.dtype, before, value, AX_NONE);
    if (met != AX_NONE) value = ax_kernel_op(lower->kernel, AX_SCALAR_SELECT, type.dtype, met, value, before);
  }
  ax_lower_store(lower, out[0], at, value, AX_SCALAR_NONE);
  return ax_lower_kernel_end(lower);
}
