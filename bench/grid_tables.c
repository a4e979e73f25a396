/* b29, the second part: kernels whose blocks or slices are found while they run (by tables, by halves of a number, by the body), and kernels
   that copy by hand, each beside the same as a plain program. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "axle/axle.h"
#include "cases.h"
#include "job.h"
#include "serve.h"

enum { groups = 16, inner = 256, columns = 256, width = 64, sequences = 64, pages = 16, all_pages = 1024 };

typedef struct table_case {
  const char *name;
  ax_function kernel, plain;
  int64_t rows, block;
  uint32_t in_count;
  void (*types)(const struct table_case *c, ax_type *types);
} table_case;

static int64_t tiles_of(const table_case *c) { return c->rows / c->block; }

/* --- Grouped products: a tile of rows times the matrix of its group --- */

typedef struct given {
  const table_case *c;
  const ax_value *in;
  ax_value table, other;
} given;

static AX_BODY(row_of) {
  out[0] = in[0];
  out[1] = ax_integer(0);
}

static AX_BODY_OF(matrix_of, const given, g) {
  out[0] = ax_dynamic_at(g->table, in[0], 0);
  out[1] = out[2] = ax_integer(0);
}

static AX_BODY(multiply) { ax_ref_store(in[2], ax_matmul(ax_ref_load(in[0]), ax_ref_load(in[1]))); }

static void grouped_types(const table_case *c, ax_type *types) {
  types[0] = AX_TYPE(AX_F32, c->rows, inner);
  types[1] = AX_TYPE(AX_F32, groups, inner, columns);
  types[2] = AX_TYPE(AX_S32, tiles_of(c));
}

static AX_BODY_OF(grouped, const table_case, c) {
  given g = {.c = c, .in = in, .table = ax_rem(in[2], groups)};
  const ax_block_spec x = {.block = {AX_DIMS(c->block, inner)}, .index_map = row_of},
                      w = {.block = {AX_DIMS(0, inner, columns)}, .index_map = matrix_of, .context = &g},
                      y = {.block = {AX_DIMS(c->block, columns)}, .index_map = row_of};
  ax_kernel_call((&(ax_kernel){.grid = {AX_DIMS(tiles_of(c))}, .in_specs = {AX_BLOCK_SPECS(x, w)}, .out_specs = {AX_BLOCK_SPECS(y)},
                              .outs = {AX_TYPES(AX_TYPE(AX_F32, c->rows, columns))}, .options = {.name = c->name}}),
                 AX_FN(multiply, 3, 0), AX_LIST(2, in), out);
}

static AX_BODY_OF(grouped_plain, const table_case, c) {
  const ax_value x = ax_reshape(in[0], AX_DIMS(tiles_of(c), c->block, inner)), w = ax_take(in[1], ax_rem(in[2], groups), 0);
  out[0] = ax_reshape(ax_einsum("tik,tkj->tij", AX_VALUES(x, w)), AX_DIMS(c->rows, columns));
}

/* --- The same where groups end anywhere: visits, of a tile with a group, store the rows that are the group's --- */

static int64_t visits_of(const table_case *c) { return tiles_of(c) + groups - 1; }
static int64_t border(const table_case *c, int64_t group) { return group < groups ? group * c->rows / groups + (group > 0 ? group % 7 : 0) : c->rows; }

static AX_BODY_OF(tile_of, const given, g) {
  out[0] = ax_dynamic_at(g->table, in[0], 0);
  out[1] = ax_integer(0);
}

static AX_BODY_OF(group_of, const given, g) {
  out[0] = ax_dynamic_at(g->other, in[0], 0);
  out[1] = out[2] = ax_integer(0);
}

static ax_value over_block(const table_case *c, ax_value scalar) { return ax_broadcast_to(scalar, AX_DIMS(c->block, columns)); }

static ax_value border_value(const table_case *c, ax_value group) {
  int32_t at[groups + 1];
  for (int64_t g = 0; g <= groups; g++) at[g] = (int32_t)border(c, g);
  const ax_type type = AX_TYPE(AX_S32, groups + 1);
  return ax_dynamic_at(ax_constant(&type, at), group, 0);
}

static AX_BODY_OF(visit, const given, g) {
  const ax_value number = ax_program_id(0), group = ax_dynamic_at(g->other, number, 0),
                 first = ax_mul(ax_dynamic_at(g->table, number, 0), g->c->block),
                 row = ax_add(ax_iota(AX_S32, AX_DIMS(g->c->block, columns), 0), over_block(g->c, first)),
                 mine = ax_and(ax_ge(row, over_block(g->c, border_value(g->c, group))),
                               ax_lt(row, over_block(g->c, border_value(g->c, ax_add(group, 1)))));
  ax_ref_store_masked(in[2], mine, ax_matmul(ax_ref_load(in[0]), ax_ref_load(in[1])));
}

/* Which tile and which group each visit is of; `zero` is known while it runs. */
static given visits(const table_case *c, ax_value zero) {
  int32_t *tile = calloc((size_t)visits_of(c), sizeof tile[0]), *group = calloc((size_t)visits_of(c), sizeof group[0]);
  int64_t count = 0;
  for (int64_t t = 0; t < tiles_of(c); t++)
    for (int64_t g = 0; g < groups; g++)
      if (border(c, g) < (t + 1) * c->block && border(c, g + 1) > t * c->block) tile[count] = (int32_t)t, group[count++] = (int32_t)g;
  for (; count < visits_of(c); count++) tile[count] = tile[count - 1], group[count] = group[count - 1];
  const ax_type type = AX_TYPE(AX_S32, visits_of(c));
  given g = {.c = c, .table = ax_add(ax_constant(&type, tile), zero), .other = ax_add(ax_constant(&type, group), zero)};
  free(tile);
  free(group);
  return g;
}

static void visited_types(const table_case *c, ax_type *types) {
  grouped_types(c, types);
  types[2] = AX_TYPE(AX_S32, visits_of(c));
}

static AX_BODY_OF(visited, const table_case, c) {
  given g = visits(c, ax_div(ax_rem(in[2], 256), 256));
  const ax_block_spec x = {.block = {AX_DIMS(c->block, inner)}, .index_map = tile_of, .context = &g},
                      w = {.block = {AX_DIMS(0, inner, columns)}, .index_map = group_of, .context = &g},
                      y = {.block = {AX_DIMS(c->block, columns)}, .index_map = tile_of, .context = &g};
  ax_kernel_call((&(ax_kernel){.grid = {AX_DIMS(visits_of(c))}, .in_specs = {AX_BLOCK_SPECS(x, w)}, .out_specs = {AX_BLOCK_SPECS(y)},
                              .outs = {AX_TYPES(AX_TYPE(AX_F32, c->rows, columns))}, .options = {.name = c->name}}),
                 AX_CLOSURE(visit, 3, 0, &g), AX_LIST(2, in), out);
}

/* A loop over the visits. */
static AX_BODY_OF(visit_plain, const given, g) {
  const table_case *c = g->c;
  const ax_value tile = ax_dynamic_at(g->table, in[0], 0), group = ax_dynamic_at(g->other, in[0], 0), first = ax_mul(tile, c->block),
                 starts[] = {first, ax_full_i64(AX_S32, AX_DIMS(), 0)};
  const int64_t rows[] = {c->block, inner}, made[] = {c->block, columns};
  const ax_value row = ax_add(ax_iota(AX_S32, AX_DIMS(c->block, columns), 0), over_block(c, first)),
                 mine = ax_and(ax_ge(row, over_block(c, border_value(c, group))), ax_lt(row, over_block(c, border_value(c, ax_add(group, 1))))),
                 product = ax_matmul(ax_dynamic_slice(g->in[0], AX_LIST(2, starts), AX_LIST(2, rows)), ax_dynamic_at(g->in[1], group, 0)),
                 was = ax_dynamic_slice(in[1], AX_LIST(2, starts), AX_LIST(2, made));
  out[0] = ax_dynamic_update_slice(in[1], ax_where(mine, product, was), AX_LIST(2, starts));
}

static AX_BODY_OF(visited_plain, const table_case, c) {
  given g = visits(c, ax_div(ax_rem(in[2], 256), 256));
  g.in = in;
  out[0] = ax_full(AX_F32, AX_DIMS(c->rows, columns), 0);
  ax_fori_loop(ax_integer(0), ax_integer(visits_of(c)), AX_CLOSURE(visit_plain, 2, 1, &g), out, out);
}

/* --- Paged attention: a query of each sequence over pages that a table lists --- */

static void paged_types(const table_case *c, ax_type *types) {
  types[0] = AX_TYPE(AX_F32, sequences, width);
  types[1] = types[2] = AX_TYPE(AX_F32, all_pages, c->block, width);
  types[3] = AX_TYPE(AX_S32, sequences, pages);
}

static AX_BODY_OF(page_of, const given, g) {
  out[0] = ax_dynamic_at(ax_dynamic_at(g->table, in[0], 0), in[1], 0);
  out[1] = out[2] = ax_integer(0);
}

static AX_BODY(attend) {
  const ax_value page = ax_program_id(1);
  AX_IF (ax_eq(page, 0)) {
    ax_ref_store(in[4], -1e30);
    ax_ref_store(in[5], 0);
    ax_ref_store(in[6], 0);
  }
  const ax_value scores = ax_mul(ax_einsum("d,kd->k", AX_VALUES(ax_ref_load(in[0]), ax_ref_load(in[1]))), 1 / sqrt(width)),
                 before = ax_ref_load(in[4]), most = ax_max(before, ax_reduce_max(scores, AX_DIMS(0), true)),
                 weights = ax_exp(ax_sub(scores, most)), fade = ax_exp(ax_sub(before, most));
  ax_ref_store(in[5], ax_add(ax_mul(ax_ref_load(in[5]), fade), ax_reduce_sum(weights, AX_DIMS(0), true)));
  ax_ref_store(in[6], ax_add(ax_mul(ax_ref_load(in[6]), fade), ax_einsum("k,kd->d", AX_VALUES(weights, ax_ref_load(in[2])))));
  ax_ref_store(in[4], most);
  AX_IF (ax_eq(page, pages - 1)) ax_ref_store(in[3], ax_div(ax_ref_load(in[6]), ax_ref_load(in[5])));
}

static AX_BODY_OF(paged, const table_case, c) {
  given g = {.c = c, .table = ax_rem(in[3], all_pages)};
  const ax_block_spec q = {.block = {AX_DIMS(0, width)}, .index_map = row_of},
                      k = {.block = {AX_DIMS(0, c->block, width)}, .index_map = page_of, .context = &g};
  const ax_scratch one = {.type = AX_VMEM(AX_F32, 1)}, sum = {.type = AX_VMEM(AX_F32, width)};
  ax_kernel_call((&(ax_kernel){.grid = {AX_DIMS(sequences, pages)}, .in_specs = {AX_BLOCK_SPECS(q, k, k)}, .out_specs = {AX_BLOCK_SPECS(q)},
                              .outs = {AX_TYPES(AX_TYPE(AX_F32, sequences, width))},
                              .options = {.name = c->name, .scratch = {AX_SCRATCH(one, one, sum)}}}),
                 AX_FN(attend, 7, 0), AX_LIST(3, in), out);
}

static AX_BODY_OF(paged_plain, const table_case, c) {
  const ax_value table = ax_rem(in[3], all_pages),
                 k = ax_reshape(ax_take(in[1], table, 0), AX_DIMS(sequences, pages * c->block, width)),
                 v = ax_reshape(ax_take(in[2], table, 0), AX_DIMS(sequences, pages * c->block, width)),
                 scores = ax_mul(ax_einsum("bd,bkd->bk", AX_VALUES(in[0], k)), 1 / sqrt(width));
  out[0] = ax_einsum("bk,bkd->bd", AX_VALUES(ax_softmax(scores, 1), v));
}

/* --- tanh of rows: by slices of the whole, by rows of a block, and with copies by hand --- */

static void rows_types(const table_case *c, ax_type *types) { types[0] = AX_TYPE(AX_F32, c->rows, columns); }

static AX_BODY(tanh_plain) { out[0] = ax_tanh(in[0]); }

static AX_BODY_OF(sliced_step, const table_case, c) {
  const ax_value starts[] = {ax_mul(ax_program_id(0), c->block), ax_integer(0)};
  const int64_t sizes[] = {c->block, columns};
  ax_ref_store(in[1], ax_tanh(ax_ref_load(ax_ref_slice(in[0], AX_LIST(2, starts), AX_LIST(2, sizes)))));
}

static AX_BODY_OF(sliced, const table_case, c) {
  const ax_block_spec whole = {0}, block = {.block = {AX_DIMS(c->block, columns)}, .index_map = row_of};
  ax_kernel_call((&(ax_kernel){.grid = {AX_DIMS(tiles_of(c))}, .in_specs = {AX_BLOCK_SPECS(whole)}, .out_specs = {AX_BLOCK_SPECS(block)},
                              .outs = {AX_TYPES(AX_TYPE(AX_F32, c->rows, columns))}, .options = {.name = c->name}}),
                 AX_CLOSURE(sliced_step, 2, 0, (void *)(uintptr_t)c), AX_LIST(1, in), out);
}

static AX_BODY_OF(sliced_both_step, const table_case, c) {
  const ax_value starts[] = {ax_mul(ax_program_id(0), c->block), ax_integer(0)};
  const int64_t sizes[] = {c->block, columns};
  ax_ref_store(ax_ref_slice(in[1], AX_LIST(2, starts), AX_LIST(2, sizes)),
               ax_tanh(ax_ref_load(ax_ref_slice(in[0], AX_LIST(2, starts), AX_LIST(2, sizes)))));
}

static AX_BODY_OF(sliced_both, const table_case, c) {
  const ax_block_spec whole = {0};
  ax_kernel_call((&(ax_kernel){.grid = {AX_DIMS(tiles_of(c))}, .in_specs = {AX_BLOCK_SPECS(whole)}, .out_specs = {AX_BLOCK_SPECS(whole)},
                              .outs = {AX_TYPES(AX_TYPE(AX_F32, c->rows, columns))}, .options = {.name = c->name}}),
                 AX_CLOSURE(sliced_both_step, 2, 0, (void *)(uintptr_t)c), AX_LIST(1, in), out);
}

static AX_BODY_OF(one_row, const ax_value, refs) { ax_ref_store(ax_ref_at(refs[1], in[0]), ax_tanh(ax_ref_load(ax_ref_at(refs[0], in[0])))); }

static AX_BODY_OF(row_after_row, const table_case, c) {
  ax_fori_loop(ax_integer(0), ax_integer(c->block), AX_CLOSURE(one_row, 1, 0, (void *)(uintptr_t)in), NULL, NULL);
}

static AX_BODY_OF(row_loop, const table_case, c) {
  const ax_block_spec block = {.block = {AX_DIMS(c->block, columns)}, .index_map = row_of};
  ax_kernel_call((&(ax_kernel){.grid = {AX_DIMS(tiles_of(c))}, .in_specs = {AX_BLOCK_SPECS(block)}, .out_specs = {AX_BLOCK_SPECS(block)},
                              .outs = {AX_TYPES(AX_TYPE(AX_F32, c->rows, columns))}, .options = {.name = c->name}}),
                 AX_CLOSURE(row_after_row, 2, 0, (void *)(uintptr_t)c), AX_LIST(1, in), out);
}

/* --- Rows where another operand says: a table of words --- */

static void lookup_types(const table_case *c, ax_type *types) {
  types[0] = AX_TYPE(AX_F32, 32768, columns);
  types[1] = AX_TYPE(AX_S32, c->rows);
}

static AX_BODY(number_of) { out[0] = in[0]; }

static AX_BODY_OF(look_up, const ax_value, refs) {
  ax_ref_store(ax_ref_at(refs[2], in[0]), ax_ref_load(ax_ref_at(refs[0], ax_ref_load(ax_ref_at(refs[1], in[0])))));
}

static AX_BODY_OF(look_up_rows, const table_case, c) {
  ax_fori_loop(ax_integer(0), ax_integer(c->block), AX_CLOSURE(look_up, 1, 0, (void *)(uintptr_t)in), NULL, NULL);
}

static AX_BODY_OF(lookup, const table_case, c) {
  const ax_block_spec whole = {0}, words = {.block = {AX_DIMS(c->block)}, .index_map = number_of},
                      block = {.block = {AX_DIMS(c->block, columns)}, .index_map = row_of};
  const ax_value operands[] = {in[0], ax_and(in[1], 32767)};
  ax_kernel_call((&(ax_kernel){.grid = {AX_DIMS(tiles_of(c))}, .in_specs = {AX_BLOCK_SPECS(whole, words)}, .out_specs = {AX_BLOCK_SPECS(block)},
                              .outs = {AX_TYPES(AX_TYPE(AX_F32, c->rows, columns))}, .options = {.name = c->name}}),
                 AX_CLOSURE(look_up_rows, 3, 0, (void *)(uintptr_t)c), AX_LIST(2, operands), out);
}

static AX_BODY(lookup_plain) { out[0] = ax_take(in[0], ax_and(in[1], 32767), 0); }

typedef struct piped {
  const table_case *c;
  const ax_value *refs; /* x, y, two slots in, two slots out, semaphores in and out */
} piped;

static ax_value rows_at(const piped *p, ax_value ref, ax_value step) {
  const ax_value starts[] = {ax_mul(step, p->c->block), ax_integer(0)};
  const int64_t sizes[] = {p->c->block, columns};
  return ax_ref_slice(ref, AX_LIST(2, starts), AX_LIST(2, sizes));
}

static void start_in(const piped *p, ax_value step) {
  const ax_value slot = ax_rem(step, 2), semaphore = ax_ref_at(p->refs[4], slot);
  ax_copy_start(rows_at(p, p->refs[0], step), ax_ref_at(p->refs[2], slot), &(ax_copy_options){.received = (ax_value *)(uintptr_t)&semaphore});
}

static AX_BODY_OF(hand_step, const piped, p) {
  const ax_value step = in[0], slot = ax_rem(step, 2), x = ax_ref_at(p->refs[2], slot), y = ax_ref_at(p->refs[3], slot),
                 semaphore = ax_ref_at(p->refs[5], slot);
  AX_IF (ax_lt(ax_add(step, 1), tiles_of(p->c))) start_in(p, ax_add(step, 1));
  ax_copy_wait(ax_ref_at(p->refs[4], slot), x);
  AX_IF (ax_ge(step, 2)) ax_copy_wait(semaphore, y);
  ax_ref_store(y, ax_tanh(ax_ref_load(x)));
  ax_copy_start(y, rows_at(p, p->refs[1], step), &(ax_copy_options){.received = (ax_value *)(uintptr_t)&semaphore});
}

static AX_BODY_OF(hand_body, const table_case, c) {
  const piped p = {c, in};
  start_in(&p, ax_full_i64(AX_S32, AX_DIMS(), 0));
  ax_fori_loop(ax_integer(0), ax_integer(tiles_of(c)), AX_CLOSURE(hand_step, 1, 0, (void *)(uintptr_t)&p), NULL, NULL);
  for (int s = 0; s < 2; s++) ax_copy_wait(ax_ref_at(in[5], ax_integer(s)), ax_ref_at(in[3], ax_integer(s)));
}

static AX_BODY_OF(hand, const table_case, c) {
  static const ax_core_mesh core = {.core = "tensorcore", .space = AX_SPACE_HBM};
  const ax_scratch slots = {.type = AX_VMEM(AX_F32, 2, c->block, columns)}, arrived = {.type = ax_dma_semaphore_type(AX_DIMS(2))};
  const ax_scratch scratch[] = {slots, slots, arrived, arrived};
  const ax_kernel_options options = {.name = c->name, .scratch = {AX_LIST(4, scratch)}};
  ax_mpmd_map(AX_LIST(1, &core), &AX_CLOSURE(hand_body, 6, 0, (void *)(uintptr_t)c), &options, AX_LIST(1, in),
              AX_TYPES(AX_TYPE(AX_F32, c->rows, columns)), out);
}

/* --- A block for two of the result's --- */

static AX_BODY(half_of) {
  out[0] = ax_div(in[0], 2);
  out[1] = ax_integer(0);
}

static AX_BODY(add_number) { ax_ref_store(in[1], ax_add(ax_ref_load(in[0]), ax_convert_element_type(ax_program_id(0), AX_F32))); }

static AX_BODY_OF(halved, const table_case, c) {
  const ax_block_spec half = {.block = {AX_DIMS(c->block, columns)}, .index_map = half_of},
                      block = {.block = {AX_DIMS(c->block, columns)}, .index_map = row_of};
  ax_kernel_call((&(ax_kernel){.grid = {AX_DIMS(2 * tiles_of(c))}, .in_specs = {AX_BLOCK_SPECS(half)}, .out_specs = {AX_BLOCK_SPECS(block)},
                              .outs = {AX_TYPES(AX_TYPE(AX_F32, 2 * c->rows, columns))}, .options = {.name = c->name}}),
                 AX_FN(add_number, 2, 0), AX_LIST(1, in), out);
}

static AX_BODY_OF(halved_plain, const table_case, c) {
  const int64_t dims[] = {tiles_of(c), 2, c->block, columns};
  const ax_value twice = ax_broadcast_in_dim(ax_reshape(in[0], AX_DIMS(tiles_of(c), c->block, columns)), AX_LIST(4, dims), AX_DIMS(0, 2, 3)),
                 number = ax_reshape(ax_iota(AX_F32, AX_DIMS(2 * tiles_of(c)), 0), AX_DIMS(tiles_of(c), 2));
  out[0] = ax_reshape(ax_add(twice, ax_broadcast_in_dim(number, AX_LIST(4, dims), AX_DIMS(0, 1))), AX_DIMS(2 * c->rows, columns));
}

/* --- The cases --- */

static const table_case cases[] = {
    {"grouped_16", grouped, grouped_plain, 4096, 16, 3, grouped_types},   {"grouped_128", grouped, grouped_plain, 4096, 128, 3, grouped_types},
    {"visited_16", visited, visited_plain, 4096, 16, 3, visited_types},   {"visited_128", visited, visited_plain, 4096, 128, 3, visited_types},
    {"paged_16", paged, paged_plain, 0, 16, 4, paged_types},              {"paged_128", paged, paged_plain, 0, 128, 4, paged_types},
    {"sliced_1", sliced, tanh_plain, 4096, 1, 1, rows_types},             {"sliced_16", sliced, tanh_plain, 4096, 16, 1, rows_types},
    {"sliced_128", sliced, tanh_plain, 4096, 128, 1, rows_types},         {"sliced_both_16", sliced_both, tanh_plain, 4096, 16, 1, rows_types},
    {"sliced_both_128", sliced_both, tanh_plain, 4096, 128, 1, rows_types},
    {"row_loop_16", row_loop, tanh_plain, 4096, 16, 1, rows_types},       {"row_loop_128", row_loop, tanh_plain, 4096, 128, 1, rows_types},
    {"lookup_1", lookup, lookup_plain, 4096, 1, 2, lookup_types},         {"lookup_16", lookup, lookup_plain, 4096, 16, 2, lookup_types},
    {"hand_1", hand, tanh_plain, 4096, 1, 1, rows_types},                 {"hand_16", hand, tanh_plain, 4096, 16, 1, rows_types},
    {"hand_128", hand, tanh_plain, 4096, 128, 1, rows_types},             {"halved_8", halved, halved_plain, 4096, 8, 1, rows_types},
    {"halved_128", halved, halved_plain, 4096, 128, 1, rows_types},
};

void grid_table(char **arguments) {
  table_case c = {0};
  ax_type types[4];
  for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    if (strcmp(cases[i].name, arguments[1]) == 0) c = cases[i];
  check(c.name != NULL ? AX_OK : AX_INVALID_ARGUMENT);
  c.types(&c, types);
  job j = job_create(&(job_function){strcmp(arguments[0], "plain") == 0 ? c.plain : c.kernel, &c, NULL, c.in_count, 1, types, NULL, NULL},
                     (uint32_t)atoi(arguments[2]));
  bench_serve(job_run, &j, 1);
}
