/* Trees: filled, read, copied, in files, run whole; everything that is refused. */
#include "tree/tree.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "axle/axle.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/tensor.h"

static ax_runtime *runtime;
static ax_mesh mesh;

static int setup(void **state) {
  (void)state;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  TEST_OK(ax_mesh_parse("data=2,model=2", &mesh));
  return 0;
}

static int teardown(void **state) {
  (void)state;
  ax_runtime_release(runtime);
  return 0;
}

static ax_tree *tree_of(const char *text) {
  ax_treedef *def;
  ax_tree *tree;
  TEST_OK(ax_treedef_parse(text, &def));
  TEST_OK(ax_tree_create(runtime, &mesh, def, &tree));
  ax_treedef_release(def);
  return tree;
}

static void assert_holds(const ax_tree *tree, const char *name, uint32_t count, const float *want) {
  float got[64];
  TEST_OK(ax_tree_read(tree, got, count * sizeof got[0], "%s", name));
  for (uint32_t i = 0; i < count; i++)
    if (got[i] != want[i]) fail_msg("%s[%u] is %g, not %g", name, i, (double)got[i], (double)want[i]);
}
#define ASSERT_HOLDS(tree, name, ...) \
  assert_holds((tree), (name), sizeof((float[]){__VA_ARGS__}) / sizeof(float), (float[]){__VA_ARGS__})

static void leaves(void **state) {
  (void)state;
  ax_tree *tree = tree_of("l/0/w: f32[2,2] @ data,model; l/1/w: f32[2,2] @ _,model; n: s32[]");
  ax_host_array host, view = ax_host_view(AX_S32, AX_DIMS(), (int32_t[]){7});
  assert_null(ax_tree_get(tree, "l/0/w"));
  for (int i = 0; i < 2; i++) TEST_OK(ax_tree_put(tree, ((float[]){1, 2, 3, 4}), "l/%d/w", i));
  ASSERT_HOLDS(tree, "l/1/w", 1, 2, 3, 4);
  assert_int_equal(ax_array_part_count(ax_tree_get(tree, "l/0/w")), 4);
  TEST_OK(ax_tree_put_host(tree, &view, "n"));
  TEST_OK(ax_tree_to_host(tree, &host, "n"));
  assert_int_equal(*(int32_t *)host.data, 7);
  ax_host_array_release(&host);
  TEST_OK(ax_tree_set(tree, ax_tree_get(tree, "l/0/w"), "l/%d/w", 1));
  assert_ptr_equal(ax_tree_get(tree, "l/0/w"), ax_tree_get(tree, "l/1/w"));
  TEST_FAILS(ax_tree_set(tree, ax_tree_get(tree, "n"), "l/0/w"), AX_INVALID_ARGUMENT, "tree_set: l/0/w is f32[2,2], not s32[]");
  TEST_FAILS(ax_tree_set(tree, NULL, "n"), AX_INVALID_ARGUMENT, "there is no array");
  TEST_FAILS(ax_tree_put_host(tree, &view, "l/0/w"), AX_INVALID_ARGUMENT, "tree_put_host: l/0/w is f32[2,2], not s32[]");
  TEST_FAILS(ax_tree_put_host(tree, NULL, "n"), AX_INVALID_ARGUMENT, "there is no host array");
  TEST_FAILS(ax_tree_put(tree, NULL, "n"), AX_INVALID_ARGUMENT, "tree_put: n: there is no data");
  TEST_FAILS(ax_tree_put(tree, &view, "l/%d/w", 2), AX_INVALID_ARGUMENT,
             "tree_put: there is no leaf \"l/2/w\"; the nearest: \"l/0/w\", \"l/1/w\"");
  TEST_FAILS(ax_tree_put(tree, &view, NULL), AX_INVALID_ARGUMENT, "there is no name of a leaf");
  TEST_FAILS(ax_tree_read(tree, &view, 8, "n"), AX_INVALID_ARGUMENT, "tree_read: n: reading s32[] takes 4 bytes, not 8");
  assert_null(ax_tree_get(tree, "m"));
  assert_int_equal(ax_treedef_count(ax_tree_def(tree)), 3);
  ax_tree_release(tree);
  tree = tree_of("w: f32[2]");
  TEST_FAILS(ax_tree_read(tree, &view, 8, "w"), AX_INVALID_ARGUMENT, ": w: the leaf holds nothing yet");
  TEST_FAILS(ax_tree_to_host(tree, &host, "w"), AX_INVALID_ARGUMENT, ": w: the leaf holds nothing yet");
  ax_tree_release(tree);
}

static void made_badly(void **state) {
  (void)state;
  ax_treedef *def;
  ax_tree *tree;
  TEST_OK(ax_treedef_parse("a: f32[4]; b/w: f32[3,4] @ data", &def));
  TEST_FAILS(ax_tree_create(runtime, &mesh, def, &tree), AX_INVALID_ARGUMENT, "tree_create: b/w: ");
  TEST_FAILS(ax_tree_create(runtime, NULL, def, &tree), AX_INVALID_ARGUMENT,
             "tree_create: b/w: spec \"data\": unknown axis \"data\"");
  TEST_FAILS(ax_tree_create(NULL, &mesh, def, &tree), AX_INVALID_ARGUMENT, "there is no runtime");
  TEST_FAILS(ax_tree_create(runtime, &mesh, NULL, &tree), AX_INVALID_ARGUMENT, "there is no treedef");
  assert_null(tree);
  ax_treedef_release(def);
  ax_tree_release(NULL);
  assert_null(ax_tree_def(NULL));
  assert_null(ax_tree_get(NULL, "w"));
  TEST_FAILS(ax_tree_init(NULL, "*: zeros", 0), AX_INVALID_ARGUMENT, "there is no tree");
  TEST_FAILS(ax_tree_put(NULL, &def, "w"), AX_INVALID_ARGUMENT, "there is no tree");
  TEST_FAILS(ax_tree_read_npz(NULL, "x"), AX_INVALID_ARGUMENT, "there is no tree");
  TEST_FAILS(ax_tree_copy(NULL, NULL), AX_INVALID_ARGUMENT, "there is no tree");
}

/* What a leaf is filled with depends on its number and the seed, not on the mesh. */
static void init(void **state) {
  (void)state;
  float a[16], b[16], c[16];
  ax_tree *tree = tree_of("w: f32[4,4] @ data,model; v: f32[4,4]; b: f32[2] @ model; n: s32[]"),
          *other = tree_of("u: f32[4,4]; v: f32[4,4] @ model");
  TEST_OK(ax_tree_init(tree, "n: constant(-3); b: ones; *: glorot_uniform", 5));
  TEST_OK(ax_tree_init(other, "*: glorot_uniform", 5));
  ASSERT_HOLDS(tree, "b", 1, 1);
  TEST_OK(ax_tree_read(tree, a, sizeof a, "w"));
  TEST_OK(ax_tree_read(tree, b, sizeof b, "v"));
  TEST_OK(ax_tree_read(other, c, sizeof c, "v"));
  assert_memory_equal(b, c, sizeof b);
  assert_memory_not_equal(a, b, sizeof a);
  TEST_FAILS(ax_tree_init(tree, "w: zeros", 5), AX_INVALID_ARGUMENT, "tree_init: v: no pattern matches it");
  TEST_FAILS(ax_tree_init(tree, "*: he_normal", 5), AX_INVALID_ARGUMENT, "tree_init: b: he_normal counts what goes in and out");
  TEST_FAILS(ax_tree_init(tree, "*: he", 5), AX_INVALID_ARGUMENT, "tree_init: w: \"he\" is no initializer");
  TEST_FAILS(ax_tree_init(tree, "*: normal(1e39)", 5), AX_INVALID_ARGUMENT, "tree_init: w: normal: f32 does not hold 1e+39");
  TEST_FAILS(ax_tree_init(tree, "*; zeros", 5), AX_PARSE_ERROR, "tree_init:1:2: expected ':' and a value");
  TEST_OK(ax_tree_read(tree, b, sizeof b, "w"));
  assert_memory_equal(a, b, sizeof a);
  ax_tree_release(tree), ax_tree_release(other);
  tree = tree_of("s: s64[]; u: u64[]");
  TEST_FAILS(ax_tree_init(tree, "s: constant(9223372036854775808); u: zeros", 0), AX_INVALID_ARGUMENT,
             "s64 does not hold 9.22337e+18");
  TEST_FAILS(ax_tree_init(tree, "s: zeros; u: constant(18446744073709551616)", 0), AX_INVALID_ARGUMENT,
             "u64 does not hold 1.84467e+19");
  TEST_OK(ax_tree_init(tree, "s: constant(-9223372036854775808); u: constant(9223372036854775808)", 0));
  ax_tree_release(tree);
}

static void copy(void **state) {
  (void)state;
  ax_tree *from = tree_of("a: f32[4] @ data; b: f32[2]"), *to = tree_of("b: f32[2] @ model; a: f32[4]"),
          *more = tree_of("a: f32[4]; b: f32[2]; c: f32[2]"), *other = tree_of("a: f32[4]; b: f32[3]");
  TEST_FAILS(ax_tree_copy(from, to), AX_INVALID_ARGUMENT, "the leaf holds nothing yet");
  TEST_OK(ax_tree_put(from, ((float[]){1, 2, 3, 4}), "a"));
  TEST_OK(ax_tree_put(from, ((float[]){5, 6}), "b"));
  TEST_OK(ax_tree_copy(from, to));
  ASSERT_HOLDS(to, "a", 1, 2, 3, 4);
  ASSERT_HOLDS(to, "b", 5, 6);
  TEST_FAILS(ax_tree_copy(from, more), AX_INVALID_ARGUMENT, "tree_copy: the tree that is copied has no leaf \"c\"");
  TEST_FAILS(ax_tree_copy(more, from), AX_INVALID_ARGUMENT, "tree_copy: there is no leaf \"c\" to copy into");
  TEST_FAILS(ax_tree_copy(from, other), AX_INVALID_ARGUMENT, "tree_copy: b is f32[2], but f32[3] in the tree it is copied into");
  assert_null(ax_tree_get(other, "a"));
  ax_tree_release(from), ax_tree_release(to), ax_tree_release(more), ax_tree_release(other);
}

static void npz(void **state) {
  (void)state;
  char path[64];
  snprintf(path, sizeof path, "/tmp/axle-tree-%d.npz", (int)getpid());
  ax_tree *tree = tree_of("l/{0,1}/w: f32[2] @ model; n: bf16[]"), *again = tree_of("n: bf16[]; l/{0,1}/w: f32[2]"),
          *other = tree_of("l/{0,1}/w: f32[3]; l/2/w: f32[2]; m: bf16[]");
  TEST_FAILS(ax_tree_write_npz(tree, path), AX_INVALID_ARGUMENT, "tree_write_npz: l/0/w: the leaf holds nothing yet");
  TEST_OK(ax_tree_init(tree, "n: constant(2); *: normal", 1));
  TEST_OK(ax_tree_write_npz(tree, path));
  TEST_OK(ax_tree_read_npz(again, path));
  for (int i = 0; i < 2; i++) {
    float values[2];
    TEST_OK(ax_tree_read(tree, values, sizeof values, "l/%d/w", i));
    assert_holds(again, i == 0 ? "l/0/w" : "l/1/w", 2, values);
  }
  TEST_FAILS(
      ax_tree_read_npz(other, path), AX_INVALID_ARGUMENT,
      "does not fit the tree:\n  l/0/w is f32[3], but f32[2] in the file\n  l/1/w is f32[3], but f32[2] in the file\n  \"n\" is no leaf\n"
      "  the leaf \"l/2/w\" is missing\n  the leaf \"m\" is missing");
  assert_null(ax_tree_get(other, "l/0/w"));
  remove(path);
  TEST_FAILS(ax_tree_read_npz(again, path), AX_IO_ERROR, path);
  ax_tree_release(tree), ax_tree_release(again), ax_tree_release(other);
}

static void write_table(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
}

/* A table of three rows; leaves of each dtype and rank take parts of it. */
static void csv(void **state) {
  (void)state;
  char path[64];
  int32_t labels[3];
  snprintf(path, sizeof path, "/tmp/axle-tree-%d.csv", (int)getpid());
  write_table(path, "1,2.5,3\n-4,0.5,6\n7,8,300\n");
  ax_tree *tree = tree_of("x: f32[2,2] @ data; train/y: s32[3]; train/z: s32[3]; n: f32[]; other: f32[2]; small: u8[3]");
  TEST_OK(ax_tree_put(tree, ((float[]){1, 2}), "other"));
  TEST_OK(ax_tree_read_csv(tree, path, "x: :2, :-1; train: :, -1; n: 1, 1"));
  ASSERT_HOLDS(tree, "x", 1, 2.5f, -4, 0.5f);
  ASSERT_HOLDS(tree, "n", 0.5f);
  ASSERT_HOLDS(tree, "other", 1, 2);
  for (int i = 0; i < 2; i++) {
    TEST_OK(ax_tree_read(tree, labels, sizeof labels, i == 0 ? "train/y" : "train/z"));
    assert_memory_equal(labels, ((int32_t[]){3, 6, 300}), sizeof labels);
  }
  assert_null(ax_tree_get(tree, "small"));
  TEST_FAILS(ax_tree_read_csv(tree, path, "n: 0, 0; x: :, :-1"), AX_INVALID_ARGUMENT,
             "tree_read_csv: x: the leaf is f32[2,2], but \":, :-1\" of ");
  TEST_FAILS(ax_tree_read_csv(tree, path, "n: 0, 0; x: :, :-1"), AX_INVALID_ARGUMENT, ".csv is f32[3,2]");
  TEST_FAILS(ax_tree_read_csv(tree, path, "n: 0, 0; train/y: :, 1"), AX_IO_ERROR, "row 0, column 1: 2.5 is no number of s32");
  TEST_FAILS(ax_tree_read_csv(tree, path, "n: 0, 0; small: :, 2"), AX_IO_ERROR, "tree_read_csv: small: ");
  TEST_FAILS(ax_tree_read_csv(tree, path, "n: 0, 0; small: :, 3"), AX_INVALID_ARGUMENT, "tree_read_csv: small: ");
  TEST_FAILS(ax_tree_read_csv(tree, path, "n: 0, 0; small: 1;"), AX_IO_ERROR, "row 1, column 0: -4 is no number of u8");
  TEST_FAILS(ax_tree_read_csv(tree, path, "n: 0, 0; m: 1, 1"), AX_INVALID_ARGUMENT, "the pattern \"m\" decides for no leaf");
  TEST_FAILS(ax_tree_read_csv(tree, path, "*: 0, 0; n: 1, 1"), AX_INVALID_ARGUMENT, "tree_read_csv: x: ");
  TEST_FAILS(ax_tree_read_csv(tree, path, "n: 0, 0; n: 1, 1"), AX_INVALID_ARGUMENT, "the pattern \"n\" decides for no leaf");
  TEST_FAILS(ax_tree_read_csv(tree, path, ""), AX_INVALID_ARGUMENT, "there are no parts to read");
  TEST_FAILS(ax_tree_read_csv(tree, path, "n"), AX_PARSE_ERROR, "tree_read_csv:1:2: expected ':' and a value");
  TEST_FAILS(ax_tree_read_csv(tree, path, NULL), AX_INVALID_ARGUMENT, "there is no list of patterns");
  TEST_FAILS(ax_tree_read_csv(tree, NULL, "n: 0, 0"), AX_INVALID_ARGUMENT, "there is no path");
  TEST_FAILS(ax_tree_read_csv(NULL, path, "n: 0, 0"), AX_INVALID_ARGUMENT, "there is no tree");
  ASSERT_HOLDS(tree, "n", 0.5f);
  remove(path);
  TEST_FAILS(ax_tree_read_csv(tree, path, "n: 0, 0"), AX_IO_ERROR, path);
  ax_tree_release(tree);
}

/* --- Runs --- */

/* a, b, x -> a + x, b * x, a * b */
static void step(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[0], in[2]);
  out[1] = ax_mul(in[1], in[2]);
  out[2] = ax_mul(in[0], in[1]);
}

static ax_executable *compiled(ax_args donate) {
  const ax_type types[] = {TEST_TYPE(AX_F32, 2), TEST_TYPE(AX_F32, 2), TEST_TYPE(AX_F32, 2)};
  ax_executable *executable;
  ax_program *program = test_trace(step, NULL, types, 3, 3);
  TEST_OK(ax_compile(runtime, program, &(ax_compile_options){.donate = donate}, &executable));
  ax_program_release(program);
  return executable;
}

static void run(void **state) {
  (void)state;
  for (int donate = 0; donate < 2; donate++) {
    ax_executable *executable = compiled(AX_FIRST(donate ? 2 : 0));
    ax_tree *params = tree_of("a: f32[2] @ data; b: f32[2]"), *batch = tree_of("x: f32[2]"), *metrics = tree_of("product: f32[2]");
    TEST_OK(ax_tree_put(params, ((float[]){1, 2}), "a"));
    TEST_OK(ax_tree_put(params, ((float[]){3, 4}), "b"));
    for (int i = 0; i < 3; i++) {
      TEST_OK(ax_tree_put(batch, ((float[]){2, 3}), "x"));
      ax_tree *in[] = {params, batch}, *out[] = {params, metrics};
      if (i % 2 == 0) TEST_OK(ax_tree_run(executable, in, out));
      else TEST_OK(ax_tree_run_start(executable, in, out));
    }
    ASSERT_HOLDS(params, "a", 7, 11);
    ASSERT_HOLDS(params, "b", 24, 108);
    ASSERT_HOLDS(metrics, "product", 60, 288);
    ax_tree_release(params), ax_tree_release(batch), ax_tree_release(metrics);
    ax_executable_release(executable);
  }
}

static void runs_refused(void **state) {
  (void)state;
  ax_executable *executable = compiled(AX_FIRST(1));
  ax_tree *params = tree_of("p/a: f32[2]; p/b: f32[2]"), *batch = tree_of("x: f32[2]"), *bad = tree_of("x: s32[2]"),
          *wide = tree_of("x: f32[3]");
  TEST_OK(ax_tree_init(params, "*: ones", 1));
  TEST_FAILS(ax_tree_run(executable, AX_TREES(params, batch), AX_TREES(params, batch)), AX_INVALID_ARGUMENT,
             "tree_run: 1 of 3 arguments do not match:\n  x of tree 1 (argument 2) holds nothing yet");
  TEST_OK(ax_tree_init(batch, "*: ones", 1));
  TEST_FAILS(ax_tree_run(executable, AX_TREES(params), AX_TREES(params, batch)), AX_INVALID_ARGUMENT,
             "the program takes 3 arguments and gives 3 results; the trees have 2 and 3 (2 + 1) leaves");
  TEST_FAILS(ax_tree_run(executable, AX_TREES(params, bad), AX_TREES(params, batch)), AX_INVALID_ARGUMENT,
             "x of tree 1 is s32[2], but argument 2 is f32[2]");
  TEST_FAILS(ax_tree_run(executable, AX_TREES(params, batch), AX_TREES(wide, params)), AX_INVALID_ARGUMENT,
             "x of tree 0 is f32[3], but result 0 is f32[2]");
  TEST_FAILS(ax_tree_run(executable, AX_TREES(params, NULL), AX_TREES(params, batch)), AX_INVALID_ARGUMENT,
             "there is no tree");
  TEST_FAILS(ax_tree_run(NULL, AX_TREES(params, batch), AX_TREES(params, batch)), AX_INVALID_ARGUMENT,
             "there is no executable");
  TEST_FAILS(ax_tree_run(executable, AX_LIST(1, NULL), AX_TREES(params, batch)), AX_INVALID_ARGUMENT, "there is no list of trees");
  TEST_OK(ax_tree_set(batch, ax_tree_get(params, "p/a"), "x"));
  TEST_FAILS(ax_tree_run(executable, AX_TREES(params, batch), AX_TREES(params, batch)), AX_INVALID_ARGUMENT,
             "tree_run: p/a of tree 0 is donated, but x of tree 1 holds the same array: f32[2]");
  ASSERT_HOLDS(params, "p/a", 1, 1); /* nothing has changed */
  TEST_OK(ax_tree_init(batch, "*: ones", 1));
  ax_tree *others = tree_of("a: f32[2]; b: f32[2]; c: f32[2]");
  TEST_OK(ax_tree_run(executable, AX_TREES(params, batch), &others));
  TEST_FAILS(ax_tree_run(executable, AX_TREES(params, batch), &others), AX_INVALID_ARGUMENT,
             "p/a of tree 0 (argument 0) held what was donated to an earlier run");
  ax_tree_release(params), ax_tree_release(batch), ax_tree_release(bad), ax_tree_release(wide), ax_tree_release(others);
  ax_executable_release(executable);
}

/* A selection that failed says why where it is used. */
static void failed_selection(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, 2), TEST_TYPE(AX_F32, 2), TEST_TYPE(AX_F32, 2)};
  ax_executable *executable;
  ax_treedef *def;
  TEST_OK(ax_treedef_parse("a: f32[2]; b: f32[2]; c: f32[2]", &def));
  ax_program *program = test_trace(step, NULL, types, 3, 3);
  TEST_FAILS(ax_compile(runtime, program, &(ax_compile_options){.donate = ax_treedef_select(def, "d")}, &executable),
             AX_INVALID_ARGUMENT, "of a selection that failed: treedef_select: no leaf is meant by \"d\"");
  ax_program_release(program);
  ax_treedef_release(def);
}

/* Device 0 waits for a sum that device 1 never adds to. */
static void waits(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_psum(in[0], "data");
}
static void goes_on(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = in[0];
}
static void stuck(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_if(ax_eq(ax_axis_index("data"), ax_integer(0)), AX_FN(waits, 1, 1), AX_FN(goes_on, 1, 1), in, out);
}
static void stuck_on_mesh(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_shard_map_unchecked(&mesh, " -> ", AX_FN(stuck, 1, 1), in, out);
}

static void gives_what_it_takes(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  for (int i = 0; i < 2; i++) out[i] = in[i];
}

/* With a mesh and without: a body of leaves to leaves. */
static void jit(void **state) {
  (void)state;
  ax_treedef *def, *two, *bad;
  ax_executable *executable;
  ax_tree *tree = tree_of("a: f32[2]; b: f32[2] @ data; c: f32[2]");
  TEST_OK(ax_treedef_parse("a: f32[2]; b: f32[2] @ data; c: f32[2]", &def));
  TEST_OK(ax_treedef_parse("a: f32[2]; b: f32[2]", &two));
  TEST_OK(ax_treedef_parse("a: f32[2]; b: s32[]", &bad));
  TEST_OK(ax_tree_init(tree, "a: ones; *: constant(3)", 0));
  TEST_OK(ax_tree_jit(runtime, NULL, def, def, AX_FN(step, 0, 0), NULL, &executable));
  TEST_OK(ax_tree_run(executable, AX_TREES(tree), AX_TREES(tree)));
  ASSERT_HOLDS(tree, "a", 4, 4);
  ASSERT_HOLDS(tree, "b", 9, 9);
  ASSERT_HOLDS(tree, "c", 3, 3);
  ax_executable_release(executable);
  TEST_FAILS(ax_tree_jit(runtime, NULL, def, two, AX_FN(step, 3, 3), NULL, &executable), AX_INVALID_ARGUMENT,
             "tree_jit: the body takes 3 operands and gives 3 results, the treedefs have 3 and 2 leaves");
  TEST_FAILS(ax_tree_jit(runtime, &mesh, def, def, AX_FN(step, 0, 0), NULL, &executable), AX_INVALID_ARGUMENT,
             "tree_jit: b is f32[2] @ data, on each device f32[1], but the body gives f32[2]{V:data}");
  TEST_FAILS(ax_tree_jit(runtime, NULL, two, def, AX_FN(gives_what_it_takes, 0, 0), NULL, &executable), AX_INVALID_ARGUMENT,
             "out[2] was never set, but there are 3 results");
  TEST_FAILS(ax_tree_jit(runtime, NULL, bad, two, AX_FN(gives_what_it_takes, 0, 0), NULL, &executable), AX_INVALID_ARGUMENT,
             "tree_jit: b is f32[2], but the body gives s32[]");
  TEST_FAILS(ax_tree_jit(runtime, &mesh, NULL, def, AX_FN(step, 0, 0), NULL, &executable), AX_INVALID_ARGUMENT,
             "there is no treedef of the operands");
  TEST_FAILS(ax_tree_jit(runtime, NULL, def, def, AX_FN(NULL, 0, 0), NULL, &executable), AX_INVALID_ARGUMENT,
             "tree_jit: there is no function");
  TEST_FAILS(ax_tree_jit(runtime, &mesh, def, def, AX_FN(NULL, 0, 0), NULL, &executable), AX_INVALID_ARGUMENT,
             "tree_jit: there is no function");
  TEST_FAILS(ax_tree_jit(NULL, NULL, def, def, AX_FN(step, 0, 0), NULL, &executable), AX_INVALID_ARGUMENT, "there is no runtime");
  assert_null(executable);
  ax_tree_release(tree);
  ax_treedef_release(def), ax_treedef_release(two), ax_treedef_release(bad);
}

/* What was donated to a run that began and failed is gone; all else is as it was. */
static void failed_run(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F32, 2);
  ax_executable *executable;
  ax_program *program = test_trace(stuck_on_mesh, NULL, &type, 1, 1);
  ax_tree *in = tree_of("a: f32[2]"), *out = tree_of("b: f32[2]");
  float values[2];
  TEST_OK(ax_compile(runtime, program, &(ax_compile_options){.donate = AX_FIRST(1)}, &executable));
  TEST_OK(ax_tree_init(in, "*: ones", 0));
  TEST_OK(ax_tree_put(out, ((float[]){3, 4}), "b"));
  TEST_FAILS(ax_tree_run(executable, AX_TREES(in), AX_TREES(out)), AX_DEADLOCK, "");
  ASSERT_HOLDS(out, "b", 3, 4);
  TEST_FAILS(ax_tree_read(in, values, sizeof values, "a"), AX_INVALID_ARGUMENT, "tree_read: a: ");
  TEST_FAILS(ax_tree_run(executable, AX_TREES(in), AX_TREES(out)), AX_INVALID_ARGUMENT,
             "a of tree 0 (argument 0) held what was donated");
  TEST_OK(ax_tree_put(in, ((float[]){1, 2}), "a"));
  ASSERT_HOLDS(in, "a", 1, 2);
  ax_tree_release(in), ax_tree_release(out);
  ax_program_release(program);
  ax_executable_release(executable);
}

/* --- Without memory --- */

static char oom_path[64], oom_table[64];

static ax_status everything(void *executable) {
  static const char *const text = "a: f32[2] @ data; b: f32[2]; c: f32[2]";
  ax_treedef *def = NULL;
  ax_tree *tree = NULL, *other = NULL;
  ax_status status = ax_treedef_parse(text, &def);
  if (status == AX_OK) status = ax_tree_create(runtime, &mesh, def, &tree);
  if (status == AX_OK) status = ax_tree_create(runtime, NULL, NULL, &other) == AX_INVALID_ARGUMENT ? AX_OK : AX_INTERNAL;
  if (status == AX_OK) status = ax_tree_create(runtime, &mesh, def, &other);
  if (status == AX_OK) status = ax_tree_init(tree, "*: normal(0.5)", 3);
  if (status == AX_OK) status = ax_tree_copy(tree, other);
  if (status == AX_OK) status = ax_tree_write_npz(tree, oom_path);
  if (status == AX_OK) status = ax_tree_read_npz(other, oom_path);
  if (status == AX_OK) status = ax_tree_read_csv(other, oom_table, "a: 0, :; b: :, 0");
  if (status == AX_OK) status = ax_tree_run(executable, &tree, &other);
  ax_tree_release(tree), ax_tree_release(other);
  ax_treedef_release(def);
  ax_runtime_trim(runtime);
  return status;
}

static void no_memory(void **state) {
  (void)state;
  ax_executable *executable = compiled(AX_FIRST(0));
  snprintf(oom_path, sizeof oom_path, "/tmp/axle-tree-oom-%d.npz", (int)getpid());
  snprintf(oom_table, sizeof oom_table, "/tmp/axle-tree-oom-%d.csv", (int)getpid());
  write_table(oom_table, "1,2\n3,4\n");
  TEST_OK(everything(executable));
  assert_true(test_each_allocation(everything, executable) > 30);
  remove(oom_path);
  remove(oom_table);
  ax_executable_release(executable);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(leaves), cmocka_unit_test(made_badly), cmocka_unit_test(init),         cmocka_unit_test(copy),
      cmocka_unit_test(npz),    cmocka_unit_test(run),        cmocka_unit_test(runs_refused), cmocka_unit_test(failed_selection),
      cmocka_unit_test(jit),    cmocka_unit_test(failed_run), cmocka_unit_test(no_memory),    cmocka_unit_test(csv),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
