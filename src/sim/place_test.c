/* Meshes on machines, small enough to count links by hand: digits, images, groups and routes. */
#include "sim/place.h"

#include <stdio.h>
#include <string.h>

#include "support/cmocka.h"
#include "support/tensor.h"

typedef struct laid {
  ax_cluster *machine;
  ax_mesh mesh;
  ax_sim_place place;
} laid;

#define DEVICE "machine m device flops f32 1 memory 1 "

static void lay(const char *topology, const char *mesh, laid *out) {
  char text[256];
  snprintf(text, sizeof text, DEVICE "%s", topology);
  TEST_OK(ax_cluster_parse(text, NULL, &out->machine));
  TEST_OK(ax_mesh_parse(mesh, &out->mesh));
  TEST_OK(ax_sim_place_make(out->machine, &out->mesh, &out->place));
}

static void unlay(laid *l) { ax_cluster_release(l->machine); }

static void is_called(const laid *l, const char *name) {
  ax_text text = {0};
  ax_sim_place_topology(&l->place, &text);
  assert_string_equal(text.data, name);
  ax_text_deinit(&text);
}

/* --- Digits --- */

static void sides_of_a_torus_follow_the_mesh(void **state) {
  (void)state;
  laid l;
  lay("torus dimensions 2 bandwidth 1", "x=4,y=2,z=3", &l);
  is_called(&l, "torus 4 x 6"); /* the last side takes all axes that are left */
  assert_int_equal(l.place.digit[0].stride, 6);
  assert_int_equal(l.place.digit[1].stride, 1);
  assert_int_equal(l.place.all, 24);
  unlay(&l);
}

static void sides_of_a_cube_are_near_to_each_other(void **state) {
  (void)state;
  laid l;
  lay("torus cube 3 bandwidth 1", "x=12", &l);
  is_called(&l, "torus 3 x 2 x 2");
  unlay(&l);
  lay("torus cube 3 bandwidth 1", "x=10", &l);
  is_called(&l, "torus 5 x 1 x 2"); /* sides divide what is left */
  unlay(&l);
}

static void a_node_cuts_an_axis_in_two(void **state) {
  (void)state;
  laid l;
  lay("node devices 4 bandwidth 1 network bandwidth 1", "x=2,y=6", &l); /* 12 devices: a node ends in the middle of y */
  assert_false(l.place.foldable);
  is_called(&l, "3 nodes of 4");
  unlay(&l);
  lay("node devices 4 bandwidth 1 network bandwidth 1", "x=2,y=8", &l);
  assert_true(l.place.foldable);
  assert_int_equal(l.place.count, 3);
  const int64_t sizes[] = {2, 2, 4}, strides[] = {8, 4, 1}; /* x, which node of y, which device of the node */
  for (uint32_t d = 0; d < 3; d++) {
    assert_int_equal(l.place.digit[d].size, sizes[d]);
    assert_int_equal(l.place.digit[d].stride, strides[d]);
  }
  unlay(&l);
}

static void a_small_mesh_lies_in_one_node(void **state) {
  (void)state;
  laid l;
  lay("node devices 4 bandwidth 1 network bandwidth 1", "x=3", &l);
  is_called(&l, "1 node of 4");
  assert_true(l.place.foldable);
  unlay(&l);
}

static void a_machine_with_fewer_devices_is_refused(void **state) {
  (void)state;
  static const char *const machines[] = {"torus sides 2 2 bandwidth 1", "switch ports 4 bandwidth 1",
                                         "node devices 2 bandwidth 1 network ports 2 bandwidth 1"};
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("x=5", &mesh));
  for (size_t i = 0; i < AX_COUNT(machines); i++) {
    char text[256];
    ax_cluster *machine;
    ax_sim_place place;
    snprintf(text, sizeof text, DEVICE "%s", machines[i]);
    TEST_OK(ax_cluster_parse(text, NULL, &machine));
    TEST_FAILS(ax_sim_place_make(machine, &mesh, &place), AX_INVALID_ARGUMENT, "has 5 devices, but the machine \"m\" has 4");
    ax_cluster_release(machine);
  }
}

/* --- Images --- */

static void every_device_is_its_own_image_at_first(void **state) {
  (void)state;
  laid l;
  lay("torus sides 2 3 bandwidth 1", "x=2,y=3", &l);
  assert_int_equal(ax_sim_place_images(&l.place), 6);
  for (int64_t d = 0; d < 6; d++) {
    assert_int_equal(ax_sim_place_image(&l.place, d), d);
    assert_int_equal(ax_sim_place_device(&l.place, d), d);
  }
  unlay(&l);
}

static void a_folded_place_has_one_image(void **state) {
  (void)state;
  laid l;
  lay("torus sides 2 3 bandwidth 1", "x=2,y=3", &l);
  ax_sim_place_fold(&l.place);
  assert_int_equal(ax_sim_place_images(&l.place), 1);
  assert_int_equal(ax_sim_place_image(&l.place, 5), 0);
  unlay(&l);
}

static void a_part_of_a_machine_is_not_folded(void **state) {
  (void)state;
  laid l;
  lay("torus sides 2 3 bandwidth 1", "x=5", &l);
  ax_sim_place_fold(&l.place);
  assert_int_equal(ax_sim_place_images(&l.place), 6);
  unlay(&l);
}

/* Whole nodes have one link each, so their devices stay apart. */
static void nodes_with_links_of_their_own_stay_whole(void **state) {
  (void)state;
  laid l;
  lay("node devices 4 bandwidth 1 network links node bandwidth 1", "x=8", &l);
  ax_sim_place_fold(&l.place);
  assert_int_equal(ax_sim_place_images(&l.place), 4);
  unlay(&l);
}

static void what_is_kept_unfolds_by_least_common_multiples(void **state) {
  (void)state;
  const ax_sim_cycle third = {.size = 3, .stride = 2, .unit = 2}, by_two = {.size = 2, .stride = 1, .unit = 1};
  laid l;
  lay("torus sides 12 bandwidth 1", "x=12", &l);
  ax_sim_place_fold(&l.place);
  ax_sim_place_keep_values(&l.place, &by_two);
  assert_int_equal(l.place.digit[0].fold, 2);
  assert_int_equal(ax_sim_place_image(&l.place, 7), 1);
  ax_sim_place_keep_values(&l.place, &(ax_sim_cycle){.size = 3, .stride = 1, .unit = 1});
  assert_int_equal(l.place.digit[0].fold, 6);
  assert_int_equal(ax_sim_place_device(&l.place, 5), 5);
  ax_sim_place_keep_values(&l.place, &third);
  assert_int_equal(l.place.digit[0].fold, 6);
  unlay(&l);
}

/* 0 1 2 3 4 5 may be turned as a whole; 0 1 2 and 3 4 5 turned each by itself are not what turns all of them. */
static void moves_that_come_round_with_their_digit_keep_nothing(void **state) {
  (void)state;
  laid l;
  lay("torus sides 6 bandwidth 1", "x=6", &l);
  ax_sim_place_fold(&l.place);
  ax_sim_place_keep_moves(&l.place, &(ax_sim_cycle){.size = 3, .stride = 2, .unit = 2});
  assert_int_equal(l.place.digit[0].fold, 1);
  ax_sim_place_keep_moves(&l.place, &(ax_sim_cycle){.size = 3, .stride = 1, .unit = 1});
  assert_int_equal(l.place.digit[0].fold, 3);
  unlay(&l);
}

static void a_cycle_across_digits_unfolds_all(void **state) {
  (void)state;
  laid l;
  lay("torus sides 2 3 bandwidth 1", "x=2,y=3", &l);
  ax_sim_place_fold(&l.place);
  ax_sim_place_keep_moves(&l.place, &(ax_sim_cycle){.size = 2, .stride = 3, .digit = AX_NONE});
  assert_int_equal(ax_sim_place_images(&l.place), 6);
  unlay(&l);
}

/* --- Groups --- */

static void members_are_numbered_in_the_order_of_the_names(void **state) {
  (void)state;
  laid l;
  ax_sim_group group;
  lay("switch bandwidth 1", "x=2,y=3", &l); /* device 3x + y */
  ax_sim_group_make(&l.place, &(ax_axes){.count = 2, .name = {"y", "x"}}, &group);
  assert_int_equal(group.members, 6);
  assert_int_equal(ax_sim_group_member(&group, 4), 3); /* x = 1, y = 1: 2y + x */
  assert_int_equal(ax_sim_group_device(&group, 0, 3), 4);
  unlay(&l);
}

static void a_group_leaves_other_axes_as_they_are(void **state) {
  (void)state;
  laid l;
  ax_sim_group group;
  lay("switch bandwidth 1", "x=2,y=3", &l);
  ax_sim_group_make(&l.place, &(ax_axes){.count = 1, .name = {"x"}}, &group);
  assert_int_equal(group.members, 2);
  assert_int_equal(ax_sim_cycle_value(&group.cycle[0], 4), 1);
  assert_int_equal(ax_sim_group_device(&group, 4, 0), 1);
  unlay(&l);
}

static void neighbours_in_a_side_are_one_cycle(void **state) {
  (void)state;
  laid l;
  ax_sim_group group;
  lay("torus sides 6 bandwidth 1", "x=2,y=3", &l);
  ax_sim_group_make(&l.place, &(ax_axes){.count = 2, .name = {"x", "y"}}, &group);
  assert_int_equal(group.count, 1);
  assert_int_equal(group.cycle[0].size, 6);
  ax_sim_group_make(&l.place, &(ax_axes){.count = 2, .name = {"y", "x"}}, &group);
  assert_int_equal(group.count, 2);
  unlay(&l);
}

static void an_axis_over_two_sides_is_two_cycles(void **state) {
  (void)state;
  laid l;
  ax_sim_group group;
  lay("torus sides 2 4 bandwidth 1", "x=8", &l);
  ax_sim_group_make(&l.place, &(ax_axes){.count = 1, .name = {"x"}}, &group);
  assert_int_equal(group.members, 8);
  assert_int_equal(group.count, 2);
  assert_int_equal(group.cycle[0].digit, 0);
  assert_int_equal(group.cycle[1].digit, 1);
  unlay(&l);
}

/* --- Links --- */

/* Whether it comes to each member once, each time by one value in one cycle; *closes: back to the first too. */
static void winds_through_all(const char *topology, const char *mesh, const char *axes, bool closes) {
  laid l;
  ax_axes names;
  ax_sim_group group;
  bool seen[64] = {false};
  int64_t device = 0;
  lay(topology, mesh, &l);
  TEST_OK(ax_axes_parse(axes, NULL, &names));
  ax_sim_group_make(&l.place, &names, &group);
  assert_int_equal(group.winding, group.count);
  for (int64_t i = 0; i < group.members; i++) {
    const int64_t next = ax_sim_group_winding_next(&group, device, false);
    uint32_t moved = 0;
    for (uint32_t p = 0; p < group.count && (closes || i + 1 < group.members); p++) {
      const ax_sim_cycle *cycle = &group.cycle[p];
      const int64_t by = ax_sim_cycle_value(cycle, next) - ax_sim_cycle_value(cycle, device);
      moved += by != 0;
      assert_true(by * by <= 1 || (closes && by == 1 - cycle->size));
    }
    if (closes || i + 1 < group.members) assert_int_equal(moved, 1);
    assert_int_equal(ax_sim_group_winding_next(&group, next, true), device);
    assert_false(seen[ax_sim_group_member(&group, next)]);
    seen[ax_sim_group_member(&group, next)] = true;
    device = next;
  }
  assert_int_equal(device, 0);
  unlay(&l);
}

static void a_ring_winds_from_neighbour_to_neighbour(void **state) {
  (void)state;
  laid l;
  ax_sim_group group;
  winds_through_all("torus dimensions 2 bandwidth 1", "x=4,y=3", "x,y", true);
  winds_through_all("torus dimensions 2 bandwidth 1", "x=3,y=4", "x,y", true); /* y comes round evenly: it is the slower */
  winds_through_all("torus dimensions 2 bandwidth 1", "x=3,y=5", "x,y", false);
  winds_through_all("torus dimensions 3 bandwidth 1", "x=2,y=3,z=4", "z,x,y", true);
  winds_through_all("torus sides 8 8 bandwidth 1", "x=16,y=4", "x", true);   /* all of one side, and every fourth of the other */
  winds_through_all("torus sides 4 4 4 bandwidth 1", "x=8,y=8", "y", true);  /* a side, and half of another */
  lay("switch bandwidth 1", "x=4,y=3", &l);
  ax_sim_group_make(&l.place, &(ax_axes){.count = 2, .name = {"x", "y"}}, &group);
  assert_int_equal(group.winding, 0); /* none are neighbours */
  unlay(&l);
}

static void each_kind_of_link_is_described(void **state) {
  (void)state;
  laid l;
  ax_simulated_link link;
  lay("node devices 4 bandwidth 5 network links node bandwidth 7", "x=8", &l);
  assert_int_equal(ax_sim_place_links(&l.place), 2 * 8 + 2 * 2);
  assert_int_equal(ax_sim_place_kinds(&l.place), 4);
  assert_int_equal(ax_sim_place_kind(&l.place, 3), 1);
  assert_int_equal(ax_sim_place_kind(&l.place, 18), 2);
  assert_true(ax_sim_place_wire(&l.place, 15)->bandwidth == 5 && ax_sim_place_wire(&l.place, 16)->bandwidth == 7);
  ax_sim_place_describe(&l.place, 1, &link);
  assert_string_equal(link.name, "from the switch");
  assert_int_equal(link.count, 8);
  ax_sim_place_describe(&l.place, 2, &link);
  assert_string_equal(link.name, "to the network");
  assert_int_equal(link.count, 2);
  assert_true(link.bandwidth == 7);
  unlay(&l);
}

static void a_torus_has_links_both_ways_along_each_side(void **state) {
  (void)state;
  laid l;
  ax_simulated_link link;
  lay("torus sides 2 4 bandwidth 3", "x=7", &l);
  assert_int_equal(ax_sim_place_kinds(&l.place), 4);
  ax_sim_place_describe(&l.place, 3, &link);
  assert_string_equal(link.name, "dimension 1, down");
  assert_int_equal(link.count, 8); /* also of the device that the mesh leaves out */
  unlay(&l);
}

/* --- Routes --- */

/* A route as "link*weight ..": links of a torus are 2 * sides * image + 2 * side, and 1 more for the way down. */
static void goes(const laid *l, int64_t from, int64_t to, double latency, double overhead, const char *links) {
  ax_sim_route route = {0};
  ax_text text = {0};
  TEST_OK(ax_sim_route_find(&l->place, from, to, &route));
  for (uint32_t h = 0; h < route.count; h++)
    ax_text_add(&text, "%s%u*%g", h > 0 ? " " : "", route.hops[h].link, route.hops[h].weight);
  assert_string_equal(text.data, links);
  TEST_NEAR(route.latency, latency, 0);
  TEST_NEAR(route.overhead, overhead, 0);
  TEST_NEAR(ax_sim_place_overhead(&l->place, from, to), overhead, 0);
  ax_text_deinit(&text);
  ax_sim_route_deinit(&route);
}

static void a_message_takes_the_shorter_way_round(void **state) {
  (void)state;
  laid l;
  lay("torus sides 5 latency 10 bandwidth 1 overhead 3", "x=5", &l);
  goes(&l, 0, 2, 20, 3, "0*1 2*1");
  goes(&l, 0, 3, 20, 3, "1*1 9*1");
  goes(&l, 4, 0, 10, 3, "8*1");
  unlay(&l);
}

static void halves_go_either_way_where_both_are_as_long(void **state) {
  (void)state;
  laid l;
  lay("torus sides 4 latency 10 bandwidth 1", "x=4", &l);
  goes(&l, 0, 2, 20, 0, "0*0.5 2*0.5 1*0.5 7*0.5");
  unlay(&l);
  lay("torus sides 2 latency 10 bandwidth 1", "x=2", &l);
  goes(&l, 1, 0, 10, 0, "2*1"); /* along a side of two there is one link each way */
  unlay(&l);
}

static void one_side_is_gone_along_after_the_other(void **state) {
  (void)state;
  laid l;
  lay("torus sides 3 3 latency 10 bandwidth 1", "x=3,y=3", &l);
  goes(&l, 0, 5, 20, 0, "0*1 15*1"); /* up to 3, and down from 3 to 5 */
  unlay(&l);
}

/* 0 goes to 4 of 9 devices with three images, over the links of 0, 1, 2 and 3; the links of 0 and 3 have the same image. */
static void links_of_an_image_carry_for_all_that_it_stands_for(void **state) {
  (void)state;
  laid l;
  lay("torus sides 9 latency 10 bandwidth 1", "x=9", &l);
  l.place.digit[0].fold = 3;
  goes(&l, 0, 4, 40, 0, "0*2 2*1 4*1");
  unlay(&l);
}

static void nodes_have_a_network_between_them(void **state) {
  (void)state;
  laid l;
  lay("node devices 2 latency 1 bandwidth 1 overhead 2 network latency 10 bandwidth 1 overhead 20", "x=4", &l);
  goes(&l, 2, 3, 1, 2, "8*1 13*1");    /* four links each; to the switch, and from it */
  goes(&l, 0, 3, 10, 20, "2*1 15*1"); /* to the network, and from it */
  unlay(&l);
  lay("node devices 2 latency 1 bandwidth 1 overhead 2 network links node latency 10 bandwidth 1 overhead 20", "x=4", &l);
  goes(&l, 0, 3, 10, 20, "8*1 11*1"); /* the nodes' links come after the devices', of which there are 8 */
  unlay(&l);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sides_of_a_torus_follow_the_mesh),
      cmocka_unit_test(sides_of_a_cube_are_near_to_each_other),
      cmocka_unit_test(a_node_cuts_an_axis_in_two),
      cmocka_unit_test(a_small_mesh_lies_in_one_node),
      cmocka_unit_test(a_machine_with_fewer_devices_is_refused),
      cmocka_unit_test(every_device_is_its_own_image_at_first),
      cmocka_unit_test(a_folded_place_has_one_image),
      cmocka_unit_test(a_part_of_a_machine_is_not_folded),
      cmocka_unit_test(nodes_with_links_of_their_own_stay_whole),
      cmocka_unit_test(what_is_kept_unfolds_by_least_common_multiples),
      cmocka_unit_test(moves_that_come_round_with_their_digit_keep_nothing),
      cmocka_unit_test(a_cycle_across_digits_unfolds_all),
      cmocka_unit_test(members_are_numbered_in_the_order_of_the_names),
      cmocka_unit_test(a_group_leaves_other_axes_as_they_are),
      cmocka_unit_test(neighbours_in_a_side_are_one_cycle),
      cmocka_unit_test(an_axis_over_two_sides_is_two_cycles),
      cmocka_unit_test(a_ring_winds_from_neighbour_to_neighbour),
      cmocka_unit_test(each_kind_of_link_is_described),
      cmocka_unit_test(a_torus_has_links_both_ways_along_each_side),
      cmocka_unit_test(a_message_takes_the_shorter_way_round),
      cmocka_unit_test(halves_go_either_way_where_both_are_as_long),
      cmocka_unit_test(one_side_is_gone_along_after_the_other),
      cmocka_unit_test(links_of_an_image_carry_for_all_that_it_stands_for),
      cmocka_unit_test(nodes_have_a_network_between_them),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
