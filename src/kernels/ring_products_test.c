/* ax_collective_matmul and ax_matmul_reduce_scatter as functions that are transformed: each program here is traced twice, once with
   them and once with gathering or scattering and a product by themselves, which are to give the same, whatever is done to both. */
#include "axle/axle.h"

#include <stdio.h>
#include <string.h>

#include "support/cmocka.h"
#include "support/random.h"
#include "support/oom.h"
#include "support/run.h"
#include "support/schedules.h"
#include "support/tensor.h"

typedef struct kind {
  bool scatter, columns, plain; /* plain: without kernels */
} kind;

static ax_value product(const kind *k, ax_value x, ax_value w) {
  const ax_ring_options options = {.columns = k->columns, .buffering = 2};
  const int64_t dimension = k->columns ? -1 : -2;
  if (!k->plain) return k->scatter ? ax_matmul_reduce_scatter(x, w, "d", &options) : ax_collective_matmul(x, w, "d", &options);
  if (k->scatter) return ax_psum_scatter(ax_matmul(x, w), "d", dimension, true);
  return ax_matmul(ax_all_gather(x, "d", dimension, true), w);
}

enum { N = 3 };
static const int64_t x_rows[] = {2, 6, 2, 2}, x_columns[] = {2, 2, 2, 2}, w_rows[] = {2, 2, 6, 2}, w_columns[] = {4, 4, 4, 12};
/* By kind: gathered rows, scattered rows, gathered columns, scattered columns. */
static int number_of(const kind *k) { return k->columns * 2 + k->scatter; }

static ax_value total(ax_value x) { return ax_reduce_sum(x, AX_LIST(ax_typeof(x).rank, ((const int64_t[]){0, 1, 2})), false); }

/* --- What is done with it. in: x, w, tangents of both --- */

static AX_BODY(forward) { out[0] = product(context, in[0], in[1]); }
static AX_BODY(bent) { out[0] = ax_sin(product(context, in[0], in[1])); }
static AX_BODY(loss) { out[0] = ax_psum(total(ax_sin(product(context, in[0], in[1]))), "d"); }
#define F(function_) AX_CLOSURE(function_, 2, 1, context)

static AX_BODY(forwards) { ax_jvp(F(bent), AX_ALL_ARGS, in, in + 2, out, out + 1); }

static AX_BODY(backwards) { ax_grad(F(loss), AX_ALL_ARGS, in, out); }

static AX_BODY(gradient) { ax_grad(F(loss), AX_ALL_ARGS, in, out); }
static AX_BODY(forwards_of_backwards) { ax_jvp(AX_CLOSURE(gradient, 2, 2, context), AX_ALL_ARGS, in, in + 2, out, out + 2); }

typedef struct directed {
  kind *k;
  const ax_value *direction;
} directed;
static AX_BODY(slope) {
  const directed *d = context;
  ax_value g[2];
  ax_grad(AX_CLOSURE(loss, 2, 1, d->k), AX_ALL_ARGS, in, g);
  out[0] = ax_psum(ax_add(total(ax_mul(g[0], d->direction[0])), total(ax_mul(g[1], d->direction[1]))), "d");
}
static AX_BODY(backwards_twice) {
  directed d = {context, in + 2};
  ax_grad(AX_CLOSURE(slope, 2, 1, &d), AX_ALL_ARGS, in, out);
}

/* Batches of two, which are made here: dimensions in front, in the middle and behind. */
static AX_BODY(batches) {
  ax_value many_x = ax_stack(AX_VALUES(in[0], in[2]), 0), many_w = ax_stack(AX_VALUES(in[1], in[3]), 2),
           middle_x = ax_moveaxis(many_x, 0, 1);
  ax_vmap(F(bent), AX_VALUES(middle_x, in[1]), out, &(ax_vmap_options){.in_axes = {AX_DIMS(1, AX_NOT_MAPPED)}});
  ax_vmap(F(bent), AX_VALUES(in[0], many_w), out + 1, &(ax_vmap_options){.in_axes = {AX_DIMS(AX_NOT_MAPPED, 2)}});
  ax_vmap(F(bent), AX_VALUES(many_x, many_w), out + 2, &(ax_vmap_options){.in_axes = {AX_DIMS(0, 2)}});
}
static AX_BODY(batched_gradients) {
  ax_value many_x = ax_stack(AX_VALUES(in[0], in[2]), 0), many_w = ax_stack(AX_VALUES(in[1], in[3]), 2);
  ax_vmap(AX_CLOSURE(gradient, 2, 2, context), AX_VALUES(many_x, in[1]), out,
          &(ax_vmap_options){.in_axes = {AX_DIMS(0, AX_NOT_MAPPED)}});
  ax_vmap(AX_CLOSURE(gradient, 2, 2, context), AX_VALUES(in[0], many_w), out + 2,
          &(ax_vmap_options){.in_axes = {AX_DIMS(AX_NOT_MAPPED, 2)}});
  ax_vmap(AX_CLOSURE(gradient, 2, 2, context), AX_VALUES(many_x, many_w), out + 4, &(ax_vmap_options){.in_axes = {AX_DIMS(0, 2)}});
}

/* A scan whose steps have it. */
static AX_BODY(scanned_step) {
  ax_value z = product(context, in[0], in[1]);
  out[0] = ax_add(in[0], ax_mul(in[0], total(z)));
  out[1] = ax_mul(in[1], ax_real(0.5));
  out[2] = total(z);
}
static AX_BODY(scanned_loss) {
  ax_value made[3], w = ax_add(in[1], ax_mul(total(in[0]), ax_real(0))); /* varies as what is carried does */
  ax_scan(AX_CLOSURE(scanned_step, 2, 3, context), 2, 3, false, AX_VALUES(in[0], w), made);
  out[0] = ax_psum(total(ax_mul(made[2], made[2])), "d");
}
static AX_BODY(scanned) { ax_value_and_grad(F(scanned_loss), AX_ALL_ARGS, in, out); }

static AX_BODY(again) { ax_checkpoint(F(loss), in, out, NULL); }
static AX_BODY(remade) { ax_value_and_grad(F(again), AX_ALL_ARGS, in, out); }

static const struct {
  const char *name;
  ax_function function;
  uint32_t out_count;
} programs[] = {
    {"forward", forward, 1},
    {"forwards", forwards, 2},
    {"backwards", backwards, 2},
    {"forwards of backwards", forwards_of_backwards, 4},
    {"backwards twice", backwards_twice, 2},
    {"batches", batches, 3},
    {"batched gradients", batched_gradients, 6},
    {"scanned", scanned, 3},
    {"remade", remade, 3},
};
enum { MOST = 6 };

/* --- On a mesh: x is cut, w is cut or one for all --- */

typedef struct placed {
  kind k;
  int which;
  bool shared_w, unchecked;
} placed;

/* Everything as one array a result, with a dimension for the devices in front. */
static AX_BODY(on_device) {
  placed *p = context;
  programs[p->which].function(in, out, &p->k);
  for (uint32_t i = 0; i < programs[p->which].out_count; i++) out[i] = ax_expand_dims(out[i], 0);
}

static AX_BODY(mapped) {
  const placed *p = context;
  const ax_mesh mesh = {.count = 1, .axis = {{.name = "d", .size = N}}};
  const uint32_t count = programs[p->which].out_count;
  char specs[64];
  snprintf(specs, sizeof specs, "d; %s; d; %s -> d", p->shared_w ? "_" : "d", p->shared_w ? "_" : "d");
  for (uint32_t i = 1; i < count; i++) strcat(specs, "; d");
  if (p->unchecked) ax_shard_map_unchecked(&mesh, specs, AX_CLOSURE(on_device, 4, count, p), in, out);
  else ax_shard_map(&mesh, specs, AX_CLOSURE(on_device, 4, count, p), in, out);
}

static void make(placed *p, bool plain, ax_tensor *const *in, const ax_type *types, ax_tensor **out) {
  p->k.plain = plain;
  ax_program *program = test_trace(mapped, p, types, 4, programs[p->which].out_count);
  if (plain) test_run(program, in, out);
  else test_schedules(program, in, out, 1, 7);
  if (!plain && !p->unchecked && !p->shared_w) TEST_EVERY_WAY(program, in, 1e-12);
  ax_program_release(program);
}

static void agree(placed *p) {
  int k = number_of(&p->k);
  const int64_t w_parts = p->shared_w ? 1 : N;
  const ax_type types[] = {TEST_TYPE(AX_F64, N * x_rows[k], x_columns[k]), TEST_TYPE(AX_F64, w_parts * w_rows[k], w_columns[k]),
                           types[0], types[1]};
  ax_tensor *in[4], *got[MOST] = {NULL}, *want[MOST] = {NULL};
  uint64_t random = 1;
  for (int i = 0; i < 4; i++) {
    in[i] = test_tensor(i % 2 == 0 ? types[0] : types[1], (double[N * 6 * 12]){0});
    for (int64_t e = 0; e < test_elems(in[i]); e++) test_set(in[i], e, (double)(ax_next_random(&random) % 2001) / 1000 - 1);
  }
  const ax_type given[] = {types[0], types[1], types[0], types[1]};
  make(p, true, in, given, want);
  make(p, false, in, given, got);
  for (uint32_t i = 0; i < programs[p->which].out_count; i++) {
    TEST_TENSORS_NEAR(got[i], want[i], 1e-12);
    ax_tensor_release(got[i]);
    ax_tensor_release(want[i]);
  }
  test_release(in, 4);
}

static void test_transforms(void **state) {
  (void)state;
  for (int which = 0; which < (int)(sizeof programs / sizeof programs[0]); which++)
    for (int i = 0; i < 16; i++)
      agree(&(placed){.k = {.scatter = i & 1, .columns = i & 2}, .which = which, .shared_w = i & 4, .unchecked = i & 8});
}

/* --- Dtypes: operands of bf16 whose result is of f32, and cotangents with it --- */

static AX_BODY(wide_loss) {
  const bool *plain = context;
  ax_value z;
  if (*plain)
    z = ax_matmul(ax_convert_element_type(ax_all_gather(in[0], "d", -2, true), AX_F32), ax_convert_element_type(in[1], AX_F32));
  else z = ax_collective_matmul(in[0], in[1], "d", &(ax_ring_options){.dtype = AX_F32});
  out[0] = ax_psum(total(ax_mul(z, z)), "d");
}
static AX_BODY(wide_gradient) { ax_grad(AX_CLOSURE(wide_loss, 2, 1, context), AX_ALL_ARGS, in, out); }
static AX_BODY(wide) {
  const ax_mesh mesh = {.count = 1, .axis = {{.name = "d", .size = N}}};
  ax_shard_map(&mesh, "d; d -> d; d", AX_CLOSURE(wide_gradient, 2, 2, context), in, out);
}

static void test_mixed_dtypes(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_BF16, N * 2, 4), TEST_TYPE(AX_BF16, N * 4, 2)};
  ax_tensor *in[2], *got[2], *want[2];
  double values[24];
  for (int i = 0; i < 24; i++) values[i] = (double)(i * 7 % 9) - 4;
  for (int i = 0; i < 2; i++) in[i] = test_tensor(types[i], values);
  for (int plain = 0; plain < 2; plain++) {
    const bool is_plain = plain;
    ax_program *program = test_trace(wide, (void *)(uintptr_t)&is_plain, types, 2, 2);
    assert_int_equal(ax_program_out_type(program, 0)->dtype, AX_BF16);
    test_run(program, in, plain ? want : got);
    ax_program_release(program);
  }
  for (int i = 0; i < 2; i++) TEST_TENSORS_NEAR(got[i], want[i], 0x1p-8);
  test_release(in, 2), test_release(got, 2), test_release(want, 2);
}

/* --- The order of additions: rows are products of their own, whose elements are those of the plain product to the bit --- */

static AX_BODY(rows_of_f32) {
  out[0] = ax_collective_matmul(in[0], in[1], "d", NULL);
  out[1] = ax_matmul(ax_all_gather(in[0], "d", -2, true), in[1]);
}
static AX_BODY(both_rows) {
  const ax_mesh mesh = {.count = 1, .axis = {{.name = "d", .size = 4}}};
  ax_shard_map(&mesh, "d; d -> d; d", AX_FN(rows_of_f32, 2, 2), in, out);
}

static void test_same_bits(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, 4 * 3, 17), TEST_TYPE(AX_F32, 4 * 17, 5)};
  ax_tensor *in[2], *out[2];
  uint64_t random = 3;
  for (int i = 0; i < 2; i++) {
    double values[4 * 17 * 5];
    for (int64_t e = 0; e < ax_type_elems(&types[i]); e++) values[e] = (double)(ax_next_random(&random) % 100003) / 1000;
    in[i] = test_tensor(types[i], values);
  }
  ax_program *program = test_trace(both_rows, NULL, types, 2, 2);
  test_run(program, in, out);
  assert_true(test_same_tensors(out[0], out[1]));
  ax_program_release(program);
  test_release(in, 2), test_release(out, 2);
}

/* --- Beside shard_maps over other meshes --- */

static AX_BODY(along_d) { out[0] = ax_collective_matmul(in[0], in[1], "d", NULL); }
static AX_BODY(bend) { out[0] = ax_sin(in[0]); }
typedef struct meshes {
  ax_mesh first, second;
  const char *second_specs;
} meshes;
static AX_BODY(on_both) {
  const meshes *m = context;
  ax_value z;
  ax_shard_map(&m->first, "d; d -> d", AX_FN(along_d, 2, 1), in, &z);
  ax_shard_map(&m->second, m->second_specs, AX_FN(bend, 1, 1), &z, out);
}

static void test_meshes(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F64, 6, 2), TEST_TYPE(AX_F64, 6, 2)};
  const meshes fewer = {
      {.count = 1, .axis = {{.name = "d", .size = 3}}}, {.count = 1, .axis = {{.name = "e", .size = 6}}}, "e -> e"};
  const double values[] = {1, 2, 3, -4, 5, 6, -7, 8, 9, 0.5, 0.25, 3};
  ax_tensor *in[] = {test_tensor(types[0], values), test_tensor(types[1], values)};
  ax_program *program = test_trace(on_both, (void *)(uintptr_t)&fewer, types, 2, 1);
  TEST_EVERY_WAY(program, in, 1e-12);
  ax_program_release(program);
  test_release(in, 2);

  const meshes cut = {{.count = 1, .axis = {{.name = "d", .size = 4}}},
                      {.count = 2, .axis = {{.name = "b", .size = 2}, {.name = "c", .size = 2}}},
                      "b+c -> b+c"};
  const ax_type larger[] = {TEST_TYPE(AX_F64, 8, 2), TEST_TYPE(AX_F64, 8, 2)};
  test_random random = {7};
  ax_tensor *more[] = {test_random_tensor(&random, larger[0], -2, 2), test_random_tensor(&random, larger[1], -2, 2)};
  program = test_trace(on_both, (void *)(uintptr_t)&cut, larger, 2, 1);
  TEST_EVERY_WAY(program, more, 1e-12);
  ax_program_release(program);
  test_release(more, 2);
}

/* --- Exported: without kernels, alone on its mesh or not --- */

static AX_BODY(alone) {
  const ax_mesh mesh = {.count = 1, .axis = {{.name = "d", .size = 2}}};
  ax_shard_map(&mesh, "d; d -> d", AX_FN(along_d, 2, 1), in, out);
}
static AX_BODY(bent_alone) {
  alone(in, out, NULL);
  out[0] = ax_sin(out[0]);
}

static void test_stablehlo(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, 4, 2), TEST_TYPE(AX_F32, 4, 2)};
  const ax_function functions[] = {alone, bent_alone};
  for (int i = 0; i < 2; i++) {
    ax_program *program = test_trace(functions[i], NULL, types, 2, 1);
    char *text;
    TEST_OK(ax_program_stablehlo(program, &text));
    assert_non_null(strstr(text, "stablehlo.all_gather"));
    assert_non_null(strstr(text, "stablehlo.dot_general"));
    ax_string_free(text);
    ax_program_release(program);
  }
}

/* --- Without memory --- */

static ax_status trace_gradients(void *context) {
  (void)context;
  placed p = {.which = 2};
  const ax_type types[] = {TEST_TYPE(AX_F64, N * 2, 2), TEST_TYPE(AX_F64, N * 2, 4), TEST_TYPE(AX_F64, N * 2, 2),
                           TEST_TYPE(AX_F64, N * 2, 4)};
  ax_program *program;
  ax_status status = ax_trace(AX_CLOSURE(mapped, 4, 2, &p), types, &program);
  ax_program_release(program);
  return status;
}

static void test_memory(void **state) {
  (void)state;
  assert_true(test_each_allocation(trace_gradients, NULL) > 50);
}

/* --- What is refused --- */

static AX_BODY(refused) {
  const char *const *options = context;
  ax_value x = in[0];
  if (strcmp(options[0], "unreduced") == 0) x = ax_vary_unreduced_cast(x, "e", AX_UNREDUCED_SUM);
  if (strcmp(options[0], "dtypes") == 0) x = ax_convert_element_type(x, AX_F32);
  out[0] = ax_collective_matmul(x, in[1], strcmp(options[0], "axis") == 0 ? "f" : "d", NULL);
}

static void test_refused(void **state) {
  (void)state;
  const char *const rows[][2] = {
      {"unreduced", "operand 0 is parts of a sum"}, {"dtypes", "operand dtypes differ: f32"}, {"axis", "\"f\""}};
  const ax_mesh mesh = {.count = 2, .axis = {{.name = "d", .size = 2}, {.name = "e", .size = 2}}};
  ax_type types[] = {TEST_TYPE(AX_F64, 2, 2), TEST_TYPE(AX_F64, 2, 2)};
  for (int i = 0; i < 2; i++) types[i].spread.varying = 3;
  for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
    ax_program *program;
    TEST_FAILS(ax_trace_on(&mesh, AX_CLOSURE(refused, 2, 1, rows[r]), types, &program), AX_INVALID_ARGUMENT, rows[r][1]);
    assert_non_null(strstr(ax_message(), "collective_matmul"));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_transforms), cmocka_unit_test(test_mixed_dtypes),
                                     cmocka_unit_test(test_same_bits),  cmocka_unit_test(test_meshes),
                                     cmocka_unit_test(test_stablehlo),  cmocka_unit_test(test_memory),
                                     cmocka_unit_test(test_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
