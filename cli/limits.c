/* How large the integers of a program's inputs may be: an index into a dimension of n lies below n.

   Limits go from the uses of a value back to the inputs it is made of. gather, scatter and dynamic slices limit their indices, a
   choice between n branches its index, and a kernel its integers. Any other operation hands the limit of an integer result on to
   its integer operands, as if it did not change the numbers: an index that is counted from the end, clamped or reshaped is still
   about as large. Limits only fall, so a loop's carries are gone through until no limit changes. */
#include "cli.h"
#include "ir/dtype.h"
#include "ir/region_link.h"
#include "ops/gather.h"
#include "ops/scatter.h"
#include "prim/prims.h"

static bool lower(int64_t *limit, int64_t by) {
  const bool falls = by < *limit;
  if (falls) *limit = by;
  return falls;
}

static bool is_integer(const ax_type *type) {
  const ax_dtype_kind kind = ax_dtype_get(type->dtype)->kind;
  return type->form == AX_ARRAY && (kind == AX_KIND_SIGNED || kind == AX_KIND_UNSIGNED);
}

/* --- What indices limit --- */

static bool is_scatter(const ax_prim *prim) {
  return prim == &ax_prim_scatter || prim == &ax_prim_scatter_add || prim == &ax_prim_scatter_mul || prim == &ax_prim_scatter_min ||
         prim == &ax_prim_scatter_max;
}

/* The windows of a gather or scatter: its second operand holds their starts. */
static void limit_windows(const ax_program *program, const ax_eqn *eqn, const ax_indexing *at, const int64_t *sizes,
                          int64_t *limits) {
  const ax_type *x = &program->types[eqn->in[0]];
  for (uint32_t i = 0; i < at->map.count; i++) {
    const int64_t d = at->map.v[i];
    (void)lower(&limits[eqn->in[1]], x->dims[d] - sizes[d] + 1);
  }
}

/* The starts of a dynamic slice: the operands from `first` on, one a dimension. */
static void limit_starts(const ax_program *program, const ax_eqn *eqn, const ax_type *part, uint32_t first, int64_t *limits) {
  const ax_type *x = &program->types[eqn->in[0]];
  for (uint32_t d = 0; d < x->rank; d++) (void)lower(&limits[eqn->in[first + d]], x->dims[d] - part->dims[d] + 1);
}

static void limit_scatter(const ax_program *program, const ax_eqn *eqn, int64_t *limits) {
  const ax_indexing *at = &((const ax_scatter_params *)eqn->params)->at;
  int64_t sizes[AX_MAX_RANK];
  ax_window_sizes(at, &program->types[eqn->in[0]], &program->types[eqn->in[2]], sizes);
  limit_windows(program, eqn, at, sizes, limits);
}

/* False: the equation has no indices of its own. */
static bool limit_indices(const ax_program *program, const ax_eqn *eqn, int64_t *limits) {
  const ax_gather_params *gather = eqn->params;
  if (eqn->prim == &ax_prim_gather) limit_windows(program, eqn, &gather->at, gather->slice_sizes.v, limits);
  else if (is_scatter(eqn->prim)) limit_scatter(program, eqn, limits);
  else if (eqn->prim == &ax_prim_dynamic_slice) limit_starts(program, eqn, &program->types[eqn->out], 1, limits);
  else if (eqn->prim == &ax_prim_dynamic_update_slice) limit_starts(program, eqn, &program->types[eqn->in[1]], 2, limits);
  else return false;
  return true;
}

/* --- Back through a program --- */

static void through(const ax_program *program, const ax_eqn *eqn, int64_t *limits) {
  for (uint32_t k = 0; k < eqn->out_count; k++)
    for (uint32_t i = 0; i < eqn->in_count && is_integer(&program->types[eqn->out + k]); i++)
      (void)lower(&limits[eqn->in[i]], limits[eqn->out + k]);
}

static ax_status limit_values(const ax_program *program, int64_t *limits);

/* Takes the limits of results, and of the inputs that a loop's next run takes, to the outputs of a program that an equation holds.
   True: one fell. */
static bool limit_outputs(const ax_eqn *eqn, uint32_t k, const int64_t *around, int64_t *limits) {
  const ax_program *held = ax_eqn_program(eqn, k);
  bool fell = false;
  for (uint32_t o = 0; o < held->out_count; o++) {
    const ax_region_link link = ax_region_link_out(eqn, k, o);
    if (link.number != AX_NONE) fell = lower(&limits[held->outs[o]], around[eqn->out + link.number]) || fell;
    if (link.carry != AX_NONE) fell = lower(&limits[held->outs[o]], limits[link.carry]) || fell;
  }
  return fell;
}

static ax_status limit_held(const ax_eqn *eqn, uint32_t k, int64_t *around) {
  const ax_program *held = ax_eqn_program(eqn, k);
  int64_t *limits = ax_alloc(((size_t)held->value_count + 1) * sizeof limits[0]);
  if (limits == NULL) return ax_out_of_memory(held->value_count * sizeof limits[0]);
  for (uint32_t v = 0; v < held->value_count; v++) limits[v] = INT64_MAX;
  ax_status status;
  (void)limit_outputs(eqn, k, around, limits);
  do status = limit_values(held, limits);
  while (status == AX_OK && limit_outputs(eqn, k, around, limits));
  for (uint32_t i = 0; i < held->in_count; i++) {
    const ax_region_link link = ax_region_link_in(eqn, k, i);
    if (link.number != AX_NONE) (void)lower(&around[eqn->in[link.number]], limits[i]);
  }
  ax_free(limits);
  return status;
}

static ax_status limit_regions(const ax_eqn *eqn, int64_t *limits) {
  const uint32_t count = ax_region_link_programs(eqn);
  if (eqn->prim->runs == AX_RUNS_ONE) (void)lower(&limits[eqn->in[0]], count);
  for (uint32_t k = 0; k < count; k++) AX_TRY(limit_held(eqn, k, limits));
  return AX_OK;
}

/* Numbers of 0 and 1 are those that the fewest kernels take for places outside their memory. */
static void limit_kernel(const ax_eqn *eqn, int64_t *limits) {
  for (uint32_t i = 0; i < eqn->in_count; i++) (void)lower(&limits[eqn->in[i]], 2);
}

static ax_status limit_values(const ax_program *program, int64_t *limits) {
  for (uint32_t e = program->eqn_count; e-- > 0;) {
    const ax_eqn *eqn = &program->eqns[e];
    if (eqn->prim == &ax_prim_kernel_call) limit_kernel(eqn, limits);
    else if (ax_eqn_program(eqn, 0) != NULL) AX_TRY(limit_regions(eqn, limits));
    else if (!limit_indices(program, eqn, limits)) through(program, eqn, limits);
  }
  return AX_OK;
}

static int64_t most_of(ax_dtype dtype) {
  const ax_dtype_info *info = ax_dtype_get(dtype);
  const size_t bits = info->bits - (info->kind == AX_KIND_SIGNED);
  return bits < 63 ? ((int64_t)1 << bits) - 1 : INT64_MAX;
}

/* An index into an empty dimension, too, is some number. */
static int64_t settled(ax_dtype dtype, int64_t limit) {
  const int64_t most = most_of(dtype);
  return limit == INT64_MAX ? INT64_MAX : limit < 1 ? 1 : limit < most ? limit : most;
}

ax_status input_limits(const ax_program *program, int64_t *out) {
  int64_t *limits = ax_alloc(((size_t)program->value_count + 1) * sizeof limits[0]);
  if (limits == NULL) return ax_out_of_memory(program->value_count * sizeof limits[0]);
  for (uint32_t v = 0; v < program->value_count; v++) limits[v] = INT64_MAX;
  ax_status status = limit_values(program, limits);
  for (uint32_t i = 0; i < program->in_count; i++)
    out[i] = is_integer(&program->types[i]) ? settled(program->types[i].dtype, limits[i]) : INT64_MAX;
  ax_free(limits);
  return status;
}
