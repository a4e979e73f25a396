/* Optimisers over leaves of trees, and schedules of learning rates: those of optax, with the same numbers.

     ax_optimizer adam = ax_adamw(ax_warmup_cosine_decay_schedule(0, 1e-3, 100, 10000, 1e-5));
     adam.clip_norm = 1;                             // the gradients are clipped first
     adam.decay = "!*bias; *";                       // the weights that decay, by pattern: all but the biases
     ax_optimizer_state(&adam, params, &state);      // a treedef: "count", "mu/w", .., "nu/w", ..; all begin as zeros
     ax_optimizer_update(&adam, params, gradients, state_in, params_in, state_out, params_out);      // in a trace

   Optimisers and schedules are plain values, which may be copied and changed freely. They borrow the memory that they point to. */
#ifndef AXLE_OPTIMIZER_H
#define AXLE_OPTIMIZER_H

#include "axle/tree.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

/* --- Schedules: a number for each step. A schedule is checked when a trace evaluates it, and the trace keeps its errors: a number
   of steps that does not fit an s32, a number that is not finite, and the errors that each function names. --- */

/* A schedule of learning rates. The functions below make the schedules that have these names in optax; the fields of the result may
   be changed. For a schedule of your own set `function`. In a trace, it gets the number of steps done so far, count: s32[], and
   returns the learning rate, f32[]; it may read `context`. */
typedef struct ax_schedule ax_schedule;
struct ax_schedule {
  ax_value (*function)(const ax_schedule *schedule, ax_value count); /* NULL: 0 at every step */
  double from, to;      /* the value at first, and in the end; `to` is alpha of a cosine decay, a bound of an exponential one */
  double power;         /* a polynomial's power, a cosine's exponent, an exponential's rate; with a warmup, the peak */
  int64_t begin, steps; /* steps before it changes, and steps that the change takes; with a warmup, its steps, and all steps */
  bool staircase;       /* an exponential changes only at whole multiples of `steps` */
  uint32_t count;       /* how many boundaries there are */
  const int64_t *boundaries;
  const double *scales;     /* count of them */
  const ax_schedule *parts; /* count + 1 of them */
  const void *context;      /* for a function of your own */
};
ax_schedule ax_constant_schedule(double value);
/* The value goes from `from` to `to` in `steps` steps after the first `begin` steps; linear: in a straight line. If steps <= 0, it
   stays at `from`. */
ax_schedule ax_linear_schedule(double from, double to, int64_t steps, int64_t begin);
ax_schedule ax_polynomial_schedule(double from, double to, double power, int64_t steps, int64_t begin);
/* The value goes from `from` to alpha * from in `steps` steps, along half a cosine wave that is raised to the exponent. An error:
   steps <= 0. */
ax_schedule ax_cosine_decay_schedule(double from, int64_t steps, double alpha, double exponent);
/* The value is from * rate^(t / steps), t being the steps done after the first `begin` ones. `to` is its least value if rate < 1,
   and its greatest otherwise; NAN: there is no such bound. As optax.exponential_decay. If steps <= 0 or rate is 0, it stays at
   `from`. */
ax_schedule ax_exponential_decay_schedule(double from, int64_t steps, double rate, int64_t begin, bool staircase, double to);
/* The value goes in a straight line from `from` to `peak` in `warmup` steps, then along a cosine to `to`, which it reaches at step
   `steps`. An error: steps <= warmup. */
ax_schedule ax_warmup_cosine_decay_schedule(double from, double peak, int64_t warmup, int64_t steps, double to);
/* The value is `from`, multiplied by each scales[i] whose step boundaries[i] has come. Errors: other than as many scales as
   boundaries; a scale below 0. */
ax_schedule ax_piecewise_constant_schedule(double from, uint32_t count, const int64_t *boundaries, uint32_t scale_count,
                                           const double *scales);
/* The value is that of parts[0], and from step boundaries[i] on that of parts[i + 1], for which this step is number 0. An error:
   other than one part more than boundaries. */
ax_schedule ax_join_schedules(uint32_t part_count, const ax_schedule *parts, uint32_t count, const int64_t *boundaries);
/* In a trace: the value, f32[], when `count` steps are done, s32[]. A training step may return it beside its loss. */
ax_value ax_schedule_at(const ax_schedule *schedule, ax_value count);

/* --- Optimisers --- */

typedef enum ax_optimizer_kind {
  AX_SGD,
  AX_ADAM,
  AX_ADAMW,
  AX_LAMB,
  AX_LION,
  AX_RMSPROP,
  AX_ADAGRAD,
  AX_ADAFACTOR,
  AX_NOVOGRAD,
  AX_SHAMPOO
} ax_optimizer_kind;

typedef struct ax_optimizer {
  ax_optimizer_kind kind;
  ax_schedule learning_rate;
  double momentum;              /* sgd, rmsprop, adafactor, shampoo; 0: there is none, and no state for it */
  bool nesterov;                /* sgd, rmsprop, shampoo */
  double b1, b2, eps, eps_root; /* adam, adamw, lamb, novograd; lion: b1 and b2; rmsprop: b2, which optax calls decay, and eps;
                                   adafactor: b2, its decay_rate, and eps; adagrad: eps; shampoo: b2 and eps */
  double weight_decay;          /* adamw, lamb, lion, novograd, adafactor, shampoo */
  const char *decay;            /* of these: patterns of the leaves that decay, as ax_treedef_select takes them; NULL: all leaves */
  /* Limits to which gradients are clipped before the step, in this order; 0: not clipped. */
  double clip_value;     /* of each element's absolute value: optax.clip */
  double clip_block_rms; /* of the root of the mean square of each leaf: optax.clip_by_block_rms */
  double clip_norm;      /* of the norm of all leaves together: optax.clip_by_global_norm */
  /* adafactor. */
  double clipping_threshold;        /* of the root of the mean square of each leaf's step, before the learning rate; 0: none */
  int64_t min_dim_size_to_factor;   /* leaves with two dimensions as large keep means along these in the place of squares */
  bool multiply_by_parameter_scale; /* steps are as large as the leaf: by the root of its mean square, 0.001 at least */
  /* shampoo. */
  int64_t block_size; /* the most rows and columns of a block; 0: a leaf is one block */
  /* Of all optimisers. */
  int64_t accumulate_steps; /* a step is done with the mean of the gradients of so many updates, and parameters change then alone:
                               optax.MultiSteps; 0 and 1: each update is a step */
  double ema_decay;         /* the state has a mean of the parameters that forgets: each step makes it this share of itself and, for
                               the rest, of the new parameters, as optax.ema of these; over 1 - ema_decay^count it is unbiased;
                               0: none */
  const char *trainable;    /* patterns of the leaves that are optimised, as optax.masked; the others stay, count in no norm, and
                               have no state; NULL: all */
} ax_optimizer;
/* With optax's defaults: b1 0.9, b2 0.999, eps 1e-8; adamw: weight_decay 1e-4; lamb: eps 1e-6 and no decay; lion: b2 0.99 and
   weight_decay 1e-3; rmsprop: b2 0.9; adagrad: eps 1e-7; adafactor: b2 0.8, eps 1e-30, clipping_threshold 1, min_dim_size_to_factor
   128 and multiply_by_parameter_scale; novograd: b2 0.25, eps 1e-6. shampoo, which optax lacks: eps 1e-4, block_size 128, no b2. */
ax_optimizer ax_sgd(ax_schedule learning_rate);
ax_optimizer ax_adam(ax_schedule learning_rate);
ax_optimizer ax_adamw(ax_schedule learning_rate);
ax_optimizer ax_lamb(ax_schedule learning_rate);
ax_optimizer ax_lion(ax_schedule learning_rate);
ax_optimizer ax_rmsprop(ax_schedule learning_rate);
ax_optimizer ax_adagrad(ax_schedule learning_rate);
ax_optimizer ax_adafactor(ax_schedule learning_rate);
ax_optimizer ax_novograd(ax_schedule learning_rate);
/* Shampoo (V. Gupta, T. Koren, Y. Singer, arXiv:1802.09568). A leaf counts as a matrix with its last dimension as columns, and all
   others as rows, in blocks of at most block_size rows and columns. Of each block's gradients g, l is the sum of all g g^T, and r
   that of all g^T g; the step goes along (l + eps)^(-1/4) g (r + eps)^(-1/4). A leaf of one dimension is a column, which has the
   direction (l + eps)^(-1/2) g. With b2 the sums become means that forget: b2 l + (1 - b2) g g^T. momentum is that of sgd, of these
   directions. All but the trace is computed in f32, or f64 for f64 leaves. Eigenvalues are taken at each step: a block of n rows
   costs some 20 n^3. In a shard_map a leaf that is cut is gathered, and each device computes the whole of its direction. */
ax_optimizer ax_shampoo(ax_schedule learning_rate);

/* Makes the treedef of the optimiser's state for these parameters. Its leaves are count: s32[], the steps done; with
   accumulate_steps mini_step: s32[], the updates since; and for each parameter NAME that is trained, with its type and spec:
   trace/NAME (sgd with momentum), mu/NAME and nu/NAME (adam, adamw, lamb), mu/NAME (lion), nu/NAME and with momentum trace/NAME
   (rmsprop), or sum_of_squares/NAME (adagrad); novograd: mu/NAME, and nu/NAME, a scalar; adafactor: v_row/NAME, v_col/NAME and
   v/NAME, of which a leaf needs the first two, without one dimension, or the last, and the rest is [1], and with momentum
   trace/NAME; shampoo: left/NAME and right/NAME, in f32 or f64 and not cut: [blocks down, blocks across, n, n], n the rows or the
   columns of a block, and right/NAME of a leaf of one dimension [1]; with momentum trace/NAME. Then acc_grads/NAME, in f32
   or f64, and ema/NAME, where asked for. All begin as zeros:
   ax_tree_init(state, "*: zeros", 0); but optax's adagrad begins with "sum_of_*: constant(0.1); *: zeros". `*out` is owned by the
   caller, NULL on failure.
   AX_INVALID_ARGUMENT: a parameter that is not float; a number of the optimiser that is negative or not finite, b1, b2 or ema_decay
   of 1 or more. AX_PARSE_ERROR: bad patterns. */
AX_MUST_USE ax_status ax_optimizer_state(const ax_optimizer *optimizer, const ax_treedef *params_def, ax_treedef **out);
/* In a trace: does one step. gradients, params and new_params are lists of the leaves of params_def; state and new_state are lists
   of the leaves of the treedef that ax_optimizer_state makes. A new list may be the same C array as the old one. In a shard_map all
   may be blocks, as the specs say: norms are those of whole leaves (in ax_shard_map_unchecked the specs of params_def say how
   leaves are cut). Gradients are as ax_value_and_grad gives them: summed over the devices that hold the same parameter. Schedules
   other than constants are computed in f32; bias corrections in f32, or f64 for f64 leaves; all else in each leaf's dtype. Errors
   (kept by the trace): as ax_optimizer_state; a gradient or a state of another shape or dtype than its parameter wants; of
   adafactor and shampoo, blocks that are not cut as the specs say. */
void ax_optimizer_update(const ax_optimizer *optimizer, const ax_treedef *params_def, uint32_t gradient_count,
                         const ax_value *gradients, uint32_t state_count, const ax_value *state, uint32_t param_count,
                         const ax_value *params, uint32_t new_state_count, ax_value *new_state, uint32_t new_param_count,
                         ax_value *new_params);

#pragma GCC visibility pop

#ifndef __cplusplus /* lists, with their counts (axle/type.h) */
#define ax_piecewise_constant_schedule(from, boundaries, scales) \
  (ax_piecewise_constant_schedule)(from, AX_EXACTLY(boundaries), AX_COUNTED(double, scales))
#define ax_join_schedules(parts, boundaries) (ax_join_schedules)(AX_COUNTED(ax_schedule, parts), AX_EXACTLY(boundaries))
#define ax_optimizer_update(optimizer, params_def, gradients, state, params, new_state, new_params) \
  AX_LINED_VOID(optimizer_update, optimizer, params_def, AX_COUNTED(ax_value, gradients), AX_COUNTED(ax_value, state), \
                AX_COUNTED(ax_value, params), AX_COUNTED(ax_value, new_state), AX_COUNTED(ax_value, new_params))
#endif

#ifndef AXLE_NO_LINES /* axle/line.h */
#define ax_schedule_at(...) AX_LINED(schedule_at, __VA_ARGS__)
#define ax_optimizer_state(...) AX_LINED_STATUS(optimizer_state, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
