/* Loops with many carries: the cost of what asks how far derivatives, batch dimensions and needs reach follows their number, however long
   the way from carry to carry is; and which carries take part in a scan's transpose. */
#include <stdlib.h>
#include <string.h>

#include "axle/ops.h"
#include "ir/transform.h"
#include "support/cmocka.h"
#include "support/run.h"

/* --- Cost: allocations, which follow the work --- */

/* A carry takes the value of the next one: what goes in at the last comes to the first in as many steps as there are carries. `inside`:
   the same in a scan in the scan's body. */
typedef struct shift {
  uint32_t carries;
  bool inside;
} shift;

static void next_carry(const ax_value *in, ax_value *out, void *context) {
  const shift *s = context;
  for (uint32_t k = 0; k + 1 < s->carries; k++) out[k] = ax_neg(in[k + 1]);
  out[s->carries - 1] = ax_tanh(in[s->carries - 1]);
}
static void in_a_scan(const ax_value *in, ax_value *out, void *context) {
  ax_scan(next_carry, context, in, ((const shift *)context)->carries, 0, 1, false, out, 0);
}
static void shifted(const ax_value *in, ax_value *out, void *context) {
  const shift *s = context;
  ax_value *made = calloc(s->carries, sizeof made[0]);
  ax_scan(s->inside ? in_a_scan : next_carry, context, in, s->carries, 0, 4, false, made, 0);
  out[0] = made[0];
  free(made);
}

static ax_program *trace_shift(uint32_t carries, bool inside) {
  ax_type *types = calloc(carries, sizeof types[0]);
  for (uint32_t i = 0; i < carries; i++) types[i] = TEST_SCALAR(AX_F64);
  ax_program *program = test_trace(shifted, &(shift){carries, inside}, types, carries, 1);
  free(types);
  return program;
}

/* By the last input alone. */
static ax_status forward(const ax_program *program, ax_program **out) {
  bool *wrt = calloc(program->in_count, sizeof wrt[0]);
  wrt[program->in_count - 1] = true;
  ax_status status = ax_program_jvp(program, wrt, out);
  free(wrt);
  return status;
}
static ax_status backward(const ax_program *program, ax_program **out) {
  bool *wrt = calloc(program->in_count, sizeof wrt[0]);
  memset(wrt, true, program->in_count);
  ax_status status = ax_program_grad(program, wrt, out);
  free(wrt);
  return status;
}
static ax_status batched(const ax_program *program, ax_program **out) {
  int *in_axes = calloc(program->in_count, sizeof in_axes[0]);
  for (uint32_t i = 0; i + 1 < program->in_count; i++) in_axes[i] = -1;
  ax_status status = ax_program_vmap(program, in_axes, NULL, 3, NULL, out);
  free(in_axes);
  return status;
}

static void *counted(void *total, size_t bytes, size_t align) {
  *(size_t *)total += bytes;
  return aligned_alloc(align, (bytes + align - 1) / align * align);
}
static void release(void *total, void *memory) {
  (void)total;
  free(memory);
}

static double cost(ax_status (*transform)(const ax_program *, ax_program **), uint32_t carries, bool inside) {
  ax_program *program, *made;
  size_t total = 0, chunk = ax_arena_chunk_bytes;
  ax_arena_chunk_bytes = 64;
  ax_set_allocator(&(ax_allocator){counted, release, &total});
  program = trace_shift(carries, inside);
  total = 0;
  TEST_OK(transform(program, &made));
  size_t asked = total;
  ax_program_release(made), ax_program_release(program);
  ax_set_allocator(NULL);
  ax_arena_chunk_bytes = chunk;
  return (double)asked;
}

static void cost_follows_carries(void **state) {
  (void)state;
  ax_status (*const transforms[])(const ax_program *, ax_program **) = {forward, backward, batched, ax_program_dce};
  for (size_t t = 0; t < AX_COUNT(transforms); t++)
    for (int inside = 0; inside < 2; inside++)
      assert_true(cost(transforms[t], 512, inside) < 2.4 * cost(transforms[t], 256, inside));
}

/* --- Which carries take part --- */

/* The last of n inputs reaches the first result in n - 1 steps of four. */
static void reaches_as_far_as_steps(void **state) {
  (void)state;
  for (int inside = 0; inside < 2; inside++)
    for (uint32_t carries = 1; carries < 8; carries++) {
      ax_program *program = trace_shift(carries, inside), *grad;
      double in[8] = {0}, out[8];
      TEST_OK(backward(program, &grad));
      test_run_scalars(grad, in, out);
      for (uint32_t i = 0; i < carries; i++) TEST_NEAR(out[i], i == (carries < 5 ? carries - 1 : 4) ? (i % 2 == 0 ? 1 : -1) : 0, 0);
      ax_program_release(grad), ax_program_release(program);
    }
}

/* Bodies that hand a carry to a program of which only another result has a cotangent: its own is zero there. */
static void second_unused(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_tanh(in[0]);
  out[1] = ax_mul(in[1], in[0]);
}
static void first_alone(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_mul(in[0], in[0]);
  out[1] = in[1];
}
static void through_cond(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_cond(ax_gt(in[0], ax_full_like(in[0], 0)), (ax_function[]){second_unused, first_alone}, NULL, 2, in, 2, out, 2);
}
static void through_call(const ax_value *in, ax_value *out, void *context) { ax_closed_call(second_unused, context, in, 2, out, 2); }
static void through_map(const ax_value *in, ax_value *out, void *context) {
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=2", &mesh));
  ax_shard_map(&(ax_shard_map_options){&mesh, (const char *[]){"", ""}, (const char *[]){"", ""}, context != NULL}, second_unused, NULL, in,
               2, out, 2);
}
static void through_scan(const ax_value *in, ax_value *out, void *context) { ax_scan(second_unused, context, in, 2, 0, 2, false, out, 0); }

typedef struct passing {
  ax_function body;
  void *context;
} passing;
static void passed(const ax_value *in, ax_value *out, void *context) {
  const passing *p = context;
  ax_value made[2];
  ax_scan(p->body, p->context, in, 2, 0, 3, false, made, 0);
  out[0] = made[0];
}

static void zero_cotangents_are_not_carried(void **state) {
  (void)state;
  bool unchecked = true;
  const passing each[] = {{through_cond, NULL}, {through_call, NULL}, {through_map, NULL}, {through_map, &unchecked}, {through_scan, NULL}};
  for (size_t i = 0; i < AX_COUNT(each); i++) {
    const ax_type types[] = {TEST_SCALAR(AX_F64), TEST_SCALAR(AX_F64)};
    ax_program *program = test_trace(passed, (void *)&each[i], types, 2, 1), *primal, *tangent, *transposed;
    uint32_t residuals;
    TEST_OK(ax_program_linearize(program, NULL, &primal, &tangent, &residuals));
    bool linear[8] = {0};
    for (uint32_t k = residuals; k < tangent->in_count; k++) linear[k] = true;
    TEST_OK(ax_program_transpose(tangent, linear, &transposed));
    bool made_zero[8], zero = false;
    ax_program_release(transposed);
    TEST_OK(ax_transpose_program(tangent, linear, &zero, made_zero, &transposed));
    assert_false(made_zero[residuals]);
    assert_true(made_zero[residuals + 1]);
    ax_program_release(program), ax_program_release(primal), ax_program_release(tangent), ax_program_release(transposed);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cost_follows_carries),
      cmocka_unit_test(reaches_as_far_as_steps),
      cmocka_unit_test(zero_cotangents_are_not_carried),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
