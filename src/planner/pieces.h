/* The stages of a pipeline as programs of their own: a model's loss is cut in its loop over layers.

     first     what comes before the loop, and its layers: (parameters.., sample..) -> (carries..)
     middle    layers: (parameters.., carries..) -> (carries..)
     last      layers, and what comes behind the loop: (parameters.., sample.., carries..) -> (loss)

   All take (parameters.., sample.., carries..), of which what a piece does not use is left out when it is lowered. Samples and carries
   are batched. Parameters that the loop slices have the layers of one stage. */
#ifndef AX_PLANNER_PIECES_H
#define AX_PLANNER_PIECES_H

#include "planner/step.h"

typedef enum ax_stage_piece { AX_PIECE_FIRST, AX_PIECE_MIDDLE, AX_PIECE_LAST, AX_PIECE_COUNT } ax_stage_piece;

typedef struct ax_piece_options {
  ax_stage_piece piece;
  int64_t layers;  /* of a stage */
  int64_t samples; /* of a microbatch */
  ax_checkpoint_policy saved;
} ax_piece_options;

typedef enum ax_piece_pass {
  AX_PASS_FORWARD,   /* -> (results.., what the backward pass will need..) */
  AX_PASS_BOTH,      /* forward and backward: (.., cotangents of results.., sums of gradients..) -> (the same sums with this
                        microbatch's.., cotangents of carries..) */
  AX_PASS_BY_CARRIES /* the same without sums of gradients */
} ax_piece_pass;

/* Says whether the loss can be cut so: it has a loop over layers, whose results are its carries alone, and its
   arrays have room for one more dimension. */
bool ax_pieces_possible(const ax_model *model);
/* Marks the parameters that a piece uses. */
AX_MUST_USE ax_status ax_piece_used(const ax_model *model, const ax_piece_options *options, bool *used);
/* `*out` is owned by the caller. Its inputs: parameters, samples, carries; then for AX_PASS_BOTH and AX_PASS_BY_CARRIES cotangents, one
   for each carry (none for the last piece); for AX_PASS_BOTH the sums, one for each parameter that is used. AX_INVALID_ARGUMENT: what
   stands before the loop cannot be done for some layers alone. */
AX_MUST_USE ax_status ax_piece_make(const ax_model *model, const ax_piece_options *options, ax_piece_pass pass, const bool *used,
                                    ax_program **out);
/* The end of a step: (parameters.., state.., gradients of each device of axis `data`..) -> (parameters.., state..), of the parameters
   that are used. Gradients have one more dimension in front, of size `data`, and are added up along it. */
AX_MUST_USE ax_status ax_piece_update(const ax_model *model, const ax_treedef *params, int64_t data, ax_program **out);

uint32_t ax_piece_carries(const ax_model *model);
/* The type of carry k of one sample. */
ax_type ax_piece_carry(const ax_model *model, uint32_t k);

#endif
