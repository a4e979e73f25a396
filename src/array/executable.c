/* Executables: creation, cache, questions, text, release. pipeline.c makes them from programs. */
#include <string.h>
#include <unistd.h>

#include "axle/transform.h"
#include "array/compared.h"
#include "array/executable.h"
#include "array/remote.h"
#include "client/client.h"
#include "machine/float_mode.h"
#include "machine/subnormals.h"
#include "mesh/constraint.h"
#include "partition/partition.h"
#include "plan/contract.h"

/* --- The object --- */

static void release_constants(ax_executable *e) {
  ax_parts **kept = atomic_load(&e->constant_parts);
  for (uint32_t k = 0; kept != NULL && k < e->compiled.plan->out_count; k++) ax_parts_release(kept[k]);
  ax_free(kept);
}

void ax_executable_destroy(ax_executable *e) {
  release_constants(e);
  ax_assigned_deinit(e);
  ax_runner_deinit(&e->runner);
  for (uint32_t i = 0; e->wanted != NULL && i < e->signature.in_count; i++) ax_layout_release(e->wanted[i]);
  ax_free(e->wanted);
  ax_compiled_deinit(&e->compiled, e->runtime->process == getpid() ? e->runtime->assembler.jit : NULL);
  if (e->runtime->process == getpid()) ax_client_program_destroy(e->remote);
  ax_program_release(e->program);
  ax_free(e->names);
  pthread_mutex_destroy(&e->lock);
  ax_runtime_drop(e->runtime);
  ax_free(e);
}

ax_status ax_names_copy(const ax_name_list *given, uint32_t count, const char ***out) {
  size_t bytes = ((size_t)count + 1) * sizeof **out;
  *out = NULL;
  const char *const *names = given->v;
  if (given->count == 0) return AX_OK;
  for (uint32_t i = 0; i < count; i++) bytes += names[i] != NULL ? strlen(names[i]) + 1 : 0;
  *out = ax_calloc(1, bytes);
  if (*out == NULL) return ax_out_of_memory(bytes);
  char *next = (char *)(*out + count + 1);
  for (uint32_t i = 0; i < count; i++) {
    if (names[i] == NULL) continue;
    (*out)[i] = strcpy(next, names[i]);
    next += strlen(next) + 1;
  }
  return AX_OK;
}

/* An executable that is not compiled. NULL: no memory. */
static ax_executable *create(ax_runtime *runtime, ax_program *program) {
  ax_executable *e = ax_calloc(1, sizeof *e);
  if (e == NULL) return NULL;
  atomic_init(&e->references, 1);
  ax_callers_init(&e->callers);
  pthread_mutex_init(&e->lock, NULL);
  e->runtime = ax_runtime_hold(runtime);
  e->program = ax_program_retain(program);
  ax_runner_init(&e->runner, &e->compiled, &e->runtime->executor);
  return e;
}

static void tell(const ax_executable *e) {
  char trouble[256];
  if (e->runtime->options.log == NULL) return;
  if (ax_jit_trouble(e->runtime->assembler.jit, trouble, sizeof trouble))
    ax_runtime_log(e->runtime, "compile: the code cache is not used: %s", trouble);
  ax_runtime_log(e->runtime, "lower: %u equations for %u devices, %.3f s", e->program->eqn_count, e->compiled.devices,
                 e->lower_seconds);
  if (e->runtime->client != NULL) ax_runtime_log(e->runtime, "compile: by the plugin, %.3f s", e->compile_seconds);
  else ax_runtime_log(e->runtime, "compile: %u instructions, %.3f s", e->compiled.codes[0].instr_count, e->compile_seconds);
  for (uint32_t i = 0; i < e->signature.in_count; i++) {
    const ax_signature_in *in = &e->signature.in[i];
    if (!in->asked || in->donated != AX_NONE) continue;
    ax_text name = {0};
    ax_argument_text(&name, e, NULL, i);
    ax_runtime_log(e->runtime, "compile: %s, %s, is donated to no use: %s", name.data != NULL ? name.data : "an argument",
                   ax_type_string(ax_program_in_type(e->program, i), NULL),
                   in->donate ? "no result lives in its memory" : "nothing depends on it, and it stays the caller's");
    ax_text_deinit(&name);
  }
}

static ax_status make_layouts(ax_executable *e) {
  const ax_signature *s = &e->signature;
  e->wanted = ax_calloc((size_t)s->in_count + 1, sizeof e->wanted[0]);
  if (e->wanted == NULL) return ax_out_of_memory(s->in_count * sizeof e->wanted[0]);
  for (uint32_t i = 0; i < s->in_count; i++)
    AX_TRY(ax_layout_create(e->runtime, ax_program_in_type(e->program, i), &s->mesh, s->in[i].spec, NULL, s->mesh.count > 0,
                            &e->wanted[i]));
  return ax_assigned_init(e);
}

/* laid: the lowered program; NULL: it is lowered here. */
static ax_status make(ax_executable *e, const ax_laid *laid, double lower_seconds, const ax_compile_options *options) {
  const double begin = ax_seconds();
  ax_laid own = {0};
  if (laid == NULL && e->runtime->client == NULL) {
    AX_TRY(ax_program_lay_out(e->program, options->keep_unused, &own));
    lower_seconds = ax_seconds() - begin;
  }
  const double lowered = ax_seconds();
  const ax_source source = {.program = e->program, .laid = laid != NULL ? laid : &own, .options = options};
  ax_status status = e->runtime->client != NULL
                         ? ax_remote_compile(e, options)
                         : ax_assemble(&e->runtime->assembler, &source, &e->signature, &e->compiled);
  if (status == AX_OK) status = make_layouts(e);
  ax_laid_deinit(&own);
  e->keep_unused = options->keep_unused;
  e->late_sums = options->late_sums;
  e->lower_seconds = lower_seconds;
  e->compile_seconds = ax_seconds() - lowered;
  return status;
}

/* Makes an executable, and adds it to the cache. */
static ax_status compile(ax_runtime *runtime, ax_program *program, const ax_laid *laid, double lower_seconds,
                         const ax_compile_key *key, ax_executable **out) {
  ax_executable *e = create(runtime, program);
  if (e == NULL) return ax_out_of_memory(sizeof *e);
  ax_status status = ax_names_copy(&key->options->names, program->in_count, &e->names);
  ax_float_mode caller = ax_float_mode_enter(false); /* constants are rounded to nearest */
  if (status == AX_OK) status = make(e, laid, lower_seconds, key->options);
  ax_float_mode_leave(caller);
  if (status == AX_OK) status = ax_executable_digest(e);
  if (status == AX_OK) status = ax_executable_cache_add(&runtime->cache, e, key);
  if (status != AX_OK) {
    ax_executable_destroy(e);
    return status;
  }
  tell(e);
  *out = e;
  return AX_OK;
}

static ax_status find_or_compile(ax_runtime *runtime, ax_program *program, const ax_laid *laid, double lower_seconds,
                                 const ax_compile_options *options, ax_executable **out) {
  if ((options->check_numerics & ~(uint32_t)(AX_CHECK_NAN | AX_CHECK_INF)) != 0)
    return ax_error(AX_INVALID_ARGUMENT, "compile: check_numerics is %u; it is AX_CHECK_NAN, AX_CHECK_INF, both or 0",
                    options->check_numerics);
  bool *donate = ax_calloc((size_t)program->in_count + 1, sizeof donate[0]);
  if (donate == NULL) return ax_out_of_memory(program->in_count);
  ax_status status = ax_args_mask(options->donate, "input", program->in_count, donate);
  if (status != AX_OK) {
    ax_free(donate);
    return ax_error_context(status, "donate: ");
  }
  const ax_compile_key key = ax_compile_key_of(program, options, donate);
  *out = ax_executable_cache_find(&runtime->cache, &key);
  if (*out != NULL) ax_runtime_log(runtime, "compile: found in the cache");
  else status = compile(runtime, program, laid, lower_seconds, &key, out);
  ax_free(donate);
  return status;
}

ax_status ax_executable_of(ax_runtime *runtime, ax_program *program, const ax_laid *laid, double lower_seconds,
                           const ax_compile_options *options, ax_executable **out) {
  ax_compile_options all = *options;
  bool flush, fused = false;
  if (runtime->client != NULL) AX_TRY(ax_remote_check_options(options));
  ax_status status = ax_subnormals_flush(options->subnormals, &flush);
  if (status == AX_OK) status = ax_contraction_fused(options->contraction, &fused);
  if (status != AX_OK) return ax_executable_compare(runtime, program, &all, ax_error_context(status, "compile: "), out);
  all.subnormals = flush ? AX_SUBNORMALS_FLUSH : AX_SUBNORMALS_KEEP;
  all.contraction = fused ? AX_CONTRACTION_FUSED : AX_CONTRACTION_EXACT;
  all.check_numerics |= runtime->options.check_numerics;
  status = find_or_compile(runtime, program, laid, lower_seconds, &all, out);
  return ax_executable_compare(runtime, program, &all, status, out);
}

/* Finds how arrays given as `like` lie. An array that is not committed gives no layout. Neither does one without a mesh, since a
   program without a mesh has the same devices anyway. *says: some array gives a layout. */
static ax_status look_at_like(const ax_program *program, const ax_array_list *list, ax_array_layout *like, bool *says) {
  ax_array *const *arrays = list->v;
  uint32_t first = AX_NONE;
  *says = false;
  for (uint32_t i = 0; i < program->in_count; i++) {
    const ax_layout *layout = arrays[i] != NULL ? arrays[i]->layout : NULL;
    if (layout == NULL) continue;
    const ax_type *want = ax_program_in_type(program, i);
    if (layout->type.dtype != want->dtype || !ax_same_shape(&layout->type, want))
      return ax_error(AX_INVALID_ARGUMENT, "like: input %u is %s, and the array %s", i, ax_type_string(want, NULL),
                      ax_type_string(&layout->type, NULL));
    if (!layout->committed) continue;
    if (first == AX_NONE) first = i;
    if (!ax_layout_same_devices(layout, arrays[first]->layout))
      return ax_error(AX_INVALID_ARGUMENT, "like: the arrays of inputs %u and %u lie on different devices", first, i);
    if (layout->mesh.count == 0) continue;
    like[i] = (ax_array_layout){&layout->mesh, &layout->spec};
    *says = true;
  }
  return AX_OK;
}

static ax_status lay_like(ax_program *program, const ax_compile_options *options, ax_program **out) {
  bool says = false;
  ax_array_layout *like = ax_calloc((size_t)program->in_count + 1, sizeof like[0]);
  if (like == NULL) return ax_out_of_memory(program->in_count * sizeof like[0]);
  ax_status status = options->like.count > 0 ? look_at_like(program, &options->like, like, &says) : AX_OK;
  if (status == AX_OK && options->shardings == NULL && !says) *out = ax_program_retain(program);
  else if (status == AX_OK) status = ax_program_laid_like(program, options->mesh, options->shardings, options->processes, like, out);
  ax_free(like);
  return status;
}

ax_status ax_program_laid_over(ax_program *program, const ax_compile_options *options, const char *who, ax_program **out) {
  *out = NULL;
  AX_TRY(ax_option_check(who, "names", options->names.count, options->names.v, program->in_count, "input"));
  AX_TRY(ax_option_check(who, "like", options->like.count, options->like.v, program->in_count, "input"));
  if ((options->shardings == NULL) != (options->mesh == NULL))
    return ax_error(AX_INVALID_ARGUMENT, "the options have %s; they go together",
                    options->mesh == NULL ? "shardings and no mesh" : "a mesh and no shardings");
  if (options->shardings == NULL && options->like.count == 0) {
    *out = ax_program_retain(program);
    return AX_OK;
  }
  ax_status status = lay_like(program, options, out);
  return status == AX_OK ? AX_OK : ax_error_context(status, "%s: ", who);
}

ax_status ax_compile(ax_runtime *runtime, ax_program *program, const ax_compile_options *options, ax_executable **out) {
  const ax_compile_options defaults = {0};
  ax_compile_options all = options != NULL ? *options : defaults;
  *out = NULL;
  AX_TRY(ax_require(runtime, "runtime"));
  if (program == NULL) return ax_executable_compare(runtime, NULL, &all, ax_require(NULL, "program"), out);
  const ax_process_layout own = ax_process_layout_of(runtime);
  if (all.processes == NULL) all.processes = &own;
  ax_program *laid;
  ax_status status = ax_program_laid_over(program, &all, "compile", &laid);
  if (status != AX_OK) return ax_executable_compare(runtime, program, &all, status, out);
  status = ax_executable_of(runtime, laid, NULL, 0, &all, out);
  ax_program_release(laid);
  return status;
}

ax_executable *ax_executable_retain(ax_executable *e) {
  if (e != NULL) ax_executable_hold(e);
  return e;
}

void ax_executable_release(ax_executable *e) {
  if (e == NULL) return;
  uint32_t references = atomic_load_explicit(&e->references, memory_order_relaxed);
  while (references > 1) /* only the last reference takes the lock */
    if (atomic_compare_exchange_weak_explicit(&e->references, &references, references - 1, memory_order_release,
                                              memory_order_relaxed))
      return;
  if (ax_executable_cache_drop(&e->runtime->cache, e) && ax_callers_end(&e->callers)) ax_executable_destroy(e);
}

/* --- Questions --- */

const ax_mesh *ax_executable_mesh(const ax_executable *e) { return e != NULL ? &e->signature.mesh : NULL; }

const ax_spec *ax_executable_in_spec(const ax_executable *e, uint32_t index) {
  return e != NULL && index < e->signature.in_count ? e->signature.in[index].spec : NULL;
}

const ax_spec *ax_executable_out_spec(const ax_executable *e, uint32_t index) {
  if (e == NULL || index >= e->signature.out_count) return NULL;
  const ax_signature_out *r = &e->signature.out[index];
  return r->spec != NULL ? r->spec : e->signature.in[r->input].spec;
}

bool ax_executable_is_kept(const ax_executable *e, uint32_t index) {
  return e != NULL && index < e->signature.in_count && e->signature.in[index].place != AX_NONE;
}

int64_t ax_executable_passed(const ax_executable *e, uint32_t index) {
  const uint32_t input = e != NULL && index < e->signature.out_count ? e->signature.out[index].input : AX_NONE;
  return input != AX_NONE ? (int64_t)input : -1;
}

double ax_executable_lower_seconds(const ax_executable *e) { return e != NULL ? e->lower_seconds : 0; }
double ax_executable_compile_seconds(const ax_executable *e) { return e != NULL ? e->compile_seconds : 0; }

int64_t ax_executable_donated(const ax_executable *e, uint32_t index) {
  const uint32_t result = e != NULL && index < e->signature.in_count ? e->signature.in[index].donated : AX_NONE;
  return result != AX_NONE ? (int64_t)result : -1;
}

ax_status ax_executable_cost(const ax_executable *e, ax_cost *out) {
  *out = (ax_cost){0};
  AX_TRY(ax_require(e, "executable"));
  const ax_process_layout processes = ax_process_layout_of(e->runtime);
  return ax_program_cost_over(e->program, &processes, out);
}

ax_status ax_executable_memory(const ax_executable *e, ax_memory *out) {
  *out = (ax_memory){0};
  AX_TRY(ax_require(e, "executable"));
  if (e->runtime->client != NULL) return ax_error(AX_ABSENT, "a plugin has compiled the program, and Axle does not know its memory");
  ax_memory_of(&e->compiled, out);
  return AX_OK;
}

ax_status (ax_executable_put)(const ax_executable *e, uint32_t index, ax_dtype element, const void *data, size_t bytes,
                              ax_array **out) {
  *out = NULL;
  AX_TRY(ax_require(e, "executable"));
  if (index >= e->signature.in_count)
    return ax_error(AX_INVALID_ARGUMENT, "executable_put: there is no input %u; the program takes %u", index,
                    e->signature.in_count);
  if (data != NULL) AX_TRY(ax_memory_check("executable_put", &e->wanted[index]->type, element, bytes));
  return ax_array_of_data(e->runtime, e->wanted[index], data, out);
}

ax_status (ax_jit)(ax_runtime *runtime, ax_fn function, uint32_t in_count, const ax_type *in_types,
                   const ax_compile_options *options, ax_executable **out) {
  ax_program *program;
  *out = NULL;
  AX_TRY(ax_require(runtime, "runtime"));
  AX_TRY((ax_trace)(function, in_count, in_types, &program));
  ax_runtime_log(runtime, "trace: %u equations, %.3f s", program->eqn_count, ax_program_seconds(program));
  ax_status status = ax_compile(runtime, program, options, out);
  ax_program_release(program);
  return status;
}

/* --- Text --- */

ax_status ax_executable_text(const ax_executable *e, char **out) {
  ax_text text = {0};
  *out = NULL;
  AX_TRY(ax_require(e, "executable"));
  if (e->runtime->client != NULL) return ax_error(AX_ABSENT, "a plugin has compiled the program, and Axle has no text of it");
  ax_plan_text(&text, e->compiled.plan);
  ax_instrs_text(&text, &e->compiled, e->compiled.codes[0].instrs, e->compiled.codes[0].instr_count);
  return ax_text_finish(&text, out);
}

ax_status ax_text_after(ax_runtime *runtime, ax_program *program, const char *pass, const struct ax_rates *rates, char **out) {
  const ax_compile_options options = {0};
  return ax_assemble_text(&runtime->assembler, &(ax_source){.program = program, .options = &options}, pass, rates, out);
}

ax_status ax_executable_timeline(ax_executable *e, ax_timeline_form form, char **out) {
  *out = NULL;
  AX_TRY(ax_require(e, "executable"));
  return ax_runner_timeline(&e->runner, form, NULL, out);
}

ax_status ax_executable_visit_timeline(ax_executable *e, ax_span_visitor see, void *context) {
  AX_TRY(ax_require(e, "executable"));
  return ax_runner_visit_timeline(&e->runner, see, context);
}
