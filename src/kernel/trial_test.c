/* Kernels whose slices begin where the data says, and kernels that copy by hand, run as plain programs that say whether they were right:
   random ones give what the machine gives, to the bit, and what fails in a run step by step fails in the same way. */
#include <string.h>

#include "axle/axle.h"
#include "ir/prim.h"
#include "kernel/beside.h"
#include "prim/prims.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

static int64_t number(test_random *random, int64_t from, int64_t to) {
  return from + (int64_t)test_random_below(random, to - from + 1);
}

static uint32_t drawn, tried, failed;

static void count(const ax_program *program) {
  for (uint32_t e = 0; e < program->eqn_count; e++) {
    const ax_eqn *eqn = &program->eqns[e];
    ax_type types[8];
    ax_beside found;
    if (eqn->prim != &ax_prim_kernel_call) continue;
    const uint32_t consts = (uint32_t)((const ax_kernel_params *)eqn->params)->consts;
    for (uint32_t i = 0; i < eqn->in_count; i++) types[i] = program->types[eqn->in[i]];
    TEST_OK(ax_beside_find(eqn->params, types + consts, eqn->in_count - consts, &found));
    tried += ax_kernel_is_regular(eqn->params, types + consts, eqn->in_count - consts, &found) == AX_REGULAR_TRIED && !found.copies_more;
    ax_beside_deinit(&found);
    drawn++;
  }
}

static void both_ways(ax_program *program, ax_tensor *const *in) { failed += test_as_reference(program, in, true) != AX_OK; }

/* --- Slices: x [rows, columns], at [n, m] s32: where they begin --- */

typedef struct sliced {
  int64_t n, m, rows, columns, size; /* the grid is n; m slices of `size` rows a point */
  bool everywhere;  /* the result's blocks are slices too, at numbers of the grid */
  bool sometimes;   /* slices at even places alone, in a branch */
  bool parallel, beyond;
} sliced;

static sliced draw_slices(uint64_t seed) {
  test_random random = {seed};
  sliced s = {.n = number(&random, 1, 5), .m = number(&random, 1, 3), .rows = number(&random, 3, 9), .columns = number(&random, 1, 3),
              .size = number(&random, 1, 3)};
  s.everywhere = number(&random, 0, 2) == 0;
  s.sometimes = number(&random, 0, 2) == 0;
  s.beyond = number(&random, 0, 2) == 0;
  return s;
}

typedef struct at_point {
  const sliced *s;
  const ax_value *refs; /* x, at, y */
  ax_value start, sum;
} at_point;

static ax_value slice_of(const at_point *a) {
  const ax_value starts[] = {a->start, ax_integer(0)};
  const int64_t sizes[] = {a->s->size, a->s->columns};
  return ax_ref_load(ax_ref_slice(a->refs[0], AX_LIST(2, starts), AX_LIST(2, sizes)));
}

static AX_BODY_OF(add_slice, const at_point, a) { out[0] = ax_add(a->sum, slice_of(a)); }
static AX_BODY_OF(add_none, const at_point, a) { out[0] = a->sum; }

static AX_BODY_OF(one_slice, const at_point, around) {
  at_point a = *around;
  const ax_value places[] = {ax_program_id(0), in[0]};
  a.start = ax_reshape(ax_ref_load(ax_ref_slice(a.refs[1], places, AX_DIMS(1, 1))), AX_DIMS());
  a.sum = in[1];
  if (a.s->sometimes)
    ax_if(ax_eq(ax_rem(a.start, ax_integer(2)), ax_integer(0)), AX_CLOSURE(add_slice, 0, 1, &a), AX_CLOSURE(add_none, 0, 1, &a), NULL, out);
  else out[0] = ax_add(a.sum, slice_of(&a));
}

static AX_BODY_OF(point, const sliced, s) {
  const at_point a = {.s = s, .refs = in};
  const int64_t sizes[] = {s->size, s->columns};
  ax_value sum = ax_full(AX_F32, AX_LIST(2, sizes), 0);
  ax_fori_loop(ax_integer(0), ax_integer(s->m), AX_CLOSURE(one_slice, 2, 1, (void *)(uintptr_t)&a), &sum, &sum);
  const ax_value places[] = {ax_mul(ax_program_id(0), ax_integer(s->size)), ax_integer(0)};
  ax_ref_store(s->everywhere ? ax_ref_slice(in[2], AX_LIST(2, places), AX_LIST(2, sizes)) : in[2], sum);
}

static AX_BODY(by_number) {
  out[0] = in[0];
  out[1] = ax_integer(0);
}

static AX_BODY_OF(slices, const sliced, s) {
  const ax_block_spec whole = {0}, block = {.block = {AX_DIMS(s->size, s->columns)}, .index_map = by_number};
  const ax_block_spec result = s->everywhere ? whole : block;
  ax_kernel_call((&(ax_kernel){.grid = {AX_DIMS(s->n)}, .in_specs = {AX_BLOCK_SPECS(whole, whole)}, .out_specs = {AX_BLOCK_SPECS(result)},
                              .outs = {AX_TYPES(AX_TYPE(AX_F32, s->n * s->size, s->columns))}}),
                 AX_CLOSURE(point, 3, 0, (void *)(uintptr_t)s), AX_LIST(2, in), out);
}

static void one_of_slices(uint64_t seed, bool show) {
  sliced s = draw_slices(seed);
  test_random random = {seed + 99};
  static const double strange[] = {-1, -2, 100, -2147483648.0, 2147483647, 8};
  const ax_type types[] = {AX_TYPE(AX_F32, s.rows, s.columns), AX_TYPE(AX_S32, s.n, s.m)};
  ax_tensor *in[] = {test_random_tensor(&random, types[0], -9, 9), test_random_tensor(&random, types[1], 0, 1)};
  for (int64_t e = 0; e < s.n * s.m; e++) test_set(in[1], e, (double)number(&random, 0, s.rows - s.size));
  if (s.beyond) test_set(in[1], number(&random, 0, s.n * s.m - 1), strange[number(&random, 0, 5)]);
  ax_program *program = test_trace(slices, &s, types, 2, 1);
  if (show) test_show_program(program);
  count(program);
  if (s.beyond) both_ways(program, in);
  else test_every_way(program, in, 0, seed, __FILE__, __LINE__);
  test_release(in, 2);
  ax_program_release(program);
}

static void random_slices(void **state) {
  (void)state;
  drawn = tried = failed = 0;
  test_each_seed(90, one_of_slices);
  print_message("%u kernels, %u tried as plain programs, %u that fail\n", drawn, tried, failed);
  if (drawn >= 90) assert_true(tried > 80 && failed > 10);
}

/* On two devices, each with numbers of its own: one may be right, and the other not. */
static void one_of_devices(uint64_t seed, bool show) {
  sliced s = draw_slices(seed);
  test_random random = {seed + 99};
  const ax_type types[] = {AX_TYPE(AX_F32, s.rows, s.columns), AX_TYPE(AX_S32, 2 * s.n, s.m)};
  const test_map map = {.mesh = "d=2", .in_specs = {"", "d"}, .out_specs = {"d"}, .body = slices, .context = &s};
  ax_tensor *in[] = {test_random_tensor(&random, types[0], -9, 9), test_random_tensor(&random, types[1], 0, 1)};
  for (int64_t e = 0; e < 2 * s.n * s.m; e++) test_set(in[1], e, (double)number(&random, 0, s.rows - s.size));
  if (s.beyond) test_set(in[1], number(&random, 0, 2 * s.n * s.m - 1), 100);
  ax_program *program = test_trace_map(&map, types);
  if (show) test_show_program(program);
  if (s.beyond) both_ways(program, in);
  else test_every_way(program, in, 0, seed, __FILE__, __LINE__);
  test_release(in, 2);
  ax_program_release(program);
}

static void on_devices(void **state) {
  (void)state;
  test_each_seed(40, one_of_devices);
}

/* --- Copies by hand: a pipeline of one core over blocks, with slots --- */

typedef enum hand_slip { HAND_RIGHT, WAITS_TWICE, WAITS_FIRST, WRONG_SEMAPHORE, BEYOND_END, STARTS_LESS, hand_slips } hand_slip;

typedef struct hand {
  int64_t blocks, rows, columns, slots;
  bool predicate; /* of the copy ahead; otherwise a branch */
  bool sent;      /* the copies out are awaited by what was sent */
  hand_slip slip;
} hand;

typedef struct piped {
  const hand *h;
  const ax_value *refs; /* x, y, slots in, slots out, semaphores in and out */
} piped;

static ax_value rows_at(const piped *p, ax_value ref, ax_value step) {
  const ax_value starts[] = {ax_mul(step, ax_integer(p->h->rows)), ax_integer(0)};
  const int64_t sizes[] = {p->h->rows, p->h->columns};
  return ax_ref_slice(ref, AX_LIST(2, starts), AX_LIST(2, sizes));
}

static void start_in(const piped *p, ax_value step, const ax_value *predicate) {
  const ax_value slot = ax_rem(step, ax_integer(p->h->slots)), semaphore = ax_ref_at(p->refs[4], slot);
  ax_copy_start(rows_at(p, p->refs[0], step), ax_ref_at(p->refs[2], slot),
                &(ax_copy_options){.received = (ax_value *)(uintptr_t)&semaphore, .predicate = (ax_value *)(uintptr_t)predicate});
}

typedef struct ahead {
  const piped *p;
  ax_value step;
} ahead;

static AX_BODY_OF(start_ahead, const ahead, a) { start_in(a->p, a->step, NULL); }
static AX_BODY(leave) {}

typedef struct waiting {
  ax_value semaphore, ref;
} waiting;

static AX_BODY_OF(await, const waiting, w) { ax_copy_wait(w->semaphore, w->ref); }

static AX_BODY_OF(hand_step, const piped, p) {
  const hand *h = p->h;
  const ax_value step = in[0], slot = ax_rem(step, ax_integer(h->slots)), x = ax_ref_at(p->refs[2], slot), y = ax_ref_at(p->refs[3], slot),
                 arrived = ax_ref_at(p->refs[4], slot), gone = ax_ref_at(p->refs[5], slot);
  const ahead next = {p, ax_add(step, ax_integer(h->slots - 1))};
  const ax_value more = ax_lt(next.step, ax_integer(h->blocks + (h->slip == BEYOND_END ? 1 : h->slip == STARTS_LESS ? -1 : 0)));
  const waiting before = {gone, y};
  if (h->predicate) {
    const ahead last = {p, ax_min(next.step, ax_integer(h->blocks - 1))}; /* a view is checked whatever the predicate says */
    start_in(p, h->slip == BEYOND_END ? next.step : last.step, &more);
  } else ax_if(more, AX_CLOSURE(start_ahead, 0, 0, (void *)(uintptr_t)&next), AX_FN(leave, 0, 0), NULL, NULL);
  ax_copy_wait(h->slip == WRONG_SEMAPHORE ? gone : arrived, x);
  if (h->slip == WAITS_TWICE) ax_copy_wait(arrived, x);
  if (h->slip != WAITS_FIRST)
    ax_if(ax_ge(step, ax_integer(h->slots)), AX_CLOSURE(await, 0, 0, (void *)(uintptr_t)&before), AX_FN(leave, 0, 0), NULL, NULL);
  else ax_copy_wait(gone, y);
  ax_ref_store(y, ax_mul(ax_ref_load(x), ax_add(ax_convert_element_type(step, AX_F32), ax_real(1))));
  ax_copy_start(y, rows_at(p, p->refs[1], step),
                h->sent ? &(ax_copy_options){.sent = (ax_value *)(uintptr_t)&gone} : &(ax_copy_options){.received = (ax_value *)(uintptr_t)&gone});
}

static AX_BODY_OF(hand_body, const hand, h) {
  const piped p = {h, in};
  for (int64_t s = 0; s + 1 < h->slots && s < h->blocks; s++) start_in(&p, ax_full_i64(AX_S32, AX_DIMS(), s), NULL);
  ax_fori_loop(ax_integer(0), ax_integer(h->blocks), AX_CLOSURE(hand_step, 1, 0, (void *)(uintptr_t)&p), NULL, NULL);
  for (int64_t s = 0; s < h->slots && s < h->blocks; s++) ax_copy_wait(ax_ref_at(in[5], ax_integer(s)), ax_ref_at(in[3], ax_integer(s)));
}

static AX_BODY_OF(by_hand, const hand, h) {
  static const ax_core_mesh core = {.core = "tensorcore", .space = AX_SPACE_HBM};
  const ax_scratch slots = {.type = AX_VMEM(AX_F32, h->slots, h->rows, h->columns)}, arrived = {.type = ax_dma_semaphore_type(AX_DIMS(h->slots))};
  const ax_scratch scratch[] = {slots, slots, arrived, arrived};
  const ax_kernel_options options = {.scratch = {AX_LIST(4, scratch)}};
  ax_mpmd_map(AX_LIST(1, &core), &AX_CLOSURE(hand_body, 6, 0, (void *)(uintptr_t)h), &options, AX_LIST(1, in),
              AX_TYPES(AX_TYPE(AX_F32, h->blocks * h->rows, h->columns)), out);
}

static void one_by_hand(uint64_t seed, bool show) {
  test_random random = {seed};
  hand h = {.blocks = number(&random, 1, 6), .rows = number(&random, 1, 3), .columns = number(&random, 1, 3), .slots = number(&random, 2, 3),
            .predicate = number(&random, 0, 1) == 0, .sent = number(&random, 0, 1) == 0};
  if (number(&random, 0, 1) == 0) h.slip = (hand_slip)number(&random, 1, hand_slips - 1);
  const ax_type type = AX_TYPE(AX_F32, h.blocks * h.rows, h.columns);
  ax_tensor *in = test_random_tensor(&random, type, -9, 9);
  ax_program *program = test_trace(by_hand, &h, &type, 1, 1);
  if (show) test_show_program(program);
  count(program);
  if (h.slip == HAND_RIGHT) test_every_way(program, &in, 0, seed, __FILE__, __LINE__);
  else both_ways(program, &in);
  test_release(&in, 1);
  ax_program_release(program);
}

static void copies_by_hand(void **state) {
  (void)state;
  drawn = tried = failed = 0;
  test_each_seed(90, one_by_hand);
  print_message("%u kernels, %u tried as plain programs, %u that fail\n", drawn, tried, failed);
  if (drawn >= 90) assert_true(tried > 80 && failed > 10);
}

/* --- Copies by hand at the points of a grid: side by side where it is AX_PARALLEL, each with slots and semaphores of its own
   --- */

typedef struct copied {
  int64_t points, rows, columns, rounds; /* each point brings its rows in so many times, into two slots in turn */
  bool parallel;
  hand_slip slip;
} copied;

typedef struct bring {
  const copied *c;
  const ax_value *refs; /* x, y, slots, semaphores */
} bring;

static AX_BODY_OF(bring_in, const bring, b) {
  const copied *c = b->c;
  const ax_value slot = ax_rem(in[0], ax_integer(2)), x = ax_ref_at(b->refs[2], slot), arrived = ax_ref_at(b->refs[3], slot);
  const ax_value at = ax_mul(ax_program_id(0), ax_integer(c->rows));
  const ax_value starts[] = {c->slip == BEYOND_END ? ax_add(at, in[0]) : at, ax_integer(0)};
  const int64_t sizes[] = {c->rows, c->columns};
  const ax_value other = ax_ref_at(b->refs[3], ax_sub(ax_integer(1), slot));
  if (c->slip == WAITS_FIRST) ax_copy_wait(arrived, x);
  ax_copy_start(ax_ref_slice(b->refs[0], AX_LIST(2, starts), AX_LIST(2, sizes)), x,
                &(ax_copy_options){.received = (ax_value *)(uintptr_t)&arrived});
  ax_copy_wait(c->slip == WRONG_SEMAPHORE ? other : arrived, x);
  if (c->slip == WAITS_TWICE) ax_copy_wait(arrived, x);
  ax_ref_add(b->refs[1], ax_mul(ax_ref_load(x), ax_add(ax_convert_element_type(in[0], AX_F32), ax_real(1))));
}

static AX_BODY_OF(copied_point, const copied, c) {
  const bring b = {c, in};
  ax_ref_store(in[1], ax_real(0));
  ax_fori_loop(ax_integer(0), ax_integer(c->rounds), AX_CLOSURE(bring_in, 1, 0, (void *)(uintptr_t)&b), NULL, NULL);
}

static AX_BODY_OF(copied_blocks, const copied, c) {
  const ax_block_spec whole = {.space = AX_SPACE_HBM}, block = {.block = {AX_DIMS(c->rows, c->columns)}, .index_map = by_number};
  const ax_scratch scratch[] = {{.type = AX_VMEM(AX_F32, 2, c->rows, c->columns)}, {.type = ax_dma_semaphore_type(AX_DIMS(2))}};
  const ax_semantics semantics = c->parallel ? AX_PARALLEL : AX_ARBITRARY;
  ax_kernel_call((&(ax_kernel){.grid = {AX_DIMS(c->points)},
                               .semantics = {AX_LIST(1, &semantics)},
                               .in_specs = {AX_BLOCK_SPECS(whole)},
                               .out_specs = {AX_BLOCK_SPECS(block)},
                               .outs = {AX_TYPES(AX_TYPE(AX_F32, c->points * c->rows, c->columns))},
                               .options = {.scratch = {AX_LIST(2, scratch)}}}),
                 AX_CLOSURE(copied_point, 4, 0, (void *)(uintptr_t)c), AX_LIST(1, in), out);
}

static uint32_t large_copies; /* which a run leaves to steps where points come one after the other */

static void one_of_copied(uint64_t seed, bool show) {
  test_random random = {seed};
  copied c = {.points = number(&random, 2, 6),
              .rows = number(&random, 1, 3),
              .columns = number(&random, 1, 3),
              .rounds = number(&random, 1, 3),
              .parallel = number(&random, 0, 1) == 0};
  if (number(&random, 0, 1) == 0) c.columns += 2100;
  if (number(&random, 0, 1) == 0) c.slip = (hand_slip)number(&random, 1, BEYOND_END);
  const ax_type type = AX_TYPE(AX_F32, c.points * c.rows, c.columns);
  ax_tensor *in = test_random_tensor(&random, type, -9, 9);
  ax_program *program = test_trace(copied_blocks, &c, &type, 1, 1);
  if (show) test_show_program(program);
  count(program);
  large_copies += c.columns > 2100 && !c.parallel;
  if (c.slip == HAND_RIGHT)
    test_every_way(program, &in, 0, seed, __FILE__, __LINE__);
  else
    both_ways(program, &in);
  test_release(&in, 1);
  ax_program_release(program);
}

static void copies_side_by_side(void **state) {
  (void)state;
  drawn = tried = failed = large_copies = 0;
  test_each_seed(90, one_of_copied);
  print_message("%u kernels, %u tried as plain programs, %u with large copies in order, %u that fail\n", drawn, tried, large_copies,
                failed);
  assert_int_equal(tried + large_copies, drawn);
  if (drawn >= 90) assert_true(large_copies > 10 && failed > 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_slices), cmocka_unit_test(on_devices),
                                     cmocka_unit_test(copies_by_hand), cmocka_unit_test(copies_side_by_side)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
