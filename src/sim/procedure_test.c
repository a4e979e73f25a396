/* The messages of collectives, written out step by step, on a switch. */
#include "sim/procedure.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "sim/algorithms.h"
#include "support/cmocka.h"
#include "support/tensor.h"

typedef struct group {
  ax_cluster *machine;
  ax_mesh mesh;
  ax_sim_place place;
  ax_sim_procedure procedure;
} group;

/* A procedure of this kind along all axes of a mesh; from a switch with latency 10, overhead 1 and 4 bytes a second. */
static void make(ax_collective_kind kind, const char *mesh, double bytes, group *g) {
  ax_axes names = {0};
  *g = (group){.procedure = {.kind = kind, .bytes = bytes}};
  TEST_OK(ax_cluster_parse("machine m device flops f32 1 memory 1 switch latency 10 overhead 1 bandwidth 4", NULL, &g->machine));
  TEST_OK(ax_mesh_parse(mesh, &g->mesh));
  TEST_OK(ax_sim_place_make(g->machine, &g->mesh, &g->place));
  for (uint32_t a = 0; a < g->mesh.count; a++) strcpy(names.name[names.count++], g->mesh.axis[a].name);
  ax_sim_group_make(&g->place, &names, &g->procedure.group);
}

static void unmake(group *g) {
  ax_sim_procedure_deinit(&g->procedure);
  ax_cluster_release(g->machine);
}

static void add_step(const ax_sim_procedure *p, const ax_sim_phase *phase, int64_t r, ax_text *text) {
  int64_t sent = 0, received = 0;
  for (int64_t d = 0; d < p->group.members; d++) {
    received += ax_sim_procedure_receives(p, phase, d);
    for (int64_t k = 0; k < ax_sim_procedure_sends(p, phase, d); k++, sent++)
      ax_text_add(text, " %d>%d", (int)d, (int)ax_sim_procedure_target(p, phase, r, k, d));
  }
  assert_int_equal(sent, received);
  ax_text_add(text, " (%g);", phase->bytes);
}

/* Makes the procedure, and compares its messages: of each step "sender>receiver .. (bytes);", of each chain a line. */
static void sends(group *g, ax_algorithm algorithm, const char *messages) {
  ax_text text = {0};
  bool done;
  TEST_OK(ax_sim_procedure_make(&g->procedure, algorithm, &done));
  assert_true(done);
  assert_int_equal(g->procedure.algorithm, algorithm);
  for (uint32_t c = 0; c < g->procedure.chain_count; c++) {
    ax_text_add(&text, "%s", c > 0 ? "\n" : "");
    for (uint32_t i = 0; i < g->procedure.chains[c].phase_count; i++)
      for (int64_t r = 0; r < g->procedure.chains[c].phases[i].repeat; r++)
        add_step(&g->procedure, &g->procedure.chains[c].phases[i], r, &text);
  }
  assert_string_equal(text.data, messages);
  ax_text_deinit(&text);
}

/* --- Messages --- */

static void a_ring_passes_parts_on(void **state) {
  (void)state;
  group g;
  make(AX_COLLECTIVE_ALL_REDUCE, "x=3", 10, &g); /* parts of 10/3 bytes, rounded up */
  sends(&g, AX_ALGORITHM_RING, " 0>1 1>2 2>0 (4); 0>1 1>2 2>0 (4); 0>1 1>2 2>0 (4); 0>1 1>2 2>0 (4);");
  unmake(&g);
  make(AX_COLLECTIVE_ALL_GATHER, "x=3", 10, &g); /* whole operands */
  sends(&g, AX_ALGORITHM_RING, " 0>1 1>2 2>0 (10); 0>1 1>2 2>0 (10);");
  unmake(&g);
}

static void two_rings_go_either_way(void **state) {
  (void)state;
  group g;
  make(AX_COLLECTIVE_REDUCE_SCATTER, "x=3", 30, &g);
  sends(&g, AX_ALGORITHM_BIDIRECTIONAL, " 0>1 1>2 2>0 (5); 0>1 1>2 2>0 (5);\n 0>2 1>0 2>1 (5); 0>2 1>0 2>1 (5);");
  unmake(&g);
}

/* As in procedure.h. */
static void a_tree_goes_to_the_root_and_back(void **state) {
  (void)state;
  group g;
  make(AX_COLLECTIVE_ALL_REDUCE, "x=5", 8, &g);
  sends(&g, AX_ALGORITHM_TREE, " 1>0 3>2 (8); 2>0 (8); 4>0 (8); 0>4 (8); 0>2 (8); 0>1 2>3 (8);");
  unmake(&g);
}

static void a_broadcast_begins_at_its_root(void **state) {
  (void)state;
  group g;
  make(AX_COLLECTIVE_BROADCAST, "x=4", 8, &g);
  g.procedure.root = 3;
  sends(&g, AX_ALGORITHM_TREE, " 3>1 (8); 1>2 3>0 (8);");
  sends(&g, AX_ALGORITHM_DIRECT, " 3>0 3>1 3>2 (8);");
  unmake(&g);
}

/* What is scattered shrinks, then grows: 12/2 bytes along y, 6/3 along x, and back. */
static void dimensions_go_along_one_axis_after_the_other(void **state) {
  (void)state;
  group g;
  make(AX_COLLECTIVE_REDUCE_SCATTER, "x=3,y=2", 12, &g);
  sends(&g, AX_ALGORITHM_DIMENSIONS,
        " 0>1 1>0 2>3 3>2 4>5 5>4 (6); 0>2 1>3 2>4 3>5 4>0 5>1 (2); 0>2 1>3 2>4 3>5 4>0 5>1 (2);");
  g.procedure.kind = AX_COLLECTIVE_ALL_GATHER;
  g.procedure.bytes = 2;
  sends(&g, AX_ALGORITHM_DIMENSIONS,
        " 0>2 1>3 2>4 3>5 4>0 5>1 (2); 0>2 1>3 2>4 3>5 4>0 5>1 (2); 0>1 1>0 2>3 3>2 4>5 5>4 (6);");
  unmake(&g);
}

/* Three members: in the second step of a gather one has two parts, of which only one is new to the member two before. */
static void doubling_sends_all_that_one_has(void **state) {
  (void)state;
  group g;
  make(AX_COLLECTIVE_ALL_GATHER, "x=4", 5, &g);
  sends(&g, AX_ALGORITHM_DOUBLING, " 0>3 1>0 2>1 3>2 (5); 0>2 1>3 2>0 3>1 (10);");
  unmake(&g);
  make(AX_COLLECTIVE_ALL_GATHER, "x=3", 5, &g);
  sends(&g, AX_ALGORITHM_DOUBLING, " 0>2 1>0 2>1 (5); 0>1 1>2 2>0 (5);");
  unmake(&g);
  make(AX_COLLECTIVE_REDUCE_SCATTER, "x=4", 20, &g);
  sends(&g, AX_ALGORITHM_DOUBLING, " 0>2 1>3 2>0 3>1 (10); 0>1 1>2 2>3 3>0 (5);");
  unmake(&g);
}

/* A block that goes d further on goes in the steps of d's bits: of distances 1 2 3 4, 1 and 3 have the first bit. */
static void doubling_exchanges_blocks_by_the_bits_of_their_way(void **state) {
  (void)state;
  group g;
  make(AX_COLLECTIVE_ALL_TO_ALL, "x=5", 50, &g);
  sends(&g, AX_ALGORITHM_DOUBLING, " 0>1 1>2 2>3 3>4 4>0 (20); 0>2 1>3 2>4 3>0 4>1 (20); 0>4 1>0 2>1 3>2 4>3 (10);");
  unmake(&g);
}

static void pairwise_meets_one_member_after_the_other(void **state) {
  (void)state;
  group g;
  make(AX_COLLECTIVE_ALL_TO_ALL, "x=3", 30, &g);
  sends(&g, AX_ALGORITHM_PAIRWISE, " 0>1 1>2 2>0 (10); 0>2 1>0 2>1 (10);");
  sends(&g, AX_ALGORITHM_DIRECT, " 0>1 0>2 1>2 1>0 2>0 2>1 (10);");
  unmake(&g);
}

/* --- Permutations --- */

static void permuted(int64_t *source, int64_t *target, ax_sim_move move, const char *messages) {
  group g;
  make(AX_COLLECTIVE_PERMUTE, "x=2,y=2", 8, &g);
  g.procedure.source = source;
  g.procedure.target = target;
  sends(&g, AX_ALGORITHM_DIRECT, messages);
  assert_int_equal(g.procedure.chains[0].phases[0].move, move);
  unmake(&g);
}

static void a_permutation_that_moves_all_alike_is_a_move(void **state) {
  (void)state;
  permuted((int64_t[]){3, 0, 1, 2}, (int64_t[]){1, 2, 3, 0}, AX_MOVE_MEMBER, " 0>1 1>2 2>3 3>0 (8);");
  permuted((int64_t[]){3, 2, 1, 0}, (int64_t[]){3, 2, 1, 0}, AX_MOVE_APART, " 0>3 1>2 2>1 3>0 (8);"); /* both digits turn */
}

static void any_other_permutation_is_its_pairs(void **state) {
  (void)state;
  permuted((int64_t[]){1, 0, 2, 3}, (int64_t[]){1, 0, 2, 3}, AX_MOVE_PAIRS, " 0>1 1>0 2>2 3>3 (8);");
  permuted((int64_t[]){-1, 0, 1, 2}, (int64_t[]){1, 2, 3, -1}, AX_MOVE_PAIRS, " 0>1 1>2 2>3 (8);");
  permuted((int64_t[]){2, -1, 0, 1}, (int64_t[]){2, 3, 0, -1}, AX_MOVE_PAIRS, " 0>2 1>3 2>0 (8);");
}

static void members_are_apart_by_digits(void **state) {
  (void)state;
  group g;
  make(AX_COLLECTIVE_ALL_TO_ALL, "x=2,y=3", 8, &g);
  assert_int_equal(ax_sim_group_apart(&g.procedure.group, 2, 3), 4); /* (0,2) to (1,0): one further and one further: (1,1) */
  assert_int_equal(ax_sim_group_apart(&g.procedure.group, 3, 2), 5); /* (1,0) to (0,2): (1,2) */
  assert_int_equal(ax_sim_group_apart(&g.procedure.group, 4, 4), 0);
  unmake(&g);
}

/* --- What algorithms cannot do --- */

static void an_algorithm_says_what_it_cannot_do(void **state) {
  (void)state;
  static const struct {
    ax_collective_kind kind;
    ax_algorithm algorithm;
  } cannot[] = {
      {AX_COLLECTIVE_BROADCAST, AX_ALGORITHM_RING},          {AX_COLLECTIVE_ALL_TO_ALL, AX_ALGORITHM_RING},
      {AX_COLLECTIVE_ALL_TO_ALL, AX_ALGORITHM_BIDIRECTIONAL}, {AX_COLLECTIVE_BROADCAST, AX_ALGORITHM_DIMENSIONS},
      {AX_COLLECTIVE_BROADCAST, AX_ALGORITHM_DOUBLING},      {AX_COLLECTIVE_ALL_GATHER, AX_ALGORITHM_TREE},
      {AX_COLLECTIVE_ALL_REDUCE, AX_ALGORITHM_PAIRWISE},     {AX_COLLECTIVE_PERMUTE, AX_ALGORITHM_RING},
  };
  for (size_t i = 0; i < AX_COUNT(cannot); i++) {
    group g;
    bool done;
    make(cannot[i].kind, "x=4", 8, &g);
    TEST_OK(ax_sim_procedure_make(&g.procedure, cannot[i].algorithm, &done));
    assert_false(done);
    unmake(&g);
  }
}

/* --- What is counted --- */

static void bytes_are_those_of_the_mean_device(void **state) {
  (void)state;
  group g;
  bool done;
  make(AX_COLLECTIVE_ALL_REDUCE, "x=5", 100, &g);
  TEST_OK(ax_sim_procedure_make(&g.procedure, AX_ALGORITHM_TREE, &done));
  assert_true(ax_sim_procedure_bytes(&g.procedure) == 8 * 100 / 5.0); /* 1>0 3>2; 2>0; 4>0; and back */
  unmake(&g);
  make(AX_COLLECTIVE_ALL_GATHER, "x=4", 100, &g);
  TEST_OK(ax_sim_procedure_make(&g.procedure, AX_ALGORITHM_RING, &done));
  assert_true(ax_sim_procedure_bytes(&g.procedure) == 300);
  unmake(&g);
}

static void equal_steps_are_worked_through_once(void **state) {
  (void)state;
  group g;
  bool done;
  make(AX_COLLECTIVE_ALL_REDUCE, "x=1000", 8, &g);
  TEST_OK(ax_sim_procedure_make(&g.procedure, AX_ALGORITHM_RING, &done));
  assert_true(ax_sim_procedure_work(&g.procedure, false) == 256); /* until it is steady, of 1998 steps */
  unmake(&g);
  make(AX_COLLECTIVE_ALL_TO_ALL, "x=1000", 8, &g);
  TEST_OK(ax_sim_procedure_make(&g.procedure, AX_ALGORITHM_PAIRWISE, &done));
  assert_true(ax_sim_procedure_work(&g.procedure, false) == 999); /* each step goes elsewhere */
  unmake(&g);
}

static void takes(group *g, ax_algorithm algorithm, double seconds, double waiting) {
  ax_sim_alone alone;
  bool done;
  TEST_OK(ax_sim_procedure_make(&g->procedure, algorithm, &done));
  TEST_OK(ax_sim_procedure_estimate(&g->procedure, &g->place, &alone));
  TEST_NEAR(alone.seconds, seconds, 1e-15);
  TEST_NEAR(alone.waiting, waiting, 1e-15);
  double busiest = 0;
  for (uint32_t k = 0; k < AX_MAX_LINK_KINDS; k++) busiest = fmax(busiest, alone.busy[k]);
  TEST_NEAR(busiest, seconds - waiting, 1e-15); /* each step loads links of one kind the most */
}

static void an_estimate_adds_up_steps(void **state) {
  (void)state;
  group g;
  make(AX_COLLECTIVE_ALL_GATHER, "x=4", 40, &g);
  takes(&g, AX_ALGORITHM_RING, 3 * (10 + 1 + 10), 3 * 11); /* each step: latency, overhead, 40 bytes of 4 a second */
  takes(&g, AX_ALGORITHM_DIRECT, 10 + 30, 10);             /* overheads beside what the link carries */
  g.procedure.bytes = 0;
  takes(&g, AX_ALGORITHM_DIRECT, 10 + 3, 13);
  unmake(&g);
}

/* --- What it keeps alike --- */

static void keeps(ax_collective_kind kind, ax_algorithm algorithm, int64_t images) {
  group g;
  bool done;
  make(kind, "x=4,y=3", 8, &g);
  TEST_OK(ax_sim_procedure_make(&g.procedure, algorithm, &done));
  ax_sim_place_fold(&g.place);
  ax_sim_procedure_keep(&g.procedure, &g.place);
  assert_int_equal(ax_sim_place_images(&g.place), images);
  unmake(&g);
}

static void devices_with_other_roles_are_other_images(void **state) {
  (void)state;
  keeps(AX_COLLECTIVE_ALL_REDUCE, AX_ALGORITHM_DIMENSIONS, 1);
  keeps(AX_COLLECTIVE_ALL_TO_ALL, AX_ALGORITHM_DIRECT, 1);
  keeps(AX_COLLECTIVE_ALL_REDUCE, AX_ALGORITHM_RING, 3);  /* only members with the same y carry over to the next x alike */
  keeps(AX_COLLECTIVE_ALL_REDUCE, AX_ALGORITHM_TREE, 12); /* each its place in the tree */
}

static void work_is_folded_as_far_as_all_its_transfers_allow(void **state) {
  (void)state;
  group g;
  bool done;
  make(AX_COLLECTIVE_ALL_REDUCE, "x=4,y=3", 8, &g);
  ax_sim_transfer transfer = {.procedure = g.procedure};
  TEST_OK(ax_sim_procedure_make(&transfer.procedure, AX_ALGORITHM_RING, &done));
  const ax_sim_work work = {.transfers = &transfer, .transfer_count = 1};
  assert_true(ax_sim_work_fold(&work, &g.place) == 2 * 11 * 3); /* steps of three images */
  assert_int_equal(ax_sim_place_images(&g.place), 3);
  ax_sim_work_unfold(&g.place);
  assert_int_equal(ax_sim_place_images(&g.place), 12);
  ax_sim_procedure_deinit(&transfer.procedure);
  unmake(&g);
}

/* 150,000 devices that differ, since groups are cut across nodes, send 7.5 billion messages, which would take minutes. Nearly all
   go over the network. */
static void very_many_unlike_devices(void **state) {
  static const char text[] = "machine m device flops f32 1 memory 1 node devices 8 latency 1 bandwidth 1e9 "
                             "network latency 10 bandwidth 4";
  const double parts = 4;
  ax_axes x = {.count = 1, .name = {"x"}};
  group g = {.procedure = {.kind = AX_COLLECTIVE_ALL_TO_ALL, .bytes = 50000 * parts}};
  ax_sim_alone alone;
  bool done;
  (void)state;
  TEST_OK(ax_cluster_parse(text, NULL, &g.machine));
  TEST_OK(ax_mesh_parse("x=50000,y=3", &g.mesh));
  TEST_OK(ax_sim_place_make(g.machine, &g.mesh, &g.place));
  ax_sim_group_make(&g.place, &x, &g.procedure.group);
  TEST_OK(ax_sim_procedure_make(&g.procedure, AX_ALGORITHM_DIRECT, &done));
  const double wanted = 10 + 50000 * parts / 4;
  const clock_t began = clock();
  TEST_OK(ax_sim_procedure_estimate(&g.procedure, &g.place, &alone));
  if (!(fabs(alone.seconds / wanted - 1) < 0.01)) fail_msg("%g s, not %g", alone.seconds, wanted);
  assert_true((double)(clock() - began) / CLOCKS_PER_SEC < 60);
  unmake(&g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_ring_passes_parts_on),
      cmocka_unit_test(two_rings_go_either_way),
      cmocka_unit_test(a_tree_goes_to_the_root_and_back),
      cmocka_unit_test(a_broadcast_begins_at_its_root),
      cmocka_unit_test(dimensions_go_along_one_axis_after_the_other),
      cmocka_unit_test(doubling_sends_all_that_one_has),
      cmocka_unit_test(doubling_exchanges_blocks_by_the_bits_of_their_way),
      cmocka_unit_test(pairwise_meets_one_member_after_the_other),
      cmocka_unit_test(a_permutation_that_moves_all_alike_is_a_move),
      cmocka_unit_test(any_other_permutation_is_its_pairs),
      cmocka_unit_test(members_are_apart_by_digits),
      cmocka_unit_test(an_algorithm_says_what_it_cannot_do),
      cmocka_unit_test(bytes_are_those_of_the_mean_device),
      cmocka_unit_test(equal_steps_are_worked_through_once),
      cmocka_unit_test(an_estimate_adds_up_steps),
      cmocka_unit_test(very_many_unlike_devices),
      cmocka_unit_test(devices_with_other_roles_are_other_images),
      cmocka_unit_test(work_is_folded_as_far_as_all_its_transfers_allow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
