/* Well-typed regions: bodies that are made of steps, and what comes out of them. A body sees all values around it. Of a value held
   twice both go in and come out. */
#include <string.h>

#include "support/cmocka.h"
#include "support/typed.h"

enum { RESULTS = 2, LENGTH = 3 };

typedef struct body {
  typed_maker maker;
  uint32_t given, carries, results; /* values that come in (held), of which the first are carried; that are made for each run */
  ax_spread like[2];                /* how carries and a branch's results are to be unreduced */
  ax_value limit;                   /* of a while */
  typed_slip slip;                  /* as it stood before the body: each time that it is traced it does the same */
  ax_axis_set together;             /* the axes along which devices go on in a while until the first is through */
} body;

static uint32_t width(const typed_maker *m) { return m->unreduced ? 2 : 1; }

static body body_of(typed_maker *m) {
  body b = {.maker = *m};
  b.maker.depth--;
  b.maker.future_count = 0;
  if (m->slip != NULL) b.slip = *m->slip;
  test_random_bits(&m->random);
  return b;
}

static typed_held taken(const typed_maker *m, const ax_value *in, uint32_t i) {
  return (typed_held){in[i * width(m)], in[i * width(m) + width(m) - 1]};
}

static void put(const typed_maker *m, typed_held held, ax_value *out, uint32_t i) {
  out[i * width(m)] = held.own;
  if (m->unreduced) out[i * 2 + 1] = held.whole;
}

/* Devices go different ways along `apart` in the body. What is unreduced along it cannot go in, and is not looked at there: that
   would capture it. */
static void part(body *b, ax_axis_set apart) {
  typed_maker *m = &b->maker;
  uint32_t kept = 0;
  if (m->heedless) return;
  m->apart |= apart;
  for (uint32_t i = 0; i < m->count; i++)
    if ((ax_typeof(m->pool[i].own).spread.unreduced & apart) == 0) m->pool[kept++] = m->pool[i];
  m->count = kept;
}

/* The value made last that is unreduced as `like` is; what there was before, where there is none. */
static typed_held latest(const typed_maker *m, const ax_spread *like, typed_held otherwise) {
  if (m->heedless) return m->pool[m->count - 1];
  for (uint32_t i = m->count; i-- > 0;) {
    ax_spread on = ax_typeof(m->pool[i].own).spread;
    if (on.unreduced == like->unreduced && on.kind == like->kind) return m->pool[i];
  }
  return otherwise;
}

/* in: the values given; out: the carries, then the results. */
static void run(const ax_value *in, ax_value *out, void *context) {
  const body *b = context;
  typed_maker m = b->maker; /* it may be traced again: the same choices each time */
  if (m.slip != NULL) *m.slip = b->slip;
  uint32_t before = m.count = m.count + b->given + 8 > TYPED_MOST ? TYPED_MOST / 2 : m.count;
  for (uint32_t i = 0; i < b->given; i++) {
    typed_held held = taken(&m, in, i);
    typed_hold(&m, held.own, held.whole);
  }
  typed_steps(&m, 2 + (int)typed_below(&m, 2));
  typed_end_futures(&m);
  for (uint32_t i = 0; i < b->carries; i++) put(&m, latest(&m, &b->like[i], taken(&m, in, i)), out, i);
  for (uint32_t i = 0; i < b->results; i++) {
    typed_held held = m.count > before + b->given + i ? m.pool[m.count - 1 - i] : typed_some(&m, 0);
    put(&m, held, out, b->carries + i);
  }
}

static uint32_t give(body *b, typed_held held, ax_value *in, uint32_t i) {
  if (i < 2) b->like[i] = ax_typeof(held.own).spread;
  put(&b->maker, held, in, i);
  b->given = i + 1;
  return (i + 1) * width(&b->maker);
}

/* --- What runs a body once, or some number of times --- */

static void call(typed_maker *m) {
  body b = body_of(m);
  bool again = typed_below(m, 2) != 0;
  if (again) b.maker.messages = false; /* which would be sent twice */
  ax_value in[2], out[2 * RESULTS];
  uint32_t in_count = give(&b, typed_some(m, 0), in, 0);
  b.results = RESULTS;
  for (int64_t i = typed_below(m, 2); i >= 0; i--) {
    ax_fn f = AX_CLOSURE(run, in_count, RESULTS * width(m), &b);
    if (again) ax_checkpoint(f, in, out, NULL);
    else ax_closed_call(f, in, out);
    for (uint32_t k = 0; k < RESULTS; k++) {
      typed_held held = taken(m, out, k);
      typed_hold(m, held.own, held.whole);
    }
  }
}

static ax_value stacked(ax_value x) {
  ax_value rows[LENGTH];
  for (int i = 0; i < LENGTH; i++) rows[i] = typed_rolled(x, 5 * i);
  return ax_stack(AX_LIST(LENGTH, rows), 0);
}

static typed_held row(typed_maker *m, typed_held held) {
  int64_t at = typed_below(m, LENGTH);
  return (typed_held){ax_at(held.own, at, 0), m->unreduced ? ax_at(held.whole, at, 0) : held.own};
}

static void scan(typed_maker *m) {
  body b = body_of(m);
  ax_value in[6], out[2 * (2 + RESULTS)];
  typed_held x = typed_some(m, 0);
  b.carries = 2, b.results = RESULTS;
  give(&b, typed_some(m, 0), in, 0);
  give(&b, typed_some(m, 0), in, 1);
  uint32_t in_count = give(&b, (typed_held){stacked(x.own), m->unreduced ? stacked(x.whole) : x.own}, in, 2);
  ax_scan(AX_CLOSURE(run, in_count, (2 + RESULTS) * width(m), &b), 2 * width(m), LENGTH, typed_below(m, 2) != 0, in, out);
  for (uint32_t k = 0; k < 2 + RESULTS; k++) {
    typed_held held = taken(m, out, k);
    if (k >= 2) held = row(m, held);
    typed_hold(m, held.own, held.whole);
  }
}

static void map(typed_maker *m) {
  body b = body_of(m);
  ax_value in[4], out[2 * RESULTS];
  typed_held x = typed_some(m, 0);
  int64_t in_axes[] = {0, 0, AX_NOT_MAPPED, AX_NOT_MAPPED};
  give(&b, (typed_held){stacked(x.own), m->unreduced ? stacked(x.whole) : x.own}, in, 0);
  uint32_t in_count = give(&b, typed_some(m, 0), in, 1);
  b.results = RESULTS;
  for (uint32_t i = 0; i < 4; i++) in_axes[i] = i < width(m) ? 0 : AX_NOT_MAPPED;
  ax_vmap_options options = {.in_axes = {in_count, in_axes}, .size = LENGTH};
  if (m->mapped == NULL && typed_below(m, 3) != 0) b.maker.mapped = options.axis_name = "v";
  ax_vmap(AX_CLOSURE(run, in_count, RESULTS * width(m), &b), in, out, &options);
  for (uint32_t k = 0; k < RESULTS; k++) {
    typed_held held = row(m, taken(m, out, k));
    typed_hold(m, held.own, held.whole);
  }
}

/* --- Where devices may go different ways --- */

static void branch(typed_maker *m) {
  ax_value in[4], out[4];
  ax_value index = typed_index(m, 0);
  ax_axis_set apart = ax_typeof(index).spread.varying;
  body b = body_of(m), other;
  part(&b, apart);
  b.carries = 2;
  give(&b, typed_some(m, apart), in, 0);
  uint32_t count = give(&b, typed_some(m, apart), in, 1);
  other = b;
  test_random_bits(&other.maker.random);
  ax_fn run_it = AX_CLOSURE(run, count, count, &b), run_other = AX_CLOSURE(run, count, count, &other);
  ax_switch(index, AX_FNS(run_it, run_other, run_it), in, out);
  for (uint32_t k = 0; k < 2; k++) {
    typed_held held = taken(m, out, k);
    typed_hold(m, held.own, held.whole);
  }
}

/* in[0] counts. */
static void go_on(const ax_value *in, ax_value *out, void *context) {
  const body *b = context;
  typed_maker m = b->maker;
  char text[TYPED_TEXT];
  ax_value count = in[0];
  if (b->together != 0) count = ax_pmax(count, typed_names(&m, b->together, text));
  out[0] = ax_lt(count, b->limit);
}

static void counted(const ax_value *in, ax_value *out, void *context) {
  out[0] = ax_add(in[0], ax_full(AX_S32, AX_DIMS(), 1));
  run(in + 1, out + 1, context);
}

static void loop(typed_maker *m) {
  ax_value in[5], out[5];
  body b = body_of(m);
  b.limit = typed_index(m, 0);
  in[0] = typed_index(m, 0);
  ax_axis_set begins = ax_typeof(in[0]).spread.varying, apart = begins | ax_typeof(b.limit).spread.varying;
  if ((begins & (m->apart | ax_typeof(b.limit).spread.varying)) == 0 && typed_below(m, 2) != 0) b.together = begins;
  apart &= ~b.together;
  part(&b, apart);
  b.carries = 2;
  give(&b, typed_some(m, apart), in + 1, 0);
  uint32_t count = 1 + give(&b, typed_some(m, apart), in + 1, 1);
  ax_while(AX_CLOSURE(go_on, count, 1, &b), AX_CLOSURE(counted, count, count, &b), in, out);
  for (uint32_t k = 0; k < 2; k++) {
    typed_held held = taken(m, out + 1, k);
    typed_hold(m, held.own, held.whole);
  }
}

/* --- Derivatives --- */

/* A value that is in no axis reduced or unreduced, so that its tangents and cotangents are like it. */
static typed_held plain(typed_maker *m) {
  for (int i = 0; i < 12; i++) {
    typed_held held = typed_some(m, ((ax_axis_set)1 << m->mesh.count) - 1);
    ax_spread own = ax_typeof(held.own).spread, whole = ax_typeof(held.whole).spread;
    if (own.reduced == 0 && whole.reduced == 0 && own.varying == whole.varying) return held;
  }
  ax_value x = ax_full(m->dtype, AX_DIMS(TYPED_LENGTH), 0.5);
  return (typed_held){x, x};
}

/* The derivatives of parts that a largest or smallest value is made of are each part's own. */
static bool is_extreme(ax_value x) { return ax_typeof(x).spread.kind != AX_UNREDUCED_SUM; }

/* The body, as it is, or with what jvp and vjp make of it for its own derivatives. */
typedef struct ruled {
  body *body;
  uint32_t in_count, out_count;
  enum { NO_RULE, BY_JVP, BY_VJP } rule;
} ruled;

static ax_fn body_fn(const ruled *r) { return AX_CLOSURE(run, r->in_count, r->out_count, r->body); }

static void forwards(const ax_value *in, ax_value *out, void *context) {
  const ruled *r = context;
  ax_jvp(body_fn(r), AX_FIRST(r->in_count), in, in + r->in_count, out, out + r->out_count);
}
static void keeping(const ax_value *in, ax_value *out, void *context) {
  const ruled *r = context;
  run(in, out, r->body);
  memcpy(out + r->out_count, in, r->in_count * sizeof in[0]);
}
static void backwards(const ax_value *in, ax_value *out, void *context) {
  const ruled *r = context;
  ax_value again[2 * RESULTS];
  ax_vjp(body_fn(r), AX_FIRST(r->in_count), in, in + r->in_count, again, out);
}
static void by_rule(const ax_value *in, ax_value *out, void *context) {
  const ruled *r = context;
  uint32_t n = r->in_count, k = r->out_count;
  if (r->rule == NO_RULE) run(in, out, r->body);
  if (r->rule == BY_JVP) ax_custom_jvp(body_fn(r), AX_CLOSURE(forwards, 2 * n, 2 * k, context), in, out);
  if (r->rule == BY_VJP)
    ax_custom_vjp(body_fn(r), AX_CLOSURE(keeping, n, k + n, context), AX_CLOSURE(backwards, n + k, n, context), in, out);
}

static void tangents(typed_maker *m) {
  body b = body_of(m);
  ax_value in[2], tangent[2], out[2 * RESULTS], out_tangent[2 * RESULTS];
  uint32_t count = give(&b, plain(m), in, 0);
  typed_held along = plain(m);
  bool fits = (ax_typeof(along.own).spread.varying & ~b.like[0].varying) == 0;
  b.maker.smooth = true;
  b.results = RESULTS;
  for (uint32_t i = 0; i < count; i++) tangent[i] = !fits ? ax_real(0.5) : i == 0 ? along.own : along.whole;
  ruled r = {&b, count, RESULTS * width(m), typed_below(m, 2) != 0 ? BY_JVP : NO_RULE};
  ax_jvp(AX_CLOSURE(by_rule, count, r.out_count, &r), AX_FIRST(count), in, tangent, out, out_tangent);
  for (uint32_t k = 0; k < RESULTS; k++) {
    typed_held held = taken(m, out, k), tangent_of = taken(m, out_tangent, k);
    typed_hold(m, held.own, held.whole);
    typed_hold(m, tangent_of.own, is_extreme(held.own) ? tangent_of.own : tangent_of.whole);
  }
}

static void cotangents(typed_maker *m) {
  body b = body_of(m);
  ax_value in[2], cotangent[2 * RESULTS], out[2 * RESULTS], gradient[2];
  uint32_t count = give(&b, plain(m), in, 0);
  b.maker.smooth = true;
  b.results = RESULTS;
  for (uint32_t i = 0; i < RESULTS * width(m); i++) cotangent[i] = ax_real(0.5);
  ruled r = {&b, count, RESULTS * width(m), typed_below(m, 2) != 0 ? NO_RULE : typed_below(m, 2) != 0 ? BY_JVP : BY_VJP};
  ax_fn f = AX_CLOSURE(by_rule, count, r.out_count, &r);
  if (typed_below(m, 2) != 0) {
    ax_vjp(f, AX_FIRST(count), in, cotangent, out, gradient);
  } else {
    ax_linear linear = ax_linearize(f, AX_FIRST(count), in, out);
    ax_pullback(linear, cotangent, gradient);
  }
  typed_hold(m, out[0], out[width(m) - 1]);
  bool comparable = true;
  for (uint32_t k = 0; k < RESULTS; k++) comparable = comparable && !is_extreme(out[k * width(m)]);
  typed_hold(m, gradient[0], gradient[comparable ? count - 1 : 0]);
}

void typed_region(typed_maker *m) {
  bool derivatives = m->dtype == AX_F32;
  switch (typed_below(m, derivatives ? 9 : 6)) {
    case 0: call(m); break;
    case 1: map(m); break;
    case 2: scan(m); break;
    case 3:
    case 4: branch(m); break;
    case 5:
      if (m->smooth) scan(m);
      else loop(m);
      break;
    case 6: tangents(m); break;
    default: cotangents(m); break;
  }
}
