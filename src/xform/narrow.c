/* Narrowing: what is computed of an array, where nothing but a part of it is read. Of f(x)[0] one row is computed, of (h @ W)[:, -1] one
   product of a vector; x is sliced instead.

   One walk backward finds of each value the least box that holds all that is read of it, as long as slices read it. An equation whose
   results are read by a half or less computes a box of them: what its operands' boxes are follows from how dimensions go together, which
   its `shard` rule says, and the equation on boxes is what its `block` rule makes of blocks, if it has one. Then the program is built
   again. Calls get a body that computes the boxes, made once for each set of them; in other programs that equations hold, all results
   are computed whole. Arrays that are a program's own inputs and results stay as they are.

   Elements are computed as before, but a product's may be added up in another order, as a smaller product's are. */
#include "xform/narrow.h"

#include "axle/ops.h"
#include "ir/prim.h"
#include "ir/program.h"
#include "prim/prims.h"
#include "xform/xform.h"

static const ax_box whole; /* its address alone counts */

/* An equation that computes boxes, or its one program on boxes. */
typedef struct narrowed {
  const ax_box **in, **out; /* by operand, and by result; `whole` */
  ax_box *boxes;            /* by operand, of one with a rule `part` */
  void *params;             /* of one that holds programs */
  bool dropped;             /* nothing is read of it */
} narrowed;

typedef struct narrowing {
  const ax_program *program;
  ax_memo *memo;
  ax_arena arena;
  const ax_box **read; /* by value: what is read of it; NULL: nothing yet; `whole` */
  narrowed *left;      /* by equation; in NULL: it stays as it is */
  bool inputs_too;     /* inputs become what is read of them */
  bool changed;
} narrowing;

/* --- Boxes --- */

static bool is_part(const ax_box *b) { return b != NULL && b != &whole; }

static bool fills(const ax_box *b, const ax_type *type) {
  for (uint32_t d = 0; d < type->rank; d++)
    if (b->low[d] > 0 || b->high[d] < type->dims[d]) return false;
  return true;
}

static ax_type type_of(const ax_box *b, const ax_type *type) {
  ax_type out = *type;
  for (uint32_t d = 0; is_part(b) && d < type->rank; d++) out.dims[d] = b->high[d] - b->low[d];
  return out;
}

/* Whether it is so small a part that computing it alone is worth a slice. */
static bool pays(const ax_box *b, const ax_type *type) {
  enum { worth = 2 };
  const ax_type part = type_of(b, type);
  return worth * (double)ax_type_elems(&part) <= (double)ax_type_elems(type);
}

/* Adds to what is read of a value. */
static ax_status reads(narrowing *n, uint32_t id, const ax_box *b) {
  const ax_type *type = &n->program->types[id];
  const ax_box *before = n->read[id];
  if (before == &whole) return AX_OK;
  if (!is_part(b) || type->form != AX_ARRAY || fills(b, type) || ax_type_elems(type) == 0) {
    n->read[id] = &whole;
    return AX_OK;
  }
  ax_box *both = ax_arena_copy(&n->arena, b, sizeof *b);
  if (both == NULL) return ax_out_of_memory(sizeof *both);
  for (uint32_t d = 0; before != NULL && d < type->rank; d++) {
    if (before->low[d] < both->low[d]) both->low[d] = before->low[d];
    if (before->high[d] > both->high[d]) both->high[d] = before->high[d];
  }
  n->read[id] = fills(both, type) ? &whole : both;
  return AX_OK;
}

static ax_status reads_all(narrowing *n, const ax_eqn *eqn) {
  for (uint32_t j = 0; j < eqn->in_count; j++) AX_TRY(reads(n, eqn->in[j], &whole));
  return AX_OK;
}

static ax_status narrowed_init(narrowing *n, const ax_eqn *eqn, narrowed *out) {
  out->in = ax_arena_alloc(&n->arena, (eqn->in_count + (size_t)1) * sizeof out->in[0]);
  out->out = ax_arena_alloc(&n->arena, (eqn->out_count + (size_t)1) * sizeof out->out[0]);
  if (out->in == NULL || out->out == NULL) return ax_out_of_memory(eqn->in_count * sizeof out->in[0]);
  for (uint32_t j = 0; j < eqn->in_count; j++) out->in[j] = &whole;
  for (uint32_t k = 0; k < eqn->out_count; k++) out->out[k] = &whole;
  return AX_OK;
}

/* --- Equations whose results' places count --- */

static bool is_empty(const ax_box *b, const ax_type *type) {
  for (uint32_t d = 0; d < type->rank; d++)
    if (b->high[d] <= b->low[d]) return true;
  return false;
}

/* What is read of a value, as numbers. */
static ax_box numbered(const ax_box *b, const ax_type *type) {
  if (is_part(b)) return *b;
  ax_box all = {0};
  for (uint32_t d = 0; d < type->rank; d++) all.high[d] = type->dims[d];
  return all;
}

/* Asks the rule. *in: by operand, boxes; the rule's answer otherwise. */
static ax_status ask_part(narrowing *n, const ax_eqn *eqn, const ax_box *b, ax_box **in, bool *has) {
  const ax_type *types = n->program->types;
  *in = ax_arena_alloc(&n->arena, (eqn->in_count + (size_t)1) * sizeof **in);
  if (*in == NULL) return ax_out_of_memory(eqn->in_count * sizeof **in);
  for (uint32_t j = 0; j < eqn->in_count; j++) (*in)[j] = numbered(&whole, &types[eqn->in[j]]);
  *has = eqn->prim->part(&(ax_part_args){.eqn = eqn, .types = types, .box = b, .in = *in});
  return AX_OK;
}

/* A slice's operand is read as the slice says, whatever is read of the slice. */
static ax_status narrow_placed(narrowing *n, uint32_t i) {
  const ax_eqn *eqn = &n->program->eqns[i];
  const ax_type *types = n->program->types, *y = &types[eqn->out];
  const ax_box *read = n->read[eqn->out];
  const bool slices = eqn->prim == &ax_prim_slice;
  ax_box b = numbered(read, y), *in;
  bool has = false;
  if (read == NULL || is_empty(&b, y) || (!slices && !(is_part(read) && pays(&b, y)))) return reads_all(n, eqn);
  AX_TRY(ask_part(n, eqn, &b, &in, &has));
  if (!has) return reads_all(n, eqn);
  AX_TRY(narrowed_init(n, eqn, &n->left[i]));
  n->left[i].out[0] = read;
  n->left[i].boxes = in;
  n->changed = n->changed || is_part(read);
  for (uint32_t j = 0; j < eqn->in_count; j++) {
    n->left[i].in[j] = &in[j];
    if (!is_empty(&in[j], &types[eqn->in[j]])) AX_TRY(reads(n, eqn->in[j], &in[j]));
  }
  return AX_OK;
}

/* --- Equations without programs --- */

/* By factor: the indices that are computed. */
typedef struct ranges {
  ax_factors factors;
  ax_factored *in, *out;
  int64_t low[AX_MAX_FACTORS], high[AX_MAX_FACTORS];
  bool placed[AX_MAX_FACTORS]; /* an operand has it */
} ranges;

/* Whether the dimension is the product of its factors. What is left over between two shapes has none. */
static bool is_factored(const ranges *r, const ax_factored *at, const ax_type *type, uint32_t d) {
  int64_t size = 1;
  for (uint32_t i = 0; i < at->count[d]; i++) size *= r->factors.size[at->factor[d][i]];
  return at->count[d] > 0 && size == type->dims[d];
}

static int64_t inner_of(const ranges *r, const ax_factored *at, uint32_t d) {
  int64_t inner = 1;
  for (uint32_t i = 1; i < at->count[d]; i++) inner *= r->factors.size[at->factor[d][i]];
  return inner;
}

static void take(ranges *r, const ax_factored *at, const ax_type *type, const ax_box *b) {
  for (uint32_t d = 0; d < type->rank; d++) {
    for (uint32_t i = 0; i < at->count[d]; i++) {
      const uint32_t f = at->factor[d][i];
      const int64_t inner = inner_of(r, at, d), low = i > 0 || !is_part(b) ? 0 : b->low[d] / inner,
                    high = i > 0 || !is_part(b) ? r->factors.size[f] : (b->high[d] + inner - 1) / inner;
      if (low < r->low[f]) r->low[f] = low;
      if (high > r->high[f]) r->high[f] = high;
    }
  }
}

static void release(ranges *r, uint32_t f) {
  r->low[f] = 0;
  r->high[f] = r->factors.size[f];
}

/* Factors that are no dimension's first one, that windows go over, or that with others make no dimension, are whole. */
static void check(ranges *r, const ax_factored *at, const ax_type *type, bool is_operand) {
  for (uint32_t d = 0; d < type->rank; d++) {
    const bool ends = is_factored(r, at, type, d) && (at->reached >> d & 1) == 0;
    for (uint32_t i = 0; i < at->count[d]; i++) {
      if (i > 0 || !ends) release(r, at->factor[d][i]);
      if (is_operand) r->placed[at->factor[d][i]] = true;
    }
  }
}

static const ax_box *box_of(narrowing *n, const ranges *r, const ax_factored *at, const ax_type *type) {
  ax_box *b = ax_arena_alloc(&n->arena, sizeof *b);
  if (b == NULL) return NULL;
  for (uint32_t d = 0; d < type->rank; d++) {
    const bool factored = is_factored(r, at, type, d);
    const int64_t inner = inner_of(r, at, d);
    b->low[d] = factored ? r->low[at->factor[d][0]] * inner : 0;
    b->high[d] = factored ? r->high[at->factor[d][0]] * inner : type->dims[d];
  }
  return fills(b, type) ? &whole : b;
}

/* A result's dimension that no operand has: of a broadcast any part is the same; others (counting, random numbers) compute by index. */
static bool may_narrow(const ranges *r, const ax_eqn *eqn, uint32_t f) {
  return r->factors.kind[f] == AX_FACTOR_ALONG && r->factors.exchanged[f] == 0 && (r->placed[f] || eqn->prim == &ax_prim_broadcast_in_dim);
}

static ax_status find_ranges(narrowing *n, const ax_eqn *eqn, ranges *r) {
  const ax_type *types = n->program->types;
  r->in = ax_arena_alloc(&n->arena, (eqn->in_count + (size_t)1) * sizeof r->in[0]);
  r->out = ax_arena_alloc(&n->arena, (eqn->out_count + (size_t)1) * sizeof r->out[0]);
  if (r->in == NULL || r->out == NULL) return ax_out_of_memory(eqn->in_count * sizeof r->in[0]);
  eqn->prim->shard(&(ax_shard_args){eqn, types, &r->factors, r->in, r->out});
  for (uint32_t f = 0; f < r->factors.count; f++) r->low[f] = r->factors.size[f];
  for (uint32_t k = 0; k < eqn->out_count; k++)
    if (n->read[eqn->out + k] != NULL) take(r, &r->out[k], &types[eqn->out + k], n->read[eqn->out + k]);
  for (uint32_t j = 0; j < eqn->in_count; j++) check(r, &r->in[j], &types[eqn->in[j]], true);
  for (uint32_t k = 0; k < eqn->out_count; k++) check(r, &r->out[k], &types[eqn->out + k], false);
  for (uint32_t f = 0; f < r->factors.count; f++)
    if (!may_narrow(r, eqn, f) || r->high[f] <= r->low[f]) release(r, f);
  return AX_OK;
}

/* Of arrays that have elements. Blocks that depend on where they lie have factors that are exchanged, reached, or in no operand; but not
   all rules of blocks are made for boxes, so those that are stand here. */
static bool has_boxes(const ax_eqn *eqn, const ax_type *types) {
  static const ax_prim *const with_sizes[] = {&ax_prim_broadcast_in_dim, &ax_prim_reshape};
  if (eqn->prim->kind != AX_LOCAL || ax_eqn_effects(eqn) != 0 || eqn->in_count == 0) return false;
  for (uint32_t j = 0; j < eqn->in_count; j++)
    if (types[eqn->in[j]].form != AX_ARRAY || ax_type_elems(&types[eqn->in[j]]) == 0) return false;
  if (eqn->prim->block == NULL) return true;
  for (size_t i = 0; i < AX_COUNT(with_sizes); i++)
    if (eqn->prim == with_sizes[i]) return true;
  return false;
}

static ax_status narrow_local(narrowing *n, uint32_t i) {
  const ax_eqn *eqn = &n->program->eqns[i];
  const ax_type *types = n->program->types;
  bool part = false, less = true;
  ranges r = {.factors = {0}};
  for (uint32_t k = 0; k < eqn->out_count; k++) part = part || is_part(n->read[eqn->out + k]);
  if (!part || !has_boxes(eqn, types)) return reads_all(n, eqn);
  AX_TRY(find_ranges(n, eqn, &r));
  narrowed made = {0};
  AX_TRY(narrowed_init(n, eqn, &made));
  for (uint32_t k = 0; k < eqn->out_count; k++) {
    const ax_type *type = &types[eqn->out + k];
    if ((made.out[k] = box_of(n, &r, &r.out[k], type)) == NULL) return ax_out_of_memory(sizeof(ax_box));
    less = less && is_part(made.out[k]) && pays(made.out[k], type);
  }
  if (!less) return reads_all(n, eqn);
  for (uint32_t j = 0; j < eqn->in_count; j++) {
    if ((made.in[j] = box_of(n, &r, &r.in[j], &types[eqn->in[j]])) == NULL) return ax_out_of_memory(sizeof(ax_box));
    AX_TRY(reads(n, eqn->in[j], made.in[j]));
  }
  n->left[i] = made;
  n->changed = true;
  return AX_OK;
}

/* --- Equations with programs --- */

static ax_status narrow_program(ax_memo *memo, const ax_program *program, bool inputs_too, const ax_box *const *outs, ax_program **made,
                                const ax_box *const **ins);

/* The question to a program, with what is read of its results; outs NULL: all. */
static ax_status ask_nested(narrowing *n, const ax_program *program, bool inputs_too, const ax_box *const *outs, ax_memo_entry **entry) {
  ax_text key = {0};
  ax_text_add_bytes(&key, (const char *)&inputs_too, sizeof inputs_too);
  for (uint32_t k = 0; outs != NULL && k < program->out_count; k++) {
    const bool part = is_part(outs[k]);
    ax_text_add_bytes(&key, (const char *)&part, sizeof part);
    if (part) ax_text_add_bytes(&key, (const char *)outs[k], sizeof *outs[k]);
  }
  *entry = key.failed ? NULL : ax_memo_ask(n->memo, "narrow", program, key.data, key.length);
  ax_text_deinit(&key);
  return *entry != NULL ? AX_OK : ax_out_of_memory(0);
}

/* Answers it, once for each: a program, and what is read of its inputs. */
static ax_status answer_nested(narrowing *n, ax_memo_entry *entry, bool inputs_too, const ax_box *const *outs) {
  const ax_box *const *found = NULL;
  if (entry->known) return AX_OK;
  AX_TRY(narrow_program(n->memo, entry->program, inputs_too, outs, &entry->made[0], &found));
  entry->data = (void *)(uintptr_t)found;
  entry->known = true;
  return AX_OK;
}

/* A call of one program, whose operands and results are those of the program. */
static bool is_call(const ax_eqn *eqn) {
  const ax_program *body = ax_eqn_program(eqn, 0);
  return body != NULL && eqn->prim == &ax_prim_closed_call && ax_eqn_effects(eqn) == 0;
}

/* Whether one more body may be made of a program: for a few boxes, since a body of calls would be made for each box of each. */
static ax_status may_make_body(narrowing *n, const ax_program *body, bool *may) {
  enum { most_bodies = 8 };
  ax_memo_entry *made = ax_memo_ask(n->memo, "narrowed", body, NULL, 0);
  if (made == NULL) return ax_out_of_memory(sizeof *made);
  *may = made->count < most_bodies;
  made->count += *may;
  return AX_OK;
}

static ax_status narrow_call(narrowing *n, uint32_t i, narrowed *made) {
  const ax_eqn *eqn = &n->program->eqns[i];
  ax_program **body = ax_params_program(eqn->prim, made->params, 0);
  ax_memo_entry *entry;
  bool any = false, may = true;
  for (uint32_t k = 0; k < eqn->out_count; k++) {
    const ax_box *read = n->read[eqn->out + k];
    if (!is_part(read) || !pays(read, &n->program->types[eqn->out + k])) continue;
    made->out[k] = read;
    any = true;
  }
  AX_TRY(ask_nested(n, *body, true, made->out, &entry));
  if (any && !entry->known) AX_TRY(may_make_body(n, *body, &may));
  if (!may) {
    for (uint32_t k = 0; k < eqn->out_count; k++) made->out[k] = &whole;
    AX_TRY(ask_nested(n, *body, true, made->out, &entry));
  }
  AX_TRY(answer_nested(n, entry, true, made->out));
  *body = entry->made[0];
  const ax_box *const *ins = entry->data;
  for (uint32_t j = 0; j < eqn->in_count; j++) {
    made->in[j] = ins[j];
    AX_TRY(reads(n, eqn->in[j], made->in[j]));
  }
  return AX_OK;
}

static ax_status narrow_others(narrowing *n, uint32_t i, narrowed *made) {
  const ax_eqn *eqn = &n->program->eqns[i];
  ax_program **nested;
  for (uint32_t k = 0; (nested = ax_params_program(eqn->prim, made->params, k)) != NULL; k++) {
    ax_memo_entry *entry;
    AX_TRY(ask_nested(n, *nested, false, NULL, &entry));
    AX_TRY(answer_nested(n, entry, false, NULL));
    *nested = entry->made[0];
  }
  return reads_all(n, eqn);
}

static ax_status narrow_region(narrowing *n, uint32_t i) {
  const ax_eqn *eqn = &n->program->eqns[i];
  narrowed made = {.params = ax_eqn_own_params(eqn, &n->arena)};
  if (made.params == NULL) return ax_out_of_memory(eqn->prim->params_bytes);
  AX_TRY(narrowed_init(n, eqn, &made));
  AX_TRY(is_call(eqn) ? narrow_call(n, i, &made) : narrow_others(n, i, &made));
  const ax_eqn now = {.prim = eqn->prim, .params = made.params};
  bool changed = false;
  for (uint32_t k = 0; ax_eqn_program(eqn, k) != NULL; k++) changed = changed || ax_eqn_program(eqn, k) != ax_eqn_program(&now, k);
  n->changed = n->changed || changed;
  n->left[i] = made;
  return AX_OK;
}

/* --- The walk backward, and the program that is left --- */

static bool is_unread(const narrowing *n, const ax_eqn *eqn) {
  bool read = eqn->out_count == 0 || ax_eqn_effects(eqn) != 0;
  for (uint32_t k = 0; k < eqn->out_count; k++) read = read || n->read[eqn->out + k] != NULL;
  return !read;
}

static ax_status backward(narrowing *n, const ax_box *const *outs) {
  const ax_program *program = n->program;
  for (uint32_t k = 0; k < program->out_count; k++) AX_TRY(reads(n, program->outs[k], outs != NULL ? outs[k] : &whole));
  for (uint32_t i = program->eqn_count; i-- > 0;) {
    const ax_eqn *eqn = &program->eqns[i];
    n->left[i].dropped = is_unread(n, eqn);
    n->changed = n->changed || n->left[i].dropped;
    if (n->left[i].dropped) continue;
    if (ax_eqn_program(eqn, 0) != NULL) AX_TRY(narrow_region(n, i));
    else if (eqn->prim->part != NULL) AX_TRY(narrow_placed(n, i));
    else AX_TRY(narrow_local(n, i));
  }
  return AX_OK;
}

/* The box of a value, of which `map` has what is computed. */
static ax_value part_of(const narrowing *n, const ax_value *map, const ax_box **computed, uint32_t id, const ax_box *b) {
  const ax_type *type = &n->program->types[id];
  int64_t start[AX_MAX_RANK], limit[AX_MAX_RANK];
  if (!is_part(b)) return map[id];
  if (is_empty(b, type)) return ax_poison; /* which nobody looks at */
  const ax_box has = numbered(computed[id], type);
  bool all = true;
  for (uint32_t d = 0; d < type->rank; d++) {
    start[d] = b->low[d] - has.low[d];
    limit[d] = b->high[d] - has.low[d];
    all = all && start[d] == 0 && b->high[d] == has.high[d];
  }
  return all ? map[id] : ax_slice(map[id], start, limit, NULL);
}

static void emit_local(const narrowing *n, const ax_eqn *eqn, const narrowed *left, const ax_value *in, ax_value *map) {
  static const ax_spec uncut;
  const ax_type *types = n->program->types, made = type_of(left->out[0], &types[eqn->out]);
  const ax_box b = numbered(left->out[0], &types[eqn->out]);
  const uint32_t reached = 0;
  if (eqn->prim->part != NULL) eqn->prim->part(&(ax_part_args){eqn, types, &b, left->boxes, in, map + eqn->out});
  else if (eqn->prim->block == NULL) ax_emit(eqn->prim, eqn->params, in, eqn->in_count, map + eqn->out, eqn->out_count);
  else eqn->prim->block(&(ax_block_args){eqn, in, &reached, types, &made, &uncut, &uncut, map + eqn->out}); /* of one operand */
}

static void emit_left(const narrowing *n, const ax_eqn *eqn, const narrowed *left, ax_value *map, ax_value *in, const ax_box **computed) {
  const bool stays = left->in == NULL;
  for (uint32_t k = 0; !stays && k < eqn->out_count; k++) computed[eqn->out + k] = left->out[k];
  for (uint32_t j = 0; j < eqn->in_count; j++) in[j] = stays ? map[eqn->in[j]] : part_of(n, map, computed, eqn->in[j], left->in[j]);
  if (stays) ax_emit(eqn->prim, eqn->params, in, eqn->in_count, map + eqn->out, eqn->out_count);
  else if (left->params != NULL) ax_emit(eqn->prim, left->params, in, eqn->in_count, map + eqn->out, eqn->out_count);
  else emit_local(n, eqn, left, in, map);
}

static ax_status rebuild(narrowing *n, const ax_box *const *out_boxes, ax_program **out) {
  const ax_program *program = n->program;
  ax_value *map = ax_arena_alloc(&n->arena, program->value_count * sizeof map[0]);
  ax_value *in = ax_arena_alloc(&n->arena, ax_most_operands(program) * sizeof in[0]);
  ax_value *outs = ax_arena_alloc(&n->arena, program->out_count * sizeof outs[0]);
  const ax_box **computed = ax_arena_alloc(&n->arena, program->value_count * sizeof computed[0]);
  if (map == NULL || in == NULL || outs == NULL || computed == NULL) return ax_out_of_memory(program->value_count * sizeof map[0]);
  ax_builder builder;
  ax_builder_begin(&builder, &program->axes);
  for (uint32_t i = 0; i < program->in_count; i++) {
    computed[i] = n->inputs_too ? n->read[i] : &whole;
    const ax_type type = type_of(computed[i], &program->types[i]);
    map[i] = ax_builder_input(&builder, &type);
  }
  for (uint32_t i = 0; i < program->eqn_count && !ax_failed(); i++) {
    if (n->left[i].dropped) continue;
    ax_builder_stem(&builder, &program->eqns[i]);
    emit_left(n, &program->eqns[i], &n->left[i], map, in, computed);
  }
  for (uint32_t k = 0; k < program->out_count && !ax_failed(); k++)
    outs[k] = part_of(n, map, computed, program->outs[k], out_boxes != NULL ? out_boxes[k] : &whole);
  return ax_builder_finish(&builder, outs, program->out_count, out, NULL, NULL);
}

static ax_status keep_inputs(const narrowing *n, const ax_box *const **ins) {
  const ax_program *program = n->program;
  const ax_box **kept = ax_arena_alloc(&n->memo->arena, (program->in_count + (size_t)1) * sizeof kept[0]);
  if (kept == NULL) return ax_out_of_memory(program->in_count * sizeof kept[0]);
  for (uint32_t i = 0; i < program->in_count; i++) {
    kept[i] = n->inputs_too && is_part(n->read[i]) ? ax_arena_copy(&n->memo->arena, n->read[i], sizeof *n->read[i]) : &whole;
    if (kept[i] == NULL) return ax_out_of_memory(sizeof *kept[i]);
  }
  *ins = kept;
  return AX_OK;
}

static ax_status narrow_program(ax_memo *memo, const ax_program *program, bool inputs_too, const ax_box *const *outs, ax_program **made,
                                const ax_box *const **ins) {
  narrowing n = {.program = program, .memo = memo, .inputs_too = inputs_too};
  *made = NULL;
  n.read = ax_arena_alloc(&n.arena, program->value_count * sizeof n.read[0]);
  n.left = ax_arena_alloc(&n.arena, program->eqn_count * sizeof n.left[0]);
  ax_status status = n.read != NULL && n.left != NULL ? backward(&n, outs) : ax_out_of_memory(program->value_count * sizeof n.read[0]);
  for (uint32_t i = 0; status == AX_OK && inputs_too && i < program->in_count; i++) {
    if (n.read[i] == NULL) n.read[i] = &whole;
    n.changed = n.changed || is_part(n.read[i]);
  }
  for (uint32_t k = 0; status == AX_OK && outs != NULL && k < program->out_count; k++) n.changed = n.changed || is_part(outs[k]);
  if (status == AX_OK) status = keep_inputs(&n, ins);
  if (status == AX_OK && n.changed) status = rebuild(&n, outs, made);
  else if (status == AX_OK) *made = ax_program_retain((ax_program *)program);
  ax_arena_deinit(&n.arena);
  return status;
}

ax_status ax_program_narrow(const ax_program *program, ax_program **out) {
  const ax_box *const *ins;
  ax_memo memo = {0};
  *out = NULL;
  AX_TRY(ax_require(program, "program"));
  const ax_status status = narrow_program(&memo, program, false, NULL, out, &ins);
  ax_memo_deinit(&memo);
  return ax_verified(status, out);
}
