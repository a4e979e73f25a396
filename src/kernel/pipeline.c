/* Pipelines within kernels. */
#include "kernel/local.h"

static void absent(const char *function) {
  if (!ax_failed()) ax_fail(ax_error(AX_ABSENT, "%s: there are no pipelines yet; loops of copies make one by hand", function));
}

void ax_emit_pipeline(const ax_pipeline_options *options, ax_fn body, const ax_value *refs) {
  (void)options, (void)body, (void)refs;
  absent("emit_pipeline");
}

void ax_emit_pipeline_warp_specialized(const ax_warp_pipeline_options *options, ax_fn body, const ax_value *refs) {
  (void)options, (void)body, (void)refs;
  absent("emit_pipeline_warp_specialized");
}
