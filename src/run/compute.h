/* Instructions that compute, performed for one activation. */
#ifndef AX_RUN_COMPUTE_H
#define AX_RUN_COMPUTE_H

#include <string.h>

#include "run/execution.h"

/* The address of the operand in the part `away` places after the activation's own. */
static inline void *ax_address_away(const ax_activation *activation, const ax_ref *ref, int64_t away) {
  return activation->part[ref->first + ref->place[activation->device] + away] + ref->offset +
         activation->iteration[ref->loop] * ref->step;
}
static inline void *ax_address(const ax_activation *activation, const ax_ref *ref) { return ax_address_away(activation, ref, 0); }

/* Memory that a thread may work in. */
typedef struct ax_room_share {
  char *memory; /* NULL: there is none */
  size_t bytes;
} ax_room_share;

/* Share `index` of `count` of the room of a GEMM or ROWS. */
static inline ax_room_share ax_room_of(const ax_activation *activation, const ax_instr *instr, uint32_t index, uint32_t count) {
  if (instr->room == NULL || index >= count) return (ax_room_share){0};
  const size_t each = instr->room->bytes / count / 64 * 64;
  return (ax_room_share){(char *)ax_address(activation, &instr->room->ref) + index * each, each};
}

/* Performs a KERNEL instruction over part of its range. */
static inline void ax_compute_range(const ax_activation *activation, const ax_instr *instr, int64_t begin, int64_t end) {
  void *slots[AX_MAX_SLOTS + AX_MAX_GIVEN];
  const ax_given_numbers *given = instr->kernel.given;
  for (uint32_t i = 0; i < instr->ref_count; i++) slots[i] = ax_address(activation, &instr->refs[i]);
  if (given != NULL) memcpy(&slots[instr->ref_count], given->bits, given->count * sizeof given->bits[0]);
  instr->kernel.code(slots, activation->coordinates, begin * instr->kernel.scale, end * instr->kernel.scale);
}

/* Performs the fused loop of a LOOP. Activations that do not own its results pass it by. */
static inline void ax_compute_fused_loop(const ax_activation *activation, const ax_fused_loop_instr *fused_loop) {
  void *places[AX_FUSED_LOOP_PLACES];
  if ((fused_loop->skip & activation->passes) != 0) return;
  for (uint32_t i = 0; i < fused_loop->ref_count; i++) places[i] = ax_address(activation, &fused_loop->refs[i]);
  fused_loop->code(places, activation->coordinates, 0, 1);
}

/* The beginning of part `part` of `parts`, in a range from 0 to extent. */
int64_t ax_part_begin(int64_t extent, int64_t part, int64_t parts);

/* Performs a ROWS instruction over some of its rows (run/rows.c). block: memory of the compiled program's rows_bytes, aligned to
   64 bytes. AX_OUT_OF_MEMORY has no message. */
AX_MUST_USE ax_status ax_compute_rows(const ax_activation *activation, const ax_instr *instr, int64_t begin, int64_t end,
                                      void *block);
/* Performs all its rows, each part with the block of the thread that does it. If it pays, other threads help. */
AX_MUST_USE ax_status ax_rows_run(ax_execution *run, ax_worker_slot *worker_slot, const ax_activation *activation,
                                  const ax_instr *instr);

/* Performs a whole KERNEL, ROWS, GEMM or ROUTINE instruction; or part `part` of the `parts` of a KERNEL or ROUTINE, which may
   run at the same time as other parts. block: as above, for ROWS alone. pool: memory for products to work in; NULL: from the heap.
   The status has no message yet, since a part may fail on another thread than the one that reports it. ax_compute_failed sets the
   message for any status but AX_OK. */
AX_MUST_USE ax_status ax_compute(const ax_activation *activation, const ax_instr *instr, void *block, ax_pool *pool);
AX_MUST_USE ax_status ax_compute_part(const ax_activation *activation, const ax_instr *instr, uint32_t part);
AX_MUST_USE ax_status ax_compute_failed(const ax_instr *instr, ax_status status);
/* Performs an EVAL instruction on device f. */
AX_MUST_USE ax_status ax_compute_eval(const ax_compiled *compiled, const ax_hooks *hooks, const ax_run_options *options, const ax_activation *activation,
                                      const ax_instr *instr, uint32_t f);

#endif
