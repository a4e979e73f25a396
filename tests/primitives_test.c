/* The walk over the table of primitives: what is compiled gives what reference evaluation gives, on every dtype, on edge values, on
   shapes around the widths of vectors; collectives on meshes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/stablehlo.h"
#include "ir/prim.h"
#include "prim/bind.h"
#include "support/cmocka.h"
#include "support/compare.h"
#include "support/lanes.h"
#include "support/run.h"

static ax_runtime *runtime;

/* In the program, or in those that it holds: what is only ever transposed cannot be run. */
static bool mentions(const ax_program *program, const char *prim) {
  bool found = false;
  for (uint32_t e = 0; e < program->eqn_count && !found; e++) {
    const ax_program *held;
    found = strcmp(program->eqns[e].prim->name, prim) == 0;
    for (uint32_t p = 0; !found && (held = ax_eqn_program(&program->eqns[e], p)) != NULL; p++) found = mentions(held, prim);
  }
  return found;
}

static void every_primitive_has_samples(void **state) {
  (void)state;
  for (uint32_t p = 0; p < ax_prim_count; p++) {
    uint32_t samples = 0;
    for (size_t i = 0; i < test_sample_count; i++) samples += strcmp(test_samples[i].prim, ax_prims[p]->name) == 0;
    if (samples == 0) fail_msg("%s has no row in tests/support/samples.c", ax_prims[p]->name);
  }
  for (size_t i = 0; i < test_sample_count; i++) {
    const test_sample *sample = &test_samples[i];
    test_instances instances = test_instances_of(sample, &(test_variety){test_dtypes, test_dtypes, test_dtype_count,
                                                                         test_dtype_count, (const char *[]){"2"}, 1});
    if (instances.count == 0 || !mentions(instances.v[0].program, sample->prim))
      fail_msg("row %zu, of %s, fits no dtype: %s\n%s", i, sample->prim, ax_message(), sample->text);
    test_instances_release(&instances);
  }
}

static void no_rule_is_missing(void **state) {
  (void)state;
  for (uint32_t i = 0; i < ax_prim_count; i++) {
    const ax_prim *p = ax_prims[i];
    bool all = p->infer && p->spread && p->eval && p->differs && p->jvp && p->linearize && p->transpose && p->batch &&
               p->simplify && p->shard && p->lower && p->hlo &&
               (p->out_count >= 0 || p->out_count == AX_AS_OPERANDS || p->count_outs);
    if (!all) fail_msg("%s: a rule is NULL", p->name);
  }
}

/* What takes keys is exported on their words. */
static void keys_are_exported(void **state) {
  static const ax_dtype key[] = {AX_KEY};
  static const char *const shapes[] = {"", "3", "2,3", "0"};
  uint32_t count = 0;
  (void)state;
  for (size_t i = 0; i < test_sample_count; i++) {
    if (test_samples[i].kernel) continue;
    test_instances instances = test_instances_of(&test_samples[i], &(test_variety){key, key, 1, 1, shapes, AX_COUNT(shapes)});
    for (uint32_t k = 0; k < instances.count; k++, count++) {
      char *text = NULL;
      if (test_passes(&instances.v[k], "stablehlo", ax_program_stablehlo(instances.v[k].program, &text)) && strstr(text, "key") != NULL)
        test_blame(&instances.v[k], "StableHLO has no keys: %s", text);
      ax_string_free(text);
    }
    test_instances_release(&instances);
  }
  test_blameless();
  assert_true(count > 200);
}

/* --- Reduced and unreduced operands --- */

/* The equation with operands of which some spread otherwise over one more axis. */
static ax_status spread_otherwise(const ax_program *program, const ax_eqn *eqn, uint64_t which, ax_spread extra, ax_type *out) {
  ax_mesh axes = program->axes;
  ax_type in[16];
  ax_axis_set bit = (ax_axis_set)1 << axes.count;
  axes.axis[axes.count++] = (ax_axis){.name = "more", .size = 2};
  assert_true(eqn->in_count <= AX_COUNT(in));
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    in[i] = program->types[eqn->in[i]];
    ax_spread *on = &in[i].spread;
    if ((which >> i & 1) == 0) {
      on->reduced |= bit;
      continue;
    }
    on->kind = extra.kind;
    on->reduced |= extra.reduced * bit, on->unreduced |= extra.unreduced * bit;
  }
  return ax_infer_types(eqn->prim, &axes, eqn->params, in, eqn->in_count, out, eqn->out_count);
}

/* What is reduced stays so; what is unreduced does so where the record says that the operation is linear in it, and is refused with
   words that name the axis otherwise. */
static void check_eqn(const ax_program *program, const ax_eqn *eqn) {
  ax_type out[16];
  uint64_t all = ((uint64_t)1 << eqn->in_count) - 1;
  bool has_kind = false; /* of other axes already */
  for (uint32_t i = 0; i < eqn->in_count; i++) has_kind = has_kind || program->types[eqn->in[i]].spread.unreduced != 0;
  for (uint32_t i = 0; i < eqn->in_count; i++)
    if (program->types[eqn->in[i]].form == AX_TOKEN) return; /* which is no value */
  if (eqn->prim->kind == AX_REGION || eqn->in_count == 0 || has_kind) return;
  TEST_OK(spread_otherwise(program, eqn, 0, (ax_spread){.kind = AX_UNREDUCED_SUM}, out));
  for (uint32_t k = 0; k < eqn->out_count; k++) assert_true((out[k].spread.reduced >> program->axes.count & 1) != 0);
  for (uint64_t which = 1; which <= all && which < 16; which++) {
    ax_linearity linear = eqn->prim->linear;
    bool first = which == 1, fits = linear == AX_LINEAR_ALL         ? which == all
                                    : linear == AX_LINEAR_ONE       ? (which & (which - 1)) == 0
                                    : linear == AX_LINEAR_FIRST     ? first
                                    : linear == AX_LINEAR_FIRST_TWO ? which == 3
                                    : linear == AX_LINEAR_OUTER     ? which == 5
                                    : linear == AX_LINEAR_LAST      ? which == (all & ~(all >> 1))
                                    : linear == AX_LINEAR_REST      ? which == (all & ~(uint64_t)1)
                                                                    : linear == AX_LINEAR_SOME || linear == AX_LINEAR_EACH;
    for (ax_unreduced_kind kind = AX_UNREDUCED_SUM; kind <= AX_UNREDUCED_MIN; kind++) {
      ax_status status = spread_otherwise(program, eqn, which, (ax_spread){.unreduced = 1, .kind = kind}, out);
      bool has = (eqn->prim->kinds >> kind & 1) != 0 || (kind == AX_UNREDUCED_SUM && (eqn->prim->kinds & AX_KINDS_FLOAT_SUM) != 0);
      if (fits && has && status == AX_OK)
        for (uint32_t k = 0; k < (linear == AX_LINEAR_EACH ? eqn->out_count : 1); k++) {
          const bool parts = linear != AX_LINEAR_EACH || (which >> k & 1) != 0;
          assert_int_equal(out[k].spread.unreduced >> program->axes.count, parts);
          if (parts) assert_int_equal(out[k].spread.kind, kind);
        }
      if (status == AX_OK && !(fits && has))
        fail_msg("%s takes operands %llx unreduced by %s", eqn->prim->name, (unsigned long long)which, ax_kind_names[kind]);
      if (status != AX_OK) assert_non_null(strstr(ax_message(), "more"));
      bool converts = strcmp(eqn->prim->name, "convert_element_type") == 0,
           casts = strstr(eqn->prim->name, "unreduced_cast") != NULL;
      if (fits && has && !converts && !casts) assert_int_equal(status, AX_OK);
    }
  }
}

static void spreads_follow_linearity(void **state) {
  (void)state;
  for (size_t i = 0; i < test_sample_count; i++) {
    test_instances instances = test_instances_of(&test_samples[i], &test_in_f64);
    for (uint32_t n = 0; n < instances.count && n < 2; n++) {
      const ax_program *program = instances.v[n].program;
      for (uint32_t e = 0; e < program->eqn_count; e++) check_eqn(program, &program->eqns[e]);
    }
    test_instances_release(&instances);
  }
}

/* A body takes what its operands are, whatever that is; parts do not leave a shard_map, and what is reduced only by its cast. */
static void regions_carry_reductions(void **state) {
  (void)state;
  static const struct {
    const char *equation, *error; /* NULL: none */
  } cases[] = {
      {"c:f32[2]{U:m} = cond[branches=({ lambda a:f32[2]{U:m}. let in (a,) })] i a", NULL},
      {"c:f32[2]{U:m} = scan[length=3 reverse=false num_consts=0 num_carry=1 body={ lambda a:f32[2]{U:m}. let in (a,) }] a", NULL},
      {"c:f32[2]{U:m} = while[cond_nconsts=0 cond={ lambda a:f32[2]{U:m}. let in (false:bool[],) } body_nconsts=0 "
       "body={ lambda a:f32[2]{U:m}. let in (a,) }] a",
       NULL},
      {"c:f32[2]{U:m} = shard_map[mesh=(d=2) unchecked=false in_specs=(P(d),) out_specs=(P(d),) "
       "body={ axes m=2 d=2 ; lambda a:f32[1]{V:d U:m}. let in (a,) }] a",
       NULL},
      {"c:f32[2]{U:m} = shard_map[mesh=(d=2) unchecked=false in_specs=(P(),) out_specs=(P(),) "
       "body={ axes m=2 d=2 ; lambda a:f32[2]{U:m}. let b:f32[2]{R:d U:m} = preduced[axes=(d)] a in (b,) }] a",
       "reduced over {d}; reduced_invariant_cast makes it invariant"},
      {"c:f32[2]{U:m} = shard_map[mesh=(d=2) unchecked=false in_specs=(P(),) out_specs=(P(),) "
       "body={ axes m=2 d=2 ; lambda a:f32[2]{U:m}. let v:f32[2]{V:d U:m} = pvary[axes=(d)] a "
       "b:f32[2]{U:m,d} = vary_unreduced_cast[axes=(d) kind=sum] v in (b,) }] a",
       "unreduced over {d}, and parts do not leave; unreduced_psum makes it invariant"},
      {"c:f32[2]{U:m} = cond[branches=({ lambda a:f32[2]{U:m}. let in (a,) })] j a",
       "the index s32[]{U:m} is unreduced over {m}; unreduced_psum"},
  };
  for (size_t i = 0; i < AX_COUNT(cases); i++) {
    char text[512];
    ax_program *program;
    snprintf(text, sizeof text, "{ axes m=2 ; lambda a:f32[2]{U:m} i:s32[] j:s32[]{U:m}. let\n%s\nin (c,) }", cases[i].equation);
    ax_status status = ax_program_parse(text, strlen(text), NULL, &program);
    if (cases[i].error == NULL) {
      TEST_OK(status);
      ax_program_release(program);
    } else {
      TEST_FAILS(status, AX_PARSE_ERROR, cases[i].error);
    }
  }
}

/* --- Compiled --- */

/* Small shapes, one that several threads share, and some of the sizes 1 .. 40, others for each sample. */
static const char **shapes_of(size_t sample, uint32_t *count) {
#if defined(__SANITIZE_ADDRESS__)
  enum { sizes = 1 }; /* which takes several times as long there */
#else
  enum { sizes = 4 };
#endif
  static char text[sizes][8];
  static const char *shapes[5 + sizes] = {"", "0", "2,3", "3,1,2,4", "40,129"};
  for (unsigned i = 0; i < sizes; i++) {
    snprintf(text[i], sizeof text[i], "%u", (unsigned)(sample * 11 + i * 7) % 40 + 1);
    shapes[5 + i] = text[i];
  }
  *count = AX_COUNT(shapes);
  return shapes;
}

typedef struct batch { /* instances that are compiled together */
  test_instances instances;
  ax_program **programs, *all;
  ax_tensor **in, **got, **wanted;
} batch;

static void evaluate_one(batch *b, uint32_t index, uint32_t in_at, uint32_t out_at, test_fill fill) {
  const test_instance *instance = &b->instances.v[index];
  const ax_program *program = b->programs[index];
  test_random random = test_instance_random(instance);
  for (uint32_t k = 0; k < program->in_count; k++)
    b->in[in_at + k] = fill(&random, program->types[k], test_low(instance->sample), test_high(instance->sample));
  if (test_passes(instance, "reference", ax_evaluate(program, b->in + in_at, b->wanted + out_at))) return;
  for (uint32_t k = 0; k < program->out_count; k++)
    b->wanted[out_at + k] = test_tensor(*ax_program_out_type(program, k), NULL);
}

static void compare_one(batch *b, uint32_t index, uint32_t in_at, uint32_t out_at) {
  const test_instance *instance = &b->instances.v[index];
  const ax_program *program = b->programs[index];
  ax_tensor **condition = calloc(program->out_count + 1, sizeof condition[0]),
            **in = calloc(program->in_count + 1, sizeof in[0]);
  if (instance->sample->sums && ax_is_float(instance->t)) {
    test_instance in_f64 = test_instance_in_f64(instance);
    ax_program *whole;
    TEST_OK(test_on_mesh(in_f64.program, &whole));
    for (uint32_t k = 0; k < program->in_count; k++) in[k] = test_absolute(b->in[in_at + k]);
    test_run(whole, in, condition);
    test_instance_release(&in_f64);
    ax_program_release(whole);
  }
  for (uint32_t k = 0; k < program->out_count; k++)
    test_compare(instance, "compiled", b->got[out_at + k], b->wanted[out_at + k], condition[k]);
  test_release(condition, program->out_count);
  test_release(in, program->in_count);
  free(condition), free(in);
}

static void check_batch(batch *b, test_fill fill) {
  uint32_t in_count = b->all->in_count, out_count = b->all->out_count;
  b->in = calloc(in_count + 1, sizeof b->in[0]);
  b->got = calloc(out_count + 1, sizeof b->got[0]);
  b->wanted = calloc(out_count + 1, sizeof b->wanted[0]);
  for (uint32_t i = 0, in_at = 0, out_at = 0; i < b->instances.count; i++) {
    evaluate_one(b, i, in_at, out_at, fill);
    in_at += b->programs[i]->in_count, out_at += b->programs[i]->out_count;
  }
  test_execute(runtime, b->all, b->in, b->got);
  for (uint32_t i = 0, in_at = 0, out_at = 0; i < b->instances.count; i++) {
    compare_one(b, i, in_at, out_at);
    in_at += b->programs[i]->in_count, out_at += b->programs[i]->out_count;
  }
  test_release(b->in, in_count);
  test_release(b->got, out_count);
  test_release(b->wanted, out_count);
  free(b->in), free(b->got), free(b->wanted);
}

/* Complex sums and functions are compared at generic points: where their parts overflow or are NaN follows from the order of real
   operations. What JAX gives there stands in tests/vectors. */
static ax_tensor *fill_edges_of_reals(test_random *random, ax_type type, double low, double high) {
  return ax_is_complex(type.dtype) ? test_random_tensor(random, type, low, high) : test_edge_tensor(random, type);
}

static test_fill edges_of(const test_sample *sample) {
  const ax_scalar op = ax_prim_find(sample->prim, strlen(sample->prim))->scalar;
  const bool is_function = ax_scalar_is_function(op) || op == AX_SCALAR_DIV || op == AX_SCALAR_ABS || op == AX_SCALAR_SIGN || op == AX_SCALAR_INTEGER_POW;
  return sample->sums || sample->complex_generic || is_function ? fill_edges_of_reals : test_fill_edges;
}

/* One mesh, one executable. */
static void check_instances(const test_sample *sample, test_instances instances) {
  batch b = {.instances = instances};
  b.programs = calloc(instances.count, sizeof b.programs[0]);
  for (uint32_t i = 0; i < instances.count; i++) TEST_OK(test_on_mesh(instances.v[i].program, &b.programs[i]));
  TEST_OK(test_together(b.programs, instances.count, &b.all));
  if (!sample->generic) check_batch(&b, edges_of(sample));
  if (sample->sums || sample->generic || sample->ulps > 0) check_batch(&b, test_random_tensor);
  for (uint32_t i = 0; i < instances.count; i++) ax_program_release(b.programs[i]);
  ax_program_release(b.all);
  free(b.programs);
}

static void check_sample(size_t index) {
  const test_sample *sample = &test_samples[index];
  test_variety variety = {
      .dtypes = test_dtypes, .others = test_dtypes, .dtype_count = test_dtype_count, .other_count = test_dtype_count};
  variety.shapes = shapes_of(index, &variety.shape_count);
  test_instances instances = test_instances_of(sample, &variety);
  for (uint32_t from = 0, to; from < instances.count; from = to) {
    for (to = from + 1; to < instances.count && strcmp(instances.v[from].axes, instances.v[to].axes) == 0;) to++;
    check_instances(sample, (test_instances){instances.v + from, to - from});
  }
  test_instances_release(&instances);
}

static void check_kind(ax_prim_kind kind) {
  for (size_t i = 0; i < test_sample_count; i++)
    if (ax_prim_find(test_samples[i].prim, strlen(test_samples[i].prim))->kind == kind) check_sample(i);
  test_blameless();
}

static void local(void **state) { (void)state, check_kind(AX_LOCAL); }
static void collectives(void **state) { (void)state, check_kind(AX_COLLECTIVE); }
static void regions(void **state) { (void)state, check_kind(AX_REGION); }

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_primitive_has_samples), cmocka_unit_test(no_rule_is_missing), cmocka_unit_test(keys_are_exported),
                                     cmocka_unit_test(spreads_follow_linearity),
                                     cmocka_unit_test(regions_carry_reductions), cmocka_unit_test(local),
                                     cmocka_unit_test(collectives), cmocka_unit_test(regions)};
  const ax_runtime_options options = {.policy = AX_POLICY_PARALLEL, .workers = 2};
  if (ax_runtime_create(&options, &runtime) != AX_OK) return 1;
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  ax_runtime_release(runtime);
  return failed;
}
