/* The programs of a strategy of several stages, as users get them. */
#include <string.h>

#include "axle/planner.h"
#include "axle/transform.h"
#include "planner/stage_mesh.h"

typedef struct staging {
  ax_model model;
  ax_loss_piece piece;
  ax_families families;
  ax_arrangement layout;
  ax_piece_specs specs;
  ax_mesh mesh; /* of a stage */
  ax_arena arena;
} staging;

/* --- How the strategy says that arrays lie --- */

static ax_status read_specs(staging *s, const ax_strategy *strategy) {
  AX_TRY(ax_families_make(&s->model, &s->families));
  AX_TRY(ax_arrangement_read(strategy->specs, &s->model, &s->families, &s->mesh, &s->layout));
  s->layout.state_cut = true; /* as pipelines.c has it */
  return ax_stage_specs(&s->layout, &s->model, &s->families, &s->mesh, &s->arena, &s->specs);
}

/* The strategy's mesh without the axis of stages. */
static ax_status read_mesh(staging *s, const ax_strategy *strategy) {
  s->mesh = strategy->mesh;
  if (s->mesh.count > 0 && strcmp(s->mesh.axis[0].name, "pipe") == 0) {
    s->mesh.count--;
    memmove(s->mesh.axis, s->mesh.axis + 1, s->mesh.count * sizeof s->mesh.axis[0]);
  }
  if (s->mesh.count > 0 && s->mesh.count <= AX_PLANNER_AXES && strcmp(s->mesh.axis[0].name, "data") == 0) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "planner: the first axis of a stage of the strategy is not data");
}

static int64_t at_least_one(int64_t count) { return count > 0 ? count : 1; }

static ax_status read_piece(const staging *s, const ax_strategy *strategy, int64_t part, ax_piece_options *out) {
  const ax_model *m = &s->model;
  const int64_t parts = strategy->stages * at_least_one(strategy->chunks), data = ax_stage_groups(&s->mesh);
  const int64_t groups = data * at_least_one(strategy->microbatches);
  const char *why_not = ax_pieces_why_not(m);
  if (why_not != NULL) return ax_error(AX_INVALID_ARGUMENT, "planner: %s", why_not);
  if (part < 0 || part >= parts)
    return ax_error(AX_INVALID_ARGUMENT, "planner: part %lld of a strategy of %lld parts", (long long)part, (long long)parts);
  if (m->layers % parts != 0 || m->samples % groups != 0)
    return ax_error(AX_INVALID_ARGUMENT,
                    "planner: %lld layers in %lld parts, %lld samples in %lld microbatches of %lld groups of devices",
                    (long long)m->layers, (long long)parts, (long long)m->samples, (long long)(groups / data), (long long)data);
  *out = (ax_piece_options){.piece = part == 0           ? AX_PIECE_FIRST
                                     : part + 1 == parts ? AX_PIECE_LAST
                                                         : AX_PIECE_MIDDLE,
                            .layers = m->layers / parts,
                            .first_layer = part * (m->layers / parts),
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
  const ax_mesh group = ax_stage_group(&s->mesh);
  AX_TRY(ax_piece_program(&s->piece, pass, &program));
  ax_piece_pass_specs(&s->piece, pass, &s->specs, &specs);
  return lay(program, &group, &specs, out);
}

static ax_status make_update(const staging *s, ax_stage_programs *out) {
  ax_program *program;
  ax_text specs = {0};
  AX_TRY(
      ax_piece_update(&s->model, s->piece.used, s->piece.options.layers, ax_stage_groups(&s->mesh), &s->specs, &program, &specs));
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
  ax_arrangement_deinit(&s.layout);
  ax_families_deinit(&s.families);
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
