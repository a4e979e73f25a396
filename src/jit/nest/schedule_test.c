/* Which shape sums over rows are made in: by what is added up and how much is read. And which short loops become longer, where
   squares are turned. */
#include "jit/nest/schedule.h"

#include "axle/ops.h"
#include "base/base.h"
#include "support/cmocka.h"

/* y[j] = the sum, or another reduction, over i of x[i, j]. */
static ax_nest_shape shape_of(ax_dtype dtype, ax_scalar reduce, int64_t rows, int64_t columns, uint32_t vector_bytes) {
  ax_arena arena = {0};
  ax_nest_schedule *schedule;
  const int64_t dims[] = {columns, rows}, from[] = {rows, columns};
  ax_loop_kernel *k = ax_kernel_create(&arena, 2, 1, dims);
  const uint32_t in = ax_kernel_slot(k, dtype, 2, from), out = ax_kernel_slot(k, dtype, 1, dims);
  const ax_position at[] = {{.dim = 1, .coef = 1, .dynamic = AX_NONE}, {.dim = 0, .coef = 1, .dynamic = AX_NONE}};
  ax_kernel_store(k, out, &at[1], ax_kernel_load(k, in, at), reduce);
  assert_false(k->failed);
  assert_int_equal(ax_nest_schedule_create(&arena, k, (ax_registers){.bytes = vector_bytes}, false, &schedule), AX_OK);
  const ax_nest_shape shape = schedule->shape;
  ax_arena_deinit(&arena);
  return shape;
}

static void sums_over_rows(void **state) {
  (void)state;
  for (uint32_t bytes = 16; bytes <= 64; bytes *= 2) {
    const int64_t columns = 4 * (bytes / 4);
    assert_int_equal(shape_of(AX_F32, AX_SCALAR_ADD, 100, columns, bytes), AX_NEST_TILE);
    assert_int_equal(shape_of(AX_BF16, AX_SCALAR_ADD, 100, columns, bytes), AX_NEST_TILE);
    assert_int_equal(shape_of(AX_F32, AX_SCALAR_ADD, 16, columns, bytes), AX_NEST_BLOCK);      /* nothing is widened */
    assert_int_equal(shape_of(AX_F64, AX_SCALAR_ADD, 100, columns / 2, bytes), AX_NEST_BLOCK); /* nor here, */
    assert_int_equal(shape_of(AX_F32, AX_SCALAR_MAX, 100, columns, bytes), AX_NEST_BLOCK);     /* nor here */
    assert_int_equal(shape_of(AX_F32, AX_SCALAR_ADD, 1 << 16, columns, bytes), AX_NEST_BLOCK); /* memory takes longer */
    assert_int_equal(shape_of(AX_F32, AX_SCALAR_ADD, 100, 16 * columns, bytes), AX_NEST_TILE);
  }
}

/* y[i, j] = the sum over k of x[j] times k, for few i: lanes go along j, in which x is loaded and y is stored, though a vector along i would
   load a single number. Both are touched once for all k. */
static void lanes_of_sums_go_where_results_lie(void **state) {
  (void)state;
  for (uint32_t bytes = 16; bytes <= 64; bytes *= 2) {
    ax_arena arena = {0};
    ax_nest_schedule *schedule;
    const int64_t dims[] = {16, 1024, 64};
    ax_loop_kernel *k = ax_kernel_create(&arena, 3, 1, dims);
    ax_position at[3];
    ax_at_identity(at, 3);
    const uint32_t x = ax_kernel_slot(k, AX_F32, 1, &dims[1]), y = ax_kernel_slot(k, AX_F32, 2, dims);
    const ax_ex number = ax_kernel_op(k, AX_SCALAR_CONVERT, AX_F32, ax_kernel_index(k, 2), AX_NONE, AX_NONE);
    ax_kernel_store(k, y, at, ax_kernel_op(k, AX_SCALAR_MUL, AX_F32, ax_kernel_load(k, x, &at[1]), number, AX_NONE), AX_SCALAR_ADD);
    assert_false(k->failed);
    assert_int_equal(ax_nest_schedule_create(&arena, k, (ax_registers){.bytes = bytes}, false, &schedule), AX_OK);
    assert_int_equal(schedule->loops[schedule->vector].extent, 1024);
    ax_arena_deinit(&arena);
  }
}

/* The loop along which vectors go where l = log(log(x[i, j])) is stored and its rows are added up. */
static int64_t lanes_of_logs(int64_t rows, int64_t columns, uint32_t vector_bytes) {
  ax_arena arena = {0};
  ax_nest_schedule *schedule;
  const int64_t dims[] = {rows, columns};
  ax_loop_kernel *k = ax_kernel_create(&arena, 2, 1, dims);
  ax_position at[2];
  ax_at_identity(at, 2);
  ax_ex l = ax_kernel_load(k, ax_kernel_slot(k, AX_F32, 2, dims), at);
  for (int i = 0; i < 2; i++) l = ax_kernel_op_imm(k, AX_SCALAR_LOG, AX_F32, l, 0);
  ax_kernel_store(k, ax_kernel_slot(k, AX_F32, 2, dims), at, l, AX_SCALAR_NONE);
  ax_kernel_store(k, ax_kernel_slot(k, AX_F32, 1, dims), at, l, AX_SCALAR_ADD);
  assert_false(k->failed);
  assert_int_equal(ax_nest_schedule_create(&arena, k, (ax_registers){.bytes = vector_bytes}, false, &schedule), AX_OK);
  const int64_t extent = schedule->loops[schedule->vector].extent;
  ax_arena_deinit(&arena);
  return extent;
}

/* A function takes as long for few lanes as for all, which counts for more than to store each number by itself. */
static void functions_of_short_rows_fill_vectors(void **state) {
  (void)state;
  assert_int_equal(lanes_of_logs(2048, 5, 64), 2048);
  assert_int_equal(lanes_of_logs(2048, 3, 64), 2048);
  assert_int_equal(lanes_of_logs(2048, 16, 64), 16);
  assert_int_equal(lanes_of_logs(2048, 200, 64), 200);
}

/* How many vectors of e = exp(x[i, j] - m[i]) are computed at a time, where e is stored and its rows are added up; *wide: in f64. */
static uint32_t vectors_of_softmax(ax_dtype dtype, uint32_t vector_bytes, bool *wide) {
  ax_arena arena = {0};
  ax_nest_schedule *schedule;
  const int64_t dims[] = {128, 512};
  ax_loop_kernel *k = ax_kernel_create(&arena, 2, 1, dims);
  ax_position at[2];
  ax_at_identity(at, 2);
  const uint32_t x = ax_kernel_slot(k, dtype, 2, dims), m = ax_kernel_slot(k, dtype, 1, dims), e = ax_kernel_slot(k, dtype, 2, dims),
                 sum = ax_kernel_slot(k, dtype, 1, dims);
  const ax_ex less = ax_kernel_op(k, AX_SCALAR_SUB, dtype, ax_kernel_load(k, x, at), ax_kernel_load(k, m, at), AX_NONE);
  const ax_ex value = ax_kernel_op_imm(k, AX_SCALAR_EXP, dtype, less, 0);
  ax_kernel_store(k, e, at, value, AX_SCALAR_NONE);
  ax_kernel_store(k, sum, at, value, AX_SCALAR_ADD);
  assert_false(k->failed);
  assert_int_equal(ax_nest_schedule_create(&arena, k, (ax_registers){.bytes = vector_bytes}, false, &schedule), AX_OK);
  const uint32_t vectors = schedule->unroll;
  *wide = schedule->wide;
  ax_arena_deinit(&arena);
  return vectors;
}

/* A call is short, but sums wait in memory for it. They are as accurate as if fewer vectors were taken together. */
static void sums_around_calls_are_shared_by_four_vectors(void **state) {
  bool wide;
  (void)state;
  for (uint32_t bytes = 16; bytes <= 64; bytes *= 2) {
    assert_int_equal(vectors_of_softmax(AX_F32, bytes, &wide), 4);
    assert_true(wide);
    assert_int_equal(vectors_of_softmax(AX_F64, bytes, &wide), 1); /* its functions take longer than the way */
  }
  assert_int_equal(vectors_of_softmax(AX_BF16, 64, &wide), 2); /* in line */
}

/* y = exp(exp( .. x)), of so many. */
static bool is_in_line(ax_dtype dtype, int64_t elems, int functions, int64_t accuracy, uint32_t vector_bytes) {
  ax_arena arena = {0};
  ax_nest_schedule *schedule;
  ax_position at[1];
  ax_loop_kernel *k = ax_kernel_create(&arena, 1, 0, &elems);
  ax_at_identity(at, 1);
  ax_ex y = ax_kernel_load(k, ax_kernel_slot(k, dtype, 1, &elems), at);
  for (int i = 0; i < functions; i++) y = ax_kernel_op_imm(k, AX_SCALAR_EXP, dtype, y, accuracy);
  ax_kernel_store(k, ax_kernel_slot(k, dtype, 1, &elems), at, y, AX_SCALAR_NONE);
  assert_int_equal(ax_nest_schedule_create(&arena, k, (ax_registers){.bytes = vector_bytes}, false, &schedule), AX_OK);
  const bool in_line = schedule->in_line;
  ax_arena_deinit(&arena);
  return in_line;
}

static void exp_of_many_vectors_is_in_line(void **state) {
  (void)state;
  assert_true(is_in_line(AX_F32, 1 << 15, 1, AX_ACCURACY_DEFAULT, 64));
  assert_true(is_in_line(AX_F32, 1 << 14, 1, AX_ACCURACY_DEFAULT, 32));
  assert_false(is_in_line(AX_F32, 1 << 14, 1, AX_ACCURACY_DEFAULT, 64)); /* the time to compile does not come back */
  assert_true(is_in_line(AX_F32, 1 << 20, 4, AX_ACCURACY_DEFAULT, 64));
  assert_false(is_in_line(AX_F32, 1 << 20, 5, AX_ACCURACY_DEFAULT, 64)); /* nor here */
  assert_false(is_in_line(AX_F32, 1 << 20, 1, AX_ACCURACY_HIGHEST, 64)); /* others are computed otherwise: precise ones, */
  assert_false(is_in_line(AX_F64, 1 << 20, 1, AX_ACCURACY_DEFAULT, 64)); /* those of f64, */
  assert_false(is_in_line(AX_F32, 1 << 20, 1, AX_ACCURACY_DEFAULT, 16)); /* and SLEEF's */
}

/* y = x with its dimensions in reverse order, which are these of y: what its loops have become, "rows of V, squares along W", an
   inner extent in brackets. */
static void expect_turned(ax_dtype dtype, uint32_t rank, const int64_t *dims, uint32_t ranged, uint32_t vector_bytes,
                          const char *wanted) {
  ax_arena arena = {0};
  ax_nest_schedule *s;
  ax_position from[AX_MAX_RANK], to[AX_MAX_RANK];
  int64_t reversed[AX_MAX_RANK];
  ax_text text = {0};
  char *got;
  ax_loop_kernel *k = ax_kernel_create(&arena, rank, 0, dims);
  for (uint32_t d = 0; d < rank; d++) {
    from[d] = (ax_position){.dim = (int)(rank - 1 - d), .coef = 1, .dynamic = AX_NONE};
    reversed[d] = dims[rank - 1 - d];
  }
  ax_at_identity(to, rank);
  ax_kernel_store(k, ax_kernel_slot(k, dtype, rank, dims), to, ax_kernel_load(k, ax_kernel_slot(k, dtype, rank, reversed), from),
                  AX_SCALAR_NONE);
  k->ranged = ranged;
  assert_false(k->failed);
  assert_int_equal(ax_nest_schedule_create(&arena, k, (ax_registers){.bytes = vector_bytes}, false, &s), AX_OK);
  const ax_loop *rows = &s->loops[s->vector], *last = &s->loops[s->loop_count - 1];
  if (s->shape == AX_NEST_TRANSPOSE)
    ax_text_add(&text, "%lld (%lld), %lld (%lld)", (long long)rows->extent, (long long)rows->inner, (long long)last->extent,
                (long long)last->inner);
  else ax_text_add(&text, "no squares");
  assert_int_equal(ax_text_finish(&text, &got), AX_OK);
  assert_string_equal(got, wanted);
  ax_free(got);
  ax_arena_deinit(&arena);
}

/* y[i, j, k, l] = x[i, j, l, k] + x[i, j, k, l], of small squares, cut along i: vectors are along j, since a call may get one i. */
static void loops_cut_into_ranges_make_no_vectors_apart(void **state) {
  (void)state;
  ax_arena arena = {0};
  ax_nest_schedule *s;
  const int64_t dims[] = {16, 8100, 3, 3};
  ax_position at[4], turned[4];
  ax_at_identity(at, 4);
  ax_at_identity(turned, 4);
  turned[2].dim = 3, turned[3].dim = 2;
  ax_loop_kernel *k = ax_kernel_create(&arena, 4, 0, dims);
  const uint32_t from = ax_kernel_slot(k, AX_S32, 4, dims);
  const ax_ex sum = ax_kernel_op(k, AX_SCALAR_ADD, AX_S32, ax_kernel_load(k, from, turned), ax_kernel_load(k, from, at), AX_NONE);
  ax_kernel_store(k, ax_kernel_slot(k, AX_S32, 4, dims), at, sum, AX_SCALAR_NONE);
  k->ranged = 0;
  assert_int_equal(ax_nest_schedule_create(&arena, k, (ax_registers){.bytes = 64}, false, &s), AX_OK);
  assert_false(s->loops[s->vector].ranged);
  ax_arena_deinit(&arena);
}

static void short_rows_go_on_in_the_next_loop(void **state) {
  (void)state;
  for (uint32_t bytes = 16; bytes <= 64; bytes *= 2) {
    expect_turned(AX_F32, 3, (int64_t[]){512, 512, 5}, 0, bytes, "2560 (5), 512 (0)");         /* what is written */
    expect_turned(AX_F32, 4, (int64_t[]){5, 100, 32, 7}, 1, bytes, "224 (7), 500 (5)");        /* and what is read */
    expect_turned(AX_F32, 3, (int64_t[]){512, 7, 512}, 0, bytes, "512 (0), 512 (0)");          /* both are long */
    expect_turned(AX_F64, 2, (int64_t[]){1000, 1000}, 0, bytes, "1000 (0), 1000 (0)");         /* there is no other loop */
  }
}

/* y = x', times 2 if `doubles`; x: [rows, columns]. Whether that is a call. */
static bool is_called(ax_dtype dtype, int64_t rows, int64_t columns, bool streams, bool doubles) {
  ax_arena arena = {0};
  ax_nest_schedule *s;
  const int64_t dims[] = {columns, rows}, from_dims[] = {rows, columns};
  const ax_position from[] = {{.dim = 1, .coef = 1, .dynamic = AX_NONE}, {.dim = 0, .coef = 1, .dynamic = AX_NONE}};
  ax_position to[2];
  ax_loop_kernel *k = ax_kernel_create(&arena, 2, 0, dims);
  ax_ex x = ax_kernel_load(k, ax_kernel_slot(k, dtype, 2, from_dims), from);
  if (doubles) x = ax_kernel_op(k, AX_SCALAR_ADD, dtype, x, x, AX_NONE);
  ax_at_identity(to, 2);
  ax_kernel_store(k, ax_kernel_slot(k, dtype, 2, dims), to, x, AX_SCALAR_NONE);
  k->streams = streams;
  assert_false(k->failed);
  assert_int_equal(ax_nest_schedule_create(&arena, k, (ax_registers){.bytes = 64}, false, &s), AX_OK);
  const bool called = s->called;
  ax_arena_deinit(&arena);
  return called;
}

static void transposes_that_only_move_are_calls(void **state) {
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_BF16, AX_S8, AX_BOOL};
  (void)state;
  for (size_t i = 0; i < AX_COUNT(dtypes); i++) assert_true(is_called(dtypes[i], 1000, 1000, false, false));
  assert_true(is_called(AX_F32, 31, 1000, false, false));
  assert_false(is_called(AX_F32, 1000, 1000, false, true)); /* it computes, */
  assert_false(is_called(AX_F32, 1024, 1000, false, false)); /* the lines of columns drive each other out, */
  assert_false(is_called(AX_F32, 16, 16, false, false));     /* it is short */
#if defined(__x86_64__)
  /* Where columns begin anywhere, squares cannot store lines past the caches. */
  assert_true(is_called(AX_F32, 4097, 4097, true, false));
  assert_false(is_called(AX_F32, 4096, 4096, true, false));
#endif
}

/* y[i, j] = x[i, j] + b[j]: whether it is stored past the caches, if that is asked for. */
static bool rows_stream(ax_dtype dtype, int64_t columns) {
  ax_arena arena = {0};
  ax_nest_schedule *s;
  const int64_t dims[] = {1000, columns};
  ax_position at[2];
  ax_loop_kernel *k = ax_kernel_create(&arena, 2, 0, dims);
  ax_at_identity(at, 2);
  const ax_ex x = ax_kernel_load(k, ax_kernel_slot(k, dtype, 2, dims), at),
              b = ax_kernel_load(k, ax_kernel_slot(k, dtype, 1, &dims[1]), &at[1]);
  ax_kernel_store(k, ax_kernel_slot(k, dtype, 2, dims), at, ax_kernel_op(k, AX_SCALAR_ADD, dtype, x, b, AX_NONE), AX_SCALAR_NONE);
  k->streams = true;
  assert_false(k->failed);
  assert_int_equal(ax_nest_schedule_create(&arena, k, (ax_registers){.bytes = 64}, false, &s), AX_OK);
  const bool streams = s->streams;
  ax_arena_deinit(&arena);
  return streams;
}

static void rows_of_whole_lines_stream_when_short(void **state) {
  (void)state;
#if defined(__x86_64__)
  assert_true(rows_stream(AX_F32, 64));
  assert_true(rows_stream(AX_F64, 32));
  assert_true(rows_stream(AX_F32, 300)); /* long beside the parts of lines at its ends */
  assert_false(rows_stream(AX_F32, 63));
  assert_false(rows_stream(AX_F32, 250));
  assert_false(rows_stream(AX_F32, 48));
#endif
}

/* --- Dimensions as loops --- */

/* The first steps of making a schedule, without the choices that follow. */
typedef struct steps {
  ax_arena arena;
  ax_nest_schedule s;
} steps;

static void take_steps(ax_loop_kernel *k, steps *out) {
  ax_nest_schedule *s = &out->s;
  assert_false(k->failed);
  *s = (ax_nest_schedule){.kernel = k, .bits_of = AX_NO_DTYPE};
  s->live = ax_arena_alloc(&out->arena, k->expr_count * sizeof s->live[0]);
  s->still = ax_arena_alloc(&out->arena, k->expr_count * sizeof s->still[0]);
  s->deps = ax_arena_alloc(&out->arena, k->expr_count * sizeof s->deps[0]);
  s->stretches = ax_arena_alloc(&out->arena, k->expr_count * sizeof s->stretches[0]);
  s->accesses = ax_arena_alloc(&out->arena, ax_nest_schedule_access_count(s) * sizeof s->accesses[0]);
  for (uint32_t i = 0; i < k->store_count; i++) s->reduces |= k->stores[i].reduce != AX_SCALAR_NONE;
  ax_nest_schedule_mark_live(s);
  assert_int_equal(ax_nest_schedule_take_bits(s, &out->arena), AX_OK);
  ax_nest_schedule_make_loops(s);
  ax_nest_schedule_find_deps(s);
}

static ax_position along(int dim) { return (ax_position){.dim = dim, .coef = 1, .dynamic = AX_NONE}; }

static void store(ax_loop_kernel *k, ax_dtype dtype, ax_ex expr, ax_scalar reduce) {
  ax_position at[AX_MAX_RANK];
  const uint32_t rank = reduce == AX_SCALAR_NONE ? k->rank : k->rank - k->reduce_rank;
  ax_at_identity(at, rank);
  ax_kernel_store(k, ax_kernel_slot(k, dtype, rank, k->dims), at, expr, reduce);
}

/* x[i, j, ..], of the kernel's own dimensions. */
static ax_ex load_all(ax_loop_kernel *k, ax_dtype dtype) {
  ax_position at[AX_MAX_RANK];
  ax_at_identity(at, k->rank);
  return ax_kernel_load(k, ax_kernel_slot(k, dtype, k->rank, k->dims), at);
}

/* b[j], j the dimension `dim`. */
static ax_ex load_row(ax_loop_kernel *k, ax_dtype dtype, uint32_t dim) {
  const ax_position at = along((int)dim);
  return ax_kernel_load(k, ax_kernel_slot(k, dtype, 1, &k->dims[dim]), &at);
}

#define KERNEL(t, rank, reduced, ...) ax_kernel_create(&(t)->arena, (rank), (reduced), (const int64_t[]){__VA_ARGS__})

static void neighbours_that_are_stepped_through_evenly_are_one_loop(void **state) {
  (void)state;
  steps t = {0};
  ax_loop_kernel *k = KERNEL(&t, 3, 0, 3, 1, 5);
  store(k, AX_F32, load_all(k, AX_F32), AX_SCALAR_NONE);
  take_steps(k, &t);
  assert_int_equal(t.s.loop_count, 1);
  assert_int_equal(t.s.loops[0].extent, 15);
  assert_true(t.s.loops[0].ranged);
  assert_int_equal(t.s.loops[0].scale, 5); /* iterations for each step of the first dimension, of which a call does a range */
  assert_int_equal(t.s.loop_of_dim[1], -1);
  assert_int_equal(t.s.accesses[k->stores[0].expr].stride[0], 1);
  ax_arena_deinit(&t.arena);
}

static void an_operand_of_one_dimension_keeps_two_loops(void **state) {
  (void)state;
  steps t = {0};
  ax_loop_kernel *k = KERNEL(&t, 2, 0, 3, 5);
  const ax_ex x = load_all(k, AX_F32), b = load_row(k, AX_F32, 1);
  store(k, AX_F32, ax_kernel_op(k, AX_SCALAR_ADD, AX_F32, x, b, AX_NONE), AX_SCALAR_NONE);
  take_steps(k, &t);
  assert_int_equal(t.s.loop_count, 2);
  assert_int_equal(t.s.loops[1].extent, 5);
  assert_int_equal(t.s.accesses[x].stride[0], 5);
  assert_int_equal(t.s.accesses[b].stride[0], 0);
  assert_int_equal(t.s.deps[x], 3);
  assert_int_equal(t.s.deps[b], 2);
  assert_true(ax_nest_schedule_depends(&t.s, b, 1) && !ax_nest_schedule_depends(&t.s, b, 0));
  assert_int_equal(ax_access_deps(&t.s, &t.s.accesses[b]), 2);
  ax_arena_deinit(&t.arena);
}

static void an_index_that_is_used_keeps_its_loop(void **state) {
  (void)state;
  steps t = {0};
  ax_loop_kernel *k = KERNEL(&t, 2, 0, 3, 5);
  const ax_ex j = ax_kernel_index(k, 1);
  store(k, AX_S64, j, AX_SCALAR_NONE);
  take_steps(k, &t);
  assert_int_equal(t.s.loop_count, 2);
  assert_int_equal(t.s.deps[j], 2);
  ax_arena_deinit(&t.arena);
}

static void reduced_loops_stay_apart_from_parallel_ones(void **state) {
  (void)state;
  steps t = {0};
  ax_loop_kernel *k = KERNEL(&t, 4, 2, 2, 3, 4, 5);
  store(k, AX_F32, load_all(k, AX_F32), AX_SCALAR_ADD);
  take_steps(k, &t);
  assert_int_equal(t.s.loop_count, 2);
  assert_true(t.s.loops[0].extent == 6 && !t.s.loops[0].reduced && t.s.loops[0].ranged);
  assert_true(t.s.loops[1].extent == 20 && t.s.loops[1].reduced && !t.s.loops[1].ranged);
  assert_int_equal(ax_nest_schedule_store(&t.s, 0)->stride[1], 0);
  ax_arena_deinit(&t.arena);
}

static void a_first_dimension_of_one_hands_its_range_on(void **state) {
  (void)state;
  steps t = {0};
  ax_loop_kernel *k = KERNEL(&t, 2, 0, 1, 6);
  store(k, AX_F32, load_all(k, AX_F32), AX_SCALAR_NONE);
  take_steps(k, &t);
  assert_int_equal(t.s.loop_count, 1);
  assert_true(t.s.loops[0].ranged && t.s.loops[0].extent == 6 && t.s.loops[0].scale == 6);
  assert_int_equal(t.s.loop_of_dim[0], -1);
  ax_arena_deinit(&t.arena);
}

static void a_single_element_has_one_loop(void **state) {
  (void)state;
  steps t = {0};
  ax_loop_kernel *k = ax_kernel_create(&t.arena, 0, 0, NULL);
  store(k, AX_F32, load_all(k, AX_F32), AX_SCALAR_NONE);
  take_steps(k, &t);
  assert_int_equal(t.s.loop_count, 1);
  assert_int_equal(t.s.loops[0].extent, 1);
  ax_arena_deinit(&t.arena);
}

static void only_what_a_store_needs_is_live(void **state) {
  (void)state;
  steps t = {0};
  ax_loop_kernel *k = KERNEL(&t, 1, 0, 8);
  const ax_ex unused = load_all(k, AX_F32), used = load_all(k, AX_F32);
  store(k, AX_F32, ax_kernel_op(k, AX_SCALAR_NEG, AX_F32, used, AX_NONE, AX_NONE), AX_SCALAR_NONE);
  (void)ax_kernel_op(k, AX_SCALAR_NEG, AX_F32, unused, AX_NONE, AX_NONE);
  take_steps(k, &t);
  assert_true(t.s.live[used] && t.s.accesses[used].live);
  assert_false(t.s.live[unused] || t.s.accesses[unused].live);
  ax_arena_deinit(&t.arena);
}

/* y[i, j] = table[p[i], j]: the load of the table is moved by what p has there, which is loaded before. */
static void a_look_up_is_moved_by_the_loops_of_its_start(void **state) {
  (void)state;
  steps t = {0};
  ax_loop_kernel *k = KERNEL(&t, 2, 0, 3, 5);
  const ax_ex row = load_row(k, AX_S64, 0);
  const ax_position at[] = {{.dim = -1, .dynamic = row, .limit = 9}, along(1)};
  const ax_ex look_up = ax_kernel_load(k, ax_kernel_slot(k, AX_F32, 2, (const int64_t[]){10, 5}), at);
  store(k, AX_F32, look_up, AX_SCALAR_NONE);
  take_steps(k, &t);
  assert_true(t.s.live[row]);
  assert_true(ax_access_is_moved(&t.s.accesses[look_up], 0) && !ax_access_is_moved(&t.s.accesses[look_up], 1));
  assert_int_equal(ax_access_deps(&t.s, &t.s.accesses[look_up]), 2);
  assert_int_equal(ax_access_starts(&t.s, &t.s.accesses[look_up]), 1);
  assert_int_equal(t.s.deps[look_up], 3);
  ax_arena_deinit(&t.arena);
}

/* table[p[i]] = x, for the only i, of which calls do a range: p[i] is known before the loop, since it is where the store starts,
   and so is x. */
static void where_a_store_starts_depends_on_no_loop(void **state) {
  (void)state;
  steps t = {0};
  ax_loop_kernel *k = KERNEL(&t, 1, 0, 1);
  const ax_ex row = load_row(k, AX_S64, 0), x = load_row(k, AX_F32, 0);
  const ax_position at = {.dim = 0, .coef = 1, .dynamic = row, .limit = 9};
  ax_kernel_store(k, ax_kernel_slot(k, AX_F32, 1, (const int64_t[]){10}), &at, x, AX_SCALAR_NONE);
  take_steps(k, &t);
  assert_true(t.s.still[row] && t.s.deps[row] == 0);
  assert_true(!t.s.still[x] && t.s.deps[x] == 0);
  ax_arena_deinit(&t.arena);
}

/* y[i, j] = table[p[i], j], or x[i, j] turned, for few j. */
static uint32_t lanes_of_rows(int64_t row, bool look_up) {
  ax_arena arena = {0};
  ax_nest_schedule *schedule;
  ax_loop_kernel *k = ax_kernel_create(&arena, 2, 0, (const int64_t[]){1000, row});
  const ax_ex number = load_row(k, AX_S64, 0);
  const ax_position at[] = {{.dim = look_up ? -1 : 0, .coef = look_up ? 0 : 2, .dynamic = look_up ? number : AX_NONE, .limit = 9}, along(1)};
  store(k, AX_F32, ax_kernel_load(k, ax_kernel_slot(k, AX_F32, 2, (const int64_t[]){2000, row}), at), AX_SCALAR_NONE);
  assert_int_equal(ax_nest_schedule_create(&arena, k, (ax_registers){.bytes = 64}, false, &schedule), AX_OK);
  const uint32_t lanes = schedule->lanes;
  ax_arena_deinit(&arena);
  return lanes;
}

static void pairs_that_are_looked_up_have_two_lanes(void **state) {
  (void)state;
  assert_int_equal(lanes_of_rows(2, true), 2);
  assert_int_equal(lanes_of_rows(3, true), 4);
  assert_int_equal(lanes_of_rows(16, true), 8); /* as many as of its numbers */
  assert_true(lanes_of_rows(2, false) >= 4);
}

/* The indices i < 10 in which 0 <= coef * i + offset < limit. */
static void holds(int64_t coef, int64_t offset, int64_t limit, int64_t first, int64_t end) {
  steps t = {0};
  ax_loop_kernel *k = KERNEL(&t, 1, 0, 10);
  const ax_ex guard = ax_kernel_inside(k, 0, coef, offset, limit);
  const ax_position at = {.dim = 0, .coef = coef, .offset = offset, .dynamic = AX_NONE};
  store(k, AX_F32, ax_kernel_load_where(k, ax_kernel_slot(k, AX_F32, 1, &limit), &at, guard), AX_SCALAR_NONE);
  take_steps(k, &t);
  assert_int_equal(t.s.stretches[guard].first, first);
  assert_int_equal(t.s.stretches[guard].end, end);
  ax_arena_deinit(&t.arena);
}

static void guards_hold_in_stretches(void **state) {
  (void)state;
  holds(1, -1, 3, 1, 4);   /* i - 1 in 0 1 2 */
  holds(2, -3, 4, 2, 4);   /* 2i - 3: 1 and 3 */
  holds(-1, 5, 4, 2, 6);   /* 5 - i: 3 2 1 0 */
  holds(-3, 20, 12, 3, 7); /* 20 - 3i: 11 8 5 2 */
  holds(1, 2, 6, 0, 4);    /* of the indices that there are */
}

static void guarded_dimensions_merge_with_those_inside_of_them(void **state) {
  (void)state;
  steps t = {0};
  ax_loop_kernel *k = KERNEL(&t, 2, 0, 4, 5);
  const ax_ex guard = ax_kernel_inside(k, 0, 1, -1, 2);
  const ax_position at[] = {{.dim = 0, .coef = 1, .offset = -1, .dynamic = AX_NONE}, along(1)};
  store(k, AX_F32, ax_kernel_load_where(k, ax_kernel_slot(k, AX_F32, 2, (const int64_t[]){2, 5}), at, guard), AX_SCALAR_NONE);
  take_steps(k, &t);
  assert_int_equal(t.s.loop_count, 1);
  assert_int_equal(t.s.stretches[guard].first, 5); /* rows 1 and 2, of five elements each */
  assert_int_equal(t.s.stretches[guard].end, 15);
  ax_arena_deinit(&t.arena);
}

/* --- Narrow floats as bits --- */

static bool is_on_bits(ax_dtype dtype, ax_scalar op, ax_scalar reduce) {
  steps t = {0};
  ax_loop_kernel *k = KERNEL(&t, 2, reduce == AX_SCALAR_NONE ? 0 : 1, 4, 8);
  const ax_ex x = load_all(k, dtype);
  store(k, dtype, op == AX_SCALAR_NONE ? x : ax_kernel_op(k, op, dtype, x, AX_NONE, AX_NONE), reduce);
  take_steps(k, &t);
  const bool bits = t.s.bits_of == dtype;
  assert_true(bits == (t.s.kernel != k) && bits == (t.s.kernel->slots[0].dtype == AX_U16));
  ax_arena_deinit(&t.arena);
  return bits;
}

static void narrow_floats_that_are_only_moved_are_bits(void **state) {
  (void)state;
  assert_true(is_on_bits(AX_BF16, AX_SCALAR_NONE, AX_SCALAR_NONE));
  assert_true(is_on_bits(AX_F16, AX_SCALAR_NONE, AX_SCALAR_MAX));
  assert_true(is_on_bits(AX_F16, AX_SCALAR_NONE, AX_SCALAR_MIN));
  assert_false(is_on_bits(AX_BF16, AX_SCALAR_NEG, AX_SCALAR_NONE));
  assert_false(is_on_bits(AX_BF16, AX_SCALAR_NONE, AX_SCALAR_ADD));
  assert_false(is_on_bits(AX_F32, AX_SCALAR_NONE, AX_SCALAR_NONE));
}

/* --- Strides --- */

static void levels_count_from_the_innermost_loop(void **state) {
  (void)state;
  assert_int_equal(ax_nest_schedule_level(0), 0);
  assert_int_equal(ax_nest_schedule_level(1), 1);
  assert_int_equal(ax_nest_schedule_level(5), 3);
}

static void short_strides_are_picked_from_what_lies_between(void **state) {
  (void)state;
  assert_true(ax_stride_picks(2, 4) && ax_stride_picks(8, 16));
  assert_false(ax_stride_picks(1, 16) || ax_stride_picks(3, 4) || ax_stride_picks(9, 32) || ax_stride_picks(-2, 16));
  assert_int_equal(ax_stride_length(-3), 3);
  const ax_nest_access guarded = {.guard = 0, .stride = {2}}, free = {.guard = AX_NONE, .stride = {2}};
  assert_true(ax_access_picks(&free, 0, 16));
  assert_false(ax_access_picks(&guarded, 0, 16)); /* what lies between may be outside of memory */
}

static void registers_of_squares_fit_their_sides(void **state) {
  (void)state;
  ax_nest_schedule s = {.lanes = 16, .vector = 1, .loops = {{.extent = 100}, {.extent = 96}}};
  assert_int_equal(ax_nest_schedule_turned_lanes(&s, 0, 32), 32); /* divides 96: no masks */
  assert_int_equal(ax_nest_schedule_turned_lanes(&s, 0, 64), 16);
  s.loops[1].ranged = true;
  assert_int_equal(ax_nest_schedule_turned_lanes(&s, 0, 32), 16);
  s.loops[0].extent = 9;
  assert_int_equal(ax_nest_schedule_turned_lanes(&s, 0, 0), 8);
  s.loops[1].extent = 3;
  assert_int_equal(ax_nest_schedule_turned_lanes(&s, 0, 0), 4);
}

/* Rows of three with a zero behind each: several a vector, though conditions say which elements are loaded. */
static void padded_short_rows_are_narrow(void **state) {
  enum { rows = 5000, columns = 3 };
  const int64_t dims[] = {rows, columns + 1}, from[] = {rows, columns};
  (void)state;
  static const ax_dtype dtypes[] = {AX_F32, AX_S8};
  for (size_t i = 0; i < AX_COUNT(dtypes); i++) {
    ax_arena arena = {0};
    ax_nest_schedule *schedule;
    ax_position at[2];
    ax_loop_kernel *k = ax_kernel_create(&arena, 2, 0, dims);
    ax_at_identity(at, 2);
    const uint32_t slot = ax_kernel_slot(k, dtypes[i], 2, from);
    const ax_ex value = ax_kernel_load_where(k, slot, at, ax_kernel_inside(k, 1, 1, 0, columns));
    ax_kernel_store(k, ax_kernel_slot(k, dtypes[i], 2, dims), at, value, AX_SCALAR_NONE);
    assert_int_equal(ax_nest_schedule_create(&arena, k, (ax_registers){.bytes = 64}, false, &schedule), AX_OK);
    assert_int_equal(schedule->shape, AX_NEST_NARROW);
    ax_arena_deinit(&arena);
  }
}

/* Pictures of three colours, turned and padded above and below with themselves: conditions on rows choose, and rows lie
   backwards. */
static void turned_short_rows_are_narrow(void **state) {
  const int64_t dims[] = {40, 32, 3}, from[] = {32, 32, 3};
  (void)state;
  ax_arena arena = {0};
  ax_nest_schedule *schedule;
  ax_position at[3];
  ax_loop_kernel *k = ax_kernel_create(&arena, 3, 0, dims);
  ax_at_identity(at, 3);
  const uint32_t slot = ax_kernel_slot(k, AX_F32, 3, from);
  const ax_ex inside = ax_kernel_inside(k, 0, 1, -4, 32), above = ax_kernel_inside(k, 0, 1, 0, 4);
  at[0].offset = -4, at[1].coef = -1, at[1].offset = 31;
  const ax_ex middle = ax_kernel_load_where(k, slot, at, inside);
  at[0].coef = -1, at[0].offset = 4;
  const ax_ex value = ax_kernel_op(k, AX_SCALAR_SELECT, AX_F32, above, ax_kernel_load_where(k, slot, at, above), middle);
  ax_at_identity(at, 3);
  ax_kernel_store(k, ax_kernel_slot(k, AX_F32, 3, dims), at, value, AX_SCALAR_NONE);
  assert_int_equal(ax_nest_schedule_create(&arena, k, (ax_registers){.bytes = 64}, true, &schedule), AX_OK);
  assert_int_equal(schedule->shape, AX_NEST_NARROW);
  ax_arena_deinit(&arena);
}

/* y[i, j] = f(x[i, j]) + b[i] in f32: whether several rows go into a vector. */
static bool rows_are_narrow(int64_t rows, int64_t columns, ax_scalar f, bool often) {
  ax_arena arena = {0};
  ax_nest_schedule *schedule;
  const int64_t dims[] = {rows, columns};
  ax_position at[2];
  ax_loop_kernel *k = ax_kernel_create(&arena, 2, 0, dims);
  ax_at_identity(at, 2);
  ax_ex x = ax_kernel_load(k, ax_kernel_slot(k, AX_F32, 2, dims), at);
  const ax_ex b = ax_kernel_load(k, ax_kernel_slot(k, AX_F32, 1, dims), at);
  if (f != AX_SCALAR_NONE) x = ax_kernel_op(k, f, AX_F32, x, AX_NONE, AX_NONE);
  ax_kernel_store(k, ax_kernel_slot(k, AX_F32, 2, dims), at, ax_kernel_op(k, AX_SCALAR_ADD, AX_F32, x, b, AX_NONE), AX_SCALAR_NONE);
  assert_int_equal(ax_nest_schedule_create(&arena, k, (ax_registers){.bytes = 64}, often, &schedule), AX_OK);
  const bool narrow = schedule->shape == AX_NEST_NARROW;
  ax_arena_deinit(&arena);
  return narrow;
}

static void short_rows_are_narrow_where_there_are_enough(void **state) {
  (void)state;
  assert_true(rows_are_narrow(64, 3, AX_SCALAR_NONE, false));
  assert_false(rows_are_narrow(63, 3, AX_SCALAR_NONE, false));
  assert_true(rows_are_narrow(16, 3, AX_SCALAR_NONE, true)); /* in a loop */
  assert_false(rows_are_narrow(15, 3, AX_SCALAR_NONE, true));
  assert_true(rows_are_narrow(8, 3, AX_SCALAR_NONE, true)); /* fewer rows than lanes: of shorter vectors, if none is left over */
  assert_true(rows_are_narrow(12, 5, AX_SCALAR_NONE, true));
  assert_false(rows_are_narrow(10, 5, AX_SCALAR_NONE, true));
  assert_false(rows_are_narrow(8, 3, AX_SCALAR_NONE, false));
  assert_true(rows_are_narrow(1000, 12, AX_SCALAR_TANH, false)); /* calls are short code */
  assert_false(rows_are_narrow(100, 12, AX_SCALAR_TANH, false));
  assert_false(rows_are_narrow(1000, 16, AX_SCALAR_NONE, true)); /* whole vectors */
}

/* A column of a narrow array is stored under masks, several elements at once. */
static void columns_of_narrow_arrays_are_narrow(void **state) {
  enum { rows = 5000, least = 2, most = 10 };
  static const ax_dtype dtypes[] = {AX_F32, AX_S8};
  (void)state;
  for (size_t i = 0; i < AX_COUNT(dtypes); i++)
    for (int64_t columns = least; columns <= most; columns++) {
      ax_arena arena = {0};
      ax_nest_schedule *schedule;
      const int64_t extent = rows, dims[] = {rows, columns};
      ax_position from[1], to[2] = {{.dim = 0, .coef = 1, .dynamic = AX_NONE}, {.dim = -1, .offset = 1, .dynamic = AX_NONE}};
      ax_loop_kernel *k = ax_kernel_create(&arena, 1, 0, &extent);
      ax_at_identity(from, 1);
      const ax_ex value = ax_kernel_load(k, ax_kernel_slot(k, dtypes[i], 1, &extent), from);
      ax_kernel_store(k, ax_kernel_slot(k, dtypes[i], 2, dims), to, value, AX_SCALAR_NONE);
      assert_false(k->failed);
      assert_int_equal(ax_nest_schedule_create(&arena, k, (ax_registers){.bytes = 64}, false, &schedule), AX_OK);
      if (columns <= 3 || dtypes[i] == AX_S8) assert_int_equal(schedule->shape == AX_NEST_NARROW, columns <= 8);
      ax_arena_deinit(&arena);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sums_over_rows),
      cmocka_unit_test(lanes_of_sums_go_where_results_lie),
      cmocka_unit_test(functions_of_short_rows_fill_vectors),
      cmocka_unit_test(sums_around_calls_are_shared_by_four_vectors),
      cmocka_unit_test(exp_of_many_vectors_is_in_line),
      cmocka_unit_test(loops_cut_into_ranges_make_no_vectors_apart),
      cmocka_unit_test(short_rows_go_on_in_the_next_loop),
      cmocka_unit_test(transposes_that_only_move_are_calls),
      cmocka_unit_test(rows_of_whole_lines_stream_when_short),
      cmocka_unit_test(neighbours_that_are_stepped_through_evenly_are_one_loop),
      cmocka_unit_test(an_operand_of_one_dimension_keeps_two_loops),
      cmocka_unit_test(an_index_that_is_used_keeps_its_loop),
      cmocka_unit_test(reduced_loops_stay_apart_from_parallel_ones),
      cmocka_unit_test(a_first_dimension_of_one_hands_its_range_on),
      cmocka_unit_test(a_single_element_has_one_loop),
      cmocka_unit_test(only_what_a_store_needs_is_live),
      cmocka_unit_test(a_look_up_is_moved_by_the_loops_of_its_start),
      cmocka_unit_test(where_a_store_starts_depends_on_no_loop),
      cmocka_unit_test(pairs_that_are_looked_up_have_two_lanes),
      cmocka_unit_test(guards_hold_in_stretches),
      cmocka_unit_test(guarded_dimensions_merge_with_those_inside_of_them),
      cmocka_unit_test(narrow_floats_that_are_only_moved_are_bits),
      cmocka_unit_test(padded_short_rows_are_narrow),
      cmocka_unit_test(turned_short_rows_are_narrow),
      cmocka_unit_test(short_rows_are_narrow_where_there_are_enough),
      cmocka_unit_test(columns_of_narrow_arrays_are_narrow),
      cmocka_unit_test(levels_count_from_the_innermost_loop),
      cmocka_unit_test(short_strides_are_picked_from_what_lies_between),
      cmocka_unit_test(registers_of_squares_fit_their_sides),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
