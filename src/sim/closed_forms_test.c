/* Simulated time beside closed forms: of rings, trees, all-to-all on switches and tori; and how the cost of simulating grows. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "axle/axle.h"
#include "base/base.h"
#include "support/cmocka.h"
#include "support/tensor.h"

typedef enum kind { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, ALL_TO_ALL, BROADCAST, SHIFT, RAGGED } kind;

typedef struct collective {
  kind kind;
  const char *axes;
  ax_mesh mesh;
} collective;

static AX_BODY(on_device) {
  const collective *c = context;
  switch (c->kind) {
    case ALL_REDUCE: out[0] = ax_psum(in[0], c->axes); break;
    case REDUCE_SCATTER: out[0] = ax_psum_scatter(in[0], c->axes, 0, true); break;
    case ALL_GATHER: out[0] = ax_all_gather(in[0], c->axes, 0, true); break;
    case ALL_TO_ALL: out[0] = ax_all_to_all(in[0], c->axes, 0, 0, true); break;
    case BROADCAST: out[0] = ax_pbroadcast(in[0], c->axes, 0); break;
    case RAGGED: { /* of slices without rows, which are known at run time */
      const ax_value none = ax_full(AX_S32, AX_DIMS(ax_axis_size(c->axes)), 0);
      out[0] = ax_ragged_all_to_all(in[0], in[0], none, none, none, none, c->axes);
      break;
    }
    default: out[0] = ax_pshift(in[0], c->axes, 1, true); break;
  }
}

static AX_BODY(whole) {
  const collective *c = context;
  char specs[256] = "";
  for (uint32_t i = 0; i < c->mesh.count; i++)
    snprintf(specs + strlen(specs), sizeof specs - strlen(specs), "%s%s", i > 0 ? "+" : "", c->mesh.axis[i].name);
  char both[600];
  snprintf(both, sizeof both, "%s -> %s", specs, specs);
  ax_shard_map_unchecked(&c->mesh, both, AX_CLOSURE(on_device, 1, 1, (void *)c), in, out);
}

/* The one collective of a program in which each device has `elems` floats, or the largest of them. */
static ax_simulated_op simulate(kind kind, const char *mesh, const char *axes, int64_t elems, const char *machine,
                                const ax_simulate_options *options, ax_simulation *out) {
  collective c = {kind, axes, {0}};
  ax_program *program;
  ax_lowered *lowered;
  ax_cluster *cluster;
  TEST_OK(ax_mesh_parse(mesh, &c.mesh));
  const ax_type type = ax_array_type(AX_F32, AX_DIMS(elems * ax_mesh_devices(&c.mesh)));
  TEST_OK(ax_trace(AX_CLOSURE(whole, 1, 1, &c), &type, &program));
  TEST_OK(ax_program_lower(program, NULL, &lowered));
  TEST_OK(ax_cluster_parse(machine, "test", &cluster));
  TEST_OK(ax_simulate(lowered, cluster, options, out));
  ax_cluster_release(cluster);
  ax_lowered_release(lowered);
  ax_program_release(program);
  ax_simulated_op found = {0};
  for (uint32_t i = 0; i < out->op_count; i++)
    if (out->ops[i].algorithm != NULL && out->ops[i].bytes >= found.bytes) found = out->ops[i];
  assert_non_null(found.algorithm);
  return found;
}

static double seconds(kind kind, const char *mesh, const char *axes, int64_t elems, const char *machine, ax_algorithm algorithm) {
  ax_simulation simulation;
  const ax_simulated_op op =
      simulate(kind, mesh, axes, elems, machine, &(ax_simulate_options){.algorithm = algorithm}, &simulation);
  assert_string_equal(op.algorithm, ax_algorithm_name(algorithm));
  ax_simulation_release(&simulation);
  return op.end - op.start;
}

static const char *mesh_of(int64_t n) {
  static char text[64];
  snprintf(text, sizeof text, "x=%lld", (long long)n);
  return text;
}

static void assert_within(double made, double form, double part, const char *what, int64_t n) {
  if (fabs(made - form) <= part * form) return;
  fail_msg("%s of %lld: %.9g s, not %.9g s", what, (long long)n, made, form);
}

#define DEVICE "machine m device flops f32 1e12 memory 1e12 launch 1e-6 "
static const char bus[] = DEVICE "switch latency 1e-6 bandwidth 1e9 overhead 5e-7";
static const char loop[] = DEVICE "torus dimensions 1 latency 1e-6 bandwidth 1e9 overhead 5e-7";
static const double alpha = 1.5e-6, beta = 1e9;

static const int64_t sizes[] = {2, 3, 4, 5, 7, 8, 16, 31, 64, 100, 257, 1000};

static void test_rings(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(sizes); i++) {
    const int64_t n = sizes[i];
    for (int64_t each = 4; each <= 40000; each *= 100) { /* floats of a part */
      const double part = 4 * (double)each, steps = (double)n - 1;
      const char *mesh = mesh_of(n);
      for (int torus = 0; torus < 2; torus++) {
        const char *machine = torus ? loop : bus;
        assert_within(seconds(ALL_REDUCE, mesh, "x", each * n, machine, AX_ALGORITHM_RING), 2 * steps * (alpha + part / beta), 1e-9,
                      "all-reduce, ring", n);
        assert_within(seconds(REDUCE_SCATTER, mesh, "x", each * n, machine, AX_ALGORITHM_RING), steps * (alpha + part / beta), 1e-9,
                      "reduce-scatter, ring", n);
        assert_within(seconds(ALL_GATHER, mesh, "x", each, machine, AX_ALGORITHM_RING), steps * (alpha + part / beta), 1e-9,
                      "all-gather, ring", n);
      }
    }
  }
}

/* Either way has links of its own on a torus of more than two; on a switch both go by the same. */
static void test_both_ways(void **state) {
  (void)state;
  for (size_t i = 1; i < AX_COUNT(sizes); i++) {
    const int64_t n = sizes[i];
    const double part = 4000, steps = 2 * ((double)n - 1);
    assert_within(seconds(ALL_REDUCE, mesh_of(n), "x", 1000 * n, loop, AX_ALGORITHM_BIDIRECTIONAL),
                  steps * (alpha + part / 2 / beta), 1e-9, "both ways", n);
    assert_within(seconds(ALL_REDUCE, mesh_of(n), "x", 1000 * n, bus, AX_ALGORITHM_BIDIRECTIONAL), steps * (alpha + part / beta),
                  1e-9, "both ways, switch", n);
  }
}

static double levels(int64_t n) { return ceil(log2((double)n)); }

static void test_trees(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(sizes); i++) {
    const int64_t n = sizes[i];
    const double bytes = 40000; /* of other numbers some members have nothing to wait for in a level, and send earlier */
    assert_within(seconds(ALL_REDUCE, mesh_of(n), "x", 10000, bus, AX_ALGORITHM_TREE), 2 * levels(n) * (alpha + bytes / beta),
                  (n & (n - 1)) == 0 ? 1e-9 : 0.05, "all-reduce, tree", n);
    assert_within(seconds(BROADCAST, mesh_of(n), "x", 10000, bus, AX_ALGORITHM_TREE), levels(n) * (alpha + bytes / beta),
                  (n & (n - 1)) == 0 ? 1e-9 : 0.05, "broadcast, tree", n);
    assert_within(seconds(ALL_GATHER, mesh_of(n), "x", 10000, bus, AX_ALGORITHM_DOUBLING),
                  levels(n) * alpha + ((double)n - 1) * bytes / beta, 1e-9, "all-gather, doubling", n);
    assert_within(seconds(ALL_REDUCE, mesh_of(n), "x", 10000 * n, bus, AX_ALGORITHM_DOUBLING),
                  2 * (levels(n) * alpha + ((double)n - 1) * bytes / beta), 1e-9, "all-reduce, doubling", n);
  }
}

/* On a switch each has one link for all; on a torus the links across its middle are what is short: of k^3 devices with B bytes
   each, half of all that each has goes to the other half, over 2 k^2 links each way: k B / 8 for each link. */
static void test_all_to_all(void **state) {
  (void)state;
  static const char cube[] = DEVICE "torus dimensions 3 latency 1e-7 bandwidth 1e9 overhead 0";
  static const char square[] = DEVICE "torus dimensions 2 latency 1e-7 bandwidth 1e9 overhead 1e-9";
  for (size_t i = 0; i < AX_COUNT(sizes); i++) {
    const int64_t n = sizes[i];
    const double part = 4000, others = (double)n - 1;
    assert_within(seconds(ALL_TO_ALL, mesh_of(n), "x", 1000 * n, bus, AX_ALGORITHM_DIRECT), alpha + others * part / beta, 1e-9,
                  "all-to-all, direct", n);
    assert_within(seconds(ALL_TO_ALL, mesh_of(n), "x", 1000 * n, bus, AX_ALGORITHM_PAIRWISE), others * (alpha + part / beta), 1e-9,
                  "all-to-all, pairwise", n);
  }
  for (int64_t k = 4; k <= 20; k += 4) {
    char mesh[96];
    const double bytes = 40000 * (double)(k * k * k);
    snprintf(mesh, sizeof mesh, "x=%lld,y=%lld,z=%lld", (long long)k, (long long)k, (long long)k);
    assert_within(seconds(ALL_TO_ALL, mesh, "x,y,z", 10000 * k * k * k, cube, AX_ALGORITHM_DIRECT), (double)k * bytes / 8 / beta,
                  0.05, "all-to-all, cube", k);
  }
  for (int64_t k = 4; k <= 32; k *= 2) { /* k^2 devices, k links each way across the middle, twice */
    char mesh[64];
    const double bytes = 40000 * (double)(k * k);
    snprintf(mesh, sizeof mesh, "x=%lld,y=%lld", (long long)k, (long long)k);
    assert_within(seconds(ALL_TO_ALL, mesh, "x,y", 10000 * k * k, square, AX_ALGORITHM_DIRECT), (double)k * bytes / 8 / beta, 0.05,
                  "all-to-all, square", k);
  }
}

/* Rings along dimensions: B (1 - 1/m) bytes along the last, of what is left the same along the next; there and back. */
static void test_dimensions(void **state) {
  (void)state;
  static const char nodes[] =
      DEVICE "node devices 8 latency 1e-6 bandwidth 4e9 overhead 5e-7 network latency 2e-6 bandwidth 1e9 overhead 1e-6";
  static const char grid[] = DEVICE "torus dimensions 2 latency 1e-6 bandwidth 1e9 overhead 5e-7";
  for (int64_t n = 2; n <= 64; n *= 2) {
    const double bytes = 4 * 800000, inside = 7 * (1.5e-6 + bytes / 8 / 4e9),
                 across = (double)(n - 1) * (3e-6 + ceil(bytes / 8 / (double)n) / 1e9);
    assert_within(seconds(ALL_REDUCE, mesh_of(8 * n), "x", 800000, nodes, AX_ALGORITHM_DIMENSIONS), 2 * (inside + across), 1e-9,
                  "nodes", n);
    char mesh[64];
    snprintf(mesh, sizeof mesh, "x=%lld,y=10", (long long)n);
    const double along_y = 9 * (alpha + bytes / 10 / beta),
                 along_x = (double)(n - 1) * (alpha + ceil(bytes / 10 / (double)n) / beta);
    assert_within(seconds(ALL_REDUCE, mesh, "x,y", 800000, grid, AX_ALGORITHM_DIMENSIONS), 2 * (along_x + along_y), 1e-9, "grid",
                  n);
  }
}

/* A million devices, and ten times as many: in the time of a few. */
static void test_growth(void **state) {
  (void)state;
  for (int64_t n = 1000; n <= 100000000; n *= 10) {
    ax_simulation s;
    const double begin = ax_seconds();
    const ax_simulated_op op =
        simulate(ALL_REDUCE, mesh_of(n), "x", 1000, loop, &(ax_simulate_options){.algorithm = AX_ALGORITHM_RING}, &s);
    assert_within(op.end - op.start, 2 * (double)(n - 1) * (alpha + ceil(4000 / (double)n) / beta), 1e-6, "all-reduce, ring", n);
    assert_int_equal(s.simulated, 1);
    assert_true(s.events < 200);
    TEST_NEAR(s.messages, 2 * (double)(n - 1) * (double)n, 1e-6 * s.messages);
    assert_true(ax_seconds() - begin < 5);
    ax_simulation_release(&s);
  }
}

/* One collective after the other, or all at once: what each costs to simulate does not grow with how many there are, nor with
   devices. */
typedef struct many {
  uint32_t count;
  bool at_once;
  ax_mesh mesh;
} many;

static AX_BODY(many_sums) {
  const many *m = context;
  ax_value sum = in[0];
  for (uint32_t i = 0; i < m->count; i++) {
    const ax_value part = m->at_once ? ax_mul(in[0], ax_full(AX_F32, AX_DIMS(), (double)i + 2)) : sum;
    sum = m->at_once ? ax_add(sum, ax_psum(part, "x")) : ax_sin(ax_psum(part, "x"));
  }
  out[0] = sum;
}

static AX_BODY(many_on_mesh) {
  const many *m = context;
  ax_shard_map_unchecked(&m->mesh, "x -> x", AX_CLOSURE(many_sums, 1, 1, (void *)m), in, out);
}

static double events_each(uint32_t count, int64_t devices, bool at_once, const char *machine, ax_algorithm algorithm) {
  many m = {.count = count, .at_once = at_once};
  ax_program *program;
  ax_lowered *lowered;
  ax_cluster *cluster;
  ax_simulation s;
  TEST_OK(ax_mesh_parse(mesh_of(devices), &m.mesh));
  const ax_type type = ax_array_type(AX_F32, AX_DIMS(devices));
  TEST_OK(ax_trace(AX_CLOSURE(many_on_mesh, 1, 1, &m), &type, &program));
  TEST_OK(ax_program_lower(program, NULL, &lowered));
  TEST_OK(ax_cluster_parse(machine, NULL, &cluster));
  TEST_OK(ax_simulate(lowered, cluster, &(ax_simulate_options){.algorithm = algorithm}, &s));
  const double events = s.events / count;
  ax_simulation_release(&s);
  ax_cluster_release(cluster);
  ax_lowered_release(lowered);
  ax_program_release(program);
  return events;
}

static void test_growth_in_collectives(void **state) {
  (void)state;
  for (uint32_t count = 10; count <= 1000; count *= 10)
    for (int64_t devices = 100; devices <= 1000000; devices *= 100) 
      assert_true(events_each(count, devices, false, loop, AX_ALGORITHM_RING) < 100);
  for (uint32_t count = 2; count <= 32; count *= 4) assert_true(events_each(count, 1000000, true, loop, AX_ALGORITHM_RING) < 1000);
}

/* Over all dimensions of a torus devices differ, by hundreds or all of them: some steps of each collective are gone through, not its
   thousands. */
static void test_growth_on_a_torus(void **state) {
  (void)state;
  static const char cube[] = DEVICE "torus cube 3 latency 1e-6 bandwidth 1e9 overhead 5e-7";
  static const struct {
    ax_algorithm algorithm;
    double most; /* events of a collective */
  } cases[] = {{AX_ALGORITHM_RING, 5e3},   {AX_ALGORITHM_BIDIRECTIONAL, 1e4}, {AX_ALGORITHM_DIMENSIONS, 1e2}, {AX_ALGORITHM_TORUS, 5e2},
               {AX_ALGORITHM_DOUBLING, 1e2}, {AX_ALGORITHM_TREE, 5e4},          {AX_ALGORITHM_DIRECT, 1e4}};
  for (size_t i = 0; i < AX_COUNT(cases); i++)
    for (uint32_t count = 4; count <= 64; count *= 4)
      assert_true(events_each(count, 4096, false, cube, cases[i].algorithm) < cases[i].most);
}

/* On a torus whose ring comes round evenly each of its messages has a link of its own. */
static void test_winding_rings(void **state) {
  (void)state;
  static const char cube[] = DEVICE "torus dimensions 3 latency 1e-6 bandwidth 1e9 overhead 5e-7";
  for (int64_t k = 2; k <= 8; k++)
    for (int64_t side = 4; side <= 8; side += 2) {
      char mesh[64];
      const int64_t n = k * 3 * side;
      const double bytes = 4 * 100000;
      snprintf(mesh, sizeof mesh, "x=%lld,y=3,z=%lld", (long long)k, (long long)side);
      assert_within(seconds(ALL_REDUCE, mesh, "x,y,z", 100000, cube, AX_ALGORITHM_RING),
                    2 * (double)(n - 1) * (alpha + ceil(bytes / (double)n) / beta), 1e-9, "all-reduce, winding ring", n);
    }
}

static void test_groups(void **state) {
  (void)state;
  static const char grid[] = DEVICE "torus dimensions 2 latency 1e-6 bandwidth 1e9 overhead 5e-7";
  assert_within(seconds(ALL_REDUCE, "x=1000,y=1000", "y", 100000, grid, AX_ALGORITHM_RING), 2 * 999 * (alpha + 400 / beta), 1e-9,
                "rows", 1000);
  assert_within(seconds(ALL_REDUCE, "x=1000,y=1000", "x", 100000, grid, AX_ALGORITHM_RING), 2 * 999 * (alpha + 400 / beta), 1e-9,
                "columns", 1000);
  assert_within(seconds(SHIFT, "x=1000,y=1000", "x", 100000, grid, AX_ALGORITHM_DIRECT), alpha + 400000 / beta, 1e-9, "shift",
                1000);
  assert_within(seconds(ALL_REDUCE, "x=1000,y=1000", "y", 100000, bus, AX_ALGORITHM_RING), 2 * 999 * (alpha + 400 / beta), 1e-9,
                "rows, switch", 1000);
}

/* How many rows go where is a matter of data: all of them are taken to go, as in an all-to-all. */
static void test_ragged(void **state) {
  (void)state;
  static const char machine[] = "machine m device flops f32 1e12 memory 1e12 switch latency 1e-6 bandwidth 1e9";
  static const ax_algorithm algorithms[] = {AX_ALGORITHM_DIRECT, AX_ALGORITHM_PAIRWISE, AX_ALGORITHM_DOUBLING};
  for (size_t i = 0; i < AX_COUNT(algorithms); i++) {
    const double rows = seconds(RAGGED, "d=8", "d", 80000, machine, algorithms[i]);
    const double all = seconds(ALL_TO_ALL, "d=8", "d", 80000, machine, algorithms[i]);
    TEST_NEAR(rows, all, 1e-7); /* a byte of each device goes beside them, which says whether the slices fit */
    assert_true(rows > 0.9 * 4 * 80000 * 7 / 8 / 1e9);
  }
}

/* All links of a torus at once: each part takes one dimension after the other, and at any time each dimension has one part each way. */
static void test_torus(void **state) {
  (void)state;
  static const struct {
    const char *machine, *mesh;
    double side, dimensions;
  } tori[] = {
      {DEVICE "torus sides 4 4 latency 1e-6 bandwidth 1e9 overhead 5e-7", "x=16", 4, 2},
      {DEVICE "torus sides 4 4 4 latency 1e-6 bandwidth 1e9 overhead 5e-7", "x=64", 4, 3},
      {DEVICE "torus sides 16 16 16 latency 1e-6 bandwidth 1e9 overhead 5e-7", "x=4096", 16, 3},
  };
  for (size_t i = 0; i < AX_COUNT(tori); i++) {
    const double side = tori[i].side, parts = 2 * tori[i].dimensions, bytes = 4.0 * 4096 * 6 * 100;
    double form = 0, left = bytes / parts;
    for (int d = 0; d < tori[i].dimensions; d++) {
      left /= side;
      form += (side - 1) * (alpha + left / beta);
    }
    assert_within(seconds(REDUCE_SCATTER, tori[i].mesh, "x", (int64_t)bytes / 4, tori[i].machine, AX_ALGORITHM_TORUS), form, 1e-6,
                  "reduce-scatter, torus", (int64_t)side);
    assert_within(seconds(ALL_REDUCE, tori[i].mesh, "x", (int64_t)bytes / 4, tori[i].machine, AX_ALGORITHM_TORUS), 2 * form, 1e-6,
                  "all-reduce, torus", (int64_t)side);
    ax_simulation best;
    const ax_simulated_op op = simulate(ALL_REDUCE, tori[i].mesh, "x", (int64_t)bytes / 4, tori[i].machine, NULL, &best);
    assert_string_equal(op.algorithm, "torus");
    assert_true(best.simulated == 1);
    ax_simulation_release(&best);
  }
}

/* A straggler holds up all that wait for it, by what it takes longer. */
static void test_stragglers(void **state) {
  (void)state;
  static const char text[] =
      "{ lambda x:f32[64,64]. let y:f32[64,64] = shard_map[mesh=(d=8) unchecked=false in_specs=(P(d)) out_specs=(P()) body={ axes d=8 ; lambda "
      "u:f32[8,64]{V:d}. let a:f32[8,64]{V:d} = tanh u b:f32[64,64] = all_gather_invariant[axes=(d) dimension=0] a in (b) }] x in (y) }";
  ax_program *program;
  ax_lowered *lowered;
  ax_cluster *cluster;
  ax_simulation alike, one, none;
  const ax_slow_device slow[] = {{3, 5}}, far[] = {{8, 2}};
  ax_status status = ax_program_parse(text, strlen(text), "test", &program);
  if (status != AX_OK) fail_msg("%s", ax_message());
  TEST_OK(ax_program_lower(program, NULL, &lowered));
  TEST_OK(ax_cluster_parse("machine m device flops f32 1e9 memory 1e9 launch 1e-6 failures 1e-6 restart 100 store 1e3 switch latency 1e-6 "
                           "bandwidth 1e9 overhead 5e-7",
                           "test", &cluster));
  const ax_simulate_options ring = {.algorithm = AX_ALGORITHM_RING}, held = {.algorithm = AX_ALGORITHM_RING, .slow = {1, slow}};
  TEST_OK(ax_simulate(lowered, cluster, &ring, &alike));
  TEST_OK(ax_simulate(lowered, cluster, &held, &one));
  assert_int_equal(alike.simulated, 1);
  assert_int_equal(one.simulated, 8);
  double computing = 0;
  for (uint32_t i = 0; i < alike.op_count; i++)
    if (strcmp(alike.ops[i].name, "tanh") == 0) computing = alike.ops[i].busy;
  assert_true(computing > 0);
  TEST_NEAR(one.seconds - alike.seconds, 4 * computing, 1e-9);
  /* 8 devices: a failure each 125,000 s; 8 KB of arguments, 2 KB a device or what is held, in as many seconds. */
  const double checkpoint = 2048 / 1e3, between = 1 / 8e-6;
  TEST_NEAR(alike.checkpoint_interval, sqrt(2 * checkpoint * between), 1e-9);
  TEST_NEAR(alike.lost, checkpoint / alike.checkpoint_interval + (alike.checkpoint_interval / 2 + 100) / between, 1e-9);
  TEST_FAILS(ax_simulate(lowered, cluster, &(ax_simulate_options){.slow = {1, far}}, &none), AX_INVALID_ARGUMENT, "device 8");
  ax_simulation_release(&alike);
  ax_simulation_release(&one);
  ax_cluster_release(cluster);
  ax_lowered_release(lowered);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rings),
      cmocka_unit_test(test_both_ways),
      cmocka_unit_test(test_trees),
      cmocka_unit_test(test_all_to_all),
      cmocka_unit_test(test_dimensions),
      cmocka_unit_test(test_growth),
      cmocka_unit_test(test_groups),
      cmocka_unit_test(test_growth_in_collectives),
      cmocka_unit_test(test_growth_on_a_torus),
      cmocka_unit_test(test_winding_rings),
      cmocka_unit_test(test_ragged),
      cmocka_unit_test(test_torus),
      cmocka_unit_test(test_stragglers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
