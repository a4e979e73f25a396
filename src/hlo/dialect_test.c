/* The tables: names, orders, codes both ways, and what may be left out. */
#include "hlo/dialect.h"

#include <string.h>

#include "hlo/canonical.h"
#include "support/cmocka.h"

static ax_hlo_slice slice(const char *word) { return (ax_hlo_slice){word, strlen(word)}; }

static void check_order(const char *op, uint32_t form, const char *const *wanted, uint32_t count) {
  const ax_hlo_slot *slots[AX_HLO_MOST_SLOTS];
  assert_int_equal(ax_hlo_order_slots(ax_hlo_find_known(slice(op)), form, slots), count);
  for (uint32_t i = 0; i < count; i++) assert_string_equal(form > 0 ? ax_hlo_vhlo_name(slots[i]) : slots[i]->name, wanted[i]);
}
#define ORDER(op, form, ...) \
  check_order(op, form, (const char *const[]){__VA_ARGS__}, AX_COUNT(((const char *const[]){__VA_ARGS__})))

static void test_orders(void **state) {
  (void)state;
  ORDER("stablehlo.gather", 0, "dimension_numbers", "indices_are_sorted", "slice_sizes");
  ORDER("stablehlo.gather", 1, "collapsed_slice_dims", "index_vector_dim", "indices_are_sorted", "offset_dims", "slice_sizes",
        "start_index_map");
  ORDER("stablehlo.send", 2, "channel_id", "channel_type", "is_host_transfer", "source_target_pairs");
  ORDER("stablehlo.all_to_all", 2, "channel_id", "concat_dimension", "replica_groups", "split_count", "split_dimension");
  ORDER("func.call", 1, "callee");
  ORDER("chlo.broadcast_add", 0, "broadcast_dimensions");
  assert_null(ax_hlo_find_known(slice("stablehlo.add")));
  assert_null(ax_hlo_find_known(slice("gather")));
  assert_null(ax_hlo_find_known(slice("chlo.gather")));
}

static void test_codes(void **state) {
  (void)state;
  assert_string_equal(ax_hlo_find_words(true, 3)->name, "comparison_direction");
  assert_string_equal(ax_hlo_find_words(false, 2)->name, "comparison_direction");
  assert_null(ax_hlo_find_words(false, 0));
  assert_string_equal(ax_hlo_find_group(7)->name, "stablehlo.gather");
  assert_null(ax_hlo_find_group(99));
  for (uint32_t code = 0; code < 64; code++)
    if (ax_hlo_simple_type_of(code) != NULL) assert_int_equal(ax_hlo_simple_code(slice(ax_hlo_simple_type_of(code)->text)), code);
  assert_int_equal(ax_hlo_simple_code(slice("f33")), AX_NONE);
}

static const ax_hlo_slot *slot_of(const char *op, const char *name) {
  const ax_hlo_listed *known = ax_hlo_find_known(slice(op));
  uint32_t i = 0;
  while (strcmp(known->slots[i].name, name) != 0) i++;
  return &known->slots[i];
}

static void test_canonical(void **state) {
  (void)state;
  ax_arena arena = {0};
  const ax_hlo_attribute row[] = {{.kind = AX_HLO_INTEGER, .integer = 0}, {.kind = AX_HLO_INTEGER, .integer = 0}};
  const ax_hlo_attribute list = {.kind = AX_HLO_ARRAY, .items = row, .count = 2};
  const ax_hlo_attribute rows = {.kind = AX_HLO_ARRAY, .items = &list, .count = 1};
  ax_hlo_attribute out;
  assert_int_equal(ax_hlo_canonical(&arena, slot_of("stablehlo.convolution", "lhs_dilation"), &list, &out), AX_OK);
  assert_true(out.kind == AX_HLO_NUMBERS && out.count == 2);
  assert_false(ax_hlo_is_default(slot_of("stablehlo.convolution", "lhs_dilation"), &out)); /* that would be ones */
  assert_int_equal(ax_hlo_canonical(&arena, slot_of("stablehlo.convolution", "padding"), &rows, &out), AX_OK);
  assert_true(out.kind == AX_HLO_ELEMENTS && ax_hlo_element_count(out.type) == 2 && ax_hlo_is_splat(&out));
  assert_true(ax_hlo_is_default(slot_of("stablehlo.convolution", "padding"), &out));
  const ax_hlo_attribute last = {.kind = AX_HLO_INTEGER, .integer = -1}, yes = {.kind = AX_HLO_BOOL, .integer = 1};
  assert_true(ax_hlo_is_default(slot_of("stablehlo.sort", "dimension"), &last));
  assert_false(ax_hlo_is_default(slot_of("stablehlo.concatenate", "dimension"), &last));
  assert_int_equal(ax_hlo_canonical(&arena, slot_of("stablehlo.all_reduce", "use_global_device_ids"), &yes, &out), AX_OK);
  assert_int_equal(out.kind, AX_HLO_UNIT);
  const ax_hlo_attribute short_form = {.kind = AX_HLO_OPAQUE, .text = {"<@m, [{}]>", 10}};
  assert_int_equal(ax_hlo_canonical(&arena, slot_of("sdy.sharding_constraint", "sharding"), &short_form, &out), AX_OK);
  assert_true(ax_hlo_slice_is(out.text, "#sdy.sharding<@m, [{}]>"));
  ax_arena_deinit(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_orders), cmocka_unit_test(test_codes), cmocka_unit_test(test_canonical)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
