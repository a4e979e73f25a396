/* Opening a plugin: the library, its table of functions, the version of the interface, and a client.

   A plugin is never closed again: XLA's keep threads and handlers that cannot be taken away. So each is set up once in a process, and the
   list of those that were is the process's. */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/client.h"
#include "hlo/dialect.h"

/* --- The library --- */

typedef struct opened {
  const ax_pjrt_api *api;
  struct opened *next;
} opened;
static opened *all_opened; /* guarded by `opening` */
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

/* Must be called once before all other functions. */
static ax_status set_up(const ax_pjrt_api *api) {
  ax_pjrt_plugin_initialize_args args = {.struct_size = sizeof args};
  const opened *known = all_opened;
  while (known != NULL && known->api != api) known = known->next;
  if (known != NULL) return AX_OK;
  opened *entry = malloc(sizeof *entry); /* it stays, however the allocator of arrays changes */
  if (entry == NULL) return ax_out_of_memory(sizeof *entry);
  const ax_status status = AX_CLIENT_CALL(api, plugin_initialize, &args);
  if (status != AX_OK) {
    free(entry);
    return status;
  }
  *entry = (opened){api, all_opened};
  all_opened = entry;
  return AX_OK;
}

static ax_status check_version(const ax_pjrt_api *api) {
  const ax_pjrt_version *version = &api->version;
  if (!AX_PJRT_HAS(api, version) || version->major != AX_PJRT_MAJOR || version->minor < AX_CLIENT_LEAST_MINOR)
    return ax_error(AX_UNAVAILABLE, "it has version %d.%d of PJRT's interface, and %d.%d or later, before %d.0, is needed",
                    AX_PJRT_HAS(api, version) ? version->major : 0, AX_PJRT_HAS(api, version) ? version->minor : 0, AX_PJRT_MAJOR,
                    AX_CLIENT_LEAST_MINOR, AX_PJRT_MAJOR + 1);
  if (!AX_CLIENT_HAS(api, error_destroy) || !AX_CLIENT_HAS(api, error_message))
    return ax_error(AX_UNAVAILABLE, "its errors have no messages");
  return AX_OK;
}

static ax_status open_library(const char *path, const ax_pjrt_api **out) {
  const ax_pjrt_api *(*get)(void) = NULL;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return ax_error(AX_UNAVAILABLE, "it cannot be opened: %s", dlerror());
  void *found = dlsym(library, "GetPjrtApi");
  if (found == NULL) {
    dlclose(library);
    return ax_error(AX_UNAVAILABLE, "it has no GetPjrtApi, so it is no plugin");
  }
  memcpy(&get, &found, sizeof found);
  *out = get();
  if (*out == NULL) return ax_error(AX_UNAVAILABLE, "GetPjrtApi gives nothing");
  AX_TRY(check_version(*out));
  pthread_mutex_lock(&opening);
  const ax_status status = set_up(*out);
  pthread_mutex_unlock(&opening);
  return status;
}

/* --- What the plugin says of itself --- */

static const ax_pjrt_named *find_named(const ax_pjrt_plugin_attributes_args *all, const char *name, size_t count) {
  const char *at = (const char *)all->items; /* entries are as long as the plugin's version has them */
  for (size_t i = 0; i < all->count; i++) {
    const ax_pjrt_named *item = (const ax_pjrt_named *)(const void *)at;
    if (item->name_length == strlen(name) && memcmp(item->name, name, item->name_length) == 0 && item->kind == AX_PJRT_INTEGERS &&
        item->count == count)
      return item;
    at += item->struct_size > sizeof *item ? item->struct_size : sizeof *item;
  }
  return NULL;
}

static int compare_versions(const int64_t *a, const int64_t *b) {
  for (int i = 0; i < 3; i++)
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  return 0;
}

/* Sets the newest version of VHLO that the plugin and Axle's writer both know. */
static void choose_version(ax_client *client) {
  static const int64_t own[3] = {AX_HLO_MAJOR(AX_HLO_NEWEST), AX_HLO_MINOR(AX_HLO_NEWEST), 0};
  ax_pjrt_plugin_attributes_args args = {.struct_size = sizeof args};
  if (AX_CLIENT_CALL(client->api, plugin_attributes, &args) != AX_OK) return;
  const ax_pjrt_named *current = find_named(&args, "stablehlo_current_version", 3),
                      *least = find_named(&args, "stablehlo_minimum_version", 3);
  if (current == NULL) return;
  const int64_t *newest = compare_versions(current->integers, own) < 0 ? current->integers : own;
  if (least != NULL && compare_versions(newest, least->integers) < 0) return;
  snprintf(client->version, sizeof client->version, "%" PRId64 ".%" PRId64 ".%" PRId64, newest[0], newest[1], newest[2]);
}

/* --- The client --- */

static bool is_for_compiler(const char *word) { return strncmp(word, "xla_", 4) == 0; }

/* Integers with a comma behind each but the last, of which there may be one too ("0,"): how many; 0: it is no such list. */
static size_t integers_of(const char *value, int64_t *out) {
  size_t count = 0;
  while (*value != '\0') {
    char *end;
    out[count] = strtoll(value, &end, 10);
    if (end == value || (*end != ',' && *end != '\0')) return 0;
    if (*end == '\0' && count == 0) return 0;
    value = *end == ',' ? end + 1 : end;
    count++;
  }
  return count;
}

/* An option's value is a truth, an integer, several of them, a number or a text, as it reads. integers: room for the word's. */
static ax_pjrt_named option_of(const char *word, int64_t *integers) {
  const char *value = strchr(word, '=') + 1;
  char *whole, *end;
  ax_pjrt_named out = {.struct_size = sizeof out, .name = word, .name_length = (size_t)(value - 1 - word), .count = 1};
  const long long integer = strtoll(value, &whole, 10);
  const double number = strtod(value, &end);
  const size_t several = integers_of(value, integers);
  if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0) {
    out.kind = AX_PJRT_BOOL;
    out.truth = value[0] == 't';
  } else if (*value != '\0' && *whole == '\0') {
    out.kind = AX_PJRT_INTEGER;
    out.integer = integer;
  } else if (several > 0) {
    out.kind = AX_PJRT_INTEGERS;
    out.integers = integers;
    out.count = several;
  } else if (strchr(".0123456789+-", value[0]) != NULL && end != value && *end == '\0') { /* not "nan" or "infinity" */
    out.kind = AX_PJRT_FLOAT;
    out.number = (float)number;
  } else {
    out.kind = AX_PJRT_STRING;
    out.string = value;
    out.count = strlen(value);
  }
  return out;
}

/* options, integers: room for as many as there are words, and characters in them. */
static ax_status create_with(ax_client *client, const char *words, ax_pjrt_named *options, int64_t *integers) {
  size_t count = 0;
  locale_t saved; /* numbers have points */
  AX_TRY(ax_text_locale_enter(&saved));
  for (const char *word = words; *word != '\0'; word += strlen(word) + 1)
    if (!is_for_compiler(word)) options[count++] = option_of(word, integers + (word - words));
  ax_text_locale_leave(saved);
  ax_pjrt_client_create_args args = {.struct_size = sizeof args, .options = options, .option_count = count};
  AX_TRY(AX_CLIENT_CALL(client->api, client_create, &args));
  client->client = args.client;
  ax_pjrt_client_addressable_devices_args devices = {.struct_size = sizeof devices, .of = client->client};
  AX_TRY(AX_CLIENT_CALL(client->api, client_addressable_devices, &devices));
  client->devices = devices.items;
  client->device_count = (uint32_t)devices.count;
  return client->device_count > 0 ? AX_OK : ax_error(AX_UNAVAILABLE, "the plugin has no devices");
}

/* What is not for the compiler has gone to the client. */
static void keep_overrides(ax_client *client) {
  char *to = client->overrides;
  for (const char *word = client->overrides, *next; *word != '\0'; word = next) {
    const size_t bytes = strlen(word) + 1;
    next = word + bytes;
    if (!is_for_compiler(word)) continue;
    memmove(to, word, bytes);
    to += bytes;
  }
  *to = '\0';
}

static ax_status start(ax_client *client, const char *path, const char *options) {
  uint32_t names;
  AX_TRY(ax_client_words(options, &client->overrides, &names));
  AX_TRY(open_library(path, &client->api));
  const size_t characters = options != NULL ? strlen(options) + 2 : 2, bytes = (names + 1) * sizeof(ax_pjrt_named);
  ax_pjrt_named *given = ax_calloc(1, bytes + characters * sizeof(int64_t));
  if (given == NULL) return ax_out_of_memory(bytes);
  const ax_status status = create_with(client, client->overrides, given, (int64_t *)(void *)&given[names + 1]);
  ax_free(given);
  AX_TRY(status);
  keep_overrides(client);
  choose_version(client);
  return AX_OK;
}

ax_status ax_client_create(const char *path, const char *options, ax_client **out) {
  ax_client *client = *out = ax_calloc(1, sizeof *client);
  if (client == NULL) return ax_out_of_memory(sizeof *client);
  pthread_mutex_init(&client->launch, NULL);
  ax_status status = start(client, path, options);
  if (status == AX_OK) return AX_OK;
  ax_client_destroy(client);
  *out = NULL;
  return ax_error_context(status, "the plugin %s: ", path);
}

void ax_client_destroy(ax_client *client) {
  if (client == NULL) return;
  ax_pjrt_client_destroy_args args = {.struct_size = sizeof args, .of = client->client};
  if (client->client != NULL) (void)!AX_CLIENT_CALL(client->api, client_destroy, &args);
  pthread_mutex_destroy(&client->launch);
  ax_free(client->overrides);
  ax_free(client);
}

/* --- Described --- */

bool ax_client_is(const ax_client *client, const char *platform) {
  ax_pjrt_client_platform_name_args name = {.struct_size = sizeof name, .of = client->client};
  return AX_CLIENT_CALL(client->api, client_platform_name, &name) == AX_OK && name.length == strlen(platform) &&
         memcmp(name.text, platform, name.length) == 0;
}

static ax_status describe_device(const ax_client *client, uint32_t index, ax_text *text) {
  ax_pjrt_device_description_args of = {.struct_size = sizeof of, .of = client->devices[index]};
  AX_TRY(AX_CLIENT_CALL(client->api, device_description, &of));
  ax_pjrt_device_description_kind_args kind = {.struct_size = sizeof kind, .of = of.value};
  ax_pjrt_device_description_to_string_args string = {.struct_size = sizeof string, .of = of.value};
  AX_TRY(AX_CLIENT_CALL(client->api, device_description_kind, &kind));
  AX_TRY(AX_CLIENT_CALL(client->api, device_description_to_string, &string));
  ax_text_add(text, "  %-5u %.*s, %.*s\n", index, (int)kind.length, kind.text, (int)string.length, string.text);
  return AX_OK;
}

ax_status ax_client_describe(const ax_client *client, ax_text *text) {
  const ax_pjrt_api *api = client->api;
  ax_pjrt_client_platform_name_args name = {.struct_size = sizeof name, .of = client->client};
  ax_pjrt_client_platform_version_args version = {.struct_size = sizeof version, .of = client->client};
  AX_TRY(AX_CLIENT_CALL(api, client_platform_name, &name));
  AX_TRY(AX_CLIENT_CALL(api, client_platform_version, &version));
  ax_text_add(text, "platform   %.*s\nversion    %.*s\ninterface  PJRT %d.%d, modules as %s%s\ndevices    %u\n", (int)name.length,
              name.text, (int)version.length, version.text, api->version.major, api->version.minor,
              client->version[0] != '\0' ? "VHLO " : "text", client->version, client->device_count);
  for (uint32_t i = 0; i < client->device_count; i++) AX_TRY(describe_device(client, i, text));
  return text->failed ? ax_out_of_memory(0) : AX_OK;
}
