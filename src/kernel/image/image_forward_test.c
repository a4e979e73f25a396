/* Stores that go where copies take them: where it is done, and where somebody could tell and it must not be. All is compared to the
   bit with the machine. */
#include <stdio.h>

#include "axle/axle.h"
#include "kernel/image/image.h"
#include "prim/prims.h"
#include "support/cmocka.h"
#include "support/run.h"

enum { rows = 4, columns = 37, slots = 2 };

static const ax_core_mesh one_core = {.core = "tensorcore"};

/* --- How many segments forward --- */

static uint32_t forwarding(const ax_program *program, const ax_eqn *eqn, ax_runtime *runtime) {
  const ax_kernel_params *params = eqn->params;
  static const ax_axes none;
  uint32_t numbers[8] = {0}, results[8] = {0}, count = 0;
  ax_type types[8];
  ax_image *image;
  for (uint32_t i = 0; i < eqn->in_count; i++) types[i] = program->types[eqn->in[i]], numbers[i] = i;
  for (uint32_t k = 0; k < eqn->out_count; k++) results[k] = eqn->in_count + k;
  const ax_image_memory memory = {numbers, results, eqn->in_count + eqn->out_count};
  TEST_OK(ax_image_create(eqn, types, &program->axes, &none, false, &memory, NULL, runtime, &image));
  for (uint32_t b = 0; b < params->bodies.count; b++)
    for (uint32_t i = 0; i < image->bodies[b].op_count; i++) count += image->bodies[b].ops[i].forwards > 0;
  ax_image_release(image);
  return count;
}

static void expect(const char *name, const ax_program *program, uint32_t wanted) {
  ax_runtime *runtime;
  uint32_t made = 0;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 1}, &runtime));
  for (uint32_t i = 0; i < program->eqn_count; i++)
    if (program->eqns[i].prim == &ax_prim_kernel_call) made += forwarding(program, &program->eqns[i], runtime);
  ax_runtime_release(runtime);
  if (made != wanted) fail_msg("%s: %u segments forward its stores, not %u", name, made, wanted);
}

/* --- Kernels that store and copy: refs x, y, v[slots, columns], semaphore, y as the operand that it was; each does one thing for
   each row --- */

typedef struct forwarder {
  const char *name;
  ax_function step; /* (row, carried slot) -> (carried slot), in the refs */
  uint32_t forwards;
} forwarder;

static ax_value row_of(ax_value ref, ax_value row) { return ax_ref_at(ref, row); }
static ax_value twice(ax_value x) { return ax_add(ax_mul(x, ax_real(2)), ax_real(1)); }

/* predicate NULL: always. */
static void copy(const ax_value *ref, ax_value from, ax_value to, const ax_value *predicate) {
  ax_copy_start(
      from, to,
      &(ax_copy_options){.received = predicate == NULL ? &ref[3] : NULL, .predicate = predicate, .grouped = predicate != NULL});
  if (predicate == NULL) ax_copy_wait(ref[3], to);
  ax_copy_commit_group();
  ax_copy_wait_groups(0, false);
}

typedef struct round_of {
  const forwarder *l;
  const ax_value *ref;
} round_of;

static AX_BODY(plain) {
  const ax_value *ref = context;
  ax_value slot = ax_ref_at(ref[2], ax_integer(0));
  ax_ref_store(slot, twice(ax_ref_load(row_of(ref[0], in[0]))));
  copy(ref, slot, row_of(ref[1], in[0]), NULL);
  out[0] = in[1];
}

/* The slot's view is made again, from a number that goes round; a hint in between. */
static AX_BODY(made_again) {
  const ax_value *ref = context;
  ax_ref_store(ax_ref_at(ref[2], in[1]), twice(ax_ref_load(row_of(ref[0], in[0]))));
  ax_commit_smem();
  copy(ref, ax_ref_at(ref[2], in[1]), row_of(ref[1], in[0]), NULL);
  out[0] = ax_sub(ax_integer(1), in[1]);
}

/* By a copy that has a semaphore of its own. */
static AX_BODY(scoped) {
  const ax_value *ref = context;
  ax_value slot = ax_ref_at(ref[2], ax_integer(0));
  ax_ref_store(slot, twice(ax_ref_load(row_of(ref[0], in[0]))));
  ax_copy(slot, row_of(ref[1], in[0]));
  out[0] = in[1];
}

/* .. the other slot, which has been stored before */
static AX_BODY(other_slot) {
  const ax_value *ref = context;
  ax_value other = ax_sub(ax_integer(1), in[1]);
  ax_ref_store(ax_ref_at(ref[2], other), twice(ax_ref_load(row_of(ref[0], in[0]))));
  ax_ref_store(ax_ref_at(ref[2], in[1]), ax_neg(ax_ref_load(row_of(ref[0], in[0]))));
  copy(ref, ax_ref_at(ref[2], other), row_of(ref[1], in[0]), NULL);
  out[0] = other;
}

/* What was stored a round before. */
static AX_BODY(round_before) {
  const ax_value *ref = context;
  ax_value other = ax_sub(ax_integer(1), in[1]), first = ax_eq(in[0], ax_integer(0));
  ax_ref_store(ax_ref_at(ref[2], in[1]), twice(ax_ref_load(row_of(ref[0], in[0]))));
  ax_value from = ax_select_n(first, other, in[1]);
  copy(ref, ax_ref_at(ref[2], from), row_of(ref[1], in[0]), NULL);
  out[0] = other;
}

static AX_BODY(read_later) {
  plain(in, out, context);
  const ax_value *ref = context;
  ax_value at = row_of(ref[1], in[0]);
  ax_ref_store(at, ax_add(ax_ref_load(at), ax_ref_load(ax_ref_at(ref[2], ax_integer(0)))));
}

static AX_BODY(added_to) {
  const ax_value *ref = context;
  ax_value slot = ax_ref_at(ref[2], ax_integer(0));
  ax_ref_store(slot, twice(ax_ref_load(row_of(ref[0], in[0]))));
  ax_ref_add(slot, ax_ref_load(row_of(ref[0], in[0])));
  copy(ref, slot, row_of(ref[1], in[0]), NULL);
  out[0] = in[1];
}

static AX_BODY(masked) {
  const ax_value *ref = context;
  ax_value slot = ax_ref_at(ref[2], ax_integer(0)), x = ax_ref_load(row_of(ref[0], in[0]));
  ax_ref_store(slot, twice(x));
  ax_ref_store_masked(slot, ax_gt(x, ax_real(3)), ax_real(-1));
  copy(ref, slot, row_of(ref[1], in[0]), NULL);
  out[0] = in[1];
}

/* Before the loop all of the slot was stored; here the half of it. */
static AX_BODY(half) {
  const ax_value *ref = context;
  ax_value slot = ax_ref_at(ref[2], ax_integer(0)), zero = ax_integer(0);
  ax_ref_store(ax_ref_slice(slot, &zero, AX_DIMS(columns / 2)),
               twice(ax_slice(ax_ref_load(row_of(ref[0], in[0])), AX_DIMS(0), AX_DIMS(columns / 2), NULL)));
  copy(ref, slot, row_of(ref[1], in[0]), NULL);
  out[0] = in[1];
}

/* The half of what is stored. */
static AX_BODY(half_taken) {
  const ax_value *ref = context;
  ax_value slot = ax_ref_at(ref[2], ax_integer(0)), zero = ax_integer(0);
  ax_ref_store(slot, twice(ax_ref_load(row_of(ref[0], in[0]))));
  ax_value at = row_of(ref[1], in[0]);
  ax_ref_store(at, ax_real(5));
  copy(ref, ax_ref_slice(slot, &zero, AX_DIMS(columns / 2)), ax_ref_slice(at, &zero, AX_DIMS(columns / 2)), NULL);
  out[0] = in[1];
}

static AX_BODY(taken_twice) {
  const ax_value *ref = context;
  plain(in, out, context);
  copy(ref, ax_ref_at(ref[2], ax_integer(0)), row_of(ref[1], ax_sub(ax_integer(rows - 1), in[0])), NULL);
}

/* Into the slot too. */
static AX_BODY(copied_to) {
  const ax_value *ref = context;
  copy(ref, row_of(ref[0], in[0]), ax_ref_at(ref[2], ax_integer(1)), NULL);
  plain(in, out, context);
}

static AX_BODY(one_way) { ax_ref_store(ax_ref_at(((const ax_value *)context)[2], ax_integer(0)), twice(in[0])); }
static AX_BODY(other_way) { ax_ref_store(ax_ref_at(((const ax_value *)context)[2], ax_integer(0)), ax_neg(in[0])); }
static AX_BODY(in_branches) {
  const ax_value *ref = context;
  ax_value x = ax_ref_load(row_of(ref[0], in[0]));
  ax_value slot = ax_ref_at(ref[2], ax_integer(0));
  ax_if(ax_eq(in[1], ax_integer(0)), AX_CLOSURE(one_way, 1, 0, context), AX_CLOSURE(other_way, 1, 0, context), &x, NULL);
  copy(ref, slot, row_of(ref[1], in[0]), NULL);
  out[0] = ax_sub(ax_integer(1), in[1]);
}

/* A copy that is made every second time only; the rest of the result is what it was. */
static AX_BODY(at_times) {
  const ax_value *ref = context;
  ax_value slot = ax_ref_at(ref[2], ax_integer(0)), now = ax_eq(in[1], ax_integer(1));
  ax_ref_store(slot, twice(ax_ref_load(row_of(ref[0], in[0]))));
  copy(ref, slot, row_of(ref[1], in[0]), &now);
  out[0] = ax_sub(ax_integer(1), in[1]);
}

/* .. by what is stored */
static AX_BODY(if_high) {
  const ax_value *ref = context;
  ax_value slot = ax_ref_at(ref[2], ax_integer(0)), x = ax_ref_load(row_of(ref[0], in[0])),
           high = ax_gt(ax_reduce_max(x, AX_DIMS(0), false), ax_real(6.5));
  ax_ref_store(slot, twice(x));
  copy(ref, slot, row_of(ref[1], in[0]), &high);
  out[0] = in[1];
}

/* The old contents of where it goes are what is stored. */
static AX_BODY(in_place) {
  const ax_value *ref = context;
  ax_value slot = ax_ref_at(ref[2], ax_integer(0)), at = row_of(ref[1], in[0]);
  ax_ref_store(slot, ax_rev(twice(ax_ref_load(row_of(ref[4], in[0]))), AX_DIMS(0)));
  copy(ref, slot, at, NULL);
  out[0] = in[1];
}

/* .. are stored somewhere else in the meantime, by a copy */
static AX_BODY(old_kept) {
  const ax_value *ref = context;
  ax_value slot = ax_ref_at(ref[2], ax_integer(0)), at = row_of(ref[1], in[0]);
  ax_ref_store(slot, twice(ax_ref_load(row_of(ref[0], in[0]))));
  copy(ref, at, row_of(ref[1], ax_integer(rows - 1)), NULL);
  copy(ref, slot, at, NULL);
  out[0] = in[1];
}

/* .. are loaded after the store */
static AX_BODY(old_loaded) {
  const ax_value *ref = context;
  ax_value slot = ax_ref_at(ref[2], ax_integer(0)), at = row_of(ref[1], in[0]), last = row_of(ref[1], ax_integer(rows - 1));
  ax_ref_store(slot, twice(ax_ref_load(row_of(ref[0], in[0]))));
  ax_ref_store(last, ax_add(ax_ref_load(last), ax_ref_load(at)));
  copy(ref, slot, at, NULL);
  out[0] = in[1];
}

/* Something else is stored there first. */
static AX_BODY(stored_there) {
  const ax_value *ref = context;
  ax_value slot = ax_ref_at(ref[2], ax_integer(0)), at = row_of(ref[1], in[0]), x = ax_ref_load(row_of(ref[0], in[0]));
  ax_ref_store(at, ax_neg(x));
  ax_ref_store(slot, twice(x));
  copy(ref, slot, at, NULL);
  out[0] = in[1];
}

/* .. after what is copied */
static AX_BODY(stored_after) {
  const ax_value *ref = context;
  ax_value slot = ax_ref_at(ref[2], ax_integer(0)), at = row_of(ref[1], in[0]), x = ax_ref_load(row_of(ref[0], in[0]));
  ax_ref_store(slot, twice(x));
  ax_ref_store(at, ax_neg(x));
  copy(ref, slot, at, NULL);
  out[0] = in[1];
}

static AX_BODY(begin_round) {
  const round_of *r = context;
  r->l->step(in, out, (void *)(uintptr_t)r->ref);
}
static AX_BODY(kernel_body) {
  const ax_value refs[] = {in[0], in[2], in[3], in[4], in[1]};
  const round_of r = {context, refs};
  ax_value slot = ax_convert_element_type(ax_full(AX_F32, AX_DIMS(), 0), AX_S32), end[1];
  for (int64_t s = 0; s < slots; s++) ax_ref_store(ax_ref_at(refs[2], ax_integer(s)), ax_real(100 + (double)s));
  ax_fori_loop(ax_integer(0), ax_integer(rows), AX_CLOSURE(begin_round, 2, 1, &r), &slot, end);
}
static AX_BODY(kernel) {
  const ax_scratch scratch[] = {{.type = AX_VMEM(AX_F32, slots, columns)}, {.type = ax_dma_semaphore_type(AX_DIMS())}};
  const ax_kernel_options options = {.scratch = {AX_LIST(2, scratch)}, .aliases = {AX_ALIASES({1, 0})}};
  ax_mpmd_map(AX_LIST(1, &one_core), &AX_CLOSURE(kernel_body, 5, 0, context), &options, AX_LIST(2, in), AX_TYPES(AX_TYPE(AX_F32, rows, columns)),
              out);
}

static void every_way(const char *name, ax_fn fn, const ax_type *types, uint32_t forwards) {
  ax_program *program;
  ax_tensor *in[4] = {NULL};
  uint64_t random = 7;
  if (ax_trace(fn, types, &program) != AX_OK) fail_msg("%s: %s", name, ax_message());
  if (forwards != AX_NONE) expect(name, program, forwards);
  for (uint32_t i = 0; i < fn.in_count; i++) {
    TEST_OK(ax_tensor_create(&types[i], &in[i]));
    for (int64_t k = 0; k < ax_type_elems(&types[i]); k++) ((float *)in[i]->data)[k] = (float)(ax_next_random(&random) % 64) / 8;
  }
  TEST_EVERY_WAY(program, in, 0);
  for (uint32_t i = 0; i < fn.in_count; i++) ax_tensor_release(in[i]);
  ax_program_release(program);
}

static void who_forwards(void **state) {
  (void)state;
  static const forwarder all[] = {{"plain", plain, 1},
                               {"made_again", made_again, 1},
                               {"scoped", scoped, 1},
                               {"other_slot", other_slot, 0},
                               {"round_before", round_before, 0},
                               {"read_later", read_later, 0},
                               {"added_to", added_to, 0},
                               {"masked", masked, 0},
                               {"half", half, 0},
                               {"half_taken", half_taken, 0},
                               {"taken_twice", taken_twice, 0},
                               {"copied_to", copied_to, 0},
                               {"in_branches", in_branches, 0},
                               {"at_times", at_times, 1},
                               {"if_high", if_high, 0},
                               {"in_place", in_place, 1}, /* but not where it would be seen: its addresses meet */
                               {"old_kept", old_kept, 0},
                               {"old_loaded", old_loaded, 0},
                               {"stored_there", stored_there, 1}, /* likewise */
                               {"stored_after", stored_after, 1}};
  const ax_type type = AX_TYPE(AX_F32, rows, columns);
  for (size_t i = 0; i < AX_COUNT(all); i++)
    every_way(all[i].name, AX_CLOSURE(kernel, 2, 1, (void *)(uintptr_t)&all[i]), (const ax_type[]){type, type}, all[i].forwards);
}

/* --- Several cores, other bodies --- */

/* What one stores and copies another loads, when it has been told: it is scratch of both. */
static AX_BODY(maker) {
  ax_ref_store(in[2], twice(ax_ref_load(in[0])));
  ax_copy_start(in[2], in[1], &(ax_copy_options){.received = &in[3]});
  ax_copy_wait(in[3], in[1]);
  ax_semaphore_signal(in[4], ax_integer(1), NULL);
}
static AX_BODY(reader) {
  ax_semaphore_wait(in[4], ax_integer(1));
  ax_ref_store(in[1], ax_neg(ax_ref_load(in[2])));
}
static AX_BODY(read_elsewhere) {
  const ax_core_mesh meshes[] = {{.core = "maker"}, {.core = "reader"}};
  const ax_scratch scratch[] = {{.type = AX_VMEM(AX_F32, columns), .shared = true},
                                {.type = ax_dma_semaphore_type(AX_DIMS()), .shared = true},
                                {.type = ax_semaphore_type(AX_DIMS()), .shared = true}};
  const ax_kernel_options options = {.scratch = {AX_LIST(3, scratch)}};
  const ax_fn bodies[] = {AX_FN(maker, 5, 0), AX_FN(reader, 5, 0)};
  ax_mpmd_map(AX_LIST(2, meshes), bodies, &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, columns)), out);
}

/* The other has read what was there before, and says so before the store or after it. */
static AX_BODY(late) {
  ax_value x = ax_ref_load(in[0]);
  ax_ref_store(in[3], twice(x));
  ax_semaphore_wait(in[5], ax_integer(1));
  ax_copy_start(in[3], in[1], &(ax_copy_options){.received = &in[4]});
  ax_copy_wait(in[4], in[1]);
}
static AX_BODY(early) {
  ax_semaphore_wait(in[5], ax_integer(1));
  ax_ref_store(in[3], twice(ax_ref_load(in[0])));
  ax_copy_start(in[3], in[1], &(ax_copy_options){.received = &in[4]});
  ax_copy_wait(in[4], in[1]);
}
static AX_BODY(looker) {
  ax_ref_store(in[1], ax_real(3));
  ax_ref_store(in[2], twice(ax_ref_load(in[1])));
  ax_semaphore_signal(in[5], ax_integer(1), NULL);
}
static AX_BODY(looked_at) {
  const ax_core_mesh meshes[] = {{.core = "maker"}, {.core = "looker"}};
  const ax_scratch scratch[] = {{.type = AX_VMEM(AX_F32, columns), .shared = true},
                                {.type = ax_dma_semaphore_type(AX_DIMS()), .shared = true},
                                {.type = ax_semaphore_type(AX_DIMS()), .shared = true}};
  const ax_kernel_options options = {.scratch = {AX_LIST(3, scratch)}};
  const ax_fn bodies[] = {{.function = context != NULL ? late : early, .in_count = 6}, AX_FN(looker, 6, 0)};
  ax_mpmd_map(AX_LIST(2, meshes), bodies, &options, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, columns), AX_TYPE(AX_F32, columns)), out);
}

static void several_cores(void **state) {
  (void)state;
  const ax_type type = AX_TYPE(AX_F32, columns);
  bool is_late = true;
  every_way("read_elsewhere", AX_FN(read_elsewhere, 1, 1), &type, 0);
  every_way("looked_at, before the store", AX_FN(looked_at, 1, 2), &type, 1);
  every_way("looked_at, after the store", AX_CLOSURE(looked_at, 1, 2, &is_late), &type, 0);
}

/* --- Pipelines, kernels over grids --- */

typedef struct piece {
  const char *name;
  int64_t stages, block[2], extent[2];
  uint32_t results, forwards;
  bool in_place, columns;
} piece;

static AX_BODY(block_of) {
  const piece *p = context;
  out[0] = p->columns ? ax_integer(0) : in[0];
  out[1] = p->columns ? in[0] : ax_integer(0);
}
static AX_BODY(piece_step) {
  const piece *p = context;
  ax_value x = ax_ref_load(in[0]);
  for (uint32_t k = 0; k < p->results; k++) ax_ref_store(in[1 + k], k == 0 ? twice(x) : ax_neg(x));
}
static AX_BODY(piece_body) {
  const piece *p = context;
  const ax_block_spec spec = {.block = {2, p->block}, .index_map = block_of, .context = context}, specs[] = {spec, spec};
  const int64_t grid = p->columns ? (p->extent[1] + p->block[1] - 1) / p->block[1] : (p->extent[0] + p->block[0] - 1) / p->block[0];
  const ax_pipeline_options options = {.grid = {AX_DIMS(grid)},
                                       .in_count = 1,
                                       .out_count = p->results,
                                       .in_specs = {AX_LIST(1, specs)},
                                       .out_specs = {AX_LIST(p->results, specs)},
                                       .max_concurrent_steps = p->stages};
  ax_emit_pipeline(&options, AX_CLOSURE(piece_step, 1 + p->results, 0, context), in + p->in_place);
}
static AX_BODY(piecewise) {
  const piece *p = context;
  const ax_type type = AX_TYPE(AX_F32, p->extent[0], p->extent[1]), types[] = {type, type};
  const ax_kernel_options options = {.aliases = {p->in_place, (const uint32_t[][2]){{0, 0}}}};
  ax_mpmd_map(AX_LIST(1, (&(ax_core_mesh){.core = "tensorcore", .space = AX_SPACE_HBM})), &AX_CLOSURE(piece_body, 1 + p->results, 0, context),
              &options, AX_LIST(1, in), AX_LIST(p->results, types), out);
}

static void pipelines(void **state) {
  (void)state;
  static const piece all[] = {
      {"rows", 2, {2, 8}, {8, 8}, 1, 1, false, false},       {"one stage", 1, {2, 8}, {8, 8}, 1, 1, false, false},
      {"three", 3, {1, 8}, {7, 8}, 1, 1, false, false},      {"two results", 2, {2, 8}, {8, 8}, 2, 1, false, false},
      {"sticks out", 2, {3, 8}, {8, 8}, 1, 0, false, false}, {"columns", 2, {8, 2}, {8, 8}, 1, 0, false, true},
      {"all at once", 2, {8, 8}, {8, 8}, 1, 0, false, false}};
  for (size_t i = 0; i < AX_COUNT(all); i++) {
    const ax_type type = AX_TYPE(AX_F32, all[i].extent[0], all[i].extent[1]);
    every_way(all[i].name, AX_CLOSURE(piecewise, 1, all[i].results, (void *)(uintptr_t)&all[i]), &type, all[i].forwards);
  }
}

/* --- Random kernels: scratch each with its own habits; copies are waited for --- */

enum { refs = 3, habits = 8 };

typedef struct plan {
  uint64_t random;
  uint32_t steps;
  bool may[refs][habits]; /* what is done with a ref */
} plan;

static uint64_t draw(plan *p, uint64_t below) { return ax_next_random(&p->random) % below; }

/* in: round, number that goes from 0 to 1 and back. ref: x, y, semaphore, y as an operand, scratch. */
typedef struct within {
  plan *p;
  const ax_value *ref;
} within;

static void random_step(plan *p, const ax_value *ref, const ax_value *in, ax_value *x) {
  uint32_t s = (uint32_t)draw(p, refs);
  const bool *may = p->may[s];
  ax_value index = draw(p, 2) == 0 ? ax_integer((int64_t)draw(p, slots)) : in[1], zero = ax_integer(0),
           slot = ax_ref_at(ref[4 + s], index);
  ax_value row = row_of(ref[1], draw(p, 2) == 0 ? in[0] : ax_integer((int64_t)draw(p, rows)));
  const ax_value copied[] = {ref[0], ref[1], ref[4 + s], ref[2]};
  if (may[0] && draw(p, 4) == 0) *x = ax_add(*x, ax_ref_load(slot));
  if (may[1] && draw(p, 4) == 0) ax_ref_add(slot, *x);
  if (may[2] && draw(p, 3) == 0) copy(copied, row, slot, NULL);
  if (draw(p, 3) == 0) *x = ax_max(twice(*x), ax_neg(ax_ref_load(row_of(draw(p, 2) == 0 ? ref[0] : ref[3], in[0]))));
  if (!may[3] || draw(p, 3) != 0) ax_ref_store(slot, draw(p, 2) == 0 ? twice(*x) : *x);
  if (may[4] && draw(p, 3) == 0) ax_ref_store_masked(slot, ax_gt(*x, ax_real(3)), ax_real(-1));
  if (may[5] && draw(p, 3) == 0) ax_ref_store(ax_ref_slice(slot, &zero, AX_DIMS(2)), ax_real(9));
  if (draw(p, 4) == 0) ax_ref_store(row, ax_sub(ax_ref_load(row), *x));
  if (may[6] && draw(p, 3) == 0) slot = ax_ref_at(ref[4 + s], ax_integer((int64_t)draw(p, slots)));
  else if (draw(p, 2) == 0) slot = ax_ref_at(ref[4 + s], index);
  ax_value now = ax_eq(in[1], ax_integer((int64_t)draw(p, 2)));
  if (draw(p, 3) == 0) ax_copy(slot, row);
  else copy(copied, slot, row, draw(p, 2) == 0 ? &now : NULL);
  if (may[7] && draw(p, 3) == 0) copy(copied, slot, row_of(ref[1], in[0]), NULL);
}

static AX_BODY(random_round) {
  const within *w = context;
  ax_value x = ax_ref_load(row_of(w->ref[0], in[0]));
  for (uint32_t i = 0; i < w->p->steps && !ax_failed(); i++) random_step(w->p, w->ref, in, &x);
  out[0] = ax_sub(ax_integer(1), in[1]);
}
static AX_BODY(random_body) {
  const ax_value ref[] = {in[0], in[2], in[3], in[1], in[4], in[5], in[6]};
  const within w = {context, ref};
  ax_value number = ax_convert_element_type(ax_full(AX_F32, AX_DIMS(), 0), AX_S32), end[1];
  for (int64_t s = 0; s < refs * slots; s++) ax_ref_store(ax_ref_at(ref[4 + s % refs], ax_integer(s / refs)), ax_real((double)s));
  ax_fori_loop(ax_integer(0), ax_integer(rows), AX_CLOSURE(random_round, 2, 1, &w), &number, end);
}
static AX_BODY(random_kernel) {
  const ax_type type = AX_VMEM(AX_F32, slots, columns);
  const ax_scratch scratch[] = {{.type = ax_dma_semaphore_type(AX_DIMS())}, {.type = type}, {.type = type}, {.type = type}};
  const ax_kernel_options options = {.scratch = {AX_LIST(1 + refs, scratch)}, .aliases = {AX_ALIASES({1, 0})}};
  ax_mpmd_map(AX_LIST(1, &one_core), &AX_CLOSURE(random_body, 4 + refs, 0, context), &options, AX_LIST(2, in), AX_TYPES(AX_TYPE(AX_F32, rows, columns)), out);
}

static void one_random(uint64_t seed, bool show) {
  plan p = {.random = seed * 1013 + 3, .steps = 1 + (uint32_t)(seed % 4)};
  const ax_type type = AX_TYPE(AX_F32, rows, columns);
  char name[32];
  for (uint32_t s = 0; s < refs; s++)
    for (uint32_t h = 0; h < habits; h++)
      p.may[s][h] = s > 0 && draw(&p, 5) == 0; /* the first is only stored to, and copied from */
  (void)show;
  snprintf(name, sizeof name, "seed %llu", (unsigned long long)seed);
  every_way(name, AX_CLOSURE(random_kernel, 2, 1, &p), (const ax_type[]){type, type}, AX_NONE);
}

static void random_kernels(void **state) {
  (void)state;
  test_each_seed(40, one_random);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(who_forwards), cmocka_unit_test(several_cores), cmocka_unit_test(pipelines),
                                     cmocka_unit_test(random_kernels)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
