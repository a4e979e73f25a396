/* Functions compiled by their calls: the object, and the calls, which ask its table (jitted_table.h). */
#include <string.h>

#include "array/jitted_table.h"
#include "array/joint.h"

enum { default_most_kept = 256, few_arguments = 64 };

/* --- The object --- */

static ax_status check_options(const ax_fn *function, const ax_compile_options *options) {
  if (function->function == NULL) return ax_error(AX_INVALID_ARGUMENT, "jitted: there is no function");
  if (options->like.count > 0)
    return ax_error(AX_INVALID_ARGUMENT, "jitted: the options have arrays in `like`; each call's arguments say how they lie");
  if ((options->shardings == NULL) != (options->mesh == NULL))
    return ax_error(AX_INVALID_ARGUMENT, "jitted: the options have %s; they go together",
                    options->mesh == NULL ? "shardings and no mesh" : "a mesh and no shardings");
  return ax_option_check("jitted", "names", options->names.count, options->names.v, function->in_count, "operand");
}

/* A copy of the elements; NULL for none. */
static ax_status copy_list(const void *from, size_t bytes, const void **out) {
  *out = NULL;
  if (from == NULL || bytes == 0) return AX_OK;
  void *copy = ax_alloc(bytes);
  if (copy == NULL) return ax_out_of_memory(bytes);
  *out = memcpy(copy, from, bytes);
  return AX_OK;
}

static ax_status own_options(ax_jitted *j, const ax_compile_options *given) {
  ax_compile_options *own = &j->options;
  const void *list;
  const char **names;
  *own = *given;
  own->donate.list = NULL;
  own->names = (ax_name_list){0};
  own->shardings = NULL;
  own->processes = NULL;
  if (given->mesh != NULL) j->mesh = *given->mesh;
  own->mesh = given->mesh != NULL ? &j->mesh : NULL;
  AX_TRY(ax_names_copy(&given->names, j->function.in_count, &names));
  if (names != NULL) own->names = (ax_name_list){j->function.in_count, (const char *const *)names};
  AX_TRY(copy_list(given->donate.list, given->donate.count * sizeof given->donate.list[0], &list));
  own->donate.list = list;
  AX_TRY(copy_list(given->shardings, given->shardings != NULL ? strlen(given->shardings) + 1 : 0, &list));
  own->shardings = list;
  if (given->processes == NULL) return AX_OK;
  j->processes = *given->processes;
  own->processes = &j->processes;
  AX_TRY(copy_list(given->processes->process_of, given->processes->process_of_count * sizeof(uint32_t), &list));
  j->processes.process_of = list;
  return AX_OK;
}

static void free_options(ax_jitted *j) {
  ax_free((void *)(uintptr_t)j->options.donate.list);
  ax_free((void *)(uintptr_t)j->options.names.v);
  ax_free((void *)(uintptr_t)j->options.shardings);
  if (j->options.processes != NULL) ax_free((void *)(uintptr_t)j->processes.process_of);
}

static void destroy(ax_jitted *j) {
  ax_jitted_end(j);
  free_options(j);
  for (uint32_t i = 0; i < AX_CALLER_PLACES; i++) pthread_mutex_destroy(&j->places[i].lock);
  pthread_mutex_destroy(&j->making);
  pthread_cond_destroy(&j->made);
  ax_runtime_drop(j->runtime);
  ax_free(j);
}

ax_status(ax_jitted_create)(ax_runtime *runtime, ax_fn function, const ax_jitted_options *options, ax_jitted **out) {
  const ax_jitted_options defaults = {0};
  if (options == NULL) options = &defaults;
  *out = NULL;
  AX_TRY(ax_require(runtime, "runtime"));
  AX_TRY(check_options(&function, &options->compile));
  ax_jitted *j = ax_calloc(1, sizeof *j);
  if (j == NULL) return ax_out_of_memory(sizeof *j);
  j->runtime = ax_runtime_hold(runtime);
  j->function = function;
  j->most_kept = options->most_kept > 0 ? options->most_kept : default_most_kept;
  atomic_init(&j->references, 1);
  pthread_mutex_init(&j->making, NULL);
  pthread_cond_init(&j->made, NULL);
  for (uint32_t i = 0; i < AX_CALLER_PLACES; i++) pthread_mutex_init(&j->places[i].lock, NULL);
  ax_status status = own_options(j, &options->compile);
  if (status == AX_OK)
    *out = j;
  else
    destroy(j);
  return status;
}

ax_jitted *ax_jitted_retain(ax_jitted *j) {
  if (j != NULL) atomic_fetch_add_explicit(&j->references, 1, memory_order_relaxed);
  return j;
}

void ax_jitted_release(ax_jitted *j) {
  if (j != NULL && atomic_fetch_sub(&j->references, 1) == 1) destroy(j);
}

/* --- Calls --- */

/* The key's hash is not known yet. */
static ax_status look_for(ax_jitted *j, ax_jitted_key *k, ax_jitted_held *out) {
  k->hash = AX_HASH_SEED;
  for (uint32_t i = 0; i < j->function.in_count; i++) k->hash = ax_hash_word(k->hash, (uintptr_t)k->layouts[i]);
  if (k->statics.bytes > 0) k->hash = ax_hash_bytes(k->hash, k->statics.data, k->statics.bytes);
  return ax_jitted_find(j, k, out) ? AX_OK : ax_jitted_make(j, k, out);
}

/* An array that there is not, or of another runtime, is refused here: its layout could stand for nothing. */
static ax_status layouts_of(const ax_jitted *j, const char *who, ax_array *const *in, ax_layout **out) {
  for (uint32_t i = 0; i < j->function.in_count; i++) {
    if (in == NULL || in[i] == NULL) return ax_error(AX_INVALID_ARGUMENT, "%s: argument %u is missing", who, i);
    out[i] = in[i]->layout;
    if (out[i]->runtime != j->runtime)
      return ax_error(AX_INVALID_ARGUMENT, "%s: argument %u, %s, is of another runtime", who, i,
                      ax_type_string(&out[i]->type, NULL));
  }
  return AX_OK;
}

static ax_status check_call(const ax_jitted *j, const char *who, ax_static statics, uint32_t in_count) {
  AX_TRY(ax_require(j, "jitted"));
  if (statics.data == NULL && statics.bytes > 0)
    return ax_error(AX_INVALID_ARGUMENT, "%s: there are %zu static bytes, but no data", who, statics.bytes);
  return ax_list_check(who, "the function takes", "argument", in_count, j->function.in_count);
}

/* Finds or makes the executable of a call with arrays, and enters it. */
static ax_status enter(ax_jitted *j, const char *who, ax_static statics, bool retain, uint32_t in_count, ax_array *const *in,
                       ax_jitted_held *out) {
  ax_layout *few[few_arguments], **layouts = few;
  AX_TRY(check_call(j, who, statics, in_count));
  const uint32_t count = j->function.in_count;
  if (count > few_arguments) layouts = ax_alloc(count * sizeof layouts[0]);
  if (layouts == NULL) return ax_out_of_memory(count * sizeof layouts[0]);
  ax_status status = layouts_of(j, who, in, layouts);
  if (status == AX_OK) status = look_for(j, &(ax_jitted_key){layouts, in, statics, retain, 0}, out);
  if (layouts != few) ax_free(layouts);
  return status;
}

/* Calls that fail in one process before there is a run: where all make them, it says so in their place, since the others would take its
   next call for this one. */
typedef struct together {
  ax_processes *processes; /* NULL: there are no others */
  uint64_t failures;       /* as they were when it began: what all did and failed in has been said */
} together;

static together begin_together(const ax_jitted *j) {
  ax_processes *p = j != NULL ? j->runtime->executor.processes : NULL;
  return p == NULL || p->rule.processes == 1 ? (together){0} : (together){p, atomic_load(&p->failures)};
}

static void describe_call(const void *context, ax_text *text) {
  (void)context;
  ax_text_add(text, "calls a jitted function");
}

/* in: the arguments that are arrays. */
static ax_status fail_together(const together *t, ax_jitted *j, uint32_t in_count, ax_array *const *in, ax_status status) {
  if (t->processes == NULL || atomic_load(&t->processes->failures) != t->failures) return status;
  bool spread = atomic_load(&j->spread);
  for (uint32_t i = 0; in != NULL && i < in_count && !spread; i++) spread = in[i] != NULL && in[i]->layout->map != NULL;
  ax_joint joint;
  ax_joint_begin(&joint, j->runtime, spread, &(ax_doing){0, describe_call, NULL, "ax_jitted_run"});
  return ax_joint_end_run(&joint, status);
}

typedef ax_status way(ax_executable *, uint32_t, ax_array *const *, uint32_t, ax_array **);

static ax_status run_by(way *run, const char *who, ax_jitted *j, ax_static statics, uint32_t in_count, ax_array *const *in,
                        uint32_t out_count, ax_array **out) {
  ax_jitted_held h;
  for (uint32_t k = 0; k < ax_list_entries(out_count, j != NULL ? j->function.out_count : 0); k++) out[k] = NULL;
  const together t = begin_together(j);
  const bool retain = j != NULL && j->runtime->executor.processes != NULL; /* calls of all processes retain it once more */
  ax_status status = enter(j, who, statics, retain, in_count, in, &h);
  if (status != AX_OK) return fail_together(&t, j, ax_list_entries(in_count, j != NULL ? j->function.in_count : 0), in, status);
  status = run(h.executable, in_count, in, out_count, out);
  ax_jitted_leave(&h);
  return status;
}

ax_status(ax_jitted_run)(ax_jitted *j, uint32_t in_count, ax_array *const *in, uint32_t out_count, ax_array **out) {
  return run_by(ax_run, "jitted_run", j, (ax_static){0}, in_count, in, out_count, out);
}

ax_status(ax_jitted_run_start)(ax_jitted *j, uint32_t in_count, ax_array *const *in, uint32_t out_count, ax_array **out) {
  return run_by(ax_run_start, "jitted_run_start", j, (ax_static){0}, in_count, in, out_count, out);
}

ax_status(ax_jitted_run_static)(ax_jitted *j, ax_static statics, uint32_t in_count, ax_array *const *in, uint32_t out_count,
                                ax_array **out) {
  return run_by(ax_run, "jitted_run_static", j, statics, in_count, in, out_count, out);
}

ax_status(ax_jitted_executable)(ax_jitted *j, ax_static statics, uint32_t in_count, ax_array *const *in, ax_executable **out) {
  ax_jitted_held h;
  *out = NULL;
  AX_TRY(enter(j, "jitted_executable", statics, true, in_count, in, &h));
  *out = h.executable; /* the reference is the caller's */
  ax_executable_leave(h.executable, h.place);
  return AX_OK;
}

/* Layouts on one device that nobody chose, for the types of host arrays. The first *made of them are retained. */
static ax_status layouts_of_hosts(const ax_jitted *j, const ax_host_array *in, ax_layout **out, uint32_t *made) {
  static const ax_mesh one;
  static const ax_spec whole;
  for (*made = 0; *made < j->function.in_count; ++*made) {
    if (in == NULL) return ax_error(AX_INVALID_ARGUMENT, "jitted_run_host: argument %u is missing", *made);
    const ax_host_array *host = &in[*made];
    ax_status status = ax_view_check(host);
    const ax_type type = ax_array_type(host->dtype, AX_LIST(host->rank, host->dims));
    if (status == AX_OK) status = ax_type_check(&type, &one);
    if (status == AX_OK) status = ax_layout_create(j->runtime, &type, &one, &whole, NULL, false, &out[*made]);
    if (status != AX_OK) return ax_error_context(status, "jitted_run_host: argument %u: ", *made);
  }
  return AX_OK;
}

static ax_status enter_hosts(ax_jitted *j, uint32_t in_count, const ax_host_array *in, ax_jitted_held *out) {
  uint32_t made = 0;
  AX_TRY(check_call(j, "jitted_run_host", (ax_static){0}, in_count));
  ax_layout **layouts = ax_calloc((size_t)j->function.in_count + 1, sizeof layouts[0]);
  if (layouts == NULL) return ax_out_of_memory(j->function.in_count * sizeof layouts[0]);
  ax_status status = layouts_of_hosts(j, in, layouts, &made);
  const bool retain = j->runtime->executor.processes != NULL;
  if (status == AX_OK) status = look_for(j, &(ax_jitted_key){layouts, NULL, {0}, retain, 0}, out);
  for (uint32_t i = 0; i < made; i++) ax_layout_release(layouts[i]);
  ax_free(layouts);
  return status;
}

ax_status(ax_jitted_run_host)(ax_jitted *j, uint32_t in_count, const ax_host_array *in, uint32_t out_count, ax_host_array *out) {
  ax_jitted_held h;
  for (uint32_t k = 0; k < ax_list_entries(out_count, j != NULL ? j->function.out_count : 0); k++) out[k] = (ax_host_array){0};
  const together t = begin_together(j);
  ax_status status = enter_hosts(j, in_count, in, &h);
  if (status != AX_OK) return fail_together(&t, j, 0, NULL, status);
  status = (ax_run_host)(h.executable, in_count, in, out_count, out);
  ax_jitted_leave(&h);
  return status;
}
