/* Compiling modules, and what is asked about executables. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "axle/stablehlo.h"
#include "axle/stages.h"
#include "base/digest.h"
#include "bridge/stablehlo_read.h"
#include "mesh/assignment.h"
#include "mesh/constraint.h"
#include "partition/partition.h"
#include "prim/prims.h"
#include "pjrt/ffi.h"
#include "pjrt/layouts.h"
#include "pjrt/shardings.h"

/* --- Objects --- */

static void free_texts(ax_pjrt_texts *texts, size_t count) {
  for (size_t i = 0; texts->items != NULL && i < count; i++) ax_free(texts->items[i]);
  ax_free(texts->items);
  ax_free(texts->lengths);
}

static void free_values(ax_pjrt_value *values, size_t count) {
  for (size_t i = 0; values != NULL && i < count; i++) {
    ax_sharding_release(values[i].sharding);
    ax_sharding_release(values[i].ordered);
    ax_free(values[i].order);
  }
  ax_free(values);
}

void ax_pjrt_executable_release(ax_pjrt_executable *e) {
  if (e == NULL || atomic_fetch_sub(&e->references, 1) != 1) return;
  ax_pjrt_layouts_free(e->in_layouts, e->in_count);
  ax_pjrt_layouts_free(e->out_layouts, e->out_count);
  free_values(e->in, e->in_count);
  free_values(e->out, e->out_count);
  free_texts(&e->in_shardings, e->in_count);
  free_texts(&e->out_shardings, e->out_count);
  ax_free(e->donated);
  ax_free(e->code);
  ax_free(e->option_text);
  ax_free(e->elements);
  ax_free(e->dims);
  ax_free(e->ranks);
  ax_free(e->kinds);
  ax_free(e->kind_lengths);
  ax_pjrt_options_free(&e->options);
  ax_executable_release(e->made);
  ax_executable_release(e->timed);
  ax_pjrt_executable_release(e->apart);
  ax_free(e->asked_apart);
  pthread_mutex_destroy(&e->timed_lock);
  pthread_mutex_destroy(&e->apart_lock);
  ax_program_release(e->program);
  ax_pjrt_client_release(e->client);
  ax_free(e);
}

/* --- How values lie --- */

/* The devices that the options name, in the order of a mesh's places; order NULL: theirs. */
static ax_pjrt_error *devices_of(const ax_pjrt_executable *e, const int64_t *order, ax_sharding **out) {
  ax_sharding_options options = {.device_count = (uint32_t)e->device_count};
  int64_t *ids = ax_alloc(e->device_count * sizeof ids[0]);
  if (ids == NULL) return ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for %zu devices", e->device_count);
  for (size_t i = 0; i < e->device_count; i++) {
    ids[i] = order != NULL ? order[i] : (int64_t)i;
    if (e->options.devices != NULL) ids[i] = e->options.devices[ids[i]];
  }
  options.devices = (ax_dim_list){(uint32_t)e->device_count, ids};
  const ax_status status = ax_sharding_replicated(&options, out);
  ax_free(ids);
  return ax_pjrt_status(status);
}

static ax_pjrt_error *lay(const ax_pjrt_executable *e, const ax_sharding *devices, const ax_type *type, const ax_spec *spec,
                          ax_pjrt_value *out) {
  out->whole = *type;
  out->whole.spread = (ax_spread){0};
  out->block = out->whole;
  if (e->device_count == 1) return NULL;
  if (e->alike) {
    out->sharding = ax_sharding_retain((ax_sharding *)(uintptr_t)devices);
    return NULL;
  }
  if (spec == NULL) return ax_pjrt_fail(AX_PJRT_INTERNAL, "a value lies nowhere");
  AX_PJRT_TRY(ax_pjrt_status(ax_sharding_create_on(ax_executable_mesh(e->made), spec, devices, &out->sharding)));
  if (out->order != NULL) {
    ax_sharding *own;
    out->ordered = out->sharding, out->sharding = NULL;
    AX_PJRT_TRY(devices_of(e, out->order, &own));
    const ax_status status = ax_sharding_create_on(ax_executable_mesh(e->made), spec, own, &out->sharding);
    ax_sharding_release(own);
    AX_PJRT_TRY(ax_pjrt_status(status));
  }
  AX_PJRT_TRY(ax_pjrt_status(ax_sharding_block(out->sharding, &out->whole, &out->block)));
  if (out->having == AX_HAVE_ARRAY) return NULL;
  if (out->block.dims[0] != 1) return ax_pjrt_fail(AX_PJRT_INTERNAL, "parts of devices lie otherwise");
  out->block.rank--;
  memmove(out->block.dims, out->block.dims + 1, out->block.rank * sizeof out->block.dims[0]);
  return NULL;
}

/* Of a program without a mesh, as it uses no argument that lies on several devices: an argument lies as the module says. */
static ax_pjrt_error *lay_unused(ax_pjrt_executable *e, const ax_sharding *devices) {
  const ax_program *program = e->program;
  for (uint32_t i = 0; i < program->eqn_count; i++) {
    const ax_eqn *eqn = &program->eqns[i];
    const uint32_t input = eqn->prim == &ax_prim_sharding_constraint ? eqn->in[0] : program->in_count;
    if (input >= program->in_count) continue;
    const ax_constraint_params *said = eqn->params;
    ax_pjrt_value *value = &e->in[input];
    ax_sharding *own;
    if (ax_mesh_devices(&said->mesh) != (int64_t)e->device_count) continue;
    AX_PJRT_TRY(ax_pjrt_status(ax_sharding_create_on(&said->mesh, &said->specs.v[0], devices, &own)));
    ax_sharding_release(value->sharding);
    value->sharding = own;
    AX_PJRT_TRY(ax_pjrt_status(ax_sharding_block(own, &value->whole, &value->block)));
  }
  return NULL;
}

static ax_pjrt_error *lay_all(ax_pjrt_executable *e) {
  ax_sharding *devices = NULL;
  ax_pjrt_error *error = e->device_count > 1 ? devices_of(e, NULL, &devices) : NULL;
  for (uint32_t i = 0; error == NULL && i < e->in_count; i++)
    error = lay(e, devices, ax_program_in_type(e->program, i), ax_executable_in_spec(e->made, i), &e->in[i]);
  for (uint32_t k = 0; error == NULL && k < e->out_count; k++)
    error = lay(e, devices, ax_program_out_type(e->program, k), ax_executable_out_spec(e->made, k), &e->out[k]);
  if (error == NULL && e->alike) error = lay_unused(e, devices);
  ax_sharding_release(devices);
  return error;
}

/* --- Lists that getters give --- */

static ax_pjrt_error *list_all(ax_pjrt_executable *e) {
  const size_t values = e->in_count + e->out_count;
  size_t dims = 0;
  for (size_t k = 0; k < e->out_count; k++) dims += e->out[k].block.rank;
  e->elements = ax_alloc((e->out_count + 1) * sizeof e->elements[0]);
  e->ranks = ax_alloc((e->out_count + 1) * sizeof e->ranks[0]);
  e->dims = ax_alloc((dims + 1) * sizeof e->dims[0]);
  e->kinds = ax_alloc((values + 1) * sizeof e->kinds[0]);
  e->kind_lengths = ax_alloc((values + 1) * sizeof e->kind_lengths[0]);
  if (e->elements == NULL || e->ranks == NULL || e->dims == NULL || e->kinds == NULL || e->kind_lengths == NULL)
    return ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for an executable");
  dims = 0;
  for (size_t k = 0; k < e->out_count; k++) {
    const ax_type *block = &e->out[k].block;
    e->elements[k] = e->out[k].is_token ? AX_PJRT_TOKEN : ax_pjrt_element_of(block->dtype);
    e->ranks[k] = e->out[k].is_token ? 0 : block->rank;
    memcpy(e->dims + dims, block->dims, e->ranks[k] * sizeof e->dims[0]);
    dims += e->ranks[k];
  }
  for (size_t i = 0; i < values; i++) {
    const ax_pjrt_value *value = i < e->in_count ? &e->in[i] : &e->out[i - e->in_count];
    e->kinds[i] = ax_pjrt_memory_kinds[value->memory], e->kind_lengths[i] = strlen(e->kinds[i]);
  }
  return NULL;
}

static ax_pjrt_error *list_shardings(const ax_pjrt_value *values, size_t count, ax_pjrt_texts *out) {
  ax_pjrt_error *error = NULL;
  out->items = ax_calloc(count + 1, sizeof out->items[0]);
  out->lengths = ax_calloc(count + 1, sizeof out->lengths[0]);
  if (out->items == NULL || out->lengths == NULL) return ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for shardings");
  for (size_t i = 0; error == NULL && i < count; i++)
    error = ax_pjrt_sharding_bytes(&values[i], &out->items[i], &out->lengths[i]);
  return error;
}

static void sign(ax_pjrt_executable *e, const char *code, size_t code_bytes, const char *options, size_t option_bytes) {
  ax_digester digester;
  ax_digester_init(&digester);
  ax_digester_add(&digester, ax_pjrt_version_text, strlen(ax_pjrt_version_text));
  ax_digester_add(&digester, code, code_bytes);
  ax_digester_add(&digester, options, option_bytes);
  const ax_digest digest = ax_digester_finish(&digester);
  for (size_t i = 0; i + 1 < sizeof e->fingerprint; i += 2)
    snprintf(e->fingerprint + i, 3, "%02x", digest.bytes[i / 2]);
}

/* --- Compiling --- */

static const char python_callback[] = "axle_python_callback"; /* python/jax_plugins/axle/callbacks.py; text and bytecode name it alike */

static ax_pjrt_error *check_devices(const ax_pjrt_executable *e) {
  if (e->device_count > e->client->device_count)
    return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "the program wants %zu devices, and there are %zu", e->device_count,
                        e->client->device_count);
  for (size_t i = 0; e->options.devices != NULL && i < e->device_count; i++)
    if (e->options.devices[i] < 0 || e->options.devices[i] >= (int64_t)e->client->device_count)
      return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "there is no device %" PRId64 ": there are %zu", e->options.devices[i],
                          e->client->device_count);
  return NULL;
}

/* What the module says of an input or a result. */
static ax_pjrt_error *note(const ax_pjrt_executable *e, const ax_program_names *names, uint32_t i, bool in, ax_pjrt_value *out) {
  const ax_dim_list *orders = in ? names->in_order : names->out_order;
  const ax_type *type = in ? ax_program_in_type(e->program, i) : ax_program_out_type(e->program, i);
  const char *kind = (in ? names->in_memory : names->out_memory)[i];
  out->having = (in ? names->in_having : names->out_having)[i];
  out->is_token = !in && names->out_token[i];
  while (out->memory < AX_PJRT_MEMORIES && strcmp(kind, ax_pjrt_memory_kinds[out->memory]) != 0) out->memory++;
  if (out->memory == AX_PJRT_MEMORIES) return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "there is no memory of the kind %s", kind);
  AX_PJRT_TRY(ax_pjrt_order_read((in ? names->in_layout : names->out_layout)[i], type->rank - (out->having != AX_HAVE_ARRAY && e->device_count > 1),
                                 &out->layout));
  if (orders == NULL || orders[i].count == 0 || orders[i].count != e->device_count) return NULL;
  out->order = ax_alloc(e->device_count * sizeof out->order[0]);
  if (out->order == NULL) return ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory");
  memcpy(out->order, orders[i].v, e->device_count * sizeof out->order[0]);
  return NULL;
}

/* The program, and which of its inputs it is given for good. */
static ax_pjrt_error *read_program(ax_pjrt_executable *e, const ax_pjrt_program *program, const bool *apart) {
  ax_program_names names;
  ax_hlo_binding binding = {.parts = true, .by_device = apart, .entry_tokens = true};
  AX_PJRT_TRY(ax_pjrt_ffi_calls(&binding.custom_calls));
  AX_PJRT_TRY(ax_pjrt_status(ax_program_from_stablehlo_named(program->code, program->code_bytes, "module", &binding, &names, &e->program)));
  e->in_count = ax_program_in_count(e->program);
  e->out_count = ax_program_out_count(e->program);
  e->in = ax_calloc(e->in_count + 1, sizeof e->in[0]);
  e->out = ax_calloc(e->out_count + 1, sizeof e->out[0]);
  e->donated = ax_calloc(e->in_count + 1, sizeof e->donated[0]);
  if (e->donated != NULL) memcpy(e->donated, names.donated, e->in_count * sizeof e->donated[0]);
  e->sums_stay = names.sums_stay;
  snprintf(e->name, sizeof e->name, "%s", names.module[0] != '\0' ? names.module : "main");
  ax_pjrt_error *error = NULL;
  if (e->in == NULL || e->out == NULL || e->donated == NULL) error = ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory");
  for (uint32_t i = 0; error == NULL && i < e->in_count; i++) error = note(e, &names, i, true, &e->in[i]);
  for (uint32_t k = 0; error == NULL && k < e->out_count; k++) error = note(e, &names, k, false, &e->out[k]);
  ax_program_names_deinit(&names);
  return error;
}

/* A run must wait for the tokens that it takes, though nothing is computed of them. */
static bool is_token(const ax_type *type) { return type->dtype == AX_BOOL && type->rank == 1 && type->dims[0] == 0; }

ax_pjrt_error *ax_pjrt_executable_compile(const ax_pjrt_executable *e, bool timed, ax_executable **out) {
  ax_compile_options options = {.timeline = timed, .late_sums = e->sums_stay};
  uint32_t *list = ax_alloc((e->in_count + 1) * sizeof list[0]);
  if (list == NULL) return ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory");
  for (uint32_t i = 0; i < e->in_count; i++)
    if (e->donated[i]) list[options.donate.count++] = i;
  if (options.donate.count > 0) options.donate.list = list;
  for (uint32_t i = 0; i < e->in_count; i++) options.keep_unused = options.keep_unused || is_token(ax_program_in_type(e->program, i));
  const ax_status status = ax_compile(e->client->runtime, e->program, &options, out);
  ax_free(list);
  return ax_pjrt_status(status);
}

static size_t bytes_of(const ax_pjrt_value *value) { return (size_t)ax_type_elems(&value->block) * ax_dtype_bytes(value->block.dtype); }

/* Takes back what is given away in vain: each argument that is given needs a result with as many bytes on each device, which may be in its
   memory. Callers have the others still. *fewer: there are some. */
static ax_pjrt_error *keep_useless(ax_pjrt_executable *e, bool *fewer) {
  bool *taken = ax_calloc(e->out_count + 1, sizeof taken[0]);
  if (taken == NULL) return ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory");
  for (size_t i = 0; i < e->in_count; i++) {
    size_t k = 0;
    if (!e->donated[i]) continue;
    while (k < e->out_count && (taken[k] || bytes_of(&e->out[k]) != bytes_of(&e->in[i]))) k++;
    if (k < e->out_count) taken[k] = true;
    else e->donated[i] = false, *fewer = true;
  }
  ax_free(taken);
  return NULL;
}

static ax_pjrt_error *compile_program(ax_pjrt_executable *e, const ax_pjrt_program *program, bool kept, const bool *apart) {
  static const char asks[] = "InspectSharding";
  static const char mlir[] = "mlir", by_hand[] = "manual_computation";
  if (program->format_length != strlen(mlir) || memcmp(program->format, mlir, strlen(mlir)) != 0)
    return ax_pjrt_fail(AX_PJRT_UNIMPLEMENTED, "programs of the format %.*s: only mlir", (int)program->format_length, program->format);
  if (!kept && memmem(program->code, program->code_bytes, asks, strlen(asks)) != NULL) AX_PJRT_TRY(ax_pjrt_inspect(program));
  AX_PJRT_TRY(read_program(e, program, apart));
  e->by_hand = memmem(program->code, program->code_bytes, by_hand, strlen(by_hand)) != NULL;
  e->calls_python = memmem(program->code, program->code_bytes, python_callback, strlen(python_callback)) != NULL;
  AX_PJRT_TRY(ax_pjrt_executable_compile(e, false, &e->made));
  const ax_mesh *mesh = ax_executable_mesh(e->made);
  const int64_t places = mesh != NULL ? ax_mesh_devices(mesh) : 1;
  e->alike = places == 1 && e->device_count > 1;
  if (places != (int64_t)e->device_count && places > 1)
    return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "the module is for %" PRId64 " devices, and the options for %zu", places, e->device_count);
  AX_PJRT_TRY(lay_all(e));
  bool fewer = false;
  AX_PJRT_TRY(keep_useless(e, &fewer));
  if (fewer) {
    ax_executable_release(e->made), e->made = NULL;
    AX_PJRT_TRY(ax_pjrt_executable_compile(e, false, &e->made));
  }
  for (uint32_t i = 0; i < (uint32_t)e->in_count; i++) e->reads = e->reads || ax_executable_is_kept(e->made, i);
  AX_PJRT_TRY(ax_pjrt_layouts_of(e->in, e->in_count, &e->in_layouts));
  AX_PJRT_TRY(ax_pjrt_layouts_of(e->out, e->out_count, &e->out_layouts));
  AX_PJRT_TRY(list_shardings(e->in, e->in_count, &e->in_shardings));
  AX_PJRT_TRY(list_shardings(e->out, e->out_count, &e->out_shardings));
  return list_all(e);
}

/* What the executable is made of, for those who save it. */
static ax_pjrt_error *keep(ax_pjrt_executable *e, const ax_pjrt_program *program, const char *options, size_t option_bytes) {
  e->code = ax_alloc(program->code_bytes + 1);
  e->option_text = ax_alloc(option_bytes + 1);
  if (e->code == NULL || e->option_text == NULL) return ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for a module");
  if (program->code_bytes > 0) memcpy(e->code, program->code, program->code_bytes);
  if (option_bytes > 0) memcpy(e->option_text, options, option_bytes);
  e->code_bytes = program->code_bytes, e->option_bytes = option_bytes;
  return NULL;
}

static ax_pjrt_error *make(ax_pjrt_client *client, const ax_pjrt_program *program, const char *options, size_t option_bytes, bool kept,
                           const bool *apart, ax_pjrt_executable **out) {
  ax_pjrt_executable *e = *out = ax_calloc(1, sizeof *e);
  if (e == NULL) return ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for an executable");
  atomic_init(&e->references, 1);
  pthread_mutex_init(&e->timed_lock, NULL);
  pthread_mutex_init(&e->apart_lock, NULL);
  atomic_fetch_add(&client->references, 1);
  e->client = client;
  ax_pjrt_error *error = ax_pjrt_options_read(options, option_bytes, &e->options);
  if (error == NULL) e->device_count = (size_t)(e->options.replicas * e->options.partitions);
  if (error == NULL) error = check_devices(e);
  if (error == NULL) error = keep(e, program, options, option_bytes);
  if (error == NULL) error = compile_program(e, program, kept, apart);
  if (error == NULL) {
    sign(e, program->code, program->code_bytes, options, option_bytes);
    return NULL;
  }
  ax_pjrt_executable_release(e);
  *out = NULL;
  return error;
}

ax_pjrt_error *ax_pjrt_executable_of(ax_pjrt_client *client, const ax_pjrt_program *program, const char *options, size_t option_bytes,
                                     bool kept, ax_pjrt_executable **out) {
  return make(client, program, options, option_bytes, kept, NULL, out);
}

/* --- Arguments that devices have by themselves --- */

static bool covers(const ax_pjrt_executable *e, const bool *apart) {
  bool all = true;
  for (size_t i = 0; i < e->in_count; i++) all = all && (!apart[i] || e->asked_apart[i]);
  return all;
}

/* One that takes what the last one took so, and these. */
static ax_pjrt_error *make_apart(ax_pjrt_executable *e, const bool *apart) {
  static const char mlir[] = "mlir";
  ax_pjrt_program program = {.code = e->code, .code_bytes = e->code_bytes, .format = mlir, .format_length = strlen(mlir)};
  bool *all = ax_calloc(e->in_count + 1, sizeof all[0]);
  ax_pjrt_executable *made;
  if (all == NULL) return ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory");
  for (size_t i = 0; i < e->in_count; i++) all[i] = apart[i] || (e->apart != NULL && e->apart->asked_apart[i]);
  ax_pjrt_error *error = make(e->client, &program, e->option_text, e->option_bytes, true, all, &made);
  if (error != NULL) {
    ax_free(all);
    return error;
  }
  made->asked_apart = all;
  ax_pjrt_executable_release(e->apart);
  e->apart = made;
  return NULL;
}

ax_pjrt_error *ax_pjrt_executable_apart(ax_pjrt_executable *e, const bool *apart, ax_pjrt_executable **out) {
  pthread_mutex_lock(&e->apart_lock);
  ax_pjrt_error *error = e->apart != NULL && covers(e->apart, apart) ? NULL : make_apart(e, apart);
  *out = error == NULL ? e->apart : NULL;
  if (error == NULL) atomic_fetch_add(&e->apart->references, 1);
  pthread_mutex_unlock(&e->apart_lock);
  return error;
}

ax_pjrt_error *ax_pjrt_executable_load(ax_pjrt_executable *e, ax_pjrt_loaded_executable **out) {
  ax_pjrt_loaded_executable *loaded = *out = ax_calloc(1, sizeof *loaded);
  const size_t count = e->device_count;
  if (loaded != NULL) {
    loaded->executable = e;
    loaded->devices = e->options.portable ? NULL : ax_alloc(count * sizeof loaded->devices[0]);
    loaded->ids = ax_alloc(count * sizeof loaded->ids[0]);
  }
  if (loaded == NULL || loaded->ids == NULL || (loaded->devices == NULL && !e->options.portable)) {
    if (loaded != NULL) ax_free(loaded->devices), ax_free(loaded->ids);
    ax_free(loaded);
    *out = NULL;
    ax_pjrt_executable_release(e);
    return ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for an executable");
  }
  for (size_t i = 0; i < count; i++) {
    const int64_t id = e->options.devices != NULL ? e->options.devices[i] : (int64_t)i;
    if (loaded->devices != NULL) loaded->devices[i] = e->client->device_list[id];
    loaded->ids[i] = (ax_pjrt_logical_id){(int)((int64_t)i / e->options.partitions), (int)((int64_t)i % e->options.partitions)};
  }
  return NULL;
}

ax_pjrt_error *ax_pjrt_do_client_compile(ax_pjrt_client_compile_args *args) {
  ax_pjrt_executable *e;
  args->value = NULL;
  AX_PJRT_TRY(ax_pjrt_executable_of(args->of, args->program, args->options, args->option_bytes, false, &e));
  return ax_pjrt_executable_load(e, &args->value);
}

/* --- Executables --- */

ax_pjrt_error *ax_pjrt_do_executable_destroy(ax_pjrt_executable_destroy_args *args) {
  ax_pjrt_executable_release(args->of);
  return NULL;
}

AX_PJRT_GIVE_TEXT(executable_name, args->of->name)
AX_PJRT_GIVE_VALUE(executable_replicas, (size_t)args->of->options.replicas)
AX_PJRT_GIVE_VALUE(executable_partitions, (size_t)args->of->options.partitions)
AX_PJRT_GIVE_VALUE(executable_outputs, args->of->out_count)
AX_PJRT_GIVE_VALUE(executable_code_bytes, -1) /* not known: executables share machine code */
AX_PJRT_GIVE_TEXT(executable_fingerprint, args->of->fingerprint)
AX_PJRT_GIVE_LIST(executable_output_element_types, args->of->elements, args->of->out_count)

ax_pjrt_error *ax_pjrt_do_executable_output_dimensions(ax_pjrt_executable_output_dimensions_args *args) {
  args->count = args->of->out_count;
  args->dims = args->of->dims;
  args->ranks = args->of->ranks;
  return NULL;
}

ax_pjrt_error *ax_pjrt_do_executable_output_memory_kinds(ax_pjrt_executable_output_memory_kinds_args *args) {
  args->count = args->of->out_count;
  args->texts = args->of->kinds + args->of->in_count;
  args->lengths = args->of->kind_lengths + args->of->in_count;
  return NULL;
}

ax_pjrt_error *ax_pjrt_do_executable_parameter_memory_kinds(ax_pjrt_executable_parameter_memory_kinds_args *args) {
  args->count = args->of->in_count;
  args->texts = args->of->kinds;
  args->lengths = args->of->kind_lengths;
  return NULL;
}

/* As the executable is made: sums that stay in parts leave loops. */
static ax_status text_of(const ax_pjrt_executable *e, char **out) {
  ax_program *laid, *left = NULL;
  if (!e->sums_stay) return ax_program_stablehlo(e->program, out);
  *out = NULL;
  AX_TRY(ax_program_partition_plain(e->program, &laid));
  ax_status status = ax_sums_leave_loops(ax_partitioned_of(laid).body, &left);
  if (status == AX_OK) status = ax_program_stablehlo(left, out);
  ax_program_release(left);
  ax_program_release(laid);
  return status;
}

/* What each device runs, as StableHLO. A value of which devices have parts by themselves has one more dimension there. */
ax_pjrt_error *ax_pjrt_do_executable_optimized_program(ax_pjrt_executable_optimized_program_args *args) {
  static const char mlir[] = "mlir";
  char *text;
  AX_PJRT_TRY(ax_pjrt_status(text_of(args->of, &text)));
  const size_t count = strlen(text);
  const bool fits = args->program->code != NULL && args->program->code_bytes >= count;
  if (fits) memcpy(args->program->code, text, count);
  ax_string_free(text);
  if (args->program->code != NULL && !fits) return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "the program has %zu bytes", count);
  args->program->code_bytes = count;
  args->program->format = mlir;
  args->program->format_length = strlen(mlir);
  return NULL;
}

ax_pjrt_error *ax_pjrt_do_executable_memory_stats(ax_pjrt_executable_memory_stats_args *args) {
  ax_memory memory;
  AX_PJRT_TRY(ax_pjrt_status(ax_executable_memory(args->of->made, &memory)));
  const ax_memory_bytes *device = &memory.device;
  args->device = (ax_pjrt_memory_use){.arguments = (int64_t)device->arguments,
                                      .outputs = (int64_t)device->results,
                                      .temporaries = (int64_t)(device->kept + device->scratch + device->constants)};
  args->host = (ax_pjrt_memory_use){0};
  const int64_t total = args->device.arguments + args->device.outputs + args->device.temporaries;
  int64_t *const rest[] = {&args->peak, &args->total, &args->allocated, &args->indefinite, &args->peak_unpadded};
  for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++)
    if ((size_t)((char *)(rest[i] + 1) - (char *)args) <= args->struct_size) *rest[i] = rest[i] == &args->indefinite ? 0 : total;
  return NULL;
}

static ax_pjrt_named cost_of(const char *name, double number) {
  return (ax_pjrt_named){.struct_size = sizeof(ax_pjrt_named), .name = name, .name_length = strlen(name), .kind = AX_PJRT_FLOAT,
                         .number = (float)number, .count = 1};
}

static ax_pjrt_error *count_costs(ax_pjrt_executable *e) {
  ax_cost cost;
  AX_PJRT_TRY(ax_pjrt_status(ax_executable_cost(e->made, &cost)));
  e->costs[0] = cost_of("flops", cost.flops);
  e->costs[1] = cost_of("bytes accessed", cost.bytes);
  e->costs[2] = cost_of("bytes received", cost.received);
  e->cost_count = 3;
  ax_cost_release(&cost);
  return NULL;
}

/* Of a run on one device, by XLA's names where it has any; counted when the first caller asks. */
ax_pjrt_error *ax_pjrt_do_executable_cost_analysis(ax_pjrt_executable_cost_analysis_args *args) {
  static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&counting);
  ax_pjrt_error *error = args->of->cost_count == 0 ? count_costs(args->of) : NULL;
  pthread_mutex_unlock(&counting);
  args->items = args->of->costs;
  args->count = args->of->cost_count;
  return error;
}

/* --- Loaded ones --- */

ax_pjrt_error *ax_pjrt_do_loaded_destroy(ax_pjrt_loaded_destroy_args *args) {
  if (args->of == NULL) return NULL;
  ax_pjrt_executable_release(args->of->executable);
  ax_free(args->of->devices);
  ax_free(args->of->ids);
  ax_free(args->of);
  return NULL;
}

ax_pjrt_error *ax_pjrt_do_loaded_executable(ax_pjrt_loaded_executable_args *args) {
  atomic_fetch_add(&args->of->executable->references, 1);
  args->value = args->of->executable;
  return NULL;
}

AX_PJRT_GIVE_LIST(loaded_addressable_devices, args->of->devices, args->of->devices != NULL ? args->of->executable->device_count : 0)
AX_PJRT_GIVE_LIST(loaded_logical_ids, args->of->ids, args->of->devices != NULL ? args->of->executable->device_count : 0)
AX_PJRT_GIVE_TEXT(loaded_fingerprint, args->of->executable->fingerprint)

ax_pjrt_error *ax_pjrt_do_loaded_delete(ax_pjrt_loaded_delete_args *args) {
  atomic_store(&args->of->deleted, true);
  return NULL;
}

AX_PJRT_GIVE_VALUE(loaded_is_deleted, atomic_load(&args->of->deleted))
