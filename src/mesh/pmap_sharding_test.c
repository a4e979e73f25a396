/* The shardings of jax.pmap's arrays: text and back, what each device has, against the definition; what is refused. */
#include "axle/pmap.h"

#include <string.h>

#include "support/cmocka.h"
#include "support/tensor.h"

static ax_pmap_sharding parsed(const char *text) {
  ax_pmap_sharding sharding;
  TEST_OK(ax_pmap_sharding_parse(text, &sharding));
  return sharding;
}

static void texts(void **state) {
  (void)state;
  static const char *const same[] = {
      "ShardingSpec((Unstacked(4), NoSharding()), (ShardedAxis(axis=0),))",
      "ShardingSpec((), ())",
      "ShardingSpec((NoSharding(),), (Replicated(replicas=3), Replicated(replicas=2)))",
      "ShardingSpec((Unstacked(4), NoSharding(), Chunked(2,3)), (ShardedAxis(axis=0), Replicated(replicas=2), ShardedAxis(axis=2), ShardedAxis(axis=1)))",
      "ShardingSpec((Chunked(1), Unstacked(1)), (ShardedAxis(axis=1), ShardedAxis(axis=0)))",
  };
  char *text;
  for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
    ax_pmap_sharding sharding = parsed(same[i]);
    TEST_OK(ax_pmap_sharding_print(&sharding, &text));
    assert_string_equal(text, same[i]);
    ax_string_free(text);
  }
  ax_pmap_sharding loose = parsed(
      "  ShardingSpec( ( Unstacked( size=4 ) ,Chunked([2, 3]),) , (ShardedAxis(2), ShardedAxis(0),Replicated( 2), ShardedAxis( axis = 1 ),) ) ");
  TEST_OK(ax_pmap_sharding_print(&loose, &text));
  assert_string_equal(
      text,
      "ShardingSpec((Unstacked(4), Chunked(2,3)), (ShardedAxis(axis=2), ShardedAxis(axis=0), Replicated(replicas=2), ShardedAxis(axis=1)))");
  ax_string_free(text);
}

/* By the definition: cut k of a device is its coordinate along the axis that is ShardedAxis(k). */
static void parts(void **state) {
  (void)state;
  const ax_pmap_sharding sharding = parsed(
      "ShardingSpec((Unstacked(4), NoSharding(), Chunked(2,3)), (ShardedAxis(2), Replicated(2), ShardedAxis(0), ShardedAxis(1)))");
  const ax_type whole = TEST_TYPE(AX_F32, 4, 5, 12), wanted = TEST_TYPE(AX_F32, 5, 2);
  for (int64_t device = 0; device < 48; device++) {
    ax_type part;
    int64_t start[3];
    TEST_OK(ax_pmap_sharding_part(&sharding, &whole, device, &part, start));
    assert_true(ax_type_equal(&part, &wanted));
    int64_t third = device / 16, first = device / 2 % 4, second = device % 2; /* 3 x 2 x 4 x 2 */
    assert_true(start[0] == first && start[1] == 0 && start[2] == (second * 3 + third) * 2);
  }
}

static void of_pmap(void **state) {
  (void)state;
  static const struct {
    int64_t devices, size;
    uint32_t rank;
    int axis;
    const char *text;
  } of[] = {
      {4, 4, 2, 0, "ShardingSpec((Unstacked(4), NoSharding()), (ShardedAxis(axis=0),))"},
      {8, 4, 3, 2, "ShardingSpec((NoSharding(), NoSharding(), Unstacked(4)), (ShardedAxis(axis=0), Replicated(replicas=2)))"},
      {8, 4, 3, -1, "ShardingSpec((NoSharding(), NoSharding(), Unstacked(4)), (ShardedAxis(axis=0), Replicated(replicas=2)))"},
      {4, 4, 1, AX_NOT_MAPPED, "ShardingSpec((NoSharding(),), (Replicated(replicas=4),))"},
      {8, 2, 0, AX_NOT_MAPPED, "ShardingSpec((), (Replicated(replicas=2), Replicated(replicas=4)))"},
  };
  for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
    ax_pmap_sharding made, read = parsed(of[i].text);
    char *text;
    TEST_OK(ax_pmap_sharding_of(of[i].devices, of[i].size, of[i].rank, of[i].axis, &made));
    TEST_OK(ax_pmap_sharding_print(&made, &text));
    assert_string_equal(text, of[i].text);
    ax_string_free(text);
    assert_true(strcmp(made.mesh.axis[0].name, read.mesh.axis[0].name) == 0 && made.mesh.count == read.mesh.count);
    if (made.mesh.count > 1) assert_string_equal(made.mesh.axis[1].name, read.mesh.axis[1].name);
  }
}

static void refused(void **state) {
  (void)state;
  static const char *const bad[][2] = {
      {"", "ShardingSpec( is expected at \"\""},
      {"ShardingSpec((Stacked(4),), ())", "NoSharding, Unstacked or Chunked is expected at \"Stacked(4),), ())\""},
      {"ShardingSpec((Unstacked(0),), ())", "a number from 1 on is expected at \"0),), ())\""},
      {"ShardingSpec((Unstacked(),), ())", "a number from 1 on is expected"},
      {"ShardingSpec((Unstacked(99999999999999999999),), (ShardedAxis(0),))", "a number from 1 on is expected"},
      {"ShardingSpec((Chunked([2),), (ShardedAxis(0),))", "] is expected"},
      {"ShardingSpec((NoSharding() NoSharding()), ())", "\",\" or \")\" is expected at \"NoSharding()), ())\""},
      {"ShardingSpec((Unstacked(4),), ())", "there is no ShardedAxis(0)"},
      {"ShardingSpec((Unstacked(4),), (ShardedAxis(1),))", "ShardedAxis(1), but there are 1 cuts"},
      {"ShardingSpec((Unstacked(4),), (ShardedAxis(-1),))", "a number is expected at \"-1),))\""},
      {"ShardingSpec((Unstacked(4),), (ShardedAxis(0), ShardedAxis(0)))", "ShardedAxis(0) is there twice"},
      {"ShardingSpec((Unstacked(4),), (Sharded(0),))", "ShardedAxis or Replicated is expected"},
      {"ShardingSpec((Unstacked(4),), (ShardedAxis(0),)) x", "the end is expected at \"x\""},
      {"ShardingSpec((), (Replicated(2000000000), Replicated(2000000000)))", "more than 2^31 devices"},
      {"ShardingSpec((Chunked(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1),), ())", "more than 16 cuts"},
  };
  ax_pmap_sharding sharding;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    TEST_FAILS(ax_pmap_sharding_parse(bad[i][0], &sharding), AX_INVALID_ARGUMENT, bad[i][1]);
  TEST_FAILS(ax_pmap_sharding_parse(NULL, &sharding), AX_INVALID_ARGUMENT, "text");
  TEST_FAILS(ax_pmap_sharding_of(6, 4, 1, 0, &sharding), AX_INVALID_ARGUMENT, "6 devices are no multiple of an axis of 4");
  TEST_FAILS(ax_pmap_sharding_of(4, 0, 1, 0, &sharding), AX_INVALID_ARGUMENT, "4 devices are no multiple of an axis of 0");
  TEST_FAILS(ax_pmap_sharding_of(4, 4, 1, 1, &sharding), AX_INVALID_ARGUMENT, "dimension 1 of an array of 1");
  const ax_type type = TEST_TYPE(AX_F32, 4, 6), other = TEST_TYPE(AX_F32, 4), longer = TEST_TYPE(AX_F32, 8, 6),
                uneven = TEST_TYPE(AX_F32, 4, 7), none = {0};
  ax_type part;
  int64_t start[2];
  sharding = parsed("ShardingSpec((Unstacked(4), Chunked(2)), (ShardedAxis(0), ShardedAxis(1)))");
  TEST_OK(ax_pmap_sharding_part(&sharding, &type, 7, &part, start));
  TEST_FAILS(ax_pmap_sharding_part(&sharding, &type, 8, &part, start), AX_INVALID_ARGUMENT, "device 8 of 8");
  TEST_FAILS(ax_pmap_sharding_part(&sharding, &other, 0, &part, start), AX_INVALID_ARGUMENT,
             "f32[4] has 1 dimensions, the sharding 2");
  TEST_FAILS(ax_pmap_sharding_part(&sharding, &longer, 0, &part, start), AX_INVALID_ARGUMENT,
             "dimension 0 of f32[8,6] is Unstacked(4)");
  TEST_FAILS(ax_pmap_sharding_part(&sharding, &uneven, 0, &part, start), AX_INVALID_ARGUMENT,
             "pmap sharding: the spec P(s0, s1) cuts dimension 1 in 2 parts, which do not divide f32[4,7]");
  TEST_FAILS(ax_pmap_sharding_part(&sharding, &none, 0, &part, start), AX_INVALID_ARGUMENT, "the type is none");
  char *text;
  sharding.spec.axis[1][0] = 0;
  TEST_FAILS(ax_pmap_sharding_print(&sharding, &text), AX_INVALID_ARGUMENT,
             "dimension 1 is cut over an axis that there is not, or twice");
  sharding = (ax_pmap_sharding){.unstacked = 1};
  TEST_FAILS(ax_pmap_sharding_print(&sharding, &text), AX_INVALID_ARGUMENT, "a dimension beyond the 0 there are is unstacked");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(texts), cmocka_unit_test(parts), cmocka_unit_test(of_pmap),
                                     cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
