/* The walk over the table of primitives: what is linear does as much on the parts of a sum as on the sum, its other operands being
   reduced; so do its tangents, its gradients and its batches. The sums are made after the operation (`late`) or before. */
#include <string.h>

#include "axle/collectives.h"
#include "ir/prim.h"
#include "prim/bind.h"
#include "support/cmocka.h"
#include "support/compare.h"
#include "support/run.h"

enum { devices = 2, rows = 3, most = 8 };

typedef struct trial {
  const ax_program *program;
  const bool *linear; /* by input */
  bool late, batched;
} trial;

static void once(const ax_value *in, ax_value *out, void *context) {
  const ax_program *program = ((const trial *)context)->program;
  ax_call(program, in, out);
}

/* Operands that are parts come with a dimension in front for the devices. */
static ax_value operand(const trial *t, uint32_t i, ax_value x) {
  if (!t->linear[i]) return t->late ? ax_preduced(x, "d") : x;
  ax_type type = ax_typeof(x);
  if (type.dtype == AX_NO_DTYPE) return x;
  x = ax_reshape(x, AX_LIST(type.rank - 1, type.dims + 1));
  return t->late ? ax_vary_unreduced_cast(x, "d", AX_UNREDUCED_SUM) : ax_psum(x, "d");
}

static ax_value result(ax_value y) {
  ax_spread on = ax_typeof(y).spread;
  return on.unreduced != 0 ? ax_unreduced_psum(y, "d") : on.reduced != 0 ? ax_pcast(y, "d", "invariant") : y;
}

static void on_device(const ax_value *in, ax_value *out, void *context) {
  const trial *t = context;
  ax_value operands[most], made[most];
  for (uint32_t i = 0; i < t->program->in_count; i++) operands[i] = operand(t, i, in[i]);
  ax_fn f = AX_CLOSURE(once, t->program->in_count, t->program->out_count, context);
  if (t->batched) ax_vmap(f, operands, made, NULL);
  else f.function(operands, made, f.context);
  for (uint32_t k = 0; k < t->program->out_count; k++) out[k] = result(made[k]);
}

static void on_mesh(const ax_value *in, ax_value *out, void *context) {
  const trial *t = context;
  ax_mesh mesh;
  char specs[most * 4 + 8] = "";
  TEST_OK(ax_mesh_parse("d=2", &mesh));
  for (uint32_t i = 0; i < t->program->in_count; i++) strcat(strcat(specs, i > 0 ? ";" : ""), t->linear[i] ? "d" : "");
  ax_shard_map(&mesh, strcat(specs, " -> "), AX_CLOSURE(on_device, t->program->in_count, t->program->out_count, context), in, out);
}

/* Results weighted with numbers of both signs, so that nothing cancels. */
static void loss(const ax_value *in, ax_value *out, void *context) {
  const trial *t = context;
  ax_value made[most];
  on_mesh(in, made, context);
  out[0] = ax_full(AX_F64, AX_DIMS(), 0);
  for (uint32_t k = 0; k < t->program->out_count; k++) {
    ax_type type = ax_typeof(made[k]);
    if (!ax_is_differentiable(type.dtype)) continue;
    ax_value place =
        type.rank > 0 ? ax_iota(type.dtype, AX_LIST(type.rank, type.dims), type.rank - 1) : ax_full(type.dtype, AX_DIMS(), 0);
    out[0] = ax_add(out[0], ax_reduce_sum(ax_mul(made[k], ax_sub(place, ax_real(0.7))), AX_ALL_DIMS, false));
  }
}

/* The loss, its gradient by what is linear, and its tangent. */
typedef struct chosen {
  const trial *t;
  uint32_t by[most], count;
} chosen;

static void everything(const ax_value *in, ax_value *out, void *context) {
  const chosen *c = context;
  ax_fn f = AX_CLOSURE(loss, c->t->program->in_count, 1, c->t);
  ax_args by = {.list = c->by, .count = c->count};
  ax_value tangents[most], again;
  for (uint32_t k = 0; k < c->count; k++) tangents[k] = in[c->by[k]];
  ax_value_and_grad(f, by, in, out);
  ax_jvp(f, by, in, tangents, &again, &out[1 + c->count]);
}

static void widen(ax_type *type, int64_t size) {
  memmove(type->dims + 1, type->dims, type->rank++ * sizeof type->dims[0]);
  type->dims[0] = size;
}

static void check(const test_instance *instance, const bool *linear, bool batched) {
  const ax_program *program = instance->program;
  ax_type types[most];
  ax_tensor *in[most], *got[2][most + 2];
  trial t = {.program = program, .linear = linear, .batched = batched};
  chosen c = {.t = &t};
  test_random random = test_instance_random(instance);
  assert_true(program->in_count <= most && program->out_count <= most);
  for (uint32_t i = 0; i < program->in_count; i++) {
    types[i] = program->types[i];
    if (batched) widen(&types[i], rows);
    if (linear[i]) widen(&types[i], devices);
    in[i] = test_random_tensor(&random, types[i], test_low(instance->sample), test_high(instance->sample));
    if (linear[i] && ax_is_differentiable(types[i].dtype)) c.by[c.count++] = i;
  }
  uint32_t outs = c.count + 2, done = 0;
  for (; done < 2 && c.count > 0; done++) {
    ax_program *traced;
    t.late = done == 1;
    if (!test_passes(instance, batched ? "batched parts" : "parts",
                     ax_trace(AX_CLOSURE(everything, program->in_count, outs, &c), types, &traced)))
      break;
    if (!test_passes(instance, "verify", ax_program_verify(traced)) ||
        !test_passes(instance, "evaluate", ax_evaluate(traced, in, got[done])))
      memset(got[done], 0, sizeof got[done]);
    ax_program_release(traced);
  }
  for (uint32_t k = 0; k < outs && done == 2; k++)
    for (int64_t e = 0; got[0][k] != NULL && got[1][k] != NULL && e < test_elems(got[0][k]); e++)
      if (!test_near(test_get(got[0][k], e), test_get(got[1][k], e), 1e-10))
        test_blame(instance, "result %u[%lld]: %g of parts, %g of the sum", k, (long long)e, test_get(got[1][k], e),
                   test_get(got[0][k], e));
  for (uint32_t way = 0; way < done; way++) test_release(got[way], outs);
  test_release(in, program->in_count);
}

/* The inputs that a word names are parts together. */
static void check_word(const test_instance *instance, const char *word, size_t length) {
  bool linear[most] = {false};
  for (uint32_t i = 0; i < instance->program->in_count; i++) linear[i] = memchr(word, instance->names[i], length) != NULL;
  check(instance, linear, false);
  check(instance, linear, true);
}

static void parts_do_as_sums(void **state) {
  (void)state;
  for (size_t i = 0; i < test_sample_count; i++) {
    const test_sample *sample = &test_samples[i];
    if (sample->linear == NULL || sample->kernel || sample->axes != NULL ||
        ax_prim_find(sample->prim, strlen(sample->prim))->kind != AX_LOCAL)
      continue;
    test_instances instances = test_instances_of(sample, &test_in_f64);
    for (uint32_t n = 0; n < instances.count && n < 3; n++)
      for (const char *word = sample->linear; *word != 0;) {
        size_t length = strcspn(word, " ");
        check_word(&instances.v[n], word, length);
        word += length + (word[length] == ' ');
      }
    test_instances_release(&instances);
  }
  test_blameless();
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(parts_do_as_sums)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
