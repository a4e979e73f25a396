/* See remote.h. */
#include "array/remote.h"

#include <string.h>

#include "axle/stablehlo.h"
#include "client/client.h"
#include "plain/plain.h"

/* --- Compiling --- */

ax_status ax_remote_check_options(const ax_compile_options *options) {
  const char *lacks = options->check_numerics != 0                              ? "check_numerics"
                      : options->timeline                                       ? "timelines"
                      : options->reference                                      ? "reference code"
                      : options->subnormals != AX_SUBNORMALS_DEFAULT            ? "a choice of subnormals"
                      : options->contraction != AX_CONTRACTION_DEFAULT          ? "a choice of contraction"
                                                                                : NULL;
  return lacks == NULL ? AX_OK : ax_error(AX_ABSENT, "compile: programs that a plugin runs have no %s", lacks);
}

/* Writes the module of one device, or of the whole program with the specs of its inputs and results: in VHLO where the plugin has named its version, else, or with operations that VHLO lacks, as text. */
static ax_status write_module(const ax_executable *e, const ax_program *body, const ax_spec *specs, char **out, size_t *bytes) {
  const ax_plan *plan = e->compiled.plan;
  uint32_t *list = ax_alloc(((size_t)plan->in_count + 1) * sizeof list[0]), count = 0;
  if (list == NULL) return ax_out_of_memory(plan->in_count * sizeof list[0]);
  for (uint32_t i = 0; i < plan->in_count; i++)
    if (plan->donate[i]) list[count++] = i;
  ax_stablehlo_writing how = {.at_once = true, .version = e->runtime->client->version, .precision = e->runtime->plugin_precision, .donate = {.count = count, .list = count > 0 ? list : NULL}};
  if (how.version[0] == '\0' || specs != NULL) how.version = NULL; /* VHLO has nothing of Shardy */
  if (specs != NULL) {
    how.mesh = &e->signature.mesh;
    how.in_specs = specs;
    how.out_specs = specs + plan->in_count;
  }
  ax_status status = (ax_program_stablehlo_with)(body, &how, out, bytes);
  if (status == AX_ABSENT && how.version != NULL) {
    how.version = NULL;
    status = (ax_program_stablehlo_with)(body, &how, out, bytes);
  }
  ax_free(list);
  return status;
}

static ax_status compile_module(ax_executable *e, const ax_program *body, const ax_spec *specs) {
  const ax_plan *plan = e->compiled.plan;
  char *module;
  size_t bytes;
  AX_TRY(write_module(e, body, specs, &module, &bytes));
  const ax_client_shape shape = {e->compiled.devices, plan->in_count, plan->out_count, specs != NULL};
  const ax_status status = ax_client_compile(e->runtime->client, module, bytes, &shape, &e->remote);
  ax_string_free(module);
  return status == AX_OK ? AX_OK : ax_error_context(status, "compile: ");
}

/* The specs of the plan's inputs, then of its results. */
static ax_status compile_whole(ax_executable *e, const ax_program *whole) {
  const ax_signature *s = &e->signature;
  const size_t count = (size_t)e->compiled.plan->in_count + e->compiled.plan->out_count;
  ax_spec *specs = ax_calloc(count + 1, sizeof specs[0]);
  if (specs == NULL) return ax_out_of_memory(count * sizeof specs[0]);
  for (uint32_t i = 0; i < s->in_count; i++)
    if (s->in[i].place != AX_NONE) specs[s->in[i].place] = *s->in[i].spec;
  for (uint32_t k = 0; k < s->out_count; k++)
    if (s->out[k].made != AX_NONE) specs[e->compiled.plan->in_count + s->out[k].made] = *s->out[k].spec;
  const ax_status status = compile_module(e, whole, specs);
  ax_free(specs);
  return status;
}

/* The program as the plugin can run it. Consumes `body`. */
static ax_status make_plain(const ax_executable *e, ax_program *body, ax_program **out) {
  const ax_plain_platform *platform = ax_plain_platforms;
  while (platform->name != NULL && !ax_client_is(e->runtime->client, platform->name)) platform++;
  const ax_status status = ax_plain_program(body, &platform->lacks, out);
  ax_program_release(body);
  return status == AX_OK ? AX_OK : ax_error_context(status, "compile: ");
}

/* A program of one device has no layouts to hand over. */
ax_status ax_remote_compile(ax_executable *e, const ax_compile_options *options) {
  const ax_source source = {.program = e->program, .options = options};
  const bool whole = e->runtime->options.plugin_partitions;
  ax_program *given, *body;
  AX_TRY(ax_assemble_body(&e->runtime->assembler, &source, &e->signature, &e->compiled, whole, &given));
  AX_TRY(make_plain(e, given, &body));
  ax_status status = AX_OK;
  if (!e->compiled.idle_plan) status = whole && e->compiled.devices > 1 ? compile_whole(e, body) : compile_module(e, body, NULL);
  ax_program_release(body);
  return status;
}

/* --- Runs --- */

typedef struct running {
  const ax_run_call *call;
  ax_buffers **in, **out; /* arguments', retained; results' */
  bool *given;            /* by argument: nothing else has its buffers */
} running;

/* Gives argument i as the program wants it. An argument that lies so already is used as it is; another is laid out anew here. */
static ax_status take_argument(const running *r, uint32_t i) {
  const ax_executable *e = r->call->e;
  const ax_array *array = r->call->in[i];
  const ax_layout *wanted = e->wanted[e->signature.kept[i]];
  ax_parts *parts;
  AX_TRY(ax_parts_lay_out(array->parts, array->layout, wanted, AX_LAY_READ, &parts));
  const bool own = parts == array->parts ? atomic_load(&parts->references) == 2 : atomic_load(&parts->references) == 1;
  const ax_status status = ax_parts_send(parts, wanted, &r->in[i]);
  r->given[i] = status == AX_OK && own && e->compiled.plan->donate[i];
  if (parts != array->parts) atomic_fetch_add_explicit(&ax_runtime_tally(e->runtime)->copied, 1, memory_order_relaxed);
  ax_parts_release(parts);
  return status;
}

/* Parts in other memory than the devices' have buffers of their own once they are sent. Those that are sent already may be another
   array's too, by another set of parts. The results' parts come first: nothing fails once the run is handed over. */
static ax_status launch(const running *r, ax_parts **outputs, ax_client_going *going) {
  const ax_executable *e = r->call->e;
  const uint32_t in_count = e->compiled.plan->in_count, out_count = e->compiled.plan->out_count;
  for (uint32_t i = 0; i < in_count; i++) AX_TRY(take_argument(r, i));
  for (uint32_t i = 0; i < in_count; i++) /* the same buffers as two arguments are nobody's to give */
    for (uint32_t k = 0; k < in_count && r->given[i]; k++) r->given[i] = k == i || r->in[k] != r->in[i];
  for (uint32_t k = 0; k < out_count; k++) AX_TRY(ax_parts_create_away(e->runtime, e->assigned.made[k], NULL, &outputs[k]));
  atomic_fetch_add_explicit(&ax_runtime_tally(e->runtime)->runs, 1, memory_order_relaxed);
  AX_TRY(ax_client_launch(e->remote, r->in, r->given, r->out, going));
  for (uint32_t k = 0; k < out_count; k++) outputs[k]->buffers = r->out[k];
  return AX_OK;
}

ax_status ax_remote_launch(const ax_run_call *call, ax_parts **outputs, ax_client_going *going) {
  const ax_plan *plan = call->e->compiled.plan;
  const size_t count = (size_t)plan->in_count + plan->out_count;
  void *memory = ax_calloc(1, count * sizeof(ax_buffers *) + plan->in_count + 1);
  if (memory == NULL) return ax_out_of_memory(count * sizeof(ax_buffers *));
  running r = {.call = call, .in = memory};
  r.out = r.in + plan->in_count;
  r.given = (bool *)(r.out + plan->out_count);
  const ax_status status = launch(&r, outputs, going);
  for (uint32_t i = 0; i < plan->in_count; i++) ax_buffers_release(r.in[i]);
  ax_free(memory);
  return status;
}
