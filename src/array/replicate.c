/* Makes one array out of equal arrays for each device, with one dimension more. It has one copy of the elements, which is the
   memory of all parts. */
#include "axle/pmap.h"

#include <string.h>

#include "array/runtime.h"

static const char name[] = "replicate";

/* The type with one more dimension in front, of the number of devices along the spec's axes. */
static ax_status stacked_type(const ax_mesh *mesh, const char *spec, const ax_host_array *host, ax_type *out) {
  ax_spec parsed;
  *out = ax_array_type(host->dtype, AX_LIST(host->rank, host->dims));
  AX_TRY(ax_spec_parse(spec, mesh, &parsed));
  for (uint32_t d = 1; d < parsed.rank; d++)
    if (parsed.count[d] > 0)
      return ax_error(AX_INVALID_ARGUMENT, "\"%s\" splits dimension %u; only the new one, 0, is split", spec, d);
  if (out->dtype == AX_NO_DTYPE) return AX_OK; /* refused later, with other bad types */
  if (out->rank == AX_MAX_RANK)
    return ax_error(AX_INVALID_ARGUMENT, "%s has %d dimensions already", ax_type_string(out, NULL), AX_MAX_RANK);
  memmove(out->dims + 1, out->dims, out->rank++ * sizeof out->dims[0]);
  out->dims[0] = ax_axis_set_size(ax_spec_set(&parsed), mesh);
  return AX_OK;
}

ax_status ax_replicate(ax_runtime *runtime, const ax_mesh *mesh, const char *spec, const ax_host_array *host, ax_array **out) {
  ax_type type;
  ax_layout *layout;
  ax_parts *parts = NULL;
  *out = NULL;
  AX_TRY(ax_require(mesh, "mesh"));
  AX_TRY(ax_require(spec, "spec"));
  AX_TRY(ax_require(host, "host array"));
  ax_status status = ax_view_check(host);
  if (status == AX_OK) status = stacked_type(mesh, spec, host, &type);
  if (status != AX_OK) return ax_error_context(status, "%s: ", name);
  AX_TRY(ax_layout_describe(name, runtime, mesh, spec, &type, &layout));
  if (layout->block_bytes > 0) status = ax_require(host->data, "data");
  if (status == AX_OK) status = ax_parts_share(runtime, layout, NULL, 1, NULL, &parts);
  if (status == AX_OK && layout->block_bytes > 0) memcpy(parts->memory, host->data, layout->block_bytes);
  if (status == AX_OK) status = ax_array_create(layout, parts, out);
  if (status != AX_OK) ax_parts_release(parts);
  ax_layout_release(layout);
  return status;
}
