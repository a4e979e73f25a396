/* A point of a kernel's grid in a plain program: its numbers, its blocks, and the body on them.

     block = slice of the whole at index_map(numbers) * shape;  body;  of results: the whole with the block there */
#include "kernel/discharge_points.h"

void ax_discharge_number(const ax_discharge *d, ax_value number, uint32_t count, const int64_t *sizes, ax_value *out) {
  for (uint32_t i = count; i-- > 0;) {
    ax_value above = i > 0 ? ax_div(number, ax_integer(sizes[i])) : ax_poison;
    ax_value rest = i > 0 ? ax_sub(number, ax_mul(above, ax_integer(sizes[i]))) : number;
    out[i] = ax_discharge_spread(d, ax_convert_element_type(rest, AX_S32));
    number = above;
  }
}

/* Its number is 0 along dimension `dim`, or the only one. */
static bool is_first(const ax_discharged *k, const ax_cut *c, uint32_t dim) {
  return k->beside.feeds[c - k->cuts].dim[dim] == AX_FEED_FIRST || (k->strands != NULL && ax_strand_of(k, c, dim) != AX_NONE);
}

/* The memory is one block. */
static bool is_whole(ax_value whole, const ax_cut *c) {
  const ax_type type = ax_typeof(whole);
  return !ax_failed() && ax_same_shape(&type, c->shape);
}

/* Where the block begins along a dimension, if that is known. */
static bool known_start(const ax_discharged *k, const ax_cut *c, uint32_t dim, int64_t *start) {
  const int8_t feed = k->beside.feeds[c - k->cuts].dim[dim];
  *start = 0;
  if (is_first(k, c, dim)) return true;
  if (k->point == NULL || feed < 0 || !ax_is_gone_over(k, (uint32_t)feed) || k->point[feed] < 0) return false;
  *start = k->point[feed] * c->shape->dims[dim];
  return true;
}

/* The block of the whole. */
static ax_value block_of(const ax_discharged *k, const ax_cut *c, ax_value whole) {
  const ax_type type = ax_typeof(whole);
  int64_t from[AX_MAX_RANK], to[AX_MAX_RANK];
  bool known = k->point != NULL;
  for (uint32_t d = 0; d < type.rank && known; d++) {
    known = known_start(k, c, d, &from[d]);
    to[d] = known ? from[d] + c->shape->dims[d] : 0;
    known = known && to[d] <= type.dims[d];
  }
  return known ? ax_slice(whole, from, to, NULL) : ax_dynamic_slice(whole, c->starts, c->shape->dims);
}

void ax_discharge_take(ax_discharged *k, ax_cut *c) {
  ax_discharge *d = &k->d;
  uint32_t rank = c->shape->rank;
  ax_value numbers[AX_MAX_RANK];
  const uint32_t grid = k->params->grid.count;
  ax_discharge_value *in = ax_trace_alloc((c->map->in_count + 1) * sizeof in[0]);
  if (in == NULL) return;
  for (uint32_t i = 0; i < c->map->in_count; i++) in[i] = (ax_discharge_value){.value = i < grid ? d->ids[i] : k->consts[i - grid]};
  struct ax_ranges *of_body = d->ranges; /* they say nothing of the map, though it may call what the body calls */
  d->ranges = NULL;
  ax_discharge_program(d, c->map, in, numbers);
  d->ranges = of_body;
  for (uint32_t i = 0; i < rank && !ax_failed(); i++) {
    int64_t start;
    c->starts[i] = known_start(k, c, i, &start) ? ax_full_i64(AX_S32, AX_DIMS(), start)
                                                : ax_discharge_spread(d, ax_mul(numbers[i], ax_integer(c->shape->dims[i])));
  }
  ax_value block = ax_content_read(d, c->whole);
  if (!is_whole(block, c)) block = block_of(k, c, block);
  ax_content_write(d, c->block, ax_reshape(block, AX_LIST(c->block->type.rank, c->block->type.dims)));
}

void ax_discharge_put(ax_discharged *k, const ax_cut *c) {
  ax_value block = ax_reshape(ax_content_read(&k->d, c->block), AX_LIST(c->shape->rank, c->shape->dims)),
           whole = ax_content_read(&k->d, c->whole);
  ax_content_write(&k->d, c->whole, is_whole(whole, c) ? block : ax_dynamic_update_slice(whole, block, c->starts));
}

/* The number along a dimension that is gone over, one by one or in a group. */
static ax_value known_id(const ax_discharged *k, uint32_t dim, ax_value number) {
  if (k->point != NULL && k->point[dim] >= 0) return ax_discharge_spread(&k->d, ax_full_i64(AX_S32, AX_DIMS(), k->point[dim]));
  if (dim == k->inner) return ax_discharge_spread(&k->d, ax_convert_element_type(number, AX_S32));
  return k->group != NULL ? k->group[dim] : ax_discharge_spread(&k->d, ax_full_i64(AX_S32, AX_DIMS(), 0));
}

const ax_value *ax_discharge_ids(const ax_discharged *k, ax_value number) {
  const ax_dims *grid = &k->params->grid;
  int64_t sizes[AX_MAX_RANK];
  ax_value some[AX_MAX_RANK];
  uint32_t count = 0, at = 0;
  ax_value *ids = ax_trace_alloc((grid->count + 1) * sizeof ids[0]);
  for (uint32_t d = 0; d < grid->count; d++)
    if (ax_is_gone_over(k, d)) sizes[count++] = grid->v[d];
  if (k->inner == AX_NONE) ax_discharge_number(&k->d, number, count, sizes, some);
  for (uint32_t d = 0; d < grid->count && ids != NULL; d++) {
    if (!ax_is_gone_over(k, d)) ids[d] = k->strands[d];
    else ids[d] = k->inner == AX_NONE ? some[at++] : known_id(k, d, number);
  }
  return ids;
}

void ax_discharge_point(ax_discharged *k, ax_value number) {
  const ax_kernel_params *p = k->params;
  uint32_t consts = (uint32_t)p->consts;
  const ax_program *body = p->bodies.v[k->body];
  ax_discharge_value *in = ax_trace_alloc((body->in_count + 1) * sizeof in[0]);
  k->d.ids = ax_discharge_ids(k, number);
  if (ax_failed()) return;
  for (uint32_t i = 0; i < k->cut_count && !ax_failed(); i++)
    if (k->cuts[i].shape != NULL && !k->cuts[i].held) ax_discharge_take(k, &k->cuts[i]);
  for (uint32_t i = 0; i < body->in_count; i++) {
    if (i < consts) in[i].value = k->consts[i];
    else in[i].view = i < consts + k->cut_count ? k->cuts[i - consts].block : k->scratch[i - consts - k->cut_count];
  }
  if (!ax_failed()) ax_discharge_program(&k->d, body, in, NULL);
  for (uint32_t i = k->operand_count; i < k->cut_count && !ax_failed(); i++)
    if (k->cuts[i].shape != NULL && !k->cuts[i].held) ax_discharge_put(k, &k->cuts[i]);
}
