/* Runs a per-device program on whole arrays: the program becomes the body of a shard_map.

   An input may vary over axes of n devices in all, or be unreduced over them (each device has a summand). The array given for it is
   laid over these devices in one of three ways, which its shape tells apart. Results that vary are stacked. For n = 4 and an input
   of type f32[8,3]{V:data}:

     given f32[8,3]     the same on each device
     given f32[4,8,3]   one for each device
     given f32[32,3]    cut into 4 along the one dimension that is 4 times as long; likewise f32[8,12] */
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "cli.h"

typedef struct wrapping {
  const source *source;
  const ax_mesh *mesh;
  bool unchecked;
  ax_arena arena;
  const char **in_specs, **out_specs;
  ax_text specs; /* all specs, as ax_shard_map takes them */
  bool *stacked;      /* by input: the given array has one more dimension, with an element for each device */
  const char **pvary; /* by input: axes over which a value given once is made to vary; NULL: none */
  ax_value *values;
} wrapping;

/* The axes along which devices may hold different values of this type: all axes, if types are unchecked. */
static ax_axis_set differing_axes(const wrapping *w, const ax_type *type) {
  return w->unchecked ? ax_all_axes(w->mesh) : ax_spread_differs(&type->spread);
}

/* The names of axes, as a spec's entry for dimension `dim`: "_,_,data+model"; "" for no axes. NULL: no memory. */
static const char *join_axes(wrapping *w, ax_axis_set set, const char *separator, uint32_t dim) {
  ax_text text = {0};
  const char *before = "";
  for (uint32_t i = 0; set != 0 && i < dim; i++) ax_text_add(&text, "_,");
  for (uint32_t i = 0; i < w->mesh->count; i++) {
    if ((set >> i & 1) == 0) continue;
    ax_text_add(&text, "%s%s", before, w->mesh->axis[i].name);
    before = separator;
  }
  const char *joined =
      text.failed ? NULL : ax_arena_copy(&w->arena, text.data != NULL ? text.data : "", text.length + 1);
  ax_text_deinit(&text);
  return joined;
}

static bool is_stack(const ax_type *given, const ax_type *block, int64_t devices) {
  return given->rank == block->rank + 1 && given->dims[0] == devices &&
         memcmp(given->dims + 1, block->dims, block->rank * sizeof block->dims[0]) == 0;
}

/* The one dimension that is `devices` times as long as the block's, or -1. */
static int cut_dimension(const ax_type *given, const ax_type *block, int64_t devices) {
  int found = -1;
  if (given->rank != block->rank) return -1;
  for (uint32_t d = 0; d < block->rank; d++) {
    int64_t whole;
    if (given->dims[d] == block->dims[d]) continue;
    if (found >= 0 || !ax_mul_i64(block->dims[d], devices, &whole) || given->dims[d] != whole) return -1;
    found = (int)d;
  }
  return found;
}

static ax_status lay_input(wrapping *w, uint32_t index, const ax_type *given) {
  const ax_program *program = w->source->program;
  const ax_type *block = &program->types[index];
  ax_axis_set set = differing_axes(w, block);
  int64_t devices = ax_axis_set_size(set, w->mesh);
  int cut = cut_dimension(given, block, devices);
  w->stacked[index] = set != 0 && is_stack(given, block, devices);
  if (ax_same_shape(given, block)) {
    w->in_specs[index] = "";
    ax_axis_set checked = ax_spread_differs(&block->spread);
    w->pvary[index] = checked != 0 ? join_axes(w, checked, ",", 0) : NULL;
    return checked == 0 || w->pvary[index] != NULL ? AX_OK : ax_out_of_memory(0);
  }
  if (set != 0 && (w->stacked[index] || cut >= 0))
    w->in_specs[index] = join_axes(w, set, "+", cut >= 0 ? (uint32_t)cut : 0);
  else if (set == 0)
    return ax_error(AX_INVALID_ARGUMENT, "input %s is %s on every device, but %s is given",
                    source_input_name(w->source, index), ax_type_string(block, &program->axes),
                    ax_type_string(given, NULL));
  else
    return ax_error(
        AX_INVALID_ARGUMENT,
        "input %s is %s on each of %lld devices, but %s is given: give that shape (the same on all), one dimension of "
        "%lld more in front (one for each), or one dimension %lld times as long (cut)",
        source_input_name(w->source, index), ax_type_string(block, &program->axes), (long long)devices,
        ax_type_string(given, NULL), (long long)devices, (long long)devices);
  return w->in_specs[index] != NULL ? AX_OK : ax_out_of_memory(0);
}

/* The body of the shard_map. Gives each block the type of the program's input, calls the program, and adds a dimension of 1 to
   results that vary, along which the shard_map stacks them. */
static void body(const ax_value *in, ax_value *out, void *context) {
  wrapping *w = context;
  const ax_program *program = w->source->program;
  for (uint32_t i = 0; i < program->in_count; i++) {
    const ax_type *block = &program->types[i];
    w->values[i] = w->stacked[i] ? ax_reshape(in[i], AX_LIST(block->rank, block->dims)) : in[i];
    if (w->pvary[i] != NULL) w->values[i] = ax_pvary(w->values[i], w->pvary[i]);
  }
  ax_call(program, AX_LIST(program->in_count, w->values), AX_LIST(program->out_count, out));
  for (uint32_t i = 0; i < program->out_count; i++)
    if (differing_axes(w, &program->types[program->outs[i]]) != 0) out[i] = ax_expand_dims(out[i], 0);
}

static void whole(const ax_value *in, ax_value *out, void *context) {
  wrapping *w = context;
  const ax_program *program = w->source->program;
  const ax_fn each = AX_CLOSURE(body, program->in_count, program->out_count, w);
  if (w->unchecked) ax_shard_map_unchecked(w->mesh, w->specs.data, each, in, out);
  else ax_shard_map(w->mesh, w->specs.data, each, in, out);
}

static ax_status check_mesh(const ax_program *program, const ax_mesh *mesh, bool *unchecked) {
  uint32_t unchecked_count = 0;
  bool same = program->axes.count == mesh->count;
  for (uint32_t i = 0; same && i < mesh->count; i++) {
    same = strcmp(program->axes.axis[i].name, mesh->axis[i].name) == 0;
    unchecked_count += program->axes.axis[i].unchecked;
  }
  if (!same)
    return ax_error(AX_INVALID_ARGUMENT, "the mesh has the axes %s, but the program %s",
                    ax_axis_set_string(ax_all_axes(mesh), mesh),
                    ax_axis_set_string(ax_all_axes(&program->axes), &program->axes));
  *unchecked = unchecked_count > 0;
  if (*unchecked && unchecked_count < mesh->count)
    return ax_error(AX_ABSENT, "a program with checked and unchecked axes cannot be run as it stands");
  return AX_OK;
}

static ax_status lay_out(wrapping *w, const ax_type *given) {
  const ax_program *program = w->source->program;
  size_t count = (size_t)program->in_count * 2 + program->out_count;
  w->in_specs = ax_arena_alloc(&w->arena, count * sizeof w->in_specs[0]);
  w->stacked = ax_arena_alloc(&w->arena, program->in_count * sizeof w->stacked[0]);
  w->values = ax_arena_alloc(&w->arena, program->in_count * sizeof w->values[0]);
  if (w->in_specs == NULL || w->stacked == NULL || w->values == NULL) return ax_out_of_memory(count);
  w->pvary = w->in_specs + program->in_count;
  w->out_specs = w->pvary + program->in_count;
  for (uint32_t i = 0; i < program->in_count; i++) AX_TRY(lay_input(w, i, &given[i]));
  for (uint32_t i = 0; i < program->out_count; i++) {
    w->out_specs[i] = join_axes(w, differing_axes(w, &program->types[program->outs[i]]), "+", 0);
    if (w->out_specs[i] == NULL) return ax_out_of_memory(0);
  }
  for (uint32_t i = 0; i < program->in_count; i++) ax_text_add(&w->specs, "%s%s", i > 0 ? "; " : "", w->in_specs[i]);
  ax_text_add(&w->specs, " -> ");
  for (uint32_t i = 0; i < program->out_count; i++) ax_text_add(&w->specs, "%s%s", i > 0 ? "; " : "", w->out_specs[i]);
  return w->specs.failed ? ax_out_of_memory(0) : AX_OK;
}

/* The type of a stack with one array of `type` for each device over which it may vary. */
static ax_type stacked(const ax_program *program, const ax_mesh *mesh, const ax_type *type) {
  ax_axis_set unchecked = ax_all_axes(&program->axes) & ~ax_checked_axes(&program->axes);
  int64_t dims[AX_MAX_RANK + 1] = {ax_axis_set_size(ax_spread_differs(&type->spread) | unchecked, mesh)};
  bool stacks = (ax_spread_differs(&type->spread) | unchecked) != 0 && type->rank < AX_MAX_RANK;
  memcpy(dims + 1, type->dims, type->rank * sizeof dims[0]);
  return stacks ? ax_array_type(type->dtype, AX_LIST(type->rank + 1, dims))
                : ax_array_type(type->dtype, AX_LIST(type->rank, type->dims));
}

ax_status whole_program(const source *source, const ax_mesh *mesh, const ax_type *given, ax_program **out) {
  wrapping w = {.source = source, .mesh = mesh};
  *out = NULL;
  ax_status status = check_mesh(source->program, mesh, &w.unchecked);
  if (status == AX_OK) status = lay_out(&w, given);
  if (status == AX_OK) status = ax_trace(AX_CLOSURE(whole, source->program->in_count, source->program->out_count, &w), given, out);
  ax_text_deinit(&w.specs);
  ax_arena_deinit(&w.arena);
  return status;
}

ax_status whole_compiled(const source *source, const ax_mesh *mesh, ax_program **out) {
  ax_program *program = source->program;
  bool unchecked;
  *out = NULL;
  if (program->axes.count == 0) {
    *out = ax_program_retain(program);
    return AX_OK;
  }
  if (mesh == NULL) mesh = &program->axes;
  AX_TRY(check_mesh(program, mesh, &unchecked));
  ax_type *given = ax_calloc(program->in_count, sizeof given[0]);
  if (given == NULL) return ax_out_of_memory(program->in_count * sizeof given[0]);
  for (uint32_t i = 0; i < program->in_count; i++) given[i] = stacked(program, mesh, &program->types[i]);
  ax_status status = whole_program(source, mesh, given, out);
  ax_free(given);
  return status;
}

ax_status whole_laid_out(const source *source, const shardings *shardings, const ax_process_layout *processes, ax_program **out) {
  if (shardings_given(shardings)) return shardings_apply(shardings, source, processes, out);
  if (shardings->has_mesh && source->program->axes.count == 0)
    return ax_error(AX_INVALID_ARGUMENT, "--mesh: the program has its mesh, or needs --in-sharding to say how it lies");
  return whole_compiled(source, shardings->has_mesh ? &shardings->mesh : NULL, out);
}
