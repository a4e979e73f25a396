/* Equations of collectives, functions and counts beside what they become, on Axle itself: every sample gives the same bits; broadcasts of
   any bits over random meshes; messages in loops, calls and branches, and those that are refused. */
#include <stdio.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/exec.h"
#include "axle/ops.h"
#include "ir/prim.h"
#include "plain/plain.h"
#include "support/cmocka.h"
#include "support/lanes.h"
#include "support/run.h"
#include "support/sample.h"

static const ax_plain_lacks lacks = {.collective_broadcast = true, .ragged_all_to_all = true, .messages = true, .byte_combinations = true,
                                     .two_bit_moves = true, .wide_sums = true, .narrow_functions = true, .starts_once = true, .short_counts = true};

/* --- Samples --- */

static const char *const prims[] = {"pbroadcast", "psum", "pmax", "pmin", "psum_scatter", "ragged_all_to_all", "psend", "precv", "create_token",
                                    "vary_unreduced_cast", "start", "asin", "acos", "asinh", "acosh", "atanh", "erfc", "bessel_i1e", "rsqrt",
                                    "logistic", "expm1", "log1p", "all_gather", "all_to_all", "ppermute", "concatenate", "sort", "reduce",
                                    "population_count", "ctz"};

static bool is_listed(const char *name) {
  for (size_t i = 0; i < AX_COUNT(prims); i++)
    if (strcmp(prims[i], name) == 0) return true;
  return false;
}

/* Integers of two bits that are gathered, exchanged, joined or sorted as they are, or f8e8m0fnu by a ppermute, at any depth. */
static bool moves_two_bits(const ax_program *program) {
  static const char *const moves[] = {"all_gather", "all_gather_invariant", "all_gather_reduced", "all_to_all", "ppermute", "concatenate", "sort"};
  for (uint32_t e = 0; e < program->eqn_count; e++) {
    const ax_eqn *eqn = &program->eqns[e];
    const ax_program *held;
    const ax_dtype dtype = eqn->in_count > 0 ? program->types[eqn->in[0]].dtype : AX_NO_DTYPE;
    if (dtype == AX_F8E8M0FNU && strcmp(eqn->prim->name, "ppermute") == 0) return true;
    for (size_t i = 0; i < AX_COUNT(moves) && (dtype == AX_S2 || dtype == AX_U2); i++)
      if (strcmp(eqn->prim->name, moves[i]) == 0) return true;
    for (uint32_t p = 0; (held = ax_eqn_program(eqn, p)) != NULL; p++)
      if (moves_two_bits(held)) return true;
  }
  return false;
}

/* Whether nothing is left of what is lacking, at any depth. */
static bool is_plain(const ax_program *program) {
  static const char *const gone[] = {"reduce", "pbroadcast", "ragged_all_to_all", "psend", "precv"};
  for (size_t i = 0; i < AX_COUNT(gone); i++)
    if (test_count_prim(program, gone[i]) > 0) return false;
  return !moves_two_bits(program);
}

/* Bit by bit, NaN too. */
static bool same_bits(const ax_tensor *a, const ax_tensor *b) {
  return test_tensor_bytes(a) == test_tensor_bytes(b) && memcmp(a->data, b->data, test_tensor_bytes(a)) == 0;
}

/* Counts the instances that became another program. */
static uint32_t check_instance(const test_instance *instance) {
  ax_tensor *in[16] = {NULL}, *got[16] = {NULL}, *wanted[16] = {NULL};
  ax_program *program, *plain = NULL;
  TEST_OK(test_on_mesh(instance->program, &program));
  test_random random = test_instance_random(instance);
  for (uint32_t i = 0; i < program->in_count; i++)
    in[i] = test_random_tensor(&random, program->types[i], test_low(instance->sample), test_high(instance->sample));
  if (test_passes(instance, "made plain", ax_plain_program(program, &lacks, &plain)) && plain != program &&
      test_passes(instance, "verified", ax_program_verify(plain)) && test_passes(instance, "as it is", test_try(program, in, wanted)) && test_passes(instance, "plain", test_try(plain, in, got))) {
    const bool adds = strstr(instance->sample->text, "back=true") != NULL; /* in another order */
    for (uint32_t k = 0; k < program->out_count; k++)
      if (!adds && !test_same_tensors(got[k], wanted[k])) test_blame(instance, "result %u differs, plain", k);
      else if (adds) TEST_TENSORS_NEAR(got[k], wanted[k], 1e-6);
    if (!is_plain(plain)) test_blame(instance, "what is lacking is left");
  }
  if (plain != NULL && moves_two_bits(plain)) test_blame(instance, "what the device moves wrongly is left");
  const uint32_t changed = plain != NULL && plain != program;
  test_release(in, program->in_count), test_release(got, program->out_count), test_release(wanted, program->out_count);
  ax_program_release(program), ax_program_release(plain);
  return changed;
}

static void samples(void **state) {
  static const ax_dtype others[] = {AX_S32, AX_F32};
  static const char *const shapes[] = {"", "2,3"};
  const test_variety variety = {test_dtypes, others, test_dtype_count, AX_COUNT(others), shapes, AX_COUNT(shapes)};
  uint32_t changed = 0;
  (void)state;
  for (size_t i = 0; i < test_sample_count; i++) {
    if (test_samples[i].kernel || !is_listed(test_samples[i].prim)) continue;
    test_instances instances = test_instances_of(&test_samples[i], &variety);
    for (uint32_t n = 0; n < instances.count; n++) changed += check_instance(&instances.v[n]);
    test_instances_release(&instances);
  }
  test_blameless();
  printf("samples: %u become other programs\n", changed);
  assert_true(changed > 500);
}

/* --- Any bits, over any axes --- */

typedef struct places {
  const char *mesh, *all, *spec, *axes;
  int64_t devices, members;
} places;

static const places everywhere[] = {{"d=2", "d", "d", "d", 2, 2},
                                    {"d=3", "d", "d", "d", 3, 3},
                                    {"d=16", "d", "d", "d", 16, 16},
                                    {"a=2,b=3", "a,b", "a+b", "b,a", 6, 6},
                                    {"a=2,b=3", "a,b", "a+b", "b", 6, 3},
                                    {"a=2,b=2,c=3", "a,b,c", "a+b+c", "c,a", 12, 6},
                                    {"a=2,b=2,c=2", "a,b,c", "a+b+c", "c,a,b", 8, 8}};

typedef struct cast {
  const char *axes;
  int64_t source;
} cast;

static AX_BODY(broadcast) {
  const cast *c = context;
  out[0] = ax_pbroadcast(in[0], c->axes, c->source);
}

/* Every bit at random that the dtype has. */
static ax_tensor *random_bits(test_random *random, ax_type type) {
  ax_tensor *x = test_tensor(type, NULL);
  unsigned char *bytes = x->data;
  const uint32_t bits = ax_dtype_get(type.dtype)->bits, bytes_of = (uint32_t)ax_dtype_bytes(type.dtype);
  for (size_t i = 0; i < test_tensor_bytes(x); i++) bytes[i] = (unsigned char)test_random_bits(random);
  for (size_t i = 0; bytes_of == 1 && bits < 8 && i < test_tensor_bytes(x); i++) bytes[i] &= (unsigned char)((1U << bits) - 1);
  return x;
}

static void broadcast_at_random(uint64_t seed, bool show) {
  test_random random = {seed};
  const places *p = &everywhere[test_random_below(&random, AX_COUNT(everywhere))];
  const cast c = {p->axes, test_random_below(&random, p->members)};
  const ax_type type = TEST_TYPE(test_dtypes[seed % test_dtype_count], p->devices * (1 + test_random_below(&random, 3)), test_random_below(&random, 4));
  const test_map map = {p->mesh, {p->spec}, {p->spec}, broadcast, test_random_below(&random, 2) == 0, (void *)(uintptr_t)&c};
  ax_program *program = test_trace_map(&map, &type), *plain;
  ax_tensor *x = random_bits(&random, type), *wanted, *got;
  if (show) test_show_program(program);
  TEST_OK(ax_plain_program(program, &lacks, &plain));
  assert_true(is_plain(plain));
  TEST_OK(ax_program_verify(plain));
  TEST_OK(test_try(program, &x, &wanted));
  TEST_OK(test_try(plain, &x, &got));
  assert_true(same_bits(got, wanted));
  ax_tensor_release(x), ax_tensor_release(got), ax_tensor_release(wanted);
  ax_program_release(program), ax_program_release(plain);
}

static void broadcast_any_bits(void **state) {
  (void)state;
  test_each_seed(4 * test_dtype_count, broadcast_at_random);
}

/* --- Messages --- */

#define ON_THREE(body) \
  "{ lambda x:f32[6]. let y:f32[6] = shard_map[mesh=(d=3) unchecked=false in_specs=(P(d),) out_specs=(P(d),) body={ axes d=3 ; " body " }] x in (y,) }"

static ax_program *parsed(const char *text) {
  ax_program *program;
  TEST_OK(ax_program_parse(text, strlen(text), NULL, &program));
  return program;
}

static void messages_become_exchanges(void **state) {
  static const char *const texts[] = {
      /* two of a queue, and one apart; what device 0 takes first was sent first */
      ON_THREE("lambda a:f32[2]{V:d}. let n:f32[2]{V:d} = neg a s:token{V:d} = psend[axes=(d,) pairs=((0, 1), (1, 2)) link=0] a "
               "t:token{V:d} = psend[axes=(d,) pairs=((1, 2), (2, 0)) link=0] n u:token{V:d} = psend[axes=(d,) pairs=((2, 1),) link=1] a "
               "f:f32[2]{V:d} = precv[dtype=f32 dims=(2,) axes=(d,) pairs=((2, 0), (1, 2)) link=0] s "
               "g:f32[2]{V:d} = precv[dtype=f32 dims=(2,) axes=(d,) pairs=((0, 1), (1, 2)) link=0] t "
               "h:f32[2]{V:d} = precv[dtype=f32 dims=(2,) axes=(d,) pairs=((2, 1),) link=1] u "
               "i:f32[2]{V:d} = sub f g j:f32[2]{V:d} = mul i a k:f32[2]{V:d} = add j h in (k)"),
      /* in a loop, in a call */
      ON_THREE("lambda a:f32[2]{V:d}. let y:f32[2]{V:d} = scan[length=4 reverse=false num_consts=0 num_carry=1 body={ "
               "lambda c:f32[2]{V:d}. let e:f32[2]{V:d} = closed_call[body={ lambda f:f32[2]{V:d}. let "
               "t:token{V:d} = psend[axes=(d,) pairs=((0, 1), (1, 2), (2, 0)) link=0] f "
               "g:f32[2]{V:d} = precv[dtype=f32 dims=(2,) axes=(d,) pairs=((0, 1), (1, 2), (2, 0)) link=0] t h:f32[2]{V:d} = add g f in (h) }] c "
               "in (e) }] a in (y)"),
      /* in a branch that all devices take, or none */
      ON_THREE("lambda a:f32[2]{V:d}. let b:f32[2] = pmax[axes=(d,)] a m:f32[] = reduce_max[axes=(0)] b c:bool[] = gt m 0.5:f32[] "
               "i:s32[] = convert_element_type[dtype=s32] c y:f32[2]{V:d} = cond[branches=({ lambda f:f32[2]{V:d}. let in (f) }, "
               "{ lambda f:f32[2]{V:d}. let t:token{V:d} = psend[axes=(d,) pairs=((0, 2),) link=0] f "
               "g:f32[2]{V:d} = precv[dtype=f32 dims=(2,) axes=(d,) pairs=((0, 2),) link=0] t in (g) })] i a in (y)")};
  (void)state;
  for (size_t i = 0; i < AX_COUNT(texts); i++)
    for (uint64_t seed = 0; seed < 4; seed++) {
      test_random random = {seed};
      ax_program *program = parsed(texts[i]), *plain;
      ax_tensor *x = test_random_tensor(&random, program->types[0], -1, 1), *wanted, *got;
      TEST_OK(ax_plain_program(program, &lacks, &plain));
      assert_true(is_plain(plain));
      TEST_OK(ax_program_verify(plain));
      TEST_OK(test_try(program, &x, &wanted));
      TEST_OK(test_try(plain, &x, &got));
      assert_true(same_bits(got, wanted));
      ax_tensor_release(x), ax_tensor_release(got), ax_tensor_release(wanted);
      ax_program_release(program), ax_program_release(plain);
    }
}

static void messages_refused(void **state) {
  static const struct {
    const char *text, *why;
  } rows[] = {
      {ON_THREE("lambda a:f32[2]{V:d}. let t:token{V:d} = psend[axes=(d,) pairs=((0, 1),) link=0] a in (a)"), "a message of it is not taken"},
      {ON_THREE("lambda a:f32[2]{V:d}. let t:token = create_token g:f32[2]{V:d} = precv[dtype=f32 dims=(2,) axes=(d,) pairs=((0, 1),) link=0] t "
                "s:token{V:d} = psend[axes=(d,) pairs=((0, 1),) link=0] g in (g)"),
       "a message that it takes is not sent before"},
      {ON_THREE("lambda a:f32[2]{V:d}. let t:token{V:d} = psend[axes=(d,) pairs=((0, 1),) link=0] a "
                "g:f32[1]{V:d} = precv[dtype=f32 dims=(1,) axes=(d,) pairs=((0, 1),) link=0] t h:f32[2]{V:d} = add a a in (h)"),
       "another shape or dtype"},
      /* what is sent outside is not taken inside, nor is another message of the link sent there first */
      {ON_THREE("lambda a:f32[2]{V:d}. let t:token{V:d} = psend[axes=(d,) pairs=((0, 1),) link=0] a e:f32[2]{V:d} = closed_call[body={ "
                "lambda f:f32[2]{V:d}. let s:token{V:d} = psend[axes=(d,) pairs=((0, 1),) link=0] f "
                "g:f32[2]{V:d} = precv[dtype=f32 dims=(2,) axes=(d,) pairs=((0, 1),) link=0] s in (g) }] a "
                "h:f32[2]{V:d} = precv[dtype=f32 dims=(2,) axes=(d,) pairs=((0, 1),) link=0] t i:f32[2]{V:d} = add e h in (i)"),
       "a message of it is not taken"},
      /* each device has a choice of its own */
      {ON_THREE("lambda a:f32[2]{V:d}. let i:s32[]{V:d} = axis_index[axes=(d,)] y:f32[2]{V:d} = cond[branches=({ lambda f:f32[2]{V:d}. let in (f) }, "
                "{ lambda f:f32[2]{V:d}. let t:token{V:d} = psend[axes=(d,) pairs=((1, 2),) link=0] f "
                "g:f32[2]{V:d} = precv[dtype=f32 dims=(2,) axes=(d,) pairs=((1, 2),) link=0] t in (g) })] i a in (y)"),
       "devices may run this differently"}};
  (void)state;
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    ax_program *program = parsed(rows[i].text), *plain;
    TEST_FAILS(ax_plain_program(program, &lacks, &plain), AX_ABSENT, rows[i].why);
    assert_null(plain);
    ax_program_release(program);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(samples), cmocka_unit_test(broadcast_any_bits), cmocka_unit_test(messages_become_exchanges),
                                     cmocka_unit_test(messages_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
