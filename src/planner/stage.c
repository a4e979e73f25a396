/* The programs of a strategy of several stages, as users get them. */
#include <string.h>

#include "axle/planner.h"
#include "axle/transform.h"
#include "planner/pieces.h"

typedef struct staging {
  ax_model model;
  ax_loss_piece piece;
  ax_piece_specs specs;
  ax_mesh mesh; /* of a stage */
  int64_t data;
  ax_arena arena;
} staging;

/* --- How the strategy says that arrays lie --- */

/* The entries of one side of specs, up to "->" or the end: so many. */
static ax_status split(staging *s, const char *specs, uint32_t count, char **out) {
  const char *end = strstr(specs, "->"), *at = specs;
  if (end == NULL) end = specs + strlen(specs);
  for (uint32_t i = 0; i < count; i++) {
    size_t length = at < end ? strcspn(at, ";") : 0;
    if (at + length > end) length = (size_t)(end - at);
    out[i] = ax_arena_alloc(&s->arena, length + 1);
    if (out[i] == NULL) return ax_out_of_memory(length);
    memcpy(out[i], at, length);
    at += length + (at + length < end);
  }
  return AX_OK;
}

/* Parameters come first in the planned program, and then the optimizer's state. */
static ax_status read_specs(staging *s, const ax_strategy *strategy) {
  const ax_model *m = &s->model;
  const uint32_t count = m->param_count + m->state_count;
  char **all = ax_arena_alloc(&s->arena, ((size_t)count + 1) * sizeof all[0]);
  const char **state = ax_arena_alloc(&s->arena, ((size_t)m->param_count + 1) * sizeof state[0]);
  if (all == NULL || state == NULL) return ax_out_of_memory(count);
  AX_TRY(split(s, strategy->specs, count, all));
  for (uint32_t p = 0; p < m->param_count; p++) state[p] = "";
  for (uint32_t k = 0; k < m->state_count; k++) {
    const uint32_t p = ax_model_state_of(m, k);
    if (p != AX_NONE) state[p] = all[m->param_count + k];
  }
  s->specs = (ax_piece_specs){(const char *const *)all, state};
  return AX_OK;
}

/* The strategy's mesh without the axis of stages. */
static ax_status read_mesh(staging *s, const ax_strategy *strategy) {
  s->mesh = strategy->mesh;
  if (s->mesh.count > 0 && strcmp(s->mesh.axis[0].name, "pipe") == 0) {
    s->mesh.count--;
    memmove(s->mesh.axis, s->mesh.axis + 1, s->mesh.count * sizeof s->mesh.axis[0]);
  }
  const int data = ax_mesh_find(&s->mesh, "data");
  if (data < 0) return ax_error(AX_INVALID_ARGUMENT, "planner: the strategy's mesh has no axis data");
  s->data = s->mesh.axis[data].size;
  return AX_OK;
}

static int64_t at_least_one(int64_t count) { return count > 0 ? count : 1; }

static ax_status read_piece(const staging *s, const ax_strategy *strategy, int64_t part, ax_piece_options *out) {
  const ax_model *m = &s->model;
  const int64_t parts = strategy->stages * at_least_one(strategy->chunks), groups = s->data * at_least_one(strategy->microbatches);
  if (!ax_pieces_possible(m)) return ax_error(AX_INVALID_ARGUMENT, "planner: the loss has no loop over layers to be cut into stages");
  if (part < 0 || part >= parts)
    return ax_error(AX_INVALID_ARGUMENT, "planner: part %lld of a strategy of %lld parts", (long long)part, (long long)parts);
  if (m->layers % parts != 0 || m->samples % groups != 0)
    return ax_error(AX_INVALID_ARGUMENT, "planner: %lld layers in %lld parts, %lld samples in %lld microbatches of %lld groups of devices",
                    (long long)m->layers, (long long)parts, (long long)m->samples, (long long)(groups / s->data), (long long)s->data);
  *out = (ax_piece_options){.piece = part == 0 ? AX_PIECE_FIRST : part + 1 == parts ? AX_PIECE_LAST : AX_PIECE_MIDDLE,
                            .layers = m->layers / parts,
                            .samples = m->samples / groups,
                            .saved = strategy->saved};
  return AX_OK;
}

/* --- Programs --- */

static ax_status lay(ax_program *program, const ax_mesh *mesh, ax_text *specs, ax_program **out) {
  const ax_status status = specs->failed ? ax_out_of_memory(0) : (ax_program_with_shardings)(program, mesh, specs->data, out);
  ax_text_deinit(specs);
  ax_program_release(program);
  return status;
}

static ax_status make_pass(const staging *s, ax_piece_pass pass, ax_program **out) {
  ax_program *program;
  ax_text specs = {0};
  ax_mesh group = s->mesh;
  group.axis[ax_mesh_find(&group, "data")].size = 1;
  AX_TRY(ax_piece_program(&s->piece, pass, &program));
  ax_piece_pass_specs(&s->piece, pass, &s->specs, &specs);
  return lay(program, &group, &specs, out);
}

static ax_status make_update(const staging *s, ax_stage_programs *out) {
  ax_program *program;
  ax_text specs = {0};
  AX_TRY(ax_piece_update(&s->model, s->piece.used, s->piece.options.layers, s->data, &s->specs, &program, &specs));
  out->state_count = program->out_count - s->piece.used_count;
  return lay(program, &s->mesh, &specs, &out->update);
}

static ax_status list_params(const staging *s, ax_stage_programs *out) {
  const ax_model *m = &s->model;
  out->params = ax_calloc((size_t)s->piece.used_count + 1, sizeof out->params[0]);
  out->sliced = ax_calloc((size_t)s->piece.used_count + 1, sizeof out->sliced[0]);
  if (out->params == NULL || out->sliced == NULL) return ax_out_of_memory(s->piece.used_count);
  for (uint32_t p = 0; p < m->param_count; p++) {
    if (!s->piece.used[p]) continue;
    out->sliced[out->param_count] = m->layered[p];
    out->params[out->param_count++] = m->params[p];
  }
  return AX_OK;
}

static ax_status make(staging *s, const ax_program *program, const ax_planner_options *options, const ax_strategy *strategy, int64_t part,
                      ax_stage_programs *out) {
  ax_piece_options piece;
  AX_TRY(ax_model_make(program, options, &s->model));
  AX_TRY(read_mesh(s, strategy));
  AX_TRY(read_piece(s, strategy, part, &piece));
  AX_TRY(read_specs(s, strategy));
  AX_TRY(ax_piece_make(&s->model, &piece, &s->piece));
  out->layers = piece.layers;
  out->first_layer = part * piece.layers;
  out->sample_count = s->model.batch_count;
  out->carry_count = ax_piece_carries(&s->model);
  out->kept_count = ax_piece_kept(&s->piece);
  out->cotangent_count = ax_piece_float_carries(&s->model);
  AX_TRY(list_params(s, out));
  AX_TRY(make_pass(s, AX_PASS_FORWARD, &out->forward));
  AX_TRY(make_pass(s, AX_PASS_BACKWARD, &out->backward));
  return make_update(s, out);
}

ax_status ax_planner_stage(const ax_program *program, const ax_planner_options *options, const ax_strategy *strategy, int64_t part,
                           ax_stage_programs *out) {
  staging s = {0};
  *out = (ax_stage_programs){0};
  AX_TRY(ax_require(program, "program"));
  AX_TRY(ax_require(options, "options"));
  AX_TRY(ax_require(strategy, "strategy"));
  if (strategy->stages < 2 || strategy->specs == NULL)
    return ax_error(AX_INVALID_ARGUMENT, "planner: a strategy of several stages is wanted, as ax_planner_search or ax_planner_time gives it");
  const ax_status status = make(&s, program, options, strategy, part, out);
  if (status != AX_OK) ax_stage_programs_release(out);
  ax_piece_deinit(&s.piece);
  ax_model_deinit(&s.model);
  ax_arena_deinit(&s.arena);
  return status;
}

void ax_stage_programs_release(ax_stage_programs *programs) {
  if (programs == NULL) return;
  ax_program_release(programs->forward);
  ax_program_release(programs->backward);
  ax_program_release(programs->update);
  ax_free(programs->params);
  ax_free(programs->sliced);
  *programs = (ax_stage_programs){0};
}
