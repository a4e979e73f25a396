/* Sums over devices that leave loops: which do, how many are made where, and that results are those of the whole program. */
#include <stdio.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/transform.h"
#include "control/closed_call.h"
#include "ir/prim.h"
#include "mesh/shard_map.h"
#include "partition/partition.h"
#include "prim/prims.h"
#include "support/cmocka.h"
#include "support/tensor.h"

typedef struct sums {
  uint32_t inside, behind; /* psums in loops, and in none */
} sums;

static void count(const ax_program *p, bool looped, sums *out) {
  const ax_program *held;
  for (uint32_t e = 0; e < p->eqn_count; e++) {
    const ax_eqn *eqn = &p->eqns[e];
    if (eqn->prim == &ax_prim_psum) ++*(looped ? &out->inside : &out->behind);
    for (uint32_t k = 0; (held = ax_eqn_program(eqn, k)) != NULL; k++) count(held, looped || eqn->prim == &ax_prim_scan, out);
  }
}

static ax_tensor *numbers(const ax_type *type, uint64_t seed) {
  ax_tensor *made = test_tensor(*type, NULL);
  for (int64_t i = 0; i < test_elems(made); i++) test_set(made, i, (double)((seed * 31 + (uint64_t)i * 7) % 23) / 8 - 1);
  return made;
}

static ax_program *with_late_sums(const ax_program *partitioned) {
  ax_shard_map_params params = *(const ax_shard_map_params *)partitioned->eqns[0].params;
  const ax_program *whole = partitioned;
  ax_program *made;
  ax_value in[8], out[8];
  ax_builder builder;
  TEST_OK(ax_sums_leave_loops(params.body, &params.body));
  ax_builder_begin(&builder, NULL);
  for (uint32_t i = 0; i < whole->in_count; i++) in[i] = ax_builder_input(&builder, &whole->types[i]);
  ax_bind(&ax_prim_shard_map, &params, in, whole->in_count, out, whole->out_count);
  TEST_OK(ax_builder_finish(&builder, out, whole->out_count, &made, NULL, NULL));
  ax_program_release(params.body);
  return made;
}

/* The program laid out so has so many sums in loops and elsewhere, and computes the same. */
static void expect(const char *text, const char *devices, const char *specs, uint32_t inside, uint32_t behind) {
  ax_program *program, *said, *partitioned, *made;
  ax_tensor *in[8], *whole[8], *parts[8];
  ax_mesh mesh;
  sums found = {0};
  TEST_OK(ax_program_parse(text, strlen(text), "test", &program));
  TEST_OK(ax_mesh_parse(devices, &mesh));
  TEST_OK(ax_program_with_shardings(program, &mesh, specs, &said));
  TEST_OK(ax_program_partition(said, &partitioned));
  made = with_late_sums(partitioned);
  count(made, false, &found);
  if (found.inside != inside || found.behind != behind) {
    char *shown;
    TEST_OK(ax_program_print(made, &shown));
    fail_msg("%u sums in loops and %u behind, not %u and %u:\n%s", found.inside, found.behind, inside, behind, shown);
  }
  for (uint32_t i = 0; i < program->in_count; i++) in[i] = numbers(&program->types[i], i + 1);
  test_run(program, in, whole);
  test_run(made, in, parts);
  for (uint32_t k = 0; k < program->out_count; k++) TEST_TENSORS_NEAR(parts[k], whole[k], 1e-12);
  test_release(in, program->in_count);
  test_release(whole, program->out_count);
  test_release(parts, program->out_count);
  ax_program_release(program);
  ax_program_release(said);
  ax_program_release(partitioned);
  ax_program_release(made);
}

#define DOT "dot_general[lhs_contract=(0) rhs_contract=(0) lhs_batch=() rhs_batch=()]"
/* x f64[steps, samples, 3], cut along samples: what is added up is f64[3,3] */
#define LOOP(types, body, init)                                                                                               \
  "{ lambda x:f64[5,4,3] c0:f64[3,3]. let r:f64[3,3] = scan[length=5 reverse=false num_consts=0 num_carry=1 body={ lambda "    \
  "c:f64[3,3] u:f64[4,3]. let g:f64[3,3] = " DOT " u u " body " }] " init " x in (r) }"

#define INTEGERS(body)                                                                                                        \
  "{ lambda x:s32[5,4,3]. let z:s32[3] = broadcast_in_dim[shape=(3) broadcast_dimensions=()] 0:s32[] "                          \
  "two:s32[3] = broadcast_in_dim[shape=(3) broadcast_dimensions=()] 2:s32[] "                                                   \
  "r:s32[3] = scan[length=5 reverse=false num_consts=1 num_carry=1 body={ lambda two:s32[3] c:s32[3] u:s32[4,3]. let "           \
  "g:s32[3] = reduce_sum[axes=(0)] u " body " }] two z x in (r) }"

static void sums_of_iterations(void **state) {
  (void)state;
  static const char zero[] = "{ lambda x:f64[5,4,3]. let z:f64[3,3] = broadcast_in_dim[shape=(3,3) broadcast_dimensions=()] 0.0:f64[] "
                             "r:f64[3,3] = scan[length=5 reverse=true num_consts=0 num_carry=1 body={ lambda c:f64[3,3] u:f64[4,3]. let "
                             "g:f64[3,3] = " DOT " u u n:f64[3,3] = add g c in (n) }] z x in (r) }";
  expect(zero, "d=2", "_,d -> ", 0, 1);
  expect(zero, "d=4", "_,d -> ", 0, 1);
  expect(LOOP("", "n:f64[3,3] = add c g in (n)", "c0"), "d=2", "_,d; -> ", 0, 1); /* on the first device alone */
  expect(LOOP("", "n:f64[3,3] = add c g in (n)", "c0"), "d=2,e=2", "_,d+e; -> ", 0, 1);
  expect(LOOP("", "n:f64[3,3] = sub c g in (n)", "c0"), "d=2", "_,d; -> ", 0, 1);
  /* Scaled, and turned, on the way; and the carry is scaled too. */
  expect(LOOP("", "h:f64[3,3] = transpose[permutation=(1,0)] g k:f64[3,3] = broadcast_in_dim[shape=(3,3) broadcast_dimensions=()] 0.5:f64[] "
                  "m:f64[3,3] = mul k h o:f64[3,3] = mul c k n:f64[3,3] = add o m in (n)", "c0"), "d=2", "_,d; -> ", 0, 1);
}

/* A carry that is looked at, products of sums, and sums that are not linear stay in the loop. */
static void what_stays(void **state) {
  (void)state;
  expect(LOOP("", "h:f64[3,3] = tanh c m:f64[3,3] = mul h g n:f64[3,3] = add c m in (n)", "c0"), "d=2", "_,d; -> ", 1, 0);
  expect(LOOP("", "m:f64[3,3] = mul g g n:f64[3,3] = add c m in (n)", "c0"), "d=2", "_,d; -> ", 1, 0);
  expect(LOOP("", "m:f64[3,3] = mul c g n:f64[3,3] = add c m in (n)", "c0"), "d=2", "_,d; -> ", 1, 0);
  expect(LOOP("", "m:f64[3,3] = max c g in (m)", "c0"), "d=2", "_,d; -> ", 1, 0);
  expect(LOOP("", "m:f64[3,3] = tanh g n:f64[3,3] = add c m in (n)", "c0"), "d=2", "_,d; -> ", 1, 0);
  /* one exchange behind the loop would be of more bytes than those in it */
  expect("{ lambda x:f64[2,4] c0:f64[64,64]. let r:f64[64,64] = scan[length=2 reverse=false num_consts=0 num_carry=1 body={ lambda c:f64[64,64] "
         "u:f64[4]. let g:f64[] = reduce_sum[axes=(0)] u b:f64[64,64] = broadcast_in_dim[shape=(64,64) broadcast_dimensions=()] g n:f64[64,64] = "
         "add c b in (n) }] c0 x in (r) }", "d=2", "_,d; -> ", 1, 0);
  /* integers are divided with a remainder, and added without */
  expect(INTEGERS("h:s32[3] = div g two n:s32[3] = add c h in (n)"), "d=2", "_,d -> ", 1, 0);
  expect(INTEGERS("n:s32[3] = add c g in (n)"), "d=2", "_,d -> ", 0, 1);
  /* one factor is a sum and something else besides; the carry is the other */
  expect(LOOP("", "w:f64[3,3] = broadcast_in_dim[shape=(3,3) broadcast_dimensions=()] 0.5:f64[] t:f64[3,3] = tanh w a:f64[3,3] = add g t "
                  "n:f64[3,3] = mul a c in (n)", "c0"), "d=2", "_,d; -> ", 1, 0);
  /* the sum is a result of each iteration, too */
  expect("{ lambda x:f64[5,4,3] c0:f64[3,3]. let r:f64[3,3] s:f64[5,3,3] = scan[length=5 reverse=false num_consts=0 num_carry=1 body={ lambda "
         "c:f64[3,3] u:f64[4,3]. let g:f64[3,3] = " DOT " u u n:f64[3,3] = add c g in (n, g) }] c0 x in (r, s) }",
         "d=2", "_,d; -> ?", 1, 0);
}

/* A loop over layers in one over microbatches: stacked sums, and those of a weight that all layers use, leave both. */
static void loops_in_loops(void **state) {
  (void)state;
  static const char text[] =
      "{ lambda x:f64[5,4,3] w:f64[2,3,3]. let z:f64[2,3,3] = broadcast_in_dim[shape=(2,3,3) broadcast_dimensions=()] 0.0:f64[] "
      "y:f64[3,3] = broadcast_in_dim[shape=(3,3) broadcast_dimensions=()] 0.0:f64[] "
      "a:f64[2,3,3] b:f64[3,3] = scan[length=5 reverse=false num_consts=1 num_carry=2 body={ lambda v:f64[2,3,3] c:f64[2,3,3] d:f64[3,3] u:f64[4,3]. let "
      "o:f64[3,3] = broadcast_in_dim[shape=(3,3) broadcast_dimensions=()] 0.0:f64[] "
      "e:f64[4,3] f:f64[3,3] s:f64[2,3,3] = scan[length=2 reverse=false num_consts=0 num_carry=2 body={ lambda h:f64[4,3] k:f64[3,3] l:f64[3,3]. let "
      "m:f64[4,3] = dot_general[lhs_contract=(1) rhs_contract=(0) lhs_batch=() rhs_batch=()] h l n:f64[4,3] = tanh m "
      "p:f64[3,3] = " DOT " n h q:f64[3,3] = " DOT " h h r:f64[3,3] = add k q in (n, r, p) }] u o v "
      "g:f64[2,3,3] = add c s t:f64[3,3] = add f d in (g, t) }] w z y x in (a, b) }";
  expect(text, "d=2", "_,d; -> ?", 0, 2);
}

/* As JAX writes loops: bodies call functions, and results are put together slice by slice. */
static void calls_and_slices(void **state) {
  (void)state;
  static const char text[] =
      "{ lambda x:f64[5,4,3]. let z:f64[2,3,3] = broadcast_in_dim[shape=(2,3,3) broadcast_dimensions=()] 0.0:f64[] "
      "r:f64[2,3,3] = scan[length=5 reverse=false num_consts=0 num_carry=1 body={ lambda c:f64[2,3,3] u:f64[4,3]. let "
      "n:f64[2,3,3] = closed_call[body={ lambda c:f64[2,3,3] u:f64[4,3]. let z:f64[2,3,3] = broadcast_in_dim[shape=(2,3,3) broadcast_dimensions=()] 0.0:f64[] "
      "g:f64[3,3] = " DOT " u u "
      "h:f64[2,3,3] = closed_call[body={ lambda a:f64[2,3,3] g:f64[3,3]. let b:f64[1,3,3] = broadcast_in_dim[shape=(1,3,3) broadcast_dimensions=(1,2)] g "
      "d:f64[2,3,3] = dynamic_update_slice a b 1:s32[] 0:s32[] 0:s32[] in (d) }] z g "
      "n:f64[2,3,3] = add c h in (n) }] c u in (n) }] z x in (r) }";
  expect(text, "d=2", "_,d -> ?", 0, 1);
}

/* Sums over different axes, one after the other; and both of one mesh. */
static void several_axes(void **state) {
  (void)state;
  static const char text[] =
      "{ lambda x:f64[5,4,3] y:f64[5,4,3]. let z:f64[3,3] = broadcast_in_dim[shape=(3,3) broadcast_dimensions=()] 0.0:f64[] "
      "r:f64[3,3] s:f64[3,3] = scan[length=5 reverse=false num_consts=0 num_carry=2 body={ lambda c:f64[3,3] e:f64[3,3] u:f64[4,3] v:f64[4,3]. let "
      "g:f64[3,3] = " DOT " u u h:f64[3,3] = " DOT " v v n:f64[3,3] = add c g m:f64[3,3] = add e h in (n, m) }] z z x y in (r, s) }";
  expect(text, "d=2,e=2", "_,d; _,e -> ?", 0, 2);
  expect(text, "d=2,e=2", "_,d+e; _,e -> ?", 0, 2);
}

/* x f32[4], row f32[4]{V:d} -> x and the sum of the rows */
static AX_BODY(adds_up) {
  (void)context;
  out[0] = ax_add(in[0], ax_psum(in[1], "d"));
}

/* The program itself, called twice; NULL: a loop that adds up over the devices. */
static ax_program *called_twice(ax_program *program, const ax_mesh *mesh) {
  ax_type type = TEST_TYPE(AX_F32, 4);
  ax_builder builder;
  ax_program *made;
  type.spread.varying = 1;
  ax_builder_begin(&builder, mesh);
  ax_value x = ax_builder_input(&builder, &type), out = x;
  if (program == NULL) {
    const ax_value rows = ax_broadcast_in_dim(x, AX_DIMS(3, 4), AX_DIMS(1));
    ax_scan(AX_FN(adds_up, 2, 1), 1, 3, false, AX_VALUES(ax_full(AX_F32, AX_DIMS(4), 0), rows), AX_LIST(1, &out));
    out = ax_pvary(out, "d");
  }
  for (int i = 0; program != NULL && i < 2; i++) out = *ax_called_bind(&ax_prim_closed_call, &(ax_closed_call_params){program}, program, &out);
  TEST_OK(ax_builder_finish(&builder, &out, 1, &made, NULL, NULL));
  ax_program_release(program);
  return made;
}

/* A loop that adds up products of products, 60 of them: an attempt comes to each once. */
static void long_products(void **state) {
  (void)state;
  ax_text text = {0};
  const double begin = ax_seconds();
  ax_text_add(&text, "{ lambda x:f64[5,4,3] c0:f64[3,3]. let r:f64[3,3] = scan[length=5 reverse=false num_consts=0 num_carry=1 body={ lambda c:f64[3,3] "
                     "u:f64[4,3]. let g:f64[3,3] = " DOT " u u h0:f64[3,3] = tanh g ");
  for (int i = 0; i < 60; i++)
    ax_text_add(&text, "a%d:f64[3,3] = add h%d h%d b%d:f64[3,3] = mul a%d h%d h%d:f64[3,3] = tanh b%d ", i, i, i, i, i, i, i + 1, i);
  ax_text_add(&text, "n:f64[3,3] = add c b59 in (n) }] c0 x in (r) }");
  expect(text.data, "d=2", "_,d; -> ", 1, 0);
  assert_true(ax_seconds() - begin < 20);
  ax_text_deinit(&text);
}

/* Functions that call each other twice: the loop is called 2^40 times, and has one program. */
static void many_calls(void **state) {
  (void)state;
  ax_mesh mesh;
  ax_program *program, *left;
  const double begin = ax_seconds();
  TEST_OK(ax_mesh_parse("d=2", &mesh));
  program = called_twice(NULL, &mesh);
  for (int i = 0; i < 40; i++) program = called_twice(program, &mesh);
  TEST_OK(ax_sums_leave_loops(program, &left));
  assert_true(ax_seconds() - begin < 20);
  ax_program_release(left);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sums_of_iterations),
      cmocka_unit_test(what_stays),
      cmocka_unit_test(loops_in_loops),
      cmocka_unit_test(calls_and_slices),
      cmocka_unit_test(several_axes),
      cmocka_unit_test(long_products),
      cmocka_unit_test(many_calls),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
