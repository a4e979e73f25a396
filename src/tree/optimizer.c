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
#include "tree/leaves.h"
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

/* --- What makes sense --- */

typedef struct limits {
  const char *name;
  double number, below; /* 0 <= number < below */
} limits;

static ax_status check(const ax_optimizer *o, const ax_treedef *params) {
  AX_TRY(ax_require(o, "optimizer"));
  AX_TRY(ax_require(params, "treedef of the parameters"));
  if (o->kind != AX_SGD && o->kind != AX_ADAM && o->kind != AX_ADAMW)
    return ax_error(AX_INVALID_ARGUMENT, "there is no optimizer %d", (int)o->kind);
  const limits all[] = {{"momentum", o->momentum, HUGE_VAL},
                        {"b1", o->b1, 1},
                        {"b2", o->b2, 1},
                        {"eps", o->eps, HUGE_VAL},
                        {"eps_root", o->eps_root, HUGE_VAL},
                        {"weight_decay", o->weight_decay, HUGE_VAL},
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

/* How many leaves of state there are for each parameter. */
static uint32_t moments_of(const ax_optimizer *o) { return o->kind == AX_SGD ? o->momentum != 0 : 2; }

/* --- The state's treedef --- */

ax_status ax_optimizer_state(const ax_optimizer *o, const ax_treedef *params, ax_treedef **out) {
  *out = NULL;
  ax_status status = check(o, params);
  if (status != AX_OK) return ax_error_context(status, "optimizer_state: ");
  const ax_type count_type = ax_array_type(AX_S32, AX_DIMS());
  ax_treedef *count, *own = (ax_treedef *)params; /* joining does not change it */
  AX_TRY(ax_treedef_create(AX_LIST(1, (const char *const[]){"count"}), &count_type, NULL, &count));
  const char *prefixes = moments_of(o) == 2 ? "; mu; nu" : moments_of(o) == 1 ? "; trace" : "";
  status = ax_treedef_join(prefixes, AX_LIST(1 + moments_of(o), ((ax_treedef *const[]){count, own, own})), out);
  ax_treedef_release(count);
  return status;
}

/* --- A step --- */

typedef struct step {
  const ax_optimizer *o;
  const ax_treedef *params;
  ax_rules decay;
  ax_value count, next_count;       /* s32[] */
  ax_value learning_rate;           /* f32[], negative */
  ax_value norm;                    /* of all gradients */
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

/* How many elements a leaf has of which x is this device's part. */
static double whole_elems(ax_value x, ax_axis_set axes) {
  ax_type type = ax_typeof(x);
  if (ax_failed()) return 1;
  return (double)ax_type_elems(&type) * (double)ax_axis_set_size(axes, &ax_builder_current()->axes);
}

static ax_value clipped(step *s, ax_value g, ax_axis_set axes) {
  const ax_optimizer *o = s->o;
  if (o->clip_value > 0) g = ax_clamp(ax_real(-o->clip_value), g, ax_real(o->clip_value));
  if (o->clip_block_rms > 0) {
    ax_value rms = ax_sqrt(ax_div(ax_sum_of_parts(ax_sum_of_squares(g), axes), ax_real(whole_elems(g, axes))));
    ax_value by = ax_max(ax_real(1), ax_div(rms, ax_real(o->clip_block_rms)));
    g = ax_div(g, ax_convert_element_type(by, ax_typeof(g).dtype));
  }
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

/* One leaf, whose gradient is clipped. moments: its places in the new state, which hold the old. */
static ax_value updated(step *s, uint32_t i, ax_value g, ax_value p, ax_value *moments[2]) {
  const ax_optimizer *o = s->o;
  ax_dtype dtype = ax_typeof(p).dtype;
  if (ax_failed()) return ax_poison;
  ax_value direction = o->kind == AX_SGD ? sgd_direction(o, g, moments[0]) : adam_direction(s, g, dtype, moments[0], moments[1]);
  if (o->kind == AX_ADAMW && o->weight_decay > 0 && (o->decay == NULL || ax_rules_pick(&s->decay, s->params->names[i])))
    direction = ax_add(direction, ax_mul(ax_real(o->weight_decay), p));
  return ax_add(p, ax_mul(rate(s, dtype), direction));
}

/* Whether a leaf's gradient or state is of its parameter's shape and dtype. */
static bool alike(const step *s, const char *what, uint32_t i, ax_value x, ax_value p) {
  ax_type is = ax_typeof(x), param = ax_typeof(p);
  if (ax_failed()) return false;
  if (is.dtype == param.dtype && ax_same_shape(&is, &param) && ax_is_float(param.dtype)) return true;
  ax_reject_as("optimizer_update", "%s: its %s is %s, the parameter %s", s->params->names[i], what, ax_type_string(&is, NULL),
               ax_type_string(&param, NULL));
  return false;
}

static bool all_alike(const step *s, const ax_value *gradients, const ax_value *state, const ax_value *params) {
  uint32_t n = s->params->count;
  for (uint32_t i = 0; i < n; i++) {
    if (!alike(s, "gradient", i, gradients[i], params[i])) return false;
    for (uint32_t k = 0; k < moments_of(s->o); k++)
      if (!alike(s, "state", i, state[1 + k * n + i], params[i])) return false;
  }
  return true;
}

/* The count, the learning rate and the norm; gradients become clipped ones. */
static void prepare(step *s, ax_value *gradients, ax_value count) {
  uint32_t n = s->params->count;
  ax_axis_set *axes = ax_trace_alloc(((size_t)n + 1) * sizeof axes[0]); /* along which a leaf's parts differ */
  for (uint32_t i = 0; i < n && axes != NULL; i++) axes[i] = ax_parts_axes(gradients[i], s->params->specs[i]);
  if (axes == NULL) return;
  s->count = count;
  s->next_count = ax_select_n(ax_lt(count, ax_integer(INT32_MAX)), count, ax_add(count, ax_integer(1)));
  s->learning_rate = ax_neg(ax_schedule_at(&s->o->learning_rate, count));
  for (uint32_t i = 0; i < n; i++) gradients[i] = clipped(s, gradients[i], axes[i]);
  if (s->o->clip_norm > 0 && n > 0) s->norm = ax_norm_of_parts("optimizer_update", n, gradients, axes);
  for (uint32_t i = 0; i < n; i++) gradients[i] = within_norm(s, gradients[i], ax_typeof(gradients[i]).dtype);
}

static void update(step *s, const ax_value *gradients, const ax_value *state, const ax_value *params, ax_value *new_state,
                   ax_value *new_params) {
  uint32_t n = s->params->count, moments = moments_of(s->o);
  ax_value *clipped_gradients = ax_trace_alloc((n + 1) * sizeof gradients[0]);
  if (clipped_gradients == NULL || !all_alike(s, gradients, state, params)) return;
  if (n > 0) memcpy(clipped_gradients, gradients, n * sizeof gradients[0]);
  prepare(s, clipped_gradients, state[0]);
  new_state[0] = s->next_count;
  for (uint32_t i = 0; i < n; i++) {
    ax_value *places[2] = {NULL, NULL};
    for (uint32_t k = 0; k < moments; k++) {
      places[k] = &new_state[1 + k * n + i];
      *places[k] = state[1 + k * n + i];
    }
    new_params[i] = updated(s, i, clipped_gradients[i], params[i], places);
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
  step s = {.o = o, .params = params_def};
  ax_status status = check(o, params_def);
  if (status == AX_OK && (gradients == NULL || state == NULL || params == NULL))
    status = ax_error(AX_INVALID_ARGUMENT, "there are no %s",
                      gradients == NULL ? "gradients"
                      : state == NULL   ? "leaves of state"
                                        : "parameters");
  const uint32_t n = o != NULL && params_def != NULL ? params_def->count : 0, states = n > 0 ? 1 + moments_of(o) * n : 0;
  if (status == AX_OK && o->decay != NULL) status = ax_rules_parse(o->decay, "decay", false, &s.decay);
  if (status != AX_OK) status = ax_error_context(status, "optimizer_update: ");
  if (status == AX_OK) status = check_lists(n, states, gradient_count, state_count, param_count);
  if (status == AX_OK) status = check_results(n, states, new_state_count, new_param_count);
  if (status != AX_OK) ax_fail(status);
  else if (!ax_failed()) update(&s, gradients, state, params, new_state, new_params);
  ax_rules_deinit(&s.decay);
  if (!ax_failed()) return;
  ax_poison_list(new_param_count, n, new_params);
  ax_poison_list(new_state_count, states, new_state);
}
