/* b20: simulated time. What simulating a collective on many devices takes, from its text to the total, and how far that is from its
   closed form. */
#include "axle/simulate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/collectives.h"
#include "cases.h"
#include "serve.h"

static const double overhead = 5e-7, latency = 1e-6, bandwidth = 1e11;
static const char machine[] = "machine m device flops f32 1e14 memory 1e12 torus dimensions %d latency %g bandwidth %g overhead %g";
static const char bus[] = "machine m device flops f32 1e14 memory 1e12 switch latency %g bandwidth %g overhead %g";

typedef struct task {
  bool is_ring, is_tree;
  int64_t devices, side, elems; /* side: of the torus, for the all-to-all */
  ax_mesh mesh;
  double seconds;
} task;

static void on_device(const ax_value *in, ax_value *out, void *context) {
  const task *t = context;
  out[0] = t->is_ring || t->is_tree ? ax_psum(in[0], "x") : ax_all_to_all(in[0], "x,y,z", 0, 0, true);
}

static void whole(const ax_value *in, ax_value *out, void *context) {
  task *t = context;
  const char *specs = t->is_ring || t->is_tree ? "x -> x" : "x+y+z -> x+y+z";
  ax_shard_map_unchecked(&t->mesh, specs, AX_CLOSURE(on_device, 1, 1, t), in, out);
}

static void check(ax_status status) {
  if (status == AX_OK) return;
  fprintf(stderr, "%s\n", ax_message());
  exit(1);
}

/* Traced, lowered and simulated once. */
static void simulate(task *t) {
  char text[256];
  ax_program *program;
  ax_lowered *lowered;
  ax_cluster *cluster;
  ax_simulation simulation;
  const ax_type type = ax_array_type(AX_F32, AX_DIMS(t->elems * t->devices));
  if (t->is_tree) snprintf(text, sizeof text, bus, latency, bandwidth, overhead);
  else snprintf(text, sizeof text, machine, t->is_ring ? 1 : 3, latency, bandwidth, t->is_ring ? overhead : 0);
  check(ax_trace(AX_CLOSURE(whole, 1, 1, t), &type, &program));
  check(ax_program_lower(program, NULL, &lowered));
  check(ax_cluster_parse(text, "machine", &cluster));
  const ax_algorithm algorithm = t->is_ring ? AX_ALGORITHM_RING : t->is_tree ? AX_ALGORITHM_TREE : AX_ALGORITHM_DIRECT;
  check(ax_simulate(lowered, cluster, &(ax_simulate_options){.algorithm = algorithm}, &simulation));
  for (uint32_t i = 0; i < simulation.op_count; i++)
    if (simulation.ops[i].algorithm != NULL) t->seconds = simulation.ops[i].end - simulation.ops[i].start;
  ax_simulation_release(&simulation);
  ax_cluster_release(cluster);
  ax_lowered_release(lowered);
  ax_program_release(program);
}

/* 2(n-1)(a + B/(n b)); 2 log2 n (a + B/b); what the links across the torus's middle have to carry: B side/8 for each. */
static double form(const task *t) {
  const double n = (double)t->devices, bytes = 4 * (double)t->elems, alpha = overhead + latency;
  if (t->is_ring) return 2 * (n - 1) * (alpha + bytes / n / bandwidth);
  if (t->is_tree) return 2 * ceil(log2(n)) * (alpha + bytes / bandwidth);
  return bytes * (double)t->side / 8 / bandwidth;
}

static void repeat(void *context, int64_t count) {
  for (int64_t i = 0; i < count; i++) simulate(context);
}

/* simulated ring|tree|all_to_all DEVICES real|simulated|form|limit */
void simulated(char **arguments) {
  task t = {
      .is_ring = strcmp(arguments[0], "ring") == 0, .is_tree = strcmp(arguments[0], "tree") == 0, .devices = atoll(arguments[1])};
  char mesh[80];
  t.side = llround(cbrt((double)t.devices));
  t.elems = t.is_ring ? 25 * t.devices : t.is_tree ? 25000000 : 2500 * t.devices;
  if (t.is_ring || t.is_tree) snprintf(mesh, sizeof mesh, "x=%lld", (long long)t.devices);
  else snprintf(mesh, sizeof mesh, "x=%lld,y=%lld,z=%lld", (long long)t.side, (long long)t.side, (long long)t.side);
  check(ax_mesh_parse(mesh, &t.mesh));
  if (strcmp(arguments[2], "real") == 0) bench_serve(repeat, &t, 1);
  simulate(&t);
  bench_wait();
  bench_answer(strcmp(arguments[2], "limit") == 0 ? 10 : strcmp(arguments[2], "form") == 0 ? form(&t) : t.seconds);
}
