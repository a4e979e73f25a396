/* How many vectors are computed at a time where nothing is reduced. A processor looks only so far ahead:

     y = ((x * x + 1) * x + 1) * x ..        each operation waits for the one before it. The next vector's operations wait for
                                             nothing, but stand behind all of these.

   If the chain is long, several vectors go through it side by side, operation by operation. Their results have the same bits; only
   the order of instructions differs. As many are taken as keep the processor busy and as its registers hold. Where little is
   computed, so many that the loop's own instructions, which count and jump, are few beside theirs.

   Both sums below are in cycles of a processor with two units for vectors, as most have. */
#include "jit/nest/schedule.h"

#include "ir/program.h"
#include "plan/contract.h"

enum {
  vectors_at_most = 8,
  least_vectors = 64,  /* of the kernel: fewer do not bring the time to compile back */
  many_vectors = 2048, /* so many bring it back sooner */
  few_nodes = 128,     /* of all vectors together, which take 0.5 ms to compile */
  many_nodes = 384,    /* the same where there are many vectors */
  ahead = 64,          /* instructions that wait in the processor's scheduler */
  short_body = 12,     /* beside so many instructions those of the loop do not count */
  units = 2,
  threefry = 77, threefry_latency = 100 /* instructions of random bits, and cycles: 20 rounds of two that wait for each other, and keys */
};

typedef struct cost {
  uint32_t instructions, latency;
} cost;

static cost plus(cost a, cost b) { return (cost){a.instructions + b.instructions, a.latency + b.latency}; }

/* To round a result to bf16 by integer operations, or to f16 or a float of a byte and back. */
static cost rounding(ax_dtype dtype) { 
  if (ax_is_byte_float(dtype)) return (cost){24, 24};
  return dtype == AX_BF16 ? (cost){5, 5} : dtype == AX_F16 ? (cost){3, 14} : (cost){0};
}

static bool in_f16(const ax_nest_schedule *s, const ax_expr *expr) {
  return s->f16 && expr->dtype == AX_F16 && ax_scalar_in_f16(expr->op);
}

static bool is_root(ax_scalar op) { return op == AX_SCALAR_SQRT || op == AX_SCALAR_RSQRT; }

static cost operation(const ax_nest_schedule *s, const ax_expr *expr) {
  const cost round = in_f16(s, expr) ? (cost){0} : rounding(expr->dtype);
  if (expr->op >= AX_LEAF_CONST && expr->op != AX_LEAF_LOAD) return (cost){0};
  if (expr->op == AX_LEAF_LOAD) return (cost){1, 5};
  if (expr->op == AX_SCALAR_THREEFRY) return (cost){threefry, threefry_latency};
  if (is_root(expr->op) || expr->op == AX_SCALAR_DIV) return plus((cost){8, 16}, round);
  if (ax_scalar_is_function(expr->op)) return plus((cost){15, 50}, round); /* of narrow floats, in line; others are calls */
  if (!ax_is_float(expr->dtype)) return expr->op == AX_SCALAR_MUL ? (cost){2, 10} : (cost){1, 1};
  if (expr->op <= AX_SCALAR_MUL) return plus((cost){1, 4}, round);
  return (cost){2, 4};
}

/* exp of f32 is in line where there are many vectors. A call saves and restores all registers, so that vectors gain nothing from
   each other. */
static bool calls(const ax_nest_schedule *s, const ax_expr *expr) {
  if (expr->op == AX_SCALAR_REM) return true;
  if (expr->op == AX_SCALAR_DIV && !ax_is_float(expr->dtype)) return true;
  if (ax_nest_schedule_in_line(s, expr)) return false;
  if (!ax_scalar_is_function(expr->op) || is_root(expr->op)) return false;
  return !ax_is_narrow_float(expr->dtype) || s->vector_bytes < 32;
}

static uint32_t contracted(const ax_loop_kernel *kernel) {
  uint32_t count = 0;
  for (ax_ex id = 0; id < kernel->expr_count; id++) count += ax_expr_contracted(&kernel->exprs[id]) >= 0;
  return count;
}

/* The cost of one vector: its instructions, and its longest chain. `latest`: room for a number by node. */
static cost of_vector(const ax_nest_schedule *s, uint32_t *latest) {
  cost all = {0};
  for (ax_ex id = 0; id < s->kernel->expr_count; id++) {
    const ax_expr *expr = &s->kernel->exprs[id];
    latest[id] = 0;
    if (!s->live[id] || !ax_nest_schedule_depends(s, id, s->vector)) continue;
    const cost own = operation(s, expr);
    for (int i = 0; i < ax_scalar_arity(expr->op); i++) {
      const ax_ex arg = expr->arg[i];
      const cost inside = i == ax_expr_contracted(expr) && latest[arg] > 0 ? operation(s, &s->kernel->exprs[arg]) : (cost){0};
      if (latest[arg] - inside.latency > latest[id]) latest[id] = latest[arg] - inside.latency;
      all.instructions -= inside.instructions; /* the product is no instruction of its own */
    }
    latest[id] += own.latency;
    all.instructions += own.instructions;
    if (latest[id] > all.latency) all.latency = latest[id];
  }
  return all;
}

/* --- Registers --- */

static uint32_t registers_of(const ax_nest_schedule *s, ax_ex id) {
  if (!s->live[id] || !ax_nest_schedule_depends(s, id, s->vector)) return 0;
  const ax_expr *expr = &s->kernel->exprs[id];
  const size_t bytes = s->lanes * (ax_is_narrow_float(expr->dtype) && !in_f16(s, expr) ? 4 : ax_dtype_bytes(expr->dtype));
  return (uint32_t)((bytes + s->vector_bytes - 1) / s->vector_bytes);
}

/* The most registers that hold values of one vector at once. `last` and `freed`: room for a number by node. */
static uint32_t most_registers(const ax_nest_schedule *s, uint32_t *last, uint32_t *freed) {
  const ax_loop_kernel *kernel = s->kernel;
  uint32_t now = 0, most = 0;
  for (ax_ex id = 0; id < kernel->expr_count; id++) {
    freed[id] = 0;
    last[id] = id;
    for (int i = 0; s->live[id] && i < ax_scalar_arity(kernel->exprs[id].op); i++) last[kernel->exprs[id].arg[i]] = id;
  }
  for (uint32_t i = 0; i < kernel->store_count; i++) last[kernel->stores[i].expr] = kernel->expr_count - 1;
  for (ax_ex id = 0; id < kernel->expr_count; id++) freed[last[id]] += registers_of(s, id);
  for (ax_ex id = 0; id < kernel->expr_count; id++) {
    now += registers_of(s, id);
    if (now > most) most = now;
    now -= freed[id];
  }
  return most;
}

static uint32_t count_draws(const ax_nest_schedule *s) {
  uint32_t count = 0;
  for (ax_ex id = 0; id < s->kernel->expr_count; id++) count += s->live[id] && s->kernel->exprs[id].op == AX_SCALAR_THREEFRY;
  return count;
}

/* --- The choice --- */

static bool has_calls(const ax_nest_schedule *s) {
  for (ax_ex id = 0; id < s->kernel->expr_count; id++)
    if (s->live[id] && calls(s, &s->kernel->exprs[id])) return true;
  return false;
}

/* The processor begins the next vectors while the first one waits, as far as it looks ahead. */
static bool waits(cost vector) {
  const uint32_t at_once = vector.instructions + ahead, busy = vector.instructions / units;
  return (uint64_t)vector.latency * vector.instructions * 4 > (uint64_t)busy * at_once * 5;
}

ax_status ax_nest_schedule_choose_abreast(const ax_nest_schedule *s, ax_arena *arena, uint32_t *out) {
  const uint32_t nodes = s->kernel->expr_count, in_all = s->vector_bytes == 64 ? 32 : 16;
  *out = 1;
  const int64_t vectors = s->work / s->lanes;
  const uint32_t draws = count_draws(s);
  if (vectors < least_vectors || (has_calls(s) && draws == 0)) return AX_OK; /* random bits take so long that it pays beside calls, too */
  uint32_t *by_node = ax_arena_alloc(arena, 2 * (size_t)nodes * sizeof *by_node);
  if (by_node == NULL) return ax_out_of_memory(2 * (size_t)nodes * sizeof *by_node);
  const cost vector = of_vector(s, by_node);
  const uint32_t held = most_registers(s, by_node, by_node + nodes), stored = vector.instructions + s->kernel->store_count;
  const bool by_chain = waits(vector);
  /* Of random bits twice as many nodes: each takes as long as tens of others. */
  const uint32_t weight = nodes - contracted(s->kernel) + draws * (threefry - 1),
                 most = (vectors < many_vectors ? few_nodes : many_nodes) * (1 + draws);
  while (*out < vectors_at_most && (by_chain ? *out * vector.instructions < units * vector.latency : *out * stored < short_body) &&
         2 * *out * held <= in_all && 2 * *out * weight <= most)
    *out *= 2;
  return AX_OK;
}
