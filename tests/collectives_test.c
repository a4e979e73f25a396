/* Every collective, over one and several axes: its batching against the same axis as devices, its transpose by inner products, its
   exchange by hand, against the reference rule. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "ir/flow.h"
#include "ir/memo.h"
#include "ir/program.h"
#include "plan/lower.h"
#include "plan/passes.h"
#include "support/cmocka.h"
#include "support/random.h"

typedef enum kind {
  PSUM,
  PMAX,
  PMIN,
  PMEAN,
  GATHER,
  INVARIANT,
  SCATTER,
  ALL_TO_ALL,
  PERMUTE,
  BROADCAST,
  BROADCAST_BY,
  INDEX,
  ASYNC
} kind;

typedef struct row {
  kind kind;
  const char *axes;
  int64_t a, b; /* dimensions; of PERMUTE: the seed of the pairs */
  bool tiled;
  int64_t dims[3];
} row;

/* On a=2,b=2,v=3. */
static const row rows[] = {
    {PSUM, "v", 0, 0, false, {2, 3, 2}},
    {PSUM, "v,a", 0, 0, false, {2, 3, 2}},
    {PMEAN, "b,v", 0, 0, false, {2, 3, 2}},
    {PMAX, "a,v", 0, 0, false, {2, 3, 2}},
    {PMIN, "v", 0, 0, false, {2, 3, 2}},
    {ASYNC, "v", 0, 0, false, {2, 3, 2}},
    {ASYNC, "b,v,a", 0, 0, false, {2, 3, 2}},
    {GATHER, "v", 0, 0, true, {2, 3, 2}},
    {GATHER, "v", 1, 0, true, {2, 3, 2}},
    {GATHER, "v", 3, 0, false, {2, 3, 2}},
    {GATHER, "a,v", 1, 0, true, {2, 3, 2}},
    {GATHER, "v,a", 2, 0, true, {2, 3, 2}},
    {GATHER, "b,v,a", 1, 0, false, {2, 3, 2}},
    {GATHER, "b", -1, 0, true, {2, 3, 2}},
    {INVARIANT, "v", 1, 0, true, {2, 3, 2}},
    {INVARIANT, "v,b", 0, 0, false, {2, 3, 2}},
    {SCATTER, "v", 0, 0, true, {6, 3, 2}},
    {SCATTER, "v", 1, 0, false, {6, 3, 2}},
    {SCATTER, "v,b", 0, 0, true, {6, 3, 2}},
    {SCATTER, "b,v", 0, 0, false, {6, 3, 2}},
    {SCATTER, "a,v,b", 1, 0, true, {2, 24, 2}},
    {SCATTER, "a", -1, 0, true, {2, 3, 2}},
    {ALL_TO_ALL, "v", 0, 1, true, {6, 3, 2}},
    {ALL_TO_ALL, "v", 1, 0, true, {2, 3, 2}},
    {ALL_TO_ALL, "v", 1, 1, true, {2, 6, 2}},
    {ALL_TO_ALL, "v", 0, 2, false, {3, 4, 2}},
    {ALL_TO_ALL, "v", 2, 0, false, {2, 4, 3}},
    {ALL_TO_ALL, "v", 1, 1, false, {2, 3, 2}},
    {ALL_TO_ALL, "a,v", 0, 1, true, {12, 3, 2}},
    {ALL_TO_ALL, "v,a", 2, 0, true, {2, 3, 6}},
    {ALL_TO_ALL, "b,v,a", 1, 1, true, {2, 24, 2}},
    {ALL_TO_ALL, "b,v,a", 1, 2, false, {2, 12, 2}},
    {ALL_TO_ALL, "b", 2, 1, true, {2, 3, 2}},
    {PERMUTE, "v", 1, 0, false, {2, 3, 2}},
    {PERMUTE, "v", 2, 0, false, {2, 3, 2}},
    {PERMUTE, "v", 3, 0, false, {2, 3, 2}},
    {PERMUTE, "a,v", 4, 0, false, {2, 3, 2}},
    {PERMUTE, "v,b", 5, 0, false, {2, 3, 2}},
    {PERMUTE, "a,v,b", 6, 0, false, {2, 3, 2}},
    {PERMUTE, "b,a", 7, 0, false, {2, 3, 2}},
    {BROADCAST, "v", 2, 0, false, {2, 3, 2}},
    {BROADCAST, "b", 1, 0, false, {2, 3, 2}},
    {BROADCAST, "a,v", 4, 0, false, {2, 3, 2}},
    {BROADCAST, "v,b", 3, 0, false, {2, 3, 2}},
    {BROADCAST, "a,v,b", 7, 0, false, {2, 3, 2}},
    {BROADCAST_BY, "v", 2, 0, false, {2, 3, 2}},
    {BROADCAST_BY, "v,b", 3, 0, false, {2, 3, 2}},
    {INDEX, "v", 0, 0, false, {2, 3, 2}},
    {INDEX, "v,a", 0, 0, false, {2, 3, 2}},
    {INDEX, "b,v,a", 0, 0, false, {2, 3, 2}},
    {INDEX, "b", 0, 0, false, {2, 3, 2}},
};

enum { devices = 12, size_v = 3 };

/* --- The programs: x[, other] -> f(x) --- */

static ax_value permute(ax_value x, const row *row) {
  int64_t pairs[devices][2], targets[devices], members = ax_axis_size(row->axes);
  uint32_t count = 0;
  test_random random = {(uint64_t)row->a};
  for (int64_t i = 0; i < members; i++) {
    int64_t j = test_random_below(&random, i + 1);
    targets[i] = targets[j];
    targets[j] = i;
  }
  for (int64_t i = 0; i < members; i++) {
    if (row->a > 1 && test_random_below(&random, 4) == 0) continue;
    pairs[count][0] = i;
    pairs[count++][1] = targets[i];
  }
  return ax_ppermute(x, row->axes, count, (const int64_t(*)[2])pairs);
}

static void apply(const ax_value *in, ax_value *out, void *context) {
  const row *r = context;
  ax_value x = in[0];
  switch (r->kind) {
    case PSUM: out[0] = ax_psum(x, r->axes); break;
    case PMAX: out[0] = ax_pmax(x, r->axes); break;
    case PMIN: out[0] = ax_pmin(x, r->axes); break;
    case PMEAN: out[0] = ax_pmean(x, r->axes); break;
    case GATHER: out[0] = ax_all_gather(x, r->axes, r->a, r->tiled); break;
    case INVARIANT: out[0] = ax_all_gather_invariant(x, r->axes, r->a, r->tiled); break;
    case SCATTER: out[0] = ax_psum_scatter(x, r->axes, r->a, r->tiled); break;
    case ALL_TO_ALL: out[0] = ax_all_to_all(x, r->axes, r->a, r->b, r->tiled); break;
    case PERMUTE: out[0] = permute(x, r); break;
    case BROADCAST: out[0] = ax_pbroadcast(x, r->axes, r->a); break;
    case BROADCAST_BY: out[0] = ax_pbroadcast_dynamic(x, r->axes, ax_integer(r->a)); break;
    case INDEX: out[0] = ax_mul(x, ax_convert_element_type(ax_axis_index(r->axes), AX_F64)); break;
    case ASYNC: out[0] = ax_done(ax_psum_start(x, r->axes)); break;
  }
}

static ax_program *trace(const row *row, const char *mesh_text, bool unchecked, ax_axis_set varying, uint32_t inputs) {
  ax_mesh mesh;
  ax_program *program;
  TEST_OK(ax_mesh_parse(mesh_text, &mesh));
  for (uint32_t i = 0; i < mesh.count; i++) mesh.axis[i].unchecked = unchecked;
  ax_type types[] = {ax_array_type(AX_F64, AX_LIST(3, row->dims)), TEST_SCALAR(AX_F64)};
  types[0].spread.varying = unchecked ? 0 : varying;
  TEST_OK(ax_trace_on(&mesh, AX_CLOSURE(apply, inputs, 1, (void *)row), types, &program));
  TEST_OK(ax_program_verify(program));
  return program;
}

/* Evaluates a program of one result on all devices of its axes; in[operand * lanes + lane]. */
static void run(const ax_program *program, ax_tensor *const *in, ax_tensor **out) {
  int64_t device[devices];
  for (int64_t d = 0; d < devices; d++) device[d] = d;
  TEST_OK(ax_evaluate_lanes(NULL, program, (uint32_t)ax_mesh_devices(&program->axes), device, in, out));
}

/* Random values that are the same on devices that differ only along axes not in `varying`. */
static void random_lanes(const ax_type *type, const ax_mesh *mesh, ax_axis_set varying, uint64_t seed, ax_tensor **out) {
  for (int64_t d = 0; d < ax_mesh_devices(mesh); d++) {
    test_random random = {seed};
    for (uint32_t a = 0; a < mesh->count; a++)
      if (varying >> a & 1) random.state = random.state * 64 + (uint64_t)ax_mesh_coordinate(mesh, d, a) + 1;
    ax_type plain = ax_array_type(type->dtype, AX_LIST(type->rank, type->dims));
    out[d] = test_random_tensor(&random, plain, -1, 1);
  }
}

/* --- Batching: mesh axis v, or vmap over v --- */

/* tensor `part` is element `index` of dimension `dim` of `whole`: copied into it, or compared with it. */
static void each_element(ax_tensor *whole, const ax_tensor *part, uint32_t dim, int64_t index, bool compare) {
  int64_t inner = 1;
  for (uint32_t d = dim + 1; d < whole->rank; d++) inner *= whole->dims[d];
  for (int64_t i = 0; i < test_elems(part); i++) {
    int64_t at = (i / inner * whole->dims[dim] + index) * inner + i % inner;
    if (compare)
      TEST_NEAR(test_get(whole, at), test_get(part, i), 1e-12);
    else
      test_set(whole, at, test_get(part, i));
  }
}

/* v is the last axis: device (a, b, v) of the one program is element v on device (a, b) of the other. */
static void check_batch(const row *row, int in_axis, int out_axis) {
  ax_program *whole = trace(row, "a=2,b=2,v=3", false, in_axis >= 0 ? 7 : 3, 2), *batched;
  TEST_OK(ax_program_vmap(whole,
                          &(ax_vmap_options){.in_axes = {AX_DIMS(in_axis < 0 ? AX_NOT_MAPPED : in_axis, 0)},
                                             .out_axes = {AX_DIMS(out_axis)},
                                             .size = size_v,
                                             .axis_name = "v"},
                          &batched));
  ax_tensor *x[2 * devices], *y[devices], *xs[8], *ys[4];
  random_lanes(&whole->types[0], &whole->axes, in_axis >= 0 ? 7 : 3, 1, x);
  random_lanes(&whole->types[1], &whole->axes, 0, 1, x + devices);
  random_lanes(&batched->types[0], &batched->axes, 3, 1, xs);
  random_lanes(&batched->types[1], &batched->axes, 3, 1, xs + 4);
  run(whole, x, y);
  for (int64_t d = 0; d < devices && in_axis >= 0; d++)
    each_element(xs[d / size_v], x[d], (uint32_t)in_axis, d % size_v, false);
  run(batched, xs, ys);
  for (int64_t d = 0; d < devices; d++) each_element(ys[d / size_v], y[d], (uint32_t)out_axis, d % size_v, true);
  test_release(x, 2 * devices);
  test_release(y, devices);
  test_release(xs, 8);
  test_release(ys, 4);
  ax_program_release(whole);
  ax_program_release(batched);
}

static void test_batch(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(rows); i++)
    for (int in_axis = -1; in_axis < 4; in_axis++) {
      print_message("row %zu, in_axis %d\n", i, in_axis);
      check_batch(&rows[i], in_axis, in_axis < 0 ? 0 : in_axis % 2);
    }
}

/* --- Transposing: <A x, y> = <x, At y>, where what is invariant counts once --- */

static double inner(ax_tensor *const *a, ax_tensor *const *b, const ax_mesh *mesh, ax_axis_set varying) {
  double sum = 0;
  for (int64_t d = 0; d < ax_mesh_devices(mesh); d++) {
    bool first = true;
    for (uint32_t axis = 0; axis < mesh->count; axis++)
      if ((varying >> axis & 1) == 0 && ax_mesh_coordinate(mesh, d, axis) != 0) first = false;
    if (first) sum += test_inner(&a[d], &b[d], 1);
  }
  return sum;
}

static void check_transpose(const row *row, bool unchecked, ax_axis_set varying) {
  ax_program *forward = trace(row, "a=2,b=2,v=3", unchecked, varying, 1), *backward;
  TEST_OK(ax_program_transpose(forward, AX_FIRST(1), &backward));
  const ax_type *result = ax_program_out_type(forward, 0);
  ax_axis_set result_varying = unchecked ? 7 : result->spread.varying;
  ax_tensor *x[devices], *ax[devices], *y[devices], *aty[devices];
  random_lanes(&forward->types[0], &forward->axes, varying, 1, x);
  random_lanes(result, &forward->axes, result_varying, 2, y);
  run(forward, x, ax);
  run(backward, y, aty);
  TEST_NEAR(inner(ax, y, &forward->axes, result_varying), inner(x, aty, &forward->axes, varying), 1e-12);
  test_release(x, devices);
  test_release(y, devices);
  test_release(ax, devices);
  test_release(aty, devices);
  ax_program_release(forward);
  ax_program_release(backward);
}

static void test_transpose(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    if (rows[i].kind == PMAX || rows[i].kind == PMIN) continue;
    print_message("row %zu\n", i);
    check_transpose(&rows[i], false, 7);
    check_transpose(&rows[i], false, 2);
    check_transpose(&rows[i], false, 0);
    check_transpose(&rows[i], true, 7);
  }
}

/* --- The derivative of pmax: the tangent of the member that holds the largest, or the mean of theirs --- */

static void test_pmax_jvp(void **state) {
  (void)state;
  ax_mesh mesh;
  ax_program *program, *jvp;
  ax_type type = TEST_TYPE(AX_F64, 2);
  type.spread.varying = 1;
  row row = {PMAX, "v", 0, 0, false, {0}};
  TEST_OK(ax_mesh_parse("v=3", &mesh));
  TEST_OK(ax_trace_on(&mesh, AX_CLOSURE(apply, 1, 1, &row), &type, &program));
  TEST_OK(ax_program_jvp(program, AX_ALL_ARGS, &jvp));
  const double x[3][2] = {{1, 5}, {3, 5}, {2, 4}}, dx[3][2] = {{10, 20}, {30, 40}, {50, 60}};
  ax_tensor *in[6], *out[6];
  for (int d = 0; d < 3; d++) {
    in[d] = test_tensor(TEST_TYPE(AX_F64, 2), x[d]);
    in[3 + d] = test_tensor(TEST_TYPE(AX_F64, 2), dx[d]);
  }
  run(jvp, in, out);
  for (int d = 0; d < 3; d++) {
    TEST_NEAR(test_get(out[d], 0), 3, 0);
    TEST_NEAR(test_get(out[d], 1), 5, 0);
    TEST_NEAR(test_get(out[3 + d], 0), 30, 0);
    TEST_NEAR(test_get(out[3 + d], 1), 30, 0);
  }
  test_release(in, 6);
  test_release(out, 6);
  ax_program_release(program);
  ax_program_release(jvp);
}

/* --- Lowering: the exchange carried out by hand --- */

static double *data_of(ax_tensor **memory, const ax_plan *plan, uint32_t buffer, int64_t device) {
  const ax_buffer *b = &plan->buffers[buffer];
  return (double *)((char *)memory[b->allocation * devices + device]->data + b->offset);
}

static bool sends(const ax_exchange *e, int64_t source, int64_t target) {
  if (e->peers != AX_PEERS_PAIRS) return !e->alone || source == e->source;
  for (uint32_t i = 0; i < e->pairs->count; i++)
    if (e->pairs->v[i][0] == source && e->pairs->v[i][1] == target) return true;
  return false;
}

static double combined(ax_scalar op, double a, double b) {
  if (op == AX_SCALAR_ADD) return a + b;
  if (op == AX_SCALAR_MAX) return a > b ? a : b;
  return op == AX_SCALAR_MIN ? (a < b ? a : b) : b;
}

static void put(const ax_exchange *e, const double *src, double *dst, bool first) {
  int64_t elems = ax_dims_elems(e->rank, e->dims);
  for (int64_t i = 0; i < elems; i++) {
    int64_t from = 0, to = 0, rest = i;
    for (uint32_t d = e->rank; d-- > 0; rest /= e->dims[d]) {
      from += rest % e->dims[d] * e->src_stride[d];
      to += rest % e->dims[d] * e->dst_stride[d];
    }
    dst[to] = first ? src[from] : combined(e->combine, dst[to], src[from]);
  }
}

/* Members send in order of their numbers. */
static void exchange(const ax_plan *plan, const ax_exchange *e, ax_tensor **memory) {
  ax_axis_set others = ax_all_axes(&plan->mesh) & ~e->axes;
  int64_t members = ax_axis_set_size(e->axes, &plan->mesh);
  for (int64_t target = 0; target < devices; target++)
    for (int64_t member = 0; member < members; member++)
      for (int64_t source = 0; source < devices; source++) {
        bool together = ax_axes_index(&e->names, &plan->mesh, source) == member;
        for (uint32_t a = 0; a < plan->mesh.count; a++)
          if (others >> a & 1)
            together = together && ax_mesh_coordinate(&plan->mesh, source, a) == ax_mesh_coordinate(&plan->mesh, target, a);
        int64_t peer = ax_axes_index(&e->names, &plan->mesh, target);
        if (!together || !sends(e, member, peer)) continue;
        put(e, data_of(memory, plan, e->in, source) + (e->peers == AX_PEERS_ALL ? peer * e->src_step : 0),
            data_of(memory, plan, e->out, target) + member * e->dst_step, e->combine == AX_SCALAR_NONE || member == 0);
      }
}

static void check_lower(const row *row) {
  ax_program *program = trace(row, "a=2,b=2,v=3", false, 7, 1);
  ax_plan plan = {.mesh = program->axes};
  ax_memo memo = {0};
  ax_flow flow = {.memo = &memo, .question = "differs"};
  ax_lower lower = {.plan = &plan, .block = &plan.block, .flow = &flow};
  uint32_t in, out;
  TEST_OK(ax_lower_buffer(&lower, &program->types[0], 7, &in));
  TEST_OK(ax_lower_program(&lower, program, &in, &out));
  ax_tensor **memory = calloc((size_t)plan.buffer_count * devices, sizeof memory[0]), *y[devices];
  for (uint32_t b = 0; b < plan.buffer_count; b++)
    for (int64_t d = 0; d < devices; d++) memory[b * devices + d] = test_tensor(plan.buffers[b].type, NULL);
  test_release(memory + in * devices, devices);
  random_lanes(&program->types[0], &program->axes, 7, 1, memory + in * devices);
  run(program, memory + in * devices, y);
  bool by_hand = true;
  for (uint32_t i = 0; i < plan.block.count; i++) {
    const ax_op *op = &plan.block.ops[i];
    if (op->kind == AX_OP_START) exchange(&plan, op->exchange, memory);
    by_hand = by_hand && (op->kind == AX_OP_START || op->kind == AX_OP_DONE);
  }
  assert_true(by_hand || row->kind == PMEAN || row->kind == BROADCAST_BY || row->kind == INDEX);
  for (int64_t d = 0; d < devices && by_hand; d++)
    for (int64_t i = 0; i < test_elems(y[d]); i++) TEST_NEAR(data_of(memory, &plan, out, d)[i], test_get(y[d], i), 1e-12);
  test_release(memory, plan.buffer_count * devices);
  test_release(y, devices);
  free(memory);
  ax_free(plan.buffers);
  ax_free(lower.buffers);
  ax_memo_deinit(&memo);
  ax_arena_deinit(&plan.arena);
  ax_arena_deinit(&plan.drafts);
  ax_program_release(program);
}

static void test_lower(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    print_message("row %zu\n", i);
    check_lower(&rows[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_batch),
      cmocka_unit_test(test_transpose),
      cmocka_unit_test(test_pmax_jvp),
      cmocka_unit_test(test_lower),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
