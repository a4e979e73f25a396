/* Values and memory of the machine that kernels run on: cells, banks, views of their bytes, and numbers by key. */
#include <string.h>

#include "kernel/machine/state.h"
#include "support/cmocka.h"
#include "support/tensor.h"

static ax_type ref(uint32_t rank, const int64_t *dims) {
  ax_type type = ax_array_type(AX_F32, AX_LIST(rank, dims));
  type.form = AX_REF;
  type.space = AX_SPACE_VMEM;
  return type;
}

static ax_view table(void) {
  const ax_type type = ref(2, (const int64_t[]){2, 3});
  return ax_dense_view(5, &type);
}

/* Column j of the table. */
static ax_view column(int64_t j) {
  ax_view view = table();
  view.type = ref(1, (const int64_t[]){2});
  view.offset = 4 * j;
  view.strides[0] = 12;
  return view;
}

/* --- Views --- */

static void a_dense_view_steps_over_bytes(void **state) {
  (void)state;
  const ax_view view = table();
  assert_true(view.region == 5 && view.offset == 0 && view.strides[0] == 12 && view.strides[1] == 4);
  ax_type semaphores = ref(1, (const int64_t[]){4});
  semaphores.form = AX_SEMAPHORE;
  assert_int_equal(ax_dense_view(0, &semaphores).strides[0], 1); /* objects have no bytes */
}

static void rows_that_lie_in_one_piece_are_reshaped(void **state) {
  (void)state;
  const ax_view view = table(), one = column(1);
  const ax_type six = ref(1, (const int64_t[]){6}), three = ref(3, (const int64_t[]){2, 1, 3}),
                turned = ref(2, (const int64_t[]){1, 2}), other = ref(2, (const int64_t[]){3, 2});
  ax_view out;
  assert_true(ax_view_reshape(&view, &six, &out) && out.strides[0] == 4);
  assert_true(ax_view_reshape(&view, &three, &out) && out.strides[0] == 12 && out.strides[2] == 4);
  assert_true(ax_view_reshape(&view, &other, &out) && out.strides[0] == 8 && out.strides[1] == 4);
  assert_true(ax_view_reshape(&one, &turned, &out) && out.strides[1] == 12 && out.offset == 4);
}

static void columns_are_not_one_piece(void **state) {
  (void)state;
  ax_view two = table(); /* columns 0 and 1 */
  two.type = ref(2, (const int64_t[]){2, 2});
  const ax_type four = ref(1, (const int64_t[]){4});
  ax_view out;
  assert_false(ax_view_reshape(&two, &four, &out));
}

/* The runs of a touch: "4-8 16-20". */
static void touches(const ax_view *view, const unsigned char *mask, const char *wanted) {
  ax_touches pool = {0};
  ax_text text = {0};
  TEST_OK(ax_view_touch(&pool, view, mask, true));
  for (uint32_t t = 0; t < pool.touch_count; t++) {
    assert_true(pool.touches[t].region == 5 && pool.touches[t].write && !pool.touches[t].scope);
    for (uint32_t i = 0; i < pool.touches[t].count; i++)
      ax_text_add(&text, "%s%d-%d", i > 0 ? " " : "", (int)pool.runs[i].begin, (int)pool.runs[i].end);
  }
  ax_text_add(&text, "%s", "");
  assert_string_equal(text.data, wanted);
  ax_text_deinit(&text);
  ax_touches_deinit(&pool);
}

static void a_touch_says_which_bytes(void **state) {
  (void)state;
  const ax_view all = table(), one = column(1);
  touches(&all, NULL, "0-24");
  touches(&one, NULL, "4-8 16-20");
  touches(&all, (const unsigned char[]){0, 1, 1, 0, 0, 1}, "4-12 20-24");
  touches(&all, (const unsigned char[]){0, 0, 0, 0, 0, 0}, "");
}

static void runs_of_a_view_that_goes_backwards_ascend(void **state) {
  (void)state;
  ax_view turned = table();
  turned.offset = 12;
  turned.strides[0] = -12;
  touches(&turned, NULL, "0-24");
}

/* --- Memory --- */

static void memory_is_unset_until_it_is_written(void **state) {
  (void)state;
  const float values[] = {7, 8};
  const ax_view all = table(), first = column(0), second = column(1);
  ax_bank *bank;
  ax_bytes where;
  TEST_OK(ax_bank_create(24, &bank));
  assert_true(ax_view_unset(&all, bank, NULL, &where) && where.begin == 0);
  ax_view_write(&first, bank, NULL, values, NULL);
  assert_false(ax_view_unset(&first, bank, NULL, &where));
  assert_true(ax_view_unset(&all, bank, NULL, &where) && where.begin == 4 && where.end == 12);
  assert_false(ax_view_unset(&all, bank, (const unsigned char[]){1, 0, 0, 1, 0, 0}, &where));
  float back[2];
  ax_view_read(&first, bank, NULL, back, NULL);
  assert_memory_equal(back, values, sizeof back);
  ax_view_write(&second, bank, (const unsigned char[]){0, 1}, values, NULL);
  assert_true(ax_view_unset(&second, bank, NULL, &where) && where.begin == 4 && where.end == 8);
  ax_bank_release(bank);
}

static void unset_bytes_stay_unset_when_they_are_copied(void **state) {
  (void)state;
  const float value = 7;
  const ax_type one = ref(1, (const int64_t[]){1});
  const ax_view first = ax_dense_view(0, &one), all = table();
  ax_bank *from, *to;
  unsigned char data[24], set[24];
  ax_bytes where;
  TEST_OK(ax_bank_create(24, &from));
  TEST_OK(ax_bank_create(24, &to));
  ax_view_write(&first, from, NULL, &value, NULL);
  ax_view_read(&all, from, NULL, data, set);
  ax_view_write(&all, to, NULL, data, set);
  assert_true(ax_view_unset(&all, to, NULL, &where) && where.begin == 4);
  ax_bank_release(from);
  ax_bank_release(to);
}

static void memory_that_others_hold_is_copied_before_it_is_changed(void **state) {
  (void)state;
  ax_bank *bank, *mine;
  TEST_OK(ax_bank_create(8, &bank));
  mine = bank;
  TEST_OK(ax_bank_own(&mine));
  assert_ptr_equal(mine, bank); /* nobody else has it */
  bank->references++;
  TEST_OK(ax_bank_own(&mine));
  assert_ptr_not_equal(mine, bank);
  assert_int_equal(bank->references, 1);
  assert_memory_equal(mine->data, bank->data, 8);
  ax_bank_release(mine);
  ax_bank_release(bank);
}

static void equal_memory_has_one_hash(void **state) {
  (void)state;
  const float value = 7;
  const ax_type type = ref(1, (const int64_t[]){1});
  const ax_view view = ax_dense_view(0, &type);
  ax_bank *a, *b;
  TEST_OK(ax_bank_create(8, &a));
  TEST_OK(ax_bank_create(8, &b));
  assert_true(ax_bank_hash(a) == ax_bank_hash(b));
  TEST_OK(ax_bank_own(&b));
  ax_view_write(&view, b, NULL, &value, NULL);
  assert_true(ax_bank_hash(a) != ax_bank_hash(b));
  ax_bank_release(a);
  ax_bank_release(b);
}

/* --- Values --- */

static void a_cell_lives_as_long_as_its_last_holder(void **state) {
  (void)state;
  const ax_type type = ax_array_type(AX_F32, AX_DIMS(3));
  const ax_view view = column(2);
  ax_cell *tensor, *memory;
  TEST_OK(ax_cell_tensor(&type, &tensor));
  assert_ptr_equal(ax_cell_retain(tensor), tensor);
  ax_cell_release(tensor);
  for (int i = 0; i < 3; i++) assert_true(((const float *)tensor->tensor->data)[i] == 0);
  ax_cell_release(tensor);
  TEST_OK(ax_cell_view(&view, &memory));
  assert_true(memory->tensor == NULL && memory->view.offset == 8);
  ax_cell_release(memory);
  ax_cell_release(NULL);
}

/* --- Terms of sums --- */

/* A column is added to twice, and copied to another; a store makes an end of it. */
static void sums_keep_the_size_of_their_terms(void **state) {
  (void)state;
  const ax_type type = ax_array_type(AX_F32, AX_DIMS(2));
  const ax_view from = column(1), to = column(2);
  const float values[2] = {-3, 2}, zeros[6] = {0};
  ax_bank *memory;
  ax_cell *cell;
  ax_term *terms;
  TEST_OK(ax_bank_create(24, &memory));
  TEST_OK(ax_cell_tensor(&type, &cell));
  memcpy(memory->data, zeros, sizeof zeros);
  memcpy(cell->tensor->data, values, sizeof values);
  TEST_OK(ax_terms_read(&from, memory, &terms));
  assert_null(terms);
  for (int times = 1; times <= 2; times++) {
    TEST_OK(ax_terms_add(&from, memory, cell, &terms));
    assert_true(terms[0].size == 3 * times && terms[1].size == 2 * times && terms[0].sums == times);
    TEST_OK(ax_terms_write(&from, memory, NULL, terms));
    ax_free(terms);
  }
  ax_bank *other = memory;
  other->references++;
  TEST_OK(ax_bank_own(&other));
  TEST_OK(ax_terms_read(&from, other, &terms));
  TEST_OK(ax_terms_write(&to, other, (const unsigned char[]){0, 1}, terms));
  TEST_OK(ax_terms_write(&from, other, NULL, NULL));
  ax_free(terms);
  for (int i = 0; i < 6; i++) {
    assert_true(memory->terms[i].sums == (i % 3 == 1 ? 2 : 0));
    assert_true(other->terms[i].sums == (i == 5 ? 2 : 0) && other->terms[i].size == (i == 5 ? 4 : 0));
  }
  ax_cell_release(cell);
  ax_bank_release(other);
  ax_bank_release(memory);
}

static void terms_explain_what_roundings_may_change(void **state) {
  (void)state;
  const double unit = 0x1p-23;
  assert_true(ax_term_explains(AX_F32, (ax_term){100, 3}, 300 * unit) && !ax_term_explains(AX_F32, (ax_term){100, 3}, 301 * unit));
  assert_false(ax_term_explains(AX_F32, (ax_term){100, 0}, unit));
  assert_true(ax_term_explains(AX_BF16, (ax_term){1, 1000}, 2) && !ax_term_explains(AX_BF16, (ax_term){1, 1000}, 2.1));
}

/* --- Numbers by key --- */

static void a_key_keeps_its_number(void **state) {
  (void)state;
  const ax_name_key copy = {AX_NAME_AGENT, 1, 0, 0, 3}, signal = {AX_NAME_AGENT, 1, 1, 0, 3}, place = {AX_NAME_PLACE, 1, 0, 0, 3};
  ax_names *names;
  uint32_t number;
  TEST_OK(ax_names_create(&names));
  assert_false(ax_names_find(names, &copy, &number));
  TEST_OK(ax_names_number(names, &copy, &number));
  assert_int_equal(number, 0);
  TEST_OK(ax_names_number(names, &signal, &number));
  assert_int_equal(number, 1);
  TEST_OK(ax_names_number(names, &place, &number));
  assert_int_equal(number, 0); /* each kind is counted by itself */
  for (uint32_t i = 0; i < 200; i++) TEST_OK(ax_names_number(names, &(ax_name_key){AX_NAME_OBJECT, 0, 0, 0, i}, &number));
  TEST_OK(ax_names_number(names, &signal, &number));
  assert_int_equal(number, 1);
  assert_int_equal(ax_names_count(names, AX_NAME_AGENT), 2);
  assert_int_equal(ax_names_count(names, AX_NAME_OBJECT), 200);
  assert_int_equal(ax_names_key(names, AX_NAME_OBJECT, 77)->index, 77);
  ax_names_release(names);
}

/* --- Acts --- */

static void some_acts_nobody_notices(void **state) {
  (void)state;
  assert_true(ax_act_has_effect(&(ax_act){.kind = AX_ACT_SIGNAL, .amount = 1}) &&
              ax_act_has_effect(&(ax_act){.kind = AX_ACT_ARRIVE}));
  assert_true(ax_act_has_effect(&(ax_act){.kind = AX_ACT_LOCAL, .touch_count = 1}));
  assert_false(ax_act_has_effect(&(ax_act){.kind = AX_ACT_SIGNAL}) || ax_act_has_effect(&(ax_act){.kind = AX_ACT_LOCAL}));
  assert_false(ax_act_has_effect(&(ax_act){.kind = AX_ACT_WAIT, .amount = 1}) || ax_act_has_effect(&(ax_act){.kind = AX_ACT_READ}));
}

static void a_record_copies_touches(void **state) {
  (void)state;
  ax_touches pool = {0};
  ax_act_record record = {0};
  TEST_OK(ax_touches_add(&pool, 9, false, false, 1, &(ax_bytes){0, 1}));
  TEST_OK(ax_touches_add(&pool, 2, true, true, 2, (const ax_bytes[]){{0, 4}, {8, 12}}));
  const ax_act act = {.kind = AX_ACT_LOCAL, .touch_first = 1, .touch_count = 1};
  TEST_OK(ax_act_record_step(&record, 3, &act, &pool));
  TEST_OK(ax_act_record_fault(&record, &(ax_act_fault){.kind = AX_FINDING_UNSET_READ, .region = 2, .text = "unset"}));
  TEST_OK(ax_act_record_pending(&record, 4, &(ax_act){.kind = AX_ACT_WAIT}, NULL));
  ax_touches_deinit(&pool);
  assert_true(record.step_count == 1 && record.steps[0].agent == 3 && record.pending_count == 1);
  const ax_touch *touch = &record.touches.touches[record.steps[0].act.touch_first];
  assert_true(touch->region == 2 && touch->write && ax_touch_leaves(touch) == false && touch->count == 2);
  assert_int_equal(record.touches.runs[touch->first + 1].begin, 8);
  assert_int_equal(record.faults[0].step, 0);
  ax_act_record_deinit(&record);
}

static void a_phase_is_one_arrival_where_nothing_is_said(void **state) {
  (void)state;
  int64_t pairs[][2] = {{2, 3}, {5, 7}};
  const ax_pairs arrivals = {2, pairs};
  assert_int_equal(ax_arrivals_of(&arrivals, 2), 3);
  assert_int_equal(ax_arrivals_of(&arrivals, 5), 7);
  assert_int_equal(ax_arrivals_of(&arrivals, 3), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_dense_view_steps_over_bytes),
      cmocka_unit_test(rows_that_lie_in_one_piece_are_reshaped),
      cmocka_unit_test(columns_are_not_one_piece),
      cmocka_unit_test(a_touch_says_which_bytes),
      cmocka_unit_test(runs_of_a_view_that_goes_backwards_ascend),
      cmocka_unit_test(memory_is_unset_until_it_is_written),
      cmocka_unit_test(unset_bytes_stay_unset_when_they_are_copied),
      cmocka_unit_test(memory_that_others_hold_is_copied_before_it_is_changed),
      cmocka_unit_test(equal_memory_has_one_hash),
      cmocka_unit_test(a_cell_lives_as_long_as_its_last_holder),
      cmocka_unit_test(sums_keep_the_size_of_their_terms),
      cmocka_unit_test(terms_explain_what_roundings_may_change),
      cmocka_unit_test(a_key_keeps_its_number),
      cmocka_unit_test(some_acts_nobody_notices),
      cmocka_unit_test(a_record_copies_touches),
      cmocka_unit_test(a_phase_is_one_arrival_where_nothing_is_said),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
