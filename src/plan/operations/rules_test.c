/* The rules of each kind of operation against each other: a copy touches the renamed buffers and leaves the original as it was;
   operands are buffers that are read, and can be replaced one by one. */
#include <string.h>

#include "plan/op.h"
#include "support/cmocka.h"
#include "support/run.h"

enum { most = 32, renamed = 100, replaced = 1000 };

/* --- An operation of each kind, on buffers below `renamed` --- */

static const ax_position at = {.dim = -1, .dynamic = 0, .limit = 1}; /* a place that is known when it runs */
static ax_slot slots[] = {{.rank = 1}, {.rank = 1}};
static ax_expr load = {.op = AX_LEAF_LOAD, .arg = {AX_NONE, AX_NONE, AX_NONE}, .at = &at};
static ax_store store = {.slot = 1, .at = &at};
static ax_loop_kernel kernel = {
    .expr_count = 1, .slot_count = 2, .store_count = 1, .exprs = &load, .slots = slots, .stores = &store};
static uint32_t list[] = {1, 2, 3, 4, 5, 6};
static ax_gemm gemm = {.a = 1, .b = 2, .c = 3}, sum = {.a = 1, .b = 2, .c = 3, .accumulate = true};
static ax_eqn eqn = {.in_count = 2, .out_count = 1};
static ax_routine routine = {.in_count = 2, .out_count = 1, .buffers = list},
                  updating = {.in_count = 1, .out_count = 2, .buffers = list, .updates = true};
static ax_exchange exchange = {.in = 1, .out = 2}, pairs = {.in = 1, .out = 2, .peers = AX_PEERS_PAIRS};
static ax_mail mail = {.buffer = 1};
static ax_ragged ragged = {.shape = {.devices = 2}, .in = {1, 2, 3, 4, 5, 6}, .table = 7, .received = 8, .work = 9, .out = 10,
                           .taken = 11, .released = 12, .base = AX_NONE},
                 alone = {.shape = {.devices = 1}, .in = {1, 2, 3, 4, 5, 6}, .table = 7, .received = 7, .work = 9, .out = 10,
                          .taken = AX_NONE, .released = AX_NONE, .base = 11};
static ax_cores cores = {.in_count = 1, .out_count = 2, .fresh_count = 1, .buffers = list, .state = 7, .came = 8, .all_came = 9,
                         .done = 10, .all_done = 11},
                own = {.in_count = 1, .out_count = 1, .buffers = list, .state = 7, .came = AX_NONE, .all_came = AX_NONE,
                       .done = AX_NONE, .all_done = AX_NONE};

static ax_op ops[] = {
    {.kind = AX_OP_KERNEL, .kernel = {&kernel, list}},
    {.kind = AX_OP_GEMM, .gemm = &gemm},
    {.kind = AX_OP_GEMM, .gemm = &sum},
    {.kind = AX_OP_EVAL, .eqn = &eqn, .eval = {.in = list, .out = list + 2}},
    {.kind = AX_OP_ROUTINE, .routine = &routine},
    {.kind = AX_OP_ROUTINE, .routine = &updating},
    {.kind = AX_OP_START, .exchange = &exchange},
    {.kind = AX_OP_DONE, .exchange = &exchange},
    {.kind = AX_OP_START, .exchange = &pairs},
    {.kind = AX_OP_DONE, .exchange = &pairs},
    {.kind = AX_OP_SEND, .message = &mail},
    {.kind = AX_OP_RECEIVE, .message = &mail},
    {.kind = AX_OP_RAGGED, .ragged = &ragged, .step = AX_RAGGED_PACK},
    {.kind = AX_OP_RAGGED, .ragged = &ragged, .step = AX_RAGGED_TAKE},
    {.kind = AX_OP_RAGGED, .ragged = &ragged, .step = AX_RAGGED_RELEASE},
    {.kind = AX_OP_RAGGED, .ragged = &alone, .step = AX_RAGGED_TAKE},
    {.kind = AX_OP_CORES, .cores = &cores, .cores_step = AX_CORES_ENTER},
    {.kind = AX_OP_CORES, .cores = &cores, .cores_step = AX_CORES_RUN},
    {.kind = AX_OP_CORES, .cores = &cores, .cores_step = AX_CORES_LEAVE},
    {.kind = AX_OP_CORES, .cores = &own, .cores_step = AX_CORES_RUN},
    {.kind = AX_OP_CHECK, .check = {.count = 3, .buffers = list}},
    {.kind = AX_OP_LOOP, .loop = {.id = 1, .trips = -1, .condition = 4}},
    {.kind = AX_OP_LOOP, .loop = {.id = 1, .trips = 3}},
    {.kind = AX_OP_BRANCH, .branch = {.index = 5, .count = 2}},
};

/* --- What it touches --- */

typedef struct touches {
  uint32_t count, buffers[most];
  bool writes[most];
} touches;

static void note(void *context, uint32_t buffer, bool writes) {
  touches *t = context;
  assert_true(t->count < most);
  t->buffers[t->count] = buffer;
  t->writes[t->count++] = writes;
}

static touches touches_of(const ax_op *op) {
  touches t = {0};
  ax_op_visit(op, note, &t);
  return t;
}

static bool touch_alike(const touches *a, const touches *b, uint32_t more) {
  bool alike = a->count == b->count;
  for (uint32_t i = 0; alike && i < a->count; i++)
    alike = a->buffers[i] + more == b->buffers[i] && a->writes[i] == b->writes[i];
  return alike;
}

static bool reads(const touches *t, uint32_t buffer) {
  for (uint32_t i = 0; i < t->count; i++)
    if (t->buffers[i] == buffer && !t->writes[i]) return true;
  return false;
}

/* --- Copies --- */

typedef struct copies {
  ax_arena arena;
  const ax_exchange *from;
  ax_exchange *to;
} copies;

static ax_status rename_one(void *context, uint32_t *buffer) {
  (void)context;
  assert_true(*buffer < renamed);
  *buffer += renamed;
  return AX_OK;
}

static void start(void *context, const ax_exchange *from, ax_exchange *to) {
  copies *c = context;
  c->from = from;
  c->to = to;
  to->id = from->id + renamed;
}

static ax_exchange *started(void *context, ax_exchange *from) {
  const copies *c = context;
  assert_ptr_equal(c->from, from); /* the one that was started last */
  return c->to;
}

static uint32_t loop(void *context, uint32_t id) {
  (void)context;
  return id + renamed;
}

static ax_op copy_of(copies *c, const ax_op *op) {
  const ax_op_renaming renaming = {
      .arena = &c->arena, .lists = &c->arena, .buffer = rename_one, .start = start, .started = started, .loop = loop, .context = c};
  ax_op copy = *op;
  TEST_OK(ax_op_rename(&renaming, &copy));
  return copy;
}

static void test_copies(void **state) {
  copies c = {0};
  (void)state;
  for (size_t i = 0; i < AX_COUNT(ops); i++) {
    const touches before = touches_of(&ops[i]);
    const ax_op copy = copy_of(&c, &ops[i]);
    const touches after = touches_of(&ops[i]), of_copy = touches_of(&copy);
    if (!touch_alike(&before, &after, 0)) fail_msg("row %zu: its copy has changed it", i);
    if (!touch_alike(&before, &of_copy, renamed)) fail_msg("row %zu: its copy touches other buffers", i);
    if (copy.kind == AX_OP_LOOP) assert_int_equal(copy.loop.id, ops[i].loop.id + renamed);
    if (copy.kind == AX_OP_START) assert_int_equal(copy.exchange->id, ops[i].exchange->id + renamed);
    if (copy.kind == AX_OP_BRANCH) assert_ptr_not_equal(copy.branch.blocks, ops[i].branch.blocks);
  }
  ax_arena_deinit(&c.arena);
}

/* --- Operands --- */

/* Each replaced in turn: the operation reads the new buffer, and all else stays. */
static void test_operands(void **state) {
  copies c = {0};
  uint32_t count = 0;
  (void)state;
  for (size_t i = 0; i < AX_COUNT(ops); i++) {
    ax_op copy = copy_of(&c, &ops[i]);
    uint32_t *operand;
    for (uint32_t k = 0; (operand = ax_op_operand(&copy, k)) != NULL; k++, count++) {
      const uint32_t old = *operand;
      const touches before = touches_of(&copy);
      if (!reads(&before, old)) fail_msg("row %zu: operand %u is not read", i, k);
      *operand = replaced;
      const touches after = touches_of(&copy);
      if (!reads(&after, replaced)) fail_msg("row %zu: operand %u cannot be replaced", i, k);
      *operand = old;
      const touches again = touches_of(&copy);
      assert_true(touch_alike(&before, &again, 0));
    }
  }
  assert_int_equal(count, 2 + 2 + 2 + 2 + 1 + 1 + 1 + 1); /* products, the equation, routines, exchanges, the message */
  ax_arena_deinit(&c.arena);
}

/* What is updated is touched. */
static void test_updated(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(ops); i++) {
    const ax_op_rules *rules = ax_op_rules_of(&ops[i]);
    const touches all = touches_of(&ops[i]);
    touches updated = {0};
    if (rules->visit_updated == NULL) continue;
    rules->visit_updated(&ops[i], note, &updated);
    for (uint32_t k = 0; k < updated.count; k++) {
      bool touched = false;
      for (uint32_t t = 0; t < all.count; t++) touched = touched || all.buffers[t] == updated.buffers[k];
      if (!touched) fail_msg("row %zu: b%u is updated, and not touched", i, updated.buffers[k]);
    }
  }
}

/* --- The table --- */

static void test_table(void **state) {
  (void)state;
  for (uint32_t kind = 0; kind < AX_OP_KINDS; kind++) {
    const ax_op_rules *rules = ax_op_table[kind];
    bool has_row = kind == AX_OP_NONE || kind == AX_OP_ROWS; /* no copies of these are made */
    assert_true(rules != NULL && rules->name != NULL && rules->text != NULL && rules->verify != NULL);
    for (uint32_t other = 0; other < kind; other++) assert_string_not_equal(rules->name, ax_op_table[other]->name);
    for (size_t i = 0; i < AX_COUNT(ops); i++) has_row = has_row || ops[i].kind == kind;
    if (!has_row) fail_msg("no operation '%s' is tested here", rules->name);
    if (rules->makes_results || rules->only_computes) assert_true(rules->rename != NULL && rules->visit != NULL);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_copies), cmocka_unit_test(test_operands),
                                     cmocka_unit_test(test_updated), cmocka_unit_test(test_table)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
