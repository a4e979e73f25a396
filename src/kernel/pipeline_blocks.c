/* Blocks of pipelines: taken from options, found by index maps, copied into slots and out of them. */
#include <string.h>

#include "ir/memo.h"
#include "ir/transform.h"
#include "kernel/grid.h"
#include "kernel/pipeline.h"
#include "prim/shape.h"
#include "xform/evaluate.h"

/* --- Options --- */

static bool refuse(const ax_pipe *pipe, const ax_piped *of, ax_status status) {
  ax_fail(ax_error_context(status, "%s: %s %u: ", pipe->function, of->side, of->number));
  return false;
}

static bool take_grid(ax_pipe *pipe, const ax_pipeline_options *options) {
  const ax_dim_list *grid = &options->grid;
  if (grid->count > AX_MAX_RANK || (grid->count > 0 && grid->v == NULL)) {
    ax_reject_as(pipe->function, "a grid of %u dimensions%s", grid->count, grid->v == NULL ? " without their sizes" : "");
    return false;
  }
  pipe->rank = grid->count;
  pipe->steps = 1;
  bool empty = false, fits = true;
  for (uint32_t d = 0; d < pipe->rank; d++) {
    int64_t size = pipe->grid[d] = grid->v[d];
    if (size < 0 || size > INT32_MAX) {
      ax_reject_as(pipe->function, "dimension %u of the grid is %lld", d, (long long)size);
      return false;
    }
    empty = empty || size == 0;
    fits = fits && ax_mul_i64(pipe->steps, size, &pipe->steps) && pipe->steps <= INT32_MAX;
  }
  if (empty) pipe->steps = 0;
  if (!fits && !empty) ax_reject_as(pipe->function, "the grid has more than 2^31 - 1 steps");
  return fits || empty;
}

/* Checks that the lists have a spec for each operand and each result. */
static bool take_specs(const ax_pipe *pipe, const ax_pipeline_options *options) {
  const ax_block_spec_list *in = &options->in_specs, *out = &options->out_specs;
  return ax_option_fits(pipe->function, "in_specs", in->count, in->v, options->in_count, "operand") &&
         ax_option_fits(pipe->function, "out_specs", out->count, out->v, options->out_count, "result");
}

static ax_status take_block(ax_piped *of) {
  const ax_block_spec *spec = of->spec;
  int64_t slot[AX_MAX_RANK];
  const ax_dim_list *block = &spec->block;
  uint32_t rank = 0;
  if (block->count == 0) {
    if (spec->index_map != NULL && of->whole.rank > 0)
      return ax_error(AX_INVALID_ARGUMENT, "an index map, but no block that it could choose");
    memcpy(of->block, of->whole.dims, sizeof of->block);
    rank = of->whole.rank;
    memcpy(slot, of->whole.dims, sizeof slot);
  } else if (block->count != of->whole.rank || block->v == NULL)
    return ax_error(AX_INVALID_ARGUMENT, "a block of %u dimensions%s, but it is %s", block->count,
                    block->v == NULL ? " without their sizes" : "", ax_type_string(&of->whole, &ax_builder_current()->axes));
  for (uint32_t d = 0; d < block->count; d++) {
    const int64_t size = block->v[d];
    if (size < 0) return ax_error(AX_INVALID_ARGUMENT, "dimension %u of the block is %lld", d, (long long)size);
    of->block[d] = size == 0 ? 1 : size;
    if (size != 0) slot[rank++] = size;
  }
  if (rank + 1 > AX_MAX_RANK)
    return ax_error(AX_INVALID_ARGUMENT, "a block of %u dimensions: slots have one more, and %d is the most", rank, AX_MAX_RANK);
  of->slot = ax_ref_type(spec->space == AX_SPACE_NONE ? AX_SPACE_VMEM : spec->space, of->whole.dtype, AX_LIST(rank, slot));
  of->map = block->count > 0 ? (ax_fn){spec->index_map, 0, of->whole.rank, spec->context} : (ax_fn){0};
  return AX_OK;
}

static ax_status take_operand(const ax_pipe *pipe, ax_piped *of, int64_t delay) {
  ax_space space = of->spec->space;
  if (of->whole.form != AX_REF)
    return ax_error(AX_INVALID_ARGUMENT, "%s is no ref", ax_type_string(&of->whole, &ax_builder_current()->axes));
  of->pinned = space == AX_SPACE_ANY || space == AX_SPACE_HBM;
  of->delay = of->spec->delay_release > 0 ? of->spec->delay_release - 1 : delay;
  if (space < AX_SPACE_NONE || space >= AX_SPACE_REGISTERS)
    return ax_error(AX_INVALID_ARGUMENT, "blocks are in vmem or smem, or pinned in hbm or any");
  if (of->delay < 0 || of->spec->delay_release < 0 || of->delay >= pipe->stages)
    return ax_error(
        AX_INVALID_ARGUMENT,
        "slots are released %lld steps late (delay_release), of %lld that go on at once (max_concurrent_steps): it must be fewer",
        (long long)(of->spec->delay_release < 0 ? of->spec->delay_release - 1 : of->delay), (long long)pipe->stages);
  if (of->pinned) {
    of->slot = of->whole;
    of->invariant = true;
    if (of->spec->block.count == 0) return AX_OK;
    return ax_error(AX_INVALID_ARGUMENT, "what is pinned in %s has no blocks: the body gets the whole of it",
                    ax_space_names[space]);
  }
  if (of->whole.space != AX_SPACE_HBM && of->whole.space != AX_SPACE_ANY)
    return ax_error(AX_INVALID_ARGUMENT, "it is %s, but blocks are copied from and to hbm or any",
                    ax_type_string(&of->whole, &ax_builder_current()->axes));
  return take_block(of);
}

bool ax_pipe_take(const char *function, const ax_pipeline_options *options, int64_t most, const ax_value *refs, ax_pipe *pipe) {
  static const ax_block_spec whole;
  if (ax_failed()) return false;
  *pipe = (ax_pipe){.function = function, .in_count = options->in_count, .out_count = options->out_count};
  pipe->stages = options->max_concurrent_steps == 0 ? most : options->max_concurrent_steps;
  if (!take_grid(pipe, options) || !take_specs(pipe, options)) return false;
  if (pipe->stages < 1 || options->delay_release < 0 || options->delay_release >= pipe->stages) {
    ax_reject_as(function,
                 "%lld steps go on at once (max_concurrent_steps), and slots are released %lld steps late (delay_release): it must "
                 "be fewer, and not below 0",
                 (long long)pipe->stages, (long long)options->delay_release);
    return false;
  }
  uint32_t count = ax_pipe_count(pipe);
  pipe->of = ax_trace_alloc(count * sizeof pipe->of[0]);
  const ax_type *types = ax_types_of(function, refs, count);
  if (pipe->of == NULL || types == NULL) return false;
  for (uint32_t i = 0; i < count; i++) {
    bool out = ax_pipe_is_out(pipe, i);
    const ax_block_spec_list *specs = out ? &options->out_specs : &options->in_specs;
    uint32_t number = out ? i - pipe->in_count : i;
    pipe->of[i] = (ax_piped){.spec = specs->count > 0 ? &specs->v[number] : &whole,
                             .side = out ? "result" : "operand",
                             .number = number,
                             .ref = refs[i],
                             .whole = types[i]};
    ax_status status = take_operand(pipe, &pipe->of[i], options->delay_release);
    if (status != AX_OK) return refuse(pipe, &pipe->of[i], status);
  }
  if (pipe->stages > pipe->steps) { /* there is nothing to release that would be used again */
    pipe->stages = pipe->steps;
    for (uint32_t i = 0; i < count; i++) pipe->of[i].delay = 0;
  }
  return true;
}

/* --- Index maps --- */

static AX_BODY(call_map) {
  const ax_piped *of = context;
  of->map.function(in, out, of->map.context);
  for (uint32_t d = 0; d < of->whole.rank; d++)
    if (ax_is_number(out[d])) out[d] = ax_as("index map", out[d], AX_S32);
}

/* A map that gives each number of the grid that it uses as it is comes back to a block only when a number that it does not use
   goes on before one that it uses has. Of any other map that is not known. */
static void find_revisits(const ax_pipe *pipe, ax_piped *of, const ax_body *map, const bool *used) {
  uint32_t rank = pipe->rank, exposed = 0;
  bool outer_unused = false;
  for (uint32_t k = 0; k < map->program->out_count; k++) {
    uint32_t id = map->program->outs[k];
    if (id >= map->captured_count && id < map->captured_count + rank) exposed |= 1u << (id - map->captured_count);
  }
  for (uint32_t d = 0; d < rank; d++) {
    bool uses = used[map->captured_count + d];
    if (pipe->grid[d] <= 1) continue;
    of->invariant = of->invariant && !uses;
    of->revisits = of->revisits || (uses && ((exposed >> d & 1) == 0 || outer_unused));
    outer_unused = outer_unused || !uses;
  }
}

/* For few steps the answer is computed instead: the map is evaluated for all steps at once, and the indices are searched for a
   block that returns after another one. */
enum { most_listed = 1024 };

static bool is_listed(const ax_pipe *pipe, const ax_body *map) {
  return pipe->steps <= most_listed && map->captured_count == 0 && map->program->named == 0 &&
         ax_find_effect(map->program, UINT32_MAX) == NULL;
}

static bool same_block(const ax_piped *of, ax_tensor *const *index, int64_t a, int64_t b) {
  for (uint32_t d = 0; d < of->whole.rank; d++)
    if (((const int32_t *)index[d]->data)[a] != ((const int32_t *)index[d]->data)[b]) return false;
  return true;
}

static bool comes_back(const ax_pipe *pipe, const ax_piped *of, ax_tensor *const *index) {
  for (int64_t step = 2; step < pipe->steps; step++)
    for (int64_t before = 0; before < step - 1 && !same_block(of, index, step, step - 1); before++)
      if (same_block(of, index, step, before)) return true;
  return false;
}

/* Numbers of the grid at each step. */
static ax_status list_ids(const ax_pipe *pipe, ax_tensor **ids) {
  int64_t behind = 1;
  const ax_type type = ax_array_type(AX_S32, AX_LIST(1, &pipe->steps));
  for (uint32_t d = pipe->rank; d-- > 0; behind *= pipe->grid[d]) {
    AX_TRY(ax_tensor_create(&type, &ids[d]));
    for (int64_t step = 0; step < pipe->steps; step++) ((int32_t *)ids[d]->data)[step] = (int32_t)(step / behind % pipe->grid[d]);
  }
  return AX_OK;
}

/* s32[steps].. -> s32[steps]..: the map of all steps, which speaks of no axis, so that it stands without any. */
static ax_status trace_all(const ax_pipe *pipe, const ax_program *map, ax_program **out) {
  static const ax_mesh none;
  int dims[AX_MAX_RANK] = {0};
  ax_value ids[AX_MAX_RANK], index[AX_MAX_RANK];
  ax_builder *builder;
  const ax_type type = ax_array_type(AX_S32, AX_LIST(1, &pipe->steps));
  AX_TRY(ax_builder_open(&none, &builder));
  for (uint32_t d = 0; d < pipe->rank; d++) ids[d] = ax_builder_input(builder, &type);
  ax_batch_call(map, ids, dims, pipe->steps, NULL, dims, index);
  return ax_builder_finish(builder, index, map->out_count, out, NULL, NULL);
}

static ax_status list_revisits(const ax_pipe *pipe, ax_piped *of, const ax_program *map) {
  ax_tensor *ids[AX_MAX_RANK] = {NULL}, *index[AX_MAX_RANK] = {NULL};
  ax_program *all = NULL;
  ax_status status = trace_all(pipe, map, &all);
  if (status == AX_OK) status = list_ids(pipe, ids);
  if (status == AX_OK) status = ax_evaluate(all, ids, index);
  if (status == AX_OK) of->revisits = comes_back(pipe, of, index);
  for (uint32_t d = 0; d < AX_MAX_RANK; d++) {
    ax_tensor_release(ids[d]);
    ax_tensor_release(index[d]);
  }
  ax_program_release(all);
  return status;
}

static ax_status look(const ax_pipe *pipe, ax_piped *of) {
  ax_type ids[AX_MAX_RANK];
  ax_body map;
  ax_memo memo = {0};
  for (uint32_t d = 0; d < pipe->rank; d++) ids[d] = ax_array_type(AX_S32, AX_DIMS());
  AX_TRY(ax_body_trace(&(ax_body_options){.owner = pipe->function, .part = "index map", .in = ids,
                                          .function = AX_CLOSURE(call_map, pipe->rank, of->whole.rank, of)}, &map));
  bool *used = ax_trace_alloc(map.program->in_count + 1), *all = ax_trace_alloc(of->whole.rank + 1);
  ax_status status = used != NULL && all != NULL ? AX_OK : AX_OUT_OF_MEMORY;
  if (status == AX_OK) {
    memset(all, true, of->whole.rank);
    status = ax_needs_program(&memo, map.program, all, used);
  }
  if (status == AX_OK) find_revisits(pipe, of, &map, used);
  if (status == AX_OK && of->revisits && is_listed(pipe, &map)) status = list_revisits(pipe, of, map.program);
  ax_memo_deinit(&memo);
  ax_body_deinit(&map);
  return status;
}

bool ax_pipe_look(ax_pipe *pipe) {
  for (uint32_t i = 0; i < ax_pipe_count(pipe); i++) {
    ax_piped *of = &pipe->of[i];
    of->invariant = true;
    ax_status status = !of->pinned && of->map.function != NULL ? look(pipe, of) : AX_OK;
    if (status != AX_OK) return refuse(pipe, of, ax_error_context(status, "index map: "));
  }
  return true;
}

/* --- Steps --- */

ax_value ax_pipe_rest(ax_value x, int64_t n) {
  if (n == 1) return ax_as("pipeline", ax_integer(0), AX_S32);
  return ax_sub(x, ax_mul(ax_div(x, ax_integer(n)), ax_integer(n)));
}

void ax_pipe_ids(const ax_pipe *pipe, ax_value step, ax_value *ids) {
  int64_t behind = 1;
  step = ax_as("pipeline", step, AX_S32);
  for (uint32_t d = pipe->rank; d-- > 0; behind *= pipe->grid[d])
    ids[d] = ax_pipe_rest(behind == 1 ? step : ax_div(step, ax_integer(behind)), pipe->grid[d]);
}

bool ax_pipe_index(const ax_pipe *pipe, const ax_piped *of, const ax_value *ids, ax_value *index) {
  for (uint32_t d = 0; d < of->whole.rank; d++) index[d] = ax_integer(0);
  if (of->map.function == NULL || of->pinned) return !ax_failed();
  ax_fn map = of->map;
  map.in_count = pipe->rank;
  const ax_value *made = ax_builder_call(map, ids);
  if (made == NULL || !ax_check_operands(pipe->function, made, of->whole.rank)) return false;
  for (uint32_t d = 0; d < of->whole.rank; d++) {
    const ax_type type = ax_is_number(made[d]) ? ax_array_type(AX_S32, AX_DIMS()) : ax_typeof(made[d]);
    if (!ax_failed() && (type.form != AX_ARRAY || type.dtype != AX_S32 || type.rank != 0))
      ax_reject_as(pipe->function, "%s %u: index map: result %u is %s, not s32[]", of->side, of->number, d,
                   ax_type_string(&type, &ax_builder_current()->axes));
    index[d] = made[d];
  }
  return !ax_failed();
}

const ax_value *ax_pipe_body(const ax_pipe *pipe, ax_fn body, const ax_value *ids, const ax_value *in) {
  if (!ax_grid_push(pipe->rank, ids, pipe->grid)) return NULL;
  const ax_value *made = ax_builder_call(body, in);
  ax_grid_pop();
  return made;
}

static AX_BODY(nothing) {}

void ax_pipe_where(ax_value predicate, ax_function then, void *context) {
  ax_if(predicate, ((ax_fn){then, 0, 0, context}), AX_FN(nothing, 0, 0), NULL, NULL);
}

/* --- Copies of blocks --- */

typedef struct moving {
  const ax_pipe *pipe;
  const ax_piped *of;
  const ax_value *index;
  ax_value slot;
  const ax_value *barrier, *predicate;
  bool out;
  uint32_t edges; /* bits of the dimensions along which the block sticks out */
} moving;

/* Sizes along the dimensions of the whole, as those of the slot, which may lack some where the block is 1. */
static void sizes_in_slot(const ax_piped *of, const int64_t *sizes, int64_t *out) {
  uint32_t d = 0;
  for (uint32_t s = 0; s < of->slot.rank; s++) {
    out[s] = 1;
    if (of->slot.dims[s] == 1) continue;
    while (of->block[d] == 1) d++;
    out[s] = sizes[d++];
  }
}

static ax_value outside(ax_dtype dtype) {
  return ax_is_float(dtype) ? ax_real(ax_lowest(dtype)) : ax_integer((int64_t)ax_lowest(dtype));
}

/* Fills the part of the slot that is outside the whole, one dimension after the other. The core stores it before it starts the
   copy, so that an agent that has waited for the copy sees it. */
static void fill_outside(const ax_piped *of, const int64_t *sizes, ax_value slot) {
  ax_value starts[AX_MAX_RANK];
  int64_t rest[AX_MAX_RANK];
  for (uint32_t s = 0; s < of->slot.rank; s++) {
    if (sizes[s] == of->slot.dims[s]) continue;
    for (uint32_t o = 0; o < of->slot.rank; o++) {
      starts[o] = ax_integer(o == s ? sizes[s] : 0);
      rest[o] = o == s ? of->slot.dims[s] - sizes[s] : of->slot.dims[o];
    }
    ax_ref_store(ax_ref_slice(slot, starts, rest), outside(of->whole.dtype));
  }
}

static ax_value part_of_slot(const ax_piped *of, const int64_t *sizes, ax_value slot) {
  ax_value starts[AX_MAX_RANK];
  for (uint32_t s = 0; s < of->slot.rank; s++) starts[s] = ax_integer(0);
  return memcmp(sizes, of->slot.dims, of->slot.rank * sizeof sizes[0]) == 0 ? slot : ax_ref_slice(slot, starts, sizes);
}

static ax_value start_of(const moving *m, uint32_t d) {
  int64_t block = m->of->block[d];
  if (ax_is_number(m->index[d])) return ax_number_times(m->pipe->function, m->index[d], block > 0 ? block : 1);
  return block == 1 ? m->index[d] : ax_mul(m->index[d], ax_integer(block));
}

static AX_BODY(move) {
  const moving *m = context;
  const ax_piped *of = m->of;
  ax_value starts[AX_MAX_RANK];
  int64_t sizes[AX_MAX_RANK], in_slot[AX_MAX_RANK];
  for (uint32_t d = 0; d < of->whole.rank; d++) {
    sizes[d] = (m->edges >> d & 1) != 0 ? of->whole.dims[d] % of->block[d] : of->block[d];
    starts[d] = start_of(m, d);
  }
  sizes_in_slot(of, sizes, in_slot);
  ax_value far = ax_ref_slice(m->of->ref, starts, sizes), near = part_of_slot(of, in_slot, m->slot);
  if (of->slot.rank != of->whole.rank) far = ax_ref_reshape(far, AX_LIST(of->slot.rank, in_slot));
  if (m->out)
    ax_copy_start(near, far, &(ax_copy_options){.predicate = (ax_value *)(uintptr_t)m->predicate, .grouped = true});
  else {
    fill_outside(of, in_slot, m->slot);
    if (m->barrier != NULL) ax_copy_start(far, near, &(ax_copy_options){.barrier = (ax_value *)(uintptr_t)m->barrier});
    else ax_copy(far, near);
  }
}

enum { most_ragged = 8 };

/* The copy, in as many forms as there are ways to stick out. */
static void move_block(moving m) {
  const ax_piped *of = m.of;
  uint32_t ragged[AX_MAX_RANK], count = 0;
  for (uint32_t d = 0; d < of->whole.rank; d++) {
    if (of->whole.dims[d] % of->block[d] == 0) continue;
    bool only = of->whole.dims[d] < of->block[d];
    if (only || (ax_is_number(m.index[d]) && ax_number_real(m.index[d]) >= (double)(of->whole.dims[d] / of->block[d])))
      m.edges |= 1u << d;
    else if (!ax_is_number(m.index[d])) ragged[count++] = d;
  }
  if (count == 0) {
    move(NULL, NULL, &m);
    return;
  }
  if (count > most_ragged) {
    ax_reject_as(m.pipe->function, "%s %u: blocks do not divide %u dimensions; %d at most", of->side, of->number, count,
                 most_ragged);
    return;
  }
  moving *forms = ax_trace_alloc((sizeof forms[0]) << count);
  ax_fn *branches = ax_trace_alloc((sizeof branches[0]) << count);
  ax_value which = ax_as(m.pipe->function, ax_integer(0), AX_S32);
  if (forms == NULL || branches == NULL) return;
  for (uint32_t r = 0; r < count; r++) {
    uint32_t d = ragged[r];
    ax_value zero = ax_as(m.pipe->function, ax_integer(0), AX_S32),
             sticks =
                 ax_eq(m.index[d], ax_integer(of->whole.dims[d] / of->block[d])); /* beyond, all of the block is out of bounds */
    which = ax_add(which, ax_select_n(sticks, zero, ax_as(m.pipe->function, ax_integer((int64_t)1 << r), AX_S32)));
  }
  for (uint32_t f = 0; f < 1u << count; f++) {
    forms[f] = m;
    for (uint32_t r = 0; r < count; r++) forms[f].edges |= (f >> r & 1) << ragged[r];
    branches[f] = (ax_fn){move, 0, 0, &forms[f]};
  }
  ax_switch(which, AX_LIST(1u << count, branches), NULL, NULL);
}

void ax_pipe_fetch(const ax_pipe *pipe, const ax_piped *of, const ax_value *index, ax_value slot, const ax_value *barrier) {
  if (ax_failed() || of->pinned) return;
  if (ax_type_elems(&of->whole) > 0) move_block((moving){.pipe = pipe, .of = of, .index = index, .slot = slot, .barrier = barrier});
  else {
    if (ax_type_elems(&of->slot) > 0) ax_ref_store(slot, outside(of->whole.dtype));
    if (barrier != NULL) ax_barrier_arrive(*barrier);
  }
}

void ax_pipe_store(const ax_pipe *pipe, const ax_piped *of, const ax_value *index, ax_value slot, const ax_value *predicate) {
  if (ax_failed() || of->pinned || ax_type_elems(&of->whole) == 0) return;
  move_block((moving){.pipe = pipe, .of = of, .index = index, .slot = slot, .predicate = predicate, .out = true});
}

/* --- Slots --- */

int64_t ax_pipe_slots(const ax_pipe *pipe, const ax_piped *of) { return of->pinned ? 0 : of->invariant ? 1 : pipe->stages; }

ax_scratch ax_pipe_scratch(const ax_pipe *pipe, const ax_piped *of) {
  int64_t dims[AX_MAX_RANK] = {ax_pipe_slots(pipe, of)};
  for (uint32_t s = 0; s < of->slot.rank; s++) dims[1 + s] = of->slot.dims[s];
  return (ax_scratch){.type = ax_ref_type(of->slot.space, of->slot.dtype, AX_LIST(of->slot.rank + 1, dims))};
}
