/* einsum against its definition, on subscripts made at random; what it costs; what it refuses. */
#include <stdio.h>
#include <string.h>

#include "axle/exec.h"
#include "axle/ops.h"
#include "lib/einsum.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"
#include "support/tensor.h"

/* --- At random: s32, so that each order of products gives the same bits --- */

enum { most_operands = 10, most_letters = 7, most_elems = 20000 };

typedef struct example {
  uint32_t count, rank[most_operands], result_rank, in_ellipsis;
  int letter[most_operands][8], result[AX_MAX_RANK]; /* by dimension; from most_letters on: of the ellipsis */
  int64_t size[most_letters + 2];                    /* by letter */
  bool one[most_operands][8];                        /* 1 instead */
  char text[256];
} example;

static void add_term(char *text, const int *letters, uint32_t rank, uint32_t in_ellipsis) {
  bool dots = false;
  for (uint32_t d = 0; d < rank; d++) {
    bool inside = letters[d] >= most_letters;
    if (inside && !dots) strcat(text, "...");
    dots = dots || inside;
    if (!inside) snprintf(text + strlen(text), 8, "%c%s", 'p' - letters[d], letters[d] == 1 ? " " : "");
  }
  if (in_ellipsis > 0 && !dots) strcat(text, "...");
}

/* Each operand: some letters, and with a chance the last few dimensions of the ellipsis among them. */
static void make_operand(example *x, test_random *random, uint32_t i) {
  uint32_t letters = (uint32_t)test_random_below(random, 4), rank = 0;
  uint32_t inside =
      x->in_ellipsis > 0 && test_random_below(random, 2) ? 1 + (uint32_t)test_random_below(random, x->in_ellipsis) : 0;
  uint32_t before = letters > 0 ? (uint32_t)test_random_below(random, letters + 1) : 0;
  for (uint32_t k = 0; k <= letters; k++) {
    if (k == before)
      for (uint32_t d = inside; d > 0; d--) x->letter[i][rank++] = most_letters + (int)d - 1; /* by distance from the end */
    if (k < letters) x->letter[i][rank++] = (int)test_random_below(random, most_letters);
  }
  x->rank[i] = rank;
  for (uint32_t d = 0; d < rank; d++) {
    x->one[i][d] = test_random_below(random, 8) == 0;
    for (uint32_t k = 0; k < rank; k++) /* a letter twice in one operand has one size there */
      if (k < d && x->letter[i][k] == x->letter[i][d]) x->one[i][d] = x->one[i][k];
  }
  if (i > 0) strcat(x->text, ",");
  add_term(x->text, x->letter[i], rank, inside);
}

static void make_result(example *x, test_random *random) {
  uint32_t seen = 0, longest = 0;
  for (uint32_t i = 0; i < x->count; i++)
    for (uint32_t d = 0; d < x->rank[i]; d++) {
      seen |= 1u << x->letter[i][d];
      if (x->letter[i][d] >= most_letters && (uint32_t)(x->letter[i][d] - most_letters) >= longest)
        longest = (uint32_t)(x->letter[i][d] - most_letters) + 1;
    }
  x->in_ellipsis = longest;
  bool dots = longest > 0 && test_random_below(random, 4) > 0;
  int chosen[most_letters], count = 0;
  for (int letter = 0; letter < most_letters; letter++)
    if ((seen >> letter & 1) != 0 && test_random_below(random, 2)) chosen[count++] = letter;
  for (int k = count; k > 1; k--) {
    int with = (int)test_random_below(random, k), kept = chosen[k - 1];
    chosen[k - 1] = chosen[with], chosen[with] = kept;
  }
  int before = (int)test_random_below(random, count + 1);
  for (int k = 0; k <= count; k++) {
    if (k == before && dots)
      for (uint32_t d = longest; d > 0; d--) x->result[x->result_rank++] = most_letters + (int)d - 1;
    if (k < count) x->result[x->result_rank++] = chosen[k];
  }
  strcat(x->text, "->");
  add_term(x->text, x->result, x->result_rank, 0);
}

static example make_example(test_random *random) {
  example x = {.in_ellipsis = (uint32_t)test_random_below(random, 3)};
  x.count = 1 + (uint32_t)test_random_below(random, test_random_below(random, 4) == 0 ? most_operands : 3);
  for (int letter = 0; letter < most_letters + 2; letter++)
    x.size[letter] = test_random_below(random, 20) == 0 ? 0 : 1 + test_random_below(random, 4);
  for (uint32_t i = 0; i < x.count; i++) make_operand(&x, random, i);
  make_result(&x, random);
  for (int letter = 0; letter < most_letters + 2; letter++) { /* what is 1 everywhere is */
    bool full = false;
    for (uint32_t i = 0; i < x.count; i++)
      for (uint32_t d = 0; d < x.rank[i]; d++) full = full || (x.letter[i][d] == letter && !x.one[i][d]);
    if (!full) x.size[letter] = 1;
  }
  return x;
}

static ax_type type_of(const example *x, uint32_t i) {
  int64_t dims[8];
  for (uint32_t d = 0; d < x->rank[i]; d++) dims[d] = x->one[i][d] ? 1 : x->size[x->letter[i][d]];
  return ax_array_type(AX_S32, AX_LIST(x->rank[i], dims));
}

/* The sum, over all values of all letters, of the products, each added where the result's letters say. */
static void by_definition(const example *x, ax_tensor *const *in, int32_t *out) {
  int64_t at[most_letters + 2] = {0}, all = 1;
  uint32_t seen = 0;
  for (uint32_t i = 0; i < x->count; i++)
    for (uint32_t d = 0; d < x->rank[i]; d++) seen |= 1u << x->letter[i][d];
  for (int letter = 0; letter < most_letters + 2; letter++)
    if ((seen >> letter & 1) != 0) all *= x->size[letter];
  for (int64_t n = 0; n < all; n++) {
    uint32_t product = 1;
    for (uint32_t i = 0; i < x->count; i++) {
      int64_t place = 0;
      for (uint32_t d = 0; d < x->rank[i]; d++) place = place * in[i]->dims[d] + (x->one[i][d] ? 0 : at[x->letter[i][d]]);
      product *= (uint32_t)((const int32_t *)in[i]->data)[place];
    }
    int64_t place = 0;
    for (uint32_t d = 0; d < x->result_rank; d++) place = place * x->size[x->result[d]] + at[x->result[d]];
    out[place] = (int32_t)((uint32_t)out[place] + product);
    for (int letter = 0; letter < most_letters + 2; letter++)
      if ((seen >> letter & 1) != 0) {
        if (++at[letter] < x->size[letter]) break;
        at[letter] = 0;
      }
  }
}

static void call(const ax_value *in, ax_value *out, void *context) {
  const example *x = context;
  out[0] = ax_einsum(x->text, AX_LIST(x->count, in));
}

static void one_example(uint64_t seed, bool show) {
  static int32_t wanted[most_elems];
  test_random random = {seed};
  example x = make_example(&random);
  ax_type types[most_operands];
  ax_tensor *in[most_operands], *out;
  int64_t dims[AX_MAX_RANK], elems = 1;
  for (uint32_t d = 0; d < x.result_rank; d++) elems *= dims[d] = x.size[x.result[d]];
  if (elems > most_elems) return;
  for (uint32_t i = 0; i < x.count; i++) {
    types[i] = type_of(&x, i);
    in[i] = test_tensor(types[i], NULL);
    for (int64_t k = 0; k < test_elems(in[i]); k++) test_set(in[i], k, (double)test_random_below(&random, 9) - 4);
  }
  if (show) print_message("%s\n", x.text);
  ax_program *program = test_trace(call, &x, types, x.count, 1);
  ax_type type = ax_array_type(AX_S32, AX_LIST(x.result_rank, dims));
  if (!ax_type_equal(&type, ax_program_out_type(program, 0)))
    fail_msg("%s: %s, not %s", x.text, ax_type_string(ax_program_out_type(program, 0), NULL), ax_type_string(&type, NULL));
  memset(wanted, 0, (size_t)elems * sizeof wanted[0]);
  by_definition(&x, in, wanted);
  test_run(program, in, &out);
  if (memcmp(out->data, wanted, (size_t)elems * sizeof wanted[0]) != 0)
    fail_msg("seed %llu: %s: another result", (unsigned long long)seed, x.text);
  if (seed % 16 == 1) TEST_EVERY_WAY(program, in, 0);
  test_release(in, x.count);
  test_release(&out, 1);
  ax_program_release(program);
}

static void at_random(void **state) {
  (void)state;
  test_each_seed(400, one_example);
}

/* --- Costs --- */

typedef struct subject {
  const char *subscripts; /* NULL: matmul */
  uint32_t count;
} subject;

static void subject_body(const ax_value *in, ax_value *out, void *context) {
  const subject *s = context;
  out[0] = s->subscripts != NULL ? ax_einsum(s->subscripts, AX_LIST(s->count, in)) : ax_matmul(in[0], in[1]);
}

static char *text_of(const char *subscripts, const ax_type *types, uint32_t count) {
  ax_runtime *runtime;
  ax_executable *executable;
  char *text;
  ax_program *program = test_trace(subject_body, &(subject){subscripts, count}, types, count, 1);
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 1}, &runtime));
  TEST_OK(ax_compile(runtime, program, NULL, &executable));
  TEST_OK(ax_executable_text(executable, &text));
  ax_executable_release(executable);
  ax_runtime_release(runtime);
  ax_program_release(program);
  return text;
}

static uint32_t times_in(const char *text, const char *word) {
  uint32_t times = 0;
  for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) times++;
  return times;
}

static void as_matmul(void **state) {
  (void)state;
  const ax_type batched[] = {TEST_TYPE(AX_F32, 3, 64, 80), TEST_TYPE(AX_F32, 3, 80, 96)};
  const ax_type plain[] = {TEST_TYPE(AX_F32, 64, 80), TEST_TYPE(AX_F32, 80, 96)};
  const ax_type vector[] = {TEST_TYPE(AX_F32, 64, 80), TEST_TYPE(AX_F32, 80)};
  static const char *const same[] = {"bij,bjk->bik", "ij,jk->ik", "ij,j->i"};
  const ax_type *types[] = {batched, plain, vector};
  for (size_t i = 0; i < AX_COUNT(same); i++) {
    char *einsum = text_of(same[i], types[i], 2), *matmul = text_of(NULL, types[i], 2);
    assert_string_equal(einsum, matmul);
    ax_string_free(einsum);
    ax_string_free(matmul);
  }
}

/* Instructions of each kind: a product, or a kernel, and nothing beside it that moves elements. */
static void one_instruction(void **state) {
  (void)state;
  const struct {
    const char *subscripts;
    uint32_t count, products, kernels;
    ax_type types[3];
  } rows[] = {
      {"ij,ij->", 2, 0, 1, {TEST_TYPE(AX_F32, 8, 9), TEST_TYPE(AX_F32, 8, 9)}},
      {"ij,jk->ki", 2, 1, 0, {TEST_TYPE(AX_F32, 64, 80), TEST_TYPE(AX_F32, 80, 96)}},
      {"ji,kj->ki", 2, 1, 0, {TEST_TYPE(AX_F32, 80, 64), TEST_TYPE(AX_F32, 96, 80)}},
      {"bij,bkj->bki", 2, 1, 0, {TEST_TYPE(AX_F32, 3, 64, 80), TEST_TYPE(AX_F32, 3, 96, 80)}},
      {"bqhd,bkhd->bhqk", 2, 1, 0, {TEST_TYPE(AX_F32, 2, 32, 4, 64), TEST_TYPE(AX_F32, 2, 48, 4, 64)}},
      {"btd,dhk->bthk", 2, 1, 0, {TEST_TYPE(AX_F32, 2, 32, 64), TEST_TYPE(AX_F32, 64, 4, 16)}},
      {"ij,i->ij", 2, 0, 1, {TEST_TYPE(AX_F32, 64, 80), TEST_TYPE(AX_F32, 64)}},
      {"i,j->ji", 2, 0, 1, {TEST_TYPE(AX_F32, 64), TEST_TYPE(AX_F32, 80)}},
      {"ii", 1, 0, 1, {TEST_TYPE(AX_F32, 64, 64)}},
      {"ij,jk,kl->il", 3, 2, 0, {TEST_TYPE(AX_F32, 256, 64), TEST_TYPE(AX_F32, 64, 96), TEST_TYPE(AX_F32, 96, 64)}},
  };
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    char *text = text_of(rows[i].subscripts, rows[i].types, rows[i].count);
    uint32_t products = times_in(text, " gemm    on"), kernels = times_in(text, " kernel  on");
    if (products != rows[i].products || kernels != rows[i].kernels)
      fail_msg("%s: %u products and %u kernels, not %u and %u:\n%s", rows[i].subscripts, products, kernels, rows[i].products,
               rows[i].kernels, text);
    ax_string_free(text);
  }
}

/* --- Many operands, many dimensions --- */

/* A chain of forty products, made from either end: the order that goes with the vectors is found among more than eight. */
static void long_chain(void **state) {
  (void)state;
  enum { count = 40, n = 3 };
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP";
  char text[4 * count + 8] = "";
  ax_type types[count];
  ax_tensor *in[count], *out;
  for (int i = 0; i < count; i++) {
    snprintf(text + strlen(text), 8, "%s%c%c", i > 0 ? "," : "", letters[i], letters[i + 1]);
    types[i] = TEST_TYPE(AX_S32, n, n);
    in[i] = test_tensor(types[i], (double[]){1, 1, 0, 0, 1, 0, 0, 0, 1}); /* its power k has k in the corner */
  }
  strcat(text, "->aO"); /* sorted, O comes first */
  ax_program *program = test_trace(subject_body, &(subject){text, count}, types, count, 1);
  test_run(program, in, &out);
  for (int64_t k = 0; k < n * n; k++) assert_true(test_get(out, k) == (k == 1 ? count : k % (n + 1) == 0));
  test_release(in, count);
  test_release(&out, 1);
  ax_program_release(program);
}

/* Sixteen dimensions; one letter sixteen times. */
static void most_dimensions(void **state) {
  (void)state;
  int64_t dims[AX_MAX_RANK];
  double data[1 << 4];
  for (int d = 0; d < AX_MAX_RANK; d++) dims[d] = d < 4 ? 2 : 1;
  for (int k = 0; k < 1 << 4; k++) data[k] = k;
  static const char *const subscripts[] = {"abcdefghijklmnop->ponmlkjihgfedcba", "aaaaefghijklmnop->a", "...a->a", "ab...->..."};
  for (size_t i = 0; i < AX_COUNT(subscripts); i++) {
    ax_type type = ax_array_type(AX_BF16, AX_LIST(AX_MAX_RANK, dims));
    ax_tensor *in = test_tensor(type, data);
    ax_program *program = test_trace(subject_body, &(subject){subscripts[i], 1}, &type, 1, 1);
    TEST_EVERY_WAY(program, &in, 0);
    test_release(&in, 1);
    ax_program_release(program);
  }
}

/* --- What is refused --- */

static void refused(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F32, 3, 4), TEST_TYPE(AX_F32, 4, 5), TEST_TYPE(AX_F32, 2, 4)};
  const ax_type mixed[] = {types[0], TEST_TYPE(AX_BF16, 4, 5)}, bools[] = {TEST_TYPE(AX_BOOL, 3, 4)},
                square[] = {TEST_TYPE(AX_F32, 3, 1)};
  ax_type wide[5], eights[3];
  for (int i = 0; i < 5; i++)
    wide[i] = ax_array_type(AX_F32, AX_LIST(16, ((int64_t[16]){1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1})));
  for (int i = 0; i < 3; i++) eights[i] = ax_array_type(AX_F32, AX_LIST(9, ((int64_t[9]){2, 2, 2, 2, 2, 2, 2, 2, 2})));
  const struct {
    const char *subscripts, *message;
    const ax_type *types;
    uint32_t count;
  } rows[] = {
      {"ij", "einsum: there are no operands", types, 0},
      {"ij,jk->ik", "einsum: operands 0 and 1 are f32[3,4] and bf16[4,5]; they need one dtype", mixed, 2},
      {"ij->ji", "einsum: operand 0 is bool[3,4]; it must be numeric", bools, 1},
      {"ij,jk->ik", "einsum: \"ij,jk->ik\": 3 operands, but subscripts for 2", types, 3},
      {"ij,jk", "einsum: \"ij,jk\": 1 operand, but subscripts for 2", types, 1},
      {"ijk,jk->ik", "einsum: \"ijk,jk->ik\": operand 0 is f32[3,4], but its letters are 3", types, 2},
      {"i,jk->ik", "operand 0 is f32[3,4], but its letters are 1", types, 2},
      {"ijk...,jk", "operand 0 is f32[3,4], but its letters are 3", types, 2},
      {"ij,ik->jk", "einsum: \"ij,ik->jk\": i is 3 before, but 4 in operand 1, f32[4,5]", types, 2},
      {"...,...", "a dimension of ... is 3 before, but 4 in operand 1, f32[4,5]", types, 2},
      {"ii->i", "i is 3 and 4 in operand 0, f32[3,4]", types, 1},
      {"ii->i", "i is 3 and 1 in operand 0, f32[3,1]", square, 1},
      {"ij,jk->il", "einsum: \"ij,jk->il\": l is in no operand", types, 2},
      {"ij,jk->iki", "i is twice in the result", types, 2},
      {"i1,jk", "einsum: \"i1,jk\": at 1,jk: subscripts are letters, \"...\", commas and one \"->\"", types, 2},
      {"i.j", "at .j: subscripts are letters", types, 1},
      {"i-j", "at -j: subscripts are letters", types, 1},
      {"ij->i->j", "at ->j: the result is one, and the last", types, 1},
      {"ij->i,j", "at ,j: the result is one, and the last", types, 1},
      {"...i...", "an ellipsis twice for one array", types, 1},
      {"abcdefghijklmnopq", "more than 16 letters for one array", types, 1},
      {"i\xc3\xa4", "at \xc3\xa4: subscripts are letters", types, 1},
      {"abcdefghijklmnop,qrstuvwxyzABCDEF,GHIJKLMNOPQRSTUV,WXYZaaaaaaaaaaaa,...->a", "more than 64 different dimensions", wide, 5},
      {"abcdefghijklmnop,qrstuvwxyzABCDEF", "the result has more than 16 dimensions", wide, 2},
      {"abcdefghi,jklmnopqr,stuvwxyzA->abcdefghijklmnopqr", "more than 16 letters for one array", eights, 3},
      {"abcdefghijklmnop,abcdefghqrstuvwx,ijklmnopqrstuvwx->aiq",
       "einsum: in each order some product of two has more than 16 dimensions", wide, 3},
      {"abcdefghi,ajklmnopq,ajklmnopq->bcdefghirs", "r is in no operand", eights, 3},
  };
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    ax_program *program;
    subject s = {rows[i].subscripts, rows[i].count};
    ax_status status = ax_trace(AX_CLOSURE(subject_body, s.count, 1, &s), rows[i].types, &program);
    TEST_FAILS(status, AX_INVALID_ARGUMENT, rows[i].message);
    assert_null(program);
  }
}

/* --- The order of products --- */

/* a[2,300] b[300,4] c[4,5], labels i=0 j=1 k=2 l=3: (a b) c, 2400 + 40 multiplications, and not a (b c), 6000 + 3000. */
static AX_BODY(ordered) {
  const ax_labels terms[] = {1 | 2, 2 | 4, 4 | 8};
  const int64_t sizes[] = {2, 300, 4, 5};
  ax_einsum_step steps[2];
  (void)context;
  assert_true(ax_einsum_order(3, terms, 1 | 8, sizes, steps));
  assert_int_equal(steps[0].left + steps[0].right, 0 + 1);
  assert_int_equal(steps[0].kept, 1 | 4);
  assert_int_equal(steps[1].left + steps[1].right, 2 + 3); /* step 0 has made term 3 */
  assert_int_equal(steps[1].kept, 1 | 8);
  const int64_t turned[] = {50, 4, 300, 2}; /* now the last two first: 2400 + 400 instead of 60000 + 30000 */
  assert_true(ax_einsum_order(3, terms, 1 | 8, turned, steps));
  assert_int_equal(steps[0].left + steps[0].right, 1 + 2);
  assert_int_equal(steps[0].kept, 2 | 8);
  out[0] = in[0];
}

static void the_cheapest_order_is_taken(void **state) {
  (void)state;
  ax_program *program;
  assert_int_equal(ax_trace(AX_FN(ordered, 1, 1), (ax_type[]){TEST_SCALAR(AX_F32)}, &program), AX_OK);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(at_random),
      cmocka_unit_test(as_matmul),
      cmocka_unit_test(one_instruction),
      cmocka_unit_test(long_chain),
      cmocka_unit_test(most_dimensions),
      cmocka_unit_test(refused),
      cmocka_unit_test(the_cheapest_order_is_taken),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
