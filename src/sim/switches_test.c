/* Switches that add and multicast: simulated time beside closed forms, over one switch, over nodes, over trees of switches; what goes
   another way. */
#undef AXLE_NO_LINES
#include "axle/axle.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "sim/algorithms.h"
#include "sim/switches.h"
#include "support/cmocka.h"
#include "support/tensor.h"

#define DEVICE "machine m device flops f32 1e12 memory 1e12 launch 1e-6 "
#define REDUCES "reduces f32 bf16 5e8 multicast 8e8 "
static const char one_switch[] = DEVICE "switch latency 1e-6 bandwidth 1e9 overhead 5e-7 " REDUCES;
static const double alpha = 1.5e-6, reducing = 5e8, copying = 8e8;

static const ax_simulate_options by_switch = {.algorithm = AX_ALGORITHM_SWITCH};

/* What each device does: one collective, or two. */
typedef struct made {
  const char *axes;
  char kind; /* + sum, - scattered sum, g gather, > maximum, x all to all; 2 two sums; t a sum after a computation */
  ax_mesh mesh;
} made;

static AX_BODY(on_device) {
  const made *m = context;
  switch (m->kind) {
    case '-': out[0] = ax_psum_scatter(in[0], m->axes, 0, true); break;
    case 'g': out[0] = ax_all_gather(in[0], m->axes, 0, true); break;
    case '>': out[0] = ax_pmax(in[0], m->axes); break;
    case 'x': out[0] = ax_all_to_all(in[0], m->axes, 0, 0, true); break;
    case '2': out[0] = ax_add(ax_psum(in[0], m->axes), ax_psum(ax_neg(in[0]), m->axes)); break;
    case 't': out[0] = ax_psum(ax_tanh(in[0]), m->axes); break;
    default: out[0] = ax_psum(in[0], m->axes);
  }
}

static AX_BODY(whole) {
  const made *m = context;
  char all[64] = "", both[160];
  for (uint32_t i = 0; i < m->mesh.count; i++)
    snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i > 0 ? "+" : "", m->mesh.axis[i].name);
  snprintf(both, sizeof both, "%s -> %s", all, all);
  ax_shard_map_unchecked(&m->mesh, both, AX_CLOSURE(on_device, 1, 1, (void *)m), in, out);
}

/* Each device has so many elements. */
static ax_simulation simulate(char kind, const char *mesh, const char *axes, ax_dtype dtype, int64_t elems, const char *machine,
                              const ax_simulate_options *options) {
  made m = {axes, kind, {0}};
  ax_program *program;
  ax_lowered *lowered;
  ax_cluster *cluster;
  ax_simulation s;
  TEST_OK(ax_mesh_parse(mesh, &m.mesh));
  const ax_type type = ax_array_type(dtype, AX_DIMS(elems * ax_mesh_devices(&m.mesh)));
  TEST_OK(ax_trace(AX_CLOSURE(whole, 1, 1, &m), &type, &program));
  TEST_OK(ax_program_lower(program, NULL, &lowered));
  TEST_OK(ax_cluster_parse(machine, "test", &cluster));
  TEST_OK(ax_simulate(lowered, cluster, options, &s));
  ax_cluster_release(cluster);
  ax_lowered_release(lowered);
  ax_program_release(program);
  return s;
}

/* The collective's algorithm, and its seconds. */
static const char *collective(char kind, const char *mesh, const char *axes, ax_dtype dtype, int64_t elems, const char *machine,
                              const ax_simulate_options *options, double *seconds) {
  const char *algorithm = NULL;
  ax_simulation s = simulate(kind, mesh, axes, dtype, elems, machine, options);
  for (uint32_t i = 0; i < s.op_count; i++) {
    if (s.ops[i].algorithm == NULL) continue;
    algorithm = s.ops[i].algorithm; /* static */
    *seconds = s.ops[i].end - s.ops[i].start;
  }
  ax_simulation_release(&s);
  assert_non_null(algorithm);
  return algorithm;
}

static void assert_takes(double form, char kind, const char *mesh, const char *axes, int64_t elems, const char *machine) {
  for (int every = 0; every < 2; every++) {
    double seconds = 0;
    const ax_simulate_options options = {.algorithm = AX_ALGORITHM_SWITCH, .every_device = every == 1};
    assert_string_equal(collective(kind, mesh, axes, AX_F32, elems, machine, &options, &seconds), "switch");
    if (fabs(seconds - form) > 1e-9 * form) fail_msg("%c over %s of %s: %.9g s, not %.9g s", kind, axes, mesh, seconds, form);
  }
}

/* B bytes up and B bytes down, at the same time, whatever the number of members. */
static void one_switch_adds(void **state) {
  (void)state;
  static const int64_t sizes[] = {2, 3, 5, 8, 16, 72, 257};
  for (size_t i = 0; i < AX_COUNT(sizes); i++) {
    const int64_t n = sizes[i], each = 1000;
    char mesh[32];
    snprintf(mesh, sizeof mesh, "d=%lld", (long long)n);
    const double all = 4.0 * (double)(n * each);
    assert_takes(alpha + all / reducing, '+', mesh, "d", n * each, one_switch);
    assert_takes(alpha + all / reducing, '-', mesh, "d", n * each, one_switch);
    assert_takes(alpha + all / copying, 'g', mesh, "d", each, one_switch);
  }
}

/* Members of a switch that are not next to one another; a group for each of the others. */
static void groups_share_a_switch(void **state) {
  (void)state;
  assert_takes(alpha + 4e4 / reducing, '+', "a=6,b=5", "a", 10000, one_switch);
  assert_takes(alpha + 4e4 / reducing, '+', "a=6,b=5", "b", 10000, one_switch);
  assert_takes(alpha + 4e4 / reducing, '+', "a=6,b=5,c=4", "c,a", 10000, one_switch);
}

/* A device stands for all, however many they are. */
static void devices_stay_alike(void **state) {
  (void)state;
  for (int64_t n = 1000; n <= 1000000; n *= 10) {
    char mesh[32];
    snprintf(mesh, sizeof mesh, "d=%lld", (long long)n);
    ax_simulation s = simulate('+', mesh, "d", AX_F32, 1000, one_switch, &by_switch);
    assert_int_equal(s.simulated, 1);
    assert_true(s.events < 20);
    TEST_NEAR(s.messages, (double)n, 0);
    ax_simulation_release(&s);
  }
}

/* A switch of few ports is one of a tree, whose every level takes its latency. */
static void trees_have_depth(void **state) {
  (void)state;
  static const char tree[] = DEVICE "switch latency 1e-6 bandwidth 1e9 overhead 5e-7 radix 4 " REDUCES;
  static const struct {
    const char *mesh;
    double depth;
  } trees[] = {{"d=2", 1}, {"d=4", 1}, {"d=5", 2}, {"d=16", 2}, {"d=17", 3}, {"d=64", 3}, {"d=65", 4}};
  for (size_t i = 0; i < AX_COUNT(trees); i++)
    assert_takes(5e-7 + trees[i].depth * 1e-6 + 4000 / reducing, '+', trees[i].mesh, "d", 1000, tree);
}

/* Over nodes of 8: the nodes' switches scatter and gather, and between nodes a part of each device is added. Each is done by a switch or by
   doubling, whichever takes less. */
#define NODES DEVICE "node devices 8 latency 1e-6 bandwidth 4e9 overhead 5e-7 "
#define NETWORK "network latency 2e-6 bandwidth 1e9 overhead 1e-6 "
static double doubling(double members, double before, double part, double bandwidth) {
  return ceil(log2(members)) * before + (members - 1) * part / bandwidth;
}

static void nodes_add_in_turn(void **state) {
  (void)state;
  static const char inside[] = NODES "reduces f32 3e9 multicast 4e9 " NETWORK, between[] = NODES NETWORK "reduces f32 1e9",
                    both[] = NODES "reduces f32 3e9 multicast 4e9 " NETWORK "reduces f32 8e8 multicast 1e9 radix 4",
                    shared[] = NODES "reduces f32 3e9 multicast 4e9 network links node latency 2e-6 bandwidth 1e9 overhead 1e-6 reduces f32 1e9";
  for (int64_t nodes = 2; nodes <= 16; nodes *= 2)
    for (int64_t elems = 6400; elems <= 640000; elems *= 10) {
      char mesh[32], apart[32];
      const double n = (double)nodes, bytes = 4 * (double)elems, part = bytes / 8, depth = nodes <= 4 ? 1 : 2;
      snprintf(mesh, sizeof mesh, "d=%lld", (long long)(8 * nodes));
      snprintf(apart, sizeof apart, "a=%lld,b=8", (long long)nodes);
      const double doubling_inside = doubling(8, 1.5e-6, part, 4e9), doubling_between = doubling(n, 3e-6, ceil(part / n), 1e9),
                   add_inside = 1.5e-6 + ceil(bytes * 4 / 3) / 4e9, copy_inside = 1.5e-6 + bytes / 4e9,
                   add_between = 1e-6 + depth * 2e-6 + part / 8e8, scatter = fmin(add_inside, doubling_inside),
                   gather = fmin(copy_inside, doubling_inside);
      if (elems == 6400) assert_takes(add_inside + 2 * doubling_between + copy_inside, '+', mesh, "d", elems, inside);
      if (nodes > 2) assert_takes(2 * doubling_inside + 3e-6 + part / 1e9, '+', mesh, "d", elems, between);
      if (nodes > 2) assert_takes(scatter + fmin(add_between, 2 * doubling_between) + gather, '+', mesh, "d", elems, both);
      assert_takes(1e-6 + depth * 2e-6 + bytes / 8e8, '+', apart, "a", elems, both); /* one device of each node */
      assert_takes(add_inside, '+', apart, "b", elems, both);
      if (elems == 6400) assert_takes(scatter + fmin(add_between, doubling_between), '-', mesh, "d", elems, both);
      const double gathered = 4 * 100 * n, copy_between = 1e-6 + depth * 2e-6 + gathered / 1e9;
      assert_takes(fmin(copy_between, doubling(n, 3e-6, 400, 1e9)) + 1.5e-6 + 8 * gathered / 4e9, 'g', mesh, "d", 100, both);
      /* Eight devices share the links of their node. */
      if (nodes > 2) assert_takes(scatter + 3e-6 + 8 * part / 1e9 + gather, '+', mesh, "d", elems, shared);
    }
}

/* Of many bytes doubling inside of nodes is sooner, and if no switch is left, it is another algorithm's. */
static void doubling_inside_is_sooner(void **state) {
  (void)state;
  double seconds;
  static const char inside[] = NODES "reduces f32 3e9 multicast 4e9 " NETWORK;
  assert_string_not_equal(collective('+', "d=16", "d", AX_F32, 800000, inside, &by_switch, &seconds), "switch");
  assert_string_equal(collective('+', "a=2,b=8", "b", AX_F32, 800000, inside, &by_switch, &seconds), "switch");
}

/* What switches do not do goes as if they did nothing at all. */
static void others_go_their_ways(void **state) {
  (void)state;
  static const char plain[] = DEVICE "switch latency 1e-6 bandwidth 1e9 overhead 5e-7",
                    adds[] = DEVICE "switch latency 1e-6 bandwidth 1e9 overhead 5e-7 reduces f32 1e9",
                    nodes[] = DEVICE "node devices 8 latency 1e-6 bandwidth 1e9 overhead 5e-7 reduces f32 1e9 network latency 1e-6 bandwidth 1e9";
  static const struct {
    char kind;
    const char *mesh;
    ax_dtype dtype;
    const char *machine;
  } cases[] = {
      {'+', "d=8", AX_F32, plain},
      {'+', "d=8", AX_F64, adds}, /* of another dtype */
      {'>', "d=8", AX_F32, adds}, /* no sum */
      {'g', "d=8", AX_F32, adds},
      {'x', "d=8", AX_F32, one_switch},
      {'+', "d=12", AX_F32, nodes}, /* a node and a half */
  };
  for (size_t i = 0; i < AX_COUNT(cases); i++) {
    double asked, best;
    const char *machine = cases[i].machine == nodes ? nodes : plain;
    assert_string_not_equal(collective(cases[i].kind, cases[i].mesh, "d", cases[i].dtype, 8400, cases[i].machine, &by_switch, &asked), "switch");
    (void)collective(cases[i].kind, cases[i].mesh, "d", cases[i].dtype, 8400, machine, NULL, &best);
    TEST_NEAR(asked, best, 1e-9 * best);
  }
}

/* A ring takes 2 (n-1)/n B: two members have no use for a switch that adds more slowly, eight have. */
static void the_faster_is_taken(void **state) {
  (void)state;
  static const char machine[] = DEVICE "switch latency 1e-6 bandwidth 1e9 overhead 5e-7 reduces f32 7e8";
  double seconds;
  assert_string_not_equal(collective('+', "d=2", "d", AX_F32, 1 << 20, machine, NULL, &seconds), "switch");
  assert_string_equal(collective('+', "d=8", "d", AX_F32, 1 << 20, machine, NULL, &seconds), "switch");
  assert_string_equal(collective('+', "d=8", "d", AX_F32, 2, machine, NULL, &seconds), "switch");
}

/* Two sums at once have each half of the links; the last member decides when a sum begins. */
static void members_wait_for_one_another(void **state) {
  (void)state;
  const ax_slow_device slow[] = {{2, 5}};
  ax_simulation both = simulate('2', "d=4", "d", AX_F32, 1000, one_switch, &by_switch), one = simulate('t', "d=4", "d", AX_F32, 1000, one_switch, &by_switch),
                held = simulate('t', "d=4", "d", AX_F32, 1000, one_switch, &(ax_simulate_options){.algorithm = AX_ALGORITHM_SWITCH, .slow = {1, slow}});
  for (uint32_t i = 0; i < both.op_count; i++)
    if (both.ops[i].algorithm != NULL) TEST_NEAR(both.ops[i].end - both.ops[i].start, alpha + 2 * 4000 / reducing, 1e-12);
  double computing = 0, over = 0, held_over = 0;
  for (uint32_t i = 0; i < one.op_count; i++) {
    if (strcmp(one.ops[i].name, "tanh") == 0) computing = one.ops[i].busy;
    if (one.ops[i].algorithm == NULL) continue;
    over = one.ops[i].end;
    held_over = held.ops[i].end;
  }
  assert_true(computing > 0);
  assert_int_equal(held.simulated, 4);
  TEST_NEAR(held_over - over, 4 * computing, 1e-12);
  ax_simulation_release(&both);
  ax_simulation_release(&one);
  ax_simulation_release(&held);
}

/* --- Who is at a switch --- */

static bool is_there(const ax_sim_place *place, const ax_sim_procedure *s, const ax_sim_phase *phase, int64_t a, int64_t b) {
  const int64_t per_node = place->machine->per_node;
  if (ax_sim_group_device(&s->group, a, ax_sim_group_member(&s->group, b)) != b) return false; /* of another group */
  return phase->shift == 0 ? a / per_node == b / per_node : a % per_node == b % per_node;
}

/* The images are those of all members in the node, or of those in the same place of other nodes, whatever else keeps devices unlike. */
static void images_are_those_of_members(void **state) {
  (void)state;
  static const char *const meshes[] = {"x=4", "x=12", "x=6,y=4", "x=3,y=2,z=4", "x=2,y=3,z=2", "x=16"};
  ax_cluster *machine;
  uint32_t *images = NULL, count = 0, capacity = 0, checked = 0;
  TEST_OK(ax_cluster_parse(DEVICE "node devices 4 bandwidth 4 reduces f32 2 network bandwidth 1 reduces f32 1", NULL, &machine));
  for (size_t i = 0; i < AX_COUNT(meshes); i++)
    for (uint32_t chosen = 1; chosen < 8; chosen++)
      for (uint32_t kept = 0; kept < 4; kept++) {
        ax_mesh mesh;
        ax_sim_place place;
        ax_axes names = {0};
        ax_sim_procedure s = {.kind = AX_COLLECTIVE_ALL_REDUCE, .bytes = 64};
        bool done;
        TEST_OK(ax_mesh_parse(meshes[i], &mesh));
        TEST_OK(ax_sim_place_make(machine, &mesh, &place));
        for (uint32_t a = 0; a < mesh.count; a++)
          if (chosen >> a & 1) strcpy(names.name[names.count++], mesh.axis[a].name);
        ax_sim_group_make(&place, &names, &s.group);
        ax_sim_switches_note(machine, place.devices, AX_F32, true, &s);
        TEST_OK(ax_sim_procedure_make(&s, AX_ALGORITHM_SWITCH, &done));
        ax_sim_place_fold(&place);
        ax_sim_procedure_keep(&s, &place);
        for (uint32_t d = 0; d < place.count; d++)
          if (kept == 3 || kept == d + 1) place.digit[d].fold = place.digit[d].size;
        for (uint32_t p = 0; done && p < s.chains[0].phase_count; p++) {
          const ax_sim_phase *phase = &s.chains[0].phases[p];
          for (int64_t device = 0; device < place.devices && phase->move == AX_MOVE_SWITCH; device++) {
            uint32_t seen = 0, found;
            count = 0;
            TEST_OK(ax_sim_switch_images(&s, phase, &place, device, &images, &count, &capacity));
            for (int64_t image = 0; image < ax_sim_place_images(&place); image++) {
              bool there = false;
              for (int64_t to = 0; to < place.devices; to++)
                there = there || (ax_sim_place_image(&place, to) == image && is_there(&place, &s, phase, device, to));
              for (found = 0; found < count && images[found] != image; found++) continue;
              assert_true(there == (found < count));
              seen += there;
            }
            assert_int_equal(seen, count);
            checked++;
          }
        }
        ax_sim_procedure_deinit(&s);
      }
  assert_true(checked > 300);
  ax_free(images);
  ax_cluster_release(machine);
}

static void links_carry_what_a_switch_takes(void **state) {
  (void)state;
  ax_cluster *machine;
  ax_mesh mesh;
  ax_sim_place place;
  ax_sim_route route = {0};
  TEST_OK(ax_cluster_parse(DEVICE "node devices 4 latency 2 bandwidth 4 network latency 3 overhead 1 bandwidth 1", NULL, &machine));
  TEST_OK(ax_mesh_parse("x=8", &mesh));
  TEST_OK(ax_sim_place_make(machine, &mesh, &place));
  const ax_sim_phase inside = {.move = AX_MOVE_SWITCH, .bytes = 10, .back = 3, .slower = 1.25, .depth = 2},
                     between = {.move = AX_MOVE_SWITCH, .shift = 1, .bytes = 10, .back = 10, .slower = 1, .depth = 1};
  TEST_OK(ax_sim_switch_route(&place, &inside, 5, &route));
  assert_int_equal(route.count, 2);
  assert_true(route.hops[0].link == 20 && route.hops[0].weight == 13 && route.hops[1].link == 21 && route.hops[1].weight == 4);
  assert_true(route.latency == 4 && route.overhead == 0);
  TEST_OK(ax_sim_switch_route(&place, &between, 6, &route));
  assert_int_equal(route.count, 4); /* added */
  assert_true(route.hops[2].link == 26 && route.hops[2].weight == 10 && route.hops[3].link == 27 && route.latency == 3 && route.overhead == 1);
  assert_int_equal(ax_sim_levels(1), 0);
  assert_int_equal(ax_sim_levels(9), 4);
  ax_sim_route_deinit(&route);
  ax_cluster_release(machine);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_switch_adds),      cmocka_unit_test(groups_share_a_switch), cmocka_unit_test(devices_stay_alike),
      cmocka_unit_test(trees_have_depth),     cmocka_unit_test(nodes_add_in_turn),     cmocka_unit_test(doubling_inside_is_sooner), cmocka_unit_test(others_go_their_ways),
      cmocka_unit_test(the_faster_is_taken),  cmocka_unit_test(members_wait_for_one_another),
      cmocka_unit_test(images_are_those_of_members), cmocka_unit_test(links_carry_what_a_switch_takes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
