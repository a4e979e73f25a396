/* Kernels whose devices are in several processes: the same bits as in one, however devices are spread. The processes are threads of
   this one (support/spreads.h). */
#include <stdio.h>

#include "support/away.h"

/* --- Kernels on each device --- */

/* All rows go round the ring. */
static AX_BODY(pass_on) {
  const ax_value *refs = context;
  ax_value from = ax_sub(ax_axis_index("x"), in[0]);
  ax_value row = ax_ref_at(refs[1], ax_where(ax_lt(from, ax_integer(0)), ax_add(from, ax_integer(N)), from));
  shift(row, row, refs[2], refs[3], TO("x", right()));
}
static AX_BODY(gather_ring) {
  ax_copy(in[0], ax_ref_at(in[1], ax_axis_index("x")));
  meet_neighbours();
  ax_fori_loop(ax_integer(0), ax_integer(N - 1), AX_CLOSURE(pass_on, 1, 0, in), NULL, NULL);
}
static AX_BODY(gather) {
  const ax_scratch scratch[] = {copies(), copies()};
  run_kernel(gather_ring, 2, scratch, in, AX_TYPE(AX_F32, N, elems_of(in[0])), out);
}

/* Device d and device N - 1 - d have the ball in turn. */
static AX_BODY(give) {
  const ax_value *refs = context;
  ax_value partner = ax_sub(ax_integer(N - 1), ax_axis_index("x"));
  ax_ref_store(refs[1], ax_add(ax_mul(ax_ref_load(refs[1]), ax_real(0.5)), ax_ref_load(refs[0])));
  ax_copy_start(refs[1], ax_ref_at(refs[2], ax_integer(0)),
                &(ax_copy_options){.received = (ax_value *)&refs[3], .sent = (ax_value *)&refs[4], .to = TO("x", partner)});
  ax_copy_wait(refs[4], refs[1]);
}
static AX_BODY(take) {
  const ax_value *refs = context;
  ax_copy_wait(refs[3], refs[1]);
  ax_ref_store(refs[1], ax_sub(ax_ref_load(ax_ref_at(refs[2], ax_integer(0))), ax_ref_load(refs[1])));
}
static AX_BODY(one_turn) {
  ax_value side = ax_lt(ax_axis_index("x"), ax_integer(N / 2)), even = ax_eq(ax_rem(in[0], ax_integer(2)), ax_integer(0));
  ax_if(ax_eq(side, even), AX_CLOSURE(give, 0, 0, context), AX_CLOSURE(take, 0, 0, context), NULL, NULL);
}
static AX_BODY(play) {
  ax_ref_store(in[1], ax_real(1));
  ax_semaphore_signal(ax_barrier_semaphore(), ax_integer(1), TO("x", ax_sub(ax_integer(N - 1), ax_axis_index("x"))));
  ax_semaphore_wait(ax_barrier_semaphore(), ax_integer(1));
  ax_fori_loop(ax_integer(0), ax_integer(ROUNDS), AX_CLOSURE(one_turn, 1, 0, in), NULL, NULL);
}
static AX_BODY(ping_pong) {
  const ax_scratch scratch[] = {slots(1, elems_of(in[0])), copies(), copies()};
  run_kernel(play, 3, scratch, in, AX_TYPE(AX_F32, elems_of(in[0])), out);
}

/* Signals alone, each answered. */
static AX_BODY(ask_and_answer) {
  const ax_value *refs = context;
  ax_semaphore_signal(refs[2], ax_integer(3), TO("x", right()));
  ax_semaphore_wait(refs[2], ax_integer(3));
  ax_semaphore_signal(refs[3], ax_add(in[0], ax_integer(1)), TO("x", left()));
  ax_semaphore_wait(refs[3], ax_add(in[0], ax_integer(1)));
}
static AX_BODY(talk) {
  ax_fori_loop(ax_integer(0), ax_integer(ROUNDS), AX_CLOSURE(ask_and_answer, 1, 0, in), NULL, NULL);
  ax_ref_store(in[1], ax_neg(ax_ref_load(in[0])));
}
static AX_BODY(conversation) {
  const ax_scratch scratch[] = {signals(), signals()};
  run_kernel(talk, 2, scratch, in, AX_TYPE(AX_F32, elems_of(in[0])), out);
}

/* A stream of blocks through two slots of the neighbour, which says when one is free. refs: x, y, slots, free, received, sent */
static AX_BODY(one_block) {
  const ax_value *refs = context;
  ax_value slot = ax_ref_at(refs[2], ax_rem(in[0], ax_integer(2))), block = ax_ref_at(refs[0], in[0]);
  ax_semaphore_wait(refs[3], ax_integer(1));
  shift(block, slot, refs[4], refs[5], TO("x", right()));
  ax_ref_store(refs[1], ax_add(ax_mul(ax_ref_load(refs[1]), ax_real(0.75)), ax_ref_load(slot)));
  ax_semaphore_signal(refs[3], ax_integer(1), TO("x", left()));
}
static AX_BODY(stream) {
  ax_ref_store(in[1], ax_real(0));
  ax_semaphore_signal(in[3], ax_integer(2), TO("x", left()));
  ax_fori_loop(ax_integer(0), ax_integer(ROUNDS), AX_CLOSURE(one_block, 1, 0, in), NULL, NULL);
}
static AX_BODY(streams) {
  const ax_scratch scratch[] = {slots(2, elems_of(in[0])), signals(), copies(), copies()};
  ax_value blocks =
      ax_mul(ax_broadcast_to(in[0], AX_DIMS(ROUNDS, elems_of(in[0]))), ax_add(ax_iota(AX_F32, AX_DIMS(ROUNDS, 1), 0), ax_real(1)));
  run_kernel(stream, 4, scratch, &blocks, AX_TYPE(AX_F32, elems_of(in[0])), out);
}

/* What came from the left goes on to the right, from slot to slot. refs: x, y, slots, received, sent */
static AX_BODY(hand_on) {
  for (int k = 0; k < N - 1; k++) {
    ax_value from = k == 0 ? in[0] : ax_ref_at(in[2], ax_integer(k - 1)), to = ax_ref_at(in[2], ax_integer(k));
    shift(from, to, in[3], in[4], TO("x", right()));
    ax_ref_store(ax_ref_at(in[1], ax_integer(k)), ax_mul(ax_ref_load(to), ax_real(k + 2)));
  }
}
static AX_BODY(handed_on) {
  const ax_scratch scratch[] = {slots(N - 1, elems_of(in[0])), copies(), copies()};
  run_kernel(hand_on, 3, scratch, in, AX_TYPE(AX_F32, N - 1, elems_of(in[0])), out);
}

/* One slot gets bytes of both neighbours in turn, of which one may be here and the other not. refs: x, y, slot, received,
   sent, free for either side */
static void from_one_side(const ax_value *refs, ax_value freed, ax_value target, ax_value source) {
  ax_value slot = ax_ref_at(refs[2], ax_integer(0));
  ax_semaphore_signal(freed, ax_integer(1), TO("x", source));
  ax_semaphore_wait(freed, ax_integer(1));
  shift(refs[0], slot, refs[3], refs[4], TO("x", target));
  ax_ref_store(refs[1], ax_add(ax_mul(ax_ref_load(refs[1]), ax_real(0.75)), ax_ref_load(slot)));
}
static AX_BODY(from_both_sides) {
  const ax_value *refs = context;
  from_one_side(refs, refs[5], right(), left());
  from_one_side(refs, refs[6], left(), right());
}
static AX_BODY(mix) {
  ax_ref_store(in[1], ax_real(0));
  ax_fori_loop(ax_integer(0), ax_integer(ROUNDS), AX_CLOSURE(from_both_sides, 1, 0, in), NULL, NULL);
}
static AX_BODY(mixed) {
  const ax_scratch scratch[] = {slots(1, elems_of(in[0])), copies(), copies(), signals(), signals()};
  run_kernel(mix, 5, scratch, in, AX_TYPE(AX_F32, elems_of(in[0])), out);
}

/* Rows, columns and parts of them change places. */
static AX_BODY(turn) {
  const int64_t n = elems_of(in[0]) / 2;
  ax_value x = ax_ref_reshape(in[0], AX_DIMS(2, n)), y = ax_ref_reshape(in[1], AX_DIMS(n, 2));
  meet_neighbours();
  shift(ax_ref_transpose(x, AX_DIMS(1, 0)), y, in[2], in[3], TO("x", left()));
  ax_value odd = ax_ref_strided_slice(in[0], AX_VALUES(ax_integer(1)), AX_DIMS(n), AX_DIMS(2)),
           even = ax_ref_strided_slice(in[1], AX_VALUES(ax_integer(0)), AX_DIMS(n), AX_DIMS(2));
  meet_neighbours();
  shift(odd, even, in[2], in[3], TO("x", right()));
}
static AX_BODY(turned) {
  const ax_scratch scratch[] = {copies(), copies()};
  run_kernel(turn, 2, scratch, in, AX_TYPE(AX_F32, elems_of(in[0])), out);
}

/* Reads a semaphore until its neighbour has signalled thrice. */
static AX_BODY(too_few) { out[0] = ax_lt(in[0], ax_integer(3)); }
static AX_BODY(look_again) { out[0] = ax_semaphore_read(((const ax_value *)context)[2]); }
static AX_BODY(look) {
  ax_value zero = ax_sub(ax_axis_index("x"), ax_axis_index("x")), seen[1];
  for (int i = 0; i < 3; i++) ax_semaphore_signal(in[2], ax_integer(1), TO("x", right()));
  ax_while(AX_FN(too_few, 1, 1), AX_CLOSURE(look_again, 1, 1, in), &zero, seen);
  ax_semaphore_wait(in[2], seen[0]);
  ax_ref_store(in[1], ax_mul(ax_ref_load(in[0]), ax_convert_element_type(seen[0], AX_F32)));
}
static AX_BODY(looking) {
  const ax_scratch scratch[] = {signals()};
  run_kernel(look, 1, scratch, in, AX_TYPE(AX_F32, elems_of(in[0])), out);
}

/* On y=2,x=4: signals to all neighbours, then rows along both axes. refs: x, y, received along x, along y, sent */
static AX_BODY(meet_on_torus) {
  ax_value up = along("y", 2, 1);
  ax_semaphore_signal(ax_barrier_semaphore(), ax_integer(1), TO("y", up));
  ax_semaphore_signal(ax_barrier_semaphore(), ax_integer(2), TO("x", left()));
  ax_semaphore_signal(ax_barrier_semaphore(), ax_integer(4), TO("x,y", right(), up));
  ax_semaphore_wait(ax_barrier_semaphore(), ax_integer(7));
  shift(in[0], ax_ref_at(in[1], ax_integer(0)), in[2], in[4], TO("x", right()));
  shift(in[0], ax_ref_at(in[1], ax_integer(1)), in[3], in[4], TO("y", up));
}
static AX_BODY(torus) {
  const ax_scratch scratch[] = {copies(), copies(), copies()};
  run_kernel(meet_on_torus, 3, scratch, in, AX_TYPE(AX_F32, 2, elems_of(in[0])), out);
}

/* By the numbers of devices. */
static AX_BODY(to_next_device) {
  ax_value me = ax_add(ax_mul(ax_axis_index("y"), ax_integer(N)), ax_axis_index("x")),
           next = ax_rem(ax_add(me, ax_integer(3)), ax_integer(2 * N));
  const ax_target_core to = {.logical = true, .device = next};
  ax_semaphore_signal(ax_barrier_semaphore(), ax_integer(1),
                      &(ax_target_core){.logical = true, .device = ax_rem(ax_add(me, ax_integer(5)), ax_integer(2 * N))});
  ax_semaphore_wait(ax_barrier_semaphore(), ax_integer(1));
  shift(in[0], in[1], in[2], in[3], &to);
}
static AX_BODY(logical) {
  const ax_scratch scratch[] = {copies(), copies()};
  run_kernel(to_next_device, 2, scratch, in, AX_TYPE(AX_F32, elems_of(in[0])), out);
}

/* Two cores on each device; each sends to the other one of the neighbour. */
static AX_BODY(cross_over) {
  ax_value me = ax_axis_index("core"), other = ax_sub(ax_integer(1), me);
  ax_semaphore_signal(ax_barrier_semaphore(), ax_integer(1), TO("x,core", left(), other));
  ax_semaphore_wait(ax_barrier_semaphore(), ax_integer(1));
  shift(in[0], ax_ref_at(in[1], other), in[2], in[3], TO("x,core", right(), other));
}
static AX_BODY(crossed_over) {
  const ax_core_mesh mesh = {.core = "tensorcore", .mesh = {.count = 1, .axis = {{.name = "core", .size = 2}}}};
  const ax_scratch scratch[] = {copies(), copies()};
  const ax_kernel_options options = {.scratch = {AX_LIST(2, scratch)}};
  ax_mpmd_map(AX_LIST(1, &mesh), &AX_FN(cross_over, 4, 0), &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 2, elems_of(in[0]))),
              out);
}

/* Bytes that no core waits for are there when the kernel has ended. */
static AX_BODY(drop) { ax_copy_start(in[0], in[1], &(ax_copy_options){.to = TO("x", right())}); }
static AX_BODY(dropped) {
  ax_value y[1];
  run_kernel(drop, 0, NULL, in, AX_TYPE(AX_F32, elems_of(in[0])), y);
  out[0] = ax_neg(y[0]);
}

/* A signal does not overtake the bytes that its sender has sent before. */
static AX_BODY(bytes_then_signal) {
  meet_neighbours();
  ax_copy_start(in[0], ax_ref_at(in[3], ax_integer(0)), &(ax_copy_options){.to = TO("x", right())});
  ax_semaphore_signal(in[2], ax_integer(1), TO("x", right()));
  ax_semaphore_wait(in[2], ax_integer(1));
  ax_ref_store(in[1], ax_neg(ax_ref_load(ax_ref_at(in[3], ax_integer(0)))));
}
static AX_BODY(in_order) {
  const ax_scratch scratch[] = {signals(), slots(1, elems_of(in[0]))};
  run_kernel(bytes_then_signal, 2, scratch, in, AX_TYPE(AX_F32, elems_of(in[0])), out);
}

/* --- Kernels at random: in each round all devices meet, then each copies a part of what it has to another one --- */

typedef struct random_kernel {
  test_random random;
  int64_t elems;
} random_kernel;

/* Two semaphores in turn, since a device may be one round ahead of another. */
static void meet_all(ax_value semaphore) {
  for (int64_t k = 1; k < N; k++) ax_semaphore_signal(semaphore, ax_integer(1), TO("x", along("x", N, k)));
  ax_semaphore_wait(semaphore, ax_integer(N - 1));
}

/* The sender waits until the part is there, and so does the receiver. */
static void shift_and_arrive(ax_value part, ax_value place, ax_value received, ax_value arrived, const ax_target_core *to) {
  ax_copy_start(part, place, &(ax_copy_options){.received = &received, .barrier = &arrived, .to = to});
  ax_barrier_wait(arrived);
  ax_copy_wait(received, place);
}

/* refs: x, y, slots, received, sent, even, odd, barrier */
static void random_round(random_kernel *k, const ax_value *refs, int round) {
  const int64_t stride = 1 + test_random_below(&k->random, 3), count = 1 + test_random_below(&k->random, k->elems / stride);
  const int64_t from = test_random_below(&k->random, k->elems - (count - 1) * stride),
                at = test_random_below(&k->random, k->elems - count + 1);
  const int64_t shifted = test_random_below(&k->random, N);
  const bool of_x = test_random_below(&k->random, 3) == 0, arrives = of_x && test_random_below(&k->random, 2) == 0;
  ax_value source = of_x ? refs[0] : ax_ref_at(refs[2], ax_integer(round % 2));
  ax_value target = ax_ref_at(refs[2], ax_integer((round + 1) % 2));
  ax_value part = ax_ref_strided_slice(source, AX_VALUES(ax_integer(from)), AX_DIMS(count), AX_DIMS(stride));
  ax_value place = ax_ref_slice(target, AX_VALUES(ax_integer(at)), AX_DIMS(count));
  meet_all(refs[5 + round % 2]);
  if (shifted == 0)
    ax_copy(part, place);
  else if (arrives)
    shift_and_arrive(part, place, refs[3], refs[7], TO("x", along("x", N, shifted)));
  else
    shift(part, place, refs[3], refs[4], TO("x", along("x", N, shifted)));
  ax_ref_store(refs[1], ax_add(ax_mul(ax_ref_load(refs[1]), ax_real(0.75)), ax_ref_load(target)));
  if (test_random_below(&k->random, 2) == 0) ax_ref_store(target, ax_neg(ax_ref_load(refs[1])));
}
static AX_BODY(random_rounds) {
  random_kernel *k = context;
  for (int i = 0; i < 2; i++) ax_ref_store(ax_ref_at(in[2], ax_integer(i)), ax_mul(ax_ref_load(in[0]), ax_real(i + 0.5)));
  ax_ref_store(in[1], ax_real(0));
  for (int round = 0; round < ROUNDS; round++) random_round(k, in, round);
}
static AX_BODY(at_random) {
  random_kernel *k = context;
  const ax_scratch scratch[] = {slots(2, k->elems), copies(), copies(), signals(), signals(), barrier(1)};
  const ax_kernel_options options = {.name = "random", .scratch = {AX_LIST(6, scratch)}};
  ax_mpmd_map(AX_LIST(1, &test_one_core), &AX_CLOSURE(random_rounds, 8, 0, k), &options, AX_LIST(1, in),
              AX_TYPES(AX_TYPE(AX_F32, k->elems)), AX_LIST(1, out));
}

/* --- In programs --- */

static ax_value row(ax_value x, int64_t k) {
  return ax_reshape(ax_slice(x, AX_DIMS(k, 0), AX_DIMS(k + 1, elems_of(x)), NULL), AX_DIMS(elems_of(x)));
}
static AX_BODY(next_row) {
  ax_value y[1];
  gather(&in[1], y, NULL);
  out[0] = ax_add(ax_mul(row(y[0], 1), ax_real(0.5)), ax_mul(row(y[0], 3), in[1]));
}
static AX_BODY(in_a_loop) { ax_fori_loop(ax_integer(0), ax_integer(3), AX_FN(next_row, 2, 1), in, out); }

static AX_BODY(plain_rows) { out[0] = ax_mul(ax_broadcast_to(in[0], AX_DIMS(N, elems_of(in[0]))), ax_real(3)); }
static AX_BODY(in_a_branch) {
  ax_if(ax_eq(ax_axis_index("y"), ax_integer(1)), AX_FN(gather, 1, 1), AX_FN(plain_rows, 1, 1), in, out);
}
static AX_BODY(back_rows) {
  ax_value y[1];
  gather((const ax_value[]){ax_neg(in[0])}, y, NULL);
  out[0] = ax_rev(y[0], AX_DIMS(0));
}
static AX_BODY(in_both_branches) {
  ax_if(ax_eq(ax_axis_index("y"), ax_integer(1)), AX_FN(gather, 1, 1), AX_FN(back_rows, 1, 1), in, out);
}
static AX_BODY(one_behind_the_other) {
  ax_value y[1], z[1];
  streams(in, y, NULL);
  ping_pong(y, z, NULL);
  gather(z, out, NULL);
}
static AX_BODY(multiply) {
  ax_value x = ax_reshape(in[0], AX_DIMS(2, elems_of(in[0]) / 2)), w = ax_transpose(x, AX_DIMS(1, 0));
  out[0] = ax_collective_matmul(x, w, "x", NULL);
}
static AX_BODY(multiply_and_scatter) {
  ax_value x = ax_reshape(in[0], AX_DIMS(elems_of(in[0]), 1)), w = ax_slice(in[0], AX_DIMS(0), AX_DIMS(3), NULL);
  out[0] = ax_matmul_reduce_scatter(ax_slice(x, AX_DIMS(0, 0), AX_DIMS(N, 1), NULL), ax_reshape(w, AX_DIMS(1, 3)), "x", NULL);
}

/* --- Comparing --- */

static const kase cases[] = {
    {"ring", "x=4", "x", "x", gather, false},
    {"rings along y", "y=2,x=4", "y+x", "y+x", gather, false},
    {"rings, the same along y", "x=4,y=2", "x", "x", gather, false},
    {"rings, the same along y outside", "y=2,x=4", "x", "x", gather, false},
    {"ping-pong", "x=4", "x", "x", ping_pong, false},
    {"ping-pong, the same along y", "x=4,y=2", "x", "x", ping_pong, false},
    {"conversation", "x=4", "x", "x", conversation, false},
    {"streams", "x=4", "x", "x", streams, false},
    {"handed on", "x=4", "x", "x", handed_on, false},
    {"mixed", "x=4", "x", "x", mixed, false},
    {"turned", "x=4", "x", "x", turned, false},
    {"looking", "x=4", "x", "x", looking, false},
    {"torus", "y=2,x=4", "y+x", "y+x", torus, false},
    {"torus, x outside", "x=4,y=2", "x+y", "x+y", torus, false},
    {"logical numbers", "y=2,x=4", "y+x", "y+x", logical, false},
    {"two cores", "x=4", "x", "x", crossed_over, false},
    {"dropped", "x=4", "x", "x", dropped, true},
    {"in order", "x=4", "x", "x", in_order, true},
    {"in a loop", "x=4", "x", "x", in_a_loop, false},
    {"in a loop, the same along y", "x=4,y=2", "x", "x", in_a_loop, false},
    {"in a branch", "y=2,x=4", "y+x", "y+x", in_a_branch, false},
    {"in a branch, of the same along y", "x=4,y=2", "x", "y+x", in_a_branch, false},
    {"in both branches, of the same along y", "x=4,y=2", "x", "y+x", in_both_branches, false},
    {"one behind the other", "x=4", "x", "x", one_behind_the_other, false},
    {"product", "x=4", "x", "x", multiply, false},
    {"product, the same along y", "x=4,y=2", "x", "x", multiply, false},
    {"scattered product", "x=4", "x", "x", multiply_and_scatter, false},
};

static void short_copies(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(cases); i++) compare(&cases[i], SHORT);
}

static void long_copies(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(cases); i++) compare(&cases[i], LONG);
}

static void draw_spread(test_random *random, uint32_t *of, test_spread *spread) {
  *spread = (test_spread){.processes = 2 + (uint32_t)test_random_below(random, 4),
                          .workers = 1 + (uint32_t)test_random_below(random, 2),
                          .listed = 2 * N,
                          .of = of,
                          .delays = test_random_below(random, 2) == 0,
                          .policy = test_random_below(random, 2) == 0 ? AX_POLICY_SEEDED : AX_POLICY_PARALLEL,
                          .seed = test_random_bits(random)};
  for (int d = 0; d < 2 * N; d++) of[d] = (uint32_t)test_random_below(random, spread->processes);
}

static void random_kernels(void **state) {
  (void)state;
  enum { kernels = 24, spreads_of_each = 3 };
  for (uint64_t seed = 1; seed <= kernels; seed++) {
    random_kernel k = {{seed}, seed % 3 == 0 ? 3 * LONG : 20};
    const ax_type type = TEST_TYPE(AX_F32, N * k.elems);
    ax_program *program =
        test_trace_map(&(test_map){"x=4,y=2", {"x"}, {"x"}, .unchecked = true, .body = at_random, .context = &k}, &type);
    ax_tensor *in = random_input(&type, seed);
    uint32_t of[spreads_of_each][2 * N];
    test_spread spreads[spreads_of_each];
    char name[32];
    snprintf(name, sizeof name, "kernel %d", (int)seed);
    for (int i = 0; i < spreads_of_each; i++) draw_spread(&k.random, of[i], &spreads[i]);
    if (seed % 3 != 0) TEST_EVERY_WAY(program, &in, 1e-4);
    test_compare_spreads(name, program, &in, spreads, spreads_of_each);
    ax_tensor_release(in);
    ax_program_release(program);
  }
}

/* --- What goes wrong is said by all processes --- */

static ax_value is_device(int64_t d) { return ax_eq(ax_axis_index("x"), ax_integer(d)); }
static ax_value on_device(int64_t d, int64_t there, int64_t elsewhere) { /* numbers */
  ax_value zero = ax_sub(ax_axis_index("x"), ax_axis_index("x"));
  return ax_where(is_device(d), ax_add(zero, ax_integer(there)), ax_integer(elsewhere));
}

/* Device 1 signals nobody, so device 2 waits in vain. */
static AX_BODY(forget_one) {
  ax_semaphore_signal(in[2], on_device(1, 0, 2), TO("x", right()));
  ax_semaphore_wait(in[2], ax_integer(2));
  ax_copy(in[0], in[1]);
}
static AX_BODY(forgotten) {
  const ax_scratch scratch[] = {signals()};
  run_kernel(forget_one, 1, scratch, in, AX_TYPE(AX_F32, elems_of(in[0])), out);
}

/* Device 3 leaves its memory; the others wait for it, or look at a semaphore again and again. */
static AX_BODY(leave_memory) {
  ax_value at = on_device(3, SHORT, 0);
  ax_ref_store(ax_ref_at(in[1], at), ax_real(1));
  gather_ring(in, NULL, NULL);
}
static AX_BODY(beyond) {
  const ax_scratch scratch[] = {copies(), copies()};
  run_kernel(leave_memory, 2, scratch, in, AX_TYPE(AX_F32, N, elems_of(in[0])), out);
}
static AX_BODY(look_in_vain) {
  ax_value at = on_device(3, SHORT, 0);
  ax_ref_store(ax_ref_at(in[1], at), ax_real(1));
  look(in, NULL, NULL);
}
static AX_BODY(beyond_while_others_look) {
  const ax_scratch scratch[] = {signals()};
  run_kernel(look_in_vain, 1, scratch, in, AX_TYPE(AX_F32, elems_of(in[0])), out);
}

/* Device 2 does not come. */
static AX_BODY(not_on_the_third) { ax_if(is_device(2), AX_FN(plain_rows, 1, 1), AX_FN(gather, 1, 1), in, out); }

static void deadlocks(void **state) {
  (void)state;
  fails(forgotten, AX_DEADLOCK,
        "in the kernel away: the cores of this process have ended, those of others have not\nprocess 1: deadlock: ",
        "in the kernel away: device 2 waits in semaphore_wait for 2, of which there are 0");
  fails(not_on_the_third, AX_DEADLOCK, "device 0 (x=0), device 1 (x=1)\n    never come: device 2 (x=2) of process 1", "never come");
}

static void failures(void **state) {
  (void)state;
  fails(beyond, AX_INVALID_ARGUMENT, "process 1: device 3: ref_slice",
        "device 3: ref_slice takes elements 6 to 6 of dimension 0, which has 4");
  fails(beyond_while_others_look, AX_INVALID_ARGUMENT, "process 1: device 3: ref_slice",
        "device 3: ref_slice takes elements 6 to 6 of dimension 0");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(short_copies), cmocka_unit_test(long_copies),
                                     cmocka_unit_test(random_kernels), cmocka_unit_test(deadlocks), cmocka_unit_test(failures)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
