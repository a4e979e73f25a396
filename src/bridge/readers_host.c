/* What a module asks of the host, as io_callbacks that have names and no functions: programs that are compiled in a runtime call those
   that are registered in it (ax_runtime_register).

     %0, %t = infeed            a = io_callback[callback="infeed" types=(f32[2],)]
     outfeed %a                 io_callback[callback="outfeed" types=()] a
     send %a, channel 3         io_callback[callback="send:3" types=()] a
     %1, %t = recv, channel 4   b = io_callback[callback="recv:4" types=(f32[2],)]

   Transfers between devices (is_host_transfer = false) are messages instead (collectives/messages.h).

   A device calls them in the order of the text. And what begins here and is done elsewhere: it is done where it begins. */
#include "bridge/readers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "axle/callback.h"
#include "axle/ops.h"
#include "collectives/messages.h"
#include "ir/callback.h"
#include "prim/hlo_groups.h"
#include "prim/bind.h"

static ax_status call_host(const ax_hlo_read_args *args, const char *name) {
  const uint32_t count = args->op->result_count;
  ax_callback *callback;
  bool done;
  AX_TRY(ax_hlo_parallel_host(args, &done));
  if (done) return AX_OK;
  AX_TRY(ax_callback_make(name, strlen(name), &callback));
  (ax_io_callback)(callback, false, args->op->operand_count, args->in, count, args->out_types, count, args->out);
  ax_callback_release(callback);
  return AX_OK;
}

static ax_status infeed_read(const ax_hlo_read_args *args) {
  if (args->op->operand_count > 0) return ax_error(AX_INVALID_ARGUMENT, "its one operand is a token");
  return call_host(args, "infeed");
}

static ax_status outfeed_read(const ax_hlo_read_args *args) {
  if (args->op->result_count > 0) return ax_error(AX_INVALID_ARGUMENT, "its result is a token");
  return call_host(args, "outfeed");
}

static ax_status transfer(const ax_hlo_read_args *args, const char *name, ax_status (*between)(const ax_hlo_read_args *args)) {
  const ax_hlo_attribute *channel = ax_hlo_find(args->op, "channel_handle");
  const ax_hlo_attribute *handle = channel != NULL ? ax_hlo_item(channel, "handle") : NULL;
  char text[64];
  bool host;
  AX_TRY(ax_hlo_bool_or(args->op, "is_host_transfer", false, &host));
  if (!host && ax_hlo_find(args->op, "source_target_pairs") == NULL)
    return ax_error(AX_INVALID_ARGUMENT, "the attribute source_target_pairs is missing, and is_host_transfer is false");
  if (!host) return between(args);
  if (handle == NULL || handle->kind != AX_HLO_INTEGER) return ax_error(AX_INVALID_ARGUMENT, "the attribute channel_handle must have a handle");
  snprintf(text, sizeof text, "%s:%" PRId64, name, handle->integer);
  return call_host(args, text);
}

static ax_status send_read(const ax_hlo_read_args *args) {
  if (args->op->result_count > 0) return ax_error(AX_INVALID_ARGUMENT, "its result is a token");
  return transfer(args, "send", ax_send_read);
}

static ax_status recv_read(const ax_hlo_read_args *args) {
  if (args->op->operand_count > 0) return ax_error(AX_INVALID_ARGUMENT, "its one operand is a token");
  return transfer(args, "recv", ax_recv_read);
}

static ax_status async_read(const ax_hlo_read_args *args) {
  ax_hlo_body body;
  ax_fn function;
  AX_TRY(ax_hlo_body_of(args, 0, args->op->result_count, &body, &function));
  if (function.in_count != args->op->operand_count)
    return ax_error(AX_INVALID_ARGUMENT, "the body takes %u values, and there are %u operands", function.in_count, args->op->operand_count);
  function.function(args->in, args->out, function.context);
  return AX_OK;
}

const ax_hlo_reader ax_hlo_host_readers[] = {{"stablehlo.infeed", infeed_read}, {"stablehlo.outfeed", outfeed_read},
                                             {"stablehlo.send", send_read},     {"stablehlo.recv", recv_read},
                                             {"stablehlo.async_start", async_read}, {0}};
