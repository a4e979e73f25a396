/* pshift: offsets of every size against their definition, over devices and over a named axis of vmap; pshuffle, pswapaxes and
   pbroadcast_dynamic likewise; and what is refused. */
#include <math.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "axle/transform.h"
#include "support/cmocka.h"
#include "support/run.h"
#include "support/tensor.h"

enum { members = 5 };
static const int64_t offsets[] = {0, 1, -1, 4, -4, 5, -5, 6, -13, INT64_MAX, INT64_MIN};
enum { count = sizeof offsets / sizeof offsets[0] };

/* Of each offset: in a ring, and not. */
static void shifts(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  for (int i = 0; i < count; i++) {
    out[2 * i] = ax_pshift(in[0], "d", offsets[i], true);
    out[2 * i + 1] = ax_pshift(in[0], "d", offsets[i], false);
  }
}

static void over_devices(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=5", &mesh));
  ax_shard_map(&mesh, "d -> d", AX_FN(shifts, 1, 2 * count), in, out);
}

static void over_a_batch(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_vmap(AX_FN(shifts, 1, 2 * count), in, out, &(ax_vmap_options){.axis_name = "d"});
}

static double wanted(int64_t offset, bool wrap, int64_t member) {
  int64_t reduced = offset % members;
  if (wrap) return (double)((member - reduced + 2 * members) % members + 1);
  if (offset <= -members || offset >= members) return 0;
  return member - offset >= 0 && member - offset < members ? (double)(member - offset + 1) : 0;
}

static void check(ax_function function) {
  const ax_type type = TEST_TYPE(AX_S32, members);
  ax_program *program = test_trace(function, NULL, &type, 1, 2 * count);
  ax_tensor *in = test_tensor(type, (double[]){1, 2, 3, 4, 5}), *out[2 * count];
  test_run(program, &in, out);
  for (int i = 0; i < 2 * count; i++)
    for (int64_t m = 0; m < members; m++)
      if (test_get(out[i], m) != wanted(offsets[i / 2], i % 2 == 0, m))
        fail_msg("by %lld%s: member %lld has %g", (long long)offsets[i / 2], i % 2 == 0 ? ", wrapped" : "", (long long)m,
                 test_get(out[i], m));
  TEST_EVERY_WAY(program, &in, 0);
  test_release(&in, 1);
  test_release(out, 2 * count);
  ax_program_release(program);
}

static void offsets_of_all_sizes(void **state) {
  (void)state;
  check(over_devices);
  check(over_a_batch);
}

/* --- pshuffle, and a dimension that changes places with the members --- */

static const int64_t order[members] = {3, 0, 4, 2, 1};

static void shuffled(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_pshuffle(in[0], "d", AX_LIST(members, order));
  out[1] = ax_pswapaxes(in[0], "d", -1);
}

static void shuffled_devices(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=5", &mesh));
  ax_shard_map(&mesh, "d -> d", AX_FN(shuffled, 1, 2), in, out);
}

static void shuffled_batch(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_vmap(AX_FN(shuffled, 1, 2), in, out, &(ax_vmap_options){.axis_name = "d"});
}

static void members_in_another_order(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_S32, members, members);
  double data[members * members];
  for (int i = 0; i < members * members; i++) data[i] = i;
  const ax_function ways[] = {shuffled_devices, shuffled_batch};
  for (int w = 0; w < 2; w++) {
    ax_program *program = test_trace(ways[w], NULL, &type, 1, 2);
    ax_tensor *in = test_tensor(type, data), *out[2];
    test_run(program, &in, out);
    for (int64_t m = 0; m < members; m++)
      for (int64_t i = 0; i < members; i++) {
        TEST_NEAR(test_get(out[0], m * members + i), data[order[m] * members + i], 0);
        TEST_NEAR(test_get(out[1], m * members + i), data[i * members + m], 0);
      }
    TEST_EVERY_WAY(program, &in, 0);
    test_release(&in, 1);
    test_release(out, 2);
    ax_program_release(program);
  }
}

/* --- From a member that the program finds --- */

/* x, the source -> x of that member; where that is 3; whether it is no NaN. */
static void found(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_pbroadcast_dynamic(in[0], "d", in[1]);
  out[1] = ax_pbroadcast_dynamic(ax_eq(in[0], ax_integer(3)), "d", in[1]);
  out[2] = ax_pbroadcast_dynamic(in[0], "d", ax_integer(3));
}
static void found_on_devices(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=5", &mesh));
  ax_shard_map(&mesh, "d; -> d", AX_FN(found, 2, 3), in, out);
}
static void found_in_a_batch(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_vmap(AX_FN(found, 2, 3), in, out, &(ax_vmap_options){.axis_name = "d", .in_axes = {AX_DIMS(0, AX_NOT_MAPPED)}});
}

static void a_source_that_is_found(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, members), TEST_SCALAR(AX_S32)};
  const ax_function ways[] = {found_on_devices, found_in_a_batch};
  const double x[members] = {NAN, 2, INFINITY, 3, -5};
  for (int w = 0; w < 2; w++) {
    ax_program *program = test_trace(ways[w], NULL, types, 2, 3);
    for (int source = -1; source <= members; source++) {
      ax_tensor *in[] = {test_tensor(types[0], x), test_tensor(types[1], (double[]){source})}, *out[3];
      double wanted = source < 0 || source == members ? 0 : x[source];
      test_run(program, in, out);
      for (int64_t m = 0; m < members; m++) {
        TEST_NEAR(test_get(out[0], m), wanted, 0);
        TEST_NEAR(test_get(out[1], m), wanted == 3, 0);
        TEST_NEAR(test_get(out[2], m), 3, 0);
      }
      test_release(in, 2);
      test_release(out, 3);
    }
    ax_program_release(program);
  }
}

static void from_any(const ax_value *in, ax_value *out, void *axes) { out[0] = ax_pbroadcast_dynamic(in[0], axes, in[1]); }

static void no_source(void **state) {
  (void)state;
  ax_mesh mesh;
  ax_program *program;
  ax_type types[] = {TEST_TYPE(AX_F32, members), TEST_SCALAR(AX_S64)};
  TEST_OK(ax_mesh_parse("d=5", &mesh));
  types[0].spread.varying = 1;
  TEST_FAILS(ax_trace_on(&mesh, AX_CLOSURE(from_any, 2, 1, "d"), types, &program), AX_INVALID_ARGUMENT,
             "pbroadcast_dynamic: the source is s64[]; it must be s32[]");
  types[1] = TEST_TYPE(AX_S32, 1);
  TEST_FAILS(ax_trace_on(&mesh, AX_CLOSURE(from_any, 2, 1, "d"), types, &program), AX_INVALID_ARGUMENT, "the source is s32[1]");
  TEST_FAILS(ax_trace_on(&mesh, AX_CLOSURE(from_any, 2, 1, "e"), types, &program), AX_INVALID_ARGUMENT, "axis \"e\" is not bound");
}

static void unknown(const ax_value *in, ax_value *out, void *context) { out[0] = ax_pshift(in[0], context, 1, true); }

static void future(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_pshift(ax_start(ax_pshift(in[0], "d", 1, true)), "d", 1, true);
}

typedef struct shuffle {
  const char *axes;
  uint32_t count;
  const int64_t *perm;
  const char *message;
} shuffle;
static void shuffle_by(const ax_value *in, ax_value *out, void *context) {
  const shuffle *s = context;
  out[0] = ax_pshuffle(in[0], s->axes, AX_LIST(s->count, s->perm));
}
static void swap(const ax_value *in, ax_value *out, void *context) {
  const shuffle *s = context;
  out[0] = ax_pswapaxes(in[0], s->axes, s->count);
}

static void no_permutations(void **state) {
  (void)state;
  static const int64_t twice[] = {3, 0, 4, 3, 1}, outside[] = {0, 1, 5, 2, 3}, negative[] = {0, 1, 2, 3, -1};
  static const shuffle bad[] = {
      {"d", 5, twice, "pshuffle: perm[0] and perm[3] are both 3: it is no permutation"},
      {"d", 5, outside, "pshuffle: perm[2] is 5: the group's members are 0 to 4"},
      {"d", 5, negative, "pshuffle: perm[4] is -1: the group's members are 0 to 4"},
      {"d", 4, order, "pshuffle: perm has 4 numbers; the group along \"d\" has 5 members"},
      {"d", 5, NULL, "pshuffle: perm has 0 numbers"},
      {"e", 5, order, "pshuffle: axis \"e\" is not bound; bound are d (5)"},
      {"d {0,1,2,3,4}", 5, order, "pshuffle: it takes no groups"},
  };
  static const shuffle swaps[] = {
      {"d", 2, NULL, "pswapaxes: dimension is 2, but there are 2 dimensions"},
      {"d", 1, NULL, "pswapaxes: dimension 1 of s32[5,4]{V:d} has 4 elements; the group along \"d\" has 5 members"},
      {"e", 0, NULL, "pswapaxes: axis \"e\" is not bound"},
  };
  ax_mesh mesh;
  ax_program *program;
  ax_type type = TEST_TYPE(AX_S32, members, 4);
  TEST_OK(ax_mesh_parse("d=5", &mesh));
  type.spread.varying = 1;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    TEST_FAILS(ax_trace_on(&mesh, AX_CLOSURE(shuffle_by, 1, 1, (void *)&bad[i]), &type, &program), AX_INVALID_ARGUMENT,
               bad[i].message);
  for (size_t i = 0; i < sizeof swaps / sizeof swaps[0]; i++)
    TEST_FAILS(ax_trace_on(&mesh, AX_CLOSURE(swap, 1, 1, (void *)&swaps[i]), &type, &program), AX_INVALID_ARGUMENT,
               swaps[i].message);
}

static void refused(void **state) {
  (void)state;
  ax_mesh mesh;
  ax_program *program;
  const ax_type type = TEST_TYPE(AX_S32, members);
  TEST_OK(ax_mesh_parse("d=5", &mesh));
  TEST_FAILS(ax_trace_on(&mesh, AX_CLOSURE(unknown, 1, 1, "e"), &type, &program), AX_INVALID_ARGUMENT,
             "pshift: axis \"e\" is not bound; bound are d (");
  TEST_FAILS(ax_trace_on(&mesh, AX_CLOSURE(unknown, 1, 1, "d,d"), &type, &program), AX_INVALID_ARGUMENT, "pshift: ");
  TEST_FAILS(ax_trace_on(&mesh, AX_FN(unknown, 1, 1), &type, &program), AX_INVALID_ARGUMENT, "pshift: ");
  TEST_FAILS(ax_trace_on(&mesh, AX_FN(future, 1, 1), &type, &program), AX_INVALID_ARGUMENT, "pshift: operand 0 is future<s32[5]");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(offsets_of_all_sizes),
                                     cmocka_unit_test(members_in_another_order),
                                     cmocka_unit_test(no_permutations),
                                     cmocka_unit_test(a_source_that_is_found),
                                     cmocka_unit_test(no_source),
                                     cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
