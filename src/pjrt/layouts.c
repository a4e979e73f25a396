#include "pjrt/layouts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pjrt/shardings.h"

/* A layout that a caller has: its text, as XLA writes it. */
struct ax_pjrt_layout {
  char text[4 * AX_MAX_RANK + 4];
};

ax_pjrt_error *ax_pjrt_order_of(const int64_t *minor_to_major, uint32_t rank, ax_pjrt_order *out) {
  uint32_t seen = 0;
  *out = (ax_pjrt_order){0};
  for (uint32_t i = 0; i < rank; i++) {
    if (minor_to_major[i] < 0 || minor_to_major[i] >= (int64_t)rank || (seen >> minor_to_major[i] & 1) != 0)
      return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "a layout of %u dimensions has each of them once", rank);
    seen |= 1u << minor_to_major[i];
    out->minor_to_major[i] = minor_to_major[i];
    out->said = out->said || minor_to_major[i] != (int64_t)(rank - 1 - i);
  }
  return NULL;
}

ax_pjrt_error *ax_pjrt_order_read(const char *text, uint32_t rank, ax_pjrt_order *out) {
  int64_t order[AX_MAX_RANK];
  uint32_t count = 0;
  const char *at = text;
  *out = (ax_pjrt_order){0};
  if (strcmp(text, "default") == 0 || strcmp(text, "auto") == 0 || strcmp(text, "{}") == 0) return NULL;
  if (*at++ != '{') return ax_pjrt_fail(AX_PJRT_UNIMPLEMENTED, "the layout %s", text);
  while (count < rank) {
    char *end;
    order[count++] = strtoll(at, &end, 10);
    if (end == at || *end != (count < rank ? ',' : '}')) return ax_pjrt_fail(AX_PJRT_UNIMPLEMENTED, "the layout %s of %u dimensions", text, rank);
    at = end + 1;
  }
  return *at == '\0' ? ax_pjrt_order_of(order, rank, out) : ax_pjrt_fail(AX_PJRT_UNIMPLEMENTED, "the layout %s of %u dimensions", text, rank);
}

static ax_pjrt_error *layout_of(const ax_pjrt_order *order, uint32_t rank, ax_pjrt_layout **out) {
  *out = ax_alloc(sizeof **out);
  if (*out == NULL) return ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for a layout");
  size_t length = (size_t)snprintf((*out)->text, sizeof (*out)->text, "{");
  for (uint32_t i = 0; i < rank; i++)
    length += (size_t)snprintf((*out)->text + length, sizeof (*out)->text - length, "%s%d", i > 0 ? "," : "",
                               (int)(order->said ? order->minor_to_major[i] : (int64_t)(rank - 1 - i)));
  snprintf((*out)->text + length, sizeof (*out)->text - length, "}");
  return NULL;
}

/* --- Of executables --- */

void ax_pjrt_layouts_free(ax_pjrt_layout **layouts, size_t count) {
  for (size_t i = 0; layouts != NULL && i < count; i++) ax_free(layouts[i]);
  ax_free(layouts);
}

ax_pjrt_error *ax_pjrt_layouts_of(const ax_pjrt_value *values, size_t count, ax_pjrt_layout ***out) {
  ax_pjrt_error *error = NULL;
  *out = ax_calloc(count + 1, sizeof(*out)[0]);
  if (*out == NULL) return ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for layouts");
  for (size_t i = 0; error == NULL && i < count; i++) error = layout_of(&values[i].layout, values[i].block.rank, &(*out)[i]);
  return error;
}

/* --- The extension --- */

static ax_pjrt_error *destroy(ax_pjrt_layout_destroy_args *args) {
  ax_free(args->of);
  return NULL;
}

static void release_text(void *text) { ax_pjrt_held_release(text); }

/* The bytes are the caller's, also when the layout is gone. */
static ax_pjrt_error *serialize(ax_pjrt_layout_serialize_args *args) {
  const size_t count = strlen(args->of->text);
  ax_pjrt_held *held = ax_pjrt_held_of(count);
  if (held == NULL) return ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for a layout");
  memcpy(held->bytes, args->of->text, count);
  held->count = count;
  args->bytes = held->bytes;
  args->count = count;
  args->backing = (void *)held;
  args->release = release_text;
  return NULL;
}

static ax_pjrt_error *of_buffer(ax_pjrt_layout_buffer_args *args) { return layout_of(&args->of->order, args->of->type.rank, &args->value); }
static ax_pjrt_error *by_default(ax_pjrt_layout_default_args *args) {
  if (args->rank > AX_MAX_RANK) return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "arrays have at most %d dimensions, not %zu", AX_MAX_RANK, args->rank);
  return layout_of(&(ax_pjrt_order){0}, (uint32_t)args->rank, &args->value);
}

static ax_pjrt_error *of_results(ax_pjrt_layout_executable_args *args) {
  args->count = args->of->out_count;
  args->items = args->of->out_layouts;
  return NULL;
}
static ax_pjrt_error *of_parameters(ax_pjrt_layout_executable_args *args) {
  args->count = args->of->in_count;
  args->items = args->of->in_layouts;
  return NULL;
}

ax_pjrt_layouts ax_pjrt_layouts_extension = {
    .base = {.struct_size = sizeof ax_pjrt_layouts_extension, .type = AX_PJRT_LAYOUTS, .next = &ax_pjrt_shardings_extension.base},
    .destroy = destroy, .serialize = serialize, .client_default = by_default, .of_buffer = of_buffer, .topology_default = by_default,
    .of_results = of_results, .of_parameters = of_parameters};
