/* Operations are counted once, however passes split, group, hoist and pack what they are done by: those of a simulation's lines add
   up to those of the program's equations. Random programs of products, in and out of loops, and of what is fused with them.
   (Cumulative sums are left out: they are made in blocks, which takes more additions than there are elements.) */
#undef AXLE_NO_LINES
#include "axle/axle.h"

#include <string.h>

#include "base/base.h"
#include "support/cmocka.h"
#include "support/tensor.h"

enum { most_steps = 9, weights = 3, most_width = 1024, large_elems = 1 << 17 };

typedef struct made {
  uint64_t random;
  int64_t rows, width;
  uint32_t step_count;
  uint32_t kind[most_steps], weight[most_steps], from[most_steps]; /* from: which of the values so far */
  int64_t trips[most_steps];
} made;

static uint32_t pick(made *m, uint32_t count) { return (uint32_t)(ax_next_random(&m->random) >> 33) % count; }

enum { PRODUCT, PRODUCTS_IN_LOOP, BOTH_IN_LOOP, TANH, SUM, SOFTMAX, CENTRE, SORT, CONVERT, POSITIVE, DIVIDED, TURNED, KIND_COUNT };

static AX_BODY(product_and_tanh) {
  (void)context;
  out[0] = ax_tanh(ax_matmul(in[0], in[1])), out[1] = in[1];
}

static AX_BODY(two_products) {
  (void)context;
  out[0] = ax_matmul(ax_add(ax_matmul(in[0], in[1]), in[0]), in[1]), out[1] = in[1];
}

static ax_value in_loop(ax_fn body, int64_t trips, ax_value x, ax_value w) {
  ax_value out[2];
  ax_scan(body, 2, trips, false, AX_VALUES(x, w), out);
  return out[0];
}

static ax_value step(const made *m, uint32_t i, ax_value x, ax_value w) {
  switch (m->kind[i]) {
    case PRODUCT: return ax_matmul(x, w);
    case PRODUCTS_IN_LOOP: return in_loop(AX_FN(product_and_tanh, 2, 2), m->trips[i], x, w);
    case BOTH_IN_LOOP: return in_loop(AX_FN(two_products, 2, 2), m->trips[i], x, w);
    case TANH: return ax_tanh(x);
    case SUM: return ax_mul(x, x);
    case SOFTMAX: return ax_exp(ax_sub(x, ax_reduce_max(x, AX_DIMS(1), true)));
    case CENTRE: return ax_sub(x, ax_reduce_sum(x, AX_DIMS(1), true));
    case SORT: return ax_sort(x, 1);
    case CONVERT: return ax_convert_element_type(ax_mul(ax_convert_element_type(x, AX_BF16), 2), AX_F32);
    case POSITIVE: return ax_max(x, 0);
    case DIVIDED: return ax_softmax(x, 1);
    default: return ax_matmul(x, ax_swapaxes(w, 0, 1));
  }
}

static AX_BODY(all_steps) {
  const made *m = context;
  ax_value values[most_steps + 1] = {in[0]}, sum = in[0];
  for (uint32_t i = 0; i < m->step_count; i++) {
    values[i + 1] = step(m, i, values[m->from[i]], in[1 + m->weight[i]]);
    sum = ax_add(sum, values[i + 1]);
  }
  out[0] = sum;
}

static void draw(made *m) {
  m->rows = (int64_t[]){2, 16, 64, 300, 512}[pick(m, 5)];
  m->width = (int64_t[]){32, 128, 1024}[pick(m, 3)];
  m->step_count = 1 + pick(m, most_steps);
  for (uint32_t i = 0; i < m->step_count; i++) {
    m->kind[i] = pick(m, KIND_COUNT);
    m->weight[i] = pick(m, weights);
    m->from[i] = pick(m, 2) ? i : pick(m, i + 1);
    m->trips[i] = 1 + pick(m, 12);
  }
}

static double simulated_flops(ax_program *program, const ax_cluster *machine) {
  ax_lowered *lowered;
  ax_simulation s;
  double flops = 0;
  TEST_OK(ax_program_lower(program, NULL, &lowered));
  TEST_OK(ax_simulate(lowered, machine, NULL, &s));
  for (uint32_t i = 0; i < s.op_count; i++) flops += s.ops[i].flops;
  ax_simulation_release(&s);
  ax_lowered_release(lowered);
  return flops;
}

static void fail_with(ax_program *program, uint64_t seed, double got, double wanted) {
  char *text;
  TEST_OK(ax_program_print(program, &text));
  fail_msg("seed %llu: %.0f operations are simulated, the program has %.0f\n%s", (unsigned long long)seed, got, wanted, text);
}

static void random_programs(void **state) {
  (void)state;
  if (AX_HOSTILE) skip(); /* where cheap values are made again wherever they can be, which is work of its own */
  ax_cluster *machine;
  TEST_OK(ax_cluster_read("cpu", &machine));
  for (uint64_t seed = 0; seed < 300; seed++) {
    made m = {.random = seed};
    ax_program *program;
    ax_cost cost;
    draw(&m);
    ax_type types[1 + weights] = {TEST_TYPE(AX_F32, m.rows, m.width)};
    for (uint32_t w = 0; w < weights; w++) types[1 + w] = TEST_TYPE(AX_F32, m.width, m.width);
    TEST_OK(ax_trace(AX_CLOSURE(all_steps, 1 + weights, 1, &m), types, &program));
    TEST_OK(ax_program_cost(program, &cost));
    const double flops = simulated_flops(program, machine);
    /* Of large arrays a sign, a sum or a product with a number is made again where it is read (plan/fuse.c). */
    const bool may_be_again = m.rows * m.width > large_elems;
    if (flops < cost.flops || flops > cost.flops * (may_be_again ? 1.01 : 1)) fail_with(program, seed, flops, cost.flops);
    ax_cost_release(&cost);
    ax_program_release(program);
  }
  ax_cluster_release(machine);
}

/* A sum of so many is made in f64 here and converted, which is none of the program's operations. */
static AX_BODY(sum_and_tanh) {
  (void)context;
  out[0] = ax_tanh(ax_psum(in[0], "d"));
}

static AX_BODY(on_many) {
  (void)context;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=512", &mesh));
  ax_shard_map(&mesh, "d -> _", AX_FN(sum_and_tanh, 1, 1), in, out);
}

static void sums_of_many(void **state) {
  (void)state;
  ax_cluster *machine;
  ax_program *program;
  TEST_OK(ax_cluster_read("tpu-like-torus", &machine));
  TEST_OK(ax_trace(AX_FN(on_many, 1, 1), AX_TYPES(TEST_TYPE(AX_F32, 512, 1000)), &program));
  assert_true(simulated_flops(program, machine) == 1000);
  ax_program_release(program);
  ax_cluster_release(machine);
}

/* Of branches, the costliest is simulated. */
static void costliest_branch(void **state) {
  (void)state;
  static const char text[] =
      "{ lambda x:f32[64,64] n:s32[]. let y:f32[64,64] = cond[branches=(\n"
      "    { lambda a:f32[64,64]. let b:f32[64,64] = neg a in (b,) },\n"
      "    { lambda a:f32[64,64]. let b:f32[64,64] = dot_general[lhs_contract=(1,) rhs_contract=(0,) lhs_batch=() rhs_batch=()] a a\n"
      "      in (b,) },\n"
      "    { lambda a:f32[64,64]. let b:f32[64,64] = exp a in (b,) })] n x in (y,) }";
  ax_cluster *machine;
  ax_program *program;
  TEST_OK(ax_cluster_read("cpu", &machine));
  TEST_OK(ax_program_parse(text, strlen(text), "t.axle", &program));
  assert_true(simulated_flops(program, machine) == 2.0 * 64 * 64 * 64);
  ax_program_release(program);
  ax_cluster_release(machine);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_programs),
      cmocka_unit_test(sums_of_many),
      cmocka_unit_test(costliest_branch),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
