#include "support/host.h"

#include <stdlib.h>
#include <string.h>

#include "support/tensor.h"

static ax_status copy(ax_callback_call *call, void *context) {
  (void)context;
  for (uint32_t k = 0; k < call->out_count; k++) {
    ax_type type = ax_array_type(call->out[k].dtype, call->out[k].rank, call->out[k].dims);
    size_t bytes = (size_t)ax_type_elems(&type) * ax_dtype_bytes(type.dtype);
    if (bytes > 0) memcpy(call->out[k].data, call->in[k].data, bytes);
  }
  return AX_OK;
}

static ax_callbacks callbacks;
static ax_hooks hooks = {.callbacks = &callbacks};

static void release(void) { ax_callbacks_deinit(&callbacks); }

const ax_hooks *test_hooks(void) {
  ax_callback *made;
  if (callbacks.count > 0) return &hooks;
  ax_callbacks_init(&callbacks);
  atexit(release);
  TEST_OK(ax_callback_create("copy", copy, NULL, NULL, &made));
  TEST_OK(ax_callbacks_add(&callbacks, made));
  ax_callback_release(made);
  return &hooks;
}
