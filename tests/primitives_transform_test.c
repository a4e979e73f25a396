/* The walk over the table of primitives: derivatives and batches, compiled and on their meshes, give what reference
   evaluation gives. Programs of one mesh are compiled as one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/program.h"
#include "support/cmocka.h"
#include "support/lanes.h"
#include "support/run.h"
#include "support/sample.h"

typedef struct member {
  test_instance instance; /* program: a transform of the sample */
  ax_program *whole;
} member;

typedef struct pool { /* of one mesh */
  char mesh[64];      /* its text, or as much of it as tells it from others */
  member *members;
  uint32_t count;
} pool;
static pool pools[64];
static uint32_t pool_count;

static const char *mesh_of(const test_instance *instance) {
  bool has_mesh = strcmp(instance->sample->prim, "shard_map") == 0;
  return has_mesh ? strstr(instance->sample->text, "mesh=") : instance->axes;
}

static pool *pool_of(const test_instance *instance) {
  const char *mesh = mesh_of(instance);
  for (uint32_t i = 0; i < pool_count; i++)
    if (strncmp(pools[i].mesh, mesh, sizeof pools[i].mesh - 1) == 0) return &pools[i];
  assert_true(pool_count < AX_COUNT(pools));
  snprintf(pools[pool_count].mesh, sizeof pools[0].mesh, "%.63s", mesh);
  return &pools[pool_count++];
}

/* Takes over the program. */
static void add(const test_instance *instance, ax_program *program) {
  pool *to = pool_of(instance);
  member member = {.instance = *instance};
  member.instance.program = program;
  TEST_OK(test_on_mesh(program, &member.whole));
  to->members = realloc(to->members, (to->count + 1) * sizeof member);
  assert_non_null(to->members);
  to->members[to->count++] = member;
}

static bool is_float(const ax_type *type) { return ax_is_float(type->dtype); }

static void add_derivatives(const test_instance *instance) {
  ax_program *jvp, *primal, *tangent, *transposed;
  uint32_t residuals, floats = 0;
  for (uint32_t i = 0; i < instance->program->in_count; i++) floats += is_float(&instance->program->types[i]);
  if (floats == 0 || instance->sample->own_derivative) return;
  TEST_OK(ax_program_jvp(instance->program, AX_ALL_ARGS, &jvp));
  add(instance, jvp);
  if (instance->sample->two_sides) return; /* no linearize rule */
  TEST_OK(ax_program_linearize(instance->program, AX_ALL_ARGS, &primal, &tangent, &residuals));
  add(instance, primal);
  bool *linear = calloc(tangent->in_count + 1, sizeof linear[0]);
  for (uint32_t i = residuals; i < tangent->in_count; i++) linear[i] = true;
  if (!instance->sample->forward_only) {
    TEST_OK(ax_program_transpose(tangent, test_args(linear, ax_program_in_count(tangent)), &transposed));
    add(instance, transposed);
  }
  free(linear);
  add(instance, tangent);
}

static void add_batch(const test_instance *instance) {
  const ax_program *program = instance->program;
  ax_program *batched;
  int64_t *axes = calloc(program->in_count + program->out_count + 1, sizeof axes[0]);
  for (uint32_t i = 0; i < program->in_count; i++) axes[i] = i % 2 == 0 ? program->types[i].rank : 0;
  const ax_vmap_options options = {
      .in_axes = {program->in_count, axes}, .out_axes = {program->out_count, axes + program->in_count}, .size = 3};
  TEST_OK(ax_program_vmap(program, &options, &batched));
  add(instance, batched);
  free(axes);
}

static void add_transforms(const test_instance *instance) {
  add_derivatives(instance);
  if (!instance->sample->no_batch) add_batch(instance);
}

static void check_member(const member *m, ax_tensor *const *in, ax_tensor *const *got) {
  ax_tensor **wanted = calloc(m->whole->out_count + 1, sizeof wanted[0]);
  test_run(m->whole, in, wanted);
  for (uint32_t k = 0; k < m->whole->out_count; k++)
    for (int64_t e = 0; e < test_elems(got[k]); e++) {
      double g = test_get(got[k], e), w = test_get(wanted[k], e);
      if (test_near(g, w, 1e-11)) continue;
      test_blame(&m->instance, "compiled: element %lld of result %u is %.17g, not %.17g", (long long)e, k, g, w);
      break;
    }
  test_release(wanted, m->whole->out_count);
  free(wanted);
}

static void run_pool(pool *p) {
  ax_program **wholes = calloc(p->count, sizeof wholes[0]), *all;
  ax_runtime *runtime;
  for (uint32_t i = 0; i < p->count; i++) wholes[i] = p->members[i].whole;
  TEST_OK(test_together(wholes, p->count, &all));
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.policy = AX_POLICY_PARALLEL, .workers = 2}, &runtime));
  ax_tensor **in = calloc(all->in_count + 1, sizeof in[0]), **got = calloc(all->out_count + 1, sizeof got[0]);
  for (uint32_t i = 0, at = 0; i < p->count; i++) {
    const test_instance *instance = &p->members[i].instance;
    test_random random = test_instance_random(instance);
    for (uint32_t k = 0; k < wholes[i]->in_count; k++)
      in[at++] =
          test_random_tensor(&random, wholes[i]->types[k], test_low(instance->sample), test_high(instance->sample));
  }
  test_execute(runtime, all, in, got);
  for (uint32_t i = 0, in_at = 0, out_at = 0; i < p->count; i++) {
    check_member(&p->members[i], in + in_at, got + out_at);
    in_at += wholes[i]->in_count, out_at += wholes[i]->out_count;
  }
  test_release(in, all->in_count);
  test_release(got, all->out_count);
  free(in), free(got), free(wholes);
  ax_program_release(all);
  ax_runtime_release(runtime);
}

static void pool_deinit(pool *p) {
  for (uint32_t i = 0; i < p->count; i++) {
    test_instance_release(&p->members[i].instance);
    ax_program_release(p->members[i].whole);
  }
  free(p->members);
}

static void transforms(void **state) {
  (void)state;
  for (size_t i = 0; i < test_sample_count; i++) {
    test_instances instances = test_instances_of(&test_samples[i], &test_in_f64);
    for (uint32_t k = 0; k < instances.count; k++) add_transforms(&instances.v[k]);
    test_instances_release(&instances);
  }
  for (uint32_t i = 0; i < pool_count; i++) run_pool(&pools[i]);
  for (uint32_t i = 0; i < pool_count; i++) pool_deinit(&pools[i]);
  test_blameless();
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(transforms)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
