/* Copies to devices of other processes that arrive at a barrier of the sender. */
#include "support/away.h"

/* The sender says to its neighbours that their bytes are there. refs: x, y, slots, barriers,
   signals from the left, from the right, free */
static AX_BODY(one_arrival) {
  const ax_value *refs = context;
  ax_value arrived = ax_ref_at(refs[3], ax_rem(in[0], ax_integer(2)));
  ax_semaphore_wait(refs[6], ax_integer(2));
  ax_copy_start(refs[0], ax_ref_at(refs[2], ax_integer(0)), &(ax_copy_options){.barrier = &arrived, .to = TO("x", right())});
  ax_copy_start(refs[0], ax_ref_at(refs[2], ax_integer(1)), &(ax_copy_options){.barrier = &arrived, .to = TO("x", left())});
  ax_barrier_wait(arrived);
  ax_semaphore_signal(refs[4], ax_integer(1), TO("x", right()));
  ax_semaphore_signal(refs[5], ax_integer(1), TO("x", left()));
  for (int side = 0; side < 2; side++) {
    ax_semaphore_wait(refs[4 + side], ax_integer(1));
    ax_value slot = ax_ref_at(refs[2], ax_integer(side));
    ax_ref_store(refs[1], ax_add(ax_mul(ax_ref_load(refs[1]), ax_real(0.75)), ax_ref_load(slot)));
    ax_semaphore_signal(refs[6], ax_integer(1), TO("x", side == 0 ? left() : right()));
  }
}
static AX_BODY(arrive) {
  ax_ref_store(in[1], ax_real(0));
  ax_semaphore_signal(in[6], ax_integer(1), TO("x", left()));
  ax_semaphore_signal(in[6], ax_integer(1), TO("x", right()));
  ax_fori_loop(ax_integer(0), ax_integer(ROUNDS), AX_CLOSURE(one_arrival, 1, 0, in), NULL, NULL);
  ax_semaphore_wait(in[6], ax_integer(2));
}
static AX_BODY(arriving) {
  const ax_scratch scratch[] = {slots(2, elems_of(in[0])), two_barriers(2), signals(), signals(), signals()};
  run_kernel(arrive, 5, scratch, in, AX_TYPE(AX_F32, elems_of(in[0])), out);
}

/* In a scope, with a semaphore of the receiver too; and the barrier of an outer one, that no core waits for. refs: x, y, slots,
   received, outer barrier; then the scope's */
static AX_BODY(arrive_in_scope) {
  const ax_value *refs = context;
  ax_copy_start(refs[0], ax_ref_at(refs[2], ax_integer(0)),
                &(ax_copy_options){.barrier = &in[0], .received = (ax_value *)&refs[3], .to = TO("x", left())});
  ax_barrier_wait(in[0]);
  ax_copy_wait(refs[3], refs[0]);
}
static AX_BODY(arrive_in_scopes) {
  const ax_scratch scratch[] = {barrier(1)};
  meet_neighbours();
  ax_run_scoped(AX_LIST(1, scratch), NULL, AX_CLOSURE(arrive_in_scope, 1, 0, in), NULL);
  ax_ref_store(in[1], ax_neg(ax_ref_load(ax_ref_at(in[2], ax_integer(0)))));
  meet_neighbours();
  ax_run_scoped(AX_LIST(1, scratch), NULL, AX_CLOSURE(arrive_in_scope, 1, 0, in), NULL);
  ax_copy_start(in[0], ax_ref_at(in[2], ax_integer(1)), &(ax_copy_options){.barrier = &in[4], .to = TO("x", right())});
}
static AX_BODY(arriving_in_scopes) {
  const ax_scratch scratch[] = {slots(2, elems_of(in[0])), copies(), barrier(1)};
  run_kernel(arrive_in_scopes, 3, scratch, in, AX_TYPE(AX_F32, elems_of(in[0])), out);
}

/* Two cores on each device, each with a barrier of its own. refs: x, y, slots, barriers, signals */
static AX_BODY(arrive_at_other_core) {
  ax_value me = ax_axis_index("core"), other = ax_sub(ax_integer(1), me), arrived = ax_ref_at(in[3], me);
  ax_semaphore_signal(ax_barrier_semaphore(), ax_integer(1), TO("x,core", left(), other));
  ax_semaphore_wait(ax_barrier_semaphore(), ax_integer(1));
  ax_copy_start(in[0], ax_ref_at(in[2], other), &(ax_copy_options){.barrier = &arrived, .to = TO("x,core", right(), other)});
  ax_barrier_wait(arrived);
  ax_semaphore_signal(ax_ref_at(in[4], other), ax_integer(1), TO("x,core", right(), other));
  ax_semaphore_wait(ax_ref_at(in[4], me), ax_integer(1));
  ax_ref_store(ax_ref_at(in[1], me), ax_neg(ax_ref_load(ax_ref_at(in[2], me))));
}
static AX_BODY(arriving_at_other_core) {
  const ax_core_mesh mesh = {.core = "tensorcore", .mesh = {.count = 1, .axis = {{.name = "core", .size = 2}}}};
  const ax_scratch scratch[] = {slots(2, elems_of(in[0])), two_barriers(1), {.type = ax_semaphore_type(AX_DIMS(2))}};
  const ax_kernel_options options = {.scratch = {AX_LIST(3, scratch)}};
  ax_mpmd_map(AX_LIST(1, &mesh), &AX_FN(arrive_at_other_core, 5, 0), &options, AX_LIST(1, in),
              AX_TYPES(AX_TYPE(AX_F32, 2, elems_of(in[0]))), out);
}

static AX_BODY(next_arriving) { arriving(&in[1], out, NULL); }
static AX_BODY(arriving_in_a_loop) { ax_fori_loop(ax_integer(0), ax_integer(3), AX_FN(next_arriving, 2, 1), in, out); }

static const kase cases[] = {
    {"arriving", "x=4", "x", "x", arriving, false},
    {"arriving, the same along y", "x=4,y=2", "x", "x", arriving, false},
    {"arriving in scopes", "x=4", "x", "x", arriving_in_scopes, false},
    {"arriving at the other core", "x=4", "x", "x", arriving_at_other_core, false},
    {"arriving in a loop", "x=4", "x", "x", arriving_in_a_loop, false},
};

static void short_copies(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(cases); i++) compare(&cases[i], SHORT);
}

static void long_copies(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(cases); i++) compare(&cases[i], LONG);
}

/* The barrier of device 2 wants one arrival more than its copies bring. refs: x, y, slot, barrier */
static AX_BODY(arrive_too_seldom) {
  ax_value twice = ax_ne(ax_axis_index("x"), ax_integer(2));
  ax_copy_start(in[0], in[2], &(ax_copy_options){.barrier = &in[3], .to = TO("x", right())});
  ax_copy_start(in[0], in[2], &(ax_copy_options){.barrier = &in[3], .predicate = &twice, .to = TO("x", right())});
  ax_barrier_wait(in[3]);
  ax_copy(in[0], in[1]);
}
static AX_BODY(arriving_too_seldom) {
  const ax_scratch scratch[] = {{.type = AX_VMEM(AX_F32, SHORT)}, barrier(2)};
  run_kernel(arrive_too_seldom, 2, scratch, in, AX_TYPE(AX_F32, SHORT), out);
}

static void an_arrival_that_never_comes(void **state) {
  (void)state;
  fails(arriving_too_seldom, AX_DEADLOCK, "process 1: deadlock: ",
        "device 2 waits in barrier_wait for phase 1, with 1 of 2 arrivals in phase 1");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(short_copies), cmocka_unit_test(long_copies),
                                     cmocka_unit_test(an_arrival_that_never_comes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
