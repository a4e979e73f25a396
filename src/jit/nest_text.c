/* How a kernel is walked, for `axle show --after schedule` and messages. */
#include "jit/jit.h"
#include "jit/nest/schedule.h"
#include "machine/features.h"
#include "plan/amount.h"

static const char *const shapes[] = {
    [AX_NEST_LANES] = "lanes: the vector loop is innermost",
    [AX_NEST_BLOCK] = "block: vectors of results stay in registers",
    [AX_NEST_STRIP] = "strip: one vector of results, with partial sums",
    [AX_NEST_TILE] = "tile: results in a tile on the stack",
    [AX_NEST_RUNS] = "runs: the vector loop is innermost, and a vector of sums for each row is in a tile on the stack",
    [AX_NEST_COLUMNS] = "columns: of many rows at once",
    [AX_NEST_NARROW] = "narrow: several rows a vector",
    [AX_NEST_TRANSPOSE] = "transpose: squares are turned in registers",
};

/* "i0 x i1" of the kernel's dimensions that a loop goes through; those of one step are in none. */
static void add_dims(ax_text *text, const ax_nest_schedule *s, uint32_t loop) {
  bool any = false;
  for (uint32_t d = 0; d < s->kernel->rank; d++) {
    if (s->loop_of_dim[d] != (int)loop) continue;
    ax_text_add(text, "%si%u", any ? "*" : "", d);
    any = true;
  }
  if (!any) ax_text_add(text, "once");
}

static void add_loop(ax_text *text, const ax_nest_schedule *s, uint32_t loop) {
  const ax_loop *l = &s->loops[loop];
  ax_text_add(text, "    %*sfor ", (int)(2 * loop), "");
  add_dims(text, s, loop);
  ax_text_add(text, " < %lld", (long long)l->extent);
  if (l->reduced) ax_text_add(text, ", reduced over");
  if (l->ranged && s->kernel->parts > 1) ax_text_add(text, ", in %u parts", s->kernel->parts);
  if (loop == s->vector) ax_text_add(text, ", in vectors of %u", s->lanes);
  if (s->blocked > 0 && loop + 1 == s->outer) ax_text_add(text, ", %lld for each step of the one before", (long long)s->blocked);
  if (loop == s->unrolled && s->unroll > 1) ax_text_add(text, ", %u at a time", s->unroll);
  ax_text_add(text, "\n");
}

ax_status ax_jit_nest_text(const ax_loop_kernel *kernel, ax_text *text) {
  ax_arena scratch = {0};
  ax_nest_schedule *s = NULL;
  const ax_registers registers = {ax_machine_register_bytes(), ax_machine_has(AX_FEATURE_AVX512_FP16)};
  ax_status status = ax_nest_schedule_create(&scratch, kernel, registers, false, &s);
  if (status == AX_OK) {
    ax_text_add(text, "    %s%s%s\n", shapes[s->shape], s->wide ? "; sums of narrow floats in f64" : "",
                s->streams ? "; stored past the caches" : "");
    for (uint32_t l = 0; l < s->loop_count; l++) add_loop(text, s, l);
  }
  ax_arena_deinit(&scratch);
  return status;
}
