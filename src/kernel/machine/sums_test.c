/* Parts of additions: what is found in one pass over the code of random bodies is what their definition says, looked up backwards from
   each store. And which cores are alike, where that can be said by hand. */
#include "axle/axle.h"
#include "kernel/machine/alike.h"
#include "kernel/machine/code.h"
#include "kernel/step.h"
#include "prim/prims.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/tensor.h"
#include "xform/evaluate.h"

enum { bodies = 300, most_values = 64 };

/* --- Random bodies: loads, sums and stores in lines, loops and branches --- */

typedef struct maker {
  test_random random;
  const ax_value *refs;
  ax_value values[most_values];
  uint32_t count, depth, budget;
} maker;

static uint32_t below(maker *m, uint32_t count) { return (uint32_t)test_random_below(&m->random, count); }
static ax_value any(maker *m) { return m->values[below(m, m->count)]; }
static ax_value latest(maker *m) { return m->values[m->count - 1 - below(m, m->count < 4 ? m->count : 4)]; }
static void keep(maker *m, ax_value value) {
  if (m->count < most_values) m->values[m->count++] = value;
}

static void act(maker *m);

static AX_BODY(some) {
  maker *m = context;
  const uint32_t kept = m->count;
  m->depth++;
  for (uint32_t k = 1 + below(m, 4); k > 0; k--) act(m);
  m->depth--;
  m->count = kept; /* these values end with the body */
}
static AX_BODY(none) {}

static void act(maker *m) {
  const ax_value ref = m->refs[1 + below(m, 2)];
  const uint32_t way = below(m, 16);
  if (m->budget == 0) return;
  m->budget--;
  if (way < 4) keep(m, ax_ref_load(ref));
  else if (way < 6)
    keep(m, ax_add(latest(m), latest(m)));
  else if (way == 6)
    keep(m, ax_max(latest(m), latest(m)));
  else if (way == 7) keep(m, ax_sub(latest(m), any(m)));
  else if (way == 8) keep(m, ax_mul(any(m), any(m)));
  else if (way < 12) ax_ref_store(ref, latest(m));
  else if (way == 12) ax_ref_store(ref, ax_add(ax_ref_load(ref), any(m)));
  else if (way == 13) ax_ref_add(ref, any(m));
  else if (m->depth < 2 && way == 14)
    ax_fori_loop(ax_integer(0), ax_integer(2), AX_CLOSURE(some, 1, 0, m), AX_LIST(0, NULL), AX_LIST(0, NULL));
  else if (m->depth < 2) ax_if(ax_gt(any(m), ax_real(0)), AX_CLOSURE(some, 0, 0, m), AX_FN(none, 0, 0), NULL, NULL);
}

static AX_BODY(body) {
  maker m = {.random = {*(const uint64_t *)context}, .refs = in, .budget = 40};
  for (uint32_t r = 1; r < 3; r++) ax_ref_store(in[r], ax_real(1));
  keep(&m, ax_ref_load(in[0]));
  while (m.budget > 0) act(&m);
}

static AX_BODY(call) {
  const ax_core_mesh one = {.core = "core"};
  const ax_scratch scratch = {.type = ax_ref_type(AX_SPACE_VMEM, AX_F32, AX_DIMS())};
  const ax_kernel_options options = {.scratch = {AX_SCRATCH(scratch)}};
  ax_mpmd_map(AX_LIST(1, &one), &AX_CLOSURE(body, 3, 0, context), &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32)), out);
}

/* --- By the definition --- */

static bool ends_line(const ax_core_code_step *s) {
  return s->kind == AX_STEP_JUMP || s->kind == AX_STEP_SWITCH || s->kind == AX_STEP_TEST || s->kind == AX_STEP_NEXT ||
         s->kind == AX_STEP_ADVANCE || s->kind == AX_STEP_MOVE;
}

static bool is_entered(const ax_core_code *code, uint32_t at) {
  for (uint32_t s = 0; s < code->step_count; s++) {
    const ax_core_code_step *step = &code->steps[s];
    for (uint32_t t = 0; step->kind == AX_STEP_SWITCH && t < step->target_count; t++)
      if (step->targets[t] == at) return true;
    if (step->kind != AX_STEP_SWITCH && step->kind != AX_STEP_MOVE && ends_line(step) && step->target == at) return true;
  }
  return false;
}

static uint32_t uses(const ax_core_code *code, uint32_t slot) {
  uint32_t count = 0;
  for (uint32_t s = 0; s < code->step_count; s++)
    for (uint32_t i = 0; i < code->steps[s].in_count; i++) count += code->steps[s].in[i] == slot;
  return count;
}

static uint32_t maker_of(const ax_core_code *code, uint32_t slot, uint32_t s) {
  while (!is_entered(code, s) && s-- > 0) {
    if (ends_line(&code->steps[s])) return AX_NONE;
    for (uint32_t k = 0; k < code->steps[s].out_count; k++)
      if (code->steps[s].out[k] == slot) return s;
  }
  return AX_NONE;
}

static const ax_step_access *access_of(const ax_core_code_step *step) {
  return step->kind == AX_STEP_ACT ? ax_step_access_of(step->eqn) : NULL;
}

/* The load that a store is a sum with; AX_NONE: none. *value: the other term. */
static uint32_t load_of(const ax_core_code *code, uint32_t s, uint32_t *value) {
  const uint32_t sum = code->steps[s].in[access_of(&code->steps[s])->value], made = maker_of(code, sum, s);
  if (made == AX_NONE || uses(code, sum) != 1 || code->steps[made].kind != AX_STEP_EVAL) return AX_NONE;
  const ax_core_code_step *step = &code->steps[made];
  const bool adds = step->eqn->prim == &ax_prim_add || step->eqn->prim == &ax_prim_max;
  for (uint32_t i = 0; i < 2 && (adds || (i == 0 && step->eqn->prim == &ax_prim_sub)); i++) {
    const uint32_t load = maker_of(code, step->in[i], made);
    const ax_step_access *access = load != AX_NONE ? access_of(&code->steps[load]) : NULL;
    *value = step->in[1 - i];
    if (access != NULL && access->reads && !access->writes && uses(code, step->in[i]) == 1) return load;
  }
  return AX_NONE;
}

typedef struct met {
  uint32_t stores, sums;
} met;

static ax_status compare(const ax_eval_args *args, void *context) {
  met *m = context;
  ax_machine *machine;
  TEST_OK(ax_machine_of(args, NULL, &machine));
  const ax_core_code *code = machine->codes[0];
  bool *is_load = ax_calloc(code->step_count + 1, sizeof is_load[0]);
  for (uint32_t s = 0; s < code->step_count; s++) {
    const ax_core_code_step *step = &code->steps[s];
    const ax_step_access *access = access_of(step);
    if (access == NULL || !access->writes || access->combine != NULL) continue;
    uint32_t value = AX_NONE;
    const uint32_t load = load_of(code, s, &value);
    m->stores++;
    m->sums += load != AX_NONE;
    assert_int_equal(step->sum.part, load != AX_NONE);
    if (load == AX_NONE) continue;
    assert_int_equal(step->sum.load, load);
    assert_int_equal(step->sum.value, value);
    is_load[load] = true;
  }
  for (uint32_t s = 0; s < code->step_count; s++) {
    const ax_step_access *access = access_of(&code->steps[s]);
    if (access != NULL && !access->writes) assert_int_equal(code->steps[s].sum.part, is_load[s]);
    if (access != NULL && access->combine != NULL) assert_true(code->steps[s].sum.part);
  }
  ax_free(is_load);
  ax_machine_release(machine);
  return AX_OK;
}

/* Runs a program of one input; its kernel is handed over. */
static void at_kernel(ax_fn fn, const ax_type *type, ax_status (*kernel)(const ax_eval_args *, void *), void *context) {
  ax_program *program;
  ax_tensor *in, *out = NULL;
  const ax_hooks hooks = {.kernel = kernel, .kernel_context = context};
  TEST_OK(ax_trace(fn, type, &program));
  TEST_OK(ax_tensor_create(type, &in));
  TEST_OK(ax_evaluate_on(&hooks, program, &in, &out));
  ax_tensor_release(in);
  ax_tensor_release(out);
  ax_program_release(program);
}

static void test_sums(void **state) {
  (void)state;
  met m = {0};
  const ax_type type = AX_TYPE(AX_F32);
  for (uint64_t seed = 1; seed <= bodies; seed++) at_kernel(AX_CLOSURE(call, 1, 1, &seed), &type, compare, &m);
  assert_true(m.sums > bodies && m.stores > 3 * m.sums / 2); /* ax_core_code_find_sums finds some, and not all stores are some */
}

/* --- Cores that are alike --- */

enum { cores = 12 };

static ax_value me(void) { return ax_axis_index("core"); }
static AX_BODY(store_first) { ax_ref_store(((const ax_value *)context)[1], ax_real(1)); }

/* The index is a value that is stored to where it says; what is stored is one of three; the first core stores more. */
static AX_BODY(of_thirds) { ax_ref_store(in[1], ax_convert_element_type(ax_rem(me(), ax_integer(3)), AX_F32)); }
static AX_BODY(of_first) {
  ax_if(ax_eq(me(), ax_integer(0)), AX_CLOSURE(store_first, 0, 0, in), AX_FN(none, 0, 0), NULL, NULL);
}
static AX_BODY(of_none) { ax_ref_store(in[1], ax_convert_element_type(me(), AX_F32)); }
static AX_BODY(of_all) { ax_ref_store(in[1], ax_ref_load(in[0])); }

static AX_BODY(call_cores) {
  const ax_core_mesh mesh = {.core = "core", .mesh = {.count = 1, .axis = {{.name = "core", .size = cores}}}, .threads = "core"};
  const ax_function *function = context;
  ax_mpmd_map(AX_LIST(1, &mesh), &AX_FN(*function, 2, 0), NULL, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32)), out);
}

static ax_status compare_cores(const ax_eval_args *args, void *context) {
  const uint32_t *first = context;
  ax_machine *machine;
  ax_alike alike;
  TEST_OK(ax_machine_of(args, NULL, &machine));
  TEST_OK(ax_alike_find(machine, &alike));
  assert_int_equal(machine->core_count, cores);
  uint32_t of[cores] = {0}; /* by core: those that it is the first of */
  for (uint32_t c = 0; c < cores; c++) of[first[c]]++;
  for (uint32_t c = 0; c < cores; c++) {
    assert_int_equal(alike.first[c], first[c]);
    assert_int_equal(alike.several[c], of[first[c]] > 1);
  }
  ax_alike_deinit(&alike);
  ax_machine_release(machine);
  return AX_OK;
}

static void test_alike(void **state) {
  (void)state;
  const ax_function bodies_of[] = {of_thirds, of_first, of_none, of_all};
  const ax_type type = AX_TYPE(AX_F32);
  for (uint32_t k = 0; k < AX_COUNT(bodies_of); k++) {
    uint32_t first[cores];
    for (uint32_t c = 0; c < cores; c++) first[c] = k == 0 ? c % 3 : k == 1 ? c > 0 : k == 2 ? c : 0;
    at_kernel(AX_CLOSURE(call_cores, 1, 1, &bodies_of[k]), &type, compare_cores, first);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_sums), cmocka_unit_test(test_alike)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
