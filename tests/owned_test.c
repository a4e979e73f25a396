/* Variables that release what they hold: at the end of their block, by return, and in the reverse order of their declarations; what
   is retained lives on. A callback says when its last reference goes, and a program that calls it holds one. */
#include "axle/axle.h"

#include "support/cmocka.h"
#include "support/tensor.h"

static int ended;
static void end(void *context) { ended = ended * 10 + *(int *)context; }
static ax_status nothing(ax_callback_call *call, void *context) { return (void)call, (void)context, AX_OK; }

static int one = 1, two = 2;

static AX_BODY(calls_back) {
  const ax_type type = AX_TYPE(AX_F32, 2);
  ax_pure_callback(context, false, AX_LIST(1, in), AX_LIST(1, &type), out);
}

/* Leaves its block by return. */
static ax_program *made(bool escapes) {
  AX_OWNED(ax_callback, first);
  AX_OWNED(ax_program, program);
  AX_OWNED(ax_callback, second, third);
  assert_true(first == NULL && program == NULL && second == NULL && third == NULL);
  ax_type type = AX_TYPE(AX_F32, 2);
  TEST_OK(ax_callback_create("first", nothing, &one, end, &first));
  TEST_OK(ax_callback_create("second", nothing, &two, end, &second));
  TEST_OK(ax_trace(AX_CLOSURE(calls_back, 1, 1, first), &type, &program));
  return escapes ? ax_program_retain(program) : NULL;
}

static void objects(void **state) {
  (void)state;
  ended = 0;
  assert_null(made(false));
  assert_int_equal(ended, 21);
  ended = 0;
  ax_program *kept = made(true);
  assert_int_equal(ended, 2);
  assert_int_equal(ax_program_in_count(kept), 1);
  ax_program_release(kept);
  assert_int_equal(ended, 21);
}

/* Each kind of object there is, left by `continue`; the sanitizers say whether one is held for ever. */
static void kinds(void **state) {
  (void)state;
  AX_OWNED(ax_runtime, runtime);
  TEST_OK(ax_runtime_create(NULL, &runtime));
  size_t before = 0, now, peak;
  for (int round = 0; round < 3; round++) {
    AX_OWNED(ax_executable, executable);
    AX_OWNED(ax_treedef, def, other);
    AX_OWNED(ax_tree, tree);
    AX_OWNED(ax_program, program);
    AX_OWNED(ax_lowered, lowered);
    AX_OWNED(ax_jitted, jitted);
    AX_OWNED(ax_string, text);
    AX_OWNED(ax_sharding, sharding);
    AX_OWNED(ax_cluster, cluster);
    AX_OWNED_HOST(host);
    AX_OWNED_HOSTS(hosts, 2);
    AX_OWNED_ARRAYS(arrays, 2);
    float values[1024] = {1};
    ax_type type = AX_TYPE(AX_F32, 1024);
    ax_mesh mesh;
    ax_runtime_memory(runtime, &now, &peak);
    if (round == 1) before = now;
    if (round > 1) assert_int_equal(now, before);
    TEST_OK(ax_mesh_parse("d=1", &mesh));
    TEST_OK(ax_treedef_parse("x: f32[1024]", &def));
    TEST_OK(ax_tree_create(runtime, NULL, def, &tree));
    TEST_OK(ax_tree_put(tree, values, "x"));
    TEST_OK(ax_device_put_data(runtime, &mesh, "", &type, values, &arrays[0]));
    TEST_OK(ax_array_to_host(arrays[0], &host));
    TEST_OK(ax_array_to_host(arrays[0], &hosts[1]));
    TEST_OK(ax_array_picture(arrays[0], &text));
    assert_true(ax_host_at(&host, 0) == 1 && ax_host_at(&hosts[1], 0) == 1 && hosts[0].data == NULL && arrays[1] == NULL);
    if (round < 2) continue;
    assert_true(executable == NULL && other == NULL && program == NULL && lowered == NULL && sharding == NULL && cluster == NULL &&
                jitted == NULL);
  }
}

/* A struct of several objects. Its release function counts. */
typedef struct pair {
  ax_host_array host;
  ax_program *program;
} pair;
static int pairs_ended;
static void pair_release(pair *p) {
  ax_host_array_release(&p->host);
  ax_program_release(p->program);
  pairs_ended++;
}

/* The second pair stays all zero. */
static pair made_pair(ax_program *program, bool escapes) {
  AX_OWNED_STRUCT(pair, first, second);
  assert_true(first.program == NULL && second.program == NULL && second.host.data == NULL);
  TEST_OK(ax_csv_read_part("data/digits.csv.gz", ":2, :2", AX_F32, &first.host));
  first.program = ax_program_retain(program);
  pair moved = escapes ? first : (pair){0};
  if (escapes) first = (pair){0};
  return moved;
}

static void structs(void **state) {
  (void)state;
  ended = pairs_ended = 0;
  ax_program *program = made(true);
  assert_null(made_pair(program, false).program);
  assert_int_equal(pairs_ended, 2);
  pair kept = made_pair(program, true);
  assert_int_equal(pairs_ended, 4);
  ax_program_release(program);
  assert_int_equal(ax_program_in_count(kept.program), 1);
  assert_int_equal(ended, 2);
  pair_release(&kept);
  assert_int_equal(ended, 21);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(objects), cmocka_unit_test(kinds), cmocka_unit_test(structs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
