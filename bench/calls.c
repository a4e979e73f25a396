/* b13: what calling costs that has little to do: many small arrays over 8 devices in, as many or one out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "cases.h"
#include "job.h"
#include "serve.h"

static void one_more_each(const ax_value *in, ax_value *out, void *context) {
  const uint32_t count = *(const uint32_t *)context;
  for (uint32_t i = 0; i < count; i++) out[i] = ax_add(in[i], 1);
}

static void sum_of_all(const ax_value *in, ax_value *out, void *context) {
  const uint32_t count = *(const uint32_t *)context;
  out[0] = ax_add(in[0], 1);
  for (uint32_t i = 1; i < count; i++) out[0] = ax_add(out[0], in[i]);
}

/* calls COUNT each|sum: of arrays f32[8], an element a device. */
void calls(char **arguments) {
  uint32_t count = (uint32_t)atoi(arguments[0]);
  const bool each = strcmp(arguments[1], "each") == 0;
  ax_type *types = calloc(count, sizeof types[0]);
  const char **specs = calloc(count, sizeof specs[0]);
  if (types == NULL || specs == NULL) {
    perror("calls");
    exit(1);
  }
  for (uint32_t i = 0; i < count; i++) {
    types[i] = AX_TYPE(AX_F32, 8);
    specs[i] = "d";
  }
  job j = job_create(
      &(job_function){each ? one_more_each : sum_of_all, &count, "d=8", count, each ? count : 1, types, specs, specs}, 0);
  bench_serve(job_run, &j, 1);
}
