#include "sim/device.h"

#include <math.h>

#include "code/split.h"
#include "plan/op.h"

static double cores_of(const ax_cluster *machine) { return machine->cores > 1 ? (double)machine->cores : 1; }

static double computing(const ax_cluster *machine, const ax_amount *a) {
  const double rate = ax_cluster_flops(machine, a->dtype);
  if (machine->core == 0) return a->flops / rate;
  return a->product / rate + 1e-9 * a->core_ns * machine->core / cores_of(machine);
}

static uint32_t parts_of(const ax_op *op) {
  switch (op->kind) {
    case AX_OP_KERNEL: return op->kernel.kernel->parts;
    case AX_OP_GEMM: return ax_gemm_parts(op->gemm);
    case AX_OP_ROUTINE: return op->routine->parts;
    case AX_OP_ROWS: return op->rows->parts;
    default: return 1;
  }
}

ax_sim_effort ax_sim_effort_of(const ax_cluster *machine, const ax_op *op, const ax_amount *amount) {
  return (ax_sim_effort){.computing = computing(machine, amount),
                         .parts = parts_of(op),
                         .launched = true,
                         .in_turn = machine->core > 0 && (op->kind == AX_OP_ROWS || op->kind == AX_OP_GEMM)};
}

double ax_sim_write_rate(const ax_cluster *machine) { return machine->write > 0 ? machine->write : machine->memory; }

double ax_sim_moving(const ax_cluster *machine, const ax_amount *a) {
  if (machine->write == 0) return (a->read + a->written) / machine->memory;
  return a->read / machine->memory + a->written / machine->write;
}

/* `seconds` of all cores at work all the time. Some have a part more than others, or one has all; they share what is worth it
   (run/share.c). */
static double on_cores(const ax_cluster *machine, uint32_t parts, double seconds) {
  const double cores = cores_of(machine), alone = seconds * cores;
  return cores == 1 ? seconds : fmin(alone, alone * ceil(parts / cores) / parts + machine->share);
}

double ax_sim_effort_seconds(const ax_cluster *machine, const ax_sim_effort *e, double moving, const char **bound) {
  const double longer = e->computing > moving ? e->computing : moving, launch = e->launched ? machine->launch : 0;
  const double took = e->in_turn ? e->computing + moving : machine->core > 0 ? hypot(e->computing, moving) : longer;
  *bound = launch >= longer ? "launch" : e->computing > moving ? "flops" : "memory";
  return launch + on_cores(machine, e->parts > 0 ? e->parts : 1, took);
}
