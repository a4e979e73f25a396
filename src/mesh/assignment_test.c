/* Shardings: every kind against the definition, device by device; equal ones; XLA's text and back, beside JAX's; what is
   refused. */
#include "axle/sharding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"
#include "support/oom.h"
#include "support/random.h"
#include "support/tensor.h"

static ax_mesh mesh_of(const char *text) {
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse(text, &mesh));
  return mesh;
}

static ax_sharding *named(const char *mesh_text, const char *spec, uint32_t count, const int64_t *devices) {
  const ax_mesh mesh = mesh_of(mesh_text);
  ax_sharding *made;
  TEST_OK(ax_sharding_named(&mesh, spec, &(ax_sharding_options){.devices = {count, devices}}, &made));
  return made;
}

static ax_sharding *tiled(const char *text) {
  ax_sharding *made;
  TEST_OK(ax_sharding_tiled(text, NULL, &made));
  return made;
}

static void expect_tiles(ax_sharding *made, uint32_t rank, const char *wanted) {
  char *text;
  TEST_OK(ax_sharding_tiles(made, rank, &text));
  assert_string_equal(text, wanted);
  ax_string_free(text);
}

static void expect_print(ax_sharding *made, const char *wanted) {
  char *text;
  TEST_OK(ax_sharding_print(made, &text));
  assert_string_equal(text, wanted);
  ax_string_free(text);
}

/* --- Tile assignments --- */

/* What jax.sharding.NamedSharding(..)._to_xla_hlo_sharding(rank) gives for devices in order. */
static void texts_are_those_of_jax(void **state) {
  (void)state;
  static const struct {
    const char *mesh, *spec;
    uint32_t rank;
    const char *text;
  } of[] = {
      {"a=4,b=2", "a,b", 2, "{devices=[4,2]<=[8]}"},
      {"a=4,b=2", "b", 2, "{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}"},
      {"a=2,b=2,c=2", "b,c+a", 3, "{devices=[2,4,1]<=[2,4]T(1,0)}"},
      {"a=2,b=2,c=2", "b", 3, "{devices=[2,1,1,4]<=[2,2,2]T(1,0,2) last_tile_dim_replicate}"},
      {"a=2,b=2,c=2", "", 3, "{replicated}"},
      {"a=2,b=2", "b,a", 2, "{devices=[2,2]<=[2,2]T(1,0)}"},
      {"a=2,b=3,c=4", "c,_,b", 3, "{devices=[4,1,3,2]<=[2,3,4]T(2,1,0) last_tile_dim_replicate}"},
      {"a=1,b=2", "a+b", 1, "{devices=[2]<=[2]}"},
  };
  for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
    ax_sharding *made = named(of[i].mesh, of[i].spec, 0, NULL), *again;
    expect_tiles(made, of[i].rank, of[i].text);
    TEST_OK(
        ax_sharding_tiled(of[i].text, &(ax_sharding_options){.device_count = (uint32_t)ax_sharding_device_count(made)}, &again));
    assert_true(ax_sharding_equal(made, again));
    ax_sharding_release(made);
    ax_sharding_release(again);
  }
}

static void texts_become_meshes(void **state) {
  (void)state;
  static const struct {
    const char *text, *print, *tiles;
    uint32_t rank;
  } of[] = {
      {"{devices=[4,1,2]<=[8] last_tile_dim_replicate}", "P(t0, _) over (t0=4, t1=2)", NULL, 2},
      {"{devices=[4,1,2]<=[8] last_tile_dims={replicated}}", "P(t0, _) over (t0=4, t1=2)",
       "{devices=[4,1,2]<=[8] last_tile_dim_replicate}", 2},
      {"{devices=[4,1,2]0,1,2,3,4,5,6,7 last_tile_dim_replicate}", "P(t0, _) over (t0=4, t1=2)",
       "{devices=[4,1,2]<=[8] last_tile_dim_replicate}", 2},
      {"{devices=[4,2]0,4,1,5,2,6,3,7}", "P(t1, t0) over (t0=2, t1=4)", "{devices=[4,2]<=[2,4]T(1,0)}", 2},
      {"{devices=[2,4]<=[2,4]T(1,0)}", "P(t1, t2+t0) over (t0=2, t1=2, t2=2)", NULL, 2},
      {"{devices=[2,3]<=[2,3]T(1,0)}", "P(t0, t1) over (t0=2, t1=3), devices 0 3 1 4 2 5", NULL, 2},
      {"{devices=[4]1,0,3,2}", "P(t0) over (t0=4,), devices 1 0 3 2", NULL, 1},
      {"{ devices=[2,2]1, 0,3,2 last_tile_dim_replicate }", "P(t0) over (t0=2, t1=2)",
       "{devices=[2,2]<=[4] last_tile_dim_replicate}", 1},
      {"{devices=[1,1]<=[1]}", "P(_, _) over ()", "{maximal device=0}", 2},
      {"{maximal device=3}", "P() over (), device 3", NULL, 2},
      {"{replicated}", "P() over (t0=1,)", "{maximal device=0}", 1},
  };
  for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
    ax_sharding *made = tiled(of[i].text);
    expect_print(made, of[i].print);
    expect_tiles(made, of[i].rank, of[i].tiles != NULL ? of[i].tiles : of[i].text);
    ax_sharding_release(made);
  }
}

/* A text at random is read by its definition: tile k, row-major, is the number that reshaping and transposing puts there. */
static void iotas_at_random(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 300; seed++) {
    int64_t sizes[5], strides[5], start[5], list[512], count = 1;
    uint32_t perm[5], rank;
    test_random random = {seed};
    rank = (uint32_t)test_random_below(&random, 5) + 1;
    for (uint32_t i = 0; i < rank; i++) count *= sizes[i] = test_random_below(&random, 3) + 1;
    for (uint32_t i = rank; i-- > 0;) strides[i] = i + 1 < rank ? strides[i + 1] * sizes[i + 1] : 1;
    for (uint32_t i = 0; i < rank; i++) {
      uint32_t k = (uint32_t)test_random_below(&random, i + 1);
      perm[i] = perm[k];
      perm[k] = i;
    }
    char text[4096] = "{devices=[";
    for (uint32_t i = 0; i < rank; i++) sprintf(text + strlen(text), "%s%d", i ? "," : "", (int)sizes[perm[i]]);
    const size_t head = strlen(text);
    strcpy(text + head, "]<=[");
    for (uint32_t i = 0; i < rank; i++) sprintf(text + strlen(text), "%s%d", i ? "," : "", (int)sizes[i]);
    strcat(text, "]T(");
    for (uint32_t i = 0; i < rank; i++) sprintf(text + strlen(text), "%s%u", i ? "," : "", perm[i]);
    strcat(text, ")}");
    ax_sharding *made = tiled(text);
    for (int64_t k = 0; k < count; k++) {
      int64_t rest = k;
      list[k] = 0;
      for (uint32_t i = rank; i-- > 0; rest /= sizes[perm[i]]) list[k] += rest % sizes[perm[i]] * strides[perm[i]];
    }
    strcpy(text + head, "]");
    for (int64_t k = 0; k < count; k++) sprintf(text + strlen(text), "%s%d", k ? "," : "", (int)list[k]);
    strcat(text, "}");
    ax_sharding *listed = tiled(text);
    assert_true(ax_sharding_equal(made, listed));
    ax_type whole = {.dtype = AX_F32, .rank = rank};
    for (uint32_t d = 0; d < rank; d++) whole.dims[d] = sizes[perm[d]] * 2;
    for (int64_t k = 0; k < count; k++) {
      int64_t rest = k;
      TEST_OK(ax_sharding_start(made, &whole, list[k], start));
      for (uint32_t i = rank; i-- > 0; rest /= sizes[perm[i]]) assert_int_equal(start[i], rest % sizes[perm[i]] * 2);
    }
    ax_mesh mesh;
    ax_spec spec;
    TEST_OK(ax_sharding_in_order(made, &mesh, &spec)); /* the tiles are cut as the numbers are */
    ax_sharding_release(made);
    ax_sharding_release(listed);
  }
}

/* --- Kinds, questions --- */

static void devices_have_blocks(void **state) {
  (void)state;
  static const int64_t ids[] = {3, 1, 2, 0};
  const ax_type whole = TEST_TYPE(AX_F32, 6, 4);
  ax_type block;
  int64_t start[2], starts[4][2];
  ax_sharding *made = named("x=2,y=2", "y", 4, ids);
  TEST_OK(ax_sharding_block(made, &whole, &block));
  assert_true(block.rank == 2 && block.dims[0] == 3 && block.dims[1] == 4);
  assert_true(ax_sharding_device_count(made) == 4 && ax_sharding_block_count(made) == 2 && !ax_sharding_is_replicated(made));
  TEST_OK(ax_sharding_starts(made, &whole, starts[0]));
  for (int64_t p = 0; p < 4; p++) {
    assert_int_equal(ax_sharding_device(made, p), ids[p]);
    assert_int_equal(ax_sharding_place(made, ids[p]), p);
    TEST_OK(ax_sharding_start(made, &whole, ids[p], start));
    assert_true(start[0] == p % 2 * 3 && start[1] == 0 && starts[p][0] == start[0] && starts[p][1] == 0);
  }
  assert_true(ax_sharding_device(made, 4) == -1 && ax_sharding_device(made, -1) == -1 && ax_sharding_place(made, 4) == -1);
  expect_print(made, "P(y) over (x=2, y=2), devices 3 1 2 0");
  char *text;
  TEST_OK(ax_sharding_picture(made, &whole, &text));
  assert_string_equal(text, "f32[6,4] P(y), a device holds f32[3,4]\n+----------------+\n|      3 2       |\n+----------------+\n"
                            "|      1 0       |\n+----------------+\n");
  ax_string_free(text);
  ax_sharding_release(made);
}

static void pmaps(void **state) {
  (void)state;
  ax_pmap_sharding of;
  ax_sharding *made, *rows = named("i=4", "i", 0, NULL);
  TEST_OK(ax_pmap_sharding_parse("ShardingSpec((Unstacked(4), NoSharding()), (ShardedAxis(axis=0),))", &of));
  TEST_OK(ax_sharding_pmap(&of, NULL, &made));
  assert_true(ax_sharding_equal(made, rows));
  expect_tiles(made, 2, "{devices=[4,1]<=[4]}");
  ax_sharding_release(made);
  ax_sharding_release(rows);
}

static void equal_whatever_they_are_called(void **state) {
  (void)state;
  static const int64_t back[] = {3, 2, 1, 0}, swapped[] = {0, 2, 1, 3}, others[] = {4, 5, 6, 7};
  ax_sharding *of[] = {
      named("d=4", "d", 0, NULL),            /* 0: 1 and 4 too */
      named("x=2,y=2", "x+y,_", 0, NULL),
      named("x=2,y=2", "y+x", 0, NULL),      /* 2: 3 too */
      named("d=4", "d", 4, swapped),
      tiled("{devices=[4]0,1,2,3}"),
      named("d=4", "d", 4, back),
      named("d=4", "d", 4, others),
      named("d=4", "_,d", 0, NULL),
      named("d=4", "", 0, NULL),             /* 8: 9 and 10 too */
      named("x=2,y=2", "", 4, back),
      tiled("{devices=[1,4]2,0,1,3 last_tile_dim_replicate}"),
      named("d=2", "d", 0, NULL),
  };
  static const int same[] = {0, 0, 2, 2, 0, 5, 6, 7, 8, 8, 8, 11};
  const int count = (int)(sizeof same / sizeof same[0]);
  for (int i = 0; i < count; i++)
    for (int k = 0; k < count; k++) assert_int_equal(ax_sharding_equal(of[i], of[k]), same[i] == same[k]);
  for (int i = 0; i < count; i++) ax_sharding_release(of[i]);
}

static void in_order(void **state) {
  (void)state;
  static const int64_t across[] = {0, 4, 1, 5, 2, 6, 3, 7}, back[] = {1, 0}, far[] = {2, 3};
  ax_mesh mesh;
  ax_spec spec;
  ax_sharding *made = named("a=4,b=2", "a,b", 8, across), *again;
  TEST_OK(ax_sharding_in_order(made, &mesh, &spec));
  assert_true(mesh.count == 2 && mesh.axis[0].size == 2 && mesh.axis[1].size == 4 && spec.axis[0][0] == 1 && spec.axis[1][0] == 0);
  again = tiled("{devices=[4,2]<=[2,4]T(1,0)}");
  assert_true(ax_sharding_equal(made, again));
  ax_sharding_release(made);
  ax_sharding_release(again);
  made = named("a=2", "a", 2, back);
  TEST_FAILS(ax_sharding_in_order(made, &mesh, &spec), AX_ABSENT, "no mesh whose places are the devices' ids");
  ax_sharding_release(made);
  made = named("a=2", "a", 2, far);
  TEST_FAILS(ax_sharding_in_order(made, &mesh, &spec), AX_ABSENT, "no mesh whose places are the devices' ids");
  expect_tiles(made, 1, "{devices=[2]2,3}");
  ax_sharding_release(made);
}

/* --- Sizes at the edge --- */

static void odd_shapes(void **state) {
  (void)state;
  int64_t start[AX_MAX_RANK], ones[AX_MAX_RANK], *starts = malloc(65536 * 2 * sizeof starts[0]),
                                                 *ids = malloc(65536 * sizeof ids[0]);
  ax_type block, whole = TEST_SCALAR(AX_S8);
  ax_sharding *single;
  TEST_OK(ax_sharding_single(7, &single));
  TEST_OK(ax_sharding_start(single, &whole, 7, start));
  TEST_OK(ax_sharding_block(single, &whole, &block));
  assert_int_equal(block.rank, 0);
  expect_tiles(single, 16, "{maximal device=7}");
  assert_true(ax_sharding_is_replicated(single));
  ax_sharding_release(single);

  for (int d = 0; d < AX_MAX_RANK; d++) ones[d] = 2;
  whole = ax_array_type(AX_F32, AX_LIST(AX_MAX_RANK, ones));
  ax_sharding *deep = named("a=2,b=2,c=2", "_,_,_,_,_,_,_,_,_,_,_,_,_,c,b,a", 0, NULL);
  TEST_OK(ax_sharding_start(deep, &whole, 1, start));
  assert_true(start[13] == 1 && start[14] == 0 && start[15] == 0);
  ax_sharding_release(deep);

  whole = TEST_TYPE(AX_F32, 0, 65536);
  for (int64_t i = 0; i < 65536; i++) ids[i] = 65535 - i;
  ax_sharding *many = named("d=65536", "_,d", 65536, ids), *order = tiled("{devices=[1,65536]<=[256,256]T(1,0)}");
  TEST_OK(ax_sharding_starts(many, &whole, starts));
  assert_true(starts[2 * 5] == 0 && starts[2 * 5 + 1] == 5 && ax_sharding_place(many, 5) == 65530);
  assert_false(ax_sharding_equal(many, order));
  assert_true(ax_sharding_equal(order, order));
  ax_sharding_release(many);
  ax_sharding_release(order);
  free(starts);
  free(ids);
}

static void refused(void **state) {
  (void)state;
  static const struct {
    const char *text, *says;
    ax_status status;
  } of[] = {
      {"", "{ is expected", AX_INVALID_ARGUMENT},
      {"{devices=[2,2]<=[5]}", "4 tiles of 5 devices", AX_INVALID_ARGUMENT},
      {"{devices=[2,2]0,1,2}", "4 tiles, but fewer devices", AX_INVALID_ARGUMENT},
      {"{devices=[2,2]0,1,2,2}", "device 2 is there twice", AX_INVALID_ARGUMENT},
      {"{devices=[2]0,7 }", "device 7 of 2", AX_INVALID_ARGUMENT},
      {"{devices=[2,0]<=[0]}", "a dimension of 0", AX_INVALID_ARGUMENT},
      {"{devices=[2,2]<=[2,2]T(1,1)}", "transposed twice", AX_INVALID_ARGUMENT},
      {"{devices=[2,2]<=[2,2]T(1,5)}", "transposed twice, or is none", AX_INVALID_ARGUMENT},
      {"{devices=[2,2]<=[2,2]T(1)}", ", is expected at \")}\"", AX_INVALID_ARGUMENT},
      {"{devices=[65536,65536]<=[4294967296]}", "more than 2^31 - 1 devices", AX_INVALID_ARGUMENT},
      {"{devices=[2]<=[2]} x", "the end is expected", AX_INVALID_ARGUMENT},
      {"{devices=[2]<=[2] last_tile_dims={manual}}", "not replicated", AX_ABSENT},
      {"{manual}", "manual shardings", AX_ABSENT},
      {"{{replicated}, {replicated}}", "tuples of shardings", AX_ABSENT},
      {"{devices=[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]<=[1]}", "more than 16 dimensions", AX_INVALID_ARGUMENT},
  };
  ax_sharding *made;
  for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
    TEST_FAILS(ax_sharding_tiled(of[i].text, NULL, &made), of[i].status, of[i].says);
  const ax_mesh mesh = mesh_of("d=4");
  const ax_sharding_options twice = {.devices = {AX_DIMS(1, 2, 3, 1)}}, few = {.device_count = 3};
  TEST_FAILS(ax_sharding_named(&mesh, "d", &twice, &made), AX_INVALID_ARGUMENT, "devices[0] and devices[3] are both 1");
  TEST_FAILS(ax_sharding_named(&mesh, "d", &few, &made), AX_INVALID_ARGUMENT, "3 devices for 4 places");
  TEST_FAILS(ax_sharding_named(&mesh, "e", NULL, &made), AX_INVALID_ARGUMENT, "sharding_named: ");
  TEST_FAILS(ax_sharding_named(&mesh, "d", &(ax_sharding_options){.memory_kind = "pinned_host"}, &made), AX_ABSENT,
             "one kind of memory");
  TEST_FAILS(ax_sharding_single(-1, &made), AX_INVALID_ARGUMENT, "devices[0] is -1");
  TEST_FAILS(ax_sharding_tiled("{maximal device=3}", &few, &made), AX_INVALID_ARGUMENT, "device 3 of 3");
  TEST_FAILS(ax_sharding_tiled("{devices=[4]<=[4]}", &few, &made), AX_INVALID_ARGUMENT, "3 devices for 4 places");
  made = tiled("{devices=[4]<=[4]}");
  ax_type block, whole = TEST_TYPE(AX_F32, 6), matrix = TEST_TYPE(AX_F32, 4, 4);
  char *text;
  int64_t start[2];
  TEST_FAILS(ax_sharding_block(made, &whole, &block), AX_INVALID_ARGUMENT, "cuts dimension 0 in 4 parts, which do not divide");
  TEST_FAILS(ax_sharding_block(made, &matrix, &block), AX_INVALID_ARGUMENT, "the tiles are of arrays of rank 1, not of f32[4,4]");
  TEST_FAILS(ax_sharding_tiles(made, 2, &text), AX_INVALID_ARGUMENT, "not of 2");
  whole.dims[0] = 8;
  TEST_FAILS(ax_sharding_start(made, &whole, 4, start), AX_INVALID_ARGUMENT, "device 4 is none of the sharding's 4");
  whole.form = AX_FUTURE;
  TEST_FAILS(ax_sharding_block(made, &whole, &block), AX_INVALID_ARGUMENT, "is no array");
  ax_sharding_release(made);
}

static ax_status make_some(void *context) {
  (void)context;
  ax_sharding *made = NULL;
  ax_mesh order;
  ax_spec spec;
  char *text = NULL;
  const ax_mesh mesh = mesh_of("a=2,b=2");
  ax_status status = ax_sharding_named(&mesh, "b,a", &(ax_sharding_options){.devices = {AX_DIMS(0, 2, 1, 3)}}, &made);
  if (status == AX_OK) status = ax_sharding_in_order(made, &order, &spec);
  if (status == AX_OK) status = ax_sharding_tiles(made, 2, &text);
  ax_string_free(text);
  ax_sharding_release(made);
  if (status == AX_OK) {
    status = ax_sharding_tiled("{devices=[2,2]3,1,0,2}", NULL, &made);
    ax_sharding_release(made);
  }
  return status;
}

static void without_memory(void **state) {
  (void)state;
  assert_true(test_each_allocation(make_some, NULL) > 8);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(texts_are_those_of_jax),
      cmocka_unit_test(texts_become_meshes),
      cmocka_unit_test(iotas_at_random),
      cmocka_unit_test(devices_have_blocks),
      cmocka_unit_test(pmaps),
      cmocka_unit_test(equal_whatever_they_are_called),
      cmocka_unit_test(in_order),
      cmocka_unit_test(odd_shapes),
      cmocka_unit_test(refused),
      cmocka_unit_test(without_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
