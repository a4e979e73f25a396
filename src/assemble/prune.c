/* Drops all that a run need not take and need not make: inputs on which no result and no effect depends, and results that are
   inputs unchanged.

     (x, y, z) -> (x + 1, z, z)     is computed as   (x) -> (x + 1);   y is ignored, and results 1 and 2 are the array given as z

   Pruning happens twice. First it prunes the program as the user wrote it: a result that is an input there is that array, whatever
   its layout. After partitioning it prunes the program of each device: a result that is an input there, with the same layout, is
   that array in the layout in which the input is wanted. Calls, loops and shard_maps are pruned by the rules of dce. */
#include <string.h>

#include "assemble/prune.h"

#include "ir/memo.h"
#include "ir/transform.h"

void ax_pruning_deinit(ax_pruning *p) {
  ax_free(p->place);
  ax_free(p->returned);
  *p = (ax_pruning){0};
}

static ax_status init(ax_pruning *p, const ax_program *program) {
  *p = (ax_pruning){.in_count = program->in_count, .out_count = program->out_count};
  p->place = ax_alloc(((size_t)p->in_count + 1) * sizeof p->place[0]);
  p->returned = ax_alloc(((size_t)p->out_count + 1) * sizeof p->returned[0]);
  if (p->place != NULL && p->returned != NULL) return AX_OK;
  ax_pruning_deinit(p);
  return ax_out_of_memory(program->in_count);
}

/* Says whether result k is an input with the same layout. */
static bool is_input(const ax_program *program, const ax_partitioned *laid, uint32_t k) {
  const uint32_t id = program->outs[k];
  return id < program->in_count &&
         (laid == NULL || laid->in_specs == NULL || ax_spec_equal(&laid->in_specs[id], &laid->out_specs[k]));
}

/* out, in: by result and input, whether it stays. */
static ax_status look(ax_memo *memo, const ax_program *program, const ax_partitioned *laid, bool keep_unused, bool *out, bool *in) {
  for (uint32_t k = 0; k < program->out_count; k++) out[k] = !is_input(program, laid, k);
  if (!keep_unused) return ax_needs_program(memo, program, out, in);
  memset(in, true, program->in_count);
  return AX_OK;
}

static void number(ax_pruning *p, const ax_program *program, const bool *out, const bool *in) {
  uint32_t next = 0;
  for (uint32_t i = 0; i < p->in_count; i++) p->place[i] = in[i] ? next++ : AX_NONE;
  next = 0;
  for (uint32_t k = 0; k < p->out_count; k++)
    p->returned[k] =
        out[k] ? (ax_returned){.made = next++, .input = AX_NONE} : (ax_returned){.made = AX_NONE, .input = program->outs[k]};
}

static ax_status prune(ax_pruning *p, ax_memo *memo, const ax_program *program, const ax_partitioned *laid, bool keep_unused,
                       ax_program **out) {
  bool *stays = ax_arena_alloc(&memo->arena, (size_t)program->out_count + program->in_count + 1);
  if (stays == NULL) return ax_out_of_memory(program->in_count);
  bool *takes = stays + program->out_count;
  AX_TRY(look(memo, program, laid, keep_unused, stays, takes));
  number(p, program, stays, takes);
  return ax_prune_program(memo, program, stays, takes, out);
}

ax_status ax_pruning_make(ax_pruning *p, const ax_program *program, const ax_partitioned *laid, bool keep_unused,
                          ax_program **out) {
  ax_memo memo = {0};
  *out = NULL;
  AX_TRY(init(p, program));
  ax_status status = prune(p, &memo, program, laid, keep_unused, out);
  ax_memo_deinit(&memo);
  if (status != AX_OK) ax_pruning_deinit(p);
  return status;
}

/* Keeps the specs of the inputs and results that stay. */
ax_status ax_pruning_specs(const ax_pruning *p, ax_partitioned *laid, ax_arena *arena) {
  if (laid->in_specs == NULL) return AX_OK;
  ax_spec *in = ax_arena_alloc(arena, p->in_count * sizeof in[0]), *out = ax_arena_alloc(arena, p->out_count * sizeof out[0]);
  if (in == NULL || out == NULL) return ax_out_of_memory(p->in_count * sizeof in[0]);
  for (uint32_t i = 0; i < p->in_count; i++)
    if (p->place[i] != AX_NONE) in[p->place[i]] = laid->in_specs[i];
  for (uint32_t k = 0; k < p->out_count; k++)
    if (p->returned[k].made != AX_NONE) out[p->returned[k].made] = laid->out_specs[k];
  laid->in_specs = in;
  laid->out_specs = out;
  return AX_OK;
}
