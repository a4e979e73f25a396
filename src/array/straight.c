/* A program is compiled as any other; all its instructions only compute. They are performed one after the other, by an activation
   on the caller's stack, with the run's table of parts in the caller's memory.

   A result is computed in its place, with three exceptions. An unchanged input is copied. So is a result that equals another one. A
   result in the place of an input, of which the plan does not know, is computed aside, and copied when inputs are no longer
   read. */
#include "array/straight.h"

#include <string.h>
#include <unistd.h>

#include "array/runtime.h"
#include "assemble/assembly.h"
#include "machine/float_mode.h"
#include "run/compute.h"

typedef enum made { MADE_THERE, MADE_OF_INPUT, MADE_OF_RESULT, MADE_ASIDE } made;
typedef struct result {
  made how;
  uint32_t part;  /* its memory in the table; AX_NONE: that of an input */
  uint32_t of;    /* MADE_OF_INPUT, MADE_OF_RESULT: its number */
  bool aside;     /* MADE_OF_INPUT: copied through memory of its own, since its place is that of another input */
  size_t aside_at, bytes;
} result;

/* A part, or a kernel's slot: bytes into an input, into a result or into the memory that a run works in; or constants, at an address. */
typedef enum slot_of { OF_ADDRESS, OF_INPUT, OF_RESULT, OF_WORK } slot_of;
typedef struct slot {
  slot_of of;
  uint32_t number; /* of the input or result */
  int64_t offset;
  char *address;
} slot;

struct ax_straight {
  ax_runtime *runtime; /* held */
  ax_program *program;
  ax_signature signature;
  ax_compiled compiled;
  uint32_t *input_part; /* by input: its part; AX_NONE: it is unused */
  result *results;
  slot *parts; /* by part */
  slot *slots; /* of all its instructions, if they are kernels in a row; else NULL */
  bool finishes; /* some results are not computed in their places */
  size_t iterations_at, scratch_at, rows_at, kept_at, aside_at, bytes;
};

static size_t round_up(size_t bytes) { return (bytes + 63) / 64 * 64; }

/* --- Making --- */

static bool only_computes(const ax_compiled *c) {
  const ax_code *code = &c->codes[0];
  for (uint32_t i = 0; i < code->instr_count; i++) {
    const ax_instr_kind kind = code->instrs[i].kind;
    bool computes = kind == AX_INSTR_KERNEL || kind == AX_INSTR_ROWS || kind == AX_INSTR_GEMM || kind == AX_INSTR_EVAL ||
                    kind == AX_INSTR_ROUTINE || kind == AX_INSTR_LOOP || kind == AX_INSTR_ENTER || kind == AX_INSTR_NEXT;
    if (!computes && !(kind == AX_INSTR_END && i + 1 == code->instr_count)) return false;
  }
  return c->devices == 1;
}

static result describe_result(const ax_straight *s, const uint32_t *in_place, uint32_t k) {
  const ax_signature_out *r = &s->signature.out[k];
  const ax_type *type = ax_program_out_type(s->program, k);
  result made = {.how = MADE_THERE, .part = AX_NONE, .bytes = (size_t)ax_type_elems(type) * ax_dtype_bytes(type->dtype)};
  if (r->made == AX_NONE) {
    made.how = MADE_OF_INPUT;
    made.of = r->input;
    made.aside = in_place[k] != AX_NONE && in_place[k] != r->input;
    return made;
  }
  for (uint32_t before = 0; before < k; before++)
    if (s->signature.out[before].made == r->made) {
      made.how = MADE_OF_RESULT;
      made.of = before;
      return made;
    }
  const ax_result *of = &s->compiled.results[r->made];
  if (of->donated != AX_NONE) {
    made.of = s->signature.kept[of->donated];
    if (in_place[k] == made.of) return made;
    made.how = MADE_OF_INPUT;
    made.aside = in_place[k] != AX_NONE;
    return made;
  }
  made.part = s->compiled.spaces[of->space].first;
  if (in_place[k] != AX_NONE && ax_signature_uses(&s->signature, in_place[k])) made.how = MADE_ASIDE;
  return made;
}

static ax_status describe(ax_straight *s, const uint32_t *in_place) {
  const ax_compiled *c = &s->compiled;
  s->results = ax_calloc(s->signature.out_count + (size_t)1, sizeof s->results[0]);
  s->input_part = ax_calloc(s->signature.in_count + (size_t)1, sizeof s->input_part[0]);
  if (s->results == NULL || s->input_part == NULL) return ax_out_of_memory(s->signature.out_count * sizeof s->results[0]);
  for (uint32_t i = 0; i < s->signature.in_count; i++) s->input_part[i] = AX_NONE;
  for (uint32_t p = 0; p < c->space_count; p++)
    if (c->spaces[p].kind == AX_SPACE_INPUT) s->input_part[s->signature.kept[c->spaces[p].index]] = c->spaces[p].first;
  s->iterations_at = round_up(c->part_count * sizeof(void *));
  s->scratch_at = round_up(s->iterations_at + (c->loop_count + (size_t)1 + c->region_count + AX_MAX_AXES) * sizeof(int64_t));
  s->rows_at = s->scratch_at + round_up((size_t)c->spaces[c->scratch_space].bytes);
  s->kept_at = s->rows_at + round_up(c->rows_bytes);
  s->bytes = s->kept_at;
  for (uint32_t p = 0; p < c->space_count; p++)
    if (c->spaces[p].kind == AX_SPACE_KEPT) s->bytes += round_up(c->spaces[p].total);
  for (uint32_t k = 0; k < s->signature.out_count; k++) {
    result *r = &s->results[k];
    *r = describe_result(s, in_place, k);
    r->aside_at = s->bytes;
    if (r->how == MADE_ASIDE || r->aside) s->bytes += round_up(r->bytes);
  }
  return AX_OK;
}

/* A compilation of its own, which the runtime does not count. */
static ax_status build(ax_straight *s, const ax_compile_options *options) {
  ax_laid laid = {0};
  ax_float_mode caller = ax_float_mode_enter(false);
  ax_status status = ax_program_lay_out(s->program, false, &laid);
  if (status == AX_OK)
    status = ax_assemble(&s->runtime->assembler, &(ax_source){.program = s->program, .laid = &laid, .options = options, .results_elsewhere = true}, &s->signature, &s->compiled);
  ax_laid_deinit(&laid);
  ax_float_mode_leave(caller);
  return status;
}

/* --- Where parts lie, which is known but for the addresses of inputs, results and work --- */

static ax_status list_parts(ax_straight *s) {
  const ax_compiled *c = &s->compiled;
  size_t kept = s->kept_at;
  s->parts = ax_calloc(c->part_count + (size_t)1, sizeof s->parts[0]);
  if (s->parts == NULL) return ax_out_of_memory(c->part_count * sizeof s->parts[0]);
  for (uint32_t p = 0; p < c->space_count; p++) {
    const ax_part_space *space = &c->spaces[p];
    slot *part = &s->parts[space->first];
    if (space->kind == AX_SPACE_CONST) *part = (slot){.of = OF_ADDRESS, .address = (char *)ax_constants_of(c, space)};
    if (space->kind == AX_SPACE_SCRATCH) *part = (slot){.of = OF_WORK, .offset = (int64_t)s->scratch_at};
    if (space->kind != AX_SPACE_KEPT) continue;
    *part = (slot){.of = OF_WORK, .offset = (int64_t)kept};
    kept += round_up(space->total);
  }
  for (uint32_t i = 0; i < s->signature.in_count; i++)
    if (s->input_part[i] != AX_NONE) s->parts[s->input_part[i]] = (slot){.of = OF_INPUT, .number = i};
  for (uint32_t k = 0; k < s->signature.out_count; k++) {
    const result *r = &s->results[k];
    if (r->part != AX_NONE)
      s->parts[r->part] = r->how == MADE_ASIDE ? (slot){.of = OF_WORK, .offset = (int64_t)r->aside_at} : (slot){.of = OF_RESULT, .number = k};
  }
  return AX_OK;
}

/* --- Kernels in a row: their slots are known likewise --- */

static bool all_kernels(const ax_code *code) {
  for (uint32_t i = 0; i < code->instr_count; i++) {
    const ax_instr *instr = &code->instrs[i];
    if (instr->kind != AX_INSTR_END && (instr->kind != AX_INSTR_KERNEL || instr->kernel.given != NULL)) return false;
  }
  return true;
}

static slot slot_at(const ax_straight *s, const ax_ref *ref) {
  slot found = s->parts[ref->first + ref->place[0]];
  if (found.of == OF_ADDRESS) found.address += ref->offset;
  else found.offset += ref->offset;
  return found;
}

static ax_status list_slots(ax_straight *s) {
  const ax_code *code = &s->compiled.codes[0];
  size_t count = 1;
  for (uint32_t k = 0; k < s->signature.out_count; k++) s->finishes = s->finishes || s->results[k].how != MADE_THERE;
  if (!all_kernels(code)) return AX_OK;
  for (uint32_t i = 0; i < code->instr_count; i++) count += code->instrs[i].ref_count;
  if ((s->slots = ax_alloc(count * sizeof s->slots[0])) == NULL) return ax_out_of_memory(count * sizeof s->slots[0]);
  count = 0;
  for (uint32_t i = 0; i < code->instr_count; i++)
    for (uint32_t k = 0; k < code->instrs[i].ref_count; k++) s->slots[count++] = slot_at(s, &code->instrs[i].refs[k]);
  return AX_OK;
}

static ax_status choose_donated(const ax_program *program, const uint32_t *in_place, uint32_t **inputs, ax_args *out) {
  bool *is = ax_calloc(program->in_count + (size_t)1, sizeof is[0]);
  *inputs = ax_calloc(program->in_count + (size_t)1, sizeof (*inputs)[0]);
  *out = (ax_args){0};
  if (is == NULL || *inputs == NULL) {
    ax_free(is);
    return ax_out_of_memory(program->in_count * sizeof (*inputs)[0]);
  }
  for (uint32_t k = 0; k < program->out_count; k++)
    if (in_place[k] != AX_NONE) is[in_place[k]] = true;
  for (uint32_t i = 0; i < program->in_count; i++)
    if (is[i]) (*inputs)[out->count++] = i;
  out->list = *inputs;
  ax_free(is);
  return AX_OK;
}

ax_status ax_straight_create(ax_runtime *runtime, ax_program *program, const uint32_t *in_place, ax_straight **out) {
  *out = NULL;
  ax_straight *s = ax_calloc(1, sizeof *s);
  uint32_t *inputs = NULL;
  ax_compile_options options = {0};
  if (s == NULL) return ax_out_of_memory(sizeof *s);
  s->runtime = ax_runtime_hold(runtime);
  s->program = ax_program_retain(program);
  ax_status status = choose_donated(program, in_place, &inputs, &options.donate);
  if (status == AX_OK) status = build(s, &options);
  bool able = status == AX_OK && only_computes(&s->compiled);
  if (able) status = describe(s, in_place);
  if (able && status == AX_OK) status = list_parts(s);
  if (able && status == AX_OK) status = list_slots(s);
  ax_free(inputs);
  if (able && status == AX_OK) *out = s;
  else ax_straight_release(s);
  return status;
}

void ax_straight_release(ax_straight *s) {
  if (s == NULL) return;
  ax_compiled_deinit(&s->compiled, s->runtime->process == getpid() ? s->runtime->assembler.jit : NULL);
  ax_program_release(s->program);
  ax_free(s->results);
  ax_free(s->input_part);
  ax_free(s->parts);
  ax_free(s->slots);
  ax_runtime_drop(s->runtime);
  ax_free(s);
}

size_t ax_straight_bytes(const ax_straight *s) { return s->bytes; }

double ax_straight_time(const ax_straight *s) { return 50 + ax_plan_time(s->compiled.plan); }

/* --- Running --- */

/* Copies results that are not computed in place: first unchanged inputs, those in the place of another input last; then results
   computed aside; then results that equal another one. */
static void finish(const ax_straight *s, void *const *in, void *const *out, char *work) {
  for (uint32_t k = 0; k < s->signature.out_count; k++)
    if (s->results[k].how == MADE_OF_INPUT && s->results[k].aside)
      memcpy(work + s->results[k].aside_at, in[s->results[k].of], s->results[k].bytes);
  for (uint32_t k = 0; k < s->signature.out_count; k++) {
    const result *r = &s->results[k];
    if (r->how == MADE_OF_INPUT && !r->aside && out[k] != in[r->of]) memcpy(out[k], in[r->of], r->bytes);
  }
  for (uint32_t k = 0; k < s->signature.out_count; k++)
    if (s->results[k].how == MADE_ASIDE || s->results[k].aside) memcpy(out[k], work + s->results[k].aside_at, s->results[k].bytes);
  for (uint32_t k = 0; k < s->signature.out_count; k++)
    if (s->results[k].how == MADE_OF_RESULT) memcpy(out[k], out[s->results[k].of], s->results[k].bytes);
}

static void *slot_address(const slot *slot, void *const *in, void *const *out, char *work) {
  switch (slot->of) {
    case OF_INPUT: return (char *)in[slot->number] + slot->offset;
    case OF_RESULT: return (char *)out[slot->number] + slot->offset;
    case OF_WORK: return work + slot->offset;
    case OF_ADDRESS: break;
  }
  return slot->address;
}

static void fill_parts(const ax_straight *s, void *const *in, void *const *out, char *work, unsigned char **part) {
  for (uint32_t p = 0; p < s->compiled.part_count; p++) part[p] = slot_address(&s->parts[p], in, out, work);
}

static void run_kernels(const ax_straight *s, void *const *in, void *const *out, char *work) {
  static const int64_t coordinates[AX_MAX_AXES];
  const ax_code *code = &s->compiled.codes[0];
  const slot *next = s->slots;
  for (uint32_t i = 0; i < code->instr_count; i++) {
    const ax_instr *instr = &code->instrs[i];
    void *slots[AX_MAX_SLOTS];
    if (instr->kind == AX_INSTR_END) break;
    for (uint32_t k = 0; k < instr->ref_count; k++) slots[k] = slot_address(next++, in, out, work);
    instr->kernel.code(slots, coordinates, 0, instr->kernel.extent * instr->kernel.scale);
  }
  if (s->finishes) finish(s, in, out, work);
}

ax_status ax_straight_run(const ax_straight *s, void *const *in, void *const *out, void *work) {
  if (s->slots != NULL) {
    run_kernels(s, in, out, work);
    return AX_OK;
  }
  const ax_compiled *c = &s->compiled;
  const ax_code *code = &c->codes[0];
  unsigned char **part = work;
  int64_t *words = (int64_t *)(void *)((char *)work + s->iterations_at);
  fill_parts(s, in, out, work, part);
  memset(words, 0, s->scratch_at - s->iterations_at);
  ax_activation activation = {.code = code,
                              .part = part,
                              .iteration = words,
                              .entered = words + c->loop_count + 1,
                              .coordinates = words + c->loop_count + 1 + c->region_count};
  ax_status status = AX_OK;
  for (uint32_t pc = 0; status == AX_OK && pc < code->instr_count;) {
    const ax_instr *instr = &code->instrs[pc++];
    switch (instr->kind) {
      case AX_INSTR_EVAL: status = ax_compute_eval(c, &s->runtime->executor.hooks, NULL, &activation, instr, 0); break;
      case AX_INSTR_LOOP:
        activation.iteration[instr->loop] = 0;
        if (instr->fused_loop != NULL) ax_compute_fused_loop(&activation, instr->fused_loop);
        if (instr->trips == 0 || instr->fused_loop != NULL) pc = instr->target;
        break;
      case AX_INSTR_NEXT:
        if (++activation.iteration[instr->loop] < instr->trips) pc = instr->target;
        break;
      case AX_INSTR_ENTER:
      case AX_INSTR_END: break;
      default: status = ax_compute_failed(instr, ax_compute(&activation, instr, (char *)work + s->rows_at, NULL)); break;
    }
  }
  finish(s, in, out, work);
  return status;
}
