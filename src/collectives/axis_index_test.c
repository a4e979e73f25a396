/* axis_index and axis_size over axes of environments inside one another: a shard_map in a vmap in a shard_map. */
#include "axle/collectives.h"
#include "axle/transform.h"
#include "support/cmocka.h"
#include "support/run.h"
#include "support/tensor.h"

enum { d_size = 2, v_size = 3, m_size = 2, devices = d_size * m_size };
static const char *const orders[] = {"d", "v", "m", "d,v", "v,d", "m,d", "d,v,m", "m,v,d", "v,m,d", ""};
enum { count = sizeof orders / sizeof orders[0] };

static void innermost(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  for (int i = 0; i < count; i++) {
    ax_value both = ax_add(ax_mul(ax_axis_index(orders[i]), ax_integer(100)), ax_integer(ax_axis_size(orders[i])));
    out[i] = ax_add(in[0], both);
  }
}

static void mapped(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("m=2", &mesh));
  ax_shard_map(&mesh, "m -> m", AX_FN(innermost, 1, count), in, out);
}

static void batched(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_vmap(AX_FN(mapped, 1, count), in, out, &(ax_vmap_options){.axis_name = "v"});
}

static void outermost(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=2", &mesh));
  ax_shard_map(&mesh, "_,d -> _,d", AX_FN(batched, 1, count), in, out);
}

/* The number of (d, v, m) over the axes named. */
static int64_t wanted(const char *axes, int64_t d, int64_t v, int64_t m) {
  int64_t number = 0, size = 1;
  for (const char *c = axes; *c != '\0'; c++) {
    if (*c == ',') continue;
    int64_t n = *c == 'd' ? d_size : *c == 'v' ? v_size : m_size;
    number = number * n + (*c == 'd' ? d : *c == 'v' ? v : m);
    size *= n;
  }
  return number * 100 + size;
}

static void environments_in_one_another(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_S32, v_size, devices);
  double zeros[v_size * devices] = {0};
  ax_program *program = test_trace(outermost, NULL, &type, 1, count);
  ax_tensor *in = test_tensor(type, zeros), *out[count];
  test_run(program, &in, out);
  for (int i = 0; i < count; i++)
    for (int64_t v = 0; v < v_size; v++)
      for (int64_t at = 0; at < devices; at++)
        if (test_get(out[i], v * devices + at) != (double)wanted(orders[i], at / m_size, v, at % m_size))
          fail_msg("\"%s\", v %lld, device %lld: %g", orders[i], (long long)v, (long long)at, test_get(out[i], v * devices + at));
  TEST_EVERY_WAY(program, &in, 0);
  test_release(&in, 1);
  test_release(out, count);
  ax_program_release(program);
}

/* Each environment says which axes are bound in it. */
static void unbound_in(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[0], ax_axis_index("d,x"));
}
static void in_batch(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_vmap(AX_FN(unbound_in, 1, 1), in, out, &(ax_vmap_options){.axis_name = "v"});
}
static void in_mesh(const ax_value *in, ax_value *out, void *context) {
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=2,e=1", &mesh));
  ax_shard_map(&mesh, " -> ", AX_CLOSURE(context != NULL ? in_batch : unbound_in, 1, 1, NULL), in, out);
}

static void unbound(void **state) {
  (void)state;
  ax_program *program;
  int any;
  const ax_type type = TEST_TYPE(AX_S32, v_size);
  TEST_FAILS(ax_trace(AX_CLOSURE(in_mesh, 1, 1, &any), &type, &program), AX_INVALID_ARGUMENT,
             "axis_index: axis \"x\" is not bound; bound are d (2), e (1), v (3)");
  TEST_FAILS(ax_trace(AX_FN(in_mesh, 1, 1), &type, &program), AX_INVALID_ARGUMENT,
             "axis \"x\" is not bound; bound are d (2), e (1)");
  TEST_FAILS(ax_trace(AX_FN(unbound_in, 1, 1), &type, &program), AX_INVALID_ARGUMENT,
             "axis_index: axis \"d\" is not bound, and none is here: a shard_map binds its mesh's axes, a vmap its axis_name");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(environments_in_one_another), cmocka_unit_test(unbound)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
