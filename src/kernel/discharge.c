/* Kernels as plain programs: cores one after the other, the points of a grid in a loop, blocks by dynamic slices.

     for each core of each body                                              scratch: new
       for each point of the grid, in row-major order                        carried: results, scratch, other written memory
         block = dynamic_slice operand, index_map(point) * shape
         body
         result = dynamic_update_slice result, block, ..

   This is one of the schedules of a kernel in which no core waits for another; all schedules give the same results where ax_check
   finds nothing. So the option `interpret` runs it, and such kernels have the rules of plain programs: derivatives, StableHLO.
   Points that need nothing of one another (beside.h) may go side by side instead, as one batch.

   Operands whose blocks stick out are padded, and results cut; of points side by side, perhaps those at the edge alone. The block of a result begins with the result's present content, so a
   block that is visited again goes on from there. A result that aliases an operand begins with the operand's content. */
#include "kernel/discharge_points.h"

#include <string.h>

#include "kernel/ranges.h"
#include "kernel/step.h"
#include "machine/caches.h"
#include "xform/xform.h"

/* --- Kernels that cannot be discharged --- */

/* The number of cores that run the body. */
static int64_t cores_of(const ax_kernel_params *params, uint32_t b) {
  const ax_mesh *axes = &params->bodies.v[b]->axes;
  int64_t count = 1;
  for (uint32_t i = axes->count - (uint32_t)params->core_axes.v[b]; i < axes->count; i++) count *= axes->axis[i].size;
  return count;
}

bool ax_discharges_once(const ax_discharged *k) { return k->params->bodies.count == 1 && cores_of(k->params, 0) == 1; }

static bool has_others(const ax_kernel_params *params) { return params->bodies.count > 1 || cores_of(params, 0) > 1; }

static ax_status refuse(const ax_kernel_params *params, const ax_eqn *eqn, const char *why) {
  return ax_error(AX_ABSENT, "kernel \"%s\" is no plain program: %s%s%s, %s", params->name, eqn->prim->name,
                  eqn->location != NULL ? " at " : "", eqn->location != NULL ? eqn->location : "", why);
}

static ax_status look(const ax_kernel_params *params, const ax_program *program, bool others) {
  const ax_program *nested;
  for (uint32_t i = 0; i < program->eqn_count; i++) {
    const ax_eqn *eqn = &program->eqns[i];
    const ax_core_params *to = ax_step_target(eqn);
    const ax_run_scoped_params *scope = ax_step_scope(eqn);
    if (to != NULL && (to->logical || to->axes.count > 0)) return refuse(params, eqn, "which goes to another core or device");
    if (others && eqn->prim->step != NULL && eqn->prim->step->meets_others)
      return refuse(params, eqn, "at which its cores wait for one another");
    if (others && scope != NULL && scope->along.count > 0)
      return refuse(params, eqn, "whose scratch several cores have together");
    for (uint32_t k = 0; (nested = ax_eqn_program(eqn, k)) != NULL; k++) AX_TRY(look(params, nested, others));
  }
  return AX_OK;
}

/* Semaphores that several cores have are for waiting for one another, whoever signals them. */
static ax_status check_scratch(const ax_kernel_params *params) {
  for (uint32_t i = 0; i < params->scratch.count; i++) {
    bool shared = params->threads.count > 0 ||
                  (params->scratch_cores.count > 0 && strcmp(params->scratch_cores.name[i], AX_SCRATCH_DEVICE) == 0);
    if (shared && params->scratch.v[i].form != AX_REF)
      return ax_error(AX_ABSENT, "kernel \"%s\" is no plain program: its cores have scratch %u, %s, together", params->name, i,
                      ax_type_string(&params->scratch.v[i], NULL));
  }
  return AX_OK;
}

ax_status ax_kernel_plain(const ax_kernel_params *params) {
  bool others = has_others(params);
  if (others) AX_TRY(check_scratch(params));
  for (uint32_t b = 0; b < params->bodies.count; b++) AX_TRY(look(params, params->bodies.v[b], others));
  return AX_OK;
}

/* --- Operands and results --- */

/* At least as many blocks as reach its end. */
static void round_up(int64_t *dims, const ax_type *type, const ax_type *shape) {
  for (uint32_t d = 0; d < type->rank; d++) {
    int64_t block = shape->dims[d], rest = type->dims[d] % block,
            rounded = rest == 0 ? type->dims[d] : type->dims[d] - rest + block;
    if (rounded > dims[d]) dims[d] = rounded;
  }
}

ax_value ax_discharge_widened(ax_discharged *k, ax_value x, const int64_t *dims) {
  const ax_type type = ax_typeof(x);
  int64_t none[AX_MAX_RANK] = {0}, high[AX_MAX_RANK];
  bool same = true;
  for (uint32_t d = 0; d < type.rank; d++) {
    high[d] = dims[d] - type.dims[d];
    same = same && high[d] == 0;
  }
  ax_type scalar = ax_array_type(type.dtype, AX_DIMS());
  return same ? x : ax_pad(x, ax_content_unset(&k->d, &scalar), none, high, none);
}

static void find_shapes(ax_discharged *k) {
  const ax_kernel_params *p = k->params;
  for (uint32_t i = 0; i < p->blocked.count; i++) {
    ax_cut *c = &k->cuts[p->blocked.v[i][0]];
    c->shape = &p->block_shapes.v[i];
    c->map = p->index_maps.v[p->blocked.v[i][1]];
  }
}

/* Memory with `x` in it, wide enough for the blocks of both that have it; b NULL: one has it. */
static void add_whole(ax_discharged *k, ax_cut *a, ax_cut *b, const ax_type *type, ax_value x) {
  a->type = type;
  if (b != NULL) b->type = type, b->given = x;
  int64_t dims[AX_MAX_RANK];
  memcpy(dims, type->dims, sizeof dims);
  if (a->shape != NULL) round_up(dims, type, a->shape);
  if (b != NULL && b->shape != NULL) round_up(dims, type, b->shape);
  ax_type wide = ax_ref_type(AX_SPACE_ANY, type->dtype, AX_LIST(type->rank, dims));
  a->whole = ax_content_add(&k->d, &wide, ax_discharge_spread(&k->d, ax_discharge_widened(k, x, dims)));
  if (b != NULL) b->whole = a->whole;
}

static void add_memories(ax_discharged *k, const ax_type *in, const ax_value *given) {
  const ax_kernel_params *p = k->params;
  find_shapes(k);
  for (uint32_t i = 0; i < k->operand_count && !ax_failed(); i++) {
    const uint32_t result = ax_alias_of_operand(p, i);
    k->cuts[i].given = given[i];
    add_whole(k, &k->cuts[i], result != AX_NONE ? &k->cuts[k->operand_count + result] : NULL, &in[i], given[i]);
  }
  for (uint32_t r = 0; r < p->outs.count && !ax_failed(); r++) {
    ax_cut *c = &k->cuts[k->operand_count + r];
    c->result = true;
    if (c->whole == NULL) add_whole(k, c, NULL, &p->outs.v[r], ax_content_unset(&k->d, &p->outs.v[r]));
  }
  for (uint32_t i = 0; i < k->cut_count && !ax_failed(); i++)
    k->cuts[i].block = k->cuts[i].shape == NULL ? k->cuts[i].whole : ax_content_add(&k->d, &p->blocks.v[i], ax_poison);
  for (uint32_t i = 0; i < p->scratch.count && !ax_failed(); i++)
    k->scratch[i] = ax_content_add(&k->d, &p->scratch.v[i], ax_poison);
}

/* --- Loops --- */

typedef struct loop {
  ax_discharged *k;
  const ax_carried *carried;
  ax_discharge_turn *turn;
} loop;

/* (contents, number) -> (contents) */
static AX_BODY(do_turn) {
  const loop *l = context;
  ax_value *content = l->k->d.content;
  for (uint32_t c = 0; c < l->carried->count; c++) content[l->carried->memory[c]] = in[c];
  l->turn(l->k, in[l->carried->count]);
  for (uint32_t c = 0; c < l->carried->count && !ax_failed(); c++) out[c] = l->k->d.content[l->carried->memory[c]];
}

/* Numbers are what the loop goes over, and are not carried, so that it is linear in what its body is linear in. */
void ax_discharge_repeat(ax_discharged *k, int64_t from, int64_t count, const ax_carried *carried, ax_discharge_turn *turn) {
  loop l = {k, carried, turn};
  const ax_dtype dtype = from + count <= INT32_MAX ? AX_S32 : AX_S64;
  if (count == 0) return; /* memory of no elements may have no block at all */
  if (count == 1) {
    turn(k, ax_full_i64(dtype, AX_DIMS(), from));
    return;
  }
  ax_value *contents = ax_trace_alloc((carried->count + 1) * sizeof contents[0]);
  if (contents == NULL) return;
  for (uint32_t c = 0; c < carried->count; c++) contents[c] = k->d.content[carried->memory[c]];
  contents[carried->count] = ax_iota(dtype, AX_LIST(1, &count), 0);
  if (from > 0) contents[carried->count] = ax_add(contents[carried->count], ax_integer(from));
  ax_scan(AX_CLOSURE(do_turn, carried->count + 1, carried->count, &l), carried->count, count, false, contents, contents);
  for (uint32_t c = 0; c < carried->count && !ax_failed(); c++)
    k->d.content[carried->memory[c]] = ax_discharge_spread(&k->d, contents[c]);
}

void ax_carry(ax_carried *carried, uint32_t memory) {
  for (uint32_t c = 0; c < carried->count; c++)
    if (carried->memory[c] == memory) return;
  carried->memory[carried->count++] = memory;
}

/* Finds the memory whose content is carried from one point to the next, and from one core to the next. */
static void find_carried(ax_discharged *k) {
  uint32_t first = (uint32_t)k->params->consts;
  k->by_core.count = 0;
  for (uint32_t i = 0; i < k->cut_count; i++) {
    const ax_cut *c = &k->cuts[i];
    if (c->shape != NULL ? c->result : k->written[first + i]) ax_carry(&k->by_core, c->whole->memory);
  }
  if (ax_discharge_asks(&k->d, k->params->bodies.v[k->body])) ax_carry(&k->by_core, k->d.right);
  k->by_point.count = k->by_core.count;
  memcpy(k->by_point.memory, k->by_core.memory, k->by_core.count * sizeof k->by_core.memory[0]);
  for (uint32_t i = 0; i < k->params->scratch.count; i++)
    if (k->written[first + k->cut_count + i] && k->scratch[i]->memory != AX_NONE) ax_carry(&k->by_point, k->scratch[i]->memory);
}

/* All points, or those of a strand, with scratch of their own. */
void ax_discharge_points(ax_discharged *k, int64_t points) {
  const ax_kernel_params *p = k->params;
  for (uint32_t i = 0; i < p->scratch.count && !ax_failed(); i++)
    if (k->scratch[i]->memory != AX_NONE) k->d.content[k->scratch[i]->memory] = ax_content_unset(&k->d, &p->scratch.v[i]);
  if (!ax_failed()) ax_discharge_apart(k, points);
}

static void do_core(ax_discharged *k, ax_value number) {
  const ax_kernel_params *p = k->params;
  const ax_mesh *axes = &p->bodies.v[k->body]->axes;
  uint32_t count = (uint32_t)p->core_axes.v[k->body];
  int64_t points = 1, sizes[AX_MAX_AXES]; /* points that are gone over, one after the other */
  ax_value *cores = ax_trace_alloc((count + 1) * sizeof cores[0]);
  if (cores == NULL) return;
  for (uint32_t i = 0; i < count; i++) sizes[i] = axes->axis[axes->count - count + i].size;
  ax_discharge_number(&k->d, number, count, sizes, cores);
  k->d.cores = cores;
  for (uint32_t d = 0; d < p->grid.count; d++)
    if (!k->beside.dim[d] && !ax_mul_i64(points, p->grid.v[d], &points))
      ax_fail(ax_error(AX_INVALID_ARGUMENT, "the grid of kernel \"%s\" has too many points", p->name));
  if (ax_failed()) return;
  if (k->beside.count > 0 && points > 0) ax_discharge_strands(k, points);
  else ax_discharge_points(k, points);
}

static void do_body(ax_discharged *k, uint32_t b) {
  const ax_program *body = k->params->bodies.v[b];
  bool *written = ax_trace_alloc(body->in_count + 1);
  if (written == NULL) return;
  ax_status status = ax_written_inputs(body, written);
  if (status != AX_OK) {
    ax_fail(status);
    return;
  }
  k->body = b;
  k->written = written;
  k->d.body_axes = &body->axes;
  find_carried(k);
  ax_discharge_repeat(k, 0, cores_of(k->params, b), &k->by_core, do_core);
}

/* --- The program --- */

/* Gives result r after all cores, without the padding. */
static ax_value result_of(ax_discharged *k, uint32_t r) {
  const ax_type *type = &k->params->outs.v[r];
  const int64_t none[AX_MAX_RANK] = {0};
  const ax_cut *c = &k->cuts[k->operand_count + r];
  if (c->joined != NULL) return *c->joined;
  ax_value x = ax_content_read(&k->d, c->whole);
  ax_type wide = ax_typeof(x);
  if (ax_failed() || ax_same_shape(&wide, type)) return x;
  return ax_discharge_spread(&k->d, ax_slice(x, none, type->dims, NULL));
}

/* A kernel that is checked has one body. */
static void begin_asking(ax_discharged *k) {
  const ax_type right = ax_ref_type(AX_SPACE_ANY, AX_S32, AX_DIMS());
  const ax_content_view *memory = ax_content_add(&k->d, &right, ax_discharge_spread(&k->d, ax_full_i64(AX_S32, AX_DIMS(), 1)));
  if (memory == NULL) return;
  k->d.right = memory->memory;
  const ax_status status = ax_ranges_find(k->d.all, k->params->bodies.v[0], false, NULL);
  if (status != AX_OK) ax_fail(status);
}

static void discharge(ax_discharged *k, const ax_discharge_options *options, const ax_value *in, ax_value *out) {
  const ax_kernel_params *p = k->params;
  uint32_t consts = (uint32_t)p->consts;
  k->operand_count = options->in_count - consts;
  k->cut_count = p->blocks.count;
  ax_status status = ax_beside_find(p, options->in + consts, k->operand_count, &k->beside);
  if (status != AX_OK) ax_fail(status);
  if (options->beside) {
    ax_beside_limit(p, AX_SUMS_STRANDS_BYTES, &k->beside);
  } else {
    memset(k->beside.dim, 0, sizeof k->beside.dim);
    k->beside.count = 0;
  }
  uint32_t most = k->cut_count + p->scratch.count + 1;
  ax_value *given = ax_trace_alloc((options->in_count + 1) * sizeof given[0]);
  if (options->checked) begin_asking(k);
  k->cuts = ax_trace_alloc(most * sizeof k->cuts[0]);
  k->scratch = ax_trace_alloc(most * sizeof k->scratch[0]);
  k->by_core.memory = ax_trace_alloc(most * sizeof k->by_core.memory[0]);
  k->by_point.memory = ax_trace_alloc(most * sizeof k->by_point.memory[0]);
  k->by_group.memory = ax_trace_alloc(2 * most * sizeof k->by_group.memory[0]);
  if (ax_failed()) return;
  for (uint32_t i = 0; i < options->in_count; i++) given[i] = ax_discharge_spread(&k->d, in[i]);
  k->consts = given;
  add_memories(k, options->in + consts, given + consts);
  for (uint32_t b = 0; b < p->bodies.count && !ax_failed(); b++) do_body(k, b);
  for (uint32_t r = 0; r < p->outs.count && !ax_failed(); r++) out[r] = result_of(k, r);
  if (options->checked && !ax_failed()) out[p->outs.count] = k->d.content[k->d.right];
}

static ax_status make(const ax_kernel_params *params, const ax_discharge_options *options, ax_program **out) {
  ax_ranges all;
  ax_discharged k = {.params = params, .apart = options->apart, .inner = AX_NONE,
                     .d = {.params = params, .axes = options->axes, .spread = options->spread, .zeros = options->zeros, .right = AX_NONE, .all = &all}};
  ax_builder builder;
  ax_memo memo = {0};
  ax_program *made = NULL;
  ax_value *in = ax_region_begin(&builder, options->axes, options->in, options->in_count);
  ax_memo_enter(&builder, &memo);
  ax_ranges_init(&all, &params->grid);
  ax_value *outs = ax_trace_alloc((params->outs.count + 1) * sizeof outs[0]);
  if (in != NULL && outs != NULL) discharge(&k, options, in, outs);
  ax_status status = ax_region_finish(&builder, outs, params->outs.count + options->checked, &made);
  ax_ranges_deinit(&all);
  ax_memo_deinit(&memo);
  ax_free(k.d.content);
  ax_arena_deinit(&k.d.arena);
  ax_beside_deinit(&k.beside);
  if (status == AX_OK) status = ax_program_simplify(made, out);
  else status = ax_error_context(status, "kernel \"%s\" as a plain program: ", params->name);
  ax_program_release(made);
  return status;
}

/* What cannot be batched goes one point after the other. */
ax_status ax_kernel_discharge(const ax_kernel_params *params, const ax_discharge_options *options, ax_program **out) {
  *out = NULL;
  AX_TRY(ax_kernel_plain(params));
  ax_status status = make(params, options, out);
  if (status == AX_OK || status == AX_OUT_OF_MEMORY || !options->beside) return status;
  ax_discharge_options in_order = *options;
  in_order.beside = false;
  return make(params, &in_order, out);
}

ax_status ax_kernel_discharge_run(const ax_eqn *eqn, const ax_discharge_options *options, ax_program **out) {
  const ax_kernel_params *params = eqn->params;
  ax_mesh axes = params->bodies.v[0]->axes;
  ax_discharge_options own = *options;
  *out = NULL;
  axes.count -= (uint32_t)params->core_axes.v[0];
  ax_type *types = ax_alloc(((size_t)options->in_count + 1) * sizeof types[0]);
  if (types == NULL) return ax_out_of_memory(options->in_count * sizeof types[0]);
  for (uint32_t i = 0; i < options->in_count; i++) {
    types[i] = options->in[i];
    types[i].spread = (ax_spread){0};
  }
  own.in = types;
  own.axes = &axes;
  own.spread = (ax_spread){0};
  ax_status status = ax_kernel_discharge(params, &own, out);
  ax_free(types);
  return status;
}
