/* Shared by pipelines of both kinds and by kernels over grids (expand.c): operands that are cut into blocks, and copies of blocks
   in and out.

     the whole, in HBM     block (i, j)                       slots, in VMEM
     +----+----+--+                                           +------+
     |    |    |  |  --- fetch: a copy ------------------->   |      | slot 0
     +----+----+--+                                           +------+
     |    |    |  |  <-- store: a copy of a group ---------   |      | slot 1
     +----+----+--+                                           +------+

   A block at the edge may stick out of the whole: only the part inside is copied. Elements outside are read as NaN, or the lowest
   value of an integer dtype, and never written. */
#ifndef AX_KERNEL_PIPELINE_H
#define AX_KERNEL_PIPELINE_H

#include "kernel/scratch.h"
#include "prim/region.h"

typedef struct ax_piped { /* an operand or a result of a pipeline */
  const ax_block_spec *spec;
  const char *side;       /* "operand" or "result", and its number among them: for messages */
  uint32_t number;
  ax_value ref;           /* the whole */
  ax_type whole, slot;    /* their types; pinned: the body gets the whole, and there are no slots */
  int64_t block[AX_MAX_RANK]; /* along each dimension of the whole; 1 where the body's ref has no such dimension */
  uint32_t squeezed;      /* bits of those */
  ax_fn map;              /* function NULL: always block 0 */
  bool pinned;
  bool invariant; /* the block is the same at each step: one slot, fetched once, or stored at the end */
  bool revisits;  /* it may come back to a block after another one */
  bool loaded;    /* of a result: its slot starts with the block's content in the whole */
  int64_t delay;  /* so many steps later than it could be is a slot used again */
} ax_piped;

typedef struct ax_pipe {
  const char *function; /* for messages */
  uint32_t rank;
  int64_t grid[AX_MAX_RANK], steps;
  int64_t stages;  /* max_concurrent_steps, of which no more than there are steps */
  bool in_place; /* results may be in the memory of operands: a step begins when the one before is done with it. stages is 1 then */
  uint32_t in_count, out_count;
  ax_piped *of;    /* operands, then results */
} ax_pipe;

static inline uint32_t ax_pipe_count(const ax_pipe *pipe) { return pipe->in_count + pipe->out_count; }
static inline bool ax_pipe_is_out(const ax_pipe *pipe, uint32_t i) { return i >= pipe->in_count; }

/* Checks the options; most: max_concurrent_steps where they say nothing. The pipe is in the trace's memory. False: the trace has
   failed. */
bool ax_pipe_take(const char *function, const ax_pipeline_options *options, int64_t most, const ax_value *refs, ax_pipe *pipe);
/* Derives the fields that follow from the maps: which operands are invariant, .. Kernels over grids overwrite some of them
   afterwards. */
bool ax_pipe_look(ax_pipe *pipe);

/* --- Steps: numbers of C where they are known, s32 scalars elsewhere --- */
ax_value ax_pipe_rest(ax_value x, int64_t n); /* x mod n, for x >= 0 */
void ax_pipe_ids(const ax_pipe *pipe, ax_value step,
                 ax_value *ids); /* where in the grid a step is: s32[] each; behind the last step is the first */
/* The block of an operand: a number of C or s32[] for each dimension of the whole. False: the trace has failed. */
bool ax_pipe_index(const ax_pipe *pipe, const ax_piped *of, const ax_value *ids, ax_value *index);

/* --- Slots --- */
int64_t ax_pipe_slots(const ax_pipe *pipe, const ax_piped *of); /* how many; 0: pinned */
ax_scratch ax_pipe_scratch(const ax_pipe *pipe, const ax_piped *of); /* they, as one ref */
/* Copies the block into the slot; the copy arrives at the barrier. NULL: waits for it. */
void ax_pipe_fetch(const ax_pipe *pipe, const ax_piped *of, const ax_value *index, ax_value slot, const ax_value *barrier);
/* Copies the slot into the block, as one of the copies of a group. predicate NULL: always. */
void ax_pipe_store(const ax_pipe *pipe, const ax_piped *of, const ax_value *index, ax_value slot, const ax_value *predicate);

/* Results that are stored within the loop: each goes from slot to slot as its block changes. The loop carries, for each: the slot,
   and the block. */
uint32_t ax_pipe_carries(const ax_pipe *pipe);
void ax_pipe_first_carries(const ax_pipe *pipe, ax_value *out); /* those of step 0 */
/* The refs that the body gets: slot `in_slot` of operands, and the results' own. buffers[i]: what ax_pipe_scratch(i) became. */
void ax_pipe_refs(const ax_pipe *pipe, const ax_value *buffers, ax_value in_slot, const ax_value *carries, ax_value *refs);
/* The carries of the next step. changes[]: for each result in the loop, whether this is the last step of its block, bool[]. */
void ax_pipe_next_carries(const ax_pipe *pipe, ax_value step, const ax_value *carries, ax_value *out, ax_value *changes);
/* Stores the results in the loop whose block changes after this step; the ones after the loop. */
void ax_pipe_store_changed(const ax_pipe *pipe, const ax_value *buffers, const ax_value *carries, const ax_value *changes);
void ax_pipe_store_invariant(const ax_pipe *pipe, const ax_value *buffers);
/* How many groups may be under way before a step: the slot that it stores into was read by the one before. */
int64_t ax_pipe_pending(const ax_pipe *pipe);
bool ax_pipe_stores_in_loop(const ax_pipe *pipe);

/* Calls the body with what program_id says in it. */
const ax_value *ax_pipe_body(const ax_pipe *pipe, ax_fn body, const ax_value *ids, const ax_value *in);
/* then on no operands, where the predicate holds. */
void ax_pipe_where(ax_value predicate, ax_function then, void *context);

/* The pipeline of emit_pipeline, on options and refs that were taken before. */
void ax_pipe_emit(const ax_pipe *pipe, ax_fn body);

#endif
