/* Whole programs made at random: several shard_maps over one mesh or several of the same devices, checked and not, over new axes
   inside one another, in loops and branches, with operations on whole arrays between. Partitioned they are one shard_map, whose
   text reads back as the same program, and give bit for bit what they gave before, evaluated or executed in reference code. */
#include <stdio.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "axle/transform.h"
#include "ir/prim.h"
#include "partition/partition.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

enum { POOL = 9, IN = 3, OUT = 3 };
static const double rounding = 1e-5; /* of values of about 1 in f32, a hundred times over */

/* Meshes of the same devices, and dimensions that all their axes and those of `inner` divide. */
typedef struct setting {
  const char *meshes[4], *inner;
  int64_t dims[2];
} setting;
static const setting settings[] = {
    {{"a=2,b=2"}, "n=2", {8, 8}},
    {{"a=4,b=2", "c=2,d=4", "e=8"}, "n=2", {16, 16}},
    {{"a=2,b=3", "c=6", "b=2,a=3"}, "n=2", {12, 12}},
    {{"a=2,b=1,c=2", "d=4,e=1"}, "a_1=2", {8, 8}},
    {{"a=2,b=6", "c=4,d=3"}, "m=1", {12, 12}},
    {{"a=2,b=2", "c=2", "d=8", "e=2,f=4"}, "n=2", {16, 16}},
    {{"a=3", "b=1", "c=6,d=2", "e=1,f=6"}, "n=2", {24, 24}},
};

typedef struct maker {
  test_random random;
  const setting *setting;
  int depth; /* of control flow still allowed */
  bool checked;
} maker;

static int64_t below(maker *m, int64_t n) { return test_random_below(&m->random, n); }

static ax_value mixed(maker *m, ax_value x, ax_value y) {
  switch (below(m, 5)) {
    case 0: return ax_add(x, y);
    case 1: return ax_tanh(ax_mul(x, y));
    case 2: return ax_max(x, y);
    case 3: return ax_neg(ax_min(x, y));
    default: return ax_sub(ax_mul(x, ax_full_like(x, 0.5)), y);
  }
}

/* --- shard_maps --- */

/* Each axis on one of the two dimensions or on neither, in any order: "b+a,c". */
static void random_spec(maker *m, const ax_mesh *mesh, char *out) {
  char dims[2][64] = {"", ""};
  uint32_t first = (uint32_t)below(m, mesh->count);
  for (uint32_t i = 0; i < mesh->count; i++) {
    int64_t dim = below(m, 3);
    if (dim == 2) continue;
    if (dims[dim][0] != '\0') strcat(dims[dim], "+");
    strcat(dims[dim], mesh->axis[(first + i) % mesh->count].name);
  }
  for (int d = 0; d < 2; d++)
    if (dims[d][0] == '\0') strcpy(dims[d], "_");
  sprintf(out, "%s,%s", dims[0], dims[1]);
}

typedef struct mapped {
  maker m;
  ax_mesh mesh;
  bool inner;
  char specs[3][2 * 64 + 2];
  ax_axis_set result; /* the axes of the result's spec, as bits of the mesh */
} mapped;

static const char *names_of(const ax_mesh *mesh, ax_axis_set set, char *out) {
  out[0] = '\0';
  for (uint32_t i = 0; i < mesh->count; i++) {
    if ((set >> i & 1) == 0) continue;
    if (out[0] != '\0') strcat(out, ",");
    strcat(out, mesh->axis[i].name);
  }
  return out;
}

static ax_value communicated(maker *m, ax_value x, const char *axis) {
  static const int64_t swap[][2] = {{0, 1}, {1, 0}};
  int64_t dimension = 0;
  switch (below(m, 4)) {
    case 0: return ax_mul(ax_psum(x, axis), ax_full_like(x, 0.5));
    case 1: return ax_axis_size(axis) > 1 ? ax_ppermute(x, axis, 2, swap) : x;
    case 2: return ax_reduce_max(ax_all_gather(x, axis, 0, false), AX_LIST(1, &dimension), false);
    default: return ax_add(x, ax_convert_element_type(ax_axis_index(axis), AX_F32));
  }
}

static ax_value mapped_once(maker *m, ax_value x, ax_value y, bool inner);

static void map_body(const ax_value *in, ax_value *out, void *context) {
  mapped *s = context;
  maker m = s->m;
  char names[AX_MAX_AXES * AX_MAX_NAME];
  ax_axis_set all = ((ax_axis_set)1 << s->mesh.count) - 1;
  ax_value x = mixed(&m, in[0], ax_tanh(ax_reduce_sum(in[1], AX_ALL_DIMS, false)));
  for (int i = 0; i < 2; i++) x = mixed(&m, communicated(&m, x, s->mesh.axis[below(&m, s->mesh.count)].name), x);
  if (!s->inner && below(&m, 3) == 0) x = mapped_once(&m, x, mixed(&m, x, x), true);
  if (!m.checked && below(&m, 3) == 0) /* so that the result differs along an axis that its spec may not name */
    x = ax_add(x, ax_convert_element_type(ax_axis_index(s->mesh.axis[0].name), AX_F32));
  else if (s->result != all)
    x = ax_pmax(x, names_of(&s->mesh, all & ~s->result, names));
  out[0] = ax_tanh(x);
}

static ax_axis_set spec_axes(const char *text, const ax_mesh *mesh) {
  ax_spec spec;
  ax_axis_set set = 0;
  TEST_OK(ax_spec_parse(text, mesh, &spec));
  for (uint32_t d = 0; d < spec.rank; d++)
    for (uint32_t i = 0; i < spec.count[d]; i++) set |= (ax_axis_set)1 << spec.axis[d][i];
  return set;
}

/* The result has the layout of the first operand inside, so that of the specs the first and the last are one. */
static ax_value mapped_once(maker *m, ax_value x, ax_value y, bool inner) {
  mapped s = {.m = *m, .inner = inner};
  int64_t meshes = 0;
  test_random_bits(&m->random);
  while (meshes < 4 && m->setting->meshes[meshes] != NULL) meshes++;
  TEST_OK(ax_mesh_parse(inner ? m->setting->inner : m->setting->meshes[below(&s.m, meshes)], &s.mesh));
  random_spec(&s.m, &s.mesh, s.specs[0]);
  random_spec(&s.m, &s.mesh, s.specs[1]);
  s.result = spec_axes(s.specs[0], &s.mesh);
  const char *in_specs[] = {s.specs[0], s.specs[1]}, *out_specs[] = {s.specs[0]};
  ax_value in[] = {x, y}, out;
  s.m.checked = m->checked || below(&s.m, 3) == 0;
  test_shard_map(&s.mesh, in_specs, out_specs, !s.m.checked, AX_CLOSURE(map_body, 2, 1, &s), in, &out);
  return out;
}

/* --- Around them --- */

static ax_value next(maker *m, ax_value x, ax_value y);

static void loop_body(const ax_value *in, ax_value *out, void *context) {
  maker m = *(maker *)context;
  out[0] = next(&m, in[0], in[1]);
  out[1] = mapped_once(&m, in[1], in[2], false);
  out[2] = mapped_once(&m, out[0], out[1], false);
}

/* The second result is an operand or what is made of it. */
static void shared_body(const ax_value *in, ax_value *out, void *context) {
  maker m = *(maker *)context;
  out[0] = next(&m, in[0], in[1]);
  out[1] = below(&m, 2) == 0 ? in[0] : mapped_once(&m, in[1], in[0], false);
}

static void branch_body(const ax_value *in, ax_value *out, void *context) {
  maker m = *(maker *)context;
  out[0] = mapped_once(&m, in[0], next(&m, in[1], in[0]), false);
}

static void less(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_lt(in[1], ax_full(AX_S32, AX_DIMS(), 2));
}

static void count(const ax_value *in, ax_value *out, void *context) {
  maker m = *(maker *)context;
  out[0] = mapped_once(&m, in[0], in[0], false);
  out[1] = ax_add(in[1], ax_full(AX_S32, AX_DIMS(), 1));
}

static ax_value controlled(maker *m, ax_value x, ax_value y) {
  maker first = {m->random, m->setting, m->depth - 1, m->checked}, second = first;
  const int64_t *dims = m->setting->dims, where[] = {1, 2};
  test_random_bits(&second.random);
  test_random_bits(&m->random);
  test_random_bits(&m->random);
  ax_value out[3];
  switch (below(m, 4)) {
    case 3: { /* twice, on what may be laid out in another way */
      ax_value in[] = {x, y};
      ax_closed_call(AX_CLOSURE(shared_body, 2, 2, &first), in, out);
      ax_closed_call(AX_CLOSURE(shared_body, 2, 2, &first), out, in);
      return ax_add(in[0], in[1]);
    }
    case 0: {
      ax_value in[] = {x, y, ax_broadcast_in_dim(y, AX_DIMS(2, dims[0], dims[1]), where)};
      ax_scan(AX_CLOSURE(loop_body, 3, 3, &first), 2, 2, below(m, 2) != 0, in, out);
      return ax_sub(out[0], ax_reduce_max(out[2], AX_DIMS(0), false));
    }
    case 1: {
      ax_value in[] = {x, y};
      ax_switch(ax_full(AX_S32, AX_DIMS(), (double)below(m, 2)),
                AX_FNS(AX_CLOSURE(branch_body, 2, 1, &first), AX_CLOSURE(branch_body, 2, 1, &second)), in, out);
      return out[0];
    }
    default: {
      ax_value in[] = {x, ax_full(AX_S32, AX_DIMS(), 0)};
      ax_while(AX_CLOSURE(less, 2, 1, &first), AX_CLOSURE(count, 2, 2, &first), in, out);
      return ax_add(out[0], y);
    }
  }
}

static ax_value next(maker *m, ax_value x, ax_value y) {
  static const int64_t turn[] = {1, 0};
  switch (below(m, m->depth > 0 ? 8 : 7)) {
    case 0: return mixed(m, x, y);
    case 1: return ax_transpose(x, turn);
    case 2: return ax_tanh(ax_mul(ax_matmul(x, y), ax_full_like(x, 0.1)));
    case 7: return controlled(m, x, y);
    default: return mapped_once(m, x, y, false);
  }
}

static void whole(const ax_value *in, ax_value *out, void *context) {
  maker m = *(maker *)context;
  ax_value pool[POOL] = {in[0], in[1], in[2]};
  for (int i = IN; i < POOL; i++) {
    ax_value x = pool[below(&m, i)];
    pool[i] = next(&m, x, pool[below(&m, i)]);
  }
  for (int k = 0; k < OUT; k++) out[k] = pool[POOL - 1 - k];
}

/* --- Checked --- */

static void reads_back(const ax_program *program) {
  char *text;
  ax_program *again;
  TEST_OK(ax_program_print(program, &text));
  TEST_OK(ax_program_parse(text, strlen(text), "partitioned", &again));
  assert_true(ax_program_equal(program, again));
  ax_string_free(text);
  ax_program_release(again);
}

static void same_results(ax_program *program, const ax_program *partitioned, uint64_t seed) {
  test_random data = {seed};
  ax_tensor *in[IN], *wanted[OUT], *got[OUT];
  for (int i = 0; i < IN; i++) in[i] = test_random_tensor(&data, *ax_program_in_type(program, (uint32_t)i), -1, 1);
  test_run(program, in, wanted);
  test_run(partitioned, in, got);
  for (int k = 0; k < OUT; k++) TEST_TENSORS_NEAR(got[k], wanted[k], rounding);
  test_release(got, OUT);
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.policy = AX_POLICY_SEEDED, .seed = seed}, &runtime));
  test_execute_reference(runtime, program, in, got);
  for (int k = 0; k < OUT; k++) TEST_TENSORS_NEAR(got[k], wanted[k], rounding);
  test_release(got, OUT);
  ax_runtime_release(runtime);
  test_release(in, IN);
  test_release(wanted, OUT);
}

static ax_program *partition(const ax_program *program) {
  ax_program *partitioned, *again;
  TEST_OK(ax_program_partition(program, &partitioned));
  TEST_OK(ax_program_verify(partitioned));
  TEST_OK(ax_program_partition(partitioned, &again));
  assert_ptr_equal(again, partitioned);
  ax_program_release(again);
  return partitioned;
}

static void one_program(uint64_t seed, bool show) {
  maker m = {{seed}, &settings[seed % AX_COUNT(settings)], 2, seed % 2 == 0};
  ax_type type = ax_array_type(AX_F32, AX_LIST(2, m.setting->dims)), types[] = {type, type, type};
  ax_program *program = test_trace(whole, &m, types, IN, OUT), *partitioned = partition(program);
  reads_back(partitioned);
  same_results(program, partitioned, seed + 1);
  if (seed % 4 == 0 || show) test_random_run(program, seed + 1, show, 2e-4);
  ax_program_release(partitioned);
  ax_program_release(program);
}

static void programs(void **state) {
  (void)state;
  test_each_seed(24, one_program);
}

/* --- By hand --- */

static void twice(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[0], in[0]);
}

typedef struct chain {
  const char *mesh[2], *in_spec[2], *out_spec[2];
} chain;

static void one_then_other(const ax_value *in, ax_value *out, void *context) {
  const chain *c = context;
  ax_value x = in[0];
  for (int i = 0; i < 2 && c->mesh[i] != NULL; i++) {
    ax_mesh mesh;
    TEST_OK(ax_mesh_parse(c->mesh[i], &mesh));
    test_shard_map(&mesh, &c->in_spec[i], &c->out_spec[i], false, AX_FN(twice, 1, 1), &x, &x);
  }
  out[0] = x;
}

static ax_program *chained(const chain *c) {
  const ax_type type = TEST_TYPE(AX_F32, 24, 24);
  return test_trace(one_then_other, (void *)c, &type, 1, 1);
}

/* What has nothing to be partitioned is given back itself. */
static void nothing_to_do(void **state) {
  (void)state;
  static const chain none = {{NULL}, {NULL}, {NULL}}, one = {{"a=4"}, {"a"}, {"_,a"}};
  for (int i = 0; i < 2; i++) {
    ax_program *program = chained(i == 0 ? &none : &one), *partitioned;
    TEST_OK(ax_program_partition(program, &partitioned));
    assert_ptr_equal(program, partitioned);
    ax_program_release(partitioned);
    ax_program_release(program);
  }
}

static void refused(void **state) {
  (void)state;
  static const struct {
    chain chain;
    const char *message;
  } rows[] = {
      {{{"a=3,b=2", "c=2,d=3"}, {"a", "c"}, {"a", "c"}},
       "shard_maps over the meshes (a=3, b=2) and (c=2, d=3) in one program: there is no mesh"},
      {{{"a=3,b=2", "c=2"}, {"a", "c"}, {"a", "c"}},
       "shard_maps over the meshes (a=3, b=2) and (c=2,) in one program: there is no mesh"},
      {{{"a=4", "b=6"}, {"a", "b"}, {"a", "b"}}, "shard_maps over meshes of 4 and 6 devices in one program: (a=4,) and (b=6,)"},
      {{{"a=6", "b=4"}, {"a", "b"}, {"a", "b"}}, "shard_maps over meshes of 6 and 4 devices in one program: (a=6,) and (b=4,)"},
  };
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    ax_program *program = chained(&rows[i].chain), *partitioned;
    TEST_FAILS(ax_program_partition(program, &partitioned), AX_ABSENT, rows[i].message);
    assert_null(partitioned);
    ax_program_release(program);
  }
}

/* How often a primitive is in the body. */
static int uses(const ax_program *partitioned, const char *prim) {
  const ax_program *body = ax_partitioned_of((ax_program *)partitioned).body;
  int count = 0;
  for (uint32_t i = 0; i < body->eqn_count; i++) count += strcmp(body->eqns[i].prim->name, prim) == 0;
  return count;
}

/* What moves between two layouts, and no more than that. */
static void layouts(void **state) {
  (void)state;
  static const struct {
    const char *mesh, *from, *to;
    int gathers, cuts, exchanges;
  } rows[] = {
      {"a=4,b=2", "a", "a", 0, 0, 0},       {"a=4,b=2", "a", "", 1, 0, 0},      {"a=4,b=2", "", "a,b", 0, 2, 0},
      {"a=4,b=2", "a+b", "a", 1, 0, 0},     {"a=4,b=2", "a", "a+b", 0, 1, 0},   {"a=4,b=2", "a", "_,a", 0, 0, 1},
      {"a=4,b=2", "a+b", "a,b", 0, 0, 1},   {"a=4,b=2", "a,b", "b,a", 2, 2, 0}, {"a=4,b=2", "a", "_,b", 1, 1, 0},
      {"a=4,b=2", "a,b", "a+b", 0, 0, 1},   {"a=4,b=2", "a+b", "b+a", 1, 1, 0}, {"a=4,b=2", "a+b", "_,a+b", 0, 0, 1},
      {"a=4,b=2", "a", "_,a+b", 1, 1, 0},
  };
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    const chain c = {{rows[i].mesh, rows[i].mesh}, {rows[i].from, rows[i].to}, {rows[i].from, rows[i].to}};
    ax_program *program = chained(&c), *partitioned = partition(program);
    assert_int_equal(uses(partitioned, "all_gather_invariant"), rows[i].gathers);
    assert_int_equal(uses(partitioned, "dynamic_slice"), rows[i].cuts);
    assert_int_equal(uses(partitioned, "all_to_all"), rows[i].exchanges);
    ax_program_release(partitioned);
    ax_program_release(program);
  }
}

typedef struct looping {
  ax_mesh mesh;
  ax_value weights; /* of an enclosing trace: a constant of the loops */
} looping;

static void weighted(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_tanh(ax_mul(in[0], in[1]));
}

static void step(const ax_value *in, ax_value *out, void *context) {
  looping *l = context;
  const char *specs[] = {"a", "a"};
  ax_value operands[] = {in[0], l->weights};
  test_shard_map(&l->mesh, specs, specs, false, AX_FN(weighted, 2, 1), operands, out);
}

static void steps(const ax_value *in, ax_value *out, void *context) {
  ax_scan(AX_CLOSURE(step, 1, 1, context), 1, 3, false, in, out);
}
static void nested_steps(const ax_value *in, ax_value *out, void *context) {
  ax_scan(AX_CLOSURE(steps, 1, 1, context), 1, 2, false, in, out);
}

static void once(const ax_value *in, ax_value *out, void *context) {
  ((looping *)context)->weights = in[1];
  steps(in, out, context);
}

static void nested(const ax_value *in, ax_value *out, void *context) {
  ((looping *)context)->weights = in[1];
  nested_steps(in, out, context);
}

/* What each iteration takes and gives in one layout is never gathered; neither are the inputs and the result. */
static void carries(void **state) {
  (void)state;
  static const ax_function functions[] = {once, nested};
  looping l;
  const ax_type types[] = {TEST_TYPE(AX_F32, 8), TEST_TYPE(AX_F32, 8)};
  TEST_OK(ax_mesh_parse("a=4", &l.mesh));
  for (size_t i = 0; i < AX_COUNT(functions); i++) {
    ax_program *program = test_trace(functions[i], &l, types, 2, 1), *partitioned = partition(program);
    const ax_partitioned parts = ax_partitioned_of(partitioned);
    char *text;
    for (int k = 0; k < 2; k++) assert_int_equal(ax_spec_set(&parts.in_specs[k]), 1);
    assert_int_equal(ax_spec_set(&parts.out_specs[0]), 1);
    TEST_OK(ax_program_print(partitioned, &text));
    assert_null(strstr(text, "all_gather"));
    assert_null(strstr(text, "dynamic_slice"));
    ax_string_free(text);
    test_random_run(program, 1, false, 1e-6);
    ax_program_release(partitioned);
    ax_program_release(program);
  }
}

/* --- Layouts through control flow --- */

/* tanh(x w) on devices of which each has some elements. */
static ax_value blockwise(const looping *l, ax_value x, ax_value w, const char *spec) {
  const char *specs[] = {spec, spec};
  const ax_value in[] = {x, w};
  ax_value out;
  test_shard_map(&l->mesh, specs, specs, false, AX_FN(weighted, 2, 1), in, &out);
  return out;
}

static void layer(const ax_value *in, ax_value *out, void *context) {
  out[0] = blockwise(context, in[0], in[1], "a");
  out[1] = in[1]; /* as it came */
}
static void many_calls(const ax_value *in, ax_value *out, void *context) {
  ax_value pair[] = {in[0], in[1]};
  for (int i = 0; i < 100; i++) ax_closed_call(AX_CLOSURE(layer, 2, 2, context), pair, pair);
  out[0] = pair[0];
}

static void calls_in_calls(const ax_value *in, ax_value *out, void *context) { many_calls(in, out, context); }
static void nested_calls(const ax_value *in, ax_value *out, void *context) {
  ax_value pair[] = {in[0], in[1]};
  for (int i = 0; i < 3; i++) ax_closed_call(AX_CLOSURE(calls_in_calls, 2, 1, context), pair, pair);
  out[0] = pair[0];
}

static void given_on(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[0];
}
static void nothing(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_full_like(in[0], 0);
}
static void changed(const ax_value *in, ax_value *out, void *context) { out[0] = blockwise(context, in[0], in[1], "a"); }
static void choice(const ax_value *in, ax_value *out, void *context) {
  const ax_fn branches[] = {AX_CLOSURE(given_on, 2, 1, context), AX_CLOSURE(changed, 2, 1, context),
                            AX_CLOSURE(nothing, 2, 1, context)};
  ax_value x = blockwise(context, in[0], in[1], "a"), operands[] = {x, in[1]}, made;
  ax_switch(ax_full(AX_S32, AX_DIMS(), 1), AX_LIST(3, branches), operands, &made);
  out[0] = blockwise(context, made, in[1], "a");
}

static void three_times(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_lt(in[2], ax_full(AX_S32, AX_DIMS(), 3));
}
static void another_time(const ax_value *in, ax_value *out, void *context) {
  ax_value pair[2];
  ax_closed_call(AX_CLOSURE(layer, 2, 2, context), in, pair);
  out[0] = pair[0];
  out[1] = in[1];
  out[2] = ax_add(in[2], ax_full(AX_S32, AX_DIMS(), 1));
}
static void loop(const ax_value *in, ax_value *out, void *context) {
  ax_value all[] = {in[0], in[1], ax_full(AX_S32, AX_DIMS(), 0)};
  ax_while(AX_CLOSURE(three_times, 3, 1, context), AX_CLOSURE(another_time, 3, 3, context), all, all);
  out[0] = all[0];
}

/* Stacked: what is gone over, and what comes out. */
static void over_rows(const ax_value *in, ax_value *out, void *context) {
  out[0] = blockwise(context, in[0], in[1], "a");
  out[1] = out[0];
}
static void stack(const ax_value *in, ax_value *out, void *context) {
  ax_value rows = in[1], all[2] = {in[0], rows};
  const char *specs[] = {"_,a", "_,a"};
  ax_scan(AX_CLOSURE(over_rows, 2, 2, context), 1, -1, false, all, all);
  const ax_value in_all[] = {all[1], rows};
  ax_value made;
  const looping *l = context;
  test_shard_map(&l->mesh, specs, specs, false, AX_FN(weighted, 2, 1), in_all, &made);
  out[0] = made;
}

/* A body that wants all of an operand, as it takes out what begins anywhere: that is gathered where it is, once for all calls and
   iterations. */
static void wants_all(const ax_value *in, ax_value *out, void *context) {
  const ax_value at = ax_convert_element_type(ax_reduce_max(in[0], AX_ALL_DIMS, false), AX_S32);
  const ax_value half = ax_dynamic_slice_in_dim(in[0], at, 4, 0);
  out[0] = blockwise(context, in[1], ax_concatenate(AX_VALUES(half, half), 0), "a");
}
static void gathers_once(const ax_value *in, ax_value *out, void *context) {
  ax_value w = blockwise(context, in[1], in[1], "a"), pair[] = {w, in[0]};
  for (int i = 0; i < 10; i++) ax_closed_call(AX_CLOSURE(wants_all, 2, 1, context), pair, pair + 1);
  out[0] = pair[1];
}
static void wants_weights(const ax_value *in, ax_value *out, void *context) {
  wants_all((const ax_value[]){((looping *)context)->weights, in[0]}, out, context);
}
static void gathers_before(const ax_value *in, ax_value *out, void *context) {
  ((looping *)context)->weights = blockwise(context, in[1], in[1], "a");
  ax_scan(AX_CLOSURE(wants_weights, 1, 1, context), 1, 10, false, in, out);
}

/* The gradient of all calls: what they keep for it, and the cotangents, stay in blocks. */
static void summed_calls(const ax_value *in, ax_value *out, void *context) {
  many_calls(in, out, context);
  out[0] = ax_reduce_sum(out[0], AX_ALL_DIMS, false);
}
static void gradient(const ax_value *in, ax_value *out, void *context) {
  ax_grad(AX_CLOSURE(summed_calls, 2, 1, context), AX_FIRST(1), in, out);
}

/* How many different programs the equations named so hold. */
static int bodies(const ax_program *program, const char *prim) {
  const ax_program *seen[16];
  int count = 0;
  for (uint32_t i = 0; i < program->eqn_count; i++) {
    if (strcmp(program->eqns[i].prim->name, prim) != 0) continue;
    const ax_program *body = ax_eqn_program(&program->eqns[i], 0);
    int k = 0;
    while (k < count && seen[k] != body) k++;
    if (k == count && count < 16) seen[count++] = body;
  }
  return count;
}

static int count_in(const char *text, const char *part) {
  int count = 0;
  for (const char *at = text; (at = strstr(at, part)) != NULL; at++) count++;
  return count;
}

static void through_control_flow(void **state) {
  (void)state;
  static const struct {
    ax_function function;
    int64_t second; /* the first dimension of the second input, of two; 0: it has one */
    int gathers, bodies;
  } rows[] = {{many_calls, 0, 0, 1}, {nested_calls, 0, 0, 1}, {choice, 0, 0, 0},         {loop, 0, 0, 0},
              {stack, 5, 0, 0},      {gathers_once, 0, 1, 1}, {gathers_before, 0, 1, 0}, {gradient, 0, 0, 3}};
  looping l;
  TEST_OK(ax_mesh_parse("a=4", &l.mesh));
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    ax_type types[] = {TEST_TYPE(AX_F32, 8), TEST_TYPE(AX_F32, 8)};
    if (rows[i].second > 0) types[1] = TEST_TYPE(AX_F32, 5, 8);
    ax_program *program = test_trace(rows[i].function, &l, types, 2, 1), *partitioned = partition(program);
    const ax_partitioned parts = ax_partitioned_of(partitioned);
    char *text;
    TEST_OK(ax_program_print(partitioned, &text));
    assert_int_equal(count_in(text, "all_gather"), rows[i].gathers);
    assert_int_equal(count_in(text, "all_to_all"), 0);
    if (rows[i].gathers > 0) assert_true(strstr(text, "all_gather") < strstr(text, i == 5 ? "closed_call" : "scan["));
    assert_int_equal(bodies(parts.body, "closed_call"), rows[i].bodies);
    for (int k = 0; k < 2; k++) assert_int_equal(ax_spec_set(&parts.in_specs[k]), 1);
    assert_int_equal(ax_spec_set(&parts.out_specs[0]), 1);
    ax_string_free(text);
    test_random_run(program, 1, false, 1e-6);
    ax_program_release(partitioned);
    ax_program_release(program);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(programs), cmocka_unit_test(nothing_to_do), cmocka_unit_test(refused),
                                     cmocka_unit_test(layouts), cmocka_unit_test(carries),
                                     cmocka_unit_test(through_control_flow)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
