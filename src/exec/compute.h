/* What an instruction computes on one activation. */
#ifndef AX_EXEC_COMPUTE_H
#define AX_EXEC_COMPUTE_H

#include "exec/execution.h"
#include "exec/pool.h"

/* In the part that comes `away` after the activation's own. */
static inline void *ax_address_away(const ax_activation *activation, const ax_ref *ref, int64_t away) {
  return activation->part[ref->first + ref->place[activation->device] + away] + ref->offset +
         activation->iteration[ref->loop] * ref->step;
}
static inline void *ax_address(const ax_activation *activation, const ax_ref *ref) { return ax_address_away(activation, ref, 0); }

/* A KERNEL instruction, over part of what it is ranged over. */
static inline void ax_compute_range(const ax_activation *activation, const ax_instr *instr, int64_t begin, int64_t end) {
  void *slots[AX_MAX_SLOTS];
  for (uint32_t i = 0; i < instr->ref_count; i++) slots[i] = ax_address(activation, &instr->refs[i]);
  instr->kernel.code(slots, activation->coordinates, begin * instr->kernel.scale, end * instr->kernel.scale);
}

/* A LOOP that has a fused loop. Who does not own what it makes passes it by. */
static inline void ax_compute_fused_loop(const ax_activation *activation, const ax_fused_loop_instr *fused_loop) {
  void *places[AX_FUSED_LOOP_PLACES];
  if ((fused_loop->skip & activation->nonzero) != 0) return;
  for (uint32_t i = 0; i < fused_loop->ref_count; i++) places[i] = ax_address(activation, &fused_loop->refs[i]);
  fused_loop->code(places, activation->coordinates, 0, 1);
}

/* Where a part begins of what goes from 0 to extent. */
int64_t ax_part_begin(int64_t extent, int64_t part, int64_t parts);

/* A ROWS instruction, over part of its rows (exec/rows.c); block: the executable's rows_bytes of memory, aligned to 64 bytes.
   AX_OUT_OF_MEMORY has no message. */
AX_MUST_USE ax_status ax_compute_rows(const ax_activation *activation, const ax_instr *instr, int64_t begin, int64_t end,
                                      void *block);
/* All of them, each part with the block of the thread that does it; in parts that others help with, where that is worth it. */
AX_MUST_USE ax_status ax_rows_run(ax_execution *run, ax_worker_slot *worker_slot, const ax_activation *activation,
                                  const ax_instr *instr);

/* A KERNEL, ROWS, GEMM or ROUTINE instruction, whole; or, of a KERNEL or ROUTINE, part `part` of its `parts`, which may run at
   once. block: as above, for ROWS alone. pool: where products take memory to work in; NULL: from anywhere. Their status has no
   message yet, since a part may fail on another thread than the one that reports it: ax_compute_failed gives the message to any but
   AX_OK. */
AX_MUST_USE ax_status ax_compute(const ax_activation *activation, const ax_instr *instr, void *block, ax_pool *pool);
AX_MUST_USE ax_status ax_compute_part(const ax_activation *activation, const ax_instr *instr, uint32_t part);
AX_MUST_USE ax_status ax_compute_failed(const ax_instr *instr, ax_status status);
/* An EVAL instruction on device f. */
AX_MUST_USE ax_status ax_compute_eval(const ax_executable *e, const ax_activation *activation, const ax_instr *instr, uint32_t f);

#endif
