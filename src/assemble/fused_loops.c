/* Chooses the loops that become fused loops (jit/nest/fused_loop.h). Such a loop has small kernels alone, and no instruction in it
   waits or is awaited. Either one device computes it for all devices that share the results, or each computes it for itself. The
   instructions stay in the list behind the LOOP, which has the fused loop and performs all of them at once.

   An operand can be held in registers if it is the whole of an allocation of few elements, or a part of one of very few that may be
   held element by element. No other allocation's bytes are read through it, and allocations in the same memory live before it or
   after it. Its lifetime says whether its value is needed before
   the fused loop's first step, and wanted after its last. */
#include <string.h>

#include "assemble/assembly.h"

enum { most_steps = 512, most_exprs = 1024 };

typedef struct counted { /* in the list before a position */
  uint32_t others, exprs; /* instructions that no fused loop may have; nodes of kernels */
} counted;

typedef struct maker {
  ax_assembly *a;
  const counted *before;
  ax_fused_loop fused_loop;
  ax_fused_loop_step *steps;
  ax_fused_loop_place *places;
  ax_ref *refs;
  uint32_t *allocations;  /* by place */
  uint32_t *numbers; /* by loop of the plan: its number in the fused loop; AX_NONE: it is not inside */
  uint32_t loops, begin, end; /* end: the position after the fused loop */
  ax_axis_set skip;
  bool any;    /* a kernel was found, and `skip` is its own */
  bool failed; /* for lack of memory */
} maker;

/* --- What can be one --- */

static bool fits(const ax_assembly *a, uint32_t i) {
  const ax_instr *instr = &a->instrs[i];
  switch (instr->kind) {
    case AX_INSTR_KERNEL:
      return instr->parts <= 1 && !a->ops[i]->kernel.kernel->failed && ax_fused_loop_takes(a->ops[i]->kernel.kernel);
    case AX_INSTR_LOOP:
    case AX_INSTR_ENTER:
    case AX_INSTR_NEXT:
    case AX_INSTR_TEST:
    case AX_INSTR_BRANCH:
    case AX_INSTR_JUMP: return true;
    default: return false;
  }
}

static counted *count_all(ax_assembly *a) {
  counted *before = ax_arena_alloc(&a->scratch, (a->instr_count + (size_t)1) * sizeof before[0]);
  for (uint32_t i = 0; before != NULL && i < a->instr_count; i++) {
    before[i + 1] = before[i];
    before[i + 1].others += !fits(a, i);
    if (a->instrs[i].kind == AX_INSTR_KERNEL) before[i + 1].exprs += a->ops[i]->kernel.kernel->expr_count;
  }
  return before;
}

static bool worth_it(const maker *m, uint32_t begin, uint32_t end) {
  const counted *from = &m->before[begin], *to = &m->before[end];
  return end - begin <= most_steps && to->others == from->others && to->exprs - from->exprs <= most_exprs &&
         m->a->instrs[begin].trips != 0;
}

/* --- Places --- */

static bool needed_before(const maker *m, uint32_t allocation) {
  const ax_plan *plan = m->a->plan;
  return plan->buffers[allocation].kind != AX_BUFFER_TEMP || m->a->residents[allocation].life.first < m->begin;
}

static bool wanted_after(const maker *m, uint32_t allocation) {
  const ax_resident *r = &m->a->residents[allocation];
  const ax_space_kind kind = m->a->compiled->spaces[r->space].kind;
  return (!r->lodges && kind != AX_SPACE_SCRATCH && kind != AX_SPACE_KEPT && kind != AX_SPACE_CONST) || r->life.last >= m->end;
}

/* The elements of an allocation as registers hold them: of complex numbers both parts. 0: the operand sees it as something else. */
static int64_t elems_of(const maker *m, const ax_buffer *buffer, ax_dtype dtype) {
  const ax_buffer *allocation = &m->a->plan->buffers[buffer->allocation];
  const bool same = ax_part_dtype(allocation->type.dtype) == dtype && buffer->type.dtype == dtype;
  return same ? ax_buffer_bytes(allocation) / (int64_t)ax_dtype_bytes(dtype) : 0;
}

/* Whether an operand is a part of an allocation that may be held element by element; *first: its first element there. */
static bool is_part(const maker *m, const ax_buffer *buffer, ax_dtype dtype, uint32_t *first) {
  const int64_t bytes = (int64_t)ax_dtype_bytes(dtype), elems = elems_of(m, buffer, dtype);
  if (elems == 0 || elems > AX_FUSED_LOOP_ELEMENTS) return false;
  if ((buffer->loop != AX_NONE && buffer->step != 0) || buffer->offset % bytes != 0) return false;
  *first = (uint32_t)(buffer->offset / bytes);
  return buffer->offset + ax_buffer_bytes(buffer) <= elems * bytes;
}

/* How many elements of an operand can be held in registers: all elements of its allocation if they are few, otherwise 0. */
static uint16_t held_elems(const maker *m, const ax_buffer *buffer, ax_dtype dtype) {
  const int64_t elems = elems_of(m, buffer, dtype), bytes = elems * (int64_t)ax_dtype_bytes(dtype);
  uint32_t first;
  if (is_part(m, buffer, dtype, &first)) return (uint16_t)elems;
  const bool whole = ax_buffer_bytes(buffer) == bytes && buffer->offset == 0 && (buffer->loop == AX_NONE || buffer->step == 0);
  return whole && bytes <= AX_FUSED_LOOP_HELD ? (uint16_t)elems : 0;
}

static bool same_ref(const ax_ref *a, const ax_ref *b) {
  return a->first == b->first && a->place == b->place && a->offset == b->offset && a->loop == b->loop && a->step == b->step;
}

/* Sets out->place to the number of the operand's place, which is added if it is new. False: there are too many places. */
static bool find_place(maker *m, ax_ref ref, uint32_t buffer, ax_dtype dtype, ax_fused_loop_operand *out) {
  const ax_buffer *b = &m->a->plan->buffers[buffer];
  const uint32_t allocation = b->allocation;
  *out = (ax_fused_loop_operand){.loop = AX_NONE};
  if (b->loop != AX_NONE && m->numbers[b->loop] != AX_NONE) {
    *out = (ax_fused_loop_operand){.loop = m->numbers[b->loop], .step = b->step};
    ref.loop = 0;
    ref.step = 0;
  }
  if (is_part(m, b, dtype, &out->first))
    ref.offset -= b->offset;
  else
    out->first = 0;
  uint32_t p = 0;
  while (p < m->fused_loop.place_count &&
         !(m->allocations[p] == allocation && same_ref(&m->refs[p], &ref) && m->places[p].dtype == dtype))
    p++;
  out->place = p;
  if (p < m->fused_loop.place_count) return true;
  if (p == AX_FUSED_LOOP_PLACES) return false;
  m->refs[p] = ref;
  m->allocations[p] = allocation;
  m->places[p] = (ax_fused_loop_place){.dtype = dtype, .elems = held_elems(m, b, dtype)};
  if (m->places[p].elems > 0) {
    m->places[p].needed = needed_before(m, allocation);
    m->places[p].wanted = wanted_after(m, allocation);
  }
  m->fused_loop.place_count++;
  return true;
}

/* An allocation is held in registers only if it has one place. If it has several, for example with different dtypes, all of them
   stay in memory. */
static void settle_places(maker *m) {
  for (uint32_t p = 0; p < m->fused_loop.place_count; p++)
    for (uint32_t q = 0; q < m->fused_loop.place_count; q++)
      if (p != q && m->allocations[p] == m->allocations[q]) m->places[p] = (ax_fused_loop_place){.dtype = m->places[p].dtype};
}

/* --- Steps --- */

static ax_fused_loop_step *add(maker *m, ax_fused_loop_step_kind kind) {
  ax_fused_loop_step *step = &m->steps[m->fused_loop.step_count++];
  *step = (ax_fused_loop_step){.kind = kind};
  return step;
}

static bool add_operands(maker *m, ax_fused_loop_step *step, uint32_t i, const uint32_t *buffers, const ax_dtype *dtypes,
                         uint32_t count) {
  ax_fused_loop_operand *operands = ax_arena_alloc(&m->a->scratch, count * sizeof operands[0]);
  step->operands = operands;
  for (uint32_t k = 0; k < count && operands != NULL; k++)
    if (!find_place(m, m->a->instrs[i].refs[k], buffers[k], dtypes[k], &operands[k])) return false;
  m->failed = m->failed || operands == NULL;
  return operands != NULL;
}

static bool add_kernel(maker *m, uint32_t i) {
  const ax_bound *bound = &m->a->ops[i]->kernel;
  ax_dtype dtypes[AX_MAX_SLOTS];
  if (m->any && m->skip != m->a->instrs[i].skip) return false;
  m->any = true;
  m->skip = m->a->instrs[i].skip;
  for (uint32_t k = 0; k < bound->kernel->slot_count; k++) dtypes[k] = bound->kernel->slots[k].dtype;
  ax_fused_loop_step *step = add(m, AX_FUSED_LOOP_KERNEL);
  step->kernel = bound->kernel;
  return add_operands(m, step, i, bound->buffers, dtypes, bound->kernel->slot_count);
}

static bool add_steps(maker *m, uint32_t *i, uint32_t depth);

/* *i: the position of the LOOP; then the position behind its NEXT. */
static bool add_loop(maker *m, uint32_t *i, uint32_t depth) {
  const ax_instr *loop = &m->a->instrs[*i];
  add(m, AX_FUSED_LOOP_LOOP)->trips = loop->trips;
  m->numbers[loop->loop] = m->loops++;
  ++*i;
  if (!add_steps(m, i, depth)) return false;
  if (loop->trips < 0) {
    const ax_dtype dtype = AX_BOOL;
    if (m->a->instrs[*i].kind != AX_INSTR_TEST ||
        !add_operands(m, add(m, AX_FUSED_LOOP_TEST), *i, &m->a->ops[*i]->loop.condition, &dtype, 1))
      return false;
    ++*i;
    if (!add_steps(m, i, depth)) return false;
  }
  if (m->a->instrs[*i].kind != AX_INSTR_NEXT || loop->target != *i + 1) return false;
  ++*i;
  m->numbers[loop->loop] = AX_NONE;
  add(m, AX_FUSED_LOOP_END);
  return true;
}

static bool add_branch(maker *m, uint32_t *i, uint32_t depth) {
  const ax_instr *branch = &m->a->instrs[*i];
  const ax_dtype dtype = AX_S32;
  ax_fused_loop_step *step = add(m, AX_FUSED_LOOP_BRANCH);
  step->count = branch->branch.count;
  if (!add_operands(m, step, *i, &m->a->ops[*i]->branch.index, &dtype, 1)) return false;
  ++*i;
  for (uint32_t k = 0; k < branch->branch.count; k++) {
    if (branch->branch.targets[k] != *i) return false;
    add(m, AX_FUSED_LOOP_CASE);
    if (!add_steps(m, i, depth) || m->a->instrs[*i].kind != AX_INSTR_JUMP) return false;
    ++*i;
  }
  add(m, AX_FUSED_LOOP_END);
  return true;
}

/* Adds steps to the end of the region. False: the loop cannot be fused after all. */
static bool add_steps(maker *m, uint32_t *i, uint32_t depth) {
  for (;;) {
    const ax_instr *instr = &m->a->instrs[*i];
    if (m->fused_loop.step_count + 4 > 2 * most_steps || depth > AX_FUSED_LOOP_NESTED) return false;
    switch (instr->kind) {
      case AX_INSTR_ENTER: ++*i; break;
      case AX_INSTR_KERNEL:
        if (!add_kernel(m, (*i)++)) return false;
        break;
      case AX_INSTR_LOOP:
        if (!add_loop(m, i, depth + 1)) return false;
        break;
      case AX_INSTR_BRANCH:
        if (!add_branch(m, i, depth + 1)) return false;
        break;
      default: return true;
    }
  }
}

/* --- Fused loops --- */

static bool allocate(maker *m) {
  ax_arena *arena = &m->a->scratch;
  m->steps = ax_arena_alloc(arena, 2 * most_steps * sizeof m->steps[0]);
  m->places = ax_arena_alloc(arena, AX_FUSED_LOOP_PLACES * sizeof m->places[0]);
  m->refs = ax_arena_alloc(arena, AX_FUSED_LOOP_PLACES * sizeof m->refs[0]);
  m->allocations = ax_arena_alloc(arena, AX_FUSED_LOOP_PLACES * sizeof m->allocations[0]);
  return m->steps != NULL && m->places != NULL && m->refs != NULL && m->allocations != NULL;
}

/* Copies the maker's tables for the new fused loop, since the maker uses them again. */
static ax_status keep(maker *m, ax_instr *loop, ax_fused_loop **out) {
  ax_arena *arena = &m->a->scratch;
  ax_fused_loop *fused_loop = *out = ax_arena_copy(arena, &m->fused_loop, sizeof *fused_loop);
  loop->fused_loop = ax_arena_alloc(&m->a->plan->arena, sizeof *loop->fused_loop);
  ax_ref *refs = ax_arena_copy(&m->a->plan->arena, m->refs, m->fused_loop.place_count * sizeof refs[0]);
  if (fused_loop == NULL || loop->fused_loop == NULL || refs == NULL)
    return ax_out_of_memory(m->fused_loop.place_count * sizeof refs[0]);
  fused_loop->steps = ax_arena_copy(arena, m->steps, m->fused_loop.step_count * sizeof m->steps[0]);
  fused_loop->places = ax_arena_copy(arena, m->places, m->fused_loop.place_count * sizeof m->places[0]);
  if (fused_loop->steps == NULL || fused_loop->places == NULL)
    return ax_out_of_memory(m->fused_loop.step_count * sizeof m->steps[0]);
  *loop->fused_loop = (ax_fused_loop_instr){.skip = m->skip, .ref_count = m->fused_loop.place_count, .refs = refs};
  return AX_OK;
}

/* Makes the fused loop of the loop at `at`; *out NULL: it cannot be fused. */
static ax_status make_fused_loop(maker *m, uint32_t at, ax_fused_loop **out) {
  ax_instr *loop = &m->a->instrs[at];
  uint32_t i = at;
  *out = NULL;
  m->fused_loop = (ax_fused_loop){0};
  m->loops = 0;
  m->begin = at;
  m->end = loop->target;
  m->any = false;
  memset(m->numbers, 0xff, m->a->plan->loop_count * sizeof m->numbers[0]);
  const bool made = add_loop(m, &i, 0) && m->any;
  if (m->failed) return ax_out_of_memory(0);
  if (!made) return AX_OK;
  settle_places(m);
  return keep(m, loop, out);
}

ax_status ax_find_fused_loops(ax_assembly *a, const ax_fused_loop **fused_loops, uint32_t *loops, uint32_t *count) {
  maker m = {.a = a};
  *count = 0;
  if (a->plan->loop_count == 0) return AX_OK;
  m.before = count_all(a);
  m.numbers = ax_arena_alloc(&a->scratch, a->plan->loop_count * sizeof m.numbers[0]);
  if (m.before == NULL || m.numbers == NULL || !allocate(&m)) return ax_out_of_memory(a->instr_count * sizeof m.before[0]);
  for (uint32_t i = 0; i < a->instr_count; i++) {
    const ax_instr *loop = &a->instrs[i];
    ax_fused_loop *fused_loop = NULL;
    if (loop->kind != AX_INSTR_LOOP || !worth_it(&m, i, loop->target)) continue;
    AX_TRY(make_fused_loop(&m, i, &fused_loop));
    if (fused_loop == NULL) continue;
    fused_loops[*count] = fused_loop;
    loops[(*count)++] = i;
    i = loop->target - 1;
  }
  return AX_OK;
}
