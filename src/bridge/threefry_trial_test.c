/* Functions that are Threefry, as jax.random sends them, in a loop and unrolled, and functions that are nearly so. */
#include "bridge/threefry_trial.h"

#include <stdio.h>
#include <string.h>

#include "axle/stablehlo.h"
#include "base/threefry.h"
#include "prim/prims.h"
#include "support/cmocka.h"
#include "support/run.h"

/* What may be wrong. */
typedef struct form {
  const char *key, *count; /* dims, as "", "1x", "3x5x" */
  bool unrolled, swapped, chosen, clamped, nudged, short_of_a_round;
  uint32_t parity, rotation; /* the first rotation */
  const char *broadcast;     /* dimensions that the key's are; NULL: the last ones */
} form;

static const form as_sent = {.key = "", .count = "3x5x", .parity = 466688986, .rotation = 13};

static uint32_t rank_of(const char *dims) {
  uint32_t rank = 0;
  for (; *dims != '\0'; dims++) rank += *dims == 'x';
  return rank;
}

typedef struct writer {
  ax_text text;
  form form;
  uint32_t names;
} writer;

static uint32_t operation(writer *w, const char *name, uint32_t a, uint32_t b) {
  const char *dims = w->form.count;
  ax_text_add(&w->text, "    %%n%u = stablehlo.%s %%n%u, %%n%u : tensor<%sui32>\n", w->names, name, a, b, dims);
  return w->names++;
}

/* A value of these dims, to the shape of counts. */
static uint32_t broadcast(writer *w, const char *value, const char *dims) {
  const uint32_t rank = rank_of(dims), more = rank_of(w->form.count) - rank;
  ax_text_add(&w->text, "    %%n%u = stablehlo.broadcast_in_dim %s, dims = [", w->names, value);
  for (uint32_t d = 0; d < rank; d++) ax_text_add(&w->text, "%s%u", d > 0 ? ", " : "", d + more);
  ax_text_add(&w->text, "] : (tensor<%sui32>) -> tensor<%sui32>\n", dims, w->form.count);
  return w->names++;
}

static uint32_t key_word(writer *w, const char *value) {
  if (w->form.broadcast == NULL) return broadcast(w, value, w->form.key);
  ax_text_add(&w->text, "    %%n%u = stablehlo.broadcast_in_dim %s, dims = [%s] : (tensor<%sui32>) -> tensor<%sui32>\n", w->names,
              value, w->form.broadcast, w->form.key, w->form.count);
  return w->names++;
}

static uint32_t number(writer *w, uint32_t value) {
  char name[16];
  snprintf(name, sizeof name, "%%n%u", w->names);
  ax_text_add(&w->text, "    %%n%u = stablehlo.constant dense<%u> : tensor<ui32>\n", w->names++, value);
  return broadcast(w, name, "");
}

/* A round; `by`: the name of a scalar. */
static void add_round(writer *w, uint32_t *x, const char *by) {
  const uint32_t left = w->names;
  ax_text_add(&w->text, "    %%n%u = stablehlo.constant dense<32> : tensor<ui32>\n", w->names++);
  ax_text_add(&w->text, "    %%n%u = stablehlo.subtract %%n%u, %s : tensor<ui32>\n", w->names++, left, by);
  char rest[16];
  snprintf(rest, sizeof rest, "%%n%u", left + 1);
  x[0] = operation(w, "add", x[0], x[1]);
  const uint32_t up = operation(w, "shift_left", x[1], broadcast(w, by, "")),
                 down = operation(w, "shift_right_logical", x[1], broadcast(w, rest, ""));
  x[1] = operation(w, "xor", x[0], operation(w, "or", up, down));
}

static void add_rounds_unrolled(writer *w, uint32_t *x, const uint32_t *words) {
  for (uint32_t group = 0; group < AX_THREEFRY_GROUPS; group++) {
    for (uint32_t i = 0; i < AX_THREEFRY_ROUNDS - (uint32_t)(w->form.short_of_a_round && group == 2); i++) {
      char by[16];
      snprintf(by, sizeof by, "%%n%u", w->names);
      ax_text_add(&w->text, "    %%n%u = stablehlo.constant dense<%u> : tensor<ui32>\n", w->names++,
                  group + i == 0 ? w->form.rotation : ax_threefry_rotations[group % 2][i]);
      add_round(w, x, by);
    }
    x[0] = operation(w, "add", x[0], words[(group + 1) % 3]);
    x[1] = operation(w, "add", operation(w, "add", x[1], words[(group + 2) % 3]), number(w, group + 1));
  }
}

/* As a loop, in which the words of the key and the two lists of rotations change places. */
static void add_rounds_in_loop(writer *w, uint32_t *x, const uint32_t *words) {
  const char *dims = w->form.count;
  ax_text_add(
      &w->text,
      "    %%r = stablehlo.constant dense<[%u, 15, 26, 6]> : tensor<4xui32>\n"
      "    %%s = stablehlo.constant dense<[17, 29, 16, 24]> : tensor<4xui32>\n    %%zero = stablehlo.constant dense<0> : "
      "tensor<i32>\n"
      "    %%l:8 = stablehlo.while(%%i = %%zero, %%n1000 = %%n%u, %%n1001 = %%n%u, %%n1002 = %%n%u, %%n1003 = %%n%u, %%n1004 = "
      "%%n%u, "
      "%%p = %%r, %%q = %%s) : tensor<i32>, tensor<%sui32>, tensor<%sui32>, tensor<%sui32>, tensor<%sui32>, tensor<%sui32>, "
      "tensor<4xui32>, tensor<4xui32>\n"
      "    cond {\n      %%most = stablehlo.constant dense<5> : tensor<i32>\n"
      "      %%goes_on = stablehlo.compare LT, %%i, %%most : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
      "      stablehlo.return %%goes_on : tensor<i1>\n    } do {\n",
      w->form.rotation, x[0], x[1], words[1], words[2], words[0], dims, dims, dims, dims, dims);
  uint32_t y[2] = {1000, 1001};
  const uint32_t names = w->names;
  w->names = 2000;
  for (uint32_t i = 0; i < AX_THREEFRY_ROUNDS - (uint32_t)w->form.short_of_a_round; i++) {
    char by[16];
    ax_text_add(&w->text,
                "    %%a%u = stablehlo.slice %%p [%u:%u] : (tensor<4xui32>) -> tensor<1xui32>\n"
                "    %%b%u = stablehlo.reshape %%a%u : (tensor<1xui32>) -> tensor<ui32>\n",
                i, i, i + 1, i, i);
    snprintf(by, sizeof by, "%%b%u", i);
    add_round(w, y, by);
  }
  y[0] = operation(w, "add", y[0], 1002);
  y[1] = operation(w, "add", y[1], 1003);
  ax_text_add(&w->text,
              "    %%one = stablehlo.constant dense<1> : tensor<i32>\n    %%next = stablehlo.add %%i, %%one : tensor<i32>\n"
              "    %%step = stablehlo.convert %%next : (tensor<i32>) -> tensor<ui32>\n");
  y[1] = operation(w, "add", y[1], broadcast(w, "%step", ""));
  ax_text_add(&w->text,
              "    stablehlo.return %%next, %%n%u, %%n%u, %%n1003, %%n1004, %%n1002, %%q, %%p : tensor<i32>, tensor<%sui32>, "
              "tensor<%sui32>, "
              "tensor<%sui32>, tensor<%sui32>, tensor<%sui32>, tensor<4xui32>, tensor<4xui32>\n    }\n",
              y[0], y[1], dims, dims, dims, dims, dims);
  w->names = names;
}

/* One more where the count is 77, by operations that Threefry is made of: ((z | -z) >> 31) ^ 1 is 1 where z is 0. */
static void add_nudge(writer *w) {
  const uint32_t seventy_seven = number(w, 77), one = number(w, 1), ones = number(w, UINT32_MAX), places = number(w, 31);
  ax_text_add(&w->text, "    %%n%u = stablehlo.xor %%d, %%n%u : tensor<%sui32>\n", w->names, seventy_seven, w->form.count);
  const uint32_t z = w->names++, negative = operation(w, "add", operation(w, "xor", z, ones), one);
  const uint32_t is = operation(w, "xor", operation(w, "shift_right_logical", operation(w, "or", z, negative), places), one);
  ax_text_add(&w->text, "    %%nudged = stablehlo.add %%d, %%n%u : tensor<%sui32>\n", is, w->form.count);
}

/* A module whose @main calls the function. */
static ax_program *module_of(form form) {
  writer w = {.form = form};
  ax_program *program;
  char *text, type[96];
  snprintf(type, sizeof type, "tensor<%sui32>, tensor<%sui32>, tensor<%sui32>, tensor<%sui32>", form.key, form.key, form.count,
           form.count);
  const char *head =
      "(%%a: tensor<%sui32>, %%b: tensor<%sui32>, %%c: tensor<%sui32>, %%d: tensor<%sui32>) -> (tensor<%sui32>, tensor<%sui32>) "
      "{\n";
  ax_text_add(&w.text, "func.func @main");
  ax_text_add(&w.text, head, form.key, form.key, form.count, form.count, form.count, form.count);
  ax_text_add(&w.text, "    %%0:2 = call @f(%%a, %%b, %%c, %%d) : (%s) -> (tensor<%sui32>, tensor<%sui32>)\n", type, form.count,
              form.count);
  ax_text_add(&w.text, "    return %%0#0, %%0#1 : tensor<%sui32>, tensor<%sui32>\n}\nfunc.func private @f", form.count, form.count);
  ax_text_add(&w.text, head, form.key, form.key, form.count, form.count, form.count, form.count);
  uint32_t words[3] = {key_word(&w, "%a"), key_word(&w, "%b")}, x[2];
  words[2] = operation(&w, "xor", operation(&w, "xor", words[0], words[1]), number(&w, form.parity));
  const char *counts[2] = {"%c", "%d"};
  if (form.nudged) {
    add_nudge(&w);
    counts[1] = "%nudged";
  }
  for (int k = 0; k < 2; k++) {
    ax_text_add(&w.text, "    %%n%u = stablehlo.add %s, %%n%u : tensor<%sui32>\n", w.names, counts[k], words[k], form.count);
    x[k] = w.names++;
  }
  char made[2][16] = {"%l#1", "%l#2"};
  (form.unrolled ? add_rounds_unrolled : add_rounds_in_loop)(&w, x, words);
  for (int k = 0; form.unrolled && k < 2; k++) snprintf(made[k], sizeof made[k], "%%n%u", x[k]);
  if (form.chosen) {
    ax_text_add(&w.text,
                "    %%t = stablehlo.compare EQ, %%c, %%d : (tensor<%sui32>, tensor<%sui32>) -> tensor<%si1>\n"
                "    %%u = stablehlo.select %%t, %s, %s : tensor<%si1>, tensor<%sui32>\n",
                form.count, form.count, form.count, made[1], made[0], form.count, form.count);
    snprintf(made[0], sizeof made[0], "%%u");
  }
  if (form.clamped) { /* no word is 0 */
    ax_text_add(&w.text, "    %%v = stablehlo.maximum %s, %%n%u : tensor<%sui32>\n", made[0], number(&w, 1), form.count);
    snprintf(made[0], sizeof made[0], "%%v");
  }
  ax_text_add(&w.text, "    return %s, %s : tensor<%sui32>, tensor<%sui32>\n}\n", made[form.swapped], made[!form.swapped], form.count,
              form.count);
  TEST_OK(ax_text_finish(&w.text, &text));
  if (ax_program_from_stablehlo(text, strlen(text), "m.mlir", &program) != AX_OK) fail_msg("%s\n%s", ax_message(), text);
  ax_free(text);
  return program;
}

static bool is_found(const ax_program *program) {
  for (uint32_t e = 0; e < program->eqn_count; e++)
    if (program->eqns[e].prim == &ax_prim_threefry2x32) return true;
  return false;
}

/* What the module gives is what its operations give: those of the function that was found are the primitive's. */
static void check_numbers(ax_program *program, bool is_threefry) {
  static uint32_t words[4][15];
  ax_tensor in[4], *operands[4], *out[2];
  for (int i = 0; i < 4; i++) {
    const ax_type *type = ax_program_in_type(program, (uint32_t)i);
    for (int k = 0; k < 15; k++) words[i][k] = 0x9e3779b9u * (uint32_t)(15 * i + k + 1);
    in[i] = (ax_tensor){.dtype = AX_U32, .rank = type->rank, .data = words[i]};
    memcpy(in[i].dims, type->dims, type->rank * sizeof type->dims[0]);
    operands[i] = &in[i];
  }
  TEST_OK(test_try(program, operands, out));
  const int64_t elems = ax_dims_elems(out[0]->rank, out[0]->dims), keys = ax_dims_elems(in[0].rank, in[0].dims),
                last = in[0].rank > 0 ? in[0].dims[in[0].rank - 1] : 1;
  bool same = true;
  for (int64_t i = 0; i < elems; i++) {
    const int64_t key = keys == 1 ? 0 : keys == elems ? i : last == 1 ? i / (elems / keys) : i % keys;
    const uint64_t bits =
        ax_threefry_bits((uint64_t)words[0][key] << 32 | words[1][key], (uint64_t)words[2][i] << 32 | words[3][i]);
    same = same && ((uint32_t *)out[0]->data)[i] == (uint32_t)(bits >> 32) && ((uint32_t *)out[1]->data)[i] == (uint32_t)bits;
  }
  assert_int_equal(same, is_threefry);
  test_release(out, 2);
}

static void check_both(form form, bool found, bool same_numbers) {
  for (int unrolled = 0; unrolled < 2; unrolled++) {
    form.unrolled = unrolled == 1;
    ax_program *program = module_of(form);
    assert_int_equal(is_found(program), found);
    check_numbers(program, same_numbers);
    ax_program_release(program);
  }
}

static void is_found_in_all_shapes(void **state) {
  (void)state;
  static const char *const shapes[][2] = {{"", "3x5x"}, {"3x5x", "3x5x"}, {"3x1x", "3x5x"}, {"1x5x", "3x5x"}, {"1x1x", "3x5x"},
                                          {"", ""},     {"", "4x"},       {"4x", "4x"},     {"", "1x"}};
  for (uint32_t i = 0; i < AX_COUNT(shapes); i++) {
    form form = as_sent;
    form.key = shapes[i][0], form.count = shapes[i][1];
    check_both(form, true, true);
  }
}

static void others_are_not(void **state) {
  (void)state;
  form form = as_sent;
  form.parity++;
  check_both(form, false, false);
  form = as_sent, form.rotation = 14;
  check_both(form, false, false);
  form = as_sent, form.swapped = true;
  check_both(form, false, false);
  form = as_sent, form.short_of_a_round = true;
  check_both(form, false, false);
}

/* Their numbers are Threefry's but for few. */
static void others_that_agree_are_not(void **state) {
  (void)state;
  form form = as_sent;
  form.chosen = true;
  check_both(form, false, true);
  form = as_sent, form.clamped = true;
  check_both(form, false, true);
  form = as_sent, form.nudged = true;
  check_both(form, false, true);
}

/* Each count gets another count's key. */
static void turned_keys_are_not(void **state) {
  (void)state;
  form form = as_sent;
  form.key = form.count = "3x3x", form.broadcast = "1, 0";
  check_both(form, false, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(is_found_in_all_shapes), cmocka_unit_test(others_are_not),
                                     cmocka_unit_test(others_that_agree_are_not), cmocka_unit_test(turned_keys_are_not)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
