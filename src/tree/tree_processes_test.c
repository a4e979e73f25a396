/* Trees over several processes, which are threads of this one, in files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "axle/axle.h"
#include "support/cmocka.h"
#include "support/jobs.h"
#include "tree/tree.h"

static char path[] = "/tmp/axle-tree-XXXXXX", one[] = "/tmp/axle-tree-one-XXXXXX";

static ax_status make(ax_runtime *runtime, bool filled, ax_tree **out) {
  float w[16], b[4] = {1, 2, 3, 4};
  ax_mesh mesh;
  ax_treedef *def;
  for (int i = 0; i < 16; i++) w[i] = (float)i;
  AX_TRY(ax_mesh_parse("x=4", &mesh));
  AX_TRY(ax_treedef_parse("l/w: f32[4,4] @ _,x; l/b: f32[4] @ x; n: f32[]", &def));
  ax_status status = ax_tree_create(runtime, &mesh, def, out);
  ax_treedef_release(def);
  if (!filled) return status;
  if (status == AX_OK) status = (ax_tree_put)(*out, AX_F32, w, sizeof w, "l/w");
  if (status == AX_OK) status = (ax_tree_put)(*out, AX_F32, b, sizeof b, "l/b");
  if (status == AX_OK) status = (ax_tree_put)(*out, AX_F32, &(float){7}, 4, "n");
  return status;
}

static ax_status check_leaf(const ax_tree *tree, const char *name, const float *want, size_t count) {
  ax_host_array host;
  AX_TRY(ax_array_gather(ax_tree_get(tree, "%s", name), AX_EVERY_PROCESS, &host));
  const bool same = memcmp(host.data, want, count * sizeof want[0]) == 0;
  ax_host_array_release(&host);
  TEST_HERE(same);
  return AX_OK;
}

static ax_status write_tree(ax_runtime *runtime, const void *name) {
  ax_tree *tree;
  ax_status status = make(runtime, true, &tree);
  if (status == AX_OK) status = ax_tree_write_npz(tree, name);
  ax_tree_release(tree);
  return status;
}

static ax_status read_tree(ax_runtime *runtime, const void *name) {
  float w[16];
  ax_tree *tree;
  for (int i = 0; i < 16; i++) w[i] = (float)i;
  ax_status status = make(runtime, false, &tree);
  if (status == AX_OK) status = ax_tree_read_npz(tree, name);
  if (status == AX_OK) status = check_leaf(tree, "l/w", w, 16);
  if (status == AX_OK) status = check_leaf(tree, "l/b", (float[]){1, 2, 3, 4}, 4);
  if (status == AX_OK) status = check_leaf(tree, "n", &(float){7}, 1);
  ax_tree_release(tree);
  return status;
}

static bool same_files(void) {
  char a[4096], b[4096];
  FILE *first = fopen(path, "rb"), *second = fopen(one, "rb");
  const size_t bytes = fread(a, 1, sizeof a, first), others = fread(b, 1, sizeof b, second);
  fclose(first);
  fclose(second);
  return bytes > 0 && bytes == others && memcmp(a, b, bytes) == 0;
}

static void files_are_those_of_one_process(void **state) {
  (void)state;
  assert_int_equal(test_in_all(&test_spreads[0], write_tree, one, NULL), AX_OK);
  for (size_t s = 0; s < TEST_SPREADS; s++) {
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(test_in_all(&test_spreads[s], write_tree, path, NULL), AX_OK);
    assert_true(same_files());
    assert_int_equal(test_in_all(&test_spreads[s], read_tree, one, NULL), AX_OK);
  }
}

/* Process 1 has no array in one leaf. */
static ax_status write_with_a_hole(ax_runtime *runtime, const void *name) {
  ax_tree *tree;
  ax_status status = make(runtime, ax_process_index(runtime) != 1, &tree);
  if (status == AX_OK) status = ax_tree_write_npz(tree, name);
  ax_tree_release(tree);
  return status;
}

static void failures_are_all_processes(void **state) {
  char message[8192];
  (void)state;
  assert_int_equal(test_in_all(&test_spreads[2], write_tree, "/no/such/place", message), AX_IO_ERROR);
  assert_non_null(strstr(message, "process 0: /no/such/place: cannot write"));
  assert_int_equal(test_in_all(&test_spreads[2], read_tree, "/no/such/place", message), AX_IO_ERROR);
  assert_non_null(strstr(message, "process 0: /no/such/place: cannot read"));
  assert_int_equal(test_in_all(&test_spreads[2], write_with_a_hole, path, message), AX_INVALID_ARGUMENT);
  assert_non_null(strstr(message, "process 1: tree_write_npz: "));
}

/* Random numbers follow from the seed and the leaf, not from the processes. */
static float drawn[2][16];

static ax_status draw(ax_runtime *runtime, const void *context) {
  ax_tree *tree;
  ax_host_array host = {0};
  ax_status status = make(runtime, false, &tree);
  if (status == AX_OK) status = ax_tree_init(tree, "*: normal(1)", 7);
  if (status == AX_OK) status = ax_array_gather(ax_tree_get(tree, "l/w"), AX_EVERY_PROCESS, &host);
  if (status == AX_OK && ax_process_index(runtime) == 0) memcpy(drawn[*(const int *)context], host.data, sizeof drawn[0]);
  ax_host_array_release(&host);
  ax_tree_release(tree);
  return status;
}

static void random_numbers_are_those_of_one_process(void **state) {
  (void)state;
  assert_int_equal(test_in_all(&test_spreads[0], draw, &(int){0}, NULL), AX_OK);
  assert_true(drawn[0][0] != 0 && drawn[0][0] != drawn[0][1]);
  for (size_t s = 1; s < TEST_SPREADS; s++) {
    memset(drawn[1], 0, sizeof drawn[1]);
    assert_int_equal(test_in_all(&test_spreads[s], draw, &(int){1}, NULL), AX_OK);
    assert_memory_equal(drawn[0], drawn[1], sizeof drawn[0]);
  }
}

static int make_files(void **state) {
  (void)state;
  const int first = mkstemp(path), second = mkstemp(one);
  return first < 0 || second < 0 || close(first) != 0 || close(second) != 0;
}

static int remove_files(void **state) {
  (void)state;
  return unlink(path) != 0 || unlink(one) != 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(files_are_those_of_one_process),
      cmocka_unit_test(failures_are_all_processes),
      cmocka_unit_test(random_numbers_are_those_of_one_process),
  };
  return cmocka_run_group_tests(tests, make_files, remove_files);
}
