/* Functions linearized inside a trace: linearize, the two uses of its map (pushforward, pullback), and vjp.

     x.. -> primal -> y.., residual..  here, once     residual.., dx.. -> tangent -> dy..                pushforward
                                                      residual.., ct of dy.. -> transposed -> ct of dx.. pullback

   The trace that a function was linearized in keeps the programs and the residuals, which are values of it like others: an inner
   trace that uses them captures them. A handle is the trace's serial and a number in it, so that a stale one is recognized. */
#include "control/custom_linear.h"
#include "xform/in_trace.h"

void ax_linearized_deinit(ax_linearized *map) {
  ax_program_release(map->tangent);
  ax_program_release(map->transposed);
  *map = (ax_linearized){0};
}

ax_value *ax_linearized_init(ax_linearized *map, const ax_traced *f) {
  ax_program *primal = NULL;
  const ax_program *program = f->body.program;
  ax_args inputs = ax_traced_inputs(f);
  ax_type *results = ax_trace_alloc(program->out_count * sizeof results[0]);
  *map = (ax_linearized){.operand_count = f->by_count, .operands = f->by, .result_count = program->out_count, .results = results};
  if (ax_failed()) return NULL;
  for (uint32_t k = 0; k < program->out_count; k++) results[k] = *ax_program_out_type(program, k);
  ax_status status = ax_program_linearize(program, inputs, &primal, &map->tangent, &map->residual_count);
  uint32_t count = primal != NULL ? primal->out_count : 0;
  ax_value *made = ax_trace_alloc(count * sizeof made[0]);
  ax_traced_call(f, status, primal, NULL, 0, made, count);
  map->residuals = made + program->out_count;
  return ax_failed() ? NULL : made;
}

/* --- Using it --- */

/* The residuals, and room behind them; NULL: the trace has failed. */
static ax_value *residuals_and(const ax_linearized *map, uint32_t count) {
  ax_value *operands = ax_trace_alloc(((size_t)map->residual_count + count) * sizeof operands[0]);
  for (uint32_t r = 0; r < map->residual_count && operands != NULL; r++) operands[r] = map->residuals[r];
  return operands;
}

static void push_forward(const char *what, const ax_linearized *map, const ax_value *tangents, ax_value *out_tangents) {
  uint32_t residuals = map->residual_count;
  const ax_program *program = map->tangent;
  ax_status status = ax_custom_linear_check(program);
  if (status != AX_OK) ax_trace_fails(what, status);
  ax_value *operands = residuals_and(map, map->operand_count);
  ax_value *made = ax_trace_alloc(program->out_count * sizeof made[0]);
  for (uint32_t k = 0; k < map->operand_count && operands != NULL; k++) {
    operands[residuals + k] = tangents[k];
    if (!ax_fit_tangent(what, "operand", "tangent", map->operands[k], &program->types[residuals + k], ax_all_axes(&program->axes),
                        &operands[residuals + k]))
      return;
  }
  if (ax_failed()) return;
  ax_call(program, operands, made);
  for (uint32_t k = 0; k < map->result_count && !ax_failed(); k++)
    out_tangents[k] = ax_is_differentiable(map->results[k].dtype) ? *made++ : ax_zeros_of(&map->results[k]);
}

static bool transpose(const char *what, ax_linearized *map) {
  if (map->transposed != NULL) return true;
  ax_status status = ax_program_transpose(map->tangent, AX_RANGE(map->residual_count, map->operand_count), &map->transposed);
  if (status != AX_OK) ax_trace_fails(what, status);
  return status == AX_OK;
}

static void pull_back(const char *what, ax_linearized *map, const ax_value *cotangents, ax_value *gradients) {
  uint32_t next = map->residual_count;
  ax_value *operands = residuals_and(map, map->result_count), *made = ax_trace_alloc(map->operand_count * sizeof made[0]);
  for (uint32_t k = 0; k < map->result_count && operands != NULL; k++) {
    ax_type type = ax_dual(&map->results[k]);
    if (!ax_is_differentiable(type.dtype)) continue;
    operands[next] = cotangents[k];
    if (!ax_fit_tangent(what, "result", "cotangent", k, &type, ax_all_axes(&map->tangent->axes), &operands[next++])) return;
  }
  if (ax_failed() || !transpose(what, map)) return;
  ax_call(map->transposed, AX_LIST(map->transposed->in_count, operands), AX_LIST(map->operand_count, made));
  for (uint32_t k = 0; k < map->operand_count && !ax_failed(); k++) gradients[k] = made[k];
}

/* --- vjp --- */

void (ax_vjp)(ax_fn function, ax_args wrt, uint32_t in_count, const ax_value *in, uint32_t cotangent_count,
              const ax_value *cotangents, uint32_t out_count, ax_value *out, uint32_t gradient_count, ax_value *gradients) {
  ax_traced f;
  ax_linearized map = {0};
  bool ready = ax_traced_begin(&f, "vjp", function, wrt, in_count, in);
  bool fits = ax_list_fits("vjp", "it takes", "cotangent", cotangent_count, function.out_count);
  cotangents = ax_take_operands(fits ? cotangents : NULL, function.out_count, NULL, 0);
  ready = ax_traced_results("vjp", out_count, function.out_count, out) && fits && ready;
  ready = ax_traced_results("vjp", gradient_count, f.by_count, gradients) && ready;
  if (ready && ax_traced_trace(&f, NULL)) {
    const ax_value *made = ax_linearized_init(&map, &f);
    if (made != NULL) pull_back("vjp", &map, cotangents, gradients);
    for (uint32_t k = 0; k < function.out_count && !ax_failed(); k++) out[k] = made[k];
  }
  ax_linearized_deinit(&map);
  ax_traced_deinit(&f);
}

/* --- linearize, and its handle --- */

typedef struct kept { /* the maps of a trace, by number */
  ax_linearized *map;
  uint32_t count, capacity;
} kept;

static void release_kept(void *value) {
  kept *k = value;
  for (uint32_t i = 0; i < k->count; i++) ax_linearized_deinit(&k->map[i]);
  ax_free(k->map);
  ax_free(k);
}
static const ax_context_key kept_key = {.name = "linearized functions", .release = release_kept};

/* The maps of the trace in progress. NULL: the trace has failed. */
static kept *kept_here(void) {
  if (ax_failed()) return NULL;
  kept *k = ax_context_own(ax_builder_current(), &kept_key);
  if (k != NULL) return k;
  k = ax_calloc(1, sizeof *k);
  if (k == NULL) ax_fail(ax_out_of_memory(sizeof *k));
  if (k == NULL || ax_context_set(&kept_key, k)) return k;
  ax_free(k);
  return NULL;
}

/* The trace in progress keeps the map, which is then its. */
static uint32_t keep(ax_linearized *map) {
  kept *k = kept_here();
  if (k == NULL) return 0;
  ax_status status = ax_grow(&k->map, sizeof *map, k->count, 1, &k->capacity);
  if (status != AX_OK) {
    ax_fail(status);
    return 0;
  }
  k->map[k->count] = *map;
  *map = (ax_linearized){0};
  return k->count++;
}

ax_linear (ax_linearize)(ax_fn function, ax_args wrt, uint32_t in_count, const ax_value *in, uint32_t out_count, ax_value *out) {
  ax_traced f;
  ax_linearized map = {0};
  ax_linear linear = {.out_count = function.out_count};
  bool ready = ax_traced_begin(&f, "linearize", function, wrt, in_count, in);
  linear.in_count = f.by_count;
  ready = ax_traced_results("linearize", out_count, function.out_count, out) && ready;
  if (ready && ax_traced_trace(&f, NULL)) {
    const ax_value *made = ax_linearized_init(&map, &f);
    if (made != NULL) linear.number = keep(&map);
    if (!ax_failed()) linear.trace = ax_builder_current()->serial;
    for (uint32_t k = 0; k < function.out_count && !ax_failed(); k++) out[k] = made[k];
  }
  ax_linearized_deinit(&map);
  ax_traced_deinit(&f);
  return linear;
}

/* NULL: the trace has failed, as there is none. */
static ax_linearized *find(const char *what, ax_linear linear) {
  if (ax_failed()) return NULL;
  for (ax_builder *builder = ax_builder_current(); builder != NULL; builder = builder->seals ? NULL : builder->parent) {
    const kept *k = builder->serial == linear.trace ? ax_context_own(builder, &kept_key) : NULL;
    if (k != NULL && linear.number < k->count) return &k->map[linear.number];
  }
  ax_fail(ax_error(AX_INVALID_ARGUMENT,
                   linear.trace == 0 ? "%s: the linearized function was never made"
                                     : "%s: the function was linearized in a trace that has finished, or in another one",
                   what));
  return NULL;
}

static bool lists_fit(const char *what, const char *of, uint32_t in_count, uint32_t in_needed, uint32_t out_count,
                      uint32_t out_needed, ax_value *out) {
  if (ax_list_fits(what, "it takes", of, in_count, in_needed) &&
      ax_list_fits(what, "the call gives", "result", out_count, out_needed))
    return true;
  ax_poison_list(out_count, out_needed, out);
  return false;
}

void (ax_pushforward)(ax_linear linear, uint32_t tangent_count, const ax_value *tangents, uint32_t out_tangent_count,
                      ax_value *out_tangents) {
  const ax_linearized *map = find("pushforward", linear);
  if (!lists_fit("pushforward", "tangent", tangent_count, linear.in_count, out_tangent_count, linear.out_count, out_tangents))
    return;
  tangents = ax_take_operands(tangents, linear.in_count, out_tangents, linear.out_count);
  if (map != NULL) push_forward("pushforward", map, tangents, out_tangents);
}

void (ax_pullback)(ax_linear linear, uint32_t cotangent_count, const ax_value *cotangents, uint32_t gradient_count,
                   ax_value *gradients) {
  ax_linearized *map = find("pullback", linear);
  if (!lists_fit("pullback", "cotangent", cotangent_count, linear.out_count, gradient_count, linear.in_count, gradients)) return;
  cotangents = ax_take_operands(cotangents, linear.out_count, gradients, linear.in_count);
  if (map != NULL) pull_back("pullback", map, cotangents, gradients);
}
