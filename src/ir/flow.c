/* Sets carried through programs (flow.h): in one walk where there are no loops; for loops, readers of a value that has grown are
   looked at again until no value grows. */
#include "ir/flow.h"

#include <string.h>

#include "ir/prim.h"
#include "ir/worklist.h"

bool ax_flow_eqn(ax_flow *flow, const ax_program *program, const ax_eqn *eqn, const ax_axis_set *in, ax_axis_set *out) {
  ax_differs_args args = {program, eqn, in, out, flow};
  (flow->rule != NULL && eqn->prim->kind != AX_REGION ? flow->rule : eqn->prim->differs)(&args);
  return !flow->failed;
}

static bool walk(ax_flow *flow, const ax_program *program, ax_axis_set *sets) {
  ax_axis_set *in = ax_calloc(ax_most_operands(program), sizeof in[0]);
  flow->failed = flow->failed || in == NULL;
  for (uint32_t i = 0; i < program->eqn_count && !flow->failed; i++) {
    const ax_eqn *eqn = &program->eqns[i];
    for (uint32_t k = 0; k < eqn->in_count; k++) in[k] = sets[eqn->in[k]];
    (void)ax_flow_eqn(flow, program, eqn, in, sets + eqn->out);
  }
  ax_free(in);
  return !flow->failed;
}

const ax_axis_set *ax_flow_program(ax_flow *flow, const ax_program *program, const ax_axis_set *in) {
  ax_memo_entry *entry = ax_memo_ask(flow->memo, flow->question, program, in, program->in_count * sizeof in[0]);
  if (entry != NULL && entry->known) return entry->data;
  ax_axis_set *sets = ax_arena_alloc(&flow->memo->arena, program->value_count * sizeof sets[0]);
  flow->failed = flow->failed || entry == NULL || sets == NULL;
  if (flow->failed) return NULL;
  if (program->in_count > 0) memcpy(sets, in, program->in_count * sizeof in[0]);
  if (!walk(flow, program, sets)) return NULL;
  entry->data = sets;
  entry->known = true;
  return sets;
}

/* --- Loops --- */

/* The state of a loop's analysis: the inputs' sets it last started from, and the sets of all values. Asked again with no smaller
   sets, it continues from there, and looks only at equations whose operands grow: each at most once for each growth, however long
   the way from carry to carry is. */
typedef struct loop {
  bool begun;
  ax_axis_set *start; /* of the inputs */
  ax_axis_set *sets;  /* of all values */
  /* Filled in when a value first grows: the readers of value v are reader[first_reader[v] .. first_reader[v + 1]): equations, or
     eqn_count + carry. */
  uint32_t *first_reader, *reader;
  ax_worklist again; /* equations */
  uint32_t *grown;   /* carries whose results have grown: a ring of all carries */
  bool *has_grown;
  uint32_t grown_first, grown_count;
} loop;

/* A loop being asked about, whose result k is carried to input first + k. */
typedef struct asking {
  ax_flow *flow;
  const ax_program *body;
  uint32_t first, count;
  loop *loop;
  ax_axis_set *in, *out; /* room for those of one equation */
} asking;

/* A loop is its parameters; no sets have as many bytes as the key that is made of them. */
static loop *known_loop(const ax_differs_args *args, const ax_program *body) {
  ax_flow *flow = args->flow;
  ax_arena *arena = &flow->memo->arena;
  size_t bytes = args->eqn->prim->params_bytes;
  char *key = ax_arena_alloc(arena, bytes + 1);
  if (key == NULL) return NULL;
  memcpy(key, args->eqn->params, bytes);
  ax_memo_entry *entry = ax_memo_ask(flow->memo, flow->question, body, key, bytes + 1);
  if (entry == NULL || entry->data != NULL) return entry != NULL ? entry->data : NULL;
  loop *known = ax_arena_alloc(arena, sizeof *known);
  if (known == NULL) return NULL;
  known->start = ax_arena_alloc(arena, body->in_count * sizeof known->start[0]);
  known->sets = ax_arena_alloc(arena, body->value_count * sizeof known->sets[0]);
  if (known->start == NULL || known->sets == NULL) return NULL;
  return entry->data = known;
}

/* Counts what reads each value at at[value + 1]; or, with room for it, puts it to reader[at[value]++]. */
static void each_reader(const asking *a, uint32_t *at, uint32_t *reader) {
  const ax_program *body = a->body;
  for (uint32_t i = 0; i < body->eqn_count + a->count; i++) {
    bool is_eqn = i < body->eqn_count;
    const uint32_t *in = is_eqn ? body->eqns[i].in : &body->outs[i - body->eqn_count];
    for (uint32_t k = 0; k < (is_eqn ? body->eqns[i].in_count : 1); k++) {
      if (reader == NULL) at[in[k] + 1]++;
      else reader[at[in[k]]++] = i;
    }
  }
}

static bool find_readers(const asking *a) {
  const ax_program *body = a->body;
  ax_arena *arena = &a->flow->memo->arena;
  loop *l = a->loop;
  size_t count = a->count;
  for (uint32_t i = 0; i < body->eqn_count; i++) count += body->eqns[i].in_count;
  l->first_reader = ax_arena_alloc(arena, ((size_t)body->value_count + 2) * sizeof l->first_reader[0]);
  l->grown = ax_arena_alloc(arena, a->count * sizeof l->grown[0]);
  l->has_grown = ax_arena_alloc(arena, a->count);
  uint32_t *reader = ax_arena_alloc(arena, count * sizeof reader[0]);
  if (l->first_reader == NULL || reader == NULL || l->grown == NULL || l->has_grown == NULL) return false;
  if (!ax_worklist_init(&l->again, arena, body->eqn_count, false)) return false;
  uint32_t *next = l->first_reader + 1; /* where the next reader of value v goes; once all are there, the first of value v + 1 */
  each_reader(a, next, NULL);
  for (uint32_t v = 0; v < body->value_count; v++) next[v + 1] += next[v];
  each_reader(a, next, reader);
  l->reader = reader;
  return true;
}

/* Adds to a value's set; who reads it is looked at again. */
static bool grow(const asking *a, uint32_t value, ax_axis_set more) {
  loop *l = a->loop;
  if ((more & ~l->sets[value]) == 0) return true;
  if (l->reader == NULL && !find_readers(a)) return false;
  l->sets[value] |= more;
  for (uint32_t r = l->first_reader[value]; r < l->first_reader[value + 1]; r++) {
    uint32_t reader = l->reader[r], carry = reader - a->body->eqn_count;
    if (reader < a->body->eqn_count) {
      ax_worklist_add(&l->again, reader);
    } else if (!l->has_grown[carry]) {
      l->has_grown[carry] = true;
      l->grown[(l->grown_first + l->grown_count++) % a->count] = carry;
    }
  }
  return true;
}

static bool carry(const asking *a, uint32_t k) { return grow(a, a->first + k, a->loop->sets[a->body->outs[k]]); }

/* Follows the growth of values: through equations first, then, when there are none left, through the carries into the next
   iteration. */
static bool follow(const asking *a) {
  loop *l = a->loop;
  if (l->reader == NULL) return true;
  do {
    while (l->grown_count > 0) {
      uint32_t k = l->grown[l->grown_first];
      l->grown_first = (l->grown_first + 1) % a->count;
      l->grown_count--;
      l->has_grown[k] = false;
      if (!carry(a, k)) return false;
    }
    for (uint32_t i; (i = ax_worklist_take(&l->again)) != AX_NONE;) {
      const ax_eqn *eqn = &a->body->eqns[i];
      for (uint32_t k = 0; k < eqn->in_count; k++) a->in[k] = l->sets[eqn->in[k]];
      if (!ax_flow_eqn(a->flow, a->body, eqn, a->in, a->out)) return false;
      for (uint32_t k = 0; k < eqn->out_count; k++)
        if (!grow(a, eqn->out + k, a->out[k])) return false;
    }
  } while (l->grown_count > 0);
  return true;
}

static bool settle(const asking *a, const ax_axis_set *in) {
  loop *l = a->loop;
  const ax_program *body = a->body;
  size_t bytes = body->in_count * sizeof in[0];
  bool holds = l->begun; /* what was found from the last start, as this one has it all */
  for (uint32_t i = 0; i < body->in_count && holds; i++) holds = (l->start[i] & ~in[i]) == 0;
  l->begun = true;
  if (bytes > 0) memcpy(l->start, in, bytes);
  if (holds) {
    for (uint32_t i = 0; i < body->in_count; i++)
      if (!grow(a, i, in[i])) return false;
    return follow(a);
  }
  if (bytes > 0) memcpy(l->sets, in, bytes);
  if (!walk(a->flow, body, l->sets)) return false;
  for (uint32_t k = 0; k < a->count; k++)
    if (!carry(a, k)) return false;
  return follow(a);
}

const ax_axis_set *ax_flow_loop(const ax_differs_args *args, const ax_program *body, const ax_axis_set *in, uint32_t first,
                                uint32_t count) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < body->eqn_count; i++) {
    if (body->eqns[i].in_count > most) most = body->eqns[i].in_count;
    if (body->eqns[i].out_count > most) most = body->eqns[i].out_count;
  }
  ax_axis_set *room = ax_calloc(2 * (size_t)most, sizeof room[0]);
  asking a = {args->flow, body, first, count, room != NULL ? known_loop(args, body) : NULL, room, room + most};
  bool known = a.loop != NULL && settle(&a, in);
  ax_free(room);
  args->flow->failed = args->flow->failed || !known;
  return known ? a.loop->sets : NULL;
}
