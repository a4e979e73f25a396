/* Segments: random kernels that load, compute and store, in loops and branches, give to the bit what the machine gives; and so do
   pipelines and rings. */
#include "kernel/image/segment.h"

#include "axle/axle.h"
#include "support/cmocka.h"
#include "support/pipelines.h"
#include "support/run.h"

enum { rows = 3, columns = 4, refs = 4, most_values = 12 };

typedef struct plan {
  uint64_t random;
  uint32_t steps;
} plan;

static uint64_t draw(plan *p, uint64_t below) { return ax_next_random(&p->random) % below; }

/* All of a ref, a row by a number or by a counter, some rows, or every second column: [1 or rows, columns or half of them]. */
static ax_value some_view(plan *p, const ax_value *ref, const ax_value *counter) {
  ax_value whole = ref[draw(p, refs)], at = counter != NULL && draw(p, 2) == 0 ? *counter : ax_integer((int64_t)draw(p, rows));
  switch (draw(p, 5)) {
    case 0: return whole;
    case 1: return ax_ref_slice(whole, AX_VALUES(at, ax_integer(0)), AX_DIMS(1, columns));
    case 2: return ax_ref_slice(whole, AX_VALUES(ax_integer((int64_t)draw(p, 2)), ax_integer(0)), AX_DIMS(2, columns));
    case 3:
      return ax_ref_strided_slice(whole, AX_VALUES(ax_integer(0), ax_integer((int64_t)draw(p, 2))), AX_DIMS(rows, columns / 2),
                                  AX_DIMS(1, 2));
    default: return ax_ref_transpose(ax_ref_slice(whole, AX_VALUES(ax_integer(0), at), AX_DIMS(rows, 1)), AX_DIMS(1, 0));
  }
}

/* A value of that shape, made of one that there is: its largest element, spread. */
static ax_value of_shape(ax_value x, ax_value ref) {
  ax_type type = ax_typeof(ref);
  if (ax_same_shape(&(ax_type){.rank = 2, .dims = {ax_typeof(x).dims[0], ax_typeof(x).dims[1]}}, &type)) return x;
  return ax_broadcast_to(ax_reduce_max(x, AX_DIMS(0, 1), true), AX_LIST(type.rank, type.dims));
}

static ax_value compute(plan *p, ax_value a, ax_value b) {
  switch (draw(p, 5)) {
    case 0: return ax_add(a, b);
    case 1: return ax_sub(a, b);
    case 2: return ax_max(ax_mul(a, ax_real(0.5)), b);
    case 3: return ax_min(a, ax_neg(b));
    default: return ax_where(ax_gt(a, b), a, ax_add(b, ax_real(1)));
  }
}

static void straight(plan *p, const ax_value *ref, const ax_value *counter, ax_value *carry) {
  ax_value values[most_values];
  uint32_t count = 0;
  values[count++] = *carry;
  for (uint32_t i = 0; i < p->steps && !ax_failed(); i++) {
    ax_value at = some_view(p, ref, counter), any = values[draw(p, count)];
    switch (draw(p, 6)) {
      case 0:
      case 1: any = ax_ref_load(at); break;
      case 2: ax_ref_store(at, of_shape(any, at)); continue;
      case 3: ax_ref_add(at, of_shape(any, at)); continue;
      case 4: any = ax_ref_swap(at, of_shape(any, at)); break;
      default: any = compute(p, any, of_shape(values[draw(p, count)], any)); break;
    }
    if (count == most_values) count--;
    values[count++] = any;
  }
  *carry = of_shape(values[count - 1], *carry);
}

typedef struct within {
  plan *p;
  const ax_value *ref;
} within;

static AX_BODY(looped) {
  const within *w = context;
  out[0] = in[1];
  straight(w->p, w->ref, &in[0], &out[0]);
}
static AX_BODY(branch) {
  const within *w = context;
  out[0] = in[0];
  straight(w->p, w->ref, NULL, &out[0]);
}

static AX_BODY(random_body) {
  plan *p = context;
  const within w = {p, in};
  ax_value carry = ax_ref_load(in[0]);
  ax_ref_store(in[2], ax_real(0));
  ax_ref_store(in[3], ax_real(2));
  straight(p, in, NULL, &carry);
  ax_fori_loop(ax_integer(0), ax_integer(rows), AX_CLOSURE(looped, 2, 1, &w), &carry, &carry);
  ax_value high = ax_gt(ax_reduce_max(carry, AX_DIMS(0, 1), false), ax_real(3));
  ax_if(high, AX_CLOSURE(branch, 1, 1, &w), AX_CLOSURE(branch, 1, 1, &w), &carry, &carry);
  ax_ref_add(in[2], carry);
}

/* An operand that is an alias of a result, another, a result, scratch. */
static AX_BODY(random_kernel) {
  const ax_core_mesh one = {.core = "tensorcore"};
  const ax_scratch scratch = {.type = AX_VMEM(AX_F32, rows, columns)};
  const ax_kernel_options options = {.scratch = {AX_SCRATCH(scratch)}};
  ax_mpmd_map(AX_LIST(1, &one), &AX_CLOSURE(random_body, refs, 0, context), &options, AX_LIST(2, in), AX_TYPES(AX_TYPE(AX_F32, rows, columns)),
              out);
}

static void one_random(uint64_t seed, bool show) {
  plan p = {.random = seed * 977 + 5, .steps = 3 + (uint32_t)(seed % 10)};
  const ax_type type = AX_TYPE(AX_F32, rows, columns);
  ax_program *program;
  ax_tensor *in[2];
  ax_status status = ax_trace(AX_CLOSURE(random_kernel, 2, 1, &p), AX_TYPES(type, type), &program);
  if (status != AX_OK) fail_msg("seed %llu: %s", (unsigned long long)seed, ax_message());
  if (show) test_show_program(program);
  for (uint32_t i = 0; i < 2; i++) {
    TEST_OK(ax_tensor_create(&type, &in[i]));
    for (int64_t k = 0; k < rows * columns; k++) ((float *)in[i]->data)[k] = (float)draw(&p, 9);
  }
  TEST_EVERY_WAY(program, in, 0);
  for (uint32_t i = 0; i < 2; i++) ax_tensor_release(in[i]);
  ax_program_release(program);
}

static void random_kernels(void **state) {
  (void)state;
  test_each_seed(60, one_random);
}

/* --- What users write --- */

static void one_pipeline(const test_pipeline *t) {
  ax_tensor *in[3];
  ax_program *program = test_pipeline_program(t);
  test_pipeline_operands(t, in);
  TEST_EVERY_WAY(program, in, 0);
  for (int i = 0; i < 3; i++) ax_tensor_release(in[i]);
  ax_program_release(program);
}

static void pipelines(void **state) {
  (void)state;
  for (int64_t stages = 1; stages <= 3; stages++)
    for (int64_t wgs = 0; wgs <= 2; wgs++)
      one_pipeline(&(test_pipeline){.rank = 2,
                                    .grid = {3, 4},
                                    .stages = stages,
                                    .delay = stages > 2,
                                    .wgs = wgs,
                                    .memory = -1,
                                    .manual = stages == 2 && wgs > 0,
                                    .carries = wgs == 1});
}

typedef struct ring {
  int64_t devices;
  bool columns, scatter;
} ring;

static AX_BODY(ring_matmul) {
  const ring *r = context;
  const ax_ring_options options = {.columns = r->columns};
  out[0] = r->scatter ? ax_matmul_reduce_scatter_kernel(in[0], in[1], "d", NULL, &options)
                      : ax_collective_matmul_kernel(in[0], in[1], "d", NULL, &options);
}
static AX_BODY(ring_program) {
  const ring *r = context;
  const ax_mesh mesh = {.count = 1, .axis = {{.name = "d", .size = r->devices}}};
  const char *specs = r->scatter ? "_,d; d -> d" : r->columns ? "_,d; -> d" : "d; _,d -> _,d";
  if (r->scatter && r->columns) specs = "_,d; d -> _,d";
  ax_shard_map(&mesh, specs, AX_CLOSURE(ring_matmul, 2, 1, r), in, out);
}

static void rings(void **state) {
  (void)state;
  for (int64_t devices = 2; devices <= 5; devices++)
    for (int kind = 0; kind < 4; kind++) {
      const ring r = {devices, kind % 2 == 1, kind >= 2};
      const ax_type types[] = {AX_TYPE(AX_F32, 4 * devices, 2 * devices), AX_TYPE(AX_F32, 2 * devices, 2 * devices)};
      ax_program *program;
      ax_status status = ax_trace(AX_CLOSURE(ring_program, 2, 1, &r), types, &program);
      if (status != AX_OK) fail_msg("%lld devices, kind %d: %s", (long long)devices, kind, ax_message());
      test_random_run(program, (uint64_t)(devices * 4 + kind), false, 1e-5);
      ax_program_release(program);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_kernels), cmocka_unit_test(pipelines), cmocka_unit_test(rings)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
