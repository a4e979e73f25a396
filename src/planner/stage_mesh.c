#include "planner/stage_mesh.h"

enum { axis_groups = 0 };

ax_mesh ax_stage_group(const ax_mesh *mesh) {
  ax_mesh group = *mesh;
  group.axis[axis_groups].size = 1;
  return group;
}

int64_t ax_stage_groups(const ax_mesh *mesh) { return mesh->axis[axis_groups].size; }

int64_t ax_stage_sample_parts(const ax_arrangement *layout, const ax_mesh *mesh) {
  int64_t parts = 1;
  for (uint32_t a = axis_groups + 1; a < mesh->count; a++)
    if (layout->batch.axis[a] == 0) parts *= mesh->axis[a].size;
  return parts;
}

/* --- Samples and carries --- */

/* Whether that dimension of a carry is one that axes cut in samples, as the positions of a sequence are. */
static bool is_cut_in_samples(const ax_model *m, const ax_type *carry, int dim) {
  for (uint32_t b = 0; dim < (int)carry->rank && b < m->batch_count; b++) {
    const ax_type *sample = &m->program->types[m->batch[b]];
    if (dim < (int)sample->rank && sample->dims[dim] == carry->dims[dim]) return true;
  }
  return false;
}

/* How a value of one sample lies within a group, batched. */
static ax_axis_cuts cuts_of(const ax_arrangement *layout, const ax_model *m, const ax_mesh *mesh, const ax_type *value) {
  ax_axis_cuts cuts = layout->batch;
  cuts.axis[axis_groups] = AX_WHOLE;
  for (uint32_t a = 0; a < AX_PLANNER_AXES; a++)
    if (a >= mesh->count || (cuts.axis[a] > 0 && !is_cut_in_samples(m, value, cuts.axis[a] - 1))) cuts.axis[a] = AX_WHOLE;
  return cuts;
}

bool ax_stage_cuts_carries(const ax_arrangement *layout, const ax_model *m, const ax_mesh *mesh) {
  for (uint32_t k = 0; k < ax_piece_carries(m); k++) {
    const ax_type carry = ax_piece_carry(m, k);
    const ax_axis_cuts cuts = cuts_of(layout, m, mesh, &carry);
    for (uint32_t a = axis_groups + 1; a < mesh->count; a++)
      if (layout->batch.axis[a] > 0 && cuts.axis[a] < 0 && carry.rank > 0) return false;
  }
  return true;
}

double ax_stage_message_bytes(const ax_arrangement *layout, const ax_model *m, const ax_mesh *mesh, int64_t samples) {
  double bytes = 0;
  for (uint32_t k = 0; k < ax_piece_carries(m); k++) {
    const ax_type carry = ax_piece_carry(m, k);
    const ax_axis_cuts cuts = cuts_of(layout, m, mesh, &carry);
    double own = (double)ax_type_elems(&carry) * (double)ax_dtype_bytes(carry.dtype) * (double)samples;
    for (uint32_t a = 0; a < mesh->count; a++)
      if (cuts.axis[a] >= 0) own /= (double)mesh->axis[a].size;
    bytes += own;
  }
  return bytes;
}

/* --- Specs --- */

static ax_status keep(ax_text *text, ax_arena *arena, const char **out) {
  const size_t length = text->length;
  *out = text->failed ? NULL : ax_arena_copy(arena, length > 0 ? text->data : "", length + 1);
  ax_text_deinit(text);
  return *out != NULL ? AX_OK : ax_out_of_memory(length);
}

static ax_status spec_of_value(const ax_arrangement *layout, const ax_model *m, const ax_mesh *mesh, const ax_type *value,
                               ax_arena *arena, const char **out) {
  ax_text text = {0};
  const ax_axis_cuts cuts = cuts_of(layout, m, mesh, value);
  const ax_type batched = ax_batch_type(*value, 1);
  ax_cuts_spec(&cuts, &batched, mesh, &text);
  return keep(&text, arena, out);
}

static ax_status specs_of_params(const ax_arrangement *layout, const ax_model *m, const ax_families *families, const ax_mesh *mesh,
                                 ax_held_array held, ax_arena *arena, const char *const **out) {
  const char **list = ax_arena_alloc(arena, ((size_t)m->param_count + 1) * sizeof list[0]);
  if (list == NULL) return ax_out_of_memory(m->param_count);
  for (uint32_t p = 0; p < m->param_count; p++) {
    ax_text text = {0};
    ax_arrangement_param_spec(layout, m, families, mesh, p, held, &text);
    AX_TRY(keep(&text, arena, &list[p]));
  }
  *out = list;
  return AX_OK;
}

ax_status ax_stage_specs(const ax_arrangement *layout, const ax_model *m, const ax_families *families, const ax_mesh *mesh,
                         ax_arena *arena, ax_piece_specs *out) {
  const char **sample = ax_arena_alloc(arena, ((size_t)m->batch_count + 1) * sizeof sample[0]),
             **carry = ax_arena_alloc(arena, ((size_t)ax_piece_carries(m) + 1) * sizeof carry[0]);
  if (sample == NULL || carry == NULL) return ax_out_of_memory(m->batch_count);
  *out = (ax_piece_specs){.sample = sample, .carry = carry};
  AX_TRY(specs_of_params(layout, m, families, mesh, AX_HELD_PARAM, arena, &out->param));
  AX_TRY(specs_of_params(layout, m, families, mesh, AX_HELD_STATE, arena, &out->state));
  AX_TRY(specs_of_params(layout, m, families, mesh, AX_HELD_SUM, arena, &out->sum));
  for (uint32_t b = 0; b < m->batch_count; b++)
    AX_TRY(spec_of_value(layout, m, mesh, &m->program->types[m->batch[b]], arena, &sample[b]));
  for (uint32_t k = 0; k < ax_piece_carries(m); k++) {
    const ax_type type = ax_piece_carry(m, k);
    AX_TRY(spec_of_value(layout, m, mesh, &type, arena, &carry[k]));
  }
  return AX_OK;
}
