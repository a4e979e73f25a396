/* Derivatives, batches and control flow, one inside the other at random: gradients of gradients, jacobians both ways, batches of
   batches, linearized functions, over scans, loops, branches, calls, checkpoints and custom rules, and inside them.

   A function is a tree. Each node is a function (x f64[3], w f64[3]) -> f64[3], made of those below it. It is traced twice: as it
   is, and plain, where loops are unrolled, branches are selected from and calls are inlined. Transforms are the same in both, so
   what control flow does to them must come to the same numbers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "axle/ops.h"
#include "axle/transform.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

typedef enum kind {
  LEAF,
  COMPOSED,
  SCANNED,
  COUNTED,
  CHOSEN,
  SWITCHED,
  REPEATED, /* while: nothing backwards around it */
  MAPPED,
  AGAIN, /* checkpoint */
  CALLED,
  RULED,      /* custom_jvp */
  RULED_BACK, /* custom_vjp: nothing forwards around it */
  TRANSFORMS,
  BACKWARDS = TRANSFORMS,
  FORWARDS,
  BATCHED,
  JACOBIAN_FORWARDS,
  JACOBIAN_BACKWARDS,
  LINEARIZED,
  SECOND,
  KINDS
} kind;
static const char *const names[KINDS] = {"leaf", "then",       "scan",   "fori",       "cond",       "switch", "while",
                                         "map",  "checkpoint", "call",   "custom_jvp", "custom_vjp", "vjp",    "jvp",
                                         "vmap", "jacfwd",     "jacrev", "linearize",  "hvp"};

typedef struct node {
  kind kind;
  uint32_t variant;
  const struct node *f, *g; /* below */
} node;

enum { most_nodes = 64, size = 3 };
static const ax_type vector = {.dtype = AX_F64, .rank = 1, .dims = {size}};
static node nodes[most_nodes];
static uint32_t node_count;
static bool plain; /* how the tree is traced */

/* --- The tree --- */

typedef struct around { /* what a node must allow for */
  bool forwards, backwards;
  int transforms; /* still allowed */
} around;

static bool allowed(kind k, const around *a) {
  if (k == REPEATED) return !a->backwards;
  if (k == RULED_BACK) return !a->forwards;
  return k < TRANSFORMS || a->transforms > 0;
}

static around inside(kind k, const around *a) {
  around in = *a;
  in.transforms -= k >= TRANSFORMS;
  in.backwards |= k == BACKWARDS || k == JACOBIAN_BACKWARDS || k == LINEARIZED || k == SECOND || k == RULED_BACK;
  in.forwards |= k == FORWARDS || k == JACOBIAN_FORWARDS || k == LINEARIZED || k == SECOND || k == RULED;
  return in;
}

static const node *grow(test_random *random, int depth, const around *a) {
  kind k = LEAF;
  node *n = &nodes[node_count++];
  if (depth > 0 && node_count + 4 < most_nodes) do
      k = (kind)test_random_below(random, KINDS);
    while (!allowed(k, a));
  *n = (node){.kind = k, .variant = (uint32_t)test_random_below(random, 12)};
  if (k == LEAF) return n;
  const around in = inside(k, a);
  n->f = grow(random, depth - 1, &in);
  if (k == COMPOSED || k == SCANNED || k == CHOSEN || k == SWITCHED) n->g = grow(random, depth - 2, &in);
  return n;
}

static void show(const node *n) {
  fprintf(stderr, "%s.%u", names[n->kind], n->variant);
  if (n->f != NULL) fprintf(stderr, "("), show(n->f);
  if (n->g != NULL) fprintf(stderr, ", "), show(n->g);
  if (n->f != NULL) fprintf(stderr, ")");
}

/* --- Its functions --- */

static AX_BODY(apply); /* context: a node */
static ax_value of(const node *n, ax_value x, ax_value w) {
  ax_value y;
  apply((const ax_value[]){x, w}, &y, (void *)(uintptr_t)n);
  return y;
}
static ax_fn fn(const node *n) { return AX_CLOSURE(apply, 2, 1, n); }
static ax_value real(double value) { return ax_real(value); }

static ax_value leaf(uint32_t variant, ax_value x, ax_value w) {
  switch (variant % 8) {
    case 0:
      return ax_sin(ax_mul(x, w));
    case 1:
      return ax_tanh(ax_add(x, ax_mul(w, real(0.5))));
    case 2:
      return ax_mul(x, ax_cos(w));
    case 3:
      return ax_div(x, ax_add(ax_square(w), real(1.5)));
    case 4:
      return ax_logistic(ax_sub(w, ax_mul(x, x)));
    case 5:
      return ax_rev(ax_sin(x), AX_DIMS(0));
    case 6:
      return ax_tanh(ax_mul(x, ax_reduce_sum(ax_mul(x, w), AX_DIMS(0), false)));
    default:
      return ax_sin(ax_cumsum(ax_mul(x, real(0.7)), 0, false));
  }
}

typedef struct bound { /* a node with values around it, for bodies */
  const node *n;
  ax_value x, w;
} bound;

static ax_value scan_carry(const node *n, ax_value h, ax_value row, ax_value w) {
  return ax_tanh(ax_add(of(n->f, h, row), ax_mul(w, real(0.3))));
}
static ax_value scan_row(const node *n, ax_value h, ax_value row) { return ax_mul(of(n->g, h, row), real(0.5)); }
static AX_BODY(scan_step) { /* (h, row) -> (h, y) */
  const bound *b = context;
  out[0] = scan_carry(b->n, in[0], in[1], b->w);
  out[1] = scan_row(b->n, in[0], in[1]);
}
static ax_value scanned(const node *n, ax_value x, ax_value w) {
  enum { length = 3 };
  const ax_value rows[length] = {w, ax_mul(x, real(0.5)), ax_sin(w)};
  const bool reverse = n->variant % 2 == 1;
  ax_value out[2], h = x, sum = ax_full_like(x, 0);
  bound b = {n, x, w};
  if (plain) {
    for (int i = 0; i < length; i++) {
      const ax_value row = rows[reverse ? length - 1 - i : i];
      sum = ax_add(sum, scan_row(n, h, row));
      h = scan_carry(n, h, row, w);
    }
    return ax_add(h, sum);
  }
  const ax_value in[] = {x, ax_stack(AX_LIST(length, rows), 0)};
  ax_scan_unrolled(AX_CLOSURE(scan_step, 2, 2, &b), 1, -1, reverse, n->variant % 3 == 0 ? 2 : 1, AX_LIST(2, in), AX_LIST(2, out));
  return ax_add(out[0], ax_reduce_sum(out[1], AX_DIMS(0), false));
}

static ax_value count_step(const bound *b, ax_value index, ax_value x) {
  return ax_add(ax_mul(of(b->n->f, x, b->w), ax_div(index, real(4))), ax_mul(b->x, real(0.2)));
}
static AX_BODY(counting) { out[0] = count_step(context, ax_convert_element_type(in[0], AX_F64), in[1]); }
static ax_value counted(const node *n, ax_value x, ax_value w) {
  bound b = {n, x, w};
  ax_value y = x;
  if (!plain) {
    const ax_value lower = n->variant % 2 == 0 ? ax_integer(1) : ax_full(AX_S32, AX_DIMS(), 1);
    ax_fori_loop(lower, ax_integer(4), AX_CLOSURE(counting, 2, 1, &b), AX_LIST(1, &x), AX_LIST(1, &y));
  }
  for (int i = 1; i < 4 && plain; i++) y = count_step(&b, ax_full(AX_F64, AX_DIMS(), i), y);
  return y;
}

static ax_value total(ax_value x) { return ax_reduce_sum(x, AX_DIMS(0), false); }

/* Away from where operands are equal, or zero, so that no rounding chooses. */
static ax_value is_more(ax_value x, ax_value w) { return ax_gt(total(x), ax_add(ax_mul(total(w), real(0.43)), real(0.0137))); }

static ax_value chosen(const node *n, ax_value x, ax_value w) {
  const ax_value holds = is_more(x, w);
  ax_value y;
  if (plain) return ax_where(holds, of(n->f, x, w), of(n->g, x, w));
  ax_if(holds, fn(n->f), fn(n->g), AX_VALUES(x, w), AX_LIST(1, &y));
  return y;
}

static ax_value switched(const node *n, ax_value x, ax_value w) {
  const node third = {.kind = LEAF, .variant = n->variant};
  const ax_value index = ax_convert_element_type(ax_floor(ax_add(ax_mul(total(x), real(1.5)), real(1.0137))), AX_S32);
  const ax_fn branches[] = {fn(n->f), fn(n->g), fn(&third)};
  ax_value y;
  if (plain)
    return ax_where(ax_le(index, ax_integer(0)), of(n->f, x, w),
                    ax_where(ax_eq(index, ax_integer(1)), of(n->g, x, w), of(&third, x, w)));
  ax_switch(index, AX_LIST(3, branches), AX_VALUES(x, w), AX_LIST(1, &y));
  return y;
}

/* Two or three rounds, as the operands say. */
static AX_BODY(goes_on) { out[0] = ax_lt(in[1], ((const bound *)context)->x); }
static AX_BODY(round_of) {
  const bound *b = context;
  out[0] = of(b->n->f, in[0], b->w);
  out[1] = ax_add(in[1], ax_integer(1));
}
static ax_value repeated(const node *n, ax_value x, ax_value w) {
  const ax_value rounds = ax_add(ax_convert_element_type(is_more(x, w), AX_S32), ax_integer(2));
  bound b = {n, rounds, w};
  ax_value y[] = {x, ax_full(AX_S32, AX_DIMS(), 0)};
  if (!plain) ax_while(AX_CLOSURE(goes_on, 2, 1, &b), AX_CLOSURE(round_of, 2, 2, &b), AX_LIST(2, y), AX_LIST(2, y));
  for (int i = 0; i < 3 && plain; i++) y[0] = ax_where(ax_lt(ax_integer(i), rounds), of(n->f, y[0], w), y[0]);
  return y[0];
}

static AX_BODY(of_row) { out[0] = of(((const bound *)context)->n->f, in[0], ((const bound *)context)->w); }
static ax_value mapped(const node *n, ax_value x, ax_value w) {
  const ax_value rows[] = {x, ax_add(x, w), ax_cos(x)}, stacked = ax_stack(AX_LIST(3, rows), 0);
  bound b = {n, x, w};
  ax_value y;
  if (plain) return ax_add(ax_add(of(n->f, rows[0], w), of(n->f, rows[1], w)), of(n->f, rows[2], w));
  ax_map(AX_CLOSURE(of_row, 1, 1, &b), n->variant % 3, AX_LIST(1, &stacked), AX_LIST(1, &y));
  return ax_reduce_sum(y, AX_DIMS(0), false);
}

static ax_value again(const node *n, ax_value x, ax_value w) {
  const ax_checkpoint_options options[] = {
      {0}, {.save_dots = true}, {.save_everything = true}, {.save_primitives = "sin,tanh,scan"}};
  ax_value y;
  ax_checkpoint(fn(n->f), AX_VALUES(x, w), AX_LIST(1, &y), &options[n->variant % 4]);
  return y;
}

static ax_value called(const node *n, ax_value x, ax_value w) {
  ax_value y;
  ax_closed_call(fn(n->f), AX_VALUES(x, w), AX_LIST(1, &y));
  return y;
}

/* (x, w, dx, dw) -> (y, dy) */
static AX_BODY(rule) {
  const node *n = context;
  ax_jvp(fn(n->f), AX_ARGS(0, 1), AX_LIST(2, in), AX_LIST(2, in + 2), AX_LIST(1, out), AX_LIST(1, out + 1));
}
static ax_value ruled(const node *n, ax_value x, ax_value w) {
  ax_value y;
  ax_custom_jvp(fn(n->f), AX_CLOSURE(rule, 4, 2, n), AX_VALUES(x, w), AX_LIST(1, &y));
  return y;
}

static AX_BODY(forth) { out[0] = of(((const node *)context)->f, out[1] = in[0], out[2] = in[1]); }
static AX_BODY(back) { /* (x, w, cotangent) -> theirs */
  ax_value y;
  ax_vjp(fn(((const node *)context)->f), AX_ARGS(0, 1), AX_LIST(2, in), AX_LIST(1, in + 2), AX_LIST(1, &y), AX_LIST(2, out));
}
static ax_value ruled_back(const node *n, ax_value x, ax_value w) {
  ax_value y;
  ax_custom_vjp(fn(n->f), AX_CLOSURE(forth, 2, 3, n), AX_CLOSURE(back, 3, 2, n), AX_VALUES(x, w), AX_LIST(1, &y));
  return y;
}

/* --- Transforms --- */

static ax_value backwards(const node *n, ax_value x, ax_value w) {
  ax_value y, along = ax_cos(x), slopes[2];
  ax_vjp(fn(n->f), AX_ARGS(0, 1), AX_VALUES(x, w), AX_LIST(1, &along), AX_LIST(1, &y), AX_LIST(2, slopes));
  return ax_add(ax_add(slopes[0], ax_mul(slopes[1], real(0.5))), ax_mul(y, real(0.1)));
}

static ax_value forwards(const node *n, ax_value x, ax_value w) {
  ax_value y, tangent, along[] = {ax_sin(w), ax_mul(x, real(0.5))};
  ax_jvp(fn(n->f), n->variant % 2 == 0 ? AX_ARGS(0, 1) : AX_ARGS(1), AX_VALUES(x, w), AX_LIST(n->variant % 2 == 0 ? 2 : 1, along),
         AX_LIST(1, &y), AX_LIST(1, &tangent));
  return ax_add(tangent, ax_mul(y, real(0.1)));
}

static ax_value batched(const node *n, ax_value x, ax_value w) {
  const ax_value xs = ax_stack(AX_VALUES(x, w), n->variant % 2), ws = ax_stack(AX_VALUES(ax_sin(x), ax_add(x, w)), 1);
  const bool one = n->variant % 3 == 0;
  const int out_axis = n->variant % 4 < 2 ? 0 : 1;
  ax_value y;
  ax_vmap(fn(n->f), AX_VALUES(xs, one ? w : ws), AX_LIST(1, &y),
          &(ax_vmap_options){.in_axes = {AX_DIMS(n->variant % 2, one ? AX_NOT_MAPPED : 1)}, .out_axes = {AX_DIMS(out_axis)}});
  return ax_reduce_sum(y, AX_DIMS(out_axis), false);
}

static ax_value jacobian(const node *n, ax_value x, ax_value w, bool forward) {
  ax_value made[2];
  if (forward)
    ax_jacfwd(fn(n->f), AX_ARGS(0, 1), AX_VALUES(x, w), AX_LIST(2, made));
  else
    ax_jacrev(fn(n->f), AX_ARGS(0, 1), AX_VALUES(x, w), AX_LIST(2, made));
  return ax_add(ax_matmul(made[0], w), ax_mul(ax_matmul(x, made[1]), real(0.5)));
}

static ax_value linearized(const node *n, ax_value x, ax_value w) {
  ax_value y, there, around, along[] = {w, ax_cos(x)}, slopes[2];
  const ax_linear linear = ax_linearize(fn(n->f), AX_ARGS(0, 1), AX_VALUES(x, w), AX_LIST(1, &y));
  ax_pushforward(linear, AX_LIST(2, along), AX_LIST(1, &there));
  ax_pullback(linear, AX_LIST(1, &there), AX_LIST(2, slopes));
  ax_pushforward(linear, AX_LIST(2, slopes), AX_LIST(1, &around));
  return ax_add(around, ax_mul(y, real(0.2)));
}

static AX_BODY(loss) { out[0] = total(ax_mul(of(context, in[0], in[1]), ax_cos(in[1]))); }
static ax_value second(const node *n, ax_value x, ax_value w) {
  const ax_value along = ax_sin(x);
  ax_value slope, product;
  ax_hvp(AX_CLOSURE(loss, 2, 1, n->f), AX_FIRST(1), AX_VALUES(x, w), AX_LIST(1, &along), AX_LIST(1, &slope), AX_LIST(1, &product));
  return ax_add(product, ax_mul(slope, real(0.3)));
}

static AX_BODY(apply) {
  const node *n = context;
  const ax_value x = in[0], w = in[1];
  switch (n->kind) {
    case LEAF:
      out[0] = leaf(n->variant, x, w);
      break;
    case COMPOSED:
      out[0] = of(n->g, of(n->f, x, w), w);
      break;
    case SCANNED:
      out[0] = scanned(n, x, w);
      break;
    case COUNTED:
      out[0] = counted(n, x, w);
      break;
    case CHOSEN:
      out[0] = chosen(n, x, w);
      break;
    case SWITCHED:
      out[0] = switched(n, x, w);
      break;
    case REPEATED:
      out[0] = repeated(n, x, w);
      break;
    case MAPPED:
      out[0] = mapped(n, x, w);
      break;
    case AGAIN:
      out[0] = plain ? of(n->f, x, w) : again(n, x, w);
      break;
    case CALLED:
      out[0] = plain ? of(n->f, x, w) : called(n, x, w);
      break;
    case RULED:
      out[0] = plain ? of(n->f, x, w) : ruled(n, x, w);
      break;
    case RULED_BACK:
      out[0] = plain ? of(n->f, x, w) : ruled_back(n, x, w);
      break;
    case BACKWARDS:
      out[0] = backwards(n, x, w);
      break;
    case FORWARDS:
      out[0] = forwards(n, x, w);
      break;
    case BATCHED:
      out[0] = batched(n, x, w);
      break;
    case JACOBIAN_FORWARDS:
      out[0] = jacobian(n, x, w, true);
      break;
    case JACOBIAN_BACKWARDS:
      out[0] = jacobian(n, x, w, false);
      break;
    case LINEARIZED:
      out[0] = linearized(n, x, w);
      break;
    default:
      out[0] = second(n, x, w);
      break;
  }
}

/* --- The comparison --- */

static ax_program *traced(const node *n, bool as_plain) {
  plain = as_plain;
  const ax_type types[] = {vector, vector};
  return test_trace(apply, (void *)(uintptr_t)n, types, 2, 1);
}

static uint32_t drawn, compared;

/* Derivatives of derivatives may grow without bound, and what has grown far is not comparable. */
static bool is_comparable(const ax_tensor *wanted, double *most) {
  *most = 1;
  for (int i = 0; i < size; i++) {
    if (!(fabs(test_get(wanted, i)) < 1e3)) return false;
    *most = fmax(*most, fabs(test_get(wanted, i)));
  }
  return true;
}

/* On operands drawn from `random`. seed: for messages. */
static void compare(const node *n, test_random *random, uint64_t seed, bool shown) {
  ax_program *program = traced(n, false), *other = traced(n, true);
  if (shown) test_show_program(program);
  ax_tensor *in[2], *wanted, *got[2];
  for (int k = 0; k < 2; k++) in[k] = test_random_tensor(random, vector, -1, 1);
  TEST_OK(ax_evaluate(other, in, &wanted));
  TEST_OK(ax_evaluate(program, in, &got[0]));
  TEST_OK(test_try(program, in, &got[1]));
  double most;
  const bool comparable = is_comparable(wanted, &most);
  drawn++;
  compared += comparable;
  for (int k = 0; k < 2 && comparable; k++)
    for (int i = 0; i < size; i++)
      if (!(fabs(test_get(got[k], i) - test_get(wanted, i)) <= 1e-7 * most)) {
        show(n);
        fail_msg("seed %d, %s: result %d is %.17g, not %.17g", (int)seed, k == 0 ? "evaluated" : "compiled", i, test_get(got[k], i),
                 test_get(wanted, i));
      }
  test_release(got, 2);
  test_release(&wanted, 1);
  test_release(in, 2);
  ax_program_release(program);
  ax_program_release(other);
}

static void one(uint64_t seed, bool shown) {
  test_random random = {seed};
  node_count = 0;
  const node *n = grow(&random, 5, &(around){.transforms = 3});
  if (shown) show(n), fprintf(stderr, "\n");
  compare(n, &random, seed, shown);
}

static void as_without_control_flow(void **state) {
  (void)state;
  test_each_seed(80, one);
  assert_true(10 * compared >= 9 * drawn);
}

/* Branches that divide by what they keep, of which a batch runs all: what others kept stands in no denominator as 0, also where the
   derivative is taken again. */
static void nothing_divides_by_what_is_not_kept(void **state) {
  (void)state;
  const node bounded = {.kind = LEAF, .variant = 1}, divides = {.kind = LEAF, .variant = 3};
  const node choice = {.kind = SWITCHED, .variant = 2, .f = &bounded, .g = &divides}, linear = {.kind = LINEARIZED, .f = &choice};
  const node batch = {.kind = BATCHED, .variant = 2, .f = &linear}, gradient = {.kind = BACKWARDS, .f = &batch};
  for (uint64_t seed = 1; seed <= 20; seed++) compare(&gradient, &(test_random){seed}, seed, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(as_without_control_flow),
                                     cmocka_unit_test(nothing_divides_by_what_is_not_kept)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
