/* The plan of a partitioned program: the plan of the program that each device runs, with inputs and results stored as the specs
   say. */
#include "partition/partition.h"

static void sets_of(const ax_spec *specs, uint32_t count, ax_axis_set *sets) {
  for (uint32_t i = 0; i < count; i++) sets[i] = specs != NULL ? ax_spec_set(&specs[i]) : 0;
}

ax_status ax_partitioned_plan(const ax_partitioned *partitioned, const ax_plan_options *options, ax_plan **out) {
  ax_program *body = partitioned->body;
  ax_axis_set *sets = ax_alloc(((size_t)body->in_count + body->out_count) * sizeof sets[0]);
  *out = NULL;
  if (sets == NULL) return ax_out_of_memory(0);
  sets_of(partitioned->in_specs, body->in_count, sets);
  sets_of(partitioned->out_specs, body->out_count, sets + body->in_count);
  ax_status status = ax_plan_create(body, sets, sets + body->in_count, options, out);
  ax_free(sets);
  return status;
}
