/* How values are typed to spread over axes: pairs of operands in every state, casts from every state to every other, and programs
   with reduced and unreduced values beside the same programs without, whose sums are made at once. */
#include <stdio.h>
#include <string.h>

#include "axle/transform.h"
#include "collectives/collective.h"
#include "support/cmocka.h"
#include "support/lanes.h"
#include "support/oom.h"
#include "support/run.h"

enum { UNMAPPED = AX_NOT_MAPPED };

static const char states[] = "IVRUXN"; /* X, N: unreduced by max, by min */

typedef void (*operation)(const ax_value *in, ax_value *out);
static void call_operation(const ax_value *in, ax_value *out, void *f) { (*(const operation *)f)(in, out); }

static ax_type typed(char state) {
  ax_type type = TEST_TYPE(AX_F32, 2, 2);
  if (state == 'V') type.spread.varying = 1;
  if (state == 'R') type.spread.reduced = 1;
  if (strchr("UXN", state) != NULL) type.spread.unreduced = 1;
  if (state == 'X') type.spread.kind = AX_UNREDUCED_MAX;
  if (state == 'N') type.spread.kind = AX_UNREDUCED_MIN;
  return type;
}

static char state_of(const ax_type *type) {
  const ax_spread *on = &type->spread;
  if (on->unreduced != 0) return states[3 + on->kind];
  return on->varying != 0 ? 'V' : on->reduced != 0 ? 'R' : 'I';
}

static ax_status trace(ax_fn f, const ax_type *types, ax_program **out) {
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=2", &mesh));
  return ax_trace_on(&mesh, f, types, out);
}

/* --- Pairs --- */

static void add(const ax_value *in, ax_value *out) { out[0] = ax_add(in[0], in[1]); }
static void sub(const ax_value *in, ax_value *out) { out[0] = ax_sub(in[0], in[1]); }
static void mul(const ax_value *in, ax_value *out) { out[0] = ax_mul(in[0], in[1]); }
static void divide(const ax_value *in, ax_value *out) { out[0] = ax_div(in[0], in[1]); }
static void dot(const ax_value *in, ax_value *out) { out[0] = ax_matmul(in[0], in[1]); }
static void larger(const ax_value *in, ax_value *out) { out[0] = ax_max(in[0], in[1]); }
static void smaller(const ax_value *in, ax_value *out) { out[0] = ax_min(in[0], in[1]); }
static void less(const ax_value *in, ax_value *out) { out[0] = ax_lt(in[0], in[1]); }
static void joined(const ax_value *in, ax_value *out) { out[0] = ax_concatenate(AX_LIST(2, in), 0); }
static void selected(const ax_value *in, ax_value *out) { out[0] = ax_select_n(ax_full(AX_BOOL, AX_DIMS(2, 2), 1), in[0], in[1]); }
static void updated(const ax_value *in, ax_value *out) {
  out[0] = ax_dynamic_update_slice(in[0], in[1], AX_VALUES(ax_full(AX_S32, AX_DIMS(), 0), ax_full(AX_S32, AX_DIMS(), 0)));
}
static void padded(const ax_value *in, ax_value *out) {
  out[0] = ax_pad(in[0], ax_reduce_sum(in[1], AX_ALL_DIMS, false), AX_DIMS(1, 0), AX_DIMS(0, 1), AX_DIMS(0, 0));
}

/* By the first's state, then the second's: the result's; '-': an error that names the axis. `states`: which the fourth is. */
static const struct {
  operation f;
  char unreduced;
  const char *results, *advice; /* of U with U, or with what is not */
} pairs[] = {
    {add, 'U', "IVR- VVV- RVR- ---U", "all operands must be unreduced, or none"},
    {sub, 'U', "IVR- VVV- RVR- ---U", "all operands must be unreduced, or none"},
    {joined, 'U', "IVR- VVV- RVR- ---U", "all operands must be unreduced, or none"},
    {joined, 'X', "IVR- VVV- RVR- ---X", "all operands must be unreduced, or none"},
    {padded, 'U', "IVR- VVV- RVR- ---U", "all operands must be unreduced, or none"},
    {selected, 'U', "IVR- VVV- RVR- ---U", "the cases must all be unreduced, or none"},
    {selected, 'N', "IVR- VVV- RVR- ---N", "the cases must all be unreduced, or none"},
    {updated, 'U', "IVR- VVV- RVR- ---U", "the first two operands must be unreduced, or none"},
    {mul, 'U', "IVRU VVV- RVRU U-U-", "one operand may be unreduced"},
    {dot, 'U', "IVRU VVV- RVRU U-U-", "one operand may be unreduced"},
    {mul, 'X', "IVR- VVV- RVR- ----", "mul of the parts is no part of what it is of the whole"},
    {divide, 'U', "IVR- VVV- RVR- U-U-", "the first operand may be unreduced"},
    {larger, 'X', "IVRX VVV- RVRX X-XX", NULL},
    {smaller, 'N', "IVRN VVV- RVRN N-NN", NULL},
    {larger, 'U', "IVR- VVV- RVR- ----",
     "max of the parts is no part of what it is of the whole; unreduced_psum makes it invariant"},
    {larger, 'N', "IVR- VVV- RVR- ----",
     "max of the parts is no part of what it is of the whole; unreduced_pmin makes it invariant"},
    {less, 'U', "IVR- VVV- RVR- ----", "lt of the parts is no part of what it is of the whole"},
};

static void all_pairs(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(pairs); i++)
    for (int a = 0; a < 4; a++)
      for (int b = 0; b < 4; b++) {
        const ax_type types[] = {typed(a < 3 ? states[a] : pairs[i].unreduced), typed(b < 3 ? states[b] : pairs[i].unreduced)};
        char wanted = pairs[i].results[5 * a + b];
        ax_program *program;
        ax_status status = trace(AX_CLOSURE(call_operation, 2, 1, (void *)&pairs[i].f), types, &program);
        char got = status == AX_OK ? state_of(ax_program_out_type(program, 0)) : '-';
        if (got != wanted)
          fail_msg("row %zu, %c with %c: %c, not %c: %s", i, state_of(&types[0]), state_of(&types[1]), got, wanted, ax_message());
        ax_program_release(program);
        if (got != '-') continue;
        assert_int_equal(status, AX_INVALID_ARGUMENT);
        assert_true(strstr(ax_message(), "along \"d\"") != NULL || strstr(ax_message(), "over {d}") != NULL);
        if (a == 1 || b == 1) continue; /* with what varies */
        if (pairs[i].advice != NULL && strstr(ax_message(), pairs[i].advice) == NULL) fail_msg("row %zu: %s", i, ax_message());
      }
}

static void of_two_kinds(const ax_value *in, ax_value *out) { out[0] = ax_max(in[0], in[1]); }
static void parts_to_integers(const ax_value *in, ax_value *out) { out[0] = ax_convert_element_type(in[0], AX_S32); }
static void parts_to_bf16(const ax_value *in, ax_value *out) { out[0] = ax_convert_element_type(in[0], AX_BF16); }
static void sine(const ax_value *in, ax_value *out) { out[0] = ax_sin(in[0]); }
static void cast_bool(const ax_value *in, ax_value *out) {
  out[0] = ax_vary_unreduced_cast(ax_lt(ax_pvary(in[0], "d"), ax_real(0)), "d", AX_UNREDUCED_SUM);
}

static void masked(const ax_value *in, ax_value *out) { out[0] = ax_where(ax_gt(in[1], ax_real(0)), in[0], ax_real(0)); }
static void above_zero(const ax_value *in, ax_value *out) {
  out[0] = ax_add(ax_integer(0), ax_pad(in[0], ax_real(0), AX_DIMS(1, 0), AX_DIMS(0, 0), AX_DIMS(0, 0)));
}
static void above_one(const ax_value *in, ax_value *out) { out[0] = ax_add(ax_integer(1), in[0]); }
static void running(const ax_value *in, ax_value *out) { out[0] = ax_cumsum(in[0], 0, true); }
static void over_groups(const ax_value *in, ax_value *out) { out[0] = ax_psum(in[0], "d {0} {1}"); }
static void cast_in_groups(const ax_value *in, ax_value *out) { out[0] = ax_preduced(in[0], "d {0} {1}"); }
static void pcast_in_groups(const ax_value *in, ax_value *out) { out[0] = ax_pcast(in[0], "d {0} {1}", "reduced"); }
static void pcast_of_token(const ax_value *in, ax_value *out) { (void)in, out[0] = ax_pcast(ax_create_token(), "d", "reduced"); }
static void carry_parts(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_vary_unreduced_cast(ax_pvary(in[0], "d"), "d", AX_UNREDUCED_SUM);
}
static void carries_become_parts(const ax_value *in, ax_value *out) { ax_scan(AX_FN(carry_parts, 1, 1), 1, 3, false, in, out); }
static void itself(const ax_value *in, ax_value *out, void *context) { (void)context, out[0] = in[0]; }
static void other(const ax_value *in, ax_value *out, void *context) { (void)context, out[0] = in[1]; }
static void either(const ax_value *in, ax_value *out) {
  ax_if(ax_full(AX_BOOL, AX_DIMS(), 1), AX_FN(itself, 2, 1), AX_FN(other, 2, 1), in, out);
}
static void by_own_index(const ax_value *in, ax_value *out) {
  ax_if(ax_gt(ax_axis_index("d"), ax_integer(0)), AX_FN(itself, 2, 1), AX_FN(other, 2, 1), in, out);
}

static void other_errors(void **state) {
  (void)state;
  static const struct {
    operation f;
    char a, b;
    const char *message; /* NULL: none */
  } rows[] = {
      {of_two_kinds, 'X', 'N', "the operands are unreduced by max and by min, over {d}; unreduced_pmin"},
      {parts_to_integers, 'U', 'I',
       "f32[2,2]{U:d} is unreduced, and its parts as s32 are no parts of the whole as s32; unreduced_psum"},
      {parts_to_bf16, 'U', 'I', NULL},
      {parts_to_bf16, 'X', 'I', NULL},
      {sine, 'U', 'I', "sin f32[2,2]{U:d}: operand 0 is unreduced by sum over {d}, and sin of the parts is no part"},
      {sine, 'R', 'I', NULL},
      {over_groups, 'U', 'I',
       "psum f32[2,2]{U:d}: the operand f32[2,2]{U:d} is unreduced over {d}, and its parts are combined over all members, not over groups"},
      {cast_in_groups, 'I', 'I', "preduced f32[2,2]: it takes no groups"},
      {pcast_in_groups, 'I', 'I', "pcast: it takes no groups"},
      {pcast_of_token, 'I', 'I', "pcast: operand 0 is token, which only precv takes"},
      {carries_become_parts, 'I', 'I',
       "carry 0 starts invariant along \"d\", but what the body makes of it is unreduced; vary_unreduced_cast makes its start so"},
      {either, 'I', 'R', NULL},
      {either, 'R', 'V', NULL},
      {either, 'U', 'U', NULL},
      {either, 'U', 'I', "if: otherwise: result 0 is invariant along \"d\", but unreduced in another branch; vary_unreduced_cast"},
      {either, 'V', 'X',
       "if: then: result 0 is varying along \"d\", but unreduced by max in another branch; vary_unreduced_cast makes it so, or unreduced_pmax"},
      {by_own_index, 'R', 'I', NULL},
      {by_own_index, 'U', 'U', "is f32[2,2]{U:d}, but the index varies over {d}; unreduced_psum makes it invariant"},
      {masked, 'U', 'I', NULL},
      {above_zero, 'U', 'I', NULL},
      {running, 'U', 'I', NULL},
      {above_one, 'U', 'I', "add f32[2,2]{R:d} f32[2,2]{U:d}: along \"d\" operand 0 is reduced and operand 1 is unreduced"},
      {cast_bool, 'I', 'I', "vary_unreduced_cast bool[2,2]{V:d}: needs a numeric dtype, got bool"},
  };
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    const ax_type types[] = {typed(rows[i].a), typed(rows[i].b)};
    ax_program *program;
    ax_status status = trace(AX_CLOSURE(call_operation, 2, 1, (void *)&rows[i].f), types, &program);
    if (rows[i].message != NULL) TEST_FAILS(status, AX_INVALID_ARGUMENT, rows[i].message);
    else TEST_OK(status);
    ax_program_release(program);
  }
}

/* --- Casts --- */

static const char *const names[] = {"invariant", "varying", "reduced", "unreduced", "unreduced_max", "unreduced_min"};
static void pcast(const ax_value *in, ax_value *out, void *to) { out[0] = ax_pcast(in[0], "d", to); }

static void all_pcasts(void **state) {
  (void)state;
  /* By the state there is, then the one to come to. */
  static const bool sound[6][6] = {{0, 1, 1, 0, 1, 1}, {0, 0, 0, 1, 1, 1}, {1, 1, 0, 0, 1, 1}, {0}, {0, 1}, {0, 1}};
  static const char *const advice[6][6] = {
      {"it is that already", NULL, NULL, "every device would add the same value", NULL, NULL},
      {"psum, pmax, pmin and all_gather_invariant", "it is that already", "all_gather_reduced makes reduced values", NULL, NULL,
       NULL},
      {NULL, NULL, "it is that already", "every device would add the same value", NULL, NULL},
      {"unreduced_psum", "unreduced_psum_scatter", "unreduced_psum", "it is that already", "unreduced_psum", "unreduced_psum"},
      {"unreduced_pmax", NULL, "unreduced_pmax", "unreduced_pmax", "it is that already", "unreduced_pmax"},
      {"unreduced_pmin", NULL, "unreduced_pmin", "unreduced_pmin", "unreduced_pmin", "it is that already"},
  };
  for (int from = 0; from < 6; from++)
    for (int to = 0; to < 6; to++) {
      const ax_type type = typed(states[from]);
      ax_program *program;
      ax_status status = trace(AX_CLOSURE(pcast, 1, 1, (void *)names[to]), &type, &program);
      if (sound[from][to]) {
        TEST_OK(status);
        assert_int_equal(state_of(ax_program_out_type(program, 0)), states[to]);
        ax_program_release(program);
      } else {
        TEST_FAILS(status, AX_INVALID_ARGUMENT, advice[from][to]);
        assert_non_null(strstr(ax_message(), "along \"d\""));
      }
    }
}

/* Each function that insists on a state, on each: what the result is, or '-'. */
static void psum(const ax_value *in, ax_value *out) { out[0] = ax_psum(in[0], "d"); }
static void pmax(const ax_value *in, ax_value *out) { out[0] = ax_pmax(in[0], "d"); }
static void pmin(const ax_value *in, ax_value *out) { out[0] = ax_pmin(in[0], "d"); }
static void psum_invariant(const ax_value *in, ax_value *out) { out[0] = ax_psum_invariant(in[0], "d"); }
static void unreduced_psum(const ax_value *in, ax_value *out) { out[0] = ax_unreduced_psum(in[0], "d"); }
static void unreduced_pmax(const ax_value *in, ax_value *out) { out[0] = ax_unreduced_pmax(in[0], "d"); }
static void unreduced_pmin(const ax_value *in, ax_value *out) { out[0] = ax_unreduced_pmin(in[0], "d"); }
static void unreduced_scatter(const ax_value *in, ax_value *out) { out[0] = ax_unreduced_psum_scatter(in[0], "d", 0, true); }
static void scatter(const ax_value *in, ax_value *out) { out[0] = ax_psum_scatter(in[0], "d", 0, true); }
static void gather(const ax_value *in, ax_value *out) { out[0] = ax_all_gather(in[0], "d", 0, true); }
static void gather_invariant(const ax_value *in, ax_value *out) { out[0] = ax_all_gather_invariant(in[0], "d", 0, true); }
static void gather_reduced(const ax_value *in, ax_value *out) { out[0] = ax_all_gather_reduced(in[0], "d", 0, true); }
static void all_to_all(const ax_value *in, ax_value *out) { out[0] = ax_all_to_all(in[0], "d", 0, 1, true); }
static void permute(const ax_value *in, ax_value *out) { out[0] = ax_ppermute(in[0], "d", 1, (const int64_t[][2]){{0, 1}}); }
static void preduced(const ax_value *in, ax_value *out) { out[0] = ax_preduced(in[0], "d"); }
static void pvary(const ax_value *in, ax_value *out) { out[0] = ax_pvary(in[0], "d"); }
static void reduced_vary(const ax_value *in, ax_value *out) { out[0] = ax_reduced_vary_cast(in[0], "d"); }
static void vary_unreduced(const ax_value *in, ax_value *out) { out[0] = ax_vary_unreduced_cast(in[0], "d", AX_UNREDUCED_SUM); }

static void states_of_collectives(void **state) {
  (void)state;
  static const struct {
    operation f;
    const char *results, *advice[6]; /* by the operand's state */
  } rows[] = {
      {psum, "II-I--", {[2] = "reduced_vary_cast makes it varying", [4] = "unreduced_pmax", [5] = "unreduced_pmin"}},
      {pmax, "II--I-", {[2] = "reduced_vary_cast makes it varying", [3] = "unreduced_psum", [5] = "unreduced_pmin"}},
      {pmin, "II---I", {[2] = "reduced_vary_cast makes it varying", [3] = "unreduced_psum", [4] = "unreduced_pmax"}},
      {psum_invariant,
       "II----",
       {[2] = "reduced_vary_cast", [3] = "unreduced_psum", [4] = "unreduced_pmax", [5] = "unreduced_pmin"}},
      {unreduced_psum,
       "---I--",
       {"vary_unreduced_cast", "vary_unreduced_cast", "vary_unreduced_cast", NULL, "unreduced_pmax", "unreduced_pmin"}},
      {unreduced_pmax,
       "----I-",
       {"vary_unreduced_cast", "vary_unreduced_cast", "vary_unreduced_cast", "unreduced_psum", NULL, "unreduced_pmin"}},
      {unreduced_pmin,
       "-----I",
       {"vary_unreduced_cast", "vary_unreduced_cast", "vary_unreduced_cast", "unreduced_psum", "unreduced_pmax"}},
      {scatter, "VV-V--", {[2] = "reduced_vary_cast", [4] = "unreduced_pmax", [5] = "unreduced_pmin"}},
      {unreduced_scatter,
       "---V--",
       {"vary_unreduced_cast", "vary_unreduced_cast", "vary_unreduced_cast", NULL, "unreduced_pmax", "unreduced_pmin"}},
      {gather,
       "VV----",
       {[2] = "reduced_vary_cast", [3] = "unreduced_psum_scatter", [4] = "unreduced_pmax", [5] = "unreduced_pmin"}},
      {gather_invariant,
       "II----",
       {[2] = "reduced_vary_cast", [3] = "unreduced_psum", [4] = "unreduced_pmax", [5] = "unreduced_pmin"}},
      {gather_reduced,
       "RR----",
       {[2] = "reduced_vary_cast", [3] = "unreduced_psum", [4] = "unreduced_pmax", [5] = "unreduced_pmin"}},
      {all_to_all, "VV----", {[2] = "reduced_vary_cast", [3] = "unreduced_psum", [4] = "unreduced_pmax", [5] = "unreduced_pmin"}},
      {permute, "VV----", {[2] = "reduced_vary_cast", [3] = "unreduced_psum", [4] = "unreduced_pmax", [5] = "unreduced_pmin"}},
      {pvary,
       "V-----",
       {[1] = "varies over {d} already",
        [2] = "reduced_vary_cast",
        [3] = "unreduced_psum",
        [4] = "unreduced_pmax",
        [5] = "unreduced_pmin"}},
      {preduced,
       "R-----",
       {[1] = "psum", [2] = "reduced_vary_cast", [3] = "unreduced_psum", [4] = "unreduced_pmax", [5] = "unreduced_pmin"}},
      {reduced_vary, "--V---", {"preduced", "all_gather_reduced", NULL, "unreduced_psum", "unreduced_pmax", "unreduced_pmin"}},
      {vary_unreduced, "-U----", {"pvary", NULL, "reduced_vary_cast", "unreduced_psum", "by max over {d}", "by min over {d}"}},
  };
  for (size_t i = 0; i < AX_COUNT(rows); i++)
    for (int s = 0; s < 6; s++) {
      const ax_type type = typed(states[s]);
      ax_program *program;
      ax_status status = trace(AX_CLOSURE(call_operation, 1, 1, (void *)&rows[i].f), &type, &program);
      char got = status == AX_OK ? state_of(ax_program_out_type(program, 0)) : '-';
      if (got != rows[i].results[s]) fail_msg("row %zu of %c: %c: %s", i, states[s], got, ax_message());
      ax_program_release(program);
      if (got != '-') continue;
      assert_int_equal(status, AX_INVALID_ARGUMENT);
      if (rows[i].advice[s] == NULL || strstr(ax_message(), rows[i].advice[s]) == NULL)
        fail_msg("row %zu of %c: %s", i, states[s], ax_message());
      assert_true(strstr(ax_message(), "along \"d\"") != NULL || strstr(ax_message(), "over {d}") != NULL);
    }
}

/* Over several axes: all in one state, or told apart. */
static void psum_both(const ax_value *in, ax_value *out, void *context) { (void)context, out[0] = ax_psum(in[0], "a,b"); }
static void cast_both(const ax_value *in, ax_value *out, void *context) {
  (void)context, out[0] = ax_pcast(in[0], "b,a", "unreduced");
}

static void several_axes(void **state) {
  (void)state;
  ax_mesh mesh;
  ax_program *program;
  TEST_OK(ax_mesh_parse("a=2,b=2", &mesh));
  ax_type mixed = {.dtype = AX_F32, .spread = {.varying = 1, .unreduced = 2}},
          varying = {.dtype = AX_F32, .spread = {.varying = 3}};
  TEST_FAILS(ax_trace_on(&mesh, AX_FN(psum_both, 1, 1), &mixed, &program), AX_INVALID_ARGUMENT,
             "the operand f32[]{V:a U:b} is varying along \"a\" and unreduced along \"b\"");
  TEST_FAILS(ax_trace_on(&mesh, AX_FN(cast_both, 1, 1), &mixed, &program), AX_INVALID_ARGUMENT,
             "pcast: the operand f32[]{V:a U:b} is varying along");
  TEST_OK(ax_trace_on(&mesh, AX_FN(cast_both, 1, 1), &varying, &program));
  assert_string_equal(ax_type_string(ax_program_out_type(program, 0), &mesh), "f32[]{U:a,b}");
  ax_program_release(program);
}

/* --- Programs with and without --- */

/* What a body is written with: casts and sums where they are wanted, or every sum made at once and values made to vary. */
static ax_value begin_sum(bool with, ax_value x) {
  return with ? ax_vary_unreduced_cast(x, "d", AX_UNREDUCED_SUM) : ax_psum(x, "d");
}
static ax_value end_sum(bool with, ax_value x) { return with ? ax_unreduced_psum(x, "d") : x; }
static ax_value shared(bool with, ax_value x) { return with ? ax_preduced(x, "d") : x; }
static ax_value total(ax_value x) { return ax_reduce_sum(x, AX_ALL_DIMS, false); }

/* x: f32[4,4], each device's block; w: f32[4], the same on all. A scalar, the same on all. */
typedef ax_value (*loss)(bool with, ax_value x, ax_value w);

static ax_value products(bool with, ax_value x, ax_value w) {
  ax_value r = shared(with, w), u = begin_sum(with, ax_square(ax_mul(x, r)));
  return total(ax_sin(end_sum(with, u)));
}

/* Every operation that is linear, on parts. */
static ax_value linear_ones(bool with, ax_value x, ax_value w) {
  ax_value r = ax_exp(shared(with, w)), u = begin_sum(with, ax_mul(x, x)), zero = ax_full(AX_S32, AX_DIMS(), 0),
           one = ax_full(AX_S32, AX_DIMS(), 1);
  ax_value twice = ax_mul(u, r), over = ax_div(u, r);
  u = ax_sub(ax_add(twice, ax_neg(u)), over);
  u = ax_reshape(ax_transpose(u, AX_DIMS(1, 0)), AX_DIMS(2, 8));
  u = ax_concatenate(AX_VALUES(u, ax_slice(u, AX_DIMS(0, 1), AX_DIMS(2, 8), AX_DIMS(1, 2))), 1);
  u = ax_dynamic_update_slice(u, ax_dynamic_slice(u, AX_VALUES(zero, one), AX_DIMS(2, 3)), AX_VALUES(zero, one));
  u = ax_select_n(ax_gt(ax_iota(AX_F64, AX_DIMS(2, 12), 1), total(r)), u, ax_mul(u, ax_real(2)));
  u = ax_reduce_sum(ax_pad(u, total(u), AX_DIMS(1, -1), AX_DIMS(0, 2), AX_DIMS(0, 1)), AX_DIMS(1), false);
  u = ax_mul(ax_matmul(ax_broadcast_to(r, AX_DIMS(2, 4)), ax_broadcast_to(u, AX_DIMS(4, 3))), ax_real(0.01));
  return total(ax_cos(end_sum(with, u)));
}

static ax_value gathered(bool with, ax_value x, ax_value w) {
  ax_value row = ax_reduce_sum(x, AX_DIMS(1), false);
  ax_value all = with ? ax_all_gather_reduced(row, "d", 0, true) : ax_all_gather(row, "d", 0, true);
  ax_value y = ax_tanh(ax_mul(ax_reshape(all, AX_DIMS(4, 4)), w));
  return end_sum(with, begin_sum(with, total(ax_mul(y, x))));
}

static ax_value scattered(bool with, ax_value x, ax_value w) {
  ax_value y = ax_mul(ax_square(x), w);
  y = with ? ax_unreduced_psum_scatter(begin_sum(true, y), "d", 0, true) : ax_psum_scatter(y, "d", 0, true);
  return ax_psum(total(ax_sin(y)), "d");
}

static ax_value started(bool with, ax_value x, ax_value w) {
  ax_value future =
      with ? ax_start(ax_unreduced_psum(begin_sum(true, ax_mul(x, shared(true, w))), "d")) : ax_start(ax_psum(ax_mul(x, w), "d"));
  return total(ax_square(ax_done(future)));
}

typedef struct around {
  bool with;
  ax_value x, w;
} around;

static void add_up(const ax_value *in, ax_value *out, void *context) {
  const around *a = context;
  out[0] = ax_add(in[0], begin_sum(a->with, ax_mul(in[2], in[1])));
  out[1] = ax_mul(in[1], shared(a->with, a->w)); /* invariant at the start */
}
static ax_value scanned(bool with, ax_value x, ax_value w) {
  around a = {with, x, w};
  ax_value zero = ax_full(AX_F64, AX_DIMS(4), 0), out[2];
  ax_scan(AX_CLOSURE(add_up, 3, 2, &a), 2, -1, false,
          AX_VALUES(with ? ax_pcast(ax_pvary(zero, "d"), "d", "unreduced") : zero, ax_sin(w), x), out);
  return ax_add(total(ax_square(end_sum(with, out[0]))), total(with ? ax_pcast(out[1], "d", "invariant") : out[1]));
}

static void same_shared(const ax_value *in, ax_value *out, void *context) {
  const around *a = context;
  out[0] = ax_sin(shared(a->with, in[0]));
  out[1] = begin_sum(a->with, ax_mul(a->x, in[0]));
}
static void same_alone(const ax_value *in, ax_value *out, void *context) {
  const around *a = context;
  out[0] = ax_square(in[0]);
  out[1] = begin_sum(a->with, ax_cos(a->x));
}
static void shared_by_index(const ax_value *in, ax_value *out, void *context) { (void)context, out[0] = ax_mul(in[0], in[1]); }
static void other_by_index(const ax_value *in, ax_value *out, void *context) { (void)context, out[0] = ax_neg(in[0]); }
static ax_value branched(bool with, ax_value x, ax_value w) {
  around a = {with, x, w};
  ax_value out[2], own[1];
  ax_if(ax_gt(total(w), ax_real(0)), AX_CLOSURE(same_shared, 1, 2, &a), AX_CLOSURE(same_alone, 1, 2, &a), &w, out);
  ax_if(ax_gt(total(x), ax_real(0)), AX_FN(shared_by_index, 2, 1), AX_FN(other_by_index, 2, 1), AX_VALUES(out[0], w), own);
  return ax_add(ax_psum(total(own[0]), "d"), total(ax_sin(end_sum(with, out[1]))));
}

static void call(const ax_value *in, ax_value *out, void *with) { out[0] = ax_mul(begin_sum(*(bool *)with, in[0]), in[1]); }
static ax_value called(bool with, ax_value x, ax_value w) {
  ax_value r = shared(with, w), u;
  ax_closed_call(AX_CLOSURE(call, 2, 1, &with), AX_VALUES(x, r), &u);
  return total(ax_sin(end_sum(with, u)));
}

static ax_value extremes(bool with, ax_value x, ax_value w) {
  ax_value r = shared(with, w), y = ax_sin(ax_mul(x, r)), top, bottom;
  if (with) {
    ax_value u = ax_max(ax_pcast(x, "d", "unreduced_max"), ax_pcast(y, "d", "unreduced_max"));
    top = ax_unreduced_pmax(ax_reduce_max(ax_max(u, r), AX_DIMS(0), false), "d");
    bottom = ax_unreduced_pmin(ax_reshape(ax_pcast(ax_mul(x, y), "d", "unreduced_min"), AX_DIMS(16)), "d");
  } else {
    top = ax_pmax(ax_reduce_max(ax_max(ax_max(x, y), r), AX_DIMS(0), false), "d");
    bottom = ax_pmin(ax_reshape(ax_mul(x, y), AX_DIMS(16)), "d");
  }
  return ax_add(total(ax_square(top)), total(ax_exp(bottom)));
}

/* A shard_map inside, over other axes: what is unreduced and reduced around it is so in it too, and residuals leave it. */
static void nested_body(const ax_value *in, ax_value *out, void *with) {
  ax_value r = *(bool *)with ? ax_preduced(in[2], "e") : in[2];
  ax_value u = ax_mul(ax_mul(in[0], ax_sin(in[1])), ax_exp(r));
  out[0] = ax_psum(u, "e");
}
static ax_value nested(bool with, ax_value x, ax_value w) {
  ax_mesh mesh;
  ax_value out;
  TEST_OK(ax_mesh_parse("e=2", &mesh));
  ax_value u = begin_sum(with, ax_square(x)), r = shared(with, w);
  ax_shard_map(&mesh, "e; _; _ -> ", AX_CLOSURE(nested_body, 3, 1, &with), AX_VALUES(u, r, w), &out);
  return total(ax_cos(end_sum(with, out)));
}

/* The gradient of each device's own loss by shared parameters is the parts of a sum. */
static void own_loss(const ax_value *in, ax_value *out, void *x) { out[0] = total(ax_tanh(ax_mul(*(ax_value *)x, in[0]))); }
static ax_value gradients_inside(bool with, ax_value x, ax_value w) {
  ax_value r = with ? ax_preduced(w, "d") : ax_pvary(w, "d"), slope;
  ax_grad(AX_CLOSURE(own_loss, 1, 1, &x), AX_FIRST(1), &r, &slope);
  return total(ax_square(with ? ax_unreduced_psum(slope, "d") : ax_psum(slope, "d")));
}

/* A loss that is itself reduced, and Jacobians by and of what is reduced and unreduced. */
static void reduced_loss(const ax_value *in, ax_value *out, void *context) { (void)context, out[0] = total(ax_sin(in[0])); }
static void spread_out(const ax_value *in, ax_value *out, void *context) { (void)context, out[0] = ax_mul(in[0], in[1]); }
static ax_value jacobians(bool with, ax_value x, ax_value w) {
  ax_value r = shared(with, w), u = begin_sum(with, ax_reduce_sum(x, AX_DIMS(0), false)), slope, rows[2], columns[2], in[] = {r, u};
  ax_grad(AX_FN(reduced_loss, 1, 1), AX_FIRST(1), &r, &slope); /* parts */
  ax_jacrev(AX_FN(spread_out, 2, 1), AX_FIRST(2), in, rows);
  ax_jacfwd(AX_FN(spread_out, 2, 1), AX_FIRST(2), in, columns);
  ax_value sums = ax_add(total(ax_sin(end_sum(with, slope))), total(ax_square(end_sum(with, columns[0]))));
  return with ? ax_add(sums, ax_add(total(ax_square(ax_unreduced_psum(rows[0], "d"))),
                                    total(ax_square(ax_pcast(rows[1], "d", "invariant")))))
              : ax_add(sums, ax_add(total(ax_square(rows[0])), total(ax_square(rows[1]))));
}

static const struct {
  const char *name;
  loss f;
  bool unchecked; /* makes sense there too; those that do come first */
} losses[] = {{"products", products, true},   {"linear_ones", linear_ones, true}, {"gathered", gathered, true},
              {"scattered", scattered, true}, {"started", started, true},         {"scanned", scanned, true},
              {"branched", branched, true},   {"called", called, true},           {"extremes", extremes, true},
              {"nested", nested, false},
              {"gradients_inside", gradients_inside, false}, {"jacobians", jacobians, false}};

typedef struct trial {
  loss f;
  bool with, unchecked;
} trial;

static void on_device(const ax_value *in, ax_value *out, void *context) {
  const trial *t = context;
  out[0] = t->f(t->with, in[0], in[1]);
}
static void on_mesh(const ax_value *in, ax_value *out, void *context) {
  const trial *t = context;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=4", &mesh));
  if (t->unchecked) ax_shard_map_unchecked(&mesh, "d; -> ", AX_CLOSURE(on_device, 2, 1, context), in, out);
  else ax_shard_map(&mesh, "d; -> ", AX_CLOSURE(on_device, 2, 1, context), in, out);
}

static void steepness(const ax_value *in, ax_value *out, void *context) {
  ax_value slopes[2];
  ax_grad(AX_CLOSURE(on_mesh, 2, 1, context), AX_FIRST(2), in, slopes);
  out[0] = ax_add(total(ax_square(slopes[0])), total(ax_sin(slopes[1])));
}

/* x, w -> the loss, its gradient, its tangent and that of the gradient, the losses for several w, and a gradient of its
   gradient. */
enum { result_count = 10 };
static void everything(const ax_value *in, ax_value *out, void *context) {
  ax_fn f = AX_CLOSURE(on_mesh, 2, 1, context);
  ax_value again, pushed;
  ax_value_and_grad(f, AX_FIRST(2), in, out);
  ax_jvp(f, AX_FIRST(2), in, in, &again, &out[3]);
  ax_hvp(f, AX_FIRST(2), in, in, NULL, &out[4]);
  ax_linear linear = ax_linearize(f, AX_FIRST(2), in, &again);
  ax_pushforward(linear, in, &pushed);
  out[6] = pushed;
  ax_value many = ax_mul(ax_reshape(ax_add(ax_iota(AX_F64, AX_DIMS(3), 0), ax_real(-1)), AX_DIMS(3, 1)), in[1]);
  ax_vmap(f, AX_VALUES(in[0], many), &out[7], &(ax_vmap_options){.in_axes = {AX_DIMS(UNMAPPED, 0)}});
  ax_grad(AX_CLOSURE(steepness, 2, 1, context), AX_FIRST(2), in, &out[8]);
}

static void with_and_without(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F64, 16, 4), TEST_TYPE(AX_F64, 4)};
  test_random random = {.state = 8};
  ax_tensor *in[] = {test_random_tensor(&random, types[0], -1, 1), test_random_tensor(&random, types[1], 0.1, 1)};
  for (size_t i = 0; i < AX_COUNT(losses); i++) {
    ax_tensor *results[3][result_count];
    uint32_t ways = losses[i].unchecked ? 3 : 2;
    for (uint32_t way = 0; way < ways; way++) {
      trial t = {.f = losses[i].f, .with = way > 0, .unchecked = way == 2};
      ax_program *program;
      ax_status status = ax_trace(AX_CLOSURE(everything, 2, result_count, &t), types, &program);
      if (status != AX_OK) fail_msg("%s, way %u: %s", losses[i].name, way, ax_message());
      TEST_OK(ax_program_verify(program));
      TEST_OK(test_try(program, in, results[way]));
      ax_tensor *reference[result_count];
      TEST_OK(ax_evaluate(program, in, reference));
      for (uint32_t k = 0; k < result_count; k++) TEST_TENSORS_NEAR(results[way][k], reference[k], 1e-12);
      test_release(reference, result_count);
      for (uint32_t k = 0; k < result_count; k++)
        for (int64_t e = 0; e < test_elems(results[0][k]); e++)
          if (!test_near(test_get(results[0][k], e), test_get(results[way][k], e), 1e-9))
            fail_msg("%s, way %u, result %u[%lld]: %g, not %g", losses[i].name, way, k, (long long)e, test_get(results[way][k], e),
                     test_get(results[0][k], e));
      ax_program_release(program);
    }
    for (uint32_t way = 0; way < ways; way++) test_release(results[way], result_count);
  }
  test_release(in, 2);
}

/* Carries of a while: one comes to be reduced, one adds parts up. */
static void not_done(const ax_value *in, ax_value *out, void *context) { (void)context, out[0] = ax_lt(in[0], ax_integer(3)); }
static void once_more(const ax_value *in, ax_value *out, void *context) {
  const around *a = context;
  out[0] = ax_add(in[0], ax_integer(1));
  out[1] = ax_sin(ax_mul(in[1], shared(a->with, a->w)));
  out[2] = ax_add(ax_mul(in[2], in[1]), begin_sum(a->with, a->x));
}
static ax_value looped(bool with, ax_value x, ax_value w) {
  around a = {with, x, w};
  ax_value out[3];
  ax_while(AX_FN(not_done, 3, 1), AX_CLOSURE(once_more, 3, 3, &a), AX_VALUES(ax_full(AX_S32, AX_DIMS(), 0), w, begin_sum(with, x)),
           out);
  return total(ax_sin(end_sum(with, out[2])));
}
static void forward_alone(const ax_value *in, ax_value *out, void *context) {
  ax_jvp(AX_CLOSURE(on_mesh, 2, 1, context), AX_FIRST(2), in, in, &out[0], &out[1]);
}

static void loops_forward(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F64, 16, 4), TEST_TYPE(AX_F64, 4)};
  test_random random = {.state = 10};
  ax_tensor *in[] = {test_random_tensor(&random, types[0], -1, 1), test_random_tensor(&random, types[1], 0.1, 1)}, *got[2][2];
  for (int way = 0; way < 2; way++) {
    trial t = {.f = looped, .with = way > 0};
    ax_program *program;
    TEST_OK(ax_trace(AX_CLOSURE(forward_alone, 2, 2, &t), types, &program));
    TEST_EVERY_WAY(program, in, 1e-12);
    TEST_OK(test_try(program, in, got[way]));
    ax_program_release(program);
  }
  for (int k = 0; k < 2; k++) TEST_TENSORS_NEAR(got[1][k], got[0][k], 1e-9);
  test_release(got[0], 2), test_release(got[1], 2), test_release(in, 2);
}

static ax_status with_casts(void *context) {
  const ax_type types[] = {TEST_TYPE(AX_F64, 16, 4), TEST_TYPE(AX_F64, 4)};
  trial t = {.f = *(const loss *)context, .with = true};
  ax_program *program;
  ax_status status = ax_trace(AX_CLOSURE(steepness, 2, 1, &t), types, &program);
  ax_program_release(program);
  return status;
}

static void without_memory(void **state) {
  (void)state;
  static const loss some[] = {products, branched, scanned, nested};
  for (size_t i = 0; i < AX_COUNT(some); i++) assert_true(test_each_allocation(with_casts, (void *)&some[i]) > 10);
}

/* The axis itself is mapped: casts over it go, sums are over the mapped dimension. It is unchecked there, so that only losses that
   make sense on such axes are the same. */
static void mapped(const ax_value *in, ax_value *out, void *context) {
  ax_value x = ax_reshape(in[0], AX_DIMS(4, 4, 4));
  ax_vmap(AX_CLOSURE(on_device, 2, 1, context), AX_VALUES(x, in[1]), out,
          &(ax_vmap_options){.in_axes = {AX_DIMS(0, UNMAPPED)}, .out_axes = {AX_DIMS(UNMAPPED)}, .axis_name = "d"});
}

static void over_the_axis(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F64, 16, 4), TEST_TYPE(AX_F64, 4)};
  test_random random = {.state = 9};
  ax_tensor *in[] = {test_random_tensor(&random, types[0], -1, 1), test_random_tensor(&random, types[1], 0.1, 1)};
  for (size_t i = 0; i < AX_COUNT(losses) && losses[i].unchecked; i++) {
    ax_tensor *got[2];
    for (int way = 0; way < 2; way++) {
      trial t = {.f = losses[i].f, .with = true};
      ax_program *program;
      ax_status status = ax_trace(AX_CLOSURE(way == 0 ? on_mesh : mapped, 2, 1, &t), types, &program);
      if (status != AX_OK) fail_msg("%s, way %d: %s", losses[i].name, way, ax_message());
      TEST_OK(ax_evaluate(program, in, &got[way]));
      ax_program_release(program);
    }
    if (!test_near(test_get(got[0], 0), test_get(got[1], 0), 1e-9))
      fail_msg("%s: %g mapped, %g on a mesh", losses[i].name, test_get(got[1], 0), test_get(got[0], 0));
    test_release(got, 2);
  }
  test_release(in, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_pairs),     cmocka_unit_test(other_errors),
                                     cmocka_unit_test(all_pcasts),    cmocka_unit_test(states_of_collectives),
                                     cmocka_unit_test(several_axes),  cmocka_unit_test(with_and_without),
                                     cmocka_unit_test(over_the_axis), cmocka_unit_test(loops_forward),
                                     cmocka_unit_test(without_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
