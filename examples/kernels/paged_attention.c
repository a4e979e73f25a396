/* Attention of one query for each of three sequences, whose keys and values lie in pages that a table lists (a cache as servers of
   language models have it). The index map of keys and values reads the table, which in Pallas takes scalar prefetch. Beside it the same
   as a plain program. */
#include <axle/axle.h>
#include <math.h>
#include <stdio.h>

enum { SEQUENCES = 3, PAGES = 4, PAGE = 8, ALL_PAGES = 12, WIDTH = 16 };
enum { Q, KEYS, VALUES, TABLE, LENGTHS, INPUTS };
enum { REF_Q, REF_K, REF_V, REF_OUT, REF_MOST, REF_SUM, REF_TOTAL, REFS };

/* Point (sequence, page) of the grid -> the block of keys, or values: the page that the table has there. */
static AX_BODY_OF(page_of, const ax_value, given) {
  out[0] = ax_dynamic_at(ax_dynamic_at(given[TABLE], in[0], 0), in[1], 0);
  out[1] = out[2] = ax_integer(0);
}

static AX_BODY(sequence_of) {
  out[0] = in[0];
  out[1] = ax_integer(0);
}

/* One page: a softmax that goes on from page to page. */
static AX_BODY_OF(attend, const ax_value, given) {
  ax_value sequence = ax_program_id(0), page = ax_program_id(1);
  AX_IF (ax_eq(page, 0)) {
    ax_ref_store(in[REF_MOST], -1e30);
    ax_ref_store(in[REF_SUM], 0);
    ax_ref_store(in[REF_TOTAL], 0);
  }
  ax_value scores = ax_mul(ax_einsum("d,kd->k", AX_VALUES(ax_ref_load(in[REF_Q]), ax_ref_load(in[REF_K]))), 1 / sqrt(WIDTH));
  ax_value place = ax_add(ax_iota(AX_S32, AX_DIMS(PAGE), 0), ax_mul(page, PAGE));
  scores = ax_where(ax_lt(place, ax_dynamic_at(given[LENGTHS], sequence, 0)), scores, -1e30);
  ax_value before = ax_ref_load(in[REF_MOST]), most = ax_max(before, ax_reduce_max(scores, AX_DIMS(0), true));
  ax_value weights = ax_exp(ax_sub(scores, most)), fade = ax_exp(ax_sub(before, most));
  ax_ref_store(in[REF_SUM], ax_add(ax_mul(ax_ref_load(in[REF_SUM]), fade), ax_reduce_sum(weights, AX_DIMS(0), true)));
  ax_value seen = ax_einsum("k,kd->d", AX_VALUES(weights, ax_ref_load(in[REF_V])));
  ax_ref_store(in[REF_TOTAL], ax_add(ax_mul(ax_ref_load(in[REF_TOTAL]), fade), seen));
  ax_ref_store(in[REF_MOST], most);
  AX_IF (ax_eq(page, PAGES - 1)) ax_ref_store(in[REF_OUT], ax_div(ax_ref_load(in[REF_TOTAL]), ax_ref_load(in[REF_SUM])));
}

static AX_BODY(paged) {
  const ax_block_spec q = {.block = {AX_DIMS(0, WIDTH)}, .index_map = sequence_of};
  const ax_block_spec k = {.block = {AX_DIMS(0, PAGE, WIDTH)}, .index_map = page_of, .context = (void *)in};
  ax_kernel_call((&(ax_kernel){.grid = {AX_DIMS(SEQUENCES, PAGES)},
                              .in_specs = {AX_BLOCK_SPECS(q, k, k)},
                              .out_specs = {AX_BLOCK_SPECS(q)},
                              .outs = {AX_TYPES(AX_TYPE(AX_F32, SEQUENCES, WIDTH))},
                              .options = {.name = "paged",
                                          .scratch = {AX_SCRATCH({.type = AX_VMEM(AX_F32, 1)}, {.type = AX_VMEM(AX_F32, 1)},
                                                                 {.type = AX_VMEM(AX_F32, WIDTH)})}}}),
                 AX_CLOSURE(attend, REFS, 0, (void *)in), AX_LIST(3, in), out);
}

static AX_BODY(plain) {
  ax_value keys = ax_reshape(ax_take(in[KEYS], in[TABLE], 0), AX_DIMS(SEQUENCES, PAGES * PAGE, WIDTH));
  ax_value values = ax_reshape(ax_take(in[VALUES], in[TABLE], 0), AX_DIMS(SEQUENCES, PAGES * PAGE, WIDTH));
  ax_value scores = ax_mul(ax_einsum("bd,bkd->bk", AX_VALUES(in[Q], keys)), 1 / sqrt(WIDTH));
  ax_value lengths = ax_broadcast_to(ax_expand_dims(in[LENGTHS], 1), AX_DIMS(SEQUENCES, PAGES * PAGE));
  ax_value seen = ax_lt(ax_iota(AX_S32, AX_DIMS(SEQUENCES, PAGES * PAGE), 1), lengths);
  out[0] = ax_einsum("bk,bkd->bd", AX_VALUES(ax_softmax(ax_where(seen, scores, -1e30), 1), values));
}

int main(void) {
  static float q[SEQUENCES][WIDTH], keys[ALL_PAGES][PAGE][WIDTH], values[ALL_PAGES][PAGE][WIDTH];
  int32_t table[SEQUENCES][PAGES] = {{3, 11, 7, 0}, {1, 2, 0, 0}, {5, 6, 8, 10}}, lengths[SEQUENCES] = {26, 9, 32};
  for (int i = 0; i < SEQUENCES * WIDTH; i++) (&q[0][0])[i] = (float)sin(i);
  for (int i = 0; i < ALL_PAGES * PAGE * WIDTH; i++) (&keys[0][0][0])[i] = (float)cos(3 * i), (&values[0][0][0])[i] = (float)sin(7 * i);
  const ax_host_array in[INPUTS] = {AX_HOST(q), AX_HOST(keys), AX_HOST(values), AX_HOST(table), AX_HOST(lengths)};
  ax_host_array by_pages, expected;
  double most = 0;
  ax_must(ax_apply(NULL, AX_FN(paged, INPUTS, 1), in, &by_pages));
  ax_must(ax_apply(NULL, AX_FN(plain, INPUTS, 1), in, &expected));
  for (int64_t i = 0; i < SEQUENCES * WIDTH; i++) most = fmax(most, fabs(ax_host_at(&by_pages, i) - ax_host_at(&expected, i)));
  printf("the first query sees %.6f %.6f ..; pages and plain differ by %.1g at most\n", ax_host_at(&by_pages, 0), ax_host_at(&by_pages, 1), most);
  ax_host_array_release(&by_pages);
  ax_host_array_release(&expected);
  return most < 1e-5 ? 0 : 1;
}
