/* Options: the caller's words, and XLA's compile options, by protobuf-c (messages.proto). */
#include <string.h>

#include "client/client.h"
#include "client/messages.pb-c.h"

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n'; }

ax_status ax_client_words(const char *options, char **out, uint32_t *names) {
  const char *at = options != NULL ? options : "";
  char *to = *out = ax_alloc(strlen(at) + 2);
  *names = 0;
  if (to == NULL) return ax_out_of_memory(strlen(at) + 2);
  for (;;) {
    while (is_space(*at)) at++;
    if (*at == '\0') break;
    const char *begin = at;
    while (*at != '\0' && !is_space(*at)) at++;
    const char *equals = memchr(begin, '=', (size_t)(at - begin));
    if (equals == NULL || equals == begin)
      return ax_error(AX_INVALID_ARGUMENT, "an option of the plugin is NAME=VALUE, and not \"%.*s\"", (int)(at - begin), begin);
    memcpy(to, begin, (size_t)(at - begin));
    to += at - begin;
    *to++ = '\0';
    ++*names;
  }
  *to = '\0';
  return AX_OK;
}

typedef AxPjrtProto__CompileOptionsProto__EnvOptionOverridesEntry override_message;
typedef struct override {
  override_message entry;
  AxPjrtProto__OptionOverrideProto value;
} override;

/* XLA parses a text as the option's kind wants it, but truths. `word` is cut at its equals sign. */
static void fill_override(override *o, char *word) {
  char *equals = strchr(word, '=');
  *equals = '\0';
  ax_pjrt_proto__compile_options_proto__env_option_overrides_entry__init(&o->entry);
  ax_pjrt_proto__option_override_proto__init(&o->value);
  const bool truth = strcmp(equals + 1, "true") == 0;
  if (truth || strcmp(equals + 1, "false") == 0) {
    o->value.value_case = AX_PJRT_PROTO__OPTION_OVERRIDE_PROTO__VALUE_BOOL_FIELD;
    o->value.bool_field = truth;
  } else {
    o->value.value_case = AX_PJRT_PROTO__OPTION_OVERRIDE_PROTO__VALUE_STRING_FIELD;
    o->value.string_field = equals + 1;
  }
  o->entry.key = word;
  o->entry.value = &o->value;
}

typedef struct lists { /* what the message points to */
  override *overrides;
  override_message **entries;
  AxPjrtProto__ComputationDevice *columns;
  AxPjrtProto__ComputationDevice **column_list;
  char *words;
} lists;

static bool make_lists(const ax_client *client, uint32_t devices, lists *l, size_t *override_count) {
  size_t bytes = 1;
  *override_count = 0;
  for (const char *word = client->overrides; *word != '\0'; word += strlen(word) + 1) {
    bytes += strlen(word) + 1;
    ++*override_count;
  }
  l->overrides = ax_calloc(*override_count + 1, sizeof l->overrides[0]);
  l->entries = ax_calloc(*override_count + 1, sizeof(void *));
  l->columns = ax_calloc(devices, sizeof l->columns[0]);
  l->column_list = ax_calloc(devices, sizeof(void *));
  l->words = ax_alloc(bytes);
  if (l->words != NULL) memcpy(l->words, client->overrides, bytes);
  return l->overrides != NULL && l->entries != NULL && l->columns != NULL && l->column_list != NULL && l->words != NULL;
}

static void free_lists(lists *l) {
  ax_free(l->overrides);
  ax_free(l->entries);
  ax_free(l->columns);
  ax_free(l->column_list);
  ax_free(l->words);
}

static void fill_assignment(AxPjrtProto__DeviceAssignmentProto *to, uint32_t devices, const int64_t *ids, lists *l) {
  ax_pjrt_proto__device_assignment_proto__init(to);
  for (uint32_t p = 0; p < devices; p++) {
    ax_pjrt_proto__computation_device__init(&l->columns[p]);
    l->columns[p].n_replica_device_ids = 1;
    l->columns[p].replica_device_ids = (int64_t *)(uintptr_t)&ids[p]; /* only read */
    l->column_list[p] = &l->columns[p];
  }
  to->replica_count = 1;
  to->computation_count = (int32_t)devices;
  to->n_computation_devices = devices;
  to->computation_devices = l->column_list;
}

/* Modules are of one device, marked as laid out by hand: XLA's partitioner must be on for more than one partition, and leaves them alone. */
static ax_status pack(uint32_t devices, const int64_t *ids, bool shardy, lists *l, size_t override_count, char **bytes, size_t *count) {
  AxPjrtProto__DeviceAssignmentProto assignment;
  AxPjrtProto__ExecutableBuildOptionsProto build = AX_PJRT_PROTO__EXECUTABLE_BUILD_OPTIONS_PROTO__INIT;
  AxPjrtProto__CompileOptionsProto message = AX_PJRT_PROTO__COMPILE_OPTIONS_PROTO__INIT;
  fill_assignment(&assignment, devices, ids, l);
  build.device_ordinal = -1;
  build.num_replicas = 1;
  build.num_partitions = devices;
  build.use_spmd_partitioning = devices > 1;
  build.use_shardy_partitioner = shardy;
  build.device_assignment = &assignment;
  message.executable_build_options = &build;
  char *word = l->words;
  for (size_t i = 0; i < override_count; i++) {
    char *next = word + strlen(word) + 1;
    fill_override(&l->overrides[i], word);
    l->entries[i] = &l->overrides[i].entry;
    word = next;
  }
  message.n_env_option_overrides = override_count;
  message.env_option_overrides = l->entries;
  *count = ax_pjrt_proto__compile_options_proto__get_packed_size(&message);
  *bytes = ax_alloc(*count + 1);
  if (*bytes == NULL) return ax_out_of_memory(*count);
  ax_pjrt_proto__compile_options_proto__pack(&message, (uint8_t *)*bytes);
  return AX_OK;
}

ax_status ax_client_options(const ax_client *client, uint32_t devices, const int64_t *ids, bool shardy, char **bytes, size_t *count) {
  lists l = {0};
  size_t override_count;
  *bytes = NULL;
  const ax_status status = make_lists(client, devices, &l, &override_count) ? pack(devices, ids, shardy, &l, override_count, bytes, count)
                                                                            : ax_out_of_memory(0);
  free_lists(&l);
  return status;
}
