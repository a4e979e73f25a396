/* Pipelines of unusual shapes: blocks that stick out, dimensions that are squeezed, maps that come back, pipelines in pipelines,
   grids without steps; and what is refused. Each is right under random schedules, proved, and gives the same in the executor. */
#include <math.h>
#include <string.h>

#include "axle/axle.h"
#include "axle/check.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/pipelines.h"
#include "support/run.h"
#include "support/schedules.h"

static const ax_core_mesh one_core = {.core = "tensorcore"};

typedef struct shape {
  const char *name;
  ax_function body; /* x, y -> () */
  int64_t in[2], out[2];
  float (*want)(int64_t i, int64_t j); /* element of the result */
} shape;

static float x_at(int64_t i, int64_t j) { return (float)(i * 10 + j + 1); }

static AX_BODY(kernel) {
  const shape *s = context;
  const ax_type type = AX_TYPE(AX_F32, s->out[0], s->out[1]);
  ax_mpmd_map(AX_LIST(1, &one_core), (&(ax_fn){s->body, 2, 0, context}), NULL, AX_LIST(1, in), AX_LIST(1, &type), out);
}

static void check_proved(const shape *s, const ax_program *program) {
  ax_check_report *report;
  TEST_OK(ax_check(program, NULL, &report));
  const ax_check_kernel *k = &report->kernels[0];
  if (report->verdict != AX_PROVED)
    fail_msg("%s: %s: %s", s->name, k->how, k->finding_count > 0 ? k->findings[0].text : "nothing is found");
  ax_check_report_release(report);
}

static void check_shape(const shape *s) {
  const ax_type type = AX_TYPE(AX_F32, s->in[0], s->in[1]);
  ax_program *program;
  ax_tensor *in, *out;
  ax_status status = ax_trace(AX_CLOSURE(kernel, 1, 1, s), &type, &program);
  if (status != AX_OK) fail_msg("%s: %s", s->name, ax_message());
  TEST_OK(ax_tensor_create(&type, &in));
  for (int64_t k = 0; k < s->in[0] * s->in[1]; k++) ((float *)in->data)[k] = x_at(k / s->in[1], k % s->in[1]);
  const char *wrong = test_schedules_try(program, &in, &out, 20, 1);
  if (wrong != NULL) fail_msg("%s: %s", s->name, wrong);
  for (int64_t k = 0; k < s->out[0] * s->out[1]; k++) {
    float want = s->want(k / s->out[1], k % s->out[1]), made = ((float *)out->data)[k];
    if (made != want) fail_msg("%s: [%lld] is %g, not %g", s->name, (long long)k, made, want);
  }
  check_proved(s, program);
  TEST_EVERY_WAY(program, &in, 0);
  ax_tensor_release(in);
  ax_tensor_release(out);
  ax_program_release(program);
}

/* --- Maps and bodies --- */

static AX_BODY(i_j) { out[0] = in[0], out[1] = in[1]; }
static AX_BODY(j_i) { out[0] = in[1], out[1] = in[0]; }
static AX_BODY(i_0) { out[0] = in[0], out[1] = ax_integer(0); }
static AX_BODY(j_0) { out[0] = in[1], out[1] = ax_integer(0); }
static AX_BODY(parity_0) { out[0] = ax_sub(in[0], ax_mul(ax_div(in[0], ax_integer(2)), ax_integer(2))), out[1] = ax_integer(0); }
static AX_BODY(fixed) { out[0] = ax_integer(1), out[1] = ax_integer(0); }

static AX_BODY(twice) { ax_ref_store(in[1], ax_mul(ax_ref_load(in[0]), ax_integer(2))); }
static AX_BODY(with_id) {
  ax_ref_store(in[1], ax_add(ax_ref_load(in[0]), ax_convert_element_type(ax_mul(ax_program_id(0), ax_integer(100)), AX_F32)));
}

static float doubled(int64_t i, int64_t j) { return 2 * x_at(i, j); }

static void emit(ax_pipeline_options options, const ax_block_spec *in_spec, const ax_block_spec *out_spec, ax_fn body,
                 const ax_value *refs) {
  options.in_count = options.out_count = 1;
  options.in_specs = (ax_block_spec_list){1, in_spec};
  options.out_specs = (ax_block_spec_list){1, out_spec};
  if (options.max_concurrent_steps == 0) options.max_concurrent_steps = 2;
  ax_emit_pipeline(&options, body, refs);
}

#define SPEC(map, ...) \
  &(ax_block_spec) { .block = {AX_DIMS(__VA_ARGS__)}, .index_map = (map) }
#define GRID(...)                    \
  (ax_pipeline_options) {            \
    .grid = { AX_DIMS(__VA_ARGS__) } \
  }

/* 7 x 5 in blocks of 3 x 2: what sticks out is read as NaN, and not written. */
static AX_BODY(ragged) { emit(GRID(3, 3), SPEC(i_j, 3, 2), SPEC(i_j, 3, 2), AX_FN(twice, 2, 0), in); }

static AX_BODY(sum_of_block) {
  ax_value x = ax_ref_load(in[0]);
  ax_ref_store(in[1], ax_reshape(ax_reduce_sum(ax_where(ax_eq(x, x), x, ax_real(1000)), AX_ALL_DIMS, false), AX_DIMS(1, 1)));
}
static AX_BODY(outside) { emit(GRID(2), SPEC(i_0, 2, 2), SPEC(i_0, 1, 1), AX_FN(sum_of_block, 2, 0), in); } /* 3 x 1 */
static float outside_sum(int64_t i, int64_t j) { return i == 0 ? x_at(0, j) + x_at(1, j) + 2000 : x_at(2, j) + 3000; }

static AX_BODY(transpose_block) { ax_ref_store(in[1], ax_transpose(ax_ref_load(in[0]), AX_DIMS(1, 0))); }
static AX_BODY(transposed) { emit(GRID(2, 3), SPEC(j_i, 2, 2), SPEC(i_j, 2, 2), AX_FN(transpose_block, 2, 0), in); }
static float transposed_x(int64_t i, int64_t j) { return x_at(j, i); }

static AX_BODY(squeezed) { emit(GRID(4, 2), SPEC(i_j, 0, 3), SPEC(i_j, 0, 3), AX_FN(twice, 2, 0), in); }

/* The block goes 0, 1, 0, 1: each is stored again, after the store before; the last ones stay. */
static AX_BODY(returning) { emit(GRID(4), SPEC(i_0, 1, 3), SPEC(parity_0, 1, 3), AX_FN(with_id, 2, 0), in); }
static AX_BODY(returning_late) {
  ax_pipeline_options options = GRID(2, 2);
  options.max_concurrent_steps = 4;
  emit(options, SPEC(i_0, 1, 3), SPEC(j_0, 1, 3), AX_FN(with_id, 2, 0), in);
}
static float last_of_two(int64_t i, int64_t j) { return x_at(2 + i, j) + (float)(100 * (2 + i)); }
static float last_row(int64_t i, int64_t j) { return x_at(1, j) + 100 + 0 * (float)i; }

/* One block, which is not the first, for all steps. */
static AX_BODY(of_one_block) { emit(GRID(3), SPEC(fixed, 2, 3), SPEC(i_0, 2, 3), AX_FN(twice, 2, 0), in); }
static float block_1(int64_t i, int64_t j) { return 2 * x_at(2 + i % 2, j); }

/* --- A pipeline in a pipeline: the outer one goes over rows of blocks, which it leaves where they are; the inner one over their
   columns --- */

typedef struct row {
  ax_value x, y, number;
} row;

static AX_BODY(at_column) { out[0] = ax_integer(0), out[1] = in[0]; }
static AX_BODY(inner_body) {
  const row *r = context;
  ax_value ids = ax_add(ax_mul(r->number, ax_integer(100)), ax_mul(ax_program_id(0), ax_integer(1000)));
  ax_ref_store(in[1], ax_add(ax_ref_load(in[0]), ax_convert_element_type(ids, AX_F32)));
}
static AX_BODY(outer_body) { /* the whole x and y */
  const ax_value starts[] = {ax_mul(ax_program_id(0), ax_integer(2)), ax_integer(0)};
  const row r = {ax_ref_slice(in[0], starts, AX_DIMS(2, 6)), ax_ref_slice(in[1], starts, AX_DIMS(2, 6)), ax_program_id(0)};
  emit(GRID(3), SPEC(at_column, 2, 2), SPEC(at_column, 2, 2), AX_CLOSURE(inner_body, 2, 0, &r), &r.x);
}
static AX_BODY(nested) {
  const ax_block_spec whole = {.space = AX_SPACE_ANY};
  emit(GRID(2), &whole, &whole, AX_FN(outer_body, 2, 0), in);
}
static float nested_x(int64_t i, int64_t j) { return x_at(i, j) + (float)(100 * (i / 2) + 1000 * (j / 2)); }

static const shape shapes[] = {
    {"ragged", ragged, {7, 5}, {7, 5}, doubled},
    {"outside", outside, {3, 1}, {2, 1}, outside_sum},
    {"transposed", transposed, {6, 4}, {4, 6}, transposed_x},
    {"squeezed", squeezed, {4, 6}, {4, 6}, doubled},
    {"returning", returning, {4, 3}, {2, 3}, last_of_two},
    {"returning late", returning_late, {2, 3}, {2, 3}, last_row},
    {"one block", of_one_block, {4, 3}, {6, 3}, block_1},
    {"nested", nested, {4, 6}, {4, 6}, nested_x},
};

static void all_shapes(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(shapes); i++) check_shape(&shapes[i]);
}

/* --- A grid without steps: the body is not run, and the result, which is the operand's memory, stays --- */

static AX_BODY(clear) { ax_ref_store(in[1], ax_integer(0)); }
static AX_BODY(no_steps) { emit(GRID(3, 0), SPEC(i_j, 1, 1), SPEC(i_j, 1, 1), AX_FN(clear, 2, 0), in); }
static AX_BODY(no_steps_of_warps) {
  const ax_block_spec spec = {.block = {AX_DIMS(1, 1)}, .index_map = i_j};
  const ax_warp_pipeline_options options = {.pipeline = {.grid = {AX_DIMS(0, 2)},
                                                         .in_count = 1,
                                                         .out_count = 1,
                                                         .in_specs = {AX_BLOCK_SPECS(spec)},
                                                         .out_specs = {AX_BLOCK_SPECS(spec)}},
                                            .memory_registers = 40,
                                            .wg_axis = "wg",
                                            .compute_wgs = 1,
                                            .memory_thread = -1};
  ax_emit_pipeline_warp_specialized(&options, AX_FN(clear, 2, 0), in);
}

static AX_BODY(in_place) {
  const ax_core_mesh warpgroups = {.core = "warpgroup", .mesh = {.count = 1, .axis = {{.name = "wg", .size = 2}}}, .threads = "wg"};
  const ax_kernel_options options = {.aliases = {AX_ALIASES({0, 0})}};
  bool warps = *(const bool *)context;
  ax_mpmd_map(AX_LIST(1, warps ? &warpgroups : &one_core), (&(ax_fn){warps ? no_steps_of_warps : no_steps, 2, 0, NULL}), &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 2, 2)), out);
}

static void empty_grids(void **state) {
  (void)state;
  const ax_type type = AX_TYPE(AX_F32, 2, 2);
  for (int warps = 0; warps < 2; warps++) {
    ax_program *program;
    ax_tensor *in = test_tensor(type, (const double[]){1, 2, 3, 4}), *out;
    const bool choice = warps != 0;
    TEST_OK(ax_trace(AX_CLOSURE(in_place, 1, 1, &choice), &type, &program));
    test_schedules(program, &in, &out, 5, 1);
    assert_memory_equal(out->data, in->data, 4 * sizeof(float));
    ax_tensor_release(in);
    ax_tensor_release(out);
    ax_program_release(program);
  }
}

/* --- What is refused --- */

static AX_BODY(nothing) {}
static AX_BODY(float_map) { out[0] = ax_full(AX_F32, AX_DIMS(), 0), out[1] = ax_integer(0); }
static AX_BODY(one) { out[0] = ax_full(AX_F32, AX_DIMS(), 1); }

static const ax_block_spec right_spec = {.block = {AX_DIMS(2, 3)}, .index_map = i_0};

typedef struct slip {
  const char *part;
  ax_pipeline_options options; /* of 1 operand and 1 result where nothing is said */
  ax_block_spec spec;          /* of the operand; {0}: a right one */
  ax_warp_pipeline_options warps; /* wg_axis NULL: emit_pipeline; its pipeline is `options` */
  uint32_t body_in, body_out;
} slip;

#define TWO .options = {.grid = {AX_DIMS(2)}}
#define WARPS(axis, wgs, memory, ...) \
  .warps = {.wg_axis = (axis), .compute_wgs = (wgs), .memory_thread = (memory), .memory_registers = __VA_ARGS__}
static const slip slips[] = {
    {"emit_pipeline: 2 steps go on at once (max_concurrent_steps), and slots are released 2 steps late (delay_release): it must be "
     "fewer",
     .options = {.max_concurrent_steps = 2, .delay_release = 2}},
    {"1 steps go on at once (max_concurrent_steps), and slots are released 1 steps late", .options = {.delay_release = 1}},
    {"-1 steps go on at once", .options = {.max_concurrent_steps = -1}},
    {"slots are released -1 steps late (delay_release): it must be fewer, and not below 0", .options = {.delay_release = -1}},
    {"operand 0: slots are released 3 steps late (delay_release), of 2", .options = {.max_concurrent_steps = 2},
     .spec = {.delay_release = 4}},
    {"operand 0: slots are released -2 steps late", .spec = {.delay_release = -1}},
    {"a grid of 1 dimensions without their sizes", .options = {.grid = {.count = 1}}},
    {"a grid of 40 dimensions", .options = {.grid = {40, (const int64_t[]){2}}}},
    {"dimension 0 of the grid is -3", .options = {.grid = {AX_DIMS(-3)}}},
    {"the grid has more than 2^31 - 1 steps", .options = {.grid = {AX_DIMS(1 << 20, 1 << 20)}}},
    {"operand 0: an index map, but no block that it could choose", TWO, .spec = {.index_map = i_0}},
    {"operand 0: a block of 1 dimensions, but it is ref<f32[4,3] any>", TWO, .spec = {.block = {AX_DIMS(4)}}},
    {"operand 0: a block of 2 dimensions without their sizes", TWO, .spec = {.block = {.count = 2}}},
    {"operand 0: dimension 1 of the block is -1", TWO, .spec = {.block = {AX_DIMS(1, -1)}}},
    {"operand 0: what is pinned in hbm has no blocks: the body gets the whole of it", TWO,
     .spec = {.block = {AX_DIMS(1, 1)}, .space = AX_SPACE_HBM}},
    {"operand 0: blocks are in vmem or smem, or pinned in hbm or any", TWO, .spec = {.space = AX_SPACE_REGISTERS}},
    {"operand 0: index map: result 0 is f32[], not s32[]", TWO, .spec = {.block = {AX_DIMS(2, 3)}, .index_map = float_map}},
    {"the body takes 3 refs and gives 0 results; there are 1 operands and 1 results", TWO, .body_in = 3},
    {"the body takes 2 refs and gives 1 results", TWO, .body_in = 2, .body_out = 1},
    {"emit_pipeline_warp_specialized: there is no axis \"q\" of warpgroups; there are wg (3)", TWO, WARPS("q", 2, -1, 40)},
    {"1 compute warpgroups and the memory thread along \"wg\", which has 3", TWO, WARPS("wg", 1, -1, 40)},
    {"the memory thread is number 3 of 3 along \"wg\"", TWO, WARPS("wg", 2, 3, 40)},
    {"510 of 512 registers are the memory thread's: each of 2 compute warpgroups needs 8", TWO, WARPS("wg", 2, -1, 510)},
    {"emit_pipeline_warp_specialized: 2 steps go on at once (max_concurrent_steps), and slots are released 2",
     .options = {.delay_release = 2}, WARPS("wg", 2, -1, 40)},
    {"the body takes 2 and gives 0; there are 2 refs, 1 barriers and 0 carries", TWO,
     WARPS("wg", 2, -1, 40, .manual_consumed_barriers = true)},
    {"the body takes 2 and gives 0; there are 2 refs, 0 barriers and 1 carries", TWO, WARPS("wg", 2, -1, 40, .carry_count = 1)},
    {"carry_init takes nothing and gives the 1 first carries", TWO, WARPS("wg", 2, -1, 40, .carry_count = 1), .body_in = 3,
     .body_out = 1},
    {"carry_final takes the 1 last carries and gives nothing", TWO,
     WARPS("wg", 2, -1, 40, .carry_count = 1, .carry_init = {one, 0, 1, NULL}), .body_in = 3, .body_out = 1},
};

static AX_BODY(slip_body) {
  slip s = *(const slip *)context;
  ax_block_spec given = s.spec;
  if (given.block.count == 0 && given.index_map == NULL && given.space == AX_SPACE_NONE)
    given = right_spec, given.delay_release = s.spec.delay_release;
  s.options.in_count = s.options.out_count = 1;
  s.options.in_specs = (ax_block_spec_list){1, &given};
  s.options.out_specs = (ax_block_spec_list){1, &right_spec};
  ax_fn body = {nothing, s.body_in > 0 ? s.body_in : 2, s.body_out, NULL};
  s.warps.pipeline = s.options;
  if (s.warps.wg_axis == NULL) ax_emit_pipeline(&s.options, body, in);
  else ax_emit_pipeline_warp_specialized(&s.warps, body, in);
}

static AX_BODY(slip_kernel) {
  const ax_core_mesh warpgroups = {.core = "warpgroup", .mesh = {.count = 1, .axis = {{.name = "wg", .size = 3}}}, .threads = "wg"};
  ax_mpmd_map(AX_LIST(1, ((const slip *)context)->warps.wg_axis != NULL ? &warpgroups : &one_core), &AX_CLOSURE(slip_body, 2, 0, context),
              NULL, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 4, 3)), out);
}

static void refused(void **state) {
  (void)state;
  const ax_type type = AX_TYPE(AX_F32, 4, 3);
  for (size_t i = 0; i < AX_COUNT(slips); i++) {
    ax_program *program;
    TEST_FAILS(ax_trace(AX_CLOSURE(slip_kernel, 1, 1, &slips[i]), &type, &program), AX_INVALID_ARGUMENT, slips[i].part);
  }
}

/* --- Each allocation failed in turn --- */

static ax_status traced_alone(void *context) {
  const shape *s = context;
  const ax_type type = AX_TYPE(AX_F32, s->in[0], s->in[1]);
  ax_program *program;
  ax_status status = ax_trace(AX_CLOSURE(kernel, 1, 1, s), &type, &program);
  ax_program_release(program);
  return status;
}

static ax_status warps_traced(void *context) {
  const test_pipeline *t = context;
  ax_program *program;
  ax_status status = test_pipeline_trace(t, &program);
  ax_program_release(program);
  return status;
}

static AX_BODY(over_grid) {
  const ax_block_spec spec = {.block = {AX_DIMS(2, 3)}, .index_map = i_0};
  ax_kernel_call((&(ax_kernel){.grid = {AX_DIMS(2)},
                              .in_specs = {AX_BLOCK_SPECS(spec)},
                              .out_specs = {AX_BLOCK_SPECS(spec)},
                              .outs = {AX_TYPES(AX_TYPE(AX_F32, 4, 3))}}),
                 AX_FN(twice, 2, 0), AX_LIST(1, in), out);
}

static ax_status evaluated(void *context) {
  (void)context;
  ax_program *program = NULL;
  ax_tensor *in = NULL, *out = NULL;
  const ax_type type = AX_TYPE(AX_F32, 4, 3);
  ax_status status = ax_trace(AX_FN(over_grid, 1, 1), &type, &program);
  if (status == AX_OK) status = ax_tensor_create(&type, &in);
  if (status == AX_OK) memset(in->data, 0, 12 * sizeof(float));
  if (status == AX_OK) status = ax_evaluate(program, &in, &out);
  ax_tensor_release(in);
  ax_tensor_release(out);
  ax_program_release(program);
  return status;
}

static void out_of_memory(void **state) {
  (void)state;
  const test_pipeline t = {.rank = 1, .grid = {2}, .stages = 2, .wgs = 2, .memory = -1, .manual = true, .carries = true};
  assert_true(test_each_allocation(traced_alone, (void *)(uintptr_t)&shapes[0]) > 10);
  assert_true(test_each_allocation(traced_alone, (void *)(uintptr_t)&shapes[AX_COUNT(shapes) - 1]) > 10);
  assert_true(test_each_allocation(warps_traced, (void *)(uintptr_t)&t) > 10);
  assert_true(test_each_allocation(evaluated, NULL) > 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_shapes), cmocka_unit_test(empty_grids), cmocka_unit_test(refused),
                                     cmocka_unit_test(out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
