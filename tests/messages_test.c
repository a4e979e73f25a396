/* Messages: what is refused while programs are made, and when they run; that no pass drops, doubles, merges or moves one; tokens as
   operands and carries; derivatives and batches. That values are right in every order is shown by random_messages_test.c. */
#include <stdlib.h>
#include <string.h>

#include "axle/exec.h"
#include "axle/ops.h"
#include "axle/transform.h"
#include "ir/program.h"
#include "support/cmocka.h"
#include "support/lanes.h"
#include "support/run.h"

/* --- What programs may not say --- */

static ax_status parse(const char *text, ax_program **out) { return ax_program_parse(text, strlen(text), "t", out); }

static ax_program *parsed(const char *text) {
  ax_program *program;
  TEST_OK(parse(text, &program));
  return program;
}

#define SEND "psend[axes=(d) pairs=((0, 1)) link=0]"
#define RECEIVE "precv[dtype=f32 dims=(2) axes=(d) pairs=((0, 1)) link=0]"
#define X "x:f32[2]{V:d}"

static void refused(void **state) {
  (void)state;
  static const struct {
    const char *text, *part;
  } rows[] = {
      {"{ axes d=2 ; lambda " X ". let\n t:token{V:d} = " SEND " x\n y:f32[2]{V:d} = " RECEIVE " t\n z:f32[2]{V:d} = " RECEIVE
       " t\n in (y, z) }",
       "the token{V:d} of psend in line 2 is used twice: by precv in line 3 and by precv in line 4"},
      {"{ axes d=2 ; lambda " X ". let t:token{V:d} = " SEND " x in (t) }",
       "result 0 is token{V:d}: a token is of one run of a program"},
      {"{ axes d=2 ; lambda t:token. let y:f32[2]{V:d} = " RECEIVE " t in (y) }",
       "input 0 is token: a token is of one run of a program"},
      {"{ axes d=2 ; lambda " X ". let t:token{V:d} = " SEND " x y:f32[2]{V:d} = neg t in (y) }",
       "operand 0 is token{V:d}, which only precv takes"},
      {"{ axes d=2 ; lambda " X ". let y:f32[2]{V:d} = " RECEIVE " x in (y) }", "operand 0 is f32[2]{V:d}, no token"},
      {"{ axes d=2 ; lambda x:f32[2]. let t:token{V:d} = " SEND " x in (x) }", "invariant over {d}"},
      {"{ axes d=2 ; lambda x:f32[2]{U:d}. let t:token{V:d} = " SEND " x in (x) }", "is unreduced by sum over {d}"},
      {"{ axes d=2 ; lambda x:f32[2]{R:d}. let t:token{V:d} = " SEND " x in (x) }", "reduced_vary_cast makes it varying"},
      {"{ axes d=2 ; lambda " X ". let t:token{V:d} = psend[axes=(d) pairs=((0, 2)) link=0] x in (x) }",
       "the group's members are 0 to 1"},
      {"{ axes d=2 ; lambda " X ". let t:token{V:d} = psend[axes=(d) pairs=((0, 1), (0, 0)) link=0] x in (x) }",
       "have the same source"},
      {"{ axes d=2 ; lambda " X
       ". let t:token = create_token y:f32[2]{V:d} = precv[dtype=f32 dims=(2) axes=(d) pairs=((0, 1), (1, 1)) link=0] t in (y) }",
       "have the same target"},
      {"{ axes d=2 ; lambda " X ". let t:token{V:d} = psend[axes=(e) pairs=((0, 1)) link=0] x in (x) }", "axis \"e\" is not bound"},
      {"{ axes d=2 ; lambda " X ". let t:token{V:d} = psend[axes=(d) pairs=((0, 1)) link=-1] x in (x) }", "the link is -1"},
      {"{ axes d=2 ; lambda " X ". let t:token{V:d} = psend[axes=(d) pairs=((0, 1)) link=4611686018427387904] x in (x) }",
       "the link is 4611686018427387904"},
      {"{ axes d=2 ; lambda " X ". let t:token = create_token"
       " y:f32[2]{V:d} = scan[length=3 reverse=false num_consts=1 num_carry=1 body={ axes d=2 ; lambda t:token a:f32[2]{V:d}. let"
       " b:f32[2]{V:d} = " RECEIVE " t in (b) }] t x in (y) }",
       "the body of a scan uses a token from outside, and would again each time round; carry it"},
      {"{ axes d=2 ; lambda " X ". let"
       " y:f32[2]{V:d} t:f32[3] = scan[length=3 reverse=false num_consts=0 num_carry=1 body={ axes d=2 ; lambda a:f32[2]{V:d}. let"
       " t:token{V:d} = " SEND " a in (a, t) }] x in (y) }",
       "ys 0 is a token, which cannot be stacked; carry it"},
      {"{ axes d=2 ; lambda " X
       ". let s:future<f32[2]{V:d}> = start[body={ axes d=2 ; lambda a:f32[2]{V:d}. let t:token{V:d} = " SEND " a in (a) }] x"
       " y:f32[2]{V:d} = done s in (y) }",
       "the body has messages between two devices"},
      /* another collective beside the messages is refused as ever */
      {"{ axes d=2 ; lambda " X ". let i:s32[]{V:d} = axis_index[axes=(d)] y:f32[2]{V:d} = cond[branches=("
       "{ axes d=2 ; lambda a:f32[2]{V:d}. let t:token{V:d} = " SEND " a in (a) },"
       "{ axes d=2 ; lambda a:f32[2]{V:d}. let s:f32[2] = psum[axes=(d)] a b:f32[2]{V:d} = pvary[axes=(d)] s in (b) })] i x in (y) }",
       "devices may differ along {d} in what they run here, so not all of them would reach the psum over {d} in branch 1"},
  };
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    ax_program *program;
    TEST_FAILS(parse(rows[i].text, &program), AX_PARSE_ERROR, rows[i].part);
  }
}

static void traced(const ax_value *in, ax_value *out, void *context) {
  const int64_t pairs[][2] = {{0, 1}};
  ax_type type = ax_array_type(AX_F32, AX_DIMS(2));
  out[0] = in[0];
  switch (*(const int *)context) {
    case 0: out[0] = ax_psend(in[0], "d", 1, pairs); break;
    case 1: out[0] = ax_precv(in[0], type, "d", 1, pairs); break;
    case 2: out[0] = ax_precv(ax_create_token(), (ax_type){0}, "d", 1, pairs); break;
    case 3: out[0] = ax_precv(ax_psend(in[0], "d", 1, NULL), type, "d", 1, pairs); break;
    case 4: out[0] = ax_precv(ax_create_token(), ax_typeof(ax_create_token()), "d", 1, pairs); break;
    default: out[0] = ax_add(in[0], ax_create_token()); break;
  }
}

static void refused_while_tracing(void **state) {
  (void)state;
  static const char *const parts[] = {"result 0 is token{V:d}", "no token", "no dtype", "there are no pairs", "is that of no array",
                                      "which only precv takes"};
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=2", &mesh));
  ax_type type = ax_array_type(AX_F32, AX_DIMS(2));
  type.spread.varying = 1;
  for (int i = 0; i < (int)AX_COUNT(parts); i++) {
    ax_program *program;
    TEST_FAILS(ax_trace_on(&mesh, AX_CLOSURE(traced, 1, 1, &i), &type, &program), AX_INVALID_ARGUMENT, parts[i]);
  }
}

/* --- What runs find --- */

/* Runs it compiled and by reference; `part`: of both messages. */
static void fails(const char *text, ax_status kind, const char *part) {
  ax_program *program = parsed(text), *whole;
  TEST_OK(test_on_mesh(program, &whole));
  ax_tensor **in = calloc(whole->in_count, sizeof in[0]), **out = calloc(whole->out_count, sizeof out[0]);
  test_random random = {1};
  assert_true(in != NULL && out != NULL);
  for (uint32_t i = 0; i < whole->in_count; i++) in[i] = test_random_tensor(&random, whole->types[i], -1, 1);
  for (int again = 0; again < 2; again++) TEST_FAILS(test_try(whole, in, out), kind, part);
  TEST_FAILS(ax_evaluate(whole, in, out), kind, part);
  test_release(in, whole->in_count);
  free(in), free(out);
  ax_program_release(whole);
  ax_program_release(program);
}

static void wrong_runs(void **state) {
  (void)state;
  fails("{ axes d=2 ; lambda " X ". let t:token{V:d} = " SEND
        " x\n y:f32[3]{V:d} = precv[dtype=f32 dims=(3) axes=(d) pairs=((0, 1)) link=0] t in (y) }",
        AX_INVALID_ARGUMENT, "on device 1 (d=1) receives f32[3], but message 1 of device 0 (d=0) is f32[2], of psend f32[2]{V:d}");
  fails("{ axes d=2 ; lambda " X ". let t:token{V:d} = " SEND
        " x y:s32[2]{V:d} = precv[dtype=s32 dims=(2) axes=(d) pairs=((0, 1)) link=0] t in (y) }",
        AX_INVALID_ARGUMENT, "receives s32[2], but message 1 of device 0 (d=0) is f32[2]");
  fails("{ axes d=2 ; lambda " X ". let t:token{V:d} = " SEND " x u:token{V:d} = " SEND " x y:f32[2]{V:d} = " RECEIVE " t in (y) }",
        AX_INVALID_ARGUMENT, "message 2 ");
  fails("{ axes d=3 ; lambda " X ". let t:token{V:d} = " SEND " x in (x) }", AX_INVALID_ARGUMENT,
        ": message 1 of device 0 (d=0) to device 1 (d=1) is never received");
  fails("{ axes d=2 ; lambda " X ". let t:token = create_token y:f32[2]{V:d} = " RECEIVE " t in (y) }", AX_DEADLOCK,
        "message 1 of device 0 (d=0)");
  /* a link is of its set of axes: what is sent over d alone is not what is awaited over d and e */
  fails("{ axes d=2 e=1 ; lambda x:f32[2]{V:d,e}. let t:token{V:d,e} = " SEND " x"
        " y:f32[2]{V:d,e} = precv[dtype=f32 dims=(2) axes=(d, e) pairs=((0, 1)) link=0] t in (y) }",
        AX_DEADLOCK, "device 1 (d=1,e=0)");
  /* each waits for the other before it sends */
  fails("{ axes d=2 ; lambda " X
        ". let t:token = create_token y:f32[2]{V:d} = precv[dtype=f32 dims=(2) axes=(d) pairs=((0, 1), (1, 0)) link=0] t"
        " u:token{V:d} = psend[axes=(d) pairs=((0, 1), (1, 0)) link=0] y in (y) }",
        AX_DEADLOCK, "deadlock: 2 ");
  /* unchecked, a psum that only the device without a message comes to is found when it runs */
  fails(
      "{ axes d=2? ; lambda x:f32[2]. let i:s32[] = axis_index[axes=(d)] y:f32[2] = cond[branches=("
      "{ axes d=2? ; lambda a:f32[2]. let t:token = create_token b:f32[2] = precv[dtype=f32 dims=(2) axes=(d) pairs=((1, 0)) link=0] t in (b) },"
      "{ axes d=2? ; lambda a:f32[2]. let s:f32[2] = psum[axes=(d)] a t:token = psend[axes=(d) pairs=((1, 0)) link=0] s in (s) })] i x in (y) }",
      AX_DEADLOCK, "psum f32[2]");
}

/* --- Where it runs --- */

static void runs(const char *text) {
  ax_program *program = parsed(text), *whole;
  TEST_OK(test_on_mesh(program, &whole));
  test_random_run(whole, 3, false, 0);
  ax_program_release(whole);
  ax_program_release(program);
}

/* A link is the same in one shard_map and in the next over the same axes. */
static const char two_maps[] =
    "{ lambda x:f32[4]. let"
    " y:f32[4] = shard_map[mesh=(d=2) unchecked=false in_specs=(P(d),) out_specs=(P(d),) body={ axes d=2 ; lambda a:f32[2]{V:d}. let"
    "   t:token{V:d} = " SEND
    " a in (a) }] x"
    " z:f32[4] = neg y"
    " w:f32[4] = shard_map[mesh=(d=2) unchecked=false in_specs=(P(d),) out_specs=(P(d),) body={ axes d=2 ; lambda a:f32[2]{V:d}. let"
    "   t:token = create_token b:f32[2]{V:d} = " RECEIVE " t c:f32[2]{V:d} = add a b in (c) }] z in (w) }";

static void places(void **state) {
  (void)state;
  runs(two_maps);
  /* a token through a cond, a scan, a while and a call */
  runs(
      "{ axes d=2 ; lambda " X ". let t:token{V:d} = " SEND
      " x"
      " i:s32[]{V:d} = axis_index[axes=(d)]"
      " u:token{V:d} = cond[branches=({ axes d=2 ; lambda a:token{V:d}. let in (a) },"
      "   { axes d=2 ; lambda a:token{V:d}. let b:f32[2]{V:d} = " RECEIVE
      " a c:token = create_token e:token{V:d} = pvary[axes=(d)] c in (e) })] i t"
      " v:token{V:d} y:f32[2]{V:d} = scan[length=3 reverse=false num_consts=0 num_carry=2 body={ axes d=2 ; lambda t:token{V:d} a:f32[2]{V:d}. let"
      "   b:token{V:d} = " SEND " a c:f32[2]{V:d} = " RECEIVE
      " t e:f32[2]{V:d} = add c a in (b, e) }] u x"
      " w:f32[2]{V:d} = closed_call[body={ axes d=2 ; lambda a:f32[2]{V:d} t:token{V:d}. let"
      "   s:token{V:d} = " SEND " a c:f32[2]{V:d} = " RECEIVE " t in (c) }] y v in (y, w) }");
  /* checks off; the sender's branch stands behind the receiver's, in a loop whose trips differ */
  runs(
      "{ axes d=2? ; lambda x:f32[2]. let i:s32[] = axis_index[axes=(d)]"
      " n:s32[] y:f32[2] = while[cond_nconsts=0 cond={ axes d=2? ; lambda n:s32[] a:f32[2]. let c:bool[] = lt n 4:s32[] in (c) } body_nconsts=1"
      "  body={ axes d=2? ; lambda i:s32[] n:s32[] a:f32[2]. let m:s32[] = add n 1:s32[]"
      "   b:f32[2] = cond[branches=("
      "    { axes d=2? ; lambda a:f32[2]. let t:token = create_token c:f32[2] = precv[dtype=f32 dims=(2) axes=(d) pairs=((1, 0)) link=0] t"
      "      e:f32[2] = add c a in (e) },"
      "    { axes d=2? ; lambda a:f32[2]. let t:token = psend[axes=(d) pairs=((1, 0)) link=0] a in (a) })] i a in (m, b) }] i 0:s32[] x in (y) }");
  /* what one device would compute for all is not what another waits for: y is the same on both */
  runs("{ axes d=2 ; lambda " X " w:f32[2]. let t:token = create_token"
       " y:f32[2]{V:d} = precv[dtype=f32 dims=(2) axes=(d) pairs=((1, 0)) link=0] t"
       " z:f32[2] = sin w v:f32[2]{V:d} = pvary[axes=(d)] z u:token{V:d} = psend[axes=(d) pairs=((1, 0)) link=0] v in (y, z) }");
  /* collectives before, between and after; empty messages; bool */
  runs("{ axes d=3 ; lambda " X ". let s:f32[2] = psum[axes=(d)] x v:f32[2]{V:d} = pvary[axes=(d)] s t:token{V:d} = " SEND " v"
       " r:f32[2] = pmax[axes=(d)] x y:f32[2]{V:d} = " RECEIVE " t q:f32[2] = psum[axes=(d)] y in (r, q) }");
  runs("{ axes d=2 ; lambda x:bool[3]{V:d} y:f32[0]{V:d}. let t:token{V:d} = " SEND " x u:token{V:d} = " SEND " y"
       " a:bool[3]{V:d} = precv[dtype=bool dims=(3) axes=(d) pairs=((0, 1)) link=0] u"
       " b:f32[0]{V:d} = precv[dtype=f32 dims=(0) axes=(d) pairs=((0, 1)) link=0] t in (a, b) }");
}

/* --- Passes --- */

/* Two equal sends whose tokens nobody uses, one in a loop that gives nothing, and two equal receipts, of which one is not used. */
static const char needless[] =
    "{ axes d=2 ; lambda " X ". let s:token{V:d} = " SEND " x t:token{V:d} = " SEND
    " x"
    " i:s32[] = scan[length=2 reverse=false num_consts=1 num_carry=1 body={ axes d=2 ; lambda x:f32[2]{V:d} i:s32[]. let u:token{V:d} = " SEND
    " x in (i) }] x 0:s32[]"
    " a:token = create_token b:token = create_token y:f32[2]{V:d} = " RECEIVE " a z:f32[2]{V:d} = " RECEIVE
    " b"
    " c:token = create_token e:token = create_token v:f32[2]{V:d} = " RECEIVE " c w:f32[2]{V:d} = " RECEIVE " e in (y) }";

static void passes(void **state) {
  (void)state;
  ax_status (*const all[])(const ax_program *, ax_program **) = {ax_program_dce, ax_program_cse, ax_program_simplify};
  ax_program *program = parsed(needless);
  for (size_t i = 0; i < AX_COUNT(all); i++) {
    ax_program *made;
    TEST_OK(all[i](program, &made));
    assert_int_equal(test_count_prim(made, "psend"), 3);
    assert_int_equal(test_count_prim(made, "precv"), 4);
    ax_program_release(made);
  }
  ax_program_release(program);
  runs(needless);
}

/* --- What programs say they do --- */

static void effects(void **state) {
  (void)state;
  static const struct {
    const char *text;
    ax_axis_set axes;
    bool single_sided;
  } rows[] = {
      {"{ lambda x:f32[2]. let y:f32[2] = neg x in (y) }", 0, false},
      {two_maps, 0, true}, /* whose axes are the shard_maps' */
      {"{ axes d=2 e=2 ; lambda x:f32[2]{V:e}. let y:f32[2] = psum[axes=(e)] x in (y) }", 2, false},
      {"{ axes d=2 e=2 ; lambda " X
       " i:s32[]. let y:f32[2]{V:d} = cond[branches=({ axes d=2 e=2 ; lambda a:f32[2]{V:d}. let in (a) },"
       " { axes d=2 e=2 ; lambda a:f32[2]{V:d}. let t:token{V:d} = " SEND
       " a j:s32[]{V:e} = axis_index[axes=(e)] in (a) })] i x in (y) }",
       3, true},
  };
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    ax_program *program = parsed(rows[i].text);
    const ax_effects got = ax_program_effects(program);
    assert_int_equal(got.axes, rows[i].axes);
    assert_int_equal(got.single_sided, rows[i].single_sided);
    ax_program_release(program);
  }
  assert_false(ax_program_effects(NULL).single_sided);
}

/* --- Transforms --- */

static void transforms(void **state) {
  (void)state;
  static const char text[] = "{ axes d=2 ; lambda " X
                             ". let i:s32[]{V:d} = axis_index[axes=(d)] y:f32[2]{V:d} = cond[branches=("
                             "{ axes d=2 ; lambda a:f32[2]{V:d}. let b:f32[2]{V:d} = sin a t:token{V:d} = " SEND
                             " b in (b) },"
                             "{ axes d=2 ; lambda a:f32[2]{V:d}. let t:token = create_token b:f32[2]{V:d} = " RECEIVE
                             " t c:f32[2]{V:d} = mul a b in (c) })] i x in (y) }";
  ax_program *program = parsed(text), *made, *whole;
  TEST_OK(ax_program_jvp(program, AX_ALL_ARGS, &made));
  assert_int_equal(test_count_prim(made, "psend"), 2);
  TEST_OK(test_on_mesh(made, &whole));
  test_random_run(whole, 5, false, 1e-6);
  ax_program_release(whole);
  ax_program_release(made);
  TEST_OK(ax_program_vmap(program, &(ax_vmap_options){.size = 3}, &made));
  TEST_OK(test_on_mesh(made, &whole));
  test_random_run(whole, 6, false, 1e-6);
  ax_program_release(whole);
  ax_program_release(made);
  TEST_FAILS(ax_program_vmap(program, &(ax_vmap_options){.size = 2, .axis_name = "d"}, &made), AX_ABSENT, "vmap: ");
  ax_program_release(program);
  program = parsed(
      "{ lambda x:f32[2] i:s32[]. let y:f32[2] = cond[branches=({ lambda a:f32[2]. let in (a) }, { lambda a:f32[2]. let"
      " t:token = create_token u:token = psend[axes=() pairs=((0, 0)) link=0] a b:f32[2] = precv[dtype=f32 dims=(2) axes=() pairs=((0, 0)) link=0] t in (b) })]"
      " i x in (y) }");
  TEST_FAILS(ax_program_vmap(program, &(ax_vmap_options){.size = 2}, &made), AX_ABSENT,
             "each member of the batch chooses a branch of its own");
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(refused),    cmocka_unit_test(refused_while_tracing),
                                     cmocka_unit_test(wrong_runs), cmocka_unit_test(places),
                                     cmocka_unit_test(passes),     cmocka_unit_test(transforms),
                                     cmocka_unit_test(effects)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
