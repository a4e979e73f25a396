/* shard_maps that take some axes of the mesh by hand: functions written so, beside the same of whole arrays, under every transform.
   Of small integers in f64, so that all sums are exact. And what calls the host, sends, or takes devices of its own in such a
   body. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/axle.h"
#include "partition/partition.h"
#include "support/cmocka.h"
#include "support/host.h"
#include "support/random.h"
#include "support/run.h"

enum { ROWS = 8, COLUMNS = 4 };

static ax_mesh mesh_of(const char *text) {
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse(text, &mesh));
  return mesh;
}
static ax_mesh grid(void) { return mesh_of("data=2,model=2,row=2"); }
static ax_value total(ax_value x) { return ax_reduce_sum(x, AX_ALL_DIMS, false); }

/* --- Pairs of functions of w: f64[4,4] and x: f64[8,4], which give a f64[8,4] --- */

/* Each column times the sum of all that stand where it stands in its half. */
static void times_sum_over_model(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_mul(in[0], ax_psum(in[0], "model"));
}
static ax_value times_sum_of_halves(ax_value x) {
  ax_value halves = ax_reshape(x, AX_DIMS(ROWS, 2, COLUMNS / 2));
  ax_value sums = ax_broadcast_in_dim(ax_reduce_sum(halves, AX_DIMS(1), false), AX_DIMS(ROWS, 2, COLUMNS / 2), AX_DIMS(0, 2));
  return ax_reshape(ax_mul(halves, sums), AX_DIMS(ROWS, COLUMNS));
}

static void nested_body(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const ax_mesh mesh = grid();
  ax_value w = ax_with_sharding(in[0], &mesh, "row,model"), h = ax_matmul(in[1], w), made;
  ax_shard_map_manual(&mesh, "model", "_,model -> _,model", AX_FN(times_sum_over_model, 1, 1), &h, &made);
  out[0] = ax_mul(made, ax_psum(total(ax_mul(h, h)), "data"));
}
static void nested(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const ax_mesh mesh = grid();
  ax_shard_map_manual(&mesh, "data", "; data -> data", AX_FN(nested_body, 2, 1), in, out);
}
static void nested_whole(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value h = ax_matmul(in[1], in[0]);
  out[0] = ax_mul(times_sum_of_halves(h), total(ax_mul(h, h)));
}

/* Parts of a sum over data, which lie along model, times what is reduced. */
static void parts_body(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const ax_mesh mesh = grid();
  ax_value part = ax_with_sharding(ax_reduce_sum(in[1], AX_DIMS(0), false), &mesh, "model");
  ax_value by = ax_preduced(ax_with_sharding(ax_reduce_sum(in[0], AX_DIMS(1), false), &mesh, "row+model"), "data");
  ax_value sums = ax_unreduced_psum(ax_mul(ax_vary_unreduced_cast(part, "data", AX_UNREDUCED_SUM), by), "data");
  out[0] = ax_mul(in[1], ax_broadcast_in_dim(ax_pvary(sums, "data"), AX_DIMS(ROWS / 2, COLUMNS), AX_DIMS(1)));
}
static void parts(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const ax_mesh mesh = grid();
  ax_shard_map_manual(&mesh, "data", "; data -> data", AX_FN(parts_body, 2, 1), in, out);
}
static void parts_whole(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value sums = ax_mul(ax_reduce_sum(in[1], AX_DIMS(0), false), ax_reduce_sum(in[0], AX_DIMS(1), false));
  out[0] = ax_mul(in[1], ax_broadcast_in_dim(sums, AX_DIMS(ROWS, COLUMNS), AX_DIMS(1)));
}

/* In a loop, with devices of its own in each step: three more in each of the mesh's. */
static void by_index(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_psum(ax_mul(ax_pvary(in[0], "inner"), ax_add(ax_convert_element_type(ax_axis_index("inner"), AX_F64), ax_real(1))),
                   "inner");
}
static void loop_step(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const ax_mesh mesh = grid(), inner = mesh_of("inner=3");
  ax_value x = ax_with_sharding(ax_matmul(in[1], in[0]), &mesh, "row,model"), made;
  ax_shard_map(&inner, " -> ", AX_FN(by_index, 1, 1), &x, &made);
  out[0] = in[0];
  out[1] = ax_sub(ax_ppermute(x, "data", 2, (const int64_t[][2]){{0, 1}, {1, 0}}), made);
}
static void loop_body(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value carry[] = {ax_pvary(in[0], "data"), in[1]};
  ax_scan(AX_FN(loop_step, 2, 2), 2, 2, false, carry, carry);
  out[0] = carry[1];
}
static void loop(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const ax_mesh mesh = grid();
  ax_shard_map_manual(&mesh, "data", "; data -> data", AX_FN(loop_body, 2, 1), in, out);
}
static void loop_whole(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = in[1];
  for (int step = 0; step < 2; step++) {
    x = ax_matmul(x, in[0]);
    ax_value turned = ax_concatenate(AX_VALUES(ax_slice_in_dim(x, ROWS / 2, ROWS, 1, 0), ax_slice_in_dim(x, 0, ROWS / 2, 1, 0)), 0);
    x = ax_sub(turned, ax_mul(x, ax_real(6)));
  }
  out[0] = x;
}

/* Unchecked, two axes by hand, the third automatic; a checkpoint inside. Of every four rows, which the two devices along row have
   together, each takes the first two, squared, and adds its own to them. */
static void square_of_product(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const ax_mesh mesh = grid();
  ax_value h = ax_matmul(in[1], ax_with_sharding(in[0], &mesh, "_,model"));
  out[0] = ax_mul(h, h);
}
static void unchecked_body(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value squares;
  ax_checkpoint(AX_FN(square_of_product, 2, 1), AX_VALUES(in[0], ax_all_gather(in[1], "row", 0, true)), &squares, NULL);
  out[0] = ax_add(ax_slice_in_dim(squares, 0, ROWS / 4, 1, 0), in[1]);
}
static void unchecked(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const ax_mesh mesh = grid();
  ax_mesh by_hand;
  ax_must(ax_mesh_manual(&mesh, "data,row", &by_hand));
  ax_shard_map_unchecked(&by_hand, "; data+row -> data+row", AX_FN(unchecked_body, 2, 1), in, out);
}
static void unchecked_whole(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value h = ax_matmul(in[1], in[0]), rows = ax_reshape(ax_mul(h, h), AX_DIMS(2, 2, 2, COLUMNS));
  ax_value first = ax_broadcast_in_dim(ax_reshape(ax_slice_in_dim(rows, 0, 1, 1, 1), AX_DIMS(2, 2, COLUMNS)),
                                       AX_DIMS(2, 2, 2, COLUMNS), AX_DIMS(0, 2, 3));
  out[0] = ax_add(ax_reshape(first, AX_DIMS(ROWS, COLUMNS)), in[1]);
}

typedef struct pair {
  const char *name;
  ax_function by_hand, whole;
} pair;
static const pair pairs[] = {
    {"nested", nested, nested_whole},
    {"parts", parts, parts_whole},
    {"loop", loop, loop_whole},
    {"unchecked", unchecked, unchecked_whole},
};

/* --- Transforms of either --- */

typedef struct transformed {
  ax_function f;
  int way;
} transformed;

static void as_it_is(const ax_value *in, ax_value *out, void *context) { ((transformed *)context)->f(in, out, NULL); }
static void tangent(const ax_value *in, ax_value *out, void *context) {
  ax_value y, by;
  ax_jvp(AX_CLOSURE(as_it_is, 2, 1, context), AX_FIRST(2), in, AX_VALUES(ax_add(in[0], ax_real(1)), ax_neg(in[1])), &y, &by);
  out[0] = ax_add(y, by);
}
static void weighted(const ax_value *in, ax_value *out, void *context) {
  ax_value y;
  as_it_is(in, &y, context);
  out[0] = total(ax_mul(y, ax_iota(AX_F64, AX_DIMS(ROWS, COLUMNS), 0)));
}
static void slopes(const ax_value *in, ax_value *out, void *context) {
  ax_value by[2];
  ax_grad(AX_CLOSURE(weighted, 2, 1, context), AX_FIRST(2), in, by);
  out[0] = ax_add(ax_matmul(by[1], in[0]), ax_reduce_sum(by[0], AX_ALL_DIMS, false));
}
static void slopes_of_slopes(const ax_value *in, ax_value *out, void *context) {
  ax_value by;
  ax_jvp(AX_CLOSURE(slopes, 2, 1, context), AX_ARGS(0), in, &in[0], out, &by);
  out[0] = by;
}
static const ax_function ways[] = {as_it_is, tangent, slopes, slopes_of_slopes};

static void one_way(const ax_value *in, ax_value *out, void *context) {
  const transformed *t = context;
  ways[t->way % 4](in, out, context);
}
/* Over three x, as rows of a batch or as its columns. */
static void over_a_batch(const ax_value *in, ax_value *out, void *context) {
  const transformed *t = context;
  ax_value xs = ax_broadcast_in_dim(in[1], AX_DIMS(ROWS, 3, COLUMNS), AX_DIMS(0, 2));
  xs = ax_mul(xs, ax_add(ax_iota(AX_F64, AX_DIMS(ROWS, 3, COLUMNS), 1), ax_real(1)));
  const ax_vmap_options options = {
      .in_axes = {AX_DIMS(AX_NOT_MAPPED, 1)}, .out_axes = {AX_DIMS(1)}, .axis_name = t->way < 8 ? NULL : "v"};
  ax_value made;
  ax_vmap(AX_CLOSURE(one_way, 2, 1, context), AX_VALUES(in[0], xs), &made, &options);
  out[0] = ax_reduce_sum(made, AX_DIMS(1), false);
}
static void transform(const ax_value *in, ax_value *out, void *context) {
  (((transformed *)context)->way < 4 ? one_way : over_a_batch)(in, out, context);
}

static const ax_type operand_types[] = {{.dtype = AX_F64, .rank = 2, .dims = {COLUMNS, COLUMNS}},
                                        {.dtype = AX_F64, .rank = 2, .dims = {ROWS, COLUMNS}}};

static void transforms(void **state) {
  (void)state;
  test_random random = {7};
  for (size_t i = 0; i < AX_COUNT(pairs); i++)
    for (int way = 0; way < 12; way++) {
      transformed by_hand = {pairs[i].by_hand, way}, whole = {pairs[i].whole, way};
      ax_program *program = test_trace(transform, &by_hand, operand_types, 2, 1),
                 *other = test_trace(transform, &whole, operand_types, 2, 1);
      ax_tensor *in[] = {test_random_tensor(&random, operand_types[0], -2, 2),
                         test_random_tensor(&random, operand_types[1], -2, 2)},
                *got, *wanted;
      for (int k = 0; k < 2; k++)
        for (int64_t e = 0; e < test_elems(in[k]); e++) test_set(in[k], e, (double)(int64_t)(test_get(in[k], e) * 1.5));
      test_run(program, in, &got);
      test_run(other, in, &wanted);
      for (int64_t e = 0; e < test_elems(wanted); e++)
        if (test_get(got, e) != test_get(wanted, e)) fail_msg("%s, way %d", pairs[i].name, way);
      TEST_EVERY_WAY(program, in, 1e-300); /* zeros may have either sign */
      test_release(in, 2);
      ax_tensor_release(got), ax_tensor_release(wanted);
      ax_program_release(program), ax_program_release(other);
    }
}

/* --- Around and inside --- */

static ax_program *parsed(const char *text) {
  ax_program *program;
  TEST_OK(ax_program_parse(text, strlen(text), "by hand", &program));
  return program;
}

/* Integers as they come; every way there is to run it, and text and back. */
static void runs_every_way(ax_program *program) {
  ax_tensor *in[8];
  for (uint32_t i = 0; i < program->in_count; i++) {
    in[i] = test_tensor(program->types[i], NULL);
    for (int64_t e = 0; e < test_elems(in[i]); e++) test_set(in[i], e, (double)(e % 7 - 3));
  }
  TEST_EVERY_WAY(program, in, 0);
  char *text;
  TEST_OK(ax_program_print(program, &text));
  ax_program *again = parsed(text);
  assert_true(ax_program_equal(again, program));
  ax_program_release(again);
  free(text);
  test_release(in, program->in_count);
  ax_program_release(program);
}

static void sum_rows(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const ax_mesh mesh = grid();
  out[0] = ax_psum(ax_with_sharding(ax_mul(in[0], ax_psum(in[0], "i")), &mesh, "model"), "data,i");
}
static void map_rows(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const ax_mesh mesh = grid();
  ax_mesh by_hand;
  ax_must(ax_mesh_manual(&mesh, "data", &by_hand));
  ax_shard_map_unchecked(&by_hand, "data -> ", AX_FN(sum_rows, 1, 1), in, out);
}
static void in_pmap(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_pmap(AX_FN(map_rows, 1, 1), in, out, &(ax_pmap_options){.axis_name = "i"});
}
/* A pmap around it, whose axis is in scope as it is. */
static void pmap_around(void **state) {
  (void)state;
  runs_every_way(test_trace(in_pmap, NULL, (const ax_type[]){TEST_TYPE(AX_S32, 3, 8)}, 1, 1));
}

/* A called program that knows of no axes takes by hand what is automatic where it is called. */
static void called_without_axes(void **state) {
  (void)state;
  runs_every_way(parsed(
      "{ lambda x:s32[8,4]. let y:s32[8,4] = shard_map[mesh=(data=2, auto model=2) unchecked=false in_specs=(P(data)) out_specs=(P(data))"
      "  body={ axes data=2 auto model=2 ; lambda a:s32[4,4]{V:data}. let"
      "    s:s32[4,4] = psum[axes=(data)] a"
      "    t:s32[4,4] = closed_call[body={ axes ; lambda a:s32[4,4]. let"
      "      b:s32[4,4] = sharding_constraint[mesh=(model=2) specs=(P(model))] a"
      "      c:s32[4,4] = shard_map[mesh=(model=2) unchecked=false in_specs=(P(_, model)) out_specs=(P(_, model)) body={ axes model=2 ; lambda"
      "        a:s32[4,2]{V:model}. let b:s32[4,2] = psum[axes=(model)] a c:s32[4,2]{V:model} = pvary[axes=(model)] b d:s32[4,2]{V:model} = mul a c"
      "        in (d) }] b"
      "      in (c) }] s"
      "    v:s32[4,4]{V:data} = pvary[axes=(data)] t"
      "    u:s32[4,4]{V:data} = add a v"
      "    in (u) }] x in (y) }"));
}

/* Messages: each device sends, whatever lies along the automatic axis. */
static void messages(void **state) {
  (void)state;
  runs_every_way(parsed(
      "{ lambda x:s32[8,4]. let y:s32[8,4] = shard_map[mesh=(data=2, auto model=2) unchecked=false in_specs=(P(data)) out_specs=(P(data))"
      "  body={ axes data=2 auto model=2 ; lambda a:s32[4,4]{V:data}. let"
      "    c:s32[4,4]{V:data} = sharding_constraint[mesh=(model=2) specs=(P(_, model))] a"
      "    t:token{V:data} = psend[axes=(data) pairs=((0, 1), (1, 0)) link=0] c"
      "    z:s32[4,4]{V:data} = precv[dtype=s32 dims=(4, 4) axes=(data) pairs=((0, 1), (1, 0)) link=0] t"
      "    u:s32[4,4]{V:data} = mul c z"
      "    in (u) }] x in (y) }"));
}

/* A call of the host: once a device of those taken by hand. */
static void printing_body(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const ax_mesh mesh = grid();
  out[0] = ax_with_sharding(in[0], &mesh, "row");
  ax_debug_print("{}", true, AX_VALUES(ax_reduce_sum(out[0], AX_ALL_DIMS, false)));
}
static void prints(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const ax_mesh mesh = grid();
  ax_shard_map_manual(&mesh, "model", "model -> model", AX_FN(printing_body, 1, 1), in, out);
}
static void host_calls(void **state) {
  (void)state;
  test_log log;
  test_log_begin(&log);
  ax_runtime *runtime = test_host_runtime((ax_runtime_options){.workers = 2}, &log);
  ax_program *program = test_trace(prints, NULL, (const ax_type[]){TEST_TYPE(AX_S32, 8)}, 1, 1);
  ax_tensor *in = test_tensor(TEST_TYPE(AX_S32, 8), (const double[]){1, 2, 3, 4, 5, 6, 7, 8}), *out;
  test_execute(runtime, program, &in, &out);
  assert_string_equal(test_log_text(&log), "10\n26\n");
  ax_tensor_release(in), ax_tensor_release(out);
  ax_program_release(program);
  ax_runtime_release(runtime);
  test_log_end(&log);
}

static void twice_sum(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[0], ax_psum(in[0], "data"));
}
/* Operation by operation, as any function. */
static void eager(void **state) {
  (void)state;
  const ax_mesh mesh = grid();
  ax_mesh by_hand;
  TEST_OK(ax_mesh_manual(&mesh, "data", &by_hand));
  float numbers[] = {1, 2, 3, 4};
  ax_host_array in = {.dtype = AX_F32, .rank = 1, .dims = {4}, .data = numbers}, out = {0};
  TEST_OK(ax_apply(NULL, AX_SHARDED(&by_hand, "data -> data", AX_FN(twice_sum, 1, 1)), &in, &out));
  const float *made = out.data;
  assert_true(made[0] == 5 && made[1] == 8 && made[2] == 7 && made[3] == 10);
  ax_host_array_release(&out);
}

/* A psum over data of what lies along model goes over blocks: a half of the bytes. */
static double received(const char *layout) {
  char text[1024];
  snprintf(
      text, sizeof text,
      "{ lambda x:f32[8,512,512]. let y:f32[512,512] = shard_map[mesh=(data=4, auto model=2) unchecked=false in_specs=(P(data)) out_specs=(P())"
      "  body={ axes data=4 auto model=2 ; lambda a:f32[2,512,512]{V:data}. let"
      "    b:f32[2,512,512]{V:data} = sharding_constraint[mesh=(model=2) specs=(%s)] a"
      "    c:f32[512,512]{V:data} = reduce_sum[axes=(0)] b"
      "    d:f32[512,512] = psum[axes=(data)] c"
      "    in (d) }] x in (y) }",
      layout);
  ax_program *program = parsed(text);
  ax_cost cost;
  TEST_OK(ax_program_cost(program, &cost));
  const double bytes = cost.received;
  ax_cost_release(&cost);
  ax_program_release(program);
  return bytes;
}
static void bytes(void **state) {
  (void)state;
  const double whole = received("P()"), cut = received("P(_, model)"), across = received("P(_, _, model)");
  assert_true(whole == 2 * 0.75 * 4 * 512 * 512);
  assert_true(cut == whole / 2 && across == cut);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(transforms), cmocka_unit_test(pmap_around), cmocka_unit_test(called_without_axes),
      cmocka_unit_test(messages),   cmocka_unit_test(host_calls),  cmocka_unit_test(eager),
      cmocka_unit_test(bytes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
