/* Clients, their devices and memories, and the topology, which is the same without a runtime. A client's devices are the places of
   Axle's meshes, which all share one memory; so the three memories of a device are one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/machine.h"
#include "pjrt/pjrt.h"

enum { most_devices = 65536 };

const char *const ax_pjrt_memory_kinds[AX_PJRT_MEMORIES] = {"device", "pinned_host", "unpinned_host"};

/* What the platform is called: "axle", or what the environment says, since JAX asks for some of its rules by the name "cpu". */
static const char *platform_name(void) {
  const char *name = getenv("AXLE_PLATFORM");
  return name != NULL && strcmp(name, "cpu") == 0 ? "cpu" : "axle";
}
const char ax_pjrt_version_text[] = "Axle " AXLE_VERSION;


/* --- What callers hang on memories --- */

struct ax_pjrt_memory_data {
  const void *key;
  void *data;
  void (*release)(void *data);
  struct ax_pjrt_memory_data *next;
};

static void *get_data(ax_pjrt_memory *memory, const void *key) {
  void *found = NULL;
  pthread_mutex_lock(&memory->lock);
  for (struct ax_pjrt_memory_data *d = memory->data; d != NULL; d = d->next)
    if (d->key == key) found = d->data;
  pthread_mutex_unlock(&memory->lock);
  return found;
}

/* What was there under the key goes. Without memory the data is released at once: it is then as if it had not been set. */
static void set_data(ax_pjrt_memory *memory, const void *key, void *data, void (*release)(void *data)) {
  struct ax_pjrt_memory_data *entry = ax_alloc(sizeof *entry), old = {0};
  pthread_mutex_lock(&memory->lock);
  struct ax_pjrt_memory_data *found = memory->data;
  while (found != NULL && found->key != key) found = found->next;
  if (found != NULL) old = *found, found->data = data, found->release = release;
  else if (entry != NULL) *entry = (struct ax_pjrt_memory_data){key, data, release, memory->data}, memory->data = entry;
  pthread_mutex_unlock(&memory->lock);
  if (found != NULL) ax_free(entry);
  else if (entry == NULL && release != NULL) release(data);
  if (old.release != NULL) old.release(old.data);
}

static const ax_pjrt_memory_functions memory_functions = {
    .struct_size = sizeof memory_functions,
    .instance_size = sizeof(ax_pjrt_memory),
    .get_data = get_data,
    .set_data = set_data,
};

/* --- Making --- */

static void free_memory(ax_pjrt_memory *memory) {
  for (struct ax_pjrt_memory_data *d = memory->data, *next; d != NULL; d = next) {
    next = d->next;
    if (d->release != NULL) d->release(d->data);
    ax_free(d);
  }
  pthread_mutex_destroy(&memory->lock);
}

static void make_device(ax_pjrt_client *client, size_t index) {
  ax_pjrt_device *device = &client->devices[index];
  device->client = client;
  device->description.id = (int)index;
  const char *platform = platform_name();
  snprintf(device->description.text, sizeof device->description.text, "%sDevice(id=%zu)", strcmp(platform, "cpu") == 0 ? "Cpu" : "Axle", index);
  snprintf(device->description.debug_text, sizeof device->description.debug_text, "%s:%zu", platform, index);
  for (int k = 0; k < AX_PJRT_MEMORIES; k++) {
    ax_pjrt_memory *memory = &device->memory[k];
    *memory = (ax_pjrt_memory){.functions = &memory_functions, .device = device, .id = (int)index * AX_PJRT_MEMORIES + k, .kind = k};
    snprintf(memory->text, sizeof memory->text, "AxleMemory(id=%d, kind=%s)", memory->id, ax_pjrt_memory_kinds[k]);
    pthread_mutex_init(&memory->lock, NULL);
    device->memories[k] = client->memory_list[index * AX_PJRT_MEMORIES + (size_t)k] = memory;
  }
  client->device_list[index] = device;
  client->topology.descriptions[index] = &device->description;
}

/* Made once: every argument that comes from the host asks for it. */
ax_pjrt_error *ax_pjrt_alone(ax_pjrt_device *device, ax_sharding **out) {
  ax_sharding *none = NULL, *made;
  if ((*out = ax_sharding_retain(atomic_load(&device->alone))) != NULL) return NULL;
  AX_PJRT_TRY(ax_pjrt_status(ax_sharding_single(device->description.id, &made)));
  *out = ax_sharding_retain(made);
  if (!atomic_compare_exchange_strong(&device->alone, &none, made)) ax_sharding_release(made); /* another thread was first */
  return NULL;
}

static void destroy(ax_pjrt_client *client) {
  for (size_t i = 0; client->devices != NULL && i < client->device_count; i++) {
    for (int k = 0; k < AX_PJRT_MEMORIES && client->devices[i].client != NULL; k++) free_memory(&client->devices[i].memory[k]);
    ax_sharding_release(atomic_load(&client->devices[i].alone));
  }
  ax_runtime_release(client->runtime);
  ax_free(client->topology.descriptions);
  ax_free(client->memory_list);
  ax_free(client->device_list);
  ax_free(client->devices);
  ax_free(client);
}

void ax_pjrt_client_release(ax_pjrt_client *client) {
  if (client != NULL && atomic_fetch_sub(&client->references, 1) == 1) destroy(client);
}

static ax_pjrt_error *create(size_t device_count, ax_pjrt_client **out) {
  ax_pjrt_client *client = *out = ax_calloc(1, sizeof *client);
  if (client == NULL) return ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for a client");
  atomic_init(&client->references, 1);
  client->device_count = client->topology.count = device_count;
  client->topology.platform = platform_name();
  client->topology.client = client;
  client->devices = ax_calloc(device_count, sizeof client->devices[0]);
  client->device_list = ax_calloc(device_count, sizeof client->device_list[0]);
  client->memory_list = ax_calloc(device_count, AX_PJRT_MEMORIES * sizeof client->memory_list[0]);
  client->topology.descriptions = ax_calloc(device_count, sizeof client->topology.descriptions[0]);
  if (client->devices == NULL || client->device_list == NULL || client->memory_list == NULL || client->topology.descriptions == NULL)
    return ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for %zu devices", device_count);
  for (size_t i = 0; i < device_count; i++) make_device(client, i);
  /* Callers of PJRT do other things than work on runs: a thread for each processor, beside the caller's. */
  const ax_runtime_options options = {.workers = ax_machine_threads() + 1, .run_workers = ax_machine_threads(), .plugin = ""};
  return ax_pjrt_status(ax_runtime_create(&options, &client->runtime));
}

/* By AXLE_DEVICES, else by XLA's flag for its own devices on processors, which scripts have, else one. */
static ax_pjrt_error *count_in_environment(int64_t *out) {
  static const char flag[] = "--xla_force_host_platform_device_count=";
  const char *text = getenv("AXLE_DEVICES"), *flags = getenv("XLA_FLAGS");
  const bool is_own = text != NULL && text[0] != '\0';
  char *end = NULL;
  *out = 1;
  if (!is_own) text = NULL;
  for (const char *at = flags; !is_own && at != NULL && (at = strstr(at, flag)) != NULL; at = text) text = at + strlen(flag); /* the last counts */
  if (text == NULL) return NULL;
  *out = strtoll(text, &end, 10);
  if (end != text && (*end == '\0' || (!is_own && strchr(" \t\n", *end) != NULL))) return NULL;
  return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "%s is no number: %s", is_own ? "AXLE_DEVICES" : flag, text);
}

/* From the options, else from the environment. */
static ax_pjrt_error *count_devices(const ax_pjrt_named *options, size_t option_count, size_t *out) {
  static const char name[] = "num_devices";
  int64_t count;
  AX_PJRT_TRY(count_in_environment(&count));
  for (size_t i = 0; i < option_count; i++) {
    const ax_pjrt_named *option = &options[i];
    if (option->name_length != strlen(name) || memcmp(option->name, name, strlen(name)) != 0) continue;
    if (option->kind != AX_PJRT_INTEGER) return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "the option num_devices is no integer");
    count = option->integer;
  }
  if (count < 1 || count > most_devices)
    return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "%" PRId64 " devices: there may be 1 to %d", count, (int)most_devices);
  *out = (size_t)count;
  return NULL;
}

ax_pjrt_error *ax_pjrt_client_of_count(size_t device_count, ax_pjrt_client **out) {
  *out = NULL;
  if (device_count < 1 || device_count > most_devices)
    return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "%zu devices: there may be 1 to %d", device_count, (int)most_devices);
  ax_pjrt_error *error = create(device_count, out);
  if (error != NULL && *out != NULL) destroy(*out);
  if (error != NULL) *out = NULL;
  return error;
}

ax_pjrt_error *ax_pjrt_client_of(const ax_pjrt_named *options, size_t option_count, ax_pjrt_client **out) {
  size_t count = 1;
  *out = NULL;
  AX_PJRT_TRY(count_devices(options, option_count, &count));
  return ax_pjrt_client_of_count(count, out);
}

ax_pjrt_error *ax_pjrt_do_client_create(ax_pjrt_client_create_args *args) {
  return ax_pjrt_client_of(args->options, args->option_count, &args->client);
}

ax_pjrt_error *ax_pjrt_do_client_destroy(ax_pjrt_client_destroy_args *args) {
  ax_pjrt_client_release(args->of);
  return NULL;
}

/* --- Clients --- */

AX_PJRT_GIVE_TEXT(client_platform_name, args->of->topology.platform)
AX_PJRT_GIVE_TEXT(client_platform_version, ax_pjrt_version_text)
AX_PJRT_GIVE_VALUE(client_process_index, 0)
AX_PJRT_GIVE_VALUE(client_topology, &args->of->topology)
AX_PJRT_GIVE_LIST(client_devices, args->of->device_list, args->of->device_count)
AX_PJRT_GIVE_LIST(client_addressable_devices, args->of->device_list, args->of->device_count)
AX_PJRT_GIVE_LIST(client_addressable_memories, args->of->memory_list, args->of->device_count * AX_PJRT_MEMORIES)

static ax_pjrt_error *find(const ax_pjrt_client *client, int id, ax_pjrt_device **out) {
  *out = NULL;
  if (id < 0 || (size_t)id >= client->device_count)
    return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "there is no device %d: there are %zu", id, client->device_count);
  *out = client->device_list[id];
  return NULL;
}

ax_pjrt_error *ax_pjrt_do_client_lookup_device(ax_pjrt_client_lookup_device_args *args) { return find(args->of, args->id, &args->value); }

ax_pjrt_error *ax_pjrt_do_client_lookup_addressable_device(ax_pjrt_client_lookup_addressable_device_args *args) {
  return find(args->of, args->id, &args->value);
}

ax_pjrt_error *ax_pjrt_do_client_default_assignment(ax_pjrt_client_default_assignment_args *args) {
  const int64_t count = (int64_t)args->replicas * args->partitions;
  if (args->replicas < 1 || args->partitions < 1 || count > (int64_t)args->of->device_count)
    return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "%d replicas of %d partitions on %zu devices", args->replicas, args->partitions,
                        args->of->device_count);
  if ((int64_t)args->count < count) return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "there is no room for %" PRId64 " ids", count);
  for (int64_t i = 0; i < count; i++) args->assignment[i] = (int)i;
  return NULL;
}

/* --- Devices --- */

AX_PJRT_GIVE_VALUE(device_description_id, args->of->id)
AX_PJRT_GIVE_VALUE(device_description_process_index, 0)
AX_PJRT_GIVE_LIST(device_description_attributes, NULL, 0)
AX_PJRT_GIVE_TEXT(device_description_kind, platform_name())
AX_PJRT_GIVE_TEXT(device_description_debug_string, args->of->debug_text)
AX_PJRT_GIVE_TEXT(device_description_to_string, args->of->text)
AX_PJRT_GIVE_VALUE(device_description, &args->of->description)
AX_PJRT_GIVE_VALUE(device_is_addressable, true)
AX_PJRT_GIVE_VALUE(device_local_hardware_id, args->of->description.id)
AX_PJRT_GIVE_LIST(device_addressable_memories, args->of->memories, AX_PJRT_MEMORIES)
AX_PJRT_GIVE_VALUE(device_default_memory, &args->of->memory[0])

/* Callers take an error for "not known"; what the runtime holds is no one device's. */
ax_pjrt_error *ax_pjrt_do_device_memory_stats(ax_pjrt_device_memory_stats_args *args) {
  (void)args;
  return ax_pjrt_fail(AX_PJRT_UNIMPLEMENTED, "devices have no memory of their own: they share the process's");
}

static void release_nothing(ax_pjrt_held *held) { (void)held; }

ax_pjrt_error *ax_pjrt_do_device_attributes(ax_pjrt_device_attributes_args *args) {
  args->items = NULL;
  args->count = 0;
  args->held = NULL;
  args->release = release_nothing; /* callers want one */
  return NULL;
}

/* --- Memories --- */

AX_PJRT_GIVE_VALUE(memory_id, args->of->id)
AX_PJRT_GIVE_TEXT(memory_kind, ax_pjrt_memory_kinds[args->of->kind])
AX_PJRT_GIVE_VALUE(memory_kind_id, args->of->kind)
AX_PJRT_GIVE_TEXT(memory_debug_string, args->of->text)
AX_PJRT_GIVE_TEXT(memory_to_string, args->of->text)

ax_pjrt_error *ax_pjrt_do_memory_addressable_by_devices(ax_pjrt_memory_addressable_by_devices_args *args) {
  ax_pjrt_device *device = args->of->device;
  args->items = &device->client->device_list[device->description.id];
  args->count = 1;
  return NULL;
}
