/* More bytes never take less time: collectives of 1 to 2^24 floats, on the machines that the tree describes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "axle/axle.h"
#include "base/base.h"
#include "sim/cluster.h"
#include "support/cmocka.h"
#include "support/tensor.h"

typedef enum kind { ALL_REDUCE, MAXIMUM, REDUCE_SCATTER, ALL_GATHER, ALL_TO_ALL, BROADCAST, SHIFT, KINDS } kind;
static const char *const names[KINDS] = {"psum", "pmax", "psum_scatter", "all_gather", "all_to_all", "pbroadcast", "ppermute"};

typedef struct collective {
  kind kind;
  const char *axes;
  ax_mesh mesh;
} collective;

static AX_BODY(on_device) {
  const collective *c = context;
  switch (c->kind) {
    case ALL_REDUCE:
      out[0] = ax_psum(in[0], c->axes);
      break;
    case MAXIMUM:
      out[0] = ax_pmax(in[0], c->axes);
      break;
    case REDUCE_SCATTER:
      out[0] = ax_psum_scatter(in[0], c->axes, 0, true);
      break;
    case ALL_GATHER:
      out[0] = ax_all_gather(in[0], c->axes, 0, true);
      break;
    case ALL_TO_ALL:
      out[0] = ax_all_to_all(in[0], c->axes, 0, 0, true);
      break;
    case BROADCAST:
      out[0] = ax_pbroadcast(in[0], c->axes, 0);
      break;
    default:
      out[0] = ax_pshift(in[0], c->axes, 1, true);
      break;
  }
}

static AX_BODY(whole) {
  const collective *c = context;
  char specs[256] = "", both[600];
  for (uint32_t i = 0; i < c->mesh.count; i++)
    snprintf(specs + strlen(specs), sizeof specs - strlen(specs), "%s%s", i > 0 ? "+" : "", c->mesh.axis[i].name);
  snprintf(both, sizeof both, "%s -> %s", specs, specs);
  ax_shard_map_unchecked(&c->mesh, both, AX_CLOSURE(on_device, 1, 1, (void *)c), in, out);
}

/* Seconds of a program that is the collective alone, of so many floats a device. Where devices share a memory a small result is
   copied to a place for each of them, and a large one is not, in runs too (plan/lower.c): there they are those of the collective.
   */
static double seconds(const collective *c, const ax_cluster *machine, int64_t elems, char *ops, size_t bytes) {
  ax_program *program;
  ax_lowered *lowered;
  ax_simulation s;
  const ax_type type = ax_array_type(AX_F32, AX_DIMS(elems * ax_mesh_devices(&c->mesh)));
  TEST_OK(ax_trace(AX_CLOSURE(whole, 1, 1, (void *)(uintptr_t)c), &type, &program));
  TEST_OK(ax_program_lower(program, NULL, &lowered));
  TEST_OK(ax_simulate(lowered, machine, NULL, &s));
  ops[0] = '\0';
  for (uint32_t i = 0; i < s.op_count; i++)
    snprintf(ops + strlen(ops), bytes - strlen(ops), " %s%s%s %.4g us;", s.ops[i].name, s.ops[i].algorithm != NULL ? " by " : "",
             s.ops[i].algorithm != NULL ? s.ops[i].algorithm : "", 1e6 * (s.ops[i].end - s.ops[i].start));
  double found = 0;
  for (uint32_t i = 0; i < s.op_count; i++)
    if (s.ops[i].algorithm != NULL || !machine->one_memory) found = fmax(found, s.ops[i].end);
  if (!machine->one_memory) TEST_NEAR(found, s.seconds, 1e-12);
  ax_simulation_release(&s);
  ax_lowered_release(lowered);
  ax_program_release(program);
  return found;
}

enum { of_each_power = AX_HOSTILE ? 4 : 8, powers = 24 };

/* Sizes around powers of two and between. */
static int64_t size_of(int number) {
  const int64_t power = (int64_t)1 << (number / of_each_power), part = number % of_each_power;
  return part < 2                    ? power + part
         : part == 2                 ? power + 8
         : part == of_each_power - 1 ? 2 * power - 1
                                     : power + power * part / of_each_power + part % 2;
}

/* How much less more bytes may take. Where members are a part of a torus, chains that go round cross on its links, and by which
   comes first there a few bytes can make a difference of this part. */
static double slack_of(const ax_cluster *machine) {
  return machine->topology == AX_TOPOLOGY_TORUS && machine->rank > 0 ? 0.02 : 1e-9;
}

static uint32_t check(kind kind, const char *mesh, const char *axes, const ax_cluster *machine) {
  enum { most = of_each_power * powers };
  collective c = {kind, axes, {0}};
  char ops[1024], ops_before[1024] = "";
  double before = 0;
  int64_t elems_before = 0;
  uint32_t wrong = 0;
  TEST_OK(ax_mesh_parse(mesh, &c.mesh));
  const int64_t unit = kind == REDUCE_SCATTER || kind == ALL_TO_ALL ? ax_mesh_devices(&c.mesh) : 1;
  for (int i = 0; i <= most; i++) {
    const int64_t elems = size_of(i) * unit;
    if (elems <= elems_before) continue;
    const double now = seconds(&c, machine, elems, ops, sizeof ops);
    if (now < before * (1 - slack_of(machine))) {
      wrong++;
      print_message("%s over %s of %s on %s: %lld floats take %.6g us, and %lld %.6g\n   before:%s\n   now:%s\n", names[kind], axes,
                    mesh, machine->name, (long long)elems_before, 1e6 * before, (long long)elems, 1e6 * now, ops_before, ops);
    }
    if (now > before) before = now;
    elems_before = elems;
    memcpy(ops_before, ops, sizeof ops);
  }
  return wrong;
}

static uint32_t check_machine(const ax_cluster *machine) {
  static const char *const meshes[][2] = {{"x=8", "x"},       {"x=3", "x"},     {"x=16", "x"},
                                          {"x=4,y=4", "x,y"}, {"x=4,y=4", "x"}, {"x=4,y=4", "y"}};
  uint32_t wrong = 0;
  for (size_t m = 0; m < AX_COUNT(meshes); m++)
    for (int k = 0; k < KINDS; k++) wrong += check((kind)k, meshes[m][0], meshes[m][1], machine);
  return wrong;
}

static void test_described(void **state) {
  (void)state;
  uint32_t wrong = 0;
  const char *name;
  for (uint32_t i = 0; (name = ax_cluster_builtin(i, NULL)) != NULL; i++) {
    ax_cluster *machine;
    TEST_OK(ax_cluster_read(name, &machine));
    wrong += check_machine(machine);
    ax_cluster_release(machine);
  }
  assert_int_equal(wrong, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_described)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
