/* Programs inside one another: transforms whose cost follows the depth, the limit on it, and texts that read back at that limit. */
#include <stdlib.h>
#include <string.h>

#include "axle/ops.h"
#include "ir/program.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/run.h"

/* --- Nests of scans, conds and whiles: (x, y) -> (x', y') --- */

/* FRESH: a scan whose carry starts as a constant. The last have a shard_map at each level, before a program inside. */
typedef enum kind { SCAN, COND, WHILE, MIXED, FRESH, KIND_COUNT, MAPPED_SCAN = KIND_COUNT, MAPPED_CALL } kind;
typedef struct nest {
  kind kind;
  int depth;
} nest;

static void nested(const ax_value *in, ax_value *out, void *context);

static void leaf(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_tanh(ax_mul(in[0], in[1]));
  out[1] = in[1];
}

static void small(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_lt(in[0], ax_full_like(in[0], 0.05));
}

static ax_value mapped(ax_value x) {
  ax_mesh mesh;
  const char *specs[] = {"a", "a"};
  TEST_OK(ax_mesh_parse("a=4", &mesh));
  const ax_value in[] = {x, x};
  ax_value made[2];
  test_shard_map(&mesh, specs, specs, false, AX_FN(leaf, 2, 2), in, made);
  return made[0];
}

static void level(const nest *n, const ax_value *in, ax_value *out) {
  nest inner = {n->kind, n->depth - 1};
  kind kind = n->kind == MIXED ? (enum kind)(n->depth % 3) : n->kind;
  ax_value pair[] = {ax_mul(in[0], in[1]), in[1]}, fresh[] = {ax_full_like(in[0], 0.5), in[1]}, made[2];
  switch (kind) {
    case SCAN: ax_scan(AX_CLOSURE(nested, 2, 2, &inner), 2, 2, false, pair, out); break;
    case COND: ax_if(ax_gt(in[0], ax_full_like(in[0], 0)), AX_CLOSURE(nested, 2, 2, &inner), AX_FN(leaf, 2, 2), pair, out); break;
    case MAPPED_SCAN:
    case MAPPED_CALL:
      pair[0] = mapped(in[0]);
      if (kind == MAPPED_SCAN) ax_scan(AX_CLOSURE(nested, 2, 2, &inner), 2, 2, false, pair, out);
      else ax_closed_call(AX_CLOSURE(nested, 2, 2, &inner), pair, out);
      break;
    case WHILE: ax_while(AX_CLOSURE(small, 2, 1, &inner), AX_CLOSURE(nested, 2, 2, &inner), pair, out); break;
    default:
      ax_scan(AX_CLOSURE(nested, 2, 2, &inner), 2, 2, false, fresh, made);
      out[0] = ax_add(made[0], in[0]);
      out[1] = made[1];
  }
}

static void nested(const ax_value *in, ax_value *out, void *context) {
  const nest *n = context;
  if (n->depth == 0) leaf(in, out, NULL);
  else level(n, in, out);
}

static ax_status trace(kind kind, int depth, ax_program **out) {
  ax_type type = kind < KIND_COUNT ? TEST_SCALAR(AX_F64) : TEST_TYPE(AX_F64, 8), types[] = {type, type};
  nest n = {kind, depth};
  return ax_trace(AX_CLOSURE(nested, 2, 2, &n), types, out);
}

/* --- Cost: allocations, which follow the work --- */

typedef ax_status (*transform)(const ax_program *program, ax_program **out);

static ax_status forward(const ax_program *program, ax_program **out) { return ax_program_jvp(program, AX_ALL_ARGS, out); }
static ax_status batched(const ax_program *program, ax_program **out) {
  return ax_program_vmap(program, &(ax_vmap_options){.size = 3}, out);
}
static ax_status batched_by_one(const ax_program *program, ax_program **out) {
  return ax_program_vmap(program,
                         &(ax_vmap_options){.in_axes = {AX_DIMS(AX_NOT_MAPPED, 0)}, .out_axes = {AX_DIMS(0, 0)}, .size = 3}, out);
}
/* The tangents of the second input alone, of which the second result's is then dropped. */
static ax_status forward_without_tangents(const ax_program *program, ax_program **out) {
  ax_program *jvp;
  AX_TRY(ax_program_jvp(program, AX_FIRST(1), &jvp));
  ax_status status = ax_program_dce(jvp, out);
  ax_program_release(jvp);
  return status;
}
static ax_status linearized(const ax_program *program, ax_program **out) {
  ax_program *tangent;
  uint32_t residuals;
  AX_TRY(ax_program_linearize(program, AX_ALL_ARGS, out, &tangent, &residuals));
  ax_program_release(tangent);
  return AX_OK;
}

static ax_program *trace_nest(const void *context) {
  const nest *n = context;
  ax_program *program;
  TEST_OK(trace(n->kind, n->depth, &program));
  return program;
}

static double cost(transform transform, kind kind, int depth) {
  return test_bytes_asked(trace_nest, &(nest){kind, depth}, transform);
}

/* Debug builds verify each program made, down to the bottom, so that theirs follows the square. */
static void cost_follows_depth(void **state) {
  (void)state;
#ifdef AXLE_VERIFIES
  skip();
#endif
  const transform transforms[] = {forward, batched, batched_by_one, ax_program_dce, forward_without_tangents};
  for (size_t t = 0; t < AX_COUNT(transforms); t++)
    for (kind kind = 0; kind < KIND_COUNT; kind++)
      assert_true(cost(transforms[t], kind, 64) < 2.3 * cost(transforms[t], kind, 32));
  for (kind kind = MAPPED_SCAN; kind <= MAPPED_CALL; kind++)
    assert_true(cost(ax_program_partition, kind, 64) < 2.3 * cost(ax_program_partition, kind, 32));
  /* a cond's residuals are as many as there are conds in it, so this is quadratic as the program made is */
  assert_true(cost(linearized, COND, 64) < 6 * cost(linearized, COND, 32));
  assert_true(cost(linearized, SCAN, 14) < 6 * cost(linearized, SCAN, 7)); /* the rank of what is kept ends it at 16 */
}

/* --- Tracing: how often a user's functions are called --- */

/* Loops that each start from a constant, which only the innermost body makes vary; conds whose branches use what is around them. */
typedef struct tracing {
  kind kind;
  int depth;
  ax_value x; /* varies */
  int *calls;
} tracing;

static void stops(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_gt(ax_full_like(in[0], 0), ax_full_like(in[0], 1));
}

static void uses_x(const ax_value *in, ax_value *out, void *context) {
  const tracing *t = context;
  ++*t->calls;
  out[0] = ax_add(in[0], t->x);
}

static void come_to_vary(const ax_value *in, ax_value *out, void *context) {
  const tracing *t = context;
  tracing inner = {t->kind, t->depth - 1, t->x, t->calls};
  ax_value start = ax_full(AX_F64, AX_DIMS(), 0.5), made;
  if (t->depth == 0) {
    uses_x(in, out, context);
    return;
  }
  ++*t->calls;
  switch (t->kind == MIXED ? (kind)(t->depth % 3) : t->kind) {
    case SCAN: ax_scan(AX_CLOSURE(come_to_vary, 1, 1, &inner), 1, 2, false, &start, &made); break;
    case WHILE: ax_while(AX_CLOSURE(stops, 1, 1, &inner), AX_CLOSURE(come_to_vary, 1, 1, &inner), &start, &made); break;
    default:
      ax_if(ax_full(AX_BOOL, AX_DIMS(), 1), AX_CLOSURE(uses_x, 1, 1, &inner), AX_CLOSURE(come_to_vary, 1, 1, &inner), in, &made);
  }
  out[0] = ax_mul(made, in[0]);
}

static void begins(const ax_value *in, ax_value *out, void *context) {
  tracing *t = context;
  t->x = in[0];
  ax_value start = ax_full(AX_F64, AX_DIMS(), 1);
  come_to_vary(&start, out, t);
}

static int calls_of(kind kind, int depth) {
  ax_mesh mesh;
  ax_program *program;
  int calls = 0;
  ax_type x = TEST_SCALAR(AX_F64);
  TEST_OK(ax_mesh_parse("d=2", &mesh));
  x.spread.varying = 1;
  TEST_OK(ax_trace_on(&mesh, AX_CLOSURE(begins, 1, 1, &(tracing){kind, depth, .calls = &calls}), &x, &program));
  assert_int_equal(program->types[program->outs[0]].spread.varying, 1);
  TEST_OK(ax_program_verify(program));
  ax_program_release(program);
  return calls;
}

/* Each loop's body is traced again once, and all loops in it then, but these not a second time for each of theirs. */
static void tracing_follows_depth(void **state) {
  (void)state;
  assert_int_equal(calls_of(COND, 40), 2 * 40 + 1);
  assert_true(calls_of(SCAN, 40) <= 41 * 42 / 2);
  assert_true(calls_of(WHILE, 40) <= 41 * 42 / 2);
  assert_true(calls_of(MIXED, 40) <= 2 * 41 * 42 / 2);
}

/* --- The limit, and texts --- */

static void reads_back(void **state) {
  (void)state;
  for (kind kind = 0; kind < KIND_COUNT; kind++) {
    ax_program *program, *again, *jvp;
    char *text;
    TEST_FAILS(trace(kind, AX_MAX_NESTING + 1, &program), AX_INVALID_ARGUMENT, ""); /* the message is cut to its beginning */
    TEST_OK(trace(kind, AX_MAX_NESTING, &program));
    TEST_OK(ax_program_verify(program));
    TEST_OK(ax_program_print(program, &text));
    TEST_OK(ax_program_parse(text, strlen(text), "nest", &again));
    assert_true(ax_program_equal(program, again));
    TEST_OK(ax_program_jvp(again, AX_ALL_ARGS, &jvp));
    ax_string_free(text);
    ax_program_release(program), ax_program_release(again), ax_program_release(jvp);
  }
}

static void deeper_texts_are_refused(void **state) {
  (void)state;
  enum { levels = 100000 };
  static const char head[] = "{ lambda x:f64[]. let y:f64[] = scan[length=1 reverse=false num_consts=0 num_carry=1 body=";
  char *text = malloc(levels * sizeof head), *at = text;
  for (int i = 0; i < levels; i++, at += sizeof head - 1) memcpy(at, head, sizeof head);
  ax_program *program;
  TEST_FAILS(ax_program_parse(text, (size_t)(at - text), "deep", &program), AX_PARSE_ERROR, "no deeper nesting");
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cost_follows_depth),
      cmocka_unit_test(tracing_follows_depth),
      cmocka_unit_test(reads_back),
      cmocka_unit_test(deeper_texts_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
