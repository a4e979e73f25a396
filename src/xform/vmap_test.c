/* vmap of functions in a trace: its size, and what is mapped split over the devices of shard_maps inside. */
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "axle/transform.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/tensor.h"

enum { UNMAPPED = AX_NOT_MAPPED };

/* --- What runs on each device, of a mesh d=2, m=2: x T[3/m], w T[3]..; the specs are "m;" of x [6] and w [3], to results "m" and
   "" --- */

static ax_value total(ax_value x) { return ax_reduce_sum(x, AX_ALL_DIMS, false); }

static void product(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_tanh(ax_mul(in[0], in[1]));
  out[1] = ax_psum(total(ax_mul(out[0], in[0])), "m");
}

/* A result that depends on nothing mapped, beside one that does. */
static void of_weights(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_exp(in[1]);
  out[1] = ax_psum(total(ax_mul(in[0], in[1])), "m");
}

static void turn(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[0];
  out[1] = ax_tanh(ax_add(in[1], ax_mul(in[0], in[2])));
  out[2] = ax_psum(total(out[1]), "m");
}
/* A carry that is mapped only after a turn; steps that are mapped, and captured ones. */
static void loops(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value steps = ax_stack(AX_VALUES(in[0], ax_mul(in[1], in[0])), 0), carry[] = {in[1], ax_full_like(in[0], 1), steps}, made[3];
  ax_scan(AX_FN(turn, 3, 3), 2, 2, false, carry, made);
  out[0] = made[1];
  out[1] = total(made[2]);
}

static void first_way(const ax_value *in, ax_value *out, void *context) { (void)context, out[0] = ax_mul(in[0], in[1]); }
static void second_way(const ax_value *in, ax_value *out, void *context) { (void)context, out[0] = ax_exp(in[1]); }
static void chooses(const ax_value *in, ax_value *out, void *context) {
  product(in, out, context);
  ax_if(ax_gt(out[1], ax_real(0.2)), AX_FN(first_way, 2, 1), AX_FN(second_way, 2, 1), in, out);
}

static void small(const ax_value *in, ax_value *out, void *context) { (void)context, out[0] = ax_lt(in[1], ax_real(3)); }
static void grow(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_mul(in[0], ax_real(1.25));
  out[1] = ax_add(ax_mul(in[1], ax_real(1.5)), ax_real(0.25));
}
static void whiles(const ax_value *in, ax_value *out, void *context) {
  ax_value carry[2];
  product(in, carry, context);
  ax_while(AX_FN(small, 2, 1), AX_FN(grow, 2, 2), carry, out);
}
static void calls(const ax_value *in, ax_value *out, void *context) { ax_closed_call(AX_CLOSURE(product, 2, 2, context), in, out); }

static void loss_here(const ax_value *in, ax_value *out, void *context) {
  ax_value made[2];
  product(in, made, context);
  out[0] = ax_add(total(made[0]), made[1]);
}
static void slopes(const ax_value *in, ax_value *out, void *context) {
  ax_value made[2];
  ax_grad(AX_CLOSURE(loss_here, 2, 1, context), AX_ALL_ARGS, in, made);
  out[0] = made[0];
  out[1] = ax_psum(total(made[1]), "m");
}

/* A vmap inside, whose members are not split. */
static void one_member(const ax_value *in, ax_value *out, void *context) {
  (void)context, out[0] = ax_add(in[0], ax_pmean(ax_mul(in[0], in[1]), "j"));
}
static void maps(const ax_value *in, ax_value *out, void *context) {
  product(in, out, context);
  ax_vmap(AX_FN(one_member, 2, 1), in, out, &(ax_vmap_options){.axis_name = "j"});
}

static const ax_function bodies[] = {product, of_weights, loops, chooses, whiles, calls, slopes, maps};

/* --- vmap of the shard_map --- */

typedef struct question {
  ax_function body;
  bool unchecked, mapped_weights, split, twice;
} question;

static void on_mesh(const ax_value *in, ax_value *out, void *context) {
  const question *q = context;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=2,m=2", &mesh));
  ax_value operands[] = {in[0], ax_exp(in[1])};
  if (q->unchecked) ax_shard_map_unchecked(&mesh, "m; m -> m; ", AX_FN(q->body, 2, 2), operands, out);
  else ax_shard_map(&mesh, "m; m -> m; ", AX_FN(q->body, 2, 2), operands, out);
  out[0] = ax_add(out[0], ax_mul(ax_slice_in_dim(in[0], 0, 1, 1, 0), ax_real(2)));
}

static void vmapped(const ax_value *in, ax_value *out, void *context) {
  const question *q = context;
  const ax_vmap_options options = {.in_axes = {AX_DIMS(1, q->mapped_weights ? 0 : UNMAPPED)},
                                   .out_axes = {AX_DIMS(1, 0)},
                                   .spmd_axis_name = q->split ? "d" : NULL};
  ax_vmap(AX_CLOSURE(on_mesh, 2, 2, context), in, out, &options);
}
static void summed(const ax_value *in, ax_value *out, void *context) {
  ax_value made[2];
  vmapped(in, made, context);
  out[0] = ax_add(total(ax_mul(made[0], made[0])), total(ax_exp(made[1])));
}
/* Values; and gradients through the vmap. */
static void everything(const ax_value *in, ax_value *out, void *context) {
  const question *q = context;
  vmapped(in, out, context);
  if (q->body == whiles)
    out[2] = in[0], out[3] = in[1];
  else
    ax_grad(AX_CLOSURE(summed, 2, 1, context), AX_ALL_ARGS, in, out + 2);
}

static ax_program *program_of(const question *q) {
  const ax_type types[] = {TEST_TYPE(AX_F64, 6, 4), q->mapped_weights ? TEST_TYPE(AX_F64, 4, 6) : TEST_TYPE(AX_F64, 6)};
  ax_program *program;
  TEST_OK(ax_trace(AX_CLOSURE(everything, 2, 4, (void *)q), types, &program));
  TEST_OK(ax_program_verify(program));
  return program;
}

static void run(const ax_program *program, bool mapped_weights, ax_tensor **out) {
  double x[24], w[24];
  for (int i = 0; i < 24; i++) x[i] = (i * 7 % 11) / 11.0 - 0.4, w[i] = (i * 5 % 13) / 13.0 - 0.5;
  ax_tensor *in[] = {test_tensor(TEST_TYPE(AX_F64, 6, 4), x),
                     test_tensor(mapped_weights ? TEST_TYPE(AX_F64, 4, 6) : TEST_TYPE(AX_F64, 6), w)};
  test_run(program, in, out);
  test_release(in, 2);
}

static bool says(const ax_program *program, const char *words) {
  char *text;
  TEST_OK(ax_program_print(program, &text));
  bool found = strstr(text, words) != NULL;
  ax_string_free(text);
  return found;
}

static void check(question q) {
  ax_tensor *whole[4], *split[4];
  q.split = false;
  ax_program *plain = program_of(&q);
  q.split = true;
  ax_program *parts = program_of(&q);
  assert_true(says(parts, "P(m, d)")); /* x [6, 4]: split twice */
  assert_false(says(plain, "P(m, d)"));
  run(plain, q.mapped_weights, whole);
  run(parts, q.mapped_weights, split);
  for (int k = 0; k < 4; k++) TEST_TENSORS_NEAR(whole[k], split[k], 1e-13);
  test_release(whole, 4);
  test_release(split, 4);
  ax_program_release(plain);
  ax_program_release(parts);
}

static void split_batches(void **state) {
  (void)state;
  for (size_t b = 0; b < sizeof bodies / sizeof bodies[0]; b++)
    for (int form = 0; form < 4; form++)
      check((question){.body = bodies[b], .unchecked = form % 2 == 1, .mapped_weights = form >= 2});
}

/* --- Sizes, several axes, refusals --- */

static ax_status run_scalars(ax_function f, uint32_t in_count, const double *x, uint32_t out_count, double *y) {
  ax_type types[] = {TEST_SCALAR(AX_F64), TEST_SCALAR(AX_F64)};
  ax_program *program;
  ax_status status = ax_trace(AX_FN(f, in_count, out_count), types, &program);
  if (status != AX_OK) return status;
  test_run_scalars(program, x, y);
  ax_program_release(program);
  return AX_OK;
}

static void cube(const ax_value *in, ax_value *out, void *context) { (void)context, out[0] = ax_integer_pow(in[0], 3); }
/* Nobody is mapped but the number of members. */
static void numbered(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_mul(in[0], ax_convert_element_type(ax_axis_index("i"), AX_F64));
}
static void sizes(const ax_value *in, ax_value *out, void *context) {
  ax_value cubes, products;
  ax_vmap(AX_CLOSURE(cube, 1, 1, context), in, &cubes, &(ax_vmap_options){.in_axes = {AX_DIMS(UNMAPPED)}, .size = 5});
  ax_vmap(AX_CLOSURE(numbered, 1, 1, context), in, &products,
          &(ax_vmap_options){.in_axes = {AX_DIMS(UNMAPPED)}, .size = 4, .axis_name = "i"});
  out[0] = total(cubes);
  out[1] = total(products);
}
static void no_size(const ax_value *in, ax_value *out, void *context) {
  ax_vmap(AX_CLOSURE(cube, 1, 1, context), in, out, &(ax_vmap_options){.in_axes = {AX_DIMS(UNMAPPED)}});
}
static void other_size(const ax_value *in, ax_value *out, void *context) {
  ax_value pair = ax_stack(AX_VALUES(in[0], in[0]), 0);
  ax_vmap(AX_CLOSURE(cube, 1, 1, context), &pair, out, &(ax_vmap_options){.size = 3});
}
static void size_below(const ax_value *in, ax_value *out, void *context) {
  ax_vmap(AX_CLOSURE(cube, 1, 1, context), in, out, &(ax_vmap_options){.in_axes = {AX_DIMS(UNMAPPED)}, .size = -2});
}

static void given_sizes(void **state) {
  (void)state;
  double x = 2, y[2];
  TEST_OK(run_scalars(sizes, 1, &x, 2, y));
  assert_true(y[0] == 40 && y[1] == 12);
  TEST_FAILS(run_scalars(no_size, 1, &x, 1, y), AX_INVALID_ARGUMENT, "vmap: in_axes maps no operand");
  TEST_FAILS(run_scalars(other_size, 1, &x, 1, y), AX_INVALID_ARGUMENT,
             "vmap: in_axes[0]=0 of f64[2] has size 2, but the size is 3");
  TEST_FAILS(run_scalars(size_below, 1, &x, 1, y), AX_INVALID_ARGUMENT, "vmap: the size is -2");
}

/* A shard_map of x [2] over m, given by what it runs, mapped over `size` members. */
typedef struct mapping {
  ax_function body;
  const char *mesh, *specs, *axis_name, *spmd;
  int64_t size;
} mapping;
static void mapping_member(const ax_value *in, ax_value *out, void *context) {
  const mapping *m = context;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse(m->mesh, &mesh));
  ax_shard_map(&mesh, m->specs, AX_FN(m->body, 1, 1), in, out);
}
static void mapping_all(const ax_value *in, ax_value *out, void *context) {
  const mapping *m = context;
  ax_vmap(AX_CLOSURE(mapping_member, 1, 1, context), in, out,
          &(ax_vmap_options){.axis_name = m->axis_name, .spmd_axis_name = m->spmd});
}
static ax_status map(const mapping *m, ax_program **out) {
  ax_type type = TEST_TYPE(AX_F64, m->size, 2);
  return ax_trace(AX_CLOSURE(mapping_all, 1, 1, (void *)m), &type, out);
}
static void named_sum(const ax_value *in, ax_value *out, void *context) { (void)context, out[0] = ax_psum(in[0], "i"); }
static void sum_over_d(const ax_value *in, ax_value *out, void *context) {
  (void)context, out[0] = ax_psum(ax_pvary(in[0], "d"), "d");
}

static void refusals(void **state) {
  (void)state;
  ax_program *program = NULL;
  const mapping good = {.body = cube, .mesh = "d=2,m=2", .specs = "m -> m", .spmd = "d", .size = 4};
  mapping m = good;
  m.spmd = "d,m";
  TEST_FAILS(map(&m, &program), AX_INVALID_ARGUMENT, "vmap: spmd_axis_name: {m} is in use in the spec of shard_map's operand 0");
  m.spmd = "e";
  TEST_FAILS(map(&m, &program), AX_INVALID_ARGUMENT, "vmap: spmd_axis_name: shard_map's mesh: ");
  m.spmd = "";
  TEST_FAILS(map(&m, &program), AX_INVALID_ARGUMENT, "vmap: spmd_axis_name \"\": ");
  m = good, m.size = 3;
  TEST_FAILS(map(&m, &program), AX_INVALID_ARGUMENT,
             "vmap: spmd_axis_name: the size 3 cannot be split over the 2 devices along {d}");
  m = good, m.body = named_sum, m.axis_name = "i";
  TEST_FAILS(map(&m, &program), AX_ABSENT, "no psum over an axis that is mapped");
  m = good, m.body = sum_over_d;
  TEST_FAILS(map(&m, &program), AX_ABSENT, "no pvary over an axis that is mapped, or in spmd_axis_name");
  m = good, m.axis_name = "i"; /* nobody speaks of it in the shard_map */
  TEST_OK(map(&m, &program));
  ax_program_release(program);
  m = good, m.mesh = "d=2,e=2,m=2", m.spmd = "e,d", m.specs = " -> "; /* behind open entries; several axes */
  TEST_OK(map(&m, &program));
  TEST_OK(ax_program_verify(program));
  assert_true(says(program, "in_specs=(P(e+d)"));
  ax_program_release(program);
}

static ax_status trace_split(void *context) {
  (void)context;
  const mapping m = {.body = cube, .mesh = "d=2,m=2", .specs = "m -> m", .spmd = "d", .size = 4};
  ax_program *program;
  ax_status status = map(&m, &program);
  ax_program_release(program);
  return status;
}
static void survives_lack_of_memory(void **state) {
  (void)state;
  assert_true(test_each_allocation(trace_split, NULL) > 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(split_batches),
      cmocka_unit_test(given_sizes),
      cmocka_unit_test(refusals),
      cmocka_unit_test(survives_lack_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
