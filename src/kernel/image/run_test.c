/* Kernels in the executor: under every policy they give what reference evaluation gives, and fail in words. */
#include <string.h>

#include "axle/axle.h"
#include "support/cmocka.h"
#include "support/kernels.h"
#include "support/run.h"

/* --- Running --- */

typedef struct sample {
  const char *name;
  ax_fn fn;
  ax_type in[4];
  double tolerance;
} sample;

static void run_sample(const sample *s, uint64_t seed) {
  ax_program *program;
  ax_tensor *in[4] = {NULL};
  uint64_t random = seed;
  ax_status status = ax_trace(s->fn, s->in, &program);
  if (status != AX_OK) fail_msg("%s: %s", s->name, ax_message());
  for (uint32_t i = 0; i < s->fn.in_count; i++) {
    TEST_OK(ax_tensor_create(&s->in[i], &in[i]));
    for (int64_t k = 0; k < ax_type_elems(&s->in[i]); k++) ((float *)in[i]->data)[k] = (float)(ax_next_random(&random) % 64) / 8;
  }
  TEST_EVERY_WAY(program, in, s->tolerance);
  for (uint32_t i = 0; i < s->fn.in_count; i++) ax_tensor_release(in[i]);
  ax_program_release(program);
}

/* --- One core --- */

/* Views, masks, swaps, sums; an operand that is written though it is no alias. */
static AX_BODY(all_of_memory) {
  ax_value turned = ax_ref_transpose(in[0], AX_DIMS(1, 0)), x = ax_ref_load(turned);
  ax_ref_store(ax_ref_transpose(in[1], AX_DIMS(1, 0)), x);
  ax_ref_add(ax_ref_at(in[1], ax_integer(1)), ax_mul(ax_ref_load(ax_ref_at(in[0], ax_integer(0))), ax_real(3)));
  ax_value mask = ax_gt(ax_ref_load(in[1]), ax_real(4));
  ax_ref_store_masked(in[0], mask, ax_real(-1));
  ax_value was = ax_ref_swap(ax_ref_at(in[1], ax_integer(2)), ax_ref_load(ax_ref_at(in[0], ax_integer(2))));
  ax_ref_store(ax_ref_at(in[2], ax_integer(0)), was);
  ax_ref_store(ax_ref_strided_slice(ax_ref_reshape(in[2], AX_DIMS(8)), ((ax_value[]){ax_integer(4)}), AX_DIMS(2), AX_DIMS(2)),
               ax_real(7));
  ax_ref_store(ax_ref_strided_slice(ax_ref_reshape(in[2], AX_DIMS(8)), ((ax_value[]){ax_integer(5)}), AX_DIMS(2), AX_DIMS(2)),
               ax_real(8));
}
static AX_BODY(memory) {
  ax_mpmd_map(AX_LIST(1, &test_one_core), &AX_FN(all_of_memory, 3, 0), NULL, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 3, 4), AX_TYPE(AX_F32, 2, 4)), out);
}

/* --- Several cores: one makes, the others take turns to use it --- */

enum { rounds = 5 };

static AX_BODY(produce) { /* refs: x, y, slot, filled, emptied */
  const ax_value *refs = context;
  ax_semaphore_wait(refs[4], ax_integer(1));
  ax_ref_store(refs[2], ax_mul(ax_ref_load(ax_ref_at(refs[0], in[0])), ax_real(3)));
  ax_semaphore_signal(refs[3], ax_integer(1), NULL);
}
static AX_BODY(consume) {
  const ax_value *refs = context;
  ax_semaphore_wait(refs[3], ax_integer(1));
  ax_copy(refs[2], ax_ref_at(refs[1], in[0]));
  ax_semaphore_signal(refs[4], ax_integer(1), NULL);
}
static AX_BODY(producer) { ax_fori_loop(ax_integer(0), ax_integer(rounds), AX_CLOSURE(produce, 1, 0, in), NULL, NULL); }
static AX_BODY(consumer) {
  ax_semaphore_signal(in[4], ax_integer(1), NULL);
  ax_fori_loop(ax_integer(0), ax_integer(rounds), AX_CLOSURE(consume, 1, 0, in), NULL, NULL);
}
static AX_BODY(both) {
  const ax_core_mesh meshes[] = {{.core = "maker"}, {.core = "user"}};
  const ax_scratch scratch[] = {{.type = AX_VMEM(AX_F32, 3), .shared = true},
                                {.type = ax_semaphore_type(AX_DIMS()), .shared = true},
                                {.type = ax_semaphore_type(AX_DIMS()), .shared = true}};
  const ax_kernel_options options = {.scratch = {AX_LIST(3, scratch)}};
  const ax_fn bodies[] = {AX_FN(producer, 5, 0), AX_FN(consumer, 5, 0)};
  ax_mpmd_map(AX_LIST(2, meshes), bodies, &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, rounds, 3)), out);
}

/* Each core its rows, with a constant of the program around; the result is the operand's memory. */
static AX_BODY(own_rows) {
  const ax_value *captured = context;
  ax_value row = ax_ref_at(in[1], ax_axis_index("core"));
  ax_ref_store(row, ax_add(ax_ref_load(row), captured[0]));
}
static AX_BODY(aliased) {
  const ax_core_mesh mesh = {.core = "tensorcore", .mesh = {.count = 1, .axis = {{.name = "core", .size = 4}}}};
  const ax_kernel_options options = {.aliases = {AX_ALIASES({0, 0})}};
  ax_mpmd_map(AX_LIST(1, &mesh), &AX_CLOSURE(own_rows, 2, 0, &in[1]), &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 4, 6)), out);
}

/* Warpgroups with a barrier in a scope that they have together, twice. */
static AX_BODY(exchange) {
  const ax_value *refs = context;
  ax_value me = ax_axis_index("wg"), other = ax_sub(ax_integer(1), me);
  ax_ref_store(ax_ref_at(in[0], me), ax_ref_load(ax_ref_at(refs[0], me)));
  ax_barrier_arrive(in[1]);
  ax_barrier_wait(in[1]);
  ax_ref_add(ax_ref_at(refs[1], me), ax_ref_load(ax_ref_at(in[0], other)));
}
static AX_BODY(warpgroup) {
  const ax_scratch scratch[] = {{.type = AX_VMEM(AX_F32, 2, 3)}, {.type = ax_barrier_type(AX_DIMS()), .arrivals = 2}};
  ax_ref_store(ax_ref_at(in[1], ax_axis_index("wg")), ax_ref_load(ax_ref_at(in[0], ax_axis_index("wg"))));
  for (int i = 0; i < 2; i++) ax_run_scoped(AX_LIST(2, scratch), "wg", AX_CLOSURE(exchange, 2, 0, in), NULL);
}
static AX_BODY(warpgroups) {
  const ax_core_mesh mesh = {.core = "warpgroup", .mesh = {.count = 1, .axis = {{.name = "wg", .size = 2}}}, .threads = "wg"};
  ax_mpmd_map(AX_LIST(1, &mesh), &AX_FN(warpgroup, 2, 0), NULL, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 2, 3)), out);
}

/* One core looks at a semaphore until the other has signalled thrice. */
static AX_BODY(too_few) { out[0] = ax_lt(in[0], ax_integer(3)); }
static AX_BODY(look_again) {
  const ax_value *refs = context;
  out[0] = ax_semaphore_read(refs[2]);
}
static AX_BODY(looker) {
  ax_value zero = ax_convert_element_type(ax_full(AX_F32, AX_DIMS(), 0), AX_S32), seen[1];
  ax_while(AX_FN(too_few, 1, 1), AX_CLOSURE(look_again, 1, 1, in), &zero, seen);
  ax_semaphore_wait(in[2], seen[0]);
  ax_ref_store(in[1], ax_mul(ax_ref_load(in[0]), ax_convert_element_type(seen[0], AX_F32)));
}
static AX_BODY(signaller) {
  for (int i = 0; i < 3; i++) ax_semaphore_signal(in[2], ax_integer(1), NULL);
}
static AX_BODY(looking) {
  const ax_core_mesh meshes[] = {{.core = "signaller"}, {.core = "looker"}};
  const ax_scratch scratch[] = {{.type = ax_semaphore_type(AX_DIMS()), .shared = true}};
  const ax_kernel_options options = {.scratch = {AX_LIST(1, scratch)}};
  const ax_fn bodies[] = {AX_FN(signaller, 3, 0), AX_FN(looker, 3, 0)};
  ax_mpmd_map(AX_LIST(2, meshes), bodies, &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 4)), out);
}

/* --- Kernels in a program: in loops and branches, one after the other, one program's result used up by the next --- */

static AX_BODY(round_trip) {
  ax_value y[1];
  aliased((const ax_value[]){in[1], ax_mul(ax_convert_element_type(in[0], AX_F32), ax_real(2))}, y, NULL);
  out[0] = ax_add(y[0], in[1]);
}
static AX_BODY(kernel_branch) { aliased((const ax_value[]){in[0], ax_real(5)}, out, NULL); }
static AX_BODY(plain_branch) { out[0] = ax_neg(in[0]); }
static AX_BODY(in_control) {
  ax_value looped[1], x = ax_mul(in[0], ax_real(0.5));
  ax_fori_loop(ax_integer(0), ax_integer(3), AX_FN(round_trip, 2, 1), &x, looped);
  ax_value positive = ax_gt(ax_reduce_sum(in[0], AX_ALL_DIMS, false), ax_real(100));
  ax_if(positive, AX_FN(kernel_branch, 1, 1), AX_FN(plain_branch, 1, 1), looped, out);
  out[1] = looped[0];
}

/* --- Rings of devices --- */

static ax_value right_of(const char *axis, int64_t size) {
  ax_value next = ax_add(ax_axis_index(axis), ax_integer(1));
  return ax_where(ax_eq(next, ax_integer(size)), ax_integer(0), next);
}

static AX_BODY(pass_on) { /* refs: y, received, sent; carries none */
  const ax_value *refs = context;
  ax_value right = right_of("d", 4), from = ax_sub(ax_axis_index("d"), in[0]);
  from = ax_where(ax_lt(from, ax_integer(0)), ax_add(from, ax_integer(4)), from);
  const ax_target_core to = {.axes = "d", .coordinates = {AX_VALUES(right)}};
  ax_value row = ax_ref_at(refs[0], from);
  ax_copy_start(row, row, &(ax_copy_options){.received = (ax_value *)&refs[1], .sent = (ax_value *)&refs[2], .to = &to});
  ax_copy_wait(refs[2], row);
  ax_copy_wait(refs[1], row);
}
static AX_BODY(gather_ring) {
  ax_value right = right_of("d", 4);
  const ax_target_core to = {.axes = "d", .coordinates = {AX_VALUES(right)}};
  ax_copy(in[0], ax_ref_at(in[1], ax_axis_index("d")));
  ax_semaphore_signal(ax_barrier_semaphore(), ax_integer(1), &to);
  ax_semaphore_wait(ax_barrier_semaphore(), ax_integer(1));
  ax_fori_loop(ax_integer(0), ax_integer(3), AX_CLOSURE(pass_on, 1, 0, &in[1]), NULL, NULL);
}
static AX_BODY(gathering) {
  const ax_scratch scratch[] = {{.type = ax_dma_semaphore_type(AX_DIMS())}, {.type = ax_dma_semaphore_type(AX_DIMS())}};
  const ax_kernel_options options = {.scratch = {AX_LIST(2, scratch)}};
  ax_value y[1];
  ax_mpmd_map(AX_LIST(1, &test_one_core), &AX_FN(gather_ring, 4, 0), &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 4, 2)), y);
  out[0] = ax_reduce_sum(ax_mul(y[0], ax_real(2)), AX_DIMS(1), false);
}
static AX_BODY(gathered) {
  const ax_mesh mesh = {.count = 2, .axis = {{.name = "e", .size = 2}, {.name = "d", .size = 4}}};
  ax_shard_map(&mesh, "e+d -> e+d", AX_FN(gathering, 1, 1), in, out);
}
static AX_BODY(gather_again) { gathering(&in[1], out, NULL), out[0] = ax_slice(out[0], AX_DIMS(0), AX_DIMS(2), NULL); }
static AX_BODY(looped_ring) { ax_fori_loop(ax_integer(0), ax_integer(3), AX_FN(gather_again, 2, 1), in, out); }
static AX_BODY(gathered_thrice) {
  const ax_mesh mesh = {.count = 1, .axis = {{.name = "d", .size = 4}}};
  ax_shard_map(&mesh, "d -> d", AX_FN(looped_ring, 1, 1), in, out);
}

/* In a branch that half of the devices take, though what they compute with is the same for both halves. */
static AX_BODY(not_gathering) { out[0] = ax_concatenate(AX_VALUES(in[0], in[0]), 0); }
static AX_BODY(gathering_there) {
  ax_if(ax_eq(ax_axis_index("e"), ax_integer(1)), AX_FN(gathering, 1, 1), AX_FN(not_gathering, 1, 1), in, out);
}
static AX_BODY(gathered_there) {
  const ax_mesh mesh = {.count = 2, .axis = {{.name = "d", .size = 4}, {.name = "e", .size = 2}}};
  ax_shard_map_unchecked(&mesh, "d -> e+d", AX_FN(gathering_there, 1, 1), in, out);
}

/* --- Places that are known before, and those that are not --- */

/* Integers that wrap around, of loops, of the program around and of the core's place; carries that change places; slices at all of these. In
   a loop, one that would be outside stands where no core comes. */
static AX_BODY(every_integer) { /* refs: x[8], y[8]; captured: an s32 and a bool */
  const ax_value *captured = context;
  const ax_value core = ax_axis_index("core"), most = ax_full(AX_S32, AX_DIMS(), INT32_MAX);
  ax_value a = ax_full(AX_S32, AX_DIMS(), 0), b = ax_add(a, ax_integer(1)), odd = ax_eq(a, ax_integer(1)), even = ax_eq(a, ax_integer(0));
  AX_LOOP (i, ax_integer(0), ax_integer(4), &a, &b, &odd, &even) {
    const ax_value mine = ax_add(ax_mul(core, ax_integer(4)), i), fixed = ax_add(ax_mul(core, ax_integer(4)), ax_integer(2));
    const ax_value wraps = ax_sub(ax_add(most, ax_mul(core, ax_mul(most, ax_integer(2)))), ax_mul(most, ax_add(i, ax_integer(1))));
    const ax_value kind = ax_add(ax_convert_element_type(ax_lt(wraps, ax_integer(0)), AX_S32), ax_convert_element_type(ax_ge(i, captured[0]), AX_S32));
    ax_value x = ax_ref_load(ax_ref_at(in[0], mine));
    x = ax_add(x, ax_ref_load(ax_ref_at(in[0], fixed)));
    AX_IF (ax_eq(core, ax_integer(5))) ax_ref_store(ax_ref_at(in[1], ax_add(ax_mul(core, ax_integer(4)), ax_integer(100))), x);
    AX_IF (ax_and(odd, captured[1]), &x) x = ax_mul(x, ax_real(2));
    ax_ref_store(ax_ref_at(in[1], mine), ax_add(x, ax_convert_element_type(ax_add(ax_mul(kind, ax_integer(8)), ax_and(a, ax_integer(3))), AX_F32)));
    const ax_value next = b, turned = odd;
    b = ax_add(a, ax_add(b, core)), a = next;
    odd = even, even = turned;
  }
}
static AX_BODY(integers) {
  const ax_core_mesh mesh = {.core = "tensorcore", .mesh = {.count = 1, .axis = {{.name = "core", .size = 2}}}};
  const ax_value sum = ax_reduce_sum(in[0], AX_ALL_DIMS, false);
  const ax_value captured[] = {ax_add(ax_convert_element_type(ax_lt(sum, ax_real(-1)), AX_S32), ax_integer(2)), ax_ge(sum, ax_real(0))};
  ax_mpmd_map(AX_LIST(1, &mesh), &AX_CLOSURE(every_integer, 2, 0, captured), NULL, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 8)), out);
}

/* A loop that carries nothing begins with a branch that is known before it: core 0 goes around until its element is 8, core 1 never. */
static AX_BODY(is_short) { out[0] = ax_lt(ax_ref_load(ax_ref_at(((const ax_value *)context)[1], ax_integer(0))), ax_real(8)); }
static AX_BODY(is_negative) { out[0] = ax_lt(ax_ref_load(ax_ref_at(((const ax_value *)context)[1], ax_integer(1))), ax_real(0)); }
static AX_BODY(goes_on) {
  ax_if(ax_eq(ax_axis_index("core"), ax_integer(0)), AX_CLOSURE(is_short, 0, 1, context), AX_CLOSURE(is_negative, 0, 1, context), NULL, AX_LIST(1, out));
}
static AX_BODY(add_one) { ax_ref_add(ax_ref_at(((const ax_value *)context)[1], ax_integer(0)), ax_real(1)); }
static AX_BODY(fill_up) { ax_while(AX_CLOSURE(goes_on, 0, 1, in), AX_CLOSURE(add_one, 0, 0, in), NULL, NULL); }
static AX_BODY(filled_up) {
  const ax_core_mesh mesh = {.core = "tensorcore", .mesh = {.count = 1, .axis = {{.name = "core", .size = 2}}}};
  const ax_kernel_options options = {.aliases = {AX_ALIASES({0, 0})}};
  ax_mpmd_map(AX_LIST(1, &mesh), &AX_FN(fill_up, 2, 0), &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 2)), out);
}

/* Copies by hand through two slots: what these cores signal and wait for is each one's own. */
static AX_BODY(doubled_rows) { /* refs: x, y; slots in and out, their semaphores */
  ax_value first = ax_mul(ax_axis_index("core"), ax_integer(rounds));
  AX_LOOP (i, ax_integer(0), ax_integer(rounds)) {
    ax_value slot = ax_and(i, ax_integer(1)), from = ax_ref_at(in[2], slot), to = ax_ref_at(in[3], slot), came = ax_ref_at(in[4], slot),
             gone = ax_ref_at(in[5], slot);
    ax_copy_start(ax_ref_at(in[0], ax_add(first, i)), from, &(ax_copy_options){.received = &came});
    ax_copy_wait(came, from);
    AX_IF (ax_ge(i, ax_integer(2))) ax_copy_wait(gone, to);
    ax_ref_store(to, ax_mul(ax_ref_load(from), ax_real(2)));
    ax_copy_start(to, ax_ref_at(in[1], ax_add(first, i)), &(ax_copy_options){.received = &gone});
  }
  for (int s = 0; s < 2; s++) ax_copy_wait(ax_ref_at(in[5], ax_integer(s)), ax_ref_at(in[3], ax_integer(s)));
}
static AX_BODY(rows_by_hand) {
  const ax_core_mesh mesh = {.core = "tensorcore", .mesh = {.count = 1, .axis = {{.name = "core", .size = 2}}}};
  const ax_scratch slots = {.type = AX_VMEM(AX_F32, 2, 3)}, semaphores = {.type = ax_dma_semaphore_type(AX_DIMS(2))};
  const ax_kernel_options options = {.scratch = {AX_SCRATCH(slots, slots, semaphores, semaphores)}};
  ax_mpmd_map(AX_LIST(1, &mesh), &AX_FN(doubled_rows, 6, 0), &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 2 * rounds, 3)), out);
}

/* Each device tells those beside it along both axes, in turn; the axis of cores says which of two semaphores. */
static AX_BODY(tell_around) { /* refs: x, y; told[2] */
  const ax_value me = ax_axis_index("d"), e = ax_axis_index("e"), core = ax_axis_index("core");
  AX_LOOP (i, ax_integer(0), ax_integer(6)) {
    ax_value there = ax_rem(ax_add(me, i), ax_integer(4)), beyond = ax_sub(ax_integer(1), e);
    ax_semaphore_signal(ax_ref_at(in[2], ax_integer(0)), ax_integer(1), &(ax_target_core){.axes = "d", .coordinates = {AX_VALUES(there)}});
    ax_semaphore_signal(ax_ref_at(in[2], ax_integer(1)), ax_integer(2), &(ax_target_core){.axes = "e,core", .coordinates = {AX_VALUES(beyond, ax_sub(ax_integer(1), core))}});
    ax_semaphore_wait(ax_ref_at(in[2], ax_integer(0)), ax_integer(1));
    ax_semaphore_wait(ax_ref_at(in[2], ax_integer(1)), ax_integer(2));
  }
  ax_ref_store(ax_ref_at(in[1], core), ax_add(ax_ref_load(ax_ref_at(in[0], core)), ax_convert_element_type(me, AX_F32)));
}
static AX_BODY(telling) {
  const ax_core_mesh mesh = {.core = "tensorcore", .mesh = {.count = 1, .axis = {{.name = "core", .size = 2}}}};
  const ax_scratch told = {.type = ax_semaphore_type(AX_DIMS(2))};
  const ax_kernel_options options = {.scratch = {AX_SCRATCH(told)}};
  ax_mpmd_map(AX_LIST(1, &mesh), &AX_FN(tell_around, 3, 0), &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 2)), out);
}
static AX_BODY(told) {
  const ax_mesh mesh = {.count = 2, .axis = {{.name = "e", .size = 2}, {.name = "d", .size = 4}}};
  ax_shard_map(&mesh, "e+d -> e+d", AX_FN(telling, 1, 1), in, out);
}

static void samples_agree(void **state) {
  (void)state;
  const sample samples[] = {{"plain", {test_plain, 1, 1, NULL}, {AX_TYPE(AX_F32, 4)}, 0},
                                   {"doubled", {test_doubled, 1, 1, NULL}, {AX_TYPE(AX_F32, 3, 2)}, 0},
                                   {"memory", {memory, 1, 2, NULL}, {AX_TYPE(AX_F32, 3, 4)}, 0},
                                   {"both", {both, 1, 1, NULL}, {AX_TYPE(AX_F32, rounds, 3)}, 0},
                                   {"aliased", {aliased, 2, 1, NULL}, {AX_TYPE(AX_F32, 4, 6), AX_TYPE(AX_F32, 6)}, 0},
                                   {"looking", {looking, 1, 1, NULL}, {AX_TYPE(AX_F32, 4)}, 0},
                                   {"warpgroups", {warpgroups, 1, 1, NULL}, {AX_TYPE(AX_F32, 2, 3)}, 0},
                                   {"in_control", {in_control, 1, 2, NULL}, {AX_TYPE(AX_F32, 4, 6)}, 0},
                                   {"gathered", {gathered, 1, 1, NULL}, {AX_TYPE(AX_F32, 16)}, 0},
                                   {"gathered_thrice", {gathered_thrice, 1, 1, NULL}, {AX_TYPE(AX_F32, 8)}, 0},
                                   {"integers", {integers, 1, 1, NULL}, {AX_TYPE(AX_F32, 8)}, 0},
                                   {"filled_up", {filled_up, 1, 1, NULL}, {AX_TYPE(AX_F32, 2)}, 0},
                                   {"rows_by_hand", {rows_by_hand, 1, 1, NULL}, {AX_TYPE(AX_F32, 2 * rounds, 3)}, 0},
                                   {"told", {told, 1, 1, NULL}, {AX_TYPE(AX_F32, 16)}, 0},
                                   {"gathered_there", {gathered_there, 1, 1, NULL}, {AX_TYPE(AX_F32, 8)}, 0}};
  for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) run_sample(&samples[i], i + 1);
}

/* --- What goes wrong is said, under every policy --- */

static AX_BODY(impatient) { /* waits for bytes that nobody sends */
  ax_copy_wait(in[2], in[1]);
  ax_copy(in[0], in[1]);
}
static ax_kernel_options with_semaphore(ax_scratch *scratch) {
  *scratch = (ax_scratch){.type = ax_dma_semaphore_type(AX_DIMS())};
  return (ax_kernel_options){.name = "stuck", .scratch = {AX_LIST(1, scratch)}};
}
static AX_BODY(stuck) {
  ax_scratch scratch;
  const ax_kernel_options options = with_semaphore(&scratch);
  ax_mpmd_map(AX_LIST(1, &test_one_core), &AX_FN(impatient, 3, 0), &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 4)), out);
}

static AX_BODY(one_sided) { /* device 3 signals nobody */
  ax_value me = ax_axis_index("d"), right = right_of("d", 4);
  const ax_target_core to = {.axes = "d", .coordinates = {AX_VALUES(right)}};
  ax_semaphore_signal(ax_barrier_semaphore(),
                      ax_where(ax_eq(me, ax_integer(3)), ax_integer(0), ax_abs(ax_sub(me, ax_sub(me, ax_integer(1))))), &to);
  ax_semaphore_wait(ax_barrier_semaphore(), ax_integer(1));
  ax_copy(in[0], in[1]);
}
static AX_BODY(one_sided_kernel) {
  ax_mpmd_map(AX_LIST(1, &test_one_core), &AX_FN(one_sided, 2, 0), NULL, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 1)), out);
}
static AX_BODY(stuck_ring) {
  const ax_mesh mesh = {.count = 1, .axis = {{.name = "d", .size = 4}}};
  ax_shard_map(&mesh, "d -> d", AX_FN(one_sided_kernel, 1, 1), in, out);
}

static AX_BODY(beyond) {
  ax_value at = ax_convert_element_type(ax_ref_load(ax_ref_at(in[0], ax_integer(0))), AX_S32);
  ax_ref_store(ax_ref_at(in[1], at), ax_real(1));
}
static AX_BODY(out_of_bounds) {
  ax_mpmd_map(AX_LIST(1, &test_one_core), &AX_FN(beyond, 2, 0), NULL, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 4)), out);
}

static AX_BODY(nowhere) {
  ax_value at = ax_convert_element_type(ax_ref_load(ax_ref_at(in[0], ax_integer(0))), AX_S32);
  const ax_target_core to = {.axes = "d", .coordinates = {AX_VALUES(at)}};
  ax_semaphore_signal(ax_barrier_semaphore(), ax_integer(1), &to);
  ax_semaphore_wait(ax_barrier_semaphore(), ax_integer(1));
  ax_copy(in[0], in[1]);
}
static AX_BODY(nowhere_kernel) {
  ax_mpmd_map(AX_LIST(1, &test_one_core), &AX_FN(nowhere, 2, 0), NULL, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 1)), out);
}
static AX_BODY(no_such_device) {
  const ax_mesh mesh = {.count = 1, .axis = {{.name = "d", .size = 4}}};
  ax_shard_map(&mesh, "d -> d", AX_FN(nowhere_kernel, 1, 1), in, out);
}

/* Core 0 reads a semaphore again and again that core 1 would signal, which fails before it does; maybe on another thread. */
static AX_BODY(is_unsignalled) { out[0] = ax_lt(ax_semaphore_read(((const ax_value *)context)[2]), ax_integer(1)); }
static AX_BODY(nothing) {}
static AX_BODY(reads_on) { ax_while(AX_CLOSURE(is_unsignalled, 0, 1, context), AX_FN(nothing, 0, 0), NULL, NULL); }
static AX_BODY(fails_late) {
  ax_fori_loop(ax_integer(0), ax_integer(200000), AX_CLOSURE(add_one, 1, 0, context), NULL, NULL);
  beyond(context, out, NULL);
}
static AX_BODY(one_reads) {
  ax_if(ax_eq(ax_axis_index("core"), ax_integer(1)), AX_CLOSURE(fails_late, 0, 0, in), AX_CLOSURE(reads_on, 0, 0, in), NULL, NULL);
}
static AX_BODY(failing_signaller) {
  const ax_core_mesh mesh = {.core = "tensorcore", .mesh = {.count = 1, .axis = {{.name = "core", .size = 2}}}};
  const ax_scratch scratch = {.type = ax_semaphore_type(AX_DIMS()), .shared = true};
  const ax_kernel_options options = {.scratch = {AX_LIST(1, &scratch)}};
  ax_mpmd_map(AX_LIST(1, &mesh), &AX_FN(one_reads, 3, 0), &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 4)), out);
}

static void fails(ax_fn fn, ax_status wanted, const char *part) {
  const ax_type type = AX_TYPE(AX_F32, 4);
  const float data[] = {9, 9, 9, 9};
  const ax_host_array host = ax_host_view(AX_F32, AX_DIMS(4), data);
  for (uint32_t workers = 1; workers <= 4; workers++) {
    ax_runtime *runtime;
    ax_executable *executable;
    ax_array *x, *y;
    TEST_OK(ax_runtime_create(
        &(ax_runtime_options){.workers = workers, .policy = workers == 3 ? AX_POLICY_SEEDED : AX_POLICY_PARALLEL, .seed = 5},
        &runtime));
    TEST_OK(ax_jit(runtime, fn, &type, NULL, &executable));
    if (workers < 4) test_use_threads(executable);
    else test_use_threads_as_planned(executable);
    for (int i = 0; i < 20; i++) {
      TEST_OK(ax_device_put(runtime, NULL, "", &host, &x));
      ax_status status = ax_run(executable, &x, &y);
      if (status != wanted || strstr(ax_message(), part) == NULL) fail_msg("status %d: %s", (int)status, ax_message());
      ax_array_release(x);
    }
    ax_executable_release(executable);
    ax_runtime_release(runtime);
  }
}

static void failures_are_told(void **state) {
  (void)state;
  fails(AX_FN(stuck, 1, 1), AX_DEADLOCK, "deadlock in the kernel stuck: device 0 waits in copy_wait for 16, of which there are 0");
  fails(AX_FN(stuck_ring, 1, 1), AX_DEADLOCK,
        "deadlock in the kernel kernel: device 0 waits in semaphore_wait for 1, of which there are 0");
  fails(AX_FN(out_of_bounds, 1, 1), AX_INVALID_ARGUMENT, "device 0: ref_slice takes elements 9 to 9 of dimension 0, which has 4");
  fails(AX_FN(failing_signaller, 1, 1), AX_INVALID_ARGUMENT, "device 0, core 1: ref_slice takes elements 9 to 9 of dimension 0, which has 4");
  fails(AX_FN(no_such_device, 1, 1), AX_INVALID_ARGUMENT, "coordinate 9 along \"d\", which has 4");
}

/* --- Again and again: on threads, which meet in other orders each time --- */

typedef struct repeated {
  ax_function function;
  int64_t dims[2];
  uint32_t rank;
} repeated;

static void run_a_thousand_times(const repeated *program, void (*use_threads)(ax_executable *executable)) {
  const ax_type type = ax_array_type(AX_F32, AX_LIST(program->rank, program->dims));
  float data[32], first[32] = {0}, got[32];
  ax_runtime *runtime;
  ax_executable *executable;
  ax_array *x, *y;
  for (int i = 0; i < 32; i++) data[i] = (float)(i * i % 11);
  const ax_host_array host = ax_host_view(AX_F32, AX_LIST(program->rank, program->dims), data);
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 4}, &runtime));
  TEST_OK(ax_jit(runtime, AX_FN(program->function, 1, 1), &type, NULL, &executable));
  use_threads(executable);
  TEST_OK(ax_device_put(runtime, NULL, "", &host, &x));
  for (int run = 0; run < 1000; run++) {
    TEST_OK(ax_run(executable, &x, &y));
    size_t bytes = (size_t)ax_type_elems(ax_array_typeof(y)) * sizeof(float);
    TEST_OK(ax_array_read(y, run == 0 ? first : got, bytes));
    ax_array_release(y);
    if (run > 0) assert_memory_equal(got, first, bytes);
  }
  ax_array_release(x);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
}

static void a_thousand_runs(void **state) {
  (void)state;
  static const repeated programs[] = {
      {gathered, {16}, 1}, {both, {rounds, 3}, 2}, {warpgroups, {2, 3}, 2}, {rows_by_hand, {2 * rounds, 3}, 2}, {told, {16}, 1}};
  for (size_t p = 0; p < AX_COUNT(programs); p++) {
    run_a_thousand_times(&programs[p], test_use_threads);
    run_a_thousand_times(&programs[p], test_use_threads_as_planned);
  }
}

/* --- Many cores: memory grows as their number --- */

enum { many = 1 << 17 }; /* 8 bytes for each two cores would be 128 GiB */

static AX_BODY(tell_next) {
  ax_value me = ax_axis_index("core"),
           next = ax_select_n(ax_eq(me, ax_integer(many - 1)), ax_add(me, ax_integer(1)), ax_full(AX_S32, AX_DIMS(), 0));
  ax_ref_store(ax_ref_at(in[1], me), ax_add(ax_ref_load(ax_ref_at(in[0], me)), ax_real(1)));
  ax_semaphore_signal(in[2], ax_integer(1), &(ax_target_core){.axes = "core", .coordinates = {AX_VALUES(next)}});
  ax_semaphore_wait(in[2], ax_integer(1));
}
static AX_BODY(many_cores) {
  const ax_core_mesh mesh = {.core = "tensorcore", .mesh = {.count = 1, .axis = {{.name = "core", .size = many}}}};
  const ax_scratch scratch = {.type = ax_semaphore_type(AX_DIMS())};
  const ax_kernel_options options = {.scratch = {AX_SCRATCH(scratch)}};
  ax_mpmd_map(AX_LIST(1, &mesh), &AX_FN(tell_next, 3, 0), &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, many)), out);
}

static void cores_cost_as_many(void **state) {
  (void)state;
  static float data[many];
  for (int i = 0; i < many; i++) data[i] = (float)i;
  const ax_host_array x = ax_host_view(AX_F32, AX_DIMS(many), data);
  ax_host_array y;
  TEST_OK(ax_apply(NULL, AX_FN(many_cores, 1, 1), &x, &y));
  for (int i = 0; i < many; i++)
    if (((const float *)y.data)[i] != (float)i + 1) fail_msg("[%d] is %g", i, (double)((const float *)y.data)[i]);
  ax_host_array_release(&y);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(samples_agree), cmocka_unit_test(failures_are_told),
                                     cmocka_unit_test(a_thousand_runs), cmocka_unit_test(cores_cost_as_many)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
