/* Inputs of a model, added one by one. Memory that cannot be had ends the process: this is a measuring program. */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/collectives.h"

static void *room(size_t count, size_t bytes) {
  void *memory = calloc(count, bytes);
  if (memory == NULL) abort();
  return memory;
}

model *model_create(const char *mesh, ax_function loss, const void *sizes, uint32_t weight_count,
                    uint32_t input_count) {
  model *m = room(1, sizeof *m);
  *m = (model){mesh,
               loss,
               weight_count,
               0,
               room(input_count, sizeof m->types[0]),
               room(input_count, sizeof m->specs[0]),
               room(input_count, sizeof m->names[0]),
               sizes,
               false};
  return m;
}

void model_input(model *m, const char *spec, ax_dtype dtype, uint32_t rank, const int64_t *dims, const char *name,
                 int number) {
  char numbered[64];
  snprintf(numbered, sizeof numbered, name, number);
  uint32_t i = m->input_count++;
  m->types[i] = ax_array_type(dtype, AX_LIST(rank, dims));
  m->specs[i] = spec;
  m->names[i] = strdup(numbered);
}

ax_value model_sum(const model *m, ax_value x, const char *axis) { return m->global ? x : ax_psum(x, axis); }
ax_value model_mean(const model *m, ax_value x, const char *axis) { return m->global ? x : ax_pmean(x, axis); }

void model_release(model *m) {
  for (uint32_t i = 0; i < m->input_count; i++) free((char *)m->names[i]);
  free(m->types);
  free(m->specs);
  free(m->names);
  free(m);
}
