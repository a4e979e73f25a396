/* Finds the values of a program that some of its results need, so that the others need not be computed. One walk over the equations
   does it, from the last to the first. At an equation that holds programs (a region), its `prune` rule says which operands the
   needed results need; it asks the same question of its programs. The memo keeps the answer for each set of results.

   In a loop, a needed carry is also a result that the iteration before must compute. So the needed carries are the least set that
   contains all carries which its own results need. It is found value by value: an equation is looked at again only if another of
   its results becomes needed, even if the needs go from carry to carry through many iterations. More results never need fewer
   values, so a question with more results continues from the last answer. */
#include <string.h>

#include "ir/prim.h"
#include "ir/worklist.h"
#include "xform/xform.h"

ax_status ax_need_eqn(ax_memo *memo, const ax_eqn *eqn, bool *needed, ax_needed *of, bool *any) {
  *any = (ax_eqn_effects(eqn) & AX_EFFECT_STATE) != 0;
  for (uint32_t k = 0; k < eqn->out_count; k++) *any = *any || needed[eqn->out + k];
  if (!*any) return AX_OK;
  if (eqn->prim->prune != NULL) {
    for (uint32_t k = 0; k < eqn->out_count; k++) of->out[k] = needed[eqn->out + k];
    AX_TRY(eqn->prim->prune(&(ax_prune_args){eqn, of->out, of->in, of->params, memo}));
  }
  for (uint32_t j = 0; j < eqn->in_count; j++)
    if (eqn->prim->prune == NULL || of->in[j]) needed[eqn->in[j]] = true;
  return AX_OK;
}

/* Allocates flags that suffice for the operands and results of each region in the program. */
static ax_status room_init(ax_needed *room, const ax_program *program, ax_arena *arena) {
  uint32_t in_count = 0, out_count = 0;
  for (uint32_t i = 0; i < program->eqn_count; i++) {
    const ax_eqn *eqn = &program->eqns[i];
    if (eqn->prim->prune == NULL) continue;
    if (eqn->in_count > in_count) in_count = eqn->in_count;
    if (eqn->out_count > out_count) out_count = eqn->out_count;
  }
  *room = (ax_needed){NULL, ax_arena_alloc(arena, in_count), ax_arena_alloc(arena, out_count)};
  return room->in != NULL && room->out != NULL ? AX_OK : ax_out_of_memory(in_count + (size_t)out_count);
}

/* Walks backward from the results marked in out[], and adds the values they need to needed[]. */
static ax_status walk(ax_memo *memo, const ax_program *program, const bool *out, bool *needed, ax_needed *room) {
  for (uint32_t k = 0; k < program->out_count; k++) needed[program->outs[k]] = needed[program->outs[k]] || out[k];
  for (uint32_t i = program->eqn_count; i-- > 0;) {
    bool any;
    AX_TRY(ax_need_eqn(memo, &program->eqns[i], needed, room, &any));
  }
  return AX_OK;
}

ax_status ax_needs_program(ax_memo *memo, const ax_program *program, const bool *out, bool *in) {
  ax_memo_entry *entry = ax_memo_ask(memo, "needs", program, out, program->out_count);
  bool *needed = entry != NULL ? entry->data : NULL;
  ax_needed room;
  if (entry == NULL) return ax_out_of_memory(0);
  if (!entry->known) {
    entry->data = needed = ax_arena_alloc(&memo->arena, program->value_count);
    if (needed == NULL) return ax_out_of_memory(program->value_count);
    AX_TRY(room_init(&room, program, &memo->arena));
    AX_TRY(walk(memo, program, out, needed, &room));
    entry->known = true;
  }
  if (program->in_count > 0) memcpy(in, needed, program->in_count);
  return AX_OK;
}

/* --- Loops --- */

/* The last question about a loop, and its answer. A question with the same results and more continues from it. */
typedef struct loop {
  bool *start;     /* by result of the body: it was asked for */
  bool *out;       /* by result of the body: it was asked for, or is a carry that is needed for that */
  bool *needed;    /* by value of the body */
  ax_needed room;  /* for questions to regions in the body */
  uint32_t *maker; /* by value without the inputs: the equation that computes it */
  ax_worklist again; /* equations with a result that has become needed */
  uint32_t *carries, carry_count; /* a stack: needed carries whose results at the body's end have not been marked yet */
} loop;

/* A question about a loop whose body's result k is its input first + k in the next iteration, for k < count. */
typedef struct asking {
  ax_memo *memo;
  const ax_program *body;
  uint32_t first, count;
  loop *loop;
} asking;

static ax_status make_loop(const asking *a, loop **out) {
  const ax_program *body = a->body;
  ax_arena *arena = &a->memo->arena;
  loop *l = *out = ax_arena_alloc(arena, sizeof *l);
  if (l == NULL) return ax_out_of_memory(sizeof *l);
  l->start = ax_arena_alloc(arena, body->out_count);
  l->out = ax_arena_alloc(arena, body->out_count);
  l->needed = ax_arena_alloc(arena, body->value_count);
  l->maker = ax_arena_alloc(arena, (body->value_count - body->in_count) * sizeof l->maker[0]);
  l->carries = ax_arena_alloc(arena, a->count * sizeof l->carries[0]);
  bool made = l->start != NULL && l->out != NULL && l->needed != NULL && l->maker != NULL && l->carries != NULL;
  if (!made || !ax_worklist_init(&l->again, arena, body->eqn_count, true)) return ax_out_of_memory(body->value_count);
  for (uint32_t i = 0; i < body->eqn_count; i++)
    for (uint32_t k = 0; k < body->eqns[i].out_count; k++) l->maker[body->eqns[i].out + k - body->in_count] = i;
  return room_init(&l->room, body, arena);
}

static void need_carry(const asking *a, uint32_t k) {
  loop *l = a->loop;
  if (l->out[k]) return;
  l->out[k] = true;
  l->carries[l->carry_count++] = k;
}

static void need(const asking *a, uint32_t value) {
  loop *l = a->loop;
  if (l->needed[value]) return;
  l->needed[value] = true;
  if (value >= a->body->in_count) ax_worklist_add(&l->again, l->maker[value - a->body->in_count]);
  else if (value >= a->first && value - a->first < a->count) need_carry(a, value - a->first);
}

/* Marks all values that the marked ones need. The worklist goes backward through the body. When it is empty, the results that give
   the needed carries their values in the iteration before are marked, which may fill it again. */
static ax_status follow(const asking *a) {
  loop *l = a->loop;
  do {
    while (l->carry_count > 0) need(a, a->body->outs[l->carries[--l->carry_count]]);
    for (uint32_t i; (i = ax_worklist_take(&l->again)) != AX_NONE;) {
      const ax_eqn *eqn = &a->body->eqns[i];
      if (eqn->prim->prune != NULL) {
        for (uint32_t k = 0; k < eqn->out_count; k++) l->room.out[k] = l->needed[eqn->out + k];
        AX_TRY(eqn->prim->prune(&(ax_prune_args){eqn, l->room.out, l->room.in, NULL, a->memo}));
      }
      for (uint32_t j = 0; j < eqn->in_count; j++)
        if (eqn->prim->prune == NULL || l->room.in[j]) need(a, eqn->in[j]);
    }
  } while (l->carry_count > 0);
  return AX_OK;
}

/* Finds the values that the results marked in `out` need. `known`: the loop's state holds an earlier answer. If that one was for
   some of these results, only the others are followed; otherwise the search begins anew. */
static ax_status settle(const asking *a, bool known, const bool *out) {
  loop *l = a->loop;
  const ax_program *body = a->body;
  bool holds = known;
  for (uint32_t k = 0; k < body->out_count && holds; k++) holds = !l->start[k] || out[k];
  if (body->out_count > 0) memcpy(l->start, out, body->out_count);
  for (uint32_t k = 0; k < body->out_count && holds; k++) {
    if (!out[k]) continue;
    l->out[k] = true;
    need(a, body->outs[k]);
  }
  if (!holds) {
    if (body->out_count > 0) memcpy(l->out, out, body->out_count);
    if (body->value_count > 0) memset(l->needed, 0, body->value_count);
    AX_TRY(walk(a->memo, body, out, l->needed, &l->room));
    for (uint32_t k = 0; k < a->count; k++)
      if (l->needed[a->first + k]) need_carry(a, k);
  }
  return follow(a);
}

ax_status ax_needs_loop(const ax_prune_args *args, const ax_program *body, uint32_t first, uint32_t count, bool *in) {
  const uint32_t carries[] = {first,
                              count}; /* enough for a key; the equation's parameters would be none, as their padding is arbitrary */
  ax_memo_entry *entry = ax_memo_ask(args->memo, "needs of a loop", body, carries, sizeof carries);
  if (entry == NULL) return ax_out_of_memory(sizeof *entry);
  asking a = {args->memo, body, first, count, entry->data};
  bool known = entry->known;
  entry->known = false; /* a failure halfway leaves an answer that must not be used */
  if (a.loop == NULL) AX_TRY(make_loop(&a, &a.loop));
  entry->data = a.loop;
  AX_TRY(settle(&a, known, args->out));
  entry->known = true;
  if (body->out_count > 0) memcpy(args->out, a.loop->out, body->out_count);
  if (body->in_count > 0) memcpy(in, a.loop->needed, body->in_count);
  return AX_OK;
}
