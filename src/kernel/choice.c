/* See choice.h. All maps are evaluated as one batch over the points:

     grid (2, 3)      points      0 1 2 3 4 5
                      i           0 0 0 1 1 1
                      j           0 1 2 0 1 2
                      table[i, j] 7 7 2 0 1 9      operand: each below the number of blocks. Result: 7 7 2 is no ascending order

   Blocks of a result are compared by the dimensions that the outermost numbers of the grid choose first: then they ascend wherever nested
   loops would go through them in a row. */
#include "kernel/choice.h"

#include <string.h>

#include "ir/memo.h"
#include "ir/transform.h"
#include "prim/prims.h"
#include "prim/region.h"

enum { most_known = 1 << 18, most_points = 1 << 26 };

typedef struct choice {
  const ax_kernel_params *params;
  const ax_type *in; /* of operands without consts */
  uint32_t in_count;
  const ax_beside *beside;
  const ax_value *given; /* numbers of the grid, consts */
  int64_t points;
  ax_value right; /* bool[points] */
  bool any;
} choice;

static bool is_late(const ax_beside *b, uint32_t i, uint32_t rank) {
  for (uint32_t d = 0; d < rank; d++)
    if (b->feeds[i].late[d]) return true;
  return false;
}

static double points_of(const ax_kernel_params *p) {
  double points = 1;
  for (uint32_t g = 0; g < p->grid.count; g++) points *= (double)p->grid.v[g];
  return points;
}

bool ax_choice_fits(const ax_kernel_params *p) { return points_of(p) <= most_points; }

bool ax_choice_is_known(const ax_kernel_params *p, const ax_beside *b) {
  for (uint32_t k = 0; k < p->blocked.count; k++) {
    const ax_program *map = p->index_maps.v[p->blocked.v[k][1]];
    if (is_late(b, (uint32_t)p->blocked.v[k][0], map->out_count) && (ax_map_takes_consts(p, map) || map->named != 0)) return false;
  }
  return points_of(p) <= most_known;
}

static void require(choice *c, ax_value holds) {
  c->right = c->any ? ax_and(c->right, holds) : holds;
  c->any = true;
}

/* --- A result's blocks in order --- */

/* By dimension of the result: the innermost dimension of the grid that its number depends on; -1: none. */
static bool find_innermost(const choice *c, const ax_program *map, int *innermost) {
  bool *out = ax_trace_alloc(map->out_count + 1), *in = ax_trace_alloc(map->in_count + 1);
  ax_memo memo = {0};
  if (out == NULL || in == NULL) return false;
  for (uint32_t d = 0; d < map->out_count && !ax_failed(); d++) {
    memset(out, 0, map->out_count);
    out[d] = true;
    innermost[d] = -1;
    const ax_status status = ax_needs_program(&memo, map, out, in);
    if (status != AX_OK) ax_fail(status);
    for (uint32_t g = 0; g < c->params->grid.count && status == AX_OK; g++)
      if (in[g] && c->params->grid.v[g] > 1) innermost[d] = (int)g;
  }
  ax_memo_deinit(&memo);
  return !ax_failed();
}

static ax_value part(ax_value x, int64_t from, int64_t to) { return ax_slice(x, &from, &to, NULL); }

static void require_order(choice *c, const ax_program *map, const ax_value *index) {
  int innermost[AX_MAX_RANK];
  bool used[AX_MAX_RANK] = {false};
  const uint32_t rank = map->out_count;
  if (c->points < 2 || !find_innermost(c, map, innermost)) return;
  ax_value holds = ax_poison;
  for (uint32_t n = 0; n < rank; n++) { /* from the dimension that is compared last */
    uint32_t last = AX_NONE;
    for (uint32_t d = 0; d < rank; d++)
      if (!used[d] && (last == AX_NONE || innermost[d] >= innermost[last])) last = d;
    used[last] = true;
    const ax_value before = part(index[last], 0, c->points - 1), after = part(index[last], 1, c->points);
    holds = n == 0 ? ax_le(before, after) : ax_or(ax_lt(before, after), ax_and(ax_eq(before, after), holds));
  }
  const ax_value yes = ax_full(AX_BOOL, AX_DIMS(1), 1), both[] = {yes, holds};
  require(c, ax_concatenate(AX_LIST(2, both), 0));
}

/* --- All maps --- */

static void look_at(choice *c, uint32_t k) {
  const ax_kernel_params *p = c->params;
  const uint32_t i = (uint32_t)p->blocked.v[k][0];
  const ax_program *map = p->index_maps.v[p->blocked.v[k][1]];
  const ax_type *whole = i < c->in_count ? &c->in[i] : &p->outs.v[i - c->in_count], *shape = &p->block_shapes.v[k];
  int *dims = ax_trace_alloc((map->in_count + 1) * sizeof dims[0]), want[AX_MAX_RANK] = {0};
  ax_value index[AX_MAX_RANK];
  if (dims == NULL || !is_late(c->beside, i, shape->rank)) return;
  for (uint32_t n = 0; n < map->in_count; n++) dims[n] = n < p->grid.count ? 0 : -1;
  ax_batch_call(map, c->given, dims, c->points, NULL, want, index);
  for (uint32_t d = 0; d < shape->rank && !ax_failed(); d++) {
    const int64_t blocks = (whole->dims[d] + shape->dims[d] - 1) / shape->dims[d];
    if (!c->beside->feeds[i].late[d]) continue;
    require(c, ax_ge(index[d], ax_integer(0)));
    if (blocks <= INT32_MAX) require(c, ax_lt(index[d], ax_integer(blocks))); /* numbers of blocks are s32 */
  }
  if (i >= c->in_count && !ax_failed()) require_order(c, map, index);
}

static void look(choice *c, const ax_value *consts, uint32_t consts_given, ax_value *out) {
  const ax_kernel_params *p = c->params;
  int64_t behind = 1;
  ax_value *given = ax_trace_alloc((p->grid.count + (uint32_t)p->consts + 1) * sizeof given[0]);
  if (given == NULL) return;
  const ax_value number = ax_iota(AX_S32, AX_LIST(1, &c->points), 0);
  for (uint32_t g = p->grid.count; g-- > 0; behind *= p->grid.v[g])
    given[g] = ax_rem(ax_div(number, ax_integer(behind)), ax_integer(p->grid.v[g]));
  for (uint32_t i = 0; i < consts_given; i++) given[p->grid.count + i] = consts[i];
  c->given = given;
  for (uint32_t k = 0; k < p->blocked.count && !ax_failed(); k++) look_at(c, k);
  if (!c->any) out[0] = ax_full_i64(AX_S32, AX_DIMS(), 1);
  else out[0] = ax_reduce_min(ax_convert_element_type(c->right, AX_S32), AX_DIMS(0), false);
}

ax_status ax_choice_trace(const ax_kernel_params *params, const ax_type *in, uint32_t in_count, const ax_beside *beside, const ax_mesh *axes,
                          ax_program **out) {
  const uint32_t consts = (uint32_t)params->consts;
  choice c = {.params = params, .in = in + consts, .in_count = in_count - consts, .beside = beside, .points = 1};
  ax_builder builder;
  ax_value made = ax_poison;
  *out = NULL;
  if (!ax_choice_fits(params)) return ax_error(AX_INVALID_ARGUMENT, "the grid of kernel \"%s\" has too many points", params->name);
  for (uint32_t g = 0; g < params->grid.count; g++) c.points *= params->grid.v[g];
  static const ax_mesh none;
  ax_value *given = ax_region_begin(&builder, axes != NULL ? axes : &none, in, axes != NULL ? consts : 0);
  if (given != NULL) look(&c, given, axes != NULL ? consts : 0, &made);
  return ax_region_finish(&builder, &made, 1, out);
}
