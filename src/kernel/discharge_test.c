/* Kernels as plain programs: they give what the machine gives; their derivatives and batches are those of the same computed without
   a kernel; what cannot be says so; and what nobody needs of a kernel goes. */
#include "kernel/discharge.h"

#include <stdio.h>
#include <string.h>

#include "axle/axle.h"
#include "ir/prim.h"
#include "support/cmocka.h"
#include "support/run.h"
#include "support/sample.h"

/* --- Kernels to try --- */

static ax_kernel_options with(const ax_scratch *scratch, uint32_t count) {
  return (ax_kernel_options){.scratch = {AX_LIST(count, scratch)}};
}

/* Blocks that stick out at both ends: 5x7 in blocks of 2x3. */
static void at_ij(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[0];
  out[1] = in[1];
}

static AX_BODY(square_block) {
  ax_value x = ax_ref_load(in[0]), id = ax_convert_element_type(ax_program_id(1), AX_F32);
  ax_ref_store(in[1], ax_add(ax_mul(x, x), id));
}

static AX_BODY(edges) {
  const ax_block_spec spec = {.block = {AX_DIMS(2, 3)}, .index_map = at_ij};
  ax_kernel_call((&(ax_kernel){.grid = {AX_DIMS(3, 3)},
                              .in_specs = {AX_BLOCK_SPECS(spec)},
                              .out_specs = {AX_BLOCK_SPECS(spec)},
                              .outs = {AX_TYPES(AX_TYPE(AX_F32, 5, 7))},
                              .options = *(const ax_kernel_options *)context}),
                 AX_FN(square_block, 2, 0), AX_LIST(1, in), out);
}

/* A dimension of 1 that the ref has, before one that it lacks: blocks of 1x3 of 2x5x3. */
static void at_ijk(const ax_value *in, ax_value *out, void *context) {
  (void)context, out[0] = in[0], out[1] = in[1], out[2] = in[2];
}

static AX_BODY(thin) {
  const ax_block_spec spec = {.block = {AX_DIMS(1, 3, 0)}, .index_map = at_ijk};
  ax_kernel_call((&(ax_kernel){.grid = {AX_DIMS(2, 2, 3)},
                              .in_specs = {AX_BLOCK_SPECS(spec)},
                              .out_specs = {AX_BLOCK_SPECS(spec)},
                              .outs = {AX_TYPES(AX_TYPE(AX_F32, 2, 5, 3))},
                              .options = *(const ax_kernel_options *)context}),
                 AX_FN(square_block, 2, 0), AX_LIST(1, in), out);
}

/* A product with a grid over rows, columns and what is contracted, an accumulator, and `captured` added at the end. */
static void at_ik(const ax_value *in, ax_value *out, void *context) { (void)context, out[0] = in[0], out[1] = in[2]; }
static void at_kj(const ax_value *in, ax_value *out, void *context) { (void)context, out[0] = in[2], out[1] = in[1]; }

static AX_BODY(clear) { ax_ref_store(((const ax_value *)context)[3], ax_real(0)); }
static AX_BODY(leave) {}
static AX_BODY(finish) {
  const ax_value *refs = context;
  ax_ref_store(refs[2], ax_add(ax_ref_load(refs[3]), ax_broadcast_in_dim(refs[4], AX_DIMS(2, 2), AX_DIMS(1))));
}

static AX_BODY(product_step) {
  ax_value captured = *(const ax_value *)context, k = ax_program_id(2);
  const ax_value refs[] = {in[0], in[1], in[2], in[3], captured};
  ax_if(ax_eq(k, ax_integer(0)), AX_CLOSURE(clear, 0, 0, (void *)refs), AX_FN(leave, 0, 0), NULL, NULL);
  ax_ref_add(in[3], ax_matmul(ax_ref_load(in[0]), ax_ref_load(in[1])));
  ax_if(ax_eq(k, ax_sub(ax_num_programs(2), ax_integer(1))), AX_CLOSURE(finish, 0, 0, (void *)refs), AX_FN(leave, 0, 0), NULL,
        NULL);
}

/* x: [4,6], y: [6,4], z: [2] */
static AX_BODY(product) {
  const ax_block_spec ins[] = {{.block = {AX_DIMS(2, 2)}, .index_map = at_ik}, {.block = {AX_DIMS(2, 2)}, .index_map = at_kj}};
  const ax_block_spec outs = {.block = {AX_DIMS(2, 2)}, .index_map = at_ij};
  const ax_scratch scratch = {.type = AX_VMEM(AX_F32, 2, 2)};
  ax_kernel_options options = *(const ax_kernel_options *)context;
  options.scratch = (ax_scratch_list){AX_LIST(1, &scratch)};
  ax_value captured = in[2];
  ax_kernel_call((&(ax_kernel){.grid = {AX_DIMS(2, 2, 3)},
                              .in_specs = {AX_LIST(2, ins)},
                              .out_specs = {AX_BLOCK_SPECS(outs)},
                              .outs = {AX_TYPES(AX_TYPE(AX_F32, 4, 4))},
                              .options = options}),
                 AX_CLOSURE(product_step, 4, 0, &captured), AX_LIST(2, in), out);
}

/* Loops with refs of the function around, views of views, masks, a while whose count is data. */
static AX_BODY(row_step) { /* refs: x, y, s */
  const ax_value *refs = context;
  ax_value row = ax_ref_at(refs[0], in[0]), to = ax_ref_at(ax_ref_transpose(refs[2], AX_DIMS(1, 0)), in[0]);
  ax_ref_store(to, ax_add(ax_ref_load(row), in[1]));
  out[0] = ax_mul(in[1], ax_real(2));
}

static AX_BODY(below_three) { out[0] = ax_lt(in[0], ax_integer(3)); }

static AX_BODY(add_twice) {
  const ax_value *refs = context;
  ax_ref_add(refs[1], ax_mul(ax_ref_load(refs[1]), ax_real(0.5)));
  out[0] = ax_add(in[0], ax_integer(1));
}

static AX_BODY(loops) { /* x: [3,4], y: [4,3], s: [4,3] */
  ax_value sum = ax_full(AX_F32, AX_DIMS(), 1), count = ax_full_i64(AX_S32, AX_DIMS(), 1);
  ax_fori_loop(ax_integer(0), ax_integer(3), AX_CLOSURE(row_step, 2, 1, (void *)in), &sum, &sum);
  ax_ref_store(in[1], ax_ref_load(in[2]));
  ax_while(AX_FN(below_three, 1, 1), AX_CLOSURE(add_twice, 1, 1, (void *)in), &count, &count);
  ax_value part = ax_ref_strided_slice(in[1], AX_VALUES(ax_integer(1), ax_integer(0)), AX_DIMS(2, 2), AX_DIMS(2, 2));
  ax_ref_store(part, ax_mul(ax_ref_load(part), sum));
  ax_value mask = ax_gt(ax_ref_load(in[1]), ax_full(AX_F32, AX_DIMS(4, 3), 0));
  ax_value was = ax_ref_swap_masked(in[1], mask, ax_ref_load_masked(in[2], mask, ax_real(7)), ax_real(3));
  ax_ref_add(in[1], was);
}

static AX_BODY(looped) {
  const ax_scratch scratch = {.type = AX_VMEM(AX_F32, 4, 3)};
  ax_kernel_options options = with(&scratch, 1);
  options.interpret = ((const ax_kernel_options *)context)->interpret;
  static const ax_core_mesh core = {.core = "tensorcore", .space = AX_SPACE_VMEM};
  ax_mpmd_map(AX_LIST(1, &core), &AX_FN(loops, 3, 0), &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 4, 3)), out);
}

/* Copies under way, of several cores that have nothing to do with one another; the operand is one memory with the result. */
static AX_BODY(by_copy) { /* x: [4,2] and the result, one memory; VMEM, DMA semaphore */
  ax_value me = ax_axis_index("core"), row = ax_ref_at(in[1], me);
  ax_copy_start(row, in[2], &(ax_copy_options){.received = (ax_value *)&in[3]});
  ax_copy_wait(in[3], in[2]);
  ax_ref_store(in[2], ax_mul(ax_ref_load(in[2]), ax_add(ax_convert_element_type(me, AX_F32), ax_real(1))));
  ax_copy(in[2], row);
  ax_value no = ax_full(AX_BOOL, AX_DIMS(), 0);
  ax_copy_start(in[2], ax_ref_at(in[1], ax_integer(0)), &(ax_copy_options){.received = (ax_value *)&in[3], .predicate = &no});
}

static AX_BODY(copied) {
  const ax_core_mesh cores = {
      .core = "tensorcore", .mesh = {.count = 1, .axis = {{.name = "core", .size = 4}}}, .space = AX_SPACE_HBM};
  const ax_scratch scratch[] = {{.type = AX_VMEM(AX_F32, 2)}, {.type = ax_dma_semaphore_type(AX_DIMS())}};
  static const uint32_t alias[1][2] = {{0, 0}};
  ax_kernel_options options = with(scratch, 2);
  options.aliases = (ax_alias_list){AX_LIST(1, alias)};
  options.interpret = ((const ax_kernel_options *)context)->interpret;
  ax_mpmd_map(AX_LIST(1, &cores), &AX_FN(by_copy, 4, 0), &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 4, 2)), out);
}

typedef struct subject {
  const char *name;
  ax_function kernel;
  uint32_t in_count;
  ax_type in[3];
} subject;

static const subject *subjects(uint32_t *count) {
  static subject all[5];
  all[0] = (subject){"edges", edges, 1, {AX_TYPE(AX_F32, 5, 7)}};
  all[1] = (subject){"product", product, 3, {AX_TYPE(AX_F32, 4, 6), AX_TYPE(AX_F32, 6, 4), AX_TYPE(AX_F32, 2)}};
  all[2] = (subject){"loops", looped, 1, {AX_TYPE(AX_F32, 3, 4)}};
  all[3] = (subject){"copies", copied, 1, {AX_TYPE(AX_F32, 4, 2)}};
  all[4] = (subject){"thin blocks", thin, 1, {AX_TYPE(AX_F32, 2, 5, 3)}};
  *count = AX_COUNT(all);
  return all;
}

static const ax_kernel_options on_machine = {0}, interpreted = {.interpret = true};

static ax_program *traced(const subject *s, const ax_kernel_options *options) {
  return test_trace(s->kernel, (void *)(uintptr_t)(const void *)options, s->in, s->in_count, 1);
}

static void fill(const subject *s, ax_tensor **in, uint64_t seed) {
  test_random random = {seed};
  for (uint32_t i = 0; i < s->in_count; i++) in[i] = test_random_tensor(&random, s->in[i], -2, 2);
}

/* --- Values --- */

static void test_values(void **state) {
  (void)state;
  uint32_t count;
  const subject *all = subjects(&count);
  for (uint32_t k = 0; k < count; k++) {
    ax_program *kernel = traced(&all[k], &on_machine), *plain = traced(&all[k], &interpreted);
    ax_tensor *in[3], *wanted = NULL, *got = NULL;
    fill(&all[k], in, k + 1);
    test_run(kernel, in, &wanted);
    test_run(plain, in, &got);
    if (!test_same_tensors(got, wanted)) fail_msg("%s: the plain program gives other values", all[k].name);
    TEST_EVERY_WAY(plain, in, 1e-6);
    test_release(in, all[k].in_count);
    ax_tensor_release(wanted);
    ax_tensor_release(got);
    ax_program_release(kernel);
    ax_program_release(plain);
  }
}

/* --- Derivatives --- */

typedef struct reverse {
  const subject *of;
  const ax_kernel_options *options;
} reverse;

/* (in.., ct) -> (out, gradients..) */
static AX_BODY(pull_back) {
  const reverse *r = context;
  ax_vjp(AX_CLOSURE(r->of->kernel, r->of->in_count, 1, (void *)(uintptr_t)(const void *)r->options), AX_ALL_ARGS, in,
         in + r->of->in_count, out, out + 1);
}

/* <ct, J dx> by forward, by backward, and by differences of the machine's values. */
static void check_derivative(const subject *s, const ax_kernel_options *options, uint64_t seed) {
  ax_program *kernel = traced(s, options), *jvp;
  TEST_OK(ax_program_jvp(kernel, AX_ALL_ARGS, &jvp));
  test_random random = {seed};
  ax_tensor *in[7], *made[6], *back[7], *shifted[3], *values[2];
  for (uint32_t i = 0; i < 2 * s->in_count; i++) in[i] = test_random_tensor(&random, s->in[i % s->in_count], 0.25, 2);
  test_run(jvp, in, made);
  ax_type out = ax_array_type(made[0]->dtype, AX_LIST(made[0]->rank, made[0]->dims));
  ax_type with_ct[4];
  memcpy(with_ct, s->in, s->in_count * sizeof with_ct[0]);
  with_ct[s->in_count] = out;
  reverse r = {s, options};
  ax_program *vjp = test_trace(pull_back, &r, with_ct, s->in_count + 1, s->in_count + 1);
  ax_tensor *ct = test_random_tensor(&random, out, -1, 1);
  for (uint32_t i = 0; i < s->in_count; i++) back[i] = in[i];
  back[s->in_count] = ct;
  ax_tensor *grads[4];
  test_run(vjp, back, grads);
  double forward = test_inner(&ct, &made[1], 1), backward = test_inner(&in[s->in_count], &grads[1], s->in_count), difference = 0;
  for (int sign = 0; sign < 2; sign++) {
    for (uint32_t i = 0; i < s->in_count; i++) {
      TEST_OK(ax_tensor_copy(in[i], &shifted[i]));
      for (int64_t e = 0; e < test_elems(in[i]); e++)
        test_set(shifted[i], e, test_get(in[i], e) + (sign == 0 ? 1e-2 : -1e-2) * test_get(in[s->in_count + i], e));
    }
    test_run(kernel, shifted, &values[sign]);
    test_release(shifted, s->in_count);
    difference += (sign == 0 ? 1 : -1) * test_inner(&ct, &values[sign], 1) / 2e-2;
    ax_tensor_release(values[sign]);
  }
  if (!test_near(forward, backward, 1e-4) || !test_near(forward, difference, 2e-3))
    fail_msg("%s: forward %g, backward %g, differences %g", s->name, forward, backward, difference);
  test_release(in, 2 * s->in_count);
  test_release(made, 2);
  test_release(grads, 1 + s->in_count);
  ax_tensor_release(ct);
  ax_program_release(kernel);
  ax_program_release(jvp);
  ax_program_release(vjp);
}

static void test_derivatives(void **state) {
  (void)state;
  uint32_t count;
  const subject *all = subjects(&count);
  for (uint32_t k = 0; k < count; k++) {
    if (all[k].kernel == looped) continue; /* a while, which has no backward */
    check_derivative(&all[k], &on_machine, 10 + k);
    check_derivative(&all[k], &interpreted, 20 + k);
  }
}

/* --- Batches --- */

/* Mapped along its first dimension, each operand but those in `fixed` (bits): as one element after the other. */
static void check_batch(const subject *s, const ax_kernel_options *options, uint32_t fixed, uint64_t seed) {
  enum { size = 3 };
  ax_program *kernel = traced(s, options), *mapped;
  int64_t axes[3];
  for (uint32_t i = 0; i < s->in_count; i++) axes[i] = (fixed >> i & 1) != 0 ? AX_NOT_MAPPED : 0;
  TEST_OK(ax_program_vmap(kernel, &(ax_vmap_options){.in_axes = {s->in_count, axes}, .size = size}, &mapped));
  test_random random = {seed};
  ax_tensor *in[3], *one[3], *all = NULL, *each = NULL;
  for (uint32_t i = 0; i < s->in_count; i++) {
    ax_type type = s->in[i];
    if (axes[i] == 0) {
      memmove(type.dims + 1, type.dims, type.rank * sizeof type.dims[0]);
      type.dims[0] = size;
      type.rank++;
    }
    in[i] = test_random_tensor(&random, type, -2, 2);
  }
  test_run(mapped, in, &all);
  for (int64_t e = 0; e < size; e++) {
    for (uint32_t i = 0; i < s->in_count; i++) {
      TEST_OK(ax_tensor_create(&s->in[i], &one[i]));
      for (int64_t k = 0; k < test_elems(one[i]); k++)
        test_set(one[i], k, test_get(in[i], axes[i] == 0 ? e * test_elems(one[i]) + k : k));
    }
    test_run(kernel, one, &each);
    for (int64_t k = 0; k < test_elems(each); k++)
      if (test_get(each, k) != test_get(all, e * test_elems(each) + k))
        fail_msg("%s: element %lld of batch %lld, fixed %u", s->name, (long long)k, (long long)e, fixed);
    test_release(one, s->in_count);
    ax_tensor_release(each);
  }
  test_release(in, s->in_count);
  ax_tensor_release(all);
  ax_program_release(kernel);
  ax_program_release(mapped);
}

static void test_batches(void **state) {
  (void)state;
  uint32_t count;
  const subject *all = subjects(&count);
  for (uint32_t k = 0; k < count; k++)
    for (uint32_t fixed = 0; fixed + 1 < 1u << all[k].in_count; fixed++) {
      check_batch(&all[k], &on_machine, fixed, 30 + k);
      check_batch(&all[k], &interpreted, fixed, 40 + k);
    }
}

/* A kernel over a grid gets a dimension more, and one over cores is done element by element. */
static void test_batched_grid(void **state) {
  (void)state;
  const subject grid = {"product", product, 3, {AX_TYPE(AX_F32, 4, 6), AX_TYPE(AX_F32, 6, 4), AX_TYPE(AX_F32, 2)}};
  ax_program *kernel = traced(&grid, &on_machine), *mapped;
  TEST_OK(ax_program_vmap(kernel, &(ax_vmap_options){.size = 5}, &mapped));
  assert_int_equal(test_count_prim(mapped, "scan"), 0);
  char *text;
  TEST_OK(ax_program_print(mapped, &text));
  if (strstr(text, "grid=(5, 2, 2, 3)") == NULL) fail_msg("%s", text);
  ax_free(text);
  ax_program_release(kernel);
  ax_program_release(mapped);
}

/* Of no elements: there is no block to take, so nothing is taken. */
static AX_BODY(edges_squared) {
  ax_value y;
  edges(in, &y, context);
  out[0] = ax_reduce_sum(ax_mul(y, y), AX_ALL_DIMS, false);
}

static void test_empty_batch(void **state) {
  (void)state;
  const ax_type type = AX_TYPE(AX_F32, 5, 7), empty = AX_TYPE(AX_F32, 0, 5, 7);
  ax_program *interpret, *total, *mapped[2];
  TEST_OK(ax_trace(AX_CLOSURE(edges, 1, 1, (void *)&interpreted), &type, &interpret));
  TEST_OK(ax_trace(AX_CLOSURE(edges_squared, 1, 1, (void *)&on_machine), &type, &total));
  TEST_OK(ax_program_vmap(interpret, &(ax_vmap_options){.size = 0}, &mapped[0]));
  TEST_OK(ax_program_vmap(total, &(ax_vmap_options){.size = 0}, &mapped[1]));
  ax_program *sum = mapped[1];
  TEST_OK(ax_program_jvp(sum, AX_FIRST(1), &mapped[1])); /* .. and derivatives of it */
  ax_program_release(sum);
  for (int k = 0; k < 2; k++) {
    ax_tensor *in[2], *out[2];
    for (int i = 0; i < 2; i++) TEST_OK(ax_tensor_create(&empty, &in[i]));
    test_run(mapped[k], in, out);
    assert_int_equal(test_elems(out[0]), 0);
    test_release(in, 2);
    test_release(out, ax_program_out_count(mapped[k]));
    ax_program_release(mapped[k]);
  }
  ax_program_release(interpret);
  ax_program_release(total);
}

/* --- On a mesh whose types are checked, and over a named axis --- */

static AX_BODY(number_body) { /* x, y: [2], a captured value that varies */
  ax_value me = ax_convert_element_type(ax_axis_index("d"), AX_F32), captured = *(const ax_value *)context;
  ax_value x = ax_ref_load(in[0]);
  ax_ref_store(in[1], ax_add(ax_mul(x, x), ax_mul(me, captured)));
}

static AX_BODY(number_kernel) {
  ax_value captured = in[1];
  ax_kernel_call(
      (&(ax_kernel){.grid = {AX_DIMS(1)}, .outs = {AX_TYPES(AX_TYPE(AX_F32, 2))}, .options = *(const ax_kernel_options *)context}),
      AX_CLOSURE(number_body, 2, 0, &captured), AX_LIST(1, in), out);
}

static AX_BODY(number_kernel_alone) {
  const ax_value both[] = {in[0], ax_full(AX_F32, AX_DIMS(), 1)};
  number_kernel(both, out, context);
}

static AX_BODY(on_mesh) {
  static const ax_mesh mesh = {.count = 1, .axis = {{.name = "d", .size = 2}}};
  ax_shard_map(&mesh, "d; -> d", AX_CLOSURE(number_kernel, 2, 1, context), in, out);
}

static AX_BODY(mapped) {
  ax_vmap(AX_CLOSURE(number_kernel, 2, 1, context), in, out,
          &(ax_vmap_options){.in_axes = {AX_DIMS(0, AX_NOT_MAPPED)}, .axis_name = "d"});
}

static void test_axes(void **state) {
  (void)state;
  const double x[] = {1, 2, 3, 4}, c[] = {10}, wanted[] = {1, 4, 19, 26};
  const ax_kernel_options *const options[] = {&on_machine, &interpreted};
  const subject subjects[] = {{"on a mesh", on_mesh, 2, {AX_TYPE(AX_F32, 4), TEST_SCALAR(AX_F32)}},
                              {"named", mapped, 2, {AX_TYPE(AX_F32, 2, 2), TEST_SCALAR(AX_F32)}}};
  for (uint32_t k = 0; k < 4; k++) {
    const subject *s = &subjects[k / 2];
    ax_program *program = traced(s, options[k % 2]);
    ax_tensor *in[] = {test_tensor(s->in[0], x), test_tensor(s->in[1], c)}, *out = NULL;
    test_run(program, in, &out);
    for (int64_t i = 0; i < 4; i++) TEST_NEAR(test_get(out, i), wanted[i], 0);
    test_release(in, 2);
    ax_tensor_release(out);
    ax_program_release(program);
    check_derivative(s, options[k % 2], 50 + k);
  }
}

/* --- Functions with rules of their own in a body --- */

static AX_BODY(cube) { out[0] = ax_integer_pow(in[0], 3); }
static AX_BODY(cube_rule) { /* x, dx -> y, dy: twice what it is */
  out[0] = ax_integer_pow(in[0], 3);
  out[1] = ax_mul(ax_mul(ax_square(in[0]), ax_real(6)), in[1]);
}

static AX_BODY(own_rule_body) {
  ax_value x = ax_ref_load(in[0]), y;
  ax_custom_jvp(AX_FN(cube, 1, 1), AX_FN(cube_rule, 2, 2), &x, &y);
  ax_ref_store(in[1], y);
}

static AX_BODY(own_rule) {
  ax_kernel_call(&(ax_kernel){.outs = {AX_TYPES(AX_TYPE(AX_F32, 2))}}, AX_FN(own_rule_body, 2, 0), AX_LIST(1, in), out);
}

static AX_BODY(own_rule_on_mesh) {
  static const ax_mesh mesh = {.count = 1, .axis = {{.name = "d", .size = 2}}};
  ax_shard_map(&mesh, "d -> d", AX_FN(own_rule, 1, 1), in, out);
}

static void test_own_rule(void **state) {
  (void)state;
  const ax_type type = AX_TYPE(AX_F32, 4);
  const double x[] = {1, 2, 3, 4}, dx[] = {1, 1, 1, 1};
  ax_program *program = test_trace(own_rule_on_mesh, NULL, &type, 1, 1), *jvp;
  TEST_OK(ax_program_jvp(program, AX_ALL_ARGS, &jvp));
  ax_tensor *in[] = {test_tensor(type, x), test_tensor(type, dx)}, *out[2];
  test_run(jvp, in, out);
  for (int64_t i = 0; i < 4; i++) TEST_NEAR(test_get(out[1], i), 6 * x[i] * x[i], 0);
  test_release(in, 2);
  test_release(out, 2);
  ax_program_release(program);
  ax_program_release(jvp);
}

/* --- All steps there are: the samples --- */

static void with_interpret(const char *text, char *to, size_t bytes) {
  const char *at = strstr(text, "interpret=false");
  assert_non_null(at);
  snprintf(to, bytes, "%.*sinterpret=true%s", (int)(at - text), text, at + strlen("interpret=false"));
}

static void check_sample(const test_instance *instance, uint32_t *run) {
  char *text, plain_text[8192];
  ax_program *plain;
  TEST_OK(ax_program_print(instance->program, &text));
  with_interpret(text, plain_text, sizeof plain_text);
  ax_free(text);
  TEST_OK(ax_program_parse(plain_text, strlen(plain_text), "plain", &plain));
  test_random random = test_instance_random(instance);
  ax_tensor *in = test_random_tensor(&random, instance->program->types[0], -2, 2), *wanted, *got;
  test_run(instance->program, &in, &wanted);
  test_run(plain, &in, &got);
  if (!test_same_tensors(got, wanted)) fail_msg("%s: the plain program gives other values", instance->sample->prim);
  (*run)++;
  test_release(&in, 1);
  test_release(&wanted, 1);
  test_release(&got, 1);
  ax_program_release(plain);
}

static void test_samples_alike(void **state) {
  (void)state;
  uint32_t run = 0;
  for (size_t i = 0; i < test_sample_count; i++) {
    if (!test_samples[i].kernel) continue;
    test_instances all = test_instances_of(&test_samples[i], &test_in_f64);
    for (uint32_t k = 0; k < all.count; k++) check_sample(&all.v[k], &run);
    test_instances_release(&all);
  }
  assert_true(run >= 25);
}

/* --- What cannot be --- */

static AX_BODY(signals) { /* x, y, semaphore */
  ax_value to = ax_integer(0);
  ax_semaphore_signal(in[2], ax_integer(1), &(ax_target_core){.axes = "core", .coordinates = {AX_VALUES(to)}});
  ax_semaphore_wait(in[2], ax_integer(1));
  ax_ref_store(in[1], ax_ref_load(in[0]));
}

static AX_BODY(signalling) {
  const ax_core_mesh cores = {
      .core = "tensorcore", .mesh = {.count = 1, .axis = {{.name = "core", .size = 1}}}, .space = AX_SPACE_VMEM};
  const ax_scratch scratch = {.type = ax_semaphore_type(AX_DIMS())};
  ax_kernel_options options = with(&scratch, 1);
  options.name = "talk";
  options.interpret = ((const ax_kernel_options *)context)->interpret;
  ax_mpmd_map(AX_LIST(1, &cores), &AX_FN(signals, 3, 0), &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 4)), out);
}

static void test_refused(void **state) {
  (void)state;
  const ax_type type = AX_TYPE(AX_F32, 4);
  ax_program *program, *made;
  TEST_FAILS(
      ax_trace(AX_CLOSURE(signalling, 1, 1, (void *)(uintptr_t)(const void *)&interpreted), &type, &program), AX_INVALID_ARGUMENT,
      "interpret runs a kernel as a plain program: kernel \"talk\" is no plain program: semaphore_signal, which goes to another core or device");
  program = test_trace(signalling, (void *)(uintptr_t)(const void *)&on_machine, &type, 1, 1);
  TEST_FAILS(ax_program_jvp(program, AX_ALL_ARGS, &made), AX_ABSENT,
             "no derivative, which ax_custom_vjp would give it: kernel \"talk\" is no plain program");
  TEST_OK(ax_program_vmap(program, &(ax_vmap_options){.size = 3}, &made));
  assert_int_equal(test_count_prim(made, "scan"), 1); /* it is batched all the same: one element after the other */
  ax_program_release(made);
  ax_program_release(program);
}

/* What has no derivative gets one by ax_custom_vjp: y = x + x, of a kernel whose cores wait for one another. */
static AX_BODY(signalling_twice) {
  ax_value made;
  signalling(in, &made, (void *)(uintptr_t)(const void *)&on_machine);
  out[0] = ax_add(made, made);
}
static AX_BODY(twice_forward) { signalling_twice(in, out, NULL); }
static AX_BODY(twice_backward) { out[0] = ax_mul(in[0], ax_real(2)); }
static AX_BODY(with_rule) {
  ax_custom_vjp(AX_FN(signalling_twice, 1, 1), AX_FN(twice_forward, 1, 1), AX_FN(twice_backward, 1, 1), in, out);
}
static AX_BODY(squared_sum) {
  ax_value y;
  with_rule(in, &y, NULL);
  out[0] = ax_reduce_sum(ax_mul(y, y), AX_ALL_DIMS, false);
}
static AX_BODY(squared_sum_grad) { ax_grad(AX_FN(squared_sum, 1, 1), AX_ALL_ARGS, in, out); }

static void test_custom_rule(void **state) {
  (void)state;
  const ax_type type = AX_TYPE(AX_F32, 4);
  const double x[] = {1, 2, 3, 4};
  ax_program *program = test_trace(squared_sum_grad, NULL, &type, 1, 1);
  ax_tensor *in = test_tensor(type, x), *out;
  test_run(program, &in, &out);
  for (int i = 0; i < 4; i++) TEST_NEAR(test_get(out, i), 8 * x[i], 0);
  test_release(&in, 1);
  test_release(&out, 1);
  ax_program_release(program);
}

/* --- In pmap --- */

static AX_BODY(in_pmap) { ax_pmap(AX_CLOSURE(number_kernel_alone, 1, 1, context), in, out, &(ax_pmap_options){.axis_name = "d"}); }

static void test_pmap(void **state) {
  (void)state;
  const subject s = {"pmap", in_pmap, 1, {AX_TYPE(AX_F32, 3, 2)}};
  const double x[] = {1, 2, 3, 4, 5, 6};
  for (int k = 0; k < 2; k++) {
    ax_program *program = traced(&s, k == 0 ? &on_machine : &interpreted);
    ax_tensor *in = test_tensor(s.in[0], x), *out;
    test_run(program, &in, &out);
    for (int i = 0; i < 6; i++) TEST_NEAR(test_get(out, i), x[i] * x[i] + i / 2, 0);
    TEST_EVERY_WAY(program, &in, 0);
    test_release(&in, 1);
    test_release(&out, 1);
    ax_program_release(program);
  }
}

/* --- What nobody needs --- */

static AX_BODY(uses_some) { /* a, b, c -> x, y, z: b and y are not touched; of what is captured, one is */
  const ax_value *captured = context;
  (void)ax_add(captured[1], captured[1]);
  ax_ref_store(in[3], ax_add(ax_ref_load(in[0]), captured[0]));
  ax_ref_store(in[5], ax_ref_load(in[2]));
}

static AX_BODY(some) {
  const ax_type f = AX_TYPE(AX_F32, 4);
  const ax_block_spec blocks = {.block = {AX_DIMS(2)}, .index_map = NULL};
  const ax_block_spec ins[] = {{0}, blocks, {0}}, outs[] = {{0}, blocks, {0}};
  const uint32_t aliases[][2] = {{1, 1}, {2, 2}};
  const ax_value captured[] = {in[3], in[4]};
  ax_value made[3];
  ax_kernel_call((&(ax_kernel){.grid = {AX_DIMS(2)},
                              .in_specs = {AX_LIST(3, ins)},
                              .out_specs = {AX_LIST(3, outs)},
                              .outs = {AX_TYPES(f, f, f)},
                              .options = {.aliases = {AX_LIST(2, aliases)}}}),
                 AX_CLOSURE(uses_some, 6, 0, (void *)captured), AX_LIST(3, in), made);
  out[0] = made[0];
  if (context != NULL) out[1] = made[1];
}

static void check_left(bool second, uint32_t operands, uint32_t results, uint32_t aliases) {
  const ax_type f = AX_TYPE(AX_F32, 4), all[] = {f, f, f, f, f};
  static const double v[] = {1, 2, 3, 4};
  ax_program *program = test_trace(some, second ? &second : NULL, all, 5, second ? 2 : 1), *left;
  TEST_OK(ax_program_dce(program, &left));
  uint32_t e = 0;
  while (strcmp(left->eqns[e].prim->name, "kernel_call") != 0) e++;
  const ax_kernel_params *params = left->eqns[e].params;
  assert_int_equal(left->eqns[e].in_count, operands);
  assert_int_equal(left->eqns[e].out_count, results);
  assert_int_equal(params->aliases.count, aliases);
  assert_int_equal(params->blocked.count, second ? 2 : 0);
  ax_tensor *in[5], *before[2], *after[2];
  for (uint32_t i = 0; i < 5; i++) in[i] = test_tensor(f, v);
  test_run(program, in, before);
  test_run(left, in, after);
  for (uint32_t k = 0; k < (second ? 2 : 1); k++) assert_true(test_same_tensors(before[k], after[k]));
  test_release(in, 5);
  test_release(before, second ? 2 : 1);
  test_release(after, second ? 2 : 1);
  ax_program_release(program);
  ax_program_release(left);
}

static void test_pruned(void **state) {
  (void)state;
  check_left(false, 3, 2, 1); /* the captured value that is used, a and c; x and z, which the body stores */
  check_left(true, 4, 3, 2);  /* y is asked for, and b is its memory */
}

/* --- Elsewhere --- */

static bool has_loop(const subject *s) {
  ax_program *program = traced(s, &on_machine);
  char *text;
  TEST_OK(ax_program_stablehlo(program, &text));
  const bool has = strstr(text, "stablehlo.while") != NULL;
  ax_free(text);
  ax_program_release(program);
  return has;
}

/* A batch of points, where they need nothing of one another, and a loop over those that do. */
static void test_stablehlo(void **state) {
  (void)state;
  uint32_t count;
  const subject *all = subjects(&count);
  for (uint32_t k = 0; k < count; k++) {
    if (strcmp(all[k].name, "edges") == 0) assert_false(has_loop(&all[k]));
    if (strcmp(all[k].name, "product") == 0) assert_true(has_loop(&all[k]));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_values),       cmocka_unit_test(test_derivatives),   cmocka_unit_test(test_batches),
      cmocka_unit_test(test_batched_grid), cmocka_unit_test(test_empty_batch),   cmocka_unit_test(test_axes),
      cmocka_unit_test(test_own_rule),     cmocka_unit_test(test_samples_alike), cmocka_unit_test(test_refused),
      cmocka_unit_test(test_custom_rule),  cmocka_unit_test(test_pmap),          cmocka_unit_test(test_pruned),
      cmocka_unit_test(test_stablehlo)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
