/* Which loops become strands (jit/nest/strand.h): those of small kernels alone, that nothing in them waits or is waited for, and that one device does
   for all that share them or each does for itself. The instructions stay in the list behind the LOOP, which has the strand, and does all of them
   at once.

   An operand can be held in registers where it is all of a root of few elements: no other root's bytes are read through it, and whoever else lives
   in its memory does so before or after. Its lifetime says whether it is needed before the strand's first step, and wanted after its last. */
#include <string.h>

#include "exec/exec.h"

enum { most_steps = 512, most_exprs = 1024 };

typedef struct counted { /* in the list before a position */
  uint32_t others, exprs; /* instructions that no strand can have; nodes of kernels */
} counted;

typedef struct maker {
  ax_assembly *a;
  const counted *before;
  ax_strand strand;
  ax_strand_step *steps;
  ax_strand_place *places;
  ax_ref *refs;
  uint32_t *roots;  /* by place */
  uint32_t *numbers; /* by loop of the plan: its number in the strand; AX_NONE: it is around it, or elsewhere */
  uint32_t loops, begin, end; /* end: the position after the strand */
  ax_axis_set skip;
  bool any;    /* a kernel, whose skip that is */
  bool failed; /* for lack of memory */
} maker;

/* --- What can be one --- */

static bool fits(const ax_assembly *a, uint32_t i) {
  const ax_instr *instr = &a->instrs[i];
  switch (instr->kind) {
    case AX_INSTR_KERNEL: return instr->parts <= 1 && !a->ops[i]->kernel.kernel->failed && ax_strand_takes(a->ops[i]->kernel.kernel);
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
  return end - begin <= most_steps && to->others == from->others && to->exprs - from->exprs <= most_exprs && m->a->instrs[begin].trips != 0;
}

/* --- Places --- */

static bool needed_before(const maker *m, uint32_t root) {
  const ax_plan *plan = m->a->plan;
  return plan->buffers[root].kind != AX_BUFFER_TEMP || m->a->residents[root].life.first < m->begin;
}

static bool wanted_after(const maker *m, uint32_t root) {
  const ax_resident *r = &m->a->residents[root];
  const ax_space_kind kind = m->a->executable->spaces[r->space].kind;
  return (kind != AX_SPACE_SCRATCH && kind != AX_SPACE_KEPT && kind != AX_SPACE_CONST) || r->life.last >= m->end;
}

/* How many elements of an operand can be held: all of its root's, if they are few. */
static uint16_t held_elems(const maker *m, const ax_buffer *buffer, ax_dtype dtype) {
  const ax_buffer *root = &m->a->plan->buffers[buffer->root];
  const int64_t bytes = ax_buffer_bytes(root);
  bool whole = root->type.dtype == dtype && buffer->type.dtype == dtype && ax_buffer_bytes(buffer) == bytes && buffer->offset == 0 &&
               (buffer->loop == AX_NONE || buffer->step == 0);
  return whole && bytes <= AX_STRAND_HELD ? (uint16_t)ax_type_elems(&root->type) : 0;
}

static bool same_ref(const ax_ref *a, const ax_ref *b) {
  return a->first == b->first && a->place == b->place && a->offset == b->offset && a->loop == b->loop && a->step == b->step;
}

/* Of the place that an operand of instruction `i` is in, its number. false: there are too many. */
static bool find_place(maker *m, ax_ref ref, uint32_t buffer, ax_dtype dtype, ax_strand_operand *out) {
  const ax_buffer *b = &m->a->plan->buffers[buffer];
  const uint32_t root = b->root;
  *out = (ax_strand_operand){.loop = AX_NONE};
  if (b->loop != AX_NONE && m->numbers[b->loop] != AX_NONE) {
    *out = (ax_strand_operand){.loop = m->numbers[b->loop], .step = b->step};
    ref.loop = 0;
    ref.step = 0;
  }
  uint32_t p = 0;
  while (p < m->strand.place_count && !(m->roots[p] == root && same_ref(&m->refs[p], &ref) && m->places[p].dtype == dtype)) p++;
  out->place = p;
  if (p < m->strand.place_count) return true;
  if (p == AX_STRAND_PLACES) return false;
  m->refs[p] = ref;
  m->roots[p] = root;
  m->places[p] = (ax_strand_place){.dtype = dtype, .elems = held_elems(m, b, dtype)};
  if (m->places[p].elems > 0) {
    m->places[p].needed = needed_before(m, root);
    m->places[p].wanted = wanted_after(m, root);
  }
  m->strand.place_count++;
  return true;
}

/* What is held is in one place: who else touches that root, as another dtype say, makes them all memory. */
static void settle_places(maker *m) {
  for (uint32_t p = 0; p < m->strand.place_count; p++)
    for (uint32_t q = 0; q < m->strand.place_count; q++)
      if (p != q && m->roots[p] == m->roots[q]) m->places[p] = (ax_strand_place){.dtype = m->places[p].dtype};
}

/* --- Steps --- */

static ax_strand_step *add(maker *m, ax_strand_step_kind kind) {
  ax_strand_step *step = &m->steps[m->strand.step_count++];
  *step = (ax_strand_step){.kind = kind};
  return step;
}

static bool add_operands(maker *m, ax_strand_step *step, uint32_t i, const uint32_t *buffers, const ax_dtype *dtypes, uint32_t count) {
  ax_strand_operand *operands = ax_arena_alloc(&m->a->scratch, count * sizeof operands[0]);
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
  ax_strand_step *step = add(m, AX_STRAND_KERNEL);
  step->kernel = bound->kernel;
  return add_operands(m, step, i, bound->buffers, dtypes, bound->kernel->slot_count);
}

static bool add_steps(maker *m, uint32_t *i, uint32_t depth);

/* *i: the LOOP; then what comes after its NEXT. */
static bool add_loop(maker *m, uint32_t *i, uint32_t depth) {
  const ax_instr *loop = &m->a->instrs[*i];
  add(m, AX_STRAND_LOOP)->trips = loop->trips;
  m->numbers[loop->loop] = m->loops++;
  ++*i;
  if (!add_steps(m, i, depth)) return false;
  if (loop->trips < 0) {
    const ax_dtype dtype = AX_BOOL;
    if (m->a->instrs[*i].kind != AX_INSTR_TEST || !add_operands(m, add(m, AX_STRAND_TEST), *i, &m->a->ops[*i]->loop.condition, &dtype, 1)) return false;
    ++*i;
    if (!add_steps(m, i, depth)) return false;
  }
  if (m->a->instrs[*i].kind != AX_INSTR_NEXT || loop->target != *i + 1) return false;
  ++*i;
  m->numbers[loop->loop] = AX_NONE;
  add(m, AX_STRAND_END);
  return true;
}

static bool add_branch(maker *m, uint32_t *i, uint32_t depth) {
  const ax_instr *branch = &m->a->instrs[*i];
  const ax_dtype dtype = AX_S32;
  ax_strand_step *step = add(m, AX_STRAND_BRANCH);
  step->count = branch->branch.count;
  if (!add_operands(m, step, *i, &m->a->ops[*i]->branch.index, &dtype, 1)) return false;
  ++*i;
  for (uint32_t k = 0; k < branch->branch.count; k++) {
    if (branch->branch.targets[k] != *i) return false;
    add(m, AX_STRAND_CASE);
    if (!add_steps(m, i, depth) || m->a->instrs[*i].kind != AX_INSTR_JUMP) return false;
    ++*i;
  }
  add(m, AX_STRAND_END);
  return true;
}

/* As far as the region goes. false: it makes no strand after all. */
static bool add_steps(maker *m, uint32_t *i, uint32_t depth) {
  for (;;) {
    const ax_instr *instr = &m->a->instrs[*i];
    if (m->strand.step_count + 4 > 2 * most_steps || depth > AX_STRAND_NESTED) return false;
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

/* --- Strands --- */

static bool allocate(maker *m) {
  ax_arena *arena = &m->a->scratch;
  m->steps = ax_arena_alloc(arena, 2 * most_steps * sizeof m->steps[0]);
  m->places = ax_arena_alloc(arena, AX_STRAND_PLACES * sizeof m->places[0]);
  m->refs = ax_arena_alloc(arena, AX_STRAND_PLACES * sizeof m->refs[0]);
  m->roots = ax_arena_alloc(arena, AX_STRAND_PLACES * sizeof m->roots[0]);
  return m->steps != NULL && m->places != NULL && m->refs != NULL && m->roots != NULL;
}

/* What is kept of the maker's tables, which are used again. */
static ax_status keep(maker *m, ax_instr *loop, ax_strand **out) {
  ax_arena *arena = &m->a->scratch;
  ax_strand *strand = *out = ax_arena_copy(arena, &m->strand, sizeof *strand);
  loop->strand = ax_arena_alloc(&m->a->plan->arena, sizeof *loop->strand);
  ax_ref *refs = ax_arena_copy(&m->a->plan->arena, m->refs, m->strand.place_count * sizeof refs[0]);
  if (strand == NULL || loop->strand == NULL || refs == NULL) return ax_out_of_memory(m->strand.place_count * sizeof refs[0]);
  strand->steps = ax_arena_copy(arena, m->steps, m->strand.step_count * sizeof m->steps[0]);
  strand->places = ax_arena_copy(arena, m->places, m->strand.place_count * sizeof m->places[0]);
  if (strand->steps == NULL || strand->places == NULL) return ax_out_of_memory(m->strand.step_count * sizeof m->steps[0]);
  *loop->strand = (ax_strand_instr){.skip = m->skip, .ref_count = m->strand.place_count, .refs = refs};
  return AX_OK;
}

/* The strand of the loop at `at`; *out NULL: it is none. */
static ax_status make_strand(maker *m, uint32_t at, ax_strand **out) {
  ax_instr *loop = &m->a->instrs[at];
  uint32_t i = at;
  *out = NULL;
  m->strand = (ax_strand){0};
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

ax_status ax_find_strands(ax_assembly *a, const ax_strand **strands, uint32_t *loops, uint32_t *count) {
  maker m = {.a = a};
  *count = 0;
  if (a->plan->loop_count == 0) return AX_OK;
  m.before = count_all(a);
  m.numbers = ax_arena_alloc(&a->scratch, a->plan->loop_count * sizeof m.numbers[0]);
  if (m.before == NULL || m.numbers == NULL || !allocate(&m)) return ax_out_of_memory(a->instr_count * sizeof m.before[0]);
  for (uint32_t i = 0; i < a->instr_count; i++) {
    const ax_instr *loop = &a->instrs[i];
    ax_strand *strand = NULL;
    if (loop->kind != AX_INSTR_LOOP || !worth_it(&m, i, loop->target)) continue;
    AX_TRY(make_strand(&m, i, &strand));
    if (strand == NULL) continue;
    strands[*count] = strand;
    loops[(*count)++] = i;
    i = loop->target - 1;
  }
  return AX_OK;
}
