#include "sim/device.h"

#include <math.h>

#include "code/split.h"
#include "plan/op.h"

double ax_sim_cores(const ax_cluster *machine) { return machine->cores > 1 ? (double)machine->cores : 1; }

double ax_sim_memory_alone(const ax_cluster *machine) {
  const double cores = ax_sim_cores(machine), times = machine->core_memory > 0 ? machine->memory / machine->core_memory : cores;
  return fmin(fmax(times, 1), cores);
}

static double computing(const ax_cluster *machine, const ax_amount *a) {
  const double rate = ax_cluster_flops(machine, a->dtype);
  if (machine->core == 0) return a->flops / rate;
  const double dividing = machine->quotients > 0 ? machine->quotients : machine->core;
  return a->product / rate + ax_amount_seconds(a, machine->core, dividing) / ax_sim_cores(machine);
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
                         .read = amount->read,
                         .written = amount->written,
                         .parts = parts_of(op),
                         .launched = true,
                         .in_turn = machine->core > 0 && (op->kind == AX_OP_ROWS || op->kind == AX_OP_GEMM)};
}

double ax_sim_write_rate(const ax_cluster *machine) { return machine->write > 0 ? machine->write : machine->memory; }

ax_sim_moved ax_sim_moving(const ax_cluster *machine, const ax_sim_effort *e) {
  const double seconds = machine->write == 0 ? (e->read + e->written) / machine->memory : e->read / machine->memory + e->written / machine->write;
  return (ax_sim_moved){seconds, seconds * ax_sim_memory_alone(machine)};
}

/* Of both parts of an operation together. */
static double took(const ax_cluster *machine, const ax_sim_effort *e, double computing, double moving) {
  if (e->in_turn) return computing + moving;
  return machine->core > 0 ? hypot(computing, moving) : computing > moving ? computing : moving;
}

/* Cores share what is worth it (run/share.c); some have a part more than others. */
double ax_sim_effort_seconds(const ax_cluster *machine, const ax_sim_effort *e, ax_sim_moved moving, const char **bound) {
  const double cores = ax_sim_cores(machine), parts = e->parts > 0 ? e->parts : 1, launch = e->launched ? machine->launch : 0;
  const double longer = e->computing > moving.all ? e->computing : moving.all;
  *bound = launch >= longer ? "launch" : e->computing > moving.all ? "flops" : "memory";
  if (cores == 1) return launch + took(machine, e, e->computing, moving.all);
  const double shared = took(machine, e, e->computing, moving.all) * cores * ceil(parts / cores) / parts + machine->share;
  return launch + fmin(took(machine, e, e->computing * cores, moving.alone), shared);
}
