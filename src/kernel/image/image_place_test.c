/* What is known of a kernel before it runs: integers, jumps and waits by hand; which operations a body has, in which order, and which
   acts are a core's own. */
#include <string.h>

#include "axle/axle.h"
#include "kernel/image/run.h"
#include "prim/prims.h"
#include "support/cmocka.h"
#include "support/run.h"

/* --- Integers --- */

static int32_t of_two(ax_scalar scalar, int32_t a, int32_t b) {
  int32_t values[] = {a, b, 0};
  const ax_image_place in[] = {{.at = 0}, {.at = 4}}, out = {.at = 8};
  const ax_core_code_step step = {.in_count = 2};
  const ax_image_op op = {.kind = AX_IMAGE_SCALAR, .scalar = (uint32_t)scalar, .in = in, .out = &out, .step = &step};
  assert_true(ax_scalar_do(&op, 0, (char *)values));
  return values[2];
}

static void integers_wrap_around(void **state) {
  (void)state;
  assert_int_equal(of_two(AX_SCALAR_ADD, INT32_MAX, 1), INT32_MIN);
  assert_int_equal(of_two(AX_SCALAR_MUL, 1 << 20, 1 << 20), 0);
  assert_int_equal(of_two(AX_SCALAR_DIV, -7, 2), -3);
  assert_int_equal(of_two(AX_SCALAR_REM, -7, 2), -1);
  int32_t values[] = {5, 0, 0};
  const ax_image_place in[] = {{.at = 0}, {.at = 4}}, out = {.at = 8};
  const ax_core_code_step step = {.in_count = 2};
  const ax_image_op op = {.kind = AX_IMAGE_SCALAR, .scalar = AX_SCALAR_REM, .in = in, .out = &out, .step = &step};
  assert_false(ax_scalar_do(&op, 0, (char *)values)); /* the reference code says what it is */
}

/* --- Jumps --- */

/* 0 same  1 switch to 2, 3  2 jump to 4  3 jump to 4  4 jump to 6  5 jump to 0  6 end */
static void jumps_are_shortened(void **state) {
  (void)state;
  uint32_t cases[] = {2, 3}, op_of[] = {0, 1, 2, 3, 4, 5, 6}, slots[] = {0, 1}, uses[] = {1, 1};
  ax_core_code_step steps[] = {{.kind = AX_STEP_EVAL, .in = &slots[0], .in_count = 1, .out = &slots[1], .out_count = 1},
                               {.kind = AX_STEP_SWITCH, .in = &slots[1], .in_count = 1, .targets = cases, .target_count = 2},
                               {.kind = AX_STEP_JUMP, .target = 4}, {.kind = AX_STEP_JUMP, .target = 4},
                               {.kind = AX_STEP_JUMP, .target = 6}, {.kind = AX_STEP_JUMP, .target = 0}, {.kind = AX_STEP_END}};
  const ax_core_code code = {.steps = steps, .step_count = AX_COUNT(steps)};
  const ax_image_place predicate = {.narrow = true}, number = {.at = 8};
  ax_image_op ops[] = {{.kind = AX_IMAGE_SAME, .in = &predicate, .out = &number}, {.kind = AX_IMAGE_SWITCH, .in = &number},
                       {.kind = AX_IMAGE_JUMP}, {.kind = AX_IMAGE_JUMP}, {.kind = AX_IMAGE_JUMP}, {.kind = AX_IMAGE_JUMP}, {.kind = AX_IMAGE_END}};
  bool is_target[AX_COUNT(steps)] = {false};
  ax_image image = {0};
  ax_image_body body = {.code = &code, .ops = ops, .op_count = AX_COUNT(ops), .is_target = is_target};
  for (size_t i = 0; i < AX_COUNT(ops); i++) ops[i].step = &steps[i];
  ax_image_find_targets(&code, is_target);
  const bool targets[] = {true, false, true, true, true, false, true};
  assert_memory_equal(is_target, targets, sizeof targets);
  TEST_OK(ax_image_join(&image, &body, op_of, uses));
  assert_int_equal(ops[0].kind, AX_IMAGE_SWITCH); /* on the predicate itself */
  assert_ptr_equal(ops[0].in, &predicate);
  assert_int_equal(ops[0].targets[0], 6);
  assert_int_equal(ops[0].targets[1], 6);
  assert_int_equal(ops[3].target, 6);
  assert_int_equal(ops[5].target, 0);
  ax_arena_deinit(&image.arena);
}

/* 0 same  1 nothing, where the loop begins  2 switch to 3, 4  3 jump to 4  4 jump to 1  5 end: the jump skips what makes the integer. */
static void branch_in_a_loop_stays(void **state) {
  (void)state;
  uint32_t cases[] = {3, 4}, op_of[] = {0, 1, 1, 2, 3, 4}, slots[] = {0, 1}, uses[] = {1, 1};
  ax_core_code_step steps[] = {{.kind = AX_STEP_EVAL, .in = &slots[0], .in_count = 1, .out = &slots[1], .out_count = 1},
                               {.kind = AX_STEP_VIEW}, {.kind = AX_STEP_SWITCH, .in = &slots[1], .in_count = 1, .targets = cases, .target_count = 2},
                               {.kind = AX_STEP_JUMP, .target = 4}, {.kind = AX_STEP_JUMP, .target = 1}, {.kind = AX_STEP_END}};
  const ax_core_code code = {.steps = steps, .step_count = AX_COUNT(steps)};
  const ax_image_place predicate = {.narrow = true}, number = {.at = 8};
  ax_image_op ops[] = {{.kind = AX_IMAGE_SAME, .step = &steps[0], .in = &predicate, .out = &number}, {.kind = AX_IMAGE_SWITCH, .step = &steps[2], .in = &number},
                       {.kind = AX_IMAGE_JUMP, .step = &steps[3]}, {.kind = AX_IMAGE_JUMP, .step = &steps[4]}, {.kind = AX_IMAGE_END, .step = &steps[5]}};
  bool is_target[AX_COUNT(steps)] = {false};
  ax_image image = {0};
  ax_image_body body = {.code = &code, .ops = ops, .op_count = AX_COUNT(ops), .is_target = is_target};
  ax_image_find_targets(&code, is_target);
  TEST_OK(ax_image_join(&image, &body, op_of, uses));
  assert_int_equal(ops[0].kind, AX_IMAGE_SAME);
  assert_ptr_equal(ops[1].in, &number);
  assert_int_equal(ops[3].target, 1);
  ax_arena_deinit(&image.arena);
}

/* --- Waits --- */

typedef struct waiters {
  ax_run_group *group;
  ax_run_device *device;
  ax_run_core core[3];
  int64_t waited[3], view;
  ax_run_object object;
  void *roots[1];
  ax_cores_runner runner;
} waiters;

static waiters begin(void) {
  waiters all = {.group = ax_calloc(1, sizeof *all.group), .device = ax_calloc(1, sizeof *all.device)};
  assert_true(all.group != NULL && all.device != NULL);
  all.device->group = all.group;
  return all;
}

static void end(const waiters *all) {
  ax_free(all->group);
  ax_free(all->device);
}

static ax_row_walk walk_of(waiters *all, uint32_t c, const ax_image_op *op) {
  ax_run_core *core = &all->core[c];
  all->roots[0] = &all->object;
  core->device = all->device;
  core->views = &all->view;
  core->waited = &all->waited[c];
  core->roots = all->roots;
  return (ax_row_walk){.core = core, .op = op, .runner = &all->runner};
}

/* Of three that want two each the first gets it; it goes on behind its wait. */
static void waits_are_given_in_order(void **state) {
  (void)state;
  const ax_image_place place = {0};
  const ax_image_op op = {.kind = AX_IMAGE_ACT, .in = &place};
  waiters all = begin();
  bool waits;
  for (uint32_t c = 0; c < 3; c++) {
    const ax_row_walk walk = walk_of(&all, c, &op);
    waits = false;
    TEST_OK(ax_walk_stand_for(&walk, &all.object, 2, &waits));
    assert_true(waits);
  }
  const ax_row_walk walk = walk_of(&all, 0, &op);
  all.object.count = 3;
  ax_walk_let_go(&walk, &all.object);
  assert_int_equal(all.object.count, 1);
  assert_ptr_equal(all.group->first, &all.core[0]);
  assert_int_equal(all.group->ready, 1);
  assert_int_equal(all.core[0].pc, 1);
  assert_int_equal(all.core[1].pc, 0);
  assert_ptr_equal(all.object.waiting, &all.core[1]);
  TEST_OK(ax_walk_stand_for(&walk, &all.object, 1, &waits));
  assert_false(waits);
  assert_int_equal(all.object.count, 0);
  end(&all);
}

static void phases_let_all_go(void **state) {
  (void)state;
  const ax_image_place place = {0};
  const ax_image_op op = {.kind = AX_IMAGE_ACT, .in = &place};
  waiters all = begin();
  all.object.arrivals = 1;
  bool waits;
  for (uint32_t c = 0; c < 2; c++) {
    const ax_row_walk walk = walk_of(&all, c, &op);
    ax_walk_wait_phase(&walk, &waits);
    assert_true(waits);
  }
  const ax_row_walk walk = walk_of(&all, 2, &op);
  ax_walk_arrive(&walk, &all.object);
  assert_int_equal(all.group->ready, 2);
  assert_int_equal(all.waited[0], 1);
  assert_int_equal(all.waited[1], 1);
  ax_walk_wait_phase(&walk, &waits);
  assert_false(waits);
  assert_int_equal(all.waited[2], 1);
  end(&all);
}

/* One of two that have a scope together may open it again only when both have closed it. */
static void shared_scopes_are_left_by_all(void **state) {
  (void)state;
  const ax_run_scoped_params params = {0};
  ax_image_scope scope = {.params = &params, .users = 2, .shared = true};
  const ax_image_body body = {.scopes = &scope};
  size_t at = 0, *scopes[] = {&at, &at};
  const ax_image image = {.shared_scopes = scopes};
  const ax_image_op op = {.kind = AX_IMAGE_OPEN};
  ax_run_scope shared = {0};
  waiters all = begin();
  ax_row_walk walk[2];
  uint32_t occurrences[2] = {0};
  for (uint32_t c = 0; c < 2; c++) {
    walk[c] = walk_of(&all, c, &op);
    walk[c].image = &image, walk[c].body = &body;
    all.core[c].number = c, all.core[c].occurrences = &occurrences[c];
  }
  all.device->state = (char *)&shared;
  bool waits = false;
  for (uint32_t c = 0; c < 2; c++) ax_walk_open(&walk[c], &waits);
  assert_false(waits);
  ax_walk_close(&walk[0]);
  ax_walk_open(&walk[0], &waits);
  assert_true(waits);
  assert_int_equal(all.group->ready, 0);
  ax_walk_close(&walk[1]);
  assert_ptr_equal(all.group->first, &all.core[0]);
  assert_int_equal(all.core[0].pc, 0); /* it opens it once more */
  end(&all);
}

static void a_lock_is_wanted_while_it_is_awaited(void **state) {
  (void)state;
  const waiters all = begin();
  assert_int_equal(pthread_mutex_init(&all.group->lock, NULL), 0);
  ax_group_lock_wanted(all.group);
  assert_false(ax_group_is_wanted(all.group));
  assert_int_not_equal(pthread_mutex_trylock(&all.group->lock), 0);
  pthread_mutex_unlock(&all.group->lock);
  pthread_mutex_destroy(&all.group->lock);
  end(&all);
}

/* --- Kernels --- */

enum { rounds = 9, width = 16 };

/* Refs: x, y; a slot, its semaphore, a semaphore of all cores. ax_image_hoist takes the slices at the core's number out of the loop;
   ax_image_find_places leaves none of those at numbers. */
static AX_BODY(copy_and_tell) {
  const ax_value core = ax_axis_index("core");
  AX_LOOP (i, ax_integer(0), ax_integer(rounds)) {
    ax_value row = ax_ref_at(in[0], core), slot = ax_ref_at(in[2], ax_integer(1));
    ax_copy_start(row, slot, &(ax_copy_options){.received = &in[3]});
    ax_copy_wait(in[3], slot);
    ax_semaphore_signal(in[4], ax_integer(1), NULL);
    ax_semaphore_wait(in[4], ax_integer(1));
    ax_copy_start(slot, ax_ref_at(ax_ref_at(in[1], core), i), &(ax_copy_options){.received = &in[3]});
    ax_copy_wait(in[3], slot);
  }
}
static AX_BODY(kernel) {
  const ax_core_mesh mesh = {.core = "tensorcore", .mesh = {.count = 1, .axis = {{.name = "core", .size = 2}}}};
  const ax_scratch slot = {.type = AX_VMEM(AX_F32, 2, width)}, copied = {.type = ax_dma_semaphore_type(AX_DIMS())},
                   told = {.type = ax_semaphore_type(AX_DIMS()), .shared = true};
  const ax_kernel_options options = {.scratch = {AX_SCRATCH(slot, copied, told)}};
  ax_mpmd_map(AX_LIST(1, &mesh), &AX_FN(copy_and_tell, 5, 0), &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 2, rounds, width)), out);
}

static uint32_t count_of(const ax_image_body *body, ax_image_kind kind, uint32_t first, uint32_t end) {
  uint32_t count = 0;
  for (uint32_t i = first; i < end; i++) count += body->ops[i].kind == kind;
  return count;
}

/* ax_image_find_own finds the copies to and from the slot, and ax_image_place_ends those that only move bytes; ax_image_find_threads says
   what little is done between signals. */
static void what_is_known_before(void **state) {
  (void)state;
  const ax_type type = AX_TYPE(AX_F32, 2, width);
  static const ax_axes none;
  uint32_t operand = 0, result = 1;
  const ax_image_memory memory = {&operand, &result, 2};
  ax_program *program;
  ax_image *image;
  TEST_OK(ax_trace(AX_FN(kernel, 1, 1), &type, &program));
  const ax_eqn *eqn = &program->eqns[0];
  assert_ptr_equal(eqn->prim, &ax_prim_kernel_call);
  TEST_OK(ax_image_create(eqn, &type, &program->axes, &none, false, &memory, NULL, NULL, &image));
  const ax_image_body *body = &image->bodies[0];
  uint32_t begin = 0, own = 0, acts = 0, plain = 0;
  while (body->ops[begin].kind != AX_IMAGE_BEGIN) begin++;
  assert_int_equal(count_of(body, AX_IMAGE_SLICE, 0, begin), 2);                   /* at the core's number, of x and of y */
  assert_int_equal(count_of(body, AX_IMAGE_SLICE, begin, body->op_count), 1);      /* at the loop's */
  for (uint32_t i = 0; i < body->op_count; i++) {
    acts += body->ops[i].kind == AX_IMAGE_ACT;
    own += body->ops[i].kind == AX_IMAGE_ACT && body->ops[i].own;
    plain += body->ops[i].plain;
  }
  assert_int_equal(acts, 6);
  assert_int_equal(own, 4); /* all but the signal and the wait for it */
  assert_int_equal(plain, 2);
  assert_true(image->one_thread);
  assert_true(ax_image_time(image) == 0);
  const ax_mesh four = {.count = 1, .axis = {{.name = "d", .size = 4}}};
  image->axes = &four; /* each device for itself, and so on several threads */
  assert_true(ax_image_time(image) > 0);
  ax_image_release(image);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(integers_wrap_around),          cmocka_unit_test(jumps_are_shortened), cmocka_unit_test(branch_in_a_loop_stays),
                                     cmocka_unit_test(waits_are_given_in_order),      cmocka_unit_test(phases_let_all_go),
                                     cmocka_unit_test(shared_scopes_are_left_by_all), cmocka_unit_test(a_lock_is_wanted_while_it_is_awaited),
                                     cmocka_unit_test(what_is_known_before)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
