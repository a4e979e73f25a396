/* Arrays that are chosen between with and without updates: which programs become chosen updates, and that these give what was written,
   for windows inside, partly outside and far outside, in every mode. */
#include <stdio.h>
#include <string.h>

#include "axle/transform.h"
#include "ops/chosen_update.h"
#include "support/cmocka.h"
#include "support/host.h"
#include "support/oom.h"
#include "support/random.h"
#include "support/run.h"

/* Selections of arrays of as many elements as the program's first result has. */
static int choices_of_arrays(const ax_program *program) {
  int count = 0;
  for (uint32_t i = 0; i < program->eqn_count; i++) {
    const ax_eqn *eqn = &program->eqns[i];
    count += strcmp(eqn->prim->name, "select_n") == 0 &&
             ax_type_elems(&program->types[eqn->out]) == ax_type_elems(&program->types[program->outs[0]]);
  }
  return count;
}

static bool becomes_chosen(const ax_program *program) {
  ax_program *simple;
  TEST_OK(ax_program_simplify(program, &simple));
  const bool becomes = choices_of_arrays(simple) == 0;
  assert_true(choices_of_arrays(program) > 0);
  ax_program_release(simple);
  return becomes;
}

/* Compares every way on random numbers, with indices and starts in -3 .. 11. */
static void compare(ax_program *program, test_random *random) {
  ax_tensor *in[6];
  for (uint32_t k = 0; k < program->in_count; k++) {
    const ax_type type = program->types[k];
    const ax_dtype_kind kind = ax_dtype_get(type.dtype)->kind;
    const bool number = kind == AX_KIND_SIGNED || kind == AX_KIND_UNSIGNED;
    in[k] = type.dtype == AX_BOOL || !number ? test_edge_tensor(random, type)
                                             : test_random_tensor(random, type, kind == AX_KIND_SIGNED ? -3 : 0, 11);
  }
  TEST_EVERY_WAY(program, in, 0);
  test_release(in, program->in_count);
}

static void holds(const char *text, bool becomes, test_random *random) {
  ax_program *program = test_parsed(text);
  if (becomes_chosen(program) != becomes) fail_msg("%s: %s", becomes ? "stays as it is" : "is rewritten", text);
  for (int round = 0; round < 3; round++) compare(program, random);
  ax_program_release(program);
}

#define LISTS(window, inserted, to, batching, pairs)                                                                     \
  "update_window_dims=(" window ") inserted_window_dims=(" inserted ") scatter_dims_to_operand_dims=(" to                \
  ") operand_batching_dims=(" batching ") scatter_indices_batching_dims=(" pairs ")"

/* x [3, 8, 2, 5]; what chooses stretches to it from `which`, of `sizes`, along `along`. */
typedef struct scattered {
  const char *sizes, *along;
  const char *indices, *updates, *lists;
  bool by_index, by_element; /* whether these can be chosen, for any of the scatters, or for `scatter` alone */
} scattered;

static const scattered scatters[] = {
    /* a row for each of the batch */
    {"3", "0,", "3,1", "3,2,5", LISTS("1, 2", "1,", "1,", "0,", "0,"), true, true},
    /* two batching dimensions, paired the other way round */
    {"3,2", "0, 2", "2,3,1", "2,3,5", LISTS("2,", "1,", "1,", "0, 2", "1, 0"), true, true},
    {"2", "2,", "2,3,1", "2,3,5", LISTS("2,", "1,", "1,", "0, 2", "1, 0"), true, true},
    /* two windows for each of the batch, which may overlap */
    {"3,1", "0, 1", "3,2,1", "2,3,2,3", LISTS("0, 3", "1,", "1,", "0,", "0,"), true, true},
    /* one choice for all */
    {"", "", "1,2", "1,2,1", LISTS("1, 2", "0, 1", "0, 1", "", ""), true, true},
    /* along a dimension that windows have whole */
    {"2", "2,", "1,2", "1,2,1", LISTS("1, 2", "0, 1", "0, 1", "", ""), false, true},
    {"3,2", "0, 2", "2,1", "3,2,2", LISTS("0, 2", "1, 3", "1,", "", ""), false, true},
    {"3,2", "0, 2", "2,1", "2,2,2", LISTS("0, 2", "1, 3", "1,", "", ""), false, false}, /* 2 of 3 */
    {"3,2", "0, 2", "1,1", "3,1,2,2", LISTS("0, 2, 3", "1,", "1,", "", ""), false, true},
    /* along a dimension where indices pick */
    {"8", "1,", "3,1", "3,2,5", LISTS("1, 2", "1,", "1,", "0,", "0,"), false, false},
    {"3,8,2,5", "0, 1, 2, 3", "3,1", "3,2,5", LISTS("1, 2", "1,", "1,", "0,", "0,"), false, false},
};

static void check_scatter(const scattered *s, const char *prim, const char *mode, const char *index, const char *cases, test_random *random) {
  const bool fills = mode[0] == 'f' && index[0] == 's', puts = strcmp(prim, "scatter") == 0;
  char text[1500];
  snprintf(text, sizeof text,
           "{ lambda x:f32[3,8,2,5] p:bool[%s] i:%s[%s] u:f32[%s]. let "
           "q:bool[3,8,2,5] = broadcast_in_dim[shape=(3, 8, 2, 5) broadcast_dimensions=(%s)] p "
           "y:f32[3,8,2,5] = %s[%s mode=\"%s\" indices_are_sorted=false unique_indices=false] x i u "
           "z:f32[3,8,2,5] = select_n q %s in (z,) }",
           s->sizes, index, s->indices, s->updates, s->along, prim, s->lists, mode, cases);
  holds(text, (fills && s->by_index) || (puts && s->by_element), random);
}

static void of_scatters(void **state) {
  (void)state;
  static const char *const prims[] = {"scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max"},
                           *const modes[] = {"fill", "clip", "promise_in_bounds"};
  test_random random = {7};
  for (size_t k = 0; k < AX_COUNT(scatters); k++)
    for (size_t m = 0; m < AX_COUNT(modes); m++) {
      check_scatter(&scatters[k], "scatter", modes[m], k % 2 == 0 ? "s32" : "u8", "x y", &random);
      check_scatter(&scatters[k], prims[(k + m) % AX_COUNT(prims)], modes[m], "s64", k % 2 == 0 ? "y x" : "x y", &random);
    }
}

/* x [4, 9, 3]; slices of `part`. */
static void check_slice(const char *sizes, const char *along, const char *part, const char *start, bool becomes, test_random *random) {
  char text[900];
  snprintf(text, sizeof text,
           "{ lambda x:c64[4,9,3] p:bool[%s] u:c64[%s] i:%s[] j:%s[] k:%s[]. let "
           "q:bool[4,9,3] = broadcast_in_dim[shape=(4, 9, 3) broadcast_dimensions=(%s)] p "
           "y:c64[4,9,3] = dynamic_update_slice x u i j k z:c64[4,9,3] = select_n q x y in (z,) }",
           sizes, part, start, start, start, along);
  holds(text, becomes, random);
}

static void of_slices(void **state) {
  (void)state;
  test_random random = {8};
  check_slice("", "", "4,1,3", "s32", true, &random);
  check_slice("4", "0,", "4,2,3", "u8", true, &random);
  check_slice("4,1,3", "0, 1, 2", "4,2,3", "s64", true, &random);
  check_slice("3", "2,", "2,2,3", "s8", true, &random);
  check_slice("9", "1,", "4,2,3", "s32", false, &random);
  check_slice("4", "0,", "2,2,3", "s32", false, &random);
  check_slice("", "", "4,3,3", "s32", false, &random); /* a third of it */
}

/* Several updates in a row, a scalar that chooses, and what is not one array with updates. */
static void in_rows(void **state) {
  (void)state;
  test_random random = {9};
  const char *const put = "[update_window_dims=(0,) inserted_window_dims=() scatter_dims_to_operand_dims=(0,) operand_batching_dims=() "
                          "scatter_indices_batching_dims=() mode=\"fill\" indices_are_sorted=false unique_indices=false]";
  const char *const first = "{ lambda x:f16[20] p:bool[] i:s32[1] u:f16[2] j:s32[]. let a:f16[20] = dynamic_update_slice x u j ";
  static const struct {
    const char *last;
    bool becomes;
  } programs[] = {
      {"b:f16[20] = scatter%s a i u z:f16[20] = select_n p x b in (z,) }", true},
      {"b:f16[20] = scatter%s a i u z:f16[20] = select_n p b x in (z, b, a) }", true},
      {"b:f16[20] = scatter_add%s a i u c:f16[20] = scatter_mul%s b i u z:f16[20] = select_n p x c in (z,) }", false}, /* 6 of 20 */
      {"b:f16[20] = scatter%s x i u z:f16[20] = select_n p a b in (z,) }", false},
      {"b:f16[20] = neg a z:f16[20] = select_n p x b in (z,) }", false},
  };
  for (size_t k = 0; k < AX_COUNT(programs); k++) {
    char text[2000], last[1500];
    snprintf(last, sizeof last, programs[k].last, put, put);
    snprintf(text, sizeof text, "%s%s", first, last);
    holds(text, programs[k].becomes, &random);
  }
}

/* Of no elements nothing is gained, and some of them have no windows that could be read. */
static void of_nothing(void **state) {
  (void)state;
  test_random random = {10};
  holds("{ lambda x:f32[3,0] p:bool[3] i:s32[0,1] u:f32[3,0]. let q:bool[3,0] = broadcast_in_dim[shape=(3, 0) broadcast_dimensions=(0,)] p "
        "y:f32[3,0] = scatter[update_window_dims=(0,) inserted_window_dims=(1,) scatter_dims_to_operand_dims=(1,) operand_batching_dims=() "
        "scatter_indices_batching_dims=() mode=\"clip\" indices_are_sorted=false unique_indices=false] x i u z:f32[3,0] = select_n q x y in (z,) }",
        false, &random);
}

/* Each allocation of the rule may fail. */
static ax_status simplified(void *context) {
  ax_program *simple = NULL;
  const ax_status status = ax_program_simplify(context, &simple);
  ax_program_release(simple);
  return status;
}

static void without_memory(void **state) {
  (void)state;
  ax_program *program = test_parsed("{ lambda x:f32[40] p:bool[] u:f32[1] i:s32[] j:s32[1]. let y:f32[40] = dynamic_update_slice x u i "
                                    "v:f32[40] = scatter_add[update_window_dims=(0,) inserted_window_dims=() scatter_dims_to_operand_dims=(0,) "
                                    "operand_batching_dims=() scatter_indices_batching_dims=() mode=\"fill\" indices_are_sorted=false "
                                    "unique_indices=false] y j u z:f32[40] = select_n p x v in (z,) }");
  assert_true(test_each_allocation(simplified, program) > 10);
  ax_program_release(program);
}

/* The rule answers for one equation, and makes nothing when it is only asked. */
static void asks_only(void **state) {
  (void)state;
  ax_program *program = test_parsed("{ lambda x:f32[9] p:bool[] u:f32[1] i:s32[]. let y:f32[9] = dynamic_update_slice x u i "
                                    "z:f32[9] = select_n p x y in (z,) }");
  const ax_eqn *made_by[6] = {NULL, NULL, NULL, NULL, &program->eqns[0], &program->eqns[1]};
  assert_true(ax_choose_update(&(ax_rewrite_args){.eqn = &program->eqns[1], .types = program->types, .made_by = made_by}));
  made_by[4] = NULL;
  assert_false(ax_choose_update(&(ax_rewrite_args){.eqn = &program->eqns[1], .types = program->types, .made_by = made_by}));
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(of_scatters), cmocka_unit_test(of_slices), cmocka_unit_test(in_rows),
                                     cmocka_unit_test(of_nothing), cmocka_unit_test(without_memory),
                                     cmocka_unit_test(asks_only)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
