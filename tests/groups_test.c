/* Groups of members (axis_index_groups): along axes of a finer mesh, in any order, of any sizes; made at random, run every way
   there is and by reference evaluation, batched over the grouped axis, refused where they are no groups. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "axle/transform.h"
#include "partition/partition.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

enum { operations = 7 };

typedef struct chosen {
  int operation;
  bool started;
  char axes[512];
} chosen;

static ax_value apply(const chosen *c, ax_value x) {
  switch (c->operation) {
    case 0: return ax_psum(x, c->axes);
    case 1: return ax_pmax(x, c->axes);
    case 2: return ax_pmin(x, c->axes);
    case 3: return ax_pmean(x, c->axes);
    case 4: return ax_all_gather(x, c->axes, 1, true);
    case 5: return ax_psum_scatter(x, c->axes, 0, true);
    default: return ax_all_to_all(x, c->axes, 0, 1, true);
  }
}

static void body(const ax_value *in, ax_value *out, void *context) {
  const chosen *c = context;
  ax_value twice = ax_add(in[0], in[0]);
  out[0] = c->started ? ax_done(ax_start(apply(c, twice))) : apply(c, twice);
}

/* --- At random --- */

/* The names, then groups of `members`: in order or not, all of `size` (0: of any sizes). */
static void choose_groups(test_random *random, const char *names, uint32_t members, uint32_t size, bool shuffled, char *out) {
  uint32_t order[64];
  for (uint32_t i = 0; i < members; i++) order[i] = i;
  for (uint32_t i = members; i-- > 1 && shuffled;) {
    uint32_t other = (uint32_t)test_random_below(random, i + 1), kept = order[i];
    order[i] = order[other];
    order[other] = kept;
  }
  bool strided = !shuffled && size > 0 && test_random_below(random, 2) == 0;
  out += sprintf(out, "%s", names);
  for (uint32_t i = 0; i < members;) {
    uint32_t count = size > 0 ? size : 1 + (uint32_t)test_random_below(random, members - i);
    for (uint32_t k = 0; k < count; k++)
      out += sprintf(out, "%s%u", k == 0 ? " {" : ",", strided ? i / size + k * (members / size) : order[i + k]);
    out += sprintf(out, "}");
    i += count;
  }
}

static void one(uint64_t seed, bool show) {
  static const struct {
    const char *mesh, *names, *spec;
    uint32_t members, sizes[4]; /* of groups of one size */
  } meshes[] = {{"x=8", "x", "x", 8, {1, 2, 4, 8}},       {"x=6", "x", "x", 6, {1, 2, 3, 6}},
                {"a=2,b=4", "b", "a+b", 4, {1, 2, 2, 4}}, {"a=4,b=2", "a", "a+b", 4, {1, 2, 2, 4}},
                {"a=2,b=3", "a,b", "a+b", 6, {1, 2, 3, 6}}, {"a=2,b=2", "b,a", "a+b", 4, {1, 2, 2, 4}}};
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_BF16, AX_S32, AX_U8};
  test_random random = {seed};
  chosen c = {.operation = (int)test_random_below(&random, operations), .started = seed % 4 == 0};
  uint32_t m = (uint32_t)test_random_below(&random, AX_COUNT(meshes));
  bool uneven = c.operation < 4 && test_random_below(&random, 2) == 0;
  uint32_t size = uneven ? 0 : meshes[m].sizes[test_random_below(&random, 4)];
  choose_groups(&random, meshes[m].names, meshes[m].members, size, test_random_below(&random, 2) == 0, c.axes);
  ax_dtype dtype = dtypes[test_random_below(&random, c.operation == 3 ? 3 : AX_COUNT(dtypes))];
  char specs[32];
  snprintf(specs, sizeof specs, "%s -> %s", meshes[m].spec, meshes[m].spec);
  const test_map map = {meshes[m].mesh, {meshes[m].spec}, {meshes[m].spec}, body, test_random_below(&random, 3) == 0, &c};
  int64_t dims[] = {576, 1 + test_random_below(&random, 5)};
  ax_type type = ax_array_type(dtype, AX_LIST(2, dims));
  ax_program *program = test_trace_map(&map, &type);
  test_random_run(program, seed, show, dtype == AX_BF16 ? 0.02 : 1e-6);
  ax_program_release(program);
}

static void test_random_groups(void **state) {
  (void)state;
  test_each_seed(60, one);
}

/* --- Batched over the grouped axis: as a mesh's --- */

static void mapped(const ax_value *in, ax_value *out, void *context) {
  ax_vmap_options options = {.size = 8, .axis_name = "x"};
  ax_vmap(AX_CLOSURE(body, 1, 1, context), in, out, &options);
}
static void on_mesh_row(const ax_value *in, ax_value *out, void *context) {
  ax_value x = ax_reshape(in[0], AX_DIMS(8, 3));
  body(&x, out, context);
  out[0] = ax_expand_dims(out[0], 0);
}

static void test_batched(void **state) {
  (void)state;
  static const char *const groups[] = {"x {0,1} {2,3} {4,5} {6,7}", "x {4,1} {0,6} {3,2} {7,5}", "x {0,2,4} {1} {7,6,5,3}"};
  for (int operation = 0; operation < operations; operation++)
    for (size_t g = 0; g < AX_COUNT(groups); g++) {
      chosen c = {.operation = operation, .started = g > 0};
      if (g == 2 && operation > 3) continue;
      strcpy(c.axes, groups[g]);
      ax_type type = ax_array_type(AX_F64, AX_DIMS(8, 8, 3));
      const test_map map = {"x=8", {"x"}, {"x"}, on_mesh_row, false, &c};
      ax_program *meshed = test_trace_map(&map, &type), *batched = test_trace(mapped, &c, &type, 1, 1);
      test_random random = {g + 1};
      ax_tensor *in = test_random_tensor(&random, type, -1, 1), *a, *b;
      test_run(meshed, &in, &a);
      test_run(batched, &in, &b);
      test_assert_tensors_near(a, b, 1e-12, __FILE__, __LINE__);
      test_release(&in, 1);
      test_release(&a, 1);
      test_release(&b, 1);
      ax_program_release(meshed);
      ax_program_release(batched);
    }
}

/* --- What a group costs: regular ones are axes --- */

static bool prints(const ax_program *program, const char *part) {
  char *text;
  assert_int_equal(ax_program_print(program, &text), AX_OK);
  bool found = strstr(text, part) != NULL;
  ax_string_free(text);
  return found;
}

static void test_axes(void **state) {
  (void)state;
  static const struct {
    const char *groups, *prints, *not;
  } rows[] = {
      {"x {0,1} {2,3} {4,5} {6,7}", "psum[axes=(x_1,)]", "{0"},
      {"x {0,4} {1,5} {2,6} {3,7}", "psum[axes=(x_0,)]", "{0"},
      {"x {7,3} {6,2} {4,0} {5,1}", "psum[axes=(x_0,)]", "{0"}, /* a sum does not care how they are listed */
      {"x {0,2} {1,3} {4,6} {5,7}", "psum[axes=(x_1,)]", "{0"},
      {"x {0,1,4,5} {2,3,6,7}", "psum[axes=(x_0, x_2)]", "{0"},
      {"x {0} {1} {2} {3} {4} {5} {6} {7}", "add", "psum"},
      {"x {0,1,2,3,4,5,6,7}", "psum[axes=(x,)]", "x_"},
      {"x {0,3} {1,2} {4,5} {6,7}", "all_to_all[axes=(x,)", "psum"},
      {"x {0,1,2} {3,4,5,6,7}", "all_to_all[axes=(x,)", "psum"},
  };
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    chosen c = {0};
    strcpy(c.axes, rows[i].groups);
    ax_type type = ax_array_type(AX_F32, AX_DIMS(64));
    const test_map map = {"x=8", {"x"}, {"x"}, body, false, &c};
    ax_program *program = test_trace_map(&map, &type), *ungrouped;
    assert_int_equal(ax_program_ungroup(program, &ungrouped), AX_OK);
    if (!prints(ungrouped, rows[i].prints) || prints(ungrouped, rows[i].not)) {
      test_show_program(ungrouped);
      fail_msg("row %zu", i);
    }
    ax_program_release(program);
    ax_program_release(ungrouped);
  }
}

/* --- No groups --- */

static void test_errors(void **state) {
  (void)state;
  static const struct {
    int operation;
    const char *axes, *message;
  } rows[] = {
      {0, "x {0,1} {1,2,3}", "groups 0 and 1 overlap: both name member 1"},
      {0, "x {0,1,1} {2,3}", "group 0 names member 1 twice"},
      {0, "x {0,1} {2}", "the groups leave out member 3 of the 4 along the axes"},
      {0, "x {0,1} {2,3,4}", "group 1 names member 4, but the members along the axes are 0 to 3"},
      {0, "x {0,1} {2,-3}", "member -3 of a group: there is none"},
      {0, "x {0,1} {}", "expected the number of a member at \"}\""},
      {0, "x {0,1} {2,3", "expected , or } at \"\""},
      {0, "x {0,1} 2", "expected a group, as {0,1}, at \"2\""},
      {0, "x {0,1}, {2,3}", "expected a group, as {0,1}, at \", {2,3}\""},
      {4, "x,0", "axis names \"x,0\": 0 is a dimension, which psum, pmean, pmax and pmin of arrays alone take"},
      {4, "a_name_that_goes_on_and_on_and_on", "has more than 31 bytes"},
      {4, "x {0,1,2} {3}",
       "all_gather f32[64]{V:x}: group 0 has 3 members and group 1 has 1; here groups must be of one size, which the result's shape"},
      {5, "x {0} {1,2,3}", "psum_scatter f32[64]{V:x}: group 0 has 1 members and group 1 has 3"},
      {6, "x {0} {1,2,3}", "all_to_all f32[64]{V:x}: group 0 has 1 members"},
  };
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    chosen c = {.operation = rows[i].operation};
    strcpy(c.axes, rows[i].axes);
    ax_mesh mesh;
    ax_program *program;
    assert_int_equal(ax_mesh_parse("x=4", &mesh), AX_OK);
    ax_type type = ax_array_type(AX_F32, AX_DIMS(64));
    if (rows[i].operation == 6 || rows[i].operation == 4) type = ax_array_type(AX_F32, AX_DIMS(64, 4));
    type.spread.varying = 1;
    ax_status status = ax_trace_on(&mesh, AX_CLOSURE(body, 1, 1, &c), &type, &program);
    const char *message = rows[i].message;
    if (rows[i].operation >= 4 && strstr(message, "[64]") != NULL && type.rank == 2) message = strstr(message, "group 0");
    if (status != AX_INVALID_ARGUMENT || strstr(ax_message(), message) == NULL)
      fail_msg("row %zu: %s", i, status != AX_OK ? ax_message() : "none");
    assert_null(program);
  }
}

static ax_value grouped_index(ax_value x) { return (void)x, ax_axis_index("x {0,1} {2,3}"); }
static ax_value grouped_invariant(ax_value x) { return ax_all_gather_invariant(x, "x {0,1} {2,3}", 0, true); }
static ax_value grouped_shift(ax_value x) { return ax_ppermute(x, "x {0,1} {2,3}", AX_PAIRS({0, 1})); }
static ax_value uneven_size(ax_value x) { return ax_full_like(x, (double)ax_axis_size("x {0,1,2} {3}")); }
static ax_value even_size(ax_value x) { return ax_full_like(x, (double)ax_axis_size("x {0,1} {3,2}")); }
typedef ax_value (*function)(ax_value);
static void call(const ax_value *in, ax_value *out, void *context) { out[0] = (*(function *)context)(in[0]); }

static void test_refused(void **state) {
  (void)state;
  static const struct {
    function f;
    const char *message; /* NULL: none */
  } rows[] = {
      {grouped_index, "axis_index: it takes no groups"},
      {grouped_invariant, "all_gather_invariant f32[64]{V:x}: it takes no groups"},
      {grouped_shift, "ppermute f32[64]{V:x}: it takes no groups"},
      {uneven_size, "axis_size: the groups of \"x {0,1,2} {3}\" are of several sizes"},
      {even_size, NULL},
  };
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    ax_mesh mesh;
    ax_program *program;
    assert_int_equal(ax_mesh_parse("x=4", &mesh), AX_OK);
    ax_type type = ax_array_type(AX_F32, AX_DIMS(64));
    type.spread.varying = 1;
    function f = rows[i].f;
    ax_status status = ax_trace_on(&mesh, AX_CLOSURE(call, 1, 1, &f), &type, &program);
    if ((status == AX_OK) != (rows[i].message == NULL) || (status != AX_OK && strstr(ax_message(), rows[i].message) == NULL))
      fail_msg("row %zu: %s", i, status != AX_OK ? ax_message() : "none");
    ax_program_release(program);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_groups), cmocka_unit_test(test_batched), cmocka_unit_test(test_axes),
      cmocka_unit_test(test_errors),        cmocka_unit_test(test_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
