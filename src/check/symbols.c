/* Each number is a sum of other numbers with factors, and a constant, modulo 2^bits of its dtype:

       3 x + y - 1        terms (x, 3) (y, 1), constant -1

   So no addition, subtraction or product with a constant has to be watched for overflow: integers wrap. Beside this sum each number
   has bounds that its value keeps, whatever the inputs. A number that is no such sum is a *name*: its key says what it was made of. Equal
   keys are one number, so that two cores which compute the same index from the same table have the same number. */
#include "check/symbols.h"

#include <string.h>

#include "base/table.h"
#include "ir/dtype.h"
#include "prim/prims.h"

enum { most_terms = AX_SYMBOLS_TERMS / 2 };

typedef struct number {
  ax_dtype dtype;
  bool named;
  uint32_t first, words; /* its key, in the pool: of a sum the constant, then pairs of a number and a factor */
  ax_interval range;
} number;

struct ax_symbols {
  number *numbers;
  uint64_t *pool;
  ax_table table; /* of these, by dtype, kind and key */
  uint32_t count, capacity, pool_count, pool_capacity;
  uint64_t serial;
};

typedef struct sum {
  int64_t constant;
  uint32_t count;
  struct term {
    uint32_t number;
    uint64_t factor;
  } terms[2 * most_terms];
} sum;

/* --- The table --- */

ax_status ax_symbols_create(ax_symbols **out) {
  *out = ax_calloc(1, sizeof **out);
  return *out != NULL ? AX_OK : ax_out_of_memory(sizeof **out);
}

void ax_symbols_release(ax_symbols *s) {
  if (s == NULL) return;
  ax_free(s->numbers);
  ax_free(s->pool);
  ax_table_deinit(&s->table);
  ax_free(s);
}

static uint64_t hash_of(const number *n, const uint64_t *key) {
  return ax_hash_bytes(ax_hash_word(AX_HASH_SEED, (uint64_t)n->dtype << 1 | n->named), key, n->words * sizeof key[0]);
}

typedef struct wanted {
  const number *number;
  const uint64_t *key;
} wanted;

static bool is_same(const void *symbols, uint32_t id, const void *sought) {
  const ax_symbols *s = symbols;
  const wanted *w = sought;
  const number *m = &s->numbers[id], *n = w->number;
  return m->dtype == n->dtype && m->named == n->named && m->words == n->words &&
         (n->words == 0 || memcmp(s->pool + m->first, w->key, n->words * sizeof w->key[0]) == 0);
}

static uint32_t *slot_of(const ax_symbols *s, const number *n, const uint64_t *key) {
  return ax_table_slot(&s->table, hash_of(n, key), is_same, s, &(wanted){n, key});
}

/* Finds the number, or adds it. Bounds that were found in two ways both hold. */
static ax_status intern(ax_symbols *s, number n, const uint64_t *key, uint32_t *out) {
  bool emptied;
  AX_TRY(ax_table_room(&s->table, s->count, &emptied));
  for (uint32_t id = 0; emptied && id < s->count; id++) *slot_of(s, &s->numbers[id], s->pool + s->numbers[id].first) = id + 1;
  uint32_t *slot = slot_of(s, &n, key);
  if (*slot != 0) {
    ax_interval *range = &s->numbers[*slot - 1].range;
    if (n.range.low > range->low) range->low = n.range.low;
    if (n.range.high < range->high) range->high = n.range.high;
    *out = *slot - 1;
    return AX_OK;
  }
  AX_TRY(ax_grow(&s->numbers, sizeof s->numbers[0], s->count, 1, &s->capacity));
  AX_TRY(ax_grow(&s->pool, sizeof s->pool[0], s->pool_count, n.words, &s->pool_capacity));
  n.first = s->pool_count;
  if (n.words > 0) memcpy(s->pool + n.first, key, n.words * sizeof key[0]);
  s->pool_count += n.words;
  s->numbers[s->count] = n;
  *out = s->count;
  *slot = ++s->count;
  return AX_OK;
}

ax_interval ax_symbols_range(const ax_symbols *s, uint32_t id) { return s->numbers[id].range; }
ax_dtype ax_symbols_dtype(const ax_symbols *s, uint32_t id) { return s->numbers[id].dtype; }

ax_status ax_symbols_named(ax_symbols *s, ax_dtype dtype, ax_interval range, uint32_t count, const uint64_t *key, uint32_t *out) {
  if (ax_interval_is_one(range)) return ax_symbols_constant(s, dtype, range.low, out);
  return intern(s, (number){.dtype = dtype, .named = true, .words = count, .range = range}, key, out);
}

uint64_t ax_symbols_serial(ax_symbols *s) { return ++s->serial; }

ax_status ax_symbols_fresh(ax_symbols *s, ax_dtype dtype, ax_interval range, uint32_t *out) {
  const uint64_t key[] = {AX_SYMBOL_FRESH, ax_symbols_serial(s)};
  return ax_symbols_named(s, dtype, range, AX_COUNT(key), key, out);
}

/* --- Sums --- */

/* The number of the dtype that is equal to this one modulo 2^bits. */
static int64_t wrapped(ax_dtype dtype, uint64_t bits) {
  const ax_dtype_info *info = ax_dtype_get(dtype);
  const uint32_t above = 64 - info->bits;
  if (info->kind == AX_KIND_SIGNED) return (int64_t)(bits << above) >> above;
  return (int64_t)(bits << above >> above);
}

ax_status ax_symbols_constant(ax_symbols *s, ax_dtype dtype, int64_t value, uint32_t *out) {
  value = wrapped(dtype, (uint64_t)value);
  const uint64_t key[] = {(uint64_t)value};
  return intern(s, (number){.dtype = dtype, .words = 1, .range = {value, value}}, key, out);
}

static sum sum_of(const ax_symbols *s, uint32_t id) {
  const number *n = &s->numbers[id];
  sum out = {.count = 1, .terms = {{id, 1}}};
  if (n->named) return out;
  const uint64_t *key = s->pool + n->first;
  out = (sum){.constant = (int64_t)key[0], .count = (n->words - 1) / 2};
  for (uint32_t k = 0; k < out.count; k++) out.terms[k] = (struct term){(uint32_t)key[1 + 2 * k], key[2 + 2 * k]};
  return out;
}

/* a + factor b; terms are ascending. The room suffices: each has most_terms at most. */
static sum add_sums(const sum *a, const sum *b, uint64_t factor) {
  sum out = {.constant = (int64_t)((uint64_t)a->constant + factor * (uint64_t)b->constant)};
  for (uint32_t i = 0, k = 0; i < a->count || k < b->count;) {
    const bool left = i < a->count && (k == b->count || a->terms[i].number <= b->terms[k].number);
    const bool right = k < b->count && (i == a->count || b->terms[k].number <= a->terms[i].number);
    struct term t = {left ? a->terms[i].number : b->terms[k].number, 0};
    if (left) t.factor += a->terms[i++].factor;
    if (right) t.factor += factor * b->terms[k++].factor;
    out.terms[out.count++] = t;
  }
  return out;
}

/* The number that a sum is. A single term alone is that number, where it has the dtype. AX_NONE: there are too many terms. */
static ax_status number_of(ax_symbols *s, const sum *made, ax_dtype dtype, ax_interval range, uint32_t *out) {
  uint64_t key[1 + 2 * most_terms] = {(uint64_t)wrapped(dtype, (uint64_t)made->constant)};
  uint32_t words = 1;
  *out = AX_NONE;
  for (uint32_t k = 0; k < made->count; k++) {
    const uint64_t factor = (uint64_t)wrapped(dtype, made->terms[k].factor);
    if (factor == 0) continue;
    if (words == AX_COUNT(key)) return AX_OK;
    key[words++] = made->terms[k].number;
    key[words++] = factor;
  }
  if (words == 1) return ax_symbols_constant(s, dtype, (int64_t)key[0], out);
  if (ax_interval_is_one(range)) return ax_symbols_constant(s, dtype, range.low, out);
  if (words == 3 && key[0] == 0 && key[2] == 1 && s->numbers[key[1]].dtype == dtype) {
    *out = (uint32_t)key[1];
    return AX_OK;
  }
  return intern(s, (number){.dtype = dtype, .words = words, .range = range}, key, out);
}

ax_status ax_symbols_split(ax_symbols *s, uint32_t id, uint32_t *part, int64_t *constant) {
  sum made = sum_of(s, id);
  const ax_dtype dtype = s->numbers[id].dtype;
  *part = id;
  *constant = 0;
  const int64_t near = (int64_t)1 << 30;
  if (made.constant <= -near || made.constant >= near || made.constant == 0) return AX_OK;
  *constant = made.constant;
  made.constant = 0;
  return number_of(s, &made, dtype, ax_interval_of_dtype(dtype), part);
}

/* The number nearest to 0 that is equal to this one modulo 2^bits. */
static int64_t nearest(ax_dtype dtype, uint64_t bits) {
  const uint32_t above = 64 - ax_dtype_get(dtype)->bits;
  return (int64_t)(bits << above) >> above;
}

void ax_symbols_sum(const ax_symbols *s, uint32_t id, ax_symbols_terms *out) {
  const sum made = sum_of(s, id);
  const ax_dtype dtype = s->numbers[id].dtype;
  *out = (ax_symbols_terms){.constant = nearest(dtype, (uint64_t)made.constant), .count = made.count};
  for (uint32_t k = 0; k < made.count; k++) {
    out->number[k] = made.terms[k].number;
    out->factor[k] = nearest(dtype, made.terms[k].factor);
  }
}

void ax_symbols_multiple(const ax_symbols *s, uint32_t id, uint32_t *bits, int64_t *rest) {
  const sum made = sum_of(s, id);
  uint32_t most = ax_dtype_get(s->numbers[id].dtype)->bits;
  uint64_t factors = 0;
  if (most > 30) most = 30;
  for (uint32_t k = 0; k < made.count; k++) factors |= made.terms[k].factor;
  *bits = 0;
  while (*bits < most && (factors >> *bits & 1) == 0) ++*bits;
  *rest = (int64_t)((uint64_t)made.constant & (((uint64_t)1 << *bits) - 1));
}

const ax_prim *ax_symbols_maker(const ax_symbols *s, uint32_t id, uint32_t in[2]) {
  const number *n = &s->numbers[id];
  const uint64_t *key = s->pool + n->first;
  in[0] = in[1] = AX_NONE;
  if (!n->named && n->words == 3 && key[0] == 0 && key[2] == 1) { /* another number, in this dtype */
    in[0] = (uint32_t)key[1];
    return &ax_prim_convert_element_type;
  }
  if (!n->named || n->words < 4 || n->words > 5 || key[0] != AX_SYMBOL_MADE) return NULL;
  for (uint32_t i = 0; 3 + i < n->words; i++) in[i] = (uint32_t)key[3 + i];
  return (const ax_prim *)(uintptr_t)key[1];
}

/* --- Equations --- */

static bool is_constant(const ax_symbols *s, uint32_t id) { return ax_interval_is_one(s->numbers[id].range); }

/* Sums, differences, products with constants, and integers of another width: sums of terms. AX_NONE: it is none of these. */
static ax_status linear(ax_symbols *s, const ax_eqn *eqn, const uint32_t *in, ax_dtype dtype, ax_interval range, uint32_t *out) {
  const ax_prim *prim = eqn->prim;
  const sum a = sum_of(s, in[0]), zero = {0};
  sum made;
  *out = AX_NONE;
  if (dtype == AX_BOOL) return AX_OK;
  if (prim == &ax_prim_add || prim == &ax_prim_sub) {
    const sum b = sum_of(s, in[1]);
    made = add_sums(&a, &b, prim == &ax_prim_add ? 1 : UINT64_MAX);
  } else if (prim == &ax_prim_neg) {
    made = add_sums(&zero, &a, UINT64_MAX);
  } else if (prim == &ax_prim_mul && is_constant(s, in[1])) {
    made = add_sums(&zero, &a, (uint64_t)s->numbers[in[1]].range.low);
  } else if (prim == &ax_prim_mul && is_constant(s, in[0])) {
    const sum b = sum_of(s, in[1]);
    made = add_sums(&zero, &b, (uint64_t)s->numbers[in[0]].range.low);
  } else if (prim == &ax_prim_convert_element_type) {
    const ax_dtype from = s->numbers[in[0]].dtype;
    made = ax_dtype_get(from)->bits >= ax_dtype_get(dtype)->bits ? a : (sum){.count = 1, .terms = {{in[0], 1}}};
  } else
    return AX_OK;
  return number_of(s, &made, dtype, range, out);
}

/* Where a result is one of the operands, whatever the inputs; AX_NONE: not known to be. */
static uint32_t operand_of(const ax_symbols *s, const ax_eqn *eqn, const uint32_t *in, ax_dtype dtype) {
  const ax_prim *prim = eqn->prim;
  const ax_interval a = s->numbers[in[0]].range, b = eqn->in_count > 1 ? s->numbers[in[1]].range : a;
  if (prim == &ax_prim_max || prim == &ax_prim_min) {
    const bool most = prim == &ax_prim_max;
    if (in[0] == in[1] || (most ? a.low >= b.high : a.high <= b.low)) return in[0];
    if (most ? b.low >= a.high : b.high <= a.low) return in[1];
  }
  const bool logical = dtype == AX_BOOL && (prim == &ax_prim_and || prim == &ax_prim_or);
  const int64_t neutral = prim == &ax_prim_and;
  if (logical && ax_interval_is_one(a) && a.low == neutral) return in[1];
  if (logical && ax_interval_is_one(b) && b.low == neutral) return in[0];
  if (prim == &ax_prim_rem && a.low >= 0 && b.low > a.high) return in[0];
  if (prim == &ax_prim_select_n && eqn->in_count == 3) {
    if (in[1] == in[2]) return in[1];
    if (ax_interval_is_one(a)) return in[a.low == 0 ? 1 : 2];
  }
  if (prim == &ax_prim_stop_gradient || prim == &ax_prim_optimization_barrier) return in[0];
  if (prim == &ax_prim_convert_element_type && s->numbers[in[0]].dtype == dtype) return in[0];
  return AX_NONE;
}

/* Bounds of one of two numbers, each where it is chosen: of where(x < 8, x, 0). */
static ax_status chosen(ax_symbols *s, const uint32_t *in, ax_interval *out) {
  ax_interval cases[2];
  for (uint32_t k = 0; k < 2; k++) {
    ax_guard guards[AX_MOST_GUARDS];
    uint32_t count = 0;
    ax_symbols_guard(s, in[0], k == 1, guards, &count);
    AX_TRY(ax_symbols_guarded(s, in[1 + k], guards, count, &cases[k]));
  }
  if (cases[0].low > cases[0].high) cases[0] = cases[1];
  if (cases[1].low > cases[1].high) cases[1] = cases[0];
  if (cases[0].low <= cases[0].high) *out = ax_interval_common(*out, ax_interval_hull(cases[0], cases[1]));
  return AX_OK;
}

/* Of two numbers that are a constant apart, as where(p, x + 2, x): x and 0 or 2, as p says. AX_NONE: they are not. */
static ax_status choice(ax_symbols *s, const ax_eqn *eqn, const uint32_t *in, ax_dtype dtype, ax_interval range, uint32_t *out) {
  *out = AX_NONE;
  if (eqn->prim != &ax_prim_select_n || eqn->in_count != 3 || dtype == AX_BOOL) return AX_OK;
  const sum first = sum_of(s, in[1]), second = sum_of(s, in[2]), apart = add_sums(&second, &first, UINT64_MAX);
  uint32_t none, by, more;
  AX_TRY(number_of(s, &apart, dtype, ax_interval_of_dtype(dtype), &by));
  if (by == AX_NONE || !is_constant(s, by)) return AX_OK;
  AX_TRY(ax_symbols_constant(s, dtype, 0, &none));
  const uint64_t key[] = {AX_SYMBOL_MADE, (uint64_t)(uintptr_t)eqn->prim, 0, in[0], none, by};
  const ax_interval hull = ax_interval_hull(s->numbers[none].range, s->numbers[by].range);
  AX_TRY(ax_symbols_named(s, dtype, hull, AX_COUNT(key), key, &more));
  const sum of = sum_of(s, more), made = add_sums(&first, &of, 1);
  return number_of(s, &made, dtype, range, out);
}

ax_status ax_symbols_apply(ax_symbols *s, const ax_eqn *eqn, const uint32_t *in, ax_dtype dtype, uint32_t *out) {
  enum { most_operands = 4 };
  ax_interval ranges[most_operands];
  ax_dtype dtypes[most_operands];
  uint64_t key[most_operands + 3] = {AX_SYMBOL_MADE, (uint64_t)(uintptr_t)eqn->prim,
                                     eqn->params != NULL ? (uint64_t)(uintptr_t)eqn : 0};
  if (eqn->in_count == 0 || eqn->in_count > most_operands) return ax_error(AX_ABSENT, "%u operands", eqn->in_count);
  *out = operand_of(s, eqn, in, dtype);
  if (*out != AX_NONE) return AX_OK;
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    ranges[i] = s->numbers[in[i]].range;
    dtypes[i] = s->numbers[in[i]].dtype;
    key[3 + i] = in[i];
  }
  ax_interval range = ax_interval_of_eqn(eqn, dtypes, ranges, dtype);
  if (eqn->prim == &ax_prim_select_n && eqn->in_count == 3) AX_TRY(chosen(s, in, &range));
  AX_TRY(linear(s, eqn, in, dtype, range, out));
  if (*out == AX_NONE) AX_TRY(choice(s, eqn, in, dtype, range, out));
  return *out != AX_NONE ? AX_OK : ax_symbols_named(s, dtype, range, eqn->in_count + 3, key, out);
}
