/* kernel_call without what nobody needs: captured values and operands that no body touches, and results that nobody needs and no
   body touches.
   What a body touches it keeps: its stores are effects in it. An operand that is one memory with a result goes with that alone. */
#include <string.h>

#include "ir/memo.h"
#include "kernel/kernel_call.h"
#include "ir/transform.h"

typedef struct pruning {
  const ax_prune_args *args;
  const ax_kernel_params *params;
  uint32_t consts, operands, results, inputs; /* inputs: of a body */
  bool *touched; /* by input of a body */
} pruning;

static ax_status find_touched(pruning *p) {
  const ax_program *body = p->params->bodies.v[0];
  ax_arena *arena = &p->args->memo->arena;
  p->inputs = body->in_count;
  p->touched = ax_arena_alloc(arena, p->inputs + 1);
  bool *in = ax_arena_alloc(arena, p->inputs + 1);
  if (p->touched == NULL || in == NULL) return ax_out_of_memory(p->inputs);
  for (uint32_t b = 0; b < p->params->bodies.count; b++) {
    static const bool none;
    AX_TRY(ax_needs_program(p->args->memo, p->params->bodies.v[b], &none, in));
    for (uint32_t i = 0; i < p->inputs; i++) p->touched[i] = p->touched[i] || in[i];
  }
  return AX_OK;
}

static bool *all_marked(ax_arena *arena, uint32_t count) {
  bool *marks = ax_arena_alloc(arena, count + 1);
  for (uint32_t i = 0; marks != NULL && i < count; i++) marks[i] = true;
  return marks;
}

/* Captured values that index maps read. */
static ax_status find_mapped(pruning *p) {
  ax_arena *arena = &p->args->memo->arena;
  const uint32_t grid = p->params->grid.count;
  for (uint32_t m = 0; m < p->params->index_maps.count; m++) {
    const ax_program *map = p->params->index_maps.v[m];
    if (!ax_map_takes_consts(p->params, map)) continue;
    bool *in = ax_arena_alloc(arena, map->in_count + 1), *out = all_marked(arena, map->out_count);
    if (in == NULL || out == NULL) return ax_out_of_memory(map->in_count);
    AX_TRY(ax_needs_program(p->args->memo, map, out, in));
    for (uint32_t i = 0; i < p->consts; i++) p->touched[i] = p->touched[i] || in[grid + i];
  }
  return AX_OK;
}

static void find_needed(const pruning *p) {
  const ax_prune_args *args = p->args;
  const bool *refs = p->touched + p->consts;
  for (uint32_t k = 0; k < p->results; k++) args->out[k] = args->out[k] || refs[p->operands + k];
  for (uint32_t i = 0; i < p->consts + p->operands; i++) args->in[i] = p->touched[i];
  for (uint32_t a = 0; a < p->params->aliases.count; a++)
    if (args->out[p->params->aliases.v[a][1]]) args->in[p->consts + p->params->aliases.v[a][0]] = true;
}

/* Whether operand or result i is left; and its number then. */
static bool is_left(const pruning *p, uint32_t i) {
  return i < p->operands ? p->args->in[p->consts + i] : p->args->out[i - p->operands];
}

static int64_t number_left(const pruning *p, uint32_t first, uint32_t i) {
  int64_t number = 0;
  for (uint32_t k = first; k < i; k++) number += is_left(p, k);
  return number;
}

static ax_status leave_blocks(const pruning *p, ax_kernel_params *made) {
  const ax_kernel_params *of = p->params;
  ax_arena *arena = &p->args->memo->arena;
  uint32_t both = of->blocks.count;
  made->blocks = (ax_types){0, ax_arena_alloc(arena, (both + 1) * sizeof made->blocks.v[0])};
  made->outs = (ax_types){0, ax_arena_alloc(arena, (both + 1) * sizeof made->outs.v[0])};
  made->block_shapes = (ax_types){0, ax_arena_alloc(arena, (both + 1) * sizeof made->block_shapes.v[0])};
  made->blocked = (ax_pairs){0, ax_arena_alloc(arena, (both + 1) * sizeof made->blocked.v[0])};
  made->aliases = (ax_pairs){0, ax_arena_alloc(arena, (of->aliases.count + 1) * sizeof made->aliases.v[0])};
  if (made->blocks.v == NULL || made->outs.v == NULL || made->block_shapes.v == NULL || made->blocked.v == NULL ||
      made->aliases.v == NULL)
    return ax_out_of_memory(both * sizeof made->blocks.v[0]);
  for (uint32_t i = 0, next = 0; i < both; i++) {
    bool blocked = next < of->blocked.count && of->blocked.v[next][0] == i;
    if (is_left(p, i)) {
      if (i >= p->operands) made->outs.v[made->outs.count++] = of->outs.v[i - p->operands];
      if (blocked) {
        made->block_shapes.v[made->block_shapes.count++] = of->block_shapes.v[next];
        made->blocked.v[made->blocked.count][0] = made->blocks.count;
        made->blocked.v[made->blocked.count++][1] = of->blocked.v[next][1];
      }
      made->blocks.v[made->blocks.count++] = of->blocks.v[i];
    }
    next += blocked;
  }
  for (uint32_t a = 0; a < of->aliases.count; a++) {
    uint32_t from = (uint32_t)of->aliases.v[a][0], to = p->operands + (uint32_t)of->aliases.v[a][1];
    if (!is_left(p, from) || !is_left(p, to)) continue;
    made->aliases.v[made->aliases.count][0] = number_left(p, 0, from);
    made->aliases.v[made->aliases.count++][1] = number_left(p, p->operands, to);
  }
  return AX_OK;
}

static ax_status leave_bodies(const pruning *p, ax_kernel_params *made) {
  ax_arena *arena = &p->args->memo->arena;
  bool *keep = ax_arena_alloc(arena, p->inputs + 1);
  made->bodies.v = ax_arena_alloc(arena, made->bodies.count * sizeof made->bodies.v[0]);
  if (keep == NULL || made->bodies.v == NULL) return ax_out_of_memory(p->inputs);
  for (uint32_t i = 0; i < p->inputs; i++) {
    uint32_t ref = i - p->consts;
    keep[i] = i < p->consts ? p->args->in[i] : ref < p->params->blocks.count ? is_left(p, ref) : true;
  }
  ax_status status = AX_OK;
  static const bool none;
  uint32_t b = 0;
  for (; b < made->bodies.count && status == AX_OK; b++)
    status = ax_prune_program(p->args->memo, p->params->bodies.v[b], &none, keep, &made->bodies.v[b]);
  while (status != AX_OK && b > 0) ax_program_release(made->bodies.v[--b]);
  return status;
}

/* Maps without the captured values that are gone. */
static ax_status leave_maps(const pruning *p, ax_kernel_params *made) {
  ax_arena *arena = &p->args->memo->arena;
  const uint32_t grid = p->params->grid.count, count = p->params->index_maps.count;
  made->index_maps.v = ax_arena_alloc(arena, (count + 1) * sizeof made->index_maps.v[0]);
  if (made->index_maps.v == NULL) return ax_out_of_memory(count);
  ax_status status = AX_OK;
  uint32_t m = 0;
  for (; m < count && status == AX_OK; m++) {
    ax_program *map = p->params->index_maps.v[m];
    if (!ax_map_takes_consts(p->params, map)) {
      made->index_maps.v[m] = ax_program_retain(map);
      continue;
    }
    bool *keep = all_marked(arena, map->in_count), *out = all_marked(arena, map->out_count);
    for (uint32_t i = 0; keep != NULL && i < p->consts; i++) keep[grid + i] = p->args->in[i];
    status = keep != NULL && out != NULL ? ax_prune_program(p->args->memo, map, out, keep, &made->index_maps.v[m]) : ax_out_of_memory(count);
  }
  while (status != AX_OK && m > 0)
    if (--m < count && made->index_maps.v[m] != NULL) ax_program_release(made->index_maps.v[m]);
  return status;
}

ax_status ax_kernel_call_prune(const ax_prune_args *args) {
  const ax_kernel_params *params = args->eqn->params;
  pruning p = {.args = args, .params = params, .consts = (uint32_t)params->consts, .results = params->outs.count};
  p.operands = args->eqn->in_count - p.consts;
  AX_TRY(find_touched(&p));
  AX_TRY(find_mapped(&p));
  find_needed(&p);
  if (args->params == NULL) return AX_OK;
  ax_kernel_params *made = args->params;
  *made = *params;
  made->consts = 0;
  for (uint32_t i = 0; i < p.consts; i++) made->consts += args->in[i];
  AX_TRY(leave_blocks(&p, made));
  AX_TRY(leave_maps(&p, made));
  const ax_status status = leave_bodies(&p, made);
  for (uint32_t m = 0; status != AX_OK && m < made->index_maps.count; m++) ax_program_release(made->index_maps.v[m]);
  return status;
}
