/* Folded or device by device, and with rounds repeated or gone through: simulated time is the same. Random programs on random
   machines. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "axle/axle.h"
#include "base/base.h"
#include "support/cmocka.h"
#include "support/tensor.h"

enum { most_steps = 6 };

typedef struct made {
  uint64_t random;
  ax_mesh mesh;
  char mesh_text[64], specs[64], machine[400];
  uint32_t step_count;
  struct {
    int kind;
    char axes[32];
    int64_t by;
    bool of_last; /* of what the step before made, not of the input */
  } steps[most_steps];
  bool loops;
} made;

static uint32_t pick(made *m, uint32_t count) { return (uint32_t)(ax_next_random(&m->random) >> 33) % count; }

/* --- Programs --- */

/* To the member so much further on, round or not. */
static ax_value message(made *m, uint32_t i, ax_value x) {
  int64_t pairs[64][2], n = 1;
  uint32_t count = 0;
  for (uint32_t a = 0; a < m->mesh.count; a++)
    if (strchr(m->steps[i].axes, m->mesh.axis[a].name[0]) != NULL) n *= m->mesh.axis[a].size;
  for (int64_t from = 0; from < n; from++) {
    if (m->steps[i].by == 3 && from + 1 == n) continue;
    pairs[count][0] = from;
    pairs[count++][1] = (from + (m->steps[i].by == 3 ? 1 : m->steps[i].by)) % n;
  }
  ax_value token = ax_psend(x, m->steps[i].axes, count, (const int64_t (*)[2])pairs);
  return ax_precv(token, ax_typeof(x), m->steps[i].axes, count, (const int64_t (*)[2])pairs);
}

static ax_value step(made *m, uint32_t i, ax_value x) {
  const char *axes = m->steps[i].axes;
  switch (m->steps[i].kind) {
    case 0: return ax_psum(x, axes);
    case 1: return ax_all_to_all(x, axes, 0, 0, true);
    case 2: return ax_pshift(x, axes, m->steps[i].by, true);
    case 3: return ax_pshift(x, axes, 1, false);
    case 4: return ax_pbroadcast(x, axes, 0);
    case 5: return ax_all_gather(ax_psum_scatter(x, axes, 0, true), axes, 0, true);
    case 6: return ax_mul(ax_pmax(x, axes), x);
    default: return message(m, i, x);
  }
}

static AX_BODY(all_steps) {
  made *m = context;
  ax_value last = in[0], sum = in[0];
  for (uint32_t i = 0; i < m->step_count; i++) {
    last = step(m, i, m->steps[i].of_last ? last : in[0]);
    sum = ax_add(sum, ax_sin(last));
  }
  out[0] = sum;
}

static AX_BODY(on_device) {
  made *m = context;
  if (m->loops) ax_scan(AX_CLOSURE(all_steps, 1, 1, m), 1, 3, false, in, out);
  else all_steps(in, out, context);
}

static AX_BODY(whole) {
  made *m = context;
  ax_shard_map_unchecked(&m->mesh, m->specs, AX_CLOSURE(on_device, 1, 1, m), in, out);
}

/* --- What is random --- */

static void choose_mesh(made *m) {
  static const char *const meshes[] = {"a=6",     "a=12",        "a=7",         "a=2,b=3",     "a=4,b=4",
                                       "a=3,b=5", "a=2,b=2,c=3", "a=4,b=2,c=2", "a=3,b=3,c=3", "a=8,b=2",
                                       "a=25",    "a=60",        "a=48",        "a=8,b=6",     "a=5,b=7"};
  static const char *const some[][6] = {
      {"a", "a", "a", "a", "a", "a"}, {"a", "b", "a,b", "b,a", "a,b", "b"}, {"a", "c", "a,b", "c,b", "a,b,c", "b,a,c"}};
  snprintf(m->mesh_text, sizeof m->mesh_text, "%s", meshes[pick(m, AX_COUNT(meshes))]);
  TEST_OK(ax_mesh_parse(m->mesh_text, &m->mesh));
  for (uint32_t i = 0; i < m->step_count; i++) {
    m->steps[i].kind = (int)pick(m, 8);
    m->steps[i].by = 1 + pick(m, 3);
    m->steps[i].of_last = pick(m, 2) == 0;
    snprintf(m->steps[i].axes, sizeof m->steps[i].axes, "%s", some[m->mesh.count - 1][pick(m, 6)]);
  }
  const char *all = m->mesh.count == 1 ? "a" : m->mesh.count == 2 ? "a+b" : "a+b+c";
  snprintf(m->specs, sizeof m->specs, "%s -> %s", all, all);
}

static double some_of(made *m, double most) { return most * (1 + pick(m, 5)) / 5; }

/* What is said of a link, or of a switch that may add and multicast. */
static void choose_wire(made *m, bool of_switch, double bandwidth, char *text, size_t room) {
  int length = snprintf(text, room, "latency %g bandwidth %g overhead %g", some_of(m, 1e-6), some_of(m, bandwidth),
                        pick(m, 2) == 0 ? 0 : some_of(m, 5e-7));
  if (of_switch && pick(m, 2) == 0) length += snprintf(text + length, room - (size_t)length, " reduces f32 %g", some_of(m, bandwidth));
  if (of_switch && pick(m, 2) == 0) length += snprintf(text + length, room - (size_t)length, " multicast %g", some_of(m, bandwidth));
  if (of_switch && pick(m, 2) == 0) (void)snprintf(text + length, room - (size_t)length, " radix %u", 2 + pick(m, 3));
}

static void choose_machine(made *m) {
  char wire[140], network[140], *text = m->machine;
  const size_t room = sizeof m->machine;
  const long long devices = (long long)ax_mesh_devices(&m->mesh);
  const uint32_t kind = pick(m, 7);
  choose_wire(m, kind == 0 || kind > 4, 1e9, wire, sizeof wire);
  choose_wire(m, kind > 4, 4e8, network, sizeof network);
  const int length = snprintf(text, room, "machine m device flops f32 1e9 memory 1e9 launch %g ", some_of(m, 1e-6));
  text += length;
  switch (kind) {
    case 0: snprintf(text, room - (size_t)length, "switch %s", wire); break;
    case 1: snprintf(text, room - (size_t)length, "torus dimensions %u %s", 1 + pick(m, 4), wire); break;
    case 2: snprintf(text, room - (size_t)length, "torus sides %lld %s", devices, wire); break;
    case 3: snprintf(text, room - (size_t)length, "torus sides 3 4 5 %s", wire); break; /* the mesh is a part of it */
    case 4:
      snprintf(text, room - (size_t)length, "torus sides %lld %lld %s", devices % 3 == 0 ? 3LL : 1LL,
               devices % 3 == 0 ? devices / 3 : devices, wire);
      break;
    default:
      snprintf(text, room - (size_t)length, "node devices %u %s network links %s %s", 1 + pick(m, 4), wire,
               pick(m, 2) == 0 ? "node" : "device", network);
  }
}

/* --- Both ways --- */

static ax_simulation simulate(made *m, ax_simulate_options options) {
  ax_simulation s;
  ax_program *program;
  ax_lowered *lowered;
  ax_cluster *cluster;
  const ax_type type = ax_array_type(AX_F32, AX_DIMS(302400 * ax_mesh_devices(&m->mesh)));
  TEST_OK(ax_trace(AX_CLOSURE(whole, 1, 1, m), &type, &program));
  TEST_OK(ax_program_lower(program, NULL, &lowered));
  TEST_OK(ax_cluster_parse(m->machine, NULL, &cluster));
  TEST_OK(ax_simulate(lowered, cluster, &options, &s));
  ax_cluster_release(cluster);
  ax_lowered_release(lowered);
  ax_program_release(program);
  return s;
}

static void assert_same(const ax_simulation *a, const ax_simulation *b) {
  const double tolerance = 1e-15 * b->seconds; /* a sum of runs, in another order */
  TEST_NEAR(a->seconds, b->seconds, 0);
  TEST_NEAR(a->messages, b->messages, 1e-9 * b->messages);
  assert_int_equal(a->op_count, b->op_count);
  for (uint32_t i = 0; i < a->op_count; i++) {
    assert_true(a->ops[i].algorithm == NULL || strcmp(a->ops[i].algorithm, b->ops[i].algorithm) == 0);
    TEST_NEAR(a->ops[i].start, b->ops[i].start, 0);
    TEST_NEAR(a->ops[i].end, b->ops[i].end, 0);
    TEST_NEAR(a->ops[i].busy, b->ops[i].busy, 100 * tolerance);
    TEST_NEAR(a->ops[i].runs, b->ops[i].runs, 0);
  }
  for (uint32_t k = 0; k < a->link_count; k++) {
    TEST_NEAR(a->links[k].mean, b->links[k].mean, 1e-9);
    TEST_NEAR(a->links[k].most, b->links[k].most, 1e-9);
  }
}

static void assert_path(const ax_simulation *s) {
  assert_true(s->path_count > 0);
  TEST_NEAR(s->path[s->path_count - 1].end, s->seconds, 0);
  TEST_NEAR(s->path[0].start, 0, 0);
  for (uint32_t i = 1; i < s->path_count; i++) assert_true(s->path[i].start <= s->path[i].end * (1 + 1e-12));
}

static void test_agree(void **state) {
  (void)state;
  uint32_t folded = 0, switched = 0;
  for (uint64_t seed = 1; seed <= 1000; seed++) {
    made m = {.random = seed};
    m.step_count = 1 + pick(&m, most_steps);
    m.loops = pick(&m, 3) == 0;
    choose_mesh(&m);
    choose_machine(&m);
    ax_algorithm algorithm = (ax_algorithm)pick(&m, AX_ALGORITHM_COUNT);
    if (strstr(m.machine, "reduces") != NULL && pick(&m, 3) != 0) algorithm = AX_ALGORITHM_SWITCH;
    print_message("%llu: %s, %s, %s\n", (unsigned long long)seed, m.mesh_text, ax_algorithm_name(algorithm), m.machine);
    ax_simulation a = simulate(&m, (ax_simulate_options){.algorithm = algorithm}),
                  b = simulate(&m, (ax_simulate_options){.algorithm = algorithm, .every_device = true});
    assert_int_equal(b.simulated, b.devices);
    folded += a.simulated < a.devices;
    for (uint32_t i = 0; i < a.op_count; i++) switched += a.ops[i].algorithm != NULL && strcmp(a.ops[i].algorithm, "switch") == 0;
    assert_same(&a, &b);
    assert_path(&a);
    assert_path(&b);
    ax_simulation_release(&a);
    ax_simulation_release(&b);
  }
  assert_true(folded > 200);
  print_message("%u collectives in switches\n", switched);
  assert_true(switched > 100);
}

/* Rings that wind through a torus, several at once: over all axes, or with others beside them. Where all members are alike, one stands for
   all of them. */
static void choose_rings(made *m) {
  static const char *const meshes[] = {"a=4,b=4", "a=2,b=2,c=3", "a=4,b=2,c=2", "a=3,b=3,c=3", "a=8,b=2", "a=8,b=6", "a=3,b=4,c=2", "a=6,b=5"};
  snprintf(m->mesh_text, sizeof m->mesh_text, "%s", meshes[pick(m, AX_COUNT(meshes))]);
  TEST_OK(ax_mesh_parse(m->mesh_text, &m->mesh));
  const char *all = m->mesh.count == 2 ? "a,b" : "a,b,c", *some = m->mesh.count == 2 ? "b,a" : pick(m, 2) == 0 ? "b,c" : "c,a";
  const bool mixed = pick(m, 3) == 0, two = pick(m, 3) == 0;
  for (uint32_t i = 0; i < m->step_count; i++) {
    m->steps[i].kind = pick(m, 2) == 0 ? 0 : 5;
    m->steps[i].by = 1;
    m->steps[i].of_last = pick(m, 3) == 0;
    snprintf(m->steps[i].axes, sizeof m->steps[i].axes, "%s", two && i % 2 == 1 ? "a" : mixed ? some : all);
    if (mixed && pick(m, 3) == 0) m->steps[i].kind = 2 + (int)pick(m, 2);
  }
  snprintf(m->specs, sizeof m->specs, "%s", m->mesh.count == 2 ? "a+b -> a+b" : "a+b+c -> a+b+c");
  snprintf(m->machine, sizeof m->machine, "machine m device flops f32 1e9 memory 1e9 launch %g torus dimensions %u latency %g bandwidth %g overhead %g",
           some_of(m, 1e-4), m->mesh.count, some_of(m, 1e-6), some_of(m, 1e9), pick(m, 2) == 0 ? 0 : some_of(m, 5e-7));
}

static void test_rings(void **state) {
  (void)state;
  uint32_t alike = 0;
  for (uint64_t seed = 1; seed <= 400; seed++) {
    made m = {.random = seed};
    m.step_count = 1 + pick(&m, most_steps);
    m.loops = pick(&m, 4) == 0;
    choose_rings(&m);
    const ax_algorithm algorithm = pick(&m, 2) == 0 ? AX_ALGORITHM_RING : AX_ALGORITHM_BIDIRECTIONAL;
    print_message("%llu: %s, %s, %s\n", (unsigned long long)seed, m.mesh_text, ax_algorithm_name(algorithm), m.machine);
    ax_simulation a = simulate(&m, (ax_simulate_options){.algorithm = algorithm}),
                  b = simulate(&m, (ax_simulate_options){.algorithm = algorithm, .every_device = true});
    alike += a.simulated == 1;
    assert_same(&a, &b);
    assert_path(&a);
    ax_simulation_release(&a);
    ax_simulation_release(&b);
  }
  print_message("%u of one device\n", alike);
  assert_true(alike > 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_agree), cmocka_unit_test(test_rings)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
