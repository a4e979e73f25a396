/* --plugin: another compiler and other devices. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/runtime.h"
#include "cli.h"
#include "client/client.h"

ax_status plugin_take(plugin_choice *plugin, const char *argument) {
  if (strchr(argument, '=') == NULL || strpbrk(argument, " \t\n") != NULL)
    return ax_error(AX_INVALID_ARGUMENT, "--plugin-option: expected NAME=VALUE, without spaces, got \"%s\"", argument);
  ax_text_add(&plugin->options, "%s ", argument);
  return plugin->options.failed ? ax_out_of_memory(0) : AX_OK;
}

ax_status plugin_apply(const plugin_choice *plugin, ax_runtime_options *options) {
  if (plugin->path == NULL && plugin->options.data != NULL)
    return ax_error(AX_INVALID_ARGUMENT, "--plugin-option goes with --plugin");
  options->plugin = plugin->path;
  options->plugin_options = plugin->options.data;
  options->plugin_partitions = plugin->partitions != 0;
  options->plugin_precision = plugin->precision;
  return AX_OK;
}

ax_status plugin_print(const plugin_choice *plugin) {
  ax_runtime_options options = {.code_cache = "off"};
  ax_runtime *runtime;
  ax_text text = {0};
  char *made = NULL;
  AX_TRY(plugin_apply(plugin, &options));
  AX_TRY(ax_runtime_create(&options, &runtime));
  ax_status status = ax_client_describe(runtime->client, &text);
  if (status == AX_OK) status = ax_text_finish(&text, &made);
  if (status == AX_OK) fputs(made, stdout);
  ax_string_free(made);
  ax_text_deinit(&text);
  ax_runtime_release(runtime);
  return status;
}

void plugin_deinit(plugin_choice *plugin) {
  free(plugin->path);
  free(plugin->precision);
  ax_text_deinit(&plugin->options);
}
