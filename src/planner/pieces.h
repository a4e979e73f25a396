/* The stages of a pipeline as programs of their own: a model's loss is cut in its loop over layers.

     first     what comes before the loop, and its layers: (parameters.., sample..) -> (carries..)
     middle    layers: (parameters.., carries..) -> (carries..)
     last      layers, and what comes behind the loop: (parameters.., sample.., carries..) -> (loss)

   Each takes the parameters that it uses, all of a sample, and the carries (not the first). Samples and carries are batched.
   Parameters that the loop slices have the layers of one stage. */
#ifndef AX_PLANNER_PIECES_H
#define AX_PLANNER_PIECES_H

#include "planner/step.h"

typedef enum ax_stage_piece { AX_PIECE_FIRST, AX_PIECE_MIDDLE, AX_PIECE_LAST, AX_PIECE_COUNT } ax_stage_piece;

typedef struct ax_piece_options {
  ax_stage_piece piece;
  int64_t layers;  /* of a stage */
  int64_t first_layer; /* of what the loop slices besides parameters; what that is counts for no time */
  int64_t samples; /* of a microbatch */
  ax_checkpoint_policy saved;
} ax_piece_options;

typedef enum ax_piece_pass {
  AX_PASS_FORWARD,   /* -> (results.., what is kept for the backward pass and is no input..). The last piece gives the loss of each
                        sample */
  AX_PASS_BACKWARD,  /* (parameters.., sample.., carries.., kept.., cotangents of carries.. (not the last), sums of gradients..) -> (the same sums with this microbatch's..,
                        cotangents of the carries it was given..); of the mean loss over all samples of a step */
  AX_PASS_BY_CARRIES /* the same without sums of gradients */
} ax_piece_pass;

typedef struct ax_loss_piece {
  const ax_model *model;
  ax_piece_options options;
  bool *used;          /* by parameter */
  uint32_t used_count;
  ax_program *primal, *transposed; /* (all parameters.., sample.., carries..) -> (results.., residuals..); (residuals.., cotangents..) ->
                                      (cotangents of what is used..) */
  uint32_t residuals;
} ax_loss_piece;

/* Says whether the loss can be cut so: it has a loop over layers, whose results are its carries alone; its steps share no
   parameters, and slice nothing of a sample; and its arrays have room for one more dimension. */
bool ax_pieces_possible(const ax_model *model);
const char *ax_pieces_why_not(const ax_model *model); /* static, or NULL: it can */
/* The model is borrowed. *out is to be deinited, whatever is returned. AX_INVALID_ARGUMENT: what stands before the loop cannot be
   done for some layers alone. */
AX_MUST_USE ax_status ax_piece_make(const ax_model *model, const ax_piece_options *options, ax_loss_piece *out);
void ax_piece_deinit(ax_loss_piece *piece);
/* `*out` is owned by the caller. Cotangents are of the carries that are floats; sums of the parameters that are used. */
AX_MUST_USE ax_status ax_piece_program(const ax_loss_piece *piece, ax_piece_pass pass, ax_program **out);
uint32_t ax_piece_kept(const ax_loss_piece *piece);       /* values that a forward pass keeps */
uint32_t ax_piece_taken(const ax_loss_piece *piece);      /* carries that the piece takes */
uint32_t ax_piece_cotangents(const ax_loss_piece *piece); /* that its backward pass takes */
/* How arrays lie over a stage's mesh (stage_mesh.h makes them). Borrowed. */
typedef struct ax_piece_specs {
  const char *const *param, *const *state,
                                *const *sum; /* by parameter: itself, the optimizer's state of it, sums of its gradients */
  const char *const *sample;                 /* by input of a sample, batched */
  const char *const *carry;                  /* by carry, batched */
} ax_piece_specs;
/* Specs of a pass's inputs and results, as ax_program_with_shardings takes them. What is kept lies as it is made. */
void ax_piece_pass_specs(const ax_loss_piece *piece, ax_piece_pass pass, const ax_piece_specs *specs, ax_text *text);
/* The end of a step: (parameters.., state.., gradients of each device of axis `data`..) -> (parameters.., state..), of the
   parameters that are used, with so many layers. Gradients have one more dimension in front, of size `data`, and are added up along
   it. Adds its specs to `text`; `*out` is owned by the caller. */
AX_MUST_USE ax_status ax_piece_update(const ax_model *model, const bool *used, int64_t layers, int64_t data, const ax_piece_specs *specs,
                                      ax_program **out, ax_text *text);

uint32_t ax_piece_carries(const ax_model *model);
uint32_t ax_piece_float_carries(const ax_model *model); /* that have cotangents */
/* The type of carry k of one sample. */
ax_type ax_piece_carry(const ax_model *model, uint32_t k);

#endif
