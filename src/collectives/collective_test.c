/* Types and errors of the collectives, the parts of exchanges, and collectives in two parts. */
#include <string.h>

#include "axle/transform.h"
#include "collectives/collective.h"
#include "ir/flow.h"
#include "ir/memo.h"
#include "plan/plan.h"
#include "prim/prims.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/tensor.h"

static const int64_t shift[][2] = {{0, 1}, {1, 2}};

typedef ax_value (*function)(ax_value x);
static void call(const ax_value *in, ax_value *out, void *context) { out[0] = (*(function *)context)(in[0]); }

/* Traces f on x on the mesh a=2,b=3; unchecked: its axes are. */
static ax_status trace_as(function f, ax_type x, bool unchecked, ax_program **out) {
  ax_mesh mesh;
  assert_int_equal(ax_mesh_parse("a=2,b=3", &mesh), AX_OK);
  for (uint32_t i = 0; i < mesh.count; i++) mesh.axis[i].unchecked = unchecked;
  return ax_trace_on(&mesh, AX_CLOSURE(call, 1, 1, &f), &x, out);
}

static ax_type x_of(ax_dtype dtype, ax_axis_set varying) {
  ax_type type = ax_array_type(dtype, AX_DIMS(6, 4));
  type.spread.varying = varying;
  return type;
}

/* --- Types --- */

static ax_value psum_a(ax_value x) { return ax_psum(x, "a"); }
static ax_value psum_none(ax_value x) { return ax_psum(x, ""); }
static ax_value pmax_ab(ax_value x) { return ax_pmax(x, "a,b"); }
static ax_value pmean_b(ax_value x) { return ax_pmean(x, "b"); }
static ax_value gather_ba(ax_value x) { return ax_all_gather(x, "b,a", 1, true); }
static ax_value gather_new(ax_value x) { return ax_all_gather(x, "b", -1, false); }
static ax_value invariant_b(ax_value x) { return ax_all_gather_invariant(x, "b", 0, true); }
static ax_value scatter_b(ax_value x) { return ax_psum_scatter(x, "b", 0, true); }
static ax_value scatter_all(ax_value x) { return ax_psum_scatter(x, "b,a", 0, false); }
static ax_value exchange_b(ax_value x) { return ax_all_to_all(x, "b", 0, 1, true); }
static ax_value exchange_new(ax_value x) { return ax_all_to_all(x, "a,b", 0, 1, false); }
static ax_value permute_b(ax_value x) { return ax_ppermute(x, "b", 2, shift); }
static ax_value index_ba(ax_value x) { return (void)x, ax_axis_index("b,a"); }
static ax_value pvary_b(ax_value x) { return ax_pvary(x, "b"); }
static ax_value pcast_b(ax_value x) { return ax_pcast(x, "b", "varying"); }
static ax_value done_b(ax_value x) { return ax_done(ax_psum_start(x, "b")); }
static ax_value size_ab(ax_value x) { return ax_full_like(x, (double)ax_axis_size("a,b")); }

static void test_types(void **state) {
  (void)state;
  static const struct {
    function f;
    const char *varying, *invariant, *unchecked; /* of the result, when x is typed so */
  } rows[] = {
      {psum_a, "f32[6,4]{V:b}", "f32[6,4]", "f32[6,4]"},
      {done_b, "f32[6,4]{V:a}", "f32[6,4]", "f32[6,4]"},
      {psum_none, "f32[6,4]{V:a,b}", "f32[6,4]", "f32[6,4]"},
      {pmax_ab, "f32[6,4]", "f32[6,4]", "f32[6,4]"},
      {pmean_b, "f32[6,4]{V:a}", "f32[6,4]", "f32[6,4]"},
      {gather_ba, "f32[6,24]{V:a,b}", "f32[6,24]{V:a,b}", "f32[6,24]"},
      {gather_new, "f32[6,4,3]{V:a,b}", "f32[6,4,3]{V:b}", "f32[6,4,3]"},
      {invariant_b, "f32[18,4]{V:a}", "f32[18,4]", "f32[18,4]"},
      {scatter_b, "f32[2,4]{V:a,b}", "f32[2,4]{V:b}", "f32[2,4]"},
      {scatter_all, "f32[4]{V:a,b}", "f32[4]{V:a,b}", "f32[4]"},
      {exchange_b, "f32[2,12]{V:a,b}", "f32[2,12]{V:b}", "f32[2,12]"},
      {exchange_new, "f32[4,6]{V:a,b}", "f32[4,6]{V:a,b}", "f32[4,6]"},
      {permute_b, "f32[6,4]{V:a,b}", "f32[6,4]{V:b}", "f32[6,4]"},
      {index_ba, "s32[]{V:a,b}", "s32[]{V:a,b}", "s32[]"},
      {pvary_b, NULL, "f32[6,4]{V:b}", "f32[6,4]"},
      {pcast_b, NULL, "f32[6,4]{V:b}", "f32[6,4]"},
      {done_b, "f32[6,4]{V:a}", "f32[6,4]", "f32[6,4]"},
      {size_ab, "f32[6,4]", "f32[6,4]", "f32[6,4]"},
  };
  for (size_t i = 0; i < AX_COUNT(rows); i++)
    for (int how = 0; how < 3; how++) {
      const char *expected = how == 0 ? rows[i].varying : how == 1 ? rows[i].invariant : rows[i].unchecked;
      ax_program *program;
      if (expected == NULL) continue;
      ax_status status = trace_as(rows[i].f, x_of(AX_F32, how == 0 ? 3 : 0), how == 2, &program);
      if (status != AX_OK) fail_msg("row %zu: %s", i, ax_message());
      assert_string_equal(ax_type_string(ax_program_out_type(program, 0), ax_program_axes(program)), expected);
      ax_program_release(program);
    }
}

/* --- Errors --- */

static ax_value unknown_axis(ax_value x) { return ax_psum(x, "c"); }
static ax_value axis_twice(ax_value x) { return ax_all_gather(x, "a,a", 0, true); }
static ax_value bad_name(ax_value x) { return ax_ppermute(x, "a,,b", 1, shift); }
static ax_value unknown_index(ax_value x) { return (void)x, ax_axis_index("data"); }
static ax_value unknown_size(ax_value x) { return ax_full_like(x, (double)ax_axis_size("data")); }
static ax_value gather_far(ax_value x) { return ax_all_gather(x, "a", 2, true); }
static ax_value gather_farther(ax_value x) { return ax_all_gather(x, "a", -4, false); }
static ax_value scatter_odd(ax_value x) { return ax_psum_scatter(x, "b", 1, true); }
static ax_value scatter_untiled(ax_value x) { return ax_psum_scatter(x, "b", 1, false); }
static ax_value exchange_odd(ax_value x) { return ax_all_to_all(x, "b", 1, 0, true); }
static ax_value exchange_untiled(ax_value x) { return ax_all_to_all(x, "b", 0, 1, false); }
static ax_value exchange_far(ax_value x) { return ax_all_to_all(x, "b", 0, 7, true); }
static ax_value permute_outside(ax_value x) { return ax_ppermute(x, "a", 2, shift); }
static ax_value permute_negative(ax_value x) { return ax_ppermute(x, "a", AX_PAIRS({-1, 0})); }
static ax_value source_twice(ax_value x) { return ax_ppermute(x, "b", AX_PAIRS({0, 1}, {2, 0}, {0, 2})); }
static ax_value target_twice(ax_value x) { return ax_ppermute(x, "b", AX_PAIRS({0, 1}, {2, 1})); }
static ax_value broadcast_far(ax_value x) { return ax_pbroadcast(x, "b", 3); }
static ax_value broadcast_negative(ax_value x) { return ax_pbroadcast(x, "a", -1); }
static ax_value pcast_invariant(ax_value x) { return ax_pcast(x, "a", "invariant"); }
static ax_value pcast_unreduced(ax_value x) { return ax_pcast(x, "a", "unreduced"); }
static ax_value pcast_nothing(ax_value x) { return ax_pcast(x, "a", ""); }
static ax_value done_alone(ax_value x) { return ax_done(x); }
static ax_value done_late(ax_value x) { return ax_done(ax_neg(ax_psum_start(x, "a"))); }
static ax_value done_twice(ax_value x) {
  ax_value started = ax_psum_start(x, "b");
  return ax_add(ax_done(started), ax_done(started));
}
static ax_value never_done(ax_value x) {
  ax_all_to_all_start(x, "b", 0, 0, true);
  return x;
}
static ax_value returned(ax_value x) { return ax_start(ax_pmax(x, "b")); }
static void ends_outer(const ax_value *in, ax_value *out, void *context) {
  (void)in;
  out[0] = ax_done(*(ax_value *)context);
}
static ax_value captured(ax_value x) {
  ax_value started = ax_psum_start(x, "b"), out;
  ax_switch(ax_full(AX_S32, AX_DIMS(), 0), AX_LIST(1, &AX_CLOSURE(ends_outer, 0, 1, &started)), NULL, &out);
  return out;
}
static void summed(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_psum(in[0], "a");
}
static ax_value start_nowhere(ax_value x) { return ax_done(ax_psum_start(x, "c")); }
static ax_value start_number(ax_value x) {
  (void)x;
  return ax_done(ax_start(ax_integer(3)));
}
static ax_value start_nothing(ax_value x) { return ax_done(ax_start(x)); }
static ax_value start_never_set(ax_value x) {
  (void)x;
  return ax_done(ax_start((ax_value){0, 0}));
}
static ax_value start_nested(ax_value x) { return ax_done(ax_start(ax_done(ax_psum_start(x, "a")))); }
static ax_value start_future(ax_value x) { return ax_done(ax_start(ax_start(ax_psum(x, "a")))); }
static ax_value start_of_future(ax_value x) {
  ax_value begun = ax_psum_start(x, "b");
  return ax_done(ax_start(ax_psum(ax_done(begun), "a")));
}
static ax_value start_of_cond(ax_value x) {
  ax_value out;
  return ax_done(ax_start((ax_switch(ax_full(AX_S32, AX_DIMS(), 0), AX_LIST(1, &AX_FN(summed, 1, 1)), &x, &out), out)));
}
static ax_value start_failing(ax_value x) { return ax_done(ax_start(ax_psum(ax_matmul(x, x), "a"))); }
static ax_value start_failed(ax_value x) {
  ax_value bad = ax_matmul(x, x);
  return ax_done(ax_start(ax_psum(ax_done(ax_start(bad)), "a")));
}
static ax_value start_dropped(ax_value x) {
  ax_start(ax_psum(ax_exp(x), "a"));
  return x;
}
static ax_value bare_psum(ax_value x) {
  ax_axes names = {.count = 1, .name = {"a"}};
  return ax_bind1(&ax_prim_psum, &names, &x, 1);
}

static void test_errors(void **state) {
  (void)state;
  static const struct {
    function f;
    ax_dtype dtype;
    ax_axis_set varying;
    ax_status status;
    const char *message;
  } rows[] = {
      {unknown_axis, AX_F32, 3, AX_INVALID_ARGUMENT, "psum: axis \"c\" is not bound; bound are a (2), b (3)"},
      {axis_twice, AX_F32, 3, AX_INVALID_ARGUMENT, "all_gather: axis \"a\" is named twice"},
      {bad_name, AX_F32, 3, AX_INVALID_ARGUMENT, "ppermute: axis names \"a,,b\""},
      {unknown_index, AX_F32, 3, AX_INVALID_ARGUMENT, "axis_index: axis \"data\" is not bound; bound are a (2), b (3)"},
      {unknown_size, AX_F32, 3, AX_INVALID_ARGUMENT, "axis_size: axis \"data\" is not bound; bound are a (2), b (3)"},
      {scatter_b, AX_BOOL, 3, AX_INVALID_ARGUMENT, "needs a numeric dtype, got bool"},
      {bare_psum, AX_F32, 2, AX_INVALID_ARGUMENT, "the operand f32[6,4]{V:b} is invariant over {a}; pvary makes it varying"},
      {pvary_b, AX_F32, 3, AX_INVALID_ARGUMENT, "pvary f32[6,4]{V:a,b}: the operand varies over {b} already"},
      {pcast_b, AX_F32, 3, AX_INVALID_ARGUMENT, "pcast: no cast along \"b\" from varying to varying; it is that already"},
      {gather_far, AX_F32, 3, AX_INVALID_ARGUMENT, "all_gather: dimension is 2, but there are 2 dimensions"},
      {gather_farther, AX_F32, 3, AX_INVALID_ARGUMENT, "all_gather: dimension is -4, but there are 3 dimensions"},
      {scatter_odd, AX_F32, 3, AX_INVALID_ARGUMENT, "dimension 1 of size 4 does not divide by the 3 members along {b}"},
      {scatter_untiled, AX_F32, 3, AX_INVALID_ARGUMENT, "dimension 1 of size 4 must have the size of the group along \"b\", 3"},
      {exchange_odd, AX_F32, 3, AX_INVALID_ARGUMENT, "dimension 1 of size 4 does not divide by the 3 members along {b}"},
      {exchange_untiled, AX_F32, 3, AX_INVALID_ARGUMENT, "split_axis 0 of size 6 must have the size of the group along \"b\", 3"},
      {exchange_far, AX_F32, 3, AX_INVALID_ARGUMENT, "all_to_all: concat_axis is 7, but there are 2 dimensions"},
      {permute_outside, AX_F32, 3, AX_INVALID_ARGUMENT, "pair (1, 2): the group's members are 0 to 1"},
      {permute_negative, AX_F32, 3, AX_INVALID_ARGUMENT, "pair (-1, 0): the group's members are 0 to 1"},
      {source_twice, AX_F32, 3, AX_INVALID_ARGUMENT, "pairs (0, 1) and (0, 2) have the same source"},
      {target_twice, AX_F32, 3, AX_INVALID_ARGUMENT, "pairs (0, 1) and (2, 1) have the same target"},
      {broadcast_far, AX_F32, 3, AX_INVALID_ARGUMENT, "pbroadcast f32[6,4]{V:a,b}: source is 3: the group's members are 0 to 2"},
      {broadcast_negative, AX_F32, 3, AX_INVALID_ARGUMENT, "source is -1: the group's members are 0 to 1"},
      {pcast_invariant, AX_F32, 3, AX_INVALID_ARGUMENT,
       "pcast: no cast along \"a\" from varying to invariant; psum, pmax, pmin and all_gather_invariant make values invariant"},
      {pcast_unreduced, AX_F32, 2, AX_INVALID_ARGUMENT,
       "pcast: no cast along \"a\" from invariant to unreduced; every device would add the same value"},
      {pcast_nothing, AX_F32, 3, AX_INVALID_ARGUMENT, "pcast: to \"\": expected \"varying\""},
      {done_alone, AX_F32, 3, AX_INVALID_ARGUMENT, "done f32[6,4]{V:a,b}: operand 0 is f32[6,4]{V:a,b}, no future"},
      {done_late, AX_F32, 3, AX_INVALID_ARGUMENT,
       "neg future<f32[6,4]{V:b}>: operand 0 is future<f32[6,4]{V:b}>, which done must end first"},
      {done_twice, AX_F32, 3, AX_INVALID_ARGUMENT, "the future<f32[6,4]{V:a}> of psum, start in equation 0, is done twice"},
      {never_done, AX_F32, 3, AX_INVALID_ARGUMENT, "the future<f32[6,4]{V:a,b}> of all_to_all, start in equation 0, is never done"},
      {returned, AX_F32, 3, AX_INVALID_ARGUMENT,
       "the future<f32[6,4]{V:a}> of pmax, start in equation 0, is a result of its program"},
      {captured, AX_F32, 3, AX_INVALID_ARGUMENT,
       "the future<f32[6,4]{V:a}> of psum, start in equation 0, is used in a body; done must end it before"},
      {start_nowhere, AX_F32, 3, AX_INVALID_ARGUMENT, "psum: axis \"c\" is not bound"},
      {start_number, AX_F32, 3, AX_INVALID_ARGUMENT, "start: the expression is a number; nothing is started"},
      {start_nothing, AX_F32, 3, AX_INVALID_ARGUMENT, "start: the expression is a value made before; nothing is started"},
      {start_never_set, AX_F32, 3, AX_INVALID_ARGUMENT, "start: the operand is a value that was never set"},
      {start_nested, AX_F32, 3, AX_INVALID_ARGUMENT,
       "the body holds a start; it may have collectives and operations of each device"},
      {start_future, AX_F32, 3, AX_INVALID_ARGUMENT, "is a result of its program; done must end it"},
      {start_of_future, AX_F32, 3, AX_INVALID_ARGUMENT,
       "the future<f32[6,4]{V:a}> of psum, start in equation 0, is used in a body; done must end it before"},
      {start_of_cond, AX_F32, 3, AX_INVALID_ARGUMENT,
       "the body holds a cond with collectives in it; it may have collectives and operations of each device"},
      {start_failing, AX_F32, 3, AX_INVALID_ARGUMENT, "matmul: f32[6,4]{V:a,b} and f32[6,4]{V:a,b}: the last dimension"},
      {start_failed, AX_F32, 3, AX_INVALID_ARGUMENT, "matmul: f32[6,4]{V:a,b} and f32[6,4]{V:a,b}: the last dimension"},
      {start_dropped, AX_F32, 3, AX_INVALID_ARGUMENT, "the future<f32[6,4]{V:b}> of psum, start in equation 0, is never done"},
  };
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    ax_program *program;
    ax_status status = trace_as(rows[i].f, x_of(rows[i].dtype, rows[i].varying), false, &program);
    if (status != rows[i].status || strstr(ax_message(), rows[i].message) == NULL)
      fail_msg("row %zu: %s: %s", i, ax_status_name(status), status != AX_OK ? ax_message() : "");
    assert_null(program);
  }
}

/* --- The parts of exchanges: dimensions that lie together on both sides are one --- */

static void test_parts(void **state) {
  (void)state;
  ax_exchange e = {0};
  const int64_t x[] = {2, 3, 5, 7}, wide[] = {2, 12, 5, 7};
  ax_exchange_parts(&e, 4, x, x, -1, wide, 1); /* gathering 4 along dimension 1 */
  assert_int_equal(e.rank, 2);
  assert_memory_equal(e.dims, ((int64_t[]){2, 105}), 16);
  assert_memory_equal(e.src_stride, ((int64_t[]){105, 1}), 16);
  assert_memory_equal(e.dst_stride, ((int64_t[]){420, 1}), 16);
  assert_int_equal(e.src_step, 0);
  assert_int_equal(e.dst_step, 105);
  const int64_t square[] = {1, 1}, split[] = {4, 1}, joined[] = {1, 4};
  ax_exchange_parts(&e, 2, square, split, 0, joined, 1); /* one element */
  assert_int_equal(e.rank, 1);
  assert_int_equal(e.dims[0], 1);
  assert_int_equal(e.src_step, 1);
  assert_int_equal(e.dst_step, 1);
  ax_exchange_parts(&e, 0, NULL, NULL, -1, NULL, -1);
  assert_int_equal(e.rank, 1);
  assert_int_equal(e.dims[0], 1);
}

/* --- In two parts --- */

static ax_value overlapped(ax_value x) {
  ax_value started = ax_psum_start(x, "b"), other = ax_exp(x), sum = ax_done(started);
  return ax_mul(ax_pvary(sum, "b"), other);
}

/* The kinds of the operations that f lowers to: K(ernel), S(tart), D(one). */
static void lowered(function f, ax_dtype dtype, char *out) {
  ax_program *program;
  assert_int_equal(trace_as(f, x_of(dtype, 3), false, &program), AX_OK);
  ax_plan plan = {.mesh = program->axes};
  ax_memo memo = {0};
  ax_flow flow = {.memo = &memo, .question = "differs"};
  ax_lower lower = {.plan = &plan, .block = &plan.block, .flow = &flow};
  uint32_t in, result;
  assert_int_equal(ax_lower_buffer(&lower, &program->types[0], 3, &in), AX_OK);
  assert_int_equal(ax_lower_program(&lower, program, &in, &result), AX_OK);
  for (uint32_t i = 0; i < plan.block.count; i++)
    *out++ = plan.block.ops[i].kind == AX_OP_START ? 'S' : plan.block.ops[i].kind == AX_OP_DONE ? 'D' : 'K';
  *out = 0;
  ax_free(plan.buffers);
  ax_free(lower.buffers);
  ax_memo_deinit(&memo);
  ax_arena_deinit(&plan.arena);
  ax_arena_deinit(&plan.drafts);
  ax_program_release(program);
}

static void test_async(void **state) {
  (void)state;
  char ops[16];
  lowered(overlapped, AX_F32, ops);
  assert_string_equal(ops, "SDKK");
  lowered(overlapped, AX_BF16, ops); /* combined in f32 as it is delivered, and converted back after */
  assert_string_equal(ops, "SDKKK");
  lowered(psum_a, AX_BF16, ops);
  assert_string_equal(ops, "SDK");
}

/* Each collective in two parts is typed as in one, and what is started says so. */
typedef struct pair {
  ax_value (*whole)(ax_value x), (*begun)(ax_value x);
} pair;
static ax_value whole_mean(ax_value x) { return ax_pmean(x, "b"); }
static ax_value whole_max(ax_value x) { return ax_pmax(x, "a,b"); }
static ax_value whole_min(ax_value x) { return ax_pmin(x, "b"); }
static ax_value whole_gather(ax_value x) { return ax_all_gather(x, "b,a", 1, false); }
static ax_value whole_same(ax_value x) { return ax_all_gather_invariant(x, "b", 0, true); }
static ax_value whole_scatter(ax_value x) { return ax_psum_scatter(x, "a", 0, true); }
static ax_value whole_trade(ax_value x) { return ax_all_to_all(x, "a", 0, 1, true); }
static ax_value whole_shift(ax_value x) { return ax_ppermute(x, "b", 2, shift); }
static ax_value mixed(ax_value x, ax_value y) { return ax_add(ax_pmean(ax_mul(x, y), "b"), ax_pshift(ax_neg(y), "a", 1, true)); }
static ax_value whole_mixed(ax_value x) { return mixed(x, ax_exp(x)); }
static ax_value begun_mixed(ax_value x) {
  ax_value y = ax_exp(x);
  return ax_start(mixed(x, y));
}
static ax_value whole_alone(ax_value x) { return ax_psum(x, ""); }
static ax_value begun_alone(ax_value x) { return ax_start(ax_psum(x, "")); }
static ax_value begun_mean(ax_value x) { return ax_start(ax_pmean(x, "b")); }
static ax_value begun_max(ax_value x) { return ax_start(ax_pmax(x, "a,b")); }
static ax_value begun_min(ax_value x) { return ax_start(ax_pmin(x, "b")); }
static ax_value begun_gather(ax_value x) { return ax_all_gather_start(x, "b,a", 1, false); }
static ax_value begun_same(ax_value x) { return ax_start(ax_all_gather_invariant(x, "b", 0, true)); }
static ax_value begun_scatter(ax_value x) { return ax_psum_scatter_start(x, "a", 0, true); }
static ax_value begun_trade(ax_value x) { return ax_all_to_all_start(x, "a", 0, 1, true); }
static ax_value begun_shift(ax_value x) { return ax_ppermute_start(x, "b", 2, shift); }

static void both(const ax_value *in, ax_value *out, void *context) {
  const pair *p = context;
  ax_value begun = p->begun(in[0]);
  ax_type future = ax_typeof(begun);
  out[0] = p->whole(in[0]);
  out[1] = ax_done(begun);
  ax_type whole = ax_typeof(out[0]), done = ax_typeof(out[1]);
  assert_true(ax_type_equal(&whole, &done) && future.form == AX_FUTURE);
  future.form = AX_ARRAY;
  assert_true(ax_type_equal(&whole, &future));
}

static void test_pairs(void **state) {
  (void)state;
  static const pair pairs[] = {{whole_mean, begun_mean},     {whole_max, begun_max},     {whole_min, begun_min},
                               {whole_gather, begun_gather}, {whole_same, begun_same},   {whole_scatter, begun_scatter},
                               {whole_trade, begun_trade},   {whole_shift, begun_shift}, {whole_mixed, begun_mixed},
                               {whole_alone, begun_alone}};
  ax_mesh mesh;
  assert_int_equal(ax_mesh_parse("a=2,b=3", &mesh), AX_OK);
  ax_type type = x_of(AX_F32, 3);
  for (size_t i = 0; i < AX_COUNT(pairs); i++) {
    ax_program *program;
    assert_int_equal(ax_trace_on(&mesh, AX_CLOSURE(both, 1, 2, (void *)&pairs[i]), &type, &program), AX_OK);
    assert_int_equal(ax_program_verify(program), AX_OK);
    ax_program_release(program);
  }
}

/* A start of several futures, of which each program that a transform makes needs some: none is left open. */
static void test_several_futures(void **state) {
  (void)state;
  static const char text[] =
      "{ axes d=2 ; lambda x:f32[]{V:d} w:f32[]{V:d}. let\n"
      "  c:f32[]{V:d} = pvary[axes=(d,)] 2.0:f32[]\n"
      "  s:future<f32[]> t:future<f32[]> = start[body={ lambda a:f32[]{V:d}. let b:f32[] = psum[axes=(d,)] a e:f32[]{V:d} = exp a\n"
      "    f:f32[] = pmax[axes=(d,)] e in (b, f) }] c\n"
      "  p:future<f32[]> q:future<f32[]> = start[body={ lambda a:f32[]{V:d} b:f32[]{V:d}. let e:f32[] = psum[axes=(d,)] a\n"
      "    f:f32[] = pmax[axes=(d,)] b in (e, f) }] x w\n"
      "  u:f32[] = done s v:f32[] = done t g:f32[] = done p h:f32[] = done q\n"
      "  k:f32[]{V:d} = pvary[axes=(d,)] u y:f32[]{V:d} = mul x k z:f32[] = mul h v l:f32[] = psum[axes=(d,)] y\n"
      "  n:f32[] = add l g m:f32[] = add n z\n"
      "  in (m, h) }";
  ax_program *program, *primal, *tangent, *made[5];
  uint32_t residuals;
  assert_int_equal(ax_program_parse(text, sizeof text - 1, NULL, &program), AX_OK);
  assert_int_equal(ax_program_linearize(program, AX_FIRST(1), &primal, &tangent, &residuals), AX_OK);
  assert_int_equal(ax_program_jvp(program, AX_ALL_ARGS, &made[0]), AX_OK);
  assert_int_equal(ax_program_value_and_grad(program, AX_FIRST(1), &made[1]), AX_OK);
  assert_int_equal(ax_program_grad(program, AX_FIRST(1), &made[2]), AX_OK); /* h is not needed */
  assert_int_equal(ax_program_vmap(program, &(ax_vmap_options){.size = 3}, &made[3]), AX_OK);
  assert_int_equal(ax_program_simplify(program, &made[4]), AX_OK);
  for (size_t i = 0; i < AX_COUNT(made); i++) {
    assert_int_equal(ax_program_verify(made[i]), AX_OK);
    ax_program_release(made[i]);
  }
  ax_program *rest[] = {program, primal, tangent};
  for (size_t i = 0; i < AX_COUNT(rest); i++) {
    assert_int_equal(ax_program_verify(rest[i]), AX_OK);
    ax_program_release(rest[i]);
  }
}

/* --- Memory --- */

static ax_value everything(ax_value x) {
  ax_value y = ax_psum_scatter(ax_all_gather(x, "b,a", 0, true), "a,b", 0, true);
  y = ax_ppermute(ax_all_to_all(y, "a,b", 0, 1, false), "b,a", 2, shift);
  y = ax_add(ax_reshape(y, AX_DIMS(6, 4)), ax_pmean(x, "b,a"));
  return ax_add(ax_done(ax_psum_start(y, "a")), ax_convert_element_type(ax_axis_index("a,b"), AX_F32));
}

static ax_status transform(void *context) {
  (void)context;
  ax_program *program, *jvp = NULL, *transposed = NULL, *batched = NULL;
  AX_TRY(trace_as(everything, x_of(AX_F32, 3), false, &program));
  ax_status status = ax_program_jvp(program, AX_ALL_ARGS, &jvp);
  if (status == AX_OK) status = ax_program_vmap(program, &(ax_vmap_options){.size = 3, .axis_name = "b"}, &batched);
  ax_program_release(program);
  program = NULL;
  if (status == AX_OK) status = trace_as(gather_ba, x_of(AX_F32, 3), false, &program);
  if (status == AX_OK) status = ax_program_transpose(program, AX_FIRST(1), &transposed);
  ax_program_release(program);
  ax_program_release(jvp);
  ax_program_release(transposed);
  ax_program_release(batched);
  return status;
}

static void test_memory(void **state) {
  (void)state;
  assert_true(test_each_allocation(transform, NULL) > 10);
}

/* --- Parts of the rules, by hand --- */

static void names_around_one(void **state) {
  (void)state;
  const ax_axes names = {3, {"a", "b", "c"}, {0}};
  ax_axes before, after, others;
  assert_true(ax_axes_around(&names, "b", &before, &after));
  assert_string_equal(ax_axes_listed(&before).text, "a");
  assert_string_equal(ax_axes_listed(&after).text, "c");
  assert_true(ax_axes_without(&names, "a", &others));
  assert_string_equal(ax_axes_listed(&others).text, "b,c");
  assert_false(ax_axes_without(&names, "z", &others));
  assert_string_equal(ax_axes_listed(&others).text, "a,b,c");
  assert_false(ax_axes_without(&names, NULL, &others));
}

static void sums_are_made_in_a_wider_dtype(void **state) {
  (void)state;
  assert_int_equal(ax_combined_in(AX_SCALAR_ADD, AX_BF16, 2), AX_F32);
  assert_int_equal(ax_combined_in(AX_SCALAR_ADD, AX_F32, 128), AX_F32);
  assert_int_equal(ax_combined_in(AX_SCALAR_ADD, AX_F32, 129), AX_F64);
  assert_int_equal(ax_combined_in(AX_SCALAR_MAX, AX_F32, 1000), AX_F32);
  assert_int_equal(ax_combined_in(AX_SCALAR_ADD, AX_S8, 1000), AX_S8);
}

/* (2^24 + 1) + -2^24 in f32: the order of members shows. */
static void members_are_combined_in_their_order(void **state) {
  (void)state;
  float a = 0x1p24f, b = 1, c = -0x1p24f;
  ax_tensor t[] = {{AX_F32, 0, {0}, &a}, {AX_F32, 0, {0}, &b}, {AX_F32, 0, {0}, &c}};
  assert_true(ax_combine_members(AX_SCALAR_ADD, (ax_tensor *[]){&t[0], &t[1], &t[2]}, 3, 0).f == 0);
  assert_true(ax_combine_members(AX_SCALAR_ADD, (ax_tensor *[]){&t[0], &t[2], &t[1]}, 3, 0).f == 1);
  assert_true(ax_combine_members(AX_SCALAR_MIN, (ax_tensor *[]){&t[0], &t[1], &t[2]}, 3, 0).f == -0x1p24);
}

static void dimensions_grow_and_are_cut(void **state) {
  (void)state;
  ax_type type = ax_array_type(AX_F32, AX_DIMS(6, 4));
  ax_mesh mesh;
  assert_int_equal(ax_mesh_parse("a=2,b=3", &mesh), AX_OK);
  const ax_axes b = {1, {"b"}, {0}};
  const ax_infer_args args = {.axes = &mesh, .params = &b, .in = &type, .in_count = 1};
  assert_int_equal(ax_grow_dimension(&type, 1, 3), AX_OK);
  assert_int_equal(type.dims[1], 12);
  assert_int_equal(ax_cut_dimension(&type, 0, 3, &args), AX_OK);
  assert_int_equal(type.dims[0], 2);
  assert_int_equal(ax_cut_dimension(&type, 0, 3, &args), AX_INVALID_ARGUMENT);
  assert_string_equal(ax_message(), "dimension 0 of size 2 does not divide by the 3 members along {b}");
  type.dims[0] = INT64_C(1) << 62;
  assert_int_equal(ax_grow_dimension(&type, 0, 4), AX_INVALID_ARGUMENT);
  assert_string_equal(ax_message(), "4611686018427387904 times the group's 4 members is too large");
}

static void pairs_have_each_side_once(void **state) {
  (void)state;
  int64_t good[][2] = {{0, 1}, {1, 0}}, outside[][2] = {{0, 3}}, sources[][2] = {{0, 1}, {0, 2}}, targets[][2] = {{0, 1}, {2, 1}};
  assert_int_equal(ax_pairs_check(&(ax_pairs){2, good}, 3), AX_OK);
  assert_int_equal(ax_pairs_check(&(ax_pairs){0, NULL}, 3), AX_OK);
  assert_int_equal(ax_pairs_check(&(ax_pairs){1, outside}, 3), AX_INVALID_ARGUMENT);
  assert_string_equal(ax_message(), "pair (0, 3): the group's members are 0 to 2");
  assert_int_equal(ax_pairs_check(&(ax_pairs){2, sources}, 3), AX_INVALID_ARGUMENT);
  assert_int_equal(ax_pairs_check(&(ax_pairs){2, targets}, 3), AX_INVALID_ARGUMENT);
}

/* A part of columns: two of four, from the second on. */
static void a_part_begins_further_on(void **state) {
  (void)state;
  float data[12];
  const ax_tensor tensor = {AX_F32, 2, {3, 4}, data};
  const ax_strided rows = ax_tensor_part(&tensor, 0, 2), columns = ax_tensor_part(&tensor, 1, 1);
  assert_true(rows.data == data && rows.offset == 8 && rows.strides[0] == 4);
  assert_int_equal(columns.offset, 1);
}

/* --- Values --- */

static AX_BODY(reshaped) {
  (void)context;
  out[0] = ax_split_dim(in[0], 0, 3);
  out[1] = ax_fold_dims(out[0], 1);
  out[2] = ax_drop_dim(ax_reduce_sum(in[0], AX_DIMS(0), true), 0);
  out[3] = ax_combine_batch(AX_SCALAR_ADD, in[0], 1, 4);
  out[4] = ax_combine_batch(AX_SCALAR_ADD, in[0], -1, 5);
  out[5] = ax_combine_batch(AX_SCALAR_MAX, in[0], 1, 4);
  out[6] = ax_combine_batch(AX_SCALAR_MIN, in[0], 0, 6);
}

static void dimensions_are_split_folded_and_combined(void **state) {
  (void)state;
  const ax_type type = x_of(AX_F32, 0);
  static const char *const types[] = {"f32[3,2,4]", "f32[3,8]", "f32[4]", "f32[6]", "f32[6,4]", "f32[6]", "f32[4]"};
  static const struct {
    int64_t at;
    double is;
  } elements[] = {{7, 7}, {7, 7}, {3, 3 + 7 + 11 + 15 + 19 + 23}, {1, 4 + 5 + 6 + 7}, {7, 35}, {1, 7}, {3, 3}};
  double numbers[24];
  for (int i = 0; i < 24; i++) numbers[i] = i;
  ax_program *program = test_trace(reshaped, NULL, &type, 1, 7);
  ax_tensor *x = test_tensor(type, numbers), *y[7];
  test_run(program, &x, y);
  for (uint32_t k = 0; k < 7; k++) {
    assert_string_equal(ax_type_string(ax_program_out_type(program, k), NULL), types[k]);
    assert_true(test_get(y[k], elements[k].at) == elements[k].is);
  }
  test_release(&x, 1), test_release(y, 7);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_types),
      cmocka_unit_test(test_errors),
      cmocka_unit_test(test_parts),
      cmocka_unit_test(test_async),
      cmocka_unit_test(test_pairs),
      cmocka_unit_test(test_several_futures),
      cmocka_unit_test(test_memory),
      cmocka_unit_test(names_around_one),
      cmocka_unit_test(sums_are_made_in_a_wider_dtype),
      cmocka_unit_test(members_are_combined_in_their_order),
      cmocka_unit_test(dimensions_grow_and_are_cut),
      cmocka_unit_test(pairs_have_each_side_once),
      cmocka_unit_test(a_part_begins_further_on),
      cmocka_unit_test(dimensions_are_split_folded_and_combined),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
