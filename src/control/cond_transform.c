/* cond: the rules that make conds of conds. Each transform is that of the branches.

     jvp         one cond, of the branches' jvps
     linearize   a cond of the primal halves, which also give the residuals, and a cond of the tangent halves
     transpose   one cond, of the branches transposed, on the same index
     batch       one cond, of the branches batched; when the index itself is batched, all branches run on the whole batch and each
                 member's results are selected
     prune       one cond; an operand is needed when a branch needs it

   A result has a tangent, or a batch dimension, if it has one in any branch; this is known before the branches are transformed. */
#include "control/cond.h"
#include "ir/prim.h"
#include "prim/prims.h"
#include "prim/rebuild.h"

/* An equation being transformed, and programs made of its branches. */
typedef struct branches {
  const ax_programs *of;
  uint32_t count, in_count, out_count; /* operands without the index */
  ax_program **made; /* count programs, owned here */
} branches;

static bool branches_init(branches *b, const ax_eqn *eqn) {
  const ax_programs *of = &((const ax_cond_params *)eqn->params)->branches;
  *b = (branches){.of = of, .count = of->count, .in_count = eqn->in_count - 1, .out_count = eqn->out_count};
  b->made = ax_trace_alloc(b->count * sizeof b->made[0]);
  return !ax_failed();
}

static void release(ax_program **programs, uint32_t count) {
  for (uint32_t i = 0; programs != NULL && i < count; i++) ax_program_release(programs[i]);
}

/* Binds the programs made of the branches; on failure, of them or before, the trace has failed. */
static void bind_made(ax_status status, const branches *b, const ax_value *in, uint32_t in_count, ax_value *out,
                      uint32_t out_count) {
  ax_cond_params params = {{b->count, b->made}};
  if (status != AX_OK) ax_fail(status);
  if (!ax_failed()) ax_bind(&ax_prim_cond, &params, in, in_count, out, out_count);
}

/* --- jvp, linearize --- */

void ax_cond_jvp(const ax_jvp_args *args) {
  branches b;
  ax_tangents t;
  if (!branches_init(&b, args->eqn) || !ax_tangents_init(&t, args)) return;
  uint32_t in_count = args->eqn->in_count, out_count = b.out_count + t.out_count;
  ax_value *in = ax_trace_alloc((in_count + (size_t)t.in_count) * sizeof in[0]);
  ax_value *out = ax_trace_alloc(out_count * sizeof out[0]);
  if (in == NULL || out == NULL) return;
  for (uint32_t i = 0; i < in_count; i++) in[i] = args->in[i];
  in_count += ax_tangents_take(&t, in + in_count);
  ax_status status = AX_OK;
  for (uint32_t i = 0; i < b.count && status == AX_OK; i++)
    status = ax_jvp_program(b.of->v[i], t.in + 1, t.want, &b.made[i]);
  bind_made(status, &b, in, in_count, out, out_count);
  release(b.made, b.count);
  ax_tangents_give(&t, out, out + b.out_count);
}

/* The branches split in two. A residual that is an operand is taken from there; the others leave the primal branches through
   slots, shared by residuals of equal type of different branches. */
typedef struct split {
  const ax_tangents *t;
  branches *b;
  ax_program **primal, **tangent; /* by branch; owned here */
  uint32_t *residual_count, **source; /* by branch, by residual: an operand, or in_count + slot */
  bool *used;                     /* operands that are residuals of some branch */
  ax_type *slots;
  uint32_t *next_alike; /* by slot: the next of its type, or AX_NONE */
  uint32_t slot_count, slot_capacity, next_capacity;
  ax_memo by_type; /* slot_list by type */
} split;

/* The slots of one type, and the first of them that the branch being split (number and 1) does not use yet. */
typedef struct slot_list {
  uint32_t first, last, branch, next;
} slot_list;

static bool split_init(split *s, branches *b, const ax_tangents *t) {
  *s = (split){.t = t, .b = b};
  s->primal = ax_trace_alloc(b->count * sizeof s->primal[0]);
  s->tangent = ax_trace_alloc(b->count * sizeof s->tangent[0]);
  s->residual_count = ax_trace_alloc(b->count * sizeof s->residual_count[0]);
  s->source = ax_trace_alloc(b->count * sizeof s->source[0]);
  s->used = ax_trace_alloc(b->in_count);
  return !ax_failed();
}

static void split_deinit(split *s) {
  release(s->primal, s->b->count);
  release(s->tangent, s->b->count);
  ax_free(s->slots);
  ax_free(s->next_alike);
  ax_memo_deinit(&s->by_type);
}

static slot_list *list_of(split *s, const ax_type *type) {
  const ax_spread *spread = &type->spread;
  uint64_t key[7 + AX_MAX_RANK] = {type->form,      type->dtype,     type->rank,       spread->kind,
                                   spread->varying, spread->reduced, spread->unreduced};
  for (uint32_t d = 0; d < type->rank; d++) key[7 + d] = (uint64_t)type->dims[d];
  ax_memo_entry *entry = ax_memo_ask(&s->by_type, "slots", NULL, key, sizeof key);
  if (entry == NULL || entry->data != NULL) return entry != NULL ? entry->data : NULL;
  slot_list *list = entry->data = ax_arena_alloc(&s->by_type.arena, sizeof *list);
  if (list != NULL) *list = (slot_list){AX_NONE, AX_NONE, 0, AX_NONE};
  return list;
}

static ax_status add_slot(split *s, slot_list *list, const ax_type *type) {
  AX_TRY(ax_grow(&s->slots, sizeof s->slots[0], s->slot_count, 1, &s->slot_capacity));
  AX_TRY(ax_grow(&s->next_alike, sizeof s->next_alike[0], s->slot_count, 1, &s->next_capacity));
  s->slots[s->slot_count] = *type;
  s->next_alike[s->slot_count] = AX_NONE;
  if (list->last == AX_NONE) list->first = s->slot_count;
  else s->next_alike[list->last] = s->slot_count;
  list->last = list->next = s->slot_count++;
  return AX_OK;
}

/* A slot of this type that branch i does not use yet. */
static ax_status take_slot(split *s, uint32_t i, const ax_type *type, uint32_t *out) {
  slot_list *list = list_of(s, type);
  if (list == NULL) return ax_out_of_memory(sizeof *list);
  if (list->branch != i + 1) {
    list->branch = i + 1;
    list->next = list->first;
  }
  if (list->next == AX_NONE) AX_TRY(add_slot(s, list, type));
  *out = list->next;
  list->next = s->next_alike[*out];
  return AX_OK;
}

static ax_status split_branch(split *s, uint32_t i) {
  branches *b = s->b;
  AX_TRY(ax_linearize_program(b->of->v[i], s->t->in + 1, s->t->want, NULL, &s->primal[i], &s->tangent[i],
                              &s->residual_count[i]));
  const ax_program *primal = s->primal[i];
  uint32_t count = s->residual_count[i];
  s->source[i] = ax_trace_alloc(count * sizeof(uint32_t));
  if (s->source[i] == NULL) return ax_out_of_memory(count * sizeof(uint32_t));
  for (uint32_t r = 0; r < count; r++) {
    uint32_t id = primal->outs[b->out_count + r], slot = 0;
    if (id < primal->in_count) {
      s->used[id] = true;
      s->source[i][r] = id;
      continue;
    }
    AX_TRY(take_slot(s, i, &primal->types[id], &slot));
    s->source[i][r] = b->in_count + slot;
  }
  return AX_OK;
}

/* What stands in a slot that a branch does not use: 1, or 0 where it is no float. Once the index is batched, all branches compute for
   all members, and what they make of slots that are not theirs is left out. If they divide by such a slot, a derivative of that
   would multiply the zero that comes back by infinity. */
static ax_value fill(const ax_type *slot) { return ax_filled(slot, ax_is_float(slot->dtype) ? 1 : 0); }

/* (x..) -> (y.., slot..) */
static ax_status build_primal(const split *s, uint32_t i, ax_program **out) {
  const ax_program *primal = s->primal[i];
  uint32_t y_count = s->b->out_count, out_count = y_count + s->slot_count;
  ax_builder builder;
  ax_value *in = ax_region_begin(&builder, &primal->axes, primal->types, primal->in_count);
  ax_value *results = ax_trace_alloc(primal->out_count * sizeof results[0]);
  ax_value *outs = ax_trace_alloc(out_count * sizeof outs[0]);
  if (in != NULL && results != NULL && outs != NULL) {
    ax_call(primal, in, results);
    for (uint32_t k = 0; k < y_count; k++) outs[k] = results[k];
    for (uint32_t r = 0; r < s->residual_count[i]; r++)
      if (s->source[i][r] >= s->b->in_count) outs[y_count + s->source[i][r] - s->b->in_count] = results[y_count + r];
    for (uint32_t k = y_count; k < out_count; k++)
      if (outs[k].trace == 0) outs[k] = fill(&s->slots[k - y_count]);
  }
  return ax_region_finish(&builder, outs, out_count, out);
}

/* (used x.., slot.., dx..) -> (dy..) */
static ax_status build_tangent(const split *s, uint32_t i, ax_program **out) {
  const ax_program *first = s->b->of->v[0], *tangent = s->tangent[i];
  uint32_t n = s->b->in_count, count = 0, residuals = s->residual_count[i];
  ax_type *types = ax_trace_alloc((2 * (size_t)n + s->slot_count) * sizeof types[0]);
  uint32_t *place = ax_trace_alloc((n + (size_t)s->slot_count) * sizeof place[0]);
  uint32_t *in_at = ax_trace_alloc(tangent->in_count * sizeof in_at[0]);
  uint32_t *out_from = ax_in_order(tangent->out_count);
  if (types == NULL || place == NULL || in_at == NULL || out_from == NULL) return ax_out_of_memory(0);
  for (uint32_t x = 0; x < n + s->slot_count; x++) {
    place[x] = count;
    if (x >= n || s->used[x]) types[count++] = x < n ? first->types[x] : s->slots[x - n];
  }
  for (uint32_t r = 0; r < residuals; r++) in_at[r] = place[s->source[i][r]];
  for (uint32_t r = residuals; r < tangent->in_count; r++) {
    types[count] = tangent->types[r];
    in_at[r] = count++;
  }
  return ax_region_rearrange(tangent, types, count, in_at, out_from, tangent->out_count, out);
}

static ax_status build_all(const split *s, ax_status (*build)(const split *, uint32_t, ax_program **)) {
  release(s->b->made, s->b->count);
  for (uint32_t i = 0; i < s->b->count; i++) s->b->made[i] = NULL;
  for (uint32_t i = 0; i < s->b->count; i++) AX_TRY(build(s, i, &s->b->made[i]));
  return AX_OK;
}

static void bind_split(const split *s) {
  branches *b = s->b;
  const ax_jvp_args *args = s->t->args;
  uint32_t out_count = b->out_count + s->slot_count, tangents = s->t->out_count, count = 1;
  ax_value *out = ax_trace_alloc((out_count + (size_t)tangents) * sizeof out[0]);
  ax_value *in = ax_trace_alloc((1 + (size_t)b->in_count + s->slot_count + s->t->in_count) * sizeof in[0]);
  if (out == NULL || in == NULL) return;
  bind_made(build_all(s, build_primal), b, args->in, args->eqn->in_count, out, out_count);
  in[0] = args->in[0];
  for (uint32_t i = 0; i < b->in_count; i++)
    if (s->used[i]) in[count++] = args->in[i + 1];
  for (uint32_t k = 0; k < s->slot_count; k++) in[count++] = out[b->out_count + k];
  count += ax_tangents_take(s->t, in + count);
  bind_made(build_all(s, build_tangent), b, in, count, out + out_count, tangents);
  ax_tangents_give(s->t, out, out + out_count);
}

void ax_cond_linearize(const ax_jvp_args *args) {
  branches b;
  ax_tangents t;
  split s;
  if (!branches_init(&b, args->eqn) || !ax_tangents_init(&t, args) || !split_init(&s, &b, &t)) return;
  ax_status status = AX_OK;
  for (uint32_t i = 0; i < b.count && status == AX_OK; i++) status = split_branch(&s, i);
  if (status != AX_OK) ax_fail(status);
  if (!ax_failed()) bind_split(&s);
  release(b.made, b.count);
  split_deinit(&s);
}

/* --- transpose --- */

/* The branches transposed. zero[i]: operand i's cotangent is zero in all of them. */
static ax_status transpose_branches(branches *b, const bool *linear, const bool *cotangent_zero, bool *zero) {
  bool *made_zero = ax_trace_alloc(b->in_count);
  if (made_zero == NULL) return AX_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < b->in_count; i++) zero[i] = true;
  for (uint32_t k = 0; k < b->count; k++) {
    AX_TRY(ax_transpose_program(b->of->v[k], linear, cotangent_zero, made_zero, &b->made[k]));
    for (uint32_t i = 0; i < b->in_count; i++) zero[i] = zero[i] && made_zero[i];
  }
  return AX_OK;
}

/* (index, c.., ct of y..) -> (ct of x..) */
void ax_cond_transpose(const ax_transpose_args *args) {
  branches b;
  if (!branches_init(&b, args->eqn)) return;
  const bool *linear = args->linear + 1, *zero = ax_cotangents_zero(args);
  uint32_t count = 1, wanted = 0;
  ax_value *in = ax_trace_alloc((1 + (size_t)b.in_count + b.out_count) * sizeof in[0]);
  ax_value *out = ax_trace_alloc(b.in_count * sizeof out[0]);
  bool *made_zero = ax_trace_alloc(b.in_count);
  if (zero == NULL || in == NULL || out == NULL || made_zero == NULL) return;
  in[0] = args->in[0];
  for (uint32_t i = 0; i < b.in_count; i++) {
    if (!linear[i]) in[count++] = args->in[i + 1];
    wanted += linear[i];
  }
  for (uint32_t k = 0; k < b.out_count; k++)
    if (!zero[k]) in[count++] = args->cotangent[k];
  bind_made(transpose_branches(&b, linear, zero, made_zero), &b, in, count, out, wanted);
  release(b.made, b.count);
  wanted = 0;
  for (uint32_t i = 0; i < b.in_count; i++) {
    if (!linear[i]) continue;
    if (!made_zero[i]) args->out[i + 1] = out[wanted];
    wanted++;
  }
}

/* --- batch --- */

/* The branches batched, results as `want` says. */
static ax_status batch_branches(branches *b, const ax_batch_args *args, const int *want) {
  for (uint32_t i = 0; i < b->count; i++)
    AX_TRY(ax_batch_program(b->of->v[i], args->in_dim + 1, args->size, args->axis, want, NULL, &b->made[i]));
  return AX_OK;
}

/* index [size], branches' results with the batch in front -> each member's. Results of branch b are at out + b * out_count. */
static ax_value select_result(const ax_batch_args *args, const branches *b, const ax_value *out, uint32_t k) {
  ax_value result = out[k];
  ax_type type = ax_typeof(result);
  const int64_t front = 0;
  for (uint32_t i = 1; i < b->count && !ax_failed(); i++) {
    ax_value chosen = ax_ge(args->in[0], ax_full_like(args->in[0], i));
    ax_value which = ax_broadcast_in_dim(chosen, AX_LIST(type.rank, type.dims), &front);
    result = ax_select_n(which, result, out[i * b->out_count + k]);
  }
  return result;
}

static void batch_by_select(const ax_batch_args *args, branches *b, const int *want) {
  for (uint32_t i = 0; i < b->count; i++)
    if ((b->of->v[i]->effects & AX_EFFECT_MESSAGE) != 0) {
      ax_fail(ax_error(
          AX_ABSENT,
          "vmap: branch %u has messages, but each member of the batch chooses a branch of its own, and a message is of all", i));
      return;
    } else if ((b->of->v[i]->effects & AX_EFFECT_STATE) != 0) {
      ax_fail(ax_error(
          AX_ABSENT,
          "vmap: branch %u calls the host, but each member of the batch chooses a branch of its own, so that all are computed", i));
      return;
    }
  ax_value *out = ax_trace_alloc((size_t)b->count * b->out_count * sizeof out[0]);
  if (out == NULL) return;
  for (uint32_t i = 0; i < b->count && !ax_failed(); i++)
    ax_batch_call(b->of->v[i], args->in + 1, args->in_dim + 1, args->size, args->axis, want, out + i * b->out_count);
  for (uint32_t k = 0; k < b->out_count; k++) args->out[k] = select_result(args, b, out, k);
}

void ax_cond_batch(const ax_batch_args *args) {
  branches b;
  bool *batched = ax_batched_results(args);
  if (batched == NULL || !branches_init(&b, args->eqn)) return;
  int *want = ax_trace_alloc(b.out_count * sizeof want[0]);
  if (want == NULL) return;
  for (uint32_t k = 0; k < b.out_count; k++) args->out_dim[k] = want[k] = batched[k] ? 0 : -1;
  if (args->in_dim[0] >= 0)
    batch_by_select(args, &b, want);
  else
    bind_made(batch_branches(&b, args, want), &b, args->in, args->eqn->in_count, args->out, b.out_count);
  release(b.made, b.count);
}

/* --- prune --- */

ax_status ax_cond_prune(const ax_prune_args *args) {
  const ax_programs *of = &((const ax_cond_params *)args->eqn->params)->branches;
  uint32_t in_count = args->eqn->in_count - 1;
  ax_arena *arena = &args->memo->arena;
  bool *in = ax_arena_alloc(arena, in_count);
  if (in == NULL) return ax_out_of_memory(in_count);
  args->in[0] = true;
  for (uint32_t i = 0; i < in_count; i++) args->in[i + 1] = false;
  for (uint32_t b = 0; b < of->count; b++) {
    AX_TRY(ax_needs_program(args->memo, of->v[b], args->out, in));
    for (uint32_t i = 0; i < in_count; i++) args->in[i + 1] = args->in[i + 1] || in[i];
  }
  if (args->params == NULL) return AX_OK;
  ax_programs made = {of->count, ax_arena_alloc(arena, of->count * sizeof made.v[0])};
  ax_status status = made.v != NULL ? AX_OK : ax_out_of_memory(of->count * sizeof made.v[0]);
  for (uint32_t b = 0; b < of->count && status == AX_OK; b++)
    status = ax_prune_program(args->memo, of->v[b], args->out, args->in + 1, &made.v[b]);
  if (status == AX_OK) *(ax_cond_params *)args->params = (ax_cond_params){made};
  else release(made.v, of->count);
  return status;
}
