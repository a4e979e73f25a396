/* The language, piece by piece: every primitive on values in a body, prints from kernels, texts of kernels that are to be looked
   at, and what is told of cost. */
#include <string.h>

#include "axle/axle.h"
#include "ir/prim.h"
#include "ir/program.h"
#include "support/cmocka.h"
#include "support/host.h"
#include "support/run.h"
#include "support/sample.h"

/* --- Every primitive on values --- */

typedef struct wrapped {
  const ax_program *program;
  bool interpret;
} wrapped;

/* (refs of operands, of results): loads all, computes, stores all. */
static AX_BODY(compute) {
  const ax_program *program = context;
  uint32_t ins = program->in_count, outs = program->out_count;
  ax_value *loaded = calloc(ins + 1, sizeof loaded[0]), *made = calloc(outs + 1, sizeof made[0]);
  for (uint32_t i = 0; i < ins; i++) loaded[i] = ax_ref_load(in[i]);
  ax_call(program, AX_LIST(ins, loaded), AX_LIST(outs, made));
  for (uint32_t k = 0; k < outs; k++) ax_ref_store(in[ins + k], made[k]);
  free(loaded), free(made);
}

static AX_BODY(in_kernel) {
  const wrapped *w = context;
  const ax_program *p = w->program;
  ax_type *outs = calloc(p->out_count + 1, sizeof outs[0]);
  for (uint32_t k = 0; k < p->out_count; k++) outs[k] = p->types[p->outs[k]];
  ax_kernel_call((&(ax_kernel){.outs = {AX_LIST(p->out_count, outs)}, .options.interpret = w->interpret}),
                 ((ax_fn){compute, p->in_count + p->out_count, 0, (void *)(uintptr_t)(const void *)p}), AX_LIST(p->in_count, in),
                 out);
  free(outs);
}

/* No calls of others, which have an order of their own, and no collectives and kernels, which do not stand in kernels. */
static bool stands_in_kernels(const test_sample *sample) {
  const ax_prim *prim = ax_prim_find(sample->prim, strlen(sample->prim));
  return sample->axes == NULL && !sample->kernel && prim->kind != AX_COLLECTIVE && strstr(sample->text, "mesh=") == NULL &&
         strstr(sample->text, "psend") == NULL && strstr(sample->text, "token") == NULL &&
         strstr(sample->text, "collective_matmul") == NULL && strstr(sample->text, "matmul_reduce_scatter") == NULL;
}

/* Kernels have no complex numbers. */
static bool has_complex_values(const ax_program *program) {
  for (uint32_t v = 0; v < program->value_count; v++)
    if (ax_is_complex(program->types[v].dtype)) return true;
  return false;
}

static void check_in_kernel(const test_instance *instance, ax_runtime *runtime) {
  const ax_program *plain = instance->program;
  test_random random = test_instance_random(instance);
  ax_tensor **in = calloc(plain->in_count + 1, sizeof in[0]), **wanted = calloc(plain->out_count + 1, sizeof wanted[0]);
  for (uint32_t i = 0; i < plain->in_count; i++)
    in[i] = test_random_tensor(&random, plain->types[i], test_low(instance->sample), test_high(instance->sample));
  test_run(plain, in, wanted);
  for (int way = 0; way < 3; way++) { /* the machine; the executor; interpreted */
    const wrapped w = {plain, way == 2};
    ax_program *program;
    ax_tensor **got = calloc(plain->out_count + 1, sizeof got[0]);
    if (test_passes(instance, "in a kernel",
                    ax_trace(((ax_fn){in_kernel, plain->in_count, plain->out_count, (void *)(uintptr_t)(const void *)&w}),
                             plain->types, &program))) {
      if (way == 0)
        test_run(program, in, got);
      else
        test_execute(runtime, program, in, got);
      for (uint32_t k = 0; k < plain->out_count; k++)
        for (int64_t e = 0; e < test_elems(got[k]); e++)
          if (!test_near(test_get(got[k], e), test_get(wanted[k], e), way == 0 ? 0 : 1e-10)) {
            test_blame(instance, "in a kernel, way %d: element %lld of result %u is %.17g, not %.17g", way, (long long)e, k,
                       test_get(got[k], e), test_get(wanted[k], e));
            break;
          }
      test_release(got, plain->out_count);
      ax_program_release(program);
    }
    free(got);
  }
  test_release(in, plain->in_count);
  test_release(wanted, plain->out_count);
  free(in), free(wanted);
}

static void test_primitives(void **state) {
  (void)state;
  ax_runtime *runtime;
  uint32_t prims = 0;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 2}, &runtime));
  for (size_t i = 0; i < test_sample_count; i++) {
    if (!stands_in_kernels(&test_samples[i])) continue;
    test_instances all = test_instances_of(&test_samples[i], &test_in_f64);
    for (uint32_t k = 0; k < all.count; k++)
      if (!has_complex_values(all.v[k].program)) check_in_kernel(&all.v[k], runtime);
    prims += i == 0 || strcmp(test_samples[i].prim, test_samples[i - 1].prim) != 0;
    test_instances_release(&all);
  }
  ax_runtime_release(runtime);
  test_blameless();
  assert_true(prims > 90);
}

/* --- Prints --- */

static AX_BODY(say) {
  ax_value i = ax_program_id(0), x = ax_ref_load(in[0]);
  ax_debug_print("point {}: {}", false, AX_VALUES(i, x));
  ax_ref_store(in[1], ax_neg(x));
}

static AX_BODY(first) { out[0] = in[0]; }

static AX_BODY(talking) {
  const ax_kernel_options *options = context;
  const ax_block_spec spec = {.block = {AX_DIMS(2)}, .index_map = first};
  ax_kernel_call((&(ax_kernel){.grid = {AX_DIMS(2)},
                               .in_specs = {AX_BLOCK_SPECS(spec)},
                               .out_specs = {AX_BLOCK_SPECS(spec)},
                               .outs = {AX_TYPES(AX_TYPE(AX_F32, 4))},
                               .options = *options}),
                 AX_FN(say, 2, 0), AX_LIST(1, in), out);
}

static void write_down(const char *text, void *log) {
  test_log *l = log;
  pthread_mutex_lock(&l->lock);
  ax_text_add(&l->text, "%s", text);
  pthread_mutex_unlock(&l->lock);
}

/* Both ways of running it say so; and what is to be looked at is printed when it is compiled. */
static void check_says(const ax_kernel_options *options, bool looked_at) {
  const ax_type type = AX_TYPE(AX_F32, 4);
  ax_program *program = test_trace(talking, (void *)(uintptr_t)(const void *)options, &type, 1, 1);
  for (int way = 0; way < 2; way++) {
    test_log log;
    test_log_begin(&log);
    ax_tensor *in = test_tensor(type, (const double[]){1, 2, 3, 4}), *out = NULL;
    if (way == 0) {
      TEST_OK(ax_evaluate_on(&(ax_hooks){.print = write_down, .print_context = &log}, program, &in, &out));
    } else {
      ax_runtime *runtime;
      TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 1, .print = write_down, .print_context = &log}, &runtime));
      test_execute(runtime, program, &in, &out);
      ax_runtime_release(runtime);
    }
    const char *text = test_log_text(&log);
    if (way == 1 && looked_at) {
      if (strncmp(text, "kernel \"chatty\" on core:\n{", 25) != 0) fail_msg("%s", text);
      text = strstr(text, "point 0");
      assert_non_null(text);
    }
    if (strcmp(text, "point 0: [1.0, 2.0]\npoint 1: [3.0, 4.0]\n") != 0 && strcmp(text, "point 0: [1 2]\npoint 1: [3 4]\n") != 0)
      fail_msg("way %d: %s", way, text);
    TEST_NEAR(test_get(out, 3), -4, 0);
    test_log_end(&log);
    test_release(&in, 1);
    test_release(&out, 1);
  }
  ax_program_release(program);
}

static void test_prints(void **state) {
  (void)state;
  check_says(&(ax_kernel_options){.name = "chatty"}, false);
  check_says(&(ax_kernel_options){.name = "chatty", .debug = true}, true);
  check_says(&(ax_kernel_options){.name = "chatty", .interpret = true}, false);
}

/* --- Cost --- */

static void expect_cost(const ax_kernel_options *options, double flops, double bytes) {
  const ax_type type = AX_TYPE(AX_F32, 4);
  ax_program *program = test_trace(talking, (void *)(uintptr_t)(const void *)options, &type, 1, 1);
  ax_cost cost;
  TEST_OK(ax_program_cost(program, &cost));
  TEST_NEAR(cost.flops, flops, 0);
  if (bytes > 0) TEST_NEAR(cost.bytes, bytes, 0);
  ax_cost_release(&cost);
  ax_program_release(program);
}

static void test_cost(void **state) {
  (void)state;
  expect_cost(&(ax_kernel_options){0}, 4, 0); /* two points, of two negations each */
  expect_cost(&(ax_kernel_options){.flops = 1000, .bytes = 64}, 1000, 64);
}

/* --- Where results are --- */

static AX_BODY(negate) { ax_ref_store(in[1], ax_neg(ax_ref_load(in[0]))); }
static AX_BODY(in_vmem) {
  static const ax_core_mesh core = {.core = "tensorcore"};
  const ax_type result = AX_VMEM(AX_F32, 4);
  ax_mpmd_map(AX_LIST(1, &core), &AX_FN(negate, 2, 0),
              (&(ax_kernel_options){.metadata = "made=here", .compiler_params = "fast=yes"}), AX_LIST(1, in), AX_LIST(1, &result),
              out);
}

/* Outside it is an array like others. */
static void test_result_space(void **state) {
  (void)state;
  const ax_type type = AX_TYPE(AX_F32, 4);
  ax_program *program = test_trace(in_vmem, NULL, &type, 1, 1);
  char *text;
  TEST_OK(ax_program_print(program, &text));
  if (strstr(text, "blocks=(ref<f32[4] any>, ref<f32[4] vmem>)") == NULL || strstr(text, "metadata=\"made=here\"") == NULL ||
      strstr(text, "compiler_params=\"fast=yes\"") == NULL)
    fail_msg("%s", text);
  ax_free(text);
  assert_int_equal(ax_program_out_type(program, 0)->form, AX_ARRAY);
  ax_tensor *in = test_tensor(type, (const double[]){1, 2, 3, 4}), *out;
  test_run(program, &in, &out);
  TEST_NEAR(test_get(out, 2), -3, 0);
  test_release(&in, 1);
  test_release(&out, 1);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_primitives), cmocka_unit_test(test_prints), cmocka_unit_test(test_cost),
                                     cmocka_unit_test(test_result_space)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
