/* The program that is planned for: a model's loss becomes a training step.

     (parameters.., sample..) -> (loss, ..)      becomes      (parameters.., state.., batch..) -> (loss, parameters.., state..)

   The loss is batched over the samples, and its gradient is that of the mean. Microbatches go one after the other: sample s is in
   microbatch s modulo their number, so that however the batch is cut, each device has equally many samples of each. */
#ifndef AX_PLANNER_STEP_H
#define AX_PLANNER_STEP_H

#include "axle/planner.h"
#include "ir/program.h"

/* A program that is planned for, looked at. */
typedef struct ax_model {
  ax_program *program; /* owned: what is to be trained has its loops as scans that slice (sliced.h) */
  bool train;
  const char *const *input_names; /* borrowed; NULL: inputs are called by their numbers */
  int64_t samples;
  uint32_t param_count, batch_count, state_count; /* not trained: all inputs are parameters */
  uint32_t *params, *batch; /* numbers of the program's inputs, ascending */
  uint32_t loop;            /* the equation that is the loop over layers; AX_NONE: there is none */
  int64_t layers;           /* its steps; 0 */
  int8_t *experts;          /* by parameter: the dimension along which a product takes its matrices one by one, as those of experts; -1:
                               there is none */
  bool *layered;            /* by parameter: the loop slices it, so that its first dimension is that of the layers */
  ax_optimizer optimizer;
  ax_treedef *param_def, *state_def; /* parameters: p0, p1, .. */
} ax_model;

/* *out is to be deinited, whatever is returned. AX_INVALID_ARGUMENT: what the options say of the program does not fit it. */
AX_MUST_USE ax_status ax_model_make(const ax_program *program, const ax_planner_options *options, ax_model *out);
void ax_model_deinit(ax_model *model);
/* As errors call an input of the program; number: room for its number, if it has no name. */
const char *ax_model_input_name(const ax_model *model, uint32_t input, char number[static 16]);
/* The first input of the batch, if nobody says which these are. The program has inputs. */
uint32_t ax_model_first_of_batch(const ax_program *program);

/* The type of so many values of this type, along a new first dimension. The type has room for it (ax_has_batch). */
ax_type ax_batch_type(ax_type type, int64_t size);
static inline bool ax_has_batch(const ax_type *type) { return type->rank < AX_MAX_RANK; }
/* The treedef of the parameters that are marked, or of all (NULL), named p0, p1, .. by their numbers; layers: as ax_model_param has it.
   `*out` is owned by the caller. */
AX_MUST_USE ax_status ax_model_def(const ax_model *model, const bool *used, int64_t layers, ax_treedef **out);
/* The type of parameter p with so many layers, if it has any. */
ax_type ax_model_param(const ax_model *model, uint32_t p, int64_t layers);

/* The parameter whose dimensions and layout leaf `leaf` of the state has; AX_NONE: of none. */
uint32_t ax_model_state_of(const ax_model *model, uint32_t leaf);

/* The step with so many microbatches, each layer's gradient keeping what `saved` says. If the model is not trained it is the
   program itself. `*out` is owned by the caller. */
AX_MUST_USE ax_status ax_model_step(const ax_model *model, int64_t microbatches, ax_checkpoint_policy saved, ax_program **out);

/* In a trace: the loop that `eqn` is, on operands of its own and for so many steps; each step's gradient keeps what `saved` says. */
void ax_loop_again(const ax_eqn *eqn, const ax_value *in, int64_t length, ax_checkpoint_policy saved, ax_value *out);

#endif
