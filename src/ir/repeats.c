/* A hash table of the programs in a program (repeats.h). Each is walked once, however often it occurs: what stands in it is counted
   by the number of its equations, written out, which is known when the walk has left it. */
#include "ir/repeats.h"

#include "ir/prim.h"

static ax_repeat *place(const ax_repeats *repeats, ax_repeat *table, uint32_t slots, const ax_program *program) {
  uint32_t at = (uint32_t)program->hash & (slots - 1);
  for (; table[at].program != NULL; at = (at + 1) & (slots - 1))
    if (repeats->same ? table[at].program == program : ax_program_equal(table[at].program, program)) break;
  return &table[at];
}

static ax_status reserve(ax_repeats *repeats) {
  if (2 * repeats->count < repeats->slots) return AX_OK;
  const uint32_t slots = repeats->slots > 0 ? 2 * repeats->slots : 64;
  ax_repeat *table = slots > repeats->slots ? ax_calloc(slots, sizeof table[0]) : NULL;
  if (table == NULL) return ax_out_of_memory(slots * sizeof table[0]);
  for (uint32_t i = 0; i < repeats->slots; i++)
    if (repeats->table[i].program != NULL) *place(repeats, table, slots, repeats->table[i].program) = repeats->table[i];
  ax_free(repeats->table);
  repeats->table = table;
  repeats->slots = slots;
  return AX_OK;
}

static uint64_t sum(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

static ax_status find(ax_repeats *repeats, const ax_program *program, uint64_t *equations) {
  AX_TRY(reserve(repeats));
  ax_repeat *met = place(repeats, repeats->table, repeats->slots, program);
  *equations = met->equations;
  if (met->program != NULL) return met->occurrences++, AX_OK;
  *met = (ax_repeat){.program = program, .occurrences = 1};
  repeats->count++;
  *equations = program->eqn_count;
  for (uint32_t e = 0; e < program->eqn_count && program->nesting > 0; e++) {
    const ax_program *nested;
    for (uint32_t i = 0; (nested = ax_eqn_program(&program->eqns[e], i)) != NULL; i++) {
      uint64_t inside;
      AX_TRY(find(repeats, nested, &inside));
      *equations = sum(*equations, inside);
    }
  }
  place(repeats, repeats->table, repeats->slots, program)->equations = *equations; /* the table may have moved */
  return AX_OK;
}

ax_status ax_repeats_find(const ax_program *program, bool same, ax_repeats *out) {
  uint64_t equations;
  *out = (ax_repeats){.same = same};
  const ax_status status = find(out, program, &equations);
  if (status != AX_OK) ax_repeats_deinit(out);
  return status;
}

void ax_repeats_deinit(ax_repeats *repeats) {
  ax_free(repeats->table);
  *repeats = (ax_repeats){0};
}

ax_repeat *ax_repeats_of(const ax_repeats *repeats, const ax_program *program) {
  if (repeats->slots == 0) return NULL;
  ax_repeat *found = place(repeats, repeats->table, repeats->slots, program);
  return found->program != NULL ? found : NULL;
}
