/* Optimisers: a step as equations of the trace, leaf by leaf, each operation as optax has it and in its order, so that the same
   roundings come out.

     gradients -> clipped -> direction (with new state) -> decayed -> params + (-learning rate) direction

   Values that depend on no leaf (the norm, the learning rate, the bias corrections) are computed once for each dtype. */
#include <math.h>
#include <string.h>

#include "axle/ops.h"
#include "axle/optimizer.h"
#include "ir/program.h"
#include "prim/bind.h"
#include "tree/moments.h"
#include "tree/pattern.h"
#include "tree/treedef.h"

ax_optimizer ax_sgd(ax_schedule learning_rate) { return (ax_optimizer){.kind = AX_SGD, .learning_rate = learning_rate}; }

ax_optimizer ax_adam(ax_schedule learning_rate) {
  return (ax_optimizer){.kind = AX_ADAM, .learning_rate = learning_rate, .b1 = 0.9, .b2 = 0.999, .eps = 1e-8};
}

ax_optimizer ax_adamw(ax_schedule learning_rate) {
  ax_optimizer adamw = ax_adam(learning_rate);
  adamw.kind = AX_ADAMW;
  adamw.weight_decay = 1e-4;
  return adamw;
}

ax_optimizer ax_lamb(ax_schedule learning_rate) {
  ax_optimizer lamb = ax_adam(learning_rate);
  lamb.kind = AX_LAMB;
  lamb.eps = 1e-6;
  return lamb;
}

ax_optimizer ax_lion(ax_schedule learning_rate) {
  return (ax_optimizer){.kind = AX_LION, .learning_rate = learning_rate, .b1 = 0.9, .b2 = 0.99, .weight_decay = 1e-3};
}

ax_optimizer ax_rmsprop(ax_schedule learning_rate) {
  return (ax_optimizer){.kind = AX_RMSPROP, .learning_rate = learning_rate, .b2 = 0.9, .eps = 1e-8};
}

ax_optimizer ax_adagrad(ax_schedule learning_rate) {
  return (ax_optimizer){.kind = AX_ADAGRAD, .learning_rate = learning_rate, .eps = 1e-7};
}

ax_optimizer ax_adafactor(ax_schedule learning_rate) {
  return (ax_optimizer){.kind = AX_ADAFACTOR,
                        .learning_rate = learning_rate,
                        .b2 = 0.8,
                        .eps = 1e-30,
                        .clipping_threshold = 1,
                        .min_dim_size_to_factor = 128,
                        .multiply_by_parameter_scale = true};
}

ax_optimizer ax_novograd(ax_schedule learning_rate) {
  return (ax_optimizer){.kind = AX_NOVOGRAD, .learning_rate = learning_rate, .b1 = 0.9, .b2 = 0.25, .eps = 1e-6};
}

ax_optimizer ax_shampoo(ax_schedule learning_rate) {
  return (ax_optimizer){.kind = AX_SHAMPOO, .learning_rate = learning_rate, .eps = 1e-4, .block_size = 128};
}

/* --- What makes sense --- */

typedef struct limits {
  const char *name;
  double number, below; /* 0 <= number < below */
} limits;

static ax_status check(const ax_optimizer *o, const ax_treedef *params) {
  AX_TRY(ax_require(o, "optimizer"));
  AX_TRY(ax_require(params, "treedef of the parameters"));
  if ((unsigned)o->kind > AX_SHAMPOO)
    return ax_error(AX_INVALID_ARGUMENT, "there is no optimizer %d", (int)o->kind);
  const limits all[] = {{"momentum", o->momentum, HUGE_VAL},
                        {"b1", o->b1, 1},
                        {"b2", o->b2, 1},
                        {"eps", o->eps, HUGE_VAL},
                        {"eps_root", o->eps_root, HUGE_VAL},
                        {"weight_decay", o->weight_decay, HUGE_VAL},
                        {"clipping_threshold", o->clipping_threshold, HUGE_VAL},
                        {"min_dim_size_to_factor", (double)o->min_dim_size_to_factor, HUGE_VAL},
                        {"block_size", (double)o->block_size, HUGE_VAL},
                        {"accumulate_steps", (double)o->accumulate_steps, INT32_MAX},
                        {"ema_decay", o->ema_decay, 1},
                        {"clip_value", o->clip_value, HUGE_VAL},
                        {"clip_block_rms", o->clip_block_rms, HUGE_VAL},
                        {"clip_norm", o->clip_norm, HUGE_VAL}};
  for (size_t i = 0; i < AX_COUNT(all); i++)
    if (!(all[i].number >= 0 && all[i].number < all[i].below))
      return ax_error(AX_INVALID_ARGUMENT, "%s is %g; it must be at least 0 and less than %g", all[i].name, all[i].number,
                      all[i].below);
  for (uint32_t i = 0; i < params->count; i++)
    if (!ax_is_float(params->types[i].dtype))
      return ax_error(AX_INVALID_ARGUMENT, "%s is %s: only floats are optimised", params->names[i],
                      ax_type_string(&params->types[i], NULL));
  return AX_OK;
}

/* Whether weights decay when all else of the direction is made. */
static bool decays(const ax_optimizer *o) {
  return o->kind == AX_ADAMW || o->kind == AX_LAMB || o->kind == AX_LION || o->kind == AX_SHAMPOO;
}

/* --- The state's treedef --- */

ax_status ax_optimizer_state(const ax_optimizer *o, const ax_treedef *params, ax_treedef **out) {
  *out = NULL;
  ax_status status = check(o, params);
  if (status != AX_OK) return ax_error_context(status, "optimizer_state: ");
  ax_treedef *trained;
  status = ax_trained(o, params, &trained);
  if (status == AX_OK) status = ax_moments_treedef(o, trained, out);
  ax_treedef_release(trained);
  return status == AX_OK ? AX_OK : ax_error_context(status, "optimizer_state: ");
}

/* --- A step --- */

typedef struct step {
  const ax_optimizer *o;
  const ax_treedef *params; /* those that are trained */
  ax_moment moments[AX_MOMENTS];
  uint32_t moment_count, scalars;
  ax_rules decay;
  ax_value count, next_count;       /* s32[] */
  ax_value learning_rate;           /* f32[], negative */
  ax_value norm;                    /* of all gradients */
  ax_axis_set *axes;                /* by leaf: along which its parts differ */
  /* by dtype of the leaf, made when first needed: */
  ax_value rates[AX_DTYPE_COUNT], norms[AX_DTYPE_COUNT], corrections[2][AX_DTYPE_COUNT];
} step;

/* A scalar in a leaf's dtype, kept in *place. */
static ax_value in_dtype(ax_value scalar, ax_dtype dtype, ax_value *place) {
  if (place->trace == 0) *place = ax_convert_element_type(scalar, dtype);
  return *place;
}

/* The negative learning rate in a leaf's dtype. */
static ax_value rate(step *s, ax_dtype dtype) {
  const ax_schedule *schedule = &s->o->learning_rate;
  if (s->rates[dtype].trace == 0 && ax_schedule_is_constant(schedule)) s->rates[dtype] = ax_full(dtype, AX_DIMS(), -schedule->from);
  return in_dtype(s->learning_rate, dtype, &s->rates[dtype]);
}

/* 1 - b^(steps with this one), in f32 or f64 and then the leaf's dtype. */
static ax_value correction(step *s, int which, ax_dtype dtype) {
  ax_value *place = &s->corrections[which][dtype];
  if (place->trace != 0) return *place;
  ax_dtype wide = dtype == AX_F64 ? AX_F64 : AX_F32;
  ax_value b = ax_full(wide, AX_DIMS(), which == 0 ? s->o->b1 : s->o->b2);
  ax_value left = ax_sub(ax_full(wide, AX_DIMS(), 1), ax_pow(b, ax_convert_element_type(s->next_count, wide)));
  return in_dtype(left, dtype, place);
}

static ax_value clipped(step *s, ax_value g, ax_axis_set axes) {
  const ax_optimizer *o = s->o;
  if (o->clip_value > 0) g = ax_clamp(ax_real(-o->clip_value), g, ax_real(o->clip_value));
  if (o->clip_block_rms > 0) g = ax_within_rms(g, axes, o->clip_block_rms);
  return g;
}

static ax_value within_norm(step *s, ax_value g, ax_dtype dtype) {
  if (s->o->clip_norm == 0) return g;
  ax_value norm = in_dtype(s->norm, dtype, &s->norms[dtype]);
  return ax_select_n(ax_lt(s->norm, ax_real(s->o->clip_norm)), ax_mul(ax_div(g, norm), ax_real(s->o->clip_norm)), g);
}

/* (1 - b) x + b m */
static ax_value moved(double b, ax_value x, ax_value m) { return ax_add(ax_mul(ax_real(1 - b), x), ax_mul(ax_real(b), m)); }

/* The direction of sgd's step; *trace becomes the new trace. */
static ax_value sgd_direction(const ax_optimizer *o, ax_value g, ax_value *trace) {
  if (trace == NULL) return g;
  *trace = ax_add(g, ax_mul(ax_real(o->momentum), *trace));
  return o->nesterov ? ax_add(g, ax_mul(ax_real(o->momentum), *trace)) : *trace;
}

static ax_value adam_direction(step *s, ax_value g, ax_dtype dtype, ax_value *mu, ax_value *nu) {
  const ax_optimizer *o = s->o;
  *mu = moved(o->b1, g, *mu);
  *nu = moved(o->b2, ax_mul(g, g), *nu);
  ax_value mean = ax_div(*mu, correction(s, 0, dtype)), square = ax_div(*nu, correction(s, 1, dtype));
  if (o->eps_root > 0) square = ax_add(square, ax_real(o->eps_root));
  return ax_div(mean, ax_add(ax_sqrt(square), ax_real(o->eps)));
}

/* The sign of a mixture of gradient and mean, whose weights differ from those with which the mean moves on. */
static ax_value lion_direction(const ax_optimizer *o, ax_value g, ax_value *mu) {
  ax_value direction = ax_sign(moved(o->b1, g, *mu));
  *mu = moved(o->b2, g, *mu);
  return direction;
}

static ax_value rmsprop_direction(const ax_optimizer *o, ax_value g, ax_value *nu) {
  *nu = moved(o->b2, ax_mul(g, g), *nu);
  return ax_mul(ax_rsqrt(ax_add(*nu, ax_real(o->eps))), g);
}

static ax_value adagrad_direction(const ax_optimizer *o, ax_value g, ax_value *sum) {
  *sum = ax_add(ax_mul(g, g), *sum);
  return ax_mul(ax_where(ax_gt(*sum, ax_real(0)), ax_rsqrt(ax_add(*sum, ax_real(o->eps))), ax_real(0)), g);
}

/* Whether weights decay, and this one does. */
static bool leaf_decays(const step *s, uint32_t i) {
  return s->o->weight_decay > 0 && (s->o->decay == NULL || ax_rules_pick(&s->decay, s->params->names[i]));
}

/* The square of the length is that of the whole leaf, and no mean at the first step; weights decay before the mean is taken. */
static ax_value novograd_direction(step *s, uint32_t i, ax_value g, ax_value p, ax_value *mu, ax_value *nu) {
  const ax_optimizer *o = s->o;
  ax_value square = ax_sum_of_parts(ax_sum_of_squares(g), s->axes[i]);
  if (ax_failed()) return ax_poison;
  square = ax_convert_element_type(square, ax_typeof(g).dtype);
  *nu = ax_where(ax_eq(s->count, ax_integer(0)), square, moved(o->b2, square, *nu));
  ax_value root = ax_sqrt(o->eps_root > 0 ? ax_add(*nu, ax_real(o->eps_root)) : *nu);
  ax_value direction = ax_div(g, ax_add(root, ax_real(o->eps)));
  if (leaf_decays(s, i)) direction = ax_add(direction, ax_mul(ax_real(o->weight_decay), p));
  return *mu = ax_add(ax_mul(ax_real(o->b1), *mu), direction);
}

static ax_leaf_cut cut_of(const step *s, uint32_t i) {
  return (ax_leaf_cut){.whole = &s->params->types[i], .spec = s->params->specs[i], .axes = s->axes[i]};
}

static ax_value shampoo_direction(const step *s, uint32_t i, ax_value g, ax_value *const *moments) {
  const ax_leaf_cut cut = cut_of(s, i);
  return sgd_direction(s->o, ax_shampoo_direction(s->o, &cut, g, moments[0], moments[1]), moments[2]);
}

static ax_value direction_of(step *s, uint32_t i, ax_value g, ax_value p, ax_dtype dtype, ax_value *const *moments) {
  switch (s->o->kind) {
    case AX_SGD: return sgd_direction(s->o, g, moments[0]);
    case AX_LION: return lion_direction(s->o, g, moments[0]);
    case AX_RMSPROP: return rmsprop_direction(s->o, g, moments[0]);
    case AX_ADAGRAD: return adagrad_direction(s->o, g, moments[0]);
    case AX_SHAMPOO: return shampoo_direction(s, i, g, moments);
    case AX_NOVOGRAD: return novograd_direction(s, i, g, p, moments[0], moments[1]);
    default: return adam_direction(s, g, dtype, moments[0], moments[1]);
  }
}

/* lamb: a leaf's step is as long as the leaf, times the rate; as it is where either has no length. */
static ax_value trusted(const step *s, uint32_t i, ax_value direction, ax_value p) {
  ax_value long_p = ax_sqrt(ax_sum_of_parts(ax_sum_of_squares(p), s->axes[i]));
  ax_value long_step = ax_sqrt(ax_sum_of_parts(ax_sum_of_squares(direction), s->axes[i]));
  ax_value none = ax_or(ax_eq(long_p, ax_real(0)), ax_eq(long_step, ax_real(0)));
  ax_value ratio = ax_where(none, ax_real(1), ax_div(long_p, ax_where(none, ax_real(1), long_step)));
  if (ax_failed()) return ax_poison;
  return ax_mul(direction, ax_convert_element_type(ratio, ax_typeof(direction).dtype));
}

/* 1 - (steps with this one)^-b2, in f32 and then the leaf's dtype. */
static ax_value adafactor_decay(step *s, ax_dtype dtype) {
  ax_value *place = &s->corrections[0][dtype];
  if (place->trace != 0) return *place;
  ax_value steps = ax_convert_element_type(s->next_count, AX_F32);
  return in_dtype(ax_sub(ax_full(AX_F32, AX_DIMS(), 1), ax_pow(steps, ax_full(AX_F32, AX_DIMS(), -s->o->b2))), dtype, place);
}

static ax_value by_adafactor(step *s, uint32_t i, ax_value g, ax_value p, ax_value *const *moments) {
  const ax_dtype dtype = ax_typeof(p).dtype;
  const ax_adafactor_leaf leaf = {.o = s->o,
                                  .cut = cut_of(s, i),
                                  .decay = adafactor_decay(s, dtype),
                                  .rate = rate(s, dtype),
                                  .decays = leaf_decays(s, i)};
  return ax_adafactor_step(&leaf, g, p, moments);
}

/* One leaf, whose gradient is clipped. moments: its places in the new state, which hold the old. */
static ax_value updated(step *s, uint32_t i, ax_value g, ax_value p, ax_value *const *moments) {
  const ax_optimizer *o = s->o;
  ax_dtype dtype = ax_typeof(p).dtype;
  if (ax_failed()) return ax_poison;
  if (o->kind == AX_ADAFACTOR) return by_adafactor(s, i, g, p, moments);
  ax_value direction = direction_of(s, i, g, p, dtype, moments);
  if (decays(o) && leaf_decays(s, i))
    direction = ax_add(direction, ax_mul(ax_real(o->weight_decay), p));
  if (o->kind == AX_LAMB) direction = trusted(s, i, direction, p);
  ax_value change = ax_mul(rate(s, dtype), direction);
  if (o->kind == AX_RMSPROP && o->momentum != 0) change = sgd_direction(o, change, moments[1]);
  return ax_add(p, change);
}

/* Whether a leaf's gradient or state is of the type that its parameter wants. */
static bool alike(const step *s, const char *what, uint32_t i, ax_value x, const ax_type *wanted, const ax_type *param) {
  ax_type is = ax_typeof(x);
  if (ax_failed()) return false;
  if (is.dtype == wanted->dtype && ax_same_shape(&is, wanted) && ax_is_float(param->dtype)) return true;
  ax_reject_as("optimizer_update", "%s: its %s is %s, the parameter %s", s->params->names[i], what, ax_type_string(&is, NULL),
               ax_type_string(param, NULL));
  return false;
}

static bool all_alike(const step *s, const ax_value *gradients, const ax_value *state, const ax_value *params) {
  const uint32_t n = s->params->count;
  for (uint32_t i = 0; i < n; i++) {
    ax_type param = ax_typeof(params[i]);
    if (ax_failed() || !alike(s, "gradient", i, gradients[i], &param, &param)) return false;
    for (uint32_t k = 0; k < s->moment_count; k++) {
      ax_type wanted = ax_moment_type(s->o, s->moments[k].shape, &s->params->types[i], &param);
      if (!alike(s, "state", i, state[s->scalars + k * n + i], &wanted, &param)) return false;
    }
  }
  return true;
}

/* The count, the learning rate and the norm; gradients become clipped ones. */
static void prepare(step *s, ax_value *gradients, ax_value count) {
  uint32_t n = s->params->count;
  ax_axis_set *axes = s->axes = ax_trace_alloc(((size_t)n + 1) * sizeof axes[0]);
  for (uint32_t i = 0; i < n && axes != NULL; i++) axes[i] = ax_parts_axes(gradients[i], s->params->specs[i]);
  if (axes == NULL) return;
  s->count = count;
  s->next_count = ax_select_n(ax_lt(count, ax_integer(INT32_MAX)), count, ax_add(count, ax_integer(1)));
  s->learning_rate = ax_neg(ax_schedule_at(&s->o->learning_rate, count));
  for (uint32_t i = 0; i < n; i++) gradients[i] = clipped(s, gradients[i], axes[i]);
  if (s->o->clip_norm > 0 && n > 0) s->norm = ax_norm_of_parts("optimizer_update", n, gradients, axes);
  for (uint32_t i = 0; i < n; i++) gradients[i] = within_norm(s, gradients[i], ax_typeof(gradients[i]).dtype);
}

/* --- Gradients of several steps: their mean so far, as Welford has it, is the gradient of a step that is done, and kept if it is
   the last of them --- */

static void accumulate(const step *s, ax_value *gradients, const ax_value *state, ax_value *accumulated) {
  for (uint32_t i = 0; i < s->params->count; i++) {
    ax_type type = ax_typeof(accumulated[i]);
    if (ax_failed()) return;
    ax_value steps = ax_convert_element_type(ax_add(state[1], ax_integer(1)), type.dtype);
    ax_value g = ax_convert_element_type(gradients[i], type.dtype);
    accumulated[i] = ax_add(accumulated[i], ax_div(ax_sub(g, accumulated[i]), steps));
    gradients[i] = ax_convert_element_type(accumulated[i], ax_typeof(gradients[i]).dtype);
  }
}

static void keep_if_last(const step *s, const ax_value *state, const ax_value *params, ax_value *new_state, ax_value *new_params,
                         uint32_t accumulated) {
  const uint32_t n = s->params->count;
  const ax_value last = ax_eq(state[1], ax_integer(s->o->accumulate_steps - 1));
  for (uint32_t i = 0; i < n; i++) new_params[i] = ax_where(last, new_params[i], params[i]);
  for (uint32_t k = 0; k < s->scalars + s->moment_count * n; k++) {
    if (k == 1)
      new_state[k] = ax_where(last, ax_integer(0), ax_add(state[1], ax_integer(1)));
    else if (k >= s->scalars + accumulated * n && k < s->scalars + (accumulated + 1) * n)
      new_state[k] = ax_where(last, ax_real(0), new_state[k]);
    else
      new_state[k] = ax_where(last, new_state[k], state[k]);
  }
}

/* --- All leaves --- */

static void update(step *s, const ax_value *gradients, const ax_value *state, const ax_value *params, ax_value *new_state,
                   ax_value *new_params) {
  const uint32_t n = s->params->count, states = s->scalars + s->moment_count * n, more = ax_accumulates(s->o);
  const uint32_t own = s->moment_count - more - (s->o->ema_decay > 0); /* then the accumulated gradients, then the means */
  ax_value *room = ax_trace_alloc(((size_t)3 * n + 2 * states) * sizeof room[0]);
  if (room == NULL || !all_alike(s, gradients, state, params)) return;
  ax_value *given = room, *old_params = room + n, *made = room + 2 * n, *old_state = room + 3 * n, *next = old_state + states;
  memcpy(given, gradients, n * sizeof room[0]);
  memcpy(old_params, params, n * sizeof room[0]);
  memcpy(old_state, state, states * sizeof room[0]);
  memcpy(next, state, states * sizeof room[0]);
  if (more > 0) accumulate(s, given, old_state, next + s->scalars + own * n);
  prepare(s, given, old_state[0]);
  next[0] = s->next_count;
  for (uint32_t i = 0; i < n && !ax_failed(); i++) {
    ax_value *places[AX_MOMENTS] = {NULL}, *leaf = next + s->scalars + i;
    for (uint32_t k = 0; k < own; k++) places[k] = leaf + k * n;
    made[i] = updated(s, i, given[i], old_params[i], places);
    if (s->o->ema_decay > 0) leaf[(own + more) * n] = moved(s->o->ema_decay, made[i], leaf[(own + more) * n]);
  }
  if (ax_failed()) return;
  if (more > 0) keep_if_last(s, old_state, old_params, next, made, own);
  memcpy(new_state, next, states * sizeof room[0]);
  memcpy(new_params, made, n * sizeof room[0]);
}

/* Only the leaves that are trained; the others stay. */
static void update_trained(step *s, const ax_treedef *all, const ax_value *gradients, const ax_value *state, const ax_value *params,
                           ax_value *new_state, ax_value *new_params) {
  const uint32_t n = s->params->count;
  ax_value *room = ax_trace_alloc(((size_t)3 * n + 1) * sizeof room[0]), *made = room + 2 * n;
  uint32_t next = 0;
  if (room == NULL) return;
  if (n == all->count) {
    update(s, gradients, state, params, new_state, new_params);
    return;
  }
  for (uint32_t i = 0; i < all->count; i++) {
    if (next == n || strcmp(all->names[i], s->params->names[next]) != 0) continue;
    room[next] = gradients[i], room[n + next] = params[i];
    next++;
  }
  update(s, room, state, room + n, new_state, made);
  next = 0;
  for (uint32_t i = 0; i < all->count && !ax_failed(); i++) {
    const bool is_trained = next < n && strcmp(all->names[i], s->params->names[next]) == 0;
    new_params[i] = is_trained ? made[next++] : params[i];
  }
}

static ax_status check_lists(uint32_t params, uint32_t states, uint32_t gradient_count, uint32_t state_count,
                             uint32_t param_count) {
  AX_TRY(ax_list_check("optimizer_update", "there are", "gradient", gradient_count, params));
  AX_TRY(ax_list_check("optimizer_update", "the state has", "value", state_count, states));
  return ax_list_check("optimizer_update", "there are", "parameter", param_count, params);
}

static ax_status check_results(uint32_t params, uint32_t states, uint32_t state_count, uint32_t param_count) {
  AX_TRY(ax_list_check("optimizer_update", "the new state has", "value", state_count, states));
  return ax_list_check("optimizer_update", "there are", "new parameter", param_count, params);
}

void (ax_optimizer_update)(const ax_optimizer *o, const ax_treedef *params_def, uint32_t gradient_count, const ax_value *gradients,
                           uint32_t state_count, const ax_value *state, uint32_t param_count, const ax_value *params,
                           uint32_t new_state_count, ax_value *new_state, uint32_t new_param_count, ax_value *new_params) {
  step s = {.o = o};
  ax_treedef *trained = NULL;
  ax_status status = check(o, params_def);
  if (status == AX_OK) status = ax_trained(o, params_def, &trained);
  if (status == AX_OK && (gradients == NULL || state == NULL || params == NULL))
    status = ax_error(AX_INVALID_ARGUMENT, "there are no %s",
                      gradients == NULL ? "gradients"
                      : state == NULL   ? "leaves of state"
                                        : "parameters");
  const uint32_t n = o != NULL && params_def != NULL ? params_def->count : 0;
  uint32_t states = 0;
  if (trained != NULL) {
    s.params = trained, s.scalars = ax_moment_scalars(o), s.moment_count = ax_moments_of(o, s.moments);
    states = s.scalars + s.moment_count * trained->count;
  }
  if (status == AX_OK && o->decay != NULL) status = ax_rules_parse(o->decay, "decay", false, &s.decay);
  if (status != AX_OK) status = ax_error_context(status, "optimizer_update: ");
  if (status == AX_OK) status = check_lists(n, states, gradient_count, state_count, param_count);
  if (status == AX_OK) status = check_results(n, states, new_state_count, new_param_count);
  if (status != AX_OK) ax_fail(status);
  else if (!ax_failed()) update_trained(&s, params_def, gradients, state, params, new_state, new_params);
  ax_treedef_release(trained);
  ax_rules_deinit(&s.decay);
  if (!ax_failed()) return;
  ax_poison_list(new_param_count, n, new_params);
  ax_poison_list(new_state_count, states, new_state);
}
