/* Machines as texts: what is refused, and where; programs that do not fit on them; no memory at any moment. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/axle.h"
#include "base/base.h"
#include "machine/machine.h"
#include "sim/cluster.h"
#include "sim/report.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/tensor.h"

#define DEVICE "machine m\ndevice flops f32 1e12 memory 1e12\n"

/* The machine "cpu" is this one: its figures are those of the description, which tests are given. */
static void cores_of_this_machine(void **state) {
  (void)state;
  const char *text, *name = NULL;
  for (uint32_t i = 0; (name = ax_cluster_builtin(i, &text)) != NULL && strcmp(name, "cpu") != 0; i++) continue;
  assert_non_null(name);
  assert_int_equal(ax_machine_know(AX_FACT_F32).source, AX_SOURCE_GIVEN);
  ax_cluster *made;
  TEST_OK(ax_cluster_read("cpu", &made));
  assert_true(fabs(ax_cluster_flops(made, AX_F64) / ax_machine_know(AX_FACT_F64).value - 1) < 1e-2);
  assert_true(fabs(ax_cluster_flops(made, AX_S8) / ax_machine_know(AX_FACT_S8).value - 1) < 1e-2);
  assert_true(fabs(made->memory / ax_machine_know(AX_FACT_READ).value - 1) < 1e-2);
  assert_true(fabs(made->wire.latency / (10 * ax_machine_know(AX_FACT_EXCHANGE).value) - 1) < 1e-2);
  assert_true(made->wire.bandwidth < made->memory);
  assert_true(ax_cluster_is_here(made));
  assert_true(made->cores == 0 && made->core > 0 && made->quotients > 0 && made->cache_count == 2);
  ax_cluster_release(made);

  ax_cluster *two, *again;
  TEST_OK(ax_cluster_read("cpu:2", &two));
  assert_int_equal(two->cores, 2);
  assert_true(two->share > 0);
  TEST_OK(ax_cluster_parse(ax_cluster_text(two), "again", &again));
  assert_string_equal(ax_cluster_text(again), ax_cluster_text(two));
  assert_memory_equal(again->flops, two->flops, sizeof two->flops);
  ax_cluster_release(again);
  ax_cluster_release(two);
  static const char *const none[] = {"cpu:", "cpu:0", "cpu:-1", "cpu:2x", "cpu:65537", "cpu: 2"};
  for (size_t i = 0; i < AX_COUNT(none); i++) TEST_FAILS(ax_cluster_read(none[i], &two), AX_IO_ERROR, "no machine of that name");
}

static void test_texts(void **state) {
  (void)state;
  static const struct {
    const char *text, *message;
  } wrong[] = {
      {"", "m.txt:1:1: the machine ends without its name: machine NAME"},
      {"machine m", "the machine ends without a device"},
      {"machine m device memory 1", "the machine ends without the device's flops"},
      {"machine m device flops f32 1", "without the device's memory"},
      {DEVICE, "without a torus, a switch, or nodes and a network"},
      {DEVICE "switch latency 1", "without the bandwidth of its links"},
      {DEVICE "torus bandwidth 1", "without the torus's dimensions, or its sides"},
      {DEVICE "switch bandwidth 1\nnetwork bandwidth 1", "without nodes for its network"},
      {DEVICE "node devices 4 bandwidth 1", "without a network, and its bandwidth"},
      {DEVICE "node bandwidth 1 network bandwidth 1", "without the devices of a node"},
      {DEVICE "switch bandwidth 1\ntorus sides 4", "m.txt:4:1: a machine has one topology"},
      {"machine m\ndevice flops f33 1", "m.txt:2:14: expected a dtype, got 'f33'"},
      {"machine m\ndevice flops f32 fast", "m.txt:2:18: expected a number for 'f32'"},
      {"machine m\ndevice memory -1", "m.txt:2:15: 'memory' must be a number above 0"},
      {"machine m\ndevice memory 1e999", "is no number"},
      {"machine m\ndevice colour 1",
       "m.txt:2:8: 'colour' is nothing that is said of a device: flops DTYPE, memory, write, cache, core, quotients, cores, core_memory, share, capacity, watts, price, failures, restart, store, scratch, launch"},
      {"machine m\ndevice cache 1e6", "expected a number for 'cache'"},
      {"machine m\ndevice cache 1e6 1e11 cache 1e6 1e10", "m.txt:2:23: a cache of no more bytes than the one before it"},
      {"machine m\ndevice cache 1 1 cache 2 1 cache 3 1 cache 4 1 cache 5 1", "a device has 4 caches at most"},
      {"machine m\ndevice cores 1.5", "'cores' must be a whole number from 1 to 65536"},
      {"machine m\ndevice core 0", "'core' must be a number above 0"},
      {"machine m\ndevice core 1 quotients 0", "'quotients' must be a number above 0"},
      {DEVICE "torus sides 4 4.5", "m.txt:3:15: 'sides' must be a whole number from 1 to"},
      {DEVICE "torus sides 1 1 1 1 1 1 1", "a torus has 6 sides at most"},
      {DEVICE "torus sides", "expected a number for 'sides'"},
      {DEVICE "torus dimensions 7", "'dimensions' must be a whole number from 1 to 6"},
      {DEVICE "switch latency -1", "'latency' must not be below 0"},
      {DEVICE "switch bandwidth 1 reduces 5", "m.txt:3:28: expected a dtype, got '5'"},
      {DEVICE "switch bandwidth 1 reduces f32 fast 5", "expected a dtype, got 'fast'"},
      {DEVICE "switch bandwidth 1 reduces f32", "expected a number for 'reduces'"},
      {DEVICE "switch bandwidth 1 reduces f32 0", "'reduces' must be a number above 0"},
      {DEVICE "switch bandwidth 1 multicast 0", "'multicast' must be a number above 0"},
      {DEVICE "node devices 2 bandwidth 1 radix 1.5", "'radix' must be a whole number from 1 to"},
      {DEVICE "torus dimensions 1 bandwidth 1 reduces f32 1", "'reduces' is nothing that is said of a torus"},
      {DEVICE "node devices 8 links 2", "'links' is nothing that is said of a node"},
      {DEVICE "node devices 8 bandwidth 1 network links cable", "expected 'device' or 'node', whose links they are"},
      {"machine m\ndevice memory 1 flops f32 1 memory 2", "m.txt:2:29: 'memory' is given twice"},
      {"machine m device flops f32 1 flops f16 2 flops f32 1", "m.txt:1:48: 'f32' is given twice"},
      {"machine m machine n", "m.txt:1:11: 'machine' is given twice"},
      {DEVICE "device memory 1e12", "m.txt:3:8: 'memory' is given twice"},
      {DEVICE "switch bandwidth 1 latency 1 bandwidth 2", "'bandwidth' is given twice"},
      {DEVICE "switch bandwidth 1 reduces f32 f16 1 reduces f16 2", "'f16' is given twice"},
      {DEVICE "node devices 4 devices 8 bandwidth 1", "'devices' is given twice"},
      {DEVICE "node devices 4 bandwidth 1 network links node links device", "'links' is given twice"},
      {DEVICE "torus dimensions 2 sides 4 4", "m.txt:3:20: a torus has either sides, or dimensions, or a cube of some, once"},
      {DEVICE "torus sides 4 4 sides 2", "a torus has either sides"},
      {DEVICE "swich bandwidth 1", "'swich' is nothing that is said of a device"},
      {"cluster m", "m.txt:1:1: expected machine, device, torus, switch, node or network, got 'cluster'"},
      {"machine 4", "expected the machine's name"},
      {"machine m $", "m.txt:1:11: "},
  };
  ax_cluster *made;
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    TEST_FAILS(ax_cluster_parse(wrong[i].text, "m.txt", &made), AX_PARSE_ERROR, wrong[i].message);
    assert_null(made);
  }
  TEST_OK(
      ax_cluster_parse("# all at once\nswitch bandwidth 5 ports 4 device memory 1 flops s8 3 machine \"two words\"", NULL, &made));
  assert_string_equal(ax_cluster_name(made), "two words");
  ax_cluster_release(made);
  ax_cluster_release(NULL);
  assert_null(ax_cluster_name(NULL));
  assert_null(ax_cluster_text(NULL));
  TEST_FAILS(ax_cluster_parse(NULL, NULL, &made), AX_INVALID_ARGUMENT, "text");
}

static void switches_that_add(void **state) {
  (void)state;
  ax_cluster *made;
  TEST_OK(ax_cluster_parse(DEVICE "node devices 2 reduces f32 bf16 3 multicast 4 bandwidth 5 radix 7\n"
                                  "network bandwidth 1 reduces f16 8 reduces f32 9 device capacity 1",
                           NULL, &made));
  assert_true(made->wire.reduces[AX_F32] == 3 && made->wire.reduces[AX_BF16] == 3 && made->wire.reduces[AX_F16] == 0);
  assert_true(made->wire.multicast == 4 && made->wire.radix == 7 && made->wire.bandwidth == 5);
  assert_true(made->network.reduces[AX_F16] == 8 && made->network.reduces[AX_F32] == 9 && made->network.multicast == 0);
  ax_cluster_release(made);
}

/* Times and bytes as reports write them. */
static void test_amounts(void **state) {
  (void)state;
  static const struct {
    double value;
    const char *seconds, *bytes;
  } cases[] = {{0, "0 ns", "0 B"}, {2.5e-6, "2.5 us", "2.5e-06 B"}, {1, "1 s ", "1 B"}, {999.5, "999.5 s ", "999.5 B"},
               {12345, "1.234e+04 s ", "12.35 kB"}, {3e16, "3e+16 s ", "30 PB"}};
  for (size_t i = 0; i < AX_COUNT(cases); i++) {
    ax_text seconds = {0}, bytes = {0};
    ax_sim_seconds_text(&seconds, cases[i].value, 0);
    ax_sim_bytes_text(&bytes, cases[i].value, 0, 4);
    assert_string_equal(seconds.data, cases[i].seconds);
    assert_string_equal(bytes.data, cases[i].bytes);
    ax_text_deinit(&seconds);
    ax_text_deinit(&bytes);
  }
}

static void test_builtins(void **state) {
  (void)state;
  const char *text, *name;
  uint32_t count = 0;
  ax_cluster *made;
  for (; (name = ax_cluster_builtin(count, &text)) != NULL; count++) {
    TEST_OK(ax_cluster_read(name, &made));
    assert_string_equal(ax_cluster_name(made), name);
    ax_cluster_release(made);
    TEST_OK(ax_cluster_parse(text, name, &made));
    ax_cluster_release(made);
    const bool is_published =
        count >= 3 && strcmp(name, "cpu") != 0; /* a maker's figures, not round ones or those of this machine */
    assert_int_equal(strstr(text, "https://") != NULL, is_published);
  }
  assert_int_equal(count, 13);
  assert_null(text);
  TEST_FAILS(ax_cluster_read("no/such", &made), AX_IO_ERROR, "there are tpu-like-torus, tpu-like-cube, h200-switch, a100, h100");
  TEST_FAILS(ax_cluster_read("/dev/zero", &made), AX_IO_ERROR, "longer than 1 MiB");
  for (int a = 0; a < AX_ALGORITHM_COUNT; a++) {
    ax_algorithm found;
    TEST_OK(ax_algorithm_find(ax_algorithm_name((ax_algorithm)a), &found));
    assert_int_equal(found, a);
    TEST_FAILS(ax_algorithm_find("fast", &found), AX_INVALID_ARGUMENT, "\"fast\"; there are best, ring, ");
  }
  assert_null(ax_algorithm_name(AX_ALGORITHM_COUNT));
}

/* --- Programs --- */

static AX_BODY(sums) {
  const char *axes = context;
  out[0] = ax_sin(ax_psum(ax_psum(ax_matmul(in[0], in[0]), axes), axes));
  out[0] = ax_ppermute(out[0], axes, 2, (const int64_t[][2]){{0, 1}, {1, 3}});
}

typedef struct made {
  const char *mesh;
  ax_function body;
} made;

static AX_BODY(whole) {
  const made *m = context;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse(m->mesh, &mesh));
  ax_shard_map_unchecked(&mesh, "x -> x", AX_CLOSURE(m->body, 1, 1, "x"), in, out);
}

static ax_lowered *lowered(const char *mesh_text, ax_function body) {
  made m = {mesh_text, body};
  ax_mesh mesh;
  ax_program *program;
  ax_lowered *made;
  TEST_OK(ax_mesh_parse(mesh_text, &mesh));
  TEST_OK(ax_trace(AX_CLOSURE(whole, 1, 1, &m), AX_TYPES(AX_TYPE(AX_F32, 8 * mesh.axis[0].size, 8)), &program));
  TEST_OK(ax_program_lower(program, NULL, &made));
  ax_program_release(program);
  return made;
}

static ax_status on(const ax_lowered *l, const char *machine, const ax_simulate_options *options, ax_simulation *out) {
  ax_cluster *cluster;
  TEST_OK(ax_cluster_parse(machine, NULL, &cluster));
  ax_status status = ax_simulate(l, cluster, options, out);
  ax_cluster_release(cluster);
  return status;
}

static void test_refusals(void **state) {
  (void)state;
  ax_lowered *l = lowered("x=24", sums);
  ax_simulation s;
  char *text;
  TEST_FAILS(on(l, DEVICE "torus sides 2 3 bandwidth 1", NULL, &s), AX_INVALID_ARGUMENT,
             "the mesh (x=24,) has 24 devices, but the machine \"m\" has 6");
  TEST_FAILS(on(l, DEVICE "switch ports 20 bandwidth 1", NULL, &s), AX_INVALID_ARGUMENT, "has 20");
  TEST_FAILS(on(l, DEVICE "node devices 4 bandwidth 1 network ports 5 bandwidth 1", NULL, &s), AX_INVALID_ARGUMENT, "has 20");
  TEST_FAILS(on(l, DEVICE "torus sides 2147483647 2 bandwidth 1", NULL, &s), AX_INVALID_ARGUMENT, "more than 2147483647 devices");
  TEST_FAILS(on(l, DEVICE "switch bandwidth 1", &(ax_simulate_options){.algorithm = AX_ALGORITHM_TREE, .most_messages = 10}, &s),
             AX_INVALID_ARGUMENT, "simulate: more than 10 messages: 24 ");
  TEST_FAILS(on(l, DEVICE "switch bandwidth 1", &(ax_simulate_options){.algorithm = AX_ALGORITHM_RING, .most_messages = 200}, &s),
             AX_INVALID_ARGUMENT, "by itself with the algorithm ring; these would do: best, tree");
  TEST_FAILS(on(l, DEVICE "switch bandwidth 1", &(ax_simulate_options){.algorithm = (ax_algorithm)99}, &s), AX_INVALID_ARGUMENT,
             "the algorithm is 99");
  assert_null(s.ops);
  TEST_FAILS(ax_simulate(NULL, NULL, NULL, &s), AX_INVALID_ARGUMENT, "lowered");
  TEST_OK(on(l, DEVICE "switch bandwidth 1e9", NULL, &s));
  TEST_FAILS(ax_simulation_print(&s, (ax_simulation_form)7, &text), AX_INVALID_ARGUMENT, "form is 7");
  ax_simulation_release(&s);
  ax_simulation_release(&s);
  ax_lowered_release(l);
}

/* An operation that two collectives follow, the second of the first's result; and the forms. */
static void test_results(void **state) {
  (void)state;
  ax_lowered *l = lowered("x=24", sums);
  ax_simulation s;
  char *text;
  TEST_OK(on(l, DEVICE "switch bandwidth 1e9 latency 1e-6", &(ax_simulate_options){.spans = 3}, &s));
  assert_int_equal(s.devices, 24);
  assert_int_equal(s.simulated, 24); /* pairs are not the same for all */
  assert_false(s.all_spans);
  double computed = 0;
  for (uint32_t i = 0; i < s.op_count; i++) {
    assert_true(s.ops[i].start <= s.ops[i].end && s.ops[i].end <= s.seconds);
    computed += s.ops[i].algorithm == NULL ? s.ops[i].flops : 0;
  }
  assert_true(computed >= 2 * 8 * 8 * 8);
  for (uint32_t i = 0; i < s.span_count; i++)
    assert_true(s.spans[i].device < 3 && s.spans[i].end <= s.seconds && (i == 0 || s.spans[i - 1].start <= s.spans[i].start));
  TEST_NEAR(s.path[s.path_count - 1].end, s.seconds, 0);
  TEST_OK(ax_simulation_print(&s, AX_SIMULATION_TEXT, &text));
  assert_non_null(strstr(text, "24 devices of the machine m ("));
  assert_non_null(strstr(text, "psum of 24, "));
  assert_non_null(strstr(text, "  under way  "));
  ax_string_free(text);
  TEST_OK(ax_simulation_print(&s, AX_SIMULATION_JSON, &text));
  assert_non_null(strstr(text, "\"traceEvents\":["));
  ax_string_free(text);
  TEST_OK(ax_simulation_print(&s, AX_SIMULATION_SVG, &text));
  assert_non_null(strstr(text, "device 2</text>"));
  assert_non_null(strstr(text, "</svg>"));
  ax_string_free(text);
  ax_simulation_release(&s);
  ax_lowered_release(l);
}

/* Bytes over `memory`, flops over those of the dtype, or the launch. */
static AX_BODY(product) { out[0] = ax_matmul(in[0], in[1]); }

static double product_seconds(ax_dtype dtype, const char *machine) {
  ax_program *program;
  ax_lowered *l;
  ax_simulation s;
  TEST_OK(ax_trace(AX_FN(product, 2, 1), AX_TYPES(AX_TYPE(dtype, 64, 256), AX_TYPE(dtype, 256, 32)), &program));
  TEST_OK(ax_program_lower(program, NULL, &l));
  TEST_OK(on(l, machine, NULL, &s));
  double seconds = 0;
  for (uint32_t i = 0; i < s.op_count; i++)
    seconds += strcmp(s.ops[i].name, "dot_general") == 0 && s.ops[i].flops > 5e5 ? s.ops[i].busy : 0;
  ax_simulation_release(&s);
  ax_lowered_release(l);
  ax_program_release(program);
  return seconds;
}

static void test_work(void **state) {
  (void)state;
  const double flops = 2.0 * 64 * 32 * 256, bytes = 4.0 * (64 * 256 + 256 * 32 + 64 * 32);
  TEST_NEAR(product_seconds(AX_F32, "machine m device flops f32 1e6 memory 1e12 switch bandwidth 1"), flops / 1e6, 1e-9);
  TEST_NEAR(product_seconds(AX_F32, "machine m device flops f32 1e18 memory 1e6 switch bandwidth 1"), bytes / 1e6, 1e-9);
  TEST_NEAR(product_seconds(AX_F32, "machine m device flops f32 1e18 memory 1e15 launch 0.25 switch bandwidth 1"), 0.25, 1e-9);
  TEST_NEAR(product_seconds(AX_F64, "machine m device flops f64 1e6 flops f32 1e9 memory 1e12 switch bandwidth 1"), flops / 1e6,
            1e-9);
  TEST_NEAR(product_seconds(AX_F64, "machine m device flops f32 1e6 memory 1e12 switch bandwidth 1"), flops / 1e6, 1e-9);
}

/* What does not need a collective's result goes on beside it; what does waits. */
static AX_BODY(overlapped) {
  ax_value sum = ax_psum(in[0], "x"), other = ax_matmul(in[0], ax_matmul(in[0], in[0]));
  out[0] = ax_add(sum, other);
}

static void test_overlap(void **state) {
  (void)state;
  ax_lowered *l = lowered("x=4", overlapped);
  ax_simulation s;
  TEST_OK(on(l, "machine m device flops f32 1e6 memory 1e6 switch bandwidth 1e6 latency 1e-4", NULL, &s));
  double sum_start = -1, sum_end = -1, product_end = 0, last_start = 0;
  for (uint32_t i = 0; i < s.op_count; i++) {
    if (s.ops[i].algorithm != NULL) sum_start = s.ops[i].start, sum_end = s.ops[i].end;
    else if (strcmp(s.ops[i].name, "dot_general") == 0) product_end = s.ops[i].end;
    if (s.ops[i].start > last_start) last_start = s.ops[i].start;
  }
  assert_true(sum_start < product_end && sum_end > sum_start);
  assert_true(last_start >= sum_end);
  assert_true(s.seconds < sum_end - sum_start + product_end + 1e-3);
  ax_simulation_release(&s);
  ax_lowered_release(l);
}

/* Each device sends to the next, which adds and sends on: one after the other. */
static AX_BODY(relay) {
  const int64_t pairs[][2] = {{0, 1}, {1, 2}, {2, 3}};
  ax_value x = in[0];
  for (uint32_t k = 0; k < 3; k++) x = ax_precv(ax_psend(x, "x", 1, &pairs[k]), ax_typeof(x), "x", 1, &pairs[k]);
  out[0] = x;
}

static AX_BODY(nobody_sends) { out[0] = ax_precv(ax_create_token(), ax_typeof(in[0]), "x", 1, (const int64_t[][2]){{0, 1}}); }

static void test_messages(void **state) {
  (void)state;
  ax_simulation s;
  ax_lowered *l = lowered("x=4", relay);
  TEST_OK(on(l, "machine m device flops f32 1e18 memory 1e18 switch bandwidth 1e6 latency 1e-4 overhead 1e-5", NULL, &s));
  TEST_NEAR(s.seconds, 3 * (1.1e-4 + 256 / 1e6), 1e-9);
  TEST_NEAR(s.messages, 3, 0);
  ax_simulation_release(&s);
  ax_lowered_release(l);
  l = lowered("x=4", nobody_sends);
  TEST_FAILS(on(l, DEVICE "switch bandwidth 1", NULL, &s), AX_DEADLOCK, "device 1 waits in precv for a message that nobody sends");
  ax_lowered_release(l);
}

/* As many rounds as there are nanoseconds in a quarter of an hour: gone through once. */
static AX_BODY(round_of_three) { out[0] = ax_sin(ax_sin(ax_sin(in[0]))); }
static AX_BODY(inner_rounds) { ax_scan(AX_FN(round_of_three, 1, 1), 1, 100, false, in, out); }
static AX_BODY(many_rounds) { ax_scan(AX_FN(inner_rounds, 1, 1), 1, 10000000000, false, in, out); }

static void test_long_loops(void **state) {
  (void)state;
  ax_program *program;
  ax_lowered *l;
  ax_simulation s;
  TEST_OK(ax_trace(AX_FN(many_rounds, 1, 1), AX_TYPES(AX_TYPE(AX_F32, 8)), &program));
  TEST_OK(ax_program_lower(program, NULL, &l));
  TEST_OK(on(l, "machine m device flops f32 1e18 memory 1e18 launch 1e-9 switch bandwidth 1", NULL, &s));
  double runs = 0;
  for (uint32_t i = 0; i < s.op_count; i++) runs = s.ops[i].runs > runs ? s.ops[i].runs : runs;
  TEST_NEAR(runs, 1e12, 0);
  assert_true(s.seconds >= 1000 && s.seconds <= 3100 && s.events < 2000);
  TEST_NEAR(s.path[s.path_count - 1].end, s.seconds, 0);
  ax_simulation_release(&s);
  ax_lowered_release(l);
  ax_program_release(program);
}

/* Bytes put in, taken out and changed: an error, or a machine. */
static void test_any_text(void **state) {
  (void)state;
  uint64_t random = 1;
  const char *text;
  for (uint32_t i = 0; i < 20000; i++) {
    char changed[1024];
    ax_cluster *made;
    (void)ax_cluster_builtin(i % 3, &text);
    snprintf(changed, sizeof changed, "%s", text);
    size_t length = strlen(changed);
    for (uint64_t edits = 1 + ax_next_random(&random) % 4; edits > 0 && length > 1; edits--) {
      const size_t at = ax_next_random(&random) % length, to = ax_next_random(&random) % length;
      if (edits % 2 == 0) changed[at] = (char)(' ' + ax_next_random(&random) % 95);
      else memmove(changed + at, changed + to, length - (at > to ? at : to)); /* a piece comes twice, or goes */
      length = strlen(changed);
    }
    const ax_status status = ax_cluster_parse(changed, "m", &made);
    assert_true(status == AX_OK || status == AX_PARSE_ERROR);
    ax_cluster_release(made);
  }
}

/* --- No memory --- */

static ax_status all_of_it(void *context) {
  ax_cluster *cluster = NULL;
  ax_simulation s = {0};
  char *text = NULL;
  ax_status status = ax_cluster_read("h200-switch", &cluster);
  if (status == AX_OK) status = ax_simulate(context, cluster, NULL, &s);
  for (int form = AX_SIMULATION_TEXT; form <= AX_SIMULATION_SVG && status == AX_OK; form++) {
    status = ax_simulation_print(&s, (ax_simulation_form)form, &text);
    ax_string_free(text);
    text = NULL;
  }
  ax_simulation_release(&s);
  ax_cluster_release(cluster);
  return status;
}

static void test_no_memory(void **state) {
  (void)state;
  ax_lowered *l = lowered("x=16", sums);
  assert_true(test_each_allocation(all_of_it, l) > 20);
  ax_lowered_release(l);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_texts),     cmocka_unit_test(switches_that_add),
      cmocka_unit_test(test_amounts), cmocka_unit_test(test_builtins), cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_results),   cmocka_unit_test(test_work),     cmocka_unit_test(test_overlap),
      cmocka_unit_test(test_no_memory), cmocka_unit_test(test_messages), cmocka_unit_test(test_long_loops),
      cmocka_unit_test(test_any_text),  cmocka_unit_test(cores_of_this_machine),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
