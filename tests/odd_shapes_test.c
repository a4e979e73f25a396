/* Shapes and meshes at the edges of what is sound: arrays of no elements, scalars, ranks up to the limit, axes of one device, a
   thousand devices with odd sizes, loops of no steps, programs without inputs or results, results that are inputs. Whatever is
   accepted runs every way, and gives what evaluation gives. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

/* --- Every collective on arrays of every shape --- */

typedef struct odd {
  const char *mesh, *axes; /* over which; all devices hold values of their own */
  uint32_t rank;
  int64_t dims[AX_MAX_RANK]; /* on one device; dimension 0 is split */
} odd;

static ax_value shifted(ax_value x, const char *axes) {
  int64_t n = ax_axis_size(axes), (*pairs)[2] = calloc((size_t)n, sizeof pairs[0]);
  for (int64_t i = 0; i < n; i++) pairs[i][0] = i, pairs[i][1] = (i + 1) % n;
  ax_value shifted = ax_ppermute(x, axes, (uint32_t)(n > 1 ? n - 1 : n), (const int64_t(*)[2])pairs);
  free(pairs);
  return shifted;
}

static void step(const ax_value *in, ax_value *out, void *context) {
  const odd *o = context;
  out[0] = ax_tanh(ax_add(ax_psum(in[0], o->axes), in[0]));
}

/* Results of collectives vary in shape; of each the sum is returned, and the parts of one dimension less. */
static void collectives(const ax_value *in, ax_value *out, void *context) {
  const odd *o = context;
  ax_value x = in[0], made[16];
  int64_t n = ax_axis_size(o->axes);
  uint32_t count = 0;
  made[count++] = ax_psum(x, o->axes);
  made[count++] = ax_pmean(x, o->axes);
  made[count++] = ax_pmax(x, o->axes);
  made[count++] = ax_done(ax_start(ax_pmin(x, o->axes)));
  made[count++] = shifted(x, o->axes);
  made[count++] = ax_pbroadcast(x, o->axes, n - 1);
  if (o->rank < AX_MAX_RANK) made[count++] = ax_all_gather(x, o->axes, 0, false);
  if (o->rank < AX_MAX_RANK) made[count++] = ax_all_gather_invariant(x, o->axes, o->rank, false);
  if (o->rank > 0) made[count++] = ax_all_gather(x, o->axes, -1, true);
  if (o->rank > 0) {
    ax_value copies[64];
    for (int64_t i = 0; i < n && i < 64; i++) copies[i] = ax_mul(x, ax_full_like(x, (double)(i + 1)));
    ax_value many = n <= 64 ? ax_concatenate(AX_LIST((uint32_t)n, copies), 0) : x;
    if (n <= 64) made[count++] = ax_psum_scatter(many, o->axes, 0, true);
    if (n <= 64) made[count++] = ax_all_to_all(many, o->axes, 0, o->rank - 1, true);
    made[count++] = ax_argmax(ax_concatenate(AX_VALUES(ax_reshape(ax_reduce_sum(x, AX_ALL_DIMS, false), AX_DIMS(1)),
                                                       ax_full(AX_F32, AX_DIMS(1), 0)),
                                             0),
                              0, AX_S32);
  }
  ax_scan(AX_CLOSURE(step, 1, 1, context), 1, 2, false, &x, &made[count++]);
  ax_scan(AX_CLOSURE(step, 1, 1, context), 1, 0, false, &x, &made[count++]); /* no steps */
  out[0] = x;
  out[1] = ax_full(AX_F32, AX_DIMS(), 0);
  for (uint32_t i = 0; i < count; i++) {
    ax_value y = ax_convert_element_type(made[i], AX_F32);
    out[1] = ax_add(out[1], ax_mul(ax_reduce_sum(y, AX_ALL_DIMS, false), ax_full(AX_F32, AX_DIMS(), 0.01 * (double)(i + 1))));
  }
  out[1] = ax_psum(out[1], o->axes);
  out[2] = ax_psum(ax_add(x, x), o->axes);
}

static void on_mesh(const ax_value *in, ax_value *out, void *context) {
  const odd *o = context;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse(o->mesh, &mesh));
  char all[AX_MAX_AXES * (AX_MAX_NAME + 1)] = "";
  for (uint32_t a = 0; a < mesh.count; a++) sprintf(all + strlen(all), "%s%s", a > 0 ? "+" : "", mesh.axis[a].name);
  const char *cut = o->rank > 0 ? all : "", *in_specs[] = {cut}, *out_specs[] = {cut, "", ""};
  test_shard_map(&mesh, in_specs, out_specs, true, AX_CLOSURE(collectives, 1, 3, context), in, out);
}

static void run_odd(odd *o) {
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse(o->mesh, &mesh));
  ax_type type = ax_array_type(AX_F32, AX_LIST(o->rank, o->dims));
  if (o->rank > 0) type.dims[0] *= ax_mesh_devices(&mesh);
  ax_program *program = test_trace(on_mesh, o, &type, 1, 3);
  test_random_run(program, 5, false, 1e-3);
  ax_program_release(program);
}

static void shapes(void **state) {
  (void)state;
  static const odd rows[] = {
      {"a=2", "a", 1, {0}},          {"a=3", "a", 2, {0, 3}},       {"a=3", "a", 2, {2, 0}},      {"a=2,b=2", "a", 3, {1, 0, 5}},
      {"a=2,b=2", "b,a", 2, {0, 0}}, {"a=2,b=3", "a,b", 0, {0}},    {"a=1", "a", 0, {0}},         {"a=1", "a", 1, {3}},
      {"a=1,b=1", "b", 1, {0}},      {"a=1,b=1", "a,b", 2, {3, 1}}, {"a=2,b=1,c=3", "b", 1, {5}}, {"a=2,b=1,c=3", "c,b", 2, {1, 7}},
      {"a=7", "a", 1, {1}},          {"a=5,b=7", "b", 1, {3}},      {"a=2", "a", 8, {1, 2, 1, 3, 1, 2, 1, 2}},
      {"a=2", "a", 15, {1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2}},
      {"a=2", "a", 16, {2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3}},
      {"", "", 1, {4}},              {"", "", 0, {0}},              {"", "", 2, {3, 0}},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    odd o = rows[i];
    run_odd(&o);
  }
}

static void many_devices(void **state) {
  (void)state;
  run_odd(&(odd){"a=1021", "a", 1, {1}});
  run_odd(&(odd){"a=17,b=61", "b", 1, {3}});
  run_odd(&(odd){"a=17,b=1,c=61", "c,a", 0, {0}});
}

/* --- Programs of little --- */

static void nothing(const ax_value *in, ax_value *out, void *context) { (void)in, (void)out, (void)context; }

static void constants(const ax_value *in, ax_value *out, void *context) {
  (void)in, (void)context;
  out[0] = ax_full(AX_F32, AX_DIMS(), 7);
  out[1] = ax_iota(AX_S32, AX_DIMS(3), 0);
  out[2] = out[1];
}

static void handed_on(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[1];
  out[1] = in[0];
  out[2] = in[0];
}

static void no_steps(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value stacked = ax_broadcast_in_dim(in[0], AX_DIMS(0, 4), AX_DIMS(1)), results[3];
  ax_scan(AX_FN(handed_on, 3, 3), 2, 0, true, AX_VALUES(in[0], in[1], stacked), results);
  out[0] = results[0];
  out[1] = results[1];
  out[2] = ax_reduce_sum(results[2], AX_ALL_DIMS, false); /* of [0, 4] */
}

static void little(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, 4), TEST_TYPE(AX_F32, 4)};
  static const struct {
    ax_function function;
    uint32_t in_count, out_count;
  } rows[] = {{nothing, 0, 0}, {nothing, 2, 0}, {constants, 0, 3}, {handed_on, 2, 3}, {no_steps, 2, 3}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    ax_program *program = test_trace(rows[i].function, NULL, types, rows[i].in_count, rows[i].out_count);
    test_random_run(program, 3, false, 0);
    ax_program_release(program);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(shapes), cmocka_unit_test(many_devices), cmocka_unit_test(little)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
