/* Fused loops as data: equal ones are found again by their hash. */
#include "jit/nest/fused_loop.h"

#include <string.h>

void ax_fused_loop_words(const ax_fused_loop *fused_loop, ax_take_word *take, void *context) {
  take(context, (uint64_t)fused_loop->step_count << 32 | fused_loop->place_count);
  for (uint32_t i = 0; i < fused_loop->place_count; i++) {
    const ax_fused_loop_place *p = &fused_loop->places[i];
    take(context, (uint64_t)p->dtype << 32 | (uint64_t)p->elems << 2 | (uint64_t)p->needed << 1 | p->wanted);
  }
  for (uint32_t i = 0; i < fused_loop->step_count; i++) {
    const ax_fused_loop_step *s = &fused_loop->steps[i];
    take(context, (uint64_t)s->kind << 32 | s->count);
    take(context, (uint64_t)s->trips);
    if (s->kind == AX_FUSED_LOOP_KERNEL) ax_kernel_words(s->kernel, take, context);
    for (uint32_t k = 0; k < ax_fused_loop_operands(s); k++) {
      take(context, (uint64_t)s->operands[k].place << 32 | s->operands[k].loop);
      take(context, s->operands[k].first);
      take(context, (uint64_t)s->operands[k].step);
    }
  }
}

static void take_hash(void *context, uint64_t word) {
  uint64_t *hash = context;
  *hash = ax_hash_word(*hash, word);
}

uint64_t ax_fused_loop_hash(const ax_fused_loop *fused_loop) {
  uint64_t hash = AX_HASH_SEED;
  ax_fused_loop_words(fused_loop, take_hash, &hash);
  return hash;
}

static bool same_place(const ax_fused_loop_place *a, const ax_fused_loop_place *b) {
  return a->dtype == b->dtype && a->elems == b->elems && a->needed == b->needed && a->wanted == b->wanted;
}

static bool same_step(const ax_fused_loop_step *a, const ax_fused_loop_step *b) {
  if (a->kind != b->kind || a->count != b->count || a->trips != b->trips) return false;
  if (a->kind == AX_FUSED_LOOP_KERNEL && !ax_kernel_equal(a->kernel, b->kernel)) return false;
  for (uint32_t k = 0; k < ax_fused_loop_operands(a); k++) {
    const ax_fused_loop_operand *x = &a->operands[k], *y = &b->operands[k];
    if (x->place != y->place || x->first != y->first || x->loop != y->loop || x->step != y->step) return false;
  }
  return true;
}

bool ax_fused_loop_equal(const ax_fused_loop *a, const ax_fused_loop *b) {
  if (a->step_count != b->step_count || a->place_count != b->place_count) return false;
  for (uint32_t i = 0; i < a->place_count; i++)
    if (!same_place(&a->places[i], &b->places[i])) return false;
  for (uint32_t i = 0; i < a->step_count; i++)
    if (!same_step(&a->steps[i], &b->steps[i])) return false;
  return true;
}

ax_fused_loop *ax_fused_loop_copy(ax_arena *arena, const ax_fused_loop *fused_loop) {
  ax_fused_loop *copy = ax_arena_copy(arena, fused_loop, sizeof *copy);
  ax_fused_loop_step *steps = ax_arena_copy(arena, fused_loop->steps, fused_loop->step_count * sizeof steps[0]);
  ax_fused_loop_place *places = ax_arena_copy(arena, fused_loop->places, fused_loop->place_count * sizeof places[0]);
  if (copy == NULL || steps == NULL || places == NULL) return NULL;
  for (uint32_t i = 0; i < fused_loop->step_count; i++) {
    const uint32_t operands = ax_fused_loop_operands(&fused_loop->steps[i]);
    if (operands > 0 &&
        (steps[i].operands = ax_arena_copy(arena, steps[i].operands, operands * sizeof steps[i].operands[0])) == NULL)
      return NULL;
    if (steps[i].kernel != NULL && (steps[i].kernel = ax_kernel_copy(arena, steps[i].kernel)) == NULL) return NULL;
  }
  copy->steps = steps;
  copy->places = places;
  return copy;
}

/* For a kernel of more than a microsecond the cost of a call does not matter. A long kernel is better compiled once and called
   from several places. */
bool ax_fused_loop_takes(const ax_loop_kernel *kernel) {
  enum { most_exprs = 160, most_time = 1000 };
  return kernel->expr_count <= most_exprs && ax_kernel_time(kernel) <= most_time;
}
