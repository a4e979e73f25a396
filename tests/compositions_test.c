/* Programs put together at random from the samples of primitives whose results are exact: compiled, fused, their memory planned, on
   one device and on a mesh with collectives, they give bit by bit what reference evaluation gives, under every policy. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/ops.h"
#include "ir/program.h"
#include "support/cmocka.h"
#include "support/lanes.h"
#include "support/run.h"
#include "support/sample.h"

enum { inputs = 8, steps = 40, outputs = 8, most_values = inputs + steps * 4 };

typedef struct parts { /* what programs are made of */
  test_instance *v;
  uint32_t count;
} parts;

static const char *const shapes[] = {"", "3", "2,3", "17", "6"};
static const ax_type types[] = {
    {.dtype = AX_F32, .rank = 1, .dims = {3}},     {.dtype = AX_F32, .rank = 2, .dims = {2, 3}},
    {.dtype = AX_S32, .rank = 2, .dims = {2, 3}},  {.dtype = AX_S32},
    {.dtype = AX_F32, .rank = 1, .dims = {17}},    {.dtype = AX_S32, .rank = 1, .dims = {6}},
    {.dtype = AX_BOOL, .rank = 2, .dims = {2, 3}}, {.dtype = AX_F32}};

static bool is_exact(const test_instance *instance) {
  return instance->sample->ulps == 0 && (!instance->sample->sums || instance->t == AX_S32);
}

/* Without axes: local primitives and regions. With them: all that goes along one unchecked axis d, but regions that communicate,
   which random indices would lead into deadlocks. */
static parts parts_of(const char *axes) {
  static const ax_dtype dtypes[] = {AX_F32, AX_S32, AX_BOOL};
  const test_variety variety = {dtypes, dtypes, AX_COUNT(dtypes), AX_COUNT(dtypes), shapes, AX_COUNT(shapes)};
  parts all = {0};
  for (size_t i = 0; i < test_sample_count; i++) {
    test_sample sample = test_samples[i];
    bool communicates = sample.axes != NULL, has_mesh = strcmp(sample.prim, "shard_map") == 0;
    if (has_mesh || sample.kernel || (communicates && (axes == NULL || strchr(sample.axes, '?') == NULL))) continue;
    sample.axes = axes;
    test_instances instances = test_instances_of(&sample, &variety);
    for (uint32_t k = 0; k < instances.count; k++) {
      instances.v[k].sample = &test_samples[i];
      if (!is_exact(&instances.v[k])) {
        test_instance_release(&instances.v[k]);
        continue;
      }
      all.v = realloc(all.v, (all.count + 1) * sizeof all.v[0]);
      all.v[all.count++] = instances.v[k];
    }
    free(instances.v);
  }
  return all;
}

/* --- A program --- */

typedef struct composition {
  const parts *parts;
  uint64_t seed;
} composition;

/* A value of this type, the later ones more often; poison when there is none. */
static ax_value pick(test_random *random, const ax_value *values, uint32_t count, const ax_type *type) {
  ax_value fitting[most_values] = {{0}};
  uint32_t found = 0;
  for (uint32_t i = 0; i < count; i++) {
    ax_type own = ax_typeof(values[i]);
    if (own.dtype == type->dtype && ax_same_shape(&own, type)) fitting[found++] = values[i];
  }
  if (found == 0) return fitting[0];
  int64_t a = test_random_below(random, found), b = test_random_below(random, found);
  return fitting[a > b ? a : b];
}

/* A sample's program inside regions: two bits a level say which; 0: in place. */
typedef struct wrapped {
  const ax_program *program;
  uint32_t kinds;
  ax_value index;     /* s32[], for conds */
  const ax_value *in; /* for scans, which capture their operands */
} wrapped;

static void wrap(const ax_value *in, ax_value *out, void *context);
static void wrap_captured(const ax_value *in, ax_value *out, void *context) {
  const wrapped *w = context;
  (void)in;
  wrap(w->in, out, context);
}

/* The last of the stacked results of two steps. */
static void wrap_scan(const wrapped *inner, ax_value *out) {
  ax_value stacked[4];
  uint32_t count = inner->program->out_count;
  ax_scan(AX_CLOSURE(wrap_captured, 0, count, (void *)inner), 0, 2, false, NULL, stacked);
  for (uint32_t k = 0; k < count; k++) {
    ax_type type = ax_typeof(stacked[k]);
    int64_t start[AX_MAX_RANK] = {1};
    out[k] = ax_reshape(ax_slice(stacked[k], start, type.dims, NULL), AX_LIST(type.rank - 1, type.dims + 1));
  }
}

static void wrap(const ax_value *in, ax_value *out, void *context) {
  const wrapped *w = context;
  wrapped inner = {w->program, w->kinds >> 2, w->index, in}, plain = {w->program, 0, w->index, in};
  uint32_t in_count = w->program->in_count, out_count = w->program->out_count;
  bool communicates =
      (w->program->effects & (AX_EFFECT_EXCHANGE | AX_EFFECT_MESSAGE)) != 0; /* devices may not choose whether they do */
  switch (w->kinds & 3) {
    case 0: ax_call(w->program, AX_LIST(in_count, in), AX_LIST(out_count, out)); break;
    case 1: ax_closed_call(AX_CLOSURE(wrap, in_count, out_count, &inner), in, out); break;
    case 2: {
      const ax_fn branches[] = {AX_CLOSURE(wrap, in_count, out_count, &plain), AX_CLOSURE(wrap, in_count, out_count, &inner)};
      if (communicates) wrap(in, out, &inner);
      else ax_switch(w->index, AX_LIST(2, branches), in, out);
      break;
    }
    default: wrap_scan(&inner, out);
  }
}

static bool add_step(test_random *random, const test_instance *instance, ax_value *values, uint32_t *count) {
  const ax_program *program = instance->program;
  ax_value in[8], out[4];
  if (program->in_count > AX_COUNT(in) || program->out_count > AX_COUNT(out)) return false;
  for (uint32_t i = 0; i < program->in_count; i++) {
    in[i] = pick(random, values, *count, &program->types[i]);
    if (in[i].trace == 0) return false;
  }
  const ax_type index = {.dtype = AX_S32};
  uint32_t kinds = test_random_below(random, 4) == 0 ? (uint32_t)test_random_below(random, 256) : 0; /* up to four levels */
  wrap(in, out, &(wrapped){program, kinds, pick(random, values, *count, &index), NULL});
  for (uint32_t k = 0; k < program->out_count; k++) values[(*count)++] = out[k];
  return true;
}

/* What the host is called for once, and messages, which the reference evaluator does not have together. */
static bool goes_with(const test_instance *instance, bool *calls, bool *messages) {
  const uint32_t effects = instance->program->effects;
  bool call = (effects & AX_EFFECT_STATE) != 0 && (effects & AX_EFFECT_ORDER) == 0, message = (effects & AX_EFFECT_MESSAGE) != 0;
  if ((call && *messages) || (message && *calls)) return false;
  *calls = *calls || call;
  *messages = *messages || message;
  return true;
}

static void compose(const ax_value *in, ax_value *out, void *context) {
  const composition *c = context;
  test_random random = {c->seed};
  ax_value values[most_values];
  uint32_t count = inputs;
  memcpy(values, in, sizeof in[0] * inputs);
  bool calls = false, messages = false;
  for (int step = 0; step < steps;) {
    const test_instance *instance = &c->parts->v[test_random_below(&random, c->parts->count)];
    step += goes_with(instance, &calls, &messages) && add_step(&random, instance, values, &count);
  }
  for (uint32_t k = 0; k < outputs; k++)
    out[k] = values[count - 1 - (uint32_t)test_random_below(&random, count - inputs)];
}

/* --- Checked --- */

static parts local, spread;

static void check(const parts *parts, const char *axes, uint64_t seed, bool show) {
  ax_mesh mesh = {0};
  ax_program *program, *whole;
  composition c = {parts, seed};
  if (axes != NULL) TEST_OK(ax_mesh_parse(axes, &mesh));
  for (uint32_t a = 0; a < mesh.count; a++) mesh.axis[a].unchecked = true;
  TEST_OK(ax_trace_on(&mesh, AX_CLOSURE(compose, inputs, outputs, &c), types, &program));
  TEST_OK(test_on_mesh(program, &whole));
  if (show) test_show_program(whole);
  test_random random = {seed};
  ax_tensor *in[inputs];
  for (uint32_t i = 0; i < inputs; i++)
    in[i] = seed % 3 != 0 ? test_random_tensor(&random, whole->types[i], -4, 4)
                          : test_edge_tensor(&random, whole->types[i]);
  test_every_way(whole, in, 0, seed, __FILE__, __LINE__);
  test_release(in, inputs);
  ax_program_release(whole);
  ax_program_release(program);
}

static void one_program(uint64_t seed, bool show) {
  check(&local, NULL, seed, show);
  check(&spread, "d=3", seed, show);
}

static void programs(void **state) {
  (void)state;
  test_each_seed(24, one_program);
}

static int make_parts(void **state) {
  (void)state;
  local = parts_of(NULL);
  spread = parts_of("d=3?");
  return 0;
}

static void free_parts_of(parts *all) {
  for (uint32_t i = 0; i < all->count; i++) test_instance_release(&all->v[i]);
  free(all->v);
}

static int free_parts(void **state) {
  (void)state;
  free_parts_of(&local);
  free_parts_of(&spread);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(programs)};
  return cmocka_run_group_tests(tests, make_parts, free_parts);
}
