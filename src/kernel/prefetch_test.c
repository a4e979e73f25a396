/* Index maps that read captured values (scalar prefetch): grouped products beside plain programs; their derivatives, batches, texts, and
   proofs. examples/kernels/paged_attention.c is another. */
#undef AXLE_NO_LINES /* as users have it */
#include <string.h>

#include "axle/axle.h"
#include "support/cmocka.h"
#include "support/tensor.h"

/* --- A grouped product, as megablox: rows are sorted by group, and a visit is a tile of rows with one group's matrix --- */

enum { ROWS = 48, INNER = 8, COLUMNS = 6, GROUPS = 3, TILE = 8, VISITS = ROWS / TILE + GROUPS - 1 };
enum { X, W, TILE_OF, GROUP_OF, OFFSETS, GROUPED_INPUTS };

static AX_BODY(rows_of_visit) {
  const ax_value *given = context;
  out[0] = ax_dynamic_at(given[TILE_OF], in[0], 0);
  out[1] = ax_integer(0);
}

static AX_BODY(matrix_of_visit) {
  const ax_value *given = context;
  out[0] = ax_dynamic_at(given[GROUP_OF], in[0], 0);
  out[1] = out[2] = ax_integer(0);
}

static ax_value spread(ax_value scalar) { return ax_broadcast_to(scalar, AX_DIMS(TILE, COLUMNS)); }

/* Stores the rows of the tile that belong to the group. */
static AX_BODY(visit) {
  const ax_value *given = context;
  ax_value number = ax_program_id(0), group = ax_dynamic_at(given[GROUP_OF], number, 0);
  ax_value first = ax_mul(ax_dynamic_at(given[TILE_OF], number, 0), TILE);
  ax_value row = ax_add(ax_iota(AX_S32, AX_DIMS(TILE, COLUMNS), 0), spread(first));
  ax_value mine = ax_and(ax_ge(row, spread(ax_dynamic_at(given[OFFSETS], group, 0))),
                         ax_lt(row, spread(ax_dynamic_at(given[OFFSETS], ax_add(group, 1), 0))));
  ax_ref_store_masked(in[2], mine, ax_matmul(ax_ref_load(in[0]), ax_ref_load(in[1])));
}

static AX_BODY(grouped) {
  const ax_block_spec x = {.block = {AX_DIMS(TILE, INNER)}, .index_map = rows_of_visit, .context = (void *)(uintptr_t)in};
  const ax_block_spec w = {.block = {AX_DIMS(0, INNER, COLUMNS)}, .index_map = matrix_of_visit, .context = (void *)(uintptr_t)in};
  const ax_block_spec y = {.block = {AX_DIMS(TILE, COLUMNS)}, .index_map = rows_of_visit, .context = (void *)(uintptr_t)in};
  ax_kernel_call((&(ax_kernel){.grid = {AX_DIMS(VISITS)},
                              .in_specs = {AX_BLOCK_SPECS(x, w)},
                              .out_specs = {AX_BLOCK_SPECS(y)},
                              .outs = {AX_TYPES(AX_TYPE(AX_F32, ROWS, COLUMNS))},
                              .options = {.name = "grouped"}}),
                 AX_CLOSURE(visit, 3, 0, (void *)(uintptr_t)in), AX_LIST(2, in), out);
}

static AX_BODY(grouped_plain) {
  ax_value sum = {0}, row = ax_iota(AX_S32, AX_DIMS(ROWS, COLUMNS), 0);
  for (int g = 0; g < GROUPS; g++) {
    ax_value low = ax_broadcast_to(ax_at(in[OFFSETS], g, 0), AX_DIMS(ROWS, COLUMNS));
    ax_value high = ax_broadcast_to(ax_at(in[OFFSETS], g + 1, 0), AX_DIMS(ROWS, COLUMNS));
    ax_value made = ax_where(ax_and(ax_ge(row, low), ax_lt(row, high)), ax_matmul(in[X], ax_at(in[W], g, 0)), 0.0);
    sum = g > 0 ? ax_add(sum, made) : made;
  }
  out[0] = sum;
}

typedef struct pair {
  ax_function kernel, plain;
} pair;

static float numbers[2][4096];
static int32_t tile_of[VISITS], group_of[VISITS], offsets[GROUPS + 1] = {0, 5, 29, ROWS};

static void fill(float *to, size_t count, uint64_t seed) {
  for (size_t i = 0; i < count; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    to[i] = (float)((double)(int64_t)(seed >> 40) / (double)(1 << 23) - 1);
  }
}

static void plan_visits(void) {
  int count = 0;
  for (int t = 0; t < ROWS / TILE; t++)
    for (int g = 0; g < GROUPS; g++)
      if (offsets[g] < (t + 1) * TILE && offsets[g + 1] > t * TILE) tile_of[count] = t, group_of[count++] = g;
  for (; count < VISITS; count++) tile_of[count] = tile_of[count - 1], group_of[count] = group_of[count - 1];
}

static void check_near(const ax_host_array *a, const ax_host_array *b) {
  assert_int_equal(a->rank, b->rank);
  int64_t elems = 1;
  for (uint32_t d = 0; d < a->rank; d++) elems *= a->dims[d];
  for (int64_t i = 0; i < elems; i++) TEST_NEAR(((const float *)a->data)[i], ((const float *)b->data)[i], 1e-5);
}

static void check_same(ax_function kernel, ax_function plain, const ax_host_array *in, uint32_t in_count) {
  ax_host_array made, expected;
  TEST_OK((ax_apply)(NULL, AX_CLOSURE(kernel, in_count, 1, NULL), in_count, in, 1, &made));
  TEST_OK((ax_apply)(NULL, AX_CLOSURE(plain, in_count, 1, NULL), in_count, in, 1, &expected));
  check_near(&made, &expected);
  ax_host_array_release(&made);
  ax_host_array_release(&expected);
}

/* The gradient by w of the sum of squares. */
static AX_BODY(loss_of) {
  const pair *p = context;
  ax_value made;
  p->kernel(in, &made, NULL);
  out[0] = ax_reduce_sum(ax_square(made), AX_ALL_DIMS, false);
}
static AX_BODY(slope_of_kernel) {
  pair p = {grouped, NULL};
  ax_grad(AX_CLOSURE(loss_of, GROUPED_INPUTS, 1, &p), AX_RANGE(1, 1), AX_LIST(GROUPED_INPUTS, in), AX_LIST(1, out));
}
static AX_BODY(slope_of_plain) {
  pair p = {grouped_plain, NULL};
  ax_grad(AX_CLOSURE(loss_of, GROUPED_INPUTS, 1, &p), AX_RANGE(1, 1), AX_LIST(GROUPED_INPUTS, in), AX_LIST(1, out));
}

static void grouped_inputs(ax_host_array *in) {
  plan_visits();
  fill(numbers[0], ROWS * INNER, 1);
  fill(numbers[1], GROUPS * INNER * COLUMNS, 2);
  in[X] = ax_host_view(AX_F32, AX_DIMS(ROWS, INNER), numbers[0]);
  in[W] = ax_host_view(AX_F32, AX_DIMS(GROUPS, INNER, COLUMNS), numbers[1]);
  in[TILE_OF] = ax_host_view(AX_S32, AX_DIMS(VISITS), tile_of);
  in[GROUP_OF] = ax_host_view(AX_S32, AX_DIMS(VISITS), group_of);
  in[OFFSETS] = ax_host_view(AX_S32, AX_DIMS(GROUPS + 1), offsets);
}

static void grouped_products(void **state) {
  (void)state;
  ax_host_array in[GROUPED_INPUTS];
  grouped_inputs(in);
  check_same(grouped, grouped_plain, in, GROUPED_INPUTS);
  check_same(slope_of_kernel, slope_of_plain, in, GROUPED_INPUTS);
}

/* --- Batches: of the data, of the tables, of both --- */

static const int64_t *batched_inputs;

static AX_BODY(batch_of_kernel) {
  const ax_vmap_options options = {.in_axes = {AX_LIST(GROUPED_INPUTS, batched_inputs)}};
  ax_vmap(AX_FN(grouped, GROUPED_INPUTS, 1), AX_LIST(GROUPED_INPUTS, in), AX_LIST(1, out), &options);
}
static AX_BODY(batch_of_plain) {
  const ax_vmap_options options = {.in_axes = {AX_LIST(GROUPED_INPUTS, batched_inputs)}};
  ax_vmap(AX_FN(grouped_plain, GROUPED_INPUTS, 1), AX_LIST(GROUPED_INPUTS, in), AX_LIST(1, out), &options);
}

static void batches(void **state) {
  (void)state;
  static float x[2 * ROWS * INNER];
  static int32_t tiles[2 * VISITS], groups[2 * VISITS], borders[2 * (GROUPS + 1)];
  ax_host_array in[GROUPED_INPUTS];
  grouped_inputs(in);
  fill(x, sizeof x / sizeof x[0], 5);
  memcpy(tiles, tile_of, sizeof tile_of), memcpy(groups, group_of, sizeof group_of), memcpy(borders, offsets, sizeof offsets);
  offsets[1] = 16, offsets[2] = 17;
  plan_visits();
  memcpy(tiles + VISITS, tile_of, sizeof tile_of), memcpy(groups + VISITS, group_of, sizeof group_of);
  memcpy(borders + GROUPS + 1, offsets, sizeof offsets);
  static const int64_t none = AX_NOT_MAPPED;
  const int64_t data[] = {0, none, none, none, none}, tables[] = {none, none, 0, 0, 0}, both[] = {0, none, 0, 0, 0};
  ax_host_array wide = ax_host_view(AX_F32, AX_DIMS(2, ROWS, INNER), x), whole = in[X];
  in[X] = wide;
  in[TILE_OF] = ax_host_view(AX_S32, AX_DIMS(VISITS), tile_of);
  in[GROUP_OF] = ax_host_view(AX_S32, AX_DIMS(VISITS), group_of);
  batched_inputs = data;
  check_same(batch_of_kernel, batch_of_plain, in, GROUPED_INPUTS);
  in[TILE_OF] = ax_host_view(AX_S32, AX_DIMS(2, VISITS), tiles);
  in[GROUP_OF] = ax_host_view(AX_S32, AX_DIMS(2, VISITS), groups);
  in[OFFSETS] = ax_host_view(AX_S32, AX_DIMS(2, GROUPS + 1), borders);
  batched_inputs = both;
  check_same(batch_of_kernel, batch_of_plain, in, GROUPED_INPUTS);
  in[X] = whole;
  batched_inputs = tables;
  check_same(batch_of_kernel, batch_of_plain, in, GROUPED_INPUTS);
}

/* --- Texts, what is left out, and what is refused --- */

/* The maps take the tables alone: what a body captures besides is no operand of theirs that is read. */
static void texts(void **state) {
  (void)state;
  const ax_type types[] = {AX_TYPE(AX_F32, ROWS, INNER), AX_TYPE(AX_F32, GROUPS, INNER, COLUMNS), AX_TYPE(AX_S32, VISITS),
                           AX_TYPE(AX_S32, VISITS), AX_TYPE(AX_S32, GROUPS + 1)};
  ax_program *program, *read, *clean;
  char *text;
  TEST_OK(ax_trace(AX_FN(grouped, GROUPED_INPUTS, 1), types, &program));
  TEST_OK(ax_program_verify(program));
  TEST_OK(ax_program_print(program, &text));
  TEST_OK(ax_program_parse(text, strlen(text), "text", &read));
  assert_true(ax_program_equal(program, read));
  TEST_OK(ax_program_simplify(program, &clean));
  TEST_OK(ax_program_verify(clean));
  ax_string_free(text);
  ax_program_release(clean);
  ax_program_release(read);
  ax_program_release(program);
}

static const ax_value *unused;

static AX_BODY(map_of_first) {
  const ax_value *given = context;
  out[0] = ax_dynamic_at(given[1], in[0], 0);
}
static AX_BODY(copy_block) {
  (void)ax_add(*unused, 1); /* captured, and of no use */
  ax_ref_store(in[1], ax_ref_load(in[0]));
}
static AX_BODY(with_unused) {
  unused = &in[2];
  const ax_block_spec x = {.block = {AX_DIMS(2)}, .index_map = map_of_first, .context = (void *)(uintptr_t)in}, y = {.block = {AX_DIMS(2)}};
  ax_kernel_call((&(ax_kernel){.grid = {AX_DIMS(1)}, .in_specs = {AX_BLOCK_SPECS(x)}, .out_specs = {AX_BLOCK_SPECS(y)},
                              .outs = {AX_TYPES(AX_TYPE(AX_F32, 2))}}),
                 AX_FN(copy_block, 2, 0), AX_LIST(1, in), out);
}

static void left_out(void **state) {
  (void)state;
  static float x[] = {1, 2, 3, 4}, other = 5;
  static int32_t where[] = {1};
  const ax_type types[] = {AX_TYPE(AX_F32, 4), AX_TYPE(AX_S32, 1), AX_TYPE(AX_F32)};
  const ax_host_array in[] = {AX_HOST(x), AX_HOST(where), AX_HOST(other)};
  ax_program *program, *clean;
  ax_host_array made;
  char *text;
  TEST_OK(ax_trace(AX_FN(with_unused, 3, 1), types, &program));
  TEST_OK(ax_program_simplify(program, &clean));
  TEST_OK(ax_program_verify(clean));
  TEST_OK(ax_program_print(clean, &text));
  assert_non_null(strstr(text, "consts=1"));
  TEST_OK(ax_apply(NULL, AX_FN(with_unused, 3, 1), in, AX_LIST(1, &made)));
  assert_true(((const float *)made.data)[0] == 3 && ((const float *)made.data)[1] == 4);
  ax_host_array_release(&made);
  ax_string_free(text);
  ax_program_release(program);
  ax_program_release(clean);
}

static void proofs(void **state) {
  (void)state;
  const ax_type types[] = {AX_TYPE(AX_F32, ROWS, INNER), AX_TYPE(AX_F32, GROUPS, INNER, COLUMNS), AX_TYPE(AX_S32, VISITS),
                           AX_TYPE(AX_S32, VISITS), AX_TYPE(AX_S32, GROUPS + 1)};
  ax_host_array in[GROUPED_INPUTS];
  ax_program *program;
  ax_check_report *report;
  grouped_inputs(in);
  TEST_OK(ax_trace(AX_FN(grouped, GROUPED_INPUTS, 1), types, &program));
  TEST_OK(ax_check(program, &(ax_check_options){.in = {GROUPED_INPUTS, in}}, &report));
  assert_int_equal(report->verdict, AX_PROVED);
  assert_int_equal(report->kernel_count, 1);
  ax_check_report_release(report);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(grouped_products), cmocka_unit_test(batches), 
      cmocka_unit_test(texts),            cmocka_unit_test(left_out), cmocka_unit_test(proofs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
