/* What libFuzzer calls: bytes that callers of the plugin give: compile options, topologies, saved executables (the digest at their end is made
   right, so that what is behind it is read). Built with clang and -DAXLE_FUZZ=ON. It needs saved executables to start from: a byte of 2, and what
   JAX saves from "AXLE-PJRT" on, without the 32 bytes of the digest. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/digest.h"
#include "pjrt/pjrt.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void end(ax_pjrt_error *error) { ax_pjrt_do_error_destroy(&(ax_pjrt_error_destroy_args){.struct_size = sizeof(ax_pjrt_error_destroy_args), .of = error}); }

static void read_options(const char *bytes, size_t count) {
  ax_pjrt_options options;
  ax_pjrt_error *error = ax_pjrt_options_read(bytes, count, &options);
  if (error == NULL) ax_pjrt_options_free(&options);
  end(error);
}

static void read_topology(const char *bytes, size_t count) {
  ax_pjrt_topology_deserialize_args args = {.struct_size = sizeof args, .bytes = bytes, .count = count};
  end(ax_pjrt_do_topology_deserialize(&args));
  end(ax_pjrt_do_topology_destroy(&(ax_pjrt_topology_destroy_args){.struct_size = sizeof(ax_pjrt_topology_destroy_args), .of = args.value}));
}

static void load(const char *bytes, size_t count) {
  static ax_pjrt_client *client;
  ax_digester digester;
  if (client == NULL) end(ax_pjrt_client_of_count(4, &client));
  char *copy = ax_alloc(count + sizeof(ax_digest));
  if (client == NULL || copy == NULL) return;
  memcpy(copy, bytes, count);
  ax_digester_init(&digester);
  ax_digester_add(&digester, copy, count);
  const ax_digest digest = ax_digester_finish(&digester);
  memcpy(copy + count, digest.bytes, sizeof digest.bytes);
  ax_pjrt_executable_deserialize_and_load_args args = {.struct_size = sizeof args, .of = client, .bytes = copy, .count = count + sizeof digest};
  end(ax_pjrt_do_executable_deserialize_and_load(&args));
  end(ax_pjrt_do_loaded_destroy(&(ax_pjrt_loaded_destroy_args){.struct_size = sizeof(ax_pjrt_loaded_destroy_args), .of = args.value}));
  ax_free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
  static void (*const readers[])(const char *bytes, size_t count) = {read_options, read_topology, load};
  if (count > 0) readers[bytes[0] % 3]((const char *)bytes + 1, count - 1);
  return 0;
}
