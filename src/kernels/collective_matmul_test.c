/* The products on rings of axle/collective_matmul.h: their kernels by reference evaluation and under random schedules, against
   gathering and multiplying, which is done by hand here. */
#include "axle/axle.h"

#include <math.h>
#include <string.h>

#include "ir/number.h"
#include "kernel/kernel.h"
#include "prim/prims.h"
#include "support/cmocka.h"
#include "support/schedules.h"

/* A case: a mesh of one axis, and what happens on it. */
typedef struct trial {
  int64_t members, m, k, j;
  const ax_rings *rings; /* NULL: all members, in their order */
  ax_ring_options options;
  bool scatter;
  ax_dtype dtype;
  uint32_t schedules;
} trial;

static int64_t ring_length(const trial *t) { return t->rings != NULL ? t->rings->type.dims[1] : t->members; }

/* The place of a member on its ring, and the members of it; NULL: it is on none. */
static const int32_t *ring_of(const trial *t, int64_t member, int64_t *place) {
  static int32_t all[64];
  int64_t length = ring_length(t), count = t->rings != NULL ? ax_type_elems(&t->rings->type) : t->members;
  for (int32_t i = 0; i < 64; i++) all[i] = i;
  const int32_t *ids = t->rings != NULL ? t->rings->ids : all;
  for (int64_t i = 0; i < count; i++)
    if (ids[i] == member) {
      *place = i % length;
      return ids + i / length * length;
    }
  return NULL;
}

/* Of each device: what it has, and what it gets. */
static void shapes(const trial *t, int64_t lhs[2], int64_t rhs[2], int64_t out[2]) {
  int64_t n = ring_length(t);
  lhs[0] = t->m, lhs[1] = rhs[0] = t->k, rhs[1] = out[1] = t->j, out[0] = t->m;
  if (t->scatter && t->options.columns) rhs[1] *= n;
  else if (t->scatter) lhs[0] *= n;
  else if (t->options.columns) rhs[0] *= n;
  else out[0] *= n;
}

static AX_BODY(product) {
  const trial *t = context;
  out[0] = t->scatter ? ax_matmul_reduce_scatter_kernel(in[0], in[1], "d", t->rings, &t->options)
                      : ax_collective_matmul_kernel(in[0], in[1], "d", t->rings, &t->options);
}

static AX_BODY(mapped) {
  const trial *t = context;
  const ax_mesh mesh = {.count = 1, .axis = {{.name = "d", .size = t->members}}};
  ax_shard_map(&mesh, "d; d -> d", AX_CLOSURE(product, 2, 1, t), in, out);
}

static double at(const ax_tensor *x, int64_t row, int64_t column) {
  return ax_number_convert(x->dtype, AX_F64, ax_number_load(x->dtype, x->data, row * x->dims[1] + column)).f;
}

/* Element (i, c) of what `member` is to get, from all devices' operands, and the sum of the terms' sizes. */
static double wanted(const trial *t, ax_tensor *const *in, int64_t member, int64_t i, int64_t c, double *size) {
  int64_t lhs[2], rhs[2], out[2], place = 0, n = ring_length(t);
  const int32_t *ring = ring_of(t, member, &place);
  double sum = 0;
  *size = 0;
  shapes(t, lhs, rhs, out);
  if (ring == NULL) return 0;
  bool columns = t->options.columns;
  for (int64_t p = 0; p < n; p++) {
    if (!t->scatter && !columns && i / lhs[0] != p) continue;
    int64_t left = ring[p], right = t->scatter ? ring[p] : member;
    for (int64_t x = 0; x < lhs[1]; x++) {
      int64_t row = t->scatter && !columns ? place * t->m + i : !t->scatter && !columns ? i % lhs[0] : i;
      int64_t column = t->scatter && columns ? place * t->j + c : c;
      double term =
          at(in[0], left * lhs[0] + row, x) * at(in[1], right * rhs[0] + (columns && !t->scatter ? p * t->k + x : x), column);
      sum += term;
      *size += fabs(term);
    }
  }
  return sum;
}

static ax_tensor *random_tensor(ax_dtype dtype, int64_t members, const int64_t dims[2], uint64_t *random) {
  const ax_type type = ax_array_type(dtype, AX_DIMS(members * dims[0], dims[1]));
  ax_tensor *made;
  assert_int_equal(ax_tensor_create(&type, &made), AX_OK);
  for (int64_t i = 0; i < ax_type_elems(&type); i++) {
    double value = (double)(ax_next_random(random) % 2001) / 1000 - 1;
    ax_number_store(dtype, made->data, i, ax_is_float(dtype) ? (ax_number){.f = value} : (ax_number){.i = (int64_t)(value * 5)});
  }
  return made;
}

static void check(const trial *t, ax_tensor *const *in, const ax_tensor *out) {
  int64_t lhs[2], rhs[2], mine[2];
  shapes(t, lhs, rhs, mine);
  assert_int_equal(out->dims[0], t->members * mine[0]);
  for (int64_t member = 0; member < t->members; member++)
    for (int64_t i = 0; i < mine[0]; i++)
      for (int64_t c = 0; c < mine[1]; c++) {
        double size, want = wanted(t, in, member, i, c, &size), got = at(out, member * mine[0] + i, c);
        double ulp = out->dtype == AX_F64    ? 0x1p-53
                     : out->dtype == AX_F32  ? 0x1p-24
                     : out->dtype == AX_F16  ? 0x1p-11
                     : out->dtype == AX_BF16 ? 0x1p-8
                                             : 0;
        double limit = ulp * ((double)ring_length(t) + 1) * size;
        if (!ax_is_float(out->dtype) && ax_dtype_bytes(out->dtype) == 1) want = (int8_t)(int64_t)want;
        if (!(fabs(got - want) <= limit))
          fail_msg("member %lld, element (%lld, %lld): %.9g, not %.9g; ring of %lld, buffering %lld", (long long)member,
                   (long long)i, (long long)c, got, want, (long long)ring_length(t), (long long)t->options.buffering);
      }
}

static void holds(const trial *t, uint64_t seed) {
  int64_t lhs[2], rhs[2], out[2];
  shapes(t, lhs, rhs, out);
  ax_tensor *given[] = {random_tensor(t->dtype, t->members, lhs, &seed), random_tensor(t->dtype, t->members, rhs, &seed)},
            *made[1] = {NULL};
  const ax_type types[] = {ax_array_type(t->dtype, AX_LIST(2, given[0]->dims)),
                           ax_array_type(t->dtype, AX_LIST(2, given[1]->dims))};
  ax_program *program;
  if (ax_trace(AX_CLOSURE(mapped, 2, 1, t), types, &program) != AX_OK) fail_msg("%s", ax_message());
  test_schedules(program, given, made, t->schedules, seed);
  check(t, given, made[0]);
  for (int i = 0; i < 2; i++) ax_tensor_release(given[i]);
  ax_tensor_release(made[0]);
  ax_program_release(program);
}

static void of_all_kinds(trial t, uint64_t seed) {
  for (int kind = 0; kind < 4; kind++) {
    t.scatter = kind & 1;
    t.options.columns = kind & 2;
    holds(&t, seed + (uint64_t)kind);
  }
}

static void test_rings(void **state) {
  (void)state;
  static const int64_t buffering[] = {0, 1, 2, 3, 4, 8};
  for (int64_t n = 1; n <= 8; n++)
    for (size_t b = 0; b < sizeof buffering / sizeof buffering[0]; b++)
      of_all_kinds(
          (trial){.members = n, .m = 2, .k = 3, .j = 2, .options.buffering = buffering[b], .dtype = AX_F32, .schedules = 4},
          (uint64_t)(n * 10) + b);
}

/* --- Tables of rings --- */

#define RINGS(rings_, length_, ...) \
  (&(ax_rings){.type = {.dtype = AX_S32, .rank = 2, .dims = {rings_, length_}}, .ids = (const int32_t[]){__VA_ARGS__}})

static void test_tables(void **state) {
  (void)state;
  const struct {
    int64_t members;
    const ax_rings *rings;
  } rows[] = {
      {4, AX_RING(2, 0, 3, 1)},
      {7, RINGS(1, 7, 6, 0, 5, 1, 4, 2, 3)},
      {4, RINGS(2, 2, 0, 3, 1, 2)},
      {9, RINGS(3, 3, 0, 3, 6, 4, 1, 7, 8, 5, 2)},
      {8, RINGS(2, 4, 0, 2, 4, 6, 7, 5, 3, 1)},
      {3, RINGS(3, 1, 2, 1, 0)},
      {9, RINGS(2, 3, 8, 4, 1, 0, 2, 5)}, /* 3, 6 and 7 are on none */
      {6, RINGS(1, 2, 5, 1)},
      {3, RINGS(1, 1, 1)},
  };
  for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
    for (int64_t buffering = 0; buffering < 4; buffering++)
      of_all_kinds((trial){.members = rows[r].members,
                           .m = 2,
                           .k = 2,
                           .j = 3,
                           .rings = rows[r].rings,
                           .options.buffering = buffering,
                           .dtype = AX_F32,
                           .schedules = 4},
                   r * 8 + (uint64_t)buffering);
}

/* --- Dtypes, and sizes --- */

static void test_dtypes(void **state) {
  (void)state;
  static const ax_dtype pairs[][2] = {{AX_BF16, AX_F32},    {AX_BF16, AX_NO_DTYPE}, {AX_F16, AX_F32},     {AX_F16, AX_NO_DTYPE},
                                      {AX_F32, AX_BF16},    {AX_F64, AX_NO_DTYPE},  {AX_F32, AX_F64},     {AX_S8, AX_S32},
                                      {AX_S8, AX_NO_DTYPE}, {AX_S16, AX_S32},       {AX_S64, AX_NO_DTYPE}};
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
    for (int64_t n = 1; n <= 5; n++)
      of_all_kinds(
          (trial){.members = n, .m = 2, .k = 3, .j = 1, .options.dtype = pairs[i][1], .dtype = pairs[i][0], .schedules = 2}, i);
}

static void test_sizes(void **state) {
  (void)state;
  static const int64_t sizes[][3] = {{1, 1, 1}, {0, 2, 2}, {2, 0, 2}, {2, 2, 0}, {5, 7, 3}};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
    of_all_kinds((trial){.members = 4, .m = sizes[i][0], .k = sizes[i][1], .j = sizes[i][2], .dtype = AX_F32, .schedules = 2}, i);
}

/* Many schedules of what has most to go wrong: all slots in use, and a ring in which one stream has one arrival more. */
static void test_schedules_of_large_rings(void **state) {
  (void)state;
  for (int64_t n = 6; n <= 9; n++)
    of_all_kinds((trial){.members = n, .m = 1, .k = 1, .j = 1, .dtype = AX_F32, .schedules = 50}, (uint64_t)n);
}

/* Sums over a ring are sums of f32 where operands are bf16: 1 + 256 * 2^-8 is 2, which sums of bf16 would never come to. */
static void test_sums_are_wide(void **state) {
  (void)state;
  const trial t = {.members = 4, .m = 1, .k = 65, .j = 1, .options = {.columns = true}, .dtype = AX_BF16};
  int64_t lhs[2], rhs[2], out[2];
  uint64_t random = 1;
  shapes(&t, lhs, rhs, out);
  ax_tensor *given[] = {random_tensor(t.dtype, 4, lhs, &random), random_tensor(t.dtype, 4, rhs, &random)}, *made[1] = {NULL};
  for (int64_t i = 0; i < 4 * 65; i++)
    ax_number_store(AX_BF16, given[0]->data, i, (ax_number){.f = i % 65 == 0 ? (i == 0) : 0x1p-8});
  for (int64_t i = 0; i < given[1]->dims[0]; i++) ax_number_store(AX_BF16, given[1]->data, i, (ax_number){.f = 1});
  const ax_type types[] = {ax_array_type(t.dtype, AX_LIST(2, given[0]->dims)), ax_array_type(t.dtype, AX_LIST(2, given[1]->dims))};
  ax_program *program;
  assert_int_equal(ax_trace(AX_CLOSURE(mapped, 2, 1, &t), types, &program), AX_OK);
  test_schedules(program, given, made, 2, 1);
  for (int64_t i = 0; i < 4; i++) assert_true(at(made[0], i, 0) == 2);
  for (int i = 0; i < 2; i++) ax_tensor_release(given[i]);
  ax_tensor_release(made[0]);
  ax_program_release(program);
}

/* --- Leading dimensions, and rings along two axes --- */

static AX_BODY(batched_and_not) {
  const bool *scatter = context;
  const ax_ring_options options = {.columns = true};
  ax_value rows[2];
  ax_value (*kernel)(ax_value, ax_value, const char *, const ax_rings *, const ax_ring_options *) =
      *scatter ? ax_matmul_reduce_scatter_kernel : ax_collective_matmul_kernel;
  for (int b = 0; b < 2; b++)
    rows[b] = kernel(ax_dynamic_at(in[0], ax_integer(b), 0), ax_dynamic_at(in[1], ax_integer(b), 0), "b,a", NULL, &options);
  out[0] = kernel(in[0], in[1], "b,a", NULL, &options);
  out[1] = ax_stack(AX_LIST(2, rows), 0);
}

static AX_BODY(on_two_axes) {
  const ax_mesh mesh = {.count = 3, .axis = {{.name = "a", .size = 2}, {.name = "c", .size = 2}, {.name = "b", .size = 3}}};
  ax_shard_map(&mesh, "_,a+c+b; _,a+c+b -> _,a+c+b; _,a+c+b", AX_CLOSURE(batched_and_not, 2, 2, context), in, out);
}

static void test_leading(void **state) {
  (void)state;
  for (int kind = 0; kind < 2; kind++) {
    const bool scatter = kind;
    const ax_type types[] = {AX_TYPE(AX_F32, 2, 24, 2), AX_TYPE(AX_F32, 2, scatter ? 24 : 144, 6)};
    ax_tensor *given[2], *made[2] = {NULL};
    uint64_t random = 5;
    ax_program *program;
    if (ax_trace(AX_CLOSURE(on_two_axes, 2, 2, &scatter), types, &program) != AX_OK) fail_msg("%s", ax_message());
    for (int i = 0; i < 2; i++) {
      assert_int_equal(ax_tensor_create(&types[i], &given[i]), AX_OK);
      for (int64_t e = 0; e < ax_type_elems(&types[i]); e++) ((float *)given[i]->data)[e] = (float)(ax_next_random(&random) % 100);
    }
    test_schedules(program, given, made, 2, 3);
    assert_memory_equal(made[0]->data, made[1]->data, (size_t)ax_type_elems(ax_program_out_type(program, 0)) * sizeof(float));
    for (int i = 0; i < 2; i++) ax_tensor_release(given[i]), ax_tensor_release(made[i]);
    ax_program_release(program);
  }
}

/* --- Barrier semaphores: one for the same neighbours, others for others --- */

static AX_BODY(four_kernels) {
  out[0] = ax_collective_matmul_kernel(in[0], in[1], "a", NULL, NULL);
  out[1] = ax_matmul_reduce_scatter_kernel(in[0], in[1], "a", NULL, NULL);
  out[2] = ax_collective_matmul_kernel(in[0], in[1], "b", NULL, NULL);
  out[3] = ax_collective_matmul_kernel(in[0], in[1], "b", RINGS(1, 2, 1, 0), NULL);
  out[4] = ax_collective_matmul_kernel(in[0], in[1], "b", NULL, &(ax_ring_options){.collective_id = 7});
}

static void test_barriers(void **state) {
  (void)state;
  const ax_mesh mesh = {.count = 2, .axis = {{.name = "a", .size = 2}, {.name = "b", .size = 2}}};
  ax_program *program;
  assert_int_equal(ax_trace_on(&mesh, AX_FN(four_kernels, 2, 5), AX_TYPES(AX_TYPE(AX_F32, 2, 2), AX_TYPE(AX_F32, 2, 2)), &program),
                   AX_OK);
  int64_t ids[5];
  uint32_t count = 0;
  for (uint32_t i = 0; i < program->eqn_count; i++)
    if (program->eqns[i].prim == &ax_prim_kernel_call)
      ids[count++] = ((const ax_kernel_params *)program->eqns[i].params)->collective_id;
  assert_int_equal(count, 5);
  assert_true(ids[0] == ids[1] && ids[0] != ids[2] && ids[2] != ids[3] && ids[0] > 0 && ids[4] == 7);
  ax_program_release(program);
}

/* --- What is refused --- */

typedef struct refusal {
  const char *message;
  bool scatter;
  ax_type lhs, rhs;
  const char *axes; /* NULL: "d", of 4 */
  const ax_rings *rings;
  ax_ring_options options;
} refusal;

static AX_BODY(refused) {
  const refusal *r = context;
  const char *axes = r->axes != NULL ? r->axes : "d";
  out[0] = r->scatter ? ax_matmul_reduce_scatter_kernel(in[0], in[1], axes, r->rings, &r->options)
                      : ax_collective_matmul_kernel(in[0], in[1], axes, r->rings, &r->options);
}

static void test_refused(void **state) {
  (void)state;
  static const int32_t none[1];
  const ax_rings flat = {.type = AX_TYPE(AX_S32, 4), .ids = none}, wide = {.type = AX_TYPE(AX_S64, 1, 4), .ids = none},
                 empty = {.type = AX_TYPE(AX_S32, 0, 4), .ids = none}, nothing = {.type = AX_TYPE(AX_S32, 1, 4)};
  const ax_type x = AX_TYPE(AX_F32, 2, 3), w = AX_TYPE(AX_F32, 3, 5);
  const refusal rows[] = {
      {"rings is s32[4]; it is a table of two dimensions: rings, and the devices of each", .lhs = x, .rhs = w, .rings = &flat},
      {"rings is s64[1,4]; ids are s32", .lhs = x, .rhs = w, .rings = &wide},
      {"rings is s32[0,4], and has no ids", .lhs = x, .rhs = w, .rings = &empty},
      {"rings is s32[1,4], and has no ids", .lhs = x, .rhs = w, .rings = &nothing},
      {"rings has the id 4; there are 4 members along \"d\"", .lhs = x, .rhs = w, .rings = RINGS(1, 2, 0, 4)},
      {"rings has the id -1; there are 4 members along \"d\"", .lhs = x, .rhs = w, .rings = RINGS(1, 2, 0, -1)},
      {"rings has the id 2 twice", .lhs = x, .rhs = w, .rings = RINGS(2, 2, 0, 2, 2, 1)},
      {"buffering is -1; it is the number of slots, or 0", .lhs = x, .rhs = w, .options.buffering = -1},
      {"f32[2,3] has 3 columns and f32[4,5] has 4 rows", .lhs = x, .rhs = AX_TYPE(AX_F32, 4, 5)},
      {"the columns of f32[2,3] are gathered from a ring of 4, so that there are 12 rows of the right operand; it is f32[3,5]",
       .lhs = x, .rhs = w, .options.columns = true},
      {"operand dtypes differ: f32[2,3] and bf16[3,5]", .lhs = x, .rhs = AX_TYPE(AX_BF16, 3, 5)},
      {"needs a numeric dtype, got bool", .lhs = AX_TYPE(AX_BOOL, 2, 3), .rhs = AX_TYPE(AX_BOOL, 3, 5)},
      {"the operands are f32[3] and f32[3,5]; both are of as many dimensions, two at least", .lhs = AX_TYPE(AX_F32, 3), .rhs = w},
      {"the operands are f32[2,2,3] and f32[3,5]; both are of as many dimensions, two at least", .lhs = AX_TYPE(AX_F32, 2, 2, 3),
       .rhs = w},
      {"dimension 0 is of 2 in f32[2,2,3] and of 3 in f32[3,3,5]", .lhs = AX_TYPE(AX_F32, 2, 2, 3),
       .rhs = AX_TYPE(AX_F32, 3, 3, 5)},
      {"the result of f32 is to be s32, which is not of its kind", .lhs = x, .rhs = w, .options.dtype = AX_S32},
      {"there are 4294967296 rows in parts; places are s32", .lhs = AX_TYPE(AX_F32, INT64_C(1) << 30, 1),
       .rhs = AX_TYPE(AX_F32, 1, 1)},
      {"the product of f32[2,3] and f32[3,5] has 2 rows, which a ring of 4 does not divide", true, .lhs = x, .rhs = w},
      {"the product of f32[2,3] and f32[3,5] has 5 columns, which a ring of 4 does not divide", true, .lhs = x, .rhs = w,
       .options.columns = true},
      {"\"e\"", .lhs = x, .rhs = w, .axes = "e"},
  };
  const ax_mesh mesh = {.count = 1, .axis = {{.name = "d", .size = 4}}};
  for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
    const ax_type types[] = {rows[r].lhs, rows[r].rhs};
    ax_program *program;
    assert_int_equal(ax_trace_on(&mesh, AX_CLOSURE(refused, 2, 1, &rows[r]), types, &program), AX_INVALID_ARGUMENT);
    const char *name = rows[r].scatter ? "matmul_reduce_scatter_kernel" : "collective_matmul_kernel";
    if (strstr(ax_message(), rows[r].message) == NULL || strstr(ax_message(), name) == NULL)
      fail_msg("row %zu: %s", r, ax_message());
  }
}

/* --- Cost: what a device is sent is what an all-gather would bring it --- */

static void test_cost(void **state) {
  (void)state;
  for (int ways = 0; ways < 2; ways++) {
    const trial t = {.members = 8, .m = 16, .k = 4, .j = 6, .dtype = AX_F32};
    const ax_type in[] = {AX_TYPE(AX_F32, 8 * 16, 4), AX_TYPE(AX_F32, 8 * 4, 6)};
    ax_program *program = test_trace(mapped, (void *)(uintptr_t)(const void *)&t, in, 2, 1);
    ax_cost cost;
    const ax_process_layout two = {.processes = 2};
    TEST_OK(ax_program_cost_over(program, ways == 0 ? NULL : &two, &cost));
    TEST_NEAR(cost.received, 7 * 16 * 4 * 4, 0);
    assert_int_equal(cost.collective_count, 1);
    assert_string_equal(cost.collectives[0].primitive, "copy_start");
    assert_string_equal(cost.collectives[0].axes, "d");
    assert_int_equal(cost.collectives[0].members, 8);
    if (ways == 1) assert_true(cost.between > 0 && cost.within > cost.between && cost.seconds > 0);
    ax_cost_release(&cost);
    ax_program_release(program);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rings),
      cmocka_unit_test(test_tables),
      cmocka_unit_test(test_dtypes),
      cmocka_unit_test(test_sizes),
      cmocka_unit_test(test_schedules_of_large_rings),
      cmocka_unit_test(test_sums_are_wide),
      cmocka_unit_test(test_leading),
      cmocka_unit_test(test_barriers),
      cmocka_unit_test(test_cost),
      cmocka_unit_test(test_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
