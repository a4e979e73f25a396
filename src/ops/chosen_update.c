/* select_n between an array and the same array with updates: what is put is chosen instead, so that the cost is that of the updates.

     select_n(which, x, scatter(x, indices, updates))     a loop whose rows end at different steps (while_loop under vmap), or
     select_n(which, x, dynamic_update_slice(x, ..))      where(done, x, x.at[i].set(y))

   What chooses must vary along such dimensions alone as the updates have whole, or indices are batched over: it is broadcast along the
   others, or computed from what is. Of a scatter whose windows may lie outside, the indices are chosen: such a window changes nothing.
   Otherwise updates are chosen, beside what they would overwrite. Several updates in a row are chosen alike. */
#include "ops/chosen_update.h"

#include "ops/broadcast.h"
#include "ops/gather.h"
#include "ops/scatter.h"
#include "prim/prims.h"

enum {
  most_deep = 4,     /* computations from what is broadcast to what chooses */
  most_operands = 3, /* of such a computation */
  most_updates = 16, /* in a row */
  gain = 4           /* an array is worth it that has as many times the elements of all updates */
};

typedef struct choice {
  const ax_rewrite_args *args;
  uint32_t array;      /* without updates: the id of a value */
  const ax_type *type; /* of it */
  bool when;           /* what chooses gives this where there are updates */
  ax_dims along;       /* the dimensions that it varies along */
  ax_value which;      /* over these dimensions alone, true where there are updates */
  uint32_t count;
  const ax_eqn *updates[most_updates]; /* the last first */
} choice;

static const ax_type *type_of(const choice *c, uint32_t id) { return &c->args->types[id]; }

/* --- The question --- */

static bool takes_whole(const choice *c, const ax_type *update) {
  for (uint32_t k = 0; k < c->along.count; k++)
    if (update->dims[c->along.v[k]] != c->type->dims[c->along.v[k]]) return false;
  return true;
}

static const ax_indexing *indexing_of(const ax_eqn *eqn) { return &((const ax_scatter_params *)eqn->params)->at; }

static ax_index_windows windows_of(const choice *c, const ax_eqn *eqn) {
  return ax_scatter_windows(indexing_of(eqn), c->type, type_of(c, eqn->in[1]), type_of(c, eqn->in[2]));
}

/* An index of -1 is outside, where there is an index that may be. */
static bool by_index(const choice *c, const ax_eqn *eqn) {
  const ax_indexing *at = indexing_of(eqn);
  bool all = ax_indexing_fills(at) && at->map.count > 0 && ax_dtype_get(type_of(c, eqn->in[1])->dtype)->kind == AX_KIND_SIGNED;
  for (uint32_t k = 0; k < c->along.count; k++) all = all && ax_dims_has(&at->batching, c->along.v[k]);
  return all;
}

static bool by_element(const choice *c, const ax_eqn *eqn) {
  const ax_index_windows w = windows_of(c, eqn);
  bool all = eqn->prim == &ax_prim_scatter && !ax_is_key(c->type->dtype);
  for (uint32_t k = 0; k < c->along.count; k++) {
    const int64_t d = c->along.v[k];
    const bool batching = ax_dims_has(&indexing_of(eqn)->batching, d);
    all = all && w.wide_of[d] >= 0 && (batching || w.sizes[d] == c->type->dims[d]);
  }
  return all;
}

static bool is_scatter(const ax_prim *prim) {
  return prim == &ax_prim_scatter || prim == &ax_prim_scatter_add || prim == &ax_prim_scatter_mul || prim == &ax_prim_scatter_min ||
         prim == &ax_prim_scatter_max;
}

/* The operand of an update that can be chosen, AX_NONE for other equations. */
static uint32_t operand_of_updates(const choice *c, const ax_eqn *eqn) {
  if (eqn->prim == &ax_prim_dynamic_update_slice) return takes_whole(c, type_of(c, eqn->in[1])) ? 1 : AX_NONE;
  return is_scatter(eqn->prim) && (by_index(c, eqn) || by_element(c, eqn)) ? 2 : AX_NONE;
}

/* Goes from the updated array back to the other one. */
static bool find_updates(choice *c, uint32_t updated) {
  int64_t elems = 0;
  c->count = 0;
  while (updated != c->array) {
    const ax_eqn *eqn = c->args->made_by[updated];
    const uint32_t k = eqn == NULL || c->count == most_updates ? AX_NONE : operand_of_updates(c, eqn);
    if (k == AX_NONE) return false;
    elems += ax_type_elems(type_of(c, eqn->in[k]));
    c->updates[c->count++] = eqn;
    updated = eqn->in[0];
  }
  return c->count > 0 && elems <= ax_type_elems(c->type) / gain;
}

static bool is_pointwise(const ax_eqn *eqn) {
  return eqn->prim->kind == AX_LOCAL && eqn->prim->scalar != AX_SCALAR_NONE && eqn->in_count > 0 && eqn->in_count <= most_operands;
}

/* The dimensions along which a value of the array's shape, or a scalar, varies: bits. */
static uint32_t varies_along(const choice *c, uint32_t id, int deep) {
  const ax_eqn *eqn = c->args->made_by[id];
  const bool stretched = eqn != NULL && eqn->prim == &ax_prim_broadcast_in_dim;
  const ax_type *type = type_of(c, stretched ? eqn->in[0] : id);
  uint32_t dims = 0;
  if (eqn != NULL && deep > 0 && is_pointwise(eqn)) {
    for (uint32_t k = 0; k < eqn->in_count; k++) dims |= varies_along(c, eqn->in[k], deep - 1);
    return dims;
  }
  for (uint32_t d = 0; d < type->rank; d++)
    if (type->dims[d] != 1) dims |= 1U << (stretched ? ((const ax_broadcast_params *)eqn->params)->broadcast_dimensions.v[d] : d);
  return dims;
}

static bool find(choice *c, const ax_rewrite_args *args) {
  const uint32_t *in = args->eqn->in;
  *c = (choice){.args = args};
  if (ax_type_elems(type_of(c, args->eqn->out)) == 0) return false;
  const uint32_t dims = varies_along(c, in[0], most_deep);
  for (uint32_t d = 0; d < AX_MAX_RANK; d++)
    if ((dims >> d & 1) != 0) c->along.v[c->along.count++] = d;
  for (uint32_t k = 1; k < 3; k++) {
    c->array = in[3 - k], c->type = type_of(c, c->array), c->when = k == 2;
    if (ax_type_equal(c->type, type_of(c, args->eqn->out)) && find_updates(c, in[k])) return true;
  }
  return false;
}

/* --- The equations --- */

/* A value over the dimensions in `along` alone. */
static ax_value lean(const choice *c, uint32_t id, int deep) {
  const ax_eqn *eqn = c->args->made_by[id];
  const bool stretched = eqn != NULL && eqn->prim == &ax_prim_broadcast_in_dim;
  const uint32_t from = stretched ? eqn->in[0] : id;
  const ax_type *type = type_of(c, from);
  int64_t all[AX_MAX_RANK], sizes[AX_MAX_RANK], place[AX_MAX_RANK];
  uint32_t count = 0;
  if (eqn != NULL && deep > 0 && is_pointwise(eqn)) {
    ax_value in[most_operands];
    for (uint32_t k = 0; k < eqn->in_count; k++) in[k] = lean(c, eqn->in[k], deep - 1);
    return ax_bind1(eqn->prim, eqn->params, in, eqn->in_count);
  }
  for (uint32_t k = 0; k < c->along.count; k++) all[k] = c->type->dims[c->along.v[k]];
  for (uint32_t d = 0; d < type->rank; d++) {
    const int64_t to = stretched ? ((const ax_broadcast_params *)eqn->params)->broadcast_dimensions.v[d] : d;
    if (type->dims[d] == 1) continue;
    for (place[count] = 0; c->along.v[place[count]] != to; place[count]++) continue;
    sizes[count++] = type->dims[d];
  }
  const ax_value x = (ax_reshape)(c->args->values[from], AX_LIST(count, sizes));
  return (ax_broadcast_in_dim)(x, AX_LIST(c->along.count, all), AX_LIST(count, place));
}

/* What chooses, over an array of `dims`, whose dimension place[k] is along[k] of the updated one. */
static ax_value chooses(const choice *c, uint32_t rank, const int64_t *dims, const int64_t *place) {
  const uint32_t count = c->along.count;
  int64_t sorted[AX_MAX_RANK], order[AX_MAX_RANK];
  for (uint32_t k = 0; k < count; k++) {
    uint32_t at = k;
    for (; at > 0 && sorted[at - 1] > place[k]; at--) sorted[at] = sorted[at - 1], order[at] = order[at - 1];
    sorted[at] = place[k], order[at] = k;
  }
  const ax_value which = (ax_transpose)(c->which, AX_LIST(count, order));
  return (ax_broadcast_in_dim)(which, AX_LIST(rank, dims), AX_LIST(count, sorted));
}

static ax_value put_slice(const choice *c, const ax_eqn *eqn, ax_value x) {
  const ax_type *update = type_of(c, eqn->in[1]);
  ax_value starts[AX_MAX_RANK];
  for (uint32_t d = 0; d < update->rank; d++) starts[d] = c->args->values[eqn->in[2 + d]];
  const ax_value which = chooses(c, AX_LIST(update->rank, update->dims), c->along.v);
  const ax_value before = (ax_dynamic_slice)(x, AX_LIST(update->rank, starts), AX_LIST(update->rank, update->dims));
  const ax_value made = ax_select_n(which, before, c->args->values[eqn->in[1]]);
  return (ax_dynamic_update_slice)(x, made, AX_LIST(update->rank, starts));
}

/* The number of the dimension of the indices that the array's dimension d is batched with. */
static int64_t index_dim(const ax_indexing *at, int64_t d) {
  uint32_t k = 0;
  while (at->batching.v[k] != d) k++;
  return at->index_batching.v[k];
}

static ax_value put_windows(const choice *c, const ax_eqn *eqn, ax_value x) {
  const ax_index_windows w = windows_of(c, eqn);
  const ax_type *indices = type_of(c, eqn->in[1]), *updates = type_of(c, eqn->in[2]);
  ax_scatter_params p = *(const ax_scatter_params *)eqn->params;
  ax_value in[] = {x, c->args->values[eqn->in[1]], c->args->values[eqn->in[2]]};
  int64_t place[AX_MAX_RANK];
  if (by_index(c, eqn)) {
    for (uint32_t k = 0; k < c->along.count; k++) place[k] = index_dim(&p.at, c->along.v[k]);
    const ax_value outside = (ax_full)(indices->dtype, AX_LIST(indices->rank, indices->dims), -1);
    in[1] = ax_select_n(chooses(c, AX_LIST(indices->rank, indices->dims), place), outside, in[1]);
    p.at.sorted = false;
  } else {
    for (uint32_t k = 0; k < c->along.count; k++) place[k] = w.wide_of[c->along.v[k]];
    const ax_value before = ax_gather_of(x, in[1], &p.at, w.sizes);
    in[2] = ax_select_n(chooses(c, AX_LIST(updates->rank, updates->dims), place), before, in[2]);
  }
  return ax_bind1(eqn->prim, &p, in, 3);
}

bool ax_choose_update(const ax_rewrite_args *args) {
  choice c;
  if (!find(&c, args)) return false;
  if (args->values == NULL) return true;
  ax_value x = args->values[c.array];
  c.which = lean(&c, args->eqn->in[0], most_deep);
  if (!c.when) c.which = ax_not(c.which);
  for (uint32_t i = c.count; i-- > 0 && !ax_failed();)
    x = c.updates[i]->prim == &ax_prim_dynamic_update_slice ? put_slice(&c, c.updates[i], x) : put_windows(&c, c.updates[i], x);
  args->out[0] = x;
  return true;
}
