/* The library's pipelines, used wrongly. */
#include "axle/collectives.h"
#include "pipeline_bugs/bugs.h"

enum {
  RIGHT_LATE,
  NO_DELAY,
  NO_OWN_WAIT,
  NO_OWN_LAST_WAIT,
  RIGHT_MANUAL,
  EARLY,
  NEVER,
  TWICE,
  ONE_OF_TWO,
  WHOLE_BLOCK,
  RIGHT_PINNED,
  PINNED_OVERLAPS
};

static bool of_warps(int slip) { return slip >= RIGHT_MANUAL && slip < RIGHT_PINNED; }
enum { wgs = 2, part = bug_block / wgs };

typedef struct using {
  int slip;
  ax_value y, done; /* what the body copies to by itself, and the semaphore of that */
} using;

static AX_BODY(nothing) {}
static AX_BODY(by_step) {
  out[0] = in[0];
  out[1] = ax_integer(0);
}

/* --- Each step leaves a copy from its operand under way, as a matrix unit would read it: the next one waits --- */

typedef struct awaiting {
  const using *u;
  ax_value slot;
} awaiting;

static AX_BODY(await) {
  const awaiting *a = context;
  ax_copy_wait(a->u->done, a->slot);
}

static AX_BODY(await_last) { /* its slot is gone after the pipeline */
  const awaiting *a = context;
  for (int k = 0; k < (a->u->slip == NO_OWN_WAIT ? bug_steps : 1); k++) await(NULL, NULL, context);
}

static AX_BODY(late_step) { /* slot of x */
  const using *u = context;
  const awaiting a = {u, ax_ref_at(in[0], ax_integer(0))};
  if (u->slip != NO_OWN_WAIT)
    ax_if(ax_gt(ax_program_id(0), ax_integer(0)), AX_CLOSURE(await, 0, 0, &a), AX_FN(nothing, 0, 0), NULL, NULL);
  ax_copy_start(a.slot, ax_ref_at(u->y, ax_program_id(0)), &(ax_copy_options){.received = &u->done});
  if (u->slip != NO_OWN_LAST_WAIT)
    ax_if(ax_eq(ax_program_id(0), ax_integer(bug_steps - 1)), AX_CLOSURE(await_last, 0, 0, &a), AX_FN(nothing, 0, 0), NULL, NULL);
}

static AX_BODY(late) { /* x, y, semaphore */
  const bug *b = context;
  const using u = {b->slip, in[1], in[2]};
  const ax_block_spec spec = {.block = {AX_DIMS(1, bug_block)}, .index_map = by_step};
  const ax_pipeline_options options = {.grid = {AX_DIMS(bug_steps)},
                                       .in_count = 1,
                                       .in_specs = {AX_BLOCK_SPECS(spec)},
                                       .max_concurrent_steps = 2,
                                       .delay_release = b->slip != NO_DELAY};
  ax_emit_pipeline(&options, AX_CLOSURE(late_step, 1, 0, &u), in);
  if (b->slip == NO_OWN_LAST_WAIT) ax_copy_wait(in[2], ax_ref_at(in[1], ax_integer(0)));
}

/* --- Manual barriers, and who writes what --- */

static ax_value part_of(ax_value ref) {
  const ax_value starts[] = {ax_integer(0), ax_mul(ax_axis_index("wg"), ax_integer(part))};
  return ax_ref_slice(ref, starts, AX_DIMS(1, part));
}

static AX_BODY(arrive) { ax_barrier_arrive(*(const ax_value *)context); }

static AX_BODY(manual_step) { /* slots of x, y; barrier */
  const bug *b = context;
  if (b->slip == EARLY) ax_barrier_arrive(in[2]);
  ax_value x = ax_ref_load(part_of(in[0])), all = b->slip == WHOLE_BLOCK ? ax_ref_load(in[0]) : x;
  if (b->slip == ONE_OF_TWO)
    ax_if(ax_eq(ax_axis_index("wg"), ax_integer(0)), AX_CLOSURE(arrive, 0, 0, &in[2]), AX_FN(nothing, 0, 0), NULL, NULL);
  else if (b->slip != EARLY && b->slip != NEVER) ax_barrier_arrive(in[2]);
  if (b->slip == TWICE) ax_barrier_arrive(in[2]);
  ax_ref_store(b->slip == WHOLE_BLOCK ? in[1] : part_of(in[1]), ax_mul(all, ax_integer(2)));
}

static AX_BODY(manual) { /* x, y */
  const ax_block_spec spec = {.block = {AX_DIMS(1, bug_block)}, .index_map = by_step};
  const ax_pipeline_options options = {.grid = {AX_DIMS(bug_steps)},
                                       .in_count = 1,
                                       .out_count = 1,
                                       .in_specs = {AX_BLOCK_SPECS(spec)},
                                       .out_specs = {AX_BLOCK_SPECS(spec)}};
  const ax_warp_pipeline_options warps = {.pipeline = options,
                                          .memory_registers = 40,
                                          .wg_axis = "wg",
                                          .compute_wgs = wgs,
                                          .memory_thread = -1,
                                          .manual_consumed_barriers = true};
  ax_emit_pipeline_warp_specialized(&warps, AX_CLOSURE(manual_step, 3, 0, context), in);
}

/* --- A pinned result --- */

static AX_BODY(pinned_step) { /* slot of x, the whole y */
  const bug *b = context;
  ax_value to = b->slip == PINNED_OVERLAPS ? ax_div(ax_program_id(0), ax_integer(2)) : ax_program_id(0);
  ax_value starts[] = {to, ax_integer(0)};
  ax_copy_start(in[0], ax_ref_slice(in[1], starts, AX_DIMS(1, bug_block)), &(ax_copy_options){.grouped = true});
  ax_copy_commit_group();
  ax_copy_wait_groups(b->slip == PINNED_OVERLAPS, true);
}

static AX_BODY(pinned) { /* x, y */
  const ax_block_spec block = {.block = {AX_DIMS(1, bug_block)}, .index_map = by_step}, whole = {.space = AX_SPACE_ANY};
  const ax_pipeline_options options = {.grid = {AX_DIMS(bug_steps)},
                                       .in_count = 1,
                                       .out_count = 1,
                                       .in_specs = {AX_BLOCK_SPECS(block)},
                                       .out_specs = {AX_BLOCK_SPECS(whole)}};
  ax_emit_pipeline(&options, AX_CLOSURE(pinned_step, 2, 0, context), in);
}

static AX_BODY(kernel) {
  const bug *b = context;
  const ax_scratch done = {.type = ax_dma_semaphore_type(AX_DIMS())};
  const ax_kernel_options options = {.scratch = {AX_LIST(b->slip < RIGHT_MANUAL, &done)}};
  const ax_core_mesh one = {.core = "tensorcore"},
                     mesh = {.core = "warpgroup", .mesh = {.count = 1, .axis = {{.name = "wg", .size = wgs + 1}}}, .threads = "wg"};
  ax_function body = b->slip < RIGHT_MANUAL ? late : of_warps(b->slip) ? manual : pinned;
  ax_mpmd_map(AX_LIST(1, of_warps(b->slip) ? &mesh : &one), &AX_CLOSURE(body, 2 + options.scratch.count, 0, context), &options, AX_LIST(1, in),
              AX_TYPES(AX_TYPE(AX_F32, bug_steps, bug_block)), out);
}

static const bug all[] = {
    {"a body that leaves its operand being read", NULL, RIGHT_LATE, kernel},
    {"no delay_release for it", "data race", NO_DELAY, kernel},
    {"it does not wait for the step before", "data race", NO_OWN_WAIT, kernel},
    {"the last step's is waited for behind the pipeline", "scope", NO_OWN_LAST_WAIT, kernel},
    {"manual consumed barriers", NULL, RIGHT_MANUAL, kernel},
    {"the body arrives before it has read", "data race", EARLY, kernel},
    {"the body never arrives", "deadlock", NEVER, kernel},
    {"the body arrives twice", "data race|barrier", TWICE, kernel},
    {"one of two compute warpgroups arrives", "deadlock", ONE_OF_TWO, kernel},
    {"each compute warpgroup writes the whole block", "data race", WHOLE_BLOCK, kernel},
    {"a pinned result", NULL, RIGHT_PINNED, kernel},
    {"two steps store to one place of it, the one before still being under way", "data race", PINNED_OVERLAPS, kernel},
};
const bug_list bugs_uses = {all, AX_COUNT(all)};
