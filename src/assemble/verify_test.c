/* Each invariant of instruction lists broken once, in a list that has one of everything: the verifier says which. */
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "assemble/assembly.h"
#include "support/cmocka.h"
#include "support/run.h"

enum { N = 16 };

static void first(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_tanh(in[0]);
}

static void second(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_neg(in[0]);
}

/* A product, a sum over the devices that is waited for, and a choice. */
static void step(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value product = ax_matmul(in[0], in[0]);
  ax_value x = ax_add(product, ax_mul(ax_tanh(ax_matmul(product, in[0])), ax_pvary(ax_psum(product, "d"), "d")));
  ax_switch(ax_axis_index("d"), AX_FNS(AX_FN(first, 1, 1), AX_FN(second, 1, 1)), &x, &out[0]);
}

static void until(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_lt(in[0], ax_full(AX_F32, AX_DIMS(), 3));
}

static void twice(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[0], in[0]);
}

static void device(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_scan(AX_FN(step, 1, 1), 1, 3, false, in, out);
  ax_value sum = ax_reduce_max(ax_psum(out[0], "d"), AX_DIMS(0, 1), false), end;
  ax_while(AX_FN(until, 1, 1), AX_FN(twice, 1, 1), &sum, &end);
  out[0] = ax_add(out[0], ax_pvary(ax_broadcast_in_dim(end, AX_DIMS(N, N), NULL), "d"));
}

/* --- The list --- */

static void init(ax_assembly *a, ax_compiled *own, const ax_executable *executable) {
  const ax_compiled *compiled = test_compiled(executable);
  *own = (ax_compiled){.plan = compiled->plan, .devices = compiled->devices};
  *a = (ax_assembly){.compiled = own, .plan = own->plan};
}

/* Up to a stage; each is found to be as it should. */
static void assemble(ax_assembly *a, ax_instrs_property stage) {
  static ax_status (*const passes[])(ax_assembly *) = {ax_instrs_flatten, ax_instrs_synchronise, ax_instrs_memory, ax_instrs_events,
                                                       ax_instrs_exchanges};
  for (uint32_t i = 0, has = 0; (has & stage) == 0; i++) { /* each makes the next property */
    has = 2 * has + 1;
    TEST_OK(passes[i](a));
    TEST_OK(ax_instrs_verify(a, has));
  }
}

static void deinit(ax_assembly *a, ax_compiled *own) {
  if (a->instr_capacity > 0) ax_free(a->instrs);
  ax_free(a->ops), ax_free(a->regions), ax_free(a->accesses), ax_free(a->events), ax_free(a->aliased_allocations);
  ax_arena_deinit(&a->scratch);
  ax_free(own->constants);
}

/* --- Looking for what is to be broken --- */

static ax_instr *need(ax_assembly *a, ax_instr_kind kind) {
  for (uint32_t i = 0; i < a->instr_count; i++)
    if (a->instrs[i].kind == kind) return &a->instrs[i];
  fail_msg("no instruction %d", (int)kind);
  return NULL;
}

static ax_instr *parking_wait(ax_assembly *a) {
  for (uint32_t i = 0; i < a->instr_count; i++)
    if (a->instrs[i].kind == AX_INSTR_WAIT && a->instrs[i].sync.parks) return &a->instrs[i];
  fail_msg("nobody waits");
  return NULL;
}

/* A wait in the region it counts. */
static ax_instr *wait_within(ax_assembly *a) {
  for (uint32_t i = 0; i < a->instr_count; i++)
    if (a->instrs[i].kind == AX_INSTR_WAIT && a->instrs[i].sync.region == 0 && a->instrs[i].sync.delta == 0) return &a->instrs[i];
  fail_msg("nobody waits");
  return NULL;
}

/* --- Breaking it --- */

static void no_end(ax_assembly *a) { need(a, AX_INSTR_END)->kind = AX_INSTR_SIGNAL; }
static void early_end(ax_assembly *a) { need(a, AX_INSTR_KERNEL)->kind = AX_INSTR_END; }
static void loop_past_next(ax_assembly *a) { need(a, AX_INSTR_LOOP)->target = need(a, AX_INSTR_LOOP)->target + 2; }
static void next_from_outside(ax_assembly *a) { need(a, AX_INSTR_NEXT)->target = 0; }
static void next_past_the_entry(ax_assembly *a) { need(a, AX_INSTR_NEXT)->target += 2; }
static void test_into_the_body(ax_assembly *a) { need(a, AX_INSTR_TEST)->target--; }
static void case_of_another(ax_assembly *a) {
  need(a, AX_INSTR_BRANCH)->branch.targets[1] = need(a, AX_INSTR_BRANCH)->branch.targets[0];
}
static void jump_back(ax_assembly *a) { need(a, AX_INSTR_JUMP)->target = 1; }
static void entered_twice(ax_assembly *a) { need(a, AX_INSTR_JUMP)->kind = AX_INSTR_ENTER; }
static void other_region(ax_assembly *a) { need(a, AX_INSTR_ENTER)->region++; }
static void other_loop(ax_assembly *a) { need(a, AX_INSTR_NEXT)->loop++; }
static void no_such_loop(ax_assembly *a) { need(a, AX_INSTR_LOOP)->loop = a->plan->loop_count; }
static void axes_of_no_mesh(ax_assembly *a) { need(a, AX_INSTR_WAIT)->skip |= 1u << 5; }
static void no_such_event(ax_assembly *a) { need(a, AX_INSTR_WAIT)->sync.event = a->event_count; }
static void signalled_twice(ax_assembly *a) {
  for (uint32_t i = 0; i < a->access_count; i++)
    if (a->accesses[i].exchange != NULL) need(a, AX_INSTR_SIGNAL)->sync.event = a->accesses[i].event;
}
static void never_signalled(ax_assembly *a) {
  uint32_t event = need(a, AX_INSTR_SIGNAL)->sync.event;
  *need(a, AX_INSTR_SIGNAL) = *parking_wait(a);
  parking_wait(a)->sync.event = event;
}
static void counts_another_region(ax_assembly *a) { parking_wait(a)->sync.region++; }
static void last_time(ax_assembly *a) { wait_within(a)->sync.delta = -1; }
static void space_of_none(ax_assembly *a) { need(a, AX_INSTR_GEMM)->refs[0].space = a->compiled->space_count; }
static void beyond_its_space(ax_assembly *a) { need(a, AX_INSTR_GEMM)->refs[2].offset += 1 << 20; }
static void in_two_places(ax_assembly *a) {
  ax_instr *gemm = need(a, AX_INSTR_GEMM);
  ax_part_space *space = &a->compiled->spaces[gemm->refs[2].space];
  space->bytes += N * N * 4;
  gemm->refs[2].offset = space->bytes - N * N * 4;
}
static void found_elsewhere(ax_assembly *a) { need(a, AX_INSTR_GEMM)->refs[0].first++; }
static void one_operand_less(ax_assembly *a) { need(a, AX_INSTR_GEMM)->ref_count--; }
static void no_such_counter(ax_assembly *a) { a->compiled->events[0].first = a->compiled->counter_count; }
static void table_of_another(ax_assembly *a) {
  uint32_t *table = ax_arena_alloc(&a->plan->arena, a->compiled->devices * sizeof table[0]);
  table[1] = 1u << 20;
  need(a, AX_INSTR_WAIT)->sync.counter = table;
}
static void push_of_none(ax_assembly *a) { need(a, AX_INSTR_PUSH)->push = NULL; }
static void lost_member(ax_assembly *a) { need(a, AX_INSTR_PUSH)->push->place[1] = a->compiled->devices; }

typedef struct row {
  ax_instrs_property stage;
  void (*break_it)(ax_assembly *a);
  const char *message;
} row;

static const row rows[] = {
    {AX_INSTRS_FLAT, no_end, "the list has no end"},
    {AX_INSTRS_FLAT, early_end, "ends"},
    {AX_INSTRS_FLAT, loop_past_next, "out of its place"},
    {AX_INSTRS_FLAT, next_from_outside, "out of its place"},
    {AX_INSTRS_FLAT, next_past_the_entry, "out of its place"},
    {AX_INSTRS_FLAT, test_into_the_body, "out of its place"},
    {AX_INSTRS_FLAT, case_of_another, "out of its place"},
    {AX_INSTRS_FLAT, jump_back, "out of its place"},
    {AX_INSTRS_FLAT, entered_twice, "enters region"},
    {AX_INSTRS_FLAT, other_region, "enters region 2, which begins at"},
    {AX_INSTRS_FLAT, other_loop, "loop 0 ends as loop 1"},
    {AX_INSTRS_FLAT, no_such_loop, "loop 2 of 2"},
    {AX_INSTRS_SYNCHRONISED, axes_of_no_mesh, "skipped along axes that the mesh has not"},
    {AX_INSTRS_SYNCHRONISED, no_such_event, "awaits event"},
    {AX_INSTRS_SYNCHRONISED, signalled_twice, "is signalled at"},
    {AX_INSTRS_SYNCHRONISED, never_signalled, "which nobody signals"},
    {AX_INSTRS_SYNCHRONISED, counts_another_region, "counts region"},
    {AX_INSTRS_SYNCHRONISED, last_time, "with delta -1"},
    {AX_INSTRS_SYNCHRONISED, no_such_loop, "loop 2 of 2"},
    {AX_INSTRS_SYNCHRONISED, next_past_the_entry, "out of its place"},
    {AX_INSTRS_PLACED, space_of_none, "is in space"},
    {AX_INSTRS_PLACED, beyond_its_space, " bytes of space "},
    {AX_INSTRS_PLACED, in_two_places, "is in two places"},
    {AX_INSTRS_PLACED, found_elsewhere, "is not found as its space says"},
    {AX_INSTRS_PLACED, one_operand_less, "has 2 operands, not 3"},
    {AX_INSTRS_NUMBERED, no_such_counter, "event 0 has counters"},
    {AX_INSTRS_NUMBERED, table_of_another, "device 1 has counter 1048576"},
    {AX_INSTRS_PUSHES, push_of_none, "pushes for another exchange"},
    {AX_INSTRS_PUSHES, lost_member, "member 1 is nowhere"},
};

static ax_executable *compile(ax_runtime *runtime, const test_map *map, int64_t rows) {
  const ax_type type = TEST_TYPE(AX_F32, rows, N);
  ax_program *program = test_trace_map(map, &type);
  ax_executable *executable;
  TEST_OK(ax_compile(runtime, program, NULL, &executable));
  ax_program_release(program);
  return executable;
}

/* Breaks a program of a body on each device, from f32[rows,N]. */
static void break_rows_of(const test_map *map, int64_t program_rows, const row *broken, size_t count) {
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  ax_executable *executable = compile(runtime, map, program_rows);
  for (size_t i = 0; i < count; i++) {
    ax_compiled own;
    ax_assembly a;
    init(&a, &own, executable);
    assemble(&a, broken[i].stage);
    broken[i].break_it(&a);
    ax_status status = ax_instrs_verify(&a, 2 * broken[i].stage - 1);
    if (status != AX_INTERNAL || strstr(ax_message(), broken[i].message) == NULL)
      fail_msg("row %zu: %s, where \"%s\" is wanted", i, status == AX_OK ? "nothing" : ax_message(), broken[i].message);
    deinit(&a, &own);
  }
  ax_executable_release(executable);
  ax_runtime_release(runtime);
}

static void break_rows(const row *broken, size_t count) {
  break_rows_of(&(test_map){"d=2", {"d"}, {"d"}, .body = device}, 2 * N, broken, count);
}

static void test_broken(void **state) {
  (void)state;
  break_rows(rows, AX_COUNT(rows));
}

/* --- Memory --- */

static void each_ref(ax_assembly *a, void (*change)(ax_assembly *a, ax_ref *ref, const ax_ref *context), const ax_ref *context) {
  for (uint32_t i = 0; i < a->instr_count; i++)
    for (uint32_t k = 0; k < a->instrs[i].ref_count; k++) change(a, &a->instrs[i].refs[k], context);
}

/* `end`: where scratch memory ended. */
static void move_to_scratch(ax_assembly *a, ax_ref *ref, const ax_ref *end) {
  const ax_part_space *space = &a->compiled->spaces[ref->space];
  ax_part_space *scratch = &a->compiled->spaces[a->compiled->scratch_space];
  if (space->kind != AX_SPACE_KEPT) return;
  if (end->offset + space->bytes > scratch->bytes) scratch->bytes = end->offset + space->bytes;
  ref->space = a->compiled->scratch_space;
  ref->first = scratch->first;
  ref->offset += end->offset;
}

/* What must be kept while the activation is parked lies in scratch memory. */
static void not_kept(ax_assembly *a) {
  each_ref(a, move_to_scratch, &(ax_ref){.offset = a->compiled->spaces[a->compiled->scratch_space].bytes});
}

/* `ends`: from where, to where. */
static void move_one(ax_assembly *a, ax_ref *ref, const ax_ref *ends) {
  (void)a;
  if (ref->space == ends[0].space && ref->offset == ends[0].offset) *ref = ends[1];
}

/* The second product lies where the first does, which is read after it is made. */
static void in_the_same_place(ax_assembly *a) {
  ax_ref ends[2] = {0};
  for (uint32_t i = 0; i < a->instr_count; i++) {
    if (a->instrs[i].kind != AX_INSTR_GEMM) continue;
    ends[1] = ends[0];
    ends[0] = a->instrs[i].refs[2];
  }
  each_ref(a, move_one, ends);
}

static bool reads(const ax_instr *instr, const ax_ref *ref) {
  for (uint32_t k = 0; k < instr->ref_count; k++)
    if (instr->refs[k].space == ref->space && instr->refs[k].offset == ref->offset) return true;
  return false;
}

/* What reads a product changes places with it. */
static void too_early(ax_assembly *a) {
  uint32_t product = (uint32_t)(need(a, AX_INSTR_GEMM) - a->instrs), reader = product + 1;
  while (reader < a->instr_count && !reads(&a->instrs[reader], &a->instrs[product].refs[2])) reader++;
  assert_true(reader < a->instr_count);
  ax_instr kept = a->instrs[product];
  const ax_op *op = a->ops[product];
  a->instrs[product] = a->instrs[reader], a->instrs[reader] = kept;
  a->ops[product] = a->ops[reader], a->ops[reader] = op;
}

static void test_memory(void **state) {
  (void)state;
  static const row wrong[] = {
      {AX_INSTRS_PLACED, not_kept, "nothing is any more"},
      {AX_INSTRS_PLACED, in_the_same_place, " is by now"},
      {AX_INSTRS_PLACED, too_early, "where nothing was written"},
  };
  break_rows(wrong, AX_COUNT(wrong));
}

/* --- Pieces --- */

enum { MEMBERS = 16 };

/* Pieces of an argument, of a value that is made here, and of a sum of either; then a permutation. */
static void pieces(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value made = ax_tanh(in[0]), sums[2];
  for (int i = 0; i < 2; i++) {
    sums[i] = ax_psum_scatter(i == 0 ? in[0] : made, "d", 0, true);
    sums[i] = ax_broadcast_in_dim(ax_reduce_sum(sums[i], AX_DIMS(0), true), AX_DIMS(MEMBERS, N), AX_DIMS(0, 1));
  }
  out[0] = ax_add(ax_all_to_all(in[0], "d", 0, 0, true), ax_all_to_all(made, "d", 0, 0, true));
  const int64_t pairs[2][2] = {{0, 3}, {1, 0}};
  out[0] = ax_ppermute(ax_add(out[0], ax_add(sums[0], sums[1])), "d", 2, pairs);
}

/* A push with pieces that are copied, or combined; of an argument, or of a value that the run makes. */
static ax_push *find_push(ax_assembly *a, ax_push_way way, bool combines, bool made) {
  for (uint32_t i = 0; i < a->instr_count; i++) {
    ax_push *push = a->instrs[i].kind == AX_INSTR_PUSH ? a->instrs[i].push : NULL;
    if (push == NULL || push->way != way || (push->exchange->combine != AX_SCALAR_NONE) != combines) continue;
    const uint32_t allocation = a->plan->buffers[push->exchange->in].allocation;
    if ((a->plan->buffers[allocation].kind != AX_BUFFER_INPUT) == made) return push;
  }
  fail_msg("no such push");
  return NULL;
}
static ax_push *copied_batch(ax_assembly *a) { return find_push(a, AX_PUSH_IN_BATCHES, false, true); }
static ax_push *whole_sum(ax_assembly *a) { return find_push(a, AX_PUSH_AS_WHOLE, true, true); }
static ax_push *permutation(ax_assembly *a) { return find_push(a, AX_PUSH_APART, false, true); }

static void batch_without_copies(ax_assembly *a) { copied_batch(a)->batch = 0; }
static void batch_of_too_many(ax_assembly *a) { copied_batch(a)->batch = MEMBERS + 1; }
static void batch_of_pairs(ax_assembly *a) { permutation(a)->way = AX_PUSH_IN_BATCHES; }
static void whole_of_copies(ax_assembly *a) {
  ax_push *push = copied_batch(a);
  push->way = AX_PUSH_AS_WHOLE, push->combined = push->elems;
}
static void sum_of_batches(ax_assembly *a) {
  ax_push *push = whole_sum(a);
  push->way = AX_PUSH_IN_BATCHES, push->combined = push->run;
}
static void last_of_what_changes(ax_assembly *a) { whole_sum(a)->at_last_arrival = true; }
static void copied_by_the_last(ax_assembly *a) { copied_batch(a)->at_last_arrival = true; }
static void copies_at_once(ax_assembly *a) { copied_batch(a)->at_once = true; }
static void whole_at_once(ax_assembly *a) { whole_sum(a)->at_once = true; }
static void half_a_sum(ax_assembly *a) { whole_sum(a)->combined /= 2; }
static void half_an_operand(ax_assembly *a) { copied_batch(a)->elems /= 2; }
static void longer_runs(ax_assembly *a) { copied_batch(a)->run *= 2; }
static void rows_that_are_apart(ax_assembly *a) { copied_batch(a)->outer_rank = 9; }
static void other_elements(ax_assembly *a) { copied_batch(a)->item = 8; }
static void stage_of_another(ax_assembly *a) { copied_batch(a)->stage = whole_sum(a)->stage; }
static void stage_of_none(ax_assembly *a) { whole_sum(a)->stage = a->compiled->stage_count; }
static void counter_of_all(ax_assembly *a) { a->compiled->events[copied_batch(a)->event].groups = 1; }
static void sent_elsewhere(ax_assembly *a) { permutation(a)->targets[0] = 5; }
static void received_twice(ax_assembly *a) { permutation(a)->sources[4] = 0; }

static void test_pieces(void **state) {
  (void)state;
  static const row wrong[] = {
      {AX_INSTRS_PUSHES, batch_without_copies, "put without copies, but operands do not stay"},
      {AX_INSTRS_PUSHES, batch_of_too_many, "has batches of 17 of 16 members"},
      {AX_INSTRS_PUSHES, batch_of_pairs, "no pieces that are copied to all"},
      {AX_INSTRS_PUSHES, whole_of_copies, "its peers get no pieces of a sum"},
      {AX_INSTRS_PUSHES, sum_of_batches, "no pieces that are copied to all"},
      {AX_INSTRS_PUSHES, last_of_what_changes, "operands do not stay until it comes"},
      {AX_INSTRS_PUSHES, copied_by_the_last, "combines what is copied"},
      {AX_INSTRS_PUSHES, copies_at_once, "combines what is copied"},
      {AX_INSTRS_PUSHES, whole_at_once, "its peers get no pieces of a sum"},
      {AX_INSTRS_PUSHES, half_a_sum, "elements at once, not"},
      {AX_INSTRS_PUSHES, half_an_operand, "has operands of"},
      {AX_INSTRS_PUSHES, longer_runs, "has runs of"},
      {AX_INSTRS_PUSHES, rows_that_are_apart, "dimensions around a run"},
      {AX_INSTRS_PUSHES, other_elements, "has elements of 8 and 4 bytes"},
      {AX_INSTRS_PUSHES, stage_of_another, "which is that of exchange"},
      {AX_INSTRS_PUSHES, stage_of_none, "has stages"},
      {AX_INSTRS_PUSHES, counter_of_all, "groups share a counter"},
      {AX_INSTRS_PUSHES, sent_elsewhere, "member 0 does not send to 3"},
      {AX_INSTRS_PUSHES, received_twice, "2 members send and 3 receive, of 2 pairs"},
  };
  break_rows_of(&(test_map){"d=16", {"d"}, {"d"}, .body = pieces}, MEMBERS * MEMBERS, wrong, AX_COUNT(wrong));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_broken), cmocka_unit_test(test_memory), cmocka_unit_test(test_pieces)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
