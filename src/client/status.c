/* What a plugin reports, as statuses. */
#include "client/client.h"

static ax_status status_of(ax_pjrt_code code) {
  switch (code) {
    case AX_PJRT_OK: return AX_OK;
    case AX_PJRT_INVALID_ARGUMENT:
    case AX_PJRT_NOT_FOUND:
    case AX_PJRT_ALREADY_EXISTS:
    case AX_PJRT_FAILED_PRECONDITION:
    case AX_PJRT_OUT_OF_RANGE: return AX_INVALID_ARGUMENT;
    case AX_PJRT_RESOURCE_EXHAUSTED: return AX_OUT_OF_MEMORY;
    case AX_PJRT_UNIMPLEMENTED: return AX_ABSENT;
    default: return AX_UNAVAILABLE; /* what is wrong is in the plugin, or in what it runs on */
  }
}

ax_status ax_client_lacks(const char *known_as) { return ax_error(AX_ABSENT, "the plugin has no %s", known_as); }

ax_status ax_client_status(const ax_pjrt_api *api, ax_pjrt_error *error, const char *who) {
  if (error == NULL) return AX_OK;
  ax_pjrt_error_message_args message = {.struct_size = sizeof message, .of = error};
  ax_pjrt_error_code_args code = {.struct_size = sizeof code, .of = error};
  api->error_message(&message);
  if (!AX_CLIENT_HAS(api, error_code) || api->error_code(&code) != NULL || code.value == AX_PJRT_OK) code.value = AX_PJRT_UNKNOWN;
  const ax_status status = ax_error(status_of(code.value), "%s: %.*s", who, message.text != NULL ? (int)message.length : 0,
                                    message.text != NULL ? message.text : "");
  ax_pjrt_error_destroy_args gone = {.struct_size = sizeof gone, .of = error};
  api->error_destroy(&gone);
  return status;
}

ax_status ax_client_await(const ax_client *client, ax_pjrt_event *event, const char *who) {
  if (event == NULL) return AX_OK;
  ax_pjrt_event_await_args wait = {.struct_size = sizeof wait, .of = event};
  ax_status status = AX_CLIENT_HAS(client->api, event_await) ? ax_client_status(client->api, client->api->event_await(&wait), who)
                                                             : ax_client_lacks(ax_client_name_event_await);
  ax_pjrt_event_destroy_args gone = {.struct_size = sizeof gone, .of = event};
  const ax_status ended = AX_CLIENT_CALL(client->api, event_destroy, &gone);
  return status == AX_OK ? ended : status;
}

ax_status ax_client_await_all(const ax_client *client, ax_pjrt_event *const *events, uint32_t count, const char *who, ax_status status) {
  for (uint32_t i = 0; i < count; i++) {
    ax_message_copy kept;
    if (status != AX_OK) ax_message_keep(&kept);
    const ax_status ended = ax_client_await(client, events[i], who);
    if (status != AX_OK) ax_message_put_back(&kept);
    else status = ended;
  }
  return status;
}
