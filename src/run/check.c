/* CHECK instructions (check.h). Numbers are examined as bits. Without the sign, the bits of floats have the order of the
   numbers: all finite ones, then the infinity, then NaNs. So a kind of number is a range of integers. */
#include "run/check.h"

#include <stdio.h>
#include <string.h>

#include "axle/exec.h"
#include "ir/prim.h"
#include "run/compute.h"
#include "run/share.h"

/* --- Looking --- */

typedef struct range { /* of the bits without the sign: first to last */
  uint64_t mask, first, last;
} range;

static range range_of(ax_dtype dtype, uint32_t kinds) {
  const bool nan = (kinds & AX_CHECK_NAN) != 0;
  const uint64_t infinity = ax_float_infinity_bits(dtype), mask = ((uint64_t)1 << (ax_dtype_get(dtype)->bits - 1)) - 1;
  if (!ax_has_infinity(dtype)) { /* one NaN, beside which there may be one with a sign */
    const uint64_t one = ax_float_nan_bits(dtype), bits = ax_dtype_get(dtype)->specials == AX_SPECIALS_FINITE ? mask : UINT8_MAX;
    return nan && ax_has_nan(dtype) ? (range){bits, one, one} : (range){0, 1, 1};
  }
  return (range){mask, (kinds & AX_CHECK_INF) != 0 ? infinity : infinity + 1, nan ? mask : infinity};
}

/* Says whether any number is beyond r's beginning. The loop has signed comparisons and no early end, so that compilers use
   vectors. */
static inline bool any16(const int16_t *data, int64_t count, range r) {
  int16_t limit = (int16_t)(r.first - 1), found = 0;
  for (int64_t i = 0; i < count; i++) found |= (int16_t)((int16_t)(data[i] & INT16_MAX) > limit ? -1 : 0);
  return found != 0;
}

static inline bool any32(const int32_t *data, int64_t count, range r) {
  int32_t limit = (int32_t)(r.first - 1), found = 0;
  for (int64_t i = 0; i < count; i++) found |= (data[i] & INT32_MAX) > limit ? -1 : 0;
  return found != 0;
}

static inline bool any64(const int64_t *data, int64_t count, range r) {
  int64_t limit = (int64_t)(r.first - 1), found = 0;
  for (int64_t i = 0; i < count; i++) found |= (data[i] & INT64_MAX) > limit ? -1 : 0;
  return found != 0;
}

static inline bool any8(const uint8_t *data, int64_t count, range r) {
  uint8_t found = 0;
  for (int64_t i = 0; i < count; i++) found |= (data[i] & r.mask) >= r.first && (data[i] & r.mask) <= r.last ? 1 : 0;
  return found != 0;
}

static inline bool any(size_t bytes, const void *data, int64_t count, range r) {
  if (bytes == 1) return any8(data, count, r);
  return bytes == 8 ? any64(data, count, r) : bytes == 4 ? any32(data, count, r) : any16(data, count, r);
}

enum { run_elems = 512 };

/* Says whether some element is in the range or beyond it. If the range has only infinities, that may be a NaN. */
static bool looks_suspect(size_t bytes, const char *data, int64_t elems, range r) {
  int64_t i = 0;
  for (; i + run_elems <= elems; i += run_elems)
    if (any(bytes, data + (size_t)i * bytes, run_elems, r)) return true;
  return any(bytes, data + (size_t)i * bytes, elems - i, r);
}

static bool is_one(range r, size_t bytes, const char *data, int64_t i) {
  uint64_t bits = 0;
  memcpy(&bits, data + (size_t)i * bytes, bytes); /* little-endian */
  return (bits & r.mask) >= r.first && (bits & r.mask) <= r.last;
}

static bool has(const ax_activation *activation, const ax_instr *instr, uint32_t k, uint32_t kind) {
  const ax_value_check *check = instr->check;
  const char *data = ax_address(activation, &instr->refs[k]);
  size_t bytes = ax_dtype_bytes(check->dtype[k]);
  range r = range_of(check->dtype[k], kind);
  if (!looks_suspect(bytes, data, check->elems[k], r)) return false;
  for (int64_t i = 0; i < check->elems[k]; i++)
    if (is_one(r, bytes, data, i)) return true;
  return false;
}

/* The kinds (AX_CHECK_*) that occur in the result but in none of its operands. */
static uint32_t made(const ax_activation *activation, const ax_instr *instr) {
  uint32_t kinds = 0;
  for (uint32_t kind = AX_CHECK_NAN; kind <= AX_CHECK_INF; kind *= 2) {
    bool here = (instr->check->kinds & kind) != 0 && has(activation, instr, 0, kind);
    for (uint32_t k = 1; here && k < instr->ref_count; k++) here = !has(activation, instr, k, kind);
    if (here) kinds |= kind;
  }
  return kinds;
}

/* --- In parts --- */

typedef struct look {
  const ax_activation *activation;
  const ax_instr *instr;
} look;

/* AX_NOT_FINITE, without a message: some element is suspect. */
static ax_status look_at_part(const void *context, ax_worker_slot *worker_slot, uint32_t part) {
  (void)worker_slot;
  const look *l = context;
  const ax_value_check *check = l->instr->check;
  size_t bytes = ax_dtype_bytes(check->dtype[0]);
  int64_t elems = check->elems[0], parts = l->instr->parts, begin = elems * part / parts, end = elems * (part + 1) / parts;
  const char *data = (const char *)ax_address(l->activation, &l->instr->refs[0]) + (size_t)begin * bytes;
  return looks_suspect(bytes, data, end - begin, range_of(check->dtype[0], check->kinds)) ? AX_NOT_FINITE : AX_OK;
}

/* --- Findings --- */

static int64_t count_of(const ax_activation *activation, const ax_instr *instr, uint32_t kind, int64_t *first) {
  const ax_value_check *check = instr->check;
  const char *data = ax_address(activation, &instr->refs[0]);
  range r = range_of(check->dtype[0], kind);
  int64_t count = 0;
  for (int64_t i = 0; i < check->elems[0]; i++) {
    if (!is_one(r, ax_dtype_bytes(check->dtype[0]), data, i)) continue;
    if (*first < 0 || i < *first) *first = i;
    count++;
  }
  return count;
}

static bool is_call(const ax_instr *instr) { return instr->kind == AX_INSTR_EVAL || instr->kind == AX_INSTR_CALL; }

static const ax_loops *loops_of(const ax_instr *instr) {
  if (is_call(instr)) return instr->call.loops;
  return instr->kind == AX_INSTR_CHECK ? &instr->check->loops : &instr->ragged->loops;
}

/* Orders the places of activations f and g as one device would reach them. First the iterations of the loops around both places
   are compared, then the places. */
static int compare_places(const ax_execution *run, uint32_t f, uint32_t g) {
  const ax_activation *a = &run->activations[f], *b = &run->activations[g];
  const ax_loops *x = loops_of(&a->code->instrs[a->pc]), *y = loops_of(&b->code->instrs[b->pc]);
  for (uint32_t i = 0; i < x->count && i < y->count && x->v[i] == y->v[i]; i++) {
    int64_t s = a->iteration[x->v[i]], t = b->iteration[y->v[i]];
    if (s != t) return s < t ? -1 : 1;
  }
  return a->pc < b->pc ? -1 : a->pc > b->pc;
}

static uint32_t loop_begin(const ax_code *code, uint32_t loop) {
  uint32_t pc = 0;
  while (code->instrs[pc].kind != AX_INSTR_LOOP || code->instrs[pc].loop != loop) pc++;
  return pc;
}

/* As compare_places orders them: each loop around the place, by where it begins, with its iteration; then the place, and the
   device. */
void ax_finding_place(const ax_execution *run, ax_place *out) {
  const ax_activation *activation = &run->activations[run->finding.activation];
  const ax_code *code = activation->code;
  const ax_loops *loops = loops_of(&code->instrs[activation->pc]);
  uint32_t count = 0;
  for (uint32_t i = 0; i < loops->count && count + 4 <= AX_PLACE_WORDS; i++) {
    out->words[count++] = loop_begin(code, loops->v[i]);
    out->words[count++] = (uint64_t)activation->iteration[loops->v[i]];
  }
  out->words[count++] = activation->pc;
  out->words[count++] = activation->device;
  out->count = count;
}

void ax_finding_note(ax_execution *run, uint32_t f, const ax_finding *finding) {
  run->activations[f].found = true;
  pthread_mutex_lock(&run->lock);
  int order = run->finding.status != AX_OK ? compare_places(run, f, run->finding.activation) : -1;
  if (order < 0 || (order == 0 && f < run->finding.activation)) {
    if (run->status == run->finding.status) run->status = finding->status;
    run->finding = *finding;
    run->finding.activation = f;
    const ax_activation *activation = &run->activations[f]; /* copied now, since a callback's message cannot be made again later */
    if (is_call(&activation->code->instrs[activation->pc])) snprintf(run->message, sizeof run->message, "%s", ax_message());
  }
  pthread_mutex_unlock(&run->lock);
}

void ax_finding_of_eval(ax_execution *run, uint32_t f, ax_status status) {
  ax_finding_note(run, f, &(ax_finding){.status = status});
}

bool ax_check_passes(ax_execution *run, ax_worker_slot *worker_slot, ax_activation *activation, const ax_instr *instr) {
  if (ax_share_parts(run, worker_slot, look_at_part, &(look){activation, instr}, instr->parts) == AX_OK) return true;
  uint32_t kinds = made(activation, instr), f = (uint32_t)(activation - run->activations);
  if (kinds == 0) return true;
  ax_finding finding = {.status = AX_NOT_FINITE, .first = -1};
  if ((kinds & AX_CHECK_NAN) != 0) finding.nans = count_of(activation, instr, AX_CHECK_NAN, &finding.first);
  if ((kinds & AX_CHECK_INF) != 0) finding.infinities = count_of(activation, instr, AX_CHECK_INF, &finding.first);
  ax_finding_note(run, f, &finding);
  return false;
}

/* --- The report --- */

enum { most_listed = 16 };

static void add_count(ax_text *text, int64_t count, const char *one, const char *many, const char *before) {
  if (count > 0) ax_text_add(text, "%s%lld %s", before, (long long)count, count == 1 ? one : many);
}

/* "[2,0]"; of a scalar "[]" */
static void add_index(ax_text *text, const ax_type *type, int64_t index) {
  int64_t at[AX_MAX_RANK];
  for (uint32_t d = type->rank; d-- > 0; index /= type->dims[d]) at[d] = index % type->dims[d];
  ax_text_add(text, "[");
  for (uint32_t d = 0; d < type->rank; d++) ax_text_add(text, "%s%lld", d > 0 ? "," : "", (long long)at[d]);
  ax_text_add(text, "]");
}

static const char *loop_name(const ax_code *code, uint32_t loop) {
  for (uint32_t i = 0; i < code->instr_count; i++)
    if (code->instrs[i].kind == AX_INSTR_LOOP && code->instrs[i].loop == loop && code->instrs[i].eqn != NULL)
      return code->instrs[i].eqn->prim->name;
  return "a loop";
}

/* " in iteration 3 of scan, in iteration 0 of while", from the inside out */
static void add_iterations(ax_text *text, const ax_activation *activation, const ax_loops *loops) {
  for (uint32_t i = loops->count; i-- > 0;)
    ax_text_add(text, "%s in iteration %lld of %s", i + 1 < loops->count ? "," : "", (long long)activation->iteration[loops->v[i]],
                loop_name(activation->code, loops->v[i]));
}

static void add_others(ax_text *text, const ax_execution *run) {
  uint32_t count = 0, f = run->finding.activation;
  for (uint32_t g = f + 1; g < run->compiled->activation_count; g++) {
    if (!run->activations[g].found || compare_places(run, f, g) != 0) continue;
    if (count < most_listed) ax_text_add(text, count == 0 ? "\n  likewise on " : ", ");
    if (count++ < most_listed) ax_execution_device_text(text, run, g);
  }
  if (count > most_listed) ax_text_add(text, " and %u more", count - most_listed);
}

static void check_text(ax_text *text, const ax_execution *run, const ax_instr *instr) {
  const ax_finding *finding = &run->finding;
  const ax_value_check *check = instr->check;
  ax_text_add(text, " makes ");
  add_count(text, finding->nans, "NaN", "NaNs", "");
  add_count(text, finding->infinities, "infinity", "infinities", finding->nans > 0 ? " and " : "");
  ax_text_add(text, " in ");
  if (instr->eqn->out_count > 1) ax_text_add(text, "result %u, ", check->result);
  ax_type_text(text, &instr->program->types[instr->eqn->out + check->result], &instr->program->axes);
  ax_text_add(text, ", the first at ");
  add_index(text, &check->type, finding->first);
  ax_text_add(text, ",");
  add_iterations(text, &run->activations[finding->activation], &check->loops);
  ax_text_add(text, " on ");
  ax_execution_device_text(text, run, finding->activation);
  const ax_axis_set skipped = ax_instr_skipped(run->compiled, instr);
  if (skipped != 0) ax_text_add(text, ", for all along %s", ax_axis_set_string(skipped, &run->compiled->plan->mesh));
  add_others(text, run);
}

static void ragged_text(ax_text *text, const ax_execution *run, const ax_instr *instr) {
  const ax_ragged *ragged = instr->ragged->ragged;
  const ax_activation *activation = &run->activations[run->finding.activation];
  ax_text_add(text, ": ");
  const ax_fault *fault = &run->finding.fault;
  const ax_mesh *mesh = &run->compiled->plan->mesh;
  ax_fault_text(text, fault, &ragged->shape, mesh, ax_axes_device(&ragged->names, mesh, activation->device, fault->sent.device),
                ax_axes_device(&ragged->names, mesh, activation->device, fault->other.device), activation->device);
  if (instr->ragged->loops.count > 0) ax_text_add(text, ",");
  add_iterations(text, activation, &instr->ragged->loops);
}

void ax_finding_report(ax_execution *run) {
  const ax_activation *activation = &run->activations[run->finding.activation];
  const ax_instr *instr = &activation->code->instrs[activation->pc];
  ax_text text = {0};
  if (is_call(instr)) return;
  ax_execution_equation_text(&text, run, instr);
  if (instr->kind == AX_INSTR_CHECK) check_text(&text, run, instr);
  else ragged_text(&text, run, instr);
  snprintf(run->message, sizeof run->message, "%s",
           text.data != NULL && !text.failed ? text.data : "an equation has found something wrong");
  ax_text_deinit(&text);
}
