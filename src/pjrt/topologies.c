/* Topologies: which devices there are, without a runtime of the caller's. A topology that is made for itself holds a client with these
   devices, for which programs are compiled ahead of time; a client that runs them loads their modules. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pjrt/pjrt.h"

AX_PJRT_GIVE_TEXT(topology_platform_name, args->of->platform)
AX_PJRT_GIVE_TEXT(topology_platform_version, ax_pjrt_version_text)
AX_PJRT_GIVE_LIST(topology_device_descriptions, args->of->descriptions, args->of->count)
AX_PJRT_GIVE_LIST(topology_attributes, NULL, 0)

/* Of what decides whether a program that was compiled for one topology runs on another. */
ax_pjrt_error *ax_pjrt_do_topology_fingerprint(ax_pjrt_topology_fingerprint_args *args) {
  uint64_t hash = 14695981039346656037u; /* FNV-1a */
  for (const char *c = ax_pjrt_version_text; *c != '\0'; c++) hash = (hash ^ (unsigned char)*c) * 1099511628211u;
  args->value = (hash ^ args->of->count) * 1099511628211u;
  return NULL;
}

/* --- Made for themselves --- */

ax_pjrt_error *ax_pjrt_do_topology_create(ax_pjrt_topology_create_args *args) {
  ax_pjrt_client *client;
  args->value = NULL;
  AX_PJRT_TRY(ax_pjrt_client_of(args->options, args->option_count, &client));
  args->value = &client->topology;
  return NULL;
}

/* Of one that was made for itself: a client's own is not destroyed by callers. */
ax_pjrt_error *ax_pjrt_do_topology_destroy(ax_pjrt_topology_destroy_args *args) {
  if (args->of != NULL) ax_pjrt_client_release(args->of->client);
  return NULL;
}

static const char mark[] = "axle topology of ";

ax_pjrt_error *ax_pjrt_do_topology_serialize(ax_pjrt_topology_serialize_args *args) {
  char text[sizeof mark + 32];
  const int count = snprintf(text, sizeof text, "%s%zu", mark, args->of->count);
  ax_pjrt_held *held = ax_pjrt_held_of((size_t)count);
  if (held == NULL) return ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for a topology");
  memcpy(held->bytes, text, (size_t)count);
  args->bytes = held->bytes, args->count = held->count;
  args->held = held, args->release = ax_pjrt_held_release;
  return NULL;
}

ax_pjrt_error *ax_pjrt_do_topology_deserialize(ax_pjrt_topology_deserialize_args *args) {
  char text[sizeof mark + 32], *end = text;
  ax_pjrt_client *client;
  size_t count = 0;
  args->value = NULL;
  if (args->count > strlen(mark) && args->count < sizeof text && memcmp(args->bytes, mark, strlen(mark)) == 0) {
    memcpy(text, args->bytes, args->count);
    text[args->count] = '\0';
    count = strtoull(text + strlen(mark), &end, 10);
  }
  if (end == text || *end != '\0') return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "these bytes are no topology of Axle's");
  AX_PJRT_TRY(ax_pjrt_client_of_count(count, &client));
  args->value = &client->topology;
  return NULL;
}

/* --- Programs compiled for them --- */

ax_pjrt_error *ax_pjrt_do_compile(ax_pjrt_compile_args *args) {
  ax_pjrt_client *client = args->client != NULL ? args->client : args->of->client;
  return ax_pjrt_executable_of(client, args->program, args->options, args->option_bytes, false, &args->value);
}

ax_pjrt_error *ax_pjrt_do_client_load(ax_pjrt_client_load_args *args) {
  ax_pjrt_executable *e = args->executable;
  args->value = NULL;
  const bool own = args->option_bytes == 0, here = e->client == args->of && own;
  const ax_pjrt_program program = {.struct_size = sizeof program, .code = e->code, .code_bytes = e->code_bytes, .format = "mlir", .format_length = 4};
  if (here) atomic_fetch_add(&e->references, 1);
  else AX_PJRT_TRY(ax_pjrt_executable_of(args->of, &program, own ? e->option_text : args->options, own ? e->option_bytes : args->option_bytes, true, &e));
  return ax_pjrt_executable_load(e, &args->value);
}
